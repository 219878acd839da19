// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A line of progress on standard error, which is cleared again. terminfo says how to clear it; a
 * terminal that cannot, such as TERM=dumb, gets no line.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "cmd.h"

#include <curses.h>
#include <term.h>

/* Guards @shown, and what of standard error belongs together. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool shown;		/* a line is there, and must be cleared before anything else */

bool terminal_can(int fd, const char *capability)
{
	const char *s;
	int err;

	if (!isatty(fd) || setupterm(NULL, fd, &err) != OK)
		return false;
	s = tigetstr(capability);
	return s && s != (char *)-1;
}

/* Can the terminal erase a line? It is asked once. */
static bool is_capable(void)
{
	static enum { UNKNOWN, NO, YES } capable;

	if (capable == UNKNOWN)
		capable = terminal_can(STDERR_FILENO, "cr") &&
			  terminal_can(STDERR_FILENO, "el") ? YES : NO;
	return capable == YES;
}

bool line_there(void)
{
	return is_capable() && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* For tputs(), which wants a function of one argument. */
static int put(int c)
{
	return fputc(c, stderr);
}

/* Erase the status line. Under the lock. */
static void erase_line(void)
{
	tputs(carriage_return, 1, put);
	tputs(clr_eol, 1, put);
}

void line_show(const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	erase_line();
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fflush(stderr);
	shown = true;
	pthread_mutex_unlock(&lock);
}

void line_clear(void)
{
	pthread_mutex_lock(&lock);
	if (shown)
		erase_line();
	fflush(stderr);
	shown = false;
	pthread_mutex_unlock(&lock);
}

bool line_shown(void)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = shown;
	pthread_mutex_unlock(&lock);
	return is;
}
