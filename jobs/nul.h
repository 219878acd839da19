/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* A NUL in JSON. Used by twheeld(8) and twheel-job(1). */
#ifndef JOBS_NUL_H
#define JOBS_NUL_H

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

#endif
