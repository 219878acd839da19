// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Tasks on the wall clock while that is set: for a machine whose clock may be. Sets it,
 * and back in the end. "Soon" is QUIET_MS and more: a step is noticed at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib.h"

static s64 wall(void)
{
	return (s64)now_ns(CLOCK_REALTIME);
}

static void step(s64 by)
{
	s64 to = wall() + by;
	struct timespec ts = { .tv_sec = to / (s64)SEC, .tv_nsec = to % (s64)SEC };

	if (clock_settime(CLOCK_REALTIME, &ts))
		bail("clock_settime()");
}

static u64 add_at(struct twheel_sched *s, s64 from_now, s64 period, u32 flags)
{
	return ADD(s, .when_ns = wall() + from_now, .period_ns = period,
		   .flags = TWHEEL_TASK_AT | flags);
}

static void forward(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	add_at(s, HOUR, 0, 0);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 0);
	step(HOUR);
	CHECK_EQ(runs_wait(1), 1);	/* run_note() checks that it is not early */
	step(-(s64)HOUR);
	sched_close(s);
}

static void backward(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	add_at(s, SEC, 0, 0);
	step(-(s64)HOUR);
	sleep_ms(1000 + QUIET_MS);
	CHECK_EQ(runs_count(), 0);
	step(HOUR);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

/* Delays do not care. */
static void delays(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 start = (s64)now_ns(CLOCK_MONOTONIC);

	runs_forget();
	ADD(s, .when_ns = 300 * MS);
	ADD(s, .when_ns = HOUR);
	step(HOUR);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(run_nth(0).start >= start + 300 * (s64)MS);
	step(-(s64)HOUR);
	sched_close(s);
}

/* Every minute, and five are left out. */
static void periods(void)
{
	const s64 minute = 60 * (s64)SEC;
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	add_at(s, minute, minute, 0);
	step(5 * minute + minute / 2);
	CHECK_EQ(runs_wait(5), 5);	/* burst: all are made up for */
	for (u32 i = 1; i < 5; i++)
		CHECK_EQ(run_nth(i).due, run_nth(0).due + i * minute);
	sched_close(s);

	s = sched_new(1);
	runs_forget();
	add_at(s, minute, minute, TWHEEL_MISSED_SKIP);
	step(5 * minute + minute / 2);
	CHECK_EQ(runs_wait(1), 1);
	CHECK_EQ(run_nth(0).missed, 4);
	step(minute);
	CHECK_EQ(runs_wait(2), 2);
	CHECK_EQ(run_nth(1).due, run_nth(0).due + 5 * minute);
	step(-12 * minute);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 2);
	sched_close(s);
}

/* The one descriptor tells, and what was due and is not any more does not run. */
static void no_pool(void)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	add_at(s, HOUR, 0, 0);
	CHECK_EQ(twheel_sched_run(s, 0, 0), 0);
	step(2 * HOUR);
	CHECK(readable(twheel_sched_fd(s), WAIT_MS));
	CHECK_EQ(runs_drive(s, 1), 1);
	/* Two are due at once, one is run, and the other one's time is taken back. */
	add_at(s, 0, 0, 0);
	add_at(s, 0, 0, 0);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_run(s, 1, WAIT_MS), 1);
	step(-2 * (s64)HOUR);
	CHECK_EQ(twheel_sched_run(s, 0, QUIET_MS), 0);
	CHECK_EQ(twheel_sched_pending(s), 1);
	step(2 * HOUR);
	CHECK_EQ(runs_drive(s, 3), 3);
	step(-2 * (s64)HOUR);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ forward, "Timer: an absolute time survives a step forward" },
		{ backward, "Timer: and one backward" },
		{ delays, "Timer: delays do not move with the clock" },
		{ periods, "Timer: periods on the wall clock" },
		{ no_pool, "the descriptor of a scheduler without a pool tells of a step" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
