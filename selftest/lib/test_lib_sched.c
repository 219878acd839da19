// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The scheduler: what is not specific to another system. What users of well-known schedulers rely
 * on is in test_netty.c and its like.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

static void no_pool(void)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	CHECK(!readable(twheel_sched_fd(s), 0));
	CHECK_EQ(twheel_sched_run(s, 0, 0), 0);
	for (int i = 0; i < 5; i++)
		ADD(s, .arg = "due", .when_ns = i);
	ADD(s, .arg = "far", .when_ns = HOUR);
	CHECK(readable(twheel_sched_fd(s), WAIT_MS));
	CHECK_EQ(runs_count(), 0);	/* nothing runs without a call */
	sleep_ms(20);
	/* Two at a time: the descriptor is readable until all have run. */
	CHECK_EQ(twheel_sched_run(s, 2, 0), 2);
	CHECK(readable(twheel_sched_fd(s), 0));
	CHECK_EQ(twheel_sched_run(s, 2, 0), 2);
	CHECK(readable(twheel_sched_fd(s), 0));
	CHECK_EQ(twheel_sched_run(s, 2, 0), 1);
	CHECK(!readable(twheel_sched_fd(s), 0));
	CHECK_EQ(runs_count(), 5);
	sched_close(s);
}

static void run_waits(void)
{
	struct twheel_sched *s = sched_new(0);
	u64 start = now_ns(CLOCK_MONOTONIC);

	runs_forget();
	CHECK_EQ(twheel_sched_run(s, 0, 30), 0);
	CHECK(now_ns(CLOCK_MONOTONIC) >= start + 30 * MS);
	/* A wake-up without a task must not count as a run. */
	start = now_ns(CLOCK_MONOTONIC);
	twheel_sched_cancel(s, ADD(s, .when_ns = 5 * MS), 0);
	CHECK_EQ(twheel_sched_run(s, 0, 30), 0);
	CHECK(now_ns(CLOCK_MONOTONIC) >= start + 30 * MS);
	ADD(s, .when_ns = 20 * MS);
	CHECK_EQ(twheel_sched_run(s, 0, -1), 1);
	CHECK_EQ(runs_count(), 1);
	sched_close(s);
}

static void count_run(void *arg, const struct twheel_task_info *task)
{
	(void)task;
	++*(u32 *)arg;
}

static void add_one_due(void *arg, const struct twheel_task_info *task)
{
	count_run(arg, task);
	ADD(task->sched, .fn = add_one_due, .arg = arg, .flags = TWHEEL_TASK_AT);
}

/*
 * A call runs all that is due when it begins, however many tasks, and nothing that becomes due
 * later.
 */
static void runs_all(void)
{
	enum { N = 3000 };
	struct twheel_sched *s = sched_new(0);
	u32 count = 0;

	for (int i = 0; i < N; i++)
		ADD(s, .fn = count_run, .arg = &count, .when_ns = i % 7);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_run(s, 0, 0), N);
	CHECK_EQ(count, N);
	for (int i = 0; i < N; i++)
		ADD(s, .fn = add_one_due, .arg = &count, .when_ns = MS);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_run(s, 2000, WAIT_MS), 2000);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_run(s, 0, 0), N);
	CHECK_EQ(count, 2 * N + 2000);
	CHECK_EQ(twheel_sched_pending(s), N);
	CHECK_EQ(twheel_sched_run(s, 0, -2), -EINVAL);
	CHECK_EQ(twheel_sched_run(s, 1, INT32_MIN), -EINVAL);
	sched_close(s);
}

static void options(void)
{
	struct twheel_sched_options bad[] = {
		{ .clockid = CLOCK_TAI }, { .clockid = CLOCK_MONOTONIC, .flags = 8 },
		{ .clockid = CLOCK_MONOTONIC, .reserved = { 0, 0, 1 } },
		{ .clockid = CLOCK_MONOTONIC, .tick_ns = 1 },
		{ .clockid = CLOCK_MONOTONIC, .threads = 1U << 30 },
		{ .clockid = CLOCK_MONOTONIC, .flags = TWHEEL_ONE_THREAD },
	};
	struct twheel_sched_options zero = { 0 };
	struct twheel_sched *s = NULL;

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(twheel_sched_open(&s, &bad[i]), -EINVAL);
	CHECK(!s);
	CHECK_EQ(twheel_sched_open(&s, NULL), 0);
	sched_close(s);
	CHECK_EQ(twheel_sched_open(&s, &zero), 0);
	sched_close(s);
	sched_close(NULL);
	s = sched_new(1);
	CHECK_EQ(twheel_sched_fd(s), -EINVAL);
	CHECK_EQ(twheel_sched_run(s, 0, 0), -EINVAL);
	sched_close(s);
}

static void bad_tasks(void)
{
	static const struct twheel_task bad[] = {
		{ .fn = NULL },
		{ .fn = run_note, .flags = 1U << 31 },
		{ .fn = run_note, .reserved = 1 },
		{ .fn = run_note, .period_ns = -1 },
		{ .fn = run_note, .period_ns = MS - 1 },
		{ .fn = run_note, .flags = TWHEEL_TASK_DELAY },
		{ .fn = run_note, .flags = TWHEEL_MISSED_SKIP },
		{ .fn = run_note, .period_ns = SEC,
		  .flags = TWHEEL_MISSED_SKIP | TWHEEL_MISSED_DELAY },
		{ .fn = run_note, .period_ns = SEC,
		  .flags = TWHEEL_TASK_DELAY | TWHEEL_MISSED_SKIP },
		{ .fn = run_note, .period_ns = SEC,
		  .flags = TWHEEL_TASK_DELAY | TWHEEL_TASK_OVERLAP },
		{ .fn = run_note, .key = "k", .key_len = 65536 },
	};
	struct twheel_sched *s = sched_new(0);
	uint64_t id = 77;

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		if (!CHECK_EQ(twheel_sched_add(s, &bad[i], &id), -EINVAL))
			diag("	of bad task %u", i);
	CHECK_EQ(id, 77);
	CHECK_EQ(twheel_sched_pending(s), 0);
	CHECK_EQ(twheel_sched_mod(s, 1, 0), -ENOENT);
	CHECK_EQ(twheel_sched_cancel(s, 1, 0), -ENOENT);
	CHECK_EQ(twheel_sched_cancel(s, 0, TWHEEL_SCHED_WAIT), -ENOENT);
	sched_close(s);
}

/* Delays from far below zero up to the end of time. */
static void delays(void)
{
	static const s64 past[] = { INT64_MIN, INT64_MIN + 1, -1, 0 };
	static const s64 far[] = { INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 };
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;

	runs_forget();
	for (u32 i = 0; i < ARRAY_SIZE(past); i++) {
		ADD(s, .when_ns = past[i]);
		ADD(s, .when_ns = past[i], .flags = TWHEEL_TASK_AT);
	}
	for (u32 i = 0; i < ARRAY_SIZE(far); i++) {
		ADD(s, .when_ns = far[i]);
		ADD(s, .when_ns = far[i], .flags = TWHEEL_TASK_AT, .period_ns = INT64_MAX);
	}
	CHECK_EQ(runs_drive(s, 8), 8);
	CHECK_EQ(twheel_sched_run(s, 0, QUIET_MS), 0);
	CHECK_EQ(twheel_sched_list(s, &list), 6);
	for (int i = 0; i < 6; i++)
		CHECK(list[i].due_ns >= INT64_MAX / 2);
	free(list);
	sched_close(s);
}

/* If the next period would end after the end of time, the task runs once and never again. */
static void huge_period(void)
{
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;

	runs_forget();
	ADD(s, .period_ns = INT64_MAX);
	ADD(s, .period_ns = INT64_MAX, .flags = TWHEEL_TASK_DELAY);
	ADD(s, .period_ns = INT64_MAX, .flags = TWHEEL_MISSED_SKIP);
	CHECK_EQ(runs_drive(s, 3), 3);
	CHECK_EQ(twheel_sched_run(s, 0, QUIET_MS), 0);
	CHECK_EQ(twheel_sched_list(s, &list), 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(list[i].due_ns, INT64_MAX);
	free(list);
	sched_close(s);
}

static void rate(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .when_ns = 5 * MS, .period_ns = 7 * MS);
	runs_wait(6);
	sched_close(s);
	for (u32 i = 1; i < 6; i++) {
		CHECK_EQ(run_nth(i).due, run_nth(0).due + i * 7 * (s64)MS);
		CHECK_EQ(run_nth(i).nth, i + 1);
		CHECK_EQ(run_nth(i).missed, 0);
	}
}

/* With TWHEEL_TASK_DELAY the period counts from the end of the function. */
static void slow_note(void *arg, const struct twheel_task_info *task)
{
	run_note(arg, task);
	sleep_ms(15);
}

static void delay(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = slow_note, .period_ns = 10 * MS, .flags = TWHEEL_TASK_DELAY);
	runs_wait(4);
	sched_close(s);
	for (u32 i = 1; i < 4; i++)
		CHECK(run_nth(i).start >= run_nth(i - 1).start + 25 * (s64)MS);
}

/*
 * A task with a period of 20 ms is not run for 110 ms and more, because the program makes no call.
 * At @late the program begins to call until the task has caught up, and some more.
 */
static s64 late;

static struct twheel_sched *missed(u32 flags)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	ADD(s, .period_ns = 20 * MS, .flags = flags);
	sleep_ms(112);
	late = (s64)now_ns(CLOCK_MONOTONIC);
	runs_drive(s, 8);
	return s;
}

static void burst(void)
{
	struct twheel_sched *s = missed(0);

	for (u32 i = 1; i < 8; i++)
		CHECK_EQ(run_nth(i).due, run_nth(i - 1).due + 20 * (s64)MS);
	CHECK_EQ(run_nth(7).missed, 0);
	/* The fifth run was due before the first one ran. */
	CHECK(run_nth(4).due <= late);
	sched_close(s);
}

static void skip(void)
{
	struct twheel_sched *s = missed(TWHEEL_MISSED_SKIP);
	const struct run first = run_nth(0);

	/* The first run is the one that was due. The next is in phase, and still to come. */
	CHECK(run_nth(1).due > late);
	CHECK(first.missed >= 5);
	for (u32 i = 1; i < 8; i++)
		CHECK_EQ(run_nth(i).due,
			 first.due + (s64)((i + run_nth(i - 1).missed) * 20 * MS));
	sched_close(s);
}

static void missed_delay(void)
{
	struct twheel_sched *s = missed(TWHEEL_MISSED_DELAY);
	const struct run first = run_nth(0), second = run_nth(1);

	CHECK(first.missed >= 5);
	/* Not earlier than a period after the late run began: the old phase is given up. */
	CHECK(second.due >= late + 20 * (s64)MS);
	CHECK(second.due <= first.start + 20 * (s64)MS);
	for (u32 i = 1; i < 8; i++)
		CHECK(run_nth(i).due >= run_nth(i - 1).due + 20 * (s64)MS);
	sched_close(s);
}

/*
 * Have 400 tasks of few ticks run, and return whether that was in the order of their times. *@late
 * is set if the host stood still so long that one was due before all had been added.
 */
static bool runs_in_order(bool *late)
{
	static char names[200][4];
	struct twheel_sched *s = sched_new(0);
	const s64 ahead = 200 * (s64)MS;
	s64 when = (s64)now_ns(CLOCK_REALTIME) + ahead;
	bool ok = true;

	runs_forget();
	for (int i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "%03d", i);
		ADD(s, .arg = names[i], .when_ns = ahead);
	}
	*late = (s64)now_ns(CLOCK_REALTIME) >= when;
	CHECK_EQ(runs_drive(s, 200), 200);
	when = (s64)now_ns(CLOCK_REALTIME) + ahead;
	for (int i = 0; i < 200; i++)
		ADD(s, .arg = names[i], .when_ns = when + i / 2, .flags = TWHEEL_TASK_AT);
	*late |= (s64)now_ns(CLOCK_REALTIME) >= when;
	CHECK_EQ(runs_drive(s, 400), 400);
	sched_close(s);
	for (u32 i = 0; i < 400; i++)
		ok &= !strcmp(run_nth(i).arg, names[i % 200]);
	return ok;
}

/*
 * Tasks that are due at the same time run in the order in which they were added; others by time.
 * That may fail if the host stood still, see runs_in_order(), or if the wheel handed out a tick in
 * parts, which a busy host makes it do now and then. So one of ten tries must succeed; if the
 * scheduler did not sort what it reads, none would.
 */
static void order(void)
{
	bool late, ok = false;
	int tries = 0;

	while (!ok && tries < 10) {
		ok = runs_in_order(&late);
		tries += !late;
	}
	CHECK(ok);
}

/* Count how many run at once. */
static atomic_int inside, most, passed;

static void count_inside(void *arg, const struct twheel_task_info *task)
{
	int now = ++inside, was = most;

	(void)arg;
	(void)task;
	while (now > was && !atomic_compare_exchange_weak(&most, &was, now))
		;
	sleep_ms(8);
	inside--;
	passed++;
}

static void at_once(u32 flags)
{
	struct twheel_sched *s = sched_new(4);

	inside = 0;
	most = 0;
	passed = 0;
	ADD(s, .fn = count_inside, .period_ns = MS, .flags = flags);
	while (passed < 20)
		sleep_ms(5);
	sched_close(s);
	CHECK_EQ(inside, 0);
}

static void never_twice(void)
{
	at_once(0);
	CHECK_EQ(most, 1);
	at_once(TWHEEL_MISSED_SKIP);
	CHECK_EQ(most, 1);
	at_once(TWHEEL_TASK_DELAY);
	CHECK_EQ(most, 1);
}

/* All four threads must be in the function at the same time, or gate_crowd() gives up. */
static void overlap(void)
{
	struct twheel_sched *s = sched_new(4);

	gate_close();
	ADD(s, .fn = gate_pass, .period_ns = MS, .flags = TWHEEL_TASK_OVERLAP);
	CHECK(gate_crowd(4));
	gate_open();
	sched_close(s);
}

static void slow_one(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(1));
	for (int i = 0; i < 20; i++)
		ADD(s, .when_ns = i * MS);
	CHECK_EQ(runs_wait(20), 20);	/* while the slow task is still running */
	gate_open();
	sched_close(s);
}

/* All three threads of a pool can be busy at once. */
static void whole_pool(void)
{
	struct twheel_sched *s = sched_new(3);

	gate_close();
	for (int i = 0; i < 3; i++)
		ADD(s, .fn = gate_pass);
	CHECK(gate_crowd(3));
	gate_open();
	sched_close(s);
}

static void replaced(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t first, second;

	runs_forget();
	first = ADD(s, .arg = "first", .key = "k", .when_ns = HOUR, .release = run_release);
	second = ADD(s, .arg = "second", .key = "k", .when_ns = HOUR);
	CHECK_EQ(released(), 1);	/* at once, not later */
	CHECK_EQ(twheel_sched_pending(s), 1);
	CHECK_EQ(twheel_sched_find(s, "k", 0), second);
	CHECK_EQ(twheel_sched_cancel(s, first, 0), -ENOENT);
	CHECK_EQ(twheel_sched_mod(s, second, MS), 0);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(!strcmp(run_nth(0).arg, "second"));
	CHECK_EQ(twheel_sched_find(s, "k", 0), 0);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 1);
	sched_close(s);
}

/* Keys are bytes, and may contain NUL. */
static void binary_keys(void)
{
	struct twheel_sched *s = sched_new(0);
	u32 one = 1, two = 2;
	uint64_t a, b, c;

	a = ADD(s, .key = &one, .key_len = 4, .when_ns = HOUR);
	b = ADD(s, .key = &two, .key_len = 4, .when_ns = HOUR);
	c = ADD(s, .key = "", .when_ns = HOUR);
	CHECK_EQ(twheel_sched_find(s, &one, 4), a);
	CHECK_EQ(twheel_sched_find(s, &two, 4), b);
	CHECK_EQ(twheel_sched_find(s, &two, 3), 0);
	/* A task without a key is not found by any key. */
	CHECK_EQ(twheel_sched_find(s, NULL, 0), 0);
	CHECK_EQ(twheel_sched_find(s, NULL, 4), 0);
	CHECK_EQ(twheel_sched_find(s, "", 0), c);
	CHECK_EQ(twheel_sched_pending(s), 3);
	sched_close(s);
}

/* Keys may have up to 65535 bytes, strings too. */
static void long_keys(void)
{
	static char key[65537];
	struct twheel_task task = { .fn = run_note, .key = key, .when_ns = HOUR };
	struct twheel_sched *s = sched_new(0);
	uint64_t id = 0;

	memset(key, 'k', sizeof(key) - 1);
	CHECK_EQ(twheel_sched_add(s, &task, &id), -EINVAL);
	CHECK_EQ(twheel_sched_find(s, key, 0), 0);
	CHECK_EQ(twheel_sched_find(s, key, 65536), 0);
	CHECK_EQ(twheel_sched_pending(s), 0);
	CHECK_EQ(twheel_sched_add(s, &(struct twheel_task) {
		.fn = run_note, .key = key, .key_len = 65535, .when_ns = HOUR }, &id), 0);
	key[65535] = 0;
	CHECK_EQ(twheel_sched_find(s, key, 0), id);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), 0);	/* replaces it: equal keys */
	CHECK_EQ(twheel_sched_pending(s), 1);
	sched_close(s);
}

static void cap(void)
{
	struct twheel_sched_options o = { .max_pending = 2, .clockid = CLOCK_MONOTONIC };
	struct twheel_task task = { .fn = run_note, .when_ns = HOUR };
	struct twheel_sched *s;
	uint64_t id;

	runs_forget();
	CHECK_EQ(twheel_sched_open(&s, &o), 0);
	ADD(s, .key = "k", .when_ns = HOUR);
	id = sched_add(s, task);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EDQUOT);
	/* A task that replaces another one does not count towards the limit. */
	ADD(s, .key = "k", .when_ns = 1);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), 0);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EDQUOT);
	runs_drive(s, 1);
	CHECK_EQ(twheel_sched_pending(s), 1);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), 0);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EDQUOT);
	sched_close(s);
}

static void listing(void)
{
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;
	uint64_t ids[3];

	CHECK_EQ(twheel_sched_list(s, &list), 0);
	free(list);
	ids[0] = ADD(s, .when_ns = 3 * HOUR, .arg = "a", .key = "key");
	ids[1] = ADD(s, .when_ns = HOUR, .period_ns = SEC);
	ids[2] = ADD(s, .when_ns = 2 * HOUR, .arg = "c", .key = "\0\1", .key_len = 2);
	CHECK_EQ(twheel_sched_list(s, &list), 3);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(list[i].id, ids[i]);
		CHECK(list[i].sched == s && list[i].fn == run_note);
		CHECK_EQ(list[i].state, TWHEEL_TASK_WAITING);
		CHECK_EQ(list[i].runs, 0);
	}
	twheel_sched_cancel(s, ids[0], 0);
	CHECK(!strcmp(list[0].key, "key") && list[0].key_len == 3);	/* a copy */
	CHECK(!list[1].key && list[1].period_ns == SEC);
	CHECK(list[2].key_len == 2 && !memcmp(list[2].key, "\0\1", 2));
	CHECK(list[0].due_ns > list[2].due_ns && list[2].due_ns > list[1].due_ns);
	free(list);
	CHECK_EQ(twheel_sched_list(s, &list), 2);
	free(list);
	sched_close(s);
}

/* Add, replace and cancel tasks while others are being listed. */
static atomic_bool listing_over;

static void *churn_keys(void *arg)
{
	u64 seed = 5;

	while (!listing_over) {
		u32 key = rnd(&seed) % 3000 + 100000;
		uint64_t id = ADD(arg, .key = &key, .key_len = sizeof(key), .when_ns = HOUR);

		if (rnd(&seed) % 2)
			twheel_sched_cancel(arg, id, 0);
	}
	return NULL;
}

/*
 * The tasks that have an arg exist all the time: each must be listed once, in the order of adding.
 */
static void check_list(struct twheel_sched *s, const uint64_t *ids, u32 nr)
{
	struct twheel_task_info *list;
	int n = twheel_sched_list(s, &list);
	u32 seen = 0;

	CHECK(n >= (int)nr);
	for (int i = 0; i < n && seen < nr; i++) {
		if (!list[i].arg)
			continue;
		CHECK_EQ(list[i].id, ids[seen]);
		CHECK(!memcmp(list[i].key, &seen, sizeof(seen)));
		seen++;
	}
	CHECK_EQ(seen, nr);
	free(list);
}

static void lists_in_motion(void)
{
	enum { N = 3000 };
	static uint64_t ids[N];
	struct twheel_sched *s = sched_new(0);
	pthread_t thread;

	listing_over = false;
	pthread_create(&thread, NULL, churn_keys, s);
	for (u32 i = 0; i < N; i++) {
		ids[i] = ADD(s, .key = &i, .key_len = sizeof(i), .when_ns = HOUR, .arg = ids);
		if (i % 16 == 0)
			sched_yield();
	}
	for (int i = 0; i < 30 && !failed(); i++)
		check_list(s, ids, N);
	listing_over = true;
	pthread_join(thread, NULL);
	sched_close(s);
}

/* Keys of all lengths, and more of them than fit into a chunk. */
static void lists_long_keys(void)
{
	enum { N = 40 };
	static char key[65535];
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;

	for (u32 i = 0; i < N; i++) {
		memset(key, (int)i, sizeof(key));
		ADD(s, .key = key, .key_len = sizeof(key) - i * 1600, .when_ns = HOUR);
	}
	CHECK_EQ(twheel_sched_list(s, &list), N);
	for (u32 i = 0; i < N; i++) {
		memset(key, (int)i, sizeof(key));
		CHECK_EQ(list[i].key_len, sizeof(key) - i * 1600);
		CHECK(!memcmp(list[i].key, key, list[i].key_len));
		CHECK(!((const char *)list[i].key)[list[i].key_len]);
	}
	free(list);
	sched_close(s);
}

static void cancelled(void)
{
	struct twheel_sched *s = sched_new(1);
	uint64_t id;

	runs_forget();
	id = ADD(s, .when_ns = HOUR, .release = run_release);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 0);
	CHECK_EQ(released(), 1);	/* at once, not later */
	CHECK_EQ(twheel_sched_cancel(s, id, 0), -ENOENT);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	id = ADD(s, .period_ns = 2 * MS, .release = run_release);
	runs_wait(3);
	CHECK_EQ(twheel_sched_cancel(s, id, TWHEEL_SCHED_WAIT), 0);
	id = runs_count();
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), id);
	CHECK_EQ(released(), 2);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
}

static pid_t canceller;

static void *open_gate_later(void *arg)
{
	wait_asleep(canceller);
	*(atomic_bool *)arg = true;
	gate_open();
	return NULL;
}

/* The wait includes release(). */
static void release_slowly(void *arg)
{
	sleep_ms(30);
	run_release(arg);
}

static void cancel_running(void)
{
	struct twheel_sched *s = sched_new(1);
	atomic_bool opened = false;
	pthread_t thread;
	uint64_t id;

	runs_forget();
	gate_close();
	id = ADD(s, .fn = gate_pass, .period_ns = MS, .release = release_slowly);
	CHECK(gate_crowd(1));
	CHECK_EQ(twheel_sched_cancel(s, id, 0), 1);
	CHECK_EQ(twheel_sched_pending(s), 0);
	CHECK_EQ(released(), 0);	/* the function still uses its arg */
	CHECK_EQ(twheel_sched_mod(s, id, 0), -ENOENT);
	canceller = gettid();
	pthread_create(&thread, NULL, open_gate_later, &opened);
	CHECK_EQ(twheel_sched_cancel(s, id, TWHEEL_SCHED_WAIT), 0);
	CHECK(opened);
	CHECK_EQ(released(), 1);
	pthread_join(thread, NULL);
	CHECK_EQ(twheel_sched_cancel(s, id, 0), -ENOENT);
	sched_close(s);
}

static int deadlocks[3];

static void cancel_itself(void *arg, const struct twheel_task_info *task)
{
	deadlocks[0] = twheel_sched_cancel(task->sched, task->id, TWHEEL_SCHED_WAIT);
	deadlocks[1] = twheel_sched_stop(task->sched, TWHEEL_SCHED_WAIT, NULL);
	deadlocks[2] = twheel_sched_close(task->sched);
	CHECK_EQ(twheel_sched_cancel(task->sched, task->id, 0), 1);
	run_note(arg, task);
}

static void from_inside(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = cancel_itself, .period_ns = MS);
	runs_wait(1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(deadlocks[i], -EDEADLK);
	sleep_ms(QUIET_MS);
	CHECK_EQ(runs_count(), 1);
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
}

static void moved(void)
{
	struct twheel_sched *s = sched_new(0);
	uint64_t a = ADD(s, .arg = "a", .when_ns = HOUR);
	uint64_t b = ADD(s, .arg = "b", .when_ns = 5 * MS);

	runs_forget();
	CHECK_EQ(twheel_sched_mod(s, a, 10 * MS), 0);
	CHECK_EQ(twheel_sched_mod(s, b, HOUR), 0);
	CHECK_EQ(runs_drive(s, 1), 1);
	CHECK_EQ(run_nth(0).id, a);
	CHECK_EQ(twheel_sched_mod(s, a, 0), -ENOENT);
	CHECK_EQ(twheel_sched_run(s, 0, QUIET_MS), 0);
	/* A task that is due, and queued behind another one, can still be moved. */
	CHECK_EQ(twheel_sched_mod(s, b, 0), 0);
	a = ADD(s, .arg = "a");
	sleep_ms(20);
	CHECK_EQ(twheel_sched_run(s, 1, WAIT_MS), 1);
	CHECK_EQ(twheel_sched_pending(s), 1);
	CHECK_EQ(twheel_sched_mod(s, run_nth(1).id == a ? b : a, HOUR), 0);
	CHECK_EQ(twheel_sched_run(s, 0, QUIET_MS), 0);
	CHECK_EQ(runs_count(), 2);
	sched_close(s);
}

static int moved_from_inside[2];

static void move_itself(void *arg, const struct twheel_task_info *task)
{
	int rc;

	run_note(arg, task);
	rc = twheel_sched_mod(task->sched, task->id, task->runs * 10 * MS);
	if (task->runs <= 2)
		moved_from_inside[task->runs - 1] = rc;
}

/* A task that decides itself when it runs again, by twheel_sched_mod(), which needs a period. */
static void self_moving(u32 flags)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = move_itself, .period_ns = HOUR, .flags = flags);
	runs_wait(3);
	CHECK(run_nth(1).due >= run_nth(0).start + 10 * (s64)MS);
	CHECK(run_nth(2).due >= run_nth(1).start + 20 * (s64)MS);
	sched_close(s);
	CHECK_EQ(moved_from_inside[0], 0);
	CHECK_EQ(moved_from_inside[1], 0);
}

static void moves_itself(void)
{
	struct twheel_sched *s;

	self_moving(0);
	self_moving(TWHEEL_TASK_DELAY);
	self_moving(TWHEEL_TASK_OVERLAP);
	runs_forget();
	s = sched_new(1);
	ADD(s, .fn = move_itself);
	runs_wait(1);
	sched_close(s);
	CHECK_EQ(moved_from_inside[0], -EALREADY);
}

static void stop_hands_back(void)
{
	struct twheel_sched *s = sched_new(1);
	struct twheel_task task = { .fn = run_note };
	struct twheel_task_info *list = NULL;

	runs_forget();
	gate_close();
	ADD(s, .fn = gate_pass, .release = run_release, .period_ns = HOUR);
	CHECK(gate_crowd(1));
	ADD(s, .arg = "due", .release = run_release);
	ADD(s, .arg = "far", .when_ns = HOUR, .key = "k", .release = run_release);
	ADD(s, .arg = "often", .period_ns = HOUR, .when_ns = HOUR);
	sleep_ms(20);
	CHECK_EQ(twheel_sched_stop(s, 0, &list), 3);	/* does not wait for the one that runs */
	CHECK(list && !strcmp(list[0].arg, "due") && !strcmp(list[1].arg, "far"));
	CHECK(list && !strcmp(list[1].key, "k") && list[2].period_ns == (s64)HOUR);
	free(list);
	CHECK_EQ(released(), 0);	/* their args are the caller's now, and one still runs */
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	CHECK_EQ(twheel_sched_pending(s), 0);
	CHECK_EQ(twheel_sched_stop(s, 0, &list), 0);
	free(list);
	gate_open();
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 0);
	CHECK_EQ(runs_count(), 0);
	sched_close(s);
	CHECK_EQ(released(), 1);
}

static void stop_waits(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	inside = 0;
	for (int i = 0; i < 2; i++)
		ADD(s, .fn = count_inside, .period_ns = MS);
	while (!inside)
		sleep_ms(1);
	ADD(s, .when_ns = HOUR, .release = run_release);
	CHECK(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL) >= 1);
	CHECK_EQ(inside, 0);
	CHECK_EQ(released(), 1);
	sched_close(s);
}

static void stop_without_pool(void)
{
	struct twheel_sched *s = sched_new(0);

	ADD(s, .when_ns = HOUR);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), 1);
	CHECK(readable(twheel_sched_fd(s), 0));	/* a poller must notice */
	CHECK_EQ(twheel_sched_run(s, 0, -1), -ESHUTDOWN);
	sched_close(s);
}

static void *cancel_soon(void *arg)
{
	sleep_ms(30);
	CHECK_EQ(twheel_sched_cancel(arg, twheel_sched_find(arg, "k", 0), 0), 0);
	return NULL;
}

/* If another thread ends the last pending task, that ends a wait for it. */
static void finish_by_cancel(void)
{
	struct twheel_sched *s = sched_new(1);
	pthread_t thread;

	ADD(s, .when_ns = HOUR, .key = "k");
	pthread_create(&thread, NULL, cancel_soon, s);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_FINISH | TWHEEL_SCHED_WAIT, NULL), 0);
	pthread_join(thread, NULL);
	sched_close(s);
}

static void finish_without_pool(void)
{
	const u32 both = TWHEEL_SCHED_FINISH | TWHEEL_SCHED_WAIT;
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	ADD(s, .when_ns = 20 * MS);
	ADD(s, .when_ns = 10 * MS, .period_ns = 10 * MS);
	CHECK_EQ(twheel_sched_stop(s, both, NULL), -EDEADLK);
	CHECK_EQ(twheel_sched_pending(s), 2);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_FINISH, NULL), 1);
	CHECK_EQ(runs_drive(s, 1), 1);
	CHECK(readable(twheel_sched_fd(s), 0));
	CHECK_EQ(twheel_sched_run(s, 0, -1), -ESHUTDOWN);
	CHECK_EQ(runs_count(), 1);
	CHECK_EQ(twheel_sched_stop(s, 4, NULL), -EINVAL);
	CHECK_EQ(twheel_sched_cancel(s, 1, TWHEEL_SCHED_FINISH), -EINVAL);
	sched_close(s);
}

static void add_another(void *arg, const struct twheel_task_info *task)
{
	if (runs_count() < 50)
		ADD(task->sched, .fn = add_another);
	run_note(arg, task);
}

/* Four threads add, move and cancel tasks. For each task release() is called exactly once. */
static void *churn(void *arg)
{
	struct twheel_sched *s = arg;
	u64 seed = (u64)(uintptr_t)&seed | 1;

	for (int i = 0; i < 3000 && !failed(); i++) {
		char key[2] = { (char)('a' + rnd(&seed) % 20), 0 };
		uint64_t id = ADD(s, .key = rnd(&seed) % 2 ? key : NULL,
				  .release = run_release,
				  .when_ns = (s64)(rnd(&seed) % (5 * MS)),
				  .period_ns = rnd(&seed) % 2 ? MS : 0);

		if (rnd(&seed) % 4 == 0)
			twheel_sched_mod(s, id, (s64)(rnd(&seed) % (5 * MS)));
		if (rnd(&seed) % 4)
			twheel_sched_cancel(s, id, rnd(&seed) % 2 ? TWHEEL_SCHED_WAIT : 0);
	}
	return NULL;
}

static void storm(void)
{
	struct twheel_sched *s = sched_new(3);
	pthread_t threads[4];

	runs_forget();
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, s);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	sched_close(s);
	CHECK_EQ(released(), 4 * 3000);
}

static void chain(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	ADD(s, .fn = add_another);
	runs_wait(50);
	sched_close(s);
}

static void many(void)
{
	enum { N = 200000 };
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	for (u32 i = 0; i < N && !failed(); i++)
		ADD(s, .key = &i, .key_len = sizeof(i), .release = run_release,
		    .when_ns = HOUR);
	CHECK_EQ(twheel_sched_pending(s), N);
	for (u32 i = 0; i < N && !failed(); i++)
		CHECK_EQ(twheel_sched_cancel(s, twheel_sched_find(s, &i, sizeof(i)), 0), 0);
	CHECK_EQ(released(), N);
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ no_pool, "without a pool: one descriptor, and run() runs due tasks" },
		{ run_waits, "run() waits for its timeout" },
		{ runs_all, "run() runs all that is due" },
		{ options, "good options are accepted, bad ones refused" },
		{ bad_tasks, "bad tasks are EINVAL" },
		{ delays, "negative, far and huge delays saturate" },
		{ huge_period, "a huge period does not overflow" },
		{ rate, "fixed rate: each run is due a period after the last was" },
		{ delay, "fixed delay: each run is due a period after the last ended" },
		{ burst, "missed periods, burst: all are made up for" },
		{ skip, "missed periods, skip: skipped, phase kept" },
		{ missed_delay, "missed periods, delay: a period after the late run" },
		{ order, "tasks run in the order of times, then of adding" },
		{ never_twice, "a task never runs twice at once" },
		{ overlap, "a task with OVERLAP runs twice at once" },
		{ slow_one, "a slow function delays no other" },
		{ whole_pool, "every thread of the pool runs functions" },
		{ replaced, "a key replaces, and frees what it replaces" },
		{ binary_keys, "keys of any bytes" },
		{ long_keys, "keys that are too long" },
		{ cap, "the cap on pending tasks" },
		{ listing, "the list of what is pending" },
		{ lists_in_motion, "the list, while others add, replace and cancel" },
		{ lists_long_keys, "the list, with long keys" },
		{ cancelled, "a cancel frees at once" },
		{ cancel_running, "a cancel of a running task says so, or waits" },
		{ from_inside, "a function may not wait for itself, but cancel itself" },
		{ moved, "a task is given another time" },
		{ moves_itself, "a task gives itself another time" },
		{ stop_hands_back, "stop returns the tasks that did not run" },
		{ stop_waits, "stop waits with TWHEEL_SCHED_WAIT" },
		{ stop_without_pool, "stop without a pool" },
		{ finish_by_cancel, "stop with FINISH lets pending tasks run" },
		{ finish_without_pool, "stop with FINISH without a pool" },
		{ chain, "functions add tasks" },
		{ storm, "four threads add, move and cancel; each task is released once" },
		{ many, "200000 keyed tasks" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
