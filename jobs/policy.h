/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * When a job is due, and what becomes of times that have passed. Pure functions: what they say
 * depends on their arguments and on the calendars alone.
 */
#ifndef JOBS_POLICY_H
#define JOBS_POLICY_H

#include "def.h"

#define MISSED_COUNTED	1000000		/* more are not counted, and left out */
#define MISSED_RUN	100		/* missed: all: so many, and the rest is left out */

/**
 * first_due() - when is a job due that was just put?
 * @def:	the job
 * @name:	its name, of which its share of a spread is
 * @now:	the time
 *
 * Return: the time, or 0: never.
 */
int64_t first_due(const struct def *def, const char *name, int64_t now);

/**
 * next_due() - when is a job due by the clock or by a rate, after a time it was due at?
 * @def:	the job
 * @name:	its name
 * @at:		that time
 *
 * Return: the time, or 0: never again.
 */
int64_t next_due(const struct def *def, const char *name, int64_t at);

/**
 * due_again() - when is a job due by the clock or by a rate, with other days off than before?
 * @def:	the job
 * @name:	its name
 * @due:	when it would have been due, or 0
 * @now:	the time
 *
 * Return: the time, or 0: never.
 */
int64_t due_again(const struct def *def, const char *name, int64_t due, int64_t now);

/**
 * struct plan - what is to become of a time that has come
 * @run:	it is run; otherwise it is missed, or too late
 * @next:	the next time: 0: there is none; NEVER: that is known when this run is over
 * @missed:	how many times are left out for it, itself too if it is not run
 */
struct plan {
	bool	run;
	int64_t	next;
	int64_t	missed;
};

/**
 * plan_firing() - what is to become of a time that has come?
 * @def:	the job
 * @name:	its name
 * @at:		the time
 * @now:	what time it is
 * @once:	it is not of the job's schedule, but was asked for on its own
 *
 * Return: that.
 */
struct plan plan_firing(const struct def *def, const char *name, int64_t at, int64_t now,
			bool once);

/* Is it later than the job calls on time? */
static inline bool is_late(const struct def *def, int64_t at, int64_t now)
{
	return now - at > def->grace;
}

/* How long to wait before a run that has failed @tries times is made again. */
int64_t retry_wait(const struct def *def, int64_t tries);

#endif
