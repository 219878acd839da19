// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What each command of /dev/twheel does if nothing is wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MONO	CLOCK_MONOTONIC

/* The event must be that of this timer, on time, and the only one. */
static void expect_event(const struct twheel_event *ev, clockid_t clock,
			 u64 handle, u64 user_data, u32 flags)
{
	u64 now = now_ns(clock);

	CHECK_EQ(ev->handle, handle);
	CHECK_EQ(ev->user_data, user_data);
	CHECK_EQ(ev->flags, flags);
	CHECK(ev->expires_ns <= now);
}

static void fresh_info(void)
{
	int fd = dev_open(0);
	struct twheel_info i;

	info(fd, &i);
	CHECK_EQ(i.clockid, CLOCK_MONOTONIC);
	CHECK_EQ(i.features, 0);
	CHECK_EQ(i.clocks, 1 << CLOCK_REALTIME | 1 << CLOCK_MONOTONIC |
		 1 << CLOCK_BOOTTIME | 1 << CLOCK_REALTIME_ALARM |
		 1 << CLOCK_BOOTTIME_ALARM);
	CHECK_EQ(i.tick_ns, MS);
	CHECK_EQ(i.slack_ns, 0);
	CHECK(i.min_tick_ns >= 100000 && i.min_tick_ns <= MS);
	CHECK(i.max_timers > 0);
	CHECK(i.mem_bytes > 0 && i.mem_bytes < 128 * 1024);
	CHECK_EQ(i.nr_expired, 0);
	CHECK_EQ(i.nr_wakeups, 0);
	CHECK_EQ(i.nr_moves, 0);
	CHECK_EQ(i.nr_deferred, 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void setup_sets(void)
{
	struct twheel_setup s = {
		.clockid = CLOCK_BOOTTIME, .tick_ns = 10 * MS,
		.slack_ns = MS, .max_timers = 100 };
	const struct twheel_setup defaults = { .clockid = CLOCK_MONOTONIC };
	int fd = dev_open(0);
	struct twheel_info fresh, i;

	info(fd, &fresh);
	CHECK_EQ(setup(fd, &s), 0);
	info(fd, &i);
	CHECK_EQ(i.clockid, CLOCK_BOOTTIME);
	CHECK_EQ(i.tick_ns, 10 * MS);
	CHECK_EQ(i.slack_ns, MS);
	CHECK_EQ(i.max_timers, 100);
	CHECK_EQ(setup(fd, &defaults), 0);
	info(fd, &i);
	CHECK(!memcmp(&fresh, &i, sizeof(i)));
	s.tick_ns = fresh.min_tick_ns;
	s.slack_ns = SEC - 1;
	s.max_timers = fresh.max_timers;
	CHECK_EQ(setup(fd, &s), 0);
	s.tick_ns = SEC;
	CHECK_EQ(setup(fd, &s), 0);
	add(fd, HOUR, 1);
	CHECK_EQ(setup(fd, &s), -EBUSY);
	close(fd);
}

static void one_shot(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;
	u64 before, after, h;

	for (u64 delay = 0; delay <= 64 * MS; delay = delay * 2 + 999999) {
		before = now_ns(MONO);
		h = add(fd, delay, delay + 7);
		after = now_ns(MONO);
		CHECK_EQ(read_one(fd, &ev), 1);
		expect_event(&ev, MONO, h, delay + 7, 0);
		CHECK_EQ(ev.count, 1);
		CHECK(ev.expires_ns >= before + delay);
		CHECK(ev.expires_ns <= after + delay);
		expect_counts(fd, 0, 0, 0);
		CHECK_EQ(cancel(fd, h), -ENOENT);
	}
	close(fd);
}

static void absolute(void)
{
	int fd = dev_open(0);
	u64 now = now_ns(MONO), at[] = { now + 20 * MS, now + 3, 0, 1, now / 2 };
	struct twheel_event ev;
	u64 h;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		h = add_with(fd, TWHEEL_F_ABS, at[i], 0, ~0ULL - i);
		CHECK_EQ(read_one(fd, &ev), 1);
		expect_event(&ev, MONO, h, ~0ULL - i, 0);
		CHECK_EQ(ev.expires_ns, at[i]);
		CHECK_EQ(ev.count, 1);
	}
	close(fd);
}

/* Timers for the latest times that there are can be armed, and never fire. */
static void far_away(void)
{
	int fd = dev_open(0);
	u64 absolute = add_with(fd, TWHEEL_F_ABS, INT64_MAX, INT64_MAX, 1);
	u64 relative = add_with(fd, 0, INT64_MAX, INT64_MAX, 2), value;

	CHECK(!readable(fd, 20));
	expect_counts(fd, 2, 2, 0);
	CHECK(fdinfo_get(fd, "twheel-next-ns", &value));
	CHECK_EQ(cancel(fd, absolute), 1);
	CHECK_EQ(cancel(fd, relative), 1);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* The event's count must be that of the periods that had passed when it was read. */
static void check_count(const struct twheel_event *ev, u64 interval, u64 before)
{
	u64 after = now_ns(MONO);

	CHECK(ev->expires_ns + (ev->count - 1) * interval <= after);
	/* One period may be missing: its tick was not over, or its interrupt was late. */
	CHECK(ev->expires_ns + (ev->count + 1) * interval > before);
}

static void periodic(void)
{
	const u64 interval = 20 * MS + 1;
	int fd = dev_open(0);
	struct twheel_event ev;
	u64 before, h, next = 0, periods = 0;

	before = now_ns(MONO);
	h = add_with(fd, 0, 3 * MS, interval, 5);
	for (u32 i = 0; i < 12; i++) {
		sleep_ms(i % 4 == 3 ? 130 : 0);
		if (!CHECK(readable(fd, WAIT_MS)))
			break;
		expect_counts(fd, 1, 0, 1);
		before = now_ns(MONO);
		CHECK_EQ(read_events(fd, &ev, 1), 1);
		expect_event(&ev, MONO, h, 5, TWHEEL_EV_MORE);
		CHECK(!next || ev.expires_ns == next);
		check_count(&ev, interval, before);
		CHECK(i % 4 != 3 || ev.count >= 5);
		next = ev.expires_ns + ev.count * interval;
		periods += ev.count;
	}
	diag("%llu periods in 12 events", periods);
	cancel(fd, h);
	expect_counts(fd, 0, 0, 0);
	CHECK(!readable(fd, 50));
	close(fd);
}

static void delay_flag(void)
{
	const u64 interval = 15 * MS;
	int fd = dev_open(0);
	struct twheel_event ev;
	u64 from, to, h;

	from = now_ns(MONO);
	h = add_with(fd, TWHEEL_F_DELAY, interval, interval, 6);
	to = now_ns(MONO);
	for (u32 i = 0; i < 6; i++) {
		sleep_ms(i & 1 ? 60 : 0);
		CHECK(readable(fd, WAIT_MS));
		CHECK_EQ(read_one(fd, &ev), 1);
		expect_event(&ev, MONO, h, 6, TWHEEL_EV_MORE);
		CHECK_EQ(ev.count, 1);
		CHECK(ev.expires_ns >= from + interval);
		CHECK(ev.expires_ns <= to + interval);
		/* The next period counts from a read that is still to come. */
		CHECK(!readable(fd, 0) || now_ns(MONO) >= ev.expires_ns + interval);
		from = ev.expires_ns;
		to = now_ns(MONO);
	}
	CHECK_EQ(mod(fd, h, HOUR, 0), 1);
	expect_counts(fd, 1, 1, 0);
	close(fd);
}

/* What DELAY is for: if a reader is late, the next period is not shorter. */
static void delay_from_read(void)
{
	const u64 interval = 50 * MS;
	int fd = dev_open(0);
	struct twheel_event ev;
	u64 before, after;

	add_with(fd, TWHEEL_F_DELAY, 0, interval, 0);
	for (u32 i = 0; i < 3; i++) {
		sleep_ms(70);
		CHECK(readable(fd, WAIT_MS));
		before = now_ns(MONO);
		CHECK_EQ(read_one(fd, &ev), 1);
		after = now_ns(MONO);
		CHECK_EQ(read_one(fd, &ev), 1);
		CHECK(ev.expires_ns >= before + interval);
		CHECK(ev.expires_ns <= after + interval);
	}
	close(fd);
}

static void keep(void)
{
	int fd = dev_open(0);
	u64 h = add_with(fd, TWHEEL_F_KEEP, MS, 0, 9);
	struct twheel_event ev;
	struct twheel_op op;

	for (u32 i = 0; i < 4; i++) {
		CHECK_EQ(read_one(fd, &ev), 1);
		expect_event(&ev, MONO, h, 9, TWHEEL_EV_MORE);
		expect_counts(fd, 1, 0, 0);
		op = (struct twheel_op){ .handle = h, .flags = TWHEEL_F_KEEP,
					 .expires_ns = 2 * MS };
		CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_MOD, &op), 0);
		CHECK_EQ(op.user_data, 9);
	}
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(mod(fd, h, HOUR, TWHEEL_F_KEEP), 0);
	CHECK(!readable(fd, 0));
	expect_counts(fd, 1, 1, 0);
	CHECK_EQ(mod(fd, h, MS, TWHEEL_F_KEEP), 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(cancel(fd, h), 0);
	CHECK_EQ(cancel(fd, h), -ENOENT);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void pending_flag(void)
{
	const u32 flags = TWHEEL_F_KEEP | TWHEEL_F_PENDING;
	int fd = dev_open(0);
	u64 h = add_with(fd, TWHEEL_F_KEEP, HOUR, 0, 3);
	struct twheel_event ev;

	CHECK_EQ(mod(fd, h, MS, flags), 1);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(mod(fd, h, MS, flags), -ENOENT);	/* ready */
	expect_counts(fd, 1, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.handle, h);
	CHECK_EQ(mod(fd, h, MS, flags), -ENOENT);	/* idle */
	expect_counts(fd, 1, 0, 0);
	CHECK_EQ(mod(fd, h, HOUR, TWHEEL_F_KEEP), 0);
	CHECK_EQ(mod(fd, h, HOUR, flags), 1);
	CHECK_EQ(cancel(fd, h), 1);
	CHECK_EQ(mod(fd, h, HOUR, flags), -ENOENT);
	close(fd);
}

/* MOD replaces the deadline, the period and the flags, and keeps user_data. */
static void mod_rearms(void)
{
	int fd = dev_open(0);
	struct twheel_op op = { .flags = TWHEEL_F_ABS, .interval_ns = 10 * MS };
	struct twheel_event ev;
	u64 h = add(fd, HOUR, 77);

	CHECK_EQ(mod(fd, h, 2 * HOUR, 0), 1);
	op.handle = h;
	op.expires_ns = now_ns(MONO) + 5 * MS;
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_MOD, &op), 1);
	CHECK_EQ(op.user_data, 77);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, MONO, h, 77, TWHEEL_EV_MORE);
	CHECK_EQ(ev.expires_ns, op.expires_ns);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, MONO, h, 77, TWHEEL_EV_MORE);
	CHECK(mod(fd, h, MS, 0) >= 0);		/* it is a one-shot from now on */
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, MONO, h, 77, 0);
	CHECK_EQ(mod(fd, h, MS, 0), -ENOENT);
	h = add_with(fd, TWHEEL_F_KEEP, HOUR, 0, 78);
	CHECK_EQ(mod(fd, h, 0, 0), 1);		/* it is no longer kept */
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, MONO, h, 78, 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

#define SHUFFLED	1000

/*
 * Add timers with deadlines in random order, the first of them @lead ahead. Returns the file, or -1
 * if the first deadline was over before the last timer was added: then the last ones are not in
 * their own ticks.
 */
static int add_shuffled(struct twheel_op *ops, u64 lead)
{
	u64 first = now_ns(MONO) + lead, seed = 42;
	int fd = dev_open(0);

	for (u32 i = 0; i < SHUFFLED; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
			.flags = TWHEEL_F_ABS, .user_data = i,
			.expires_ns = first + rnd(&seed) % (300 * MS) };
	CHECK_EQ(submit(fd, ops, SHUFFLED, NULL, NULL), 0);
	if (now_ns(MONO) < first)
		return fd;
	close(fd);
	return -1;
}

static void tick_order(void)
{
	static struct twheel_op ops[SHUFFLED];
	static struct twheel_event ev[SHUFFLED];
	int fd = -1, got = 0, n;
	u64 last = 0, lead;

	for (lead = 100 * MS; fd < 0 && lead < 10 * SEC; lead *= 2)
		fd = add_shuffled(ops, lead);
	sleep_ms(lead / MS + 350);
	while (got < SHUFFLED && readable(fd, WAIT_MS)) {
		n = read_events(fd, ev + got, 64);
		if (!CHECK(n > 0))
			break;
		got += n;
	}
	CHECK_EQ(got, SHUFFLED);
	for (int i = 0; i < got; i++) {
		CHECK(tick_after(ev[i].expires_ns, MS) >= last);
		last = tick_after(ev[i].expires_ns, MS);
		CHECK_EQ(ev[i].expires_ns, ops[ev[i].user_data].expires_ns);
		CHECK_EQ(ev[i].handle, ops[ev[i].user_data].handle);
	}
	CHECK(!readable(fd, 0));
	close(fd);
}

/* Ticks are multiples of their length since the clock's zero; no timer is early. */
static void tick_grid(void)
{
	static const u64 ticks[] = { 100 * MS, 7 * MS + 3, 1000000 };
	struct twheel_event ev;
	u64 seed = 7, now;

	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		int fd = dev_open(0);
		struct twheel_setup s = { .clockid = MONO, .tick_ns = ticks[i] };

		CHECK_EQ(setup(fd, &s), 0);
		for (u32 n = 0; n < 5; n++) {
			add(fd, rnd(&seed) % (ticks[i] * 2), n);
			CHECK_EQ(read_one(fd, &ev), 1);
			now = now_ns(MONO);
			CHECK(now >= tick_after(ev.expires_ns, ticks[i]));
		}
		close(fd);
	}
}

static void boottime(void)
{
	const struct twheel_setup s = { .clockid = CLOCK_BOOTTIME };
	int fd = dev_open(0);
	struct twheel_event ev;
	u64 now, h, value;

	CHECK_EQ(setup(fd, &s), 0);
	CHECK(fdinfo_get(fd, "twheel-clockid", &value));
	CHECK_EQ(value, CLOCK_BOOTTIME);
	now = now_ns(CLOCK_BOOTTIME);
	h = add(fd, 10 * MS, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, CLOCK_BOOTTIME, h, 1, 0);
	CHECK(ev.expires_ns >= now + 10 * MS);
	now = now_ns(CLOCK_BOOTTIME) + 10 * MS;
	h = add_with(fd, TWHEEL_F_ABS, now, 0, 2);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_event(&ev, CLOCK_BOOTTIME, h, 2, 0);
	CHECK_EQ(ev.expires_ns, now);
	close(fd);
}

static void batch_results(void)
{
	int fd = dev_open(0);
	u64 armed = add(fd, HOUR, 1), moved = add(fd, HOUR, 2), idle, ready;
	struct twheel_event ev;
	u32 done, bad;

	idle = add_with(fd, TWHEEL_F_KEEP, 0, 0, 3);
	CHECK_EQ(read_one(fd, &ev), 1);
	ready = add(fd, 0, 4);
	CHECK(readable(fd, WAIT_MS));
	struct twheel_op ops[] = {
		{ .op = TWHEEL_OP_CANCEL, .handle = armed },
		{ .op = TWHEEL_OP_MOD, .handle = moved, .expires_ns = 2 * HOUR },
		{ .op = TWHEEL_OP_MOD, .handle = ready, .expires_ns = HOUR },
		{ .op = TWHEEL_OP_CANCEL, .handle = idle },
		{ .op = TWHEEL_OP_ADD, .expires_ns = HOUR, .user_data = 5 },
	};
	static const struct { int res; u64 user_data; } want[] = {
		{ 1, 1 }, { 1, 2 }, { 0, 4 }, { 0, 3 }, { 0, 5 } };

	CHECK_EQ(submit(fd, ops, ARRAY_SIZE(ops), &done, &bad), 0);
	CHECK_EQ(done, ARRAY_SIZE(ops));
	CHECK_EQ(bad, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		CHECK_EQ(ops[i].res, want[i].res);
		CHECK_EQ(ops[i].user_data, want[i].user_data);
	}
	expect_counts(fd, 3, 3, 0);
	CHECK_EQ(cancel(fd, ops[4].handle), 1);
	close(fd);
}

/* A handle never becomes valid again, although its slot is reused many times. */
static void stale_handles(void)
{
	int fd = dev_open(0);
	u64 old[200], h;
	struct twheel_event ev;

	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		old[i] = add(fd, i & 1 ? 0 : HOUR, i);
		if (i & 1)
			CHECK_EQ(read_one(fd, &ev), 1);
		else
			CHECK_EQ(cancel(fd, old[i]), 1);
		for (size_t k = 0; k < i; k++)
			CHECK(old[k] != old[i]);
	}
	h = add(fd, HOUR, 1234);
	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		CHECK_EQ(cancel(fd, old[i]), -ENOENT);
		CHECK_EQ(mod(fd, old[i], MS, 0), -ENOENT);
	}
	expect_counts(fd, 1, 1, 0);
	CHECK_EQ(cancel(fd, h), 1);
	close(fd);
}

/* Each transition in the drawing of the UAPI header, and the counts after it. */
static void states(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;
	struct twheel_info i;
	u64 once = add(fd, HOUR, 1), kept, ticking;

	expect_counts(fd, 1, 1, 0);
	kept = add_with(fd, TWHEEL_F_KEEP, 0, 0, 0);
	CHECK(readable(fd, WAIT_MS));
	expect_counts(fd, 2, 1, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_counts(fd, 2, 1, 0);
	ticking = add_with(fd, 0, 0, HOUR, 0);
	CHECK(readable(fd, WAIT_MS));
	expect_counts(fd, 3, 1, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_counts(fd, 3, 2, 0);
	CHECK_EQ(mod(fd, kept, 0, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	expect_counts(fd, 3, 2, 1);
	CHECK_EQ(cancel(fd, kept), 0);
	expect_counts(fd, 2, 2, 0);
	CHECK_EQ(cancel(fd, ticking), 1);
	expect_counts(fd, 1, 1, 0);
	CHECK_EQ(mod(fd, once, 0, 0), 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	expect_counts(fd, 0, 0, 0);
	info(fd, &i);
	CHECK_EQ(i.nr_expired, 4);
	CHECK(i.nr_wakeups >= 1);
	close(fd);
}

static void fdinfo_agrees(void)
{
	const struct twheel_setup s = { .clockid = MONO, .tick_ns = 2 * MS,
		.slack_ns = 5000, .max_timers = 50 };
	int fd = dev_open(0);
	struct twheel_info i;
	struct twheel_event ev;
	u64 value, now;

	CHECK_EQ(setup(fd, &s), 0);
	add(fd, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	add(fd, HOUR, 2);
	info(fd, &i);
	const struct { const char *key; u64 want; } keys[] = {
		{ "twheel-clockid", (u64)i.clockid },
		{ "twheel-tick-ns", i.tick_ns },
		{ "twheel-slack-ns", i.slack_ns },
		{ "twheel-max", i.max_timers },
		{ "twheel-timers", i.nr_timers },
		{ "twheel-armed", i.nr_armed },
		{ "twheel-ready", i.nr_ready },
		{ "twheel-mem-bytes", i.mem_bytes },
		{ "twheel-expired", i.nr_expired },
		{ "twheel-wakeups", i.nr_wakeups },
	};
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		value = ~0ULL;
		if (!CHECK(fdinfo_get(fd, keys[k].key, &value)) ||
		    !CHECK_EQ(value, keys[k].want))
			diag("	%s", keys[k].key);
	}
	/* The time of the next interrupt: it may only have to move timers. */
	now = now_ns(MONO);
	CHECK(fdinfo_get(fd, "twheel-next-ns", &value));
	CHECK(value > now && value <= now + HOUR + SEC);
	close(fd);
}

static const struct test tests[] = {
	{ fresh_info, "a new file: defaults, no timers" },
	{ setup_sets, "SETUP sets what INFO returns, until there is a timer" },
	{ one_shot, "relative one-shots: on time, once, user_data back" },
	{ absolute, "absolute times, past ones in the next tick" },
	{ far_away, "the latest times there are" },
	{ periodic, "periodic: phase kept, unread periods counted" },
	{ delay_flag, "DELAY: the count is always one" },
	{ delay_from_read, "DELAY: the period begins at the read" },
	{ keep, "KEEP: the handle lives until CANCEL" },
	{ pending_flag, "PENDING: MOD of armed timers only" },
	{ mod_rearms, "MOD replaces deadline, period and flags" },
	{ tick_order, "1000 events in the order of their ticks" },
	{ tick_grid, "ticks of other lengths, never early" },
	{ boottime, "CLOCK_BOOTTIME" },
	{ batch_results, "SUBMIT: a result for each operation" },
	{ stale_handles, "stale handles are unknown handles" },
	{ states, "INFO and fdinfo count every state" },
	{ fdinfo_agrees, "fdinfo says what INFO says" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
