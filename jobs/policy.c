// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* When a job is due: see policy.h. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "civil.h"
#include "policy.h"

#define SKIPPED_MAX	2000		/* give up after so many stretches of days off */
#define CRON_SIZE	(offsetof(struct cron, fixed) + sizeof(bool))	/* without padding */
#define MINUTE		(60 * US_PER_S)
#define TIME_MAX	1000000000000000000LL	/* us; any later time counts as never */
#define WAIT_MAX	(366LL * SECS_PER_DAY * US_PER_S)

/*
 * By how much the spread delays each time of the job, from 0 to def->spread. It is made of a hash
 * of the job's name (FNV-1a), so it is always the same.
 */
static int64_t share(const struct def *def, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	if (!def->spread)
		return 0;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
	hash ^= hash >> 32;
	return (int64_t)(hash % (uint64_t)(def->spread + 1));
}

/* The day that @at falls on in the job's time zone. */
static int64_t local_day(const struct def *def, int64_t at)
{
	struct zone_span span;
	int64_t s = floor_div(at, US_PER_S);

	zone_span(def->zone, s, &span);
	return floor_div(s + span.offset, SECS_PER_DAY);
}

/*
 * How many days off follow each other from @day on? 0 if @day is not a day off. The days are
 * sorted, and no day is there twice. So two binary searches do: one for @day, and one for the last
 * day before the first gap.
 */
static int64_t days_off(const struct days *days, int64_t day)
{
	size_t low = 0, high = days ? days->nr : 0, first;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (days->day[middle] < day)
			low = middle + 1;
		else
			high = middle;
	}
	if (!days || low == days->nr || days->day[low] != day)
		return 0;
	first = low;
	high = days->nr;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (days->day[middle] - day == (int64_t)(middle - first))
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)(low - first);
}

static bool is_off(const struct def *def, int64_t at)
{
	return def->except && days_off(def->except, local_day(def, at));
}

/* The next time after @at, without the spread, even if it is on a day off. 0 if there is none. */
static int64_t step(const struct def *def, int64_t at)
{
	int64_t next;

	if (def->kind == KIND_RATE)
		return __builtin_add_overflow(at, def->period, &next) || next > TIME_MAX ? 0 : next;
	if (!cron_next(&def->cron, def->zone, floor_div(at, US_PER_S), &next) ||
	    next > TIME_MAX / US_PER_S)
		return 0;
	return next * US_PER_S;
}

/*
 * @at is on a day off. Returns the end of that day and of the days off that follow it; or, if the
 * zone's offset changes before that end, the moment before the change. With a rate, it returns the
 * rate's last time before that. With a cron expression, the result need not match the expression.
 */
static int64_t pass_days(const struct def *def, int64_t at)
{
	struct zone_span span;
	int64_t s = floor_div(at, US_PER_S), day, end;

	zone_span(def->zone, s, &span);
	day = floor_div(s + span.offset, SECS_PER_DAY);
	end = (day + days_off(def->except, day)) * SECS_PER_DAY - span.offset;
	end = end < span.to ? end : span.to;
	if (def->kind == KIND_RATE)
		return at + (end * US_PER_S - 1 - at) / def->period * def->period;
	return end * US_PER_S - 1;
}

/*
 * The next time after @at which is not on a day off once the job's spread, @add, is added to it.
 * Both @at and the result are without the spread. 0 if there is none. *@steps grows by the number
 * of times that were tried.
 */
static int64_t next_counted(const struct def *def, int64_t add, int64_t at, size_t *steps)
{
	for (int n = 0; n < SKIPPED_MAX; n++) {
		at = step(def, at);
		++*steps;
		if (!at || !is_off(def, at + add))
			return at;
		at = pass_days(def, at + add) - add;
	}
	return 0;
}

static int64_t next_on(const struct def *def, int64_t add, int64_t at)
{
	size_t steps = 0;

	return next_counted(def, add, at, &steps);
}

/* next_due(), which also counts in *@steps as next_counted() does. */
static int64_t next_due_counted(const struct def *def, const char *name, int64_t at, size_t *steps)
{
	int64_t add = share(def, name);

	at = next_counted(def, add, at - add, steps);
	return at ? at + add : 0;
}

int64_t next_due(const struct def *def, const char *name, int64_t at)
{
	size_t steps = 0;

	return next_due_counted(def, name, at, &steps);
}

/* The first time of a rate after @now, even if it is on a day off. Without the spread. */
static int64_t first_of_rate(const struct def *def, int64_t now)
{
	int64_t start = def->start ? def->start : now + def->period;

	if (start > now)
		return start;
	return start + ((now - start) / def->period + 1) * def->period;
}

/* The first time of a rate after @now that is not on a day off. Without the spread. */
static int64_t first_by_rate(const struct def *def, int64_t add, int64_t now)
{
	int64_t at = first_of_rate(def, now);

	return is_off(def, at + add) ? next_on(def, add, at) : at;
}

int64_t due_again(const struct def *def, const char *name, int64_t due, int64_t now)
{
	int64_t add = share(def, name), at = due - add, past;

	if (due && due <= now)
		return due;
	if (!due || def->kind != KIND_RATE)
		return first_due(def, name, now);
	past = now - add > def->start - 1 ? now - add : def->start - 1;
	at -= (at - past - 1) / def->period * def->period;
	at = is_off(def, at + add) ? next_on(def, add, at) : at;
	return at ? at + add : 0;
}

bool same_schedule(const struct def *a, const struct def *b)
{
	bool goes_on = a->kind != KIND_NONE && a->kind != KIND_AT;

	return goes_on && a->kind == b->kind && a->zone == b->zone && a->period == b->period &&
	       a->start == b->start && a->spread == b->spread && a->except == b->except &&
	       !memcmp(&a->cron, &b->cron, CRON_SIZE);
}

int64_t first_due(const struct def *def, const char *name, int64_t now)
{
	int64_t add = share(def, name), at = 0;

	switch (def->kind) {
	case KIND_CRON:
		return next_due(def, name, now);
	case KIND_RATE:
		at = first_by_rate(def, add, now - add);
		break;
	case KIND_DELAY:
	case KIND_AFTER:
		at = now + def->period;
		break;
	case KIND_AT:
		at = def->start;
		break;
	case KIND_NONE:
		break;
	}
	return at && at < TIME_MAX ? at + add : 0;
}

/*
 * Count the times after @at, up to and including @until, but at most @most. All times are without
 * the spread. *@next becomes the time after the last one counted, or 0 if there is none.
 */
static int64_t pass(const struct def *def, int64_t add, int64_t at, int64_t until, int64_t most,
		    int64_t *next)
{
	int64_t n = 0;

	if (def->kind == KIND_RATE && !def->except && until > at) {
		n = (until - at) / def->period;
		n = n < most ? n : most;
		at += n * def->period;
		*next = step(def, at);
		return n;
	}
	for (*next = next_on(def, add, at); *next && *next <= until && n < most; n++)
		*next = next_on(def, add, *next);
	return n;
}

/*
 * pass(), but *@next is always after @until: of more than MISSED_COUNTED times, the rest is passed
 * without being counted.
 */
static int64_t pass_all(const struct def *def, int64_t add, int64_t at, int64_t until,
			int64_t *next)
{
	int64_t n = pass(def, add, at, until, MISSED_COUNTED, next);

	if (!*next || *next > until)
		return n;
	if (def->kind == KIND_RATE)
		until = *next + (until - *next) / def->period * def->period;
	*next = next_on(def, add, until);
	return n;
}

/* plan_firing() for a time @at that was missed. All times are without the spread. */
static struct plan plan_late(const struct def *def, int64_t add, int64_t at, int64_t now)
{
	struct plan plan = { .run = def->missed != MISSED_SKIP };
	int64_t late = now - def->grace, over;

	if (def->missed == MISSED_ONCE) {
		plan.missed = pass_all(def, add, at, now, &plan.next);
		return plan;
	}
	plan.missed = pass_all(def, add, at, late, &plan.next);
	if (def->missed == MISSED_SKIP) {
		plan.missed++;
		return plan;
	}
	over = plan.missed + 1 - MISSED_RUN;
	plan.missed = 0;
	plan.next = next_on(def, add, at);
	if (over <= 0)
		return plan;
	plan.run = false;
	plan.missed = 1 + pass(def, add, at, late, over - 1, &plan.next);
	return plan;
}

struct plan plan_firing(const struct def *def, const char *name, int64_t at, int64_t now, bool once)
{
	struct plan plan = { .run = !is_late(def, at, now) || def->missed != MISSED_SKIP };
	bool late = is_late(def, at, now);
	int64_t add = share(def, name);

	plan.missed = !plan.run;
	if (once || def->kind == KIND_NONE || def->kind == KIND_AT || def->kind == KIND_AFTER)
		return plan;
	if (def->kind == KIND_DELAY) {
		plan.next = plan.run ? NEVER : now + def->period;
		return plan;
	}
	if (late)
		plan = plan_late(def, add, at - add, now - add);
	else
		plan.next = next_on(def, add, at - add);
	plan.next += plan.next ? add : 0;
	return plan;
}

int64_t retry_wait(const struct def *def, int64_t tries)
{
	double wait = (double)def->wait * pow(def->factor, (double)(tries - 1));

	return wait < WAIT_MAX ? (int64_t)wait : WAIT_MAX;
}

/*
 * The job's first time at @from or later, given that @due is one of its times. 0 if there is none,
 * or if it depends on when a run ends.
 */
static int64_t reach(const struct def *def, const char *name, int64_t due, int64_t from,
		     size_t *steps)
{
	if (due >= from || !due)
		return due == NEVER ? 0 : due;
	if (def->kind == KIND_CRON)
		return next_due_counted(def, name, from - 1, steps);
	if (def->kind == KIND_RATE)
		return next_due_counted(def, name,
					due + (from - due - 1) / def->period * def->period, steps);
	return 0;
}

size_t due_minutes(const struct def *def, const char *name, int64_t due, int64_t from,
		   int64_t *minutes, size_t nr)
{
	size_t steps = 1;
	int64_t at = reach(def, name, due, from, &steps), start = floor_div(from, MINUTE) * MINUTE,
		end = start + (int64_t)nr * MINUTE, left, n;

	while (at && at < end) {
		left = MINUTE - (at - start) % MINUTE;
		n = def->kind == KIND_RATE ? (left - 1) / def->period : 0;
		minutes[(at - start) / MINUTE] += n + 1;
		if (def->kind != KIND_CRON && def->kind != KIND_RATE)
			break;
		at = next_due_counted(def, name, at + n * def->period, &steps);
	}
	return steps;
}
