// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * How much of a CPU do the callbacks of a base get? The test measures how long a run may be and how
 * long the pause after it is, and checks that over many runs the callbacks get no more than half of
 * the CPU. It also checks that a base with a sink does not have to wait because the firmware or a
 * hypervisor has had the CPU, and that all bases without a user have one share together. And it
 * counts the instructions of twheel_tell_set().
 *
 * This is for QEMU's -icount with one CPU, where an instruction takes a ns: a callback takes
 * exactly as long as it is meant to, and each run of the test gives the same result.
 *
 * KTAP in the kernel log.
 */
#define pr_fmt(fmt) fmt

#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "ktap.h"
#include "kwait.h"
#include "twheel.h"

#define TICK_NS		TWHEEL_TICK_MIN_NS
/* Not those of twheel.c, which are what is tested. */
#define MOST_OPS	1024
#define TIMERS		4000
/* All debts are repaid after that. */
#define REST_MS		300

/**
 * struct burn - a timer whose callback takes some time
 * @timer:	the timer
 * @ns:		how much
 * @run:	the run that called it, as a number
 * @begin:	when it was called
 * @end:	when it returned
 */
struct burn {
	struct twheel_timer	timer;
	u64			ns;
	u64			run;
	ktime_t			begin;
	ktime_t			end;
};

static struct burn *burns;
static struct twheel_base *base;
static atomic_t calls;

static u64 runs(void)
{
	struct twheel_stats stats;

	twheel_get_stats(base, &stats);
	return stats.wakeups;
}

static u64 deferred(void)
{
	struct twheel_stats stats;

	twheel_get_stats(base, &stats);
	return stats.deferred;
}

static void burn(struct twheel_timer *timer)
{
	struct burn *b = container_of(timer, struct burn, timer);

	b->run = runs();
	b->begin = ktime_get();
	keep_busy_ns(b->ns);
	b->end = ktime_get();
	atomic_inc(&calls);
}

/* Arm the timers from @first to @last for @expires, to take @ns each. */
static void arm(unsigned int first, unsigned int last, ktime_t expires, u64 ns)
{
	unsigned int i;

	for (i = first; i <= last; i++) {
		burns[i].ns = ns;
		twheel_init_on(base, &burns[i].timer, burn);
		twheel_add_abs(&burns[i].timer, expires);
	}
}

/* Let the base rest. Returns the beginning of a tick that is 20 ms ahead. */
static ktime_t rest(void)
{
	msleep(REST_MS);
	atomic_set(&calls, 0);
	return (div64_u64(ktime_get(), TICK_NS) + 200) * TICK_NS;
}

/* This CPU has a task to run meanwhile: on one that is idle, a run may take more. */
static bool all_called(int nr)
{
	keep_busy(60);
	return atomic_read(&calls) == nr;
}

/*
 * A callback has taken 260 us. With 12 us for the interrupt, and 130 us repaid meanwhile, there is
 * a debt of 142 us: more than half of what a run may take. So who comes due 140 us later has to
 * wait until it is repaid, which is 284 us after the run.
 */
static void test_pause(void)
{
	ktime_t begin = rest();
	u64 before = deferred();
	s64 pause;
	bool all;

	arm(0, 0, begin, 260 * NSEC_PER_USEC);
	arm(1, 1, begin + 4 * TICK_NS, NSEC_PER_USEC);
	all = all_called(2);
	pause = ktime_sub(burns[1].begin, burns[0].end);
	check(all && deferred() == before + 1 && pause > 280 * (s64)NSEC_PER_USEC &&
	      pause < 310 * (s64)NSEC_PER_USEC,
	      "after a callback of 260 us the next is called %lld ns later, not 140 us", pause);
}

/* One of 150 us leaves a debt of 87 us, which is less: there is no pause. */
static void test_no_pause(void)
{
	ktime_t begin = rest();
	u64 before = deferred();
	bool all;

	arm(0, 0, begin, 150 * NSEC_PER_USEC);
	arm(1, 1, begin + 2 * TICK_NS, NSEC_PER_USEC);
	all = all_called(2);
	check(all && deferred() == before && burns[1].begin < begin + 3 * (s64)TICK_NS,
	      "after one of 150 us the next is called in its tick, %lld ns later",
	      ktime_sub(burns[1].begin, burns[0].end));
}

/*
 * But the debt, of which 64 us are left when the next run begins, makes that shorter: of six
 * callbacks of 30 us it calls those that begin in its first 72 us.
 */
static void test_room(void)
{
	ktime_t begin = rest();
	unsigned int i, nr = 0;
	u64 first = U64_MAX;
	bool all;

	arm(0, 1, begin, 75 * NSEC_PER_USEC);
	arm(2, 7, begin + 2 * TICK_NS, 30 * NSEC_PER_USEC);
	all = all_called(8);
	for (i = 2; i < 8; i++)
		first = min(first, burns[i].run);
	for (i = 2; i < 8; i++)
		nr += burns[i].run == first;
	check(all && burns[0].run == burns[1].run && nr == 3,
	      "a run is shorter by what is left of the debt: %u of 6 callbacks are called", nr);
}

static unsigned int quick;

static void quick_fired(struct twheel_timer *timer)
{
	quick++;
}

/* However short the callbacks are: all of them would take less than three runs may. */
static void test_ops(void)
{
	/* So soon that they are in the wheel's first level, and need not be moved. */
	ktime_t begin = rest() - 150 * TICK_NS;
	unsigned int i;
	u64 before;

	quick = 0;
	for (i = 0; i < TIMERS; i++) {
		twheel_init_on(base, &burns[i].timer, quick_fired);
		twheel_add_abs(&burns[i].timer, begin);
	}
	before = runs();
	keep_busy(60);
	check(quick == TIMERS && runs() - before == DIV_ROUND_UP(TIMERS, MOST_OPS),
	      "no more than %u callbacks are called in one run: %u in %llu", MOST_OPS, quick,
	      runs() - before);
}

#define STEADY		2000

/**
 * struct steady - a timer that is armed for each tick
 * @timer:	the timer
 * @ns:		what its callback takes
 * @left:	how often it is still to be called
 * @before:	how often its base had paused at the beginning
 * @first:	how often it was called before the first pause; 0 if there was none
 */
static struct steady {
	struct twheel_timer	timer;
	u64			ns;
	unsigned int		left;
	u64			before;
	unsigned int		first;
} steady;

static void steady_fired(struct twheel_timer *timer)
{
	if (!steady.first && deferred() != steady.before)
		steady.first = STEADY - steady.left;
	keep_busy_ns(steady.ns);
	if (--steady.left)
		twheel_add(timer, 0);
	else
		atomic_inc(&calls);
}

/* How many of 1000 ns the callbacks took, from the first to the last. */
static u64 steady_share(u64 ns)
{
	ktime_t begin = rest(), end;

	steady.ns = ns;
	steady.left = STEADY;
	steady.before = deferred();
	steady.first = 0;
	twheel_init_on(base, &steady.timer, steady_fired);
	twheel_add_abs(&steady.timer, begin);
	wait_for(atomic_read(&calls));
	end = ktime_get();
	return div64_u64(STEADY * ns * 1000, ktime_sub(end, begin));
}

/*
 * The interrupts around the runs count, 12 us each, and half of the time repays. So callbacks of
 * 38 us in each tick of 100 us leave 2 us each time, and the base pauses when there are 100 us.
 */
static void test_share(void)
{
	u64 few, more, most;

	few = steady_share(30 * NSEC_PER_USEC);
	check(!steady.first,
	      "callbacks of 30 us each 100 us are never put off: %llu permille", few);
	more = steady_share(38 * NSEC_PER_USEC);
	check(steady.first >= 46 && steady.first <= 56,
	      "of 38 us the first %u are not: %llu permille", steady.first, more);
	most = steady_share(90 * NSEC_PER_USEC);
	check(most < 500, "those of 90 us get less than half of the CPU: %llu permille", most);
}

#define STILL_NS	(8 * NSEC_PER_MSEC)
#define STILL_TICKS	20
#define STILL_AT	5

/**
 * struct still - a timer in each tick of a ms of a base with a sink; once the CPU stands still
 * @timers:	the timers
 * @begin:	the first tick
 * @nr:		how many have expired
 * @until:	when the CPU stood still no more
 * @late:	the most that a timer was late that was due after that
 */
static struct still {
	struct twheel_timer	timers[STILL_TICKS];
	ktime_t			begin;
	unsigned int		nr;
	ktime_t			until;
	s64			late;
} still;

/* As if the firmware had this CPU in the lock hold of a tick: interrupts are off. */
static void still_expired(struct twheel_base *unused, struct twheel_timer **timers, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		ktime_t due = still.begin + (timers[i]->cookie * NSEC_PER_MSEC);

		if (still.until && due > still.until)
			still.late = max(still.late, ktime_sub(ktime_get(), due));
		if (timers[i]->cookie == STILL_AT) {
			keep_busy_ns(STILL_NS);
			still.until = ktime_get();
		}
	}
	still.nr += nr;
}

static bool still_wake(struct twheel_base *unused)
{
	return true;
}

static void still_arm(struct twheel_base *sink_base)
{
	unsigned long flags;
	unsigned int i;

	still.begin = (div64_u64(ktime_get(), NSEC_PER_MSEC) + 5) * NSEC_PER_MSEC;
	twheel_lock(sink_base, &flags);
	for (i = 0; i < STILL_TICKS; i++) {
		still.timers[i].cookie = i;
		twheel_add_locked(sink_base, &still.timers[i], still.begin + i * NSEC_PER_MSEC);
	}
	twheel_unlock(sink_base, flags);
}

/* If these 8 ms were charged, half of which are repaid meanwhile, the next timers would wait. */
static void test_still(void)
{
	static const struct twheel_sink sink = { .expired = still_expired, .wake = still_wake };
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TICK_NS, .sink = &sink,
	};
	struct twheel_base *sink_base = twheel_create(&config);

	if (IS_ERR(sink_base)) {
		check(false, "a base with a sink can be made");
		return;
	}
	still_arm(sink_base);
	msleep(STILL_TICKS + 20);
	check(still.nr == STILL_TICKS && still.until && still.late < (s64)TICK_NS,
	      "what the firmware has taken of a CPU is no debt: %u expired, %lld ns late after 8 ms",
	      still.nr, still.late);
	twheel_destroy(sink_base);
}

#define SHARERS		3
#define SHARE_TICKS	1000
#define SHARE_NS	(60 * NSEC_PER_USEC)

/**
 * struct sharer - a base with a sink that wants more than half of the CPU: each time that it is
 *		   served takes SHARE_NS, and a timer is due in each of SHARE_TICKS ticks
 * @base:	the base
 * @served:	how often it was served
 * @timers:	its timers
 */
static struct sharer {
	struct twheel_base	*base;
	unsigned int		served;
	struct twheel_timer	timers[SHARE_TICKS];
} *sharers;

static void share_expired(struct twheel_base *unused, struct twheel_timer **timers, unsigned int nr)
{
}

static bool share_wake(struct twheel_base *sink_base)
{
	struct sharer *s = twheel_owner(sink_base);

	s->served++;
	keep_busy_ns(SHARE_NS);
	return true;
}

/* The last base has a user, and the others have none. Returns whether all could be made. */
static bool sharers_begin(struct twheel_user *user)
{
	static const struct twheel_sink sink = { .expired = share_expired, .wake = share_wake };
	bool good = user;
	unsigned int i;

	for (i = 0; i < SHARERS; i++) {
		const struct twheel_config config = {
			.clock = CLOCK_MONOTONIC, .tick_ns = TICK_NS, .sink = &sink,
			.owner = &sharers[i], .user = i == SHARERS - 1 ? user : NULL,
		};

		sharers[i].base = twheel_create(&config);
		good = good && !IS_ERR(sharers[i].base);
	}
	return good;
}

static void sharer_arm(struct sharer *s, ktime_t begin)
{
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < SHARE_TICKS; i++) {
		twheel_lock(s->base, &flags);
		twheel_add_locked(s->base, &s->timers[i], begin + i * (s64)TICK_NS);
		twheel_unlock(s->base, flags);
	}
}

static void sharers_end(struct twheel_user *user)
{
	unsigned int i;

	for (i = 0; i < SHARERS; i++)
		if (!IS_ERR_OR_NULL(sharers[i].base))
			twheel_destroy(sharers[i].base);
	if (user)
		twheel_user_destroy(user);
}

/*
 * Two bases without a user, and one with a user of its own: each of the two users gets as much. If
 * each base without a user had a share to itself, the one with a user would get half of what the
 * others get together.
 */
static void test_nobody(void)
{
	struct twheel_user *user = twheel_user_create();
	unsigned int one, two, mine, i;
	ktime_t begin;

	if (!sharers_begin(user)) {
		check(false, "bases can be made with a user, and without");
		goto out;
	}
	begin = rest();
	for (i = 0; i < SHARERS; i++)
		sharer_arm(&sharers[i], begin);
	keep_busy(SHARE_TICKS / 10);
	one = sharers[0].served;
	two = sharers[1].served;
	mine = sharers[2].served;
	check(one && two && mine * 4 > (one + two) * 3 && mine * 3 < (one + two) * 4,
	      "bases without a user have one share together: %u and %u, and %u of one with a user",
	      one, two, mine);
out:
	sharers_end(user);
}

#define TELLS		1000

/* How many instructions the call takes, where the call has no more to do. */
static u64 cost_of_tell_set(struct twheel_base *told_base)
{
	unsigned long flags;
	unsigned int i;
	ktime_t begin;
	u64 ns;

	twheel_tell_set(told_base);
	local_irq_save(flags);
	begin = ktime_get();
	for (i = 0; i < TELLS; i++)
		twheel_tell_set(told_base);
	ns = ktime_to_ns(ktime_sub(ktime_get(), begin));
	local_irq_restore(flags);
	return div64_u64(ns, TELLS);
}

static atomic_t tellings;

static void count_telling(struct twheel_base *unused)
{
	atomic_inc(&tellings);
}

/*
 * For a base whose clock was not stepped, it loads two numbers and compares them: with what is
 * around that, 13 instructions more than for a base whose clock cannot be set. To lock and unlock a
 * mutex takes more than that.
 */
static void test_tell_set(void)
{
	static const struct twheel_config config = {
		.clock = CLOCK_REALTIME, .tick_ns = NSEC_PER_MSEC, .was_set = count_telling,
	};
	struct twheel_base *told_base = twheel_create(&config);
	u64 none, two;

	if (IS_ERR(told_base)) {
		check(false, "a base of CLOCK_REALTIME can be made");
		return;
	}
	none = cost_of_tell_set(base);
	two = cost_of_tell_set(told_base);
	check(!atomic_read(&tellings) && two <= none + 20,
	      "to ask whether the clock was stepped costs two loads: %llu instructions, and %llu where it cannot be",
	      two, none);
	twheel_destroy(told_base);
}

static int __init twheel_budget_init(void)
{
	const struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = TICK_NS };

	if (num_online_cpus() != 1 || IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EINVAL;
	pr_info("TAP version 14\n");
	burns = zalloc(TIMERS, sizeof(*burns));
	sharers = zalloc(SHARERS, sizeof(*sharers));
	base = twheel_create(&config);
	if (burns && sharers && !IS_ERR(base)) {
		test_pause();
		test_no_pause();
		test_room();
		test_ops();
		test_share();
		test_still();
		test_nobody();
		test_tell_set();
	}
	if (!IS_ERR(base))
		twheel_destroy(base);
	kvfree(sharers);
	kvfree(burns);
	return ktap_end();
}

static void __exit twheel_budget_exit(void)
{
}

module_init(twheel_budget_init);
module_exit(twheel_budget_exit);

MODULE_DESCRIPTION("Test of twheel: what timers get of a CPU, where an instruction is a ns");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
