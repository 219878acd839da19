// SPDX-License-Identifier: GPL-2.0
/*
 * twheel, timer_list and hrtimer doing the same work, one after the other in one run.
 *
 *	hot	arm and cancel one timer, nothing else pending
 *	add	arm n timers, delays of 20 s and uniform in 1 ... range ms more
 *	rearm	arm each of them anew, in random order
 *	cancel	in random order
 *	expire	n timers within SPREAD_MS: what they take from a loop that does nothing but
 *		count, which is measured before without them. Also the longest time the loop
 *		stood still, and how often it was interrupted
 *
 * The unit is that of ktime_get_ns(): ns where the clock is a clock, instructions under
 * QEMU's -icount shift=0. The median of ROUNDS rounds is given. Operations are done with
 * interrupts off, CHUNK at a time, so that nothing else is measured.
 *
 * twheel and hrtimer are given deadlines, timer_list jiffies; twheel-rel and hrtimer-rel are
 * given delays, so that they have to look at the clock. The hrtimers expire in softirqs, as
 * the others do, but hrtimer-rel: it is the plain one, which expires in the interrupt.
 *
 * Loading the module runs it; the figures are tab-separated lines in the kernel log that
 * begin with TSV: workload, n, subject, metric, unit, value.
 */
#define pr_fmt(fmt) fmt

#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sort.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "twheel.h"
#include "twheel_compat.h"

#define CHUNK		64
#define ROUNDS		5
#define HOT_OPS		20000
#define LEAD_MS		20000
#define SPREAD_MS	500
#define STOP_NS		1000

static unsigned int sizes[8] = { 1000, 10000, 100000, 1000000 };
static unsigned int nr_sizes = 4;
module_param_array(sizes, uint, &nr_sizes, 0444);
static char *unit = "ns";
module_param(unit, charp, 0444);

static u32 *order;		/* a permutation */
static u32 *delay_ms;		/* of each timer */
static atomic_t fired;

/* ---- the subjects ------------------------------------------------------------ */

static struct twheel_timer *twheels;
static struct timer_list *lists;
static struct hrtimer *hrtimers;
static ktime_t start_time;
static unsigned long start_jiffies;

static void twheel_fired(struct twheel_timer *timer)
{
	atomic_inc(&fired);
}

static void list_fired(struct timer_list *timer)
{
	atomic_inc(&fired);
}

static enum hrtimer_restart hrtimer_fired(struct hrtimer *timer)
{
	atomic_inc(&fired);
	return HRTIMER_NORESTART;
}

static u64 delay(u32 d)
{
	return delay_ms[d] * (u64)NSEC_PER_MSEC;
}

static ktime_t deadline(u32 d)
{
	return start_time + delay(d);
}

static unsigned long expires_jiffies(u32 d)
{
	return start_jiffies + delay_ms[d] * HZ / MSEC_PER_SEC;
}

static void twheel_setup_one(u32 i)
{
	twheel_init(&twheels[i], twheel_fired);
}

static void list_setup_one(u32 i)
{
	timer_setup(&lists[i], list_fired, 0);
}

static void hrtimer_setup_one(u32 i)
{
	hrtimer_setup(&hrtimers[i], hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

static void hrtimer_setup_rel(u32 i)
{
	hrtimer_setup(&hrtimers[i], hrtimer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

/*
 * do_arm arms timer i with the delay of number d, do_cancel cancels timer i. The loops are
 * made for each subject, so that no indirect call is measured.
 */
#define DEFINE_SUBJECT(_name, do_arm, do_cancel)				\
static __always_inline void arm_##_name(u32 i, u32 d)				\
{										\
	do_arm;									\
}										\
										\
static __always_inline void cancel_##_name(u32 i)				\
{										\
	do_cancel;								\
}										\
										\
static u64 bench_##_name##_hot(void)						\
{										\
	u64 begin = ktime_get_ns();						\
	u32 n;									\
										\
	for (n = 0; n < CHUNK; n++) {						\
		arm_##_name(0, 0);						\
		cancel_##_name(0);						\
	}									\
	return ktime_get_ns() - begin;						\
}										\
										\
static u64 bench_##_name##_add(u32 from, u32 to)				\
{										\
	u64 begin = ktime_get_ns();						\
	u32 n;									\
										\
	for (n = from; n < to; n++)						\
		arm_##_name(n, n);						\
	return ktime_get_ns() - begin;						\
}										\
										\
static u64 bench_##_name##_rearm(u32 from, u32 to)				\
{										\
	u64 begin = ktime_get_ns();						\
	u32 n;									\
										\
	for (n = from; n < to; n++)						\
		arm_##_name(order[n], n);					\
	return ktime_get_ns() - begin;						\
}										\
										\
static u64 bench_##_name##_cancel(u32 from, u32 to)				\
{										\
	u64 begin = ktime_get_ns();						\
	u32 n;									\
										\
	for (n = from; n < to; n++)						\
		cancel_##_name(order[n]);					\
	return ktime_get_ns() - begin;						\
}

DEFINE_SUBJECT(twheel, twheel_mod_abs(&twheels[i], deadline(d)), twheel_cancel(&twheels[i]))
DEFINE_SUBJECT(twheel_rel, twheel_mod(&twheels[i], delay(d)), twheel_cancel(&twheels[i]))
DEFINE_SUBJECT(list, mod_timer(&lists[i], expires_jiffies(d)), timer_delete(&lists[i]))
DEFINE_SUBJECT(hrtimer, hrtimer_start(&hrtimers[i], deadline(d), HRTIMER_MODE_ABS_SOFT),
	       hrtimer_try_to_cancel(&hrtimers[i]))
DEFINE_SUBJECT(hrtimer_rel, hrtimer_start(&hrtimers[i], delay(d), HRTIMER_MODE_REL),
	       hrtimer_try_to_cancel(&hrtimers[i]))

struct subject {
	const char	*name;
	void		(*setup)(u32 i);
	u64		(*hot)(void);
	u64		(*add)(u32 from, u32 to);
	u64		(*rearm)(u32 from, u32 to);
	u64		(*cancel)(u32 from, u32 to);
};

#define SUBJECT(_label, _name, _setup) {					\
	_label, _setup, bench_##_name##_hot, bench_##_name##_add,		\
	bench_##_name##_rearm, bench_##_name##_cancel				\
}

static const struct subject subjects[] = {
	SUBJECT("twheel", twheel, twheel_setup_one),
	SUBJECT("twheel-rel", twheel_rel, twheel_setup_one),
	SUBJECT("timer_list", list, list_setup_one),
	SUBJECT("hrtimer", hrtimer, hrtimer_setup_one),
	SUBJECT("hrtimer-rel", hrtimer_rel, hrtimer_setup_rel),
};

/* ---- measuring ------------------------------------------------------------------ */

static void report(const char *workload, u32 n, const struct subject *s, const char *metric,
		   const char *of, u64 value_milli)
{
	pr_info("TSV\t%s\t%u\t%s\t%s\t%s\t%llu.%03llu\n", workload, n, s->name, metric, of,
		value_milli / 1000, value_milli % 1000);
}

static int compare(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static u64 median(u64 *values, unsigned int nr)
{
	sort(values, nr, sizeof(*values), compare, NULL);
	return values[nr / 2];
}

/* All @n operations, CHUNK at a time with interrupts off. */
static u64 chunks(u64 (*run)(u32 from, u32 to), u32 n)
{
	unsigned long flags;
	u64 spent = 0;
	u32 i;

	for (i = 0; i < n; i += CHUNK) {
		local_irq_save(flags);
		spent += run(i, min(i + CHUNK, n));
		local_irq_restore(flags);
		cond_resched();
	}
	return spent;
}

static void set_delays(u32 n, u32 lead, u32 range, u32 seed)
{
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, seed);
	for (i = 0; i < n; i++) {
		u32 j = prandom_u32_state(&rnd) % (i + 1);

		delay_ms[i] = lead + 1 + prandom_u32_state(&rnd) % range;
		order[i] = order[j];
		order[j] = i;
	}
	start_time = ktime_get();
	start_jiffies = jiffies;
}

static void bench_hot(const struct subject *s)
{
	u64 rounds[ROUNDS];
	unsigned int r, i;

	set_delays(1, LEAD_MS, 1, 1);
	s->setup(0);
	for (r = 0; r < ROUNDS; r++) {
		rounds[r] = 0;
		for (i = 0; i < HOT_OPS; i += CHUNK) {
			unsigned long flags;

			local_irq_save(flags);
			rounds[r] += s->hot();
			local_irq_restore(flags);
			cond_resched();
		}
	}
	report("hot", 1, s, "add+cancel", unit,
	       div_u64(median(rounds, ROUNDS) * 1000, roundup(HOT_OPS, CHUNK)));
}

static void bench_pending(const struct subject *s, u32 n, u32 range)
{
	u64 add[ROUNDS], rearm[ROUNDS], cancel[ROUNDS];
	char name[32];
	unsigned int r;
	u32 i;

	for (i = 0; i < n; i++)
		s->setup(i);
	for (r = 0; r < ROUNDS; r++) {
		set_delays(n, LEAD_MS, range, r + 1);
		add[r] = chunks(s->add, n);
		rearm[r] = chunks(s->rearm, n);
		cancel[r] = chunks(s->cancel, n);
	}
	snprintf(name, sizeof(name), "pending-%u", range);
	report(name, n, s, "add", unit, div_u64(median(add, ROUNDS) * 1000, n));
	report(name, n, s, "rearm", unit, div_u64(median(rearm, ROUNDS) * 1000, n));
	report(name, n, s, "cancel", unit, div_u64(median(cancel, ROUNDS) * 1000, n));
}

/* ---- expiry: what is taken from a loop that counts --------------------------------- */

struct spin {
	u64	loops;
	u64	time;
	u64	worst;		/* the longest time between two loops */
	u64	stops;		/* how often that was much longer than usual */
};

/*
 * Count until @until, or until @target have fired. What stops the loop for STOP_NS more than it
 * usually takes is an interrupt.
 */
static void spin(struct spin *spin, u64 until, u32 target)
{
	u64 begin = ktime_get_ns(), last = begin, now = begin, usual = U64_MAX;

	memset(spin, 0, sizeof(*spin));
	while (now < until && (u32)atomic_read(&fired) < target) {
		now = ktime_get_ns();
		usual = min(usual, max(now - last, 1ULL));
		spin->worst = max(spin->worst, now - last);
		spin->stops += now - last > usual + STOP_NS;
		spin->loops++;
		last = now;
	}
	spin->time = now - begin;
}

static u64 expire_round(const struct subject *s, u32 n, u32 seed, struct spin *loaded)
{
	u64 lead = 200 + n / 250, idle_time;
	struct spin idle;

	atomic_set(&fired, 0);
	spin(&idle, ktime_get_ns() + SPREAD_MS * NSEC_PER_MSEC, U32_MAX);
	set_delays(n, lead, SPREAD_MS, seed);
	chunks(s->add, n);
	while (ktime_get_ns() < start_time + (lead - 20) * NSEC_PER_MSEC)
		cpu_relax();
	WARN_ON_ONCE(atomic_read(&fired));
	spin(loaded, U64_MAX, n);
	idle_time = mul_u64_u64_div_u64(loaded->loops, idle.time, idle.loops);
	return loaded->time > idle_time ? loaded->time - idle_time : 0;
}

static void bench_expire(const struct subject *s, u32 n)
{
	u64 taken[ROUNDS], worst[ROUNDS], stops[ROUNDS];
	struct spin loaded;
	unsigned int r;
	u32 i;

	for (i = 0; i < n; i++)
		s->setup(i);
	for (r = 0; r < ROUNDS; r++) {
		taken[r] = expire_round(s, n, r + 1, &loaded);
		worst[r] = loaded.worst;
		stops[r] = loaded.stops;
	}
	report("expire-500", n, s, "expire", unit, div_u64(median(taken, ROUNDS) * 1000, n));
	report("expire-500", n, s, "longest stop", unit, median(worst, ROUNDS) * 1000);
	report("expire-500", n, s, "stops", "count", median(stops, ROUNDS) * 1000);
}

static void bench_size(u32 n)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		bench_pending(&subjects[i], n, 60000);
	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		bench_pending(&subjects[i], n, 1000000);
	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		bench_expire(&subjects[i], n);
}

static int __init bench_init(void)
{
	u32 most = 1, i;

	for (i = 0; i < nr_sizes; i++)
		most = max(most, sizes[i]);
	order = vzalloc(array_size(most, sizeof(*order)));
	delay_ms = vzalloc(array_size(most, sizeof(*delay_ms)));
	twheels = vzalloc(array_size(most, sizeof(*twheels)));
	lists = vzalloc(array_size(most, sizeof(*lists)));
	hrtimers = vzalloc(array_size(most, sizeof(*hrtimers)));
	if (order && delay_ms && twheels && lists && hrtimers) {
		for (i = 0; i < ARRAY_SIZE(subjects); i++)
			bench_hot(&subjects[i]);
		for (i = 0; i < nr_sizes; i++)
			bench_size(sizes[i]);
	}
	for (i = 0; twheels && i < most; i++)
		twheel_cancel_sync(&twheels[i]);
	vfree(hrtimers);
	vfree(lists);
	vfree(twheels);
	vfree(delay_ms);
	vfree(order);
	return 0;
}

static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of twheel, timer_list and hrtimer");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
