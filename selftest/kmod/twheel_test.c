// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A test of twheel.h inside the kernel: KTAP in the kernel log. If a point fails, the module cannot
 * be loaded.
 *
 * Timers must never be early, and fire in the tick that was asked for. Then what a callback may do,
 * tasks, bulk calls and private bases. twheel_states.c tests what each call does to a timer.
 *
 * Nothing here compares lateness with a clock, because the machine may be slow. If something must
 * happen at all, the test waits for it, at most WAIT_MS.
 */
#define pr_fmt(fmt) fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "ktap.h"
#include "kwait.h"
#include "twheel.h"
#include "twheel_compat.h"

/* ---- a timer that tells what happened to it -------------------------------- */

struct probe {
	struct twheel_timer	timer;
	ktime_t			deadline;
	ktime_t			fired_at;
	atomic_t		fired;
	u64			tick;		/* in which it fired */
	bool			in_softirq;
};

static void probe_fired(struct twheel_timer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	probe->fired_at = ktime_get();
	probe->tick = timer->queue.expires;
	probe->in_softirq = in_serving_softirq() || IS_ENABLED(CONFIG_PREEMPT_RT);
	atomic_inc(&probe->fired);
}

static void probe_init(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	twheel_init(&probe->timer, probe_fired);
}

/* ---- time ---------------------------------------------------------------------- */

static const u64 delays[] = {
	0, 1, NSEC_PER_USEC, 999999, NSEC_PER_MSEC, 1000001, 59 * NSEC_PER_MSEC,
	60 * NSEC_PER_MSEC, 61 * NSEC_PER_MSEC, 119 * NSEC_PER_MSEC, 120 * NSEC_PER_MSEC,
	121 * NSEC_PER_MSEC, 500 * NSEC_PER_MSEC, NSEC_PER_SEC,
};

static bool in_its_tick(const struct probe *probe)
{
	return probe->tick == div64_u64(probe->deadline + NSEC_PER_MSEC - 1, NSEC_PER_MSEC);
}

static void test_delays(void)
{
	struct probe *probes = zalloc(ARRAY_SIZE(delays), sizeof(*probes));
	unsigned int i;

	if (!probes)
		return;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		probe_init(&probes[i]);
		probes[i].deadline = ktime_add_ns(ktime_get(), delays[i]);
		twheel_add(&probes[i].timer, delays[i]);
	}
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		bool fired = wait_for(atomic_read(&probes[i].fired));

		check(fired && probes[i].fired_at >= probes[i].deadline,
		      "a delay of %llu ns is not early", delays[i]);
		check(probes[i].in_softirq, "its callback runs in softirq context");
	}
	msleep(20);
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		check(atomic_read(&probes[i].fired) == 1, "it fires once");
		twheel_cancel_sync(&probes[i].timer);
	}
	kvfree(probes);
}

static const ktime_t past[] = { 1, 0, -1, -NSEC_PER_SEC, KTIME_MIN };

/* One that is over by more than it may be late is for the next tick. */
static bool over_is_next(struct probe *probe, ktime_t deadline)
{
	ktime_t left;
	bool fired;

	probe_init(probe);
	twheel_add_abs_range(&probe->timer, deadline, NSEC_PER_MSEC);
	left = twheel_remaining(&probe->timer);
	fired = left <= (ktime_t)TWHEEL_TICK_NS && wait_for(atomic_read(&probe->fired));
	twheel_cancel_sync(&probe->timer);
	return fired;
}

static void test_deadlines(void)
{
	ktime_t base = ktime_add_ns(ktime_get(), 50 * NSEC_PER_MSEC);
	unsigned int i, exact = 0, early = 0, nr = 1000;
	struct probe *probes = zalloc(nr, sizeof(*probes));

	if (!probes)
		return;
	for (i = 0; i < nr; i++) {
		probe_init(&probes[i]);
		probes[i].deadline = ktime_add_ns(base, i * 333333ULL);
		twheel_add_abs(&probes[i].timer, probes[i].deadline);
	}
	for (i = 0; i < nr; i++) {
		wait_for(atomic_read(&probes[i].fired));
		exact += atomic_read(&probes[i].fired) == 1 && in_its_tick(&probes[i]);
		early += probes[i].fired_at < probes[i].deadline;
		twheel_cancel_sync(&probes[i].timer);
	}
	check(exact == nr, "%u of %u deadlines fire in their tick", exact, nr);
	check(!early, "%u are early", early);
	for (i = 0; i < ARRAY_SIZE(past); i++) {
		probe_init(&probes[0]);
		twheel_add_abs(&probes[0].timer, past[i]);
		check(wait_for(atomic_read(&probes[0].fired)), "a deadline of %lld fires at once",
		      past[i]);
		twheel_cancel_sync(&probes[0].timer);
		check(over_is_next(&probes[0], past[i]), "and so does one that may be late");
	}
	twheel_add(&probes[0].timer, KTIME_MAX);
	check(twheel_expires(&probes[0].timer) == KTIME_MAX && twheel_pending(&probes[0].timer),
	      "a delay to the end of time does not wrap");
	check(twheel_cancel(&probes[0].timer) == 1, "and can be cancelled");
	kvfree(probes);
}

/* ---- from a callback -------------------------------------------------------------- */

static atomic_t freed;

static void free_itself(struct twheel_timer *timer)
{
	kvfree(container_of(timer, struct probe, timer));
	atomic_inc(&freed);
}

struct chain {
	struct twheel_timer	timer;
	struct probe		*other;
	unsigned int		times;
	int			ret;
};

static void rearm_itself(struct twheel_timer *timer)
{
	struct chain *chain = container_of(timer, struct chain, timer);

	if (++chain->times < 10)
		twheel_add(timer, NSEC_PER_MSEC);
}

static void cancel_other(struct twheel_timer *timer)
{
	struct chain *chain = container_of(timer, struct chain, timer);

	chain->ret = twheel_cancel(&chain->other->timer);
	WRITE_ONCE(chain->times, 1);
}

static void add_other(struct twheel_timer *timer)
{
	struct chain *chain = container_of(timer, struct chain, timer);

	twheel_add(&chain->other->timer, NSEC_PER_MSEC);
}

static void test_callbacks(void)
{
	struct probe *gone = zalloc(1, sizeof(*gone));
	struct chain chain = { };
	struct probe other;

	if (!gone)
		return;
	twheel_init(&gone->timer, free_itself);
	twheel_add(&gone->timer, NSEC_PER_MSEC);
	check(wait_for(atomic_read(&freed)), "a callback frees its timer");

	twheel_init_on_stack(&chain.timer, rearm_itself);
	twheel_add(&chain.timer, NSEC_PER_MSEC);
	check(wait_for(READ_ONCE(chain.times) == 10), "a callback arms its timer again");
	twheel_cancel_sync(&chain.timer);
	check(chain.times == 10, "as often as it wants to and no more");
	twheel_destroy_on_stack(&chain.timer);

	memset(&other, 0, sizeof(other));
	twheel_init_on_stack(&other.timer, probe_fired);
	chain = (struct chain) { .other = &other };
	twheel_init_on_stack(&chain.timer, cancel_other);
	twheel_add(&other.timer, HOUR);
	twheel_add(&chain.timer, NSEC_PER_MSEC);
	wait_for(READ_ONCE(chain.times));
	check(chain.ret == 1 && !twheel_pending(&other.timer), "a callback cancels another timer");
	twheel_cancel_sync(&chain.timer);
	twheel_destroy_on_stack(&chain.timer);

	twheel_init_on_stack(&chain.timer, add_other);
	twheel_add(&chain.timer, NSEC_PER_MSEC);
	check(wait_for(atomic_read(&other.fired)), "a callback adds another timer");
	twheel_cancel_sync(&chain.timer);
	twheel_cancel_sync(&other.timer);
	twheel_destroy_on_stack(&chain.timer);
	twheel_destroy_on_stack(&other.timer);
}

/* ---- how long others wait ---------------------------------------------------------------- */

#define SLOW_TIMERS	256
#define SLOW_NS		(100 * NSEC_PER_USEC)

/* The clocks of the soft hrtimers that are due beside the base. */
static const clockid_t slow_clocks[] = {
	CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI,
};

#define SLOW_CLOCKS	ARRAY_SIZE(slow_clocks)

struct slow_base {
	struct twheel_base	*base;
	struct twheel_timer	timers[SLOW_TIMERS];
	const struct slow_case	*c;
	struct completion	woken;
	struct tasklet_struct	soft;
	struct hrtimer		hrtimers[SLOW_CLOCKS];
	u64			run;		/* in which the last callback was */
	unsigned int		calls;		/* callbacks in that run */
	unsigned int		most;
	atomic_t		fired;
};

static struct slow_base *slow_base;

/* What else wants the CPU while callbacks of 100 us are due, and how many a run may then call. */
struct slow_case {
	const char	*what;
	void		(*wait)(void);		/* what the test does meanwhile */
	void		(*want)(void);		/* called by each callback */
	unsigned int	least, most;
};

static bool slow_over(void)
{
	return atomic_read(&slow_base->fired) == SLOW_TIMERS;
}

static void slow_stay(void)
{
	stay_for(slow_over());
}

static void slow_sleep(void)
{
	msleep(SLOW_TIMERS);
}

static void slow_wait_woken(void)
{
	while (!slow_over() && wait_for_completion_timeout(&slow_base->woken, HZ))
		;
}

static void slow_wake(void)
{
	complete(&slow_base->woken);
}

static void slow_soft(struct tasklet_struct *soft) { }

static void slow_raise(void)
{
	tasklet_schedule(&slow_base->soft);
}

static enum hrtimer_restart slow_hrtimer(struct hrtimer *hrtimer)
{
	return HRTIMER_NORESTART;
}

static void slow_start(unsigned int clock)
{
	hrtimer_start(&slow_base->hrtimers[clock], 0, HRTIMER_MODE_REL_PINNED_SOFT);
}

static void slow_start_monotonic(void) { slow_start(0); }
static void slow_start_realtime(void) { slow_start(1); }
static void slow_start_boottime(void) { slow_start(2); }
static void slow_start_tai(void) { slow_start(3); }

/* An hrtimer that waits, but is not due, takes nothing from the run. */
static void slow_start_later(void)
{
	unsigned int i;

	for (i = 0; i < SLOW_CLOCKS; i++)
		hrtimer_start(&slow_base->hrtimers[i], NSEC_PER_SEC, HRTIMER_MODE_REL_PINNED_SOFT);
}

static const struct slow_case slow_cases[] = {
	{ "a task that runs", slow_stay, NULL, 1, 3 },
	{ "a task that is woken", slow_wait_woken, slow_wake, 1, 3 },
	{ "another softirq", slow_sleep, slow_raise, 1, 3 },
	{ "another soft hrtimer", slow_sleep, slow_start_monotonic, 1, 3 },
	{ "one of the wall clock", slow_sleep, slow_start_realtime, 1, 3 },
	{ "one of the clock with suspend", slow_sleep, slow_start_boottime, 1, 3 },
	{ "one of atomic time", slow_sleep, slow_start_tai, 1, 3 },
	{ "no soft hrtimer before a second is over", slow_sleep, slow_start_later, 4, 11 },
	{ "nothing", slow_sleep, NULL, 4, 11 },
};

static void slow_fired(struct twheel_timer *timer)
{
	ktime_t end = ktime_add_ns(ktime_get(), SLOW_NS);
	struct twheel_stats stats;

	twheel_get_stats(slow_base->base, &stats);
	slow_base->calls = stats.wakeups == slow_base->run ? slow_base->calls + 1 : 1;
	slow_base->run = stats.wakeups;
	slow_base->most = max(slow_base->most, slow_base->calls);
	if (slow_base->c->want)
		slow_base->c->want();
	while (ktime_before(ktime_get(), end))
		cpu_relax();
	atomic_inc(&slow_base->fired);
}

static void slow_check(struct slow_base *slow, const struct slow_case *c)
{
	unsigned int i, least = IS_ENABLED(CONFIG_PREEMPT_RT) ? 1 : c->least;
	unsigned int most = IS_ENABLED(CONFIG_PREEMPT_RT) ? 3 : c->most;

	atomic_set(&slow->fired, 0);
	slow->most = 0;
	slow->c = c;
	for (i = 0; i < SLOW_TIMERS; i++)
		twheel_add(&slow->timers[i], 5 * NSEC_PER_MSEC);
	c->wait();
	check(wait_for(slow_over()) && slow->most >= least && slow->most <= most,
	      "callbacks of 100 us, %u to %u in a run: %s wants the CPU: %u", least, most, c->what,
	      slow->most);
}

/*
 * A run ends after 200 us and one more callback, however slowly the machine does the rest. If
 * nothing else wants the CPU, not even an hrtimer, it ends after 1 ms and one more callback, except
 * on PREEMPT_RT, where it is in a thread.
 */
static void test_slow_callbacks(void)
{
	static const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = NSEC_PER_MSEC,
	};
	struct slow_base *slow = zalloc(1, sizeof(*slow));
	unsigned int i;

	if (!slow)
		return;
	slow->base = twheel_create(&config);
	if (IS_ERR(slow->base))
		return;
	slow_base = slow;
	init_completion(&slow->woken);
	tasklet_setup(&slow->soft, slow_soft);
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	for (i = 0; i < SLOW_TIMERS; i++)
		twheel_init_on(slow->base, &slow->timers[i], slow_fired);
	for (i = 0; i < SLOW_CLOCKS; i++)
		hrtimer_setup(&slow->hrtimers[i], slow_hrtimer, slow_clocks[i],
			      HRTIMER_MODE_REL_PINNED_SOFT);
	for (i = 0; i < ARRAY_SIZE(slow_cases); i++)
		slow_check(slow, &slow_cases[i]);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	for (i = 0; i < SLOW_TIMERS; i++)
		twheel_cancel_sync(&slow->timers[i]);
	tasklet_kill(&slow->soft);
	for (i = 0; i < SLOW_CLOCKS; i++)
		hrtimer_cancel(&slow->hrtimers[i]);
	twheel_destroy(slow->base);
	kvfree(slow);
}

#define BEHIND_TIMERS	5000
#define BEHIND_TICKS	20
#define BEHIND_STALLS	6

struct behind {
	struct twheel_timer	timers[BEHIND_TIMERS];
	struct twheel_timer	stalls[BEHIND_STALLS];
	atomic_t		fired;
};

static struct behind *behind;

static void behind_fired(struct twheel_timer *timer)
{
	atomic_inc(&behind->fired);
}

static void behind_stall(struct twheel_timer *timer)
{
	keep_busy(20);
}

/*
 * A base that is behind by many ticks has all their moves to make, and the CPU is idle: still no
 * run makes more than 1 024, and what the last lock hold may.
 */
static void test_behind(void)
{
	static const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = NSEC_PER_MSEC,
	};
	struct twheel_base *base = twheel_create(&config);
	struct twheel_stats stats;
	unsigned int i;

	behind = zalloc(1, sizeof(*behind));
	if (!behind || IS_ERR(base))
		return;
	for (i = 0; i < BEHIND_TIMERS; i++) {
		twheel_init_on(base, &behind->timers[i], behind_fired);
		twheel_add(&behind->timers[i], (200 + i % BEHIND_TICKS) * NSEC_PER_MSEC);
	}
	for (i = 0; i < BEHIND_STALLS; i++) {
		twheel_init_on(base, &behind->stalls[i], behind_stall);
		twheel_add(&behind->stalls[i], (50 + 25 * i) * NSEC_PER_MSEC);
	}
	msleep(200 + BEHIND_TICKS);
	check(wait_for(atomic_read(&behind->fired) == BEHIND_TIMERS),
	      "a base that is behind catches up");
	twheel_get_stats(base, &stats);
	check(stats.worst <= 1024 + 64, "and no run makes more moves than it may: %llu, all %llu",
	      stats.worst, stats.moves);
	for (i = 0; i < BEHIND_TIMERS; i++)
		twheel_cancel_sync(&behind->timers[i]);
	for (i = 0; i < BEHIND_STALLS; i++)
		twheel_cancel_sync(&behind->stalls[i]);
	twheel_destroy(base);
	kvfree(behind);
}

#define STALL_MS	10

struct stall {
	struct twheel_timer	timers[2];
	ktime_t			fired_at[2];
	atomic_t		fired;
};

/* The first callback is held up, as if a hypervisor or the firmware had taken the CPU away. */
static void stall_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr)
{
	struct stall *stall = twheel_owner(base);
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (timers[i] == &stall->timers[0])
			keep_busy(STALL_MS);
		stall->fired_at[timers[i] - stall->timers] = ktime_get();
		atomic_inc(&stall->fired);
	}
}

static bool stall_wake(struct twheel_base *base) { return true; }

static const struct twheel_sink stall_sink = { .expired = stall_expired, .wake = stall_wake };

/* How long after the stall the other timer fires, which is due when the stall ends. */
static s64 stall_ns(void)
{
	struct stall *stall = zalloc(1, sizeof(*stall));
	const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = NSEC_PER_MSEC, .sink = &stall_sink,
		.owner = stall,
	};
	struct twheel_base *base = twheel_create(&config);
	unsigned long flags;
	s64 late = S64_MAX;
	ktime_t now;

	if (!stall || IS_ERR(base))
		return late;
	now = twheel_lock(base, &flags);
	twheel_add_locked(base, &stall->timers[0], now + 2 * NSEC_PER_MSEC);
	twheel_add_locked(base, &stall->timers[1], now + (STALL_MS + 3) * NSEC_PER_MSEC);
	twheel_unlock(base, flags);
	if (wait_for(atomic_read(&stall->fired) == 2))
		late = stall->fired_at[1] - max(stall->fired_at[0],
						now + (STALL_MS + 3) * NSEC_PER_MSEC);
	twheel_destroy(base);
	kvfree(stall);
	return late;
}

/*
 * A base pauses for the time that its own work takes, not for what others take while it holds its
 * lock.
 */
static void test_stall(void)
{
	s64 best = S64_MAX;
	unsigned int i;

	for (i = 0; i < 100 && best > STALL_MS * NSEC_PER_MSEC / 5; i++)
		best = min(best, stall_ns());
	check(best <= STALL_MS * NSEC_PER_MSEC / 5,
	      "after a stall of %u ms in a lock hold a base goes on after %lld us", STALL_MS,
	      div_s64(best, NSEC_PER_USEC));
}

/* ---- a timer that stays armed ----------------------------------------------------------- */

struct mover {
	struct twheel_timer	timer;
	struct task_struct	*threads[2];
};

static int mover_run(void *arg)
{
	struct mover *mover = arg;
	unsigned long n = 0;

	while (!kthread_should_stop()) {
		twheel_mod(&mover->timer, HOUR + n % 1000 * NSEC_PER_SEC);
		if (!(++n % 1024))
			cond_resched();
	}
	return 0;
}

/* Re-arm the timer on two CPUs, so that it moves. Returns how many threads there are. */
static unsigned int movers_start(struct mover *mover)
{
	unsigned int i, cpu = cpumask_first(cpu_online_mask);

	for (i = 0; i < ARRAY_SIZE(mover->threads) && cpu < nr_cpu_ids; i++) {
		struct task_struct *task = kthread_create(mover_run, mover, "mover/%u", cpu);

		if (IS_ERR(task))
			break;
		kthread_bind(task, cpu);
		mover->threads[i] = task;
		wake_up_process(task);
		cpu = cpumask_next(cpu, cpu_online_mask);
	}
	return i;
}

/* Check that the threads get some time in between. */
static unsigned long count_idle(struct mover *mover, unsigned int ms)
{
	ktime_t end = ktime_add_ms(ktime_get(), ms);
	unsigned long idle = 0;

	while (ktime_before(ktime_get(), end)) {
		unsigned int i;

		for (i = 0; i < 1000; i++)
			idle += !twheel_pending(&mover->timer);
		cond_resched();
	}
	return idle;
}

static void test_pending(void)
{
	struct mover *mover = zalloc(1, sizeof(*mover));
	unsigned int nr, i;
	unsigned long idle;

	if (!mover)
		return;
	twheel_init(&mover->timer, probe_fired);
	twheel_add(&mover->timer, HOUR);
	nr = movers_start(mover);
	idle = count_idle(mover, 300);
	for (i = 0; i < nr; i++)
		kthread_stop(mover->threads[i]);
	if (nr < 2)
		skip("one CPU", "a timer that is armed anew all the while is pending");
	else
		check(!idle, "a timer that is armed anew all the while is pending: %lu", idle);
	check(twheel_cancel_sync(&mover->timer) == 1, "and is cancelled once");
	kvfree(mover);
}

/* ---- tasks ----------------------------------------------------------------------------- */

struct job {
	struct twheel_task	task;
	atomic_t		calls;
	atomic_t		inside;
	atomic_t		overlaps;
	unsigned int		stop_after;
	unsigned int		busy_ms;
	bool			in_task;
	ktime_t			last_end;
	s64			least_gap;
};

static enum twheel_again job_run(struct twheel_task *task)
{
	struct job *job = container_of(task, struct job, task);
	ktime_t now = ktime_get();
	bool stop;

	if (atomic_inc_return(&job->inside) != 1)
		atomic_inc(&job->overlaps);
	if (job->last_end)
		job->least_gap = min(job->least_gap, ktime_to_ns(ktime_sub(now, job->last_end)));
	job->in_task = in_task();
	if (job->busy_ms)
		keep_busy(job->busy_ms);
	job->last_end = ktime_get();
	atomic_dec(&job->inside);
	stop = atomic_inc_return(&job->calls) == job->stop_after;
	return stop ? TWHEEL_STOP : TWHEEL_AGAIN;
}

static void job_init(struct job *job, unsigned int flags)
{
	memset(job, 0, sizeof(*job));
	job->least_gap = S64_MAX;
	twheel_task_init(&job->task, job_run, flags);
}

static void test_task_rate(struct job *job, unsigned int flags, const char *where)
{
	ktime_t begin;
	u64 first;
	u32 phase;

	job_init(job, flags);
	begin = ktime_get();
	twheel_task_start(&job->task, 10 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC);
	first = READ_ONCE(job->task.deadline);
	check(wait_for(atomic_read(&job->calls) >= 5), "%s: a fixed rate goes on", where);
	twheel_task_cancel_sync(&job->task);
	/* Call n cannot come before n periods have passed; those that were skipped are counted. */
	check(ktime_sub(ktime_get(), begin) >=
	      (s64)((atomic_read(&job->calls) + twheel_task_overruns(&job->task)) *
		    10 * NSEC_PER_MSEC),
	      "%s: calls and overruns add up to no more than the time", where);
	div_u64_rem(job->task.deadline - first, 10 * NSEC_PER_MSEC, &phase);
	check(!phase && job->task.deadline > first, "%s: the phase is kept", where);
	check(job->in_task == !!(flags & TWHEEL_TASK_PROCESS), "%s: in the right context",
	      where);
}

static void test_task_overruns(struct job *job, unsigned int flags, const char *where)
{
	job_init(job, flags);
	job->busy_ms = 12;
	twheel_task_start(&job->task, 0, 5 * NSEC_PER_MSEC);
	check(wait_for(atomic_read(&job->calls) >= 4), "%s: a function too slow goes on", where);
	check(twheel_task_overruns(&job->task) >= 3, "%s: overruns are counted", where);
	check(!atomic_read(&job->overlaps), "%s: never twice at once", where);
	twheel_task_cancel_sync(&job->task);
	check(!atomic_read(&job->inside), "%s: cancel_sync waits for it", where);
	atomic_set(&job->calls, 0);
	msleep(30);
	check(!atomic_read(&job->calls), "%s: and no call comes after it", where);
}

static void test_task_delay(struct job *job, unsigned int flags, const char *where)
{
	job_init(job, flags | TWHEEL_TASK_DELAY);
	job->busy_ms = 5;
	twheel_task_start(&job->task, 0, 10 * NSEC_PER_MSEC);
	check(wait_for(atomic_read(&job->calls) >= 4), "%s: a fixed delay goes on", where);
	twheel_task_cancel_sync(&job->task);
	check(job->least_gap >= 10 * (s64)NSEC_PER_MSEC,
	      "%s: its period begins when the function returns", where);
	check(!twheel_task_overruns(&job->task), "%s: and nothing is an overrun", where);
}

static void test_task_stops(struct job *job, unsigned int flags, const char *where)
{
	job_init(job, flags);
	job->stop_after = 3;
	twheel_task_start(&job->task, 0, NSEC_PER_MSEC);
	wait_for(atomic_read(&job->calls) >= 3);
	msleep(20);
	check(atomic_read(&job->calls) == 3, "%s: TWHEEL_STOP stops it", where);
	check(twheel_task_cancel_sync(&job->task) == 0, "%s: nothing is left to cancel", where);

	job->stop_after = 0;
	atomic_set(&job->calls, 0);
	twheel_task_start(&job->task, 0, 0);
	wait_for(atomic_read(&job->calls));
	msleep(20);
	check(atomic_read(&job->calls) == 1, "%s: without a period it is called once", where);
	check(twheel_task_start(&job->task, 0, -1) == -EINVAL, "%s: no negative period", where);

	check(twheel_task_start(&job->task, HOUR, 0) == 0 &&
	      twheel_task_start(&job->task, HOUR, 0) == 1 &&
	      twheel_task_cancel(&job->task) == 1 &&
	      twheel_task_cancel(&job->task) == 0, "%s: returns tell what it was", where);
	twheel_task_shutdown_sync(&job->task);
	atomic_set(&job->calls, 0);
	twheel_task_start(&job->task, 0, NSEC_PER_MSEC);
	msleep(20);
	check(!atomic_read(&job->calls), "%s: shut down, it cannot be started", where);
}

/* ---- a task whose work is queued when it is cancelled and started anew ------------------ */

struct hung_job {
	struct twheel_task	task;
	struct completion	entered;
	struct completion	leave;
	atomic_t		calls;
};

static enum twheel_again hung_job_run(struct twheel_task *task)
{
	struct hung_job *job = container_of(task, struct hung_job, task);

	if (atomic_inc_return(&job->calls) == 1) {
		complete(&job->entered);
		wait_for_completion(&job->leave);
	}
	return TWHEEL_STOP;
}

/* While the task's function runs, the task is started and due again, so that its work is queued. */
static bool hung_job_begin(struct hung_job *job)
{
	memset(job, 0, sizeof(*job));
	init_completion(&job->entered);
	init_completion(&job->leave);
	twheel_task_init(&job->task, hung_job_run, TWHEEL_TASK_PROCESS);
	twheel_task_start(&job->task, 0, 0);
	wait_for_completion(&job->entered);
	twheel_task_start(&job->task, 0, 0);
	return wait_for(work_pending(&job->task.work));
}

static void test_task_restart(void)
{
	struct hung_job *job = zalloc(1, sizeof(*job));

	if (!job)
		return;
	check(hung_job_begin(job), "the work of a task is queued while its function runs");
	check(twheel_task_cancel(&job->task) == 1 && twheel_task_start(&job->task, HOUR, 0) == 0,
	      "the task is cancelled, which says that it was due, and started anew");
	complete(&job->leave);
	wait_for(!work_busy(&job->task.work));
	check(atomic_read(&job->calls) == 1, "the work that was queued before does not call it");
	check(twheel_task_start(&job->task, 0, 0) == 1 && wait_for(atomic_read(&job->calls) == 2),
	      "it is called when it is due");
	check(twheel_task_cancel_sync(&job->task) == 0, "then nothing is left to cancel");

	check(hung_job_begin(job), "the work is queued again");
	check(twheel_task_start(&job->task, HOUR, 0) == 1, "a start says that it was due");
	check(twheel_task_cancel(&job->task) == 1, "the task is cancelled");
	complete(&job->leave);
	check(twheel_task_cancel_sync(&job->task) == 0, "and was not due any more");
	check(atomic_read(&job->calls) == 1, "nor was it called");
	kvfree(job);
}

#define RESTARTS	3000

/* For each start, either the function is called, or a cancel has said that it will not be. */
static void test_task_accounts(void)
{
	struct job *job = zalloc(1, sizeof(*job));
	unsigned int i, said = 0;

	if (!job)
		return;
	job_init(job, TWHEEL_TASK_PROCESS);
	for (i = 0; i < RESTARTS; i++) {
		twheel_task_start(&job->task, 0, 0);
		usleep_range(900 + i % 200, 1000 + i % 200);
		said += twheel_task_cancel_sync(&job->task);
	}
	check(said + atomic_read(&job->calls) == RESTARTS,
	      "of %u starts %u were cancelled and %u calls, which is all", i, said,
	      atomic_read(&job->calls));
	kvfree(job);
}

#define SLEEPERS	20

static atomic_t asleep;
static DECLARE_COMPLETION(awake);

static enum twheel_again sleeper(struct twheel_task *task)
{
	atomic_inc(&asleep);
	wait_for_completion(&awake);
	return TWHEEL_STOP;
}

/* However long one function sleeps, the tasks of others do not wait for it. */
static void test_task_sleepers(void)
{
	struct twheel_task *tasks = zalloc(SLEEPERS, sizeof(*tasks));
	unsigned int i;

	if (!tasks)
		return;
	for (i = 0; i < SLEEPERS; i++) {
		twheel_task_init(&tasks[i], sleeper, TWHEEL_TASK_PROCESS);
		twheel_task_start(&tasks[i], 5 * NSEC_PER_MSEC, 0);
	}
	check(wait_for(atomic_read(&asleep) == SLEEPERS), "the functions of %u tasks sleep at once",
	      SLEEPERS);
	complete_all(&awake);
	for (i = 0; i < SLEEPERS; i++)
		twheel_task_shutdown_sync(&tasks[i]);
	kvfree(tasks);
}

static void test_tasks(void)
{
	static const struct {
		unsigned int	flags;
		const char	*where;
	} kinds[] = {
		{ 0, "softirq task" },
		{ TWHEEL_TASK_PROCESS, "process task" },
	};
	struct job *job = zalloc(1, sizeof(*job));
	unsigned int i;

	if (!job)
		return;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		test_task_rate(job, kinds[i].flags, kinds[i].where);
		test_task_overruns(job, kinds[i].flags, kinds[i].where);
		test_task_delay(job, kinds[i].flags, kinds[i].where);
		test_task_stops(job, kinds[i].flags, kinds[i].where);
	}
	twheel_task_shutdown_sync(&job->task);
	kvfree(job);
}

/* ---- bulk calls, private bases -------------------------------------------------------- */

static void add_array(struct probe *probes, struct twheel_timer **timers, ktime_t *delays,
		      unsigned int nr)
{
	unsigned int i, fired = 0, early = 0;

	for (i = 0; i < nr; i++) {
		probe_init(&probes[i]);
		timers[i] = &probes[i].timer;
		delays[i] = (i % 50) * NSEC_PER_MSEC;
		probes[i].deadline = ktime_add_ns(ktime_get(), delays[i]);
	}
	twheel_add_array(timers, delays, nr);
	for (i = 0; i < nr; i++) {
		fired += wait_for(atomic_read(&probes[i].fired));
		early += probes[i].fired_at < probes[i].deadline;
		twheel_cancel_sync(timers[i]);
	}
	check(fired == nr && !early, "of an array %u of %u fired, %u early", fired, nr, early);
}

static void test_array(void)
{
	unsigned int nr = 1000;
	struct probe *probes = zalloc(nr, sizeof(*probes));
	struct twheel_timer **timers = zalloc(nr, sizeof(*timers));
	ktime_t *delays = zalloc(nr, sizeof(*delays));

	if (probes && timers && delays)
		add_array(probes, timers, delays, nr);
	kvfree(delays);
	kvfree(timers);
	kvfree(probes);
}

static void test_bad_config(const struct twheel_config *good)
{
	struct twheel_config bad = *good;

	bad.clock = CLOCK_MONOTONIC_RAW;
	check(twheel_create(&bad) == ERR_PTR(-EINVAL), "a base has no such clock");
	bad = *good;
	bad.tick_ns = TWHEEL_TICK_MIN_NS - 1;
	check(twheel_create(&bad) == ERR_PTR(-EINVAL), "a base has no such small tick");
	bad.tick_ns = TWHEEL_TICK_MAX_NS + 1;
	check(twheel_create(&bad) == ERR_PTR(-EINVAL), "a base has no such large tick");
	bad = *good;
	bad.slack_ns = NSEC_PER_SEC;
	check(twheel_create(&bad) == ERR_PTR(-EINVAL), "a base has no such slack");
}

static void count_drained(struct twheel_timer *timer, ktime_t expires, void *arg)
{
	u64 *sum = arg;

	if (!twheel_pending(timer) && expires > ktime_get())
		++*sum;
}

/* What a call on a locked base does to @timer, and what is pending after it. */
static void test_locked_call(struct twheel_base *base, struct twheel_timer *timer)
{
	struct twheel_stats stats;
	unsigned long flags;
	bool was[4];
	ktime_t now;

	now = twheel_lock(base, &flags);
	twheel_add_locked(base, timer, now + HOUR);
	was[0] = twheel_mod_locked(base, timer, now + 2 * HOUR);
	was[1] = twheel_cancel_locked(base, timer);
	was[2] = twheel_cancel_locked(base, timer);
	was[3] = twheel_mod_locked(base, timer, now + HOUR);
	twheel_unlock(base, flags);
	check(was[0] && was[1] && !was[2] && !was[3], "locked calls tell what was armed");
	twheel_get_stats(base, &stats);
	check(stats.pending == 1 && stats.added == 3 && stats.rearmed == 1,
	      "and count: %llu, %llu, %llu", stats.pending, stats.added, stats.rearmed);
	now = ktime_sub(twheel_expires(timer), now);
	check(now >= HOUR && now < HOUR + TWHEEL_TICK_NS, "the last of them holds");
}

/*
 * twheel_unlock() makes sure that a timer fires that was armed meanwhile, although all others are
 * later.
 */
static void test_locked(void)
{
	static const struct twheel_config config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = NSEC_PER_MSEC,
	};
	struct twheel_base *base = twheel_create(&config);
	struct probe *probe = zalloc(1, sizeof(*probe));
	unsigned long flags;

	if (!probe || IS_ERR(base))
		return;
	twheel_init_on(base, &probe->timer, probe_fired);
	test_locked_call(base, &probe->timer);
	probe->deadline = twheel_lock(base, &flags) + 5 * NSEC_PER_MSEC;
	twheel_mod_locked(base, &probe->timer, probe->deadline);
	twheel_unlock(base, flags);
	check(wait_for(atomic_read(&probe->fired)) && probe->fired_at >= probe->deadline,
	      "a timer armed between lock and unlock fires, and not early");
	twheel_cancel_sync(&probe->timer);
	twheel_destroy(base);
	kvfree(probe);
}

static ktime_t next_of(struct twheel_base *base)
{
	struct twheel_stats stats;

	twheel_get_stats(base, &stats);
	return stats.next;
}

static void test_private(clockid_t clock, u64 tick_ns, u64 slack_ns)
{
	struct twheel_config config = { .clock = clock, .tick_ns = tick_ns, .slack_ns = slack_ns };
	struct twheel_base *base = twheel_create(&config);
	struct probe *probes = zalloc(100, sizeof(*probes));
	struct twheel_stats stats;
	unsigned int i, fired = 0;
	u64 drained = 0;

	check(!IS_ERR(base), "a base with clock %d, tick %llu, slack %llu", clock, tick_ns,
	      slack_ns);
	if (IS_ERR(base) || !probes)
		return;
	for (i = 0; i < 100; i++) {
		probe_init(&probes[i]);
		twheel_init_on(base, &probes[i].timer, probe_fired);
		twheel_add(&probes[i].timer, i % 2 ? HOUR : 0);
	}
	for (i = 0; i < 100; i += 2)
		fired += wait_for(atomic_read(&probes[i].fired));
	check(fired == 50, "its timers fire");
	twheel_get_stats(base, &stats);
	check(stats.pending == 50 && stats.expired == 50 && stats.added == 100, "and are counted");
	/* If the host stopped a run for long, the run has used up its time, and continues later. */
	check(wait_for(next_of(base) > ktime_get() + HOUR / 2),
	      "it is armed for the next and not before");
	check(twheel_drain(base, count_drained, &drained) == 50 && drained == 50,
	      "drain hands out the others");
	twheel_destroy(base);
	kvfree(probes);
}

static void test_bases(void)
{
	struct twheel_config config = { .clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS };

	test_bad_config(&config);
	test_private(CLOCK_MONOTONIC, TWHEEL_TICK_NS, 0);
	test_private(CLOCK_BOOTTIME, TWHEEL_TICK_MIN_NS, 0);
	test_private(CLOCK_REALTIME, TWHEEL_TICK_NS, 0);
	test_private(CLOCK_MONOTONIC, 10 * NSEC_PER_MSEC, NSEC_PER_MSEC);
}

/* ---- the time of day is set ------------------------------------------------------ */

static atomic_t sets_told;

static void was_set(struct twheel_base *base)
{
	atomic_inc(&sets_told);
}

static bool clock_moves(s64 ns)
{
	struct timespec64 ts = ktime_to_timespec64(ktime_add_ns(ktime_get_real(), ns));

	return !do_settimeofday64(&ts);
}

static void set_clock_by(s64 ns)
{
	check(clock_moves(ns), "the clock is set by %lld s", div_s64(ns, NSEC_PER_SEC));
}

static bool has_fired(struct probe *probe)
{
	bool fired = wait_for(atomic_read(&probe->fired));

	twheel_cancel_sync(&probe->timer);
	atomic_set(&probe->fired, 0);
	return fired;
}

static void test_set_forward(struct probe *probes)
{
	ktime_t now = ktime_get_real();

	twheel_add_abs(&probes[0].timer, ktime_add_ns(now, HOUR / 2));
	twheel_add_abs(&probes[1].timer, ktime_add_ns(now, 3 * HOUR));
	set_clock_by(HOUR);
	check(has_fired(&probes[0]), "a timer fires whose time was skipped");
	check(twheel_pending(&probes[1].timer), "and a later one does not");
	check(wait_for(atomic_read(&sets_told) == 1), "the base is told");
}

/*
 * Arm a timer for a time that is soon, and set the clock back before it. If the host was away until
 * then, do that again; the base is told each time.
 */
static int set_back_before(struct probe *probe)
{
	const s64 back = 2 * HOUR;
	unsigned int tries;
	int sets = 1;

	for (tries = 0; tries < 20; tries++, sets += 2) {
		ktime_t due = ktime_get_real() + 50 * NSEC_PER_MSEC;

		twheel_add_abs(&probe->timer, due);
		set_clock_by(-back);
		if (ktime_get_real() + back < due)
			break;
		set_clock_by(back);
		twheel_cancel_sync(&probe->timer);
		atomic_set(&probe->fired, 0);
	}
	return sets;
}

static void test_set_back(struct probe *probes)
{
	int sets = set_back_before(&probes[0]);

	msleep(100);
	check(!atomic_read(&probes[0].fired), "a timer waits for its time that comes again");
	twheel_add_abs(&probes[2].timer, ktime_get_real() + 20 * NSEC_PER_MSEC);
	check(has_fired(&probes[2]), "one in between fires");
	check(twheel_mod(&probes[0].timer, 10 * NSEC_PER_MSEC) == 1 && has_fired(&probes[0]),
	      "and one that is armed anew for there");
	twheel_add(&probes[2].timer, HOUR);
	check(twheel_cancel(&probes[2].timer) == 1, "one in between can be cancelled");
	/* Two settings that come soon after each other may be told at once. */
	check(wait_for(atomic_read(&sets_told) > 1) && atomic_read(&sets_told) <= 1 + sets,
	      "the base is told again");
}

/*
 * Arm @timer for @in from now, then for @again or up to @tolerance later. Does it keep its tick?
 */
static bool keeps(struct twheel_timer *timer, u64 in, u64 again, u64 tolerance)
{
	ktime_t now = ktime_get_real(), expires;
	bool kept;

	twheel_add_abs(timer, ktime_add_ns(now, in));
	expires = twheel_expires(timer);
	kept = twheel_mod_abs_range(timer, ktime_add_ns(now, again), tolerance) == 1 &&
	       twheel_expires(timer) == expires;
	return twheel_cancel(timer) == 1 && kept;
}

/*
 * By so little that the wheel waits for the time: timers up to where it was are in the tree, and
 * later ones, such as that of probes[2], in buckets.
 */
static void test_set_back_late(struct probe *probes)
{
	const u64 s = NSEC_PER_SEC;
	ktime_t expires;

	twheel_add(&probes[2].timer, 70 * s);
	expires = twheel_expires(&probes[2].timer);
	set_clock_by(-50 * (s64)s);
	check(keeps(&probes[0].timer, 10 * s + 1, 5 * s, 20 * s),
	      "what may be late keeps a tick that comes again");
	check(twheel_mod_range(&probes[2].timer, 10 * s, 200 * s) == 1 &&
	      twheel_expires(&probes[2].timer) == expires, "and one that is to come");
	check(!keeps(&probes[0].timer, 10 * s + 1, 11 * s, 20 * s) &&
	      !keeps(&probes[0].timer, 60 * s + 1, 5 * s, 20 * s), "but none that it may not have");
	check(twheel_cancel(&probes[2].timer) == 1, "it can be cancelled");
	set_clock_by(50 * s);
}

static void count_all(struct twheel_timer *timer, ktime_t expires, void *arg)
{
	++*(unsigned int *)arg;
}

/*
 * By so little that the wheel stays as it is, and what is due before its time waits beside it: what
 * may be late, what is armed anew and what is cancelled, and in the end the rest.
 */
static void test_set_back_little(struct twheel_base *base, struct probe *probes)
{
	unsigned int handed = 0;
	ktime_t left;

	/* The wheel is told the time once a jiffy, and is ahead of the clock then. */
	msleep(20);
	twheel_add(&probes[0].timer, HOUR);
	check(twheel_hold_ops(base) == TWHEEL_HOLD_OPS,
	      "a base of REALTIME has as many operations in a lock hold as others");
	set_clock_by(-30 * (s64)NSEC_PER_SEC);
	twheel_add_range(&probes[1].timer, 10 * NSEC_PER_SEC, 10 * NSEC_PER_SEC);
	check(twheel_hold_ops(base) == TWHEEL_TREE_OPS,
	      "and fewer while the time of some of its timers comes again");
	left = twheel_remaining(&probes[1].timer);
	check(left > 0 && left <= 20 * (ktime_t)NSEC_PER_SEC,
	      "one that may be late is in between too: in %lld ns", left);
	check(twheel_mod(&probes[1].timer, 15 * NSEC_PER_SEC) == 1 &&
	      twheel_cancel(&probes[1].timer) == 1 && !twheel_pending(&probes[1].timer),
	      "it is armed anew, and cancelled");
	twheel_add_range(&probes[1].timer, 10 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC);
	check(has_fired(&probes[1]), "and armed again it fires");
	twheel_add(&probes[1].timer, 20 * NSEC_PER_SEC);
	twheel_add_range(&probes[2].timer, 10 * NSEC_PER_SEC, 0);
	check(twheel_drain(base, count_all, &handed) == 3 && handed == 3,
	      "drain hands out what is in between, and what is not: %u", handed);
	set_clock_by(30 * NSEC_PER_SEC);
}

#define SET_BASES	40

static atomic_t set_expired;

static void count_expired(struct twheel_base *base, struct twheel_timer **timers, unsigned int nr)
{
	atomic_add(nr, &set_expired);
}

static const struct twheel_sink set_sink = { .expired = count_expired, .wake = stall_wake };

/* A base with a sink has no hrtimer of its own, for which the kernel would look at the clock. */
static struct twheel_base *set_base(struct twheel_timer *timer)
{
	static const struct twheel_config config = {
		.clock = CLOCK_REALTIME, .tick_ns = NSEC_PER_MSEC, .sink = &set_sink,
	};
	struct twheel_base *base = twheel_create(&config);
	unsigned long flags;
	ktime_t now;

	if (IS_ERR(base))
		return NULL;
	now = twheel_lock(base, &flags);
	twheel_add_locked(base, timer, now + HOUR / 2);
	twheel_unlock(base, flags);
	return base;
}

/* Each of many bases learns that the clock was set. */
static void test_set_many(void)
{
	struct twheel_base **bases = zalloc(SET_BASES, sizeof(struct twheel_base *));
	struct twheel_timer *timers = zalloc(SET_BASES, sizeof(*timers));
	unsigned int nr = 0;
	bool good;

	while (bases && timers && nr < SET_BASES && (bases[nr] = set_base(&timers[nr])))
		nr++;
	check(nr == SET_BASES && !atomic_read(&set_expired), "%u bases of REALTIME", nr);
	set_clock_by(HOUR);
	good = wait_for(atomic_read(&set_expired) == nr);
	check(good, "the clock was set past the timers of all of them: %d expire",
	      atomic_read(&set_expired));
	set_clock_by(-(s64)HOUR);
	while (nr)
		twheel_destroy(bases[--nr]);
	kvfree(timers);
	kvfree(bases);
}

static struct telling {
	bool		inside;
	bool		leave;
	bool		left;
	atomic_t	calls;
} telling;

static void tell_slowly(struct twheel_base *base)
{
	atomic_inc(&telling.calls);
	tell(&telling.inside);
	wait_for(told(&telling.leave));
	msleep(50);
	tell(&telling.left);
}

/* Whoever destroys a base, or wants it told, waits until it has been. @fn is one of these. */
static void test_telling(void (*fn)(struct twheel_base *base), const char *name)
{
	static const struct twheel_config config = {
		.clock = CLOCK_REALTIME, .tick_ns = NSEC_PER_MSEC, .was_set = tell_slowly,
	};
	struct twheel_base *base = twheel_create(&config);
	bool waited;

	if (IS_ERR(base))
		return;
	telling = (struct telling) { };
	twheel_tell_set(base);
	check(!atomic_read(&telling.calls), "a base is not told of what was before it");
	set_clock_by(NSEC_PER_SEC);
	wait_for(told(&telling.inside));
	tell(&telling.leave);
	fn(base);
	waited = told(&telling.left);
	check(waited, "%s waits until the base has been told", name);
	wait_for(told(&telling.left));
	if (fn != twheel_destroy) {
		fn(base);
		twheel_destroy(base);
	}
	check(atomic_read(&telling.calls) == 1, "which is told once");
	set_clock_by(-(s64)NSEC_PER_SEC);
}

/**
 * struct heard - a base of REALTIME, and what it was told
 * @base:	the base
 * @calls:	how often it was told that the clock was set
 * @steps:	how often it sets the clock by a second when it is told
 */
struct heard {
	struct twheel_base	*base;
	atomic_t		calls;
	unsigned int		steps;
};

static struct heard heard[3];
static atomic_t workers_inside, misheard;

static struct heard *heard_by(const struct twheel_base *base)
{
	return twheel_owner(base);
}

/* The worker tells one base at a time, in task context. The test may tell one meanwhile. */
static void hear(struct twheel_base *base)
{
	bool worker = current->flags & PF_WQ_WORKER;
	bool alone = !worker || atomic_inc_return(&workers_inside) == 1;
	struct heard *h = heard_by(base);

	if (!alone || !in_task())
		atomic_inc(&misheard);
	usleep_range(2000, 2100);
	if (worker)
		atomic_dec(&workers_inside);
	if (h->steps) {
		h->steps--;
		clock_moves(NSEC_PER_SEC);
	}
	atomic_inc(&h->calls);
}

static bool heard_begin(struct heard *h, unsigned int steps)
{
	const struct twheel_config config = {
		.clock = CLOCK_REALTIME, .tick_ns = NSEC_PER_MSEC, .was_set = hear, .owner = h,
	};

	h->base = twheel_create(&config);
	atomic_set(&h->calls, 0);
	h->steps = steps;
	return !IS_ERR(h->base);
}

/* Are the first @nr bases told that the clock is set now? */
static bool all_hear(unsigned int nr)
{
	unsigned int i, told = 0;

	for (i = 0; i < nr; i++)
		atomic_set(&heard[i].calls, 0);
	set_clock_by(NSEC_PER_SEC);
	while (told < nr && wait_for(atomic_read(&heard[told].calls)))
		told++;
	set_clock_by(-(s64)NSEC_PER_SEC);
	for (i = 0; i < nr; i++)
		twheel_tell_set(heard[i].base);
	return told == nr;
}

/* Each of several bases is told, also when another one is gone. */
static void test_hear(void)
{
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(heard); i++)
		nr += heard_begin(&heard[i], 0);
	check(nr == ARRAY_SIZE(heard), "%u bases of REALTIME that want to be told", nr);
	if (nr != ARRAY_SIZE(heard))
		return;
	check(all_hear(nr), "each of them is told that the clock was set");
	check(!atomic_read(&misheard), "a worker tells one at a time, in task context: %d were not",
	      atomic_read(&misheard));
	while (--nr) {
		twheel_destroy(heard[nr].base);
		check(all_hear(nr), "so is each of the %u that are left when one goes", nr);
	}
	twheel_destroy(heard[0].base);
}

/*
 * The clock is set while a base is being told: the base is told once more. Then it is told no more.
 */
static void test_hear_again(void)
{
	if (!heard_begin(&heard[0], 1))
		return;
	set_clock_by(NSEC_PER_SEC);
	check(wait_for(atomic_read(&heard[0].calls) == 2),
	      "a base that sets the clock when it is told is told of that too");
	twheel_tell_set(heard[0].base);
	check(atomic_read(&heard[0].calls) == 2, "and then no more: %d times",
	      atomic_read(&heard[0].calls));
	set_clock_by(-2 * (s64)NSEC_PER_SEC);
	twheel_destroy(heard[0].base);
}

static struct setting {
	struct twheel_task	task;
	struct twheel_base	*base;
	ktime_t			due;
	bool			set;
} *setting;

/* The clock is set back while its function runs. */
static enum twheel_again set_back(struct twheel_task *task)
{
	setting->due = task->deadline;
	set_clock_by(-(s64)NSEC_PER_SEC * 10);
	tell(&setting->set);
	return TWHEEL_AGAIN;
}

/* Then its deadline is to come again: nothing was left out, and the next is a period after it. */
static void test_set_task(struct twheel_base *base)
{
	struct twheel_task *task;

	setting = zalloc(1, sizeof(*setting));
	if (!setting)
		return;
	task = &setting->task;
	twheel_task_init_on(base, task, set_back, TWHEEL_TASK_PROCESS);
	twheel_task_start(task, 0, HOUR);
	wait_for(told(&setting->set) && twheel_pending(&task->timer));
	check(twheel_task_cancel_sync(task) == 1 && !twheel_task_overruns(task) &&
	      task->deadline == setting->due + HOUR,
	      "a task whose deadline comes again has left out no period: %lld ns",
	      task->deadline - setting->due);
	set_clock_by(10 * NSEC_PER_SEC);
	kvfree(setting);
}

/* A million ns here and there decide nothing: what is armed is hours away, or waited for. */
static void test_set(void)
{
	static const struct twheel_config config = {
		.clock = CLOCK_REALTIME, .tick_ns = NSEC_PER_MSEC, .was_set = was_set,
	};
	struct twheel_base *base = twheel_create(&config);
	struct probe *probes = zalloc(3, sizeof(*probes));
	unsigned int i;

	if (!probes || IS_ERR(base))
		return;
	for (i = 0; i < 3; i++)
		twheel_init_on(base, &probes[i].timer, probe_fired);
	test_set_forward(probes);
	test_set_back(probes);
	test_set_back_late(probes);
	set_clock_by(HOUR);
	check(twheel_cancel_sync(&probes[1].timer) == 1, "what is left can be cancelled");
	test_set_back_little(base, probes);
	test_set_task(base);
	twheel_destroy(base);
	kvfree(probes);
}

static DEFINE_TWHEEL_TIMER(static_timer, rearm_itself);

static void static_fired(struct twheel_timer *timer);
static struct probe static_probe = {
	.timer = TWHEEL_TIMER_INIT(static_fired),
};

static void static_fired(struct twheel_timer *timer)
{
	atomic_inc(&static_probe.fired);
}

static void test_static(void)
{
	twheel_add(&static_probe.timer, 0);
	check(wait_for(atomic_read(&static_probe.fired)), "a timer initialised statically fires");
	twheel_cancel_sync(&static_probe.timer);
	check(!twheel_pending(&static_timer) && !twheel_cancel(&static_timer),
	      "one that is defined so is idle");
}

static int __init twheel_test_init(void)
{
	pr_info("TAP version 14\n");
	test_delays();
	test_deadlines();
	test_callbacks();
	test_slow_callbacks();
	test_behind();
	test_stall();
	test_pending();
	test_tasks();
	test_task_sleepers();
	test_task_restart();
	test_task_accounts();
	test_array();
	test_locked();
	test_bases();
	test_set();
	test_set_many();
	test_hear();
	test_hear_again();
	test_telling(twheel_destroy, "twheel_destroy()");
	test_telling(twheel_tell_set, "twheel_tell_set()");
	test_static();
	return ktap_end();
}

static void __exit twheel_test_exit(void)
{
}

module_init(twheel_test_init);
module_exit(twheel_test_exit);

MODULE_DESCRIPTION("Test of twheel's kernel API");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
