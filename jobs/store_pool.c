// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The tables of runners and of what they run: the part of store.h that is for pool.c.
 *
 * Each statement that changes a task names the attempt, and the state that the task must be in
 * before the change. So a change that comes too late changes nothing. Meanwhile the firing stays in
 * the table "running". It is over when its owner has seen that its tasks are over.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"

/* A row of Q_TASKS. */
static void task_row(struct store *store, void *call, void *arg)
{
	struct task task = {
		.id = sql_number(store, 0),
		.at = sql_number(store, 1),
		.shard = sql_number(store, 2),
		.shards = sql_number(store, 3),
		.job = sql_number(store, 4),
		.attempt = sql_number(store, 5),
		.state = (enum task_state)sql_number(store, 6),
		.outcome = (enum outcome)sql_number(store, 7),
		.status = sql_number(store, 8),
		.life = sql_number(store, 9),
		.until = sql_number(store, 10),
		.began = sql_number(store, 11),
		.killed = sql_number(store, 12),
		.pool = sql_text(store, 13),
	};

	(*(void (**)(void *arg, const struct task *))call)(arg, &task);
}

int store_tasks(struct store *store, uint64_t parts, enum task_state least,
		void (*fn)(void *arg, const struct task *), void *arg)
{
	return sql_each(store, Q_TASKS, task_row, &fn, arg, "ii", (int64_t)parts, (int64_t)least);
}

/* ---- attempts ----------------------------------------------------------------------- */

static int add_task(struct store *store, const struct task *t)
{
	return sql_run(store, Q_TASK_ADD, "iiiiitiiti", t->id, t->at, t->shard, t->shards, t->job,
		       t->pool, t->prio, t->attempt, t->wants, t->wants_until);
}

int store_tasks_begin(struct store *store, const struct task *rows, size_t nr)
{
	int err = store->ops->begin(store);
	bool again = false;

	if (err)
		return err;
	for (size_t i = 0; i < nr && !err; i++) {
		if (!rows[i].shard && rows[i].attempt > 1 && (rows[i].shards > 1 || rows[i].whole))
			err = sql_run(store, Q_TASK_SPLIT, "iiii", rows[i].id, rows[i].at,
				      rows[i].attempt, (int64_t)rows[i].whole);
		if (!rows[i].shard && !err) {
			err = sql_run(store, Q_TASK_AGAIN, "itiii", rows[i].attempt, rows[i].pool,
				      rows[i].prio, rows[i].id, rows[i].at);
			again = store->changed;
		}
		if (!err && !again)
			err = add_task(store, &rows[i]);
	}
	if (!err && nr)
		err = tell(store, NEWS_TASK, rows[0].job, 0, 0);
	return store->ops->end(store, err);
}

/* A row of Q_TASK_BACK. */
static void back_row(struct store *store, void *call, void *arg)
{
	(*(void (**)(void *arg, int64_t id, int64_t at))call)(arg, sql_number(store, 0),
							      sql_number(store, 1));
}

int store_tasks_back(struct store *store, int64_t job, const char *pool,
		     void (*fn)(void *arg, int64_t id, int64_t at), void *arg)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_each(store, Q_TASK_BACK, back_row, &fn, arg, "i", job);
	if (!err && pool)
		err = sql_run(store, Q_TASK_POOL, "ti", pool, job);
	return store->ops->end(store, err);
}

int store_task_accept(struct store *store, const struct task *t)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_TASK_ACCEPT, "iiiiii", t->id, t->at, t->job, t->attempt,
		      store->life, t->began);
	/*
	 * The attempt before may have had a part for each runner. A part that was successful counts
	 * for later attempts: if the store gave its row first, this attempt would count as over.
	 */
	if (!err && store->changed)
		err = sql_run(store, Q_TASK_WHOLE, "ii", t->id, t->at);
	return store->ops->end(store, err);
}

int store_task_lost(struct store *store, const struct task *t, int64_t now, bool *lost)
{
	int err = sql_run(store, Q_TASK_LOST, "iiiii", t->id, t->at, t->shard, t->attempt, now);

	*lost = !err && store->changed;
	return err;
}

int store_task_kill(struct store *store, int64_t id, int64_t at, int64_t job, bool gently)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_TASK_CANCEL, "iii", id, at, (int64_t)gently);
	if (!err && !gently)
		err = sql_run(store, Q_TASK_KILL, "ii", id, at);
	if (!err)
		err = tell(store, NEWS_TASK, job, 0, 0);
	return store->ops->end(store, err);
}

int store_tasks_clean(struct store *store, uint64_t parts)
{
	return sql_run(store, Q_TASKS_CLEAN, "i", (int64_t)parts);
}

/* ---- runners ------------------------------------------------------------------------ */

/* How much a runner gets at once, about: the answer must arrive before the lease is over. */
#define TAKE_BYTES	(4 << 20)

/**
 * struct taken - store_take() in progress
 * @fn:		called for each task
 * @arg:	its first argument
 * @tasks:	the tasks that the runner may get
 * @nr:		how many
 * @task:	the task that is being handed out
 * @bytes:	the size of the definitions and arguments so far
 */
struct taken {
	void			(*fn)(void *arg, const struct work *work);
	void			*arg;
	struct task		*tasks;
	size_t			nr;
	const struct task	*task;
	size_t			bytes;
};

/* A row of Q_TASK_FIND. */
static void found_row(struct store *store, void *call, void *arg)
{
	struct taken *taken = arg;

	(void)call;
	taken->tasks[taken->nr++] = (struct task) {
		.id = sql_number(store, 0), .at = sql_number(store, 1),
		.shard = sql_number(store, 2), .shards = sql_number(store, 3),
		.job = sql_number(store, 4), .attempt = sql_number(store, 5),
	};
}

/* The row of Q_TASK_OUT. */
static void work_row(struct store *store, void *call, void *arg)
{
	struct taken *taken = arg;
	struct work work = {
		.task = *taken->task, .missed = sql_number(store, 0), .arg = sql_text(store, 1),
		.name = sql_text(store, 2), .def = sql_text(store, 3),
	};

	(void)call;
	taken->bytes += strlen(work.def) + (work.arg ? strlen(work.arg) : 0);
	taken->fn(taken->arg, &work);
}

/* The task belongs to the runner now. Its log, and so its row in history, belong to our life. */
static int hand_out(struct store *store, const struct runner *runner, struct taken *taken,
		    int64_t now)
{
	const struct task *t = taken->task;
	int err = sql_each(store, Q_TASK_OUT, work_row, NULL, taken, "tiiiiii", runner->id,
			   store->life, runner->until, now, t->id, t->at, t->shard);

	return err ? err : sql_run(store, Q_TASK_LIFE, "iii", store->life, t->id, t->at);
}

int store_take(struct store *store, const struct runner *runner, int64_t room, int64_t now,
	       void (*fn)(void *arg, const struct work *), void *arg)
{
	struct taken taken = { .fn = fn, .arg = arg,
			       .tasks = calloc((size_t)room + 1, sizeof(*taken.tasks)) };
	int err = taken.tasks ? store->ops->begin(store) : -ENOMEM;

	if (err)
		goto out;
	err = sql_each(store, Q_TASK_FIND, found_row, NULL, &taken, "ttii", runner->pool,
		       runner->id, now, room);
	for (size_t i = 0; i < taken.nr && !err && taken.bytes < TAKE_BYTES; i++) {
		taken.task = &taken.tasks[i];
		err = hand_out(store, runner, &taken, now);
	}
	if (!err && taken.nr)
		err = tell(store, NEWS_TASK, taken.tasks[0].job, 0, 0);
	err = store->ops->end(store, err);
out:
	free(taken.tasks);
	return err;
}

int store_task_here(struct store *store, const struct task *t)
{
	int err = store->many ? sql_run(store, Q_TASK_HERE, "iiii", store->life, t->id, t->at,
					t->shard) : 0;

	if (err || !store->many || !store->changed)
		return err;
	return sql_run(store, Q_TASK_LIFE, "iii", store->life, t->id, t->at);
}

/* The row of Q_TASK_BEAT: the runner still has the task. */
static void held_row(struct store *store, void *call, void *arg)
{
	(void)call;
	*(enum held *)arg = sql_number(store, 0) ? HELD_KILL : HELD_GOOD;
}

int store_beat_task(struct store *store, const struct runner *runner, const struct task *task,
		    enum held *held, int64_t now)
{
	*held = HELD_GONE;
	return sql_each(store, Q_TASK_BEAT, held_row, NULL, held, "iiiiiti", runner->until,
			task->id, task->at, task->shard, task->attempt, runner->id, now);
}

/* A row of Q_BEATS: the runner still has this task. */
static void beats_row(struct store *store, void *call, void *arg)
{
	enum held *held = arg;

	(void)call;
	held[sql_number(store, 0) - 1] = sql_number(store, 1) ? HELD_KILL : HELD_GOOD;
}

/* store_beat_task() for many, as one statement. */
static int beat_tasks(struct store *store, const struct runner *runner, const struct task *tasks,
		      enum held *held, size_t nr, int64_t now)
{
	char *ids = sql_list(&tasks->id, sizeof(*tasks), nr),
	     *ats = sql_list(&tasks->at, sizeof(*tasks), nr),
	     *shards = sql_list(&tasks->shard, sizeof(*tasks), nr),
	     *attempts = sql_list(&tasks->attempt, sizeof(*tasks), nr);
	int err = -ENOMEM;

	for (size_t i = 0; i < nr; i++)
		held[i] = HELD_GONE;
	if (ids && ats && shards && attempts)
		err = sql_each(store, Q_BEATS, beats_row, NULL, held, "ittttti", runner->until, ids,
			       ats, shards, attempts, runner->id, now);
	free(ids);
	free(ats);
	free(shards);
	free(attempts);
	return err;
}

/* Enter the runner, or renew its row; and delete the rows of runners that count as dead. */
static int enter_runner(struct store *store, const struct runner *runner, int64_t now)
{
	int err = sql_run(store, Q_RUNNERS_GONE, "i", now);

	return err ? err : sql_run(store, Q_RUNNER, "ttti", runner->id, runner->pool, runner->name,
				   runner->until);
}

/*
 * If lives share the store, each statement is a transaction of its own, and needs no lock of all
 * lives: if another life's long transaction held that lock, runners would lose their leases. Each
 * statement checks by itself that the task still belongs to the runner.
 */
int store_runner(struct store *store, const struct runner *runner, const struct task *tasks,
		 enum held *held, size_t nr, int64_t now)
{
	int err;

	if (store->many) {
		err = enter_runner(store, runner, now);
		return err || !nr ? err : beat_tasks(store, runner, tasks, held, nr, now);
	}
	err = store->ops->begin(store);
	if (err)
		return err;
	err = enter_runner(store, runner, now);
	for (size_t i = 0; i < nr && !err; i++)
		err = store_beat_task(store, runner, &tasks[i], &held[i], now);
	return store->ops->end(store, err);
}

int store_leases_end(struct store *store, int64_t until)
{
	static const enum sql_id steps[] = { Q_RUNNERS_END, Q_TASKS_END, Q_TASKS_WANT };
	int err = store->ops->begin(store);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !err; i++)
		err = sql_run(store, steps[i], "i", until);
	return store->ops->end(store, err);
}

int store_runner_leave(struct store *store, const char *id)
{
	return sql_run(store, Q_RUNNER_LEAVE, "t", id);
}

/* A row of Q_RUNNERS. */
static void runner_row(struct store *store, void *call, void *arg)
{
	struct runner runner = {
		.id = sql_text(store, 0), .pool = sql_text(store, 1), .name = sql_text(store, 2),
		.until = sql_number(store, 3),
	};

	(*(void (**)(void *arg, const struct runner *))call)(arg, &runner);
}

int store_runners(struct store *store, int64_t now, void (*fn)(void *arg, const struct runner *),
		  void *arg)
{
	return sql_each(store, Q_RUNNERS, runner_row, &fn, arg, "i", now);
}

/* The row of a query for one number. */
static void take_number(struct store *store, void *call, void *arg)
{
	(void)call;
	*(int64_t *)arg = sql_number(store, 0);
}

int store_killed(struct store *store, const char *id, int64_t *nr)
{
	return sql_each(store, Q_TASK_KILLED, take_number, NULL, nr, "t", id);
}

/* A row of Q_IDLE or Q_POOL_READY. */
static void idle_row(struct store *store, void *call, void *arg)
{
	(*(void (**)(void *arg, const char *pool, const char *runner, int64_t killed))call)
		(arg, sql_text(store, 0), sql_text(store, 1), sql_number(store, 2));
}

/* A list of the names, with commas between them, which no name has. NULL if there is no memory. */
static char *list_of(const char *const *names, size_t nr)
{
	size_t size = 1;
	char *text, *end;

	for (size_t i = 0; i < nr; i++)
		size += strlen(names[i]) + 1;
	text = malloc(size);
	end = text;
	for (size_t i = 0; text && i < nr; i++)
		end += sprintf(end, "%s%s", i ? "," : "", names[i]);
	return text;
}

/* Without a server, a query needs no round trip, so one for each pool and runner is cheap. */
static int each_idle(struct store *store, const char *const *pools, const char *const *runners,
		     size_t nr, void (*fn)(void *arg, const char *, const char *, int64_t),
		     void *arg)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		int64_t killed = 0;

		err = sql_each(store, Q_POOL_READY, idle_row, &fn, arg, "t", pools[i]);
		if (!err)
			err = store_killed(store, runners[i], &killed);
		if (killed)
			fn(arg, NULL, runners[i], killed);
	}
	return err;
}

int store_idle(struct store *store, const char *const *pools, const char *const *runners, size_t nr,
	       void (*fn)(void *arg, const char *pool, const char *runner, int64_t killed),
	       void *arg)
{
	char *of_pools, *of_runners;
	int err = -ENOMEM;

	if (!store->many)
		return each_idle(store, pools, runners, nr, fn, arg);
	of_pools = list_of(pools, nr);
	of_runners = list_of(runners, nr);
	if (of_pools && of_runners)
		err = sql_each(store, Q_IDLE, idle_row, &fn, arg, "tt", of_pools, of_runners);
	free(of_pools);
	free(of_runners);
	return err;
}

int store_task_gone(struct store *store, const struct task *t)
{
	int64_t state = 0;
	int err = sql_each(store, Q_TASK_STATE, take_number, NULL, &state, "iiiitii", t->id, t->at,
			   t->shard, t->attempt, t->runner, (int64_t)t->outcome, t->status);

	if (err)
		return err;
	return state == 1 ? 0 : state == 2 && !*t->runner ? -EAGAIN : -ESTALE;
}

int store_task_over(struct store *store, const struct task *t)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_TASK_OVER, "iiiiiiit", (int64_t)t->outcome, t->status, store->life,
		      t->id, t->at, t->shard, t->attempt, t->runner);
	if (!err && store->changed)
		err = sql_run(store, Q_TASK_LIFE, "iii", store->life, t->id, t->at);
	else if (!err)
		err = store_task_gone(store, t);
	if (!err)
		err = tell(store, NEWS_TASK, 0, t->id, t->at);
	return store->ops->end(store, err);
}
