/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What json-c accepts and we refuse: a NUL, and a key that an object has twice. Used by twheeld(8)
 * and twheel-job(1).
 */
#ifndef JOBS_STRICT_H
#define JOBS_STRICT_H

#include <json-c/json.h>
#include <json-c/json_visit.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * Is a NUL in @text, which is JSON: by itself, or as an escape? This must be asked before json-c
 * parses the text, as that cuts off a key at a NUL: it takes "exec\u0000x" for "exec". Nothing that
 * is JSON here may contain a NUL.
 */
static inline bool json_has_nul(const char *text, size_t size)
{
	static const char escaped[] = "\\u0000";
	const size_t len = sizeof(escaped) - 1;

	for (size_t i = 0; i < size; i++) {
		if (!text[i] || (size - i >= len && !memcmp(text + i, escaped, len)))
			return true;
		if (text[i] == '\\')
			i++;	/* what it escapes, perhaps another backslash, begins nothing */
	}
	return false;
}

/* How many colons are in no string? That is how many members all objects in @text have. */
static inline size_t json_written(const char *text, size_t size)
{
	size_t n = 0;
	char quote = 0;	/* json-c lets ' begin a key, too */

	for (size_t i = 0; i < size; i++) {
		if (!quote) {
			n += text[i] == ':';
			if (text[i] == '"' || text[i] == '\'')
				quote = text[i];
		} else if (text[i] == '\\') {
			i++;
		} else if (text[i] == quote) {
			quote = 0;
		}
	}
	return n;
}

/* json_c_visit_userfunc: add up the members of all objects. */
static inline int json_count(struct json_object *one, int flags, struct json_object *parent,
			     const char *key, size_t *index, void *arg)
{
	(void)parent;
	(void)key;
	(void)index;
	if (!(flags & JSON_C_VISIT_SECOND) && json_object_is_type(one, json_type_object))
		*(size_t *)arg += (size_t)json_object_object_length(one);
	return JSON_C_VISIT_RETURN_CONTINUE;
}

/*
 * Has an object a key twice in @text, from which json-c made @json? json-c keeps the last one and
 * does not say so. But then it has kept fewer members than were written. Unlike a comparison of the
 * keys, this does not depend on how they are escaped.
 */
static inline bool json_has_twice(struct json_object *json, const char *text, size_t size)
{
	size_t kept = 0;

	json_c_visit(json, 0, json_count, &kept);
	return kept != json_written(text, size);
}

#endif
