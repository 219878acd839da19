// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * All CPUs do operations at once, on timers of twheel, timer_list and hrtimer. The plugin of
 * bench/cpus counts the instructions of the operations, and how many of them are executed with a
 * lock held. A thread on each CPU has TIMERS timers. ROUNDS times it does an operation on all of
 * them, or on all timers of its neighbour. Interrupts are off meanwhile, so that nothing else is
 * counted.
 *
 *	own		each CPU's base: a CPU cancels what it has armed
 *	elsewhere	a CPU cancels what another has armed, or re-arms it, which moves it
 *	one		all CPUs use one base: a private one of twheel; that of the first CPU by
 *			add_timer_on(). An hrtimer cannot be started on another CPU
 *
 * Each part prints a line in the kernel log: TSV, its name, and how many operations it had. The
 * order of the lines is that in which the plugin counts the parts.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "../calls/marks.h"
#include "twheel.h"
#include "twheel_compat.h"

#define TIMERS		256
#define ROUNDS		20
#define NEAR_NS		(10 * NSEC_PER_SEC)
#define STEP_NS		(100 * NSEC_PER_MSEC)
/* How much later a timer is due after it was re-armed. */
#define LATER_NS	(7 * NSEC_PER_SEC)

enum subject { TWHEEL, TIMER_LIST, HRTIMER, NR_SUBJECTS };

static const char * const subjects[] = { "twheel", "timer_list", "hrtimer" };

enum load { OWN, ELSEWHERE, ONE, NR_LOADS };

static const char * const loads[] = { "own", "elsewhere", "one" };

enum op { ADD, CANCEL, REARM, NR_OPS };

static const char * const ops[] = { "add", "cancel", "re-arm" };

/* A timer of each kind. Each part of the benchmark uses one kind. */
struct timer {
	struct twheel_timer	timer;
	struct timer_list	list;
	struct hrtimer		hrtimer;
};

/**
 * struct member - a CPU of the crowd
 * @cpu:	the CPU
 * @timers:	the timers of the CPU
 * @next:	the neighbour of the CPU
 * @task:	the thread that runs on the CPU
 */
struct member {
	unsigned int		cpu;
	struct timer		*timers;
	struct member		*next;
	struct task_struct	*task;
};

static struct member *members;
static unsigned int nr_members;
static struct twheel_base *base;
static enum subject subject;
static enum load load;
static enum op op;
static bool counted, theirs;
static atomic_t ready, left;
static struct completion all_done;

static void timer_fired(struct twheel_timer *timer) { }
static void list_fired(struct timer_list *list) { }
static enum hrtimer_restart hrtimer_fired(struct hrtimer *hrtimer) { return HRTIMER_NORESTART; }

static void timer_init(struct timer *t)
{
	if (load == ONE)
		twheel_init_on(base, &t->timer, timer_fired);
	else
		twheel_init(&t->timer, timer_fired);
	timer_setup(&t->list, list_fired, 0);
	hrtimer_setup(&t->hrtimer, hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

static __always_inline void add(struct timer *t, u64 delay, unsigned long expires)
{
	switch (subject) {
	case TWHEEL:
		twheel_add(&t->timer, delay);
		break;
	case TIMER_LIST:
		t->list.expires = expires;
		if (load == ONE)
			add_timer_on(&t->list, 0);
		else
			add_timer(&t->list);
		break;
	default:
		hrtimer_start(&t->hrtimer, delay, HRTIMER_MODE_REL_PINNED);
	}
}

static __always_inline void rearm(struct timer *t, u64 delay, unsigned long expires)
{
	switch (subject) {
	case TWHEEL:
		twheel_mod(&t->timer, delay);
		break;
	case TIMER_LIST:
		mod_timer(&t->list, expires);
		break;
	default:
		hrtimer_start(&t->hrtimer, delay, HRTIMER_MODE_REL_PINNED);
	}
}

static __always_inline void cancel(struct timer *t)
{
	switch (subject) {
	case TWHEEL:
		twheel_cancel(&t->timer);
		break;
	case TIMER_LIST:
		timer_delete(&t->list);
		break;
	default:
		hrtimer_try_to_cancel(&t->hrtimer);
	}
}

static __always_inline void operate(struct timer *t, unsigned int i)
{
	u64 delay = NEAR_NS + i * STEP_NS + (op == REARM ? LATER_NS : 0);
	unsigned long expires = jiffies + nsecs_to_jiffies(delay);

	if (counted)
		mark(MARK_ON);
	if (op == ADD)
		add(t, delay, expires);
	else if (op == REARM)
		rearm(t, delay, expires);
	else
		cancel(t);
	if (counted)
		mark(MARK_OFF);
}

/*
 * The thread of a member: wait until all are ready, so that all begin at once, and do the
 * operation.
 */
static int member_run(void *arg)
{
	struct member *m = arg;
	struct timer *timers = theirs ? m->next->timers : m->timers;
	unsigned long flags;
	unsigned int i;

	atomic_inc(&ready);
	while (atomic_read(&ready) < nr_members)
		cpu_relax();
	local_irq_save(flags);
	for (i = 0; i < TIMERS; i++)
		operate(&timers[i], i);
	local_irq_restore(flags);
	if (atomic_dec_and_test(&left))
		complete(&all_done);
	return 0;
}

static int all_do(enum op what, bool of_theirs, bool count)
{
	unsigned int i;

	op = what;
	theirs = of_theirs;
	counted = count;
	atomic_set(&ready, 0);
	atomic_set(&left, nr_members);
	init_completion(&all_done);
	for (i = 0; i < nr_members; i++) {
		members[i].task = kthread_create(member_run, &members[i], "twheel_crowd");
		if (IS_ERR(members[i].task))
			return PTR_ERR(members[i].task);
		kthread_bind(members[i].task, members[i].cpu);
	}
	for (i = 0; i < nr_members; i++)
		wake_up_process(members[i].task);
	wait_for_completion(&all_done);
	return 0;
}

/* A round of @what: arm the timers if need be, do @what, and cancel them if they are armed. */
static int round_of(enum op what)
{
	int err = what == ADD ? 0 : all_do(ADD, false, false);

	err = err ?: all_do(what, load == ELSEWHERE, true);
	return err ?: what == CANCEL ? err : all_do(CANCEL, false, false);
}

static int part(enum op what)
{
	unsigned int i, n;
	int err = 0;

	for (i = 0; i < nr_members; i++)
		for (n = 0; n < TIMERS; n++)
			timer_init(&members[i].timers[n]);
	/* In the first round the caches are cold, and the wheel's memory is new. */
	for (i = 0; i <= ROUNDS && !err; i++)
		err = round_of(what);
	pr_info("TSV\tpart\t%s\t%s\t%s\t%u\n", loads[load], ops[what], subjects[subject],
		(ROUNDS + 1) * TIMERS * nr_members);
	mark(MARK_NEXT);
	return err;
}

static bool is_left_out(enum op what)
{
	return (load == ELSEWHERE && what == ADD) || (load != ELSEWHERE && what == REARM) ||
	       (load == ONE && subject == HRTIMER);
}

static int all_parts(void)
{
	enum op what;
	int err = 0;

	for (load = 0; load < NR_LOADS; load++)
		for (what = 0; what < NR_OPS; what++)
			for (subject = 0; subject < NR_SUBJECTS && !err; subject++)
				err = is_left_out(what) ? 0 : part(what);
	return err;
}

static void members_free(void)
{
	unsigned int i;

	for (i = 0; members && i < nr_members; i++)
		kvfree(members[i].timers);
	kfree(members);
}

static int members_create(void)
{
	unsigned int cpu;

	members = kcalloc(num_online_cpus(), sizeof(*members), GFP_KERNEL);
	if (!members)
		return -ENOMEM;
	for_each_online_cpu(cpu) {
		struct member *m = &members[nr_members++];

		m->cpu = cpu;
		m->next = members;
		m->timers = kvcalloc(TIMERS, sizeof(*m->timers), GFP_KERNEL);
		if (!m->timers)
			return -ENOMEM;
		if (nr_members > 1)
			m[-1].next = m;
	}
	return 0;
}

static int __init twheel_crowd_init(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_NS,
	};
	int err;

	base = twheel_create(&config);
	if (IS_ERR(base))
		return PTR_ERR(base);
	err = members_create();
	err = err ?: all_parts();
	members_free();
	twheel_destroy(base);
	return err;
}

static void __exit twheel_crowd_exit(void)
{
}

module_init(twheel_crowd_init);
module_exit(twheel_crowd_exit);

MODULE_DESCRIPTION("Benchmark of twheel: all CPUs at once");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
