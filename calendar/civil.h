/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Days and years of the Gregorian calendar, also for years before it was introduced.
 *
 * A day is a number: 0 is 1970-01-01, a Thursday. Nothing here overflows if the year is within
 * a thousand million years of 1970.
 */
#ifndef CALENDAR_CIVIL_H
#define CALENDAR_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define SECS_PER_DAY	86400
#define DAYS_PER_ERA	146097		/* 400 years, after which the calendar repeats */

/* Divide by a positive @b, so that the remainder is never negative. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
	return a - floor_div(a, b) * b;
}

static inline bool is_leap_year(int64_t year)
{
	return !(year % 4) && (year % 100 || !(year % 400));
}

/* @month: 1 to 12 */
static inline int days_of_month(int64_t year, int month)
{
	/* From March on, months have 31 and 30 days by turns, but July and August both have 31. */
	return month == 2 ? 28 + is_leap_year(year) : 30 + ((month + (month > 7)) & 1);
}

/*
 * The day of a date. Here years begin in March, so that the leap day is the last of a
 * year; 153 days are five months of 31, 30, 31, 30 and 31.
 */
static inline int64_t day_of_date(int64_t year, int month, int day)
{
	int64_t y = year - (month <= 2), era = floor_div(y, 400), of_era = y - era * 400;
	int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The date of a day. */
static inline void date_of_day(int64_t day, int64_t *year, int *month, int *of_month)
{
	int64_t days = day + 719468, era = floor_div(days, DAYS_PER_ERA);
	int of_era = (int)(days - era * DAYS_PER_ERA);
	int y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int of_year = of_era - (365 * y + y / 4 - y / 100);
	int m = (5 * of_year + 2) / 153;

	*of_month = of_year - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = era * 400 + y + (*month <= 2);
}

/* The weekday of a day; 0 is Sunday. */
static inline int weekday_of_day(int64_t day)
{
	return (int)floor_mod(day + 4, 7);
}

#endif
