/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel-demo in three parts: workload.c makes the timers, twheel-demo.c runs them, report.c prints
 * what happened. There is one thread, so nothing is locked.
 *
 * All times are in ns. 1 000 000 timers take 60 MB of the process's own memory.
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

typedef __u32 u32;
typedef __u64 u64;

#define MSEC	1000000ULL
#define SEC	1000000000ULL

/* A workload that was not read from a file is over in a minute, except its tail. */
#define RUN_NS	(60 * SEC)

enum act { ACT_NONE, ACT_CANCEL, ACT_REARM };
enum state { NEW, ARMED, FIRED, CANCELLED };

/**
 * struct timer - what is to happen to a timer, and what has happened
 * @delay:	from arming to expiry
 * @interval:	0, or the period after that
 * @act_at:	when to do @act, from the start of the run
 * @handle:	the kernel's handle
 * @due:	it must not fire earlier. For a periodic timer that has fired: exactly the
 *		deadline of the next period
 * @periods:	how many have passed
 * @act:	enum act
 * @state:	enum state
 * @tail:	not meant to fire before the end of the run
 */
struct timer {
	u64	delay;
	u64	interval;
	u64	act_at;
	u64	handle;
	u64	due;
	u32	periods;
	uint8_t	act;
	uint8_t	state;
	uint8_t	tail;
};

struct workload {
	struct timer	*timers;
	u32		nr;
	u32		malformed;	/* lines of the file that are no timers */
};

/* A random number. *@seed, which must not be 0, becomes the next state. */
u64 rnd(u64 *seed);
/* Make @nr random timers: see the head of workload.c. If there is no memory, end the program. */
void workload_generate(struct workload *w, u32 nr, u64 *seed);
/*
 * Read timers from a file. Lines that are wrong are reported, counted and left out. Returns 0, or
 * -1 and errno if the file cannot be read.
 */
int workload_read(struct workload *w, const char *path);

/* Calls of one kind: how many operations, how many calls, and how many ns in all and at worst. */
struct cost {
	u64	ops, calls, ns, worst;
};

#define LATE_MAX	1000000		/* in us; events that are later are counted there */

/*
 * What happened. Each timer that was armed is in one of fired, cancelled, cancelled_end and closed
 * at the end, or it is lost: report_good() adds them up. lost, early, twice, late_cancel, unknown
 * and wrong are errors.
 */
struct stats {
	u64		armed, rearmed, fired, periods, cancelled;
	u64		cancelled_end, closed;
	u64		missed;		/* acts that came after the timer had fired */
	u64		lost, early, twice, late_cancel, unknown, wrong;
	struct cost	add, mod, cancel, read;
	u32		*late;		/* by us, LATE_MAX + 1 of them */
	u64		late_nr, late_max;
	u64		epolls, wakeups, moves, deferred;
	u64		mem_bytes, mem_timers, mem_delta;
	u64		run_ns, close_ns;
};

/* Count a call that has done @ops operations in @ns. */
void cost_add(struct cost *c, u64 ops, u64 ns);
/* Count an event that was read @ns after its deadline. */
void late_add(struct stats *s, u64 ns);
u64 late_quantile(const struct stats *s, double q);
/* Print a line about a run that has lasted for @ns; on a terminal, over the last such line. */
void report_progress(const struct stats *s, u64 ns, bool terminal);
/* Print everything, at the end. */
void report_table(const struct stats *s);
/* Is everything accounted for, and nothing too early or too often? */
bool report_good(const struct stats *s);

#endif
