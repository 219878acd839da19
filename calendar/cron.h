/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Times that recur by the calendar, written as in crontab(5), in a time zone of zone.h.
 *
 *	minute hour day month weekday, or with seconds before them: 5 or 6 fields
 *	@yearly @annually @monthly @weekly @daily @midnight @hourly
 *
 *	second, minute: 0-59	hour: 0-23	day: 1-31, and L: the last
 *	month: 1-12, or names	weekday: 0-7, or names; 0 and 7 are Sunday
 *
 * A field is * or a list of values and ranges; a step may follow * or a range: 1,5  9-17  0-30/10.
 * A name is three letters. If neither day nor weekday begins with *, a date need match only
 * one of them; otherwise it must match both.
 *
 * When the clock of the zone changes to or from daylight saving time:
 *   - If neither minute nor hour begins with *, the expression is fixed: it is due at the
 *     first moment when the clock has reached, or passed, a time that it names. So if the clock
 *     leaves a time out, the expression is due when the clock continues after it; if a time comes
 *     twice, it is due the first time only. Each local time is due once, whatever the zone does.
 *   - Otherwise the expression is an interval, and is due whenever the clock shows a time that it
 *     names: never if the clock leaves the time out, and twice if it comes twice.
 *
 * All functions are pure: no global state, no allocation, and they read no clock.
 */
#ifndef CALENDAR_CRON_H
#define CALENDAR_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "zone.h"

#define CRON_ERROR	128

/**
 * struct cron - an expression
 * @seconds:	a bit for each second that matches
 * @minutes:	a bit for each minute
 * @hours:	a bit for each hour
 * @days:	a bit for each day; bit 0 is the last day of the month
 * @months:	a bit for each month
 * @weekdays:	a bit for each weekday; bit 0 is Sunday
 * @either:	a date need match only one of @days and @weekdays
 * @fixed:	each local time is due once; otherwise whenever the clock shows it
 */
struct cron {
	uint64_t	seconds;
	uint64_t	minutes;
	uint64_t	hours;
	uint64_t	days;
	uint64_t	months;
	uint64_t	weekdays;
	bool		either;
	bool		fixed;
};

/**
 * cron_parse() - parse an expression
 * @cron:	filled in
 * @text:	the expression. Spaces and tabs separate its fields, and may be around it
 * @error:	if @text is wrong: filled in with the reason, as a part of a sentence
 *
 * Return: whether @text is an expression.
 */
bool cron_parse(struct cron *cron, const char *text, char error[CRON_ERROR]);

/**
 * cron_next() - when is an expression due next?
 * @cron:	the expression
 * @zone:	the time zone
 * @after:	s since 1970 in UTC
 * @next:	filled in: the first moment after @after
 *
 * Return: false if there is none within 400 years, the time after which the calendar repeats, or
 * if @after is more than 2^54 s from 1970.
 */
bool cron_next(const struct cron *cron, const struct zone *zone, int64_t after, int64_t *next);

/**
 * cron_matches() - does an expression name a local time?
 * @cron:	the expression
 * @local:	the local time that the clock shows, as s since 1970
 *
 * If the clock leaves a time out, a fixed expression is due at a moment that does not match.
 *
 * Return: whether it does.
 */
bool cron_matches(const struct cron *cron, int64_t local);

#endif
