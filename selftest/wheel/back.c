// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Random operations on a wheel whose clock is set, beside an oracle: see back.h.
 *
 * An episode depends only on its seed, which is SEED plus its number. OPS is the number of
 * operations.
 */
#include <time.h>

#include "back.h"

#define EPISODE		20000
#define ENOUGH		1000000		/* operations: enough for every situation */

static u64 seed;

/* The character of the episode. */
static unsigned int reach;		/* how far delays and settings of the clock go, in levels */
static u32 budget_max;
static unsigned int advances, clocks, cancels, puts_off, ranges;	/* percent */

/* A distance of the magnitude of some level up to @most. */
static u64 distance(unsigned int most)
{
	return below(2 * width[1 + below(most + 1)]);
}

static u64 some_expiry(void)
{
	u64 unit;

	switch (below(12)) {
	case 0:
		return now - below(3) * (now > 2);
	case 1:
	case 2:
		return due[below(nr)];				/* the tick of another timer */
	case 3:
		return wheel_clk(w) - 1 + below(3);		/* when clk is there, or nearly */
	case 4:
		return b.small ? now + 1 : b.held + below(3);
	case 5:
		unit = width[1 + below(reach + 1)];
		return ((now + distance(reach)) / unit + 1) * unit + below(3) - 1;
	case 6:
		return below(32) ? now + 1 : WHEEL_NEVER - 1 - below(3);
	default:
		return now + distance(reach);
	}
}

/* A time to set the clock to: neither before the clock's beginning, nor near the end of time. */
static u64 some_set(void)
{
	u64 by = distance(reach), t;

	switch (below(8)) {
	case 0:
		t = wheel_is_held(w) ? b.held : wheel_clk(w);
		t += below(3) - 1;
		break;
	case 1:
		t = earliest() - 1 + below(3);
		break;
	case 2:
		t = now - WHEEL_BACK - 1 + below(3);
		break;
	case 3:
	case 4:
		t = now + by;
		break;
	default:
		t = now - by;
	}
	return t > 2 && t < 5000 * SPAN ? t : now;
}

/* Arm timer @i with a tolerance. In half of the cases its present tick is among those allowed. */
static void arm_range(unsigned int i)
{
	u64 first = some_expiry(), late = below(2) ? below(width[2]) : distance(reach);

	if (due[i] != IDLE && below(2))
		first = due[i] - (due[i] > late ? below(late + 1) : 0);
	if (first > WHEEL_NEVER - late)
		return;
	if (due[i] == IDLE)
		add_within(i, first, first + late);
	else
		mod_within(i, first, first + late);
}

static void one_operation(void)
{
	unsigned int r = below(100), i = below(nr);

	if (b.small && !below(1000)) {
		grow();
		return;
	}
	if (r < advances) {
		if (now < 5000 * SPAN)
			forward(below(4) ? below(4) : distance(reach));
		advance_by(below(8) ? 1 + below(budget_max) : NO_LIMIT);
	} else if (r < advances + clocks) {
		set(some_set(), below(2));
	} else if (due[i] == IDLE && below(100) >= ranges) {
		add(i, some_expiry());
	} else if (due[i] == IDLE) {
		arm_range(i);
	} else if (below(100) < cancels) {
		del(i);
	} else if (below(100) < puts_off && below(100) < ranges) {
		arm_range(i);
	} else if (below(100) < puts_off) {
		mod(i, below(4) ? due[i] + distance(reach) : some_expiry());
	}
}

static void begin_episode(void)
{
	static const unsigned int sizes[] = { 2, 16, 2 * WHEEL_BIG + 40, NR_MAX };
	static const u32 budgets[] = { 1, 3, 100, NO_LIMIT };

	begin(2500 * SPAN + below(SPAN), sizes[below(ARRAY_SIZE(sizes))], !below(3));
	budget_max = budgets[below(ARRAY_SIZE(budgets))];
	reach = below(5);
	advances = 5 + below(50);
	clocks = below(10);
	cancels = below(100);
	puts_off = below(2) * below(100);
	ranges = below(2) * below(100);
}

#define CHECK_EVERY	(WHEEL_SLOTS > 200 ? 200 : 10)

static void episode(void)
{
	u64 end = ops + EPISODE;

	rnd_state = seed;
	begin_episode();
	while (ops < end && !failed()) {
		one_operation();
		if (!below(CHECK_EVERY))
			expect(SOUND, all_sound());
	}
	finish();
	if (failed())
		diag("SEED=%llu", (ull)seed);
}

static void coverage(void)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < NR_SEEN; i++) {
		diag("%-24s %llu", sight[i], (ull)count[i]);
		all &= count[i] > 0;
	}
	ok(all || ops < ENOUGH, "every kind of place and moment was reached");
}

/* The depth of the tree below @t. */
static unsigned int depth(const struct wheel_timer *t)
{
	unsigned int a, z;

	if (!t)
		return 0;
	a = depth(t->child[0]);
	z = depth(t->child[1]);
	return 1 + (a > z ? a : z);
}

/*
 * Put @n timers within @spread ticks, and set the clock back by an hour of 1 ms ticks. How many
 * calls of 64 operations does the wheel need until it has followed, and how deep does the tree get?
 * Not for the tiny geometry.
 */
static void follow(unsigned int n, u64 spread, const char *what)
{
	struct wheel_timer *t = alloc(n, sizeof(*t)), *got[64];
	u64 time = 1000 * SPAN, hour = 3600000, fired = 0, calls = 0, moves;
	unsigned int deep = 0, i;
	bool good = true;

	w = new_wheel(time);
	b = (struct wheel_back) { .seed = rnd() };
	for (i = 0; i < n; i++)
		wheel_back_add(w, &b, &t[i], time + 1 + below(spread), time);
	time -= hour;
	moves = w->moves;
	wheel_back_was_set(w, &b, time);
	while (wheel_due(w, time) && ++calls < n) {
		u32 left = 64;

		good &= !wheel_back_expire_many(w, &b, time, &left, got, 64, NULL);
		if (!wheel_back_in_wheel(w, &b))
			deep = depth(b.root);
	}
	moves = w->moves - moves;
	good &= !b.nr && wheel_clk(w) == time && calls <= 2 * (n / 64 + 2) && moves == 2 * n;
	for (time += hour + spread; wheel_due(w, time); ) {
		u32 left = 64, nr_got = wheel_back_expire_many(w, &b, time, &left, got, 64, NULL);

		fired += nr_got;
	}
	ok(good && fired == n && deep && deep <= 70,
	   "%u timers %s: %llu calls, a tree of %u levels", n, what, (ull)calls, deep);
	free(w);
	free(t);
}

int main(int argc, char **argv)
{
	u64 wanted;
	unsigned int p;

	plan(NR_PROPS + 2 + 2 * (WHEEL_SLOTS > 200));
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", (u64)time(NULL) << 12);
	wanted = setting(argc > 2 ? argv[2] : NULL, "OPS", 4000000);
	for (; ops < wanted && !failed(); seed++)
		episode();
	for (p = 0; p < NR_PROPS; p++)
		ok(!broken[p] && checks[p], "%s (%llu checks)", promise[p], (ull)checks[p]);
	ok(ops >= wanted || failed(), "%llu operations", (ull)ops);
	coverage();
	if (WHEEL_SLOTS > 200) {
		follow(1000000, 3600000, "in an hour");
		follow(1000000, 1, "in a tick");
	}
	return done();
}
