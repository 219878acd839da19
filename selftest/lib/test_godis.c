// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with the time wheel of godis: jobs with keys. godis divides by zero if the interval is
 * shorter than a second; libtwheel accepts such an interval.
 *
 *	AddJob(delay, key, job)		.key = key
 *	RemoveJob(key)			twheel_sched_cancel(s, twheel_sched_find(s, key, 0), 0)
 *	Delay(), At(), Cancel()		the same, and TWHEEL_TASK_AT
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static int remove_job(struct twheel_sched *s, const char *key)
{
	return twheel_sched_cancel(s, twheel_sched_find(s, key, 0), 0);
}

static void job(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .arg = "x", .key = "x", .when_ns = 10 * MS);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void at(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 when = (s64)now_ns(CLOCK_REALTIME) + 30 * (s64)MS;

	runs_forget();
	ADD(s, .key = "x", .when_ns = when, .flags = TWHEEL_TASK_AT);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(run_nth(0).start >= when);
	sched_close(s);
}

static void key_replaces(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t id;

	runs_forget();
	for (int i = 0; i < 10; i++)
		ADD(s, .arg = "old", .key = "k", .when_ns = HOUR);
	id = ADD(s, .arg = "new", .key = "k", .when_ns = HOUR);
	CHECK_EQ(twheel_sched_pending(s), 1);
	CHECK_EQ(twheel_sched_mod(s, id, 5 * MS), 0);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(!strcmp(run_nth(0).arg, "new"));
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 1);
	sched_close(s);
}

static void remove_by_key(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .key = "k", .when_ns = HOUR);
	CHECK_EQ(remove_job(s, "other"), -ENOENT);
	CHECK_EQ(remove_job(s, ""), -ENOENT);
	CHECK_EQ(remove_job(s, "k"), 0);
	CHECK_EQ(remove_job(s, "k"), -ENOENT);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
}

/* Intervals of 100 us, 1 ms, 999 ms and 1 s. */
static void intervals(void)
{
	static const u64 ticks[] = { MS / 10, MS, 999 * MS, SEC };

	for (u32 i = 0; i < ARRAY_SIZE(ticks); i++) {
		struct twheel_sched_options o = { .threads = 1, .clockid = CLOCK_MONOTONIC,
						  .tick_ns = ticks[i] };
		struct twheel_sched *s = NULL;

		runs_forget();
		CHECK_EQ(twheel_sched_open(&s, &o), 0);
		ADD(s, .key = "k", .when_ns = MS);
		ADD(s, .key = "l", .when_ns = MS / 10);
		CHECK_EQ(runs_wait(2), 2);
		sched_close(s);
	}
}

/*
 * Delays longer than the wheel's circumference: godis counts rounds. No task may be a round early
 * here.
 */
static void circles(void)
{
	struct twheel_sched_options o = { .threads = 1, .clockid = CLOCK_MONOTONIC,
					  .tick_ns = MS / 10 };
	struct twheel_sched *s = NULL;
	s64 start = (s64)now_ns(CLOCK_MONOTONIC);

	runs_forget();
	CHECK_EQ(twheel_sched_open(&s, &o), 0);
	for (s64 i = 1; i <= 25; i++)
		ADD(s, .when_ns = i * 12 * (s64)MS);
	CHECK_EQ(runs_wait(25), 25);
	for (u32 i = 0; i < 25; i++)
		CHECK(run_nth(i).start >= start + (i + 1) * 12 * (s64)MS);
	sched_close(s);
}

static void add_same_key(void *arg, const struct twheel_task_info *task)
{
	run_note(arg, task);
	if (runs_count() < 5)
		ADD(task->sched, .fn = add_same_key, .key = "k", .when_ns = MS);
}

/* A job may add another one with its own key. */
static void same_key_from_job(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = add_same_key, .key = "k");
	CHECK_EQ(runs_wait(5), 5);
	sched_close(s);
}

/* godis starts a goroutine for each job: so the wheel must not wait for a job. */
static void slow_job(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass, .key = "slow");
	CHECK(gate_crowd(1));
	ADD(s, .key = "quick");
	CHECK_EQ(runs_wait(1), 1);
	gate_open();
	sched_close(s);
}

static void many_keys(void)
{
	struct twheel_sched *s = sched_new(1);
	char key[16];

	runs_forget();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 1000; i++) {
			snprintf(key, sizeof(key), "key-%d", i);
			ADD(s, .key = key, .when_ns = round ? MS : HOUR);
		}
	CHECK_EQ(runs_wait(1000), 1000);
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ job, "godis: AddJob() runs the job after the delay" },
		{ at, "godis: At() runs it at a time" },
		{ key_replaces, "godis: a key replaces" },
		{ remove_by_key, "godis: RemoveJob(), of unknown keys too" },
		{ intervals, "godis: an interval below a second works" },
		{ circles, "godis: delays of many circles are not early" },
		{ same_key_from_job, "godis: a job adds itself again by its key" },
		{ slow_job, "godis: a slow job does not hold up the wheel" },
		{ many_keys, "godis: a thousand keys, each added twice" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
