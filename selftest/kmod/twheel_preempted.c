// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * On PREEMPT_RT a SCHED_FIFO task, the hog, preempts a run or a pass on CPU 0. Nobody else may wait
 * for the hog: it runs until they have not waited, or for HOG_NS.
 *
 *	ended	A has run on CPU 0, and the hog preempts the run that is about to end, at a random
 *		moment. Meanwhile a task of CPU 1 arms B, a timer of the same base. A timer_list
 *		timer of CPU 1 must not wait
 *	taken	the hog preempts a pass, which is waking the reader of a base. The pass cannot serve
 *		other bases, which are due a little later: so CPU 1 takes them over. At about this
 *		moment a task of CPU 2 destroys them, and must not wait
 *
 * In either, the moment that matters is short. So there are many rounds.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "fifo.h"
#include "ktap.h"
#include "kwait.h"
#include "twheel.h"
#include "twheel_compat.h"

#define HOG_NS		NSEC_PER_SEC
#define TICK_NS		NSEC_PER_MSEC
#define ENDED		250
#define TAKEN		500
#define BASES		8		/* that another CPU takes over */

static struct task_struct *hog, *victim;
static struct completion hog_go, victim_done;
static bool hogging, hog_over, enough;
static u64 hogged_ns;

/* ---- the hog, and a task that must not wait for it ----------------------------------------- */

static int hog_thread(void *unused)
{
	ktime_t began;

	set_fifo(50);
	wait_for_completion(&hog_go);
	began = ktime_get();
	WRITE_ONCE(hogging, true);
	look_for(HOG_NS, READ_ONCE(enough), cpu_relax());
	hogged_ns = ktime_get() - began;
	tell(&hog_over);
	await_stop();
	return 0;
}

static void end_thread(struct task_struct *thread)
{
	if (!thread)
		return;
	kthread_stop(thread);
	put_task_struct(thread);
}

/* Have @fn run on @cpu while @arm arms timers on CPU 0; until @fn and the hog are over. */
static void play(int (*fn)(void *unused), unsigned int cpu, long (*arm)(void *unused))
{
	init_completion(&hog_go);
	init_completion(&victim_done);
	hogging = false;
	hog_over = false;
	enough = false;
	hogged_ns = 0;
	hog = create_thread(hog_thread, "hog", 0);
	victim = create_thread(fn, "victim", cpu);
	usleep_range(3000, 4000);
	work_on_cpu(0, arm, NULL);
	if (!wait_for_completion_timeout(&victim_done, 20 * HZ) || !wait_for(told(&hog_over)))
		check(false, "a round ends");
	complete_all(&hog_go);
	end_thread(hog);
	end_thread(victim);
}

/* ---- ended ----------------------------------------------------------------------------------- */

static struct twheel_timer a, b;
static struct timer_list foreign;
static struct hrtimer irq;
static u64 irq_after;

static enum hrtimer_restart irq_fired(struct hrtimer *unused)
{
	complete(&hog_go);
	return HRTIMER_NORESTART;
}

static void a_fired(struct twheel_timer *unused)
{
	hrtimer_start(&irq, ns_to_ktime(irq_after), HRTIMER_MODE_REL_PINNED_HARD);
}

static void b_fired(struct twheel_timer *unused)
{
}

static void foreign_fired(struct timer_list *unused)
{
	WRITE_ONCE(enough, true);
}

static long a_arm(void *unused)
{
	twheel_add(&a, 4 * TICK_NS);
	return 0;
}

/* B's run would begin, and then comes the timer of timer_list. */
static int ended_victim(void *unused)
{
	while (!READ_ONCE(hogging) && !kthread_should_stop())
		cpu_relax();
	twheel_add(&b, TICK_NS);
	usleep_range(3000, 3100);
	foreign.expires = jiffies + 1;
	add_timer_on(&foreign, smp_processor_id());
	complete(&victim_done);
	await_stop();
	return 0;
}

/* Returns whether the foreign timer waited for the hog. */
static bool ended_once(unsigned int cpu)
{
	irq_after = get_random_u32() % 150 * NSEC_PER_USEC;
	play(ended_victim, cpu, a_arm);
	twheel_cancel_sync(&a);
	twheel_cancel_sync(&b);
	hrtimer_cancel(&irq);
	timer_delete_sync(&foreign);
	return hogged_ns >= HOG_NS;
}

/*
 * Some rounds may be bad. The hog may preempt the kernel's own timer softirq, for which another CPU
 * may wait: from 6.9 on, CPUs expire timers of each other. If B is not armed, one round of a
 * thousand is bad for that reason; if twheel waited, one of ten would be.
 */
static void test_ended(unsigned int cpu)
{
	const struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = TICK_NS };
	struct twheel_base *base = twheel_create(&config);
	unsigned int i, bad = 0;

	if (IS_ERR(base)) {
		check(false, "memory for the test");
		return;
	}
	hrtimer_setup(&irq, irq_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer_setup(&foreign, foreign_fired, TIMER_PINNED);
	twheel_init_on(base, &a, a_fired);
	twheel_init_on(base, &b, b_fired);
	for (i = 0; i < ENDED; i++)
		bad += ended_once(cpu);
	twheel_destroy(base);
	pr_info("# ended: in %u of %u rounds a timer of another CPU waited\n", bad, i);
	check(bad <= ENDED / 50,
	      "ended: a run that was preempted at its end stops no timer of another CPU");
}

/* ---- taken ----------------------------------------------------------------------------------- */

static struct twheel_base *woken, *taken[BASES];
static struct twheel_timer woken_timer, taken_timers[BASES];
static ktime_t taken_key, destroyed_in;
static bool armed;

static void nothing_expired(struct twheel_base *unused, struct twheel_timer **which,
			    unsigned int nr)
{
}

/*
 * The first pass that wakes the reader is preempted. If the host stopped CPU 0 for so long that
 * this is another CPU's pass, the hog might preempt a pass that has the other bases in hand, for
 * which their destruction must wait: so the round is void.
 */
static bool sink_wake(struct twheel_base *base)
{
	if (base == woken && !READ_ONCE(hogging)) {
		if (raw_smp_processor_id())
			WRITE_ONCE(enough, true);
		complete(&hog_go);
		look_for(50 * NSEC_PER_MSEC, READ_ONCE(hogging), cpu_relax());
	}
	return true;
}

static const struct twheel_sink sink = { .expired = nothing_expired, .wake = sink_wake };

static long bases_arm(void *unused)
{
	ktime_t first = ktime_get() + 5 * TICK_NS;
	unsigned int i;

	taken_key = roundup(first + 6 * TICK_NS, TICK_NS);
	timer_arm(woken, &woken_timer, first);
	for (i = 0; i < BASES; i++)
		timer_arm(taken[i], &taken_timers[i], taken_key);
	tell(&armed);
	return 0;
}

/* CPU 1 takes the bases over a ms after their key, in WATCH_NS. Destroy them just then. */
static int taken_victim(void *unused)
{
	s64 offset = (s64)(get_random_u32() % 250) * NSEC_PER_USEC - 30 * NSEC_PER_USEC;
	unsigned int i, first = get_random_u32() % BASES;
	ktime_t began;

	set_fifo(20);
	while (!(READ_ONCE(hogging) && told(&armed)) && !kthread_should_stop())
		usleep_range(100, 200);
	while (ktime_get() < taken_key + (s64)NSEC_PER_MSEC + offset)
		cpu_relax();
	began = ktime_get();
	for (i = 0; i < BASES; i++)
		twheel_destroy(taken[(first + i) % BASES]);
	destroyed_in = ktime_sub(ktime_get(), began);
	WRITE_ONCE(enough, true);
	complete(&victim_done);
	await_stop();
	return 0;
}

/*
 * Returns whether the destruction waited for the hog. If it began after the hog's end, it did not.
 */
static bool taken_once(unsigned int cpu)
{
	armed = false;
	play(taken_victim, cpu, bases_arm);
	twheel_destroy(woken);
	return hogged_ns >= HOG_NS && destroyed_in >= HOG_NS / 2;
}

static bool bases_create(void)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TICK_NS, .sink = &sink,
	};
	unsigned int i;
	bool made;

	woken = twheel_create(&config);
	made = !IS_ERR(woken);
	for (i = 0; i < BASES; i++) {
		taken[i] = twheel_create(&config);
		made = made && !IS_ERR(taken[i]);
	}
	return made;
}

/* One round may be bad: the host may have stopped a CPU. */
static void test_taken(unsigned int cpu)
{
	unsigned int i, bad = 0;

	for (i = 0; i < TAKEN; i++) {
		if (!bases_create()) {
			check(false, "memory for the test");
			return;
		}
		bad += taken_once(cpu);
	}
	pr_info("# taken: in %u of %u rounds twheel_destroy() waited\n", bad, i);
	check(bad <= 1, "taken: while a CPU takes over a base, its destruction waits for no pass");
}

static int __init preempted_init(void)
{
	pr_info("TAP version 14\n");
	if (num_online_cpus() < 3 || !cpu_online(0) || !cpu_online(1) || !cpu_online(2)) {
		skip("fewer than three CPUs", "ended, taken");
		return ktap_end();
	}
	set_cpus_allowed_ptr(current, cpumask_of(1));
	test_ended(1);
	test_taken(2);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return ktap_end();
}

static void __exit preempted_exit(void)
{
}

module_init(preempted_init);
module_exit(preempted_exit);

MODULE_DESCRIPTION("Test of runs and passes that are preempted at a bad moment");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
