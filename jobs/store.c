// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What all kinds of stores share. store.h says what each function guarantees; struct store_ops has
 * what differs between the kinds.
 *
 * A function that changes more than one row is one transaction: ops->begin(), its statements,
 * ops->end(err). end() commits if err is 0, and otherwise rolls back; so on an error nothing has
 * changed. tell() writes what other lives must know in the same transaction. So they hear of a
 * change if it is made, and only then.
 *
 * A function that reads has a callback of its own type for each row. So each function whose name
 * ends in _row makes a structure of the columns, in the order in which the query names them, and
 * calls the function to which @call points. The texts in that structure are valid until the
 * callback returns.
 *
 * Nothing here is locked: the daemon has one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sql.h"

#define TELL_US		120000000LL	/* 2 min: twice as far as core.c reads ahead */
#define UNORDERED_US	3600000000LL	/* see seq_before() */

#define JOB		"SELECT j.id, j.name, j.rev, j.paused, j.def, j.once, coalesce(d.id, 0)," \
			" coalesce(d.at, 0) FROM job j LEFT JOIN due d ON d.job = j.id AND d.main = 1"
#define HISTORY_ROW	"SELECT seq, id, at, job, life, attempt, outcome, more, missed, status," \
			" fired, began, ended, dropped FROM "
#define HISTORY		HISTORY_ROW "history"
#define WHEN		" WHERE seq < $1 AND seq > $2 AND ended >= $3"
#define HISTORY_OF	HISTORY WHEN " AND ($4 < 0 OR outcome = $4)"
/* Both kinds use an index of store_outcomes.sql only if a query has its condition word for word. */
#define BAD_OF		HISTORY WHEN " AND outcome = $4 AND outcome <> 0"
#define JOB_DROP	"DELETE FROM job WHERE id = $1 AND (name IS NULL OR once = 1) AND" \
			" NOT EXISTS (SELECT 1 FROM due WHERE job = $1) AND" \
			" NOT EXISTS (SELECT 1 FROM history WHERE job = $1)"
#define IN_PARTS(job)	"(($1 >> CAST(" job " & 63 AS int)) & 1) = 1"
/*
 * A lease is renewed until @until. If the lease before was longer, its runner relies on that one,
 * so it stays. The clock may have been set back, so a lease counts only if it is no longer than
 * leases can be: three times LEASE_MAX_US, the number here.
 */
#define LATER(table, until)	"CASE WHEN " table ".until > " until " AND " table ".until - " \
				until " < 900000000 THEN " table ".until ELSE " until " END"

/*
 * In the tables: due.off is 1 if the row waits because its job is paused. due.at is NEVER, which is
 * INT64_MAX, while the row waits for the end of its own firing. job.name is NULL if the job was
 * removed; the row of job remains as long as the job has history.
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
	/* A row that waits for the end of its firing stays, too. */
	[Q_DUE_KEEP] = "UPDATE due SET at = at WHERE job = $1 AND main = 1 AND (at <= $2 OR"
		       " at = 9223372036854775807) RETURNING id, at",
	[Q_DUE_MAIN] = "DELETE FROM due WHERE job = $1 AND main = 1 RETURNING at",
	[Q_DUE_FIND] = "SELECT job FROM due WHERE id = $1 AND at = $2",
	[Q_DUE_KILL] = "DELETE FROM due WHERE id = $1 AND at = $2 AND main = 0",
	[Q_DUE_JOB] = "DELETE FROM due WHERE job = $1",
	[Q_JOB_ADD] = "INSERT INTO job (name, def, once) VALUES ($1, $2, $3) RETURNING id",
	/* This changes no row if somebody else has put or removed the job meanwhile. */
	[Q_JOB_SET] = "UPDATE job SET def = $1, once = $2, rev = rev + 1 WHERE id = $3 AND rev = $4"
		      " AND name IS NOT NULL",
	[Q_JOB_NONAME] = "UPDATE job SET name = NULL WHERE id = $1",
	[Q_PAUSE] = "UPDATE job SET paused = $1 WHERE id = $2",
	[Q_PAUSE_DUE] = "UPDATE due SET off = $1 WHERE job = $2",
	[Q_JOB_LOCK] = "UPDATE job SET once = once WHERE id = $1 AND (name IS NULL OR once = 1)",
	[Q_JOB_DROP] = JOB_DROP " AND NOT EXISTS (SELECT 1 FROM running WHERE job = $1)",
	[Q_JOB_DROP_IDLE] = JOB_DROP,
	/* This reads all rows of running, so use it once for many jobs. */
	[Q_JOBS_ACTIVE] = "SELECT DISTINCT r.job FROM running r JOIN job j ON j.id = r.job WHERE"
			  " r.job BETWEEN $1 AND $2 AND (j.name IS NULL OR j.once = 1)",
	/* One row with INT64_MIN for a calendar without days. */
	[Q_DAYS] = "SELECT name, coalesce(day, -9223372036854775808) FROM calendar"
		   " LEFT JOIN day_off ON calendar = name ORDER BY name, day",
	[Q_DAYS_DELETE] = "DELETE FROM day_off WHERE calendar = $1",
	[Q_DAY_ADD] = "INSERT INTO day_off (calendar, day) VALUES ($1, $2) ON CONFLICT DO NOTHING",
	[Q_CALENDAR_ADD] = "INSERT INTO calendar (name) VALUES ($1) ON CONFLICT DO NOTHING",
	[Q_HISTORY] = HISTORY_OF " ORDER BY seq DESC LIMIT $5",
	[Q_HISTORY_JOB] = HISTORY_OF " AND job = $5 ORDER BY seq DESC LIMIT $6",
	[Q_HISTORY_ID] = HISTORY_OF " AND id = $5 AND at = $6 ORDER BY seq DESC LIMIT $7",
	[Q_HISTORY_AT] = "SELECT seq, ended FROM history WHERE seq <= $1 ORDER BY seq DESC LIMIT 1",
	[Q_BAD] = BAD_OF " ORDER BY seq DESC LIMIT $5",
	[Q_BAD_JOB] = BAD_OF " AND job = $5 ORDER BY seq DESC LIMIT $6",
	[Q_KNOWN] = "SELECT 1 FROM running WHERE id = $1 AND at = $2 AND attempt <= $3 UNION ALL"
		    " SELECT 1 FROM history WHERE id = $1 AND at = $2 AND attempt = $3",
	/* A run that stands for missed times stands for all times until it was fired. */
	[Q_FIRED] = "SELECT coalesce(max(CASE WHEN missed > 0 AND fired > at THEN fired ELSE at"
		    " END), 0) FROM (SELECT at, missed, fired FROM running WHERE job = $1 UNION ALL"
		    " SELECT at, missed, fired FROM (SELECT at, missed, fired FROM history WHERE"
		    " job = $1 ORDER BY seq DESC LIMIT 100) AS latest) AS firings",
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
	[Q_READY] = "UPDATE running SET state = $1, life = $2 WHERE id = $3 AND at = $4 AND"
		    " attempt = $5",
	[Q_HISTORY_ADD] =
		"INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status,"
		" fired, began, ended, dropped) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,"
		" $11, $12, $13)",

	[Q_RUNNER] = "INSERT INTO runner (id, pool, name, until) VALUES ($1, $2, $3, $4)"
		     " ON CONFLICT (id) DO UPDATE SET until = " LATER("runner", "excluded.until"),
	[Q_RUNNERS] = "SELECT id, pool, name, until FROM runner WHERE until >= $1 ORDER BY id",
	[Q_RUNNER_LEAVE] = "DELETE FROM runner WHERE id = $1",
	[Q_RUNNERS_GONE] = "DELETE FROM runner WHERE until < $1",
	[Q_RUNNERS_END] = "UPDATE runner SET until = $1 WHERE until > $1",
	[Q_TASKS_END] = "UPDATE task SET until = $1 WHERE state = 1 AND runner <> '' AND"
			" until > $1",
	/* Not those of parts (NEVER): a part waits for its runner for ever, see pool.c. */
	[Q_TASKS_WANT] = "UPDATE task SET wants_until = $1 WHERE state = 0 AND wants_until > $1 AND"
			 " wants_until < 9223372036854775807",
	[Q_TASKS] = "SELECT id, at, shard, shards, job, attempt, state, outcome, status, life,"
		    " until, began, killed, pool FROM task WHERE " IN_PARTS("job")
		    " AND state >= $2",
	[Q_TASK_AGAIN] = "UPDATE task SET attempt = $1, pool = $2, prio = $3, state = 0,"
			 " wants = CASE WHEN pool = $2 THEN wants END, killed = 0,"
			 " runner = NULL, until = 0, began = 0 WHERE id = $4 AND"
			 " at = $5 AND attempt < $1 AND"
			 " NOT (state = 2 AND outcome = 0 AND shards > 1)",
	/*
	 * Add nothing if the firing has tasks of another attempt or another number of parts. Either
	 * all its parts have succeeded, though too late, and another attempt has nothing to repeat;
	 * or these tasks were entered before, the daemon did not get the answer, and there is
	 * another number of runners by now.
	 */
	[Q_TASK_ADD] = "INSERT INTO task (id, at, shard, shards, job, pool, prio, attempt, state,"
		       " outcome, status, killed, life, until, began, wants, wants_until)"
		       " SELECT $1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, 0, 0, 0, $9, $10"
		       " WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = $1 AND t.at = $2 AND"
		       " (t.shards <> $4 OR t.attempt <> $8)) ON CONFLICT DO NOTHING",
	[Q_TASK_ACCEPT] = "INSERT INTO task (id, at, shard, shards, job, prio, attempt, state,"
			  " outcome, status, killed, runner, life, until, began, wants_until) VALUES"
			  " ($1, $2, 0, 1, $3, 0, $4, 1, 0, 0, 0, '', $5, 9223372036854775807, $6,"
			  " 0) ON CONFLICT (id, at, shard) DO UPDATE SET attempt ="
			  " excluded.attempt, shards = 1, pool = NULL, state = 1, outcome = 0,"
			  " killed = 0, runner = '', life = excluded.life,"
			  " until = excluded.until, began = excluded.began"
			  " WHERE task.attempt < excluded.attempt OR task.state = 0",
	/* The run was whole, and now each runner is to execute a part; or, if $4, the reverse. */
	[Q_TASK_SPLIT] = "DELETE FROM task WHERE id = $1 AND at = $2 AND attempt < $3 AND"
			 " CASE WHEN shards > 1 THEN 1 ELSE 0 END = $4",
	[Q_TASK_WHOLE] = "DELETE FROM task WHERE id = $1 AND at = $2 AND shard > 0",
	/* A task that wants a runner waits until wants_until, as long as that runner lives. */
	[Q_TASK_FIND] = "SELECT t.id, t.at, t.shard, t.shards, t.job, t.attempt FROM task t JOIN"
			" running r ON r.id = t.id AND r.at = t.at"
			" JOIN job j ON j.id = t.job AND j.def IS NOT NULL WHERE t.pool = $1 AND"
			" t.state = 0 AND"
			" r.state IN (2, 4) AND (t.wants IS NULL OR t.wants = $2 OR t.wants_until < $3 OR"
			" NOT EXISTS (SELECT 1 FROM runner w WHERE w.id = t.wants AND w.until >="
			" $3)) ORDER BY t.prio DESC, r.fired, t.id, t.shard LIMIT $4",
	/* The runner may rely on a longer lease, from another daemon: see LATER(). */
	[Q_TASK_OUT] = "UPDATE task SET state = 1, runner = $1, life = $2, until = coalesce("
		       "(SELECT " LATER("w", "$3") " FROM runner w WHERE w.id = $1), $3),"
		       " began = $4"
		       " WHERE id = $5 AND at = $6 AND shard = $7 AND state = 0 RETURNING"
		       " (SELECT r.missed FROM running r WHERE r.id = task.id AND r.at = task.at),"
		       " (SELECT r.arg FROM running r WHERE r.id = task.id AND r.at = task.at),"
		       " (SELECT j.name FROM job j WHERE j.id = task.job),"
		       " (SELECT j.def FROM job j WHERE j.id = task.job)",
	[Q_TASK_LIFE] = "UPDATE running SET life = $1 WHERE id = $2 AND at = $3 AND life <> $1",
	[Q_TASK_BEAT] = "UPDATE task SET until = " LATER("task", "$1") " WHERE id = $2 AND"
			" at = $3 AND shard = $4 AND attempt = $5 AND runner = $6 AND state = 1 AND until >= $7"
			" RETURNING killed",
	[Q_TASK_KILLED] = "SELECT count(*) FROM task WHERE runner = $1 AND state = 1 AND"
			  " killed = 1",
	[Q_POOL_READY] = "SELECT pool, NULL, 0 FROM task WHERE pool = $1 AND state = 0 LIMIT 1",
	[Q_TASK_HERE] = "UPDATE task SET life = $1 WHERE id = $2 AND at = $3 AND shard = $4 AND"
			" state = 1 AND life <> $1",
	[Q_TASK_OVER] = "UPDATE task SET state = 2, outcome = $1, status = $2, life = $3 WHERE"
			" id = $4 AND at = $5 AND shard = $6 AND attempt = $7 AND runner = $8 AND"
			" state = 1",
	/*
	 * 1: the task is over already, belonged to this runner and ended like this; 2: the firing
	 * has no task yet, but may have one in a moment.
	 */
	[Q_TASK_STATE] = "SELECT 1 FROM task WHERE id = $1 AND at = $2 AND shard = $3 AND"
			 " attempt = $4 AND runner = $5 AND state = 2 AND outcome = $6 AND status = $7"
			 " UNION ALL SELECT 2 FROM running WHERE id = $1 AND at = $2 AND attempt = $4 AND"
			 " state = 2 AND NOT EXISTS (SELECT 1 FROM task t WHERE t.id = $1 AND"
			 " t.at = $2 AND t.attempt = $4)",
	[Q_TASK_LOST] = "UPDATE task SET state = 2, outcome = 4, status = -1 WHERE id = $1 AND"
			" at = $2 AND shard = $3 AND attempt = $4 AND state = 1 AND until < $5",
	[Q_TASK_CANCEL] = "UPDATE task SET state = 2, outcome = 3, status = -1 WHERE id = $1 AND"
			  " at = $2 AND (state = 0 OR (state = 1 AND runner = '' AND $3 = 0))",
	[Q_TASK_KILL] = "UPDATE task SET killed = 1 WHERE id = $1 AND at = $2 AND state = 1",
	[Q_TASK_BACK] = "DELETE FROM task WHERE job = $1 AND NOT EXISTS (SELECT 1 FROM task t WHERE"
			" t.id = task.id AND t.at = task.at AND t.state > 0) RETURNING id, at",
	[Q_TASK_POOL] = "UPDATE task SET pool = $1, wants = NULL WHERE job = $2 AND state = 0"
			" AND pool <> $1",
	[Q_TASKS_CLEAN] = "DELETE FROM task WHERE " IN_PARTS("job") " AND NOT EXISTS (SELECT 1"
			  " FROM running r WHERE r.id = task.id AND r.at = task.at)",
	/* 0 is NEWS_JOB. Such changes never overlap, so their numbers are in their order. */
	[Q_JOB_NEWS] = "SELECT coalesce(max(xid), 0) FROM inbox WHERE type = 0 AND life <> $1",
	[Q_NODES] = "SELECT id, name, CAST(extract(epoch FROM lease_until - clock_timestamp())"
		    " * 1000000 AS bigint), mine(id) FROM node ORDER BY name, id",
	[Q_MACHINE] = "SELECT name FROM life WHERE id = $1",
	[Q_DUES] = "SELECT id, job, at FROM due WHERE main = 1 AND job = ANY"
		   "(CAST(string_to_array($1, ',') AS bigint[]))",
	[Q_LAST] = HISTORY_ROW "unnest(CAST(string_to_array($1, ',') AS bigint[])) AS wanted(it),"
		   " LATERAL (SELECT * FROM history WHERE history.job = it ORDER BY seq DESC"
		   " LIMIT 1) AS latest",
	/* In the order of the rows, in which other statements lock them, too. */
	[Q_BEATS] = "UPDATE task SET until = " LATER("task", "$1") " FROM (SELECT * FROM unnest("
		    "CAST(string_to_array($2, ',') AS bigint[]),"
		    " CAST(string_to_array($3, ',') AS bigint[]),"
		    " CAST(string_to_array($4, ',') AS bigint[]),"
		    " CAST(string_to_array($5, ',') AS bigint[])) WITH ORDINALITY"
		    " u(id, at, shard, attempt, i) ORDER BY id, at, shard) AS u WHERE"
		    " task.id = u.id AND task.at = u.at AND task.shard = u.shard AND"
		    " task.attempt = u.attempt AND runner = $6 AND state = 1 AND until >= $7"
		    " RETURNING i, killed",
	[Q_IDLE] = "SELECT DISTINCT p, NULL, 0 FROM unnest(string_to_array($1, ',')) p"
		   " WHERE EXISTS (SELECT 1 FROM task WHERE pool = p AND state = 0) UNION ALL"
		   " SELECT NULL, r, count(*) FROM unnest(string_to_array($2, ',')) r JOIN task ON"
		   " runner = r AND state = 1 AND killed = 1 GROUP BY r",
	[Q_DROPS] = "DELETE FROM history WHERE seq = ANY"
		    "(CAST(string_to_array($1, ',') AS bigint[]))",
	[Q_TELL] = "INSERT INTO inbox (life, type, job, id, at) VALUES ($1, $2, $3, $4, $5)",
	/* 3 is STATE_KILLED. */
	[Q_TELL_KILL] = "WITH killed AS (UPDATE running SET state = 3 WHERE id = $1 AND at = $2"
			" RETURNING job, id, at) INSERT INTO inbox (life, type, job, id, at)"
			" SELECT $3, $4, job, id, at FROM killed",
};

/* The text of a query. */
static const char *text_of(const struct store *store, enum sql_id id)
{
	return id <= Q_EXPIRED ? store->ops->queries[id] : queries[id];
}

int sql_run(struct store *store, enum sql_id id, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = store->ops->query(store, id, text_of(store, id), NULL, NULL, NULL, fmt, args);
	va_end(args);
	return err;
}

int sql_each(struct store *store, enum sql_id id, row_fn row, void *call, void *arg,
	     const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = store->ops->query(store, id, text_of(store, id), row, call, arg, fmt, args);
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

int store_join(struct store *store, int64_t old, int64_t key)
{
	store->key = key;
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

void store_keep(struct store *store)
{
	if (store->ops->keep)
		store->ops->keep(store);
}

int store_news(struct store *store, int (*fn)(void *arg, const struct news *), void *arg)
{
	return store->ops->news ? store->ops->news(store, fn, arg) : 0;
}

int tell(struct store *store, enum news_type type, int64_t job, int64_t id, int64_t at)
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
	err = sql_run(store, Q_TELL_KILL, "iiii", id, at, store->life, (int64_t)NEWS_KILL);
	if (!err && !store->changed)
		err = -ENOENT;
	return store->ops->end(store, err);
}

/* A row of Q_NODES. */
static void node_row(struct store *store, void *call, void *arg)
{
	struct node node = {
		.life = sql_number(store, 0),
		.name = sql_text(store, 1),
		.lease = sql_number(store, 2),
		.parts = (uint64_t)sql_number(store, 3),
	};

	(*(void (**)(void *arg, const struct node *))call)(arg, &node);
}

int store_nodes(struct store *store, void (*fn)(void *arg, const struct node *), void *arg)
{
	struct node us = { .life = store->life, .parts = store->parts };

	if (store->many)
		return sql_each(store, Q_NODES, node_row, &fn, arg, "");
	fn(arg, &us);
	return 0;
}

/**
 * struct machine - where store_machine() puts a name
 * @name:	there
 * @size:	its size
 */
struct machine {
	char	*name;
	size_t	size;
};

/* A row of Q_MACHINE. */
static void machine_row(struct store *store, void *call, void *arg)
{
	struct machine *machine = arg;

	(void)call;
	snprintf(machine->name, machine->size, "%s", sql_text(store, 0));
}

int store_machine(struct store *store, int64_t life, char *name, size_t size)
{
	struct machine machine = { .name = name, .size = size };

	return sql_each(store, Q_MACHINE, machine_row, NULL, &machine, "i", life);
}

int store_turn(struct store *store, int lane, struct op *ops, size_t nr, int64_t now)
{
	return store->ops->turn(store, lane, ops, nr, now);
}

int store_turned(struct store *store, int lane, bool wait)
{
	return store->ops->turned ? store->ops->turned(store, lane, wait) : 0;
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

/**
 * struct line - where a row of history is
 * @seq:	its number; 0 if there is no such row
 * @ended:	when it was written
 */
struct line {
	int64_t	seq;
	int64_t	ended;
};

/* The row of Q_HISTORY_AT. */
static void line_row(struct store *store, void *call, void *arg)
{
	struct line *line = arg;

	(void)call;
	line->seq = sql_number(store, 0);
	line->ended = sql_number(store, 1);
}

/*
 * A number of a row: all rows up to it had ended before @since, so they need not be looked at. Rows
 * are written in the order of their ends, but for up to UNORDERED_US if several daemons write them
 * or the clock was set back.
 */
static int64_t seq_before(struct store *store, int64_t since)
{
	struct line line = { 0 };
	int64_t low = 0, middle = INT64_MAX, high = middle;

	while (since && low < high) {
		line.seq = 0;
		if (sql_each(store, Q_HISTORY_AT, line_row, NULL, &line, "i", middle))
			return 0;
		if (middle == INT64_MAX)
			high = line.seq;
		if (!line.seq || line.ended < since - UNORDERED_US)
			low = middle < high ? middle : high;
		else
			high = line.seq - 1;
		middle = high - (high - low) / 2;
	}
	return low;
}

int store_history(struct store *store, const struct query *query,
		  void (*fn)(void *arg, const struct ended *), void *arg)
{
	int64_t before = query->before ? query->before : INT64_MAX, outcome = query->outcome,
		after = query->id ? 0 : seq_before(store, query->since);
	bool bad = outcome > OUTCOME_OK;

	if (query->id)
		return sql_each(store, Q_HISTORY_ID, history_row, &fn, arg, "iiiiiii", before,
				after, query->since, outcome, query->id, query->at, query->limit);
	if (query->job)
		return sql_each(store, bad ? Q_BAD_JOB : Q_HISTORY_JOB, history_row, &fn, arg,
				"iiiiii", before, after, query->since, outcome, query->job,
				query->limit);
	return sql_each(store, bad ? Q_BAD : Q_HISTORY, history_row, &fn, arg, "iiiii", before,
			after, query->since, outcome, query->limit);
}

char *sql_list(const int64_t *first, size_t stride, size_t nr)
{
	char *text = malloc(21 * nr + 1), *end = text;

	if (!text)
		return NULL;
	*end = 0;
	for (size_t i = 0; i < nr; i++)
		end += sprintf(end, "%s%lld", i ? "," : "",
			       (long long)*(const int64_t *)((const char *)first + i * stride));
	return text;
}

/* Execute a query whose parameter is a list of numbers. */
static int each_of(struct store *store, enum sql_id id, row_fn row, void *call, void *arg,
		   const int64_t *numbers, size_t nr)
{
	char *text = sql_list(numbers, sizeof(*numbers), nr);
	int err = text ? sql_each(store, id, row, call, arg, "t", text) : -ENOMEM;

	free(text);
	return err;
}

int store_dues(struct store *store, const int64_t *jobs, size_t nr,
	       void (*fn)(void *arg, const struct due *), void *arg)
{
	return each_of(store, Q_DUES, due_row, &fn, arg, jobs, nr);
}

/* Without a server, a query needs no round trip, so one for each job is cheap. */
int store_last(struct store *store, const int64_t *jobs, size_t nr,
	       void (*fn)(void *arg, const struct ended *), void *arg)
{
	int err = 0;

	if (store->many)
		return each_of(store, Q_LAST, history_row, &fn, arg, jobs, nr);
	for (size_t i = 0; i < nr && !err; i++) {
		struct query query = { .job = jobs[i], .outcome = -1, .limit = 1 };

		err = store_history(store, &query, fn, arg);
	}
	return err;
}

/* store->life is for stores with logs on several machines; the query of SQLite does not use it. */
int store_expired(struct store *store, int64_t from, int64_t now, int64_t limit,
		  void (*fn)(void *arg, const struct ended *), void *arg)
{
	return sql_each(store, Q_EXPIRED, history_row, &fn, arg, "iiii", from, now, limit,
			store->life);
}

/* ---- requests that change something ------------------------------------------------- */

/* A row of a statement that returns the id of a row that it has added. */
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

/*
 * store_add() of one row, in a transaction. If the job belongs to another life, tell that life only
 * if the row is due so soon that it would not read the row in time by itself.
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

int store_mark(struct store *store)
{
	if (!store->many)
		return 0;
	return sql_each(store, Q_JOB_NEWS, take_id, NULL, &store->mark, "i", store->life);
}

/* Has another life changed a job since store_mark()? Then -EAGAIN. In a transaction. */
static int check_mark(struct store *store)
{
	int64_t mark = 0;
	int err = 0;

	if (store->many)
		err = sql_each(store, Q_JOB_NEWS, take_id, NULL, &mark, "i", store->life);
	return !err && mark > store->mark ? -EAGAIN : err;
}

/* Add a new job, and fill in its id. In a transaction. */
static int put_new(struct store *store, struct job_row *row)
{
	return sql_each(store, Q_JOB_ADD, take_id, NULL, &row->id, "tti", row->name, row->def,
			(int64_t)row->once);
}

/* The row of Q_DUE_KEEP. */
static void kept_row(struct store *store, void *call, void *arg)
{
	struct job_row *row = arg;

	(void)call;
	row->due_id = sql_number(store, 0);
	row->due_at = sql_number(store, 1);
}

/*
 * Replace the definition of a job that still has the revision row->rev, and delete its schedule's
 * row of due; *@was becomes when that row was due. But if the row stays (see @keep of struct
 * job_row), row->due_id is its id. -ESTALE if the job has another revision. In a transaction.
 */
static int put_again(struct store *store, struct job_row *row, int64_t *was)
{
	int err = sql_run(store, Q_JOB_SET, "tiii", row->def, (int64_t)row->once, row->id,
			  row->rev);

	row->due_id = 0;
	if (!err && !store->changed)
		err = -ESTALE;
	if (!err && row->keep)
		err = sql_each(store, Q_DUE_KEEP, kept_row, NULL, row, "ii", row->id, row->keep);
	if (err || row->due_id)
		return err;
	return sql_each(store, Q_DUE_MAIN, take_id, NULL, was, "i", row->id);
}

/* store_put() of one row, in a transaction. *@was is filled in as by put_again(). */
static int put_job(struct store *store, struct job_row *row, int64_t *was)
{
	*was = 0;
	return row->id ? put_again(store, row, was) : put_new(store, row);
}

/* After put_job(): add the new row of due, if the old one does not stay, and tell other lives. */
static int put_due(struct store *store, struct job_row *row)
{
	struct due due = { .id = row->due_id, .job = row->id, .at = row->due_at, .main = true };
	int err = 0;

	if (row->due_at && !due.id)
		err = due_add(store, &due, false);
	row->due_id = due.id;
	return err ? err : tell(store, NEWS_JOB, row->id, 0, 0);
}

/*
 * The row of due that put_again() deleted was due at @was. If that is not after @now, this time
 * must not be lost: add a row of its own for it. In the transaction of put_again(), so that no
 * other life can fire the old row in between.
 */
static int keep_passed(struct store *store, struct job_row *row, int64_t was, int64_t now)
{
	struct due due = { .job = row->id, .at = was };
	int err;

	if (!was || was > now)
		return 0;
	err = add_one(store, &due, false, now);
	row->passed_id = due.id;
	row->passed_at = due.at;
	return err;
}

int store_put(struct store *store, struct job_row *rows, size_t nr, int64_t now)
{
	int err = store->ops->begin(store);
	int64_t was;

	if (err)
		return err;
	err = check_mark(store);
	for (size_t i = 0; i < nr && !err; i++) {
		err = put_job(store, &rows[i], &was);
		if (!err)
			err = keep_passed(store, &rows[i], was, now);
		if (!err)
			err = put_due(store, &rows[i]);
	}
	return store->ops->end(store, err);
}

/* The last step deletes the row of the job at once if it has neither firings nor history. */
int store_remove(struct store *store, int64_t job, bool *gone)
{
	static const enum sql_id steps[] = { Q_JOB_NONAME, Q_DUE_JOB, Q_JOB_DROP };
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = check_mark(store);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !err; i++)
		err = sql_run(store, steps[i], "i", job);
	*gone = store->changed;
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
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_DUE_KEY, "it", job, key);
	return store->ops->end(store, err || store->changed ? err : -ENOENT);
}

/* A row of Q_DUE_FIND. */
static void find_row(struct store *store, void *call, void *arg)
{
	(void)call;
	*(int64_t *)arg = sql_number(store, 0);
}

int store_find_due(struct store *store, int64_t id, int64_t at, int64_t *job)
{
	*job = 0;
	return sql_each(store, Q_DUE_FIND, find_row, NULL, job, "ii", id, at);
}

int store_kill_due(struct store *store, int64_t id, int64_t at)
{
	int err = store->ops->begin(store);

	if (err)
		return err;
	err = sql_run(store, Q_DUE_KILL, "ii", id, at);
	return store->ops->end(store, err || store->changed ? err : -ENOENT);
}

/*
 * The days and the jobs change in one transaction: no life may see the new days with old times of
 * due. Only the owner of a job knows when the job is due, and may be firing it now. So @again gets
 * the time of the row that is deleted.
 */
int store_set_days(struct store *store, const char *name, const int64_t *days, size_t nr,
		   struct job_row *rows, size_t nr_jobs,
		   int64_t (*again)(void *arg, size_t i, int64_t due), void *arg)
{
	int err = store->ops->begin(store);
	int64_t was;

	if (err)
		return err;
	err = sql_run(store, Q_CALENDAR_ADD, "t", name);
	if (!err)
		err = sql_run(store, Q_DAYS_DELETE, "t", name);
	for (size_t i = 0; i < nr && !err; i++)
		err = sql_run(store, Q_DAY_ADD, "ti", name, days[i]);
	if (!err)
		err = tell(store, NEWS_DAYS, 0, 0, 0);
	for (size_t i = 0; i < nr_jobs && !err; i++) {
		err = put_job(store, &rows[i], &was);
		if (!rows[i].due_id)
			rows[i].due_at = again(arg, i, was);
		if (!err)
			err = put_due(store, &rows[i]);
	}
	return store->ops->end(store, err);
}

int store_fired(struct store *store, int64_t job, int64_t *at)
{
	return sql_each(store, Q_FIRED, take_id, NULL, at, "i", job);
}

/* A row of Q_KNOWN. */
static void known_row(struct store *store, void *call, void *arg)
{
	(void)store;
	(void)call;
	*(bool *)arg = true;
}

int store_known(struct store *store, const struct firing *f, bool *known)
{
	*known = false;
	return sql_each(store, Q_KNOWN, known_row, NULL, known, "iii", f->id, f->at, f->attempt);
}

/**
 * struct drops - jobs that may be deleted, since they were removed or were due once only
 * @rows:	rows of history that were about them
 * @nr:		how many
 * @may:	for each row: it is the first row about its job, and that job may be deleted
 */
struct drops {
	const struct ended	*rows;
	size_t			nr;
	bool			*may;
};

/* A row of Q_JOBS_ACTIVE: this job has runs, so it may not be deleted. */
static void active_row(struct store *store, void *call, void *arg)
{
	struct drops *drops = arg;
	int64_t job = sql_number(store, 0);

	(void)call;
	for (size_t i = 0; i < drops->nr; i++)
		drops->may[i] &= drops->rows[i].firing.job != job;
}

/*
 * Delete those of the jobs of which nothing is left; @may of the others becomes false. In a
 * transaction, which has locked all these jobs. So if a turn of another life adds a row of due or
 * of running for one of them, that turn has ended, and these statements see the row.
 */
static int drop_locked(struct store *store, struct drops *drops)
{
	int64_t least = INT64_MAX, most = 0;
	int err;

	for (size_t i = 0; i < drops->nr; i++) {
		int64_t job = drops->rows[i].firing.job;

		if (drops->may[i]) {
			least = job < least ? job : least;
			most = job > most ? job : most;
		}
	}
	if (!most)
		return 0;
	err = sql_each(store, Q_JOBS_ACTIVE, active_row, NULL, drops, "ii", least, most);
	for (size_t i = 0; i < drops->nr && !err; i++) {
		if (!drops->may[i])
			continue;
		err = sql_run(store, Q_JOB_DROP_IDLE, "i", drops->rows[i].firing.job);
		drops->may[i] = !err && store->changed;
		if (drops->may[i])
			err = tell(store, NEWS_JOB, drops->rows[i].firing.job, 0, 0);
	}
	return err;
}

/* Delete these rows of history; if there is a server, in one round trip. In a transaction. */
static int drop_rows(struct store *store, const struct ended *rows, size_t nr)
{
	int64_t *seqs = store->many ? calloc(nr + 1, sizeof(*seqs)) : NULL;
	int err = store->many && !seqs ? -ENOMEM : 0;

	for (size_t i = 0; i < nr && !err; i++) {
		if (store->many)
			seqs[i] = rows[i].seq;
		else
			err = sql_run(store, Q_HISTORY_DROP, "i", rows[i].seq);
	}
	if (store->many && !err)
		err = each_of(store, Q_DROPS, NULL, NULL, NULL, seqs, nr);
	free(seqs);
	return err;
}

/* Is this the first of the rows that is about its job? */
static bool is_first(const struct ended *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (rows[k].firing.job == rows[i].firing.job)
			return false;
	return true;
}

/*
 * @fn is called after the commit, and only then: the caller forgets the job. All rows of history
 * are deleted before any job is tried, so a job of several rows is found empty at its first row.
 */
int store_drop(struct store *store, const struct ended *rows, size_t nr, bool (*keep)(int64_t job),
	       void (*fn)(void *arg, int64_t job), void *arg)
{
	struct drops drops = { .rows = rows, .nr = nr, .may = calloc(nr + 1, 1) };
	int err = drops.may ? store->ops->begin(store) : -ENOMEM;

	if (err)
		goto out;
	err = drop_rows(store, rows, nr);
	for (size_t i = 0; i < nr && !err; i++) {
		if (!is_first(rows, i) || keep(rows[i].firing.job))
			continue;
		err = sql_run(store, Q_JOB_LOCK, "i", rows[i].firing.job);
		drops.may[i] = store->changed;
	}
	if (!err)
		err = drop_locked(store, &drops);
	err = store->ops->end(store, err);
	for (size_t i = 0; i < nr && !err; i++)
		if (drops.may[i])
			fn(arg, rows[i].firing.job);
out:
	free(drops.may);
	return err;
}
