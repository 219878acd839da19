/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Where jobs are kept. All SQL is behind this interface, but no policy: a store does what it is
 * told. Each call does all of it or nothing. When a call that changes something returns, the change
 * is durable.
 *
 *	due	what will happen. A row is a time at which a job is to run. A job has one row
 *		for its schedule, and any number of rows that somebody asked for
 *	running	the firings. A firing is a row of due at one of its times, so its key is (id,
 *		at). It is here from the time at which it is due until it is over
 *	history	each attempt that is over, and each time that was not run
 *
 * A life is a daemon from its start to its end. Each firing has the number of the life that has
 * begun it.
 *
 * Each job is in one of 64 parts. A life owns parts, and fires the jobs in them; no other life
 * does. With a file (store_sqlite.c) there is one life at a time, and it owns all parts. With
 * PostgreSQL (store_pg.c) several lives share the parts. If a life does not renew its lease, the
 * others bury it: its parts get new owners, and whatever it tries to write from then on is refused.
 *
 * store.c has what both kinds do alike, in SQL that both understand. The rest is in struct
 * store_ops.
 *
 * Functions return 0 or a negative errno. On an error nothing was done, and store_error() explains
 * it. -ESTALE means that others have changed the job meanwhile, or have buried this life. One
 * thread makes all calls, and none may take long: whatever may be much is asked for in parts.
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
 * enum state - the state of a firing
 * @STATE_QUEUED:	it waits until the other firings of its job are over
 * @STATE_WAITING:	it has failed, and waits for its next attempt
 * @STATE_READY:	it may begin, or has begun: the store cannot tell
 */
enum state { STATE_QUEUED, STATE_WAITING, STATE_READY };

/**
 * struct firing - a row of running
 * @id:		the id of the row of due
 * @at:		when it was due
 * @job:	the id of its job
 * @life:	the life that has begun its present attempt, or has written it last
 * @attempt:	the number of the present attempt, from 1
 * @tries:	how many attempts have failed
 * @state:	see enum state
 * @missed:	how many missed times it makes up for
 * @wake:	STATE_WAITING: when the next attempt begins
 * @fired:	when it was entered here
 * @arg:	the argument that it was asked for with, or NULL
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
 * @seq:	its number; a later row has a greater one
 * @firing:	the firing. Its @attempt is 0 if it was not run
 * @outcome:	how it ended
 * @more:	the firing has another attempt: this is not its end
 * @status:	the exit status as a shell has it, or -1
 * @began:	when the attempt began, or 0
 * @ended:	when it was over
 * @drop:	when this row and its log are to be deleted
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
 * enum op_type - the operations of a turn
 * @OP_FIRE:	enter @line.firing into running. Its row of due moves to @next, or is deleted
 * @OP_LEAVE:	move or delete the row of due likewise, but do not run the firing: enter @line into
 *		history
 * @OP_END:	the firing is over, in this attempt: move it to history, as @line
 * @OP_AGAIN:	the attempt is over: enter @line into history. The firing becomes @next_firing
 * @OP_READY:	the firing, which was queued or waiting, is ready
 * @OP_MOVE:	the row of due that waits for the end of the firing is due at @next
 * @OP_ADD:	add a row of due for the job @line.firing.job at @next. If the job is paused, the
 *		row waits. If the row waits, or the job is another life's, @done stays false
 */
enum op_type { OP_FIRE, OP_LEAVE, OP_END, OP_AGAIN, OP_READY, OP_MOVE, OP_ADD };

/**
 * struct op - an operation of a turn
 * @type:	what to do
 * @done:	filled in: the firing or row was there, and the operation was done
 * @next:	see enum op_type. With OP_FIRE and OP_LEAVE, 0 deletes the row of due
 * @line:	see enum op_type. OP_FIRE fills in @line.firing.arg, which the caller frees; OP_ADD
 *		fills in @line.firing.id
 * @next_firing: OP_AGAIN: the new attempt, tries, state, wake and life
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
 * @id:		its id, which is never used twice
 * @job:	the id of its job
 * @at:		when it is due; NEVER while it waits for its own firing to end
 * @main:	it comes from the job's schedule
 * @key:	a key that the caller chose, or NULL
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
 * @id:		its id, which is never used twice
 * @name:	its name; NULL if it was removed
 * @rev:	its revision: how often it was put
 * @paused:	its schedule does not run it
 * @def:	its definition, as JSON
 * @once:	it is due once only: it is deleted together with its history
 * @due_id:	the row of due of its schedule; 0 if there is none
 * @due_at:	when that row is due
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
 * struct query - which rows of history to read
 * @job:	only those of this job; 0 for all
 * @id:		only those of the firing (@id, @at); 0 for all
 * @at:		see @id
 * @outcome:	only those with this outcome; negative for any
 * @since:	only those that ended then or later
 * @before:	only those with a smaller seq; 0 for the latest
 * @limit:	at most so many rows
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
 * enum news_type - what another life has changed
 * @NEWS_JOB:	@job was put, removed, paused or resumed
 * @NEWS_DUE:	a row of due was added: @id, of @job, due at @at
 * @NEWS_KILL:	somebody wants the firing (@id, @at) killed
 * @NEWS_DAYS:	a calendar
 */
enum news_type { NEWS_JOB, NEWS_DUE, NEWS_KILL, NEWS_DAYS };

/**
 * struct news - a change by another life
 * @type:	what has changed
 * @job:	see enum news_type
 * @id:		see enum news_type
 * @at:		see enum news_type
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
 * struct store - an open store
 * @ops:	the functions of its kind
 * @life:	the number of our life
 * @parts:	a bit for each part that we own
 * @many:	other lives may own the other parts
 * @clock:	the store's time minus CLOCK_BOOTTIME, in us; 0 if the store's time is
 *		CLOCK_REALTIME
 * @lease:	after how long without store_beat() the others may bury a life, in us
 * @lease_end:	when our lease ends, by CLOCK_BOOTTIME; earlier than the others think, in case our
 *		clock is slow by up to 10 %
 * @fd:		readable when there may be news; -1 if there is no connection
 * @connection:	how many connections there have been, including that of @fd
 * @mail:	a notification has come: there are news
 * @hurry:	a life has come or gone: store_beat() should be called soon
 * @lost:	a connection was lost: what is in memory must be read again
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
/* The text of the last error. */
const char *store_error(struct store *store);

/* Begin a life. @old is the last life in this daemon's directory, which is certainly over, or 0. */
int store_join(struct store *store, int64_t old);
/* End the life, so that the others need not wait for the end of its lease. */
void store_leave(struct store *store);
/*
 * Renew the lease, and take or give up parts until our share is right. -ESTALE if we were buried.
 */
int store_beat(struct store *store);
/* Call @fn for what other lives have changed since the last time. */
int store_news(struct store *store, void (*fn)(void *arg, const struct news *), void *arg);
/* Ask the owner of a firing to kill it. -ENOENT if there is no such firing. */
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

/* Call @fn for each job of these parts. */
int store_jobs(struct store *store, uint64_t parts, void (*fn)(void *arg, const struct job_row *),
	       void *arg);
/* Call @fn for one job, if it exists. */
int store_job(struct store *store, int64_t id, void (*fn)(void *arg, const struct job_row *),
	      void *arg);
/* Call @fn for each firing of these parts. */
int store_running(struct store *store, uint64_t parts,
		  void (*fn)(void *arg, const struct firing *), void *arg);
/*
 * Call @fn for each row of due that belongs to a job of ours, does not wait, and is due from @from
 * on and before @to: in the order of their times, and for at most @limit rows.
 */
int store_window(struct store *store, int64_t from, int64_t to, int64_t limit,
		 void (*fn)(void *arg, const struct due *), void *arg);

/*
 * Put @nr jobs. If a row has an id, the job's definition is replaced, if its revision still is
 * @rev. A row without an id is a new job, and its id is filled in. The schedule's row of due is
 * replaced: if due_at is not 0 there is a new one, whose id is filled in.
 */
int store_put(struct store *store, struct job_row *rows, size_t nr);
/* Remove a job: its name and its rows of due are deleted. The rest goes with its history. */
int store_remove(struct store *store, int64_t job);
/* Pause a job: all its rows of due wait. With @on false, resume it. */
int store_pause(struct store *store, int64_t job, bool on);
/*
 * Add @nr rows of due, and fill in their ids. Unless @force, those of a paused job wait. A row with
 * a key replaces the row of that job that has the same key.
 */
int store_add(struct store *store, struct due *rows, size_t nr, bool force, int64_t now);
/* Delete the row of due of a job that has this key. -ENOENT if there is none. */
int store_cancel(struct store *store, int64_t job, const char *key);
/* Call @fn for each day of each calendar; once with INT64_MIN for a calendar without days. */
int store_days(struct store *store, void (*fn)(void *arg, const char *name, int64_t day),
	       void *arg);
/* Replace the days of a calendar, and put the @nr_jobs jobs that use it, as by store_put(). */
int store_set_days(struct store *store, const char *name, const int64_t *days, size_t nr,
		   struct job_row *rows, size_t nr_jobs);
/* Call @fn for rows of history, the latest first. */
int store_history(struct store *store, const struct query *query,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/*
 * Call @fn for rows of history that are to be deleted by @now and whose logs are on this machine,
 * the oldest first, at most @limit.
 */
int store_expired(struct store *store, int64_t now, int64_t limit,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/*
 * Delete these rows of history. If a job was removed, or was due once only, and nothing is left of
 * it, it is deleted too, and @fn is called for it.
 */
int store_drop(struct store *store, const struct ended *rows, size_t nr,
	       void (*fn)(void *arg, int64_t job), void *arg);

/**
 * store_sqlite() - open a store in a file, for one machine
 * @store:	filled in
 * @file:	the file, which is created if it does not exist
 * @error:	on an error filled in with a text
 * @size:	the size of @error
 *
 * Return: 0 or a negative errno.
 */
int store_sqlite(struct store **store, const char *file, char *error, size_t size);

/**
 * store_pg() - open a store in PostgreSQL, for any number of machines
 * @store:	filled in
 * @where:	the connection, as libpq takes it
 * @name:	the name of this machine
 * @lease:	see struct store
 * @error:	on an error filled in with a text
 * @size:	the size of @error
 *
 * Return: 0 or a negative errno.
 */
int store_pg(struct store **store, const char *where, const char *name, int64_t lease,
	     char *error, size_t size);

#endif
