// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * On PREEMPT_RT: several tasks wait for callbacks of one run. Each waits for its own callback only,
 * and the run waits for none of them. twheel_rt.c has one waiter at a time.
 *
 * Timers A and B are due in one tick on CPU 0. B follows A in the same run.
 *
 *	stall	a task of CPU 1 waits for A, and sleeps. Then a SCHED_FIFO task keeps CPU 1 busy
 *		for a second, so the waiter cannot go on after A. B and a timer_list timer of
 *		CPU 0 must not wait for that. Also with sinks: a base is destroyed while its
 *		wake() is running
 *	pile	W1 and W2 wait for A. W2 holds a lock that B takes. When A ends, a SCHED_FIFO task
 *		keeps W2 from its CPU until B runs, and then waits for B. If W2 waited for B, too,
 *		nobody could go on: then this panics
 *	window	W2 finds A running, and is interrupted before it can sleep. Meanwhile A ends, B
 *		begins, and W3 waits for B. B tries to take the lock that W2 holds, for TAKE_NS.
 *		If B fails, W2 may not be asleep; but the host may have stopped W2's CPU
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "fifo.h"
#include "ktap.h"
#include "kwait.h"
#include "twheel.h"
#include "twheel_compat.h"

#define SLEEP_NS	(50 * NSEC_PER_MSEC)	/* a task falls asleep within this */
#define ASLEEP_NS	(300 * NSEC_PER_USEC)	/* asleep for so long, it certainly waits */
#define ASLEEP_LOOKS	50
#define HOG_NS		NSEC_PER_SEC
#define TAKE_NS		(50 * NSEC_PER_MSEC)
#define STALLS		3
#define WINDOWS		200
#define WINDOW_STEPS	50			/* moments of the interrupt */

enum thread { W1, W2, W3, NR_THREADS };

/* What a scene does in the callbacks. */
struct scene {
	void	(*in_a)(void);
	void	(*in_b)(void);
};

/* How a round waits. */
struct way {
	const char	*name;
	void		(*arm)(void);
	void		(*wait)(void *what);
	void		(*end)(void);
};

static const struct scene *scene;
static const struct way *way;
static struct task_struct *threads[NR_THREADS];
static struct completion go[NR_THREADS], done, passed;
static bool calls[NR_THREADS];		/* the thread is about to wait */
static void *what[2];			/* the timers, or bases, of A and B, once they run */
static unsigned int nr_called;
static bool spinning, a_runs, b_runs, interrupted, failed;
static ktime_t a_end, b_begin, foreign;
static DEFINE_SPINLOCK(held_by_w2);

/* Spin until @flag is true, or for @ns. */
static void spin_until(const bool *flag, u64 ns)
{
	look_for(ns, READ_ONCE(*flag), cpu_relax());
}

/*
 * Spin until the thread that was told to wait sleeps: it was seen asleep ASLEEP_LOOKS times, and
 * for ASLEEP_NS. One of these alone may be met because the host has stopped a CPU.
 */
static void await_sleeper(enum thread w)
{
	ktime_t began = ktime_get(), awake = began;
	unsigned int looks = 0;

	while (before(began, SLEEP_NS) && (looks < ASLEEP_LOOKS || before(awake, ASLEEP_NS))) {
		looks++;
		if (READ_ONCE(calls[w]) && !task_is_running(threads[w]))
			continue;
		awake = ktime_get();
		looks = 0;
	}
}

/* If the round is over, @it may be NULL. */
static void begin_wait(enum thread w, void *it)
{
	WRITE_ONCE(calls[w], true);
	if (it)
		way->wait(it);
}

/* The first call is A, the second B. */
static void called(void *it)
{
	unsigned int i = nr_called++;

	if (i > 1)
		return;
	WRITE_ONCE(what[i], it);
	if (i)
		scene->in_b();
	else
		scene->in_a();
}

/* ---- ways to wait ------------------------------------------------------------------------ */

static struct twheel_timer timers[2];

static void fired(struct twheel_timer *timer)
{
	called(timer);
}

static void timers_arm(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		twheel_init(&timers[i], fired);
		twheel_add_on(&timers[i], 5 * NSEC_PER_MSEC, 0);
	}
}

static void timer_wait(void *timer)
{
	twheel_cancel_sync(timer);
}

static void timers_end(void)
{
	twheel_cancel_sync(&timers[0]);
	twheel_cancel_sync(&timers[1]);
}

static struct twheel_base *bases[2];

static void sink_expired(struct twheel_base *unused, struct twheel_timer **which, unsigned int nr)
{
}

static bool sink_wake(struct twheel_base *base)
{
	called(base);
	return true;
}

static const struct twheel_sink sink = { .expired = sink_expired, .wake = sink_wake };

static void base_arm(struct twheel_base *base, struct twheel_timer *timer)
{
	unsigned long flags;
	ktime_t now;

	memset(timer, 0, sizeof(*timer));
	now = twheel_lock(base, &flags);
	twheel_add_locked(base, timer, ktime_add_ns(now, 5 * NSEC_PER_MSEC));
	twheel_unlock(base, flags);
}

static void bases_arm(void)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS, .sink = &sink,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++)
		bases[i] = twheel_create(&config);
	for (i = 0; i < ARRAY_SIZE(bases); i++)
		if (!IS_ERR(bases[i]))
			base_arm(bases[i], &timers[i]);
}

static void base_destroy(void *base)
{
	twheel_destroy(base);
}

/* That of A is destroyed. */
static void bases_end(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++)
		if (!IS_ERR(bases[i]) && bases[i] != what[0])
			twheel_destroy(bases[i]);
}

static const struct way cancels = { "twheel_cancel_sync", timers_arm, timer_wait, timers_end };
static const struct way destroys = { "twheel_destroy", bases_arm, base_destroy, bases_end };

/* ---- rounds ------------------------------------------------------------------------------ */

static void begin_thread(enum thread w, int (*fn)(void *unused), unsigned int cpu)
{
	static const char * const names[] = { "w1", "w2", "w3" };

	threads[w] = create_thread(fn, names[w], cpu);
	WARN_ON_ONCE(!threads[w]);
}

static void end_threads(void)
{
	unsigned int w;

	for (w = 0; w < NR_THREADS; w++) {
		if (!threads[w])
			continue;
		complete_all(&go[w]);
		kthread_stop(threads[w]);
		put_task_struct(threads[w]);
		threads[w] = NULL;
	}
}

static void begin_round(const struct scene *s, const struct way *how)
{
	unsigned int w;

	scene = s;
	way = how;
	for (w = 0; w < NR_THREADS; w++) {
		init_completion(&go[w]);
		calls[w] = false;
	}
	init_completion(&done);
	init_completion(&passed);
	memset(what, 0, sizeof(what));
	nr_called = 0;
	spinning = false;
	a_runs = false;
	b_runs = false;
	interrupted = false;
	failed = false;
	a_end = 0;
	b_begin = 0;
	foreign = 0;
}

static long arm_here(void *unused)
{
	way->arm();
	return 0;
}

static void play(void)
{
	msleep(20);
	work_on_cpu(0, arm_here, NULL);
	if (!wait_for_completion_timeout(&done, 20 * HZ))
		panic("twheel_waiters: a task does not return, and may never do so");
}

static void end_round(void)
{
	end_threads();
	way->end();
}

/* ---- stall ------------------------------------------------------------------------------- */

static struct timer_list foreign_timer;

static void foreign_fired(struct timer_list *unused)
{
	foreign = ktime_get();
}

static int stall_waiter(void *unused)
{
	wait_for_completion(&go[W1]);
	begin_wait(W1, what[0]);
	complete(&done);
	await_stop();
	return 0;
}

static int stall_hog(void *unused)
{
	set_fifo(50);
	wait_for_completion(&go[W2]);
	WRITE_ONCE(spinning, true);
	keep_busy_ns(HOG_NS);
	await_stop();
	return 0;
}

static void stall_in_a(void)
{
	complete(&go[W1]);
	await_sleeper(W1);
	complete(&go[W2]);
	spin_until(&spinning, SLEEP_NS);
	a_end = ktime_get();
	foreign_timer.expires = jiffies + 2;
	add_timer_on(&foreign_timer, 0);
}

static void stall_in_b(void)
{
	b_begin = ktime_get();
}

static const struct scene stall_scene = { stall_in_a, stall_in_b };

/* Returns the longest that B, or the timer_list timer, waited after A. */
static s64 stall_once(const struct way *how, unsigned int other)
{
	ktime_t last;

	begin_round(&stall_scene, how);
	timer_setup(&foreign_timer, foreign_fired, TIMER_PINNED);
	begin_thread(W1, stall_waiter, other);
	begin_thread(W2, stall_hog, other);
	play();
	msleep(50);
	last = b_begin && foreign ? max(b_begin, foreign) : KTIME_MAX;
	end_round();
	timer_delete_sync(&foreign_timer);
	return ktime_sub(last, a_end);
}

/* If the host stops CPU 0, that is not the module's fault: so one round may be bad. */
static void test_stall(const struct way *how, unsigned int other)
{
	unsigned int i, bad = 0;

	for (i = 0; i < STALLS; i++) {
		s64 waited = stall_once(how, other);

		pr_info("# stall: %s: others wait for %lld us\n", how->name,
			div_s64(waited, NSEC_PER_USEC));
		bad += waited >= HOG_NS / 2;
	}
	check(bad <= 1, "stall: %s: a waiter that does not get its CPU stops no timer of another",
	      how->name);
}

/* ---- pile -------------------------------------------------------------------------------- */

static int pile_w1(void *unused)
{
	set_fifo(10);
	wait_for_completion(&go[W1]);
	begin_wait(W1, what[0]);
	await_stop();
	return 0;
}

static int pile_w2(void *unused)
{
	wait_for_completion(&go[W2]);
	spin_lock(&held_by_w2);
	begin_wait(W2, what[0]);
	spin_unlock(&held_by_w2);
	complete(&done);
	await_stop();
	return 0;
}

static int pile_w3(void *unused)
{
	set_fifo(20);
	wait_for_completion(&go[W3]);
	WRITE_ONCE(spinning, true);
	spin_until(&b_runs, 10 * SLEEP_NS);
	begin_wait(W3, what[1] ?: what[0]);
	await_stop();
	return 0;
}

static void pile_in_a(void)
{
	complete(&go[W1]);
	await_sleeper(W1);
	complete(&go[W2]);
	await_sleeper(W2);
	complete(&go[W3]);
	spin_until(&spinning, SLEEP_NS);
}

static void pile_in_b(void)
{
	WRITE_ONCE(b_runs, true);
	await_sleeper(W3);
	spin_lock(&held_by_w2);
	spin_unlock(&held_by_w2);
}

static const struct scene pile_scene = { pile_in_a, pile_in_b };

static void test_pile(unsigned int other)
{
	begin_round(&pile_scene, &cancels);
	begin_thread(W1, pile_w1, 0);
	begin_thread(W2, pile_w2, other);
	begin_thread(W3, pile_w3, other);
	play();
	end_round();
	check(true, "pile: beside other waiters, a task waits for its own callback only");
}

/* ---- window ------------------------------------------------------------------------------ */

/*
 * Take the lock that W2 holds, if it can be had within TAKE_NS. If not, look whether W2 sleeps, and
 * try again: the host may have stopped this CPU until W2 was done.
 */
static void take_lock(void)
{
	ktime_t began = ktime_get();
	bool taken, asleep = false;

	while (!(taken = spin_trylock(&held_by_w2)) && before(began, TAKE_NS))
		cpu_relax();
	if (!taken) {
		asleep = !task_is_running(threads[W2]);
		taken = spin_trylock(&held_by_w2);
	}
	if (taken)
		spin_unlock(&held_by_w2);
	failed = !taken && asleep;
}

static struct hrtimer irq;
static unsigned int irq_after;

/* Until W3 waits, and a little longer. */
static enum hrtimer_restart irq_fired(struct hrtimer *unused)
{
	WRITE_ONCE(interrupted, true);
	spin_until(&calls[W3], 5 * NSEC_PER_MSEC);
	keep_busy_ns(NSEC_PER_MSEC);
	return HRTIMER_NORESTART;
}

static int window_w2(void *unused)
{
	set_fifo(5);
	wait_for_completion(&go[W2]);
	spin_lock(&held_by_w2);
	WRITE_ONCE(spinning, true);
	spin_until(&a_runs, 2 * SLEEP_NS);
	if (READ_ONCE(what[0])) {
		hrtimer_start(&irq, ns_to_ktime(irq_after), HRTIMER_MODE_REL_PINNED_HARD);
		begin_wait(W2, what[0]);
	}
	spin_unlock(&held_by_w2);
	hrtimer_cancel(&irq);
	complete(&done);
	await_stop();
	return 0;
}

static int window_w3(void *unused)
{
	set_fifo(20);
	wait_for_completion(&go[W3]);
	begin_wait(W3, what[1] ?: what[0]);
	complete(&passed);
	await_stop();
	return 0;
}

static void window_in_a(void)
{
	spin_until(&spinning, 2 * SLEEP_NS);
	WRITE_ONCE(a_runs, true);
	spin_until(&interrupted, 20 * NSEC_PER_MSEC);
}

static void window_in_b(void)
{
	complete(&go[W3]);
	take_lock();
}

static const struct scene window_scene = { window_in_a, window_in_b };

static void test_window(unsigned int other)
{
	unsigned int i, bad = 0;

	hrtimer_setup(&irq, irq_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	for (i = 0; i < WINDOWS; i++) {
		begin_round(&window_scene, &cancels);
		irq_after = i % WINDOW_STEPS * 300;
		begin_thread(W2, window_w2, other);
		begin_thread(W3, window_w3, 0);
		usleep_range(3000, 4000);
		complete(&go[W2]);
		play();
		if (!what[1] || !wait_for_completion_timeout(&passed, HZ))
			complete(&go[W3]);
		bad += failed;
		end_round();
	}
	pr_info("# window: in %u of %u rounds W2 slept and B did not get the lock\n", bad, i);
	check(!bad, "window: a task that is late to wait waits for no other callback");
}

static int __init waiters_init(void)
{
	const unsigned int other = cpumask_any_but(cpu_online_mask, 0);

	pr_info("TAP version 14\n");
	if (other >= nr_cpu_ids) {
		skip("one CPU", "stall, pile, window");
		return ktap_end();
	}
	set_cpus_allowed_ptr(current, cpumask_of(0));
	test_stall(&cancels, other);
	test_stall(&destroys, other);
	test_pile(other);
	test_window(other);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return ktap_end();
}

static void __exit waiters_exit(void)
{
}

module_init(waiters_init);
module_exit(waiters_exit);

MODULE_DESCRIPTION("Test of several tasks that wait for callbacks of one run");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
