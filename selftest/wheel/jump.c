// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Long times. The clock jumps by hours, days and years, and the wheel may process only the ticks
 * that have work. The timers of a century fire within seconds, each in its tick. What is measured
 * is the number of steps, not time.
 */
#include <time.h>

#include "test.h"

#define MINUTE		((u64)WHEEL_W1)
#define HOUR		((u64)WHEEL_W2)
#define DAY		((u64)WHEEL_W3)
#define YEAR		((u64)WHEEL_W4)

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* Queue @n timers within (@from, @from + @within]. Returns how many different ticks they have. */
static u64 scatter(struct wheel *w, struct wheel_timer *t, unsigned int n, u64 from,
		   u64 within)
{
	u64 *e = alloc(n, sizeof(*e)), ticks = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		e[i] = from + 1 + below(within);
		wheel_add(w, &t[i], e[i]);
	}
	qsort(e, n, sizeof(*e), by_value);
	for (i = 0; i < n; i++)
		ticks += !i || e[i] != e[i - 1];
	free(e);
	return ticks;
}

/* An empty wheel has no event, however far the clock jumps. */
static void empty_wheel(void)
{
	static const u64 jumps[] = {
		1, MINUTE, HOUR, 5 * HOUR + 1, DAY, 3 * DAY, YEAR, 30 * YEAR, 1000 * YEAR
	};
	struct wheel *w = new_wheel(42);
	struct tally c = { 0 };
	bool good = w->next == WHEEL_NEVER && !wheel_due(w, LLONG_MAX);
	struct wheel_timer t = { 0 }, other = { 0 };
	unsigned int i;
	u64 now = 42;

	for (i = 0; i < ARRAY_SIZE(jumps); i++) {
		now += jumps[i];
		advance(w, now, &c);
		good &= wheel_clk(w) == now && w->next == WHEEL_NEVER && sound(w);
	}
	ok(good && !c.steps, "an empty wheel has no event over jumps up to 1000 years");
	wheel_add(w, &t, now + DAY);
	advance(w, now + YEAR, &c);
	ok(c.fired == 1 && !c.wrong && c.steps == 1 && w->next == WHEEL_NEVER,
	   "nor has one whose last timer fired");
	wheel_add(w, &t, now + YEAR + DAY);
	wheel_del(w, &t);
	advance(w, now + 2 * YEAR, &c);
	ok(c.fired == 1 && c.steps <= 2 && w->next == WHEEL_NEVER,
	   "and after a cancel at most one step is in vain");
	now += 2 * YEAR;
	wheel_add(w, &t, now + DAY);
	wheel_add(w, &other, now + 1);
	wheel_del(w, &t);
	advance(w, now + 1, &c);
	ok(c.fired == 2 && w->next == WHEEL_NEVER, "none if there is a step before that");
	free(w);
}

/*
 * Sleep over @n timers within @within ticks: there must be as many steps as ticks with timers.
 * There are so few timers that no bucket is big: a big bucket is emptied in steps of its own.
 */
static void sleep_over(unsigned int n, u64 within, const char *what)
{
	struct wheel_timer *t = alloc(n, sizeof(*t));
	u64 start = below(YEAR), ticks;
	struct wheel *w = new_wheel(start);
	struct tally c = { 0 };
	bool good;

	ticks = scatter(w, t, n, start, within);
	good = sound(w);
	advance(w, start + within, &c);
	ok(good && c.fired == n && !c.wrong && c.steps == ticks && sound(w),
	   "%u timers, a sleep of %s: %llu steps for %llu ticks", n, what,
	   (ull)c.steps, (ull)ticks);
	free(w);
	free(t);
}

/* The same, one event after the other. */
static void sparse(void)
{
	struct wheel_timer t[200] = { 0 };
	u64 start = below(YEAR), ticks, wakes = 0;
	struct wheel *w = new_wheel(start);
	struct tally c = { 0 };

	ticks = scatter(w, t, ARRAY_SIZE(t), start, 90 * YEAR);
	for (; w->next != WHEEL_NEVER; wakes++)
		hop(w, &c);
	ok(c.fired == ARRAY_SIZE(t) && !c.wrong && wakes == ticks && c.steps == ticks && !c.vain,
	   "200 timers over 90 years: %llu wakes, %llu in vain", (ull)wakes, (ull)c.vain);
	free(w);
}

/*
 * Far timers that are all due in year 250, and something to do in every year until then. From year
 * 99 on, they are moved when the horizon has as many leading ones as year 250: in years 128, 192,
 * 224, 240, 248 and 250, each time in a step of its own.
 */
static void classes(void)
{
	const unsigned int near = 249, far = WHEEL_BIG, looks = 6;
	struct wheel_timer *t = alloc(near + far, sizeof(*t));
	struct wheel *w = new_wheel(0);
	struct tally c = { 0 };
	unsigned int i;
	u64 ticks;

	ticks = near + scatter(w, t + near, far, 250 * YEAR, YEAR - 1);
	for (i = 0; i < near; i++) {
		wheel_add(w, &t[i], (i + 1) * YEAR + YEAR / 2);
		advance(w, (i + 1) * YEAR + YEAR / 2, &c);
	}
	advance(w, 251 * YEAR, &c);
	ok(c.fired == near + far && !c.wrong && c.steps == ticks + looks,
	   "far timers are moved when their class is due: %llu steps for %llu ticks",
	   (ull)c.steps, (ull)ticks);
	free(w);
	free(t);
}

/* Far timers are not scanned again and again, however far apart they are. */
static void far_apart(void)
{
	const unsigned int n = 10000;
	struct wheel_timer *t = alloc(n, sizeof(*t));
	struct wheel *w = new_wheel(0);
	struct tally c = { 0 };
	u64 classes = 0;

	scatter(w, t, n, 0, 1000000000000);
	while (w->next != WHEEL_NEVER) {
		hop(w, &c);
		classes += w->bucket[w->far].n > 0;
	}
	ok(c.fired == n && !c.wrong && w->moves <= 20 * n && sound(w),
	   "%u timers over 10^12 ticks: %.2f moves a timer, of 20 it may", n,
	   (double)w->moves / n);
	ok(c.worst <= 512 && classes, "at most %llu moves in a tick", (ull)c.worst);
	free(w);
	free(t);
}

/* Jumps of every size over a filled wheel: each step must have something to do. */
static void hours_and_years(void)
{
	static const u64 unit[] = { 1, MINUTE, HOUR, DAY, YEAR };
	const unsigned int n = 20000;
	struct wheel_timer *t = alloc(n, sizeof(*t));
	struct tally c = { 0 };
	u64 now = 123456789, jumps = 0;
	struct wheel *w = new_wheel(now);
	unsigned int i;

	for (i = 0; i < n; i++)
		wheel_add(w, &t[i], now + 1 + below(90 * unit[i % 5]));
	while (wheel_nr(w)) {
		now += 1 + below(3 * unit[below(5)]);
		advance(w, now, &c);
		jumps++;
	}
	ok(c.fired == n && !c.wrong && c.steps <= n + w->moves && sound(w),
	   "%u timers, %llu jumps by ticks to years: %llu steps", n, (ull)jumps, (ull)c.steps);
	free(w);
	free(t);
}

/* Put timers into every year of the century, around its end, and into the next two centuries. */
static void fill_century(struct wheel *w, struct wheel_timer *t, unsigned int n, u64 start)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		u64 year = i % 10 ? i % 101 : 98 + i / 10 % 200;

		wheel_add(w, &t[i], start + year * YEAR + below(YEAR));
	}
}

static void century(u64 start)
{
	const unsigned int n = 200000;
	struct wheel_timer *t = alloc(n, sizeof(*t));
	struct wheel *w = new_wheel(start);
	struct tally c = { 0 };
	clock_t begin = clock();
	unsigned int full = 0, i;
	bool good;
	u64 far;

	fill_century(w, t, n, start);
	for (i = WHEEL_L4; i < WHEEL_FAR; i++)
		full += w->bucket[i].n > 0;
	for (i = WHEEL_FAR, far = 0; i < WHEEL_SLOTS; i++)
		far += w->bucket[i].n;
	good = sound(w);
	while (w->next != WHEEL_NEVER)
		hop(w, &c);
	ok(good && far && full == WHEEL_R4 - 2 && c.fired == n && !c.wrong && sound(w),
	   "from %llu: %u timers over 2 + %u years and beyond (%llu), each in its tick",
	   (ull)start, n, full, (ull)far);
	diag("%llu steps, %llu moves, at most %llu in a tick, %.2f s", (ull)c.steps,
	     (ull)w->moves, (ull)c.worst, (double)(clock() - begin) / CLOCKS_PER_SEC);
	free(w);
	free(t);
}

int main(int argc, char **argv)
{
	plan(4 + 4 + 1 + 1 + 2 + 1 + 2);
	rnd_state = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	empty_wheel();
	sleep_over(WHEEL_BIG, 3 * DAY, "3 days of 1 s ticks");
	sleep_over(WHEEL_BIG, 3 * 86400000ULL, "3 days of 1 ms ticks");
	sleep_over(200, 90 * YEAR, "90 years");
	sleep_over(1, 99 * YEAR, "99 years");
	sparse();
	classes();
	far_apart();
	hours_and_years();
	century(0);
	century(1234567 * YEAR + 12345678);
	return done();
}
