// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * SUBMIT and DRAIN as commands of io_uring.
 *
 * They do what the ioctls do, which is tested elsewhere. These tests are about what io_uring adds.
 * A command is executed by the caller's task, by a worker, or by the thread of IORING_SETUP_SQPOLL.
 * It is part of a chain of links, or is cancelled. Its ring ends while it waits. After fork() two
 * processes have the ring.
 *
 * A command waits while another call uses the file. In these tests the other call hangs: it touches
 * memory whose page never comes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tap.h"
#include "ring.h"

#define ENTRIES		64
#define OPS		200		/* more than are done in one lock hold */
#define EV_SIZE		((int)sizeof(struct twheel_event))

static struct ring ring;
static struct twheel_op ops[OPS];

static struct twheel_uring *command(u32 cmd_op, int fd, u32 nr, u64 data,
				    struct io_uring_sqe **sqe)
{
	struct io_uring_sqe *s = ring_sqe(&ring, IORING_OP_URING_CMD, fd, data);

	if (sqe)
		*sqe = s;
	return ring_command(s, cmd_op, ops, nr);
}

/* The result of request @data, which must be the next to complete. */
static int result_of(u64 data, int ms)
{
	struct io_uring_cqe cqe;

	if (!ring_wait(&ring, &cqe, ms))
		return -ETIME;
	CHECK_EQ(cqe.user_data, data);
	CHECK_EQ(cqe.flags, 0);
	return cqe.res;
}

/* Submit all that was filled in. Returns the result of @data, which must be the only completion. */
static int go(u64 data)
{
	CHECK(ring_enter(&ring, 0) >= 0);
	return result_of(data, WAIT_MS);
}

static int do_command(u32 cmd_op, int fd, u32 nr)
{
	command(cmd_op, fd, nr, 1, NULL);
	return go(1);
}

static void fill_adds(u32 nr, u64 delay)
{
	memset(ops, 0, sizeof(ops));
	for (u32 i = 0; i < nr; i++)
		ops[i] = (struct twheel_op){
			.op = TWHEEL_OP_ADD, .expires_ns = delay, .user_data = i };
}

/* Fill in operations on the same timers, by handle. */
static void refill(u32 nr, u32 op, u64 delay)
{
	for (u32 i = 0; i < nr; i++)
		ops[i] = (struct twheel_op){ .op = op, .handle = ops[i].handle,
					     .expires_ns = delay };
}

static void expect_res(u32 nr, int res)
{
	u32 wrong = 0;

	for (u32 i = 0; i < nr; i++)
		wrong += ops[i].res != res || ops[i].reserved ||
			 (ops[i].op != TWHEEL_OP_ADD && ops[i].user_data != i);
	CHECK_EQ(wrong, 0);
}

static void begin(u32 flags, int *fd)
{
	ring_open(&ring, ENTRIES, flags);
	*fd = dev_open(O_NONBLOCK);
}

static void end(int fd)
{
	ring_close(&ring);
	close(fd);
}

/* ---- what is done ----------------------------------------------------------------- */

static void all_operations(u32 flags)
{
	struct twheel_event ev[OPS];
	int fd, got = 0;

	begin(flags, &fd);
	fill_adds(OPS, HOUR);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, OPS), OPS);
	expect_res(OPS, 0);
	refill(OPS, TWHEEL_OP_QUERY, 0);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, OPS), OPS);
	expect_res(OPS, TWHEEL_STATE_ARMED);
	expect_counts(fd, OPS, OPS, 0);
	refill(OPS / 2, TWHEEL_OP_CANCEL, 0);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, OPS / 2), OPS / 2);
	expect_res(OPS / 2, 1);
	memmove(ops, ops + OPS / 2, OPS / 2 * sizeof(ops[0]));
	refill(OPS / 2, TWHEEL_OP_MOD, 1);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, OPS / 2), OPS / 2);
	while (got < OPS / 2 && readable(fd, WAIT_MS))
		got += read_events(fd, ev, OPS);
	CHECK_EQ(got, OPS / 2);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 0), 0);
	expect_counts(fd, 0, 0, 0);
	end(fd);
}

static void in_the_callers_task(void)
{
	all_operations(0);
	CHECK_EQ(workers(), 0);
}

static void by_a_thread_of_the_rings(void)
{
	all_operations(IORING_SETUP_SQPOLL);
}

/* Drain all that is armed: with absolute times, and then with the time left. */
static void drained(void)
{
	u32 flags = TWHEEL_F_ABS;
	u64 had = 0;
	int fd, nr;

	begin(0, &fd);
	add_many(fd, 60, HOUR, 0);
	memset(ops, POISON, sizeof(ops));
	command(TWHEEL_URING_DRAIN, fd, 50, 1, NULL)->flags = (__u16)flags;
	CHECK_EQ(go(1), 50);
	CHECK_EQ(ops[50].op, 0xcccccccc);
	nr = 50;
	do {
		for (int i = 0; i < nr; i++) {
			CHECK_EQ(ops[i].op, TWHEEL_OP_ADD);
			CHECK_EQ(ops[i].flags, flags);
			had |= 1ULL << ops[i].user_data;
		}
		flags = 0;
		nr = do_command(TWHEEL_URING_DRAIN, fd, OPS);
	} while (nr > 0 && !failed());
	CHECK_EQ(nr, 0);
	CHECK_EQ(had, (1ULL << 60) - 1);
	expect_counts(fd, 0, 0, 0);
	end(fd);
}

/* As an ioctl, a command is not cut short by task work that io_uring adds meanwhile. */
static void not_cut_short_on(u32 flags)
{
	const u32 nr = TWHEEL_BATCH_MAX;
	struct twheel_op *many = calloc(nr, sizeof(*many));
	struct __kernel_timespec ts[ENTRIES / 2];
	struct twheel_batch batch = { .ops = (uintptr_t)many, .nr = nr,
				      .op_size = sizeof(*many) };
	struct io_uring_cqe cqe;
	int fd;

	begin(flags, &fd);
	for (u32 i = 0; i < nr; i++)
		many[i] = (struct twheel_op){ .op = TWHEEL_OP_QUERY, .handle = 1 };
	for (u32 i = 0; i < ARRAY_SIZE(ts); i++) {
		struct io_uring_sqe *s = ring_sqe(&ring, IORING_OP_TIMEOUT, -1, 2);

		ts[i] = (struct __kernel_timespec){ .tv_nsec = i * 100000 };
		s->addr = (uintptr_t)&ts[i];
		s->len = 1;
	}
	ring_command(ring_sqe(&ring, IORING_OP_URING_CMD, fd, 3), TWHEEL_URING_SUBMIT, many, nr);
	CHECK(ring_enter(&ring, 0) > 0);
	for (u32 i = 0; i < nr; i++)
		many[i].res = 0;
	CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &batch));
	CHECK_EQ(batch.nr_done, nr);
	for (u32 i = 0; i <= ARRAY_SIZE(ts); i++)
		if (CHECK(ring_wait(&ring, &cqe, WAIT_MS)) && cqe.user_data == 3)
			CHECK_EQ(cqe.res, nr);
	free(many);
	end(fd);
}

static void not_cut_short(void) { not_cut_short_on(0); }
static void not_cut_short_polled(void) { not_cut_short_on(IORING_SETUP_SQPOLL); }

/* ---- links -------------------------------------------------------------------------- */

static void expect_results(const int *res, u32 nr)
{
	u32 seen = 0;

	for (u32 i = 0; i < nr; i++) {
		struct io_uring_cqe cqe;

		if (!CHECK(ring_wait(&ring, &cqe, WAIT_MS)) || !CHECK(cqe.user_data < nr))
			return;
		seen |= 1U << cqe.user_data;
		CHECK_EQ(cqe.res, res[cqe.user_data]);
	}
	CHECK_EQ(seen, (1U << nr) - 1);
}

/*
 * Arm a timer, read its event, and ask for another timer: in one system call. If a worker reads, it
 * waits as any task does, so the file must be blocking.
 */
static void linked_with(u32 flags, __u8 more)
{
	const int good[] = { 1, EV_SIZE, 1 }, bad[] = { 1, -EINVAL, -ECANCELED };
	struct twheel_event ev = { 0 };
	struct io_uring_sqe *s;
	int fd = dev_open(0);

	ring_open(&ring, ENTRIES, flags);
	for (u32 i = 0; i < 20 && !failed(); i++) {
		fill_adds(2, 5 * MS);
		ops[1].res = 1;			/* EINVAL, which does not break the chain */
		command(TWHEEL_URING_SUBMIT, fd, 1, 0, &s);
		s->flags = IOSQE_IO_LINK | more;
		s = ring_sqe(&ring, IORING_OP_READ, fd, 1);
		s->addr = (uintptr_t)&ev;
		s->len = sizeof(ev);
		s->off = (u64)-1;
		s->flags = IOSQE_IO_LINK;
		command(TWHEEL_URING_SUBMIT, fd, 1, 2, &s)->ops += sizeof(ops[0]);
		s->flags = more;
		CHECK_EQ(ring_enter(&ring, 3), 3);
		expect_results(good, 3);
		CHECK_EQ(ev.handle, ops[0].handle);
		CHECK_EQ(ops[1].res, -EINVAL);
	}
	/* A command that fails breaks the chain. */
	fill_adds(1, HOUR);
	command(TWHEEL_URING_SUBMIT, fd, 1, 0, &s);
	s->flags = IOSQE_IO_LINK;
	command(TWHEEL_URING_SUBMIT, fd, 1, 1, &s)->flags = 1;
	s->flags = IOSQE_IO_LINK | more;
	command(TWHEEL_URING_SUBMIT, fd, 1, 2, &s);
	CHECK_EQ(ring_enter(&ring, 3), 3);
	expect_results(bad, 3);
	expect_counts(fd, 1, 1, 0);
	/* From 7.2 on idle workers end with the last ring, and until then outlive their work. */
	CHECK_EQ(workers() > 0, (more & IOSQE_ASYNC) != 0);
	end(fd);
}

static void linked(void)
{
	linked_with(0, 0);
	linked_with(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0);
}

/* In a child, because workers outlive their work. */
static void linked_on_workers(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		linked_with(0, IOSQE_ASYNC);
		_exit(failed());
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* ---- bad input ---------------------------------------------------------------------- */

static void unknown_commands(void)
{
	static const u32 cmd_ops[] = { 0, 1, TWHEEL_IOC_SETUP, TWHEEL_IOC_SUBMIT, TWHEEL_IOC_ADD,
		TWHEEL_IOC_DRAIN, TWHEEL_URING_SUBMIT ^ 1, TWHEEL_URING_SUBMIT ^ 1U << 31, ~0U };
	int fd;

	begin(0, &fd);
	fill_adds(1, HOUR);
	for (u32 i = 0; i < ARRAY_SIZE(cmd_ops); i++)
		CHECK_EQ(do_command(cmd_ops[i], fd, 1), -EOPNOTSUPP);
	expect_counts(fd, 0, 0, 0);
	end(fd);
}

static void bad_fields(void)
{
	static const struct {
		u32	cmd_op, nr;
		__u16	op_size, flags;
	} bad[] = {
		{ TWHEEL_URING_SUBMIT, TWHEEL_BATCH_MAX + 1, sizeof(ops[0]), 0 },
		{ TWHEEL_URING_SUBMIT, ~0U, sizeof(ops[0]), 0 },
		{ TWHEEL_URING_SUBMIT, 1, 0, 0 },
		{ TWHEEL_URING_SUBMIT, 1, TWHEEL_OP_SIZE_VER0 - 8, 0 },
		{ TWHEEL_URING_SUBMIT, 1, sizeof(ops[0]) + 4, 0 },
		{ TWHEEL_URING_SUBMIT, 1, 4104, 0 },
		{ TWHEEL_URING_SUBMIT, 1, sizeof(ops[0]), TWHEEL_F_ABS },
		{ TWHEEL_URING_SUBMIT, 1, sizeof(ops[0]), 0x8000 },
		{ TWHEEL_URING_DRAIN, 0, sizeof(ops[0]), 0 },
		{ TWHEEL_URING_DRAIN, 1, sizeof(ops[0]), TWHEEL_F_KEEP },
	};
	struct iovec fixed = { before_hole(4096), 4096 };
	struct io_uring_sqe *s;
	int fd;

	begin(0, &fd);
	add(fd, HOUR, 1);
	fill_adds(2, HOUR);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		struct twheel_uring *cmd = command(bad[i].cmd_op, fd, bad[i].nr, 1, NULL);

		cmd->op_size = bad[i].op_size;
		cmd->flags = bad[i].flags;
		CHECK_EQ(go(1), -EINVAL);
	}
	/* A registered buffer has no meaning for these commands. */
	CHECK(!syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &fixed, 1));
	command(TWHEEL_URING_SUBMIT, fd, 1, 1, &s);
	s->uring_cmd_flags = IORING_URING_CMD_FIXED;
	CHECK_EQ(go(1), -EINVAL);
	expect_counts(fd, 1, 1, 0);
	end(fd);
}

static void bad_memory(void)
{
	struct twheel_op *edge = before_hole(2 * sizeof(*edge));
	struct twheel_op good = { .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	void *const bad[] = { NULL, unmapped(), read_only(&good, sizeof(good)) };
	int fd;

	begin(0, &fd);
	for (u32 k = 0; k < 2 * ARRAY_SIZE(bad); k++) {
		u32 cmd_op = k % 2 ? TWHEEL_URING_DRAIN : TWHEEL_URING_SUBMIT;

		command(cmd_op, fd, 1, 1, NULL)->ops = (uintptr_t)bad[k / 2];
		CHECK_EQ(go(1), k == 1 ? 0 : -EFAULT);
		if (k == 1)		/* nothing was left to drain */
			add(fd, HOUR, 0);
	}
	expect_counts(fd, 1, 1, 0);
	edge[0] = good;
	edge[1] = good;
	command(TWHEEL_URING_SUBMIT, fd, 3, 1, NULL)->ops = (uintptr_t)edge;
	CHECK_EQ(go(1), 2);
	CHECK(edge[0].handle && edge[1].handle);
	expect_counts(fd, 3, 3, 0);
	end(fd);
}

static void rights(void)
{
	int fd, ro = dev_open_as(O_RDONLY), wo = dev_open_as(O_WRONLY);

	begin(0, &fd);
	fill_adds(1, HOUR);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, ro, 1), -EBADF);
	CHECK_EQ(do_command(TWHEEL_URING_DRAIN, ro, 1), -EBADF);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, wo, 1), 1);
	expect_counts(ro, 0, 0, 0);
	expect_counts(wo, 1, 1, 0);
	close(ro);
	close(wo);
	end(fd);
}

/* The file's limit applies. Each operation that fails says so in its res. */
static void full_file(void)
{
	struct twheel_setup s = { .max_timers = 10 };
	u32 refused = 0;
	int fd;

	begin(0, &fd);
	CHECK_EQ(setup(fd, &s), 0);
	fill_adds(100, HOUR);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 100), 100);
	for (u32 i = 0; i < 100; i++) {
		CHECK_EQ(ops[i].res, i < 10 ? 0 : -EDQUOT);
		refused += !ops[i].handle;
	}
	CHECK_EQ(refused, 90);
	expect_counts(fd, 10, 10, 0);
	end(fd);
}

/* If a process may have no more descriptors, a command needs none, nor does a registered file. */
static void no_descriptors(void)
{
	struct rlimit was, none;
	struct io_uring_sqe *s;
	int fd;

	begin(0, &fd);
	CHECK(!syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1));
	getrlimit(RLIMIT_NOFILE, &was);
	none = (struct rlimit){ 0, was.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	fill_adds(2, HOUR);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 2), 2);
	expect_res(2, 0);
	close(fd);
	refill(2, TWHEEL_OP_CANCEL, 0);
	command(TWHEEL_URING_SUBMIT, 0, 2, 1, &s);
	s->flags = IOSQE_FIXED_FILE;
	CHECK_EQ(go(1), 2);
	expect_res(2, 1);
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	ring_close(&ring);
}

/* ---- waiting for others -------------------------------------------------------------- */

/**
 * struct jam - a file, and a SUBMIT of another thread that is stuck in it
 * @fd:		the file
 * @thread:	the thread
 * @stall:	the memory in which it is stuck
 */
struct jam {
	int		fd;
	pthread_t	thread;
	struct stall	stall;
};

static void *stuck(void *arg)
{
	struct jam *jam = arg;
	struct twheel_batch batch = { .ops = (uintptr_t)jam->stall.page, .nr = 1,
				      .op_size = sizeof(struct twheel_op) };

	CHECK(!ioctl(jam->fd, TWHEEL_IOC_SUBMIT, &batch));
	return NULL;
}

static void jam_begin(struct jam *jam, int fd)
{
	jam->fd = fd;
	jam->stall = stall_new();
	jam->thread = start_thread(stuck, jam);
	stall_wait(&jam->stall);
}

static void jam_end(struct jam *jam)
{
	stall_give(&jam->stall);
	pthread_join(jam->thread, NULL);
	stall_end(&jam->stall);
}

/* Wait until the request that waits has a worker, which then sleeps on the file's lock. */
static void wait_for_worker(void)
{
	for (int i = 0; i < WAIT_MS / 10 && !workers(); i++)
		sleep_ms(10);
	CHECK(workers() > 0);
	sleep_ms(20);
}

/* While a request waits, the ring does others. */
static void waits_beside(void)
{
	int fd, other = dev_open(0);
	struct twheel_op more[2];
	struct jam jam;

	begin(0, &fd);
	jam_begin(&jam, fd);
	fill_adds(2, HOUR);
	command(TWHEEL_URING_SUBMIT, fd, 2, 1, NULL);
	CHECK_EQ(ring_enter(&ring, 0), 1);
	CHECK_EQ(result_of(1, 0), -ETIME);
	memcpy(more, ops, sizeof(more));
	ring_command(ring_sqe(&ring, IORING_OP_URING_CMD, other, 2), TWHEEL_URING_SUBMIT, more, 2);
	CHECK_EQ(go(2), 2);
	CHECK_EQ(result_of(1, 50), -ETIME);
	jam_end(&jam);
	CHECK_EQ(result_of(1, WAIT_MS), 2);
	expect_res(2, 0);
	expect_counts(fd, 2, 2, 0);
	expect_counts(other, 2, 2, 0);
	close(other);
	end(fd);
}

static void waits_and_is_cancelled(void)
{
	struct jam jam;
	int fd, res;

	begin(0, &fd);
	jam_begin(&jam, fd);
	fill_adds(2, HOUR);
	command(TWHEEL_URING_SUBMIT, fd, 2, 1, NULL);
	CHECK_EQ(ring_enter(&ring, 0), 1);
	wait_for_worker();
	res = ring_cancel(&ring, WAIT_MS);
	CHECK(res == -EINTR || res == -ECANCELED);
	jam_end(&jam);
	CHECK(!ops[0].handle && !ops[1].handle);
	expect_counts(fd, 0, 0, 0);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 2), 2);
	end(fd);
}

/* A command in progress ends after the FIRST_OPS operations that it is doing. */
static void in_progress_and_is_cancelled(void)
{
	struct stall stall = stall_new();
	struct io_uring_sqe *s;
	int fd;

	begin(0, &fd);
	s = ring_sqe(&ring, IORING_OP_URING_CMD, fd, 1);
	s->flags = IOSQE_ASYNC;
	ring_command(s, TWHEEL_URING_SUBMIT, (void *)stall.page, 70);
	CHECK_EQ(ring_enter(&ring, 0), 1);
	stall_wait(&stall);
	ring_sqe(&ring, IORING_OP_ASYNC_CANCEL, -1, 2)->addr = 1;
	CHECK_EQ(go(2), -EALREADY);
	stall_give(&stall);
	CHECK_EQ(result_of(1, WAIT_MS), FIRST_OPS);
	for (u32 i = 0; i < 70; i++)	/* zeroes are not a valid operation */
		CHECK_EQ(((struct twheel_op *)stall.page)[i].res, i < FIRST_OPS ? -EINVAL : 0);
	stall_end(&stall);
	end(fd);
}

/* The ring ends while commands wait. Whether they were done or not, nothing breaks. */
static void ring_ends(void)
{
	struct twheel_info i;
	struct jam jam;
	int fd;

	begin(0, &fd);
	jam_begin(&jam, fd);
	fill_adds(1, HOUR);
	for (u64 k = 0; k < 8; k++)
		command(TWHEEL_URING_SUBMIT, fd, 1, k, NULL);
	CHECK_EQ(ring_enter(&ring, 0), 8);
	wait_for_worker();
	ring_close(&ring);
	jam_end(&jam);
	sleep_ms(50);
	info(fd, &i);
	CHECK(i.nr_timers <= 8 && i.nr_timers == i.nr_armed);
	fill_adds(1, HOUR);
	CHECK_EQ(submit(fd, ops, 1, NULL, NULL), 0);
	close(fd);
}

/* A process with a ring is killed while it has commands in progress. */
static void process_ends(void)
{
	int fd, status;
	struct jam jam;
	pid_t pid;

	fd = dev_open(O_NONBLOCK);
	for (u32 k = 0; k < 5 && !failed(); k++) {
		jam_begin(&jam, fd);
		fill_adds(OPS, HOUR);
		pid = fork();
		if (!pid) {
			ring_open(&ring, ENTRIES, 0);
			for (u64 i = 0; i < 8; i++)
				command(TWHEEL_URING_SUBMIT, fd, OPS, i, NULL);
			ring_enter(&ring, 0);
			kill(getpid(), SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		CHECK_EQ(ops[0].handle, 0);
		jam_end(&jam);
		CHECK(drain(fd, ops, OPS, 0) >= 0);
	}
	close(fd);
}

/* ---- fork() ---------------------------------------------------------------------------- */

/* A child has the ring too. Its commands use the child's memory and the same file. */
static void forked(void)
{
	struct twheel_event ev;
	int fd, status;
	pid_t pid;

	begin(0, &fd);
	fill_adds(1, 1);
	pid = fork();
	if (!pid) {
		ops[0].user_data = 77;
		CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 1), 1);
		CHECK(ops[0].handle);
		_exit(failed());
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK_EQ(ops[0].handle, 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 77);
	CHECK_EQ(do_command(TWHEEL_URING_SUBMIT, fd, 1), 1);
	CHECK(ops[0].handle);
	end(fd);
}

static const struct test tests[] = {
	{ in_the_callers_task, "SUBMIT of all operations, without a worker thread" },
	{ by_a_thread_of_the_rings, "SUBMIT with IORING_SETUP_SQPOLL" },
	{ drained, "DRAIN" },
	{ not_cut_short, "a batch is not cut short by completions of other requests" },
	{ not_cut_short_polled, "nor with IORING_SETUP_SQPOLL" },
	{ linked, "a chain with a READ; a command that fails breaks it" },
	{ linked_on_workers, "a chain with a READ, on worker threads" },
	{ unknown_commands, "unknown commands: EOPNOTSUPP" },
	{ bad_fields, "bad fields: EINVAL" },
	{ bad_memory, "bad memory: EFAULT, or a short count" },
	{ rights, "O_RDONLY: EBADF" },
	{ full_file, "a full file: EDQUOT for each operation without room" },
	{ no_descriptors, "RLIMIT_NOFILE, and a registered file" },
	{ waits_beside, "a command that waits lets others pass" },
	{ waits_and_is_cancelled, "a command that waits is cancelled" },
	{ in_progress_and_is_cancelled, "a command in progress is cancelled, and ends early" },
	{ ring_ends, "a ring ends with commands in progress" },
	{ process_ends, "a process ends with commands in progress" },
	{ forked, "a ring after fork()" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
