// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel beside the kernel's other timers for processes, and a heap in user space.
 *
 *	bench-user UNIT NMAX REPS [WORKLOAD [SUBJECT]]
 *
 * Prints lines of TSV: workload, n, subject, metric, unit, and the value of each repetition. It
 * runs as root on a machine of its own with one CPU. Each measurement is made in a new process,
 * which does for each of n = 10^3 ... NMAX timers, REPS times or less if they are many:
 *
 *	create	what the timers need before they can be armed: descriptors, ids, a ring
 *	arm	each, at a deadline one to two minutes away
 *	rearm	each, to a new such deadline, in random order: idle connections
 *	cancel	each, in another random order. What was created stays
 *	expire	all armed again, to fire soon. What interrupts, softirqs and the rest of the
 *		kernel take meanwhile from a loop that does nothing, beyond what they take from
 *		it anyway
 *	collect	find out which have expired, for which the loop of "expire" stops
 *	close	give back what was created, and the work that the kernel still does after that
 *	memory	of the kernel and of the process while all are armed
 *
 * All that the process itself does for a timer is in these figures: filling in structures and
 * reading results. A timer's life is create, arm, expire, collect and close.
 *
 * The workloads differ in how dense timers are, which is what expiry and collecting depend on:
 *
 *	dense	deadlines are 10 us apart on the average, but within 50 ms to 4 s. The loop
 *		collects each time that 4096 are due. Timers are armed, re-armed and cancelled
 *		in as large batches as the subject takes
 *	sparse	n timers are armed, and 4096 of these fire at random times, 600 us apart on the
 *		average. They are collected when all are due
 *	single	n timers are armed. 1000 of these are cancelled, armed again, and fire, each in a
 *		ms of its own, 2 ms apart. If there are so many others, 1000 others are re-armed.
 *		Each is armed, re-armed, cancelled and collected by a call of its own
 *	timeout	n timers are armed 60 to 120 s ahead and all come to their end, while the process
 *		does nothing but wait for them. "arm" is as above, "wait" is all that keeps the
 *		CPU from being idle until the last has been collected: expiry, and moves before
 *		it, waking up the process, and collecting
 *
 *	periodic n <= 10^4 timers fire again and again, each with a period of 100 ms, one after the
 *		other. They are collected every 5 ms. Figures are of each time one fires
 *
 * sparse, single, timeout and periodic are measured only where instructions are counted. Idle time
 * is skipped there. Where time is measured, the host of a virtual machine takes more from a loop
 * of 600 us or longer than a timer does, and a different amount each time; and on a slow host
 * periodic timerfds fire faster than they are read.
 *
 * Then "wakes": in each of some ticks of 1 ms, 20 ms and more apart, k timers are due at random
 * times within it. How often is a process woken up that does nothing but wait for them?
 *
 * Subjects with "-ms" are given deadlines of whole ms, as /dev/twheel's are by its ticks: timers
 * that are due at the same time share an interrupt.
 *
 * All timers have to fire, once and not early, and what is cancelled must not, or the program
 * ends with no figures. UNIT is what a ns of CLOCK_MONOTONIC is: "instructions" under QEMU's
 * -icount shift=0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define NMAX_WAYS	100000		/* for all workloads but dense */

/* A subject; or, if @ms is a name, the subject with deadlines of whole ms. */
static const struct {
	const struct subject	*of;
	const char		*ms;
} subjects[] = {
	{ &twheel_subject, NULL },
	{ &timerfd_subject, NULL },
	{ &timerfd_subject, "timerfd-ms" },
	{ &posix_subject, NULL },
	{ &posix_subject, "posix-ms" },
	{ &uring_subject, NULL },
	{ &uring_subject, "io_uring-ms" },
	{ &libevent_subject, NULL },
	{ &libevent_common_subject, NULL },
};

const char *unit;
static const char *only, *only_subject;
static u32 most_reps, nr_failed;

bool is_counted(void)
{
	return !strcmp(unit, "instructions");
}

noreturn void die(const char *what)
{
	fprintf(stderr, "# must(%s)\n", what);
	perror("# errno");
	exit(1);
}

static u32 at_most(u32 reps)
{
	return reps < most_reps ? reps : most_reps;
}

/* A million timers take minutes, and their figures vary less. */
static void dense(const struct subject *s, u32 n)
{
	bench_dense(s, n, at_most(n >= 100000 ? 3 : most_reps));
}

static void sparse(const struct subject *s, u32 n)
{
	bench_sparse(s, n, at_most(3));
}

static void single(const struct subject *s, u32 n)
{
	bench_single(s, n, at_most(3));
}

static void timeout(const struct subject *s, u32 n)
{
	bench_timeout(s, n, 1);
}

static void periodic(const struct subject *s, u32 n)
{
	if (!s->whole_ms)		/* without rounded deadlines */
		bench_periodic(s, n, at_most(3));
}

static void wakes(const struct subject *s, u32 per_tick)
{
	bench_wakes(s, per_tick, at_most(3));
}

static const char *told(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == WITHOUT)
		return "not possible";
	return status ? "FAILED" : "done";
}

/* In a new process, so that nothing of it is left when the next one begins. */
static void in_child(const char *name, void (*fn)(const struct subject *s, u32 n),
		     const struct subject *s, u32 n)
{
	u64 begin = now_ns();
	int status;
	pid_t pid;

	if ((only && strcmp(only, name)) || (s->most && n > s->most) ||
	    (only_subject && strcmp(only_subject, s->name)))
		return;
	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		fn(s, n);
		exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	printf("# %s, %s, %u: %s, %.1f s\n", name, s->name, n, told(status),
	       (double)(now_ns() - begin) / SEC);
	nr_failed += !strcmp(told(status), "FAILED");
}

static void each_subject(const char *name, void (*fn)(const struct subject *s, u32 n), u32 n)
{
	for (u32 i = 0; i < ARRAY_SIZE(subjects); i++) {
		struct subject s = *subjects[i].of;

		if (subjects[i].ms) {
			s.name = subjects[i].ms;
			s.whole_ms = true;
			s.most = NMAX_WAYS;
		}
		in_child(name, fn, &s, n);
	}
}

int main(int argc, char **argv)
{
	u32 nmax, n;

	if (argc < 4) {
		fprintf(stderr, "usage: %s UNIT NMAX REPS [WORKLOAD [SUBJECT]]\n", argv[0]);
		return 2;
	}
	unit = argv[1];
	nmax = strtoul(argv[2], NULL, 10);
	most_reps = strtoul(argv[3], NULL, 10);
	only = argv[4];
	only_subject = only ? argv[5] : NULL;
	for (n = 1000; n <= nmax; n *= 10)
		each_subject("dense", dense, n);
	for (n = 1000; n <= nmax && n <= NMAX_WAYS && is_counted(); n *= 10) {
		each_subject("sparse", sparse, n);
		each_subject("single", single, n);
		each_subject("timeout", timeout, n);
	}
	for (n = 1000; n <= nmax && n <= 10000 && is_counted(); n *= 10)
		each_subject("periodic", periodic, n);
	for (n = 1; n <= 10000; n *= 10)
		each_subject("wakes", wakes, n);
	return !!nr_failed;
}
