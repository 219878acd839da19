// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* QUERY of /dev/twheel: each state, the time left, and that a QUERY changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MONO	CLOCK_MONOTONIC
#define MANY	20000

/*
 * QUERY of @handle must return this state, period and user_data, and this deadline unless it is 0.
 * Returns the deadline.
 */
static u64 expect(int fd, u64 handle, int state, u64 deadline, u64 interval, u64 user_data)
{
	struct twheel_op op;
	u64 left;

	CHECK_EQ(query(fd, handle, 0, &op), state);
	left = op.expires_ns;
	CHECK_EQ(op.interval_ns, interval);
	CHECK_EQ(op.user_data, user_data);
	CHECK_EQ(query(fd, handle, TWHEEL_F_ABS, &op), state);
	CHECK_EQ(op.interval_ns, interval);
	CHECK_EQ(op.user_data, user_data);
	if (deadline)
		CHECK_EQ(op.expires_ns, deadline);
	if (state != TWHEEL_STATE_ARMED)
		CHECK_EQ(left, 0);
	return op.expires_ns;
}

/* The time left, compared with the clock before and after the call. */
static void expect_left(int fd, u64 handle, clockid_t clock, u64 deadline)
{
	u64 before = now_ns(clock), after;
	struct twheel_op op;

	CHECK_EQ(query(fd, handle, 0, &op), TWHEEL_STATE_ARMED);
	after = now_ns(clock);
	CHECK(op.expires_ns <= deadline - before);
	CHECK(op.expires_ns >= (deadline > after ? deadline - after : 0));
}

static void armed(void)
{
	const u64 at = now_ns(MONO) + HOUR;
	int fd = dev_open(0);
	u64 before = now_ns(MONO), deadline;
	u64 relative = add(fd, 2 * HOUR, 11);
	u64 absolute = add_with(fd, TWHEEL_F_ABS, at, 0, 12);
	u64 ticking = add_with(fd, TWHEEL_F_ABS | TWHEEL_F_KEEP, at, 7 * SEC, 13);

	deadline = expect(fd, relative, TWHEEL_STATE_ARMED, 0, 0, 11);
	CHECK(deadline >= before + 2 * HOUR && deadline <= now_ns(MONO) + 2 * HOUR);
	expect_left(fd, relative, MONO, deadline);
	expect(fd, absolute, TWHEEL_STATE_ARMED, at, 0, 12);
	expect_left(fd, absolute, MONO, at);
	expect(fd, ticking, TWHEEL_STATE_ARMED, at, 7 * SEC, 13);
	CHECK_EQ(mod(fd, absolute, 3 * HOUR, 0), 1);
	deadline = expect(fd, absolute, TWHEEL_STATE_ARMED, 0, 0, 12);
	CHECK(deadline >= before + 3 * HOUR);
	close(fd);
}

static void ready_and_idle(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	struct twheel_op op;
	u64 once, kept, at;

	once = add(fd, 0, 21);
	CHECK(readable(fd, WAIT_MS));
	at = expect(fd, once, TWHEEL_STATE_READY, 0, 0, 21);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.expires_ns, at);
	CHECK_EQ(query(fd, once, 0, &op), -ENOENT);
	kept = add_with(fd, TWHEEL_F_KEEP, MS, 0, 22);
	CHECK(readable(fd, WAIT_MS));
	at = expect(fd, kept, TWHEEL_STATE_READY, 0, 0, 22);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect(fd, kept, TWHEEL_STATE_IDLE, at, 0, 22);
	CHECK_EQ(mod(fd, kept, HOUR, 0), 0);
	expect(fd, kept, TWHEEL_STATE_ARMED, 0, 0, 22);
	CHECK_EQ(cancel(fd, kept), 1);
	CHECK_EQ(query(fd, kept, 0, &op), -ENOENT);
	CHECK_EQ(query(fd, kept, TWHEEL_F_ABS, &op), -ENOENT);
	close(fd);
}

/*
 * While the event of a periodic timer waits, QUERY returns the deadline of the first period in it.
 */
static void periodic(void)
{
	const u64 interval = 5 * MS;
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	u64 h, at;

	h = add_with(fd, 0, 0, interval, 31);
	CHECK(readable(fd, WAIT_MS));
	at = expect(fd, h, TWHEEL_STATE_READY, 0, interval, 31);
	sleep_ms(40);
	expect(fd, h, TWHEEL_STATE_READY, at, interval, 31);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.expires_ns, at);
	CHECK(ev.count >= 8);
	at += ev.count * interval;
	/*
	 * The timer is armed again, and some time later ready: for the first period that was not
	 * counted.
	 */
	CHECK(readable(fd, WAIT_MS));
	expect(fd, h, TWHEEL_STATE_READY, at, interval, 31);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.expires_ns, at);
	close(fd);
}

/*
 * With ticks of a second, so that a deadline is over long before its tick. Returns false if the
 * host was away, and the tick has come before this test could look.
 */
static bool looks_at_overdue(int fd)
{
	struct twheel_op left, absolute;
	int state[2];
	u64 h, at;

	while (now_ns(MONO) % SEC > 300 * MS)
		sleep_ms(10);
	at = now_ns(MONO) + MS;
	h = add_with(fd, TWHEEL_F_ABS, at, 0, 41);
	sleep_ms(50);
	state[0] = query(fd, h, 0, &left);
	state[1] = query(fd, h, TWHEEL_F_ABS, &absolute);
	if (now_ns(MONO) / SEC > at / SEC) {
		CHECK(cancel(fd, h) >= 0);
		return false;
	}
	CHECK(state[0] == TWHEEL_STATE_ARMED && state[1] == TWHEEL_STATE_ARMED);
	CHECK_EQ(left.expires_ns, 0);
	CHECK_EQ(absolute.expires_ns, at);
	CHECK(left.user_data == 41 && absolute.user_data == 41);
	CHECK(readable(fd, WAIT_MS));
	expect(fd, h, TWHEEL_STATE_READY, at, 0, 41);
	return true;
}

static void overdue(void)
{
	const struct twheel_setup s = { .clockid = MONO, .tick_ns = SEC };
	int fd = dev_open(O_NONBLOCK);
	u32 tries = 0;

	CHECK_EQ(setup(fd, &s), 0);
	while (!looks_at_overdue(fd) && CHECK(++tries < 20))
		;
	close(fd);
}

static void far_away(void)
{
	int fd = dev_open(0);
	u64 absolute = add_with(fd, TWHEEL_F_ABS, INT64_MAX, INT64_MAX, 51);
	u64 relative = add_with(fd, 0, INT64_MAX, INT64_MAX, 52);

	expect(fd, absolute, TWHEEL_STATE_ARMED, INT64_MAX, INT64_MAX, 51);
	expect(fd, relative, TWHEEL_STATE_ARMED, INT64_MAX, INT64_MAX, 52);
	expect_left(fd, absolute, MONO, INT64_MAX);
	close(fd);
}

static void boottime(void)
{
	const struct twheel_setup s = { .clockid = CLOCK_BOOTTIME };
	int fd = dev_open(0);
	u64 at = now_ns(CLOCK_BOOTTIME) + HOUR, h;

	CHECK_EQ(setup(fd, &s), 0);
	h = add_with(fd, TWHEEL_F_ABS, at, 0, 61);
	expect(fd, h, TWHEEL_STATE_ARMED, at, 0, 61);
	expect_left(fd, h, CLOCK_BOOTTIME, at);
	close(fd);
}

/* After many QUERY calls the file is as before: no event was dropped, and none is late. */
static void changes_nothing(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_info before, after;
	struct twheel_event ev;
	u64 ready, ticking, h, next, value;

	ready = add(fd, 0, 71);
	ticking = add_with(fd, 0, 0, HOUR, 72);
	h = add(fd, HOUR, 73);
	await_ready(fd, 2);
	expect_counts(fd, 3, 1, 2);
	info(fd, &before);
	CHECK(fdinfo_get(fd, "twheel-next-ns", &next));
	for (u32 i = 0; i < 1000; i++) {
		expect(fd, ready, TWHEEL_STATE_READY, 0, 0, 71);
		expect(fd, ticking, TWHEEL_STATE_READY, 0, HOUR, 72);
		expect(fd, h, TWHEEL_STATE_ARMED, 0, 0, 73);
	}
	info(fd, &after);
	CHECK(!memcmp(&before, &after, sizeof(after)));
	CHECK(fdinfo_get(fd, "twheel-next-ns", &value));
	CHECK_EQ(value, next);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK(!readable(fd, 0));
	CHECK_EQ(cancel(fd, h), 1);
	close(fd);
}

static void batch(void)
{
	int fd = dev_open(O_NONBLOCK);
	u64 at = now_ns(MONO) + HOUR, h, gone, kept;
	struct twheel_event ev;
	u32 done, bad;

	kept = add_with(fd, TWHEEL_F_KEEP, 0, 0, 81);
	CHECK_EQ(read_one(fd, &ev), 1);
	h = add_with(fd, TWHEEL_F_ABS, at, SEC, 82);
	gone = add(fd, HOUR, 83);
	struct twheel_op ops[] = {
		{ .op = TWHEEL_OP_QUERY, .handle = h, .flags = TWHEEL_F_ABS },
		{ .op = TWHEEL_OP_QUERY, .handle = kept },
		{ .op = TWHEEL_OP_QUERY, .handle = gone },
		{ .op = TWHEEL_OP_CANCEL, .handle = gone },
		{ .op = TWHEEL_OP_QUERY, .handle = gone },
		{ .op = TWHEEL_OP_QUERY, .handle = h, .flags = TWHEEL_F_KEEP },
		{ .op = TWHEEL_OP_QUERY, .handle = h, .expires_ns = 1 },
		{ .op = TWHEEL_OP_MOD, .handle = kept, .expires_ns = HOUR },
		{ .op = TWHEEL_OP_QUERY, .handle = kept },
	};
	static const int want[] = { TWHEEL_STATE_ARMED, TWHEEL_STATE_IDLE,
		TWHEEL_STATE_ARMED, 1, -ENOENT, -EINVAL, -EINVAL, 0, TWHEEL_STATE_ARMED };

	CHECK_EQ(submit(fd, ops, ARRAY_SIZE(ops), &done, &bad), 0);
	CHECK_EQ(done, ARRAY_SIZE(ops));
	CHECK_EQ(bad, 3);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (!CHECK_EQ(ops[i].res, want[i]))
			diag("	operation %zu", i);
	CHECK_EQ(ops[0].expires_ns, at);
	CHECK_EQ(ops[0].interval_ns, SEC);
	CHECK_EQ(ops[0].user_data, 82);
	CHECK_EQ(ops[1].expires_ns, 0);
	CHECK_EQ(ops[1].user_data, 81);
	CHECK(ops[8].expires_ns > HOUR - SEC && ops[8].expires_ns <= HOUR);
	expect_counts(fd, 2, 2, 0);
	close(fd);
}

/* Many timers: QUERY returns for each the deadline that it was given. */
static void many(void)
{
	static struct twheel_op ops[MANY];
	static u64 at[MANY];
	int fd = dev_open(0);
	u64 now = now_ns(MONO), seed = 9;
	u32 done, bad, wrong = 0;

	for (u32 i = 0; i < MANY; i++) {
		at[i] = now + HOUR + rnd(&seed) % (1000000 * HOUR);
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
			.user_data = i, .expires_ns = at[i], .interval_ns = (i & 1) * SEC };
	}
	CHECK_EQ(submit(fd, ops, MANY, &done, &bad), 0);
	CHECK_EQ(bad, 0);
	for (u32 i = 0; i < MANY; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_QUERY, .flags = TWHEEL_F_ABS,
			.handle = ops[i].handle };
	CHECK_EQ(submit(fd, ops, MANY, &done, &bad), 0);
	CHECK_EQ(done, MANY);
	for (u32 i = 0; i < MANY; i++)
		wrong += ops[i].res != TWHEEL_STATE_ARMED || ops[i].user_data != i ||
			 ops[i].expires_ns != at[i] || ops[i].interval_ns != (i & 1) * SEC;
	CHECK_EQ(wrong, 0);
	close(fd);
}

static const struct test tests[] = {
	{ armed, "an armed timer: time left, deadline, period" },
	{ ready_and_idle, "a ready, an idle and a freed timer" },
	{ periodic, "a periodic timer, its event unread and read" },
	{ overdue, "an armed timer whose deadline is over: no time left" },
	{ far_away, "the latest times there are" },
	{ boottime, "CLOCK_BOOTTIME" },
	{ changes_nothing, "3000 queries change nothing" },
	{ batch, "in a batch, between other operations" },
	{ many, "20000 timers, each its own deadline" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
