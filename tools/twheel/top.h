/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel top: what its two files share. top.c finds out, screen.c draws.
 */
#ifndef TOP_H
#define TOP_H

#include "cmd.h"

#define LEVELS	5

/* What is told of a base, and from ADDED on by how much it grows. */
enum count { PENDING, WORST, ADDED, EXPIRED, CANCELED, REARMED, RUNS, DEFERRED, MOVES, NR_COUNTS };

/**
 * struct base - a line of /sys/kernel/debug/twheel/bases, or the wheel of this process
 * @kind:	cpu, base, file or embedded
 * @clock:	its name
 * @comm:	of the process that made it
 * @id:		with @kind it names a base
 * @pid:	of that process
 * @uid:	of that
 * @tick_ns:	the tick
 * @count:	see enum count
 * @rate:	of each, by the second
 * @timers:	in each level, and last beyond them
 * @buckets:	that have any
 */
struct base {
	char		kind[16];
	char		clock[16];
	char		comm[80];
	uint64_t	id;
	uint64_t	pid;
	uint64_t	uid;
	uint64_t	tick_ns;
	uint64_t	count[NR_COUNTS];
	uint64_t	rate[NR_COUNTS];
	uint64_t	timers[LEVELS + 1];
	uint64_t	buckets[LEVELS + 1];
};

/**
 * struct sample - what there was at a moment
 * @when:	CLOCK_MONOTONIC
 * @nr:		bases
 * @bases:	in the order they were made
 * @all:	their sums; @all.count[WORST] is the worst of them
 * @nr_late:	timers of this program that have fired since the last sample
 * @late_ns:	how late they were: half, 99 of 100, and all of them, were no later
 */
struct sample {
	int64_t		when;
	size_t		nr;
	struct base	*bases;
	struct base	all;
	uint32_t	nr_late;
	int64_t		late_ns[3];
};

/* Buckets of each level, and ticks of a bucket of each: the geometry of wheel.h. */
extern const uint32_t level_buckets[LEVELS];
extern const uint64_t level_ticks[LEVELS];

void screen_open(void);
void screen_close(void);
void screen_show(const struct sample *s, bool embedded);
/* Returns false if it is time to go. */
bool screen_key(void);

#endif
