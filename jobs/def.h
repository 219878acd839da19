/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What a job is: its definition, JSON as twheel-job(5) has it, checked and taken apart.
 *
 * Times are in us since 1970 in UTC, durations in us. 0 is no time, and NEVER one that does not
 * come.
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

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

enum kind { KIND_NONE, KIND_CRON, KIND_RATE, KIND_DELAY, KIND_AT, KIND_AFTER };

enum missed { MISSED_ONCE, MISSED_SKIP, MISSED_ALL };

enum overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_REPLACE, OVERLAP_ALLOW };

/**
 * struct days - a calendar: days on which jobs do not run
 * @next:	in the list of all
 * @name:	what jobs call it
 * @day:	the days, see civil.h, sorted
 * @nr:		how many
 */
struct days {
	struct days	*next;
	char		*name;
	int64_t		*day;
	size_t		nr;
};

/* The calendar of that name; if there is none it is made where @make says so, or NULL. */
struct days *days_find(const char *name, bool make);

/* They are read again. */
void days_clear(void);

/* No definition has it. */
void days_forget(const char *name);

/**
 * struct def - a definition
 * @json:	as it was put; the strings below are its
 * @kind:	when it is due
 * @cron:	KIND_CRON
 * @zone:	whose clock it goes by
 * @period:	KIND_RATE, KIND_DELAY, KIND_AFTER: how long
 * @start:	KIND_AT: when; KIND_RATE: a time that the phase is of, or 0
 * @spread:	its times are up to that much later, by a hash of its name
 * @except:	on these days it is not due, or NULL
 * @missed:	what becomes of times that have passed
 * @grace:	how late a run may begin and be on time
 * @overlap:	what becomes of a firing while it runs
 * @queue:	OVERLAP_QUEUE: how many may wait
 * @retries:	how often a run that failed is made again
 * @wait:	how long after it, for the first time
 * @factor:	so much longer each time
 * @timeout:	how long a run may take, or 0
 * @stop:	how long one that is to end has for it, before it is killed
 * @keep:	how long its history and logs are kept, or 0: the daemon's way
 * @report:	a run that was lost is not made again
 * @argv:	the command
 * @env:	what is added to the environment
 * @user:	as whom, or NULL: as the daemon
 * @dir:	where, or NULL: in the user's home
 * @input:	what it reads, or NULL: nothing
 * @memory:	of its cgroup: bytes; 0: no limit
 * @cpu:	the same: percent of a CPU
 * @pids:	the same: processes
 * @limits:	of setrlimit(), where @limited has a bit
 * @limited:	see there
 * @then_ok:	jobs to run after it, by name
 * @then_fail:	if it failed
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
 * def_parse() - understand a definition
 * @def:	filled in; it is def_free() that frees it
 * @json:	the definition, a reference of which is taken. Times that depend on when they are
 *		said are replaced by those they mean
 * @now:	when they are said
 * @error:	filled in with what is wrong, a sentence
 *
 * Return: is it one?
 */
bool def_parse(struct def *def, struct json_object *json, int64_t now, char error[ERROR_MAX]);

void def_free(struct def *def);

/* May a job be called that? */
bool name_good(const char *name);

/* In one line; @json's. */
const char *json_text(struct json_object *json);

/* As RFC 3339 has it, in UTC. */
const char *time_text(int64_t us, char buf[40]);

#endif
