// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * In a child after fork(), calls on the parent's wheel are refused, whatever the parent was doing,
 * and do no harm.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static atomic_bool over;

/* Run @fn in a child. The child prints failed CHECKs, and reports them by its exit status. */
static void in_child(void (*fn)(void *arg), void *arg)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(20);
		fn(arg);
		fflush(stdout);
		_exit(failed());
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void wheel_refused(void *arg)
{
	struct twheel *w = arg, *own;
	struct twheel_event ev;
	struct twheel_levels levels;
	struct twheel_info info;
	struct twheel_op op = { .op = TWHEEL_OP_ADD };
	uint64_t handle = 1ULL << 32;

	CHECK_EQ(twheel_add(w, &handle, 1, 0, 0, 0), -ECHILD);
	CHECK_EQ(twheel_mod(w, handle, 0, 0, 0), -ECHILD);
	CHECK_EQ(twheel_cancel(w, handle, NULL), -ECHILD);
	CHECK_EQ(twheel_submit(w, &op, 1), -ECHILD);
	CHECK_EQ(twheel_read(w, &ev, 1, -1), -ECHILD);
	CHECK_EQ(twheel_query(w, handle, 0, &op), -ECHILD);
	CHECK_EQ(twheel_drain(w, &op, 1, 0), -ECHILD);
	CHECK_EQ(twheel_get_info(w, &info), -ECHILD);
	CHECK_EQ(twheel_get_levels(w, &levels), -ECHILD);
	twheel_close(w);
	/* A wheel that the child opens itself works. */
	own = wheel_new(NULL);
	wheel_add(own, 5, MS);
	CHECK_EQ(wheel_read(own, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 5);
	twheel_close(own);
}

/* If the child has a wheel of its own, that must not make the parent's usable. */
static void still_refused(void *arg)
{
	struct twheel *own = wheel_new(NULL);
	uint64_t handle;

	wheel_add(own, 5, HOUR);
	CHECK_EQ(twheel_add(arg, &handle, 1, 0, 0, 0), -ECHILD);
	CHECK_EQ(twheel_cancel(arg, 1ULL << 32, NULL), -ECHILD);
	twheel_close(own);
}

static void grandchild(void *arg)
{
	struct twheel *own = wheel_new(NULL);

	in_child(wheel_refused, arg);
	in_child(wheel_refused, own);
	in_child(still_refused, own);
	wheel_counts(own, 0, 0, 0);
}

static void wheels(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	uint64_t handle;

	wheel_add(w, 1, 30 * MS);
	CHECK_EQ(twheel_add(w, &handle, 2, 40 * MS, 0, TWHEEL_F_KEEP), 0);
	in_child(wheel_refused, w);
	in_child(still_refused, w);
	in_child(grandchild, w);
	wheel_add(w, 3, MS);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(twheel_cancel(w, handle, NULL), 0);
	twheel_close(w);
}

static void sched_refused(void *arg)
{
	struct twheel_task task = { .fn = run_note };
	struct twheel_task_info *list;
	struct twheel_sched *s = arg;
	uint64_t id;

	CHECK_EQ(twheel_sched_add(s, &task, &id), -ECHILD);
	CHECK_EQ(twheel_sched_mod(s, 1, 0), -ECHILD);
	CHECK_EQ(twheel_sched_cancel(s, 1, 0), -ECHILD);
	CHECK_EQ(twheel_sched_run(s, 0, -1), -ECHILD);
	CHECK_EQ(twheel_sched_list(s, &list), -ECHILD);
	CHECK_EQ(twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL), -ECHILD);
	CHECK_EQ(twheel_sched_find(s, "key", 0), 0);
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
	s = sched_new(1);
	runs_forget();
	ADD(s, .arg = "own");
	runs_wait(1);
	sched_close(s);
}

static void scheds(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	ADD(s, .arg = "once", .when_ns = 50 * MS, .key = "key");
	in_child(sched_refused, s);
	CHECK_EQ(runs_wait(1), 1);
	ADD(s, .arg = "after");
	CHECK_EQ(runs_wait(2), 2);
	sched_close(s);
}

static void fork_in_task(void *arg, const struct twheel_task_info *task)
{
	in_child(sched_refused, task->sched);
	run_note(arg, task);
}

static void from_a_task(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	ADD(s, .fn = fork_in_task);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void *hammer(void *arg)
{
	struct twheel *w = arg;
	struct twheel_event ev;

	while (!over) {
		uint64_t handle = wheel_add(w, 1, MS);

		twheel_cancel(w, handle, NULL);
		twheel_read(w, &ev, 1, 0);
	}
	return NULL;
}

/* A wheel whose lock is probably held by a thread that the child does not have. */
static void busy_parent(void)
{
	struct twheel *w = wheel_new(NULL);
	pthread_t thread;

	over = false;
	pthread_create(&thread, NULL, hammer, w);
	for (int i = 0; i < 20; i++)
		in_child(wheel_refused, w);
	over = true;
	pthread_join(thread, NULL);
	twheel_close(w);
}

static void *hammer_sched(void *arg)
{
	struct twheel_sched *s = arg;

	while (!over)
		CHECK_EQ(twheel_sched_cancel(s, ADD(s, .when_ns = HOUR), 0), 0);
	return NULL;
}

/* The same for a scheduler's lock. */
static void busy_sched(void)
{
	struct twheel_sched *s = sched_new(1);
	pthread_t threads[2];

	over = false;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, hammer_sched, s);
	for (int i = 0; i < 20 && !failed(); i++)
		in_child(sched_refused, s);
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	sched_close(s);
}

int main(void)
{
	static const struct test tests[] = {
		{ wheels, "a wheel: the child is refused, the parent's timers fire" },
		{ scheds, "a scheduler: the child is refused, the parent's pool works" },
		{ from_a_task, "fork() in a task's function" },
		{ busy_parent, "fork() while another thread holds the lock" },
		{ busy_sched, "fork() while another thread holds a scheduler's lock" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
