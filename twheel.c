// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel.ko: bases, which are wheels with a clock, a lock and an interrupt.
 *
 * An hrtimer in soft mode drives a base with callbacks. It is armed for the next tick that
 * has work and for no other: an empty base causes no interrupt. Its callback, a run,
 * expires what is due and arms it again. The bases with a sink, which files have, are driven
 * by the CPUs' dispatchers, see twheel_dispatch.h.
 *
 * Bounds
 *	a lock hold	64 list moves and expiries, 16 on PREEMPT_RT, or one callback
 *	a run		1 024 of these, or 200 us and one callback. Then the hrtimer is armed
 *			a little ahead, by the time that was used, so that tasks and the other
 *			softirqs get half of the CPU whatever is due here. A tick that
 *			is not finished is resumed, never dropped.
 *
 * Locking
 *	expiry, of a base or a dispatcher (PREEMPT_RT only)
 *	  base->lock, raw, interrupts off
 *	    the dispatcher's lock, raw
 *	      the hrtimer's own
 * Two bases are never locked at once. Nothing is called, woken or allocated under
 * base->lock, but a sink's expired().
 *
 * An hrtimer is only ever started under the lock of its base or dispatcher, and its callback
 * never asks to be restarted: forwarding an hrtimer that somebody else has just enqueued
 * corrupts the kernel's tree. It is never cancelled under that lock: that would wait for a
 * run that waits for the lock.
 *
 * There is nothing to do when a CPU goes off: the kernel moves its hrtimers, the run
 * finds its base by the hrtimer, and the timers stay where they are. Which CPU a timer goes to
 * that is armed on one, and which is interrupted for it, is in twheel_cpus.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/debugobjects.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/pvclock_gtod.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timekeeper_internal.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "twheel.h"
#include "twheel_compat.h"
#define CREATE_TRACE_POINTS
#include "twheel_trace.h"

struct wheel;
static void trace_moved(struct wheel *w, unsigned int slot, u32 nr);
#define wheel_moved(w, slot, nr) do {				\
	if (trace_twheel_cascade_enabled())			\
		trace_moved(w, slot, nr);			\
} while (0)
#define WHEEL_STORE_APART
#include "wheel_back.h"

#define RUN_OPS		1024
#define RUN_NS		(200 * NSEC_PER_USEC)
#define DEFER_MIN_NS	(50 * NSEC_PER_USEC)
/* What a run takes before it begins and after it has ended, about: its interrupt. */
#define RUN_COST_NS	(12 * NSEC_PER_USEC)
/* No debt is more, and so no pause longer than twice that. */
#define DEBT_MAX_NS	(50 * NSEC_PER_MSEC)

/*
 * Memory that is charged to the caller's memory cgroup. Where that has no more the allocation
 * fails, rather than kill somebody in it.
 */
#define GFP_CHARGED	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* In the id of a timer's base: it is on its way from one base to another. */
#define MIGRATING	BIT(31)

#ifndef CONFIG_LOCKDEP
static_assert(sizeof(struct twheel_timer) == (IS_ENABLED(CONFIG_64BIT) ? 40 : 32));
#endif

/* The end of struct wheel_timer: what is in it, and all at once. */
union timer_word {
	struct {
		u16	bucket;
		u16	flags;
		u32	data;
	};
	u64		word;
};

static_assert(sizeof(union timer_word) == sizeof_field(struct wheel_timer, word));

/**
 * struct account - what runs have taken of a CPU
 * @debt:	ns of CPU that they have used and that time has not repaid
 * @since:	when that was so, in ns of CLOCK_MONOTONIC
 */
struct account {
	u64	debt;
	u64	since;
};

/* What a synchronous cancel sleeps on, on PREEMPT_RT. */
struct expiry {
#ifdef CONFIG_PREEMPT_RT
	spinlock_t	lock;		/* held by a run */
	atomic_t	waiters;
#endif
};

/**
 * struct settable - what a base of CLOCK_REALTIME has beside others
 * @back:	keeps its timers in order when the clock is set back, and those of any base as long
 *		as that has no buckets
 * @node:	in settable_bases
 * @told:	in settable_told, if there is a was_set()
 * @telling:	held while was_set() is called
 * @asked:	of the times that the clock was stepped: for these the worker has come to it
 * @seen:	of the times that the clock was set: for these the base has been told
 * @steps:	of the times that the clock was stepped: for these was_set() has returned
 * @was_set:	see struct twheel_config
 */
struct settable {
	struct wheel_back	back;
	struct list_head	node;
	struct list_head	told;
	struct mutex		telling;	/* was_set() */
	u32			seen;
	u32			asked;
	u32			steps;
	void			(*was_set)(struct twheel_base *base);
};

struct dispatcher;
struct listing;

/**
 * struct drive - an hrtimer that drives a base
 * @hrtimer:	its callback is a run
 * @base:	of this base
 */
struct drive {
	struct hrtimer		hrtimer;
	struct twheel_base	*base;
};

/**
 * struct twheel_base - a wheel with a clock, a lock and an interrupt
 * @lock:	guards all below that changes
 * @idle:	what is in a timer that can be armed: @idle.data is the id by which timers
 *		name their base, a CPU or an index of private_bases; 0 where no timer
 *		needs it, in a base with a sink
 * @tick_ns:	the tick
 * @slack_ns:	how late the interrupt may come
 * @forwarded:	jiffies when the wheel was told the time
 * @clock:	CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME
 * @in_run:	a run is under way and will arm the hrtimer when it ends
 * @dead:	with a sink: it is being destroyed, and will not be queued any more
 * @has_back:	there may be timers in @settable.back, or come to be
 * @worst:	most moves in a run, which ends after a little more than RUN_OPS
 * @pass_moves:	with a sink: moves in the pass @pass
 * @sink:	who takes what expires, or NULL
 * @owner:	the sink's
 * @armed:	the tick the hrtimer is armed for, WHEEL_NEVER if it is not. Where
 *		work was put off this is a tick that is over. With a sink: the tick for
 *		which the base was queued last
 * @running:	the timer whose callback is running
 * @account:	what its runs have taken
 * @put_off:	when the last run put work off, in ns of CLOCK_MONOTONIC; 0 if it did not
 * @drive:	two hrtimers, started in turn: see twheel_cpus.h
 * @start:	when the one that was started last shall expire, a time of the clock
 * @start_slack: and how much later it may
 * @driver:	which of the two is to be started next
 * @kicks:	calls of base_kicked() that are on their way
 * @kick:	has another CPU call that
 * @user:	whose it is
 * @dispatcher:	where it is queued, or NULL. Guarded by that dispatcher's lock; only who
 *		has @lock too may queue it
 * @queued:	in an entry of a queue of @dispatcher
 * @soft:	when it may be served, a time of the clock
 * @key:	when it shall be
 * @pass:	the beginning of the last pass that served it
 * @wake_at:	the tick at which wake() is to be called whatever expires, WHEEL_NEVER if at
 *		none (PREEMPT_RT only)
 * @expiry:	held by a run
 * @settable:	what it has if its clock may be set
 * @listing:	in debugfs, or NULL
 * @rearmed:	see struct twheel_stats, as the next three and @worst
 * @expired:	timers
 * @wakeups:	runs
 * @deferred:	runs
 * @grown:	the buckets of @wheel, if they were made after the base; else NULL
 * @wheel:	the timers
 */
struct twheel_base {
	raw_spinlock_t			lock;
	u32				tick_ns;
	union timer_word		idle;
	u32				slack_ns;
	u32				forwarded;
	u8				clock;
	bool				in_run;
	bool				dead;
	bool				has_back;
	u16				worst;
	u16				pass_moves;
	const struct twheel_sink	*sink;
	void				*owner;
	u64				armed;
	union {
		struct {	/* with callbacks */
			struct twheel_timer	*running;
			struct account		account;
			u64			put_off;
			struct drive		drive[2];
			ktime_t			start;
			u32			start_slack;
			u32			driver;
			u32			kicks;
			call_single_data_t	kick;
		};
		struct {	/* with a sink */
			struct twheel_user	*user;
			struct dispatcher	*dispatcher;
			struct rb_node		queued;
			ktime_t			soft;
			ktime_t			key;
			u64			pass;
			u64			wake_at;
		};
	};
	struct expiry			expiry;
	struct settable			settable;
	struct listing			*listing;
	u64				rearmed;
	u64				expired;
	u64				wakeups;
	u64				deferred;
	struct wheel_store		*grown;
	struct wheel			wheel;
};

static unsigned int tick_us = TWHEEL_TICK_NS / NSEC_PER_USEC;
module_param(tick_us, uint, 0444);
MODULE_PARM_DESC(tick_us, "tick of the CPUs' bases in us, 100 to 1000000 (default 1000)");

/* The private bases that timers name by id. */
static DEFINE_XARRAY_ALLOC(private_bases);
static atomic_t nr_private = ATOMIC_INIT(0);

/* By how much get_cycles() advances in RUN_NS, about; 0 if it does not. */
static unsigned long run_cycles;

/* run_cycles is 0: a branch that costs nothing where it is not. */
static DEFINE_STATIC_KEY_FALSE(run_has_no_counter);

/* Where the functions of tasks are called that want task context. */
static struct workqueue_struct *task_queue;

static ktime_t base_now(const struct twheel_base *base)
{
	if (likely(base->clock == CLOCK_MONOTONIC))
		return ktime_get();
	return base->clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get_real();
}

/* What a time of CLOCK_MONOTONIC is on the base's clock. */
static ktime_t base_from_mono(const struct twheel_base *base, u64 time)
{
	if (likely(base->clock == CLOCK_MONOTONIC))
		return time;
	return ktime_mono_to_any(time, base->clock == CLOCK_BOOTTIME ? TK_OFFS_BOOT : TK_OFFS_REAL);
}

/* May the clock of @base be set? */
static bool base_is_settable(const struct twheel_base *base)
{
	return base->clock == CLOCK_REALTIME;
}

/* The time of tick @tick. The tick after the end of time would be before its beginning. */
static ktime_t base_time(const struct twheel_base *base, u64 tick)
{
	return min_t(u64, tick * base->tick_ns, KTIME_MAX);
}

/* The last tick that has begun at @time. */
static u64 base_tick(const struct twheel_base *base, ktime_t time)
{
	return div_u64(time, base->tick_ns);
}

/* The first tick that begins no earlier than @time. */
static u64 base_tick_after(const struct twheel_base *base, ktime_t time)
{
	if (time <= 0)
		return 0;
	return div_u64((u64)time + base->tick_ns - 1, base->tick_ns);
}

/* The tick at which a timer expires that is added now for @expires. */
static u64 base_tick_added(const struct twheel_base *base, ktime_t expires)
{
	u64 last = base->has_back ? base_tick(base, base_now(base)) : wheel_clk(&base->wheel);

	return max(base_tick_after(base, expires), last + 1);
}

/**
 * struct ticks - those in which ticks a timer may fire
 * @first:	the first, which is not over
 * @last:	and the last, no earlier
 */
struct ticks {
	u64	first;
	u64	last;
};

/* Those of a timer that is added now for @expires, and may be late by @tolerance. */
static struct ticks base_range(const struct twheel_base *base, ktime_t expires, u64 tolerance)
{
	u64 time = max_t(ktime_t, expires, 0), first = base_tick_added(base, time);
	u64 end = tolerance < KTIME_MAX - time ? time + tolerance : KTIME_MAX;

	return (struct ticks){ .first = first, .last = max(first, base_tick(base, end)) };
}

/*
 * With CONFIG_DEBUG_OBJECTS the kernel keeps track of our timers, and complains of one
 * that is initialised or freed while armed, or armed without having been initialised.
 * The timers of a base with a sink are its owner's to keep track of.
 */
#ifdef CONFIG_DEBUG_OBJECTS
static const struct debug_obj_descr timer_debug_descr;

static void *timer_debug_hint(void *addr)
{
	return ((struct twheel_timer *)addr)->function;
}

static bool timer_is_static(void *addr)
{
	return ((struct twheel_timer *)addr)->queue.flags & TWHEEL_STATIC;
}

static bool timer_fixup_init(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_cancel_sync(addr);
	debug_object_init(addr, &timer_debug_descr);
	return true;
}

static bool timer_fixup_activate(void *addr, enum debug_obj_state state)
{
	WARN_ON(1);
	return false;
}

static bool timer_fixup_free(void *addr, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_cancel_sync(addr);
	debug_object_free(addr, &timer_debug_descr);
	return true;
}

static const struct debug_obj_descr timer_debug_descr = {
	.name			= "twheel_timer",
	.debug_hint		= timer_debug_hint,
	.is_static_object	= timer_is_static,
	.fixup_init		= timer_fixup_init,
	.fixup_activate		= timer_fixup_activate,
	.fixup_free		= timer_fixup_free,
};

static void debug_timer_init(struct twheel_timer *timer, bool on_stack)
{
	if (on_stack)
		debug_object_init_on_stack(timer, &timer_debug_descr);
	else
		debug_object_init(timer, &timer_debug_descr);
}

static void debug_timer_activate(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!base->sink)
		debug_object_activate(timer, &timer_debug_descr);
}

static void debug_timer_deactivate(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!base->sink)
		debug_object_deactivate(timer, &timer_debug_descr);
}

/**
 * twheel_destroy_on_stack() - a timer on the stack goes out of scope
 * @timer:	the timer, not armed; see twheel_cancel_sync()
 *
 * Context: Any.
 */
void twheel_destroy_on_stack(struct twheel_timer *timer)
{
	debug_object_free(timer, &timer_debug_descr);
}
EXPORT_SYMBOL_GPL(twheel_destroy_on_stack);
#else
static void debug_timer_init(struct twheel_timer *timer, bool on_stack) { }
static void debug_timer_activate(struct twheel_base *base, struct twheel_timer *timer) { }
static void debug_timer_deactivate(struct twheel_base *base, struct twheel_timer *timer) { }
#endif

/*
 * lockdep sees a callback as a lock that is held while it runs, and that a synchronous
 * cancel takes: a lock that both need is reported when each has been seen once, whether
 * or not they met.
 */
#ifdef CONFIG_LOCKDEP
static void lockdep_init_timer(struct twheel_timer *timer, const char *name,
			       struct lock_class_key *key)
{
	lockdep_init_map(&timer->lockdep_map, name, key, 0);
}

static void lockdep_call(struct twheel_timer *timer,
			 void (*function)(struct twheel_timer *))
{
	/* The callback may free the timer. */
	struct lockdep_map map;

	lockdep_copy_map(&map, &timer->lockdep_map);
	lock_map_acquire(&map);
	function(timer);
	lock_map_release(&map);
}

static void lockdep_wait(struct twheel_timer *timer)
{
	unsigned long flags;

	/* Interrupts off: who waits in task context is no softirq that was interrupted. */
	local_irq_save(flags);
	lock_map_acquire(&timer->lockdep_map);
	lock_map_release(&timer->lockdep_map);
	local_irq_restore(flags);
}
#else
static void lockdep_init_timer(struct twheel_timer *timer, const char *name,
			       struct lock_class_key *key)
{
}

static void lockdep_call(struct twheel_timer *timer,
			 void (*function)(struct twheel_timer *))
{
	function(timer);
}

static void lockdep_wait(struct twheel_timer *timer) { }
#endif

/* What is traced. Out of line, so that all that is left where nobody traces is a nop. */
static const void *base_function(const struct twheel_base *base,
				 const struct twheel_timer *timer)
{
	return base->sink ? NULL : timer->function;
}

/* Called ahead of wheel_add(), so that nothing has to be kept for afterwards. */
static noinline void trace_add(const struct twheel_base *base, const struct twheel_timer *timer,
			       ktime_t expires)
{
	u64 tick = base_tick_added(base, expires);

	trace_twheel_add(base, timer, base_function(base, timer), base_time(base, tick),
			 base_now(base));
}

static noinline void trace_cancelled(const struct twheel_base *base,
				     const struct twheel_timer *timer)
{
	trace_twheel_cancel(base, timer, base_function(base, timer),
			    base_time(base, timer->queue.expires), base_now(base));
}

static noinline void trace_expired(const struct twheel_base *base,
				   struct twheel_timer *const *timers, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		trace_twheel_expire(base, timers[i], base_function(base, timers[i]),
				    base_time(base, timers[i]->queue.expires),
				    base_now(base));
}

static noinline void trace_called(const struct twheel_base *base, struct twheel_timer *timer)
{
	trace_expired(base, &timer, 1);
}

static noinline void trace_moved(struct wheel *w, unsigned int slot, u32 nr)
{
	unsigned int level = WHEEL_LEVELS;

	while (level && slot < (level == WHEEL_LEVELS ? WHEEL_FAR : wheel_levels[level].first))
		level--;
	if (nr)
		trace_twheel_cascade(container_of(w, struct twheel_base, wheel), level, nr,
				     w->bucket[slot].n);
}

#include "twheel_cpus.h"

/*
 * Make sure that there will be a run at the next event. A run that is under way
 * sees to that when it ends.
 */
static __always_inline void base_arm(struct twheel_base *base)
{
	u64 next = base->wheel.next;

	lockdep_assert_held(&base->lock);
	if (base->in_run || next >= base->armed)
		return;
	base->armed = next;
	base_start(base, base_time(base, next), base->slack_ns);
}

/*
 * Arm for work that is due, or will be, but has to wait for @pause from @time on, so that others
 * get their turn. Nor shall a timer that is added meanwhile make it earlier: none is added for a
 * tick that is over.
 */
static void base_defer(struct twheel_base *base, u64 time, u64 pause)
{
	ktime_t now = base_from_mono(base, time), until = ktime_add_ns(now, pause);
	u64 next = base->wheel.next;

	lockdep_assert_held(&base->lock);
	if (next == WHEEL_NEVER || until <= base_time(base, next)) {
		base_arm(base);
		return;
	}
	base->deferred++;
	base->put_off = time;
	base->armed = min(next, base_tick(base, now));
	base_start(base, until, 0);
}

/*
 * Let the wheel know the time, so that timers are placed by their true distance. Once a jiffy
 * is enough, and what reading the clock costs is worth saving.
 */
static __always_inline void base_forward(struct twheel_base *base)
{
	u32 now = jiffies;

	lockdep_assert_held(&base->lock);
	if (likely(now == base->forwarded))
		return;
	base->forwarded = now;
	wheel_forward(&base->wheel, base_tick(base, base_now(base)));
}

/* Add @timer for tick @tick, up to which the wheel has come: its clock may have been set back. */
static noinline bool base_add_back(struct twheel_base *base, struct twheel_timer *timer, u64 tick)
{
	return wheel_back_add(&base->wheel, &base->settable.back, &timer->queue, tick,
			      base_tick(base, base_now(base)));
}

/*
 * Add @timer. If @rearmed, base_unlink() has taken it out for this. Returns whether base_arm()
 * has to be told.
 */
static noinline bool base_add(struct twheel_base *base, struct twheel_timer *timer,
			      ktime_t expires, bool rearmed)
{
	u64 tick = base_tick_after(base, expires);

	lockdep_assert_held(&base->lock);
	debug_timer_activate(base, timer);
	if (trace_twheel_add_enabled())
		trace_add(base, timer, expires);
	base->rearmed += rearmed;
	if (unlikely(tick <= wheel_clk(&base->wheel))) {
		if (base->has_back)
			return base_add_back(base, timer, tick);
		tick = wheel_clk(&base->wheel) + 1;
	}
	return wheel_add(&base->wheel, &timer->queue, tick);
}

/* base_add() for one of the ticks of @range. */
static noinline bool base_add_range(struct twheel_base *base, struct twheel_timer *timer,
				    const struct ticks *range, bool rearmed)
{
	u64 tick = wheel_choose(range->first, range->last);

	lockdep_assert_held(&base->lock);
	if (unlikely(tick <= wheel_clk(&base->wheel)))
		return base_add(base, timer, base_time(base, tick), rearmed);
	debug_timer_activate(base, timer);
	if (trace_twheel_add_enabled())
		trace_add(base, timer, base_time(base, tick));
	base->rearmed += rearmed;
	return wheel_add_chosen(&base->wheel, &timer->queue, tick);
}

/* base_add() of an idle timer of a CPU's base, inlined for what most timers are like. */
static __always_inline bool base_add_hot(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires)
{
	/* Not base_tick_after(): what is negative is far in the future here. */
	u64 tick = div_u64((u64)expires + base->tick_ns - 1, base->tick_ns);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || unlikely(!wheel_is_near(&base->wheel, tick)))
		return base_add(base, timer, expires, false);
	debug_timer_activate(base, timer);
	return wheel_add_near(&base->wheel, &timer->queue, tick);
}

/* base_add_range(), with all that it needs to know of a timer that most are like. */
static noinline bool base_add_range_cold(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires, u64 tolerance)
{
	struct ticks range = base_range(base, expires, tolerance);

	return base_add_range(base, timer, &range, false);
}

/*
 * base_add_hot() of a timer that may be late by @tolerance. Where no tick is between, or one of the
 * times is no time, or over, it is none of those that most timers are like.
 */
static __always_inline bool base_add_range_hot(struct twheel_base *base,
					       struct twheel_timer *timer, ktime_t expires,
					       u64 tolerance)
{
	u64 first = div_u64((u64)expires + base->tick_ns - 1, base->tick_ns);
	u64 last = div_u64((u64)expires + tolerance, base->tick_ns);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() ||
	    unlikely(!wheel_is_near(&base->wheel, last) || first > last ||
		     first <= wheel_clk(&base->wheel)))
		return base_add_range_cold(base, timer, expires, tolerance);
	debug_timer_activate(base, timer);
	return wheel_add_chosen_near(&base->wheel, &timer->queue, wheel_choose(first, last));
}

/*
 * base_add_hot() of any timer and base: a timer that looks queued must not be put where it is over,
 * and what is over for the wheel may be still to come if the clock was set back.
 */
static __always_inline bool base_add_any(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires, bool rearmed)
{
	u64 tick = base_tick_after(base, expires);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || unlikely(!wheel_is_near(&base->wheel, tick) ||
						   tick <= wheel_clk(&base->wheel)))
		return base_add(base, timer, expires, rearmed);
	debug_timer_activate(base, timer);
	base->rearmed += rearmed;
	return wheel_add_near(&base->wheel, &timer->queue, tick);
}

/* base_unlink() of a timer that is not in a bucket: it is idle, or the clock was set back. */
static noinline bool base_unlink_back(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!wheel_pending(&timer->queue))
		return false;
	if (trace_twheel_cancel_enabled())
		trace_cancelled(base, timer);
	wheel_back_unlink(&base->wheel, &base->settable.back, &timer->queue);
	debug_timer_deactivate(base, timer);
	return true;
}

/* And base_del(). Not for its callers to go on after: they would have to keep @timer for it. */
static noinline bool base_del_back(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!base_unlink_back(base, timer))
		return false;
	WRITE_ONCE(timer->queue.bucket, WHEEL_NONE);
	return true;
}

/* Take @timer out of its bucket. */
static __always_inline void base_unlink_bucket(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (trace_twheel_cancel_enabled())
		trace_cancelled(base, timer);
	wheel_unlink(&base->wheel, &timer->queue);
	debug_timer_deactivate(base, timer);
}

/*
 * Take @timer out, if it is in. It still looks pending, for it is on its way to another tick or
 * base; the caller adds it before anybody else gets at it.
 */
static __always_inline bool base_unlink(struct twheel_base *base, struct twheel_timer *timer)
{
	if (unlikely(!wheel_in_bucket(&timer->queue)))
		return base_unlink_back(base, timer);
	base_unlink_bucket(base, timer);
	return true;
}

/*
 * Put off @timer without taking it out, if it is in and that can be done. Where somebody traces it
 * is taken out and added, so that both are seen. So is a timer whose tick is over for the wheel.
 */
static __always_inline bool base_put_off(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires)
{
	u64 tick;

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || trace_twheel_cancel_enabled() ||
	    (short)timer->queue.bucket < WHEEL_L1)
		return false;
	tick = base_tick_after(base, expires);
	if (tick <= wheel_clk(&base->wheel) || !wheel_put_off(&base->wheel, &timer->queue, tick))
		return false;
	base->rearmed++;
	return true;
}

/*
 * The same for one of the ticks of @range. Nor is it touched if it is due in one of them; only if
 * it is in a bucket, since the tree is in the order of ticks that the clock's owner may yet change.
 */
static bool base_put_off_range(struct twheel_base *base, struct twheel_timer *timer,
			       const struct ticks *range)
{
	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || trace_twheel_cancel_enabled() ||
	    !wheel_in_bucket(&timer->queue) || range->first <= wheel_clk(&base->wheel))
		return false;
	if (!wheel_may_stay(&base->wheel, &timer->queue, range->first, range->last) &&
	    !wheel_put_off(&base->wheel, &timer->queue, wheel_choose(range->first, range->last)))
		return false;
	base->rearmed++;
	return true;
}

/* Take @timer out for good, if it is in. */
static __always_inline bool base_del(struct twheel_base *base, struct twheel_timer *timer)
{
	if (unlikely(!wheel_in_bucket(&timer->queue)))
		return base_del_back(base, timer);
	base_unlink_bucket(base, timer);
	WRITE_ONCE(timer->queue.bucket, WHEEL_NONE);
	return true;
}

/*
 * On PREEMPT_RT a task may preempt a run and cancel the timer whose callback it interrupted. If
 * it waited by spinning, the run would never go on. So the task sleeps on a lock that the run
 * holds, and lends the run its priority.
 */
#ifdef CONFIG_PREEMPT_RT
static void expiry_init(struct expiry *expiry)
{
	spin_lock_init(&expiry->lock);
}

static void expiry_lock(struct expiry *expiry)
{
	spin_lock(&expiry->lock);
}

static void expiry_unlock(struct expiry *expiry)
{
	spin_unlock(&expiry->lock);
}

static bool expiry_has_waiters(const struct expiry *expiry)
{
	return atomic_read(&expiry->waiters);
}

/*
 * Let those in who wait for what is over now. The run has said that it is over before: a waiter
 * that finds it still going on would try again and again, with a lock that nobody holds and
 * nobody lends a priority for.
 */
static void expiry_yield(struct expiry *expiry)
{
	spin_unlock(&expiry->lock);
	spin_lock(&expiry->lock);
}

static void expiry_announce(struct expiry *expiry, int waiters)
{
	if (expiry)
		atomic_add(waiters, &expiry->waiters);
}

static void expiry_sleep(struct expiry *expiry)
{
	spin_lock_bh(&expiry->lock);
	spin_unlock_bh(&expiry->lock);
}
#else
static void expiry_init(struct expiry *expiry) { }
static void expiry_lock(struct expiry *expiry) { }
static void expiry_unlock(struct expiry *expiry) { }
static void expiry_yield(struct expiry *expiry) { }

static bool expiry_has_waiters(const struct expiry *expiry)
{
	return false;
}

static void expiry_announce(struct expiry *expiry, int waiters) { }

static void expiry_sleep(struct expiry *expiry)
{
	cpu_relax();
}
#endif

/*
 * Called in a loop by who waits until a run does no more what, under a lock of the run's, it is
 * seen to do still. The first call only tells the run of the waiter, who then looks again:
 *
 *	run					waiter
 *						lock: it does; unlock
 *	lock: does it no more
 *	nobody waits; next callback
 *						one waiter more
 *						lock: it does not: need not sleep
 *
 * Else the waiter would sleep until that next callback has returned. @told is NULL at first,
 * and goes to expiry_wait_end() after the loop.
 */
static void expiry_wait(struct expiry *expiry, struct expiry **told)
{
	if (*told == expiry) {
		expiry_sleep(expiry);
		return;
	}
	expiry_announce(*told, -1);
	expiry_announce(expiry, 1);
	*told = expiry;
}

static void expiry_wait_end(struct expiry *told)
{
	expiry_announce(told, -1);
}

/* Time repays debts: in @parts ns of it one ns. */
static void account_settle(struct account *account, u64 now, u32 parts)
{
	u64 gone = now > account->since ? now - account->since : 0;

	account->debt -= min(account->debt, div_u64(gone, parts));
	account->since = now;
}

/*
 * Charge @used, which was taken up to @now. Time repays while it is being taken, too, and only what
 * is left then is bounded.
 */
static void account_charge(struct account *account, u64 now, u64 used, u32 parts)
{
	account->debt += used;
	account_settle(account, now, parts);
	account->debt = min_t(u64, account->debt, DEBT_MAX_NS);
}

/*
 * Is it time to let others in? What earlier runs took counts until it is repaid: many short
 * runs are no better than a long one.
 */
static bool account_is_over(const struct account *account)
{
	return account->debt * 2 >= RUN_NS;
}

/*
 * A clock that shows what a run takes of a CPU, @now being the time. On PREEMPT_RT a run is a task
 * as others are, which may have the CPU in the middle of it: the clock is the task's own.
 */
static u64 run_time(u64 now)
{
	const struct sched_entity *se = &current->se;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		return now;
	return se->sum_exec_runtime + local_clock() - se->exec_start;
}

/* What has been taken since run_time() was @since. */
static u64 run_took(u64 now, u64 since)
{
	s64 took = run_time(now) - since;

	return max_t(s64, took, 0);
}

/* No callback of @base runs. */
static __always_inline void base_ran(struct twheel_base *base)
{
	/* Pairs with hopped_running(). */
	smp_store_release(&base->running, NULL);
}

/*
 * Call back for the timer of @queue, which is out of the wheel. Its memory may be gone when the
 * callback returns: nothing of it is touched after that. @base->running is left as it is, for the
 * caller to clear before it gives up the lock.
 */
static __always_inline void run_callback(struct twheel_base *base, struct wheel_timer *queue)
	__must_hold(&base->lock)
{
	struct twheel_timer *timer = container_of(queue, struct twheel_timer, queue);
	void (*function)(struct twheel_timer *timer) = timer->function;

	debug_timer_deactivate(base, timer);
	if (trace_twheel_expire_enabled())
		trace_called(base, timer);
	base->expired++;
	/* Pairs with hopped_running(), as in base_ran(): what the last one did is done. */
	smp_store_release(&base->running, timer);
	raw_spin_unlock_irq(&base->lock);
	lockdep_call(timer, function);
	raw_spin_lock_irq(&base->lock);
	if (expiry_has_waiters(&base->expiry)) {
		base_ran(base);
		raw_spin_unlock_irq(&base->lock);
		expiry_yield(&base->expiry);
		raw_spin_lock_irq(&base->lock);
	}
}

/*
 * A clock to be looked at after each callback, which ktime_get() is too slow for: the
 * processor's counter. It has a pace of its own, and need not be exact: when it says that a run
 * is over, ktime_get() judges.
 */
static __always_inline u32 run_clock(void)
{
	return static_branch_unlikely(&run_has_no_counter) ? local_clock() : get_cycles();
}

/* What it shows after @ns, at most RUN_NS. */
static u32 run_clock_after(u64 ns)
{
	return run_clock() + (run_cycles ? div_u64(run_cycles * ns, RUN_NS) : ns);
}

/*
 * wheel_expire_many() of a base that has a tree beside the wheel. If its clock cannot be set, it
 * has none any more when the timers from before it had buckets have left that.
 */
static noinline u32 base_expire_back(struct twheel_base *base, u64 now, u32 *left,
				     struct wheel_timer **timers, u32 most)
{
	struct wheel_back *back = &base->settable.back;

	base->has_back = base_is_settable(base) || back->small || back->root ||
			 wheel_clk(&base->wheel) > now;
	return wheel_back_expire_many(&base->wheel, back, now, left, timers, most);
}

/* wheel_expire_many() of any base. */
static __always_inline u32 base_expire_many(struct twheel_base *base, u64 now, u32 *left,
					    struct wheel_timer **timers, u32 most)
{
	if (unlikely(base->has_back))
		return base_expire_back(base, now, left, timers, most);
	return wheel_expire_many(&base->wheel, now, left, timers, most);
}

/* Is it @until by run_clock(), or later? That is never far away. */
static __always_inline bool run_is_over(u32 until)
{
	return (s32)(run_clock() - until) >= 0;
}

/*
 * @timer is due, and has been taken out. If its last callback still runs on another CPU, where it
 * hopped away from, put it off to the next tick: no callback is called twice at once.
 */
static noinline bool base_hold_back(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (!hopped_running(timer))
		return false;
	/* It was neither armed nor has it expired. */
	base->wheel.added--;
	base->wheel.gone--;
	wheel_add(&base->wheel, &timer->queue, wheel_clk(&base->wheel) + 1);
	return true;
}

/* Call back for the timer of @queue, unless it has to wait for its last callback. */
static __always_inline void run_timer(struct twheel_base *base, struct wheel_timer *queue)
	__must_hold(&base->lock)
{
	if (unlikely(queue->flags & TWHEEL_HOPPED) &&
	    base_hold_back(base, container_of(queue, struct twheel_timer, queue)))
		return;
	run_callback(base, queue);
}

/*
 * Call back for up to @left of the timers that are due at clk, of which there are some, in a slot
 * of @nr_lists. Returns what is left of @left. Nobody but a run goes on to another slot.
 */
static __always_inline u32 run_slot(struct twheel_base *base, u32 left, u32 until, u32 nr_lists)
	__must_hold(&base->lock)
{
	struct wheel_slot slot = wheel_due_slot(&base->wheel);

	lockdep_assert_held(&base->lock);
	slot.mask = nr_lists - 1;
	do {
		run_timer(base, wheel_pop(&base->wheel, &slot));
	} while (--left && slot.bucket->n && !run_is_over(until));
	base_ran(base);
	return left;
}

/* Apart, so that each keeps what it needs in registers. */
static noinline u32 run_tick(struct twheel_base *base, u32 left, u32 until)
	__must_hold(&base->lock)
{
	return run_slot(base, left, until, WHEEL_LISTS);
}

static noinline u32 run_stop(struct twheel_base *base, u32 left, u32 until)
	__must_hold(&base->lock)
{
	return run_slot(base, left, until, WHEEL_STOP_LISTS);
}

/* run_callbacks() of a base that has a tree beside the wheel. */
static noinline u32 run_back(struct twheel_base *base, u64 now, u32 until)
	__must_hold(&base->lock)
{
	struct wheel_timer *queue;
	u32 left = TWHEEL_HOLD_OPS;

	while (base_expire_many(base, now, &left, &queue, 1)) {
		run_timer(base, queue);
		if (run_is_over(until))
			break;
	}
	base_ran(base);
	return TWHEEL_HOLD_OPS - left;
}

/*
 * Call back for what is due at tick @now, TWHEEL_HOLD_OPS operations at most. Each callback
 * breaks the lock hold. Returns the operations, fewer if it is @until by run_clock().
 */
static u32 run_callbacks(struct twheel_base *base, u64 now, u32 until)
	__must_hold(&base->lock)
{
	struct wheel *w = &base->wheel;
	u32 left = TWHEEL_HOLD_OPS;

	lockdep_assert_held(&base->lock);
	if (unlikely(base->has_back))
		return run_back(base, now, until);
	while (wheel_reach(w, now, &left) && left) {
		left = w->due < WHEEL_L0 ? run_stop(base, left, until) :
					   run_tick(base, left, until);
		if (run_is_over(until))
			break;
	}
	return TWHEEL_HOLD_OPS - left;
}

/* Hand the sink what is due at tick @now, a lock hold's worth. Returns the operations. */
static u32 run_sink(struct twheel_base *base, u64 now)
{
	struct twheel_timer *batch[TWHEEL_SINK_MAX];
	u32 left = TWHEEL_HOLD_OPS, nr = 0, more;

	lockdep_assert_held(&base->lock);
	static_assert(offsetof(struct twheel_timer, queue) == 0);
	do {
		more = base_expire_many(base, now, &left, (struct wheel_timer **)batch + nr,
					ARRAY_SIZE(batch) - nr);
		nr += more;
	} while (more && nr < ARRAY_SIZE(batch));
	if (nr && trace_twheel_expire_enabled())
		trace_expired(base, batch, nr);
	if (nr)
		base->sink->expired(base, batch, nr);
	base->expired += nr;
	return TWHEEL_HOLD_OPS - left;
}

/* Expire what is due. Returns false if it was too much for one run. */
static bool run_due(struct twheel_base *base, u64 begin)
	__must_hold(&base->lock)
{
	u64 time = begin, room = RUN_NS - min_t(u64, base->account.debt * 2, RUN_NS);
	u32 ops = 0;

	for (;;) {
		u64 now = base_tick(base, base_from_mono(base, time)), used = time - begin;

		if (!wheel_due(&base->wheel, now))
			return true;
		/* Whatever came before, a run gets something done. */
		if (ops && (ops >= RUN_OPS || used >= room))
			return false;
		/* Where timers were but moved no callback has done that. */
		if (ops) {
			raw_spin_unlock_irq(&base->lock);
			raw_spin_lock_irq(&base->lock);
		}
		ops += run_callbacks(base, now, run_clock_after(room - min(room, used)));
		time = ktime_get_ns();
	}
}

static void run_begin(struct twheel_base *base, u64 begin)
{
	lockdep_assert_held(&base->lock);
	if (base->put_off)
		trace_twheel_budget(base, begin - base->put_off);
	base->put_off = 0;
	account_settle(&base->account, begin, 2);
	base->in_run = true;
	base->armed = WHEEL_NEVER;
	base->wakeups++;
}

static void run_end(struct twheel_base *base, u64 since, bool finished)
{
	u64 now = ktime_get_ns(), used = run_took(now, since);

	lockdep_assert_held(&base->lock);
	account_charge(&base->account, now, used + RUN_COST_NS, 2);
	base->in_run = false;
	if (finished && !account_is_over(&base->account))
		base_arm(base);
	else
		base_defer(base, now, clamp_t(u64, max(base->account.debt * 2, used), DEFER_MIN_NS,
					      2 * DEBT_MAX_NS));
}

/*
 * The callback of a base's hrtimers. One runs at a time: a run starts the other hrtimer when it has
 * nothing more to do.
 */
static enum hrtimer_restart base_run(struct hrtimer *hrtimer)
{
	struct drive *drive = container_of(hrtimer, struct drive, hrtimer);
	struct twheel_base *base = drive->base;
	u64 begin = ktime_get_ns(), since = run_time(begin), moves;
	bool finished;

	expiry_lock(&base->expiry);
	raw_spin_lock_irq(&base->lock);
	moves = base->wheel.moves;
	base_next_drive(base, drive);
	run_begin(base, begin);
	finished = run_due(base, begin);
	run_end(base, since, finished);
	moves = base->wheel.moves - moves;
	base->worst = max_t(u64, base->worst, min_t(u64, moves, U16_MAX));
	raw_spin_unlock_irq(&base->lock);
	expiry_unlock(&base->expiry);
	return HRTIMER_NORESTART;
}

#include "twheel_dispatch.h"
#include "twheel_set.h"

/*
 * The base @timer belongs to at the moment, which may be moving from one CPU's to another's.
 * Whoever has a timer of a base keeps the base.
 */
static noinline struct twheel_base *base_of(const struct twheel_timer *timer)
{
	u32 id;

	while ((id = READ_ONCE(timer->queue.data)) & MIGRATING)
		cpu_relax();
	return cpu_base_of(id) ?: xa_load(&private_bases, id);
}

/*
 * Lock the base of @timer; mostly it is this CPU's. It may change until it is locked:
 *
 *	CPU 0: lock_base()			CPU 1: move_base()
 *	id = A
 *						id = A | MIGRATING
 *						unlock A, lock B
 *	lock A
 *						id = B
 *	id is not A any more: unlock A, again
 *
 * While MIGRATING is set nobody gets at the timer, so that CPU 1 needs not hold two
 * locks.
 */
static __always_inline struct twheel_base *lock_base(const struct twheel_timer *timer,
						     unsigned long *flags)
	__acquires(timer)
{
	for (;;) {
		struct twheel_base *base = raw_cpu_read(cpu_base);

		if (unlikely(READ_ONCE(timer->queue.data) != base->idle.data))
			base = base_of(timer);
		raw_spin_lock_irqsave(&base->lock, *flags);
		if (likely(READ_ONCE(timer->queue.data) == base->idle.data))
			return base;
		raw_spin_unlock_irqrestore(&base->lock, *flags);
	}
}

/* Would a timer of @base that is armed here go to this CPU's, unless its callback runs? */
static __always_inline bool base_is_elsewhere(const struct twheel_base *base)
{
	return this_cpu_read(cpu_base) != base && base->idle.data < first_private();
}

/* Make @timer, which is in no bucket of its locked base @from, one of @to. Returns that, locked. */
static struct twheel_base *move_to(struct twheel_base *from, struct twheel_timer *timer,
				   struct twheel_base *to)
{
	WRITE_ONCE(timer->queue.data, timer->queue.data | MIGRATING);
	raw_spin_unlock(&from->lock);
	raw_spin_lock(&to->lock);
	WRITE_ONCE(timer->queue.data, to->idle.data);
	return to;
}

static noinline struct twheel_base *move_here(struct twheel_base *base,
					      struct twheel_timer *timer)
{
	if (base->idle.data >= first_private() || base->running == timer)
		return base;
	return move_to(base, timer, this_cpu_read(cpu_base));
}

/*
 * The base, locked instead of @base, that @timer shall be added to: this CPU's for a
 * timer of the CPUs' bases. One whose callback is running stays: where it runs is
 * where cancel_sync() looks for it.
 */
static __always_inline struct twheel_base *move_base(struct twheel_base *base,
						     struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (unlikely(this_cpu_read(cpu_base) != base))
		base = move_here(base, timer);
	return base;
}

/**
 * __twheel_init() - twheel_init() and its like
 * @base:	a private base without a sink, or NULL for the CPUs' bases
 * @timer:	memory that is no armed timer
 * @function:	the callback
 * @on_stack:	the memory is on the stack
 * @name:	for lockdep
 * @key:	for lockdep, one for each place that initialises timers
 *
 * Context: Any.
 */
void __twheel_init(struct twheel_base *base, struct twheel_timer *timer,
		   void (*function)(struct twheel_timer *), bool on_stack,
		   const char *name, struct lock_class_key *key)
{
	WARN_ON_ONCE(!function || (base && base->sink));
	debug_timer_init(timer, on_stack);
	memset(timer, 0, sizeof(*timer));
	timer->function = function;
	timer->queue.flags = function ? 0 : TWHEEL_SHUT;
	timer->queue.data = (base ?: raw_cpu_read(cpu_base))->idle.data;
	lockdep_init_timer(timer, name, key);
}
EXPORT_SYMBOL_GPL(__twheel_init);

static bool is_shut(const struct twheel_timer *timer)
{
	return timer->queue.flags & TWHEEL_SHUT;
}

/* The flags of a timer of a base with a sink are its owner's. */
static bool base_has_shut(const struct twheel_base *base, const struct twheel_timer *timer)
{
	return is_shut(timer) && !base->sink;
}

/* When to arm. */
enum arm_mode {
	ARM_ALWAYS,
	ARM_PENDING,		/* only if it is armed already */
	ARM_EARLIER,		/* only if it is not armed, or for later */
};

static bool arm_is_wanted(const struct twheel_base *base, const struct twheel_timer *timer,
			  ktime_t expires, enum arm_mode mode)
{
	bool pending = wheel_pending(&timer->queue);

	if (is_shut(timer))
		return false;
	if (mode == ARM_PENDING)
		return pending;
	return mode == ARM_ALWAYS || !pending ||
	       base_tick_after(base, expires) < timer->queue.expires;
}

/*
 * Arm @timer for @time, or for @time from now. Returns whether it was armed. Inlined, so that
 * each of its callers has only what it needs of it: this is the path that is hot.
 */
static __always_inline int timer_arm(struct twheel_timer *timer, ktime_t time, bool relative,
				     enum arm_mode mode)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	base = lock_base(timer, &flags);
	if (relative)
		time = ktime_add_safe(base_now(base), max_t(ktime_t, time, 0));
	if (unlikely(!arm_is_wanted(base, timer, time, mode))) {
		pending = wheel_pending(&timer->queue);
	} else if (!base_is_elsewhere(base) && base_put_off(base, timer, time)) {
		pending = true;
	} else {
		pending = base_unlink(base, timer);
		base = move_base(base, timer);
		base_forward(base);
		if (base_add(base, timer, time, pending))
			base_arm(base);
	}
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}

/* Is @timer to be armed for @range, of which any tick will do? */
static bool range_is_wanted(const struct twheel_timer *timer, const struct ticks *range,
			    enum arm_mode mode)
{
	bool pending = wheel_pending(&timer->queue);

	if (is_shut(timer))
		return false;
	if (mode == ARM_PENDING)
		return pending;
	return mode == ARM_ALWAYS || !pending || range->last < timer->queue.expires;
}

/* timer_arm() of a timer that may be late by @tolerance. */
static int timer_arm_range(struct twheel_timer *timer, ktime_t time, u64 tolerance, bool relative,
			   enum arm_mode mode)
{
	struct twheel_base *base;
	unsigned long flags;
	struct ticks range;
	int pending;

	base = lock_base(timer, &flags);
	if (relative)
		time = ktime_add_safe(base_now(base), max_t(ktime_t, time, 0));
	range = base_range(base, time, tolerance);
	if (unlikely(!range_is_wanted(timer, &range, mode))) {
		pending = wheel_pending(&timer->queue);
	} else if (!base_is_elsewhere(base) && base_put_off_range(base, timer, &range)) {
		pending = true;
	} else {
		pending = base_unlink(base, timer);
		base = move_base(base, timer);
		base_forward(base);
		if (base_add_range(base, timer, &range, pending))
			base_arm(base);
	}
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}

/*
 * Arm @timer if it is idle, not shut down, and of this CPU's base, or of what was it a moment
 * ago: that is the path that is hot. Returns false, with nothing done, if it is not.
 */
static __always_inline bool timer_add_hot(struct twheel_timer *timer, ktime_t time, u64 tolerance,
					  bool relative)
{
	struct twheel_base *base = raw_cpu_read(cpu_base);
	unsigned long flags;

	if (unlikely(READ_ONCE(timer->queue.data) != base->idle.data))
		return false;
	raw_spin_lock_irqsave(&base->lock, flags);
	if (unlikely(timer->queue.word != base->idle.word)) {
		raw_spin_unlock_irqrestore(&base->lock, flags);
		return false;
	}
	if (relative)
		time = ktime_add_safe(base_now(base), max_t(ktime_t, time, 0));
	base_forward(base);
	if (tolerance ? base_add_range_hot(base, timer, time, tolerance) :
			base_add_hot(base, timer, time))
		base_arm(base);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return true;
}

/**
 * twheel_mod() - arm a timer, whether it is armed already or not
 * @timer:	the timer
 * @delay:	ns from now
 *
 * The same as cancelling and adding, but nobody can come between. When the timer's
 * callback is running the timer is armed for another run of it.
 *
 * Context: Any.
 * Return: 1 if the timer was armed, 0 if not. A timer that was shut down stays idle.
 */
int twheel_mod(struct twheel_timer *timer, ktime_t delay)
{
	return timer_arm(timer, delay, true, ARM_ALWAYS);
}
EXPORT_SYMBOL_GPL(twheel_mod);

/**
 * twheel_mod_abs() - twheel_mod() for a deadline
 * @timer:	the timer
 * @expires:	when, as a time of the base's clock; one that is over means the next
 *		tick
 *
 * Context: Any.
 * Return: 1 if the timer was armed, 0 if not.
 */
int twheel_mod_abs(struct twheel_timer *timer, ktime_t expires)
{
	return timer_arm(timer, expires, false, ARM_ALWAYS);
}
EXPORT_SYMBOL_GPL(twheel_mod_abs);

/**
 * twheel_mod_pending() - arm a timer anew if it is armed
 * @timer:	the timer
 * @delay:	ns from now
 *
 * One that has expired meanwhile stays so: its callback runs once.
 *
 * Context: Any.
 * Return: 1 if the timer was armed, and is for @delay now; 0 if it was not, and is not.
 */
int twheel_mod_pending(struct twheel_timer *timer, ktime_t delay)
{
	return timer_arm(timer, delay, true, ARM_PENDING);
}
EXPORT_SYMBOL_GPL(twheel_mod_pending);

/**
 * twheel_reduce() - arm a timer, or make it earlier
 * @timer:	the timer
 * @delay:	ns from now
 *
 * A timer that is armed for an earlier or the same tick is left alone.
 *
 * Context: Any.
 * Return: 1 if the timer was armed, 0 if not.
 */
int twheel_reduce(struct twheel_timer *timer, ktime_t delay)
{
	return timer_arm(timer, delay, true, ARM_EARLIER);
}
EXPORT_SYMBOL_GPL(twheel_reduce);

/**
 * twheel_add() - arm a timer that is not armed
 * @timer:	the timer
 * @delay:	ns from now
 *
 * Context: Any.
 */
void twheel_add(struct twheel_timer *timer, ktime_t delay)
{
	if (unlikely(!timer_add_hot(timer, delay, 0, true)))
		WARN_ON_ONCE(twheel_mod(timer, delay));
}
EXPORT_SYMBOL_GPL(twheel_add);

/**
 * twheel_add_abs() - arm a timer that is not armed for a deadline
 * @timer:	the timer
 * @expires:	when, as a time of the base's clock; one that is over means the next
 *		tick
 *
 * Context: Any.
 */
void twheel_add_abs(struct twheel_timer *timer, ktime_t expires)
{
	if (unlikely(!timer_add_hot(timer, expires, 0, false)))
		WARN_ON_ONCE(twheel_mod_abs(timer, expires));
}
EXPORT_SYMBOL_GPL(twheel_add_abs);

/* The locked @base of the idle @timer, which shall be added to that of @cpu now: that, locked. */
static struct twheel_base *move_on(struct twheel_base *base, struct twheel_timer *timer,
				   unsigned int cpu)
{
	struct twheel_base *to = per_cpu(pinned_base, cpu);

	if (base == to)
		return base;
	/* Its own callback may be the caller. */
	if (base->running == timer)
		timer->queue.flags |= TWHEEL_HOPPED;
	return move_to(base, timer, to);
}

/**
 * twheel_add_on() - arm a timer that is not armed, on a CPU
 * @timer:	the timer, of the CPUs' bases
 * @delay:	ns from now
 * @cpu:	the CPU
 *
 * The callback runs on that CPU, also if the CPU is to be left alone (nohz_full=, isolcpus=,
 * isolated cpusets). If it is off, or goes off, the callback runs on another, in time all the
 * same. A callback may arm its own timer on another CPU: it is called there when it has returned
 * here, a tick later if need be.
 *
 * Who arms the timer by another call, on any CPU, takes it to that one; but a callback that does
 * stays on its CPU.
 *
 * Context: Any.
 * Return: 0, also for a timer that was shut down, which stays idle. -EINVAL for a CPU that is not
 * possible, or for a timer of a private base. -EBUSY if the timer is armed. Nothing has changed
 * then.
 */
int twheel_add_on(struct twheel_timer *timer, ktime_t delay, unsigned int cpu)
{
	struct twheel_base *base;
	unsigned long flags;
	int err = 0;

	if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	base = lock_base(timer, &flags);
	if (base->idle.data >= first_private()) {
		err = -EINVAL;
	} else if (wheel_pending(&timer->queue)) {
		err = -EBUSY;
	} else if (!is_shut(timer)) {
		delay = ktime_add_safe(base_now(base), max_t(ktime_t, delay, 0));
		base = move_on(base, timer, cpu);
		base_forward(base);
		if (base_add(base, timer, delay, false))
			base_arm(base);
	}
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return err;
}
EXPORT_SYMBOL_GPL(twheel_add_on);

/**
 * twheel_mod_range() - twheel_mod() of a timer that may be late
 * @timer:	the timer
 * @delay:	ns from now
 * @tolerance:	ns that it may be later; 0 if it is exact
 *
 * A timer that is armed for a tick that will do stays as it is.
 *
 * Context: Any.
 * Return: as twheel_mod().
 */
int twheel_mod_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance)
{
	return timer_arm_range(timer, delay, tolerance, true, ARM_ALWAYS);
}
EXPORT_SYMBOL_GPL(twheel_mod_range);

/**
 * twheel_mod_abs_range() - twheel_mod_abs() of a timer that may be late
 * @timer:	the timer
 * @expires:	as for twheel_mod_abs()
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Any.
 * Return: as twheel_mod_abs().
 */
int twheel_mod_abs_range(struct twheel_timer *timer, ktime_t expires, u64 tolerance)
{
	return timer_arm_range(timer, expires, tolerance, false, ARM_ALWAYS);
}
EXPORT_SYMBOL_GPL(twheel_mod_abs_range);

/**
 * twheel_mod_pending_range() - twheel_mod_pending() of a timer that may be late
 * @timer:	the timer
 * @delay:	ns from now
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Any.
 * Return: as twheel_mod_pending().
 */
int twheel_mod_pending_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance)
{
	return timer_arm_range(timer, delay, tolerance, true, ARM_PENDING);
}
EXPORT_SYMBOL_GPL(twheel_mod_pending_range);

/**
 * twheel_reduce_range() - twheel_reduce() of a timer that may be late
 * @timer:	the timer
 * @delay:	ns from now
 * @tolerance:	as for twheel_mod_range()
 *
 * A timer that is armed for a tick no later than @delay and @tolerance is left alone.
 *
 * Context: Any.
 * Return: as twheel_reduce().
 */
int twheel_reduce_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance)
{
	return timer_arm_range(timer, delay, tolerance, true, ARM_EARLIER);
}
EXPORT_SYMBOL_GPL(twheel_reduce_range);

/**
 * twheel_add_range() - twheel_add() of a timer that may be late
 * @timer:	the timer
 * @delay:	ns from now
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Any.
 */
void twheel_add_range(struct twheel_timer *timer, ktime_t delay, u64 tolerance)
{
	if (unlikely(!timer_add_hot(timer, delay, tolerance, true)))
		WARN_ON_ONCE(twheel_mod_range(timer, delay, tolerance));
}
EXPORT_SYMBOL_GPL(twheel_add_range);

/**
 * twheel_add_abs_range() - twheel_add_abs() of a timer that may be late
 * @timer:	the timer
 * @expires:	as for twheel_add_abs()
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Any.
 */
void twheel_add_abs_range(struct twheel_timer *timer, ktime_t expires, u64 tolerance)
{
	if (unlikely(!timer_add_hot(timer, expires, tolerance, false)))
		WARN_ON_ONCE(twheel_mod_abs_range(timer, expires, tolerance));
}
EXPORT_SYMBOL_GPL(twheel_add_abs_range);

/**
 * twheel_cancel() - disarm a timer
 * @timer:	the timer
 *
 * Its callback may be running, or be about to run, on another CPU when this returns
 * 0, so that neither the timer nor what its callback uses may be freed then.
 *
 * Context: Any.
 * Return: 1 if the timer was armed, and its callback will not be called for that; 0
 * if it was not armed.
 */
int twheel_cancel(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	base = lock_base(timer, &flags);
	pending = base_del(base, timer);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_cancel);

/*
 * Cancel @timer. Returns what twheel_cancel() does, or -1 if its callback is running: then
 * it was not cancelled. @running is where.
 */
static int try_cancel(struct twheel_timer *timer, struct twheel_base **running)
{
	struct twheel_base *base;
	unsigned long flags;
	int ret = -1;

	base = lock_base(timer, &flags);
	*running = running_base(base, timer);
	if (!*running)
		ret = base_del(base, timer);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return ret;
}

/**
 * twheel_try_cancel() - disarm a timer, unless its callback is running
 * @timer:	the timer
 *
 * Unlike twheel_cancel() it tells whether it may be freed.
 *
 * Context: Any.
 * Return: 1 if the timer was armed, 0 if not: it is idle now, and its callback is not
 * running. -1 if its callback is running; then it may be armed or not, as before.
 */
int twheel_try_cancel(struct twheel_timer *timer)
{
	struct twheel_base *running;

	return try_cancel(timer, &running);
}
EXPORT_SYMBOL_GPL(twheel_try_cancel);

static int cancel_and_wait(struct twheel_timer *timer)
{
	struct expiry *told = NULL;
	struct twheel_base *running;
	int ret;

	WARN_ON_ONCE(in_hardirq());
	lockdep_wait(timer);
	while ((ret = try_cancel(timer, &running)) < 0)
		expiry_wait(&running->expiry, &told);
	expiry_wait_end(told);
	return ret;
}

/**
 * twheel_cancel_sync() - disarm a timer and wait for its callback
 * @timer:	the timer
 *
 * When this returns the timer is not armed and its callback is not running, and if
 * nobody arms the timer again it may be freed. A callback that arms its own timer is
 * dealt with; somebody else who does is the caller's to stop, or see
 * twheel_shutdown_sync().
 *
 * The caller may hold no lock that the callback takes:
 *
 *	CPU 0					CPU 1
 *						callback runs
 *	lock(x)
 *	twheel_cancel_sync()			lock(x)
 *	  waits for the callback		  waits for x
 *
 * lockdep reports that, also when the two do not meet.
 *
 * Context: Task context, or softirq where the callback cannot be interrupted by the
 * caller; on PREEMPT_RT only where it may sleep. Never from the callback itself.
 * Return: 1 if the timer was armed, 0 if not.
 */
int twheel_cancel_sync(struct twheel_timer *timer)
{
	return cancel_and_wait(timer);
}
EXPORT_SYMBOL_GPL(twheel_cancel_sync);

/**
 * twheel_shutdown_sync() - disarm a timer for good and wait for its callback
 * @timer:	the timer
 *
 * As twheel_cancel_sync(), and whoever tries to arm the timer from now on, its own
 * callback included, does so in vain, without being told. This is how to end a timer
 * that is armed by something that is itself started by the timer, as a work item. Only
 * twheel_init() makes the timer usable again.
 *
 * Context: As twheel_cancel_sync().
 * Return: 1 if the timer was armed, 0 if not.
 */
int twheel_shutdown_sync(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	/* In one hold: who arms it before is undone, who comes after it finds it shut down. */
	base = lock_base(timer, &flags);
	timer->queue.flags |= TWHEEL_SHUT;
	pending = base_del(base, timer);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return cancel_and_wait(timer) | pending;
}
EXPORT_SYMBOL_GPL(twheel_shutdown_sync);

/**
 * twheel_expires() - when will a timer expire?
 * @timer:	the timer
 *
 * Context: Any.
 * Return: the beginning of its tick, as a time of the base's clock: the deadline rounded
 * up. KTIME_MAX if it is not armed.
 */
ktime_t twheel_expires(const struct twheel_timer *timer)
{
	ktime_t expires = KTIME_MAX;
	struct twheel_base *base;
	unsigned long flags;

	base = lock_base(timer, &flags);
	if (twheel_pending(timer))
		expires = base_time(base, timer->queue.expires);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return expires;
}
EXPORT_SYMBOL_GPL(twheel_expires);

/**
 * twheel_remaining() - in how many ns will a timer expire?
 * @timer:	the timer
 *
 * Context: Any.
 * Return: ns until the beginning of its tick; 0 if that has come, or if it is not armed.
 */
ktime_t twheel_remaining(const struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;
	ktime_t left = 0;

	base = lock_base(timer, &flags);
	if (twheel_pending(timer))
		left = base_time(base, timer->queue.expires) - base_now(base);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return max_t(ktime_t, left, 0);
}
EXPORT_SYMBOL_GPL(twheel_remaining);

/* What twheel_task->stage says of a task with TWHEEL_TASK_PROCESS. */
enum {
	STAGE_IDLE,
	STAGE_STARTED,		/* armed, or its expiry is under way */
	STAGE_DUE,		/* its work is to call the function */
};

/*
 * Will the work of @task call the function, unless it is told otherwise now? What an expiry in
 * softirq context is about to call cannot be taken back.
 */
static bool task_is_coming(const struct twheel_task *task)
{
	return (task->flags & TWHEEL_TASK_PROCESS) && task->stage != STAGE_IDLE;
}

/*
 * Arm @task, whose timer's base is locked, for its deadline; if @rearmed, base_unlink() has
 * taken it out for this. Returns the locked base.
 */
static struct twheel_base *task_arm(struct twheel_base *base, struct twheel_task *task,
				    bool rearmed)
{
	struct ticks range;

	task->stage = STAGE_STARTED;
	base = move_base(base, &task->timer);
	base_forward(base);
	range = base_range(base, task->deadline, task->tolerance);
	if (base_add_range(base, &task->timer, &range, rearmed))
		base_arm(base);
	return base;
}

/* The deadline after this one, and how many were missed. */
static void task_next_deadline(struct twheel_task *task, u64 now)
{
	u64 missed = 0;

	if (task->flags & TWHEEL_TASK_DELAY) {
		task->deadline = ktime_add_safe(now, task->period);
		return;
	}
	/* It is not over any more if the clock was set back. */
	if (now > task->deadline)
		missed = div64_u64(now - task->deadline, task->period);
	WRITE_ONCE(task->overruns, task->overruns + missed);
	task->deadline = ktime_add_safe(task->deadline, (missed + 1) * task->period);
}

/*
 * Call the function. Only one that wants to be called again promises that the task is
 * there still. It is armed for the next period no earlier than this, so that nothing has
 * to be undone for one that stops; the periods that passed are found by counting.
 *
 * Somebody may have cancelled the task meanwhile, then it is not active, or started it
 * anew, then it is armed, or due already: all that is left so.
 */
static void task_call(struct twheel_task *task)
{
	bool periodic = READ_ONCE(task->period);
	struct twheel_base *base;
	unsigned long flags;

	if (task->function(task) != TWHEEL_AGAIN || !periodic)
		return;
	base = lock_base(&task->timer, &flags);
	if (task->active && !is_shut(&task->timer) && task->period &&
	    !twheel_pending(&task->timer) && !task_is_coming(task)) {
		task_next_deadline(task, base_now(base));
		base = task_arm(base, task, false);
	}
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

/*
 * The time of @task has come, and its work is to call it. A work item cannot be told what it was
 * queued for. So a cancel or a start between the expiry and the work takes back what the
 * expiry said:
 *
 *	CPU 0: expiry		CPU 1				CPU 0: work
 *	due, queue the work
 *				cancel, start: not due
 *								finds it not due
 *	the new time comes:
 *	due, queue the work
 *								calls the function
 *
 * If the cancel or the start comes before the expiry has said so, the task is idle, or armed again.
 */
static void task_set_due(struct twheel_task *task)
{
	struct twheel_base *base;
	unsigned long flags;

	base = lock_base(&task->timer, &flags);
	if (task->stage == STAGE_STARTED && !twheel_pending(&task->timer))
		task->stage = STAGE_DUE;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	queue_work(task_queue, &task->work);
}

/*
 * Is @task due, and is it this work that is to call it? Then it is not due any more. The function
 * may free the task: so an expiry that is under way, which queues the work, is waited for. If it
 * has queued the work again since that began, the next one is to call:
 *
 *	CPU 0: work			CPU 1
 *	begins: is not queued
 *					start
 *					expiry: due, queue the work
 *	finds it due, but queued
 *	begins: calls the function
 */
static bool task_take_due(struct twheel_task *task)
{
	struct expiry *told = NULL;
	struct twheel_base *base;
	unsigned long flags;
	bool due;

	for (;;) {
		base = lock_base(&task->timer, &flags);
		if (base->running != &task->timer)
			break;
		raw_spin_unlock_irqrestore(&base->lock, flags);
		expiry_wait(&base->expiry, &told);
	}
	due = task->stage == STAGE_DUE && !work_pending(&task->work);
	if (due)
		task->stage = STAGE_IDLE;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	expiry_wait_end(told);
	return due;
}

/**
 * twheel_task_work() - private to twheel_task_init()
 * @work:	of the task
 */
void twheel_task_work(struct work_struct *work)
{
	struct twheel_task *task = container_of(work, struct twheel_task, work);

	if (task_take_due(task))
		task_call(task);
}
EXPORT_SYMBOL_GPL(twheel_task_work);

/**
 * twheel_task_expired() - private to twheel_task_init()
 * @timer:	of the task
 */
void twheel_task_expired(struct twheel_timer *timer)
{
	struct twheel_task *task = container_of(timer, struct twheel_task, timer);

	if (task->flags & TWHEEL_TASK_PROCESS)
		task_set_due(task);
	else
		task_call(task);
}
EXPORT_SYMBOL_GPL(twheel_task_expired);

/**
 * twheel_task_start_range() - start a task that may be late, whether it is started already or not
 * @task:	the task
 * @delay:	ns from now until it is due first
 * @period:	ns from then on, 0 to be called once
 * @tolerance:	ns that it may be called later each time, 0 if it is exact
 *
 * The phase is kept: how late it is called says nothing of the next time. If @tolerance is longer
 * than
 * @period, periods that pass before it is called are left out.
 *
 * Context: Any.
 * Return: as twheel_task_cancel(): 1 if what the task was started for before will not come. Or
 * -EINVAL for a negative period, and for a tolerance beyond KTIME_MAX.
 */
int twheel_task_start_range(struct twheel_task *task, ktime_t delay, ktime_t period,
			    u64 tolerance)
{
	struct twheel_base *base;
	unsigned long flags;
	bool armed;
	int pending;

	if (period < 0 || tolerance > KTIME_MAX)
		return -EINVAL;
	base = lock_base(&task->timer, &flags);
	if (is_shut(&task->timer)) {
		raw_spin_unlock_irqrestore(&base->lock, flags);
		return 0;
	}
	armed = base_unlink(base, &task->timer);
	pending = armed | task_is_coming(task);
	task->active = true;
	task->overruns = 0;
	WRITE_ONCE(task->period, period);
	task->tolerance = tolerance;
	task->deadline = ktime_add_safe(base_now(base), max_t(ktime_t, delay, 0));
	base = task_arm(base, task, armed);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_task_start_range);

/**
 * twheel_task_start() - start a task, whether it is started already or not
 * @task:	the task
 * @delay:	as for twheel_task_start_range()
 * @period:	as for twheel_task_start_range()
 *
 * Context: Any.
 * Return: as twheel_task_start_range().
 */
int twheel_task_start(struct twheel_task *task, ktime_t delay, ktime_t period)
{
	return twheel_task_start_range(task, delay, period, 0);
}
EXPORT_SYMBOL_GPL(twheel_task_start);

/*
 * Stop @task. Returns whether that keeps its function from being called: it was armed, or its
 * work was to call it.
 */
static int task_stop(struct twheel_task *task)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	base = lock_base(&task->timer, &flags);
	task->active = false;
	pending = base_del(base, &task->timer) | task_is_coming(task);
	task->stage = STAGE_IDLE;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}

/**
 * twheel_task_cancel() - stop a task
 * @task:	the task
 *
 * Its function may be running, or be about to run, when this returns; after that it is not
 * called again until the task is started.
 *
 * Context: Any.
 * Return: 1 if the task was armed, or with TWHEEL_TASK_PROCESS due and its function not called
 * yet: for that it will not be. 0 if not.
 */
int twheel_task_cancel(struct twheel_task *task)
{
	return task_stop(task);
}
EXPORT_SYMBOL_GPL(twheel_task_cancel);

static int task_cancel_and_wait(struct twheel_task *task, bool shutdown)
{
	int pending = task_stop(task);

	pending |= shutdown ? twheel_shutdown_sync(&task->timer) :
			      cancel_and_wait(&task->timer);
	if (task->flags & TWHEEL_TASK_PROCESS)
		cancel_work_sync(&task->work);
	return pending;
}

/**
 * twheel_task_cancel_sync() - stop a task and wait for its function
 * @task:	the task
 *
 * When this returns the task is not armed, its function is not running, and if nobody
 * starts it again it may be freed. The caller may hold no lock that the function takes.
 *
 * Context: As twheel_cancel_sync(); with TWHEEL_TASK_PROCESS only where it may sleep. Never
 * from the function itself.
 * Return: 1 if the task was armed, or due and its function not called yet; 0 if not.
 */
int twheel_task_cancel_sync(struct twheel_task *task)
{
	return task_cancel_and_wait(task, false);
}
EXPORT_SYMBOL_GPL(twheel_task_cancel_sync);

/**
 * twheel_task_shutdown_sync() - stop a task for good and wait for its function
 * @task:	the task
 *
 * As twheel_task_cancel_sync(), and whoever starts the task from now on does so in vain.
 *
 * Context: As twheel_task_cancel_sync().
 * Return: As twheel_task_cancel_sync().
 */
int twheel_task_shutdown_sync(struct twheel_task *task)
{
	return task_cancel_and_wait(task, true);
}
EXPORT_SYMBOL_GPL(twheel_task_shutdown_sync);

/* Arm @timer, as twheel_add_array_range(). */
static void array_add(struct twheel_base *base, struct twheel_timer *timer, ktime_t expires,
		      u64 tolerance)
{
	struct ticks range;

	if (!tolerance) {
		base_add(base, timer, expires, false);
		return;
	}
	range = base_range(base, expires, tolerance);
	base_add_range(base, timer, &range, false);
}

/**
 * twheel_add_array_range() - arm many timers, which may be late
 * @timers:	timers of the CPUs' bases, idle, their callbacks not running, and used by
 *		nobody else at the moment; not shut down
 * @delays:	ns from now, for each
 * @tolerances:	as for twheel_add_range(), for each; NULL if all are exact
 * @nr:		how many
 *
 * As twheel_add_range() for each, at the cost of one lock hold and one look at the clock for
 * 64 of them.
 *
 * Context: Any, but in proportion to @nr.
 */
void twheel_add_array_range(struct twheel_timer **timers, const ktime_t *delays,
			    const u64 *tolerances, unsigned int nr)
{
	unsigned int i = 0, end;

	while (i < nr) {
		struct twheel_base *base = raw_cpu_read(cpu_base);
		unsigned long flags;
		ktime_t now = twheel_lock(base, &flags);

		for (end = min(i + TWHEEL_HOLD_OPS, nr); i < end; i++) {
			WARN_ON_ONCE(twheel_pending(timers[i]));
			WRITE_ONCE(timers[i]->queue.data, base->idle.data);
			array_add(base, timers[i],
				  ktime_add_safe(now, max_t(ktime_t, delays[i], 0)),
				  tolerances ? tolerances[i] : 0);
		}
		twheel_unlock(base, flags);
	}
}
EXPORT_SYMBOL_GPL(twheel_add_array_range);

/**
 * twheel_add_array() - arm many timers
 * @timers:	as for twheel_add_array_range()
 * @delays:	as for twheel_add_array_range()
 * @nr:		how many
 *
 * twheel_add_array_range() of exact timers.
 *
 * Context: Any, but in proportion to @nr.
 */
void twheel_add_array(struct twheel_timer **timers, const ktime_t *delays, unsigned int nr)
{
	twheel_add_array_range(timers, delays, NULL, nr);
}
EXPORT_SYMBOL_GPL(twheel_add_array);

/**
 * twheel_lock() - begin a number of calls on one base
 * @base:	a private base
 * @flags:	where to keep the interrupt state, for twheel_unlock()
 *
 * Between this and twheel_unlock() only a bounded number of twheel_add_locked() and
 * twheel_cancel_locked() may be done, TWHEEL_HOLD_OPS or so: interrupts are off.
 *
 * Context: Any. Takes the base's raw lock.
 * Return: the time of the base's clock.
 */
ktime_t twheel_lock(struct twheel_base *base, unsigned long *flags)
	__acquires(&base->lock)
{
	ktime_t now;

	raw_spin_lock_irqsave(&base->lock, *flags);
	now = base_now(base);
	base->forwarded = jiffies;
	wheel_forward(&base->wheel, base_tick(base, now));
	return now;
}
EXPORT_SYMBOL_GPL(twheel_lock);

/**
 * twheel_now() - the time of a base's clock
 * @base:	a private base
 *
 * Context: Any.
 * Return: the time.
 */
ktime_t twheel_now(const struct twheel_base *base)
{
	return base_now(base);
}
EXPORT_SYMBOL_GPL(twheel_now);

/**
 * twheel_raw_lock() - the lock that twheel_lock() takes
 * @base:	a private base
 *
 * For who needs no look at the clock. Who has used it for the functions on a locked base gives it
 * back by twheel_unlock() or twheel_unlock_irq(); who has only changed what is their own may unlock
 * it as any lock.
 *
 * Context: Any.
 * Return: the lock.
 */
raw_spinlock_t *twheel_raw_lock(struct twheel_base *base)
{
	return &base->lock;
}
EXPORT_SYMBOL_GPL(twheel_raw_lock);

/**
 * twheel_relock() - go on with a number of calls on one base
 * @base:	a private base
 * @flags:	where to keep the interrupt state, for twheel_unlock()
 *
 * twheel_lock(), without a look at the clock, for who has just called that and twheel_unlock().
 * What is added meanwhile for a tick that is over expires in the next tick all the same.
 *
 * Context: Any. Takes the base's raw lock.
 */
void twheel_relock(struct twheel_base *base, unsigned long *flags)
	__acquires(&base->lock)
{
	raw_spin_lock_irqsave(&base->lock, *flags);
}
EXPORT_SYMBOL_GPL(twheel_relock);

/* Timers may have been added: see that they will be served. */
static __always_inline void base_rearm(struct twheel_base *base)
{
	if (base->sink)
		base_enter(base, 0);
	else
		base_arm(base);
}

/**
 * twheel_unlock() - end what twheel_lock() began
 * @base:	the base
 * @flags:	as from twheel_lock()
 *
 * Context: Releases the base's raw lock.
 */
void twheel_unlock(struct twheel_base *base, unsigned long flags)
	__releases(&base->lock)
{
	base_rearm(base);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}
EXPORT_SYMBOL_GPL(twheel_unlock);

/**
 * twheel_unlock_irq() - end what began with twheel_raw_lock() and raw_spin_lock_irq()
 * @base:	the base
 *
 * Context: Releases the base's raw lock, interrupts go on.
 */
void twheel_unlock_irq(struct twheel_base *base)
	__releases(&base->lock)
{
	base_rearm(base);
	raw_spin_unlock_irq(&base->lock);
}
EXPORT_SYMBOL_GPL(twheel_unlock_irq);

/**
 * twheel_add_locked() - arm an idle timer of a locked base
 * @base:	the base
 * @timer:	the timer
 * @expires:	when, as a time of the base's clock; one that is over means the next
 *		tick
 *
 * Context: Between twheel_lock() and twheel_unlock().
 */
void twheel_add_locked(struct twheel_base *base, struct twheel_timer *timer,
		       ktime_t expires)
{
	if (unlikely(base_has_shut(base, timer)))
		return;
	base_forward(base);
	base_add_any(base, timer, expires, false);
}
EXPORT_SYMBOL_GPL(twheel_add_locked);

/**
 * twheel_mod_locked() - arm a timer of a locked base, whether it is armed already or not
 * @base:	the base
 * @timer:	the timer
 * @expires:	as for twheel_add_locked()
 *
 * Context: Between twheel_lock() and twheel_unlock().
 * Return: true if it was armed. Then it has not expired, and will at @expires only.
 */
bool twheel_mod_locked(struct twheel_base *base, struct twheel_timer *timer,
		       ktime_t expires)
{
	bool pending;

	if (base_put_off(base, timer, expires))
		return true;
	pending = base_unlink(base, timer);
	if (unlikely(base_has_shut(base, timer)))
		return pending;
	base_forward(base);
	base_add_any(base, timer, expires, pending);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_mod_locked);

/**
 * twheel_add_range_locked() - twheel_add_locked() of a timer that may be late
 * @base:	the base
 * @timer:	the timer
 * @expires:	as for twheel_add_locked()
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Between twheel_lock() and twheel_unlock().
 */
void twheel_add_range_locked(struct twheel_base *base, struct twheel_timer *timer,
			     ktime_t expires, u64 tolerance)
{
	struct ticks range;

	if (unlikely(base_has_shut(base, timer)))
		return;
	base_forward(base);
	range = base_range(base, expires, tolerance);
	base_add_range(base, timer, &range, false);
}
EXPORT_SYMBOL_GPL(twheel_add_range_locked);

/**
 * twheel_mod_range_locked() - twheel_mod_locked() of a timer that may be late
 * @base:	the base
 * @timer:	the timer
 * @expires:	as for twheel_add_locked()
 * @tolerance:	as for twheel_mod_range()
 *
 * Context: Between twheel_lock() and twheel_unlock().
 * Return: as twheel_mod_locked().
 */
bool twheel_mod_range_locked(struct twheel_base *base, struct twheel_timer *timer,
			     ktime_t expires, u64 tolerance)
{
	struct ticks range = base_range(base, expires, tolerance);
	bool pending;

	if (base_put_off_range(base, timer, &range))
		return true;
	pending = base_unlink(base, timer);
	if (unlikely(base_has_shut(base, timer)))
		return pending;
	base_forward(base);
	base_add_range(base, timer, &range, pending);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_mod_range_locked);

/**
 * twheel_cancel_locked() - disarm a timer of a locked base
 * @base:	the base
 * @timer:	the timer
 *
 * Context: Between twheel_lock() and twheel_unlock().
 * Return: true if it was armed. Then it has not expired and will not.
 */
bool twheel_cancel_locked(struct twheel_base *base, struct twheel_timer *timer)
{
	return base_del(base, timer);
}
EXPORT_SYMBOL_GPL(twheel_cancel_locked);

/**
 * twheel_get_stats() - read the counters of a base
 * @base:	the base
 * @stats:	filled in
 *
 * Context: Any.
 */
void twheel_get_stats(struct twheel_base *base, struct twheel_stats *stats)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	*stats = (struct twheel_stats) {
		.pending	= wheel_nr(&base->wheel),
		.added		= base->wheel.added,
		.rearmed	= base->rearmed,
		.expired	= base->expired,
		.wakeups	= base->wakeups,
		.moves		= base->wheel.moves,
		.deferred	= base->deferred,
		.worst		= base->worst,
		.next		= base->wheel.next == WHEEL_NEVER ? KTIME_MAX :
				  base_time(base, base->wheel.next),
	};
	raw_spin_unlock_irqrestore(&base->lock, flags);
}
EXPORT_SYMBOL_GPL(twheel_get_stats);

static bool config_is_valid(const struct twheel_config *config)
{
	if (config->clock != CLOCK_MONOTONIC && config->clock != CLOCK_BOOTTIME &&
	    config->clock != CLOCK_REALTIME)
		return false;
	return config->tick_ns >= TWHEEL_TICK_MIN_NS &&
	       config->tick_ns <= TWHEEL_TICK_MAX_NS &&
	       config->slack_ns < NSEC_PER_SEC && (config->sink || !config->small);
}

static void base_init_drives(struct twheel_base *base)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(base->drive); i++) {
		base->drive[i].base = base;
		hrtimer_setup(&base->drive[i].hrtimer, base_run, base->clock,
			      HRTIMER_MODE_ABS_SOFT);
	}
	INIT_CSD(&base->kick, base_kicked, base);
}

/* @base is zeroed memory. Returns 0, or -EINVAL for a value that is not allowed. */
static int base_init(struct twheel_base *base, const struct twheel_config *config)
{
	if (!config_is_valid(config))
		return -EINVAL;
	raw_spin_lock_init(&base->lock);
	expiry_init(&base->expiry);
	base->armed = WHEEL_NEVER;
	base->sink = config->sink;
	base->owner = config->owner;
	base->clock = config->clock;
	base->tick_ns = config->tick_ns;
	base->slack_ns = config->slack_ns;
	base->has_back = base_is_settable(base) || config->small;
	if (config->sink) {
		base->user = config->user ?: nobody;
		base->wake_at = WHEEL_NEVER;
	} else {
		base_init_drives(base);
	}
	wheel_init(&base->wheel, base_tick(base, base_now(base)));
	if (config->small)
		wheel_back_shrink(&base->wheel, &base->settable.back);
	return 0;
}

#include "twheel_debugfs.h"

/* Nobody has, or lists, @base. */
static void base_free(struct twheel_base *base)
{
	if (!base->sink)
		xa_erase(&private_bases, base->idle.data);
	vfree(base->grown);
	kvfree(base);
}

static void base_set_store(struct twheel_base *base, struct wheel_store *store)
{
	base->wheel.bucket = store->bucket;
	base->wheel.list = store->list;
}

/* Zeroed memory for a base of @config. */
static struct twheel_base *base_alloc(const struct twheel_config *config)
{
	struct twheel_base *base;

	if (config->small)
		return kzalloc(sizeof(*base), GFP_CHARGED);
	/* Not kvzalloc(): it would round 36 KiB up to 64. */
	base = __vmalloc(sizeof(*base) + sizeof(struct wheel_store), GFP_CHARGED | __GFP_ZERO);
	if (base)
		base_set_store(base, (struct wheel_store *)(base + 1));
	return base;
}

/**
 * twheel_create() - make a private base
 * @config:	what it shall be
 *
 * Its callbacks are called one after the other, on whichever CPU. While one runs, and on
 * PREEMPT_RT while a task keeps the CPU from it, the other timers of the base wait. Timers
 * that shall not wait for each other belong to the CPUs' bases, or to several bases.
 *
 * The memory, see twheel_size(), is charged to the caller's memory cgroup.
 *
 * Context: May sleep.
 * Return: the base, or an ERR_PTR(): -EINVAL for a value that is not allowed, -ENOMEM.
 */
struct twheel_base *twheel_create(const struct twheel_config *config)
{
	struct twheel_base *base;
	int err;

	base = base_alloc(config);
	if (!base)
		return ERR_PTR(-ENOMEM);
	err = base_init(base, config);
	if (!err && !config->sink)
		err = xa_alloc(&private_bases, &base->idle.data, base,
			       XA_LIMIT(first_private(), MIGRATING - 1), GFP_KERNEL);
	if (err) {
		kvfree(base);
		return ERR_PTR(err);
	}
	err = list_private_base(base, GFP_CHARGED);
	if (err) {
		base_free(base);
		return ERR_PTR(err);
	}
	base_set_begin(base, config);
	atomic_inc(&nr_private);
	return base;
}
EXPORT_SYMBOL_GPL(twheel_create);

/**
 * twheel_grow() - make a small base a whole one
 * @base:	a base that was created small
 *
 * What is armed stays so, and fires in its tick. The memory is charged to the caller's memory
 * cgroup. One at a time for each base.
 *
 * Context: May sleep.
 * Return: 0, also if it is a whole one already; or -ENOMEM, with nothing changed.
 */
int twheel_grow(struct twheel_base *base)
{
	struct wheel_store *store;
	unsigned long flags;

	if (!READ_ONCE(base->settable.back.small))
		return 0;
	store = __vmalloc(sizeof(*store), GFP_CHARGED | __GFP_ZERO);
	if (!store)
		return -ENOMEM;
	raw_spin_lock_irqsave(&base->lock, flags);
	base->grown = store;
	base_set_store(base, store);
	wheel_back_grow(&base->wheel, &base->settable.back, base_tick(base, base_now(base)));
	base_enter(base, 0);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(twheel_grow);

/* Any timer of @base, or NULL. */
static struct twheel_timer *base_first(struct twheel_base *base)
{
	unsigned long slot = find_first_bit(base->wheel.map, WHEEL_SLOTS);
	struct wheel_timer *queue;

	queue = slot < WHEEL_SLOTS ? wheel_first(&base->wheel, slot) : base->settable.back.root;
	return queue ? container_of(queue, struct twheel_timer, queue) : NULL;
}

/* Take up to @most timers out of @base. Returns how many. */
static unsigned int base_take(struct twheel_base *base, struct twheel_timer **timers,
			      unsigned int most)
{
	unsigned int nr;

	lockdep_assert_held(&base->lock);
	for (nr = 0; nr < most; nr++) {
		timers[nr] = base_first(base);
		if (!timers[nr])
			break;
		base_del(base, timers[nr]);
	}
	return nr;
}

static struct twheel_timer *base_running(struct twheel_base *base)
{
	struct twheel_timer *running;
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	running = base->running;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return running;
}

/* Wait until the callback that is running now, if any, has returned. */
static void base_wait(struct twheel_base *base)
{
	struct twheel_timer *running = base->sink ? NULL : base_running(base);
	struct expiry *told = NULL;

	while (running && base_running(base) == running)
		expiry_wait(&base->expiry, &told);
	expiry_wait_end(told);
}

static bool base_is_quiet(struct twheel_base *base)
{
	unsigned long flags;
	bool quiet;

	raw_spin_lock_irqsave(&base->lock, flags);
	quiet = (base->sink || !base->running) && !wheel_nr(&base->wheel);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return quiet;
}

/**
 * twheel_drain() - cancel all timers of a base
 * @base:	a private base
 * @fn:		handed each timer that was armed, idle now, and when it would have expired;
 *		it may free it, and may not arm it
 * @arg:	for @fn
 *
 * The orderly stop: when this returns no timer is armed and no callback runs. Timers
 * that callbacks arm meanwhile are cancelled too; others may not arm any. The functions of
 * tasks with TWHEEL_TASK_PROCESS are others: twheel_task_cancel_sync() these tasks before.
 *
 * Context: Task context, may sleep.
 * Return: how many were cancelled.
 */
u64 twheel_drain(struct twheel_base *base,
		 void (*fn)(struct twheel_timer *timer, ktime_t expires, void *arg),
		 void *arg)
{
	struct twheel_timer *timers[TWHEEL_SINK_MAX];
	unsigned int nr, i;
	u64 drained = 0;

	do {
		unsigned long flags;

		raw_spin_lock_irqsave(&base->lock, flags);
		nr = base_take(base, timers, min_t(u32, ARRAY_SIZE(timers), TWHEEL_HOLD_OPS));
		raw_spin_unlock_irqrestore(&base->lock, flags);
		for (i = 0; i < nr; i++)
			fn(timers[i], base_time(base, timers[i]->queue.expires), arg);
		drained += nr;
		if (!nr)
			base_wait(base);
		cond_resched();
	} while (nr || !base_is_quiet(base));
	return drained;
}
EXPORT_SYMBOL_GPL(twheel_drain);

/* Stop @base for good. A timer that is still armed is a mistake of its owner's. */
static void base_stop(struct twheel_base *base)
{
	struct twheel_timer *timer;

	if (base->sink) {
		base_leave_all(base);
		return;
	}
	base_stop_drives(base);
	timer = base_first(base);
	WARN(timer, "%llu timers still armed, one of %ps\n", wheel_nr(&base->wheel),
	     timer ? timer->function : NULL);
	for (; timer; timer = base_first(base))
		base_del(base, timer);
}

/**
 * twheel_destroy() - free a private base
 * @base:	the base
 *
 * No timer of it may be armed, nor its callback run, nor any other call be under way
 * or come; twheel_cancel_sync() each before. In a base with a sink timers may be
 * armed: they are forgotten, without touching each, and their memory is the owner's to
 * free after this. Neither expired() nor wake() is called once this returns.
 *
 * Context: May sleep.
 */
void twheel_destroy(struct twheel_base *base)
{
	base_set_end(base);
	unlist_base(base);
	base_stop(base);
	base_free(base);
	atomic_dec(&nr_private);
}
EXPORT_SYMBOL_GPL(twheel_destroy);

/**
 * twheel_owner() - the owner of a base
 * @base:	the base
 *
 * Context: Any.
 * Return: what was in the base's twheel_config.
 */
void *twheel_owner(const struct twheel_base *base)
{
	return base->owner;
}
EXPORT_SYMBOL_GPL(twheel_owner);

/**
 * twheel_size() - the memory of a private base
 * @base:	the base
 *
 * Context: Any.
 * Return: bytes.
 */
size_t twheel_size(const struct twheel_base *base)
{
	size_t store = sizeof(struct wheel_store);

	if (READ_ONCE(base->settable.back.small))
		return sizeof(*base);
	return base->grown ? sizeof(*base) + PAGE_ALIGN(store) : PAGE_ALIGN(sizeof(*base) + store);
}
EXPORT_SYMBOL_GPL(twheel_size);

static void free_cpu_base(struct twheel_base *base)
{
	if (!base)
		return;
	unlist_base(base);
	base_stop(base);
	kvfree(base);
}

static void free_cpu_bases(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		free_cpu_base(per_cpu(own_base, cpu));
		free_cpu_base(per_cpu(pinned_base, cpu));
	}
}

/* A base of @cpu, with this @id. It is kept in *@base, also if it cannot be listed. */
static int create_cpu_base(struct twheel_base **base, unsigned int cpu, u32 id,
			   const struct twheel_config *config)
{
	*base = kvzalloc_node(sizeof(**base) + sizeof(struct wheel_store), GFP_KERNEL,
			      cpu_to_node(cpu));
	if (!*base)
		return -ENOMEM;
	base_set_store(*base, (struct wheel_store *)(*base + 1));
	(*base)->idle.data = id;
	base_init(*base, config);
	return list_cpu_base(*base, cpu);
}

/* Those that there are if it fails are the caller's to free. */
static int create_cpu_bases(const struct twheel_config *config)
{
	unsigned int cpu;
	int err = 0;

	for_each_possible_cpu(cpu) {
		err = err ?: create_cpu_base(per_cpu_ptr(&own_base, cpu), cpu, cpu, config);
		err = err ?: create_cpu_base(per_cpu_ptr(&pinned_base, cpu), cpu,
					     nr_cpu_ids + cpu, config);
	}
	if (err)
		return err;
	/* Cpusets may change meanwhile. */
	rcu_read_lock();
	for_each_possible_cpu(cpu)
		cpu_set_home(cpu, cpu_find_home(cpu));
	rcu_read_unlock();
	return 0;
}

/*
 * By how much get_cycles() advances in RUN_NS. If something stops this CPU meanwhile the answer is
 * too little, never too much: the counter is read after the one time and before the other.
 */
static unsigned long __init measure_cycles(void)
{
	cycles_t first, last;
	u64 begin, time;

	preempt_disable();
	begin = ktime_get_ns();
	first = get_cycles();
	do {
		last = get_cycles();
		time = ktime_get_ns() - begin;
	} while (time < RUN_NS);
	preempt_enable();
	return div64_u64((u64)(last - first) * RUN_NS, time);
}

/* Too little is only a look at the clock too many. */
static void __init calibrate(void)
{
	unsigned int i;

	for (i = 0; i < 5; i++)
		run_cycles = max(run_cycles, measure_cycles());
	if (!run_cycles)
		static_branch_enable(&run_has_no_counter);
}

static int __init twheel_init_module(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = (u64)tick_us * NSEC_PER_USEC,
	};

	if (!config_is_valid(&config)) {
		pr_err("tick_us=%u is not in 100 to 1000000\n", tick_us);
		return -EINVAL;
	}
	calibrate();
	task_queue = alloc_workqueue("twheel", WQ_UNBOUND, 0);
	if (!task_queue)
		return -ENOMEM;
	clock_set_init();
	if (dispatchers_create())
		goto destroy_queue;
	if (create_cpu_bases(&config))
		goto free_bases;
	debugfs_begin();
	return 0;

free_bases:
	free_cpu_bases();
	dispatchers_free();
destroy_queue:
	destroy_workqueue(task_queue);
	return -ENOMEM;
}

static void __exit twheel_exit_module(void)
{
	debugfs_end();
	clock_set_exit();
	free_cpu_bases();
	dispatchers_free();
	destroy_workqueue(task_queue);
	WARN_ON(atomic_read(&nr_private));
	xa_destroy(&private_bases);
}

/* Built in, it is there before whoever arms timers when the machine starts. */
postcore_initcall(twheel_init_module);
module_exit(twheel_exit_module);

MODULE_DESCRIPTION("Timers in a cascading wheel, exact to the tick");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
