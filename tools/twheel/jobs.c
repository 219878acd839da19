// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * after, at, every and cron: commands at their time. run.c reads those of a file.
 *
 * Each command is a task of a scheduler whose threads start it and wait for it. So the
 * scheduler's promises for tasks hold for commands: never early, never twice at once, and a
 * slow one delays no other (up to --jobs). Missed times are treated as --missed asks.
 *
 * The first thread waits for signals, and shows the time until the next command if somebody is
 * looking. child.c passes the signals on, and has the commands' processes.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs.h"

#define EXPLAINED	"5"

const char *file;
struct child_options child_options;
atomic_size_t left;
atomic_int running;
atomic_uint changes;
atomic_bool any_failed;
pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;

static bool single;		/* one job, of the command line */
static FILE *reports;		/* where the lines of JSON go, or NULL */
static atomic_int report_error;	/* errno of a line that could not be written */
static int wake_fd;		/* an eventfd: wakes the first thread */

/* ---- the words ---------------------------------------------------------------- */

bool wrong(const struct job *job, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (job->line)
		error_at_line(0, 0, file, (unsigned int)job->line, "%s", text);
	else
		error(0, 0, "%s", text);
	return false;
}

static const struct option job_options[] = {
	{ "within", required_argument, NULL, OPT_WITHIN },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "now", no_argument, NULL, OPT_NOW },
	{ "fixed-delay", no_argument, NULL, OPT_DELAY },
	{ "missed", required_argument, NULL, OPT_MISSED },
	{ "zone", required_argument, NULL, OPT_ZONE },
	{ "jitter", required_argument, NULL, OPT_JITTER },
	{ "explain", optional_argument, NULL, OPT_EXPLAIN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "json-fd", required_argument, NULL, OPT_JSON_FD },
	{ "kill-after", required_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/**
 * struct words - what the words of a job say, before it is checked whether they fit together
 * @when:	a duration, a time, or an expression of cron; NULL if not found yet
 * @within_ns:	the duration of --within
 * @calendar:	@when is an expression of cron
 * @now:	--now was given
 * @delay:	--fixed-delay was given
 * @missed:	the argument of --missed, or NULL
 * @phrase:	room for @when, if a phrase stands for it
 */
struct words {
	const char	*when;
	int64_t		within_ns;
	bool		calendar;
	bool		now;
	bool		delay;
	const char	*missed;
	char		phrase[PHRASE_MAX];
};

/* --json-fd: write reports to descriptor @fd, which our caller opened. Commands do not get it. */
static bool set_report_fd(const struct job *job, const char *fd)
{
	uint64_t n;
	int flags;

	if (!parse_count(fd, 0, INT32_MAX, &n))
		return wrong(job, "invalid number '%s'", fd);
	flags = fcntl((int)n, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return wrong(job, "file descriptor %s is not open for writing", fd);
	if (n > STDERR_FILENO)
		fcntl((int)n, F_SETFD, FD_CLOEXEC);
	reports = fdopen((int)n, "w");
	return reports || wrong(job, "file descriptor %s: %s", fd, strerror(errno));
}

bool common_option(const struct job *job, int c, bool *good)
{
	*good = true;
	switch (c) {
	case OPT_JSON:
		reports = stdout;
		return true;
	case OPT_JSON_FD:
		*good = set_report_fd(job, optarg);
		return true;
	case 'k':
		*good = parse_duration(optarg, &child_options.kill_after) ||
			wrong(job, "invalid duration '%s'", optarg);
		/* At once; 0 stands for never. */
		child_options.kill_after += !child_options.kill_after;
		return true;
	}
	return false;
}

/* What error messages call the time of job @name. */
static const char *time_word(const char *name)
{
	if (!strcmp(name, "cron"))
		return "expression";
	return strcmp(name, "at") ? "duration" : "time";
}

/* Report the option in @word, for which getopt_long() returned @c: '?' or ':'. */
static bool wrong_option(const struct job *job, const char *name, int c, const char *word)
{
	if (c == ':')
		return wrong(job, "option '%s' requires an argument", word);
	if (isdigit((unsigned char)word[1]) || word[1] == '.')
		return wrong(job, "invalid %s '%s'", time_word(name), word);
	if (word[1] == '-' && optopt)
		return wrong(job, "option '%.*s' doesn't allow an argument",
			     (int)strcspn(word, "="), word);
	return wrong(job, "unrecognized option '%s'", word);
}

bool is_recurring(const char *name)
{
	return !strcmp(name, "every") || !strcmp(name, "cron");
}

/* Take an option that only recurring jobs have. */
static bool set_job_option(struct job *job, int c, struct words *words)
{
	switch (c) {
	case OPT_COUNT:
		return parse_count(optarg, 1, UINT64_MAX, &job->count) ||
		       wrong(job, "invalid number '%s'", optarg);
	case OPT_NOW:
		words->now = true;
		return true;
	case OPT_DELAY:
		words->delay = true;
		return true;
	case OPT_MISSED:
		words->missed = optarg;
		return true;
	case OPT_ZONE:
		job->calendar.zone_name = optarg;
		return true;
	case OPT_JITTER:
		return parse_duration(optarg, &job->calendar.jitter_ns) ||
		       wrong(job, "invalid duration '%s'", optarg);
	default:
		return parse_count(optarg ?: EXPLAINED, 1, UINT16_MAX, &job->calendar.explain) ||
		       wrong(job, "invalid number '%s'", optarg);
	}
}

/* Take option @c, which getopt_long() found in @word. */
static bool set_option(struct job *job, int c, char **argv, const char *word, struct words *words)
{
	bool good;

	if (c == '?' || c == ':')
		return wrong_option(job, argv[0], c, word);
	if (c == 'h' && !job->line)
		help(argv[0]);
	if (!job->line && common_option(job, c, &good))
		return good;
	if (c == OPT_WITHIN)
		return parse_duration(optarg, &words->within_ns) ||
		       wrong(job, "invalid duration '%s'", optarg);
	if (!is_recurring(argv[0]) || c > OPT_EXPLAIN)
		return wrong(job, "option '%.*s' is not allowed here",
			     (int)strcspn(word, "="), word);
	return set_job_option(job, c, words);
}

/* Check that the options fit together, once all of them are known. */
static bool check_options(const struct job *job, const struct words *words)
{
	const struct calendar *cal = &job->calendar;

	if (!cal->on && (cal->zone_name || cal->jitter_ns || cal->explain))
		return wrong(job, "%s are for times by the calendar",
			     "'--zone', '--jitter' and '--explain'");
	if (words->delay && cal->on)
		return wrong(job, "option '--fixed-delay' is not allowed with %s",
			     "times by the calendar");
	if (words->delay && words->missed)
		return wrong(job, "options '--fixed-delay' and '--missed' exclude each other");
	return !cal->explain || !job->line ||
	       wrong(job, "option '--explain' is not allowed here");
}

/*
 * Set the policy for missed times. Jobs by the calendar and jobs by a period have different
 * policies; the first in the list is the default.
 */
static bool set_policy(struct job *job, const struct words *words)
{
	static const char *const by_calendar[] = { "once", "skip", "burst" };
	static const char *const by_period[] = { "skip", "burst", "delay" };
	static const uint32_t flags[] = { TWHEEL_MISSED_SKIP, 0, TWHEEL_MISSED_DELAY };
	const char *const *policies = job->calendar.on ? by_calendar : by_period;
	unsigned int i = 0;

	while (words->missed && i < 3 && strcmp(words->missed, policies[i]))
		i++;
	if (i == 3)
		return wrong(job, "invalid argument '%s' for '--missed'", words->missed);
	if (job->calendar.on)
		job->calendar.missed = i;
	else
		job->task.flags |= words->delay ? TWHEEL_TASK_DELAY : flags[i];
	return true;
}

/* Set a time that is not by the calendar. */
static bool set_time(struct job *job, const char *name, const char *s)
{
	int64_t now = time_now(CLOCK_REALTIME);

	if (!strcmp(name, "at")) {
		job->task.flags = TWHEEL_TASK_AT;
		if (!parse_time(s, now, &job->task.when_ns))
			return wrong(job, "invalid time '%s'", s);
		return job->task.when_ns >= now || wrong(job, "'%s' has passed", s);
	}
	if (!parse_duration(s, &job->task.when_ns))
		return wrong(job, "invalid duration '%s'", s);
	if (strcmp(name, "every"))
		return true;
	job->task.period_ns = job->task.when_ns;
	return job->task.period_ns >= NS_PER_MS || wrong(job, "'%s' is less than 1ms", s);
}

/*
 * Take the time of job @name from the words at @argv. After "every" a duration begins with a digit,
 * and a phrase of the calendar with a letter.
 */
static bool take_when(struct job *job, struct words *words, const char *name, char *const *argv,
		      int nr)
{
	int n = 1;

	words->when = argv[0];
	words->calendar = !strcmp(name, "cron");
	if (!strcmp(name, "every") && isalpha((unsigned char)*argv[0])) {
		n = calendar_phrase(argv, nr, words->phrase);
		words->when = words->phrase;
		words->calendar = true;
	}
	optind += n;
	return n || wrong(job, "invalid duration or time '%s'", argv[0]);
}

/* Set the time that take_when() has found. */
static bool set_when(struct job *job, const struct words *words, const char *name)
{
	char text[CRON_ERROR];

	if (words->calendar)
		return calendar_set(&job->calendar, words->when, words->now, text) ||
		       wrong(job, "%s", text);
	if (!set_time(job, name, words->when))
		return false;
	if (words->now)
		job->task.when_ns = 0;
	return true;
}

/* Parse the options before argv[@end], and the time among them. */
static bool parse_options(struct job *job, int argc, char **argv, int end, struct words *words)
{
	const char *word;
	int c;

	opterr = 0;
	optind = 0;
	for (;;) {
		word = argv[optind ? optind : 1];
		c = getopt_long(argc, argv, "+:hk:", job_options, NULL);
		if (c != -1 && !set_option(job, c, argv, word, words))
			return false;
		if (c != -1)
			continue;
		if (words->when || optind >= end)
			break;
		if (!take_when(job, words, argv[0], &argv[optind], end - optind))
			return false;
	}
	return words->when || wrong(job, "missing %s after '%s'", time_word(argv[0]), argv[0]);
}

bool parse_job(struct job *job, int argc, char **argv, int end)
{
	struct words words = { 0 };

	if (!parse_options(job, argc, argv, end, &words) || !set_when(job, &words, argv[0]) ||
	    !check_options(job, &words))
		return false;
	if (is_recurring(argv[0]) && !set_policy(job, &words))
		return false;
	if (job->calendar.on)
		job->task = calendar_task(&job->calendar);
	job->task.tolerance_ns = words.within_ns;
	if (optind < argc)
		job->argv = &argv[optind];
	if (job->task.period_ns && !job->argv && !job->calendar.explain)
		return wrong(job, "missing command after '%s'", argv[0]);
	return true;
}

/* ---- what is shown and told -------------------------------------------------------- */

/* Returns how many tasks wait. *@next becomes the time until the first of them is due, in ns. */
static int next_of(struct twheel_sched *sched, int64_t *next)
{
	int64_t wall = time_now(CLOCK_REALTIME), boot = time_now(CLOCK_BOOTTIME);
	struct twheel_task_info *list;
	int n = twheel_sched_list(sched, &list), waiting = 0;

	*next = INT64_MAX;
	for (int i = 0; i < n; i++) {
		int64_t in = list[i].due_ns - (list[i].flags & TWHEEL_TASK_AT ? wall : boot);

		if (list[i].state != TWHEEL_TASK_WAITING)
			continue;
		waiting++;
		if (in < *next)
			*next = in;
	}
	if (n >= 0)
		free(list);
	return waiting;
}

/*
 * Show on the status line when the next job is due. The line first appears if that is a second
 * ahead.
 */
static void show_next(struct twheel_sched *sched)
{
	int64_t next;
	int waiting = next_of(sched, &next);
	char buf[32];

	if (!waiting || (next < NS_PER_S && !line_shown()))
		return;
	next = next < 0 ? 0 : (next + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
	show_duration(next, buf);
	if (single)
		line_show("in %s", buf);
	else
		line_show("next in %s, %d pending", buf, waiting);
}

/* A job has begun, ended or changed: let the first thread look. */
static void wake(void)
{
	changes++;
	eventfd_write(wake_fd, 1);
}

/* Is it a pipe or a socket, whose other end may go away or not read? */
static bool is_pipe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Has the reader at the other end of this pipe gone? */
static bool is_broken(int fd)
{
	struct pollfd p = { .fd = fd };

	return is_pipe(fd) && poll(&p, 1, 0) > 0;
}

/* Write a line of JSON about a run. An error is noted, for the first thread. */
static void report(const struct job *job, const struct run_info *run, int status, int64_t late,
		   int64_t took)
{
	struct json_object *o = json_object_new_object();
	char buf[48];
	int err;

	if (job->line)
		json_int(o, "line", (int64_t)job->line);
	json_int(o, "run", (int64_t)run->nr);
	json_string(o, "due", run_due(&job->calendar, run, buf));
	json_int(o, "late_ns", late);
	json_int(o, "missed", (int64_t)run->all_missed);
	json_int(o, "took_ns", took);
	json_int(o, "status", status);
	err = json_write(reports, o);
	if (err)
		report_error = err;
}

/* ---- running ----------------------------------------------------------------------- */

/* Run the command. Returns its exit status as a shell does, or CHILD_STOPPED. */
static int execute(struct job *job, const struct run_info *run)
{
	bool ran = true;
	int status;
	char **env;

	if (!job->argv)
		return 0;
	env = run_environ(&job->calendar, run);
	running++;
	wake();
	status = child_run(job->argv, env, &job->dropped, &ran);
	running--;
	free(env);
	if (!ran && status != CHILD_STOPPED)
		job->failed = true;
	/* The reader of what the commands print has gone: nobody needs the next run. */
	if (single && status == 128 + SIGPIPE && is_broken(STDOUT_FILENO))
		report_error = EPIPE;
	return status;
}

/* Fill in @run for the call of a task. Returns false if the command is not to run now. */
static bool begin_run(struct job *job, const struct twheel_task_info *task, int64_t late,
		      struct run_info *run)
{
	if (job->calendar.on)
		return calendar_run(&job->calendar, task, run);
	*run = (struct run_info) {
		.due_ns = time_now(CLOCK_REALTIME) - late, .nr = task->runs,
		.missed = task->missed - job->missed, .all_missed = task->missed,
	};
	job->missed = task->missed;
	return true;
}

/* Count a run that has ended, for --metrics. */
static void count_run(struct job *job, const struct run_info *run, int status, int64_t late,
		      int64_t took)
{
	struct job_stats *stats = &job->stats;

	pthread_mutex_lock(&jobs_lock);
	stats->runs++;
	stats->failures += status != 0;
	stats->missed = run->all_missed;
	stats->late_ns += late;
	stats->took_ns += took;
	stats->status = status;
	stats->ended_ns = time_now(CLOCK_REALTIME);
	if (!status)
		stats->succeeded_ns = stats->ended_ns;
	pthread_mutex_unlock(&jobs_lock);
}

/* The function of every task, called in a thread of the scheduler. */
static void job_run(void *arg, const struct twheel_task_info *task)
{
	clockid_t clock = task->flags & TWHEEL_TASK_AT ? CLOCK_REALTIME : CLOCK_BOOTTIME;
	int64_t late = time_now(clock) - task->due_ns, start = time_now(CLOCK_BOOTTIME);
	struct job *job = arg;
	struct run_info run;
	int64_t took;
	int status;

	if (!begin_run(job, task, late, &run))
		return;
	line_clear();
	status = execute(job, &run);
	took = time_now(CLOCK_BOOTTIME) - start;
	if (status != CHILD_STOPPED)
		count_run(job, &run, status, late, took);
	if (status != CHILD_STOPPED && reports)
		report(job, &run, status, late, took);
	if (status > 0) {
		job->status = status;
		any_failed = true;
	}
	/* What cannot be run now cannot be run later. */
	if ((job->count && run.nr >= job->count) ||
	    (single && job->failed && status != EXIT_CANCELED))
		twheel_sched_cancel(task->sched, task->id, 0);
	wake();
}

void job_free(struct job *job)
{
	zone_free(&job->calendar.zone);
	if (job->argv)
		free(job->argv[3]);
	free(job->argv);
	free(job->text);
	free(job);
}

/* The release() of every task, called in any thread. */
static void job_over(void *arg)
{
	struct job *job = arg;
	bool dropped;

	pthread_mutex_lock(&jobs_lock);
	job->over = true;
	dropped = job->dropped;
	pthread_mutex_unlock(&jobs_lock);
	if (dropped)
		job_free(job);
	left--;
	wake();
}

/*
 * A run in progress continues. As soon as @dropped is set, the end of the task frees the job: do
 * not touch it after that. The id can still be used, because no other task ever gets it.
 */
void job_drop(struct twheel_sched *sched, struct job *job)
{
	uint64_t id = job->id;
	bool over;

	if (job->calendar.on)
		calendar_removed(&job->calendar);
	pthread_mutex_lock(&jobs_lock);
	job->dropped = true;
	over = job->over;
	pthread_mutex_unlock(&jobs_lock);
	if (over)
		job_free(job);
	else
		twheel_sched_cancel(sched, id, 0);
}

/* Add @job to the scheduler. Returns false, with the error reported, if that fails. */
static bool add_job(struct twheel_sched *sched, struct job *job)
{
	int err;

	job->task.fn = job_run;
	job->task.release = job_over;
	job->task.arg = job;
	left++;
	err = twheel_sched_add(sched, &job->task, &job->id);
	if (err) {
		left--;
		return wrong(job, "cannot arm a timer: %s", strerror(-err));
	}
	if (job->calendar.on)
		calendar_added(sched, &job->calendar, job->id);
	return true;
}

bool add_jobs(struct twheel_sched *sched, struct job **jobs, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (jobs[i]->kept || add_job(sched, jobs[i]))
			continue;
		while (i--) {
			if (jobs[i]->kept)
				continue;
			job_drop(sched, jobs[i]);
			jobs[i] = NULL;
		}
		return false;
	}
	return true;
}

/* The shorter of two waits; a negative one is for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* How many ms to wait at most, if nothing happens. */
static int wait_ms(bool looked_at, int ms)
{
	ms = sooner(children_kill_late(), ms);
	if (children_stopped())
		return sooner(ms, 500);
	return looked_at ? sooner(ms, 1000) : ms;
}

/* Would a write to @fd block now? */
static bool is_full(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return !poll(&p, 1, 0);
}

/* Have the commands ended after a signal, while nobody reads our own output? */
static bool is_held_up(void)
{
	return children_gone() &&
	       (is_full(STDERR_FILENO) || (reports && is_full(fileno(reports))));
}

/* Start nothing more. Returns the errno that is the reason, or 0: a signal is. */
static int stop_jobs(struct twheel_sched *sched)
{
	int err = children_stopped() ? 0 : report_error;

	if (err)
		children_stop(SIGTERM);
	twheel_sched_stop(sched, 0, NULL);
	return err;
}

/*
 * Wait until all jobs are over, and call @turn each time that something has happened. Returns the
 * errno of a report that could not be written, or 0.
 */
static int wait_jobs(struct twheel_sched *sched, turn_fn turn)
{
	struct pollfd p[3] = { { .fd = wake_fd, .events = POLLIN },
			       { .fd = children_fd(), .events = POLLIN }, { .fd = -1 } };
	bool looked_at = isatty(STDERR_FILENO) && !reports, stopped = false;
	int64_t start = time_now(CLOCK_MONOTONIC);
	eventfd_t events;
	int err = 0, ms;

	if (reports && is_pipe(fileno(reports)))
		p[2].fd = fileno(reports);
	while (left) {
		if (looked_at && !stopped && line_there() &&
		    (line_shown() || time_now(CLOCK_MONOTONIC) - start > NS_PER_S))
			show_next(sched);
		ms = turn && !stopped ? turn(sched) : -1;
		if (!left)
			break;
		if (poll(p, ARRAY_SIZE(p), wait_ms(looked_at, ms)) > 0 && p[2].revents)
			report_error = EPIPE;
		eventfd_read(wake_fd, &events);
		children_signals();
		if (stopped && !err && is_held_up())
			end_by_signal(children_stopped());
		if (stopped || !(report_error || children_stopped()))
			continue;
		stopped = true;
		p[2].fd = -1;
		err = stop_jobs(sched);
	}
	line_clear();
	return stopped ? err : report_error;
}

/*
 * End because output cannot be written. If the reader of a pipe has gone, end silently by SIGPIPE.
 */
noreturn static void end_by_report(int err)
{
	struct sigaction action;

	if (err == EPIPE && !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_IGN)
		end_by_signal(SIGPIPE);
	write_error(err);
}

/* Open the scheduler. With 0 @threads it runs nothing: it is only for checking the jobs. */
static struct twheel_sched *open_sched(uint32_t threads)
{
	struct twheel_sched_options options = { .threads = threads, .clockid = CLOCK_BOOTTIME };
	struct twheel_sched *sched;
	int err;

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		error(EXIT_CANCELED, errno, "eventfd");
	err = twheel_sched_open(&sched, &options);
	if (err)
		error(EXIT_CANCELED, -err, "cannot make a wheel");
	return sched;
}

void check_jobs(struct job **jobs, size_t nr)
{
	struct twheel_sched *sched = open_sched(0);

	if (!add_jobs(sched, jobs, nr))
		_exit(EXIT_CANCELED);
	twheel_sched_close(sched);
}

/*
 * The gate of child.c is closed while the jobs are added: a command that is due at once starts only
 * when it is sure that all jobs could be added, and that the clock is watched.
 */
void do_jobs(struct job **jobs, size_t nr, uint32_t threads, turn_fn turn)
{
	struct twheel_sched *sched;
	int err;

	children_begin(&child_options);
	sched = open_sched(threads);
	children_hold();
	if (!add_jobs(sched, jobs, nr))
		_exit(EXIT_CANCELED);
	calendar_watch(turn);
	children_release();
	err = wait_jobs(sched, turn);
	calendar_unwatch();
	twheel_sched_close(sched);
	if (turn)
		turn(NULL);
	if (err)
		end_by_report(err);
	if (children_stopped())
		end_by_signal(children_stopped());
}

/* after, at, every and cron: argv[0] says which. */
int cmd_job(int argc, char **argv)
{
	struct job job = { 0 }, *jobs = &job;

	if (!parse_job(&job, argc, argv, argc))
		try_help(EXIT_CANCELED);
	if (job.calendar.explain)
		return calendar_explain(&job.calendar, reports);
	single = true;
	do_jobs(&jobs, 1, 1, NULL);
	return job.status && job.task.period_ns && !job.failed ? 1 : job.status;
}
