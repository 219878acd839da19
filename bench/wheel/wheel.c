// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * wheel.h as a subject. The Makefile compiles it a second time as "base", with the wheel.h of
 * another commit; and a third time with a WHEEL_BIG that no bucket reaches. That is the same wheel
 * with whole-bucket cascading: without big buckets nothing is paced, and a bucket is emptied at
 * once when its first timer is due. A classic cascade does that at the bucket's start, with as many
 * moves in one tick. This one also has the doubled levels, so that new timers bypass a bucket that
 * is being emptied, and its steps are cheaper than a classic wheel's: the comparison takes out
 * pacing alone.
 */
#include <string.h>

#include "wheel.h"

#ifdef WHOLE_BUCKET
#define SUBJECT		"whole-bucket"
#define subject		whole_bucket_subject
#elif defined BASE
#define SUBJECT		BASE
#define subject		base_subject
#else
#define SUBJECT		"wheel"
#define subject		wheel_subject
#endif

#define timer		wheel_timer

struct queue {
	struct wheel	w;
};

static void queue_init(struct queue *q, u32 n, u64 start)
{
	memset(q, 0, sizeof(*q));
	wheel_init(&q->w, start);
}

static void queue_exit(struct queue *q)
{
}

static inline void queue_add(struct queue *q, struct timer *t, u64 expires)
{
	wheel_add(&q->w, t, expires);
}

static inline void queue_del(struct queue *q, struct timer *t)
{
	wheel_del(&q->w, t);
}

static inline void queue_mod(struct queue *q, struct timer *t, u64 expires)
{
#ifdef BASE_HAS_NO_MOD
	queue_del(q, t);
	queue_add(q, t, expires);
#else
	wheel_mod(&q->w, t, expires);
#endif
}

static inline bool queue_empty(const struct queue *q)
{
	return !wheel_nr(&q->w);
}

static inline struct timer *queue_take(struct queue *q, u64 now)
{
	u32 budget = UINT32_MAX;

	return wheel_due(&q->w, now) ? wheel_expire(&q->w, now, &budget) : NULL;
}

static inline u64 expires_of(const struct timer *t)
{
	return t->expires;
}

static inline u64 moves_of(const struct queue *q)
{
	return q->w.moves;
}

#include "phases.h"

static size_t bytes(u32 n)
{
	return n * sizeof(struct timer) + sizeof(struct wheel);
}

const struct subject subject = { SUBJECT, bytes, run, check };
