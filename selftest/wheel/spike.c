// SPDX-License-Identifier: GPL-2.0
/*
 * No tick pays for a cascade: a million timers in few buckets far ahead, and the
 * most moves that any single tick has to do. A cascade of whole buckets would be
 * close to a million in the first two. Also, a timer moves four times at most, not
 * counting looks through the far list, and the steps that a big bucket takes for
 * itself are few beside its timers.
 */
#include "test.h"

#define MANY		1000000
#define FAR_MANY	300000
#define BOUND		1100		/* moves in one tick */

#define HOUR		((u64)WHEEL_W2)
#define DAY		((u64)WHEEL_W3)
#define MS_DAY		86400000ULL	/* a day, in ticks of 1 ms */

static struct wheel_timer *timer;

/*
 * @n timers within @within ticks from @from on, in a wheel at @clk: event by event.
 * Each may be moved @most times.
 */
static void run(const char *what, u64 clk, u64 from, u64 within, unsigned int n, u64 most)
{
	struct wheel *w = new_wheel(clk);
	struct tally c = { 0 };
	unsigned int i;
	bool good;

	memset(timer, 0, n * sizeof(*timer));
	for (i = 0; i < n; i++)
		wheel_add(w, &timer[i], from + below(within));
	good = sound(w);
	while (w->next != WHEEL_NEVER)
		hop(w, &c);
	ok(good && c.fired == n && !c.wrong && sound(w), "%s: each in its tick", what);
	ok(c.worst <= BOUND, "at most %llu moves in a tick", (ull)c.worst);
	ok(w->moves <= most * n, "%.2f moves a timer, of %llu it may", (double)w->moves / n,
	   (ull)most);
	ok(c.vain <= (w->moves + n) / 100, "%llu wakes without an expiry", (ull)c.vain);
	free(w);
}

int main(int argc, char **argv)
{
	u64 clk;

	plan(4 * 7);
	rnd_state = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	timer = alloc(MANY, sizeof(*timer));
	clk = 1000 * DAY + below(DAY);
	run("1 M in an hour a day ahead", clk, clk + DAY, HOUR, MANY, 4);
	run("1 M in one hour bucket", clk, (clk / HOUR + 24) * HOUR, HOUR, MANY, 4);
	run("1 M in a day 30 days ahead", clk, clk + 30 * DAY, DAY, MANY, 4);
	run("1 M in one day bucket", clk, (clk / DAY + 30) * DAY, DAY, MANY, 4);
	run("1 M over the next hour", clk, clk + 1, HOUR, MANY, 4);
	run("1 M over 90 years", clk, clk + 1, 90 * (u64)WHEEL_W4, MANY, 4);
	/* One look a year, from when the first comes into reach until the last has. */
	run("300 000 far, 40 to 100 days of 1 ms ticks", clk, clk + 40 * MS_DAY, 60 * MS_DAY,
	    FAR_MANY, 4 + 60 * MS_DAY / WHEEL_W4 + 1);
	free(timer);
	return done();
}
