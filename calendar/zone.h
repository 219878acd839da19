/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Time zones, read from zoneinfo files (TZif, RFC 9636), as many at once as one likes.
 *
 * The C library has one zone for the whole process. Here a zone is a structure, nothing is
 * global, and all functions but the two that read files depend on their arguments alone.
 * A zone that is read is only looked at after that, by any number of threads.
 *
 * All that is asked of a zone is its spans: the stretches of time in which its clock is
 * the same number of seconds ahead of UTC. A structure that is all zero is UTC.
 *
 * Times are seconds since 1970 in UTC, of any int64_t.
 */
#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 9636 has clocks be less than 25 h behind, and less than 26 h ahead, of UTC. */
#define ZONE_BEHIND_MAX	(25 * 3600 - 1)
#define ZONE_AHEAD_MAX	(26 * 3600 - 1)

/**
 * struct zone_day - a day of the year, and a time of it, as POSIX's TZ has them
 * @kind:	'M': day @weekday of week @week of @month; 'J': day @day, from 1 on, of a
 *		year that has no 29 February; 0: day @day, from 0 on
 * @month:	1 to 12
 * @week:	1 to 5, which is the last
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
 * struct zone_rule - what goes for ever, as POSIX's TZ has it
 * @std:	s that standard time is ahead of UTC
 * @dst:	those of daylight saving time
 * @has_dst:	there is any
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
 * @data:	what zone_free() frees
 * @times:	the transitions, in the file
 * @indexes:	the type of each
 * @types:	the types
 * @width:	bytes of a transition, 4 or 8
 * @nr_times:	how many
 * @first:	s that the clock is ahead before all of them
 * @has_rule:	after them @rule goes on; else the last of them stays
 * @rule:	that
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
 * struct zone_span - a time in which the clock is as far ahead of UTC as at its beginning
 * @from:	when it begins; INT64_MIN: it has always been so
 * @to:		when it is over; INT64_MAX: it will always be so
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
 * zone_read() - understand a zoneinfo file
 * @zone:	filled in, and points into @data
 * @data:	the file, which must stay as long as @zone is used
 * @size:	its size
 *
 * Return: 0; -EINVAL if it is none; -EOPNOTSUPP if it has leap seconds, which the clocks of
 * computers do not count.
 */
int zone_read(struct zone *zone, const void *data, size_t size);

/**
 * zone_posix() - understand a value of TZ that is a rule: CET-1CEST,M3.5.0,M10.5.0/3
 * @zone:	filled in
 * @text:	the rule
 *
 * Daylight saving time must say when it begins and ends.
 *
 * Return: 0 or -EINVAL.
 */
int zone_posix(struct zone *zone, const char *text);

/**
 * zone_load() - read a zoneinfo file
 * @zone:	filled in; it is zone_free() that frees it
 * @path:	the file
 *
 * Return: as zone_read(); or what open() and read() can, or -ENOMEM.
 */
int zone_load(struct zone *zone, const char *path);

/**
 * zone_load_name() - read the zone of a name, like Europe/Berlin
 * @zone:	as in zone_load()
 * @dir:	where zones are: /usr/share/zoneinfo
 * @name:	the name, which leads nowhere out of @dir
 *
 * Return: as zone_load(); -EINVAL if this is no name.
 */
int zone_load_name(struct zone *zone, const char *dir, const char *name);

/**
 * zone_free() - free what a zone has loaded, and make it UTC
 * @zone:	the zone
 */
void zone_free(struct zone *zone);

/**
 * zone_span() - the span that a time is in
 * @zone:	the zone
 * @time:	the time
 * @span:	filled in; @time is not before its @from, and before its @to unless that is
 *		INT64_MAX
 */
void zone_span(const struct zone *zone, int64_t time, struct zone_span *span);

#endif
