// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Firings that are not over.
 *
 *	QUEUED ---> READY, in the list ---> a process ---> over
 *	              ^                        |
 *	              +------- WAITING <-------+ failed, with attempts left
 *
 * Each arrow is an operation of a turn, except the one that begins a process. READY is written
 * before the process begins, so a firing that is READY in the store may have begun. If runners are
 * to execute a firing, POOL is written instead of READY: such a firing begins only when a runner
 * has taken a task of it. If the job enters or leaves a pool before its firing begins, the new
 * state is written before anything begins. A decision made here changes memory at once. Nothing
 * begins before the decision is written: see run_settle() and runs_begin(). But a run that is out
 * is told to end at once: see run_kill().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crash.h"
#include "twheeld.h"
#include "when.h"

#define FIRING_SIZE	(offsetof(struct firing, at) + sizeof(int64_t))
#define SOON_US		(10 * US_PER_MS)	/* how long it may take to look up a user */
#define BEGIN_AGAIN_NS	NS_PER_S	/* how long to wait after a process could not be created */

int64_t max_running = 256, default_keep = 7 * 86400 * US_PER_S;
size_t nr_running;

/* Runs that may begin, because the turn that says so is written. In the order of those turns. */
static struct runs ready = TAILQ_HEAD_INITIALIZER(ready);
/* Runs that may begin as soon as users can be looked up: see put_off(). */
static struct runs no_user = TAILQ_HEAD_INITIALIZER(no_user);
/*
 * The users whose lookup has failed within the last second. users_wait: one of these lookups took
 * longer than SOON_US, so no user is looked up until that second is over.
 */
static char **unknown;
static size_t nr_unknown;
static bool users_wait;
/* All runs, by FIRING_SIZE bytes of their firings, in the order in which they were made. */
static struct run *by_firing;
/*
 * Begin no process. stopping: for ever, because runs_stop() was called. held: until hold_over(),
 * because a process could not be created.
 */
static bool stopping, held;

struct run *run_find(int64_t id, int64_t at)
{
	struct firing key = { .id = id, .at = at };
	struct run *run;

	HASH_FIND(in_all, by_firing, &key, FIRING_SIZE, run);
	return run;
}

/* Is the run out: does it have a process, a request or tasks, which must end before it is over? */
static bool is_out(const struct run *run)
{
	return run->process.child.pid || run->call || run->away;
}

void runs_each(void (*fn)(void *arg, struct run *run), void *arg)
{
	for (struct run *run = by_firing; run; run = run->in_all.next)
		fn(arg, run);
}

/* Send the alarm that the run has not begun in time, unless it has been attempted before. */
static void tell_late(struct run *run)
{
	run->late = 0;
	if (run->firing.attempt == 1)
		alarm_late(run->job, &run->firing);
}

/* The run should have begun by now. If it has not, send an alarm. */
static void is_late_now(void *arg, const struct twheel_task_info *task)
{
	struct run *run = arg;

	(void)task;
	if (run->began)
		run->late = 0;
	else
		tell_late(run);
}

/*
 * The run has begun. If the daemon did not run when the timer of is_late_now() expired, the run may
 * have begun before that timer was handled. So look whether the run is late.
 */
static void look_late(struct run *run)
{
	int64_t most = run->job->def.alarm_late;

	if (!run->late || !most || run->began - run->firing.at < most)
		return;
	twheel_sched_cancel(sched, run->late, 0);
	tell_late(run);
}

/* If the job asks for an alarm when a run has not begun in time, arm a timer for that. */
static void expect(struct run *run)
{
	struct twheel_task task = { .fn = is_late_now, .arg = run };

	if (!run->job->def.alarm_late)
		return;
	when_due(&task, run->firing.at + run->job->def.alarm_late);
	twheel_sched_add(sched, &task, &run->late);
}

/* Make a run of a firing, which it copies. It has no process, and is not in the ready list. */
static struct run *run_new(struct job *job, const struct firing *firing)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		abort();
	run->job = job;
	run->firing = *firing;
	run->firing.arg = firing->arg ? strdup(firing->arg) : NULL;
	run->process.log.fd = -1;
	expect(run);
	TAILQ_INSERT_TAIL(&job->runs, run, in_job);
	job->nr_runs++;
	job->nr_queued += firing->state == STATE_QUEUED;
	HASH_ADD(in_all, by_firing, firing, FIRING_SIZE, run);
	return run;
}

/* Forget a run that has no process. */
static void run_free(struct run *run)
{
	api_wake(run);
	if (run->tasks)
		pool_clean();
	if (run->timer)
		twheel_sched_cancel(sched, run->timer, 0);
	if (run->late)
		twheel_sched_cancel(sched, run->late, 0);
	if (run->ready)
		TAILQ_REMOVE(run->ready, run, in_ready);
	TAILQ_REMOVE(&run->job->runs, run, in_job);
	run->job->nr_runs--;
	run->job->nr_queued -= run->firing.state == STATE_QUEUED;
	HASH_DELETE(in_all, by_firing, run);
	free((char *)run->firing.arg);
	free(run);
}

void run_ready(struct run *run)
{
	if (run->ready)
		TAILQ_REMOVE(run->ready, run, in_ready);
	run->ready = run->firing.state == STATE_POOL ? &pool_ready : &ready;
	TAILQ_INSERT_TAIL(run->ready, run, in_ready);
}

/* ---- waiting ------------------------------------------------------------------------ */

/* A run waits for one thing at a time: its next attempt, its timeout, or the end after SIGTERM. */
static void set_timer(struct run *run, struct twheel_task task)
{
	task.arg = run;
	if (run->timer)
		twheel_sched_cancel(sched, run->timer, 0);
	run->timer = 0;
	if (twheel_sched_add(sched, &task, &run->timer)) {
		say(SAY_ERROR, "cannot arm a timer");
		abort();
	}
}

/* Call @fn in @us, by CLOCK_BOOTTIME, unless the run waits for something else before that. */
static void set_delay(struct run *run, void (*fn)(void *arg, const struct twheel_task_info *task),
		      int64_t us)
{
	set_timer(run, (struct twheel_task) { .fn = fn, .when_ns = us * NS_PER_US });
}

/* Change the state in memory. */
static void note_state(struct run *run, enum state state)
{
	run->job->nr_queued += (state == STATE_QUEUED) - (run->firing.state == STATE_QUEUED);
	run->firing.state = state;
}

/*
 * The firing has another state, in the same attempt. If the new state is KILLED, the log stays with
 * the life that has it.
 */
static void set_state(struct run *run, enum state state)
{
	struct op *op = core_op(OP_READY, run->job);

	note_state(run, state);
	if (state != STATE_KILLED)
		run->firing.life = store->life;
	op->line.firing = run->firing;
}

/* The state of a run that may begin: POOL if the job has a pool of runners, else READY. */
static enum state ready_state(const struct job *job)
{
	return job->def.pool ? STATE_POOL : STATE_READY;
}

static bool is_ready(enum state state)
{
	return state == STATE_READY || state == STATE_POOL;
}

/*
 * Decide that a run may begin. It begins when this decision is written, see attempt_written(). If
 * the daemon is ending, decide nothing: the run will not begin here, and if it were READY in the
 * store, the next life would believe that it may have begun.
 */
static void make_ready(struct run *run)
{
	if (!stopping)
		set_state(run, ready_state(run->job));
}

void run_elsewhere(struct run *run)
{
	if (run->ready)
		TAILQ_REMOVE(run->ready, run, in_ready);
	run->ready = NULL;
	make_ready(run);
}

/*
 * The run may begin, but does not, because the daemon ends: make it wait for its attempt instead. A
 * run that is READY in the store may have begun, so the next life would take it for lost.
 */
static void leave_run(struct run *run)
{
	run->firing.wake = 0;
	set_state(run, STATE_WAITING);
}

/* The store knows that the run may begin: put the run into the list of those that do. */
static void set_ready(struct run *run)
{
	if (stopping && run->firing.state != STATE_POOL)
		leave_run(run);
	else if (!run->ready)
		run_ready(run);
}

/* The time of the next attempt has come. */
static void waited(void *arg, const struct twheel_task_info *task)
{
	struct run *run = arg;

	(void)task;
	run->timer = 0;
	make_ready(run);
}

/* Wait until the time of the next attempt, which the store knows. */
static void wait_to_retry(struct run *run)
{
	struct twheel_task task = { .fn = waited };

	when_due(&task, run->firing.wake);
	set_timer(run, task);
}

/* ---- over --------------------------------------------------------------------------- */

void runs_next(struct job *job)
{
	bool all = job->def.overlap == OVERLAP_ALLOW;
	struct run *run;

	if (!job->nr_queued || (!all && job->nr_queued < job->nr_runs))
		return;
	TAILQ_FOREACH(run, &job->runs, in_job) {
		if (run->firing.state == STATE_QUEUED)
			make_ready(run);
		if (!all)
			return;
	}
}

/* Forget the run. If another run of its job was queued behind it, that one may begin. */
static void run_leaves(struct run *run)
{
	struct job *job = run->job;

	run_free(run);
	runs_next(job);
}

/* The row of history of a firing that ends now. */
static struct ended line_of(const struct job *job, const struct firing *firing,
			    enum outcome outcome, int64_t status, int64_t began)
{
	int64_t now = now_us(), keep = job->def.keep ? job->def.keep : default_keep;

	return (struct ended){
		.firing = *firing,
		.outcome = outcome,
		.status = status,
		.began = began,
		.ended = now,
		.drop = now + keep,
	};
}

/* Make the jobs that follow this one due now, as if somebody had asked for them. */
static void add_children(const struct job *job, const char **names, int64_t now)
{
	for (; names && *names; names++) {
		struct job *child = job_by_name(*names);
		struct op *op;

		if (!child) {
			say(SAY_WARNING, "job '%s' should follow, but no longer exists", *names);
			continue;
		}
		op = core_op(OP_ADD, job);
		op->line.firing.job = child->id;
		op->next = now;
	}
}

/* If the job is due a delay after the end of its run, that delay begins now. */
static void move_parked(const struct job *job, int64_t id, int64_t now)
{
	struct op *op;

	if (job->def.kind != KIND_DELAY || id != job->due_id)
		return;
	op = core_op(OP_MOVE, job);
	op->line.firing.id = id;
	op->line.firing.job = job->id;
	op->next = now + job->def.period;
}

/* The firing is over: decide what follows, and free the run. */
static void finish(struct run *run, enum outcome outcome, int64_t status)
{
	struct job *job = run->job;
	struct op *op = core_op(OP_END, job);
	int64_t now;

	op->line = line_of(job, &run->firing, outcome, status, run->began);
	op->line.firing.arg = NULL;
	now = op->line.ended;
	move_parked(job, run->firing.id, now);
	if (outcome == OUTCOME_OK)
		add_children(job, job->def.then_ok, now);
	if (outcome == OUTCOME_FAILED || outcome == OUTCOME_TIMEOUT || outcome == OUTCOME_LOST)
		add_children(job, job->def.then_fail, now);
	run_leaves(run);
}

/*
 * The attempt is over, and there will be another one: @wait us after the end that is written in
 * history, or at once if @wait is negative.
 */
static void attempt_again(struct run *run, enum outcome outcome, int64_t status, int64_t wait)
{
	struct op *op = core_op(OP_AGAIN, run->job);
	int64_t wake;

	op->line = line_of(run->job, &run->firing, outcome, status, run->began);
	wake = wait < 0 ? 0 : op->line.ended + wait + 1;
	op->line.firing.arg = NULL;
	op->line.more = true;
	run->firing.attempt++;
	run->firing.tries += outcome != OUTCOME_LOST;
	note_state(run, wake ? STATE_WAITING : ready_state(run->job));
	run->firing.wake = wake;
	run->firing.life = store->life;
	run->began = 0;
	run->away = false;
	run->ending = OUTCOME_OK;
	op->next_firing = run->firing;
	op->next_firing.arg = NULL;
}

/* Is it a failure, to which the job's retries apply? */
static bool is_failure(enum outcome outcome)
{
	return outcome == OUTCOME_FAILED || outcome == OUTCOME_TIMEOUT;
}

/* The attempt is over. By the job's policy there is another one, or the firing is over too. */
static void over(struct run *run, enum outcome outcome, int64_t status)
{
	const struct def *def = &run->job->def;

	if (outcome == OUTCOME_LOST && !def->report && run->job->name)
		attempt_again(run, outcome, status, -1);
	else if (is_failure(outcome) && run->firing.tries < def->retries && run->job->name)
		attempt_again(run, outcome, status, retry_wait(def, run->firing.tries + 1));
	else
		finish(run, outcome, status);
}

void run_over(struct run *run, bool good, int64_t status)
{
	enum outcome outcome = run->ending;

	nr_running -= !run->away;
	if (run->timer)
		twheel_sched_cancel(sched, run->timer, 0);
	run->timer = 0;
	if (outcome == OUTCOME_OK && !good)
		outcome = OUTCOME_FAILED;
	/*
	 * If the run failed here while the daemon is stopping, it failed because the daemon told it
	 * to end. Then the next life repeats it, unless somebody else had told it to end before.
	 */
	if (!stopping || good || run->away || outcome == OUTCOME_KILLED ||
	    outcome == OUTCOME_TIMEOUT)
		over(run, outcome, status);
}

void run_lost(struct run *run)
{
	if (run->ending == OUTCOME_OK)
		run->ending = OUTCOME_LOST;
	run_over(run, false, -1);
}

/* The process of a run has ended, with code and status as from waitid(). */
static void process_over(struct run *run, int code, int status)
{
	crash_point("a process ended");
	exec_end(run);
	if (code != CLD_EXITED)
		status += 128;
	run_over(run, !status, status);
}

/* ---- a firing ----------------------------------------------------------------------- */

/* May a new firing run, now or later, although other runs of the job may exist? Sets its state. */
static bool may_overlap(struct job *job, enum state *state)
{
	*state = ready_state(job);
	if (TAILQ_EMPTY(&job->runs) || job->def.overlap == OVERLAP_ALLOW)
		return true;
	*state = STATE_QUEUED;
	if (job->def.overlap == OVERLAP_QUEUE)
		return job->nr_queued < job->def.queue;
	return job->def.overlap == OVERLAP_REPLACE;
}

/*
 * Does the job have a run that the store may still refuse? When a timer expires, its row of due may
 * have been cancelled, or replaced by a request with the same key. The runs of a job are written in
 * order, so it is enough to ask for the last one.
 */
static bool any_unwritten(const struct job *job)
{
	const struct run *last = TAILQ_LAST(&job->runs, runs);

	return last && !last->written;
}

/* Do not run the firing. If the job is due a delay after the end of a run, the delay begins now. */
static void leave(struct job *job, const struct firing *firing, int64_t next, enum outcome outcome)
{
	struct op *op = core_op(OP_LEAVE, job);

	op->next = next == NEVER ? firing->fired + job->def.period : next;
	op->line = line_of(job, firing, outcome, -1, 0);
	op->line.firing.attempt = 0;
	if (firing->id == job->due_id)
		job->due_at = op->next;
}

bool run_fire(struct job *job, int64_t id, int64_t at, const struct plan *plan, int64_t now)
{
	struct firing firing = {
		.id = id,
		.at = at,
		.job = job->id,
		.life = store->life,
		.attempt = 1,
		.missed = plan->missed,
		.fired = now,
	};
	struct op *op;

	if (!plan->run) {
		leave(job, &firing, plan->next, OUTCOME_MISSED);
		return true;
	}
	if (!may_overlap(job, &firing.state)) {
		if (any_unwritten(job))
			return false;
		leave(job, &firing, plan->next, OUTCOME_SKIPPED);
		return true;
	}
	op = core_op(OP_FIRE, job);
	op->next = plan->next;
	op->line.firing = firing;
	run_new(job, &firing);
	if (id == job->due_id)
		job->due_at = plan->next;
	return true;
}

/* ---- after a turn was written ------------------------------------------------------- */

/*
 * Call this before a run that is out is told to end. It may have ended by itself while this daemon
 * stood still, and then that end counts. Returns the run, or NULL if it has ended: then do not use
 * @run any more, since it may have been freed.
 */
static struct run *look(struct run *run)
{
	const struct firing firing = run->firing;

	if (run->process.child.pid)
		exec_look(run);
	else if (run->away)
		pool_look();
	run = run_find(firing.id, firing.at);
	return run && run->firing.attempt == firing.attempt ? run : NULL;
}

/* look() at all runs of @job. If one has ended, the run that was queued behind it may be READY. */
static void look_at_all(struct job *job)
{
	struct run *run;

again:
	TAILQ_FOREACH(run, &job->runs, in_job)
		if (is_out(run) && !look(run))
			goto again;
}

/*
 * @queued is to replace the runs of its job that it waits for. Skip those that are queued, and kill
 * the others, unless they have ended. When none of them is left, @queued becomes READY.
 */
static void replace(struct run *queued)
{
	struct job *job = queued->job;
	struct run *run, *next;

	look_at_all(job);
	if (queued->firing.state != STATE_QUEUED)
		return;
	for (run = TAILQ_FIRST(&job->runs); run != queued; run = next) {
		next = TAILQ_NEXT(run, in_job);
		if (run->firing.state != STATE_QUEUED)
			run_kill(run, OUTCOME_KILLED);
		else
			finish(run, OUTCOME_SKIPPED, -1);
	}
}

/* OP_FIRE was written; or refused, because the firing was cancelled or another life fires it. */
static void fired(struct run *run, const struct op *op)
{
	crash_point("a firing was written");
	if (!op->done)
		core_refused();
	if (!run || !op->done) {
		if (run)
			run_leaves(run);
		free((char *)op->line.firing.arg);
		return;
	}
	run->written = true;
	run->firing.arg = op->line.firing.arg;
	if (is_ready(op->line.firing.state))
		set_ready(run);
	else if (run->firing.state == STATE_QUEUED && run->job->def.overlap == OVERLAP_REPLACE)
		replace(run);	/* were it READY by now, there would be nothing to replace */
}

/* The row of due has its next time: arm a timer for it. */
static void row_moved(const struct op *op)
{
	const struct firing *f = &op->line.firing;
	struct job *job = job_by_id(f->job);

	if (!job || f->id != job->due_id)
		return;
	job->due_at = op->done || op->type == OP_MOVE ? op->next : f->at;
	if (!op->done)
		core_refused();
	if (!op->done || !op->next)
		return;
	if (op->next != NEVER && !job->paused)
		core_arm(f->id, f->job, op->next);
}

/* OP_AGAIN or OP_READY was written. @run is NULL if the run is over by now. */
static void attempt_written(struct run *run, enum state state)
{
	if (!run)
		return;
	if (is_ready(state))
		set_ready(run);
	else if (state == STATE_WAITING)
		wait_to_retry(run);
}

/*
 * The turn of @op is written: do what waited for that. Decisions made after @op may have changed
 * the run in memory; their operations are in the next turn. If the run is over by now, nothing is
 * done here. If @op entered the run as QUEUED, and the run is READY by now, it begins only when the
 * next turn is written.
 */
void run_settle(struct op *op)
{
	struct run *run = run_find(op->line.firing.id, op->line.firing.at);

	switch (op->type) {
	case OP_FIRE:
		fired(run, op);
		row_moved(op);
		break;
	case OP_LEAVE:
		if (!op->done)
			core_refused();
		free((char *)op->line.firing.arg);
		row_moved(op);
		break;
	case OP_MOVE:
		row_moved(op);
		break;
	case OP_AGAIN:
		attempt_written(run, op->next_firing.state);
		break;
	case OP_READY:
		attempt_written(run, op->line.firing.state);
		break;
	case OP_ADD:
		if (op->done)
			core_arm(op->line.firing.id, op->line.firing.job, op->next);
		break;
	case OP_END:
		crash_point("an end was written");
		if (op->done)
			alarm_ended(&op->line);
		break;
	}
}

/* ---- beginning and ending ----------------------------------------------------------- */

/* The run has taken longer than its job allows. */
static void timed_out(void *arg, const struct twheel_task_info *task)
{
	struct run *run = arg;

	(void)task;
	run->timer = 0;
	run = look(run);
	if (run && is_out(run))
		run_kill(run, OUTCOME_TIMEOUT);
}

/* The wait of hold() is over. */
static void hold_over(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	held = false;
}

/* No process can be created now: begin none for a second. */
static void hold(int err)
{
	struct twheel_task task = { .fn = hold_over, .when_ns = BEGIN_AGAIN_NS };

	say(SAY_WARNING, "cannot start a process: %s", strerror(-err));
	held = !twheel_sched_add(sched, &task, NULL);
}

static bool is_unknown(const char *user)
{
	for (size_t i = 0; user && i < nr_unknown; i++)
		if (!strcmp(unknown[i], user))
			return true;
	return false;
}

/*
 * Users may be looked up again: the runs that waited for that may begin. The runs of users whose
 * lookup has failed come last, so that the other runs are not kept waiting by them again.
 */
static void users_again(void *arg, const struct twheel_task_info *task)
{
	struct run *run, *next;

	(void)arg;
	(void)task;
	for (int last = 0; last < 2; last++) {
		for (run = TAILQ_FIRST(&no_user); run; run = next) {
			next = TAILQ_NEXT(run, in_ready);
			if (last || !is_unknown(run->job->def.user))
				run_ready(run);
		}
	}
	while (nr_unknown)
		free(unknown[--nr_unknown]);
	users_wait = false;
}

/* The run waits until its user can be looked up. */
static void put_off(struct run *run)
{
	TAILQ_REMOVE(run->ready, run, in_ready);
	run->ready = &no_user;
	TAILQ_INSERT_TAIL(&no_user, run, in_ready);
}

/*
 * A run could not begin. Returns whether another one may be tried. If its user could not be looked
 * up, all runs of that user wait for a second. If that lookup took long (@took, in us), the runs of
 * all users wait.
 */
static bool not_begun(struct run *run, int err, int64_t took)
{
	struct twheel_task task = { .fn = users_again, .when_ns = BEGIN_AGAIN_NS };

	run->began = 0;
	if (!core_may_begin())
		return false;
	if (!run->process.no_user || (!nr_unknown && twheel_sched_add(sched, &task, NULL))) {
		hold(err);
		return false;
	}
	say(SAY_WARNING, "cannot look up the user '%s': %s", run->job->def.user, strerror(-err));
	unknown = reallocarray(unknown, nr_unknown + 1, sizeof(*unknown));
	if (!unknown)
		abort();
	unknown[nr_unknown++] = format("%s", run->job->def.user);
	users_wait |= took > SOON_US;
	put_off(run);
	return true;
}

/* Begin the process of a run that is ready. Returns false if none can be created now. */
static bool begin(struct run *run)
{
	int64_t tried;
	int err;

	if (run->job->def.pool) {	/* the definition was replaced after the run was READY */
		run_elsewhere(run);
		return true;
	}
	if (run->job->def.user && (users_wait || is_unknown(run->job->def.user))) {
		put_off(run);
		return true;
	}
	tried = boot_us();
	run->began = now_us();
	run->process.no_user = false;	/* it may be true since an earlier try */
	run->process.ended = process_over;
	run->process.may_begin = core_may_begin;
	err = run->job->def.url ? web_begin(run) : exec_begin(run);
	if (err)
		return not_begun(run, err, boot_us() - tried);
	crash_point("a process began");
	look_late(run);
	nr_running++;
	TAILQ_REMOVE(run->ready, run, in_ready);
	run->ready = NULL;
	if (run->job->def.timeout)
		set_delay(run, timed_out, run->job->def.timeout);
	return true;
}

void run_went(struct run *run, int64_t began)
{
	int64_t left = began + run->job->def.timeout - now_us();

	if (run->began)
		return;
	run->began = began;
	look_late(run);
	if (run->job->def.timeout)
		set_delay(run, timed_out, left > 0 ? left : 0);
}

void runs_begin(void)
{
	while (!stopping && !held && (int64_t)nr_running < max_running && !TAILQ_EMPTY(&ready) &&
	       core_may_begin())
		if (!begin(TAILQ_FIRST(&ready)))
			break;
	if (!stopping)
		pool_begin();
}

/*
 * End the run at once. If it has neither a request nor a process, its receiver has accepted it
 * after somebody had decided to end it: then it continues without this daemon.
 */
static void end_now(struct run *run)
{
	if (run->call) {
		web_cancel(run);
		run_over(run, false, -1);
	} else if (run->process.child.pid) {
		exec_signal(run, SIGKILL);
	}
}

/* The run did not end by SIGTERM in the time that its job gives it. */
static void stop_over(void *arg, const struct twheel_task_info *task)
{
	struct run *run = arg;

	(void)task;
	run->timer = 0;
	end_now(run);
}

/*
 * End a run with @outcome. A run that is not out is over at once. If a run is told to end several
 * times, the first outcome counts, except that OUTCOME_KILLED replaces any other: a run that
 * somebody has killed must not be repeated. The next turn says that a run was killed, and does not
 * wait for its end: the daemon may die before that.
 */
void run_kill(struct run *run, enum outcome outcome)
{
	bool ends = run->ending != OUTCOME_OK;

	if (!is_out(run)) {
		finish(run, outcome, -1);
		return;
	}
	if (ends && (run->ending == OUTCOME_KILLED || outcome != OUTCOME_KILLED))
		return;
	run->ending = outcome;
	if (outcome == OUTCOME_KILLED)
		set_state(run, STATE_KILLED);
	if (ends)		/* it was told to end before, and its time for that is running */
		return;
	if (run->away) {
		pool_kill(run, false);
	} else if (run->call) {
		end_now(run);
	} else {
		exec_signal(run, SIGTERM);
		set_delay(run, stop_over, run->job->def.stop);
	}
}

void runs_forget(struct job *job)
{
	struct run *run, *next;

	TAILQ_FOREACH(run, &job->runs, in_job)
		if (run->away)
			pool_kill(run, true);
	for (run = TAILQ_FIRST(&job->runs); run; run = next) {
		next = TAILQ_NEXT(run, in_job);		/* finish() frees only @run */
		if (!is_out(run))
			finish(run, OUTCOME_KILLED, -1);
	}
}

/* Tell a run to end, because the daemon ends. @ending stays OUTCOME_OK: see run_over(). */
static void stop_one(void *arg, struct run *run)
{
	(void)arg;
	if (!is_out(run) || run->away || run->ending != OUTCOME_OK)
		return;
	if (run->process.child.pid)
		exec_signal(run, SIGTERM);
	set_delay(run, stop_over, run->job->def.stop);
}

static void leave_ready(void)
{
	struct run *run;

	while ((run = TAILQ_FIRST(&no_user)))
		run_ready(run);
	while ((run = TAILQ_FIRST(&ready))) {
		TAILQ_REMOVE(&ready, run, in_ready);
		run->ready = NULL;
		leave_run(run);
	}
}

void runs_stop(void)
{
	stopping = true;
	runs_each(stop_one, NULL);
	leave_ready();
}

bool runs_stopped(void)
{
	return stopping && !nr_running;
}

/* Kill a run at once. It counts as lost, so that its next owner repeats it. */
static void kill_now(void *arg, struct run *run)
{
	const bool *all = arg;

	if (!is_out(run) || run->away || (!*all && run->job->def.overlap == OVERLAP_ALLOW))
		return;
	if (run->ending == OUTCOME_OK)
		run->ending = OUTCOME_LOST;
	if (run->process.child.pid)
		exec_signal(run, SIGKILL);
	else
		set_delay(run, stop_over, 0);
}

void runs_kill(bool all)
{
	runs_each(kill_now, &all);
}

/* The handler of the signal of runs_guard(). */
static void lease_is_over(int sig)
{
	(void)sig;
	for (struct run *run = by_firing; run; run = run->in_all.next) {
		if (!run->process.child.pid || run->job->def.overlap == OVERLAP_ALLOW)
			continue;
		if (run->ending == OUTCOME_OK)
			run->ending = OUTCOME_LOST;
		exec_signal(run, SIGKILL);
	}
}

static timer_t new_guard(void (*over)(int sig))
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct sigaction act = { .sa_handler = over, .sa_flags = SA_RESTART };
	timer_t guard;

	event._sigev_un._tid = gettid();
	if (sigaction(SIGALRM, &act, NULL) || timer_create(CLOCK_BOOTTIME, &event, &guard)) {
		say(SAY_ERROR, "cannot guard the lease: %s", strerror(errno));
		exit(1);
	}
	return guard;
}

void guard_until(int64_t end, void (*over)(int sig))
{
	static bool made;
	static timer_t guard;
	struct itimerspec at = { 0 };

	if (!made)
		guard = new_guard(over);
	made = true;
	if (end) {
		at.it_value.tv_sec = end / US_PER_S;
		at.it_value.tv_nsec = end % US_PER_S * 1000 + 1;
	}
	timer_settime(guard, TIMER_ABSTIME, &at, NULL);
}

void runs_guard(bool on)
{
	if (store->many)
		guard_until(on ? store->lease_end + 1 : 0, lease_is_over);
}

/* ---- firings that a dead life has left ---------------------------------------------- */

/* Firings that a dead life has left and that are not taken over yet, linked by in_ready. */
static struct runs found = TAILQ_HEAD_INITIALIZER(found);

void run_found(const struct firing *firing)
{
	struct job *job = job_by_id(firing->job);
	struct run *run;

	/*
	 * If its definition cannot be understood, the job waits, and its firings wait with it. Once
	 * the job is removed, nothing is left to wait for.
	 */
	if (!job || (job->broken && job->name) || run_find(firing->id, firing->at))
		return;
	run = run_new(job, firing);
	run->written = true;
	TAILQ_INSERT_TAIL(&found, run, in_ready);
}

/* Was the run killed, or is it to be killed because a queued run replaces it? */
static bool was_killed(const struct run *run)
{
	const struct job *job = run->job;

	return run->firing.state == STATE_KILLED ||
	       (job->name && job->def.overlap == OVERLAP_REPLACE && job->nr_queued);
}

/*
 * Decide about a firing that a dead life has left, and that was not queued. If it was READY, it may
 * have run: so its attempt is lost, even if the job has a pool by now. The definition says whether
 * another attempt follows.
 */
static void take_over(struct run *run)
{
	const struct firing *f = &run->firing;

	if (was_killed(run)) {
		run_kill(run, OUTCOME_KILLED);
		return;
	}
	if (run->away && !run->job->name)
		pool_kill(run, true);
	if (run->away)
		return;
	if (f->state == STATE_POOL && run->job->name) {
		make_ready(run);	/* no runner has seen it */
	} else if (f->state == STATE_READY && (run->job->def.report || !run->job->name)) {
		finish(run, OUTCOME_LOST, -1);
	} else if (!run->job->name) {
		finish(run, OUTCOME_KILLED, -1);
	} else if (f->state == STATE_READY) {
		say(SAY_WARNING, "job '%s' was lost as it ran, and is run again: attempt %lld",
		    run->job->name, (long long)f->attempt + 1);
		attempt_again(run, OUTCOME_LOST, -1, -1);
	} else if (f->state == STATE_WAITING) {
		wait_to_retry(run);
	}
}

/* Move those of the found firings that are QUEUED to @queued. */
static void split_found(struct runs *queued)
{
	struct run *run, *next;

	for (run = TAILQ_FIRST(&found); run; run = next) {
		next = TAILQ_NEXT(run, in_ready);
		if (run->firing.state != STATE_QUEUED)
			continue;
		TAILQ_REMOVE(&found, run, in_ready);
		TAILQ_INSERT_TAIL(queued, run, in_ready);
	}
}

/* Does a newer queued run replace @queued? The dead life may have died before it did that. */
static bool is_replaced(const struct run *queued)
{
	const struct run *run = TAILQ_NEXT(queued, in_job);

	while (run && run->firing.state != STATE_QUEUED)
		run = TAILQ_NEXT(run, in_job);
	return run && queued->job->def.overlap == OVERLAP_REPLACE;
}

/* Decide about a firing that a dead life has left queued. */
static void take_over_queued(struct run *run)
{
	if (!run->job->name)
		finish(run, OUTCOME_KILLED, -1);
	else if (is_replaced(run))
		finish(run, OUTCOME_SKIPPED, -1);
	else
		runs_next(run->job);
}

/*
 * Take over the firings that were found: first those that were not queued. A queued firing may have
 * nothing to wait for any more, and then becomes ready. This may already be decided while the
 * others are taken over. A queued firing has not begun, so it is never lost.
 */
void runs_found(void)
{
	struct runs queued = TAILQ_HEAD_INITIALIZER(queued);
	struct run *run;

	split_found(&queued);
	while ((run = TAILQ_FIRST(&found))) {
		TAILQ_REMOVE(&found, run, in_ready);
		take_over(run);
		store_keep(store);
	}
	while ((run = TAILQ_FIRST(&queued))) {
		TAILQ_REMOVE(&queued, run, in_ready);
		take_over_queued(run);
	}
}
