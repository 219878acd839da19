/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tests of the wheel share, whether they run natively or as KUnit tests in a kernel
 * (intree/): a random generator with a seed, the geometry computed independently of wheel.h, and a
 * driver that counts. Included by test.h, which provides alloc() and diag().
 */
#ifndef DRIVE_H
#define DRIVE_H

#include "wheel_check.h"

#define ull		unsigned long long	/* a u64 for printf() */

/* A budget that is enough for any advance. */
#define NO_LIMIT	UINT32_MAX

/* Ticks in a bucket of each level, and in the whole wheel. */
static const u64 width[] = {
	1,
	(u64)WHEEL_R0,
	(u64)WHEEL_R0 * WHEEL_R1,
	(u64)WHEEL_R0 * WHEEL_R1 * WHEEL_R2,
	(u64)WHEEL_R0 * WHEEL_R1 * WHEEL_R2 * WHEEL_R3,
	(u64)WHEEL_R0 * WHEEL_R1 * WHEEL_R2 * WHEEL_R3 * WHEEL_R4,
};

#define SPAN		(width[5])

/* splitmix64 */
static u64 rnd_state;

static inline u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline u64 below(u64 n)
{
	return rnd() % n;
}

static inline struct wheel *new_wheel(u64 clk)
{
	struct wheel *w = alloc(1, sizeof(*w));

	wheel_init(w, clk);
	return w;
}

/* Are the wheel's invariants kept? If not, print which one is not. */
static inline bool sound(const struct wheel *w)
{
	const char *err = wheel_check(w);

	if (err)
		diag("wheel_check: %s", err);
	return !err;
}

/* wheel_choose(), computed by trying each of its steps for a multiple. */
static inline u64 choice(u64 first, u64 last)
{
	static const u32 steps[] = {
		WHEEL_W3, WHEEL_W2, WHEEL_W2 / WHEEL_PARTS, WHEEL_W1,
#if WHEEL_R0 == 60
		30, 10, 5, 2,
#endif
	};
	unsigned int i = last - first < 4 * width[2] ? 2 : last - first < 4 * width[3];

	for (; i < ARRAY_SIZE(steps); i++)
		if ((first + steps[i] - 1) / steps[i] * steps[i] <= last)
			return (first + steps[i] - 1) / steps[i] * steps[i];
	return first;
}

/* What advance() has seen. */
struct tally {
	u64	fired;
	u64	wrong;		/* fired in another tick than theirs */
	u64	steps;		/* ticks begun */
	u64	worst;		/* hop() only: most moves in one tick */
	u64	vain;		/* hop() only: wake-ups in which nothing fired */
	u64	idle;		/* hop() only: wake-ups in which nothing moved either */
};

/*
 * Advance to @now in one go. The wheel does not count its steps. But each operation takes one off
 * the budget, so what is neither a move nor an expiry is a step.
 */
static inline void advance(struct wheel *w, u64 now, struct tally *c)
{
	u64 moves = w->moves, fired = c->fired;
	u32 budget = NO_LIMIT;
	struct wheel_timer *t;

	while ((t = wheel_expire(w, now, &budget))) {
		c->fired++;
		c->wrong += t->expires != wheel_clk(w);
	}
	c->steps += NO_LIMIT - budget - (w->moves - moves) - (c->fired - fired);
}

/* Advance to the next event only, as a machine does that sleeps in between. */
static inline void hop(struct wheel *w, struct tally *c)
{
	u64 moves = w->moves, fired = c->fired;

	advance(w, w->next, c);
	c->vain += c->fired == fired;
	c->idle += c->fired == fired && w->moves == moves;
	if (w->moves - moves > c->worst)
		c->worst = w->moves - moves;
}

#endif
