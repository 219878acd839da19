/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A wheel whose clock may be set back. (Any wheel can follow a clock that is set forward.)
 *
 * A wheel has a bucket for every tick after clk. If its clock is set back, timers that are queued
 * need no change: all are due after clk, and wait for their time. But a timer that is added now for
 * a tick up to clk has no bucket. Such timers go into a tree beside the wheel, ordered by ticks.
 * Then either the time reaches clk again, or the wheel is made to follow the clock:
 *
 *	wheel			tree		when
 *	at the time		empty		the clock was not set back
 *	ahead of the time	up to clk	the clock was set back by at most WHEEL_BACK ticks:
 *						all wait until the time has reached clk
 *	held			all the rest	the clock was set back by more. The timers of the
 *						wheel are moved into the tree, where new ones go too
 *	at the time		some		the wheel was emptied, and its clk set to the time.
 *						The timers of the tree are moved back
 *
 * Timers are moved a few at a time, as many as the caller's budget allows, and only when nothing is
 * due. Wherever a timer is, it can be cancelled, and it fires in its tick and in the order of
 * ticks. The clock may be set again at any moment: what must be moved depends only on clk and on
 * the time.
 *
 * The tree is a treap: a search tree by tick, and by address within a tick, that is also a heap by
 * a hash of the address. So the tree is balanced whatever ticks are asked for, and needs no memory
 * besides the timers. An operation on a tree of a million timers visits some 25 of them.
 *
 * Unless the clock was set back, the tree is empty and the wheel is not ahead of the time. Then the
 * only cost is one comparison when a timer is added for a tick that is over.
 *
 * A wheel may also be small: it has no buckets yet, and its clk is WHEEL_NEVER. All timers are in
 * the tree, until wheel_back_grow() is told that there are buckets.
 *
 * As in wheel.h, there is no clock, no lock and no allocation. wheel->next and wheel_nr() include
 * the tree. Callers use the functions here in place of wheel_add(), wheel_mod(), their _range()
 * forms and wheel_expire_many(), and wheel_back_unlink() in place of wheel_unlink() if
 * wheel_is_back().
 */
#ifndef WHEEL_BACK_H
#define WHEEL_BACK_H

#include "wheel.h"

/* If a clock is set back by at most this many ticks (a minute, if they are ms), no timer moves. */
#ifndef WHEEL_BACK
#define WHEEL_BACK	60000
#endif

/*
 * wheel_timer->bucket of a timer in the tree. As a signed number it is negative, unlike any bucket.
 */
#define WHEEL_TREE	0x8000

/**
 * struct wheel_back - the tree beside a wheel whose clock may be set
 * @root:	the tree
 * @nr:		timers in it; wheel_nr() counts them too
 * @held:	if wheel_clk() is WHEEL_NEVER, because the wheel is being emptied: its true clk
 * @seed:	seed of the hash: any number, preferably one that nobody can guess
 * @small:	the wheel has no buckets
 */
struct wheel_back {
	struct wheel_timer	*root;
	u64			nr;
	u64			held;
	u64			seed;
	bool			small;
};

/* Is @t, which is queued, in the tree? */
static inline bool wheel_is_back(const struct wheel_timer *t)
{
	return t->bucket == WHEEL_TREE;
}

/* Is @t in a bucket of the wheel, neither idle nor in the tree? One comparison. */
static inline bool wheel_in_bucket(const struct wheel_timer *t)
{
	return (short)t->bucket > 0;
}

/* Do all new timers go into the tree, because the wheel is being emptied, or is small? */
static inline bool wheel_is_held(const struct wheel *w)
{
	return wheel_clk(w) == WHEEL_NEVER;
}

/* How many timers are in the buckets. */
static inline u64 wheel_back_in_wheel(const struct wheel *w, const struct wheel_back *b)
{
	return wheel_nr(w) - b->nr;
}

/* The rank of @t in the heap. The root has the highest rank. */
static inline u64 wheel_back_rank(const struct wheel_back *b, const struct wheel_timer *t)
{
	u64 x = (unsigned long)t ^ b->seed;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* On which side of @other @t belongs: 1 if it comes after @other, else 0. */
static inline unsigned int wheel_back_side(const struct wheel_timer *t,
					   const struct wheel_timer *other)
{
	return t->expires != other->expires ? t->expires > other->expires : t > other;
}

/* Put @t, due at @t->expires, into the tree. */
static inline void wheel_back_put(struct wheel_back *b, struct wheel_timer *t)
{
	u64 rank = wheel_back_rank(b, t);
	struct wheel_timer **link = &b->root, *at, **end[2];

	while (*link && wheel_back_rank(b, *link) >= rank)
		link = &(*link)->child[wheel_back_side(t, *link)];
	/*
	 * @t takes the place of the subtree at @link: split that subtree into what is before and
	 * what is after @t.
	 */
	at = *link;
	*link = t;
	end[0] = &t->child[0];
	end[1] = &t->child[1];
	while (at) {
		unsigned int after = wheel_back_side(at, t);

		*end[after] = at;
		end[after] = &at->child[!after];
		at = *end[after];
	}
	*end[0] = NULL;
	*end[1] = NULL;
	WRITE_ONCE(t->bucket, WHEEL_TREE);
	b->nr++;
}

/* Take the timer at @link out of the tree, and join its two subtrees in its place. */
static inline void wheel_back_cut(struct wheel_back *b, struct wheel_timer **link)
{
	struct wheel_timer *side[2] = { (*link)->child[0], (*link)->child[1] };

	b->nr--;
	while (side[0] && side[1]) {
		unsigned int higher = wheel_back_rank(b, side[1]) > wheel_back_rank(b, side[0]);

		*link = side[higher];
		link = &side[higher]->child[!higher];
		side[higher] = *link;
	}
	*link = side[0] ? side[0] : side[1];
}

/* Take the earliest timer out of the tree, which is not empty. */
static inline struct wheel_timer *wheel_back_take(struct wheel_back *b)
{
	struct wheel_timer **link = &b->root, *t;

	while ((*link)->child[0])
		link = &(*link)->child[0];
	t = *link;
	wheel_back_cut(b, link);
	return t;
}

/* The tick of the earliest timer in the tree; WHEEL_NEVER if the tree is empty. */
static inline u64 wheel_back_first(const struct wheel_back *b)
{
	const struct wheel_timer *t = b->root;

	if (!t)
		return WHEEL_NEVER;
	while (t->child[0])
		t = t->child[0];
	return t->expires;
}

/* wheel_unlink() of a timer that is in the tree: wheel_is_back(). */
static inline void wheel_back_unlink(struct wheel *w, struct wheel_back *b,
				     struct wheel_timer *t)
{
	struct wheel_timer **link = &b->root;

	while (*link != t)
		link = &(*link)->child[wheel_back_side(t, *link)];
	wheel_back_cut(b, link);
	w->gone++;
}

/* The next event of the buckets, the tree not counted; WHEEL_NEVER while the wheel is held. */
static inline u64 wheel_back_wheel_next(struct wheel *w)
{
	if (wheel_is_held(w))
		return WHEEL_NEVER;
	return w->phase ? wheel_clk(w) : wheel_search_next(w);
}

/* Set clk of the wheel, whose buckets are empty, to @now. */
static inline void wheel_back_reset(struct wheel *w, u64 now)
{
	w->phase = WHEEL_IDLE;
	w->upper = WHEEL_NEVER;
	w->q[1] = WHEEL_NEVER;
	w->q[2] = WHEEL_NEVER;
	wheel_set_odometer(w, now);
}

/* Put @t into the tree. @expires is after the tick that the clock shows. Returns as wheel_add(). */
static inline bool wheel_back_add_tree(struct wheel *w, struct wheel_back *b,
				       struct wheel_timer *t, u64 expires)
{
	t->expires = expires;
	wheel_back_put(b, t);
	w->added++;
	if (expires >= w->next)
		return false;
	w->next = expires;
	return true;
}

/* If the wheel is ahead of @now, and its buckets are empty, set its clk to @now. */
static inline void wheel_back_come(struct wheel *w, const struct wheel_back *b, u64 now)
{
	if (wheel_clk(w) > now && !b->small && !wheel_back_in_wheel(w, b))
		wheel_back_reset(w, now);
}

/**
 * wheel_back_add() - wheel_add() of a wheel whose clock may be set
 * @w:		the wheel
 * @b:		the tree beside it
 * @t:		as for wheel_add()
 * @expires:	as for wheel_add()
 * @now:	the tick that the clock shows
 *
 * Return: as wheel_add().
 */
static inline bool wheel_back_add(struct wheel *w, struct wheel_back *b, struct wheel_timer *t,
				  u64 expires, u64 now)
{
	if (expires <= now)
		expires = now + 1;
	wheel_back_come(w, b, now);
	return expires > wheel_clk(w) ? wheel_add(w, t, expires) :
					wheel_back_add_tree(w, b, t, expires);
}

/* wheel_add_chosen(), for a tick that is after @now. */
static inline bool wheel_back_add_chosen(struct wheel *w, struct wheel_back *b,
					 struct wheel_timer *t, u64 expires, u64 now)
{
	wheel_back_come(w, b, now);
	return expires > wheel_clk(w) ? wheel_add_chosen(w, t, expires) :
					wheel_back_add_tree(w, b, t, expires);
}

/**
 * wheel_back_add_range() - wheel_add_range() of a wheel whose clock may be set
 * @w:		the wheel
 * @b:		the tree beside it
 * @t:		as for wheel_add()
 * @first:	as for wheel_mod_range()
 * @last:	as for wheel_mod_range()
 * @now:	the tick that the clock shows
 *
 * Return: as wheel_add().
 */
static inline bool wheel_back_add_range(struct wheel *w, struct wheel_back *b,
					struct wheel_timer *t, u64 first, u64 last, u64 now)
{
	if (first <= now)
		first = now + 1;
	if (last > first)
		first = wheel_choose(first, last);
	return wheel_back_add_chosen(w, b, t, first, now);
}

/* Take @t, which is queued, out of its bucket or the tree, so that it can be queued again. */
static inline void wheel_back_take_out(struct wheel *w, struct wheel_back *b,
				       struct wheel_timer *t)
{
	if (wheel_is_back(t))
		wheel_back_unlink(w, b, t);
	else
		wheel_unlink(w, t);
}

/**
 * wheel_back_mod() - wheel_mod() of a wheel whose clock may be set
 * @w:		the wheel
 * @b:		the tree beside it
 * @t:		as for wheel_mod(); in a bucket or in the tree
 * @expires:	as for wheel_mod()
 * @now:	the tick that the clock shows
 *
 * If @expires is after wheel_clk(), the timer may be put off in its bucket, even if the wheel is
 * ahead of the time. It is then due later than its bucket, and stays there until the bucket is
 * emptied into other buckets or into the tree. While the wheel is held, no timer is put off: it is
 * taken out and added again.
 *
 * Return: as wheel_mod().
 */
static inline bool wheel_back_mod(struct wheel *w, struct wheel_back *b, struct wheel_timer *t,
				  u64 expires, u64 now)
{
	if (expires <= now)
		expires = now + 1;
	if (expires > wheel_clk(w) && wheel_put_off(w, t, expires))
		return false;
	wheel_back_take_out(w, b, t);
	return wheel_back_add(w, b, t, expires, now);
}

/*
 * Re-arm @t, which is queued, for one of the ticks from *@first, which is after the tick that the
 * clock shows, to @last. If @t is due in one of them, leave it as it is. If it is in a bucket, put
 * it off if possible. Otherwise return false: then the caller must take @t out and add it for the
 * tick *@first.
 */
static __always_inline bool wheel_back_put_off_range(struct wheel *w, struct wheel_timer *t,
						     u64 *first, u64 last)
{
	if (wheel_may_stay(w, t, *first, last))
		return true;
	if (last > *first)
		*first = wheel_choose(*first, last);
	return *first > wheel_clk(w) && wheel_put_off(w, t, *first);
}

/**
 * wheel_back_mod_range() - wheel_mod_range() of a wheel whose clock may be set
 * @w:		the wheel
 * @b:		the tree beside it
 * @t:		as for wheel_back_mod()
 * @first:	as for wheel_mod_range()
 * @last:	as for wheel_mod_range()
 * @now:	the tick that the clock shows
 *
 * Return: as wheel_mod().
 */
static inline bool wheel_back_mod_range(struct wheel *w, struct wheel_back *b,
					struct wheel_timer *t, u64 first, u64 last, u64 now)
{
	if (first <= now)
		first = now + 1;
	if (last < first)
		last = first;
	if (wheel_back_put_off_range(w, t, &first, last))
		return false;
	wheel_back_take_out(w, b, t);
	return wheel_back_add_chosen(w, b, t, first, now);
}

/* Begin to empty the wheel: remember clk, and set it so that new timers go into the tree. */
static inline void wheel_back_hold(struct wheel *w, struct wheel_back *b)
{
	b->held = w->q[0];
	w->q[0] = WHEEL_NEVER;
}

/* Stop emptying the wheel: the time has reached its clk. */
static inline void wheel_back_go(struct wheel *w, const struct wheel_back *b)
{
	w->q[0] = b->held;
}

/* Move timers from the held wheel into the tree, as far as the budget goes. */
static inline void wheel_back_empty(struct wheel *w, struct wheel_back *b, u64 now, u32 *budget)
{
	unsigned int slot = WHEEL_S1;

	while (*budget && wheel_back_in_wheel(w, b)) {
		struct wheel_timer *t;

		slot = find_next_bit(w->map, WHEEL_SLOTS, slot);
		t = wheel_first(w, slot);
		wheel_unlink(w, t);
		w->gone--;
		wheel_back_put(b, t);
		w->moves++;
		--*budget;
	}
	if (!wheel_back_in_wheel(w, b))
		wheel_back_reset(w, now);
}

/*
 * Move timers from the tree to the wheel, as far as the budget goes. The wheel is not ahead of
 * @now, and nothing is due at @now.
 */
static inline void wheel_back_fill(struct wheel *w, struct wheel_back *b, u64 now, u32 *budget)
{
	wheel_set_clk(w, now);
	for (; *budget && b->root; --*budget) {
		wheel_place(w, wheel_back_take(b));
		w->moves++;
	}
}

/* If nothing is due at @now: must timers be moved between the wheel and the tree? */
static inline bool wheel_back_owes(const struct wheel *w, const struct wheel_back *b, u64 now)
{
	if (b->small)
		return false;
	if (wheel_is_held(w) || wheel_clk(w) > now + WHEEL_BACK)
		return true;
	return b->root && wheel_clk(w) <= now;
}

/* Move timers between the wheel and the tree, as far as the budget goes. */
static inline void wheel_back_work(struct wheel *w, struct wheel_back *b, u64 now, u32 *budget)
{
	if (wheel_clk(w) > now && !wheel_back_in_wheel(w, b))
		wheel_back_reset(w, now);
	if (!wheel_is_held(w) && wheel_clk(w) > now + WHEEL_BACK)
		wheel_back_hold(w, b);
	if (wheel_is_held(w))
		wheel_back_empty(w, b, now, budget);
	if (wheel_clk(w) <= now)
		wheel_back_fill(w, b, now, budget);
}

/*
 * Set w->next to the next event of the wheel and the tree. If timers must be moved between the two,
 * that is an event at @now.
 */
static inline void wheel_back_search(struct wheel *w, const struct wheel_back *b, u64 now)
{
	u64 wheel = wheel_back_wheel_next(w), tree = wheel_back_first(b);

	w->next = wheel < tree ? wheel : tree;
	if (w->next > now && wheel_back_owes(w, b, now))
		w->next = now;
}

/* Take up to @most timers out of the tree that are due at @until or before. */
static inline u32 wheel_back_take_many(struct wheel *w, struct wheel_back *b, u64 until,
				       u32 *budget, struct wheel_timer **timers, u32 most)
{
	u32 nr = 0;

	while (nr < most && *budget && wheel_back_first(b) <= until) {
		timers[nr] = wheel_back_take(b);
		WRITE_ONCE(timers[nr]->bucket, WHEEL_NONE);
		nr++;
		--*budget;
	}
	w->gone += nr;
	return nr;
}

/* wheel_expire_many() of the wheel or of the tree, whichever is earlier. */
static inline u32 wheel_back_expire_due(struct wheel *w, struct wheel_back *b, u64 now,
					u32 *budget, struct wheel_timer **timers, u32 most,
					wheel_moved_fn moved)
{
	u64 tree = wheel_back_first(b), until = tree < now ? tree : now;
	u32 nr = 0;

	w->next = wheel_back_wheel_next(w);
	/* A step that was unfinished when the clock was set back waits, too, for its tick. */
	if (w->next <= until)
		nr = wheel_expire_many(w, until, budget, timers, most, moved);
	if (nr || (w->next <= until && !*budget))
		return nr;
	/* The wheel has nothing that is due up to @until. */
	return wheel_back_take_many(w, b, until, budget, timers, most);
}

/*
 * Can the wheel be treated as one without a tree? Not if w->next may still be the event of a timer
 * that was in the tree.
 */
static inline bool wheel_back_is_plain(const struct wheel *w, const struct wheel_back *b, u64 now)
{
	return !b->root && wheel_clk(w) <= now && (w->phase || w->next > wheel_clk(w));
}

/**
 * wheel_back_expire_many() - wheel_expire_many() of a wheel whose clock may be set
 * @w:		the wheel
 * @b:		the tree beside it
 * @now:	the tick that the clock shows
 * @budget:	as for wheel_expire_many(); a timer that moves to the tree or back counts too
 * @timers:	where to put them
 * @most:	how many fit, at least one
 * @moved:	as for wheel_expire_many(); it is not told of the tree
 *
 * All timers that one call hands out are due in the same tick.
 *
 * Return: how many. 0 means that nothing is due; or, if wheel_due(@w, @now) still holds, that the
 * budget is used up, and the next call resumes from there.
 */
static inline u32 wheel_back_expire_many(struct wheel *w, struct wheel_back *b, u64 now,
					 u32 *budget, struct wheel_timer **timers, u32 most,
					 wheel_moved_fn moved)
{
	u32 nr;

	if (wheel_is_held(w) && b->held <= now)
		wheel_back_go(w, b);
	if (wheel_back_is_plain(w, b, now))
		return wheel_expire_many(w, now, budget, timers, most, moved);
	nr = wheel_back_expire_due(w, b, now, budget, timers, most, moved);
	wheel_back_search(w, b, now);
	/* If some budget is left, nothing is due. */
	if (nr || !*budget || !wheel_back_owes(w, b, now))
		return nr;
	wheel_back_work(w, b, now, budget);
	wheel_back_search(w, b, now);
	return 0;
}

/**
 * wheel_back_was_set() - the clock of a wheel was set
 * @w:		the wheel
 * @b:		the tree beside it
 * @now:	the tick that the clock shows now
 *
 * Timers fire in their ticks without this call. It makes the wheel follow a clock that was set
 * back: from here on wheel_due() holds until the wheel has followed.
 */
static inline void wheel_back_was_set(struct wheel *w, struct wheel_back *b, u64 now)
{
	if (wheel_back_owes(w, b, now) && w->next > now)
		w->next = now;
}

/* Make @w small. It has just been initialised. */
static inline void wheel_back_shrink(struct wheel *w, struct wheel_back *b)
{
	b->small = true;
	b->held = WHEEL_NEVER;
	w->q[0] = WHEEL_NEVER;
}

/*
 * The small @w has buckets now. The timers of the tree are moved into them from @now on: until all
 * have been, wheel_due() holds.
 */
static inline void wheel_back_grow(struct wheel *w, struct wheel_back *b, u64 now)
{
	b->small = false;
	wheel_back_reset(w, now);
	wheel_back_was_set(w, b, now);
}

#endif
