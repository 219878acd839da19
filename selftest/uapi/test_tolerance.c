// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Timers of /dev/twheel with tolerances: what is asked for, what QUERY returns, and when they fire.
 *
 * test_errors checks that wrong tolerances are refused. The tests that are compiled with the first
 * header check that programs without tolerances work as before.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MONO	CLOCK_MONOTONIC
#define BIT63	0x8000000000000000ULL

static u64 add_late(int fd, u32 flags, u64 expires, u64 interval, u64 tolerance)
{
	struct twheel_op op = { .flags = flags, .user_data = 4711, .expires_ns = expires,
				.interval_ns = interval, .tolerance_ns = tolerance };

	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
	return op.handle;
}

static int mod_late(int fd, u64 handle, u64 delay, u64 tolerance)
{
	struct twheel_op op = { .handle = handle, .expires_ns = delay, .tolerance_ns = tolerance };

	return op_ioctl(fd, TWHEEL_IOC_MOD, &op);
}

static void expect(int fd, u64 handle, int state, u64 tolerance)
{
	struct twheel_op op;

	CHECK_EQ(query(fd, handle, 0, &op), state);
	CHECK_EQ(op.tolerance_ns, tolerance);
	CHECK_EQ(op.user_data, 4711);
}

/* Tolerances that are asked for, and what the kernel keeps of them. */
static const struct { u64 asked, kept; } digits[] = {
	{ 0, 0 }, { 1, 1 }, { 999, 999 }, { 2047, 2047 }, { 2048, 2040 }, { 9999, 9990 },
	{ MS, MS }, { 125 * MS, 125 * MS }, { 1999999999, 1999000000 }, { 3 * SEC, 3 * SEC },
	{ 20479999999, 20470000000 }, { 90 * 60 * SEC, 90 * 60 * SEC },
	{ 365 * 24 * HOUR, 31500000000000000 }, { BIT63 - 1 - HOUR, 9220000000000000000 },
};

static void told(void)
{
	int fd = dev_open(0);
	u64 h = add_late(fd, 0, HOUR, 0, 7 * MS);

	expect(fd, h, TWHEEL_STATE_ARMED, 7 * MS);
	for (u32 i = 0; i < ARRAY_SIZE(digits); i++) {
		CHECK_EQ(mod_late(fd, h, HOUR, digits[i].asked), 1);
		expect(fd, h, TWHEEL_STATE_ARMED, digits[i].kept);
		CHECK_EQ(cancel(fd, h), 1);
		h = add_late(fd, 0, HOUR, 0, digits[i].asked);
		expect(fd, h, TWHEEL_STATE_ARMED, digits[i].kept);
	}
	CHECK_EQ(mod(fd, h, HOUR, 0), 1);
	expect(fd, h, TWHEEL_STATE_ARMED, 0);
	close(fd);
}

/* The tolerance stays with the timer from state to state, and from file to file. */
static void lives(void)
{
	int fd = dev_open(O_NONBLOCK), to = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	struct twheel_op op;
	u64 h = add_late(fd, TWHEEL_F_KEEP, 0, 0, 2 * MS);
	u32 bad;

	CHECK(readable(fd, WAIT_MS));
	expect(fd, h, TWHEEL_STATE_READY, 2 * MS);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect(fd, h, TWHEEL_STATE_IDLE, 2 * MS);
	CHECK_EQ(mod_late(fd, h, HOUR, 2 * HOUR), 0);
	CHECK_EQ(drain(fd, &op, 1, 0), 1);
	CHECK_EQ(op.tolerance_ns, 2 * HOUR);
	op.handle = 0;
	CHECK_EQ(submit(to, &op, 1, NULL, &bad), 0);
	CHECK_EQ(bad, 0);
	expect(to, op.handle, TWHEEL_STATE_ARMED, 2 * HOUR);
	close(fd);
	close(to);
}

/* A batch refuses the operations that a single call refuses, and does the others. */
static void batch(void)
{
	struct twheel_op ops[] = {
		{ .op = TWHEEL_OP_ADD, .expires_ns = HOUR, .tolerance_ns = BIT63 - 1 - HOUR },
		{ .op = TWHEEL_OP_ADD, .expires_ns = HOUR, .tolerance_ns = BIT63 - HOUR },
		{ .op = TWHEEL_OP_ADD, .expires_ns = BIT63 - 1, .tolerance_ns = 1 },
		{ .op = TWHEEL_OP_ADD, .expires_ns = BIT63 - 1 },
		{ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS, .tolerance_ns = ~0ULL },
		{ .op = TWHEEL_OP_ADD, .expires_ns = HOUR, .tolerance_ns = 48 * HOUR },
	};
	static const int want[ARRAY_SIZE(ops)] = { 0, -EINVAL, -EINVAL, 0, -EINVAL, 0 };
	int fd = dev_open(0);
	u32 bad;

	CHECK_EQ(submit(fd, ops, ARRAY_SIZE(ops), NULL, &bad), 0);
	CHECK_EQ(bad, 3);
	for (u32 i = 0; i < ARRAY_SIZE(ops); i++)
		CHECK_EQ(ops[i].res, want[i]);
	expect_counts(fd, 3, 3, 0);
	close(fd);
}

/* Do an operation of the first version's size, on a file whose timers have tolerances. */
static int first_version(int fd, unsigned long cmd, struct twheel_op *op)
{
	unsigned char mem[TWHEEL_OP_SIZE_VER0 + 8];
	int rc;

	memset(mem, POISON, sizeof(mem));
	memcpy(mem, op, TWHEEL_OP_SIZE_VER0);
	rc = ioctl(fd, _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), TWHEEL_OP_SIZE_VER0),
		   mem);
	for (u32 i = 0; i < 8; i++)
		CHECK_EQ(mem[TWHEEL_OP_SIZE_VER0 + i], POISON);
	memcpy(op, mem, TWHEEL_OP_SIZE_VER0);
	return rc < 0 ? -errno : rc;
}

static void beside_first(void)
{
	int fd = dev_open(0);
	u64 h = add_late(fd, 0, HOUR, 0, HOUR);
	struct twheel_op op = { .handle = h };

	CHECK_EQ(first_version(fd, TWHEEL_IOC_QUERY, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.user_data, 4711);
	op = (struct twheel_op) { .handle = h, .expires_ns = HOUR };
	CHECK_EQ(first_version(fd, TWHEEL_IOC_MOD, &op), 1);
	expect(fd, h, TWHEEL_STATE_ARMED, 0);
	op = (struct twheel_op) { .user_data = 4711, .expires_ns = HOUR };
	CHECK_EQ(first_version(fd, TWHEEL_IOC_ADD, &op), 0);
	expect(fd, op.handle, TWHEEL_STATE_ARMED, 0);
	op = (struct twheel_op) { .handle = op.handle };
	CHECK_EQ(first_version(fd, TWHEEL_IOC_CANCEL, &op), 1);
	expect_counts(fd, 1, 1, 0);
	close(fd);
}

/* The same in a batch, of more operations than a lock hold does. Each has another user_data. */
#define SOME	100

static void batch_of_first(void)
{
	unsigned char mem[SOME][TWHEEL_OP_SIZE_VER0];
	struct twheel_batch b = { .ops = (uintptr_t)mem, .nr = SOME,
				  .op_size = TWHEEL_OP_SIZE_VER0 };
	struct twheel_op op = { .op = TWHEEL_OP_ADD, .expires_ns = HOUR }, told;
	int fd = dev_open(0);

	for (u32 i = 0; i < SOME; i++) {
		op.user_data = i;
		op.reserved = i % 10 == 7;
		memcpy(mem[i], &op, sizeof(mem[i]));
	}
	CHECK_EQ(ioctl(fd, TWHEEL_IOC_SUBMIT, &b), 0);
	CHECK_EQ(b.nr_done, SOME);
	CHECK_EQ(b.nr_failed, SOME / 10);
	for (u32 i = 0; i < SOME; i++) {
		memcpy(&op, mem[i], sizeof(mem[i]));
		CHECK_EQ(op.res, i % 10 == 7 ? -EINVAL : 0);
		if (op.res)
			continue;
		CHECK_EQ(query(fd, op.handle, 0, &told), TWHEEL_STATE_ARMED);
		CHECK_EQ(told.user_data, i);
		CHECK_EQ(told.tolerance_ns, 0);
	}
	close(fd);
}

/* With ticks of a second, in which no timer is moved: a timer alone fires in its own tick. */
static void in_range(void)
{
	static const struct twheel_setup seconds = { .clockid = MONO, .tick_ns = SEC };
	u64 seed = 16, next;

	for (u32 i = 0; i < 300; i++) {
		u64 tolerance = rnd(&seed) % (i % 3 ? 2 * SEC : 40 * SEC) / MS * MS;
		u64 at = now_ns(MONO) + 5 * SEC + rnd(&seed) % (10 * SEC);
		u64 first = (at + SEC - 1) / SEC * SEC, last = (at + tolerance) / SEC * SEC;
		int fd = dev_open(0);

		CHECK_EQ(setup(fd, &seconds), 0);
		add_late(fd, TWHEEL_F_ABS, at, 0, i % 5 ? tolerance : 0);
		CHECK(fdinfo_get(fd, "twheel-next-ns", &next));
		CHECK_EQ(next % SEC, 0);
		CHECK(next >= first);
		CHECK(next <= (i % 5 && last > first ? last : first));
		close(fd);
	}
}

/* The tolerance applies to each period by itself: the phase stays, and no event is early. */
static void periodic(void)
{
	const u64 interval = 7 * MS;
	int fd = dev_open(0);
	u64 at = now_ns(MONO) + 20 * MS, h = add_late(fd, TWHEEL_F_ABS, at, interval, 5 * MS);
	struct twheel_event ev;

	for (u32 i = 0; i < 30; i++) {
		CHECK_EQ(read_one(fd, &ev), 1);
		CHECK_EQ(ev.handle, h);
		CHECK_EQ(ev.expires_ns, at);
		CHECK(now_ns(MONO) >= at);
		CHECK(ev.count >= 1);
		at += ev.count * interval;
	}
	expect(fd, h, TWHEEL_STATE_ARMED, 5 * MS);
	close(fd);
}

/* A timer that DRAIN could not store is as before. */
static void drain_fails(void)
{
	struct twheel_op *last = before_hole(TWHEEL_OP_SIZE_VER0);
	struct twheel_batch b = { .ops = (uintptr_t)unmapped(), .nr = 1,
				  .op_size = sizeof(struct twheel_op) };
	int fd = dev_open(0);
	u64 h = add_late(fd, 0, HOUR, 0, 3 * SEC);

	CHECK_EQ(ioctl(fd, TWHEEL_IOC_DRAIN, &b), -1);
	CHECK_EQ(errno, EFAULT);
	expect(fd, h, TWHEEL_STATE_ARMED, 3 * SEC);
	b.ops = (uintptr_t)last;
	CHECK_EQ(ioctl(fd, TWHEEL_IOC_DRAIN, &b), -1);
	CHECK_EQ(errno, EFAULT);
	expect(fd, h, TWHEEL_STATE_ARMED, 3 * SEC);
	b.op_size = TWHEEL_OP_SIZE_VER0;
	CHECK_EQ(ioctl(fd, TWHEEL_IOC_DRAIN, &b), 0);
	CHECK_EQ(b.nr_done, 1);
	CHECK_EQ(last->handle, h);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* What DRAIN returns can be armed again, on any clock and with any tolerance. */
static void drained_again(void)
{
	const struct twheel_setup setups[] = { { .clockid = CLOCK_MONOTONIC },
					       { .clockid = CLOCK_REALTIME } };
	const u64 most = INT64_MAX - HOUR;

	for (u32 i = 0; i < 2 * ARRAY_SIZE(setups); i++) {
		struct twheel_op op = { .expires_ns = HOUR, .tolerance_ns = most };
		int fd = dev_open(O_NONBLOCK);
		u32 failed;

		CHECK_EQ(setup(fd, &setups[i / 2]), 0);
		CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
		CHECK_EQ(drain(fd, &op, 1, i % 2 ? TWHEEL_F_ABS : 0), 1);
		op.handle = 0;
		CHECK_EQ(submit(fd, &op, 1, NULL, &failed), 0);
		CHECK_EQ(op.res, 0);
		close(fd);
	}
}

static const struct test tests[] = {
	{ told, "QUERY returns three digits of a tolerance" },
	{ lives, "a ready, idle or drained timer keeps its tolerance" },
	{ batch, "a batch refuses a tolerance that ends too late" },
	{ beside_first, "operations of the first version arm exact timers" },
	{ batch_of_first, "batches of the first version arm exact timers" },
	{ in_range, "a timer with a tolerance fires in an allowed tick" },
	{ periodic, "each period is late by itself" },
	{ drain_fails, "a timer that DRAIN could not store keeps its tolerance" },
	{ drained_again, "what DRAIN returns can be armed again" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
