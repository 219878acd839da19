// SPDX-License-Identifier: GPL-2.0
/*
 * What others take of a CPU is not a user's debt: the firmware or a hypervisor
 * (twheel_smi.ko), and hardware interrupts of another user's timerfds.
 *
 * The victim has one periodic timer, of 1 ms, and no other work; nobody else has a timer
 * of twheel. Its lateness is told event by event after the time was taken.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define EVENTS	100
#define STILL	8	/* ms */

static u64 late[EVENTS];

static u64 mono(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static struct timespec timespec(u64 ns)
{
	return (struct timespec){ (time_t)(ns / SEC), (long)(ns % SEC) };
}

static const char still[] = "/sys/module/twheel_smi/parameters/ms";

/* The most that an event was late that was due when the CPU stood still no more. */
static u64 worst_after(u64 due, bool twheel, int fd, u64 taken)
{
	u64 most = 0;
	int nr = 0;

	for (u64 next = due; nr < EVENTS; nr++) {
		struct twheel_event ev = { 0 };
		u64 periods = 0;

		if (nr == 20 && taken)
			file_set(still, "8");
		if (twheel) {
			CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
			periods = ev.count;
		} else {
			CHECK_EQ(read(fd, &periods, sizeof(periods)), sizeof(periods));
		}
		late[nr] = mono() - next;
		if (nr > 20 && late[nr] > most)
			most = late[nr];
		if (nr >= 19 && nr < 26)
			diag("%s: event %d is late by %.1f us, %llu periods", twheel ? "twheel" : "timerfd",
			     nr, (double)late[nr] / 1000, periods);
		next += periods * MS;
	}
	return most;
}

static u64 due_soon(void)
{
	return (mono() + 20 * MS) / MS * MS;
}

static int file_from(u64 due)
{
	int fd = dev_open(0);

	add_with(fd, TWHEEL_F_ABS, due, MS, 0);
	return fd;
}

static int timerfd_from(u64 due)
{
	const struct itimerspec i = { timespec(MS), timespec(due) };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &i, NULL), 0);
	return fd;
}

static void firmware(void)
{
	u64 due = due_soon(), worst;
	int fd = file_from(due);

	CHECK(!syscall(SYS_finit_module, open("/twheel/twheel_smi.ko", O_RDONLY), "", 0));
	worst = worst_after(due, true, fd, STILL);
	diag("after %d ms that somebody took, events were late by %.1f us at most", STILL, (double)worst / 1000);
	/* HOLD_MAX_NS, and repaid at half the speed of the clock. */
	CHECK(worst < 3 * MS);
	syscall(SYS_delete_module, "twheel_smi", O_NONBLOCK);
}

#define FDS	20000
#define BURSTS	40

/* Of another user: FDS timerfds, due at @due + a few us, all at once, as hardware interrupts. */
static void interrupter(int arg)
{
	static int fds[FDS];
	const struct rlimit many = { FDS + 100, FDS + 100 };
	u64 begin = mono() / MS * MS + 100 * MS;

	(void)arg;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
	become(1003);
	for (int i = 0; i < FDS; i++)
		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	for (int b = 0; b < BURSTS; b++) {
		const struct itimerspec at = { { 0 }, timespec(mono() / MS * MS + 200 * MS + 4000 + b * 200) };

		for (int i = 0; i < FDS; i++)
			timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &at, NULL);
		sleep_until(mono() / MS * MS + 300 * MS);
	}
	(void)begin;
}

static double beside(bool twheel)
{
	pid_t pid = start_task(interrupter, (int)sysconf(_SC_NPROCESSORS_ONLN) - 1, 0);
	u64 due, next, sum = 0, nr = 0, most = 0, over = 0;
	int status, fd;

	sleep_ms(1000);
	next = due = due_soon();
	fd = twheel ? file_from(due) : timerfd_from(due);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		struct twheel_event ev = { 0 };
		u64 periods = 0, l;

		if (twheel) {
			read(fd, &ev, sizeof(ev));
			periods = ev.count;
		} else if (read(fd, &periods, sizeof(periods)) < 0) {
			break;
		}
		l = mono() - next;
		sum += l;
		nr++;
		if (l > most)
			most = l;
		over += l > 12 * MS;
		next += periods * MS;
	}
	close(fd);
	diag("%s beside timerfds of another: late %.1f us on average, at most %.1f; %llu events, %llu by more than 12 ms",
	     twheel ? "twheel" : "timerfd", (double)sum / (double)nr / 1000, (double)most / 1000, nr, over);
	return (double)most;
}

static void interrupts(void)
{
	double one = beside(true), other = beside(false);

	CHECK(one <= 1.2 * other);
}

static const struct test tests[] = {
	{ firmware, "time that the firmware took is not a user's debt" },
	{ interrupts, "nor is that of another user's interrupts" },
};

int main(void)
{
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	return run_tests(tests, ARRAY_SIZE(tests));
}
