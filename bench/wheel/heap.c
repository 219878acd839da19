// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A binary heap of pointers. Each timer knows its index, so that a cancel is O(log n). libevent
 * does the same.
 */
#include "bench.h"

#define SUBJECT "heap"

struct timer {
	u64		expires;
	u32		index;
};

struct queue {
	struct timer	**slot;
	u32		n, room;
};

static void queue_init(struct queue *q, u32 n, u64 start)
{
	q->slot = timer_pages(n * sizeof(*q->slot));
	q->n = 0;
	q->room = n;
}

static void queue_exit(struct queue *q)
{
	munmap(q->slot, q->room * sizeof(*q->slot));
}

static inline void put(struct queue *q, u32 i, struct timer *t)
{
	q->slot[i] = t;
	t->index = i;
}

/* Put @t into the hole at @i, or nearer to the top. */
static inline void sift_up(struct queue *q, u32 i, struct timer *t)
{
	while (i) {
		u32 parent = (i - 1) / 2;

		if (q->slot[parent]->expires <= t->expires)
			break;
		put(q, i, q->slot[parent]);
		i = parent;
	}
	put(q, i, t);
}

/* Put @t into the hole at @i, or farther down. */
static inline void sift_down(struct queue *q, u32 i, struct timer *t)
{
	u32 child;

	while ((child = 2 * i + 1) < q->n) {
		if (child + 1 < q->n &&
		    q->slot[child + 1]->expires < q->slot[child]->expires)
			child++;
		if (t->expires <= q->slot[child]->expires)
			break;
		put(q, i, q->slot[child]);
		i = child;
	}
	put(q, i, t);
}

static inline void sift(struct queue *q, u32 i, struct timer *t)
{
	if (i && t->expires < q->slot[(i - 1) / 2]->expires)
		sift_up(q, i, t);
	else
		sift_down(q, i, t);
}

static inline void queue_add(struct queue *q, struct timer *t, u64 expires)
{
	t->expires = expires;
	sift_up(q, q->n++, t);
}

static inline void queue_del(struct queue *q, struct timer *t)
{
	struct timer *last = q->slot[--q->n];

	if (last != t)
		sift(q, t->index, last);
}

static inline void queue_mod(struct queue *q, struct timer *t, u64 expires)
{
	t->expires = expires;
	sift(q, t->index, t);
}

static inline bool queue_empty(const struct queue *q)
{
	return !q->n;
}

static inline struct timer *queue_take(struct queue *q, u64 now)
{
	struct timer *t = q->slot[0];

	if (!q->n || t->expires > now)
		return NULL;
	queue_del(q, t);
	return t;
}

static inline u64 expires_of(const struct timer *t)
{
	return t->expires;
}

static inline u64 moves_of(const struct queue *q)
{
	return 0;
}

#include "phases.h"

static size_t bytes(u32 n)
{
	return n * (sizeof(struct timer) + sizeof(struct timer *));
}

const struct subject heap_subject = { SUBJECT, bytes, run, check };
