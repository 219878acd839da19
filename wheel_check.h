/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The wheel's invariants, made executable. A walk over every bucket and timer:
 * for tests and debugging, not for a hot path.
 */
#ifndef WHEEL_CHECK_H
#define WHEEL_CHECK_H

#include "wheel.h"

/* A timer in its bucket: I1 and I2. */
static inline const char *wheel_check_timer(const struct wheel *w, unsigned int l,
					    unsigned int slot,
					    const struct wheel_timer *t)
{
	const struct wheel_level *lv = &wheel_levels[l];
	u64 q = div_u64(t->expires, lv->width), d = q - w->q[l];
	const struct wheel_bucket *b = &w->bucket[slot];
	bool expiring = w->phase && t->expires == w->q[0];

	if (t->bucket != slot)
		return "a timer does not know its bucket";
	if (t->expires <= w->q[0] && !expiring)
		return "a queued timer is overdue";
	if (t->expires < w->next)
		return "a timer is earlier than the next event";
	if (d >= lv->slots || slot != lv->first + q - div_u64(q, lv->slots) * lv->slots)
		return "a timer is in the wrong slot";
	if (l && t->expires - q * lv->width < wheel_min(b, q * lv->width))
		return "a timer is earlier than its bucket's min";
	return NULL;
}

static inline const char *wheel_check_far(const struct wheel *w, unsigned int slot,
					  const struct wheel_timer *t)
{
	if (t->bucket != slot)
		return "a far timer does not know its bucket";
	if (t->expires <= w->q[0])
		return "a far timer is overdue";
	if (slot == (unsigned int)WHEEL_FAR + w->far && t->expires < w->far_min)
		return "a far timer is earlier than far_min";
	return NULL;
}

/* The timers of a list of bucket @slot, which are counted in @n too. */
static inline const char *wheel_check_list(const struct wheel *w, unsigned int l,
					   unsigned int slot, const struct hlist_head *list,
					   u32 *n)
{
	const struct hlist_node *node;

	hlist_for_each(node, list) {
		const struct wheel_timer *t = container_of(node, struct wheel_timer, node);
		const char *err = l < WHEEL_LEVELS ? wheel_check_timer(w, l, slot, t) :
						     wheel_check_far(w, slot, t);

		if (err)
			return err;
		++*n;
	}
	return NULL;
}

/* A bucket's count and its bits: I3. */
static inline const char *wheel_check_bucket(const struct wheel *w, unsigned int l,
					     unsigned int slot, u64 *nr, u32 *nr_big)
{
	const struct wheel_bucket *b = &w->bucket[slot];
	bool big;
	const struct hlist_head *list = &w->list[wheel_list(slot, slot < WHEEL_WIDE)];
	u32 n = 0, i;

	for (i = 0; i < wheel_nr_lists(slot); i++) {
		const char *err = wheel_check_list(w, l, slot, list + i, &n);

		if (err)
			return err;
	}
	if (n != b->n)
		return "a bucket's count is wrong";
	if (test_bit(slot, w->map) != !!n)
		return "a map bit is wrong";
	big = n > WHEEL_BIG;
	if (test_bit(slot, w->big) != big)
		return "a big bit is wrong";
	if (big && l && l < WHEEL_LEVELS && slot == w->slot[l] && !w->phase)
		return "a big bucket was not emptied in time";
	*nr += n;
	*nr_big += big;
	return NULL;
}

/* Is tick @e in this or the next bucket of the level above @l? */
static inline bool wheel_check_holds(const struct wheel *w, unsigned int l, u64 e)
{
	u32 width = wheel_levels[l + 1].width;

	return div_u64(e, width) - div_u64(w->q[0], width) <= 1;
}

/* A level reaches so far and no farther; at the end of time there is no farther. */
static inline bool wheel_check_reach(const struct wheel *w, unsigned int l)
{
	u64 e = w->reach[l];

	return wheel_check_holds(w, l, e) &&
	       (e == WHEEL_NEVER || !wheel_check_holds(w, l, e + 1));
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
	u32 nr_big = 0;
	u64 nr = 0;

	for (slot = WHEEL_L0; slot < WHEEL_SLOTS; slot++) {
		const char *err;

		while (l < WHEEL_LEVELS && slot == (unsigned int)wheel_levels[l].first +
						  wheel_levels[l].slots)
			l++;
		err = wheel_check_bucket(w, l, slot, &nr, &nr_big);
		if (err)
			return err;
	}
	if (nr != wheel_nr(w))
		return "the number of timers is wrong";
	if (nr_big != w->nr_big)
		return "the number of big buckets is wrong";
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
	return NULL;
}

#endif
