// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Threads of many users do whatever they may with a pool of files, while CPUs go offline and online
 * and limits change. Afterwards no timer may still be armed whose time has come: if one is, no CPU
 * serves its file.
 *
 *	test_chaos [SECONDS]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define THREADS	8
#define SLOTS	48
#define HANDLES	512
#define LATE_NS	(5 * SEC)

static int slots[SLOTS];
static u64 handles[SLOTS][HANDLES];
static bool stop;
static u64 nr_ops, nr_ev, nr_open, nr_hot;
static int line[2];
static int eps[8];
static char *moving;	/* memory that is unmapped and mapped all the while */
static u32 seconds = 10;

static const u64 ticks[] = { 100000, 100001, 333333, MS, 999999, 10 * MS };

static void open_slot(u32 i, u64 *seed)
{
	struct twheel_setup set = {
		.clockid = rnd(seed) % 2 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC,
		.tick_ns = ticks[rnd(seed) % ARRAY_SIZE(ticks)],
		.slack_ns = rnd(seed) % 3 ? 0 : rnd(seed) % (20 * MS),
	};
	int fd, old;

	syscall(SYS_setresuid, 3000 + rnd(seed) % 40, 0, 0);
	fd = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	syscall(SYS_setresuid, 0, 0, 0);
	if (fd < 0)
		return;
	__atomic_add_fetch(&nr_open, 1, __ATOMIC_RELAXED);
	if (rnd(seed) % 4)
		ioctl(fd, TWHEEL_IOC_SETUP, &set);
	old = __atomic_exchange_n(&slots[i], fd, __ATOMIC_SEQ_CST);
	if (old >= 0)
		close(old);
}

static void send_fd(int fd)
{
	char c = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
	sendmsg(line[0], &m, MSG_DONTWAIT);
}

static int recv_fd(void)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(line[1], &m, MSG_DONTWAIT) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

static void *memory(u64 *seed, void *good)
{
	return rnd(seed) % 8 ? good : moving + rnd(seed) % 8192 / 8 * 8;
}

static void submit_some(u32 i, int fd, u64 *seed)
{
	struct twheel_op good[128], *ops = good;
	struct twheel_batch b = { .ops = (uintptr_t)memory(seed, good), .nr = 1 + rnd(seed) % 128,
				  .op_size = sizeof(ops[0]) };

	memset(good, 0, sizeof(good));
	for (u32 n = 0; n < b.nr; n++) {
		u64 what = rnd(seed) % 10, h = handles[i][rnd(seed) % HANDLES];

		ops[n].op = what < 5 ? TWHEEL_OP_ADD : what < 7 ? TWHEEL_OP_MOD : TWHEEL_OP_CANCEL;
		if (ops[n].op != TWHEEL_OP_ADD)
			ops[n].handle = h;
		if (ops[n].op != TWHEEL_OP_CANCEL) {
			ops[n].expires_ns = rnd(seed) % (50 * MS);
			if (!(rnd(seed) % 4))
				ops[n].interval_ns = 10 * MS + rnd(seed) % (10 * MS);
			if (!(rnd(seed) % 8))
				ops[n].flags = TWHEEL_F_KEEP;
		}
	}
	ioctl(fd, TWHEEL_IOC_SUBMIT, &b);
	for (u32 n = 0; n < b.nr; n++)
		if (ops[n].op == TWHEEL_OP_ADD && ops[n].handle)
			handles[i][rnd(seed) % HANDLES] = ops[n].handle;
	if (!(rnd(seed) % 4)) {	/* cancel all timers: empty wake-ups remain */
		for (u32 n = 0; n < b.nr; n++)
			ops[n] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
						     .handle = ops[n].handle };
		b.nr_done = 0;
		b.nr_failed = 0;
		ioctl(fd, TWHEEL_IOC_SUBMIT, &b);
	}
}

static void one_op(u32 i, int fd, u64 *seed)
{
	struct twheel_op good = { .handle = handles[i][rnd(seed) % HANDLES],
				  .expires_ns = rnd(seed) % (20 * MS) };
	struct twheel_op *op = memory(seed, &good);

	ioctl(fd, TWHEEL_IOC_MOD, op);
	memset(&good.expires_ns, 0, sizeof(good) - offsetof(struct twheel_op, expires_ns));
	good.user_data = 0;
	ioctl(fd, rnd(seed) % 2 ? TWHEEL_IOC_CANCEL : TWHEEL_IOC_QUERY, op);
}

static void drain_some(int fd, u64 *seed)
{
	static __thread struct twheel_op good[100];
	struct twheel_batch b = { .ops = (uintptr_t)memory(seed, good), .nr = 100,
				  .op_size = sizeof(good[0]) };

	ioctl(fd, TWHEEL_IOC_DRAIN, &b);
}

static void read_some(int fd, u64 *seed)
{
	struct twheel_event good[100];
	ssize_t n = read(fd, memory(seed, good), (1 + rnd(seed) % 100) * sizeof(good[0]));

	if (n > 0)
		__atomic_add_fetch(&nr_ev, (u64)n / sizeof(good[0]), __ATOMIC_RELAXED);
}

static void watch_some(int fd, u64 *seed)
{
	int ep = eps[rnd(seed) % ARRAY_SIZE(eps)];
	static const u32 how[] = { EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLEXCLUSIVE,
				   EPOLLIN | EPOLLONESHOT };
	struct epoll_event e = { .events = how[rnd(seed) % 4] }, got[16];

	switch (rnd(seed) % 3) {
	case 0:
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
		break;
	case 1:
		epoll_ctl(ep, EPOLL_CTL_DEL, fd, &e);
		break;
	default:
		epoll_wait(ep, got, 16, 1);
	}
}

static void wander(u64 *seed)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(rnd(seed) % (u64)sysconf(_SC_NPROCESSORS_CONF), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *chaos(void *arg)
{
	u64 seed = (uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		u32 i = (u32)(rnd(&seed) % SLOTS);
		int fd = __atomic_load_n(&slots[i], __ATOMIC_RELAXED), other;

		__atomic_add_fetch(&nr_ops, 1, __ATOMIC_RELAXED);
		switch (rnd(&seed) % 40) {
		case 0:
			open_slot(i, &seed);
			break;
		case 1:
			send_fd(fd);
			break;
		case 2:
			other = recv_fd();
			if (other >= 0) {
				read_some(other, &seed);
				close(other);
			}
			break;
		case 3:
			wander(&seed);
			break;
		case 4:
			drain_some(fd, &seed);
			break;
		case 5 ... 9:
			watch_some(fd, &seed);
			break;
		case 10 ... 19:
			read_some(fd, &seed);
			break;
		case 20 ... 25:
			one_op(i, fd, &seed);
			break;
		case 26:
			if (rnd(&seed) % 2)
				mprotect(moving + rnd(&seed) % 3 * 4096, 4096,
					 rnd(&seed) % 2 ? PROT_READ : PROT_NONE);
			else
				madvise(moving, 12288, MADV_DONTNEED);
			break;
		case 27:
			mprotect(moving, 12288, PROT_READ | PROT_WRITE);
			break;
		default:
			submit_some(i, fd, &seed);
		}
	}
	return NULL;
}

static void *hotplug(void *arg)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	u64 seed = 99;

	(void)arg;
	while (n > 1 && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
			 1 + (int)(rnd(&seed) % (u64)(n - 1)));
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			nr_hot += write(fd, rnd(&seed) % 2 ? "1" : "0", 1) == 1;
			close(fd);
		}
		sleep_ms(20 + (u32)(rnd(&seed) % 100));
	}
	return NULL;
}

/*
 * Is a timer of the file still armed although its time came LATE_NS ago? DRAIN returns such a
 * timer. One whose time has only just come may be armed until its tick ends.
 */
static bool is_stuck(int fd, clockid_t clock)
{
	static struct twheel_op ops[1000];
	struct twheel_batch b = {
		.ops = (uintptr_t)ops, .nr = 1000, .op_size = sizeof(ops[0]), .flags = TWHEEL_F_ABS,
	};
	u32 due = 0;
	u64 now;

	ioctl(fd, TWHEEL_IOC_DRAIN, &b);
	now = now_ns(clock);
	for (u32 i = 0; i < b.nr_done; i++) {
		bool late = ops[i].expires_ns + LATE_NS < now;

		due += late;
		if (late || failed())
			diag("	timer %u: due at %llu, it is %llu, interval %llu", i,
			     ops[i].expires_ns, now, ops[i].interval_ns);
	}
	return due;
}

static void serves_all(void)
{
	alarm(seconds * 10 + 100);
	pthread_t t[THREADS], h;
	u32 was, stuck = 0, files = 0;
	const struct rlimit many = { 20000, 20000 };

	setrlimit(RLIMIT_NOFILE, &many);
	param_set("max_user_files", 5, &was);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, line), 0);
	moving = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (u32 i = 0; i < ARRAY_SIZE(eps); i++)
		eps[i] = epoll_create1(0);
	for (u32 i = 0; i < SLOTS; i++)
		slots[i] = -1;
	for (u64 i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, chaos, (void *)(uintptr_t)(i + 1)), 0);
	CHECK_EQ(pthread_create(&h, NULL, hotplug, NULL), 0);
	for (u32 i = 0; i < seconds * 10; i++) {
		sleep_ms(100);
		param_set("max_user_files", 1 + i % 7, NULL);
		param_set("max_user_timers", i % 3 ? 4194304 : 640, NULL);
	}
	param_set("max_user_files", was, NULL);
	param_set("max_user_timers", 4194304, NULL);
	stop = true;
	for (u32 i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_join(h, NULL);
	diag("%llu operations, %llu events, %llu files opened, %llu changes of CPUs", nr_ops,
	     nr_ev, nr_open, nr_hot);
	sleep_ms(10000);
	for (u32 i = 0; i < SLOTS; i++) {
		struct twheel_info in;

		if (slots[i] < 0 || ioctl(slots[i], TWHEEL_IOC_INFO, &in))
			continue;
		files++;
		if (is_stuck(slots[i], in.clockid)) {
			stuck++;
			diag("file %u: clock %d tick %llu slack %llu: %u armed, %u ready", i,
			     in.clockid,
			     in.tick_ns, in.slack_ns, in.nr_armed, in.nr_ready);
		}
	}
	diag("%u files left, %u stuck", files, stuck);
	CHECK_EQ(stuck, 0);
	CHECK(files > 0);
}

static const struct test tests[] = {
	{ serves_all, "random calls of many users: every timer that is due fires" },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = (u32)atoi(argv[1]);
	return run_tests(tests, ARRAY_SIZE(tests));
}
