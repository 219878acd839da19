// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * soak count TOTAL PENDING FILES RANGE_MS SECONDS	many timers, each of which is counted
 * soak cycles TIMES					many files
 *
 * TOTAL timers are armed in FILES files, at most PENDING of them at a time. Each has a number,
 * which is its user_data, and a bit. Its event sets the bit. If the bit is set already, the timer
 * fired twice. If it is not set in the end, the timer was lost. A timer is due between RANGE_MS and
 * twice that after its batch was armed; its number determines when. After SECONDS no more are
 * armed; whether TOTAL timers were armed is a test of its own.
 *
 * `make soak` runs this, and chooses the numbers. It is not one of the test_* programs.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define BATCH		256
#define FILES_MAX	64
#define TURN		32	/* batches from one look for events to the next */
#define CYCLE_TIMERS	1000

static u64 total, pending, range;	/* @range is in ns */
static u32 nr_files, seconds, cycles;

static u64 *seen, *armed_at;	/* a bit for each timer; a time for each batch */
static struct pollfd files[FILES_MAX];
static u64 nr_armed, nr_got, peak, early, twice, unknown;

static u64 deadline(u64 number)
{
	u64 state = number + 1;

	return armed_at[number / BATCH] + range + rnd(&state) % range;
}

/* Arm the next batch, in the files by turns. */
static bool arm_batch(void)
{
	static struct twheel_op ops[BATCH];
	struct twheel_batch batch = {
		.ops = (uintptr_t)ops, .nr = BATCH, .op_size = sizeof(*ops) };
	u64 k = nr_armed / BATCH;

	armed_at[k] = now_ns(CLOCK_MONOTONIC);
	for (u32 i = 0; i < BATCH; i++)
		ops[i] = (struct twheel_op){
			.op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
			.user_data = nr_armed + i, .expires_ns = deadline(nr_armed + i) };
	if (!CHECK_EQ(ioctl(files[k % nr_files].fd, TWHEEL_IOC_SUBMIT, &batch), 0) ||
	    !CHECK_EQ(batch.nr_done - batch.nr_failed, BATCH))
		return false;
	nr_armed += BATCH;
	if (nr_armed - nr_got > peak)
		peak = nr_armed - nr_got;
	return true;
}

static void take(const struct twheel_event *ev, u64 now)
{
	u64 n = ev->user_data, bit = 1ULL << n % 64;

	if (n >= nr_armed || ev->count != 1) {
		unknown++;
		return;
	}
	twice += !!(seen[n / 64] & bit);
	early += now < deadline(n) || ev->expires_ns != deadline(n);
	seen[n / 64] |= bit;
	nr_got++;
}

/* Read all events that are ready. Returns how many. */
static u64 read_all(void)
{
	static struct twheel_event events[READ_MAX];
	u64 before = nr_got;
	ssize_t n;

	for (u32 f = 0; f < nr_files; f++) {
		while ((n = read(files[f].fd, events, sizeof(events))) > 0) {
			u64 now = now_ns(CLOCK_MONOTONIC);

			for (u32 i = 0; i < n / sizeof(*events); i++)
				take(&events[i], now);
			if (n < (ssize_t)sizeof(events))
				break;
		}
	}
	return nr_got - before;
}

static u64 not_seen(void)
{
	u64 n = 0;

	for (u64 i = 0; i < nr_armed; i++)
		n += !(seen[i / 64] >> i % 64 & 1);
	return n;
}

static void run(u64 end)
{
	bool more = true;

	while (nr_got < nr_armed || more) {
		u64 got;

		for (u32 i = 0; i < TURN && more && nr_armed - nr_got + BATCH <= pending; i++)
			more = nr_armed < total && now_ns(CLOCK_MONOTONIC) < end && arm_batch();
		got = read_all();
		if (got || (more && nr_armed - nr_got + BATCH <= pending))
			continue;
		if (poll(files, nr_files, WAIT_MS + 2 * range / MS) <= 0)
			break;
	}
}

static void count(void)
{
	u64 start = now_ns(CLOCK_MONOTONIC), left = 0;

	alarm(60 + seconds + 2 * range / SEC);
	param_set("max_user_timers", 0, NULL);
	total -= total % BATCH;
	seen = calloc(total / 64 + 1, sizeof(*seen));
	armed_at = calloc(total / BATCH + 1, sizeof(*armed_at));
	if (!seen || !armed_at || !total || nr_files > FILES_MAX)
		bail("memory, or the arguments");
	for (u32 f = 0; f < nr_files; f++)
		files[f] = (struct pollfd){ .fd = dev_open(O_NONBLOCK), .events = POLLIN };
	run(start + seconds * SEC);
	for (u32 f = 0; f < nr_files; f++) {
		struct twheel_info i;

		info(files[f].fd, &i);
		left += i.nr_timers;
		close(files[f].fd);
	}
	diag("%llu timers armed, %llu pending at once, in %llu s",
	     nr_armed, peak, (now_ns(CLOCK_MONOTONIC) - start) / SEC);
	diag("fired %llu, lost %llu, early %llu, twice %llu, unknown %llu, left %llu", nr_got,
	     not_seen(), early, twice, unknown, left);
	CHECK_EQ(not_seen(), 0);
	CHECK(!early && !twice && !unknown && !left);
}

static void enough(void)
{
	CHECK_EQ(nr_armed, total);
	CHECK_EQ(nr_got, total);
	CHECK(total > pending || peak >= total);
}

/* Close files while some of their timers are due, and others are not for a long time. */
static void open_and_close(void)
{
	u64 state = 1;

	alarm(60 + cycles);
	for (u32 i = 0; i < cycles && !failed(); i++) {
		int fd = dev_open(0);

		add_many(fd, CYCLE_TIMERS, rnd(&state) % 5 * MS, 0);
		add_many(fd, CYCLE_TIMERS, rnd(&state) % (100 * HOUR), 0);
		CHECK_EQ(close(fd), 0);
	}
	diag("%u times, with %u timers each", cycles, 2 * CYCLE_TIMERS);
}

int main(int argc, char **argv)
{
	static const struct test counts[] = {
		{ count, "every timer fires once, and none is early" },
		{ enough, "all timers were armed in time" },
	};
	static const struct test opens[] = {
		{ open_and_close, "files come and go with their timers" },
	};

	if (argc == 3 && !strcmp(argv[1], "cycles")) {
		cycles = strtoul(argv[2], NULL, 0);
		return run_tests(opens, ARRAY_SIZE(opens));
	}
	if (argc != 7 || strcmp(argv[1], "count"))
		bail("usage: soak count TOTAL PENDING FILES RANGE_MS SECONDS | soak cycles TIMES");
	total = strtoull(argv[2], NULL, 0);
	pending = strtoull(argv[3], NULL, 0);
	nr_files = strtoul(argv[4], NULL, 0);
	range = strtoull(argv[5], NULL, 0) * MS;
	seconds = strtoul(argv[6], NULL, 0);
	return run_tests(counts, ARRAY_SIZE(counts));
}
