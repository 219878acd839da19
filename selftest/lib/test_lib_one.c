// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Wheels for one thread (TWHEEL_ONE_THREAD), with ticks shorter and longer than those of the coarse
 * clock.
 */
#include <errno.h>
#include <string.h>

#include "lib.h"

#define N	2000

static const u64 ticks[] = { MS / 10, MS, 10 * MS };

static struct twheel *open_one(u64 tick)
{
	const struct twheel_setup setup = { .clockid = CLOCK_MONOTONIC, .tick_ns = tick };
	struct twheel *w = NULL;

	CHECK_EQ(twheel_open(&w, TWHEEL_ONE_THREAD, &setup), 0);
	return w;
}

/* The earliest and the latest deadline that each timer may have. */
static struct {
	u64		from, to;
	u32		fired;
	uint64_t	handle;
} asked[N];

static void arm(struct twheel *w, u32 i, u64 delay, bool again)
{
	u64 before = now_ns(CLOCK_MONOTONIC);

	if (again)
		CHECK(twheel_mod(w, asked[i].handle, delay, 0, TWHEEL_F_KEEP) >= 0);
	else
		CHECK_EQ(twheel_add(w, &asked[i].handle, i, delay, 0, TWHEEL_F_KEEP), 0);
	asked[i].from = before + delay;
	asked[i].to = now_ns(CLOCK_MONOTONIC) + delay;
	asked[i].fired = 0;
}

/*
 * Read events: each comes once, not early by the clock, and with the deadline that was asked for.
 */
static void collect(struct twheel *w)
{
	struct twheel_event ev[64];
	u32 done = 0;

	while (done < N && !failed()) {
		int n = wheel_read(w, ev, ARRAY_SIZE(ev));
		u64 now = now_ns(CLOCK_MONOTONIC);

		if (!CHECK(n > 0))
			break;
		for (int i = 0; i < n; i++) {
			u64 which = ev[i].user_data;

			CHECK(now >= asked[which].from);
			CHECK(ev[i].expires_ns >= asked[which].from);
			CHECK(ev[i].expires_ns <= asked[which].to);
			CHECK_EQ(asked[which].fired++, 0);
		}
		done += (u32)n;
	}
	CHECK_EQ(done, N);
}

static void delays(void)
{
	u64 seed = 7;

	for (u32 t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct twheel *w = open_one(ticks[t]);

		for (u32 i = 0; i < N; i++)
			arm(w, i, rnd(&seed) % (60 * MS), false);
		collect(w);
		for (u32 i = 0; i < N; i++)
			arm(w, i, rnd(&seed) % (60 * MS), true);
		collect(w);
		wheel_counts(w, N, 0, 0);
		twheel_close(w);
	}
}

/* A single timer: nothing but the timerfd wakes the reader. */
static void alone(void)
{
	for (u32 t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct twheel *w = open_one(ticks[t]);
		struct twheel_event ev;

		for (u32 i = 0; i < 5; i++) {
			u64 start = now_ns(CLOCK_MONOTONIC), deadline = start + (3 + i) * MS;
			uint64_t handle;
			int was;

			CHECK_EQ(twheel_add(w, &handle, i, deadline, 0, TWHEEL_F_ABS), 0);
			was = twheel_mod(w, handle, deadline + MS, 0, TWHEEL_F_ABS);
			/* It has fired before if the host stood still. */
			CHECK(was == 1 || (!was && now_ns(CLOCK_MONOTONIC) >= deadline));
			CHECK(readable(twheel_fd(w), WAIT_MS));
			CHECK_EQ(wheel_read(w, &ev, 1), 1);
			CHECK_EQ(ev.expires_ns, deadline + MS);
			CHECK(now_ns(CLOCK_MONOTONIC) >= deadline + MS);
			wheel_quiet(w, 0);
		}
		twheel_close(w);
	}
}

/* After a cancel no event of the timer comes, however old the time is that the cancel used. */
static void cancels(void)
{
	u64 seed = 11;

	for (u32 t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct twheel *w = open_one(ticks[t]);
		uint64_t data;

		for (u32 i = 0; i < N; i++)
			arm(w, i, rnd(&seed) % (4 * MS), false);
		sleep_ms(2);
		for (u32 i = 0; i < N; i++) {
			int rc = twheel_cancel(w, asked[i].handle, &data);

			CHECK(rc == 0 || rc == 1);
			CHECK_EQ(data, i);
			CHECK_EQ(twheel_cancel(w, asked[i].handle, NULL), -ENOENT);
		}
		wheel_quiet(w, 30);
		wheel_counts(w, 0, 0, 0);
		twheel_close(w);
	}
}

/*
 * Times that are too large become the end of time, and invalid input is refused, as without the
 * flag.
 */
static void far(void)
{
	struct twheel *w = open_one(10 * MS);
	struct twheel_op op;
	uint64_t handle = 0;

	CHECK_EQ(twheel_add(w, &handle, 0, ~0ULL, 0, 0), -EINVAL);
	CHECK_EQ(twheel_add(w, &handle, 0, 1ULL << 63, 0, 0), -EINVAL);
	CHECK_EQ(twheel_add(w, &handle, 0, INT64_MAX, 0, 0), 0);
	CHECK_EQ(twheel_query(w, handle, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, INT64_MAX);
	twheel_close(w);
}

static void flags(void)
{
	struct twheel *w = NULL;

	CHECK_EQ(twheel_open(&w, TWHEEL_EMBEDDED | TWHEEL_ONE_THREAD, NULL), 0);
	CHECK(!strcmp(twheel_backend(w), "embedded"));
	twheel_close(w);
	CHECK_EQ(twheel_open(&w, TWHEEL_ONE_THREAD, &(struct twheel_setup) {
		.clockid = CLOCK_BOOTTIME }), 0);
	wheel_add(w, 1, 2 * MS);
	CHECK_EQ(twheel_read(w, &(struct twheel_event) { 0 }, 1, WAIT_MS), 1);
	twheel_close(w);
}

int main(void)
{
	static const struct test tests[] = {
		{ delays, "one thread: delays are never early" },
		{ alone, "one thread: a deadline is the one that was given" },
		{ cancels, "one thread: no event after a cancel" },
		{ far, "one thread: the end of time" },
		{ flags, "one thread: each backend and clock" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
