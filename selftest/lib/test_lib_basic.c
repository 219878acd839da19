// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The timers of libtwheel: every operation, state and error, over either backend. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

static void choice(void)
{
	char *was = getenv("TWHEEL_BACKEND") ? strdup(getenv("TWHEEL_BACKEND")) : NULL;
	bool there = !access("/dev/twheel", R_OK | W_OK);
	struct twheel *w = NULL;

	CHECK_EQ(twheel_open(&w, 1U << 3, NULL), -EINVAL);
	setenv("TWHEEL_BACKEND", "diesel", 1);
	CHECK_EQ(twheel_open(&w, 0, NULL), -EINVAL);
	CHECK(!w);
	/*
	 * An option has priority over the environment. With both backends as options, either may be
	 * used.
	 */
	CHECK_EQ(twheel_open(&w, TWHEEL_KERNEL | TWHEEL_EMBEDDED, NULL), 0);
	CHECK(!strcmp(twheel_backend(w), there ? "kernel" : "embedded"));
	twheel_close(w);
	CHECK_EQ(twheel_open(&w, TWHEEL_EMBEDDED, NULL), 0);
	CHECK(!strcmp(twheel_backend(w), "embedded"));
	twheel_close(w);
	setenv("TWHEEL_BACKEND", "embedded", 1);
	CHECK_EQ(twheel_open(&w, 0, NULL), 0);
	CHECK(!strcmp(twheel_backend(w), "embedded"));
	twheel_close(w);
	w = NULL;
	CHECK_EQ(twheel_open(&w, TWHEEL_KERNEL, NULL), there ? 0 : -ENOENT);
	CHECK(!w == !there);
	twheel_close(w);
	unsetenv("TWHEEL_BACKEND");
	CHECK_EQ(twheel_open(&w, 0, NULL), 0);
	CHECK(!strcmp(twheel_backend(w), there ? "kernel" : "embedded"));
	twheel_close(w);
	setenv("TWHEEL_BACKEND", "kernel", 1);
	w = NULL;
	CHECK_EQ(twheel_open(&w, 0, NULL), there ? 0 : -ENOENT);
	CHECK(!w == !there);
	twheel_close(w);
	if (was)
		setenv("TWHEEL_BACKEND", was, 1);
	else
		unsetenv("TWHEEL_BACKEND");
	free(was);
}

static void setups(void)
{
	static const struct twheel_setup bad[] = {
		{ .clockid = CLOCK_PROCESS_CPUTIME_ID }, { .clockid = CLOCK_MONOTONIC, .flags = 1 },
		{ .clockid = -1 }, { .clockid = CLOCK_MONOTONIC, .reserved = 1 },
		{ .clockid = CLOCK_MONOTONIC, .tick_ns = MS / 10 - 1 },
		{ .clockid = CLOCK_MONOTONIC, .tick_ns = SEC + 1 },
		{ .clockid = CLOCK_MONOTONIC, .slack_ns = SEC },
		{ .clockid = CLOCK_MONOTONIC, .max_timers = ~0U },
	};
	static const struct twheel_setup good[] = {
		{ .clockid = CLOCK_MONOTONIC, .tick_ns = MS / 10 },
		{ .clockid = CLOCK_REALTIME },
		{ .clockid = CLOCK_BOOTTIME, .tick_ns = SEC, .slack_ns = SEC - 1 },
		{ .clockid = CLOCK_MONOTONIC, .max_timers = 1 },
	};
	struct twheel_info i;
	struct twheel *w;

	for (u32 n = 0; n < ARRAY_SIZE(bad); n++)
		if (!CHECK_EQ(twheel_open(&w, 0, &bad[n]), -EINVAL))
			diag("	of bad setup %u", n);
	for (u32 n = 0; n < ARRAY_SIZE(good); n++) {
		w = wheel_new(&good[n]);
		twheel_get_info(w, &i);
		CHECK_EQ(i.clockid, good[n].clockid);
		CHECK_EQ(i.tick_ns, good[n].tick_ns ?: MS);
		CHECK_EQ(i.slack_ns, good[n].slack_ns);
		CHECK(!good[n].max_timers || i.max_timers == good[n].max_timers);
		twheel_close(w);
	}
}

static void one_shot(void)
{
	struct twheel *w = wheel_new(NULL);
	u64 before = now_ns(CLOCK_MONOTONIC);
	uint64_t handle = wheel_add(w, 7, SEC), user_data = 0;
	u64 after = now_ns(CLOCK_MONOTONIC);
	struct twheel_info i = { 0 };
	struct twheel_event ev;

	CHECK_EQ(twheel_get_info(w, &i), 0);
	/* If the host stood still, it may have fired already. */
	if (i.nr_armed || now_ns(CLOCK_MONOTONIC) < before + SEC)
		wheel_counts_are(&i, 1, 1, 0);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 7);
	CHECK_EQ(ev.handle, handle);
	CHECK(ev.expires_ns >= before + SEC && ev.expires_ns <= after + SEC);
	CHECK_EQ(ev.count, 1);
	CHECK_EQ(ev.flags, 0);
	wheel_counts(w, 0, 0, 0);
	CHECK_EQ(twheel_cancel(w, handle, &user_data), -ENOENT);
	CHECK_EQ(twheel_mod(w, handle, MS, 0, 0), -ENOENT);
	CHECK_EQ(user_data, 0);
	wheel_quiet(w, 0);
	twheel_close(w);
}

/* Timers with random delays, read a few at a time: each fires once, in the order of ticks. */
static void order(void)
{
	enum { N = 3000 };
	static unsigned char seen[N];
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev[100];
	u64 seed = 42, last = 0;
	int n, done = 0;

	memset(seen, 0, sizeof(seen));
	for (u32 i = 0; i < N; i++)
		wheel_add(w, i, rnd(&seed) % (100 * MS));
	while (done < N && !failed()) {
		n = wheel_read(w, ev, ARRAY_SIZE(ev));
		if (!CHECK(n > 0))
			break;
		for (int i = 0; i < n; i++) {
			u64 tick = (ev[i].expires_ns + MS - 1) / MS;

			CHECK(tick >= last);
			last = tick;
			CHECK_EQ(seen[ev[i].user_data]++, 0);
		}
		done += n;
	}
	CHECK_EQ(done, N);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
}

static void cancels(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t armed = wheel_add(w, 1, HOUR), ready = wheel_add(w, 2, 0), data = 0;

	CHECK(readable(twheel_fd(w), WAIT_MS));
	CHECK_EQ(twheel_cancel(w, armed, &data), 1);
	CHECK_EQ(data, 1);
	CHECK_EQ(twheel_cancel(w, armed, NULL), -ENOENT);
	CHECK_EQ(twheel_cancel(w, ready, &data), 0);
	CHECK_EQ(data, 2);
	CHECK_EQ(twheel_cancel(w, ready, NULL), -ENOENT);
	CHECK_EQ(twheel_cancel(w, 0, NULL), -ENOENT);
	CHECK_EQ(twheel_cancel(w, ~0ULL, NULL), -ENOENT);
	CHECK(!readable(twheel_fd(w), 0));
	wheel_quiet(w, QUIET_MS);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
}

static void mods(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	u64 handle = wheel_add(w, 1, HOUR), now;

	CHECK_EQ(twheel_mod(w, handle, 2 * HOUR, 0, TWHEEL_F_PENDING), 1);
	CHECK_EQ(twheel_mod(w, handle, 0, 0, 0), 1);
	CHECK(readable(twheel_fd(w), WAIT_MS));
	/* The timer has expired: it is no longer pending, and its event is dropped. */
	CHECK_EQ(twheel_mod(w, handle, HOUR, 0, TWHEEL_F_PENDING), -ENOENT);
	CHECK(readable(twheel_fd(w), 0));
	now = now_ns(CLOCK_MONOTONIC);
	CHECK_EQ(twheel_mod(w, handle, 20 * MS, 0, 0), 0);
	CHECK(!readable(twheel_fd(w), 0) || now_ns(CLOCK_MONOTONIC) >= now + 20 * MS);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK(ev.expires_ns >= now + 20 * MS);
	CHECK_EQ(ev.user_data, 1);
	CHECK_EQ(twheel_mod(w, handle, MS, 0, 0), -ENOENT);
	wheel_quiet(w, 0);
	twheel_close(w);
}

static void keep(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	uint64_t handle;

	CHECK_EQ(twheel_add(w, &handle, 9, MS, 0, TWHEEL_F_KEEP), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
		CHECK_EQ(ev.handle, handle);
		CHECK_EQ(ev.flags, TWHEEL_EV_MORE);
		wheel_counts(w, 1, 0, 0);
		CHECK_EQ(twheel_mod(w, handle, MS, 0, TWHEEL_F_KEEP | TWHEEL_F_PENDING), -ENOENT);
		CHECK_EQ(twheel_mod(w, handle, MS, 0, TWHEEL_F_KEEP), 0);
	}
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(twheel_cancel(w, handle, NULL), 0);
	CHECK_EQ(twheel_cancel(w, handle, NULL), -ENOENT);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
}

static void absolute(void)
{
	struct twheel *w = wheel_new(NULL);
	u64 when = now_ns(CLOCK_MONOTONIC) + HOUR;
	struct twheel_event ev[2];
	uint64_t handle, other;

	CHECK_EQ(twheel_add(w, &handle, 1, when, 0, TWHEEL_F_ABS), 0);
	CHECK_EQ(twheel_add(w, &other, 2, 12345, 0, TWHEEL_F_ABS), 0);	/* long over */
	CHECK_EQ(wheel_read(w, &ev[0], 1), 1);
	when = now_ns(CLOCK_MONOTONIC) + 10 * MS;
	CHECK_EQ(twheel_mod(w, handle, when, 0, TWHEEL_F_ABS), 1);
	CHECK_EQ(wheel_read(w, &ev[1], 1), 1);
	CHECK_EQ(ev[0].user_data, 2);
	CHECK_EQ(ev[0].expires_ns, 12345);
	CHECK_EQ(ev[1].user_data, 1);
	CHECK_EQ(ev[1].expires_ns, when);
	twheel_close(w);
}

/* The periods that were not read are counted, and the phase is kept. */
static void fixed_rate(void)
{
	const u64 period = 10 * MS;
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev, next;
	uint64_t handle;

	CHECK_EQ(twheel_add(w, &handle, 1, period, period, 0), 0);
	sleep_ms(55);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK(ev.count >= 5);
	CHECK(ev.expires_ns + (ev.count - 1) * period <= now_ns(CLOCK_MONOTONIC));
	CHECK_EQ(ev.flags, TWHEEL_EV_MORE);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(wheel_read(w, &next, 1), 1);
		CHECK_EQ(next.expires_ns, ev.expires_ns + ev.count * period);
		ev = next;
	}
	CHECK_EQ(twheel_cancel(w, handle, NULL) & ~1, 0);
	wheel_quiet(w, QUIET_MS);
	twheel_close(w);
}

static void fixed_delay(void)
{
	const u64 period = 10 * MS;
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	uint64_t handle, before;

	CHECK_EQ(twheel_add(w, &handle, 1, 0, period, TWHEEL_F_DELAY), 0);
	for (int i = 0; i < 3; i++) {
		sleep_ms(25);
		before = now_ns(CLOCK_MONOTONIC);
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
		CHECK_EQ(ev.count, 1);
	}
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK(ev.expires_ns >= before + period);
	twheel_close(w);
}

/* Each operation with what is wrong in it. The good operations around it must be done. */
static void invalid(void)
{
	static const struct twheel_op bad[] = {
		{ .op = 0 }, { .op = 99 },
		{ .op = TWHEEL_OP_ADD, .handle = 1 }, { .op = TWHEEL_OP_ADD, .res = 1 },
		{ .op = TWHEEL_OP_ADD, .reserved = 1 }, { .op = TWHEEL_OP_ADD, .flags = 1U << 31 },
		{ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_PENDING },
		{ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_DELAY },
		{ .op = TWHEEL_OP_ADD, .expires_ns = 1ULL << 63 },
		{ .op = TWHEEL_OP_ADD, .interval_ns = 1ULL << 63 },
		{ .op = TWHEEL_OP_ADD, .interval_ns = MS - 1 },
		{ .op = TWHEEL_OP_MOD, .user_data = 1 },
		{ .op = TWHEEL_OP_CANCEL, .flags = TWHEEL_F_ABS },
		{ .op = TWHEEL_OP_CANCEL, .user_data = 1 },
		{ .op = TWHEEL_OP_CANCEL, .expires_ns = 1 },
		{ .op = TWHEEL_OP_CANCEL, .interval_ns = 1 },
		{ .op = TWHEEL_OP_QUERY, .flags = TWHEEL_F_KEEP },
		{ .op = TWHEEL_OP_QUERY, .expires_ns = 1 },
	};
	struct twheel *w = wheel_new(NULL);
	struct twheel_op ops[3];

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(ops, 0, sizeof(ops));
		ops[0].op = TWHEEL_OP_ADD;
		ops[0].expires_ns = HOUR;
		ops[1] = bad[i];
		ops[2] = ops[0];
		CHECK_EQ(twheel_submit(w, ops, 3), 1);
		CHECK_EQ(ops[0].res, 0);
		if (!CHECK_EQ(ops[1].res, -EINVAL))
			diag("	of bad operation %u", i);
		CHECK_EQ(ops[2].res, 0);
		CHECK(ops[0].handle != ops[2].handle);
		wheel_counts(w, 2 * i + 2, 2 * i + 2, 0);
	}
	CHECK_EQ(twheel_submit(w, ops, 1U << 31), -EINVAL);
	CHECK_EQ(twheel_submit(w, ops, 0), 0);
	twheel_close(w);
}

static void saturation(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t far[3], data;
	struct twheel_op op;

	CHECK_EQ(twheel_add(w, &far[0], 1, INT64_MAX, 0, 0), 0);
	CHECK_EQ(twheel_add(w, &far[1], 2, INT64_MAX, INT64_MAX, TWHEEL_F_ABS), 0);
	CHECK_EQ(twheel_add(w, &far[2], 3, 36500ULL * 24 * HOUR, 0, 0), 0);
	CHECK_EQ(twheel_query(w, far[0], TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, INT64_MAX);
	wheel_quiet(w, QUIET_MS);
	for (u32 i = 0; i < 3; i++) {
		CHECK_EQ(twheel_cancel(w, far[i], &data), 1);
		CHECK_EQ(data, i + 1);
	}
	twheel_close(w);
}

static void quota(void)
{
	struct twheel_setup setup = { .clockid = CLOCK_MONOTONIC, .max_timers = 3 };
	struct twheel *w = wheel_new(&setup);
	uint64_t handle, first = wheel_add(w, 0, HOUR);

	wheel_add(w, 0, HOUR);
	wheel_add(w, 0, HOUR);
	CHECK_EQ(twheel_add(w, &handle, 0, HOUR, 0, 0), -EDQUOT);
	CHECK_EQ(twheel_cancel(w, first, NULL), 1);
	wheel_add(w, 0, HOUR);
	CHECK_EQ(twheel_add(w, &handle, 0, HOUR, 0, 0), -EDQUOT);
	wheel_counts(w, 3, 3, 0);
	twheel_close(w);
}

/* The slot of a timer is used again at once, with another handle. */
static void stale_handles(void)
{
	struct twheel *w = wheel_new(NULL);
	u64 was = wheel_add(w, 1, HOUR), is;

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(twheel_cancel(w, was, NULL), 1);
		is = wheel_add(w, 1, HOUR);
		CHECK(is != was);
		CHECK_EQ(twheel_cancel(w, was, NULL), -ENOENT);
		CHECK_EQ(twheel_mod(w, was, HOUR, 0, 0), -ENOENT);
		was = is;
	}
	wheel_counts(w, 1, 1, 0);
	twheel_close(w);
}

/* More operations than one ioctl can take. */
static void bulk(void)
{
	enum { N = 2 * TWHEEL_BATCH_MAX + 1000 };
	struct twheel_op *ops = calloc(N, sizeof(*ops));
	struct twheel *w = wheel_new(NULL);

	for (u32 i = 0; i < N; i++) {
		ops[i].op = TWHEEL_OP_ADD;
		ops[i].user_data = i;
		ops[i].expires_ns = HOUR + i * MS;
	}
	ops[TWHEEL_BATCH_MAX + 1].flags = ~0U;
	CHECK_EQ(twheel_submit(w, ops, N), 1);
	wheel_counts(w, N - 1, N - 1, 0);
	for (u32 i = 0; i < N; i++)
		ops[i] = (struct twheel_op) { .op = TWHEEL_OP_CANCEL, .handle = ops[i].handle };
	CHECK_EQ(twheel_submit(w, ops, N), 1);
	CHECK_EQ(ops[TWHEEL_BATCH_MAX + 1].res, -ENOENT);
	CHECK_EQ(ops[N - 1].res, 1);
	CHECK_EQ(ops[N - 1].user_data, N - 1);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
	free(ops);
}

static void timeouts(void)
{
	struct twheel *w = wheel_new(NULL);
	u64 start = now_ns(CLOCK_MONOTONIC);
	struct twheel_event ev;

	CHECK_EQ(twheel_read(w, &ev, 0, 0), -EINVAL);
	wheel_add(w, 0, 0);	/* so that a wait that should not happen ends */
	CHECK_EQ(twheel_read(w, &ev, 1, -2), -EINVAL);
	CHECK_EQ(twheel_read(w, &ev, 1, INT32_MIN), -EINVAL);
	CHECK_EQ(twheel_read(w, &ev, 1, WAIT_MS), 1);
	CHECK_EQ(twheel_read(w, &ev, 1, 0), -EAGAIN);
	CHECK_EQ(twheel_read(w, &ev, 1, 30), -EAGAIN);
	CHECK(now_ns(CLOCK_MONOTONIC) >= start + 30 * MS);
	wheel_add(w, 1, 5 * MS);
	CHECK_EQ(twheel_read(w, &ev, 1, -1), 1);
	twheel_close(w);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Again and again until the read has ended, since it may begin late on a busy host. */
static atomic_bool interrupted;

static void *signal_it(void *arg)
{
	while (!interrupted) {
		sleep_ms(5);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	}
	return NULL;
}

static void signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), thread;
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;

	sigaction(SIGUSR1, &act, NULL);
	interrupted = false;
	pthread_create(&thread, NULL, signal_it, &self);
	CHECK_EQ(twheel_read(w, &ev, 1, WAIT_MS), -EINTR);
	interrupted = true;
	pthread_join(thread, NULL);
	twheel_close(w);
}

static void *add_soon(void *arg)
{
	sleep_ms(20);
	wheel_add(arg, 2, MS);
	return NULL;
}

/* A reader that waits for a timer far ahead is woken by an earlier timer. */
static void earlier(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	pthread_t thread;

	wheel_add(w, 1, HOUR);
	pthread_create(&thread, NULL, add_soon, w);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 2);
	pthread_join(thread, NULL);
	twheel_close(w);
}

static void boottime(void)
{
	struct twheel_setup setup = { .clockid = CLOCK_BOOTTIME, .tick_ns = MS / 10 };
	struct twheel *w = wheel_new(&setup);
	u64 when = now_ns(CLOCK_BOOTTIME) + 3 * MS;
	uint64_t handle;
	struct twheel_event ev;

	CHECK_EQ(twheel_add(w, &handle, 1, when, 0, TWHEEL_F_ABS), 0);
	CHECK_EQ(twheel_read(w, &ev, 1, WAIT_MS), 1);
	CHECK(now_ns(CLOCK_BOOTTIME) >= when);
	CHECK_EQ(ev.expires_ns, when);
	twheel_close(w);
}

static void queries(void)
{
	struct twheel *w = wheel_new(NULL);
	u64 before = now_ns(CLOCK_MONOTONIC);
	struct twheel_event ev;
	struct twheel_op op;
	uint64_t handle;

	CHECK_EQ(twheel_add(w, &handle, 9, HOUR, SEC, TWHEEL_F_KEEP), 0);
	CHECK_EQ(twheel_query(w, handle, 0, &op), TWHEEL_STATE_ARMED);
	CHECK(op.expires_ns <= HOUR && op.expires_ns + now_ns(CLOCK_MONOTONIC) >= before + HOUR);
	CHECK_EQ(op.user_data, 9);
	CHECK_EQ(op.interval_ns, SEC);
	CHECK_EQ(twheel_query(w, handle, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK(op.expires_ns >= before + HOUR && op.expires_ns <= now_ns(CLOCK_MONOTONIC) + HOUR);
	CHECK_EQ(twheel_query(w, handle, TWHEEL_F_KEEP, &op), -EINVAL);
	CHECK_EQ(twheel_query(w, handle + 1, 0, &op), -ENOENT);
	CHECK_EQ(twheel_mod(w, handle, 0, 0, TWHEEL_F_KEEP), 1);
	CHECK(readable(twheel_fd(w), WAIT_MS));
	for (int i = 0; i < 2; i++) {	/* asking twice changes nothing */
		CHECK_EQ(twheel_query(w, handle, 0, &op), TWHEEL_STATE_READY);
		CHECK_EQ(op.expires_ns, 0);
		CHECK_EQ(op.interval_ns, 0);
	}
	CHECK_EQ(twheel_query(w, handle, TWHEEL_F_ABS, &op), TWHEEL_STATE_READY);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(ev.expires_ns, op.expires_ns);
	CHECK_EQ(twheel_query(w, handle, TWHEEL_F_ABS, &op), TWHEEL_STATE_IDLE);
	CHECK_EQ(op.expires_ns, ev.expires_ns);
	CHECK_EQ(twheel_cancel(w, handle, NULL), 0);
	CHECK_EQ(twheel_query(w, handle, 0, &op), -ENOENT);
	twheel_close(w);
}

/* Timers are due together, and some are cancelled: whichever are left must fire. */
static void drains_rest(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_op ops[16];
	uint64_t handle[16];

	for (u64 left = 0; left < 16; left++) {
		for (u64 i = 0; i < 16; i++)
			CHECK_EQ(twheel_add(w, &handle[i], i, 30 * SEC, 0, 0), 0);
		for (u64 i = 0; i < 16; i++)
			if (i != left)
				CHECK_EQ(twheel_cancel(w, handle[i], NULL), 1);
		CHECK_EQ(twheel_drain(w, ops, 16, 0), 1);
		CHECK_EQ(ops[0].user_data, left);
	}
	twheel_close(w);
}

/* All armed timers are returned, and can be added to another wheel as they were. */
static void drains(void)
{
	enum { N = 1000 };
	static struct twheel_op ops[N], some[300];
	static unsigned char seen[N];
	struct twheel *w = wheel_new(NULL), *other;
	uint64_t idle, handle;
	struct twheel_event ev;
	int n, done = 0;

	memset(seen, 0, sizeof(seen));
	CHECK_EQ(twheel_drain(w, ops, N, 0), 0);
	CHECK_EQ(twheel_drain(w, ops, 0, 0), -EINVAL);
	CHECK_EQ(twheel_drain(w, ops, N, TWHEEL_F_KEEP), -EINVAL);
	CHECK_EQ(twheel_add(w, &idle, 1, 0, 0, TWHEEL_F_KEEP), 0);
	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	wheel_add(w, 12345, 0);
	wheel_add(w, 12345, 0);
	for (u64 i = 0; i < N; i++)
		CHECK_EQ(twheel_add(w, &handle, i, HOUR + i * SEC, i % 2 * SEC,
				    i % 3 ? 0 : TWHEEL_F_KEEP), 0);
	sleep_ms(20);
	do {
		n = twheel_drain(w, some, ARRAY_SIZE(some), TWHEEL_F_ABS);
		if (CHECK(n >= 0 && done + n <= N))
			memcpy(&ops[done], some, (size_t)n * sizeof(*some));
		done += n;
	} while (n > 0 && !failed());
	CHECK_EQ(done, N);
	wheel_counts(w, 3, 0, 2);	/* idle and ready timers stay */
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
		CHECK_EQ(ev.user_data, 12345);
	}
	CHECK_EQ(twheel_cancel(w, idle, NULL), 0);

	other = wheel_new(NULL);
	for (u32 i = 0; i < N; i++) {
		u64 data = ops[i].user_data;

		CHECK(data < N && !seen[data]++);
		CHECK_EQ(twheel_cancel(w, ops[i].handle, NULL), -ENOENT);
		CHECK_EQ(ops[i].interval_ns, data % 2 * SEC);
		CHECK_EQ(ops[i].flags, TWHEEL_F_ABS | (data % 3 ? 0 : TWHEEL_F_KEEP));
		ops[i].handle = 0;
	}
	CHECK_EQ(twheel_submit(other, ops, N), 0);
	wheel_counts(other, N, N, 0);
	for (u32 i = 0; i < N; i++) {
		CHECK_EQ(twheel_query(other, ops[i].handle, TWHEEL_F_ABS, &some[0]),
			 TWHEEL_STATE_ARMED);
		CHECK_EQ(some[0].expires_ns, ops[i].expires_ns);
	}
	twheel_close(other);
	twheel_close(w);
}

/* One timer in each level, by its distance. The last is 150 years ahead. */
static void levels(void)
{
	static const u64 delays[] = { 30, 1000, 10 * 3600, 30 * 86400, 3650 * 86400ULL,
				      54750 * 86400ULL };
	const struct twheel_setup setup = { .clockid = CLOCK_MONOTONIC, .tick_ns = SEC };
	struct twheel *w = wheel_new(&setup);
	struct twheel_levels levels;

	for (u32 i = 0; i < TWHEEL_LEVELS; i++)
		wheel_add(w, i, delays[i] * SEC);
	if (!strcmp(twheel_backend(w), "kernel")) {
		CHECK_EQ(twheel_get_levels(w, &levels), -EOPNOTSUPP);
	} else {
		memset(&levels, POISON, sizeof(levels));
		CHECK_EQ(twheel_get_levels(w, &levels), 0);
		for (u32 i = 0; i < TWHEEL_LEVELS; i++) {
			CHECK_EQ(levels.timers[i], 1);
			CHECK_EQ(levels.buckets[i], 1);
		}
	}
	twheel_close(w);
}

/* The program closes the descriptor, which it must not do. No call may crash, or never return. */
static void closed(void)
{
	struct twheel *w = wheel_new(NULL);
	int fd = twheel_fd(w), err;
	uint64_t handle;

	close(fd);
	err = twheel_add(w, &handle, 1, MS, 0, 0);
	CHECK(!err || err == -EBADF);
	/* Give twheel_close() a descriptor that it can close. */
	CHECK_EQ(dup2(STDERR_FILENO, fd), fd);
	twheel_close(w);
}

int main(void)
{
	static const struct test tests[] = {
		{ choice, "the backend is that of the option, the environment, or what there is" },
		{ setups, "good setups are accepted, bad ones refused" },
		{ one_shot, "a one-shot gives one event and is gone" },
		{ order, "3000 timers fire once each, in the order of ticks" },
		{ cancels, "a cancel says what it cancelled, and nothing of it is read" },
		{ mods, "a timer is re-armed in any state" },
		{ keep, "KEEP: a handle for life" },
		{ absolute, "ABS: times of the clock, past ones at once" },
		{ fixed_rate, "a periodic timer counts periods and keeps its phase" },
		{ fixed_delay, "DELAY: the next period begins at the read" },
		{ invalid, "bad operations are EINVAL, and the others are done" },
		{ saturation, "the end of time: no overflow" },
		{ quota, "EDQUOT at the limit, until a timer is freed" },
		{ stale_handles, "a handle names no other timer later" },
		{ queries, "QUERY returns the state, and changes nothing" },
		{ drains_rest, "DRAIN finds the only timer that is left" },
		{ drains, "DRAIN returns all armed timers, to be added elsewhere" },
		{ bulk, "a batch of any length" },
		{ timeouts, "a read waits for its timeout" },
		{ signals, "a signal ends a read" },
		{ earlier, "an earlier timer wakes a reader that waits for a later one" },
		{ levels, "twheel_get_levels() counts the timers of each level" },
		{ boottime, "CLOCK_BOOTTIME and a tick of 100 us" },
		{ closed, "a program that closes the descriptor harms itself only" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
