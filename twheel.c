// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel.ko: bases, which are wheels with a clock, a lock and an interrupt.
 *
 * One hrtimer in soft mode drives a base with callbacks. It is armed for the next tick that
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
 * finds its base by the hrtimer, and the timers stay where they are.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/debugobjects.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
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
#include "wheel.h"

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

struct dispatcher;
struct listing;

/**
 * struct twheel_base - a wheel with a clock, a lock and an interrupt
 * @lock:	guards all below that changes
 * @idle:	what is in a timer that can be armed: @idle.data is the id by which timers
 *		name their base, a CPU or an index of private_bases; 0 where no timer
 *		needs it, in a base with a sink
 * @tick_ns:	the tick
 * @slack_ns:	how late the interrupt may come
 * @forwarded:	jiffies when the wheel was told the time
 * @clock:	CLOCK_MONOTONIC or CLOCK_BOOTTIME
 * @in_run:	a run is under way and will arm the hrtimer when it ends
 * @dead:	with a sink: it is being destroyed, and will not be queued any more
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
 * @hrtimer:	drives the base
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
 * @listing:	in debugfs, or NULL
 * @rearmed:	see struct twheel_stats, as the next three and @worst
 * @expired:	timers
 * @wakeups:	runs
 * @deferred:	runs
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
			struct hrtimer		hrtimer;
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
	struct listing			*listing;
	u64				rearmed;
	u64				expired;
	u64				wakeups;
	u64				deferred;
	struct wheel			wheel;
};

static unsigned int tick_us = TWHEEL_TICK_NS / NSEC_PER_USEC;
module_param(tick_us, uint, 0444);
MODULE_PARM_DESC(tick_us, "tick of the CPUs' bases in us, 100 to 1000000 (default 1000)");

/* The bases for everybody; pointers, since modules share 8 KiB of per-CPU memory. */
static DEFINE_PER_CPU(struct twheel_base *, cpu_base);

/* The private bases that timers name by id. */
static DEFINE_XARRAY_ALLOC(private_bases);
static atomic_t nr_private = ATOMIC_INIT(0);

/* By how much get_cycles() advances in RUN_NS, about; 0 if it does not. */
static unsigned long run_cycles;

/* Where the functions of tasks are called that want task context. */
static struct workqueue_struct *task_queue;

static ktime_t base_now(const struct twheel_base *base)
{
	return base->clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get();
}

/* What a time of CLOCK_MONOTONIC is on the base's clock. */
static ktime_t base_from_mono(const struct twheel_base *base, u64 time)
{
	return base->clock == CLOCK_BOOTTIME ? ktime_mono_to_any(time, TK_OFFS_BOOT) : time;
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
	return max(base_tick_after(base, expires), wheel_clk(&base->wheel) + 1);
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

static noinline void trace_moved(struct wheel *w, unsigned int slot, u32 nr)
{
	unsigned int level = WHEEL_LEVELS;

	while (level && slot < (level == WHEEL_LEVELS ? WHEEL_FAR : wheel_levels[level].first))
		level--;
	if (nr)
		trace_twheel_cascade(container_of(w, struct twheel_base, wheel), level, nr,
				     w->bucket[slot].n);
}

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
	hrtimer_start_range_ns(&base->hrtimer, base_time(base, next), base->slack_ns,
			       HRTIMER_MODE_ABS_SOFT);
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
	hrtimer_start_range_ns(&base->hrtimer, until, 0, HRTIMER_MODE_ABS_SOFT);
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

/*
 * Add @timer. If @rearmed, base_unlink() has taken it out for this. Returns whether base_arm()
 * has to be told.
 */
static noinline bool base_add(struct twheel_base *base, struct twheel_timer *timer,
			      ktime_t expires, bool rearmed)
{
	lockdep_assert_held(&base->lock);
	debug_timer_activate(base, timer);
	if (trace_twheel_add_enabled())
		trace_add(base, timer, expires);
	base->rearmed += rearmed;
	return wheel_add(&base->wheel, &timer->queue, base_tick_added(base, expires));
}

/* base_add() of an idle timer, inlined for what most timers are like. */
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

/*
 * Take @timer out, if it is in. It still looks pending, for it is on its way to another tick or
 * base; the caller adds it before anybody else gets at it.
 */
static __always_inline bool base_unlink(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (unlikely(!wheel_pending(&timer->queue)))
		return false;
	if (trace_twheel_cancel_enabled())
		trace_cancelled(base, timer);
	wheel_unlink(&base->wheel, &timer->queue);
	debug_timer_deactivate(base, timer);
	return true;
}

/* Take @timer out for good, if it is in. */
static __always_inline bool base_del(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!base_unlink(base, timer))
		return false;
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

/*
 * Call back for @timer, which is out of the wheel. Its memory may be gone when the
 * callback returns: nothing of it is touched after that.
 */
static void run_callback(struct twheel_base *base, struct twheel_timer *timer)
	__must_hold(&base->lock)
{
	void (*function)(struct twheel_timer *timer) = timer->function;

	base->running = timer;
	raw_spin_unlock_irq(&base->lock);
	lockdep_call(timer, function);
	raw_spin_lock_irq(&base->lock);
	base->running = NULL;
	if (expiry_has_waiters(&base->expiry)) {
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
static unsigned long run_clock(void)
{
	return likely(run_cycles) ? get_cycles() : local_clock();
}

/* What it shows after @ns, at most RUN_NS. */
static unsigned long run_clock_after(u64 ns)
{
	return run_clock() + (run_cycles ? div_u64(run_cycles * ns, RUN_NS) : ns);
}

/*
 * Call back for what is due at tick @now, TWHEEL_HOLD_OPS operations at most. Each callback
 * breaks the lock hold. Returns the operations, fewer if it is @until by run_clock().
 */
static u32 run_callbacks(struct twheel_base *base, u64 now, unsigned long until)
	__must_hold(&base->lock)
{
	struct wheel_timer *queue;
	u32 left = TWHEEL_HOLD_OPS;

	lockdep_assert_held(&base->lock);
	while ((queue = wheel_expire(&base->wheel, now, &left))) {
		struct twheel_timer *timer = container_of(queue, struct twheel_timer, queue);

		debug_timer_deactivate(base, timer);
		if (trace_twheel_expire_enabled())
			trace_expired(base, &timer, 1);
		base->expired++;
		run_callback(base, timer);
		if ((long)(run_clock() - until) >= 0)
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
		more = wheel_expire_many(&base->wheel, now, &left,
					 (struct wheel_timer **)batch + nr, ARRAY_SIZE(batch) - nr);
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

/* The callback of a base's hrtimer. The kernel sees to it that one runs at a time. */
static enum hrtimer_restart base_run(struct hrtimer *hrtimer)
{
	struct twheel_base *base = container_of(hrtimer, struct twheel_base, hrtimer);
	u64 begin = ktime_get_ns(), since = run_time(begin), moves;
	bool finished;

	expiry_lock(&base->expiry);
	raw_spin_lock_irq(&base->lock);
	moves = base->wheel.moves;
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

/*
 * The base @timer belongs to at the moment, which may be moving from one CPU's to another's.
 * Whoever has a timer of a base keeps the base.
 */
static noinline struct twheel_base *base_of(const struct twheel_timer *timer)
{
	u32 id;

	while ((id = READ_ONCE(timer->queue.data)) & MIGRATING)
		cpu_relax();
	return id < nr_cpu_ids ? per_cpu(cpu_base, id) : xa_load(&private_bases, id);
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
static __always_inline struct twheel_base *lock_base(struct twheel_timer *timer,
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

static noinline struct twheel_base *move_here(struct twheel_base *base,
					      struct twheel_timer *timer)
{
	struct twheel_base *here = this_cpu_read(cpu_base);

	if (base->idle.data >= nr_cpu_ids || base->running == timer)
		return base;
	WRITE_ONCE(timer->queue.data, timer->queue.data | MIGRATING);
	raw_spin_unlock(&base->lock);
	raw_spin_lock(&here->lock);
	WRITE_ONCE(timer->queue.data, here->idle.data);
	return here;
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
	timer->queue.data = base ? base->idle.data : raw_smp_processor_id();
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
	if (likely(arm_is_wanted(base, timer, time, mode))) {
		pending = base_unlink(base, timer);
		base = move_base(base, timer);
		base_forward(base);
		if (base_add(base, timer, time, pending))
			base_arm(base);
	} else {
		pending = wheel_pending(&timer->queue);
	}
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}

/*
 * Arm @timer if it is idle, not shut down, and of this CPU's base, or of what was it a moment
 * ago: that is the path that is hot. Returns false, with nothing done, if it is not.
 */
static __always_inline bool timer_add_hot(struct twheel_timer *timer, ktime_t time, bool relative)
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
	if (base_add_hot(base, timer, time))
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
	if (unlikely(!timer_add_hot(timer, delay, true)))
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
	if (unlikely(!timer_add_hot(timer, expires, false)))
		WARN_ON_ONCE(twheel_mod_abs(timer, expires));
}
EXPORT_SYMBOL_GPL(twheel_add_abs);

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
 * it was not cancelled. @base is where.
 */
static int try_cancel(struct twheel_timer *timer, struct twheel_base **base)
{
	unsigned long flags;
	int ret = -1;

	*base = lock_base(timer, &flags);
	if ((*base)->running != timer)
		ret = base_del(*base, timer);
	raw_spin_unlock_irqrestore(&(*base)->lock, flags);
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
	struct twheel_base *base;

	return try_cancel(timer, &base);
}
EXPORT_SYMBOL_GPL(twheel_try_cancel);

static int cancel_and_wait(struct twheel_timer *timer)
{
	struct expiry *told = NULL;
	struct twheel_base *base;
	int ret;

	WARN_ON_ONCE(in_hardirq());
	lockdep_wait(timer);
	while ((ret = try_cancel(timer, &base)) < 0)
		expiry_wait(&base->expiry, &told);
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
ktime_t twheel_expires(struct twheel_timer *timer)
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
ktime_t twheel_remaining(struct twheel_timer *timer)
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
	task->stage = STAGE_STARTED;
	base = move_base(base, &task->timer);
	base_forward(base);
	if (base_add(base, &task->timer, task->deadline, rearmed))
		base_arm(base);
	return base;
}

/* The deadline after this one, and how many were missed. */
static void task_next_deadline(struct twheel_task *task, u64 now)
{
	u64 missed;

	if (task->flags & TWHEEL_TASK_DELAY) {
		task->deadline = ktime_add_safe(now, task->period);
		return;
	}
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
 * Is @task due? It is not any more. An expiry that is under way is waited for: it queues the work,
 * and the function may free the task.
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
	due = task->stage == STAGE_DUE;
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
 * twheel_task_start() - start a task, whether it is started already or not
 * @task:	the task
 * @delay:	ns from now until it is due first
 * @period:	ns from then on, 0 to be called once
 *
 * Context: Any.
 * Return: as twheel_task_cancel(): 1 if what the task was started for before will not come. Or
 * -EINVAL for a negative period.
 */
int twheel_task_start(struct twheel_task *task, ktime_t delay, ktime_t period)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	if (period < 0)
		return -EINVAL;
	base = lock_base(&task->timer, &flags);
	if (is_shut(&task->timer)) {
		raw_spin_unlock_irqrestore(&base->lock, flags);
		return 0;
	}
	pending = base_unlink(base, &task->timer) | task_is_coming(task);
	task->active = true;
	task->overruns = 0;
	WRITE_ONCE(task->period, period);
	task->deadline = ktime_add_safe(base_now(base), max_t(ktime_t, delay, 0));
	base = task_arm(base, task, pending);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
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

/**
 * twheel_add_array() - arm many timers
 * @timers:	timers of the CPUs' bases, idle, their callbacks not running, and used by
 *		nobody else at the moment; not shut down
 * @delays:	ns from now, for each
 * @nr:		how many
 *
 * As twheel_add() for each, at the cost of one lock hold and one look at the clock for
 * 64 of them.
 *
 * Context: Any, but in proportion to @nr.
 */
void twheel_add_array(struct twheel_timer **timers, const ktime_t *delays, unsigned int nr)
{
	unsigned int i = 0, end;

	while (i < nr) {
		struct twheel_base *base = raw_cpu_read(cpu_base);
		unsigned long flags;
		ktime_t now = twheel_lock(base, &flags);

		for (end = min(i + TWHEEL_HOLD_OPS, nr); i < end; i++) {
			WARN_ON_ONCE(twheel_pending(timers[i]));
			WRITE_ONCE(timers[i]->queue.data, base->idle.data);
			base_add(base, timers[i],
				 ktime_add_safe(now, max_t(ktime_t, delays[i], 0)), false);
		}
		twheel_unlock(base, flags);
	}
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
	wheel_forward(&base->wheel, base_tick(base, now));
	return now;
}
EXPORT_SYMBOL_GPL(twheel_lock);

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
	if (base->sink)
		base_enter(base, 0);
	else
		base_arm(base);
	raw_spin_unlock_irqrestore(&base->lock, flags);
}
EXPORT_SYMBOL_GPL(twheel_unlock);

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
	if (likely(!base_has_shut(base, timer)))
		base_add(base, timer, expires, false);
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
	bool pending = base_unlink(base, timer);

	if (likely(!base_has_shut(base, timer)))
		base_add(base, timer, expires, pending);
	return pending;
}
EXPORT_SYMBOL_GPL(twheel_mod_locked);

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
	if (config->clock != CLOCK_MONOTONIC && config->clock != CLOCK_BOOTTIME)
		return false;
	return config->tick_ns >= TWHEEL_TICK_MIN_NS &&
	       config->tick_ns <= TWHEEL_TICK_MAX_NS &&
	       config->slack_ns < NSEC_PER_SEC;
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
	if (config->sink) {
		base->user = config->user ?: nobody;
		base->wake_at = WHEEL_NEVER;
	} else {
		hrtimer_setup(&base->hrtimer, base_run, config->clock, HRTIMER_MODE_ABS_SOFT);
	}
	wheel_init(&base->wheel, base_tick(base, base_now(base)));
	return 0;
}

#include "twheel_debugfs.h"

/* Nobody has, or lists, @base. */
static void base_free(struct twheel_base *base)
{
	if (!base->sink)
		xa_erase(&private_bases, base->idle.data);
	vfree(base);
}

/**
 * twheel_create() - make a private base
 * @config:	what it shall be
 *
 * Its callbacks are called one after the other, on whichever CPU. While one runs, and on
 * PREEMPT_RT while a task keeps the CPU from it, the other timers of the base wait. Timers
 * that shall not wait for each other belong to the CPUs' bases, or to several bases.
 *
 * The memory, twheel_size() bytes, is charged to the caller's memory cgroup.
 *
 * Context: May sleep.
 * Return: the base, or an ERR_PTR(): -EINVAL for a value that is not allowed, -ENOMEM.
 */
struct twheel_base *twheel_create(const struct twheel_config *config)
{
	struct twheel_base *base;
	int err;

	/* Not kvzalloc(): it would round 36 KiB up to 64. */
	base = __vmalloc(sizeof(*base), GFP_CHARGED | __GFP_ZERO);
	if (!base)
		return ERR_PTR(-ENOMEM);
	err = base_init(base, config);
	if (!err && !config->sink)
		err = xa_alloc(&private_bases, &base->idle.data, base,
			       XA_LIMIT(nr_cpu_ids, MIGRATING - 1), GFP_KERNEL);
	if (err) {
		vfree(base);
		return ERR_PTR(err);
	}
	err = list_private_base(base, GFP_CHARGED);
	if (err) {
		base_free(base);
		return ERR_PTR(err);
	}
	atomic_inc(&nr_private);
	return base;
}
EXPORT_SYMBOL_GPL(twheel_create);

/* Any timer of @base, or NULL. */
static struct twheel_timer *base_first(struct twheel_base *base)
{
	unsigned long slot = find_first_bit(base->wheel.map, WHEEL_SLOTS);

	if (slot == WHEEL_SLOTS)
		return NULL;
	return container_of(wheel_first(&base->wheel, slot), struct twheel_timer, queue);
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
	hrtimer_cancel(&base->hrtimer);
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
 *
 * Context: Any.
 * Return: bytes.
 */
size_t twheel_size(void)
{
	return PAGE_ALIGN(sizeof(struct twheel_base));
}
EXPORT_SYMBOL_GPL(twheel_size);

static void free_cpu_bases(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct twheel_base *base = per_cpu(cpu_base, cpu);

		if (base) {
			unlist_base(base);
			base_stop(base);
		}
		kvfree(base);
	}
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
}

static int __init twheel_init_module(void)
{
	struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = (u64)tick_us * NSEC_PER_USEC,
	};
	unsigned int cpu;

	if (!config_is_valid(&config)) {
		pr_err("tick_us=%u is not in 100 to 1000000\n", tick_us);
		return -EINVAL;
	}
	calibrate();
	task_queue = alloc_workqueue("twheel", WQ_UNBOUND, 0);
	if (!task_queue)
		return -ENOMEM;
	if (dispatchers_create())
		goto destroy_queue;
	for_each_possible_cpu(cpu) {
		struct twheel_base *base;

		base = kvzalloc_node(sizeof(*base), GFP_KERNEL, cpu_to_node(cpu));
		if (!base)
			goto free_bases;
		base->idle.data = cpu;
		base_init(base, &config);
		per_cpu(cpu_base, cpu) = base;
		if (list_cpu_base(base))
			goto free_bases;
	}
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
	free_cpu_bases();
	dispatchers_free();
	destroy_workqueue(task_queue);
	WARN_ON(atomic_read(&nr_private));
	xa_destroy(&private_bases);
}

module_init(twheel_init_module);
module_exit(twheel_exit_module);

MODULE_DESCRIPTION("Timers in a cascading wheel, exact to the tick");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
