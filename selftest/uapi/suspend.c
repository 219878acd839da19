// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The clocks during a suspend to RAM, from which a timer of an alarm clock wakes the machine after
 * SLEEP_S seconds: CLOCK_MONOTONIC stands still meanwhile, and CLOCK_BOOTTIME goes on.
 *
 * This needs root and a machine of its own, and runs last. There is only one suspend: from a second
 * one, QEMU's machine would wake at once, even with no alarm. With an argument, the alarm clock is
 * CLOCK_REALTIME_ALARM.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ring.h"

#define SLEEP_S		11
/*
 * When timers are due, in seconds: while the machine sleeps. To suspend it takes some time before
 * that, on a busy host seconds.
 */
#define DUE_S		8

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Suspend. Returns by how much the one clock went further than the other, in ns. */
static u64 suspend_machine(void)
{
	u64 mono = now_ns(CLOCK_MONOTONIC), boot = now_ns(CLOCK_BOOTTIME);

	CHECK(write_file("/sys/power/state", "mem\n"));
	return now_ns(CLOCK_BOOTTIME) - boot - (now_ns(CLOCK_MONOTONIC) - mono);
}

static clockid_t alarm_clock = CLOCK_BOOTTIME_ALARM;

/* Arm a timer by a command of io_uring. */
static void add_by_command(int fd, u64 delay, u64 user_data)
{
	struct twheel_op op = { .op = TWHEEL_OP_ADD, .expires_ns = delay, .user_data = user_data };
	struct io_uring_cqe cqe = { 0 };
	struct ring ring;

	ring_open(&ring, 1, 0);
	ring_command(ring_sqe(&ring, IORING_OP_URING_CMD, fd, 0), TWHEEL_URING_SUBMIT, &op, 1);
	CHECK_EQ(ring_enter(&ring, 1), 1);
	CHECK(ring_peek(&ring, &cqe));
	CHECK_EQ(cqe.res, 1);
	CHECK_EQ(op.res, 0);
	ring_close(&ring);
}

/*
 * Open a file whose next event is due in SLEEP_S seconds. Its timer is armed by a read() of a
 * periodic timer, or, on CLOCK_REALTIME_ALARM, by io_uring. The file also has a later timer, and
 * one that was cancelled.
 */
static int alarm_file(void)
{
	struct twheel_setup s = { .clockid = alarm_clock };
	struct twheel_event ev;
	int fd = dev_open(0);

	CHECK_EQ(setup(fd, &s), 0);
	add(fd, HOUR, 1);
	CHECK_EQ(cancel(fd, add(fd, 2 * SLEEP_S * SEC, 2)), 1);
	if (alarm_clock == CLOCK_REALTIME_ALARM) {
		add_by_command(fd, SLEEP_S * SEC, 3);
		return fd;
	}
	add_with(fd, 0, 10 * MS, SLEEP_S * SEC, 3);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	return fd;
}

/*
 * Read the next event, which must be that of @user_data and not early by @clock. Returns when it
 * came.
 */
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

/* Open a file with a timer that wants to be told when CLOCK_REALTIME is set. */
static int told_file(void)
{
	struct twheel_setup s = { .clockid = CLOCK_REALTIME };
	int fd = dev_open(0);

	CHECK_EQ(setup(fd, &s), 0);
	add_with(fd, TWHEEL_F_CANCEL_ON_SET, 24 * HOUR, 0, 5);
	return fd;
}

/* It is told of a suspend, too. */
static void expect_told(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct twheel_event ev = { 0 };

	CHECK_EQ(poll(&p, 1, WAIT_MS), 1);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 5);
	CHECK_EQ(ev.flags, TWHEEL_EV_CLOCK_SET);
	close(fd);
}

static void clocks_over_suspend(void)
{
	struct twheel_setup boottime = { .clockid = CLOCK_BOOTTIME };
	struct pollfd p = { .events = POLLIN };
	int mono = dev_open(0), boot = dev_open(0), alarm = alarm_file(), told = told_file();
	struct twheel_info i;
	u64 armed, slept;
	int early;

	CHECK_EQ(setup(boot, &boottime), 0);
	armed = now_ns(CLOCK_MONOTONIC);
	add(mono, DUE_S * SEC, 1);
	add(boot, DUE_S * SEC, 2);
	add(boot, HOUR, 3);
	slept = suspend_machine();
	printf("# the machine slept for %llu ms\n", (unsigned long long)slept / 1000000);
	CHECK(slept >= SLEEP_S * SEC / 3 && slept < 2 * SLEEP_S * SEC);

	/*
	 * This deadline passed while the machine slept. Its event must come at once: an interrupt
	 * of the clock that stood still would come later.
	 */
	expect_next(boot, CLOCK_BOOTTIME, 2);
	CHECK(now_ns(CLOCK_MONOTONIC) < armed + DUE_S * SEC);
	/* On the clock that stood still, no deadline has passed. */
	p.fd = mono;
	early = poll(&p, 1, 0);
	CHECK(!early || now_ns(CLOCK_MONOTONIC) >= armed + DUE_S * SEC);
	expect_next(mono, CLOCK_MONOTONIC, 1);

	expect_next(alarm, alarm_clock == CLOCK_BOOTTIME_ALARM ? CLOCK_BOOTTIME : CLOCK_REALTIME,
		    3);
	close(alarm);
	expect_told(told);

	info(boot, &i);
	CHECK_EQ(i.nr_armed, 1);
	CHECK_EQ(i.nr_expired, 1);
	/* From now on the clocks differ. A timer that is armed for soon must fire soon. */
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
	{ clocks_over_suspend, "suspend: MONOTONIC stands still, BOOTTIME goes on, and wakes" },
	{ still_works, "timers work after a suspend" },
};

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		alarm_clock = CLOCK_REALTIME_ALARM;
	return run_tests(tests, ARRAY_SIZE(tests));
}
