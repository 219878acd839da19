// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What the store reads to list runs of one outcome, if nearly all of a long history went well:
 * store.c and store_sqlite.c. It counts the steps of SQLite's machine, and no time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store.h"
#include "tap.h"

#define ROWS	20000
#define EACH	1000	/* so many rows are between two that have failed */
#define STEPS	2000	/* a few for each row that is found; all rows take a hundred times that */

static sqlite3 *db;
static struct store *store;

/* SQLite calls it for each database that is opened. */
static int opened(sqlite3 *it, char **error, const struct sqlite3_api_routines *api)
{
	(void)error;
	(void)api;
	db = it;
	return SQLITE_OK;
}

/* The steps of all statements since the last call. */
static int steps(void)
{
	struct sqlite3_stmt *q = NULL;
	int sum = 0;

	while ((q = sqlite3_next_stmt(db, q)))
		sum += sqlite3_stmt_status(q, SQLITE_STMTSTATUS_VM_STEP, 1);
	return sum;
}

static bool fill(void)
{
	char text[800];

	snprintf(text, sizeof(text),
		 "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)\n"
		 "INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status,\n"
		 "fired, began, ended, dropped) SELECT i, i, 1 + i / %d %% 2, 1, 1, i %% %d = 0,\n"
		 "0, 0, 0, i, i, i, i FROM n", ROWS, EACH, EACH);
	return !sqlite3_exec(db, text, NULL, NULL, NULL);
}

/**
 * struct seen - what a query has found
 * @nr:		how many rows
 * @last:	the number of the last of them
 * @good:	each has the outcome and the job that were asked for, and is older than the last
 * @query:	what was asked for
 */
struct seen {
	int			nr;
	int64_t			last;
	bool			good;
	const struct query	*query;
};

static void see(void *arg, const struct ended *e)
{
	struct seen *seen = arg;

	seen->good &= (!seen->nr || e->seq < seen->last) &&
		      (int)e->outcome == seen->query->outcome &&
		      (!seen->query->job || e->firing.job == seen->query->job);
	seen->last = e->seq;
	seen->nr++;
}

/* @nr rows are found, of which the oldest has the number @last. */
static void finds(struct query query, int nr, int64_t last, const char *what)
{
	struct seen seen = { .good = true, .query = &query };
	int err, took;

	steps();
	err = store_history(store, &query, see, &seen);
	took = steps();
	if (!ok(!err && seen.good && seen.nr == nr && seen.last == last && took < STEPS, "%s",
		what))
		diag("error %d, %d rows to number %lld, %s, %d steps", err, seen.nr,
		     (long long)seen.last, seen.good ? "good" : "wrong ones", took);
}

int main(void)
{
	char file[] = "/tmp/twheeld-store.XXXXXX", error[200] = "";

	plan(6);
	close(mkstemp(file));
	sqlite3_auto_extension((void (*)(void))opened);
	if (store_sqlite(&store, file, error, sizeof(error)) || !fill()) {
		diag("%s: %s", file, error);
		return 1;
	}
	finds((struct query) { .outcome = OUTCOME_FAILED, .limit = 100 }, ROWS / EACH, EACH,
	      "runs that failed are found without a walk of all history");
	finds((struct query) { .outcome = OUTCOME_FAILED, .job = 1, .limit = 100 },
	      ROWS / EACH / 2, 2 * EACH, "and those of one job");
	finds((struct query) { .outcome = OUTCOME_LOST, .limit = 100 }, 0, 0,
	      "and that there are none");
	finds((struct query) { .outcome = OUTCOME_LOST, .job = 2, .limit = 100 }, 0, 0,
	      "and none of one job");
	finds((struct query) { .outcome = OUTCOME_FAILED, .limit = 3, .before = 9 * EACH }, 3,
	      6 * EACH, "before a run, up to the limit");
	finds((struct query) { .outcome = OUTCOME_FAILED, .limit = 100, .since = 18 * EACH }, 3,
	      18 * EACH, "since a time");
	store_close(store);
	unlink(file);
	return done();
}
