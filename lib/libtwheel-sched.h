/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * libtwheel's scheduler: functions called at their time, on top of one wheel.
 *
 * A task is a function, an argument, and when to call it: after a delay or at a time on the wall
 * clock, once or periodically. It runs on a thread of the scheduler's pool, or, without a pool, in
 * the thread that calls twheel_sched_run().
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
 *   - A task never runs before it is due, by its clock. A tolerance delays it, compared with an
 *     exact task, by no more than the tolerance.
 *   - Adding, moving and cancelling cost the same with ten tasks and with a million, and no single
 *     call costs much more than the others. How long a call holds up other threads does not depend
 *     on the number of tasks, except for twheel_sched_stop() and _close().
 *   - If a task is cancelled or replaced, it is freed in that call; if it is running at that
 *     moment, it is freed when its function returns.
 *   - Functions are called in the order in which their tasks were due. If tasks were due at the
 *     same ns, they are called in the order in which they were added. This holds as long as no more
 *     than 512 tasks are due at once, and none of them has a tolerance. There are four exceptions.
 *     A task that is due already when it is added or moved may be called before others that were
 *     due earlier. If the wheel's CPU is so busy that a tick expires in several parts, the order of
 *     ticks holds, and the order inside each part. A run that is made up for comes after the tasks
 *     that are queued already. Between tasks with and without TWHEEL_TASK_AT there is no order.
 *   - A task never runs twice at once, unless it has TWHEEL_TASK_OVERLAP.
 *   - A slow function holds up its own thread and no other.
 *   - release() is called once for each task, when nothing will use its arg any more; but not for
 *     tasks that twheel_sched_stop() handed back.
 *   - Times never wrap: a delay below 0 counts as 0, and a time beyond 2^63 - 1 ns as 2^63 - 1.
 *
 * All times are in ns. A function that fails returns a negative errno and has changed nothing.
 * The errors mean
 *	EINVAL		a field, flag or time that is not allowed
 *	ENOENT		no such task: it never existed, was cancelled, or is over
 *	EALREADY	the task has begun its only run
 *	EDQUOT		the cap on pending tasks is reached
 *	ESHUTDOWN	the scheduler was stopped
 *	EDEADLK		the call would wait for the function that makes it
 *	ENOMEM		no memory, or no thread
 *	ECHILD		the scheduler was opened by an ancestor of this process
 *	EINTR		a signal came while the call waited
 *	EMFILE, ENFILE	no descriptor is left
 *	E2BIG		a structure is longer than the library knows, and the part that it does not
 *			know is not 0
 *
 * Structures may grow: libtwheel.h says how, under Growth. The @task that a function gets is in
 * the library's memory, and followed by zeros up to TWHEEL_TASK_INFO_MAX bytes.
 *
 * Context: All functions may be called from any thread and from the tasks' functions, but not from
 * a signal handler. Functions and release() are called without a lock. release() must not close the
 * scheduler.
 *
 * A function should end by returning. If instead
 *	it throws a C++ exception and does not catch it, the program ends by std::terminate(), with
 *		or without a pool: the caller of twheel_sched_run() does not get the exception
 *	it calls pthread_exit(), its thread ends, as if the function had returned before. In a pool
 *		a new thread takes its place; without a pool the caller's thread ends. In
 *		threads of the pool cancellation is disabled
 *	it leaves by longjmp(), its task counts as running for ever: it must not do that
 * release() must return. If it throws an exception, the program ends too.
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
 * struct twheel_sched_options - options of a scheduler; all zero means the defaults
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
/* A period begins when the function returns (fixed delay). */
#define TWHEEL_TASK_DELAY	0x2
/* If a run begins late, the next one is due a period after that beginning. */
#define TWHEEL_MISSED_DELAY	0x4
/* Periods that have passed when a run begins are skipped; the phase is kept. */
#define TWHEEL_MISSED_SKIP	0x8
/* A run does not wait for the one before to end. As many runs as there are threads may overlap. */
#define TWHEEL_TASK_OVERLAP	0x10

/**
 * struct twheel_task - what to do, and when
 * @fn:		called when the task is due, with @arg and a description of the task, whose @due_ns
 *		is the time at which this run was due. The description is valid until @fn returns
 * @release:	called with @arg when the task is over, or NULL
 * @arg:	the caller's own
 * @key:	a name, copied; NULL for none. No two pending tasks have the same key: a task that
 *		is added replaces the one with its key
 * @key_len:	length of @key, whose bytes may be anything; 0 if it is a string. At most 65535,
 *		also for a string
 * @when_ns:	delay from now; 0 or less means at once. With TWHEEL_TASK_AT a time since 1970 by
 *		the wall clock. If somebody sets that clock, the task is due when it shows this time
 * @period_ns:	0 if it runs once; else its period, at least a tick. By default it is due again a
 *		period after it was last due (fixed rate), and runs that were missed are made up
 *		for, one after the other. TWHEEL_MISSED_* changes that, see there. A run is "late"
 *		if it begins more than 5 ms after it was due, or, if a tick is longer, more than a
 *		tick; @tolerance_ns is added to that
 * @flags:	TWHEEL_TASK_* and TWHEEL_MISSED_*
 * @reserved:	must be 0
 * @tolerance_ns: 0, or by how much a run may begin after it is due, so that tasks share wake-ups:
 *		see twheel_add_within(). It applies to each period by itself. Unless a periodic task
 *		has TWHEEL_TASK_DELAY or TWHEEL_MISSED_DELAY, it keeps its phase. Not in version 1.0
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
	TWHEEL_TASK_RUNNING	/* its function runs; a task in its last run is not listed */
};

/* struct twheel_task_info will never be longer. */
#define TWHEEL_TASK_INFO_MAX	256

/**
 * struct twheel_task_info - what a task is and has done
 * @sched:	its scheduler
 * @id:		by which twheel_sched_mod() and _cancel() know it; never used again
 * @fn:		as in struct twheel_task
 * @release:	as in struct twheel_task
 * @arg:	as in struct twheel_task
 * @key:	a copy; NULL for none
 * @key_len:	its length
 * @due_ns:	when it is due; for its function, when this run was due. A time of the scheduler's
 *		clock, or with TWHEEL_TASK_AT of CLOCK_REALTIME
 * @period_ns:	as in struct twheel_task
 * @runs:	how many runs have begun, this one included
 * @missed:	periods that were skipped
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
 * @options:	the options; NULL for the defaults, without a pool
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
 * Waits for functions that are running. Tasks that are still pending are cancelled and released. No
 * other call on the scheduler may be under way or follow. In a child after fork() it does what
 * twheel_close() does.
 *
 * Return: 0; or -EDEADLK, with nothing changed, if a function of this scheduler makes the call.
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
 * @max:	the most to call; 0: all that are due when the first is called
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
 * If a pending task has the same key, it is cancelled, as by twheel_sched_cancel() without waiting.
 *
 * Return: 0, -EINVAL, -E2BIG, -EDQUOT, -ESHUTDOWN, -ENOMEM, -ECHILD. The first task with
 * TWHEEL_TASK_AT opens another wheel: then also as twheel_open().
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
 * If a periodic task is running, its next run is at that time. The task keeps its tolerance.
 *
 * Return: 0, -ENOENT, -EALREADY, -ECHILD.
 */
int twheel_sched_mod(struct twheel_sched *sched, uint64_t id, int64_t when_ns);

/* Wait until the function of the task, or all functions of the scheduler, have returned. */
#define TWHEEL_SCHED_WAIT	0x1
/* Tasks without a period still run, at their time. */
#define TWHEEL_SCHED_FINISH	0x2

/**
 * twheel_sched_cancel() - ensure that a task does not run again
 * @sched:	the scheduler
 * @id:		the task
 * @flags:	0 or TWHEEL_SCHED_WAIT
 *
 * If two functions wait for each other's tasks, they wait for ever.
 *
 * Return: 0 if it will not run again and is not running; 1 if its function, or its release(), may
 * be running at this moment, for the last time; -EINVAL, -ENOENT, -ECHILD; -EDEADLK if its own
 * function makes the call with TWHEEL_SCHED_WAIT.
 */
int twheel_sched_cancel(struct twheel_sched *sched, uint64_t id, uint32_t flags);

/**
 * twheel_sched_find() - find a pending task by its key
 * @sched:	the scheduler
 * @key:	the key; NULL is no task's key
 * @key_len:	its length; 0: it is a string
 *
 * Return: its id, or 0, which is no task's id: twheel_sched_cancel() of it returns -ENOENT.
 */
uint64_t twheel_sched_find(struct twheel_sched *sched, const void *key, size_t key_len);

/**
 * twheel_sched_pending() - how many tasks are going to run?
 * @sched:	the scheduler
 *
 * A task in its last run is not counted.
 *
 * Return: how many; 0 in a child after fork().
 */
uint32_t twheel_sched_pending(struct twheel_sched *sched);

int twheel_sched_list_sized(struct twheel_sched *sched, struct twheel_task_info **list,
			    size_t size);

/**
 * twheel_sched_list() - all pending tasks, in the order they were added
 * @sched:	the scheduler
 * @list:	filled in: an array and its keys in one block of memory, for the caller to free()
 *
 * The list is made in several steps, between which other threads may add, move and cancel tasks.
 * A task that is pending from the beginning to the end of the call is listed exactly once; one that
 * is added meanwhile is not listed.
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
 * twheel_sched_stop() - let no task run any more, or only those that are pending and run once
 * @sched:	the scheduler
 * @flags:	TWHEEL_SCHED_WAIT for functions that are running, TWHEEL_SCHED_FINISH, or 0
 * @list:	filled in as by twheel_sched_list() with the cancelled tasks that were waiting or
 *		queued; their args are the caller's again. NULL: they are released. Another run of a
 *		task with TWHEEL_TASK_OVERLAP may still use its arg: TWHEEL_SCHED_WAIT waits for it
 *
 * From here on adding is refused. Without TWHEEL_SCHED_FINISH all tasks are cancelled. With
 * TWHEEL_SCHED_FINISH the periodic tasks are cancelled, and the others run at their time; when the
 * last of them has begun, the scheduler is stopped. With both flags the call returns when the last
 * has finished. To stop at once, call again without TWHEEL_SCHED_FINISH.
 *
 * Return: how many waiting or queued tasks were cancelled, -EINVAL, -ENOMEM, -ECHILD. -EDEADLK if a
 * function of this scheduler makes the call with TWHEEL_SCHED_WAIT; or for both flags without a
 * pool, since only the caller could run the tasks then.
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
