// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * run: the commands of a file, a line each.
 *
 * On SIGHUP the file is read again. A line that is still there, byte for byte, is the same job: it
 * keeps its next time and its counts, and if it is over, it stays over. New lines are added,
 * missing ones are cancelled, and commands that are running continue. If anything is wrong with the
 * new file, nothing changes.
 *
 * With --metrics the jobs' state is written to a file for Prometheus when something has changed,
 * at most once a second.
 *
 * All of this is done by the first thread.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#include "jobs.h"
#include "metrics.h"
#include "notify.h"

#define JOBS_DEFAULT	32
#define JOBS_MAX	1024
#define WORDS_MAX	64	/* of a line, before its command */

/**
 * struct table - the jobs of a file
 * @jobs:	in the order of their lines
 * @nr:		how many there are
 * @room:	how many fit into @jobs
 * @lines:	how many lines of the file were read
 */
struct table {
	struct job	**jobs;
	size_t		nr;
	size_t		room;
	size_t		lines;
};

static struct table table;		/* the jobs of the file, as last read without an error */
static uint64_t nr_threads = JOBS_DEFAULT;
static bool check_only;
static const char *lock_name, *metrics_name;

/* ---- a line ------------------------------------------------------------------------ */

/* May a line begin with this word? */
static bool is_job(const char *name)
{
	return !strcmp(name, "after") || !strcmp(name, "at") || is_recurring(name);
}

/*
 * Parse the @nr words before the "--", and the @command after it. Returns false if they are wrong.
 */
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
	job->argv = NULL;	/* it pointed into argv, which is freed */
	return good;
}

/* Give the rest of a line, after the "--", to the shell. */
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

/* Find the first "--" that is a word of its own. NULL if there is none. */
static char *find_command(char *text)
{
	for (char *c = text; (c = strstr(c, "--")); c += 2)
		if (c > text && isblank((unsigned char)c[-1]) &&
		    (!c[2] || isblank((unsigned char)c[2])))
			return c;
	return NULL;
}

/*
 * Parse a line: a time with options, "--", and a command for the shell. Returns false, with the
 * error reported, if it is wrong. Changes @text.
 */
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

/* ---- the file ---------------------------------------------------------------------- */

/* Append @job to the table, which does not own it yet: see read_again(). */
static void table_add(struct table *t, struct job *job)
{
	if (t->nr == t->room) {
		t->room = t->room ? 2 * t->room : 16;
		t->jobs = reallocarray(t->jobs, t->room, sizeof(*t->jobs));
		if (!t->jobs)
			error(EXIT_CANCELED, ENOMEM, "line %zu", t->lines);
	}
	t->jobs[t->nr++] = job;
}

/*
 * Find the job of @old that has this text, and was not found before. If most lines are unchanged,
 * it is the one after @at, which is where the last one was found: so that is tried first.
 */
static struct job *find_kept(const struct table *old, const char *text, size_t *at)
{
	for (size_t i = 0; i < old->nr; i++) {
		struct job *job = old->jobs[(*at + i) % old->nr];

		if (job->kept || strcmp(job->text, text))
			continue;
		*at += i + 1;
		return job;
	}
	return NULL;
}

/* Make a job of a line that @old does not have. Returns false if the line is wrong. */
static bool new_job(struct table *t, const char *text)
{
	struct job *job = calloc(1, sizeof(*job));
	char *copy = strdup(text);
	bool good;

	if (job)
		job->text = strdup(text);
	if (!job || !job->text || !copy)
		error(EXIT_CANCELED, ENOMEM, "line %zu", t->lines);
	job->line = t->lines;
	good = parse_line(job, copy);
	free(copy);
	if (good)
		table_add(t, job);
	else
		job_free(job);
	return good;
}

/* Read a line of @len bytes. Returns false if it is wrong. */
static bool read_line(struct table *t, char *text, size_t len, const struct table *old, size_t *at)
{
	static const char mark[] = "\xef\xbb\xbf";	/* some editors begin UTF-8 files so */
	struct job *job;

	if (++t->lines == 1 && !strncmp(text, mark, strlen(mark))) {
		text += strlen(mark);
		len -= strlen(mark);
	}
	if (len && text[len - 1] == '\n')
		text[--len] = 0;
	if (len && text[len - 1] == '\r')
		text[--len] = 0;
	if (strlen(text) != len)
		return wrong(&(struct job){ .line = t->lines },
			     "this is not text: there is a NUL in it");
	text += strspn(text, BLANKS);
	if (!*text || *text == '#')
		return true;
	job = find_kept(old, text, at);
	if (!job)
		return new_job(t, text);
	job->kept = true;
	job->new_line = t->lines;
	table_add(t, job);
	return true;
}

/*
 * Read every line of the file; take over the jobs of @old that are still there. False if anything
 * is wrong.
 */
static bool read_file(FILE *stream, struct table *t, const struct table *old)
{
	size_t room = 0, at = 0;
	char *text = NULL;
	bool good = true;
	ssize_t len;

	errno = 0;
	while ((len = getline(&text, &room, stream)) >= 0)
		good &= read_line(t, text, (size_t)len, old, &at);
	free(text);
	if (!ferror(stream))
		return good;
	error(0, errno, "%s", file);
	return false;
}

/* Is it a regular file, which can be read again and locked? */
static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* Are both descriptors of the same file? */
static bool is_same_file(int a, int b)
{
	struct stat st_a, st_b;

	return !fstat(a, &st_a) && !fstat(b, &st_b) && st_a.st_dev == st_b.st_dev &&
	       st_a.st_ino == st_b.st_ino;
}

/*
 * Two processes that run the same file would do everything twice. So take the lock of flock(2) on
 * the file of commands, or on the file of --lock, until this process ends. If it cannot be taken,
 * report why and return false.
 */
static bool lock_file(int fd, const char *name)
{
	if (!lock_name && !is_regular(fd))
		return true;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return true;
	if (errno == EWOULDBLOCK) {
		error(0, 0, "'%s' is locked: another twheel runs it", name);
		return false;
	}
	/* NFS cannot lock a file exclusively that is open only for reading: run without a lock. */
	if (!lock_name && errno == EBADF)
		return true;
	error(0, errno, "cannot lock '%s'", name);
	return false;
}

/* ---- reading it again -------------------------------------------------------------- */

static FILE *source;			/* the file that was read, which has the lock */
static bool reload_asked;		/* SIGHUP has come; turn() has not read the file yet */
static bool had_terminal;		/* at the start */
static uint64_t reloads, failed_reloads;	/* for --metrics */

/* Is there a controlling terminal at the moment? */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* SIGHUP has come. If that is because the terminal has gone, do not read the file again: end. */
static bool hangup(void)
{
	if (had_terminal && !has_terminal())
		return false;
	reload_asked = true;
	return true;
}

/* Free the new jobs of @next. They were not added to the scheduler. */
static void forget(struct table *next)
{
	for (size_t i = 0; i < next->nr; i++)
		if (next->jobs[i] && !next->jobs[i]->kept)
			job_free(next->jobs[i]);
	free(next->jobs);
	for (size_t i = 0; i < table.nr; i++)
		table.jobs[i]->kept = false;
}

/* Make @next the table: drop the jobs that it does not have. */
static void replace_table(struct twheel_sched *sched, struct table *next)
{
	size_t kept = 0, gone = table.nr;

	for (size_t i = 0; i < table.nr; i++)
		if (!table.jobs[i]->kept)
			job_drop(sched, table.jobs[i]);
	free(table.jobs);
	table = *next;
	for (size_t i = 0; i < table.nr; i++) {
		struct job *job = table.jobs[i];

		if (!job->kept)
			continue;
		job->line = job->new_line;
		job->kept = false;
		kept++;
	}
	gone -= kept;
	error(0, 0, "'%s' was read again: %zu new, %zu gone, %zu unchanged", file, table.nr - kept,
	      gone, kept);
}

/*
 * Read the file again. If anything is wrong with it, report that, change nothing and return false.
 */
static bool read_again(struct twheel_sched *sched, FILE *stream)
{
	struct table next = { 0 };
	bool added;

	if (!read_file(stream, &next, &table)) {
		forget(&next);
		return false;
	}
	children_hold();
	added = add_jobs(sched, next.jobs, next.nr);
	if (added)
		replace_table(sched, &next);
	children_release();
	if (!added)
		forget(&next);
	return added;
}

/* Open the file again. If a pipe has taken its place, do not wait for a writer. */
static FILE *open_again(void)
{
	int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");

	if (stream && is_regular(fd))
		return stream;
	error(0, stream ? 0 : errno, "cannot open '%s' for reading%s", file,
	      stream ? ": it is not a regular file" : "");
	if (stream)
		fclose(stream);
	return NULL;
}

/* Read the file again. Returns false if nothing has changed because of an error. */
static bool reload(struct twheel_sched *sched)
{
	FILE *stream = open_again();
	bool same;

	if (!stream)
		return false;
	/* An editor may have made a new one, which another process may have locked. */
	same = is_same_file(fileno(stream), fileno(source));
	if ((!same && !lock_name && !lock_file(fileno(stream), file)) ||
	    !read_again(sched, stream)) {
		fclose(stream);
		return false;
	}
	/* Keep the descriptor open that has the lock. */
	if (same) {
		fclose(stream);
	} else {
		fclose(source);
		source = stream;
	}
	return true;
}

/* Read the file again if SIGHUP has come. An error leaves everything as it was. */
static void reload_if_asked(struct twheel_sched *sched)
{
	if (!reload_asked)
		return;
	reload_asked = false;
	if (reload(sched)) {
		reloads++;
		return;
	}
	failed_reloads++;
	error(0, 0, "'%s' was not read again: what was read before stays in force", file);
}

/* ---- metrics ------------------------------------------------------------------------ */

static int64_t start_ns, written_ns;	/* by the wall clock; by CLOCK_MONOTONIC */
static bool is_up;

/* Print the metrics of the whole run. */
static void print_run(FILE *to)
{
	const char *const labels[] = { "file", file, NULL };
	const char *const good[] = { "file", file, "result", "success", NULL };
	const char *const bad[] = { "file", file, "result", "failure", NULL };

	metric_family(to, "twheel_run_up", "gauge", "Whether twheel run is running.");
	metric_count(to, "twheel_run_up", labels, is_up);
	metric_family(to, "twheel_run_start_time_seconds", "gauge",
		      "When twheel run began, since 1970.");
	metric_seconds(to, "twheel_run_start_time_seconds", labels, start_ns);
	metric_family(to, "twheel_run_jobs_pending", "gauge", "Lines that will run again.");
	metric_count(to, "twheel_run_jobs_pending", labels, left);
	metric_family(to, "twheel_run_commands_running", "gauge", "Commands that run.");
	metric_count(to, "twheel_run_commands_running", labels, (uint64_t)running);
	metric_family(to, "twheel_run_reloads_total", "counter",
		      "How often SIGHUP had the file read again.");
	metric_count(to, "twheel_run_reloads_total", good, reloads);
	metric_count(to, "twheel_run_reloads_total", bad, failed_reloads);
}

enum value { RUNS, FAILURES, MISSED, LATE, TOOK, STATUS, ENDED, SUCCEEDED };

static const struct family {
	const char	*name;
	const char	*type;
	const char	*help;
	enum value	value;
} families[] = {
	{ "twheel_run_job_runs_total", "counter", "Runs of the command that have ended.", RUNS },
	{ "twheel_run_job_failures_total", "counter", "Runs whose status was not 0.", FAILURES },
	{ "twheel_run_job_missed_total", "counter", "Times that nothing was run for.", MISSED },
	{ "twheel_run_job_late_seconds_total", "counter",
	  "By how much runs began late, in all.", LATE },
	{ "twheel_run_job_duration_seconds_total", "counter", "How long runs took, in all.", TOOK },
	{ "twheel_run_job_last_status", "gauge", "Exit status of the last run.", STATUS },
	{ "twheel_run_job_last_end_timestamp_seconds", "gauge",
	  "When the last run ended, since 1970.", ENDED },
	{ "twheel_run_job_last_success_timestamp_seconds", "gauge",
	  "When the last run ended that did not fail, since 1970.", SUCCEEDED },
};

/* Print one value of a family. A job that has not run has no last run, and no value for it. */
static void print_value(FILE *to, const struct family *family, const char *const labels[],
			const struct job_stats *stats)
{
	const int64_t ns[] = { [LATE] = stats->late_ns, [TOOK] = stats->took_ns,
			       [ENDED] = stats->ended_ns, [SUCCEEDED] = stats->succeeded_ns };
	const uint64_t counts[] = { [RUNS] = stats->runs, [FAILURES] = stats->failures,
				    [MISSED] = stats->missed, [STATUS] = (uint64_t)stats->status };

	if (family->value == ENDED || family->value == SUCCEEDED) {
		if (ns[family->value])
			metric_seconds(to, family->name, labels, ns[family->value]);
	} else if (family->value == LATE || family->value == TOOK) {
		metric_seconds(to, family->name, labels, ns[family->value]);
	} else if (family->value != STATUS || stats->runs) {
		metric_count(to, family->name, labels, counts[family->value]);
	}
}

/* Print one family, with a value for each job. Under jobs_lock, which guards their stats. */
static void print_jobs(FILE *to, const struct family *family)
{
	char line[24];

	metric_family(to, family->name, family->type, family->help);
	for (size_t i = 0; i < table.nr; i++) {
		const struct job *job = table.jobs[i];
		const char *const labels[] = { "file", file, "line", line, "command", job->argv[3],
					       NULL };

		snprintf(line, sizeof(line), "%zu", job->line);
		print_value(to, family, labels, &job->stats);
	}
}

/* All metrics are of one moment of the jobs, since jobs_lock is held for all of them. */
static void print_metrics(FILE *to, const void *unused)
{
	(void)unused;
	print_run(to);
	pthread_mutex_lock(&jobs_lock);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		print_jobs(to, &families[i]);
	pthread_mutex_unlock(&jobs_lock);
}

/* Write the metrics. If that fails, report it once, until it succeeds again. */
static void write_metrics(void)
{
	static int told;
	int err = metrics_write(metrics_name, print_metrics, NULL);

	if (err && err != told)
		metrics_error(0, metrics_name, err);
	told = err;
	written_ns = time_now(CLOCK_MONOTONIC);
}

/*
 * Write the metrics if something has changed. If they were written less than a second ago, return
 * how many ms to wait instead; otherwise -1.
 */
static int tell_metrics(void)
{
	int64_t wait = written_ns + NS_PER_S - time_now(CLOCK_MONOTONIC);
	static uint64_t told = UINT64_MAX;
	uint64_t now = changes + reloads + failed_reloads;

	if (now == told)
		return -1;
	if (wait > 0)
		return (int)(wait / NS_PER_MS) + 1;
	told = now;
	write_metrics();
	return -1;
}

/* ---- the command -------------------------------------------------------------------- */

static char *notify_name;		/* of systemd's socket, until it was told */

/*
 * systemctl(1) may send SIGHUP as soon as we run: that is no reason to end. And the commands have
 * nothing to tell systemd.
 */
static void begin_service(void)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (check_only)
		return;
	children_block_hangup();
	notify_name = name ? strdup(name) : NULL;
	unsetenv("NOTIFY_SOCKET");
}

/* Tell systemd, once, that the file was right and its jobs wait for their times, or are over. */
static void tell_ready(void)
{
	int err = notify_systemd(notify_name, "READY=1");

	if (err)
		error(0, -err, "cannot notify systemd");
	free(notify_name);
	notify_name = NULL;
}

/*
 * What the first thread does besides waiting: @sched is NULL after the last job. Returns after how
 * many ms to call it again, or -1.
 */
static int turn(struct twheel_sched *sched)
{
	tell_ready();
	if (sched)
		reload_if_asked(sched);
	is_up = sched;
	if (!metrics_name)
		return -1;
	if (sched)
		return tell_metrics();
	write_metrics();
	return -1;
}

/* Take option @c, as getopt_long() found it. Ends the program if it is wrong. */
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
	case OPT_METRICS:
		metrics_name = optarg;
		return;
	case 'h':
		help("run");
	default:
		if (common_option(&(struct job){ 0 }, c, &good) && good)
			return;
	}
	try_help(EXIT_CANCELED);
}

/* Open the file of commands, which is the only operand; "-" is standard input. */
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

/* Parse the options. Ends the program if one is wrong. */
static void parse_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "jobs", required_argument, NULL, OPT_JOBS },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "lock", required_argument, NULL, OPT_LOCK },
		{ "metrics", required_argument, NULL, OPT_METRICS },
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

/* Lock the file, and if it is a regular file, prepare for reading it again. */
static void begin(FILE *stream)
{
	int fd = fileno(stream);

	if (lock_name) {
		fd = open(lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			error(EXIT_CANCELED, errno, "cannot open '%s'", lock_name);
	}
	if ((lock_name || stream != stdin) && !lock_file(fd, lock_name ? lock_name : file))
		exit(EXIT_CANCELED);
	source = stream;
	start_ns = time_now(CLOCK_REALTIME);
	child_options.session = true;
	if (stream == stdin || !is_regular(fileno(stream))) {
		children_unblock_hangup();
		return;
	}
	had_terminal = has_terminal();
	child_options.hangup = hangup;
}

/* Could the file of --lock be opened? It is not created, for it could not be removed safely. */
static void check_lock(void)
{
	int fd = lock_name ? open(lock_name, O_RDWR | O_CLOEXEC) : -1;
	int err = errno;

	if (lock_name && fd < 0 && err == ENOENT)
		err = metrics_write(lock_name, NULL, NULL);
	if (lock_name && fd < 0 && err)
		error(EXIT_CANCELED, err, "cannot open '%s'", lock_name);
	if (fd >= 0)
		close(fd);
}

/* Write the first metrics, or with NULL only try to. */
static void begin_metrics(print_fn print)
{
	int err = metrics_name ? metrics_write(metrics_name, print, NULL) : 0;

	if (err)
		metrics_error(EXIT_CANCELED, metrics_name, err);
}

/*
 * The lock comes before the file is read, so that two processes cannot both have read it; and the
 * first metrics before any command is run, so that an error there prevents all.
 */
int cmd_run(int argc, char **argv)
{
	FILE *stream;

	parse_run(argc, argv);
	begin_service();
	stream = run_file(argc, argv);
	if (!check_only)
		begin(stream);
	if (!read_file(stream, &table, &(struct table){ 0 }))
		return EXIT_CANCELED;
	if (check_only) {
		check_jobs(table.jobs, table.nr);
		check_lock();
		begin_metrics(NULL);
		return 0;
	}
	/* There may be more jobs later. */
	if (!child_options.hangup && table.nr < nr_threads)
		nr_threads = table.nr;
	begin_metrics(print_metrics);
	if (table.nr)
		do_jobs(table.jobs, table.nr, (uint32_t)nr_threads, turn);
	tell_ready();
	return any_failed;
}
