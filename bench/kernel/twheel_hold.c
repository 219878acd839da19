// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * How long are interrupts off? This measures the longest lock hold of each kind of work, in
 * operations and in instructions, and prints KTAP, and figures as twheel_bench.c does. If a lock
 * hold is longer than the work may have operations, or than MOST_OPS of OP_NS each, loading the
 * module fails.
 *
 *	add, mod, cancel	batches on a base with a sink, twheel_hold_ops() in a hold, as the
 *				device does them
 *	mod-rt			the same with MOST_OPS_RT, as on PREEMPT_RT
 *	add-array		twheel_add_array(), on the CPU's base
 *	drain			twheel_drain()
 *	expire			many timers in a tick
 *	cascade			timers that are moved to lower levels before they expire
 *	callbacks		the same on a base without a sink
 *	small-...		on a small base, whose timers are in a tree
 *
 * The probe of probe.h interrupts every PROBE_NS. When its interrupt comes, no lock is held. So it
 * may count the operations that were done since the interrupt before: operations are done only in
 * lock holds, and between two interrupts there is at most one hold that is as long as PROBE_NS.
 *
 * Holds that are shorter than that may share the time between two interrupts, and then count as
 * one. 16 operations take about half of PROBE_NS. So where a hold may have 16, two of them may be
 * seen as one of 32, and MOST_FEW are let pass. A hold of the 64 that are allowed elsewhere is not.
 *
 * QEMU may raise an interrupt too late: its main thread takes the timer that has expired, and the
 * host stops this thread before it has told the CPU, which goes on meanwhile. Two holds are seen as
 * one then. A hold of ours that is too long is so each time. So if a figure is above its bound, all
 * is measured again, at most TRIES times, and the least figure of each kind of work counts.
 */
#define pr_fmt(fmt) fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "../../selftest/kmod/ktap.h"
#include "probe.h"
#include "twheel.h"

/* The bound. It is not taken from TWHEEL_HOLD_OPS, because that is what is tested. */
#define MOST_OPS	64
#define MOST_OPS_RT	16
#define MOST_FEW	(2 * 16)	/* where a hold may have 16, see above */
#define OP_NS		200
#define TIMERS		8192
#define SMALL		64		/* timers of a small base, which has no buckets */
#define ROUNDS		50		/* of the work with SMALL timers */
#define SPREAD_MS	400		/* the timers of "cascade" are due within this time */
#define TRIES		3
#define WORKS		16		/* at least as many as there are calls of probe_end() */

static struct twheel_timer *timers, **list;
static ktime_t *delays;
static struct twheel_base *base;
static unsigned int nr_timers;		/* of @base */
static atomic_t nr_fired;

/* ---- the probe ----------------------------------------------------------------------- */

static u64 last_ops, most_ops;
static bool is_array;			/* twheel_add_array() is in progress */

/* How many timers twheel_add_array() has added so far: it adds several in one lock hold. */
static u64 count_added(void)
{
	static u64 added;

	if (!twheel_pending(&timers[0]))
		added = 0;
	while (added < TIMERS && twheel_pending(&timers[added]))
		added++;
	return added;
}

/* How many operations callers have done on the base, and the base itself, since it was made. */
static u64 count_ops(void)
{
	struct twheel_stats stats;
	u64 cancelled;

	if (is_array)
		return count_added();
	twheel_get_stats(base, &stats);
	cancelled = stats.added - stats.rearmed - stats.expired - stats.pending;
	return stats.added + cancelled + stats.expired + stats.moves;
}

static void note_ops(bool counts)
{
	u64 ops = count_ops();

	if (counts)
		most_ops = max(most_ops, ops - last_ops);
	last_ops = ops;
}

static void probe_begin(void)
{
	last_ops = count_ops();
	most_ops = 0;
	probe_start();
}

/* What was measured of one kind of work: the least of all tries. */
struct worst {
	const char *work;
	unsigned int most;	/* as many operations may be seen in a lock hold */
	u64 ops, ns;
};

static struct worst worst[WORKS];
static unsigned int nr_works;

static struct worst *worst_of(const char *work, unsigned int most)
{
	unsigned int i;

	for (i = 0; i < nr_works; i++)
		if (!strcmp(worst[i].work, work))
			return &worst[i];
	worst[nr_works] = (struct worst){ work, most, U64_MAX, U64_MAX };
	return &worst[nr_works++];
}

static bool within(u64 ops, u64 ns, unsigned int most)
{
	return ops && ops <= most && ns <= MOST_OPS * OP_NS;
}

/* Print where interrupts were on again after the longest time, and how the CPU came there. */
static void report_where(const char *work, u64 ns)
{
	unsigned int i;

	pr_info("# %s: %llu operations; %llu instructions until %pS\n", work, most_ops, ns,
		(void *)probe_where);
	for (i = 0; i < probe_depth; i++)
		pr_info("#	%pS\n", (void *)probe_trace[i]);
}

/* The work is done, whose lock holds may be seen to have @most operations. */
static void probe_end(const char *work, unsigned int most)
{
	u64 ns = probe_stop();
	struct worst *of = worst_of(work, most);

	if (!within(most_ops, ns, most))
		report_where(work, ns);
	of->ops = min(of->ops, most_ops);
	of->ns = min(of->ns, ns);
}

static bool all_within(void)
{
	unsigned int i;

	for (i = 0; i < nr_works; i++)
		if (!within(worst[i].ops, worst[i].ns, worst[i].most))
			return false;
	return nr_works;
}

static void report(const char *work, const char *metric, u64 value)
{
	pr_info("TSV\thold\t1\t%s\t%s\tcount\t%llu\n", work, metric, value);
}

static void judge(const struct worst *of)
{
	report(of->work, "operations", of->ops);
	report(of->work, "instructions", of->ns);
	check(of->ops && of->ops <= of->most, "%s: %llu operations in a lock hold, of at most %u",
	      of->work, of->ops, of->most);
	check(of->ns <= MOST_OPS * OP_NS, "%s: interrupts are off for %llu instructions", of->work,
	      of->ns);
}

/* ---- the work ------------------------------------------------------------------------- */

static void sink_expired(struct twheel_base *unused, struct twheel_timer **expired, unsigned int nr)
{
	atomic_add(nr, &nr_fired);
}

static bool sink_wake(struct twheel_base *unused)
{
	return true;
}

static const struct twheel_sink sink = { .expired = sink_expired, .wake = sink_wake };

static void fired(struct twheel_timer *timer)
{
	atomic_inc(&nr_fired);
}

/* Make @base for @work. If that fails, it is a failed point: the work would not be measured. */
static bool create(const char *work, const struct twheel_sink *its_sink, unsigned int nr)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS, .sink = its_sink,
		.small = nr == SMALL,
	};
	unsigned int i;

	nr_timers = nr;
	base = twheel_create(&config);
	if (IS_ERR(base)) {
		check(false, "%s: there is a base: error %ld", work, PTR_ERR(base));
		return false;
	}
	memset(timers, 0, TIMERS * sizeof(*timers));
	for (i = 0; i < TIMERS && !its_sink; i++)
		twheel_init_on(base, &timers[i], fired);
	return true;
}

/* Timer @i, in an order that has nothing to do with memory. in_ms() gives times in all levels. */
static struct twheel_timer *any(unsigned int i)
{
	return &timers[i * 4099 % nr_timers];
}

static ktime_t in_ms(unsigned int i)
{
	return (ktime_t)(3600 + i % 2039 * 977) * NSEC_PER_MSEC;
}

static void do_add(unsigned int i, ktime_t now)
{
	twheel_add_locked(base, any(i), now + in_ms(i));
}

static void do_mod(unsigned int i, ktime_t now)
{
	twheel_mod_locked(base, any(i), now + in_ms(i + 1));
}

static void do_cancel(unsigned int i, ktime_t now)
{
	twheel_cancel_locked(base, any(i));
}

/* Do @op with each timer, with at most @most timers in a lock hold. */
static void each(void (*op)(unsigned int i, ktime_t now), unsigned int most)
{
	unsigned int i = 0, end;

	while (i < nr_timers) {
		unsigned long flags;
		ktime_t now = twheel_lock(base, &flags);

		for (end = min(i + min(most, twheel_hold_ops(base)), nr_timers); i < end; i++)
			op(i, now);
		twheel_unlock(base, flags);
	}
}

/* Do @op with each timer, with at most @most in a lock hold, which may be seen as @seen. */
static void batch(const char *work, void (*op)(unsigned int i, ktime_t now), unsigned int most,
		  unsigned int seen)
{
	probe_begin();
	each(op, most);
	probe_end(work, seen);
}

static void batches(void)
{
	if (!create("add", &sink, TIMERS))
		return;
	batch("add", do_add, TIMERS, MOST_OPS);
	batch("mod", do_mod, TIMERS, MOST_OPS);
	batch("mod-rt", do_mod, MOST_OPS_RT, MOST_FEW);
	batch("cancel", do_cancel, TIMERS, MOST_OPS);
	twheel_destroy(base);
}

static void small_batches(void)
{
	unsigned int i;

	if (!create("small-batches", &sink, SMALL))
		return;
	probe_begin();
	for (i = 0; i < ROUNDS; i++) {
		each(do_add, SMALL);
		each(do_mod, SMALL);
		each(do_cancel, SMALL);
	}
	probe_end("small-batches", MOST_FEW);
	twheel_destroy(base);
}

static void bulk(void)
{
	unsigned int i;

	if (!create("add-array", &sink, TIMERS))
		return;
	for (i = 0; i < TIMERS; i++) {
		twheel_init(&timers[i], fired);
		list[i] = &timers[i];
		delays[i] = in_ms(i);
	}
	is_array = true;
	probe_begin();
	twheel_add_array(list, delays, TIMERS);
	probe_end("add-array", MOST_OPS);
	is_array = false;
	for (i = 0; i < TIMERS; i++)
		twheel_cancel_sync(&timers[i]);
	twheel_destroy(base);
}

/* Arm all timers, timer i for @when(i) ms after a time soon, which is returned. */
static ktime_t arm(unsigned int (*when)(unsigned int i))
{
	ktime_t begin = ktime_add_ms(ktime_get(), 100);
	unsigned int i;

	atomic_set(&nr_fired, 0);
	for (i = 0; i < nr_timers; i++) {
		unsigned long flags;

		twheel_lock(base, &flags);
		twheel_add_locked(base, any(i), ktime_add_ms(begin, when(i)));
		twheel_unlock(base, flags);
	}
	return begin;
}

static unsigned int at_once(unsigned int i)
{
	return 0;
}

/* Times beyond level 0, which covers two rotations of 60 ticks. */
static unsigned int spread(unsigned int i)
{
	return 120 + i % SPREAD_MS;
}

static void drained(struct twheel_timer *unused, ktime_t expires, void *arg)
{
}

static void drain(void)
{
	if (!create("drain", &sink, TIMERS))
		return;
	arm(spread);
	probe_begin();
	twheel_drain(base, drained, NULL);
	probe_end("drain", MOST_OPS);
	twheel_destroy(base);
}

static void expire(const char *work, unsigned int nr, const struct twheel_sink *its_sink,
		   unsigned int (*when)(unsigned int i))
{
	struct twheel_stats stats;
	ktime_t begin;

	if (!create(work, its_sink, nr))
		return;
	begin = arm(when);
	check(ktime_before(ktime_get(), begin), "%s: all timers are armed in time", work);
	probe_begin();
	while (ktime_before(ktime_get(), ktime_add_ms(begin, 2 * SPREAD_MS)) &&
	       atomic_read(&nr_fired) < nr)
		msleep(20);
	probe_end(work, nr == SMALL ? MOST_FEW : MOST_OPS);
	twheel_get_stats(base, &stats);
	check(stats.expired == nr && (when == at_once || stats.moves >= nr),
	      "%s: %llu timers have expired, and there were %llu moves", work, stats.expired,
	      stats.moves);
	if (its_sink || stats.expired == nr)
		twheel_destroy(base);
}

static void all_work(void)
{
	batches();
	small_batches();
	bulk();
	drain();
	expire("expire", TIMERS, &sink, at_once);
	expire("small-expire", SMALL, &sink, at_once);
	expire("cascade", TIMERS, &sink, spread);
	expire("callbacks", TIMERS, NULL, spread);
}

static void measure(void)
{
	unsigned int i;

	pr_info("TAP version 14\n");
	probe_init(note_ops);
	for (i = 0; i < TRIES && !all_within(); i++)
		all_work();
	for (i = 0; i < nr_works; i++)
		judge(&worst[i]);
}

static int __init hold_init(void)
{
	int err = -ENOMEM;

	if (num_online_cpus() != 1 || IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EINVAL;
	timers = vmalloc(array_size(TIMERS, sizeof(*timers)));
	list = vmalloc(array_size(TIMERS, sizeof(*list)));
	delays = vmalloc(array_size(TIMERS, sizeof(*delays)));
	if (timers && list && delays) {
		measure();
		err = ktap_end();
	}
	vfree(delays);
	vfree(list);
	vfree(timers);
	return err;
}

static void __exit hold_exit(void)
{
}

module_init(hold_init);
module_exit(hold_exit);

MODULE_DESCRIPTION("The longest lock hold of twheel");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
