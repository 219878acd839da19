// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Random calls on files of /dev/twheel: nothing worse than an errno may come of them.
 *
 *	test_fuzz [SECONDS [SEED]]
 *
 * THREADS threads share FILES files, and now and then replace a file that others are using. Each
 * call, or command of io_uring, begins as one that makes sense. Then some parts of it are damaged:
 * its command, size, pointer, flags, handle or time. Its memory is good, read-only or missing, ends
 * in the middle, is behind the end of a mapped file, or is being unmapped by another thread. The
 * main thread sends signals.
 *
 * A call must return what its documentation names. In the end each file must still work: what is
 * armed can be drained, what is ready can be read, and a new timer fires. Other faults are for the
 * kernel to notice, so this is best run in a debugging kernel. If memory was lost, that shows when
 * the modules are unloaded.
 *
 * The same seed gives the same calls in each thread, but not in the same order among the threads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tap.h"
#include "ring.h"

#define THREADS		3
#define FILES		3
#define SECONDS		5
#define SLOW_S		60	/* so much longer if the host is slow */
#define POOL		256	/* how many handles of a file are remembered */
#define AREA		(64 << 10)
#define ERRNOS		140
#define URING		8	/* commands of io_uring, after the ioctls */
#define COMMANDS	9

struct thread {
	pthread_t		thread;
	u64			seed, calls;
	struct twheel_op	*ops;		/* an area of memory of its own */
	struct ring		ring;
	u32			succeeded[COMMANDS], failed[ERRNOS];
};

static struct thread threads[THREADS];
static int files[FILES];
static u64 handles[FILES][POOL];
static bool over;
static u32 nr_strange;		/* results that are not documented */

/* ---- memory ------------------------------------------------------------------- */

/*
 * The areas lie apart from each other, in a place where nothing else is mapped: whatever is written
 * too far must hit a hole.
 */
#define GUARD		(256 << 10)
#define AREAS		(5 + THREADS)

static char *area_whole, *area_ro, *area_gone, *area_eof, *area_flaky;

static char *area(int prot)
{
	static char *next;
	char *p;

	if (!next)
		next = mmap(NULL, AREAS * (AREA + GUARD) + GUARD, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (next == MAP_FAILED)
		bail("mmap");
	p = next + GUARD;
	next = p + AREA;
	mprotect(p, AREA, prot);
	return p;
}

static void make_areas(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	area_whole = area(PROT_READ | PROT_WRITE);
	area_ro = area(PROT_READ);
	area_gone = area(PROT_NONE);
	area_flaky = area(PROT_READ | PROT_WRITE);
	area_eof = area(PROT_NONE);
	if (fd < 0 || ftruncate(fd, AREA / 2) ||
	    mmap(area_eof, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		bail("memfd");
	close(fd);
}

/* Unmap and map an area that another thread may be using. */
static void shake_memory(u64 dice)
{
	const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
			      PROT_READ | PROT_WRITE };

	if (dice % 8 == 0)
		madvise(area_flaky, AREA, MADV_DONTNEED);
	else
		mprotect(area_flaky + (dice >> 8) % (AREA / 4096) * 4096, 4096,
			 prots[(dice >> 16) % ARRAY_SIZE(prots)]);
}

/* ---- values ------------------------------------------------------------------- */

static u64 dice(struct thread *t, u64 n)
{
	return n ? rnd(&t->seed) % n : 0;
}

static u64 odd_value(struct thread *t)
{
	static const u64 values[] = { 0, 1, 2, 3, 7, 8, 47, 48, 49, 64, 4095, 4096, 4097,
		65535, 65536, 65537, MS / 10, MS, SEC, SEC + 1, 0x7fffffff, 0x80000000,
		0xffffffff, 1ULL << 32, (1ULL << 32) + 1, 0x7fffffffffffffff, 1ULL << 63,
		~0ULL - 1, ~0ULL };

	switch (dice(t, 4)) {
	case 0:
		return rnd(&t->seed);
	case 1:
		return rnd(&t->seed) >> dice(t, 64);
	default:
		return values[dice(t, ARRAY_SIZE(values))];
	}
}

static u64 some_handle(struct thread *t, u32 file)
{
	u64 h = __atomic_load_n(&handles[file][dice(t, POOL)], __ATOMIC_RELAXED);

	switch (dice(t, 20)) {
	case 0:
		return odd_value(t);
	case 1:
		return h ^ 1ULL << dice(t, 64);
	default:
		return h;
	}
}

static void remember(struct thread *t, u32 file, u64 handle)
{
	__atomic_store_n(&handles[file][dice(t, POOL)], handle, __ATOMIC_RELAXED);
}

/* An address at which this program has nothing mapped. */
static void *nowhere(struct thread *t)
{
	static const u64 addresses[] = { 0, 1, 8, 4096, 65528, ~0ULL, ~7ULL, ~4094ULL,
		1ULL << 47, 0xffff888000000000, 0xffffffff81000000 };

	return (void *)(uintptr_t)addresses[dice(t, sizeof(void *) == 4 ? 8 : 11)];
}

/* An address in one of the areas, at which @bytes may fit or not. */
static void *some_memory(struct thread *t, size_t bytes)
{
	static char *const *const areas[] = { &area_ro, &area_gone, &area_eof, &area_flaky,
					      &area_flaky, &area_whole };
	char *a = *areas[dice(t, ARRAY_SIZE(areas))];
	u64 at = dice(t, AREA);

	switch (dice(t, 8)) {
	case 0:
		return nowhere(t);
	case 1:
		return area_whole + AREA - dice(t, bytes + 1);
	case 2:
		at = AREA / 2 - dice(t, bytes < AREA / 2 ? bytes : AREA / 2);
		break;
	}
	return a + (dice(t, 4) ? at & ~7UL : at);
}

/* Change some byte or word of @p for the worse, but not the first @kept bytes. */
static void worsen(struct thread *t, void *p, size_t kept, size_t bytes)
{
	u64 value = odd_value(t);
	size_t at = kept + dice(t, bytes - kept);

	switch (dice(t, 3)) {
	case 0:
		((unsigned char *)p)[at] = (unsigned char)value;
		break;
	case 1:
		memcpy((char *)p + at / 4 * 4, &value, 4);
		break;
	default:
		memcpy((char *)p + at / 8 * 8, &value, 8);
	}
}

/* ---- calls that make sense ------------------------------------------------------ */

static void good_op(struct thread *t, u32 file, struct twheel_op *op)
{
	*op = (struct twheel_op){ .op = 1 + dice(t, 4) };
	if (op->op == TWHEEL_OP_ADD)
		op->user_data = rnd(&t->seed);
	else
		op->handle = some_handle(t, file);
	if (op->op > TWHEEL_OP_MOD)
		return;
	op->expires_ns = dice(t, 8) ? dice(t, 3 * MS) : odd_value(t);
	if (dice(t, 4) == 0)
		op->flags |= TWHEEL_F_KEEP;
	if (dice(t, 8) == 0)
		op->flags |= TWHEEL_F_ABS;
	if (dice(t, 4) == 0) {
		op->interval_ns = MS + dice(t, SEC);
		op->flags |= dice(t, 2) ? TWHEEL_F_DELAY : 0;
	}
	if (op->op == TWHEEL_OP_MOD && dice(t, 4) == 0)
		op->flags |= TWHEEL_F_PENDING;
}

/* A batch of operations, most of which are good. */
static void good_batch(struct thread *t, u32 file, struct twheel_batch *b, bool drain)
{
	u32 nr = dice(t, 4) ? dice(t, 16) : dice(t, 400);

	*b = (struct twheel_batch){ .ops = (uintptr_t)t->ops, .nr = nr,
				    .op_size = sizeof(*t->ops) };
	if (drain)
		b->flags = dice(t, 2) ? TWHEEL_F_ABS : 0;
	for (u32 i = 0; i < nr; i++) {
		good_op(t, file, &t->ops[i]);
		if (dice(t, 16) == 0)
			worsen(t, &t->ops[i], 0, sizeof(t->ops[i]));
	}
	if (dice(t, 8) == 0)
		b->ops = (uintptr_t)some_memory(t, nr * sizeof(*t->ops));
	if (dice(t, 16) == 0)
		b->op_size += 8 * dice(t, 64);
}

static void good_setup(struct thread *t, struct twheel_setup *s)
{
	static const int clocks[] = { 0, 1, 7 };

	*s = (struct twheel_setup){ .clockid = clocks[dice(t, 3)],
		.tick_ns = dice(t, 2) ? 0 : MS / 10 + dice(t, 10 * MS),
		.slack_ns = dice(t, 2) ? 0 : dice(t, MS),
		.max_timers = dice(t, 2) ? 0 : dice(t, 3000) };
}

/* Fill in a good argument for ioctl @nr. Returns its size. */
static size_t good_argument(struct thread *t, u32 file, u32 nr, void *arg)
{
	switch (nr) {
	case _IOC_NR(TWHEEL_IOC_SETUP):
		good_setup(t, arg);
		return sizeof(struct twheel_setup);
	case _IOC_NR(TWHEEL_IOC_INFO):
		return sizeof(struct twheel_info);
	case _IOC_NR(TWHEEL_IOC_SUBMIT):
	case _IOC_NR(TWHEEL_IOC_DRAIN):
		good_batch(t, file, arg, nr == _IOC_NR(TWHEEL_IOC_DRAIN));
		return sizeof(struct twheel_batch);
	default:
		good_op(t, file, arg);
		((struct twheel_op *)arg)->op = dice(t, 4) ? 0 : 1 + dice(t, 4);
		return sizeof(struct twheel_op);
	}
}

static const unsigned int commands[] = {
	TWHEEL_IOC_SETUP, TWHEEL_IOC_INFO, TWHEEL_IOC_SUBMIT, TWHEEL_IOC_ADD,
	TWHEEL_IOC_MOD, TWHEEL_IOC_CANCEL, TWHEEL_IOC_QUERY, TWHEEL_IOC_DRAIN,
};

/* ---- and what is made of them ---------------------------------------------------- */

static bool documented(int err)
{
	static const int errs[] = { EINVAL, E2BIG, EFAULT, ENOTTY, ENOENT, EALREADY, EBUSY,
				    EDQUOT, ENOMEM, EAGAIN, EINTR, EOPNOTSUPP };

	for (u32 i = 0; i < ARRAY_SIZE(errs); i++)
		if (err == errs[i])
			return true;
	return false;
}

/* A call returned @rc: is that documented? For calls that are not ours nothing is known. */
static void judge(struct thread *t, const char *what, long rc, long most, bool ours)
{
	int err = rc < 0 ? errno : 0;

	t->calls++;
	if (err && err < ERRNOS)
		t->failed[err]++;
	if (!ours || (rc >= 0 ? rc <= most : documented(err)))
		return;
	if (__atomic_add_fetch(&nr_strange, 1, __ATOMIC_RELAXED) <= 10)
		diag("%s gave %ld: %s", what, rc, strerror(err));
}

/* @nr operations in @t's own memory have been done: remember their handles. */
static void harvest_ops(struct thread *t, u32 file, u32 nr)
{
	for (u32 i = 0; i < nr && i < 400; i++)
		if (t->ops[i].op == TWHEEL_OP_ADD && !t->ops[i].res)
			remember(t, file, t->ops[i].handle);
}

/* Remember the handles that a call has returned. */
static void harvest(struct thread *t, u32 file, u32 nr, const void *arg, long rc)
{
	const struct twheel_batch *b = arg;
	const struct twheel_op *op = arg;

	if (rc < 0)
		return;
	t->succeeded[nr]++;
	if (nr == _IOC_NR(TWHEEL_IOC_ADD))
		remember(t, file, op->handle);
	if (nr == _IOC_NR(TWHEEL_IOC_SUBMIT) && b->ops == (uintptr_t)t->ops &&
	    b->op_size == sizeof(*op))
		harvest_ops(t, file, b->nr_done);
}

static unsigned int worse_command(struct thread *t, unsigned int cmd)
{
	switch (dice(t, 4)) {
	case 0:
		return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), dice(t, 1 << 14));
	case 1:
		return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), dice(t, 256), _IOC_SIZE(cmd));
	case 2:
		return cmd ^ 1U << dice(t, 32);
	default:
		return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd),
			    _IOC_SIZE(cmd) + dice(t, 64));
	}
}

static void call_ioctl(struct thread *t, u32 file)
{
	u32 nr = dice(t, ARRAY_SIZE(commands));
	unsigned int cmd = commands[nr];
	unsigned char good[1 << 14];
	void *arg = good;
	size_t bytes, kept;
	long rc;

	memset(good, 0, 512);
	bytes = good_argument(t, file, nr, good);
	/* The address of a batch must stay harmless. */
	kept = nr == _IOC_NR(TWHEEL_IOC_SUBMIT) || nr == _IOC_NR(TWHEEL_IOC_DRAIN) ? 8 : 0;
	for (u64 n = dice(t, 8); n > 5; n--)
		worsen(t, good, kept, bytes);
	if (dice(t, 16) == 0)
		cmd = worse_command(t, cmd);
	if (dice(t, 16) == 0)		/* what is in memory already is the argument */
		arg = some_memory(t, bytes);
	rc = ioctl(files[file], cmd, arg);
	judge(t, "ioctl", rc, TWHEEL_STATE_IDLE, _IOC_TYPE(cmd) == TWHEEL_IOC_MAGIC);
	if (arg == good && cmd == commands[nr])
		harvest(t, file, nr, good, rc);
}

/* Take completions until that of @data has come; if @data is 0, those that are there. */
static long complete(struct thread *t, u64 data)
{
	struct io_uring_cqe cqe;

	while (data ? ring_wait(&t->ring, &cqe, WAIT_MS) : ring_peek(&t->ring, &cqe)) {
		/* Requests that cancel, and requests that are cancelled, are not judged. */
		errno = -cqe.res;
		judge(t, "command", cqe.res < 0 ? -1 : cqe.res, TWHEEL_BATCH_MAX,
		      cqe.user_data != ~0ULL && cqe.res != -ECANCELED);
		if (data && cqe.user_data == data)
			return cqe.res;
	}
	if (data) {
		errno = ETIME;
		judge(t, "a command that is gone", -1, 0, true);
	}
	return -ETIME;
}

/* A command of io_uring. It may still run when this returns, be cancelled, or end with its ring. */
static void call_uring(struct thread *t, u32 file)
{
	const bool drains = dice(t, 4) == 0, waits = dice(t, 8);
	const u64 data = ++t->calls;
	struct io_uring_sqe *sqe;
	struct twheel_uring *cmd;
	struct twheel_batch b;
	bool good;
	long rc;

	good_batch(t, file, &b, drains);
	sqe = ring_sqe(&t->ring, IORING_OP_URING_CMD, files[file], data);
	cmd = ring_command(sqe, drains ? TWHEEL_URING_DRAIN : TWHEEL_URING_SUBMIT,
			   (void *)(uintptr_t)b.ops, (u32)b.nr);
	cmd->op_size = (__u16)b.op_size;
	cmd->flags = (__u16)b.flags;
	if (dice(t, 8) == 0)
		worsen(t, cmd, 8, sizeof(*cmd));
	if (dice(t, 16) == 0)
		sqe->cmd_op = worse_command(t, sqe->cmd_op);
	if (dice(t, 16) == 0)
		sqe->uring_cmd_flags = (u32)odd_value(t);
	sqe->flags = dice(t, 8) ? 0 : IOSQE_ASYNC;
	good = waits && !drains && sqe->cmd_op == TWHEEL_URING_SUBMIT &&
	       b.ops == (uintptr_t)t->ops && cmd->op_size == sizeof(*t->ops);
	if (dice(t, 16) == 0)
		ring_sqe(&t->ring, IORING_OP_ASYNC_CANCEL, -1, ~0ULL)->addr = data;
	judge(t, "io_uring_enter", ring_enter(&t->ring, 0), 2, true);
	rc = complete(t, waits ? data : 0);
	t->succeeded[URING] += rc > 0;
	if (good && rc > 0)
		harvest_ops(t, file, (u32)rc);
}

static void call_read(struct thread *t, u32 file)
{
	size_t bytes = dice(t, 4) ? dice(t, 100) * 32 : dice(t, AREA);
	struct iovec iov[3];
	ssize_t n;

	for (u32 i = 0; i < 3; i++)
		iov[i] = (struct iovec){ dice(t, 8) ? (void *)t->ops : some_memory(t, bytes),
					 dice(t, 2) ? bytes : dice(t, 100) };
	switch (dice(t, 4)) {
	case 0:
		n = readv(files[file], iov, (int)dice(t, 4));
		break;
	case 1:
		n = preadv2(files[file], iov, 2, -1, RWF_NOWAIT);
		break;
	default:
		n = read(files[file], iov[0].iov_base, bytes);
	}
	judge(t, "read", n, 3L * AREA, true);
	if (n > 0 && n % 32)
		judge(t, "read of half an event", -1, 0, true);
}

static void call_others(struct thread *t, u32 file)
{
	struct pollfd p = { .fd = files[file], .events = (short)rnd(&t->seed) };
	int flags = dice(t, 8) ? O_NONBLOCK : 0;

	switch (dice(t, 8)) {
	case 0:
		judge(t, "fcntl", fcntl(files[file], F_SETFL, flags), 0, false);
		break;
	case 1:
		judge(t, "lseek", lseek(files[file], (off_t)dice(t, 100), SEEK_CUR), 0, false);
		break;
	case 2:
		judge(t, "write", write(files[file], t->ops, dice(t, 100)), 0, false);
		break;
	case 3:
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, files[file], 0);
		break;
	case 4:
		judge(t, "pread", pread(files[file], t->ops, 64, 0), 0, false);
		break;
	default:
		judge(t, "poll", poll(&p, 1, (int)dice(t, 3)), 1, true);
	}
}

/* Replace a file, which others may be using. */
static void exchange(struct thread *t, u32 file)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_setup s;

	good_setup(t, &s);
	ioctl(fd, TWHEEL_IOC_SETUP, &s);
	dup3(fd, files[file], O_CLOEXEC);
	close(fd);
}

static void *fuzz(void *arg)
{
	struct thread *t = arg;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		u32 file = dice(t, FILES);

		switch (dice(t, 64)) {
		case 0 ... 7:
			call_read(t, file);
			break;
		case 8:
			call_others(t, file);
			break;
		case 9:
			shake_memory(rnd(&t->seed));
			break;
		case 10:
			if (dice(t, 8) == 0)
				exchange(t, file);
			break;
		case 11 ... 14:
			call_uring(t, file);
			break;
		default:
			call_ioctl(t, file);
		}
	}
	ring_close(&t->ring);
	return NULL;
}

/* ---- before and after ------------------------------------------------------------ */

static unsigned int seconds = SECONDS;
static u64 seed;

static void on_signal(int sig)
{
	(void)sig;
}

static void start(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &sa, NULL);
	make_areas();
	for (u32 i = 0; i < FILES; i++)
		files[i] = dev_open(O_NONBLOCK);
	for (u32 i = 0; i < THREADS; i++) {
		threads[i].seed = (seed + i) * 0x9e3779b97f4a7c15ULL | 1;
		/* A request that is refused must not keep those behind it from being taken. */
		ring_open(&threads[i].ring, 8, IORING_SETUP_SUBMIT_ALL);
		threads[i].ops = (struct twheel_op *)area(PROT_READ | PROT_WRITE);
		pthread_create(&threads[i].thread, NULL, fuzz, &threads[i]);
	}
}

/* Send signals until all threads have ended: one of them may be waiting for an event. */
static void stop(void)
{
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (u32 i = 0; i < THREADS; i++)
		while (pthread_tryjoin_np(threads[i].thread, NULL)) {
			pthread_kill(threads[i].thread, SIGUSR1);
			sleep_ms(1);
		}
}

/* The first command that has not succeeded yet, or COMMANDS. */
static u32 never_succeeded(void)
{
	u32 k, i;

	for (k = 0; k < COMMANDS; k++) {
		for (i = 0; i < THREADS && !threads[i].succeeded[k]; i++)
			;
		if (i == THREADS)
			break;
	}
	return k;
}

static void tell(void)
{
	u64 calls = 0, failures[ERRNOS] = { 0 };

	for (u32 i = 0; i < THREADS; i++) {
		calls += threads[i].calls;
		for (u32 k = 0; k < ERRNOS; k++)
			failures[k] += threads[i].failed[k];
	}
	diag("%llu calls in %u s, seed %llu", calls, seconds, seed);
	for (int k = 0; k < ERRNOS; k++)
		if (failures[k])
			diag("	%s: %llu", strerror(k), failures[k]);
}

/*
 * Send signals for @s seconds. On a slow host go on until each command has succeeded: some of them
 * seldom do, as SETUP, which only a file without timers takes.
 */
static void disturb(u64 s)
{
	const u64 begin = now_ns(CLOCK_MONOTONIC);
	u64 past = 0;

	for (u64 k = 0; past < s || (never_succeeded() < COMMANDS && past < s + SLOW_S); k++) {
		sleep_ms(3);
		pthread_kill(threads[k % THREADS].thread, SIGUSR1);
		past = (now_ns(CLOCK_MONOTONIC) - begin) / SEC;
	}
}

static void run(void)
{
	diag("seed %llu", seed);
	alarm(2 * SLOW_S + seconds);
	start();
	disturb(seconds);
	stop();
	tell();
	CHECK_EQ(never_succeeded(), COMMANDS);
	CHECK_EQ(nr_strange, 0);
}

/* Drain and read a file until nothing comes. Reading re-arms periodic timers. */
static void empty(int fd)
{
	struct twheel_event ev[64];
	struct twheel_op ops[64];
	struct twheel_info i;
	int n;

	do {
		while ((n = read_events(fd, ev, ARRAY_SIZE(ev))) > 0)
			;
		CHECK_EQ(n, -EAGAIN);
		while ((n = drain(fd, ops, ARRAY_SIZE(ops), 0)) > 0)
			;
		CHECK_EQ(n, 0);
		info(fd, &i);
	} while ((i.nr_armed || i.nr_ready) && !failed());
}

/* Only idle timers are left. They may be so many that no other can be added. */
static bool still_works(int fd)
{
	struct twheel_op op = { .user_data = 4711 };
	struct twheel_info i;
	struct twheel_event ev;
	int rc;

	info(fd, &i);
	rc = op_ioctl(fd, TWHEEL_IOC_ADD, &op);
	if (i.nr_timers == i.max_timers)
		return CHECK_EQ(rc, -EDQUOT) && false;
	CHECK_EQ(rc, 0);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 4711);
	CHECK_EQ(ev.handle, op.handle);
	expect_counts(fd, i.nr_timers, 0, 0);
	return true;
}

static void afterwards(void)
{
	u32 worked = 0;

	for (u32 f = 0; f < FILES; f++) {
		fcntl(files[f], F_SETFL, O_NONBLOCK);
		empty(files[f]);
		for (u32 k = 0; k < POOL; k++) {
			int rc = cancel(files[f], handles[f][k]);

			CHECK(rc == 0 || rc == -ENOENT);
		}
		worked += still_works(files[f]);
		close(files[f]);
	}
	CHECK(worked);
	files[0] = dev_open(O_NONBLOCK);
	CHECK(still_works(files[0]));
	close(files[0]);
}

static const struct test tests[] = {
	{ run, "random calls return what is documented" },
	{ afterwards, "after random calls the files still work" },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = (unsigned int)atoi(argv[1]);
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : now_ns(CLOCK_REALTIME);
	return run_tests(tests, ARRAY_SIZE(tests));
}
