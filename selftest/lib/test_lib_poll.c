// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The one descriptor of a wheel: poll(), select() and epoll, by level and by edge. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "lib.h"

static int watch(const struct twheel *w, u32 events)
{
	struct epoll_event e = { .events = events };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, twheel_fd(w), &e))
		bail("epoll");
	return epfd;
}

/* Wait for epoll. Returns the events, or 0 after @ms. */
static u32 epoll_for(int epfd, int ms)
{
	struct epoll_event e = { 0 };

	return epoll_wait(epfd, &e, 1, ms) == 1 ? e.events : 0;
}

static void levels(void)
{
	struct twheel *w = wheel_new(NULL);
	struct pollfd p = { .fd = twheel_fd(w), .events = ~POLLNVAL };
	struct twheel_event ev;

	CHECK_EQ(poll(&p, 1, 0), 0);	/* no timer exists yet */
	wheel_add(w, 1, HOUR);
	CHECK_EQ(poll(&p, 1, 0), 0);
	wheel_add(w, 2, 0);
	wheel_add(w, 3, 0);
	CHECK(readable(p.fd, WAIT_MS));
	sleep_ms(20);			/* both timers fire */
	for (int i = 0; i < 2; i++) {
		CHECK(readable(p.fd, 0));
		CHECK(readable(p.fd, 0));	/* polling changes nothing */
		wheel_counts(w, 3 - i, 1, 2 - i);
		CHECK(readable(p.fd, 0));
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
	}
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(poll(&p, 1, QUIET_MS), 0);
	twheel_close(w);
}

/* If a cancel or a MOD takes the last event, the descriptor is no longer readable. */
static void level_without_read(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t a = wheel_add(w, 1, 0), b = wheel_add(w, 2, 0);

	CHECK(readable(twheel_fd(w), WAIT_MS));
	sleep_ms(20);
	CHECK_EQ(twheel_cancel(w, a, NULL), 0);
	CHECK(readable(twheel_fd(w), 0));
	CHECK_EQ(twheel_mod(w, b, HOUR, 0, 0), 0);
	CHECK(!readable(twheel_fd(w), 0));
	CHECK_EQ(twheel_mod(w, b, 0, 0, 0), 1);
	CHECK(readable(twheel_fd(w), WAIT_MS));
	twheel_close(w);
}

/* Many events that are read in small portions: readable until the last has been read. */
static void level_of_many(void)
{
	enum { N = 5000 };
	struct twheel *w = wheel_new(NULL);
	u64 start = now_ns(CLOCK_MONOTONIC);
	struct twheel_event ev[7];
	int got, done = 0;
	bool moves;

	for (u32 i = 0; i < N; i++)
		wheel_add(w, i, i % 5 * MS);
	/*
	 * If the host stood still meanwhile, the embedded backend has timers to move, for which it
	 * may be readable once with no event.
	 */
	moves = now_ns(CLOCK_MONOTONIC) >= start + 100 * MS &&
		!strcmp(twheel_backend(w), "embedded");
	sleep_ms(30);
	while (done < N && CHECK(readable(twheel_fd(w), 0))) {
		got = twheel_read(w, ev, ARRAY_SIZE(ev), 0);
		if (!CHECK(got > 0))
			break;
		done += got;
	}
	CHECK_EQ(done, N);
	if (moves)
		wheel_quiet(w, 0);
	CHECK(!readable(twheel_fd(w), 0));
	twheel_close(w);
}

/*
 * A read that has room for just the events there are takes the wheel's last timers. After that
 * nothing may wake the program again.
 */
static void level_of_last(void)
{
	struct twheel_event ev[64];

	for (u32 nr = 1; nr <= ARRAY_SIZE(ev); nr *= 64) {
		struct twheel *w = wheel_new(NULL);
		u32 done = 0;

		for (u32 i = 0; i < nr; i++)
			wheel_add(w, i, 0);
		sleep_ms(20);		/* all fire */
		while (done < nr) {
			int got = wheel_read(w, ev, nr - done);

			if (!CHECK(got > 0))
				break;
			done += (u32)got;
		}
		wheel_counts(w, 0, 0, 0);
		CHECK(!readable(twheel_fd(w), 0));
		CHECK_EQ(twheel_read(w, ev, 1, 0), -EAGAIN);
		CHECK(!readable(twheel_fd(w), QUIET_MS));
		twheel_close(w);
	}
}

static void selects(void)
{
	struct twheel *w = wheel_new(NULL);
	struct timeval tv = { .tv_sec = WAIT_MS / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(twheel_fd(w), &set);
	wheel_add(w, 1, 5 * MS);
	CHECK_EQ(select(twheel_fd(w) + 1, &set, NULL, NULL, &tv), 1);
	CHECK(FD_ISSET(twheel_fd(w), &set));
	twheel_close(w);
}

/* A reader that reads until EAGAIN at each edge misses nothing. */
static void edges(void)
{
	struct twheel *w = wheel_new(NULL);
	int epfd = watch(w, EPOLLIN | EPOLLET);
	struct twheel_event ev;
	uint64_t handle;

	CHECK_EQ(twheel_add(w, &handle, 1, 5 * MS, 5 * MS, 0), 0);
	for (int i = 0; i < 10 && !failed(); i++) {
		CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
		while (twheel_read(w, &ev, 1, 0) > 0)
			;
	}
	twheel_cancel(w, handle, NULL);
	sleep_ms(20);		/* one empty wake-up is allowed */
	while (twheel_read(w, &ev, 1, 0) > 0)
		;
	epoll_for(epfd, 0);
	CHECK_EQ(epoll_for(epfd, QUIET_MS), 0);
	close(epfd);
	twheel_close(w);
}

/* A reader that reads one event at each edge gets another edge for the next event. */
static void edges_one_by_one(void)
{
	struct twheel *w = wheel_new(NULL);
	int epfd = watch(w, EPOLLIN | EPOLLET);
	struct twheel_event ev;

	for (u32 i = 0; i < 20; i++)
		wheel_add(w, i, 0);
	for (u32 i = 0; i < 20 && !failed(); i++) {
		CHECK_EQ(epoll_for(epfd, WAIT_MS), EPOLLIN);
		CHECK_EQ(twheel_read(w, &ev, 1, 0), 1);
	}
	CHECK_EQ(twheel_read(w, &ev, 1, 0), -EAGAIN);
	close(epfd);
	twheel_close(w);
}

/* If nothing is due there are no wake-ups: neither for far timers nor for an empty wheel. */
static void idle(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_info before, after;
	u64 delay = 3 * SEC, end;

	CHECK(!readable(twheel_fd(w), QUIET_MS));
	end = now_ns(CLOCK_MONOTONIC) + delay;
	for (int i = 0; i < 40; i++, delay += delay / 2)
		wheel_add(w, 1, delay);
	twheel_get_info(w, &before);
	for (int i = 0; i < 4; i++)
		CHECK(!readable(twheel_fd(w), QUIET_MS));
	twheel_get_info(w, &after);
	twheel_close(w);
	if (now_ns(CLOCK_MONOTONIC) >= end) {	/* the host stood still until one was due */
		idle();
		return;
	}
	CHECK_EQ(after.nr_wakeups, before.nr_wakeups);
	CHECK_EQ(after.nr_armed, 40);
}

/* One wake-up for each tick with work, and none for the ticks between. */
static void one_wakeup_a_tick(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev[100];
	u64 tick = 0, ticks = 0;
	struct twheel_info i;
	int done = 0;

	for (u32 n = 0; n < 300; n++)
		wheel_add(w, n, (20 + n % 3 * 40) * MS);
	while (done < 300 && CHECK(readable(twheel_fd(w), WAIT_MS))) {
		int got = wheel_read(w, ev, ARRAY_SIZE(ev));

		for (int e = 0; e < got; e++) {
			ticks += (ev[e].expires_ns + MS - 1) / MS != tick;
			tick = (ev[e].expires_ns + MS - 1) / MS;
		}
		done += got;
	}
	CHECK_EQ(done, 300);
	twheel_get_info(w, &i);
	/*
	 * One for each tick, of which there are three if 100 timers are added within one tick; some
	 * more if the reader is late.
	 */
	CHECK(i.nr_wakeups < ticks + 27);
	twheel_close(w);
}

int main(void)
{
	static const struct test tests[] = {
		{ levels, "readable while an event is ready, and at no other time" },
		{ level_without_read, "a cancel or a MOD of the last event ends readability too" },
		{ level_of_many, "small portions: readable until the last" },
		{ level_of_last, "not readable after a read with room for just the last events" },
		{ selects, "select()" },
		{ edges, "edge-triggered epoll, read until EAGAIN" },
		{ edges_one_by_one, "edge-triggered epoll, read one by one" },
		{ idle, "no wake-up while nothing is due" },
		{ one_wakeup_a_tick, "one wake-up a tick that has timers" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
