/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel(1): what its files share.
 *
 *	main.c	the words of the command line, and output
 *	help.c	the text of --help
 *	jobs.c	after, at, every, cron: commands at their time, on libtwheel's scheduler
 *	run.c	run: the commands of a file, which may be read again
 *	metrics.c	the text format of Prometheus
 *	calendar.c	times by the calendar, on top of ../../calendar
 *	child.c	the processes of these commands, signals, and the terminal
 *	line.c	a line on the terminal that shows the time until the next command
 *	show.c	ls, info
 *	bench.c	bench
 *	top.c	top: samples, and output for scripts
 *	screen.c	top's screen
 *	plot.c	plot: pictures of what bench measured
 *
 * Exit status, as with env(1) and timeout(1): if there is a command, its status;
 * 125 if twheel itself fails, 126 if the command cannot be run, 127 if it is not found.
 * Subcommands that run no command exit with 1 if they fail.
 *
 * Threads: the first one parses the command line, waits for signals and draws. With "after", "at",
 * "every", "cron" and "run" the scheduler's pool runs the commands, a thread for each. Any thread
 * may call json_write(); all else here is the first thread's, unless it says otherwise.
 */
#ifndef CMD_H
#define CMD_H

#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <time.h>

#include <json-c/json.h>

#include "cron.h"
#include "libtwheel.h"
#include "libtwheel-sched.h"
#include "when.h"

#define EXIT_CANCELED	125	/* the name is coreutils' */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* main.c */

/* The status to exit with if output cannot be written. Set once, before there are threads. */
extern int exit_failure;

/* Point to --help, and exit with @status. The caller has reported what is wrong. */
noreturn void try_help(int status);
/* Parse decimal digits and nothing else. False if @n would not be from @least to @most. */
bool parse_count(const char *s, uint64_t least, uint64_t most, uint64_t *n);
/* The least of @nr sorted values that @percent of them do not exceed; with 0 %, the first. */
int64_t percentile(const int64_t *sorted, size_t nr, unsigned int percent);

#define PLAIN_MAX	80

/*
 * Make the name of a process safe to print, as the kernel's list of wheels does: characters that
 * are not plain become \ooo. Any user may choose such a name, and others see it on their terminal.
 */
const char *plain_name(const char *name, char buf[PLAIN_MAX]);
/* Report that output could not be written, and exit with exit_failure. */
noreturn void write_error(int err);
/* Exit with exit_failure if something printed so far could not be written. */
void check_stdout(void);

/* help.c */

/* Print the help of one command, or, if @name is NULL, of all, and exit. */
noreturn void help(const char *name);

/* line.c */

/* Is @fd a terminal that has this capability of terminfo(5), a string? */
bool terminal_can(int fd, const char *capability);
/*
 * May a line be shown? Standard error must be a terminal that can clear the line again, and this
 * process must be in its foreground: otherwise it would write over the shell's prompt.
 */
bool line_there(void);
/* Show a line in place of the one that is shown. The caller has asked line_there(). Any thread. */
__attribute__((format(printf, 1, 2)))
void line_show(const char *fmt, ...);
/* Clear the line, if one is shown, so that something else may be printed. Any thread. */
void line_clear(void);
/* Is a line shown at the moment? Any thread. */
bool line_shown(void);

/**
 * struct run_info - a run of a command; the thread that runs the command owns it
 * @due_ns:	when it was due, by the wall clock
 * @nr:		its number; the first run is 1
 * @missed:	times left out since the last run
 * @all_missed:	times left out since the first run
 */
struct run_info {
	int64_t		due_ns;
	uint64_t	nr;
	uint64_t	missed;
	uint64_t	all_missed;
};

/* What to do about times by the calendar that have passed. */
enum missed { MISSED_ONCE, MISSED_SKIP, MISSED_BURST };

/**
 * struct calendar - the times of a job, by the calendar
 * @on:		the job has such times
 * @over:	there is no further time
 * @missed:	what to do about times that have passed
 * @zone_name:	the zone that was asked for; NULL: the local one
 * @jitter_ns:	the maximum random delay of a run
 * @explain:	how many times to print, instead of running anything
 * @zone:	the zone
 * @cron:	the expression
 * @seed:	of the jitter
 * @due_ns:	the next time
 * @at_ns:	that time and its jitter: when the command is run
 * @runs:	how many runs have begun
 * @left_out:	times left out since the last run
 * @all_left_out: times left out before that run
 * @in_a_row:	runs in a row that have made up for missed times
 *
 * Until its task is added, a calendar is the first thread's. After that @over, @due_ns, @at_ns,
 * @runs, @left_out, @all_left_out and @in_a_row are guarded by the lock of calendar.c, for the
 * task's thread and the watcher of the clock. The other members do not change any more.
 */
struct calendar {
	bool		on;
	bool		over;
	enum missed	missed;
	const char	*zone_name;
	int64_t		jitter_ns;
	uint64_t	explain;
	struct zone	zone;
	struct cron	cron;
	uint64_t	seed;
	int64_t		due_ns;
	int64_t		at_ns;
	uint64_t	runs;
	uint64_t	left_out;
	uint64_t	all_left_out;
	int		in_a_row;
};

#define PHRASE_MAX	192

/* calendar.c */
int calendar_phrase(char *const *word, int nr, char expression[PHRASE_MAX]);
/*
 * Set up a calendar for an expression of cron, and its first time; with @at_once that is now. The
 * zone and the options must be set before. Returns false, with the reason in @error, if the
 * expression or the zone is wrong, or no time ever matches.
 */
bool calendar_set(struct calendar *cal, const char *expression, bool at_once,
		  char error[CRON_ERROR]);
/* A task for the first time of @cal. calendar_run() gives it the next times. */
struct twheel_task calendar_task(const struct calendar *cal);
void calendar_added(struct twheel_sched *sched, struct calendar *cal, uint64_t id);
bool calendar_run(struct calendar *cal, const struct twheel_task_info *task, struct run_info *run);
const char *calendar_show(const struct calendar *cal, int64_t ns, char buf[48]);
/*
 * Print the next times: as lines of JSON to @reports or, if that is NULL, as text to standard
 * output.
 */
int calendar_explain(struct calendar *cal, FILE *reports);
const char *run_due(const struct calendar *cal, const struct run_info *run, char buf[48]);
char **run_environ(const struct calendar *cal, const struct run_info *run);
/* Stop telling @cal about a set clock. Call this before its task is cancelled. */
void calendar_removed(const struct calendar *cal);
/*
 * Watch for a set clock, from when the tasks were added until calendar_unwatch(), which must come
 * before the scheduler is closed. If no calendar was added there is nothing to watch, unless @more
 * may be added meanwhile.
 */
void calendar_watch(bool more);
void calendar_unwatch(void);
/* The clock may have been set. If it was set back far enough, compute all next times again. */
void calendar_clock_set(void);

/* The commands; argv[0] is their name. They return the exit status. */
int cmd_job(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_plot(int argc, char **argv);

/* Write one line of JSON to @to and free @object. Return 0, or an errno. */
int json_write(FILE *to, struct json_object *object);
/* The same to the standard output; ends the program if it cannot be written. */
void json_line(struct json_object *object);
/* Add a member to @object. A NULL @value of json_string() becomes null. */
void json_int(struct json_object *object, const char *key, int64_t value);
void json_string(struct json_object *object, const char *key, const char *value);

#endif
