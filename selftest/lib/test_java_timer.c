// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with java.util.Timer: what its documentation promises, with a pool of one thread.
 *
 *	schedule(task, delay)			when_ns
 *	schedule(task, Date)			TWHEEL_TASK_AT
 *	schedule(task, delay, period)		period_ns, TWHEEL_MISSED_DELAY
 *	scheduleAtFixedRate()			period_ns
 *	TimerTask.cancel(), Timer.cancel()	twheel_sched_cancel(), twheel_sched_stop()
 *
 * Two things are better here: a negative delay means "at once" and causes no exception, and there
 * is nothing to purge(). That an absolute time survives a step of the clock is tested in step.c,
 * which needs a machine whose clock may be set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static s64 wall(void)
{
	return (s64)now_ns(CLOCK_REALTIME);
}

static void delay(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 before = (s64)now_ns(CLOCK_MONOTONIC);

	runs_forget();
	ADD(s, .arg = "x", .when_ns = 20 * MS);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(run_nth(0).start >= before + 20 * (s64)MS);
	sched_close(s);
}

static void date(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 when = wall() + 40 * (s64)MS;

	runs_forget();
	ADD(s, .arg = "at", .flags = TWHEEL_TASK_AT, .when_ns = when);
	CHECK_EQ(runs_wait(1), 1);
	CHECK_EQ(run_nth(0).due, when);
	CHECK(run_nth(0).start >= when);
	sched_close(s);
}

static void past_date(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .flags = TWHEEL_TASK_AT, .when_ns = wall() - (s64)HOUR);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void slow(void *arg, const struct twheel_task_info *task)
{
	run_note(arg, task);
	if (task->runs == 1)
		sleep_ms(100);
}

/* "If an execution is delayed for any reason, subsequent executions will be as well." */
static void fixed_delay(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = slow, .period_ns = 20 * MS, .flags = TWHEEL_MISSED_DELAY);
	runs_wait(4);
	sched_close(s);
	/* The second run began 80 ms late. The third must not make up for it. */
	CHECK(run_nth(1).start >= run_nth(0).start + 100 * (s64)MS);
	CHECK(run_nth(2).due >= run_nth(0).start + 120 * (s64)MS);
}

/* "Two or more executions will occur in rapid succession to catch up." */
static void fixed_rate(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = slow, .period_ns = 20 * MS);
	runs_wait(8);
	sched_close(s);
	for (u32 i = 1; i < 8; i++)
		CHECK_EQ(run_nth(i).due, run_nth(0).due + i * 20 * (s64)MS);
	/* The missed runs were due before the first run had ended. */
	CHECK(run_nth(4).due < run_nth(1).start);
}

static void fixed_rate_from_date(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 first = wall() - 50 * (s64)MS;

	runs_forget();
	ADD(s, .flags = TWHEEL_TASK_AT, .when_ns = first, .period_ns = 20 * MS);
	runs_wait(5);
	sched_close(s);
	for (u32 i = 0; i < 5; i++)
		CHECK_EQ(run_nth(i).due, first + i * 20 * (s64)MS);
}

/* scheduledExecutionTime(): a task can see when the run was due, to skip it if it is too late. */
static void scheduled_time(void)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	ADD(s, .when_ns = MS);
	sleep_ms(30);
	CHECK_EQ(runs_drive(s, 1), 1);
	CHECK(run_nth(0).start - run_nth(0).due >= 25 * (s64)MS);
	sched_close(s);
}

static void stop_inside(void *arg, const struct twheel_task_info *task)
{
	CHECK_EQ(twheel_sched_cancel(task->sched, task->id, 0), 1);
	run_note(arg, task);
}

static void cancel_task(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t id;

	runs_forget();
	id = ADD(s, .when_ns = HOUR);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), -ENOENT);	/* only the first cancel succeeds */
	ADD(s, .fn = stop_inside, .period_ns = MS);
	runs_wait(1);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 1);	/* the task never runs again */
	sched_close(s);
}

static void close_inside(void *arg, const struct twheel_task_info *task)
{
	struct twheel_task_info *list;

	CHECK_EQ(twheel_sched_stop(task->sched, 0, &list), 2);
	free(list);
	run_note(arg, task);
}

static void cancel_timer(void)
{
	struct twheel_task task = { .fn = run_note };
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .when_ns = HOUR);
	ADD(s, .when_ns = HOUR, .period_ns = MS);
	ADD(s, .fn = close_inside);
	CHECK_EQ(runs_wait(1), 1);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	CHECK_EQ(twheel_sched_stop(s, 0, NULL), 0);	/* a second stop has no effect */
	sleep_ms(2 * QUIET_MS);
	CHECK_EQ(runs_count(), 1);
	sched_close(s);
}

/* Cancelled tasks are freed without a purge(). */
static void purge(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t ids[100];

	runs_forget();
	for (int i = 0; i < 100; i++)
		ids[i] = ADD(s, .when_ns = HOUR, .release = run_release);
	for (int i = 0; i < 100; i++)
		twheel_sched_cancel(s, ids[i], 0);
	CHECK_EQ(released(), 100);
	CHECK_EQ(twheel_sched_pending(s), 0);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
}

/* With one thread, all tasks run one after the other, in the order in which they are due. */
static void sequential(void)
{
	static const char *const args[] = { "3", "1", "2" };
	static const s64 when[] = { 360 * MS, 320 * MS, 340 * MS };
	struct twheel_sched *s;
	bool in_time;
	s64 start;

	do {	/* again if the host stood still, and so one was due before all were added */
		s = sched_new(1);
		runs_forget();
		start = wall();
		for (int i = 0; i < 3; i++)
			ADD(s, .fn = slow, .arg = (void *)args[i], .when_ns = start + when[i],
			    .flags = TWHEEL_TASK_AT);
		in_time = wall() < start + when[1];
		runs_wait(3);
		sched_close(s);
	} while (!in_time && !failed());
	for (u32 i = 0; i < 3; i++)
		CHECK_EQ(run_nth(i).arg[0], '1' + i);
	for (u32 i = 1; i < 3; i++)
		CHECK(run_nth(i).start >= run_nth(i - 1).start + 100 * (s64)MS);
}

static void no_wrap(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .arg = "far", .when_ns = INT64_MAX);
	ADD(s, .arg = "far", .when_ns = INT64_MAX, .flags = TWHEEL_TASK_AT);
	ADD(s, .arg = "negative", .when_ns = -5);
	CHECK_EQ(runs_wait(1), 1);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 1);
	CHECK(!strcmp(run_nth(0).arg, "negative"));
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ delay, "Timer: schedule(task, delay) runs it after the delay" },
		{ date, "Timer: schedule(task, Date) runs it at that time" },
		{ past_date, "Timer: a date in the past is at once" },
		{ fixed_delay, "Timer: schedule() with a period: late runs delay the next" },
		{ fixed_rate, "Timer: scheduleAtFixedRate() catches up" },
		{ fixed_rate_from_date, "Timer: scheduleAtFixedRate() from a date that is past" },
		{ scheduled_time, "Timer: scheduledExecutionTime()" },
		{ cancel_task, "Timer: TimerTask.cancel(), from run() too" },
		{ cancel_timer, "Timer: cancel() from a task: it was the last" },
		{ purge, "Timer: nothing to purge()" },
		{ sequential, "Timer: one thread, one task at a time, in order" },
		{ no_wrap, "Timer: negative and huge delays do not wrap" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
