// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The definition of a job: see def.h.
 *
 * Each key of a definition has a row in the table fields[], with the function that parses its
 * value. A key that is not in the table is an error, and so is a value of the wrong type. So a
 * misspelt key is reported and not ignored.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../tools/twheel/utf8.h"
#include "civil.h"
#include "def.h"
#include "when.h"

#define WORDS_MAX	4096
#define RETRIES_MAX	1000

/**
 * struct parser - a definition that is being parsed
 * @def:	filled in
 * @now:	the present time, to which relative times refer
 * @key:	the key that is being parsed
 * @error:	filled in with what is wrong
 * @stored:	the definition comes from the store, see def_load()
 */
struct parser {
	struct def	*def;
	int64_t		now;
	const char	*key;
	char		*error;
	bool		stored;
};

/* Report what is wrong with the present key. Returns false, for the caller to return. */
__attribute__((format(printf, 2, 3)))
static bool wrong(struct parser *p, const char *fmt, ...)
{
	int n = snprintf(p->error, ERROR_MAX, "%s: ", p->key);
	va_list args;

	va_start(args, fmt);
	if (n > 0 && n < ERROR_MAX)
		vsnprintf(p->error + n, (size_t)(ERROR_MAX - n), fmt, args);
	va_end(args);
	return false;
}

bool name_good(const char *name)
{
	size_t n = strspn(name,
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+:-");

	return n && n <= NAME_LENGTH && !name[n] && isalnum((unsigned char)name[0]);
}

const char *json_text(struct json_object *json)
{
	return json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN |
						    JSON_C_TO_STRING_NOSLASHESCAPE);
}

const char *time_text(int64_t us, char buf[40])
{
	time_t t = (time_t)floor_div(us, US_PER_S);
	struct tm tm;
	size_t n;

	gmtime_r(&t, &tm);
	n = strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, 40 - n, ".%06dZ", (int)floor_mod(us, US_PER_S));
	return buf;
}

/* ---- what definitions share --------------------------------------------------------- */

static struct days *calendars;

struct days *days_find(const char *name, bool make)
{
	struct days *days;

	for (days = calendars; days; days = days->next)
		if (!strcmp(days->name, name))
			return days;
	days = make ? calloc(1, sizeof(*days)) : NULL;
	if (!days)
		return NULL;
	days->name = strdup(name);
	days->next = calendars;
	calendars = days;
	return days;
}

void days_clear(void)
{
	for (struct days *days = calendars; days; days = days->next)
		days->nr = 0;
}

void days_forget(const char *name)
{
	struct days **p = &calendars, *days = days_find(name, false);

	while (*p && *p != days)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = days->next;
	free(days->day);
	free(days->name);
	free(days);
}

/**
 * struct named_zone - a time zone that a definition has, or had
 * @next:	the next in the list of all
 * @name:	its name; NULL for the local time zone
 * @zone:	the zone
 */
struct named_zone {
	struct named_zone	*next;
	char			*name;
	struct zone		zone;
};

/*
 * The zone with @name, or the local one if that is NULL. On failure return NULL and set *@err. Each
 * file is read once and kept: there are no more zones than files.
 */
static const struct zone *find_zone(const char *name, int *err)
{
	static struct named_zone *zones;
	struct named_zone *z;

	for (z = zones; z; z = z->next)
		if (name ? z->name && !strcmp(z->name, name) : !z->name)
			return &z->zone;
	z = calloc(1, sizeof(*z));
	*err = z ? zone_find(&z->zone, name) : -ENOMEM;
	if (*err) {
		free(z);
		return NULL;
	}
	z->name = name ? strdup(name) : NULL;
	z->next = zones;
	zones = z;
	return &z->zone;
}

/* ---- values ------------------------------------------------------------------------- */

/* @value as a string. Returns NULL, with the error reported, if it is none or contains a NUL. */
static const char *string_of(struct parser *p, struct json_object *value)
{
	const char *s = NULL;

	if (json_object_is_type(value, json_type_string))
		s = json_object_get_string(value);
	if (!s)
		wrong(p, "expected a string");
	else if (strlen(s) != (size_t)json_object_get_string_len(value))
		s = wrong(p, "there is a NUL in it") ? s : NULL;
	return s;
}

/*
 * This and the other functions named set_ parse the @value of a key and store it at @to, where the
 * table says so. Returns false with the error reported. This one: a string that is not empty.
 */
static bool set_string(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);

	*(const char **)to = s;
	return s && (*s || wrong(p, "it is empty"));
}

static bool set_input(struct parser *p, struct json_object *value, void *to)
{
	*(const char **)to = string_of(p, value);
	return *(const char **)to;
}

static bool set_name(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);

	(void)to;
	return s && (name_good(s) || wrong(p, "'%.64s' is not a valid name for a job", s));
}

/* A string such as "90s", or a number of seconds. */
static bool set_duration(struct parser *p, struct json_object *value, void *to)
{
	int64_t ns;

	if (json_object_is_type(value, json_type_string)) {
		if (!string_of(p, value))
			return false;
	} else if (!json_object_is_type(value, json_type_int)) {
		return wrong(p, "expected a whole number or a string such as \"1.5s\"");
	}
	if (!parse_duration(json_object_get_string(value), &ns))
		return wrong(p, "'%.64s' is not a duration", json_object_get_string(value));
	*(int64_t *)to = ns / NS_PER_US;
	return true;
}

/*
 * A time. It replaces the words of the definition: otherwise "tomorrow" would be another day each
 * time that the definition is parsed.
 */
static bool set_time(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);
	char buf[40];
	int64_t ns;

	if (!s)
		return false;
	if (!parse_time(s, p->now * NS_PER_US, &ns) || ns <= 0)
		return wrong(p, "'%.64s' is not a time", s);
	*(int64_t *)to = ns / NS_PER_US;
	json_object_object_add(p->def->json, p->key,
			       json_object_new_string(time_text(ns / NS_PER_US, buf)));
	return true;
}

static bool count_from(struct parser *p, struct json_object *value, int64_t least, int64_t most,
		       int64_t *to)
{
	*to = json_object_get_int64(value);
	if (!json_object_is_type(value, json_type_int) || *to < least || *to > most)
		return wrong(p, "expected a number from %lld to %lld", (long long)least,
			     (long long)most);
	return true;
}

static bool set_count(struct parser *p, struct json_object *value, void *to)
{
	return count_from(p, value, 1, 1000000, to);
}

/* A number of bytes, such as 4096, "64K" or "2G". */
static bool parse_size(struct json_object *value, int64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *s = json_object_get_string(value), *unit;
	char *end;

	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_string))
		return false;
	errno = 0;
	*bytes = strtoll(s, &end, 10);
	if (!isdigit((unsigned char)*s) || errno)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (!unit)
		return !*end;
	return !end[1] && !__builtin_mul_overflow(*bytes, 1LL << (10 * (unit - units + 1)), bytes);
}

static bool set_size(struct parser *p, struct json_object *value, void *to)
{
	return (parse_size(value, to) && *(int64_t *)to > 0) ||
	       wrong(p, "expected a size like 64M");
}

/* One of @words, which are in the order of an enum. */
static bool choice(struct parser *p, struct json_object *value, const char *const *words, int *to)
{
	const char *s = string_of(p, value);
	char all[128] = "";

	if (!s)
		return false;
	for (*to = 0; words[*to]; ++*to)
		if (!strcmp(words[*to], s))
			return true;
	for (int i = 0; words[i]; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 words[i]);
	return wrong(p, "'%.64s' is not one of %s", s, all);
}

static bool set_missed(struct parser *p, struct json_object *value, void *to)
{
	static const char *const words[] = { "once", "skip", "all", NULL };

	(void)to;
	return choice(p, value, words, (int *)&p->def->missed);
}

static bool set_overlap(struct parser *p, struct json_object *value, void *to)
{
	static const char *const words[] = { "skip", "queue", "replace", "allow", NULL };

	(void)to;
	return choice(p, value, words, (int *)&p->def->overlap);
}

static bool set_lost(struct parser *p, struct json_object *value, void *to)
{
	static const char *const words[] = { "again", "report", NULL };
	int word;

	(void)to;
	if (!choice(p, value, words, &word))
		return false;
	p->def->report = word;
	return true;
}

/* A list of strings that is not empty. def_free() frees it. */
static bool set_words(struct parser *p, struct json_object *value, void *to)
{
	const char **words;
	size_t nr;

	if (!json_object_is_type(value, json_type_array) || !json_object_array_length(value))
		return wrong(p, "expected a list of strings");
	nr = json_object_array_length(value);
	words = nr > WORDS_MAX ? NULL : calloc(nr + 1, sizeof(*words));
	if (!words)
		return wrong(p, "more than %d words", WORDS_MAX);
	*(const char ***)to = words;
	for (size_t i = 0; i < nr; i++) {
		words[i] = string_of(p, json_object_array_get_idx(value, i));
		if (!words[i])
			return false;
	}
	return true;
}

static bool set_exec(struct parser *p, struct json_object *value, void *to)
{
	if (!set_words(p, value, to))
		return false;
	if (!*p->def->argv[0])
		return wrong(p, "the command is empty");
	return strlen(p->def->argv[0]) < PATH_MAX ||
	       wrong(p, "the name of the command is too long");
}

/* Is the text free of spaces and control characters, so that it can be in a line of a protocol? */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static bool is_web(const char *s)
{
	return (!strncmp(s, "http://", 7) && s[7]) || (!strncmp(s, "https://", 8) && s[8]);
}

static bool set_http(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);

	*(const char **)to = s;
	return s && ((is_web(s) && is_plain(s)) || wrong(p, "expected an address http://..."));
}

static bool set_pool(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);

	*(const char **)to = s;
	return s && (name_good(s) || wrong(p, "'%.64s' is not a valid name for a pool", s));
}

static bool set_prio(struct parser *p, struct json_object *value, void *to)
{
	return count_from(p, value, -1000, 1000, to);
}

static bool set_each(struct parser *p, struct json_object *value, void *to)
{
	*(bool *)to = json_object_get_boolean(value);
	return json_object_is_type(value, json_type_boolean) || wrong(p, "expected true or false");
}

/* ---- objects inside ----------------------------------------------------------------- */

/*
 * An object of strings, which become *@list: a name, @between and the value of each that is @good.
 * @what says what a name must be. These are not part of @json: def_free() frees them.
 */
static bool set_pairs(struct parser *p, struct json_object *value, const char ***list,
		      const char *between, bool (*good)(const char *name, const char *value),
		      const char *what)
{
	size_t n = 0;

	if (!json_object_is_type(value, json_type_object))
		return wrong(p, "expected an object of strings");
	if (json_object_object_length(value) > WORDS_MAX)
		return wrong(p, "there are more than %d", WORDS_MAX);
	*list = calloc((size_t)json_object_object_length(value) + 1, sizeof(**list));
	if (!*list)
		return wrong(p, "no memory");
	json_object_object_foreach(value, name, one) {
		const char *s = string_of(p, one);
		char *text;

		if (!s)
			return false;
		if (!good(name, s))
			return wrong(p, "'%.64s' is not a %s", name, what);
		if (asprintf(&text, "%s%s%s", name, between, s) < 0)
			return wrong(p, "no memory");
		(*list)[n++] = text;
	}
	return true;
}

static bool env_good(const char *name, const char *value)
{
	(void)value;
	return *name && !strchr(name, '=') && strncmp(name, "TWHEEL_", 7);
}

static bool set_env(struct parser *p, struct json_object *value, void *to)
{
	(void)to;
	return set_pairs(p, value, &p->def->env, "=", env_good, "name for a variable of a job");
}

/* May a definition set this header? Not one that the daemon sends, and none with a line break. */
static bool header_good(const char *name, const char *value)
{
	static const char *const own[] = { "Idempotency-Key", "Content-Length", "Expect",
					   "Transfer-Encoding" };
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcasecmp(own[i], name))
			return false;
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 0x7f)
			return false;
	return n && !name[n] && strncasecmp(name, "Twheel-", 7);
}

static bool set_headers(struct parser *p, struct json_object *value, void *to)
{
	(void)to;
	return set_pairs(p, value, &p->def->headers, ": ", header_good, "header for a job");
}

static bool set_limits(struct parser *p, struct json_object *value, void *to)
{
	static const struct { const char *name; int resource;
	} limits[] = {
		{ "as", RLIMIT_AS },	     { "core", RLIMIT_CORE },
		{ "cpu", RLIMIT_CPU },	     { "data", RLIMIT_DATA },
		{ "fsize", RLIMIT_FSIZE },   { "memlock", RLIMIT_MEMLOCK },
		{ "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC },
		{ "stack", RLIMIT_STACK },
	};

	(void)to;
	if (!json_object_is_type(value, json_type_object))
		return wrong(p, "expected an object");
	json_object_object_foreach(value, name, one) {
		int64_t size;
		size_t i = 0;

		while (i < ARRAY_SIZE(limits) && strcmp(limits[i].name, name))
			i++;
		if (i == ARRAY_SIZE(limits))
			return wrong(p, "there is no limit '%.64s'", name);
		if (!parse_size(one, &size))
			return wrong(p, "%s: expected a size like 64M", name);
		p->def->limits[limits[i].resource] = (rlim_t)size;
		p->def->limited |= 1U << limits[i].resource;
	}
	return true;
}

static bool set_factor(struct parser *p, struct json_object *value)
{
	p->def->factor = json_object_get_double(value);
	if ((!json_object_is_type(value, json_type_double) &&
	     !json_object_is_type(value, json_type_int)) ||
	    !(p->def->factor >= 1 && p->def->factor <= 100))
		return wrong(p, "expected a factor from 1 to 100");
	return true;
}

static bool set_retry(struct parser *p, struct json_object *value, void *to)
{
	struct def *def = p->def;
	struct json_object *times;

	(void)to;
	if (!json_object_is_type(value, json_type_object))
		return wrong(p, "expected an object");
	json_object_object_foreach(value, name, one) {
		if (!strcmp(name, "times") && !count_from(p, one, 0, RETRIES_MAX, &def->retries))
			return false;
		if (!strcmp(name, "wait") && !set_duration(p, one, &def->wait))
			return false;
		if (!strcmp(name, "factor") && !set_factor(p, one))
			return false;
		if (strcmp(name, "times") && strcmp(name, "wait") && strcmp(name, "factor"))
			return wrong(p, "unknown key '%.64s'", name);
	}
	return json_object_object_get_ex(value, "times", &times) || wrong(p, "times is missing");
}

static bool set_then(struct parser *p, struct json_object *value, void *to)
{
	(void)to;
	if (!json_object_is_type(value, json_type_object))
		return wrong(p, "expected an object");
	json_object_object_foreach(value, name, one) {
		bool ok = !strcmp(name, "ok");

		if (!ok && strcmp(name, "fail"))
			return wrong(p, "unknown key '%.64s'", name);
		if (!set_words(p, one, ok ? &p->def->then_ok : &p->def->then_fail))
			return false;
	}
	return true;
}

/* An address for alarms: mailto:ADDRESS, or http://... for a request. */
static bool set_told(struct parser *p, struct json_object *value)
{
	if (!set_words(p, value, &p->def->alarm_to))
		return false;
	for (const char **to = p->def->alarm_to; *to; to++)
		if (!is_plain(*to) ||
		    !(is_web(*to) || (!strncmp(*to, "mailto:", 7) && strchr(*to, '@'))))
			return wrong(p, "'%.64s' is neither mailto:... nor http://...", *to);
	return true;
}

static bool set_alarm(struct parser *p, struct json_object *value, void *to)
{
	struct def *def = p->def;

	(void)to;
	if (!json_object_is_type(value, json_type_object))
		return wrong(p, "expected an object");
	json_object_object_foreach(value, name, one) {
		if (!strcmp(name, "fail") && !set_told(p, one))
			return false;
		if (!strcmp(name, "late") && !set_duration(p, one, &def->alarm_late))
			return false;
		if (!strcmp(name, "every") && !set_duration(p, one, &def->alarm_every))
			return false;
		if (strcmp(name, "fail") && strcmp(name, "late") && strcmp(name, "every"))
			return wrong(p, "unknown key '%.64s'", name);
	}
	return def->alarm_to || wrong(p, "fail is missing");
}

/* ---- when --------------------------------------------------------------------------- */

/* Note which key says when the job is due. Only one key may say that. */
static bool set_kind(struct parser *p, enum kind kind)
{
	if (p->def->kind != KIND_NONE)
		return wrong(p, "the job already has another time");
	p->def->kind = kind;
	return true;
}

static bool set_cron(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);
	char why[CRON_ERROR];

	if (!s || !set_kind(p, KIND_CRON))
		return false;
	return cron_parse(to, s, why) || wrong(p, "%s", why);
}

static bool set_period(struct parser *p, struct json_object *value, void *to)
{
	enum kind kind = *p->key == 'r' ? KIND_RATE : *p->key == 'd' ? KIND_DELAY : KIND_AFTER;

	if (!set_kind(p, kind) || !set_duration(p, value, to))
		return false;
	return kind == KIND_AFTER || p->def->period >= US_PER_MS ||
	       wrong(p, "must be at least 1ms");
}

static bool set_at(struct parser *p, struct json_object *value, void *to)
{
	return set_kind(p, KIND_AT) && set_time(p, value, to);
}

static bool set_zone(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);
	int err = 0;

	(void)to;
	if (!s)
		return false;
	p->def->zone = find_zone(s, &err);
	if (p->def->zone)
		return true;
	if (err == -EOPNOTSUPP)
		return wrong(p, "leap seconds are in time zone '%.64s'", s);
	return wrong(p, "unknown time zone '%.64s'", s);
}

static bool set_except(struct parser *p, struct json_object *value, void *to)
{
	const char *s = string_of(p, value);

	if (!s)
		return false;
	*(const struct days **)to = days_find(s, false);
	return *(const struct days **)to || wrong(p, "there is no calendar '%.64s'", s);
}

static bool set_dir(struct parser *p, struct json_object *value, void *to)
{
	return set_string(p, value, to) &&
	       (*p->def->dir == '/' || wrong(p, "expected an absolute path"));
}

/* ---- all of it ---------------------------------------------------------------------- */

static const struct field {
	const char	*key;
	bool		(*set)(struct parser *p, struct json_object *value, void *to);
	size_t		to;
} fields[] = {
	{ "name", set_name, 0 },
	{ "cron", set_cron, offsetof(struct def, cron) },
	{ "rate", set_period, offsetof(struct def, period) },
	{ "delay", set_period, offsetof(struct def, period) },
	{ "after", set_period, offsetof(struct def, period) },
	{ "at", set_at, offsetof(struct def, start) },
	{ "start", set_time, offsetof(struct def, start) },
	{ "zone", set_zone, 0 },
	{ "except", set_except, offsetof(struct def, except) },
	{ "spread", set_duration, offsetof(struct def, spread) },
	{ "missed", set_missed, 0 },
	{ "grace", set_duration, offsetof(struct def, grace) },
	{ "overlap", set_overlap, 0 },
	{ "queue", set_count, offsetof(struct def, queue) },
	{ "retry", set_retry, 0 },
	{ "timeout", set_duration, offsetof(struct def, timeout) },
	{ "stop", set_duration, offsetof(struct def, stop) },
	{ "lost", set_lost, 0 },
	{ "keep", set_duration, offsetof(struct def, keep) },
	{ "exec", set_exec, offsetof(struct def, argv) },
	{ "http", set_http, offsetof(struct def, url) },
	{ "headers", set_headers, 0 },
	{ "pool", set_pool, offsetof(struct def, pool) },
	{ "prio", set_prio, offsetof(struct def, prio) },
	{ "each", set_each, offsetof(struct def, each) },
	{ "prefer", set_string, offsetof(struct def, prefer) },
	{ "alarm", set_alarm, 0 },
	{ "env", set_env, 0 },
	{ "user", set_string, offsetof(struct def, user) },
	{ "dir", set_dir, offsetof(struct def, dir) },
	{ "input", set_input, offsetof(struct def, input) },
	{ "memory", set_size, offsetof(struct def, memory) },
	{ "cpu", set_count, offsetof(struct def, cpu) },
	{ "pids", set_count, offsetof(struct def, pids) },
	{ "limits", set_limits, 0 },
	{ "then", set_then, 0 },
};

static bool set_field(struct parser *p, struct json_object *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].key, p->key))
			return fields[i].set(p, value, (char *)p->def + fields[i].to);
	snprintf(p->error, ERROR_MAX, "unknown key '%.64s'", p->key);
	return false;
}

/* If @key is there, the job must be of one of these @kinds, a bit each. */
static bool only_for(struct parser *p, const char *key, unsigned int kinds, const char *names)
{
	p->key = key;
	if (!json_object_object_get_ex(p->def->json, key, NULL) || kinds & (1U << p->def->kind))
		return true;
	return wrong(p, "allowed only for jobs with %s", names);
}

/* If one of @keys is there, @good must be true. */
static bool only_with(struct parser *p, const char *const *keys, bool good, const char *what)
{
	for (; *keys && !good; keys++) {
		p->key = *keys;
		if (json_object_object_get_ex(p->def->json, *keys, NULL))
			return wrong(p, "allowed only for jobs with %s", what);
	}
	return true;
}

void (*def_guard)(bool on);

struct passwd *def_user(const char *name)
{
	struct passwd *pw;
	int err;

	if (def_guard)
		def_guard(true);
	errno = 0;
	pw = getpwnam(name);
	err = errno;
	if (def_guard)
		def_guard(false);
	/* By getpwnam(3), these errors, too, may mean that there is no such user. */
	errno = err == ENOENT || err == ESRCH || err == EBADF || err == EPERM ? 0 : err;
	return pw;
}

const char *def_user_wrong(const struct passwd *pw)
{
	return !geteuid() || pw->pw_uid == geteuid() ?
		       NULL : "only root's daemon runs jobs as somebody else";
}

/*
 * Only root's daemon can run a job as another user. A runner looks at its own users when it runs
 * the job.
 */
static bool check_user(struct parser *p)
{
	const char *user = p->def->user, *why;
	struct passwd *pw;

	if (!user || p->def->pool || p->stored)
		return true;
	p->key = "user";
	pw = def_user(user);
	if (!pw && errno)
		return wrong(p, "the user '%.64s' cannot be looked up now: %s", user,
			     strerror(errno));
	if (!pw)
		return wrong(p, "there is no user '%.64s'", user);
	why = def_user_wrong(pw);
	return !why || wrong(p, "%s", why);
}

/* Check the keys that say what is run, and by whom. */
static bool check_what(struct parser *p)
{
	static const char *const for_exec[] = { "pool", "env", "user", "dir", "stop", "memory",
						"cpu", "pids", "limits", NULL },
				 *const for_http[] = { "headers", NULL },
				 *const for_pool[] = { "prio", "each", "prefer", NULL };
	struct def *def = p->def;

	if (!def->argv == !def->url) {
		snprintf(p->error, ERROR_MAX, def->url ? "exec and http exclude each other" :
			 "exec or http is missing");
		return false;
	}
	p->key = "prefer";
	if (def->each && def->prefer)
		return wrong(p, "not allowed if each runner runs the job");
	return only_with(p, for_exec, def->argv, "exec") &&
	       only_with(p, for_http, def->url, "http") &&
	       only_with(p, for_pool, def->pool, "pool") && check_user(p);
}

/* The checks that need more than one key. */
static bool check(struct parser *p)
{
	struct def *def = p->def;
	int err;

	if (!check_what(p))
		return false;
	if (!only_for(p, "start", 1U << KIND_RATE, "rate") ||
	    !only_for(p, "spread", 1U << KIND_RATE | 1U << KIND_CRON, "cron or rate") ||
	    !only_for(p, "except", 1U << KIND_RATE | 1U << KIND_CRON, "cron or rate") ||
	    !only_for(p, "zone", 1U << KIND_RATE | 1U << KIND_CRON, "cron or rate"))
		return false;
	p->key = "queue";
	if (json_object_object_get_ex(def->json, "queue", NULL) && def->overlap != OVERLAP_QUEUE)
		return wrong(p, "allowed only for jobs with overlap: queue");
	if (!def->zone)
		def->zone = find_zone(NULL, &err);
	p->key = "zone";
	return def->zone || wrong(p, "the local time zone cannot be read");
}

/* Make an error one line: it quotes values, which may contain line breaks and other controls. */
static void make_line(char *error)
{
	for (; *error; error++)
		if (iscntrl((unsigned char)*error))
			*error = '?';
		else if (utf8_is_control(error))
			memset(error, '?', 2);
}

static bool parse(struct parser *p, struct json_object *json)
{
	struct def *def = p->def;

	*def = (struct def){
		.json = json_object_get(json),
		.grace = 60 * US_PER_S,
		.queue = 10,
		.wait = 60 * US_PER_S,
		.factor = 2,
		.stop = 10 * US_PER_S,
		.alarm_every = 300 * US_PER_S,
	};
	if (!json_object_is_type(json, json_type_object)) {
		snprintf(p->error, ERROR_MAX, "a definition must be a JSON object");
		goto bad;
	}
	json_object_object_foreach(json, key, value) {
		p->key = key;
		if (!set_field(p, value))
			goto bad;
	}
	if (check(p))
		return true;
bad:
	make_line(p->error);
	def_free(def);
	return false;
}

bool def_parse(struct def *def, struct json_object *json, int64_t now, char error[ERROR_MAX])
{
	return parse(&(struct parser){ .def = def, .now = now, .error = error }, json);
}

bool def_load(struct def *def, struct json_object *json, int64_t now, char error[ERROR_MAX])
{
	return parse(&(struct parser){ .def = def, .now = now, .error = error, .stored = true },
		     json);
}

void def_free(struct def *def)
{
	for (size_t i = 0; def->env && def->env[i]; i++)
		free((char *)def->env[i]);
	for (size_t i = 0; def->headers && def->headers[i]; i++)
		free((char *)def->headers[i]);
	free(def->env);
	free(def->headers);
	free(def->alarm_to);
	free(def->argv);
	free(def->then_ok);
	free(def->then_fail);
	json_object_put(def->json);
	*def = (struct def) { 0 };
}
