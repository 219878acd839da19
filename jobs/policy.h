/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * When a job is due, and what to do with times that have passed. Pure functions: their results
 * depend only on their arguments and on the calendars.
 */
#ifndef JOBS_POLICY_H
#define JOBS_POLICY_H

#include "def.h"

#define MISSED_COUNTED	1000000		/* missed times are counted up to this */
#define MISSED_RUN	100		/* missed=all makes up for at most this many */

/**
 * first_due() - when is a job due that was just put?
 * @def:	the job
 * @name:	its name, whose hash is its share of a spread
 * @now:	the time
 *
 * Return: the time, or 0 for never.
 */
int64_t first_due(const struct def *def, const char *name, int64_t now);

/**
 * next_due() - when is a job with KIND_CRON or KIND_RATE due next?
 * @def:	the job
 * @name:	its name
 * @at:		the time at which it was due last
 *
 * Return: the time, or 0 for never again.
 */
int64_t next_due(const struct def *def, const char *name, int64_t at);

/**
 * due_again() - when is a job with KIND_CRON or KIND_RATE due, after its calendar has changed?
 * @def:	the job
 * @name:	its name
 * @due:	when it would have been due with the old calendar, or 0
 * @now:	the time
 *
 * A rate keeps its phase and does not begin before its start. A time that has passed stays, so that
 * it is run or counted as missed.
 *
 * Return: the time, or 0 for never.
 */
int64_t due_again(const struct def *def, const char *name, int64_t due, int64_t now);

/*
 * Is the schedule of both definitions the same one, and goes on when one replaces the other? With
 * KIND_AT, the new time is the old one anyway.
 */
bool same_schedule(const struct def *a, const struct def *b);

/**
 * due_minutes() - count how often a job is due in each of the coming minutes
 * @def:	the job
 * @name:	its name
 * @due:	one of its times, or 0 or NEVER if none is known
 * @from:	times before this do not count
 * @minutes:	the first one is the minute that @from is in. The job's times are added to them
 * @nr:		how many minutes
 *
 * For a rate, all its times within a minute are taken to be on the same day.
 *
 * Return: by how many steps this was computed: how long it took.
 */
size_t due_minutes(const struct def *def, const char *name, int64_t due, int64_t from,
		   int64_t *minutes, size_t nr);

/**
 * struct plan - what to do at a time that has come
 * @run:	run the job; otherwise the time is missed
 * @next:	the next time; 0 if there is none; NEVER if it is only known when this run is over
 * @missed:	how many times are skipped; if @run is false, this one counts too
 */
struct plan {
	bool	run;
	int64_t	next;
	int64_t	missed;
};

/**
 * plan_firing() - decide what to do at a time that has come
 * @def:	the job
 * @name:	its name
 * @at:		the time that has come
 * @now:	the present time, which may be much later
 * @once:	the time does not come from the job's schedule: somebody asked for it
 *
 * Return: the plan.
 */
struct plan plan_firing(const struct def *def, const char *name, int64_t at, int64_t now,
			bool once);

/* Is it too late to begin the run that was due at @at? */
static inline bool is_late(const struct def *def, int64_t at, int64_t now)
{
	return now - at > def->grace;
}

/* How long to wait before a run that has failed @tries times is repeated. */
int64_t retry_wait(const struct def *def, int64_t tries);

#endif
