// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* poll(), select() and epoll of /dev/twheel: readable while there is an event. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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
	await_ready(fd, 2);
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
	await_ready(fd, 2);
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

/*
 * Each batch of events wakes, even if older events are unread. It wakes once; but on PREEMPT_RT
 * another CPU wakes once more, if the one that wakes stands still before it can say that it has.
 */
static void epoll_edges(void)
{
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, EPOLLIN | EPOLLET);
	struct twheel_event ev[16];
	u32 twice = 0;

	for (u32 i = 0; i < 10; i++) {
		add(fd, 5 * MS, i);
		CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
		twice += epoll_for(epfd, 20) != 0;
	}
	CHECK(twice <= (is_preempt_rt() ? 2 : 0));
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
	pid_t		tid;
	int		fd, epfd;	/* @epfd is -1 for poll */
	u64		woken;		/* when it was woken, or 0 */
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	u32 events;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	events = w->epfd < 0 ? (u32)poll_for(w->fd, POLLIN, WAIT_MS) :
		 epoll_for(w->epfd, WAIT_MS);
	if (events == POLLIN)
		__atomic_store_n(&w->woken, now_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	return NULL;
}

/* Start @n waiters. When this returns they sleep. */
static void start_waiters(struct waiter *w, int n)
{
	for (int i = 0; i < n; i++)
		pthread_create(&w[i].thread, NULL, waits, &w[i]);
	for (int i = 0; i < n; i++)
		await_sleep(&w[i].tid);
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

/*
 * With EPOLLEXCLUSIVE a batch of events wakes one of the sleeping tasks, and no other; unless it
 * wakes twice, see epoll_edges().
 */
static void exclusive(u32 how)
{
	int fd = dev_open(O_NONBLOCK), woken = 0;
	u32 batches = 0, twice = 0;
	struct waiter w[3];

	for (int i = 0; i < 3; i++)
		w[i] = (struct waiter){ .fd = fd,
			.epfd = watch(fd, EPOLLIN | EPOLLEXCLUSIVE | how) };
	start_waiters(w, 3);
	for (int was = -1; woken > was && woken < 3; batches++) {
		was = woken;
		add_many(fd, 10, MS, 0);
		for (int ms = 0; ms < WAIT_MS && count_woken(w, 3) == was; ms++)
			sleep_ms(1);
		sleep_ms(100);
		woken = count_woken(w, 3);
		twice += woken > was + 1;
	}
	CHECK(twice <= (is_preempt_rt() ? 1 : 0));
	CHECK_EQ(join_waiters(w, 3), 3);
	expect_counts(fd, 10 * batches, 0, 10 * batches);
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

/* How often epoll_wait() returns until all events have come. */
static u32 edges_of(int fd, int epfd)
{
	u32 edges = 0;

	while (nr_ready(fd) < TICKS * PER_TICK && CHECK(epoll_for(epfd, WAIT_MS)))
		edges++;
	while (epoll_for(epfd, 100))
		edges++;
	return edges;
}

/*
 * Arm the timers, the first of which are due @lead from now, and count. Returns whether the host
 * was there: all timers were armed in time, and the waiter could tell most of the wake-ups apart.
 */
static bool ticks_counted(u64 lead)
{
	int fd = dev_open(O_NONBLOCK), epfd = watch(fd, EPOLLIN | EPOLLET);
	u64 start = now_ns(CLOCK_MONOTONIC) / MS * MS + lead;
	struct twheel_info i;
	bool in_time;
	u32 edges;

	for (u32 tick = 0; tick < TICKS; tick++)
		add_many_at(fd, PER_TICK, start + tick * 20 * MS);
	info(fd, &i);
	in_time = now_ns(CLOCK_MONOTONIC) < start;
	CHECK(!in_time || (i.nr_armed == TICKS * PER_TICK && !i.nr_ready));
	edges = edges_of(fd, epfd);
	info(fd, &i);
	diag("%u wake-ups, %llu runs put off: %u ticks of %u events%s", edges, i.nr_deferred, TICKS,
	     PER_TICK, in_time ? "" : ", armed too late");
	CHECK_EQ(i.nr_ready, TICKS * PER_TICK);
	CHECK(!in_time || edges <= TICKS + i.nr_deferred);
	close(epfd);
	close(fd);
	return in_time && edges >= TICKS / 2;
}

/*
 * A tick wakes once, however many events it has. Each return of an edge-triggered epoll_wait() is
 * one wake-up, or several that came before the waiter could run. If a tick is too much for one run,
 * each further run may wake once more. A timer that is armed after its time is in another tick.
 */
static void one_wakeup_per_tick(void)
{
	u64 lead = 350 * MS;

	do
		lead *= 2;
	while (!ticks_counted(lead) && !failed() && lead < 20 * SEC);
	CHECK(lead < 20 * SEC);
}

#define DRAINED	5000

struct drainer {
	pthread_t	thread;
	int		fd;
	int		over;		/* an eventfd, which says that all has been read */
	u32		hung;
	u32		*nr_read;
};

static void read_some(struct drainer *d, int n)
{
	if (__atomic_add_fetch(d->nr_read, (u32)n, __ATOMIC_ACQ_REL) == DRAINED)
		CHECK(!eventfd_write(d->over, 1));
}

/* Do as edge-triggered programs do: read until EAGAIN, then wait. */
static void *drains(void *arg)
{
	struct drainer *d = arg;
	int epfd = watch(d->fd, EPOLLIN | EPOLLET), n;
	struct epoll_event over = { .events = EPOLLIN };
	struct twheel_event ev[8];

	CHECK(!epoll_ctl(epfd, EPOLL_CTL_ADD, d->over, &over));
	while (__atomic_load_n(d->nr_read, __ATOMIC_ACQUIRE) < DRAINED) {
		while ((n = read_events(d->fd, ev, ARRAY_SIZE(ev))) > 0)
			read_some(d, n);
		CHECK_EQ(n, -EAGAIN);
		/* If the other task gets the last event, it says so here. */
		if (!epoll_for(epfd, WAIT_MS)) {
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
	int fd = dev_open(O_NONBLOCK), over = eventfd(0, EFD_CLOEXEC);
	struct drainer d[2];
	u32 nr_read = 0;
	u64 seed = 5;

	for (int i = 0; i < n; i++) {
		d[i] = (struct drainer){ .fd = fd, .over = over, .nr_read = &nr_read };
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
	close(over);
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
