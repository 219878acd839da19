// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The jobs in memory, which are the same as in the store.
 *
 * A request is checked here and written to the store, and only after that it changes memory. A job
 * that was removed has no name any more. It stays until none of its runs is left and its history
 * has expired.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twheeld.h"

/* All jobs that are in memory. */
static struct job *by_id;
/* The jobs that have a name: a tree of tsearch(3). */
static void *by_name;

/* For tsearch(): order jobs by their names. */
static int compare_name(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	return strcmp(x->name, y->name);
}

struct job *job_by_id(int64_t id)
{
	struct job *job;

	HASH_FIND(in_all, by_id, &id, sizeof(id), job);
	return job;
}

struct job *job_by_name(const char *name)
{
	struct job key = { .name = (char *)name }, **found = tfind(&key, &by_name, compare_name);

	return found ? *found : NULL;
}

/**
 * struct walk - jobs_each() in progress
 * @fn:		called for each job
 * @arg:	its first argument
 */
struct walk {
	void	(*fn)(void *arg, struct job *job);
	void	*arg;
};

/* Call the function of a struct walk for a node of the tree, once for each node. */
static void visit(const void *node, VISIT which, void *closure)
{
	struct walk *walk = closure;

	if (which == postorder || which == leaf)
		walk->fn(walk->arg, *(struct job *const *)node);
}

void jobs_each(void (*fn)(void *arg, struct job *job), void *arg)
{
	struct walk walk = { .fn = fn, .arg = arg };

	twalk_r(by_name, visit, &walk);
}

struct json_object *job_definition(const struct job *job)
{
	return job->broken ? job->unread : job->def.json;
}

/* The name of a job; if the job was removed, the name that it had. */
const char *job_name(const struct job *job)
{
	struct json_object *name;

	if (job->name)
		return job->name;
	if (json_object_object_get_ex(job_definition(job), "name", &name))
		return json_object_get_string(name);
	return "?";
}

/**
 * struct followed - a name that jobs have in "then"
 * @in_all:	its place among all such names
 * @nr:		in how many places
 * @name:	the name
 */
struct followed {
	UT_hash_handle	in_all;
	size_t		nr;
	char		name[];
};

static struct followed *followed;

static struct followed *followed_find(const char *name)
{
	struct followed *f;

	HASH_FIND(in_all, followed, name, strlen(name), f);
	return f;
}

static void follow(void *unused, const char *name)
{
	struct followed *f = followed_find(name);

	(void)unused;
	if (!f) {
		f = calloc(1, sizeof(*f) + strlen(name) + 1);
		if (!f)
			abort();
		strcpy(f->name, name);
		HASH_ADD_KEYPTR(in_all, followed, f->name, strlen(f->name), f);
	}
	f->nr++;
}

static void unfollow(void *unused, const char *name)
{
	struct followed *f = followed_find(name);

	(void)unused;
	if (--f->nr)
		return;
	HASH_DELETE(in_all, followed, f);
	free(f);
}

typedef void each_fn(void *arg, const char *text);

/* Call @fn for the name of each job that is to run after @def. */
static void each_name(const struct def *def, each_fn *fn, void *arg)
{
	const char **lists[] = { def->then_ok, def->then_fail };

	for (int l = 0; l < 2; l++)
		for (const char **name = lists[l]; name && *name; name++)
			fn(arg, *name);
}

/* Call @fn for each text in @json, or in what that contains. */
static void each_text(struct json_object *json, each_fn *fn, void *arg)
{
	if (json_object_is_type(json, json_type_string)) {
		fn(arg, json_object_get_string(json));
	} else if (json_object_is_type(json, json_type_object)) {
		json_object_object_foreach(json, key, value)
			if (key)
				each_text(value, fn, arg);
	} else if (json_object_is_type(json, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(json); i++)
			each_text(json_object_array_get_idx(json, i), fn, arg);
	}
}

/* Call @fn for each text at @key of @json, a definition that is not understood. */
static void each_unread(struct json_object *json, const char *key, each_fn *fn, void *arg)
{
	struct json_object *value;

	if (json_object_object_get_ex(json, key, &value))
		each_text(value, fn, arg);
}

bool job_is_needed(int64_t id)
{
	struct job *job = job_by_id(id);

	return job && job->name && followed_find(job->name);
}

/* Free the definition of a job. */
static void forget_def(struct job *job)
{
	each_name(&job->def, unfollow, NULL);
	def_free(&job->def);
}

/* Replace the definition of the job by @def, which belongs to the job from now on. */
static void set_def(struct job *job, struct def *def)
{
	forget_def(job);
	job->def = *def;
	*def = (struct def) { 0 };
	each_name(&job->def, follow, NULL);
}

/* Is the job due only once? Then it is deleted together with its history. */
static bool is_once(const struct def *def)
{
	return def->kind == KIND_AT || def->kind == KIND_AFTER;
}

/* Say in @error why a request is refused. Returns @err. */
__attribute__((format(printf, 3, 4)))
static int refuse(char error[ERROR_MAX], int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error, ERROR_MAX, fmt, args);
	va_end(args);
	return err;
}

/* Say in @error why the store has refused a request. Returns the error for the request. */
static int not_written(int err, char error[ERROR_MAX])
{
	if (store->many && (err == -ESTALE || err == -EEXIST))
		return refuse(error, err, "somebody else has changed it meanwhile");
	return refuse(error, -EIO, "the store cannot be written: %s", store_error(store));
}

/* ---- from the store ----------------------------------------------------------------- */

/* The job was removed: nobody finds it by its name, and its schedule ends. */
static void job_unname(struct job *job)
{
	if (!job->name)
		return;
	tdelete(job, &by_name, compare_name);
	free(job->name);
	job->name = NULL;
	if (job->due_id)
		core_disarm(job->due_id);
	job->due_id = 0;
}

/* The job was removed from the store. If it was not understood, its firings wait: end them. */
static void job_removed(struct job *job)
{
	job_unname(job);
	runs_forget(job);
	if (job->broken)
		core_take_over(job->id);
}

/*
 * A new job. If another life has removed a job and put a new one of the same name, the old job may
 * still have the name here: then the old job loses it.
 */
static struct job *job_new(int64_t id, const char *name)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		abort();
	job->id = id;
	job->name = name ? strdup(name) : NULL;
	TAILQ_INIT(&job->runs);
	HASH_ADD(in_all, by_id, id, sizeof(job->id), job);
	if (name && job_by_name(name))
		job_unname(job_by_name(name));
	if (name)
		tsearch(job, &by_name, compare_name);
	return job;
}

/*
 * Parse the definition that is in the store. It was valid once, but its time zone may be gone by
 * now, the program may be older than the definition, or the store is damaged. Then runs that are
 * not over go by the definition that the job had before.
 */
static void load_def(struct job *job, const char *text)
{
	struct json_object *json = text ? json_tokener_parse(text) : NULL;
	char error[ERROR_MAX] = "it is not JSON";
	struct def def = { 0 };

	if (json && def_load(&def, json, now_us(), error)) {
		set_def(job, &def);
		json_object_put(json);
		return;
	}
	job->broken = strdup(error);
	job->unread = json;
	each_unread(json, "then", follow, NULL);
	say(SAY_ERROR, "job '%s' is not run: %s", job_name(job), error);
}

static void forget_broken(struct job *job)
{
	each_unread(job->unread, "then", unfollow, NULL);
	free(job->broken);
	json_object_put(job->unread);
	job->broken = NULL;
	job->unread = NULL;
}

/* Replace the job's definition. If the old one was not understood, its firings have waited. */
static void unbreak(struct job *job)
{
	if (job->broken)
		core_take_over(job->id);
	forget_broken(job);
}

/*
 * From now on the schedule's row of due is @id, due at @at: arm its timer, and disarm the old one.
 */
static void set_due(struct job *job, int64_t id, int64_t at)
{
	if (job->due_id && job->due_id != id)
		core_disarm(job->due_id);
	job->due_id = id;
	job->due_at = at;
	if (id && at != NEVER && !job->paused && job->name)
		core_arm(id, job->id, at);
}

/*
 * The job was put. If its row of due has stayed, the row is being fired or has a timer, and neither
 * changes.
 */
static void row_written(struct job *job, const struct job_row *row)
{
	if (row->due_id != job->due_id)
		set_due(job, row->due_id, row->due_at);
}

/*
 * A row of store_jobs() or store_job(): take the job over into memory, whether it is known here or
 * not. If @arg is not NULL, it points to a bool, which becomes true: there is such a job.
 */
static void load_job(void *arg, const struct job_row *row)
{
	struct job *job = job_by_id(row->id);
	bool known = job;

	if (arg)
		*(bool *)arg = true;
	if (!known)
		job = job_new(row->id, row->name);
	if (known && job->rev != row->rev)
		unbreak(job);
	if (!known || job->rev != row->rev)
		load_def(job, row->def);
	if (known && job->rev != row->rev) {
		pool_moved(job);
		runs_next(job);
	}
	if (job->paused && !row->paused)
		core_reload();
	job->rev = row->rev;
	job->paused = row->paused;
	if (row->name)
		set_due(job, row->due_id, row->due_at);
	else if (job->name)
		job_removed(job);
}

void job_is_due(const struct due *due)
{
	struct job *job = job_by_id(due->job);

	if (job && job->due_id == due->id)
		job->due_at = due->at;
}

int job_refresh(int64_t id)
{
	bool there = false;
	int err = store_job(store, id, load_job, &there);

	if (!err && !there)
		job_forget(id);
	return err;
}

/* For qsort(): by time. */
static int compare_days(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Remove duplicates from the sorted days. Returns how many are left. */
static size_t each_once(int64_t *days, size_t nr)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++)
		if (!n || days[n - 1] != days[i])
			days[n++] = days[i];
	return n;
}

/*
 * A row of store_days(): add the day to its calendar. @arg says whether it is the first one. If so,
 * the calendars lose the days that they had.
 */
static void load_day(void *arg, const char *name, int64_t day)
{
	struct days *days = name ? days_find(name, true) : NULL;	/* NULL: a damaged row */
	bool *first = arg;

	if (*first)
		days_clear();
	*first = false;
	if (!days || day == INT64_MIN)
		return;
	days->day = reallocarray(days->day, days->nr + 1, sizeof(*days->day));
	if (!days->day)
		abort();
	days->day[days->nr++] = day;
}

int days_load(void)
{
	bool first = true;
	int err = store_days(store, load_day, &first);

	if (!err && first)
		days_clear();
	return err;
}

int registry_load(uint64_t parts)
{
	int err = days_load();

	return err ? err : store_jobs(store, parts, load_job, NULL);
}

/* Free a job that is in no table of the store any more; but if it has runs, keep it. */
void job_forget(int64_t id)
{
	struct job *job = job_by_id(id);

	if (!job || !TAILQ_EMPTY(&job->runs))
		return;
	job_unname(job);
	if (job->alarm_timer)
		twheel_sched_cancel(sched, job->alarm_timer, 0);
	HASH_DELETE(in_all, by_id, job);
	forget_def(job);
	forget_broken(job);
	free(job);
}

/**
 * struct sought - is a name among texts?
 * @name:	the name
 * @found:	whether it is
 */
struct sought {
	const char	*name;
	bool		found;
};

static void compare_text(void *arg, const char *text)
{
	struct sought *sought = arg;

	sought->found |= !strcmp(text, sought->name);
}

/* Is @name a text at @key of a definition that is not understood? */
static bool unread_names(const struct job *job, const char *key, const char *name)
{
	struct sought sought = { .name = name };

	if (job->broken)
		each_unread(job->unread, key, compare_text, &sought);
	return sought.found;
}

/* ---- jobs that follow others -------------------------------------------------------- */

/**
 * struct planned_name - the name of a job that is to be put
 * @in_all:	its place among all such names
 * @i:		the index of its request in struct planned
 */
struct planned_name {
	UT_hash_handle	in_all;
	size_t		i;
};

/**
 * struct visit - a job that check_chain() visits
 * @in_all:	its place among all visited jobs
 * @def:	its definition
 * @parent:	the job from which check_chain() came to it; NULL for the first one
 * @list:	the list to go on with: 0 for then_ok, 1 for then_fail; 2 if both are visited
 * @i:		the index in that list
 */
struct visit {
	UT_hash_handle		in_all;
	const struct def	*def;
	struct visit		*parent;
	int			list;
	size_t			i;
};

/**
 * struct planned - jobs that are to be put
 * @puts:	the requests
 * @defs:	their definitions, parsed
 * @names:	their names
 * @by_name:	the head of the hash of @names
 * @nr:		how many
 * @visits:	the jobs that check_chain() has visited
 */
struct planned {
	struct put		*puts;
	struct def		*defs;
	struct planned_name	*names;
	struct planned_name	*by_name;
	size_t			nr;
	struct visit		*visits;
};

static const struct planned_name *find_planned(const struct planned *planned, const char *name)
{
	const struct planned_name *found;

	HASH_FIND(in_all, planned->by_name, name, strlen(name), found);
	return found;
}

/*
 * The definition that job @name will have after the request, or NULL if there will be no such job.
 */
static const struct def *def_planned(const struct planned *planned, const char *name)
{
	const struct planned_name *found = find_planned(planned, name);
	struct job *job;

	if (found)
		return &planned->defs[found->i];
	job = job_by_name(name);
	return job ? &job->def : NULL;
}

/* Is @name a job that is not understood here, and that this request does not put anew? */
static bool is_unread(const struct planned *planned, const char *name)
{
	const struct job *job = find_planned(planned, name) ? NULL : job_by_name(name);

	return job && job->broken;
}

/* Does each job that follows @def exist? */
static int check_followers(const struct planned *planned, const struct def *def,
			   char error[ERROR_MAX])
{
	const char **lists[] = { def->then_ok, def->then_fail };

	for (int l = 0; l < 2; l++)
		for (const char **name = lists[l]; name && *name; name++)
			if (!def_planned(planned, *name))
				return refuse(error, -EINVAL, "then: there is no job '%.64s'",
					      *name);
	return 0;
}

static struct visit *visit_new(struct planned *planned, const struct def *def,
			       struct visit *parent)
{
	struct visit *visit = calloc(1, sizeof(*visit));

	if (!visit)
		abort();
	visit->def = def;
	visit->parent = parent;
	HASH_ADD(in_all, planned->visits, def, sizeof(visit->def), visit);
	return visit;
}

static void forget_visits(struct planned *planned)
{
	struct visit *visit, *next;

	HASH_ITER(in_all, planned->visits, visit, next) {
		HASH_DELETE(in_all, planned->visits, visit);
		free(visit);
	}
}

/* The name of the next job that follows the one that is visited, or NULL after the last. */
static const char *next_follower(struct visit *visit)
{
	const char **lists[] = { visit->def->then_ok, visit->def->then_fail };

	for (; visit->list < 2; visit->list++, visit->i = 0)
		if (lists[visit->list] && lists[visit->list][visit->i])
			return lists[visit->list][visit->i++];
	return NULL;
}

/*
 * Check that no job follows itself, directly or through others: visit all jobs that run after @def.
 * Each job is visited once for all definitions of a request. A chain may be very long, so nothing
 * recurses.
 */
static int check_chain(struct planned *planned, const struct def *def, char error[ERROR_MAX])
{
	struct visit *at, *found;

	HASH_FIND(in_all, planned->visits, &def, sizeof(def), found);
	at = found ? NULL : visit_new(planned, def, NULL);
	while (at) {
		const char *name = next_follower(at);

		def = name ? def_planned(planned, name) : NULL;
		if (name && is_unread(planned, name))
			return refuse(error, -EBUSY, "then: '%.64s' is not understood here", name);
		if (!name)
			at = at->parent;
		if (!def)
			continue;
		HASH_FIND(in_all, planned->visits, &def, sizeof(def), found);
		if (found && found->list < 2)
			return refuse(error, -EINVAL, "then: '%.64s' would follow itself", name);
		if (!found)
			at = visit_new(planned, def, at);
	}
	return 0;
}

/**
 * struct needed - which job does the job follow?
 * @name:	the name of the job
 * @by:		filled in with the name of a job that it follows, if there is one
 */
struct needed {
	const char	*name;
	const char	*by;
};

/* Does the job of a struct needed follow @job? Then note that. */
static void find_needed(void *arg, struct job *job)
{
	struct needed *needed = arg;
	struct sought sought = { .name = needed->name };

	if (!job->broken)
		each_name(&job->def, compare_text, &sought);
	if (sought.found || unread_names(job, "then", needed->name))
		needed->by = job->name;
}

/* ---- putting ------------------------------------------------------------------------ */

/* Does the job have the revision that @put requires? */
static int check_rev(struct put *put, char error[ERROR_MAX])
{
	struct job *job = job_by_name(put->name);

	put->job = job;
	if (put->rev < 0)
		return 0;
	if (!put->rev && job)
		return refuse(error, -EEXIST, "there is a job '%s' already", put->name);
	if (put->rev && (!job || job->rev != put->rev))
		return refuse(error, -ESTALE, "job '%s' has revision %lld", put->name,
			      (long long)(job ? job->rev : 0));
	return 0;
}

/*
 * Check the name of a request: it must be valid, a name in the definition must be the same, and no
 * other request may have it.
 */
static int check_name(struct planned *planned, size_t i, char error[ERROR_MAX])
{
	const char *name = planned->puts[i].name;
	struct json_object *said;

	if (!name_good(name))
		return refuse(error, -EINVAL, "'%.64s' is not a valid name for a job", name);
	if (!json_object_object_get_ex(planned->defs[i].json, "name", &said))
		json_object_object_add(planned->defs[i].json, "name", json_object_new_string(name));
	else if (strcmp(json_object_get_string(said), name))
		return refuse(error, -EINVAL, "name: it is '%.64s', and not '%.64s'",
			      json_object_get_string(said), name);
	if (find_planned(planned, name))
		return refuse(error, -EINVAL, "two jobs are called '%.64s'", name);
	planned->names[i].i = i;
	HASH_ADD_KEYPTR(in_all, planned->by_name, name, strlen(name), &planned->names[i]);
	return 0;
}

/* Fill in the row to be written. Its strings belong to @put and @def. */
static int plan_row(const struct put *put, const struct def *def, int64_t now, struct job_row *row,
		    char error[ERROR_MAX])
{
	*row = (struct job_row){
		.id = put->job ? put->job->id : 0,
		.rev = put->job ? put->job->rev : 0,
		.name = put->name,
		.paused = put->job && put->job->paused,
		.def = json_text(def->json),
		.once = is_once(def),
		.due_at = first_due(def, put->name, now),
		.keep = put->job && !put->job->broken && same_schedule(&put->job->def, def) ?
				NEVER : 0,
	};
	if (def->kind == KIND_AT && row->due_at <= now)
		return refuse(error, -EINVAL, "at: that time has passed");
	if (def->kind != KIND_NONE && !row->due_at)
		return refuse(error, -EINVAL, "it is never due");
	return 0;
}

/* Check and plan request @i by itself. */
static int check_one(struct planned *planned, size_t i, int64_t now, struct job_row *row,
		     char error[ERROR_MAX])
{
	struct put *put = &planned->puts[i];
	struct def *def = &planned->defs[i];
	int err = check_rev(put, error);

	if (!err && !def_parse(def, put->json, now, error))
		err = -EINVAL;
	if (!err)
		err = check_name(planned, i, error);
	if (!err && !def->pool && !cgroup_can(def, error))
		err = -EINVAL;
	return err ? err : plan_row(put, def, now, row, error);
}

/* Check and plan all requests. If there are several, the error names the one that is wrong. */
static int check_all(struct planned *planned, int64_t now, struct job_row *rows,
		     char error[ERROR_MAX])
{
	char why[ERROR_MAX] = "";
	size_t i;
	int err = 0;

	for (i = 0; i < planned->nr && !err; i++) {
		store_keep(store);
		err = check_one(planned, i, now, &rows[i], why);
	}
	for (size_t k = 0; k < planned->nr && !err; k++) {
		store_keep(store);
		err = check_followers(planned, &planned->defs[k], why);
		if (!err)
			err = check_chain(planned, &planned->defs[k], why);
		i = k + 1;
	}
	forget_visits(planned);
	if (err && planned->nr > 1)
		return refuse(error, err, "job '%.128s': %.256s", planned->puts[i - 1].name, why);
	return err ? refuse(error, err, "%s", why) : 0;
}

/* The row was written: update the job in memory, which takes over the definition. */
static void put_done(struct put *put, struct def *def, const struct job_row *row)
{
	struct job *job = put->job ? put->job : job_new(row->id, put->name);

	unbreak(job);
	set_def(job, def);
	job->rev++;
	pool_moved(job);
	runs_next(job);
	row_written(job, row);
	if (row->passed_id && !job->paused)
		core_arm(row->passed_id, job->id, row->passed_at);
	put->job = job;
}

/*
 * Other lives may change jobs after a request was checked and before it is written: two lives could
 * make two jobs follow each other. So if another life has changed any job meanwhile, the request is
 * checked again.
 */
#define CHANGES_MAX	10

/* Read what other lives have changed, which may free jobs. Returns 0 or an error. */
static int see_changes(void)
{
	int err = store_mark(store);

	core_refresh();
	return err;
}

/* Forget what was checked, to check it again. */
static void forget_planned(struct planned *planned)
{
	HASH_CLEAR(in_all, planned->by_name);
	for (size_t i = 0; i < planned->nr; i++)
		def_free(&planned->defs[i]);
}

/* Check all requests and write their jobs, all or none; then take them over. */
static int put_planned(struct planned *planned, struct job_row *rows, char error[ERROR_MAX])
{
	int err = -EAGAIN;
	int64_t now;

	for (int n = 0; n < CHANGES_MAX && err == -EAGAIN; n++) {
		forget_planned(planned);
		err = see_changes();
		if (err)
			break;
		now = now_us();
		err = check_all(planned, now, rows, error);
		if (err)
			return err;
		err = store_put(store, rows, planned->nr, now);
	}
	if (err)
		return not_written(err, error);
	for (size_t i = 0; i < planned->nr; i++) {
		store_keep(store);
		put_done(&planned->puts[i], &planned->defs[i], &rows[i]);
	}
	return 0;
}

int jobs_put(struct put *puts, size_t nr, char error[ERROR_MAX])
{
	struct planned planned = { .puts = puts,
				   .defs = calloc(nr + 1, sizeof(*planned.defs)),
				   .names = calloc(nr + 1, sizeof(*planned.names)),
				   .nr = nr };
	struct job_row *rows = calloc(nr + 1, sizeof(*rows));
	int err = -ENOMEM;

	if (planned.defs && planned.names && rows)
		err = put_planned(&planned, rows, error);
	for (size_t i = 0; i < nr && planned.defs; i++)
		def_free(&planned.defs[i]);
	HASH_CLEAR(in_all, planned.by_name);
	free(planned.names);
	free(planned.defs);
	free(rows);
	return err;
}

/* ---- the other changes -------------------------------------------------------------- */

/* The job may be removed if it exists and follows no other one. */
static int check_remove(const char *name, char error[ERROR_MAX])
{
	struct needed needed = { .name = name };

	if (!job_by_name(name))
		return refuse(error, -ENOENT, "there is no job '%.128s'", name);
	jobs_each(find_needed, &needed);
	if (needed.by)
		return refuse(error, -EBUSY, "job '%s' follows job '%s'", name, needed.by);
	return 0;
}

int job_remove(const char *name, char error[ERROR_MAX])
{
	struct job *job = NULL;
	int err = -EAGAIN;
	bool gone;

	for (int n = 0; n < CHANGES_MAX && err == -EAGAIN; n++) {
		err = see_changes();
		if (err)
			break;
		err = check_remove(name, error);
		if (err)
			return err;
		job = job_by_name(name);
		err = store_remove(store, job->id, &gone);
	}
	if (err)
		return not_written(err, error);
	job_removed(job);
	if (gone)
		job_forget(job->id);
	return 0;
}

int job_pause(struct job *job, bool on, char error[ERROR_MAX])
{
	int err = job->paused == on ? 0 : store_pause(store, job->id, on);

	if (err)
		return not_written(err, error);
	if (job->paused && !on)
		core_reload();
	job->paused = on;
	return 0;
}

int job_add(struct job *job, struct due *rows, size_t nr, bool force, char error[ERROR_MAX])
{
	bool off = job->paused && !force;
	int err;

	for (size_t i = 0; i < nr; i++)
		rows[i].job = job->id;
	err = store_add(store, rows, nr, force, now_us());
	if (err)
		return not_written(err, error);
	for (size_t i = 0; i < nr && !off; i++)
		core_arm(rows[i].id, job->id, rows[i].at);
	return 0;
}

int job_cancel(struct job *job, const char *key, char error[ERROR_MAX])
{
	int err = store_cancel(store, job->id, key);

	if (err == -ENOENT)
		return refuse(error, err, "job '%s' is not due with key '%.64s'", job->name, key);
	return err ? not_written(err, error) : 0;
}

/* ---- calendars ---------------------------------------------------------------------- */

/**
 * struct affected - the jobs that a calendar's new days affect, or a zone's new rules
 * @days:	the calendar
 * @jobs:	the jobs
 * @rows:	these jobs as they are to be put, with their new times
 * @nr:		how many
 * @unread:	the jobs that use the calendar and are not understood here
 * @nr_unread:	how many
 */
struct affected {
	const struct days	*days;
	struct job		**jobs;
	struct job_row		*rows;
	size_t			nr;
	struct job		**unread;
	size_t			nr_unread;
};

/* Add @job, whose next time is to be planned anew. */
static void add_affected(struct affected *a, struct job *job)
{
	a->jobs = reallocarray(a->jobs, a->nr + 1, sizeof(struct job *));
	a->rows = reallocarray(a->rows, a->nr + 1, sizeof(*a->rows));
	if (!a->jobs || !a->rows)
		abort();
	a->jobs[a->nr] = job;
	a->rows[a->nr++] = (struct job_row) {
		.id = job->id, .rev = job->rev, .name = job->name, .paused = job->paused,
		.def = json_text(job->def.json), .keep = now_us(),
	};
}

/* Does @job use the calendar of a struct affected? */
static void find_affected(void *arg, struct job *job)
{
	struct affected *a = arg;

	if (!job->broken && job->def.except == a->days)
		add_affected(a, job);
	if (!unread_names(job, "except", a->days->name))
		return;
	a->unread = reallocarray(a->unread, a->nr_unread + 1, sizeof(struct job *));
	if (!a->unread)
		abort();
	a->unread[a->nr_unread++] = job;
}

/*
 * @job was planned for @due. When is it due by the days and the rules that its calendar and its
 * zone have now? A time that has passed stays as it was planned. The clock may have been set back,
 * or be behind, as that of a machine that has just been switched on. Then times before @due that
 * the clock has shown before, or that were fired, are not due once more. Times from @due on were
 * not fired, so they may be due.
 */
static int64_t due_now(const struct job *job, int64_t due)
{
	int64_t now = now_us(), past = 0, next = due_again(&job->def, job->name, due, now);

	if (next == due)
		return next;
	if (store_fired(store, job->id, &past))
		return due ? due : next;
	if (store->seen > past)
		past = store->seen;
	if (past <= now || (due && (!next || next > due)))
		return next;
	return due_again(&job->def, job->name, due, due && due <= past ? due - 1 : past);
}

/* For store_set_days(): when the job of row @i is due by the new days. */
static int64_t plan_again(void *arg, size_t i, int64_t due)
{
	const struct affected *a = arg;

	return due_now(a->jobs[i], due);
}

/* The new times were written: take them over into memory. */
static void affected_done(struct affected *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		struct job *job = a->jobs[i];

		job->rev++;
		row_written(job, &a->rows[i]);
	}
}

static void affected_free(struct affected *a)
{
	free(a->jobs);
	free(a->rows);
	free(a->unread);
}

/*
 * Give the calendar its new days before they are written, because the new times of its jobs depend
 * on them. If writing fails, the calendar gets its old days back; if @is_new, it had none.
 */
static int write_days(struct affected *a, const int64_t *days, size_t nr, bool is_new,
		      char error[ERROR_MAX])
{
	struct days *calendar = (struct days *)a->days, old = *calendar;
	int err = -ENOMEM;

	calendar->day = malloc((nr + 1) * sizeof(*days));
	if (calendar->day) {
		memcpy(calendar->day, days, nr * sizeof(*days));
		qsort(calendar->day, nr, sizeof(*days), compare_days);
		calendar->nr = each_once(calendar->day, nr);
		err = store_set_days(store, calendar->name, days, nr, a->rows, a->nr, plan_again,
				     a);
	}
	if (!err) {
		free(old.day);
		affected_done(a);
		return 0;
	}
	free(calendar->day);
	*calendar = old;
	if (is_new)
		days_forget(calendar->name);
	return not_written(err, error);
}

/*
 * A calendar that was missing is there again: read the jobs that were not understood without it,
 * and write their new times.
 */
static int read_again(struct affected *a, const int64_t *days, size_t nr, char error[ERROR_MAX])
{
	struct affected now = { .days = a->days };
	int err;

	for (size_t i = 0; i < a->nr_unread; i++) {
		struct job *job = a->unread[i];
		char *text = strdup(json_text(job->unread));

		unbreak(job);
		load_def(job, text);
		pool_moved(job);
		runs_next(job);
		free(text);
	}
	jobs_each(find_affected, &now);
	err = write_days(&now, days, nr, false, error);
	affected_free(&now);
	return err;
}

int days_put(const char *name, const int64_t *days, size_t nr, char error[ERROR_MAX])
{
	bool is_new = !days_find(name, false);
	struct affected affected = { .days = days_find(name, true) };
	int err;

	if (!affected.days)
		return refuse(error, -ENOMEM, "no memory");
	jobs_each(find_affected, &affected);
	if (affected.nr_unread && !is_new)
		err = refuse(error, -EBUSY, "job '%s' uses it, and is not understood here: %.128s",
			     affected.unread[0]->name, affected.unread[0]->broken);
	else
		err = write_days(&affected, days, nr, is_new, error);
	if (!err && affected.nr_unread)
		err = read_again(&affected, days, nr, error);
	affected_free(&affected);
	return err;
}

/* ---- zones -------------------------------------------------------------------------- */

/*
 * When is @job due, if the rules of its zone may have changed since it was planned? If the planned
 * time is a time by the new rules, too, it stays: then it is not known whether the rules have
 * changed, and earlier times by the new rules are left out. Otherwise a time may have passed by the
 * new rules that was still to come by the old ones. If that time is as near to the planned time as
 * the next one is, or nearer, and nothing was fired since, the job is due at that time: so it is
 * run, or counted as missed.
 */
static int64_t due_by_new_rules(const struct job *job)
{
	int64_t old = job->due_at, at = due_now(job, old), fired = 0, passed;

	if (at == old || store_fired(store, job->id, &fired))
		return at;
	passed = 2 * old - at > fired ? 2 * old - at - 1 : fired;
	passed = next_due(&job->def, job->name, passed);
	return passed && passed < at ? passed : at;
}

static void find_outdated(void *arg, struct job *job)
{
	struct affected *a = arg;
	int64_t at;

	store_keep(store);
	if (job->broken || job->def.kind != KIND_CRON || !job->due_id ||
	    !store_owns(store, job->id))
		return;
	at = due_by_new_rules(job);
	if (at == job->due_at)
		return;
	add_affected(a, job);
	a->rows[a->nr - 1].due_at = at;
}

int jobs_plan_again(void)
{
	struct affected affected = { 0 };
	int err = store_mark(store);

	jobs_each(find_outdated, &affected);
	for (size_t i = 0; i < affected.nr; i++)
		say(SAY_INFO, "job '%s' is due at another time: the rules of its zone have changed",
		    affected.jobs[i]->name);
	if (!err && affected.nr)
		err = store_put(store, affected.rows, affected.nr, now_us());
	if (!err)
		affected_done(&affected);
	affected_free(&affected);
	/* Another life has just changed a job: then leave this to the next life. */
	return err == -EAGAIN || err == -ESTALE ? 0 : err;
}
