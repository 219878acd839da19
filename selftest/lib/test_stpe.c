// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with java.util.concurrent.ScheduledThreadPoolExecutor: what its documentation promises.
 * Cancelled tasks are always removed here. Java does that only after setRemoveOnCancelPolicy(true).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static void immediate(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	ADD(s, .arg = "zero");
	ADD(s, .arg = "negative", .when_ns = -(s64)HOUR);
	CHECK_EQ(runs_wait(2), 2);
	sched_close(s);
}

static atomic_int inside, overlaps;

static void slow(void *arg, const struct twheel_task_info *task)
{
	overlaps += inside++;
	run_note(arg, task);
	sleep_ms(12);
	inside--;
}

/* "Subsequent executions may start late, but will not concurrently execute." */
static void no_overlap(void)
{
	struct twheel_sched *s = sched_new(4);

	runs_forget();
	inside = 0;
	overlaps = 0;
	ADD(s, .fn = slow, .period_ns = 5 * MS);
	runs_wait(10);
	sched_close(s);
	CHECK_EQ(overlaps, 0);
	for (u32 i = 1; i < 10; i++)
		CHECK_EQ(run_nth(i).due, run_nth(0).due + i * 5 * (s64)MS);
}

static void fixed_delay(void)
{
	struct twheel_sched *s = sched_new(4);

	runs_forget();
	ADD(s, .fn = slow, .period_ns = 10 * MS, .flags = TWHEEL_TASK_DELAY);
	runs_wait(4);
	sched_close(s);
	/* The period counts from the end of one run to the start of the next. */
	for (u32 i = 1; i < 4; i++)
		CHECK(run_nth(i).start >= run_nth(i - 1).start + 22 * (s64)MS);
}

static void remove_on_cancel(void)
{
	struct twheel_sched *s = sched_new(1);
	struct twheel_task_info *list;
	uint64_t id;

	runs_forget();
	for (int i = 0; i < 1000; i++) {
		id = ADD(s, .when_ns = HOUR, .release = run_release);
		CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	}
	CHECK_EQ(released(), 1000);
	CHECK_EQ(twheel_sched_list(s, &list), 0);
	free(list);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
}

/* Add five tasks for the same ns. Returns whether they run in the order of adding. */
static bool run_in_order(void)
{
	static const char *const args[] = { "a", "b", "c", "d", "e" };
	struct twheel_sched *s = sched_new(1);
	s64 when = (s64)now_ns(CLOCK_REALTIME) + 50 * (s64)MS;
	bool ok = true;

	runs_forget();
	for (int i = 0; i < 5; i++)
		ADD(s, .arg = (void *)args[i], .when_ns = when, .flags = TWHEEL_TASK_AT);
	CHECK_EQ(runs_wait(5), 5);
	sched_close(s);
	for (u32 i = 0; i < 5; i++)
		ok &= run_nth(i).arg[0] == args[i][0];
	return ok;
}

/*
 * "Tasks scheduled for exactly the same execution time are enabled in FIFO order." If the host
 * stands still until they are due before all have been added, or a tick expires in parts, they may
 * not be. So one of five tries must succeed.
 */
static void fifo(void)
{
	bool ok = false;

	for (int tries = 0; tries < 5 && !ok; tries++)
		ok = run_in_order();
	CHECK(ok);
}

static void shutdown_now(void)
{
	struct twheel_sched *s = sched_new(1);
	struct twheel_task task = { .fn = run_note };
	struct twheel_task_info *list;

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(1));
	ADD(s, .arg = "once", .when_ns = HOUR);
	ADD(s, .arg = "rate", .when_ns = HOUR, .period_ns = SEC);
	/* The tasks that never began, including periodic ones, and not the one that runs. */
	CHECK_EQ(twheel_sched_stop(s, 0, &list), 2);
	CHECK(!strcmp(list[0].arg, "once") && !strcmp(list[1].arg, "rate"));
	free(list);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	gate_open();
	/* awaitTermination() */
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(runs_count(), 0);
	sched_close(s);
}

/* shutdown(): delayed tasks still run, periodic ones do not, and new ones are refused. */
static void shutdown(void)
{
	struct twheel_sched *s = sched_new(2);
	struct twheel_task task = { .fn = run_note };
	struct twheel_task_info *list = NULL;
	u64 id;

	runs_forget();
	/* None is due soon: on a host that stands still one might run before the checks. */
	ADD(s, .arg = "late", .when_ns = 2 * HOUR, .key = "late", .release = run_release);
	id = ADD(s, .arg = "soon", .when_ns = HOUR, .release = run_release);
	ADD(s, .arg = "often", .when_ns = HOUR, .period_ns = HOUR, .release = run_release);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_FINISH, &list), 1);
	CHECK(list && !strcmp(list[0].arg, "often"));
	free(list);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	CHECK_EQ(twheel_sched_pending(s), 2);
	CHECK_EQ(twheel_sched_mod(s, id, 20 * MS), 0);
	CHECK_EQ(runs_wait(1), 1);
	CHECK_EQ(twheel_sched_mod(s, twheel_sched_find(s, "late", 0), 40 * MS), 0);
	/* awaitTermination() */
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_FINISH | TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(runs_count(), 2);
	CHECK(!strcmp(run_nth(0).arg, "soon") && !strcmp(run_nth(1).arg, "late"));
	CHECK_EQ(released(), 2);
	sched_close(s);
}

/* shutdownNow() after shutdown(). */
static void shutdown_then_now(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .when_ns = HOUR, .release = run_release);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_FINISH, NULL), 0);
	CHECK_EQ(released(), 0);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 1);
	CHECK_EQ(released(), 1);
	CHECK_EQ(runs_count(), 0);
	sched_close(s);
}

static void queue(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 now = (s64)now_ns(CLOCK_MONOTONIC);
	struct twheel_task_info *list;

	ADD(s, .when_ns = HOUR);
	CHECK_EQ(twheel_sched_list(s, &list), 1);
	/* getDelay() */
	CHECK(list[0].due_ns >= now + (s64)HOUR);
	CHECK(list[0].due_ns <= (s64)now_ns(CLOCK_MONOTONIC) + (s64)HOUR);
	free(list);
	sched_close(s);
}

static void slow_task(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(1));
	ADD(s, .period_ns = 2 * MS);
	runs_wait(10);
	gate_open();
	sched_close(s);
}

static void bad_period(void)
{
	struct twheel_task task = { .fn = run_note, .period_ns = -1 };
	struct twheel_sched *s = sched_new(1);

	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EINVAL);
	sched_close(s);
}

static void *quick(void *arg)
{
	struct twheel_sched *s = arg;

	for (int i = 0; i < 500; i++)
		ADD(s, .when_ns = i % 10 * MS);
	return NULL;
}

/* Many threads submit tasks. Each task runs once. */
static void submitters(void)
{
	struct twheel_sched *s = sched_new(2);
	pthread_t threads[4];

	runs_forget();
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, quick, s);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(runs_wait(2000), 2000);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(runs_count(), 2000);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ immediate, "STPE: zero and negative delays are at once" },
		{ no_overlap, "STPE: fixed rate never overlaps itself, and keeps its times" },
		{ fixed_delay, "STPE: fixed delay counts from the end of a run" },
		{ remove_on_cancel, "STPE: removeOnCancel, always" },
		{ fifo, "STPE: the same time, FIFO order" },
		{ shutdown_now, "STPE: shutdownNow() returns what never commenced" },
		{ shutdown, "STPE: shutdown() executes what is delayed and accepts nothing" },
		{ shutdown_then_now, "STPE: shutdownNow() after shutdown()" },
		{ queue, "STPE: getQueue() and getDelay()" },
		{ slow_task, "STPE: a slow task delays no other" },
		{ bad_period, "STPE: a negative period is refused" },
		{ submitters, "STPE: four submitters, 2000 tasks" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
