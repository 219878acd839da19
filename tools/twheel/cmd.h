/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel(1): what its files share.
 *
 *	main.c	the words of the command line, and output
 *	help.c	what --help says
 *	when.c	durations and times as people write them
 *	jobs.c	after, at, every, run: commands at their time, on libtwheel's scheduler
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
