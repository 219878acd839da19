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
 * That takes twice the slots, and is worth it. As soon as clk enters a bucket, the bucket *after*
 * it can be emptied into the level below, a whole width before it is due. New timers for it go to
 * the level below at once. So the moves need not all happen where a bucket begins:
 *
 *  - a small bucket (at most WHEEL_BIG timers) is left alone until its earliest timer is due, and
 *    then emptied at once: by then most of its timers have been cancelled;
 *  - a big bucket is drained down to WHEEL_BIG timers before it begins: as late as a pace of
 *    WHEEL_BIG moves in each tick allows, or, if that would be too slow, evenly over the whole
 *    preceding bucket.
 *
 * The worst tick that an adversary who knows these rules can cause makes at most nine groups of
 * moves, each of at most WHEEL_BIG = 32:
 *
 *	4	the current bucket of each of levels 1 to 4, if it is small, is emptied
 *	4	the next bucket of each of these levels, if it is big, is drained at its pace
 *	1	a class of far timers is emptied at its pace
 *
 * That is 288. A group can be larger in two cases, which exclude each other:
 *
 *  - If nothing is due in the next tick, and no pace is faster than WHEEL_BIG, one of the last five
 *    groups may move WHEEL_CHUNK = 256 timers instead of 32: 8 * 32 + 256 = 512.
 *  - If the next bucket of level l has n timers, more than WHEEL_BIG for each of its ticks, its
 *    group is n / (width_l - 1). For level 1 that is a 59th of its timers. The group of a class of
 *    n far timers is n / width_4.
 *
 * So the bound is 512 moves, plus a 59th of the timers in the next bucket of level 1. If timers
 * were put off, and have not been moved since, they count in the bucket that they are in. The bound
 * holds if all groups but that of level 1 stay below 512 moves together. That is so if the next
 * bucket of level 2, an hour of 3 600 ticks, has at most 900 000 timers (251 moves in a tick), that
 * of level 3 at most 2 700 000 (32 moves), and that of level 4, and the class, at most
 * 1 000 000 000 each (32 moves each): with the four current buckets that is 475. Timers that expire
 * are not counted.
 *
 * Measured, not proved: with ticks of 1 s, if a million timers were due a day ahead, no tick needed
 * more than 609 moves if they were due within an hour, 598 within half an hour of one bucket of
 * level 2, and 920 within half an hour across the edge of two: then timers of the first are moved
 * to level 0, and of the second to level 1. These are the most of the seeds 1 to 40 of
 * selftest/wheel/spike.c.
 *
 * If ticks are idle, draining costs events of its own: one for each WHEEL_CHUNK = 256 timers of a
 * big bucket, or of a class of far timers. If there are more than 800 timers, that is an event for
 * less than half a percent of them; if there are fewer, it is four events at most. If a step
 * happens for another reason, at most an eighth of the bucket's width before draining must begin,
 * it moves the first chunk, which saves the event.
 *
 * A timer moves at most four times, and once more for each class of far timers that it passes
 * through. If a timer has been put off when its bucket is emptied, it moves to where it belongs
 * then, and from there it may move as often again.
 *
 * Timers beyond the span of the wheel are sorted into classes. The last bucket of level 4
 * that the wheel reaches is x = q_4(clk) + 99. A far timer belongs to the class of the highest bit
 * in which q_4(E) differs from x. It stays there until x has advanced so far that this bit is the
 * same. At that moment the lower bits of x are zero, so no two classes have their turn at the same
 * x. Before x advances again, the class is emptied into lower classes and level 4: a timer that is
 * due 2^n buckets of level 4 ahead is moved at most n times on its way there.
 *
 * A timer that is put off to a later tick stays in its bucket, unless that is in level 0. Only the
 * new tick is noted: when the bucket is emptied, the timer goes where it then belongs. So a timer
 * may be due later than its bucket, but never earlier, and a timeout that is put off many times
 * before its bucket is due moves once for all of them.
 *
 * A timer with a tolerance may fire in any of several ticks. wheel_choose() gives it the one that
 * it can share with most other timers. Mostly that is a stop: a multiple of 60 ticks, or, if the
 * tick is so far ahead that only level 2 reaches it, a multiple of 600. A stop has lists of its
 * own, from which its timers fire when its tick comes. They are not moved, except on their way
 * there: once for each level that they come down, which is three times at most. Level 1 has one
 * stop in each of its buckets, and level 2 has six. A timer at a stop stays there when the bucket
 * around it is emptied:
 *
 *	10^4 timers up to 60 000 ahead	ticks with an event	moves each	late, ticks
 *	exact				9 180			1.9		0
 *	by a 32nd of the delay		351			0.09		241
 *	by an 8th			160			0.002		288
 *
 * (selftest/wheel/spike.c counts these, with seed 1.)
 *
 * The next tick with work is the minimum of at most twelve bitmap searches. So sleeping costs
 * nothing, and waking up after years processes only the ticks that have work. The wheel remembers
 * the next event of the levels above 0; until then a step only searches level 0.
 *
 * Timers fire in exactly their tick, in the order of ticks; inside one tick no
 * order is promised.
 *
 * This is only the algorithm: no clock, no lock, no allocation. The caller serialises all calls on
 * one wheel. Without the lock a caller may only read @bucket of a timer, which says whether it is
 * queued: it is written with WRITE_ONCE(). Memory: 63 KiB a wheel.
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

/* While a class of far timers is emptied, for a bucket of level 4, none of them may be due. */
#if WHEEL_R4 < 3
#error "WHEEL_R4 must be at least 3"
#endif

/*
 * A bucket with more timers than this is big: it is drained ahead of time, about this many timers a
 * tick. A power of two. 1 is refused because the tests do not try it: two timers would be a big
 * bucket, so hardly any bucket would wait for its earliest timer.
 */
#ifndef WHEEL_BIG
#define WHEEL_BIG	32
#endif

#if WHEEL_BIG < 2 || WHEEL_BIG & (WHEEL_BIG - 1)
#error "WHEEL_BIG must be a power of two, and at least 2"
#endif

/*
 * If ticks are idle, this many timers of one level, or far timers, are moved at once. Then none are
 * moved in the ticks over which these moves would have been spread: that saves waking up for each.
 */
#ifndef WHEEL_CHUNK
#define WHEEL_CHUNK	(8ULL * WHEEL_BIG)
#endif

/*
 * How many lists a stop has, and a bucket of levels 0 to 2. Timers are added to the lists in turn
 * and taken from them in turn, so that the processor loads the memory of as many timers at once: if
 * there are more timers than fit into its caches, expiry mostly waits for memory. A power of two.
 *
 * From timer to timer the turn advances by a little more than one list. If it advanced by exactly
 * one, and all but every eighth timer were cancelled, the rest would be in one list. That is not
 * far-fetched: a request may arm eight timers, of which one stays. WHEEL_TURN is
 * 2^32 / (6 + 0.618...): no small multiple of it is close to a multiple of 2^32, and each list has
 * its turn again after six, seven or thirteen timers, eight on average.
 */
#ifndef WHEEL_LISTS
#define WHEEL_LISTS	8
#endif
#define WHEEL_TURN	0x26aea387U

/* wheel_turn() divides by 2^32 / WHEEL_LISTS, which must fit into 32 bits. */
#if WHEEL_LISTS < 2 || WHEEL_LISTS & (WHEEL_LISTS - 1)
#error "WHEEL_LISTS must be a power of two, and at least 2"
#endif

/* Stops in a bucket of level 2. */
#ifndef WHEEL_PARTS
#define WHEEL_PARTS	6
#endif

#if WHEEL_R1 % WHEEL_PARTS
#error "WHEEL_PARTS must divide WHEEL_R1: a stop of level 2 begins a bucket of level 1"
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

/* Classes of far timers: one for each bit of the largest number that wheel_horizon() returns. */
#define WHEEL_CLASSES	(64 - __builtin_clzll(WHEEL_NEVER / WHEEL_W4 + WHEEL_R4 - 1))

/*
 * The first slot of each level. Slot 0 stands for none: an idle timer has it. All timers of a slot
 * before WHEEL_L1 are due at the same tick, and expire from there. Timers of later slots have to be
 * moved first.
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
	WHEEL_WIDE	= WHEEL_L3,	/* slots before it have WHEEL_LISTS lists, the others one */
	WHEEL_NR_LISTS	= (WHEEL_WIDE - WHEEL_S1) * WHEEL_LISTS + WHEEL_SLOTS - WHEEL_WIDE,
};

/* What loops over the levels need to know of each. */
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

/* The stops of levels 1 and 2, as if they were levels: the width is the distance between stops. */
static const struct wheel_level wheel_stops[2] = {
	{ WHEEL_S1, 2 * WHEEL_R1, WHEEL_STOP1 },
	{ WHEEL_S2, 2 * WHEEL_R2 * WHEEL_PARTS, WHEEL_STOP2 },
};

/* The phase of the step of tick clk. A step may be interrupted and resumed anywhere. */
enum wheel_phase {
	WHEEL_IDLE,		/* none: the step of clk is over */
	WHEEL_CASCADE,		/* emptying the buckets that are due */
	WHEEL_EXPIRE,		/* handing out the timers due at clk */
	WHEEL_PACE,		/* draining big buckets ahead of time */
};

/**
 * struct wheel_bucket - timers of the same q_l
 * @n:		how many
 * @min:	the low bits of a tick before which no timer of the bucket is due, see wheel_min().
 *		A lower bound, since a cancel does not change it. Not kept in level 0, at stops
 *		and for far timers
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
 *		lower bound, since a cancel does not change it
 * @upper:	a lower bound of the events of levels 1 to 4, of stops and of far timers; at
 *		least @next. It is valid until the tick @upper is over. @next is valid even then
 * @slot:	for each level, the slot of its current bucket, @q
 * @reach:	for each of levels 0 to 2, the last tick for which the level has a bucket
 * @upper_slot:	the bucket that has the event @upper
 * @phase:	the phase of the step of clk
 * @due:	the slot whose timers are handed out at clk
 * @far:	the slot of the class of far timers that is emptied while clk is in this
 *		bucket of level 4; it gets no new timers meanwhile
 * @nr_big:	how many bits of @big are set, for each level
 * @quota:	for each level, how many moves the bucket after the current one still owes at clk;
 *		[0] is for the class @far
 * @added:	timers added so far
 * @gone:	of these, those that are no longer queued, see wheel_nr()
 * @moves:	list moves so far; statistics
 * @map:	a bit for each slot with n > 0
 * @big:	a bit for each slot of levels 1 to 4 with n > WHEEL_BIG
 * @bucket:	the buckets of all levels
 * @list:	their timers, see wheel_lists()
 *
 * With WHEEL_STORE_APART, @bucket and @list are pointers into a zeroed struct wheel_store, which
 * the caller provides before the first timer is put into a bucket.
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

/* The tick last processed; or, while its step is unfinished, the tick that is being processed. */
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

/* Is @t queued? A caller without the lock reads @bucket with READ_ONCE() itself. */
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

/* The last tick of bucket @q of buckets of @width. The last bucket ends with time. */
static inline u64 wheel_last(u64 q, u64 width)
{
	return q < WHEEL_NEVER / width ? (q + 1) * width - 1 : WHEEL_NEVER;
}

/* The last bucket of the top level that the wheel reaches. */
static inline u64 wheel_horizon(const struct wheel *w)
{
	return w->q[4] + WHEEL_R4 - 1;
}

/* Move clk to tick @t, in whatever bucket of level 1 that is: set everything that depends on it. */
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
 * Move clk to tick @t, at or before the next event. Mostly @t is in the same bucket of level 1 as
 * clk, and little changes. reach[0] is the end of the bucket after the one that clk is in.
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
 * Make an empty wheel whose last processed tick is @clk. The caller has zeroed the memory: most of
 * it is buckets, and allocators can provide it zeroed.
 */
static inline void wheel_init(struct wheel *w, u64 clk)
{
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++)
		w->q[l] = WHEEL_NEVER;	/* no q is that, so all are computed */
	wheel_set_odometer(w, clk);
	w->next = WHEEL_NEVER;
	w->upper = WHEEL_NEVER;
}

/*
 * If nothing is due, let clk follow the time, so that a new timer is placed by its true distance,
 * not by that from an event long past.
 */
static inline void wheel_forward(struct wheel *w, u64 now)
{
	if (now > w->q[0] && now < w->next)
		wheel_set_clk(w, now);
}

/* How many lists bucket @slot has. */
static inline unsigned int wheel_nr_lists(unsigned int slot)
{
	return slot < WHEEL_WIDE ? WHEEL_LISTS : 1;
}

/* The index in wheel->list of the first list of bucket @slot. @wide: it has WHEEL_LISTS. */
static __always_inline unsigned long wheel_list(unsigned long slot, bool wide)
{
	return wide ? (slot - WHEEL_S1) * WHEEL_LISTS :
		      slot - WHEEL_WIDE + (WHEEL_WIDE - WHEEL_S1) * (unsigned long)WHEEL_LISTS;
}

/* The lists of bucket @slot. */
static inline struct hlist_head *wheel_lists(struct wheel *w, unsigned int slot)
{
	return &w->list[wheel_list(slot, slot < WHEEL_WIDE)];
}

/*
 * The index of the list to which the next timer is added in a bucket of @n timers. The first timer
 * goes to list 0.
 */
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

/* Note that bucket @slot now has more than WHEEL_BIG timers. */
static inline void wheel_is_big(struct wheel *w, unsigned int slot)
{
	__set_bit(slot, w->big);
	w->nr_big[wheel_level_of(slot)]++;
}

/* hlist_add_head() for a list that is known to be empty. */
static inline void wheel_put_first(struct hlist_head *list, struct wheel_timer *t)
{
	t->node.next = NULL;
	t->node.pprev = &list->first;
	list->first = &t->node;
}

/*
 * How many ticks after @start, the start of bucket @b, the bucket's min is. 32 bits are enough for
 * every bucket that has a min.
 */
static inline u32 wheel_min(const struct wheel_bucket *b, u64 start)
{
	return b->min - (u32)start;
}

/*
 * A bucket of @n timers, more than WHEEL_BIG, begins at tick @end. Returns the tick at which the
 * wheel must begin to drain it: as late as a pace of WHEEL_BIG moves in each tick allows, but not
 * before clk is in the preceding bucket. From then on the bucket gets no new timers.
 */
static __always_inline u64 wheel_pace_event(u32 n, u64 end, u32 width)
{
	u32 ticks = (n - 1) / WHEEL_BIG;

	return end - (ticks < width ? ticks : width - 1);
}

/*
 * Queue @t, due at @e, in bucket @slot, which is bucket @q of a level whose buckets are @width
 * wide; for a class of far timers, @width is 0. Returns the tick of the first event that this may
 * cause: the timer's expiry or, if the bucket is big now, the first move out of it.
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

/* The tick at which class @c has its turn: the horizon reaches the bucket wheel_far_from(). */
static inline u64 wheel_far_event(const struct wheel *w, unsigned int c)
{
	return (wheel_far_from(w, c) - (WHEEL_R4 - 1)) * WHEEL_W4;
}

/*
 * Note that the bucket of @t has an event at tick @event, which is after clk. An event of the upper
 * levels can be earlier than w->next only if it is earlier than w->upper. Returns what wheel_add()
 * returns.
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

/*
 * Queue @t, which is due beyond the span of the wheel, in its class of far timers. @q4 is q_4() of
 * the tick at which @t is due.
 */
static inline bool wheel_put_far(struct wheel *w, struct wheel_timer *t, u64 q4)
{
	unsigned int c = fls64(q4 ^ wheel_horizon(w)) - 1;

	wheel_put(w, t, t->expires, WHEEL_FAR + c, q4, 0);
	return wheel_note(w, t, wheel_far_event(w, c), true);
}

/* Queue @t in bucket @q of level @l. The level must reach that bucket. */
static __always_inline bool wheel_put_level(struct wheel *w, struct wheel_timer *t,
					    u64 e, unsigned int l, u64 q)
{
	const struct wheel_level lv = wheel_levels[l];
	unsigned long slot = w->slot[l] + (unsigned long)(q - w->q[l]);

	if (slot >= (unsigned long)lv.first + lv.slots)
		slot -= lv.slots;
	return wheel_note(w, t, wheel_put(w, t, e, slot, q, lv.width), l);
}

/* @slot, or, if that is beyond the end of level @lv, the slot at which it comes round. */
static inline u32 wheel_round(const struct wheel_level *lv, u32 slot)
{
	return slot < (u32)lv->first + lv->slots ? slot : slot - lv->slots;
}

/*
 * How many stops of level 2 have passed in the bucket that clk is in, not counting the one at its
 * beginning.
 */
static inline u32 wheel_stops_had(const struct wheel *w)
{
	return (u32)(w->q[0] - w->q[2] * WHEEL_W2) / WHEEL_STOP2;
}

/* The slot of the last stop of level 1 at or before clk. */
static inline u32 wheel_stop1(const struct wheel *w)
{
	return WHEEL_S1 + w->slot[1] - WHEEL_L1;
}

/* The slot of the last stop of level 2 at or before clk. */
static inline u32 wheel_stop2(const struct wheel *w)
{
	return WHEEL_S2 + (w->slot[2] - WHEEL_L2) * WHEEL_PARTS + wheel_stops_had(w);
}

/* Queue @t, due at @e, at the stop in @slot. */
static inline bool wheel_put_stop(struct wheel *w, struct wheel_timer *t, u64 e, u32 slot)
{
	struct hlist_head *lists = &w->list[wheel_list(slot, true)];
	struct wheel_bucket *b = &w->bucket[slot];

	WRITE_ONCE(t->bucket, slot);
	__set_bit(slot, w->map);
	hlist_add_head(&t->node, &lists[wheel_turn(b->n++)]);
	return wheel_note(w, t, e, true);
}

/* Queue @t, due at @e, at stop @q of level 1. */
static inline bool wheel_put_stop1(struct wheel *w, struct wheel_timer *t, u64 e, u64 q)
{
	return wheel_put_stop(w, t, e, wheel_round(&wheel_stops[0],
						   wheel_stop1(w) + (u32)(q - w->q[1])));
}

/* Queue @t, due at @e, at stop @q of level 2. */
static inline bool wheel_put_stop2(struct wheel *w, struct wheel_timer *t, u64 e, u64 q)
{
	u32 first = WHEEL_S2 + (w->slot[2] - WHEEL_L2) * WHEEL_PARTS;

	return wheel_put_stop(w, t, e, wheel_round(&wheel_stops[1],
						   first + (u32)(q - w->q[2] * WHEEL_PARTS)));
}

/* Is tick @e near: do levels 0 to 2, where most timers are, reach it? */
static inline bool wheel_is_near(const struct wheel *w, u64 e)
{
	return e <= w->reach[2];
}

/*
 * wheel_place() for tick @e, which is near. If @e is over and @t is idle, @t is queued for the next
 * tick instead. If @e is over and @t is not idle, the wheel is moving @t: then @t stays due at @e.
 * With @stops, a timer that is due at a stop goes there. That is allowed for any timer, but the
 * check for it pays only if timers are likely to be due at stops.
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

/* wheel_place() for a tick that is not near. */
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
 * Queue @t, which is being moved, in the lowest level that reaches @t->expires from clk. Mostly
 * that is level 0. Returns what wheel_add() returns.
 *
 * A timer goes into level 1 to 4 only if the level below does not reach its tick: then its bucket
 * is at least two after the current one. So a bucket that is being emptied gets no new timers.
 */
static __always_inline bool wheel_place(struct wheel *w, struct wheel_timer *t)
{
	u64 e = t->expires;

	if (likely(e <= w->reach[0]))
		return wheel_put_level(w, t, e, 0, e);
	return likely(wheel_is_near(w, e)) ? wheel_place_near(w, t, e, true) :
					     wheel_place_beyond(w, t);
}

/* wheel_add() for a tick that is near, for callers that must be fast. */
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

/* The smallest multiple of @step that is at least @x. The multiple must be below 2^64. */
static inline u64 wheel_round_up(u64 x, u32 step)
{
	return div_u64(x + step - 1, step) * step;
}

/* wheel_round_up() for numbers of 32 bits. */
static __always_inline u32 wheel_step(u32 x, u32 step)
{
	return (x + step - 1) / step * step;
}

/*
 * Of the ticks @first to @last, the one that most other timers can share. Both are counted from a
 * stop of level 2, and none of these ticks is such a stop.
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
 * wheel_choose() - choose the tick in which a timer with a tolerance fires
 * @first:	the first tick it may fire in. It is before the end of time by at least the width of
 *		a bucket of level 3
 * @last:	the last tick
 *
 * The tick should be one that the timer shares with timers that were armed at other times, for
 * other delays and elsewhere. So it is a round number of ticks since the beginning of time; the
 * first such number, since a later one would be no better:
 *
 *	@last - @first		multiple of
 *	345 600 or more		86 400
 *	14 400 or more		3 600
 *	fewer			600 if there is one, else 60, 30, 10, 5 or 2
 *
 * Coarser numbers, such as 3 600 whenever there is one, would make timers three times as late, use
 * more ticks, and move timers more often: with ticks of a ms and delays up to a minute, few
 * tolerances reach a multiple of 3 600, but all tolerances of 600 ticks and more reach a multiple
 * of 600.
 *
 * Return: the tick.
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

/* wheel_add_chosen() for a tick that is near, for callers that must be fast. */
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
 * As wheel_add(), but a timer that is due at a stop goes there, and need not be moved later.
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

/* Note that bucket @slot now has at most WHEEL_BIG timers. */
static inline void wheel_is_small(struct wheel *w, unsigned int slot)
{
	if (!test_bit(slot, w->big))
		return;
	__clear_bit(slot, w->big);
	w->nr_big[wheel_level_of(slot)]--;
}

/*
 * Take @t out of its bucket. Lockless readers still see it as queued: the caller must queue it
 * again, or set its bucket to WHEEL_NONE.
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
 * @w->next does not change: a step that finds nothing to do is cheaper than a search.
 */
static inline void wheel_del(struct wheel *w, struct wheel_timer *t)
{
	wheel_unlink(w, t);
	WRITE_ONCE(t->bucket, WHEEL_NONE);
}

/*
 * Put off @t, which may be idle, to tick @expires, which is after clk. If @t is queued in levels 1
 * to 4 or beyond, for an earlier tick or the same, only its tick is changed, and the result is
 * true. Else nothing is done. (The bucket of a timer that is queued elsewhere, as in wheel_back.h,
 * is negative as a signed number.)
 *
 * The timer stays in its bucket. When that is emptied, the timer goes where it then belongs. The
 * bucket's min stays true. In level 0 and at stops this cannot be done: there all timers of a
 * bucket expire when the bucket is due.
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
 * The same as wheel_del() and wheel_add(), but cheaper: most timeouts are put off again and again,
 * and putting off costs next to nothing.
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
 * wheel_may_stay() - is the tick of a queued timer among those in which it may fire now?
 * @w:		the wheel
 * @t:		a timer that is queued in @w
 * @first:	the first tick in which it may fire, after wheel_clk()
 * @last:	the last tick
 *
 * If so, nothing needs to be done to re-arm it, and it is counted as re-armed. If a timeout may be
 * late by a tenth, and is re-armed a hundred times before it is due, it is moved ten times.
 *
 * Return: true if it may stay.
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
 * @last:	the last tick; if it is before @first, it counts as @first
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

/* @event, or the next tick if @event is over. */
static inline u64 wheel_later(const struct wheel *w, u64 event)
{
	return event > w->q[0] ? event : w->q[0] + 1;
}

/* Note, while searching, that bucket @slot has an event at tick @event. */
static inline void wheel_found(struct wheel *w, u64 event, u32 slot)
{
	if (event >= w->upper)
		return;
	w->upper = event;
	w->upper_slot = slot;
}

/*
 * Find the earliest event of the big buckets of level @l. That is the event of the first big
 * bucket: the second may not be drained before the first begins.
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

/* Find the earliest event of the far timers. Higher classes have their turn later. */
static inline void wheel_search_far(struct wheel *w)
{
	u32 slot = find_next_bit(w->map, WHEEL_SLOTS, WHEEL_FAR);

	if (w->bucket[w->far].n)
		wheel_found(w, w->q[0] + 1, w->far);
	else if (slot < WHEEL_SLOTS)
		wheel_found(w, wheel_far_event(w, slot - WHEEL_FAR), slot);
}

/* Find the earliest event of level @l, not counting those of big buckets. */
static inline void wheel_search_level(struct wheel *w, unsigned int l)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u32 cur = w->slot[l], d;
	u64 start;

	/*
	 * If an event is known that comes before the next bucket of this level begins, only the
	 * current bucket may have an earlier one. Mostly that is so.
	 */
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

/*
 * Find the first stop that has timers, of those after clk. The last stop at or before clk is at
 * tick @at, in slot @cur.
 */
static inline void wheel_search_stop(struct wheel *w, const struct wheel_level *lv, u32 cur, u64 at)
{
	u32 d;

	if (w->upper <= at + lv->width)
		return;
	d = wheel_search(w->map, lv, cur, cur + 1);
	if (d < lv->slots)
		wheel_found(w, at + d * (u64)lv->width, wheel_round(lv, cur + d));
}

/* Let w->upper be no later than the first stop that has timers, of levels 1 and 2. */
static inline void wheel_search_stops(struct wheel *w)
{
	wheel_search_stop(w, &wheel_stops[0], wheel_stop1(w), w->q[1] * WHEEL_W1);
	wheel_search_stop(w, &wheel_stops[1], wheel_stop2(w),
			  w->q[2] * WHEEL_W2 + wheel_stops_had(w) * WHEEL_STOP2);
}

/* Find the next event of everything above level 0, and note it in w->upper. */
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

/* Is w->upper over, or the event of a bucket that cancels have emptied? */
static inline bool wheel_upper_is_stale(const struct wheel *w)
{
	return w->upper <= w->q[0] ||
	       (w->upper != WHEEL_NEVER && !test_bit(w->upper_slot, w->map));
}

/*
 * The earliest event of all. The upper levels are not searched if the next tick has work in level
 * 0, nor if @upper is still valid. No step may be under way.
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
 * struct wheel_walk - a walk: taking some or all timers out of a bucket
 * @lists:	the bucket's lists. Until wheel_walk_end() the first nodes do not point back to them
 * @mask:	number of lists - 1
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

/* Prefetch the first timer of each list of bucket @slot: they are about to be taken. */
static inline void wheel_warm(struct wheel *w, unsigned int slot)
{
	struct hlist_head *lists = wheel_lists(w, slot);
	unsigned int i;

	for (i = 0; i < wheel_nr_lists(slot); i++)
		prefetch(lists[i].first);
}

/*
 * The next list to take from. The bucket is not empty. The choice depends only on the number of
 * timers left, so a walk may stop and resume at any point. A list may be empty because of cancels:
 * then it is the next one's turn.
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

/* Take the next timer off its list. The caller must set the timer's bucket. */
static __always_inline struct wheel_timer *wheel_walk_on(struct wheel_walk *walk)
{
	struct hlist_head *list = wheel_walk_list(walk);
	struct hlist_node *node = list->first;

	walk->n--;
	list->first = node->next;
	prefetch(node->next);
	return container_of(node, struct wheel_timer, node);
}

/* End a walk: make the bucket right for what is left in it. */
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

/* Called after @nr timers were moved out of bucket @slot, when the wheel is consistent again. */
typedef void (*wheel_moved_fn)(struct wheel *w, unsigned int slot, u32 nr);

/*
 * Move up to @most timers of bucket @slot to where they belong now. That is always another bucket,
 * so they need not be taken out one by one. Lockless readers see a timer as queued throughout the
 * move. At the end @moved is called, unless it is NULL. Every caller passes a constant, so NULL
 * costs nothing.
 */
static inline u32 wheel_drain(struct wheel *w, unsigned int slot, u32 most, wheel_moved_fn moved)
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
	if (moved)
		moved(w, slot, most);
	return most;
}

/*
 * A bucket of @n timers begins at @end. How many of them must leave it in tick clk? If as many
 * leave in each tick from now on, the bucket is small at @end. At @end itself all must leave.
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
 * Set the quota of the class of far timers whose turn it is: WHEEL_BIG a tick, or as many as are
 * needed to empty it before another class has its turn.
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

/*
 * The bucket after the current one of level @l is big. How many moves does it owe at clk, or, if
 * @shortly, will it owe within an eighth of its width?
 */
static inline u32 wheel_next_owes(const struct wheel *w, unsigned int l, bool shortly)
{
	u32 width = wheel_levels[l].width, n = w->bucket[wheel_next_slot(w, l)].n;
	u64 end = (w->q[l] + 1) * width;

	if (!shortly)
		return wheel_owed(w, n, end, width);
	return w->q[0] + width / 8 < wheel_pace_event(n, end, width) ? 0 : n - WHEEL_BIG;
}

/*
 * Let one level, or the far timers, move a chunk of what they owe or will owe shortly. That saves
 * wake-ups. Called if nothing is due in the next tick, and no quota is larger than WHEEL_BIG.
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

/* Are timers in level 0 or at a stop due in the next tick? */
static inline bool wheel_next_is_due(const struct wheel *w)
{
	u64 next = w->q[0] + 1;

	if (test_bit(wheel_next_slot(w, 0), w->map))
		return true;
	if (next != (w->q[1] + 1) * WHEEL_W1)
		return false;
	if (test_bit(wheel_round(&wheel_stops[0], wheel_stop1(w) + 1), w->map))
		return true;
	return next == w->q[2] * WHEEL_W2 + (wheel_stops_had(w) + 1ULL) * WHEEL_STOP2 &&
	       test_bit(wheel_round(&wheel_stops[1], wheel_stop2(w) + 1), w->map);
}

/* Set the quotas: what the buckets next to the current ones owe at clk. */
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
	if (!crowded && !wheel_next_is_due(w))
		wheel_begin_chunk(w);
}

/*
 * Make @t the current tick, and begin its step. Before the first event of the upper levels there is
 * nothing to move.
 */
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
 * Empty the current bucket of each upper level if one of its timers is due, from the top level
 * down. No timer is moved to a bucket that is emptied here. Returns false if the budget is used up.
 */
static inline bool wheel_cascade(struct wheel *w, u32 *budget, wheel_moved_fn moved)
{
	unsigned int l;

	for (l = WHEEL_LEVELS - 1; l; l--) {
		unsigned int slot = w->slot[l];
		u64 start = w->q[l] * wheel_levels[l].width;

		if (!test_bit(slot, w->map))
			continue;
		if (wheel_min(&w->bucket[slot], start) > w->q[0] - start)
			continue;
		*budget -= wheel_drain(w, slot, *budget, moved);
		if (w->bucket[slot].n)
			return false;
	}
	return true;
}

/* Move what the quotas ask for. Returns false if the budget is used up before. */
static inline bool wheel_move_owed(struct wheel *w, u32 *budget, wheel_moved_fn moved)
{
	unsigned int l;

	for (l = 0; l < WHEEL_LEVELS; l++) {
		u32 most = w->quota[l], slot, done;

		if (!most)
			continue;
		slot = l ? wheel_next_slot(w, l) : w->far;
		if (most > *budget)
			most = *budget;
		done = wheel_drain(w, slot, most, moved);
		*budget -= done;
		w->quota[l] -= done;
		if (!w->bucket[slot].n)
			w->quota[l] = 0;
		if (w->quota[l])
			return false;
	}
	return true;
}

/* The timer that would be taken next from bucket @slot, which is not empty. */
static inline struct wheel_timer *wheel_first(struct wheel *w, unsigned int slot)
{
	struct wheel_walk walk = wheel_walk(w, slot);

	return container_of(wheel_walk_list(&walk)->first, struct wheel_timer, node);
}

/**
 * struct wheel_slot - a slot whose timers are due at clk, to be taken one by one
 * @lists:	its WHEEL_LISTS lists
 * @bucket:	its bucket, which has the number of timers
 */
struct wheel_slot {
	struct hlist_head	*lists;
	struct wheel_bucket	*bucket;
};

/*
 * The slot whose timers are due at clk, if wheel_expiring(). Until its last timer is taken, it
 * stays the same, whatever is added or deleted meanwhile.
 */
static __always_inline struct wheel_slot wheel_due_slot(struct wheel *w)
{
	return (struct wheel_slot){
		.lists	= &w->list[wheel_list(w->due, true)],
		.bucket	= &w->bucket[w->due],
	};
}

/*
 * Take the next timer of @slot, whose bucket has @n timers, at least one. As wheel_del(), but
 * without a look at the size: a bucket that is due at clk is not marked as big.
 *
 * The next timer of the list is written to, so its memory should be in the cache: an earlier call
 * has prefetched it. This call prefetches the timer behind that one, which has until the list's
 * next turn to arrive.
 */
static __always_inline struct wheel_timer *wheel_pop(struct wheel *w, const struct wheel_slot *slot,
						     u32 n)
{
	struct hlist_head *list = &slot->lists[wheel_turn(n - 1)];
	struct wheel_timer *t;
	struct hlist_node *next;

	if (unlikely(!list->first))
		list = wheel_walk_list(&(struct wheel_walk){ slot->lists, WHEEL_LISTS - 1, n });
	t = container_of(list->first, struct wheel_timer, node);
	next = t->node.next;
	list->first = next;
	if (likely(next)) {
		prefetch(next->next);
		next->pprev = &list->first;
	}
	slot->bucket->n = n - 1;
	if (unlikely(n == 1))
		__clear_bit(w->due, w->map);
	w->gone++;
	WRITE_ONCE(t->bucket, WHEEL_NONE);
	return t;
}

/* Take up to @most timers that are due at clk: wheel_expiring() holds. Returns how many. */
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

/* Are timers of slot w->due to be handed out now? */
static inline bool wheel_expiring(const struct wheel *w)
{
	return w->phase == WHEEL_EXPIRE && w->bucket[w->due].n;
}

/*
 * All timers of slot w->due have been handed out. If clk is a stop of level 1, the slot of that
 * stop is next; and after it, if clk is also a stop of level 2, the slot of that one. Returns
 * whether there is a next slot.
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

/*
 * Advance towards tick @now until timers are to be handed out: then return true. Return false if
 * everything up to @now is done, or the budget is used up.
 */
static inline bool wheel_advance(struct wheel *w, u64 now, u32 *budget, wheel_moved_fn moved)
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
			if (!wheel_cascade(w, budget, moved))
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
			if (!wheel_move_owed(w, budget, moved))
				return false;
			wheel_end(w);
			break;
		}
	}
}

/* wheel_advance(), if no timers are to be handed out already. */
static __always_inline bool wheel_reach(struct wheel *w, u64 now, u32 *budget,
					wheel_moved_fn moved)
{
	if (wheel_expiring(w))
		return true;
	if (!wheel_advance(w, now, budget, moved))
		return false;
	wheel_warm(w, w->due);
	return true;
}

/**
 * wheel_expire() - advance towards a tick, and hand out one timer
 * @w:		the wheel
 * @now:	the tick to advance to, before WHEEL_NEVER. If it is over already, no tick is begun;
 *		an unfinished step is resumed
 * @budget:	how many operations may be done. A list move, an expiry and the start of a tick are
 *		one each. Those that were done are subtracted
 *
 * Call it until it returns NULL. Between two calls the caller may drop its lock,
 * and timers may be added and deleted. wheel_clk() is the tick that is being
 * processed: that of the timer returned.
 *
 * Return: a timer that is due and idle now, or NULL. NULL means that everything up to @now is done;
 * or, if wheel_due(@w, @now) still holds, that the budget is used up, and the next call resumes
 * from there.
 */
static inline struct wheel_timer *wheel_expire(struct wheel *w, u64 now, u32 *budget)
{
	struct wheel_slot slot;

	if (!wheel_reach(w, now, budget, NULL) || !*budget)
		return NULL;
	--*budget;
	slot = wheel_due_slot(w);
	return wheel_pop(w, &slot, slot.bucket->n);
}

/**
 * wheel_expire_many() - advance towards a tick, and hand out timers of one
 * @w:		the wheel
 * @now:	as for wheel_expire()
 * @budget:	as for wheel_expire()
 * @timers:	where to put them
 * @most:	how many fit, at least one
 * @moved:	is told of timers that were moved to other buckets; or NULL
 *
 * All are due at wheel_clk(); there may be more.
 *
 * Return: how many; 0 where wheel_expire() would return NULL.
 */
static inline u32 wheel_expire_many(struct wheel *w, u64 now, u32 *budget,
				    struct wheel_timer **timers, u32 most, wheel_moved_fn moved)
{
	u32 nr;

	if (!wheel_expiring(w) && !wheel_advance(w, now, budget, moved))
		return 0;
	nr = wheel_take_many(w, timers, most < *budget ? most : *budget);
	*budget -= nr;
	return nr;
}

#endif
