// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * DPDK's rte_timer, a skip list, with the same loads. It reads the TSC itself and knows no virtual
 * ticks, so here a tick is a number of cycles: some ten microseconds, or more if there are more
 * timers, so that a tick's work fits. Arming and cancelling are measured far away from any
 * deadline. Expiry calls rte_timer_manage() once a tick, and takes the time of these calls alone:
 * elapsed time, not CPU time. So how late a timer is says more about the machine than about the
 * skip list, and is not reported.
 */
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_timer.h>

#include "bench.h"

#define SUBJECT		"dpdk"
#define OWN_EXPIRE

#define timer		rte_timer

struct queue {
	u64		zero;		/* the TSC at tick 0 */
	u64		cycles;		/* of a tick */
	u32		n;		/* timers that are armed */
	struct work	*work;
};

static struct queue *the_queue;

static void fired(struct rte_timer *t, void *expires)
{
	struct queue *q = the_queue;

	q->work->fired++;
	q->work->sum += (uintptr_t)expires;
	q->n--;
}

/* Unless set otherwise, a tick is so long that it never ends. */
static void queue_init(struct queue *q, u32 n, u64 start)
{
	*q = (struct queue){ .cycles = rte_get_timer_hz(), .zero = rte_get_timer_cycles() };
	the_queue = q;
}

static void queue_exit(struct queue *q)
{
}

static inline void queue_mod(struct queue *q, struct timer *t, u64 expires)
{
	u64 cycles = q->zero + expires * q->cycles - rte_get_timer_cycles();

	rte_timer_reset(t, cycles, SINGLE, rte_lcore_id(), fired, (void *)(uintptr_t)expires);
}

static inline void queue_add(struct queue *q, struct timer *t, u64 expires)
{
	queue_mod(q, t, expires);
	q->n++;
}

static inline void queue_del(struct queue *q, struct timer *t)
{
	rte_timer_stop(t);
	q->n--;
}

static inline bool queue_empty(const struct queue *q)
{
	return !q->n;
}

static void run_expire(struct queue *q, struct timer *t, const struct load *l,
		       struct times *took, struct work *w, u32 *tick_ns);

#include "phases.h"

/* One call, in the middle of its tick. Returns the time that it took. */
static u64 manage(const struct queue *q, u64 tick)
{
	u64 middle = q->zero + tick * q->cycles + q->cycles / 2, t0;

	while ((t0 = rte_get_timer_cycles()) < middle)
		;
	rte_timer_manage();
	return (rte_get_timer_cycles() - t0) * 1000000000 / rte_get_timer_hz();
}

/* Arm all timers for ticks that begin @lead cycles from now. Returns whether that was in time. */
static bool arm(struct queue *q, struct timer *t, const struct load *l, u64 lead)
{
	u64 us = rte_get_timer_hz() / 1000000, per_tick = l->n / l->range;

	queue_init(q, l->n, l->start);
	q->cycles = us * (per_tick > 4 ? 2 * per_tick : l->range > 100000 ? 2 : 10);
	q->zero += lead - l->start * q->cycles;
	phase_add(q, t, l);
	return rte_get_timer_cycles() < q->zero + l->start * q->cycles;
}

/* If the arming of a timer was interrupted, it is due later than meant: wait for the last ones. */
static void run_expire(struct queue *q, struct timer *t, const struct load *l,
		       struct times *took, struct work *w, u32 *tick_ns)
{
	u64 lead = rte_get_timer_hz() / 100 + 2 * took->add * (rte_get_timer_hz() / 1000000) / 1000,
	    tick;
	u64 end = l->start + l->first + l->range;

	while (!arm(q, t, l, lead)) {
		phase_cancel(q, t, l);
		lead *= 2;
	}
	q->work = w;
	for (tick = l->start + 1; tick < end || (q->n && tick < 2 * end); tick++) {
		u64 ns = manage(q, tick);

		took->expire += ns;
		if (tick < end && ns < tick_ns[tick - l->start])
			tick_ns[tick - l->start] = ns;
	}
	must_be_exact(w, l->sum, SUBJECT, l);
}

static void compare(const struct load *l, u32 reps)
{
	size_t size = (l->first + l->range) * sizeof(u32);
	u32 *tick_ns = pages(size), rep, worst = 0, i;
	struct times times[reps];
	struct work w;

	memset(tick_ns, 0xff, size);
	memset(times, 0, sizeof(times));
	for (rep = 0; rep < reps; rep++) {
		w = (struct work){ 0 };
		run(l, &times[rep], &w, tick_ns);
	}
	for (i = 1; i < l->first + l->range; i++)
		if (tick_ns[i] > worst)
			worst = tick_ns[i];
	tsv_times(l, SUBJECT, times, reps);
	tsv(l, SUBJECT, "worst-advance", "us", worst / 1000.0);
	tsv(l, SUBJECT, "memory", "bytes", sizeof(struct timer));
	tsv(l, SUBJECT, "checksum", "ticks", w.sum);
	munmap(tick_ns, size);
}

int main(int argc, char **argv)
{
	static const char *const eal[] = {
		"bench", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry",
		"--log-level=error", "--lcores",
	};
	const int nr = ARRAY_SIZE(eal);
	char *args[nr + 2];
	u32 n;
	int i;

	if (argc != 4) {
		fprintf(stderr, "usage: %s CPU NMAX REPS\n", argv[0]);
		return 2;
	}
	for (i = 0; i < nr; i++)
		args[i] = (char *)eal[i];
	args[nr] = argv[1];
	args[nr + 1] = NULL;
	if (rte_eal_init(nr + 1, args) < 0 || rte_timer_subsystem_init()) {
		fprintf(stderr, "DPDK's environment did not start\n");
		return 1;
	}
	for (i = 0; i < 2; i++) {
		for (n = 1000; n <= strtoul(argv[2], NULL, 0); n *= 10) {
			struct load l = loads[i];

			make_load(&l, n);
			compare(&l, n < MANY ? strtoul(argv[3], NULL, 0) : 1);
			free_load(&l);
		}
	}
	return 0;
}
