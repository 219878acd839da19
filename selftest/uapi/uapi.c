// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What the tests of /dev/twheel share: see uapi.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define GUARD	64	/* poisoned bytes on each side of what is passed */

/* no more failed checks of a test are printed */
#define TOLD	20

/* A test that takes so long hangs, and the program is ended. It is the busiest host's time. */
#define HANG_S	240

static int nr_checks, nr_failed_checks;
static const char *running, *skipped;

bool failed(void)
{
	return __atomic_load_n(&nr_failed_checks, __ATOMIC_RELAXED);
}

bool check(bool good, const char *what, const char *file, int line)
{
	__atomic_add_fetch(&nr_checks, 1, __ATOMIC_RELAXED);
	if (good)
		return true;
	if (__atomic_add_fetch(&nr_failed_checks, 1, __ATOMIC_RELAXED) <= TOLD)
		diag("%s:%d: not so: %s", file, line, what);
	return false;
}

bool check_eq(long long is, long long want, const char *what, const char *file,
	      int line)
{
	if (check(is == want, what, file, line))
		return true;
	if (nr_failed_checks <= TOLD)
		diag("	it is %lld, not %lld", is, want);
	return false;
}

void skip_test(const char *reason)
{
	skipped = reason;
}

static void on_alarm(int sig)
{
	static const char what[] = "Bail out! This test hangs: ";

	(void)sig;
	if (write(STDOUT_FILENO, what, sizeof(what) - 1) < 0 ||
	    write(STDOUT_FILENO, running, strlen(running)) < 0 ||
	    write(STDOUT_FILENO, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

int run_tests(const struct test *tests, int n)
{
	plan((unsigned int)n);
	signal(SIGALRM, on_alarm);
	for (int i = 0; i < n; i++) {
		nr_checks = 0;
		nr_failed_checks = 0;
		running = tests[i].name;
		skipped = NULL;
		alarm(HANG_S);
		tests[i].fn();
		if (!nr_checks && !skipped)
			diag("nothing was checked");
		ok((nr_checks || skipped) && !nr_failed_checks, "%s%s%s", tests[i].name,
		   skipped ? " # SKIP " : "", skipped ? skipped : "");
	}
	return done();
}

void bail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

u64 now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * SEC + (u64)ts.tv_nsec;
}

u64 tick_after(u64 ns, u64 tick)
{
	return (ns + tick - 1) / tick * tick;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

void sleep_until(u64 time)
{
	struct timespec ts = { (time_t)(time / SEC), (long)(time % SEC) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

u64 whole_ms(unsigned int ms)
{
	return (now_ns(CLOCK_MONOTONIC) / MS + 1 + ms) * MS;
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bail("sched_setaffinity");
}

pid_t start_task(void (*fn)(int), int cpu, int arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(0);
	nr_failed_checks = 0;
	pin(cpu);
	fn(arg);
	fflush(stdout);
	_exit(failed());
}

pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, fn, arg);
	if (errno)
		bail("pthread_create");
	return thread;
}

void be_fifo(int prio)
{
	const struct sched_param param = { .sched_priority = prio };

	if (sched_setscheduler(0, prio ? SCHED_FIFO : SCHED_OTHER, &param))
		bail("sched_setscheduler");
}

bool is_preempt_rt(void)
{
	struct utsname uts;

	return !uname(&uts) && strstr(uts.version, "PREEMPT_RT");
}

void become(uid_t uid)
{
	CHECK(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
}

/* xorshift64*; @state must not be 0. */
u64 rnd(u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ULL;
}

static bool all_poison(const void *p, size_t bytes)
{
	const unsigned char *c = p;

	while (bytes && *c == POISON) {
		bytes--;
		c++;
	}
	return !bytes;
}

int workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int n = 0;

	while ((d = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f))
			n += !strncmp(name, "iou-wrk", 7);
		fclose(f);
	}
	closedir(dir);
	return n;
}

/* Does the task sleep? Its state is behind its name, which may have any character in it. */
static bool sleeps(pid_t tid)
{
	char path[64], text[512], *p;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	file_get(path, text, sizeof(text));
	p = strrchr(text, ')');
	return p && p[1] == ' ' && p[2] == 'S';
}

void await_sleep(const pid_t *tid)
{
	u32 seen = 0;

	/* A task sets its state a moment before it sleeps, so look more than once. */
	for (u32 ms = 0; ms < WAIT_MS && seen < 3; ms++) {
		sleep_ms(1);
		seen = sleeps(__atomic_load_n(tid, __ATOMIC_ACQUIRE)) ? seen + 1 : 0;
	}
	CHECK(seen == 3);
}

int dev_open_as(int flags)
{
	const char *path = getenv("TWHEEL_DEV");
	int fd;

	if (!path)
		path = "/dev/twheel";
	fd = open(path, O_CLOEXEC | flags);
	if (fd < 0)
		bail(path);
	return fd;
}

int dev_open(int flags)
{
	return dev_open_as(O_RDWR | flags);
}

/*
 * Call ioctl() with a copy of @arg in the middle of poison. Afterwards @arg is what the kernel made
 * of the copy, whatever the call returned.
 */
static int guarded(int fd, unsigned long cmd, void *arg, size_t bytes)
{
	unsigned char buf[GUARD + 256 + GUARD];
	int rc;

	memset(buf, POISON, sizeof(buf));
	memcpy(buf + GUARD, arg, bytes);
	rc = ioctl(fd, cmd, buf + GUARD);
	if (rc < 0)
		rc = -errno;
	CHECK(all_poison(buf, GUARD));
	CHECK(all_poison(buf + GUARD + bytes, sizeof(buf) - GUARD - bytes));
	memcpy(arg, buf + GUARD, bytes);
	return rc;
}

int setup(int fd, const struct twheel_setup *s)
{
	struct twheel_setup copy = *s;
	int rc = guarded(fd, TWHEEL_IOC_SETUP, &copy, sizeof(copy));

	CHECK(!memcmp(&copy, s, sizeof(copy)));
	return rc;
}

void info(int fd, struct twheel_info *i)
{
	memset(i, POISON, sizeof(*i));
	CHECK_EQ(guarded(fd, TWHEEL_IOC_INFO, i, sizeof(*i)), 0);
	CHECK_EQ(i->abi, TWHEEL_ABI);
#ifdef FIRST_HEADER
	CHECK(i->op_size > sizeof(struct twheel_op));
#else
	CHECK_EQ(i->op_size, sizeof(struct twheel_op));
#endif
	CHECK_EQ(i->event_size, sizeof(struct twheel_event));
	CHECK(i->clocks >> i->clockid & 1);
	CHECK(i->tick_ns >= i->min_tick_ns);
	CHECK(i->nr_timers <= i->max_timers);
	CHECK(i->nr_moves != 0xcccccccccccccccc);
	CHECK(i->nr_deferred != 0xcccccccccccccccc);
}

/* @was after a successful call: what the kernel may change is taken from @is. */
static struct twheel_op op_expected(const struct twheel_op *was, const struct twheel_op *is,
				    u32 opcode)
{
	struct twheel_op want = *was;

	want.res = is->res;
	if (opcode == TWHEEL_OP_ADD)
		want.handle = is->handle;
	else
		want.user_data = is->user_data;
	if (opcode == TWHEEL_OP_QUERY) {
		want.expires_ns = is->expires_ns;
		want.interval_ns = is->interval_ns;
#ifndef FIRST_HEADER
		want.tolerance_ns = is->tolerance_ns;
#endif
	}
	return want;
}

static bool res_is_known(int res, u32 opcode)
{
	if (opcode == TWHEEL_OP_QUERY)
		return res >= TWHEEL_STATE_ARMED && res <= TWHEEL_STATE_IDLE;
	return !res || (res == 1 && opcode != TWHEEL_OP_ADD);
}

/* The ioctls of single operations, in the order of enum twheel_opcode. */
static u32 opcode_of(unsigned long cmd)
{
	return _IOC_NR(cmd) - _IOC_NR(TWHEEL_IOC_ADD) + TWHEEL_OP_ADD;
}

int op_ioctl(int fd, unsigned long cmd, struct twheel_op *op)
{
	struct twheel_op want = *op;
	int rc = guarded(fd, cmd, op, sizeof(*op));

	if (rc >= 0) {
		want = op_expected(&want, op, opcode_of(cmd));
		CHECK_EQ(op->res, rc);
		CHECK(res_is_known(rc, opcode_of(cmd)));
	}
	CHECK(!memcmp(op, &want, sizeof(want)));
	return rc;
}

u64 add_with(int fd, u32 flags, u64 expires, u64 interval, u64 user_data)
{
	struct twheel_op op = { .flags = flags, .user_data = user_data,
				.expires_ns = expires, .interval_ns = interval };

	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
	CHECK(op.handle != 0);
	return op.handle;
}

u64 add(int fd, u64 delay, u64 user_data)
{
	return add_with(fd, 0, delay, 0, user_data);
}

int mod(int fd, u64 handle, u64 delay, u32 flags)
{
	struct twheel_op op = {
		.handle = handle, .expires_ns = delay, .flags = flags };

	return op_ioctl(fd, TWHEEL_IOC_MOD, &op);
}

int cancel(int fd, u64 handle)
{
	struct twheel_op op = { .handle = handle };

	return op_ioctl(fd, TWHEEL_IOC_CANCEL, &op);
}

int query(int fd, u64 handle, u32 flags, struct twheel_op *op)
{
	*op = (struct twheel_op){ .handle = handle, .flags = flags };
	return op_ioctl(fd, TWHEEL_IOC_QUERY, op);
}

/* Is @is what may have become of @was in a successful call? */
static bool op_result(const struct twheel_op *was, const struct twheel_op *is)
{
	struct twheel_op want = *was;

	if (is->res >= 0)
		want = op_expected(was, is, was->op);
	else
		want.res = is->res;
	return (is->res < 0 || res_is_known(is->res, was->op)) &&
	       !memcmp(is, &want, sizeof(want));
}

int submit(int fd, struct twheel_op *ops, u32 nr, u32 *done, u32 *bad)
{
	struct twheel_batch b = {
		.ops = (uintptr_t)ops, .nr = nr, .op_size = sizeof(*ops) };
	struct twheel_batch want = b;
	struct twheel_op *was = malloc(nr * sizeof(*ops) + 1);
	u32 i, failures = 0, wrong = 0;
	int rc;

	memcpy(was, ops, nr * sizeof(*ops));
	rc = guarded(fd, TWHEEL_IOC_SUBMIT, &b, sizeof(b));
	want.nr_done = b.nr_done;
	want.nr_failed = b.nr_failed;
	CHECK(!memcmp(&b, &want, sizeof(b)));
	CHECK(b.nr_done <= nr && (!rc || !b.nr_done));
	for (i = 0; i < nr; i++) {
		failures += i < b.nr_done && ops[i].res < 0;
		wrong += i < b.nr_done ? !op_result(&was[i], &ops[i]) :
			 !!memcmp(&was[i], &ops[i], sizeof(*ops));
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(b.nr_failed, failures);
	free(was);
	if (done)
		*done = b.nr_done;
	if (bad)
		*bad = b.nr_failed;
	return rc;
}

static void add_all(int fd, u32 nr, u32 flags, u64 expires, u64 first_user_data)
{
	struct twheel_op ops[256];
	u32 i, n, done, bad;

	while (nr && !failed()) {
		n = nr < ARRAY_SIZE(ops) ? nr : ARRAY_SIZE(ops);
		memset(ops, 0, sizeof(ops));
		for (i = 0; i < n; i++) {
			ops[i].op = TWHEEL_OP_ADD;
			ops[i].flags = flags;
			ops[i].user_data = first_user_data++;
			ops[i].expires_ns = expires;
		}
		CHECK_EQ(submit(fd, ops, n, &done, &bad), 0);
		CHECK_EQ(done, n);
		CHECK_EQ(bad, 0);
		nr -= n;
	}
}

/* Add @nr one-shots with this @delay. Their user_data count up from the one given. */
void add_many(int fd, u32 nr, u64 delay, u64 first_user_data)
{
	add_all(fd, nr, 0, delay, first_user_data);
}

void add_many_at(int fd, u32 nr, u64 at)
{
	add_all(fd, nr, TWHEEL_F_ABS, at, 0);
}

/* CHECK that nothing of @op has changed but what is promised. */
static bool drained_is_good(const struct twheel_op *op, u32 flags)
{
	return op->op == TWHEEL_OP_ADD && op->handle && !op->res && !op->reserved &&
	       (op->flags & TWHEEL_F_ABS) == flags &&
	       !(op->flags & ~(TWHEEL_F_ABS | TWHEEL_F_KEEP | TWHEEL_F_DELAY |
			       TWHEEL_F_CANCEL_ON_SET));
}

int drain(int fd, struct twheel_op *ops, u32 nr, u32 flags)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = nr,
				  .op_size = sizeof(*ops), .flags = flags };
	struct twheel_batch want = b;
	u32 wrong = 0;
	int rc;

	memset(ops, POISON, nr * sizeof(*ops));
	rc = guarded(fd, TWHEEL_IOC_DRAIN, &b, sizeof(b));
	want.nr_done = b.nr_done;
	CHECK(!memcmp(&b, &want, sizeof(b)));
	CHECK(b.nr_done <= nr && (!rc || !b.nr_done));
	for (u32 i = 0; i < b.nr_done; i++)
		wrong += !drained_is_good(&ops[i], flags);
	CHECK_EQ(wrong, 0);
	CHECK(all_poison(ops + b.nr_done, (nr - b.nr_done) * sizeof(*ops)));
	return rc ? rc : (int)b.nr_done;
}

static void check_event(const struct twheel_event *ev)
{
	CHECK(ev->handle != 0);
	CHECK(ev->count || (ev->flags & TWHEEL_EV_CLOCK_SET));
	CHECK(!(ev->flags & ~(TWHEEL_EV_MORE | TWHEEL_EV_CLOCK_SET)));
}

int read_events(int fd, struct twheel_event *ev, u32 max)
{
	const size_t size = sizeof(*ev);
	ssize_t got;
	char *buf;

	buf = malloc(max * size + GUARD);
	memset(buf, POISON, max * size + GUARD);
	got = read(fd, buf, max * size);
	if (got < 0)
		got = -errno;
	if (got >= 0) {
		CHECK_EQ((size_t)got % size, 0);
		memcpy(ev, buf, (size_t)got);
	}
	CHECK(all_poison(buf + (got < 0 ? 0 : got),
			 max * size + GUARD - (got < 0 ? 0 : (size_t)got)));
	free(buf);
	if (got < 0)
		return (int)got;
	CHECK(got > 0);
	for (size_t i = 0; i < (size_t)got / size; i++)
		check_event(&ev[i]);
	return (int)((size_t)got / size);
}

/* Wait for an event and read only that. Returns 1 if all is well. */
int read_one(int fd, struct twheel_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	if (!CHECK(readable(fd, WAIT_MS)))
		return 0;
	return read_events(fd, ev, 1);
}

bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

bool fdinfo_get(int fd, const char *key, u64 *value)
{
	char path[64], line[256];
	size_t len = strlen(key);
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	if (!f)
		bail(path);
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, key, len) && !strncmp(line + len, ":\t", 2);
		if (found)
			*value = strtoull(line + len + 2, NULL, 10);
	}
	fclose(f);
	return found;
}

u32 nr_ready(int fd)
{
	struct twheel_info i;

	info(fd, &i);
	return i.nr_ready;
}

void await_ready(int fd, u32 nr)
{
	for (u32 ms = 0; ms < WAIT_MS && nr_ready(fd) < nr; ms++)
		sleep_ms(1);
	CHECK_EQ(nr_ready(fd), nr);
}

void expect_counts(int fd, u32 timers, u32 armed, u32 ready)
{
	struct twheel_info i;
	u64 value;

	info(fd, &i);
	CHECK_EQ(i.nr_timers, timers);
	CHECK_EQ(i.nr_armed, armed);
	CHECK_EQ(i.nr_ready, ready);
	if (CHECK(fdinfo_get(fd, "twheel-timers", &value)))
		CHECK_EQ(value, timers);
	if (CHECK(fdinfo_get(fd, "twheel-armed", &value)))
		CHECK_EQ(value, armed);
	if (CHECK(fdinfo_get(fd, "twheel-ready", &value)))
		CHECK_EQ(value, ready);
}

/* ---- files of the system -------------------------------------------------------- */

void file_get(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);

	if (n < 0)
		bail(path);
	text[n] = 0;
	close(fd);
}

void file_set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		bail(path);
	close(fd);
}

void param_set(const char *name, u32 value, u32 *was)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/module/twheel_chardev/parameters/%s", name);
	file_get(path, text, sizeof(text));
	if (was)
		*was = (u32)strtoul(text, NULL, 10);
	snprintf(text, sizeof(text), "%u", value);
	file_set(path, text);
}

#define CGROUPS	"/tmp/cgroups"

static const char *cgroup_path(const char *name, const char *key)
{
	static char path[128];

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", name, key);
	return path;
}

bool cgroup_make(const char *name)
{
	char controllers[256];

	mkdir(CGROUPS, 0755);
	if (access(CGROUPS "/cgroup.procs", F_OK) &&
	    mount("cgroups", CGROUPS, "cgroup2", 0, NULL))
		return false;
	file_get(CGROUPS "/cgroup.controllers", controllers, sizeof(controllers));
	if (!strstr(controllers, "memory"))
		return false;
	file_set(CGROUPS "/cgroup.subtree_control",
		 strstr(controllers, "cpu ") ? "+memory +cpu" : "+memory");
	if (mkdir(cgroup_path(name, ""), 0755))
		bail(name);
	return true;
}

void cgroup_set(const char *name, const char *key, u64 value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	file_set(cgroup_path(name, key), text);
}

/* The number behind @word in a file of the cgroup, or the only number if @word is NULL. */
u64 cgroup_get(const char *name, const char *key, const char *word)
{
	char text[4096], *p = text;

	file_get(cgroup_path(name, key), text, sizeof(text));
	while (word && p && (strncmp(p, word, strlen(word)) || p[strlen(word)] != ' ')) {
		p = strchr(p, '\n');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		bail(word);
	return strtoull(word ? p + strlen(word) : p, NULL, 10);
}

void cgroup_join(const char *name)
{
	cgroup_set(name, "cgroup.procs", (u64)getpid());
}

void cgroup_remove(const char *name)
{
	CHECK(!rmdir(cgroup_path(name, "")));
}

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Map pages for @bytes, and one page more. */
static char *pages(size_t bytes, size_t *room)
{
	char *p;

	*room = (bytes + page() - 1) / page() * page();
	p = mmap(NULL, *room + page(), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		bail("mmap");
	return p;
}

void *before_hole(size_t bytes)
{
	size_t room;
	char *p = pages(bytes, &room);

	memset(p, POISON, room);
	mprotect(p + room, page(), PROT_NONE);
	return p + room - bytes;
}

void *read_only(const void *data, size_t bytes)
{
	size_t room;
	char *p = pages(bytes, &room);

	memcpy(p, data, bytes);
	mprotect(p, room, PROT_READ);
	return p;
}

void *unmapped(void)
{
	size_t room;
	char *p = pages(page(), &room);

	munmap(p, room + page());
	return p;
}

struct stall stall_new(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct stall s = { .fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC) };
	unsigned char *p;

	p = mmap(NULL, 2 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	reg.range.start = (uintptr_t)p + page();
	reg.range.len = page();
	if (s.fd < 0 || p == MAP_FAILED || ioctl(s.fd, UFFDIO_API, &api) ||
	    ioctl(s.fd, UFFDIO_REGISTER, &reg))
		bail("userfaultfd");
	memset(p, POISON, page());
	s.page = p + page();
	return s;
}

void stall_wait(const struct stall *s)
{
	struct uffd_msg msg;

	CHECK_EQ(read(s->fd, &msg, sizeof(msg)), sizeof(msg));
}

void stall_give(const struct stall *s)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)s->page, .len = page() } };

	CHECK(!ioctl(s->fd, UFFDIO_ZEROPAGE, &zero));
}

void stall_fail(const struct stall *s)
{
	struct uffdio_range range = { .start = (uintptr_t)s->page, .len = page() };

	CHECK(!mprotect(s->page, page(), PROT_NONE));
	CHECK(!ioctl(s->fd, UFFDIO_WAKE, &range));
}

void stall_end(const struct stall *s)
{
	close(s->fd);
	munmap(s->page - page(), 2 * page());
}
