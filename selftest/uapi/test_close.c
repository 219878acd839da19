// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The end of a file of /dev/twheel, with a million timers in it or with none; and a file that is
 * idle.
 *
 * The time that close() takes is printed. The test itself has no bound for it; the guest's
 * detectors of soft lockups and RCU stalls have, and end the whole run.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MILLION	1000000U

/* the most bytes for each timer, the wheel included */
#define BYTES_PER_TIMER	65

static int millionaire(void)
{
	struct twheel_op ops[256];
	int fd = dev_open(0);
	struct twheel_info i;
	u64 seed = 99;

	info(fd, &i);
	CHECK(i.max_timers >= MILLION);
	for (u32 n = 0; n < MILLION && !failed(); n += 250) {
		memset(ops, 0, sizeof(ops));
		for (u32 k = 0; k < 250; k++) {
			ops[k].op = TWHEEL_OP_ADD;
			ops[k].user_data = n + k;
			ops[k].expires_ns = HOUR + rnd(&seed) % (100 * HOUR);
		}
		CHECK_EQ(submit(fd, ops, 250, NULL, NULL), 0);
	}
	return fd;
}

static void many(void)
{
	u64 start = now_ns(CLOCK_MONOTONIC), value, closing;
	int fd = millionaire();
	struct twheel_info i;

	diag("a million timers armed in %llu ms, tests included",
	     (now_ns(CLOCK_MONOTONIC) - start) / MS);
	expect_counts(fd, MILLION, MILLION, 0);
	info(fd, &i);
	diag("%llu bytes for %u timers: %.3f each, the wheel included",
	     i.mem_bytes, i.nr_armed, (double)i.mem_bytes / i.nr_armed);
	CHECK(i.mem_bytes >= 64ULL * MILLION);
	CHECK(i.mem_bytes <= (u64)BYTES_PER_TIMER * MILLION);
	CHECK(fdinfo_get(fd, "twheel-mem-bytes", &value));
	CHECK_EQ(value, i.mem_bytes);
	closing = now_ns(CLOCK_MONOTONIC);
	CHECK_EQ(close(fd), 0);
	diag("close() with a million timers pending: %.1f ms",
	     (double)(now_ns(CLOCK_MONOTONIC) - closing) / (double)MS);
	fd = dev_open(0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* Timers that are ready are freed just as those that are pending. */
static void close_in_every_state(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;

	for (u32 i = 0; i < 1000; i++) {
		add(fd, (i % 40) * MS, i);
		add_with(fd, 0, 0, MS + i, 0);
		add_with(fd, TWHEEL_F_KEEP, i % 7 * MS, 0, 0);
		if (i % 5 == 0)
			CHECK_EQ(read_one(fd, &ev), 1);
	}
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(close(fd), -1);
}

/* The id of the thread that reads, or 0 before it begins. */
static pid_t reader_tid;

static void *blocked_read(void *fd)
{
	struct twheel_event ev;

	__atomic_store_n(&reader_tid, gettid(), __ATOMIC_RELEASE);
	if (CHECK_EQ(read_events(*(int *)fd, &ev, 1), 1))
		CHECK_EQ(ev.user_data, 12);
	return NULL;
}

/* The file lives until its last descriptor is closed. */
static void close_under_reader(void)
{
	int fd = dev_open(0), copy = dup(fd);
	pthread_t reader;

	pthread_create(&reader, NULL, blocked_read, &copy);
	await_sleep(&reader_tid);
	CHECK_EQ(close(fd), 0);
	sleep_ms(50);
	add(copy, 20 * MS, 12);
	pthread_join(reader, NULL);
	expect_counts(copy, 0, 0, 0);
	close(copy);

	/* If the descriptor that a call uses is closed, the call continues, as with any file. */
	fd = dev_open(0);
	copy = fd;
	reader_tid = 0;
	pthread_create(&reader, NULL, blocked_read, &copy);
	await_sleep(&reader_tid);
	add(fd, 200 * MS, 12);
	CHECK_EQ(close(fd), 0);
	pthread_join(reader, NULL);
}

/* A file with nothing to do causes no wake-up. */
static void idle(void)
{
	int never = dev_open(0), used = dev_open(0), far = dev_open(0);
	int fds[] = { never, used, far };
	struct twheel_info before[3], after;
	struct twheel_event ev;

	add(used, MS, 1);
	CHECK_EQ(read_one(used, &ev), 1);
	CHECK_EQ(cancel(used, add(used, 50 * MS, 1)), 1);
	add(far, HOUR, 1);
	sleep_ms(500);		/* a cancel may leave one wake-up */
	for (int i = 0; i < 3; i++)
		info(fds[i], &before[i]);
	sleep_ms(10000);
	for (int i = 0; i < 3; i++) {
		info(fds[i], &after);
		CHECK_EQ(after.nr_wakeups - before[i].nr_wakeups, 0);
		diag("%llu wake-ups in 10 s of rest",
		     after.nr_wakeups - before[i].nr_wakeups);
		close(fds[i]);
	}
	CHECK(before[1].nr_wakeups >= 1);
}

static const struct test tests[] = {
	{ many, "a million timers at once, 65 bytes each at most, and close()" },
	{ close_in_every_state, "close() with timers in every state" },
	{ close_under_reader, "close() while a reader waits" },
	{ idle, "no wake-up of an idle file in 10 s" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
