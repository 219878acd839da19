/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tests of /dev/twheel share.
 *
 * A program is a table of named tests, run in order; each is one line of TAP and
 * consists of CHECKs, at least one: a test that checks
 * nothing fails. A failed CHECK says why and goes on.
 *
 * The wrappers of the calls put 0xcc around, and into, all that the kernel may
 * write, and CHECK afterwards that it wrote what is promised and nothing else. They
 * return what the call returned, or a negative errno.
 *
 * About time only "never early" is checked to the nanosecond: the clock read after
 * the call against the deadline. How late is too late is WAIT_MS, for guests that
 * are slow and busy.
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

/* These tests are compiled against the first <linux/twheel.h> too: see selftest/uapi/first. */
#ifndef TWHEEL_OP_SIZE_VER0
#define FIRST_HEADER
#define TWHEEL_OP_SIZE_VER0	sizeof(struct twheel_op)

/* Nor had it commands of io_uring, which take its operations too. */
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

struct test {
	void		(*fn)(void);
	const char	*name;
};

int run_tests(const struct test *tests, int n);
noreturn void bail(const char *what);

/* A failed check fails the test that runs, whichever thread it is made in. */
bool check(bool good, const char *what, const char *file, int line);
bool check_eq(long long is, long long want, const char *what, const char *file,
	      int line);
#define CHECK(cond)	check(cond, #cond, __FILE__, __LINE__)
#define CHECK_EQ(is, want) \
	check_eq((long long)(is), (long long)(want), #is " == " #want, \
		 __FILE__, __LINE__)

/* The running test cannot be done here, for a reason that scripts/skips.expected has. */
void skip_test(const char *reason);

/* Did a CHECK of the running test fail? Ends loops that would fail for ever. */
bool failed(void);

u64 now_ns(clockid_t clock);
void sleep_ms(unsigned int ms);
/* @time is one of CLOCK_MONOTONIC. */
void sleep_until(u64 time);
/* The first ms of CLOCK_MONOTONIC that is wholly in the future, @ms later. */
u64 whole_ms(unsigned int ms);
u64 rnd(u64 *state);

/*
 * A child that runs @fn(@arg) on @cpu and no other. It ends with this program, and its exit
 * status tells whether a check failed in it.
 */
pid_t start_task(void (*fn)(int), int cpu, int arg);
void pin(int cpu);
pthread_t start_thread(void *(*fn)(void *), void *arg);
/* The calling task becomes one of SCHED_FIFO, and if @prio is 0 a common one. */
void be_fifo(int prio);
bool is_preempt_rt(void);
/* Worker threads of io_uring that this process has. */
int workers(void);
/* Be that user, in the group of the same number and no other. */
void become(uid_t uid);

int dev_open(int flags);
int dev_open_as(int flags);	/* with O_RDONLY, O_WRONLY or O_RDWR */
int setup(int fd, const struct twheel_setup *s);
void info(int fd, struct twheel_info *i);

/* Handle and user_data of @op are filled in as its command promises. */
int op_ioctl(int fd, unsigned long cmd, struct twheel_op *op);
/* A timer that must come into being; its handle. */
u64 add(int fd, u64 delay, u64 user_data);
u64 add_with(int fd, u32 flags, u64 expires, u64 interval, u64 user_data);
int mod(int fd, u64 handle, u64 delay, u32 flags);
int cancel(int fd, u64 handle);
int query(int fd, u64 handle, u32 flags, struct twheel_op *op);

/* Every operation of @ops; @done, if given, is set to nr_done. */
int submit(int fd, struct twheel_op *ops, u32 nr, u32 *done, u32 *bad);
void add_many(int fd, u32 nr, u64 delay, u64 first_user_data);

/* How many of @ops were filled in, or a negative errno. */
int drain(int fd, struct twheel_op *ops, u32 nr, u32 flags);

/* Events read, or a negative errno. At most READ_MAX at once. */
#define READ_MAX	4096
int read_events(int fd, struct twheel_event *ev, u32 max);
int read_one(int fd, struct twheel_event *ev);
bool readable(int fd, int ms);

/* The numbers in /proc/self/fdinfo/FD; false if @key is not there. */
bool fdinfo_get(int fd, const char *key, u64 *value);
void expect_counts(int fd, u32 timers, u32 armed, u32 ready);

/* Text of a small file, or into it; both want it to be there. */
void file_get(const char *path, char *text, size_t room);
void file_set(const char *path, const char *text);
/* A parameter of the device's module; @was, if given, gets what it was. */
void param_set(const char *name, u32 value, u32 *was);

/* A cgroup of memory, and of CPU time too if the kernel has that; false without memory. */
bool cgroup_make(const char *name);
void cgroup_set(const char *name, const char *key, u64 value);
u64 cgroup_get(const char *name, const char *key, const char *word);
void cgroup_join(const char *name);
void cgroup_remove(const char *name);

/* @bytes of memory that end where an inaccessible page begins. */
void *before_hole(size_t bytes);
void *read_only(const void *data, size_t bytes);
/* Memory that nothing is mapped at. */
void *unmapped(void);

/**
 * struct stall - a page in which a system call gets stuck that reads or writes it
 * @fd:		of userfaultfd(2)
 * @page:	the page. In front of it is one that is there, POISON
 */
struct stall {
	int		fd;
	unsigned char	*page;
};

struct stall stall_new(void);
/* Returns when a call is stuck. */
void stall_wait(const struct stall *s);
/* It goes on: with a page of zeros, or with EFAULT. */
void stall_give(const struct stall *s);
void stall_fail(const struct stall *s);
/* The page is there, and stays. */
void stall_end(const struct stall *s);

#endif
