/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Where a test makes a call: in task context, under a raw spinlock with interrupts off, in softirq
 * and in hardirq context, each on the CPU of the test ("here") and on another ("there").
 */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "kwait.h"
#include "twheel_compat.h"

enum context { IN_TASK, IN_ATOMIC, IN_SOFTIRQ, IN_HARDIRQ, NR_CONTEXTS };

static const char * const context_names[NR_CONTEXTS] __maybe_unused = {
	"task", "raw spinlock", "softirq", "hardirq",
};

/**
 * struct errand - what is done in some context; one at a time
 * @fn:		the function that is called
 * @arg:	its argument
 * @cpu:	the CPU on which it is called
 * @soft:	calls it in softirq context
 * @hard:	its callback calls it in hardirq context
 * @done:	@fn has returned
 * @wrong:	how often the context or the CPU was not the intended one
 */
static struct errand {
	void			(*fn)(void *arg);
	void			*arg;
	unsigned int		cpu;
	struct tasklet_struct	soft;
	struct hrtimer		hard;
	bool			done;
	unsigned int		wrong;
} errand;

static DEFINE_RAW_SPINLOCK(errand_lock);

static void errand_do(bool right)
{
	if (!right || raw_smp_processor_id() != errand.cpu)
		errand.wrong++;
	errand.fn(errand.arg);
	tell(&errand.done);
}

static void errand_soft(struct tasklet_struct *soft)
{
	errand_do(in_serving_softirq() && !in_hardirq());
}

static enum hrtimer_restart errand_hard(struct hrtimer *hrtimer)
{
	errand_do(in_hardirq());
	return HRTIMER_NORESTART;
}

static void errand_in_softirq(void)
{
	local_bh_disable();
	tasklet_schedule(&errand.soft);
	local_bh_enable();
	if (!spin_for(told(&errand.done)))
		errand.wrong++;
	tasklet_unlock_wait(&errand.soft);
}

static void errand_in_hardirq(void)
{
	hrtimer_start(&errand.hard, 0, HRTIMER_MODE_REL_PINNED_HARD);
	if (!spin_for(told(&errand.done)))
		errand.wrong++;
}

/* Call @fn(@arg) in @context on this CPU. Returns when that has returned. */
static inline void in_context(enum context context, void (*fn)(void *arg), void *arg)
{
	unsigned long flags;

	errand.fn = fn;
	errand.arg = arg;
	errand.cpu = raw_smp_processor_id();
	errand.done = false;
	switch (context) {
	case IN_ATOMIC:
		raw_spin_lock_irqsave(&errand_lock, flags);
		fn(arg);
		raw_spin_unlock_irqrestore(&errand_lock, flags);
		break;
	case IN_SOFTIRQ:
		errand_in_softirq();
		break;
	case IN_HARDIRQ:
		errand_in_hardirq();
		break;
	default:
		fn(arg);
	}
}

/**
 * struct there - a thread on another CPU, and what it is to do
 * @task:	the thread; NULL if there is no other CPU
 * @cpu:	the CPU
 * @wait:	the thread waits here for @fn
 * @fn:		the function to call, or NULL
 * @arg:	its argument
 * @done:	@fn has returned
 */
static struct there {
	struct task_struct	*task;
	unsigned int		cpu;
	wait_queue_head_t	wait;
	void			(*fn)(void *arg);
	void			*arg;
	struct completion	done;
} there;

static int there_run(void *unused)
{
	for (;;) {
		void (*fn)(void *arg);

		/* Pairs with the release in there_start(). */
		wait_event_idle(there.wait, smp_load_acquire(&there.fn) || kthread_should_stop());
		fn = there.fn;
		if (!fn)
			return 0;
		there.fn = NULL;
		fn(there.arg);
		complete(&there.done);
	}
}

/* Call @fn(@arg) in task context on the other CPU. there_wait() waits until it has returned. */
static void there_start(void (*fn)(void *arg), void *arg)
{
	there.arg = arg;
	/* Pairs with the acquire in there_run(): @arg is stored first. */
	smp_store_release(&there.fn, fn);
	wake_up(&there.wait);
}

static void there_wait(void)
{
	wait_for_completion(&there.done);
}

static void there_begin(void)
{
	struct task_struct *task;

	init_waitqueue_head(&there.wait);
	init_completion(&there.done);
	there.cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	if (there.cpu >= nr_cpu_ids)
		return;
	task = kthread_create(there_run, NULL, "twheel_there");
	if (IS_ERR(task))
		return;
	kthread_bind(task, there.cpu);
	wake_up_process(task);
	there.task = task;
}

static void there_end(void)
{
	if (there.task)
		kthread_stop(there.task);
}

/* Keep the test on its present CPU. */
static void contexts_begin(void)
{
	tasklet_setup(&errand.soft, errand_soft);
	hrtimer_setup(&errand.hard, errand_hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	there_begin();
}

static void contexts_end(void)
{
	check(!errand.wrong, "each context was what it is called: %u were not", errand.wrong);
	there_end();
	hrtimer_cancel(&errand.hard);
	tasklet_kill(&errand.soft);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

#endif
