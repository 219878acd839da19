// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * timer_create() for each timer, with a signal that is blocked and read from a signalfd, 256 at a
 * time. sigwaitinfo() takes one signal in a call, and costs twice as much.
 *
 * The kernel has 512 lists, in which it searches for a timer.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bench.h"

#define LISTS	512
#define EVENTS	256

static timer_t *timers;
static int fd;

static void prepare(u32 n)
{
	timers = get_pages(n * sizeof(*timers));
}

static void release(u32 n)
{
	put_pages(timers, n * sizeof(*timers));
}

/*
 * Throw away what is pending. A signal counts for RLIMIT_SIGPENDING until it is taken, even if its
 * timer is gone; and it must not be taken for one of a new timer.
 */
static void drop_signals(void)
{
	static struct signalfd_siginfo info[EVENTS];

	while (read(fd, info, sizeof(info)) > 0)
		;
}

static void open_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	must(!sigprocmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	must(fd >= 0);
	drop_signals();
}

static const char *open_all(u32 n)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

	raise_rlimit("posix", "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, n + 64);
	open_signalfd();
	for (u32 i = 0; i < n; i++) {
		e.sigev_value.sival_int = i;
		if (timer_create(CLOCK_MONOTONIC, &e, &timers[i]))
			return strerror(errno);
	}
	return NULL;
}

/* If searching takes long, let most of them end with the process. */
static u32 close_all(u32 n)
{
	u32 nr = sample(n, LISTS);

	for (u32 i = 0; i < nr; i++)
		must(!timer_delete(timers[(u64)i * n / nr]));
	close(fd);
	return nr;
}

static void settime(u32 id, u64 deadline)
{
	struct itimerspec when = { .it_value = timespec_of(deadline) };

	must(!timer_settime(timers[id], TIMER_ABSTIME, &when, NULL));
}

static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	for (u32 i = 0; i < nr; i++)
		settime(ids[i], deadline[ids[i]]);
}

static void cancel(const u32 *ids, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		settime(ids[i], 0);
}

static u32 collect(u32 *ids, bool wait)
{
	static struct signalfd_siginfo info[EVENTS];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t got;
	u32 nr = 0;

	if (wait)
		must(poll(&p, 1, -1) == 1);
	do {
		got = read(fd, info, sizeof(info)) / (ssize_t)sizeof(info[0]);
		for (ssize_t i = 0; i < got; i++)
			ids[nr++] = info[i].ssi_int;
	} while (got == EVENTS && nr + EVENTS <= collect_room);
	return nr;
}

static bool every(u32 id, u64 period)
{
	struct itimerspec when = {
		.it_value = timespec_of(period), .it_interval = timespec_of(period),
	};

	must(!timer_settime(timers[id], 0, &when, NULL));
	return true;
}

const struct subject posix_subject = {
	.name = "posix",
	.arm_lists = LISTS,
	.cancel_lists = LISTS,
	.prepare = prepare,
	.open = open_all,
	.arm = arm,
	.rearm = arm,
	.cancel = cancel,
	.collect = collect,
	.every = every,
	.close = close_all,
	.release = release,
};
