/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The invariants of a wheel, checked by code. It visits every bucket and every timer, so it is for
 * tests and debugging.
 */
#ifndef WHEEL_CHECK_H
#define WHEEL_CHECK_H

#include "wheel.h"

/* The bucket number q_l that slot @slot of level @l stands for: that of clk, or a later one. */
static inline u64 wheel_check_q(const struct wheel *w, unsigned int l, unsigned int slot)
{
	const struct wheel_level *lv = &wheel_levels[l];

	return w->q[l] + (slot + lv->slots - w->slot[l]) % lv->slots;
}

/*
 * Check a timer in a bucket of level @l. A timer that was put off may be due later than its
 * bucket.
 */
static inline const char *wheel_check_timer(const struct wheel *w, unsigned int l,
					    unsigned int slot,
					    const struct wheel_timer *t)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u64 start = wheel_check_q(w, l, slot) * lv->width;
	bool expiring = w->phase && t->expires == w->q[0];

	if (t->bucket != slot)
		return "a timer does not know its bucket";
	if (t->expires <= w->q[0] && !expiring)
		return "a queued timer is overdue";
	if (t->expires < w->next)
		return "a timer is earlier than the next event";
	if (l && w->upper > w->q[0] && t->expires < w->upper)
		return "a timer is earlier than the next event of the upper levels";
	if (l ? t->expires < start : t->expires != start)
		return "a timer is in the wrong slot";
	if (l && t->expires - start < wheel_min(&w->bucket[slot], start))
		return "a timer is earlier than its bucket's min";
	return NULL;
}

/* The tick of the stop that slot @slot stands for: that of the last stop passed, or a later one. */
static inline u64 wheel_check_stop_at(const struct wheel *w, unsigned int slot)
{
	const struct wheel_level *lv = &wheel_stops[slot >= WHEEL_S2];
	u64 q = div_u64(w->q[0], lv->width);
	u32 cur = lv->first + q - div_u64(q, lv->slots) * lv->slots;

	return (q + (slot + lv->slots - cur) % lv->slots) * lv->width;
}

static inline const char *wheel_check_stop(const struct wheel *w, unsigned int slot,
					   const struct wheel_timer *t)
{
	if (t->bucket != slot)
		return "a timer does not know its stop";
	if (t->expires != wheel_check_stop_at(w, slot))
		return "a timer is at the wrong stop";
	if (t->expires <= w->q[0] && !(w->phase && t->expires == w->q[0]))
		return "a stop was passed";
	if (t->expires < w->next || (w->upper > w->q[0] && t->expires < w->upper))
		return "a stop is earlier than the next event";
	return NULL;
}

static inline const char *wheel_check_far(const struct wheel *w, unsigned int slot,
					  const struct wheel_timer *t)
{
	if (t->bucket != slot)
		return "a far timer does not know its bucket";
	if (div_u64(t->expires, WHEEL_W4) < wheel_far_from(w, slot - WHEEL_FAR))
		return "a far timer is in the wrong class";
	return NULL;
}

/* Check the timers of one list of bucket @slot, and add their number to @n. */
static inline const char *wheel_check_list(const struct wheel *w, unsigned int l,
					   unsigned int slot, const struct hlist_head *list,
					   u32 *n)
{
	const struct hlist_node *node;

	hlist_for_each(node, list) {
		const struct wheel_timer *t = container_of(node, struct wheel_timer, node);
		const char *err = slot < WHEEL_L0 ? wheel_check_stop(w, slot, t) :
				  l < WHEEL_LEVELS ? wheel_check_timer(w, l, slot, t) :
						     wheel_check_far(w, slot, t);

		if (err)
			return err;
		++*n;
	}
	return NULL;
}

/* Is the min of a bucket of an upper level a tick of that bucket? */
static inline bool wheel_check_min(const struct wheel *w, unsigned int l, unsigned int slot)
{
	u32 width = wheel_levels[l].width;

	return wheel_min(&w->bucket[slot], wheel_check_q(w, l, slot) * width) < width;
}

/*
 * A class may have timers if the horizon has not reached it yet, or if it is the one that is being
 * emptied.
 */
static inline bool wheel_check_class(const struct wheel *w, unsigned int slot)
{
	return slot == w->far || !(wheel_horizon(w) >> (slot - WHEEL_FAR) & 1);
}

/*
 * Check a bucket, and its bits in the maps. Add its timers to @nr and, if it is big, 1 to
 * @nr_big.
 */
static inline const char *wheel_check_bucket(const struct wheel *w, unsigned int l,
					     unsigned int slot, u64 *nr, u32 *nr_big)
{
	const struct wheel_bucket *b = &w->bucket[slot];
	bool big;
	const struct hlist_head *list = wheel_lists((struct wheel *)w, slot);
	u32 n = 0, i;

	for (i = 0; i < wheel_nr_lists(slot); i++) {
		const char *err = wheel_check_list(w, l, slot, list + i, &n);

		if (err)
			return err;
	}
	if (n != b->n)
		return "a bucket's count is wrong";
	if (n && l && l < WHEEL_LEVELS && !wheel_check_min(w, l, slot))
		return "a bucket's min is not in it";
	if (test_bit(slot, w->map) != !!n)
		return "a map bit is wrong";
	big = n > WHEEL_BIG && l && l < WHEEL_LEVELS;
	if (test_bit(slot, w->big) != big)
		return "a big bit is wrong";
	if (big && slot == w->slot[l] && !w->phase)
		return "a big bucket was not emptied in time";
	if (n && l == WHEEL_LEVELS && !wheel_check_class(w, slot))
		return "a class of far timers was not emptied in time";
	*nr += n;
	nr_big[l % WHEEL_LEVELS] += big;
	return NULL;
}

/* Is tick @e in this or the next bucket of the level above @l? */
static inline bool wheel_check_holds(const struct wheel *w, unsigned int l, u64 e)
{
	u32 width = wheel_levels[l + 1].width;

	return div_u64(e, width) - div_u64(w->q[0], width) <= 1;
}

/* Does level @l reach to the last tick that it can hold, and no farther? */
static inline bool wheel_check_reach(const struct wheel *w, unsigned int l)
{
	u64 e = w->reach[l];

	return wheel_check_holds(w, l, e) &&
	       (e == WHEEL_NEVER || !wheel_check_holds(w, l, e + 1));
}

/* The slots, the reach and the class of far timers all follow from clk: compute them again. */
static inline const char *wheel_check_clock(const struct wheel *w)
{
	unsigned int l;

	for (l = 0; l < WHEEL_LEVELS; l++) {
		const struct wheel_level *lv = &wheel_levels[l];
		u64 q = div_u64(w->q[0], lv->width);

		if (w->q[l] != q)
			return "the odometer is wrong";
		if (w->slot[l] != lv->first + q - div_u64(q, lv->slots) * lv->slots)
			return "a current slot is wrong";
		if (l < ARRAY_SIZE(w->reach) && !wheel_check_reach(w, l))
			return "the reach of a level is wrong";
	}
	if (!(wheel_horizon(w) >> (w->far - WHEEL_FAR) & 1) ||
	    wheel_horizon(w) & ((1ULL << (w->far - WHEEL_FAR)) - 1))
		return "the class of far timers is wrong";
	return NULL;
}

/**
 * wheel_check() - check every invariant of a wheel
 * @w:	the wheel
 *
 * Return: NULL, or what is wrong.
 */
static inline const char *wheel_check(const struct wheel *w)
{
	unsigned int l = 0, slot;
	u32 nr_big[WHEEL_LEVELS] = { 0 };
	u64 nr = 0;
	const char *err = wheel_check_clock(w);

	if (err)
		return err;
	for (slot = WHEEL_S1; slot < WHEEL_SLOTS; slot++) {
		while (l < WHEEL_LEVELS && slot == (unsigned int)wheel_levels[l].first +
						  wheel_levels[l].slots)
			l++;
		err = wheel_check_bucket(w, l, slot, &nr, nr_big);
		if (err)
			return err;
	}
	if (nr != wheel_nr(w))
		return "the number of timers is wrong";
	if (w->upper < w->next && w->next > w->q[0] + 1)
		return "the next event is later than that of the upper levels";
	if (memcmp(nr_big, w->nr_big, sizeof(nr_big)))
		return "the number of big buckets is wrong";
	return NULL;
}

#endif
