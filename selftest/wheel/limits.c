// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The limits of a tick: expiries in the past, the end of time, clocks past 2^53, an empty wheel,
 * and an advance to a time in the past.
 *
 * An advance to WHEEL_NEVER is not tested. That is not a time: the last tick that a wheel can reach
 * is the one before.
 */
#include "test.h"

#define LAST	(WHEEL_NEVER - 1)

/* An expiry in the past means the next tick. */
static bool over_already(u64 clk, u64 expires)
{
	struct wheel *w = new_wheel(clk);
	struct wheel_timer t = { 0 };
	struct tally c = { 0 };
	bool good;

	good = wheel_add(w, &t, expires) && t.expires == clk + 1 && w->next == clk + 1;
	advance(w, clk, &c);
	good &= !c.fired;
	advance(w, clk + 1, &c);
	good &= c.fired == 1 && !c.wrong && sound(w);
	free(w);
	return good;
}

static void past(void)
{
	ok(over_already(0, 0) && over_already(1000, 0) && over_already(1000, 999) &&
	   over_already(SPAN, SPAN) && over_already(LAST - 1, 0),
	   "an expiry that is over means the next tick");
}

/* A timer at WHEEL_NEVER never fires, and can be cancelled. */
static void never(u64 clk)
{
	struct wheel *w = new_wheel(clk);
	struct wheel_timer t = { 0 };
	struct tally c = { 0 };
	bool good;

	wheel_add(w, &t, WHEEL_NEVER);
	good = sound(w);
	advance(w, clk + 3 * SPAN, &c);
	good &= sound(w);
	advance(w, LAST, &c);
	good &= !c.fired && wheel_clk(w) == LAST && wheel_pending(&t) && sound(w);
	wheel_del(w, &t);
	good &= !wheel_nr(w) && sound(w);
	ok(good, "WHEEL_NEVER does not fire; %llu steps from %llu", (ull)c.steps, (ull)clk);
	free(w);
}

/* Timers in the last ticks that there are. */
static void end_of_time(u64 clk)
{
	static struct wheel_timer t[100];
	struct wheel *w = new_wheel(clk);
	struct tally c = { 0 };
	unsigned int i;
	bool good;

	memset(t, 0, sizeof(t));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		wheel_add(w, &t[i], LAST - i * i * (SPAN / 1000 + 1));
	good = sound(w);
	advance(w, LAST - 1, &c);
	good &= c.fired == ARRAY_SIZE(t) - 1 && sound(w);
	advance(w, LAST, &c);
	good &= c.fired == ARRAY_SIZE(t) && !c.wrong && !wheel_nr(w) && sound(w);
	ok(good, "the last expiries before it do, from %llu", (ull)clk);
	free(w);
}

/* Big buckets and far lists at a clock that a double could not represent. */
static void large_clock(u64 clk)
{
	static struct wheel_timer t[40 * WHEEL_BIG];
	struct wheel *w = new_wheel(clk);
	struct tally c = { 0 };
	unsigned int i;
	bool good;

	memset(t, 0, sizeof(t));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		wheel_add(w, &t[i], clk + below(i % 8 ? 2 * width[1 + i % 5] : width[2]));
	good = sound(w);
	while (w->next != WHEEL_NEVER)
		hop(w, &c);
	ok(good && c.fired == ARRAY_SIZE(t) && !c.wrong && sound(w),
	   "%u timers over two spans from %llu", (unsigned int)ARRAY_SIZE(t), (ull)clk);
	free(w);
}

/* An advance to a time in the past does nothing, nor does one with a budget of 0. */
static void no_op(void)
{
	struct wheel_timer t = { 0 };
	struct wheel *w = new_wheel(1000);
	u32 budget = 5;
	bool good;

	wheel_add(w, &t, 1002);
	good = !wheel_expire(w, 999, &budget) && !wheel_expire(w, 0, &budget) &&
	       !wheel_expire(w, 1000, &budget);
	wheel_forward(w, 999);
	wheel_forward(w, 1002);		/* the event is not skipped */
	ok(good && budget == 5 && wheel_clk(w) == 1000, "a time that is over does nothing");
	budget = 0;
	good = !wheel_expire(w, 1002, &budget);
	ok(good && !budget && wheel_clk(w) == 1000 && !w->phase && wheel_due(w, 1002),
	   "nor does an empty budget");
	budget = 2;
	good = wheel_expire(w, 1002, &budget) == &t;
	ok(good && !budget && wheel_clk(w) == 1002,
	   "a step and an expiry take one each off a budget");
	free(w);
}

/* The wheel does not touch the fields that belong to the owner. */
static void owner(void)
{
	struct wheel_timer t = { .flags = 0xa5a5, .data = 0x5a5a5a5a };
	struct wheel *w = new_wheel(0);
	struct tally c = { 0 };

	wheel_add(w, &t, 2 * SPAN);
	wheel_del(w, &t);
	wheel_add(w, &t, 2 * SPAN + 1);
	advance(w, 3 * SPAN, &c);
	ok(c.fired == 1 && t.flags == 0xa5a5 && t.data == 0x5a5a5a5a &&
	   t.expires == 2 * SPAN + 1, "flags and data stay as they were");
	free(w);
}

int main(int argc, char **argv)
{
	static const u64 clocks[] = {
		((u64)1 << 32) - 1, ((u64)1 << 53) - 2, (u64)1 << 53, (u64)1 << 63
	};
	unsigned int i;

	plan(1 + 2 * 3 + ARRAY_SIZE(clocks) + 3 + 1);
	rnd_state = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	past();
	never(0);
	never((u64)1 << 53);
	never(LAST - SPAN / 2);
	end_of_time(0);
	end_of_time((u64)1 << 53);
	end_of_time(LAST - 100 * 100 * (SPAN / 1000 + 1));
	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		large_clock(clocks[i]);
	no_op();
	owner();
	return done();
}
