// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * HTTP, by libmicrohttpd, in the loop of the daemon. Whoever may open the socket may do everything
 * here. Times are in the format of RFC 3339, in UTC. A request that is wrong is answered with
 * {"error": "..."}, and has changed nothing.
 *
 *	GET    /v1/jobs?prefix=&after=&limit=	POST   /v1/jobs		a list: all of it or nothing
 *	GET    /v1/jobs/NAME			PUT    /v1/jobs/NAME	If-Match, If-None-Match: *
 *	DELETE /v1/jobs/NAME			POST   /v1/jobs/NAME/run|pause|resume
 *	POST   /v1/jobs/NAME/shots		DELETE /v1/jobs/NAME/shots/KEY
 *	GET    /v1/runs?job=&outcome=&since=&before=&limit=
 *	GET    /v1/runs/RUN			GET    /v1/runs/RUN/log?attempt=&from=
 *	POST   /v1/runs/RUN/kill		PUT    /v1/days/CALENDAR	a list of dates
 *	GET    /v1/preview?cron=&zone=&n=	GET    /v1/days/CALENDAR
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "civil.h"
#include "twheeld.h"
#include "when.h"

#define BODY_MAX	1048576
#define LIMIT		100
#define LIMIT_MAX	1000
#define LOG_PART	65536
#define SEGMENTS	5
#define SHOWN		5

/**
 * struct request - a request that is being answered
 * @conn:	its connection
 * @method:	its method, such as GET
 * @path:	a copy of its path, cut at each slash
 * @segment:	the parts of @path
 * @nr_segments: how many parts there are; 0 also if there were too many
 * @body:	its body
 * @size:	the size of @body
 * @too_big:	the body was too long, and @body is not all of it
 * @status:	the status of the answer
 * @json:	the answer
 * @text:	the answer, if it is not JSON; freed with the request
 * @text_size:	the size of @text
 * @next:	with a log: from where to read on
 * @error:	what is wrong, or empty
 */
struct request {
	struct MHD_Connection	*conn;
	const char		*method;
	char			*path;
	const char		*segment[SEGMENTS];
	int			nr_segments;
	char			*body;
	size_t			size;
	bool			too_big;
	unsigned int		status;
	struct json_object	*json;
	char			*text;
	size_t			text_size;
	int64_t			next;
	char			error[ERROR_MAX];
};

static struct MHD_Daemon *httpd;
static struct source http;
static uint64_t http_timer;

/* Answer with an error. The caller returns, with nothing changed. */
__attribute__((format(printf, 3, 4)))
static void refuse(struct request *r, unsigned int status, const char *fmt, ...)
{
	va_list args;

	r->status = status;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
}

/*
 * Set the status for what a function of registry.c has returned. Returns true if that is no error.
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

/* The value of parameter @name in the query part of the address, or NULL. */
static const char *argument(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name);
}

/*
 * Read a number up to @most from the query part of the address. If there is none, *@n stays.
 * Returns false, with the error set, if it is no such number.
 */
static bool query_number(struct request *r, const char *name, int64_t most, int64_t *n)
{
	const char *s = argument(r, name);
	char *end;

	if (!s)
		return true;
	errno = 0;
	*n = strtoll(s, &end, 10);
	if (*s && !*end && !errno && *n >= 0 && *n <= most)
		return true;
	refuse(r, MHD_HTTP_BAD_REQUEST, "%s: '%.64s' is no number up to %lld", name, s,
	       (long long)most);
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

static const char *const outcomes[NR_OUTCOMES] = {
	"ok", "failed", "timeout", "killed", "lost", "skipped", "missed",
};

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
	return o;
}

static void add_run(void *arg, struct run *run)
{
	static const char *const states[] = { "queued", "waiting", "ready" };
	struct json_object *o = firing_json(&run->firing, job_name(run->job));

	add_string(o, "state", run->process.pid ? "running" : states[run->firing.state]);
	if (run->firing.state == STATE_WAITING)
		add_time(o, "wake", run->firing.wake);
	if (run->process.pid)
		add_time(o, "began", run->began);
	json_object_array_add(arg, o);
}

/* Add a firing of another life. Only what is in the store is known of it. */
static void add_firing(struct json_object *list, const struct firing *f, const char *job)
{
	static const char *const states[] = { "queued", "waiting", "running" };
	struct json_object *o = firing_json(f, job);

	add_string(o, "state", states[f->state]);
	json_object_array_add(list, o);
}

/**
 * struct wanted - which firings of other lives to list
 * @list:	where to add them
 * @job:	only those of this job; 0 for all
 * @id:		only the firing (@id, @at); 0 for all
 * @at:		see @id
 */
struct wanted {
	struct json_object	*list;
	int64_t			job;
	int64_t			id;
	int64_t			at;
};

static void add_wanted(void *arg, const struct firing *f)
{
	const struct wanted *wanted = arg;
	const struct job *job = job_by_id(f->job);

	if ((wanted->job && f->job != wanted->job) ||
	    (wanted->id && (f->id != wanted->id || f->at != wanted->at)))
		return;
	add_firing(wanted->list, f, job ? job_name(job) : NULL);
}

/* Add the firings that are in parts of other lives. struct wanted explains the arguments. */
static void add_others(struct json_object *list, int64_t job, int64_t id, int64_t at)
{
	struct wanted wanted = { .list = list, .job = job, .id = id, .at = at };
	uint64_t parts = ~store->parts;

	if (job)
		parts &= (uint64_t)1 << (job & (PARTS - 1));
	store_running(store, parts, add_wanted, &wanted);
}

static void add_ended(void *arg, const struct ended *e)
{
	const struct job *job = job_by_id(e->firing.job);
	struct json_object *o = firing_json(&e->firing, job ? job_name(job) : NULL);

	add_string(o, "state", "over");
	add_string(o, "outcome", outcomes[e->outcome]);
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

/* The body as JSON, or NULL with the error set. */
static struct json_object *parse_body(struct request *r)
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
		refuse(r, MHD_HTTP_BAD_REQUEST, "this is no JSON, at byte %zu",
		       json_tokener_get_parse_end(parser));
		json_object_put(json);
		json = NULL;
	}
	json_tokener_free(parser);
	return json;
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

/* Read when a job of another life is due: only its owner knows that without asking the store. */
static void take_due(void *arg, const struct job_row *row)
{
	struct job *job = arg;

	job->due_id = row->due_id;
	job->due_at = row->due_at;
}

/*
 * Describe @job, with its next @shown times and its last @shown attempts; with one, without the
 * definition.
 */
static struct json_object *job_json(struct request *r, struct job *job, int shown)
{
	struct json_object *o = json_object_new_object(), *runs = json_object_new_array(),
			   *last = json_object_new_array();
	struct query query = { .job = job->id, .outcome = -1, .limit = shown };
	struct run *run;

	if (!store_owns(store, job->id))
		store_job(store, job->id, take_due, job);
	add_string(o, "name", job->name);
	add_int(o, "rev", job->rev);
	add_bool(o, "paused", job->paused);
	if (job->broken)
		add_string(o, "broken", job->broken);
	add_next(o, job, shown);
	TAILQ_FOREACH(run, &job->runs, in_job)
		add_run(runs, run);
	add_others(runs, job->id, 0, 0);
	json_object_object_add(o, "runs", runs);
	read_history(r, &query, last);
	json_object_object_add(o, "last", last);
	if (shown > 1)
		json_object_object_add(o, "definition", json_object_get(job->def.json));
	return o;
}

static void get_job(struct request *r)
{
	struct job *job = find_job(r);

	if (!job)
		return;
	r->status = MHD_HTTP_OK;
	r->json = job_json(r, job, SHOWN);
}

/**
 * struct list - get_jobs() in progress
 * @r:		the request
 * @prefix:	list only jobs whose names begin with this; NULL for all
 * @after:	list only jobs whose names come after this; NULL for all
 * @left:	how many more jobs may be listed
 */
struct list {
	struct request	*r;
	const char	*prefix;
	const char	*after;
	int64_t		left;
};

static void list_job(void *arg, struct job *job)
{
	struct list *list = arg;

	if (!list->left ||
	    (list->prefix && strncmp(job->name, list->prefix, strlen(list->prefix))) ||
	    (list->after && strcmp(job->name, list->after) <= 0))
		return;
	list->left--;
	json_object_array_add(list->r->json, job_json(list->r, job, 1));
}

static void get_jobs(struct request *r)
{
	struct list list = {
		.r = r,
		.prefix = argument(r, "prefix"),
		.after = argument(r, "after"),
		.left = LIMIT,
	};

	if (!query_number(r, "limit", LIMIT_MAX, &list.left))
		return;
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_array();
	jobs_each(list_job, &list);
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
	if (!went_well(r, jobs_put(puts, nr, r->error)))
		return;
	r->json = json_object_new_array();
	for (size_t i = 0; i < nr; i++)
		json_object_array_add(r->json, job_json(r, puts[i].job, 1));
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

	if (list && !nr)
		refuse(r, MHD_HTTP_BAD_REQUEST, "a list of definitions is wanted");
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
	struct job *job = find_job(r);

	if (job && went_well(r, job_remove(job, r->error)))
		r->json = json_object_new_object();
}

static void pause_job(struct request *r)
{
	struct job *job = find_job(r);

	if (job && went_well(r, job_pause(job, *r->segment[3] == 'p', r->error)))
		r->json = job_json(r, job, 1);
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
		refuse(r, MHD_HTTP_BAD_REQUEST, "one of at and after is wanted");
		return false;
	}
	if (at ? !parse_time(json_object_get_string(at), now * NS_PER_US, &ns) || ns <= 0 :
		 !parse_duration(json_object_get_string(after), &ns)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is no %s",
		       json_object_get_string(at ? at : after), at ? "time" : "duration");
		return false;
	}
	due->at = ns / NS_PER_US + (at ? 0 : now);
	return true;
}

static bool parse_shot(struct request *r, struct json_object *o, int64_t now, struct due *due)
{
	struct json_object *value;

	*due = (struct due) { 0 };
	if (!json_object_is_type(o, json_type_object)) {
		refuse(r, MHD_HTTP_BAD_REQUEST, "an object is wanted");
		return false;
	}
	json_object_object_foreach(o, key, one) {
		if ((strcmp(key, "at") && strcmp(key, "after") && strcmp(key, "key") &&
		     strcmp(key, "arg")) ||
		    !(json_object_is_type(one, json_type_string) ||
		      (!strcmp(key, "after") && json_object_is_type(one, json_type_int)))) {
			refuse(r, MHD_HTTP_BAD_REQUEST,
			       "strings at, after, key and arg are wanted, not '%.64s'", key);
			return false;
		}
	}
	if (json_object_object_get_ex(o, "key", &value))
		due->key = json_object_get_string(value);
	if (json_object_object_get_ex(o, "arg", &value))
		due->arg = json_object_get_string(value);
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
		refuse(r, MHD_HTTP_BAD_REQUEST, "a list is wanted");
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
		refuse(r, MHD_HTTP_BAD_REQUEST, "since: '%.64s' is no time", since);
	query->since = ns / NS_PER_US;
	for (int i = 0; outcome && i < NR_OUTCOMES; i++)
		if (!strcmp(outcomes[i], outcome))
			query->outcome = i;
	if (outcome && query->outcome < 0)
		refuse(r, MHD_HTTP_BAD_REQUEST, "outcome: '%.64s' is none", outcome);
	return !r->error[0] && query_number(r, "limit", LIMIT_MAX, &query->limit) &&
	       query_number(r, "before", INT64_MAX, &query->before);
}

static void get_runs(struct request *r)
{
	struct query query;
	struct run *run;

	if (!parse_query(r, &query))
		return;
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_array();
	if (query.job && !query.before && query.outcome < 0)
		TAILQ_FOREACH(run, &job_by_id(query.job)->runs, in_job)
			add_run(r->json, run);
	else if (!query.before && query.outcome < 0)
		runs_each(add_run, r->json);
	if (!query.before && query.outcome < 0)
		add_others(r->json, query.job, 0, 0);
	read_history(r, &query, r->json);
}

static bool parse_run(struct request *r, struct firing *f)
{
	long long id, at;
	int end = 0;

	if (sscanf(r->segment[2], "%lld-%lld%n", &id, &at, &end) == 2 && !r->segment[2][end]) {
		*f = (struct firing) { .id = id, .at = at };
		return true;
	}
	refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is no run: it is like 12-1798761600000000",
	       r->segment[2]);
	return false;
}

/*
 * Answer with all attempts of a run, the latest first. If the list is empty, the run is not due yet
 * or does not exist.
 */
static bool all_of_run(struct request *r, const struct firing *f)
{
	struct query query = { .id = f->id, .at = f->at, .outcome = -1, .limit = LIMIT_MAX };
	struct run *run = run_find(f->id, f->at);

	r->json = json_object_new_array();
	if (run)
		add_run(r->json, run);
	else
		add_others(r->json, 0, f->id, f->at);
	r->status = MHD_HTTP_OK;
	return read_history(r, &query, r->json);
}

static void get_run(struct request *r)
{
	struct firing f;

	if (parse_run(r, &f))
		all_of_run(r, &f);
}

static void kill_run(struct request *r)
{
	struct firing f;
	struct run *run;

	if (!parse_run(r, &f))
		return;
	run = run_find(f.id, f.at);
	if (run) {
		run_kill(run, OUTCOME_KILLED);
	} else if (store_tell_kill(store, f.id, f.at)) {
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no such run, or it is over");
		return;
	}
	r->status = MHD_HTTP_OK;
	r->json = json_object_new_object();
}

/* ---- logs --------------------------------------------------------------------------- */

/*
 * Answer with the part of a log that begins at @from. If that is in the middle that was cut out,
 * say so and go on behind it.
 */
static void read_log(struct request *r, int fd, int64_t from)
{
	off_t data = lseek(fd, from, SEEK_DATA);
	char note[80] = "";
	size_t n;
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
	got = pread(fd, r->text + n, LOG_PART, data);
	r->text_size = n + (got > 0 ? (size_t)got : 0);
	r->next = data + (got > 0 ? got : 0);
	r->status = MHD_HTTP_OK;
}

/*
 * Set f->attempt to the latest attempt of the run. Returns false, with the error set, if there is
 * none.
 */
static bool latest_attempt(struct request *r, struct firing *f)
{
	struct json_object *value;
	bool any;

	if (!all_of_run(r, f))
		return false;
	any = json_object_array_length(r->json);
	if (any &&
	    json_object_object_get_ex(json_object_array_get_idx(r->json, 0), "attempt", &value))
		f->attempt = json_object_get_int64(value);
	json_object_put(r->json);
	r->json = NULL;
	if (!any)
		refuse(r, MHD_HTTP_NOT_FOUND, "there is no such run");
	return any;
}

static void get_log(struct request *r)
{
	int64_t from = 0;
	struct firing f;
	int fd;

	if (!parse_run(r, &f) || !query_number(r, "from", INT64_MAX, &from) ||
	    !latest_attempt(r, &f) || !query_number(r, "attempt", INT64_MAX, &f.attempt))
		return;
	fd = log_open(&f);
	if (fd == -ENOENT) {		/* the run has printed nothing */
		r->text = strdup("");
		r->next = from;
		r->status = MHD_HTTP_OK;
	} else if (fd < 0) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the log cannot be read: %s",
		       strerror(-fd));
	} else {
		read_log(r, fd, from);
		close(fd);
	}
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
		refuse(r, MHD_HTTP_BAD_REQUEST, "a list of dates like 2027-01-01 is wanted");
	else if (!name_good(r->segment[2]))
		refuse(r, MHD_HTTP_BAD_REQUEST, "'%.64s' is no name for a calendar", r->segment[2]);
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

/* ---- requests ----------------------------------------------------------------------- */

static const struct route {
	const char	*method;
	const char	*path[SEGMENTS];	/* "*" matches anything */
	void		(*fn)(struct request *r);
} routes[] = {
	{ "GET", { "v1", "jobs" }, get_jobs },
	{ "POST", { "v1", "jobs" }, post_jobs },
	{ "GET", { "v1", "jobs", "*" }, get_job },
	{ "PUT", { "v1", "jobs", "*" }, put_job },
	{ "DELETE", { "v1", "jobs", "*" }, delete_job },
	{ "POST", { "v1", "jobs", "*", "run" }, run_job },
	{ "POST", { "v1", "jobs", "*", "pause" }, pause_job },
	{ "POST", { "v1", "jobs", "*", "resume" }, pause_job },
	{ "POST", { "v1", "jobs", "*", "shots" }, post_shots },
	{ "DELETE", { "v1", "jobs", "*", "shots", "*" }, delete_shot },
	{ "GET", { "v1", "runs" }, get_runs },
	{ "GET", { "v1", "runs", "*" }, get_run },
	{ "GET", { "v1", "runs", "*", "log" }, get_log },
	{ "POST", { "v1", "runs", "*", "kill" }, kill_run },
	{ "GET", { "v1", "preview" }, get_preview },
	{ "GET", { "v1", "days", "*" }, get_days },
	{ "PUT", { "v1", "days", "*" }, put_days },
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

static void split_path(struct request *r, const char *path)
{
	char *rest, *part;

	r->path = strdup(path);
	rest = r->path;
	if (rest && *rest == '/')
		rest++;
	while ((part = strsep(&rest, "/"))) {
		if (r->nr_segments == SEGMENTS) {
			r->nr_segments = 0;
			return;
		}
		r->segment[r->nr_segments++] = part;
	}
}

/*
 * Find the function for the request, and call it. Before that, bring memory up to date, and write
 * the pending turn: a request must neither see nor change what is only planned. If that cannot be
 * written, only reading is possible.
 */
static void dispatch(struct request *r)
{
	bool known = false;

	r->status = MHD_HTTP_BAD_REQUEST;
	if (r->too_big) {
		refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is longer than %d bytes", BODY_MAX);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (!path_matches(&routes[i], r))
			continue;
		known = true;
		if (strcmp(routes[i].method, r->method))
			continue;
		core_refresh();
		if (!core_flush() && strcmp(r->method, "GET"))
			refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the store cannot be written: %s",
			       store_error(store));
		else
			routes[i].fn(r);
		return;
	}
	refuse(r, known ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND, "there is no %s %.128s",
	       r->method, known ? "here" : "there");
}

static enum MHD_Result answer(struct request *r)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	char next[32];

	if (r->error[0] || !(r->json || r->text)) {
		json_object_put(r->json);
		r->json = json_object_new_object();
		add_string(r->json, "error", r->error[0] ? r->error : "no memory");
		r->status = r->status == MHD_HTTP_OK ? MHD_HTTP_SERVICE_UNAVAILABLE : r->status;
	}
	if (r->json) {
		const char *s = json_text(r->json);

		response = MHD_create_response_from_buffer(strlen(s), (void *)s,
							   MHD_RESPMEM_MUST_COPY);
		MHD_add_response_header(response, "Content-Type", "application/json");
	} else {
		response = MHD_create_response_from_buffer(r->text_size, r->text,
							   MHD_RESPMEM_MUST_COPY);
		MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
		snprintf(next, sizeof(next), "%lld", (long long)r->next);
		MHD_add_response_header(response, "Log-Next", next);
	}
	result = MHD_queue_response(r->conn, r->status, response);
	MHD_destroy_response(response);
	return result;
}

static void take_body(struct request *r, const char *data, size_t size)
{
	char *body = NULL;

	if (!r->too_big && r->size + size <= BODY_MAX)
		body = realloc(r->body, r->size + size);
	if (!body) {
		r->too_big = true;
		return;
	}
	memcpy(body + r->size, data, size);
	r->body = body;
	r->size += size;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **closure)
{
	struct request *r = *closure;

	(void)arg;
	(void)version;
	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		*closure = r;
		r->conn = conn;
		r->method = method;
		split_path(r, url);
		return MHD_YES;
	}
	if (*size) {
		take_body(r, data, *size);
		*size = 0;
		return MHD_YES;
	}
	dispatch(r);
	return answer(r);
}

static void completed(void *arg, struct MHD_Connection *conn, void **closure,
		      enum MHD_RequestTerminationCode code)
{
	struct request *r = *closure;

	(void)arg;
	(void)conn;
	(void)code;
	if (!r)
		return;
	json_object_put(r->json);
	free(r->text);
	free(r->body);
	free(r->path);
	free(r);
	*closure = NULL;
}

/* ---- in the loop -------------------------------------------------------------------- */

static void serve(void);

static void time_to_serve(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	http_timer = 0;
	serve();
}

/*
 * Let libmicrohttpd do what it can, and set a timer for when it asks to be called again: it closes
 * idle connections then.
 */
static void serve(void)
{
	struct twheel_task task = { .fn = time_to_serve };
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(httpd);
	if (http_timer)
		twheel_sched_cancel(sched, http_timer, 0);
	http_timer = 0;
	if (MHD_get_timeout(httpd, &ms) != MHD_YES)
		return;
	task.when_ns = (int64_t)ms * NS_PER_MS;
	twheel_sched_add(sched, &task, &http_timer);
}

static void http_ready(struct source *source)
{
	(void)source;
	serve();
}

void api_start(int listener)
{
	const union MHD_DaemonInfo *info;

	httpd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, NULL,
				 MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED,
				 completed, NULL, MHD_OPTION_CONNECTION_TIMEOUT, 30U,
				 MHD_OPTION_CONNECTION_LIMIT, 256U, MHD_OPTION_END);
	info = httpd ? MHD_get_daemon_info(httpd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		say(SAY_ERROR, "cannot serve the socket");
		exit(1);
	}
	http = (struct source) { .fd = info->epoll_fd, .ready = http_ready };
	if (source_add(&http)) {
		say(SAY_ERROR, "epoll: %s", strerror(errno));
		exit(1);
	}
}

void api_stop(void)
{
	MHD_stop_daemon(httpd);
}
