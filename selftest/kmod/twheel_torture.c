// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Torture of twheel.h: threads and softirqs use the same timers, and every timer is accounted for.
 *
 * nr_threads threads make random calls on nr_timers timers for some seconds, and so do the
 * callbacks. Each timer counts how often it was armed (by a call that returned that it was idle),
 * how often it was cancelled (by a call that returned that it was armed) and how often it fired. In
 * the end all are cancelled. Then for each timer, armed = cancelled + fired.
 *
 * Of every OWNED timers the first is used by one thread alone. That thread also shuts it down and
 * initialises it again. It knows when the timer is due: the timer must never be early.
 *
 * Loading the module runs the test. It prints KTAP, and if something was wrong the module cannot be
 * loaded.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "twheel.h"

static unsigned int nr_threads = 4;
module_param(nr_threads, uint, 0444);
static unsigned int nr_timers = 100000;
module_param(nr_timers, uint, 0444);
static unsigned int seconds = 60;
module_param(seconds, uint, 0444);
static unsigned int seed = 1;
module_param(seed, uint, 0444);

#define OWNED		16
#define DELAY_US	20000

struct victim {
	struct twheel_timer	timer;
	atomic_t		armed;
	atomic_t		cancelled;
	atomic_t		fired;
	ktime_t			deadline;	/* of an owned timer */
};

static struct victim *victims;
static atomic_t early = ATOMIC_INIT(0);
static atomic64_t calls = ATOMIC64_INIT(0);
static bool stopping;		/* callbacks no longer arm or cancel */
static atomic_t threads_left;
static DECLARE_COMPLETION(threads_done);

static bool is_owned(const struct victim *victim)
{
	return (victim - victims) % OWNED == 0;
}

static void arm(struct victim *victim, u32 delay_us)
{
	if (!twheel_mod(&victim->timer, delay_us * NSEC_PER_USEC))
		atomic_inc(&victim->armed);
}

static void count_cancel(struct victim *victim, int ret)
{
	if (ret == 1)
		atomic_inc(&victim->cancelled);
}

static struct victim *random_shared(struct rnd_state *rnd)
{
	u32 i = prandom_u32_state(rnd) % nr_timers;

	if (i % OWNED == 0)
		i++;
	return &victims[i < nr_timers ? i : 1];
}

static void shared_fired(struct twheel_timer *timer)
{
	struct victim *victim = container_of(timer, struct victim, timer);
	struct rnd_state rnd;

	atomic_inc(&victim->fired);
	if (READ_ONCE(stopping))
		return;
	prandom_seed_state(&rnd, ktime_get_ns());
	switch (prandom_u32_state(&rnd) % 8) {
	case 0:
		arm(victim, prandom_u32_state(&rnd) % DELAY_US);
		break;
	case 1:
		victim = random_shared(&rnd);
		count_cancel(victim, twheel_cancel(&victim->timer));
		break;
	case 2:
		arm(random_shared(&rnd), prandom_u32_state(&rnd) % DELAY_US);
		break;
	}
}

static void owned_fired(struct twheel_timer *timer)
{
	struct victim *victim = container_of(timer, struct victim, timer);

	atomic_inc(&victim->fired);
	if (ktime_get() < READ_ONCE(victim->deadline))
		atomic_inc(&early);
}

static void torture_shared(struct rnd_state *rnd)
{
	struct victim *victim = random_shared(rnd);
	struct twheel_timer *timer = &victim->timer;

	switch (prandom_u32_state(rnd) % 16) {
	case 0 ... 7:
		arm(victim, prandom_u32_state(rnd) % DELAY_US);
		break;
	case 8:
		twheel_mod_pending(timer, prandom_u32_state(rnd) % DELAY_US * NSEC_PER_USEC);
		break;
	case 9:
		if (!twheel_reduce(timer, prandom_u32_state(rnd) % DELAY_US * NSEC_PER_USEC))
			atomic_inc(&victim->armed);
		break;
	case 10 ... 12:
		count_cancel(victim, twheel_cancel(timer));
		break;
	case 13:
		count_cancel(victim, twheel_try_cancel(timer));
		break;
	case 14:
		count_cancel(victim, twheel_cancel_sync(timer));
		break;
	case 15:
		twheel_remaining(timer);
		break;
	}
}

static void torture_owned(struct victim *victim, struct rnd_state *rnd)
{
	u64 delay = prandom_u32_state(rnd) % DELAY_US * NSEC_PER_USEC;
	int ret;

	if (prandom_u32_state(rnd) % 4) {
		count_cancel(victim, twheel_cancel_sync(&victim->timer));
	} else {
		ret = twheel_shutdown_sync(&victim->timer);
		count_cancel(victim, ret);
		if (twheel_mod(&victim->timer, 0) || twheel_pending(&victim->timer))
			atomic_inc(&early);
		twheel_init(&victim->timer, owned_fired);
	}
	/* The timer is idle and its callback does not run, so this thread may set the deadline. */
	WRITE_ONCE(victim->deadline, ktime_add_ns(ktime_get(), delay));
	arm(victim, delay / NSEC_PER_USEC);
}

static int torture_thread(void *arg)
{
	unsigned long end = jiffies + seconds * HZ, me = (unsigned long)arg;
	u32 owned = DIV_ROUND_UP(nr_timers, OWNED), mine, i;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed * 1000ULL + me);
	while (time_before(jiffies, end)) {
		for (i = 0; i < 64; i++) {
			torture_shared(&rnd);
			if (i % 16)
				continue;
			mine = prandom_u32_state(&rnd) % (owned / nr_threads);
			torture_owned(&victims[(mine * nr_threads + me) * OWNED], &rnd);
		}
		atomic64_add(64, &calls);
		cond_resched();
	}
	if (atomic_dec_and_test(&threads_left))
		complete(&threads_done);
	return 0;
}

static void report(void)
{
	u64 armed = 0, cancelled = 0, fired = 0;
	unsigned int i, lost = 0;

	for (i = 0; i < nr_timers; i++) {
		struct victim *victim = &victims[i];
		int a = atomic_read(&victim->armed), c = atomic_read(&victim->cancelled),
		    f = atomic_read(&victim->fired);

		lost += a != c + f;
		armed += a;
		cancelled += c;
		fired += f;
	}
	pr_info("# torture: %lld calls, armed %llu, cancelled %llu, fired %llu, seed %u\n",
		atomic64_read(&calls), armed, cancelled, fired, seed);
	pr_info("%sok 1 every timer is accounted for: %u are not\n", lost ? "not " : "", lost);
	pr_info("%sok 2 none is early: %d are\n", atomic_read(&early) ? "not " : "",
		atomic_read(&early));
	pr_info("%sok 3 timers fired and were cancelled\n", fired && cancelled ? "" : "not ");
	if (lost || atomic_read(&early) || !fired || !cancelled)
		atomic_set(&early, 1);
}

/*
 * Cancel what threads and callbacks armed last. A callback that did not see @stopping has returned
 * after one round, and the next round finds what it armed.
 */
static void cancel_all(void)
{
	unsigned int round, i;
	int found = 1;

	WRITE_ONCE(stopping, true);
	for (round = 0; round < 2 || found; round++) {
		found = 0;
		for (i = 0; i < nr_timers; i++) {
			int ret = twheel_cancel_sync(&victims[i].timer);

			count_cancel(&victims[i], ret);
			found += ret;
		}
		cond_resched();
	}
}

static int __init torture_init(void)
{
	unsigned long i;

	if (!nr_threads || nr_timers / OWNED < nr_threads)
		return -EINVAL;
	victims = vzalloc(array_size(nr_timers, sizeof(*victims)));
	if (!victims)
		return -ENOMEM;
	pr_info("TAP version 14\n1..3\n");
	for (i = 0; i < nr_timers; i++)
		twheel_init(&victims[i].timer,
			    is_owned(&victims[i]) ? owned_fired : shared_fired);
	atomic_set(&threads_left, nr_threads);
	for (i = 0; i < nr_threads; i++)
		WARN_ON(IS_ERR(kthread_run(torture_thread, (void *)i, "torture/%lu", i)));
	/* In slices: a task that sleeps for a minute is reported as hung. */
	while (!wait_for_completion_timeout(&threads_done, 10 * HZ))
		;
	cancel_all();
	report();
	vfree(victims);
	return atomic_read(&early) ? -ENOTRECOVERABLE : 0;
}

static void __exit torture_exit(void)
{
}

module_init(torture_init);
module_exit(torture_exit);

MODULE_DESCRIPTION("Torture of twheel's kernel API");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
