/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A cascading timing wheel without the cascade's spike.
 *
 * Time is counted in ticks. Five levels of buckets stand for the clock face:
 *
 *	level	radix	slots	a bucket is	1 ms ticks	1 s ticks
 *	0	60	120	1 tick		1 ms		1 s
 *	1	60	120	60		60 ms		1 min
 *	2	24	48	3 600		3.6 s		1 h
 *	3	365	730	86 400		86.4 s		1 day
 *	4	100	100	31 536 000	8.76 h		1 year
 *	far		40	beyond		36.5 days	100 years
 *
 * q_l(x) = x / width_l; clk is the tick last processed. Levels 0 to 3 have two
 * rotations of slots, so level l holds everything of the current and of the
 * next bucket of level l + 1. A timer due at tick E goes to the lowest level
 * with q_{l+1}(E) - q_{l+1}(clk) <= 1, into slot q_l(E) mod slots.
 *
 * Why that is worth twice the slots: as soon as clk enters a bucket, the bucket
 * *after* it can be emptied into the level below, a whole width before it is
 * due, and new timers for it bypass it. So cascading needs no boundary:
 *
 *  - a small bucket (at most WHEEL_BIG timers) is left alone until its earliest
 *    timer is due, then emptied at once: most timers are cancelled before;
 *  - a big one is made small before it begins, as late as that can be done with
 *    WHEEL_BIG moves a tick, or evenly where even its whole width is not enough.
 *
 * The worst tick that somebody can make who knows all this empties one small bucket of each
 * of levels 1 to 4, and moves from the next bucket of each and from a class of far timers:
 * 9 * WHEEL_BIG = 288 moves. Where the next bucket of level l holds n timers, more
 * than WHEEL_BIG for each of its ticks, n / (width_l - 1) take the place of WHEEL_BIG. Where none
 * does, and nothing is due in the next tick, one of the five that are moved from may move
 * WHEEL_CHUNK: 512 moves. So that is 512 and 1/59 of the timers due within the next 60 ticks at
 * most, unless there are more than 900 000 in an hour of 3 600. Timers that expire are not
 * counted. A million spread over an hour a day ahead cost no tick more than some 570 moves.
 *
 * The price is an event for each WHEEL_CHUNK = 256 timers of a big bucket, and of a class of
 * far timers, where ticks are idle: less than half a percent of the timers. A step that is made
 * anyway within the last eighth of a width before saves it. Only a bucket that is hardly big,
 * with 33 to 200 timers, costs more than that if nothing else is due so shortly before.
 *
 * A timer moves at most four times, once more for each
 * class of far timers it comes through, and for each time it was put off.
 *
 * Timers beyond the span of the wheel are sorted into classes. The last bucket of level 4
 * that the wheel reaches is x = q_4(clk) + 99; a far timer is of the class of the highest bit
 * in which q_4(E) differs from x. There it stays until x has come so far that this bit
 * is the same; then x has zeros below, so that no two classes have their turn at the
 * same x. Before x goes on the class is emptied, into lower classes and level 4: a timer
 * that is due 2^n buckets of level 4 ahead is moved n times on its way there, at most.
 *
 * A timer that is put off to a later tick stays in its bucket, unless that is of level 0,
 * and only the tick is noted: when the bucket is emptied the timer goes where it
 * belongs by then. So a timer may be due later than its bucket, never earlier, and a
 * timeout that is put off many times before its bucket is due moves once for all of them.
 *
 * A timer that may be late is given the tick, of those it may fire in, that most others can have
 * too, see wheel_choose(). Mostly that is a stop: a multiple of 60 ticks, or where only level 2
 * reaches of 600. A stop has lists of its own, from which its timers fire when it has come: they
 * are never moved, but from levels 3 and 4 to there. Level 1 has a stop for each of its buckets and
 * level 2 six; for what is due at them it makes no difference that buckets are emptied:
 *
 *	10^4 timers, up to 60 000 ticks	ticks with an event	moves each	late
 *	exact				9 259			1.9		0
 *	by a 32nd of the delay		344			0.10		241
 *	by an 8th			162			0.001		285
 *
 * The next tick with work is the minimum over at most twelve bitmap searches, so
 * that sleeping costs nothing and waking up after years does only the ticks
 * that have work. The next event of the levels above 0 is kept, and until then a step
 * is a search of level 0.
 *
 * Timers fire in exactly their tick, in the order of ticks; inside one tick no
 * order is promised.
 *
 * This is the algorithm alone: no clock, no lock, no allocation. The caller
 * serialises all calls on one wheel. Memory: 44 KiB a wheel.
 *
 * Words used below:
 *	e	expiry tick of a timer
 *	q	a bucket number counted from tick zero, q_l(x)
 *	slot	index of a bucket in struct wheel, over all levels
 *	off	ticks from a bucket's start
 *	d	distance in buckets from the one clk is in
 */
#ifndef WHEEL_H
#define WHEEL_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#endif
#include "wheel_types.h"

/* The geometry. Tests shrink the radices; each must be at least 2, the last 3. */
#ifndef WHEEL_R0
#define WHEEL_R0	60
#define WHEEL_R1	60
#define WHEEL_R2	24
#define WHEEL_R3	365
#define WHEEL_R4	100
#endif

#if WHEEL_R4 < 3
#error "a class of far timers is emptied in a bucket's width, and they may not be due by then"
#endif

/*
 * A bucket of more timers than this is emptied piecemeal, ahead of time, and about as many are
 * moved at once. A power of two.
 */
#ifndef WHEEL_BIG
#define WHEEL_BIG	32
#endif

#if WHEEL_BIG < 2 || WHEEL_BIG & (WHEEL_BIG - 1)
#error "WHEEL_BIG is no power of two, or no bucket could be big"
#endif

/*
 * Moves of one level, or of the far timers, for which it is worth waking up: so many at once where
 * ticks are idle, and then none in as many ticks as they would have been spread over.
 */
#ifndef WHEEL_CHUNK
#define WHEEL_CHUNK	(8ULL * WHEEL_BIG)
#endif

/*
 * The lists of a bucket of levels 0 to 2. Its timers go to them in turn and are taken in turn,
 * so that the memory of so many is on its way at once: where there are more timers than fit
 * into the processor's caches, expiry is little else but waiting for it. A power of two.
 *
 * The turn goes on by a little more than a list for each timer. If it went by one, what is left
 * where all but every eighth timer is cancelled would be one list, and a request often has as
 * many timers of which one stays. WHEEL_TURN is 2^32 / (6 + 0.618...), of which no small multiple
 * is nearly a multiple of 2^32, and with which a list has its turn every sixth or seventh time.
 */
#ifndef WHEEL_LISTS
#define WHEEL_LISTS	8
#endif
#define WHEEL_TURN	0x26aea387U

/* The lists of a stop, as those above. Its timers are mostly not in the caches either. */
#define WHEEL_STOP_LISTS	2

/* Stops in a bucket of level 2. */
#ifndef WHEEL_PARTS
#define WHEEL_PARTS	6
#endif

#if WHEEL_R1 % WHEEL_PARTS
#error "a stop of level 2 is no bucket of level 1"
#endif

#define WHEEL_LEVELS	5
#define WHEEL_NEVER	(~(u64)0)

/* Ticks in a bucket of each level; the span of the wheel is R4 * W4. */
#define WHEEL_W1	WHEEL_R0
#define WHEEL_W2	(WHEEL_W1 * WHEEL_R1)
#define WHEEL_W3	(WHEEL_W2 * WHEEL_R2)
#define WHEEL_W4	(WHEEL_W3 * WHEEL_R3)

/* Ticks from one stop to the next. */
#define WHEEL_STOP1	WHEEL_W1
#define WHEEL_STOP2	(WHEEL_W2 / WHEEL_PARTS)

/* Classes of far timers: bits of the last bucket of level 4 before the end of time. */
#define WHEEL_CLASSES	(64 - __builtin_clzll(WHEEL_NEVER / WHEEL_W4))

/*
 * The first slot of each level. Slot 0 is none: an idle timer is in it. What is in a slot before
 * WHEEL_L1 is due when its bucket is.
 */
enum {
	WHEEL_NONE,
	WHEEL_S1,
	WHEEL_S2	= WHEEL_S1 + 2 * WHEEL_R1,
	WHEEL_L0	= WHEEL_S2 + 2 * WHEEL_R2 * WHEEL_PARTS,
	WHEEL_L1	= WHEEL_L0 + 2 * WHEEL_R0,
	WHEEL_L2	= WHEEL_L1 + 2 * WHEEL_R1,
	WHEEL_L3	= WHEEL_L2 + 2 * WHEEL_R2,
	WHEEL_L4	= WHEEL_L3 + 2 * WHEEL_R3,
	WHEEL_FAR	= WHEEL_L4 + WHEEL_R4,	/* a slot for each class */
	WHEEL_SLOTS	= WHEEL_FAR + WHEEL_CLASSES,
	WHEEL_WIDE	= WHEEL_L3,	/* from WHEEL_L0 to there WHEEL_LISTS lists, then one */
	WHEEL_STOP_LIST	= (WHEEL_WIDE - WHEEL_L0) * WHEEL_LISTS + WHEEL_SLOTS - WHEEL_WIDE,
	WHEEL_NR_LISTS	= WHEEL_STOP_LIST + (WHEEL_L0 - WHEEL_S1) * WHEEL_STOP_LISTS,
};

/* What loops over the levels need of them. */
struct wheel_level {
	u16	first;		/* its first slot */
	u16	slots;		/* how many it has */
	u32	width;		/* ticks in a bucket */
};

static const struct wheel_level wheel_levels[WHEEL_LEVELS] = {
	{ WHEEL_L0, 2 * WHEEL_R0, 1 },
	{ WHEEL_L1, 2 * WHEEL_R1, WHEEL_W1 },
	{ WHEEL_L2, 2 * WHEEL_R2, WHEEL_W2 },
	{ WHEEL_L3, 2 * WHEEL_R3, WHEEL_W3 },
	{ WHEEL_L4, WHEEL_R4, WHEEL_W4 },
};

/* And of the stops. */
static const struct wheel_level wheel_stops[2] = {
	{ WHEEL_S1, 2 * WHEEL_R1, WHEEL_STOP1 },
	{ WHEEL_S2, 2 * WHEEL_R2 * WHEEL_PARTS, WHEEL_STOP2 },
};

/* What is under way at tick clk: a step may be left and resumed anywhere. */
enum wheel_phase {
	WHEEL_IDLE,		/* nothing: the step of clk is over */
	WHEEL_CASCADE,		/* emptying the buckets that are due */
	WHEEL_EXPIRE,		/* handing out the timers due at clk */
	WHEEL_PACE,		/* making big buckets small ahead of time */
};

/**
 * struct wheel_bucket - timers of the same q_l
 * @n:		how many
 * @min:	no timer of the bucket is due earlier than this tick, of which these are
 *		the low bits, see wheel_min(); a lower bound, since a cancel leaves it
 *		alone; not kept in level 0, of stops and far
 */
struct wheel_bucket {
	u32	n;
	u32	min;
};

/**
 * struct wheel_store - most of a wheel's memory
 * @bucket:	as in struct wheel
 * @list:	as in struct wheel
 */
struct wheel_store {
	struct wheel_bucket	bucket[WHEEL_SLOTS];
	struct hlist_head	list[WHEEL_NR_LISTS];
};

/**
 * struct wheel - the wheel
 * @q:		q_l(clk), an odometer; @q[0] is clk
 * @next:	no event is earlier than this tick; WHEEL_NEVER when empty. A
 *		lower bound, since a cancel leaves it alone
 * @upper:	no event of levels 1 to 4, nor of stops or far timers, is earlier than this tick; no
 *		earlier than @next. Or else it is over, and @next is no later than any event
 * @slot:	the slot of @q of each level
 * @reach:	the last tick that has a bucket in levels 0, 1 and 2
 * @upper_slot:	the bucket whose event @upper is
 * @phase:	what is under way at clk
 * @due:	the slot whose timers are handed out at clk
 * @far:	the slot of the class of far timers that is emptied while clk is in this
 *		bucket of level 4, and gets no new ones
 * @nr_big:	how many bits of @big are set, for each level
 * @quota:	moves still owed at clk by the bucket next to the current one,
 *		for each level; [0] by the class @far
 * @added:	timers added so far
 * @gone:	of these, those that are queued no more, see wheel_nr()
 * @moves:	list moves so far; statistics
 * @map:	a bit for each slot with n > 0
 * @big:	a bit for each slot of levels 1 to 4 with n > WHEEL_BIG
 * @bucket:	the buckets of all levels
 * @list:	their timers, see wheel_lists()
 *
 * With WHEEL_STORE_APART the last two are pointers, to a zeroed struct wheel_store that the caller
 * provides before the first timer comes to a bucket.
 */
struct wheel {
	u64			q[WHEEL_LEVELS];
	u64			reach[3];
	u64			next;
	u64			upper;
	u16			slot[WHEEL_LEVELS];
	u16			far;
	u16			upper_slot;
	u16			due;
	u8			phase;
	u32			nr_big[WHEEL_LEVELS];
	u32			quota[WHEEL_LEVELS];
	u64			added;
	u64			gone;
	u64			moves;
	unsigned long		map[BITS_TO_LONGS(WHEEL_SLOTS)];
	unsigned long		big[BITS_TO_LONGS(WHEEL_SLOTS)];
#ifdef WHEEL_STORE_APART
	struct wheel_bucket	*bucket;
	struct hlist_head	*list;
#else
	struct wheel_bucket	bucket[WHEEL_SLOTS];
	struct hlist_head	list[WHEEL_NR_LISTS];
#endif
};

/* The tick last processed. While a step is unfinished it is being processed. */
static inline u64 wheel_clk(const struct wheel *w)
{
	return w->q[0];
}

/* How many timers are queued. */
static inline u64 wheel_nr(const struct wheel *w)
{
	return w->added - w->gone;
}

/* Is there work at or before tick @now? */
static inline bool wheel_due(const struct wheel *w, u64 now)
{
	return w->next <= now;
}

static inline bool wheel_pending(const struct wheel_timer *t)
{
	return t->bucket != WHEEL_NONE;
}

/*
 * The slot of bucket @q in a level of two rotations, from the bucket @up that
 * holds it one level above: q mod (2 * radix), without a second division.
 */
static inline u16 wheel_slot(unsigned int first, u64 q, u64 up, u32 radix)
{
	return first + (up & 1) * radix + (u32)(q - up * radix);
}

/* The last tick of bucket @q, each being @width wide. The last bucket outlasts time. */
static inline u64 wheel_last(u64 q, u64 width)
{
	return q < WHEEL_NEVER / width ? (q + 1) * width - 1 : WHEEL_NEVER;
}

/* The last bucket of the top level that the wheel reaches. */
static inline u64 wheel_horizon(const struct wheel *w)
{
	return w->q[4] + WHEEL_R4 - 1;
}

/* Move clk to tick @t, whatever bucket of level 1 that is in. */
static inline void wheel_set_odometer(struct wheel *w, u64 t)
{
	u64 q1 = div_u64(t, WHEEL_R0), q2, q3, q4;

	w->q[0] = t;
	w->slot[0] = wheel_slot(WHEEL_L0, t, q1, WHEEL_R0);
	if (q1 == w->q[1])
		return;
	q2 = div_u64(q1, WHEEL_R1);
	w->q[1] = q1;
	w->slot[1] = wheel_slot(WHEEL_L1, q1, q2, WHEEL_R1);
	w->reach[0] = wheel_last(q1 + 1, WHEEL_W1);
	if (q2 == w->q[2])
		return;
	q3 = div_u64(q2, WHEEL_R2);
	q4 = div_u64(q3, WHEEL_R3);
	w->q[2] = q2;
	w->slot[2] = wheel_slot(WHEEL_L2, q2, q3, WHEEL_R2);
	w->reach[1] = wheel_last(q2 + 1, WHEEL_W2);
	w->q[3] = q3;
	w->slot[3] = wheel_slot(WHEEL_L3, q3, q4, WHEEL_R3);
	w->reach[2] = wheel_last(q3 + 1, WHEEL_W3);
	w->q[4] = q4;
	w->slot[4] = WHEEL_L4 + (u32)(q4 - div_u64(q4, WHEEL_R4) * WHEEL_R4);
	w->far = WHEEL_FAR + __ffs64(wheel_horizon(w));
}

/*
 * Move clk to tick @t, at or before the next event, and the odometer with it. Mostly they are in
 * the same bucket of level 1: what level 0 reaches ends with the next one.
 */
static inline void wheel_set_clk(struct wheel *w, u64 t)
{
	if (t > w->reach[0] - WHEEL_W1) {
		wheel_set_odometer(w, t);
		return;
	}
	w->slot[0] += (u32)(t - w->q[0]);
	w->q[0] = t;
}

/*
 * An empty wheel whose last processed tick is @clk. The memory must be zeroed
 * by the caller: most of it is buckets, and it mostly comes zeroed.
 */
static inline void wheel_init(struct wheel *w, u64 clk)
{
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++)
		w->q[l] = WHEEL_NEVER;	/* is not any q: all is filled in */
	wheel_set_odometer(w, clk);
	w->next = WHEEL_NEVER;
	w->upper = WHEEL_NEVER;
}

/*
 * Let clk follow the time where nothing is due, so that a new timer is placed
 * by its true distance and not by that from an event long past.
 */
static inline void wheel_forward(struct wheel *w, u64 now)
{
	if (now > w->q[0] && now < w->next)
		wheel_set_clk(w, now);
}

/* How many lists bucket @slot has. */
static inline unsigned int wheel_nr_lists(unsigned int slot)
{
	if (slot < WHEEL_L0)
		return WHEEL_STOP_LISTS;
	return slot < WHEEL_WIDE ? WHEEL_LISTS : 1;
}

/* Where in wheel->list they begin, if it is no stop. @wide: there are WHEEL_LISTS. */
static __always_inline unsigned long wheel_list(unsigned long slot, bool wide)
{
	return wide ? (slot - WHEEL_L0) * WHEEL_LISTS :
		      slot - WHEEL_WIDE + (WHEEL_WIDE - WHEEL_L0) * (unsigned long)WHEEL_LISTS;
}

/* And if it is. */
static inline unsigned long wheel_stop_list(unsigned long slot)
{
	return WHEEL_STOP_LIST + (slot - WHEEL_S1) * WHEEL_STOP_LISTS;
}

/* They are. */
static inline struct hlist_head *wheel_lists(struct wheel *w, unsigned int slot)
{
	if (slot < WHEEL_L0)
		return &w->list[wheel_stop_list(slot)];
	return &w->list[wheel_list(slot, slot < WHEEL_WIDE)];
}

/* Which list has the turn of a bucket of @n timers that gets one more. The first one's is 0. */
static __always_inline u32 wheel_turn(u32 n)
{
	return n * WHEEL_TURN / (u32)((1ULL << 32) / WHEEL_LISTS);
}

/* The level of bucket @slot, which is not of level 0. */
static inline unsigned int wheel_level_of(unsigned int slot)
{
	unsigned int l = 1;

	while (l < WHEEL_LEVELS - 1 && slot >= wheel_levels[l + 1].first)
		l++;
	return l;
}

/* Bucket @slot has more than WHEEL_BIG timers now. */
static inline void wheel_is_big(struct wheel *w, unsigned int slot)
{
	__set_bit(slot, w->big);
	w->nr_big[wheel_level_of(slot)]++;
}

/* hlist_add_head() for an empty list, known to be so. */
static inline void wheel_put_first(struct hlist_head *list, struct wheel_timer *t)
{
	t->node.next = NULL;
	t->node.pprev = &list->first;
	list->first = &t->node;
}

/*
 * How many ticks after the start of bucket @b, which is @start, its min is: no bucket that
 * has one is as wide as 32 bits reach.
 */
static inline u32 wheel_min(const struct wheel_bucket *b, u64 start)
{
	return b->min - (u32)start;
}

/*
 * When a bucket of @n timers, more than WHEEL_BIG, that begins at tick @end has to be begun
 * with: as late as WHEEL_BIG moves a tick make it small in time, but within the bucket
 * before, in which it gets no new ones.
 */
static __always_inline u64 wheel_pace_event(u32 n, u64 end, u32 width)
{
	u32 ticks = (n - 1) / WHEEL_BIG;

	return end - (ticks < width ? ticks : width - 1);
}

/*
 * Queue @t, due at @e, in bucket @slot, which is @q of a level of buckets of @width. Returns
 * the tick of the first event it may cause: its own expiry, or the first move of a
 * bucket that is big by now.
 */
static __always_inline u64 wheel_put(struct wheel *w, struct wheel_timer *t, u64 e,
				     unsigned long slot, u64 q, u32 width)
{
	bool wide = width && width < WHEEL_W3;
	struct hlist_head *list = &w->list[wheel_list(slot, wide)];
	struct wheel_bucket *b = &w->bucket[slot];

	WRITE_ONCE(t->bucket, slot);
	if (!b->n) {
		wheel_put_first(list, t);
		__set_bit(slot, w->map);
		b->n = 1;
		b->min = e;
		return e;
	}
	hlist_add_head(&t->node, wide ? &list[wheel_turn(b->n)] : list);
	if (width > 1 && (int)((u32)e - b->min) < 0)
		b->min = e;
	if (width > 1 && unlikely(b->n % WHEEL_BIG == 0)) {
		if (b->n == WHEEL_BIG)
			wheel_is_big(w, slot);
		e = wheel_pace_event(b->n + 1, q * width, width);
	}
	b->n++;
	return e;
}

/* The first bucket of the top level whose timers may be of class @c. */
static inline u64 wheel_far_from(const struct wheel *w, unsigned int c)
{
	return (wheel_horizon(w) >> c | 1) << c;
}

/* The tick at which class @c has its turn: the horizon has come to that bucket. */
static inline u64 wheel_far_event(const struct wheel *w, unsigned int c)
{
	return (wheel_far_from(w, c) - (WHEEL_R4 - 1)) * WHEEL_W4;
}

/*
 * The bucket of @t has an event at tick @event, which is after clk. In the upper levels only one
 * that is earlier than w->upper can be earlier than w->next. Returns what wheel_add() does.
 */
static __always_inline bool wheel_note(struct wheel *w, const struct wheel_timer *t, u64 event,
				       bool upper)
{
	if (likely(event >= (upper ? w->upper : w->next)))
		return false;
	if (upper) {
		w->upper = event;
		w->upper_slot = t->bucket;
		if (event >= w->next)
			return false;
	}
	w->next = event;
	return true;
}

/* Queue @t, beyond the span of the wheel. Its top bucket is @q4. */
static inline bool wheel_put_far(struct wheel *w, struct wheel_timer *t, u64 q4)
{
	unsigned int c = fls64(q4 ^ wheel_horizon(w)) - 1;

	wheel_put(w, t, t->expires, WHEEL_FAR + c, q4, 0);
	return wheel_note(w, t, wheel_far_event(w, c), true);
}

/* Queue @t in level @l, whose bucket @q it falls into and which reaches so far. */
static __always_inline bool wheel_put_level(struct wheel *w, struct wheel_timer *t,
					    u64 e, unsigned int l, u64 q)
{
	const struct wheel_level lv = wheel_levels[l];
	unsigned long slot = w->slot[l] + (unsigned long)(q - w->q[l]);

	if (slot >= (unsigned long)lv.first + lv.slots)
		slot -= lv.slots;
	return wheel_note(w, t, wheel_put(w, t, e, slot, q, lv.width), l);
}

/* Slot @slot, counted on from one of level @lv. */
static inline u32 wheel_round(const struct wheel_level *lv, u32 slot)
{
	return slot < (u32)lv->first + lv->slots ? slot : slot - lv->slots;
}

/* How many stops of level 2 clk's bucket has had, less one: the first is its beginning. */
static inline u32 wheel_stops_had(const struct wheel *w)
{
	return (u32)(w->q[0] - w->q[2] * WHEEL_W2) / WHEEL_STOP2;
}

/* The slot of the last stop of level 1 up to clk, and of level 2. */
static inline u32 wheel_stop1(const struct wheel *w)
{
	return WHEEL_S1 + w->slot[1] - WHEEL_L1;
}

static inline u32 wheel_stop2(const struct wheel *w)
{
	return WHEEL_S2 + (w->slot[2] - WHEEL_L2) * WHEEL_PARTS + wheel_stops_had(w);
}

/* Queue @t, due at @e, at a stop, whose slot is @slot. */
static inline bool wheel_put_stop(struct wheel *w, struct wheel_timer *t, u64 e, u32 slot)
{
	struct hlist_head *lists = &w->list[wheel_stop_list(slot)];
	struct wheel_bucket *b = &w->bucket[slot];

	WRITE_ONCE(t->bucket, slot);
	__set_bit(slot, w->map);
	hlist_add_head(&t->node, &lists[wheel_turn(b->n++) % WHEEL_STOP_LISTS]);
	return wheel_note(w, t, e, true);
}

/* Queue @t, due at @e, at stop @q of level 1. */
static inline bool wheel_put_stop1(struct wheel *w, struct wheel_timer *t, u64 e, u64 q)
{
	return wheel_put_stop(w, t, e, wheel_round(&wheel_stops[0],
						   wheel_stop1(w) + (u32)(q - w->q[1])));
}

/* And of level 2. */
static inline bool wheel_put_stop2(struct wheel *w, struct wheel_timer *t, u64 e, u64 q)
{
	u32 first = WHEEL_S2 + (w->slot[2] - WHEEL_L2) * WHEEL_PARTS;

	return wheel_put_stop(w, t, e, wheel_round(&wheel_stops[1],
						   first + (u32)(q - w->q[2] * WHEEL_PARTS)));
}

/* Is tick @e where most timers are, in levels 0 to 2? */
static inline bool wheel_is_near(const struct wheel *w, u64 e)
{
	return e <= w->reach[2];
}

/*
 * wheel_place() for tick @e, which is near. If @e is over, an idle timer is queued for the
 * next tick. A timer that looks queued is being moved, and stays due at @e. With @stops it goes to
 * a stop if it is due at one. That would be right of any, but is worth it only where it is likely.
 */
static __always_inline bool wheel_place_near(struct wheel *w, struct wheel_timer *t, u64 e,
					     bool stops)
{
	u64 q;

	t->expires = e;
	if (e > w->reach[1]) {
		q = div_u64(e, WHEEL_STOP2);
		if (stops && q * WHEEL_STOP2 == e)
			return wheel_put_stop2(w, t, e, q);
		return wheel_put_level(w, t, e, 2, div_u64(e, WHEEL_W2));
	}
	if (e > w->reach[0]) {
		q = div_u64(e, WHEEL_STOP1);
		if (stops && q * WHEEL_STOP1 == e)
			return wheel_put_stop1(w, t, e, q);
		return wheel_put_level(w, t, e, 1, q);
	}
	if (unlikely(e <= w->q[0]) && !wheel_pending(t)) {
		e = w->q[0] + 1;
		t->expires = e;
	}
	return wheel_put_level(w, t, e, 0, e);
}

/* wheel_place() where it is not. */
static inline bool wheel_place_beyond(struct wheel *w, struct wheel_timer *t)
{
	u64 e = t->expires, q4 = div_u64(e, WHEEL_W4);

	if (q4 - w->q[4] <= 1)
		return wheel_put_level(w, t, e, 3, div_u64(e, WHEEL_W3));
	if (q4 - w->q[4] < WHEEL_R4)
		return wheel_put_level(w, t, e, 4, q4);
	return wheel_put_far(w, t, q4);
}

/*
 * Queue @t by its expiry and clk, in the lowest level that reaches so far.
 * Returns what wheel_add() does.
 *
 * Since the level below did not reach, an upper bucket is at least two away from
 * the current one: a bucket that is being emptied gets no new timers.
 */
static __always_inline bool wheel_place(struct wheel *w, struct wheel_timer *t)
{
	u64 e = t->expires;

	return likely(wheel_is_near(w, e)) ? wheel_place_near(w, t, e, true) :
					     wheel_place_beyond(w, t);
}

/* wheel_add() for a tick that is near, where that has to be fast. */
static __always_inline bool wheel_add_near(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	w->added++;
	return wheel_place_near(w, t, expires, false);
}

/**
 * wheel_add() - queue a timer
 * @w:		the wheel
 * @t:		an idle timer; or one that wheel_unlink() took out, if @expires is later
 *		than wheel_clk()
 * @expires:	the tick it is due; one that is over already means the next one
 *
 * Return: true if @w->next moved to an earlier tick.
 */
static __always_inline bool wheel_add(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	if (likely(wheel_is_near(w, expires)))
		return wheel_add_near(w, t, expires);
	t->expires = expires;
	w->added++;
	return wheel_place_beyond(w, t);
}

/* The least multiple of @step that is no less than @x, if there is one. */
static inline u64 wheel_round_up(u64 x, u32 step)
{
	return div_u64(x + step - 1, step) * step;
}

/* The same of what is less than a stop of level 2. */
static __always_inline u32 wheel_step(u32 x, u32 step)
{
	return (x + step - 1) / step * step;
}

/*
 * Of the ticks @first to @last, counted from a stop of level 2, with none between them, the one
 * that most others can have.
 */
static inline u32 wheel_choose_between(u32 first, u32 last)
{
	static const u8 steps[] = {
		WHEEL_STOP1,
#if WHEEL_STOP1 == 60
		30, 10, 5, 2,
#endif
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		u32 tick = wheel_step(first, steps[i]);

		if (tick <= last)
			return tick;
	}
	return first;
}

/**
 * wheel_choose() - the tick in which a timer fires that may be late
 * @first:	the first that it may be, before the end of time by the ticks of a bucket of level 3
 * @last:	and the last
 *
 * It shall be one that timers have which were armed at other times, for other ones and elsewhere:
 * so it is a round number, of ticks since the beginning of time. The first one, for there is no
 * use in being later than that:
 *
 *	ticks allowed		multiple of
 *	345 600 or more		86 400
 *	14 400 or more		3 600
 *	fewer			600 if there is one, else 60, 30, 10, 5 or 2
 *
 * With coarser numbers, as 3 600 where there is one, timers would be three times as late, in more
 * ticks and moved more often: of delays up to a minute of ms few tolerances reach one, but all of
 * half a second and more a 600th.
 *
 * Return: it.
 */
static __always_inline u64 wheel_choose(u64 first, u64 last)
{
	u64 stop;

	if (last - first >= 4 * WHEEL_W2)
		return wheel_round_up(first, last - first >= 4ULL * WHEEL_W3 ? WHEEL_W3 : WHEEL_W2);
	stop = wheel_round_up(first, WHEEL_STOP2);
	if (stop <= last)
		return stop;
	stop -= WHEEL_STOP2;
	return stop + wheel_choose_between((u32)(first - stop), (u32)(last - stop));
}

/* wheel_add_chosen() for a tick that is near, where that has to be fast. */
static __always_inline bool wheel_add_chosen_near(struct wheel *w, struct wheel_timer *t,
						  u64 expires)
{
	w->added++;
	return wheel_place_near(w, t, expires, true);
}

/**
 * wheel_add_chosen() - queue a timer for a tick that wheel_choose() gave
 * @w:		the wheel
 * @t:		as for wheel_add()
 * @expires:	the tick
 *
 * wheel_add(), but for what is due at a stop: that is not moved.
 *
 * Return: as wheel_add().
 */
static inline bool wheel_add_chosen(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	if (likely(wheel_is_near(w, expires)))
		return wheel_add_chosen_near(w, t, expires);
	w->added++;
	t->expires = expires;
	return wheel_place_beyond(w, t);
}

/* Bucket @slot has no more than WHEEL_BIG timers any more. */
static inline void wheel_is_small(struct wheel *w, unsigned int slot)
{
	if (!test_bit(slot, w->big))
		return;
	__clear_bit(slot, w->big);
	w->nr_big[wheel_level_of(slot)]--;
}

/*
 * Take @t out of its bucket. To lockless readers it still looks queued: the caller either queues
 * it again or says that it is idle.
 */
static __always_inline void wheel_unlink(struct wheel *w, struct wheel_timer *t)
{
	unsigned int slot = t->bucket;
	struct wheel_bucket *b = &w->bucket[slot];

	__hlist_del(&t->node);
	w->gone++;
	if (b->n == 1) {
		b->n = 0;
		__clear_bit(slot, w->map);
	} else if (unlikely(--b->n == WHEEL_BIG)) {
		wheel_is_small(w, slot);
	}
}

/**
 * wheel_del() - take a queued timer out
 * @w:		the wheel
 * @t:		a timer that is queued in @w
 *
 * @w->next stays as it is: a step too many is cheaper than a search.
 */
static inline void wheel_del(struct wheel *w, struct wheel_timer *t)
{
	wheel_unlink(w, t);
	WRITE_ONCE(t->bucket, WHEEL_NONE);
}

/*
 * Put off @t, which may be idle, to tick @expires, which is after clk: without touching it but for
 * that tick, if it is queued in level 1 or above for an earlier one. Returns whether that is done.
 * A timer that is in no bucket, but elsewhere, has a number there that is negative if it is signed.
 *
 * It stays in its bucket, and goes where it belongs when that is emptied. What the bucket says
 * of its timers, that none is due before its min, goes on being so. In level 0, and at a stop, a
 * timer is taken for due when its bucket is, and nobody would pace its move.
 */
static __always_inline bool wheel_put_off(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	if ((short)t->bucket < WHEEL_L1 || expires < t->expires)
		return false;
	t->expires = expires;
	w->added++;
	w->gone++;
	return true;
}

/**
 * wheel_mod() - queue a queued timer for another tick
 * @w:		the wheel
 * @t:		a timer that is queued in @w
 * @expires:	the tick it is due; one that is over already means the next one
 *
 * The same as wheel_del() and wheel_add(). But most timeouts are put off again and again, and a
 * timer that is put off costs next to nothing.
 *
 * Return: true if @w->next moved to an earlier tick.
 */
static inline bool wheel_mod(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	if (expires <= w->q[0])
		expires = w->q[0] + 1;
	if (wheel_put_off(w, t, expires))
		return false;
	wheel_unlink(w, t);
	return wheel_add(w, t, expires);
}

/**
 * wheel_may_stay() - is a queued timer due when it shall be, as it is?
 * @w:		the wheel
 * @t:		a timer that is queued in @w
 * @first:	the first tick in which it may fire, after wheel_clk()
 * @last:	and the last
 *
 * Then nothing needs to be done: for that it is counted as one that was armed anew. A timeout that
 * may be late by a tenth, and is put off a hundred times before it is due, is moved ten times.
 *
 * Return: whether that is so.
 */
static inline bool wheel_may_stay(struct wheel *w, const struct wheel_timer *t, u64 first, u64 last)
{
	if (t->expires < first || t->expires > last)
		return false;
	w->added++;
	w->gone++;
	return true;
}

/**
 * wheel_mod_range() - queue a queued timer for another tick, of several
 * @w:		the wheel
 * @t:		a timer that is queued in @w
 * @first:	the first tick in which it may fire; one that is over means the next one
 * @last:	and the last; if that is before @first it is @first
 *
 * Return: true if @w->next moved to an earlier tick.
 */
static inline bool wheel_mod_range(struct wheel *w, struct wheel_timer *t, u64 first, u64 last)
{
	if (first <= w->q[0])
		first = w->q[0] + 1;
	if (last < first)
		last = first;
	if (wheel_may_stay(w, t, first, last))
		return false;
	if (last > first)
		first = wheel_choose(first, last);
	if (wheel_put_off(w, t, first))
		return false;
	wheel_unlink(w, t);
	return wheel_add_chosen(w, t, first);
}

/**
 * wheel_add_range() - queue a timer that may fire in several ticks
 * @w:		the wheel
 * @t:		as for wheel_add()
 * @first:	as for wheel_mod_range()
 * @last:	as for wheel_mod_range()
 *
 * Return: as wheel_add().
 */
static inline bool wheel_add_range(struct wheel *w, struct wheel_timer *t, u64 first, u64 last)
{
	if (first <= w->q[0])
		first = w->q[0] + 1;
	return wheel_add_chosen(w, t, last > first ? wheel_choose(first, last) : first);
}

/*
 * The distance in slots from slot @cur of level @lv to the first bit at or after
 * @from, going round; @lv->slots where there is none.
 */
static inline u32 wheel_search(const unsigned long *map,
			       const struct wheel_level *lv, u32 cur, u32 from)
{
	u32 end = lv->first + lv->slots;
	u32 i = find_next_bit(map, end, from);

	if (i < end)
		return i - cur;
	i = find_next_bit(map, cur, lv->first);
	return i < cur ? i + lv->slots - cur : lv->slots;
}

/* The slot after the current one of level @l. */
static inline u32 wheel_next_slot(const struct wheel *w, unsigned int l)
{
	u32 slot = w->slot[l] + 1;

	return slot == (u32)wheel_levels[l].first + wheel_levels[l].slots ?
	       wheel_levels[l].first : slot;
}

/* The next tick, of an event that is at @event or was to be. */
static inline u64 wheel_later(const struct wheel *w, u64 event)
{
	return event > w->q[0] ? event : w->q[0] + 1;
}

/* Bucket @slot has an event at tick @event. */
static inline void wheel_found(struct wheel *w, u64 event, u32 slot)
{
	if (event >= w->upper)
		return;
	w->upper = event;
	w->upper_slot = slot;
}

/*
 * The earliest event of the big buckets of level @l: the first of them begins before the second
 * can be begun with.
 */
static inline void wheel_search_big(struct wheel *w, unsigned int l)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u64 end = (w->q[l] + 1) * lv->width;
	u32 slot = wheel_next_slot(w, l), d;

	if (!test_bit(slot, w->big)) {
		if (w->upper <= end + 1)
			return;
		d = wheel_search(w->big, lv, w->slot[l], w->slot[l] + 1);
		if (d == lv->slots)
			return;
		end += (d - 1) * (u64)lv->width;
		slot = wheel_round(lv, w->slot[l] + d);
	}
	wheel_found(w, wheel_later(w, wheel_pace_event(w->bucket[slot].n, end, lv->width)), slot);
}

/* The earliest event of the far timers: a higher class has its turn later. */
static inline void wheel_search_far(struct wheel *w)
{
	u32 slot = find_next_bit(w->map, WHEEL_SLOTS, WHEEL_FAR);

	if (w->bucket[w->far].n)
		wheel_found(w, w->q[0] + 1, w->far);
	else if (slot < WHEEL_SLOTS)
		wheel_found(w, wheel_far_event(w, slot - WHEEL_FAR), slot);
}

/* The earliest event of level @l, not counting those of big buckets. */
static inline void wheel_search_level(struct wheel *w, unsigned int l)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u32 cur = w->slot[l], d;
	u64 start;

	/* Most often the rest of the level is later than what is known of. */
	if (w->upper < (w->q[l] + 1) * lv->width)
		d = test_bit(cur, w->map) ? 0 : lv->slots;
	else
		d = wheel_search(w->map, lv, cur, cur);
	if (d == lv->slots)
		return;
	cur = wheel_round(lv, cur + d);
	start = (w->q[l] + d) * lv->width;
	wheel_found(w, start + wheel_min(&w->bucket[cur], start), cur);
}

/* The next stop, of those after the last one, in slot @cur, which was at tick @at. */
static inline void wheel_search_stop(struct wheel *w, const struct wheel_level *lv, u32 cur, u64 at)
{
	u32 d;

	if (w->upper <= at + lv->width)
		return;
	d = wheel_search(w->map, lv, cur, cur + 1);
	if (d < lv->slots)
		wheel_found(w, at + d * (u64)lv->width, wheel_round(lv, cur + d));
}

static inline void wheel_search_stops(struct wheel *w)
{
	wheel_search_stop(w, &wheel_stops[0], wheel_stop1(w), w->q[1] * WHEEL_W1);
	wheel_search_stop(w, &wheel_stops[1], wheel_stop2(w),
			  w->q[2] * WHEEL_W2 + wheel_stops_had(w) * WHEEL_STOP2);
}

static inline void wheel_search_upper(struct wheel *w)
{
	unsigned int l;

	w->upper = WHEEL_NEVER;
	wheel_search_stops(w);
	for (l = 1; l < WHEEL_LEVELS; l++) {
		wheel_search_level(w, l);
		if (w->nr_big[l])
			wheel_search_big(w, l);
	}
	wheel_search_far(w);
}

/* Is @upper over, or of a bucket that was emptied by cancels? */
static inline bool wheel_upper_is_stale(const struct wheel *w)
{
	return w->upper <= w->q[0] ||
	       (w->upper != WHEEL_NEVER && !test_bit(w->upper_slot, w->map));
}

/*
 * The earliest event of all. That of the upper levels is searched for when it is over, and
 * not while there is something to do in each tick anyway. No step may be under way.
 */
static inline u64 wheel_search_next(struct wheel *w)
{
	const struct wheel_level *lv = &wheel_levels[0];
	u32 d = wheel_search(w->map, lv, w->slot[0], w->slot[0] + 1);

	if (d == 1)
		return w->q[0] + 1;
	if (wheel_upper_is_stale(w))
		wheel_search_upper(w);
	return d < lv->slots && w->q[0] + d < w->upper ? w->q[0] + d : w->upper;
}

/**
 * struct wheel_walk - a bucket whose timers are being taken, some or all
 * @lists:	its lists. Until the walk is over nodes do not point back to there
 * @mask:	of the number of lists
 * @n:		timers left
 */
struct wheel_walk {
	struct hlist_head	*lists;
	u32			mask;
	u32			n;
};

static __always_inline struct wheel_walk wheel_walk(struct wheel *w, unsigned int slot)
{
	return (struct wheel_walk){
		.lists	= wheel_lists(w, slot),
		.mask	= wheel_nr_lists(slot) - 1,
		.n	= w->bucket[slot].n,
	};
}

/* The first timers of each list of bucket @slot are about to be taken. */
static inline void wheel_warm(struct wheel *w, unsigned int slot)
{
	struct hlist_head *lists = wheel_lists(w, slot);
	unsigned int i;

	for (i = 0; i < wheel_nr_lists(slot); i++)
		prefetch(lists[i].first);
}

/*
 * The list whose turn it is, of a bucket that is not empty. That depends on what is left of it
 * alone, so that walks may end and begin anywhere.
 */
static __always_inline struct hlist_head *wheel_walk_list(const struct wheel_walk *walk)
{
	struct hlist_head *list;
	u32 i = walk->n;

	do
		list = &walk->lists[wheel_turn(--i) & walk->mask];
	while (unlikely(!list->first));
	return list;
}

/* Take the next timer. */
static __always_inline struct wheel_timer *wheel_walk_on(struct wheel_walk *walk)
{
	struct hlist_head *list = wheel_walk_list(walk);
	struct hlist_node *node = list->first;

	walk->n--;
	list->first = node->next;
	prefetch(node->next);
	return container_of(node, struct wheel_timer, node);
}

static inline void wheel_walk_end(struct wheel *w, unsigned int slot,
				  const struct wheel_walk *walk)
{
	struct wheel_bucket *b = &w->bucket[slot];
	unsigned int i;

	b->n = walk->n;
	if (!b->n)
		__clear_bit(slot, w->map);
	for (i = 0; b->n && i <= walk->mask; i++)
		if (walk->lists[i].first)
			walk->lists[i].first->pprev = &walk->lists[i].first;
	if (b->n <= WHEEL_BIG)
		wheel_is_small(w, slot);
}

/* Who wants to know of @nr timers that were moved out of bucket @slot defines this. */
#ifndef wheel_moved
#define wheel_moved(w, slot, nr)	((void)(w), (void)(slot), (void)(nr))
#endif

/*
 * Move up to @most timers of bucket @slot to where they belong now, which is another bucket:
 * they need not be taken out one by one. To those who ask without the lock a timer that is
 * being moved looks queued all the while.
 */
static inline u32 wheel_drain(struct wheel *w, unsigned int slot, u32 most)
{
	struct wheel_walk walk = wheel_walk(w, slot);
	u32 i;

	if (most > walk.n)
		most = walk.n;
	wheel_warm(w, slot);
	for (i = 0; i < most; i++)
		wheel_place(w, wheel_walk_on(&walk));
	wheel_walk_end(w, slot, &walk);
	w->moves += most;
	wheel_moved(w, slot, most);
	return most;
}

/*
 * Moves owed at clk by a bucket of @n timers that begins at @end: as many as leave it small
 * there, if they are done in each tick from now on. At @end, all.
 */
static inline u32 wheel_owed(const struct wheel *w, u32 n, u64 end, u32 width)
{
	u32 left = end - w->q[0];

	if (w->q[0] >= end)
		return n;
	if (n <= WHEEL_BIG || w->q[0] < wheel_pace_event(n, end, width))
		return 0;
	return (n - WHEEL_BIG + left - 1) / left;
}

/*
 * Empty the class of far timers whose turn it is, WHEEL_BIG a tick, or as many as are needed to be
 * through before another class has its turn.
 */
static inline void wheel_begin_far(struct wheel *w)
{
	u32 left = (w->q[4] + 1) * WHEEL_W4 - w->q[0];
	u32 evenly = (w->bucket[w->far].n - 1) / left + 1;

	w->quota[0] = evenly > WHEEL_BIG ? evenly : WHEEL_BIG;
}

/* Is the bucket next to the current one of level @l big? */
static inline bool wheel_next_is_big(const struct wheel *w, unsigned int l)
{
	return w->nr_big[l] && test_bit(wheel_next_slot(w, l), w->big);
}

/* What the bucket next to the current one of level @l owes, which is big; or shortly will. */
static inline u32 wheel_next_owes(const struct wheel *w, unsigned int l, bool shortly)
{
	u32 width = wheel_levels[l].width, n = w->bucket[wheel_next_slot(w, l)].n;
	u64 end = (w->q[l] + 1) * width;

	if (!shortly)
		return wheel_owed(w, n, end, width);
	return w->q[0] + width / 8 < wheel_pace_event(n, end, width) ? 0 : n - WHEEL_BIG;
}

/*
 * If nothing is due in the next tick, and nobody owes more than usual, one level, or the far
 * timers, move a chunk of what they owe or shortly will. That saves wake-ups.
 */
static inline void wheel_begin_chunk(struct wheel *w)
{
	unsigned int l = WHEEL_LEVELS;
	u64 n = 0;

	while (!n && --l)
		n = wheel_next_is_big(w, l) ? wheel_next_owes(w, l, true) : 0;
	if (!l && w->quota[0])
		n = w->bucket[w->far].n;
	if (n)
		w->quota[l] = n < WHEEL_CHUNK ? n : WHEEL_CHUNK;
}

/* What the buckets next to the current ones owe. */
static inline void wheel_begin_pace(struct wheel *w)
{
	bool crowded;
	unsigned int l;

	if (w->bucket[w->far].n)
		wheel_begin_far(w);
	crowded = w->quota[0] > WHEEL_BIG;
	for (l = 1; l < WHEEL_LEVELS; l++) {
		if (wheel_next_is_big(w, l))
			w->quota[l] = wheel_next_owes(w, l, false);
		crowded |= w->quota[l] > WHEEL_BIG;
	}
	if (!crowded && !test_bit(wheel_next_slot(w, 0), w->map))
		wheel_begin_chunk(w);
}

/* Make @t the current tick and see what is owed there; nothing before the first event above. */
static inline void wheel_begin(struct wheel *w, u64 t)
{
	unsigned int l;

	wheel_set_clk(w, t);
	w->due = w->slot[0];
	if (t < w->upper) {
		w->phase = WHEEL_EXPIRE;
		return;
	}
	w->phase = WHEEL_CASCADE;
	for (l = 0; l < WHEEL_LEVELS; l++)
		w->quota[l] = 0;
	wheel_begin_pace(w);
}

/*
 * Empty the current bucket of each upper level if a timer of it is due. Top level first;
 * what is moved never lands in a bucket that is emptied here.
 */
static inline bool wheel_cascade(struct wheel *w, u32 *budget)
{
	unsigned int l;

	for (l = WHEEL_LEVELS - 1; l; l--) {
		unsigned int slot = w->slot[l];
		u64 start = w->q[l] * wheel_levels[l].width;

		if (!test_bit(slot, w->map))
			continue;
		if (wheel_min(&w->bucket[slot], start) > w->q[0] - start)
			continue;
		*budget -= wheel_drain(w, slot, *budget);
		if (w->bucket[slot].n)
			return false;
	}
	return true;
}

/* Move what is owed at clk ahead of time. */
static inline bool wheel_move_owed(struct wheel *w, u32 *budget)
{
	unsigned int l;

	for (l = 0; l < WHEEL_LEVELS; l++) {
		u32 most = w->quota[l], slot, done;

		if (!most)
			continue;
		slot = l ? wheel_next_slot(w, l) : w->far;
		if (most > *budget)
			most = *budget;
		done = wheel_drain(w, slot, most);
		*budget -= done;
		w->quota[l] -= done;
		if (!w->bucket[slot].n)
			w->quota[l] = 0;
		if (w->quota[l])
			return false;
	}
	return true;
}

/* The next timer of bucket @slot, which is not empty. */
static inline struct wheel_timer *wheel_first(struct wheel *w, unsigned int slot)
{
	struct wheel_walk walk = wheel_walk(w, slot);

	return container_of(wheel_walk_list(&walk)->first, struct wheel_timer, node);
}

/**
 * struct wheel_slot - a slot whose timers are due at clk, for who takes them one by one
 * @lists:	its lists
 * @bucket:	how many there are
 * @mask:	of the number of lists
 */
struct wheel_slot {
	struct hlist_head	*lists;
	struct wheel_bucket	*bucket;
	u32			mask;
};

/* That which wheel_expiring() is true of, until none is left, whatever is added or taken. */
static __always_inline struct wheel_slot wheel_due_slot(struct wheel *w)
{
	return (struct wheel_slot){
		.lists	= wheel_lists(w, w->due),
		.bucket	= &w->bucket[w->due],
		.mask	= wheel_nr_lists(w->due) - 1,
	};
}

/*
 * Take the next timer of @slot, which is not empty: wheel_del(), but what is due at clk is in no
 * big bucket.
 */
static __always_inline struct wheel_timer *wheel_pop(struct wheel *w, const struct wheel_slot *slot)
{
	u32 n = slot->bucket->n;
	struct hlist_head *list = &slot->lists[wheel_turn(n - 1) & slot->mask];
	struct wheel_timer *t;
	struct hlist_node *next;

	if (unlikely(!list->first))
		list = wheel_walk_list(&(struct wheel_walk){ slot->lists, slot->mask, n });
	t = container_of(list->first, struct wheel_timer, node);
	next = t->node.next;
	prefetch(next);
	list->first = next;
	if (likely(next))
		next->pprev = &list->first;
	slot->bucket->n = n - 1;
	if (unlikely(n == 1))
		__clear_bit(w->due, w->map);
	w->gone++;
	WRITE_ONCE(t->bucket, WHEEL_NONE);
	return t;
}

/* Take up to @most timers that are due at clk. Returns how many. */
static inline u32 wheel_take_many(struct wheel *w, struct wheel_timer **timers, u32 most)
{
	unsigned int slot = w->due;
	struct wheel_walk walk = wheel_walk(w, slot);
	u32 i;

	if (most > walk.n)
		most = walk.n;
	wheel_warm(w, slot);
	for (i = 0; i < most; i++) {
		timers[i] = wheel_walk_on(&walk);
		WRITE_ONCE(timers[i]->bucket, WHEEL_NONE);
	}
	wheel_walk_end(w, slot, &walk);
	w->gone += most;
	return most;
}

/* Are there timers that are due at clk, and is it their turn? */
static inline bool wheel_expiring(const struct wheel *w)
{
	return w->phase == WHEEL_EXPIRE && w->bucket[w->due].n;
}

/*
 * Those of the slot are handed out. Those of the stops of levels 1 and 2 come next, if clk is one.
 * Returns whether there is another slot.
 */
static inline bool wheel_next_due(struct wheel *w)
{
	bool stop1 = w->due >= WHEEL_L0;
	u64 at = stop1 ? w->q[1] * WHEEL_W1 :
			 w->q[2] * WHEEL_W2 + wheel_stops_had(w) * WHEEL_STOP2;

	if (w->q[0] != at || (!stop1 && w->due >= WHEEL_S2))
		return false;
	w->due = stop1 ? wheel_stop1(w) : wheel_stop2(w);
	return true;
}

/* The step of clk is over. */
static inline void wheel_end(struct wheel *w)
{
	w->phase = WHEEL_IDLE;
	w->next = wheel_search_next(w);
}

/* Advance towards tick @now until there are, or no more can be done. Returns which. */
static inline bool wheel_advance(struct wheel *w, u64 now, u32 *budget)
{
	for (;;) {
		switch (w->phase) {
		case WHEEL_IDLE:
			if (w->next > now) {
				wheel_forward(w, now);
				return false;
			}
			if (!*budget)
				return false;
			--*budget;
			wheel_begin(w, w->next);
			break;
		case WHEEL_CASCADE:
			if (!wheel_cascade(w, budget))
				return false;
			w->phase = WHEEL_EXPIRE;
			break;
		case WHEEL_EXPIRE:
			if (wheel_expiring(w))
				return true;
			if (w->q[0] < w->upper)
				wheel_end(w);
			else if (!wheel_next_due(w))
				w->phase = WHEEL_PACE;
			break;
		case WHEEL_PACE:
			if (!wheel_move_owed(w, budget))
				return false;
			wheel_end(w);
			break;
		}
	}
}

/* Advance towards tick @now until there are timers to be handed out. Returns whether there are. */
static __always_inline bool wheel_reach(struct wheel *w, u64 now, u32 *budget)
{
	if (wheel_expiring(w))
		return true;
	if (!wheel_advance(w, now, budget))
		return false;
	wheel_warm(w, w->due);
	return true;
}

/**
 * wheel_expire() - advance towards a tick, and hand out one timer
 * @w:		the wheel
 * @now:	the tick to advance to, before WHEEL_NEVER. For one that is over already
 *		no tick is begun; a step that is unfinished is gone on with
 * @budget:	how many operations may be done, a list move, an expiry and the
 *		start of a tick being one each; what was done is taken off
 *
 * Call it until it returns NULL. Between two calls the caller may drop its lock,
 * and timers may be added and deleted. wheel_clk() is the tick that is being
 * processed: that of the timer returned.
 *
 * Return: a timer that is due and idle now, or NULL: everything up to @now is
 * done, or, where wheel_due(@w, @now) still holds, the budget is used up and the
 * next call goes on from there.
 */
static inline struct wheel_timer *wheel_expire(struct wheel *w, u64 now, u32 *budget)
{
	struct wheel_slot slot;

	if (!wheel_reach(w, now, budget) || !*budget)
		return NULL;
	--*budget;
	slot = wheel_due_slot(w);
	return wheel_pop(w, &slot);
}

/**
 * wheel_expire_many() - advance towards a tick, and hand out timers of one
 * @w:		the wheel
 * @now:	as for wheel_expire()
 * @budget:	as for wheel_expire()
 * @timers:	where to put them
 * @most:	how many fit, at least one
 *
 * All are due at wheel_clk(); there may be more.
 *
 * Return: how many; 0 where wheel_expire() would return NULL.
 */
static inline u32 wheel_expire_many(struct wheel *w, u64 now, u32 *budget,
				    struct wheel_timer **timers, u32 most)
{
	u32 nr;

	if (!wheel_expiring(w) && !wheel_advance(w, now, budget))
		return 0;
	nr = wheel_take_many(w, timers, most < *budget ? most : *budget);
	*budget -= nr;
	return nr;
}

#endif
