/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the examples in C share: everything but the loop. Each example is an alarm clock. It reads
 * lines "MS NAME" from standard input. When MS milliseconds have passed, it prints "NAME LATE_US":
 * how late the alarm is, in us. It ends when the input has ended and no alarm is pending.
 *
 * So a loop waits for two descriptors: standard input, and the wheel, which has all alarms, be they
 * three or a million.
 */
#ifndef ALARMS_H
#define ALARMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libtwheel.h"

#define NS_PER_MS	1000000ULL
#define LINE_ROOM	4096

struct alarms {
	struct twheel	*wheel;
	unsigned int	pending;
	bool		at_end;		/* of the input */
	size_t		len;
	char		line[LINE_ROOM];
};

static inline void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static inline void alarms_open(struct alarms *a)
{
	int err = twheel_open(&a->wheel, 0, NULL);

	if (err)
		die("twheel_open()", err);
}

/* The name is the timer's user data: it comes back when the timer fires. */
static inline void alarms_add(struct alarms *a, const char *line)
{
	char *name, *copy;
	uint64_t ms = strtoull(line, &name, 10), handle;
	int err;

	copy = strdup(name + strspn(name, " "));
	err = twheel_add(a->wheel, &handle, (uintptr_t)copy, ms * NS_PER_MS, 0, 0);
	if (err)
		die("twheel_add()", err);
	a->pending++;
}

/* @n bytes of input were appended to @a->line; 0: the input has ended. */
static inline void alarms_got(struct alarms *a, size_t n)
{
	char *start = a->line, *end;

	a->at_end = !n;
	a->len += n;
	while ((end = memchr(start, '\n', a->len - (size_t)(start - a->line)))) {
		*end = 0;
		alarms_add(a, start);
		start = end + 1;
	}
	a->len -= (size_t)(start - a->line);
	memmove(a->line, start, a->len);
}

/* Standard input is readable. */
static inline void alarms_input(struct alarms *a)
{
	ssize_t n = read(STDIN_FILENO, a->line + a->len, LINE_ROOM - a->len);

	alarms_got(a, n > 0 ? (size_t)n : 0);
}

static inline void alarms_print(struct alarms *a, const struct twheel_event *event)
{
	char *name = (char *)(uintptr_t)event->user_data;
	struct timespec ts;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	printf("%s %lld\n", name, (long long)(now - (int64_t)event->expires_ns) / 1000);
	free(name);
	a->pending--;
}

/* The wheel is readable: read until it is empty, which also suits loops that report edges. */
static inline void alarms_ring(struct alarms *a)
{
	struct twheel_event events[64];
	int n;

	while ((n = twheel_read(a->wheel, events, 64, 0)) > 0)
		for (int i = 0; i < n; i++)
			alarms_print(a, &events[i]);
	fflush(stdout);
}

static inline bool alarms_over(const struct alarms *a)
{
	return a->at_end && !a->pending;
}

#endif
