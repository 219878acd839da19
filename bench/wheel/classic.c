// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A hierarchical wheel as most are: levels of 256 slots, with one rotation each. A timer goes to
 * the level of the highest byte in which its deadline differs from the clock, into the slot of that
 * byte. When the clock comes to a slot of an upper level, all its timers are moved, in that tick.
 * This is a model of the rule, with as little code as possible: it looks at each tick, and cannot
 * say which is the next tick with work.
 */
#include "bench.h"

#define SUBJECT "classic"

#define BITS	8
#define SLOTS	256
#define LEVELS	4

struct timer {
	struct hlist_node	node;
	u64			expires;
};

struct queue {
	u64			clk;
	u64			moves;
	u32			n;
	struct hlist_head	slot[LEVELS][SLOTS];
};

static void queue_init(struct queue *q, u32 n, u64 start)
{
	*q = (struct queue){ .clk = start };
}

static void queue_exit(struct queue *q)
{
}

static inline void place(struct queue *q, struct timer *t)
{
	u64 differs = t->expires ^ q->clk;
	unsigned int l = differs ? (fls64(differs) - 1) / BITS : 0;

	hlist_add_head(&t->node, &q->slot[l][t->expires >> l * BITS & (SLOTS - 1)]);
}

static inline void queue_add(struct queue *q, struct timer *t, u64 expires)
{
	t->expires = expires;
	place(q, t);
	q->n++;
}

static inline void queue_del(struct queue *q, struct timer *t)
{
	__hlist_del(&t->node);
	q->n--;
}

static inline void queue_mod(struct queue *q, struct timer *t, u64 expires)
{
	queue_del(q, t);
	queue_add(q, t, expires);
}

static inline bool queue_empty(const struct queue *q)
{
	return !q->n;
}

static void cascade(struct queue *q, unsigned int l)
{
	struct hlist_head *slot = &q->slot[l][q->clk >> l * BITS & (SLOTS - 1)];
	struct hlist_node *node = slot->first, *next;

	slot->first = NULL;
	for (; node; node = next) {
		next = node->next;
		prefetch(next);
		place(q, container_of(node, struct timer, node));
		q->moves++;
	}
}

static inline void tick(struct queue *q)
{
	unsigned int l;

	q->clk++;
	for (l = LEVELS - 1; l; l--)
		if (!(q->clk & ((1ULL << l * BITS) - 1)))
			cascade(q, l);
}

static inline struct timer *queue_take(struct queue *q, u64 now)
{
	struct hlist_node *node;
	struct timer *t;

	for (;;) {
		node = q->slot[0][q->clk & (SLOTS - 1)].first;
		if (node)
			break;
		if (q->clk == now)
			return NULL;
		tick(q);
	}
	t = container_of(node, struct timer, node);
	prefetch(node->next);
	queue_del(q, t);
	return t;
}

static inline u64 expires_of(const struct timer *t)
{
	return t->expires;
}

static inline u64 moves_of(const struct queue *q)
{
	return q->moves;
}

#include "phases.h"

static size_t bytes(u32 n)
{
	return n * sizeof(struct timer) + sizeof(struct queue);
}

const struct subject classic_subject = { SUBJECT, bytes, run, check };
