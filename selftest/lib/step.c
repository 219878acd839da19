// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Tasks on the wall clock, and wheels on CLOCK_REALTIME, while the clock is set. For a machine
 * whose clock may be set: this sets it, and puts it back in the end. "Soon" means QUIET_MS or more,
 * because a step is noticed at once.
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
	CHECK_EQ(runs_wait(1), 1);	/* run_note() checks that the run is not early */
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

/* Delays are not affected. */
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

/* A task that runs every minute, with five minutes skipped. */
static void periods(void)
{
	const s64 minute = 60 * (s64)SEC;
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	add_at(s, minute, minute, 0);
	step(5 * minute + minute / 2);
	CHECK_EQ(runs_wait(5), 5);	/* all missed runs are made up for */
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

/* The one descriptor reports the step. A task that was due, and no longer is, does not run. */
static void no_pool(void)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	add_at(s, HOUR, 0, 0);
	CHECK_EQ(twheel_sched_run(s, 0, 0), 0);
	step(2 * HOUR);
	CHECK(readable(twheel_sched_fd(s), WAIT_MS));
	CHECK_EQ(runs_drive(s, 1), 1);
	/*
	 * Two tasks are due at once. After one has run, the clock is set back before the time of
	 * the other.
	 */
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

/* ---- a wheel ------------------------------------------------------------------------ */

static struct twheel *wall_wheel(void)
{
	return wheel_new(&(struct twheel_setup){ .clockid = CLOCK_REALTIME });
}

static void add_abs(struct twheel *w, u64 user_data, s64 from_now, u32 flags)
{
	uint64_t h;

	CHECK_EQ(twheel_add(w, &h, user_data, (u64)(wall() + from_now), 0, TWHEEL_F_ABS | flags),
		 0);
}

static void expect_one(struct twheel *w, u64 user_data, u32 count, u32 flags)
{
	struct twheel_event ev[4];

	if (!CHECK_EQ(twheel_read(w, ev, ARRAY_SIZE(ev), WAIT_MS), 1))
		return;
	CHECK_EQ(ev[0].user_data, user_data);
	CHECK_EQ(ev[0].count, count);
	CHECK_EQ(ev[0].flags, flags);
	CHECK(!count || (u64)wall() >= ev[0].expires_ns);
}

static void wheel_forth(void)
{
	struct twheel *w = wall_wheel();

	add_abs(w, 1, HOUR / 2, 0);
	add_abs(w, 2, 2 * HOUR, 0);
	wheel_quiet(w, QUIET_MS);
	step(HOUR);
	expect_one(w, 1, 1, 0);
	wheel_quiet(w, QUIET_MS);
	wheel_counts(w, 1, 1, 0);
	step(-(s64)HOUR);
	twheel_close(w);
}

static void wheel_back(s64 by)
{
	struct twheel *w = wall_wheel();

	add_abs(w, 1, 200 * MS, 0);
	step(-by);
	add_abs(w, 2, 20 * MS, 0);
	expect_one(w, 2, 1, 0);
	wheel_quiet(w, 300);
	wheel_counts(w, 1, 1, 0);
	step(by);
	expect_one(w, 1, 1, 0);
	twheel_close(w);
}

static void wheel_backs(void)
{
	wheel_back(10 * SEC);
	wheel_back(3 * (s64)HOUR);
}

#define CROWD	20000

/* Many timers wait, and some of them fire or are cancelled, while the wheel follows the clock. */
static void wheel_crowd(void)
{
	struct twheel *w = wall_wheel();
	struct twheel_event ev[512];
	uint64_t h, kept = 0;
	u32 got = 0;
	int n;

	for (u32 i = 0; i < CROWD; i++) {
		CHECK_EQ(twheel_add(w, &h, i, (u64)wall() + HOUR + i % 1000 * SEC, 0,
				    TWHEEL_F_ABS), 0);
		kept = i == 777 ? h : kept;
		if (i == CROWD / 2)
			step(-2 * (s64)HOUR);
	}
	add_abs(w, CROWD, 10 * MS, 0);
	expect_one(w, CROWD, 1, 0);
	CHECK_EQ(twheel_cancel(w, kept, NULL), 1);
	wheel_counts(w, CROWD - 1, CROWD - 1, 0);
	step(4 * (s64)HOUR);
	while (got < CROWD - 1 && (n = twheel_read(w, ev, ARRAY_SIZE(ev), WAIT_MS)) > 0)
		got += (u32)n;
	CHECK_EQ(got, CROWD - 1);
	wheel_counts(w, 0, 0, 0);
	step(-2 * (s64)HOUR);
	twheel_close(w);
}

static void wheel_told(void)
{
	struct twheel *w = wall_wheel(), *other = wheel_new(NULL);
	struct twheel_info info;
	uint64_t h;

	CHECK_EQ(twheel_add(other, &h, 1, HOUR, 0, TWHEEL_F_CANCEL_ON_SET), -EINVAL);
	twheel_close(other);
	for (s64 by = HOUR; by >= -(s64)HOUR; by -= 2 * (s64)HOUR) {
		add_abs(w, 1, 24 * HOUR, TWHEEL_F_CANCEL_ON_SET | TWHEEL_F_KEEP);
		add_abs(w, 2, 24 * HOUR, 0);
		wheel_quiet(w, QUIET_MS);
		step(by);
		expect_one(w, 1, 0, TWHEEL_EV_MORE | TWHEEL_EV_CLOCK_SET);
		wheel_quiet(w, QUIET_MS);
	}
	wheel_counts(w, 4, 2, 0);
	CHECK_EQ(twheel_get_info(w, &info), 0);
	CHECK_EQ(info.nr_expired, 0);		/* to be told is not to fire */
	twheel_close(w);
}

/* Timers that are armed after the clock was set are not told of it, one by one or in a batch. */
static void wheel_told_before(void)
{
	struct twheel_op ops[2] = { 0 };

	for (u32 i = 0; i < 4; i++) {
		struct twheel *w = wall_wheel();

		for (u32 op = 0; op < 2; op++)
			ops[op] = (struct twheel_op) { .op = TWHEEL_OP_ADD, .user_data = 2,
				.flags = TWHEEL_F_CANCEL_ON_SET, .expires_ns = 24 * HOUR };
		add_abs(w, 1, 24 * HOUR, TWHEEL_F_CANCEL_ON_SET);
		step(i % 2 ? -(s64)HOUR : (s64)HOUR);
		if (i < 2)
			CHECK_EQ(twheel_submit(w, ops, 2), 0);
		else
			add_abs(w, 2, 24 * HOUR, TWHEEL_F_CANCEL_ON_SET);
		expect_one(w, 1, 0, TWHEEL_EV_CLOCK_SET);
		wheel_quiet(w, QUIET_MS);
		wheel_counts(w, i < 2 ? 2 : 1, i < 2 ? 2 : 1, 0);
		twheel_close(w);
	}
}

/* ---- both backends ------------------------------------------------------------------ */

static void over_both(void (*fn)(void))
{
	setenv("TWHEEL_BACKEND", "kernel", 1);
	fn();
	setenv("TWHEEL_BACKEND", "embedded", 1);
	fn();
}

static void forward_both(void)	{ over_both(forward); }
static void backward_both(void)	{ over_both(backward); }
static void delays_both(void)	{ over_both(delays); }
static void periods_both(void)	{ over_both(periods); }
static void no_pool_both(void)	{ over_both(no_pool); }
static void wheel_forth_both(void)	{ over_both(wheel_forth); }
static void wheel_backs_both(void)	{ over_both(wheel_backs); }
static void wheel_crowd_both(void)	{ over_both(wheel_crowd); }
static void wheel_told_both(void)	{ over_both(wheel_told); }
static void wheel_told_before_both(void)	{ over_both(wheel_told_before); }

int main(void)
{
	static const struct test tests[] = {
		{ forward_both, "Timer: an absolute time survives a step forward" },
		{ backward_both, "Timer: an absolute time survives a step back" },
		{ delays_both, "Timer: delays do not move with the clock" },
		{ periods_both, "Timer: periods on the wall clock" },
		{ no_pool_both, "without a pool, the descriptor is readable after a step" },
		{ wheel_forth_both, "wheel on CLOCK_REALTIME: a step forward" },
		{ wheel_backs_both, "wheel on CLOCK_REALTIME: a step back" },
		{ wheel_crowd_both, "wheel on CLOCK_REALTIME: many timers, many steps" },
		{ wheel_told_both, "CANCEL_ON_SET: events report a step" },
		{ wheel_told_before_both, "CANCEL_ON_SET: not to timers armed after it" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
