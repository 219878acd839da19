// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * When jobs are due, what happens to times that have passed, and which definitions are refused:
 * def.c and policy.c, which are pure functions.
 */
#include <stdlib.h>
#include <string.h>

#include "civil.h"
#include "policy.h"
#include "tap.h"

#define MINUTE	(60 * US_PER_S)
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

/* Sunday 2026-11-22 00:00 UTC. */
#define START	(1795305600LL * US_PER_S)

static unsigned int bad;

static void check(bool good, const char *what, long long got, long long wanted)
{
	if (good)
		return;
	bad++;
	diag("%s: %lld, wanted %lld", what, got, wanted);
}

#define CHECK_EQ(a, b)	check((a) == (b), #a, (long long)(a), (long long)(b))

/* In the tests' definitions ' stands for ", which C would need a \ for. */
static struct def parse(const char *text, char error[ERROR_MAX])
{
	char *json = strdup(text);
	struct json_object *o;
	struct def def;

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	o = json_tokener_parse(json);
	strcpy(error, "");
	if (!o || !def_parse(&def, o, START, error))
		memset(&def, 0, sizeof(def));
	json_object_put(o);
	free(json);
	return def;
}

static struct def good(const char *text)
{
	char error[ERROR_MAX];
	struct def def = parse(text, error);

	if (!def.argv) {
		diag("%s: %s", text, error);
		exit(1);
	}
	return def;
}

/* ---- definitions -------------------------------------------------------------------- */

static void wrong_definitions(void)
{
	static const struct { const char *json, *error; } wrong[] = {
		{ "[]", "a definition must be a JSON object" },
		{ "{}", "exec or http is missing" },
		{ "{'exec': []}", "exec: expected a list of strings" },
		{ "{'exec': 'true'}", "exec: expected a list of strings" },
		{ "{'exec': ['']}", "exec: the command is empty" },
		{ "{'exec': ['true', 1]}", "exec: expected a string" },
		{ "{'exec': ['a\\u0000b']}", "exec: there is a NUL in it" },
		{ "{'exce': ['true']}", "unknown key 'exce'" },
		{ "{'exec': ['x'], 'name': '../x'}", "name: '../x' is not a valid name for a job" },
		{ "{'exec': ['x'], 'name': '-x'}", "name: '-x' is not a valid name for a job" },
		{ "{'exec': ['x'], 'rate': '1s', 'cron': '@daily'}",
		  "cron: the job already has another time" },
		{ "{'exec': ['x'], 'rate': '10us'}", "rate: must be at least 1ms" },
		{ "{'exec': ['x'], 'rate': '-5'}", "rate: '-5' is not a duration" },
		{ "{'exec': ['x'], 'rate': true}",
		  "rate: expected a whole number or a string such as \"1.5s\"" },
		{ "{'exec': ['x'], 'timeout': 1.5}",
		  "timeout: expected a whole number or a string such as \"1.5s\"" },
		{ "{'exec': ['x'], 'timeout': '1s\\u0000'}", "timeout: there is a NUL in it" },
		{ "{'exec': ['x'], 'at': 'soon'}", "at: 'soon' is not a time" },
		{ "{'exec': ['x'], 'zone': 'Europe/Berlin'}",
		  "zone: allowed only for jobs with cron or rate" },
		{ "{'exec': ['x'], 'cron': '@daily', 'zone': '../etc/passwd'}",
		  "zone: unknown time zone '../etc/passwd'" },
		{ "{'exec': ['x'], 'cron': '@daily', 'except': 'never'}",
		  "except: there is no calendar 'never'" },
		{ "{'exec': ['x'], 'delay': '1s', 'spread': '1s'}",
		  "spread: allowed only for jobs with cron or rate" },
		{ "{'exec': ['x'], 'missed': 'twice'}",
		  "missed: 'twice' is not one of once, skip, all" },
		{ "{'exec': ['x'], 'queue': 3}",
		  "queue: allowed only for jobs with overlap: queue" },
		{ "{'exec': ['x'], 'queue': 0, 'overlap': 'queue'}",
		  "queue: expected a number from 1 to 1000000" },
		{ "{'exec': ['x'], 'retry': {'wait': '1s'}}", "retry: times is missing" },
		{ "{'exec': ['x'], 'retry': {'times': 1, 'factor': 0.5}}",
		  "retry: expected a factor from 1 to 100" },
		{ "{'exec': ['x'], 'retry': {'times': 1, 'pause': 1}}",
		  "retry: unknown key 'pause'" },
		{ "{'exec': ['x'], 'lost': 'never'}", "lost: 'never' is not one of again, report" },
		{ "{'exec': ['x'], 'env': {'TWHEEL_KEY': 'x'}}",
		  "env: 'TWHEEL_KEY' is not a name for a variable of a job" },
		{ "{'exec': ['x'], 'env': {'A=B': 'x'}}",
		  "env: 'A=B' is not a name for a variable of a job" },
		{ "{'exec': ['x'], 'user': 'nobody-is-called-that'}",
		  "user: there is no user 'nobody-is-called-that'" },
		{ "{'exec': ['x'], 'dir': 'tmp'}", "dir: expected an absolute path" },
		{ "{'exec': ['x'], 'memory': '2X'}", "memory: expected a size like 64M" },
		{ "{'exec': ['x'], 'memory': '99999999T'}", "memory: expected a size like 64M" },
		{ "{'exec': ['x'], 'limits': {'files': 3}}", "limits: there is no limit 'files'" },
		{ "{'exec': ['x'], 'then': {'always': ['x']}}", "then: unknown key 'always'" },
		{ "{'exec': ['x'], 'http': 'http://x'}", "exec and http exclude each other" },
		{ "{'http': 'ftp://x'}", "http: expected an address http://..." },
		{ "{'http': 'http://x y'}", "http: expected an address http://..." },
		{ "{'http': 'http://'}", "http: expected an address http://..." },
		{ "{'http': 'http://x', 'user': 'root'}", "user: allowed only for jobs with exec" },
		{ "{'exec': ['x'], 'headers': {}}", "headers: allowed only for jobs with http" },
		{ "{'http': 'http://x', 'headers': {'Twheel-Key': 'x'}}",
		  "headers: 'Twheel-Key' is not a header for a job" },
		{ "{'http': 'http://x', 'headers': {'X': 'a\r\nY: b'}}",
		  "headers: 'X' is not a header for a job" },
		{ "{'http': 'http://x', 'headers': {'X: y\nZ': 'a'}}",
		  "headers: 'X: y?Z' is not a header for a job" },
		{ "{'exec': ['x'], 'alarm': {'late': '5m'}}", "alarm: fail is missing" },
		{ "{'exec': ['x'], 'alarm': {'fail': ['root']}}",
		  "alarm: 'root' is neither mailto:... nor http://..." },
		{ "{'exec': ['x'], 'alarm': {'fail': ['mailto:a@b\nBcc: c@d']}}",
		  "alarm: 'mailto:a@b?Bcc: c@d' is neither mailto:... nor http://..." },
		{ "{'exec': ['x'], 'alarm': {'fail': ['mailto:a@b'], 'early': 1}}",
		  "alarm: unknown key 'early'" },
	};
	char error[ERROR_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct def def = parse(wrong[i].json, error);

		if (!def.argv && !strcmp(error, wrong[i].error))
			continue;
		bad++;
		diag("%s: '%s', wanted '%s'", wrong[i].json, error, wrong[i].error);
		def_free(&def);
	}
}

static void right_definitions(void)
{
	struct def d = good("{'exec': ['a', ''], 'timeout': 90, 'stop': '1.5s', 'memory': '2M'}");

	CHECK_EQ(d.timeout, 90 * US_PER_S);
	CHECK_EQ(d.stop, 1500000);
	CHECK_EQ(d.memory, 2 << 20);
	def_free(&d);
	d = good("{'exec': ['a'], 'limits': {'nofile': 64}, 'lost': 'report'}");
	CHECK_EQ(d.limits[RLIMIT_NOFILE], 64);
	CHECK_EQ(d.report, true);
	def_free(&d);
	d = good("{'exec': ['a'], 'overlap': 'queue', 'queue': 7}");
	CHECK_EQ(d.queue, 7);
	def_free(&d);
	d = good("{'exec': ['a'], 'retry': {'times': 0}}");
	CHECK_EQ(d.retries, 0);
	def_free(&d);
	d = good("{'exec': ['a'], 'retry': {'times': 3, 'wait': '1s', 'factor': 1.5}}");
	CHECK_EQ(retry_wait(&d, 1), US_PER_S);
	CHECK_EQ(retry_wait(&d, 3), 2250000);
	CHECK_EQ(retry_wait(&d, 1000), 366 * DAY);
	def_free(&d);
	d = good("{'exec': ['a'], 'at': 'tomorrow 06:30'}");
	CHECK_EQ(strcmp(json_text(d.json),
			"{\"exec\":[\"a\"],\"at\":\"2026-11-23T06:30:00.000000Z\"}"),
		 0);
	CHECK_EQ(first_due(&d, "x", START), START + 30 * HOUR + 30 * MINUTE);
	def_free(&d);
}

/* ---- times -------------------------------------------------------------------------- */

static void first_times(void)
{
	struct def d = good("{'exec': ['a'], 'rate': '10s', 'start': '2026-11-21T00:00:03Z'}");

	CHECK_EQ(first_due(&d, "x", START), START + 3 * US_PER_S);
	CHECK_EQ(first_due(&d, "x", START + 3 * US_PER_S), START + 13 * US_PER_S);
	CHECK_EQ(next_due(&d, "x", START + 3 * US_PER_S), START + 13 * US_PER_S);
	def_free(&d);
	d = good("{'exec': ['a'], 'rate': '10s'}");
	CHECK_EQ(first_due(&d, "x", START), START + 10 * US_PER_S);
	def_free(&d);
	d = good("{'exec': ['a'], 'delay': '10s'}");
	CHECK_EQ(first_due(&d, "x", START), START + 10 * US_PER_S);
	def_free(&d);
	d = good("{'exec': ['a'], 'cron': '30 2 * * *', 'zone': 'Europe/Berlin'}");
	CHECK_EQ(first_due(&d, "x", START), START + 90 * MINUTE);
	CHECK_EQ(next_due(&d, "x", START + 90 * MINUTE), START + DAY + 90 * MINUTE);
	def_free(&d);
	d = good("{'exec': ['a'], 'cron': '0 0 30 2 *'}");
	CHECK_EQ(first_due(&d, "x", START), 0);
	def_free(&d);
	d = good("{'exec': ['a']}");
	CHECK_EQ(first_due(&d, "x", START), 0);
	def_free(&d);
}

/*
 * A name always has the same share of the spread. The distance between two times is not changed by
 * it.
 */
static void shares_of(const char *text)
{
	struct def d = good(text);
	int64_t sum = 0, a;
	char name[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "job%d", i);
		a = first_due(&d, name, START - 1) - START;
		CHECK_EQ(a >= 0 && a <= 10 * MINUTE, true);
		CHECK_EQ(next_due(&d, name, START + a), START + HOUR + a);
		sum += a;
	}
	CHECK_EQ(sum / 1000 > 4 * MINUTE && sum / 1000 < 6 * MINUTE, true);
	def_free(&d);
}

static void shares(void)
{
	shares_of("{'exec': ['a'], 'cron': '@hourly', 'spread': '10m'}");
	shares_of("{'exec': ['a'], 'rate': '1h', 'start': '@1795305600', 'spread': '10m'}");
}

static void days_off(void)
{
	struct days *days = days_find("off", true);
	int64_t off[] = { START / DAY + 1, START / DAY + 2 };
	struct def d = good("{'exec': ['a'], 'cron': '30 23 * * *', 'except': 'off'}");

	CHECK_EQ(first_due(&d, "x", START), START + 23 * HOUR + 30 * MINUTE);
	days->day = off;
	days->nr = 2;
	CHECK_EQ(next_due(&d, "x", START + 23 * HOUR + 30 * MINUTE),
		 START + 3 * DAY + 23 * HOUR + 30 * MINUTE);
	def_free(&d);
	/* The day is that of the job's zone: 23:30 in UTC is the next day in Tokyo. */
	d = good("{'exec':['a'],'rate':'1d','start':'@1795217400','except':'off','zone':'Japan'}");
	CHECK_EQ(first_due(&d, "x", START), START + 2 * DAY + 23 * HOUR + 30 * MINUTE);
	CHECK_EQ(due_again(&d, "x", START + 5 * DAY, START), START + 3 * DAY);
	def_free(&d);
	/* So many times on the days off that they cannot be looked at one by one. */
	d = good("{'exec': ['a'], 'rate': '1ms', 'start': '@1795305600', 'except': 'off'}");
	CHECK_EQ(next_due(&d, "x", START + DAY - 1000), START + 3 * DAY);
	def_free(&d);
	d = good("{'exec':['a'],'cron':'* * * * * *','except':'off','zone':'Europe/Berlin'}");
	CHECK_EQ(next_due(&d, "x", START + 23 * HOUR - US_PER_S), START + 3 * DAY - HOUR);
	def_free(&d);
	d = good("{'exec':['a'],'rate':'1d','start':'@1795217400','except':'off','zone':'Japan'}");
	days->nr = 0;
	CHECK_EQ(first_due(&d, "x", START), START + 23 * HOUR + 30 * MINUTE);
	CHECK_EQ(due_again(&d, "x", START + 5 * DAY, START), START + DAY);
	def_free(&d);
	/* What has passed is not forgotten. */
	d = good("{'exec':['a'],'cron':'0 * * * *','except':'off','zone':'UTC'}");
	CHECK_EQ(due_again(&d, "x", START + 5 * HOUR, START + 7 * HOUR + 1), START + 5 * HOUR);
	days->day[0] = START / DAY;
	days->nr = 1;
	CHECK_EQ(due_again(&d, "x", START + 5 * HOUR, START + 7 * HOUR + 1), START + 5 * HOUR);
	CHECK_EQ(due_again(&d, "x", START + 8 * HOUR, START + 7 * HOUR + 1), START + DAY);
	days->nr = 0;
	CHECK_EQ(due_again(&d, "x", START + 9 * HOUR, START + 7 * HOUR + 1), START + 8 * HOUR);
	def_free(&d);
	/* A rate does not begin before its start. */
	d = good("{'exec':['a'],'rate':'1h','start':'@1795305600','except':'off'}");
	CHECK_EQ(due_again(&d, "x", START, START - 30 * DAY), START);
	CHECK_EQ(due_again(&d, "x", START + 5 * HOUR, START - 30 * DAY), START);
	CHECK_EQ(due_again(&d, "x", START + 5 * HOUR, START), START + HOUR);
	def_free(&d);
}

/* A job that is due each second goes on at midnight, also after a day of 23 or 25 hours. */
/* With a spread a time can be on a day off that was not on one, and the other way round. */
static void spread_off(const char *text, int64_t at)
{
	struct days *days = days_find("off", true);
	struct def d = good(text);
	int64_t off = START / DAY + 3, next = START, add, n;
	struct plan plan;
	char name[16];

	days->day = &off;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "job%d", i);
		days->nr = 0;
		add = first_due(&d, name, START + DAY) - START - DAY - at;
		add -= add > 12 * HOUR ? DAY : 0;
		days->nr = 1;
		next = first_due(&d, name, START);
		plan = plan_firing(&d, name, next, START + 10 * DAY, false);
		for (n = 0; next < START + 10 * DAY; n++) {
			CHECK_EQ(next / DAY != off && (next - at - add) % DAY == 0, true);
			next = next_due(&d, name, next);
		}
		CHECK_EQ(n >= 8 && n <= 9, true);
		CHECK_EQ(plan.missed, n - 1);
		CHECK_EQ(plan.next, next);
	}
	days->nr = 0;
	def_free(&d);
}

static void spreads_off(void)
{
	spread_off("{'exec':['a'],'cron':'30 23 * * *','except':'off','spread':'12h'}",
		   23 * HOUR + 30 * MINUTE);
	spread_off("{'exec':['a'],'rate':'1d','start':'@1795303800','except':'off','spread':'12h'}",
		   23 * HOUR + 30 * MINUTE);
}

static void seconds_off(void)
{
	static const char *const texts[] = {
		"{'exec':['a'],'cron':'* * * * * *','except':'off','zone':'Europe/Berlin'}",
		"{'exec':['a'],'rate':'1s','except':'off','zone':'Europe/Berlin'}",
	};
	struct days *days = days_find("off", true);
	int64_t off[] = { START / DAY - 29, START / DAY - 28, START / DAY + 125,
			  START / DAY + 126, START / DAY + 127 };

	days->day = off;
	days->nr = 5;
	for (int i = 0; i < 2; i++) {
		struct def d = good(texts[i]);

		CHECK_EQ(next_due(&d, "x", START - 29 * DAY - HOUR), START - 28 * DAY + 23 * HOUR);
		CHECK_EQ(next_due(&d, "x", START + 125 * DAY - HOUR),
			 START + 127 * DAY + 22 * HOUR);
		CHECK_EQ(next_due(&d, "x", START + 127 * DAY + 22 * HOUR),
			 START + 127 * DAY + 22 * HOUR + US_PER_S);
		def_free(&d);
	}
	days->nr = 0;
}

/* The days off, one after the other, with and without gaps, from @first on. Returns how many. */
static size_t random_days(int64_t *day, size_t most, int64_t first)
{
	for (size_t i = 0; i < most; i++) {
		day[i] = first;
		first += rand() % 4 ? 1 : 2 + rand() % 40;
	}
	return most;
}

static bool is_one_of(const int64_t *day, size_t nr, int64_t at, const struct zone *zone)
{
	struct zone_span span;
	int64_t s = at / US_PER_S;

	zone_span(zone, s, &span);
	for (size_t i = 0; i < nr; i++)
		if (day[i] == (s + span.offset) / (24 * 3600))
			return true;
	return false;
}

/* next_due() finds what looking at each time of the same job without days off finds. */
static void each_of(const char *rule, const char *zone)
{
	struct days *days = days_find("off", true);
	int64_t off[300], from, next, wanted;
	char text[160];
	struct def with, without;

	snprintf(text, sizeof(text), "{'exec':['a'],%s,'zone':'%s','except':'off'}", rule, zone);
	with = good(text);
	strstr(text, ",'except'")[0] = '}';
	*(strchr(text, '}') + 1) = 0;
	without = good(text);
	days->day = off;
	for (int i = 0; i < 100; i++) {
		days->nr = random_days(off, 300, START / DAY - 500);
		from = START - 500 * DAY + rand() % 1000 * DAY + rand() % (24 * 3600) * US_PER_S;
		if (with.kind == KIND_RATE)
			from = START + (from - START) / with.period * with.period;
		next = next_due(&with, "x", from);
		for (wanted = next_due(&without, "x", from);
		     is_one_of(off, days->nr, wanted, without.zone);
		     wanted = next_due(&without, "x", wanted))
			;
		CHECK_EQ(next, wanted);
	}
	days->nr = 0;
	def_free(&with);
	def_free(&without);
}

static void each_off(void)
{
	/* Some of these set their clock at midnight, or a minute later, or have left a day out. */
	static const char *const zones[] = {
		"UTC", "Europe/Berlin", "America/Havana", "America/St_Johns", "Asia/Tokyo",
		"Africa/Cairo", "America/Asuncion",
	};

	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		each_of("'cron':'*/20 * * * *'", zones[i]);
		each_of("'cron':'30 0 * * 1,3'", zones[i]);
		each_of("'rate':'7h'", zones[i]);
	}
}

/* The steps that due_minutes() counts grow with the work, and many days off in a row are little. */
static void steps(void)
{
	struct days *days = days_find("off", true);
	struct def d = good("{'exec':['a'],'cron':'0 8 * * *','except':'off','zone':'CET'}");
	int64_t *off = calloc(80000, sizeof(*off)), got[60] = { 0 };

	days->day = off;
	for (days->nr = 0; days->nr < 80000; days->nr++)
		off[days->nr] = START / DAY + (int64_t)days->nr;
	CHECK_EQ(next_due(&d, "x", START) / DAY, START / DAY + 80000);
	CHECK_EQ(due_minutes(&d, "x", 0, START, got, 60) <= 1, true);
	CHECK_EQ(due_minutes(&d, "x", START - DAY, START, got, 60) < 1000, true);
	for (size_t i = 0; i < days->nr; i++)
		off[i] = START / DAY + 2 * (int64_t)i;
	CHECK_EQ(due_minutes(&d, "x", START - DAY, START, got, 60) < 10, true);
	def_free(&d);
	/* Every Sunday, and each is a day off. */
	d = good("{'exec':['a'],'cron':'0 8 * * 0','except':'off','zone':'UTC'}");
	for (size_t i = 0; i < days->nr; i++)
		off[i] = START / DAY + 7 * (int64_t)i;
	CHECK_EQ(due_minutes(&d, "x", START - DAY, START, got, 60) > 1000, true);
	days->nr = 0;
	def_free(&d);
	free(off);
}

/* The times of the next hour, by minute, are those that next_due() finds one after the other. */
static void minutes_are(const char *text, int64_t due, int64_t from)
{
	struct def d = good(text);
	int64_t got[60] = { 0 }, wanted[60] = { 0 }, at = due,
		start = from / MINUTE * MINUTE;

	due_minutes(&d, "x", due, from, got, 60);
	for (; at && at < start + HOUR; at = next_due(&d, "x", at))
		if (at >= from)
			wanted[(at - start) / MINUTE]++;
	for (int i = 0; i < 60; i++)
		CHECK_EQ(got[i], wanted[i]);
	def_free(&d);
}

static void minutes(void)
{
	struct def d = good("{'exec': ['a'], 'delay': '10s'}");
	struct days *days = days_find("off", true);
	int64_t got[2] = { 0 }, off[] = { START / DAY };
	const int64_t now = START + 90 * MINUTE + 12345678;
	size_t work;

	minutes_are("{'exec': ['a'], 'cron': '*/7 * * * *'}", START, now);
	minutes_are("{'exec': ['a'], 'cron': '*/7 * * * * *', 'spread': '3m'}", START + 1, now);
	minutes_are("{'exec': ['a'], 'rate': '777ms'}", START + 5, now);
	minutes_are("{'exec': ['a'], 'rate': '777ms'}", now + 5 * MINUTE, now);
	minutes_are("{'exec': ['a'], 'rate': '61s', 'spread': '3m'}", START + 5, now);
	minutes_are("{'exec': ['a'], 'rate': '20m'}", START + 10 * MINUTE, START + 30 * MINUTE);
	days->day = off;
	days->nr = 1;
	minutes_are("{'exec': ['a'], 'rate': '100ms', 'except': 'off'}", START,
		    START + DAY - 10 * MINUTE);
	minutes_are("{'exec': ['a'], 'cron': '* * * * *', 'except': 'off'}", START,
		    START + DAY - 10 * MINUTE);
	days->nr = 0;
	due_minutes(&d, "x", now + MINUTE, now, got, 2);
	due_minutes(&d, "x", now + 2 * MINUTE, now, got, 2);
	due_minutes(&d, "x", now - 1, now, got, 2);
	due_minutes(&d, "x", NEVER, now, got, 2);
	due_minutes(&d, "x", 0, now, got, 2);
	CHECK_EQ(got[0], 0);
	CHECK_EQ(got[1], 1);
	def_free(&d);
	d = good("{'exec': ['a'], 'rate': '1ms'}");
	work = due_minutes(&d, "x", START, START, got, 1);
	CHECK_EQ(work, 2);
	CHECK_EQ(got[0], 60000);
	def_free(&d);
}

/* ---- missed ------------------------------------------------------------------------- */

static void plan_is(const struct def *d, int64_t at, int64_t now, bool run, int64_t next,
		    int64_t missed)
{
	struct plan plan = plan_firing(d, "x", at, now, false);

	CHECK_EQ(plan.run, run);
	CHECK_EQ(plan.next, next);
	CHECK_EQ(plan.missed, missed);
}

/* A job that is due each minute, 10.5 minutes later. */
static void missed_times(const char *when)
{
	char text[128];
	int64_t now = START + 10 * MINUTE + 30 * US_PER_S;
	struct def d;

	snprintf(text, sizeof(text), "{'exec': ['a'], %s, 'missed': 'once'}", when);
	d = good(text);
	plan_is(&d, START, now, true, START + 11 * MINUTE, 10);
	plan_is(&d, START, START + MINUTE, true, START + MINUTE, 0);
	plan_is(&d, START, START + MINUTE + 1, true, START + 2 * MINUTE, 1);
	plan_is(&d, START, START + 3000000 * MINUTE, true, START + 3000001 * MINUTE,
		MISSED_COUNTED);
	def_free(&d);
	snprintf(text, sizeof(text), "{'exec': ['a'], %s, 'missed': 'skip'}", when);
	d = good(text);
	plan_is(&d, START, now, false, START + 10 * MINUTE, 10);
	plan_is(&d, START + 10 * MINUTE, now, true, START + 11 * MINUTE, 0);
	def_free(&d);
	snprintf(text, sizeof(text), "{'exec': ['a'], %s, 'missed': 'all'}", when);
	d = good(text);
	plan_is(&d, START, now, true, START + MINUTE, 0);
	plan_is(&d, START, START + 101 * MINUTE - 1, true, START + MINUTE, 0);
	plan_is(&d, START, START + 151 * MINUTE - 1, false, START + 50 * MINUTE, 50);
	plan_is(&d, START + 50 * MINUTE, START + 151 * MINUTE - 1, true, START + 51 * MINUTE, 0);
	def_free(&d);
}

static void missed_others(void)
{
	struct def d = good("{'exec': ['a'], 'at': '2026-11-22T01:00:00Z', 'missed': 'skip'}");
	struct plan plan;

	plan_is(&d, START, START + MINUTE, true, 0, 0);
	plan_is(&d, START, START + HOUR, false, 0, 1);
	def_free(&d);
	d = good("{'exec': ['a'], 'delay': '5s', 'missed': 'skip', 'grace': '1s'}");
	plan_is(&d, START, START, true, NEVER, 0);
	plan_is(&d, START, START + HOUR, false, START + HOUR + 5 * US_PER_S, 1);
	def_free(&d);
	/* A time that somebody asked for has no next time. */
	d = good("{'exec': ['a'], 'rate': '5s'}");
	plan = plan_firing(&d, "x", START, START + HOUR, true);
	CHECK_EQ(plan.run, true);
	CHECK_EQ(plan.next, 0);
	CHECK_EQ(plan.missed, 0);
	def_free(&d);
}

static void each_minute_by_cron(void)
{
	missed_times("'cron': '* * * * *'");
}

static void each_minute_by_rate(void)
{
	missed_times("'rate': '1m'");
}

static void point(const char *name, void (*fn)(void))
{
	bad = 0;
	fn();
	ok(!bad, "%s", name);
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	plan(13);
	point("definitions that are wrong are told why", wrong_definitions);
	point("definitions are understood", right_definitions);
	point("first and next times", first_times);
	point("a spread is a share of a name's own", shares);
	point("days off are left out, by the clock of the zone", days_off);
	point("days off are left out of a spread, too", spreads_off);
	point("each second, after days off", seconds_off);
	point("any days off", each_off);
	point("how much work that is", steps);
	point("times by the minute", minutes);
	point("times of cron that were missed", each_minute_by_cron);
	point("times of a rate that were missed", each_minute_by_rate);
	point("other times that were missed", missed_others);
	return done();
}
