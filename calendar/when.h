/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Durations and times as people write them.
 *
 *	90  1.5s  250ms  5m  1h30m  "2 hours 5 min"  1d12h  2w
 *	2027-01-01  "2027-01-01 06:30"  2027-01-01T06:30:00.5Z  2027-01-01T06:30+02:00
 *	06:30  "tomorrow 06:30"  @1798761600
 *
 * A number without a unit is in seconds, and must stand alone. A time without a zone is in the
 * local zone of the C library, which is that of the whole process. A time without a date is the
 * next such time. If a local time comes twice, the next of the two is taken. If the clock is set
 * forward over a local time, the moment of that change is taken. In a duration, a day has 24 hours.
 */
#ifndef CALENDAR_WHEN_H
#define CALENDAR_WHEN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US	1000LL
#define NS_PER_MS	1000000LL
#define NS_PER_S	1000000000LL

/* Parse a duration into ns. Returns false if it is none, or longer than 292 years. */
bool parse_duration(const char *s, int64_t *ns);
/* Parse a time into ns since 1970. @now is the wall clock's time, for words like "tomorrow". */
bool parse_time(const char *s, int64_t now, int64_t *ns);
/* Show a duration by its two largest units: "1h 30m"; below a minute "2.5s". */
const char *show_duration(int64_t ns, char buf[32]);
/* Show a time in the form that parse_time() takes. */
const char *show_time(int64_t ns, char buf[48]);
int64_t time_now(clockid_t clock);

#endif
