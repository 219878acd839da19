// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What each call of twheel.h does to a timer, for each state of the timer, in each context, and for
 * each base that the timer may belong to: what the call returns, for when the timer is armed after
 * it, and how often its callback is called in the end.
 *
 * Then a timer that two CPUs keep arming, so that it moves from one to the other all the time.
 *
 * KTAP in the kernel log, a point for each call and state. If a cell's state was over before the
 * call was made, because the machine was busy, the cell is tried again.
 */
#define pr_fmt(fmt) fmt

#include <linux/module.h>

#include "ktap.h"
#include "twheel.h"

/* How often each CPU arms the moving timer, at least. */
#define MOVES		300

/* ---- the table -------------------------------------------------------------------------- */

enum state { IDLE, ARMED, DUE, RUNNING, REARMED, SHUT, NR_STATES };

static const char * const state_names[NR_STATES] = {
	"idle", "armed", "due", "running", "running and armed", "shut down",
};

/*
 * For when the timer is armed after the call: not at all; as before; as the call says; for the next
 * tick; or as before, unless the timer goes to another CPU.
 */
enum after { NONE, SAME, NEW, NEXT, STAYS };

/* The call must not be made for a timer in this state. */
#define NA	-99
/* What a call returns that has found something wrong. */
#define WRONG	-100

struct cell;

/**
 * struct call - a call
 * @name:	its name
 * @make:	makes the call
 * @places:	the places that it is for, a bit for each of enum place
 * @sync:	it waits for the callback: so the callback must not make it, and only contexts that
 *		may wait
 * @delay:	the delay that it arms for
 * @ret:	what it returns, by state
 * @after:	what the timer is armed for after it, by state
 * @tolerance:	how much later than the delay it may be armed for
 */
struct call {
	const char	*name;
	int		(*make)(struct cell *cell);
	u8		places;
	bool		sync;
	s64		delay;
	s8		ret[NR_STATES];
	u8		after[NR_STATES];
	u64		tolerance;
};

/**
 * struct subject - a timer
 * @timer:	the timer
 * @armed:	what twheel_pending() returned after the call
 * @after:	what the timer was armed for after the call
 * @fired:	the tick in which the callback was last called
 */
struct subject {
	struct twheel_timer	timer;
	bool			armed;
	ktime_t			after;
	ktime_t			fired;
};

#include "cells.h"

/* ---- the calls -------------------------------------------------------------------------- */

static ktime_t cell_time(const struct cell *cell)
{
	return ktime_add_ns(place_now(cell->place), cell->call->delay);
}

static int call_add(struct cell *cell)
{
	twheel_add(&cell->it.timer, cell->call->delay);
	return 0;
}

static int call_add_abs(struct cell *cell)
{
	twheel_add_abs(&cell->it.timer, cell_time(cell));
	return 0;
}

static int call_add_array(struct cell *cell)
{
	struct twheel_timer *timer = &cell->it.timer;
	ktime_t delay = cell->call->delay;

	twheel_add_array(&timer, &delay, 1);
	return 0;
}

/* On this CPU and on the other one, by turns. */
static int call_add_on(struct cell *cell)
{
	static unsigned int turn;
	unsigned int cpu = turn++ % 2 && there.task ? there.cpu : raw_smp_processor_id();

	return twheel_add_on(&cell->it.timer, cell->call->delay, cpu);
}

static int call_add_on_nowhere(struct cell *cell)
{
	return twheel_add_on(&cell->it.timer, cell->call->delay, nr_cpu_ids);
}

static int call_mod(struct cell *cell)
{
	return twheel_mod(&cell->it.timer, cell->call->delay);
}

static int call_mod_abs(struct cell *cell)
{
	return twheel_mod_abs(&cell->it.timer, cell_time(cell));
}

static int call_mod_pending(struct cell *cell)
{
	return twheel_mod_pending(&cell->it.timer, cell->call->delay);
}

static int call_reduce(struct cell *cell)
{
	return twheel_reduce(&cell->it.timer, cell->call->delay);
}

static int call_add_range(struct cell *cell)
{
	twheel_add_range(&cell->it.timer, cell->call->delay, cell->call->tolerance);
	return 0;
}

static int call_add_abs_range(struct cell *cell)
{
	twheel_add_abs_range(&cell->it.timer, cell_time(cell), cell->call->tolerance);
	return 0;
}

static int call_add_array_range(struct cell *cell)
{
	struct twheel_timer *timer = &cell->it.timer;
	ktime_t delay = cell->call->delay;

	twheel_add_array_range(&timer, &delay, &cell->call->tolerance, 1);
	return 0;
}

static int call_mod_range(struct cell *cell)
{
	return twheel_mod_range(&cell->it.timer, cell->call->delay, cell->call->tolerance);
}

static int call_mod_abs_range(struct cell *cell)
{
	return twheel_mod_abs_range(&cell->it.timer, cell_time(cell), cell->call->tolerance);
}

static int call_mod_pending_range(struct cell *cell)
{
	return twheel_mod_pending_range(&cell->it.timer, cell->call->delay,
					cell->call->tolerance);
}

static int call_reduce_range(struct cell *cell)
{
	return twheel_reduce_range(&cell->it.timer, cell->call->delay, cell->call->tolerance);
}

static int call_cancel(struct cell *cell)
{
	return twheel_cancel(&cell->it.timer);
}

static int call_try_cancel(struct cell *cell)
{
	return twheel_try_cancel(&cell->it.timer);
}

static int call_cancel_sync(struct cell *cell)
{
	return twheel_cancel_sync(&cell->it.timer);
}

static int call_shutdown_sync(struct cell *cell)
{
	return twheel_shutdown_sync(&cell->it.timer);
}

static int call_pending(struct cell *cell)
{
	return twheel_pending(&cell->it.timer);
}

static int call_expires(struct cell *cell)
{
	return twheel_expires(&cell->it.timer) != KTIME_MAX;
}

/* Compare the deadline with the clock around the call, to the ns. */
static int call_remaining(struct cell *cell)
{
	ktime_t from = place_now(cell->place);
	ktime_t left = twheel_remaining(&cell->it.timer);
	ktime_t to = place_now(cell->place);
	ktime_t most = ktime_sub(cell->before, from), least = ktime_sub(cell->before, to);

	if (cell->before == KTIME_MAX)
		return !!left;
	if (left > max_t(ktime_t, most, 0) || left < max_t(ktime_t, least, 0))
		return WRONG;
	return !!left;
}

static int call_add_locked(struct cell *cell)
{
	struct twheel_base *base = cell->place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);

	twheel_add_locked(base, &cell->it.timer, ktime_add_ns(now, cell->call->delay));
	twheel_unlock(base, flags);
	return 0;
}

static int call_mod_locked(struct cell *cell)
{
	struct twheel_base *base = cell->place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);
	int ret = twheel_mod_locked(base, &cell->it.timer, ktime_add_ns(now, cell->call->delay));

	twheel_unlock(base, flags);
	return ret;
}

static int call_add_range_locked(struct cell *cell)
{
	struct twheel_base *base = cell->place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);

	twheel_add_range_locked(base, &cell->it.timer, ktime_add_ns(now, cell->call->delay),
				cell->call->tolerance);
	twheel_unlock(base, flags);
	return 0;
}

static int call_mod_range_locked(struct cell *cell)
{
	struct twheel_base *base = cell->place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);
	int ret = twheel_mod_range_locked(base, &cell->it.timer,
					  ktime_add_ns(now, cell->call->delay),
					  cell->call->tolerance);

	twheel_unlock(base, flags);
	return ret;
}

static int call_cancel_locked(struct cell *cell)
{
	struct twheel_base *base = cell->place->base;
	unsigned long flags;
	int ret;

	twheel_lock(base, &flags);
	ret = twheel_cancel_locked(base, &cell->it.timer);
	twheel_unlock(base, flags);
	return ret;
}

/* The time of the base's clock. Interrupts are off until the base is unlocked. */
static int call_lock(struct cell *cell)
{
	ktime_t from = place_now(cell->place), now, to;
	bool off = irqs_disabled(), off_after, off_locked;
	unsigned long flags;

	now = twheel_lock(cell->place->base, &flags);
	off_locked = irqs_disabled();
	twheel_unlock(cell->place->base, flags);
	off_after = irqs_disabled();
	to = place_now(cell->place);
	return now >= from && now <= to && off_locked && off_after == off ? 0 : WRONG;
}

/* The timer is the only one of its base. */
static int call_get_stats(struct cell *cell)
{
	struct twheel_stats stats;

	twheel_get_stats(cell->place->base, &stats);
	if (stats.pending && stats.next > cell->before)
		return WRONG;
	return stats.pending;
}

#define TIMERS	(BIT(ON_CPU) | BIT(ON_MONO) | BIT(ON_BOOT) | BIT(ON_REAL))
#define PRIVATE	(TIMERS & ~BIT(ON_CPU))
#define SINKS	(BIT(SINK_MONO) | BIT(SINK_BOOT) | BIT(SINK_REAL))
#define LOCKED	(BIT(ON_MONO) | BIT(ON_BOOT) | BIT(ON_REAL) | SINKS)

static const struct call calls[] = {
	/* idle, armed, due, running, running and armed, shut down */
	{ "add", call_add, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE } },
	{ "add, now", call_add, TIMERS, false, 0,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE } },
	{ "add, negative", call_add, TIMERS, false, -HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE } },
	{ "add_abs", call_add_abs, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE } },
	{ "add_abs, over", call_add_abs, TIMERS, false, -NSEC_PER_SEC,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE } },
	{ "add_array", call_add_array, BIT(ON_CPU), false, 2 * HOUR,
	  { 0, NA, NA, NA, NA, NA }, { NEW } },
	{ "add_array, negative", call_add_array, BIT(ON_CPU), false, -HOUR,
	  { 0, NA, NA, NA, NA, NA }, { NEXT } },
	{ "add_on", call_add_on, BIT(ON_CPU), false, 2 * HOUR,
	  { 0, -EBUSY, -EBUSY, 0, -EBUSY, 0 }, { NEW, SAME, SAME, NEW, SAME, NONE } },
	{ "add_on, negative", call_add_on, BIT(ON_CPU), false, -HOUR,
	  { 0, -EBUSY, -EBUSY, 0, -EBUSY, 0 }, { NEXT, SAME, SAME, NEXT, SAME, NONE } },
	{ "add_on, a private base", call_add_on, PRIVATE, false, 2 * HOUR,
	  { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	  { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "add_on, no such CPU", call_add_on_nowhere, TIMERS, false, 2 * HOUR,
	  { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	  { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "mod", call_mod, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE } },
	{ "mod, negative", call_mod, TIMERS, false, -HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEXT, NEXT, NEXT, NEXT, NEXT, NONE } },
	{ "mod_abs", call_mod_abs, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE } },
	{ "mod_abs, over", call_mod_abs, TIMERS, false, -NSEC_PER_SEC,
	  { 0, 1, 1, 0, 1, 0 }, { NEXT, NEXT, NEXT, NEXT, NEXT, NONE } },
	{ "mod_pending", call_mod_pending, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NEW, NEW, NONE, NEW, NONE } },
	{ "mod_pending, negative", call_mod_pending, TIMERS, false, -1,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NEXT, NEXT, NONE, NEXT, NONE } },
	{ "reduce, earlier", call_reduce, TIMERS, false, HOUR / 2,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, SAME, NEW, NEW, NONE } },
	{ "reduce, later", call_reduce, TIMERS, false, 3 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, SAME, SAME, NEW, SAME, NONE } },
	{ "reduce, negative", call_reduce, TIMERS, false, -HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEXT, NEXT, SAME, NEXT, NEXT, NONE } },
	{ "cancel", call_cancel, TIMERS, false, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NONE, NONE, NONE, NONE, NONE } },
	{ "try_cancel", call_try_cancel, TIMERS, false, 0,
	  { 0, 1, 1, -1, -1, 0 }, { NONE, NONE, NONE, NONE, SAME, NONE } },
	{ "cancel_sync", call_cancel_sync, TIMERS, true, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NONE, NONE, NONE, NONE, NONE } },
	{ "shutdown_sync", call_shutdown_sync, TIMERS, true, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NONE, NONE, NONE, NONE, NONE } },
	{ "pending", call_pending, TIMERS | SINKS, false, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "expires", call_expires, TIMERS, false, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "remaining", call_remaining, TIMERS, false, 0,
	  { 0, 1, 0, 0, 1, 0 }, { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "add_locked", call_add_locked, LOCKED, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE } },
	{ "add_locked, over", call_add_locked, LOCKED, false, -NSEC_PER_SEC,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE } },
	{ "mod_locked", call_mod_locked, LOCKED, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE } },
	{ "mod_locked, over", call_mod_locked, LOCKED, false, -NSEC_PER_SEC,
	  { 0, 1, 1, 0, 1, 0 }, { NEXT, NEXT, NEXT, NEXT, NEXT, NONE } },
	{ "cancel_locked", call_cancel_locked, LOCKED, false, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NONE, NONE, NONE, NONE, NONE } },
	{ "lock", call_lock, LOCKED, false, 0,
	  { 0, 0, 0, 0, 0, 0 }, { NONE, SAME, SAME, NONE, SAME, NONE } },
	{ "add_range", call_add_range, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE }, HOUR },
	{ "add_range, exact", call_add_range, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE } },
	{ "add_range, less than a tick", call_add_range, TIMERS, false, 30 * NSEC_PER_SEC,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE }, 1 },
	{ "add_range, negative", call_add_range, TIMERS, false, -HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE } },
	{ "add_range, for ever", call_add_range, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE }, U64_MAX },
	{ "add_abs_range", call_add_abs_range, TIMERS, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE }, HOUR },
	{ "add_abs_range, over", call_add_abs_range, TIMERS, false, -NSEC_PER_SEC,
	  { 0, NA, NA, 0, NA, 0 }, { NEXT, 0, 0, NEXT, 0, NONE }, NSEC_PER_SEC / 2 },
	{ "add_array_range", call_add_array_range, BIT(ON_CPU), false, 2 * HOUR,
	  { 0, NA, NA, NA, NA, NA }, { NEW }, HOUR },
	{ "mod_range", call_mod_range, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE }, HOUR },
	{ "mod_range, as it is", call_mod_range, TIMERS, false, HOUR / 2,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, STAYS, NEW, NEW, STAYS, NONE }, HOUR },
	{ "mod_range, as it is for ever", call_mod_range, TIMERS, false, HOUR / 2,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, STAYS, NEW, NEW, STAYS, NONE }, U64_MAX },
	{ "mod_abs_range", call_mod_abs_range, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE }, HOUR },
	{ "mod_abs_range, over", call_mod_abs_range, TIMERS, false, -NSEC_PER_SEC,
	  { 0, 1, 1, 0, 1, 0 }, { NEXT, NEXT, NEXT, NEXT, NEXT, NONE }, NSEC_PER_SEC / 2 },
	{ "mod_pending_range", call_mod_pending_range, TIMERS, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, NEW, NEW, NONE, NEW, NONE }, HOUR },
	{ "reduce_range, earlier", call_reduce_range, TIMERS, false, HOUR / 4,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, SAME, NEW, NEW, NONE }, HOUR / 2 },
	{ "reduce_range, early enough", call_reduce_range, TIMERS, false, HOUR / 2,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, SAME, SAME, NEW, SAME, NONE }, HOUR },
	{ "reduce_range, for ever", call_reduce_range, TIMERS, false, HOUR / 4,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, SAME, SAME, NEW, SAME, NONE }, U64_MAX },
	{ "add_range_locked", call_add_range_locked, LOCKED, false, 2 * HOUR,
	  { 0, NA, NA, 0, NA, 0 }, { NEW, 0, 0, NEW, 0, NONE }, HOUR },
	{ "mod_range_locked", call_mod_range_locked, LOCKED, false, 2 * HOUR,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, NEW, NEW, NEW, NEW, NONE }, HOUR },
	{ "mod_range_locked, as it is", call_mod_range_locked, LOCKED, false, HOUR / 2,
	  { 0, 1, 1, 0, 1, 0 }, { NEW, STAYS, NEW, NEW, STAYS, NONE }, HOUR },
	{ "get_stats", call_get_stats, LOCKED, false, 0,
	  { 0, 1, 1, 0, 1, 0 }, { NONE, SAME, SAME, NONE, SAME, NONE } },
};

/* ---- a cell ----------------------------------------------------------------------------- */

static bool is_run(enum state state)
{
	return state == RUNNING || state == REARMED;
}

static void cell_start(struct cell *cell, ktime_t delay)
{
	place_add(cell->place, &cell->it.timer, delay);
}

static ktime_t cell_expires(struct cell *cell)
{
	return place_expires(cell->place, &cell->it.timer);
}

static void cell_bring_about(struct cell *cell)
{
	if (cell->state == ARMED)
		cell_start(cell, HOUR);
	if (cell->state == SHUT)
		twheel_shutdown_sync(&cell->it.timer);
}

static bool cell_is_in_state(struct cell *cell)
{
	bool pending = twheel_pending(&cell->it.timer);

	switch (cell->state) {
	case ARMED:
	case REARMED:
		return pending;
	case DUE:
		return pending && cell->before <= place_now(cell->place);
	default:
		return !pending;
	}
}

/* On this CPU nothing can keep the call from being made while the callback runs. */
static bool cell_interrupts(const struct cell *cell)
{
	return true;
}

static int cell_call(struct cell *cell)
{
	return cell->call->make(cell);
}

static void cell_look(struct cell *cell)
{
	cell->it.armed = twheel_pending(&cell->it.timer);
	cell->it.after = cell_expires(cell);
}

/* Called by the callback and by the sink. Returns how often it was called before. */
static int cell_called(struct cell *cell)
{
	cell->it.fired = place_time(cell->place, cell->it.timer.queue.expires);
	if (place_now(cell->place) < cell->it.fired)
		cell->hurried = true;
	return atomic_inc_return(&cell->calls);
}

/* The callback: the first time, make the call, or give the other CPU the time to make it. */
static void cell_fired(struct twheel_timer *timer)
{
	struct cell *cell = container_of(timer, struct cell, it.timer);

	if (cell_called(cell) > 1 || !is_run(cell->state))
		return;
	if (cell->state == REARMED)
		twheel_mod(timer, HOUR);
	cell->elsewhere = cell->there && raw_smp_processor_id() == there.cpu;
	tell(&cell->running);
	cell_let_make(cell);
	tell(&cell->left);
}

static void cell_init(struct cell *cell)
{
	place_init(cell->place, &cell->it.timer, cell_fired);
}

static void cell_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr)
{
	while (nr--)
		cell_called(container_of(timers[nr], struct cell, it.timer));
}

static bool cell_wake(struct twheel_base *base) { return true; }

static const struct twheel_sink cell_sink = { .expired = cell_expired, .wake = cell_wake };

static enum after cell_wants(const struct cell *cell)
{
	return cell->call->after[cell->state];
}

/* How often the callback must have been called in the end. */
static int cell_calls(const struct cell *cell)
{
	return is_run(cell->state) + (cell_wants(cell) == NEXT) +
	       (cell->state == DUE && cell_wants(cell) == SAME);
}

/*
 * If the call is made on another CPU than the callback's, it waits until the callback has returned.
 */
static bool cell_is_held_back(const struct cell *cell)
{
	return is_run(cell->state) && cell->call->make == call_add_on;
}

/* Is the timer armed for the tick of the deadline, or for one that begins within its tolerance? */
static bool cell_is_new(const struct cell *cell)
{
	s64 delay = cell->call->delay;

	return cell->it.armed && cell->it.after >= cell->begin + delay &&
	       (cell->it.after < cell->end + delay + (s64)cell->place->config.tick_ns ||
		cell->it.after - cell->end - delay <= cell->call->tolerance);
}

/*
 * Is the timer armed as it must be? If that is for the next tick, the callback may have been called
 * by now, and then it must have been.
 */
static bool cell_is_armed_right(const struct cell *cell)
{
	const s64 tick_ns = cell->place->config.tick_ns;
	s64 delay = cell->call->delay;

	switch (cell_wants(cell)) {
	case SAME:
		return cell->it.armed && cell->it.after == cell->before;
	case NEW:
		return cell_is_new(cell);
	case STAYS:
		if (cell->there && cell->place == &places[ON_CPU])
			return cell_is_new(cell);
		return cell->it.armed && cell->it.after == cell->before;
	case NEXT:
		return cell->it.fired >= cell->begin + min(delay, 0LL) &&
		       (cell->it.fired <= cell->end + tick_ns || cell_is_held_back(cell));
	default:
		return !cell->it.armed && cell->it.after == KTIME_MAX;
	}
}

static bool cell_is_right(const struct cell *cell)
{
	bool armed = cell_wants(cell) == NEW || cell_wants(cell) == STAYS ||
		     (cell_wants(cell) == SAME && cell->state != DUE);

	return !cell->missed && cell->made && !cell->hurried &&
	       cell->ret == cell->call->ret[cell->state] && cell_is_armed_right(cell) &&
	       atomic_read(&cell->calls) == cell_calls(cell) && cell->rest == armed;
}

static void cell_tell(const struct cell *cell)
{
	pr_info("# in %s, from %s %s: %s%s%sreturned %d, %s, for %lld ns from then, was %lld; "
		"called %d times, last %lld ns after; %d left to cancel\n", cell->place->name,
		cell->own ? "its callback" : context_names[cell->context],
		cell->there ? "there" : "here", cell->missed ? "missed, " : "",
		cell->made ? "" : "not made, ", cell->hurried ? "hurried, " : "", cell->ret,
		cell->it.armed ? "armed" : "not armed",
		cell->it.after == KTIME_MAX ? -1 : cell->it.after - cell->begin,
		cell->before == KTIME_MAX ? -1 : cell->before - cell->begin,
		atomic_read(&cell->calls), cell->it.fired - cell->begin, cell->rest);
}

/* The timer that is left must be the one that the call armed for later. */
static void cell_end(struct cell *cell)
{
	/* Give callbacks that were due, or still are, the time to be called. */
	if (cell->state == DUE)
		usleep_range(200, 250);
	if (!cell->missed)
		spin_for(atomic_read(&cell->calls) >= cell_calls(cell));
	cell->rest = place_cancel(cell->place, &cell->it.timer);
	if (!place_has_sink(cell->place))
		twheel_shutdown_sync(&cell->it.timer);
}

/* ---- all cells -------------------------------------------------------------------------- */

static bool is_there(const struct cell *cell, enum context context)
{
	return cell->there && cell->context == context;
}

/* Is there a cell with these properties? */
static bool may_be(const struct cell *cell)
{
	const struct call *call = cell->call;

	if (!(call->places & BIT(cell->place - places)))
		return false;
	if (place_has_sink(cell->place) && (is_run(cell->state) || cell->state == SHUT))
		return false;
	if (call->sync && cell->context != IN_TASK &&
	    (cell->context != IN_SOFTIRQ || IS_ENABLED(CONFIG_PREEMPT_RT)))
		return false;
	return cell_can_be(cell);
}

/* Leave out cells that say the same as others, to save time. */
static bool is_left_out(const struct cell *cell)
{
	if (cell->own)
		return false;
	if (cell->place->config.clock != CLOCK_MONOTONIC && cell->context != IN_TASK)
		return true;
	return is_run(cell->state) && !cell->call->sync &&
	       (is_there(cell, IN_ATOMIC) || is_there(cell, IN_SOFTIRQ));
}

/* All cells of one call and one state. */
static void test_state(struct cell *cell, const struct call *call, enum state state)
{
	unsigned int i, nr = 0, bad = 0;

	/* One bit each for the place, the context, there, and own. */
	for (i = 0; i < NR_PLACES * NR_CONTEXTS * 4 && !bad; i++) {
		struct cell what = {
			.call = call, .state = state, .own = i % 4 / 2, .there = i % 2,
			.context = i / 4 % NR_CONTEXTS, .place = &places[i / 4 / NR_CONTEXTS],
		};

		if (!may_be(&what) || is_left_out(&what))
			continue;
		nr++;
		bad += !try_cell(cell, &what);
	}
	if (nr)
		check(!bad, "%s of a timer that is %s, in each of %u contexts and bases",
		      call->name, state_names[state], nr);
	else
		skip("one CPU", "%s of a timer that is %s", call->name, state_names[state]);
}

static void test_states(void)
{
	struct cell *cell = zalloc(1, sizeof(*cell));
	unsigned int i, state;

	if (!cell)
		return;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (state = 0; state < NR_STATES && tests_failed < FAILED_MAX; state++)
			if (calls[i].ret[state] != NA)
				test_state(cell, &calls[i], state);
	kvfree(cell);
}

/* ---- on the move ------------------------------------------------------------------------ */

/**
 * struct move - a timer that the other CPU arms again and again, and what became of it
 * @cell:	the timer, and the call that this CPU makes meanwhile
 * @armed:	how often an idle timer was armed
 * @undone:	how often a call returned that it has cancelled the timer
 * @wrong:	how often a call returned a wrong value
 * @moved:	how often the timer was found on the other CPU's base
 * @turns:	how often the other CPU has armed it
 * @over:	the other CPU must stop
 */
struct move {
	struct cell	cell;
	atomic_t	armed;
	int		undone;
	unsigned int	wrong;
	unsigned int	moved;
	unsigned int	turns;
	bool		over;
};

static void move_there(void *arg)
{
	struct move *move = arg;
	unsigned int n = 0;

	while (!READ_ONCE(move->over)) {
		if (!twheel_mod(&move->cell.it.timer, HOUR + n % 1000 * NSEC_PER_SEC))
			atomic_inc(&move->armed);
		WRITE_ONCE(move->turns, ++n);
		cond_resched();
	}
}

static void move_here(struct move *move)
{
	const struct call *call = move->cell.call;
	int ret;

	/* Another CPU may be moving it at this moment: this only counts how often that was met. */
	move->moved += data_race(move->cell.it.timer.queue.data) == there.cpu;
	ret = call->make(&move->cell);
	switch (call->after[ARMED]) {
	case NONE:
		move->undone += ret;
		break;
	case NEXT:
		atomic_add(!ret && call->after[IDLE] == NEXT, &move->armed);
		break;
	default:
		move->wrong += ret != call->ret[ARMED] || !twheel_pending(&move->cell.it.timer);
	}
}

/*
 * Each time that the timer was armed, either it was cancelled, or its callback was called, or it is
 * still armed.
 */
static bool move_adds_up(struct move *move)
{
	struct cell *cell = &move->cell;
	unsigned int i = 0;
	ktime_t end;
	int rest;

	place_init(cell->place, &cell->it.timer, cell_fired);
	twheel_add(&cell->it.timer, HOUR);
	there_start(move_there, move);
	spin_for(READ_ONCE(move->turns));
	end = ktime_add_ms(ktime_get(), SPIN_MS);
	while ((i++ < MOVES || READ_ONCE(move->turns) < MOVES) && ktime_before(ktime_get(), end))
		move_here(move);
	WRITE_ONCE(move->over, true);
	there_wait();
	rest = twheel_cancel_sync(&cell->it.timer);
	if (!move->wrong && 1 + atomic_read(&move->armed) ==
			    move->undone + atomic_read(&cell->calls) + rest)
		return true;
	pr_info("# in %s: %u wrong; 1 and %d armed, %d cancelled, %d called, %d left\n",
		cell->place->name, move->wrong, atomic_read(&move->armed), move->undone,
		atomic_read(&cell->calls), rest);
	return false;
}

static void test_move(struct move *move, const struct call *call)
{
	unsigned int i, bad = 0, moved = 0;

	for (i = ON_CPU; i < SINK_MONO; i++) {
		if (!(call->places & BIT(i)))
			continue;
		*move = (struct move) { .cell = {
			.call = call, .state = ARMED, .place = &places[i], .before = KTIME_MAX,
		} };
		bad += !move_adds_up(move);
		moved += move->moved;
	}
	check(!bad, "%s of a timer that another CPU arms all the while", call->name);
	if (call->places & BIT(ON_CPU))
		check(moved, "which takes it there: %u times", moved);
}

/* After a shutdown, arming the timer has no effect, wherever it was. */
static void test_move_shutdown(struct move *move)
{
	unsigned int i, n, armed = 0;

	for (i = ON_CPU; i < SINK_MONO; i++)
		for (n = 0; n < 10; n++) {
			*move = (struct move) { .cell.place = &places[i] };
			place_init(&places[i], &move->cell.it.timer, cell_fired);
			there_start(move_there, move);
			spin_for(twheel_pending(&move->cell.it.timer));
			twheel_shutdown_sync(&move->cell.it.timer);
			armed += spin_for_ns(100 * NSEC_PER_USEC,
					     twheel_pending(&move->cell.it.timer));
			WRITE_ONCE(move->over, true);
			there_wait();
		}
	check(!armed, "shutdown_sync of such a timer, which is in vain armed then: %u were", armed);
}

/* Without a second CPU, report as many points as with one. */
static void skip_move(const struct call *call)
{
	skip("one CPU", "%s of a timer that another CPU arms all the while", call->name);
	if (call->places & BIT(ON_CPU))
		skip("one CPU", "which takes it there");
}

static void test_moves(void)
{
	struct move *move = zalloc(1, sizeof(*move));
	unsigned int i;

	for (i = 0; move && i < ARRAY_SIZE(calls); i++) {
		const struct call *call = &calls[i];

		if (call->ret[ARMED] == NA || call->make == call_shutdown_sync)
			continue;
		if (there.task)
			test_move(move, call);
		else
			skip_move(call);
	}
	if (move && there.task)
		test_move_shutdown(move);
	else
		skip("one CPU", "shutdown_sync of such a timer");
	kvfree(move);
}

static int __init twheel_states_init(void)
{
	pr_info("TAP version 14\n");
	contexts_begin();
	if (places_begin(&cell_sink)) {
		test_states();
		test_moves();
	}
	places_end();
	contexts_end();
	return ktap_end();
}

static void __exit twheel_states_exit(void)
{
}

module_init(twheel_states_init);
module_exit(twheel_states_exit);

MODULE_DESCRIPTION("Test of twheel.h: each call by state, context and base");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
