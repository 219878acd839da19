// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What the tests of libtwheel share: see lib.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

#define RUNS_MAX	4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static struct run runs[RUNS_MAX];
static u32 nr_runs, nr_released, nr_waiting;
static bool gate_is_open;

static void fatal(const char *what, int err)
{
	errno = -err;
	bail(what);
}

struct twheel *wheel_new(const struct twheel_setup *setup)
{
	struct twheel *w = NULL;
	int err = twheel_open(&w, 0, setup);

	if (err)
		fatal("twheel_open()", err);
	return w;
}

uint64_t wheel_add(struct twheel *w, u64 user_data, u64 delay)
{
	uint64_t handle = 0;

	CHECK_EQ(twheel_add(w, &handle, user_data, delay, 0, 0), 0);
	CHECK(handle);
	return handle;
}

int wheel_read(struct twheel *w, struct twheel_event *ev, u32 nr)
{
	int got = twheel_read(w, ev, nr, WAIT_MS);
	u64 now = now_ns(CLOCK_MONOTONIC);

	CHECK(got <= (int)nr);
	for (int i = 0; i < got; i++) {
		CHECK(ev[i].handle);
		CHECK(ev[i].count >= 1);
		CHECK(ev[i].expires_ns <= now);
		CHECK(!(ev[i].flags & ~TWHEEL_EV_MORE));
	}
	return got;
}

void wheel_quiet(struct twheel *w, int ms)
{
	struct twheel_event ev;

	CHECK_EQ(twheel_read(w, &ev, 1, ms), -EAGAIN);
}

void wheel_counts_are(const struct twheel_info *i, u32 timers, u32 armed, u32 ready)
{
	CHECK_EQ(i->abi, TWHEEL_ABI);
	CHECK_EQ(i->nr_timers, timers);
	CHECK_EQ(i->nr_armed, armed);
	CHECK_EQ(i->nr_ready, ready);
}

void wheel_counts(struct twheel *w, u32 timers, u32 armed, u32 ready)
{
	struct twheel_info i;

	memset(&i, POISON, sizeof(i));
	CHECK_EQ(twheel_get_info(w, &i), 0);
	wheel_counts_are(&i, timers, armed, ready);
}

struct twheel_sched *sched_new(u32 threads)
{
	struct twheel_sched_options options = { .threads = threads, .clockid = CLOCK_MONOTONIC };
	struct twheel_sched *s = NULL;
	int err = twheel_sched_open(&s, &options);

	if (err)
		fatal("twheel_sched_open()", err);
	return s;
}

uint64_t sched_add(struct twheel_sched *s, struct twheel_task task)
{
	uint64_t id = 0;

	if (!task.fn)
		task.fn = run_note;
	CHECK_EQ(twheel_sched_add(s, &task, &id), 0);
	CHECK(id);
	return id;
}

void sched_close(struct twheel_sched *s)
{
	CHECK_EQ(twheel_sched_close(s), 0);
}

/* Wait until @counter is at least @n, with the mutex held. */
static bool wait_for(const u32 *counter, u32 n)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_MS / 1000;
	while (*counter < n)
		if (pthread_cond_timedwait(&changed, &mutex, &end))
			return false;
	return true;
}

void runs_forget(void)
{
	pthread_mutex_lock(&mutex);
	nr_runs = 0;
	nr_released = 0;
	pthread_mutex_unlock(&mutex);
}

void run_note(void *arg, const struct twheel_task_info *task)
{
	clockid_t clock = task->flags & TWHEEL_TASK_AT ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	s64 now = (s64)now_ns(clock);

	CHECK(now >= task->due_ns);
	CHECK(task->arg == arg);
	pthread_mutex_lock(&mutex);
	if (nr_runs < RUNS_MAX)
		runs[nr_runs++] = (struct run) { .arg = arg, .id = task->id, .due = task->due_ns,
						 .start = now, .nth = task->runs,
						 .missed = task->missed };
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

u32 runs_wait(u32 n)
{
	pthread_mutex_lock(&mutex);
	CHECK(wait_for(&nr_runs, n));
	n = nr_runs;
	pthread_mutex_unlock(&mutex);
	return n;
}

void wait_asleep(pid_t thread)
{
	char path[64], state = 0;
	u32 times = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	for (u32 i = 0; i < WAIT_MS && times < 10; i++) {
		stat = fopen(path, "r");
		if (!CHECK(stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1))
			break;
		fclose(stat);
		times = state == 'S' ? times + 1 : 0;
		sleep_ms(1);
	}
}

u32 runs_drive(struct twheel_sched *s, u32 n)
{
	u64 end = now_ns(CLOCK_MONOTONIC) + WAIT_MS * MS;

	while (runs_count() < n && CHECK(now_ns(CLOCK_MONOTONIC) < end))
		CHECK(twheel_sched_run(s, 0, 100) >= 0);
	return runs_count();
}

u32 runs_count(void)
{
	u32 n;

	pthread_mutex_lock(&mutex);
	n = nr_runs;
	pthread_mutex_unlock(&mutex);
	return n;
}

struct run run_nth(u32 n)
{
	struct run run = { .arg = "" };

	pthread_mutex_lock(&mutex);
	if (CHECK(n < nr_runs))
		run = runs[n];
	pthread_mutex_unlock(&mutex);
	return run;
}

u32 released(void)
{
	u32 n;

	pthread_mutex_lock(&mutex);
	n = nr_released;
	pthread_mutex_unlock(&mutex);
	return n;
}

void run_release(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	nr_released++;
	pthread_mutex_unlock(&mutex);
}

void gate_close(void)
{
	pthread_mutex_lock(&mutex);
	gate_is_open = false;
	nr_waiting = 0;
	pthread_mutex_unlock(&mutex);
}

void gate_open(void)
{
	pthread_mutex_lock(&mutex);
	gate_is_open = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

void gate_pass(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	pthread_mutex_lock(&mutex);
	nr_waiting++;
	pthread_cond_broadcast(&changed);
	while (!gate_is_open)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

bool gate_crowd(u32 n)
{
	bool there;

	pthread_mutex_lock(&mutex);
	there = wait_for(&nr_waiting, n);
	pthread_mutex_unlock(&mutex);
	return there;
}
