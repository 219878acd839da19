/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A clock and a timerfd that are only simulated, for one wheel of the embedded backend, which is
 * compiled into the program that includes this. Time passes when the program says so. So what the
 * backend does depends on nothing but its calls, and centuries pass at once.
 *
 * The timerfd does what that of Linux does: it can be read from the time that it is set to, until
 * it is read or set again. If it has TFD_TIMER_CANCEL_ON_SET, it can also be read after the clock
 * was set; the read, or the next timerfd_settime(), then fails with ECANCELED, once. Neither takes
 * back the time to which it is set.
 */
#ifndef SIM_H
#define SIM_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "wheel/test.h"

/**
 * struct sim - the clock and the timerfd
 * @now:	the time, ns, the same by every clock
 * @behind:	how far CLOCK_MONOTONIC_COARSE is behind
 * @when:	the time to which the timerfd is set, until it comes, or 0
 * @readable:	the timerfd can be read
 * @cancels:	it has TFD_TIMER_CANCEL_ON_SET
 * @was_set:	and the clock was set since it was last told
 * @edges:	how often EPOLLET would have reported it
 */
static struct sim {
	u64	now;
	u64	behind;
	u64	when;
	bool	readable;
	bool	cancels;
	bool	was_set;
	u64	edges;
} sim;

static void sim_wake(void)
{
	sim.readable = true;
	sim.edges++;
}

/* The time has changed, or that to which the timerfd is set. */
static void sim_look(void)
{
	if (!sim.when || sim.when > sim.now)
		return;
	sim.when = 0;
	sim_wake();
}

/* Somebody sets the clock. */
static void sim_set(u64 now)
{
	sim.now = now;
	sim.was_set = true;
	sim_wake();
	sim_look();
}

/* What tells that the clock was set, once. */
static bool sim_canceled(void)
{
	bool canceled = sim.cancels && sim.was_set;

	sim.was_set &= !canceled;
	return canceled;
}

static int sim_clock_gettime(clockid_t clock, struct timespec *ts)
{
	u64 time = sim.now - (clock == CLOCK_MONOTONIC_COARSE ? sim.behind : 0);

	ts->tv_sec = (time_t)(time / 1000000000);
	ts->tv_nsec = (long)(time % 1000000000);
	return 0;
}

static int sim_timerfd_create(clockid_t clock, int flags)
{
	(void)clock;
	(void)flags;
	return 1000;		/* no descriptor of this program */
}

static int sim_timerfd_settime(int fd, int flags, const struct itimerspec *its,
			       struct itimerspec *old)
{
	(void)fd;
	(void)old;
	sim.when = (u64)its->it_value.tv_sec * 1000000000 + (u64)its->it_value.tv_nsec;
	sim.cancels = flags & TFD_TIMER_CANCEL_ON_SET;
	sim.readable = false;
	sim_look();
	errno = ECANCELED;
	return sim_canceled() ? -1 : 0;
}

static ssize_t sim_read(int fd, void *ticks, size_t size)
{
	static const u64 once = 1;
	bool readable = sim.readable, canceled = sim_canceled();

	(void)fd;
	sim.readable = false;
	errno = canceled ? ECANCELED : EAGAIN;
	if (canceled || !readable)
		return -1;
	memcpy(ticks, &once, size);
	return (ssize_t)size;
}

static int sim_close(int fd)
{
	(void)fd;
	return 0;
}

#define clock_gettime	sim_clock_gettime
#define timerfd_create	sim_timerfd_create
#define timerfd_settime	sim_timerfd_settime
#define read		sim_read
#define close		sim_close
#include "embedded.c"
#undef clock_gettime
#undef timerfd_create
#undef timerfd_settime
#undef read
#undef close

#endif
