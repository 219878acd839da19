// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel.ko: bases, which are wheels with a clock, a lock and an interrupt.
 *
 * Two hrtimers in soft mode, started in turn, drive a base with callbacks. One of them is armed for
 * the next tick that has work, and for no other: an empty base causes no interrupt. Its callback is
 * called a run: it expires the timers that are due, and arms one of the two again. Bases with a
 * sink, which files have, are driven by the CPUs' dispatchers, see twheel_dispatch.h.
 *
 * Bounds
 *	a lock hold	64 list moves and expiries, 16 on PREEMPT_RT. It also ends at each callback
 *	a run		1 024 moves and expiries, or 200 us and the callback that is then running.
 *			If the CPU is idle, and has no other softirq to do and no other soft hrtimer
 *			due, such stretches follow each other for 1 ms, with up to 1 024 moves in
 *			all. If work is left then, or if the base has used up its half of the CPU,
 *			the next run begins later, by at least as much as this one has taken: so
 *			tasks and the other softirqs get half of the CPU, however much is due here.
 *			An unfinished tick is resumed, never dropped.
 *
 * Locking
 *	expiry->held->lock, of a base or a dispatcher (PREEMPT_RT only)
 *	  base->lock, raw, interrupts off
 *	    the dispatcher's lock, raw
 *	      the hrtimer's own
 * Two bases are never locked at once. Under base->lock nothing is called, woken or allocated,
 * except that a sink's expired() is called.
 *
 * An hrtimer is started only under the lock of its base or dispatcher, and its callback never asks
 * to be restarted: forwarding an hrtimer that other code has just enqueued would corrupt the
 * kernel's tree. An hrtimer is never cancelled under that lock: cancelling waits for a run, which
 * may be waiting for the lock.
 *
 * When a CPU goes offline there is nothing to do: the kernel moves its hrtimers, a run finds its
 * base by the hrtimer, and the timers stay where they are. twheel_cpus.h says to which CPU's base a
 * timer goes, and which CPU is interrupted for it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/debugobjects.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
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

#define WHEEL_STORE_APART
#include "wheel_back.h"

#define RUN_OPS		1024
#define RUN_NS		(200 * NSEC_PER_USEC)
#define IDLE_RUN_NS	NSEC_PER_MSEC
#define DEFER_MIN_NS	(50 * NSEC_PER_USEC)
/* About what the interrupt around a run takes: before the run begins, and after it has ended. */
#define RUN_COST_NS	(12 * NSEC_PER_USEC)
/* The largest debt, see struct account. So no pause is longer than twice that. */
#define DEBT_MAX_NS	(50 * NSEC_PER_MSEC)

/*
 * Charged to the caller's memory cgroup. If that is full, the allocation fails without the OOM
 * killer.
 */
#define GFP_CHARGED	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* In queue.data of a timer, beside the id of its base: the timer is moving from one to another. */
#define MIGRATING	BIT(31)

#ifndef CONFIG_LOCKDEP
static_assert(sizeof(struct twheel_timer) == (IS_ENABLED(CONFIG_64BIT) ? 40 : 32));
#endif

/**
 * struct account - how much of a CPU runs have taken
 * @debt:	ns of CPU that they have used, and that the passing of time has not repaid yet
 * @since:	the time of @debt, in ns of CLOCK_MONOTONIC
 */
struct account {
	u64	debt;
	u64	since;
};

/**
 * struct expiry_lock - on PREEMPT_RT: what a synchronous cancel sleeps on
 * @lock:	a run takes it before a callback, and drops it after that
 * @refs:	1 if a run may hold @lock, and 1 for each task that was told to sleep on it. If it
 *		is 0, a run may use the structure again
 * @kmalloced:	the last of these frees the structure
 */
struct expiry_lock {
	spinlock_t	lock;		/* held by a run */
	atomic_t	refs;
	bool		kmalloced;
};

/*
 * The lock that the run of a base or a dispatcher holds, and one that is always there. @held is
 * changed only by the run, under the lock under which others read it: the base's, or the
 * dispatcher's. See expiry_yield().
 */
struct expiry {
#ifdef CONFIG_PREEMPT_RT
	struct expiry_lock	*held;
	struct expiry_lock	own;
#endif
};

/**
 * struct settable - what a base needs if its clock may be set (CLOCK_REALTIME), or if it is small
 * @back:	the tree beside the wheel. It has the timers added after the clock was set back; in
 *		any base that has no buckets yet, whatever its clock, all timers. Under base->lock
 * @node:	link in settable_bases. Under settable_lock
 * @told:	link in settable_told, if there is a was_set(). Under settable_mutex
 * @telling:	held while was_set() is called
 * @asked:	clock_steps when the worker took the base up last. Under settable_mutex
 * @seen:	clock_sets when the base was last queued anew. Under settable_lock
 * @steps:	was_set() has been called, and has returned, for clock_steps up to this value.
 *		Written under @telling; read without it by twheel_tell_set()
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
 * @hrtimer:	the hrtimer. Its callback is a run of @base
 * @base:	the base
 */
struct drive {
	struct hrtimer		hrtimer;
	struct twheel_base	*base;
};

/**
 * struct twheel_base - a wheel with a clock, a lock and an interrupt
 * @lock:	guards everything below that changes, except what is said to be under another lock
 * @idle:	queue.word of a timer of this base that is idle and not shut down, see
 *		base_set_id()
 * @tick_ns:	the tick. Does not change, nor do @slack_ns, @id, @clock, @sink and @owner
 * @slack_ns:	how late the interrupt may come
 * @id:		by which timers name their base, in queue.data: a CPU or an index of
 *		private_bases; 0 in a base with a sink, whose timers need none
 * @forwarded:	jiffies when the wheel was last told the time
 * @clock:	CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME
 * @in_run:	a run is under way, and will arm the hrtimer when it ends
 * @dead:	with a sink: it is being destroyed, and must not be queued any more. Read without
 *		the lock by base_is_held()
 * @has_back:	timers may be in @settable.back, or may be added there. Read without the lock by
 *		base_hold_ops()
 * @worst:	most moves in a run, or with a sink in a pass: either ends after a little more than
 *		RUN_OPS
 * @pass_moves:	with a sink: moves in the pass @pass
 * @sink:	gets the timers that expire; NULL if they have callbacks
 * @owner:	the sink's own
 * @armed:	the tick for which the hrtimer is armed, WHEEL_NEVER if it is not. If work was
 *		deferred, @armed is a tick that is over. With a sink: the tick for which the base
 *		was queued last
 * @running:	the timer whose callback is running. Read without the lock by hopped_running()
 * @account:	what its runs have taken of a CPU
 * @put_off:	when the last run deferred work, in ns of CLOCK_MONOTONIC; 0 if it did not
 * @drive:	two hrtimers, started in turn: see twheel_cpus.h
 * @start:	when the hrtimer that was started last is to expire, a time of the clock
 * @start_slack: how much later than @start that hrtimer may expire
 * @driver:	which of @drive is to be started next
 * @kicks:	calls of base_kicked() that are on their way
 * @kick:	makes another CPU call base_kicked()
 * @user:	the user whose base it is
 * @dispatcher:	where it is queued, or NULL. Under that dispatcher's lock; to queue the base, @lock
 *		is needed too. So while code holds only @lock, NULL stays NULL; but a pass may set
 *		it to NULL at any time, and base_leave() looks again
 * @queued:	link in an entry of a queue of @dispatcher
 * @soft:	when it may be served, a time of the clock
 * @key:	when it must be served, a time of the clock
 * @pass:	the beginning of the last pass that served it
 * @wake_at:	the tick at which wake() must be called, even if nothing expires; WHEEL_NEVER if at
 *		none (PREEMPT_RT only). Read without the lock by base_is_held()
 * @expiry:	held by a run
 * @settable:	see struct settable
 * @listing:	its line in debugfs, or NULL
 * @rearmed:	see struct twheel_stats
 * @expired:	see struct twheel_stats
 * @wakeups:	see struct twheel_stats
 * @deferred:	see struct twheel_stats
 * @grown:	the buckets of @wheel, if they were made after the base; else NULL
 * @wheel:	the timers
 */
struct twheel_base {
	raw_spinlock_t			lock;
	u32				tick_ns;
	u64				idle;
	u32				slack_ns;
	u32				forwarded;
	u32				id;
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

/* The lines of debugfs. twheel_debugfs.c, included at the end, says what these promise. */
static int list_cpu_base(struct twheel_base *base, unsigned int cpu);
static int list_private_base(struct twheel_base *base, gfp_t gfp);
static void unlist_base(struct twheel_base *base);
static void debugfs_begin(void);
static void debugfs_end(void);

static unsigned int tick_us = TWHEEL_TICK_NS / NSEC_PER_USEC;
module_param(tick_us, uint, 0444);
MODULE_PARM_DESC(tick_us, "tick of the CPUs' bases in us, 100 to 1000000 (default 1000)");

/* The private bases that timers name by id. */
static DEFINE_XARRAY_ALLOC(private_bases);

/* How many private bases there are. Read when the module is unloaded: none may be left then. */
static atomic_t nr_private = ATOMIC_INIT(0);

/* About how much get_cycles() advances in RUN_NS; 0 if this machine has no cycle counter. */
static unsigned long run_cycles;

/* Set if run_cycles is 0. A static branch, which costs nothing on machines with a counter. */
static DEFINE_STATIC_KEY_FALSE(run_has_no_counter);

/* Runs the work of tasks with TWHEEL_TASK_PROCESS, and what must be done when a clock was set. */
static struct workqueue_struct *task_queue;

/* The time of the base's clock. Any context but NMI; the lock is not needed. */
static ktime_t base_now(const struct twheel_base *base)
{
	if (likely(base->clock == CLOCK_MONOTONIC))
		return ktime_get();
	return base->clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get_real();
}

/* A time of CLOCK_MONOTONIC as a time of the base's clock. */
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

/* Give @base its id, before it has any timer. */
static void base_set_id(struct twheel_base *base, u32 id)
{
	const struct wheel_timer idle = { .data = id };

	base->id = id;
	base->idle = idle.word;
}

/* The time at which @tick begins, at most KTIME_MAX: a later ktime_t would be negative. */
static ktime_t base_time(const struct twheel_base *base, u64 tick)
{
	return min_t(u64, tick * base->tick_ns, KTIME_MAX);
}

/* Each add divides by the tick. On 32-bit machines a divisor of 64 bits would be slow. */
static_assert(sizeof_field(struct twheel_base, tick_ns) == sizeof(u32));
static_assert(TWHEEL_TICK_MAX_NS <= U32_MAX);

/* The tick that @time is in. */
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

/*
 * base_tick_after() without its check: a negative time becomes a tick far in the future. So callers
 * must leave such ticks to code that checks.
 */
static __always_inline u64 base_tick_hot(const struct twheel_base *base, ktime_t expires)
{
	return div_u64((u64)expires + base->tick_ns - 1, base->tick_ns);
}

/* The tick in which a timer will expire if it is added now for @expires. Under the base's lock. */
static u64 base_tick_added(const struct twheel_base *base, ktime_t expires)
{
	u64 last = base->has_back ? base_tick(base, base_now(base)) : wheel_clk(&base->wheel);

	return max(base_tick_after(base, expires), last + 1);
}

/**
 * struct ticks - the ticks in which a timer may fire
 * @first:	the first, which is not over
 * @last:	the last, which is not before @first
 */
struct ticks {
	u64	first;
	u64	last;
};

/* The ticks of a timer that is added now for @expires and may be late by @tolerance. */
static struct ticks base_range(const struct twheel_base *base, ktime_t expires, u64 tolerance)
{
	u64 time = max_t(ktime_t, expires, 0), first = base_tick_added(base, time);
	u64 end = tolerance < KTIME_MAX - time ? time + tolerance : KTIME_MAX;

	return (struct ticks){ .first = first, .last = max(first, base_tick(base, end)) };
}

/*
 * With CONFIG_DEBUG_OBJECTS the kernel keeps track of our timers. It reports a timer that is
 * initialised or freed while armed, or armed without having been initialised. The timers of a base
 * with a sink are left to its owner.
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
 * To lockdep a callback is a lock that is held while the callback runs, and that a synchronous
 * cancel takes. So if a callback takes a lock under which somebody cancels its timer synchronously,
 * lockdep reports that once it has seen each of the two, whether or not they met.
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

	/*
	 * With interrupts off, so that lockdep does not think that the caller, in task context,
	 * could be interrupted by the softirq of the callback.
	 */
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

/* What is traced. These functions are out of line: while nobody traces, callers only have a nop. */
static const void *base_function(const struct twheel_base *base,
				 const struct twheel_timer *timer)
{
	return base->sink ? NULL : timer->function;
}

/* Called before wheel_add(), so that the caller need not keep its arguments for afterwards. */
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

/* The wheel_moved_fn of all bases. Unless it is traced, it is a nop. */
static __always_inline void base_moved(struct wheel *w, unsigned int slot, u32 nr)
{
	if (trace_twheel_cascade_enabled())
		trace_moved(w, slot, nr);
}

#include "twheel_cpus.h"

/*
 * Make sure that there will be a run at the next event. If a run is under way, it arms the base
 * when it ends.
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
 * Defer pending work by @pause, counted from @time, so that other tasks get the CPU. New timers do
 * not shorten the pause: base->armed is then a tick that is over, and no timer is added for such a
 * tick.
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
 * Tell the wheel the time, so that timers are placed by their true distance. Once a jiffy is
 * enough: reading the clock each time would cost too much.
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
 * Add @timer for @tick, which is over for the wheel. If the clock was set back, @tick may be still
 * to come.
 */
static noinline bool base_add_back(struct twheel_base *base, struct twheel_timer *timer, u64 tick)
{
	return wheel_back_add(&base->wheel, &base->settable.back, &timer->queue, tick,
			      base_tick(base, base_now(base)));
}

/* Add @timer, which may be late, for @tick: to the tree if the wheel is past @tick, else to it. */
static noinline bool base_add_chosen_back(struct twheel_base *base, struct twheel_timer *timer,
					  u64 tick)
{
	u64 now = base_tick(base, base_now(base));

	return wheel_back_add_chosen(&base->wheel, &base->settable.back, &timer->queue,
				     max(tick, now + 1), now);
}

/*
 * Add @timer, which is in no bucket, to the locked @base. @rearmed: base_unlink() has taken it out
 * to be added again. Returns whether the next event is earlier now: then the caller must call
 * base_arm().
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

/* base_add() for one of the ticks of @range, the one that most timers can share. */
static noinline bool base_add_range(struct twheel_base *base, struct twheel_timer *timer,
				    const struct ticks *range, bool rearmed)
{
	u64 tick = wheel_choose(range->first, range->last);

	lockdep_assert_held(&base->lock);
	debug_timer_activate(base, timer);
	if (trace_twheel_add_enabled())
		trace_add(base, timer, base_time(base, tick));
	base->rearmed += rearmed;
	if (unlikely(base->has_back))
		return base_add_chosen_back(base, timer, tick);
	/* Since @range was made, the wheel may have been told the time. */
	tick = max(tick, wheel_clk(&base->wheel) + 1);
	return wheel_add_chosen(&base->wheel, &timer->queue, tick);
}

/* base_add() of an idle timer of a CPU's base. Inlined, for timers whose tick is near. */
static __always_inline bool base_add_hot(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires)
{
	u64 tick = base_tick_hot(base, expires);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || unlikely(!wheel_is_near(&base->wheel, tick)))
		return base_add(base, timer, expires, false);
	debug_timer_activate(base, timer);
	return wheel_add_near(&base->wheel, &timer->queue, tick);
}

/* base_add_range() for callers that have no range. */
static noinline bool base_add_range_cold(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires, u64 tolerance)
{
	struct ticks range = base_range(base, expires, tolerance);

	return base_add_range(base, timer, &range, false);
}

/*
 * base_range() without its checks. If @expires is over, or it is out of range together with
 * @tolerance, or no tick begins between the two ends, range_is_hot() is false for the result.
 */
static __always_inline struct ticks base_range_hot(const struct twheel_base *base, ktime_t expires,
						   u64 tolerance)
{
	u64 end = (u64)expires + tolerance;

	return (struct ticks){
		.first	= base_tick_hot(base, expires),
		.last	= likely(end <= KTIME_MAX) ? div_u64(end, base->tick_ns) : 0,
	};
}

/* Can @range be used as it is? Else base_range() computes it, with all checks. */
static __always_inline bool range_is_hot(const struct twheel_base *base, const struct ticks *range)
{
	return likely(range->first <= range->last && range->first > wheel_clk(&base->wheel));
}

/* wheel_add_chosen() for a tick that is not near. */
static noinline bool base_add_beyond(struct twheel_base *base, struct twheel_timer *timer, u64 tick)
{
	return wheel_add_chosen(&base->wheel, &timer->queue, tick);
}

/* wheel_add_chosen(), inlined for a tick that is near. */
static __always_inline bool base_add_chosen(struct twheel_base *base, struct twheel_timer *timer,
					    u64 tick)
{
	if (unlikely(!wheel_is_near(&base->wheel, tick)))
		return base_add_beyond(base, timer, tick);
	return wheel_add_chosen_near(&base->wheel, &timer->queue, tick);
}

/* base_add_hot() of a timer that may be late by @tolerance. */
static __always_inline bool base_add_range_hot(struct twheel_base *base,
					       struct twheel_timer *timer, ktime_t expires,
					       u64 tolerance)
{
	struct ticks range = base_range_hot(base, expires, tolerance);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || !range_is_hot(base, &range))
		return base_add_range_cold(base, timer, expires, tolerance);
	debug_timer_activate(base, timer);
	return base_add_chosen(base, timer, wheel_choose(range.first, range.last));
}

/*
 * base_add_hot() for any timer and base. A tick that is over for the wheel is left to base_add():
 * the wheel would not correct it for a timer that looks queued, and if the clock was set back, the
 * tick may be still to come.
 */
static __always_inline bool base_add_any(struct twheel_base *base, struct twheel_timer *timer,
					 ktime_t expires, bool rearmed)
{
	u64 tick = base_tick_hot(base, expires);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || unlikely(!wheel_is_near(&base->wheel, tick) ||
						   tick <= wheel_clk(&base->wheel)))
		return base_add(base, timer, expires, rearmed);
	debug_timer_activate(base, timer);
	base->rearmed += rearmed;
	return wheel_add_near(&base->wheel, &timer->queue, tick);
}

/* base_unlink() of a timer that is in no bucket: it is idle, or in the tree. */
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

/*
 * base_del() of a timer that is in no bucket. It also marks the timer idle, so that callers need
 * not keep @timer.
 */
static noinline bool base_del_back(struct twheel_base *base, struct twheel_timer *timer)
{
	if (!base_unlink_back(base, timer))
		return false;
	WRITE_ONCE(timer->queue.bucket, WHEEL_NONE);
	return true;
}

/* Take @timer out of its bucket. It still looks pending. */
static __always_inline void base_unlink_bucket(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (trace_twheel_cancel_enabled())
		trace_cancelled(base, timer);
	wheel_unlink(&base->wheel, &timer->queue);
	debug_timer_deactivate(base, timer);
}

/*
 * Take @timer out, if it is armed; returns whether it was. It still looks pending, since it is on
 * its way to another tick or base: the caller must add it before anybody else can use it.
 */
static __always_inline bool base_unlink(struct twheel_base *base, struct twheel_timer *timer)
{
	if (unlikely(!wheel_in_bucket(&timer->queue)))
		return base_unlink_back(base, timer);
	base_unlink_bucket(base, timer);
	return true;
}

/*
 * Put off @timer without taking it out, if it is armed and the wheel can do that; returns whether
 * that was done. While somebody traces, it is not done: the caller takes the timer out and adds it,
 * so that both are traced. Nor is it done if @expires is over for the wheel.
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
 * base_put_off() for one of the ticks of @range. If the timer is due in one of them already, it
 * keeps its tick.
 */
static bool base_put_off_range(struct twheel_base *base, struct twheel_timer *timer,
			       const struct ticks *range)
{
	u64 tick = range->first;

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || trace_twheel_cancel_enabled() ||
	    !wheel_pending(&timer->queue) ||
	    !wheel_back_put_off_range(&base->wheel, &timer->queue, &tick, range->last))
		return false;
	base->rearmed++;
	return true;
}

/*
 * If @timer is in a bucket, range_is_hot() and nobody traces, re-arm @timer for @expires or up to
 * @tolerance later. Returns whether that was done: then the caller must call base_arm().
 */
static __always_inline bool base_mod_range_hot(struct twheel_base *base, struct twheel_timer *timer,
					       ktime_t expires, u64 tolerance)
{
	struct ticks range = base_range_hot(base, expires, tolerance);

	lockdep_assert_held(&base->lock);
	if (trace_twheel_add_enabled() || trace_twheel_cancel_enabled() ||
	    unlikely(!wheel_in_bucket(&timer->queue)) || !range_is_hot(base, &range))
		return false;
	base->rearmed++;
	if (wheel_back_put_off_range(&base->wheel, &timer->queue, &range.first, range.last))
		return true;
	wheel_unlink(&base->wheel, &timer->queue);
	base_add_chosen(base, timer, range.first);
	return true;
}

/* Disarm @timer: take it out and mark it idle. Returns whether it was armed. */
static __always_inline bool base_del(struct twheel_base *base, struct twheel_timer *timer)
{
	if (unlikely(!wheel_in_bucket(&timer->queue)))
		return base_del_back(base, timer);
	base_unlink_bucket(base, timer);
	WRITE_ONCE(timer->queue.bucket, WHEEL_NONE);
	return true;
}

/*
 * On PREEMPT_RT a task may preempt a run, and cancel the timer whose callback it interrupted. If
 * the task waited by spinning, the run would never continue: a deadlock. So the task sleeps on a
 * lock that the run holds; priority inheritance boosts the run.
 *
 * The callbacks that follow are none of the task's business: they may take long, or wait for a lock
 * that the task holds. And the run must not wait for the task, whose CPU may be busy with a task of
 * higher priority. So after a callback that somebody waits for, the run goes on with another lock,
 * and never touches this one again:
 *
 *	run, which holds lock 1			waiter
 *						base->lock: its callback runs,
 *						refers to lock 1; unlock
 *	base->lock: the callback is over,
 *	somebody refers to lock 1; unlock
 *	takes lock 2, drops lock 1
 *	calls the next callback
 *						takes and drops lock 1, however late
 *
 * If the waiter looks after the callback, it need not sleep.
 */
#ifdef CONFIG_PREEMPT_RT
/*
 * Locks for runs whose own is taken. An allocation might fail, or wait for a lock of the allocator
 * whose holder does not get its CPU: so memory is allocated only if all of these are taken.
 */
static struct expiry_lock expiry_spares[32];

static void expiry_lock_init(struct expiry_lock *lock, int refs, bool kmalloced)
{
	spin_lock_init(&lock->lock);
	atomic_set(&lock->refs, refs);
	lock->kmalloced = kmalloced;
}

static void expiry_init(struct expiry *expiry)
{
	expiry_lock_init(&expiry->own, 1, false);
	expiry->held = &expiry->own;
}

static void expiry_put(struct expiry_lock *lock)
{
	bool kmalloced = lock->kmalloced;

	/* Pairs with the acquire in expiry_lock_claim(): the lock is free. */
	if (atomic_dec_and_test(&lock->refs) && kmalloced)
		kfree(lock);
}

/* There is no run any more, and no other task uses the base. */
static void expiry_destroy(struct expiry *expiry)
{
	expiry_put(expiry->held);
}

static void expiry_init_spares(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(expiry_spares); i++)
		expiry_lock_init(&expiry_spares[i], 0, false);
}

/*
 * Take the lock of @expiry, at the beginning of a run. Nobody refers to it then, see expiry_end():
 * so this never waits, unless expiry_yield() had no other lock. @raw is the lock that guards
 * @expiry->held, and is dropped meanwhile.
 */
static void expiry_begin(struct expiry *expiry, raw_spinlock_t *raw)
	__must_hold(raw)
{
	raw_spin_unlock_irq(raw);
	spin_lock(&expiry->held->lock);
	raw_spin_lock_irq(raw);
}

/*
 * Drop it. @raw is dropped meanwhile, and the run may be preempted then for any time. So the caller
 * calls this before it lets another run begin, which would take the same lock, on another CPU.
 */
static void expiry_end(struct expiry *expiry, raw_spinlock_t *raw)
	__must_hold(raw)
{
	raw_spin_unlock_irq(raw);
	spin_unlock(&expiry->held->lock);
	raw_spin_lock_irq(raw);
}

/* Under the lock that guards @expiry->held. */
static bool expiry_has_waiters(const struct expiry *expiry)
{
	return atomic_read(&expiry->held->refs) > 1;
}

/* If nobody refers to @lock, refer to it. */
static bool expiry_lock_claim(struct expiry_lock *lock)
{
	return !atomic_read(&lock->refs) && !atomic_cmpxchg_acquire(&lock->refs, 0, 1);
}

/* A lock that nobody else refers to. NULL if there is none, and no memory. */
static struct expiry_lock *expiry_fresh(struct expiry *expiry)
{
	struct expiry_lock *lock = &expiry->own;
	unsigned int i;

	if (expiry_lock_claim(lock))
		return lock;
	for (i = 0; i < ARRAY_SIZE(expiry_spares); i++)
		if (expiry_lock_claim(&expiry_spares[i]))
			return &expiry_spares[i];
	lock = kmalloc(sizeof(*lock), GFP_NOWAIT | __GFP_NOWARN);
	if (lock)
		expiry_lock_init(lock, 1, true);
	return lock;
}

/*
 * A callback that somebody waits for has returned: let the waiters go, and hold another lock for
 * the callbacks that follow. @raw is the lock that guards @expiry->held, and is dropped meanwhile.
 * The caller has made sure that nobody is told to wait for that callback any more.
 *
 * If there is no other lock, the run takes the same one again, and does so before a waiter whose
 * priority is lower. Then the waiter may wait for the callbacks that follow, too, and if one of
 * them needs what the waiter holds, neither goes on. Also, the run may wait for a waiter that does
 * not get to run. timer_delete_sync() and hrtimer_cancel() always wait in this way.
 */
static void expiry_yield(struct expiry *expiry, raw_spinlock_t *raw)
	__must_hold(raw)
{
	struct expiry_lock *old = expiry->held, *fresh;

	raw_spin_unlock_irq(raw);
	fresh = expiry_fresh(expiry);
	if (!fresh) {
		spin_unlock(&old->lock);
		spin_lock(&old->lock);
		raw_spin_lock_irq(raw);
		return;
	}
	/* Free, so this succeeds. It is no spin_lock(): lockdep would see two of a class. */
	WARN_ON_ONCE(!spin_trylock(&fresh->lock));
	raw_spin_lock_irq(raw);
	expiry->held = fresh;
	raw_spin_unlock_irq(raw);
	spin_unlock(&old->lock);
	expiry_put(old);
	raw_spin_lock_irq(raw);
}

/*
 * The caller has seen, under the lock that guards @expiry->held, that it must wait: what for? Drop
 * that lock, and pass the result to expiry_sleep().
 */
static struct expiry_lock *expiry_get(struct expiry *expiry)
{
	atomic_inc(&expiry->held->refs);
	return expiry->held;
}

/*
 * Sleep until the run yields or ends, and lend it the caller's priority meanwhile. Then look again.
 * If @lock is NULL, the caller waits for code that cannot be preempted.
 * A callback may call this for another base, while its own run holds a lock of the same class.
 * Softirqs stay on: to turn them off, a task waits until those that were preempted on this CPU are
 * over, and so for all callbacks of the run.
 */
static void expiry_sleep(struct expiry_lock *lock)
{
	if (!lock) {
		cpu_relax();
		return;
	}
	spin_lock_nested(&lock->lock, SINGLE_DEPTH_NESTING);
	spin_unlock(&lock->lock);
	expiry_put(lock);
}
#else
static void expiry_init(struct expiry *expiry) { }
static void expiry_destroy(struct expiry *expiry) { }
static void expiry_init_spares(void) { }
#define expiry_begin(expiry, raw)	do { } while (0)
#define expiry_end(expiry, raw)		do { } while (0)
static void expiry_yield(struct expiry *expiry, raw_spinlock_t *raw) { }

static bool expiry_has_waiters(const struct expiry *expiry)
{
	return false;
}

static struct expiry_lock *expiry_get(struct expiry *expiry)
{
	return NULL;
}

static void expiry_sleep(struct expiry_lock *lock)
{
	cpu_relax();
}
#endif

/*
 * Wait for the callback of @timer, which was seen running in @base. It may be over meanwhile, or
 * run once more: call this in a loop. @timer may be free, unless the caller keeps it.
 */
static void base_wait_for(struct twheel_base *base, const struct twheel_timer *timer)
{
	struct expiry_lock *lock = NULL;
	unsigned long flags;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		raw_spin_lock_irqsave(&base->lock, flags);
		if (base->running == timer)
			lock = expiry_get(&base->expiry);
		raw_spin_unlock_irqrestore(&base->lock, flags);
		if (!lock)
			return;
	}
	expiry_sleep(lock);
}

/* Let the time up to @now repay the debt: one ns in @parts ns. */
static void account_settle(struct account *account, u64 now, u32 parts)
{
	u64 gone = now > account->since ? now - account->since : 0;

	account->debt -= min(account->debt, div_u64(gone, parts));
	account->since = now;
}

/*
 * Charge @used ns of CPU, taken up to @now. The time in which they were taken also repays debt.
 * Only the debt that is left after that is bounded.
 */
static void account_charge(struct account *account, u64 now, u64 used, u32 parts)
{
	account->debt += used;
	account_settle(account, now, parts);
	account->debt = min_t(u64, account->debt, DEBT_MAX_NS);
}

/*
 * Must the next run be deferred? What earlier runs took counts until it is repaid: many short runs
 * are treated as one long run.
 */
static bool account_is_over(const struct account *account)
{
	return account->debt * 2 >= RUN_NS;
}

/*
 * A clock for how much a run takes of a CPU; @now is the time. On PREEMPT_RT a run is part of a
 * task, which other tasks may preempt: so the clock is the task's own runtime.
 */
static u64 run_time(u64 now)
{
	const struct sched_entity *se = &current->se;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		return now;
	return se->sum_exec_runtime + local_clock() - se->exec_start;
}

/* How much has been taken since run_time() returned @since. */
static u64 run_took(u64 now, u64 since)
{
	s64 took = run_time(now) - since;

	return max_t(s64, took, 0);
}

/* The callback of @base has returned. Under the base's lock. */
static __always_inline void base_ran(struct twheel_base *base)
{
	/* Pairs with the acquire in hopped_running(): what the callback did is visible. */
	smp_store_release(&base->running, NULL);
}

/*
 * Call the callback of the timer of @queue, which is out of the wheel. The base's lock is dropped
 * meanwhile. The callback may free the timer, so it is not touched after that. Unless a task waits
 * for the callback, base->running stays set: the caller must clear it, by base_ran(), before it
 * drops the lock.
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
	/* As in base_ran(): what the previous callback did is visible. */
	smp_store_release(&base->running, timer);
	raw_spin_unlock_irq(&base->lock);
	lockdep_call(timer, function);
	raw_spin_lock_irq(&base->lock);
	if (expiry_has_waiters(&base->expiry)) {
		base_ran(base);
		expiry_yield(&base->expiry, &base->lock);
	}
}

/*
 * A clock that is read after each callback, where ktime_get() would be too slow: the processor's
 * cycle counter. It has its own rate and need not be exact: if it says that a run is over, the
 * caller asks ktime_get().
 */
static __always_inline u32 run_clock(void)
{
	return static_branch_unlikely(&run_has_no_counter) ? local_clock() : get_cycles();
}

/* The value that run_clock() will have in @ns, which is at most RUN_NS. */
static u32 run_clock_after(u64 ns)
{
	return run_clock() + (run_cycles ? div_u64(run_cycles * ns, RUN_NS) : ns);
}

/*
 * wheel_expire_many() of a base with a tree beside the wheel. If the base's clock cannot be set,
 * the tree is only for the time before the base has buckets: when the tree is empty after that,
 * this clears base->has_back.
 */
static noinline u32 base_expire_back(struct twheel_base *base, u64 now, u32 *left,
				     struct wheel_timer **timers, u32 most)
{
	struct wheel_back *back = &base->settable.back;

	base->has_back = base_is_settable(base) || back->small || back->root ||
			 wheel_clk(&base->wheel) > now;
	return wheel_back_expire_many(&base->wheel, back, now, left, timers, most, base_moved);
}

/*
 * The most operations that a lock hold of @base may have. Without the base's lock this is a guess:
 * the tree may get its first timer, or lose its last one, at any time.
 */
static __always_inline u32 base_hold_ops(const struct twheel_base *base)
{
	const struct wheel_back *back = &base->settable.back;

	if (unlikely(READ_ONCE(base->has_back)) &&
	    (READ_ONCE(back->small) || READ_ONCE(back->root)))
		return TWHEEL_TREE_OPS;
	return TWHEEL_HOLD_OPS;
}

/* wheel_expire_many() of any base. */
static __always_inline u32 base_expire_many(struct twheel_base *base, u64 now, u32 *left,
					    struct wheel_timer **timers, u32 most)
{
	if (unlikely(base->has_back))
		return base_expire_back(base, now, left, timers, most);
	return wheel_expire_many(&base->wheel, now, left, timers, most, base_moved);
}

/* Has run_clock() reached @until? They are less than 2^31 apart, so the difference has a sign. */
static __always_inline bool run_is_over(u32 until)
{
	return (s32)(run_clock() - until) >= 0;
}

/*
 * @timer is due, and has been taken out. If it has moved here from another CPU (TWHEEL_HOPPED), and
 * its last callback is still running there, add @timer for the next tick and return true: a
 * callback must not run twice at once.
 */
static noinline bool base_hold_back(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (!hopped_running(timer))
		return false;
	/* In the counters, the timer was neither armed again nor has it expired. */
	base->wheel.added--;
	base->wheel.gone--;
	wheel_add(&base->wheel, &timer->queue, wheel_clk(&base->wheel) + 1);
	return true;
}

/* Call the callback of the timer of @queue, unless the timer has to wait for its last callback. */
static __always_inline void run_timer(struct twheel_base *base, struct wheel_timer *queue)
	__must_hold(&base->lock)
{
	if (unlikely(queue->flags & TWHEEL_HOPPED) &&
	    base_hold_back(base, container_of(queue, struct twheel_timer, queue)))
		return;
	run_callback(base, queue);
}

/*
 * Call the callbacks of up to @left timers of the slot that is due at clk, which is not empty, as
 * long as run_clock() is before @until. Returns what is left of @left. Between callbacks timers of
 * the slot may be added and cancelled; only a run advances to another slot. Not inlined, so that it
 * keeps what it needs in registers.
 */
static noinline u32 run_slot(struct twheel_base *base, u32 left, u32 until)
	__must_hold(&base->lock)
{
	struct wheel_slot slot = wheel_due_slot(&base->wheel);
	u32 n = slot.bucket->n;

	lockdep_assert_held(&base->lock);
	do {
		run_timer(base, wheel_pop(&base->wheel, &slot, n));
		n = slot.bucket->n;
	} while (--left && n && !run_is_over(until));
	base_ran(base);
	return left;
}

/* run_callbacks() of a base with a tree beside the wheel. */
static noinline u32 run_back(struct twheel_base *base, u64 now, u32 until)
	__must_hold(&base->lock)
{
	const u32 most = base_hold_ops(base);
	struct wheel_timer *queue;
	u32 left = most;

	while (base_expire_many(base, now, &left, &queue, 1)) {
		run_timer(base, queue);
		if (run_is_over(until))
			break;
	}
	base_ran(base);
	return most - left;
}

/*
 * Call the callbacks that are due at tick @now: at most TWHEEL_HOLD_OPS operations, and until
 * run_clock() reaches @until. The base's lock is dropped for each callback. Returns how many
 * operations were done.
 */
static u32 run_callbacks(struct twheel_base *base, u64 now, u32 until)
	__must_hold(&base->lock)
{
	struct wheel *w = &base->wheel;
	u32 left = TWHEEL_HOLD_OPS;

	lockdep_assert_held(&base->lock);
	if (unlikely(base->has_back))
		return run_back(base, now, until);
	while (wheel_reach(w, now, &left, base_moved) && left) {
		left = run_slot(base, left, until);
		if (run_is_over(until))
			break;
	}
	return TWHEEL_HOLD_OPS - left;
}

/*
 * Hand the sink the timers that are due at tick @now, at most base_hold_ops() operations. Returns
 * how many operations were done.
 */
static u32 run_sink(struct twheel_base *base, u64 now)
{
	struct twheel_timer *batch[TWHEEL_SINK_MAX] __uninitialized;
	const u32 most = base_hold_ops(base);
	u32 left = most, nr = 0, more;

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
	return most - left;
}

/*
 * Is another soft hrtimer due on the CPU where @running's callback runs? The softirq is in that
 * callback, so the kernel raises no other for such an hrtimer: it waits in its queue.
 */
static bool soft_hrtimer_is_due(const struct hrtimer *running, u64 mono)
{
	struct hrtimer_cpu_base *cpu = running->base->cpu_base;
	bool due = false;
	unsigned int i;

	raw_spin_lock(&cpu->lock);
	for (i = HRTIMER_BASE_MONOTONIC_SOFT; i < HRTIMER_MAX_CLOCK_BASES; i++) {
		struct hrtimer_clock_base *clock = &cpu->clock_base[i];

		due |= hrtimer_first(clock) &&
		       ktime_sub(hrtimer_first(clock)->expires,
				 clock->offset) <= (s64)mono;
	}
	raw_spin_unlock(&cpu->lock);
	return due;
}

/*
 * At @now, a run has used up what it may take from tasks and from other softirqs. If there are
 * none, it may go on: nobody loses anything, and the CPU is woken by one interrupt less. If an
 * interrupt wakes a task or raises a softirq, or another soft hrtimer of this CPU falls due, the
 * run ends when it asks next, so all of them wait no longer than if the CPU were busy. But if the
 * tick is stopped, the kernel looks for due timers of timer_list and for RCU's work only when the
 * interrupt ends. So what is armed or queued there meanwhile may wait for IDLE_RUN_NS, whether a
 * callback of the run did it or an interrupt; and a timer_list timer that another CPU adds to this
 * one may wait until the kernel's next tick after that. On PREEMPT_RT a run is in a thread, and the
 * answer is no.
 */
static bool run_may_go_on(const struct hrtimer *running, u64 begin, u64 now, u64 moves)
{
	return now - begin < IDLE_RUN_NS && moves < RUN_OPS && is_idle_task(current) &&
	       !need_resched() && !local_softirq_pending() && !soft_hrtimer_is_due(running, now);
}

/*
 * In the callback of @running, since @begin: expire the timers that are due. Returns false if that
 * was too much for one run.
 */
static bool run_due(struct twheel_base *base, const struct hrtimer *running, u64 begin)
	__must_hold(&base->lock)
{
	const u64 moved = base->wheel.moves;
	u64 time = begin, room = RUN_NS - min_t(u64, base->account.debt * 2, RUN_NS);
	u32 ops = 0, most = RUN_OPS;

	for (;;) {
		u64 now = base_tick(base, base_from_mono(base, time)), used = time - begin;

		if (!wheel_due(&base->wheel, now))
			return true;
		/* Each run does something, however large the debt of earlier ones is. */
		if (ops && (ops >= most || used >= room)) {
			u64 moves = base->wheel.moves - moved;

			if (!run_may_go_on(running, begin, time, moves))
				return false;
			most = ops + RUN_OPS - moves;
			room = min_t(u64, used + RUN_NS, IDLE_RUN_NS);
		}
		/* End the lock hold: if timers were only moved, no callback has ended it. */
		if (ops) {
			raw_spin_unlock_irq(&base->lock);
			raw_spin_lock_irq(&base->lock);
		}
		ops += run_callbacks(base, now, run_clock_after(room - min(room, used)));
		time = ktime_get_ns();
	}
}

/* A run begins at @begin: nothing else arms the base until run_end(). Under the base's lock. */
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

/*
 * End a run that began at the run_time() @since. Charge it, and arm the base for its next event.
 * But if work is left, or the runs have had their half of the CPU, defer the base. Under the base's
 * lock.
 */
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
 * A run: the callback of both hrtimers of a base. Only one runs at a time, because a run starts the
 * other hrtimer, and does so last.
 */
static enum hrtimer_restart base_run(struct hrtimer *hrtimer)
{
	struct drive *drive = container_of(hrtimer, struct drive, hrtimer);
	struct twheel_base *base = drive->base;
	u64 begin = ktime_get_ns(), since = run_time(begin), moves;
	bool finished;

	raw_spin_lock_irq(&base->lock);
	expiry_begin(&base->expiry, &base->lock);
	moves = base->wheel.moves;
	base_next_drive(base, drive);
	run_begin(base, begin);
	finished = run_due(base, hrtimer, begin);
	expiry_end(&base->expiry, &base->lock);
	run_end(base, since, finished);
	moves = base->wheel.moves - moves;
	base->worst = max_t(u64, base->worst, min_t(u64, moves, U16_MAX));
	raw_spin_unlock_irq(&base->lock);
	return HRTIMER_NORESTART;
}

#include "twheel_dispatch.h"
#include "twheel_set.h"

/*
 * The base that @timer belongs to at the moment; wait if the timer is moving from one CPU's base to
 * another's. The base is not freed meanwhile: a caller that may use a timer keeps its base, too.
 */
static noinline struct twheel_base *base_of(const struct twheel_timer *timer)
{
	u32 id;

	while ((id = READ_ONCE(timer->queue.data)) & MIGRATING)
		cpu_relax();
	return cpu_base_of(id) ?: xa_load(&private_bases, id);
}

/*
 * Lock the base of @timer, which is mostly this CPU's, and return it. The timer's base may change
 * until it is locked, so queue.data is read again under the lock:
 *
 *	CPU 0: lock_base()			CPU 1: move_base()
 *	id = A
 *						id = A | MIGRATING
 *						unlock A, lock B
 *	lock A
 *						id = B
 *	id is not A any more: unlock A, again
 *
 * While MIGRATING is set nobody else can lock the timer's base, so CPU 1 need not hold two locks.
 */
static __always_inline struct twheel_base *lock_base(const struct twheel_timer *timer,
						     unsigned long *flags)
	__acquires(timer)
{
	for (;;) {
		struct twheel_base *base = raw_cpu_read(cpu_base);

		if (unlikely(READ_ONCE(timer->queue.data) != base->id))
			base = base_of(timer);
		raw_spin_lock_irqsave(&base->lock, *flags);
		if (likely(READ_ONCE(timer->queue.data) == base->id))
			return base;
		raw_spin_unlock_irqrestore(&base->lock, *flags);
	}
}

/* If a timer of @base is armed on this CPU, does it move to this CPU's base? */
static __always_inline bool base_is_elsewhere(const struct twheel_base *base)
{
	return this_cpu_read(cpu_base) != base && base->id < first_private();
}

/*
 * Move @timer, which is not armed, from its locked base @from to @to. Returns @to, locked instead
 * of @from. Pairs with base_of() and lock_base().
 */
static struct twheel_base *move_to(struct twheel_base *from, struct twheel_timer *timer,
				   struct twheel_base *to)
{
	WRITE_ONCE(timer->queue.data, timer->queue.data | MIGRATING);
	raw_spin_unlock(&from->lock);
	raw_spin_lock(&to->lock);
	WRITE_ONCE(timer->queue.data, to->id);
	return to;
}

/* The rare part of move_base(): @base is not this CPU's. */
static noinline struct twheel_base *move_here(struct twheel_base *base,
					      struct twheel_timer *timer)
{
	if (base->id >= first_private() || base->running == timer)
		return base;
	return move_to(base, timer, this_cpu_read(cpu_base));
}

/*
 * Return the base to which @timer must be added, locked instead of @base: this CPU's, for a timer
 * of the CPUs' bases. If the timer's callback is running, the timer stays in @base, because a
 * synchronous cancel looks for the callback in the timer's base.
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
 * @timer:	memory that is not an armed timer
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
	timer->queue.data = (base ?: raw_cpu_read(cpu_base))->id;
	lockdep_init_timer(timer, name, key);
}
EXPORT_SYMBOL_GPL(__twheel_init);

/* Was @timer shut down? Under the base's lock. */
static bool is_shut(const struct twheel_timer *timer)
{
	return timer->queue.flags & TWHEEL_SHUT;
}

/* is_shut(), if @base has no sink. With a sink, queue.flags are the owner's: the answer is no. */
static bool base_has_shut(const struct twheel_base *base, const struct twheel_timer *timer)
{
	return is_shut(timer) && !base->sink;
}

/* In which cases a call arms the timer. */
enum arm_mode {
	ARM_ALWAYS,
	ARM_PENDING,		/* only if it is armed already */
	ARM_EARLIER,		/* only if it is not armed, or armed for later */
};

/* Must a call with this @mode arm @timer for @expires? Under the base's lock. */
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
 * Arm @timer for @time, or with @relative for @time from now. Returns whether it was armed before.
 * Inlined, so that each caller contains only the part that it needs: this is a hot path.
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

/* arm_is_wanted() for any of the ticks of @range. */
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

/*
 * timer_arm_range() for any timer, whose base @base is locked. *@pending: was it armed before?
 * Returns the base that is locked afterwards, which may be another one.
 */
static noinline struct twheel_base *base_arm_range(struct twheel_base *base,
						   struct twheel_timer *timer, ktime_t expires,
						   u64 tolerance, enum arm_mode mode, int *pending)
{
	struct ticks range = base_range(base, expires, tolerance);

	*pending = wheel_pending(&timer->queue);
	if (unlikely(!range_is_wanted(timer, &range, mode)) ||
	    (!base_is_elsewhere(base) && base_put_off_range(base, timer, &range)))
		return base;
	base_unlink(base, timer);
	base = move_base(base, timer);
	base_forward(base);
	if (base_add_range(base, timer, &range, *pending))
		base_arm(base);
	return base;
}

/*
 * timer_arm() of a timer that may be late by @tolerance. A timer in a bucket is not shut down. So
 * re-arming it is always wanted, except with ARM_EARLIER.
 */
static __always_inline int timer_arm_range(struct twheel_timer *timer, ktime_t time, u64 tolerance,
					   bool relative, enum arm_mode mode)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending = 1;

	base = lock_base(timer, &flags);
	if (relative)
		time = ktime_add_safe(base_now(base), max_t(ktime_t, time, 0));
	base_forward(base);
	if (mode != ARM_EARLIER && !base_is_elsewhere(base) &&
	    base_mod_range_hot(base, timer, time, tolerance))
		base_arm(base);
	else
		base = base_arm_range(base, timer, time, tolerance, mode, &pending);
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return pending;
}

/*
 * The hottest path: arm @timer if it is idle, not shut down, and of this CPU's base (or of the base
 * that was this CPU's a moment ago). Under the lock, one comparison of queue.word checks all three.
 * If one does not hold, do nothing and return false. The read of queue.data before only avoids
 * taking the lock of a base that is not the timer's.
 */
static __always_inline bool timer_add_hot(struct twheel_timer *timer, ktime_t time, u64 tolerance,
					  bool relative)
{
	struct twheel_base *base = raw_cpu_read(cpu_base);
	unsigned long flags;

	if (unlikely(READ_ONCE(timer->queue.data) != base->id))
		return false;
	raw_spin_lock_irqsave(&base->lock, flags);
	if (unlikely(timer->queue.word != base->idle)) {
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
 * The same as cancelling and adding, but atomically. If the timer's callback is running, the timer
 * is armed for another call of it.
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
 * twheel_mod_pending() - re-arm a timer if it is armed
 * @timer:	the timer
 * @delay:	ns from now
 *
 * If the timer has expired meanwhile, it is not armed again: its callback runs once.
 *
 * Context: Any.
 * Return: 1 if the timer was armed: it is now armed for @delay. 0 if it was not: it stays idle.
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
 * twheel_add_abs() - twheel_add() for a deadline
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

/*
 * Return the base of @cpu to which the idle @timer is to be added, locked instead of @base. If the
 * timer's callback is running in @base, the timer is marked, see base_hold_back().
 */
static struct twheel_base *move_on(struct twheel_base *base, struct twheel_timer *timer,
				   unsigned int cpu)
{
	struct twheel_base *to = per_cpu(pinned_base, cpu);

	if (base == to)
		return base;
	/* The caller may be the timer's own callback. */
	if (base->running == timer)
		timer->queue.flags |= TWHEEL_HOPPED;
	return move_to(base, timer, to);
}

/**
 * twheel_add_on() - twheel_add() on a certain CPU
 * @timer:	the timer, of the CPUs' bases
 * @delay:	ns from now
 * @cpu:	the CPU
 *
 * The callback runs on that CPU, also if the CPU is isolated (nohz_full=, isolcpus=, isolated
 * cpusets). If the CPU is offline, or goes offline, the callback runs on another CPU, still in
 * time. A callback may arm its own timer on another CPU. It is called there only after it has
 * returned here, which may be a tick later.
 *
 * If another call arms the timer later, on any CPU, the timer moves to that CPU; but if its own
 * callback makes that call, the timer stays on its CPU.
 *
 * Context: Any.
 * Return: 0, also for a timer that was shut down, which stays idle. -EINVAL for a CPU that is not
 * possible, or for a timer of a private base. -EBUSY if the timer is armed. If it fails, nothing
 * has changed.
 */
int twheel_add_on(struct twheel_timer *timer, ktime_t delay, unsigned int cpu)
{
	struct twheel_base *base;
	unsigned long flags;
	int err = 0;

	if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	base = lock_base(timer, &flags);
	if (base->id >= first_private()) {
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
 * If the timer is armed for a tick that is allowed now, it keeps that tick, unless it moves to
 * another CPU.
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
 * If this returns 0, or if the timer was armed while its callback was running, the callback may be
 * running, or be about to run, on another CPU. Then neither the timer nor what its callback uses
 * may be freed.
 *
 * Context: Any.
 * Return: 1 if the timer was armed: its callback will not be called for that time. 0 if it was
 * not.
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
 * Cancel @timer. Returns what twheel_cancel() returns; or -1 if its callback is running: then it
 * was not cancelled, and *@running is the base in which the callback runs.
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
 * Unlike twheel_cancel() it says whether the timer may be freed.
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

/* Cancel @timer and wait: see twheel_cancel_sync(). Not in hard interrupt context. */
static int cancel_and_wait(struct twheel_timer *timer)
{
	struct twheel_base *running;
	int ret;

	WARN_ON_ONCE(in_hardirq());
	lockdep_wait(timer);
	while ((ret = try_cancel(timer, &running)) < 0)
		base_wait_for(running, timer);
	return ret;
}

/**
 * twheel_cancel_sync() - disarm a timer and wait for its callback
 * @timer:	the timer
 *
 * When this returns, the timer is not armed and its callback is not running. If nobody arms the
 * timer again, it may be freed. If the callback arms its own timer, that is undone. If other code
 * may arm the timer, the caller must stop that code before; or see twheel_shutdown_sync().
 *
 * The caller may hold no lock that the callback takes:
 *
 *	CPU 0					CPU 1
 *						callback runs
 *	lock(x)
 *	twheel_cancel_sync()			lock(x)
 *	  waits for the callback		  waits for x
 *
 * lockdep reports that, even if the two never meet.
 *
 * Context: Task or softirq context; on PREEMPT_RT only where it may sleep. Never from the callback
 * itself.
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
 * As twheel_cancel_sync(). In addition, calls that arm the timer from now on have no effect and say
 * nothing, those of its own callback included. Use it for a timer that is armed by something which
 * the timer itself starts, such as a work item. Only twheel_init() makes the timer usable again.
 *
 * Context: As twheel_cancel_sync().
 * Return: 1 if the timer was armed, 0 if not.
 */
int twheel_shutdown_sync(struct twheel_timer *timer)
{
	struct twheel_base *base;
	unsigned long flags;
	int pending;

	/*
	 * In one lock hold: what armed the timer before is undone, and what tries to arm it later
	 * finds it shut down.
	 */
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
 * Not for a timer of a base with a sink, see struct twheel_timer.
 *
 * Context: Any.
 * Return: the beginning of its tick, as a time of the base's clock: the deadline rounded
 * up, or, if the timer may be late, the tick that was chosen for it. KTIME_MAX if it is not
 * armed.
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
 * Not for a timer of a base with a sink, see struct twheel_timer.
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

/* Values of twheel_task->stage, for a task with TWHEEL_TASK_PROCESS. Under the lock of its base. */
enum {
	STAGE_IDLE,
	STAGE_STARTED,		/* armed, or its expiry is under way */
	STAGE_DUE,		/* its work must call the function */
};

/*
 * Will the work of @task call the function, unless that is taken back now? (If the function is
 * called in softirq context, the call cannot be taken back once the timer has expired.) Under the
 * lock of the timer's base.
 */
static bool task_is_coming(const struct twheel_task *task)
{
	return (task->flags & TWHEEL_TASK_PROCESS) && task->stage != STAGE_IDLE;
}

/*
 * Arm @task, whose timer's base is locked, for its deadline. @rearmed: base_unlink() has taken it
 * out for that. Returns the base that is locked afterwards, which may be another one.
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

/* Set the next deadline of a periodic task, and count the periods that were missed. */
static void task_next_deadline(struct twheel_task *task, u64 now)
{
	u64 missed = 0;

	if (task->flags & TWHEEL_TASK_DELAY) {
		task->deadline = ktime_add_safe(now, task->period);
		return;
	}
	/* If the clock was set back, the deadline may lie in the future again. */
	if (now > task->deadline)
		missed = div64_u64(now - task->deadline, task->period);
	WRITE_ONCE(task->overruns, task->overruns + missed);
	task->deadline = ktime_add_safe(task->deadline, (missed + 1) * task->period);
}

/*
 * Call the task's function, without a lock. If it returns TWHEEL_STOP, the task may have been
 * freed: do not touch it. If it returns TWHEEL_AGAIN, the task still exists: arm it for the next
 * period, and count those that were skipped. It is not armed before the call, so that nothing has
 * to be undone if the function stops it.
 *
 * If the task was cancelled meanwhile, it is not active; if it was started again, it is armed or
 * due already. In both cases leave it as it is.
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
 * The timer of @task has expired: make the task due, so that its work calls the function. A work
 * item does not know why it was queued. So a cancel or a start that comes between the expiry and
 * the work takes this back:
 *
 *	CPU 0: expiry		CPU 1				CPU 0: work
 *	due, queue the work
 *				cancel, start: not due
 *								finds it not due
 *	the new time comes:
 *	due, queue the work
 *								calls the function
 *
 * If the cancel or the start comes before the task is made due, the task is idle, or armed again.
 * It is not made due then, and the work that is queued finds that, and calls nothing.
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
 * If @task is due, and it is this work that must call the function, make the task idle and return
 * true. The function may free the task, so wait first for an expiry that is under way, and is about
 * to queue the work. If that has queued the work again since this work began, leave the call to the
 * next work:
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
	struct twheel_base *base;
	unsigned long flags;
	bool due;

	for (;;) {
		base = lock_base(&task->timer, &flags);
		if (base->running != &task->timer)
			break;
		raw_spin_unlock_irqrestore(&base->lock, flags);
		base_wait_for(base, &task->timer);
	}
	due = task->stage == STAGE_DUE && !work_pending(&task->work);
	if (due)
		task->stage = STAGE_IDLE;
	raw_spin_unlock_irqrestore(&base->lock, flags);
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
 * @period:	ns from each time that it is due to the next, 0 to be called once
 * @tolerance:	ns that it may be called later each time, 0 if it is exact
 *
 * Unless the task has TWHEEL_TASK_DELAY, the phase is kept: how late the function is called does
 * not change the next deadline. If @tolerance is longer than @period, periods that pass before the
 * function is called are skipped.
 *
 * Context: Any.
 * Return: 1 if the task was started before, and this call replaces a call of its function that was
 * still to come; else 0. -EINVAL for a negative period, or a tolerance beyond KTIME_MAX. If the
 * task was shut down, it is not started, and 0 is returned.
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

/* Stop @task. Returns 1 if that prevents a call of its function: it was armed, or due. */
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
 * Return: 1 if the task was armed, or if, with TWHEEL_TASK_PROCESS, it was due and its function not
 * called yet: that call will not come. 0 if not.
 */
int twheel_task_cancel(struct twheel_task *task)
{
	return task_stop(task);
}
EXPORT_SYMBOL_GPL(twheel_task_cancel);

/* Stop @task, and wait until neither its timer's callback nor its work is running. May sleep. */
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
 * As twheel_task_cancel_sync(). In addition, calls that start the task from now on have no effect.
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
 * 64 of them, or for 16 on PREEMPT_RT.
 *
 * Context: Any. The time that it takes grows with @nr.
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
			WRITE_ONCE(timers[i]->queue.data, base->id);
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
 * Context: Any. The time that it takes grows with @nr.
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
 * Interrupts are off until twheel_unlock(). So the caller may do only a bounded number of
 * twheel_add_locked(), twheel_cancel_locked() and the like before that: about twheel_hold_ops().
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
 * For callers that do not need the time. A caller that has used the functions on a locked base must
 * unlock with twheel_unlock() or twheel_unlock_irq(). A caller that has only changed its own data
 * may unlock it as any lock.
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
 * twheel_relock() - continue a number of calls on one base
 * @base:	a private base
 * @flags:	where to keep the interrupt state, for twheel_unlock()
 *
 * As twheel_lock(), but without reading the clock, for a caller that has just called twheel_lock()
 * and twheel_unlock(). A timer that is added now for a tick that is over still expires in the next
 * tick.
 *
 * Context: Any. Takes the base's raw lock.
 */
void twheel_relock(struct twheel_base *base, unsigned long *flags)
	__acquires(&base->lock)
{
	raw_spin_lock_irqsave(&base->lock, *flags);
}
EXPORT_SYMBOL_GPL(twheel_relock);

/* Timers may have been added: make sure that they will be served. */
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
 * Context: Releases the base's raw lock and enables interrupts.
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
 * Return: true if the timer was armed. Then it has not expired yet, and expires only at @expires.
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
	struct ticks range;
	bool pending;

	base_forward(base);
	if (base_mod_range_hot(base, timer, expires, tolerance))
		return true;
	range = base_range(base, expires, tolerance);
	if (base_put_off_range(base, timer, &range))
		return true;
	pending = base_unlink(base, timer);
	if (unlikely(base_has_shut(base, timer)))
		return pending;
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
 * Return: true if the timer was armed. Then it has not expired and will not.
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

/* Does twheel_create() accept @config? Only a base with a sink may begin small: twheel_grow(). */
static bool config_is_valid(const struct twheel_config *config)
{
	if (config->clock != CLOCK_MONOTONIC && config->clock != CLOCK_BOOTTIME &&
	    config->clock != CLOCK_REALTIME)
		return false;
	return config->tick_ns >= TWHEEL_TICK_MIN_NS &&
	       config->tick_ns <= TWHEEL_TICK_MAX_NS &&
	       config->slack_ns < NSEC_PER_SEC && (config->sink || !config->small);
}

/* Prepare what drives a base with callbacks: two hrtimers, and the call that another CPU gets. */
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

/* Free @base, which is in no list, and which nobody uses. */
static void base_free(struct twheel_base *base)
{
	if (!base->sink)
		xa_erase(&private_bases, base->id);
	expiry_destroy(&base->expiry);
	vfree(base->grown);
	kvfree(base);
}

/* Give @base, which has callbacks, an id by which its timers name it. */
static int base_enlist(struct twheel_base *base)
{
	u32 id;
	int err = xa_alloc(&private_bases, &id, base, XA_LIMIT(first_private(), MIGRATING - 1),
			   GFP_KERNEL);

	if (!err)
		base_set_id(base, id);
	return err;
}

/* Let the wheel of @base have the buckets in @store, which is zeroed. */
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
	/* Not kvzalloc(): 64 KiB in one piece are hard to find. */
	base = __vmalloc(sizeof(*base) + sizeof(struct wheel_store), GFP_CHARGED | __GFP_ZERO);
	if (base)
		base_set_store(base, (struct wheel_store *)(base + 1));
	return base;
}

/**
 * twheel_create() - make a private base
 * @config:	the properties of the base
 *
 * The callbacks of the base are called one after the other, on any CPU. While one runs, and on
 * PREEMPT_RT also while a task preempts it, the other timers of the base wait. If timers must not
 * wait for each other, use the CPUs' bases, or several private ones.
 *
 * The memory, see twheel_size(), is charged to the caller's memory cgroup.
 *
 * Context: May sleep.
 * Return: the base, or an ERR_PTR(): -EINVAL for a value that is not allowed, -ENOMEM, or -EBUSY if
 * no id is left for it.
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
		err = base_enlist(base);
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
 * Armed timers stay armed, and fire in their ticks. The memory is charged to the caller's memory
 * cgroup. For one base, calls must not overlap.
 *
 * Context: May sleep.
 * Return: 0, also if it is a whole base already; or -ENOMEM, with nothing changed.
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

/**
 * twheel_hold_ops() - how many operations to do between twheel_lock() and twheel_unlock()
 * @base:	a private base
 *
 * If timers of @base are in a tree, because the base is small or because its clock was set back,
 * the number is smaller, so that interrupts are off for no longer than otherwise.
 *
 * Context: Any.
 * Return: TWHEEL_TREE_OPS or TWHEEL_HOLD_OPS. Unless the caller has locked the base, the number may
 * change at any moment.
 */
unsigned int twheel_hold_ops(const struct twheel_base *base)
{
	return base_hold_ops(base);
}
EXPORT_SYMBOL_GPL(twheel_hold_ops);

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

/* The timer whose callback is running, or NULL. The callback may be over when this returns. */
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

	while (running && base_running(base) == running)
		base_wait_for(base, running);
}

/* Is no timer of @base armed, and no callback running? */
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
 * @fn:		called for each timer that was armed, with when it would have expired. The timer is
 *		idle then. @fn may free the timer, but not arm it
 * @arg:	for @fn
 *
 * The orderly stop: when this returns, no timer is armed and no callback runs. Timers that
 * callbacks arm meanwhile are cancelled too. Other code may not arm any meanwhile, nor may the
 * functions of tasks with TWHEEL_TASK_PROCESS: call twheel_task_cancel_sync() for these tasks
 * before.
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

/* Stop @base for good. If it has callbacks, a timer that is still armed is its owner's mistake. */
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
 * No other call on the base may be in progress or follow. No timer of a base with callbacks may be
 * armed, and no callback may be running: call twheel_cancel_sync() for each timer before. In a base
 * with a sink timers may be armed: they are forgotten, without touching each. The owner may free
 * their memory after this. Once this returns, neither expired() nor wake() is called.
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

/* Free a CPU's base, or do nothing if it is NULL. No timer may be armed on it. */
static void free_cpu_base(struct twheel_base *base)
{
	if (!base)
		return;
	unlist_base(base);
	base_stop(base);
	expiry_destroy(&base->expiry);
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

/* Make a base of @cpu, with this @id. It is stored in *@base even if it cannot be listed. */
static int create_cpu_base(struct twheel_base **base, unsigned int cpu, u32 id,
			   const struct twheel_config *config)
{
	*base = kvzalloc_node(sizeof(**base) + sizeof(struct wheel_store), GFP_KERNEL,
			      cpu_to_node(cpu));
	if (!*base)
		return -ENOMEM;
	base_set_store(*base, (struct wheel_store *)(*base + 1));
	base_set_id(*base, id);
	base_init(*base, config);
	return list_cpu_base(*base, cpu);
}

/* Make the bases of all CPUs. If that fails, the caller frees those that were made. */
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
	/* Under RCU, because cpusets may change. */
	rcu_read_lock();
	for_each_possible_cpu(cpu)
		cpu_set_home(cpu, cpu_find_home(cpu));
	rcu_read_unlock();
	return 0;
}

/*
 * By how much get_cycles() advances in RUN_NS. If something stops this CPU meanwhile, the result is
 * too small, never too large: the counter is read after the clock at first, and before it at last.
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

/*
 * A value that is too small only makes a run read the clock more often. So take the largest of
 * five.
 */
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
	expiry_init_spares();
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

#include "twheel_debugfs.c"

/* If built in, it must be ready before other code arms timers while the machine starts. */
postcore_initcall(twheel_init_module);
module_exit(twheel_exit_module);

MODULE_DESCRIPTION("Timers in a cascading wheel, exact to the tick");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
