// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Random operations on a wheel, beside an oracle: see oracle.h.
 *
 * The run is a sequence of episodes. Each has a wheel of its own, which starts at any time, and a
 * character: how many timers there are, how far ahead they are due, how time passes, how small the
 * budgets are. Timers are added and cancelled between the calls that advance, within the loop that
 * takes the expired timers, and, because budgets run out, in the middle of every phase of a step.
 *
 * An episode depends only on its seed, which is SEED plus its number. If one fails, the output
 * names the seed that makes it the first episode. OPS is the number of adds, cancels, and calls
 * that advance or forward; expiries do not count.
 */
#include <time.h>

#include "oracle.h"

#define EPISODE		20000		/* operations of an episode */
#define ENOUGH		1000000		/* operations: enough for every situation */

static const char *const sight[NR_SEEN] = {
	"stop of level 1", "stop of level 2", "level 0", "level 1", "level 2", "level 3",
	"level 4", "far",
	"cut before a step", "cut in cascade", "cut in expire", "cut in pace",
	"cut at a stop",
	"added midway", "cancelled midway", "added at expiry", "cancelled at expiry",
	"big upper bucket", "moves owed", "far scanned", "cancelled there",
	"put off", "made earlier", "armed anew midway",
	"late as it was", "expired at a stop", "expired",
};

static u64 seed;

/* The character of the episode. */
static unsigned int reach, stride;	/* how far delays and jumps go, in levels */
static u32 budget_max;
static unsigned int advances, cancels, mods, ranges;	/* percent */
static unsigned int inside;		/* percent of expiries that add or cancel */

/* Ticks and times */

/* A distance of the magnitude of some level up to @most. */
static u64 distance(unsigned int most)
{
	return below(2 * width[1 + below(most + 1)]);
}

static u64 near_boundary(unsigned int most)
{
	u64 unit = width[1 + below(most + 1)];

	return ((now + distance(most)) / unit + 1) * unit + below(3) - 1;
}

static u64 some_expiry(void)
{
	switch (below(16)) {
	case 0:
		return below(2) ? 0 : wheel_clk(w);	/* in the past */
	case 1:
		return now - below(2) * (now > 0);
	case 2:
	case 3:
		return due[below(nr)];			/* the tick of another timer */
	case 4:
	case 5:
	case 6:
		return near_boundary(reach);
	case 7:
		return wheel_clk(w) + distance(reach);
	case 8:
		return below(32) ? now + 1 : WHEEL_NEVER - below(3);
	default:
		return now + distance(reach);
	}
}

/* How many ticks later a timer may fire. */
static u64 some_tolerance(void)
{
	switch (below(4)) {
	case 0:
		return below(3);
	case 1:
		return below(width[2]);
	default:
		return distance(reach);
	}
}

static void arm_range(unsigned int i)
{
	u64 first = some_expiry(), late = some_tolerance();

	/* In half of the cases the present tick is among those allowed. */
	if (due[i] != IDLE && below(2))
		first = due[i] - (due[i] > late ? below(late + 1) : 0);
	if (first > WHEEL_NEVER - late)
		return;
	if (due[i] == IDLE)
		add_within(i, first, first + late);
	else
		mod_within(i, first, first + late);
}

/* A later time, often one at which something happens. */
static u64 some_time(void)
{
	u64 t;

	switch (below(8)) {
	case 0:
		return now;				/* finish the step */
	case 1:
		t = w->next;
		break;
	case 2:
		t = earliest() - 1 + below(3);
		break;
	case 3:
		t = near_boundary(stride);
		break;
	case 4:
		t = now + distance(stride);
		break;
	default:
		t = now + below(4);
	}
	/* Not to the end of time: there are timers that never fire. */
	return t > now && t < now + 4 * SPAN ? t : now;
}

/* What a callback may do: add its timer again, cancel another one, or re-arm another one. */
static void at_expiry(unsigned int i)
{
	unsigned int other;

	if (below(100) >= inside)
		return;
	other = below(nr);
	if (below(2)) {
		if (below(100) < ranges)
			arm_range(i);
		else
			add(i, some_expiry());
		count[ADD_INSIDE]++;
	} else if (due[other] != IDLE && below(2)) {
		mod(other, some_expiry());
	} else if (due[other] != IDLE) {
		del(other);
		count[DEL_INSIDE]++;
	}
}

static void one_operation(void)
{
	unsigned int r = below(100), i = below(nr);

	if (r < advances)
		advance_to(some_time(), below(8) ? 1 + below(budget_max) : NO_LIMIT);
	else if (r < advances + 3)
		forward(some_time());
	else if (!below(50))
		burst(some_expiry(), width[below(reach + 2)], 1 + below(nr), below(nr));
	else if (due[i] == IDLE && below(100) < ranges)
		arm_range(i);
	else if (due[i] == IDLE)
		add(i, some_expiry());
	else if (below(100) < cancels)
		del(i);
	else if (below(100) < mods && below(100) < ranges)
		arm_range(i);
	else if (below(100) < mods)
		mod(i, below(4) ? due[i] + distance(reach) : some_expiry());
}

static void begin_episode(void)
{
	static const unsigned int sizes[] = { 2, 16, 2 * WHEEL_BIG + 40, NR_MAX };
	static const u32 budgets[] = { 1, 3, 100, NO_LIMIT };
	const u64 starts[] = {
		0, below(SPAN), width[4] * below(1000), SPAN * 1000 - below(3),
		((u64)1 << 32) - 1 - below(width[2]), ((u64)1 << 53) - below(width[3]),
	};

	begin(starts[below(ARRAY_SIZE(starts))], sizes[below(ARRAY_SIZE(sizes))]);
	budget_max = budgets[below(ARRAY_SIZE(budgets))];
	reach = below(5);
	stride = below(reach + 1);
	advances = 5 + below(60);
	cancels = below(100);
	mods = below(100);
	ranges = below(2) * below(100);
	inside = below(60);
}

/*
 * How often to check everything: a check of a wheel costs as much as a thousand operations, and of
 * a tiny one as ten.
 */
#define CHECK_EVERY	(WHEEL_SLOTS > 200 ? 500 : 10)

static void episode(void)
{
	u64 end = ops + EPISODE;

	rnd_state = seed;
	begin_episode();
	while (ops < end && !failed()) {
		one_operation();
		if (!below(CHECK_EVERY))
			expect(SOUND, sound(w));
	}
	inside = 0;
	finish();
	if (failed())
		diag("SEED=%llu", (ull)seed);
}

static void coverage(void)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < NR_SEEN; i++) {
		diag("%-20s %llu", sight[i], (ull)count[i]);
		all &= count[i] > 0;
	}
	ok(all || ops < ENOUGH, "every kind of place and moment was reached");
}

int main(int argc, char **argv)
{
	u64 wanted;
	unsigned int p;

	plan(NR_PROPS + 2);
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", (u64)time(NULL) << 12);
	wanted = setting(argc > 2 ? argv[2] : NULL, "OPS", 10000000);
	for (; ops < wanted && !failed(); seed++)
		episode();
	for (p = 0; p < NR_PROPS; p++)
		ok(!broken[p] && checks[p], "%s (%llu checks)", promise[p], (ull)checks[p]);
	ok(ops >= wanted || failed(), "%llu operations", (ull)ops);
	coverage();
	return done();
}
