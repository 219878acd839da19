// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Time zones: see zone.h.
 *
 * A zoneinfo file is a header with counts, and an array for each count: transitions, the index of
 * the type that each begins, types (how far ahead, is it summer, which name), names, leap
 * seconds, and two kinds of flags. From version 2 on, all of that follows a
 * second time, with 64 bits for a time instead of 32. Then, between two newlines, comes the
 * rule that holds after the last transition.
 *
 * The file stays in memory as it is; its numbers are decoded when they are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "civil.h"
#include "zone.h"

#define FILE_MAX	(1024 * 1024)	/* the greatest of tzdata has 4 KiB */
#define HEADER_SIZE	44
#define TYPE_SIZE	6

/* How far from 1970, in s, a rule is applied. Beyond that there is no daylight saving time. */
#define RULE_MAX	(1000000000LL * 365 * SECS_PER_DAY)

/* ---- the file ----------------------------------------------------------------------- */

/* A number of @bytes bytes in the file: these are big-endian. */
static uint64_t decode(const unsigned char *p, size_t bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *p++;
	return value;
}

static int32_t decode32(const unsigned char *p)
{
	return (int32_t)(uint32_t)decode(p, 4);
}

/* The moment of transition @i, which must exist. */
static int64_t transition(const struct zone *zone, size_t i)
{
	if (zone->width == 4)
		return decode32(zone->times + i * 4);
	return (int64_t)decode(zone->times + i * 8, 8);
}

/* The offset from transition @i on. */
static int32_t transition_offset(const struct zone *zone, size_t i)
{
	return decode32(zone->types + zone->indexes[i] * TYPE_SIZE);
}

/* The counts of a header, in their order. */
enum { UT_FLAGS, STD_FLAGS, LEAPS, TIMES, TYPES, CHARS, NR_COUNTS };

/**
 * struct block - a header and its arrays
 * @counts:	the counts of the header
 * @arrays:	the first byte after the header
 * @end:	the first byte after the arrays
 */
struct block {
	uint32_t		counts[NR_COUNTS];
	const unsigned char	*arrays;
	const unsigned char	*end;
};

/* Does a block with times of @width bytes begin at @p? */
static bool read_block(struct block *b, const unsigned char *p, const unsigned char *end,
		       size_t width)
{
	uint64_t size;

	if (end - p < HEADER_SIZE || memcmp(p, "TZif", 4))
		return false;
	for (int i = 0; i < NR_COUNTS; i++)
		b->counts[i] = (uint32_t)decode(p + 20 + 4 * i, 4);
	size = b->counts[TIMES] * (uint64_t)(width + 1) + b->counts[TYPES] * (uint64_t)TYPE_SIZE +
	       b->counts[CHARS] + b->counts[LEAPS] * (uint64_t)(width + 4) +
	       b->counts[STD_FLAGS] + b->counts[UT_FLAGS];
	b->arrays = p + HEADER_SIZE;
	if (size > (uint64_t)(end - b->arrays))
		return false;
	b->end = b->arrays + size;
	return true;
}

/* Can a clock be so far ahead of UTC? */
static bool is_offset(int64_t offset)
{
	return offset >= -ZONE_BEHIND_MAX && offset <= ZONE_AHEAD_MAX;
}

/* Are the transitions in order, and all types there? */
static bool is_sound(const struct zone *zone, uint32_t nr_types)
{
	for (uint32_t i = 0; i < nr_types; i++)
		if (!is_offset(decode32(zone->types + i * TYPE_SIZE)))
			return false;
	for (size_t i = 0; i < zone->nr_times; i++) {
		if (zone->indexes[i] >= nr_types)
			return false;
		if (i && transition(zone, i) <= transition(zone, i - 1))
			return false;
	}
	return nr_types;
}

/* Let @zone point into the arrays of a block, and check these. Returns as zone_read(). */
static int use_block(struct zone *zone, const struct block *b, size_t width)
{
	zone->width = width;
	zone->nr_times = b->counts[TIMES];
	zone->times = b->arrays;
	zone->indexes = zone->times + zone->nr_times * width;
	zone->types = zone->indexes + zone->nr_times;
	if (!is_sound(zone, b->counts[TYPES]))
		return -EINVAL;
	zone->first = decode32(zone->types);
	return b->counts[LEAPS] ? -EOPNOTSUPP : 0;
}

static bool read_rule(struct zone_rule *rule, const char *p, const char *end);

/* The rule between the newlines; there may be none. */
static int read_footer(struct zone *zone, const unsigned char *p, const unsigned char *end)
{
	const unsigned char *newline = NULL;

	if (p < end && *p++ == '\n')
		newline = memchr(p, '\n', (size_t)(end - p));
	if (!newline)
		return -EINVAL;
	zone->has_rule = newline > p;
	if (zone->has_rule && !read_rule(&zone->rule, (const char *)p, (const char *)newline))
		return -EINVAL;
	return 0;
}

int zone_read(struct zone *zone, const void *data, size_t size)
{
	const unsigned char *start = data, *end = start + size;
	struct block b;
	int err;

	memset(zone, 0, sizeof(*zone));
	if (!read_block(&b, start, end, 4))
		return -EINVAL;
	if (!start[4])
		return use_block(zone, &b, 4);
	if (!read_block(&b, b.end, end, 8))
		return -EINVAL;
	err = use_block(zone, &b, 8);
	return err ? err : read_footer(zone, b.end, end);
}

/* Read a whole file. Returns its size, or a negative errno. */
static ssize_t read_all(const char *path, void *data)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, size = 0;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, (char *)data + size, (size_t)(FILE_MAX - size));
		size += n > 0 ? n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	n = n < 0 ? -errno : size;
	close(fd);
	return n;
}

int zone_load(struct zone *zone, const char *path)
{
	void *data = malloc(FILE_MAX), *fits;
	ssize_t size;
	int err;

	memset(zone, 0, sizeof(*zone));
	if (!data)
		return -ENOMEM;
	size = read_all(path, data);
	fits = realloc(data, size > 0 ? (size_t)size : 1);
	data = fits ? fits : data;
	err = size < 0 ? (int)size : zone_read(zone, data, (size_t)size);
	zone->data = data;
	if (err)
		zone_free(zone);
	return err;
}

/*
 * Is this a name: parts of letters, digits and some signs, separated by slashes, none of them
 * hidden or ".."?
 */
static bool is_name(const char *name)
{
	char before = '/';

	for (const char *p = name; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');

		if (!letter && !(before != '/' && strchr("0123456789+-_/.", *p)))
			return false;
		before = *p;
	}
	return before != '/';
}

int zone_load_name(struct zone *zone, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n;

	memset(zone, 0, sizeof(*zone));
	if (!is_name(name))
		return -EINVAL;
	n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return zone_load(zone, path);
}

void zone_free(struct zone *zone)
{
	free(zone->data);
	memset(zone, 0, sizeof(*zone));
}

/* ---- the rule -------------------------------------------------------------------------- */

/**
 * struct text - a rule that is being parsed
 * @p:		the rest of the rule
 * @end:	its end
 */
struct text {
	const char	*p;
	const char	*end;
};

/* The next character; 0 at the end. */
static char peek(const struct text *t)
{
	return t->p < t->end ? *t->p : 0;
}

/* If @c is next, take it. */
static bool skip(struct text *t, char c)
{
	if (peek(t) != c)
		return false;
	t->p++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Parse a number from @min to @max. */
static bool read_number(struct text *t, int min, int max, int *n)
{
	bool any = false;

	for (*n = 0; is_digit(peek(t)); any = true) {
		*n = *n * 10 + *t->p++ - '0';
		if (*n > max)
			return false;
	}
	return any && *n >= min;
}

/* Parse the name of a zone: at least three letters, or other signs between <>. */
static bool skip_name(struct text *t)
{
	bool quoted = skip(t, '<');
	const char *start = t->p;

	while (is_letter(peek(t)) ||
	       (quoted && (is_digit(peek(t)) || peek(t) == '+' || peek(t) == '-')))
		t->p++;
	return t->p - start >= 3 && (!quoted || skip(t, '>'));
}

/* [+|-]hh[:mm[:ss]], in s */
static bool read_time(struct text *t, int max_hours, int32_t *time)
{
	int sign = skip(t, '-') ? -1 : 1, hours, minutes = 0, seconds = 0;

	if (sign > 0)
		skip(t, '+');
	if (!read_number(t, 0, max_hours, &hours))
		return false;
	if (skip(t, ':') && (!read_number(t, 0, 59, &minutes) ||
			     (skip(t, ':') && !read_number(t, 0, 59, &seconds))))
		return false;
	*time = sign * (hours * 3600 + minutes * 60 + seconds);
	return true;
}

/* Parse an offset. POSIX counts from the zone to UTC, we the other way. */
static bool read_offset(struct text *t, int32_t *offset)
{
	if (!read_time(t, 24, offset))
		return false;
	*offset = -*offset;
	return true;
}

/* ,date[/time] */
static bool read_day(struct text *t, struct zone_day *day)
{
	if (!skip(t, ','))
		return false;
	if (skip(t, 'M')) {
		day->kind = 'M';
		if (!read_number(t, 1, 12, &day->month) || !skip(t, '.') ||
		    !read_number(t, 1, 5, &day->week) || !skip(t, '.') ||
		    !read_number(t, 0, 6, &day->weekday))
			return false;
	} else {
		day->kind = skip(t, 'J') ? 'J' : 0;
		if (!read_number(t, day->kind == 'J', 365, &day->day))
			return false;
	}
	day->time = 2 * 3600;
	return !skip(t, '/') || read_time(t, 167, &day->time);
}

/* Parse the offsets, and whether there is daylight saving time. */
static bool read_offsets(struct zone_rule *rule, struct text *t)
{
	memset(rule, 0, sizeof(*rule));
	if (!skip_name(t) || !read_offset(t, &rule->std))
		return false;
	rule->has_dst = t->p < t->end;
	if (!rule->has_dst)
		return true;
	rule->dst = rule->std + 3600;
	if (!skip_name(t) || (t->p < t->end && peek(t) != ',' && !read_offset(t, &rule->dst)))
		return false;
	return is_offset(rule->dst);
}

/* Parse when daylight saving time begins and ends. Nothing may follow. */
static bool read_days(struct zone_rule *rule, struct text *t)
{
	return read_day(t, &rule->start) && read_day(t, &rule->end) && t->p == t->end;
}

static bool read_rule(struct zone_rule *rule, const char *p, const char *end)
{
	struct text t = { .p = p, .end = end };

	return read_offsets(rule, &t) && (!rule->has_dst || read_days(rule, &t));
}

/*
 * Daylight saving time if TZ does not say when. POSIX leaves that open; C libraries use the USA's.
 */
static bool default_days(struct zone_rule *rule)
{
	static const char days[] = ",M3.2.0,M11.1.0";
	struct text t = { .p = days, .end = days + sizeof(days) - 1 };

	return read_days(rule, &t);
}

int zone_posix(struct zone *zone, const char *text)
{
	struct text t = { .p = text, .end = text + strlen(text) };
	struct zone_rule *rule = &zone->rule;

	memset(zone, 0, sizeof(*zone));
	zone->has_rule = read_offsets(rule, &t) &&
			 (!rule->has_dst ||
			  (t.p == t.end ? default_days(rule) : read_days(rule, &t)));
	return zone->has_rule ? 0 : -EINVAL;
}

/* Which day of @year is it? */
static int64_t day_in(const struct zone_day *day, int64_t year)
{
	int64_t first;
	int n;

	if (day->kind != 'M')
		return day_of_date(year, 1, 1) + day->day -
		       (day->kind == 'J' && (day->day < 60 || !is_leap_year(year)));
	first = day_of_date(year, day->month, 1);
	n = (day->weekday - weekday_of_day(first) + 7) % 7 + 7 * (day->week - 1);
	if (n >= days_of_month(year, day->month))
		n -= 7;
	return first + n;
}

/**
 * struct change - the changes of a rule's clock in one direction, around some time
 * @year:	the year of the last change up to that time
 * @last:	when that change is
 * @next:	when the change after it is
 */
struct change {
	int64_t	year;
	int64_t	last;
	int64_t	next;
};

/* A change may be more than a week away from its year, but is always later than the year before. */
static struct change change_at(const struct zone_day *day, int32_t offset, int64_t time,
			       int64_t year)
{
	struct change c = { .year = year };
	int32_t add = day->time - offset;

	c.last = day_in(day, year) * SECS_PER_DAY + add;
	c.next = c.last;
	while (c.last > time) {
		c.next = c.last;
		c.last = day_in(day, --c.year) * SECS_PER_DAY + add;
	}
	for (year = c.year; c.next <= time; year++) {
		c.year = year;
		c.last = c.next;
		c.next = day_in(day, year + 1) * SECS_PER_DAY + add;
	}
	return c;
}

/*
 * Find the span that @time is in. If two changes fall on the same moment, that of the later year
 * counts: a summer that ends at the moment when the next one begins continues. If both changes are
 * of the same year, that year has no summer.
 */
static void rule_span(const struct zone_rule *rule, int64_t time, struct zone_span *span)
{
	struct change start, end;
	int month, of_month;
	int64_t year;

	*span = (struct zone_span) { .from = INT64_MIN, .to = INT64_MAX, .offset = rule->std };
	if (rule->has_dst && time < -RULE_MAX)
		span->to = -RULE_MAX;
	if (rule->has_dst && time >= RULE_MAX)
		span->from = RULE_MAX;
	if (!rule->has_dst || span->to == -RULE_MAX || span->from == RULE_MAX)
		return;
	date_of_day(floor_div(time, SECS_PER_DAY), &year, &month, &of_month);
	start = change_at(&rule->start, rule->std, time, year);
	end = change_at(&rule->end, rule->dst, time, year);
	span->from = start.last > end.last ? start.last : end.last;
	span->to = start.next < end.next ? start.next : end.next;
	if (start.last > end.last || (start.last == end.last && start.year > end.year))
		span->offset = rule->dst;
	if (span->from < -RULE_MAX)
		span->from = -RULE_MAX;
	if (span->to > RULE_MAX)
		span->to = RULE_MAX;
}

/* ---- the zone that is meant ----------------------------------------------------------------- */

static const char *zone_dir(void)
{
	const char *dir = getenv("TZDIR");

	return dir && *dir ? dir : "/usr/share/zoneinfo";
}

/* Interpret TZ as the C library does. */
static int load_local(struct zone *zone)
{
	const char *tz = getenv("TZ");
	int err;

	if (!tz)
		return zone_load(zone, "/etc/localtime");
	tz += *tz == ':';
	if (!*tz)
		return -ENOENT;
	err = *tz == '/' ? zone_load(zone, tz) : zone_load_name(zone, zone_dir(), tz);
	return err && err != -EOPNOTSUPP ? zone_posix(zone, tz) : err;
}

int zone_find(struct zone *zone, const char *name)
{
	int err = name ? zone_load_name(zone, zone_dir(), name) : load_local(zone);

	if (!err || err == -EOPNOTSUPP || (name && strcmp(name, "UTC")))
		return err;
	*zone = (struct zone) { 0 };
	return 0;
}

/* ---- spans -------------------------------------------------------------------------------- */

/* Count the transitions up to @time. */
static size_t transitions_until(const struct zone *zone, int64_t time)
{
	size_t low = 0, high = zone->nr_times;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (transition(zone, middle) <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void zone_span(const struct zone *zone, int64_t time, struct zone_span *span)
{
	size_t n = transitions_until(zone, time);
	int64_t from = n ? transition(zone, n - 1) : INT64_MIN;

	if (n == zone->nr_times && zone->has_rule) {
		rule_span(&zone->rule, time, span);
		if (span->from < from)
			span->from = from;
		return;
	}
	span->from = from;
	span->to = n < zone->nr_times ? transition(zone, n) : INT64_MAX;
	span->offset = n ? transition_offset(zone, n - 1) : zone->first;
}
