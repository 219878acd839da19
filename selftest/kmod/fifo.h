/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What tests share in which priorities and CPUs matter: threads, the time that they take, and
 * arming a timer of a base of their own.
 */
#ifndef FIFO_H
#define FIFO_H

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <uapi/linux/sched/types.h>

#include "twheel.h"

static void set_fifo(unsigned int prio)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = prio,
	};

	WARN_ON_ONCE(sched_setattr_nocheck(current, &attr));
}

static bool before(ktime_t start, u64 ns)
{
	return ktime_get() < ktime_add_ns(start, ns);
}

/* Start a thread on @cpu. The caller holds a reference. NULL if there is no memory. */
static struct task_struct *create_thread(int (*fn)(void *), const char *name, unsigned int cpu)
{
	struct task_struct *thread = kthread_create(fn, NULL, KBUILD_MODNAME "/%s", name);

	if (IS_ERR(thread))
		return NULL;
	get_task_struct(thread);
	set_cpus_allowed_ptr(thread, cpumask_of(cpu));
	wake_up_process(thread);
	return thread;
}

/* What a thread does last. */
static inline void await_stop(void)
{
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
}

/* Arm @timer, which no base holds. */
static inline void timer_arm(struct twheel_base *base, struct twheel_timer *timer, ktime_t when)
{
	unsigned long flags;

	memset(timer, 0, sizeof(*timer));
	twheel_lock(base, &flags);
	twheel_add_locked(base, timer, when);
	twheel_unlock(base, flags);
}

#endif
