// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel_add_on(): the callback runs on the CPU that was named, even if the callback itself moves
 * the timer from CPU to CPU. A call that waits for the callback does so on whichever CPU the
 * callback runs. A CPU that goes offline keeps no timer.
 *
 * KTAP in the kernel log. Needs two CPUs.
 */
#define pr_fmt(fmt) fmt

#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/sched/isolation.h>

#include "ktap.h"
#include "kwait.h"
#include "twheel.h"

#define ROUNDS		20
#define HOPS		40
#define DELAY_NS	(2 * NSEC_PER_MSEC)
#define STAY_NS		(3 * NSEC_PER_MSEC)
#define SLOW_NS		(20 * TWHEEL_TICK_NS)

/**
 * struct traveller - a timer, and where it has been
 * @timer:	the timer
 * @to:		the CPU on which it was last armed
 * @left:	how often it still arms itself
 * @delay:	for what delay, in ns
 * @stay:	how long the callback stays after that, in ns
 * @hop:	the timer goes to another CPU each time; else it is re-armed by twheel_mod()
 * @detour:	it is armed on the CPU in between first, and cancelled there
 * @calls:	how often the callback was called
 * @astray:	how often it was called on another CPU than @to
 * @inside:	how many callbacks run now
 * @twice:	how often more than one ran
 * @refused:	how often twheel_add_on() refused
 * @armed:	the callback has armed the timer
 * @held:	the callback stays until @let
 * @let:	the callback may return
 * @end:	when the callback last returned
 * @slow:	how often the next call came more than SLOW_NS after that
 */
struct traveller {
	struct twheel_timer	timer;
	unsigned int		to;
	unsigned int		left;
	u64			delay;
	u64			stay;
	bool			hop;
	bool			detour;
	unsigned int		calls;
	unsigned int		astray;
	atomic_t		inside;
	unsigned int		twice;
	unsigned int		refused;
	bool			armed;
	bool			held;
	bool			let;
	ktime_t			end;
	unsigned int		slow;
};

static unsigned int next_cpu(unsigned int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

static void go_on(struct traveller *t)
{
	if (!t->hop) {
		twheel_mod(&t->timer, t->delay);
		return;
	}
	t->to = next_cpu(t->to);
	if (t->detour) {
		t->refused += twheel_add_on(&t->timer, HOUR, t->to) != 0;
		t->refused += twheel_cancel(&t->timer) != 1;
		t->to = next_cpu(t->to);
	}
	t->refused += twheel_add_on(&t->timer, t->delay, t->to) != 0;
}

static void arrived(struct twheel_timer *timer)
{
	struct traveller *t = container_of(timer, struct traveller, timer);

	t->twice += atomic_inc_return(&t->inside) > 1;
	t->slow += t->calls && ktime_sub(ktime_get(), t->end) > (s64)SLOW_NS;
	t->astray += raw_smp_processor_id() != t->to;
	if (t->left) {
		t->left--;
		go_on(t);
	}
	tell(&t->armed);
	if (t->held)
		spin_for(told(&t->let));
	keep_busy_ns(t->stay);
	t->end = ktime_get();
	WRITE_ONCE(t->calls, t->calls + 1);
	atomic_dec(&t->inside);
}

static void send(struct traveller *t, unsigned int cpu)
{
	twheel_init_on_stack(&t->timer, arrived);
	t->to = cpu;
	t->refused += twheel_add_on(&t->timer, t->delay, cpu) != 0;
}

/* The journey is over: the traveller, which is on the stack, may go. */
static void arrive(struct traveller *t)
{
	twheel_cancel_sync(&t->timer);
	twheel_destroy_on_stack(&t->timer);
}

static bool tell_traveller(const struct traveller *t)
{
	pr_info("# called %u times, %u astray, %u twice at once, refused %u times\n", t->calls,
		t->astray, t->twice, t->refused);
	return false;
}

/* Has @t been called @calls times, each time on the right CPU and once at a time? */
static bool is_right(struct traveller *t, unsigned int calls)
{
	bool met = wait_for(READ_ONCE(t->calls) >= calls);

	arrive(t);
	return (met && t->calls == calls && !t->astray && !t->twice && !t->refused) ||
	       tell_traveller(t);
}

static void test_each(void)
{
	unsigned int i, cpu, bad = 0, early = 0;

	for (i = 0; i < ROUNDS; i++)
		for_each_online_cpu(cpu) {
			struct traveller t = { .delay = i * NSEC_PER_MSEC / 2 };
			ktime_t begin = ktime_get();

			send(&t, cpu);
			bad += !is_right(&t, 1);
			early += ktime_get() < ktime_add_ns(begin, t.delay);
		}
	check(!bad && !early, "a timer that is armed on a CPU is called there, and not early");
}

static void test_hop(void)
{
	struct traveller t = { .left = HOPS, .delay = DELAY_NS, .hop = true };

	send(&t, raw_smp_processor_id());
	check(is_right(&t, HOPS + 1), "one whose callback arms it on the next CPU goes round");
}

/* It is called a tick after that if need be, unless the machine is late, as it is now and then. */
static void test_hasty(void)
{
	struct traveller t = { .left = HOPS, .stay = STAY_NS, .hop = true };

	send(&t, raw_smp_processor_id());
	check(is_right(&t, HOPS + 1), "one that is due there before its callback returns waits");
	check(t.slow <= HOPS / 4, "for the callback, and not much longer: %u of %u times it does",
	      t.slow, HOPS);
}

/* Its callback runs neither where it was armed last nor where it was before. */
static void test_detour(void)
{
	struct traveller t = { .left = HOPS, .stay = STAY_NS, .hop = true, .detour = true };

	send(&t, raw_smp_processor_id());
	check(is_right(&t, HOPS + 1), "so does one that was armed on a third CPU in between");
}

static void test_stay(void)
{
	struct traveller t = { .left = HOPS, .delay = DELAY_NS };

	send(&t, next_cpu(raw_smp_processor_id()));
	check(is_right(&t, HOPS + 1), "one whose callback arms it by another call stays");
}

/* If a callback has armed its timer on another CPU, a call still waits for that callback. */
static bool waits(int (*cancel)(struct twheel_timer *timer), bool armed)
{
	struct traveller t = {
		.left = 1, .delay = HOUR, .stay = STAY_NS, .hop = true, .held = true,
	};
	unsigned int cpu = next_cpu(raw_smp_processor_id());
	int ret, runs;

	twheel_init_on_stack(&t.timer, arrived);
	t.to = cpu;
	if (twheel_add_on(&t.timer, 0, cpu)) {
		arrive(&t);
		return false;
	}
	wait_for(told(&t.armed));
	runs = twheel_try_cancel(&t.timer);
	if (!armed)
		twheel_cancel(&t.timer);
	tell(&t.let);
	ret = cancel(&t.timer);
	arrive(&t);
	if (runs == -1 && ret == armed && t.calls == 1 && !atomic_read(&t.inside))
		return true;
	pr_info("# returned %d and %d\n", runs, ret);
	return tell_traveller(&t);
}

static void test_sync(void)
{
	unsigned int i, bad = 0;

	for (i = 0; i < ROUNDS; i++) {
		bad += !waits(twheel_cancel_sync, i % 2);
		bad += !waits(twheel_shutdown_sync, i % 2);
	}
	check(!bad, "a synchronous cancel waits for a callback that has armed its timer elsewhere");
}

/* After that it is an ordinary timer again. */
static void test_mod(void)
{
	struct traveller t = { .hop = true, .left = 1, .delay = DELAY_NS };
	unsigned int cpu;

	send(&t, next_cpu(raw_smp_processor_id()));
	wait_for(READ_ONCE(t.calls) == 2);
	cpu = get_cpu();
	check(!twheel_mod(&t.timer, HOUR) && twheel_pending(&t.timer) &&
	      t.timer.queue.data == cpu,
	      "armed by another call it is of the CPU that calls");
	put_cpu();
	check(twheel_cancel_sync(&t.timer) == 1 && !t.timer.queue.flags,
	      "and nothing is left of where it was");
	arrive(&t);
}

#if defined(CONFIG_HOTPLUG_CPU) && !defined(CONFIG_UML)
/* Not a CPU that is to be left alone: Linux 6.12 may refuse to switch that off. */
static unsigned int find_last(void)
{
	unsigned int cpu, last = 0;

	for_each_online_cpu(cpu)
		if (housekeeping_test_cpu(cpu, HK_TYPE_TIMER))
			last = cpu;
	return last;
}

/* Wait for @t, which is due at @due. Returns by how much it was late. */
static s64 wait_late(struct traveller *t, ktime_t due)
{
	bool met = wait_for(READ_ONCE(t->calls));

	arrive(t);
	return met && !t->refused ? ktime_sub(t->end, due) : S64_MAX;
}

/*
 * Switch @cpu off. *@before: by how much a timer was late that was armed there before, and was due
 * then, or before the CPU was off; *@off: by how much one was late that was armed after that.
 */
static bool go_off(unsigned int cpu, s64 *before, s64 *off)
{
	struct traveller t = { .delay = 200 * NSEC_PER_MSEC }, u = { .delay = DELAY_NS };
	ktime_t due = ktime_add_ns(ktime_get(), t.delay);

	send(&t, cpu);
	if (remove_cpu(cpu)) {
		arrive(&t);
		return false;
	}
	*before = wait_late(&t, max(due, ktime_get()));
	due = ktime_add_ns(ktime_get(), u.delay);
	send(&u, cpu);
	*off = wait_late(&u, due);
	return true;
}

static bool is_late(s64 before, s64 off)
{
	return max(before, off) > (s64)PROMPT_NS;
}

/* If the machine stood still, try again. */
static void test_off(void)
{
	struct traveller on = { .delay = DELAY_NS };
	s64 before = S64_MAX, off = S64_MAX;
	unsigned int i, cpu = find_last();

	for (i = 0; i < 5 && is_late(before, off); i++) {
		if (i)
			add_cpu(cpu);
		if (!go_off(cpu, &before, &off)) {
			check(false, "CPU %u goes off", cpu);
			return;
		}
	}
	check(before <= (s64)PROMPT_NS,
	      "a timer that was armed on a CPU that goes off fires, and in time");
	check(off <= (s64)PROMPT_NS, "and so does one that is armed then");
	check(!add_cpu(cpu), "the CPU goes on");
	send(&on, cpu);
	check(is_right(&on, 1), "and has its timers");
}
#else
static void test_off(void) { }
#endif

/* The test is on a CPU that may go off. Keep it on another one. */
static void stay_on_first(bool stay)
{
	set_cpus_allowed_ptr(current, stay ? cpumask_of(cpumask_first(cpu_online_mask)) :
					     cpu_possible_mask);
}

static int __init twheel_cpus_init(void)
{
	pr_info("TAP version 14\n");
	if (num_online_cpus() == 1) {
		skip("one CPU", "timers that are armed on a CPU");
		return ktap_end();
	}
	stay_on_first(true);
	test_each();
	test_hop();
	test_hasty();
	test_detour();
	test_stay();
	test_sync();
	test_mod();
	test_off();
	stay_on_first(false);
	return ktap_end();
}

static void __exit twheel_cpus_exit(void)
{
}

module_init(twheel_cpus_init);
module_exit(twheel_cpus_exit);

MODULE_DESCRIPTION("Test of twheel_add_on()");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
