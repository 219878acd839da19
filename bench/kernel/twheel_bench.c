// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel, timer_list and hrtimer do the same work, one after the other in one run.
 *
 * Loading the module runs one workload, with n timers whose delays are uniform in 1 ... range ms:
 *
 *	run=hot		arm and cancel one timer while nothing else is pending
 *	run=pending	arm n timers, re-arm them in random order, put them off, that is, re-arm
 *			each for later, and cancel them in another order. Interrupts are off from
 *			the first to the last, so nothing expires meanwhile, and nothing else is
 *			measured
 *	run=busy	n timers expire on a busy CPU, which runs a loop that only reads the clock.
 *			This measures how much time the timers take from the loop; the longest
 *			time that the loop stood still, in the round where that was least; and the
 *			interrupts. If the kernel has tracepoints, another round measures the
 *			longest pass of a softirq
 *	run=idle	the same on an idle CPU: measures how long it was not idle. In user-mode
 *			Linux, which is a process: how much CPU time the process used. With ahead=
 *			delays are so many ms longer, and the cost of arming is printed, too
 *	run=late	n timers expire. Only how late each timer is counts, in a histogram:
 *			"late-N" is the number of timers that were at most N us late, and more than
 *			N / 2; "early" of those that expired before their deadline
 *	run=hour	n timers in one bucket of an hour, which is 3600 ticks, 86400 ticks ahead,
 *			on a base of their own: how many timers the base's busiest run moved, and
 *			how late timers were. name= is what to call the wheel in the figures
 *
 * busy and idle arm all timers before the first is due, which is lead() later: half a second, and
 * 2.5 us for each timer. So "1 ... range ms" is a span of that length, which begins that much
 * later: 0.5 s ahead for 1000 timers, and 3 s ahead for a million. ahead= adds to it. From the end
 * of arming to the last expiry all that is taken counts, cascading ahead included. What ticks and
 * the rest of the kernel take without any timers is measured first, and subtracted. A busy CPU is
 * interrupted HZ times a second anyway, and timer_list needs no other interrupts; an idle CPU is
 * woken for each jiffy or tick that has work. If time is real, a round of either lasts as long as
 * its range; virtual time skips idle time. If timers are far apart, a busy loop of a minute varies
 * by more than the timers take: then idle is the measure.
 *
 * The unit is that of the clock: ns of CPU time in user-mode Linux, instructions under QEMU's
 * -icount shift=0. The values of all rounds are printed. If a value is smaller than what differs by
 * chance, it may be negative.
 *
 * twheel-eighth are timers that may be late by an eighth of their delay, as a timer_list is. The
 * delay is the one that the timer's owner asked for, lead() included. A separate idle round
 * measures how late the subjects of the part MEAN_LATE are.
 *
 * What is compared: twheel and hrtimer are armed with deadlines in ns, timer_list with jiffies. The
 * subjects "rel" are armed with delays, as most code does. So twheel and hrtimer must read the
 * clock, and timer_list adds the delay to jiffies. hrtimer is in soft mode: it calls back in
 * softirq context, as twheel and timer_list do. hrtimer-hard is the usual mode, which calls back in
 * the interrupt; hard=0 leaves it out, and with it the round for the longest pass. hrtimer-ms has
 * deadlines of whole ms, as if its user had rounded them to ticks. bare-tick is a soft hrtimer that
 * is due in each ms of the range, and does nothing: its cost, divided by n, is what exactness to
 * the ms costs before the first timer is touched. The numbers that a subject is armed with are
 * computed before, so that no conversion is measured. The timers of all subjects lie in the same
 * memory: 40 bytes a timer, 64 for hrtimer. There must be only one CPU: all counters rely on that.
 *
 * The interrupts of user-mode Linux are signals of the host, which take ten times as long as an
 * interrupt. That is to hrtimer's disadvantage, and hrtimer-ms is the better measure. timer_list
 * needs no interrupts but those of the tick; nor does twheel, where a jiffy is a ms.
 *
 * The figures are lines in the kernel log, with tabs between the columns: TSV, workload, n,
 * subject, metric, unit, and the values of all rounds.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kernel_stat.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/nmi.h>
#include <linux/prandom.h>
#include <linux/tick.h>
#include <linux/timer.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

#include "twheel.h"
#include "twheel_compat.h"

#define HOT_OPS		1000	/* how often run=hot arms and cancels with interrupts off */
#define HOT_DELAY	(20 * NSEC_PER_SEC)
#define STOP_NS		600	/* if a turn of the loop takes longer, it was interrupted */
#define MAX_ROUNDS	51
#define LINE_MOST	900	/* bytes of values in a line of the log */

static char *run = "hot";
module_param(run, charp, 0444);
static unsigned int n = 1;
module_param(n, uint, 0444);
static unsigned int range = 60000;
module_param(range, uint, 0444);
static unsigned int ahead;
module_param(ahead, uint, 0444);
static unsigned int rounds = 5;
module_param(rounds, uint, 0444);
static bool hard = true;
module_param(hard, bool, 0444);
static char *unit = "ns";
module_param(unit, charp, 0444);
static char *name = "twheel";
module_param(name, charp, 0444);

static u32 *order;		/* a permutation of the timers */
static u64 *when;		/* what each timer is armed with, in the subject's unit */
static u64 *due;		/* the deadline of each timer, always in ns */
static u64 armed_at;		/* the time from which delays count */
static bool timing;		/* this round measures how late timers are */
static u64 lateness;		/* the sum over all timers */
static void *timers;		/* those of the subject that is being measured */
static u32 fired;
static u32 cancelled;
static DECLARE_COMPLETION(all_fired);

/* What the rounds measured. */
static s64 add[MAX_ROUNDS], rearm[MAX_ROUNDS], putoff[MAX_ROUNDS], cancel[MAX_ROUNDS],
	   taken[MAX_ROUNDS], caused[MAX_ROUNDS];

/* ---- the clock ------------------------------------------------------------------ */

/*
 * User-mode Linux is a process. This returns the CPU time that the process has used, so that other
 * processes of the host do not count. Only the host knows it: ask by the system call
 * clock_gettime(CLOCK_THREAD_CPUTIME_ID).
 */
#ifdef CONFIG_UML
static u64 cpu_ns(void)
{
	struct { s64 sec, nsec; } time;
	long ret = 228;

	asm volatile("syscall" : "+a" (ret) : "D" (3L), "S" (&time) : "rcx", "r11", "memory");
	return time.sec * NSEC_PER_SEC + time.nsec;
}
#else
static u64 cpu_ns(void)
{
	return ktime_get_ns();
}
#endif

static u64 clock_cost = U64_MAX;	/* what it takes to read the clock */

static void measure_clock(void)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		u64 begin = cpu_ns();

		clock_cost = min(clock_cost, cpu_ns() - begin);
	}
}

static u64 cpu_since(u64 begin)
{
	return cpu_ns() - begin - clock_cost;
}

/* ---- the subjects ------------------------------------------------------------ */

static struct twheel_timer *twheel_of(u32 i)
{
	return &((struct twheel_timer *)timers)[i];
}

static struct timer_list *list_of(u32 i)
{
	return &((struct timer_list *)timers)[i];
}

static struct hrtimer *hrtimer_of(u32 i)
{
	return &((struct hrtimer *)timers)[i];
}

static void count(void)
{
	WRITE_ONCE(fired, fired + 1);
	if (fired == n)
		complete(&all_fired);
}

static void count_late(u32 i)
{
	lateness += ktime_get_ns() - due[i];
	count();
}

static void twheel_fired(struct twheel_timer *timer)
{
	count();
}

static void twheel_timed(struct twheel_timer *timer)
{
	count_late(timer - twheel_of(0));
}

static void list_fired(struct timer_list *timer)
{
	count();
}

static void list_timed(struct timer_list *timer)
{
	count_late(timer - list_of(0));
}

static enum hrtimer_restart hrtimer_fired(struct hrtimer *timer)
{
	count();
	return HRTIMER_NORESTART;
}

/* ---- how late timers are: run=late --------------------------------------------------- */

#define NR_LATE		25	/* up to 2^24 us: timer_list's 12.5 % of two minutes */

static u32 late_by[NR_LATE];	/* [i] counts timers that were at most 2^i us late */
static u32 early;

static void note_lateness(u32 i)
{
	u64 now = ktime_get_ns();
	u64 late_us = DIV_ROUND_UP_ULL(now - min(now, due[i]), NSEC_PER_USEC);

	if (now < due[i])
		early++;
	else
		late_by[min_t(u32, late_us ? order_base_2(late_us) : 0, NR_LATE - 1)]++;
	count();
}

static void twheel_late(struct twheel_timer *timer)
{
	note_lateness(timer - twheel_of(0));
}

static void list_late(struct timer_list *timer)
{
	note_lateness(timer - list_of(0));
}

static enum hrtimer_restart hrtimer_late(struct hrtimer *timer)
{
	note_lateness(timer - hrtimer_of(0));
	return HRTIMER_NORESTART;
}

static void setup_twheel_late(u32 i)
{
	twheel_init(twheel_of(i), twheel_late);
}

static void setup_list_late(u32 i)
{
	timer_setup(list_of(i), list_late, 0);
}

static void setup_hrtimer_late(u32 i)
{
	hrtimer_setup(hrtimer_of(i), hrtimer_late, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

static void setup_twheel(u32 i)
{
	twheel_init(twheel_of(i), timing ? twheel_timed : twheel_fired);
}

static void setup_list(u32 i)
{
	timer_setup(list_of(i), timing ? list_timed : list_fired, 0);
}

static void setup_hrtimer(u32 i)
{
	hrtimer_setup(hrtimer_of(i), hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

static void setup_hrtimer_rel(u32 i)
{
	hrtimer_setup(hrtimer_of(i), hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}

static void setup_hrtimer_hard(u32 i)
{
	hrtimer_setup(hrtimer_of(i), hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
}

/*
 * With what the subjects are armed, for a timer that is due @delay ns after now; now is @start in
 * ns, and the jiffy @jiffy.
 */
static u64 when_deadline(u64 start, unsigned long jiffy, u64 delay)
{
	return start + delay;
}

/* hrtimers that are due at the same time share an interrupt: hence whole ms. */
static u64 when_whole_ms(u64 start, unsigned long jiffy, u64 delay)
{
	return DIV64_U64_ROUND_UP(start + delay, NSEC_PER_MSEC) * NSEC_PER_MSEC;
}

static u64 when_jiffies(u64 start, unsigned long jiffy, u64 delay)
{
	return jiffy + DIV64_U64_ROUND_UP(delay, TICK_NSEC);
}

static u64 when_delay(u64 start, unsigned long jiffy, u64 delay)
{
	return delay;
}

static u64 when_jiffies_later(u64 start, unsigned long jiffy, u64 delay)
{
	return DIV64_U64_ROUND_UP(delay, TICK_NSEC);
}

/* How late timer @i of twheel-eighth may be: an eighth of its delay, as a timer_list may be. */
static __always_inline u64 tolerance(u32 i)
{
	return (due[i] - armed_at) / 8;
}

static __always_inline void list_add_timer(struct timer_list *timer, unsigned long expires)
{
	timer->expires = expires;
	add_timer(timer);
}

/*
 * do_arm arms timer i, which is idle, with the number w; do_rearm re-arms timer i with w; do_cancel
 * cancels timer i. Each subject has loops of its own, so that no indirect call is measured.
 */
#define DEFINE_SUBJECT(_name, do_arm, do_rearm, do_cancel)			\
static __always_inline void arm_##_name(u32 i, u64 w)				\
{										\
	do_arm;									\
}										\
										\
static __always_inline void rearm_one_##_name(u32 i, u64 w)			\
{										\
	do_rearm;								\
}										\
										\
static __always_inline int cancel_##_name(u32 i)				\
{										\
	return do_cancel;							\
}										\
										\
static u64 hot_##_name(u32 nr)							\
{										\
	u64 begin = cpu_ns();							\
	u32 i;									\
										\
	for (i = 0; i < nr; i++) {						\
		arm_##_name(0, when[0]);					\
		cancel_##_name(0);						\
	}									\
	return cpu_since(begin);						\
}										\
										\
static u64 add_##_name(u32 nr)							\
{										\
	u64 begin = cpu_ns();							\
	u32 i;									\
										\
	for (i = 0; i < nr; i++)						\
		arm_##_name(i, when[i]);					\
	return cpu_since(begin);						\
}										\
										\
static u64 rearm_##_name(u32 nr)						\
{										\
	u64 begin = cpu_ns();							\
	u32 i;									\
										\
	for (i = 0; i < nr; i++)						\
		rearm_one_##_name(order[i], when[i]);				\
	return cpu_since(begin);						\
}										\
										\
static u64 cancel_all_##_name(u32 nr)						\
{										\
	u64 begin = cpu_ns();							\
	u32 i, done = 0;							\
										\
	for (i = 0; i < nr; i++)						\
		done += cancel_##_name(order[i]);				\
	cancelled = done;							\
	return cpu_since(begin);						\
}

DEFINE_SUBJECT(twheel, twheel_add_abs(twheel_of(i), w), twheel_mod_abs(twheel_of(i), w),
	       twheel_cancel(twheel_of(i)))
DEFINE_SUBJECT(twheel_rel, twheel_add(twheel_of(i), w), twheel_mod(twheel_of(i), w),
	       twheel_cancel(twheel_of(i)))
DEFINE_SUBJECT(twheel_eighth, twheel_add_abs_range(twheel_of(i), w, tolerance(i)),
	       twheel_mod_abs_range(twheel_of(i), w, tolerance(i)), twheel_cancel(twheel_of(i)))
DEFINE_SUBJECT(list, list_add_timer(list_of(i), w), mod_timer(list_of(i), w),
	       timer_delete(list_of(i)))
DEFINE_SUBJECT(list_rel, list_add_timer(list_of(i), jiffies + w),
	       mod_timer(list_of(i), jiffies + w), timer_delete(list_of(i)))
DEFINE_SUBJECT(hrtimer, hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_ABS_SOFT),
	       hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_ABS_SOFT),
	       hrtimer_try_to_cancel(hrtimer_of(i)))
DEFINE_SUBJECT(hrtimer_rel, hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_REL_SOFT),
	       hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_REL_SOFT),
	       hrtimer_try_to_cancel(hrtimer_of(i)))
DEFINE_SUBJECT(hrtimer_hard, hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_ABS_HARD),
	       hrtimer_start(hrtimer_of(i), w, HRTIMER_MODE_ABS_HARD),
	       hrtimer_try_to_cancel(hrtimer_of(i)))

/* The parts of the benchmark that a subject takes part in. */
#define HOT		BIT(0)
#define PENDING		BIT(1)
#define EXPIRE		BIT(2)
#define MEAN_LATE	BIT(3)	/* in run=idle */
#define LATE		BIT(4)	/* run=late */

struct subject {
	const char	*name;
	unsigned int	part;
	void		(*setup)(u32 i);
	u64		(*when)(u64 start, unsigned long jiffy, u64 delay);
	u64		(*hot)(u32 nr);
	u64		(*add)(u32 nr);
	u64		(*rearm)(u32 nr);
	u64		(*cancel)(u32 nr);
};

#define SUBJECT(_label, _part, _name, _setup, _when) {				\
	_label, _part, _setup, _when, hot_##_name, add_##_name, rearm_##_name,	\
	cancel_all_##_name							\
}

static const struct subject subjects[] = {
	SUBJECT("twheel", HOT | PENDING | EXPIRE | MEAN_LATE, twheel, setup_twheel, when_deadline),
	SUBJECT("twheel-eighth", PENDING | EXPIRE | MEAN_LATE, twheel_eighth, setup_twheel,
		when_deadline),
	SUBJECT("twheel-rel", HOT | PENDING, twheel_rel, setup_twheel, when_delay),
	SUBJECT("timer_list", HOT | PENDING | EXPIRE | MEAN_LATE, list, setup_list, when_jiffies),
	SUBJECT("timer_list-rel", HOT | PENDING, list_rel, setup_list, when_jiffies_later),
	SUBJECT("hrtimer", HOT | PENDING | EXPIRE, hrtimer, setup_hrtimer, when_deadline),
	SUBJECT("hrtimer-ms", EXPIRE, hrtimer, setup_hrtimer, when_whole_ms),
	SUBJECT("hrtimer-rel", HOT | PENDING, hrtimer_rel, setup_hrtimer_rel, when_delay),
	SUBJECT("hrtimer-hard", HOT | EXPIRE, hrtimer_hard, setup_hrtimer_hard, when_deadline),
	SUBJECT("twheel", LATE, twheel, setup_twheel_late, when_deadline),
	SUBJECT("timer_list", LATE, list, setup_list_late, when_jiffies),
	SUBJECT("hrtimer", LATE, hrtimer, setup_hrtimer_late, when_deadline),
};

/* ---- measuring ------------------------------------------------------------------ */

static const char *workload(void)
{
	static char text[32];

	if (!strcmp(run, "hot") || !strcmp(run, "hour"))
		strscpy(text, run, sizeof(text));
	else if (ahead)
		snprintf(text, sizeof(text), "%s-%u-%u", run, ahead, ahead + range);
	else
		snprintf(text, sizeof(text), "%s-%u", run, range);
	return text;
}

/*
 * Print the figures of a metric: @nr_values values, each divided by @nr. @values are in thousandths
 * if @milli is 1000, and whole if it is 1.
 */
static void report_each(const char *subject, const char *metric, const char *of,
			const s64 *values, unsigned int nr_values, u32 milli, u32 nr)
{
	static char text[LINE_MOST];
	unsigned int i, len = 0;

	for (i = 0; i < nr_values; i++) {
		s64 value = div_s64(values[i] * (1000 / milli), nr);
		u64 size = abs(value);

		len += scnprintf(text + len, sizeof(text) - len, "%s%s%llu.%03llu",
				 i ? " " : "", value < 0 ? "-" : "", size / 1000, size % 1000);
	}
	pr_info("TSV\t%s\t%u\t%s\t%s\t%s\t%s\n", workload(), n, subject, metric, of, text);
}

static void report(const char *subject, const char *metric, const char *of, s64 value_milli)
{
	report_each(subject, metric, of, &value_milli, 1, 1000, 1);
}

/* Print the values of all rounds, each divided by @nr. */
static void report_rounds(const char *subject, const char *metric, const char *of,
			  const s64 *values, u32 nr)
{
	report_each(subject, metric, of, values, rounds, 1, nr);
}

/* Compute what all timers are armed with: delays of @lead plus a random time up to range ms. */
static void set_when(const struct subject *s, u64 lead, u32 seed)
{
	u64 span = range * (u64)NSEC_PER_MSEC, start = ktime_get_ns();
	unsigned long jiffy = jiffies;
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, seed);
	armed_at = start;
	for (i = 0; i < n; i++) {
		u64 delay = lead + 1 + mul_u64_u32_shr(span, prandom_u32_state(&rnd), 32);

		due[i] = start + delay;
		when[i] = s->when(start, jiffy, delay);
	}
}

static void shuffle(u32 seed)
{
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, seed);
	for (i = 0; i < n; i++) {
		u32 j = prandom_u32_state(&rnd) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

static void set_up(const struct subject *s)
{
	u32 i;

	for (i = 0; i < n; i++) {
		s->setup(i);
		if (!(i % 1024))
			cond_resched();
	}
}

static int run_hot(const struct subject *s)
{
	unsigned long flags;
	unsigned int r;

	if (!(s->part & HOT))
		return 0;
	set_up(s);
	for (r = 0; r < rounds; r++) {
		when[0] = s->when(ktime_get_ns(), jiffies, HOT_DELAY);
		local_irq_save(flags);
		taken[r] = s->hot(HOT_OPS);
		local_irq_restore(flags);
		cond_resched();
	}
	report_rounds(s->name, "add+cancel", unit, taken, HOT_OPS);
	return 0;
}

static int run_pending(const struct subject *s)
{
	unsigned long flags;
	unsigned int r;

	if (!(s->part & PENDING))
		return 0;
	set_up(s);
	for (r = 0; r < rounds; r++) {
		local_irq_save(flags);
		set_when(s, 0, 2 * r);
		add[r] = s->add(n);
		shuffle(2 * r);
		set_when(s, 0, 2 * r + 1);
		rearm[r] = s->rearm(n);
		/* Put all timers off to a later time, as idle timeouts are again and again. */
		set_when(s, (u64)range * NSEC_PER_MSEC, 2 * r + 1);
		putoff[r] = s->rearm(n);
		shuffle(2 * r + 1);
		cancel[r] = s->cancel(n);
		touch_softlockup_watchdog();
		local_irq_restore(flags);
		cond_resched();
		if (cancelled != n) {
			pr_err("not ok: %s: %u of %u timers were armed\n", s->name, cancelled, n);
			return -EINVAL;
		}
	}
	report_rounds(s->name, "add", unit, add, n);
	report_rounds(s->name, "rearm", unit, rearm, n);
	report_rounds(s->name, "put-off", unit, putoff, n);
	report_rounds(s->name, "cancel", unit, cancel, n);
	return 0;
}

/* ---- expiry ------------------------------------------------------------------------ */

/* What timers, or the kernel, take from the CPU in a span of time. */
struct toll {
	u64	begin;
	u64	begin_cpu;
	u64	time;		/* the length of the span */
	s64	taken;
	u64	longest;	/* the most that was taken at once */
	u64	interrupts;
};

static struct toll nothing;	/* what the kernel takes without any timers */

/* How many interrupts of hrtimers there were, those of the tick included. */
static u32 interrupts(void)
{
	struct hrtimer probe;

	hrtimer_setup(&probe, hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	return probe.base->cpu_base->nr_events;
}

static void toll_begin(struct toll *toll)
{
	memset(toll, 0, sizeof(*toll));
	toll->interrupts = interrupts();
	toll->begin_cpu = cpu_ns();
	toll->begin = ktime_get_ns();
}

/*
 * Spin until all timers have fired, or until @most ns after the begin of @toll. cond_resched() is
 * needed: once a softirq has left its rest to ksoftirqd, only that thread handles softirqs.
 */
static void spin(struct toll *toll, u64 most)
{
	u64 resumed = toll->begin, last = resumed, cpu = toll->begin_cpu, now;
	bool all;

	do {
		/* Read before the clock, so that the stop in which the last one fired counts. */
		all = READ_ONCE(fired) >= n;
		now = ktime_get_ns();
		if (now - last > STOP_NS) {
			u64 used = cpu_since(cpu);
			s64 stop = used - (last - resumed);

			toll->taken += stop;
			toll->longest = max_t(s64, toll->longest, stop);
			cpu += used + clock_cost;
			now = ktime_get_ns();
			resumed = now;
		}
		last = now;
		cond_resched();
	} while (!all && now - toll->begin < most);
	toll->time = now - toll->begin;
}

static u64 idle_ns(void)
{
	return get_cpu_idle_time_us(0, NULL) * NSEC_PER_USEC;
}

/*
 * Sleep until all timers have fired, or @most ns. User-mode Linux then sleeps in the host, which
 * takes no CPU time.
 */
static void doze(struct toll *toll, u64 most)
{
	u64 idle = idle_ns();

	wait_for_completion_killable_timeout(&all_fired, nsecs_to_jiffies(most));
	toll->time = ktime_get_ns() - toll->begin;
	if (IS_ENABLED(CONFIG_UML))
		toll->taken = cpu_since(toll->begin_cpu);
	else
		toll->taken = toll->time - (idle_ns() - idle);
}

static bool is_busy(void)
{
	return !strcmp(run, "busy");
}

static void toll_end(struct toll *toll, u64 most)
{
	if (is_busy())
		spin(toll, most);
	else
		doze(toll, most);
	toll->interrupts = interrupts() - toll->interrupts;
}

static s64 scaled(s64 value, u64 to, u64 from)
{
	u64 size = mul_u64_u64_div_u64(abs(value), to, from);

	return value < 0 ? -(s64)size : (s64)size;
}

/* Subtract from @value, measured in @time ns, what the kernel takes in that time anyway. */
static s64 beyond(s64 value, s64 of_nothing, u64 time)
{
	return value - scaled(of_nothing, time, nothing.time);
}

/* How much later than armed the first timer is due, in ns: all timers must be armed by then. */
static u64 lead(void)
{
	return ahead * (u64)NSEC_PER_MSEC + 500 * NSEC_PER_MSEC + n * 2500ULL;
}

/*
 * Arm all timers, and measure in @toll what they take until all have expired. *@arming becomes the
 * cost of arming. Afterwards no timer is armed. Returns -EAGAIN if the first timers were due before
 * the last one was armed: on a busy host it takes that long to arm a million hrtimers, which are in
 * a tree.
 */
static int expire(const struct subject *s, u32 seed, struct toll *toll, s64 *arming)
{
	u64 begin, most = lead() + (range + range / 4 + 1000) * (u64)NSEC_PER_MSEC;
	unsigned long flags;

	fired = 0;
	reinit_completion(&all_fired);
	local_irq_save(flags);
	begin = ktime_get_ns();
	set_when(s, lead(), seed);
	*arming = s->add(n);
	if (ktime_get_ns() - begin > lead()) {
		s->cancel(n);
		local_irq_restore(flags);
		return -EAGAIN;
	}
	toll_begin(toll);
	local_irq_restore(flags);
	toll_end(toll, most);
	if (fired == n)
		return 0;
	pr_err("not ok: %s: %u of %u timers have expired\n", s->name, fired, n);
	s->cancel(n);
	return -ETIME;
}

#ifdef CONFIG_TRACEPOINTS
static struct tracepoint *softirq_entry, *softirq_exit;
static u64 pass_begin, longest_pass;

static void on_entry(void *unused, unsigned int nr)
{
	pass_begin = ktime_get_ns();
}

static void on_exit(void *unused, unsigned int nr)
{
	if (nr == TIMER_SOFTIRQ || nr == HRTIMER_SOFTIRQ)
		longest_pass = max(longest_pass, ktime_get_ns() - pass_begin);
}

static void find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "softirq_entry"))
		softirq_entry = tp;
	if (!strcmp(tp->name, "softirq_exit"))
		softirq_exit = tp;
}

/* Measure the longest pass of a softirq, in a round of its own: the tracepoints take time, too. */
static int report_pass(const struct subject *s)
{
	struct toll toll;
	s64 arming;
	int err;

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	if (!softirq_entry || !softirq_exit)
		return 0;
	longest_pass = 0;
	pass_begin = U64_MAX;
	tracepoint_probe_register(softirq_entry, on_entry, NULL);
	tracepoint_probe_register(softirq_exit, on_exit, NULL);
	err = expire(s, 0, &toll, &arming);
	tracepoint_probe_unregister(softirq_exit, on_exit, NULL);
	tracepoint_probe_unregister(softirq_entry, on_entry, NULL);
	tracepoint_synchronize_unregister();
	if (!err)
		report(s->name, "longest-pass", unit, longest_pass * 1000);
	return err;
}
#else
static int report_pass(const struct subject *s)
{
	return 0;
}
#endif

/* Measure how late timers are, in a round of its own, in which each callback reads the clock. */
static int report_late(const struct subject *s)
{
	struct toll toll;
	s64 arming;
	int err;

	if (!(s->part & MEAN_LATE))
		return 0;
	timing = true;
	lateness = 0;
	set_up(s);
	err = expire(s, 0, &toll, &arming);
	timing = false;
	if (!err)
		report(s->name, "mean-late", "ms", div_u64(lateness, n) / NSEC_PER_USEC);
	return err;
}

static int run_expire(const struct subject *s)
{
	u64 longest = U64_MAX;
	unsigned int r;
	int err;

	if (!(s->part & EXPIRE) || (!hard && s->setup == setup_hrtimer_hard))
		return 0;
	set_up(s);
	shuffle(0);
	for (r = 0; r < rounds; r++) {
		struct toll toll;

		err = expire(s, r, &toll, &add[r]);
		if (err)
			return err;
		taken[r] = beyond(toll.taken, nothing.taken, toll.time);
		caused[r] = beyond(toll.interrupts, nothing.interrupts, toll.time);
		longest = min(longest, toll.longest);
	}
	if (ahead)
		report_rounds(s->name, "add", unit, add, n);
	report_rounds(s->name, "expire", unit, taken, n);
	report_rounds(s->name, "interrupts", "count", caused, 1);
	if (!is_busy())
		return report_late(s);
	report(s->name, "longest-stop", unit, longest * 1000);
	return !hard || s->setup == setup_hrtimer_hard ? 0 : report_pass(s);
}

static int run_late(const struct subject *s)
{
	char metric[16];
	struct toll toll;
	unsigned int i;
	s64 arming;
	int err;

	if (!(s->part & LATE))
		return 0;
	early = 0;
	memset(late_by, 0, sizeof(late_by));
	set_up(s);
	err = expire(s, 0, &toll, &arming);
	if (err)
		return err;
	report(s->name, "early", "timers", early * 1000LL);
	for (i = 0; i < NR_LATE; i++) {
		snprintf(metric, sizeof(metric), "late-%lu", BIT(i));
		report(s->name, metric, "timers", late_by[i] * 1000LL);
	}
	return 0;
}

static enum hrtimer_restart bare_tick(struct hrtimer *timer)
{
	hrtimer_forward_now(timer, NSEC_PER_MSEC);
	return HRTIMER_RESTART;
}

/* Measure what an interrupt in each ms of the range takes, if there is nothing to do. */
static void run_bare(void)
{
	u64 most = min(lead() + range * (u64)NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
	static struct hrtimer timer;
	struct toll toll;

	fired = 0;
	reinit_completion(&all_fired);
	hrtimer_setup(&timer, bare_tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	toll_begin(&toll);
	hrtimer_start(&timer, NSEC_PER_MSEC * (div_u64(toll.begin, NSEC_PER_MSEC) + 1),
		      HRTIMER_MODE_ABS_SOFT);
	toll_end(&toll, most);
	hrtimer_cancel(&timer);
	toll.taken = beyond(toll.taken, nothing.taken, toll.time);
	toll.taken = scaled(toll.taken, range * (u64)NSEC_PER_MSEC, toll.time);
	report("bare-tick", "expire", unit, scaled(toll.taken, 1000, n));
}

/* ---- one hour's bucket ---------------------------------------------------------------- */

#define HOUR		3600
#define DAY		86400

static u64 latest;

static void hour_fired(struct twheel_timer *timer)
{
	latest = max(latest, ktime_get_ns() - when[timer - twheel_of(0)]);
	count();
}

static void run_hour_on(struct twheel_base *base)
{
	u64 tick = div_u64(ktime_get_ns(), TWHEEL_TICK_NS);
	u64 first = (div_u64(tick + DAY, HOUR) + 1) * HOUR;
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < n; i++) {
		when[i] = (first + prandom_u32_state(&rnd) % HOUR) * TWHEEL_TICK_NS;
		twheel_init_on(base, twheel_of(i), hour_fired);
		twheel_add_abs(twheel_of(i), when[i]);
		if (!(i % 1024))
			cond_resched();
	}
	wait_for_completion_killable(&all_fired);
}

static int run_hour(void)
{
	struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS };
	struct twheel_base *base = twheel_create(&config);
	struct twheel_stats stats;

	if (IS_ERR(base))
		return PTR_ERR(base);
	run_hour_on(base);
	twheel_get_stats(base, &stats);
	twheel_destroy(base);
	report(name, "most-moves", "moves", stats.worst * 1000);
	report(name, "moves", "moves", stats.moves * 1000);
	report(name, "interrupts", "count", stats.wakeups * 1000);
	report(name, "deferred", "count", stats.deferred * 1000);
	report(name, "latest", "ms", div_u64(latest, NSEC_PER_USEC));
	return 0;
}

/* ---- */

static int each_subject(int (*do_run)(const struct subject *s))
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(subjects) && !err; i++) {
		err = do_run(&subjects[i]);
		if (err != -EAGAIN)
			continue;
		pr_info("%s is left out: arming took too long\n", subjects[i].name);
		err = 0;
	}
	return err;
}

static int run_all(void)
{
	/*
	 * busy runs in real time: then what the kernel takes anyway is measured for 10 s at most.
	 */
	u64 longest = is_busy() ? 10 * NSEC_PER_SEC : U64_MAX;

	if (!strcmp(run, "hot"))
		return each_subject(run_hot);
	if (!strcmp(run, "pending"))
		return each_subject(run_pending);
	if (!strcmp(run, "late"))
		return each_subject(run_late);
	if (!strcmp(run, "hour"))
		return run_hour();
	if (strcmp(run, "busy") && strcmp(run, "idle"))
		return -EINVAL;
	toll_begin(&nothing);
	toll_end(&nothing, min(lead() + range * (u64)NSEC_PER_MSEC, longest));
	run_bare();
	return each_subject(run_expire);
}

static int __init bench_init(void)
{
	int err = -ENOMEM;

	if (num_online_cpus() != 1 || !n || rounds < 1 || rounds > MAX_ROUNDS)
		return -EINVAL;
	order = vmalloc(array_size(n, sizeof(*order)));
	when = vmalloc(array_size(n, sizeof(*when)));
	due = vmalloc(array_size(n, sizeof(*due)));
	timers = vzalloc(array_size(n, sizeof(struct hrtimer)));
	measure_clock();
	if (order && when && due && timers)
		err = run_all();
	vfree(timers);
	vfree(due);
	vfree(when);
	vfree(order);
	return err;
}

static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of twheel, timer_list and hrtimer");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
