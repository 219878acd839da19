// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * irqs_off: for how many instructions are interrupts off at most, during each call of /dev/twheel,
 * and while the timers that it armed expire? Prints figures as twheel_bench.c does. This loads
 * twheel_probe.ko, which measures. It measures all code that turns interrupts off: a page fault, an
 * interrupt, the scheduler. So each call is made many times, the figures name the function in which
 * interrupts were turned on again, and some rows are about the kernel itself:
 *
 *	getppid		a system call that does nothing
 *	timerfd		arming, waiting for and reading timerfds, one after the other
 *	munmap		of as much memory as a million timers take
 *
 * It tries what should be the worst: a million timers, whole batches, all timers in one tick.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#define MANY	1000000
#define CALLS	20000
#define MS	1000000ULL
#define HOUR	(3600000 * MS)
#define PARAMETERS	"/sys/module/twheel_probe/parameters/"

static struct twheel_op ops[TWHEEL_BATCH_MAX];
static struct twheel_event events[4096];
static int fd, on;

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

static void probe_off(const char *work)
{
	char longest[100], where[1000];

	must(pwrite(on, "0", 1, 0) == 1, "probe off");
	get("longest", longest, sizeof(longest));
	get("where", where, sizeof(where));
	printf("irqs-off\t1\t%s\tinstructions\tcount\t%s\n", work, longest);
	printf("# %s: in %s\n", work, where);
	fflush(stdout);
}

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
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), i;
	size_t size = MANY * 64;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	probe_on();
	for (i = 0; i < CALLS; i++)
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
	probe_off("munmap, 64 MB");
}

static void setups(void)
{
	struct twheel_setup s = { .clockid = CLOCK_MONOTONIC };
	struct twheel_info info;
	int i;

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
	probe_off("64 timers: ADD, MOD, DRAIN");
	probe_on();
	for (i = 0; i < CALLS; i++)
		must(!ioctl(fd, TWHEEL_IOC_INFO, &info), "INFO");
	probe_off("INFO");
}

/* The calls of a single operation, on a file with a million other timers. */
static void single(const char *work, unsigned long cmd, unsigned int op)
{
	int i;

	change(CALLS, op);
	probe_on();
	for (i = 0; i < CALLS; i++)
		must(ioctl(fd, cmd, &ops[i]) >= 0, work);
	probe_off(work);
}

static void singles(void)
{
	int i;

	fill(CALLS, anywhere);
	probe_on();
	for (i = 0; i < CALLS; i++)
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
	probe_off("SUBMIT of ADD");
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_MOD);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off("SUBMIT of MOD");
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_QUERY);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off("SUBMIT of QUERY");
	change(TWHEEL_BATCH_MAX, TWHEEL_OP_CANCEL);
	probe_on();
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_off("SUBMIT of CANCEL");
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

/* With a million timers: single operations, debugfs, fdinfo, DRAIN and close(). */
static void many(void)
{
	char fdinfo[64];

	add_many(MANY);
	singles();
	probe_on();
	read_file("/sys/kernel/debug/twheel/bases");
	probe_off("debugfs, a million timers");
	snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
	probe_on();
	read_file(fdinfo);
	probe_off("fdinfo, a million timers");
	memset(ops, 0, sizeof(ops));
	probe_on();
	submit(TWHEEL_IOC_DRAIN, TWHEEL_BATCH_MAX);
	probe_off("DRAIN of 65536");
	add_many(TWHEEL_BATCH_MAX);
	probe_on();
	must(!close(fd), "close");
	probe_off("close, a million timers");
	open_file();
}

static void expiry(void)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec now;
	unsigned int got = 0;
	long n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	due = now.tv_sec * 1000 * MS + now.tv_nsec + 200 * MS;
	fill(TWHEEL_BATCH_MAX, at_once);
	for (n = 0; n < TWHEEL_BATCH_MAX; n++)
		ops[n].flags = TWHEEL_F_ABS;
	submit(TWHEEL_IOC_SUBMIT, TWHEEL_BATCH_MAX);
	probe_on();
	must(poll(&p, 1, 10000) == 1, "poll");
	usleep(200000);
	probe_off("65536 expire in a tick");
	probe_on();
	while (got < TWHEEL_BATCH_MAX) {
		n = read(fd, events, sizeof(events));
		must(n > 0, "read");
		got += n / sizeof(*events);
	}
	probe_off("read of 4096");
}

int main(void)
{
	load_probe();
	kernel_alone();
	setups();
	batches();
	many();
	expiry();
	must(!close(fd), "close");
	must(!syscall(SYS_delete_module, "twheel_probe", O_NONBLOCK), "rmmod");
	return 0;
}
