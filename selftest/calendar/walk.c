// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * cron_next() beside a walk by the C library's clock, in every zone there is.
 *
 *	walk			around every sixteenth change of a clock from 1900 to 2040, which
 *				are others in each zone, and around the last ones second by
 *				second
 *	walk FROM TO		every minute from one year to another
 *
 * The walk knows nothing of spans. It looks at the clock each time that it shows a whole minute,
 * and at the first second of each change, and remembers how far the clock has come. At these
 * moments an interval is due if the clock matches, and a fixed expression if the clock has
 * come to a time, or passed times, that match. Expressions are understood here once more, by
 * simpler means, and are looked at all at once, a bit for each.
 *
 * SEED=n: other expressions. As many processes as there are CPUs for this one (taskset) share the
 * zones. A walk of years tells of each zone that it has done.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cron.h"
#include "tap.h"
#include "zone.h"
#include "zones.h"

#define NR		24	/* expressions at once, of which some are known */
#define NR_KNOWN	10
#define DAY		86400
#define TOLD		20	/* wrong times that are told, and after which to stop */
#define WRONG_MAX	1000

static const char *const known[NR_KNOWN] = {
	"30 2 * * *", "0,15,30,45 2,3 * * *", "*/20 * * * *", "7 * * * *", "*/10 2 * * 0",
	"0 0 * * *", "59 23 L * *", "30 1 1-7 * 0", "0 12 */10 * 1-5", "15 0-3 * 3,4,9-11 *",
};

/* Of all processes. */
static struct shared {
	size_t		next;
	unsigned long	moments;
	unsigned long	due;
	unsigned long	wrong;
} *shared;

/* ---- expressions, understood the simple way --------------------------------------- */

static char text[NR][64];
static struct cron crons[NR];
static uint32_t seconds[60], minutes[60], hours[24], days[32], months[13], weekdays[8];
static uint32_t last_day, either, fixed;

/* Whether @value is one of @field, or NULL. */
static bool is_in(const char *field, int value, int min, int max)
{
	char copy[64], *rest = copy, *item;

	strcpy(copy, field);
	while ((item = strsep(&rest, ","))) {
		int first = min, last = max, step = 1;
		int n = sscanf(item, "%d-%d/%d", &first, &last, &step);

		if (!n)
			sscanf(item, "*/%d", &step);
		if (n == 1)
			last = first;
		if (*item != 'L' && value >= first && value <= last && !((value - first) % step))
			return true;
	}
	return false;
}

static void set_field(uint32_t *masks, int e, const char *field, int min, int max)
{
	for (int i = min; i <= max; i++)
		masks[i] = (masks[i] & ~(1U << e)) | (uint32_t)is_in(field, i, min, max) << e;
}

static void set_bit(uint32_t *mask, int e, bool set)
{
	*mask = (*mask & ~(1U << e)) | (uint32_t)set << e;
}

/* Make @e this expression. */
static void use(int e, const char *expression)
{
	char f[6][32] = { "0" }, error[CRON_ERROR];
	int n = sscanf(expression, "%31s %31s %31s %31s %31s %31s", f[0], f[1], f[2], f[3], f[4],
		       f[5]);

	if (n == 5) {
		memmove(f[1], f[0], 5 * sizeof(f[0]));
		strcpy(f[0], "0");
	}
	strcpy(text[e], expression);
	set_field(seconds, e, f[0], 0, 59);
	set_field(minutes, e, f[1], 0, 59);
	set_field(hours, e, f[2], 0, 23);
	set_field(days, e, f[3], 1, 31);
	set_field(months, e, f[4], 1, 12);
	set_field(weekdays, e, f[5], 0, 7);
	weekdays[0] |= weekdays[7] & 1U << e;
	set_bit(&last_day, e, strchr(f[3], 'L'));
	set_bit(&either, e, *f[3] != '*' && *f[5] != '*');
	set_bit(&fixed, e, *f[1] != '*' && *f[2] != '*');
	if (!cron_parse(&crons[e], expression, error)) {
		printf("Bail out! '%s': %s\n", expression, error);
		exit(1);
	}
}

/* A field of some kind; dense ones are not frequent, or all the time would go to them. */
static void random_field(char *s, uint64_t *state, int min, int max)
{
	int a = min + (int)draw(state, (uint32_t)(max - min + 1));
	int b = a + (int)draw(state, (uint32_t)(max - a + 1));

	switch (draw(state, 8)) {
	case 0:
		strcpy(s, "*");
		break;
	case 1:
		sprintf(s, "*/%d", (max - min) / 3 + (int)draw(state, 30));
		break;
	case 2:
		sprintf(s, "%d-%d/%d", a, b, 1 + (int)draw(state, (uint32_t)(max - min)));
		break;
	case 3:
	case 4:
		sprintf(s, "%d,%d", a, b);
		break;
	default:
		sprintf(s, "%d", a);
	}
}

static void random_expression(char *s, uint64_t *state, bool with_seconds)
{
	char f[6][32];

	random_field(f[0], state, 0, 59);
	random_field(f[1], state, 0, 59);
	random_field(f[2], state, 0, draw(state, 2) ? 23 : 4);
	random_field(f[3], state, 1, 31);
	strcpy(f[4], "*");
	random_field(f[5], state, 0, 7);
	if (draw(state, 2))
		strcpy(f[3], draw(state, 4) ? "*" : "L");
	if (draw(state, 4))
		strcpy(f[5], "*");
	else if (!draw(state, 4))
		random_field(f[4], state, 1, 12);
	sprintf(s, "%s%s%s %s %s %s %s", with_seconds ? f[0] : "", with_seconds ? " " : "", f[1],
		f[2], f[3], f[4], f[5]);
}

static void use_expressions(uint64_t *state, bool with_seconds)
{
	for (int e = 0; e < NR; e++) {
		char s[256];

		do {
			random_expression(s, state, with_seconds);
		} while (strlen(s) >= sizeof(text[0]));
		use(e, e < NR_KNOWN ? known[e] : s);
	}
}

static bool is_last(const struct tm *tm)
{
	static const int length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = tm->tm_year + 1900;
	bool leap = year % 400 == 0 || (year % 100 && year % 4 == 0);

	return tm->tm_mday == length[tm->tm_mon] + (tm->tm_mon == 1 && leap);
}

static uint32_t match(const struct tm *tm)
{
	uint32_t hit = seconds[tm->tm_sec] & minutes[tm->tm_min] & hours[tm->tm_hour] &
		       months[tm->tm_mon + 1], day, weekday;

	if (!hit)
		return 0;
	day = days[tm->tm_mday] | (is_last(tm) ? last_day : 0);
	weekday = weekdays[tm->tm_wday];
	return hit & ((either & (day | weekday)) | (~either & day & weekday));
}

/* ---- the walk ---------------------------------------------------------------------------- */

/**
 * struct walk - where a walk is
 * @zone:	the zone
 * @name:	its name
 * @step:	60, or 1 to go by seconds
 * @shown:	how far the clock has come
 * @want:	when cron_next() says that each expression is due
 * @first:	the first of these
 * @moments:	that were looked at
 * @due:	times that something was due
 */
struct walk {
	const struct zone	*zone;
	const char		*name;
	int			step;
	int64_t			shown;
	int64_t			want[NR];
	int64_t			first;
	unsigned long		moments;
	unsigned long		due;
};

static void wrong(const struct walk *w, int e, int64_t t, const char *what)
{
	if (__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED) < TOLD)
		diag("%s: '%s' is %s at %lld; cron_next() says %lld", w->name, text[e], what,
		     (long long)t, (long long)w->want[e]);
}

static void find_first(struct walk *w)
{
	w->first = INT64_MAX;
	for (int e = 0; e < NR; e++)
		if (w->want[e] < w->first)
			w->first = w->want[e];
}

static void want_next(struct walk *w, int e, int64_t t)
{
	if (!cron_next(&crons[e], w->zone, t, &w->want[e]))
		w->want[e] = INT64_MAX;
}

/* It is @t, and these expressions are due. */
static void judge(struct walk *w, int64_t t, uint32_t due)
{
	for (int e = 0; e < NR; e++) {
		bool is = due >> e & 1;

		if (is && w->want[e] != t)
			wrong(w, e, t, "due");
		else if (!is && w->want[e] <= t)
			wrong(w, e, t, "not due");
		if (is || w->want[e] <= t)
			want_next(w, e, t);
	}
	find_first(w);
	w->due += (unsigned int)__builtin_popcount(due);
}

/* Fixed expressions that match a time that the clock has come to or passed. */
static uint32_t passed(struct walk *w, int64_t local)
{
	uint32_t due = 0;

	for (int64_t l = w->shown - w->shown % w->step + w->step; l <= local; l += w->step) {
		time_t time = (time_t)l;
		struct tm tm;

		gmtime_r(&time, &tm);
		due |= match(&tm) & fixed;
	}
	return due;
}

static void moment(struct walk *w, int64_t t, const struct tm *tm)
{
	int64_t local = t + tm->tm_gmtoff;
	uint32_t due = 0;

	if (local % w->step == 0) {
		due = match(tm);
		if (local <= w->shown)
			due &= ~fixed;
	}
	if (local > w->shown + w->step || local % w->step)
		due |= passed(w, local);
	if (local > w->shown)
		w->shown = local;
	if (due || t >= w->first)
		judge(w, t, due);
	w->moments++;
}

/* How far the clock has come before @t; only the last days can matter. */
static int64_t shown_before(int64_t t)
{
	int64_t shown = t - 1 + libc_offset(t - 1);
	bool changed = false;

	for (int64_t x = t - 3 * DAY; x < t; x += 3600)
		changed |= libc_offset(x) != libc_offset(t);
	for (int64_t x = t - 3 * DAY; changed && x < t; x++)
		if (x + libc_offset(x) > shown)
			shown = x + libc_offset(x);
	return shown;
}

static int64_t align(int64_t t, long offset, int step)
{
	int64_t rest = (t + offset) % step;

	return rest ? t - rest + (rest > 0 ? step : 0) : t;
}

static void walk(struct walk *w, int64_t from, int64_t to)
{
	time_t t = (time_t)align(from, libc_offset(from), w->step);
	struct tm tm;
	long offset;

	/* Times before 1970 have remainders below 0; from here on nothing asks for them. */
	w->shown = shown_before(t);
	for (int e = 0; e < NR; e++)
		want_next(w, e, t - 1);
	find_first(w);
	localtime_r(&t, &tm);
	while (t < to && shared->wrong < WRONG_MAX) {
		time_t next = t + w->step;

		moment(w, t, &tm);
		offset = tm.tm_gmtoff;
		localtime_r(&next, &tm);
		if (tm.tm_gmtoff != offset) {
			next = libc_change(t, next);
			localtime_r(&next, &tm);
			moment(w, next, &tm);
			next = align(next + 1, tm.tm_gmtoff, w->step);
			localtime_r(&next, &tm);
		}
		t = next;
	}
}

/* All changes of the clock, and around some of them a walk. */
static void walk_changes(struct walk *w, uint64_t *state, int from, int to)
{
	size_t one_of = 16, first = draw(state, (uint32_t)one_of);
	int64_t changes[1024], end = new_year(to);
	long offset = libc_offset(new_year(from));
	size_t n = 0;

	for (int64_t t = new_year(from); t < end && n < 1024; t += DAY) {
		long next = libc_offset(t + DAY);

		if (next != offset)
			changes[n++] = libc_change(t, t + DAY);
		offset = next;
	}
	w->step = 60;
	use_expressions(state, false);
	for (size_t i = first; i < n; i += one_of)
		walk(w, changes[i] - 25 * 3600, changes[i] + 49 * 3600);
	w->step = 1;
	use_expressions(state, true);
	for (size_t i = n > 2 ? n - 2 : 0; i < n; i++)
		walk(w, changes[i] - 5400, changes[i] + 2 * 3600);
}

static void walk_zone(const struct zone_file *file, int from, int to)
{
	uint64_t state = strtoull(getenv("SEED") ?: "1", NULL, 10);
	struct walk w = { .name = file->name, .step = 60 };
	struct zone zone;

	/* Other expressions for each zone, whichever process has it. */
	for (const char *p = file->name; *p; p++)
		state = state * 31 + (unsigned char)*p;
	w.zone = &zone;
	if (zone_read(&zone, file->data, file->size)) {
		shared->wrong++;
		diag("%s is not understood", file->name);
		return;
	}
	libc_zone(ZONEINFO, file->name);
	if (from) {
		use_expressions(&state, false);
		walk(&w, new_year(from), new_year(to));
	} else {
		walk_changes(&w, &state, 1900, 2040);
	}
	__atomic_fetch_add(&shared->moments, w.moments, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->due, w.due, __ATOMIC_RELAXED);
}

/* What a process does: the next zone that nobody has begun. */
static void work(const struct zone_file *zones, size_t nr, int from, int to)
{
	size_t i;

	while ((i = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < nr) {
		walk_zone(&zones[i], from, to);
		if (from) {
			diag("%zu of %zu: %s, %lu wrong so far", i + 1, nr, zones[i].name,
			     shared->wrong);
			fflush(stdout);
		}
	}
}

static int nr_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
	int processes = nr_cpus();
	struct zone_file *zones;
	int status, bad = 0;
	size_t nr;

	plan(3);
	zones = zones_find(ZONEINFO, &nr);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	fflush(stdout);
	for (int i = 0; i < processes; i++)
		if (!fork()) {
			work(zones, nr, argc > 2 ? atoi(argv[1]) : 0, argc > 2 ? atoi(argv[2]) : 0);
			fflush(stdout);
			_exit(0);
		}
	while (wait(&status) > 0)
		bad |= status;
	ok(!bad && nr > 300, "%zu zones were walked through", nr);
	ok(!shared->wrong, "of %lu times when something is due none is wrong", shared->due);
	ok(shared->due > shared->moments / 100, "%lu moments were looked at", shared->moments);
	return done();
}
