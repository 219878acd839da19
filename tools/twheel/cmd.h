/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel(1): what its files share.
 *
 *	main.c	the words of the command line, and output
 *	help.c	what --help says
 *	when.c	durations and times as people write them
 *	jobs.c	after, at, every, cron, run: commands at their time, on libtwheel's scheduler
 *	calendar.c	times by the calendar, on ../../calendar
 *	child.c	the processes of these commands, signals, and the terminal
 *	line.c	a line on the terminal that tells how it goes
 *	show.c	ls, info
 *	bench.c	bench
 *	top.c	top: samples, and output for scripts
 *	screen.c	top's screen
 *	plot.c	plot: pictures of what bench measured
 *
 * Exit status, as env(1) and timeout(1) have it: that of the command where there is one;
 * 125 if twheel itself fails, 126 if the command cannot be run, 127 if it is not found.
 * Without a command, 1 if it fails.
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

#define NS_PER_US	1000LL
#define NS_PER_MS	1000000LL
#define NS_PER_S	1000000000LL

#define EXIT_CANCELED	125	/* the name is coreutils' */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* main.c */

/* The status to exit with if output cannot be written. */
extern int exit_failure;

noreturn void try_help(int status);
/* A number of decimal digits, and nothing else, from @least to @most. */
bool parse_count(const char *s, uint64_t least, uint64_t most, uint64_t *n);
/*
 * Of @nr sorted values, the least one that @percent of them do not exceed; of 0 the first.
 */
int64_t percentile(const int64_t *sorted, size_t nr, unsigned int percent);
/* End with exit_failure: output could not be written. */
noreturn void write_error(int err);
/* End with exit_failure if something printed so far was not written. */
void check_stdout(void);

/* help.c */

/* Print the help of a command, or with NULL of all, and exit. */
noreturn void help(const char *name);

/* line.c */

/* Is @fd a terminal with that capability of terminfo(5), a string? */
bool terminal_can(int fd, const char *capability);
/*
 * Is there a line to write on? Standard error is a terminal that can take the line away
 * again, and this process is in its foreground: otherwise it would write over the prompt.
 */
bool line_there(void);
__attribute__((format(printf, 1, 2)))
void line_show(const char *fmt, ...);
/* Take the line away, if one is shown. */
void line_clear(void);
bool line_shown(void);

/* when.c */
bool parse_duration(const char *s, int64_t *ns);
bool parse_time(const char *s, int64_t now, int64_t *ns);
const char *show_duration(int64_t ns, char buf[32]);
const char *show_time(int64_t ns, char buf[48]);
int64_t time_now(clockid_t clock);

/**
 * struct run_info - a run of a command
 * @due_ns:	when it was due, by the clock on the wall
 * @nr:		the first is 1
 * @missed:	times since the last run that nothing was run for
 * @all_missed:	those since the first
 */
struct run_info {
	int64_t		due_ns;
	uint64_t	nr;
	uint64_t	missed;
	uint64_t	all_missed;
};

/* What becomes of times by the calendar that have passed. */
enum missed { MISSED_ONCE, MISSED_SKIP, MISSED_BURST };

/**
 * struct calendar - the times of a job, by the calendar
 * @on:		it has such times
 * @over:	there is none any more
 * @missed:	what becomes of those that have passed
 * @zone_name:	asked for; NULL: the local one
 * @jitter_ns:	how much later a run may be
 * @explain:	how many times are to be told, instead of running anything
 * @zone:	the zone
 * @cron:	the expression
 * @seed:	of the jitter
 * @due_ns:	the next time
 * @at_ns:	when that is run
 * @runs:	that were begun
 * @left_out:	times since the last one that nothing was run for
 * @all_left_out: those before it
 * @in_a_row:	runs that have made up for missed times
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
bool calendar_set(struct calendar *cal, const char *expression, bool at_once,
		  char error[CRON_ERROR]);
struct twheel_task calendar_task(const struct calendar *cal);
void calendar_added(struct twheel_sched *sched, struct calendar *cal, uint64_t id);
bool calendar_run(struct calendar *cal, const struct twheel_task_info *task, struct run_info *run);
const char *calendar_show(const struct calendar *cal, int64_t ns, char buf[48]);
/* Tell the next times: as lines of JSON to @reports, or if that is NULL to the standard output. */
int calendar_explain(struct calendar *cal, FILE *reports);
const char *run_due(const struct calendar *cal, const struct run_info *run, char buf[48]);
char **run_environ(const struct calendar *cal, const struct run_info *run);
/* From when the tasks were added until the scheduler is closed. */
void calendar_watch(void);
void calendar_unwatch(void);
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
void json_int(struct json_object *object, const char *key, int64_t value);
void json_string(struct json_object *object, const char *key, const char *value);

#endif
