// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The calls of a program that arms one timer in a call and reads one event in a call, on
 * /dev/twheel and on a timerfd. Each is made TIMES times, and profile.c counts instructions. As in
 * "one at a time" of bench/user, 10^5 timers of the file are armed far ahead, and an epoll has both
 * descriptors. When an event is read it is the only one that is ready, and no task sleeps for it. A
 * part's figure is what the kernel does; the program's own instructions are left out.
 *
 * "expire" is all that interrupts the program from 300 us before until 300 us after the time of a
 * timer. One of four of these contains the kernel's tick, with some 1000 instructions.
 *
 * "life" is what "dense" of bench/user does with 10^5 timers: they are armed 256 in a call, 100 of
 * them fire in each ms, and they are read when 4096 are due. "expire" contains the kernel's tick,
 * which is some 4 instructions for each timer.
 *
 * Prints the names of the parts in their order, and then the kernel's functions as /proc/kallsyms
 * lists them.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "../user/bench.h"
#include "marks.h"

#define TIMES		500
#define OTHERS		100000
#define MANY		64		/* in a batch */
#define BATCH		4096
#define FAR_NS		(60 * SEC)
#define FAR_RANGE	(60 * SEC)
#define LEAD_NS		(300 * 1000ULL)
#define LIVES		100000
#define LIFE_BATCH	256
#define LIFE_EVENTS	4096
#define LIFE_GAP_NS	10000ULL	/* from one deadline to the next */
#define LIFE_LEAD_NS	(200 * MS)	/* arming all of them takes less */

#define NOTHING		((void)0)

/* Count @call, if @yes. */
#define COUNT_IF(yes, call) do {				\
	if (yes)						\
		mark(MARK_ON);					\
	call;							\
	mark(MARK_OFF);						\
} while (0)

static int wheel, timer, epoll;		/* the descriptors */
static struct io_uring ring;
static struct twheel_op ops[BATCH];
static u64 handles[TIMES];

noreturn void die(const char *what)
{
	fprintf(stderr, "# must(%s): %s\n", what, strerror(errno));
	exit(1);
}

static u64 far(void)
{
	return now_ns() + FAR_NS + (u64)random() * FAR_RANGE / RAND_MAX;
}

/*
 * Count @call TIMES times. It handles @each timers, and must not return a negative number. @before
 * prepares each call, and is not counted.
 */
#define PART(name, before, call)	PART_OF(1, name, before, call)
#define PART_OF(each, name, before, call) do {			\
	printf("part\t%s\t%d\n", name, TIMES * (each));		\
	for (int i = 0; i < TIMES; i++) {			\
		long ret;					\
								\
		before;						\
		mark(MARK_ON);					\
		ret = call;					\
		mark(MARK_OFF);					\
		must(ret >= 0);					\
	}							\
	mark(MARK_NEXT);					\
} while (0)

static struct twheel_op *op_of(u32 op, u64 deadline)
{
	ops[0] = (struct twheel_op){ .op = op, .expires_ns = deadline,
				     .flags = deadline ? TWHEEL_F_ABS : 0 };
	return ops;
}

static struct twheel_op *op_for(u32 op, u64 handle, u64 deadline)
{
	op_of(op, deadline)->handle = handle;
	return ops;
}

static void add_others(void)
{
	struct twheel_batch batch = { .ops = (uintptr_t)ops, .op_size = sizeof(ops[0]) };
	u32 done;

	for (done = 0; done < OTHERS; done += batch.nr) {
		batch.nr = OTHERS - done < BATCH ? OTHERS - done : BATCH;
		batch.nr_done = 0;
		for (u32 i = 0; i < batch.nr; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
						     .expires_ns = far() };
		must(!ioctl(wheel, TWHEEL_IOC_SUBMIT, &batch));
	}
}

static void fill(u32 op, u64 deadline)
{
	for (u32 i = 0; i < MANY; i++)
		ops[i] = (struct twheel_op){
			.op = op, .handle = op == TWHEEL_OP_ADD ? 0 : ops[i].handle,
			.expires_ns = deadline, .flags = deadline ? TWHEEL_F_ABS : 0 };
}

/* The same in batches. */
static int submit(u32 op, u64 deadline)
{
	struct twheel_batch batch = {
		.ops = (uintptr_t)ops, .nr = MANY, .op_size = sizeof(ops[0]) };

	fill(op, deadline);
	return ioctl(wheel, TWHEEL_IOC_SUBMIT, &batch);
}

/* The same through io_uring, until the completion is there. */
static int submit_by_ring(u32 op, u64 deadline)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;
	int res;

	fill(op, deadline);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, wheel, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	*(struct twheel_uring *)sqe->cmd = (struct twheel_uring){
		.ops = (uintptr_t)ops, .nr = MANY, .op_size = sizeof(ops[0]) };
	must(io_uring_submit_and_wait(&ring, 1) == 1 && !io_uring_peek_cqe(&ring, &cqe));
	res = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return res - MANY;
}

static u64 add(u64 deadline)
{
	must(!ioctl(wheel, TWHEEL_IOC_ADD, op_of(TWHEEL_OP_ADD, deadline)));
	return ops[0].handle;
}

static void settime(u64 deadline)
{
	struct itimerspec when = { .it_value = timespec_of(deadline) };

	must(!timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL));
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	must(poll(&p, 1, -1) == 1);
}

static void spin_until(u64 when)
{
	while (now_ns() < when)
		;
}

/* The next whole ms but one. Of four in a row, each is in another quarter of the kernel's tick. */
static u64 due(u32 i)
{
	u64 at = now_ns() / MS * MS + 2 * MS;

	return at + (i - at / MS) % 4 * MS;
}

static void calls_of_wheel(void)
{
	struct pollfd p = { .fd = wheel, .events = POLLIN };
	struct twheel_event events[512];
	struct epoll_event e;
	u64 at = 0;

	PART("twheel ADD", op_of(TWHEEL_OP_ADD, far()),
	     ioctl(wheel, TWHEEL_IOC_ADD, ops); handles[i] = ops[0].handle);
	PART("twheel MOD", op_for(TWHEEL_OP_MOD, handles[i], far()),
	     ioctl(wheel, TWHEEL_IOC_MOD, ops));
	PART("twheel CANCEL", op_for(TWHEEL_OP_CANCEL, handles[i], 0),
	     ioctl(wheel, TWHEEL_IOC_CANCEL, ops));
	PART("twheel poll, nothing ready", NOTHING, poll(&p, 1, 0));
	PART("twheel expire", { at = due(i); add(at); spin_until(at - LEAD_NS); },
	     (spin_until(at + LEAD_NS), 0));
	must(read(wheel, events, sizeof(events)) == TIMES * sizeof(events[0]));
	PART("twheel poll", { add(1); wait_for(wheel); }, poll(&p, 1, 0));
	must(read(wheel, events, sizeof(events)) > 0);
	epoll_wait(epoll, &e, 1, 0);
	PART("twheel epoll_wait", {
			if (i)
				must(read(wheel, events, sizeof(events)) > 0);
			add(1);
			wait_for(wheel);
		}, epoll_wait(epoll, &e, 1, 0) - 1);
	must(read(wheel, events, sizeof(events)) > 0);
	PART("twheel read", { add(1); wait_for(wheel); },
	     read(wheel, events, sizeof(events)) - (long)sizeof(events[0]));
	PART_OF(MANY, "twheel SUBMIT of 64 ADDs, each", NOTHING, submit(TWHEEL_OP_ADD, far()));
	PART_OF(MANY, "twheel SUBMIT of 64 CANCELs, each", submit(TWHEEL_OP_ADD, far()),
		submit(TWHEEL_OP_CANCEL, 0));
	PART_OF(MANY, "twheel SUBMIT of 64 ADDs by io_uring, each", NOTHING,
		submit_by_ring(TWHEEL_OP_ADD, far()));
	PART_OF(MANY, "twheel SUBMIT of 64 CANCELs by io_uring, each",
		submit(TWHEEL_OP_ADD, far()), submit_by_ring(TWHEEL_OP_CANCEL, 0));
	PART_OF(MANY, "twheel read of 64 events, each", {
			submit(TWHEEL_OP_ADD, 1);
			wait_for(wheel);
		}, read(wheel, events, sizeof(events)) - (long)(MANY * sizeof(events[0])));
	PART("twheel read, a periodic one", {
			op_of(TWHEEL_OP_ADD, 1)->interval_ns = MS;
			if (!i)
				must(!ioctl(wheel, TWHEEL_IOC_ADD, ops));
			wait_for(wheel);
		}, read(wheel, events, sizeof(events)) - (long)sizeof(events[0]));
}

static void calls_of_timerfd(void)
{
	struct pollfd p = { .fd = timer, .events = POLLIN };
	struct itimerspec when = { };
	struct epoll_event e;
	u64 count, at = 0;

	settime(far());
	PART("timerfd_settime", when.it_value = timespec_of(far()),
	     timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL));
	when.it_value = timespec_of(0);
	PART("timerfd_settime, 0", settime(far()),
	     timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL));
	PART("timerfd poll, nothing ready", NOTHING, poll(&p, 1, 0));
	PART("timerfd expire", { at = due(i); settime(at); spin_until(at - LEAD_NS); },
	     (spin_until(at + LEAD_NS), 0));
	PART("timerfd poll", { settime(1); wait_for(timer); }, poll(&p, 1, 0));
	epoll_wait(epoll, &e, 1, 0);
	PART("timerfd epoll_wait", { settime(1); wait_for(timer); },
	     epoll_wait(epoll, &e, 1, 0) - 1);
	PART("timerfd read", { settime(1); wait_for(timer); },
	     read(timer, &count, sizeof(count)) - (long)sizeof(count));
	when = (struct itimerspec){ .it_value = timespec_of(MS), .it_interval = timespec_of(MS) };
	PART("timerfd read, a periodic one", {
			if (!i)
				must(!timerfd_settime(timer, 0, &when, NULL));
			wait_for(timer);
		}, read(timer, &count, sizeof(count)) - (long)sizeof(count));
}

/* The parts of a life. */
enum { ARM, EXPIRE, COLLECT, CLOSE, NR_STAGES };

/* Arm LIVES timers of @fd: from the time @from on, or far ahead if that is 0. */
static void life_arm(int fd, u64 from, bool count)
{
	struct twheel_batch batch;
	u32 done, i;

	for (done = 0; done < LIVES; done += batch.nr) {
		batch = (struct twheel_batch){
			.ops = (uintptr_t)ops, .op_size = sizeof(ops[0]),
			.nr = LIVES - done < LIFE_BATCH ? LIVES - done : LIFE_BATCH };
		for (i = 0; i < batch.nr; i++)
			ops[i] = (struct twheel_op){
				.op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
				.expires_ns = !from ? far() :
					      from + (u64)random() % (LIFE_GAP_NS * LIVES) };
		COUNT_IF(count, must(!ioctl(fd, TWHEEL_IOC_SUBMIT, &batch)));
		must(batch.nr_done == batch.nr && !batch.nr_failed);
	}
}

/* Read the events that are ready. Returns how many. */
static u32 life_collect(int fd, bool count)
{
	static struct twheel_event events[LIFE_EVENTS];
	u32 nr = 0;
	ssize_t got;

	do {
		COUNT_IF(count, got = read(fd, events, sizeof(events)));
		must(got > 0 || errno == EAGAIN);
		nr += got > 0 ? got / sizeof(events[0]) : 0;
	} while (got == sizeof(events));
	return nr;
}

static void life_fire(int fd, u32 stage)
{
	u64 from = now_ns() + LIFE_LEAD_NS;
	u32 got = 0;

	life_arm(fd, from, false);
	must(now_ns() < from);
	for (u32 due = LIFE_EVENTS; got < LIVES; due += LIFE_EVENTS) {
		COUNT_IF(stage == EXPIRE, spin_until(from + due * LIFE_GAP_NS + 2 * MS));
		got += life_collect(fd, stage == COLLECT);
	}
}

/* Play a life, of which part @stage is counted. */
static void live(u32 stage)
{
	static const char *const names[NR_STAGES] = { "arm", "expire", "collect", "close" };
	int fd = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };

	must(fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e));
	printf("part\tlife: %s, each\t%d\n", names[stage], LIVES);
	if (stage == EXPIRE || stage == COLLECT)
		life_fire(fd, stage);
	else
		life_arm(fd, 0, stage == ARM);
	COUNT_IF(stage == CLOSE, must(!close(fd)));
	mark(MARK_NEXT);
}

static void print_symbols(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[256], name[128], type;
	unsigned long long address;

	must(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %c %127s", &address, &type, name) == 3 &&
		    strchr("tTwW", type) && address)
			printf("symbol\t%016llx\t%s\n", address, name);
	fclose(file);
}

int main(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	must(wheel >= 0 && timer >= 0 && epoll >= 0);
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, wheel, &e));
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e));
	must(!io_uring_queue_init(1, &ring, 0));
	for (u32 stage = 0; stage < NR_STAGES; stage++)
		live(stage);
	add_others();
	PART("getppid", NOTHING, syscall(SYS_getppid));
	calls_of_wheel();
	calls_of_timerfd();
	print_symbols();
	return 0;
}
