// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A red-black tree, <bsd/sys/tree.h> of libbsd, that keeps its leftmost node, as the kernel's
 * timerqueue does. Timers that are due in the same tick are ordered by address.
 */
#include <bsd/sys/tree.h>

#include "bench.h"

#define SUBJECT "rbtree"

struct timer {
	RB_ENTRY(timer)	node;
	u64		expires;
};

RB_HEAD(tree, timer);

struct queue {
	struct tree	tree;
	struct timer	*first;
};

static inline int compare(const struct timer *a, const struct timer *b)
{
	if (a->expires != b->expires)
		return a->expires < b->expires ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Macros of BSD that <bsd/sys/tree.h> needs. */
#define __unused __attribute__((__unused__))
RB_GENERATE_STATIC(tree, timer, node, compare)

static void queue_init(struct queue *q, u32 n, u64 start)
{
	RB_INIT(&q->tree);
	q->first = NULL;
}

static void queue_exit(struct queue *q)
{
}

static inline void queue_add(struct queue *q, struct timer *t, u64 expires)
{
	t->expires = expires;
	RB_INSERT(tree, &q->tree, t);
	if (!q->first || compare(t, q->first) < 0)
		q->first = t;
}

static inline void queue_del(struct queue *q, struct timer *t)
{
	if (t == q->first)
		q->first = RB_NEXT(tree, &q->tree, t);
	RB_REMOVE(tree, &q->tree, t);
}

static inline void queue_mod(struct queue *q, struct timer *t, u64 expires)
{
	queue_del(q, t);
	queue_add(q, t, expires);
}

static inline bool queue_empty(const struct queue *q)
{
	return RB_EMPTY(&q->tree);
}

static inline struct timer *queue_take(struct queue *q, u64 now)
{
	struct timer *t = q->first;

	if (!t || t->expires > now)
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
	return n * sizeof(struct timer);
}

const struct subject rbtree_subject = { SUBJECT, bytes, run, check };
