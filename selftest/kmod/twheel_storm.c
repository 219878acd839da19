// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Timers of a base while everything else is busy: on every CPU an hrtimer interrupts every
 * storm_us, and on the same base a callback runs for busy_ms, again and again. All timers must
 * fire, each once, and none early. How late they are is printed, but not bounded: a callback is not
 * interrupted for the next one.
 */
#define pr_fmt(fmt) fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>

#include "ktap.h"
#include "twheel.h"
#include "twheel_compat.h"

static unsigned int storm_us = 20;
module_param(storm_us, uint, 0444);
static unsigned int busy_ms = 50;
module_param(busy_ms, uint, 0444);
static unsigned int nr_timers = 20000;
module_param(nr_timers, uint, 0444);
static unsigned int seconds = 5;
module_param(seconds, uint, 0444);

struct guest {
	struct twheel_timer	timer;
	ktime_t			deadline;
	unsigned int		fired;
};

struct cloud {
	struct hrtimer		hrtimer;
	u64			interrupts;
};

static struct guest *guests;
static struct cloud __percpu *clouds;
static struct twheel_base *base;
static struct twheel_timer busy;
static unsigned int early, nr_busy;
static s64 latest;
static bool stopping;

/* The callbacks of one base run one after the other. */
static void guest_fired(struct twheel_timer *timer)
{
	struct guest *guest = container_of(timer, struct guest, timer);
	s64 late = ktime_sub(ktime_get(), guest->deadline);

	guest->fired++;
	early += late < 0;
	latest = max(latest, late);
}

static void busy_fired(struct twheel_timer *timer)
{
	nr_busy++;
	mdelay(busy_ms);
	if (!READ_ONCE(stopping))
		twheel_add(timer, 2 * busy_ms * NSEC_PER_MSEC);
}

static enum hrtimer_restart strike(struct hrtimer *hrtimer)
{
	container_of(hrtimer, struct cloud, hrtimer)->interrupts++;
	hrtimer_forward_now(hrtimer, ns_to_ktime(storm_us * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

static void begin_storm(void *unused)
{
	struct cloud *cloud = this_cpu_ptr(clouds);

	hrtimer_setup(&cloud->hrtimer, strike, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&cloud->hrtimer, ns_to_ktime(storm_us * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static u64 end_storm(void)
{
	u64 interrupts = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		struct cloud *cloud = per_cpu_ptr(clouds, cpu);

		hrtimer_cancel(&cloud->hrtimer);
		interrupts += cloud->interrupts;
	}
	return interrupts;
}

static void arm_guests(void)
{
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < nr_timers; i++) {
		u64 delay = prandom_u32_state(&rnd) % (seconds * USEC_PER_SEC) * NSEC_PER_USEC;

		twheel_init_on(base, &guests[i].timer, guest_fired);
		guests[i].deadline = ktime_add_ns(ktime_get(), delay);
		twheel_add_abs(&guests[i].timer, guests[i].deadline);
	}
}

/*
 * Wait until all timers have fired, or ten times as long as the last is due. Returns how many have
 * not fired exactly once.
 */
static unsigned int await_guests(void)
{
	unsigned long end = jiffies + 10 * seconds * HZ;
	unsigned int i, wrong;

	do {
		msleep(100);
		for (i = 0, wrong = 0; i < nr_timers; i++)
			wrong += READ_ONCE(guests[i].fired) != 1;
	} while (wrong && time_before(jiffies, end));
	return wrong;
}

static void storm(void)
{
	unsigned int wrong;
	u64 interrupts;

	twheel_init_on(base, &busy, busy_fired);
	twheel_add(&busy, 0);
	arm_guests();
	cpus_read_lock();
	on_each_cpu(begin_storm, NULL, 1);
	wrong = await_guests();
	interrupts = end_storm();
	cpus_read_unlock();
	WRITE_ONCE(stopping, true);
	twheel_shutdown_sync(&busy);
	pr_info("# %u timers, %llu interrupts, %u callbacks of %u ms; the latest came %lld us late\n",
		nr_timers, interrupts, nr_busy, busy_ms, div_s64(latest, NSEC_PER_USEC));
	check(!wrong, "every timer came once: %u did not", wrong);
	check(!early, "none is early: %u are", early);
	check(interrupts && nr_busy, "the interrupts came all the while");
}

static int __init storm_init(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_NS,
	};
	int ret = -ENOMEM;

	guests = vzalloc(array_size(nr_timers, sizeof(*guests)));
	clouds = alloc_percpu(struct cloud);
	base = twheel_create(&config);
	if (guests && clouds && !IS_ERR(base)) {
		pr_info("TAP version 14\n");
		storm();
		ret = ktap_end();
	}
	if (!IS_ERR(base))
		twheel_destroy(base);
	free_percpu(clouds);
	vfree(guests);
	return ret;
}

static void __exit storm_exit(void)
{
}

module_init(storm_init);
module_exit(storm_exit);

MODULE_DESCRIPTION("Test of twheel under a storm of interrupts");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
