// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * after, at, every, cron and run: commands at their time.
 *
 * Each command is a task of a scheduler whose threads start it and wait for it. So what
 * the scheduler promises of tasks is true of commands: never early, never twice at once, a
 * slow one delays no other (up to --jobs), and what is to happen to missed times.
 *
 * The first thread waits for signals, and shows how long it will take if someone looks. What
 * becomes of the signals and of the commands' processes is in child.c.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#include "child.h"

#define JOBS_DEFAULT	32
#define JOBS_MAX	1024
#define EXPLAINED	"5"
#define WORDS_MAX	64	/* of a line, before its command */

/**
 * struct job - a command and its time
 * @task:	its task; its arg is the job
 * @argv:	the command; NULL: none
 * @line:	of the file; 0: of the command line
 * @count:	how often to run it; 0: for ever, if it has a period
 * @status:	exit status of its last run, or the last that was not 0
 * @missed:	times before its last run that were left out
 * @calendar:	its times, if they are by the calendar
 * @failed:	twheel could not run it, and @status says why
 */
struct job {
	struct twheel_task	task;
	char			**argv;
	size_t			line;
	uint64_t		count;
	int			status;
	uint64_t		missed;
	struct calendar		calendar;
	bool			failed;
};

#define BLANKS	" \t"

static const char *file;
static bool single;
static struct child_options child_options;
static FILE *reports;		/* where the lines of JSON go; NULL: there are none */
static atomic_int report_error;	/* errno of a line that could not be written */
static struct job *jobs;
static size_t nr_jobs;
static atomic_size_t left;
static int wake_fd;		/* something has happened for the first thread to see */

/* ---- the words ---------------------------------------------------------------- */

/* Say what is wrong with a job, and where. */
__attribute__((format(printf, 2, 3)))
static bool wrong(const struct job *job, const char *fmt, ...)
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

enum {
	OPT_COUNT = 1, OPT_NOW, OPT_DELAY, OPT_MISSED,	/* of a job */
	OPT_ZONE, OPT_JITTER, OPT_EXPLAIN,		/* of a job by the calendar */
	OPT_JSON, OPT_JSON_FD,				/* of all that run commands */
	OPT_JOBS, OPT_CHECK, OPT_LOCK			/* of run */
};

static const struct option job_options[] = {
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
 * struct words - what the words of a job say, before it is known if they agree
 * @when:	a duration, a time, or an expression of cron; NULL: not found yet
 * @calendar:	it is that
 * @now:	--now
 * @delay:	--fixed-delay
 * @missed:	of --missed, or NULL
 * @phrase:	what a phrase means
 */
struct words {
	const char	*when;
	bool		calendar;
	bool		now;
	bool		delay;
	const char	*missed;
	char		phrase[PHRASE_MAX];
};

/* @fd is a descriptor that the caller has opened for us, and not for the commands. */
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

/* What the commands on the command line have in common. False if @c is no such option. */
static bool common_option(const struct job *job, int c, bool *good)
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
		return true;
	}
	return false;
}

/* What the time of a command is called. */
static const char *time_word(const char *name)
{
	if (!strcmp(name, "cron"))
		return "expression";
	return strcmp(name, "at") ? "duration" : "time";
}

/* An option that getopt_long() did not take: '?' or ':'. @word is what it looked at. */
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

static bool is_recurring(const char *name)
{
	return !strcmp(name, "every") || !strcmp(name, "cron");
}

/* An option of a job that recurs. */
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

/* @c: what getopt_long() gave for @word. */
static bool set_option(struct job *job, int c, char **argv, const char *word, struct words *words)
{
	bool good;

	if (c == '?' || c == ':')
		return wrong_option(job, argv[0], c, word);
	if (c == 'h' && !job->line)
		help(argv[0]);
	if (!job->line && common_option(job, c, &good))
		return good;
	if (!is_recurring(argv[0]) || c > OPT_EXPLAIN)
		return wrong(job, "option '%.*s' is not allowed here",
			     (int)strcspn(word, "="), word);
	return set_job_option(job, c, words);
}

/* What options there may be together is known when all are. */
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
 * What becomes of missed times. Those by the calendar, and those by a period, have each a policy
 * that the other has not; the first one is that of who asks for none.
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

static bool set_time(struct job *job, const char *name, const char *s)
{
	int64_t now = time_now(CLOCK_REALTIME);

	if (!strcmp(name, "at")) {
		job->task.flags = TWHEEL_TASK_AT;
		if (!parse_time(s, now, &job->task.when_ns))
			return wrong(job, "invalid time '%s'", s);
		return job->task.when_ns >= now || wrong(job, "'%s' is over", s);
	}
	if (!parse_duration(s, &job->task.when_ns))
		return wrong(job, "invalid duration '%s'", s);
	if (strcmp(name, "every"))
		return true;
	job->task.period_ns = job->task.when_ns;
	return job->task.period_ns >= NS_PER_MS || wrong(job, "'%s' is less than 1ms", s);
}

/* After "every" a duration begins with a digit, and what is by the calendar with a letter. */
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

/* Options, and among them a time, before argv[@end]. */
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

/*
 * NAME TIME [OPTION]... [--] [COMMAND]; options may come before the time too. From
 * argv[@end] on there is no time any more.
 */
static bool parse_job(struct job *job, int argc, char **argv, int end)
{
	struct words words = { 0 };

	if (!parse_options(job, argc, argv, end, &words) || !set_when(job, &words, argv[0]) ||
	    !check_options(job, &words))
		return false;
	if (is_recurring(argv[0]) && !set_policy(job, &words))
		return false;
	if (job->calendar.on)
		job->task = calendar_task(&job->calendar);
	if (optind < argc)
		job->argv = &argv[optind];
	if (job->task.period_ns && !job->argv && !job->calendar.explain)
		return wrong(job, "missing command after '%s'", argv[0]);
	return true;
}

/* ---- what is shown and told -------------------------------------------------------- */

/* How long it is until the next one, and how many wait. */
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

static void wake(void)
{
	eventfd_write(wake_fd, 1);
}

static bool is_pipe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Whoever reads the other end of this pipe has gone. */
static bool is_broken(int fd)
{
	struct pollfd p = { .fd = fd };

	return is_pipe(fd) && poll(&p, 1, 0) > 0;
}

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

/* The exit status, as a shell gives it, or CHILD_STOPPED. */
static int execute(struct job *job, const struct run_info *run)
{
	bool ran = true;
	int status;
	char **env;

	if (!job->argv)
		return 0;
	env = run_environ(&job->calendar, run);
	status = child_run(job->argv, env, &ran);
	free(env);
	if (!ran && status != CHILD_STOPPED)
		job->failed = true;
	/* Who was to read what the commands print has gone: nobody waits for the next one. */
	if (single && status == 128 + SIGPIPE && is_broken(STDOUT_FILENO))
		report_error = EPIPE;
	return status;
}

/* What a run is that a task is called for. False: there is none. */
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

/* A task's function. */
static void job_run(void *arg, const struct twheel_task_info *task)
{
	clockid_t clock = task->flags & TWHEEL_TASK_AT ? CLOCK_REALTIME : CLOCK_BOOTTIME;
	int64_t late = time_now(clock) - task->due_ns, start = time_now(CLOCK_BOOTTIME);
	struct job *job = arg;
	struct run_info run;
	int status;

	if (!begin_run(job, task, late, &run))
		return;
	line_clear();
	status = execute(job, &run);
	if (status != CHILD_STOPPED && reports)
		report(job, &run, status, late, time_now(CLOCK_BOOTTIME) - start);
	if (status > 0)
		job->status = status;
	/* What cannot be run now cannot be run later. */
	if ((job->count && run.nr >= job->count) ||
	    (single && job->failed && status != EXIT_CANCELED))
		twheel_sched_cancel(task->sched, task->id, 0);
	wake();
}

static void job_over(void *arg)
{
	(void)arg;
	left--;
	wake();
}

/* Returns 0, or an errno after having said which job cannot be added. */
static int add_jobs(struct twheel_sched *sched)
{
	uint64_t id;

	left = nr_jobs;
	for (size_t i = 0; i < nr_jobs; i++) {
		int err;

		jobs[i].task.fn = job_run;
		jobs[i].task.release = job_over;
		jobs[i].task.arg = &jobs[i];
		err = -twheel_sched_add(sched, &jobs[i].task, &id);
		if (err) {
			wrong(&jobs[i], "cannot arm a timer: %s", strerror(err));
			return err;
		}
		if (jobs[i].calendar.on)
			calendar_added(sched, &jobs[i].calendar, id);
	}
	return 0;
}

/* For how many ms to wait, if nothing happens. */
static int wait_ms(bool looked_at)
{
	int ms = children_kill_late();

	return looked_at && (ms < 0 || ms > 1000) ? 1000 : ms;
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

/* Wait until all jobs are over. Returns the errno of a report that could not be written, or 0. */
static int wait_jobs(struct twheel_sched *sched)
{
	struct pollfd p[3] = { { .fd = wake_fd, .events = POLLIN },
			       { .fd = children_fd(), .events = POLLIN }, { .fd = -1 } };
	bool looked_at = isatty(STDERR_FILENO) && !reports, stopped = false;
	int64_t start = time_now(CLOCK_MONOTONIC);
	eventfd_t events;
	int err = 0;

	if (reports && is_pipe(fileno(reports)))
		p[2].fd = fileno(reports);
	while (left) {
		if (looked_at && !stopped && line_there() &&
		    (line_shown() || time_now(CLOCK_MONOTONIC) - start > NS_PER_S))
			show_next(sched);
		if (poll(p, ARRAY_SIZE(p), wait_ms(looked_at)) > 0 && p[2].revents)
			report_error = EPIPE;
		eventfd_read(wake_fd, &events);
		children_signals();
		if (stopped || !(report_error || children_stopped()))
			continue;
		stopped = true;
		p[2].fd = -1;
		err = stop_jobs(sched);
	}
	line_clear();
	return stopped ? err : report_error;
}

/* Nothing can be told any more. Of a pipe without a reader others do not make words. */
noreturn static void end_by_report(int err)
{
	struct sigaction action;

	if (err == EPIPE && !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_IGN)
		end_by_signal(SIGPIPE);
	write_error(err);
}

/* @threads: 0: only see if the jobs can be added. */
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

/* Do all jobs, at most @threads at once. If one cannot be added, none is begun. */
static void do_jobs(uint32_t threads)
{
	struct twheel_sched *sched;
	int err = 0;

	if (!nr_jobs)
		return;
	if (threads)
		children_begin(&child_options);
	sched = open_sched(threads);
	children_hold();
	if (add_jobs(sched))
		_exit(EXIT_CANCELED);
	if (threads)
		calendar_watch();
	children_release();
	if (threads) {
		err = wait_jobs(sched);
		calendar_unwatch();
	}
	twheel_sched_close(sched);
	if (err)
		end_by_report(err);
	if (children_stopped())
		end_by_signal(children_stopped());
}

int cmd_job(int argc, char **argv)
{
	struct job job = { 0 };

	if (!parse_job(&job, argc, argv, argc))
		try_help(EXIT_CANCELED);
	if (job.calendar.explain)
		return calendar_explain(&job.calendar, reports);
	jobs = &job;
	nr_jobs = 1;
	single = true;
	do_jobs(1);
	return job.status && job.task.period_ns && !job.failed ? 1 : job.status;
}

/* ---- run ---------------------------------------------------------------------------- */

static bool is_job(const char *name)
{
	return !strcmp(name, "after") || !strcmp(name, "at") || is_recurring(name);
}

/* @words: up to the "--", behind which there is a @command. */
static bool parse_words(struct job *job, char **words, size_t nr, char *command)
{
	char **argv;
	bool good;

	if (!is_job(words[0]))
		return wrong(job, "unknown command '%s'", words[0]);
	if (nr > WORDS_MAX)
		return wrong(job, "more than %d words before '--'", WORDS_MAX);
	argv = calloc(nr + 3, sizeof(*argv));
	if (!argv)
		error(EXIT_CANCELED, ENOMEM, "line %zu", job->line);
	memcpy(argv, words, nr * sizeof(*argv));
	argv[nr] = (char *)"--";
	argv[nr + 1] = command;
	good = parse_job(job, (int)nr + 2, argv, (int)nr);
	if (good && job->argv != &argv[nr + 1])
		good = wrong(job, "unexpected '%s'", job->argv[0]);
	free(argv);
	return good;
}

/* The rest of a line is the shell's. */
static void set_shell(struct job *job, const char *command)
{
	job->argv = calloc(5, sizeof(*job->argv));
	if (job->argv)
		job->argv[3] = strdup(command);
	if (!job->argv || !job->argv[3])
		error(EXIT_CANCELED, ENOMEM, "line %zu", job->line);
	job->argv[0] = (char *)"/bin/sh";
	job->argv[1] = (char *)"-c";
	job->argv[2] = (char *)"--";
}

/* The first "--" that is a word; NULL if there is none. */
static char *find_command(char *text)
{
	for (char *c = text; (c = strstr(c, "--")); c += 2)
		if (c > text && isblank((unsigned char)c[-1]) &&
		    (!c[2] || isblank((unsigned char)c[2])))
			return c;
	return NULL;
}

static bool parse_line(struct job *job, char *text)
{
	char *command = find_command(text);
	wordexp_t words;
	bool good;

	if (!command)
		return wrong(job, "missing ' -- ' and a command");
	*command = 0;
	command += strlen("--");
	command += strspn(command, BLANKS);
	if (!*command)
		return wrong(job, "missing command");
	/* Linux takes no longer argument: 32 pages. */
	if (strlen(command) >= 32 * (size_t)sysconf(_SC_PAGESIZE))
		return wrong(job, "the command is too long");
	if (wordexp(text, &words, WRDE_NOCMD | WRDE_UNDEF))
		return wrong(job, "cannot understand '%s'", text);
	if (words.we_wordc)
		good = parse_words(job, words.we_wordv, words.we_wordc, command);
	else
		good = wrong(job, "missing 'after', 'at', 'every' or 'cron'");
	wordfree(&words);
	if (good)
		set_shell(job, command);
	return good;
}

static struct job *job_new(size_t line)
{
	static size_t room;

	if (nr_jobs == room) {
		room = room ? 2 * room : 16;
		jobs = reallocarray(jobs, room, sizeof(*jobs));
		if (!jobs)
			error(EXIT_CANCELED, ENOMEM, "line %zu", line);
	}
	memset(&jobs[nr_jobs], 0, sizeof(*jobs));
	jobs[nr_jobs].line = line;
	return &jobs[nr_jobs];
}

/* A line of @len bytes. Returns false if it is wrong. */
static bool read_line(size_t line, char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf";	/* of UTF-8, as some editors write it */
	struct job *job;

	if (line == 1 && !strncmp(text, mark, strlen(mark))) {
		text += strlen(mark);
		len -= strlen(mark);
	}
	if (len && text[len - 1] == '\n')
		text[--len] = 0;
	if (len && text[len - 1] == '\r')
		text[--len] = 0;
	job = job_new(line);
	if (strlen(text) != len)
		return wrong(job, "this is no text: there is a NUL in it");
	text += strspn(text, BLANKS);
	if (!*text || *text == '#')
		return true;
	if (!parse_line(job, text))
		return false;
	nr_jobs++;
	return true;
}

/* Every line of the file. Returns how many are wrong. */
static size_t read_file(FILE *stream)
{
	size_t line = 0, bad = 0, room = 0;
	char *text = NULL;
	ssize_t len;

	while ((len = getline(&text, &room, stream)) >= 0)
		bad += !read_line(++line, text, (size_t)len);
	if (ferror(stream))
		error(EXIT_CANCELED, errno, "%s", file);
	free(text);
	return bad;
}

static bool check_only;
static uint64_t nr_threads = JOBS_DEFAULT;
static const char *lock_name;

static void run_option(int c)
{
	bool good;

	switch (c) {
	case OPT_JOBS:
		if (parse_count(optarg, 1, JOBS_MAX, &nr_threads))
			return;
		error(0, 0, "invalid number '%s'", optarg);
		break;
	case OPT_CHECK:
		check_only = true;
		return;
	case OPT_LOCK:
		lock_name = optarg;
		return;
	case 'h':
		help("run");
	default:
		if (common_option(&(struct job){ 0 }, c, &good) && good)
			return;
	}
	try_help(EXIT_CANCELED);
}

/*
 * Two that run one file would do everything twice. The lock is that of flock(2), on the file
 * of commands or on another one, and goes with this process.
 */
static void lock_file(FILE *stream)
{
	const char *name = lock_name ? lock_name : file;
	int fd = fileno(stream);
	struct stat st;

	if (lock_name)
		fd = open(lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || fstat(fd, &st))
		error(EXIT_CANCELED, errno, "cannot open '%s'", name);
	if (!lock_name && (stream == stdin || !S_ISREG(st.st_mode)))
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return;
	if (errno == EWOULDBLOCK)
		error(EXIT_CANCELED, 0, "'%s' is locked: another twheel runs it", name);
	/* NFS locks nothing that is open for reading. */
	if (lock_name || errno != EBADF)
		error(EXIT_CANCELED, errno, "cannot lock '%s'", name);
}

static FILE *run_file(int argc, char **argv)
{
	FILE *stream = stdin;

	if (optind + 1 != argc) {
		if (optind < argc)
			error(0, 0, "extra operand '%s'", argv[optind + 1]);
		else
			error(0, 0, "missing file operand");
		try_help(EXIT_CANCELED);
	}
	file = "standard input";
	if (strcmp(argv[optind], "-")) {
		file = argv[optind];
		stream = fopen(file, "re");
	}
	if (!stream)
		error(EXIT_CANCELED, errno, "cannot open '%s' for reading", file);
	return stream;
}

static void parse_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "jobs", required_argument, NULL, OPT_JOBS },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "lock", required_argument, NULL, OPT_LOCK },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "json-fd", required_argument, NULL, OPT_JSON_FD },
		{ "kill-after", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "hk:", options, NULL)) != -1)
		run_option(c);
}

int cmd_run(int argc, char **argv)
{
	FILE *stream;

	parse_run(argc, argv);
	stream = run_file(argc, argv);
	if (!check_only)
		lock_file(stream);
	if (read_file(stream))
		return EXIT_CANCELED;
	child_options.session = true;
	if (check_only)
		nr_threads = 0;
	do_jobs((uint32_t)(nr_jobs < nr_threads ? nr_jobs : nr_threads));
	for (size_t i = 0; i < nr_jobs; i++)
		if (jobs[i].status)
			return 1;
	return 0;
}
