/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheeld: jobs that survive. What its files share.
 *
 *	main.c		options, signals, systemd
 *	core.c		the loop: which firings are due, and what happens to them; turns
 *	registry.c	the jobs, in memory as in the store; requests that change them
 *	run.c		firings that are not over
 *	exec.c		the processes of firings
 *	quick.c		which programs may be begun by vfork()
 *	cgroup.c	the cgroups of runs, and processes that an earlier daemon has left
 *	log.c		what runs have printed
 *	http.c, api.c	HTTP: requests and answers
 *	take.c		requests of runners
 *	pool.c		runs that runners execute
 *	web.c		runs that are HTTP requests
 *	alarm.c		telling people of runs that have failed
 *	out.c		sends requests to others
 *	runner.c	a runner: twheeld --runner, which executes runs for daemons
 *	metrics.c	what is counted
 *	def.c, policy.c	pure functions: definitions; when jobs are due
 *	store.c		the store: the part that SQLite (store_sqlite.c) and
 *			PostgreSQL (store_pg.c) share; store_pool.c: the tables of runners and
 *			of what they run
 *	store_module.c	loads store_pg.c, which is a module
 *
 * One thread does everything, in a loop. It takes the events that have come (timers, ends of
 * processes, requests), decides what to do about them, and writes that to the store as one
 * transaction, a turn. Only after that it begins anything. Events that come while it writes belong
 * to the next turn, so turns grow with load. Since there is one thread, nothing here is locked.
 * With PostgreSQL, LANES turns are written at the same time, each in a lane of its own; everything
 * about one job is in one lane.
 *
 * Memory is always as the store will be when the present turn is written. If the turn cannot be
 * written, the daemon tries again until it can, and begins nothing meanwhile.
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

#include <uthash.h>

#include "def.h"
#include "libtwheel-sched.h"
#include "policy.h"
#include "store.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/*
 * Print a message to standard error. If that is the journal, the level comes first, as the journal
 * understands it: <3>twheeld: ... Call say_setup() first.
 */
void say_setup(void);
__attribute__((format(printf, 2, 3)))
void say(int level, const char *fmt, ...);

/* asprintf(). The caller frees the result. If there is no memory, the program ends. */
__attribute__((format(printf, 1, 2)))
char *format(const char *fmt, ...);

enum { SAY_ERROR = 3, SAY_WARNING = 4, SAY_INFO = 6 };

struct job;
struct run;
TAILQ_HEAD(runs, run);

/* ---- the loop: core.c --------------------------------------------------------------- */

/**
 * struct source - a descriptor that the loop waits for
 * @fd:		the descriptor
 * @ready:	called when it is readable, or ready for what source_want() says
 */
struct source {
	int	fd;
	void	(*ready)(struct source *source);
};

/**
 * struct child - a process whose end the loop waits for
 * @pid:	its id
 * @end:	readable when the process has ended; its descriptor is -1 if none was made yet
 * @look:	the scheduler's task that looks whether it has ended, if @end cannot be watched
 * @ready:	called when the process may have ended; its status is not collected yet
 */
struct child {
	pid_t		pid;
	struct source	end;
	uint64_t	look;
	void		(*ready)(struct child *child);
};

extern struct store *store;
extern struct twheel_sched *sched;

/* The time of the store's clock, in us since 1970. */
int64_t now_us(void);
/* CLOCK_BOOTTIME in us, which nobody can set. */
int64_t boot_us(void);
/* Set the time of @task, so that it runs at @at, by the store's clock. */
void when_due(struct twheel_task *task, int64_t at);

int source_add(struct source *source);
/*
 * From now on call source->ready for these events of epoll(7), whether or not the source was added
 * before. If @events is 0, stop waiting for the source, but do not close it.
 */
void source_want(struct source *source, uint32_t events);
/* Stop waiting for the source, and close its descriptor. */
void source_remove(struct source *source);
/*
 * Watch for the end of a child whose @pid, @ready and @end.fd are set. If there is no descriptor or
 * no memory for that, look each second whether it has ended, and try again to watch it. This never
 * fails: the process has begun, and must not run twice.
 */
void child_watch(struct child *child);
/* Stop watching, and forget the process. */
void child_forget(struct child *child);

/* Make the wheel and the loop. If that fails, the program ends. */
void core_open(void);
/* Wait for events for @ms, or for ever with -1, and handle those that come. */
void core_wait(int ms);
/*
 * Begin a life: read the store, and take over what dead lives have left. If that fails, the program
 * ends.
 */
void core_start(void);
/* Run until core_stop(). */
void core_loop(void);
void core_stop(void);

/* Write the pending turn now, and begin what it has decided. Returns false if the store fails. */
bool core_flush(void);

/*
 * May a run begin now? Not if the lease is over: another daemon may have begun the run. Nor if it
 * is time to renew the lease, since beginning many runs takes long: after that, the loop calls
 * runs_begin() again.
 */
bool core_may_begin(void);

/*
 * Add an operation to the next turn, in the lane of @job: so the operation is written after those
 * that were decided for @job before. The pointer is valid until the next call.
 */
struct op *core_op(enum op_type type, const struct job *job);

/*
 * A row of the table due was added, or has another time: arm its timer. Rows of other daemons'
 * parts are ignored.
 */
void core_arm(int64_t id, int64_t job, int64_t at);
void core_disarm(int64_t id);
/* Rows were added to the table due, and their ids are not known: read them. */
void core_reload(void);
/* The store has refused a firing, so its row in memory was wrong: read all rows again soon. */
void core_refused(void);
/* Bring memory up to date with what other daemons have changed. */
void core_refresh(void);
/* The store has firings of @job that are not in memory: take them over soon. */
void core_take_over(int64_t job);
/* Returns true while the store cannot be written. Then nothing begins. */
bool core_stuck(void);
/* How many late firings wait for their turn, because not all may begin at once. */
size_t core_paced(void);

/* ---- jobs: registry.c --------------------------------------------------------------- */

/**
 * struct job - a job
 * @in_all:	its place among all jobs
 * @id:		its id in the store
 * @name:	its name; NULL if it was removed
 * @rev:	its revision: how often it was put
 * @paused:	see struct job_row
 * @broken:	why this version cannot understand its definition, or NULL
 * @unread:	the definition that it cannot understand, or NULL if that is not JSON
 * @def:	its definition; the one before, or none, if it is broken
 * @due_id:	see struct job_row
 * @due_at:	see struct job_row
 * @runs:	firings that are not over
 * @nr_runs:	how many
 * @nr_queued:	how many of these are queued
 * @moved:	see pool_moved()
 * @alarm_timer: the scheduler's task at the end of the pause after an alarm, or 0
 * @alarm_held:	how many alarms were held back in that pause
 */
struct job {
	UT_hash_handle	in_all;
	int64_t		id;
	char		*name;
	int64_t		rev;
	bool		paused;
	char		*broken;
	struct json_object *unread;
	struct def	def;
	int64_t		due_id;
	int64_t		due_at;
	struct runs	runs;
	int64_t		nr_runs;
	int64_t		nr_queued;
	bool		moved;
	uint64_t	alarm_timer;
	int64_t		alarm_held;
};

/*
 * Read the calendars, and then the jobs of these parts, from the store. In this order, because the
 * jobs may need a calendar that is new. Returns 0 or a negative errno.
 */
int registry_load(uint64_t parts);
/* Read the calendars again. On an error they stay as they were. */
int days_load(void);
/*
 * Jobs were read, perhaps after the rules of their zones have changed. Correct when the jobs of our
 * parts are due. Returns 0 or a negative errno.
 */
int jobs_plan_again(void);
/* Another life has changed the job: read it again, or forget it. Returns 0 or a negative errno. */
int job_refresh(int64_t id);
/* A row of due was read. If it is of the job's schedule, note when the job is due. */
void job_is_due(const struct due *due);
struct job *job_by_id(int64_t id);
struct job *job_by_name(const char *name);
/* Call @fn for each job, in the order of names. */
void jobs_each(void (*fn)(void *arg, struct job *job), void *arg);
const char *job_name(const struct job *job);
/*
 * The definition that the store has, even if this version cannot understand it; NULL if that is not
 * JSON.
 */
struct json_object *job_definition(const struct job *job);

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
 * Requests that change jobs. They return 0, or a negative errno with a text in @error:
 *	-EINVAL		the request is wrong
 *	-ENOENT		there is no such job, run or calendar
 *	-EEXIST		there is such a job already
 *	-ESTALE		the job has another revision
 *	-EBUSY		another job needs it
 *	any other	the store could not be written
 */
int jobs_put(struct put *puts, size_t nr, char error[ERROR_MAX]);
int job_remove(const char *name, char error[ERROR_MAX]);
int job_pause(struct job *job, bool on, char error[ERROR_MAX]);
int job_add(struct job *job, struct due *rows, size_t nr, bool force, char error[ERROR_MAX]);
int job_cancel(struct job *job, const char *key, char error[ERROR_MAX]);
int days_put(const char *name, const int64_t *days, size_t nr, char error[ERROR_MAX]);
void job_forget(int64_t id);
/* Does another job name this one in "then"? */
bool job_is_needed(int64_t id);

/* ---- runs: run.c -------------------------------------------------------------------- */

/**
 * struct log - the output of a run
 * @fd:		its file, -1 until the run prints something
 * @size:	how many bytes were printed
 * @cut:	the end of the hole in its middle; negative if nothing more is kept
 */
struct log {
	int	fd;
	int64_t	size;
	int64_t	cut;
};

/**
 * struct process - the process of a run
 * @child:	the process itself; its id is 0 if there is none
 * @output:	the pipe of what it prints
 * @log:	where the output is kept
 * @cgroup:	the name of its cgroup's directory, or empty
 * @ended:	called when it has ended, with code and status as from waitid()
 * @may_begin:	asked after all that may take long: may the process still begin?
 * @no_user:	it could not begin because its user could not be looked up
 * @asked:	the number of its question, see quick_ask(); 0 if it has none
 */
struct process {
	struct child	child;
	struct source	output;
	struct log	log;
	char		cgroup[136];
	void		(*ended)(struct run *run, int code, int status);
	bool		(*may_begin)(void);
	bool		no_user;
	uint64_t	asked;
};

/**
 * struct run - a firing that is not over
 * @in_job:	link in its job's list, in the order of firing
 * @in_ready:	link in the list of runs that may begin
 * @ready:	that list, or NULL
 * @job:	its job
 * @firing:	the row in the store; the run owns its @arg
 * @written:	the store has this row. Until that is so, the store may refuse the run
 * @began:	when the present attempt began
 * @process:	the process of that attempt
 * @call:	the request that is this attempt, or NULL
 * @away:	the attempt is in the store's table of tasks: a runner may have it, or somebody
 *		has accepted it; see pool.c
 * @accepted:	it is away because a receiver has accepted it, and its task is not entered yet
 * @tasks:	there may be rows of it in the table of tasks
 * @unkilled:	pool_kill() was called for it, but the store could not be written
 * @shards_over: while pool.c looks at that table: how many parts of the run are over
 * @worst:	the worst outcome of these parts
 * @status:	the status of the part with that outcome
 * @ending:	if it was told to end: the outcome that it will have
 * @timer:	the scheduler's task that this run waits for
 * @late:	the scheduler's task for when it should have begun, or 0
 * @in_all:	its place among all runs
 */
struct run {
	TAILQ_ENTRY(run)	in_job;
	TAILQ_ENTRY(run)	in_ready;
	struct runs		*ready;
	struct job		*job;
	struct firing		firing;
	bool			written;
	int64_t			began;
	struct process		process;
	struct call		*call;
	bool			away;
	bool			accepted;
	bool			tasks;
	bool			unkilled;
	int64_t			shards_over;
	enum outcome		worst;
	int64_t			status;
	enum outcome		ending;
	uint64_t		timer;
	uint64_t		late;
	UT_hash_handle		in_all;
};

/* How many runs a request for work can name, see BODY_MAX. */
#define RUNNER_RUNS	10000

extern int64_t max_running, default_keep;
extern size_t nr_running;

/*
 * The time of a firing has come: by the job's policy run it, let it wait, or skip it. If it would
 * be skipped because of a run that the store may still refuse, this does nothing and returns false:
 * then call it again soon.
 */
bool run_fire(struct job *job, int64_t id, int64_t at, const struct plan *plan, int64_t now);
/* A firing was found in the store that this life does not know: note it for runs_found(). */
void run_found(const struct firing *firing);
/* Take over the firings that were found: decide about each, as its job's definition says. */
void runs_found(void);
/* An operation of run.c has been written: continue with what depended on it. */
void run_settle(struct op *op);
/* Begin the runs that may begin, because the turns that say so are written. */
void runs_begin(void);
void run_kill(struct run *run, enum outcome outcome);
/*
 * If no run of the job is active, the one that has been queued the longest may begin; if its runs
 * may overlap, all that are queued may.
 */
void runs_next(struct job *job);
/*
 * The job was removed. Its runs that have no process and no request, and are not away, are over.
 * Tasks that no runner has taken are killed.
 */
void runs_forget(struct job *job);
/*
 * The lease is over. Kill processes at once: all of them, or those of jobs whose runs must not
 * overlap. These runs are lost.
 */
void runs_kill(bool all);
/*
 * Between runs_guard(true) and runs_guard(false) the caller may wait for long, for a name server
 * say. If the lease ends meanwhile, a signal's handler kills the processes of jobs whose runs must
 * not overlap. The caller must not change a run in between.
 */
void runs_guard(bool on);
/*
 * The timer of runs_guard(): at @end, by CLOCK_BOOTTIME, a signal's handler calls @over(). If @end
 * is 0, the timer is disarmed. @over must be the same in each call.
 */
void guard_until(int64_t end, void (*over)(int sig));
struct run *run_find(int64_t id, int64_t at);
/* Has the present attempt begun? If a run is away, it may not have; is_out() of run.c differs. */
static inline bool run_is_out(const struct run *run)
{
	return run->began;
}

/*
 * The present attempt is over, with success if @good, and nothing of it is left here. If it was
 * told to end, its outcome is the one that run_kill() was given.
 */
void run_over(struct run *run, bool good, int64_t status);
/*
 * Put a run that may begin into the list of the runs that this daemon executes itself, or of those
 * that runners execute.
 */
void run_ready(struct run *run);
/*
 * The job's definition was replaced, and the run has not begun. Decide again where it begins: here
 * or at a runner.
 */
void run_elsewhere(struct run *run);
/* The present attempt was lost. */
void run_lost(struct run *run);
/* The present attempt, which is away, has begun at @began. */
void run_went(struct run *run, int64_t began);
void runs_each(void (*fn)(void *arg, struct run *run), void *arg);
bool runs_stopped(void);
void runs_stop(void);

/* ---- processes: exec.c, quick.c, cgroup.c, log.c ------------------------------------ */

/* Start the process of a run. Returns 0, or a negative errno if that is not possible now. */
int exec_begin(struct run *run);
void exec_signal(struct run *run, int sig);
/* The end of the run is known: end the processes that it has left, and free what it used. */
void exec_end(struct run *run);
/* If the process has ended, call its ended() now: the loop would only do so later. */
void exec_look(struct run *run);
void exec_setup(const char *state);
/* Find out without which file systems nothing works, see quick.c. */
void quick_setup(const char *state);
/* May a child of vfork() go to the home directory, and begin the program @name there? */
bool quick_may(const char *name);
/*
 * Let a child find out what quick_may() is to return for @name. Returns the number of this
 * question, for quick_answer() in the child and for quick_learn(); or 0 if there is nothing to ask,
 * because no child of vfork() may go to the home directory.
 */
uint64_t quick_ask(const char *name);
/* In the child: answer question @nr. This may take as long as the file systems take. */
void quick_answer(uint64_t nr);
/* The child has ended: remember its answer to question @nr, if it gave one. */
void quick_learn(uint64_t nr);
/*
 * What distinguishes the state directory from all others on this machine: device and inode. In
 * containers, several directories may have the same path.
 */
const char *state_id(const char *state);
/* A variable in the environment of each run: by it the next daemon finds what this one has left. */
#define STATE_MARK	"TWHEEL_STATE_ID=%s"

/* Undo exec_setup(), before another program is executed in this process. */
void exec_undo(void);
/* Let the next program that is executed get only the standard descriptors. */
void close_at_exec(void);

/* @dir is the cgroup to use, NULL for the daemon's own, or "none"; @state the state directory. */
void cgroup_setup(const char *dir, const char *state);
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
/* Append to a log that this daemon has begun. */
void log_write(const struct firing *firing, struct log *log, const char *data, size_t size);
/*
 * Append to a log some output that a runner has sent. This output begins at byte @from of all the
 * output of the run; or, if @from is -1, where the log ends. Bytes that the log has already are
 * skipped. Returns how many bytes of the output the log has now, or a negative errno. If @firing
 * has several shards, all parts share this log; else the log counts as a piece until log_whole().
 */
int64_t log_append(const struct firing *firing, int64_t from, const char *data, size_t size);
void log_close(struct log *log);
/* Of a log that log_append() writes: how many bytes of the output it has. */
int64_t log_size(const struct firing *firing);
/* The run is over, so the log that log_append() has written is no piece any more but whole. */
void log_whole(const struct firing *firing);
/* Open the log of a firing for reading. Returns a descriptor, or a negative errno. */
int log_open(const struct firing *firing);
/* log_open() for a log that is a piece: another daemon may have more of the output. */
int log_open_piece(const struct firing *firing);
void log_remove(const struct firing *firing);
/*
 * Remove the logs of firings for which @keep returns false. A call looks at most at @nr logs, and
 * the next call continues. Returns whether more are left; if not, the next call begins anew.
 */
bool log_prune(bool (*keep)(const struct firing *firing), unsigned int nr);
/* Remove all logs. */
void log_clear(void);

/* ---- runs elsewhere: pool.c, web.c ---------------------------------------------------- */

/* Begin a run that is an HTTP request. Returns 0 or a negative errno. */
int web_begin(struct run *run);
void web_cancel(struct run *run);

/* Runs that runners may take, in the order in which they became ready. */
extern struct runs pool_ready;
/* Enter the runs of pool_ready into the table of tasks. */
void pool_begin(void);
/* The receiver of a request has accepted the run, and will report its end. */
void pool_accepted(struct run *run);
/* Tell a run that is away to end; or, if @gently, only keep it from beginning. */
void pool_kill(struct run *run, bool gently);
/* Find out which of the firings that were just found are away. Returns 0 or a negative errno. */
int pool_found(uint64_t parts);
/* The job's definition was replaced: its runs may have to wait in another pool, or begin here. */
void pool_moved(struct job *job);
/* A run that had tasks is over: delete them soon. */
void pool_clean(void);
/* The table of tasks has changed: look at it soon. */
void pool_changed(void);
/* Look at the table of tasks now, unless that was just done. This may free runs that are over. */
void pool_look(void);
/* How long a runner keeps its runs after its last request, in us. */
int64_t pool_lease(void);
/*
 * Runners' leases that end before the returned time, by the clock of now_us(), are over. Runners
 * that live may have been unable to renew theirs: because this daemon has just begun, because it
 * stood still, because its clock was set, or because its store could not be written. Then 0 is
 * returned for as long as a lease takes, so that no lease counts as over.
 */
int64_t pool_over_before(void);
/* The store could not be written: for as long as a lease takes, pool_over_before() is 0. */
void pool_spare(void);
void pool_start(void);

/* ---- alarms: alarm.c ------------------------------------------------------------------ */

/* The program that sends mail. How many alarms were delivered, and how many were not. */
extern const char *sendmail;
extern uint64_t alarms_sent, alarms_failed;

/* A row was written into history: send an alarm, if its job asks for one. */
void alarm_ended(const struct ended *line);
/*
 * The daemon ends: print which alarms were not delivered. Processes of sendmail that have begun
 * continue; unless this process executes another program (@again), which would not know these
 * children.
 */
void alarms_end(bool again);
/* A firing has not begun in time: send the alarm that its job asks for. */
void alarm_late(struct job *job, const struct firing *firing);

/* ---- requests to others: out.c -------------------------------------------------------- */

struct call;

/**
 * struct reply - what became of a request
 * @status:	the HTTP status; 0 if there is no answer
 * @error:	why there is no answer
 * @body:	the body of the answer, which ends with a 0 that @size does not count; NULL if empty
 * @size:	its size
 */
struct reply {
	int		status;
	const char	*error;
	const char	*body;
	size_t		size;
};

/**
 * struct post - a request to be sent, by POST. The texts are copied
 * @url:	where to
 * @socket:	the path of a Unix socket to send it to, whatever @url says; or NULL
 * @headers:	headers, as "Name: value", ended by NULL; or NULL
 * @body:	its body
 * @size:	the size of @body
 * @timeout:	how long it may take, in us; 0 for ever
 * @most:	how many bytes of the answer's body to keep
 * @whole:	if the body is longer than @most, the request has failed
 * @keep:	send it on a connection that an earlier request has left open, if there is one, and
 *		leave the connection open. If the other side closes such a connection without an
 *		answer, the request is sent once more
 * @fn:		called when it is over, unless call_cancel() was called before
 * @arg:	its first argument
 */
struct post {
	const char	*url;
	const char	*socket;
	const char *const *headers;
	const char	*body;
	size_t		size;
	int64_t		timeout;
	size_t		most;
	bool		whole;
	bool		keep;
	void		(*fn)(void *arg, const struct reply *reply);
	void		*arg;
};

/* Begin a request. NULL if there is no memory, or if the address cannot be understood. */
struct call *call_begin(const struct post *post);
/* Give a request up: its function is not called. */
void call_cancel(struct call *call);

/* ---- this daemon: main.c ------------------------------------------------------------- */

/*
 * The key of the last life of a daemon in this directory, or 0. *@next becomes the key for the life
 * that is about to begin. That key is in the directory when old_life() returns. If a daemon died
 * between old_life() and keep_life(), its life may have begun or not: then *@next is its key again.
 */
int64_t old_life(int64_t *next);
/* This life has begun: write its number and its key into the directory. */
void keep_life(void);
/* Execute the program again, as another life. The processes of runs have been killed before. */
noreturn void begin_again(void);
/* The store cannot be used at the start: end the program, or begin again. @err is why, or 0. */
noreturn void give_up(int err);

/* The name of this machine among those that share the store. */
const char *machine_name(void);
/* How many descriptors this process may have. */
int64_t files_max(void);

/* ---- a runner: runner.c --------------------------------------------------------------- */

/* Add a daemon from which to take runs. Returns NULL, or what @url is that it must not be. */
const char *runner_add(const char *url);
/* Take runs of this pool. */
void runner_start(const char *pool);
/* From now on, use this token, which is copied, or with NULL none. */
void runner_token(const char *token);
/* Run until runner_stop() is called, and after that until no run is left. */
void runner_loop(void);
void runner_stop(void);

/* ---- HTTP: http.c, api.c, take.c, metrics.c ----------------------------------------- */

/*
 * Parse the id of a run, such as 12-1798761600000000. Returns false if @text is NULL or is no such
 * id. Whether there is such a run is not checked.
 */
bool run_parse(const char *text, struct firing *f);

/* Answer requests that come in at a socket; if @remote, only those that have a token. */
void api_start(int listener, bool remote);
void api_stop(void);
/* The loop begins another turn: there is time for requests again. */
void api_turn(void);
/* Something has happened that requests may wait for: see request_wait(). */
void api_wake(const void *what);
/*
 * Replace the tokens by those in a file. If that fails, the old ones stay, and this returns false
 * with a text in @error.
 */
bool tokens_read(const char *path, char error[ERROR_MAX]);
/* The first token in the file that may do what a runner does, or NULL. */
const char *token_to_run(void);
/* There may be work or news for runners that wait: look soon. */
void idle_look(void);
/* A turn was written: count what it has done. */
void count_turn(const struct op *ops, size_t nr);
const char *outcome_name(enum outcome outcome);

#endif
