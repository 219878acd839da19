// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A store in a file of SQLite: see store.h.
 *
 * The journal is a write-ahead log that is synced at each commit (WAL, synchronous=FULL). So what
 * is committed survives a loss of power. The file is locked as long as it is open
 * (locking_mode=EXCLUSIVE): so SQLite keeps the index of the log in memory, and no other program
 * can read or write meanwhile. From time to time a checkpoint copies the log into the file. If a
 * checkpoint fails, no transaction begins until one succeeds: otherwise the log would grow until
 * the disk is full.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "crash.h"
#include "def.h"
#include "sql.h"

#define SCHEMA_VERSION	3
#define LOG_PAGES	1000	/* when the log has so many pages, a checkpoint begins */

static const char schema[] =
	"CREATE TABLE life (id INTEGER PRIMARY KEY AUTOINCREMENT);"
	"CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,"
	" rev INTEGER NOT NULL DEFAULT 1, paused INTEGER NOT NULL DEFAULT 0, def TEXT NOT NULL,"
	" once INTEGER NOT NULL);"
	"CREATE TABLE due (id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL,"
	" at INTEGER NOT NULL, off INTEGER NOT NULL DEFAULT 0, main INTEGER NOT NULL, key TEXT,"
	" arg TEXT);"
	"CREATE INDEX due_at ON due (off, at);"
	"CREATE UNIQUE INDEX due_key ON due (job, key);"
	"CREATE UNIQUE INDEX due_main ON due (job) WHERE main = 1;"
	"CREATE TABLE running (id INTEGER, at INTEGER, job INTEGER NOT NULL, life INTEGER NOT NULL,"
	" attempt INTEGER NOT NULL, tries INTEGER NOT NULL, state INTEGER NOT NULL,"
	" missed INTEGER NOT NULL, wake INTEGER NOT NULL, fired INTEGER NOT NULL, arg TEXT,"
	" PRIMARY KEY (id, at)) WITHOUT ROWID;"
	"CREATE TABLE history (seq INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL,"
	" at INTEGER NOT NULL, job INTEGER NOT NULL, life INTEGER NOT NULL, attempt INTEGER NOT"
	" NULL,"
	" outcome INTEGER NOT NULL, more INTEGER NOT NULL, missed INTEGER NOT NULL,"
	" status INTEGER NOT NULL, fired INTEGER NOT NULL, began INTEGER NOT NULL,"
	" ended INTEGER NOT NULL, dropped INTEGER NOT NULL);"
	"CREATE INDEX history_job ON history (job);"
	"CREATE INDEX history_id ON history (id, at);"
	"CREATE INDEX history_dropped ON history (dropped);"
	"CREATE TABLE day_off (calendar TEXT, day INTEGER, PRIMARY KEY (calendar, day)) WITHOUT"
	" ROWID;"
	"CREATE TABLE calendar (name TEXT PRIMARY KEY) WITHOUT ROWID;";
static const char tables_2[] =
#include "store_runners.sql.h"
	;
static const char indexes_3[] =
#include "store_outcomes.sql.h"
	;

/*
 * The statements that convert the tables of each version to those of the next one. Version 0 is an
 * empty file.
 */
static const char *const steps[SCHEMA_VERSION] = { schema, tables_2, indexes_3 };

/**
 * struct sqlite - a store in a file
 * @store:	what callers see
 * @db:		the file
 * @queries:	the queries that were prepared so far
 * @row:	the query whose row is being read
 * @moved:	the file, or its log, was removed or replaced
 * @log:	the inode of its write-ahead log, or 0 before the first transaction
 * @stuck:	the log is long, and the last checkpoint has failed
 */
struct sqlite {
	struct store	store;
	sqlite3		*db;
	struct sqlite3_stmt *queries[NR_QUERIES];
	struct sqlite3_stmt *row;
	int		moved;
	ino_t		log;
	bool		stuck;
};

/* The store of this kind that @store, the part that callers see, is a member of. */
static struct sqlite *to_sqlite(struct store *store)
{
	return (struct sqlite *)((char *)store - offsetof(struct sqlite, store));
}

/* The error for a result of SQLite. The detail is in the upper bits. */
static int to_errno(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL: return -ENOSPC;
	case SQLITE_NOMEM: return -ENOMEM;
	case SQLITE_BUSY: return -EBUSY;
	case SQLITE_CONSTRAINT: return -EEXIST;
	default: return -EIO;
	}
}

/*
 * Prepare a query and bind its parameters. Returns NULL on failure. The query may have fewer
 * parameters than the call: the last one may be a life, which means nothing here.
 */
static sqlite3_stmt *prepare(struct sqlite *s, enum sql_id id, const char *text, const char *fmt,
			     va_list args)
{
	sqlite3_stmt **q = &s->queries[id];

	if (!*q && sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, q, NULL))
		return NULL;
	for (int i = 0; i < sqlite3_bind_parameter_count(*q); i++) {
		int rc;

		if (fmt[i] == 'i')
			rc = sqlite3_bind_int64(*q, i + 1, va_arg(args, int64_t));
		else
			rc = sqlite3_bind_text(*q, i + 1, va_arg(args, const char *), -1,
					       SQLITE_STATIC);
		if (rc)
			return NULL;
	}
	return *q;
}

/*
 * Texts are bound without being copied, so they must stay until this returns. The query is reset at
 * the end in any case: an open query would keep its transaction from ending.
 */
static int sqlite_query(struct store *store, enum sql_id id, const char *text, row_fn row,
			void *call, void *arg, const char *fmt, va_list args)
{
	struct sqlite *s = to_sqlite(store);
	sqlite3_stmt *q = prepare(s, id, text, fmt, args);
	int rc;

	if (!q)
		return to_errno(sqlite3_errcode(s->db));
	s->row = q;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW)
		if (row)
			row(store, call, arg);
	rc = rc == SQLITE_DONE ? 0 : to_errno(sqlite3_extended_errcode(s->db));
	sqlite3_reset(q);
	store->changed = sqlite3_changes(s->db);
	return rc;
}

static int64_t sqlite_number(struct store *store, int column)
{
	return sqlite3_column_int64(to_sqlite(store)->row, column);
}

static const char *sqlite_text(struct store *store, int column)
{
	return (const char *)sqlite3_column_text(to_sqlite(store)->row, column);
}

/* ---- transactions ------------------------------------------------------------------- */

/* Execute statements without parameters. Returns 0 or an error. */
static int sqlite_exec(struct sqlite *s, const char *text)
{
	return sqlite3_exec(s->db, text, NULL, NULL, NULL) ?
	       to_errno(sqlite3_extended_errcode(s->db)) : 0;
}

/* The name of the write-ahead log. */
static const char *log_name(struct sqlite *s)
{
	return sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
}

/*
 * The inode of the write-ahead log, which stays the same as long as the file is open; 0 if there is
 * none.
 */
static ino_t log_inode(struct sqlite *s)
{
	struct stat log;

	return stat(log_name(s), &log) ? 0 : log.st_ino;
}

/* Checkpoint: write what is in the log to the file, so that the log begins again. */
static int checkpoint(struct sqlite *s)
{
	int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	s->stuck = rc && rc != SQLITE_BUSY && rc != SQLITE_LOCKED;
	return s->stuck ? to_errno(rc) : 0;
}

/* Called after each commit. If a checkpoint fails, the next transaction fails, but not this one. */
static int committed(void *arg, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	if (pages >= LOG_PAGES)
		checkpoint(arg);
	return SQLITE_OK;
}

/*
 * Take the lock for writing at once, so that no later statement can fail for want of it. If
 * somebody has removed or replaced the file or its log, fail: whatever is written would be lost
 * when the daemon ends.
 */
static int sqlite_begin(struct store *store)
{
	struct sqlite *s = to_sqlite(store);
	int err;

	s->moved = 0;
	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &s->moved);
	if (s->log && s->log != log_inode(s))
		s->moved = 1;
	err = s->moved ? -EIO : s->stuck ? checkpoint(s) : 0;
	if (!err)
		err = sqlite_exec(s, "BEGIN IMMEDIATE");
	if (!err && !s->log)
		s->log = log_inode(s);
	return err;
}

static int sqlite_end(struct store *store, int err)
{
	struct sqlite *s = to_sqlite(store);

	crash_point("before the commit");
	if (!err)
		err = sqlite_exec(s, "COMMIT");
	crash_point("after the commit");
	if (err && !sqlite3_get_autocommit(s->db))
		sqlite_exec(s, "ROLLBACK");
	return err;
}

/* Enter a row into history. In a transaction. */
static int history_add(struct store *store, const struct ended *e)
{
	const struct firing *f = &e->firing;

	return sql_run(store, Q_HISTORY_ADD, "iiiiiiiiiiiii", f->id, f->at, f->job, f->life,
		       f->attempt, (int64_t)e->outcome, (int64_t)e->more, f->missed, e->status,
		       f->fired, e->began, e->ended, e->drop);
}

/* The row of Q_TAKE: the firing may begin. Copy its argument, which the caller frees. */
static void take_row(struct store *store, void *call, void *arg)
{
	struct op *op = arg;

	(void)call;
	op->done = true;
	op->line.firing.arg = sql_text(store, 0) ? strdup(sql_text(store, 0)) : NULL;
}

/*
 * OP_FIRE and OP_LEAVE: if the row of due is there and due, move or delete it, and enter the firing
 * into running or history.
 */
static int op_fire(struct store *store, struct op *op, int64_t now)
{
	struct firing *f = &op->line.firing;
	int err;

	op->done = false;
	f->arg = NULL;
	err = sql_each(store, Q_TAKE, take_row, NULL, op, "iii", f->id, f->at, now);
	if (err || !op->done)
		return err;
	if (op->next)
		err = sql_run(store, Q_DUE_MOVE, "ii", op->next, f->id);
	else
		err = sql_run(store, Q_DUE_DELETE, "i", f->id);
	if (!err && op->type == OP_FIRE)
		err = sql_run(store, Q_RUN, "iiiiiiiit", f->id, f->at, f->job, f->life, f->attempt,
			      (int64_t)f->state, f->missed, f->fired, f->arg);
	if (!err && op->type == OP_LEAVE)
		err = history_add(store, &op->line);
	return err;
}

/*
 * OP_END and OP_AGAIN: if the firing is still in this attempt, end or change it, and enter the
 * attempt into history.
 */
static int op_end(struct store *store, struct op *op)
{
	const struct firing *f = &op->line.firing, *n = &op->next_firing;
	int err;

	if (op->type == OP_END)
		err = sql_run(store, Q_RUNNING_DELETE, "iii", f->id, f->at, f->attempt);
	else
		err = sql_run(store, Q_AGAIN, "iiiiiiii", n->attempt, n->tries, (int64_t)n->state,
			      n->wake, n->life, f->id, f->at, f->attempt);
	op->done = !err && store->changed;
	return err || !op->done ? err : history_add(store, &op->line);
}

/* The row of Q_DUE_ADD: the id of the new row. */
static void take_id(struct store *store, void *call, void *arg)
{
	struct op *op = arg;

	(void)call;
	op->line.firing.id = sql_number(store, 0);
}

/* Do one operation of a turn, and fill in whether it was done. In the turn's transaction. */
static int do_op(struct store *store, struct op *op, int64_t now)
{
	struct firing *f = &op->line.firing;
	int err = 0;

	switch (op->type) {
	case OP_FIRE:
	case OP_LEAVE:
		return op_fire(store, op, now);
	case OP_END:
	case OP_AGAIN:
		return op_end(store, op);
	case OP_READY:
		err = sql_run(store, Q_READY, "iiiii", (int64_t)f->state, f->life, f->id, f->at,
			      f->attempt);
		break;
	case OP_MOVE:
		err = sql_run(store, Q_MOVE, "ii", op->next, f->id);
		break;
	case OP_ADD:
		err = sql_each(store, Q_DUE_ADD, take_id, NULL, op, "iiitti", op->next, (int64_t)0,
			       (int64_t)1, NULL, NULL, f->job);
		op->done = f->id;
		return err;
	}
	op->done = !err && store->changed;
	return err;
}

/* If the turn fails, it will be done again, so free the arguments that it has read. */
static int sqlite_turn(struct store *store, int lane, struct op *ops, size_t nr, int64_t now)
{
	int err = sqlite_begin(store);

	(void)lane;
	if (err)
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		err = do_op(store, &ops[i], now);
	err = sqlite_end(store, err);
	for (size_t i = 0; i < nr && err; i++) {
		if (ops[i].type != OP_FIRE && ops[i].type != OP_LEAVE)
			continue;
		free((char *)ops[i].line.firing.arg);
		ops[i].line.firing.arg = NULL;
	}
	return err;
}

/*
 * There is no other life, so all parts are ours. Each life has a number that none had before. Do a
 * checkpoint first: if it fails, nothing is written. So a daemon that is started again and again
 * does not make the log longer.
 */
static int sqlite_join(struct store *store, int64_t old)
{
	struct sqlite *s = to_sqlite(store);
	int err = checkpoint(s);

	(void)old;
	if (!err)
		err = sqlite_exec(s, "INSERT INTO life DEFAULT VALUES");
	store->life = sqlite3_last_insert_rowid(s->db);
	store->parts = PARTS_ALL;
	return err;
}

/* ---- opening ------------------------------------------------------------------------ */

static const char *sqlite_error(struct store *store)
{
	const struct sqlite *s = to_sqlite(store);

	return s->moved ? "its file, or that with -wal, was removed or replaced"
			: sqlite3_errmsg(s->db);
}

static void sqlite_close(struct store *store)
{
	struct sqlite *s = to_sqlite(store);

	for (int i = 0; i < NR_QUERIES; i++)
		sqlite3_finalize(s->queries[i]);
	sqlite3_close(s->db);
	free(s);
}

static const struct store_ops sqlite_ops = {
	.queries = {
		[Q_WINDOW] = "SELECT id, job, at FROM due WHERE off = 0 AND at >= $1 AND at < $2"
			     " ORDER BY at LIMIT $3",
		[Q_EXPIRED] = "SELECT seq, id, at, job, life, attempt, outcome, more, missed,"
			      " status, fired, began, ended, dropped FROM history"
			      " WHERE dropped >= $1 AND dropped <= $2 ORDER BY dropped LIMIT $3",
	},
	.close = sqlite_close, .error = sqlite_error, .join = sqlite_join, .turn = sqlite_turn,
	.begin = sqlite_begin, .end = sqlite_end, .query = sqlite_query, .number = sqlite_number,
	.text = sqlite_text,
};

/* The number that a query returns; -1 if the file cannot be read. */
static int ask(struct sqlite *s, const char *text)
{
	sqlite3_stmt *q = NULL;
	int n = -1;

	if (!sqlite3_prepare_v2(s->db, text, -1, &q, NULL) &&
	    sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return n;
}

/* Convert a store of version @have to our version: all of the steps or none. */
static int make_tables(struct sqlite *s, int have)
{
	int err = sqlite_begin(&s->store);
	char version[40];

	if (err)
		return err;
	snprintf(version, sizeof(version), "PRAGMA user_version = %d", SCHEMA_VERSION);
	for (int v = have; v < SCHEMA_VERSION && !err; v++)
		err = sqlite_exec(s, steps[v]);
	if (!err)
		err = sqlite_exec(s, version);
	return sqlite_end(&s->store, err);
}

/* Lock the file, make its tables if it is new, and check their version. */
static int set_up(struct sqlite *s, char *error, size_t size)
{
	int rc, have, err = 0;
	bool read;

	rc = sqlite3_exec(s->db,
			  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
			  "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384",
			  NULL, NULL, NULL);
	have = rc ? -1 : ask(s, "PRAGMA user_version");
	read = have >= 0 || !sqlite3_errcode(s->db);
	if (have == 0 && ask(s, "SELECT count(*) FROM sqlite_master") > 0) {
		snprintf(error, size, "it is a database of another program");
		return -EINVAL;
	}
	if (have >= 0 && have < SCHEMA_VERSION)
		err = make_tables(s, have);
	if (!read || err) {
		snprintf(error, size, "%s", sqlite3_errmsg(s->db));
		return err ? err : to_errno(rc ? rc : sqlite3_errcode(s->db));
	}
	if (have >= 0 && have <= SCHEMA_VERSION)
		return 0;
	snprintf(error, size, "its version is %d, and this twheeld knows %d", have, SCHEMA_VERSION);
	return -EINVAL;
}

/* When the file was written for the last time; 0 if there is none. */
static int64_t written(const char *file)
{
	struct stat st;

	if (stat(file, &st))
		return 0;
	return (int64_t)st.st_mtim.tv_sec * US_PER_S + st.st_mtim.tv_nsec / 1000;
}

/* When the store was written for the last time, before it was opened. */
static int64_t last_written(struct sqlite *s, const char *file)
{
	int64_t one = written(file), other = written(log_name(s));

	return one > other ? one : other;
}

int store_sqlite(struct store **store, const char *file, char *error, size_t size)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->store.ops = &sqlite_ops;
	s->store.lease_end = INT64_MAX;
	err = sqlite3_open_v2(file, &s->db,
			      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			      NULL);
	if (err) {
		snprintf(error, size, "%s", s->db ? sqlite3_errmsg(s->db) : "no memory");
		err = to_errno(err);
	} else {
		s->store.seen = last_written(s, file);
		err = set_up(s, error, size);
		sqlite3_wal_hook(s->db, committed, s);
	}
	if (err) {
		sqlite_close(&s->store);
		return err;
	}
	*store = &s->store;
	return 0;
}
