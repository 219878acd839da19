// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The kernel backend: /dev/twheel. The module does the work. What is left here is to repeat calls
 * that a signal interrupted, and to choose the ioctl. There is nothing to lock: the module locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend.h"

#define DEVICE	"/dev/twheel"

/* ioctl(), with the error as a negative number. */
static int call(int fd, unsigned long request, void *arg)
{
	int rc;

	/* A call that failed has changed nothing, so it can be repeated. */
	do
		rc = ioctl(fd, request, arg);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : rc;
}

/*
 * If a signal or a fault ends a call before the last operation, continue with the rest. Each call
 * that succeeds has done at least one operation, so this ends. Returns how many failed, or an error
 * of a call that did none.
 */
static int kernel_submit(struct twheel *twheel, struct twheel_op *ops, u32 nr)
{
	u32 done = 0, bad = 0;

	while (done < nr) {
		struct twheel_batch batch = { .ops = (uintptr_t)(ops + done),
					      .nr = nr - done, .op_size = sizeof(*ops) };
		int rc = call(twheel->fd, TWHEEL_IOC_SUBMIT, &batch);

		if (rc < 0)
			return rc;
		done += batch.nr_done;
		bad += batch.nr_failed;
	}
	return (int)bad;
}

/*
 * Do one operation by the ioctl for it, which is cheaper than a batch of one. libtwheel.c has set
 * op->op, so it is one of these. The ioctl returns what would be op->res.
 */
static int kernel_op(struct twheel *twheel, struct twheel_op *op)
{
	static const unsigned long requests[] = {
		[TWHEEL_OP_ADD]		= TWHEEL_IOC_ADD,
		[TWHEEL_OP_MOD]		= TWHEEL_IOC_MOD,
		[TWHEEL_OP_CANCEL]	= TWHEEL_IOC_CANCEL,
		[TWHEEL_OP_QUERY]	= TWHEEL_IOC_QUERY,
	};

	return call(twheel->fd, requests[op->op], op);
}

/* The descriptor does not block, so a signal cannot interrupt this. -EAGAIN if none is ready. */
static int kernel_read(struct twheel *twheel, struct twheel_event *events, u32 nr)
{
	ssize_t got = read(twheel->fd, events, nr * sizeof(*events));

	return got < 0 ? -errno : (int)((size_t)got / sizeof(*events));
}

/* A signal may end the call early, without an error: the caller drains until the result is 0. */
static int kernel_drain(struct twheel *twheel, struct twheel_op *ops, u32 nr, u32 flags)
{
	struct twheel_batch batch = { .ops = (uintptr_t)ops, .nr = nr,
				      .op_size = sizeof(*ops), .flags = flags };
	int rc = call(twheel->fd, TWHEEL_IOC_DRAIN, &batch);

	return rc < 0 ? rc : (int)batch.nr_done;
}

/*
 * The number of the ioctl carries the size that struct twheel_info had when the library was
 * compiled. A newer kernel accepts an older size.
 */
static int kernel_info(struct twheel *twheel, struct twheel_info *info)
{
	return call(twheel->fd, TWHEEL_IOC_INFO, info);
}

/*
 * Open the device, and set it up. INFO comes first: it fails if this is not twheel. Returns the
 * descriptor or an error.
 */
static int device_open(const struct twheel_setup *setup)
{
	struct twheel_setup copy = *setup;
	struct twheel_info info;
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = call(fd, TWHEEL_IOC_INFO, &info);
	if (!rc)
		rc = call(fd, TWHEEL_IOC_SETUP, &copy);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/*
 * Make a wheel of the device. The flag TWHEEL_ONE_THREAD makes no difference: the module locks in
 * any case. Returns 0 or an error, with nothing left open; libtwheel.c fills in the other members.
 */
static int kernel_open(struct twheel **twheel, unsigned int flags,
		       const struct twheel_setup *setup)
{
	struct twheel *new = malloc(sizeof(*new));
	int fd;

	(void)flags;
	if (!new)
		return -ENOMEM;
	fd = device_open(setup);
	if (fd < 0) {
		free(new);
		return fd;
	}
	new->fd = fd;
	*twheel = new;
	return 0;
}

/* Closing the last descriptor of the file frees all its timers. */
static void kernel_close(struct twheel *twheel)
{
	close(twheel->fd);
	free(twheel);
}

const struct twheel_backend twheel_kernel_backend = {
	.name	= "kernel",
	.open	= kernel_open,
	.close	= kernel_close,
	.op	= kernel_op,
	.submit	= kernel_submit,
	.read	= kernel_read,
	.drain	= kernel_drain,
	.info	= kernel_info,
};
