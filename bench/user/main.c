// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel beside the kernel's other timers for processes, and a heap in user space.
 *
 *	bench-user UNIT NMAX REPS [SUBJECT]
 *
 * Prints lines of TSV: workload, n, subject, metric, unit, value. It runs as root on a machine
 * of its own with one CPU. Each measurement is made in a new process, which does for each of
 * n = 10^3 ... NMAX timers, REPS times or less if they are many; the median counts:
 *
 *	create	what the timers need before they can be armed: descriptors, ids, a ring
 *	arm	each, at a deadline one to two minutes away
 *	rearm	each, to a new such deadline, in random order: idle connections
 *	cancel	each, in another random order. What was created stays
 *	expire	all armed again, their deadlines 10 us apart on the average, but within 50 ms
 *		to 4 s. What interrupts, softirqs and the rest of the kernel take meanwhile from
 *		a loop that does nothing, beyond what they take from it anyway
 *	collect	know which have expired: that loop stops for it each time that 4096 are due
 *	close	give back what was created, and what the kernel goes on with after that
 *	memory	of the kernel and of the process while all are armed
 *
 * All that the process itself does for a timer is in these figures: filling in structures and
 * reading results. A timer's life is create, arm, expire, collect and close.
 *
 * Then "wakes": in each of some ticks of 1 ms, 20 ms and more apart, k timers are due at random
 * times within it. How often is a process woken up that does nothing but wait for them?
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

static const struct subject *const subjects[] = {
	&twheel_subject, &twheel_single_subject, &timerfd_subject, &posix_subject,
	&uring_subject, &libevent_subject,
};

static const char *unit, *only;
static u32 most_reps, nr_failed;

noreturn void die(const char *what)
{
	fprintf(stderr, "# must(%s)\n", what);
	perror("# errno");
	exit(1);
}

/* A million take minutes, and less is left to chance. */
static void life(const struct subject *s, u32 n)
{
	u32 reps = n >= 1000000 ? 1 : n >= 100000 ? 3 : most_reps;

	bench_life(s, n, reps < most_reps ? reps : most_reps, unit);
}

/* In a process of its own, so that nothing of it is left when the next begins. */
static void in_child(void (*fn)(const struct subject *s, u32 n), const struct subject *s, u32 n)
{
	u64 begin = now_ns();
	int status;
	pid_t pid;

	if ((only && strcmp(only, s->name)) || (s->most && n > s->most))
		return;
	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		fn(s, n);
		exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	printf("# %s, %u: %s, %.1f s\n", s->name, n, status ? "FAILED" : "done",
	       (double)(now_ns() - begin) / SEC);
	nr_failed += !!status;
}

int main(int argc, char **argv)
{
	u32 nmax, n, i;

	if (argc < 4) {
		fprintf(stderr, "usage: %s UNIT NMAX REPS [SUBJECT]\n", argv[0]);
		return 2;
	}
	unit = argv[1];
	nmax = strtoul(argv[2], NULL, 10);
	most_reps = strtoul(argv[3], NULL, 10);
	only = argv[4];
	for (n = 1000; n <= nmax; n *= 10)
		for (i = 0; i < ARRAY_SIZE(subjects); i++)
			in_child(life, subjects[i], n);
	for (n = 1; n <= 10000; n *= 10)
		for (i = 0; i < ARRAY_SIZE(subjects); i++)
			in_child(bench_wakes, subjects[i], n);
	return !!nr_failed;
}
