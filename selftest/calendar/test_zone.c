// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Time zones, compared with the C library: those of this machine, and the same zones compiled by
 * zic in the slim form, which leaves to the rule what the other form lists as transitions. And
 * files that are no zones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"
#include "zone.h"
#include "zones.h"

#define DAY	86400
#define ZIC	"PATH=$PATH:/usr/sbin zic "

static char dir[64] = "/tmp/twheel-zones.XXXXXX";

static bool is_same_offset(const struct zone *zone, const char *name, int64_t t)
{
	struct zone_span span;

	zone_span(zone, t, &span);
	if (CHECK(span.from <= t && t < span.to) && CHECK_EQ(span.offset, libc_offset(t)))
		return true;
	diag("	of %s at %lld", name, (long long)t);
	return false;
}

/* Both sides of all spans from a year on. Each span must begin where the last one ends. */
static void spans(const struct zone *zone, const char *name, int from)
{
	int64_t t = new_year(from), end = new_year(2450);
	struct zone_span span, next;

	for (zone_span(zone, t, &span); span.to < end; span = next) {
		zone_span(zone, span.to, &next);
		if (!CHECK(next.from == span.to) || !is_same_offset(zone, name, span.to - 1) ||
		    !is_same_offset(zone, name, span.to))
			return;
	}
}

/* Random times: nothing that the C library knows may be missing. */
static void times(const struct zone *zone, const char *name, int from)
{
	for (int64_t t = new_year(from) + 43; t < new_year(2110); t += 20 * DAY + 7)
		if (!is_same_offset(zone, name, t))
			return;
}

static void all_zones(const char *where)
{
	struct zone_file *zones;
	size_t nr;

	zones = zones_find(where, &nr);
	CHECK(nr > 300);
	for (size_t i = 0; i < nr && !failed(); i++) {
		struct zone zone;

		libc_zone(where, zones[i].name);
		if (!CHECK_EQ(zone_read(&zone, zones[i].data, zones[i].size), 0))
			diag("	%s", zones[i].name);
		spans(&zone, zones[i].name, 1800);
		times(&zone, zones[i].name, 1850);
		free(zones[i].name);
		free(zones[i].data);
	}
	free(zones);
}

static void installed(void)
{
	all_zones(ZONEINFO);
}

static void other_form(void)
{
	char command[256];

	snprintf(command, sizeof(command), ZIC "-b slim -d %s %s/tzdata.zi", dir, ZONEINFO);
	if (CHECK_EQ(system(command), 0))
		all_zones(dir);
}

/* From 1970 on: before that the C library has no rules. */
static void rules(void)
{
	static const char *const good[] = {
		"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30", "NZST-12NZDT,M9.5.0,M4.1.0/3",
		"EST5EDT,M3.2.0,M11.1.0", "IST-1GMT0,M10.5.0,M3.5.0/1",
		"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
		"XXX3YYY2:30:10,J60/5:01:02,J300", "XXX-5YYY,59/0,300/-24:30", "AAA24:59:59",
		"BBB+3",
		"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "AAA3BBB,M1.1.1/25,M11.5.6/-167",
		"AAA1BBB,J59,J365",
	};

	for (u32 i = 0; i < ARRAY_SIZE(good); i++) {
		struct zone zone;

		CHECK_EQ(zone_posix(&zone, good[i]), 0);
		setenv("TZ", good[i], 1);
		tzset();
		spans(&zone, good[i], 1971);
		times(&zone, good[i], 1971);
	}
}

/*
 * A rule with summer time that does not say when: it is as in the USA. The C library takes that
 * from the file of a zone, up to 2037. If the file has other offsets than this zone, it is wrong by
 * hours on the day itself.
 */
static void no_days(void)
{
	static const char *const name[] = { "CET-1CEST", "EST5EDT4", "<-03>3<-02>2:30" };
	struct zone_span span;
	struct zone zone;

	for (u32 i = 0; i < ARRAY_SIZE(name); i++) {
		CHECK_EQ(zone_posix(&zone, name[i]), 0);
		setenv("TZ", name[i], 1);
		tzset();
		for (int64_t t = new_year(2008); t < new_year(2037); t += 3600) {
			zone_span(&zone, t, &span);
			if (t - span.from >= DAY && span.to - t >= DAY &&
			    !is_same_offset(&zone, name[i], t))
				break;
		}
	}
}

static void no_rules(void)
{
	static const char *const bad[] = {
		"", "U0", "UT0", "UTC", "UTC+", "UTC25", "UTC0:60", "UTC0:0:60", "UTC0x",
		"UTC0,M3.2.0,M11.1.0", "CET-1CEST-", "CET-1CE",
		"CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,", "CET-1CEST,M0.5.0,M10.5.0",
		"CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.0.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
		"CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J1", "CET-1CEST,J366,J1",
		"CET-1CEST,366,1",
		"CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0 ", "<+03-3", "<+0>-3",
		"C3T-1",
		"CET-1CEST-2,M3.5,M10.5.0", "<>-3", "A-24BBB-26,0,1", "AAA-24:59:59BBB-26,0,1",
		"UTC99999999999999999999",
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		struct zone zone;

		if (!CHECK_EQ(zone_posix(&zone, bad[i]), -EINVAL))
			diag("	of '%s'", bad[i]);
	}
}

/* Summer time all year: it ends at the moment when it begins. */
static void always_summer(void)
{
	struct zone_span span;
	struct zone zone;

	CHECK_EQ(zone_posix(&zone, "EST5EDT,0/0,J365/25"), 0);
	for (int64_t t = new_year(2000); t < new_year(2030); t += 3601) {
		zone_span(&zone, t, &span);
		CHECK_EQ(span.offset, -4 * 3600);
	}
}

static struct zone_file berlin(void)
{
	struct zone_file file = { .data = malloc(8192) };
	FILE *stream = fopen(ZONEINFO "/Europe/Berlin", "re");

	if (stream && file.data) {
		file.size = fread(file.data, 1, 8192, stream);
		fclose(stream);
	}
	CHECK(file.size > 500);
	return file;
}

static void cut_off_at_each_byte(const void *data, size_t whole)
{
	struct zone zone;

	CHECK_EQ(zone_read(&zone, data, whole), 0);
	for (size_t size = 0; size < whole; size++) {
		char *copy = malloc(size + !size);

		memcpy(copy, data, size);
		CHECK_EQ(zone_read(&zone, copy, size), -EINVAL);
		free(copy);
	}
}

/* A file that is cut off anywhere is refused, and nothing is read beyond its end. */
static void cut_off(void)
{
	struct zone_file file = berlin();

	cut_off_at_each_byte(file.data, file.size);
	cut_off_at_each_byte(zone_brief, sizeof(zone_brief));
	free(file.data);
}

/* What happens if a byte has another value. */
static void damaged(void)
{
	static const struct { int at; unsigned char byte; int err; } damage[] = {
		{ 0, 't', -EINVAL }, { 4, '2', -EINVAL }, { 35, 3, -EINVAL }, { 39, 0, -EINVAL },
		{ 39, 9, -EINVAL }, { 36, 255, -EINVAL }, { 50, 0x0d, -EINVAL }, { 52, 2, -EINVAL },
		{ 54, 1, -EINVAL }, { 60, 0x80, -EINVAL }, { 35, 1, -EINVAL }, { 5, 'x', 0 },
		{ 53, 1, 0 },
	};
	unsigned char copy[sizeof(zone_brief)];
	struct zone_span span;
	struct zone zone;

	CHECK_EQ(zone_read(&zone, zone_brief, sizeof(zone_brief)), 0);
	zone_span(&zone, 3600, &span);
	CHECK(span.from == 3600 && span.to == 5400 && span.offset == 3600);
	/* A transition at the time of the transition before it */
	memcpy(copy, zone_brief, sizeof(copy));
	memcpy(copy + 44, copy + 48, 4);
	CHECK_EQ(zone_read(&zone, copy, sizeof(copy)), -EINVAL);
	for (u32 i = 0; i < ARRAY_SIZE(damage); i++) {
		memcpy(copy, zone_brief, sizeof(copy));
		copy[damage[i].at] = damage[i].byte;
		if (!CHECK_EQ(zone_read(&zone, copy, sizeof(copy)), damage[i].err))
			diag("	byte %d", damage[i].at);
	}
}

/* The clocks of computers do not count leap seconds. */
static void leap_seconds(void)
{
	char command[256], path[96];
	struct zone zone;

	snprintf(command, sizeof(command),
		 ZIC "-L %s/leapseconds -d %s/leap %s/tzdata.zi 2>/dev/null", ZONEINFO, dir,
		 ZONEINFO);
	CHECK_EQ(system(command), 0);
	snprintf(path, sizeof(path), "%s/leap", dir);
	CHECK_EQ(zone_load_name(&zone, path, "Europe/Berlin"), -EOPNOTSUPP);
}

static void names(void)
{
	static const char *const none[] = {
		"", "/", ".", "..", "/etc/passwd", "../zoneinfo/UTC", "Europe/../UTC",
		"Europe//Berlin",
		"Europe/Berlin/", "Europe/.x", ":UTC", " UTC", "UTC ", "a\\b", "-UTC", "Etc/$x",
	};
	struct zone zone, zero = { 0 };
	char *name;

	for (u32 i = 0; i < ARRAY_SIZE(none); i++)
		if (!CHECK_EQ(zone_load_name(&zone, ZONEINFO, none[i]), -EINVAL))
			diag("	of '%s'", none[i]);
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, "Mars/Phobos"), -ENOENT);
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, "Europe"), -EISDIR);
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, "zone.tab"), -EINVAL);
	name = malloc(8193);
	memset(name, 'a', 8192);
	name[8192] = 0;
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, name), -ENAMETOOLONG);
	free(name);
	CHECK_EQ(zone_load(&zone, "/dev/zero"), -EINVAL);
	CHECK(!memcmp(&zone, &zero, sizeof(zone)));
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, "America/Argentina/Buenos_Aires"), 0);
	zone_free(&zone);
	zone_free(&zone);
	CHECK_EQ(zone_load_name(&zone, ZONEINFO, "Etc/GMT+12"), 0);
	zone_free(&zone);
}

/* Nothing overflows, and spans follow each other without gaps. */
static void ends_of_time(void)
{
	static const int64_t times[] = {
		INT64_MIN, INT64_MIN + 1, -(1LL << 60), 1LL << 60, INT64_MAX
	};
	struct zone_file file = berlin();
	struct zone_span span, next;
	struct zone zone;

	CHECK_EQ(zone_read(&zone, file.data, file.size), 0);
	for (u32 i = 0; i < ARRAY_SIZE(times); i++) {
		zone_span(&zone, times[i], &span);
		CHECK(span.from <= times[i] && (times[i] < span.to || span.to == INT64_MAX));
	}
	CHECK_EQ(zone_posix(&zone, "CET-1CEST,M3.5.0,M10.5.0/3"), 0);
	zone_span(&zone, INT64_MIN, &span);
	for (int i = 0; i < 3; i++, span = next) {
		zone_span(&zone, span.to, &next);
		CHECK_EQ(next.from, span.to);
	}
	zone_span(&zone, INT64_MAX, &span);
	for (int i = 0; i < 3; i++, span = next) {
		zone_span(&zone, span.from - 1, &next);
		CHECK_EQ(next.to, span.from);
	}
	free(file.data);
}

int main(void)
{
	static const struct test tests[] = {
		{ installed, "the zones of this machine are those of the C library" },
		{ other_form, "zones in the slim form are those of the C library" },
		{ rules, "rules are those of the C library" },
		{ no_days, "summer time of no length is that of the C library" },
		{ no_rules, "bad rules are refused" },
		{ always_summer, "summer time that never ends" },
		{ cut_off, "a file that is cut off" },
		{ damaged, "a file that is damaged" },
		{ leap_seconds, "zones that count leap seconds are refused" },
		{ names, "names of zones, good and bad" },
		{ ends_of_time, "the ends of time" },
	};
	char command[96];
	int bad;

	if (!mkdtemp(dir))
		bail(dir);
	bad = run_tests(tests, ARRAY_SIZE(tests));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) || bad;
}
