// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Which processes have a file of /dev/twheel, and how they give it up: dup(), fork(), a message to
 * another process, exec(), exit, and death in the middle of a call.
 *
 * A file lives until the last process that has it gives it up. The kernel tells how many files are
 * open: each counts as a use of the module. So /sys/module/twheel_chardev/refcnt shows whether a
 * file was left behind, and rmmod is refused as long as one is open.
 *
 * A process that is to be killed works on memory that it shares with its parent, so that the parent
 * sees what the process was told. If a process is killed in a call, the call has done what it
 * reports, and no more: each timer whose handle was stored exists and no other does, and each event
 * that is not in the dead reader's memory can still be read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MILLION	1000000U

/* ---- who uses the module ------------------------------------------------------ */

#define REFCNT	"/sys/module/twheel_chardev/refcnt"

/* If the device is built in, nobody counts its uses, and so their number is not checked. */
static bool is_module(void)
{
	return !access(REFCNT, F_OK);
}

static int users(void)
{
	FILE *f;
	int n;

	if (!is_module())
		return 0;
	f = fopen(REFCNT, "r");
	if (!f || fscanf(f, "%d", &n) != 1)
		bail("refcnt");
	fclose(f);
	return n;
}

static void expect_users(int n)
{
	if (is_module())
		CHECK_EQ(users(), n);
}

/*
 * Wait until the module has @n uses: a thread of the kernel may do the last fput() a little later.
 */
static void users_become(int n)
{
	if (!is_module())
		return;
	for (int ms = 0; ms < WAIT_MS && users() != n; ms++)
		sleep_ms(1);
	CHECK_EQ(users(), n);
}

static bool rmmod_is_refused(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) == -1 && errno == EWOULDBLOCK;
}

static void expect_no_rmmod(void)
{
	if (!is_module())
		return;
	CHECK(rmmod_is_refused("twheel_chardev"));
	CHECK(rmmod_is_refused("twheel"));
}

/* ---- descriptors --------------------------------------------------------------- */

static void dup_shares(void)
{
	int before = users(), fd = dev_open(O_NONBLOCK), copy = dup(fd), high;
	struct twheel_event ev;
	u64 h = add(fd, HOUR, 1), soon;

	high = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	CHECK(high >= 100);
	expect_users(before + 1);
	soon = add(copy, HOUR, 2);
	CHECK_EQ(close(fd), 0);
	expect_counts(copy, 2, 2, 0);
	CHECK_EQ(mod(copy, soon, 20 * MS, 0), 1);
	CHECK_EQ(read_one(high, &ev), 1);
	CHECK_EQ(ev.user_data, 2);
	CHECK_EQ(fcntl(copy, F_SETFL, 0), 0);
	CHECK(!(fcntl(high, F_GETFL) & O_NONBLOCK));
	CHECK_EQ(cancel(high, h), 1);
	close(copy);
	expect_counts(high, 0, 0, 0);
	expect_users(before + 1);
	close(high);
	users_become(before);
}

static void child_reads_one(int fd)
{
	struct twheel_event ev;

	CHECK_EQ(read_events(fd, &ev, 1), 1);
	add(fd, HOUR, ev.user_data + 10);
}

static pid_t start_child(void (*fn)(int), int fd)
{
	pid_t pid = fork();

	if (!pid) {
		fn(fd);
		_exit(failed());
	}
	return pid;
}

static bool ends_well(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && !status;
}

/* Two processes wait for an event of one file: each gets one of two. */
static void fork_shares(void)
{
	int before = users(), fd = dev_open(0);
	struct twheel_event ev;
	pid_t pid;

	fflush(stdout);
	pid = start_child(child_reads_one, fd);
	sleep_ms(50);
	add_many(fd, 2, 100 * MS, 1);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK(ends_well(pid));
	expect_counts(fd, 1, 1, 0);	/* the child's timer outlives it */
	expect_users(before + 1);
	close(fd);
	users_become(before);
}

/* ---- SCM_RIGHTS ------------------------------------------------------------------ */

union control {
	char		buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr	align;
};

static void send_fd(int sock, int fd)
{
	union control c = { 0 };
	char byte = 1;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = c.buf, .msg_controllen = sizeof(c.buf) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&m);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(sock, &m, 0), 1);
}

static int receive_fd(int sock)
{
	union control c = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = c.buf, .msg_controllen = sizeof(c.buf) };
	int fd = -1;

	CHECK_EQ(recvmsg(sock, &m, MSG_CMSG_CLOEXEC), 1);
	if (CHECK(CMSG_FIRSTHDR(&m)))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* Be a process that never had the file, and whose parent has it no longer. */
static void stranger(int sock)
{
	int fd = receive_fd(sock);
	struct twheel_event ev;
	struct twheel_info i;

	/* On a busy host the first timer may have fired. */
	info(fd, &i);
	CHECK_EQ(i.nr_timers, 2);
	CHECK_EQ(i.nr_armed + i.nr_ready, 2);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 21);
	expect_counts(fd, 1, 1, 0);
}

static void sent_to_a_process(void)
{
	int before = users(), sock[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		bail("socketpair");
	fflush(stdout);
	pid = start_child(stranger, sock[1]);
	fd = dev_open(0);
	add(fd, 200 * MS, 21);
	add(fd, HOUR, 22);
	send_fd(sock[0], fd);
	close(fd);
	CHECK(ends_well(pid));
	users_become(before);
	close(sock[0]);
	close(sock[1]);
}

/*
 * A file that is in a message which nobody receives lives on, and ends with the message. Its timer
 * fires in the message: if the host is busy, that takes longer, so let it be there longer.
 */
static void sent_and_not_received(void)
{
	int before = users(), sock[2], fd = dev_open(0);
	struct twheel_event ev;
	u32 ms = 50;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		bail("socketpair");
	add(fd, 20 * MS, 31);
	do {
		ms *= 2;
		send_fd(sock[0], fd);
		close(fd);
		sleep_ms(ms);
		expect_users(before + 1);
		expect_no_rmmod();
		fd = receive_fd(sock[1]);
	} while (!nr_ready(fd) && ms < WAIT_MS);
	expect_counts(fd, 1, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 31);
	add_many(fd, 1000, 10 * MS, 0);
	send_fd(sock[1], fd);
	close(fd);
	close(sock[1]);
	expect_users(before + 1);
	close(sock[0]);
	users_become(before);
}

/* ---- exec ------------------------------------------------------------------------- */

static void exec_self(const char *how, int fd, int number)
{
	char fd_text[16], number_text[16];

	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	snprintf(number_text, sizeof(number_text), "%d", number);
	execl("/proc/self/exe", "test_life", how, fd_text, number_text, NULL);
	bail("exec");
}

/* What the new program does after exec(). */
static int after_exec(const char *how, int fd, int number)
{
	struct twheel_event ev;
	struct twheel_info i;

	if (!strcmp(how, "closed")) {
		CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
		users_become(number);
		return failed();
	}
	expect_users(number);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 42);
	info(fd, &i);
	CHECK_EQ(i.nr_timers, i.nr_armed + i.nr_ready);
	add(fd, 0, 43);
	return failed();
}

static void child_execs_with(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETFD, 0), 0);
	exec_self("open", fd, users());
}

static void child_execs_without(int before)
{
	int fd = dev_open(0);

	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	add_many(fd, 1000, 50 * MS, 0);
	exec_self("closed", fd, before);
}

static void exec_and_cloexec(void)
{
	int before = users(), fd = dev_open(0);
	struct twheel_event ev;

	add(fd, 100 * MS, 42);
	fflush(stdout);
	CHECK(ends_well(start_child(child_execs_with, fd)));
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 43);
	close(fd);
	users_become(before);
	CHECK(ends_well(start_child(child_execs_without, before)));
	users_become(before);
}

static void *reads_one(void *fd)
{
	struct twheel_event ev;

	read_events(*(int *)fd, &ev, 1);
	return NULL;
}

static void *submits_on(void *arg)
{
	static struct twheel_op ops[4096];
	int fd = *(int *)arg;

	for (;;) {
		for (u32 i = 0; i < ARRAY_SIZE(ops); i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
						     .expires_ns = HOUR };
		submit(fd, ops, ARRAY_SIZE(ops), NULL, NULL);
		for (u32 i = 0; i < ARRAY_SIZE(ops); i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
						     .handle = ops[i].handle };
		submit(fd, ops, ARRAY_SIZE(ops), NULL, NULL);
	}
	return NULL;
}

static void child_execs_from_threads(int fd)
{
	pthread_t reader, submitter;

	CHECK_EQ(fcntl(fd, F_SETFD, 0), 0);
	pthread_create(&reader, NULL, reads_one, &fd);
	pthread_create(&submitter, NULL, submits_on, &fd);
	sleep_ms(50);
	/*
	 * If exec() takes longer, the reader gets an event before it dies. Then another one comes.
	 */
	add_with(fd, 0, 300 * MS, 300 * MS, 42);
	exec_self("open", fd, users());
}

/* exec() kills the other threads in the middle of what they do. */
static void exec_in_the_middle(void)
{
	int before = users(), fd = dev_open(0);

	fflush(stdout);
	CHECK(ends_well(start_child(child_execs_from_threads, fd)));
	close(fd);
	users_become(before);
}

/* ---- the end ------------------------------------------------------------------------ */

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* What a child waits for before it ends, until its parent has looked. */
static int may_end[2];

static void child_reads_late(int fd)
{
	struct twheel_event ev;
	char byte;

	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 5);
	expect_counts(fd, MILLION, MILLION, 0);
	CHECK_EQ(read(may_end[0], &byte, 1), 1);
}

/* A reader of a million events ends by itself with its event, or is killed while it waits. */
static void million(bool kills)
{
	int before = users(), fd = dev_open(0);
	pid_t pid;
	u64 start;

	if (pipe(may_end))
		bail("pipe");
	add_many(fd, MILLION, HOUR, 0);
	add(fd, kills ? HOUR : 300 * MS, 5);
	fflush(stdout);
	pid = start_child(child_reads_late, fd);
	await_sleep(&pid);
	start = now();
	CHECK_EQ(close(fd), 0);
	diag("close() beside another who has the file: %.3f ms",
	     (double)(now() - start) / (double)MS);
	expect_users(before + 1);
	expect_no_rmmod();
	if (kills) {
		start = now();
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		diag("kill -9 of the last who had it: %.1f ms",
		     (double)(now() - start) / (double)MS);
	} else {
		CHECK_EQ(write(may_end[1], "x", 1), 1);
		CHECK(ends_well(pid));
	}
	users_become(before);
	close(may_end[0]);
	close(may_end[1]);
}

/* Open and close so often that a lost page each time would show when the modules are unloaded. */
static void opened_often(void)
{
	int before = users();

	for (u32 i = 0; i < 4000 && !failed(); i++) {
		int fd = dev_open(0);

		add(fd, i % 2 ? HOUR : 0, i);
		close(fd);
	}
	users_become(before);
}

static void child_that_leaves(int unused)
{
	int fd = dev_open(0);

	(void)unused;
	add_many(fd, 10000, 2 * MS, 0);
	add_many(fd, 10000, HOUR, 0);
	add_with(fd, 0, 0, MS, 0);
}

static void exit_with_pending(void)
{
	int before = users();

	fflush(stdout);
	for (int i = 0; i < 5; i++)
		CHECK(ends_well(start_child(child_that_leaves, -1)));
	users_become(before);
}

static void million_and_reader(void)
{
	million(false);
	million(true);
}

/* A file, and the thread that reads from it. */
struct closed {
	int	fd;
	pid_t	tid;
};

static void *reads_closed(void *arg)
{
	struct closed *c = arg;
	struct twheel_event ev;

	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	CHECK_EQ(read_events(c->fd, &ev, 1), -EINTR);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

/*
 * The call whose descriptor is closed ends by a signal, and not by an event: if the host were away
 * until that, rmmod would not be refused any more, and would do what it says.
 */
static void rmmod_refused(void)
{
	const struct sigaction act = { .sa_handler = on_signal };
	int before = users(), fd;
	struct closed c = { 0 };
	pthread_t reader;

	if (!is_module()) {
		skip_test("built in");
		return;
	}
	sigaction(SIGUSR1, &act, NULL);
	c.fd = dev_open(0);
	expect_no_rmmod();
	add(c.fd, HOUR, 1);
	pthread_create(&reader, NULL, reads_closed, &c);
	await_sleep(&c.tid);
	close(c.fd);
	expect_users(before + 1);	/* the call in progress is a use */
	expect_no_rmmod();
	pthread_kill(reader, SIGUSR1);
	pthread_join(reader, NULL);
	users_become(before);
	fd = dev_open(0);
	add(fd, 0, 1);
	CHECK(readable(fd, WAIT_MS));
	close(fd);
	users_become(before);
}

/* ---- kill -9 ------------------------------------------------------------------------- */

#define ROUNDS	40
#define WHOLE_ROUNDS	5	/* of these, in which nobody is killed */
#define HALVES	(ROUNDS / 4)	/* in so many at least a child must die in the middle */
#define OPS	20000U

/*
 * Is there another round? A child's call may take less than a ms, and the interrupt that is to end
 * it may come later than that on a busy host. So if too few died in the middle, more are tried.
 */
static bool goes_on(u32 round, u32 halves)
{
	return !failed() && round < (halves < HALVES ? 20 * ROUNDS : ROUNDS);
}

/* Shared with the child that is killed. */
struct memory {
	u64			dies_after;	/* ns after it began, or 0: it ends by itself */
	volatile u64		begun, ended;	/* when the child began and ended; 0 before */
	struct twheel_batch	add, mod, cancel;
	struct twheel_op	adds[OPS], mods[OPS], cancels[OPS];
	struct twheel_event	events[OPS];
};

static struct memory *m;

static void prepare(struct twheel_batch *b, struct twheel_op *ops, u32 op)
{
	for (u32 i = 0; i < OPS; i++)
		ops[i] = (struct twheel_op){ .op = op,
			.handle = op == TWHEEL_OP_ADD ? 0 : m->adds[i].handle,
			.expires_ns = op == TWHEEL_OP_CANCEL ? 0 : HOUR };
	*b = (struct twheel_batch){ .ops = (uintptr_t)ops, .nr = OPS,
				    .op_size = sizeof(*ops) };
}

/*
 * Kill this process with SIGKILL, @ns from now. The timer's interrupt comes on the CPU of the call
 * that it ends. If another process sent the signal, that process's CPU would have to run meanwhile:
 * on a busy host the virtual CPUs of a machine take turns, and the call would be over before.
 */
static void die_after(u64 ns)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { ns / SEC, ns % SEC } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &when, NULL))
		_exit(1);
}

/*
 * Take the page faults before the child begins: they would take most of the time. Touching each
 * page is the only way to do that in user-mode Linux.
 */
static void begin(void)
{
	volatile char *byte = (volatile char *)m;

	for (size_t at = 0; at < sizeof(*m); at += 4096)
		byte[at] = byte[at];
	if (m->dies_after)
		die_after(m->dies_after);
	m->begun = now();
}

/* Submit batches of OPS operations each, until killed. */
static void child_submits(int fd)
{
	begin();
	ioctl(fd, TWHEEL_IOC_SUBMIT, &m->add);
	prepare(&m->mod, m->mods, TWHEEL_OP_MOD);
	ioctl(fd, TWHEEL_IOC_SUBMIT, &m->mod);
	prepare(&m->cancel, m->cancels, TWHEEL_OP_CANCEL);
	ioctl(fd, TWHEEL_IOC_SUBMIT, &m->cancel);
	m->ended = now();
}

/*
 * Play a round: a child does @fn. In the first rounds it ends by itself; after that it dies within
 * *@whole, if it has not ended before. *@whole is the shortest time that a child took that ended,
 * because the host may have been busy.
 */
static void play_round(u32 round, void (*fn)(int), int fd, u64 *whole, u64 *seed)
{
	int status;
	u64 took;

	m->dies_after = round < WHOLE_ROUNDS ? 0 : 1 + rnd(seed) % *whole;
	waitpid(start_child(fn, fd), &status, 0);
	CHECK(!status || (m->dies_after && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	took = m->ended - m->begun;
	if (!round || (m->ended && took < *whole))
		*whole = took;
}

/* Operations that are counted in nr_done have a result, and those after them have none. */
static bool batch_is_whole(const struct twheel_batch *b, const struct twheel_op *ops)
{
	u32 wrong = 0;

	for (u32 i = 0; i < OPS; i++) {
		bool is_done = b == &m->add ? ops[i].handle != 0 : ops[i].res == 1;

		wrong += is_done != (i < b->nr_done);
	}
	CHECK_EQ(b->nr_failed, 0);
	return CHECK_EQ(wrong, 0) && b->nr_done && b->nr_done < OPS;
}

/* Cancel the timers that the dead process has left. Each handle that it was given must be good. */
static void cancel_the_rest(int fd)
{
	static struct twheel_op ops[OPS];
	u32 nr = 0, wrong = 0;

	for (u32 i = 0; i < OPS; i++)
		if (m->adds[i].handle && m->cancels[i].res != 1)
			ops[nr++] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
				.handle = m->adds[i].handle };
	expect_counts(fd, nr, nr, 0);
	if (nr)
		CHECK_EQ(submit(fd, ops, nr, NULL, NULL), 0);
	for (u32 i = 0; i < nr; i++)
		wrong += ops[i].res != 1;
	CHECK_EQ(wrong, 0);
	expect_counts(fd, 0, 0, 0);
}

static void killed_in_a_batch(void)
{
	int before = users(), fd = dev_open(0);
	u64 whole = 0, seed = 8, bytes = 0;
	struct twheel_event ev;
	struct twheel_info i;
	u32 halves = 0;

	fflush(stdout);
	for (u32 round = 0; goes_on(round, halves); round++) {
		memset(m, 0, sizeof(*m));
		prepare(&m->add, m->adds, TWHEEL_OP_ADD);
		play_round(round, child_submits, fd, &whole, &seed);
		halves += batch_is_whole(&m->add, m->adds);
		halves += batch_is_whole(&m->mod, m->mods);
		halves += batch_is_whole(&m->cancel, m->cancels);
		cancel_the_rest(fd);
		info(fd, &i);
		if (!round)
			bytes = i.mem_bytes;
		CHECK_EQ(i.mem_bytes, bytes);	/* no slot was lost */
	}
	diag("%u killed in the middle of a batch", halves);
	CHECK(halves >= HALVES);
	add(fd, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	close(fd);
	users_become(before);
}

static void child_reads_all(int fd)
{
	begin();
	for (u32 i = 0; i < OPS;) {
		ssize_t n = read(fd, m->events + i, (OPS - i) * sizeof(*m->events));

		if (n <= 0)
			break;
		i += (u32)n / sizeof(*m->events);
	}
	m->ended = now();
}

/* What the dead reader has not got can be read, and nothing else. */
static void read_the_rest(int fd, u32 had)
{
	static unsigned char seen[OPS];
	static struct twheel_event ev[READ_MAX];
	u32 wrong = 0;
	int n;

	memset(seen, 0, sizeof(seen));
	for (u32 i = 0; i < had; i++)
		seen[m->events[i].user_data % OPS]++;
	expect_counts(fd, OPS - had, 0, OPS - had);
	while ((n = read_events(fd, ev, READ_MAX)) > 0)
		for (int i = 0; i < n; i++)
			seen[ev[i].user_data % OPS]++;
	for (u32 i = 0; i < OPS; i++)
		wrong += seen[i] != 1;
	CHECK_EQ(wrong, 0);
	expect_counts(fd, 0, 0, 0);
}

static void killed_in_a_read(void)
{
	int before = users(), fd = dev_open(O_NONBLOCK);
	u32 halves = 0, had, rest;
	u64 whole = 0, seed = 9;
	struct twheel_info i;

	fflush(stdout);
	for (u32 round = 0; goes_on(round, halves); round++) {
		memset(m, 0, sizeof(*m));
		add_many(fd, OPS, 0, 0);
		do
			info(fd, &i);
		while (i.nr_armed);
		play_round(round, child_reads_all, fd, &whole, &seed);
		for (had = 0; had < OPS && m->events[had].handle; had++)
			;
		for (rest = had; rest < OPS && !m->events[rest].handle; rest++)
			;
		CHECK_EQ(rest, OPS);
		halves += had && had < OPS;
		read_the_rest(fd, had);
	}
	diag("%u killed in the middle of a read", halves);
	CHECK(halves >= HALVES);
	close(fd);
	users_become(before);
}

static void *adds_and_reads(void *arg)
{
	int fd = *(int *)arg;
	struct twheel_event ev[64];
	u64 seed = now() | 1;

	for (;;) {
		add_many(fd, 64, rnd(&seed) % MS, 0);
		read_events(fd, ev, ARRAY_SIZE(ev));
	}
	return NULL;
}

static void *polls_on(void *arg)
{
	for (;;) {
		struct twheel_info i;

		readable(*(int *)arg, 1);
		info(*(int *)arg, &i);
	}
	return NULL;
}

static void child_of_threads(int unused)
{
	void *(*fns[])(void *) = { reads_one, submits_on, adds_and_reads, polls_on };
	pthread_t thread;
	int fd = dev_open(0);

	(void)unused;
	for (u32 i = 0; i < ARRAY_SIZE(fns); i++)
		pthread_create(&thread, NULL, fns[i], &fd);
	sleep_ms(WAIT_MS);
}

/* Kill a child that does child_of_threads(), @ns after it was started. */
static void kill_after(u64 ns)
{
	pid_t pid = start_child(child_of_threads, -1);

	usleep(ns / 1000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* All processes that have the file are killed together, in the middle of every call. */
static void killed_everywhere(void)
{
	int before = users(), fd;
	struct twheel_event ev;
	u64 seed = 10;

	fflush(stdout);
	for (u32 round = 0; round < ROUNDS && !failed(); round++) {
		kill_after(rnd(&seed) % (50 * MS));
		users_become(before);
	}
	fd = dev_open(0);
	add(fd, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	close(fd);
	users_become(before);
}

/* ---- before the first timer ------------------------------------------------ */

/* Two settings that are set by turns. At each moment the file must have exactly one of them. */
static const struct twheel_setup setups[] = {
	{ .clockid = CLOCK_MONOTONIC, .tick_ns = MS, .slack_ns = 1, .max_timers = 11 },
	{ .clockid = CLOCK_BOOTTIME, .tick_ns = 2 * MS, .slack_ns = 2, .max_timers = 22 },
};

/* A call that fails, or does nothing, must leave a new file as small as it was. */
static void nothing_yet(void)
{
	struct twheel_op op, ops[3] = { { .op = TWHEEL_OP_CANCEL, .handle = 1ULL << 32 },
		{ .op = TWHEEL_OP_ADD, .flags = 1 << 9 }, { .op = TWHEEL_OP_QUERY, .handle = 5 } };
	int fd = dev_open(O_NONBLOCK);
	struct twheel_info before, after;
	struct twheel_event ev;
	u32 done, bad;
	u64 next = 0;

	info(fd, &before);
	CHECK(before.mem_bytes < 1024);
	CHECK_EQ(cancel(fd, 1ULL << 32), -ENOENT);
	CHECK_EQ(mod(fd, 1ULL << 32, MS, 0), -ENOENT);
	CHECK_EQ(query(fd, 1ULL << 32, 0, &op), -ENOENT);
	CHECK_EQ(submit(fd, ops, 3, &done, &bad), 0);
	CHECK(done == 3 && bad == 3);
	CHECK(ops[0].res == -ENOENT && ops[1].res == -EINVAL && ops[2].res == -ENOENT);
	CHECK_EQ(submit(fd, ops, 0, &done, &bad), 0);
	CHECK_EQ(drain(fd, ops, 3, 0), 0);
	CHECK_EQ(read_events(fd, &ev, 1), -EAGAIN);
	CHECK(!readable(fd, 20));
	expect_counts(fd, 0, 0, 0);
	CHECK(fdinfo_get(fd, "twheel-next-ns", &next) && next == INT64_MAX);
	info(fd, &after);
	CHECK(!memcmp(&before, &after, sizeof(after)));
	CHECK_EQ(setup(fd, &setups[1]), 0);
	add(fd, 0, 7);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 7);
	info(fd, &after);
	CHECK(after.clockid == CLOCK_BOOTTIME && after.tick_ns == 2 * MS);
	CHECK(after.mem_bytes > 8192 && after.mem_bytes <= 12 * 1024);
	close(fd);
}

/* A reader that waits already is woken by the first event of the file. */
static void waits_for_the_first(void)
{
	int fd = dev_open(0);
	pthread_t reader;

	pthread_create(&reader, NULL, reads_one, &fd);
	sleep_ms(50);
	add(fd, 0, 7);
	pthread_join(reader, NULL);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static bool storm_is_over;

static void *sets_up(void *fd)
{
	for (u32 n = 0; !storm_is_over && !failed(); n++)
		CHECK_EQ(ioctl(*(int *)fd, TWHEEL_IOC_SETUP, &setups[n % 2]), 0);
	return NULL;
}

static void expect_whole(u64 clock, u64 tick, u64 slack, u64 max)
{
	const struct twheel_setup *s = &setups[clock == CLOCK_BOOTTIME];

	if (!CHECK(tick == s->tick_ns && slack == s->slack_ns && max == s->max_timers))
		diag("	clock %llu, tick %llu, slack %llu, max %llu", clock, tick, slack, max);
}

static void expect_whole_fdinfo(int fd)
{
	u64 clock, tick, slack, max;
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file_get(path, text, sizeof(text));
	if (CHECK(sscanf(strstr(text, "twheel-clockid:"),
			 "twheel-clockid: %llu twheel-tick-ns: %llu twheel-slack-ns: %llu twheel-max: %llu",
			 &clock, &tick, &slack, &max) == 4))
		expect_whole(clock, tick, slack, max);
}

static void setup_storm(void)
{
	u64 until = now_ns(CLOCK_MONOTONIC) + 2 * SEC;
	int fd = dev_open(O_NONBLOCK);
	struct twheel_info i;
	pthread_t thread;
	u32 n = 0;

	storm_is_over = false;
	CHECK_EQ(setup(fd, &setups[0]), 0);
	pthread_create(&thread, NULL, sets_up, &fd);
	for (; now_ns(CLOCK_MONOTONIC) < until && !failed(); n++) {
		info(fd, &i);
		expect_whole(i.clockid, i.tick_ns, i.slack_ns, i.max_timers);
		if (n % 16 == 0)
			expect_whole_fdinfo(fd);
	}
	storm_is_over = true;
	pthread_join(thread, NULL);
	diag("looked %u times", n);
	add(fd, HOUR, 1);
	expect_counts(fd, 1, 1, 0);
	close(fd);
}

static const struct test tests[] = {
	{ nothing_yet, "before the first timer: the file is small, and every call works" },
	{ waits_for_the_first, "a reader waits before the first timer" },
	{ setup_storm, "INFO and fdinfo in a storm of SETUP" },
	{ dup_shares, "dup(): one file" },
	{ fork_shares, "fork(): one file, each waiting process gets an event" },
	{ sent_to_a_process, "SCM_RIGHTS: the file lives on in another process" },
	{ sent_and_not_received, "SCM_RIGHTS: the file lives on in the message" },
	{ exec_and_cloexec, "exec: the file stays open, with O_CLOEXEC it is closed" },
	{ exec_in_the_middle, "exec in the middle of the other threads' calls" },
	{ opened_often, "open() and close(), 4000 times" },
	{ exit_with_pending, "exit with timers pending and ready" },
	{ million_and_reader, "close() with a million pending, a reader in another process" },
	{ rmmod_refused, "rmmod is refused while a file is open, or in use" },
	{ killed_in_a_batch, "kill -9 in the middle of a batch" },
	{ killed_in_a_read, "kill -9 in the middle of a read" },
	{ killed_everywhere, "kill -9 of threads in every call" },
};

int main(int argc, char **argv)
{
	if (argc == 4)
		return after_exec(argv[1], atoi(argv[2]), atoi(argv[3]));
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		bail("mmap");
	return run_tests(tests, ARRAY_SIZE(tests));
}
