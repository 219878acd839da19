// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The functions of libtwheel.h: they refuse a child of the process that opened the wheel,
 * choose the backend, split what is too long for one call, and wait. The rest
 * is done by kernel.c or embedded.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"

/* The most events one twheel_read() gives, whatever the room. */
#define READ_MAX	65536

/* TWHEEL_KERNEL, TWHEEL_EMBEDDED, 0 if it is all the same, or -EINVAL. */
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

/* Is /dev/twheel not there, not for us, or something else? */
static bool kernel_is_missing(int err)
{
	return err == -ENOENT || err == -ENXIO || err == -ENODEV || err == -EACCES ||
	       err == -EPERM || err == -ENOTTY;
}

static int open_with(const struct twheel_backend *backend, struct twheel **twheel,
		     unsigned int flags, const struct twheel_setup *setup)
{
	int err = backend->open(twheel, flags, setup);

	if (!err)
		(*twheel)->backend = backend;
	return err;
}

int twheel_open(struct twheel **twheel, unsigned int flags, const struct twheel_setup *setup)
{
	static const struct twheel_setup defaults = { .clockid = CLOCK_MONOTONIC };
	u64 family = twheel_family_enter();
	int which = choose(flags), err;

	if (which < 0)
		return which;
	if (!family)
		return -ENOMEM;
	if (!setup)
		setup = &defaults;
	err = -ENOENT;
	if (which != TWHEEL_EMBEDDED)
		err = open_with(&twheel_kernel_backend, twheel, flags, setup);
	if (which != TWHEEL_KERNEL && kernel_is_missing(err))
		err = open_with(&twheel_embedded_backend, twheel, flags, setup);
	if (!err)
		(*twheel)->family = family;
	return err;
}

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

static int do_op(struct twheel *twheel, struct twheel_op *op)
{
	return is_ours(twheel->family) ? twheel->backend->op(twheel, op) : -ECHILD;
}

int twheel_add(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
	       uint64_t expires_ns, uint64_t interval_ns, uint32_t flags)
{
	struct twheel_op op = { .op = TWHEEL_OP_ADD, .flags = flags, .user_data = user_data,
				.expires_ns = expires_ns, .interval_ns = interval_ns };
	int rc = do_op(twheel, &op);

	if (rc >= 0)
		*handle = op.handle;
	return rc;
}

int twheel_mod(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
	       uint64_t interval_ns, uint32_t flags)
{
	struct twheel_op op = { .op = TWHEEL_OP_MOD, .flags = flags, .handle = handle,
				.expires_ns = expires_ns, .interval_ns = interval_ns };

	return do_op(twheel, &op);
}

int twheel_cancel(struct twheel *twheel, uint64_t handle, uint64_t *user_data)
{
	struct twheel_op op = { .op = TWHEEL_OP_CANCEL, .handle = handle };
	int rc = do_op(twheel, &op);

	if (rc >= 0 && user_data)
		*user_data = op.user_data;
	return rc;
}

int twheel_query(struct twheel *twheel, uint64_t handle, uint32_t flags, struct twheel_op *op)
{
	*op = (struct twheel_op) { .op = TWHEEL_OP_QUERY, .flags = flags, .handle = handle };
	return do_op(twheel, op);
}

int twheel_drain(struct twheel *twheel, struct twheel_op *ops, uint32_t nr, uint32_t flags)
{
	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!nr || (flags & ~TWHEEL_F_ABS))
		return -EINVAL;
	return twheel->backend->drain(twheel, ops, nr < TWHEEL_BATCH_MAX ? nr : TWHEEL_BATCH_MAX,
				      flags);
}

int twheel_submit(struct twheel *twheel, struct twheel_op *ops, uint32_t nr)
{
	int bad = 0;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (nr > INT32_MAX)
		return -EINVAL;
	while (nr) {
		u32 most = nr < TWHEEL_BATCH_MAX ? nr : TWHEEL_BATCH_MAX;
		int rc = twheel->backend->submit(twheel, ops, most);

		if (rc < 0)
			return rc;
		bad += rc;
		ops += most;
		nr -= most;
	}
	return bad;
}

/*
 * Wait until @fd is readable, for @ns, which is -1 for ever, and is set to what is left
 * of it.
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

int twheel_read(struct twheel *twheel, struct twheel_event *events, uint32_t nr, int timeout_ms)
{
	s64 ns = timeout_ms < 0 ? -1 : timeout_ms * (s64)NSEC_PER_MSEC;
	int rc;

	if (!is_ours(twheel->family))
		return -ECHILD;
	if (!nr || timeout_ms < -1)
		return -EINVAL;
	if (nr > READ_MAX)
		nr = READ_MAX;
	for (;;) {
		rc = twheel->backend->read(twheel, events, nr);
		if (rc != -EAGAIN || !ns)
			return rc;
		rc = wait_readable(twheel->fd, &ns);
		if (rc)
			return rc;
	}
}

int twheel_get_info(struct twheel *twheel, struct twheel_info *info)
{
	return is_ours(twheel->family) ? twheel->backend->info(twheel, info) : -ECHILD;
}

int twheel_get_levels(struct twheel *twheel, struct twheel_levels *levels)
{
	if (!is_ours(twheel->family))
		return -ECHILD;
	return twheel->backend->levels ? twheel->backend->levels(twheel, levels) : -EOPNOTSUPP;
}
