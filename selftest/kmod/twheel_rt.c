// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A task that waits for a callback waits for that callback only, whatever the priorities are. Each
 * call that waits is compared with one of the kernel's own in the same scene.
 *
 * The callback runs on CPU 0. It wakes the waiter, a SCHED_FIFO task, and continues until the
 * waiter waits for it. Then it does what the scene says, and ends:
 *
 *	hog	the callback wakes a SCHED_FIFO task on its own CPU, whose priority is between
 *		those of the softirq thread and of the waiter. On PREEMPT_RT that task preempts
 *		the run as soon as the waiter no longer lends its priority to the run
 *	crowd	callbacks of other timers follow in the same run of the same base, and take
 *		long. With sinks, other bases follow in the same pass. A run ends after RUN_NS,
 *		so here the callback has to be short. On PREEMPT_RT the waiter must be asleep by
 *		then. It spins until it is time to call, and rounds are played until in some of
 *		them both CPUs ran at the same time
 *	race	the same, but the callback ends a moment after the waiter begins to wait, in each
 *		round another moment. The waiter may not wait for a callback that follows. On
 *		PREEMPT_RT this is also played with the waiter on the CPU of the run: there it
 *		preempts the callback, which ends when the waiter sleeps
 *
 * A timer that has hopped (twheel_add_on()) is waited for in the base of one CPU, and armed in that
 * of another.
 *
 * The waiter is on another CPU; or on the same one, where a waiter that does not sleep would keep
 * the callback from ending for ever. So there is a referee, a task with the highest priority: in
 * that case it takes the waiter's priority away.
 *
 * A wait counts from the moment at which the callback was about to end. The longest wait of a few
 * rounds may be at most twice the longest of the kernel's own call, in rounds that alternate with
 * these, plus NOISE_NS. That is for virtual machines, whose CPUs the host stops now and then: if a
 * wait is only longer, it is tried again. If a wait lasts as long as hog or crowd, which take
 * twenty times as long, two good tries must make up for it. In a race only such waits count, and
 * one of them may be the host's fault.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "fifo.h"
#include "ktap.h"
#include "twheel.h"
#include "twheel_compat.h"

#define HOG_PRIO	50
#define WAITER_PRIO	60
#define REFEREE_PRIO	90

#define HOG_NS		(400 * NSEC_PER_MSEC)	/* at most: it ends with the wait */
#define REFEREE_NS	(2 * HOG_NS)
#define NOISE_NS	(20 * NSEC_PER_MSEC)
#define ASLEEP_NS	(200 * NSEC_PER_USEC)	/* asleep for so long, it certainly waits */
#define SPIN_NS		(2 * NSEC_PER_MSEC)	/* for a waiter that does not sleep */
#define SHORT_NS	(150 * NSEC_PER_USEC)	/* for a callback that others follow */
#define CROWD_ROUNDS	3			/* how many rounds with a crowd must be good */
#define CROWD_MOST	(IS_ENABLED(CONFIG_PREEMPT_RT) ? 1500 : 300)	/* of at most so many */
#define LATER_NS	(3600LL * NSEC_PER_SEC)
#define TRIES		3
#define RACE_ROUNDS	200
#define RACE_STEPS	50			/* moments at which the callback ends */

static unsigned int rounds = 8;
module_param(rounds, uint, 0444);

/* A way to wait for a callback. */
struct method {
	const char	*name;
	void		(*arm)(ktime_t when);	/* on CPU 0: in_callback() will be called */
	void		(*wait)(void);		/* called by the waiter */
	void		(*end)(void);
};

struct scene {
	const char	*name;
	unsigned int	cpu;			/* the waiter's */
	bool		hog, crowd, race;
};

/* The present round. */
static const struct method *method;
static const struct scene *scene;
static ktime_t called, ended, returned;		/* 0: not yet */
static unsigned int round;			/* its number */
static unsigned int run_cpu;
static bool met;				/* the waiter began before the callback ended */
static bool called_back, calls;			/* used instead of @called with a crowd */
static unsigned int run_number;			/* the number of the softirq that called back */
static bool followed;				/* another callback followed in that softirq */
static atomic_t woken;				/* the callback of a sink was called */
static bool outwaited;				/* the waiter waited until the referee gave up */

static struct task_struct *waiter, *hog, *referee;
static DECLARE_COMPLETION(wait_now);
static DECLARE_COMPLETION(waited);
static DECLARE_COMPLETION(hog_now);
static DECLARE_COMPLETION(hogged);
static bool stopping;

#define CROWD	2	/* so many before and so many after it: a tick has no order */

static struct twheel_base *base, *sink_base, *crowd_base[2 * CROWD];

/* ---- what runs in a round ------------------------------------------------------- */

/*
 * Wait until the waiter has been asleep for a while: first it may have to wait for softirqs of its
 * own CPU. Without PREEMPT_RT the waiter spins, and so cannot run on this CPU at all.
 */
static void await_waiter(void)
{
	bool comes = IS_ENABLED(CONFIG_PREEMPT_RT) || scene->cpu != 0;
	ktime_t began = ktime_get(), awake = began;

	while (!READ_ONCE(called) && before(began, comes ? NOISE_NS : SPIN_NS))
		cpu_relax();
	while (before(awake, ASLEEP_NS) && before(READ_ONCE(called), SPIN_NS))
		if (task_is_running(waiter))
			awake = ktime_get();
}

/*
 * Wait until the waiter waits, but so briefly that others can follow in this run. On PREEMPT_RT it
 * sleeps then. Otherwise it has said that it calls, and needs a moment until it does. In an
 * emulator, pausing and reading the clock need a lock that the other CPU needs too, so that is done
 * rarely.
 */
static bool await_fast_waiter(void)
{
	const bool is_rt = IS_ENABLED(CONFIG_PREEMPT_RT);
	ktime_t began = ktime_get();
	int i;

	WRITE_ONCE(called_back, true);
	while (before(began, SHORT_NS))
		for (i = 0; i < 2000; i++)
			if (is_rt && READ_ONCE(calls) && !task_is_running(waiter))
				return true;
	return !is_rt && READ_ONCE(calls);
}

/* Does the waiter, on its own CPU, spin until it is time to call? */
static bool spins(void)
{
	return scene->crowd && scene->cpu != 0;
}

/* Wait until the waiter says that it calls, and a moment longer. */
static bool await_racer(void)
{
	unsigned long end = jiffies + HZ / 20;
	unsigned int i, step = round % RACE_STEPS;

	WRITE_ONCE(called_back, true);
	while (!READ_ONCE(calls) && time_before(jiffies, end))
		barrier();
	for (i = 0; i < 8 * step * step; i++)
		barrier();
	return READ_ONCE(calls);
}

/* The number of the softirq in which timers expire. CPU 0 runs one at a time. */
static unsigned int softirqs(void)
{
	return kstat_softirqs_cpu(TIMER_SOFTIRQ, 0) + kstat_softirqs_cpu(HRTIMER_SOFTIRQ, 0);
}

/* The callback. */
static void in_callback(void)
{
	run_cpu = raw_smp_processor_id();
	run_number = softirqs();
	if (spins()) {
		met = scene->race ? await_racer() : await_fast_waiter();
	} else {
		complete(&wait_now);
		if (!scene->crowd)
			await_waiter();
		met = READ_ONCE(called);
	}
	WRITE_ONCE(ended, ktime_get());
	if (scene->hog)
		complete(&hog_now);
}

/*
 * Run as long as somebody waits, and no longer: so there is time for many rounds. The clock is not
 * read, for the reason in await_fast_waiter(): where it is the HPET of an emulator, the waiter
 * would seldom get to it, and wait for that.
 */
static void take_long(void)
{
	unsigned long end = jiffies + nsecs_to_jiffies(HOG_NS);

	while (met && !READ_ONCE(returned) && time_before(jiffies, end))
		barrier();
	if (met && !READ_ONCE(returned))
		outwaited = true;
}

/*
 * The callback of the other timers. Some may come before the one that is waited for. If the run was
 * over, others may come on the waiter's CPU, where the waiter could not go on meanwhile.
 */
static void in_crowd(void)
{
	if (!READ_ONCE(ended) || raw_smp_processor_id() != run_cpu)
		return;
	if (softirqs() == run_number)
		followed = true;
	take_long();
}

/*
 * Not for ever: a callback that is to run on the waiter's CPU does not run as long as the waiter
 * spins. Without cpu_relax(), for the reason in await_fast_waiter().
 */
static void spin_until_called_back(void)
{
	unsigned long end = jiffies + HZ / 20;

	while (!READ_ONCE(called_back) && time_before(jiffies, end))
		barrier();
	WRITE_ONCE(calls, true);
}

static int wait_thread(void *unused)
{
	for (;;) {
		set_fifo(WAITER_PRIO);
		wait_for_completion(&wait_now);
		if (READ_ONCE(stopping))
			return 0;
		if (spins())
			spin_until_called_back();
		else
			WRITE_ONCE(called, ktime_get());
		method->wait();
		WRITE_ONCE(returned, ktime_get());
		complete(&waited);
	}
}

static int hog_thread(void *unused)
{
	set_fifo(HOG_PRIO);
	for (;;) {
		/* This may take longer than an uninterruptible task is allowed to wait. */
		wait_for_completion_interruptible(&hog_now);
		if (READ_ONCE(stopping))
			return 0;
		take_long();
		complete(&hogged);
	}
}

static void blow_whistle(void)
{
	outwaited = true;
	sched_set_normal(waiter, 0);
}

/* The referee sleeps on an hrtimer. That of a SCHED_FIFO task does not need the softirq thread. */
static int referee_thread(void *unused)
{
	set_fifo(REFEREE_PRIO);
	while (!READ_ONCE(stopping)) {
		ktime_t start = READ_ONCE(called);

		if (start && !READ_ONCE(returned) && !before(start, REFEREE_NS))
			blow_whistle();
		usleep_range(10000, 20000);
	}
	return 0;
}

/* ---- the ways to wait ------------------------------------------------------------ */

static struct timer_list jiffy_timer, jiffy_crowd[2 * CROWD];
static struct hrtimer soft_timer, soft_crowd[2 * CROWD];
static struct twheel_timer timer, crowd[2 * CROWD];
static struct twheel_task task;

static void jiffy_fired(struct timer_list *unused) { in_callback(); }
static void jiffy_crowd_fired(struct timer_list *unused) { in_crowd(); }

static void jiffy_add(struct timer_list *t, void (*fn)(struct timer_list *), unsigned long when)
{
	timer_setup(t, fn, TIMER_PINNED);
	t->expires = when;
	add_timer_on(t, 0);
}

static void jiffy_arm(ktime_t unused)
{
	unsigned long when = jiffies + 2;
	int i;

	for (i = 0; i < 2 * CROWD; i++) {
		if (i == CROWD)
			jiffy_add(&jiffy_timer, jiffy_fired, when);
		if (scene->crowd)
			jiffy_add(&jiffy_crowd[i], jiffy_crowd_fired, when);
	}
}

static void jiffy_wait(void)
{
	timer_delete_sync(&jiffy_timer);
}

static void jiffy_end(void)
{
	int i;

	for (i = 0; scene->crowd && i < 2 * CROWD; i++)
		timer_delete_sync(&jiffy_crowd[i]);
}

static enum hrtimer_restart soft_fired(struct hrtimer *unused)
{
	in_callback();
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart soft_crowd_fired(struct hrtimer *unused)
{
	in_crowd();
	return HRTIMER_NORESTART;
}

static void soft_add(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *), ktime_t when)
{
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	hrtimer_start(t, when, HRTIMER_MODE_ABS_PINNED_SOFT);
}

static void soft_arm(ktime_t when)
{
	int i;

	for (i = 0; i < 2 * CROWD; i++) {
		if (i == CROWD)
			soft_add(&soft_timer, soft_fired, when);
		if (scene->crowd)
			soft_add(&soft_crowd[i], soft_crowd_fired, when);
	}
}

static void soft_wait(void)
{
	hrtimer_cancel(&soft_timer);
}

static void soft_end(void)
{
	int i;

	for (i = 0; scene->crowd && i < 2 * CROWD; i++)
		hrtimer_cancel(&soft_crowd[i]);
}

static void fired(struct twheel_timer *unused) { in_callback(); }
static void crowd_fired(struct twheel_timer *unused) { in_crowd(); }

/* Timers @from to @to of the crowd, on base @b, or on the CPU's base if that is NULL. */
static void crowd_arm(struct twheel_base *b, unsigned int from, unsigned int to, ktime_t when)
{
	unsigned int i;

	for (i = from; scene->crowd && i < to; i++) {
		if (b)
			twheel_init_on(b, &crowd[i], crowd_fired);
		else
			twheel_init(&crowd[i], crowd_fired);
		twheel_add_abs(&crowd[i], when);
	}
}

static void crowd_end(void)
{
	int i;

	for (i = 0; scene->crowd && i < 2 * CROWD; i++)
		twheel_cancel_sync(&crowd[i]);
}

static void base_arm(ktime_t when)
{
	crowd_arm(base, 0, CROWD, when);
	twheel_init_on(base, &timer, fired);
	twheel_add_abs(&timer, when);
	crowd_arm(base, CROWD, 2 * CROWD, when);
}

static void cpu_base_arm(void (*fn)(struct twheel_timer *), ktime_t when)
{
	crowd_arm(NULL, 0, CROWD, when);
	twheel_init(&timer, fn);
	twheel_add_abs(&timer, when);
	crowd_arm(NULL, CROWD, 2 * CROWD, when);
}

static void cpu_arm(ktime_t when)
{
	cpu_base_arm(fired, when);
}

/* The callback arms its timer on another CPU, if there is one: it has hopped. */
static void hop_fired(struct twheel_timer *unused)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, 0);

	WARN_ON_ONCE(twheel_add_on(&timer, LATER_NS, other < nr_cpu_ids ? other : 0));
	in_callback();
}

static void hop_arm(ktime_t when)
{
	cpu_base_arm(hop_fired, when);
}

static void cancel_wait(void)
{
	twheel_cancel_sync(&timer);
}

static void shutdown_wait(void)
{
	twheel_shutdown_sync(&timer);
}

static void drained(struct twheel_timer *unused, ktime_t expires, void *arg) { }

static void drain_wait(void)
{
	twheel_drain(base, drained, NULL);
}

static enum twheel_again task_fired(struct twheel_task *unused)
{
	in_callback();
	return TWHEEL_STOP;
}

static void task_arm(ktime_t when)
{
	crowd_arm(base, 0, CROWD, when);
	twheel_task_init_on(base, &task, task_fired, 0);
	/* Starting the task takes a moment, and the timer must be due in the crowd's tick. */
	twheel_task_start(&task, ktime_sub(when, ktime_get()) - NSEC_PER_MSEC / 2, 0);
	crowd_arm(base, CROWD, 2 * CROWD, when);
}

static void task_wait(void)
{
	twheel_task_cancel_sync(&task);
}

static void sink_expired(struct twheel_base *unused, struct twheel_timer **timers, unsigned int nr)
{
}

/* A CPU that takes the base over may call this again: the waiter must destroy the base but once. */
static bool sink_wake(struct twheel_base *unused)
{
	if (!atomic_xchg(&woken, 1))
		in_callback();
	return true;
}

static const struct twheel_sink sink = {
	.expired	= sink_expired,
	.wake		= sink_wake,
};

static bool sink_crowd_wake(struct twheel_base *unused)
{
	in_crowd();
	return true;
}

static const struct twheel_sink crowd_sink = {
	.expired	= sink_expired,
	.wake		= sink_crowd_wake,
};

static void sink_arm(ktime_t when)
{
	int i;

	for (i = 0; i < 2 * CROWD; i++) {
		if (i == CROWD)
			timer_arm(sink_base, &timer, when);
		if (scene->crowd)
			timer_arm(crowd_base[i], &crowd[i], when);
	}
}

static struct twheel_base *new_base(const struct twheel_sink *its_sink)
{
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC,
		.tick_ns = TWHEEL_TICK_NS,
		.sink = its_sink,
	};

	return twheel_create(&config);
}

static void destroy_wait(void)
{
	twheel_destroy(sink_base);
}

static void sink_end(void)
{
	int i;

	sink_base = new_base(&sink);
	for (i = 0; scene->crowd && i < 2 * CROWD; i++) {
		twheel_destroy(crowd_base[i]);
		crowd_base[i] = new_base(&crowd_sink);
	}
}

static const struct method jiffy_method = {
	"timer_delete_sync", jiffy_arm, jiffy_wait, jiffy_end
};

static const struct method soft_method = {
	"hrtimer_cancel", soft_arm, soft_wait, soft_end
};

/* Each method with the one that it is compared with. */
static const struct {
	struct method		method;
	const struct method	*peer;
} cases[] = {
	{ { "twheel_cancel_sync", base_arm, cancel_wait, crowd_end }, &jiffy_method },
	{ { "twheel_cancel_sync (CPU's base)", cpu_arm, cancel_wait, crowd_end }, &jiffy_method },
	{ { "twheel_cancel_sync (hopped)", hop_arm, cancel_wait, crowd_end }, &jiffy_method },
	{ { "twheel_shutdown_sync", base_arm, shutdown_wait, crowd_end }, &jiffy_method },
	{ { "twheel_task_cancel_sync", task_arm, task_wait, crowd_end }, &jiffy_method },
	{ { "twheel_drain", base_arm, drain_wait, crowd_end }, &jiffy_method },
	{ { "twheel_destroy", sink_arm, destroy_wait, sink_end }, &soft_method },
};

/* ---- the rounds ------------------------------------------------------------------ */

static long arm_here(void *unused)
{
	u64 when = ktime_get_ns() + 2 * NSEC_PER_MSEC;

	method->arm(ns_to_ktime(DIV_ROUND_UP_ULL(when, NSEC_PER_MSEC) * NSEC_PER_MSEC));
	if (spins())
		complete(&wait_now);
	return 0;
}

/* Play a round. Returns how long the waiter waited, in ns. */
static s64 play(const struct method *m)
{
	ktime_t begun;

	method = m;
	round++;
	called = 0;
	ended = 0;
	returned = 0;
	met = false;
	called_back = false;
	calls = false;
	followed = false;
	outwaited = false;
	atomic_set(&woken, 0);
	work_on_cpu(0, arm_here, NULL);
	wait_for_completion(&waited);
	if (scene->hog)
		wait_for_completion(&hogged);
	m->end();
	if (scene->crowd && !met)
		return 0;
	begun = ktime_compare(called, ended) > 0 ? called : ended;
	return ktime_to_ns(ktime_sub(returned, begun));
}

struct waits {
	s64		longest, sum;
	unsigned int	nr;
	unsigned int	missed;			/* rounds that were not as the scene says */
	bool		outwaited;		/* this happened in one of them */
};

/* Was the round as the scene says? */
static bool was_scene(void)
{
	if (scene->crowd && !(met && followed))
		return false;
	return run_cpu == 0 && (met || !IS_ENABLED(CONFIG_PREEMPT_RT));
}

/*
 * A wait in another scene says nothing. If the run was on the waiter's CPU, for example, the waiter
 * could not go on before the softirq with the crowd was over, whatever it had called.
 */
static void play_into(struct waits *waits, const struct method *m)
{
	s64 wait = play(m);

	waits->nr++;
	if (!was_scene()) {
		waits->missed++;
		return;
	}
	waits->longest = max(waits->longest, wait);
	waits->sum += wait;
	waits->outwaited |= outwaited;
}

static void tell(const struct method *m, const struct waits *waits)
{
	const unsigned int good = waits->nr - waits->missed;

	pr_info("# %s: %s: %lld us on average, %lld at most, %u of %u rounds missed\n",
		scene->name, m->name, div_s64(waits->sum, max(good, 1U) * NSEC_PER_USEC),
		div_s64(waits->longest, NSEC_PER_USEC), waits->missed, waits->nr);
}

static bool is_played(const struct waits *waits)
{
	return scene->crowd ? waits->nr - waits->missed >= CROWD_ROUNDS : waits->nr >= rounds;
}

/*
 * Without PREEMPT_RT a waiter must come within the 150 us of a callback. On a busy host it may
 * never do so. Then nothing was found out, and that is not the module's fault: the rounds are told.
 */
static bool is_meaningful(const struct waits *waits)
{
	if (scene->crowd)
		return is_played(waits) || !IS_ENABLED(CONFIG_PREEMPT_RT);
	return 2 * waits->missed <= waits->nr;
}

/*
 * Returns 1 if @m waits no longer than @peer, after enough good rounds; -1 if it waits for
 * something else than the callback; 0 if it may be noise.
 */
static int try_once(const struct method *m, const struct method *peer)
{
	struct waits its = {}, peers = {};
	unsigned int i;

	for (i = 0; i < CROWD_MOST && !its.outwaited; i++) {
		if (is_played(&its) && is_played(&peers))
			break;
		if (!is_played(&peers))
			play_into(&peers, peer);
		if (!is_played(&its))
			play_into(&its, m);
	}
	tell(m, &its);
	tell(peer, &peers);
	if (its.outwaited)
		return -1;
	return its.longest <= 2 * peers.longest + NOISE_NS && is_meaningful(&its) &&
	       is_meaningful(&peers);
}

static void judge(const struct method *m, const struct method *peer)
{
	int score = 0, i;

	for (i = 0; i < TRIES && score <= 0 && score > -2; i++)
		score += try_once(m, peer);
	check(score > 0, "%s: %s waits no longer than %s", scene->name, m->name, peer->name);
}

/* A round in which the callback ran elsewhere than on CPU 0 does not count: see play_into(). */
static void judge_race(const struct method *m)
{
	unsigned int i, good = 0, bad = 0;

	for (i = 0; i < RACE_ROUNDS && bad <= 1; i++) {
		play(m);
		if (run_cpu != 0)
			continue;
		good++;
		bad += outwaited;
	}
	pr_info("# %s: %s: waited too long in %u of %u rounds\n", scene->name, m->name, bad, good);
	check(bad <= 1 && (good || !IS_ENABLED(CONFIG_PREEMPT_RT)),
	      "%s: %s waits for no callback that follows", scene->name, m->name);
}

static void play_scene(const struct scene *s)
{
	int i;

	scene = s;
	set_cpus_allowed_ptr(waiter, cpumask_of(s->cpu));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		/* If everything that was armed is cancelled, nothing follows. */
		if (s->crowd && cases[i].method.wait == drain_wait)
			continue;
		if (s->race)
			judge_race(&cases[i].method);
		else
			judge(&cases[i].method, cases[i].peer);
	}
}

static void skip_scene(const struct scene *s)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		skip("one CPU", "%s: %s", s->name, cases[i].method.name);
}

static void play_all(void)
{
	const unsigned int other = cpumask_any_but(cpu_online_mask, 0);
	const struct scene scenes[] = {
		{ "hog, waiter on its CPU", 0, true },
		{ "hog, waiter elsewhere", other, true },
		{ "crowd, waiter elsewhere", other, .crowd = true },
		{ "race, waiter elsewhere", other, .crowd = true, .race = true },
		{ "race, waiter on its CPU", 0, .crowd = true, .race = true },
	};
	int i, nr = ARRAY_SIZE(scenes);

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		nr--;
	for (i = 0; i < nr; i++)
		if (scenes[i].cpu < nr_cpu_ids)
			play_scene(&scenes[i]);
		else
			skip_scene(&scenes[i]);
}

static void end_thread(struct task_struct *thread, struct completion *sleeps_on)
{
	if (!thread)
		return;
	if (sleeps_on)
		complete(sleeps_on);
	kthread_stop(thread);
	put_task_struct(thread);
}

static void end_threads(void)
{
	WRITE_ONCE(stopping, true);
	end_thread(waiter, &wait_now);
	end_thread(hog, &hog_now);
	end_thread(referee, NULL);
}

/* Not on the run's CPU, if there is another one. */
static bool start_threads(void)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, 0);

	waiter = create_thread(wait_thread, "waiter", 0);
	hog = create_thread(hog_thread, "hog", 0);
	referee = create_thread(referee_thread, "referee", other < nr_cpu_ids ? other : 0);
	return waiter && hog && referee;
}

static void end_base(struct twheel_base *b)
{
	if (!IS_ERR(b))
		twheel_destroy(b);
}

static bool create_bases(void)
{
	bool good;
	int i;

	base = new_base(NULL);
	sink_base = new_base(&sink);
	good = !IS_ERR(base) && !IS_ERR(sink_base);
	for (i = 0; i < 2 * CROWD; i++) {
		crowd_base[i] = new_base(&crowd_sink);
		good &= !IS_ERR(crowd_base[i]);
	}
	return good;
}

static int __init rt_init(void)
{
	int ret = -ENOMEM, i;

	if (create_bases() && start_threads()) {
		pr_info("TAP version 14\n");
		play_all();
		ret = ktap_end();
	}
	end_threads();
	end_base(base);
	end_base(sink_base);
	for (i = 0; i < 2 * CROWD; i++)
		end_base(crowd_base[i]);
	return ret;
}

static void __exit rt_exit(void)
{
}

module_init(rt_init);
module_exit(rt_exit);

MODULE_DESCRIPTION("Test of those who wait for twheel's callbacks, beside the kernel's own");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
