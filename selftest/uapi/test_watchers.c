// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Very many epolls watch a file, so that each wake-up takes long. That time must be charged to the
 * task or user that causes it: a task of another user that only counts must get half of the CPU.
 *
 *	test_watchers [WATCHERS]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define DUPS	1000
#define TICKS	1000

static u32 watchers = 200000;

struct shared {
	u64	due, count;
	u32	ready;
};

static struct shared *s;

static u64 mono(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static void watch(int fd)
{
	static int dups[DUPS];
	const struct rlimit many = { 10000, 10000 };
	u32 done = 0;

	setrlimit(RLIMIT_NOFILE, &many);
	become(1003);
	for (int d = 0; d < DUPS; d++)
		dups[d] = dup(fd);
	while (done < watchers) {
		int ep = epoll_create1(0);

		for (int d = 0; d < DUPS; d++) {
			struct epoll_event e = { .events = EPOLLIN };

			if (epoll_ctl(ep, EPOLL_CTL_ADD, dups[d], &e)) {
				perror("epoll_ctl");
				goto out;
			}
			done++;
		}
	}
out:
	diag("%u watchers", done);
}

static void attack(int twheel)
{
	const struct rlimit many = { 10000, 10000 };
	int fd;

	setrlimit(RLIMIT_NOFILE, &many);
	fd = twheel ? dev_open(0) : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	watch(fd);
	__atomic_store_n(&s->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&s->due, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	if (twheel) {
		for (u64 i = 0; i < TICKS; i++)
			add_with(fd, TWHEEL_F_ABS, s->due + i * MS, 0, 0);
		sleep_until(s->due + TICKS * MS);
	} else {
		const struct itimerspec i = { { 0, MS }, { (time_t)(s->due / SEC),
							   (long)(s->due % SEC) } };
		u64 periods;

		timerfd_settime(fd, TFD_TIMER_ABSTIME, &i, NULL);
		while (mono() < s->due + TICKS * MS)
			read(fd, &periods, sizeof(periods));
	}
}

static void counter(int arg)
{
	(void)arg;
	become(1002);
	for (;;) {
		for (int i = 0; i < 4000; i++)
			__asm__ volatile("");
		__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELAXED);
	}
}

static double rate(u64 begin, u64 end)
{
	u64 count;

	sleep_until(begin);
	begin = mono();
	count = __atomic_load_n(&s->count, __ATOMIC_RELAXED);
	sleep_until(end);
	count = __atomic_load_n(&s->count, __ATOMIC_RELAXED) - count;
	return (double)count / (double)(mono() - begin);
}

static double share(int twheel)
{
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pid_t one, other;
	double peace, war;

	memset(s, 0, sizeof(*s));
	one = start_task(attack, cpu, twheel);
	while (!__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	other = start_task(counter, cpu, 0);
	sleep_ms(100);
	s->due = (mono() + 500 * MS) / MS * MS;
	peace = rate(s->due - 100 * MS, s->due);
	war = rate(s->due, s->due + TICKS * MS);
	kill(one, SIGKILL);
	kill(other, SIGKILL);
	waitpid(one, NULL, 0);
	waitpid(other, NULL, 0);
	diag("%s: the counter has %.3f of the CPU", twheel ? "twheel" : "timerfd", war / peace);
	return war / peace;
}

static void counts(void)
{
	double file = share(1);

	share(0);
	CHECK(file >= 0.5);
}

static const struct test tests[] = {
	{ counts, "a task that counts, beside a file with many watchers" },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		watchers = (u32)atoi(argv[1]);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pin(0);
	return run_tests(tests, ARRAY_SIZE(tests));
}
