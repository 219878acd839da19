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
 * Growth
 *   In later versions structures may become longer, at their end; no member moves. So the library
 *   is told the size that the program was compiled with: a function NAME() that has to do with
 *   a structure is inline, and calls NAME_sized() with that size. Who calls the
 *   library from another language calls NAME_sized(), whose parameters are those of NAME() and
 *   at the end the size; of an array it is the distance from one element to the next.
 *	shorter than the library's	of what the library reads, the rest counts as 0; what
 *					it fills in, it fills in as far as that goes
 *	longer				of what the library reads, the rest must be 0, or it is
 *					-E2BIG; in what it fills in, the rest is set to 0
 *	shorter than in version 1.0.0, longer than 4096, not a multiple of the structure's
 *	alignment			-EINVAL
 *   A pointer that is NULL, where that is allowed, needs a size too. So a program works with a
 *   library that is newer or older than the header that it was compiled with; twheel_version()
 *   tells which.
 *
 * Context: All functions may be called from any thread at any time, on one wheel
 * too, but none from a signal handler, and twheel_close() only when no other
 * call on that wheel is under way. With TWHEEL_ONE_THREAD no call may be.
 *
 * What the embedded backend costs: 44 KiB a wheel, 64 bytes a timer, kept until
 * twheel_close(); O(1) each operation; a system call where the next event
 * becomes earlier than before, and no wake-up of an idle process.
 *
 * Its promises have two limits: slack_ns is not used, and memory that is not the caller's
 * is no -EFAULT but SIGSEGV, as in any function.
 */
#ifndef LIBTWHEEL_H
#define LIBTWHEEL_H

#include <stddef.h>
#include <stdint.h>

#include <linux/twheel.h>

/* The version of this header, and of all of twheel: all others are made from these three lines. */
#define TWHEEL_VERSION_MAJOR	1
#define TWHEEL_VERSION_MINOR	0
#define TWHEEL_VERSION_PATCH	0

/* A version as a number that grows, for #if and to compare with twheel_version(). */
#define TWHEEL_VERSION_OF(major, minor, patch)	((major) << 16 | (minor) << 8 | (patch))
#define TWHEEL_VERSION		TWHEEL_VERSION_OF(TWHEEL_VERSION_MAJOR, TWHEEL_VERSION_MINOR, \
						  TWHEEL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

struct twheel;

/**
 * twheel_version() - the version of the library
 *
 * TWHEEL_VERSION is that of the header, which the program was compiled with.
 *
 * Return: as TWHEEL_VERSION_OF(); never less than 1.0.0.
 */
uint32_t twheel_version(void);

/*
 * Which backend. Both: the kernel's, and if it cannot be opened, the other. None: as the
 * environment says, or else as both.
 */
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

int twheel_open_sized(struct twheel **twheel, unsigned int flags,
		      const struct twheel_setup *setup, size_t size);

/**
 * twheel_open() - make an empty wheel
 * @twheel:	filled in
 * @flags:	TWHEEL_KERNEL, TWHEEL_EMBEDDED, both, or 0, see above. Each may have
 *		TWHEEL_ONE_THREAD with it
 * @setup:	clock, tick, and the most timers, see <linux/twheel.h>; NULL for the
 *		defaults
 *
 * Return: 0, -EINVAL for a flag, environment or setup that is not allowed, -E2BIG, -ENOMEM,
 * -EMFILE, -ENFILE, or why /dev/twheel cannot be opened.
 */
static inline int twheel_open(struct twheel **twheel, unsigned int flags,
			      const struct twheel_setup *setup)
{
	return twheel_open_sized(twheel, flags, setup, sizeof(*setup));
}

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
 * @flags:	TWHEEL_F_ABS, TWHEEL_F_KEEP, TWHEEL_F_DELAY, and on CLOCK_REALTIME
 *		TWHEEL_F_CANCEL_ON_SET
 *
 * Return: 0, -EINVAL, -EDQUOT at the limit, -ENOMEM, -ECHILD.
 */
int twheel_add(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
	       uint64_t expires_ns, uint64_t interval_ns, uint32_t flags);

/**
 * twheel_add_within() - arm a new timer that may be late
 * @twheel:	the wheel
 * @handle:	as in twheel_add()
 * @user_data:	as in twheel_add()
 * @expires_ns:	as in twheel_add()
 * @interval_ns: as in twheel_add()
 * @tolerance_ns: how much later than each deadline it may fire, see Tolerance in
 *		<linux/twheel.h>; together with @expires_ns at most 2^63 - 1. 0: as twheel_add()
 * @flags:	as in twheel_add()
 *
 * Timers that may be late meet in ticks that they share, so that a process is woken for many of
 * them at once. It is for timeouts of which nobody sees whether they are a little late.
 *
 * Return: as twheel_add(); -E2BIG if the module is older than tolerances are.
 */
int twheel_add_within(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
		      uint64_t expires_ns, uint64_t interval_ns, uint64_t tolerance_ns,
		      uint32_t flags);

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
 * twheel_mod_within() - arm a timer anew, so that it may be late
 * @twheel:	the wheel
 * @handle:	the timer
 * @expires_ns:	as in twheel_add()
 * @interval_ns: as in twheel_add()
 * @tolerance_ns: as in twheel_add_within(). What it was before does not count: after twheel_mod()
 *		the timer is exact
 * @flags:	as in twheel_mod()
 *
 * Return: as twheel_mod(); -E2BIG as twheel_add_within().
 */
int twheel_mod_within(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
		      uint64_t interval_ns, uint64_t tolerance_ns, uint32_t flags);

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

int twheel_submit_sized(struct twheel *twheel, struct twheel_op *ops, uint32_t nr, size_t size);

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
static inline int twheel_submit(struct twheel *twheel, struct twheel_op *ops, uint32_t nr)
{
	return twheel_submit_sized(twheel, ops, nr, sizeof(*ops));
}

int twheel_read_sized(struct twheel *twheel, struct twheel_event *events, uint32_t nr,
		      int timeout_ms, size_t size);

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
static inline int twheel_read(struct twheel *twheel, struct twheel_event *events, uint32_t nr,
			      int timeout_ms)
{
	return twheel_read_sized(twheel, events, nr, timeout_ms, sizeof(*events));
}

int twheel_query_sized(struct twheel *twheel, uint64_t handle, uint32_t flags,
		       struct twheel_op *op, size_t size);

/**
 * twheel_query() - tell the state of a timer, and change nothing
 * @twheel:	the wheel
 * @handle:	the timer
 * @flags:	0, or TWHEEL_F_ABS: tell the deadline and not the time left
 * @op:		filled in: @user_data, @expires_ns, @interval_ns and @tolerance_ns
 *
 * Return: an enum twheel_state, -ENOENT, -EINVAL, -ECHILD.
 */
static inline int twheel_query(struct twheel *twheel, uint64_t handle, uint32_t flags,
			       struct twheel_op *op)
{
	return twheel_query_sized(twheel, handle, flags, op, sizeof(*op));
}

int twheel_drain_sized(struct twheel *twheel, struct twheel_op *ops, uint32_t nr,
		       uint32_t flags, size_t size);

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
static inline int twheel_drain(struct twheel *twheel, struct twheel_op *ops, uint32_t nr,
			       uint32_t flags)
{
	return twheel_drain_sized(twheel, ops, nr, flags, sizeof(*ops));
}

int twheel_get_info_sized(struct twheel *twheel, struct twheel_info *info, size_t size);

/**
 * twheel_get_info() - what the wheel is and holds
 * @twheel:	the wheel
 * @info:	filled in; with the embedded backend @mem_bytes is this process's,
 *		and @nr_wakeups counts how often the timerfd woke a reader
 *
 * Return: 0 or -ECHILD.
 */
static inline int twheel_get_info(struct twheel *twheel, struct twheel_info *info)
{
	return twheel_get_info_sized(twheel, info, sizeof(*info));
}

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

int twheel_get_levels_sized(struct twheel *twheel, struct twheel_levels *levels, size_t size);

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
static inline int twheel_get_levels(struct twheel *twheel, struct twheel_levels *levels)
{
	return twheel_get_levels_sized(twheel, levels, sizeof(*levels));
}

#ifdef __cplusplus
}
#endif

#endif
