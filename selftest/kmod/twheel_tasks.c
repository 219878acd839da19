// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What each call does to a task, for each state of the task, in each context, for tasks in softirq
 * and in process context, with a period and without: what the call returns, how often the function
 * is called in the end, and for when the task is armed then.
 *
 * Then the other promises of twheel.h about tasks: who may free one, what counts as an overrun, and
 * that a function never runs twice at once.
 *
 * KTAP in the kernel log, a point for each call and state, and one for each promise.
 */
#define pr_fmt(fmt) fmt

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/uio.h>

#include "ktap.h"
#include "twheel.h"

/* So long that no period ends during a test, unless the test wants it. */
#define PERIOD		HOUR
/* The overruns before a call. A start resets them. */
#define OVERRUNS	7

/* ---- the table -------------------------------------------------------------------------- */

/* The last three are states of a task whose function runs, after another call. */
enum state { IDLE, STARTED, DUE, STOPPED, SHUT, RUNNING, RESTARTED, REDUE, CANCELLED, NR_STATES };

static const char * const state_names[NR_STATES] = {
	"idle", "started", "due", "stopped", "shut down", "running", "running and started anew",
	"running and due again", "running and cancelled",
};

/*
 * What follows from the call: nothing, what would have followed without it, or what it starts. If
 * the task is due, the function is called once, and the next time is a period away.
 */
enum after { NONE, SAME, NEW, NOW };

struct cell;

/**
 * struct call - a call
 * @name:	its name
 * @make:	makes the call
 * @sync:	it waits for the function: so the function must not make it, and only contexts that
 *		may sleep
 * @delay:	the delay that it starts the task with
 * @ret:	what it returns, by state
 * @after:	what follows from it, by state, unless the task is shut down
 */
struct call {
	const char	*name;
	int		(*make)(struct cell *cell);
	bool		sync;
	s64		delay;
	s8		ret[NR_STATES];
	enum after	after;
};

/**
 * struct subject - a task
 * @task:	the task
 * @flags:	its flags
 * @period:	its period
 * @inside:	how many calls of the function have not returned
 * @active:	the task's active after the call
 * @overruns:	the task's overruns after the call
 * @due:	the task's deadline in the last call of the function
 * @last:	what the task was armed for in the end
 */
struct subject {
	struct twheel_task	task;
	unsigned int		flags;
	s64			period;
	atomic_t		inside;
	bool			active;
	u64			overruns;
	ktime_t			due;
	ktime_t			last;
};

#include "cells.h"

static int call_start(struct cell *cell)
{
	return twheel_task_start(&cell->it.task, cell->call->delay, cell->it.period);
}

static int call_start_negative(struct cell *cell)
{
	return twheel_task_start(&cell->it.task, 2 * HOUR, -1);
}

static int call_cancel(struct cell *cell)
{
	return twheel_task_cancel(&cell->it.task);
}

static int call_cancel_sync(struct cell *cell)
{
	return twheel_task_cancel_sync(&cell->it.task);
}

static int call_shutdown_sync(struct cell *cell)
{
	return twheel_task_shutdown_sync(&cell->it.task);
}

static int call_overruns(struct cell *cell)
{
	return twheel_task_overruns(&cell->it.task);
}

static const struct call calls[] = {
	/* idle, started, due, stopped, shut, running, started anew, due again, cancelled */
	{ "start", call_start, false, 2 * HOUR, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NEW },
	{ "start, now", call_start, false, 0, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NOW },
	{ "start, negative delay", call_start, false, -HOUR, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NOW },
	{ "start, negative period", call_start_negative, false, 0,
	  { -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL },
	  SAME },
	{ "cancel", call_cancel, false, 0, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NONE },
	{ "cancel_sync", call_cancel_sync, true, 0, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NONE },
	{ "shutdown_sync", call_shutdown_sync, true, 0, { 0, 1, 1, 0, 0, 0, 1, 1, 0 }, NONE },
	{ "overruns", call_overruns, false, 0,
	  { OVERRUNS, OVERRUNS, OVERRUNS, OVERRUNS, OVERRUNS, OVERRUNS, OVERRUNS, OVERRUNS,
	    OVERRUNS }, SAME },
};

/* ---- a cell ----------------------------------------------------------------------------- */

static bool is_run(enum state state)
{
	return state >= RUNNING;
}

static bool is_process(const struct cell *cell)
{
	return cell->it.flags & TWHEEL_TASK_PROCESS;
}

static ktime_t cell_expires(struct cell *cell)
{
	return twheel_expires(&cell->it.task.timer);
}

static void cell_start(struct cell *cell, ktime_t delay)
{
	twheel_task_start(&cell->it.task, delay, cell->it.period);
}

static void cell_bring_about(struct cell *cell)
{
	if (cell->state == STARTED)
		cell_start(cell, HOUR);
	if (cell->state == SHUT)
		twheel_task_shutdown_sync(&cell->it.task);
	if (cell->state == STOPPED) {
		cell_start(cell, 0);
		spin_for(atomic_read(&cell->calls));
	}
}

static bool cell_is_in_state(struct cell *cell)
{
	bool pending = twheel_pending(&cell->it.task.timer);

	switch (cell->state) {
	case STARTED:
	case RESTARTED:
		return pending;
	case DUE:
		return pending && cell->before <= place_now(cell->place);
	case REDUE:
		return is_process(cell) ? work_pending(&cell->it.task.work) : pending;
	default:
		return !pending;
	}
}

static bool cell_interrupts(const struct cell *cell)
{
	return !is_process(cell);
}

static int cell_call(struct cell *cell)
{
	WRITE_ONCE(cell->it.task.overruns, OVERRUNS);
	return cell->call->make(cell);
}

static void cell_look(struct cell *cell)
{
	cell->it.active = READ_ONCE(cell->it.task.active);
	cell->it.overruns = twheel_task_overruns(&cell->it.task);
}

/* The function must be in the right context, not early, and alone. */
static void cell_called(struct cell *cell)
{
	bool softirq = in_serving_softirq();

	cell->it.due = READ_ONCE(cell->it.task.deadline);
	if (atomic_inc_return(&cell->it.inside) != 1 || softirq == is_process(cell) ||
	    place_now(cell->place) < cell->it.due)
		cell->hurried = true;
}

/* The function brings about the state of the cell. */
static void cell_prepare(struct cell *cell)
{
	if (cell->state == RESTARTED)
		cell_start(cell, HOUR);
	if (cell->state == CANCELLED)
		twheel_task_cancel(&cell->it.task);
	if (cell->state != REDUE)
		return;
	cell_start(cell, 0);
	if (is_process(cell))
		spin_for(work_pending(&cell->it.task.work));
}

/* The function: the first time, make the call, or let others make it. */
static enum twheel_again cell_function(struct twheel_task *task)
{
	struct cell *cell = container_of(task, struct cell, it.task);
	enum twheel_again again = cell->state == STOPPED ? TWHEEL_STOP : TWHEEL_AGAIN;

	cell_called(cell);
	if (atomic_inc_return(&cell->calls) == 1 && is_run(cell->state)) {
		cell_prepare(cell);
		cell->elsewhere = cell->there && !is_process(cell) &&
				  raw_smp_processor_id() == there.cpu;
		tell(&cell->running);
		cell_let_make(cell);
	}
	atomic_dec(&cell->it.inside);
	if (is_run(cell->state))
		tell(&cell->left);
	return again;
}

static void cell_init(struct cell *cell)
{
	if (cell->place->base)
		twheel_task_init_on(cell->place->base, &cell->it.task, cell_function,
				    cell->it.flags);
	else
		twheel_task_init(&cell->it.task, cell_function, cell->it.flags);
}

static enum after cell_wants(const struct cell *cell)
{
	return cell->state == SHUT && cell->call->after != SAME ? NONE : cell->call->after;
}

/* How often the function must be called after the call. */
static int cell_calls_after(const struct cell *cell)
{
	enum after after = cell_wants(cell);

	return after == NOW || (after == SAME && (cell->state == DUE || cell->state == REDUE));
}

static int cell_calls(const struct cell *cell)
{
	return (is_run(cell->state) || cell->state == STOPPED) + cell_calls_after(cell);
}

/* Must the task wait for another period in the end? */
static bool cell_goes_on(const struct cell *cell)
{
	if (!cell->it.period || cell->state == STOPPED)
		return false;
	return cell_calls_after(cell) || (cell_wants(cell) == SAME && cell->state == RUNNING);
}

/* The bounds of what the task is armed for in the end. KTIME_MAX if it must not be armed. */
static void cell_bounds(const struct cell *cell, ktime_t *least, ktime_t *most)
{
	const ktime_t tick_ns = cell->place->config.tick_ns;

	*least = KTIME_MAX;
	*most = KTIME_MAX;
	if (cell_goes_on(cell)) {
		*least = cell->it.due + cell->it.period;
		*most = *least + tick_ns - 1;
	} else if (cell_wants(cell) == NEW) {
		*least = cell->begin + cell->call->delay;
		*most = cell->end + cell->call->delay + tick_ns;
	} else if (cell_wants(cell) == SAME && (cell->state == STARTED ||
						cell->state == RESTARTED)) {
		*least = cell->before;
		*most = cell->before;
	}
}

static bool cell_is_active(const struct cell *cell)
{
	if (cell_wants(cell) != SAME)
		return cell_wants(cell) != NONE;
	return cell->state != IDLE && cell->state != SHUT && cell->state != CANCELLED;
}

static bool cell_is_right(const struct cell *cell)
{
	bool started = cell_wants(cell) == NEW || cell_wants(cell) == NOW;
	const struct subject *it = &cell->it;
	ktime_t least, most;

	cell_bounds(cell, &least, &most);
	return !cell->missed && cell->made && !cell->hurried &&
	       cell->ret == cell->call->ret[cell->state] && it->active == cell_is_active(cell) &&
	       it->overruns == (started ? 0 : OVERRUNS) &&
	       atomic_read(&cell->calls) == cell_calls(cell) &&
	       it->last >= least && it->last <= most && cell->rest == (least != KTIME_MAX);
}

static void cell_tell(const struct cell *cell)
{
	pr_info("# in %s, %s, %s, from %s %s: %s%s%sreturned %d, %sactive, %llu overruns, called %d times, last %lld ns after, for %lld ns from then in the end, was %lld; %d left to cancel\n",
		cell->place->name, is_process(cell) ? "process" : "softirq",
		cell->it.period ? "periodic" : "once",
		cell->own ? "its function" : context_names[cell->context],
		cell->there ? "there" : "here", cell->missed ? "missed, " : "",
		cell->made ? "" : "not made, ", cell->hurried ? "hurried, " : "", cell->ret,
		cell->it.active ? "" : "not ", cell->it.overruns, atomic_read(&cell->calls),
		cell->it.due - cell->begin,
		cell->it.last == KTIME_MAX ? -1 : cell->it.last - cell->begin,
		cell->before == KTIME_MAX ? -1 : cell->before - cell->begin, cell->rest);
}

/* Give the task the time to be called once too often, and to be armed. */
static void cell_end(struct cell *cell)
{
	if (!cell->missed)
		spin_for(atomic_read(&cell->calls) >= cell_calls(cell));
	if (cell_goes_on(cell))
		spin_for(twheel_pending(&cell->it.task.timer));
	if (is_run(cell->state) || cell->state == DUE)
		usleep_range(200, 250);
	cell->it.last = cell_expires(cell);
	cell->rest = twheel_task_cancel_sync(&cell->it.task);
	twheel_task_shutdown_sync(&cell->it.task);
}

/* ---- all cells -------------------------------------------------------------------------- */

/* Is there a cell with these properties? */
static bool may_be(const struct cell *cell)
{
	if (cell->call->sync && cell->context != IN_TASK)
		return false;
	/* To wait for a function in process context may sleep. A task is due while nobody may. */
	if (cell->call->sync && is_process(cell) && cell->state == DUE && !cell->there)
		return false;
	return cell_can_be(cell);
}

/* Leave out cells that say the same as others, to save time. */
static bool is_left_out(const struct cell *cell)
{
	if (cell->own || cell->call->sync)
		return false;
	if (cell->place != &places[ON_CPU] && (cell->there || cell->context != IN_TASK) &&
	    (!cell->there || cell->context != IN_HARDIRQ))
		return true;
	return cell->there && (cell->context == IN_ATOMIC || cell->context == IN_SOFTIRQ);
}

/* All cells of one call and one state. */
static void test_state(struct cell *cell, const struct call *call, enum state state)
{
	unsigned int i, nr = 0, bad = 0;

	/* One bit each for the place, the context, there, own, the period and the flags. */
	for (i = 0; i < SINK_MONO * NR_CONTEXTS * 16 && !bad; i++) {
		struct cell what = {
			.call = call, .state = state, .it.flags = i % 2 ? TWHEEL_TASK_PROCESS : 0,
			.it.period = i / 2 % 2 ? PERIOD : 0, .own = i / 4 % 2, .there = i / 8 % 2,
			.context = i / 16 % NR_CONTEXTS, .place = &places[i / 16 / NR_CONTEXTS],
		};

		if (!may_be(&what) || is_left_out(&what))
			continue;
		nr++;
		bad += !try_cell(cell, &what);
	}
	check(!bad, "%s of a task that is %s, in each of %u kinds and contexts", call->name,
	      state_names[state], nr);
}

static void test_states(void)
{
	struct cell *cell = zalloc(1, sizeof(*cell));
	unsigned int i, state;

	if (!cell)
		return;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (state = 0; state < NR_STATES && tests_failed < FAILED_MAX; state++)
			test_state(cell, &calls[i], state);
	kvfree(cell);
}

/* ---- who may free a task ---------------------------------------------------------------- */

struct gone {
	struct twheel_task	task;
	enum twheel_again	again;
};

static atomic_t nr_gone;

/* Fill the task with nonsense: whatever reads it afterwards shows. */
static enum twheel_again free_itself(struct twheel_task *task)
{
	struct gone *gone = container_of(task, struct gone, task);
	enum twheel_again again = gone->again;

	memset(gone, 0x6b, sizeof(*gone));
	kvfree(gone);
	atomic_inc(&nr_gone);
	return again;
}

static bool start_gone(unsigned int flags, s64 period, enum twheel_again again)
{
	struct gone *gone = zalloc(1, sizeof(*gone));
	int before = atomic_read(&nr_gone);

	if (!gone)
		return false;
	gone->again = again;
	twheel_task_init(&gone->task, free_itself, flags);
	twheel_task_start(&gone->task, 0, period);
	return wait_for(atomic_read(&nr_gone) == before + 1);
}

static void test_free(void)
{
	unsigned int flags;

	for (flags = 0; flags <= TWHEEL_TASK_PROCESS; flags += TWHEEL_TASK_PROCESS) {
		const char *where = flags ? "process" : "softirq";

		check(start_gone(flags, HOUR, TWHEEL_STOP),
		      "%s: a function that returns TWHEEL_STOP may free the task", where);
		check(start_gone(flags, 0, TWHEEL_STOP) && start_gone(flags, 0, TWHEEL_AGAIN),
		      "%s: that of a task without a period may, whatever it returns", where);
	}
	/* If the work still uses the task, it does so about now. */
	msleep(20);
}

/* ---- whose workqueue ------------------------------------------------------------------------ */

/**
 * struct named - a task, and what the thread that calls its function is called
 * @task:	the task
 * @name:	the kernel adds the name of the workqueue to that of the thread
 * @read:	@name has been read
 */
struct named {
	struct twheel_task	task;
	char			name[64];
	bool			read;
};

/* kernel_read() does not read files of /proc. */
static enum twheel_again named_function(struct twheel_task *task)
{
	struct named *named = container_of(task, struct named, task);
	struct kvec kvec = { .iov_base = named->name, .iov_len = sizeof(named->name) - 1 };
	struct file *file = filp_open("/proc/self/comm", O_RDONLY, 0);
	struct kiocb kiocb;
	struct iov_iter iter;

	if (!IS_ERR(file)) {
		init_sync_kiocb(&kiocb, file);
		iov_iter_kvec(&iter, READ, &kvec, 1, kvec.iov_len);
		seq_read_iter(&kiocb, &iter);
		filp_close(file, NULL);
	}
	tell(&named->read);
	return TWHEEL_STOP;
}

static void test_queue(void)
{
	struct named *named = zalloc(1, sizeof(*named));

	if (!named)
		return;
	twheel_task_init(&named->task, named_function, TWHEEL_TASK_PROCESS);
	twheel_task_start(&named->task, 0, 0);
	wait_for(told(&named->read));
	twheel_task_cancel_sync(&named->task);
	check(strstr(named->name, "+twheel"),
	      "a function is called on a workqueue of twheel's: %.*s",
	      (int)strcspn(named->name, "\n"), named->name);
	kvfree(named);
}

/* ---- overruns ----------------------------------------------------------------------------- */

#define SLOW_PERIOD	(4 * NSEC_PER_MSEC)
#define SLOW_CALLS	12
#define SLOW_TRIES	100	/* until the host was there for a moment */

/**
 * struct slow - a task whose function takes two and a half periods, or may be called so late
 * @task:	the task
 * @flags:	its flags
 * @calls:	how often the function was called
 * @due:	when the last call was due
 * @end:	when the function last returned
 * @overruns:	the overruns up to the last call
 * @wrong:	how often a deadline was not later by one period and those that were skipped
 * @early:	how often the next deadline was over already when the function returned
 * @two:	how often two periods were skipped. On a slow machine more are
 */
struct slow {
	struct twheel_task	task;
	unsigned int		flags;
	atomic_t		calls;
	ktime_t			due;
	ktime_t			end;
	u64			overruns;
	unsigned int		wrong;
	unsigned int		early;
	unsigned int		two;
};

/* Compare this call of the function with the one before. */
static void slow_note(struct slow *slow)
{
	struct twheel_task *task = &slow->task;
	u64 more = twheel_task_overruns(task) - slow->overruns;
	s64 step = ktime_sub(task->deadline, slow->due);

	if (atomic_read(&slow->calls)) {
		slow->wrong += step != (s64)(more + 1) * SLOW_PERIOD;
		slow->early += ktime_to_ns(task->deadline) <= slow->end;
		slow->two += more == 2;
	}
	slow->due = task->deadline;
	slow->overruns += more;
}

static enum twheel_again slow_function(struct twheel_task *task)
{
	struct slow *slow = container_of(task, struct slow, task);

	slow_note(slow);
	while (ktime_get() < slow->due + 5 * SLOW_PERIOD / 2)
		relax();
	slow->end = ktime_get();
	atomic_inc(&slow->calls);
	return TWHEEL_AGAIN;
}

/* A base that has used more than half of a CPU pauses, and forgets that soon after. */
static void slow_run(struct slow *slow)
{
	atomic_set(&slow->calls, 0);
	slow->overruns = 0;
	twheel_task_start(&slow->task, 0, SLOW_PERIOD);
	wait_for(atomic_read(&slow->calls) >= SLOW_CALLS);
	twheel_task_cancel_sync(&slow->task);
	msleep(200);
}

static void test_overruns(unsigned int flags, const char *where)
{
	struct slow *slow = zalloc(1, sizeof(*slow));
	unsigned int tries;

	if (!slow)
		return;
	twheel_task_init(&slow->task, slow_function, flags);
	for (tries = 0; tries < SLOW_TRIES && !slow->two; tries++)
		slow_run(slow);
	check(atomic_read(&slow->calls) >= SLOW_CALLS && !slow->wrong,
	      "%s: as many periods as are left out are overruns, and the phase is kept: %u wrong",
	      where, slow->wrong);
	check(!slow->early, "%s: no period that is over is still to come: %u were", where,
	      slow->early);
	check(slow->two, "%s: a function of two and a half periods has two overruns: %u times",
	      where, slow->two);
	twheel_task_start(&slow->task, HOUR, HOUR);
	check(slow->overruns && !twheel_task_overruns(&slow->task),
	      "%s: a start forgets the %llu overruns", where, slow->overruns);
	twheel_task_cancel_sync(&slow->task);
	kvfree(slow);
}

/* ---- a tolerance that is longer than the period -------------------------------------------- */

/* So late that the tick is one of each 60, or of each 600. */
#define RARE_LATE_NS	(200 * NSEC_PER_MSEC)
#define RARE_CALLS	6

static enum twheel_again rare_function(struct twheel_task *task)
{
	struct slow *slow = container_of(task, struct slow, task);

	slow_note(slow);
	slow->end = ktime_get();
	atomic_inc(&slow->calls);
	return TWHEEL_AGAIN;
}

/* The periods that pass before the function is called are skipped: it is not called for them. */
static void test_skipped(unsigned int flags, const char *where)
{
	struct slow *slow = zalloc(1, sizeof(*slow));
	int calls;

	if (!slow)
		return;
	twheel_task_init(&slow->task, rare_function, flags);
	twheel_task_start_range(&slow->task, 0, SLOW_PERIOD, RARE_LATE_NS);
	wait_for(atomic_read(&slow->calls) >= RARE_CALLS);
	twheel_task_cancel_sync(&slow->task);
	calls = atomic_read(&slow->calls);
	check(calls >= RARE_CALLS && !slow->wrong && !slow->early && slow->overruns >= 5 * calls,
	      "%s: later than its period, it skips periods: %llu at %d calls, %u wrong",
	      where, slow->overruns, calls, slow->wrong + slow->early);
	kvfree(slow);
}

/* ---- what a start is counted as ------------------------------------------------------------ */

/**
 * struct held - a task whose function returns when it is told to
 * @task:	the task
 * @calls:	how often the function was called
 * @due:	the task's deadline in the last call
 * @leave:	the function may return
 */
struct held {
	struct twheel_task	task;
	atomic_t		calls;
	ktime_t			due;
	bool			leave;
};

static enum twheel_again held_function(struct twheel_task *task)
{
	struct held *held = container_of(task, struct held, task);

	atomic_inc(&held->calls);
	wait_for(told(&held->leave));
	return TWHEEL_STOP;
}

static bool rearmed_is(const struct place *place, u64 rearmed)
{
	struct twheel_stats s;

	twheel_get_stats(place->base, &s);
	if (s.rearmed == rearmed)
		return true;
	pr_info("# in %s: %llu were armed anew, not %llu\n", place->name, s.rearmed, rearmed);
	return false;
}

/*
 * A task that is due is no longer armed. So a start says that, although the call will still come.
 */
static void test_rearmed(const struct place *place)
{
	struct held *held = zalloc(1, sizeof(*held));
	struct twheel_stats s;
	bool good;

	if (!held)
		return;
	twheel_get_stats(place->base, &s);
	twheel_task_init_on(place->base, &held->task, held_function, TWHEEL_TASK_PROCESS);
	good = !twheel_task_start(&held->task, HOUR, 0) && rearmed_is(place, s.rearmed) &&
	       twheel_task_start(&held->task, 0, 0) == 1 && rearmed_is(place, s.rearmed + 1) &&
	       wait_for(atomic_read(&held->calls)) &&
	       !twheel_task_start(&held->task, 0, 0) && wait_for(work_pending(&held->task.work)) &&
	       twheel_task_start(&held->task, HOUR, 0) == 1 && rearmed_is(place, s.rearmed + 1);
	check(good, "%s: a start counts as armed anew if the task was armed, and only then",
	      place->name);
	tell(&held->leave);
	twheel_task_cancel_sync(&held->task);
	kvfree(held);
}

/* ---- when the time of a task and a call meet ------------------------------------------------- */

#define MEETINGS	100
/* How long an expiry is held up at most, so that a call or a work can come meanwhile. */
#define MEET_NS		NSEC_PER_MSEC

/**
 * struct meeting - a task whose work is called, and a call that is made at about that time
 * @task:	the task, without a period
 * @calls:	how often the function was called
 * @queued:	how often the function saw the task's work queued
 * @call:	the call, on the other CPU
 * @at:		when it is made; or until when no other task may have a CPU
 * @ret:	what it returned
 * @busy:	the task's work was queued or running at that time
 * @made:	the call has returned
 * @inside:	the function has been called
 * @late:	hold the expiry up before it queues the work; else before it changes the task
 * @over:	the other CPU need not be kept busy any more
 */
struct meeting {
	struct twheel_task	task;
	atomic_t		calls;
	unsigned int		queued;
	int			(*call)(struct twheel_task *task);
	ktime_t			at;
	int			ret;
	bool			busy;
	bool			made;
	bool			inside;
	bool			late;
	bool			over;
};

/* The meeting whose task is about to expire, or NULL. */
static struct meeting *meeting;

/* The other CPU continues soon after the expiry; at @latest, if the expiry is not seen. */
static void meet_at(struct meeting *m, ktime_t latest)
{
	WRITE_ONCE(m->at, min(latest, ktime_get() + 2 * NSEC_PER_MSEC));
	WRITE_ONCE(meeting, m);
}

#ifdef CONFIG_KPROBES
/*
 * Has that come for which the expiry is held up? A start, a cancel, or the beginning of the work.
 */
static bool meet_is_made(const struct meeting *m)
{
	if (m->call)
		return told(&m->made) || !READ_ONCE(m->task.active);
	return !work_pending(&m->task.work) || told(&m->inside);
}

/*
 * Let time pass between the expiry and what it changes in the task, or before it queues the work.
 */
static int dawdle(struct kprobe *probe, struct pt_regs *regs)
{
	struct meeting *m = READ_ONCE(meeting);
	bool queues = !strcmp(probe->symbol_name, "queue_work_on");

	if (!m || !in_serving_softirq() || queues != m->late)
		return 0;
	WRITE_ONCE(m->at, 0);
	look_for(MEET_NS, queues && !m->call ? told(&m->inside) : meet_is_made(m), cpu_relax());
	return 0;
}

static struct kprobe dawdlers[] = {
	{ .symbol_name = "twheel_task_expired", .pre_handler = dawdle },
	{ .symbol_name = "queue_work_on", .pre_handler = dawdle },
};

static void dawdle_begin(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dawdlers); i++)
		check(!register_kprobe(&dawdlers[i]), "%s takes its time",
		      dawdlers[i].symbol_name);
}

static void dawdle_end(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dawdlers); i++)
		unregister_kprobe(&dawdlers[i]);
}
#else
/* These moments are shorter on such a machine. */
static void dawdle_begin(void) { }
static void dawdle_end(void) { }
#endif

/* By how much a call may miss the expiry: where the expiry can be seen, it comes after it. */
static s64 late_ns(void)
{
	return IS_ENABLED(CONFIG_KPROBES) ? NSEC_PER_MSEC :
					    (s64)(get_random_u32() % (40 * NSEC_PER_USEC));
}

static enum twheel_again met_function(struct twheel_task *task)
{
	struct meeting *m = container_of(task, struct meeting, task);

	tell(&m->inside);
	m->queued += look_for(MEET_NS, work_pending(&task->work), cpu_relax());
	atomic_inc(&m->calls);
	return TWHEEL_STOP;
}

static void meet_there(void *arg)
{
	struct meeting *m = arg;

	while (ktime_get() < READ_ONCE(m->at))
		cpu_relax();
	m->ret = m->call(&m->task);
	m->busy = work_busy(&m->task.work);
	tell(&m->made);
}

static int start_later(struct twheel_task *task)
{
	return twheel_task_start(task, HOUR, 0);
}

/* For each start, either the function is called, or a call has said that it will not be. */
static bool meet_call(struct meeting *m, int (*call)(struct twheel_task *task), bool late)
{
	int starts = 1 + (call == start_later), rest;

	*m = (struct meeting) { .call = call, .late = late };
	twheel_task_init(&m->task, met_function, TWHEEL_TASK_PROCESS);
	m->at = KTIME_MAX;
	there_start(meet_there, m);
	twheel_task_start(&m->task, TWHEEL_TICK_NS, 0);
	meet_at(m, twheel_expires(&m->task.timer) + late_ns());
	stay_for(told(&m->made));
	there_wait();
	WRITE_ONCE(meeting, NULL);
	rest = twheel_task_cancel_sync(&m->task);
	if (call == twheel_task_cancel_sync && (m->busy || rest))
		return false;
	return atomic_read(&m->calls) + m->ret + rest == starts;
}

static void test_meet_call(struct meeting *m, int (*call)(struct twheel_task *task),
			   const char *name)
{
	unsigned int i, bad = 0;

	if (!there.task) {
		skip("one CPU", "%s that comes when the time of the task does", name);
		return;
	}
	for (i = 0; i < MEETINGS; i++)
		bad += !meet_call(m, call, i % 2);
	check(!bad, "%s that comes when the time of the task does: %u of %u are not right", name,
	      bad, i);
}

/* Keep this CPU busy until then. */
static void meet_yield(const struct meeting *m)
{
	if (ktime_get() >= READ_ONCE(m->at))
		cond_resched();
	else
		cpu_relax();
}

static void meet_wait(void *arg)
{
	struct meeting *m = arg;

	while (!told(&m->over))
		meet_yield(m);
}

/*
 * A task that is due is started again. Its work, which is queued already, begins when the new time
 * comes. Then the function must be called once, and may free the task: no work of the task may be
 * left.
 */
static bool meet_work(struct meeting *m)
{
	int ret, rest;

	atomic_set(&m->calls, 0);
	m->queued = 0;
	m->inside = false;
	WRITE_ONCE(m->at, KTIME_MAX);
	twheel_task_start(&m->task, 0, 0);
	look_for(NSEC_PER_SEC, work_pending(&m->task.work) || atomic_read(&m->calls), cpu_relax());
	ret = twheel_task_start(&m->task, 0, 0);
	meet_at(m, twheel_expires(&m->task.timer) + late_ns());
	look_for(NSEC_PER_SEC, atomic_read(&m->calls) + ret == 2, meet_yield(m));
	WRITE_ONCE(meeting, NULL);
	rest = twheel_task_cancel_sync(&m->task);
	return !(ret && m->queued) && atomic_read(&m->calls) + ret + rest == 2;
}

static void test_meet_work(struct meeting *m)
{
	unsigned int i, bad = 0;

	*m = (struct meeting) { };
	twheel_task_init(&m->task, met_function, TWHEEL_TASK_PROCESS);
	if (there.task)
		there_start(meet_wait, m);
	for (i = 0; i < MEETINGS; i++) {
		m->late = i % 2;
		bad += !meet_work(m);
	}
	tell(&m->over);
	if (there.task)
		there_wait();
	check(!bad, "no work of a task is left when its function is called: it was %u times of %u",
	      bad, i);
}

static void test_meetings(void)
{
	struct meeting *m = zalloc(1, sizeof(*m));

	if (!m)
		return;
	dawdle_begin();
	test_meet_call(m, start_later, "a start");
	test_meet_call(m, twheel_task_cancel, "a cancel");
	test_meet_call(m, twheel_task_cancel_sync, "a cancel_sync");
	test_meet_work(m);
	dawdle_end();
	kvfree(m);
}

/* ---- the end of time ------------------------------------------------------------------------ */

static bool ends_never(struct held *held, ktime_t delay, ktime_t period)
{
	twheel_task_start(&held->task, delay, period);
	return wait_for(twheel_expires(&held->task.timer) == KTIME_MAX) &&
	       twheel_task_cancel_sync(&held->task) == 1;
}

static enum twheel_again again_function(struct twheel_task *task)
{
	return TWHEEL_AGAIN;
}

static void test_never(unsigned int flags, const char *where)
{
	struct held *held = zalloc(1, sizeof(*held));

	if (!held)
		return;
	twheel_task_init(&held->task, again_function, flags);
	check(ends_never(held, KTIME_MAX, 0) && ends_never(held, KTIME_MAX, KTIME_MAX) &&
	      ends_never(held, 0, KTIME_MAX),
	      "%s: neither a delay nor a period to the end of time wraps", where);
	twheel_task_shutdown_sync(&held->task);
	kvfree(held);
}

/* ---- tasks that may be late ----------------------------------------------------------------- */

/* So late that the tick is one of each 600, whatever the delay is. */
#define LATE_NS		(2 * NSEC_PER_SEC)
#define SHARED_NS	(600 * TWHEEL_TICK_NS)

static bool is_shared(const struct twheel_task *task)
{
	u32 rest;

	div_u64_rem(twheel_expires(&task->timer), SHARED_NS, &rest);
	return !rest;
}

/* Armed for one of the ticks that it may be called in, and for one that others share. */
static bool is_late(const struct twheel_task *task, ktime_t begin, ktime_t end)
{
	ktime_t expires = twheel_expires(&task->timer);

	return expires >= begin && expires <= end + (ktime_t)LATE_NS && is_shared(task);
}

static enum twheel_again late_function(struct twheel_task *task)
{
	struct held *held = container_of(task, struct held, task);

	held->due = task->deadline;
	atomic_inc(&held->calls);
	return TWHEEL_AGAIN;
}

/* Each time as late as that, until a start says otherwise. One that is refused changes nothing. */
static void test_late(unsigned int flags, const char *where)
{
	struct held *held = zalloc(1, sizeof(*held));
	struct twheel_task *task = &held->task;
	ktime_t begin, end, due;
	bool good;

	if (!held)
		return;
	twheel_task_init(task, late_function, flags);
	begin = ktime_get() + HOUR;
	good = !twheel_task_start_range(task, HOUR + 7, HOUR, LATE_NS);
	end = ktime_get() + HOUR + 7;
	check(good && is_late(task, begin, end), "%s: a task may be late, and shares its tick",
	      where);
	due = twheel_expires(&task->timer);
	check(twheel_task_start_range(task, 0, 0, (u64)KTIME_MAX + 1) == -EINVAL &&
	      twheel_task_start_range(task, 0, 0, U64_MAX) == -EINVAL &&
	      twheel_task_start_range(task, 0, -1, 0) == -EINVAL &&
	      twheel_expires(&task->timer) == due, "%s: but not later than ever", where);
	twheel_task_start_range(task, 0, HOUR + 7, LATE_NS);
	wait_for(atomic_read(&held->calls) && twheel_pending(&task->timer));
	due = task->deadline;
	check(is_late(task, due, due), "%s: so it may be the next time", where);
	check(due == held->due + HOUR + 7,
	      "%s: a period after the deadline before, however late it was called", where);
	check(twheel_task_start(task, HOUR, HOUR) == 1 &&
	      twheel_expires(&task->timer) < task->deadline + (ktime_t)TWHEEL_TICK_NS,
	      "%s: and started anew it is exact", where);
	twheel_task_shutdown_sync(task);
	kvfree(held);
}

/* ---- never twice at once ------------------------------------------------------------------ */

#define HAMMER_CALLS	50

struct hammered {
	struct twheel_task	task;
	atomic_t		calls;
	atomic_t		inside;
	atomic_t		overlaps;
	bool			over;
};

static enum twheel_again hammered_function(struct twheel_task *task)
{
	struct hammered *h = container_of(task, struct hammered, task);

	if (atomic_inc_return(&h->inside) != 1)
		atomic_inc(&h->overlaps);
	keep_busy_ns(200 * NSEC_PER_USEC);
	atomic_dec(&h->inside);
	atomic_inc(&h->calls);
	return TWHEEL_AGAIN;
}

static void hammer(void *arg)
{
	struct hammered *h = arg;

	while (!told(&h->over)) {
		twheel_task_start(&h->task, 0, NSEC_PER_MSEC);
		usleep_range(50, 60);
	}
}

/* Start the task on both CPUs for the next tick, whether or not its function runs. */
static void test_once(unsigned int flags, const char *where)
{
	struct hammered *h = zalloc(1, sizeof(*h));

	if (!h)
		return;
	twheel_task_init(&h->task, hammered_function, flags);
	if (there.task)
		there_start(hammer, h);
	while (atomic_read(&h->calls) < HAMMER_CALLS) {
		twheel_task_start(&h->task, 0, NSEC_PER_MSEC);
		usleep_range(1500, 1600);
	}
	tell(&h->over);
	if (there.task)
		there_wait();
	twheel_task_cancel_sync(&h->task);
	check(!atomic_read(&h->overlaps) && !atomic_read(&h->inside),
	      "%s: a function runs once at a time, whoever starts the task meanwhile: %d did not",
	      where, atomic_read(&h->overlaps));
	kvfree(h);
}

static int __init twheel_tasks_init(void)
{
	pr_info("TAP version 14\n");
	contexts_begin();
	if (places_begin(NULL)) {
		test_states();
		test_free();
		test_overruns(0, "softirq");
		test_overruns(TWHEEL_TASK_PROCESS, "process");
		test_skipped(0, "softirq");
		test_skipped(TWHEEL_TASK_PROCESS, "process");
		test_queue();
		test_rearmed(&places[ON_MONO]);
		test_rearmed(&places[ON_BOOT]);
		test_meetings();
		test_never(0, "softirq");
		test_never(TWHEEL_TASK_PROCESS, "process");
		test_never(TWHEEL_TASK_DELAY, "fixed delay");
		test_late(0, "softirq");
		test_late(TWHEEL_TASK_PROCESS, "process");
		test_once(0, "softirq");
		test_once(TWHEEL_TASK_PROCESS, "process");
	}
	places_end();
	contexts_end();
	return ktap_end();
}

static void __exit twheel_tasks_exit(void)
{
}

module_init(twheel_tasks_init);
module_exit(twheel_tasks_exit);

MODULE_DESCRIPTION("Test of twheel.h: tasks, by call, state and context");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
