// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The clocks over a suspend to RAM, which the RTC ends after SLEEP_S seconds:
 * CLOCK_MONOTONIC stands still meanwhile, CLOCK_BOOTTIME jumps.
 *
 * Not one of test_*: it needs a machine of its own and root, and is run last.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "uapi.h"

#define SLEEP_S		4

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Returns how much further the one clock went than the other, in ns. */
static u64 suspend_machine(void)
{
	u64 mono = now_ns(CLOCK_MONOTONIC), boot = now_ns(CLOCK_BOOTTIME);
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "+%d\n", SLEEP_S);
	CHECK(write_file("/sys/class/rtc/rtc0/wakealarm", seconds));
	CHECK(write_file("/sys/power/state", "mem\n"));
	return now_ns(CLOCK_BOOTTIME) - boot - (now_ns(CLOCK_MONOTONIC) - mono);
}

/* The next event, which is @user_data's and not early by @clock. Returns when it came. */
static u64 expect_next(int fd, clockid_t clock, u64 user_data)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct twheel_event ev = { 0 };
	u64 now;

	CHECK_EQ(poll(&p, 1, WAIT_MS), 1);
	CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
	now = now_ns(clock);
	CHECK_EQ(ev.user_data, user_data);
	CHECK_EQ(ev.count, 1);
	CHECK(now >= ev.expires_ns);
	return now;
}

static void clocks_over_suspend(void)
{
	struct twheel_setup boottime = { .clockid = CLOCK_BOOTTIME };
	struct pollfd p = { .events = POLLIN };
	int mono = dev_open(0), boot = dev_open(0);
	struct twheel_info i;
	u64 armed, slept;

	CHECK_EQ(setup(boot, &boottime), 0);
	armed = now_ns(CLOCK_MONOTONIC);
	add(mono, 3 * SEC, 1);
	add(boot, 3 * SEC, 2);
	add(boot, HOUR, 3);
	slept = suspend_machine();
	printf("# the machine slept for %llu ms\n", (unsigned long long)slept / 1000000);
	CHECK(slept >= 2500 * MS);

	/*
	 * It has slept through this deadline, which is told at once: an interrupt of the clock that
	 * stood still would come later ...
	 */
	expect_next(boot, CLOCK_BOOTTIME, 2);
	CHECK(now_ns(CLOCK_MONOTONIC) < armed + 3 * SEC);
	/* ... and through none of the clock that stood still. */
	p.fd = mono;
	if (now_ns(CLOCK_MONOTONIC) < armed + 3 * SEC - 500 * MS)
		CHECK_EQ(poll(&p, 1, 0), 0);
	expect_next(mono, CLOCK_MONOTONIC, 1);

	info(boot, &i);
	CHECK_EQ(i.nr_armed, 1);
	CHECK_EQ(i.nr_expired, 1);
	/* Now the clocks are apart. What is armed for soon comes soon. */
	add(boot, 100 * MS, 4);
	armed = now_ns(CLOCK_MONOTONIC);
	expect_next(boot, CLOCK_BOOTTIME, 4);
	CHECK(now_ns(CLOCK_MONOTONIC) < armed + slept);
	close(mono);
	close(boot);
}

static void still_works(void)
{
	int fd = dev_open(0);

	add_many(fd, 1000, 10 * MS, 0);
	for (u32 n = 0; n < 1000 && !failed(); ) {
		struct twheel_event ev[64];
		ssize_t got = read(fd, ev, sizeof(ev));

		CHECK(got > 0);
		n += got > 0 ? (u32)got / sizeof(ev[0]) : 0;
	}
	close(fd);
}

static const struct test tests[] = {
	{ clocks_over_suspend, "MONOTONIC stands still in suspend, BOOTTIME goes on" },
	{ still_works, "and timers go on after it" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
