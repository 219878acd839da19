/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What a job is: its definition, which is JSON as twheel-job(5) describes it, checked and parsed.
 *
 * Times are in us since 1970 in UTC, durations in us. 0 stands for no time, and NEVER for a time
 * that is not known yet.
 */
#ifndef JOBS_DEF_H
#define JOBS_DEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <json-c/json.h>

#include "cron.h"

#define US_PER_MS	1000LL
#define US_PER_S	1000000LL
#define NEVER		INT64_MAX
#define ERROR_MAX	512
#define NAME_LENGTH	128	/* of a job, a calendar, a pool, and the key of a shot: bytes */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

enum kind { KIND_NONE, KIND_CRON, KIND_RATE, KIND_DELAY, KIND_AT, KIND_AFTER };

enum missed { MISSED_ONCE, MISSED_SKIP, MISSED_ALL };

enum overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_REPLACE, OVERLAP_ALLOW };

/**
 * struct days - a calendar: days on which jobs do not run
 * @next:	the next calendar, in the list of all
 * @name:	its name, by which definitions refer to it
 * @day:	the days, numbered as in civil.h, sorted
 * @nr:		how many days
 */
struct days {
	struct days	*next;
	char		*name;
	int64_t		*day;
	size_t		nr;
};

/* The calendar of that name. If there is none, return NULL, or with @make an empty new one. */
struct days *days_find(const char *name, bool make);

/* Empty all calendars, before they are read from the store again. */
void days_clear(void);

/* Remove a calendar. No definition may refer to it. */
void days_forget(const char *name);

/**
 * struct def - a parsed definition
 * @json:	the definition as it was put; the strings below are part of it
 * @kind:	which key says when the job is due
 * @cron:	KIND_CRON: the expression
 * @zone:	the time zone in which @cron and @except are read
 * @period:	KIND_RATE, KIND_DELAY, KIND_AFTER: how long
 * @start:	KIND_AT: when; KIND_RATE: a time that the phase goes through, or 0
 * @spread:	the job's times are later by a hash of its name, at most by this much
 * @except:	the calendar of the days on which it is not due, or NULL
 * @missed:	what to do with times that have passed
 * @grace:	how late a run may begin and still be on time
 * @overlap:	what to do with a firing while another one runs
 * @queue:	OVERLAP_QUEUE: how many firings may wait
 * @retries:	how often a failed run is repeated
 * @wait:	how long to wait before the first repetition
 * @factor:	the factor by which the wait grows with each repetition
 * @timeout:	how long a run may take, or 0
 * @stop:	how long a run that was asked to end has before it is killed
 * @keep:	how long its history and logs are kept, or 0 for the daemon's default
 * @report:	do not repeat a run that was lost, only report it
 * @argv:	the command
 * @url:	where to send an HTTP request instead of running @argv, or NULL
 * @headers:	headers of that request, as "Name: value"
 * @pool:	the pool whose runners run it, or NULL: the daemon does
 * @prio:	of the runs that wait for a pool, those with the greatest go first
 * @each:	each runner of the pool runs it
 * @prefer:	a key that says which runner is to run it if it can, or NULL
 * @alarm_to:	who is told when it fails
 * @alarm_late:	they are also told if a run has not begun this long after it was due; 0: they are
 *		not
 * @alarm_every: the shortest time from one alarm to the next
 * @env:	variables added to the environment
 * @user:	the user it runs as, or NULL for the daemon's
 * @dir:	its directory, or NULL for the user's home
 * @input:	its standard input, or NULL for none
 * @memory:	limit of its cgroup in bytes, or 0
 * @cpu:	limit of its cgroup in percent of a CPU, or 0
 * @pids:	limit of its cgroup in processes, or 0
 * @limits:	limits for setrlimit(), by resource
 * @limited:	which of @limits are set, a bit each
 * @then_ok:	the names of the jobs that run after it succeeded
 * @then_fail:	the names of the jobs that run after it failed
 */
struct def {
	struct json_object	*json;
	enum kind		kind;
	struct cron		cron;
	const struct zone	*zone;
	int64_t			period;
	int64_t			start;
	int64_t			spread;
	const struct days	*except;
	enum missed		missed;
	int64_t			grace;
	enum overlap		overlap;
	int64_t			queue;
	int64_t			retries;
	int64_t			wait;
	double			factor;
	int64_t			timeout;
	int64_t			stop;
	int64_t			keep;
	bool			report;
	const char		**argv;
	const char		*url;
	const char		**headers;
	const char		*pool;
	int64_t			prio;
	bool			each;
	const char		*prefer;
	const char		**alarm_to;
	int64_t			alarm_late;
	int64_t			alarm_every;
	const char		**env;
	const char		*user;
	const char		*dir;
	const char		*input;
	int64_t			memory;
	int64_t			cpu;
	int64_t			pids;
	rlim_t			limits[RLIM_NLIMITS];
	uint32_t		limited;
	const char		**then_ok;
	const char		**then_fail;
};

/**
 * def_parse() - parse a definition
 * @def:	filled in; def_free() frees it
 * @json:	the definition. @def takes a reference. A relative time in it, such as "tomorrow",
 *		is replaced by the absolute time that it means at @now
 * @now:	the present time
 * @error:	filled in with what is wrong, if anything is
 *
 * Return: true if the definition is valid. If not, there is nothing to free.
 */
bool def_parse(struct def *def, struct json_object *json, int64_t now, char error[ERROR_MAX]);
/*
 * def_parse() of a definition that was valid once, except that the user is not looked up:
 * exec_begin() looks the user up for each run, and the directory of users may not answer now.
 */
bool def_load(struct def *def, struct json_object *json, int64_t now, char error[ERROR_MAX]);
/*
 * Look up a user. A directory of users may be slow, or not answer: def_guard(), if it is set, is
 * called with true before, and with false after that. NULL with errno 0 if there is no such user,
 * and with another errno if the directory could not be asked.
 */
struct passwd *def_user(const char *name);
extern void (*def_guard)(bool on);
/* Why this daemon cannot run jobs as @pw, or NULL. */
const char *def_user_wrong(const struct passwd *pw);

void def_free(struct def *def);

/* Can a job, or a calendar, have this name? */
bool name_good(const char *name);

/* @json in one line. The text belongs to @json. */
const char *json_text(struct json_object *json);

/* A time in the format of RFC 3339, in UTC. */
const char *time_text(int64_t us, char buf[40]);

#endif
