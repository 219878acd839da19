// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What a program may expect of a timerfd, tried with a timerfd and with a file of /dev/twheel that
 * holds one timer. doc/timerfd.md is the table of what is the same, and of what differs and why.
 * Each of its rows names one of these tests.
 *
 * Each test is a function that is called for either, and must hold for both. Where they differ,
 * there is a function too, and differs() gives the two answers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define BY_S	((long long)SEC)
#define BY_H	((long long)HOUR)
#define FAR	(10 * HOUR)

/* Whether a wheel is being tried, and not a timerfd. */
static bool wheel;

/* The handle of the timer in each wheel's file, by descriptor; 0 if there is none. */
static u64 timer_of[256];

/* ---- one interface for both: times in ns, errors negative ----------------------------- */

#define ABS	TFD_TIMER_ABSTIME
#define CANCEL	TFD_TIMER_CANCEL_ON_SET

static int make(clockid_t clock, int flags)
{
	const struct twheel_setup s = { .clockid = clock };
	int fd;

	if (!wheel) {
		fd = timerfd_create(clock, flags);
		return fd < 0 ? -errno : fd;
	}
	fd = dev_open(flags);
	timer_of[fd] = 0;
	if (ioctl(fd, TWHEEL_IOC_SETUP, &s) < 0) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

static int set_wheel(int fd, int flags, u64 value, u64 interval)
{
	struct twheel_op op = { .handle = timer_of[fd], .expires_ns = value,
				.interval_ns = interval, .flags = TWHEEL_F_KEEP };
	int rc;

	if (!value) {
		timer_of[fd] = 0;
		return op.handle ? (cancel(fd, op.handle) < 0 ? -EIO : 0) : 0;
	}
	op.flags |= flags & ABS ? TWHEEL_F_ABS : 0;
	op.flags |= flags & CANCEL ? TWHEEL_F_CANCEL_ON_SET : 0;
	rc = ioctl(fd, op.handle ? TWHEEL_IOC_MOD : TWHEEL_IOC_ADD, &op);
	timer_of[fd] = op.handle;
	return rc < 0 ? -errno : 0;
}

static int set(int fd, int flags, u64 value, u64 interval)
{
	struct itimerspec its = {
		.it_value = { (time_t)(value / SEC), (long)(value % SEC) },
		.it_interval = { (time_t)(interval / SEC), (long)(interval % SEC) },
	};

	if (wheel)
		return set_wheel(fd, flags, value, interval);
	return timerfd_settime(fd, flags, &its, NULL) ? -errno : 0;
}

/* Read. Returns the count. */
static long long take(int fd)
{
	struct twheel_event ev;
	u64 ticks;

	if (!wheel)
		return read(fd, &ticks, sizeof(ticks)) < 0 ? -errno : (long long)ticks;
	if (read(fd, &ev, sizeof(ev)) < 0)
		return -errno;
	return ev.flags & TWHEEL_EV_CLOCK_SET ? -ECANCELED : (long long)ev.count;
}

/* Returns the time left. *@interval becomes the period. */
static u64 left(int fd, u64 *interval)
{
	struct itimerspec its;
	struct twheel_op op = { 0 };

	if (!wheel) {
		timerfd_gettime(fd, &its);
		*interval = (u64)its.it_interval.tv_sec * SEC + (u64)its.it_interval.tv_nsec;
		return (u64)its.it_value.tv_sec * SEC + (u64)its.it_value.tv_nsec;
	}
	if (timer_of[fd])
		query(fd, timer_of[fd], 0, &op);
	*interval = op.interval_ns;
	return op.expires_ns;
}

static void set_clock_by(long long ns)
{
	u64 to = now_ns(CLOCK_REALTIME) + (u64)ns;
	struct timespec ts = { .tv_sec = (time_t)(to / SEC), .tv_nsec = (long)(to % SEC) };

	CHECK(!clock_settime(CLOCK_REALTIME, &ts));
}

/* Call @fn for a timerfd and for a wheel. */
static void both(void (*fn)(void))
{
	wheel = false;
	fn();
	if (failed())
		diag("that was the timerfd");
	wheel = true;
	fn();
}

/* Call @fn for both. It must return these two answers. */
static void differs(long long (*fn)(void), long long timerfd, long long twheel)
{
	wheel = false;
	CHECK_EQ(fn(), timerfd);
	wheel = true;
	CHECK_EQ(fn(), twheel);
}

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };

/* ---- making one ------------------------------------------------------------------- */

static void one_clocks(void)
{
	static const clockid_t bad[] = {
		CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW,
		CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_TAI, 12, -1 };

	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = make(clocks[i], 0);

		CHECK(fd >= 0);
		close(fd);
	}
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(make(bad[i], 0), -EINVAL);
}

static const clockid_t alarms[] = { CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM };

/*
 * An alarm clock shows the same time as the clock without alarm, and works while the machine is
 * awake.
 */
static void one_alarms(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(alarms); i++) {
		int fd = make(alarms[i], 0);
		clockid_t clock = alarms[i] == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME :
								      CLOCK_BOOTTIME;
		u64 at = now_ns(clock) + 20 * MS;

		CHECK(fd >= 0);
		CHECK_EQ(set(fd, ABS, at, 0), 0);
		CHECK_EQ(take(fd), 1);
		CHECK(now_ns(clock) >= at);
		CHECK_EQ(set(fd, 0, 20 * MS, 10 * MS), 0);
		CHECK(take(fd) >= 1);
		CHECK(take(fd) >= 1);
		CHECK_EQ(set(fd, 0, 0, 0), 0);
		CHECK(!readable(fd, 30));
		close(fd);
	}
}

static void one_permission(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		become(1000);
		_exit(make(alarms[0], 0) != -EPERM || make(alarms[1], 0) != -EPERM ||
		      make(CLOCK_REALTIME, 0) < 0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

static void one_flags(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_EQ(take(fd), -EAGAIN);
	close(fd);
	fd = make(CLOCK_MONOTONIC, 0);
	CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_EQ(take(fd), -EAGAIN);
	close(fd);
}

/* ---- when it expires -------------------------------------------------------------- */

static void one_relative(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = make(clocks[i], 0);
		u64 begin = now_ns(clocks[i]);

		CHECK_EQ(set(fd, 0, 20 * MS, 0), 0);
		CHECK_EQ(take(fd), 1);
		CHECK(now_ns(clocks[i]) - begin >= 20 * MS);
		CHECK(!readable(fd, 30));
		close(fd);
	}
}

static void one_absolute(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = make(clocks[i], 0);
		u64 at = now_ns(clocks[i]) + 20 * MS;

		CHECK_EQ(set(fd, ABS, at, 0), 0);
		CHECK_EQ(take(fd), 1);
		CHECK(now_ns(clocks[i]) >= at);
		close(fd);
	}
}

static void one_past(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = make(clocks[i], 0);

		CHECK_EQ(set(fd, ABS, 1, 0), 0);
		CHECK(readable(fd, WAIT_MS));
		CHECK_EQ(take(fd), 1);
		close(fd);
	}
}

static void one_never(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);

	CHECK_EQ(set(fd, ABS, INT64_MAX, 0), 0);
	CHECK(!readable(fd, 30));
	CHECK_EQ(take(fd), -EAGAIN);
	close(fd);
}

/* ---- periods ---------------------------------------------------------------------- */

static void one_periods(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	u64 begin = now_ns(CLOCK_MONOTONIC), first = begin + 20 * MS, periods;
	long long n;

	CHECK_EQ(set(fd, ABS, first, 10 * MS), 0);
	sleep_until(first + 55 * MS);
	CHECK(readable(fd, WAIT_MS));
	n = take(fd);
	periods = (now_ns(CLOCK_MONOTONIC) - first) / (10 * MS) + 1;
	CHECK(n >= 6 && (u64)n <= periods);
	/* If the host is away until the next period, there is something to take. */
	CHECK(take(fd) == -EAGAIN || now_ns(CLOCK_MONOTONIC) >= first + (u64)n * 10 * MS);
	/* The phase counts from the first expiry, not from the read. */
	CHECK(readable(fd, WAIT_MS));
	CHECK(now_ns(CLOCK_MONOTONIC) >= first + (u64)n * 10 * MS);
	CHECK(take(fd) >= 1);
	close(fd);
}

static void one_many_periods(void)
{
	int fd = make(CLOCK_MONOTONIC, 0);
	u64 first = now_ns(CLOCK_MONOTONIC) + 5 * MS;
	long long sum = 0;

	CHECK_EQ(set(fd, ABS, first, 5 * MS), 0);
	while (sum < 40)
		sum += take(fd);
	/* No expiry is lost, and none is invented. */
	CHECK((u64)sum <= (now_ns(CLOCK_MONOTONIC) - first) / (5 * MS) + 1);
	CHECK(now_ns(CLOCK_MONOTONIC) >= first + 39 * 5 * MS);
	close(fd);
}

/* ---- setting it again, and asking -------------------------------------------------- */

static void one_disarm(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	u64 interval;

	CHECK_EQ(set(fd, 0, 20 * MS, 20 * MS), 0);
	CHECK_EQ(set(fd, 0, 0, 0), 0);
	CHECK(!readable(fd, 50));
	CHECK_EQ(left(fd, &interval), 0);
	CHECK_EQ(interval, 0);
	/* If an expiry was not read, setting the timer drops it. */
	CHECK_EQ(set(fd, 0, 5 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(set(fd, 0, 0, 0), 0);
	CHECK(!readable(fd, 0));
	CHECK_EQ(take(fd), -EAGAIN);
	close(fd);
}

static void one_again(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	u64 begin = now_ns(CLOCK_MONOTONIC);

	CHECK_EQ(set(fd, 0, 10 * MS, 10 * MS), 0);
	CHECK_EQ(set(fd, 0, 80 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK(now_ns(CLOCK_MONOTONIC) - begin >= 80 * MS);
	/* Whether it was read or not, the timer begins anew. */
	CHECK_EQ(set(fd, 0, 10 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	CHECK_EQ(set(fd, 0, FAR, 0), 0);
	CHECK_EQ(set(fd, ABS, now_ns(CLOCK_MONOTONIC) + 5 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	close(fd);
}

static void one_left(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = make(clocks[i], TFD_NONBLOCK);
		u64 interval, is;

		CHECK_EQ(left(fd, &interval), 0);
		CHECK_EQ(set(fd, 0, HOUR, 7 * SEC), 0);
		is = left(fd, &interval);
		CHECK(is <= HOUR && is > HOUR - 30 * SEC);
		CHECK_EQ(interval, 7 * SEC);
		/* For an absolute timer too, the time left is returned. */
		CHECK_EQ(set(fd, ABS, now_ns(clocks[i]) + HOUR, 0), 0);
		is = left(fd, &interval);
		CHECK(is <= HOUR && is > HOUR - 30 * SEC);
		CHECK_EQ(interval, 0);
		CHECK_EQ(set(fd, ABS, 1, 0), 0);
		CHECK(readable(fd, WAIT_MS));
		CHECK_EQ(left(fd, &interval), 0);
		close(fd);
	}
}

/* ---- reading and polling ----------------------------------------------------------- */

static void one_short_buffer(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	size_t size = wheel ? sizeof(struct twheel_event) : sizeof(u64);
	char room[200];

	CHECK_EQ(set(fd, 0, 1, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK(read(fd, room, size - 1) == -1 && errno == EINVAL);
	CHECK(read(fd, room, 0) == -1 && errno == EINVAL);
	CHECK_EQ(read(fd, room, sizeof(room)), size);
	close(fd);
}

static void one_not_a_file(void)
{
	int fd = make(CLOCK_MONOTONIC, 0);
	char room[64];

	CHECK(pread(fd, room, sizeof(room), 0) == -1 && errno == ESPIPE);
	CHECK(write(fd, room, sizeof(room)) == -1 && errno == EINVAL);
	CHECK(ioctl(fd, 0x5401, room) == -1 && errno == ENOTTY);
	close(fd);
}

static void one_poll(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct timeval tv = { .tv_sec = 10 };
	fd_set set_of;

	CHECK(!readable(fd, 0));
	CHECK_EQ(set(fd, 0, 20 * MS, 0), 0);
	FD_ZERO(&set_of);
	FD_SET(fd, &set_of);
	CHECK_EQ(select(fd + 1, &set_of, NULL, NULL, &tv), 1);
	CHECK(readable(fd, 0));
	CHECK(readable(fd, 0));
	CHECK_EQ(take(fd), 1);
	CHECK(!readable(fd, 0));
	close(fd);
}

static void one_edges(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK), ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	CHECK_EQ(set(fd, 0, 5 * MS, 0), 0);
	CHECK_EQ(epoll_wait(ep, &e, 1, WAIT_MS), 1);
	CHECK_EQ(epoll_wait(ep, &e, 1, 20), 0);
	/* The timer is set again without a read: its expiry is an edge. */
	CHECK_EQ(set(fd, 0, 5 * MS, 0), 0);
	CHECK_EQ(epoll_wait(ep, &e, 1, WAIT_MS), 1);
	CHECK_EQ(take(fd), 1);
	close(ep);
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Send a signal to this process's main thread when that sleeps in its read. */
static void *signal_soon(void *arg)
{
	const pid_t tid = getpid();

	await_sleep(&tid);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

/* A signal comes during a read that waits. @flags are those of sigaction(). */
static long long interrupted(int flags, u64 delay)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	int fd = make(CLOCK_MONOTONIC, 0);
	pthread_t self = pthread_self(), thread;
	long long rc;

	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(set(fd, 0, delay, 0), 0);
	thread = start_thread(signal_soon, &self);
	rc = take(fd);
	pthread_join(thread, NULL);
	close(fd);
	return rc;
}

static void one_signal(void)
{
	CHECK_EQ(interrupted(0, FAR), -EINTR);
	CHECK_EQ(interrupted(SA_RESTART, 300 * MS), 1);
}

/* ---- fork, exec, dup ---------------------------------------------------------------- */

static void expect_child(pid_t child)
{
	int status = -1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

/* A child has the same timer: it reads what the parent has set, and then there is nothing left. */
static void one_fork(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	pid_t child;

	CHECK_EQ(set(fd, 0, 30 * MS, 0), 0);
	child = fork();
	if (!child)
		_exit(!readable(fd, WAIT_MS) || take(fd) != 1);
	expect_child(child);
	CHECK_EQ(take(fd), -EAGAIN);
	/* The child sets the timer for the parent, and ends. */
	child = fork();
	if (!child)
		_exit(set(fd, 0, 30 * MS, 0) != 0);
	expect_child(child);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	close(fd);
}

/* Execute this program again, to read from @fd: see main(). Returns its pid. */
static pid_t run_reader(int fd)
{
	char number[16];
	pid_t child;

	snprintf(number, sizeof(number), "%d", fd);
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "reader", number, NULL);
		_exit(99);
	}
	return child;
}

static void one_exec(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int status = -1, closed = make(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	CHECK_EQ(set(fd, 0, 200 * MS, 0), 0);
	CHECK_EQ(fcntl(fd, F_SETFD, 0), 0);
	expect_child(run_reader(fd));
	CHECK_EQ(take(fd), -EAGAIN);
	waitpid(run_reader(closed), &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EBADF);
	close(closed);
	close(fd);
}

static void one_dup(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK), other = dup(fd);

	CHECK_EQ(set(fd, 0, 20 * MS, 0), 0);
	close(fd);
	CHECK(readable(other, WAIT_MS));
	CHECK_EQ(take(other), 1);
	close(other);
}

/* Two tasks wait for one expiry: only one gets it. */
static void one_two_readers(void)
{
	int fd = make(CLOCK_MONOTONIC, 0), pipes[2], got = 0;
	char c;

	CHECK(!pipe(pipes));
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			take(fd);
			_exit(write(pipes[1], "x", 1) != 1);
		}
	sleep_ms(50);
	CHECK_EQ(set(fd, 0, 1, 0), 0);
	got += readable(pipes[0], WAIT_MS) && read(pipes[0], &c, 1) == 1;
	CHECK_EQ(got, 1);
	CHECK(!readable(pipes[0], 50));
	CHECK_EQ(set(fd, 0, 1, 0), 0);
	CHECK(readable(pipes[0], WAIT_MS) && read(pipes[0], &c, 1) == 1);
	while (wait(NULL) > 0)
		;
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

/* ---- the clock is set ---------------------------------------------------------------- */

static void one_set_forward(void)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK);

	CHECK_EQ(set(fd, ABS, now_ns(CLOCK_REALTIME) + HOUR / 2, 0), 0);
	CHECK(!readable(fd, 20));
	set_clock_by(BY_H);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	set_clock_by(-BY_H);
	close(fd);
}

/* Set the timer, and the clock back. Returns whether the timer was not due before that. */
static bool set_and_back(int fd)
{
	u64 at = now_ns(CLOCK_REALTIME) + 30 * MS;

	CHECK_EQ(set(fd, ABS, at, 0), 0);
	set_clock_by(-BY_H);
	if (now_ns(CLOCK_REALTIME) + HOUR < at)
		return true;
	set_clock_by(BY_H);
	return false;
}

static void one_set_back(void)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK);
	u32 tries = 0;

	while (!set_and_back(fd) && CHECK(++tries < 100))
		;
	CHECK(!readable(fd, 80));
	CHECK_EQ(set(fd, ABS, now_ns(CLOCK_REALTIME) + 20 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	CHECK_EQ(set(fd, ABS, now_ns(CLOCK_REALTIME) + HOUR, 0), 0);
	set_clock_by(BY_H);
	CHECK(readable(fd, WAIT_MS));
	close(fd);
}

static void one_unaffected(void)
{
	static const clockid_t of[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

	for (u32 i = 0; i < ARRAY_SIZE(of); i++) {
		int fd = make(of[i], TFD_NONBLOCK);

		CHECK_EQ(set(fd, ABS, now_ns(of[i]) + HOUR / 2, 0), 0);
		set_clock_by(BY_H);
		CHECK(!readable(fd, 50));
		CHECK_EQ(set(fd, ABS, now_ns(of[i]) + 20 * MS, 0), 0);
		set_clock_by(-BY_H);
		CHECK(readable(fd, WAIT_MS));
		close(fd);
	}
}

static void one_cancelled(long long by)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK), plain = make(CLOCK_REALTIME, TFD_NONBLOCK);

	CHECK_EQ(set(fd, ABS | CANCEL, now_ns(CLOCK_REALTIME) + FAR, 0), 0);
	CHECK_EQ(set(plain, ABS, now_ns(CLOCK_REALTIME) + FAR, 0), 0);
	CHECK(!readable(fd, 20));
	set_clock_by(by);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), -ECANCELED);
	CHECK_EQ(take(fd), -EAGAIN);
	CHECK(!readable(plain, 20));
	/*
	 * After the timer is set again, the next setting of the clock is reported, and not the
	 * earlier one.
	 */
	CHECK_EQ(set(fd, ABS | CANCEL, now_ns(CLOCK_REALTIME) + FAR, 0), 0);
	CHECK(!readable(fd, 20));
	set_clock_by(-by);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), -ECANCELED);
	/* It fires as any other timer. */
	CHECK_EQ(set(fd, ABS | CANCEL, now_ns(CLOCK_REALTIME) + 20 * MS, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(take(fd), 1);
	close(plain);
	close(fd);
}

static void one_cancel(void)
{
	one_cancelled(BY_H);
	one_cancelled(-BY_H);
}

static void *set_soon(void *arg)
{
	const pid_t tid = getpid();

	await_sleep(&tid);
	set_clock_by(*(long long *)arg);
	return NULL;
}

static void one_cancel_wakes(void)
{
	int fd = make(CLOCK_REALTIME, 0);
	long long by = BY_S;
	pthread_t thread;

	CHECK_EQ(set(fd, ABS | CANCEL, now_ns(CLOCK_REALTIME) + FAR, 0), 0);
	thread = start_thread(set_soon, &by);
	CHECK_EQ(take(fd), -ECANCELED);
	pthread_join(thread, NULL);
	set_clock_by(-BY_S);
	close(fd);
}

static int raced;

static void *race_cancel(void *arg)
{
	for (int i = 0; i < 2000; i++)
		set(raced, ABS | (arg ? CANCEL : 0), now_ns(CLOCK_REALTIME) + FAR, 0);
	return NULL;
}

/* Two threads set the timer, with the flag and without, while the clock is set. */
static void one_race(void)
{
	pthread_t a, b;

	raced = make(CLOCK_REALTIME, TFD_NONBLOCK);
	CHECK_EQ(set(raced, ABS, now_ns(CLOCK_REALTIME) + FAR, 0), 0);
	a = start_thread(race_cancel, NULL);
	b = start_thread(race_cancel, &raced);
	for (int i = 0; i < 50; i++) {
		set_clock_by(i % 2 ? -BY_S : BY_S);
		sleep_ms(2);
	}
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CHECK_EQ(set(raced, ABS, now_ns(CLOCK_REALTIME) + 10 * MS, 0), 0);
	CHECK(readable(raced, WAIT_MS));
	CHECK_EQ(take(raced), 1);
	close(raced);
}

/* ---- what differs -------------------------------------------------------------------- */

/* If the reader's memory cannot be written, is the expiry still there? */
static long long after_fault(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	long long rc;

	CHECK_EQ(set(fd, 0, 1, 0), 0);
	CHECK(readable(fd, WAIT_MS));
	CHECK(read(fd, unmapped(), 32) == -1 && errno == EFAULT);
	rc = take(fd);
	close(fd);
	return rc;
}

static void differ_fault(void)
{
	differs(after_fault, -EAGAIN, 1);
}

/* A delay on CLOCK_REALTIME, and the clock is set forward past its end: has the timer expired? */
static long long after_delay(void)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK);
	long long rc;

	CHECK_EQ(set(fd, 0, HOUR / 2, 0), 0);
	set_clock_by(BY_H);
	rc = readable(fd, wheel ? WAIT_MS : 100);
	set_clock_by(-BY_H);
	close(fd);
	return rc;
}

static void differ_delay(void)
{
	differs(after_delay, 0, 1);
}

/* The same with the flag: is the setting reported? */
static long long after_asking(void)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK);
	long long rc;

	CHECK_EQ(set(fd, CANCEL, FAR, 0), 0);
	set_clock_by(BY_S);
	rc = readable(fd, wheel ? WAIT_MS : 100) ? take(fd) : 0;
	set_clock_by(-BY_S);
	close(fd);
	return rc;
}

static void differ_asking(void)
{
	differs(after_asking, 0, -ECANCELED);
}

/* The flag on another clock. */
static long long ask_monotonic(void)
{
	int fd = make(CLOCK_MONOTONIC, 0);
	long long rc = set(fd, ABS | CANCEL, now_ns(CLOCK_MONOTONIC) + FAR, 0);

	close(fd);
	return rc;
}

static void differ_monotonic(void)
{
	differs(ask_monotonic, 0, -EINVAL);
}

/* A period that is shorter than a tick. */
static long long short_period(void)
{
	int fd = make(CLOCK_MONOTONIC, 0);
	long long rc = set(fd, 0, SEC, 1000);

	close(fd);
	return rc;
}

static void differ_period(void)
{
	differs(short_period, 0, -EINVAL);
}

/*
 * How much time is left for a periodic timer that has expired and was not read? For a timerfd, the
 * time until the next expiry.
 */
static long long left_of_expired(void)
{
	int fd = make(CLOCK_MONOTONIC, TFD_NONBLOCK);
	u64 interval;
	long long rc;

	CHECK_EQ(set(fd, 0, 1, FAR), 0);
	CHECK(readable(fd, WAIT_MS));
	rc = left(fd, &interval) > 0;
	close(fd);
	return rc;
}

static void differ_left(void)
{
	differs(left_of_expired, 1, 0);
}

/* Set a timer and the clock. Returns whether the timer was not due before this has read of that. */
static bool set_and_cancelled(int fd)
{
	u64 at = now_ns(CLOCK_REALTIME) + 300 * MS;
	long long rc;

	CHECK_EQ(set(fd, ABS | CANCEL, at, 0), 0);
	set_clock_by(100 * (long long)MS);
	CHECK(readable(fd, WAIT_MS));
	rc = take(fd);
	if (now_ns(CLOCK_REALTIME) < at)
		return CHECK_EQ(rc, -ECANCELED);
	set_clock_by(-100 * (long long)MS);
	return false;
}

/* After ECANCELED a timerfd continues. A timer of a wheel has had its event. */
static long long left_of_cancelled(void)
{
	int fd = make(CLOCK_REALTIME, TFD_NONBLOCK);
	u32 tries = 0;
	long long rc;

	while (!set_and_cancelled(fd) && CHECK(++tries < 50))
		;
	rc = readable(fd, wheel ? 1000 : WAIT_MS);
	set_clock_by(-100 * (long long)MS);
	close(fd);
	return rc;
}

static void differ_cancelled(void)
{
	differs(left_of_cancelled, 1, 0);
}

/* ---- the table ------------------------------------------------------------------------ */

/* The rows of the table. */
static void clocks_both(void)
{
	both(one_clocks);
}

static void alarms_both(void)
{
	both(one_alarms);
}

static void permission_both(void)
{
	both(one_permission);
}

static void flags_both(void)
{
	both(one_flags);
}

static void relative_both(void)
{
	both(one_relative);
}

static void absolute_both(void)
{
	both(one_absolute);
}

static void past_both(void)
{
	both(one_past);
}

static void never_both(void)
{
	both(one_never);
}

static void periods_both(void)
{
	both(one_periods);
}

static void many_periods_both(void)
{
	both(one_many_periods);
}

static void disarm_both(void)
{
	both(one_disarm);
}

static void again_both(void)
{
	both(one_again);
}

static void left_both(void)
{
	both(one_left);
}

static void short_buffer_both(void)
{
	both(one_short_buffer);
}

static void not_a_file_both(void)
{
	both(one_not_a_file);
}

static void poll_both(void)
{
	both(one_poll);
}

static void edges_both(void)
{
	both(one_edges);
}

static void signal_both(void)
{
	both(one_signal);
}

static void fork_both(void)
{
	both(one_fork);
}

static void exec_both(void)
{
	both(one_exec);
}

static void dup_both(void)
{
	both(one_dup);
}

static void two_readers_both(void)
{
	both(one_two_readers);
}

static void set_forward_both(void)
{
	both(one_set_forward);
}

static void set_back_both(void)
{
	both(one_set_back);
}

static void unaffected_both(void)
{
	both(one_unaffected);
}

static void cancel_both(void)
{
	both(one_cancel);
}

static void cancel_wakes_both(void)
{
	both(one_cancel_wakes);
}

static void race_both(void)
{
	both(one_race);
}

static const struct test tests[] = {
	{ clocks_both, "the clocks there are, and that are none" },
	{ alarms_both, "alarm clocks" },
	{ permission_both, "alarm clocks take CAP_WAKE_ALARM" },
	{ flags_both, "O_NONBLOCK at creation and by fcntl()" },
	{ relative_both, "a relative time, on each clock" },
	{ absolute_both, "an absolute time, on each clock" },
	{ past_both, "an absolute time that is over" },
	{ never_both, "the latest time there is" },
	{ periods_both, "unread periods are counted, in phase" },
	{ many_periods_both, "no period is lost or made up" },
	{ disarm_both, "disarming, before and after it expired" },
	{ again_both, "setting it again" },
	{ left_both, "the time left, and the period" },
	{ short_buffer_both, "a buffer that is too small, or too big" },
	{ not_a_file_both, "no offset, no write, no ioctl of others" },
	{ poll_both, "poll() and select()" },
	{ edges_both, "edge-triggered epoll" },
	{ signal_both, "a signal in a read that waits" },
	{ fork_both, "fork: one timer for both" },
	{ exec_both, "exec: inherited, or closed" },
	{ dup_both, "dup: it lives as long as the last descriptor" },
	{ two_readers_both, "two readers: one has the expiry" },
	{ set_forward_both, "the clock is set forward: it is due" },
	{ set_back_both, "the clock is set back: it waits" },
	{ unaffected_both, "other clocks do not care" },
	{ cancel_both, "cancel on set, forward and back" },
	{ cancel_wakes_both, "cancel on set wakes a reader" },
	{ race_both, "set by two threads while the clock is set" },
	{ differ_fault, "differs: a fault loses nothing" },
	{ differ_delay, "differs: a delay on CLOCK_REALTIME moves with the clock" },
	{ differ_asking, "differs: cancel on set of a delay too" },
	{ differ_monotonic, "differs: cancel on set on a clock that is not set" },
	{ differ_period, "differs: a period shorter than a tick" },
	{ differ_left, "differs: the time left of what has expired" },
	{ differ_cancelled, "differs: what was cancelled by a set has ended" },
};

/*
 * What run_reader() executes. Returns 0 if the expiry is there, 99 if it does not come, or an
 * errno.
 */
static int reader(int fd)
{
	u64 room[4];

	if (fcntl(fd, F_GETFD) < 0)
		return errno;
	if (!readable(fd, WAIT_MS))
		return 99;
	return read(fd, room, sizeof(room)) > 0 ? 0 : errno;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return reader(atoi(argv[1]));
	return run_tests(tests, ARRAY_SIZE(tests));
}
