// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Files are opened and closed while SCHED_FIFO tasks keep all CPUs but one busy, in turn, and CPU 1
 * goes offline and online. So on PREEMPT_RT bases change CPUs all the time, even while their files
 * are being closed. Each timer must give one event, and not early.
 *
 *	test_hogstorm [SECONDS]		for each test, by default 2
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TIMERS	64
#define WORKERS	8
#define TASKS	64
#define ONLINE	"/sys/devices/system/cpu/cpu1/online"

static unsigned int seconds = 2;
static int nr_cpus;
static bool over;
static u64 events, closed, worst, worst_close;

static bool is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

/*
 * Each thread counts for itself. If two share a counter, some counts are lost, which does no harm.
 */
static void count(u64 *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void most(u64 *what, u64 value)
{
	if (value > *what)
		*what = value;
}

/*
 * Move this task to a CPU, or to all if @cpu is nr_cpus. If that CPU is off, the task stays where
 * it is.
 */
static void try_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < nr_cpus; i++)
		if (cpu == i || cpu == nr_cpus)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *hog(void *arg)
{
	int cpu = (int)(intptr_t)arg;
	u64 seed = (u64)cpu * 77 + 5, end;

	while (!is_over()) {
		be_fifo(0);
		try_pin(cpu);
		be_fifo(2 + (int)(rnd(&seed) % 80));
		end = now_ns(CLOCK_MONOTONIC) + (1 + rnd(&seed) % 40) * MS;
		while (now_ns(CLOCK_MONOTONIC) < end && !is_over())
			;
		sleep_ms(1 + (unsigned int)(rnd(&seed) % 15));
	}
	return NULL;
}

/* ---- who uses files ------------------------------------------------------------------- */

/**
 * struct use - what a user of a file knows of it
 * @fd:		the file
 * @clock:	its clock
 * @nr:		how many timers were added
 * @due:	when each is due, and 0 once its event has come
 */
struct use {
	int		fd;
	clockid_t	clock;
	u32		nr;
	u64		due[TIMERS];
};

static void take(struct use *u, const struct twheel_event *ev, u64 time)
{
	u64 *due = &u->due[ev->user_data % TIMERS];

	if (!CHECK(ev->user_data < u->nr) || !CHECK(*due) || !CHECK(time >= *due))
		return;
	most(&worst, time - *due);
	*due = 0;
	count(&events);
}

static void collect(struct use *u)
{
	struct twheel_event ev[16];
	u32 got = 0;
	u64 time;
	int nr;

	while (got < u->nr) {
		if (!CHECK(readable(u->fd, WAIT_MS))) {
			diag("%u of %u events came, clock %d", got, u->nr, u->clock);
			return;
		}
		nr = read_events(u->fd, ev, ARRAY_SIZE(ev));
		if (!CHECK(nr > 0))
			return;
		time = now_ns(u->clock);
		for (int i = 0; i < nr; i++)
			take(u, &ev[i], time);
		got += (u32)nr;
	}
	CHECK(!readable(u->fd, 0));
}

static void fill(struct use *u, u64 *seed)
{
	for (u32 i = 0; i < u->nr; i++) {
		u->due[i] = now_ns(u->clock) + rnd(seed) % (20 * MS);
		add_with(u->fd, TWHEEL_F_ABS, u->due[i], 0, i);
		if (rnd(seed) % 8 == 0)
			try_pin((int)(rnd(seed) % (u64)(nr_cpus + 1)));
	}
}

static void end_use(struct use *u)
{
	u64 began = now_ns(CLOCK_MONOTONIC);

	close(u->fd);
	most(&worst_close, now_ns(CLOCK_MONOTONIC) - began);
	count(&closed);
}

static void use(u64 *seed)
{
	struct use u = {
		.fd = dev_open(O_NONBLOCK),
		.clock = rnd(seed) % 2 ? CLOCK_MONOTONIC : CLOCK_BOOTTIME,
		.nr = 1 + (u32)(rnd(seed) % TIMERS),
	};
	const struct twheel_setup s = { .clockid = u.clock, .slack_ns = rnd(seed) % 3 * MS / 2 };
	u64 how = rnd(seed) % 3;

	be_fifo(0);
	try_pin((int)(rnd(seed) % (u64)(nr_cpus + 1)));
	be_fifo(rnd(seed) % 2 ? (int)(rnd(seed) % 90) : 0);
	CHECK_EQ(setup(u.fd, &s), 0);
	fill(&u, seed);
	if (how == 0)
		sleep_until(now_ns(CLOCK_MONOTONIC) + rnd(seed) % (5 * MS));
	else if (how == 1)
		collect(&u);
	end_use(&u);
}

static void *worker(void *arg)
{
	u64 seed = (u64)(intptr_t)arg * 1234567;

	while (!is_over() && !failed())
		use(&seed);
	return NULL;
}

/* ---- CPU 1 goes off and on --------------------------------------------------------------- */

static void *plug(void *unused)
{
	while (!is_over()) {
		file_set(ONLINE, "0");
		sleep_ms(200);
		file_set(ONLINE, "1");
		sleep_ms(300);
	}
	return unused;
}

static void play(bool plugs)
{
	pthread_t threads[TASKS];
	int nr = 0;

	over = false;
	events = 0;
	closed = 0;
	worst = 0;
	worst_close = 0;
	for (int cpu = 1; cpu < nr_cpus && nr < TASKS - WORKERS - 1; cpu++)
		threads[nr++] = start_thread(hog, (void *)(intptr_t)cpu);
	for (int i = 1; i <= WORKERS; i++)
		threads[nr++] = start_thread(worker, (void *)(intptr_t)i);
	if (plugs)
		threads[nr++] = start_thread(plug, NULL);
	sleep_ms(seconds * 1000);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	while (nr)
		pthread_join(threads[--nr], NULL);
	diag("%llu events of %llu files, %llu us late at most; close() took %llu us at most",
	     events, closed, worst / 1000, worst_close / 1000);
	CHECK(events);
}

static void hogs(void)
{
	play(false);
}

static void hogs_and_plug(void)
{
	play(!access(ONLINE, W_OK));
}

static const struct test tests[] = {
	{ hogs, "files are opened and closed beside hogs" },
	{ hogs_and_plug, "files are opened and closed while a CPU goes off and on" },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = (unsigned int)atoi(argv[1]);
	nr_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	return run_tests(tests, ARRAY_SIZE(tests));
}
