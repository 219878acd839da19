/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheeld: jobs that survive. What its files share.
 *
 *	main.c		options, signals, systemd
 *	core.c		the loop: which firings are due, and what happens to them; turns
 *	registry.c	the jobs, in memory as in the store; requests that change them
 *	run.c		firings that are not over
 *	exec.c		their processes
 *	cgroup.c	their cgroups, and processes that an earlier daemon has left
 *	log.c		what they have printed
 *	api.c		HTTP
 *	def.c, policy.c	pure functions: definitions; when they are due
 *	store.c		the store: the part that SQLite (store_sqlite.c) and
 *			PostgreSQL (store_pg.c) share
 *
 * One thread does everything, in a loop. It takes the events that have come (timers, ends of
 * processes, requests), decides what to do about them, and writes that to the store as one
 * transaction, a turn. Only after that it begins anything. Events that come while it writes belong
 * to the next turn, so turns grow with load. Since there is one thread, nothing here is locked.
 *
 * Memory is always as the store will be after this turn. If the turn cannot be written, that is
 * repeated until it can, and nothing is begun meanwhile.
 *
 * If several daemons share a store, each knows all jobs and owns some parts of them. Only the owner
 * fires a job, and so it alone decides about overlap. Changes by other daemons are read as news,
 * but only when no turn is pending.
 */
#ifndef JOBS_TWHEELD_H
#define JOBS_TWHEELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "def.h"
#include "libtwheel-sched.h"
#include "policy.h"
#include "store.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/*
 * Print a message to standard error, with its level as the journal understands it: <3>twheeld: ...
 */
__attribute__((format(printf, 2, 3)))
void say(int level, const char *fmt, ...);

/* As asprintf(). The caller frees the result; the program ends if there is no memory. */
__attribute__((format(printf, 1, 2)))
char *format(const char *fmt, ...);

enum { SAY_ERROR = 3, SAY_WARNING = 4, SAY_INFO = 6 };

/* ---- the loop: core.c --------------------------------------------------------------- */

/**
 * struct source - a descriptor that the loop waits for
 * @fd:		the descriptor
 * @ready:	called when it is readable
 */
struct source {
	int	fd;
	void	(*ready)(struct source *source);
};

extern struct store *store;
extern struct twheel_sched *sched;

/* The time of the store's clock. */
int64_t now_us(void);
/* Set the time of a task that is to run at @at of that clock. */
void when_due(struct twheel_task *task, int64_t at);

int source_add(struct source *source);
/* Stop waiting for it, and close it. */
void source_remove(struct source *source);

/*
 * Begin a life: read the store, and take over what dead lives have left. If that fails, the program
 * ends.
 */
void core_start(void);
/* Run until core_stop(). */
void core_loop(void);
void core_stop(void);

/* Write the pending turn now, and begin what it decided. Returns false if it cannot be written. */
bool core_flush(void);

/* A new operation for the next turn. The pointer is valid until the next call. */
struct op *core_op(enum op_type type);

/* A row of due was added, or has another time. Rows of other daemons' parts are ignored. */
void core_arm(int64_t id, int64_t job, int64_t at);
void core_disarm(int64_t id);
/* Rows of due were added whose ids are not known: read them. */
void core_reload(void);
/* A firing was refused, so what is in memory of its row is wrong: read all rows again soon. */
void core_refused(void);
/* Bring memory up to date with what other daemons have changed. */
void core_refresh(void);

/* ---- jobs: registry.c --------------------------------------------------------------- */

struct run;
TAILQ_HEAD(runs, run);

/**
 * struct job - a job
 * @id:		its id in the store
 * @name:	its name; NULL if it was removed
 * @rev:	its revision: how often it was put
 * @paused:	see struct job_row
 * @broken:	why this version cannot understand its definition, or NULL
 * @def:	its definition
 * @due_id:	see struct job_row
 * @due_at:	see struct job_row
 * @runs:	firings that are not over
 */
struct job {
	int64_t		id;
	char		*name;
	int64_t		rev;
	bool		paused;
	char		*broken;
	struct def	def;
	int64_t		due_id;
	int64_t		due_at;
	struct runs	runs;
};

/* Read the jobs of these parts from the store; if these are all parts, the calendars too. */
int registry_load(uint64_t parts);
int days_load(void);
void job_refresh(int64_t id);
struct job *job_by_id(int64_t id);
struct job *job_by_name(const char *name);
/* Call @fn for each job, in the order of names. */
void jobs_each(void (*fn)(void *arg, struct job *job), void *arg);
const char *job_name(const struct job *job);

/**
 * struct put - a request to put a job
 * @name:	its name
 * @json:	its definition
 * @rev:	put it only if the job has this revision; 0: only if there is no such job; negative:
 *		in any case
 * @job:	filled in with the job
 */
struct put {
	const char		*name;
	struct json_object	*json;
	int64_t			rev;
	struct job		*job;
};

/*
 * Requests that change jobs. They return 0, or a negative errno with a text in @error: -EINVAL, the
 * request is wrong; -ENOENT, there is no such job, run or calendar; -EEXIST or -ESTALE, there is
 * one already, or it has another revision; -EBUSY, another job needs it; any other, it could not be
 * written.
 */
int jobs_put(struct put *puts, size_t nr, char error[ERROR_MAX]);
int job_remove(struct job *job, char error[ERROR_MAX]);
int job_pause(struct job *job, bool on, char error[ERROR_MAX]);
int job_add(struct job *job, struct due *rows, size_t nr, bool force, char error[ERROR_MAX]);
int job_cancel(struct job *job, const char *key, char error[ERROR_MAX]);
int days_put(const char *name, const int64_t *days, size_t nr, char error[ERROR_MAX]);
void job_forget(int64_t id);

/* ---- runs: run.c -------------------------------------------------------------------- */

/**
 * struct log - the output of a run
 * @fd:		its file, -1 until the run prints something
 * @size:	how many bytes were printed
 * @cut:	up to where the middle was left out; negative if nothing more is kept
 */
struct log {
	int	fd;
	int64_t	size;
	int64_t	cut;
};

/**
 * struct process - the process of a run
 * @pid:	its id; 0 if there is none
 * @end:	readable when the process has ended
 * @output:	the pipe of what it prints
 * @log:	where that is kept
 * @cgroup:	the name of its cgroup's directory, or empty
 */
struct process {
	pid_t		pid;
	struct source	end;
	struct source	output;
	struct log	log;
	char		cgroup[80];
};

/**
 * struct run - a firing that is not over
 * @in_job:	link in its job's list, in the order of firing
 * @in_ready:	link in the list of runs that may begin
 * @is_ready:	it is in that list
 * @job:	its job
 * @firing:	the row in the store; the run owns its @arg
 * @began:	when the present attempt began
 * @process:	the process of that attempt
 * @ending:	if it was told to end: the outcome that it will have
 * @timer:	the scheduler's task that it waits for
 */
struct run {
	TAILQ_ENTRY(run)	in_job;
	TAILQ_ENTRY(run)	in_ready;
	bool			is_ready;
	struct job		*job;
	struct firing		firing;
	int64_t			began;
	struct process		process;
	enum outcome		ending;
	uint64_t		timer;
};

extern int64_t max_running, default_keep;
extern size_t nr_running;

/* The time of a firing has come: by the job's policy run it, let it wait, or skip it. */
void run_fire(struct job *job, int64_t id, int64_t at, const struct plan *plan, int64_t now);
/* Note a firing that was found in the store, not over. */
void run_found(const struct firing *firing);
/* Take over the firings that were found. What they waited for may be over meanwhile. */
void runs_found(void);
/* An operation of run.c has been written: continue with what depended on it. */
void run_settle(struct op *op);
/* Begin the runs that may begin. Only after the turn that decided so was written. */
void runs_begin(void);
/* The process of a run has ended, with code and status as from waitid(). */
void run_ended(struct run *run, int code, int status);
void run_kill(struct run *run, enum outcome outcome);
/* The job was removed: its runs that have no process are over. */
void runs_forget(struct job *job);
/* Kill processes at once: those of jobs that must not overlap, or all. These runs are lost. */
void runs_kill(bool all);
struct run *run_find(int64_t id, int64_t at);
void runs_each(void (*fn)(void *arg, struct run *run), void *arg);
bool runs_stopped(void);
void runs_stop(void);

/* ---- processes: exec.c, cgroup.c, log.c --------------------------------------------- */

/* Start the process of a run. Returns 0, or a negative errno if that is not possible now. */
int exec_begin(struct run *run);
void exec_signal(struct run *run, int sig);
/* The end of the run is known: end the processes that it has left, and free what it used. */
void exec_end(struct run *run);
void exec_setup(const char *state);
/* Undo exec_setup(), before another program is executed in this process. */
void exec_undo(void);

void cgroup_setup(const char *dir);
/* Can this daemon set the limits that the job asks for? If not, @error says why. */
bool cgroup_can(const struct def *def, char error[ERROR_MAX]);
/*
 * Make a cgroup for a run. Returns its descriptor, or -1. If a limit that the job asks for could
 * not be set, @why says so.
 */
int cgroup_make(struct run *run, const char **why);
void cgroup_kill(struct run *run);
void cgroup_remove(struct run *run);
/* Kill the processes that an earlier daemon has left. */
void leftovers_kill(const char *state);

void log_setup(const char *dir);
void log_write(struct run *run, const char *data, size_t size);
void log_close(struct log *log);
/* Open the log of a firing for reading. Returns a descriptor, or a negative errno. */
int log_open(const struct firing *firing);
void log_remove(const struct firing *firing);

/* ---- this daemon: main.c ------------------------------------------------------------- */

/* The id of the last life of a daemon in this directory, or 0. */
int64_t old_life(void);
void keep_life(void);
/* Execute the program again, as another life. The processes of runs have been killed before. */
noreturn void begin_again(void);
/* End the program, because the store cannot be opened. */
noreturn void give_up(void);

/* ---- HTTP: api.c -------------------------------------------------------------------- */

void api_start(int listener);
void api_stop(void);

#endif
