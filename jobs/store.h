/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Where jobs are kept. All SQL is behind this, and none of the rules: what a store is told to do
 * it does, all of it or nothing, and it has survived whatever comes when the call returns.
 *
 *	due	what will happen: a row is a time at which a job is to run. A job has one for
 *		its schedule, and any number that were asked for on their own
 *	running	a firing, (id, at): the row of due with that id, at that time. It is here from
 *		when its time came until it is over
 *	history	each attempt that is over, and what was not run
 *
 * A life is a daemon from its start to its end. Its number is in the firings that it has begun.
 *
 * Jobs are in one of 64 parts each, and a life owns parts: it fires their jobs, and nobody else
 * does. In a file (store_sqlite.c) there is one life at a time, which owns all of them. In
 * PostgreSQL (store_pg.c) lives share them: a life that does not renew its lease is buried by the
 * others, its parts get new owners, and whatever it tries to write from then on is refused.
 *
 * store.c has what both do alike, in SQL that both understand; struct store_ops is the rest.
 *
 * Functions return 0 or a negative errno, and have done nothing then; store_error() has words for
 * it. -ESTALE: others have changed the job meanwhile, or have buried this life. They are called by
 * one thread, and none takes long: what may be much is asked for in parts.
 */
#ifndef JOBS_STORE_H
#define JOBS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outcome {
	OUTCOME_OK, OUTCOME_FAILED, OUTCOME_TIMEOUT, OUTCOME_KILLED, OUTCOME_LOST, OUTCOME_SKIPPED,
	OUTCOME_MISSED, NR_OUTCOMES
};

/**
 * enum state - of a firing
 * @STATE_QUEUED:	waits for others of its job to be over
 * @STATE_WAITING:	failed, and waits to be tried again
 * @STATE_READY:	may have begun
 */
enum state { STATE_QUEUED, STATE_WAITING, STATE_READY };

/**
 * struct firing - a row of running
 * @id:		the row of due
 * @at:		when it was due
 * @job:	whose it is
 * @life:	whose it was
 * @attempt:	how often it was begun, or 1
 * @tries:	how often it failed
 * @state:	see there
 * @missed:	how many times it is run for as well
 * @wake:	STATE_WAITING: when it is tried again
 * @fired:	when it came here
 * @arg:	what it was asked for with, or NULL
 */
struct firing {
	int64_t		id;
	int64_t		at;
	int64_t		job;
	int64_t		life;
	int64_t		attempt;
	int64_t		tries;
	enum state	state;
	int64_t		missed;
	int64_t		wake;
	int64_t		fired;
	const char	*arg;
};

/**
 * struct ended - a row of history
 * @seq:	its place
 * @firing:	what it was; of one that was not run @attempt is 0
 * @outcome:	what became of it
 * @more:	it is tried again: this is not the end of the firing
 * @status:	as a shell has it, or -1
 * @began:	when the attempt began, or 0
 * @ended:	when it was over
 * @drop:	when this row goes, and the log with it
 */
struct ended {
	int64_t		seq;
	struct firing	firing;
	enum outcome	outcome;
	bool		more;
	int64_t		status;
	int64_t		began;
	int64_t		ended;
	int64_t		drop;
};

/**
 * enum op_type - what is done in a turn
 * @OP_FIRE:	@line.firing's row of due goes on to @next, or goes; the firing is running
 * @OP_LEAVE:	the same, but the firing is not run: @line is its history
 * @OP_END:	the firing, in its attempt, is over: @line is its history
 * @OP_AGAIN:	the attempt is over: @line is its history; and @next_firing is what the firing is
 *		from then on
 * @OP_READY:	the firing, queued or waiting, is ready
 * @OP_MOVE:	the row of due that waits for the firing's end is due at @next
 * @OP_ADD:	a new row of due for job @line.firing.job at @next, which waits if that is paused;
 *		if it is another life's, or waits, it is not @done
 */
enum op_type { OP_FIRE, OP_LEAVE, OP_END, OP_AGAIN, OP_READY, OP_MOVE, OP_ADD };

/**
 * struct op - a part of a turn
 * @type:	what to do
 * @done:	filled in: there was such a firing, or row, and it was done
 * @next:	see enum op_type; 0 for OP_FIRE and OP_LEAVE: the row of due goes
 * @line:	see enum op_type. OP_FIRE fills in @line.firing.arg, which is to be freed; OP_ADD
 *		the id
 * @next_firing: OP_AGAIN: attempt, tries, state, wake, life
 */
struct op {
	enum op_type	type;
	bool		done;
	int64_t		next;
	struct ended	line;
	struct firing	next_firing;
};

/**
 * struct due - a row of due
 * @id:		never used twice
 * @job:	whose it is
 * @at:		when it is due; NEVER: waits for its own firing to end
 * @main:	the job's schedule has made it
 * @key:	the caller's own, or NULL
 * @arg:	see struct firing
 */
struct due {
	int64_t		id;
	int64_t		job;
	int64_t		at;
	bool		main;
	const char	*key;
	const char	*arg;
};

/**
 * struct job_row - a job
 * @id:		never used twice
 * @name:	its name; NULL: it was removed
 * @rev:	how often it was put
 * @paused:	it is not run by its schedule
 * @def:	its definition
 * @once:	it is due once, and no more than its history is kept
 * @due_id:	the row of due that its schedule has made; 0: there is none
 * @due_at:	when that is due
 */
struct job_row {
	int64_t		id;
	const char	*name;
	int64_t		rev;
	bool		paused;
	const char	*def;
	bool		once;
	int64_t		due_id;
	int64_t		due_at;
};

/**
 * struct query - which history
 * @job:	of this job; 0: of all
 * @id:		of this firing, with @at; 0: of all
 * @at:		see @id
 * @outcome:	with this outcome; negative: with any
 * @since:	that ended then or later
 * @before:	of places before this; 0: the latest
 * @limit:	the most rows
 */
struct query {
	int64_t	job;
	int64_t	id;
	int64_t	at;
	int	outcome;
	int64_t	since;
	int64_t	before;
	int64_t	limit;
};

/**
 * enum news_type - what others have changed
 * @NEWS_JOB:	@job was put, removed, paused or resumed
 * @NEWS_DUE:	there is a row of due of @job, @id, due at @at
 * @NEWS_KILL:	somebody wants the firing (@id, @at) killed
 * @NEWS_DAYS:	calendars
 */
enum news_type { NEWS_JOB, NEWS_DUE, NEWS_KILL, NEWS_DAYS };

/**
 * struct news - a change by another life
 * @type:	see there
 * @job:	see @type
 * @id:		see @type
 * @at:		see @type
 */
struct news {
	enum news_type	type;
	int64_t		job;
	int64_t		id;
	int64_t		at;
};

#define PARTS		64
#define PARTS_ALL	UINT64_MAX

struct store_ops;

/**
 * struct store - what is open
 * @ops:	which kind
 * @life:	the number of our life
 * @parts:	a bit for each part that we own
 * @many:	others may have the rest
 * @clock:	what is added to CLOCK_BOOTTIME to have the store's time, in us; 0: the time is
 *		that of the clock on the wall
 * @lease:	how long a life is not buried though it does not tell of itself, in us
 * @lease_end:	when ours is over, by CLOCK_BOOTTIME; with room for a clock that is 10 % wrong
 * @fd:		readable: there are news
 * @connection:	which one that is, counted
 * @mail:	somebody has told of news
 * @hurry:	the others have come or gone: store_beat() should be called
 * @lost:	a connection was lost: what is in memory is to be read again
 * @changed:	how many rows the last statement has changed
 */
struct store {
	const struct store_ops *ops;
	int64_t		life;
	uint64_t	parts;
	bool		many;
	int64_t		clock;
	int64_t		lease;
	int64_t		lease_end;
	int		fd;
	unsigned int	connection;
	bool		mail;
	bool		hurry;
	bool		lost;
	int64_t		changed;
};

static inline bool store_owns(const struct store *store, int64_t job)
{
	return store->parts >> (job & (PARTS - 1)) & 1;
}

void store_close(struct store *store);
/* What the last error was. */
const char *store_error(struct store *store);

/* Begin a life. @old, of this daemon's directory, is over for sure; 0: there was none. */
int store_join(struct store *store, int64_t old);
/* End it. */
void store_leave(struct store *store);
/* Tell of ourselves, and own what we are to own. -ESTALE: we were buried. */
int store_beat(struct store *store);
/* What others have changed since the last time. */
int store_news(struct store *store, void (*fn)(void *arg, const struct news *), void *arg);
/* Tell the others; -ENOENT: there is no such firing to kill. */
int store_tell_kill(struct store *store, int64_t id, int64_t at);

/*
 * Do @nr ops in order, at @now: what is fired that is not due by then is not done. The store may do
 * them while the caller goes on, who keeps them until store_turned() has said what became of them.
 */
int store_turn(struct store *store, struct op *ops, size_t nr, int64_t now);
/*
 * Is it done? -EAGAIN: not yet, unless it is to @wait. Any other error: it may be done or not, and
 * the same ops are to be given to store_turn() again.
 */
int store_turned(struct store *store, bool wait);

/* Each job of these parts. */
int store_jobs(struct store *store, uint64_t parts, void (*fn)(void *arg, const struct job_row *),
	       void *arg);
/* One job, if there is such a one. */
int store_job(struct store *store, int64_t id, void (*fn)(void *arg, const struct job_row *),
	      void *arg);
/* Each firing of these parts. */
int store_running(struct store *store, uint64_t parts,
		  void (*fn)(void *arg, const struct firing *), void *arg);
/*
 * Each row of due of a job of ours that is not paused, due from @from on and before @to, in order,
 * at most @limit.
 */
int store_window(struct store *store, int64_t from, int64_t to, int64_t limit,
		 void (*fn)(void *arg, const struct due *), void *arg);

/*
 * @nr jobs: those with an id replace their definition if @rev is still theirs, the others are new
 * and their id is filled in. The row of due of the schedule is replaced: there is a new one if
 * due_at is not 0, and its id is filled in.
 */
int store_put(struct store *store, struct job_row *rows, size_t nr);
/* A job has no name and no rows of due any more. */
int store_remove(struct store *store, int64_t job);
/* What is due of a job waits, or does not any more. */
int store_pause(struct store *store, int64_t job, bool on);
/*
 * @nr new rows of due, whose ids are filled in; those of a paused job wait, unless @force. One
 * with a key replaces the row of the job and that key.
 */
int store_add(struct store *store, struct due *rows, size_t nr, bool force, int64_t now);
/* The row of a key goes; -ENOENT: there is none. */
int store_cancel(struct store *store, int64_t job, const char *key);
/* Each day of each calendar; INT64_MIN: it has none. */
int store_days(struct store *store, void (*fn)(void *arg, const char *name, int64_t day),
	       void *arg);
/* A calendar has these days, and the @nr_jobs jobs are put as by store_put(). */
int store_set_days(struct store *store, const char *name, const int64_t *days, size_t nr,
		   struct job_row *rows, size_t nr_jobs);
/* Rows, the latest first. */
int store_history(struct store *store, const struct query *query,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/* Rows that go by @now and whose logs are here, the oldest first, at most @limit. */
int store_expired(struct store *store, int64_t now, int64_t limit,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/*
 * The rows of these places go; and so do jobs that were removed, or were due once, if nothing is
 * left of them: @fn is told.
 */
int store_drop(struct store *store, const struct ended *rows, size_t nr,
	       void (*fn)(void *arg, int64_t job), void *arg);

/**
 * store_sqlite() - a store in a file, for one machine
 * @store:	filled in
 * @file:	the file, made if there is none
 * @error:	filled in with why there is none
 * @size:	room for that
 *
 * Return: 0 or a negative errno.
 */
int store_sqlite(struct store **store, const char *file, char *error, size_t size);

/**
 * store_pg() - a store in PostgreSQL, for any number of machines
 * @store:	filled in
 * @where:	as libpq has it
 * @name:	what this machine is called
 * @lease:	see struct store
 * @error:	filled in with why there is none
 * @size:	room for that
 *
 * Return: 0 or a negative errno.
 */
int store_pg(struct store **store, const char *where, const char *name, int64_t lease,
	     char *error, size_t size);

#endif
