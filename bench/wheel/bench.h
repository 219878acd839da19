/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* What the programs of the benchmark share: a load, a subject, and the lines of the TSV. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "wheel_user.h"

#define ull		unsigned long long	/* a u64 for printf() */
#define MANY		1000000U	/* so many timers take long: fewer repetitions will do */
#define measured	__attribute__((__noipa__))	/* a function that appears under its name */

/*
 * n timers, the same for every subject. All numbers are drawn from a seed before anything is timed.
 */
struct load {
	const char	*name;
	u64		start;		/* the tick at which they are armed */
	u32		first, range;	/* delays are from first to first + range - 1 */
	u32		n;
	bool		idle;		/* measure idle timeouts */
	bool		eighth;		/* measure what is left after a stride of cancels */
	u32		*delay;
	u32		*again;		/* delays for a second arming */
	u32		*order;		/* a permutation */
	u32		*pick;		/* n of the timers, drawn at random */
	u64		sum;		/* of the deadlines by delay */
	u64		sum_again;	/* of the deadlines by again */
};

/* The result of an expiry, tick by tick until no timer is left. */
struct work {
	u64		fired;
	u64		sum;		/* of the deadlines of the timers that fired */
	u64		late;		/* the latest timer's, in ticks */
	u64		early;		/* early timers */
	u64		most_moves;	/* in one tick, if that is known */
};

/* One repetition: ns of CPU time for all n timers. */
struct times {
	u64		add, rearm, cancel, expire, idle, few, stride;
};

/**
 * struct subject - a way to keep timers
 * @name:	its name in the TSV
 * @bytes:	how much memory n timers take
 * @run:	does one repetition. @tick_ns holds the shortest time so far of each tick from the
 *		start of the load, and is updated
 * @check:	does each operation once, to see that the results are right
 */
struct subject {
	const char	*name;
	size_t		(*bytes)(u32 n);
	void		(*run)(const struct load *l, struct times *t, struct work *w,
			       u32 *tick_ns);
	void		(*check)(const struct load *l);
};

extern const struct subject wheel_subject, whole_bucket_subject, classic_subject, heap_subject,
			    rbtree_subject, base_subject;

static inline u64 nanoseconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

/* CPU time, so that other processes do not count. */
static inline u64 cpu_ns(void)
{
	return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Zeroed memory whose page faults have been taken; in huge pages, if @huge and the host has any. */
static inline void *map(size_t size, bool huge)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	if (huge)
		madvise(p, size, MADV_HUGEPAGE);
	memset(p, 0, size);
	return p;
}

static inline void *pages(size_t size)
{
	return map(size, false);
}

/*
 * Memory for the timers. The kernel has its own memory in huge pages, so these are, too, unless
 * SMALL_PAGES is set. With small pages and 10^7 timers, each access waits for the page tables as
 * well.
 */
static inline void *timer_pages(size_t size)
{
	return map(size, !getenv("SMALL_PAGES"));
}

/* End the program: with a wrong result every figure is worthless. */
static inline void must(bool right, const char *subject, const struct load *l,
			const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s, %s, n = %u: %s\n", subject, l->name, l->n, what);
	exit(1);
}

static inline void must_be_exact(const struct work *w, u64 sum, const char *subject,
				 const struct load *l)
{
	must(w->fired == l->n, subject, l, "not all timers fired, or some twice");
	must(w->sum == sum, subject, l, "the sum of the deadlines is wrong");
	must(!w->early, subject, l, "a timer fired early");
}

/* load.c */
#define LOAD_HOUR	3		/* all timers are in one bucket of an hour */
#define NR_LOADS	4
extern const struct load loads[NR_LOADS];

void make_load(struct load *l, u32 n);
void free_load(struct load *l);
void tsv(const struct load *l, const char *subject, const char *metric, const char *unit,
	 double value);
void tsv_times(const struct load *l, const char *subject, const struct times *t, u32 reps);

#endif
