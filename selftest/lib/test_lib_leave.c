// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Functions that do not return: they end the thread that calls them. so.sh tests C++ exceptions,
 * with throw.cpp.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib.h"

static void leave(void *arg, const struct twheel_task_info *task)
{
	run_note(arg, task);
	pthread_exit(NULL);
}

/* The function ends the only thread of a pool. Each time another thread takes its place. */
static void in_a_pool(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = leave, .release = run_release);
	ADD(s, .fn = leave, .when_ns = MS, .release = run_release);
	ADD(s, .when_ns = 30 * MS);
	CHECK_EQ(runs_wait(3), 3);
	CHECK_EQ(twheel_sched_pending(s), 0);
	/* A thread may still be ending, while the one in its place runs the last function. */
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(released(), 2);
	sched_close(s);
}

static void periodic(void)
{
	struct twheel_sched *s = sched_new(2);
	uint64_t id;

	runs_forget();
	id = ADD(s, .fn = leave, .period_ns = 2 * MS, .release = run_release);
	CHECK(runs_wait(20) >= 20);
	CHECK_EQ(twheel_sched_cancel(s, id, TWHEEL_SCHED_WAIT), 0);
	CHECK_EQ(released(), 1);
	sched_close(s);
}

/* After that, as many functions as before can run at once. */
static void whole_pool(void)
{
	struct twheel_sched *s = sched_new(3);

	runs_forget();
	for (int i = 0; i < 9; i++)
		ADD(s, .fn = leave);
	runs_wait(9);
	gate_close();
	for (int i = 0; i < 3; i++)
		ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(3));
	gate_open();
	sched_close(s);
}

static void *run_one(void *sched)
{
	twheel_sched_run(sched, 0, WAIT_MS);
	return "returned";
}

/* Without a pool it is the caller's thread that ends. The scheduler must work as before. */
static void without_a_pool(void)
{
	struct twheel_sched *s = sched_new(0);
	pthread_t thread;
	void *end;

	runs_forget();
	ADD(s, .fn = leave, .release = run_release);
	pthread_create(&thread, NULL, run_one, s);
	pthread_join(thread, &end);
	CHECK(!end);
	CHECK_EQ(runs_count(), 1);
	CHECK_EQ(released(), 1);
	ADD(s, .arg = "after");
	CHECK_EQ(runs_drive(s, 2), 2);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	sched_close(s);
}

struct wait {
	struct twheel_sched	*sched;
	uint64_t		id;
};

static void *wait_for_it(void *arg)
{
	const struct wait *wait = arg;

	twheel_sched_cancel(wait->sched, wait->id, TWHEEL_SCHED_WAIT);
	pthread_testcancel();
	return "not cancelled";
}

/* A thread that is cancelled while it waits must not keep the lock. */
static void waiter_cancelled(void)
{
	struct wait wait = { .sched = sched_new(1) };
	pthread_t thread;
	void *end;

	gate_close();
	wait.id = ADD(wait.sched, .fn = gate_pass, .period_ns = HOUR);
	CHECK(gate_crowd(1));
	pthread_create(&thread, NULL, wait_for_it, &wait);
	while (twheel_sched_pending(wait.sched))
		sleep_ms(1);
	sleep_ms(20);
	pthread_cancel(thread);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_pending(wait.sched), 0);
	gate_open();
	pthread_join(thread, &end);
	CHECK(end == PTHREAD_CANCELED);
	sched_close(wait.sched);
}

/* Make calls of all kinds, until the thread is cancelled. */
static void *call_for_ever(void *sched)
{
	struct twheel_task_info *list;

	for (u32 i = 0; ; i++) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		ADD(sched, .key = "key", .when_ns = i % 2 ? HOUR : 0);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		twheel_sched_run(sched, 0, 0);
		if (twheel_sched_list(sched, &list) >= 0)
			free(list);
	}
	return NULL;
}

static void cancelled_anywhere(void)
{
	enum { TASKS = 2000, ROUNDS = 60 };
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;
	pthread_t thread;
	int n;

	for (int i = 0; i < TASKS; i++)
		ADD(s, .when_ns = HOUR);
	for (int i = 0; i < ROUNDS && !failed(); i++) {
		u64 end = now_ns(CLOCK_MONOTONIC) + 3 * MS;

		pthread_create(&thread, NULL, call_for_ever, s);
		while (now_ns(CLOCK_MONOTONIC) < end)
			twheel_sched_cancel(s, ADD(s, .when_ns = HOUR), 0);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		n = twheel_sched_list(s, &list);
		CHECK(n == TASKS || n == TASKS + 1);
		CHECK_EQ(twheel_sched_pending(s), n);
		free(list);
	}
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ in_a_pool, "pthread_exit() in a function: the pool continues" },
		{ periodic, "pthread_exit() in a function: a periodic task continues" },
		{ whole_pool, "pthread_exit() in functions: the pool keeps its size" },
		{ without_a_pool, "pthread_exit() without a pool: the scheduler continues" },
		{ cancelled_anywhere, "a thread is cancelled in whichever call" },
		{ waiter_cancelled, "a thread is cancelled while it waits: the lock is free" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
