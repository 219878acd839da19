// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * lives TIMES: open files of /dev/twheel, use them, and close them in each way there is, TIMES
 * times.
 *
 * If one file leaves some memory behind, that cannot be told from what the kernel allocates for
 * itself. If a thousand files do, it can be seen: selftest/qemu/init compares the memory before and
 * after.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MANY	200		/* timers that take some pages of slots */
#define TABLE	40000		/* more slots than one table of pages holds */
#define USER	2000

static u32 times;

static void unused(u32 n)
{
	(void)n;
	close(dev_open(0));
}

static void set_up(u32 n)
{
	const struct twheel_setup s = { .clockid = n & 1 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC };
	int fd = dev_open(0);

	CHECK_EQ(setup(fd, &s), 0);
	close(fd);
}

static void armed(u32 n)
{
	int fd = dev_open(0);

	add_many(fd, n % MANY + 1, HOUR, 0);
	close(fd);
}

static void cancelled(u32 n)
{
	int fd = dev_open(0);

	(void)n;
	CHECK_EQ(cancel(fd, add(fd, HOUR, 0)), 1);
	close(fd);
}

static void drained(u32 n)
{
	struct twheel_op ops[MANY];
	int fd = dev_open(0);

	add_many(fd, n % MANY + 1, HOUR, 0);
	CHECK_EQ(drain(fd, ops, MANY, 0), n % MANY + 1);
	close(fd);
}

static void ready(u32 n)
{
	int fd = dev_open(0);

	add_many(fd, n % MANY + 1, 0, 0);
	close(fd);
}

/* Read many events at once; and read into memory that cannot be written. */
static void was_read(u32 n)
{
	struct twheel_event ev[MANY];
	int fd = dev_open(0);

	add_many(fd, n % 64 + 1, 0, 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(read(fd, unmapped(), sizeof(ev)), -1);
	CHECK(read_events(fd, ev, MANY) >= 1);
	close(fd);
}

static void periodic(u32 n)
{
	struct twheel_event ev;
	int fd = dev_open(0);

	add_with(fd, n & 1 ? TWHEEL_F_KEEP : 0, 0, HOUR, 0);
	CHECK_EQ(read_one(fd, &ev), 1);
	close(fd);
}

static void *reads(void *fd)
{
	struct twheel_event ev;

	CHECK_EQ(read_events(*(int *)fd, &ev, 1), 1);
	return NULL;
}

/* Two readers at once; and a descriptor that is closed while a call uses it. */
static void shared(u32 n)
{
	int fd = dev_open(0), copy = dup(fd);
	pthread_t thread;

	(void)n;
	pthread_create(&thread, NULL, reads, &copy);
	add_many(fd, 2, 0, 0);
	reads(&fd);
	pthread_join(thread, NULL);
	close(fd);
	close(copy);
}

/* For a user who had no file open. */
static void of_user(u32 n)
{
	pid_t pid;
	int status;

	if (n % 4)
		return;
	pid = fork();
	if (!pid) {
		become(USER + n % 64);
		add_many(dev_open(0), 1, HOUR, 0);
		_exit(failed());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void refused(u32 n)
{
	struct twheel_setup s = { .clockid = CLOCK_TAI };
	int fd = dev_open(0);

	(void)n;
	CHECK_EQ(setup(fd, &s), -EINVAL);
	s = (struct twheel_setup){ .clockid = CLOCK_MONOTONIC, .max_timers = 1 };
	CHECK_EQ(setup(fd, &s), 0);
	add(fd, HOUR, 0);
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &(struct twheel_op){ .expires_ns = HOUR }), -EDQUOT);
	close(fd);
}

static void big(u32 n)
{
	int fd;

	if (n % 256)
		return;
	fd = dev_open(0);
	add_many(fd, TABLE, HOUR, 0);
	close(fd);
}

static void all(void)
{
	void (*const lives[])(u32) = { unused, set_up, armed, cancelled, drained, ready, was_read,
				       periodic, shared, of_user, refused, big };

	alarm(600);
	for (size_t i = 0; i < ARRAY_SIZE(lives); i++)
		for (u32 n = 0; n < times && !failed(); n++)
			lives[i](n);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ all, "files live and end in every way" },
	};

	times = argc > 1 ? (u32)atoi(argv[1]) : 1;
	return run_tests(tests, ARRAY_SIZE(tests));
}
