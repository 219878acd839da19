// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A CPU goes off and on again while bases of both clocks are queued on it. Its dispatcher has
 * an hrtimer for each clock, of which one comes back and the other stays where it went. Both
 * expire at the same time, on two CPUs: a base is served and its waiters are woken once.
 *
 * KTAP in the kernel log. Needs two CPUs.
 */
#define pr_fmt(fmt) fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "ktap.h"
#include "twheel.h"

#define OFF_CPU		1
#define LEAD_NS		(4 * NSEC_PER_SEC)	/* going off takes time */
#define WAKE_MS		40

static atomic_t nr_wakes, in_wake, most_in_wake;

static void no_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr) { }
static bool no_wake(struct twheel_base *base) { return true; }

static bool slow_wake(struct twheel_base *base)
{
	int nr = atomic_inc_return(&in_wake);

	atomic_inc(&nr_wakes);
	if (nr > atomic_read(&most_in_wake))
		atomic_set(&most_in_wake, nr);
	mdelay(WAKE_MS);
	atomic_dec(&in_wake);
	return true;
}

static const struct twheel_sink no_sink = { .expired = no_expired, .wake = no_wake };
static const struct twheel_sink slow_sink = { .expired = no_expired, .wake = slow_wake };

/**
 * struct armed - a base, and its only timer
 * @base:	the base
 * @timer:	its timer
 * @expires:	when
 */
struct armed {
	struct twheel_base	*base;
	struct twheel_timer	timer;
	ktime_t			expires;
};

static int arm(void *arg)
{
	struct armed *armed = arg;
	unsigned long flags;

	twheel_lock(armed->base, &flags);
	twheel_add_locked(armed->base, &armed->timer, armed->expires);
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
	armed->expires = ktime_add_ns(clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get(),
				      delay);
	return !IS_ERR(armed->base);
}

static struct armed mono, boot;

/* The one of BOOTTIME is armed first, so that its hrtimer goes away with the CPU. */
static void test_off(void)
{
	const u64 later = LEAD_NS + WAKE_MS * NSEC_PER_MSEC / 2;
	bool good = armed_begin(&boot, CLOCK_BOOTTIME, &no_sink, later) &&
		    armed_begin(&mono, CLOCK_MONOTONIC, &slow_sink, LEAD_NS);

	check(good, "two bases");
	if (!good)
		return;
	smp_call_on_cpu(OFF_CPU, arm, &boot, false);
	check(!remove_cpu(OFF_CPU) && !add_cpu(OFF_CPU), "CPU %d goes off and on", OFF_CPU);
	smp_call_on_cpu(OFF_CPU, arm, &mono, false);
	check(ktime_before(ktime_get(), mono.expires), "before the first is due");
	msleep(LEAD_NS / NSEC_PER_MSEC + 4 * WAKE_MS);
	check(atomic_read(&nr_wakes) == 1, "who waits is woken once: %d times",
	      atomic_read(&nr_wakes));
	check(atomic_read(&most_in_wake) == 1, "by one CPU at a time: %d",
	      atomic_read(&most_in_wake));
	twheel_destroy(mono.base);
	twheel_destroy(boot.base);
}

static int __init twheel_off_init(void)
{
	pr_info("TAP version 14\n");
	if (num_online_cpus() < 2)
		skip("one CPU", "a CPU goes off and on");
	else
		test_off();
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
