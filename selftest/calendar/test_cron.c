// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Expressions, and when they are due: computed by hand. walk.c compares with the C library instead.
 */
#include <stdio.h>
#include <string.h>

#include "cron.h"
#include "tap.h"
#include "uapi.h"
#include "zone.h"
#include "zones.h"

typedef int64_t s64;

#define BERLIN	"CET-1CEST,M3.5.0,M10.5.0/3"

/*
 * Saturday 2026-03-28 00:00 UTC, the day before summer time begins in Berlin, and the same in
 * autumn.
 */
#define SPRING	1774656000LL
#define AUTUMN	1792800000LL
#define H	3600LL

static struct cron parsed(const char *text)
{
	char error[CRON_ERROR] = "";
	struct cron cron = { 0 };

	if (!CHECK(cron_parse(&cron, text, error)))
		diag("	'%s': %s", text, error);
	return cron;
}

static void good(void)
{
	static const char *const same[][2] = {
		{ "0 9 * * 1-5", "0 0 9 * * mon-fri" },
		{ "\t 0  9 * *\t1-5 ", "0 9 * * Mon,TUE,wed,3-5" },
		{ "@hourly", "0 * * * *" }, { " @daily ", "0 0 * * *" }, { "@midnight", "@daily" },
		{ "@weekly", "0 0 * * 7" }, { "@monthly", "0 0 1 * *" },
		{ "@yearly", "0 0 1 jan *" }, { "@annually", "@yearly" },
		{ "0 0 * * sat-sun", "0 0 * * 6,0" }, { "0 0 * * 5-7", "0 0 * * 0,5,6" },
		{ "0 0 * * sun-tue", "0 0 * * 0-2" }, { "0-30/10 0 * * *", "0,10,20,30 0 * * *" },
		{ "0 0 l * *", "0 0 L * *" }, { "0 0 L,15 * *", "0 0 15,L * *" },
		{ "0,0,0 0 * * *", "0 0 * * *" }, { "0 0 * feb-apr *", "0 0 * 2-4 *" },
		{ "0 007 * * *", "0 7 * * *" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(same); i++) {
		struct cron a = parsed(same[i][0]), b = parsed(same[i][1]);

		if (!CHECK(a.seconds == b.seconds && a.minutes == b.minutes && a.hours == b.hours &&
			   a.days == b.days && a.months == b.months && a.weekdays == b.weekdays &&
			   a.either == b.either && a.fixed == b.fixed))
			diag("	'%s' and '%s'", same[i][0], same[i][1]);
	}
}

static void bad(void)
{
	static const char *const wrong[][2] = {
		{ "", "it has 0 fields, not 5 or 6" }, { "  ", "it has 0 fields, not 5 or 6" },
		{ "*", "it has 1 field, not 5 or 6" }, { "* * * *", "it has 4 fields, not 5 or 6" },
		{ "* * * * * * *", "it has 7 fields, not 5 or 6" },
		{ "60 * * * *", "minute '60' is not in 0-59" },
		{ "99999999999999999999 * * * *", "minute '99999999999999999999' is not in 0-59" },
		{ "60 * * * * *", "second '60' is not in 0-59" },
		{ "* 24 * * *", "hour '24' is not in 0-23" },
		{ "* * 0 * *", "day '0' is not in 1-31" },
		{ "* * 32 * *", "day '32' is not in 1-31" },
		{ "* * * 0 *", "month '0' is not in 1-12" },
		{ "* * * 13 *", "month '13' is not in 1-12" },
		{ "* * * * 8", "weekday '8' is not in 0-7" },
		{ "x * * * *", "minute 'x' is not a number" },
		{ "* * * * foo", "weekday 'foo' is not a number or a name" },
		{ "* * * * mo", "weekday 'mo' is not a number or a name" },
		{ "* * * * monday", "weekday has 'd' where ',' or a space was expected" },
		{ "-1 * * * *", "minute '' is not a number" },
		{ "1- * * * *", "minute '' is not a number" },
		{ "1,, * * * *", "minute '' is not a number" },
		{ ", * * * *", "minute '' is not a number" },
		{ "1, * * * *", "minute '' is not a number" },
		{ "5-1 * * * *", "minute range 5-1 goes backward" },
		{ "* * * * fri-mon", "weekday range 5-1 goes backward" },
		{ "* * * * 5-0", "weekday range 5-0 goes backward" },
		{ "5/2 * * * *", "minute step needs a range or * before it" },
		{ "*/0 * * * *", "minute step '0' is not a positive number" },
		{ "*/ * * * *", "minute step '' is not a positive number" },
		{ "*/x * * * *", "minute step 'x' is not a positive number" },
		{ "1-2-3 * * * *", "minute has '-' where ',' or a space was expected" },
		{ "** * * * *", "minute has '*' where ',' or a space was expected" },
		{ "* L * * *", "hour 'L' is not a number" },
		{ "* * L-1 * *", "day has '-' where ',' or a space was expected" },
		{ "@reboot", "there is no '@reboot'" }, { "@dailyx", "there is no '@dailyx'" },
		{ "@daily x", "there is no '@daily'" },
		{ "* * * * *\n", "weekday has '\n' where ',' or a space was expected" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		char error[CRON_ERROR] = "";
		struct cron cron;

		if (!CHECK(!cron_parse(&cron, wrong[i][0], error)) ||
		    !CHECK(!strcmp(error, wrong[i][1])))
			diag("	'%s': '%s'", wrong[i][0], error);
	}
}

/* The next times after @after, in s after @since. -1 ends the list. */
static void is_due(const char *zone_rule, const char *text, s64 since, s64 after, const s64 *want)
{
	struct cron cron = parsed(text);
	struct zone zone = { 0 };
	s64 t = since + after;

	if (zone_rule)
		CHECK_EQ(zone_posix(&zone, zone_rule), 0);
	for (; *want != -1 && !failed(); want++)
		if (!CHECK(cron_next(&cron, &zone, t, &t)) || !CHECK_EQ(t - since, *want))
			diag("	of '%s'", text);
}

#define DUE(zone, text, since, after, ...) \
	is_due(zone, text, since, after, (const s64 []) { __VA_ARGS__, -1 })

static void plain(void)
{
	DUE(NULL, "0 9 * * *", SPRING, 0, 9 * H, 33 * H);
	DUE(NULL, "0 9 * * *", SPRING, 9 * H - 1, 9 * H, 33 * H);
	DUE(NULL, "0 9 * * *", SPRING, 9 * H, 33 * H);
	DUE(NULL, "*/20 * * * *", SPRING, 0, 1200, 2400, 3600);
	DUE(NULL, "30 */12 * * mon", SPRING, 0, 48 * H + 1800, 60 * H + 1800, 216 * H + 1800);
	DUE(NULL, "15,45 10 20 30 * *", SPRING, 20 * H, 68 * H + 615, 68 * H + 645);
	DUE(NULL, "59 59 23 L * *", SPRING, 0, 96 * H - 1, 816 * H - 1);
	DUE("EST5", "0 0 * * *", SPRING, 0, 5 * H, 29 * H);
}

/* The 13th and Fridays; only Friday the 13th; a step in a day field counts as a star. */
static void days(void)
{
	DUE(NULL, "0 0 13 4 5", SPRING, 0, 144 * H, 312 * H, 384 * H, 480 * H);
	DUE(NULL, "0 0 13 * *", SPRING, 0, 384 * H);
	DUE(NULL, "0 0 */1 * 5", SPRING, 0, 144 * H, 312 * H, 480 * H);
	DUE(NULL, "0 0 13 * */5", SPRING, 0, 169 * 24 * H, 230 * 24 * H);
	DUE(NULL, "0 0 L * 5", SPRING, 0, 72 * H, 144 * H);
	DUE(NULL, "0 0 29 2 *", SPRING, 0, 703 * 24 * H, (703 + 1461) * 24 * H);
}

/* At 01:00 UTC on Sunday, in 25 h, the clock goes from 02:00 to 03:00. */
static void left_out(void)
{
	DUE(BERLIN, "30 2 * * *", SPRING, 0, H + 1800, 25 * H, 48 * H + 1800);
	DUE(BERLIN, "0,30 2 * * *", SPRING, 20 * H, 25 * H, 48 * H, 48 * H + 1800);
	DUE(BERLIN, "0 2,3 * * *", SPRING, 20 * H, 25 * H, 48 * H, 49 * H);
	DUE(BERLIN, "15 59 2 * * *", SPRING, 20 * H, 25 * H, 49 * H - 45);
	DUE(BERLIN, "30 2 * * *", SPRING, 25 * H - 1, 25 * H);
	DUE(BERLIN, "30 2 * * *", SPRING, 25 * H, 48 * H + 1800);
	DUE(BERLIN, "0 3 * * *", SPRING, 20 * H, 25 * H, 49 * H);
	DUE(BERLIN, "*/30 2 * * *", SPRING, 20 * H, 48 * H, 48 * H + 1800);
	DUE(BERLIN, "30 * * * *", SPRING, 24 * H, 24 * H + 1800, 25 * H + 1800);
}

/* At 01:00 UTC on Sunday, in 25 h, the clock goes from 03:00 to 02:00. */
static void twice(void)
{
	DUE(BERLIN, "30 2 * * *", AUTUMN, 20 * H, 24 * H + 1800, 49 * H + 1800);
	DUE(BERLIN, "30 2 * * *", AUTUMN, 25 * H, 49 * H + 1800);
	DUE(BERLIN, "0 3 * * *", AUTUMN, 20 * H, 26 * H, 50 * H);
	DUE(BERLIN, "0 2 * * *", AUTUMN, 20 * H, 24 * H, 49 * H);
	DUE(BERLIN, "*/30 2 * * *", AUTUMN, 20 * H, 24 * H, 24 * H + 1800, 25 * H, 25 * H + 1800,
	    49 * H);
	DUE(BERLIN, "30 * * * *", AUTUMN, 24 * H, 24 * H + 1800, 25 * H + 1800, 26 * H + 1800);
}

/* The zone crosses the date line: a day is skipped, and later one comes twice. */
static void whole_days(void)
{
	const char *zone = "<-10>10<+14>-14,J200/0,J300/0";
	s64 there = SPRING + 113 * 24 * H + 10 * H, back = there + 99 * 24 * H;

	DUE(zone, "0 12 * * *", there, -20 * H, -12 * H, 0, 12 * H, 36 * H);
	DUE(zone, "*/60 12 * * *", there, -20 * H, -12 * H, 12 * H, 36 * H);
	DUE(zone, "0 12 * * *", back, -20 * H, -12 * H, 36 * H);
	DUE(zone, "*/60 12 * * *", back, -20 * H, -12 * H, 12 * H, 36 * H);
}

/*
 * From 01:00 UTC on the clock is set back from 03:00 to 02:00, and half an hour later it is set
 * forward again. A time that it has shown is over, though the clock shows it again.
 */
static void there_and_back(void)
{
	static const struct { const char *text; s64 want[3]; } due[] = {
		{ "45 2 * * *", { 2700, 24 * H + 2700, -1 } },
		{ "15 2 * * *", { 900, 24 * H + 900, -1 } },
		{ "15 3 * * *", { H + 1800, 25 * H + 900, -1 } },
		{ "*/15 3 * * *", { H + 1800, H + 2700, -1 } },
		{ "15 * * * *", { 900, H + 900, -1 } },
	};
	struct zone zone;

	CHECK_EQ(zone_read(&zone, zone_brief, sizeof(zone_brief)), 0);
	for (u32 i = 0; i < ARRAY_SIZE(due); i++) {
		struct cron cron = parsed(due[i].text);
		s64 t = 0;

		for (const s64 *want = due[i].want; *want != -1; want++)
			if (!CHECK(cron_next(&cron, &zone, t, &t)) || !CHECK_EQ(t, *want))
				diag("	of '%s'", due[i].text);
	}
}

static bool is_never(const char *text, const char *rule, s64 after)
{
	struct cron cron = parsed(text);
	struct zone zone = { 0 };
	s64 t;

	if (rule)
		CHECK_EQ(zone_posix(&zone, rule), 0);
	return !cron_next(&cron, &zone, after, &t);
}

static void never(void)
{
	const s64 end = 1LL << 54;

	CHECK(is_never("0 0 30 2 *", NULL, SPRING));
	CHECK(is_never("0 0 31 2,4,6,9,11 *", BERLIN, SPRING));
	/* Always when summer time begins; the second one comes at other hours too. */
	CHECK(is_never("*/5 2 25-31 3 */7", BERLIN, SPRING));
	CHECK(!is_never("*/5 2,3 25-31 3 */7", BERLIN, SPRING));
	/* Rarely: 29 February on a Sunday, and there is none in 2100. */
	CHECK(!is_never("0 0 29 2 */7", NULL, 3737000000));
	CHECK(!is_never("* * * * *", BERLIN, end));
	CHECK(!is_never("* * * * *", BERLIN, -end));
	CHECK(is_never("* * * * *", BERLIN, end + 1));
	CHECK(is_never("* * * * *", BERLIN, -end - 1));
	CHECK(is_never("* * * * *", BERLIN, INT64_MAX));
	CHECK(is_never("* * * * *", BERLIN, INT64_MIN));
}

static void matches(void)
{
	struct cron cron = parsed("30 2 L 2 *");

	CHECK(cron_matches(&cron, 1772245800));		/* 2026-02-28 02:30 */
	CHECK(!cron_matches(&cron, 1772245801));
	CHECK(!cron_matches(&cron, 1772159400));
	CHECK(cron_matches(&cron, -2203968600LL));	/* 1900-02-28 02:30 */
	CHECK(!cron_matches(&cron, -2203968599LL));
}

int main(void)
{
	static const struct test tests[] = {
		{ good, "expressions that mean the same" },
		{ bad, "bad expressions, and their error messages" },
		{ plain, "times where the clock does not change" },
		{ days, "days, weekdays, and both" },
		{ left_out, "an hour that the clock skips" },
		{ twice, "an hour that comes twice" },
		{ whole_days, "days that are skipped or come twice" },
		{ there_and_back, "a clock that goes back, and forward again soon" },
		{ never, "expressions that are never due, and the ends of time" },
		{ matches, "cron_matches()" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
