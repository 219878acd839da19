// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel in time namespaces: at each call, times of the clock are times of the caller's clock,
 * whoever opened the file.
 *
 * A grandchild enters the namespace and does the test. It prints what it finds wrong, and its exit
 * status tells the parent whether it found anything.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x80
#endif

/*
 * By how much CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead. The two differ, so that they cannot be
 * confused.
 */
struct offsets {
	long long	mono, boot;
};

static const struct offsets ahead = { 1000 * SEC + 500 * MS, 77777 * SEC + 1 };
static const struct offsets behind = { -2 * (long long)SEC, -1 * (long long)SEC - 5 };

static long long offset_of(const struct offsets *o, clockid_t clock)
{
	return clock == CLOCK_BOOTTIME ? o->boot : o->mono;
}

/* Write a line for timens_offsets. The ns in it must not be negative. */
static int offset_line(char *to, size_t room, const char *clock, long long ns)
{
	long long s = ns / (long long)SEC - (ns % (long long)SEC < 0);

	return snprintf(to, room, "%s %lld %lld\n", clock, s, ns - s * (long long)SEC);
}

static void enter(const struct offsets *o)
{
	char text[128];
	int n, fd;

	if (unshare(CLONE_NEWTIME))
		bail("unshare(CLONE_NEWTIME)");
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	n = offset_line(text, sizeof(text), "monotonic", o->mono);
	n += offset_line(text + n, sizeof(text) - (size_t)n, "boottime", o->boot);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		bail("/proc/self/timens_offsets");
	close(fd);
}

/* Call @fn in a process of its own; if @o is not NULL, in a new namespace. */
static void in_child(const struct offsets *o, void (*fn)(const void *), const void *arg)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		if (o) {
			enter(o);
			in_child(NULL, fn, arg);
		} else {
			fn(arg);
		}
		fflush(stdout);
		_exit(failed());
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static int open_clock(clockid_t clock)
{
	const struct twheel_setup s = { .clockid = clock };
	int fd = dev_open(O_NONBLOCK);

	CHECK_EQ(setup(fd, &s), 0);
	return fd;
}

/*
 * Use everything that takes or returns a time of the clock, and compare with this process's clock.
 */
static void use_clock(clockid_t clock)
{
	int fd = open_clock(clock);
	struct twheel_event ev;
	struct twheel_op op;
	u64 now, at, h, value;

	at = now_ns(clock) + HOUR;
	h = add_with(fd, TWHEEL_F_ABS, at, 0, 1);
	CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, at);
	CHECK_EQ(query(fd, h, 0, &op), TWHEEL_STATE_ARMED);
	CHECK(op.expires_ns <= HOUR && op.expires_ns >= at - now_ns(clock));
	CHECK_EQ(cancel(fd, h), 1);
	at = now_ns(clock) + 30 * MS;
	add_with(fd, TWHEEL_F_ABS, at, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	now = now_ns(clock);
	CHECK_EQ(ev.expires_ns, at);
	CHECK(now >= at && now < at + WAIT_MS * MS);
	h = add(fd, HOUR, 2);
	op = (struct twheel_op){ .handle = h, .flags = TWHEEL_F_ABS,
				 .expires_ns = now_ns(clock) + 20 * MS };
	at = op.expires_ns;
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_MOD, &op), 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK(now_ns(clock) >= at);
	CHECK_EQ(ev.expires_ns, at);
	now = now_ns(clock);
	add(fd, HOUR, 3);
	CHECK(fdinfo_get(fd, "twheel-next-ns", &value));
	CHECK(value > now && value <= now + HOUR + SEC);
	CHECK_EQ(drain(fd, &op, 1, TWHEEL_F_ABS), 1);
	CHECK(op.expires_ns >= now + HOUR && op.expires_ns <= now_ns(clock) + HOUR);
	close(fd);
}

static void use_clocks(const void *unused)
{
	(void)unused;
	use_clock(CLOCK_MONOTONIC);
	use_clock(CLOCK_BOOTTIME);
	use_clock(CLOCK_REALTIME);	/* it is the same in all namespaces */
}

/* Times at both ends of the clock. */
static void use_ends(const void *unused)
{
	static const u64 over[] = { 0, 1, 999 * SEC };
	int fd = open_clock(CLOCK_MONOTONIC);
	struct twheel_event ev;
	struct twheel_op op;
	u64 h, value;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(over) && over[i] < now_ns(CLOCK_MONOTONIC); i++) {
		h = add_with(fd, TWHEEL_F_ABS, over[i], 0, 1);
		CHECK_EQ(read_one(fd, &ev), 1);
		CHECK_EQ(ev.handle, h);
		CHECK(ev.expires_ns <= now_ns(CLOCK_MONOTONIC));
	}
	h = add_with(fd, TWHEEL_F_ABS, INT64_MAX, 0, 1);
	CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, INT64_MAX);
	h = add_with(fd, TWHEEL_F_ABS, INT64_MAX - 1, 0, 1);
	CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK(op.expires_ns > INT64_MAX / 2);
	CHECK(!readable(fd, 20));
	CHECK(fdinfo_get(fd, "twheel-next-ns", &value));
	CHECK(value > now_ns(CLOCK_MONOTONIC));
	close(fd);
}

/* A file of the parent, and a timer whose deadline is @hour by the parent's clock. */
struct shared {
	int		fd;
	clockid_t	clock;
	u64		handle, at;
	long long	offset;
};

static void use_parents(const void *arg)
{
	const struct shared *s = arg;
	struct twheel_event ev;
	struct twheel_op op;

	CHECK_EQ(query(s->fd, s->handle, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, s->at + (u64)s->offset);
	/*
	 * The event of a timer of the parent is read here, and another one is left for the parent.
	 */
	CHECK_EQ(read_one(s->fd, &ev), 1);
	CHECK_EQ(ev.user_data, 1);
	CHECK_EQ(ev.expires_ns, s->at - HOUR + (u64)s->offset);
	add_with(s->fd, TWHEEL_F_ABS, s->at - HOUR + 60 * MS + (u64)s->offset, 0, 3);
}

static void share(clockid_t clock, const struct offsets *o)
{
	struct shared s = { .fd = open_clock(clock), .clock = clock,
			    .offset = offset_of(o, clock) };
	u64 now = now_ns(clock);
	struct twheel_event ev;

	s.at = now + HOUR;
	add_with(s.fd, TWHEEL_F_ABS, now, 0, 1);
	s.handle = add_with(s.fd, TWHEEL_F_ABS, s.at, 0, 2);
	in_child(o, use_parents, &s);
	CHECK_EQ(read_one(s.fd, &ev), 1);
	CHECK_EQ(ev.user_data, 3);
	CHECK_EQ(ev.expires_ns, now + 60 * MS);
	CHECK(now_ns(clock) >= now + 60 * MS);
	close(s.fd);
}

/* Does the clock differ inside the namespace? If not, these tests would prove nothing. */
static void see_offset(const void *arg)
{
	const struct shared *s = arg;
	u64 now = now_ns(s->clock);

	CHECK(now >= s->at + (u64)s->offset && now < s->at + (u64)s->offset + 60 * SEC);
}

static void clocks_differ(void)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	static const struct offsets *const os[] = { &ahead, &behind };

	for (int i = 0; i < 4; i++) {
		struct shared s = { .clock = clocks[i / 2], .at = now_ns(clocks[i / 2]),
				    .offset = offset_of(os[i % 2], clocks[i / 2]) };

		in_child(os[i % 2], see_offset, &s);
	}
}

static void no_namespace(void)	{ use_clocks(NULL); }
static void clock_ahead(void)	{ in_child(&ahead, use_clocks, NULL); }
static void clock_behind(void)	{ in_child(&behind, use_clocks, NULL); }

static void ends(void)
{
	use_ends(NULL);
	in_child(&ahead, use_ends, NULL);
	in_child(&behind, use_ends, NULL);
}

static void file_is_shared(void)
{
	share(CLOCK_MONOTONIC, &ahead);
	share(CLOCK_MONOTONIC, &behind);
	share(CLOCK_BOOTTIME, &ahead);
	share(CLOCK_BOOTTIME, &behind);
}

static const struct test tests[] = {
	{ clocks_differ, "clocks of a time namespace are ahead or behind" },
	{ no_namespace, "times of the clock, without a namespace" },
	{ clock_ahead, "times of the clock, in a namespace that is ahead" },
	{ clock_behind, "times of the clock, in a namespace that is behind" },
	{ ends, "the first and the last time, in namespaces" },
	{ file_is_shared, "a file used in two namespaces: each has its own clock" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
