/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * CPUs: to which base a timer goes that is armed on a CPU, and which CPU is interrupted for it.
 * Included by twheel.c.
 *
 * Each CPU has two bases:
 *
 *	own	for timers that twheel_add() and its like arm on the CPU. Its hrtimer is not pinned:
 *		if the CPU is idle when the hrtimer is started, the kernel chooses a busy CPU
 *	pinned	for twheel_add_on(). As long as the CPU is online, its hrtimer is started only there
 *
 * Isolated CPUs
 *	nohz_full=, isolcpus= and isolated cpusets keep a CPU for one task. A timer that is armed on
 *	such a CPU goes to another CPU, its home: to the home's own base, and for a file to the
 *	home's dispatcher. A CPU cannot start an hrtimer on another CPU. The kernel may move one
 *	that is not pinned, but only to a CPU that has an earlier hrtimer anyway; otherwise it stays
 *	on the CPU that starts it. So we interrupt the home, and the home starts its hrtimer, as is
 *	done for a timer_list. Only twheel_add_on() makes an isolated CPU expire timers.
 *
 *	The set of isolated CPUs may change: from Linux 6.12 on cpusets may change it at any time.
 *	We look at the set when we start an hrtimer. Until then, timers that were armed before the
 *	change, and the interrupt for them, stay where they are.
 *
 * Two hrtimers a base
 *	The kernel does not move an hrtimer whose callback is running, and a run starts its hrtimer
 *	again. So with one hrtimer a base would stay for ever on the CPU of its first run, even if
 *	that CPU is idle. Therefore a base has two hrtimers, and the run of one starts the other.
 *
 * Timers that hop
 *	A callback may arm its own timer on another CPU, like a watchdog that goes from CPU to CPU.
 *	Then the timer belongs to another base than the one that runs its callback. TWHEEL_HOPPED
 *	marks such a timer, so that code which has to know whether the callback is running looks
 *	in all bases.
 */
#ifndef TWHEEL_CPUS_H
#define TWHEEL_CPUS_H

/*
 * The base and the dispatcher for timers that are armed on a CPU: its own, or its home's. After
 * twheel_init_module() only that CPU writes them, in cpu_home().
 */
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

/* Is @base the pinned base of a CPU, for twheel_add_on()? */
static bool base_is_pinned(const struct twheel_base *base)
{
	return base->id >= nr_cpu_ids && base->id < first_private();
}

/* The base of a CPU with this id, or NULL if the id is that of a private base. */
static struct twheel_base *cpu_base_of(u32 id)
{
	if (id < nr_cpu_ids)
		return per_cpu(own_base, id);
	return id < first_private() ? per_cpu(pinned_base, id - nr_cpu_ids) : NULL;
}

/* ---- homes ------------------------------------------------------------------------------ */

/* Is @cpu isolated? The answer may change at any time. */
static bool cpu_is_left_alone(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_TIMER) || cpu_is_isolated(cpu);
}

/* May @cpu be a home, and is it on @node? NUMA_NO_NODE stands for any node. */
static bool cpu_may_be_home(unsigned int cpu, int node)
{
	return (node == NUMA_NO_NODE || cpu_to_node(cpu) == node) && !cpu_is_left_alone(cpu);
}

/*
 * A home on @node for @cpu, or nr_cpu_ids if there is none. Isolated CPUs are spread over the
 * homes.
 */
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

/*
 * The home of @cpu: @cpu itself if it is not isolated, or if all online CPUs are. Else a CPU that
 * is not isolated, on the same node if possible.
 */
static unsigned int cpu_find_home(unsigned int cpu)
{
	unsigned int home = cpu;

	if (cpu_is_left_alone(cpu))
		home = cpu_find_home_on(cpu, cpu_to_node(cpu));
	if (home >= nr_cpu_ids)
		home = cpu_find_home_on(cpu, NUMA_NO_NODE);
	return home < nr_cpu_ids ? home : cpu;
}

/*
 * From now on timers that are armed on @cpu go to @home. Called on @cpu, or before it has a timer.
 */
static void cpu_set_home(unsigned int cpu, unsigned int home)
{
	per_cpu(cpu_base, cpu) = per_cpu(own_base, home);
	per_cpu(cpu_dispatcher, cpu) = per_cpu(own_dispatcher, home);
}

/*
 * This CPU's home. It is chosen anew if the home was isolated or went offline meanwhile, or if this
 * CPU was isolated meanwhile, or is no longer isolated. With interrupts off.
 */
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

/* Start the hrtimer of @base on this CPU, for base->start. */
static void base_start_here(struct twheel_base *base)
{
	bool pinned = base_is_pinned(base) && base->id == nr_cpu_ids + smp_processor_id();

	lockdep_assert_held(&base->lock);
	hrtimer_start_range_ns(&base->drive[base->driver].hrtimer, base->start, base->start_slack,
			       pinned ? HRTIMER_MODE_ABS_PINNED_SOFT : HRTIMER_MODE_ABS_SOFT);
}

/* Start the hrtimer of a base on the CPU that another CPU has asked, in hard interrupt context. */
static void base_kicked(void *arg)
{
	struct twheel_base *base = arg;

	raw_spin_lock(&base->lock);
	base->kicks--;
	/* If a run is under way, it starts the hrtimer when it ends. */
	if (!base->in_run && base->armed != WHEEL_NEVER)
		base_start_here(base);
	raw_spin_unlock(&base->lock);
}

/*
 * Make @cpu call the function of @csd. Returns false if the CPU is offline. If a call is on its way
 * already (-EBUSY), that call does the work: it takes the lock that the caller holds, and then
 * finds what is to be done. @kicks counts calls on their way, under that lock.
 */
static bool cpu_kick(unsigned int cpu, call_single_data_t *csd, u32 *kicks)
{
	int err = smp_call_function_single_async(cpu, csd);

	*kicks += !err;
	return !err || err == -EBUSY;
}

/* Start the hrtimer of @base for @time, on the CPU that must be interrupted for it. */
static noinline void base_start(struct twheel_base *base, ktime_t time, u32 slack_ns)
{
	unsigned int cpu = base_is_pinned(base) ? base->id - nr_cpu_ids : cpu_home();

	lockdep_assert_held(&base->lock);
	base->start = time;
	base->start_slack = slack_ns;
	if (cpu == smp_processor_id() || !cpu_kick(cpu, &base->kick, &base->kicks))
		base_start_here(base);
}

/*
 * A run of @drive has begun: the other hrtimer is to be started next. But if @drive was started
 * again meanwhile, @drive stays the one to start.
 */
static void base_next_drive(struct twheel_base *base, struct drive *drive)
{
	lockdep_assert_held(&base->lock);
	base->driver = (drive - base->drive) ^ !hrtimer_is_queued(&drive->hrtimer);
}

/* Is a call of base_kicked() for @base on its way to another CPU? */
static bool base_is_kicked(struct twheel_base *base)
{
	unsigned long flags;
	bool kicked;

	raw_spin_lock_irqsave(&base->lock, flags);
	kicked = base->kicks;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return kicked;
}

/*
 * Stop the hrtimers of @base. The caller makes sure that nobody arms timers of @base any more. When
 * this returns, no run is under way, and none will come.
 */
static void base_stop_drives(struct twheel_base *base)
{
	while (base_is_kicked(base) ||
	       (hrtimer_cancel(&base->drive[0].hrtimer) | hrtimer_cancel(&base->drive[1].hrtimer)))
		cpu_relax();
}

/* ---- timers that hop -------------------------------------------------------------------- */

/*
 * The base in which the callback of @timer, which has hopped, is running. If none runs it, clear
 * TWHEEL_HOPPED and return NULL. This looks at the bases of all CPUs, without their locks. The
 * caller holds the lock of the timer's base.
 */
static struct twheel_base *hopped_running(struct twheel_timer *timer)
{
	unsigned int id;

	for (id = 0; id < first_private(); id++) {
		struct twheel_base *base = cpu_possible(id % nr_cpu_ids) ? cpu_base_of(id) : NULL;

		/* Pairs with the releases in run_callback() and base_ran(). */
		if (base && smp_load_acquire(&base->running) == timer)
			return base;
	}
	timer->queue.flags &= ~TWHEEL_HOPPED;
	return NULL;
}

/* The base in which the callback of @timer, a timer of @base, is running, or NULL. */
static struct twheel_base *running_base(struct twheel_base *base, struct twheel_timer *timer)
{
	lockdep_assert_held(&base->lock);
	if (base->running == timer)
		return base;
	return unlikely(timer->queue.flags & TWHEEL_HOPPED) ? hopped_running(timer) : NULL;
}

#endif
