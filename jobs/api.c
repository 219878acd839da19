// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The answers to requests. Times are in the format of RFC 3339, in UTC. A request that is wrong is
 * answered with {"error": "..."}, and has changed nothing.
 *
 *	POST   /v1/jobs				a list: all of it or nothing
 *	GET    /v1/jobs?prefix=&after=&limit=&plan=
 *	GET    /v1/jobs/NAME			PUT    /v1/jobs/NAME	If-Match, If-None-Match: *
 *	DELETE /v1/jobs/NAME			POST   /v1/jobs/NAME/run|pause|resume
 *	POST   /v1/jobs/NAME/shots		DELETE /v1/jobs/NAME/shots/KEY
 *	GET    /v1/runs?job=&outcome=&since=&before=&limit=
 *	GET    /v1/runs/RUN			GET    /v1/runs/RUN/log?attempt=&from=&wait=
 *	POST   /v1/runs/RUN/kill		PUT    /v1/days/CALENDAR	a list of dates
 *	GET    /v1/preview?cron=&zone=&n=	GET    /v1/days/CALENDAR
 *	GET    /v1/plan?prefix=&after=		GET    /	the page
 *	GET    /v1/nodes			GET    /metrics
 *
 * The requests of runners are in take.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "civil.h"
#include "page.html.h"
#include "policy.h"
#include "strict.h"
#include "when.h"

#define LIMIT		100
#define LIMIT_MAX	1000
#define MINUTES		60	/* how far get_plan() looks ahead */
#define RUNS_ONE	100	/* how many runs that are not over to list of a single job */
#define RUNS_EACH	10	/* the same, of each of several jobs */
#define PLAN_STEPS	20000	/* how many steps of due_minutes() a request may take: some ms */
#define LOG_PART	65536
#define SHOWN		5
#define SHOTS_MAX	10000	/* in one transaction, during which no runner is answered */
#define WAIT_MAX_US	(60 * US_PER_S)
#define SLICE_US	US_PER_S	/* how often to look at a run that may be elsewhere */

/*
 * Set the status for what a function of registry.c has returned. Returns true if it was no error.
 */
static bool went_well(struct request *r, int err)
{
	static const struct { int err; unsigned int status; } answers[] = {
		{ 0, MHD_HTTP_OK }, { -EINVAL, MHD_HTTP_BAD_REQUEST },
		{ -ENOENT, MHD_HTTP_NOT_FOUND }, { -EEXIST, MHD_HTTP_CONFLICT },
		{ -EBUSY, MHD_HTTP_CONFLICT }, { -ESTALE, MHD_HTTP_PRECONDITION_FAILED },
	};

	r->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].err == err)
			r->status = answers[i].status;
	return !err;
}

bool query_number(struct request *r, const char *name, int64_t most, int64_t *n)
{
	const char *s = argument(r, name);
	char *end;

	if (!s)
		return true;
	errno = 0;
	*n = strtoll(s, &end, 10);
	if (*s && !*end && !errno && *n >= 0 && *n <= most)
		return true;
	refuse(r, MHD_HTTP_BAD_REQUEST, "%s: '%.64s' is not a number of at most %lld", name, s,
	       (long long)most);
	return false;
}

/* query_number() for a duration up to @most, in us. */
static bool query_duration(struct request *r, const char *name, int64_t most, int64_t *us)
{
	const char *s = argument(r, name);

	if (!s)
		return true;
	if (parse_duration(s, us) && *us / NS_PER_US <= most) {
		*us /= NS_PER_US;
		return true;
	}
	refuse(r, MHD_HTTP_BAD_REQUEST, "%s: '%.64s' is not a duration of at most %llds", name, s,
	       (long long)(most / US_PER_S));
	return false;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void add_string(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

static void add_int(struct json_object *o, const char *key, int64_t value)
{
	json_object_object_add(o, key, json_object_new_int64(value));
}

static void add_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

static void add_time(struct json_object *o, const char *key, int64_t us)
{
	char buf[40];

	add_string(o, key, us && us != NEVER ? time_text(us, buf) : NULL);
}

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[NR_OUTCOMES] = {
		"ok", "failed", "timeout", "killed", "lost", "skipped", "missed",
	};

	return names[outcome];
}

static struct json_object *firing_json(const struct firing *f, const char *job)
{
	struct json_object *o = json_object_new_object();
	char key[64];

	snprintf(key, sizeof(key), "%lld-%lld", (long long)f->id, (long long)f->at);
	add_string(o, "run", key);
	add_string(o, "job", job);
	add_time(o, "at", f->at);
	add_int(o, "attempt", f->attempt);
	add_int(o, "missed", f->missed);
	add_time(o, "fired", f->fired);
	add_int(o, "life", f->life);
	return o;
}

static void add_run(void *arg, struct run *run)
{
	static const char *const states[] = { "queued", "waiting", "ready", "ready",
					      "ready" };
	struct json_object *o = firing_json(&run->firing, job_name(run->job));

	add_string(o, "state", run_is_out(run) ? "running" : states[run->firing.state]);
	if (run->firing.state == STATE_WAITING)
		add_time(o, "wake", run->firing.wake);
	if (run_is_out(run))
		add_time(o, "began", run->began);
	json_object_array_add(arg, o);
}

/* Add a firing of another life. Only what is in the store is known of it. */
static void add_firing(struct json_object *list, const struct firing *f, const char *job)
{
	static const char *const states[] = { "queued", "waiting", "running", "running",
					      "running" };
	struct json_object *o = firing_json(f, job);

	add_string(o, "state", states[f->state]);
	json_object_array_add(list, o);
}

/**
 * struct wanted - which firings that are not over to list
 * @list:	where to add them
 * @job:	only those of this job; 0 for all
 * @id:		only the firing (@id, @at); 0 for all
 * @at:		see @id
 * @left:	how many more to list at most
 */
struct wanted {
	struct json_object	*list;
	int64_t			job;
	int64_t			id;
	int64_t			at;
	int64_t			left;
};

static bool is_wanted(struct wanted *wanted, const struct firing *f)
{
	return (!wanted->job || f->job == wanted->job) &&
	       (!wanted->id || (f->id == wanted->id && f->at == wanted->at)) && wanted->left-- > 0;
}

/* If this firing of another life is wanted, add it. */
static void add_wanted(void *arg, const struct firing *f)
{
	struct wanted *wanted = arg;
	const struct job *job = job_by_id(f->job);

	if (is_wanted(wanted, f))
		add_firing(wanted->list, f, job ? job_name(job) : NULL);
}

/* If this firing of our own life is wanted, add it. */
static void add_wanted_run(void *arg, struct run *run)
{
	struct wanted *wanted = arg;

	if (is_wanted(wanted, &run->firing))
		add_run(wanted->list, run);
}

/* Add the firings that are in parts of other lives. */
static void add_others(struct wanted wanted)
{
	uint64_t parts = ~store->parts;

	if (wanted.job)
		parts &= (uint64_t)1 << (wanted.job & (PARTS - 1));
	store_running(store, parts, add_wanted, &wanted);
}

static void add_ended(void *arg, const struct ended *e)
{
	const struct job *job = job_by_id(e->firing.job);
	struct json_object *o = firing_json(&e->firing, job ? job_name(job) : NULL);

	add_string(o, "state", "over");
	add_string(o, "outcome", outcome_name(e->outcome));
	add_bool(o, "more", e->more);
	if (e->status >= 0)
		add_int(o, "status", e->status);
	if (e->began)
		add_time(o, "began", e->began);
	add_time(o, "ended", e->ended);
	add_int(o, "seq", e->seq);
	json_object_array_add(arg, o);
}

static bool read_history(struct request *r, const struct query *query, struct json_object *to)
{
	if (!store_history(store, query, add_ended, to))
		return true;
	refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be read: %s",
	       store_error(store));
	return false;
}

/* parse_body() of a body that is text. */
static struct json_object *parse_text(struct request *r)
{
	struct json_tokener *parser = json_tokener_new();
	struct json_object *json = NULL;

	if (!parser)
		return NULL;
	json_tokener_set_flags(parser, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	if (r->size)
		json = json_tokener_parse_ex(parser, r->body, (int)r->size);
	if (json_tokener_get_error(parser) != json_tokener_success || !json ||
	    json_tokener_get_parse_end(parser) != r->size) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "this is not JSON, at byte %zu",
		       json_tokener_get_parse_end(parser));
		json_object_put(json);
		json = NULL;
	} else if (json_has_twice(json, r->body, r->size)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "an object in the JSON has a key twice");
		json_object_put(json);
		json = NULL;
	}
	json_tokener_free(parser);
	return json;
}

/* What json-c takes for UTF-8 may be longer than it need be, a surrogate, or beyond U+10FFFF. */
struct json_object *parse_body(struct request *r)
{
	size_t size = r->size ? text_length(r->body) : 0;

	if (json_has_nul(r->body, r->size))
		refuse(r, MHD_HTTP_BAD_REQUEST, "there is a NUL in the JSON");
	else if (size < r->size)
		refuse(r, MHD_HTTP_BAD_REQUEST, "this is not UTF-8, at byte %zu", size);
	else
		return parse_text(r);
	return NULL;
}

/* ---- jobs --------------------------------------------------------------------------- */

static struct job *find_job(struct request *r)
{
	struct job *job = job_by_name(r->segment[2]);

	if (!job)
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no job '%.128s'", r->segment[2]);
	return job;
}

static void add_next(struct json_object *o, const struct job *job, int nr)
{
	struct json_object *list = json_object_new_array();
	int64_t at = job->due_id ? job->due_at : 0;
	char buf[40];

	for (int i = 0; i < nr && at && at != NEVER; i++) {
		json_object_array_add(list, json_object_new_string(time_text(at, buf)));
		if (job->def.kind != KIND_CRON && job->def.kind != KIND_RATE)
			break;
		at = next_due(&job->def, job->name, at);
	}
	json_object_object_add(o, "next", list);
}

/**
 * struct shown - a job that is being described
 * @id:		its id
 * @json:	its description
 */
struct shown {
	int64_t			id;
	struct json_object	*json;
};

/* For qsort() and bsearch(). */
static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/**
 * struct showing - all jobs that are being described
 * @shown:	the jobs, sorted by their ids
 * @nr:		how many
 * @most:	how many runs that are not over to list of each, at most
 */
struct showing {
	struct shown	*shown;
	size_t		nr;
	size_t		most;
};

/* The member @key of the job's description; NULL if the job is not being described. */
static struct json_object *member_of(const struct showing *s, int64_t job, const char *key)
{
	struct shown wanted = { .id = job }, *found;

	found = bsearch(&wanted, s->shown, s->nr, sizeof(wanted), compare_shown);
	return found ? json_object_object_get(found->json, key) : NULL;
}

/* Note when a job of another life is due. Memory has that of our own jobs only. */
static void take_due(void *arg, const struct due *due)
{
	struct job *job = job_by_id(due->job);

	(void)arg;
	if (!job)
		return;
	job->due_id = due->id;
	job->due_at = due->at;
}

static int read_dues(struct job *const *jobs, const int64_t *ids, size_t nr)
{
	bool mine = true;

	for (size_t i = 0; i < nr; i++) {
		if (store_owns(store, ids[i]))
			continue;
		mine = false;
		jobs[i]->due_id = 0;
	}
	return mine ? 0 : store_dues(store, ids, nr, take_due, NULL);
}

/* Describe a job by what memory has. If only one time is asked for, leave out the definition. */
static struct json_object *job_json(const struct job *job, int times, size_t most)
{
	struct json_object *o = json_object_new_object(), *runs = json_object_new_array();
	struct run *run;

	add_string(o, "name", job->name);
	add_int(o, "rev", job->rev);
	add_bool(o, "paused", job->paused);
	if (job->broken)
		add_string(o, "broken", job->broken);
	add_next(o, job, times);
	add_int(o, "active", job->nr_runs);
	TAILQ_FOREACH(run, &job->runs, in_job) {
		if (json_object_array_length(runs) == most)
			break;
		add_run(runs, run);
	}
	json_object_object_add(o, "runs", runs);
	json_object_object_add(o, "last", json_object_new_array());
	if (times > 1) {
		add_int(o, "part", job->id & (PARTS - 1));
		json_object_object_add(o, "definition", json_object_get(job_definition(job)));
	}
	return o;
}

static void show_other(void *arg, const struct firing *f)
{
	const struct showing *s = arg;
	struct json_object *runs = member_of(s, f->job, "runs");

	if (!runs)
		return;
	json_object_int_inc(member_of(s, f->job, "active"), 1);
	if (json_object_array_length(runs) < s->most)
		add_firing(runs, f, job_name(job_by_id(f->job)));
}

static void show_last(void *arg, const struct ended *e)
{
	struct json_object *last = member_of(arg, e->firing.job, "last");

	if (last)
		add_ended(last, e);
}

/* Add what the store has of the jobs: firings of other lives, and the last attempts. */
static int show_store(struct showing *s, const int64_t *ids, int times)
{
	struct query query = { .job = ids[0], .outcome = -1, .limit = times };
	uint64_t parts = 0;
	int err;

	qsort(s->shown, s->nr, sizeof(*s->shown), compare_shown);
	for (size_t i = 0; i < s->nr; i++)
		parts |= (uint64_t)1 << (ids[i] & (PARTS - 1));
	err = store_running(store, parts & ~store->parts, show_other, s);
	if (!err && times > 1)
		return store_history(store, &query, show_last, s);
	return err ? err : store_last(store, ids, s->nr, show_last, s);
}

/*
 * Describe jobs, each with its next @times times and its last @times attempts; @times may only be
 * more than one if there is one job. The store is asked equally often however many jobs there are,
 * because the loop waits for it.
 */
static struct json_object *jobs_json(struct request *r, struct job *const *jobs, size_t nr,
				     int times)
{
	struct showing showing = { calloc(nr + 1, sizeof(struct shown)), nr,
				   times > 1 ? RUNS_ONE : RUNS_EACH };
	struct json_object *list = json_object_new_array();
	int64_t *ids = calloc(nr + 1, sizeof(*ids));
	int err = showing.shown && ids ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < nr; i++)
		ids[i] = jobs[i]->id;
	if (!err)
		err = read_dues(jobs, ids, nr);
	for (size_t i = 0; !err && i < nr; i++) {
		struct json_object *json = job_json(jobs[i], times, showing.most);

		showing.shown[i] = (struct shown) { ids[i], json };
		json_object_array_add(list, json);
	}
	if (!err)
		err = show_store(&showing, ids, times);
	if (err)
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be read: %s",
		       store_error(store));
	free(showing.shown);
	free(ids);
	return list;
}

/* jobs_json() of one job. */
static struct json_object *one_json(struct request *r, struct job *job, int times)
{
	struct json_object *list = jobs_json(r, &job, 1, times),
			   *o = json_object_get(json_object_array_get_idx(list, 0));

	json_object_put(list);
	return o;
}

static void get_job(struct request *r)
{
	struct job *job = find_job(r);

	if (!job)
		return;
	r->status = MHD_HTTP_OK;
	r->json = one_json(r, job, SHOWN);
}

/* How often jobs are due in each of the coming minutes, as a list. */
static struct json_object *minutes_json(const int64_t *minutes)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < MINUTES; i++)
		json_object_array_add(list, json_object_new_int64(minutes[i]));
	return list;
}

/* due_minutes() by what memory has: job->due_at may be out of date if another life owns the job. */
static size_t job_minutes(const struct job *job, int64_t now, int64_t *minutes)
{
	if (job->paused || job->broken)
		return 1;
	return due_minutes(&job->def, job->name, job->due_at, now, minutes, MINUTES);
}

/**
 * struct list - get_jobs() or get_plan() in progress
 * @prefix:	list only jobs whose names begin with this; NULL for all
 * @after:	list only jobs whose names come after this; NULL for all
 * @left:	how many more jobs, or steps, may be taken
 * @jobs:	get_jobs(): the jobs
 * @nr:		how many
 * @now:	get_plan(): the time
 * @minutes:	get_plan(): the result
 * @last:	get_plan(): the name of the last job
 * @more:	get_plan(): there are more jobs
 */
struct list {
	const char	*prefix;
	const char	*after;
	int64_t		left;
	struct job	*jobs[LIMIT_MAX];
	size_t		nr;
	int64_t		now;
	int64_t		minutes[MINUTES];
	const char	*last;
	bool		more;
};

static bool is_listed(const struct list *list, const struct job *job)
{
	return (!list->prefix || !strncmp(job->name, list->prefix, strlen(list->prefix))) &&
	       (!list->after || strcmp(job->name, list->after) > 0);
}

static void list_job(void *arg, struct job *job)
{
	struct list *list = arg;

	if (!list->left || !is_listed(list, job))
		return;
	list->left--;
	list->jobs[list->nr++] = job;
}

static void get_jobs(struct request *r)
{
	struct list list = {
		.prefix = argument(r, "prefix"),
		.after = argument(r, "after"),
		.left = LIMIT,
	};
	int64_t now = now_us();

	if (!query_number(r, "limit", LIMIT_MAX, &list.left))
		return;
	jobs_each(list_job, &list);
	r->status = MHD_HTTP_OK;
	r->json = jobs_json(r, list.jobs, list.nr, 1);
	list.left = PLAN_STEPS;
	for (size_t i = 0; argument(r, "plan") && i < list.nr && list.left > 0; i++) {
		int64_t minutes[MINUTES] = { 0 };

		store_keep(store);
		list.left -= (int64_t)job_minutes(list.jobs[i], now, minutes);
		json_object_object_add(json_object_array_get_idx(r->json, i), "minutes",
				       minutes_json(minutes));
	}
}

static void count_job(void *arg, struct job *job)
{
	struct list *list = arg;

	if (!is_listed(list, job))
		return;
	if (list->left <= 0) {
		list->more = true;
		return;
	}
	store_keep(store);
	list->left -= (int64_t)job_minutes(job, list->now, list->minutes);
	list->last = job->name;
	list->nr++;
}

/*
 * How often jobs are due in each of the coming minutes. To count that for very many jobs would keep
 * the loop busy for too long: then the answer says after which job the next request must continue.
 */
static void get_plan(struct request *r)
{
	struct list list = {
		.prefix = argument(r, "prefix"),
		.after = argument(r, "after"),
		.left = PLAN_STEPS,
		.now = now_us(),
	};

	jobs_each(count_job, &list);
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_object();
	add_time(r->json, "from", list.now - list.now % (60 * US_PER_S));
	json_object_object_add(r->json, "minutes", minutes_json(list.minutes));
	add_int(r->json, "jobs", (int64_t)list.nr);
	add_string(r->json, "after", list.more ? list.last : NULL);
}

/* The revision that the headers require of the job, as struct put has it. */
static int64_t wanted_rev(const struct request *r)
{
	const char *match = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "If-Match");

	if (MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "If-None-Match"))
		return 0;
	if (!match)
		return -1;
	match += *match == '"';
	return atoll(match) > 0 ? atoll(match) : INT64_MAX;
}

static void put_jobs(struct request *r, struct put *puts, size_t nr)
{
	struct job **jobs;

	if (!went_well(r, jobs_put(puts, nr, r->error)))
		return;
	jobs = calloc(nr, sizeof(*jobs));
	for (size_t i = 0; jobs && i < nr; i++)
		jobs[i] = puts[i].job;
	if (jobs)
		r->json = jobs_json(r, jobs, nr, 1);
	free(jobs);
}

static void put_job(struct request *r)
{
	struct put put = { .name = r->segment[2], .json = parse_body(r), .rev = wanted_rev(r) };
	struct json_object *list;

	if (!put.json)
		return;
	put_jobs(r, &put, 1);
	list = r->json;
	if (list) {
		r->json = json_object_get(json_object_array_get_idx(list, 0));
		json_object_put(list);
	}
	json_object_put(put.json);
}

static const char *name_in(struct json_object *json)
{
	struct json_object *name;

	if (!json_object_is_type(json, json_type_object) ||
	    !json_object_object_get_ex(json, "name", &name) ||
	    !json_object_is_type(name, json_type_string))
		return NULL;
	return json_object_get_string(name);
}

static void post_jobs(struct request *r)
{
	struct json_object *list = parse_body(r);
	size_t nr = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0,
	       i;
	struct put *puts = calloc(nr + 1, sizeof(*puts));

	if (list && !json_object_is_type(list, json_type_array))
		refuse(r, MHD_HTTP_BAD_REQUEST, "expected a list of definitions");
	else if (list && !nr && went_well(r, 0))
		r->json = json_object_new_array();
	for (i = 0; i < nr && puts; i++) {
		puts[i].json = json_object_array_get_idx(list, i);
		puts[i].name = name_in(puts[i].json);
		puts[i].rev = wanted_rev(r);
		if (!puts[i].name) {
			refuse(r, MHD_HTTP_BAD_REQUEST, "definition %zu: name is missing", i + 1);
			break;
		}
	}
	if (nr && puts && i == nr)
		put_jobs(r, puts, nr);
	free(puts);
	json_object_put(list);
}

static void delete_job(struct request *r)
{
	if (went_well(r, job_remove(r->segment[2], r->error)))
		r->json = json_object_new_object();
}

static void pause_job(struct request *r)
{
	struct job *job = find_job(r);

	if (job && went_well(r, job_pause(job, *r->segment[3] == 'p', r->error)))
		r->json = one_json(r, job, 1);
}

static void add_shot(struct request *r, const struct due *due)
{
	struct json_object *o = json_object_new_object();
	char key[64];

	snprintf(key, sizeof(key), "%lld-%lld", (long long)due->id, (long long)due->at);
	add_string(o, "run", key);
	add_time(o, "at", due->at);
	if (due->key)
		add_string(o, "key", due->key);
	json_object_array_add(r->json, o);
}

/* Run the job now, even if it is paused. */
static void run_job(struct request *r)
{
	struct job *job = find_job(r);
	struct due due = { .at = now_us() };

	if (!job)
		return;
	if (job->broken) {
		refuse(r, MHD_HTTP_CONFLICT, "%s", job->broken);
		return;
	}
	if (!went_well(r, job_add(job, &due, 1, true, r->error)))
		return;
	r->json = json_object_new_array();
	add_shot(r, &due);
}

/* ---- shots: times that somebody asks for -------------------------------------------- */

static bool shot_time(struct request *r, struct json_object *o, int64_t now, struct due *due)
{
	struct json_object *at, *after;
	int64_t ns = 0;

	if (json_object_object_get_ex(o, "at", &at) ==
	    json_object_object_get_ex(o, "after", &after)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "expected either at or after");
		return false;
	}
	if (at ? !parse_time(json_object_get_string(at), now * NS_PER_US, &ns) || ns <= 0 :
		 !parse_duration(json_object_get_string(after), &ns)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is not a %s",
		       json_object_get_string(at ? at : after), at ? "time" : "duration");
		return false;
	}
	due->at = ns / NS_PER_US + (at ? 0 : now);
	return true;
}

/* May a shot have @one as its @key? */
static bool is_of_shot(const char *key, struct json_object *one)
{
	static const char *const keys[] = { "at", "after", "key", "arg" };
	size_t i = 0;

	while (i < ARRAY_SIZE(keys) && strcmp(keys[i], key))
		i++;
	if (i == ARRAY_SIZE(keys))
		return false;
	if (json_object_is_type(one, json_type_int))
		return !strcmp(key, "after");
	return json_object_is_type(one, json_type_string);
}

static bool parse_shot(struct request *r, struct json_object *o, int64_t now, struct due *due)
{
	struct json_object *value;

	*due = (struct due) { 0 };
	if (!json_object_is_type(o, json_type_object)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "expected an object");
		return false;
	}
	json_object_object_foreach(o, key, one) {
		if (is_of_shot(key, one))
			continue;
		refuse(r, MHD_HTTP_BAD_REQUEST,
		       "expected the strings at, after, key and arg, not '%.64s'", key);
		return false;
	}
	if (json_object_object_get_ex(o, "key", &value))
		due->key = json_object_get_string(value);
	if (json_object_object_get_ex(o, "arg", &value))
		due->arg = json_object_get_string(value);
	/* A request that cancels the shot has the key in its path, which cannot be very long. */
	if (due->key && strlen(due->key) > NAME_LENGTH) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "key: more than %d bytes", NAME_LENGTH);
		return false;
	}
	return shot_time(r, o, now, due);
}

static void add_shots(struct request *r, struct job *job, struct json_object *list)
{
	size_t nr = json_object_array_length(list);
	struct due *rows = calloc(nr + 1, sizeof(*rows));
	int64_t now = now_us();

	for (size_t i = 0; rows && i < nr; i++) {
		if (!parse_shot(r, json_object_array_get_idx(list, i), now, &rows[i]))
			goto out;
	}
	if (!rows || !went_well(r, job_add(job, rows, nr, false, r->error)))
		goto out;
	r->json = json_object_new_array();
	for (size_t i = 0; i < nr; i++)
		add_shot(r, &rows[i]);
out:
	free(rows);
}

static void post_shots(struct request *r)
{
	struct job *job = find_job(r);
	struct json_object *list = job ? parse_body(r) : NULL;

	if (list &&
	    (!json_object_is_type(list, json_type_array) || !json_object_array_length(list)))
		refuse(r, MHD_HTTP_BAD_REQUEST, "expected a list");
	else if (list && json_object_array_length(list) > SHOTS_MAX)
		refuse(r, MHD_HTTP_BAD_REQUEST, "more than %d shots in a request", SHOTS_MAX);
	else if (list)
		add_shots(r, job, list);
	json_object_put(list);
}

static void delete_shot(struct request *r)
{
	struct job *job = find_job(r);

	if (job && went_well(r, job_cancel(job, r->segment[4], r->error)))
		r->json = json_object_new_object();
}

/* ---- runs --------------------------------------------------------------------------- */

static bool parse_query(struct request *r, struct query *query)
{
	const char *name = argument(r, "job"), *outcome = argument(r, "outcome"),
		   *since = argument(r, "since");
	struct job *job = name ? job_by_name(name) : NULL;
	int64_t ns = 0;

	*query = (struct query) { .job = job ? job->id : 0, .outcome = -1, .limit = LIMIT };
	if (name && !job)
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no job '%.128s'", name);
	else if (since && !parse_time(since, now_us() * NS_PER_US, &ns))
		refuse(r, MHD_HTTP_BAD_REQUEST, "since: '%.64s' is not a time", since);
	query->since = ns / NS_PER_US;
	for (int i = 0; outcome && i < NR_OUTCOMES; i++)
		if (!strcmp(outcome_name(i), outcome))
			query->outcome = i;
	if (outcome && query->outcome < 0)
		refuse(r, MHD_HTTP_BAD_REQUEST, "outcome: '%.64s' is not an outcome", outcome);
	return !r->error[0] && query_number(r, "limit", LIMIT_MAX, &query->limit) &&
	       query_number(r, "before", INT64_MAX, &query->before);
}

/*
 * Runs of this job, or of all, that are not over: at most as many as the limit from this life, and
 * as many from others.
 */
static void add_runs(struct json_object *list, const struct query *query)
{
	struct wanted wanted = { .list = list, .job = query->job, .left = query->limit },
		      others = wanted;
	struct run *run;

	if (query->job)
		TAILQ_FOREACH(run, &job_by_id(query->job)->runs, in_job)
			add_wanted_run(&wanted, run);
	else
		runs_each(add_wanted_run, &wanted);
	add_others(others);
}

/* There may be very many runs that are not over, so the limit counts for them as for history. */
static void get_runs(struct request *r)
{
	struct query query;

	if (!parse_query(r, &query))
		return;
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_array();
	if (!query.before && query.outcome < 0)
		add_runs(r->json, &query);
	read_history(r, &query, r->json);
}

bool run_parse(const char *text, struct firing *f)
{
	long long id, at;
	int end = 0;

	if (!text || sscanf(text, "%lld-%lld%n", &id, &at, &end) != 2 || text[end] || id <= 0)
		return false;
	*f = (struct firing) { .id = id, .at = at };
	return true;
}

bool parse_run(struct request *r, struct firing *f)
{
	if (run_parse(r->segment[2], f))
		return true;
	refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is not a run: it is like 12-1798761600000000",
	       r->segment[2]);
	return false;
}

/* Add a run of which there is only the row of due. @id is its job. */
static void add_due(struct json_object *list, const struct firing *f, int64_t id)
{
	const struct job *job = job_by_id(id);
	struct json_object *o = firing_json(f, job ? job_name(job) : NULL);

	add_string(o, "state", "due");
	json_object_array_add(list, o);
}

/*
 * Answer with all attempts of a run, the latest first. If the list is empty, there is no such run.
 *
 * A run is due, then it is running, then it is in the history. Another life may move the run on
 * while this function asks the three tables one after the other. So it asks them in that order, and
 * misses nothing.
 */
static bool all_of_run(struct request *r, const struct firing *f)
{
	struct query query = { .id = f->id, .at = f->at, .outcome = -1, .limit = LIMIT_MAX };
	struct run *run = run_find(f->id, f->at);
	const struct firing due = { .id = f->id, .at = f->at };
	int64_t job = 0;

	if (!run && store_find_due(store, f->id, f->at, &job)) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be read: %s",
		       store_error(store));
		return false;
	}
	r->json = json_object_new_array();
	if (run)
		add_run(r->json, run);
	else
		add_others((struct wanted) {
			.list = r->json, .id = f->id, .at = f->at, .left = 1,
		});
	r->status = MHD_HTTP_OK;
	if (!read_history(r, &query, r->json))
		return false;
	if (job && !json_object_array_length(r->json))
		add_due(r->json, &due, job);
	return true;
}

static void get_run(struct request *r)
{
	struct firing f;

	if (parse_run(r, &f))
		all_of_run(r, &f);
}

/*
 * The answer waits until the store knows that the run was killed. So whatever happens to the daemon
 * after that, the run is not repeated.
 */
static void kill_run(struct request *r)
{
	struct firing f;
	struct run *run;

	if (!parse_run(r, &f))
		return;
	run = run_find(f.id, f.at);
	if (run) {
		run_kill(run, OUTCOME_KILLED);
	} else if (store_kill_due(store, f.id, f.at) && store_tell_kill(store, f.id, f.at)) {
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no such run, or it is over");
		return;
	}
	if (!core_flush()) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE,
		       "it was told to end, but the store cannot be written: %s",
		       store_error(store));
		return;
	}
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_object();
}

/* ---- logs --------------------------------------------------------------------------- */

/*
 * Answer with the part of a log that begins at @from. If that is in the middle that was cut out,
 * say so and continue behind it. The part ends where the middle begins.
 */
static void read_log(struct request *r, int fd, int64_t from)
{
	off_t data = lseek(fd, from, SEEK_DATA), hole;
	size_t n, most = LOG_PART;
	char note[80] = "";
	ssize_t got;

	if (data > from)
		snprintf(note, sizeof(note), "\n[%lld bytes are left out here]\n",
			 (long long)(data - from));
	n = strlen(note);
	r->text = malloc(n + LOG_PART);
	if (!r->text)
		return;
	memcpy(r->text, note, n);
	data = data < from ? from : data;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole > data && hole - data < LOG_PART)
		most = (size_t)(hole - data);
	got = pread(fd, r->text + n, most, data);
	r->text_size = n + (got > 0 ? (size_t)got : 0);
	r->next = data + (got > 0 ? got : 0);
	r->status = MHD_HTTP_OK;
}

static int64_t number_in(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_int64(value) : 0;
}

/*
 * Find the attempt f->attempt of the run, or its latest if that is 0. Fill in @f, and whether the
 * attempt is not over. Returns false, with the error set, if there is none.
 */
static bool find_attempt(struct request *r, struct firing *f)
{
	struct json_object *one = NULL;

	if (!all_of_run(r, f))
		return false;
	for (size_t i = 0; i < json_object_array_length(r->json) && !one; i++) {
		one = json_object_array_get_idx(r->json, i);
		if (f->attempt && f->attempt != number_in(one, "attempt"))
			one = NULL;
	}
	if (one) {
		f->attempt = number_in(one, "attempt");
		f->life = number_in(one, "life");
		r->more = !json_object_object_get_ex(one, "outcome", NULL);
	} else {
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no such run");
	}
	json_object_put(r->json);
	r->json = NULL;
	return one;
}

/*
 * There is no whole log here. It may be on another machine; then a piece of it here is out of date.
 * Otherwise a runner may still be sending it, or the run has printed nothing.
 */
static void no_log(struct request *r, const struct firing *f, int64_t from)
{
	char name[256] = "";
	int fd;

	if (store->many && f->life)
		store_machine(store, f->life, name, sizeof(name));
	if (*name && strcmp(name, machine_name())) {
		refuse(r, MHD_HTTP_NOT_FOUND, "the log is on the machine '%s'", name);
		return;
	}
	fd = log_open_piece(f);
	if (fd >= 0) {
		read_log(r, fd, from);
		close(fd);
		return;
	}
	r->text = strdup("");
	r->next = from;
	r->status = MHD_HTTP_OK;
}

/* Find the part of the log of an attempt that begins at @from. */
static void find_log(struct request *r, const struct firing *f, int64_t from)
{
	int fd = log_open(f);

	if (fd == -ENOENT) {
		no_log(r, f, from);
	} else if (fd < 0) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the log cannot be read: %s",
		       strerror(-fd));
	} else {
		read_log(r, fd, from);
		close(fd);
	}
}

/*
 * If there is nothing yet and the attempt is not over, wait for what it will print. What a run
 * prints here wakes the request.
 */
static void get_log(struct request *r)
{
	int64_t from = 0, wait = 0, slice;
	struct firing f;
	struct run *run;

	if (!parse_run(r, &f) || !query_number(r, "from", INT64_MAX, &from) ||
	    !query_duration(r, "wait", WAIT_MAX_US, &wait) ||
	    !query_number(r, "attempt", INT64_MAX, &f.attempt) || !find_attempt(r, &f))
		return;
	find_log(r, &f, from);
	run = run_find(f.id, f.at);
	slice = run && !run->away && !run->job->def.pool ? NO_SLICE : SLICE_US;
	if (!r->text || r->text_size || !r->more || !request_wait(r, wait, slice, run))
		return;
	free(r->text);
	r->text = NULL;
}

/* ---- nodes -------------------------------------------------------------------------- */

static void add_node(void *arg, const struct node *node)
{
	struct json_object *o = json_object_new_object(), *parts = json_object_new_array();

	add_int(o, "life", node->life);
	add_string(o, "name", node->name ? node->name : machine_name());
	add_bool(o, "this", node->life == store->life);
	if (store->many)
		add_int(o, "lease_us", node->lease);
	for (int i = 0; i < PARTS; i++)
		if (node->parts >> i & 1)
			json_object_array_add(parts, json_object_new_int(i));
	json_object_object_add(o, "parts", parts);
	json_object_array_add(arg, o);
}

/* The daemons that share the store, and which parts each of them owns. */
static void get_nodes(struct request *r)
{
	r->json = json_object_new_array();
	r->status = MHD_HTTP_OK;
	if (store_nodes(store, add_node, r->json))
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be read: %s",
		       store_error(store));
}

/* ---- times and days ----------------------------------------------------------------- */

static void get_preview(struct request *r)
{
	struct json_object *json = json_object_new_object(), *words = json_object_new_array();
	const char *cron = argument(r, "cron"), *zone = argument(r, "zone");
	int64_t n = SHOWN, at = now_us();
	struct def def;
	char buf[40];

	json_object_array_add(words, json_object_new_string("true"));
	json_object_object_add(json, "exec", words);
	add_string(json, "cron", cron ? cron : "");
	if (zone)
		add_string(json, "zone", zone);
	if (!query_number(r, "n", LIMIT_MAX, &n)) {
		json_object_put(json);
		return;
	}
	if (def_parse(&def, json, at, r->error)) {
		r->status = MHD_HTTP_OK;
		r->json = json_object_new_array();
		while (n-- && (at = next_due(&def, "", at)))
			json_object_array_add(r->json, json_object_new_string(time_text(at, buf)));
		def_free(&def);
	}
	json_object_put(json);
}

static bool parse_day(struct json_object *json, int64_t *day)
{
	const char *s = json_object_get_string(json);
	int year, month, of_month, end = 0;

	if (!s || sscanf(s, "%4d-%2d-%2d%n", &year, &month, &of_month, &end) != 3 || s[end] ||
	    year < 1 || month < 1 || month > 12 || of_month < 1 ||
	    of_month > days_of_month(year, month))
		return false;
	*day = day_of_date(year, month, of_month);
	return true;
}

static void put_days(struct request *r)
{
	struct json_object *list = parse_body(r);
	bool is_list = json_object_is_type(list, json_type_array);
	size_t nr = is_list ? json_object_array_length(list) : 0, i;
	int64_t *days = calloc(nr + 1, sizeof(*days));

	if (!list)
		goto out;
	for (i = 0; i < nr; i++)
		if (!parse_day(json_object_array_get_idx(list, i), &days[i]))
			break;
	if (!is_list || i < nr)
		refuse(r, MHD_HTTP_BAD_REQUEST, "expected a list of dates like 2027-01-01");
	else if (!name_good(r->segment[2]))
		refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is not a valid name for a calendar",
		       r->segment[2]);
	else if (went_well(r, days_put(r->segment[2], days, nr, r->error)))
		r->json = json_object_new_object();
out:
	free(days);
	json_object_put(list);
}

static void get_days(struct request *r)
{
	const struct days *days = days_find(r->segment[2], false);

	if (!days) {
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no calendar '%.64s'", r->segment[2]);
		return;
	}
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_array();
	for (size_t i = 0; i < days->nr; i++) {
		int month, of_month;
		int64_t year;
		char buf[64];

		date_of_day(days->day[i], &year, &month, &of_month);
		snprintf(buf, sizeof(buf), "%04d-%02d-%02d", (int)year, month, of_month);
		json_object_array_add(r->json, json_object_new_string(buf));
	}
}

/* ---- the page ----------------------------------------------------------------------- */

/* The policy of the page: only its own script and style may run, and talk to this daemon alone. */
static void get_page(struct request *r)
{
	r->text = strdup(PAGE);
	r->text_size = strlen(PAGE);
	r->type = "text/html; charset=utf-8";
	r->policy = "default-src 'none'; script-src " PAGE_script "; style-src " PAGE_style
		    "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
		    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types";
	r->status = MHD_HTTP_OK;
}

/* ---- requests ----------------------------------------------------------------------- */

/* Whether a request may have a body: a route that does not read it refuses it. */
enum body { NO_BODY, BODY };

static const struct route {
	const char	*method;
	const char	*path[SEGMENTS];	/* "*" matches anything */
	void		(*fn)(struct request *r);
	enum role	role;			/* whose token is enough, besides one for all */
	enum body	body;
	const char	*words;			/* of the query, with spaces between them */
} routes[] = {
	{ "GET", { "v1", "jobs" }, get_jobs, ROLE_READ, NO_BODY, "prefix after limit plan" },
	{ "POST", { "v1", "jobs" }, post_jobs, ROLE_ALL, BODY, "" },
	{ "GET", { "v1", "jobs", "*" }, get_job, ROLE_READ, NO_BODY, "" },
	{ "PUT", { "v1", "jobs", "*" }, put_job, ROLE_ALL, BODY, "" },
	{ "DELETE", { "v1", "jobs", "*" }, delete_job, ROLE_ALL, NO_BODY, "" },
	{ "POST", { "v1", "jobs", "*", "run" }, run_job, ROLE_ALL, NO_BODY, "" },
	{ "POST", { "v1", "jobs", "*", "pause" }, pause_job, ROLE_ALL, NO_BODY, "" },
	{ "POST", { "v1", "jobs", "*", "resume" }, pause_job, ROLE_ALL, NO_BODY, "" },
	{ "POST", { "v1", "jobs", "*", "shots" }, post_shots, ROLE_ALL, BODY, "" },
	{ "DELETE", { "v1", "jobs", "*", "shots", "*" }, delete_shot, ROLE_ALL, NO_BODY, "" },
	{ "GET", { "v1", "runs" }, get_runs, ROLE_READ, NO_BODY, "job outcome since before limit" },
	{ "GET", { "v1", "runs", "*" }, get_run, ROLE_READ, NO_BODY, "" },
	{ "GET", { "v1", "runs", "*", "log" }, get_log, ROLE_READ, NO_BODY, "attempt from wait" },
	{ "POST", { "v1", "runs", "*", "kill" }, kill_run, ROLE_ALL, NO_BODY, "" },
	{ "GET", { "v1", "plan" }, get_plan, ROLE_READ, NO_BODY, "prefix after" },
	{ "GET", { "v1", "preview" }, get_preview, ROLE_READ, NO_BODY, "cron zone n" },
	{ "GET", { "v1", "days", "*" }, get_days, ROLE_READ, NO_BODY, "" },
	{ "PUT", { "v1", "days", "*" }, put_days, ROLE_ALL, BODY, "" },
	{ "POST", { "v1", "runs", "*", "beat" }, post_beat, ROLE_RUN, BODY,
	  "runner attempt shard shards from sent" },
	{ "POST", { "v1", "runs", "*", "done" }, post_done, ROLE_RUN, BODY,
	  "runner attempt shard shards from sent status lost room pool" },
	{ "POST", { "v1", "take" }, post_take, ROLE_RUN, BODY, "" },
	{ "GET", { "v1", "runners" }, get_runners, ROLE_READ, NO_BODY, "" },
	{ "GET", { "v1", "nodes" }, get_nodes, ROLE_READ, NO_BODY, "" },
	{ "GET", { "metrics" }, get_metrics, ROLE_READ, NO_BODY, "" },
	{ "GET", { "" }, get_page, ROLE_READ, NO_BODY, "" },
};

static bool path_matches(const struct route *route, const struct request *r)
{
	for (int i = 0; i < SEGMENTS; i++) {
		const char *want = route->path[i],
			   *have = i < r->nr_segments ? r->segment[i] : NULL;

		if (!want != !have || (want && *want != '*' && strcmp(want, have)))
			return false;
	}
	return true;
}

/* Find the route of the request. If there is one for another method only, the status is 405. */
static void find_route(struct request *r)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(routes) && !r->route; i++) {
		if (!path_matches(&routes[i], r))
			continue;
		known = true;
		if (!strcmp(routes[i].method, r->method))
			r->route = &routes[i];
	}
	if (!r->route)
		refuse(r, known ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND,
		       "there is no %s %.128s", r->method, known ? "here" : "there");
}

/* Is @word one of @words, which have spaces between them? */
static bool is_one_of(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == len && !memcmp(words, word, n))
			return true;
	}
	return false;
}

/* MHD_KeyValueIterator, which ends with the first word that is refused. */
static enum MHD_Result check_word(void *arg, enum MHD_ValueKind kind, const char *word,
				  const char *value)
{
	struct request *r = arg;

	if (!*word && !value)	/* two & in a row */
		return MHD_YES;
	if (!is_one_of(r->route->words, word))
		refuse(r, MHD_HTTP_BAD_REQUEST, "the query has an unknown word '%.64s'", word);
	else if (MHD_lookup_connection_value(r->conn, kind, word) != value)
		refuse(r, MHD_HTTP_BAD_REQUEST, "the query has the word '%.64s' twice", word);
	return r->error[0] ? MHD_NO : MHD_YES;
}

bool query_is_known(struct request *r)
{
	MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, check_word, r);
	return !r->error[0];
}

/* The page is for everybody: it asks for the token that its requests need. */
bool request_allowed(struct request *r, enum role role)
{
	bool page = r->nr_segments == 1 && !*r->segment[0];

	find_route(r);
	if (role == ROLE_NONE && !page)
		refuse(r, MHD_HTTP_UNAUTHORIZED, "%s",
		       token_of(r) ? "the token is not known"
				   : "expected a token: Authorization: Bearer TOKEN");
	else if (r->route && role != ROLE_ALL && role != r->route->role && !page)
		refuse(r, MHD_HTTP_FORBIDDEN, "this token is not for that");
	return !r->error[0];
}

/*
 * Bring memory up to date, and write the pending turn: a request must neither see nor change what
 * is only planned. If the turn cannot be written, only requests that read are possible.
 */
void dispatch(struct request *r)
{
	if (r->size && r->route->body == NO_BODY) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "a %s must not have a body here", r->method);
		return;
	}
	core_refresh();
	if (!core_flush() && strcmp(r->method, "GET"))
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be written: %s",
		       store_error(store));
	else
		r->route->fn(r);
}
