/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Jobs: commands with their times. jobs.c parses those of the command line, and runs all jobs;
 * run.c reads those of a file.
 *
 * A job is one task of the scheduler. It is freed when both have happened: job_drop(), in the first
 * thread, and the end of its task, in a thread of the scheduler. The later of the two frees it.
 */
#ifndef JOBS_H
#define JOBS_H

#include <pthread.h>
#include <stdatomic.h>

#include "child.h"

#define BLANKS	" \t"

enum {
	OPT_WITHIN = 1,					/* of a job */
	OPT_COUNT, OPT_NOW, OPT_DELAY, OPT_MISSED,	/* of one that recurs */
	OPT_ZONE, OPT_JITTER, OPT_EXPLAIN,		/* of one by the calendar */
	OPT_JSON, OPT_JSON_FD,				/* of all that run commands */
	OPT_JOBS, OPT_CHECK, OPT_LOCK, OPT_METRICS	/* of run */
};

/**
 * struct job_stats - a job's runs, for --metrics
 * @runs:	how many have ended
 * @failures:	how many of them had a status other than 0
 * @missed:	how many times were left out
 * @late_ns:	the sum of how late they began
 * @took_ns:	the sum of how long they took
 * @ended_ns:	when the last one ended, by the wall clock; 0: there was none
 * @succeeded_ns: when the last one that did not fail ended
 * @status:	of the last one
 */
struct job_stats {
	uint64_t	runs;
	uint64_t	failures;
	uint64_t	missed;
	int64_t		late_ns;
	int64_t		took_ns;
	int64_t		ended_ns;
	int64_t		succeeded_ns;
	int		status;
};

/**
 * struct job - a command and its time
 * @task:	its task, whose arg is the job
 * @id:		the id of its task
 * @argv:	the command; NULL: none
 * @line:	its line in the file, which changes if the file is read again; 0: it is of the
 *		command line
 * @text:	the text of that line
 * @count:	how often to run it; 0: for ever, if it has a period
 * @status:	exit status of its last run, or the last that was not 0
 * @missed:	times that were left out before its last run
 * @calendar:	its times, if they are by the calendar; see there for the lock
 * @failed:	twheel could not run it, and @status says why
 * @kept:	the file was read again, and still has the line
 * @new_line:	where the line is in the new file
 * @over:	its task is over
 * @dropped:	only its task still uses it
 * @stats:	see there
 *
 * jobs_lock guards @over and @stats. Code that sets @dropped holds jobs_lock; child_run() reads
 * @dropped without that lock, so that nothing is started for a dropped job. Only the job's own
 * runs, which never overlap, use @status, @missed and @failed; the first thread reads these when
 * the scheduler is closed. The other members are the first thread's.
 */
struct job {
	struct twheel_task	task;
	uint64_t		id;
	char			**argv;
	atomic_size_t		line;
	char			*text;
	uint64_t		count;
	int			status;
	uint64_t		missed;
	struct calendar		calendar;
	bool			failed;
	bool			kept;
	size_t			new_line;
	bool			over;
	atomic_bool		dropped;
	struct job_stats	stats;
};

extern const char *file;		/* the file of jobs, for messages */
extern struct child_options child_options;
extern atomic_size_t left;		/* jobs that are not over */
extern atomic_int running;		/* commands that are running */
extern atomic_uint changes;		/* counts changes of these two, and of runs */
extern atomic_bool any_failed;
extern pthread_mutex_t jobs_lock;	/* see struct job */

/* Report what is wrong with a job, and where. Returns false. */
__attribute__((format(printf, 2, 3)))
bool wrong(const struct job *job, const char *fmt, ...);

/* Take an option that all commands on the command line have. False if @c is no such option. */
bool common_option(const struct job *job, int c, bool *good);

/* Is @name a command whose job runs more than once: every or cron? */
bool is_recurring(const char *name);

/*
 * Parse NAME TIME [OPTION]... [--] [COMMAND]; options may also come before the time. The time must
 * be before argv[@end].
 */
bool parse_job(struct job *job, int argc, char **argv, int end);

/*
 * Called by the first thread each time that something has happened. Returns how many ms to wait at
 * most, or -1. It is called once more with NULL after the scheduler was closed.
 */
typedef int (*turn_fn)(struct twheel_sched *sched);

/*
 * Run all jobs until they are over, at most @threads at once. If one cannot be added, none is
 * begun.
 */
void do_jobs(struct job **jobs, size_t nr, uint32_t threads, turn_fn turn);

/* Only check whether the jobs can be added. Exits if not. */
void check_jobs(struct job **jobs, size_t nr);

/*
 * Add the jobs that are not kept. If one cannot be added, report that, drop those that were added,
 * with NULL in their place, and return false; that one and the jobs after it still belong to the
 * caller.
 */
bool add_jobs(struct twheel_sched *sched, struct job **jobs, size_t nr);

/* Cancel a job that was added. It no longer belongs to the caller. */
void job_drop(struct twheel_sched *sched, struct job *job);

/* Free a job that was never added. */
void job_free(struct job *job);

#endif
