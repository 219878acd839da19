/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel(1): what its files share.
 *
 *	main.c	the words of the command line
 *	when.c	durations and times as people write them
 *	jobs.c	after, at, every, run: commands at their time, on libtwheel's scheduler
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
#include <stdint.h>
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
noreturn void usage(int status);
noreturn void try_help(int status);

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

/* Prints one line of JSON, and frees @object. */
void json_line(struct json_object *object);
void json_int(struct json_object *object, const char *key, int64_t value);
void json_string(struct json_object *object, const char *key, const char *value);

#endif
