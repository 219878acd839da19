// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The promises of twheel.h that are not about a call in a state of a timer (twheel_states.c) or of
 * a task (twheel_tasks.c): when timers expire, what a callback may rely on, sinks, drain and
 * destroy, the counters, and what a private base is.
 *
 * KTAP in the kernel log, a point for each promise.
 */
#define pr_fmt(fmt) fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/timer.h>

#include "contexts.h"
#include "ktap.h"
#include "kwait.h"
#include "places.h"
#include "twheel.h"

/* ---- a timer that tells what happened to it ---------------------------------------------- */

/**
 * struct shot - a timer, and what happened to it
 * @timer:	the timer
 * @place:	its base
 * @deadline:	the deadline that it was armed for
 * @hasty:	the deadline was over before it was armed
 * @fired_at:	when it expired
 * @expires:	the beginning of its tick, as the callback saw it
 * @cpu:	the CPU on which it expired
 * @calls:	how often it expired
 */
struct shot {
	struct twheel_timer	timer;
	const struct place	*place;
	ktime_t			deadline;
	bool			hasty;
	ktime_t			fired_at;
	ktime_t			expires;
	unsigned int		cpu;
	atomic_t		calls;
};

static void shot_note(struct shot *shot)
{
	shot->fired_at = place_now(shot->place);
	shot->expires = place_time(shot->place, shot->timer.queue.expires);
	shot->cpu = raw_smp_processor_id();
	atomic_inc(&shot->calls);
}

static void shot_fired(struct twheel_timer *timer)
{
	shot_note(container_of(timer, struct shot, timer));
}

static void shot_init(struct shot *shot, const struct place *place)
{
	*shot = (struct shot) { .place = place };
	place_init(place, &shot->timer, shot_fired);
}

/**
 * struct watched - what the test has seen of the calls of a sink
 * @expired:	calls of expired()
 * @woken:	calls of wake()
 * @last:	the tick of the timer that expired last
 * @unwoken:	timers have expired since the last call of wake()
 * @wrong:	how often something was not as promised
 * @listing:	put the timers that expire on @list
 * @list:	timers that have expired
 */
static struct watched {
	unsigned int		expired;
	unsigned int		woken;
	u64			last;
	bool			unwoken;
	unsigned int		wrong;
	bool			listing;
	struct hlist_head	list;
} watched[NR_PLACES], unwatched;

static struct watched *watched_of(struct twheel_base *base)
{
	return twheel_owner(base);
}

/* On a kernel for one CPU, a raw spinlock does not know whether it is held. */
static bool is_locked(raw_spinlock_t *lock)
{
	return !IS_ENABLED(CONFIG_SMP) || raw_spin_is_locked(lock);
}

/*
 * Timers come in the order of their ticks, idle, with the base locked and interrupts off.
 * queue.node links them in a list.
 */
static void shots_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr)
{
	struct watched *w = watched_of(base);
	unsigned int i;

	w->wrong += !nr || nr > TWHEEL_SINK_MAX || !irqs_disabled() ||
		    !is_locked(twheel_raw_lock(base));
	w->expired++;
	w->unwoken = true;
	for (i = 0; i < nr; i++) {
		w->wrong += twheel_pending(timers[i]) || timers[i]->queue.expires < w->last;
		w->last = timers[i]->queue.expires;
		if (w->listing)
			hlist_add_head(&timers[i]->queue.node, &w->list);
		shot_note(container_of(timers[i], struct shot, timer));
	}
}

/* May wake() be called when nothing has expired? */
static const bool wakes_in_vain = IS_ENABLED(CONFIG_PREEMPT_RT);

/* Called after expired(), in softirq context, without a lock: the base can be locked. */
static bool shots_wake(struct twheel_base *base)
{
	struct watched *w = watched_of(base);
	unsigned long flags;

	w->wrong += (!w->unwoken && !wakes_in_vain) || irqs_disabled() || !in_serving_softirq();
	twheel_lock(base, &flags);
	w->unwoken = false;
	w->woken++;
	twheel_unlock(base, flags);
	return true;
}

static const struct twheel_sink shots_sink = { .expired = shots_expired, .wake = shots_wake };

/* ---- when -------------------------------------------------------------------------------- */

/* The deadline, to the ns, compared with the clock around the call. */
static bool remains(const struct place *place, struct twheel_timer *timer, ktime_t expires)
{
	ktime_t from = place_now(place), left = twheel_remaining(timer), to = place_now(place);

	return left <= ktime_sub(expires, from) && left >= ktime_sub(expires, to);
}

/* Of the ticks @first to @last, the one that most timers can share, see wheel_choose(). */
static u64 shared(u64 first, u64 last)
{
	static const u32 steps[] = { 86400, 3600, 600, 60, 30, 10, 5, 2 };
	unsigned int i = last - first < 4 * 3600 ? 2 : last - first < 4 * 86400;

	for (; i < ARRAY_SIZE(steps); i++) {
		u64 tick = div_u64(first + steps[i] - 1, steps[i]) * steps[i];

		if (tick <= last)
			return tick;
	}
	return first;
}

/* Arm @timer, which may be armed. */
static void arm_range(const struct place *place, struct twheel_timer *timer, ktime_t deadline,
		      u64 tolerance)
{
	unsigned long flags;

	if (place_has_sink(place)) {
		twheel_lock(place->base, &flags);
		twheel_mod_range_locked(place->base, timer, deadline, tolerance);
		twheel_unlock(place->base, flags);
	} else if (twheel_pending(timer)) {
		twheel_mod_abs_range(timer, deadline, tolerance);
	} else {
		twheel_add_abs_range(timer, deadline, tolerance);
	}
}

/*
 * Arm @timer. Does it keep the tick that it has, if it may, and get the one that most timers can
 * share, if not?
 */
static bool shares(const struct place *place, struct twheel_timer *timer, u64 delay, u64 tolerance)
{
	ktime_t deadline = ktime_add_ns(place_now(place), delay);
	u64 end = tolerance < KTIME_MAX - deadline ? deadline + tolerance : KTIME_MAX;
	u64 tick_ns = place->config.tick_ns, want = timer->queue.expires, first, last;

	first = div64_u64(deadline + tick_ns - 1, tick_ns);
	last = max(first, div64_u64(end, tick_ns));
	if (!twheel_pending(timer) || want < first || want > last)
		want = shared(first, last);
	arm_range(place, timer, deadline, tolerance);
	if (twheel_pending(timer) && timer->queue.expires == want)
		return true;
	pr_info("# %s: deadline %lld, tolerance %llu: tick %llu and not %llu\n", place->name,
		deadline, tolerance, timer->queue.expires, want);
	return false;
}

/*
 * Wherever most timers are and beyond, with tolerances from less than a tick to hours; and with
 * some that end with time.
 */
static void test_tolerance(const struct place *place)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	unsigned int i, good = 0;
	u64 delay = 0, late;

	if (!shot)
		return;
	shot_init(shot, place);
	for (i = 0; i < 6000; i++) {
		/* Each delay comes twice: the tick of the first may be right for the second. */
		if (i % 2 == 0)
			delay = 20 * NSEC_PER_SEC + (get_random_u32() >> i % 32) * 30ULL;
		late = i % 16 ? (u64)get_random_u32() << 16 >> i % 48 : U64_MAX >> i / 16 % 2;
		good += shares(place, &shot->timer, delay, late);
		if (i % 5 == 0)
			place_cancel(place, &shot->timer);
		cond_resched();
	}
	check(good == i, "%s: what may be late keeps its tick, or gets one that most can share",
	      place->name);
	place_cancel(place, &shot->timer);
	kvfree(shot);
}

/* A deadline is rounded up to a multiple of the tick since the clock's zero, however far. */
static void test_rounding(const struct place *place)
{
	const u64 tick_ns = place->config.tick_ns;
	static const u64 far[] = { 2, 130, 7300, 172900, 63072100, 3153600100ULL };
	u64 now = div64_u64(place_now(place), tick_ns);
	unsigned int i, wrong = 0, far_off = 0;
	struct shot *shot = zalloc(1, sizeof(*shot));

	if (!shot)
		return;
	shot_init(shot, place);
	for (i = 0; i < 3 * ARRAY_SIZE(far); i++) {
		/* Just after a tick, at one, and just before one: seconds ahead, or in the past. */
		u64 tick = now + NSEC_PER_SEC + far[i / 3];
		ktime_t deadline = tick * tick_ns + i % 3 - 1;
		ktime_t want = (tick + (i % 3 == 2)) * tick_ns;

		twheel_add_abs(&shot->timer, deadline);
		wrong += twheel_expires(&shot->timer) != want;
		far_off += !remains(place, &shot->timer, want);
		wrong += twheel_cancel(&shot->timer) != 1;
	}
	check(!wrong, "%s: a deadline is rounded up to a tick of the clock: %u were not",
	      place->name, wrong);
	check(!far_off, "%s: what remains until then is by that clock: %u times it was not",
	      place->name, far_off);
	kvfree(shot);
}

/*
 * If a timer is re-armed for a time in the past, it expires in the next tick. The clock may not be
 * a tick ahead of the wheel; if it is, because an event is due, try again.
 */
static bool shot_goes_to_next(const struct place *place, struct twheel_timer *timer)
{
	const s64 tick_ns = place->config.tick_ns;
	unsigned long flags;
	ktime_t now, expires;

	now = twheel_lock(place->base, &flags);
	twheel_mod_locked(place->base, timer, now - NSEC_PER_SEC);
	expires = place_time(place, timer->queue.expires);
	twheel_mod_locked(place->base, timer, now + HOUR);
	twheel_unlock(place->base, flags);
	usleep_range(1000, 1100);
	return expires > now && expires <= now + tick_ns;
}

static void test_over(const struct place *place)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	bool good = false;
	unsigned int i;

	if (!shot)
		return;
	shot_init(shot, place);
	place_add(place, &shot->timer, HOUR);
	for (i = 0; i < 10 && !good; i++)
		good = shot_goes_to_next(place, &shot->timer);
	check(good, "%s: what is armed anew for a time that is over is for the next tick",
	      place->name);
	place_cancel(place, &shot->timer);
	kvfree(shot);
}

/*
 * Re-arm in the middle of the tick that the timer is armed for, and before it. Ticks are a second
 * long.
 */
static void test_reduce(void)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MAX_NS,
	};
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct twheel_base *base = twheel_create(&config);
	struct twheel_stats same = { }, earlier = { }, last = { };

	if (shot && !IS_ERR(base)) {
		s64 half = TWHEEL_TICK_MAX_NS / 2;

		twheel_init_on(base, &shot->timer, shot_fired);
		twheel_add(&shot->timer, HOUR);
		twheel_reduce(&shot->timer, twheel_remaining(&shot->timer) - half);
		twheel_reduce_range(&shot->timer, twheel_remaining(&shot->timer) - 3 * half,
				    2 * TWHEEL_TICK_MAX_NS);
		twheel_get_stats(base, &same);
		twheel_reduce(&shot->timer, twheel_remaining(&shot->timer) - 3 * half);
		twheel_get_stats(base, &earlier);
		twheel_reduce_range(&shot->timer, twheel_remaining(&shot->timer) - 3 * half,
				    half);
		twheel_get_stats(base, &last);
		twheel_cancel_sync(&shot->timer);
	}
	check(same.added == 1 && !same.rearmed && earlier.rearmed == 1,
	      "reduce leaves alone a timer that is armed for the same tick, or one that is allowed");
	check(last.rearmed == earlier.rearmed + 1,
	      "reduce_range makes a timer earlier that is armed for the tick after those");
	if (!IS_ERR(base))
		twheel_destroy(base);
	kvfree(shot);
}

/* The last tick that is allowed, and the one after it. */
static void test_stay(void)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MAX_NS,
	};
	const s64 half = TWHEEL_TICK_MAX_NS / 2;
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct twheel_base *base = twheel_create(&config);
	bool stays = false, moves = false;

	if (shot && !IS_ERR(base)) {
		ktime_t expires;

		twheel_init_on(base, &shot->timer, shot_fired);
		twheel_add(&shot->timer, HOUR);
		expires = twheel_expires(&shot->timer);
		stays = twheel_mod_abs_range(&shot->timer, expires - 3 * half, 3 * half) == 1 &&
			twheel_expires(&shot->timer) == expires;
		moves = twheel_mod_abs_range(&shot->timer, expires - 3 * half, 3 * half - 1) == 1 &&
			twheel_expires(&shot->timer) == expires - 2 * half;
		twheel_cancel_sync(&shot->timer);
	}
	check(stays, "a timer whose tick is the last one that is allowed stays there");
	check(moves, "one whose tick is a ns past what is allowed does not");
	if (!IS_ERR(base))
		twheel_destroy(base);
	kvfree(shot);
}

/* Is @timer armed for never? Cancel it. */
static bool is_for_never(struct twheel_timer *timer)
{
	ktime_t expires = twheel_expires(timer);

	return twheel_cancel_sync(timer) == 1 && expires == KTIME_MAX;
}

/* Arm @timer with each call that takes a delay. Returns how many have not armed it for never. */
static unsigned int never_wrong(struct twheel_timer *timer, bool on_cpu)
{
	unsigned int wrong = 0;

	twheel_add(timer, KTIME_MAX);
	wrong += !is_for_never(timer);
	twheel_add_range(timer, KTIME_MAX, NSEC_PER_SEC);
	wrong += !is_for_never(timer);
	wrong += twheel_mod(timer, KTIME_MAX) || !is_for_never(timer);
	wrong += twheel_mod_range(timer, KTIME_MAX, KTIME_MAX) || !is_for_never(timer);
	wrong += twheel_reduce(timer, KTIME_MAX) || !is_for_never(timer);
	wrong += twheel_reduce_range(timer, KTIME_MAX, 0) || !is_for_never(timer);
	twheel_add(timer, HOUR);
	wrong += !twheel_mod_pending(timer, KTIME_MAX) || !is_for_never(timer);
	twheel_add(timer, HOUR);
	wrong += !twheel_mod_range(timer, KTIME_MAX, 1) || !is_for_never(timer);
	twheel_add(timer, HOUR);
	wrong += !twheel_mod_pending_range(timer, KTIME_MAX, U64_MAX) || !is_for_never(timer);
	if (on_cpu)
		wrong += twheel_add_on(timer, KTIME_MAX, raw_smp_processor_id()) ||
			 !is_for_never(timer);
	return wrong;
}

/* A delay is added to the present time. The sum may be beyond what a time can be. */
static void test_never(const struct place *place)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	unsigned int wrong;

	if (!shot)
		return;
	shot_init(shot, place);
	wrong = never_wrong(&shot->timer, !place->base);
	check(!wrong && !atomic_read(&shot->calls),
	      "%s: a delay to the end of time is for never, whatever the call: %u were not",
	      place->name, wrong);
	twheel_cancel_sync(&shot->timer);
	kvfree(shot);
}

/* The delay of twheel_jiffies() must be that of so many jiffies, and no less. */
static bool jiffies_are(long nr, ktime_t delay)
{
	return twheel_jiffies(nr) == delay;
}

/* A timer that was armed for a value of jiffies, @expires */
struct in_jiffies {
	ktime_t		begin;
	unsigned long	expires;
	unsigned long	told;		/* what twheel_expires_jiffies() says */
};

/*
 * Arm @timer for @nr jiffies ahead. If jiffies changed meanwhile, or should have, do it again: the
 * CPU that counts jiffies may stand still, and then count many of them at once.
 */
static bool arm_in_jiffies(struct twheel_timer *timer, long nr, struct in_jiffies *in)
{
	unsigned long now, passed;
	unsigned int tries;

	for (tries = 0; tries < 1000; tries++) {
		twheel_cancel_sync(timer);
		now = jiffies;
		in->begin = ktime_get();
		in->expires = now + nr;
		twheel_mod(timer, twheel_until(in->expires));
		in->told = twheel_expires_jiffies(timer);
		passed = jiffies - now;
		if (!passed && ktime_get() - in->begin < TICK_NSEC)
			return true;
		fsleep(1000);
	}
	return false;
}

/* A timer that is armed for a value of jiffies reports that value, or one more or less. */
static bool tells_jiffies(struct twheel_timer *timer, long nr)
{
	struct in_jiffies in;

	return arm_in_jiffies(timer, nr, &in) && in.told - in.expires + 1 <= 2;
}

/*
 * @shot is armed for @nr jiffies ahead. It must wait for so many, the first of which may be almost
 * over.
 */
static bool comes_no_earlier(struct shot *shot, long nr)
{
	struct in_jiffies in;

	return arm_in_jiffies(&shot->timer, nr, &in) &&
	       wait_for(READ_ONCE(shot->fired_at) >= in.begin) &&
	       shot->fired_at - in.begin > twheel_jiffies(nr - 1);
}

/* A delay and a deadline in jiffies, which may overflow the range of either. */
static void test_jiffies(const struct place *place)
{
	static const long far[] = { 2, 10, 90L * 60 * HZ, 20L * 86400 * HZ };
	struct shot *shot = zalloc(1, sizeof(*shot));
	unsigned int i, wrong = 0;

	if (!shot)
		return;
	check(jiffies_are(0, 0) && jiffies_are(-1, 0) && jiffies_are(LONG_MIN, 0) &&
	      jiffies_are(HZ, HZ * TICK_NSEC) && jiffies_are(far[2], 90ULL * 60 * HZ * TICK_NSEC),
	      "a delay in jiffies is in ns, and never negative");
	check(BITS_PER_LONG == 32 || jiffies_are(MAX_JIFFY_OFFSET, KTIME_MAX),
	      "one of more jiffies than a clock has ns is for ever");
	check(!twheel_until(jiffies) && !twheel_until(jiffies - HZ),
	      "a value of jiffies that is over is no delay");
	shot_init(shot, place);
	check(twheel_expires_jiffies(&shot->timer) - jiffies + 1 <= 1,
	      "a timer that is not armed tells jiffies as it is");
	for (i = 0; i < ARRAY_SIZE(far); i++)
		wrong += !tells_jiffies(&shot->timer, far[i]);
	check(!wrong, "an armed one tells the jiffies for which it was armed: %u times it did not",
	      wrong);
	twheel_mod(&shot->timer, KTIME_MAX);
	check(time_after(twheel_expires_jiffies(&shot->timer), jiffies),
	      "and one that never expires does not tell jiffies that are over");
	twheel_cancel(&shot->timer);
	check(comes_no_earlier(shot, 5), "armed for a value of jiffies it expires no earlier");
	place_cancel(place, &shot->timer);
	kvfree(shot);
}

#define SHOTS		80

/* Deadlines within 27 ms, so that some are more than 120 ticks ahead. */
static void shots_add(struct shot *shots, const struct place *place)
{
	ktime_t now = place_now(place);
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < SHOTS; i++) {
		shot_init(&shots[i], place);
		shots[i].deadline = ktime_add_ns(now, 20 * NSEC_PER_MSEC + i * 333333ULL);
		if (place_has_sink(place)) {
			twheel_lock(place->base, &flags);
			twheel_add_locked(place->base, &shots[i].timer, shots[i].deadline);
			twheel_unlock(place->base, flags);
		} else {
			twheel_add_abs(&shots[i].timer, shots[i].deadline);
		}
		shots[i].hasty = place_now(place) >= shots[i].deadline;
	}
}

/* The tick that the deadline is rounded up to. */
static bool shot_in_tick(const struct shot *shot)
{
	return shot->hasty || (shot->expires >= shot->deadline &&
			       shot->expires < shot->deadline + (s64)shot->place->config.tick_ns);
}

/* A timer on its own is late only by the interrupt of its base. */
static void shot_wait(const struct place *place, struct shot *shot, ktime_t delay)
{
	shot_init(shot, place);
	place_add(place, &shot->timer, delay);
	wait_for(atomic_read(&shot->calls));
	place_cancel(place, &shot->timer);
}

/* Take what the sink has put on its list. */
static void check_sink(const struct place *place)
{
	struct watched *w = watched_of(place->base);
	struct hlist_node *node;
	unsigned int nr = 0;

	wait_for(!READ_ONCE(w->unwoken));
	w->listing = false;
	hlist_for_each(node, &w->list)
		nr++;
	check(!w->wrong && nr == SHOTS,
	      "%s takes at most 32 idle timers, in order, by queue.node: %u, %u wrong",
	      place->name, nr, w->wrong);
	check(!w->unwoken && w->woken && (w->woken <= w->expired || wakes_in_vain),
	      "%s is woken after %u turns, once for one or more: %u times", place->name,
	      w->expired, w->woken);
}

/* Never early, in the tick of the deadline, once, and as promptly as a softirq comes. */
static void test_shots(const struct place *place)
{
	struct shot *shots = zalloc(SHOTS, sizeof(*shots));
	unsigned int i, fired = 0, early = 0, off = 0;
	s64 late = S64_MAX;

	if (!shots)
		return;
	if (place_has_sink(place))
		watched_of(place->base)->listing = true;
	shots_add(shots, place);
	for (i = 0; i < SHOTS; i++) {
		wait_for(atomic_read(&shots[i].calls));
		fired += atomic_read(&shots[i].calls) == 1;
		early += shots[i].fired_at < shots[i].expires;
		off += !shot_in_tick(&shots[i]);
		late = min(late, ktime_sub(shots[i].fired_at, shots[i].deadline));
		place_cancel(place, &shots[i].timer);
	}
	check(fired == SHOTS && !early && !off,
	      "%s: of %u timers %u expire once, %u early, %u not in their tick", place->name,
	      SHOTS, fired, early, off);
	if (place_has_sink(place))
		check_sink(place);
	for (i = 0; i < 5 && late >= (s64)(place->config.tick_ns + PROMPT_NS); i++) {
		shot_wait(place, &shots[0], NSEC_PER_MSEC);
		late = min(late, ktime_sub(shots[0].fired_at, shots[0].expires));
	}
	check(late < (s64)(place->config.tick_ns + PROMPT_NS),
	      "%s: the promptest is %lld us late", place->name, div_s64(late, NSEC_PER_USEC));
	kvfree(shots);
}

/* ---- where ------------------------------------------------------------------------------- */

static void shot_add_now(void *arg)
{
	struct shot *shot = arg;

	twheel_mod(&shot->timer, 0);
	stay_for(atomic_read(&shot->calls));
}

static void shot_put_off(void *arg)
{
	twheel_mod(&((struct shot *)arg)->timer, 2 * HOUR);
}

static void shot_leave(void *arg)
{
	twheel_mod_range(&((struct shot *)arg)->timer, HOUR, 2 * HOUR);
}

/* Also if it need not leave its bucket, or not even its tick. */
static void test_put_off(void (*fn)(void *shot), const char *name)
{
	struct shot *shot = zalloc(1, sizeof(*shot));

	if (!shot || !there.task) {
		skip("one CPU", "a timer that is %s on another CPU moves there", name);
		kvfree(shot);
		return;
	}
	shot_init(shot, &places[ON_CPU]);
	twheel_add(&shot->timer, HOUR + HOUR / 2);
	there_start(fn, shot);
	there_wait();
	check(shot->timer.queue.data == there.cpu,
	      "a timer that is %s on another CPU moves there", name);
	twheel_cancel_sync(&shot->timer);
	kvfree(shot);
}

/*
 * A timer of twheel_add_on() that another call arms anew belongs to the CPU of that call, as if it
 * had been idle: also if it need not leave its bucket, or not even its tick.
 */
static void test_called_for(void (*fn)(void *shot), const char *name)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	unsigned int cpu = raw_smp_processor_id();
	bool named;

	if (!shot)
		return;
	shot_init(shot, &places[ON_CPU]);
	twheel_add_on(&shot->timer, HOUR + HOUR / 2, cpu);
	named = shot->timer.queue.data == nr_cpu_ids + cpu;
	fn(shot);
	check(named && shot->timer.queue.data == cpu,
	      "a timer of twheel_add_on() that is %s is as any other of the CPU", name);
	twheel_cancel_sync(&shot->timer);
	kvfree(shot);
}

/*
 * While softirqs are off, a timer of twheel_add_on() becomes due, and nobody tells its base the
 * time. Armed anew for a time that is over, it goes to another base, which knows the time.
 */
static bool shot_comes_over(struct shot *shot)
{
	ktime_t now, expires;

	shot_init(shot, &places[ON_CPU]);
	fifo_begin();
	local_bh_disable();
	twheel_add_on(&shot->timer, 0, raw_smp_processor_id());
	keep_busy(20);
	now = ktime_get();
	twheel_mod_abs_range(&shot->timer, now - 19 * NSEC_PER_MSEC, NSEC_PER_MSEC);
	expires = twheel_expires(&shot->timer);
	local_bh_enable();
	fifo_end();
	twheel_cancel_sync(&shot->timer);
	return expires >= now - (s64)TWHEEL_TICK_NS && expires <= now + (s64)NSEC_PER_SEC;
}

/* This CPU's base may be behind too, because one of its timers is due: then try again. */
static void test_come_over(void)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	bool good = false;
	unsigned int i;

	if (!shot)
		return;
	for (i = 0; i < 10 && !good; i++)
		good = shot_comes_over(shot);
	check(good, "what goes to another base for a time that is over is for a tick to come");
	kvfree(shot);
}

/* A timer of the CPUs' bases moves to the CPU that adds it, and one of a private base stays. */
static void test_cpus(void)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	u32 id;

	if (!shot || !there.task) {
		skip("one CPU", "a timer of the CPUs' bases moves to the CPU that adds it");
		kvfree(shot);
		return;
	}
	shot_init(shot, &places[ON_CPU]);
	twheel_add(&shot->timer, HOUR);
	there_start(shot_add_now, shot);
	there_wait();
	check(shot->timer.queue.data == there.cpu && shot->cpu == there.cpu,
	      "a timer of the CPUs' bases moves to the CPU that adds it, %u, and fires on %u",
	      there.cpu, shot->cpu);
	shot_init(shot, &places[ON_MONO]);
	id = shot->timer.queue.data;
	there_start(shot_add_now, shot);
	there_wait();
	check(shot->timer.queue.data == id && id >= 2 * nr_cpu_ids,
	      "and one of a private base stays in that");
	twheel_cancel_sync(&shot->timer);
	kvfree(shot);
}

/* ---- what a callback may rely on --------------------------------------------------------- */

static struct careful {
	struct twheel_timer	timer;
	unsigned int		wrong;
	bool			first;
	bool			second;
} *careful;

static void careful_second(struct twheel_timer *timer)
{
	tell(&careful->second);
}

/* From here on the timer is used by other code, with another callback. */
static void careful_first(struct twheel_timer *timer)
{
	struct twheel_base *base = places[ON_MONO].base;
	unsigned long flags;

	careful->wrong += irqs_disabled() || !in_serving_softirq() || twheel_pending(timer);
	twheel_lock(base, &flags);
	careful->wrong += twheel_cancel_locked(base, timer);
	twheel_unlock(base, flags);
	memset(timer, 0x6b, sizeof(*timer));
	twheel_init_on(base, timer, careful_second);
	twheel_add(timer, 0);
	tell(&careful->first);
}

static void test_callback(void)
{
	careful = zalloc(1, sizeof(*careful));
	if (!careful)
		return;
	twheel_init_on(places[ON_MONO].base, &careful->timer, careful_first);
	twheel_add(&careful->timer, 0);
	check(wait_for(told(&careful->first)) && !careful->wrong,
	      "a callback runs in softirq context, interrupts on, no lock held, its timer idle");
	check(wait_for(told(&careful->second)),
	      "and may hand its timer to somebody else, who arms it for another callback");
	twheel_cancel_sync(&careful->timer);
	kvfree(careful);
}

/* ---- one after the other ----------------------------------------------------------------- */

#define SINGLE_CALLS	100
#define SINGLE_MS	30000

/**
 * struct single - two timers of a base, each armed on a CPU of its own all the while
 * @timers:	the timers
 * @inside:	how many callbacks run now
 * @twice:	how often a callback was called while the other one ran
 * @calls:	how often they were called
 */
static struct single {
	struct twheel_timer	timers[2];
	atomic_t		inside;
	atomic_t		twice;
	atomic_t		calls;
} *single;

static void single_fired(struct twheel_timer *timer)
{
	if (atomic_inc_return(&single->inside) > 1)
		atomic_inc(&single->twice);
	keep_busy_ns(200 * NSEC_PER_USEC);
	atomic_dec(&single->inside);
	atomic_inc(&single->calls);
}

/* Arm the timer again if it has expired. Returns true after enough calls. */
static bool single_again(struct twheel_timer *timer)
{
	if (!twheel_pending(timer))
		twheel_mod(timer, 0);
	return atomic_read(&single->calls) >= SINGLE_CALLS;
}

/* stay_for(), but for as long as so many calls may take on a host that is busy. */
static void single_arm(void *timer)
{
	look_for(SINGLE_MS * (u64)NSEC_PER_MSEC, single_again(timer), cond_resched());
}

/* While the callback of one timer runs, the other timers of the base wait, on whatever CPU. */
static void test_one_by_one(void)
{
	unsigned int i;

	single = zalloc(1, sizeof(*single));
	if (!single || !there.task) {
		skip("one CPU", "the callbacks of a base are called one after the other");
		kvfree(single);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(single->timers); i++)
		twheel_init_on(places[ON_MONO].base, &single->timers[i], single_fired);
	there_start(single_arm, &single->timers[1]);
	single_arm(&single->timers[0]);
	there_wait();
	for (i = 0; i < ARRAY_SIZE(single->timers); i++)
		twheel_cancel_sync(&single->timers[i]);
	check(atomic_read(&single->calls) >= SINGLE_CALLS && !atomic_read(&single->twice),
	      "the callbacks of a base are called one after the other: of %d, %d were not",
	      atomic_read(&single->calls), atomic_read(&single->twice));
	kvfree(single);
}

/* ---- waiting for a callback -------------------------------------------------------------- */

static struct eager {
	struct twheel_timer	timer;
	atomic_t		calls;
	atomic_t		inside;
	ktime_t			stay;
	bool			leave;
} *eager;

/* The callback arms its timer as often as it can until it returns. */
static void eager_fired(struct twheel_timer *timer)
{
	ktime_t end = ktime_add_ns(ktime_get(), eager->stay);

	atomic_inc(&eager->inside);
	atomic_inc(&eager->calls);
	do {
		twheel_mod(timer, 0);
	} while (ktime_before(ktime_get(), end));
	atomic_dec(&eager->inside);
}

/* The callbacks run on the CPU that arms the timer. */
static void eager_there(void *arg)
{
	twheel_mod(&eager->timer, 0);
	stay_for(told(&eager->leave));
}

static bool eager_ended(int (*end)(struct twheel_timer *timer), const struct place *place, s64 stay)
{
	bool good;
	int calls;

	place_init(place, &eager->timer, eager_fired);
	atomic_set(&eager->calls, 0);
	eager->leave = false;
	eager->stay = stay;
	if (there.task)
		there_start(eager_there, NULL);
	else
		twheel_mod(&eager->timer, 0);
	spin_for(atomic_read(&eager->calls) > 1);
	end(&eager->timer);
	good = !atomic_read(&eager->inside) && !twheel_pending(&eager->timer);
	calls = atomic_read(&eager->calls);
	usleep_range(300, 400);
	good &= atomic_read(&eager->calls) == calls && !twheel_pending(&eager->timer);
	tell(&eager->leave);
	if (there.task)
		there_wait();
	return good;
}

static void test_eager(int (*end)(struct twheel_timer *timer), const char *name)
{
	unsigned int i, bad = 0;

	eager = zalloc(1, sizeof(*eager));
	if (!eager)
		return;
	for (i = 0; i < 30; i++)
		bad += !eager_ended(end, &places[i % SINK_MONO], i % 5 * 50 * NSEC_PER_USEC);
	check(!bad, "%s ends a timer whose callback arms it, and waits: %u times it did not",
	      name, bad);
	twheel_shutdown_sync(&eager->timer);
	kvfree(eager);
}

static struct vain {
	struct twheel_timer	timer;
	bool			running;
	bool			refused;
} *vain;

/* The callback arms its timer until that has no effect. */
static void vain_fired(struct twheel_timer *timer)
{
	tell(&vain->running);
	vain->refused = spin_for((twheel_mod(timer, HOUR), !twheel_pending(timer)));
}

static void vain_there(void *arg)
{
	twheel_mod(&vain->timer, 0);
	stay_for(told(&vain->refused));
}

/*
 * Arming has no effect already while shutdown_sync waits for the callback, not only when it
 * returns.
 */
static void test_vain(void)
{
	vain = zalloc(1, sizeof(*vain));
	if (!vain || !there.task) {
		skip("one CPU", "a callback arms its timer in vain while it is being shut down");
		kvfree(vain);
		return;
	}
	twheel_init(&vain->timer, vain_fired);
	there_start(vain_there, NULL);
	spin_for(told(&vain->running));
	twheel_shutdown_sync(&vain->timer);
	check(vain->refused && !twheel_pending(&vain->timer),
	      "a callback arms its timer in vain while it is being shut down");
	there_wait();
	kvfree(vain);
}

/* Only twheel_init() makes the timer usable again. */
static void test_shut(void)
{
	struct shot *shot = zalloc(1, sizeof(*shot));

	if (!shot)
		return;
	shot_init(shot, &places[ON_MONO]);
	twheel_shutdown_sync(&shot->timer);
	twheel_add(&shot->timer, 0);
	usleep_range(500, 600);
	check(!atomic_read(&shot->calls), "a timer that was shut down does not fire");
	shot_init(shot, &places[ON_MONO]);
	twheel_add(&shot->timer, 0);
	check(wait_for(atomic_read(&shot->calls)), "one that is initialised anew does");
	twheel_cancel_sync(&shot->timer);
	kvfree(shot);
}

/* ---- many at once ------------------------------------------------------------------------ */

#define ARRAY		200

static struct array {
	struct shot		shots[ARRAY];
	struct twheel_timer	*timers[ARRAY];
	ktime_t			delays[ARRAY];
	ktime_t			begin;
	ktime_t			end;
	u32			cpu;
} *array;

static void array_add(void *arg)
{
	array->cpu = raw_smp_processor_id();
	array->begin = ktime_get();
	twheel_add_array(array->timers, array->delays, ARRAY);
	array->end = ktime_get();
}

/* Timers for later must be armed as by twheel_add(), on this CPU. Returns how many are not. */
static unsigned int array_wrong(void)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < ARRAY; i++) {
		struct twheel_timer *timer = array->timers[i];
		ktime_t delay = array->delays[i], expires;

		wrong += timer->queue.data != array->cpu;
		if (delay < HOUR)
			continue;
		expires = twheel_expires(timer);
		wrong += expires < ktime_add_safe(array->begin, delay) ||
			 expires > ktime_add_safe(array->end + TWHEEL_TICK_NS, delay);
		wrong += twheel_cancel(timer) != 1;
	}
	return wrong;
}

static void test_array(void)
{
	static const ktime_t delays[] = { 0, -HOUR, HOUR, NSEC_PER_MSEC, KTIME_MAX, KTIME_MIN };
	unsigned int i, wrong, fired = 0, soon = 0;

	array = zalloc(1, sizeof(*array));
	if (!array)
		return;
	for (i = 0; i < ARRAY; i++) {
		shot_init(&array->shots[i], &places[ON_CPU]);
		array->timers[i] = &array->shots[i].timer;
		array->delays[i] = delays[i % ARRAY_SIZE(delays)];
		soon += array->delays[i] < HOUR;
	}
	if (there.task) {
		there_start(array_add, NULL);
		there_wait();
	} else {
		array_add(NULL);
	}
	wrong = array_wrong();
	for (i = 0; i < ARRAY; i++)
		if (array->delays[i] < HOUR)
			fired += wait_for(atomic_read(&array->shots[i].calls) == 1);
	for (i = 0; i < ARRAY; i++)
		twheel_cancel_sync(array->timers[i]);
	check(!wrong && fired == soon,
	      "add_array arms each as twheel_add() would: %u of %u fire, %u are wrong", fired, soon,
	      wrong);
	kvfree(array);
}

/* Armed between @begin and @end, each in a tick that it may fire in. Returns how many are not. */
static unsigned int array_late(const u64 *tolerances, ktime_t begin, ktime_t end)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < ARRAY; i++) {
		ktime_t expires = twheel_expires(array->timers[i]);
		s64 most = max_t(s64, tolerances[i], TWHEEL_TICK_NS);

		wrong += expires < begin + array->delays[i] ||
			 expires > end + array->delays[i] + most;
	}
	return wrong;
}

/* Of those that may be late: how many are armed for the tick of the one before? */
static unsigned int array_shared(void)
{
	unsigned int i, nr = 0;

	for (i = 2; i < ARRAY; i += 2)
		nr += twheel_expires(array->timers[i]) == twheel_expires(array->timers[i - 2]);
	return nr;
}

/* The first of an array and every other one may be late by an hour, the rest not at all. */
static void test_array_range(void)
{
	u64 *tolerances = zalloc(ARRAY, sizeof(*tolerances));
	unsigned int i, wrong, shared;
	ktime_t begin;

	array = zalloc(1, sizeof(*array));
	for (i = 0; array && tolerances && i < ARRAY; i++) {
		shot_init(&array->shots[i], &places[ON_CPU]);
		array->timers[i] = &array->shots[i].timer;
		array->delays[i] = HOUR + i * NSEC_PER_SEC;
		tolerances[i] = i % 2 ? 0 : HOUR;
	}
	if (i) {
		begin = ktime_get();
		twheel_add_array_range(array->timers, array->delays, tolerances, ARRAY);
		wrong = array_late(tolerances, begin, ktime_get());
		shared = array_shared();
		/* They are due within 200 s, and their ticks are 86.4 s apart. */
		check(!wrong && shared >= ARRAY / 2 - 4,
		      "add_array_range: each is as late as it may be, %u wrong, and %u share a tick",
		      wrong, shared);
		while (i--)
			twheel_cancel_sync(array->timers[i]);
	}
	kvfree(tolerances);
	kvfree(array);
}

/* ---- sinks ------------------------------------------------------------------------------- */

static struct leaving {
	struct twheel_base	*base;
	struct twheel_timer	timers[3];
	atomic_t		calls;
	atomic_t		inside;
	bool			ending;
	bool			leave;
	bool			in_expired;
	bool			met;
} *leaving;

/*
 * Stay in expired() or wake() until the base is being destroyed, and a little longer. In expired()
 * the base is locked: so not for long, since on PREEMPT_RT the other CPU may want to take over the
 * base, and would stand still.
 */
static void leaving_stay(bool here)
{
	u64 most = leaving->in_expired ? NSEC_PER_MSEC / 2 : SPIN_MS * (u64)NSEC_PER_MSEC;

	atomic_inc(&leaving->inside);
	atomic_inc(&leaving->calls);
	if (here) {
		spin_for_ns(most, told(&leaving->ending));
		keep_busy_ns(NSEC_PER_MSEC / 2);
	}
	atomic_dec(&leaving->inside);
}

static void leaving_expired(struct twheel_base *base, struct twheel_timer **timers,
			    unsigned int nr)
{
	leaving_stay(leaving->in_expired);
}

static bool leaving_wake(struct twheel_base *base)
{
	leaving_stay(!leaving->in_expired);
	return true;
}

static const struct twheel_sink leaving_sink = {
	.expired = leaving_expired, .wake = leaving_wake,
};

static void leaving_there(void *arg)
{
	unsigned long flags;
	ktime_t now = twheel_lock(leaving->base, &flags);

	/* The second timer is due while the first is handled. The third never fires. */
	twheel_add_locked(leaving->base, &leaving->timers[0], now);
	twheel_add_locked(leaving->base, &leaving->timers[1], now + 2 * NSEC_PER_MSEC);
	twheel_add_locked(leaving->base, &leaving->timers[2], now + HOUR);
	twheel_unlock(leaving->base, flags);
	stay_for(told(&leaving->leave));
}

/*
 * Destroy a base while its sink is being called on another CPU. On PREEMPT_RT this CPU may be
 * calling it too, and then only a task with SCHED_FIFO can sleep for microseconds.
 */
static bool leaving_once(bool in_expired)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MIN_NS, .sink = &leaving_sink,
	};
	int calls, least = in_expired ? 1 : 2;
	bool good;

	*leaving = (struct leaving) { .base = twheel_create(&config), .in_expired = in_expired };
	if (IS_ERR(leaving->base))
		return false;
	there_start(leaving_there, NULL);
	fifo_begin();
	good = spin_for(atomic_read(&leaving->calls) >= least);
	leaving->met = atomic_read(&leaving->inside);
	tell(&leaving->ending);
	twheel_destroy(leaving->base);
	fifo_end();
	good &= !atomic_read(&leaving->inside);
	calls = atomic_read(&leaving->calls);
	usleep_range(4000, 5000);
	tell(&leaving->leave);
	there_wait();
	return good && atomic_read(&leaving->calls) == calls;
}

static void test_leaving(void)
{
	unsigned int i, met = 0, bad = 0;

	leaving = zalloc(1, sizeof(*leaving));
	/* If two CPUs of a machine take turns on one of the host, they meet seldom. */
	for (i = 0; leaving && there.task && i < 5000 && met < 10 && !bad; i++) {
		bad += !leaving_once(met % 2);
		met += leaving->met;
	}
	if (i)
		check(!bad && met == 10, "no sink is called once its base was destroyed: %u times",
		      bad);
	else
		skip("one CPU", "no sink is called once its base was destroyed");
	kvfree(leaving);
}

static atomic_t always_woken;

static bool always_wake(struct twheel_base *base)
{
	atomic_inc(&always_woken);
	return true;
}

/*
 * A base is served although nothing expires: the interrupt for a timer that was cancelled comes.
 * Returns false if the timer expired, because this CPU stood still.
 */
static bool serve_in_vain(const struct place *place, struct shot *shot)
{
	struct twheel_stats s;

	shot_init(shot, place);
	atomic_set(&always_woken, 0);
	place_add(place, &shot->timer, 5 * NSEC_PER_MSEC);
	if (!place_cancel(place, &shot->timer))
		return false;
	wait_for((twheel_get_stats(place->base, &s), s.wakeups));
	usleep_range(1000, 1100);
	return s.wakeups && !s.expired;
}

/* With @always the sink is woken then, and without it is not. */
static void test_always(bool always)
{
	const struct twheel_sink sink = {
		.expired = shots_expired, .wake = always_wake, .always = always,
	};
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct place place = places[SINK_MONO];
	unsigned int i;
	bool served = false;
	int woken = 0;

	place.config.sink = &sink;
	place.config.owner = &unwatched;
	for (i = 0; shot && i < 10 && !served; i++) {
		place.base = twheel_create(&place.config);
		if (IS_ERR(place.base))
			break;
		served = serve_in_vain(&place, shot);
		if (always)
			wait_for(atomic_read(&always_woken));
		woken = atomic_read(&always_woken);
		twheel_destroy(place.base);
	}
	check(served && (always ? woken : !woken || wakes_in_vain),
	      "a sink is %s when its base was served, and nothing has expired: %d times",
	      always ? "always woken" : "not woken", woken);
	kvfree(shot);
}

/* The timers of a base that is destroyed are as they were. */
static bool forgets(const struct place *place, struct shot *shots, struct shot *before)
{
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < ARRAY; i++) {
		shot_init(&shots[i], place);
		place_add(place, &shots[i].timer, (i + 1) * 1000 * HOUR);
	}
	twheel_lock(place->base, &flags);
	memcpy(before, shots, ARRAY * sizeof(*shots));
	twheel_unlock(place->base, flags);
	twheel_destroy(place->base);
	return !memcmp(before, shots, ARRAY * sizeof(*shots));
}

/* A base with a sink may be destroyed while timers are armed. It does not look at them. */
static void test_forgotten(const struct place *like)
{
	struct shot *shots = zalloc(2 * ARRAY, sizeof(*shots));
	struct place place = *like;
	bool good = false;

	place.config.owner = &unwatched;
	place.base = twheel_create(&place.config);
	if (shots && !IS_ERR(place.base))
		good = forgets(&place, shots, shots + ARRAY);
	kvfree(shots);
	check(good, "%s: armed timers are forgotten when the base is destroyed", like->name);
}

/* Bases of one user, and bases of no user: all are served. */
static void test_users(void)
{
	struct twheel_user *user = twheel_user_create();
	struct place place[4];
	struct shot shots[4];
	unsigned int i, fired = 0;

	check(user, "a user");
	for (i = 0; user && i < ARRAY_SIZE(place); i++) {
		place[i] = places[SINK_MONO + i % 2];
		place[i].config.user = i / 2 ? user : NULL;
		place[i].config.owner = &unwatched;
		place[i].base = twheel_create(&place[i].config);
		shot_init(&shots[i], &place[i]);
		if (!IS_ERR(place[i].base))
			place_add(&place[i], &shots[i].timer, NSEC_PER_MSEC);
	}
	for (i = 0; user && i < ARRAY_SIZE(place); i++) {
		if (IS_ERR(place[i].base))
			continue;
		fired += wait_for(atomic_read(&shots[i].calls) == 1);
		twheel_destroy(place[i].base);
	}
	check(fired == ARRAY_SIZE(place), "the bases of a user and those of nobody are served: %u",
	      fired);
	twheel_user_destroy(user);
	twheel_user_destroy(NULL);
}

/* ---- drain ------------------------------------------------------------------------------- */

#define DRAINED		150

static struct drained {
	const struct place	*place;
	unsigned int		nr;
	unsigned int		wrong;
} *drained;

/* Each timer is idle when fn() gets it, comes with its time, and may be freed. */
static void drained_take(struct twheel_timer *timer, ktime_t expires, void *arg)
{
	struct shot *shot = container_of(timer, struct shot, timer);
	const s64 tick_ns = drained->place->config.tick_ns;

	drained->wrong += arg != drained || twheel_pending(timer) ||
			  expires < shot->deadline || expires >= shot->deadline + tick_ns;
	drained->nr++;
	memset(shot, 0x6b, sizeof(*shot));
	kvfree(shot);
}

static void test_drain(const struct place *place)
{
	ktime_t now = place_now(place);
	struct twheel_stats stats;
	unsigned int i;
	u64 nr;

	drained = zalloc(1, sizeof(*drained));
	if (!drained)
		return;
	drained->place = place;
	for (i = 0; i < DRAINED; i++) {
		struct shot *shot = zalloc(1, sizeof(*shot));
		unsigned long flags;

		if (!shot)
			break;
		shot_init(shot, place);
		/* From a minute to 30 years, which is beyond the last level. */
		shot->deadline = now + (60 + i * i * i * 280LL) * NSEC_PER_SEC;
		twheel_lock(place->base, &flags);
		twheel_add_locked(place->base, &shot->timer, shot->deadline);
		twheel_unlock(place->base, flags);
	}
	nr = twheel_drain(place->base, drained_take, drained);
	twheel_get_stats(place->base, &stats);
	check(nr == i && drained->nr == i && !drained->wrong && !stats.pending,
	      "%s: drain hands out each of %u timers once, idle, with its time: %llu, %u wrong",
	      place->name, i, nr, drained->wrong);
	check(!twheel_drain(place->base, drained_take, drained), "%s: and then none",
	      place->name);
	kvfree(drained);
}

/*
 * When a callback arms the other timer: at once, so that drain takes that; when the base's time for
 * this run is used up; or so soon that the other timer is called in the same run.
 */
enum arming { AT_ONCE, LATE, SAME_RUN };

static struct busy_drain {
	struct twheel_timer	first;
	struct twheel_timer	second;
	atomic_t		inside;
	atomic_t		calls;
	enum arming		arming;
	bool			draining;
	bool			leave;
} *busy_drain;

static void drain_second(struct twheel_timer *timer)
{
	atomic_inc(&busy_drain->inside);
	atomic_inc(&busy_drain->calls);
	keep_busy(1);
	atomic_dec(&busy_drain->inside);
}

/*
 * The callback stays until its base is being drained, and arms the other timer for the next tick.
 */
static void drain_first(struct twheel_timer *timer)
{
	ktime_t next = (timer->queue.expires + 1) * TWHEEL_TICK_MIN_NS;

	atomic_inc(&busy_drain->inside);
	atomic_inc(&busy_drain->calls);
	if (busy_drain->arming == AT_ONCE)
		twheel_add(&busy_drain->second, 0);
	spin_for(told(&busy_drain->draining));
	if (busy_drain->arming == SAME_RUN)
		spin_for(ktime_get() >= next);
	else
		keep_busy_ns(NSEC_PER_MSEC / 2);
	if (busy_drain->arming != AT_ONCE)
		twheel_add_abs(&busy_drain->second, 0);
	atomic_dec(&busy_drain->inside);
}

static void drain_there(void *arg)
{
	twheel_add(&busy_drain->first, 0);
	stay_for(told(&busy_drain->leave));
}

static void drained_forget(struct twheel_timer *timer, ktime_t expires, void *arg) { }

static void drained_count(struct twheel_timer *timer, ktime_t expires, void *arg)
{
	++*(unsigned int *)arg;
}

/* Each of the two timers was either called or handed out, and no callback is running. */
static bool drain_while_busy(struct twheel_base *base, enum arming arming)
{
	unsigned int handed = 0;
	u64 nr = 0;
	bool good;

	*busy_drain = (struct busy_drain) { .arming = arming };
	twheel_init_on(base, &busy_drain->first, drain_first);
	twheel_init_on(base, &busy_drain->second, drain_second);
	there_start(drain_there, NULL);
	good = stay_for(atomic_read(&busy_drain->inside));
	tell(&busy_drain->draining);
	nr = twheel_drain(base, drained_count, &handed);
	good &= !atomic_read(&busy_drain->inside) && !twheel_pending(&busy_drain->second) &&
		nr == handed && atomic_read(&busy_drain->calls) + handed == 2;
	tell(&busy_drain->leave);
	there_wait();
	twheel_cancel_sync(&busy_drain->first);
	twheel_cancel_sync(&busy_drain->second);
	return good;
}

static void test_busy_drain(const struct place *place)
{
	unsigned int i, bad = 0;

	busy_drain = zalloc(1, sizeof(*busy_drain));
	for (i = 0; busy_drain && there.task && i < 100; i++)
		bad += !drain_while_busy(place->base, i < 10 ? i % 2 : SAME_RUN);
	if (i)
		check(!bad, "%s: when drain returns no callback runs, nor what one has armed: %u",
		      place->name, bad);
	else
		skip("one CPU", "%s: when drain returns no callback runs", place->name);
	kvfree(busy_drain);
}

/* ---- private bases ----------------------------------------------------------------------- */

static void test_limits(void)
{
	static const struct twheel_config good[] = {
		{ .clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MIN_NS },
		{ .clock = CLOCK_BOOTTIME, .tick_ns = TWHEEL_TICK_MAX_NS },
		{ .clock = CLOCK_BOOTTIME, .tick_ns = TWHEEL_TICK_NS, .slack_ns = NSEC_PER_SEC - 1,
		  .owner = &watched },
	};
	unsigned int i, nr = 0;
	size_t size = 0;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct twheel_base *base = twheel_create(&good[i]);

		if (IS_ERR(base))
			continue;
		nr += twheel_owner(base) == good[i].owner;
		size = twheel_size(base);
		twheel_destroy(base);
	}
	check(nr == ARRAY_SIZE(good), "ticks, clocks and slack may be all that is said: %u", nr);
	check(PAGE_ALIGNED(size) && size > 34 * 1024 && size < 72 * 1024,
	      "the memory of a base is whole pages: %zu bytes", size);
	check(IS_ENABLED(CONFIG_LOCKDEP) ||
	      (sizeof(struct twheel_timer) == sizeof(struct timer_list) &&
	       (BITS_PER_LONG == 32 || sizeof(struct twheel_timer) == 40)),
	      "a timer is as big as a timer_list: %zu bytes", sizeof(struct twheel_timer));
}

#define LIVES		100

/* The id of a base is used again for the next one: there are no more ids than bases. */
static void test_ids(void)
{
	const struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS };
	static struct twheel_timer timer;
	unsigned int i;
	u32 most = 0;

	for (i = 0; i < LIVES; i++) {
		struct twheel_base *base = twheel_create(&config);

		if (IS_ERR(base))
			break;
		twheel_init_on(base, &timer, shot_fired);
		most = max(most, timer.queue.data);
		twheel_destroy(base);
	}
	check(i == LIVES && most < 2 * nr_cpu_ids + LIVES / 2,
	      "of %u bases, one after the other, each may be what the one before was: %u", i, most);
}

#define SLACK_NS	(40 * NSEC_PER_MSEC)
#define SLACK_MOST	((s64)SLACK_NS * 3 / 2)

static s64 slack_late(const struct place *place, struct shot *shot)
{
	shot_init(shot, place);
	place_add(place, &shot->timer, NSEC_PER_MSEC);
	shot->deadline = place_expires(place, &shot->timer);
	wait_for(atomic_read(&shot->calls));
	place_cancel(place, &shot->timer);
	return ktime_sub(shot->fired_at, shot->deadline);
}

/*
 * The interrupt may come later by the slack, and does where no other softirq of hrtimers comes:
 * on PREEMPT_RT those of sleeping tasks are such. By no more than that, as soon as the machine is
 * not late itself.
 */
static void test_slack(const struct place *like)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct place place = *like;
	s64 least = S64_MAX, most = 0;
	unsigned int i;

	place.config.slack_ns = SLACK_NS;
	place.config.owner = &unwatched;
	place.base = twheel_create(&place.config);
	for (i = 0; shot && !IS_ERR(place.base) && i < (least > SLACK_MOST ? 50 : 4); i++) {
		s64 late = slack_late(&place, shot);

		least = min(least, late);
		most = max(most, late);
	}
	check(least >= 0 && least <= SLACK_MOST &&
	      (most >= (s64)SLACK_NS / 2 || IS_ENABLED(CONFIG_PREEMPT_RT)),
	      "%s: with a slack of 40 ms an interrupt comes %lld to %lld us after its tick",
	      like->name, div_s64(least, NSEC_PER_USEC), div_s64(most, NSEC_PER_USEC));
	if (!IS_ERR(place.base))
		twheel_destroy(place.base);
	kvfree(shot);
}

/* ---- the lock of a base ------------------------------------------------------------------ */

/* The time is over by then: the clock is not looked at again. */
static void shot_relock(const struct place *place, struct shot *shot)
{
	unsigned long flags;
	ktime_t now = twheel_lock(place->base, &flags);

	twheel_unlock(place->base, flags);
	keep_busy_ns(2 * place->config.tick_ns);
	twheel_relock(place->base, &flags);
	twheel_add_locked(place->base, &shot->timer, now);
	shot->deadline = place_now(place);
	twheel_unlock(place->base, flags);
}

static void shot_raw_lock(const struct place *place, struct shot *shot)
{
	raw_spinlock_t *lock = twheel_raw_lock(place->base);

	raw_spin_lock_irq(lock);
	__release(lock);	/* for sparse, which does not see twheel_unlock_irq() do it */
	shot->deadline = ktime_add_ns(twheel_now(place->base), NSEC_PER_MSEC);
	twheel_add_locked(place->base, &shot->timer, shot->deadline);
	twheel_unlock_irq(place->base);
}

/*
 * @add sets the shot's deadline: the timer must fire in the tick after that, or earlier. If the
 * host stops this CPU in @add, the deadline may be over when the timer is added: then in the next
 * tick.
 */
static bool lock_serves(const struct place *place, struct shot *shot,
			void (*add)(const struct place *place, struct shot *shot))
{
	ktime_t latest;
	bool fired;

	shot_init(shot, place);
	add(place, shot);
	latest = max(shot->deadline, twheel_now(place->base)) + (s64)place->config.tick_ns;
	fired = spin_for(atomic_read(&shot->calls));
	place_cancel(place, &shot->timer);
	return fired && !irqs_disabled() && shot->fired_at >= shot->expires &&
	       shot->expires <= latest;
}

/* Nothing else is armed that would have the base served. */
static void test_lock(const struct place *place)
{
	struct shot *shot = zalloc(1, sizeof(*shot));

	if (!shot)
		return;
	check(lock_serves(place, shot, shot_relock),
	      "%s: what is armed after twheel_relock() fires", place->name);
	check(lock_serves(place, shot, shot_raw_lock),
	      "%s: what is armed under twheel_raw_lock() fires", place->name);
	kvfree(shot);
}

/* ---- a small base that grows ------------------------------------------------------------- */

/* More than are moved into the buckets in one lock hold. */
#define GROWING		200

/* Every fourth is due at once, the others seconds, hours and years ahead. */
static ktime_t growing_delay(unsigned int i)
{
	static const ktime_t delays[] = { 0, NSEC_PER_SEC, HOUR, 10 * 365 * 24 * HOUR };

	return delays[i % ARRAY_SIZE(delays)] + i * NSEC_PER_MSEC;
}

static void growing_add(const struct place *place, struct shot *shots)
{
	unsigned int i;

	for (i = 0; i < GROWING; i++) {
		shot_init(&shots[i], place);
		place_add(place, &shots[i].timer, growing_delay(i));
		shots[i].deadline = place_expires(place, &shots[i].timer);
	}
}

/* In the tick that it had before, unless it had fired by then. */
static bool growing_fired(struct shot *shot, bool wait)
{
	bool fired = wait ? wait_for(atomic_read(&shot->calls)) : atomic_read(&shot->calls);

	return fired && (shot->deadline == KTIME_MAX || shot->expires == shot->deadline) &&
	       shot->fired_at >= shot->expires;
}

/*
 * Those of the first two seconds fire in their ticks, and the others are armed for theirs. If one
 * is lost, the rest are not waited for.
 */
static unsigned int growing_wrong(const struct place *place, struct shot *shots)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < GROWING; i++) {
		struct shot *shot = &shots[i];

		if (growing_delay(i) < HOUR)
			wrong += !growing_fired(shot, !wrong);
		else
			wrong += place_expires(place, &shot->timer) != shot->deadline;
	}
	return wrong;
}

static void grow_once(const struct place *place, struct shot *shots)
{
	size_t small = twheel_size(place->base), whole;
	struct twheel_stats s;
	unsigned int wrong;
	bool few;
	int ret;

	growing_add(place, shots);
	few = twheel_hold_ops(place->base) == TWHEEL_TREE_OPS;
	ret = twheel_grow(place->base);
	whole = twheel_size(place->base);
	check(!ret && small < 2048 && whole > 34 * 1024 && whole < 72 * 1024,
	      "%s: a small base grows from %zu to %zu bytes", place->name, small, whole);
	check(!twheel_grow(place->base) && twheel_size(place->base) == whole,
	      "%s: and then no more", place->name);
	wrong = growing_wrong(place, shots);
	check(!wrong, "%s: timers stay armed and fire in their ticks: %u did not", place->name,
	      wrong);
	twheel_get_stats(place->base, &s);
	check(s.pending == GROWING / 2 && s.added == GROWING && s.expired == GROWING / 2 &&
	      twheel_drain(place->base, drained_forget, NULL) == GROWING / 2,
	      "%s: the rest is there: %llu", place->name, s.pending);
	check(few && twheel_hold_ops(place->base) == TWHEEL_HOLD_OPS,
	      "%s: a lock hold has few operations until it has grown", place->name);
}

/* Do @fn with a small base like that of @like. */
static void with_small(const struct place *like,
		       void (*fn)(const struct place *place, struct shot *shots))
{
	struct shot *shots = zalloc(GROWING, sizeof(*shots));
	struct place place = *like;

	place.config.small = true;
	place.config.owner = &unwatched;
	place.base = twheel_create(&place.config);
	if (shots && !IS_ERR(place.base))
		fn(&place, shots);
	if (!IS_ERR(place.base))
		twheel_destroy(place.base);
	kvfree(shots);
}

static void test_grow(const struct place *like)
{
	with_small(like, grow_once);
}

static u64 moves_of(const struct place *place)
{
	struct twheel_stats s;

	twheel_get_stats(place->base, &s);
	return s.moves;
}

/* Of a base with nothing that is due: its timers leave the tree soon, and not when they are due. */
static void grow_idle(const struct place *place, struct shot *shots)
{
	unsigned int i;
	bool good;

	for (i = 0; i < GROWING; i++) {
		shot_init(&shots[i], place);
		place_add(place, &shots[i].timer, HOUR + i * NSEC_PER_SEC);
	}
	check(twheel_drain(place->base, drained_forget, NULL) == GROWING,
	      "drain takes the timers of a small base");
	for (i = 0; i < GROWING; i++)
		place_add(place, &shots[i].timer, HOUR + i * NSEC_PER_SEC);
	good = !twheel_grow(place->base) && wait_for(moves_of(place) >= GROWING);
	check(good, "when it grows each goes to its bucket: %llu moves", moves_of(place));
	check(twheel_drain(place->base, drained_forget, NULL) == GROWING,
	      "and there drain finds it");
}

static void test_small(const struct place *like)
{
	struct twheel_config config = like->config;

	config.small = true;
	config.sink = NULL;
	check(twheel_create(&config) == ERR_PTR(-EINVAL), "no base with callbacks is small");
	with_small(like, grow_idle);
}

/* ---- counters ---------------------------------------------------------------------------- */

static int place_mod(const struct place *place, struct twheel_timer *timer, ktime_t delay)
{
	unsigned long flags;
	ktime_t now = twheel_lock(place->base, &flags);
	int ret = twheel_mod_locked(place->base, timer, ktime_add_safe(now, delay));

	twheel_unlock(place->base, flags);
	return ret;
}

static bool stats_are(const struct place *place, u64 pending, u64 added, u64 rearmed, u64 expired)
{
	struct twheel_stats s;

	twheel_get_stats(place->base, &s);
	if (s.pending == pending && s.added == added && s.rearmed == rearmed &&
	    s.expired == expired)
		return true;
	pr_info("# in %s: %llu pending, %llu added, %llu rearmed, %llu expired\n", place->name,
		s.pending, s.added, s.rearmed, s.expired);
	return false;
}

/* The counters of a new base, and then of one with timers for later. */
static void stats_counts(const struct place *place, struct shot *shots)
{
	struct twheel_stats s;
	bool good;

	twheel_get_stats(place->base, &s);
	check(stats_are(place, 0, 0, 0, 0) && !s.wakeups && !s.moves && !s.deferred && !s.worst &&
	      s.next == KTIME_MAX, "%s: a base that was just made has done nothing", place->name);
	good = !place_mod(place, &shots[0].timer, HOUR) && stats_are(place, 1, 1, 0, 0) &&
	       !place_mod(place, &shots[1].timer, 2 * HOUR) && stats_are(place, 2, 2, 0, 0) &&
	       place_mod(place, &shots[1].timer, 3 * HOUR) && stats_are(place, 2, 3, 1, 0) &&
	       place_mod(place, &shots[0].timer, 2 * HOUR) && stats_are(place, 2, 4, 2, 0) &&
	       place_mod(place, &shots[1].timer, 5 * NSEC_PER_SEC) &&
	       stats_are(place, 2, 5, 3, 0) &&
	       place_cancel(place, &shots[1].timer) && stats_are(place, 1, 5, 3, 0);
	check(good, "%s: what is armed, added and armed anew is counted", place->name);
	twheel_get_stats(place->base, &s);
	check(s.next <= place_expires(place, &shots[0].timer) && s.next > place_now(place),
	      "%s: the next run is no later than the first timer, and not now", place->name);
	place_cancel(place, &shots[0].timer);
	place_cancel(place, &shots[1].timer);
}

/*
 * A timer that is too far ahead for the first level, and one that is near: an interrupt for each,
 * and one move. The first run must end before the second begins.
 */
static bool stats_add_up(const struct place *place, struct shot *shot)
{
	struct twheel_stats before, s;

	twheel_get_stats(place->base, &before);
	shot_wait(place, shot, 200 * place->config.tick_ns);
	shot_wait(place, shot, 0);
	twheel_get_stats(place->base, &s);
	if (s.expired - before.expired == 2 && s.wakeups - before.wakeups == 2 &&
	    s.moves - before.moves == 1 && s.worst == 1)
		return true;
	pr_info("# in %s: interrupts %llu, expired %llu, moved %llu, at most %llu in one run\n",
		place->name, s.wakeups - before.wakeups, s.expired - before.expired,
		s.moves - before.moves, s.worst);
	return false;
}

/*
 * If the machine stalls, a run is deferred, and there is one more; or a timer is due before it was
 * moved. A tick may be 100 us, and a busy host is late by more than that most of the time.
 */
static void stats_run(const struct place *place, struct shot *shot)
{
	bool good = false;
	unsigned int i;

	for (i = 0; i < 200 && !good; i++)
		good = stats_add_up(place, shot);
	check(good, "%s: interrupts, expiries and moves are counted", place->name);
}

/* Runs that move a timer each: the most moves in one run are not what all have moved. */
static void stats_worst(const struct place *place, struct shot *shot)
{
	struct twheel_stats s = { };
	unsigned int i;

	for (i = 0; i < 200 && s.moves < 3; i++) {
		shot_wait(place, shot, 200 * place->config.tick_ns);
		twheel_get_stats(place->base, &s);
	}
	check(s.moves >= 3 && s.worst == 1,
	      "%s: the most moves in one run are counted: %llu, of %llu", place->name, s.worst,
	      s.moves);
}

static void test_stats(const struct place *like)
{
	struct shot *shots = zalloc(2, sizeof(*shots));
	struct place place = *like;

	place.config.owner = &unwatched;
	place.base = twheel_create(&place.config);
	if (shots && !IS_ERR(place.base)) {
		shot_init(&shots[0], &place);
		shot_init(&shots[1], &place);
		stats_counts(&place, shots);
		stats_run(&place, &shots[0]);
		stats_worst(&place, &shots[0]);
	}
	if (!IS_ERR(place.base))
		twheel_destroy(place.base);
	kvfree(shots);
}

/*
 * What is armed anew for a time that is over counts as such, though nobody has told the wheel the
 * time for a while.
 */
static void test_rearmed(const struct place *like)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct place place = *like;

	place.base = twheel_create(&place.config);
	if (shot && !IS_ERR(place.base)) {
		shot_init(shot, &place);
		twheel_add(&shot->timer, HOUR);
		msleep(20);
		twheel_mod_abs_range(&shot->timer, place_now(&place) - 5 * NSEC_PER_MSEC, 0);
		check(wait_for(atomic_read(&shot->calls)) && stats_are(&place, 0, 2, 1, 1),
		      "%s: what is armed anew for a time that is over is counted as such",
		      place.name);
		place_cancel(&place, &shot->timer);
	}
	if (!IS_ERR(place.base))
		twheel_destroy(place.base);
	kvfree(shot);
}

static void slow_shot(struct twheel_timer *timer)
{
	keep_busy_ns(300 * NSEC_PER_USEC);
	shot_fired(timer);
}

/* Callbacks take longer than a run may: the run is deferred, and the counter says so. */
static void test_deferred(const struct place *place)
{
	struct shot *shots = zalloc(8, sizeof(*shots));
	struct twheel_stats before, s;
	unsigned int i, fired = 0;

	if (!shots)
		return;
	twheel_get_stats(place->base, &before);
	for (i = 0; i < 8; i++) {
		shots[i].place = place;
		place_init(place, &shots[i].timer, slow_shot);
		place_add(place, &shots[i].timer, NSEC_PER_MSEC);
	}
	for (i = 0; i < 8; i++) {
		fired += wait_for(atomic_read(&shots[i].calls));
		place_cancel(place, &shots[i].timer);
	}
	twheel_get_stats(place->base, &s);
	check(fired == 8 && s.deferred > before.deferred && s.wakeups > before.wakeups + 1,
	      "%s: a run that used up its time is put off: %llu times, in %llu interrupts",
	      place->name, s.deferred - before.deferred, s.wakeups - before.wakeups);
	kvfree(shots);
}

/*
 * So many timers of a tick that a sink's base has several turns in the pass that its interrupt
 * begins. If the pass is too long on a slow machine, the base is put off, and has another one. On
 * PREEMPT_RT another CPU may take over in between.
 */
static void test_turns(const struct place *place)
{
	struct shot *shots = zalloc(GROWING, sizeof(*shots));
	struct twheel_stats before, s;
	unsigned int i, fired = 0;
	unsigned long flags;
	ktime_t now;

	if (!shots)
		return;
	for (i = 0; i < GROWING; i++)
		shot_init(&shots[i], place);
	/* In one tick, which is on the first level. */
	now = twheel_lock(place->base, &flags);
	for (i = 0; i < GROWING; i++)
		twheel_add_locked(place->base, &shots[i].timer, now + 5 * NSEC_PER_MSEC);
	twheel_unlock(place->base, flags);
	twheel_get_stats(place->base, &before);
	for (i = 0; i < GROWING; i++) {
		fired += wait_for(atomic_read(&shots[i].calls));
		place_cancel(place, &shots[i].timer);
	}
	twheel_get_stats(place->base, &s);
	check(fired == GROWING && (IS_ENABLED(CONFIG_PREEMPT_RT) ||
				   s.wakeups - before.wakeups <= 2 + s.deferred - before.deferred),
	      "%s: %u timers of a tick take one interrupt, not one for each turn: %llu, %llu put off",
	      place->name, fired, s.wakeups - before.wakeups, s.deferred - before.deferred);
	kvfree(shots);
}

/* The flags, the data and the cookie of a sink's timer belong to the owner, whatever they are. */
static void test_owned(const struct place *place)
{
	struct shot *shot = zalloc(1, sizeof(*shot));
	struct twheel_timer *timer;
	unsigned long flags;
	ktime_t now;
	bool good;

	if (!shot)
		return;
	shot_init(shot, place);
	timer = &shot->timer;
	timer->queue.flags = U16_MAX;
	timer->queue.data = U32_MAX;
	timer->cookie = U64_MAX;
	now = twheel_lock(place->base, &flags);
	twheel_add_locked(place->base, timer, now + HOUR);
	good = twheel_mod_locked(place->base, timer, now + HOUR / 2) &&
	       twheel_mod_range_locked(place->base, timer, now + HOUR, HOUR) &&
	       twheel_cancel_locked(place->base, timer);
	twheel_add_range_locked(place->base, timer, now, 0);
	twheel_unlock(place->base, flags);
	good = wait_for(atomic_read(&shot->calls)) && good;
	place_cancel(place, timer);
	check(good && timer->queue.flags == U16_MAX && timer->queue.data == U32_MAX &&
	      timer->cookie == U64_MAX,
	      "%s: what the owner keeps in a timer says nothing to twheel", place->name);
	kvfree(shot);
}

/* ---- pauses ------------------------------------------------------------------------------ */

/*
 * With a debt of 100 us a base pauses for at least twice that. On PREEMPT_RT a run may use less CPU
 * time than it lasts.
 */
#define PAUSE_NS	((IS_ENABLED(CONFIG_PREEMPT_RT) ? 50 : 200) * NSEC_PER_USEC)
#define BUSY_NS		(70 * NSEC_PER_USEC)
#define BUSY_CALLS	2000
#define LONG_NS		(300 * NSEC_PER_MSEC)

/**
 * struct pausing - a private base, and what makes it pause
 * @base:	the base
 * @timer:	fires as often as possible, and takes BUSY_NS each time; later it fires once and
 *		takes LONG_NS
 * @other:	is armed for the next tick all the time
 * @left:	when a callback last returned
 * @deferred:	how often the base had deferred work by then
 * @pauses:	how often it has paused since the previous callback
 * @short_ones:	how many of these pauses were shorter than PAUSE_NS
 * @calls:	how often the callback was called
 * @shots:	timers that are due while a callback takes LONG_NS
 */
static struct pausing {
	struct twheel_base	*base;
	struct twheel_timer	timer;
	struct twheel_timer	other;
	ktime_t			left;
	u64			deferred;
	unsigned int		pauses;
	unsigned int		short_ones;
	atomic_t		calls;
	struct shot		shots[8];
} *pausing;

static void pausing_enter(void)
{
	ktime_t now = ktime_get();
	struct twheel_stats s;

	twheel_get_stats(pausing->base, &s);
	if (s.deferred == pausing->deferred)
		return;
	pausing->deferred = s.deferred;
	pausing->pauses++;
	pausing->short_ones += now < pausing->left + (s64)PAUSE_NS;
}

static void busy_fired(struct twheel_timer *timer)
{
	pausing_enter();
	keep_busy_ns(BUSY_NS);
	if (atomic_inc_return(&pausing->calls) < BUSY_CALLS)
		twheel_mod(timer, BUSY_NS + 2 * TWHEEL_TICK_MIN_NS);
	pausing->left = ktime_get();
}

static void other_fired(struct twheel_timer *timer)
{
	pausing_enter();
	keep_busy_ns(BUSY_NS);
	pausing->left = ktime_get();
}

/* A timer that is armed for earlier than deferred work must not shorten the pause. */
static void test_pauses(void)
{
	twheel_init_on(pausing->base, &pausing->timer, busy_fired);
	twheel_init_on(pausing->base, &pausing->other, other_fired);
	twheel_add(&pausing->timer, 0);
	stay_for((twheel_mod(&pausing->other, 0), atomic_read(&pausing->calls) >= BUSY_CALLS));
	twheel_cancel_sync(&pausing->timer);
	twheel_cancel_sync(&pausing->other);
	check(pausing->pauses && !pausing->short_ones,
	      "a pause is not made shorter by what is armed for earlier: %u of %u were",
	      pausing->short_ones, pausing->pauses);
}

static void long_fired(struct twheel_timer *timer)
{
	keep_busy_ns(LONG_NS);
	pausing->left = ktime_get();
}

/* How long after the callback the last of the timers fires that were due meanwhile. */
static s64 long_pause_ns(void)
{
	struct shot *shots = pausing->shots;
	ktime_t last = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pausing->shots); i++) {
		shots[i].place = &places[ON_MONO];
		atomic_set(&shots[i].calls, 0);
		twheel_mod(&shots[i].timer, LONG_NS / 2);
	}
	twheel_mod(&pausing->timer, NSEC_PER_MSEC);
	for (i = 0; i < ARRAY_SIZE(pausing->shots); i++) {
		wait_for(atomic_read(&shots[i].calls));
		last = max(last, shots[i].fired_at);
	}
	return ktime_sub(last, pausing->left);
}

/* However long a callback takes, later timers wait for 100 ms at most. */
static void test_long_pause(void)
{
	s64 best = S64_MAX;
	unsigned int i;

	twheel_init_on(pausing->base, &pausing->timer, long_fired);
	for (i = 0; i < ARRAY_SIZE(pausing->shots); i++)
		twheel_init_on(pausing->base, &pausing->shots[i].timer, shot_fired);
	for (i = 0; i < 20 && best > (s64)LONG_NS * 2 / 3; i++)
		best = min(best, long_pause_ns());
	check(best <= (s64)LONG_NS * 2 / 3,
	      "the pause after a callback of 300 ms is one of 100 ms: %lld us",
	      div_s64(best, NSEC_PER_USEC));
	twheel_drain(pausing->base, drained_forget, NULL);
}

static void test_pausing(void)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MIN_NS,
	};

	pausing = zalloc(1, sizeof(*pausing));
	if (!pausing)
		return;
	pausing->base = twheel_create(&config);
	if (!IS_ERR(pausing->base)) {
		test_pauses();
		test_long_pause();
		twheel_destroy(pausing->base);
	}
	kvfree(pausing);
}

/* ---- calls that may be made anywhere ----------------------------------------------------- */

/**
 * struct anywhere - what calls are made on
 * @place:	the base of all of them
 * @shot:	a timer
 * @task:	a task
 * @size:	the bytes of the base
 * @wrong:	how often a call did not what it should
 */
static struct anywhere {
	const struct place	*place;
	struct shot		shot;
	struct twheel_task	task;
	size_t			size;
	unsigned int		wrong;
} *anywhere;

static enum twheel_again anywhere_function(struct twheel_task *task)
{
	return TWHEEL_STOP;
}

/* twheel_lock() is tested by twheel_states.c. If a lock was not released, this hangs. */
static void lock_anywhere(struct twheel_base *base)
{
	raw_spinlock_t *lock = twheel_raw_lock(base);
	bool off = irqs_disabled();
	unsigned long flags;

	twheel_lock(base, &flags);
	anywhere->wrong += !is_locked(lock);
	twheel_unlock(base, flags);
	twheel_relock(base, &flags);
	anywhere->wrong += !irqs_disabled() || !is_locked(lock);
	twheel_unlock(base, flags);
	anywhere->wrong += !!irqs_disabled() != off;	/* on arm64 it may return 128 */
	raw_spin_lock_irqsave(lock, flags);
	raw_spin_unlock_irqrestore(lock, flags);
}

/* The calls on a private base. */
static void call_anywhere(void *unused)
{
	const struct place *place = anywhere->place;
	ktime_t from = place_now(place), now = twheel_now(place->base);

	anywhere->wrong += now < from || now > place_now(place);
	anywhere->wrong += twheel_owner(place->base) != place->config.owner;
	anywhere->wrong += twheel_size(place->base) != anywhere->size;
	anywhere->wrong += twheel_hold_ops(place->base) != TWHEEL_HOLD_OPS;
	lock_anywhere(place->base);
}

/* What is prepared anywhere is idle, and can be armed. */
static void init_anywhere(void *unused)
{
	struct twheel_base *base = anywhere->place->base;
	struct twheel_timer *timer = &anywhere->shot.timer;

	place_init(anywhere->place, timer, shot_fired);
	anywhere->wrong += twheel_pending(timer) || twheel_cancel(timer);
	anywhere->wrong += twheel_expires_jiffies(timer) - jiffies + 1 > 2;
	twheel_add(timer, HOUR);
	anywhere->wrong += twheel_cancel(timer) != 1;
	if (base)
		twheel_task_init_on(base, &anywhere->task, anywhere_function, 0);
	else
		twheel_task_init(&anywhere->task, anywhere_function, TWHEEL_TASK_PROCESS);
	anywhere->wrong += twheel_task_start(&anywhere->task, twheel_until(jiffies + 100 * HZ), 0);
	anywhere->wrong += twheel_task_cancel(&anywhere->task) != 1;
}

/* An interrupt may have a stack of its own, which debugobjects takes for none. */
static void stack_anywhere(void *unused)
{
	struct twheel_timer timer;

	twheel_init_on_stack(&timer, shot_fired);
	twheel_add(&timer, HOUR);
	anywhere->wrong += twheel_cancel(&timer) != 1;
	twheel_destroy_on_stack(&timer);
}

static void all_anywhere(void *unused)
{
	unsigned int i;

	for (i = 0; i < NR_CONTEXTS; i++) {
		if (anywhere->place->base)
			in_context(i, call_anywhere, NULL);
		if (!place_has_sink(anywhere->place))
			in_context(i, init_anywhere, NULL);
		if (i <= IN_ATOMIC)
			in_context(i, stack_anywhere, NULL);
	}
}

/* Calls on bases, and calls that prepare timers and tasks, are the same in each context. */
static void test_contexts(const struct place *place)
{
	anywhere = zalloc(1, sizeof(*anywhere));
	if (!anywhere)
		return;
	anywhere->place = place;
	if (place->base)
		anywhere->size = twheel_size(place->base);
	all_anywhere(NULL);
	if (there.task) {
		there_start(all_anywhere, NULL);
		there_wait();
	}
	check(!anywhere->wrong, "%s: what may be called anywhere is the same anywhere: %u were not",
	      place->name, anywhere->wrong);
	kvfree(anywhere);
}

/* ---- cost -------------------------------------------------------------------------------- */

#define CROWD		5000
#define ROUNDS		9
#define CALLS		500

/* What adding, re-arming and cancelling one timer cost, in the fastest of some rounds. */
static void cost_of(const struct place *place, struct shot *shot, s64 *best)
{
	ktime_t begin = ktime_get();
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		twheel_add(&shot->timer, HOUR + i * NSEC_PER_MSEC);
		twheel_mod(&shot->timer, 2 * HOUR + i * NSEC_PER_MSEC);
		twheel_cancel(&shot->timer);
	}
	*best = min(*best, ktime_sub(ktime_get(), begin));
	cond_resched();
}

/* The cost must be the same with ten timers as with thousands, which another base has. */
static void test_cost(void)
{
	const struct place *alone = &places[ON_MONO], *crowded = &places[ON_BOOT];
	struct shot *crowd = zalloc(CROWD, sizeof(*crowd)), *shots = zalloc(2, sizeof(*shots));
	s64 few = S64_MAX, many = S64_MAX;
	unsigned int i;

	for (i = 0; crowd && shots && i < CROWD; i++) {
		shot_init(&crowd[i], crowded);
		twheel_add(&crowd[i].timer, HOUR + i * 100LL * NSEC_PER_MSEC);
	}
	if (crowd && shots) {
		shot_init(&shots[0], alone);
		shot_init(&shots[1], crowded);
		for (i = 0; i < ROUNDS; i++) {
			cost_of(alone, &shots[0], &few);
			cost_of(crowded, &shots[1], &many);
		}
		check(many <= 3 * few,
		      "adding, re-arming and cancelling cost the same among %u: %lld and %lld ns",
		      CROWD, div_s64(few, CALLS), div_s64(many, CALLS));
		twheel_drain(crowded->base, drained_forget, NULL);
	}
	kvfree(shots);
	kvfree(crowd);
}

static void test_places(void)
{
	unsigned int i;

	for (i = 0; i < NR_PLACES; i++) {
		if (i < SINK_MONO) {
			test_rounding(&places[i]);
			test_never(&places[i]);
		}
		test_tolerance(&places[i]);
		test_shots(&places[i]);
		test_contexts(&places[i]);
		if (places[i].base) {
			test_over(&places[i]);
			test_stats(&places[i]);
			test_slack(&places[i]);
			test_lock(&places[i]);
			if (!place_has_sink(&places[i]))
				test_rearmed(&places[i]);
		}
		if (places[i].base && place_has_sink(&places[i])) {
			test_grow(&places[i]);
			test_turns(&places[i]);
			test_owned(&places[i]);
			test_forgotten(&places[i]);
		}
	}
}

static int __init twheel_promises_init(void)
{
	unsigned int i;

	pr_info("TAP version 14\n");
	contexts_begin();
	for (i = 0; i < NR_PLACES; i++)
		places[i].config.owner = &watched[i];
	if (places_begin(&shots_sink)) {
		test_places();
		test_cpus();
		test_put_off(shot_put_off, "put off");
		test_put_off(shot_leave, "due soon enough and armed anew");
		test_called_for(shot_put_off, "put off");
		test_called_for(shot_leave, "due soon enough and armed anew");
		test_come_over();
		test_callback();
		test_one_by_one();
		test_eager(twheel_cancel_sync, "cancel_sync");
		test_eager(twheel_shutdown_sync, "shutdown_sync");
		test_vain();
		test_shut();
		test_reduce();
		test_stay();
		test_jiffies(&places[ON_CPU]);
		test_array();
		test_array_range();
		test_leaving();
		test_always(false);
		test_always(true);
		test_users();
		for (i = ON_MONO; i < NR_PLACES; i++)
			test_drain(&places[i]);
		test_busy_drain(&places[ON_MONO]);
		test_small(&places[SINK_MONO]);
		test_limits();
		test_ids();
		test_pausing();
		for (i = ON_MONO; i < SINK_MONO; i++)
			test_deferred(&places[i]);
		test_cost();
	}
	places_end();
	contexts_end();
	return ktap_end();
}

static void __exit twheel_promises_exit(void)
{
}

module_init(twheel_promises_init);
module_exit(twheel_promises_exit);

MODULE_DESCRIPTION("Test of twheel.h: what it promises");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
