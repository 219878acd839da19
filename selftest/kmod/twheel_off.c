// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A CPU goes offline and online again while bases of both clocks are queued on it. Its dispatcher
 * has an hrtimer for each clock. One of these comes back with the CPU, and the other stays on the
 * CPU to which it was moved. Both expire at the same time, on two CPUs, but only one pass may run.
 * If a second pass ran and went on to another base, it would once more wake the tasks that the
 * first pass is waking. On PREEMPT_RT a sink must allow for that: if a pass stands still for a ms,
 * another CPU takes over.
 *
 * Also, a base is destroyed while its waiters are being woken: the destruction must wait for that.
 *
 * KTAP in the kernel log. Needs two CPUs.
 */
#define pr_fmt(fmt) fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "kwait.h"
#include "twheel.h"

#define OFF_CPU		1
#define LEAD_NS		(4 * NSEC_PER_SEC)	/* switching a CPU off takes time */
#define WAKE_MS		100
#define LONGEST_MS	2000
#define SOON_NS		(10 * NSEC_PER_MSEC)
#define MANY		(TWHEEL_SINK_MAX + 1)	/* more timers than one turn takes */
#define ROUNDS		20

static atomic_t nr_wakes, in_wake, most_in_wake;
static int wake_cpu = OFF_CPU;	/* where the last wake-up was, or the next one is expected */
static bool to_be_seen;	/* does a wake-up last until somebody has seen it, or LONGEST_MS? */

static void no_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr) { }
static bool no_wake(struct twheel_base *base) { return true; }

static bool slow_wake(struct twheel_base *base)
{
	int nr = atomic_inc_return(&in_wake);
	unsigned int ms;

	atomic_inc(&nr_wakes);
	WRITE_ONCE(wake_cpu, raw_smp_processor_id());
	if (nr > atomic_read(&most_in_wake))
		atomic_set(&most_in_wake, nr);
	mdelay(WAKE_MS);
	for (ms = 0; ms < LONGEST_MS && READ_ONCE(to_be_seen); ms++)
		mdelay(1);
	atomic_dec(&in_wake);
	return true;
}

static const struct twheel_sink no_sink = { .expired = no_expired, .wake = no_wake };
static const struct twheel_sink slow_sink = { .expired = no_expired, .wake = slow_wake };

/**
 * struct armed - a base, and its timers
 * @base:	the base
 * @timers:	its timers
 * @nr:		how many
 * @expires:	when they are due
 */
struct armed {
	struct twheel_base	*base;
	struct twheel_timer	timers[MANY];
	unsigned int		nr;
	ktime_t			expires;
};

static int arm(void *arg)
{
	struct armed *armed = arg;
	unsigned long flags;
	unsigned int i;

	memset(armed->timers, 0, sizeof(armed->timers));
	twheel_lock(armed->base, &flags);
	for (i = 0; i < armed->nr; i++)
		twheel_add_locked(armed->base, &armed->timers[i], armed->expires);
	twheel_unlock(armed->base, flags);
	return 0;
}

static bool armed_begin(struct armed *armed, clockid_t clock, const struct twheel_sink *sink,
			u64 delay)
{
	const struct twheel_config config = {
		.clock = clock, .tick_ns = NSEC_PER_MSEC, .sink = sink,
	};

	armed->base = twheel_create(&config);
	armed->nr = 1;
	armed->expires = ktime_add_ns(clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get(),
				      delay);
	return !IS_ERR(armed->base);
}

static struct armed mono, boot;

/*
 * The base of CLOCK_BOOTTIME is armed first, so that its hrtimer leaves the CPU with it. The bases
 * are due @lead from now. Returns whether all was done before that.
 */
static bool arm_while_off(u64 lead)
{
	const u64 later = lead + WAKE_MS * NSEC_PER_MSEC / 2;
	bool good = armed_begin(&boot, CLOCK_BOOTTIME, &no_sink, later) &&
		    armed_begin(&mono, CLOCK_MONOTONIC, &slow_sink, lead);

	check(good, "two bases");
	if (!good)
		return false;
	mono.nr = MANY;
	smp_call_on_cpu(OFF_CPU, arm, &boot, false);
	check(!remove_cpu(OFF_CPU) && !add_cpu(OFF_CPU), "CPU %d goes off and on", OFF_CPU);
	smp_call_on_cpu(OFF_CPU, arm, &mono, false);
	return ktime_before(ktime_get(), mono.expires);
}

static void disarm(void)
{
	if (!IS_ERR_OR_NULL(mono.base))
		twheel_destroy(mono.base);
	if (!IS_ERR_OR_NULL(boot.base))
		twheel_destroy(boot.base);
	mono.base = NULL;
	boot.base = NULL;
}

/* If the host is so busy that the CPU is not back in time, begin again, with more time. */
static void test_off(void)
{
	const int turns = DIV_ROUND_UP(MANY, min_t(int, TWHEEL_SINK_MAX, TWHEEL_HOLD_OPS));
	const bool once = !IS_ENABLED(CONFIG_PREEMPT_RT);
	bool in_time = false;
	unsigned int tries;
	int wakes;

	for (tries = 0; tries < 4 && !in_time; tries++) {
		in_time = arm_while_off(LEAD_NS << tries);
		if (in_time)
			break;
		disarm();
		atomic_set(&nr_wakes, 0);
		atomic_set(&most_in_wake, 0);
	}
	check(in_time, "before the first is due");
	if (!in_time)
		return;
	msleep((LEAD_NS << tries) / NSEC_PER_MSEC);
	wait_for(atomic_read(&nr_wakes));
	msleep(5 * WAKE_MS);
	wait_for(!atomic_read(&in_wake));
	/*
	 * If the host stopped both CPUs until the other base was gone, there is one wake-up in all.
	 */
	wakes = atomic_read(&nr_wakes);
	check(wakes && (!once || wakes <= turns),
	      "who waits is woken, at most once in each turn: %d times", wakes);
	check(!once || atomic_read(&most_in_wake) == 1, "by one CPU at a time: %d",
	      atomic_read(&most_in_wake));
	disarm();
}

/*
 * Arm both bases on OFF_CPU. Until both are armed no pass may begin there: the wake-up of the first
 * would keep the CPU from arming the second. Nobody waits for this work before the wake-up has been
 * seen, since a wake-up that begins before the work has ended keeps that CPU, too.
 */
static void arm_both(struct work_struct *work)
{
	local_bh_disable();
	mono.expires = ktime_add_ns(ktime_get(), SOON_NS);
	boot.expires = mono.expires;
	arm(&mono);
	arm(&boot);
	local_bh_enable();
}

static DECLARE_WORK(arm_work, arm_both);

static bool is_waking(void)
{
	unsigned int ms;

	for (ms = 0; ms < 2 * LONGEST_MS && !atomic_read(&in_wake); ms++)
		usleep_range(900, 1000);
	WRITE_ONCE(to_be_seen, false);
	return atomic_read(&in_wake);
}

/*
 * Destroy a base while its waiters are woken for @nr timers. Returns whether a wake-up was in
 * progress when that began; *@over becomes false if one was when it had ended. On PREEMPT_RT both
 * CPUs may be waking, and then only a task with SCHED_FIFO can sleep for a ms.
 */
static bool destroy_once(unsigned int nr, bool *over)
{
	bool seen;

	mono.nr = nr;
	WRITE_ONCE(to_be_seen, true);
	schedule_work_on(OFF_CPU, &arm_work);
	fifo_begin();
	seen = is_waking();
	if (!seen)
		flush_work(&arm_work);
	twheel_destroy(mono.base);
	fifo_end();
	*over &= !atomic_read(&in_wake);
	while (atomic_read(&in_wake))
		usleep_range(900, 1000);
	flush_work(&arm_work);
	twheel_destroy(boot.base);
	return seen;
}

/*
 * If there are more timers than one turn takes, the waiters are first woken when it is the other
 * base's turn. If the wake-up comes on this task's CPU, nobody can look meanwhile: then this task
 * goes to another CPU, and tries again.
 */
static void test_destroy(unsigned int nr)
{
	bool good = true, seen = false, over = true;
	unsigned int round;

	for (round = 0; round < ROUNDS && good && !seen; round++) {
		set_cpus_allowed_ptr(current, cpumask_of(cpumask_any_but(cpu_online_mask,
									 READ_ONCE(wake_cpu))));
		good = armed_begin(&mono, CLOCK_MONOTONIC, &slow_sink, SOON_NS) &&
		       armed_begin(&boot, CLOCK_MONOTONIC, &no_sink, SOON_NS);
		seen = good && destroy_once(nr, &over);
		if (!seen)
			pr_info("# woken %d times, at last on CPU %d; seen from CPU %d: no\n",
				atomic_read(&nr_wakes), wake_cpu, raw_smp_processor_id());
	}
	check(good, "two bases more");
	check(seen, "who waits for %u timers is woken", nr);
	check(over, "nobody is, once the base is destroyed");
}

/* Destroy it on another CPU than the one that wakes. */
static void test_destroys(void)
{
	test_destroy(1);
	test_destroy(MANY);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static int __init twheel_off_init(void)
{
	pr_info("TAP version 14\n");
	if (num_online_cpus() < 2)
		skip("one CPU", "a CPU goes off and on");
	else
		test_off();
	if (num_online_cpus() > 1)
		test_destroys();
	return ktap_end();
}

static void __exit twheel_off_exit(void)
{
}

module_init(twheel_off_init);
module_exit(twheel_off_exit);

MODULE_DESCRIPTION("Test of twheel's dispatchers while a CPU goes off and on");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
