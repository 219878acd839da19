/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
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
 * CPUs: a callback runs where its timer was added, as long as that CPU is busy. If it is idle
 * when the next interrupt is armed, and another is busy, that one is interrupted. A CPU that is
 * to be left alone (nohz_full=, isolcpus=, isolated cpusets from Linux 6.12 on) is not
 * interrupted for timers: what is added there goes to a CPU that may be, near it. Only
 * twheel_add_on() says which CPU it shall be, and that is where the callback runs. A private base
 * runs its callbacks on any CPU but those that are to be left alone.
 *
 * All times are in ns. A delay counts from now; one that is not positive means the
 * next tick. A deadline is a time of the base's clock.
 *
 * Most timeouts need not be exact. Each function that arms a timer has a form that ends in _range
 * and takes a tolerance: the timer fires in some tick from ceil(deadline / tick) to floor((deadline
 * + tolerance) / tick), and if there is none between these in the first. So it is never early, and
 * late by its tolerance at most, besides what an exact timer is. Timers with
 * tolerances meet in ticks that many share, on all CPUs and bases, so that there are fewer
 * interrupts, and they are mostly not moved from bucket to bucket: with an eighth of the delay a
 * timer costs no more than a struct timer_list. One that is put off costs next to nothing while it
 * is due when it may be. 0 means exact. A tolerance that ends after KTIME_MAX ends there.
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
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep_types.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "wheel_types.h"

struct twheel_base;
struct twheel_user;

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
 * @lockdep_map: stands for the callback, where CONFIG_LOCKDEP is on
 *
 * 40 bytes on 64-bit, without lockdep.
 */
struct twheel_timer {
	struct wheel_timer	queue;
	union {
		void	(*function)(struct twheel_timer *timer);
		u64	cookie;
	};
#ifdef CONFIG_LOCKDEP
	struct lockdep_map	lockdep_map;
#endif
};

/*
 * In queue.flags, all zero in what is armed without a second look: initialised at compile
 * time, so that debugobjects need not worry; shut down; and armed on another CPU while its
 * callback ran.
 */
#define TWHEEL_STATIC	(IS_ENABLED(CONFIG_DEBUG_OBJECTS) ? BIT(0) : 0)
#define TWHEEL_SHUT	BIT(1)
#define TWHEEL_HOPPED	BIT(2)

#ifdef CONFIG_LOCKDEP
#define TWHEEL_LOCKDEP_PLACE	__FILE__ ":" __stringify(__LINE__)
#define TWHEEL_LOCKDEP_INIT \
	.lockdep_map = STATIC_LOCKDEP_MAP_INIT(TWHEEL_LOCKDEP_PLACE, TWHEEL_LOCKDEP_PLACE),
#else
#define TWHEEL_LOCKDEP_INIT
#endif

/**
 * TWHEEL_TIMER_INIT() - initial value of a timer of the CPUs' bases
 * @_function:	the callback
 */
#define TWHEEL_TIMER_INIT(_function) {				\
		.queue.flags = TWHEEL_STATIC,			\
		.function = (_function),			\
		TWHEEL_LOCKDEP_INIT				\
	}

/**
 * DEFINE_TWHEEL_TIMER() - define a timer of the CPUs' bases
 * @_name:	the timer
 * @_function:	the callback
 */
#define DEFINE_TWHEEL_TIMER(_name, _function) \
	struct twheel_timer _name = TWHEEL_TIMER_INIT(_function)

/**
 * struct twheel_sink - where a base hands its expired timers, instead of callbacks
 * @expired:	takes @nr timers, at most TWHEEL_SINK_MAX, in the order of their
 *		ticks. Called with the base's raw lock held and interrupts off: it
 *		may move them to a list of its own, using queue.node, and no more.
 *		They are idle: cancelling them is the owner's business from here on
 * @wake:	called after that, with no lock held, in softirq context, once for
 *		one or more calls of @expired. Returns false if on PREEMPT_RT it would have had
 *		to wait for a lock; then it is called again a ms later. There it may also
 *		be called when nothing has expired, and on two CPUs at once
 * @always:	call @wake after each run, also if nothing has expired: what comes next is later
 *		then
 */
struct twheel_sink {
	void (*expired)(struct twheel_base *base, struct twheel_timer **timers,
			unsigned int nr);
	bool (*wake)(struct twheel_base *base);
	bool always;
};

/*
 * The most operations in a lock hold, with interrupts off. 64 re-arms are 10 300 instructions, and
 * some 18 us if their memory is in no cache; 16 are 2 800: `make bench-kernel`, icount-hold. A
 * batch of 64 that is cut into four costs a tenth more.
 */
#define TWHEEL_HOLD_OPS		(IS_ENABLED(CONFIG_PREEMPT_RT) ? 16 : 64)

/* The most timers that a sink is handed at once. */
#define TWHEEL_SINK_MAX		TWHEEL_HOLD_OPS

/**
 * struct twheel_config - what a private base shall be
 * @clock:	CLOCK_MONOTONIC (stands still in suspend), CLOCK_BOOTTIME (goes on), or
 *		CLOCK_REALTIME, which may be set: forward, and what is due then fires; back, and
 *		what is armed waits for its time. A delay becomes a deadline when it is given
 * @tick_ns:	TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS. Ticks are multiples of it
 *		from the clock's zero, so that bases with one tick share interrupts
 * @slack_ns:	how much later than its tick the interrupt may come; less than
 *		NSEC_PER_SEC
 * @sink:	NULL for callbacks
 * @owner:	the sink's, see twheel_owner()
 * @small:	with a sink: it has no buckets, and takes a KiB instead of 36, until
 *		twheel_grow(). Until then its timers are in a tree, and each operation
 *		searches that
 * @user:	with a sink: whose base it is. The bases of one user have one part of a CPU
 *		together, see twheel_user_create(). NULL: nobody's in particular
 * @was_set:	with CLOCK_REALTIME: called when the clock has been set, or the machine was
 *		suspended, in task context, for one base at a time unless twheel_tell_set() does.
 *		twheel_destroy() and twheel_tell_set() of this base wait for it. NULL: nobody asks
 */
struct twheel_config {
	clockid_t			clock;
	u64				tick_ns;
	u64				slack_ns;
	const struct twheel_sink	*sink;
	void				*owner;
	bool				small;
	struct twheel_user		*user;
	void				(*was_set)(struct twheel_base *base);
};

/**
 * struct twheel_stats - what a base holds and has done
 * @pending:	timers armed
 * @added:	timers added, a re-armed one again
 * @rearmed:	of these, timers that were armed when they were
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
	u64	rearmed;
	u64	expired;
	u64	wakeups;
	u64	moves;
	u64	deferred;
	u64	worst;
	ktime_t	next;
};

void __twheel_init(struct twheel_base *base, struct twheel_timer *timer,
		   void (*function)(struct twheel_timer *), bool on_stack,
		   const char *name, struct lock_class_key *key);

#define TWHEEL_INIT_KEY(_base, _timer, _function, _on_stack) do {		\
	static struct lock_class_key __key;					\
										\
	__twheel_init(_base, _timer, _function, _on_stack, #_timer, &__key);	\
} while (0)

/**
 * twheel_init() - prepare a timer of the CPUs' bases
 * @_timer:	memory that is no armed timer
 * @_function:	called back when the timer expires, see the head of the file
 *
 * Context: Any.
 */
#define twheel_init(_timer, _function) \
	TWHEEL_INIT_KEY(NULL, _timer, _function, false)

/**
 * twheel_init_on() - prepare a timer of a private base
 * @_base:	the base, made without a sink
 * @_timer:	memory that is no armed timer
 * @_function:	called back when the timer expires
 *
 * Context: Any.
 */
#define twheel_init_on(_base, _timer, _function) \
	TWHEEL_INIT_KEY(_base, _timer, _function, false)

/**
 * twheel_init_on_stack() - prepare a timer on the stack, of the CPUs' bases
 * @_timer:	the timer; twheel_destroy_on_stack() it before the function returns
 * @_function:	called back when the timer expires
 *
 * Context: Any.
 */
#define twheel_init_on_stack(_timer, _function) \
	TWHEEL_INIT_KEY(NULL, _timer, _function, true)

#ifdef CONFIG_DEBUG_OBJECTS
void twheel_destroy_on_stack(struct twheel_timer *timer);
#else
/**
 * twheel_destroy_on_stack() - a timer on the stack goes out of scope
 * @timer:	the timer, not armed; see twheel_cancel_sync()
 *
 * Context: Any.
 */
static inline void twheel_destroy_on_stack(struct twheel_timer *timer) { }
#endif

void twheel_add(struct twheel_timer *timer, ktime_t delay);
void twheel_add_abs(struct twheel_timer *timer, ktime_t expires);
void twheel_add_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance);
void twheel_add_abs_range(struct twheel_timer *timer, ktime_t expires, u64 tolerance);
int twheel_mod_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance);
int twheel_mod_abs_range(struct twheel_timer *timer, ktime_t expires, u64 tolerance);
int twheel_mod_pending_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance);
int twheel_reduce_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance);
int twheel_mod(struct twheel_timer *timer, ktime_t delay);
int twheel_mod_abs(struct twheel_timer *timer, ktime_t expires);
int twheel_mod_pending(struct twheel_timer *timer, ktime_t delay);
int twheel_reduce(struct twheel_timer *timer, ktime_t delay);
int twheel_add_on(struct twheel_timer *timer, ktime_t delay, unsigned int cpu);
int twheel_cancel(struct twheel_timer *timer);
int twheel_try_cancel(struct twheel_timer *timer);
int twheel_cancel_sync(struct twheel_timer *timer);
int twheel_shutdown_sync(struct twheel_timer *timer);
ktime_t twheel_expires(const struct twheel_timer *timer);
ktime_t twheel_remaining(const struct twheel_timer *timer);

/*
 * For code that counts in jiffies, as users of struct timer_list do: doc/migrate.md.
 */

/**
 * twheel_jiffies() - a number of jiffies as a delay
 * @nr:		jiffies; a negative number is a delay of 0
 *
 * Unlike jiffies_to_nsecs(), which is wrong from 71 minutes on.
 *
 * Context: Any.
 * Return: ns, KTIME_MAX at most.
 */
static inline ktime_t twheel_jiffies(long nr)
{
	return (u64)max(nr, 0L) < KTIME_MAX / TICK_NSEC ? (s64)max(nr, 0L) * TICK_NSEC : KTIME_MAX;
}

/**
 * twheel_until() - the delay until jiffies has a value
 * @expires:	a value of jiffies; one that is over is a delay of 0
 *
 * A timer that is armed for this delay expires when jiffies has that value, and not in the jiffy
 * after it, as one of struct timer_list does.
 *
 * Context: Any.
 * Return: ns.
 */
static inline ktime_t twheel_until(unsigned long expires)
{
	return twheel_jiffies(expires - jiffies);
}

/**
 * twheel_expires_jiffies() - what will jiffies be when a timer expires?
 * @timer:	the timer
 *
 * The clock of a timer is not jiffies: of a timer that was armed for twheel_until(x) this may be
 * x - 1 or x + 1 as well.
 *
 * Context: Any.
 * Return: that value. Jiffies as it is if the timer is not armed; at most MAX_JIFFY_OFFSET more.
 */
static inline unsigned long twheel_expires_jiffies(const struct twheel_timer *timer)
{
	u64 left = div_u64((u64)twheel_remaining(timer) + TICK_NSEC / 2, TICK_NSEC);

	return jiffies + (unsigned long)min_t(u64, left, MAX_JIFFY_OFFSET);
}

/**
 * twheel_pending() - is a timer armed?
 * @timer:	the timer
 *
 * Without the caller's own locking the answer may be over when it is used.
 *
 * Return: true from the moment it is armed until it is cancelled or its callback
 * is about to run, also while it is armed anew and while it moves to another CPU.
 */
static inline bool twheel_pending(const struct twheel_timer *timer)
{
	return READ_ONCE(timer->queue.bucket) != 0;
}

/* What a task's function wants: to be called again after the period, or not. */
enum twheel_again {
	TWHEEL_STOP,
	TWHEEL_AGAIN,
};

/* The function is called in task context, on a workqueue of twheel's. */
#define TWHEEL_TASK_PROCESS	BIT(0)
/* The period counts from the function's return, not from when the last one was due. */
#define TWHEEL_TASK_DELAY	BIT(1)

/**
 * struct twheel_task - a timer with a period, or with its function in task context
 * @timer:	private
 * @work:	private
 * @function:	called when the task is due. One that returns TWHEEL_STOP, and that of a
 *		task without a period, may free the task
 * @period:	ns, or 0: once
 * @deadline:	when it was due last, or is next, in ns of the clock
 * @tolerance:	ns that it may be called later, each time
 * @overruns:	periods that came due while the function still ran or could not be called,
 *		since the start. They are left out, and the phase is kept
 * @flags:	TWHEEL_TASK_*
 * @active:	started, and not cancelled since
 * @stage:	private
 *
 * The function of one task never runs twice at once. What changes is guarded by the lock
 * of the timer's base.
 */
struct twheel_task {
	struct twheel_timer	timer;
	struct work_struct	work;
	enum twheel_again	(*function)(struct twheel_task *task);
	u64			period;
	u64			deadline;
	u64			tolerance;
	u64			overruns;
	u16			flags;
	bool			active;
	u8			stage;
};

void twheel_task_work(struct work_struct *work);
void twheel_task_expired(struct twheel_timer *timer);

#define TWHEEL_TASK_INIT_ON(_base, _task, _function, _flags) do {		\
	struct twheel_task *__task = (_task);					\
										\
	memset(__task, 0, sizeof(*__task));					\
	INIT_WORK(&__task->work, twheel_task_work);				\
	__task->function = (_function);						\
	__task->flags = (_flags);						\
	TWHEEL_INIT_KEY(_base, &__task->timer, twheel_task_expired, false);	\
} while (0)

/**
 * twheel_task_init() - prepare a task on the CPUs' bases
 * @_task:	memory that is no started task
 * @_function:	called when it is due
 * @_flags:	TWHEEL_TASK_PROCESS, TWHEEL_TASK_DELAY, or 0
 *
 * Context: Any.
 */
#define twheel_task_init(_task, _function, _flags) \
	TWHEEL_TASK_INIT_ON(NULL, _task, _function, _flags)

/**
 * twheel_task_init_on() - prepare a task on a private base
 * @_base:	the base, made without a sink
 * @_task:	memory that is no started task
 * @_function:	called when it is due
 * @_flags:	TWHEEL_TASK_PROCESS, TWHEEL_TASK_DELAY, or 0
 *
 * Context: Any.
 */
#define twheel_task_init_on(_base, _task, _function, _flags) \
	TWHEEL_TASK_INIT_ON(_base, _task, _function, _flags)

int twheel_task_start(struct twheel_task *task, ktime_t delay, ktime_t period);
int twheel_task_start_range(struct twheel_task *task, ktime_t delay, ktime_t period,
			    u64 tolerance);
int twheel_task_cancel(struct twheel_task *task);
int twheel_task_cancel_sync(struct twheel_task *task);
int twheel_task_shutdown_sync(struct twheel_task *task);

/**
 * twheel_task_overruns() - how many periods were left out?
 * @task:	the task
 *
 * Context: Any.
 * Return: how many, since the start.
 */
static inline u64 twheel_task_overruns(const struct twheel_task *task)
{
	return READ_ONCE(task->overruns);
}

struct twheel_user *twheel_user_create(void);
void twheel_user_destroy(struct twheel_user *user);
struct twheel_base *twheel_create(const struct twheel_config *config);
void twheel_destroy(struct twheel_base *base);
void *twheel_owner(const struct twheel_base *base);
int twheel_grow(struct twheel_base *base);
size_t twheel_size(const struct twheel_base *base);
void twheel_get_stats(struct twheel_base *base, struct twheel_stats *stats);

ktime_t twheel_lock(struct twheel_base *base, unsigned long *flags);
void twheel_relock(struct twheel_base *base, unsigned long *flags);
void twheel_unlock(struct twheel_base *base, unsigned long flags);
ktime_t twheel_now(const struct twheel_base *base);
raw_spinlock_t *twheel_raw_lock(struct twheel_base *base);
void twheel_tell_set(struct twheel_base *base);
void twheel_unlock_irq(struct twheel_base *base);
void twheel_add_locked(struct twheel_base *base, struct twheel_timer *timer,
		       ktime_t expires);
bool twheel_mod_locked(struct twheel_base *base, struct twheel_timer *timer,
		       ktime_t expires);
void twheel_add_range_locked(struct twheel_base *base, struct twheel_timer *timer,
			     ktime_t expires, u64 tolerance);
bool twheel_mod_range_locked(struct twheel_base *base, struct twheel_timer *timer,
			     ktime_t expires, u64 tolerance);
bool twheel_cancel_locked(struct twheel_base *base, struct twheel_timer *timer);

void twheel_add_array(struct twheel_timer **timers, const ktime_t *delays,
		      unsigned int nr);
void twheel_add_array_range(struct twheel_timer **timers, const ktime_t *delays,
			    const u64 *tolerances, unsigned int nr);
u64 twheel_drain(struct twheel_base *base,
		 void (*fn)(struct twheel_timer *timer, ktime_t expires, void *arg),
		 void *arg);

#endif
