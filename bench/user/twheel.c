// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel, watched by epoll: in batches of 256 operations and up to 4096 events. And, as
 * "twheel-single", in calls for one timer each.
 */
#include <fcntl.h>
#include <linux/twheel.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

#define BATCH		256
#define EVENTS		4096

static int fd, epfd;
static u64 *handles;
static struct twheel_op ops[BATCH];
static struct twheel_event events[EVENTS];

static void prepare(u32 n)
{
	handles = get_pages(n * sizeof(*handles));
}

static void release(u32 n)
{
	put_pages(handles, n * sizeof(*handles));
}

static const char *open_wheel(u32 n)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct twheel_info info;

	fd = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	must(fd >= 0);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	must(!epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e));
	must(!ioctl(fd, TWHEEL_IOC_INFO, &info));
	return info.max_timers < n ? "twheel_chardev.max_timers is less" : NULL;
}

static u32 close_wheel(u32 n)
{
	close(epfd);
	close(fd);
	return n;
}

static struct twheel_op op_add(u32 id, u64 deadline)
{
	return (struct twheel_op){
		.op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS, .user_data = id,
		.expires_ns = deadline,
	};
}

static struct twheel_op op_mod(u32 id, u64 deadline)
{
	return (struct twheel_op){
		.op = TWHEEL_OP_MOD, .flags = TWHEEL_F_ABS, .handle = handles[id],
		.expires_ns = deadline,
	};
}

static struct twheel_op op_cancel(u32 id)
{
	return (struct twheel_op){ .op = TWHEEL_OP_CANCEL, .handle = handles[id] };
}

static void submit(u32 nr)
{
	struct twheel_batch batch = {
		.ops = (uintptr_t)ops, .nr = nr, .op_size = sizeof(ops[0]),
	};

	must(!ioctl(fd, TWHEEL_IOC_SUBMIT, &batch));
	must(batch.nr_done == nr && !batch.nr_failed);
}

static u32 batch_of(u32 left)
{
	return left < BATCH ? left : BATCH;
}

static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_add(ids[i + k], deadline[ids[i + k]]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			handles[ids[i + k]] = ops[k].handle;
	}
}

static void rearm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_mod(ids[i + k], deadline[ids[i + k]]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			must(ops[k].res == 1);	/* it was armed */
	}
}

static void cancel(const u32 *ids, u32 nr)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_cancel(ids[i + k]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			must(ops[k].res == 1);
	}
}

static void arm_single(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_add(ids[i], deadline[ids[i]]);

		must(!ioctl(fd, TWHEEL_IOC_ADD, &op));
		handles[ids[i]] = op.handle;
	}
}

static void rearm_single(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_mod(ids[i], deadline[ids[i]]);

		must(ioctl(fd, TWHEEL_IOC_MOD, &op) == 1);
	}
}

static void cancel_single(const u32 *ids, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_cancel(ids[i]);

		must(ioctl(fd, TWHEEL_IOC_CANCEL, &op) == 1);
	}
}

/* epoll_wait() says that there is something, and read() takes it until there is no more. */
static u32 collect_by(u32 *ids, bool wait, u32 most)
{
	struct epoll_event e;
	ssize_t got;
	u32 nr = 0, i;

	must(epoll_wait(epfd, &e, 1, wait ? -1 : 0) >= 0);
	do {
		got = read(fd, events, most * sizeof(events[0]));
		got = got < 0 ? 0 : got / (ssize_t)sizeof(events[0]);
		for (i = 0; i < got; i++)
			ids[nr++] = events[i].user_data;
	} while (got == most);
	return nr;
}

static u32 collect(u32 *ids, bool wait)
{
	return collect_by(ids, wait, EVENTS);
}

static u32 collect_single(u32 *ids, bool wait)
{
	return collect_by(ids, wait, 1);
}

const struct subject twheel_subject = {
	.name = "twheel",
	.prepare = prepare,
	.open = open_wheel,
	.arm = arm,
	.rearm = rearm,
	.cancel = cancel,
	.collect = collect,
	.close = close_wheel,
	.release = release,
};

const struct subject twheel_single_subject = {
	.name = "twheel-single",
	.most = 100000,
	.prepare = prepare,
	.open = open_wheel,
	.arm = arm_single,
	.rearm = rearm_single,
	.cancel = cancel_single,
	.collect = collect_single,
	.close = close_wheel,
	.release = release,
};
