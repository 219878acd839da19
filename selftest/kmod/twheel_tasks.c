// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What each call does to a task, by the state of the task, in each context, for tasks in softirq
 * and in process context, with a period and without: what the call returns, how often the
 * function is called in the end, and for when the task is armed then.
 *
 * Then what else twheel.h promises of tasks: who may free one, what is an overrun, and that a
 * function never runs twice at once.
 *
 * KTAP in the kernel log, a point for each call and state, and one for each promise.
 */
#define pr_fmt(fmt) fmt

#include <linux/module.h>

#include "contexts.h"
#include "ktap.h"
#include "kwait.h"
#include "places.h"
#include "twheel.h"

#define TRIES		10
#define SYNC_TRIES	3
/* So many points that failed are enough: each waits for what does not come. */
#define FAILED_MAX	6
/* So long that no period ends in a test, unless it shall. */
#define PERIOD		HOUR
/* What the overruns are before a call. A start forgets them. */
#define OVERRUNS	7

/* ---- the table -------------------------------------------------------------------------- */

/* The last three are those of a task whose function runs, after another call. */
enum state { IDLE, STARTED, DUE, STOPPED, SHUT, RUNNING, RESTARTED, REDUE, CANCELLED, NR_STATES };

static const char * const state_names[NR_STATES] = {
	"idle", "started", "due", "stopped", "shut down", "running", "running and started anew",
	"running and due again", "running and cancelled",
};

/*
 * What comes of the call: nothing more, what would have come without it, or what it starts. Then
 * the function is called once that was due, and each other time is a period away.
 */
enum after { NONE, SAME, NEW, NOW };

struct cell;

/**
 * struct call - a call
 * @name:	for people
 * @make:	makes it
 * @sync:	it waits for the function: not from there, and only where it may sleep
 * @delay:	what it starts the task for
 * @ret:	what it returns, by state
 * @after:	and what comes of it, unless the task is shut down
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
 * struct cell - a call, a state, and where
 * @task:	the task
 * @place:	its base
 * @flags:	its flags
 * @period:	its period
 * @call:	the call
 * @state:	the task's when it comes
 * @context:	of the call
 * @there:	on the other CPU
 * @own:	from the task's function
 * @calls:	of the function
 * @inside:	how many of these have not returned
 * @running:	the function has been called, for the call to be made
 * @entered:	the call is being made
 * @made:	and has been made
 * @left:	the function returns
 * @elsewhere:	the callback runs on the CPU that shall make the call
 * @missed:	the task was not in @state when the call came
 * @hurried:	the call did not wait for the function, the function came early, or twice at once
 * @ret:	what the call returned
 * @active:	the task's after it
 * @overruns:	the same
 * @rest:	what was left to cancel in the end
 * @begin:	when the call began
 * @end:	and when it had ended
 * @due:	the deadline of the last call of the function
 * @before:	what the task was armed for before the call
 * @last:	and in the end
 */
struct cell {
	struct twheel_task	task;
	const struct place	*place;
	unsigned int		flags;
	s64			period;
	const struct call	*call;
	enum state		state;
	enum context		context;
	bool			there;
	bool			own;
	atomic_t		calls;
	atomic_t		inside;
	bool			running;
	bool			entered;
	bool			made;
	bool			left;
	bool			elsewhere;
	bool			missed;
	bool			hurried;
	bool			active;
	int			ret;
	int			rest;
	u64			overruns;
	ktime_t			begin;
	ktime_t			end;
	ktime_t			due;
	ktime_t			before;
	ktime_t			last;
};

static int call_start(struct cell *cell)
{
	return twheel_task_start(&cell->task, cell->call->delay, cell->period);
}

static int call_start_negative(struct cell *cell)
{
	return twheel_task_start(&cell->task, 2 * HOUR, -1);
}

static int call_cancel(struct cell *cell)
{
	return twheel_task_cancel(&cell->task);
}

static int call_cancel_sync(struct cell *cell)
{
	return twheel_task_cancel_sync(&cell->task);
}

static int call_shutdown_sync(struct cell *cell)
{
	return twheel_task_shutdown_sync(&cell->task);
}

static int call_overruns(struct cell *cell)
{
	return twheel_task_overruns(&cell->task);
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
	return cell->flags & TWHEEL_TASK_PROCESS;
}

static ktime_t cell_expires(struct cell *cell)
{
	return twheel_expires(&cell->task.timer);
}

static void cell_make_due(struct cell *cell)
{
	twheel_task_start(&cell->task, 0, cell->period);
	spin_for(place_now(cell->place) >= cell_expires(cell));
}

static bool cell_is_in_state(struct cell *cell)
{
	bool pending = twheel_pending(&cell->task.timer);

	switch (cell->state) {
	case STARTED:
	case RESTARTED:
		return pending;
	case DUE:
		return pending && cell->before <= place_now(cell->place);
	case REDUE:
		return is_process(cell) ? work_pending(&cell->task.work) : pending;
	default:
		return !pending;
	}
}

/* Make the call, in whatever context this is. */
static void cell_make(void *arg)
{
	struct cell *cell = arg;

	if (cell->state == DUE && !cell->there)
		cell_make_due(cell);
	cell->before = cell_expires(cell);
	cell->missed = cell->elsewhere || !cell_is_in_state(cell);
	WRITE_ONCE(cell->task.overruns, OVERRUNS);
	cell->begin = place_now(cell->place);
	tell(&cell->entered);
	cell->ret = cell->call->make(cell);
	if (is_run(cell->state) && cell->call->sync != told(&cell->left))
		cell->hurried = true;
	cell->active = READ_ONCE(cell->task.active);
	cell->overruns = twheel_task_overruns(&cell->task);
	cell->end = place_now(cell->place);
	tell(&cell->made);
}

static void cell_make_there(void *arg)
{
	struct cell *cell = arg;

	if (!is_run(cell->state) || spin_for(told(&cell->running)))
		in_context(cell->context, cell_make, cell);
}

/* The function is in the right context, not early, and alone. */
static void cell_called(struct cell *cell)
{
	bool softirq = in_serving_softirq();

	cell->due = READ_ONCE(cell->task.deadline);
	if (atomic_inc_return(&cell->inside) != 1 || softirq == is_process(cell) ||
	    place_now(cell->place) < cell->due)
		cell->hurried = true;
}

/* Bring about the state, from the function. */
static void cell_prepare(struct cell *cell)
{
	if (cell->state == RESTARTED)
		twheel_task_start(&cell->task, HOUR, cell->period);
	if (cell->state == CANCELLED)
		twheel_task_cancel(&cell->task);
	if (cell->state != REDUE)
		return;
	twheel_task_start(&cell->task, 0, cell->period);
	if (is_process(cell))
		spin_for(work_pending(&cell->task.work));
}

/* Make the call, or give others the time to. */
static void cell_let_make(struct cell *cell)
{
	if (cell->own)
		cell_make(cell);
	else if (!cell->there && !is_process(cell))
		in_context(cell->context, cell_make, cell);
	else if (cell->elsewhere)
		return;
	else if (!cell->call->sync)
		spin_for(told(&cell->made));
	else if (spin_for(told(&cell->entered)))
		keep_busy_ns(NSEC_PER_MSEC / 2);
}

/* The function has the call made, the first time, or lets others make it. */
static enum twheel_again cell_function(struct twheel_task *task)
{
	struct cell *cell = container_of(task, struct cell, task);
	enum twheel_again again = cell->state == STOPPED ? TWHEEL_STOP : TWHEEL_AGAIN;

	cell_called(cell);
	if (atomic_inc_return(&cell->calls) == 1 && is_run(cell->state)) {
		cell_prepare(cell);
		cell->elsewhere = cell->there && !is_process(cell) &&
				  raw_smp_processor_id() == there.cpu;
		tell(&cell->running);
		cell_let_make(cell);
	}
	atomic_dec(&cell->inside);
	if (is_run(cell->state))
		tell(&cell->left);
	return again;
}

static void cell_run_due(struct cell *cell)
{
	bool held = cell->there || cell->context == IN_TASK;

	if (held)
		local_bh_disable();
	if (cell->there) {
		cell_make_due(cell);
		there_start(cell_make_there, cell);
		spin_for(told(&cell->made));
	} else {
		in_context(cell->context, cell_make, cell);
	}
	if (held)
		local_bh_enable();
}

static void cell_run_running(struct cell *cell)
{
	if (cell->there)
		there_start(cell_make_there, cell);
	twheel_task_start(&cell->task, 0, cell->period);
	if (!cell->there && !cell->own && is_process(cell))
		cell_make_there(cell);
	spin_for(told(&cell->left));
}

/* Bring the task into the state, make the call, and let come what comes of it. */
static void cell_run(struct cell *cell)
{
	if (cell->state == STARTED)
		twheel_task_start(&cell->task, HOUR, cell->period);
	if (cell->state == SHUT)
		twheel_task_shutdown_sync(&cell->task);
	if (cell->state == STOPPED) {
		twheel_task_start(&cell->task, 0, cell->period);
		spin_for(atomic_read(&cell->calls));
	}
	if (cell->state == DUE)
		cell_run_due(cell);
	else if (is_run(cell->state))
		cell_run_running(cell);
	else if (cell->there)
		there_start(cell_make_there, cell);
	else
		in_context(cell->context, cell_make, cell);
	if (cell->there)
		there_wait();
}

static enum after cell_wants(const struct cell *cell)
{
	return cell->state == SHUT && cell->call->after != SAME ? NONE : cell->call->after;
}

/* How often the function is called after the call. */
static int cell_calls_after(const struct cell *cell)
{
	enum after after = cell_wants(cell);

	return after == NOW || (after == SAME && (cell->state == DUE || cell->state == REDUE));
}

static int cell_calls(const struct cell *cell)
{
	return (is_run(cell->state) || cell->state == STOPPED) + cell_calls_after(cell);
}

/* Is there a next period in the end? */
static bool cell_goes_on(const struct cell *cell)
{
	if (!cell->period || cell->state == STOPPED)
		return false;
	return cell_calls_after(cell) || (cell_wants(cell) == SAME && cell->state == RUNNING);
}

/* What it is armed for in the end must be in these bounds; not at all if these are KTIME_MAX. */
static void cell_bounds(const struct cell *cell, ktime_t *least, ktime_t *most)
{
	const ktime_t tick_ns = cell->place->config.tick_ns;

	*least = KTIME_MAX;
	*most = KTIME_MAX;
	if (cell_goes_on(cell)) {
		*least = cell->due + cell->period;
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
	ktime_t least, most;

	cell_bounds(cell, &least, &most);
	return !cell->missed && cell->made && !cell->hurried &&
	       cell->ret == cell->call->ret[cell->state] && cell->active == cell_is_active(cell) &&
	       cell->overruns == (started ? 0 : OVERRUNS) &&
	       atomic_read(&cell->calls) == cell_calls(cell) &&
	       cell->last >= least && cell->last <= most && cell->rest == (least != KTIME_MAX);
}

static void cell_tell(const struct cell *cell)
{
	pr_info("# in %s, %s, %s, from %s %s: %s%s%sreturned %d, %sactive, %llu overruns, called %d times, last %lld ns after, for %lld ns from then in the end, was %lld; %d left to cancel\n",
		cell->place->name, is_process(cell) ? "process" : "softirq",
		cell->period ? "periodic" : "once",
		cell->own ? "its function" : context_names[cell->context],
		cell->there ? "there" : "here", cell->missed ? "missed, " : "",
		cell->made ? "" : "not made, ", cell->hurried ? "hurried, " : "", cell->ret,
		cell->active ? "" : "not ", cell->overruns, atomic_read(&cell->calls),
		cell->due - cell->begin, cell->last == KTIME_MAX ? -1 : cell->last - cell->begin,
		cell->before == KTIME_MAX ? -1 : cell->before - cell->begin, cell->rest);
}

/* It gets the time to be called once more than it should, and to be armed. */
static void cell_end(struct cell *cell)
{
	if (!cell->missed)
		spin_for(atomic_read(&cell->calls) >= cell_calls(cell));
	if (cell_goes_on(cell))
		spin_for(twheel_pending(&cell->task.timer));
	if (is_run(cell->state) || cell->state == DUE)
		usleep_range(200, 250);
	cell->last = cell_expires(cell);
	cell->rest = twheel_task_cancel_sync(&cell->task);
	twheel_task_shutdown_sync(&cell->task);
}

/*
 * May it be right the next time? A function that is to be waited for may have left by the time that
 * the call came, if the CPU of the call stood still meanwhile.
 */
static bool cell_deserves_another(const struct cell *cell, unsigned int tries)
{
	if (cell->missed)
		return tries < TRIES;
	return cell->call->sync && is_run(cell->state) && tries < SYNC_TRIES;
}

static bool cell_goes_right(struct cell *cell, const struct cell *what)
{
	*cell = *what;
	if (cell->place->base)
		twheel_task_init_on(cell->place->base, &cell->task, cell_function, cell->flags);
	else
		twheel_task_init(&cell->task, cell_function, cell->flags);
	cell_run(cell);
	cell_end(cell);
	return cell_is_right(cell);
}

static bool try_cell(struct cell *cell, const struct cell *what)
{
	unsigned int tries = 0;

	while (!cell_goes_right(cell, what)) {
		if (!cell_deserves_another(cell, ++tries)) {
			cell_tell(cell);
			return false;
		}
		/* A base that has taken much of a CPU pauses. */
		usleep_range(10000, 11000);
	}
	return true;
}

/* ---- all cells -------------------------------------------------------------------------- */

/* Is there such a cell? */
static bool may_be(const struct cell *cell)
{
	if (cell->there && !there.task)
		return false;
	if (cell->own)
		return is_run(cell->state) && !cell->call->sync && !cell->there && !cell->context;
	if (cell->call->sync && cell->context != IN_TASK)
		return false;
	if (!is_run(cell->state) || is_process(cell) || cell->there)
		return true;
	/* In user-mode Linux no timer interrupt comes while a softirq runs that follows on one. */
	return cell->context == IN_HARDIRQ && !IS_ENABLED(CONFIG_UML);
}

/* To keep it short: what the other cells say. */
static bool is_left_out(const struct cell *cell)
{
	if (cell->own || cell->call->sync)
		return false;
	if (cell->place != &places[ON_CPU] && (cell->there || cell->context != IN_TASK) &&
	    (!cell->there || cell->context != IN_HARDIRQ))
		return true;
	return cell->there && (cell->context == IN_ATOMIC || cell->context == IN_SOFTIRQ);
}

/* All cells of a call and a state. */
static void test_state(struct cell *cell, const struct call *call, enum state state)
{
	unsigned int i, nr = 0, bad = 0;

	/* Of the place, the context, there, own, period and flags. */
	for (i = 0; i < SINK_MONO * NR_CONTEXTS * 16 && !bad; i++) {
		struct cell what = {
			.call = call, .state = state, .flags = i % 2 ? TWHEEL_TASK_PROCESS : 0,
			.period = i / 2 % 2 ? PERIOD : 0, .own = i / 4 % 2, .there = i / 8 % 2,
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

/* What is read of it afterwards is nonsense. */
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
	/* What touches one that is gone does so about now. */
	msleep(20);
}

/* ---- overruns ----------------------------------------------------------------------------- */

#define SLOW_PERIOD	(4 * NSEC_PER_MSEC)
#define SLOW_CALLS	12

/**
 * struct slow - a task whose function takes two and a half periods
 * @task:	the task
 * @flags:	its flags
 * @calls:	of the function
 * @due:	when the last was due
 * @end:	when the function last returned
 * @overruns:	up to the last call
 * @wrong:	how often a deadline is not as many periods later as were left out, and one
 * @early:	how often the next deadline was over already when the function returned
 * @two:	how often two were left out. More are, where the machine is slow
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

static enum twheel_again slow_function(struct twheel_task *task)
{
	struct slow *slow = container_of(task, struct slow, task);
	u64 more = twheel_task_overruns(task) - slow->overruns;
	s64 step = ktime_sub(task->deadline, slow->due);

	if (atomic_read(&slow->calls)) {
		slow->wrong += step != (s64)(more + 1) * SLOW_PERIOD;
		slow->early += ktime_to_ns(task->deadline) <= slow->end;
		slow->two += more == 2;
	}
	slow->due = task->deadline;
	slow->overruns += more;
	while (ktime_get() < slow->due + 5 * SLOW_PERIOD / 2)
		relax();
	slow->end = ktime_get();
	atomic_inc(&slow->calls);
	return TWHEEL_AGAIN;
}

static void test_overruns(unsigned int flags, const char *where)
{
	struct slow *slow = zalloc(1, sizeof(*slow));

	if (!slow)
		return;
	twheel_task_init(&slow->task, slow_function, flags);
	twheel_task_start(&slow->task, 0, SLOW_PERIOD);
	wait_for(atomic_read(&slow->calls) >= SLOW_CALLS);
	twheel_task_cancel_sync(&slow->task);
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

/* It is started on both CPUs for the next tick, whether or not its function runs. */
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
