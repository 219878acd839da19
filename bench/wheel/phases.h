/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The measured loops, which are compiled into every subject so that its operations are inlined. A
 * subject defines before it includes this:
 *
 *	struct timer				a timer, idle when zeroed
 *	struct queue				all of them
 *	queue_init(queue, n, start)
 *	queue_exit(queue)
 *	queue_add(queue, timer, expires)
 *	queue_mod(queue, timer, expires)	for a timer that is queued
 *	queue_del(queue, timer)
 *	queue_empty(queue)
 *
 * and, unless it has an expiry of its own:
 *
 *	queue_take(queue, now)			the next timer due at or before now, or NULL
 *	expires_of(timer)
 *	moves_of(queue)				moves so far, or 0
 */
#include "bench.h"

static measured void phase_add(struct queue *q, struct timer *t, const struct load *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		queue_add(q, &t[i], l->start + l->delay[i]);
}

static measured void phase_rearm(struct queue *q, struct timer *t, const struct load *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		queue_mod(q, &t[l->order[i]], l->start + l->again[i]);
}

static measured void phase_cancel(struct queue *q, struct timer *t, const struct load *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		queue_del(q, &t[l->order[i]]);
}

#ifndef OWN_EXPIRE
/* Inlined into every loop: gcc would not do that, and a call costs more than an empty tick. */
static inline __attribute__((__always_inline__))
void expire_tick(struct queue *q, u64 now, struct work *w)
{
	struct timer *t;

	while ((t = queue_take(q, now))) {
		u64 late = now - expires_of(t);

		w->fired++;
		w->sum += expires_of(t);
		w->early += expires_of(t) > now;
		if (late > w->late)
			w->late = late;
	}
}

static measured void phase_expire(struct queue *q, const struct load *l, struct work *w)
{
	u64 now, end = l->start + l->first + l->range;

	for (now = l->start + 1; now < end; now++)
		expire_tick(q, now, w);
}

/* The same, reading the clock once a tick, to find the worst tick. */
static measured void phase_ticks(struct queue *q, const struct load *l, struct work *w,
				 u32 *tick_ns)
{
	u64 now, end = l->start + l->first + l->range;
	u64 t0 = nanoseconds(CLOCK_MONOTONIC), t1, moves = moves_of(q);

	for (now = l->start + 1; now < end; now++) {
		expire_tick(q, now, w);
		t1 = nanoseconds(CLOCK_MONOTONIC);
		if (t1 - t0 < tick_ns[now - l->start])
			tick_ns[now - l->start] = t1 - t0;
		t0 = t1;
		if (moves_of(q) - moves > w->most_moves)
			w->most_moves = moves_of(q) - moves;
		moves = moves_of(q);
	}
}

/* A connection has been idle for its timeout: its timer is armed for the next connection. */
static inline __attribute__((__always_inline__))
u64 idle_tick(struct queue *q, u64 now, u64 timeout)
{
	struct timer *t;
	u64 fired = 0;

	for (; (t = queue_take(q, now)); fired++)
		queue_add(q, t, now + timeout);
	return fired;
}

/*
 * Each of n connections has one timeout, as long as the load's longest delay. Something happens at
 * random on any of them, three times within that time on average. So of 100 timeouts, 95 are put
 * off before they are due, and five expire. Returns how many did either.
 */
static measured u64 phase_idle(struct queue *q, struct timer *t, const struct load *l,
			       u64 *now, u32 rounds)
{
	u64 timeout = l->first + l->range, ticks = rounds * timeout / 3, tick, from = *now;
	u64 total = (u64)rounds * l->n, done = 0, fired = 0;
	u32 i = 0;

	for (tick = 1; tick <= ticks; tick++) {
		*now = from + tick;
		fired += idle_tick(q, *now, timeout);
		for (; done < total * tick / ticks; done++) {
			queue_mod(q, &t[l->pick[i]], *now + timeout);
			i = i + 1 < l->n ? i + 1 : 0;
		}
	}
	return done + fired;
}

/*
 * Every phase once, add twice, without the clock: for the checks, and for counting instructions. A
 * timer that was re-armed fires only at its second deadline.
 */
static void check(const struct load *l)
{
	struct timer *t = timer_pages(l->n * sizeof(*t));
	static struct queue q;
	struct work w = { 0 };

	queue_init(&q, l->n, l->start);
	phase_add(&q, t, l);
	phase_rearm(&q, t, l);
	phase_expire(&q, l, &w);
	must_be_exact(&w, l->sum_again, SUBJECT, l);
	must(queue_empty(&q), SUBJECT, l, "not empty after the last expiry");
	queue_exit(&q);

	queue_init(&q, l->n, l->start);
	phase_add(&q, t, l);
	phase_cancel(&q, t, l);
	must(queue_empty(&q), SUBJECT, l, "not empty after the last cancel");
	queue_exit(&q);
	munmap(t, l->n * sizeof(*t));
}

static void run_expire(struct queue *q, struct timer *t, const struct load *l,
		       struct times *took, struct work *w, u32 *tick_ns)
{
	u64 began;

	queue_init(q, l->n, l->start);
	phase_add(q, t, l);
	began = cpu_ns();
	phase_expire(q, l, w);
	took->expire = cpu_ns() - began;
	must_be_exact(w, l->sum, SUBJECT, l);
	queue_exit(q);

	*w = (struct work){ 0 };
	queue_init(q, l->n, l->start);
	phase_add(q, t, l);
	phase_ticks(q, l, w, tick_ns);
	must_be_exact(w, l->sum, SUBJECT, l);
	queue_exit(q);
}
#endif

static void run_cancel(struct queue *q, struct timer *t, const struct load *l,
		       struct times *took)
{
	u64 time[5];

	queue_init(q, l->n, l->start);
	time[0] = cpu_ns();
	phase_add(q, t, l);
	time[1] = cpu_ns();
	phase_cancel(q, t, l);
	time[2] = cpu_ns();
	must(queue_empty(q), SUBJECT, l, "not empty after the last cancel");
	phase_add(q, t, l);
	time[3] = cpu_ns();
	phase_rearm(q, t, l);
	time[4] = cpu_ns();
	phase_cancel(q, t, l);
	queue_exit(q);
	took->add = time[1] - time[0];
	took->cancel = time[2] - time[1];
	took->rearm = time[4] - time[3];
}

#ifndef OWN_EXPIRE
/*
 * After one timeout's time the wheel is in a steady state. Then it is measured for three timeouts'
 * time; for one, if there are so many timers that chance has no say in it.
 */
static void run_idle(struct queue *q, struct timer *t, const struct load *l,
		     struct times *took)
{
	u32 rounds = l->n < MANY ? 9 : 3, i;
	u64 now = l->start, began, done;

	queue_init(q, l->n, l->start);
	phase_add(q, t, l);
	phase_idle(q, t, l, &now, 3);
	began = cpu_ns();
	done = phase_idle(q, t, l, &now, rounds);
	took->idle = (cpu_ns() - began) * l->n / done;
	for (i = 0; i < l->n; i++)
		queue_del(q, &t[i]);
	must(queue_empty(q), SUBJECT, l, "not empty after the idle timeouts");
	queue_exit(q);
}

/*
 * An eighth of the timers expires. With @stride all were armed, each eight in a row for the same
 * tick, and seven of each eight were cancelled; without it, only the eighth was armed. Returns ns
 * for each timer, times n.
 */
static u64 run_eighth(struct queue *q, struct timer *t, const struct load *l, bool stride)
{
	struct work w = { 0 };
	u64 began, took;
	u32 i;

	queue_init(q, l->n, l->start);
	for (i = 0; i < l->n; i++)
		if (stride || !(i % 8))
			queue_add(q, &t[i], l->start + l->delay[i / 8]);
	for (i = 0; stride && i < l->n; i++)
		if (i % 8)
			queue_del(q, &t[i]);
	began = cpu_ns();
	phase_expire(q, l, &w);
	took = cpu_ns() - began;
	must(queue_empty(q), SUBJECT, l, "not empty after an eighth expired");
	queue_exit(q);
	return took * l->n / w.fired;
}
#endif

static void run(const struct load *l, struct times *took, struct work *w, u32 *tick_ns)
{
	struct timer *t = timer_pages(l->n * sizeof(*t));
	static struct queue q;

	run_cancel(&q, t, l, took);
	run_expire(&q, t, l, took, w, tick_ns);
#ifndef OWN_EXPIRE
	if (l->idle)
		run_idle(&q, t, l, took);
	if (l->eighth) {
		took->few = run_eighth(&q, t, l, false);
		took->stride = run_eighth(&q, t, l, true);
	}
#endif
	munmap(t, l->n * sizeof(*t));
}
