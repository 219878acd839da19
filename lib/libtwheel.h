/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * libtwheel: millions of timers on one descriptor, with or without the module.
 *
 * A struct twheel is a set of timers. It has one of two backends, which behave the same, down to
 * the errno, except where this file says otherwise:
 *
 *	kernel		an open /dev/twheel
 *	embedded	the kernel module's own wheel, compiled into this process
 *			and driven by one timerfd: nothing to load, no privilege
 *
 * If the device can be opened, it is used, unless a flag of twheel_open() or the environment
 * (TWHEEL_BACKEND=kernel or TWHEEL_BACKEND=embedded) asks for one of the two.
 *
 * Operations, events, flags and promises are those of <linux/twheel.h>. Read that first: a timer
 * never fires early; events come in the order of ticks; each time that a timer is armed, it gives
 * exactly one event, unless it is cancelled, re-armed or drained first; there is no event after a
 * cancel that returned 0 or 1.
 *
 * All times are in ns. A function that fails returns a negative errno and has changed nothing.
 * twheel_submit() is the one exception, see there. The errors are those of <linux/twheel.h>, and
 *	ECHILD		the wheel was opened by an ancestor of this process, see twheel_close()
 *	EMFILE, ENFILE	no descriptor is left: twheel_open()
 *	EOPNOTSUPP	the backend has no such call: twheel_get_levels()
 *
 * Growth
 *   In later versions members may be added at the end of a structure; no member moves. So the
 *   library has to know the size that the program was compiled with: each function NAME() that
 *   takes a structure is inline, and passes that size to NAME_sized(). Programs in other languages
 *   call NAME_sized() themselves. Its parameters are those of NAME(), followed by the size; for
 *   an array the size is the distance from one element to the next.
 *
 *     - If the size is less than the library's, the library takes the missing members as 0 when it
 *       reads the structure, and does not write them when it fills the structure in.
 *     - If the size is more, the library does not know the last part. When it reads the structure,
 *       that part must be 0, else the call fails with -E2BIG. When it fills the structure in, it
 *       sets that part to 0.
 *     - If the size is less than in version 1.0.0, more than 4096, or not a multiple of the
 *       structure's alignment, the call fails with -EINVAL.
 *
 *   The size is checked even if the pointer to the structure is NULL.
 *
 *   By these rules a program works with a library that is newer or older than the header that the
 *   program was compiled with. twheel_version() returns the library's version.
 *
 * Context: Any thread may call all functions at any time, several threads on one wheel too. There
 * are three exceptions. No function may be called from a signal handler. While twheel_close() runs,
 * no other call on that wheel may be under way. On a wheel with TWHEEL_ONE_THREAD no two calls may
 * overlap.
 *
 * The embedded backend takes 63 KiB for a wheel, and 64 bytes for a timer, in blocks of 512 timers.
 * It keeps this memory until twheel_close(). Each operation is O(1). It makes a system call only if
 * the next event becomes earlier, if the descriptor is readable without an event, or if it arms a
 * timer with TWHEEL_F_CANCEL_ON_SET. There is no periodic wake-up: the timerfd is set for the next
 * event only.
 *
 * Apart from what is said at single functions and flags, the embedded backend differs from the
 * kernel's in three things: it has no alarm clocks, for which twheel_open()
 * returns -EINVAL; it ignores slack_ns; and a bad pointer causes SIGSEGV, as in any function, where
 * the kernel's backend returns -EFAULT.
 */
#ifndef LIBTWHEEL_H
#define LIBTWHEEL_H

#include <stddef.h>
#include <stdint.h>

#include <linux/twheel.h>

/*
 * The version of this header, and of all of twheel; between two releases, that of the last one.
 * `make release` changes these three lines, and the copies in other files. `make lint` checks that
 * the copies are the same.
 */
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
 * TWHEEL_VERSION is the version of the header that the program was compiled with.
 *
 * Return: as TWHEEL_VERSION_OF(); never less than 1.0.0.
 */
uint32_t twheel_version(void);

/*
 * Which backend to use. If only one of these flags is given, the wheel uses that backend. If both
 * are given, the wheel uses the kernel's, or, if there is no /dev/twheel or this process may not
 * open it, the embedded one. If neither is given, the environment variable TWHEEL_BACKEND names the
 * backend; if the variable is empty or not set, it is as if both flags were given. A process that
 * runs with more privilege than its caller ignores the variable, see secure_getenv(3).
 */
#define TWHEEL_KERNEL		0x1
#define TWHEEL_EMBEDDED		0x2

/*
 * The program promises that no two calls on this wheel overlap: one thread uses it, or the program
 * has a lock of its own. Then the embedded backend takes no lock.
 *
 * If the wheel is on CLOCK_MONOTONIC, some calls then read CLOCK_MONOTONIC_COARSE, because that is
 * faster: twheel_cancel(); and twheel_add(), twheel_mod() and their _within() forms, if they have
 * TWHEEL_F_ABS. So TWHEEL_F_ABS is the fastest way to arm a timer. The coarse clock is mostly some
 * ms behind, and more if a virtual machine was not scheduled. By that clock these calls judge
 * whether the timer is still armed: they may return 1, or re-arm it with TWHEEL_F_PENDING, though
 * its deadline has just passed. Nothing else changes: no timer fires early, and a delay counts from
 * the exact time. The kernel's backend ignores the flag.
 */
#define TWHEEL_ONE_THREAD	0x4

int twheel_open_sized(struct twheel **twheel, unsigned int flags,
		      const struct twheel_setup *setup, size_t size);

/**
 * twheel_open() - make an empty wheel
 * @twheel:	filled in
 * @flags:	TWHEEL_KERNEL, TWHEEL_EMBEDDED, both, or 0, see above.
 *		TWHEEL_ONE_THREAD may be added to any of these
 * @setup:	clock, tick, and the most timers, see <linux/twheel.h>; NULL for the
 *		defaults
 *
 * Return: 0, -EINVAL for a flag, environment or setup that is not allowed, -E2BIG, -ENOMEM,
 * -EMFILE, -ENFILE, or the errno with which opening or setting up /dev/twheel failed. For an alarm
 * clock without CAP_WAKE_ALARM that is -EPERM; or -EINVAL if the embedded backend was allowed, too.
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
 * No other call on the wheel may be under way or follow. In a child after fork(), twheel_close()
 * closes the child's descriptor and does no more: the parent's wheel is not affected, and the
 * memory is freed by the next exec() or exit(). twheel_fd() and twheel_backend() work in the child;
 * all other calls fail there with -ECHILD.
 */
void twheel_close(struct twheel *twheel);

/**
 * twheel_fd() - what to poll
 * @twheel:	the wheel
 *
 * The descriptor is readable (POLLIN) while an event is ready. Poll it, select() it, give it to
 * epoll, but read it only through twheel_read().
 *
 * With the embedded backend the descriptor may be readable with no event: the timer that would have
 * been next was cancelled, or the wheel has timers to move. Treat -EAGAIN as normal. If epoll
 * reports edges (EPOLLET), read until -EAGAIN after each edge.
 *
 * Return: the descriptor. It belongs to the wheel: do not close it.
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
 * @interval_ns: 0, or the period after the first expiry, at least a tick
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
 * Timers that may be late share ticks, so that a process is woken once for many of them. This is
 * for timeouts whose users do not notice a little lateness.
 *
 * Return: as twheel_add(); -E2BIG if the loaded module is of a version that had no tolerances yet.
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
 * An event that was not read yet is dropped. The deadline, period and flags that are given replace
 * the old ones.
 *
 * Return: 1 if it was armed, 0 if not, -EINVAL, -ENOENT, -ECHILD; -EALREADY if another thread is
 * reading an event of the timer, in the cases that <linux/twheel.h> lists for EALREADY.
 */
int twheel_mod(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
	       uint64_t interval_ns, uint32_t flags);

/**
 * twheel_mod_within() - arm a timer anew, so that it may be late
 * @twheel:	the wheel
 * @handle:	the timer
 * @expires_ns:	as in twheel_add()
 * @interval_ns: as in twheel_add()
 * @tolerance_ns: as in twheel_add_within(). It replaces the old tolerance. twheel_mod() sets the
 *		tolerance to 0: the timer is exact again
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
 * @user_data:	filled in if the call returns 0 or 1; may be NULL
 *
 * Return: 1 if it was armed, 0 if its event was dropped or it was idle, -ENOENT,
 * -EALREADY if another thread is reading its event, -ECHILD.
 */
int twheel_cancel(struct twheel *twheel, uint64_t handle, uint64_t *user_data);

int twheel_submit_sized(struct twheel *twheel, struct twheel_op *ops, uint32_t nr, size_t size);

/**
 * twheel_submit() - many operations in one call
 * @twheel:	the wheel
 * @ops:	the operations. The result of each is stored in its @res
 * @nr:		how many, up to 2^31 - 1
 *
 * The operations are done in order. If one fails, the others are still done. Signals do not stop
 * the call.
 *
 * Return: how many have a negative @res. -EINVAL or -ECHILD: nothing was done. -EFAULT, if @ops is
 * not the caller's memory, or -ENOMEM: some may have been done.
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
 * @timeout_ms:	how long to wait for the first: 0 not at all, -1 for ever; -EINVAL if less than -1
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
 * @flags:	0 for the time left, or TWHEEL_F_ABS for the deadline
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
 * @ops:	filled in with operations that would add the timers again, except that @handle is
 *		the old handle: set it to 0, and twheel_submit() them
 * @nr:		how many there is room for, at least 1; no more than 65536 are drained
 * @flags:	0 for the time left, or TWHEEL_F_ABS for the deadline
 *
 * Ready events and idle timers stay. To drain all, call this until it returns 0.
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
 * @info:	filled in; with the embedded backend @mem_bytes is what the wheel takes of this
 *		process's memory, and @nr_wakeups counts the reads that found the timerfd readable
 *
 * Return: 0 or -ECHILD.
 */
static inline int twheel_get_info(struct twheel *twheel, struct twheel_info *info)
{
	return twheel_get_info_sized(twheel, info, sizeof(*info));
}

/*
 * The five levels of a wheel, and the far timers beyond them. If a tick is a second, the buckets of
 * the levels are seconds, minutes, hours, days and years.
 */
#define TWHEEL_LEVELS	6

/**
 * struct twheel_levels - where the timers of a wheel are
 * @timers:	how many timers each level has
 * @buckets:	how many buckets of each level have timers. The levels have 120, 120, 48, 730 and
 *		100 buckets, and the far timers have 40 classes
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
 * This is for tools that show a wheel. It works with the embedded backend only: root can read the
 * same numbers of the kernel's wheels in /sys/kernel/debug/twheel/bases, which twheel top shows.
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
