/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the oracles of oracle.h and back.h have in common: the wheel, the timers and when each is
 * due, and how it is noted what holds and what does not.
 *
 * A file that includes this defines before: NR_MAX, the properties with NR_PROPS and promise[], and
 * NR_SEEN. It defines the functions that are declared here.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "test.h"

#define IDLE		0		/* no timer is due at tick 0 */

static u64 checks[NR_PROPS], broken[NR_PROPS], count[NR_SEEN];

/* The episode: the wheel, the timers, the oracle, the time. */
static struct wheel *w;
static struct wheel_timer timer[NR_MAX];
static u64 due[NR_MAX];
static unsigned int nr;
static u64 now, ops;

/* Up to where the wheel has come. */
static u64 true_clk(void);
/* A timer that is armed for this tick or an earlier one is due in the next. */
static u64 last_over(void);

static bool failed(void)
{
	unsigned int p;

	for (p = 0; p < NR_PROPS; p++)
		if (broken[p])
			return true;
	return false;
}

static void expect(enum prop p, bool holds)
{
	checks[p]++;
	if (holds)
		return;
	if (!failed())
		diag("operation %llu, clk %llu%s now %llu phase %d next %llu: not so: %s",
		     (ull)ops, (ull)true_clk(), wheel_clk(w) == true_clk() ? "" : " held",
		     (ull)now, w->phase, (ull)w->next, promise[p]);
	broken[p]++;
}

static u64 earliest(void)
{
	u64 min = WHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (due[i] != IDLE && due[i] < min)
			min = due[i];
	return min;
}

static unsigned int queued(void)
{
	unsigned int n = 0, i;

	for (i = 0; i < nr; i++)
		n += due[i] != IDLE;
	return n;
}

/* What the wheel makes of a range; none ends so late that multiples of its steps wrap around. */
static u64 tick_within(u64 first, u64 last)
{
	if (first <= last_over())
		first = last_over() + 1;
	return last > first ? choice(first, last) : first;
}

#endif
