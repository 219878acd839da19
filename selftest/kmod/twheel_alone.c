// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A thread on a CPU arms timers. How often is the CPU interrupted until they have expired, and by
 * what? For timers of twheel, timer_list and hrtimer, and without timers:
 *
 *	far	the timers are due in the next second. The CPU has nothing else to do, and is to
 *		be left alone by nohz_full= and isolcpus=
 *	near	on the same CPU, the timers are due one after the other within less than a ms,
 *		while the thread stays there. An hrtimer that is the first to expire cannot be
 *		started on another CPU
 *	idle	the timers are due as in "far", on a CPU that is idle while another one is busy
 *
 * And to which CPU a timer goes that is armed on an isolated one, by nohz_full= or by isolcpus=
 * alone.
 *
 * With cpuset=CPU, only this: where do timers go that are armed on this CPU, which a cpuset
 * isolates? isolates=1 says that the kernel tells modules of it, as Linux does from 6.12 on.
 *
 * Prints KTAP in the kernel log, with the counts as comments.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/isolation.h>
#include <linux/smp.h>
#include <linux/timer.h>
#ifdef CONFIG_X86
#include <asm/hardirq.h>
#endif

#include "ktap.h"
#include "kwait.h"
#include "places.h"
#include "twheel_compat.h"

#define TIMERS		400
#define STEP_NS		(2 * NSEC_PER_MSEC + 300 * NSEC_PER_USEC)
#define NEAR_NS		(300 * NSEC_PER_USEC)
#define NEAR_TIMERS	100
/* How many interrupts such a CPU gets in any case, within the second that a count takes. */
#define NOISE		12

enum kind { NOTHING, TIMER_LIST, HRTIMER, CPUS_BASE, PRIVATE_BASE, SINK, ON_IT, NR_KINDS };

static const char * const kind_names[NR_KINDS] = {
	"nothing", "timer_list", "hrtimer", "the CPUs' bases", "a private base", "a sink",
	"twheel_add_on()",
};

enum load { FAR, NEAR, IDLE };

static const char * const load_names[] = { "far", "near", "idle" };

/**
 * struct counts - what happened on the CPU
 * @interrupts:	interrupts by the timer and by other CPUs; 0 if the kernel does not count them
 * @softirqs:	softirqs of timers and hrtimers
 * @here:	timers whose callback, or sink, was called on the CPU
 * @early:	timers that were called before their time
 */
struct counts {
	unsigned int	interrupts;
	unsigned int	softirqs;
	unsigned int	here;
	unsigned int	early;
};

/**
 * struct subject - a timer of each kind
 * @list:	the timer of timer_list
 * @hrtimer:	the hrtimer
 * @timer:	the timer of twheel
 * @due:	when it is due
 */
struct subject {
	struct timer_list	list;
	struct hrtimer		hrtimer;
	struct twheel_timer	timer;
	ktime_t			due;
};

static struct subject *subjects;
static enum kind kind;
static enum load load;
static unsigned int alone;	/* the CPU; nr_cpu_ids if there is none */
static atomic_t expired, here, early;
static struct completion armed;

static void subject_expired(struct subject *s)
{
	atomic_add(raw_smp_processor_id() == alone, &here);
	atomic_add(ktime_get() < s->due, &early);
	atomic_inc(&expired);
}

static void list_expired(struct timer_list *list)
{
	subject_expired(container_of(list, struct subject, list));
}

static enum hrtimer_restart hrtimer_expired(struct hrtimer *hrtimer)
{
	subject_expired(container_of(hrtimer, struct subject, hrtimer));
	return HRTIMER_NORESTART;
}

static void timer_expired(struct twheel_timer *timer)
{
	subject_expired(container_of(timer, struct subject, timer));
}

static void sink_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr)
{
	while (nr--)
		timer_expired(timers[nr]);
}

static bool sink_wake(struct twheel_base *base) { return true; }

static const struct twheel_sink sink = { .expired = sink_expired, .wake = sink_wake };

static void subject_init(struct subject *s)
{
	memset(s, 0, sizeof(*s));
	timer_setup(&s->list, list_expired, 0);
	hrtimer_setup(&s->hrtimer, hrtimer_expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	place_init(&places[kind == SINK ? SINK_MONO : kind == PRIVATE_BASE ? ON_MONO : ON_CPU],
		   &s->timer, timer_expired);
}

static void subject_arm(struct subject *s, u64 delay)
{
	s->due = ktime_add_ns(ktime_get(), delay);
	switch (kind) {
	case TIMER_LIST:
		s->due = 0;		/* it goes by jiffies, which are another clock */
		mod_timer(&s->list, jiffies + nsecs_to_jiffies(delay));
		break;
	case HRTIMER:
		hrtimer_start(&s->hrtimer, s->due, HRTIMER_MODE_ABS_SOFT);
		break;
	case SINK:
		place_add(&places[SINK_MONO], &s->timer, delay);
		break;
	case ON_IT:
		twheel_add_on(&s->timer, delay, alone);
		break;
	default:
		twheel_add(&s->timer, delay);
	}
}

static void subject_end(struct subject *s)
{
	timer_delete_sync(&s->list);
	hrtimer_cancel(&s->hrtimer);
	place_cancel(&places[kind == SINK ? SINK_MONO : ON_CPU], &s->timer);
}

/* The latest first, so that each timer is the first to expire when it is armed. */
static void arm_far(void)
{
	unsigned int i;

	for (i = TIMERS; i--; )
		subject_arm(&subjects[i], 20 * NSEC_PER_MSEC + i * STEP_NS);
}

static void arm_near(void)
{
	ktime_t end = ktime_add_ms(ktime_get(), WAIT_MS);
	unsigned int i;

	for (i = 0; i < NEAR_TIMERS; i++) {
		subject_arm(&subjects[i], NEAR_NS);
		/* If a softirq took long, ksoftirqd does the rest. */
		while (atomic_read(&expired) <= i && ktime_before(ktime_get(), end))
			cond_resched();
	}
}

static int arm_all(void *unused)
{
	if (kind != NOTHING && load != NEAR)
		arm_far();
	else if (kind != NOTHING)
		arm_near();
	complete(&armed);
	return 0;
}

static unsigned int interrupts(void)
{
#if defined(CONFIG_X86) && HAVE_IRQ_COUNTS
	const unsigned int *counts = per_cpu_ptr(&irq_stat, alone)->counts;

	return counts[IRQ_COUNT_APIC_TIMER] + counts[IRQ_COUNT_RESCHEDULE] +
	       counts[IRQ_COUNT_CALL_FUNCTION];
#elif defined(CONFIG_X86)
	const irq_cpustat_t *stat = per_cpu_ptr(&irq_stat, alone);

	return stat->apic_timer_irqs + stat->irq_resched_count + stat->irq_call_count;
#else
	return 0;
#endif
}

/* Softirqs of hrtimers, and with @both of timer_list, whose softirq is also the tick's. */
static unsigned int softirqs(bool both)
{
	return kstat_softirqs_cpu(HRTIMER_SOFTIRQ, alone) +
	       (both ? kstat_softirqs_cpu(TIMER_SOFTIRQ, alone) : 0);
}

static void subjects_init(void)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++)
		subject_init(&subjects[i]);
	atomic_set(&expired, 0);
	atomic_set(&here, 0);
	atomic_set(&early, 0);
}

/* Count while a thread on that CPU arms the timers; or, if they are far ahead, after that. */
static bool count_on(struct task_struct *task, struct counts *counts)
{
	if (load == NEAR)
		counts->softirqs = softirqs(false);
	kthread_bind(task, alone);
	wake_up_process(task);
	wait_for_completion(&armed);
	if (load == NEAR) {
		counts->softirqs = softirqs(false) - counts->softirqs;
		return atomic_read(&expired) == NEAR_TIMERS;
	}
	msleep(20);		/* until the thread has ended */
	counts->interrupts = interrupts();
	counts->softirqs = softirqs(true);
	if (kind == NOTHING)
		msleep(div_u64(TIMERS * STEP_NS, NSEC_PER_MSEC));
	else
		wait_for(atomic_read(&expired) == TIMERS);
	counts->interrupts = interrupts() - counts->interrupts;
	counts->softirqs = softirqs(true) - counts->softirqs;
	return kind == NOTHING || atomic_read(&expired) == TIMERS;
}

/* Arm the timers on that CPU, and count until they have expired. */
static bool count(struct counts *counts)
{
	struct task_struct *task;
	unsigned int i;
	bool all;

	*counts = (struct counts) { };
	subjects_init();
	init_completion(&armed);
	task = kthread_create(arm_all, NULL, "twheel_alone");
	if (IS_ERR(task))
		return false;
	all = count_on(task, counts);
	counts->here = atomic_read(&here);
	counts->early = atomic_read(&early);
	for (i = 0; i < TIMERS; i++)
		subject_end(&subjects[i]);
	pr_info("TSV\talone\t%s\t%s\t%d\t%u\t%u\t%u\n", kind_names[kind],
		load_names[load], atomic_read(&expired), counts->here,
		counts->interrupts, counts->softirqs);
	return all;
}

/* A point that is skipped if there is no such CPU. */
static void __printf(2, 3) check_there(bool good, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	if (alone < nr_cpu_ids)
		check(good, "%pV", &vaf);
	else
		skip(load == IDLE ? "one CPU" : "no CPU to be left alone", "%pV", &vaf);
	va_end(args);
}

/*
 * Bases with a sink stay on an idle CPU, so that a user's use of a CPU can be counted. And on
 * PREEMPT_RT no CPU is idle while its softirq thread runs.
 */
static enum kind last_left_alone(void)
{
	if (load != IDLE)
		return SINK;
	return IS_ENABLED(CONFIG_PREEMPT_RT) ? NOTHING : PRIVATE_BASE;
}

static bool is_left_alone(const struct counts *counts)
{
	if (load == IDLE)
		return counts->here <= TIMERS / 4;
	return !counts->here && counts->interrupts <= NOISE && counts->softirqs <= NOISE;
}

static void test_kind(void)
{
	const char *name = kind_names[kind], *how = load_names[load];
	struct counts counts = { };
	bool settled, good;
	unsigned int tries = 0;

	/*
	 * On a busy host a count takes longer, and other work of the machine comes to that CPU in
	 * the meantime. Timers that do not leave the CPU alone do so each time.
	 */
	do {
		good = alone < nr_cpu_ids && count(&counts) && !counts.early;
		settled = !good || kind < CPUS_BASE || kind > last_left_alone() ||
			  is_left_alone(&counts);
	} while (!settled && ++tries < 5);
	check_there(good, "%s, %s: all expire, none early", name, how);
	if (kind >= CPUS_BASE && kind <= last_left_alone())
		check_there(is_left_alone(&counts), "%s, %s: the CPU is left alone", name, how);
	if (kind == ON_IT)
		check_there(counts.here == (load != NEAR ? TIMERS : NEAR_TIMERS),
			    "%s, %s: it is not", name, how);
}

static void test_kinds(enum load how, unsigned int cpu)
{
	load = how;
	alone = cpu;
	for (kind = how == NEAR ? TIMER_LIST : NOTHING; kind < NR_KINDS; kind++)
		test_kind();
}

static int keep_one_busy(void *unused)
{
	while (!kthread_should_stop())
		cond_resched();
	return 0;
}

/* While the first CPU is busy. */
static void test_idle(unsigned int cpu)
{
	struct task_struct *task = kthread_create(keep_one_busy, NULL, "twheel_busy");

	if (IS_ERR(task)) {
		check(false, "a thread");
		return;
	}
	kthread_bind(task, cpumask_first(cpu_online_mask));
	wake_up_process(task);
	test_kinds(IDLE, cpu);
	kthread_stop(task);
}

/*
 * The first online CPU that is to be left alone, or with @left_alone false one that is not; with
 * @second the second such CPU. nr_cpu_ids if there is none.
 */
static unsigned int find_cpu(bool left_alone, unsigned int second)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (housekeeping_test_cpu(cpu, HK_TYPE_TIMER) != left_alone && !second--)
			return cpu;
	return nr_cpu_ids;
}

/* ---- destroying a base whose home is being asked ---------------------------------------- */

/**
 * struct asking - a base that is destroyed on the CPU, while its home does not answer
 * @base:	the base
 * @timer:	a timer of it
 * @shut:	interrupts are off on the home
 * @asked:	the home was interrupted to start the base's hrtimer
 * @open:	the home is about to enable interrupts
 * @early:	the base was destroyed before that
 * @done:	it was destroyed
 */
static struct asking {
	struct twheel_base	*base;
	struct twheel_timer	timer;
	bool			shut;
	bool			asked;
	bool			open;
	bool			early;
	struct completion	done;
} asking;

static void never_expired(struct twheel_timer *timer) { }

static int keep_shut(void *unused)
{
	unsigned long flags;

	local_irq_save(flags);
	tell(&asking.shut);
	spin_for(told(&asking.asked));
	keep_busy(2);
	tell(&asking.open);
	local_irq_restore(flags);
	return 0;
}

static int ask_and_destroy(void *unused)
{
	spin_for(told(&asking.shut));
	twheel_add(&asking.timer, HOUR);
	twheel_cancel(&asking.timer);
	tell(&asking.asked);
	twheel_destroy(asking.base);
	asking.early = !told(&asking.open);
	complete(&asking.done);
	return 0;
}

/* The id of the base that a timer goes to which is armed on the CPU: that of the home. */
static int find_home(void *id)
{
	twheel_init(&asking.timer, never_expired);
	twheel_add(&asking.timer, HOUR);
	*(u32 *)id = asking.timer.queue.data;
	twheel_cancel(&asking.timer);
	return 0;
}

static bool run_on(unsigned int cpu, int (*fn)(void *))
{
	struct task_struct *task = kthread_create(fn, NULL, "twheel_asking");

	if (IS_ERR(task))
		return false;
	kthread_bind(task, cpu);
	wake_up_process(task);
	return true;
}

/* Returns whether the base stayed until the home had answered. */
static bool destroy_waits(void)
{
	u32 home = alone;

	smp_call_on_cpu(alone, find_home, &home, false);
	asking = (struct asking) { .base = twheel_create(&places[ON_MONO].config) };
	if (home == alone || IS_ERR(asking.base))
		return false;
	init_completion(&asking.done);
	twheel_init_on(asking.base, &asking.timer, never_expired);
	if (!run_on(home, keep_shut) || !run_on(alone, ask_and_destroy))
		return false;
	wait_for_completion(&asking.done);
	wait_for(told(&asking.open));
	msleep(20);		/* until the threads have ended */
	return !asking.early;
}

static void test_asking(unsigned int cpu)
{
	load = FAR;
	alone = cpu;
	check_there(cpu < nr_cpu_ids && destroy_waits(),
		    "a base is not destroyed while a CPU is asked to start its hrtimer");
}

/* ---- homes ------------------------------------------------------------------------------ */

static bool is_isolated(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_TIMER) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
}

/* May a timer that is armed on @cpu go to @home? Not to another node, if @node. */
static bool may_be_home(unsigned int cpu, unsigned int home, bool node)
{
	if (!is_isolated(cpu))
		return home == cpu;
	return !is_isolated(home) && (!node || cpu_to_node(home) == cpu_to_node(cpu));
}

/* Is there a CPU on the node of @cpu that is not isolated? */
static bool has_neighbour(unsigned int cpu)
{
	unsigned int other;

	for_each_online_cpu(other)
		if (!is_isolated(other) && cpu_to_node(other) == cpu_to_node(cpu))
			return true;
	return false;
}

/* With isolcpus= alone, if a CPU of the machine is isolated by that alone; else by any means. */
static void test_homes(void)
{
	unsigned int cpu, isolated = 0, domain = 0, wrong = 0;

	for_each_online_cpu(cpu) {
		u32 home = cpu;

		smp_call_on_cpu(cpu, find_home, &home, false);
		wrong += !may_be_home(cpu, home, has_neighbour(cpu));
		isolated += is_isolated(cpu);
		domain += is_isolated(cpu) && housekeeping_test_cpu(cpu, HK_TYPE_TIMER);
		pr_info("# CPU %u of node %d%s: home %u\n", cpu, cpu_to_node(cpu),
			is_isolated(cpu) ? ", isolated" : "", home);
	}
	if (!isolated)
		skip("no isolated CPU", "a timer goes to a CPU that is not isolated");
	else
		check(!wrong,
		      "a timer goes to a CPU that is not isolated, on its node: %u isolated, %u by isolcpus= alone, %u nodes, %u wrong",
		      isolated, domain, num_online_nodes(), wrong);
}

/* ---- cpusets ---------------------------------------------------------------------------- */

static int cpuset = -1;
module_param(cpuset, int, 0444);
MODULE_PARM_DESC(cpuset, "Only test this CPU, which a cpuset isolates");

static bool isolates;
module_param(isolates, bool, 0444);
MODULE_PARM_DESC(isolates, "The kernel tells modules of it");

static u32 home_of(unsigned int cpu)
{
	u32 home = nr_cpu_ids;

	smp_call_on_cpu(cpu, find_home, &home, false);
	return home;
}

/* All timers of this kind expire in time, and those that must not do not expire on the CPU. */
static void test_kind_of_cpuset(enum kind which)
{
	struct counts counts;
	bool good;

	kind = which;
	good = count(&counts) && !counts.early;
	if (which == ON_IT)
		good = good && counts.here == TIMERS;
	else if (isolates)
		good = good && !counts.here;
	check(good, "%s, a CPU that a cpuset isolates: %d expire, %u of them there",
	      kind_names[which], atomic_read(&expired), counts.here);
}

/*
 * Whether a CPU is isolated is looked at when an hrtimer is started. So the home is known after a
 * first timer, which itself is still in the base to which the CPU belonged before.
 */
static void test_cpuset(void)
{
	bool good;
	u32 home;

	home_of(cpuset);
	home = home_of(cpuset);
	good = home == cpuset;
	if (isolates)
		good = !good && may_be_home(home, home, false) &&
		       cpu_to_node(home) == cpu_to_node(cpuset);
	check(good, "what is armed on CPU %d, which a cpuset %s, goes to CPU %u", cpuset,
	      isolates ? "isolates" : "does not isolate for modules", home);
	load = FAR;
	alone = cpuset;
	test_kind_of_cpuset(CPUS_BASE);
	test_kind_of_cpuset(PRIVATE_BASE);
	test_kind_of_cpuset(SINK);
	test_kind_of_cpuset(ON_IT);
}

static void test_machine(void)
{
	test_kinds(FAR, find_cpu(true, 0));
	test_kinds(NEAR, find_cpu(true, 0));
	test_asking(find_cpu(true, 0));
	test_homes();
	test_idle(find_cpu(false, 1));
}

static int __init twheel_alone_init(void)
{
	if (cpuset >= (int)nr_cpu_ids)
		return -EINVAL;
	pr_info("TAP version 14\n");
	subjects = zalloc(TIMERS, sizeof(*subjects));
	if (subjects && places_begin(&sink)) {
		if (cpuset >= 0)
			test_cpuset();
		else
			test_machine();
	}
	places_end();
	kvfree(subjects);
	return ktap_end();
}

static void __exit twheel_alone_exit(void)
{
}

module_init(twheel_alone_init);
module_exit(twheel_alone_exit);

MODULE_DESCRIPTION("Test of timers that are armed on a CPU that is to be left alone");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
