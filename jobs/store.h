/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Where jobs are kept. All SQL is behind this interface. It has no policy: a store does what the
 * daemon says. Each call does everything or nothing, except store_runner() and store_task_here() if
 * lives share the store. When a call that changes something returns, the change is durable.
 *
 *	due	what will happen. A row is a time at which a job is to run. A job has at most
 *		one row for its schedule, and any number of rows that somebody asked for
 *	running	the firings. A firing is one of the times of a row of due, so its key is (id,
 *		at). It is in this table from the time at which it is due until it is over
 *	history	each attempt that is over, and each time at which the job did not run
 *
 * A life is a daemon from its start to its end. Each firing has the number of a life: see struct
 * firing.
 *
 * Each job is in one of 64 parts. A life owns parts, and fires the jobs in them; no other life
 * does. With a file (store_sqlite.c) there is one life at a time, and it owns all parts. With
 * PostgreSQL (store_pg.c) several lives share the parts. If a life does not renew its lease, the
 * others bury it: its parts get new owners, and whatever it tries to write from then on is refused.
 *
 * store.c has what both kinds do alike, in SQL that both understand. The rest is in struct
 * store_ops.
 *
 * Functions return 0 or a negative errno, which store_error() explains. On an error nothing was
 * done, unless the answer of a server was lost: then the change may be made or not. -ESTALE means
 * that others have changed the job meanwhile, or have buried this life. One
 * thread makes all calls. A call may make many statements, each of which must not take longer than
 * a lease.
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
 * @STATE_KILLED:	somebody has killed it, and it may not have ended yet
 * @STATE_POOL:		it may begin at a runner. It has begun only if a task of it is out or over
 */
enum state { STATE_QUEUED, STATE_WAITING, STATE_READY, STATE_KILLED, STATE_POOL };

/**
 * struct firing - a row of running
 * @id:		the id of the row of due
 * @at:		when it was due
 * @job:	the id of its job
 * @life:	the life that has the log of the present attempt: the one that began it, or that
 *		its runner talked to last. Before that, the life that wrote this row last
 * @attempt:	the number of the present attempt, from 1
 * @tries:	how many attempts have failed
 * @state:	see enum state
 * @missed:	for how many missed times this firing stands
 * @wake:	STATE_WAITING: when the next attempt begins
 * @fired:	when it was entered into running
 * @arg:	the argument that came with the request for it, or NULL
 * @shard:	if runners execute the firing in parts: which part this is, from 0
 * @shards:	how many parts the firing has, if each runner executes one; else 0
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
	int64_t		shard;
	int64_t		shards;
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
 * @OP_READY:	write the state of @line.firing: a firing that was queued or waiting may begin; or
 *		it has not begun and waits again, because the daemon ends; or it was killed
 * @OP_MOVE:	the row of due that waits for the end of the firing is due at @next
 * @OP_ADD:	add a row of due for the job @line.firing.job at @next. If the job is paused, the
 *		row waits. @done says whether to arm a timer for it here. PostgreSQL says no if the
 *		row waits, or if the job belongs to another life. SQLite always says yes: if the row
 *		waits, its firing will be refused
 */
enum op_type { OP_FIRE, OP_LEAVE, OP_END, OP_AGAIN, OP_READY, OP_MOVE, OP_ADD };

/**
 * struct op - an operation of a turn
 * @type:	what to do
 * @done:	filled in: true if the firing or row was there, so that the operation was done. For
 *		OP_ADD see enum op_type. PostgreSQL does not look for the firing of OP_READY,
 *		OP_AGAIN and OP_END, and always says true
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
 * @once:	it is due once only: it is deleted together with its history, see store_drop()
 * @due_id:	the row of due of its schedule; 0 if there is none
 * @due_at:	when that row is due
 * @keep:	store_put(): the row of due stays if it is due at @keep or before, or waits for the
 *		end of its firing. NEVER keeps it in any case, and 0 in none
 * @passed_id:	store_put(): if the row does not stay, but its time has passed, another row is made
 *		for that time: this is its id. Else 0
 * @passed_at:	when that row is due
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
	int64_t		keep;
	int64_t		passed_id;
	int64_t		passed_at;
};

/**
 * struct query - which rows of history to read
 * @job:	only those of this job; 0 for all
 * @id:		only those of the firing (@id, @at); 0 for all
 * @at:		see @id
 * @outcome:	only those with this outcome; negative for any
 * @since:	only those that ended at this time or later
 * @before:	only those with a smaller seq; 0 for the latest
 * @limit:	at most this many rows
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
 * @NEWS_DAYS:	a calendar was changed
 * @NEWS_TASK:	a task was changed: see struct task
 */
enum news_type { NEWS_JOB, NEWS_DUE, NEWS_KILL, NEWS_DAYS, NEWS_TASK };

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

/**
 * struct node - a life that is not over
 * @life:	its number
 * @name:	the name of its machine; NULL if the store can be used only from our own
 * @lease:	how much of its lease is left, in us: until then the others do not bury it
 * @parts:	a bit for each part that it owns
 */
struct node {
	int64_t		life;
	const char	*name;
	int64_t		lease;
	uint64_t	parts;
};

/**
 * enum task_state - the state of a task
 * @TASK_READY:	a runner may take it
 * @TASK_OUT:	a runner, or the receiver of a request, has it
 * @TASK_OVER:	it has an outcome
 */
enum task_state { TASK_READY, TASK_OUT, TASK_OVER };

/**
 * struct task - an attempt, or a part of one, that a runner or a receiver executes and not a node
 * @id:		the firing is (@id, @at)
 * @at:		see @id
 * @shard:	which of @shards parts it is, from 0
 * @shards:	how many tasks the firing has
 * @whole:	for store_tasks_begin(): the firing is not to be executed in parts
 * @job:	the id of the job
 * @pool:	the pool whose runners may take it; NULL: nobody may
 * @prio:	its priority: tasks with the greatest are taken first
 * @attempt:	the number of the attempt
 * @state:	see enum task_state
 * @outcome:	TASK_OVER: how it ended
 * @status:	TASK_OVER: see struct ended
 * @runner:	TASK_OUT: the id of the runner that has it; empty if a receiver has it
 * @life:	TASK_OUT, TASK_OVER: the life that has its log
 * @until:	TASK_OUT: when it counts as lost, unless its runner reports before; NEVER if a
 *		receiver has it
 * @began:	TASK_OUT, TASK_OVER: when it was taken
 * @killed:	TASK_OUT: it is to be killed
 * @wants:	the id of the runner that is to take it, as long as that runner lives; or NULL
 * @wants_until: from this time on any runner may take it
 */
struct task {
	int64_t		id;
	int64_t		at;
	int64_t		shard;
	int64_t		shards;
	bool		whole;
	int64_t		job;
	const char	*pool;
	int64_t		prio;
	int64_t		attempt;
	enum task_state	state;
	enum outcome	outcome;
	int64_t		status;
	const char	*runner;
	int64_t		life;
	int64_t		until;
	int64_t		began;
	bool		killed;
	const char	*wants;
	int64_t		wants_until;
};

/**
 * struct work - a task with what a runner must know of it
 * @task:	the task
 * @missed:	see struct firing
 * @arg:	see struct firing
 * @name:	the name of the job
 * @def:	its definition
 */
struct work {
	struct task	task;
	int64_t		missed;
	const char	*arg;
	const char	*name;
	const char	*def;
};

/**
 * struct runner - a program that runs tasks
 * @id:		its id, which is never used twice
 * @pool:	its pool
 * @name:	the name of its machine
 * @until:	when it counts as dead, unless it makes a request before
 */
struct runner {
	const char	*id;
	const char	*pool;
	const char	*name;
	int64_t		until;
};

/**
 * enum held - what a runner is told of a task that it has
 * @HELD_GOOD:	it continues
 * @HELD_KILL:	it is to be killed
 * @HELD_GONE:	it is over, or another runner has it
 */
enum held { HELD_GOOD, HELD_KILL, HELD_GONE };

#define PARTS		64
#define LEASE_MAX_US	(300 * US_PER_S)	/* news is kept for twice as long: store_pg.sql */
#define LANES		2	/* turns that a store does at the same time, if store.many */
#define JUMP_US		100000	/* if a clock minus CLOCK_BOOTTIME changes by more, it was set */
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
 * @seen:	a time that the store's clock has shown. If it shows an earlier one, it was set back
 * @lease:	after how long without store_beat() the others may bury a life, in us
 * @lease_end:	when our lease ends, by CLOCK_BOOTTIME; earlier than it ends for the others, in case
 *		our clock is slow by up to 10 %
 * @fds:	of each lane: readable when its turn is answered. Behind them one that is
 *		readable when there may be news. -1 if there are no connections
 * @connection:	how often the connections were opened; they are always opened all together
 * @mail:	a notification has come: there is news
 * @hurry:	a life has come or gone: store_beat() should be called soon
 * @lost:	the connections were lost: what is in memory must be read again
 * @changed:	how many rows the last statement has changed
 * @mark:	see store_mark()
 * @key:	a random number by which the next life in this daemon's directory finds this one
 * @guard:	NULL, or a function that the store calls with true before it does something that may
 *		take longer than the lease (looking up the server's name), and with false after that
 */
struct store {
	const struct store_ops *ops;
	int64_t		life;
	uint64_t	parts;
	bool		many;
	int64_t		clock;
	int64_t		seen;
	int64_t		lease;
	int64_t		lease_end;
	int		fds[LANES + 1];
	unsigned int	connection;
	bool		mail;
	bool		hurry;
	bool		lost;
	int64_t		changed;
	int64_t		mark;
	int64_t		key;
	void		(*guard)(bool on);
};

static inline bool store_owns(const struct store *store, int64_t job)
{
	return store->parts >> (job & (PARTS - 1)) & 1;
}

void store_close(struct store *store);
/* The text of the last error. */
const char *store_error(struct store *store);

/*
 * Begin a life with the key @key. @old is the key of the last life in this daemon's directory, or
 * 0. The life of @old is certainly over, and so is any other life with @key.
 */
int store_join(struct store *store, int64_t old, int64_t key);
/* End the life, so that the others need not wait for the end of its lease. */
void store_leave(struct store *store);
/*
 * Renew the lease, and take or give up parts until our share is right. -ESTALE if we were buried.
 */
int store_beat(struct store *store);
/*
 * If it is time to renew the lease, renew it, and do nothing else. Code that may run for long
 * without store_beat() must call this again and again. Functions of the store do so themselves,
 * before each statement and for each row.
 */
void store_keep(struct store *store);
/*
 * Call @fn for each change that other lives have made since the last call. If @fn returns an error,
 * so does store_news(), and the next call tells all of these changes again. If @fn is NULL,
 * store_news() only says whether there are any: it returns -EAGAIN if so.
 */
int store_news(struct store *store, int (*fn)(void *arg, const struct news *), void *arg);
/* Call @fn for each life that is not over. */
int store_nodes(struct store *store, void (*fn)(void *arg, const struct node *), void *arg);
/* Copy the name of a life's machine to @name. If the life is not known, @name stays as it is. */
int store_machine(struct store *store, int64_t life, char *name, size_t size);
/*
 * Ask the owner of a firing to kill it, and note that for its next owner. -ENOENT if there is no
 * such firing.
 */
int store_tell_kill(struct store *store, int64_t id, int64_t at);

/*
 * Do @nr ops in order, at the time @now. An op that would fire a row which is due later than @now
 * is not done. The store may do the ops while the caller continues. The caller must keep them until
 * store_turned() has returned 0 for them. @lane is below LANES. Turns of different lanes are
 * done at the same time, so each job's ops must be in one lane. If the store is not @many, there is
 * only lane 0.
 */
int store_turn(struct store *store, int lane, struct op *ops, size_t nr, int64_t now);
/*
 * Is the turn of @lane done? With @wait, wait until it is. Returns 0 if it is done, and -EAGAIN if
 * not yet. After any other error the turn may be done or not: give the same ops to store_turn()
 * again.
 */
int store_turned(struct store *store, int lane, bool wait);

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
 * Call @fn for each row of due that belongs to a job of our parts, does not wait, and is due at
 * @from or later, but before @to. The rows come in the order of their times, and there are at most
 * @limit of them.
 */
int store_window(struct store *store, int64_t from, int64_t to, int64_t limit,
		 void (*fn)(void *arg, const struct due *), void *arg);

/*
 * Note the latest change that another life has made to any job. The caller then reads news, and
 * checks what it wants to put or to remove. If another life changes any job after store_mark(),
 * store_put() and store_remove() return -EAGAIN, and have done nothing.
 */
int store_mark(struct store *store);
/*
 * Put @nr jobs. If a row has an id, it replaces the definition of that job, provided that the
 * revision of the job still is @rev. A row without an id is a new job, and its id is filled in. The
 * schedule's row of due is replaced: if due_at is not 0, there is a new one, whose id is filled in.
 * If the old one was due before @now, its time stays in due: see struct job_row.
 */
int store_put(struct store *store, struct job_row *rows, size_t nr, int64_t now);
/*
 * Remove a job: its name and its rows of due are deleted. The rest is deleted together with the
 * last row of its history. If the job has neither firings nor history, it is deleted at once, and
 * *@gone becomes true.
 */
int store_remove(struct store *store, int64_t job, bool *gone);
/* If @on, pause a job: all its rows of due wait. If not, resume it. */
int store_pause(struct store *store, int64_t job, bool on);
/*
 * Add @nr rows of due, and fill in their ids. Unless @force, those of a paused job wait. A row with
 * a key replaces the row of that job that has the same key.
 */
int store_add(struct store *store, struct due *rows, size_t nr, bool force, int64_t now);
/* Delete the row of due of a job that has this key. -ENOENT if there is none. */
int store_cancel(struct store *store, int64_t job, const char *key);
/* *@job becomes the job of the row @id of due, if that row is due at @at; else 0. */
int store_find_due(struct store *store, int64_t id, int64_t at, int64_t *job);
/* Delete the row @id of due if it is due at @at and not of a schedule; -ENOENT if there is none. */
int store_kill_due(struct store *store, int64_t id, int64_t at);
/* Call @fn for each day of each calendar; once with INT64_MIN for a calendar without days. */
int store_days(struct store *store, void (*fn)(void *arg, const char *name, int64_t day),
	       void *arg);
/*
 * Replace the days of a calendar, and put the @nr_jobs jobs that use it, as store_put() does.
 * @again is called for each job whose row of due does not stay. It gets the job's index in @rows,
 * and when the job was due (0 if it was not), and returns when the job is due now.
 */
int store_set_days(struct store *store, const char *name, const int64_t *days, size_t nr,
		   struct job_row *rows, size_t nr_jobs,
		   int64_t (*again)(void *arg, size_t i, int64_t due), void *arg);
/* Call @fn for rows of history, the latest first. */
int store_history(struct store *store, const struct query *query,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/* Call @fn for the latest row of history of each of these jobs, if there is one. */
int store_last(struct store *store, const int64_t *jobs, size_t nr,
	       void (*fn)(void *arg, const struct ended *), void *arg);
/*
 * *@at becomes the latest of the job's times that has been fired; if its run stands for missed
 * times, when it was fired. 0 if neither running nor the last 100 rows of history have a firing.
 */
int store_fired(struct store *store, int64_t job, int64_t *at);
/* *@known becomes whether the attempt of @firing is still running, or is in history. */
int store_known(struct store *store, const struct firing *firing, bool *known);
/* Call @fn with the schedule's row of due of each of these jobs that has one. For store->many. */
int store_dues(struct store *store, const int64_t *jobs, size_t nr,
	       void (*fn)(void *arg, const struct due *), void *arg);
/*
 * Call @fn for at most @limit rows of history whose @drop is between @from and @now. If the log of
 * a row is on another machine, the row comes only a day after its @drop. Of the rows of a life the
 * oldest come first.
 */
int store_expired(struct store *store, int64_t from, int64_t now, int64_t limit,
		  void (*fn)(void *arg, const struct ended *), void *arg);
/*
 * Delete these rows of history. If a job was removed, or was due once only, and nothing else is
 * left of it, the job is deleted, too, and @fn is called for it. But if @keep returns true for a
 * job, the job stays.
 */
int store_drop(struct store *store, const struct ended *rows, size_t nr, bool (*keep)(int64_t job),
	       void (*fn)(void *arg, int64_t job), void *arg);

/* ---- what runners run: store_pool.c ------------------------------------------------- */

/* Call @fn for each task of these parts whose state is @least or later. */
int store_tasks(struct store *store, uint64_t parts, enum task_state least,
		void (*fn)(void *arg, const struct task *), void *arg);
/*
 * Enter the tasks of attempts. In @rows the tasks of a firing follow each other, in the order of
 * their shards. If a firing has tasks of an earlier attempt, those of them that were not successful
 * become ready again, and no others are entered. But if the firing was executed in parts and is not
 * any more, or the reverse, the new tasks replace the old ones.
 */
int store_tasks_begin(struct store *store, const struct task *rows, size_t nr);
/*
 * Delete the tasks of those firings of a job of which no part is out or over, and call @fn for each
 * of these tasks. The other firings keep their tasks. Those of them that are ready go to @pool; if
 * @pool is NULL, they stay where they are. If this returns an error, nothing was done, though @fn
 * may have been called.
 */
int store_tasks_back(struct store *store, int64_t job, const char *pool,
		     void (*fn)(void *arg, int64_t id, int64_t at), void *arg);
/* Enter a task that no runner has taken, but somebody else has accepted. */
int store_task_accept(struct store *store, const struct task *task);
/*
 * @runner takes up to @room tasks of its pool at @now, and has them until runner->until. If their
 * definitions and arguments are long, it takes fewer: then the runner asks again. @fn is called
 * for each task. If store_take() returns an error, none was taken, though @fn may have been called.
 */
int store_take(struct store *store, const struct runner *runner, int64_t room, int64_t now,
	       void (*fn)(void *arg, const struct work *), void *arg);
/*
 * A runner reports that it has @nr tasks: fill in @held for each. The tasks that the runner still
 * holds are its own until runner->until.
 */
int store_runner(struct store *store, const struct runner *runner, const struct task *tasks,
		 enum held *held, size_t nr, int64_t now);
/* store_runner() for one task. */
int store_beat_task(struct store *store, const struct runner *runner, const struct task *task,
		    enum held *held, int64_t now);
/* Note that the log of a task that is out is on our machine from now on. */
int store_task_here(struct store *store, const struct task *task);
/*
 * The clock may have been set back. Shorten what would last longer than until @until: the leases,
 * and how long tasks wait for the runner that they want.
 */
int store_leases_end(struct store *store, int64_t until);
/* The runner ends by itself: delete it. */
int store_runner_leave(struct store *store, const char *id);
/* Call @fn for each runner that lives. */
int store_runners(struct store *store, int64_t now, void (*fn)(void *arg, const struct runner *),
		  void *arg);
/* How many of the runner's tasks are to be killed? */
int store_killed(struct store *store, const char *id, int64_t *nr);
/*
 * Is there something for @nr runners that wait for work? Call @fn for each pool of @pools that has
 * ready tasks, with @runner NULL; and for each runner of @runners that has tasks to kill, with
 * their number, and with @pool NULL.
 */
int store_idle(struct store *store, const char *const *pools, const char *const *runners, size_t nr,
	       void (*fn)(void *arg, const char *pool, const char *runner, int64_t killed),
	       void *arg);
/*
 * A task is over; @task names its attempt, runner, life, outcome and status. -ESTALE if the attempt
 * does not belong to that runner, or has ended in another way. -EAGAIN if the task is not entered
 * yet: the receiver has accepted it, and store_task_accept() will follow.
 */
int store_task_over(struct store *store, const struct task *task);
/*
 * Why does task->runner not hold the task? Returns the errors of store_task_over(), or 0 if the
 * task is over, and has ended as @task says.
 */
int store_task_gone(struct store *store, const struct task *task);
/* If the task's lease is over at @now, the task is lost, and *@lost becomes true. */
int store_task_lost(struct store *store, const struct task *task, int64_t now, bool *lost);
/*
 * Kill the ready tasks of a firing. Unless @gently, also kill those that a receiver has, and note
 * that those at runners are to end.
 */
int store_task_kill(struct store *store, int64_t id, int64_t at, int64_t job, bool gently);
/* Delete the tasks of these parts whose firings are over. */
int store_tasks_clean(struct store *store, uint64_t parts);

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

/* ---- stores that are modules: store_module.c ---------------------------------------- */

/**
 * struct store_module - a kind of store that is not part of the daemon
 * @version:	the TWHEEL_VERSION with which the module was built. Another version may declare all
 *		else in this header differently, so this must stay the first member
 * @open:	open a store for any number of machines. @where is the database, @name the name of
 *		this machine; for @lease see struct store. On an error, @error, which has room for
 *		@size bytes, is filled in with a text. Returns 0 or a negative errno
 *
 * A module is a shared object. This structure is all that it has for the daemon, and it uses
 * nothing of the daemon.
 */
struct store_module {
	int	version;
	int	(*open)(struct store **store, const char *where, const char *name, int64_t lease,
			char *error, size_t size);
};

/* What the module of PostgreSQL, store_pg.c, exports. */
extern const struct store_module twheeld_postgresql;

/**
 * store_module() - load the module of PostgreSQL
 * @error:	filled in with a text if it cannot be loaded
 * @size:	the size of @error
 *
 * Return: the module, which stays loaded, or NULL.
 */
const struct store_module *store_module(char *error, size_t size);

#endif
