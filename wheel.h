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
 *	far			beyond		36.5 days	100 years
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
 * A million timers spread over an hour a day ahead cost no tick more than some
 * 790 moves. Only timers that are due in nearly the same tick have to be moved in
 * as few ticks as they expire in. A timer moves at most four times, and once more
 * for each look through the far list, whose timers are beyond the span of the wheel.
 *
 * The next tick with work is the minimum over at most nine bitmap searches, so
 * that sleeping costs nothing and waking up after years does only the ticks
 * that have work.
 *
 * Timers fire in exactly their tick, in the order of ticks; inside one tick no
 * order is promised.
 *
 * This is the algorithm alone: no clock, no lock, no allocation. The caller
 * serialises all calls on one wheel. Memory: 34 KiB a wheel.
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
#error "far timers are looked through for a bucket's width, and may not be due by then"
#endif

/* A bucket of more timers than this is emptied piecemeal, ahead of time. A power of two. */
#ifndef WHEEL_BIG
#define WHEEL_BIG	256
#endif

/*
 * The lists of a bucket of levels 0 to 2. Its timers go to them in turn and are taken in turn,
 * so that the memory of so many is on its way at once: where there are more timers than fit
 * into the processor's caches, expiry is little else but waiting for it. A power of two.
 */
#ifndef WHEEL_LISTS
#define WHEEL_LISTS	8
#endif

#define WHEEL_LEVELS	5
#define WHEEL_NEVER	(~(u64)0)

/* Ticks in a bucket of each level; the span of the wheel is R4 * W4. */
#define WHEEL_W1	WHEEL_R0
#define WHEEL_W2	(WHEEL_W1 * WHEEL_R1)
#define WHEEL_W3	(WHEEL_W2 * WHEEL_R2)
#define WHEEL_W4	(WHEEL_W3 * WHEEL_R3)

/* The first slot of each level. Slot 0 is none: an idle timer is in it. */
enum {
	WHEEL_NONE,
	WHEEL_L0,
	WHEEL_L1	= WHEEL_L0 + 2 * WHEEL_R0,
	WHEEL_L2	= WHEEL_L1 + 2 * WHEEL_R1,
	WHEEL_L3	= WHEEL_L2 + 2 * WHEEL_R2,
	WHEEL_L4	= WHEEL_L3 + 2 * WHEEL_R3,
	WHEEL_FAR	= WHEEL_L4 + WHEEL_R4,	/* two of them, see wheel->far */
	WHEEL_SLOTS	= WHEEL_FAR + 2,
	WHEEL_WIDE	= WHEEL_L3,	/* slots before it have WHEEL_LISTS lists, the others one */
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
 *		alone; not kept in level 0 and far
 */
struct wheel_bucket {
	u32	n;
	u32	min;
};

/**
 * struct wheel - the wheel
 * @q:		q_l(clk), an odometer; @q[0] is clk
 * @next:	no event is earlier than this tick; WHEEL_NEVER when empty. A
 *		lower bound, since a cancel leaves it alone
 * @slot:	the slot of @q of each level
 * @reach:	the last tick that has a bucket in levels 0, 1 and 2
 * @phase:	what is under way at clk
 * @far:	which of the two far buckets takes new timers; the other is being
 *		looked through, if it is not empty
 * @nr_big:	how many bits of @big are set
 * @quota:	moves still owed at clk by the bucket next to the current one,
 *		for each level; [0] for the far list
 * @far_min:	no timer of the current far bucket is due earlier
 * @far_end:	the tick at which the look through the far list shall be over
 * @added:	timers added so far
 * @gone:	of these, those that are queued no more, see wheel_nr()
 * @moves:	list moves so far; statistics
 * @map:	a bit for each slot with n > 0
 * @big:	a bit for each slot with n > WHEEL_BIG
 * @bucket:	the buckets of all levels
 * @list:	their timers, see wheel_lists()
 */
struct wheel {
	u64			q[WHEEL_LEVELS];
	u64			reach[3];
	u64			next;
	u16			slot[WHEEL_LEVELS];
	u8			phase;
	u8			far;
	u32			nr_big;
	u32			quota[WHEEL_LEVELS];
	u64			far_min;
	u64			far_end;
	u64			added;
	u64			gone;
	u64			moves;
	unsigned long		map[BITS_TO_LONGS(WHEEL_SLOTS)];
	unsigned long		big[BITS_TO_LONGS(WHEEL_SLOTS)];
	struct wheel_bucket	bucket[WHEEL_SLOTS];
	struct hlist_head	list[WHEEL_WIDE * WHEEL_LISTS + WHEEL_SLOTS - WHEEL_WIDE];
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

/* Move clk to tick @t, at or before the next event, and the odometer with it. */
static inline void wheel_set_clk(struct wheel *w, u64 t)
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
}

/*
 * An empty wheel whose last processed tick is @clk. The memory must be zeroed
 * by the caller: most of it is buckets, and it mostly comes zeroed.
 */
static inline void wheel_init(struct wheel *w, u64 clk)
{
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++)
		w->q[l] = WHEEL_NEVER;	/* is not any q: set_clk() fills in all */
	wheel_set_clk(w, clk);
	w->next = WHEEL_NEVER;
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
	return slot < WHEEL_WIDE ? WHEEL_LISTS : 1;
}

/* Where in wheel->list they begin. @wide: there are WHEEL_LISTS. */
static __always_inline unsigned long wheel_list(unsigned long slot, bool wide)
{
	return wide ? slot * WHEEL_LISTS : slot + WHEEL_WIDE * (WHEEL_LISTS - 1UL);
}

/* They are. */
static inline struct hlist_head *wheel_lists(struct wheel *w, unsigned int slot)
{
	return &w->list[wheel_list(slot, slot < WHEEL_WIDE)];
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
	hlist_add_head(&t->node, wide ? &list[b->n % WHEEL_LISTS] : list);
	if (width > 1 && (int)((u32)e - b->min) < 0)
		b->min = e;
	if (unlikely(++b->n % WHEEL_BIG == 1)) {
		if (b->n == WHEEL_BIG + 1) {
			__set_bit(slot, w->big);
			w->nr_big++;
		}
		if (width > 1)
			return wheel_pace_event(b->n, q * width, width);
	}
	return e;
}

/* The tick at which bucket @q of the top level has room for far timers. */
static inline u64 wheel_far_event(u64 q)
{
	return (q - (WHEEL_R4 - 1)) * WHEEL_W4;
}

/* Queue @t, beyond the span of the wheel. Its top bucket is @q4. */
static inline u64 wheel_put_far(struct wheel *w, struct wheel_timer *t, u64 q4)
{
	unsigned int slot = WHEEL_FAR + w->far;

	if (!w->bucket[slot].n || t->expires < w->far_min)
		w->far_min = t->expires;
	wheel_put(w, t, t->expires, slot, q4, 0);
	return wheel_far_event(q4);
}

/* Queue @t in level @l, whose bucket @q it falls into and which reaches so far. */
static __always_inline u64 wheel_put_level(struct wheel *w, struct wheel_timer *t,
					   u64 e, unsigned int l, u64 q)
{
	const struct wheel_level lv = wheel_levels[l];
	unsigned long slot = w->slot[l] + (unsigned long)(q - w->q[l]);

	if (slot >= (unsigned long)lv.first + lv.slots)
		slot -= lv.slots;
	return wheel_put(w, t, e, slot, q, lv.width);
}

/* Is tick @e where most timers are, in levels 0 to 2? */
static inline bool wheel_is_near(const struct wheel *w, u64 e)
{
	return e <= w->reach[2];
}

/*
 * wheel_place() for tick @e, which is near. If @e is over, an idle timer is queued for the
 * next tick. A timer that looks queued is being moved, and stays due at @e.
 */
static __always_inline u64 wheel_place_near(struct wheel *w, struct wheel_timer *t, u64 e)
{
	t->expires = e;
	if (e > w->reach[1])
		return wheel_put_level(w, t, e, 2, div_u64(e, WHEEL_W2));
	if (e > w->reach[0])
		return wheel_put_level(w, t, e, 1, div_u64(e, WHEEL_W1));
	if (unlikely(e <= w->q[0]) && !wheel_pending(t)) {
		e = w->q[0] + 1;
		t->expires = e;
	}
	return wheel_put_level(w, t, e, 0, e);
}

/* wheel_place() where it is not. */
static inline u64 wheel_place_beyond(struct wheel *w, struct wheel_timer *t)
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
 * Returns the tick of the first event it may cause.
 *
 * Since the level below did not reach, an upper bucket is at least two away from
 * the current one: a bucket that is being emptied gets no new timers.
 */
static __always_inline u64 wheel_place(struct wheel *w, struct wheel_timer *t)
{
	u64 e = t->expires;

	return likely(wheel_is_near(w, e)) ? wheel_place_near(w, t, e) :
					     wheel_place_beyond(w, t);
}

/* A timer was queued that may cause an event at tick @event. Returns what wheel_add() does. */
static __always_inline bool wheel_added(struct wheel *w, u64 event)
{
	w->added++;
	if (event >= w->next)
		return false;
	w->next = event;
	return true;
}

/* wheel_add() for a tick that is near, where that has to be fast. */
static __always_inline bool wheel_add_near(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	return wheel_added(w, wheel_place_near(w, t, expires));
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
static inline bool wheel_add(struct wheel *w, struct wheel_timer *t, u64 expires)
{
	if (likely(wheel_is_near(w, expires)))
		return wheel_add_near(w, t, expires);
	t->expires = expires;
	return wheel_added(w, wheel_place_beyond(w, t));
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
		__clear_bit(slot, w->big);
		w->nr_big--;
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

/*
 * The earliest event of the big buckets of level @l, if that is earlier than @next: the first
 * of them begins before the second can be begun with.
 */
static inline u64 wheel_big_event(const struct wheel *w, unsigned int l, u64 next)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u64 end = (w->q[l] + 1) * lv->width, event;
	u32 slot = wheel_next_slot(w, l), d = 1;

	if (!test_bit(slot, w->big)) {
		if (next <= end + 1)
			return next;
		d = wheel_search(w->big, lv, w->slot[l], w->slot[l] + 1);
		if (d == lv->slots)
			return next;
		end += (d - 1) * (u64)lv->width;
		slot = w->slot[l] + d;
		if (slot >= (u32)lv->first + lv->slots)
			slot -= lv->slots;
	}
	event = wheel_later(w, wheel_pace_event(w->bucket[slot].n, end, lv->width));
	return event < next ? event : next;
}

/* The bucket of far timers that is being looked through. */
static inline struct wheel_bucket *wheel_far_scan(struct wheel *w)
{
	return &w->bucket[WHEEL_FAR + !w->far];
}

/* The next event of the far lists. */
static inline u64 wheel_far_next(struct wheel *w)
{
	const struct wheel_bucket *scan = wheel_far_scan(w);

	if (scan->n)
		return wheel_later(w, wheel_pace_event(scan->n, w->far_end, WHEEL_W4));
	if (w->bucket[WHEEL_FAR + w->far].n)
		return wheel_later(w, wheel_far_event(div_u64(w->far_min, WHEEL_W4)));
	return WHEEL_NEVER;
}

/* The earliest event of the levels above 0, if it is earlier than @next. */
static inline u64 wheel_search_upper(const struct wheel *w, u64 next)
{
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++) {
		const struct wheel_level *lv = &wheel_levels[l];
		u32 cur = w->slot[l], d;
		u64 event;

		/* Most often the rest of the level is later than @next. */
		if (next < (w->q[l] + 1) * lv->width)
			d = test_bit(cur, w->map) ? 0 : lv->slots;
		else
			d = wheel_search(w->map, lv, cur, cur);
		if (d < lv->slots) {
			u32 i = cur + d;

			if (i >= (u32)lv->first + lv->slots)
				i -= lv->slots;
			event = (w->q[l] + d) * lv->width;
			event += wheel_min(&w->bucket[i], event);
			if (event < next)
				next = event;
		}
		if (w->nr_big)
			next = wheel_big_event(w, l, next);
	}
	return next;
}

/* The earliest event of all, searched for. No step may be under way. */
static inline u64 wheel_search_next(struct wheel *w)
{
	const struct wheel_level *lv = &wheel_levels[0];
	u32 d = wheel_search(w->map, lv, w->slot[0], w->slot[0] + 1);
	u64 next = WHEEL_NEVER, far;

	if (d == 1)
		return w->q[0] + 1;
	if (d < lv->slots)
		next = w->q[0] + d;
	next = wheel_search_upper(w, next);
	far = wheel_far_next(w);
	return far < next ? far : next;
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
static __always_inline struct hlist_head *wheel_turn(const struct wheel_walk *walk)
{
	struct hlist_head *list;
	u32 i = walk->n;

	do
		list = &walk->lists[--i & walk->mask];
	while (unlikely(!list->first));
	return list;
}

/* Take the next timer. */
static __always_inline struct wheel_timer *wheel_walk_on(struct wheel_walk *walk)
{
	struct hlist_head *list = wheel_turn(walk);
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
	if (b->n <= WHEEL_BIG && test_bit(slot, w->big)) {
		__clear_bit(slot, w->big);
		w->nr_big--;
	}
}

/* Who wants to know of @nr timers that were moved out of bucket @slot defines this. */
#ifndef wheel_moved
#define wheel_moved(w, slot, nr)	do { } while (0)
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

/* Begin or go on with the look through the far list. */
static inline void wheel_begin_far(struct wheel *w)
{
	struct wheel_bucket *scan = wheel_far_scan(w);
	bool due = w->bucket[WHEEL_FAR + w->far].n &&
		   div_u64(w->far_min, WHEEL_W4) - w->q[4] < WHEEL_R4;

	if (!scan->n && due) {
		w->far = !w->far;
		w->far_end = (w->q[4] + 1) * WHEEL_W4;
		return;
	}
	if (scan->n)
		w->quota[0] = wheel_owed(w, scan->n, w->far_end, WHEEL_W4);
}

/* What the buckets next to the current ones owe. */
static inline void wheel_begin_pace(struct wheel *w)
{
	unsigned int l;

	for (l = 1; l < WHEEL_LEVELS; l++) {
		u32 slot = wheel_next_slot(w, l), width = wheel_levels[l].width;

		if (test_bit(slot, w->big))
			w->quota[l] = wheel_owed(w, w->bucket[slot].n,
						 (w->q[l] + 1) * width, width);
	}
}

/* Make @t the current tick and see what is owed there. */
static inline void wheel_begin(struct wheel *w, u64 t)
{
	unsigned int l;

	wheel_set_clk(w, t);
	w->phase = WHEEL_CASCADE;
	for (l = 0; l < WHEEL_LEVELS; l++)
		w->quota[l] = 0;
	if (w->nr_big)
		wheel_begin_pace(w);
	wheel_begin_far(w);
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
		slot = l ? wheel_next_slot(w, l) : WHEEL_FAR + !w->far;
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

	return container_of(wheel_turn(&walk)->first, struct wheel_timer, node);
}

/* Take the next timer that is due at clk. */
static inline struct wheel_timer *wheel_take(struct wheel *w, u32 *budget)
{
	struct wheel_timer *t = wheel_first(w, w->slot[0]);

	prefetch(t->node.next);
	wheel_del(w, t);
	--*budget;
	return t;
}

/* Take up to @most timers that are due at clk. Returns how many. */
static inline u32 wheel_take_many(struct wheel *w, struct wheel_timer **timers, u32 most)
{
	unsigned int slot = w->slot[0];
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
	return w->phase == WHEEL_EXPIRE && w->bucket[w->slot[0]].n;
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
			w->phase = WHEEL_PACE;
			break;
		case WHEEL_PACE:
			if (!wheel_move_owed(w, budget))
				return false;
			w->phase = WHEEL_IDLE;
			w->next = wheel_search_next(w);
			break;
		}
	}
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
	if (!wheel_expiring(w)) {
		if (!wheel_advance(w, now, budget))
			return NULL;
		wheel_warm(w, w->slot[0]);
	}
	return *budget ? wheel_take(w, budget) : NULL;
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
