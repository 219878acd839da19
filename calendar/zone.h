/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Time zones, read from zoneinfo files (TZif, RFC 9636). A program may use any number at once.
 *
 * The C library has one zone for the whole process. Here a zone is a structure, nothing is
 * global, and all functions but the three that read files depend on their arguments alone.
 * Once a zone is read nothing changes it, so any number of threads may use it.
 *
 * A zone is used by its spans: the stretches of time in which its clock is
 * the same number of seconds ahead of UTC. A structure that is all zero is UTC.
 *
 * Times are seconds since 1970 in UTC, of any int64_t.
 */
#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 9636: a clock is less than 25 h behind, and less than 26 h ahead of UTC. */
#define ZONE_BEHIND_MAX	(25 * 3600 - 1)
#define ZONE_AHEAD_MAX	(26 * 3600 - 1)

/**
 * struct zone_day - a day of the year, and a time of day, as in POSIX's TZ
 * @kind:	'M': day @weekday of week @week of @month; 'J': day @day, from 1 on, of a
 *		year that has no 29 February; 0: day @day, from 0 on
 * @month:	1 to 12
 * @week:	1 to 5; 5 is the last week
 * @weekday:	0, Sunday, to 6
 * @day:	see @kind
 * @time:	s after midnight; less than a week, and may be before it
 */
struct zone_day {
	char	kind;
	int	month;
	int	week;
	int	weekday;
	int	day;
	int32_t	time;
};

/**
 * struct zone_rule - a rule that holds for ever, as in POSIX's TZ
 * @std:	by how many s standard time is ahead of UTC
 * @dst:	by how many s daylight saving time is ahead of UTC
 * @has_dst:	there is daylight saving time
 * @start:	when daylight saving time begins, by standard time
 * @end:	when it ends, by daylight saving time
 */
struct zone_rule {
	int32_t		std;
	int32_t		dst;
	bool		has_dst;
	struct zone_day	start;
	struct zone_day	end;
};

/**
 * struct zone - a time zone
 * @data:	the file, for zone_free() to free
 * @times:	the transitions, in the file
 * @indexes:	the type of each transition
 * @types:	the types
 * @width:	bytes of a transition, 4 or 8
 * @nr_times:	how many transitions there are
 * @first:	by how many s the clock is ahead before the first transition
 * @has_rule:	after the last transition @rule holds; otherwise the clock stays as it is
 * @rule:	see @has_rule
 */
struct zone {
	void			*data;
	const unsigned char	*times;
	const unsigned char	*indexes;
	const unsigned char	*types;
	size_t			width;
	size_t			nr_times;
	int32_t			first;
	bool			has_rule;
	struct zone_rule	rule;
};

/**
 * struct zone_span - a stretch of time in which the clock is always as far ahead of UTC
 * @from:	its beginning; INT64_MIN: it has none
 * @to:		the first second after it; INT64_MAX: it has no end
 * @offset:	s to add to UTC
 *
 * The next span may have the same offset.
 */
struct zone_span {
	int64_t	from;
	int64_t	to;
	int32_t	offset;
};

/**
 * zone_read() - parse a zoneinfo file
 * @zone:	filled in; it points into @data
 * @data:	the file, which must stay as long as @zone is used
 * @size:	its size
 *
 * Return: 0; -EINVAL if @data is not a zoneinfo file; -EOPNOTSUPP if it has leap seconds, which the
 * clocks of computers do not count.
 */
int zone_read(struct zone *zone, const void *data, size_t size);

/**
 * zone_posix() - parse a value of TZ that is a rule: CET-1CEST,M3.5.0,M10.5.0/3
 * @zone:	filled in
 * @text:	the rule
 *
 * If the rule does not say when daylight saving time begins and ends, as in CET-1CEST, the days of
 * the USA since 2007 are used; the C library does the same, up to 2037. The rule in a zoneinfo file
 * always says it.
 *
 * Return: 0 or -EINVAL.
 */
int zone_posix(struct zone *zone, const char *text);

/**
 * zone_load() - read a zoneinfo file
 * @zone:	filled in; free it with zone_free()
 * @path:	the file
 *
 * Return: as zone_read(); or an error of open() or read(), or -ENOMEM.
 */
int zone_load(struct zone *zone, const char *path);

/**
 * zone_load_name() - read the zone of a name, like Europe/Berlin
 * @zone:	as in zone_load()
 * @dir:	where zones are: /usr/share/zoneinfo
 * @name:	the name. A name that leads out of @dir is refused
 *
 * Return: as zone_load(); -EINVAL if @name is not the name of a zone.
 */
int zone_load_name(struct zone *zone, const char *dir, const char *name);

/**
 * zone_find() - the zone that a user means
 * @zone:	as in zone_load()
 * @name:	as in zone_load_name(), in TZDIR or /usr/share/zoneinfo; NULL: the local zone, which
 *		is TZ's, or /etc/localtime
 *
 * As with the C library, the local zone is UTC if it cannot be read. UTC needs no file.
 *
 * Return: as zone_load(); for the local zone only 0 or -EOPNOTSUPP.
 */
int zone_find(struct zone *zone, const char *name);

/**
 * zone_free() - free the file that a zone has loaded, and make the zone UTC
 * @zone:	the zone
 */
void zone_free(struct zone *zone);

/**
 * zone_span() - the span that a time is in
 * @zone:	the zone
 * @time:	the time
 * @span:	filled in. @time is not before its @from, and is before its @to unless that is
 *		INT64_MAX
 */
void zone_span(const struct zone *zone, int64_t time, struct zone_span *span);

#endif
