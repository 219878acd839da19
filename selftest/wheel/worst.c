// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The worst tick that an adversary who knows the rules can cause must keep to the bound
 * in the head of wheel.h. ceiling() computes that bound for each tick, from the buckets as
 * they were when clk entered the bucket before each.
 *
 * The adversary has a number of timers. In each upper level, one bucket is as full as
 * a small one may be, and all of these are due in the same tick. The next bucket of each level is
 * big, and is emptied as late as possible. All other timers are in the minute that begins then.
 * Variants: all timers may be late, so that levels 3 and 4 owe moves to stops; all are put off; a
 * class of far timers is larger than can be moved at its pace; nothing is due in the next tick, so
 * that one level moves a chunk; random crowds, some of which may be late; timers at stops, which
 * are not moved where levels 1 and 2 reach; and all but each eighth or each seventh of many timers
 * are cancelled, so that the rest may be in only a few lists of their bucket.
 */
#include "test.h"

#define WORST_MANY	(WHEEL_R0 == 60 ? 1000000 : 20000)
#define CROWDS		200
#define CROWD		(30 * WHEEL_BIG)

static struct wheel_timer *timer;
static unsigned int used;

/*
 * How many timers the next bucket of each level held when clk came to the bucket before it, and the
 * number of that bucket.
 */
static u64 next_q[WHEEL_LEVELS];
static u32 next_n[WHEEL_LEVELS];

/* The same for the class of far timers that is being emptied. */
static u64 far_q;
static u32 far_n;

static u64 at_least_big(u64 moves)
{
	return moves > WHEEL_BIG ? moves : WHEEL_BIG;
}

/*
 * How many moves a tick needs, so that after @ticks ticks no more than @small of @n timers are
 * left.
 */
static u64 pace(u32 n, u32 small, u64 ticks)
{
	return at_least_big(n > small ? (n - small + ticks - 1) / ticks : 0);
}

static u64 far_ceiling(const struct wheel *w)
{
	u64 q = w->next / width[4];

	if (q != far_q) {
		far_q = q;
		far_n = w->bucket[WHEEL_FAR + __ffs64(q + WHEEL_R4 - 1)].n;
	}
	return pace(far_n, 0, width[4]);
}

/*
 * The most moves that tick w->next may take: those of the current bucket of each upper level, if it
 * is small, and the share of the next buckets and of the far timers.
 */
static u64 ceiling(const struct wheel *w)
{
	u64 most = far_ceiling(w);
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++) {
		const struct wheel_level *lv = &wheel_levels[l];
		u64 q = w->next / width[l] + 1;

		if (q != next_q[l]) {
			next_q[l] = q;
			next_n[l] = w->bucket[lv->first + q % lv->slots].n;
		}
		most += WHEEL_BIG + pace(next_n[l], WHEEL_BIG, width[l] - 1);
	}
	/* If no level owes more than usual, one of them may move a chunk. */
	if (most < 8 * WHEEL_BIG + WHEEL_CHUNK)
		most = 8 * WHEEL_BIG + WHEEL_CHUNK;
	return most;
}

struct worst {
	u64	moves;		/* the most in one tick */
	u64	most;		/* the bound for that tick */
	bool	kept;		/* no tick exceeded its bound */
	u64	fired;
	bool	exact;
};

/*
 * Advance one event after the other, up to @end or to the last event, and compare with ceiling().
 */
static struct worst watch(struct wheel *w, u64 end)
{
	struct worst worst = { .kept = true };
	struct tally c = { 0 };

	memset(next_q, 0, sizeof(next_q));
	far_q = 0;
	while (w->next <= end && w->next != WHEEL_NEVER) {
		u64 most = ceiling(w), moves = w->moves;

		hop(w, &c);
		moves = w->moves - moves;
		worst.kept &= moves <= most;
		if (moves > worst.moves) {
			worst.moves = moves;
			worst.most = most;
		}
	}
	worst.fired = c.fired;
	worst.exact = !c.wrong && sound(w);
	return worst;
}

/* Add @n timers within @within ticks from @from on. Each may be @late ticks late. */
static void fill_late(struct wheel *w, unsigned int n, u64 from, u64 within, u64 late)
{
	for (; n; n--) {
		u64 first = from + below(within);

		wheel_add_range(w, &timer[used++], first, first + late);
	}
}

/* The same with exact timers. */
static void fill(struct wheel *w, unsigned int n, u64 from, u64 within)
{
	for (; n; n--)
		wheel_add(w, &timer[used++], from + below(within));
}

static struct wheel *begin(u64 clk)
{
	memset(timer, 0, WORST_MANY * sizeof(*timer));
	used = 0;
	return new_wheel(clk);
}

/*
 * @end is the first tick of a bucket in every level. All buckets are due at the tick before the
 * last one in front of it.
 */
static struct wheel *adversary(u64 end)
{
	struct wheel *w = begin(end - 4 * width[4]);
	unsigned int l;

	for (l = WHEEL_LEVELS - 1; l; l--) {
		wheel_forward(w, end - 3 * width[l]);
		fill(w, WHEEL_BIG, end - 2, 1);
		fill(w, 4 * WHEEL_BIG, end + width[l] - width[l - 1], width[l - 1]);
	}
	fill(w, WORST_MANY - used, end, width[1]);
	return w;
}

static void verdict(const struct worst *worst, u64 fired, const char *what)
{
	ok(worst->kept && worst->fired == fired && worst->exact,
	   "%s: at most %llu moves in a tick, of %llu it may take", what, (ull)worst->moves,
	   (ull)worst->most);
}

/* The adversary must get nearly what the bound allows. */
static void worst_tick(u64 end)
{
	struct wheel *w = adversary(end);
	struct worst worst = watch(w, WHEEL_NEVER);
	u64 minute = (WORST_MANY - used + WORST_MANY) / (width[1] - 1);

	verdict(&worst, WORST_MANY, "all levels owe and are due, the rest in one minute");
	ok(worst.moves >= worst.most * 9 / 10, "so much can be made of it");
	ok(WHEEL_R0 != 60 || worst.moves <= 512 + minute,
	   "that is 512 and 1/59 of those in the minute, at most");
	free(w);
}

/*
 * The same, where each timer of the next buckets may be late by a bucket of the level below. Levels
 * 3 and 4 owe moves to stops, at the same pace as other moves.
 */
static void late_tick(u64 end)
{
	struct wheel *w = begin(end - 4 * width[4]);
	struct worst worst;
	unsigned int l, nr;

	for (l = WHEEL_LEVELS - 1; l; l--) {
		wheel_forward(w, end - 3 * width[l]);
		fill(w, WHEEL_BIG, end - 2, 1);
		nr = WORST_MANY / 5;
		fill_late(w, nr, end, width[l], width[l - 1]);
	}
	nr = used;
	worst = watch(w, WHEEL_NEVER);
	verdict(&worst, nr, "the same, and each may be late by a bucket of the level below");
	free(w);
}

/*
 * Where levels 1 and 2 reach, a timer that may be late by the distance of two stops is never moved.
 */
static void stops(u64 clk)
{
	struct wheel *w = begin(clk);
	struct worst worst;
	u64 last = w->reach[2] - 2 * WHEEL_STOP2;

	fill_late(w, WORST_MANY, clk + 1, last - clk, WHEEL_STOP2);
	worst = watch(w, WHEEL_NEVER);
	ok(worst.fired == WORST_MANY && worst.exact && !w->moves,
	   "timers that may be late from stop to stop: %llu moves", (ull)w->moves);
	free(w);
}

/* From level 3 such a timer is moved once, to its stop, and from level 4 twice. */
static void far_stops(u64 clk, unsigned int l)
{
	const unsigned int n = 20000;
	struct wheel *w = begin(clk);
	struct worst worst;

	fill_late(w, n, (clk / width[l] + 2) * width[l], width[l], WHEEL_STOP2);
	worst = watch(w, WHEEL_NEVER);
	ok(worst.fired == n && worst.exact && w->moves <= (l - 2) * n && w->moves > (l - 3) * n,
	   "and from level %u: %.3f moves each, of %u they may", l, (double)w->moves / n, l - 2);
	free(w);
}

/* A timer that was put off is moved with its bucket, as if it were due. */
static void put_off(u64 end)
{
	struct wheel *w = adversary(end);
	struct worst worst;
	unsigned int i;
	bool stay = true;

	for (i = 0; i < used; i++) {
		u16 bucket = timer[i].bucket;

		wheel_mod(w, &timer[i], timer[i].expires + 10 * width[1]);
		stay &= timer[i].bucket == bucket;
	}
	worst = watch(w, WHEEL_NEVER);
	verdict(&worst, WORST_MANY, "the same, and all of them put off");
	ok(stay, "they stayed where they were");
	free(w);
}

/*
 * A class of far timers that is too big to be emptied at the usual pace in the time that there is.
 */
static void far_crowd(u64 clk)
{
	u64 q = clk / width[4] + WHEEL_R4 - 1, from;
	struct wheel *w = begin(clk);
	struct worst worst;
	unsigned int c = 0;

	while (q >> c & 1)
		c++;
	from = (q >> c | 1) << c;
	fill(w, WORST_MANY / 10, from * width[4], width[4] << c);
	worst = watch(w, WHEEL_NEVER);
	verdict(&worst, WORST_MANY / 10, "a crowd in a class of far timers");
	free(w);
}

/*
 * The most that is possible without a crowd in one minute: one bucket of each level is due, each
 * next bucket owes WHEEL_BIG moves, and nothing is due in the next tick. So one level moves a chunk
 * instead. Until then a step in each tick keeps it from doing so earlier.
 */
static void chunk_tick(u64 end)
{
	const unsigned int ticks = WHEEL_CHUNK / WHEEL_BIG;
	struct wheel *w = begin(end - 4 * width[4]);
	struct worst worst;
	unsigned int l, i;

	for (l = WHEEL_LEVELS - 1; l; l--) {
		wheel_forward(w, end - 3 * width[l]);
		fill(w, WHEEL_BIG, end - ticks, 1);
		fill(w, WHEEL_BIG + WHEEL_CHUNK, end + width[l] - 1, 1);
	}
	wheel_forward(w, end - 3 * ticks);
	for (i = 2 * ticks; i >= ticks; i--)
		fill(w, 1, end - i, 1);
	i = used;
	worst = watch(w, WHEEL_NEVER);
	verdict(&worst, i, "all levels owe and are due, and one moves a chunk");
	ok(WHEEL_R0 != 60 || worst.moves == 7 * WHEEL_BIG + WHEEL_CHUNK,
	   "four buckets are emptied, three levels move what they owe, and one a chunk");
	free(w);
}

/* Add @n timers that are due in one tick: in level 0, or at the first stop of level 1 or 2. */
static void fill_tick(struct wheel *w, unsigned int n, unsigned int stop)
{
	u64 step = stop == 2 ? WHEEL_STOP2 : WHEEL_STOP1;

	if (stop)
		fill_late(w, n, (w->reach[stop - 1] / step + 1) * step, 1, 0);
	else
		fill(w, n, w->q[0] + 2, 1);
}

/*
 * Many timers are due in one tick, see fill_tick(), and all but each @by-th are cancelled. The rest
 * must not be in only a few lists: these would have to be loaded one timer after the other.
 */
static bool strides(unsigned int by, unsigned int stop)
{
	static const u16 first[] = { WHEEL_L0, WHEEL_S1, WHEEL_S2 };
	static const u16 end[] = { WHEEL_L1, WHEEL_S2, WHEEL_L0 };
	struct wheel *w = begin(7);
	const struct hlist_head *lists;
	unsigned int i, slot, in_use = 0;
	u32 longest = 0;

	fill_tick(w, 16 * by, stop);
	slot = timer[0].bucket;
	lists = wheel_lists(w, slot);
	for (i = 0; i < 16 * by; i++)
		if (i % by)
			wheel_del(w, &timer[i]);
	for (i = 0; i < WHEEL_LISTS; i++) {
		const struct hlist_node *node;
		u32 n = 0;

		hlist_for_each(node, &lists[i])
			n++;
		in_use += n > 0;
		longest = n > longest ? n : longest;
	}
	free(w);
	if (slot >= first[stop] && slot < end[stop] && in_use >= 4 && longest <= 6)
		return true;
	diag("all but each %u. cancelled: slot %u, %u lists, %u in the longest", by, slot, in_use,
	     longest);
	return false;
}

static void any_stride(unsigned int stop, const char *where)
{
	unsigned int by;

	for (by = 1; by <= 16 && strides(by, stop); by++)
		;
	ok(by > 16, "%s: 16 timers left by strides up to 16: at least 4 lists, at most 6 in one",
	   where);
}

/*
 * Add timers: to a bucket of any level, so many that it may be big; or to one tick; or timers that
 * may be late.
 */
static void crowd(struct wheel *w)
{
	unsigned int l = below(6), n = 1 + below(CROWD);
	u64 unit = width[l], from = (w->q[0] / unit + 1 + below(4)) * unit;

	if (below(3))
		fill(w, n, from, below(3) ? unit : 1);
	else
		fill_late(w, n, from, unit, below(2 * unit));
}

static bool crowds(u64 seed)
{
	struct wheel *w;
	struct worst worst;
	bool good = true;
	unsigned int i;

	rnd_state = seed;
	w = begin(below(SPAN));
	for (i = 0; i < 10 && good; i++) {
		if (used + CROWD < WORST_MANY)
			crowd(w);
		worst = watch(w, w->q[0] + below(2 * width[1 + below(5)]));
		good = worst.kept && worst.exact;
	}
	worst = watch(w, WHEEL_NEVER);
	good &= worst.kept && worst.exact && !wheel_nr(w);
	free(w);
	if (!good)
		diag("SEED=%llu: %llu moves of %llu", (ull)seed, (ull)worst.moves, (ull)worst.most);
	return good;
}

static void at_random(u64 seed)
{
	unsigned int i;

	for (i = 0; i < CROWDS && crowds(seed + i); i++)
		;
	ok(i == CROWDS, "%u times crowds at random: no tick takes more than it may", i);
}

int main(int argc, char **argv)
{
	u64 seed;

	plan(3 + 1 + 3 + 2 + 1 + 2 + 3 + 1);
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	rnd_state = seed;
	timer = alloc(WORST_MANY, sizeof(*timer));
	worst_tick(12 * SPAN);
	late_tick(12 * SPAN);
	stops(5 * SPAN + 7);
	far_stops(5 * SPAN + 7, 3);
	far_stops(5 * SPAN + 7, 4);
	put_off(12 * SPAN);
	far_crowd(5 * SPAN + 7);
	chunk_tick(12 * SPAN);
	any_stride(0, "level 0");
	any_stride(1, "a stop of level 1");
	any_stride(2, "a stop of level 2");
	at_random(seed);
	free(timer);
	return done();
}
