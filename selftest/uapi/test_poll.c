// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
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

/* Wait for epoll. Returns the events, or 0 after @ms. */
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
	sleep_ms(20);				/* the timers of both files */
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

/* If the only event is cancelled, the file is no longer readable. */
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

/* Each batch of events wakes, even if older events are unread. */
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
	epoll_for(epfd, 0);	/* reading may wake the next reader, which may be this one */
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
	int		fd, epfd;	/* @epfd is -1 for poll */
	u64		woken;		/* when it was woken, or 0 */
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

/* Start @n waiters. When this returns they sleep, as far as a clock can tell. */
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

	start_waiters(w, 3);		/* no timer exists yet */
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

/* With EPOLLEXCLUSIVE an event wakes one of the sleeping tasks, and no other. */
static void exclusive(u32 how)
{
	int fd = dev_open(O_NONBLOCK);
	struct waiter w[3];

	for (int i = 0; i < 3; i++)
		w[i] = (struct waiter){ .fd = fd,
			.epfd = watch(fd, EPOLLIN | EPOLLEXCLUSIVE | how) };
	start_waiters(w, 3);
	for (int i = 1; i <= 3; i++) {
		add_many(fd, 10, MS, 0);
		for (int ms = 0; ms < WAIT_MS && count_woken(w, 3) < i; ms++)
			sleep_ms(1);
		sleep_ms(100);
		CHECK_EQ(count_woken(w, 3), i);
	}
	CHECK_EQ(join_waiters(w, 3), 3);
	expect_counts(fd, 30, 0, 30);
	for (int i = 0; i < 3; i++)
		close(w[i].epfd);
	close(fd);
}

static void epoll_exclusive(void)
{
	exclusive(0);
	exclusive(EPOLLET);
}

/*
 * With EPOLLONESHOT there is one wake-up each time it is asked for, also for what is ready already.
 */
static void epoll_oneshot(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT };
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, e.events);

	add(fd, MS, 1);
	CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
	add(fd, MS, 2);
	CHECK_EQ(epoll_for(epfd, 50), 0);
	CHECK_EQ(epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &e), 0);
	CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
	CHECK_EQ(epoll_for(epfd, 0), 0);
	close(epfd);
	close(fd);
}

/* ---- wake-ups --------------------------------------------------------------- */

#define TICKS		20
#define PER_TICK	500

struct counter {
	int	epfd;
	u32	edges;		/* how often epoll_wait() returned */
};

static void *counts_edges(void *arg)
{
	struct counter *c = arg;

	while (epoll_for(c->epfd, 1000))
		c->edges++;
	return NULL;
}

/*
 * A tick wakes once, however many events it has. Each return of an edge-triggered epoll_wait() is
 * one wake-up, or several that came before the waiter could run. If a tick is too much for one run,
 * each further run may wake once more.
 */
static void one_wakeup_per_tick(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct counter c = { .epfd = watch(fd, EPOLLIN | EPOLLET) };
	u64 start = now_ns(CLOCK_MONOTONIC) / MS * MS + 700 * MS;
	struct twheel_op ops[PER_TICK];
	struct twheel_info i;
	pthread_t waiter;

	for (u32 tick = 0; tick < TICKS; tick++) {
		for (u32 k = 0; k < PER_TICK; k++)
			ops[k] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
				.flags = TWHEEL_F_ABS,
				.expires_ns = start + tick * 20 * MS };
		CHECK_EQ(submit(fd, ops, PER_TICK, NULL, NULL), 0);
	}
	expect_counts(fd, TICKS * PER_TICK, TICKS * PER_TICK, 0);
	pthread_create(&waiter, NULL, counts_edges, &c);
	pthread_join(waiter, NULL);
	info(fd, &i);
	diag("%u wake-ups, %llu runs put off: %u ticks of %u events", c.edges,
	     i.nr_deferred, TICKS, PER_TICK);
	CHECK_EQ(i.nr_ready, TICKS * PER_TICK);
	CHECK(c.edges >= TICKS / 2);		/* if the guest is slow, some wake-ups merge */
	CHECK(c.edges <= TICKS + i.nr_deferred);
	close(c.epfd);
	close(fd);
}

#define DRAINED	5000

struct drainer {
	pthread_t	thread;
	int		fd;
	u32		hung;
	u32		*nr_read;
};

/* Do as edge-triggered programs do: read until EAGAIN, then wait. */
static void *drains(void *arg)
{
	struct drainer *d = arg;
	int epfd = watch(d->fd, EPOLLIN | EPOLLET), n;
	struct twheel_event ev[8];

	while (__atomic_load_n(d->nr_read, __ATOMIC_ACQUIRE) < DRAINED) {
		while ((n = read_events(d->fd, ev, ARRAY_SIZE(ev))) > 0)
			__atomic_add_fetch(d->nr_read, (u32)n, __ATOMIC_ACQ_REL);
		CHECK_EQ(n, -EAGAIN);
		/* If the other task gets the last event, none will come here. */
		if (!epoll_for(epfd, 2000) &&
		    __atomic_load_n(d->nr_read, __ATOMIC_ACQUIRE) < DRAINED) {
			d->hung++;
			break;
		}
	}
	close(epfd);
	return NULL;
}

/* No task may sleep that has read until EAGAIN while there is an event. */
static void drained(int n)
{
	int fd = dev_open(O_NONBLOCK);
	struct drainer d[2];
	u32 nr_read = 0;
	u64 seed = 5;

	for (int i = 0; i < n; i++) {
		d[i] = (struct drainer){ .fd = fd, .nr_read = &nr_read };
		pthread_create(&d[i].thread, NULL, drains, &d[i]);
	}
	for (u32 i = 0; i < DRAINED; i += 10)
		add_many(fd, 10, rnd(&seed) % (3 * MS), i);
	for (int i = 0; i < n; i++) {
		pthread_join(d[i].thread, NULL);
		CHECK_EQ(d[i].hung, 0);
	}
	CHECK_EQ(nr_read, DRAINED);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void epoll_drained(void)
{
	drained(1);
	drained(2);
}

static const struct test tests[] = {
	{ poll_levels, "poll: POLLIN while there is an event, never POLLOUT" },
	{ select_levels, "select: readable while there is an event" },
	{ epoll_levels, "epoll: level" },
	{ epoll_cancel, "epoll: not readable after a cancel of the only event" },
	{ epoll_edges, "epoll: an edge for each batch, unread events or not" },
	{ blocked_pollers, "tasks that wait since before the first timer are woken" },
	{ epoll_exclusive, "EPOLLEXCLUSIVE: an event wakes one sleeping task, level and edge" },
	{ epoll_oneshot, "EPOLLONESHOT" },
	{ one_wakeup_per_tick, "one wake-up for each tick, however many events" },
	{ epoll_drained, "edge-triggered: one or two readers until EAGAIN miss nothing" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
