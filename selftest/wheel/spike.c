// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * No tick pays for a cascade: a million timers in few buckets far ahead, and the
 * most moves that any single tick has to do. A cascade of whole buckets would be
 * close to a million in the first three. (Where more than BOUND timers expire in a
 * tick, as many are moved in one, so such crowds are not among these.)
 *
 * Also, a timer moves four times at most, not counting looks through the far list,
 * and the wakes that a big bucket takes for itself are few beside its timers; and it is
 * begun with as late as can be, so that what is cancelled before is not moved.
 */
#include "test.h"

#define MANY		1000000
#define FAR_MANY	300000
#define BOUND		1100		/* moves in one tick */

#define HOUR		((u64)WHEEL_W2)
#define DAY		((u64)WHEEL_W3)
#define MS_DAY		86400000ULL	/* a day, in ticks of 1 ms */

static struct wheel_timer *timer;

/* Let them all fire, event by event, and give the verdict. Each may move @most times. */
static void run(const char *what, struct wheel *w, unsigned int n, u64 most, bool far)
{
	struct tally c = { 0 };
	bool good = sound(w);

	while (w->next != WHEEL_NEVER)
		hop(w, &c);
	ok(good && c.fired == n && !c.wrong && sound(w), "%s: each in its tick", what);
	ok(c.worst <= BOUND, "at most %llu moves in a tick", (ull)c.worst);
	ok(w->moves <= most * n, "%.2f moves a timer, of %llu it may", (double)w->moves / n,
	   (ull)most);
	/* A look through the far list begins with a step of its own. */
	ok(c.vain <= (w->moves + n) / 100 && c.idle <= (far ? most : 0),
	   "%llu wakes without an expiry, %llu without a move either", (ull)c.vain, (ull)c.idle);
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

static void near(const char *what, u64 clk, u64 from, u64 within)
{
	run(what, fill(clk, from, within, MANY), MANY, 4, false);
}

/* A bucket with fewer timers than ticks, while every tick has a step anyway. */
static void busy(u64 clk)
{
	const unsigned int n = DAY - 1, beats = 3 * DAY;
	struct wheel *w = fill(clk, (clk / DAY + 3) * DAY, DAY, n);
	unsigned int i;

	for (i = 0; i < beats; i++)
		wheel_add(w, &timer[n + i], clk + 1 + i);
	run("86 399 in a day bucket, and one in every tick before", w, n + beats, 4, false);
}

/* One look a year, from when the first comes into reach until the last has. */
static void beyond(u64 clk)
{
	struct wheel *w = fill(clk, clk + 40 * MS_DAY, 60 * MS_DAY, FAR_MANY);

	run("300 000 far, 40 to 100 days of 1 ms ticks", w, FAR_MANY,
	    4 + 60 * MS_DAY / WHEEL_W4 + 1, true);
}

/* A bucket that takes ten ticks to be made small is begun with ten ticks before it begins. */
static void late(u64 clk)
{
	const unsigned int n = 10 * WHEEL_BIG + 1, most = n - WHEEL_BIG;
	u64 from = (clk / HOUR + 3) * HOUR;
	struct wheel *w = fill(clk, from, HOUR, n);
	struct tally c = { 0 };
	unsigned int i;

	ok(w->next == from - 10, "a big bucket is begun with %llu ticks ahead",
	   (ull)(from - w->next));
	advance(w, from - 11, &c);
	ok(!w->moves, "and not before");
	advance(w, from - 10, &c);
	ok(w->moves == (most + 9) / 10, "%llu moves in the first tick", (ull)w->moves);
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

int main(int argc, char **argv)
{
	u64 clk;

	plan(4 * 9 + 5);
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
	busy(clk);
	beyond(clk);
	late(clk);
	free(timer);
	return done();
}
