// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Runs that are away: those that runners execute, and HTTP requests that a receiver has accepted
 * and not yet finished. The store's table of tasks has their state. The daemon that owns the job
 * enters the tasks of a run there when the run is ready. Each daemon changes the tasks of the
 * runners that talk to it (take.c). The owner looks at the table, finds out which tasks are over
 * or lost, and then decides about the firing, as it does when a process of its own has ended.
 * So a run continues even if the owner of its job dies, or the daemon that its runner talks to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "twheeld.h"
#include "when.h"

#define LEASES		3	/* times our lease: a runner has time to turn to another daemon */
#define LOOK_NS		NS_PER_S
#define SOON_NS		(2 * NS_PER_MS)
#define PREFER_US	(2 * US_PER_S)
#define FRESH_US	(10 * US_PER_MS)	/* how long pool_look() relies on the last look() */
#define BEGIN_MAX	1000
#define CLEAN		3	/* how many seconds to clean, as a run's end may be written late */

struct runs pool_ready = TAILQ_HEAD_INITIALIZER(pool_ready);
/* Runs that could get no tasks yet, see add_tasks(). look_again() moves them to pool_ready. */
static struct runs waiting = TAILQ_HEAD_INITIALIZER(waiting);

/*
 * nr_away: how many runs are away. nr_accepted: how many of these were accepted and have no task
 * yet. used: in how many of the next seconds to delete the tasks of firings that are over.
 */
static size_t nr_away, nr_accepted;
static int used;
static uint64_t soon;	/* the scheduler's task of pool_changed(), or 0 */
static bool moved;	/* some job has @moved set */
static bool unkilled;	/* some run has @unkilled set */
static int64_t looked;	/* when look() was last called, by the clock of now_us() */

int64_t pool_lease(void)
{
	return LEASES * store->lease;
}

static int64_t spared;	/* no lease of a runner counts as over before this, by CLOCK_BOOTTIME */
static bool was_set;	/* CLOCK_REALTIME was set, and end_leases() has not yet handled that */

void pool_spare(void)
{
	spared = boot_us() + pool_lease();
}

/*
 * Has this daemon stood still for longer than a lease, because it waited for an answer of the
 * server or was stopped? look_again() calls this each second, through look().
 */
static bool stood_still(int64_t boot)
{
	static int64_t last;
	bool stood = boot - last > store->lease + US_PER_S;

	last = boot;
	return stood;
}

int64_t pool_over_before(void)
{
	static int64_t ahead;
	int64_t now = now_us(), boot = boot_us();
	bool jumped = llabs(now - boot - ahead) > JUMP_US;

	if (stood_still(boot) || core_stuck() || jumped)
		pool_spare();
	was_set |= jumped;
	ahead = now - boot;
	return boot < spared ? 0 : now;
}

/*
 * The longest lease that a runner can have now. Other daemons, and the daemon before this one, may
 * have given longer leases than this one does.
 */
static int64_t longest_lease(void)
{
	static int64_t until;
	int64_t most = LEASES * LEASE_MAX_US;

	if (!until)
		until = boot_us() + most;
	return store->many || (store->life > 1 && boot_us() < until) ? most : pool_lease();
}

/*
 * Leases are written as times. If the clock was set back, they would last too long: let none last
 * longer than the longest lease that begins now.
 */
static void end_leases(void)
{
	if (was_set)
		was_set = store_leases_end(store, now_us() + longest_lease());
}

/* ---- which runners there are -------------------------------------------------------- */

/**
 * struct fleet - the runners of a pool that live
 * @pool:	the pool
 * @ids:	their ids, which begin with the names of their machines
 * @names:	the names of their machines
 * @nr:		how many
 */
struct fleet {
	const char	*pool;
	char		**ids;
	char		**names;
	size_t		nr;
};

/* A row of store_runners(). */
static void add_runner(void *arg, const struct runner *runner)
{
	struct fleet *fleet = arg;

	if (strcmp(runner->pool, fleet->pool))
		return;
	fleet->ids = reallocarray(fleet->ids, fleet->nr + 1, sizeof(char *));
	fleet->names = reallocarray(fleet->names, fleet->nr + 1, sizeof(char *));
	if (!fleet->ids || !fleet->names)
		abort();
	fleet->ids[fleet->nr] = format("%s", runner->id);
	fleet->names[fleet->nr++] = format("%s", runner->name);
}

static void fleet_free(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->nr; i++) {
		free(fleet->ids[i]);
		free(fleet->names[i]);
	}
	free(fleet->ids);
	free(fleet->names);
	*fleet = (struct fleet) { 0 };
}

/* A hash (FNV-1a) of the two texts together. */
static uint64_t hash_of(const char *a, const char *b)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *a; a++)
		hash = (hash ^ (unsigned char)*a) * 0x100000001b3ULL;
	for (hash *= 0x100000001b3ULL; *b; b++)
		hash = (hash ^ (unsigned char)*b) * 0x100000001b3ULL;
	return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL;
}

/*
 * The runner for @key: the one whose machine's name has the greatest hash together with @key. So if
 * a runner comes or goes, only that runner's keys move. NULL if there is no runner.
 */
static const char *favourite(const struct fleet *fleet, const char *key)
{
	uint64_t most = 0;
	const char *id = NULL;

	for (size_t i = 0; i < fleet->nr; i++) {
		uint64_t hash = hash_of(key, fleet->names[i]);

		if (id && hash <= most)
			continue;
		most = hash;
		id = fleet->ids[i];
	}
	return id;
}

/* ---- beginning ---------------------------------------------------------------------- */

/**
 * struct batch - tasks that are to be entered
 * @rows:	the tasks
 * @nr:		how many
 * @fleet:	the runners of the pool that was looked up last
 */
struct batch {
	struct task	*rows;
	size_t		nr;
	struct fleet	fleet;
};

static void add_task(struct batch *batch, const struct run *run, size_t shard, size_t shards,
		     const char *wants, int64_t wants_until)
{
	const struct def *def = &run->job->def;

	batch->rows = reallocarray(batch->rows, batch->nr + 1, sizeof(*batch->rows));
	if (!batch->rows)
		abort();
	batch->rows[batch->nr++] = (struct task) {
		.id = run->firing.id, .at = run->firing.at, .job = run->job->id,
		.shard = (int64_t)shard, .shards = (int64_t)shards, .whole = !def->each,
		.pool = def->pool,
		.prio = def->prio, .attempt = run->firing.attempt,
		.wants = wants ? format("%s", wants) : NULL, .wants_until = wants_until,
	};
}

/*
 * Add the tasks of a run. Returns false if the run must wait: the store could not be read, or each
 * runner of the pool is to execute a part of the run and the pool has no runner.
 */
static bool add_tasks(struct batch *batch, const struct run *run)
{
	const struct def *def = &run->job->def;
	int64_t now = now_us();

	if (!def->each && !def->prefer) {
		add_task(batch, run, 0, 1, NULL, 0);
		return true;
	}
	if (!batch->fleet.pool || strcmp(batch->fleet.pool, def->pool)) {
		fleet_free(&batch->fleet);
		batch->fleet.pool = def->pool;
		if (store_runners(store, now, add_runner, &batch->fleet))
			return false;
	}
	if (def->prefer)
		add_task(batch, run, 0, 1, favourite(&batch->fleet, def->prefer), now + PREFER_US);
	for (size_t i = 0; def->each && i < batch->fleet.nr; i++)
		add_task(batch, run, i, batch->fleet.nr, batch->fleet.ids[i], NEVER);
	return !def->each || batch->fleet.nr;
}

/* The tasks of the runs @taken were entered: the runs are away. If @err, they are ready again. */
static void begun(struct runs *taken, int err)
{
	struct run *run;

	while ((run = TAILQ_FIRST(taken))) {
		TAILQ_REMOVE(taken, run, in_ready);
		run->ready = err ? &pool_ready : NULL;
		run->away = !err;
		run->tasks |= !err;
		nr_away += !err;
		if (err)
			TAILQ_INSERT_TAIL(&pool_ready, run, in_ready);
	}
}

void pool_begin(void)
{
	struct runs taken = TAILQ_HEAD_INITIALIZER(taken);
	struct batch batch = { 0 };
	struct run *run, *next;
	int err = 0;

	if (TAILQ_EMPTY(&pool_ready) || core_stuck())
		return;
	for (run = TAILQ_FIRST(&pool_ready); run && batch.nr < BEGIN_MAX; run = next) {
		next = TAILQ_NEXT(run, in_ready);
		if (!run->job->def.pool) {	/* the job has left the pool since */
			run_elsewhere(run);
			continue;
		}
		TAILQ_REMOVE(&pool_ready, run, in_ready);
		run->ready = add_tasks(&batch, run) ? &taken : &waiting;
		TAILQ_INSERT_TAIL(run->ready, run, in_ready);
	}
	if (batch.nr)
		err = store_tasks_begin(store, batch.rows, batch.nr);
	if (err)
		say(SAY_ERROR, "the store cannot be written: %s", store_error(store));
	begun(&taken, err);
	if (batch.nr && !err)
		idle_look();
	crash_point("tasks were entered");
	while (batch.nr--)
		free((char *)batch.rows[batch.nr].wants);
	fleet_free(&batch.fleet);
	free(batch.rows);
}

/*
 * If a run was accepted and its task is not entered yet, enter the task. Before that the receiver
 * cannot report that the run is over.
 */
static void enter_accepted(void *arg, struct run *run)
{
	struct task task = {
		.id = run->firing.id, .at = run->firing.at, .job = run->job->id,
		.attempt = run->firing.attempt, .began = run->began,
	};

	(void)arg;
	if (!run->accepted)
		return;
	run->accepted = store_task_accept(store, &task);
	nr_accepted += run->accepted;
	crash_point("a task was accepted");
}

void pool_accepted(struct run *run)
{
	run->away = true;
	run->tasks = true;
	run->accepted = true;
	nr_away++;
	nr_running--;
	enter_accepted(NULL, run);
}

/* Try again to enter the tasks that could not be entered when their runs were accepted. */
static void enter_all_accepted(void)
{
	if (!nr_accepted)
		return;
	nr_accepted = 0;
	runs_each(enter_accepted, NULL);
}

/* ---- tasks that are over ------------------------------------------------------------ */

/**
 * struct looking - what one look at the table of tasks has found
 * @tasks:	the tasks that are out or over
 * @nr:		how many
 */
struct looking {
	struct task	*tasks;
	size_t		nr;
};

/* A row of store_tasks(). */
static void keep_task(void *arg, const struct task *task)
{
	struct looking *looking = arg;

	looking->tasks = reallocarray(looking->tasks, looking->nr + 1, sizeof(*looking->tasks));
	if (!looking->tasks)
		abort();
	looking->tasks[looking->nr] = *task;
	looking->tasks[looking->nr++].pool = NULL;	/* the text belongs to the row */
}

/* A part of the run is over. The run has the worst outcome of its parts. */
static void part_over(struct run *run, const struct task *task, enum outcome outcome)
{
	if (!run->shards_over++ || outcome > run->worst) {
		run->worst = outcome;
		run->status = task->status;
	}
}

/* All parts of the run are over. */
static void all_over(struct run *run)
{
	nr_away--;
	if (run->worst == OUTCOME_LOST) {
		run_lost(run);
		return;
	}
	if (run->worst == OUTCOME_KILLED && run->ending == OUTCOME_OK)
		run->ending = OUTCOME_KILLED;
	run_over(run, run->worst == OUTCOME_OK, run->status);
}

/*
 * Look at one task of the run: perhaps it has begun, it is over, or it is lost, because its lease
 * has ended before @over_before. If all tasks of the run are over now, decide about the run.
 */
static void see_task(struct run *run, const struct task *task, int64_t over_before)
{
	enum outcome outcome = task->outcome;
	bool lost = false;

	if (task->state == TASK_OUT && task->until < over_before &&
	    !store_task_lost(store, task, over_before, &lost) && lost)
		outcome = OUTCOME_LOST;
	crash_point("a task was seen");
	if (task->life)
		run->firing.life = task->life;
	if (task->began && task->attempt == run->firing.attempt)
		run_went(run, task->began);
	if (task->state == TASK_OVER || lost)
		part_over(run, task, outcome);
	if (run->ending != OUTCOME_OK && task->state == TASK_OUT && !task->killed)
		pool_kill(run, false);	/* the first call failed, or came before this task */
	if (run->shards_over == task->shards)
		all_over(run);
}

/*
 * Does the task count for each later attempt, though it names an earlier one? If one of several
 * parts has succeeded, no later attempt repeats it.
 */
static bool stays_done(const struct task *task)
{
	return task->shards > 1 && task->state == TASK_OVER && task->outcome == OUTCOME_OK;
}

/* The run of the task, if the run is away and the task counts for its attempt; else NULL. */
static struct run *run_of(const struct task *task)
{
	struct run *run = run_find(task->id, task->at);

	if (!run || !run->away || (task->attempt != run->firing.attempt && !stays_done(task)))
		return NULL;
	return run;
}

/**
 * struct taken_back - runs whose tasks were taken back
 * @runs:	the runs, one for each task
 * @nr:		how many
 */
struct taken_back {
	struct run	**runs;
	size_t		nr;
};

/* A row of store_tasks_back(). */
static void add_back(void *arg, int64_t id, int64_t at)
{
	struct run *run = run_find(id, at);
	struct taken_back *back = arg;

	if (!run)
		return;
	back->runs = reallocarray(back->runs, back->nr + 1, sizeof(struct run *));
	if (!back->runs)
		abort();
	back->runs[back->nr++] = run;
}

/*
 * Runs of the job may wait for a runner of a pool that the job has left. Take the tasks of these
 * runs back. Then the runs begin as the new definition says: with new tasks, or here. If a part of
 * a run has begun, its other parts go to the new pool, if there is one.
 */
static void look_where(void *arg, struct job *job)
{
	struct taken_back back = { 0 };
	int err;

	(void)arg;
	if (!job->moved)
		return;
	err = store_tasks_back(store, job->id, job->def.pool, add_back, &back);
	job->moved = err;
	moved |= err;
	for (size_t i = 0; i < back.nr && !err; i++) {
		if (!back.runs[i]->away)	/* handled with another task of the run */
			continue;
		back.runs[i]->away = false;
		nr_away--;
		run_elsewhere(back.runs[i]);
	}
	free(back.runs);
}

/* Look at the table of tasks, and decide about the runs that are over. */
static void look(void)
{
	struct looking looking = { 0 };
	int64_t over_before = pool_over_before();

	looked = now_us();
	if (moved) {
		moved = false;
		jobs_each(look_where, NULL);
	}
	if (nr_away && store_tasks(store, store->parts, TASK_OUT, keep_task, &looking))
		say(SAY_ERROR, "the store cannot be read: %s", store_error(store));
	for (size_t i = 0; i < looking.nr; i++)
		if (run_of(&looking.tasks[i]))
			run_of(&looking.tasks[i])->shards_over = 0;
	for (size_t i = 0; i < looking.nr; i++)
		if (run_of(&looking.tasks[i]))
			see_task(run_of(&looking.tasks[i]), &looking.tasks[i], over_before);
	free(looking.tasks);
}

void pool_moved(struct job *job)
{
	const struct run *run;

	TAILQ_FOREACH(run, &job->runs, in_job)
		job->moved |= run->away;
	if (!job->moved)
		return;
	moved = true;
	pool_changed();
}

static void look_soon(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	soon = 0;
	if (!core_stuck())
		look();
}

void pool_look(void)
{
	if (!core_stuck() && llabs(now_us() - looked) > FRESH_US)
		look();
}

void pool_clean(void)
{
	used = CLEAN;
}

/* Arm a timer instead of looking at once, so that several changes in a row need one look. */
void pool_changed(void)
{
	struct twheel_task task = { .fn = look_soon, .when_ns = SOON_NS };

	if (nr_away && !soon)
		twheel_sched_add(sched, &task, &soon);
	idle_look();
}

/* If pool_kill() could not write to the store, try again. */
static void kill_again(void *arg, struct run *run)
{
	(void)arg;
	if (run->unkilled)
		pool_kill(run, run->ending == OUTCOME_OK);
}

/* Once a second, try again what failed, and look for changes of which no message came. */
static void look_again(void *arg, const struct twheel_task_info *task)
{
	struct run *run;

	(void)arg;
	(void)task;
	if (core_stuck())
		return;
	TAILQ_FOREACH(run, &waiting, in_ready)
		run->ready = &pool_ready;
	TAILQ_CONCAT(&pool_ready, &waiting, in_ready);
	pool_begin();
	enter_all_accepted();
	end_leases();
	if (unkilled) {
		unkilled = false;
		runs_each(kill_again, NULL);
	}
	look();
	if (used && !store_tasks_clean(store, store->parts)) {
		used--;
		crash_point("tasks were cleaned");
	}
}

void pool_kill(struct run *run, bool gently)
{
	run->unkilled = store_task_kill(store, run->firing.id, run->firing.at, run->job->id,
					gently);
	if (run->unkilled)
		say(SAY_ERROR, "the store cannot be written: %s", store_error(store));
	unkilled |= run->unkilled;
	pool_changed();
}

/* ---- taking over -------------------------------------------------------------------- */

/* Does the task wait in a pool that its job has left? */
static bool is_elsewhere(const struct task *task, const struct def *def)
{
	return !def->pool || !task->pool || strcmp(task->pool, def->pool);
}

/* A row of store_tasks(). If the task belongs to its run's present attempt, the run is away. */
static void found_task(void *arg, const struct task *task)
{
	struct run *run = run_find(task->id, task->at);

	(void)arg;
	used = CLEAN;
	if (run)
		run->tasks = true;
	if (!run || run->away || run->firing.state < STATE_READY ||
	    task->attempt != run->firing.attempt)
		return;
	run->away = true;
	nr_away++;
	if (task->began)
		run_went(run, task->began);
	/* The job may have left the pool, and the daemon died before it took the task back. */
	if (task->state == TASK_READY && run->job->name && is_elsewhere(task, &run->job->def)) {
		run->job->moved = true;
		moved = true;
	}
}

int pool_found(uint64_t parts)
{
	return store_tasks(store, parts, TASK_READY, found_task, NULL);
}

void pool_start(void)
{
	struct twheel_task task = {
		.fn = look_again, .when_ns = LOOK_NS, .period_ns = LOOK_NS,
		.flags = TWHEEL_TASK_DELAY,
	};

	if (!twheel_sched_add(sched, &task, NULL))
		return;
	say(SAY_ERROR, "cannot arm a timer");
	exit(1);
}
