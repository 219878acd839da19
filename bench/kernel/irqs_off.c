// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * irqs_off [TIMERS CALLS]: for how many instructions are interrupts off at most, during each
 * call of /dev/twheel, and while the timers that it armed expire? Prints figures as
 * twheel_bench.c does. This loads twheel_probe.ko, which measures. It measures all code that
 * turns interrupts off: a page fault, an interrupt, the scheduler. So each call is made many
 * times, the figures name the function in which interrupts were turned on again, and some rows
 * are about the kernel itself:
 *
 *	getppid		a system call that does nothing
 *	timerfd		arming, waiting for and reading timerfds, one after the other
 *	munmap		of as much memory as a million timers take
 *
 * It tries what should be the worst: a million timers, whole batches, all timers in one tick.
 *
 * With arguments it is a test instead, which prints TAP: while our modules have interrupts off,
 * that is for at most BOUND instructions. How long the kernel itself has them off depends on the
 * state of its allocators, so that is only told. And for how long a call keeps another task from
 * the CPU: the longest calls yield.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "../../selftest/tap.h"

/* 64 operations of 200 instructions, as in twheel_hold.c. */
#define BOUND	12800
/* What the probe surely sees: it interrupts every 2 501. Whole chunks take longer than that. */
#define SEEN	2000
/*
 * For how long a call may keep a task that is more important from the CPU. 64 operations take some
 * 10 000 instructions; when a file is closed, the page allocator now and then takes 600 000, with
 * interrupts off. A call that does not yield takes several times as long as this.
 */
#define STOP	100000
#define STOP_CLOSE	1000000
#define MILLION	1000000
#define MS	1000000ULL
#define HOUR	(3600000 * MS)
#define PARAMETERS	"/sys/module/twheel_probe/parameters/"

static struct twheel_op ops[TWHEEL_BATCH_MAX];
static struct twheel_event events[4096], all[TWHEEL_BATCH_MAX];
static int fd, on;
static unsigned int nr_many = MILLION, nr_calls = 20000;
static bool is_test;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void probe_on(void)
{
	must(pwrite(on, "1", 1, 0) == 1, "probe on");
}

/* Read a parameter of the probe. */
static void get(const char *name, char *text, int room)
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "r");
	must(f && fgets(text, room, f), path);
	text[strcspn(text, "\n")] = 0;
	fclose(f);
}

/* Read a parameter of the probe that is a number. */
static long number(const char *name)
{
	char text[100];

	get(name, text, sizeof(text));
	return atol(text);
}

/*
 * The rows of the test. All work is done ROUNDS times, with the same lock holds but not with the
 * same interrupts of the kernel's own: one of them may come just when our lock is released, and
 * counts as ours. So what counts is the round with the shortest time.
 */
#define ROUNDS	2
static struct row {
	char	work[100], where[1000];
	long	least, ours, longest;
} rows[40];
static unsigned int nr_rows;

static void note_row(const char *work, long least, long ours, long longest, const char *where)
{
	struct row *row = &rows[nr_rows++];

	must(nr_rows <= sizeof(rows) / sizeof(*rows), "too many rows");
	if (*row->work && row->ours <= ours)
		return;
	*row = (struct row){ .least = least, .ours = ours, .longest = longest };
	snprintf(row->work, sizeof(row->work), "%s", work);
	snprintf(row->where, sizeof(row->where), "%s", where);
}

static void print_rows(void)
{
	const struct row *row;

	for (row = rows; row < rows + nr_rows; row++) {
		if (row->least >= 0)
			ok(row->ours >= row->least && row->ours <= BOUND,
			   "%s: our lock is held for %ld instructions at most", row->work,
			   row->ours);
		diag("interrupts are off for %ld instructions, in %s", row->longest, row->where);
	}
}

/*
 * The end of work in which our modules have interrupts off for at least so many instructions. If
 * that is negative, the row is about the kernel, and has no bound.
 */
static void probe_off_least(const char *work, long least)
{
	char where[1000];
	long longest;

	must(pwrite(on, "0", 1, 0) == 1, "probe off");
	longest = number("longest");
	get("where", where, sizeof(where));
	if (is_test) {
		note_row(work, least, number("ours"), longest, where);
		return;
	}
	printf("irqs-off\t1\t%s\tinstructions\tcount\t%ld\n", work, longest);
	printf("# %s: in %s\n", work, where);
}

static void probe_off(const char *work)
{
	probe_off_least(work, 0);
}

/* What a row with many timers is called. */
static const char *with_many(const char *what)
{
	static char name[100];

	if (nr_many == MILLION)
		snprintf(name, sizeof(name), "%s, a million timers", what);
	else
		snprintf(name, sizeof(name), "%s, %u timers", what, nr_many);
	return name;
}

/* ---- another task ------------------------------------------------------------------- */

/*
 * A task that is more important than this one wants the CPU for a moment every STEP. If it comes
 * late, something has kept it from the CPU for as long.
 */
#define STEP	50000
static pthread_t other;
static bool goes_on;
static long latest;

static long ns_of(const struct timespec *t)
{
	return t->tv_sec * 1000 * MS + t->tv_nsec;
}

static void *want_cpu(void *unused)
{
	struct timespec next, now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	while (__atomic_load_n(&goes_on, __ATOMIC_RELAXED)) {
		long at = ns_of(&now) + STEP;

		next = (struct timespec){ at / (1000 * MS), at % (1000 * MS) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ns_of(&now) - at > latest)
			latest = ns_of(&now) - at;
	}
	return unused;
}

static void other_begin(void)
{
	const struct sched_param high = { .sched_priority = 50 };

	latest = 0;
	goes_on = true;
	must(!pthread_create(&other, NULL, want_cpu, NULL), "a thread");
	must(!pthread_setschedparam(other, SCHED_FIFO, &high), "SCHED_FIFO");
	usleep(1000);
}

static void other_end(const char *work, long most)
{
	__atomic_store_n(&goes_on, false, __ATOMIC_RELAXED);
	must(!pthread_join(other, NULL), "a thread");
	ok(latest > 0 && latest <= most, "%s: another task waits for %ld instructions", work,
	   latest);
}

/* ---- the work ----------------------------------------------------------------------- */

static void load_probe(void)
{
	int module = open("/twheel/twheel_probe.ko", O_RDONLY);

	must(module >= 0 && !syscall(SYS_finit_module, module, "", 0), "twheel_probe.ko");
	close(module);
	on = open(PARAMETERS "on", O_WRONLY);
	must(on >= 0, PARAMETERS "on");
}

static void open_file(void)
{
	fd = open("/dev/twheel", O_RDWR | O_NONBLOCK);
	must(fd >= 0, "/dev/twheel");
}

static void submit(unsigned long cmd, unsigned int nr)
{
	struct twheel_batch b = {
		.ops = (unsigned long)ops, .nr = nr, .op_size = sizeof(*ops),
	};

	must(!ioctl(fd, cmd, &b) && b.nr_done == nr && !b.nr_failed, "a batch");
}

/* Arm @nr timers, timer i for @delay(i) ns from now. */
static void fill(unsigned int nr, unsigned long long (*delay)(unsigned int i))
{
	unsigned int i;

	memset(ops, 0, sizeof(ops));
	for (i = 0; i < nr; i++) {
		ops[i].op = TWHEEL_OP_ADD;
		ops[i].expires_ns = delay(i);
	}
}

/* Delays for timer @i that are spread over the levels of the wheel. */
static unsigned long long anywhere(unsigned int i)
{
	return (i % 977 + 1) * (i % 7 ? HOUR / 100 : 10 * HOUR) + i * 4099 % 3600000 * MS;
}

static unsigned long long hour(unsigned int i)
{
	return HOUR + i * 4099 % 3600000 * MS;
}

/* The deadline of all timers, a time of the clock: so all are due in the same tick. */
static unsigned long long due;
static unsigned long long at_once(unsigned int i)
{
	(void)i;
	return due;
}

static void change(unsigned int nr, unsigned int op)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		ops[i].op = op;
		ops[i].user_data = 0;
		ops[i].interval_ns = 0;
		ops[i].res = 0;
		ops[i].expires_ns = op == TWHEEL_OP_MOD ? anywhere(i + 1) : 0;
	}
}

static void kernel_alone(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = MS };
	unsigned long long n;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	unsigned int i;
	size_t size = 64 * (size_t)MILLION;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	probe_on();
	for (i = 0; i < nr_calls; i++)
		syscall(SYS_getppid);
	probe_off("getppid");
	probe_on();
	for (i = 0; i < 100; i++) {
		must(!timerfd_settime(timer, 0, &soon, NULL), "timerfd_settime");
		must(read(timer, &n, sizeof(n)) == sizeof(n), "timerfd");
	}
	probe_off("timerfd");
	close(timer);
	must(memory != MAP_FAILED && !madvise(memory, size, MADV_NOHUGEPAGE), "mmap");
	memset(memory, 1, size);
	probe_on();
	must(!munmap(memory, size), "munmap");
	probe_off_least("munmap, 64 MB", -1);
	must(!is_test || number("longest") > BOUND, "the probe sees what the page allocator does");
}

static void setups(void)
{
	struct twheel_setup s = { .clockid = CLOCK_MONOTONIC };
	struct twheel_info info;
	unsigned int i;

	probe_on();
	for (i = 0; i < 1000; i++) {
		open_file();
		must(!ioctl(fd, TWHEEL_IOC_SETUP, &s), "SETUP");
		close(fd);
	}
	probe_off("open, SETUP, close");
	probe_on();
	for (i = 0; i < 200; i++) {
		open_file();
		fill(1, hour);
		must(!ioctl(fd, TWHEEL_IOC_ADD, &ops[0]), "ADD");
		close(fd);
	}
	probe_off("open, ADD, close");
	probe_on();
	for (i = 0; i < 200; i++) {
		open_file();
		fill(65, hour);
		submit(TWHEEL_IOC_SUBMIT, 65);
		close(fd);
	}
	probe_off("open, 65 ADDs, which make it grow, close");
	open_file();
	probe_on();
	for (i = 0; i < 200; i++) {
		fill(64, hour);
		submit(TWHEEL_IOC_SUBMIT, 64);
		change(64, TWHEEL_OP_MOD);
		submit(TWHEEL_IOC_SUBMIT, 64);
		memset(ops, 0, sizeof(ops));
		submit(TWHEEL_IOC_DRAIN, 64);
	}
	probe_off_least("64 timers: ADD, MOD, DRAIN", SEEN);
	probe_on();
	for (i = 0; i < nr_calls; i++)
		must(!ioctl(fd, TWHEEL_IOC_INFO, &info), "INFO");
	probe_off("INFO");
}

/* The calls of a single operation, on a file with many other timers. */
static void single(const char *work, unsigned long cmd, unsigned int op)
{
	unsigned int i;

	change(nr_calls, op);
	probe_on();
	for (i = 0; i < nr_calls; i++)
		must(ioctl(fd, cmd, &ops[i]) >= 0, work);
	probe_off(work);
}

static void singles(void)
{
	unsigned int i;

	fill(nr_calls, anywhere);
	probe_on();
	for (i = 0; i < nr_calls; i++)
		must(!ioctl(fd, TWHEEL_IOC_ADD, &ops[i]), "ADD");
	probe_off("ADD");
	single("MOD", TWHEEL_IOC_MOD, TWHEEL_OP_MOD);
	single("QUERY", TWHEEL_IOC_QUERY, TWHEEL_OP_QUERY);
	single("CANCEL", TWHEEL_IOC_CANCEL, TWHEEL_OP_CANCEL);
}

static void batches(void)
{
	fill(TWHEEL_BATCH_MAX, anywhere);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off_least("SUBMIT of ADD", SEEN);
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_MOD);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off_least("SUBMIT of MOD", SEEN);
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_QUERY);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off_least("SUBMIT of QUERY", SEEN);
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_CANCEL);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off_least("SUBMIT of CANCEL", SEEN);
}

static void add_many(unsigned int nr)
{
	for (; nr; nr -= nr < TWHEEL_BATCH_MAX ? nr : TWHEEL_BATCH_MAX) {
		unsigned int n = nr < TWHEEL_BATCH_MAX ? nr : TWHEEL_BATCH_MAX;

		fill(n, hour);
		submit(TWHEEL_IOC_SUBMIT, n);
	}
}

static void read_file(const char *path)
{
	static char text[1 << 16];
	int f = open(path, O_RDONLY), i;

	must(f >= 0, path);
	for (i = 0; i < 200; i++) {
		must(!lseek(f, 0, SEEK_SET), path);
		while (read(f, text, sizeof(text)) > 0)
			;
	}
	close(f);
}

/* With many timers: single operations, debugfs, fdinfo, DRAIN and close(). */
static void many(void)
{
	char fdinfo[64];

	add_many(nr_many);
	singles();
	probe_on();
	read_file("/sys/kernel/debug/twheel/bases");
	probe_off(with_many("debugfs"));
	snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
	probe_on();
	read_file(fdinfo);
	probe_off(with_many("fdinfo"));
	memset(ops, 0, sizeof(ops));
	probe_on();
	submit(TWHEEL_IOC_DRAIN, TWHEEL_BATCH_MAX);
	probe_off_least("DRAIN of 65536", SEEN);
	add_many(TWHEEL_BATCH_MAX);
	probe_on();
	must(!close(fd), "close");
	/* No lock is held: the page allocator has interrupts off, for each of many pages. */
	probe_off_least(with_many("close"), -1);
	open_file();
}

/* Arm a batch of timers that are due at @due. */
static void add_at_once(unsigned int flags)
{
	unsigned int i;

	fill(TWHEEL_BATCH_MAX, at_once);
	for (i = 0; i < TWHEEL_BATCH_MAX; i++)
		ops[i].flags = TWHEEL_F_ABS | flags;
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
}

static unsigned long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return ns_of(&now);
}

/* Wait until all timers of a batch have expired. */
static void await(void)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	must(poll(&p, 1, 10000) == 1, "poll");
	usleep(200000);
}

/* Read the events of a batch. */
static void read_all(void)
{
	unsigned int got = 0;

	while (got < TWHEEL_BATCH_MAX) {
		long n = read(fd, events, sizeof(events));

		must(n > 0, "read");
		got += n / sizeof(*events);
	}
}

static void expiry(void)
{
	due = now_ns(CLOCK_MONOTONIC) + 200 * MS;
	add_at_once(0);
	probe_on();
	await();
	probe_off_least("65536 expire in a tick", SEEN);
	probe_on();
	read_all();
	probe_off("read of 4096");
}

/* Set the clock. All timers of the file ask to be told. */
static void set_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	must(!clock_settime(CLOCK_REALTIME, &now), "clock_settime");
}

static void open_wall_clock(void)
{
	struct twheel_setup s = { .clockid = CLOCK_REALTIME };

	must(!close(fd), "close");
	open_file();
	must(!ioctl(fd, TWHEEL_IOC_SETUP, &s), "SETUP");
}

/* The events are not plain: each tells of the clock. */
static void was_set(void)
{
	open_wall_clock();
	due = now_ns(CLOCK_REALTIME) + HOUR;
	add_at_once(TWHEEL_F_CANCEL_ON_SET);
	probe_on();
	set_clock();
	await();
	probe_off_least("the clock is set, which 65536 timers are told", SEEN);
	probe_on();
	read_all();
	probe_off("read of 4096 that tell of it");
}

/* The longest calls, beside another task. */
static void beside_another(void)
{
	open_wall_clock();
	due = now_ns(CLOCK_REALTIME) + HOUR;
	fill(TWHEEL_BATCH_MAX, hour);
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	/* MOD, since an ADD that allocates memory yields there. */
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_MOD);
	other_begin();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	other_end("SUBMIT of 65536", STOP);
	memset(ops, 0, sizeof(ops));
	other_begin();
	submit(TWHEEL_IOC_DRAIN, TWHEEL_BATCH_MAX);
	other_end("DRAIN of 65536", STOP);
	add_at_once(TWHEEL_F_CANCEL_ON_SET);
	other_begin();
	set_clock();
	await();
	other_end("the clock is set, which 65536 timers are told", STOP);
	other_begin();
	must(read(fd, all, sizeof(all)) == sizeof(all), "read");
	other_end("read of 65536 that tell of it", STOP);
	due = now_ns(CLOCK_REALTIME) + 200 * MS;
	add_at_once(0);
	await();
	other_begin();
	must(read(fd, all, sizeof(all)) == sizeof(all), "read");
	other_end("read of 65536", STOP);
	add_many(nr_many);
	other_begin();
	must(!close(fd), "close");
	other_end(with_many("close"), STOP_CLOSE);
	open_file();
}

int main(int argc, char **argv)
{
	/* What is printed waits until the end: the serial line has interrupts off, too. */
	static char text[1 << 16];
	int i;

	if (argc == 3) {
		is_test = true;
		nr_many = atol(argv[1]);
		nr_calls = atol(argv[2]);
		must(nr_many >= TWHEEL_BATCH_MAX && nr_calls <= TWHEEL_BATCH_MAX, argv[1]);
	}
	setvbuf(stdout, text, _IOFBF, sizeof(text));
	load_probe();
	for (i = 0; i < (is_test ? ROUNDS : 1); i++) {
		nr_rows = 0;
		kernel_alone();
		setups();
		batches();
		many();
		expiry();
		was_set();
		must(!close(fd), "close");
	}
	if (is_test) {
		print_rows();
		open_file();
		beside_another();
		must(!close(fd), "close");
	}
	must(!syscall(SYS_delete_module, "twheel_probe", O_NONBLOCK), "rmmod");
	if (!is_test)
		return 0;
	tap_planned = tap_run;
	printf("1..%u\n", tap_planned);
	return done();
}
