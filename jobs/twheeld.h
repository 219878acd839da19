/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheeld: jobs that survive. What its files share.
 *
 *	main.c		options, signals, systemd
 *	core.c		the loop: what is due, and what becomes of it; turns
 *	registry.c	the jobs, in memory as in the store; what is asked for
 *	run.c		firings that are not over
 *	exec.c		their processes
 *	cgroup.c	in cgroups, and what a daemon before this one has left
 *	log.c		what they have printed
 *	api.c		HTTP
 *	def.c, policy.c	pure: definitions; when they are due
 *	store.c		the store: what is alike in SQLite (store_sqlite.c) and
 *			PostgreSQL (store_pg.c)
 *
 * One thread does it all, in a loop: it takes what has come (timers, ends of processes, requests),
 * decides what is to become of it, and writes that to the store as one transaction, a turn.
 * Only then is anything begun. While it writes, more comes, and is the next turn's: turns
 * grow with load.
 *
 * What is in memory is as the store will be after this turn. If the turn cannot be written it
 * is tried again until it can, and nothing is begun.
 *
 * Where daemons share a store each knows all jobs, and owns parts of them: it alone fires those,
 * and so it alone decides about overlap. What others change is read as news, which is only done
 * when no turn is pending.
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

/* <3>twheeld: ..., which the journal understands */
__attribute__((format(printf, 2, 3)))
void say(int level, const char *fmt, ...);

/* To be freed. */
__attribute__((format(printf, 1, 2)))
char *format(const char *fmt, ...);

enum { SAY_ERROR = 3, SAY_WARNING = 4, SAY_INFO = 6 };

/* ---- the loop: core.c --------------------------------------------------------------- */

/**
 * struct source - what the loop waits for
 * @fd:		readable
 * @ready:	called then
 */
struct source {
	int	fd;
	void	(*ready)(struct source *source);
};

extern struct store *store;
extern struct twheel_sched *sched;

/* By the store's clock. */
int64_t now_us(void);
/* The task is to run at @at by that clock. */
void when_due(struct twheel_task *task, int64_t at);

int source_add(struct source *source);
/* It is closed, too. */
void source_remove(struct source *source);

/* Begin a life: read the store, and take over what is of dead ones. Ends the program if it cannot.
 */
void core_start(void);
/* Until core_stop(). */
void core_loop(void);
void core_stop(void);

/* Do what is to be done now. False: it cannot be written. */
bool core_flush(void);

/* A new operation for the next turn. It is where it is until the next one is asked for. */
struct op *core_op(enum op_type type);

/* A row of due is there, or has another time. Those of others are left to them. */
void core_arm(int64_t id, int64_t job, int64_t at);
void core_disarm(int64_t id);
/* Rows of due have come that are not known by id. */
void core_reload(void);
/* A firing was refused, so what we know of its row is wrong: soon all are read again. */
void core_refused(void);
/* What others have changed is so in memory. */
void core_refresh(void);

/* ---- jobs: registry.c --------------------------------------------------------------- */

struct run;
TAILQ_HEAD(runs, run);

/**
 * struct job - a job
 * @id:		in the store
 * @name:	its name; NULL: it was removed
 * @rev:	how often it was put
 * @paused:	see struct job_row
 * @broken:	why its definition cannot be understood any more, or NULL
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

/* Jobs of these parts, as they are in the store; of all, calendars too. */
int registry_load(uint64_t parts);
int days_load(void);
void job_refresh(int64_t id);
struct job *job_by_id(int64_t id);
struct job *job_by_name(const char *name);
/* In the order of names. */
void jobs_each(void (*fn)(void *arg, struct job *job), void *arg);
const char *job_name(const struct job *job);

/**
 * struct put - a job that is to be put
 * @name:	its name
 * @json:	its definition
 * @rev:	only if that is what is there; 0: only if none is there; negative: whatever is
 * @job:	filled in
 */
struct put {
	const char		*name;
	struct json_object	*json;
	int64_t			rev;
	struct job		*job;
};

/*
 * What is asked for. Returns 0 or a negative errno, and @error is filled in then: -EINVAL, it is
 * wrong; -ENOENT, there is no such thing; -EEXIST, -ESTALE, there is another, or another revision;
 * -EBUSY, it is needed; any other, it could not be written.
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
 * struct log - what a run has printed
 * @fd:		its file, -1 until it prints
 * @size:	how much that was
 * @cut:	up to where the middle was left out; negative: nothing more is kept
 */
struct log {
	int	fd;
	int64_t	size;
	int64_t	cut;
};

/**
 * struct process - that of a run
 * @pid:	it; 0: there is none
 * @end:	readable when it has ended
 * @output:	what it prints
 * @log:	where that goes
 * @cgroup:	its directory's name, or empty
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
 * @in_job:	in its job's list, in the order of firing
 * @in_ready:	in the list of those that may begin
 * @is_ready:	it is in that list
 * @job:	its job
 * @firing:	see there; @arg is its own
 * @began:	when the attempt began
 * @process:	of the attempt
 * @ending:	it was told to end, and this will be its outcome
 * @timer:	what it waits for, in the scheduler
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

/* A firing whose time has come: run it, or leave it. */
void run_fire(struct job *job, int64_t id, int64_t at, const struct plan *plan, int64_t now);
/* One that was found in the store. */
void run_found(const struct firing *firing);
/* Take over what was found. What it waited for may be over. */
void runs_found(void);
/* An operation of run.c's has been written. */
void run_settle(struct op *op);
/* Begin what may begin. */
void runs_begin(void);
/* Its process has ended, with a status as waitid() has it. */
void run_ended(struct run *run, int code, int status);
void run_kill(struct run *run, enum outcome outcome);
/* All that has no process is over, since the job has gone. */
void runs_forget(struct job *job);
/* Kill processes at once: of jobs that must not overlap, or all. They are lost. */
void runs_kill(bool all);
struct run *run_find(int64_t id, int64_t at);
void runs_each(void (*fn)(void *arg, struct run *run), void *arg);
bool runs_stopped(void);
void runs_stop(void);

/* ---- processes: exec.c, cgroup.c, log.c --------------------------------------------- */

/* Returns 0 or a negative errno: it cannot be begun now. */
int exec_begin(struct run *run);
void exec_signal(struct run *run, int sig);
/* Its end has been told: end what it has left, and let go. */
void exec_end(struct run *run);
void exec_setup(const char *state);
/* As it was before that, for another program. */
void exec_undo(void);

void cgroup_setup(const char *dir);
/* May a job ask for that? If not, says why. */
bool cgroup_can(const struct def *def, char error[ERROR_MAX]);
/* A cgroup for a run: a descriptor, or -1. If it has not what the job asks for @why says so. */
int cgroup_make(struct run *run, const char **why);
void cgroup_kill(struct run *run);
void cgroup_remove(struct run *run);
/* Kill what a daemon before this one has left. */
void leftovers_kill(const char *state);

void log_setup(const char *dir);
void log_write(struct run *run, const char *data, size_t size);
void log_close(struct log *log);
/* A file of log.c's, for reading, or a negative errno. */
int log_open(const struct firing *firing);
void log_remove(const struct firing *firing);

/* ---- this daemon: main.c ------------------------------------------------------------- */

/* The last life of a daemon in this directory, or 0. */
int64_t old_life(void);
void keep_life(void);
/* All of it, by exec, under another life; processes have been killed. */
noreturn void begin_again(void);
/* Without a store there is no beginning. */
noreturn void give_up(void);

/* ---- HTTP: api.c -------------------------------------------------------------------- */

void api_start(int listener);
void api_stop(void);

#endif
