// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An advance is bounded and can be resumed anywhere. One set of timers, with some in
 * every level, big buckets, many far timers and a big tick, runs from the first timer to the last
 *
 *  - with budgets from 1 to unlimited: no call may exceed its budget, and with any budget
 *    all calls together must do the same work in the same order;
 *  - interrupted after any number of operations. There a share of the timers is cancelled,
 *    whatever is happening to them: these must never fire, the others once, in
 *    their tick.
 */
#include "test.h"

#define GROUPS		11
#define GROUP		(2 * WHEEL_BIG + 10)
#define TIMERS		(GROUPS * GROUP)
#define CUTS		400

static struct wheel_timer timer[TIMERS];
static u64 start, end;

/* A new wheel with all timers: each group is in one bucket, except the last two groups. */
static struct wheel *build(void)
{
	const u64 base[GROUPS] = {
		start + 1,				/* one tick */
		(start / width[1] + 3) * width[1] - 1,	/* big until it is about to begin */
		(start / width[1] + 3) * width[1],
		(start / width[2] + 2) * width[2],
		(start / width[2] + 3) * width[2],
		(start / width[3] + 3) * width[3],
		(start / width[4] + 2) * width[4],
		start + SPAN + width[4],		/* far */
		start + SPAN + 3 * width[4],
		start, start
	};
	const u64 spread[GROUPS] = {
		1, 1, width[1], width[2], width[2], width[3], width[4], width[4],
		width[4], width[4], 2 * SPAN
	};
	struct wheel *w = new_wheel(start);
	unsigned int i;

	memset(timer, 0, sizeof(timer));
	for (i = 0; i < TIMERS; i++) {
		timer[i].data = i;
		wheel_add(w, &timer[i], base[i / GROUP] + below(spread[i / GROUP]));
	}
	return w;
}

/* The sums over the whole life of a wheel. */
struct life {
	u64	fired;
	u64	moves;
	u64	used;		/* operations taken off the budgets */
	u64	order;		/* a hash over which timer fired when */
	bool	bounded;	/* no call exceeded its budget */
	bool	exact;		/* each timer fired in its tick */
};

static void fire(struct life *s, const struct wheel *w, const struct wheel_timer *t)
{
	s->fired++;
	s->exact &= t->expires == wheel_clk(w);
	s->order = (s->order ^ t->data ^ wheel_clk(w)) * 0x100000001b3;
}

/* One call: take timers until there is none, with a budget of @budget. */
static void call(struct life *s, struct wheel *w, u64 now, u32 budget)
{
	u64 moves = w->moves, fired = s->fired;
	u32 left = budget;
	struct wheel_timer *t;

	while ((t = wheel_expire(w, now, &left)))
		fire(s, w, t);
	s->bounded &= left <= budget &&
		      s->fired - fired + w->moves - moves <= budget - left &&
		      (!left || !wheel_due(w, now));
	s->used += budget - left;
	s->moves = w->moves;
}

static void live(struct life *s, u64 seed, u32 budget)
{
	struct wheel *w;

	memset(s, 0, sizeof(*s));
	s->bounded = true;
	s->exact = true;
	rnd_state = seed;
	w = build();
	do {
		call(s, w, end, budget);
	} while (wheel_due(w, end) && s->bounded);
	s->exact &= !wheel_nr(w) && wheel_clk(w) == end && sound(w);
	free(w);
}

static u64 budgets(u64 seed)
{
	static const u32 sizes[] = { 1, 2, 3, 7, 64, 1000 };
	struct life whole, parts;
	unsigned int i;

	live(&whole, seed, NO_LIMIT);
	ok(whole.fired == TIMERS && whole.bounded && whole.exact,
	   "in one go: %llu expiries, %llu moves, %llu steps", (ull)whole.fired,
	   (ull)whole.moves, (ull)(whole.used - whole.fired - whole.moves));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		live(&parts, seed, sizes[i]);
		if (!ok(!memcmp(&whole, &parts, sizeof(whole)),
			"by %u: bounded, and the same work in the same order", sizes[i]))
			diag("bounded %d exact %d fired %llu moves %llu used %llu of %llu",
			     parts.bounded, parts.exact, (ull)parts.fired,
			     (ull)parts.moves, (ull)parts.used, (ull)whole.used);
	}
	return whole.used;
}

/* Where an interruption fell. */
enum { IDLE, CASCADE, EXPIRE, PACE, OWED, LOOKING, NR_PLACES };

static void note(const struct wheel *w, u64 *places)
{
	unsigned int l;

	places[w->phase]++;
	for (l = 1; l < WHEEL_LEVELS; l++)
		places[OWED] += w->phase == WHEEL_PACE && w->quota[l];
	places[LOOKING] += w->bucket[w->far].n > 0;
}

/* Interrupt after @ops operations, cancel a share of the queued timers, and continue. */
static bool cut(u64 seed, u64 ops, u64 *places)
{
	struct life s = { .bounded = true, .exact = true };
	u64 gone = 0, share;
	struct wheel *w;
	unsigned int i;
	bool good;

	rnd_state = seed;
	w = build();
	call(&s, w, end, ops);
	note(w, places);
	good = sound(w);
	share = 1 + below(4);
	for (i = 0; i < TIMERS; i++)
		if (wheel_pending(&timer[i]) && !below(share)) {
			wheel_del(w, &timer[i]);
			gone++;
		}
	good &= sound(w);
	call(&s, w, end, NO_LIMIT);
	good &= s.fired + gone == TIMERS && !wheel_nr(w) && s.bounded && s.exact && sound(w);
	free(w);
	return good;
}

static void cuts(u64 seed, u64 ops)
{
	u64 places[NR_PLACES] = { 0 };
	bool good = true;
	unsigned int i;

	for (i = 0; i < CUTS && good; i++) {
		u64 at = ops * i / CUTS;

		good = cut(seed + i, at, places);
		if (!good)
			diag("SEED=%llu cut after %llu", (ull)seed + i, (ull)at);
	}
	ok(good, "cancelled in the middle: all others fire, in their tick");
	ok(places[IDLE] && places[CASCADE] && places[EXPIRE] && places[PACE] &&
	   places[OWED] && places[LOOKING],
	   "cut before a step %llu, in cascade %llu, expire %llu, pace %llu (owed %llu); far scanned %llu",
	   (ull)places[IDLE], (ull)places[CASCADE], (ull)places[EXPIRE],
	   (ull)places[PACE], (ull)places[OWED], (ull)places[LOOKING]);
}

int main(int argc, char **argv)
{
	u64 seed;

	plan(7 + 2);
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	start = 5 * SPAN + width[3] + 7;
	end = start + 4 * SPAN;
	cuts(seed, budgets(seed));
	return done();
}
