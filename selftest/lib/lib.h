/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tests of libtwheel share, beside tap.h and the tests, CHECKs and clocks of
 * uapi.h.
 *
 * Each program is run over both backends: TWHEEL_BACKEND says which, in the
 * environment. So a test may only rely on what both promise.
 *
 * About time three things are checked: never early, to the nanosecond; the order; and that
 * what must happen happens within WAIT_MS. What must not happen is given QUIET_MS.
 */
#ifndef LIB_H
#define LIB_H

#include "libtwheel.h"
#include "libtwheel-sched.h"
#include "tap.h"
#include "uapi.h"

#define QUIET_MS	60

typedef int64_t s64;

/* A wheel, with defaults where @setup is NULL; there is one, or the program ends. */
struct twheel *wheel_new(const struct twheel_setup *setup);
/* A timer that must come into being. */
uint64_t wheel_add(struct twheel *w, u64 user_data, u64 delay);
/* Waits for events, at most WAIT_MS, and checks what is to be checked of any. */
int wheel_read(struct twheel *w, struct twheel_event *ev, u32 nr);
/* Nothing more is to be read for so long. */
void wheel_quiet(struct twheel *w, int ms);
void wheel_counts(struct twheel *w, u32 timers, u32 armed, u32 ready);

/* A scheduler that must come into being. */
struct twheel_sched *sched_new(u32 threads);
/* A task that must. The function is run_note() if there is none. */
uint64_t sched_add(struct twheel_sched *s, struct twheel_task task);
#define ADD(s, ...)	sched_add(s, (struct twheel_task) { __VA_ARGS__ })
void sched_close(struct twheel_sched *s);

/*
 * The log of runs. run_note() is a task's function that writes one down, and checks
 * that it is not early.
 */
struct run {
	const char	*arg;
	u64		id;
	s64		due;
	s64		start;
	u64		nth;
	u64		missed;
};

void runs_forget(void);
void run_note(void *arg, const struct twheel_task_info *task);
/* Waits until there are @n at least; how many there are. For schedulers with a pool. */
u32 runs_wait(u32 n);
/* The same, and calls twheel_sched_run() meanwhile. */
u32 runs_drive(struct twheel_sched *s, u32 n);
u32 runs_count(void);
struct run run_nth(u32 n);

/* How often release() was called: run_release() is one that counts. */
u32 released(void);
void run_release(void *arg);

/* A gate: functions that call gate_pass() wait until gate_open(). */
void gate_close(void);
void gate_open(void);
void gate_pass(void *arg, const struct twheel_task_info *task);
/* Waits until that many wait at the gate. */
bool gate_crowd(u32 n);

#endif
