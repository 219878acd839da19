// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A timerfd for each timer, watched by epoll: edge-triggered, which costs less, with 4096 events at
 * a time. What has expired is read, timer by timer, as timerfd_create(2) says. A program that
 * re-arms one-shot timers without reading them could save a thirtieth of a life.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

#define EVENTS	4096

static int epfd, *fds;
static struct epoll_event events[EVENTS];

static void prepare(u32 n)
{
	fds = get_pages(n * sizeof(*fds));
}

static void release(u32 n)
{
	put_pages(fds, n * sizeof(*fds));
}

static bool create(u32 id)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.u32 = id };

	fds[id] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return fds[id] >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, fds[id], &e);
}

static const char *open_all(u32 n)
{
	raise_limit("timerfd", "/proc/sys/fs/nr_open", n + 64);
	raise_limit("timerfd", "/proc/sys/fs/epoll/max_user_watches", n + 64);
	raise_rlimit("timerfd", "RLIMIT_NOFILE", RLIMIT_NOFILE, n + 64);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	must(epfd >= 0);
	for (u32 i = 0; i < n; i++)
		if (!create(i))
			return strerror(errno);
	return NULL;
}

static u32 close_all(u32 n)
{
	for (u32 i = 0; i < n; i++)
		close(fds[i]);
	close(epfd);
	return n;
}

static void settime(u32 id, u64 deadline)
{
	struct itimerspec when = { .it_value = timespec_of(deadline) };

	must(!timerfd_settime(fds[id], TFD_TIMER_ABSTIME, &when, NULL));
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
	u32 nr = 0;
	int got;

	do {
		got = epoll_wait(epfd, events, EVENTS, wait ? -1 : 0);
		must(got >= 0);
		for (int i = 0; i < got; i++) {
			u32 id = events[i].data.u32;
			u64 count;

			must(read(fds[id], &count, sizeof(count)) == sizeof(count));
			ids[nr++] = id;
		}
		wait = false;
	} while (got == EVENTS && nr + EVENTS <= collect_room);
	return nr;
}

static bool every(u32 id, u64 period)
{
	struct itimerspec when = {
		.it_value = timespec_of(period), .it_interval = timespec_of(period),
	};

	must(!timerfd_settime(fds[id], 0, &when, NULL));
	return true;
}

const struct subject timerfd_subject = {
	.name = "timerfd",
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
