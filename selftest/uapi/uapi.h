/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tests of /dev/twheel share.
 *
 * A program is a table of named tests, which are run in order. Each test is one line of TAP. It
 * consists of CHECKs, at least one: a test that checks nothing fails. A CHECK that fails prints
 * why, and the test goes on.
 *
 * The wrappers of the system calls put 0xcc around, and into, all memory that the kernel may write,
 * and CHECK afterwards that it wrote what is promised and nothing else. They return what the call
 * returned, or a negative errno.
 *
 * Only "never early" is checked to the nanosecond: the clock is read after the call and compared
 * with the deadline. An event is too late after WAIT_MS, for guests that are slow and busy.
 */
#ifndef UAPI_H
#define UAPI_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <time.h>

#include <linux/twheel.h>

/*
 * Some of these tests are also compiled with the first version of <linux/twheel.h>, in
 * selftest/uapi/first. It has no tolerance.
 */
#ifndef TWHEEL_OP_SIZE_VER0
#define FIRST_HEADER
#define TWHEEL_OP_SIZE_VER0	sizeof(struct twheel_op)

/* The first version has no commands of io_uring either. */
struct twheel_uring {
	__aligned_u64	ops;
	__u32		nr;
	__u16		op_size;
	__u16		flags;
};

#define TWHEEL_URING_SUBMIT	_IOWR(TWHEEL_IOC_MAGIC, 0x02, struct twheel_uring)
#define TWHEEL_URING_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0x07, struct twheel_uring)
#endif

typedef __u32 u32;
typedef __u64 u64;

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif
#define MS		1000000ULL	/* in ns */
#define SEC		1000000000ULL
#define HOUR		(3600 * SEC)
#define WAIT_MS		10000
#define POISON		0xcc
#define FIRST_OPS	16		/* done at once in a file without timers */

struct test {
	void		(*fn)(void);
	const char	*name;
};

int run_tests(const struct test *tests, int n);
noreturn void bail(const char *what);

/* A failed check fails the running test, whichever thread makes it. */
bool check(bool good, const char *what, const char *file, int line);
bool check_eq(long long is, long long want, const char *what, const char *file,
	      int line);
#define CHECK(cond)	check(cond, #cond, __FILE__, __LINE__)
#define CHECK_EQ(is, want) \
	check_eq((long long)(is), (long long)(want), #is " == " #want, \
		 __FILE__, __LINE__)

/* The running test is not possible here. scripts/skips.expected must list the reason. */
void skip_test(const char *reason);

/* Has a CHECK of the running test failed? For loops that would otherwise fail for ever. */
bool failed(void);

u64 now_ns(clockid_t clock);
/* The beginning of the tick in which a timer with the deadline @ns expires, in ns. */
u64 tick_after(u64 ns, u64 tick);
void sleep_ms(unsigned int ms);
/* Wait until CLOCK_MONOTONIC shows @time. */
void sleep_until(u64 time);
/* The beginning of a ms of CLOCK_MONOTONIC that is at least @ms ahead. */
u64 whole_ms(unsigned int ms);
u64 rnd(u64 *state);

/*
 * Run @fn(@arg) in a child, on @cpu and no other. The child ends with this program. Its exit status
 * says whether a check failed in it.
 */
pid_t start_task(void (*fn)(int), int cpu, int arg);
void pin(int cpu);
pthread_t start_thread(void *(*fn)(void *), void *arg);
/* Make the calling task one of SCHED_FIFO with priority @prio, or an ordinary one if that is 0. */
void be_fifo(int prio);
bool is_preempt_rt(void);
/* How many worker threads of io_uring this process has. */
int workers(void);
/*
 * Wait until the task whose id is, or becomes, *@tid sleeps in a system call. However busy the host
 * is, the task is then where the test wants it.
 */
void await_sleep(const pid_t *tid);
/* Become user @uid, in the group of the same number and no other. */
void become(uid_t uid);

int dev_open(int flags);
int dev_open_as(int flags);	/* with O_RDONLY, O_WRONLY or O_RDWR */
int setup(int fd, const struct twheel_setup *s);
void info(int fd, struct twheel_info *i);

/* Do an operation, and CHECK that handle and user_data are filled in as promised. */
int op_ioctl(int fd, unsigned long cmd, struct twheel_op *op);
/* Add a timer, which must succeed. Returns its handle. */
u64 add(int fd, u64 delay, u64 user_data);
u64 add_with(int fd, u32 flags, u64 expires, u64 interval, u64 user_data);
int mod(int fd, u64 handle, u64 delay, u32 flags);
int cancel(int fd, u64 handle);
int query(int fd, u64 handle, u32 flags, struct twheel_op *op);

/* SUBMIT all operations of @ops. If @done is not NULL, it is set to nr_done. */
int submit(int fd, struct twheel_op *ops, u32 nr, u32 *done, u32 *bad);
void add_many(int fd, u32 nr, u64 delay, u64 first_user_data);
/* Add @nr one-shots that are all due @at. */
void add_many_at(int fd, u32 nr, u64 at);

/* DRAIN. Returns how many of @ops were filled in, or a negative errno. */
int drain(int fd, struct twheel_op *ops, u32 nr, u32 flags);

/* read(). Returns how many events, at most READ_MAX, or a negative errno. */
#define READ_MAX	4096
int read_events(int fd, struct twheel_event *ev, u32 max);
int read_one(int fd, struct twheel_event *ev);
bool readable(int fd, int ms);

/* Read a number from /proc/self/fdinfo/FD. Returns false if there is no @key. */
bool fdinfo_get(int fd, const char *key, u64 *value);
u32 nr_ready(int fd);
/* Wait until @fd has @nr events, all that its timers will give. An interrupt may be late. */
void await_ready(int fd, u32 nr);
void expect_counts(int fd, u32 timers, u32 armed, u32 ready);

/* Read or write a small file, which must exist. */
void file_get(const char *path, char *text, size_t room);
void file_set(const char *path, const char *text);
/* Set a parameter of the device's module. If @was is not NULL, it gets the old value. */
void param_set(const char *name, u32 value, u32 *was);

/*
 * Make a memory cgroup, which also counts CPU time if the kernel can. Returns false if the kernel
 * has no memory cgroups.
 */
bool cgroup_make(const char *name);
void cgroup_set(const char *name, const char *key, u64 value);
u64 cgroup_get(const char *name, const char *key, const char *word);
void cgroup_join(const char *name);
void cgroup_remove(const char *name);

/* @bytes of memory that end where an inaccessible page begins. */
void *before_hole(size_t bytes);
void *read_only(const void *data, size_t bytes);
/* An address at which nothing is mapped. */
void *unmapped(void);

/**
 * struct stall - a page in which a system call gets stuck that reads or writes it
 * @fd:		the descriptor, from userfaultfd(2)
 * @page:	the page. The page in front of it is present and full of POISON
 */
struct stall {
	int		fd;
	unsigned char	*page;
};

struct stall stall_new(void);
/* Wait until a call is stuck in the page. */
void stall_wait(const struct stall *s);
/* Let the call go on: with a page of zeros, or with EFAULT. */
void stall_give(const struct stall *s);
void stall_fail(const struct stall *s);
/* Let the call go on: the page is there from now on. */
void stall_end(const struct stall *s);

#endif
