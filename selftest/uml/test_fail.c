// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Each allocation that a call makes fails once: the call returns ENOMEM and has changed nothing, or
 * works without that memory. And calls that need no memory must make no allocation.
 *
 * The kernel counts the allocations of a call, and fails the one whose number is in
 * /proc/thread-self/fail-nth. If the call made fewer, the rest can be read there.
 * selftest/qemu/init sets up which allocations can fail. If memory is lost, that shows when the
 * modules are unloaded.
 *
 * A batch is done to its end whatever fails: each operation has a result, and the results must be
 * true.
 *
 * The suite starving of selftest/qemu/init tests the loading of the modules.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MOST	10000	/* the most allocations in one call */
#define BATCH	400	/* timers: more than fit in six pages */
#define BEFORE	100	/* timers that exist before, for a batch to work on */

static int nth_fd;

static void fail_nth(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(nth_fd, text, n, 0) != n)
		bail("fail-nth");
}

/* How many allocations were left until the one that was to fail. Stops the counting. */
static unsigned int fail_left(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		bail("fail-nth");
	fail_nth(0);
	return atoi(text);
}

/* A call that is tested, on a file of /dev/twheel. It returns 0 or more, or a negative errno. */
typedef int call_fn(int fd);

/* Make @call with its first, second, ... allocation failing, each time on a new file. */
static void sweep(call_fn *call, u32 adds)
{
	unsigned int nth, left = 0, injected = 0, refused = 0;

	for (nth = 1; nth < MOST && !left && !failed(); nth++) {
		int fd = dev_open(O_NONBLOCK), rc;

		fail_nth(nth);
		rc = call(fd);
		left = fail_left();
		injected += !left;
		refused += rc < 0;
		CHECK(rc >= 0 || (rc == -ENOMEM && !left));
		if (rc < 0)
			expect_counts(fd, 0, 0, 0);
		if (rc < 0)
			CHECK_EQ(call(fd), 0);
		expect_counts(fd, adds, adds, 0);
		close(fd);
	}
	CHECK(left);
	diag("%u allocations failed, %u times the call did", injected, refused);
}

static int call_open(int fd)
{
	int other = open("/dev/twheel", O_RDWR | O_CLOEXEC);

	(void)fd;
	if (other < 0)
		return -errno;
	close(other);
	return 0;
}

static int call_add(int fd)
{
	struct twheel_op op = { .expires_ns = HOUR };

	return ioctl(fd, TWHEEL_IOC_ADD, &op) < 0 ? -errno : 0;
}

static struct twheel_op ops[BATCH];

/* Only the operations that need the allocation fail. They can be done again. */
static int call_submit(int fd)
{
	struct twheel_batch batch = {
		.ops = (uintptr_t)ops, .nr = BATCH, .op_size = sizeof(*ops) };
	u32 i, bad = 0;

	for (i = 0; i < BATCH; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	if (ioctl(fd, TWHEEL_IOC_SUBMIT, &batch) < 0)
		return -errno;
	CHECK_EQ(batch.nr_done, BATCH);
	for (i = 0; i < BATCH; i++)
		if (ops[i].res && CHECK_EQ(ops[i].res, -ENOMEM)) {
			CHECK_EQ(call_add(fd), 0);
			bad++;
		}
	CHECK(batch.nr_failed == bad && bad < BATCH);
	return 0;
}

static int call_setup(int fd)
{
	struct twheel_setup s = { .clockid = CLOCK_BOOTTIME, .tick_ns = MS };

	return ioctl(fd, TWHEEL_IOC_SETUP, &s) < 0 ? -errno : 0;
}

static u64 before[BEFORE];

static void fill(int fd)
{
	for (u32 i = 0; i < BEFORE; i++)
		before[i] = add(fd, HOUR, i);
}

/* Operations of all kinds in one batch. Half of the timers are cancelled. */
static void mix(void)
{
	for (u32 i = 0; i < BATCH; i++) {
		u64 handle = before[i / 4 % BEFORE];

		if (i % 4 == 0)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_MOD,
						     .handle = handle, .expires_ns = HOUR };
		else if (i % 4 == 1)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_QUERY,
						     .handle = handle };
		else if (i % 8 == 2)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
						     .handle = handle };
		else
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
						     .expires_ns = HOUR };
	}
}

/* Returns how many timers were added. */
static int judge_mix(const struct twheel_batch *batch)
{
	u32 failures = 0;
	int more = 0;

	for (u32 i = 0; i < BATCH; i++) {
		bool adds = ops[i].op == TWHEEL_OP_ADD;

		failures += ops[i].res < 0;
		CHECK(adds ? !ops[i].res || ops[i].res == -ENOMEM : ops[i].res == 1);
		CHECK(!adds || (ops[i].res == 0) == (ops[i].handle != 0));
		more += adds ? !ops[i].res : -(ops[i].op == TWHEEL_OP_CANCEL);
	}
	CHECK_EQ(batch->nr_done, BATCH);
	CHECK_EQ(batch->nr_failed, failures);
	return more;
}

/* The same batch with its first, second, ... allocation failing, until none is left to fail. */
static void mixed_batch(void)
{
	unsigned int nth, left = 0, refused = 0;

	for (nth = 1; nth < MOST && !left && !failed(); nth++) {
		struct twheel_batch batch = {
			.ops = (uintptr_t)ops, .nr = BATCH, .op_size = sizeof(*ops) };
		int fd = dev_open(O_NONBLOCK), rc, nr;

		fill(fd);
		mix();
		fail_nth(nth);
		rc = ioctl(fd, TWHEEL_IOC_SUBMIT, &batch);
		left = fail_left();
		CHECK_EQ(rc, 0);
		refused += batch.nr_failed != 0;
		nr = BEFORE + judge_mix(&batch);
		expect_counts(fd, nr, nr, 0);
		close(fd);
	}
	CHECK(left && refused);
	diag("%u allocations failed, operations did %u times", nth - 2, refused);
}

static void opening(void)
{
	sweep(call_open, 0);
}

static void adding(void)
{
	sweep(call_add, 1);
}

static void submitting(void)
{
	sweep(call_submit, BATCH);
}

/* @call must succeed, and make no allocation that could have failed. */
static void needs_no_memory(call_fn *call, int fd)
{
	unsigned int left;

	fail_nth(1);
	CHECK(call(fd) >= 0);
	left = fail_left();
	CHECK_EQ(left, 1);
}

static void setting_up(void)
{
	int fd = dev_open(0);

	needs_no_memory(call_setup, fd);
	close(fd);
}

static struct twheel_op one;

static int call_mod(int fd)
{
	one = (struct twheel_op){ .handle = before[0], .expires_ns = 2 * HOUR };
	return ioctl(fd, TWHEEL_IOC_MOD, &one);
}

static int call_query(int fd)
{
	one = (struct twheel_op){ .handle = before[0] };
	return ioctl(fd, TWHEEL_IOC_QUERY, &one);
}

static int call_cancel(int fd)
{
	one = (struct twheel_op){ .handle = before[0] };
	return ioctl(fd, TWHEEL_IOC_CANCEL, &one);
}

static int call_info(int fd)
{
	static struct twheel_info i;

	return ioctl(fd, TWHEEL_IOC_INFO, &i);
}

static int call_read(int fd)
{
	static struct twheel_event ev[BEFORE];

	return read(fd, ev, sizeof(ev)) == sizeof(ev) ? 0 : -1;
}

static int call_drain(int fd)
{
	struct twheel_batch batch = {
		.ops = (uintptr_t)ops, .nr = BATCH, .op_size = sizeof(*ops) };

	return ioctl(fd, TWHEEL_IOC_DRAIN, &batch) || batch.nr_done != BEFORE - 1 ? -1 : 0;
}

static int call_close(int fd)
{
	return close(fd);
}

/* Events of every kind. What is read must go back to where it was. */
static void using(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_info i;

	fill(fd);
	for (u32 k = 0; k < BEFORE; k++)
		add_with(fd, k % 3 == 1 ? TWHEEL_F_KEEP : 0, 0, k % 3 == 2 ? HOUR : 0, k);
	do
		info(fd, &i);
	while (i.nr_ready < BEFORE);
	memset(ops, 0, sizeof(ops));	/* touch its pages */
	needs_no_memory(call_info, fd);
	needs_no_memory(call_mod, fd);
	needs_no_memory(call_query, fd);
	needs_no_memory(call_cancel, fd);
	needs_no_memory(call_read, fd);
	expect_counts(fd, BEFORE - 1 + BEFORE * 2 / 3, BEFORE - 1 + BEFORE / 3, 0);
	close(fd);
	fd = dev_open(O_NONBLOCK);
	fill(fd);
	needs_no_memory(call_cancel, fd);
	needs_no_memory(call_drain, fd);
	expect_counts(fd, 0, 0, 0);
	fill(fd);
	needs_no_memory(call_close, fd);
}

static const struct test tests[] = {
	{ opening,	"open() under failing allocations" },
	{ setting_up,	"SETUP needs no memory" },
	{ adding,	"ADD under failing allocations" },
	{ submitting,	"SUBMIT under failing allocations" },
	{ mixed_batch,	"SUBMIT of everything under failing allocations" },
	{ using,	"INFO, MOD, QUERY, CANCEL, DRAIN, read() and close() need no memory" },
};

int main(void)
{
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		bail("/proc/thread-self/fail-nth");
	return run_tests(tests, ARRAY_SIZE(tests));
}
