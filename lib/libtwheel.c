// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The functions of libtwheel.h. They refuse a child of the process that opened the wheel, choose
 * the backend, split arrays that are too long for one call, translate the structures of programs
 * that were compiled with another version of the header, and wait. The rest is in kernel.c and
 * embedded.c.
 *
 * Locking: none here. A struct twheel does not change between open and close, and each backend
 * locks what it has.
 *
 * libtwheel.h says what each function guarantees. Those that end in _sized get as @size the size of
 * the caller's structure: see sized.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"

/* The most events that one twheel_read() returns, however much room there is. */
#define READ_MAX	65536

uint32_t twheel_version(void)
{
	return TWHEEL_VERSION;
}

/*
 * Which backend the flags ask for, or, if they do not, the environment: TWHEEL_KERNEL,
 * TWHEEL_EMBEDDED, 0 for either, or -EINVAL.
 */
static int choose(unsigned int flags)
{
	const char *name = secure_getenv("TWHEEL_BACKEND");

	if (flags & ~(TWHEEL_KERNEL | TWHEEL_EMBEDDED | TWHEEL_ONE_THREAD))
		return -EINVAL;
	flags &= ~TWHEEL_ONE_THREAD;
	if (flags == TWHEEL_KERNEL || flags == TWHEEL_EMBEDDED)
		return (int)flags;
	if (flags || !name || !*name)
		return 0;
	if (!strcmp(name, "kernel"))
		return TWHEEL_KERNEL;
	if (!strcmp(name, "embedded"))
		return TWHEEL_EMBEDDED;
	return -EINVAL;
}

/* Does @err mean that there is no /dev/twheel that this process may use? Then embed the wheel. */
static bool kernel_is_missing(int err)
{
	return err == -ENOENT || err == -ENXIO || err == -ENODEV || err == -EACCES ||
	       err == -EPERM || err == -ENOTTY;
}

/* Open a wheel of @backend. Returns 0 or an error. */
static int open_with(const struct twheel_backend *backend, struct twheel **twheel,
		     unsigned int flags, const struct twheel_setup *setup)
{
	int err = backend->open(twheel, flags, setup);

	if (!err)
		(*twheel)->backend = backend;
	return err;
}

/* Open a wheel with the backend that was asked for. If none was, try the device, then embed it. */
static int open_any(struct twheel **twheel, unsigned int flags, const struct twheel_setup *setup)
{
	unsigned long family = twheel_family_enter();
	int which = choose(flags), err;

	if (which < 0)
		return which;
	if (!family)
		return -ENOMEM;
	err = -ENOENT;
	if (which != TWHEEL_EMBEDDED)
		err = open_with(&twheel_kernel_backend, twheel, flags, setup);
	if (which != TWHEEL_KERNEL && kernel_is_missing(err))
		err = open_with(&twheel_embedded_backend, twheel, flags, setup);
	if (!err)
		(*twheel)->family = family;
	return err;
}

int twheel_open_sized(struct twheel **twheel, unsigned int flags,
		      const struct twheel_setup *theirs, size_t size)
{
	struct twheel_setup setup = { .clockid = CLOCK_MONOTONIC };
	int err = 0;

	if (!SIZED_OK(size, struct twheel_setup, reserved))
		return -EINVAL;
	if (theirs)
		err = sized_take(&setup, sizeof(setup), theirs, size);
	return err ?: open_any(twheel, flags, &setup);
}

/*
 * A child of the process that opened the wheel closes only its copy of the descriptor: the
 * backend's lock may be held by a thread that the child does not have.
 */
void twheel_close(struct twheel *twheel)
{
	if (!twheel)
		return;
	if (is_ours(twheel->family))
		twheel->backend->close(twheel);
	else
		close(twheel->fd);
}

int twheel_fd(const struct twheel *twheel)
{
	return twheel->fd;
}

const char *twheel_backend(const struct twheel *twheel)
{
	return twheel->backend->name;
}

/* One operation, in any thread of the process that opened the wheel. */
static int do_op(struct twheel *twheel, struct twheel_op *op)
{
	return is_ours(twheel->family) ? twheel->backend->op(twheel, op) : -ECHILD;
}

/* ADD. Inlined, so that twheel_add() costs nothing for the tolerance that it does not have. */
static inline int add(struct twheel *twheel, u64 *handle, u64 user_data, u64 expires_ns,
		      u64 interval_ns, u64 tolerance_ns, u32 flags)
{
	struct twheel_op op = { .op = TWHEEL_OP_ADD, .flags = flags, .user_data = user_data,
				.expires_ns = expires_ns, .interval_ns = interval_ns,
				.tolerance_ns = tolerance_ns };
	int rc = do_op(twheel, &op);

	if (rc >= 0)
		*handle = op.handle;
	return rc;
}

int twheel_add(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
	       uint64_t expires_ns, uint64_t interval_ns, uint32_t flags)
{
	return add(twheel, handle, user_data, expires_ns, interval_ns, 0, flags);
}

int twheel_add_within(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
		      uint64_t expires_ns, uint64_t interval_ns, uint64_t tolerance_ns,
		      uint32_t flags)
{
	return add(twheel, handle, user_data, expires_ns, interval_ns, tolerance_ns, flags);
}

/* MOD. Inlined as add() is. */
static inline int mod(struct twheel *twheel, u64 handle, u64 expires_ns, u64 interval_ns,
		      u64 tolerance_ns, u32 flags)
{
	struct twheel_op op = { .op = TWHEEL_OP_MOD, .flags = flags, .handle = handle,
				.expires_ns = expires_ns, .interval_ns = interval_ns,
				.tolerance_ns = tolerance_ns };

	return do_op(twheel, &op);
}

int twheel_mod(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
	       uint64_t interval_ns, uint32_t flags)
{
	return mod(twheel, handle, expires_ns, interval_ns, 0, flags);
}

int twheel_mod_within(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
		      uint64_t interval_ns, uint64_t tolerance_ns, uint32_t flags)
{
	return mod(twheel, handle, expires_ns, interval_ns, tolerance_ns, flags);
}

int twheel_cancel(struct twheel *twheel, uint64_t handle, uint64_t *user_data)
{
	struct twheel_op op = { .op = TWHEEL_OP_CANCEL, .handle = handle };
	int rc = do_op(twheel, &op);

	if (rc >= 0 && user_data)
		*user_data = op.user_data;
	return rc;
}

/* Can a program have been compiled with a struct twheel_op of @size bytes? */
static bool op_size_ok(size_t size)
{
	return SIZED_OK(size, struct twheel_op, reserved);
}

int twheel_query_sized(struct twheel *twheel, uint64_t handle, uint32_t flags,
		       struct twheel_op *theirs, size_t size)
{
	struct twheel_op op = { .op = TWHEEL_OP_QUERY, .flags = flags, .handle = handle };
	int rc = op_size_ok(size) || !is_ours(twheel->family) ? do_op(twheel, &op) : -EINVAL;

	if (rc >= 0)
		sized_give(theirs, size, &op, sizeof(op));
	return rc;
}

/* Elements of another size are translated in pieces of this many: a u64 has a bit for each. */
#define SOME	64

/* How many of @nr elements fit into one piece. */
static u32 some_of(u32 nr)
{
	return nr < SOME ? nr : SOME;
}

/* Drain into elements of @size bytes. Timers that were drained before an error are returned. */
static int drain_other(struct twheel *twheel, void *theirs, u32 nr, u32 flags, size_t size)
{
	struct twheel_op some[SOME];
	u32 done = 0;
	int n;

	do {
		n = twheel->backend->drain(twheel, some, some_of(nr - done), flags);
		for (int i = 0; i < n; i++)
			sized_give(sized_nth(theirs, done++, size), size, &some[i], sizeof(*some));
	} while (n > 0 && done < nr);
	return done ? (int)done : n;
}

int twheel_drain_sized(struct twheel *twheel, struct twheel_op *ops, uint32_t nr,
		       uint32_t flags, size_t size)
{
	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!nr || (flags & ~TWHEEL_F_ABS) || !op_size_ok(size))
		return -EINVAL;
	if (nr > TWHEEL_BATCH_MAX)
		nr = TWHEEL_BATCH_MAX;
	if (size != sizeof(*ops))
		return drain_other(twheel, ops, nr, flags, size);
	return twheel->backend->drain(twheel, ops, nr, flags);
}

/* Write back an operation. If it failed, only its result changes. */
static void op_give(struct twheel_op *theirs, size_t size, const struct twheel_op *op)
{
	if (op->res >= 0)
		sized_give(theirs, size, op, sizeof(*op));
	else
		theirs->res = op->res;
}

/*
 * Submit at most SOME operations of another size. If one has a field that this version does not
 * know and that is not 0, the backend gets an empty one in its place, which it refuses, and its
 * result is -E2BIG.
 */
static int submit_some(struct twheel *twheel, void *theirs, u32 nr, size_t size)
{
	struct twheel_op some[SOME];
	u64 unknown = 0;
	int rc;

	for (u32 i = 0; i < nr; i++)
		if (sized_take(&some[i], sizeof(*some), sized_nth(theirs, i, size), size)) {
			some[i] = (struct twheel_op) { 0 };
			unknown |= 1ULL << i;
		}
	rc = twheel->backend->submit(twheel, some, nr);
	for (u32 i = 0; rc >= 0 && i < nr; i++) {
		if (unknown >> i & 1)
			some[i].res = -E2BIG;
		op_give(sized_nth(theirs, i, size), size, &some[i]);
	}
	return rc;
}

/* Submit at most TWHEEL_BATCH_MAX operations. Returns how many failed, or an error. */
static int submit(struct twheel *twheel, struct twheel_op *ops, u32 nr, size_t size)
{
	int bad = 0;

	if (size == sizeof(*ops))
		return twheel->backend->submit(twheel, ops, nr);
	for (u32 done = 0; done < nr; done += SOME) {
		int rc = submit_some(twheel, sized_nth(ops, done, size), some_of(nr - done), size);

		if (rc < 0)
			return rc;
		bad += rc;
	}
	return bad;
}

/*
 * If this fails with -EFAULT or -ENOMEM, some operations may have been done, as libtwheel.h says.
 */
int twheel_submit_sized(struct twheel *twheel, struct twheel_op *ops, uint32_t nr, size_t size)
{
	int bad = 0;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (nr > INT32_MAX || !op_size_ok(size))
		return -EINVAL;
	while (nr) {
		u32 most = nr < TWHEEL_BATCH_MAX ? nr : TWHEEL_BATCH_MAX;
		int rc = submit(twheel, ops, most, size);

		if (rc < 0)
			return rc;
		bad += rc;
		ops = sized_nth(ops, most, size);
		nr -= most;
	}
	return bad;
}

/*
 * Wait until @fd is readable, for at most *@ns, or for ever if that is -1. *@ns becomes what is
 * left of that time. Returns 0, -EAGAIN if the time is over, or another error.
 */
static int wait_readable(int fd, s64 *ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 start = twheel_clock(CLOCK_MONOTONIC), gone;
	struct timespec ts = { .tv_sec = (time_t)(*ns / (s64)NSEC_PER_SEC),
			       .tv_nsec = (long)(*ns % (s64)NSEC_PER_SEC) };
	int rc = ppoll(&p, 1, *ns < 0 ? NULL : &ts, NULL);

	if (rc < 0)
		return -errno;
	gone = twheel_clock(CLOCK_MONOTONIC) - start;
	if (*ns >= 0)
		*ns = gone < (u64)*ns ? *ns - (s64)gone : 0;
	return rc ? 0 : -EAGAIN;
}

/* Read the events that are ready, into elements of @size bytes, without waiting. */
static int read_ready(struct twheel *twheel, struct twheel_event *events, u32 nr, size_t size)
{
	struct twheel_event some[SOME];
	int n;

	if (size == sizeof(*events))
		return twheel->backend->read(twheel, events, nr);
	n = twheel->backend->read(twheel, some, some_of(nr));
	for (int i = 0; i < n; i++)
		sized_give(sized_nth(events, (u32)i, size), size, &some[i], sizeof(*some));
	return n;
}

/*
 * Read first and wait then: most calls find events. poll() may also return with none, because
 * another thread was faster, or because the embedded wheel had only timers to move; then wait for
 * the rest of the time.
 */
int twheel_read_sized(struct twheel *twheel, struct twheel_event *events, uint32_t nr,
		      int timeout_ms, size_t size)
{
	s64 ns = timeout_ms < 0 ? -1 : timeout_ms * (s64)NSEC_PER_MSEC;
	int rc;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!nr || timeout_ms < -1 || !SIZED_OK(size, struct twheel_event, flags))
		return -EINVAL;
	if (nr > READ_MAX)
		nr = READ_MAX;
	for (;;) {
		rc = read_ready(twheel, events, nr, size);
		if (rc != -EAGAIN || !ns)
			return rc;
		rc = wait_readable(twheel->fd, &ns);
		if (rc)
			return rc;
	}
}

int twheel_get_info_sized(struct twheel *twheel, struct twheel_info *theirs, size_t size)
{
	struct twheel_info info;
	int err;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!SIZED_OK(size, struct twheel_info, nr_deferred))
		return -EINVAL;
	err = twheel->backend->info(twheel, &info);
	if (!err)
		sized_give(theirs, size, &info, sizeof(info));
	return err;
}

int twheel_get_levels_sized(struct twheel *twheel, struct twheel_levels *theirs, size_t size)
{
	struct twheel_levels levels;
	int err;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!SIZED_OK(size, struct twheel_levels, buckets))
		return -EINVAL;
	if (!twheel->backend->levels)
		return -EOPNOTSUPP;
	err = twheel->backend->levels(twheel, &levels);
	if (!err)
		sized_give(theirs, size, &levels, sizeof(levels));
	return err;
}
