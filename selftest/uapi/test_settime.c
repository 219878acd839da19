// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The time of day is set forward and back. Timers of CLOCK_MONOTONIC and CLOCK_BOOTTIME must not be
 * affected: none is early, and all fire.
 */
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TIMERS	200
#define DAY	(24 * 3600)

static void step(long by)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += by;
	CHECK(!clock_settime(CLOCK_REALTIME, &ts));
}

/* Arm timers, set the time of day, and leave it so until they have fired. */
static void stepped(clockid_t clock, long by)
{
	struct twheel_setup s = { .clockid = clock };
	int fd = dev_open(0), got = 0, n;
	struct twheel_event ev[TIMERS];
	u64 due[TIMERS], now;

	CHECK_EQ(setup(fd, &s), 0);
	now = now_ns(clock);
	for (u32 i = 0; i < TIMERS; i++) {
		due[i] = now + i * 3 * MS;
		add_with(fd, TWHEEL_F_ABS, due[i], 0, i);
	}
	step(by);
	while (got < TIMERS && readable(fd, WAIT_MS) &&
	       (n = read_events(fd, ev, TIMERS)) > 0) {
		now = now_ns(clock);
		for (int i = 0; i < n; i++)
			CHECK(now >= due[ev[i].user_data]);
		got += n;
	}
	step(-by);
	CHECK_EQ(got, TIMERS);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void forwards(void)
{
	stepped(CLOCK_MONOTONIC, DAY);
	stepped(CLOCK_BOOTTIME, DAY);
}

static void backwards(void)
{
	stepped(CLOCK_MONOTONIC, -DAY);
	stepped(CLOCK_BOOTTIME, -DAY);
}

static const struct test tests[] = {
	{ forwards, "the day is set forward: timers of other clocks are not affected" },
	{ backwards, "the day is set back: timers of other clocks are not affected" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
