/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * How a test module waits for something, and gives up after a while; and how threads tell each
 * other.
 */
#ifndef KWAIT_H
#define KWAIT_H

#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "ktap.h"

#define WAIT_MS		20000
#define SPIN_MS		2000
#define HOUR		(3600LL * NSEC_PER_SEC)

/* A timer is never later than that, unless something else delays it or the machine stands still. */
#define PROMPT_NS	(500 * NSEC_PER_MSEC)

/* Zeroed memory, which kvfree() frees. If there is none, the test fails. */
static inline void *zalloc(size_t nr, size_t size)
{
	void *p = kvcalloc(nr, size, GFP_KERNEL);

	if (!p)
		check(false, "memory for the test");
	return p;
}

/*
 * Until fifo_end() no other thread runs softirqs on this CPU, if the caller does not sleep. On
 * PREEMPT_RT softirqs run in threads of low priority, and if the kernel has no
 * PREEMPT_RT_NEEDS_BH_LOCK, local_bh_disable() does not keep these away.
 */
static inline void fifo_begin(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		sched_set_fifo(current);
}

static inline void fifo_end(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		sched_set_normal(current, 0);
}

/* Wait for @condition, but not for ever. */
#define wait_for(condition) ({						\
	unsigned int __left = WAIT_MS;					\
	bool __met;							\
									\
	while (!(__met = !!(condition)) && __left--)			\
		usleep_range(1000, 1100);				\
	__met;								\
})

/* Tell others that something has been done. */
static inline void tell(bool *flag)
{
	/* Pairs with the acquire in told(): a thread that was told sees what was done. */
	smp_store_release(flag, true);
}

static inline bool told(const bool *flag)
{
	/* Pairs with the release in tell(). */
	return smp_load_acquire(flag);
}

/* Let other threads run, if this context allows that. */
static inline void relax(void)
{
	if (in_interrupt() || irqs_disabled())
		cpu_relax();
	else
		usleep_range(20, 40);
}

/* Wait for @condition, at most @ns, looking again after each @pause. */
#define look_for(ns, condition, pause) ({				\
	ktime_t __end = ktime_add_ns(ktime_get(), ns);			\
	bool __met;							\
									\
	while (!(__met = !!(condition)) && ktime_before(ktime_get(), __end)) \
		pause;							\
	__met;								\
})

#define spin_for_ns(ns, condition)	look_for(ns, condition, relax())

/* Wait for something that takes only microseconds, in any context. */
#define spin_for(condition)	spin_for_ns(SPIN_MS * (u64)NSEC_PER_MSEC, condition)

/*
 * The same for a task that keeps its CPU busy, so that the CPU's timers do not go to another CPU.
 */
#define stay_for(condition) \
	look_for(SPIN_MS * (u64)NSEC_PER_MSEC, condition, cond_resched())

static inline void keep_busy_ns(u64 ns)
{
	ktime_t end = ktime_add_ns(ktime_get(), ns);

	while (ktime_before(ktime_get(), end))
		cpu_relax();
}

/* mdelay() by the clock: in a virtual machine the calibration of loops may be wrong. */
static inline void keep_busy(unsigned int ms)
{
	keep_busy_ns(ms * (u64)NSEC_PER_MSEC);
}

#endif
