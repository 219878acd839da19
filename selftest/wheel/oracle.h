/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A wheel beside a deliberately simple oracle: an array that says when each timer is
 * due, and loops over all of it. Each operation is applied to both, and then everything that must
 * hold is checked.
 *
 * The caller chooses the operations: oracle.c draws them at random, ../fuzz gets
 * them from a fuzzer. An episode is begin(), operations, finish().
 */
#ifndef ORACLE_H
#define ORACLE_H

#define NR_MAX		(8 * WHEEL_BIG + 100)
#define ROOM		48	/* timers that one call may take */

/* The properties that must hold, each a line of TAP. */
enum prop {
	TICK, RANGE, ONCE, LOST, NEXT, BUDGET, CLOCK, COUNT, SOUND, NR_PROPS
};

static const char *const promise[NR_PROPS] = {
	[TICK]		= "a timer fires in its tick, never early, never late, in order",
	[RANGE]		= "one with a tolerance is due in the tick that most can share, or stays",
	[ONCE]		= "no timer fires that is not queued: never twice, never cancelled",
	[LOST]		= "after an advance nothing that was due is left",
	[NEXT]		= "the next event is never later than the earliest timer",
	[BUDGET]	= "no call does more than its budget, or stops while it has some",
	[CLOCK]		= "clk follows the time, and never overtakes an event",
	[COUNT]		= "the wheel holds as many timers as were added",
	[SOUND]		= "wheel_check() finds nothing wrong",
};

/* The situations that must have occurred, or the run has tested too little. */
enum seen {
	IN_S1, IN_S2, IN_L0, IN_L1, IN_L2, IN_L3, IN_L4, IN_FAR,
	CUT_IDLE, CUT_CASCADE, CUT_EXPIRE, CUT_PACE, CUT_STOP,
	ADD_MIDWAY, DEL_MIDWAY, ADD_INSIDE, DEL_INSIDE,
	BIG_BUCKET, OWED, LOOKING, DEL_LOOKED, PUT_OFF, MOD_EARLIER, MOD_MIDWAY,
	STAYED, FROM_STOP, EXPIRED, NR_SEEN
};

#include "judge.h"

/* Called in the loop that takes the expired timers, for each timer @i. */
static void at_expiry(unsigned int i);

static u64 true_clk(void)
{
	return wheel_clk(w);
}

static u64 last_over(void)
{
	return wheel_clk(w);
}

/* Operations on one timer, in the wheel and in the oracle */

static bool midway(void)
{
	return w->phase != WHEEL_IDLE;
}

/*
 * Timer @i was armed for due[i]. The wheel said whether the next event is @earlier now; it was
 * @next.
 */
static void armed(unsigned int i, u64 next, bool earlier)
{
	expect(NEXT, w->next <= due[i] && earlier == (w->next < next) && w->next <= next);
	expect(ONCE, wheel_pending(&timer[i]) && timer[i].expires == due[i]);
}

static void added(unsigned int i)
{
	unsigned int slot = timer[i].bucket;

	count[ADD_MIDWAY] += midway();
	count[IN_S1 + (slot >= WHEEL_S2) + (slot >= WHEEL_L0) + (slot >= WHEEL_L1) +
	      (slot >= WHEEL_L2) + (slot >= WHEEL_L3) + (slot >= WHEEL_L4) +
	      (slot >= WHEEL_FAR)]++;
}

static void add(unsigned int i, u64 expires)
{
	u64 next = w->next;
	bool earlier;

	ops++;
	earlier = wheel_add(w, &timer[i], expires);
	due[i] = expires > wheel_clk(w) ? expires : wheel_clk(w) + 1;
	armed(i, next, earlier);
	added(i);
}

static void add_within(unsigned int i, u64 first, u64 last)
{
	u64 next = w->next;
	bool earlier;

	if (last > WHEEL_NEVER - width[4])
		return;
	ops++;
	due[i] = tick_within(first, last);
	earlier = wheel_add_range(w, &timer[i], first, last);
	expect(RANGE, timer[i].expires == due[i]);
	armed(i, next, earlier);
	/* In levels 1 and 2 a timer that is due at a stop must be at the stop. */
	if (due[i] > w->reach[0] && due[i] <= w->reach[2])
		expect(RANGE, (timer[i].bucket < WHEEL_L0) ==
		       !(due[i] % (due[i] > w->reach[1] ? width[2] / WHEEL_PARTS : width[1])));
	added(i);
}

static void del(unsigned int i)
{
	ops++;
	count[DEL_MIDWAY] += midway();
	count[DEL_LOOKED] += timer[i].bucket == w->far;
	wheel_del(w, &timer[i]);
	due[i] = IDLE;
	expect(ONCE, !wheel_pending(&timer[i]));
}

/*
 * MOD of a timer that is queued. If it is put off it must stay in its bucket, unless that is in
 * level 0.
 */
static void mod(unsigned int i, u64 expires)
{
	u64 next = w->next, added = w->added, before = timer[i].expires;
	unsigned int slot = timer[i].bucket;
	bool earlier;

	ops++;
	earlier = wheel_mod(w, &timer[i], expires);
	due[i] = expires > wheel_clk(w) ? expires : wheel_clk(w) + 1;
	armed(i, next, earlier);
	expect(COUNT, w->added == added + 1 && wheel_nr(w) == queued());
	if (slot >= WHEEL_L1 && due[i] >= before)
		expect(SOUND, timer[i].bucket == slot && w->next == next);
	count[PUT_OFF] += slot >= WHEEL_L1 && due[i] >= before;
	count[MOD_EARLIER] += due[i] < before;
	count[MOD_MIDWAY] += midway();
}

/* MOD with a tolerance. If the timer's tick is among those allowed, it must not change. */
static void mod_within(unsigned int i, u64 first, u64 last)
{
	u64 next = w->next, nr_added = w->added, before = due[i];
	unsigned int slot = timer[i].bucket;
	bool stays, earlier;

	if (last > WHEEL_NEVER - width[4])
		return;
	ops++;
	due[i] = tick_within(first, last);
	stays = before >= tick_within(first, first) && (before <= last || before == due[i]);
	if (stays)
		due[i] = before;
	earlier = wheel_mod_range(w, &timer[i], first, last);
	expect(RANGE, timer[i].expires == due[i]);
	armed(i, next, earlier);
	expect(COUNT, w->added == nr_added + 1 && wheel_nr(w) == queued());
	if (stays || (slot >= WHEEL_L1 && due[i] >= before))
		expect(RANGE, timer[i].bucket == slot && w->next == next);
	count[STAYED] += stays;
}

/*
 * Up to @n idle timers, from timer @i on, into the @spread ticks from @expires on: into
 * the same tick, or the same bucket of some level.
 */
static void burst(u64 expires, u64 spread, unsigned int n, unsigned int i)
{
	unsigned int k;

	if (expires > WHEEL_NEVER - spread)
		return;
	for (k = 0; k < nr && n; k++, i = i + 1 < nr ? i + 1 : 0) {
		if (due[i] != IDLE)
			continue;
		add(i, expires + below(spread));
		n--;
	}
}

static void expired(struct wheel_timer *t)
{
	unsigned int i = t - timer;

	count[EXPIRED]++;
	count[FROM_STOP] += w->due < WHEEL_L0;
	expect(ONCE, due[i] != IDLE && !wheel_pending(t));
	expect(TICK, due[i] == wheel_clk(w) && t->expires == due[i] && due[i] <= now);
	expect(SOUND, t->data == i && t->flags == (u16)~i);
	due[i] = IDLE;
}

/* Count what the wheel is in the middle of. */
static void look(bool unfinished)
{
	u32 owed = 0;
	unsigned int l;

	if (unfinished)
		count[CUT_IDLE + w->phase]++;
	count[CUT_STOP] += unfinished && wheel_expiring(w) && w->due < WHEEL_L0;
	for (l = 1; l < WHEEL_LEVELS; l++)
		owed += w->quota[l];
	count[OWED] += unfinished && w->phase == WHEEL_PACE && owed;
	count[BIG_BUCKET] += find_next_bit(w->big, WHEEL_FAR, WHEEL_L1) < WHEEL_FAR;
	count[LOOKING] += w->bucket[w->far].n > 0;
}

static void state(u64 clk)
{
	bool unfinished = wheel_due(w, now);
	u64 min = earliest();

	expect(CLOCK, wheel_clk(w) >= clk && wheel_clk(w) <= now);
	expect(NEXT, w->next <= min);
	expect(COUNT, wheel_nr(w) == queued());
	if (unfinished) {
		expect(TICK, min >= wheel_clk(w));
	} else {
		expect(LOST, min > now);
		expect(CLOCK, wheel_clk(w) == now && !midway());
	}
	look(unfinished);
}

/* Take the next timers: one, or if @room is not 0 as many as that. */
static u32 expire(u32 *left, struct wheel_timer **timers, u32 room)
{
	if (room)
		return wheel_expire_many(w, now, left, timers, room, NULL);
	timers[0] = wheel_expire(w, now, left);
	return !!timers[0];
}

static void advance_to(u64 time, u32 budget)
{
	u64 moves = w->moves, clk = wheel_clk(w), fired = 0;
	struct wheel_timer *timers[ROOM];
	u32 left = budget, got, i;

	ops++;
	now = time;
	while ((got = expire(&left, timers, budget % ROOM)) && !failed()) {
		for (i = 0; i < got; i++)
			expired(timers[i]);
		for (i = 0; i < got; i++)
			at_expiry(timers[i] - timer);
		fired += got;
		expect(BUDGET, left < budget);
	}
	expect(BUDGET, left <= budget && fired + (w->moves - moves) <= budget - left);
	expect(BUDGET, !left || !wheel_due(w, now));
	state(clk);
}

/* Let time pass, without an advance: clk follows only up to the next event. */
static void forward(u64 time)
{
	u64 clk = wheel_clk(w), next = w->next;

	ops++;
	now = time;
	wheel_forward(w, now);
	expect(CLOCK, wheel_clk(w) == (now > clk && now < next ? now : clk) && w->next == next);
}

/* A new wheel at tick @clk, and @n timers, all idle. */
static void begin(u64 clk, unsigned int n)
{
	unsigned int i;

	now = clk;
	nr = n;
	w = new_wheel(now);
	for (i = 0; i < nr; i++) {
		timer[i] = (struct wheel_timer) { .data = i, .flags = ~i };
		due[i] = IDLE;
	}
}

/* Let all timers fire that can, and cancel those at the end of time. at_expiry() adds no more. */
static void finish(void)
{
	unsigned int i;

	for (i = 0; i < nr && !failed(); i++)
		if (due[i] != IDLE && due[i] > now + 1000 * SPAN)
			del(i);
	while (queued() && !failed())
		advance_to(now + 4 * SPAN, NO_LIMIT);
	if (!failed()) {
		expect(COUNT, !wheel_nr(w));
		expect(SOUND, sound(w));
	}
	free(w);
}

#endif
