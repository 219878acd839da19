// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Requests of runners, and of receivers that have accepted a run. Any daemon answers them,
 * whichever daemon owns the job: what they change is in the store, where the owner sees it. See
 * pool.c.
 *
 *	POST /v1/take		{"runner", "name", "pool", "room", "wait", "runs": [...], "leave"}
 *	POST /v1/runs/RUN/beat?runner=&attempt=&shard=&shards=&from=&sent=	its output so far
 *	POST /v1/runs/RUN/done?...&status=|lost=&room=&pool=			the last of it
 *	GET  /v1/runners
 *
 * A runner always has a request for work in progress. The request lists the runs that the runner
 * has, and so renews their leases. The daemon answers it when there is work or news (one of these
 * runs is to be killed, or does not belong to the runner any more), or when the request has waited
 * for long enough. Very many runners may wait. So the daemon queries the store once for all waiting
 * requests. The result tells for which of them there is work or news, and only those requests then
 * need queries of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "crash.h"
#include "when.h"

#define ROOM_MAX	1000
#define FROM_MAX	1000000000000000LL	/* more than any run prints */
#define WAIT_MAX_US	(60 * US_PER_S)
#define SLICE_NS	NS_PER_S	/* how often to look for changes that other daemons made */
#define SOON_NS		(2 * NS_PER_MS)	/* several changes in a row need one look */

/**
 * struct take - a runner's request for work
 * @json:	the parsed request; NULL while the request waits
 * @runner:	the runner, whose texts are allocated
 * @room:	how many more runs the runner can execute
 * @wait:	how long the request may wait for work, in us
 * @tasks:	the runs that the runner has; NULL while the request waits
 * @held:	what the answer says of each of @tasks; NULL while the request waits
 * @nr:		the length of @tasks and @held; 0 while the request waits
 * @killing:	of how many of these runs the runner knows already that it is to kill them
 */
struct take {
	struct json_object	*json;
	struct runner		runner;
	int64_t			room;
	int64_t			wait;
	struct task		*tasks;
	enum held		*held;
	size_t			nr;
	int64_t			killing;
};

/* ---- reading a request -------------------------------------------------------------- */

/* Are all keys of @o among @keys? */
static bool only_has(struct json_object *o, const char *const *keys)
{
	struct json_object_iterator at = json_object_iter_begin(o), end = json_object_iter_end(o);
	const char *const *key;

	for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
		for (key = keys; *key && strcmp(*key, json_object_iter_peek_name(&at)); key++)
			;
		if (!*key)
			return false;
	}
	return true;
}

/* A copy of the name @key of the request, which the caller frees; NULL if it is absent or bad. */
static const char *name_of(struct json_object *o, const char *key)
{
	struct json_object *value;
	const char *s = NULL;

	if (json_object_object_get_ex(o, key, &value) &&
	    json_object_is_type(value, json_type_string))
		s = json_object_get_string(value);
	return s && name_good(s) ? strdup(s) : NULL;
}

static bool number_of(struct json_object *o, const char *key, int64_t most, int64_t *n)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value))
		return true;
	*n = json_object_get_int64(value);
	return json_object_is_type(value, json_type_int) && *n >= 0 && *n <= most;
}

/* Parse @o, number @i of the runs that the runner has. Returns false if it is wrong. */
static bool held_of(struct take *take, size_t i, struct json_object *o)
{
	static const char *const keys[] = { "run", "attempt", "shard", "killed", NULL };
	struct task *task = &take->tasks[i];
	struct json_object *key, *killed;
	struct firing f;

	if (!json_object_object_get_ex(o, "run", &key) || !only_has(o, keys) ||
	    !run_parse(json_object_get_string(key), &f) ||
	    !number_of(o, "attempt", INT64_MAX, &task->attempt) ||
	    !number_of(o, "shard", INT64_MAX, &task->shard))
		return false;
	task->id = f.id;
	task->at = f.at;
	take->killing += json_object_object_get_ex(o, "killed", &killed) &&
			 json_object_get_boolean(killed);
	return true;
}

static bool all_held(struct take *take)
{
	struct json_object *list;
	size_t nr;

	if (!json_object_object_get_ex(take->json, "runs", &list))
		return true;
	nr = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : SIZE_MAX;
	if (nr > RUNNER_RUNS)
		return false;
	take->tasks = calloc(nr + 1, sizeof(*take->tasks));
	take->held = calloc(nr + 1, sizeof(*take->held));
	if (!take->tasks || !take->held)
		return false;
	for (take->nr = 0; take->nr < nr; take->nr++)
		if (!held_of(take, take->nr, json_object_array_get_idx(list, take->nr)))
			return false;
	return true;
}

/*
 * Set *@us to how long the request may wait: 0 if it does not say. Returns false if the time is
 * wrong or too long.
 */
static bool wait_of(struct json_object *o, int64_t *us)
{
	struct json_object *value;
	const char *s;
	int64_t ns;

	*us = 0;
	if (!json_object_object_get_ex(o, "wait", &value))
		return true;
	s = json_object_get_string(value);
	if (!s || !parse_duration(s, &ns))
		return false;
	*us = ns / NS_PER_US;
	return *us <= WAIT_MAX_US;
}

/* Returns false with the error set if the request is wrong. */
static bool take_parse(struct request *r, struct take *take)
{
	static const char *const keys[] = { "runner", "name", "pool", "room", "wait", "runs",
					    "leave", NULL };
	static const char wanted[] =
		"expected runner, name, pool, room of at most %d, wait of at most 60s, and runs";

	take->json = parse_body(r);
	if (!take->json)
		return false;
	take->runner = (struct runner) {
		.id = name_of(take->json, "runner"), .pool = name_of(take->json, "pool"),
		.name = name_of(take->json, "name"),
	};
	if (!take->runner.id || !take->runner.pool || !take->runner.name ||
	    !number_of(take->json, "room", ROOM_MAX, &take->room) ||
	    !wait_of(take->json, &take->wait) || !all_held(take))
		refuse(r, MHD_HTTP_BAD_REQUEST, wanted, ROOM_MAX);
	else if (!only_has(take->json, keys))
		refuse(r, MHD_HTTP_BAD_REQUEST, "there is an unknown key in the request");
	return !r->error[0];
}

/* Free the parts of the request that are not needed after its runs have been handled. */
static void forget_runs(struct take *take)
{
	json_object_put(take->json);
	free(take->tasks);
	free(take->held);
	take->json = NULL;
	take->tasks = NULL;
	take->held = NULL;
	take->nr = 0;
}

void take_free(struct take *take)
{
	if (!take)
		return;
	forget_runs(take);
	free((char *)take->runner.id);
	free((char *)take->runner.pool);
	free((char *)take->runner.name);
	free(take);
}

/*
 * The request begins to wait. There may be a thousand such requests of 1 MiB each, so free what can
 * be freed. What is left suffices to answer it: it is not parsed again.
 */
static void keep_little(struct request *r)
{
	forget_runs(r->take);
	free(r->body);
	r->body = NULL;
	r->size = 0;
}

/* ---- work --------------------------------------------------------------------------- */

static void add_number(struct json_object *o, const char *key, int64_t n)
{
	json_object_object_add(o, key, json_object_new_int64(n));
}

/* A row of store_take(). */
static void add_work(void *arg, const struct work *work)
{
	const struct task *task = &work->task;
	struct json_object *o = json_object_new_object();
	char *key = format("%lld-%lld", (long long)task->id, (long long)task->at);
	const char *name = work->name ? work->name : "removed";

	json_object_object_add(o, "run", json_object_new_string(key));
	json_object_object_add(o, "job", json_object_new_string(name));
	add_number(o, "attempt", task->attempt);
	add_number(o, "missed", work->missed);
	add_number(o, "shard", task->shard);
	add_number(o, "shards", task->shards);
	if (work->arg)
		json_object_object_add(o, "arg", json_object_new_string(work->arg));
	json_object_object_add(o, "definition", json_tokener_parse(work->def));
	json_object_array_add(arg, o);
	free(key);
}

static void not_stored(struct request *r)
{
	refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be written: %s",
	       store_error(store));
}

/*
 * The store could not be written, so it has no new leases. If no other daemon uses the store, the
 * runners keep their runs: this daemon takes none from them, and the next daemon takes none before
 * the runners have had time to ask it. Returns whether the runners keep their runs.
 */
static bool keep_leases(void)
{
	if (store->many)
		return false;
	pool_spare();
	return true;
}

/*
 * Take up to @room tasks for the runner. Returns the list of them; NULL, with the error set, if
 * the store could not be written and another daemon may use it.
 */
static struct json_object *take_work(struct request *r, const struct runner *runner, int64_t room)
{
	struct json_object *list = json_object_new_array();
	int err = room ? store_take(store, runner, room, now_us(), add_work, list) : 0;

	if (!err && json_object_array_length(list)) {
		crash_point("tasks were taken");
		pool_changed();
	}
	if (!err)
		return list;
	if (keep_leases()) {
		json_object_put(list);
		return json_object_new_array();
	}
	not_stored(r);
	json_object_put(list);
	return NULL;
}

/*
 * Renew the runner's leases, or, if the request has waited, look for new kills only. Returns 1 if
 * the runner is to be told that it has lost runs or is to kill some; 0 if not; -1 on an error.
 */
static int renew(struct request *r, struct take *take)
{
	int64_t killed = r->deadline ? take->killing : 0;
	int news = 0;

	take->runner.until = now_us() + pool_lease();
	if (r->deadline)
		return store_killed(store, take->runner.id, &killed) ? -1 : killed > take->killing;
	if (store_runner(store, &take->runner, take->tasks, take->held, take->nr,
			 pool_over_before())) {
		for (size_t i = 0; i < take->nr; i++)
			take->held[i] = HELD_GOOD;
		return keep_leases() ? 0 : -1;
	}
	for (size_t i = 0; i < take->nr; i++) {
		news |= take->held[i] == HELD_GONE;
		killed += take->held[i] == HELD_KILL;
	}
	return news || killed > take->killing;
}

/* Those of the runner's runs whose state is @held, in the words of the request. */
static struct json_object *held_json(const struct take *take, enum held held)
{
	struct json_object *list = json_object_new_array(), *all = NULL;

	if (take->nr)
		json_object_object_get_ex(take->json, "runs", &all);
	for (size_t i = 0; i < take->nr; i++) {
		struct json_object *one = json_object_array_get_idx(all, i);

		if (take->held[i] == held)
			json_object_array_add(list, json_object_get(one));
	}
	return list;
}

/* ---- waiting ------------------------------------------------------------------------ */

/**
 * struct idlers - the requests that wait for work
 * @r:		the requests
 * @pools:	their pools; if a runner has no room, an empty text, which no pool is named
 * @runners:	the ids of their runners
 * @wake:	whether there is work or news for the request
 * @nr:		how many requests
 * @room:	how many requests the arrays have room for
 */
struct idlers {
	struct request	**r;
	const char	**pools;
	const char	**runners;
	bool		*wake;
	size_t		nr;
	size_t		room;
};

static uint64_t look_timer;
static bool look_is_soon;

static void add_idler(void *arg, struct request *r)
{
	struct idlers *all = arg;

	if (all->nr == all->room) {
		all->room = 2 * all->room + 64;
		all->r = reallocarray(all->r, all->room, sizeof(struct request *));
		all->pools = reallocarray(all->pools, all->room, sizeof(char *));
		all->runners = reallocarray(all->runners, all->room, sizeof(char *));
		all->wake = reallocarray(all->wake, all->room, sizeof(bool));
		if (!all->r || !all->pools || !all->runners || !all->wake)
			abort();
	}
	all->r[all->nr] = r;
	all->pools[all->nr] = r->take->room ? r->take->runner.pool : "";
	all->runners[all->nr] = r->take->runner.id;
	all->wake[all->nr++] = false;
}

/*
 * Called by store_idle(). Mark the requests for which there is something: work in @pool; or, if
 * @pool is NULL, news for @runner: @killed of its runs are to be killed, more than it knows of.
 */
static void see_idlers(void *arg, const char *pool, const char *runner, int64_t killed)
{
	struct idlers *all = arg;

	for (size_t i = 0; i < all->nr; i++)
		all->wake[i] |= pool ? !strcmp(pool, all->pools[i]) :
				!strcmp(runner, all->runners[i]) &&
				killed > all->r[i]->take->killing;
}

static void look(void *arg, const struct twheel_task_info *task);

static void look_in(int64_t ns)
{
	struct twheel_task task = { .fn = look, .when_ns = ns };

	look_is_soon = ns == SOON_NS;
	if (twheel_sched_add(sched, &task, &look_timer))
		look_timer = 0;
}

void idle_look(void)
{
	if (!look_timer || look_is_soon)
		return;
	twheel_sched_cancel(sched, look_timer, 0);
	look_in(SOON_NS);
}

/*
 * Wake the requests for which there is work or news. If the store cannot be read, none is woken,
 * and each waits until its time is over.
 */
static void look(void *arg, const struct twheel_task_info *task)
{
	struct idlers all = { 0 };

	(void)arg;
	(void)task;
	look_timer = 0;
	requests_each(&pool_ready, add_idler, &all);
	if (all.nr && !core_stuck())
		store_idle(store, all.pools, all.runners, all.nr, see_idlers, &all);
	for (size_t i = 0; i < all.nr; i++)
		if (all.wake[i])
			request_wake(all.r[i]);
	if (all.nr)
		look_in(SLICE_NS);
	free(all.r);
	free(all.pools);
	free(all.runners);
	free(all.wake);
}

/* Let the request wait for work, until its time is over. Returns false if it may not wait. */
static bool wait_for_work(struct request *r, const struct take *take)
{
	if (!request_wait(r, take->wait, NO_SLICE, &pool_ready))
		return false;
	if (!look_timer)
		look_in(SLICE_NS);
	return true;
}

static void take_answer(struct request *r, struct take *take)
{
	int news = renew(r, take);
	struct json_object *work;
	bool gone = peek(r->conn) == PEEK_GONE;

	if (news < 0) {
		not_stored(r);
		return;
	}
	work = take_work(r, &take->runner, gone ? 0 : take->room);
	if (work && !json_object_array_length(work) && !news && !gone && wait_for_work(r, take)) {
		json_object_put(work);
		keep_little(r);
		return;
	}
	r->json = json_object_new_object();
	r->status = MHD_HTTP_OK;
	add_number(r->json, "lease_us", pool_lease());
	json_object_object_add(r->json, "kill", held_json(take, HELD_KILL));
	json_object_object_add(r->json, "gone", held_json(take, HELD_GONE));
	json_object_object_add(r->json, "runs", work);
}

/* The runner ends. Other runners can take tasks at once that would have waited for this one. */
static void take_leave(struct request *r, const struct take *take)
{
	if (store_runner_leave(store, take->runner.id)) {
		not_stored(r);
		return;
	}
	r->json = json_object_new_object();
	r->status = MHD_HTTP_OK;
}

void post_take(struct request *r)
{
	struct json_object *leave;

	if (r->take) {
		take_answer(r, r->take);
		return;
	}
	r->take = calloc(1, sizeof(*r->take));
	if (!r->take || !take_parse(r, r->take))
		return;
	if (json_object_object_get_ex(r->take->json, "leave", &leave) &&
	    json_object_get_boolean(leave))
		take_leave(r, r->take);
	else
		take_answer(r, r->take);
}

/* ---- a task that runs, or is over --------------------------------------------------- */

/* Parse which task the request is about. Its runner is "" if a receiver has accepted the run. */
static bool task_of(struct request *r, struct task *task, int64_t *from)
{
	struct firing f;

	*task = (struct task) { .runner = argument(r, "runner") };
	*from = -1;
	if (!task->runner)
		task->runner = "";
	if (!parse_run(r, &f) || !query_number(r, "attempt", INT64_MAX, &task->attempt) ||
	    !query_number(r, "shard", INT64_MAX, &task->shard) ||
	    !query_number(r, "from", FROM_MAX, from))
		return false;
	if (!task->attempt)
		refuse(r, MHD_HTTP_BAD_REQUEST, "attempt is missing");
	task->id = f.id;
	task->at = f.at;
	return task->attempt;
}

/* The attempt that the task belongs to. All parts (shards) of an attempt have one log. */
static struct firing attempt_of(const struct request *r, const struct task *task)
{
	return (struct firing) { .id = task->id, .at = task->at, .attempt = task->attempt,
				 .shards = argument(r, "shards") ? 2 : 1 };
}

/* Append the output that came with the request to the log of the attempt. */
static void take_output(struct request *r, const struct task *task, int64_t from)
{
	struct firing f = attempt_of(r, task);

	if (r->size)
		log_append(&f, f.shards > 1 ? -1 : from, r->body, r->size);
	api_wake(run_find(f.id, f.at));
}

/*
 * The runner says how many bytes of output it has sent. If it has sent some to another daemon, this
 * daemon's log is shorter: then answer with the length of that log, and do nothing else. The runner
 * then sends the rest.
 */
static bool lacks_output(struct request *r, const struct task *task)
{
	struct firing f = attempt_of(r, task);
	int64_t sent = 0, size;

	if (!query_number(r, "sent", FROM_MAX, &sent))
		return true;
	size = log_size(&f);
	if (size >= sent)
		return false;
	r->json = json_object_new_object();
	r->status = MHD_HTTP_OK;
	add_number(r->json, "log", size);
	return true;
}

/* Answer that the store has refused the report on an attempt, with @err. */
static void not_taken(struct request *r, int err)
{
	if (err == -ESTALE)
		refuse(r, MHD_HTTP_CONFLICT, "this attempt is over, or belongs to another runner");
	else if (err == -EAGAIN)
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE,
		       "the store does not know yet that this runner has the run");
	else
		not_stored(r);
}

/*
 * Set *@held to whether the runner still holds the task. Call this before anything is answered
 * about the task or written for it. Returns false, with the error set, if the store cannot say.
 */
static bool is_held(struct request *r, const struct task *task, enum held *held)
{
	/* A receiver that has accepted a request has no lease. */
	struct runner runner = { .id = task->runner, .name = "", .pool = "",
				 .until = *task->runner ? now_us() + pool_lease() : NEVER };

	if (!store_beat_task(store, &runner, task, held, pool_over_before()))
		return true;
	not_stored(r);
	return false;
}

void post_beat(struct request *r)
{
	enum held held = HELD_GONE;
	struct task task;
	int64_t from;
	int err;

	if (!task_of(r, &task, &from) || !is_held(r, &task, &held))
		return;
	if (held == HELD_GONE) {
		err = store_task_gone(store, &task);
		not_taken(r, err ? err : -ESTALE);
		return;
	}
	if (lacks_output(r, &task))
		return;
	take_output(r, &task, from);
	if (r->size && store_task_here(store, &task)) {
		not_stored(r);
		return;
	}
	r->json = json_object_new_object();
	r->status = MHD_HTTP_OK;
}

/*
 * A task is over. If its runner has @room, the answer has the next tasks. The output is written
 * before the store learns of the end: if this daemon dies between the two, the runner sends both
 * again. The log of a run in parts then has that output twice, because its parts have no offsets.
 */
static void done(struct request *r, struct task *task, enum held held, int64_t from, int64_t room)
{
	struct runner runner = { .id = task->runner, .pool = argument(r, "pool"),
				 .until = now_us() + pool_lease() };
	struct firing f = attempt_of(r, task);
	int err;

	if (held != HELD_GONE)
		take_output(r, task, from);
	err = store_task_over(store, task);
	crash_point("a task was over");
	if (err) {
		not_taken(r, err);
	} else {
		if (f.shards < 2)
			log_whole(&f);
		pool_changed();
		r->json = json_object_new_object();
		r->status = MHD_HTTP_OK;
		if (runner.pool && *runner.id && room)
			json_object_object_add(r->json, "runs", take_work(r, &runner, room));
	}
}

void post_done(struct request *r)
{
	int64_t from, lost = 0, room = 0;
	enum held held = HELD_GONE;
	struct task task;

	if (!task_of(r, &task, &from) || !query_number(r, "status", INT32_MAX, &task.status) ||
	    !query_number(r, "lost", 1, &lost) || !query_number(r, "room", ROOM_MAX, &room))
		return;
	/* If the runner does not hold the task, done() finds out why. */
	if (!is_held(r, &task, &held))
		return;
	if (held != HELD_GONE && lacks_output(r, &task))
		return;
	task.outcome = lost ? OUTCOME_LOST : task.status ? OUTCOME_FAILED : OUTCOME_OK;
	done(r, &task, held, from, room);
}

/* ---- runners ------------------------------------------------------------------------ */

static void add_runner(void *arg, const struct runner *runner)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "runner", json_object_new_string(runner->id));
	json_object_object_add(o, "pool", json_object_new_string(runner->pool));
	json_object_object_add(o, "name", json_object_new_string(runner->name));
	add_number(o, "lease_us", runner->until - now_us());
	json_object_array_add(arg, o);
}

void get_runners(struct request *r)
{
	r->json = json_object_new_array();
	r->status = MHD_HTTP_OK;
	if (store_runners(store, now_us(), add_runner, r->json))
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be read: %s",
		       store_error(store));
}
