/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * CPUs: whose base a timer goes to that is armed on one, and which of them is interrupted for it.
 * Included by twheel.c.
 *
 * Each CPU has two bases:
 *
 *	own	for what is armed on the CPU by twheel_add() and its like. Its hrtimer is not
 *		pinned: where the CPU is idle when that is started, the kernel takes a busy one
 *	pinned	for twheel_add_on(): its hrtimer is only ever started on the CPU, while that is
 *		online
 *
 * CPUs that are to be left alone
 *	nohz_full=, isolcpus= and isolated cpusets keep a CPU for one task. What is armed there
 *	goes to another CPU, its home: to the home's own base, and for a file to the
 *	home's dispatcher. An hrtimer cannot be started on another CPU, and one that is started
 *	here, even if it is not pinned, stays here if nothing expires earlier there. So the
 *	home is asked to start it, by an interrupt, as a timer_list does. Nothing but
 *	twheel_add_on() makes a CPU expire timers that is to be left alone.
 *
 *	Which CPUs these are may change: cpusets do that at any time, from Linux 6.12 on. It is
 *	looked at when an hrtimer is to be started. A timer that was armed before, and the
 *	interrupt for it, stays where it is until then.
 *
 * Two hrtimers a base
 *	The kernel moves no hrtimer whose callback is running, and a run starts it anew. So a base
 *	would stay on the CPU of its first run for ever, idle or not. A run starts the other one.
 *
 * Timers that hop
 *	A callback may arm its own timer on another CPU, as a watchdog does that goes from one to
 *	the next. Then the timer is of a base that is not the one that runs its callback,
 *	and TWHEEL_HOPPED says so to those who want to know whether that is running.
 */
#ifndef TWHEEL_CPUS_H
#define TWHEEL_CPUS_H

/* Where goes what is armed on a CPU: its own base or dispatcher, or its home's. */
static DEFINE_PER_CPU(struct twheel_base *, cpu_base);
static DEFINE_PER_CPU(struct dispatcher *, cpu_dispatcher);

/* Pointers, since modules share 8 KiB of per-CPU memory. */
static DEFINE_PER_CPU(struct twheel_base *, own_base);
static DEFINE_PER_CPU(struct twheel_base *, pinned_base);
static DEFINE_PER_CPU(struct dispatcher *, own_dispatcher);

/* The ids of bases: first the CPUs' own, then the pinned ones, then private_bases. */
static u32 first_private(void)
{
	return 2 * nr_cpu_ids;
}

static bool base_is_pinned(const struct twheel_base *base)
{
	return base->id >= nr_cpu_ids && base->id < first_private();
}

/* The CPU's base with this id, or NULL if it is the id of a private one. */
static struct twheel_base *cpu_base_of(u32 id)
{
	if (id < nr_cpu_ids)
		return per_cpu(own_base, id);
	return id < first_private() ? per_cpu(pinned_base, id - nr_cpu_ids) : NULL;
}

/* ---- homes ------------------------------------------------------------------------------ */

static bool cpu_is_left_alone(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_TIMER) || cpu_is_isolated(cpu);
}

/* May @cpu be a home, and is it of @node, or that NUMA_NO_NODE? */
static bool cpu_may_be_home(unsigned int cpu, int node)
{
	return (node == NUMA_NO_NODE || cpu_to_node(cpu) == node) && !cpu_is_left_alone(cpu);
}

/* A home of @node for @cpu, nr_cpu_ids if there is none. CPUs are spread over homes. */
static unsigned int cpu_find_home_on(unsigned int cpu, int node)
{
	unsigned int home, nr = 0;

	for_each_online_cpu(home)
		nr += cpu_may_be_home(home, node);
	if (!nr)
		return nr_cpu_ids;
	nr = cpu % nr;
	for_each_online_cpu(home)
		if (cpu_may_be_home(home, node) && !nr--)
			return home;
	return nr_cpu_ids;
}

static unsigned int cpu_find_home(unsigned int cpu)
{
	unsigned int home = cpu;

	if (cpu_is_left_alone(cpu))
		home = cpu_find_home_on(cpu, cpu_to_node(cpu));
	if (home >= nr_cpu_ids)
		home = cpu_find_home_on(cpu, NUMA_NO_NODE);
	return home < nr_cpu_ids ? home : cpu;
}

static void cpu_set_home(unsigned int cpu, unsigned int home)
{
	per_cpu(cpu_base, cpu) = per_cpu(own_base, home);
	per_cpu(cpu_dispatcher, cpu) = per_cpu(own_dispatcher, home);
}

/* This CPU's home, as things are now. */
static unsigned int cpu_home(void)
{
	unsigned int cpu = smp_processor_id(), home = this_cpu_read(cpu_base)->id;

	if (likely(home == cpu ? !cpu_is_left_alone(cpu) :
				 cpu_is_left_alone(cpu) && !cpu_is_left_alone(home) &&
				 cpu_online(home)))
		return home;
	home = cpu_find_home(cpu);
	cpu_set_home(cpu, home);
	return home;
}

/* ---- starting a base's hrtimer ---------------------------------------------------------- */

static void base_start_here(struct twheel_base *base)
{
	bool pinned = base_is_pinned(base) && base->id == nr_cpu_ids + smp_processor_id();

	lockdep_assert_held(&base->lock);
	hrtimer_start_range_ns(&base->drive[base->driver].hrtimer, base->start, base->start_slack,
			       pinned ? HRTIMER_MODE_ABS_PINNED_SOFT : HRTIMER_MODE_ABS_SOFT);
}

/* On the CPU that shall start the hrtimer, in hard interrupt context. */
static void base_kicked(void *arg)
{
	struct twheel_base *base = arg;

	raw_spin_lock(&base->lock);
	base->kicks--;
	/* A run that is under way starts it when it ends. */
	if (!base->in_run && base->armed != WHEEL_NEVER)
		base_start_here(base);
	raw_spin_unlock(&base->lock);
}

/*
 * Have @cpu call what @csd says. Returns false if it is off. If the call is on its way already it
 * will find what it is to do under the lock that the caller holds.
 */
static bool cpu_kick(unsigned int cpu, call_single_data_t *csd, u32 *kicks)
{
	int err = smp_call_function_single_async(cpu, csd);

	*kicks += !err;
	return !err || err == -EBUSY;
}

/* Start the hrtimer of @base for @time, where that belongs. */
static noinline void base_start(struct twheel_base *base, ktime_t time, u32 slack_ns)
{
	unsigned int cpu = base_is_pinned(base) ? base->id - nr_cpu_ids : cpu_home();

	lockdep_assert_held(&base->lock);
	base->start = time;
	base->start_slack = slack_ns;
	if (cpu == smp_processor_id() || !cpu_kick(cpu, &base->kick, &base->kicks))
		base_start_here(base);
}

/* A run has begun, that of @drive. If that was started once more meanwhile, it goes on. */
static void base_next_drive(struct twheel_base *base, struct drive *drive)
{
	lockdep_assert_held(&base->lock);
	base->driver = (drive - base->drive) ^ !hrtimer_is_queued(&drive->hrtimer);
}

static bool base_is_kicked(struct twheel_base *base)
{
	unsigned long flags;
	bool kicked;

	raw_spin_lock_irqsave(&base->lock, flags);
	kicked = base->kicks;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return kicked;
}

/* Nobody arms a timer of @base any more: when this returns no run of it is under way, or comes. */
static void base_stop_drives(struct twheel_base *base)
{
	while (base_is_kicked(base) ||
	       (hrtimer_cancel(&base->drive[0].hrtimer) | hrtimer_cancel(&base->drive[1].hrtimer)))
		cpu_relax();
}

/* ---- timers that hop -------------------------------------------------------------------- */

/* Does the callback of @timer run? Returns the base that runs it, or NULL. */
static struct twheel_base *hopped_running(struct twheel_timer *timer)
{
	unsigned int id;

	for (id = 0; id < first_private(); id++) {
		struct twheel_base *base = cpu_possible(id % nr_cpu_ids) ? cpu_base_of(id) : NULL;

		/* Pairs with run_callback(): what the callback has done is seen. */
		if (base && smp_load_acquire(&base->running) == timer)
			return base;
	}
	timer->queue.flags &= ~TWHEEL_HOPPED;
	return NULL;
}

/* The same of a timer of @base, whether it has hopped or not. */
static struct twheel_base *running_base(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (base->running == timer)
		return base;
	return unlikely(timer->queue.flags & TWHEEL_HOPPED) ? hopped_running(timer) : NULL;
}

#endif
