// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and a daemon has other clocks:
 *
 *	AHEAD=S		the wall clock is S seconds ahead
 *	AHEAD_IF=FILE	but only while FILE exists
 *	RATE=R		CLOCK_BOOTTIME and CLOCK_MONOTONIC run at R, such as 1.05, and so does
 *			all that it waits for
 *
 * libfaketime cannot do that: it takes every timerfd for one of the wall clock, and so a daemon
 * whose wall clock is wrong would wait for the wrong time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static double rate = 1, begin;
static long ahead;
static const char *ahead_if;

static double seconds(struct timespec t)
{
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct timespec spec(double s)
{
	struct timespec t = { .tv_sec = (time_t)s };

	t.tv_nsec = (long)((s - (double)t.tv_sec) * 1e9);
	if (s > 0 && !t.tv_sec && !t.tv_nsec)
		t.tv_nsec = 1;
	return t;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, id, t);

	if (!err && (id == CLOCK_BOOTTIME || id == CLOCK_MONOTONIC))
		*t = spec(begin + (seconds(*t) - begin) * rate);
	if (!err && id == CLOCK_REALTIME && (!ahead_if || !access(ahead_if, F_OK)))
		t->tv_sec += ahead;
	return err;
}

__attribute__((constructor))
static void start(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	begin = seconds(now);
	rate = getenv("RATE") ? atof(getenv("RATE")) : 1;
	ahead = getenv("AHEAD") ? atol(getenv("AHEAD")) : 0;
	ahead_if = getenv("AHEAD_IF");
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

/* Timers of the wall clock are left alone: they are far in the future, to see it set. */
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec real = *new;
	double value = seconds(new->it_value);

	if (flags & TFD_TIMER_CANCEL_ON_SET)
		return (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
	if (value > 0)
		real.it_value = spec(flags & TFD_TIMER_ABSTIME ? begin + (value - begin) / rate :
				     value / rate);
	real.it_interval = spec(seconds(new->it_interval) / rate);
	return (int)syscall(SYS_timerfd_settime, fd, flags, &real, old);
}

static int real_ms(int ms)
{
	return ms > 0 ? (int)(ms / rate) + 1 : ms;
}

int epoll_wait(int fd, struct epoll_event *events, int nr, int ms)
{
	return epoll_pwait(fd, events, nr, real_ms(ms), NULL);
}

int poll(struct pollfd *fds, nfds_t nr, int ms)
{
	struct timespec t = spec(real_ms(ms) / 1e3);

	return ppoll(fds, nr, ms < 0 ? NULL : &t, NULL);
}
