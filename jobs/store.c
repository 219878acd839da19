// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What all kinds of stores do alike. store.h says what each function guarantees; struct store_ops
 * has what differs between the kinds.
 *
 * A function that changes more than one row is one transaction: ops->begin(), its statements,
 * ops->end(err). end() commits if err is 0, and else rolls back; so on an error nothing has
 * changed. What other lives must know is written by tell() in the same transaction: so they hear of
 * a change if it is made, and only then.
 *
 * A function that reads has a callback of its own type for each row. So *_row() makes a structure
 * of the columns, in the order in which the query names them, and calls the function to which @call
 * points. The texts in that structure are valid until the callback returns.
 *
 * Nothing here is locked: the daemon has one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "sql.h"

#define TELL_US		120000000LL	/* twice as far as core.c reads ahead */

#define JOB		"SELECT j.id, j.name, j.rev, j.paused, j.def, j.once, coalesce(d.id, 0)," \
			" coalesce(d.at, 0) FROM job j LEFT JOIN due d ON d.job = j.id AND d.main = 1"
#define HISTORY		"SELECT seq, id, at, job, life, attempt, outcome, more, missed, status," \
			" fired, began, ended, dropped FROM history"
#define HISTORY_OF	HISTORY " WHERE seq < $1 AND ended >= $2 AND ($3 < 0 OR outcome = $3)"
#define IN_PARTS(job)	"(($1 >> CAST(" job " & 63 AS int)) & 1) = 1"

/*
 * In the tables: due.off is 1 if the row waits because its job is paused. due.at is NEVER, which is
 * INT64_MAX, while the row waits for the end of its own firing. job.name is NULL once the job was
 * removed; the row remains as long as its history does.
 */
static const char *const queries[NR_QUERIES] = {
	[Q_JOBS] = JOB " WHERE " IN_PARTS("j.id") " ORDER BY j.id",
	[Q_JOB] = JOB " WHERE j.id = $1",
	[Q_RUNNING] = "SELECT id, at, job, life, attempt, tries, state, missed, wake, fired, arg"
		      " FROM running WHERE " IN_PARTS("job") " ORDER BY fired, id, at",
	/* $3 is 1, or 0 if the row is not to wait although its job is paused */
	[Q_DUE_ADD] = "INSERT INTO due (at, main, off, key, arg, job)"
		      " SELECT $1, $2, paused * $3, $4, $5, id FROM job WHERE id = $6 RETURNING id",
	[Q_DUE_KEY] = "DELETE FROM due WHERE job = $1 AND key = $2",
	[Q_DUE_MAIN] = "DELETE FROM due WHERE job = $1 AND main = 1",
	[Q_DUE_JOB] = "DELETE FROM due WHERE job = $1",
	[Q_JOB_ADD] = "INSERT INTO job (name, def, once) VALUES ($1, $2, $3) RETURNING id",
	/* It changes no row if somebody else has put or removed the job meanwhile. */
	[Q_JOB_SET] = "UPDATE job SET def = $1, once = $2, rev = rev + 1 WHERE id = $3 AND rev = $4"
		      " AND name IS NOT NULL",
	[Q_JOB_NONAME] = "UPDATE job SET name = NULL WHERE id = $1",
	[Q_PAUSE] = "UPDATE job SET paused = $1 WHERE id = $2",
	[Q_PAUSE_DUE] = "UPDATE due SET off = $1 WHERE job = $2",
	[Q_JOB_DROP] = "DELETE FROM job WHERE id = $1 AND (name IS NULL OR once = 1) AND"
		       " NOT EXISTS (SELECT 1 FROM due WHERE job = $1) AND"
		       " NOT EXISTS (SELECT 1 FROM history WHERE job = $1) AND"
		       " NOT EXISTS (SELECT 1 FROM running WHERE job = $1)",
	/* One row with INT64_MIN for a calendar without days. */
	[Q_DAYS] = "SELECT name, coalesce(day, -9223372036854775808) FROM calendar"
		   " LEFT JOIN day_off ON calendar = name ORDER BY name, day",
	[Q_DAYS_DELETE] = "DELETE FROM day_off WHERE calendar = $1",
	[Q_DAY_ADD] = "INSERT INTO day_off (calendar, day) VALUES ($1, $2) ON CONFLICT DO NOTHING",
	[Q_CALENDAR_ADD] = "INSERT INTO calendar (name) VALUES ($1) ON CONFLICT DO NOTHING",
	[Q_HISTORY] = HISTORY_OF " ORDER BY seq DESC LIMIT $4",
	[Q_HISTORY_JOB] = HISTORY_OF " AND job = $4 ORDER BY seq DESC LIMIT $5",
	[Q_HISTORY_ID] = HISTORY_OF " AND id = $4 AND at = $5 ORDER BY seq DESC LIMIT $6",
	[Q_HISTORY_DROP] = "DELETE FROM history WHERE seq = $1",

	/* A row that was moved, deleted or paused since its timer was armed is not taken. */
	[Q_TAKE] = "SELECT arg FROM due WHERE id = $1 AND at = $2 AND at <= $3 AND off = 0",
	[Q_DUE_DELETE] = "DELETE FROM due WHERE id = $1",
	[Q_DUE_MOVE] = "UPDATE due SET at = $1 WHERE id = $2",
	[Q_MOVE] = "UPDATE due SET at = $1 WHERE id = $2 AND at = 9223372036854775807",
	[Q_RUN] = "INSERT INTO running (id, at, job, life, attempt, tries, state, missed, wake,"
		  " fired, arg) VALUES ($1, $2, $3, $4, $5, 0, $6, $7, 0, $8, $9)",
	[Q_RUNNING_DELETE] = "DELETE FROM running WHERE id = $1 AND at = $2 AND attempt = $3",
	[Q_AGAIN] = "UPDATE running SET attempt = $1, tries = $2, state = $3, wake = $4, life = $5"
		    " WHERE id = $6 AND at = $7 AND attempt = $8",
	/* 2 is STATE_READY. */
	[Q_READY] = "UPDATE running SET state = 2, life = $1 WHERE id = $2 AND at = $3 AND"
		    " attempt = $4",
	[Q_HISTORY_ADD] =
		"INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status,"
		" fired, began, ended, dropped) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,"
		" $11, $12, $13)",

	[Q_TELL] = "INSERT INTO inbox (life, type, job, id, at) VALUES ($1, $2, $3, $4, $5)",
	[Q_TELL_KILL] = "INSERT INTO inbox (life, type, job, id, at)"
			" SELECT $1, $2, job, id, at FROM running WHERE id = $3 AND at = $4",
};

const char *sql_query(const struct store *store, enum sql_id id)
{
	return id <= Q_EXPIRED ? store->ops->queries[id] : queries[id];
}

int sql_run(struct store *store, enum sql_id id, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = store->ops->query(store, id, NULL, NULL, NULL, fmt, args);
	va_end(args);
	return err;
}

int sql_each(struct store *store, enum sql_id id, row_fn row, void *call, void *arg,
	     const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = store->ops->query(store, id, row, call, arg, fmt, args);
	va_end(args);
	return err;
}

void store_close(struct store *store)
{
	store->ops->close(store);
}

const char *store_error(struct store *store)
{
	return store->ops->error(store);
}

/* ---- lives -------------------------------------------------------------------------- */

int store_join(struct store *store, int64_t old)
{
	return store->ops->join(store, old);
}

void store_leave(struct store *store)
{
	if (store->ops->leave)
		store->ops->leave(store);
}

int store_beat(struct store *store)
{
	store->hurry = false;
	return store->ops->beat ? store->ops->beat(store) : 0;
}

int store_news(struct store *store, void (*fn)(void *arg, const struct news *), void *arg)
{
	return store->ops->news ? store->ops->news(store, fn, arg) : 0;
}

/*
 * Tell other lives of a change, within the transaction that makes it. Does nothing if there can be
 * no other life.
 */
static int tell(struct store *store, enum news_type type, int64_t job, int64_t id, int64_t at)
{
	if (!store->many)
		return 0;
	return sql_run(store, Q_TELL, "iiiii", store->life, (int64_t)type, job, id, at);
}

int store_tell_kill(struct store *store, int64_t id, int64_t at)
{
	int err = store->many ? store->ops->begin(store) : -ENOENT;

	if (err)
		return err;
	err = sql_run(store, Q_TELL_KILL, "iiii", store->life, (int64_t)NEWS_KILL, id, at);
	if (!err && !store->changed)
		err = -ENOENT;
	return store->ops->end(store, err);
}

int store_turn(struct store *store, struct op *ops, size_t nr, int64_t now)
{
	return store->ops->turn(store, ops, nr, now);
}

int store_turned(struct store *store, bool wait)
{
	return store->ops->turned ? store->ops->turned(store, wait) : 0;
}

/* ---- reading ------------------------------------------------------------------------ */

/* A row of Q_JOBS or Q_JOB. */
static void job_row(struct store *store, void *call, void *arg)
{
	struct job_row row = {
		.id = sql_number(store, 0),
		.name = sql_text(store, 1),
		.rev = sql_number(store, 2),
		.paused = sql_number(store, 3),
		.def = sql_text(store, 4),
		.once = sql_number(store, 5),
		.due_id = sql_number(store, 6),
		.due_at = sql_number(store, 7),
	};

	(*(void (**)(void *arg, const struct job_row *))call)(arg, &row);
}

int store_jobs(struct store *store, uint64_t parts, void (*fn)(void *arg, const struct job_row *),
	       void *arg)
{
	return sql_each(store, Q_JOBS, job_row, &fn, arg, "i", (int64_t)parts);
}

int store_job(struct store *store, int64_t id, void (*fn)(void *arg, const struct job_row *),
	      void *arg)
{
	return sql_each(store, Q_JOB, job_row, &fn, arg, "i", id);
}

/* A row of Q_RUNNING. */
static void running_row(struct store *store, void *call, void *arg)
{
	struct firing f = {
		.id = sql_number(store, 0),
		.at = sql_number(store, 1),
		.job = sql_number(store, 2),
		.life = sql_number(store, 3),
		.attempt = sql_number(store, 4),
		.tries = sql_number(store, 5),
		.state = (enum state)sql_number(store, 6),
		.missed = sql_number(store, 7),
		.wake = sql_number(store, 8),
		.fired = sql_number(store, 9),
		.arg = sql_text(store, 10),
	};

	(*(void (**)(void *arg, const struct firing *))call)(arg, &f);
}

int store_running(struct store *store, uint64_t parts,
		  void (*fn)(void *arg, const struct firing *), void *arg)
{
	if (!parts)
		return 0;
	return sql_each(store, Q_RUNNING, running_row, &fn, arg, "i", (int64_t)parts);
}

/* A row of Q_WINDOW. */
static void due_row(struct store *store, void *call, void *arg)
{
	struct due due = {
		.id = sql_number(store, 0),
		.job = sql_number(store, 1),
		.at = sql_number(store, 2),
	};

	(*(void (**)(void *arg, const struct due *))call)(arg, &due);
}

int store_window(struct store *store, int64_t from, int64_t to, int64_t limit,
		 void (*fn)(void *arg, const struct due *), void *arg)
{
	return sql_each(store, Q_WINDOW, due_row, &fn, arg, "iiii", from, to, limit, store->life);
}

/* A row of Q_DAYS. */
static void day_row(struct store *store, void *call, void *arg)
{
	(*(void (**)(void *arg, const char *name, int64_t day))call)(arg, sql_text(store, 0),
								      sql_number(store, 1));
}

int store_days(struct store *store, void (*fn)(void *arg, const char *name, int64_t day),
	       void *arg)
{
	return sql_each(store, Q_DAYS, day_row, &fn, arg, "");
}

/* A row of HISTORY. */
static void history_row(struct store *store, void *call, void *arg)
{
	struct ended e = {
		.seq = sql_number(store, 0),
		.firing = {
			.id = sql_number(store, 1), .at = sql_number(store, 2),
			.job = sql_number(store, 3), .life = sql_number(store, 4),
			.attempt = sql_number(store, 5), .missed = sql_number(store, 8),
			.fired = sql_number(store, 10),
		},
		.outcome = (enum outcome)sql_number(store, 6), .more = sql_number(store, 7),
		.status = sql_number(store, 9), .began = sql_number(store, 11),
		.ended = sql_number(store, 12), .drop = sql_number(store, 13),
	};

	(*(void (**)(void *arg, const struct ended *))call)(arg, &e);
}

int store_history(struct store *store, const struct query *query,
		  void (*fn)(void *arg, const struct ended *), void *arg)
{
	int64_t before = query->before ? query->before : INT64_MAX, outcome = query->outcome;

	if (query->id)
		return sql_each(store, Q_HISTORY_ID, history_row, &fn, arg, "iiiiii", before,
				query->since, outcome, query->id, query->at, query->limit);
	if (query->job)
		return sql_each(store, Q_HISTORY_JOB, history_row, &fn, arg, "iiiii", before,
				query->since, outcome, query->job, query->limit);
	return sql_each(store, Q_HISTORY, history_row, &fn, arg, "iiii", before, query->since,
			outcome, query->limit);
}

/* The life is for kinds that keep logs on several machines; SQLite's query does not use it. */
int store_expired(struct store *store, int64_t now, int64_t limit,
		  void (*fn)(void *arg, const struct ended *), void *arg)
{
	return sql_each(store, Q_EXPIRED, history_row, &fn, arg, "iii", now, limit, store->life);
}

/* ---- requests that change something ------------------------------------------------- */

/* A row of a statement that returns the id of what it has added. */
static void take_id(struct store *store, void *call, void *arg)
{
	(void)call;
	*(int64_t *)arg = sql_number(store, 0);
}

/*
 * Add a row of due, and fill in its id. With @force it does not wait although its job may be
 * paused. -ESTALE if the job does not exist any more. In a transaction.
 */
static int due_add(struct store *store, struct due *due, bool force)
{
	int err;

	due->id = 0;
	err = sql_each(store, Q_DUE_ADD, take_id, NULL, &due->id, "iiitti", due->at,
		       (int64_t)due->main, (int64_t)!force, due->key, due->arg, due->job);
	return err || due->id ? err : -ESTALE;
}

/* Add a new job, and fill in its id. In a transaction. */
static int put_new(struct store *store, struct job_row *row)
{
	return sql_each(store, Q_JOB_ADD, take_id, NULL, &row->id, "tti", row->name, row->def,
			(int64_t)row->once);
}

/*
 * Replace the definition of a job that still has this revision, and delete its schedule's row of
 * due. -ESTALE if it has another revision. In a transaction.
 */
static int put_again(struct store *store, const struct job_row *row)
{
	int err = sql_run(store, Q_JOB_SET, "tiii", row->def, (int64_t)row->once, row->id,
			  row->rev);

	if (!err && !store->changed)
		err = -ESTALE;
	return err ? err : sql_run(store, Q_DUE_MAIN, "i", row->id);
}

/* store_put() of one row, in a transaction. */
static int put_one(struct store *store, struct job_row *row)
{
	int err = row->id ? put_again(store, row) : put_new(store, row);
	struct due due = { .job = row->id, .at = row->due_at, .main = true };

	if (!err && row->due_at)
		err = due_add(store, &due, false);
	row->due_id = due.id;
	return err ? err : tell(store, NEWS_JOB, row->id, 0, 0);
}

int store_put(struct store *store, struct job_row *rows, size_t nr)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		err = put_one(store, &rows[i]);
	return store->ops->end(store, err);
}

/* The last step deletes the row of the job at once if it has neither firings nor history. */
int store_remove(struct store *store, int64_t job)
{
	static const enum sql_id steps[] = { Q_JOB_NONAME, Q_DUE_JOB, Q_JOB_DROP };
	int err = store->ops->begin(store);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !err; i++)
		err = sql_run(store, steps[i], "i", job);
	if (!err)
		err = tell(store, NEWS_JOB, job, 0, 0);
	return store->ops->end(store, err);
}

/* The rows of due keep their times. When the job is resumed, those that are over are missed. */
int store_pause(struct store *store, int64_t job, bool on)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_PAUSE, "ii", (int64_t)on, job);
	if (!err)
		err = sql_run(store, Q_PAUSE_DUE, "ii", (int64_t)on, job);
	if (!err)
		err = tell(store, NEWS_JOB, job, 0, 0);
	return store->ops->end(store, err);
}

/*
 * store_add() of one row, in a transaction. If its job is another life's, that life is told only if
 * the row is due before it would be read anyway.
 */
static int add_one(struct store *store, struct due *due, bool force, int64_t now)
{
	int err = due->key ? sql_run(store, Q_DUE_KEY, "it", due->job, due->key) : 0;

	if (!err)
		err = due_add(store, due, force);
	if (err || store_owns(store, due->job) || due->at > now + TELL_US)
		return err;
	return tell(store, NEWS_DUE, due->job, due->id, due->at);
}

int store_add(struct store *store, struct due *rows, size_t nr, bool force, int64_t now)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		err = add_one(store, &rows[i], force, now);
	return store->ops->end(store, err);
}

int store_cancel(struct store *store, int64_t job, const char *key)
{
	int err = sql_run(store, Q_DUE_KEY, "it", job, key);

	return err || store->changed ? err : -ENOENT;
}

/* In one transaction with the jobs: no life may see the new days with the old times of due. */
int store_set_days(struct store *store, const char *name, const int64_t *days, size_t nr,
		   struct job_row *rows, size_t nr_jobs)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_CALENDAR_ADD, "t", name);
	if (!err)
		err = sql_run(store, Q_DAYS_DELETE, "t", name);
	for (size_t i = 0; i < nr && !err; i++)
		err = sql_run(store, Q_DAY_ADD, "ti", name, days[i]);
	if (!err)
		err = tell(store, NEWS_DAYS, 0, 0, 0);
	for (size_t i = 0; i < nr_jobs && !err; i++)
		err = put_one(store, &rows[i]);
	return store->ops->end(store, err);
}

/*
 * Delete the job, if it was removed or was due once only, and nothing is left of it. *@gone becomes
 * whether it was deleted. In a transaction.
 */
static int drop_job(struct store *store, int64_t job, bool *gone)
{
	int err = sql_run(store, Q_JOB_DROP, "i", job);

	*gone = !err && store->changed;
	return *gone ? tell(store, NEWS_JOB, job, 0, 0) : err;
}

/*
 * @fn is called after the commit, and only then: the caller forgets the job. All rows of history
 * are deleted before any job is tried, so a job of several rows is found empty at its first row.
 */
int store_drop(struct store *store, const struct ended *rows, size_t nr,
	       void (*fn)(void *arg, int64_t job), void *arg)
{
	bool *gone = calloc(nr + 1, sizeof(*gone));
	int err = gone ? store->ops->begin(store) : -ENOMEM;

	if (err)
		goto out;
	for (size_t i = 0; i < nr && !err; i++)
		err = sql_run(store, Q_HISTORY_DROP, "i", rows[i].seq);
	for (size_t i = 0; i < nr && !err; i++)
		err = drop_job(store, rows[i].firing.job, &gone[i]);
	err = store->ops->end(store, err);
	for (size_t i = 0; i < nr && !err; i++)
		if (gone[i])
			fn(arg, rows[i].firing.job);
out:
	free(gone);
	return err;
}
