// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * make try: a tour of libtwheel in some four seconds, without a module, over the embedded
 * backend. It checks what it shows: the exit status is 0 only if no timer was early,
 * none was lost and none came twice.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libtwheel.h"
#include "libtwheel-sched.h"

#define TIMERS	200000U
#define BATCH	256U
#define SPREAD	2000000000ULL	/* they fire within two seconds */
#define MSEC	1000000ULL

/* The clock that the wheels here use, in ns. */
static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Print that @what has failed with @err, and end. */
static void die(const char *what, int err)
{
	fprintf(stderr, "try: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* How late events were read: below 2^i * 250 us each. */
#define STEPS	8
static unsigned int late[STEPS], early, twice, nr_read;
static unsigned char fired[TIMERS];
static uint64_t handles[TIMERS];

/* Do @nr operations, of which none may fail. */
static void submit(struct twheel *w, struct twheel_op *ops, unsigned int nr)
{
	int failed = twheel_submit(w, ops, nr);

	if (failed)
		die("twheel_submit()", failed < 0 ? failed : ops[0].res);
}

/* Print how long it took, for each of @nr. */
static void took(const char *what, unsigned int nr, uint64_t start)
{
	uint64_t ns = now() - start;

	printf("  %-9s %6u timers in %5.1f ms, %llu ns each\n", what, nr, (double)ns / MSEC,
	       (unsigned long long)(ns / nr));
}

/* Arm all timers, in batches. A timer's user_data is its index in @handles and @fired. */
static void arm(struct twheel *w)
{
	struct twheel_op ops[BATCH];
	uint64_t start = now();

	for (unsigned int i = 0; i < TIMERS; i += BATCH) {
		unsigned int n = TIMERS - i < BATCH ? TIMERS - i : BATCH;

		memset(ops, 0, sizeof(ops));
		for (unsigned int j = 0; j < n; j++) {
			ops[j].op = TWHEEL_OP_ADD;
			ops[j].user_data = i + j;
			ops[j].expires_ns = 200 * MSEC + (uint64_t)random() * 7919 % SPREAD;
		}
		submit(w, ops, n);
		for (unsigned int j = 0; j < n; j++)
			handles[i + j] = ops[j].handle;
	}
	took("armed", TIMERS, start);
}

/* Cancel every other timer: most timeouts are cancelled. */
static void cancel(struct twheel *w)
{
	struct twheel_op ops[BATCH];
	unsigned int n = 0;
	uint64_t start = now();

	for (unsigned int i = 0; i < TIMERS; i += 2) {
		ops[n++] = (struct twheel_op) { .op = TWHEEL_OP_CANCEL, .handle = handles[i] };
		if (n == BATCH || i + 2 >= TIMERS) {
			submit(w, ops, n);
			n = 0;
		}
	}
	took("cancelled", TIMERS / 2, start);
}

/* Count an event that was read at @time: as early, as one too many, or by how late it was. */
static void account(const struct twheel_event *event, uint64_t time)
{
	uint64_t limit = MSEC / 4;
	unsigned int step = 0;

	early += time < event->expires_ns;
	twice += fired[event->user_data]++;
	while (step < STEPS - 1 && time - event->expires_ns >= limit) {
		limit *= 2;
		step++;
	}
	late[step]++;
	nr_read++;
}

/* One line; on a terminal it is rewritten ten times a second. */
static void progress(uint64_t start, uint64_t time)
{
	static uint64_t last;
	bool over = nr_read == TIMERS / 2;

	if (!over && (!isatty(STDOUT_FILENO) || time - last < 100 * MSEC))
		return;
	last = time;
	printf("  fired     %6u timers in %4.2f s%s", nr_read, (double)(time - start) / 1e9,
	       over ? "\n" : "\r");
	fflush(stdout);
}

/* Read events until all timers that were not cancelled have fired. */
static void watch(struct twheel *w)
{
	struct twheel_event events[BATCH];
	uint64_t start = now();

	while (nr_read < TIMERS / 2) {
		int n = twheel_read(w, events, BATCH, 5000);
		uint64_t time = now();

		if (n < 0)
			die("twheel_read()", n);
		for (int i = 0; i < n; i++)
			account(&events[i], time);
		progress(start, time);
	}
}

/* Print how late the events were read. */
static void histogram(void)
{
	static const char bar[] = "########################################";

	puts("\n  late by less than");
	for (unsigned int i = 0; i < STEPS; i++) {
		if (i < STEPS - 1)
			printf("  %9.2f ms", 0.25 * (1 << i));
		else
			printf("  %12s", "more");
		printf(" %5.1f%% %.*s\n", 100.0 * late[i] / nr_read,
		       (int)(40ULL * late[i] / nr_read), bar);
	}
}

/* The first half of the tour. Returns how many timers did not do what they should. */
static int timers(void)
{
	unsigned int wrong = early + twice;
	struct twheel_info info;
	struct twheel *w;
	int err = twheel_open(&w, TWHEEL_EMBEDDED, NULL);

	if (err)
		die("twheel_open()", err);
	printf("One wheel in this process, one descriptor, no module (backend: %s)\n\n",
	       twheel_backend(w));
	arm(w);
	cancel(w);
	watch(w);
	histogram();
	for (unsigned int i = 0; i < TIMERS; i++)
		wrong += fired[i] != i % 2;
	wrong += early + twice;
	twheel_get_info(w, &info);
	printf("\n  %u wrong: none early, none lost, none twice, no cancelled one fired\n"
	       "  %llu wake-ups for %llu expiries, %.1f MiB\n", wrong,
	       (unsigned long long)info.nr_wakeups, (unsigned long long)info.nr_expired,
	       (double)info.mem_bytes / 1048576);
	twheel_close(w);
	return wrong;
}

static uint64_t began;

/* The function of each task: print which one runs, and when. */
static void say(void *arg, const struct twheel_task_info *task)
{
	printf("  %4llu ms  %s", (unsigned long long)((now() - began) / MSEC), (char *)arg);
	if (task->period_ns)
		printf(", run %llu", (unsigned long long)task->runs);
	putchar('\n');
}

/* Add a task that says @what. A task with the same @key is replaced. */
static void add(struct twheel_sched *s, const char *what, int64_t when, int64_t period,
		const char *key)
{
	struct twheel_task task = { .fn = say, .arg = (void *)what, .key = key,
				    .when_ns = when, .period_ns = period };
	int err = twheel_sched_add(s, &task, NULL);

	if (err)
		die("twheel_sched_add()", err);
}

/* The second half of the tour: some tasks in a pool of two threads, for a second. */
static void show_tasks(void)
{
	struct twheel_sched_options options = { .threads = 2, .flags = TWHEEL_EMBEDDED,
						.clockid = CLOCK_MONOTONIC };
	struct timespec second = { .tv_sec = 1 };
	struct twheel_sched *s;
	int err = twheel_sched_open(&s, &options);

	if (err)
		die("twheel_sched_open()", err);
	puts("\nA scheduler on another one, two threads\n");
	began = now();
	add(s, "every 250 ms", 250 * MSEC, 250 * MSEC, NULL);
	add(s, "once, after 400 ms", 400 * MSEC, 0, NULL);
	add(s, "never seen", 600 * MSEC, 0, "k");
	add(s, "took the place of the other task of key k", 600 * MSEC, 0, "k");
	add(s, "next year", 31536000LL * 1000000000, 0, NULL);
	nanosleep(&second, NULL);
	printf("  stopped, with %d tasks that were still to come\n",
	       twheel_sched_stop(s, TWHEEL_SCHED_WAIT, NULL));
	twheel_sched_close(s);
}

int main(void)
{
	int wrong;

	setvbuf(stdout, NULL, _IOLBF, 0);
	srandom(1);
	wrong = timers();
	show_tasks();
	puts("\nThe same programs run over the kernel module once /dev/twheel is there.\n"
	     "To write one: lib/libtwheel.h, lib/libtwheel-sched.h");
	return wrong != 0;
}
