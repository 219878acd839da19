// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Durations and times, as twheel(1) reads and prints them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib.h"
#include "when.h"

static void durations(void)
{
	static const struct { const char *s; s64 ns; } good[] = {
		{ "90", 90 * SEC }, { "0", 0 }, { "1.5", 3 * SEC / 2 }, { ".5s", SEC / 2 },
		{ "1.s", SEC }, { "250ms", SEC / 4 }, { "5m", 300 * SEC },
		{ "1h30m", 5400 * SEC }, { "1h 30m", 5400 * SEC }, { "2 hours", 2 * HOUR },
		{ " 2 hours 5 min ", 7500 * SEC }, { "1d12h", 36 * HOUR },
		{ "2w", 14 * 24 * HOUR }, { "10us", 10000 }, { "7ns", 7 }, { "0.000000001", 1 },
		{ "1.9999999999s", 2 * SEC - 1 }, { "292y", -1 }, { "15250w", 15250 * 168 * HOUR },
	};
	static const char *const bad[] = {
		"", " ", "x", "5x", "-5", "+5", "5 6", "5m 6", "1h-30m", "1e3", "0x10", ".", ".s",
		"5 m m", "5minutess", "99999999999999999999", "300000000h", "9223372036854775808ns",
		"inf", "1,5s",
	};
	s64 ns;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++) {
		bool is = parse_duration(good[i].s, &ns);

		if (!CHECK(is == (good[i].ns >= 0)) || (is && !CHECK_EQ(ns, good[i].ns)))
			diag("	of '%s'", good[i].s);
	}
	CHECK(parse_duration("9223372036854775807ns", &ns));
	CHECK_EQ(ns, INT64_MAX);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		if (!CHECK(!parse_duration(bad[i], &ns)))
			diag("	of '%s'", bad[i]);
}

/* 2026-03-28 12:00 in Berlin, the day before summer time begins. */
#define NOW	(1774695600 * (s64)SEC)

static void times(void)
{
	static const struct { const char *s; s64 sec; } good[] = {
		{ "@1798761600", 1798761600 }, { "1970-01-01T00:00Z", 0 },
		{ "2027-01-01T00:00:00Z", 1798761600 }, { "2027-01-01T02:00+02:00", 1798761600 },
		{ "2027-01-01T02:00+0200", 1798761600 }, { "2027-01-01 01:00", 1798761600 },
		{ "2027-01-01", 1798758000 }, { " 2027-01-01 01:00:00.0", 1798761600 },
		{ "2028-02-29", 1835391600 },
		{ "12:01", NOW / SEC + 60 }, { "12:00", NOW / SEC + 23 * 3600 },
		{ "11:59", NOW / SEC + 23 * 3600 - 60 }, { "12:00:01", NOW / SEC + 1 },
		{ "today", NOW / SEC - 12 * 3600 }, { "tomorrow", NOW / SEC + 12 * 3600 },
		{ "tomorrow 06:30", NOW / SEC + 12 * 3600 + 6 * 3600 - 1800 },
		{ "today 06:30", NOW / SEC - 12 * 3600 + 6 * 3600 + 1800 },
	};
	static const char *const bad[] = {
		"", "x", "2027", "2027-13-01", "2027-02-29", "2027-02-30", "2027-04-31",
		"2027-01-01 25:00", "2027-01-01 12:60", "2027-01-01 12", "2027-01-01x", "24:01",
		"12:00x", "12:00:00x", "2027-01-01T00:00:00ZZ", "@", "@x", "@1x", "tomorrowx",
		"yesterday", "2027-01-01T00:00:00.", "@9223372037",
		"12:00+24:00", "12:00-99:59", "2027-01-01T00:00+24:00",
	};
	s64 ns;

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (u32 i = 0; i < ARRAY_SIZE(good); i++)
		if (!CHECK(parse_time(good[i].s, NOW, &ns)) ||
		    !CHECK_EQ(ns, good[i].sec * (s64)SEC))
			diag("	of '%s'", good[i].s);
	CHECK(parse_time("2027-01-01T00:00:00.25Z", NOW, &ns));
	CHECK_EQ(ns, 1798761600 * (s64)SEC + 250 * (s64)MS);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		if (!CHECK(!parse_time(bad[i], NOW, &ns)))
			diag("	of '%s'", bad[i]);
}

/* 2026-11-22 02:16 UTC. */
#define NIGHT	1795313760
#define MINUTES	60

/* The next time at which a zone shows that time of day, whatever day it is here and there. */
static void zones(void)
{
	static const struct { const char *tz, *s; s64 now, sec; } good[] = {
		{ "UTC", "20:00-07:00", NIGHT, NIGHT + 44 * MINUTES },
		{ "UTC", "20:00-07", NIGHT, NIGHT + 44 * MINUTES },
		{ "UTC", "19:16-07:00", NIGHT, NIGHT + 1440 * MINUTES },
		{ "UTC", "02:17Z", NIGHT, NIGHT + MINUTES },
		/* 22:16 here, 07:16 of the next day there */
		{ "UTC", "07:00+09:00", NIGHT + 1200 * MINUTES, NIGHT + 2624 * MINUTES },
		{ "UTC", "07:17+09:00", NIGHT + 1200 * MINUTES, NIGHT + 1201 * MINUTES },
		/* 16:16 here is 14:16 of the day before there, and the other way round */
		{ "<+14>-14", "14:17-12:00", NIGHT, NIGHT + MINUTES },
		{ "<+14>-14", "14:15-12:00", NIGHT, NIGHT + 1439 * MINUTES },
		{ "<-12>12", "16:17+14:00", NIGHT, NIGHT + MINUTES },
		{ "<-12>12", "16:15+14:00", NIGHT, NIGHT + 1439 * MINUTES },
		/* 01:16 of the 22nd here, 23:16 of the 20th there */
		{ "<+14>-14", "23:17-12:00", NIGHT - 900 * MINUTES, NIGHT - 899 * MINUTES },
		/* the day is that of the zone */
		{ "UTC", "today 20:00-07:00", NIGHT, NIGHT + 44 * MINUTES },
		{ "UTC", "tomorrow 20:00-07:00", NIGHT, NIGHT + 1484 * MINUTES },
		{ "UTC", "today 12:00+09:00", NIGHT, NIGHT + 44 * MINUTES },
	};
	s64 ns;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++) {
		setenv("TZ", good[i].tz, 1);
		tzset();
		if (!CHECK(parse_time(good[i].s, good[i].now * (s64)SEC, &ns)) ||
		    !CHECK_EQ(ns, good[i].sec * (s64)SEC))
			diag("	of '%s' in %s, %lld s", good[i].s, good[i].tz,
			     (long long)(ns / (s64)SEC - good[i].now));
	}
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
}

/* What the clock shows at @t, as if that were a time in UTC. */
static s64 clock_at(time_t t)
{
	struct tm tm;

	localtime_r(&t, &tm);
	return (s64)t + tm.tm_gmtoff;
}

/*
 * The first whole minute after @now at which the clock shows that time of day, or has skipped it.
 * Found by looking at each minute.
 */
static s64 walk_to(s64 now, s64 of_day)
{
	for (time_t t = now - now % 60 + 60; ; t += 60) {
		s64 before = clock_at(t - 60), after = clock_at(t);
		s64 left_out = before - before % 86400 + of_day;

		if (after % 86400 == of_day)
			return t;
		left_out += left_out <= before ? 86400 : 0;
		if (left_out < after)
			return t;
	}
}

/*
 * Around a change of the clock at @change: times of day, asked for at moments before and after it.
 */
static void around(const char *tz, s64 change)
{
	char text[16];
	s64 ns, want;

	setenv("TZ", tz, 1);
	tzset();
	for (s64 now = change - 5 * 3600; now < change + 5 * 3600; now += 17 * 60) {
		for (u32 minute = 0; minute < 1440; minute += 10) {
			snprintf(text, sizeof(text), "%02u:%02u", minute / 60, minute % 60);
			want = walk_to(now, minute * 60);
			if (parse_time(text, now * (s64)SEC, &ns) && ns == want * (s64)SEC)
				continue;
			CHECK(false);
			diag("	of %s in %s at %lld: %lld, not %lld", text, tz, (long long)now,
			     (long long)(ns / (s64)SEC - now), (long long)(want - now));
			return;
		}
	}
}

/*
 * A time of day that comes twice means the next of the two. One that is skipped means the moment of
 * the change.
 */
static void changes(void)
{
	static const struct { const char *tz; s64 change; } clocks[] = {
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 1806195600 },	/* 2027-03-28 02:00 */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", 1824944400 },	/* 2027-10-31 03:00 */
		{ "EST5EDT,M3.2.0,M11.1.0", 1805007600 },
		{ "EST5EDT,M3.2.0,M11.1.0", 1825567200 },
		{ "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1806764400 },	/* by half an hour */
		{ "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1822491000 },
		{ "<-10>10<+14>-14,J364/24,J200", 1830247200 },	/* a whole day is left out */
		{ "<-03>3<-02>,M10.3.0/0,M2.3.0/0:30", 1803177000 },	/* back past midnight */
	};
	static const struct { const char *s; s64 now, sec; } good[] = {
		/* 2027-03-28, on which 01:59 is followed by 03:00 */
		{ "2027-03-28 02:30", 1806100000, 1806195600 },
		{ "2027-03-28 03:00", 1806100000, 1806195600 },
		{ "2027-03-28 01:59:59", 1806100000, 1806195599 },
		{ "tomorrow 02:30:07", 1806180000, 1806195600 },
		/* 2027-10-31, on which 02:59 is followed by 02:00 */
		{ "2027-10-31 02:30", 1824900000, 1824942600 },
		{ "2027-10-31 02:30", 1824942600, 1824946200 },
		{ "2027-10-31 02:30", 1824990000, 1824942600 },
		{ "today 02:30", 1824942600, 1824946200 },
		{ "2027-10-31 02:30+02:00", 1824942600, 1824942600 },
	};
	s64 ns;

	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++)
		around(clocks[i].tz, clocks[i].change);
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (u32 i = 0; i < ARRAY_SIZE(good); i++)
		if (!CHECK(parse_time(good[i].s, good[i].now * (s64)SEC, &ns)) ||
		    !CHECK_EQ(ns, good[i].sec * (s64)SEC))
			diag("	of '%s' at %lld: %lld", good[i].s, (long long)good[i].now,
			     (long long)(ns / (s64)SEC));
}

static void shown(void)
{
	static const struct { s64 ns; const char *s; } good[] = {
		{ 1500, "1.5us" }, { 999, "0.999us" }, { 1250000, "1.25ms" },
		{ 3 * SEC / 2, "1.5s" },
		{ 60 * SEC, "1m 0s" }, { 5400 * SEC, "1h 30m" }, { 36 * HOUR, "1d 12h" },
		{ 59 * SEC, "59s" },
	};
	char buf[48];
	s64 ns;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++)
		if (!CHECK(!strcmp(show_duration(good[i].ns, buf), good[i].s)))
			diag("	'%s', not '%s'", buf, good[i].s);
	/* What is printed can be read again. */
	CHECK(parse_duration(show_duration(5400 * SEC, buf), &ns) && ns == 5400 * (s64)SEC);
	CHECK(!strcmp(show_time(NOW + 250 * (s64)MS, buf), "2026-03-28T12:00:00.250+0100"));
	CHECK(parse_time(buf, 0, &ns));
	CHECK_EQ(ns, NOW + 250 * (s64)MS);
}

int main(void)
{
	static const struct test tests[] = {
		{ durations, "durations" },
		{ times, "times" },
		{ zones, "times of day in zones" },
		{ changes, "times of day around changes of the clock" },
		{ shown, "durations and times as they are printed" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
