/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * libtwheel: millions of timers on one descriptor, with or without the module.
 *
 * A struct twheel is a set of timers. Two backends stand behind it, which do the
 * same to the last errno:
 *
 *	kernel		an open /dev/twheel
 *	embedded	the kernel module's own wheel, compiled into this process
 *			and driven by one timerfd: nothing to load, no privilege
 *
 * The kernel is taken where it is there, unless twheel_open() is told otherwise, or
 * the environment is: TWHEEL_BACKEND=kernel or TWHEEL_BACKEND=embedded.
 *
 * Operations, events, flags and promises are those of <linux/twheel.h>, which is to
 * be read first: never early, in the order of ticks, exactly one event of each timer
 * that was armed, no event after a cancel that gave 0 or 1.
 *
 * All times are in ns. A function that can fail returns a negative errno and has
 * changed nothing. Beside those of <linux/twheel.h> there is
 *	ECHILD	the wheel was opened by a parent of this process, see twheel_close()
 *
 * Context: All functions may be called from any thread at any time, on one wheel
 * too, but none from a signal handler, and twheel_close() only when no other
 * call on that wheel is under way. With TWHEEL_ONE_THREAD no call may be.
 *
 * What the embedded backend costs: 34 KiB a wheel, 64 bytes a timer, kept until
 * twheel_close(); O(1) each operation; a system call where the next event
 * becomes earlier than before, and no wake-up of an idle process.
 *
 * Its promise has one limit: slack_ns is not used.
 */
#ifndef LIBTWHEEL_H
#define LIBTWHEEL_H

#include <stdint.h>

#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct twheel;

/* Which backend; none of them: the kernel's, and if it cannot be opened, the other. */
#define TWHEEL_KERNEL		0x1
#define TWHEEL_EMBEDDED		0x2

/*
 * No two calls on this wheel are ever made at once: one thread uses it, or the caller has a lock
 * of its own. Then the embedded backend takes none, and reads the coarse clock
 * (CLOCK_MONOTONIC_COARSE, some ms behind) to cancel, and where TWHEEL_F_ABS gives the deadline:
 * whether the timer was still armed is told as of that time, so 1 may mean that its deadline has
 * just come. All else holds, and the fastest way to arm a timer is TWHEEL_F_ABS. The kernel's
 * backend is the same with and without.
 */
#define TWHEEL_ONE_THREAD	0x4

/**
 * twheel_open() - make an empty wheel
 * @twheel:	filled in
 * @flags:	TWHEEL_KERNEL, TWHEEL_EMBEDDED, or 0: what TWHEEL_BACKEND says in the
 *		environment, or else the kernel if /dev/twheel can be opened. Each may have
 *		TWHEEL_ONE_THREAD with it
 * @setup:	clock, tick, and the most timers, see <linux/twheel.h>; NULL for the
 *		defaults
 *
 * Return: 0, -EINVAL for a flag, environment or setup that is not allowed, -ENOMEM,
 * -EMFILE, -ENFILE, or why /dev/twheel cannot be opened.
 */
int twheel_open(struct twheel **twheel, unsigned int flags,
		const struct twheel_setup *setup);

/**
 * twheel_close() - free a wheel and all its timers
 * @twheel:	the wheel, or NULL
 *
 * No other call on it may be under way or follow. In a child after fork() it gives
 * up the child's descriptor and no more: the parent's wheel goes on, and the memory
 * goes with the next exec() or exit(). All else is refused there with -ECHILD.
 */
void twheel_close(struct twheel *twheel);

/**
 * twheel_fd() - what to poll
 * @twheel:	the wheel
 *
 * It is readable (POLLIN) while an event is ready. Poll it, select() it, give it to
 * epoll, but read it through twheel_read() alone.
 *
 * Of the embedded backend it may become readable and twheel_read() say -EAGAIN:
 * where a timer that would have been the next was cancelled, and where the wheel has
 * timers to move. Edge-triggered: each edge asks to read until -EAGAIN.
 *
 * Return: the descriptor, which stays the wheel's.
 */
int twheel_fd(const struct twheel *twheel);

/**
 * twheel_backend() - which backend is it?
 * @twheel:	the wheel
 *
 * Return: "kernel" or "embedded".
 */
const char *twheel_backend(const struct twheel *twheel);

/**
 * twheel_add() - arm a new timer
 * @twheel:	the wheel
 * @handle:	filled in: the timer, never 0
 * @user_data:	the caller's own; comes back with every event
 * @expires_ns:	delay from now, or with TWHEEL_F_ABS a time of the wheel's clock
 * @interval_ns: 0, or the period after that, at least a tick
 * @flags:	TWHEEL_F_ABS, TWHEEL_F_KEEP, TWHEEL_F_DELAY
 *
 * Return: 0, -EINVAL, -EDQUOT at the limit, -ENOMEM, -ECHILD.
 */
int twheel_add(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
	       uint64_t expires_ns, uint64_t interval_ns, uint32_t flags);

/**
 * twheel_mod() - arm a timer anew, whatever its state
 * @twheel:	the wheel
 * @handle:	the timer
 * @expires_ns:	as in twheel_add()
 * @interval_ns: as in twheel_add()
 * @flags:	as in twheel_add(), and TWHEEL_F_PENDING: only if it is armed
 *
 * An event that was not read is dropped.
 *
 * Return: 1 if it was armed, 0 if not, -EINVAL, -ENOENT, -EALREADY if its last event is
 * being read by another thread, or one that has to come before the last, -ECHILD.
 */
int twheel_mod(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
	       uint64_t interval_ns, uint32_t flags);

/**
 * twheel_cancel() - free a timer, whatever its state
 * @twheel:	the wheel
 * @handle:	the timer
 * @user_data:	filled in if it returns 0 or 1; may be NULL
 *
 * Return: 1 if it was armed, 0 if its event was dropped or it was idle, -ENOENT,
 * -EALREADY if its event is being read by another thread, -ECHILD.
 */
int twheel_cancel(struct twheel *twheel, uint64_t handle, uint64_t *user_data);

/**
 * twheel_submit() - many operations in one call
 * @twheel:	the wheel
 * @ops:	what to do, and with each its result
 * @nr:		how many, up to 2^31 - 1
 *
 * Done in order; one that fails does not stop the others. Signals do not stop it.
 *
 * Return: how many have a negative @res; -EINVAL or -ECHILD, and nothing was done.
 * -EFAULT for @ops that is not memory of the caller's, or -ENOMEM: some may have been done.
 */
int twheel_submit(struct twheel *twheel, struct twheel_op *ops, uint32_t nr);

/**
 * twheel_read() - read events
 * @twheel:	the wheel
 * @events:	filled in
 * @nr:		how many there is room for, at least 1; no more than 65536 are read
 * @timeout_ms:	how long to wait for the first, 0 not at all, -1 for ever; below that is -EINVAL
 *
 * Return: how many were read, -EAGAIN if there was none in time, -EINTR, -EINVAL,
 * -EFAULT, -ECHILD.
 */
int twheel_read(struct twheel *twheel, struct twheel_event *events, uint32_t nr,
		int timeout_ms);

/**
 * twheel_query() - tell the state of a timer, and change nothing
 * @twheel:	the wheel
 * @handle:	the timer
 * @flags:	0, or TWHEEL_F_ABS: tell the deadline and not the time left
 * @op:		filled in: @user_data, @expires_ns and @interval_ns
 *
 * Return: an enum twheel_state, -ENOENT, -EINVAL, -ECHILD.
 */
int twheel_query(struct twheel *twheel, uint64_t handle, uint32_t flags, struct twheel_op *op);

/**
 * twheel_drain() - free armed timers, and get them back
 * @twheel:	the wheel
 * @ops:	filled in with the operations that would add them again, but for @handle, which
 *		is what each was called: set it to 0 and twheel_submit() them
 * @nr:		how many there is room for, at least 1
 * @flags:	0, or TWHEEL_F_ABS: by deadline and not by the time left
 *
 * Events that are ready and timers that are idle stay. Call it until it returns 0.
 *
 * Return: how many, 0 if nothing is armed any more, -EINVAL, -EFAULT, -ECHILD.
 */
int twheel_drain(struct twheel *twheel, struct twheel_op *ops, uint32_t nr, uint32_t flags);

/**
 * twheel_get_info() - what the wheel is and holds
 * @twheel:	the wheel
 * @info:	filled in; with the embedded backend @mem_bytes is this process's,
 *		and @nr_wakeups counts how often the timerfd woke a reader
 *
 * Return: 0 or -ECHILD.
 */
int twheel_get_info(struct twheel *twheel, struct twheel_info *info);

/* Seconds, minutes, hours, days and years, where a tick is a second, and what is beyond. */
#define TWHEEL_LEVELS	6

/**
 * struct twheel_levels - where the timers of a wheel are
 * @timers:	in each level
 * @buckets:	of each level that have any: of 120, 120, 48, 730, 100 and 2
 */
struct twheel_levels {
	uint32_t	timers[TWHEEL_LEVELS];
	uint32_t	buckets[TWHEEL_LEVELS];
};

/**
 * twheel_get_levels() - look into a wheel
 * @twheel:	the wheel
 * @levels:	filled in
 *
 * For those who watch it. Of the kernel's wheels it is root's to know: see
 * /sys/kernel/debug/twheel/bases, and twheel top.
 *
 * Return: 0, -EOPNOTSUPP with the kernel backend, -ECHILD.
 */
int twheel_get_levels(struct twheel *twheel, struct twheel_levels *levels);

#ifdef __cplusplus
}
#endif

#endif
