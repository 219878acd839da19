// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * How long does one call of the scheduler take at worst, and how long does it hold up others?
 *
 *	sched SUBJECT N REPS
 *
 * The program adds, finds, moves and cancels N tasks with keys one by one. It times each call by
 * the CPU time of its thread, so that other programs on the machine do not count. In
 * between it lists the tasks, and times each chunk, from taking the lock until
 * releasing it. To see these two calls, the linker redirects them to this file (--wrap).
 *
 * The kernel may interrupt a call, and its work then counts as the call's. That does not hit
 * the same call in each repetition, but the work of the scheduler itself is the same in each. So
 * for each call the program takes the least time of all repetitions, and the worst of these is
 * reported.
 *
 * Then it lists the tasks again while another thread repeatedly adds and cancels a task: the time
 * of those calls shows how long the list makes others wait. This is real time, so both threads
 * have a real-time priority meanwhile, if that is allowed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "libtwheel-sched.h"
#include "median.h"
#include "wrap.h"

#define HOUR	3600000000000LL

static const char *subject;
static struct load load = { .name = "sched" };
static struct twheel_sched *sched;
static uint64_t *ids;

enum { ADD, FIND, MOD, CANCEL, CHUNK, CALLS };

static const char *const call_names[CALLS] = { "add", "find", "mod", "cancel", "list-chunk" };

/* The time of each call in the first repetition, and the shortest time of it so far, in ns. */
static u64 *first[CALLS], *least[CALLS];
static u32 nr[CALLS];

static void must_be(bool right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

static void nothing(void *arg, const struct twheel_task_info *task)
{
}

static uint64_t add(u32 i)
{
	const struct twheel_task task = {
		.fn = nothing, .when_ns = HOUR + i, .key = &i, .key_len = sizeof(i),
	};
	uint64_t id = 0;

	must_be(!twheel_sched_add(sched, &task, &id), "twheel_sched_add()");
	return id;
}

static void call(unsigned int which, u32 i)
{
	switch (which) {
	case ADD:
		ids[i] = add(i);
		break;
	case FIND:
		must_be(twheel_sched_find(sched, &i, sizeof(i)) == ids[i],
			"twheel_sched_find()");
		break;
	case MOD:
		must_be(!twheel_sched_mod(sched, ids[i], 2 * HOUR), "twheel_sched_mod()");
		break;
	case CANCEL:
		must_be(!twheel_sched_cancel(sched, ids[i], 0), "twheel_sched_cancel()");
		break;
	}
}

static void took(unsigned int which, u32 i, u64 ns, bool again)
{
	if (i >= load.n)
		return;
	if (!again)
		first[which][i] = ns;
	if (!again || ns < least[which][i])
		least[which][i] = ns;
	if (i >= nr[which])
		nr[which] = i + 1;
}

static void calls(unsigned int which, bool again)
{
	u64 start = cpu_ns();

	for (u32 i = 0; i < load.n; i++) {
		u64 end;

		call(which, i);
		end = cpu_ns();
		took(which, i, end - start, again);
		start = end;
	}
}

/* The chunks of a list that is made while no other thread works. */
static bool in_list, in_list_again;
static u32 nr_holds;
static u64 held_since;

static int locked(int rc)
{
	if (in_list && !rc)
		held_since = cpu_ns();
	return rc;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return locked(__real_pthread_mutex_lock(mutex));
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return locked(__real_pthread_mutex_trylock(mutex));
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (in_list)
		took(CHUNK, nr_holds++, cpu_ns() - held_since, in_list_again);
	return __real_pthread_mutex_unlock(mutex);
}

/* The second thread works while the list is made. */
static bool listing;
static u64 waits[1 << 20];
static u32 nr_waits;

static void *bystander(void *arg)
{
	const u32 key = ~0U;

	nr_waits = 0;
	while (__atomic_load_n(&listing, __ATOMIC_ACQUIRE)) {
		u64 start = nanoseconds(CLOCK_MONOTONIC);

		must_be(!twheel_sched_cancel(sched, add(key), 0), "twheel_sched_cancel()");
		if (nr_waits < ARRAY_SIZE(waits))
			waits[nr_waits++] = nanoseconds(CLOCK_MONOTONIC) - start;
	}
	return NULL;
}

static void prefer(bool on)
{
	const struct sched_param priority = { .sched_priority = on };

	pthread_setschedparam(pthread_self(), on ? SCHED_FIFO : SCHED_OTHER, &priority);
}

/* Make the list. Returns how long it took. */
static u64 list(void)
{
	struct twheel_task_info *tasks;
	u64 start = nanoseconds(CLOCK_MONOTONIC);
	int n = twheel_sched_list(sched, &tasks);

	start = nanoseconds(CLOCK_MONOTONIC) - start;
	must_be(n >= (int)load.n && tasks[1].id == ids[1], "twheel_sched_list()");
	free(tasks);
	return start;
}

static u64 list_alone(bool again)
{
	u64 ns;

	in_list_again = again;
	nr_holds = 0;
	in_list = true;
	ns = list();
	in_list = false;
	return ns;
}

/* Make the list. Returns how long the second thread had to wait at most. */
static u64 list_watched(void)
{
	pthread_t thread;
	u64 worst = 0;

	listing = true;
	prefer(true);
	pthread_create(&thread, NULL, bystander, NULL);
	list();
	__atomic_store_n(&listing, false, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	prefer(false);
	for (u32 i = 0; i < nr_waits; i++)
		worst = waits[i] > worst ? waits[i] : worst;
	return worst;
}

static void report(const char *what, const char *metric, double us)
{
	char name[32];

	snprintf(name, sizeof(name), "%s %s", what, metric);
	tsv(&load, subject, name, "us", us);
}

/* Print how the times of a call are distributed. Sorts them. */
static void spread(unsigned int which)
{
	const char *what = call_names[which];
	u32 n = nr[which];
	double mid = (double)median(least[which], n) / 1e3;

	report(what, "median", mid);
	report(what, "p99.9", (double)least[which][n - 1 - n / 1000] / 1e3);
	report(what, "worst", (double)least[which][n - 1] / 1e3);
	median(first[which], n);
	report(what, "worst of one run", (double)first[which][n - 1] / 1e3);
}

#define REPS_MAX 21

static u64 listed[REPS_MAX], waited[REPS_MAX];

static void repetition(u32 rep)
{
	must_be(!twheel_sched_open(&sched, &(struct twheel_sched_options) {
		.flags = TWHEEL_EMBEDDED }), "twheel_sched_open()");
	for (unsigned int which = 0; which < CHUNK; which++) {
		calls(which, rep);
		if (which == FIND) {
			listed[rep] = list_alone(rep);
			waited[rep] = list_watched();
		}
	}
	must_be(!twheel_sched_pending(sched), "twheel_sched_pending()");
	must_be(!twheel_sched_close(sched), "twheel_sched_close()");
}

int main(int argc, char **argv)
{
	u32 reps;

	if (argc != 4)
		return 2;
	subject = argv[1];
	load.n = (u32)atoi(argv[2]);
	reps = (u32)atoi(argv[3]);
	must_be(load.n && reps && reps <= REPS_MAX, "N or REPS");
	ids = pages(load.n * sizeof(*ids));
	for (unsigned int i = 0; i < CALLS; i++) {
		first[i] = pages(load.n * sizeof(u64));
		least[i] = pages(load.n * sizeof(u64));
	}
	for (u32 rep = 0; rep < reps; rep++)
		repetition(rep);
	for (unsigned int i = 0; i < CALLS; i++)
		spread(i);
	report("list", "median", (double)median(listed, reps) / 1e3);
	report("wait", "median", (double)median(waited, reps) / 1e3);
	report("wait", "least", (double)waited[0] / 1e3);
	report("wait", "most", (double)waited[reps - 1] / 1e3);
	return 0;
}
