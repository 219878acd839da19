// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * after, at, every, cron and run: commands at their time.
 *
 * Each command is a task of a scheduler whose threads start it and wait for it. So what
 * the scheduler promises of tasks is true of commands: never early, never twice at once, a
 * slow one delays no other (up to --jobs), and what is to happen to missed times.
 *
 * The first thread waits for signals, and shows how long it will take if someone looks.
 * SIGTERM and SIGHUP are passed on to the commands that run; SIGINT comes from a terminal,
 * which has sent it to them too.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "cmd.h"

#define JOBS_DEFAULT	32
#define JOBS_MAX	1024
#define EXPLAINED	"5"
#define PROGRESS_NS	(3 * NS_PER_S)	/* nothing is shown of shorter waits */

/**
 * struct job - a command and its time
 * @task:	its task; its arg is the job
 * @argv:	the command; NULL: none
 * @line:	of the file; 0: of the command line
 * @count:	how often to run it; 0: for ever, if it has a period
 * @status:	exit status of its last run, or the last that was not 0
 * @pid:	its process, while it runs
 * @missed:	times before its last run that were left out
 * @policy:	what --missed was given, until it is parsed
 * @calendar:	its times, if they are by the calendar
 */
struct job {
	struct twheel_task	task;
	char			**argv;
	size_t			line;
	uint64_t		count;
	int			status;
	atomic_int		pid;
	uint64_t		missed;
	const char		*policy;
	struct calendar		calendar;
};

static const char *file;
static bool json, single;
static struct job *jobs;
static size_t nr_jobs;
static atomic_size_t left;
static int done_fd;
static sigset_t signals, old_signals;
static bool shown;
static pthread_mutex_t screen = PTHREAD_MUTEX_INITIALIZER;

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
	OPT_COUNT = 1, OPT_NOW, OPT_DELAY, OPT_MISSED, OPT_JSON, OPT_HELP, OPT_JOBS, OPT_CHECK,
	OPT_ZONE, OPT_JITTER, OPT_EXPLAIN
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
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static bool parse_count(const char *s, uint64_t most, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(s, &end, 10);
	return !errno && *s != '-' && end != s && !*end && *n && *n <= most;
}

/* Times by the calendar, and those by a period, have each a policy that the other has not. */
static bool set_missed(struct job *job)
{
	static const char *const by_calendar[] = { "once", "skip", "burst" };
	static const char *const by_period[] = { "burst", "skip", "delay" };
	static const uint32_t flags[] = { 0, TWHEEL_MISSED_SKIP, TWHEEL_MISSED_DELAY };
	const char *const *words = job->calendar.on ? by_calendar : by_period;
	unsigned int i = 0;

	while (i < 3 && strcmp(job->policy, words[i]))
		i++;
	if (i == 3)
		return wrong(job, "invalid argument '%s' for '--missed'", job->policy);
	if (job->calendar.on)
		job->calendar.missed = i;
	else
		job->task.flags = flags[i];
	return true;
}

/* What options there may be together is known when all are. */
static bool check_options(struct job *job)
{
	bool calendar = job->calendar.on, delay = job->task.flags & TWHEEL_TASK_DELAY;

	if (!calendar && (job->calendar.zone_name || job->calendar.jitter_ns ||
			  job->calendar.explain))
		return wrong(job, "%s are for times by the calendar",
			     "'--zone', '--jitter' and '--explain'");
	if (delay && (calendar || job->policy))
		return wrong(job, "option '--fixed-delay' is not allowed with %s",
			     calendar ? "times by the calendar" : "'--missed'");
	if (job->calendar.explain && job->line)
		return wrong(job, "option '--explain' is not allowed here");
	return !job->policy || set_missed(job);
}

static bool is_recurring(const char *name)
{
	return !strcmp(name, "every") || !strcmp(name, "cron");
}

static bool set_calendar_option(struct job *job, int c)
{
	switch (c) {
	case OPT_ZONE:
		job->calendar.zone_name = optarg;
		return true;
	case OPT_JITTER:
		return parse_duration(optarg, &job->calendar.jitter_ns) ||
		       wrong(job, "invalid duration '%s'", optarg);
	default:
		return parse_count(optarg ?: EXPLAINED, UINT16_MAX, &job->calendar.explain) ||
		       wrong(job, "invalid number '%s'", optarg);
	}
}

/* @c: what getopt_long() gave. */
static bool set_option(struct job *job, int c, char **argv, bool *now)
{
	bool every = is_recurring(argv[0]);

	if (c == '?' || c == ':')
		return wrong(job, c == '?' ? "unrecognized option '%s'" :
			     "option '%s' requires an argument", argv[optind - 1]);
	if (c == OPT_HELP && !job->line)
		usage(0);
	if (c == OPT_JSON && !job->line) {
		json = true;
		return true;
	}
	if (!every || c == OPT_HELP || c == OPT_JSON)
		return wrong(job, "option '%s' is not allowed here", argv[optind - 1]);
	switch (c) {
	case OPT_COUNT:
		return parse_count(optarg, UINT64_MAX, &job->count) ||
		       wrong(job, "invalid number '%s'", optarg);
	case OPT_NOW:
		*now = true;
		return true;
	case OPT_DELAY:
		job->task.flags = TWHEEL_TASK_DELAY;
		return true;
	case OPT_MISSED:
		job->policy = optarg;
		return true;
	default:
		return set_calendar_option(job, c);
	}
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

/**
 * struct when - the time of a job, in words
 * @text:	a duration, a time, or an expression of cron; NULL: not found yet
 * @calendar:	it is that
 * @now:	it is to run at once for the first time
 * @phrase:	what a phrase means
 */
struct when {
	const char	*text;
	bool		calendar;
	bool		now;
	char		phrase[PHRASE_MAX];
};

/* After "every" a duration begins with a digit, and what is by the calendar with a letter. */
static bool take_when(struct job *job, struct when *when, const char *name, char *const *words,
		      int nr)
{
	int n = 1;

	when->text = words[0];
	when->calendar = !strcmp(name, "cron");
	if (!strcmp(name, "every") && isalpha((unsigned char)*words[0])) {
		n = calendar_phrase(words, nr, when->phrase);
		when->text = when->phrase;
		when->calendar = true;
	}
	optind += n;
	return n || wrong(job, "invalid duration or time '%s'", words[0]);
}

static bool set_when(struct job *job, const struct when *when, const char *name)
{
	char text[CRON_ERROR];

	if (when->calendar) {
		if (!calendar_set(&job->calendar, when->text, when->now, text))
			return wrong(job, "%s", text);
		/* What it was until now is of periods. */
		job->task.flags &= TWHEEL_TASK_DELAY;
		return true;
	}
	if (!set_time(job, name, when->text))
		return false;
	if (when->now)
		job->task.when_ns = 0;
	return true;
}

/* Options, and among them a time, before argv[@end]. */
static bool parse_options(struct job *job, int argc, char **argv, int end, struct when *when)
{
	int c;

	opterr = 0;
	optind = 0;
	for (;;) {
		c = getopt_long(argc, argv, "+:", job_options, NULL);
		if (c != -1 && !set_option(job, c, argv, &when->now))
			return false;
		if (c != -1)
			continue;
		if (when->text || optind >= end)
			return true;
		if (!take_when(job, when, argv[0], &argv[optind], end - optind))
			return false;
	}
}

/*
 * NAME TIME [OPTION]... [--] [COMMAND]; options may come before the time too. From
 * argv[@end] on there is no time any more.
 */
static bool parse_job(struct job *job, int argc, char **argv, int end)
{
	struct when when = { .text = NULL };

	if (!strcmp(argv[0], "every"))
		job->task.flags = TWHEEL_MISSED_SKIP;
	if (!parse_options(job, argc, argv, end, &when))
		return false;
	if (!when.text)
		return wrong(job, "missing %s after '%s'", strcmp(argv[0], "at") ?
			     strcmp(argv[0], "cron") ? "duration" : "expression" : "time", argv[0]);
	if (!set_when(job, &when, argv[0]) || !check_options(job))
		return false;
	if (job->calendar.on)
		job->task = calendar_task(&job->calendar);
	if (optind < argc)
		job->argv = &argv[optind];
	if (job->task.period_ns && !job->argv && !job->calendar.explain)
		return wrong(job, "missing command after '%s'", argv[0]);
	return true;
}

/* ---- the screen ----------------------------------------------------------------- */

/* Take away the line that tells how long it will take. */
static void screen_clear(void)
{
	pthread_mutex_lock(&screen);
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
	pthread_mutex_unlock(&screen);
}

static void screen_show(struct twheel_sched *sched)
{
	int64_t wall = time_now(CLOCK_REALTIME), boot = time_now(CLOCK_BOOTTIME), next = INT64_MAX;
	struct twheel_task_info *list;
	char buf[32];
	int n = twheel_sched_list(sched, &list), waiting = 0;

	for (int i = 0; i < n; i++) {
		int64_t in = list[i].due_ns - (list[i].flags & TWHEEL_TASK_AT ? wall : boot);

		if (list[i].state != TWHEEL_TASK_WAITING)
			continue;
		waiting++;
		if (in < next)
			next = in;
	}
	if (n >= 0)
		free(list);
	if (!waiting || (next < NS_PER_S && !shown))
		return;
	next = next < 0 ? 0 : (next + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
	pthread_mutex_lock(&screen);
	fprintf(stderr, "\r\033[K%s", single ? "" : "next ");
	fprintf(stderr, "in %s", show_duration(next, buf));
	if (!single)
		fprintf(stderr, ", %d pending", waiting);
	fflush(stderr);
	shown = true;
	pthread_mutex_unlock(&screen);
}

/* ---- running ----------------------------------------------------------------------- */

/* Returns 0, or an errno as posix_spawn() does. */
static int spawn(struct job *job, const struct run_info *run)
{
	char **env = run_environ(&job->calendar, run);
	posix_spawnattr_t attr;
	pid_t pid;
	int err = ENOMEM;

	if (!env)
		return err;
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &old_signals);
	err = posix_spawnp(&pid, job->argv[0], NULL, &attr, job->argv, env);
	posix_spawnattr_destroy(&attr);
	free(env);
	if (!err)
		job->pid = pid;
	return err;
}

/* The exit status, as a shell gives it. */
static int execute(struct job *job, const struct run_info *run)
{
	int err, status = 0;

	if (!job->argv)
		return 0;
	fflush(stdout);
	err = spawn(job, run);
	if (err) {
		error(0, err, "failed to run command '%s'", job->argv[0]);
		return err == ENOENT ? 127 : 126;
	}
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	job->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void report(const struct job *job, const struct run_info *run, int status, int64_t late,
		   int64_t took)
{
	struct json_object *o = json_object_new_object();
	char buf[48];

	if (job->line)
		json_int(o, "line", (int64_t)job->line);
	json_int(o, "run", (int64_t)run->nr);
	json_string(o, "due", run_due(&job->calendar, run, buf));
	json_int(o, "late_ns", late);
	json_int(o, "missed", (int64_t)run->all_missed);
	json_int(o, "took_ns", took);
	json_int(o, "status", status);
	json_line(o);
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
	screen_clear();
	status = execute(job, &run);
	if (json)
		report(job, &run, status, late, time_now(CLOCK_BOOTTIME) - start);
	if (status)
		job->status = status;
	/* What cannot be run now cannot be run later. */
	if ((job->count && run.nr >= job->count) || (single && status >= 126 && status < 128))
		twheel_sched_cancel(task->sched, task->id, 0);
}

static void job_over(void *arg)
{
	(void)arg;
	if (!--left)
		eventfd_write(done_fd, 1);
}

static void add_jobs(struct twheel_sched *sched)
{
	uint64_t id;

	left = nr_jobs;
	for (size_t i = 0; i < nr_jobs; i++) {
		int err;

		jobs[i].task.fn = job_run;
		jobs[i].task.release = job_over;
		jobs[i].task.arg = &jobs[i];
		err = twheel_sched_add(sched, &jobs[i].task, &id);
		if (err)
			error(EXIT_CANCELED, -err, "cannot arm a timer");
		if (jobs[i].calendar.on)
			calendar_added(sched, &jobs[i].calendar, id);
	}
}

/* Wait until all jobs are over, or for a signal, which is returned; else 0. */
static int wait_jobs(struct twheel_sched *sched)
{
	struct pollfd p[2] = { { .fd = done_fd, .events = POLLIN },
			       { .fd = signalfd(-1, &signals, SFD_CLOEXEC), .events = POLLIN } };
	bool looked_at = isatty(STDERR_FILENO) && !json;
	int64_t start = time_now(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	int n;

	do {
		if (looked_at && (shown || time_now(CLOCK_MONOTONIC) - start > PROGRESS_NS / 3))
			screen_show(sched);
		n = poll(p, 2, looked_at ? 1000 : -1);
	} while (!n || (n < 0 && errno == EINTR));
	screen_clear();
	if (!(p[1].revents & POLLIN) || read(p[1].fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

static void end_by_signal(struct twheel_sched *sched, int sig)
{
	twheel_sched_stop(sched, 0, NULL);
	for (size_t i = 0; i < nr_jobs; i++) {
		pid_t pid = jobs[i].pid;

		if (pid > 0 && sig != SIGINT)
			kill(pid, sig);
	}
	twheel_sched_close(sched);
	signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old_signals, NULL);
	raise(sig);
}

/* Do all jobs, at most @threads at once. */
static void do_jobs(uint32_t threads)
{
	struct twheel_sched_options options = { .threads = threads, .clockid = CLOCK_BOOTTIME };
	struct twheel_sched *sched;
	int err, sig;

	if (!nr_jobs)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &old_signals);
	done_fd = eventfd(0, EFD_CLOEXEC);
	if (done_fd < 0)
		error(EXIT_CANCELED, errno, "eventfd");
	err = twheel_sched_open(&sched, &options);
	if (err)
		error(EXIT_CANCELED, -err, "cannot make a wheel");
	add_jobs(sched);
	calendar_watch();
	sig = wait_jobs(sched);
	calendar_unwatch();
	if (sig)
		end_by_signal(sched, sig);
	twheel_sched_close(sched);
}

int cmd_job(int argc, char **argv)
{
	struct job job = { 0 };

	if (!parse_job(&job, argc, argv, argc))
		try_help(EXIT_CANCELED);
	if (job.calendar.explain)
		return calendar_explain(&job.calendar, json);
	jobs = &job;
	nr_jobs = 1;
	single = true;
	do_jobs(1);
	if (job.task.period_ns && job.status && (job.status < 126 || job.status > 127))
		return 1;
	return job.status;
}

/* ---- run ---------------------------------------------------------------------------- */

static bool is_job(const char *name)
{
	return !strcmp(name, "after") || !strcmp(name, "at") || is_recurring(name);
}

/* @words: up to the "--", behind which there is a @command. */
static bool parse_words(struct job *job, char **words, size_t nr, char *command)
{
	char *argv[nr + 2];

	if (!is_job(words[0]))
		return wrong(job, "unknown command '%s'", words[0]);
	memcpy(argv, words, nr * sizeof(*argv));
	argv[nr] = command;
	argv[nr + 1] = NULL;
	if (!parse_job(job, (int)nr + 1, argv, (int)nr))
		return false;
	return job->argv == &argv[nr] || wrong(job, "unexpected '%s'", job->argv[0]);
}

/* The rest of a line is the shell's. */
static void set_shell(struct job *job, const char *command)
{
	job->argv = calloc(4, sizeof(*job->argv));
	if (job->argv)
		job->argv[2] = strdup(command);
	if (!job->argv || !job->argv[2])
		error(EXIT_CANCELED, ENOMEM, "line %zu", job->line);
	job->argv[0] = (char *)"/bin/sh";
	job->argv[1] = (char *)"-c";
}

static bool parse_line(struct job *job, char *text)
{
	char *command = strstr(text, " -- ");
	wordexp_t words;
	bool good;

	if (!command)
		return wrong(job, "missing ' -- ' and a command");
	*command = 0;
	command += strlen(" -- ");
	if (!command[strspn(command, " \t")])
		return wrong(job, "missing command");
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

/* Every line of the file. Returns how many are wrong. */
static size_t read_file(FILE *stream)
{
	size_t line = 0, bad = 0, room = 0;
	char *text = NULL;
	ssize_t len;

	while ((len = getline(&text, &room, stream)) >= 0) {
		line++;
		if (len && text[len - 1] == '\n')
			text[len - 1] = 0;
		if (!text[strspn(text, " \t")] || text[strspn(text, " \t")] == '#')
			continue;
		if (parse_line(job_new(line), text))
			nr_jobs++;
		else
			bad++;
	}
	if (ferror(stream))
		error(EXIT_CANCELED, errno, "%s", file);
	free(text);
	return bad;
}

static bool check_only;
static uint64_t nr_threads = JOBS_DEFAULT;

static void run_option(int c)
{
	switch (c) {
	case OPT_JOBS:
		if (parse_count(optarg, JOBS_MAX, &nr_threads))
			return;
		error(0, 0, "invalid number '%s'", optarg);
		break;
	case OPT_CHECK:
		check_only = true;
		return;
	case OPT_JSON:
		json = true;
		return;
	case OPT_HELP:
		usage(0);
	}
	try_help(EXIT_CANCELED);
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

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "jobs", required_argument, NULL, OPT_JOBS },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, OPT_HELP },
		{ 0 },
	};
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		run_option(c);
	if (read_file(run_file(argc, argv)))
		return EXIT_CANCELED;
	if (check_only)
		return 0;
	do_jobs(nr_jobs < nr_threads ? (uint32_t)nr_jobs : (uint32_t)nr_threads);
	for (size_t i = 0; i < nr_jobs; i++)
		if (jobs[i].status)
			return 1;
	return 0;
}
