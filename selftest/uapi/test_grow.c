// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A file begins without buckets: its first 64 timers are in a tree. With the 65th it grows. The
 * timers in the tree are moved into buckets, while timers in either expire, are cancelled and are
 * re-armed. Each timer fires once, not early, and in the order of ticks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define FIRST		64U		/* timers that need no buckets */
#define MORE		300U
#define ALL		(FIRST + MORE)
#define SPAN		(400 * MS)
#define ROUNDS		5

static u64 handle[ALL], deadline[ALL];
static unsigned int seen[ALL];
static bool was_over[ALL];		/* its deadline was over when it was armed */
static u64 seed = 7, last;

static void add_one(int fd, clockid_t clock, u64 tick, u32 i)
{
	struct twheel_op op = { .flags = TWHEEL_F_ABS, .user_data = i };

	/*
	 * Some deadlines are over, some are near, and a few are far. Each third one is the
	 * beginning of a tick.
	 */
	deadline[i] = now_ns(clock) - MS + rnd(&seed) % SPAN + (i % 16 == 5 ? HOUR : 0);
	if (i % 3 == 0)
		deadline[i] = tick_after(deadline[i], tick);
	op.expires_ns = deadline[i];
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
	was_over[i] = deadline[i] <= now_ns(clock);
	handle[i] = op.handle;
}

/* Read what has expired by now. */
static u32 read_some(int fd, clockid_t clock, u64 tick)
{
	struct twheel_event ev[64];
	int n = read_events(fd, ev, ARRAY_SIZE(ev));

	for (int k = 0; k < n; k++) {
		u64 i = ev[k].user_data, due = tick_after(ev[k].expires_ns, tick);

		if (!CHECK(i < ALL && ev[k].handle == handle[i]))
			continue;
		seen[i]++;
		CHECK(ev[k].expires_ns >= deadline[i] && now_ns(clock) >= deadline[i]);
		if (was_over[i])
			continue;
		CHECK(due >= last);
		last = due;
	}
	return n > 0 ? (u32)n : 0;
}

static bool is_far(u32 i)
{
	return i % 16 == 5;
}

/* Of the timers that have not fired, re-arm some and cancel some. */
static u32 change_some(int fd, clockid_t clock, u32 nr)
{
	u32 gone = 0;

	for (u32 i = 0; i < nr; i += 7) {
		struct twheel_op op = { .handle = handle[i], .flags = TWHEEL_F_ABS };

		if (seen[i] || is_far(i))
			continue;
		if (i % 2) {
			op.expires_ns = now_ns(clock) + rnd(&seed) % SPAN;
			if (op_ioctl(fd, TWHEEL_IOC_MOD, &op) == 1)
				deadline[i] = op.expires_ns;
			was_over[i] = deadline[i] <= now_ns(clock);
		} else if (cancel(fd, handle[i]) >= 0) {
			seen[i]++;	/* it must not fire */
			gone++;
		}
	}
	return gone;
}

static u32 nr_far(void)
{
	u32 n = 0;

	for (u32 i = 0; i < ALL; i++)
		n += is_far(i);
	return n;
}

static void grow_once(clockid_t clock, u64 tick)
{
	const struct twheel_setup s = { .clockid = clock, .tick_ns = tick };
	int fd = dev_open(O_NONBLOCK);
	struct twheel_info i;
	u32 got = 0, n;
	u64 small;

	CHECK_EQ(setup(fd, &s), 0);
	memset(seen, 0, sizeof(seen));
	last = 0;
	add_one(fd, clock, tick, 0);
	info(fd, &i);
	small = i.mem_bytes;
	for (n = 1; n < FIRST; n++)
		add_one(fd, clock, tick, n);
	for (; n < ALL; n++) {
		/*
		 * The first of these makes the file grow: a timer that has expired keeps its slot
		 * until its event is read, and none has been read, however long the host took.
		 */
		add_one(fd, clock, tick, n);
		if (n % 50 == 0) {
			got += change_some(fd, clock, n);
			got += read_some(fd, clock, tick);
		}
	}
	info(fd, &i);
	/*
	 * test_limits checks how large a small file is. In a debugging kernel everything is larger,
	 * the timers too: fewer than FIRST of them fit into a small file.
	 */
	CHECK(i.mem_bytes > small + 32 * 1024);
	while (got < ALL - nr_far() && CHECK(readable(fd, WAIT_MS)))
		got += read_some(fd, clock, tick);
	for (n = 0; n < ALL; n++)
		CHECK_EQ(seen[n], !is_far(n));
	expect_counts(fd, nr_far(), nr_far(), 0);
	for (n = 0; n < ALL; n++)
		if (is_far(n))
			CHECK_EQ(cancel(fd, handle[n]), 1);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void grow_monotonic(void)
{
	for (u32 i = 0; i < ROUNDS; i++)
		grow_once(CLOCK_MONOTONIC, 100000 * (i + 1));
}

static void grow_boottime(void)
{
	for (u32 i = 0; i < ROUNDS; i++)
		grow_once(CLOCK_BOOTTIME, MS);
}

static void grow_realtime(void)
{
	for (u32 i = 0; i < ROUNDS; i++)
		grow_once(CLOCK_REALTIME, MS);
}

#define BATCH		200U		/* operations, done in four lock holds */
#define ROOM		100U

static bool is_right(u32 i)
{
	return i % 5 > 1;
}

/*
 * Operations of which one adds a timer, among operations that are wrong; between others that add.
 */
static void fill(struct twheel_op *ops)
{
	for (u32 i = 0; i < BATCH; i++) {
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .user_data = i,
					     .expires_ns = HOUR };
		if (i % 5 == 0)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_QUERY, .handle = 1ULL << 40 };
		else if (i % 5 == 1)
			ops[i].flags = TWHEEL_F_DELAY;		/* DELAY needs a period */
	}
}

/*
 * In the middle of a batch the file grows, as often as needed until it is full. If no operation of
 * the batch is right, no timer exists after it, and SETUP is still possible.
 */
static void grow_in_a_batch(void)
{
	const struct twheel_setup s = { .max_timers = ROOM };
	struct twheel_op ops[BATCH];
	u32 added = 0, done, bad;
	int fd = dev_open(0);

	fill(ops);
	CHECK_EQ(submit(fd, ops, 2, &done, &bad), 0);
	CHECK_EQ(done, 2);
	CHECK_EQ(bad, 2);
	CHECK_EQ(setup(fd, &s), 0);
	fill(ops);
	CHECK_EQ(submit(fd, ops, BATCH, &done, &bad), 0);
	CHECK_EQ(done, BATCH);
	CHECK_EQ(bad, BATCH - ROOM);
	for (u32 i = 0; i < BATCH; i++) {
		if (!is_right(i))
			CHECK_EQ(ops[i].res, i % 5 ? -EINVAL : -ENOENT);
		else if (added++ < ROOM)
			CHECK_EQ(ops[i].res, 0);
		else
			CHECK_EQ(ops[i].res, -EDQUOT);
	}
	expect_counts(fd, ROOM, ROOM, 0);
	for (u32 i = 0; i < BATCH; i++) {
		struct twheel_op op = { .handle = ops[i].handle };

		if (!is_right(i) || ops[i].res)
			continue;
		CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_CANCEL, &op), 1);
		CHECK_EQ(op.user_data, i);
	}
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static const struct test tests[] = {
	{ grow_monotonic, "CLOCK_MONOTONIC: timers from before growth and after fire in order" },
	{ grow_boottime, "CLOCK_BOOTTIME: the same" },
	{ grow_realtime, "CLOCK_REALTIME: the same" },
	{ grow_in_a_batch, "growth in the middle of a batch, until the file is full" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
