/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel: timers for kernel modules, exact to the tick at any distance.
 *
 * A timer is 40 bytes, as a struct timer_list is. It fires in the tick ceil(deadline / tick): never
 * early, and later by less than a tick plus the latency of a softirq. It may be later if it has a
 * tolerance, if its base has a slack, or if its base has used up its share of the CPU. Adding,
 * re-arming and cancelling cost the same with ten timers and with ten million.
 *
 * A timer belongs to a base: a wheel with a clock, a raw spinlock and an interrupt. Each CPU has
 * bases for everybody (CLOCK_MONOTONIC, with the tick of the module parameter tick_us), and a timer
 * of these bases moves to the CPU that adds it. twheel_create() makes a private base, with a clock
 * and tick of its own.
 *
 * CPUs: the CPU that added a timer runs its callback, except in four cases. If that CPU goes
 * offline, its timers move to another CPU. If a timer is added while its callback runs, it stays on
 * the CPU of the callback. If the CPU that added a timer is idle at the moment when the base's
 * hrtimer is started, and another CPU is busy, the hrtimer is started on the busy CPU, which then
 * runs the callback. An isolated CPU (nohz_full=, isolcpus=, isolated cpusets from Linux 6.12 on)
 * is not interrupted for timers: a timer that is added there goes to a CPU nearby which is not
 * isolated. Only twheel_add_on() names the CPU on which the callback must run. A private base runs
 * its callbacks on any CPU that is not isolated.
 *
 * All times are in ns. A delay counts from now; 0 or less means the next tick. A deadline is a time
 * of the base's clock.
 *
 * Most timeouts need not be exact. Each function that arms a timer, except twheel_add_on(), has a
 * form with _range in its name, which takes a tolerance: the timer fires in some tick from
 * ceil(deadline / tick) to floor((deadline + tolerance) / tick). If the second of these is before
 * the first, it fires in the first. So it is never early, and at most its tolerance later than an
 * exact timer. Timers with tolerances share ticks, on all CPUs and bases, so there are fewer
 * interrupts. Mostly such timers are not moved from bucket to bucket. An example is a tolerance of
 * an eighth of the delay: if there are 10 000 timers or more, and their delays are up to two
 * minutes, adding a timer and its expiry together take fewer instructions than with a struct
 * timer_list; if there are only 1 000 timers, or delays are up to 1 000 s, they take as many or
 * more (`make bench-kernel`). If a timer is re-armed, and may keep the tick that it has, the call
 * costs next to nothing. A tolerance of 0 means exact. If deadline + tolerance exceeds KTIME_MAX,
 * KTIME_MAX is used instead.
 *
 * Each function is described where it is defined, in twheel.c or a header that twheel.c includes.
 *
 * Context: unless said otherwise a function may be called from any context except NMI: from hard
 * and soft interrupts, under raw spinlocks, with preemption off, on PREEMPT_RT, and from a timer's
 * own callback. Callers need no lock: the lock of the timer's base serialises all calls on a timer.
 *
 * A callback runs in softirq context with interrupts on (on PREEMPT_RT in a thread). It holds no
 * lock of twheel, except that on PREEMPT_RT it holds one on which the calls sleep that wait for
 * this callback. By then its timer is idle: anybody may arm it, and the callback may free it or
 * hand it to other code. Other code cannot see that a callback has begun. So before it frees the
 * timer, it must call twheel_cancel_sync() or twheel_shutdown_sync(), or otherwise know that no
 * callback uses the timer.
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

/* The smallest, largest and default tick, in ns. */
#define TWHEEL_TICK_MIN_NS	(100 * NSEC_PER_USEC)
#define TWHEEL_TICK_MAX_NS	NSEC_PER_SEC
#define TWHEEL_TICK_NS		NSEC_PER_MSEC

/**
 * struct twheel_timer - a timer
 * @queue:	private; @queue.data is the id of the timer's base
 * @function:	the callback
 * @cookie:	takes the place of @function if the base has a sink. Then @cookie, @queue.flags and
 *		@queue.data belong to the owner of the base, and zeroed memory is an idle timer.
 *		Functions that get a timer without its base find the base by @queue.data. Do not use
 *		them for such a timer, except twheel_pending()
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
 * Flags in a timer's queue.flags. If all are zero, the timer can be armed on the fast path. STATIC:
 * it was initialised at compile time, which debugobjects must know. SHUT: it was shut down. HOPPED:
 * it was armed on another CPU while its callback was running.
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
 * struct twheel_sink - gets the expired timers of a base, instead of callbacks
 * @expired:	gets @nr timers, at most TWHEEL_SINK_MAX, in the order of their ticks. Called with
 *		the base's raw lock held and interrupts off: it may move the timers to a list of its
 *		own, by queue.node, and do no more. The timers are idle: from now on, cancelling
 *		them is up to the owner
 * @wake:	called after @expired, without a lock, in softirq context, once for one or more
 *		calls of @expired. Returns true when it has done its work. Without PREEMPT_RT it
 *		must always do so. On PREEMPT_RT it must not wait for a lock: if a lock that it
 *		needs is taken, it returns false, and is called again a ms later. On PREEMPT_RT it
 *		may also be called when nothing has expired, and on two CPUs at once
 * @always:	call @wake each time that the base was served, even if nothing has expired: the time
 *		of the next event may have changed
 */
struct twheel_sink {
	void (*expired)(struct twheel_base *base, struct twheel_timer **timers,
			unsigned int nr);
	bool (*wake)(struct twheel_base *base);
	bool always;
};

/*
 * The most operations in a lock hold, with interrupts off. 64 re-arms are 4 900 instructions, and
 * 64 adds 9 800. 16 re-arms are 1 400 (`make bench-kernel`, icount-hold).
 */
#define TWHEEL_HOLD_OPS		(IS_ENABLED(CONFIG_PREEMPT_RT) ? 16 : 64)
/*
 * The most operations in a lock hold of a base whose timers are in a tree. An operation takes up to
 * four times as long there. At most 11 800 instructions were counted between two points at which
 * interrupts were on. That may be two holds in a row (`make bench-kernel`, icount-hold,
 * small-batches; icount-irqs, 64 timers).
 */
#define TWHEEL_TREE_OPS		16

/* The most timers that a sink is handed at once. */
#define TWHEEL_SINK_MAX		TWHEEL_HOLD_OPS

/**
 * struct twheel_config - the properties of a private base
 * @clock:	CLOCK_MONOTONIC, which stands still in suspend; CLOCK_BOOTTIME, which does not; or
 *		CLOCK_REALTIME, which may be set: if it is set forward, timers that are due then
 *		fire; if it is set back, armed timers wait for their time. A delay is added to the
 *		present time, and the sum is the deadline
 * @tick_ns:	TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS. Ticks begin at multiples of it from the
 *		clock's zero, so bases with the same tick share interrupts
 * @slack_ns:	how much later than a tick its interrupt may come; less than NSEC_PER_SEC
 * @sink:	gets the expired timers; NULL for callbacks
 * @owner:	the sink's own, see twheel_owner()
 * @small:	with a sink: until twheel_grow() the base has no buckets, and takes 1 KiB instead of
 *		64 KiB. Until then its timers are in a tree, which each operation searches
 * @user:	with a sink: the user whose base it is. All bases of a user together have one share
 *		of a CPU, see twheel_user_create(). All bases without a user have one share together
 * @was_set:	with CLOCK_REALTIME: called after the clock was set, or the machine was suspended.
 *		A worker calls it in task context, for one base at a time; twheel_tell_set() may
 *		call it too. twheel_destroy() and twheel_tell_set() of this base wait until it has
 *		returned. May be NULL
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
 * @pending:	timers that are armed
 * @added:	timers added so far; a timer that is re-armed counts again
 * @rearmed:	how many of @added were armed already
 * @expired:	timers that have expired
 * @wakeups:	runs of the base's hrtimer; with a sink: passes that served the base
 * @moves:	moves of timers: from one bucket to another, or between a bucket and the tree
 * @deferred:	how often a run left work to a later run, because it had used up its budget or half
 *		of the CPU; with a sink: how often the base was due but its user had to wait
 * @worst:	most moves in one run; with a sink: in one pass
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
 * @_timer:	the timer; must not be armed
 * @_function:	called when the timer expires, see the beginning of this file
 *
 * Context: Any.
 */
#define twheel_init(_timer, _function) \
	TWHEEL_INIT_KEY(NULL, _timer, _function, false)

/**
 * twheel_init_on() - prepare a timer of a private base
 * @_base:	the base, made without a sink
 * @_timer:	the timer; must not be armed
 * @_function:	called when the timer expires
 *
 * Context: Any.
 */
#define twheel_init_on(_base, _timer, _function) \
	TWHEEL_INIT_KEY(_base, _timer, _function, false)

/**
 * twheel_init_on_stack() - prepare a timer on the stack, of the CPUs' bases
 * @_timer:	the timer; call twheel_destroy_on_stack() before it goes out of scope
 * @_function:	called when the timer expires
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
 * @timer:	the timer; must not be armed, see twheel_cancel_sync()
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
 * For code that counts in jiffies, as users of struct timer_list do. See doc/migrate.md.
 */

/**
 * twheel_jiffies() - a number of jiffies as a delay
 * @nr:		jiffies; a negative number is a delay of 0
 *
 * Use it instead of jiffies_to_nsecs(), which overflows at 71 minutes.
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
 * @expires:	a value of jiffies; if it has passed, the delay is 0
 *
 * A timer that is armed for this delay waits until jiffies has the value @expires, and then for the
 * base's next tick. If the tick is no longer than a jiffy, the next tick is at the latest when
 * jiffies becomes @expires + 1, which is when a struct timer_list would expire.
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
 * A timer's clock is not jiffies: if the timer was armed for twheel_until(x), and the base's tick
 * is no longer than a jiffy, the result may also be x - 1 or x + 1.
 *
 * Context: Any.
 * Return: that value, at most MAX_JIFFY_OFFSET ahead; if the timer is not armed, jiffies now.
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
 * Unless the caller serialises calls on the timer, the answer may be outdated when it is used.
 *
 * Return: true from the moment the timer is armed until it is cancelled or its callback is about to
 * run; also throughout a re-arm, and while the timer moves to another CPU.
 */
static inline bool twheel_pending(const struct twheel_timer *timer)
{
	return READ_ONCE(timer->queue.bucket) != 0;
}

/* What a task's function returns: whether it is to be called again after the period. */
enum twheel_again {
	TWHEEL_STOP,
	TWHEEL_AGAIN,
};

/* The function is called in task context, on twheel's own workqueue. */
#define TWHEEL_TASK_PROCESS	BIT(0)
/* A period begins when the function returns, not when the call was due. */
#define TWHEEL_TASK_DELAY	BIT(1)

/**
 * struct twheel_task - a timer with a period, or with its function in task context
 * @timer:	private
 * @work:	private
 * @function:	called when the task is due. It may free the task if it returns TWHEEL_STOP, or if
 *		the task has no period
 * @period:	the task's period in ns; 0 if @function is called once
 * @deadline:	when the task is due next, or was due last, in ns of the clock
 * @tolerance:	how many ns after @deadline @function may be called, each time
 * @overruns:	periods since the start that came due while @function was still running or could not
 *		be called. They are skipped, and the phase is kept
 * @flags:	TWHEEL_TASK_*
 * @active:	started, and not cancelled since
 * @stage:	private
 *
 * The function of one task never runs twice at once. The lock of the timer's base guards the
 * members that change.
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
 * @_task:	the task; must not be started
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
 * @_task:	the task; must not be started
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
 * twheel_task_overruns() - how many periods were skipped?
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
unsigned int twheel_hold_ops(const struct twheel_base *base);
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
