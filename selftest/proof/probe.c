// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * For place.py: print the numbers of the formula, and then what the code does with the samples on
 * standard input, lines of "clk expires ticks".
 *
 * A line of output per sample: the slots of clk by level; the slot of the timer; the event that it
 * causes; the event that it causes if its bucket is so big that splitting it takes that many ticks;
 * the tick it fires in; and, if wheel_add_chosen() places it, its slot, event and tick.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wheel.h"

#define ull	unsigned long long	/* a u64 for printf() */

static void numbers(void)
{
	static const unsigned int radix[] = {
		WHEEL_R0, WHEEL_R1, WHEEL_R2, WHEEL_R3, WHEEL_R4
	};
	unsigned int l;

	for (l = 0; l < WHEEL_LEVELS; l++) {
		const struct wheel_level *lv = &wheel_levels[l];

		printf("%u %u %u %u\n", radix[l], lv->first, lv->slots, lv->width);
	}
	printf("%d %d %d %d\n", WHEEL_FAR, WHEEL_SLOTS, WHEEL_BIG, WHEEL_W4);
	printf("%d %d %d %d\n", WHEEL_S1, WHEEL_S2, WHEEL_STOP1, WHEEL_STOP2);
}

/* The event that a timer causes if its bucket holds WHEEL_BIG * @ticks others. */
static u64 big_event(struct wheel *w, u64 e, u32 ticks)
{
	struct wheel_timer t = { 0 };

	wheel_add(w, &t, e);
	w->bucket[t.bucket].n = WHEEL_BIG * ticks;
	__hlist_del(&t.node);
	w->next = WHEEL_NEVER;
	w->upper = WHEEL_NEVER;
	t.bucket = WHEEL_NONE;
	wheel_add(w, &t, e);
	__hlist_del(&t.node);
	return w->next;
}

static u64 fired(struct wheel *w, u64 e)
{
	u32 budget = UINT32_MAX;
	struct wheel_timer *t = wheel_expire(w, e - 1, &budget);

	if (!t)
		t = wheel_expire(w, e, &budget);
	return t ? wheel_clk(w) : 0;
}

static void sample(struct wheel *w, u64 clk, u64 e, u32 ticks)
{
	struct wheel_timer t = { 0 };
	unsigned int l;
	u64 big;

	memset(w, 0, sizeof(*w));
	wheel_init(w, clk);
	big = big_event(w, e, ticks);
	memset(w, 0, sizeof(*w));
	wheel_init(w, clk);
	for (l = 0; l < WHEEL_LEVELS; l++)
		printf("%u ", w->slot[l]);
	wheel_add(w, &t, e);
	printf("%u %llu %llu", t.bucket, (ull)w->next, (ull)big);
	printf(" %llu", (ull)fired(w, e));
	memset(w, 0, sizeof(*w));
	wheel_init(w, clk);
	wheel_add_chosen(w, &t, e);
	printf(" %u %llu", t.bucket, (ull)w->next);
	printf(" %llu\n", (ull)fired(w, e));
}

int main(void)
{
	struct wheel *w = malloc(sizeof(*w));
	ull clk, e;
	u32 ticks;

	numbers();
	while (w && scanf("%llu %llu %u", &clk, &e, &ticks) == 3)
		sample(w, clk, e, ticks);
	free(w);
	return !w;
}
