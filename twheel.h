/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twheel: timers for kernel modules, exact to the tick at any distance.
 *
 * A timer is 40 bytes, as a struct timer_list is, and fires in the tick
 * ceil(deadline / tick): never early, and later by less than a tick plus the
 * latency of a softirq. Adding, re-arming and cancelling cost the same with ten
 * timers and with ten million.
 *
 * A timer belongs to a base: a wheel, a raw spinlock and one hrtimer. Each CPU has
 * a base for everybody (CLOCK_MONOTONIC, a tick of the module parameter tick_us),
 * and a timer of these moves to the CPU that adds it. twheel_create() makes a
 * private base, with a clock and tick of its own.
 *
 * All times are in ns. A delay counts from now; one that is not positive means the
 * next tick. A deadline is a time of the base's clock.
 *
 * Context: unless said otherwise a function may be called from anywhere but NMI:
 * hard and soft interrupts, under raw spinlocks, with preemption off, on
 * PREEMPT_RT, and from a timer's own callback. Callers need not lock: calls on one
 * timer are serialised by its base's lock.
 *
 * A callback runs in softirq context with interrupts on (on PREEMPT_RT in a thread)
 * and without a lock of ours. By then its timer is idle: it may be armed again,
 * freed, or handed to someone else, by the callback too.
 */
#ifndef TWHEEL_H
#define TWHEEL_H

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/types.h>

#include "wheel_types.h"

struct twheel_base;

/* What a tick may be, in ns. The default is TWHEEL_TICK_NS. */
#define TWHEEL_TICK_MIN_NS	(100 * NSEC_PER_USEC)
#define TWHEEL_TICK_MAX_NS	NSEC_PER_SEC
#define TWHEEL_TICK_NS		NSEC_PER_MSEC

/**
 * struct twheel_timer - a timer
 * @queue:	private; @queue.data is the id of the timer's base
 * @function:	the callback
 * @cookie:	in a base with a sink there are no callbacks: this, @queue.flags and
 *		@queue.data are the owner's, and zeroed memory is an idle timer
 */
struct twheel_timer {
	struct wheel_timer	queue;
	union {
		void	(*function)(struct twheel_timer *timer);
		u64	cookie;
	};
};

/**
 * struct twheel_sink - where a base hands its expired timers, instead of callbacks
 * @expired:	takes @nr timers, at most TWHEEL_SINK_MAX, in the order of their
 *		ticks. Called with the base's raw lock held and interrupts off: it
 *		may move them to a list of its own, using queue.node, and no more.
 *		They are idle: cancelling them is the owner's business from here on
 * @wake:	called after that, with no lock held, in softirq context, once for
 *		one or more calls of @expired
 */
struct twheel_sink {
	void (*expired)(struct twheel_base *base, struct twheel_timer **timers,
			unsigned int nr);
	void (*wake)(struct twheel_base *base);
};

#define TWHEEL_SINK_MAX		32

/**
 * struct twheel_config - what a private base shall be
 * @clock:	CLOCK_MONOTONIC (stands still in suspend) or CLOCK_BOOTTIME (goes on)
 * @tick_ns:	TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS. Ticks are multiples of it
 *		from the clock's zero, so that bases with one tick share interrupts
 * @slack_ns:	how much later than its tick the interrupt may come; less than
 *		NSEC_PER_SEC
 * @sink:	NULL for callbacks
 * @owner:	the sink's, see twheel_owner()
 */
struct twheel_config {
	clockid_t			clock;
	u64				tick_ns;
	u64				slack_ns;
	const struct twheel_sink	*sink;
	void				*owner;
};

/**
 * struct twheel_stats - what a base holds and has done
 * @pending:	timers armed
 * @added:	timers added, a re-armed one again
 * @expired:	timers expired
 * @wakeups:	interrupts taken: runs of the base's hrtimer
 * @moves:	timers moved from one bucket to a finer one
 * @deferred:	times that a run used up its budget and was put off
 * @worst:	most moves in one run
 * @next:	when the next run is wanted, as a time of the clock; KTIME_MAX if never
 */
struct twheel_stats {
	u64	pending;
	u64	added;
	u64	expired;
	u64	wakeups;
	u64	moves;
	u64	deferred;
	u64	worst;
	ktime_t	next;
};

void twheel_init(struct twheel_timer *timer, void (*function)(struct twheel_timer *));
void twheel_init_on(struct twheel_base *base, struct twheel_timer *timer,
		    void (*function)(struct twheel_timer *));
void twheel_add(struct twheel_timer *timer, ktime_t delay);
int twheel_mod(struct twheel_timer *timer, ktime_t delay);
int twheel_cancel(struct twheel_timer *timer);
int twheel_cancel_sync(struct twheel_timer *timer);

/**
 * twheel_pending() - is a timer armed?
 * @timer:	the timer
 *
 * Without the caller's own locking the answer may be over when it is used.
 *
 * Return: true from the moment it is armed until it is cancelled or its callback
 * is about to run.
 */
static inline bool twheel_pending(const struct twheel_timer *timer)
{
	return READ_ONCE(timer->queue.bucket) != 0;
}

struct twheel_base *twheel_create(const struct twheel_config *config);
int twheel_configure(struct twheel_base *base, const struct twheel_config *config);
void twheel_destroy(struct twheel_base *base);
void *twheel_owner(const struct twheel_base *base);
size_t twheel_size(void);
void twheel_get_stats(struct twheel_base *base, struct twheel_stats *stats);

ktime_t twheel_lock(struct twheel_base *base, unsigned long *flags);
void twheel_unlock(struct twheel_base *base, unsigned long flags);
void twheel_add_locked(struct twheel_base *base, struct twheel_timer *timer,
		       ktime_t expires);
bool twheel_cancel_locked(struct twheel_base *base, struct twheel_timer *timer);

#endif
