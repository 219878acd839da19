// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel_shutdown_sync() while the callback runs, and has armed its timer for a tick that comes
 * before the callback ends. The run must not find the timer armed without a function.
 *
 * As long as it has time, the run continues without releasing the lock, so nobody else can disarm
 * what it finds next. The test needs two CPUs, and luck with the tick: of 100 rounds a few hit.
 */
#define pr_fmt(fmt) fmt

#include <linux/kthread.h>
#include <linux/module.h>

#include "ktap.h"
#include "twheel.h"

#define ROUNDS	200

static struct twheel_timer timer;
static struct twheel_base *base;
static int calls;

static void fired(struct twheel_timer *t)
{
	ktime_t due;

	WRITE_ONCE(calls, calls + 1);
	if (calls > 1)
		return;
	twheel_add(t, 0);
	due = twheel_expires(t);	/* KTIME_MAX if the timer was shut down already */
	while (due != KTIME_MAX && ktime_get() <= due)
		cpu_relax();
}

static int arm(void *arg)
{
	twheel_add(&timer, 0);
	return 0;
}

/* The timer fires on another CPU: the interrupt comes to the CPU that arms it. */
static int shut_once(unsigned int cpu)
{
	struct task_struct *task;

	twheel_init_on(base, &timer, fired);
	WRITE_ONCE(calls, 0);
	task = kthread_create(arm, NULL, "twheel_shut");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	while (!READ_ONCE(calls))
		cond_resched();
	twheel_shutdown_sync(&timer);
	return twheel_pending(&timer) || READ_ONCE(calls) > 2;
}

static int __init shut_init(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_MIN_NS,
	};
	unsigned int here, cpu, i;
	int wrong = 0;

	base = twheel_create(&config);
	if (IS_ERR(base))
		return PTR_ERR(base);
	pr_info("TAP version 14\n");
	here = raw_smp_processor_id();
	cpu = cpumask_any_but(cpu_online_mask, here);
	for (i = 0; i < ROUNDS && cpu < nr_cpu_ids; i++)
		wrong += !!shut_once(cpu);
	if (i)
		check(!wrong, "a timer that is shut down from its callback's side stays idle");
	else
		skip("one CPU", "a timer that is shut down from its callback's side stays idle");
	twheel_destroy(base);
	return ktap_end();
}

static void __exit shut_exit(void)
{
}

module_init(shut_init);
module_exit(shut_exit);

MODULE_DESCRIPTION("Test of twheel_shutdown_sync() against a running callback");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
