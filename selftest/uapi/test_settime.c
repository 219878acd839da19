// SPDX-License-Identifier: GPL-2.0
/*
 * The time of day is set forwards and backwards, and timers of CLOCK_MONOTONIC and
 * CLOCK_BOOTTIME do not care: none is early, and all come.
 */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TIMERS	500
#define STEP_S	(3600 * 24)

static bool ended;
static u32 steps;

static void step(long by)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += by;
	CHECK(!clock_settime(CLOCK_REALTIME, &ts));
	steps++;
}

static void *set_time(void *arg)
{
	static const long by[] = { STEP_S, -2 * STEP_S, STEP_S, 3600, -3600 };

	for (u32 i = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED) || i % 5; i++) {
		step(by[i % 5]);
		sleep_ms(3);
	}
	return arg;
}

static void on(clockid_t clock)
{
	struct twheel_setup s = { .clockid = clock };
	struct twheel_event ev[TIMERS];
	int fd = dev_open(0), got = 0, n;
	u64 due[TIMERS], now;

	CHECK_EQ(setup(fd, &s), 0);
	now = now_ns(clock);
	for (u32 i = 0; i < TIMERS; i++) {
		due[i] = now + i * 2 * MS;
		add_with(fd, TWHEEL_F_ABS, due[i], 0, i);
	}
	while (got < TIMERS && readable(fd, WAIT_MS) &&
	       (n = read_events(fd, ev, TIMERS)) > 0) {
		now = now_ns(clock);
		for (int i = 0; i < n; i++)
			CHECK(now >= due[ev[i].user_data]);
		got += n;
	}
	CHECK_EQ(got, TIMERS);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void stepped(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, set_time, NULL))
		bail("pthread_create");
	on(CLOCK_MONOTONIC);
	on(CLOCK_BOOTTIME);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	diag("the time of day was set %u times", steps);
	CHECK(steps > 10);
}

static const struct test tests[] = {
	{ stepped, "timers do not care for the time of day" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
