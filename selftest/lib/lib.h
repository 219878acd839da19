/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tests of libtwheel share, besides tap.h and what uapi.h has: tests, CHECKs and clocks.
 *
 * Each program is run over both backends, which the environment selects with TWHEEL_BACKEND. So a
 * test may rely only on what both backends promise.
 *
 * About time three things are checked: nothing is early, to the nanosecond; the order; and what
 * must happen does so within WAIT_MS. To see that something does not happen, a test waits QUIET_MS.
 */
#ifndef LIB_H
#define LIB_H

#include "libtwheel.h"
#include "libtwheel-sched.h"
#include "tap.h"
#include "uapi.h"

#define QUIET_MS	60

typedef int64_t s64;

/* Open a wheel, with defaults if @setup is NULL. If that fails, the program ends. */
struct twheel *wheel_new(const struct twheel_setup *setup);
/* Add a timer, which must succeed. */
uint64_t wheel_add(struct twheel *w, u64 user_data, u64 delay);
/* Wait for events, WAIT_MS at most, and CHECK what must hold for any event. */
int wheel_read(struct twheel *w, struct twheel_event *ev, u32 nr);
/* Wait QUIET_MS, in which no event may come. */
void wheel_quiet(struct twheel *w, int ms);
void wheel_counts(struct twheel *w, u32 timers, u32 armed, u32 ready);
/* The same of what twheel_get_info() has returned. */
void wheel_counts_are(const struct twheel_info *i, u32 timers, u32 armed, u32 ready);
/*
 * Wait until a thread of this process sleeps in the call that it is about to make. On a busy host
 * it may not have come to it, however long one waits.
 */
void wait_asleep(pid_t thread);

/* Open a scheduler, which must succeed. */
struct twheel_sched *sched_new(u32 threads);
/* Add a task, which must succeed. If it has no function, it gets run_note(). */
uint64_t sched_add(struct twheel_sched *s, struct twheel_task task);
#define ADD(s, ...)	sched_add(s, (struct twheel_task) { __VA_ARGS__ })
void sched_close(struct twheel_sched *s);

/*
 * The log of runs. run_note() is a function for tasks that appends its run, and CHECKs that it is
 * not early.
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
/* For schedulers with a pool: wait until there are at least @n runs. Returns how many there are. */
u32 runs_wait(u32 n);
/* The same for schedulers without a pool: it calls twheel_sched_run() meanwhile. */
u32 runs_drive(struct twheel_sched *s, u32 n);
u32 runs_count(void);
struct run run_nth(u32 n);

/* run_release() is a release() that counts its calls. This is the count. */
u32 released(void);
void run_release(void *arg);

/* A gate: functions that call gate_pass() wait there until gate_open(). */
void gate_close(void);
void gate_open(void);
void gate_pass(void *arg, const struct twheel_task_info *task);
/* Wait until so many functions are at the gate. */
bool gate_crowd(u32 n);

/*
 * Only in test_lib_within: the linker lets the library's scheduler call the __wrap_ functions in
 * place of the library's own, which are the __real_ ones.
 */
int __real_twheel_add_within(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
			     uint64_t expires_ns, uint64_t interval_ns, uint64_t tolerance_ns,
			     uint32_t flags);
int __wrap_twheel_add_within(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
			     uint64_t expires_ns, uint64_t interval_ns, uint64_t tolerance_ns,
			     uint32_t flags);
int __real_twheel_mod_within(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
			     uint64_t interval_ns, uint64_t tolerance_ns, uint32_t flags);
int __wrap_twheel_mod_within(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
			     uint64_t interval_ns, uint64_t tolerance_ns, uint32_t flags);

#endif
