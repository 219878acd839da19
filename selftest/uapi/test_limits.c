// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What /dev/twheel lets a user, a memory cgroup and a container have.
 *
 *	test_limits [USERS]
 *
 * USERS is how many users are compared with one, to see what a user is charged.
 *
 * If a test needs another uid, another cgroup or another root, a child does the test. The child
 * prints what it finds wrong, and its exit status tells the parent whether it found anything.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define ALICE	1001
#define BOB	1002
#define BLOCK	64	/* timers are counted in blocks of this size */
#define BATCH	256
#define CGROUP	"twheel"

static struct twheel_op ops[BATCH];

/*
 * How far parent and child have come. In shared memory: a pipe would need memory, of which there
 * may be none.
 */
static volatile int *stage;

static void reach(int n)
{
	*stage = n;
}

static bool wait_stage(int n)
{
	for (u32 ms = 0; ms < 2 * WAIT_MS && *stage < n; ms += 5)
		sleep_ms(5);
	return CHECK(*stage >= n);
}

static pid_t child(void (*fn)(const void *), const void *arg)
{
	pid_t pid = fork();

	if (!pid) {
		fn(arg);
		fflush(stdout);
		_exit(failed());
	}
	CHECK(pid > 0);
	return pid;
}

static void wait_for(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void in_child(void (*fn)(const void *), const void *arg)
{
	wait_for(child(fn, arg));
}

/* Add a timer that is due in an hour. Returns 0 or the error. */
static int try_add(int fd)
{
	struct twheel_op op = { .expires_ns = HOUR };

	return ioctl(fd, TWHEEL_IOC_ADD, &op) ? -errno : 0;
}

/* Add up to @most timers. Returns how many there are then. An add may only fail with @err. */
static u32 fill(int fd, u32 most, int err)
{
	u32 nr = 0;
	int rc = 0;

	while (nr < most && !rc) {
		rc = try_add(fd);
		nr += !rc;
	}
	CHECK(!rc || rc == err);
	return nr;
}

/* ---- users ------------------------------------------------------------------- */

/* Two files of one user share the limit; a closed file gives back all that it had. */
static void share_limit(const void *limit)
{
	const u32 most = *(const u32 *)limit;
	int a = dev_open(0), b;
	u32 nr;

	become(ALICE);
	b = dev_open(0);
	close(a);			/* another user has opened this file */
	a = dev_open(0);
	nr = fill(a, most / 2, 0);
	CHECK_EQ(nr, most / 2);
	nr += fill(b, most, -EDQUOT);
	diag("of %u timers %u could be had", most, nr);
	CHECK(nr <= most + BLOCK && nr + BLOCK >= most);
	CHECK_EQ(try_add(b), -EDQUOT);
	info(b, &(struct twheel_info){ 0 });
	close(a);
	nr = fill(b, most / 2 - 2 * BLOCK, 0);
	CHECK_EQ(nr, most / 2 - 2 * BLOCK);
	close(b);
	b = dev_open(0);
	nr = fill(b, 2 * most, -EDQUOT);
	CHECK(nr <= most + BLOCK && nr >= most);
	close(b);
}

static void user_limit(void)
{
	const u32 limits[] = { 1000, 10 * BLOCK, 10 * BLOCK + 1 };
	u32 was;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		param_set("max_user_timers", limits[i], i ? NULL : &was);
		in_child(share_limit, &limits[i]);
	}
	param_set("max_user_timers", was, NULL);
}

static void others_go_on(const void *unused)
{
	int fd = dev_open(0);

	(void)unused;
	become(BOB);
	CHECK_EQ(fill(fd, 10, -EDQUOT), 10);	/* they count as root's, whoever uses the file */
	close(fd);
	fd = dev_open(0);
	CHECK_EQ(fill(fd, 500, -EDQUOT), 500);
	close(fd);
}

static void use_it_up(const void *unused)
{
	int fd;

	(void)unused;
	become(ALICE);
	fd = dev_open(0);
	CHECK(fill(fd, 1000, -EDQUOT) <= 500 + BLOCK);
	reach(1);
	wait_stage(2);
	CHECK_EQ(try_add(fd), -EDQUOT);
}

static void users_apart(void)
{
	u32 was;
	pid_t pid;

	param_set("max_user_timers", 500, &was);
	reach(0);
	pid = child(use_it_up, NULL);
	if (wait_stage(1))
		in_child(others_go_on, NULL);
	reach(2);
	wait_for(pid);
	param_set("max_user_timers", was, NULL);
}

/* The limit is changed while a file has timers. */
static void limit_changes(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	u32 was;
	u64 h;

	param_set("max_user_timers", 0, &was);
	CHECK_EQ(fill(fd, 1000, 0), 1000);
	h = add(fd, 20 * MS, 7);
	param_set("max_user_timers", 1, NULL);
	/* The timers that exist stay, and free slots can be used. */
	while (!try_add(fd))
		;
	CHECK_EQ(try_add(fd), -EDQUOT);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.handle, h);
	CHECK_EQ(try_add(fd), 0);
	CHECK_EQ(try_add(fd), -EDQUOT);
	param_set("max_user_timers", 0, NULL);
	CHECK_EQ(fill(fd, 1000, 0), 1000);
	close(fd);
	param_set("max_user_timers", was, NULL);
}

/* The limit is reached in a batch: each operation has a result, and no timer is lost. */
static void batch_over_limit(void)
{
	int fd = dev_open(0);
	u32 was, bad, refused = 0;

	param_set("max_user_timers", 2 * BLOCK, &was);
	for (u32 i = 0; i < BATCH; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	CHECK_EQ(submit(fd, ops, BATCH, NULL, &bad), 0);
	for (u32 i = 0; i < BATCH; i++)
		refused += ops[i].res == -EDQUOT;
	CHECK_EQ(refused, bad);
	CHECK(bad >= BATCH - 3 * BLOCK && bad <= BATCH - 2 * BLOCK);
	expect_counts(fd, BATCH - bad, BATCH - bad, 0);
	close(fd);
	param_set("max_user_timers", was, NULL);
}

/* Open up to @most files. Returns how many there are then. An open() may only fail with EDQUOT. */
static u32 open_files(int *fds, u32 most)
{
	for (u32 n = 0; n < most; n++) {
		fds[n] = open("/dev/twheel", O_RDWR | O_CLOEXEC);
		if (fds[n] < 0) {
			CHECK_EQ(errno, EDQUOT);
			return n;
		}
	}
	return most;
}

#define FILES	20

/* Another descriptor is not another file, and a file counts until its last descriptor is closed. */
static void share_files(const void *unused)
{
	int fds[FILES + 1], copy;

	(void)unused;
	become(ALICE);
	CHECK_EQ(open_files(fds, FILES + 1), FILES);
	copy = dup(fds[3]);
	CHECK(copy >= 0);
	close(fds[3]);
	CHECK_EQ(open_files(&fds[3], 1), 0);
	CHECK_EQ(try_add(copy), 0);
	close(copy);
	CHECK_EQ(open_files(&fds[3], 2), 1);
	reach(1);
	wait_stage(2);
}

static void other_files(const void *unused)
{
	int fds[FILES + 1];

	(void)unused;
	become(BOB);
	CHECK_EQ(open_files(fds, FILES + 1), FILES);
}

static void limit_files(void)
{
	int fds[FILES + 1];
	u32 was;
	pid_t pid;

	param_set("max_user_files", FILES, &was);
	CHECK_EQ(was, 1024);
	reach(0);
	pid = child(share_files, NULL);
	if (wait_stage(1))
		in_child(other_files, NULL);
	param_set("max_user_files", 0, NULL);
	CHECK_EQ(open_files(fds, FILES + 1), FILES + 1);
	param_set("max_user_files", 1, NULL);		/* fewer than there are */
	CHECK_EQ(try_add(fds[FILES]), 0);
	close(fds[0]);
	CHECK_EQ(open_files(fds, 1), 0);
	for (u32 n = 1; n <= FILES; n++)
		close(fds[n]);
	CHECK_EQ(open_files(fds, 2), 1);
	close(fds[0]);
	param_set("max_user_files", was, NULL);
	reach(2);
	wait_for(pid);
}

/* ---- the administrator's other limits -------------------------------------------- */

static void file_limit(void)
{
	struct twheel_setup s = { .clockid = CLOCK_MONOTONIC, .max_timers = 101 };
	struct twheel_info i;
	u32 was;
	int fd;

	param_set("max_timers", 100, &was);
	fd = dev_open(0);
	param_set("max_timers", was, NULL);
	CHECK_EQ(setup(fd, &s), -EINVAL);
	info(fd, &i);
	CHECK_EQ(i.max_timers, 100);
	CHECK_EQ(fill(fd, 200, -EDQUOT), 100);
	close(fd);
}

/*
 * The greatest value of the parameter: fewer timers than an index can count, in a file that works.
 */
static void greatest_limit(void)
{
	struct twheel_setup s = { .clockid = CLOCK_MONOTONIC, .max_timers = ~0U };
	struct twheel_info i;
	u32 was;
	int fd;

	param_set("max_timers", ~0U, &was);
	fd = dev_open(0);
	param_set("max_timers", was, NULL);
	CHECK_EQ(setup(fd, &s), -EINVAL);
	info(fd, &i);
	diag("of %u timers a file may hold %u", ~0U, i.max_timers);
	CHECK(i.max_timers <= ~0U - BLOCK && i.max_timers > ~0U - 4 * BLOCK);
	s.max_timers = i.max_timers;
	CHECK_EQ(setup(fd, &s), 0);
	CHECK_EQ(fill(fd, 2 * BLOCK, 0), 2 * BLOCK);
	expect_counts(fd, 2 * BLOCK, 2 * BLOCK, 0);
	close(fd);
}

/* No tick, and so no period, is shorter than the administrator allows. */
static void tick_limit(void)
{
	struct twheel_setup s = { .clockid = CLOCK_MONOTONIC };
	struct twheel_op op = { .interval_ns = 5 * MS - 1 };
	struct twheel_info i;
	u32 was;
	int fd;

	param_set("min_tick_us", 5000, &was);
	fd = dev_open(0);
	info(fd, &i);
	CHECK_EQ(i.tick_ns, 5 * MS);
	CHECK_EQ(i.min_tick_ns, 5 * MS);
	s.tick_ns = 5 * MS - 1;
	CHECK_EQ(setup(fd, &s), -EINVAL);
	s.tick_ns = 0;			/* the default must not be shorter either */
	CHECK_EQ(setup(fd, &s), 0);
	info(fd, &i);
	CHECK_EQ(i.tick_ns, 5 * MS);
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), -EINVAL);
	close(fd);
	/* A value that makes no sense is brought into the possible range. */
	param_set("min_tick_us", 4000000000U, NULL);
	fd = dev_open(0);
	info(fd, &i);
	CHECK_EQ(i.tick_ns, SEC);
	close(fd);
	param_set("min_tick_us", 0, NULL);
	fd = dev_open(0);
	info(fd, &i);
	CHECK_EQ(i.min_tick_ns, 100000);
	close(fd);
	param_set("min_tick_us", was, NULL);
}

/* ---- memory cgroups -------------------------------------------------------------- */

/* Timers that fire soon, whose events must come although there is no memory left. */
#define SHORT	100

/* Add timers until there is no memory. Returns how many there are. *@first becomes one of them. */
static u32 fill_memory(int fd, u64 *first)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .op_size = sizeof(ops[0]) };
	u32 nr = 0;

	do {
		for (u32 i = 0; i < BATCH; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .user_data = nr + i,
				.expires_ns = nr + i < SHORT ? MS : HOUR };
		b.nr = BATCH;
		b.nr_done = 0;
		b.nr_failed = 0;
		CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &b) && b.nr_done == BATCH);
		for (u32 i = 0; i < BATCH; i++)
			CHECK(!ops[i].res || ops[i].res == -ENOMEM);
		if (!nr)
			*first = ops[SHORT].handle;
		nr += BATCH - b.nr_failed;
	} while (!b.nr_failed && nr < 1000000 && !failed());
	return nr;
}

/* The most bytes of a file with its first 64 timers. */
#define SMALL	(12 * 1024)

/* Add @nr timers. */
static void add_more(int fd, unsigned int nr)
{
	while (nr--)
		CHECK_EQ(try_add(fd), 0);
}

/*
 * How many pages are given back for another file after memory is used up. They must be enough for
 * the kernel's part of open(), which would otherwise run the OOM killer, and too few for the first
 * timer, which takes 3.
 */
#define SPARE	2

static size_t spare_bytes(void)
{
	return SPARE * (size_t)sysconf(_SC_PAGESIZE);
}

static void *take_spare(void)
{
	void *p = mmap(NULL, spare_bytes(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap");
	return p;
}

/*
 * Open a file with what @spare gives back, and try to add a timer to it. What is then left goes to
 * @other: it may be more than the pages of @spare, because the kernel may free a little later what
 * a file gave back as it grew. Returns how many timers that are.
 */
static u32 open_without_memory(void *spare, int other)
{
	const struct twheel_setup s = { .clockid = CLOCK_BOOTTIME };
	struct twheel_batch batch = { .ops = (uintptr_t)ops, .nr = 1, .op_size = sizeof(ops[0]) };
	struct twheel_info i;
	u64 small;
	int fd, rc;
	u32 nr;

	CHECK(!munmap(spare, spare_bytes()));
	fd = dev_open(0);
	nr = fill(other, 1000000, -ENOMEM);
	info(fd, &i);
	small = i.mem_bytes;
	CHECK_EQ(try_add(fd), -ENOMEM);
	ops[0] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	/*
	 * The memory that open() has left may be too little for the batch itself, or for its
	 * operation.
	 */
	rc = ioctl(fd, TWHEEL_IOC_SUBMIT, &batch);
	CHECK_EQ(rc ? -errno : ops[0].res, -ENOMEM);
	CHECK_EQ(setup(fd, &s), 0);	/* no timer was ever added */
	info(fd, &i);
	CHECK_EQ(i.mem_bytes, small);
	close(fd);
	return nr;
}

/* Fill a file whose first 64 timers need no more memory. The next timer would need buckets. */
static void grow_without_memory(int fd)
{
	struct twheel_info i;

	CHECK_EQ(try_add(fd), -ENOMEM);
	info(fd, &i);
	CHECK_EQ(i.nr_timers, 64);
	CHECK_EQ(i.nr_armed, 64);
	CHECK(i.mem_bytes <= SMALL);
}

/* In the cgroup. Once its memory is used up, this code may allocate nothing either. */
static void use_up_memory(const void *unused)
{
	static struct twheel_event ev[SHORT + 1];
	static struct twheel_op op;
	struct twheel_info i;
	int fd, full, got = 0;
	void *spare;
	u32 nr;

	(void)unused;
	pin(0);		/* each CPU keeps what is freed there */
	cgroup_join(CGROUP);
	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	spare = take_spare();
	full = dev_open(0);
	add_more(full, 64);
	fd = dev_open(O_NONBLOCK);
	nr = fill_memory(fd, &op.handle);
	CHECK(nr > 100000 && nr < 300000);
	CHECK_EQ(try_add(fd), -ENOMEM);
	info(fd, &i);
	CHECK_EQ(i.nr_timers, nr);
	while (got < SHORT && readable(fd, WAIT_MS)) {
		ssize_t n = read(fd, ev + got, sizeof(ev[0]) * (size_t)(SHORT + 1 - got));

		got += n > 0 ? n / (ssize_t)sizeof(ev[0]) : 0;
	}
	CHECK_EQ(got, SHORT);
	for (u32 k = 0; k < SHORT; k++)		/* their slots can be used again */
		CHECK_EQ(try_add(fd), 0);
	CHECK_EQ(try_add(fd), -ENOMEM);
	CHECK_EQ(ioctl(fd, TWHEEL_IOC_QUERY, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(mod(fd, op.handle, HOUR, 0), 1);
	CHECK_EQ(cancel(fd, op.handle), 1);
	grow_without_memory(full);
	nr += open_without_memory(spare, fd);
	reach(1);
	wait_stage(2);
	info(fd, &i);
	CHECK_EQ(i.nr_timers, nr - 1);
	close(full);
	close(fd);
}

static void memory_is_up(void)
{
	int fd = dev_open(0);
	pid_t pid;

	if (!CHECK(cgroup_make(CGROUP)))
		return;
	cgroup_set(CGROUP, "memory.max", 16 << 20);
	reach(0);
	pid = child(use_up_memory, NULL);
	wait_stage(1);
	diag("cgroup of %llu KiB holds %llu KiB, refused %llu times",
	     cgroup_get(CGROUP, "memory.max", NULL) >> 10,
	     cgroup_get(CGROUP, "memory.current", NULL) >> 10,
	     cgroup_get(CGROUP, "memory.events", "max"));
	/* Processes outside the cgroup are not affected. */
	CHECK_EQ(fill(fd, 20000, 0), 20000);
	expect_counts(fd, 20000, 20000, 0);
	reach(2);
	wait_for(pid);
	CHECK_EQ(cgroup_get(CGROUP, "memory.events", "oom_kill"), 0);
	/* The kernel may free what a process had a little later. */
	for (u32 ms = 0; ms < WAIT_MS &&
	     cgroup_get(CGROUP, "memory.current", NULL) >= 2 << 20; ms++)
		sleep_ms(1);
	CHECK(cgroup_get(CGROUP, "memory.current", NULL) < 2 << 20);
	cgroup_remove(CGROUP);
	close(fd);
}

#define MANY	120

/*
 * How much is charged to the cgroup. Each CPU keeps up to 64 pages in store that are charged
 * already. It gives them back when a limit is set that is below the usage. Everything else stays,
 * because it can neither be reclaimed nor swapped. A CPU on which such work is queued already is
 * left out, and does it when that work has its turn: so look until two looks see the same.
 */
static u64 charged(void)
{
	u64 bytes = 0, last;
	int looks = 0;

	do {
		if (looks)
			sleep_ms(20);
		last = bytes;
		cgroup_set(CGROUP, "memory.high", 0);
		bytes = cgroup_get(CGROUP, "memory.current", NULL);
		cgroup_set(CGROUP, "memory.high", 1ULL << 40);
	} while (looks++ < 100 && bytes != last);
	return bytes;
}

/*
 * What each of MANY files says it takes must be what the cgroup was charged. Returns the first
 * file's.
 */
static u64 bytes_each(int fd, u64 before)
{
	u64 each = (charged() - before) / MANY;
	struct twheel_info i;

	info(fd, &i);
	diag("%llu bytes charged for each file, which says %llu", each, i.mem_bytes);
	CHECK(each >= i.mem_bytes);
	CHECK(each < i.mem_bytes + 2048);	/* the kernel's struct file and its like */
	return i.mem_bytes;
}

/*
 * All that a file says it takes is charged: little before its first timer, SMALL with the first 64,
 * and buckets with one more. The last memory is taken by files whose tables for 2^32 timers are 1
 * MiB each: so it is such a table for which there is no memory, and not something of the kernel's,
 * for which it would kill.
 */
static void open_many(const void *unused)
{
	int fds[MANY], n, rc = 0;
	u64 before;

	(void)unused;
	pin(0);		/* each CPU keeps a store of charged pages */
	cgroup_join(CGROUP);
	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	before = charged();
	for (n = 0; n < MANY; n++)
		fds[n] = dev_open(0);
	CHECK(bytes_each(fds[0], before) < 1024);
	for (n = 0; n < MANY; n++)
		CHECK_EQ(try_add(fds[n]), 0);
	CHECK(bytes_each(fds[0], before) <= SMALL);
	for (n = 0; n < MANY; n++)
		add_more(fds[n], 63);
	CHECK(bytes_each(fds[0], before) <= SMALL);
	for (n = 0; n < MANY; n++)
		CHECK_EQ(try_add(fds[n]), 0);
	CHECK(bytes_each(fds[0], before) > 32768);
	param_set("max_timers", ~0U, NULL);
	for (n = 0; !rc && n < 100; n++)
		rc = try_add(dev_open(0));
	CHECK_EQ(rc, -ENOMEM);
	diag("and then %d files of 1 MiB", n - 1);
	CHECK(n > 3 && n < 16);
}

static void files_are_charged(void)
{
	u32 was;

	if (!CHECK(cgroup_make(CGROUP)))
		return;
	param_set("max_timers", 1 << 20, &was);
	cgroup_set(CGROUP, "memory.max", 16 << 20);
	in_child(open_many, NULL);
	param_set("max_timers", was, NULL);
	CHECK_EQ(cgroup_get(CGROUP, "memory.events", "oom_kill"), 0);
	cgroup_remove(CGROUP);
}

#define USERS	32
#define USERS_MAX	500
#define EVE	30000	/* the first of so many users */

/* How many users are compared with one. */
static uid_t users = USERS;

/**
 * struct charge - how many bytes the cgroup is charged
 * @all:	in all
 * @slab:	of these for objects of the allocator
 * @percpu:	and for variables of the CPUs
 */
struct charge {
	u64	all, slab, percpu;
};

/*
 * The kernel adds up what is in memory.stat only now and then, but at once if a cgroup has had many
 * changes since. So make so many: all memory is locked, and so mmap() charges each page.
 */
static struct charge charge_now(void)
{
	const size_t size = 8 << 20;
	const u64 all = charged();
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED && !munmap(pages, size));
	return (struct charge){ all, cgroup_get(CGROUP, "memory.stat", "slab"),
				cgroup_get(CGROUP, "memory.stat", "percpu") };
}

/*
 * Open a file for each of @users: the first one as user @first, and each further one as the next
 * user if @others. All else that the kernel keeps about whoever opens a file is new each time, also
 * if it is the same user. *@now was charged before that, and becomes what is charged then. Returns
 * what each file was charged.
 */
static struct charge open_as(uid_t first, bool others, struct charge *now)
{
	const struct charge before = *now;

	for (uid_t n = 0; n < users; n++) {
		CHECK_EQ(setresuid(others ? first + n : first, 0, 0), 0);
		dev_open(0);
		CHECK_EQ(setresuid(0, 0, 0), 0);
	}
	*now = charge_now();
	return (struct charge){ (now->all - before.all) / users, (now->slab - before.slab) / users,
				(now->percpu - before.percpu) / users };
}

/*
 * A user is charged to the cgroup: two objects of the allocator, of 48 and 8 bytes, and some 200
 * bytes for each CPU. For the objects the allocator takes 72, and the kernel 8 for each to note
 * whose it is. That is the least, to a few bytes. Its notes about the bytes of the CPUs take as
 * much as those of two CPUs.
 *
 * The counts for the CPUs are exact. The others may be off by some pages, so that the objects only
 * show if there are many users. Nor is the area for the CPUs that the kernel begins with charged to
 * anybody, and a few users may fit into it. But what the allocator of the CPUs' memory has got for
 * many users it keeps, and so many are only in the machine that allows for that.
 */
static void open_as_many(const void *unused)
{
	const u64 cpus = (u64)sysconf(_SC_NPROCESSORS_CONF);
	const struct rlimit many = { 2 * USERS_MAX + 100, 2 * USERS_MAX + 100 };
	struct charge now, one, each;

	(void)unused;
	pin(0);		/* each CPU keeps a store of charged pages */
	cgroup_join(CGROUP);
	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
	CHECK_EQ(setresuid(ALICE, 0, 0), 0);
	dev_open(0);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	now = charge_now();
	one = open_as(ALICE, false, &now);
	each = open_as(EVE, true, &now);
	diag("a file of one user: %llu bytes, of these %llu of slab and %llu of the CPUs",
	     one.all, one.slab, one.percpu);
	diag("one of another user: %llu bytes, of these %llu of slab and %llu of the CPUs",
	     each.all, each.slab, each.percpu);
	CHECK_EQ(one.percpu, 0);
	CHECK(each.percpu <= 250 * cpus + 1000);
	if (users < USERS_MAX)
		return;
	CHECK(each.percpu >= 150 * cpus);
	CHECK(each.slab >= one.slab + 80 && each.slab <= one.slab + 512);
	CHECK(each.all >= one.all + 150 * cpus + 80);
}

static void users_are_charged(void)
{
	if (!CHECK(cgroup_make(CGROUP)))
		return;
	in_child(open_as_many, NULL);
	cgroup_remove(CGROUP);
}

/* ---- containers ------------------------------------------------------------------ */

#define ROOT	"/tmp/root"

/* Make a root directory with only the device in it. */
static void make_root(mode_t mode, gid_t group)
{
	struct stat dev;

	CHECK(!stat("/dev/twheel", &dev));
	CHECK(!mkdir(ROOT, 0755));
	CHECK(!mknod(ROOT "/twheel", S_IFCHR | mode, dev.st_rdev));
	CHECK(!chmod(ROOT "/twheel", mode));
	CHECK(!chown(ROOT "/twheel", 0, group));
}

static void remove_root(void)
{
	CHECK(!unlink(ROOT "/twheel"));
	CHECK(!rmdir(ROOT));
}

/* Enter new namespaces, another root directory and another uid, without capabilities. */
static void contain(void)
{
	CHECK(!unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS));
	CHECK(!chroot(ROOT) && !chdir("/"));
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	become(ALICE);
}

static void use_contained(const void *unused)
{
	struct twheel_event ev;
	int fd;
	u64 h;

	(void)unused;
	contain();
	fd = open("/twheel", O_RDWR | O_NONBLOCK);
	if (!CHECK(fd >= 0))
		return;
	h = add(fd, 10 * MS, 5);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.handle, h);
	add(fd, HOUR, 6);
	CHECK_EQ(drain(fd, ops, 2, 0), 1);
	close(fd);
}

static void use_user_namespace(const void *unused)
{
	CHECK(!unshare(CLONE_NEWUSER));
	(void)unused;
	int fd = open("/dev/twheel", O_RDWR);

	CHECK(fd >= 0 && !try_add(fd));
}

static void open_contained(const void *want)
{
	int fd;

	contain();
	fd = open("/twheel", O_RDWR);
	CHECK_EQ(fd < 0 ? errno : 0, *(const int *)want);
}

static void container(void)
{
	struct stat dev;

	CHECK(!stat("/dev/twheel", &dev));
	diag("the node's mode is %o", dev.st_mode & 0777);
	make_root(dev.st_mode & 0777, 0);
	in_child(use_contained, NULL);
	remove_root();
	in_child(use_user_namespace, NULL);
}

/* With the udev rules only members of the group may open the device. */
static void group_only(void)
{
	static const int allowed, refused = EACCES;

	make_root(0660, ALICE);
	in_child(open_contained, &allowed);
	remove_root();
	make_root(0660, BOB);
	in_child(open_contained, &refused);
	remove_root();
}

static const struct test tests[] = {
	{ user_limit, "max_user_timers: EDQUOT, over all files of the user" },
	{ users_apart, "max_user_timers: timers count for the user who opened the file" },
	{ limit_changes, "max_user_timers is changed while a file is in use" },
	{ batch_over_limit, "max_user_timers is reached in a batch" },
	{ limit_files, "max_user_files: EDQUOT, over all that the user has open" },
	{ file_limit, "max_timers" },
	{ greatest_limit, "max_timers of 4294967295" },
	{ tick_limit, "min_tick_us: ticks and periods" },
	{ memory_is_up, "a cgroup of 16 MiB: ENOMEM, and all else goes on" },
	{ files_are_charged, "files in a cgroup of 16 MiB, small before their first timer" },
	{ users_are_charged, "users are charged to the cgroup, with what they take of each CPU" },
	{ container, "the device works in a container without capabilities" },
	{ group_only, "a device node of a group: only members may open it" },
};

int main(int argc, char **argv)
{
	if (argc > 1)
		users = (uid_t)atoi(argv[1]);
	if (users < USERS || users > USERS_MAX)
		bail("test_limits [USERS], 32 to 500");
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (stage == MAP_FAILED)
		bail("mmap");
	return run_tests(tests, ARRAY_SIZE(tests));
}
