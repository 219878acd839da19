// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The timers that twheel-demo runs: random ones, or those of a text file.
 *
 * Random timers have delays that are uniform from 1 ms to 60 s. 2 % are a tail: their delays are 1
 * to 24 hours. 10 % are cancelled and 20 % re-armed, each at a random time before it is due. These
 * have delays of 5 s and more, so that arming a million timers is over by then. At the end, half of
 * the tail is cancelled, and the other half is left to close().
 *
 * A file has a line for each timer,
 *
 *	delay_ms [interval_ms] [cancel_after_ms]
 *
 * in decimal, perhaps with a fraction; 0 for an interval or a cancel means none.
 * A # begins a comment. A line that is wrong is reported on stderr and left out.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define TAIL_PERCENT	2
#define CANCEL_PERCENT	10
#define REARM_PERCENT	20
#define ACT_DELAY	(5 * SEC)

#define MS_MAX		4e12	/* 126 years: four of them can be added up */

/* xorshift64*; the seed must not be 0. */
u64 rnd(u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 2685821657736338717ULL;
}

/* Allocate the timers, and touch the memory, so that it does not count as the kernel's later. */
static struct timer *timers_alloc(size_t nr)
{
	struct timer *timers = malloc(nr * sizeof(*timers));

	if (!timers) {
		fprintf(stderr, "twheel-demo: no memory for %zu timers\n", nr);
		exit(1);
	}
	memset(timers, 0, nr * sizeof(*timers));
	return timers;
}

/* Plan @act for @nr timers, or for as many as have a delay that is long enough. */
static void give_acts(struct workload *w, enum act what, u32 nr, u64 *seed)
{
	u64 tries = 100ULL * w->nr;

	while (nr && tries--) {
		struct timer *t = &w->timers[rnd(seed) % w->nr];

		if (t->act || t->tail || t->delay < ACT_DELAY)
			continue;
		t->act = what;
		t->act_at = ACT_DELAY / 2 + rnd(seed) % (t->delay - ACT_DELAY / 2);
		t->act_at = t->act_at * 9 / 10;
		nr--;
	}
}

void workload_generate(struct workload *w, u32 nr, u64 *seed)
{
	u32 i;

	w->timers = timers_alloc(nr);
	w->nr = nr;
	for (i = 0; i < nr; i++) {
		struct timer *t = &w->timers[i];

		t->tail = rnd(seed) % 100 < TAIL_PERCENT;
		if (t->tail)
			t->delay = 3600 * SEC + rnd(seed) % (23 * 3600 * SEC);
		else
			t->delay = MSEC + rnd(seed) % (RUN_NS - MSEC);
	}
	give_acts(w, ACT_CANCEL, (u32)(nr * (u64)CANCEL_PERCENT / 100), seed);
	give_acts(w, ACT_REARM, (u32)(nr * (u64)REARM_PERCENT / 100), seed);
}

/* Parse a number of ms at *@s. Returns ns, and moves *@s past the number and blanks. */
static bool parse_ms(const char **s, u64 *ns)
{
	size_t len = strspn(*s, "0123456789.");
	char *end;
	double ms;

	if (!isdigit((unsigned char)**s))
		return false;
	ms = strtod(*s, &end);
	if (end != *s + len || ms > MS_MAX)
		return false;
	if (*end && !isspace((unsigned char)*end))
		return false;
	*ns = (u64)(ms * (double)MSEC + 0.5);
	*s = end + strspn(end, " \t\r\n");
	return true;
}

/* Parse a line that is not empty into @t. Returns NULL, or what is wrong with it. */
static const char *parse_line(const char *line, struct timer *t)
{
	u64 cancel = 0;

	if (!parse_ms(&line, &t->delay))
		return "the delay is not a number of ms";
	if (*line && !parse_ms(&line, &t->interval))
		return "the interval is not a number of ms";
	if (*line && !parse_ms(&line, &cancel))
		return "the time of the cancel is not a number of ms";
	if (*line)
		return "more than three numbers";
	if (t->interval && t->interval < MSEC)
		return "an interval shorter than 1 ms";
	t->act = cancel ? ACT_CANCEL : ACT_NONE;
	t->act_at = cancel;
	return NULL;
}

/* Append a timer. The array doubles when it is full. */
static void workload_add(struct workload *w, const struct timer *t)
{
	if (!(w->nr & (w->nr - 1))) {	/* full at each power of two */
		struct timer *more = timers_alloc(w->nr ? 2 * (size_t)w->nr : 1);

		if (w->nr)
			memcpy(more, w->timers, w->nr * sizeof(*more));
		free(w->timers);
		w->timers = more;
	}
	w->timers[w->nr++] = *t;
}

int workload_read(struct workload *w, const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	u32 n = 0;
	int err;

	if (!f)
		return -1;
	while ((len = getline(&line, &room, f)) >= 0) {
		struct timer t = { 0 };
		const char *why = NULL, *start = line;

		n++;
		if (strlen(line) != (size_t)len)
			why = "a NUL byte";
		line[strcspn(line, "#")] = 0;
		start += strspn(line, " \t\r\n");
		if (!why && !*start)
			continue;
		why = why ?: parse_line(start, &t);
		if (why) {
			fprintf(stderr, "%s:%u: %s\n", path, n, why);
			w->malformed++;
		} else {
			workload_add(w, &t);
		}
	}
	err = ferror(f);
	free(line);
	fclose(f);
	return err ? -1 : 0;
}
