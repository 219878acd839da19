// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * No tick pays for a cascade. A million timers are in few buckets far ahead, and the test counts
 * the most moves in any single tick. A cascade of whole buckets would move close to a million in
 * the first three loads. Each tick of each load is judged by the bound in the head of wheel.h.
 *
 * Also: a timer moves at most four times, without the classes of far timers. Wake-ups that only
 * move timers are fewer than one percent of the timers: half a percent for each bucket that they
 * are drained from, which is two here, and for each class that far timers pass through. And a
 * bucket is emptied as late as possible, so that timers which are cancelled before that are not
 * moved. At last timers that may be late: they share ticks.
 */
#include "test.h"

#define MANY		1000000
#define FAR_MANY	300000
#define BOUND		512		/* moves in one tick, but those of a crowded minute */

#define HOUR		((u64)WHEEL_W2)
#define DAY		((u64)WHEEL_W3)
#define MS_DAY		86400000ULL	/* a day, in ticks of 1 ms */
#define MINUTE		60000		/* a minute of them */

static struct wheel_timer *timer;

/*
 * Let all timers fire, one event after the other. Did each tick keep to the bound: BOUND, and a
 * 59th of the next bucket of level 1, as it was when clk came to the bucket before that one?
 */
static bool drained(struct wheel *w, struct tally *c)
{
	const struct wheel_level *minutes = &wheel_levels[1];
	u64 next = 0;
	u32 n = 0;
	bool kept = true;

	while (w->next != WHEEL_NEVER) {
		u64 q = w->next / WHEEL_W1 + 1, moves = w->moves;

		if (q != next) {
			next = q;
			n = w->bucket[minutes->first + q % minutes->slots].n;
		}
		hop(w, c);
		kept &= w->moves - moves <= BOUND + (n + WHEEL_W1 - 2) / (WHEEL_W1 - 1);
	}
	return kept;
}

/* Let all timers fire, and judge. Each may move @most times. */
static void run(const char *what, struct wheel *w, unsigned int n, u64 most)
{
	struct tally c = { 0 };
	bool good = sound(w), kept = drained(w, &c);

	ok(good && c.fired == n && !c.wrong && sound(w), "%s: each in its tick", what);
	ok(kept, "at most %llu moves in a tick", (ull)c.worst);
	ok(w->moves <= most * n, "%.2f moves a timer, of %llu it may", (double)w->moves / n,
	   (ull)most);
	ok(c.vain <= (most > 4 ? w->moves : 2 * n) / 200 && !c.idle,
	   "%llu wakes without an expiry, %.2f %%; %llu without a move either", (ull)c.vain,
	   100.0 * c.vain / n, (ull)c.idle);
	free(w);
}

/* @n timers within @within ticks from @from on, in a wheel at @clk. */
static struct wheel *fill(u64 clk, u64 from, u64 within, unsigned int n)
{
	struct wheel *w = new_wheel(clk);
	unsigned int i;

	memset(timer, 0, MANY * sizeof(*timer));
	for (i = 0; i < n; i++)
		wheel_add(w, &timer[i], from + below(within));
	return w;
}

/*
 * A million timers are due within @ticks across the edge of an hour, a day ahead of @clk or more.
 * Minutes before the edge are drained while the hour after it is drained, too.
 */
static void crowd(u64 clk, u64 ticks)
{
	u64 edge = (clk / HOUR + 25 + below(24)) * HOUR;
	struct wheel *w = fill(clk, edge - 1 - below(ticks - 1), ticks, MANY);
	struct tally c = { 0 };
	bool kept = drained(w, &c);

	ok(kept && c.fired == MANY && !c.wrong && sound(w),
	   "1 M within %llu ticks across the edge of an hour: at most %llu moves in a tick",
	   (ull)ticks, (ull)c.worst);
	free(w);
}

static void near(const char *what, u64 clk, u64 from, u64 within)
{
	run(what, fill(clk, from, within, MANY), MANY, 4);
}

/* A bucket with fewer timers than ticks, in a wheel that has a step in every tick. */
static void busy(u64 clk)
{
	const unsigned int n = DAY - 1, beats = 3 * DAY;
	struct wheel *w = fill(clk, (clk / DAY + 3) * DAY, DAY, n);
	unsigned int i;

	for (i = 0; i < beats; i++)
		wheel_add(w, &timer[n + i], clk + 1 + i);
	run("86 399 in a day bucket, and one in every tick before", w, n + beats, 4);
}

/* These timers are due within 2^9 buckets of level 4, so they pass through at most nine classes. */
static void beyond(u64 clk)
{
	struct wheel *w = fill(clk, clk + 40 * MS_DAY, 60 * MS_DAY, FAR_MANY);

	run("300 000 far, 40 to 100 days of 1 ms ticks", w, FAR_MANY, 4 + 9);
}

/*
 * In idle ticks a big bucket costs an event for each chunk, and one for what is left after the last
 * whole chunk. If it has more than 800 timers, that is an event for less than half a percent.
 */
static void big_events(u64 clk)
{
	u64 end = (clk / WHEEL_W1 + 4) * WHEEL_W1;
	unsigned int n, i;
	bool good = true;

	for (n = WHEEL_BIG + 1; n <= 1600 && good; n++) {
		struct wheel *w = new_wheel(clk);
		struct tally c = { 0 };

		memset(timer, 0, n * sizeof(*timer));
		for (i = 0; i < n; i++)
			wheel_add(w, &timer[i], end - 1);
		while (w->next != WHEEL_NEVER)
			hop(w, &c);
		good = c.fired == n && !c.wrong && !c.idle &&
		       c.vain <= (n - WHEEL_BIG + WHEEL_CHUNK - 1) / WHEEL_CHUNK &&
		       (n <= 800 || c.vain * 200 < n);
		if (!good)
			diag("%u timers: %llu wakes without an expiry", n, (ull)c.vain);
		free(w);
	}
	ok(good, "big buckets of 33 to 1600 timers: an event for each chunk that was begun");
}

/*
 * Draining of a bucket that takes ten ticks begins ten ticks before the bucket. If ticks are idle,
 * it moves a chunk, and pauses until the rest must be moved.
 */
static void late(u64 clk)
{
	const unsigned int n = 10 * WHEEL_BIG + 1, most = n - WHEEL_BIG;
	u64 from = (clk / HOUR + 3) * HOUR;
	struct wheel *w = fill(clk, from, HOUR, n);
	struct tally c = { 0 };
	unsigned int i;

	ok(w->next == from - 10, "draining a big bucket starts %llu ticks ahead",
	   (ull)(from - w->next));
	advance(w, from - 11, &c);
	ok(!w->moves, "and not before");
	advance(w, from - 10, &c);
	ok(w->moves == WHEEL_CHUNK, "%llu moves in the first tick", (ull)w->moves);
	ok(w->next == from - (n - WHEEL_CHUNK - 1) / WHEEL_BIG, "and none in the next ones");
	advance(w, from - 1, &c);
	ok(w->moves == most && sound(w), "when it begins %llu are left", (ull)(n - w->moves));
	free(w);

	w = fill(clk, from, HOUR, n);
	for (i = WHEEL_BIG; i < n; i++)
		wheel_del(w, &timer[i]);
	advance(w, from - 1, &c);
	ok(!w->moves && sound(w), "what is left of one after cancels stays");
	free(w);
}

/* If there is a step in each tick, the moves are spread evenly over the last ten. */
static void evenly(u64 clk)
{
	const unsigned int n = 10 * WHEEL_BIG + 1, most = n - WHEEL_BIG;
	u64 from = (clk / HOUR + 3) * HOUR;
	struct wheel *w = fill(clk, from, HOUR, n);
	struct tally c = { 0 };
	unsigned int i;

	wheel_forward(w, from - 12);
	for (i = 0; i < 11; i++)
		wheel_add(w, &timer[n + i], from - 11 + i);
	advance(w, from - 11, &c);
	ok(!w->moves, "where ticks are busy nothing is moved earlier");
	advance(w, from - 10, &c);
	ok(w->moves == (most + 9) / 10, "and %llu in the first tick", (ull)w->moves);
	advance(w, from - 1, &c);
	ok(w->moves == most && c.fired == 11 && sound(w), "and all in time");
	free(w);
}

/*
 * Where something is due in every tick, no tick moves a chunk, not even the tick before a stop.
 * From @from on, each of the buckets next to the current ones moves what it owes, and no more.
 */
static void dense(const char *what, u64 clk, u64 from)
{
	const u64 within = 14 * HOUR;
	struct wheel *w = fill(clk, from, within, MANY);
	struct tally c = { 0 };

	advance(w, from + 2 * HOUR, &c);
	c.worst = 0;
	while (w->next < from + within - 2 * HOUR)
		hop(w, &c);
	ok(!c.wrong && sound(w) && c.worst <= 3 * WHEEL_BIG,
	   "20 timers in each tick, %s: at most %llu moves in a tick", what, (ull)c.worst);
	free(w);
}

/*
 * 10 000 timers up to 60 000 ticks ahead, which may be late by that part of their delay: they share
 * ticks, and are hardly moved. With 0 none may be late. Returns the ticks with an event.
 */
static u64 sharing(u64 clk, unsigned int part)
{
	const unsigned int n = 10000;
	struct wheel *w = new_wheel(clk);
	struct tally c = { 0 };
	u64 late = 0, events = 0;
	unsigned int i;

	memset(timer, 0, n * sizeof(*timer));
	for (i = 0; i < n; i++) {
		u64 delay = 1 + below(MINUTE), first = clk + delay;
		u64 last = first + (part ? delay / part : 0);

		late += wheel_choose(first, last) - first;
		wheel_add_range(w, &timer[i], first, last);
	}
	for (; w->next != WHEEL_NEVER; events++)
		hop(w, &c);
	ok(c.fired == n && !c.wrong && sound(w) && (!part || 5 * w->moves < n),
	   "up to a %uth late, 0 for never: each in its tick, and hardly moved if it may be late",
	   part);
	diag("%llu ticks with an event, %.3f moves each, %.0f ticks late", (ull)events,
	     (double)w->moves / n, (double)late / n);
	free(w);
	return events;
}

static void shared(u64 clk)
{
	u64 exact = sharing(clk, 0), little = sharing(clk, 32), more = sharing(clk, 8);

	ok(25 * little <= exact && 50 * more <= exact,
	   "timers that may be late share ticks: %llu and %llu instead of %llu", (ull)little,
	   (ull)more, (ull)exact);
}

int main(int argc, char **argv)
{
	static const unsigned int crowds[] = { 30, 15, 10, 5, 1 };	/* minutes */
	u64 clk;

	plan(4 * 9 + 5 + 1 + 6 + 3 + 2 + 4);
	rnd_state = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	timer = alloc(MANY, sizeof(*timer));
	clk = 1000 * DAY + below(DAY);
	near("1 M in an hour a day ahead", clk, clk + DAY, HOUR);
	near("1 M in one hour bucket", clk, (clk / HOUR + 24) * HOUR, HOUR);
	near("1 M in the second half of one", clk, (clk / HOUR + 24) * HOUR + HOUR / 2, HOUR / 2);
	near("1 M in a day 30 days ahead", clk, clk + 30 * DAY, DAY);
	near("1 M in one day bucket", clk, (clk / DAY + 30) * DAY, DAY);
	near("1 M over the next hour", clk, clk + 1, HOUR);
	near("1 M over 90 years", clk, clk + 1, 90 * (u64)WHEEL_W4);
	for (unsigned int i = 0; i < ARRAY_SIZE(crowds); i++)
		crowd(clk, crowds[i] * WHEEL_W1);
	busy(clk);
	beyond(clk);
	big_events(clk);
	late(clk);
	evenly(clk);
	dense("in the next hours", clk, clk + 1);
	dense("days ahead", clk, clk + 3 * DAY);
	shared(clk);
	free(timer);
	return done();
}
