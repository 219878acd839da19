// SPDX-License-Identifier: GPL-2.0
/* poll(), select() and epoll of /dev/twheel: readable while there is an event. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

static short poll_for(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) == 1 ? p.revents : 0;
}

static int watch(int fd, u32 events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e))
		bail("epoll");
	return epfd;
}

/* The events epoll tells of, or 0 after @ms. */
static u32 epoll_for(int epfd, int ms)
{
	struct epoll_event e = { 0 };

	return epoll_wait(epfd, &e, 1, ms) == 1 ? e.events : 0;
}

static void poll_levels(void)
{
	const short all = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLPRI;
	int fd = dev_open(0);
	struct twheel_event ev;

	CHECK_EQ(poll_for(fd, all, 0), 0);	/* before the first timer */
	add(fd, HOUR, 1);
	CHECK_EQ(poll_for(fd, all, 0), 0);
	add_many(fd, 2, 0, 2);
	CHECK_EQ(poll_for(fd, POLLIN, WAIT_MS), POLLIN);
	sleep_ms(20);				/* both of them */
	CHECK_EQ(poll_for(fd, all, 0), POLLIN | POLLRDNORM);
	CHECK_EQ(poll_for(fd, POLLRDNORM, 0), POLLRDNORM);
	CHECK_EQ(poll_for(fd, POLLOUT, 0), 0);
	CHECK_EQ(poll_for(fd, 0, 0), 0);	/* no error, no hang-up */
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(poll_for(fd, all, 0), POLLIN | POLLRDNORM);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(poll_for(fd, all, 0), 0);
	close(fd);
}

static int select_for(int fd, int ms)
{
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };
	fd_set in, out, other;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&other);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	FD_SET(fd, &other);
	if (select(fd + 1, &in, &out, &other, &tv) < 0)
		return -errno;
	return FD_ISSET(fd, &in) | FD_ISSET(fd, &out) << 1 | FD_ISSET(fd, &other) << 2;
}

static void select_levels(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;

	CHECK_EQ(select_for(fd, 0), 0);
	add(fd, 30 * MS, 1);
	CHECK_EQ(select_for(fd, WAIT_MS), 1);
	CHECK_EQ(select_for(fd, 0), 1);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(select_for(fd, 0), 0);
	close(fd);
}

static void epoll_levels(void)
{
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, EPOLLIN | EPOLLOUT);
	struct twheel_event ev;

	CHECK_EQ(epoll_for(epfd, 0), 0);
	add_many(fd, 2, 20 * MS, 0);
	CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
	sleep_ms(20);
	CHECK_EQ(epoll_for(epfd, 0), EPOLLIN);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(epoll_for(epfd, 0), EPOLLIN);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(epoll_for(epfd, 0), 0);
	close(epfd);
	close(fd);
}

/* A cancel of the only event takes the readiness back. */
static void epoll_cancel(void)
{
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, EPOLLIN);
	u64 h = add(fd, 0, 1);

	CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
	CHECK_EQ(cancel(fd, h), 0);
	CHECK_EQ(epoll_for(epfd, 0), 0);
	close(epfd);
	close(fd);
}

/* A wake-up per batch, also while older events are unread. */
static void epoll_edges(void)
{
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, EPOLLIN | EPOLLET);
	struct twheel_event ev[16];

	for (u32 i = 0; i < 10; i++) {
		add(fd, 5 * MS, i);
		CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
		CHECK_EQ(epoll_for(epfd, 20), 0);
	}
	expect_counts(fd, 10, 0, 10);
	CHECK_EQ(read_events(fd, ev, 5), 5);
	epoll_for(epfd, 0);	/* reading may wake the next reader, and us too */
	CHECK_EQ(epoll_for(epfd, 20), 0);
	add(fd, 5 * MS, 10);
	CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
	CHECK_EQ(read_events(fd, ev, 16), 6);
	close(epfd);
	close(fd);
}

/* ---- waiters --------------------------------------------------------------- */

struct waiter {
	pthread_t	thread;
	int		fd, epfd;	/* epfd -1: poll */
	u64		woken;		/* when, or 0 */
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	u32 events = w->epfd < 0 ? (u32)poll_for(w->fd, POLLIN, WAIT_MS) :
		     epoll_for(w->epfd, WAIT_MS);

	if (events == POLLIN)
		__atomic_store_n(&w->woken, now_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	return NULL;
}

/* @n waiters, that sleep when this returns, as far as a clock can tell. */
static void start_waiters(struct waiter *w, int n)
{
	for (int i = 0; i < n; i++)
		pthread_create(&w[i].thread, NULL, waits, &w[i]);
	sleep_ms(150);
}

static int count_woken(const struct waiter *w, int n)
{
	int woken = 0;

	for (int i = 0; i < n; i++)
		woken += __atomic_load_n(&w[i].woken, __ATOMIC_ACQUIRE) != 0;
	return woken;
}

static int join_waiters(struct waiter *w, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	return count_woken(w, n);
}

static void blocked_pollers(void)
{
	int fd = dev_open(0);
	struct waiter w[] = { { .fd = fd, .epfd = -1 }, { .fd = fd, .epfd = -1 },
			      { .fd = fd, .epfd = watch(fd, EPOLLIN) } };
	u64 start;

	start_waiters(w, 3);		/* there is no timer yet */
	start = now_ns(CLOCK_MONOTONIC);
	add(fd, 50 * MS, 1);
	CHECK_EQ(join_waiters(w, 3), 3);
	for (int i = 0; i < 3; i++) {
		CHECK(w[i].woken >= start + 50 * MS);
		CHECK(w[i].woken < start + 50 * MS + WAIT_MS / 2 * MS);
	}
	close(w[2].epfd);
	close(fd);
}

/*
 * EPOLLEXCLUSIVE: each event wakes somebody who sleeps, so that with an event after
 * the other none of them sleeps for ever.
 */
static void epoll_exclusive(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct waiter w[3];
	u32 added = 0;

	for (int i = 0; i < 3; i++)
		w[i] = (struct waiter){ .fd = fd,
			.epfd = watch(fd, EPOLLIN | EPOLLEXCLUSIVE) };
	start_waiters(w, 3);
	while (added < 200 && count_woken(w, 3) < 3) {
		add(fd, MS, added++);
		sleep_ms(50);
	}
	diag("3 exclusive waiters woken by %u events", added);
	CHECK_EQ(join_waiters(w, 3), 3);
	CHECK(added < 200);
	expect_counts(fd, added, 0, added);
	for (int i = 0; i < 3; i++)
		close(w[i].epfd);
	close(fd);
}

static const struct test tests[] = {
	{ poll_levels, "poll: POLLIN while there is an event, never POLLOUT" },
	{ select_levels, "select: readable while there is an event" },
	{ epoll_levels, "epoll: level" },
	{ epoll_cancel, "epoll: a cancelled event is none" },
	{ epoll_edges, "epoll: an edge for each batch, unread events or not" },
	{ blocked_pollers, "those that wait before the first timer are woken" },
	{ epoll_exclusive, "EPOLLEXCLUSIVE: each event wakes somebody who sleeps" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
