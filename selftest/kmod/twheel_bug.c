// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Deliberate bugs, which a debugging kernel must report. Each load makes one: bug=NAME, from the
 * table below. If a detector does not report its bug here, it would report none, and a silent run
 * of the tests would prove nothing. Only `make debug` loads this module.
 *
 * Each bug is a wrong use of twheel.h. After it the machine must not be used any more.
 */
#define pr_fmt(fmt) fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "twheel.h"

static char *bug = "";
module_param(bug, charp, 0444);

#define RACE_MS	3000

static struct twheel_timer timer;
static DEFINE_SPINLOCK(lock);
static int fired;
static unsigned long counter;
static void *lost;

static void wait_fired(void)
{
	while (!READ_ONCE(fired))
		usleep_range(1000, 2000);
}

static void just_fired(struct twheel_timer *t)
{
	WRITE_ONCE(fired, 1);
}

/* KASAN: twheel.ko reads a timer that was freed. */
static int use_after_free(void)
{
	struct twheel_timer *t = kmalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	twheel_init(t, just_fired);
	kfree(t);
	twheel_cancel(t);
	return 0;
}

static void locking_fired(struct twheel_timer *t)
{
	spin_lock(&lock);
	spin_unlock(&lock);
	WRITE_ONCE(fired, 1);
}

/*
 * lockdep: the callback takes the lock under which somebody waits for it. Here the two never meet.
 */
static int deadlock(void)
{
	twheel_init(&timer, locking_fired);
	twheel_add(&timer, 0);
	wait_fired();
	spin_lock_bh(&lock);
	twheel_cancel_sync(&timer);
	spin_unlock_bh(&lock);
	return 0;
}

static void sleeping_fired(struct twheel_timer *t)
{
	might_sleep();
	WRITE_ONCE(fired, 1);
}

/* DEBUG_ATOMIC_SLEEP: the callback sleeps. */
static int atomic_sleep(void)
{
	twheel_init(&timer, sleeping_fired);
	twheel_add(&timer, 0);
	wait_fired();
	return 0;
}

/* PROVE_RAW_LOCK_NESTING: a lock that sleeps on PREEMPT_RT is taken under the lock of a base. */
static int nesting(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_NS,
	};
	struct twheel_base *base = twheel_create(&config);
	unsigned long flags;

	if (IS_ERR(base))
		return PTR_ERR(base);
	twheel_lock(base, &flags);
	spin_lock(&lock);
	spin_unlock(&lock);
	twheel_unlock(base, flags);
	twheel_destroy(base);
	return 0;
}

/* DEBUG_OBJECTS: memory with an armed timer in it is freed. */
static int free_armed(void)
{
	struct twheel_timer *t = kmalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	twheel_init(t, just_fired);
	twheel_add(t, NSEC_PER_SEC);
	kfree(t);
	return 0;
}

/* DEBUG_OBJECTS: a timer that is initialised while it is armed. */
static int init_armed(void)
{
	twheel_init(&timer, just_fired);
	twheel_add(&timer, NSEC_PER_SEC);
	twheel_init(&timer, just_fired);
	return 0;
}

/* DEBUG_OBJECTS: a timer is armed that was never initialised, although it looks idle. */
static int arm_raw(void)
{
	timer.function = just_fired;
	twheel_add(&timer, NSEC_PER_SEC);
	return 0;
}

/* kmemleak: nothing points to the memory any more. */
static int leak(void)
{
	lost = kmalloc(100, GFP_KERNEL);
	WRITE_ONCE(lost, NULL);
	return 0;
}

static void counting_fired(struct twheel_timer *t)
{
	counter++;
	twheel_add(t, NSEC_PER_USEC);
}

static int counting_thread(void *arg)
{
	while (!kthread_should_stop()) {
		counter++;
		cond_resched();
	}
	return 0;
}

/* KCSAN: a callback and a thread write to the same memory without a lock. */
static int race(void)
{
	struct task_struct *task = kthread_run(counting_thread, NULL, "twheel_bug");

	if (IS_ERR(task))
		return PTR_ERR(task);
	twheel_init(&timer, counting_fired);
	twheel_add(&timer, 0);
	msleep(RACE_MS);
	twheel_shutdown_sync(&timer);
	kthread_stop(task);
	return 0;
}

/* twheel_destroy() itself: it names the function of a timer that was left armed. */
static int destroy_armed(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_NS,
	};
	struct twheel_base *base = twheel_create(&config);

	if (IS_ERR(base))
		return PTR_ERR(base);
	twheel_init_on(base, &timer, just_fired);
	twheel_add(&timer, NSEC_PER_SEC);
	twheel_destroy(base);
	return 0;
}

static const struct {
	const char *name;
	int (*function)(void);
} bugs[] = {
	{ "use_after_free", use_after_free },
	{ "deadlock", deadlock },
	{ "atomic_sleep", atomic_sleep },
	{ "nesting", nesting },
	{ "free_armed", free_armed },
	{ "init_armed", init_armed },
	{ "arm_raw", arm_raw },
	{ "leak", leak },
	{ "race", race },
	{ "destroy_armed", destroy_armed },
};

static int __init bug_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (!strcmp(bug, bugs[i].name))
			return bugs[i].function();
	return -EINVAL;
}

static void __exit bug_exit(void)
{
}

module_init(bug_init);
module_exit(bug_exit);

MODULE_DESCRIPTION("Deliberate bugs in the use of twheel");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
