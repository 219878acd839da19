/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What is below store.c: how each kind of store talks to its database. Both kinds execute the same
 * SQL. SQLite numbers the parameters of a query in the order in which they first appear in it. So
 * $1 must appear first in a query, then $2, and so on.
 */
#ifndef JOBS_SQL_H
#define JOBS_SQL_H

#include <stdarg.h>

#include "store.h"

enum sql_id {
	/* queries that differ between the kinds: store_ops.queries */
	Q_WINDOW, Q_EXPIRED,
	Q_JOBS, Q_JOB, Q_RUNNING, Q_DUE_ADD, Q_DUE_KEY, Q_DUE_KEEP, Q_DUE_MAIN, Q_DUE_JOB,
	Q_DUE_FIND, Q_DUE_KILL,
	Q_JOB_ADD, Q_JOB_SET, Q_JOB_NONAME, Q_JOB_LOCK, Q_PAUSE, Q_PAUSE_DUE,
	Q_JOB_DROP, Q_JOB_DROP_IDLE, Q_JOBS_ACTIVE,
	Q_DAYS, Q_DAYS_DELETE, Q_DAY_ADD, Q_CALENDAR_ADD, Q_HISTORY, Q_HISTORY_JOB,
	Q_HISTORY_ID, Q_HISTORY_AT, Q_BAD, Q_BAD_JOB, Q_HISTORY_DROP, Q_KNOWN, Q_FIRED,
	/* for stores that do a turn statement by statement */
	Q_TAKE, Q_DUE_DELETE, Q_DUE_MOVE, Q_MOVE, Q_RUN, Q_RUNNING_DELETE, Q_AGAIN, Q_READY,
	Q_HISTORY_ADD,
	/* runners, and what they run */
	Q_RUNNER, Q_RUNNERS, Q_RUNNER_LEAVE, Q_RUNNERS_GONE, Q_RUNNERS_END, Q_TASKS_END,
	Q_TASKS_WANT, Q_TASKS, Q_TASK_AGAIN, Q_TASK_POOL,
	Q_TASK_ADD, Q_TASK_ACCEPT, Q_TASK_SPLIT, Q_TASK_WHOLE, Q_TASK_FIND, Q_TASK_OUT,
	Q_TASK_LIFE, Q_TASK_BEAT, Q_TASK_KILLED,
	Q_TASK_HERE, Q_TASK_OVER, Q_TASK_STATE, Q_TASK_LOST, Q_TASK_CANCEL, Q_TASK_KILL,
	Q_TASKS_CLEAN, Q_TASK_BACK, Q_POOL_READY,
	/* for stores that many lives share */
	Q_JOB_NEWS, Q_NODES, Q_MACHINE, Q_DUES, Q_LAST, Q_IDLE, Q_BEATS, Q_DROPS, Q_TELL,
	Q_TELL_KILL, NR_QUERIES
};

/* Called for each row of a result. It reads the row with sql_number() and sql_text(). */
typedef void (*row_fn)(struct store *store, void *call, void *arg);

/**
 * struct store_ops - a kind of store
 * @queries:	the texts of Q_WINDOW, with the parameters from, to, limit and life, and of
 *		Q_EXPIRED, with the parameters now, limit and life
 * @close:	see store.h
 * @error:	see store.h
 * @join:	see store.h
 * @leave:	see store.h
 * @beat:	see store.h
 * @keep:	see store.h; NULL: there is no lease
 * @news:	see store.h
 * @turn:	see store.h
 * @turned:	see store.h; NULL: a turn is over when @turn returns
 * @begin:	begin a transaction
 * @end:	commit it, or roll it back if it is given an error. Returns that error, or its own
 * @query:	execute a query, whose text is @text. @fmt tells the types of its parameters: i for
 *		an int64_t, t for a text or NULL. If @row is not NULL, it is called with @call and
 *		@arg for each row
 * @number:	a column of the present row, as a number
 * @text:	a column of the present row, as a text or NULL
 */
struct store_ops {
	const char	*queries[Q_EXPIRED + 1];
	void		(*close)(struct store *store);
	const char	*(*error)(struct store *store);
	int		(*join)(struct store *store, int64_t old);
	void		(*leave)(struct store *store);
	int		(*beat)(struct store *store);
	void		(*keep)(struct store *store);
	int		(*news)(struct store *store, int (*fn)(void *arg, const struct news *),
				void *arg);
	int		(*turn)(struct store *store, int lane, struct op *ops, size_t nr,
				int64_t now);
	int		(*turned)(struct store *store, int lane, bool wait);
	int		(*begin)(struct store *store);
	int		(*end)(struct store *store, int err);
	int		(*query)(struct store *store, enum sql_id id, const char *text, row_fn row,
				 void *call, void *arg, const char *fmt, va_list args);
	int64_t		(*number)(struct store *store, int column);
	const char	*(*text)(struct store *store, int column);
};

/*
 * Execute a query whose result has no rows, or none that is needed. @fmt has a letter for each
 * parameter: see @query of struct store_ops. Afterwards store->changed says how many rows the query
 * has changed.
 */
int sql_run(struct store *store, enum sql_id id, const char *fmt, ...);
/* sql_run(), and call @row with @call and @arg for each row of the result. */
int sql_each(struct store *store, enum sql_id id, row_fn row, void *call, void *arg,
	     const char *fmt, ...);
/*
 * @nr numbers as a parameter that is a list of them; each lies @stride bytes behind the one before.
 * NULL if there is no memory. The caller frees it.
 */
char *sql_list(const int64_t *first, size_t stride, size_t nr);

/*
 * Tell other lives of a change, within the transaction that makes it. Does nothing if there can be
 * no other life.
 */
int tell(struct store *store, enum news_type type, int64_t job, int64_t id, int64_t at);

/* A column of the row for which a row_fn is being called, as a number; NULL is 0. */
static inline int64_t sql_number(struct store *store, int column)
{
	return store->ops->number(store, column);
}

/* Such a column as a text, or NULL. The text is valid until the row_fn returns. */
static inline const char *sql_text(struct store *store, int column)
{
	return store->ops->text(store, column);
}

#endif
