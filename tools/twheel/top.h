/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel top: what its two files share. top.c takes samples, screen.c draws them. There is one
 * thread.
 */
#ifndef TOP_H
#define TOP_H

#include "cmd.h"

#define LEVELS	5

/* The counts of a base. From ADDED on they only grow, and their rates are shown. */
enum count { PENDING, WORST, ADDED, EXPIRED, CANCELED, REARMED, RUNS, DEFERRED, MOVES, NR_COUNTS };

/**
 * struct base - a line of /sys/kernel/debug/twheel/bases, or the wheel of this process
 * @kind:	cpu, base, file or embedded
 * @clock:	the name of its clock
 * @comm:	the name of the process that made it
 * @id:		@kind and @id together name a base
 * @pid:	the process that made it
 * @uid:	the user of that process
 * @tick_ns:	the tick
 * @count:	see enum count
 * @rate:	how much each grows in a second
 * @timers:	how many timers are in each level; the last is for the far timers
 * @buckets:	how many buckets of each level have any
 */
struct base {
	char		kind[16];
	char		clock[16];
	char		comm[PLAIN_MAX];
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
 * struct sample - the state of all bases at one moment
 * @when:	the moment, of CLOCK_MONOTONIC
 * @nr:		how many bases there are
 * @bases:	in the order in which they were made
 * @all:	their sums; @all.count[WORST] is the worst of them
 * @nr_late:	how many timers of this program have fired since the last sample
 * @late_ns:	the lateness that half, 99 of 100, and all of these did not exceed
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

/* Begin to draw on the terminal; ends the program if it cannot be drawn on. */
void screen_open(void);
/* Give the terminal back as it was. Does nothing if it is not drawn on. */
void screen_close(void);
/* Draw @s. @embedded: it is of the wheel of this process. */
void screen_show(const struct sample *s, bool embedded);
/* Take a key. Returns false if the user quits. */
bool screen_key(void);

#endif
