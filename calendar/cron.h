/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Times that recur by the calendar, as crontab(5) writes them, in a zone of zone.h.
 *
 *	minute hour day month weekday, or with seconds before them: 5 or 6 fields
 *	@yearly @annually @monthly @weekly @daily @midnight @hourly
 *
 *	second, minute: 0-59	hour: 0-23	day: 1-31, and L: the last
 *	month: 1-12, or names	weekday: 0-7, or names; 0 and 7 are Sunday
 *
 * A field is * or a list of values and ranges; a step may follow * or a range: 1,5  9-17  0-30/10.
 * A name is three letters. If neither day nor weekday begins with *, a date matches that matches
 * one of them; else one that matches both.
 *
 * What happens when the clock of the zone is changed:
 *   - If neither minute nor hour begins with *, the expression is fixed: it is due at the
 *     first moment when the clock has reached, or passed, a time that it names. So a time
 *     that is left out is due when the clock goes on after it, and one that comes twice is due
 *     the first time only. Each local time is due once, whatever the zone does.
 *   - Else it is an interval, and due whenever the clock shows such a time: not where the
 *     clock leaves it out, and twice where it comes twice.
 *
 * Pure functions: no global state, no allocation, and they read no clock.
 */
#ifndef CALENDAR_CRON_H
#define CALENDAR_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "zone.h"

#define CRON_ERROR	128

/**
 * struct cron - an expression
 * @seconds:	a bit for each that matches
 * @minutes:	the same
 * @hours:	the same
 * @days:	the same; bit 0 is the last of the month
 * @months:	the same
 * @weekdays:	the same; bit 0 is Sunday
 * @either:	a date need match only one of @days and @weekdays
 * @fixed:	each local time is due once; else whenever the clock shows it
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
 * cron_parse() - understand an expression
 * @cron:	filled in
 * @text:	the expression; spaces and tabs are between its fields, and may be around it
 * @error:	filled in with what is wrong, a part of a sentence
 *
 * Return: is it one?
 */
bool cron_parse(struct cron *cron, const char *text, char error[CRON_ERROR]);

/**
 * cron_next() - when is it due next?
 * @cron:	the expression
 * @zone:	where
 * @after:	s since 1970 in UTC
 * @next:	filled in: the first moment after @after
 *
 * Return: false if there is none within 400 years, the time after which the calendar repeats, or
 * if @after is more than 2^54 s from 1970.
 */
bool cron_next(const struct cron *cron, const struct zone *zone, int64_t after, int64_t *next);

/**
 * cron_matches() - does a clock that shows this name a time of it?
 * @cron:	the expression
 * @local:	what the clock shows: s since 1970 there
 *
 * A fixed expression is due at a moment whose clock does not match where times are left out.
 *
 * Return: whether it does.
 */
bool cron_matches(const struct cron *cron, int64_t local);

#endif
