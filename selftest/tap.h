/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The Test Anything Protocol: plan(n), then ok() n times, then return done() from
 * main(). A run that stops early has not passed, and done() says so.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* The kernel's name for it. */
#define __printf(fmt, args)	__attribute((format(printf, fmt, args)))

static unsigned int tap_planned, tap_run, tap_failed;

static inline void plan(unsigned int n)
{
	setvbuf(stdout, NULL, _IOLBF, 0);	/* a crash loses no line */
	tap_planned = n;
	printf("1..%u\n", n);
}

/* A result. Returns @cond, so that what led to it can be told with diag(). */
static inline __printf(2, 3) bool ok(bool cond, const char *fmt, ...)
{
	va_list args;

	printf("%sok %u - ", cond ? "" : "not ", ++tap_run);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	tap_failed += !cond;
	return cond;
}

static inline __printf(1, 2) void diag(const char *fmt, ...)
{
	va_list args;

	fputs("# ", stdout);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

/* The exit status: 0 only if all that was planned was run and passed. */
static inline int done(void)
{
	if (tap_run != tap_planned)
		diag("planned %u, ran %u", tap_planned, tap_run);
	return tap_failed || tap_run != tap_planned;
}

#endif
