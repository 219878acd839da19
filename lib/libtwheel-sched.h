/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * libtwheel's scheduler: functions called at their time, on top of one wheel.
 *
 * A task is a function, an argument, and when: once after a delay or at a time on the
 * wall clock, then perhaps again and again. It runs on a thread of the scheduler's
 * pool, or, without a pool, where the caller calls twheel_sched_run().
 *
 *	struct twheel_task hello = {
 *		.fn = say, .arg = "hello", .key = "greeting",
 *		.when_ns = 1000000000, .period_ns = 500000000,
 *	};
 *	struct twheel_sched_options options = { .threads = 2 };
 *
 *	twheel_sched_open(&sched, &options);
 *	twheel_sched_add(sched, &hello, &id);
 *	...
 *	twheel_sched_cancel(sched, twheel_sched_find(sched, "greeting", 0), 0);
 *	twheel_sched_close(sched);
 *
 * Promises
 *   - Never before it is due, by the clock it was asked for on; and no later than without a
 *     tolerance by more than that.
 *   - Adding, moving and cancelling cost the same with ten tasks and with a million, and no
 *     single call costs much more than the others. None holds up the others the longer the
 *     more tasks there are, but twheel_sched_stop() and _close().
 *   - What is cancelled or replaced is freed in that call; if it runs at that moment,
 *     when it returns.
 *   - Functions are called in the order their tasks were due, and where that is the same,
 *     to the ns, in the order they were added: as long as no more than 512 are due at once, and
 *     none of them has a tolerance.
 *   - A task never runs twice at once, unless TWHEEL_TASK_OVERLAP asks for it.
 *   - A slow function holds up its own thread and no other.
 *   - release() is called once for each task, when nothing will use its arg any more;
 *     but not for tasks that twheel_sched_stop() handed back.
 *   - Times never wrap: a delay below 0 is 0, one beyond 2^63 ns is 2^63 - 1.
 *
 * All times are in ns. A function that can fail returns a negative errno and has changed
 * nothing. They mean
 *	EINVAL		a field, flag or time that is not allowed
 *	ENOENT		no such task: never was, cancelled, or over
 *	EALREADY	it has begun to run, for the only time
 *	EDQUOT		the cap on pending tasks is reached
 *	ESHUTDOWN	the scheduler was stopped
 *	EDEADLK		the call would wait for the function that makes it
 *	ENOMEM		no memory, or no thread
 *	ECHILD		the scheduler was opened by a parent of this process
 *	E2BIG		a structure longer than the library knows, with something in it
 *
 * Structures may grow: libtwheel.h says how, under Growth. What a function gets as its @task lies
 * in the memory of the library, and is followed by zeros up to TWHEEL_TASK_INFO_MAX bytes.
 *
 * Context: All functions may be called from any thread and from the tasks' functions,
 * but none from a signal handler. Functions and release() are called without a lock;
 * release() must not close the scheduler.
 *
 * A function ends by returning. Of the other ways
 *	an exception of C++ that it does not catch ends the program by std::terminate(), with
 *		and without a pool: the caller of twheel_sched_run() does not get it
 *	pthread_exit() ends the thread, as if the function had returned before: another takes its
 *		place in the pool; without a pool it is the caller's thread. In a thread of the
 *		pool cancellation is disabled
 *	longjmp() out of it leaves a task that runs for ever: it must not be done
 * release() must return; an exception does the same there.
 */
#ifndef LIBTWHEEL_SCHED_H
#define LIBTWHEEL_SCHED_H

#include <stddef.h>
#include <stdint.h>

#include "libtwheel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct twheel_sched;
struct twheel_task_info;

/**
 * struct twheel_sched_options - what a scheduler shall be; all zero will do
 * @threads:	size of the pool; 0: none, see twheel_sched_run()
 * @flags:	of twheel_open(), but not TWHEEL_ONE_THREAD
 * @max_pending: the most tasks that may be pending; 0: as many as the wheel may hold
 * @clockid:	for delays: 0 or CLOCK_MONOTONIC; CLOCK_BOOTTIME
 * @tick_ns:	of the wheel, see <linux/twheel.h>; 0: a millisecond
 * @reserved:	must be 0
 */
struct twheel_sched_options {
	uint32_t	threads;
	uint32_t	flags;
	uint32_t	max_pending;
	int32_t		clockid;
	uint64_t	tick_ns;
	uint64_t	reserved[3];
};

/* @when_ns is a time of CLOCK_REALTIME, and so are the periods after it. */
#define TWHEEL_TASK_AT		0x1
/* The period counts from when the function returns (fixed delay). */
#define TWHEEL_TASK_DELAY	0x2
/* After a run that began late, the next is a period after that began. */
#define TWHEEL_MISSED_DELAY	0x4
/* Periods that are over when a run begins are left out; the phase is kept. */
#define TWHEEL_MISSED_SKIP	0x8
/* The next run need not wait for the last one: at most one a thread at once. */
#define TWHEEL_TASK_OVERLAP	0x10

/**
 * struct twheel_task - what to do, and when
 * @fn:		called when it is due. @arg is @arg; @task is this task, with the time this
 *		run was due, and valid until @fn returns
 * @release:	called with @arg when the task is over, or NULL
 * @arg:	the caller's own
 * @key:	a name that no other pending task has, copied; NULL for none. Adding a task
 *		whose key exists replaces the other
 * @key_len:	bytes of @key, which may be anything; 0: it is a string. At most 65535, of a
 *		string too
 * @when_ns:	delay from now; one that is not positive means at once. With
 *		TWHEEL_TASK_AT a time since 1970, by the clock on the wall: when that is
 *		set the task moves with it
 * @period_ns:	0: once. Else, at least a tick: again after that, by default a period
 *		after the last time it was due (fixed rate). Runs that come late are
 *		made up for one after another, unless TWHEEL_MISSED_* says otherwise;
 *		these are as in tokio, "late" being more than a tick and than 5 ms, and
 *		than @tolerance_ns besides
 * @flags:	TWHEEL_TASK_* and TWHEEL_MISSED_*
 * @reserved:	must be 0
 * @tolerance_ns: 0, or how much later than it is due a run may begin: so tasks share wake-ups, see
 *		twheel_add_within(). It is that of each period by itself, which keeps its phase
 *		with TWHEEL_MISSED_SKIP, and without a flag. Not in version 1.0
 */
struct twheel_task {
	void		(*fn)(void *arg, const struct twheel_task_info *task);
	void		(*release)(void *arg);
	void		*arg;
	const void	*key;
	size_t		key_len;
	int64_t		when_ns;
	int64_t		period_ns;
	uint32_t	flags;
	uint32_t	reserved;
	int64_t		tolerance_ns;
};

enum twheel_task_state {
	TWHEEL_TASK_WAITING,	/* for its time */
	TWHEEL_TASK_QUEUED,	/* for a thread */
	TWHEEL_TASK_RUNNING	/* and not for the only time, or it is not pending */
};

/* It will not grow beyond that. */
#define TWHEEL_TASK_INFO_MAX	256

/**
 * struct twheel_task_info - what a task is and has done
 * @sched:	its scheduler
 * @id:		its name for twheel_sched_mod() and _cancel(), never used again
 * @fn:		as in struct twheel_task
 * @release:	as in struct twheel_task
 * @arg:	as in struct twheel_task
 * @key:	a copy; NULL for none
 * @key_len:	its length
 * @due_ns:	when it is due; in a function, when this run was. A time of the
 *		scheduler's clock, or with TWHEEL_TASK_AT of CLOCK_REALTIME
 * @period_ns:	as in struct twheel_task
 * @runs:	how many were begun, this one included
 * @missed:	periods left out
 * @flags:	as in struct twheel_task
 * @state:	enum twheel_task_state
 * @tolerance_ns: as in struct twheel_task. Not in version 1.0
 */
struct twheel_task_info {
	struct twheel_sched	*sched;
	uint64_t		id;
	void			(*fn)(void *arg, const struct twheel_task_info *task);
	void			(*release)(void *arg);
	void			*arg;
	const void		*key;
	size_t			key_len;
	int64_t			due_ns;
	int64_t			period_ns;
	uint64_t		runs;
	uint64_t		missed;
	uint32_t		flags;
	uint32_t		state;
	int64_t			tolerance_ns;
};

int twheel_sched_open_sized(struct twheel_sched **sched,
			    const struct twheel_sched_options *options, size_t size);

/**
 * twheel_sched_open() - make a scheduler
 * @sched:	filled in
 * @options:	what it shall be; NULL: no pool, and defaults
 *
 * Signals are blocked in the threads of the pool.
 *
 * Return: 0, -EINVAL, -E2BIG, -ENOMEM, -EMFILE, -ENFILE, or as twheel_open().
 */
static inline int twheel_sched_open(struct twheel_sched **sched,
				    const struct twheel_sched_options *options)
{
	return twheel_sched_open_sized(sched, options, sizeof(*options));
}

/**
 * twheel_sched_close() - stop a scheduler and free it
 * @sched:	the scheduler, or NULL
 *
 * Waits for functions that run. Tasks that did not are released. No other call on it
 * may be under way or follow. In a child after fork() see twheel_close().
 *
 * Return: 0, or -EDEADLK from a function of its own: nothing has changed.
 */
int twheel_sched_close(struct twheel_sched *sched);

/**
 * twheel_sched_fd() - what to poll, of a scheduler without a pool
 * @sched:	the scheduler
 *
 * Readable (POLLIN) when twheel_sched_run() has something to do. See twheel_fd() for
 * when it may find nothing after all.
 *
 * Return: the descriptor, which stays the scheduler's; -EINVAL if it has a pool.
 */
int twheel_sched_fd(const struct twheel_sched *sched);

/**
 * twheel_sched_run() - call the functions that are due, of a scheduler without a pool
 * @sched:	the scheduler
 * @max:	the most to call; 0: all that are due when the call begins
 * @timeout_ms:	how long to wait for the first, 0 not at all, -1 for ever
 *
 * Return: how many were called; -EINTR, -ESHUTDOWN, -ECHILD; -EINVAL if there is a pool, or
 * for a @timeout_ms below -1.
 */
int twheel_sched_run(struct twheel_sched *sched, uint32_t max, int timeout_ms);

int twheel_sched_add_sized(struct twheel_sched *sched, const struct twheel_task *task,
			   uint64_t *id, size_t size);

/**
 * twheel_sched_add() - add a task
 * @sched:	the scheduler
 * @task:	copied
 * @id:		filled in, before the function is called; may be NULL
 *
 * If the key of a pending task is taken over, that one is cancelled, as if by
 * twheel_sched_cancel() without waiting.
 *
 * Return: 0, -EINVAL, -E2BIG, -EDQUOT, -ESHUTDOWN, -ENOMEM, -ECHILD.
 */
static inline int twheel_sched_add(struct twheel_sched *sched, const struct twheel_task *task,
				   uint64_t *id)
{
	return twheel_sched_add_sized(sched, task, id, sizeof(*task));
}

/**
 * twheel_sched_mod() - give a pending task another time
 * @sched:	the scheduler
 * @id:		the task
 * @when_ns:	as in struct twheel_task
 *
 * One that is running with periods goes on from that time. Its tolerance stays.
 *
 * Return: 0, -ENOENT, -EALREADY, -ECHILD.
 */
int twheel_sched_mod(struct twheel_sched *sched, uint64_t id, int64_t when_ns);

/* Wait until the task, or the scheduler, does not run any more. */
#define TWHEEL_SCHED_WAIT	0x1
/* What is to run once still does, at its time. */
#define TWHEEL_SCHED_FINISH	0x2

/**
 * twheel_sched_cancel() - see to it that a task does not run again
 * @sched:	the scheduler
 * @id:		the task
 * @flags:	0 or TWHEEL_SCHED_WAIT
 *
 * Two functions that wait for each other's tasks wait for ever.
 *
 * Return: 0: it will not run, and is not running; 1: it runs at this moment, for the last
 * time; -EINVAL, -ENOENT, -ECHILD; -EDEADLK for TWHEEL_SCHED_WAIT from its own function.
 */
int twheel_sched_cancel(struct twheel_sched *sched, uint64_t id, uint32_t flags);

/**
 * twheel_sched_find() - find a pending task by its key
 * @sched:	the scheduler
 * @key:	the key; NULL is that of no task
 * @key_len:	its length; 0: it is a string
 *
 * Return: its id, or 0, which is no task's: twheel_sched_cancel() takes it for -ENOENT.
 */
uint64_t twheel_sched_find(struct twheel_sched *sched, const void *key, size_t key_len);

/**
 * twheel_sched_pending() - how many tasks are going to run?
 * @sched:	the scheduler
 *
 * Those that run for the only time are not counted.
 *
 * Return: how many; 0 in a child after fork().
 */
uint32_t twheel_sched_pending(struct twheel_sched *sched);

int twheel_sched_list_sized(struct twheel_sched *sched, struct twheel_task_info **list,
			    size_t size);

/**
 * twheel_sched_list() - all pending tasks, in the order they were added
 * @sched:	the scheduler
 * @list:	filled in: an array, keys and all in one piece, for the caller to free()
 *
 * Others may add, move and cancel tasks while the list is made, which is done in pieces. What is
 * pending from the beginning to the end is listed, and only once; what is added meanwhile is not.
 *
 * Return: how many, -ENOMEM, -ECHILD.
 */
static inline int twheel_sched_list(struct twheel_sched *sched, struct twheel_task_info **list)
{
	return twheel_sched_list_sized(sched, list, sizeof(**list));
}

int twheel_sched_stop_sized(struct twheel_sched *sched, uint32_t flags,
			    struct twheel_task_info **list, size_t size);

/**
 * twheel_sched_stop() - run nothing any more, or only what is pending
 * @sched:	the scheduler
 * @flags:	TWHEEL_SCHED_WAIT for functions that are running, TWHEEL_SCHED_FINISH, or 0
 * @list:	filled in as by twheel_sched_list() with the tasks that were waiting or
 *		queued, and their args are the caller's again; NULL: they are released
 *
 * From here on nothing can be added. With TWHEEL_SCHED_FINISH the tasks without a period
 * stay pending, and when the last of them has begun the scheduler is stopped; only those with
 * a period are over. With both flags it returns when the last has run. A second call without
 * TWHEEL_SCHED_FINISH ends it earlier.
 *
 * Return: how many tasks are over that were waiting or queued, -EINVAL, -ENOMEM, -ECHILD;
 * -EDEADLK for TWHEEL_SCHED_WAIT from a function of its own, and for both flags without
 * a pool, where it is the caller who runs them.
 */
static inline int twheel_sched_stop(struct twheel_sched *sched, uint32_t flags,
				    struct twheel_task_info **list)
{
	return twheel_sched_stop_sized(sched, flags, list, sizeof(**list));
}

/**
 * twheel_sched_wheel() - the wheel, for twheel_get_info() and twheel_backend()
 * @sched:	the scheduler
 *
 * Return: the wheel, which stays the scheduler's.
 */
struct twheel *twheel_sched_wheel(const struct twheel_sched *sched);

#ifdef __cplusplus
}
#endif

#endif
