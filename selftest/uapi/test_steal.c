// SPDX-License-Identifier: GPL-2.0
/*
 * What the firmware or a hypervisor takes of a CPU (twheel_smi.ko) is not a user's debt, but
 * for HOLD_MAX_NS of twheel_dispatch.h.
 *
 * The victim has one periodic timer, of 1 ms, and no other work; nobody else has a timer
 * of twheel. Its lateness is told event by event after the time was taken.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

static const char still[] = "/sys/module/twheel_smi/parameters/ms";

/* The most that an event was late that was due when the CPU stood still no more. */
static u64 worst_after(u64 due, int fd)
{
	u64 most = 0;
	int nr = 0;

	for (u64 next = due; nr < EVENTS; nr++) {
		struct twheel_event ev = { 0 };
		u64 periods = 0;

		if (nr == 20)
			file_set(still, "8");
		CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
		periods = ev.count;
		late[nr] = mono() - next;
		if (nr > 20 && late[nr] > most)
			most = late[nr];
		if (nr >= 19 && nr < 26)
			diag("event %d is late by %.1f us, %llu periods",
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

static void firmware(void)
{
	u64 due = due_soon(), worst;
	int fd = file_from(due);

	CHECK(!syscall(SYS_finit_module, open("/twheel/twheel_smi.ko", O_RDONLY), "", 0));
	worst = worst_after(due, fd);
	diag("after %d ms that somebody took, events were late by %.1f us at most", STILL, (double)worst / 1000);
	/* HOLD_MAX_NS, and repaid at half the speed of the clock. */
	CHECK(worst < 3 * MS);
	syscall(SYS_delete_module, "twheel_smi", O_NONBLOCK);
}

static const struct test tests[] = {
	{ firmware, "time that the firmware took is not a user's debt" },
};

int main(void)
{
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	return run_tests(tests, ARRAY_SIZE(tests));
}
