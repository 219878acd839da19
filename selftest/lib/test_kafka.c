// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with the timer of Kafka's purgatory (SystemTimer, TimingWheel): what its tests check, and
 * what its users, delayed operations, rely on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

/* testAlreadyExpiredTask */
static void already_expired(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	for (int i = 0; i < 5; i++)
		ADD(s, .when_ns = -i);
	CHECK_EQ(runs_wait(5), 5);
	sched_close(s);
}

/* The tick in which a task is due: the first one that begins no earlier. */
static u64 tick_of(struct run run)
{
	return ((u64)run.due + MS - 1) / MS;
}

/*
 * testTaskExpiration: delays that are longer than several wheels. The tasks run in order. None runs
 * before all were added: if the host stops an add that has read the clock, later ones run first.
 * There are 500 at a time, since the order is promised for 512: if the host stands still, all of
 * them are due at once. On a busy CPU the wheel may hand out a tick in parts, so what is compared
 * is the ticks, of a millisecond. And a task that is due when it is added may run before others: if
 * the host stood still until one was, the tasks are added again.
 */
static void expire(u64 *seed)
{
	struct twheel_sched *s = sched_new(1);
	u64 first = now_ns(CLOCK_MONOTONIC) + 200 * MS;
	bool late;

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(1));
	for (int i = 0; i < 500; i++)
		ADD(s, .when_ns = (s64)(200 * MS + rnd(seed) % (250 * MS)));
	late = now_ns(CLOCK_MONOTONIC) >= first;
	gate_open();
	CHECK_EQ(runs_wait(500), 500);
	sched_close(s);
	if (late) {
		expire(seed);
		return;
	}
	for (u32 i = 1; i < 500; i++)
		CHECK(tick_of(run_nth(i)) >= tick_of(run_nth(i - 1)));
}

static void expiration(void)
{
	u64 seed = 3;

	expire(&seed);
	expire(&seed);
}

/* The purpose of Kafka's DelayQueue: nothing runs while nothing is due. */
static void no_empty_ticks(void)
{
	struct twheel_sched *s = sched_new(1);
	u64 end = now_ns(CLOCK_MONOTONIC) + 10 * SEC;
	struct twheel_info before, after;

	for (int i = 0; i < 100; i++)
		ADD(s, .when_ns = 10 * SEC + i * (s64)SEC);
	sleep_ms(20);
	twheel_get_info(twheel_sched_wheel(s), &before);
	sleep_ms(300);
	twheel_get_info(twheel_sched_wheel(s), &after);
	sched_close(s);
	if (now_ns(CLOCK_MONOTONIC) >= end) {	/* the host stood still until one was due */
		no_empty_ticks();
		return;
	}
	CHECK_EQ(after.nr_wakeups, before.nr_wakeups);
	CHECK_EQ(after.nr_expired, 0);
}

static void size(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t ids[10];

	runs_forget();
	for (u32 i = 0; i < 10; i++) {
		ids[i] = ADD(s, .when_ns = HOUR);
		CHECK_EQ(twheel_sched_pending(s), i + 1);
	}
	for (u32 i = 0; i < 10; i++) {
		CHECK_EQ(twheel_sched_cancel(s, ids[i], 0), 0);
		CHECK_EQ(twheel_sched_pending(s), 9 - i);
	}
	ADD(s, .arg = "x");
	runs_wait(1);
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
}

/*
 * Either its event or its timeout completes a delayed operation, whichever comes first, and never
 * both.
 */
static atomic_int timed_out;

static void time_out(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	timed_out++;
}

static void completed_once(void)
{
	enum { N = 3000 };
	struct twheel_sched *s = sched_new(2);
	int completed = 0;

	timed_out = 0;
	for (int i = 0; i < N; i++) {
		uint64_t id = ADD(s, .fn = time_out, .when_ns = MS / 4);
		u64 end = now_ns(CLOCK_MONOTONIC) + MS / 1000 * (u64)(i % 1200);
		int rc;

		while (now_ns(CLOCK_MONOTONIC) < end)
			;
		rc = twheel_sched_cancel(s, id, 0);
		CHECK(rc == 0 || rc == 1 || rc == -ENOENT);
		completed += rc == 0;
	}
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(timed_out + completed, N);
	diag("%d timed out, %d were completed", timed_out, completed);
	sched_close(s);
}

static void again(void *arg, const struct twheel_task_info *task)
{
	run_note(arg, task);
	if (runs_count() < 20)
		ADD(task->sched, .fn = again, .when_ns = MS);
}

static void added_by_a_task(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = again);
	CHECK_EQ(runs_wait(20), 20);
	sched_close(s);
}

static void closed(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	for (int i = 0; i < 50; i++)
		ADD(s, .when_ns = 20 * MS, .release = run_release);
	sched_close(s);
	CHECK_EQ(released(), 50);
	runs_forget();
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 0);
}

int main(void)
{
	static const struct test tests[] = {
		{ already_expired, "Kafka: a task that is due already runs at once" },
		{ expiration, "Kafka: tasks expire in their order, however far" },
		{ no_empty_ticks, "Kafka: no empty ticks" },
		{ size, "Kafka: size() counts what is pending, and no cancelled task" },
		{ completed_once, "Kafka: completed or timed out, never both" },
		{ added_by_a_task, "Kafka: a task adds the next one" },
		{ closed, "Kafka: after close() nothing runs" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
