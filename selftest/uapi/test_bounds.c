// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Promises of the device that no other test can check: the bound on the number of operations in a
 * run, and what happens to an add whose result cannot be stored.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define RUN_OPS		1024	/* the most operations of a run, see twheel.c */
#define TIMERS		65536
#define TRIES		200000	/* with one CPU a few are enough; else it takes more luck */
#define BATCH		64

/* Arm all timers for one tick, @lead from now. Returns the file, or -1 if it is too late then. */
static int armed_before(u64 lead)
{
	u64 when = now_ns(CLOCK_MONOTONIC) + lead;
	int fd = dev_open(0);

	add_many_at(fd, TIMERS, when);
	if (now_ns(CLOCK_MONOTONIC) < when)
		return fd;
	close(fd);
	return -1;
}

/*
 * All timers are due in one tick, and have been moved to it before. So each run but the last must
 * be deferred.
 */
static void run(void)
{
	static struct twheel_event events[READ_MAX];
	int fd = -1, n, done = 0;
	struct twheel_info i;

	for (u64 lead = 4 * SEC; fd < 0 && CHECK(lead < 100 * SEC); lead *= 2)
		fd = armed_before(lead);
	if (fd < 0)
		return;
	while (done < TIMERS && (n = read_events(fd, events, READ_MAX)) > 0)
		done += n;
	CHECK_EQ(done, TIMERS);
	info(fd, &i);
	diag("put off %llu times, %llu wake-ups", i.nr_deferred, i.nr_wakeups);
	CHECK(i.nr_deferred >= TIMERS / RUN_OPS - 1);
	close(fd);
}

/* The same memory twice: as this test writes it, and as it is passed to the kernel. */
static struct twheel_op *ops, *fleeting;
static volatile bool ended;

static void *protect(void *arg)
{
	while (!ended) {
		mprotect(fleeting, getpagesize(), PROT_READ);
		mprotect(fleeting, getpagesize(), PROT_READ | PROT_WRITE);
	}
	return arg;
}

static bool map_twice(void)
{
	int fd = memfd_create("ops", MFD_CLOEXEC), size = getpagesize();

	if (fd < 0 || ftruncate(fd, size))
		return false;
	ops = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fleeting = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return ops != MAP_FAILED && fleeting != MAP_FAILED;
}

/*
 * The memory of the operations is unmapped and mapped while they are done. So sometimes it goes
 * away after the kernel has checked that the result can be stored, and before it is stored. That an
 * add was done and undone shows in the next handle of its slot.
 */
static bool undone_once(int fd)
{
	struct twheel_batch batch = {
		.ops = (uintptr_t)fleeting, .nr = BATCH, .op_size = sizeof(*ops) };
	struct twheel_info i;
	u32 stand = 0;
	u64 handle;

	for (u32 k = 0; k < BATCH; k++)
		ops[k] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	if (!ioctl(fd, TWHEEL_IOC_SUBMIT, &batch))
		stand = batch.nr_done - batch.nr_failed;
	info(fd, &i);
	CHECK_EQ(i.nr_timers, stand);
	CHECK_EQ(i.nr_armed, stand);
	handle = add(fd, HOUR, 0);
	return (u32)handle < BATCH && handle >> 32 > 1;
}

static void undo(void)
{
	bool alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	u32 tries = 0, undone = 0, most = alone ? TRIES / 1000 : TRIES;
	pthread_t thread;

	if (!map_twice() || pthread_create(&thread, NULL, protect, NULL))
		bail("mmap or pthread_create");
	for (; tries < most && !undone && !failed(); tries++) {
		int fd = dev_open(0);

		undone += undone_once(fd);
		close(fd);
	}
	ended = true;
	pthread_join(thread, NULL);
	diag("%u tries, %u with adds that were undone", tries, undone);
	if (alone && !undone)
		skip_test("one CPU");
	else
		CHECK(undone);
}

static const struct test tests[] = {
	{ run, "the number of operations in a run is bounded" },
	{ undo, "an add whose result cannot be stored is undone" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
