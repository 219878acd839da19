// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel, watched by epoll, in batches of 256 operations and up to 4096 events. To arm, re-arm
 * or cancel a single timer, the call for one timer is used.
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

static void arm_one(u32 id, u64 deadline)
{
	struct twheel_op op = op_add(id, deadline);

	must(!ioctl(fd, TWHEEL_IOC_ADD, &op));
	handles[id] = op.handle;
}

static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	if (nr == 1) {
		arm_one(ids[0], deadline[ids[0]]);
		return;
	}
	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_add(ids[i + k], deadline[ids[i + k]]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			handles[ids[i + k]] = ops[k].handle;
	}
}

static void rearm_one(u32 id, u64 deadline)
{
	struct twheel_op op = op_mod(id, deadline);

	must(ioctl(fd, TWHEEL_IOC_MOD, &op) == 1);	/* it was armed */
}

static void rearm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	if (nr == 1) {
		rearm_one(ids[0], deadline[ids[0]]);
		return;
	}
	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_mod(ids[i + k], deadline[ids[i + k]]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			must(ops[k].res == 1);
	}
}

static void cancel_one(u32 id)
{
	struct twheel_op op = op_cancel(id);

	must(ioctl(fd, TWHEEL_IOC_CANCEL, &op) == 1);
}

static void cancel(const u32 *ids, u32 nr)
{
	u32 i, k;

	if (nr == 1) {
		cancel_one(ids[0]);
		return;
	}
	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++)
			ops[k] = op_cancel(ids[i + k]);
		submit(k);
		for (k = 0; k < batch_of(nr - i); k++)
			must(ops[k].res == 1);
	}
}

/*
 * epoll_wait() says that there are events, and read() takes them. If there were fewer than it had
 * room for, there are no more.
 */
static u32 collect(u32 *ids, bool wait)
{
	struct epoll_event e;
	ssize_t got;
	u32 nr = 0, i;

	must(epoll_wait(epfd, &e, 1, wait ? -1 : 0) >= 0);
	do {
		got = read(fd, events, sizeof(events));
		got = got < 0 ? 0 : got / (ssize_t)sizeof(events[0]);
		for (i = 0; i < got; i++)
			ids[nr++] = events[i].user_data;
	} while (got == EVENTS && nr + EVENTS <= collect_room);
	return nr;
}

static bool every(u32 id, u64 period)
{
	struct twheel_op op = {
		.op = TWHEEL_OP_ADD, .user_data = id, .expires_ns = period, .interval_ns = period,
	};

	must(!ioctl(fd, TWHEEL_IOC_ADD, &op));
	return true;
}

const struct subject twheel_subject = {
	.name = "twheel",
	.prepare = prepare,
	.open = open_wheel,
	.arm = arm,
	.rearm = rearm,
	.cancel = cancel,
	.collect = collect,
	.every = every,
	.close = close_wheel,
	.release = release,
};
