// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with Netty's HashedWheelTimer: what its documentation promises, its tests check and its
 * issues report. Netty's own thread calls the tasks; here that is a pool of one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static struct twheel_sched *timer_new(u32 max_pending)
{
	struct twheel_sched_options o = { .threads = 1, .clockid = CLOCK_MONOTONIC,
					  .max_pending = max_pending };
	struct twheel_sched *s = NULL;

	runs_forget();
	CHECK_EQ(twheel_sched_open(&s, &o), 0);
	return s;
}

static void not_before(void)
{
	struct twheel_sched *s = timer_new(0);

	ADD(s, .when_ns = 10 * SEC);
	sleep_ms(3 * QUIET_MS);
	CHECK_EQ(runs_count(), 0);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 1);
	sched_close(s);
}

static void after(void)
{
	struct twheel_sched *s = timer_new(0);

	ADD(s, .when_ns = 2 * MS);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void max_pending(void)
{
	struct twheel_task task = { .fn = run_note, .when_ns = HOUR };
	struct twheel_sched *s = timer_new(2);
	uint64_t id = sched_add(s, task), soon = sched_add(s, task);

	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EDQUOT);
	/* Not even after a timeout was cancelled. */
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), 0);
	CHECK_EQ(twheel_sched_pending(s), 2);
	/* Nor after one has expired. */
	CHECK_EQ(twheel_sched_mod(s, soon, 0), 0);
	CHECK_EQ(runs_wait(1), 1);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), 0);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EDQUOT);
	sched_close(s);
}

static u32 pending_inside;

static void look_inside(void *arg, const struct twheel_task_info *task)
{
	twheel_sched_cancel(task->sched, task->id, 0);
	pending_inside = twheel_sched_pending(task->sched);
	run_note(arg, task);
}

/* The count is right even if the task itself makes the cancel. */
static void pending(void)
{
	struct twheel_sched *s = timer_new(0);
	uint64_t id = ADD(s, .when_ns = HOUR);

	ADD(s, .when_ns = HOUR);
	CHECK_EQ(twheel_sched_pending(s), 2);
	twheel_sched_cancel(s, id, 0);
	twheel_sched_cancel(s, id, 0);	/* this is not counted twice */
	CHECK_EQ(twheel_sched_pending(s), 1);
	ADD(s, .fn = look_inside);
	runs_wait(1);
	CHECK_EQ(pending_inside, 1);
	CHECK_EQ(twheel_sched_pending(s), 1);
	sched_close(s);
}

static void stop(void)
{
	struct twheel_sched *s = timer_new(0);
	struct twheel_task task = { .fn = run_note };
	struct twheel_task_info *list;

	for (int i = 0; i < 3; i++)
		ADD(s, .arg = "done");
	runs_wait(3);
	for (int i = 0; i < 5; i++)
		ADD(s, .arg = "left", .when_ns = HOUR);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, &list), 5);
	for (int i = 0; i < 5; i++)
		CHECK(!strcmp(list[i].arg, "left"));
	free(list);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, &list), 0);
	free(list);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	sleep_ms(2 * QUIET_MS);
	CHECK_EQ(runs_count(), 3);
	sched_close(s);
}

/* TimerTask.cancelled(): a task that stop() discards is told. */
static void cancelled_hook(void)
{
	struct twheel_sched *s = timer_new(0);

	for (int i = 0; i < 4; i++)
		ADD(s, .when_ns = HOUR, .release = run_release);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 4);
	CHECK_EQ(released(), 4);
	sched_close(s);
}

static int stop_result;

static void stop_inside(void *arg, const struct twheel_task_info *task)
{
	stop_result = twheel_sched_stop(task->sched, TWHEEL_SCHED_WAIT, NULL);
	run_note(arg, task);
}

static void stop_from_task(void)
{
	struct twheel_sched *s = timer_new(0);

	ADD(s, .fn = stop_inside);
	runs_wait(1);
	CHECK_EQ(stop_result, -EDEADLK);
	ADD(s, .arg = "goes on");
	runs_wait(2);
	sched_close(s);
}

static bool contains(const uint64_t *ids, u32 nr, uint64_t id)
{
	while (nr && ids[nr - 1] != id)
		nr--;
	return nr;
}

/* If cancel() returned that it cancelled a task, the task never runs, however near its time is. */
static void cancel_is_final(void)
{
	enum { N = 1000 };
	static uint64_t cancelled[N];
	struct twheel_sched *s = timer_new(0);
	u32 nr = 0;

	for (u32 i = 0; i < N; i++) {
		uint64_t id = ADD(s, .when_ns = MS / 2);
		u64 end = now_ns(CLOCK_MONOTONIC) + MS / 1000 * (i % 2000);

		while (now_ns(CLOCK_MONOTONIC) < end)
			;
		if (!twheel_sched_cancel(s, id, 0))
			cancelled[nr++] = id;
	}
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(runs_count() + nr, N);
	for (u32 i = 0; i < runs_count(); i++)
		CHECK(!contains(cancelled, nr, run_nth(i).id));
	diag("%u ran, %u were cancelled", N - nr, nr);
	sched_close(s);
}

static void overflow(void)
{
	struct twheel_sched *s = timer_new(0);
	uint64_t id = ADD(s, .when_ns = INT64_MAX);

	ADD(s, .when_ns = INT64_MAX / 1000000 * 1000000);
	sleep_ms(2 * QUIET_MS);
	CHECK_EQ(runs_count(), 0);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	CHECK_EQ(twheel_sched_pending(s), 1);
	sched_close(s);
}

/* Delays around the ends of the wheel's rotations: no task is a rotation early. */
static void rotations(void)
{
	static const u32 ticks[] = { 59, 60, 61, 119, 120, 121, 179, 180, 181, 240, 300 };
	struct twheel_sched *s = timer_new(0);
	s64 start = (s64)now_ns(CLOCK_MONOTONIC);

	for (u32 i = 0; i < ARRAY_SIZE(ticks); i++)
		ADD(s, .arg = (void *)&ticks[i], .when_ns = ticks[i] * (s64)MS);
	runs_wait(ARRAY_SIZE(ticks));
	for (u32 i = 0; i < ARRAY_SIZE(ticks); i++) {
		CHECK(run_nth(i).arg == (const char *)&ticks[i]);
		CHECK(run_nth(i).start >= start + ticks[i] * (s64)MS);
	}
	sched_close(s);
}

/* taskExecutor: if there are threads to run them, 10000 slow tasks do not delay one another. */
static void executor(void)
{
	struct twheel_sched *s = sched_new(3);

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass);
	ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(2));
	for (int i = 0; i < 100; i++)
		ADD(s, .when_ns = MS);
	CHECK_EQ(runs_wait(100), 100);
	gate_open();
	sched_close(s);
}

/* A cancelled timeout frees its memory at once, not when the wheel comes to its slot. */
static void freed_at_once(void)
{
	struct twheel_sched *s = timer_new(0);
	uint64_t id;

	for (int i = 0; i < 100; i++) {
		id = ADD(s, .when_ns = 60 * SEC, .release = run_release);
		twheel_sched_cancel(s, id, 0);
		CHECK_EQ(released(), i + 1);
	}
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ not_before, "Netty: a timeout does not run before its delay" },
		{ after, "Netty: it runs after it" },
		{ max_pending, "Netty: maxPendingTimeouts rejects until one is cancelled or ran" },
		{ pending, "Netty: pendingTimeouts() is right, whoever cancels" },
		{ stop, "Netty: stop() returns the unprocessed; newTimeout() is refused" },
		{ cancelled_hook, "Netty: stop() tells those it throws away" },
		{ stop_from_task, "Netty: stop() from a task is refused" },
		{ cancel_is_final, "Netty: cancel is not seen by the callback" },
		{ overflow, "Netty: no early firing at overflow" },
		{ rotations, "Netty: no early firing at the ends of a rotation" },
		{ executor, "Netty: taskExecutor, slow tasks delay no other" },
		{ freed_at_once, "Netty: a cancelled timeout is freed at once" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
