// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The tracepoints of the calls of twheel.h: a call that arms, re-arms or cancels a timer is traced,
 * whichever way through the code it takes, and with the tick for which the timer is armed; and a
 * base with callbacks that has paused is traced once for each pause. test_trace.c tests the
 * tracepoints of files.
 *
 * KTAP in the kernel log.
 */
#define pr_fmt(fmt) fmt

#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/tracepoint.h>

#include "kwait.h"
#include "places.h"
#include "twheel.h"

/* ---- what is traced --------------------------------------------------------------------- */

enum event { ADD, CANCEL, EXPIRE, BUDGET, NR_EVENTS };

static const char * const event_names[NR_EVENTS] = {
	"twheel_add", "twheel_cancel", "twheel_expire", "twheel_budget",
};

/**
 * struct traced - what was traced of a timer, or of a base
 * @timer:	the timer
 * @nr:		how many of each event
 * @expires:	the last one's, for each event
 * @last:	the last event
 * @wrong:	how many had another function, or a time that was not the present
 * @base:	the base, if @timer is NULL
 * @brief:	how many pauses were shorter than the least pause
 */
static struct traced {
	const struct twheel_timer	*timer;
	unsigned int			nr[NR_EVENTS];
	s64				expires[NR_EVENTS];
	enum event			last;
	unsigned int			wrong;
	const struct twheel_base	*base;
	unsigned int			brief;
} traced;

static const struct place *traced_place;

static void fired(struct twheel_timer *timer) { }

static void note(enum event event, const struct twheel_timer *timer, const void *function,
		 s64 expires, s64 now)
{
	ktime_t time = place_now(traced_place);

	if (timer != READ_ONCE(traced.timer))
		return;
	traced.expires[event] = expires;
	traced.last = event;
	traced.wrong += function != fired || now > time || now < time - (s64)NSEC_PER_SEC;
	WRITE_ONCE(traced.nr[event], traced.nr[event] + 1);
}

static void note_add(void *data, const void *base, const struct twheel_timer *timer,
		     const void *function, s64 expires, s64 now)
{
	note(ADD, timer, function, expires, now);
}

static void note_cancel(void *data, const void *base, const struct twheel_timer *timer,
			const void *function, s64 expires, s64 now)
{
	note(CANCEL, timer, function, expires, now);
}

static void note_expire(void *data, const void *base, const struct twheel_timer *timer,
			const void *function, s64 expires, s64 now)
{
	note(EXPIRE, timer, function, expires, now);
}

static void note_budget(void *data, const void *base, u64 pause)
{
	if (base != READ_ONCE(traced.base))
		return;
	traced.brief += pause < 50 * NSEC_PER_USEC || pause > NSEC_PER_SEC;
	WRITE_ONCE(traced.nr[BUDGET], traced.nr[BUDGET] + 1);
}

static void * const notes[NR_EVENTS] = { note_add, note_cancel, note_expire, note_budget };
static struct tracepoint *tracepoints[NR_EVENTS];

static void find_one(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < NR_EVENTS; i++)
		if (!strcmp(tp->name, event_names[i]))
			tracepoints[i] = tp;
}

/* twheel.ko does not export its tracepoints. But the kernel tells of those of each module. */
static int find_all(struct notifier_block *nb, unsigned long state, void *module)
{
	const struct tp_module *tp_module = module;
	int i;

	for (i = 0; state == MODULE_STATE_COMING && i < tp_module->mod->num_tracepoints; i++)
		find_one(tracepoint_ptr_deref(&tp_module->mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

static bool trace_begin(void)
{
	static struct notifier_block nb = { .notifier_call = find_all };
	unsigned int i, nr = 0;

	for_each_kernel_tracepoint(find_one, NULL);
	register_tracepoint_module_notifier(&nb);
	unregister_tracepoint_module_notifier(&nb);
	for (i = 0; i < NR_EVENTS; i++)
		nr += tracepoints[i] && !tracepoint_probe_register(tracepoints[i], notes[i], NULL);
	return nr == NR_EVENTS;
}

static void trace_end(void)
{
	unsigned int i;

	for (i = 0; i < NR_EVENTS; i++)
		if (tracepoints[i])
			tracepoint_probe_unregister(tracepoints[i], notes[i], NULL);
	tracepoint_synchronize_unregister();
}

/* ---- calls ------------------------------------------------------------------------------ */

/* So far that no timer expires meanwhile. The buckets of the second are moved before it is due. */
#define NEAR		(20 * (s64)NSEC_PER_SEC)
#define FAR		(10 * HOUR)
#define BEYOND		(500 * 24 * HOUR)
#define LATE		(NSEC_PER_SEC)

static void call_add(struct twheel_timer *timer, s64 delay)
{
	twheel_add(timer, delay);
}

static void call_add_abs(struct twheel_timer *timer, s64 delay)
{
	twheel_add_abs(timer, place_now(traced_place) + delay);
}

static void call_add_range(struct twheel_timer *timer, s64 delay)
{
	twheel_add_range(timer, delay, LATE);
}

static void call_add_abs_range(struct twheel_timer *timer, s64 delay)
{
	twheel_add_abs_range(timer, place_now(traced_place) + delay, LATE);
}

static void call_mod(struct twheel_timer *timer, s64 delay)
{
	twheel_mod(timer, delay);
}

static void call_mod_abs(struct twheel_timer *timer, s64 delay)
{
	twheel_mod_abs(timer, place_now(traced_place) + delay);
}

static void call_mod_range(struct twheel_timer *timer, s64 delay)
{
	twheel_mod_range(timer, delay, LATE);
}

/* The tick that the timer has is one of those that are allowed. */
static void call_mod_range_stay(struct twheel_timer *timer, s64 delay)
{
	twheel_mod_range(timer, NEAR, KTIME_MAX);
}

static void call_mod_pending(struct twheel_timer *timer, s64 delay)
{
	twheel_mod_pending(timer, delay);
}

static void call_mod_pending_range(struct twheel_timer *timer, s64 delay)
{
	twheel_mod_pending_range(timer, delay, LATE);
}

static void call_reduce(struct twheel_timer *timer, s64 delay)
{
	twheel_reduce(timer, min(delay, NEAR / 2));
}

static void call_reduce_range(struct twheel_timer *timer, s64 delay)
{
	twheel_reduce_range(timer, min(delay, NEAR / 2), LATE);
}

static void call_add_on(struct twheel_timer *timer, s64 delay)
{
	twheel_add_on(timer, delay, raw_smp_processor_id());
}

static void call_add_array(struct twheel_timer *timer, s64 delay)
{
	ktime_t time = delay;

	twheel_add_array(&timer, &time, 1);
}

static void call_add_array_range(struct twheel_timer *timer, s64 delay)
{
	ktime_t time = delay;
	u64 late = LATE;

	twheel_add_array_range(&timer, &time, &late, 1);
}

static void call_mod_locked(struct twheel_timer *timer, s64 delay)
{
	struct twheel_base *base = traced_place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);

	twheel_mod_locked(base, timer, now + delay);
	twheel_unlock(base, flags);
}

static void call_mod_range_locked(struct twheel_timer *timer, s64 delay)
{
	struct twheel_base *base = traced_place->base;
	unsigned long flags;
	ktime_t now = twheel_lock(base, &flags);

	twheel_mod_range_locked(base, timer, now + delay, LATE);
	twheel_unlock(base, flags);
}

/**
 * struct call - a call that arms a timer
 * @name:	its name
 * @make:	makes the call
 * @idle:	it arms an idle timer
 * @armed:	it arms a timer that is armed already
 * @locked:	it is for private bases only
 * @cpu:	it is for the CPUs' bases only
 */
struct call {
	const char	*name;
	void		(*make)(struct twheel_timer *timer, s64 delay);
	bool		idle;
	bool		armed;
	bool		locked;
	bool		cpu;
};

static const struct call calls[] = {
	{ "add", call_add, .idle = true },
	{ "add_abs", call_add_abs, .idle = true },
	{ "add_range", call_add_range, .idle = true },
	{ "add_abs_range", call_add_abs_range, .idle = true },
	{ "add_on", call_add_on, .idle = true, .cpu = true },
	{ "add_array", call_add_array, .idle = true, .cpu = true },
	{ "add_array_range", call_add_array_range, .idle = true, .cpu = true },
	{ "mod", call_mod, .idle = true, .armed = true },
	{ "mod_abs", call_mod_abs, .idle = true, .armed = true },
	{ "mod_range", call_mod_range, .idle = true, .armed = true },
	{ "mod_range, as it is", call_mod_range_stay, .armed = true },
	{ "mod_pending", call_mod_pending, .armed = true },
	{ "mod_pending_range", call_mod_pending_range, .armed = true },
	{ "reduce", call_reduce, .idle = true, .armed = true },
	{ "reduce_range", call_reduce_range, .idle = true, .armed = true },
	{ "mod_locked", call_mod_locked, .idle = true, .armed = true, .locked = true },
	{ "mod_range_locked", call_mod_range_locked, .idle = true, .armed = true, .locked = true },
};

static bool is_for(const struct call *call, const struct place *place)
{
	return place->base ? !call->cpu : !call->locked;
}

/* Trace @timer from here on. */
static void trace(const struct twheel_timer *timer)
{
	WRITE_ONCE(traced.timer, NULL);
	memset(traced.nr, 0, sizeof(traced.nr));
	traced.wrong = 0;
	WRITE_ONCE(traced.timer, timer);
}

/* Were there so many events of each kind, and was the last one @last? */
static bool was_traced(const char *name, unsigned int adds, unsigned int cancels,
		       unsigned int expiries, enum event last)
{
	if (traced.nr[ADD] == adds && traced.nr[CANCEL] == cancels &&
	    traced.nr[EXPIRE] == expiries && traced.last == last && !traced.wrong)
		return true;
	pr_info("# %s, %s: %u times armed, %u times cancelled, %u times expired, last %s, %u wrong\n",
		traced_place->name, name, traced.nr[ADD], traced.nr[CANCEL], traced.nr[EXPIRE],
		event_names[traced.last], traced.wrong);
	return false;
}

static const s64 delays[] = { NEAR, FAR, BEYOND };

/* An idle timer is armed, and cancelled. */
static bool idle_is_traced(const struct call *call, struct twheel_timer *timer, s64 delay)
{
	ktime_t expires;
	bool good;

	trace(timer);
	call->make(timer, delay);
	expires = twheel_expires(timer);
	good = was_traced(call->name, 1, 0, 0, ADD) && traced.expires[ADD] == expires;
	twheel_cancel_sync(timer);
	return good && was_traced("cancel_sync", 1, 1, 0, CANCEL) &&
	       traced.expires[CANCEL] == expires;
}

/* A timer is armed anew. */
static bool armed_is_traced(const struct call *call, struct twheel_timer *timer, s64 delay)
{
	ktime_t before;
	bool good;

	twheel_add(timer, FAR / 2);
	before = twheel_expires(timer);
	trace(timer);
	call->make(timer, delay);
	good = was_traced(call->name, 1, 1, 0, ADD) && traced.expires[CANCEL] == before &&
	       traced.expires[ADD] == twheel_expires(timer);
	twheel_cancel_sync(timer);
	return good;
}

static void test_calls(struct twheel_timer *timer)
{
	unsigned int i, k, idle = 0, armed = 0;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (k = 0; k < ARRAY_SIZE(delays) && is_for(&calls[i], traced_place); k++) {
			idle += calls[i].idle && !idle_is_traced(&calls[i], timer, delays[k]);
			armed += calls[i].armed && !armed_is_traced(&calls[i], timer, delays[k]);
		}
	check(!idle, "%s: each call that arms an idle timer is traced, and a cancel: %u were not",
	      traced_place->name, idle);
	check(!armed, "%s: each that arms it anew is, as a cancel and an add: %u were not",
	      traced_place->name, armed);
}

/* Once more if a tick of CLOCK_REALTIME ended while the timer was added, see twheel_trace.h. */
static void test_expiry(struct twheel_timer *timer)
{
	unsigned int tries = traced_place->config.clock == CLOCK_REALTIME ? 5 : 1;
	bool good;

	do {
		trace(timer);
		twheel_add(timer, 0);
		good = wait_for(READ_ONCE(traced.nr[EXPIRE]));
		twheel_cancel_sync(timer);
		good = good && was_traced("expiry", 1, 0, 1, EXPIRE);
	} while (good && traced.expires[EXPIRE] != traced.expires[ADD] && --tries);
	check(good && tries,
	      "%s: its expiry is traced, with the tick for which it was armed", traced_place->name);
}

static void test_place(const struct place *place)
{
	struct twheel_timer *timer = zalloc(1, sizeof(*timer));

	if (!timer)
		return;
	traced_place = place;
	place_init(place, timer, fired);
	test_calls(timer);
	test_expiry(timer);
	trace(NULL);
	kvfree(timer);
}

/* ---- pauses ----------------------------------------------------------------------------- */

#define TIMERS		16
#define SLOW_NS		(300 * NSEC_PER_USEC)
/* All debts are repaid after that, and no run is to come. */
#define REST_MS		300

static u64 slow_ns;
static atomic_t slow_calls;

static void slow_fired(struct twheel_timer *timer)
{
	keep_busy_ns(READ_ONCE(slow_ns));
	atomic_inc(&slow_calls);
}

static u64 deferred(const struct place *place)
{
	struct twheel_stats stats;

	twheel_get_stats(place->base, &stats);
	return stats.deferred;
}

/* Callbacks take longer than a run may. After that there is a run that was not put off. */
static void test_budget(const struct place *place)
{
	struct twheel_timer *timers = zalloc(TIMERS, sizeof(*timers));
	u64 before = deferred(place), pauses;
	unsigned int i;

	if (!timers)
		return;
	traced.nr[BUDGET] = 0;
	traced.brief = 0;
	WRITE_ONCE(traced.base, place->base);
	WRITE_ONCE(slow_ns, SLOW_NS);
	atomic_set(&slow_calls, 0);
	for (i = 0; i < TIMERS; i++) {
		place_init(place, &timers[i], slow_fired);
		twheel_add(&timers[i], NSEC_PER_MSEC);
	}
	wait_for(atomic_read(&slow_calls) == TIMERS);
	msleep(REST_MS);
	WRITE_ONCE(slow_ns, 0);
	twheel_add(&timers[0], 0);
	wait_for(atomic_read(&slow_calls) == TIMERS + 1);
	msleep(REST_MS);
	for (i = 0; i < TIMERS; i++)
		twheel_cancel_sync(&timers[i]);
	pauses = deferred(place) - before;
	WRITE_ONCE(traced.base, NULL);
	check(pauses && traced.nr[BUDGET] == pauses && !traced.brief,
	      "%s: a run after a pause is traced, and no other: %u of %llu, %u of no such length",
	      place->name, traced.nr[BUDGET], pauses, traced.brief);
	kvfree(timers);
}

static int __init twheel_traced_init(void)
{
	bool all;
	unsigned int i;

	pr_info("TAP version 14\n");
	traced_place = &places[ON_CPU];
	all = trace_begin();
	check(all, "twheel has the tracepoints");
	if (all && places_begin(NULL)) {
		for (i = ON_CPU; i < SINK_MONO; i++)
			test_place(&places[i]);
		for (i = ON_MONO; i < SINK_MONO; i++)
			test_budget(&places[i]);
	}
	places_end();
	trace_end();
	return ktap_end();
}

static void __exit twheel_traced_exit(void)
{
}

module_init(twheel_traced_init);
module_exit(twheel_traced_exit);

MODULE_DESCRIPTION("Test of twheel's tracepoints, by the calls of twheel.h");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
