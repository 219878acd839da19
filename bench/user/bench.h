/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the subjects and the phases of the benchmark share. main.c says what is measured.
 *
 * A subject keeps n timers, which have the numbers 0 ... n - 1. Each has an absolute deadline of
 * CLOCK_MONOTONIC in ns. If a system call fails, the program ends: half of the work would give
 * figures that look good.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <time.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ULL	/* in ns */
#define SEC		1000000000ULL

/**
 * struct subject - a way to have timers
 * @name:	its name in the TSV
 * @most:	the most timers that are of interest; 0 for any number
 * @whole_ms:	deadlines are rounded up to whole ms, as those of /dev/twheel are by its ticks
 * @arm_lists:	0; or, if the kernel searches for a timer to arm it, in how many lists, which hold
 *		all of them: see sample()
 * @cancel_lists: the same for re-arming and cancelling
 * @prepare:	allocates user memory for @n timers
 * @open:	makes what @n timers need. Returns NULL, or why that is not possible
 * @arm:	arms @nr idle timers, each at deadline[ids[i]]. If there is a cheaper call for one
 *		timer, it is used if @nr is 1; so it is with @rearm and @cancel
 * @rearm:	the same for timers that are armed
 * @cancel:	cancels timers that are armed
 * @collect:	takes what has expired, and stores the numbers. With @wait it sleeps once, until
 *		there is something. Returns how many. If timers expire faster than they are
 *		taken, it stops when there might be no room for more: see collect_room
 * @every:	arms an idle timer, to fire after @period ns and again after each period. Returns
 *		false if this kernel has no such timers
 * @close:	undoes @open. Returns for how many timers
 * @release:	undoes @prepare
 */
struct subject {
	const char	*name;
	u32		most;
	bool		whole_ms;
	u32		arm_lists;
	u32		cancel_lists;
	void		(*prepare)(u32 n);
	const char	*(*open)(u32 n);
	void		(*arm)(const u32 *ids, u32 nr, const u64 *deadline);
	void		(*rearm)(const u32 *ids, u32 nr, const u64 *deadline);
	void		(*cancel)(const u32 *ids, u32 nr);
	u32		(*collect)(u32 *ids, bool wait);
	bool		(*every)(u32 id, u64 period);
	u32		(*close)(u32 n);
	void		(*release)(u32 n);
};

/* How many numbers a subject's collect() has room for. */
extern u32 collect_room;

extern const struct subject twheel_subject, timerfd_subject, posix_subject, uring_subject,
			    libevent_subject, libevent_common_subject;

/* The condition, which may be what is measured, must be true, or the program ends. */
noreturn void die(const char *what);
#define must(cond) do {						\
	if (__builtin_expect(!(cond), 0))			\
		die(#cond);					\
} while (0)

static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * SEC + (u64)ts.tv_nsec;
}

static inline struct timespec timespec_of(u64 ns)
{
	return (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
}

/* What a child's status is if there is nothing to measure, and it has said so. */
#define WITHOUT	2

/* phases.c */
u32 sample(u32 n, u32 lists);
extern const char *unit;	/* the unit of time in the TSV */
bool is_counted(void);
void bench_dense(const struct subject *s, u32 n, u32 reps);
void bench_sparse(const struct subject *s, u32 n, u32 reps);
void bench_single(const struct subject *s, u32 n, u32 reps);
void bench_timeout(const struct subject *s, u32 n, u32 reps);
void bench_periodic(const struct subject *s, u32 n, u32 reps);
void bench_wakes(const struct subject *s, u32 per_tick, u32 reps);

/* uring.c */
void uring_nap(u64 ns);

/* machine.c */
struct memory {
	double	kernel, user;		/* in bytes */
};

void *get_pages(size_t size);
void put_pages(void *p, size_t size);
void memory_settle(void);
struct memory memory_now(void);
void raise_limit(const char *subject, const char *path, u64 value);
void raise_rlimit(const char *subject, const char *name, int resource, u64 value);

#endif
