// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A SCHED_FIFO task that is busy gets its event as early as with a timerfd. It has a timer in each
 * ms, and for each ms that has passed it works for some part of a ms.
 *
 * On PREEMPT_RT such a task preempts the softirq thread that wakes it, in the middle of that
 * thread's work. The time that the task takes must not be charged to the timers.
 *
 * This is for a machine on which an instruction takes a ns. On other machines the host may stop a
 * virtual CPU for some ms, and that makes either twheel or the timerfd late.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define SPAN	(200 * MS)	/* the length of one measurement */
/*
 * By how much an event may come later than twice timerfd's, on average: some thousand instructions.
 * A timer of twheel expires in softirq. A timerfd expires in the interrupt itself, unless the
 * kernel is PREEMPT_RT.
 */
#define NOISE	5000ULL

/* A timer with a period of 1 ms: how to read how many periods have passed since the last read. */
struct source {
	const char	*name;
	int		(*open)(u64 start);
	u64		(*take)(int fd);
};

/* How late the periods were reported, in ns. */
struct late {
	u64	mean, max;
	u32	nr;
};

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static int wheel_open(u64 start)
{
	int fd = dev_open(0);

	add_with(fd, TWHEEL_F_ABS, start, MS, 0);
	return fd;
}

static u64 wheel_take(int fd)
{
	struct twheel_event ev = { 0 };

	CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
	return ev.count;
}

static int timerfd_open(u64 start)
{
	const struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(start / SEC), .tv_nsec = (long)(start % SEC) },
		.it_interval.tv_nsec = MS,
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL))
		bail("timerfd");
	return fd;
}

static u64 timerfd_take(int fd)
{
	u64 count = 0;

	CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

static const struct source wheel = { "twheel", wheel_open, wheel_take };
static const struct source timerfd = { "timerfd", timerfd_open, timerfd_take };

static void work_until(u64 end)
{
	while (now() < end)
		;
}

/* Be a task that works for @work ns for each period. */
static struct late be_reader(const struct source *source, u64 work, bool polls)
{
	u64 due = (now() / MS + 2) * MS, end = due + SPAN;
	int fd = source->open(due);
	struct late late = { 0 };

	while (due < end) {
		u64 count, seen;

		if (polls)
			CHECK(readable(fd, WAIT_MS));
		count = source->take(fd);
		seen = now();
		if (!CHECK(count && seen >= due + (count - 1) * MS))
			break;
		for (u64 i = 0; i < count; i++, due += MS) {
			late.mean += seen - due;
			late.max = seen - due > late.max ? seen - due : late.max;
			late.nr++;
		}
		work_until(seen + count * work);
	}
	close(fd);
	late.mean /= late.nr ? late.nr : 1;
	return late;
}

static void busy_reader(unsigned int us, bool polls)
{
	struct late peer = be_reader(&timerfd, us * 1000ULL, polls);
	struct late its = be_reader(&wheel, us * 1000ULL, polls);

	diag("%u us of each ms: %llu us late on average, %llu at most; timerfd %llu, %llu", us,
	     its.mean / 1000, its.max / 1000, peer.mean / 1000, peer.max / 1000);
	CHECK(its.mean <= 2 * peer.mean + NOISE);
}

static void reads_idle(void)
{
	busy_reader(0, false);
}

static void reads_some(void)
{
	for (unsigned int us = 100; us <= 400; us += 100)
		busy_reader(us, false);
}

static void reads_much(void)
{
	for (unsigned int us = 500; us <= 700; us += 100)
		busy_reader(us, false);
}

static void polls(void)
{
	for (unsigned int us = 0; us <= 600; us += 300)
		busy_reader(us, true);
}

static const struct test tests[] = {
	{ reads_idle, "a reader that does nothing else" },
	{ reads_some, "a reader that works 100 to 400 us of each ms" },
	{ reads_much, "a reader that works 500 to 700 us of each ms" },
	{ polls, "a reader that polls" },
};

int main(void)
{
	const struct sched_param param = { .sched_priority = 50 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &param))
		bail("SCHED_FIFO");
	return run_tests(tests, ARRAY_SIZE(tests));
}
