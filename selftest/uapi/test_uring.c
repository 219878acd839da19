// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /dev/twheel under io_uring: it is read and polled without a worker thread.
 *
 * The file can be read without waiting, and can be polled. So if a READ finds nothing, it waits on
 * the file's queue, and the task itself does the READ when it is woken. The test looks into /proc,
 * where no worker thread may be. A READ that is forced onto a worker proves that a worker would be
 * seen there.
 *
 * Linux before 6.7 has no READ_MULTISHOT, and liburing 2.3 does not know its number.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define EV_SIZE		((int)sizeof(struct twheel_event))
#define ENTRIES		64
#define READ_MULTISHOT	49
#define GROUP		7

static struct io_uring ring;

static void ring_open(void)
{
	int err = io_uring_queue_init(ENTRIES, &ring, 0);

	if (err) {
		errno = -err;
		bail("io_uring_queue_init");
	}
}

static struct io_uring_sqe *sqe(u64 data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe)
		bail("io_uring_get_sqe");
	sqe->user_data = data;		/* the functions that prepare the rest leave it alone */
	return sqe;
}

static struct io_uring_sqe *sqe_read(int fd, void *to, unsigned int bytes, u64 data)
{
	struct io_uring_sqe *s = sqe(data);

	io_uring_prep_read(s, fd, to, bytes, -1);
	return s;
}

static void go(void)
{
	CHECK_EQ(io_uring_submit(&ring), 1);
}

struct completion {
	u64	user_data;
	int	res;
	u32	flags;
};

/* The next completion within @ms. If there is none, its res is -ETIME. */
static struct completion completion(int ms)
{
	struct __kernel_timespec ts = { ms / 1000, ms % 1000 * 1000000 };
	struct completion got = { .res = -ETIME };
	struct io_uring_cqe *cqe;
	int err;

	do
		err = ms ? io_uring_wait_cqe_timeout(&ring, &cqe, &ts) :
		      io_uring_peek_cqe(&ring, &cqe);
	while (err == -EINTR);
	if (!err) {
		got = (struct completion){ cqe->user_data, cqe->res, cqe->flags };
		io_uring_cqe_seen(&ring, cqe);
	}
	return got;
}

/* The result of request @data, which must be the next to complete. */
static int result_of(u64 data, int ms)
{
	struct completion cqe = completion(ms);

	if (cqe.res != -ETIME)
		CHECK_EQ(cqe.user_data, data);
	return cqe.res;
}

/* ---- READ ------------------------------------------------------------------ */

static void inline_when_ready(void)
{
	int fd = dev_open(0);
	struct twheel_event ev[8];

	ring_open();
	memset(ev, POISON, sizeof(ev));
	add_many(fd, 3, 0, 10);
	await_ready(fd, 3);
	sqe_read(fd, ev, sizeof(ev), 1);
	go();
	CHECK_EQ(result_of(1, 0), 3 * EV_SIZE);
	for (u32 i = 0; i < 3; i++) {
		CHECK(ev[i].user_data >= 10 && ev[i].user_data < 13);
		CHECK_EQ(ev[i].count, 1);
	}
	CHECK_EQ(ev[3].user_data, 0xcccccccccccccccc);
	CHECK_EQ(workers(), 0);
	expect_counts(fd, 0, 0, 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

static void pending_until_expiry(int flags)
{
	int fd = dev_open(flags), got;
	struct twheel_event ev;
	u64 start;

	ring_open();
	sqe_read(fd, &ev, sizeof(ev), 2);
	go();
	CHECK_EQ(result_of(2, 0), -ETIME);
	for (u32 i = 0; i < 20; i++) {
		start = now_ns(CLOCK_MONOTONIC);
		add(fd, 10 * MS, i);
		got = result_of(2, 0);		/* none yet, if the host is fast enough */
		CHECK_EQ(got == -ETIME ? result_of(2, WAIT_MS) : got, EV_SIZE);
		CHECK(now_ns(CLOCK_MONOTONIC) >= start + 10 * MS);
		CHECK_EQ(ev.user_data, i);
		CHECK_EQ(workers(), 0);
		sqe_read(fd, &ev, sizeof(ev), 2);
		go();
	}
	CHECK_EQ(workers(), 0);
	expect_counts(fd, 0, 0, 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

static void pending(void)
{
	pending_until_expiry(0);
}

/*
 * If a file can be polled, O_NONBLOCK does not keep io_uring from waiting: otherwise such a file
 * could not be used with it. RWF_NOWAIT does.
 */
static void non_blocking(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;

	pending_until_expiry(O_NONBLOCK);
	ring_open();
	sqe_read(fd, &ev, sizeof(ev), 3)->rw_flags = RWF_NOWAIT;
	go();
	CHECK_EQ(result_of(3, 0), -EAGAIN);
	add(fd, 0, 4);
	CHECK(readable(fd, WAIT_MS));
	sqe_read(fd, &ev, sizeof(ev), 3)->rw_flags = RWF_NOWAIT;
	go();
	CHECK_EQ(result_of(3, 0), EV_SIZE);
	io_uring_queue_exit(&ring);
	close(fd);
}

/* A worker would be seen. This is done in a child, because the worker outlives its work. */
static void forced_onto_a_worker(void)
{
	int fd = dev_open(0), status;
	struct twheel_event ev;
	pid_t pid = fork();

	if (!pid) {
		ring_open();
		sqe_read(fd, &ev, sizeof(ev), 4)->flags |= IOSQE_ASYNC;
		io_uring_submit(&ring);
		add(fd, 50 * MS, 1);
		CHECK_EQ(result_of(4, WAIT_MS), EV_SIZE);
		CHECK(workers() > 0);
		_exit(failed());
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(fd);
}

static void short_and_bad_buffers(void)
{
	static const int sizes[] = { 0, 1, 31 };
	struct twheel_event ev[2];
	int fd = dev_open(0);

	ring_open();
	for (u32 i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		if (i == ARRAY_SIZE(sizes)) {		/* now an event is ready */
			add_many(fd, 2, 0, 0);
			await_ready(fd, 2);
		}
		sqe_read(fd, ev, (unsigned int)sizes[i % ARRAY_SIZE(sizes)], 5);
		go();
		CHECK_EQ(result_of(5, 0), -EINVAL);
	}
	sqe_read(fd, unmapped(), 64, 5);
	go();
	CHECK_EQ(result_of(5, 0), -EFAULT);
	expect_counts(fd, 2, 0, 2);
	sqe_read(fd, before_hole(EV_SIZE + 5), 2 * EV_SIZE, 5);
	go();
	CHECK_EQ(result_of(5, 0), EV_SIZE);
	CHECK_EQ(read_events(fd, ev, 2), 1);
	expect_counts(fd, 0, 0, 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

/* Into registered memory; from a registered file; an event into two pieces of memory. */
static void other_reads(void)
{
	unsigned char a[40], b[24];
	struct iovec parts[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct twheel_event ev[3];
	struct iovec fixed = { ev, sizeof(ev) };
	int fd = dev_open(0);
	struct io_uring_sqe *s;

	ring_open();
	CHECK_EQ(io_uring_register_buffers(&ring, &fixed, 1), 0);
	CHECK_EQ(io_uring_register_files(&ring, &fd, 1), 0);
	s = sqe(6);
	io_uring_prep_read_fixed(s, 0, ev, sizeof(ev) - 5, -1, 0);
	s->flags |= IOSQE_FIXED_FILE;
	go();
	add_many(fd, 3, 20 * MS, 0);
	CHECK_EQ(result_of(6, WAIT_MS), 2 * EV_SIZE);
	add_many(fd, 1, 0, 3);
	await_ready(fd, 2);
	s = sqe(7);
	io_uring_prep_readv(s, fd, parts, 2, -1);
	go();
	CHECK_EQ(result_of(7, WAIT_MS), 2 * EV_SIZE);
	expect_counts(fd, 0, 0, 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

/* Eight READs wait, for one event each: none is left over, and none gets two. */
static void many_reads(void)
{
	struct twheel_event ev[8];
	int fd = dev_open(0);
	u32 seen;

	ring_open();
	for (u32 round = 0; round < 50 && !failed(); round++) {
		for (u64 i = 0; i < 8; i++)
			sqe_read(fd, &ev[i], EV_SIZE, i);
		CHECK_EQ(io_uring_submit(&ring), 8);
		add_many(fd, 8, (round % 3) * MS, 0);
		seen = 0;
		for (u32 i = 0; i < 8; i++) {
			struct completion cqe = completion(WAIT_MS);

			if (CHECK_EQ(cqe.res, EV_SIZE))
				seen |= 1U << ev[cqe.user_data].user_data;
		}
		CHECK_EQ(seen, 0xff);
		expect_counts(fd, 0, 0, 0);
	}
	CHECK_EQ(workers(), 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

/* ---- the end of a READ ------------------------------------------------------ */

#define A_LITTLE	(2 * MS)	/* about what it takes from a tick until an event is read */

/* Wait up to @most. */
static void wait_up_to(u64 *seed, u64 most)
{
	u64 end = now_ns(CLOCK_MONOTONIC) + rnd(seed) % most;

	while (now_ns(CLOCK_MONOTONIC) < end)
		;
}

/* Cancel request @data. Returns its result. */
static int cancel_request(u64 data)
{
	int res = -ETIME;

	io_uring_prep_cancel64(sqe(data + 1), data, 0);
	go();
	for (int i = 0; i < 2; i++) {
		struct completion c = completion(WAIT_MS);

		CHECK(c.res != -ETIME);
		if (c.user_data == data)
			res = c.res;
	}
	return res;
}

/*
 * A READ is cancelled at about the time of its event. The event is in the READ's memory, or can
 * still be read. A busy host makes all interrupts late: then wait longer, until both have been.
 */
static void cancel_loses_nothing(void)
{
	u32 completed = 0, cancelled = 0;
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	u64 seed = 3;

	ring_open();
	for (u32 i = 0; (i < 500 || (i < 2000 && !(completed && cancelled))) && !failed(); i++) {
		int res;

		memset(&ev, POISON, sizeof(ev));
		sqe_read(fd, &ev, sizeof(ev), 8);
		go();
		add(fd, 0, i);
		wait_up_to(&seed, i < 500 ? A_LITTLE : 20 * A_LITTLE);
		res = cancel_request(8);
		if (res == EV_SIZE) {
			completed++;
		} else if (CHECK_EQ(res, -ECANCELED)) {
			cancelled++;
			CHECK_EQ(ev.user_data, 0xcccccccccccccccc);
			CHECK_EQ(read_one(fd, &ev), 1);
		}
		CHECK_EQ(ev.user_data, i);
		expect_counts(fd, 0, 0, 0);
	}
	diag("%u read, %u cancelled before", completed, cancelled);
	CHECK(completed && cancelled);
	io_uring_queue_exit(&ring);
	close(fd);
}

/*
 * A ring ends while a READ waits, which must not take the event that comes @lead later. Returns
 * whether it has not: the kernel ends a ring in a worker, which may take as long on a busy host.
 */
static bool ring_lets_go(u64 lead)
{
	int fd = dev_open(0), copy = dup(fd);
	struct twheel_event ev, taken;
	bool mine;

	ring_open();
	sqe_read(fd, &taken, sizeof(taken), 11);
	go();
	add(fd, lead, 78);
	close(fd);
	io_uring_queue_exit(&ring);
	mine = readable(copy, (int)(lead / MS) + 1000);
	if (mine) {
		CHECK_EQ(read_one(copy, &ev), 1);
		CHECK_EQ(ev.user_data, 78);
	}
	close(copy);
	return mine;
}

/* A READ keeps its file open, and a ring that ends lets go of it. */
static void closed_while_pending(void)
{
	u64 lead = 50 * MS;
	int fd = dev_open(0);
	struct twheel_event ev;

	ring_open();
	sqe_read(fd, &ev, sizeof(ev), 10);
	go();
	add(fd, 50 * MS, 77);
	close(fd);
	CHECK_EQ(result_of(10, WAIT_MS), EV_SIZE);
	CHECK_EQ(ev.user_data, 77);

	io_uring_queue_exit(&ring);
	while (!ring_lets_go(lead) && CHECK(lead < WAIT_MS / 2 * MS))
		lead *= 2;
}

/* ---- multishot --------------------------------------------------------------- */

/* One multishot poll: a completion for each batch of events. */
static void poll_multishot(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev[4];
	struct io_uring_sqe *s;

	ring_open();
	s = sqe(12);
	io_uring_prep_poll_multishot(s, fd, POLLIN);
	go();
	for (u32 i = 0; i < 30 && !failed(); i++) {
		struct completion cqe;

		add_many(fd, 4, 5 * MS, 4 * i);
		cqe = completion(WAIT_MS);
		CHECK_EQ(cqe.user_data, 12);
		CHECK_EQ(cqe.res, POLLIN);
		CHECK(cqe.flags & IORING_CQE_F_MORE);
		if (i % 3)		/* there is an edge although events are unread */
			continue;
		sleep_ms(10);
		while (read_events(fd, ev, 4) > 0)
			;
		while (completion(20).res != -ETIME)
			;		/* events of the last ticks, which the next reader gets */
	}
	s = sqe(13);
	io_uring_prep_poll_remove(s, 12);
	go();
	while (completion(100).res != -ETIME)
		;
	CHECK_EQ(workers(), 0);
	io_uring_queue_exit(&ring);
	close(fd);
}

static bool has_multishot(void)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&ring);
	bool has = probe && probe->last_op >= READ_MULTISHOT &&
		   io_uring_opcode_supported(probe, READ_MULTISHOT);

	io_uring_free_probe(probe);
	return has;
}

#define BUFFERS	16

static struct twheel_event store[BUFFERS][2];	/* each buffer has room for two events */

static void give_buffers(unsigned int first, int nr)
{
	struct io_uring_sqe *s = sqe(14);

	io_uring_prep_provide_buffers(s, store[first], sizeof(store[0]), nr, GROUP,
				      (int)first);
	go();
	CHECK_EQ(result_of(14, WAIT_MS), 0);
}

static void start_multishot(int fd)
{
	struct io_uring_sqe *s = sqe(15);

	io_uring_prep_rw(READ_MULTISHOT, s, fd, NULL, 0, (__u64)-1);
	s->flags |= IOSQE_BUFFER_SELECT;
	s->buf_group = GROUP;
	go();
}

/* Take completions until @want events have come. Returns the flags of the last completion. */
static u32 take(u64 *had, int want)
{
	struct completion cqe = { 0 };
	int got = 0;

	while (got < want && !failed()) {
		unsigned int buf;

		cqe = completion(WAIT_MS);
		CHECK_EQ(cqe.user_data, 15);
		if (!CHECK(cqe.res == EV_SIZE || cqe.res == 2 * EV_SIZE) ||
		    !CHECK(cqe.flags & IORING_CQE_F_BUFFER))
			break;
		buf = cqe.flags >> IORING_CQE_BUFFER_SHIFT;
		CHECK(buf < BUFFERS);
		for (int i = 0; i < cqe.res / EV_SIZE; i++, got++) {
			u64 bit = 1ULL << store[buf][i].user_data;

			CHECK(!(*had & bit));
			*had |= bit;
		}
	}
	return cqe.flags;
}

/* What a kernel returns that does not know READ_MULTISHOT. */
static void multishot_unknown(int fd)
{
	struct utsname uts;

	start_multishot(fd);
	CHECK_EQ(result_of(15, WAIT_MS), -EINVAL);
	uname(&uts);
	diag("Linux %s has no READ_MULTISHOT: EINVAL", uts.release);
}

static void read_multishot(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev[64];
	u64 had = 0, ready = 0;
	int n;

	ring_open();
	if (!has_multishot()) {
		multishot_unknown(fd);
		goto out;
	}
	give_buffers(0, BUFFERS);
	start_multishot(fd);
	for (u32 i = 0; i < 8; i++) {		/* each must have a completion */
		add_many(fd, 1, 5 * MS, i);
		CHECK(take(&had, 1) & IORING_CQE_F_MORE);
	}
	add_many(fd, 40, 5 * MS, 8);		/* 8 buffers are left, with room for 16 of them */
	take(&had, 16);
	CHECK_EQ(__builtin_popcountll(had), 24);
	n = result_of(15, WAIT_MS);
	CHECK_EQ(n, -ENOBUFS);
	await_ready(fd, 24);
	n = read_events(fd, ev, 64);		/* the others are still there */
	CHECK_EQ(n, 24);
	for (int i = 0; i < n; i++)
		ready |= 1ULL << ev[i].user_data;
	CHECK_EQ(had ^ ready, (1ULL << 48) - 1);
	CHECK_EQ(workers(), 0);
	expect_counts(fd, 0, 0, 0);
out:
	io_uring_queue_exit(&ring);
	close(fd);
}

static void forget_buffers(void)
{
	io_uring_prep_remove_buffers(sqe(18), BUFFERS, GROUP);
	go();
	result_of(18, WAIT_MS);
}

/* Cancel READ_MULTISHOT. Returns which events it has given, a bit each. */
static u64 cancel_multishot(void)
{
	bool ended = false, answered = false;
	u64 had = 0;

	io_uring_prep_cancel64(sqe(16), 15, 0);
	go();
	while (!(ended && answered) && !failed()) {
		struct completion c = completion(WAIT_MS);

		CHECK(c.res != -ETIME);
		if (c.user_data == 15)
			ended |= !(c.flags & IORING_CQE_F_MORE);
		else
			answered = true;
		for (int i = 0; c.user_data == 15 && i < c.res / EV_SIZE; i++)
			had ^= 1ULL << store[c.flags >> IORING_CQE_BUFFER_SHIFT][i].user_data;
	}
	return had;
}

/*
 * READ_MULTISHOT is cancelled while timers fire. Each event is in a buffer, or can still be read.
 */
static void multishot_cancelled(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev[4];
	u64 seed = 17;

	ring_open();
	if (!has_multishot()) {
		multishot_unknown(fd);
		goto out;
	}
	for (u32 round = 0; round < 100 && !failed(); round++) {
		u64 had;

		give_buffers(0, BUFFERS);
		start_multishot(fd);
		add_many(fd, 4, 0, 0);
		wait_up_to(&seed, A_LITTLE);
		had = cancel_multishot();
		while (had != 15 && readable(fd, WAIT_MS)) {
			int n = read_events(fd, ev, 4);

			for (int i = 0; i < n; i++)
				had ^= 1ULL << ev[i].user_data;
		}
		CHECK_EQ(had, 15);
		expect_counts(fd, 0, 0, 0);
		forget_buffers();
	}
out:
	io_uring_queue_exit(&ring);
	close(fd);
}

static const struct test tests[] = {
	{ inline_when_ready, "READ completes at once if an event is ready" },
	{ pending, "READ waits for an expiry, without a worker thread" },
	{ non_blocking, "READ of a non-blocking file waits too, RWF_NOWAIT gives EAGAIN" },
	{ forced_onto_a_worker, "a READ that is forced onto a worker thread" },
	{ short_and_bad_buffers, "READ: EINVAL under one event, EFAULT loses nothing" },
	{ other_reads, "READ_FIXED, READV, a registered file" },
	{ many_reads, "eight READs wait, and each gets an event" },
	{ cancel_loses_nothing, "a cancelled READ loses no event" },
	{ closed_while_pending, "a READ keeps its file, and a ring that ends lets go of it" },
	{ poll_multishot, "multishot poll completes for each batch" },
	{ read_multishot, "READ_MULTISHOT until buffers run out, or EINVAL" },
	{ multishot_cancelled, "a cancelled READ_MULTISHOT loses no event, or EINVAL" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
