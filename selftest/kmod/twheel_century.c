// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Over virtual days and years, timers expire in exactly the tick that was asked for; and timers
 * that may be late expire at the beginning of one of the ticks that are allowed.
 *
 * This is for user-mode Linux with time-travel=inf-cpu: the clock stands still while code runs, and
 * when nothing runs it jumps to the time of the next event. So a timer expires in its tick or it
 * does not; no machine is too slow to tell.
 *
 * Each of NR_TIMERS timers is armed for a delay: one around a boundary of the wheel, or a random
 * one of any order of magnitude. Its callback arms it for another one, and so on until the span is
 * over. Timers that are armed then must be armed for the right tick. Every other timer may be late,
 * by a time of any order of magnitude too. Of these every fourth is armed twice: if its tick is
 * allowed the second time too, it keeps that tick.
 *
 *	tick	span			boundaries passed
 *	100 us	4 days			all, and the wheel's span, which is 3.65 days
 *	1 ms	40 days			all, and the wheel's span, which is 36.5 days
 *	1 s	years= (default 5)	all but that of 100 years, for which timers are armed
 *
 * The last takes more than a second for each year, because the kernel wakes up every 990 s to read
 * its clock. years=102, which passes the century, took two minutes, and finds what the other two
 * find: the wheel knows only ticks.
 *
 * The delays of the second base are also given to timer_list, as far as it has room for them, and
 * its lateness is printed. It promises 12.5 % of the delay.
 */
#define pr_fmt(fmt) fmt

#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "ktap.h"
#include "twheel.h"

static unsigned int years = 5;
module_param(years, uint, 0444);
static unsigned int seed = 1;
module_param(seed, uint, 0444);

#define NR_TIMERS	2000
#define DAY		(86400ULL * NSEC_PER_SEC)
#define YEAR		(365 * DAY)
#define CENTURY		3153600000ULL	/* in ticks: what the wheel spans */

/* In ticks: the widths of the levels and the span of the wheel. */
static const u64 boundaries[] = { 1, 60, 3600, 86400, 31536000, CENTURY };

struct probe {
	struct twheel_timer	timer;
	u64			armed_at;
	u64			deadline;
	u64			tolerance;
	u64			due;		/* the tick it was armed for */
	unsigned int		armed;
	unsigned int		fired;
};

/* What the callbacks have seen. There is only one CPU. */
static struct {
	u64		tick_ns;
	u64		end;		/* no timer is armed after it */
	struct rnd_state rnd;
	unsigned long	fired;
	unsigned long	far;		/* of these, after a delay beyond the wheel's span */
	unsigned long	tolerant;	/* of these, not in the first tick they might have */
	unsigned long	again;		/* armed for a range that has their tick */
	unsigned long	stirred;	/* of these, armed for another tick */
	unsigned long	outside;	/* armed for a tick that they may not have */
	unsigned long	early;
	unsigned long	late;
	u64		worst;		/* ns after the beginning of its tick */
} run;

static u64 random_below(u64 limit)
{
	u64 x = (u64)prandom_u32_state(&run.rnd) << 32 | prandom_u32_state(&run.rnd);
	u64 ticks;

	div64_u64_rem(x, limit, &ticks);
	return ticks;
}

/* A random delay in ns, sometimes with a fraction of a tick. */
static u64 random_delay(void)
{
	unsigned int i = random_below(ARRAY_SIZE(boundaries));
	u64 ticks, part = 0;

	if (random_below(2))
		ticks = boundaries[i] * (1 + random_below(2)) + random_below(5) - 2;
	else
		ticks = random_below(2ULL << random_below(ilog2(CENTURY) + 1));
	/* With ticks of 1 s the end of time is 292 years away. */
	if (ticks > CENTURY * 3 / 2)
		ticks = 1;
	if (random_below(2))
		part = random_below(run.tick_ns);
	return max_t(u64, ticks * run.tick_ns + part, 1);
}

static u64 tick_of(u64 deadline)
{
	return div64_u64(deadline + run.tick_ns - 1, run.tick_ns) * run.tick_ns;
}

/* The last tick in which @probe may fire: one that is exact, in the first one. */
static u64 last_tick_of(const struct probe *probe)
{
	u64 end = probe->deadline + probe->tolerance, part;

	div64_u64_rem(end, run.tick_ns, &part);
	return max(tick_of(probe->deadline), end - part);
}

static bool is_allowed(const struct probe *probe)
{
	return probe->due >= tick_of(probe->deadline) && probe->due <= last_tick_of(probe);
}

/*
 * Arm @probe once more, for a range around the one that it has. If its tick is in that range too,
 * it must keep it. It need not be: if no tick begins between its deadline and its end, it has the
 * first tick after both, which may be beyond the wider range.
 */
static void arm_again(struct probe *probe)
{
	probe->due = twheel_expires(&probe->timer);
	probe->deadline -= min(probe->deadline - probe->armed_at - 1, probe->tolerance / 2);
	probe->tolerance *= 2;
	twheel_mod_abs_range(&probe->timer, probe->deadline, probe->tolerance);
	if (!is_allowed(probe))
		return;
	run.again++;
	run.stirred += twheel_expires(&probe->timer) != probe->due;
}

/* The clock ends after 292 years: no deadline is so late that its tolerance would reach that. */
static void arm_range(struct probe *probe)
{
	probe->tolerance = min(random_delay(), CENTURY / 4 * run.tick_ns);
	twheel_add_abs_range(&probe->timer, probe->deadline, probe->tolerance);
	if (!random_below(4))
		arm_again(probe);
}

static void arm(struct probe *probe)
{
	probe->armed++;
	probe->armed_at = ktime_get_ns();
	probe->deadline = probe->armed_at + random_delay();
	probe->tolerance = 0;
	if (random_below(2))
		arm_range(probe);
	else
		twheel_add_abs(&probe->timer, probe->deadline);
	probe->due = twheel_expires(&probe->timer);
	run.outside += !is_allowed(probe);
}

static void fired(struct twheel_timer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);
	u64 now = ktime_get_ns(), due = probe->due;

	probe->fired++;
	run.fired++;
	run.far += probe->deadline - probe->armed_at > CENTURY * run.tick_ns;
	run.tolerant += due > tick_of(probe->deadline);
	run.early += now < due;
	run.late += now >= due + run.tick_ns;
	if (now >= due)
		run.worst = max(run.worst, now - due);
	if (now < run.end)
		arm(probe);
}

static void sleep_until(u64 time)
{
	ktime_t expires = ns_to_ktime(time);

	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&expires, HRTIMER_MODE_ABS);
}

/* Cancel all timers. Returns how many were armed for the wrong tick or had counted wrongly. */
static unsigned int stop(struct probe *probes)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < NR_TIMERS; i++) {
		struct probe *probe = &probes[i];
		bool right = !twheel_pending(&probe->timer) ||
			     twheel_expires(&probe->timer) == probe->due;

		wrong += !right ||
			 twheel_cancel_sync(&probe->timer) != probe->armed - probe->fired;
	}
	return wrong;
}

static void run_probes(struct twheel_base *base, struct probe *probes, u64 span)
{
	unsigned int i;

	run.end = ktime_get_ns() + span;
	for (i = 0; i < NR_TIMERS; i++) {
		twheel_init_on(base, &probes[i].timer, fired);
		arm(&probes[i]);
	}
	sleep_until(run.end);
}

static void test_base(u64 tick_ns, u64 span)
{
	struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = tick_ns };
	struct twheel_base *base = twheel_create(&config);
	struct probe *probes = vzalloc(array_size(NR_TIMERS, sizeof(*probes)));
	struct twheel_stats stats;

	check(!IS_ERR(base) && probes, "a base with a tick of %llu us", tick_ns / NSEC_PER_USEC);
	if (IS_ERR(base) || !probes)
		return;
	memset(&run, 0, sizeof(run));
	run.tick_ns = tick_ns;
	prandom_seed_state(&run.rnd, seed);
	run_probes(base, probes, span);
	twheel_get_stats(base, &stats);
	check(run.tolerant > run.fired / 4 && !run.outside,
	      "%lu of %lu come in a later tick than their first, %lu in one that they may not have",
	      run.tolerant, run.fired, run.outside);
	check(run.again > run.fired / 16 && !run.stirred,
	      "%lu were armed again for a range that has their tick, and %lu of them left it",
	      run.again, run.stirred);
	pr_info("# in %llu days: %lu expiries, %llu interrupts, at most %llu ns after the tick\n",
		div64_u64(span, DAY), run.fired, stats.wakeups, run.worst);
	check(run.fired > NR_TIMERS && !run.early, "%lu of them are early", run.early);
	check(!run.late, "%lu of them are late", run.late);
	if (span > CENTURY * tick_ns)
		check(run.far, "%lu of them come from beyond the wheel's span", run.far);
	check(!stop(probes), "every timer is accounted for, and armed for its tick if it is");
	vfree(probes);
	twheel_destroy(base);
}

/* ---- beside timer_list ------------------------------------------------------------ */

#define LIST_DAYS	12	/* with HZ=100 timer_list reaches 13 */

struct list_probe {
	struct timer_list	timer;
	u64			armed_at;
	u64			deadline;
	u64			fired_at;
};

static void list_fired(struct timer_list *timer)
{
	struct list_probe *probe = from_timer(probe, timer, timer);

	probe->fired_at = ktime_get_ns();
}

static void print_lateness(const struct list_probe *probes)
{
	u64 worst = 0, sum = 0, percent = 0;
	unsigned int i, nr = 0;

	for (i = 0; i < NR_TIMERS; i++) {
		const struct list_probe *probe = &probes[i];
		u64 late = probe->fired_at - min(probe->fired_at, probe->deadline);

		if (!probe->fired_at)
			continue;
		nr++;
		sum += late;
		worst = max(worst, late);
		/* Within the first second, the jiffy that timer_list adds is more than that. */
		if (probe->deadline - probe->armed_at > NSEC_PER_SEC)
			percent = max(percent, div64_u64(late * 1000, probe->deadline -
							 probe->armed_at));
	}
	pr_info("# timer_list, HZ=%d, %u timers of up to %d days: mean lateness %llu ms, worst %llu ms, at most %llu.%llu %% of a delay\n",
		HZ, nr, LIST_DAYS, div64_u64(sum, max(nr, 1u) * NSEC_PER_MSEC),
		div64_u64(worst, NSEC_PER_MSEC), div64_u64(percent, 10), percent % 10);
}

static void compare_timer_list(void)
{
	struct list_probe *probes = vzalloc(array_size(NR_TIMERS, sizeof(*probes)));
	unsigned int i;

	if (!probes)
		return;
	memset(&run, 0, sizeof(run));
	run.tick_ns = NSEC_PER_MSEC;
	prandom_seed_state(&run.rnd, seed);
	for (i = 0; i < NR_TIMERS; i++) {
		u64 delay = random_delay();

		timer_setup(&probes[i].timer, list_fired, 0);
		if (delay > LIST_DAYS * DAY)
			continue;
		probes[i].armed_at = ktime_get_ns();
		probes[i].deadline = probes[i].armed_at + delay;
		mod_timer(&probes[i].timer, jiffies + DIV64_U64_ROUND_UP(delay, TICK_NSEC));
	}
	sleep_until(ktime_get_ns() + (LIST_DAYS + 2) * DAY);
	print_lateness(probes);
	for (i = 0; i < NR_TIMERS; i++)
		del_timer_sync(&probes[i].timer);
	vfree(probes);
}

static void never_fired(struct twheel_timer *timer) { }

/*
 * A cancel leaves the interrupt armed. So after this the CPU's base has one when twheel.ko is
 * unloaded. The unloading must cancel it, or the kernel would report that an active hrtimer was
 * freed.
 */
static void leave_armed(void)
{
	static DEFINE_TWHEEL_TIMER(timer, never_fired);

	twheel_add(&timer, 3600LL * NSEC_PER_SEC);
	twheel_cancel_sync(&timer);
}

static int __init century_init(void)
{
	pr_info("TAP version 14\n");
	test_base(100 * NSEC_PER_USEC, 4 * DAY);
	test_base(NSEC_PER_MSEC, 40 * DAY);
	test_base(NSEC_PER_SEC, years * YEAR);
	compare_timer_list();
	leave_armed();
	return ktap_end();
}

static void __exit century_exit(void)
{
}

module_init(century_init);
module_exit(century_exit);

MODULE_DESCRIPTION("Test of twheel's exactness over virtual time");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
