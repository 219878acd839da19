// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* read() of /dev/twheel: when it waits, what it returns, and that no event is lost. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define EV_SIZE	sizeof(struct twheel_event)

static ssize_t err(ssize_t rc)
{
	return rc < 0 ? -errno : rc;
}

/* A file with @n events that wait, with user_data from 0. */
static int with_ready(u32 n, int flags)
{
	int fd = dev_open(flags);
	struct twheel_info i;

	add_many(fd, n, 0, 0);
	for (u32 ms = 0; ms < WAIT_MS; ms++) {
		info(fd, &i);
		if (i.nr_ready == n)
			return fd;
		sleep_ms(1);
	}
	CHECK_EQ(i.nr_ready, n);
	return fd;
}

/* Read all events: each user_data from 0 to @n - 1 must come once, except those in @had. */
static void expect_rest(int fd, u32 n, u64 had)
{
	struct twheel_event ev[64];
	int got;

	CHECK(n <= ARRAY_SIZE(ev));
	while (readable(fd, 0)) {
		got = read_events(fd, ev, ARRAY_SIZE(ev));
		if (!CHECK(got > 0))
			return;
		for (int i = 0; i < got; i++) {
			CHECK(ev[i].user_data < n);
			CHECK(!(had >> ev[i].user_data & 1));
			had |= 1ULL << ev[i].user_data;
		}
	}
	CHECK_EQ(had, n == 64 ? ~0ULL : (1ULL << n) - 1);
	expect_counts(fd, 0, 0, 0);
}

static void waits(void)
{
	int fd = dev_open(0);
	u64 start = now_ns(CLOCK_MONOTONIC);
	u64 h = add(fd, 100 * MS, 3);
	struct twheel_event ev[2];

	CHECK_EQ(read_events(fd, ev, 2), 1);
	CHECK(now_ns(CLOCK_MONOTONIC) >= start + 100 * MS);
	CHECK_EQ(ev[0].handle, h);
	CHECK_EQ(ev[0].user_data, 3);
	close(fd);
}

static void non_blocking(void)
{
	int fd = dev_open(O_NONBLOCK), blocking = dev_open(0);
	struct twheel_event ev[2];

	CHECK_EQ(read_events(fd, ev, 2), -EAGAIN);
	add(fd, HOUR, 1);
	CHECK_EQ(read_events(fd, ev, 2), -EAGAIN);
	add(fd, 0, 2);
	CHECK_EQ(read_one(fd, ev), 1);
	CHECK_EQ(ev[0].user_data, 2);
	CHECK_EQ(read_events(fd, ev, 2), -EAGAIN);
	close(fd);
	CHECK_EQ(fcntl(blocking, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(read_events(blocking, ev, 2), -EAGAIN);
	close(blocking);
}

static void short_buffers(void)
{
	int fd = with_ready(5, O_NONBLOCK), empty = dev_open(O_NONBLOCK);
	unsigned char buf[5 * EV_SIZE];
	struct twheel_event ev[2];

	memset(buf, POISON, sizeof(buf));
	CHECK_EQ(err(read(fd, buf, 0)), -EINVAL);
	CHECK_EQ(err(read(fd, buf, 1)), -EINVAL);
	CHECK_EQ(err(read(fd, buf, EV_SIZE - 1)), -EINVAL);
	CHECK_EQ(err(read(empty, buf, EV_SIZE - 1)), -EINVAL);
	CHECK_EQ(buf[0], POISON);
	CHECK_EQ(err(read(fd, buf, 2 * EV_SIZE + EV_SIZE / 2)), 2 * EV_SIZE);
	for (size_t i = 2 * EV_SIZE; i < sizeof(buf); i++)
		CHECK_EQ(buf[i], POISON);
	memcpy(ev, buf, sizeof(ev));
	expect_rest(fd, 5, 1ULL << ev[0].user_data | 1ULL << ev[1].user_data);
	close(fd);
	close(empty);
}

/* The memory ends at an event, or in the middle of one. */
static void bad_buffers(void)
{
	static const size_t there[] = { 0, 1, 31, 32, 80, 128, 1000, 1024 };

	for (size_t t = 0; t < ARRAY_SIZE(there); t++) {
		const size_t whole = there[t] / EV_SIZE;
		int fd = with_ready(40, O_NONBLOCK);
		struct twheel_event ev[32];
		char *buf = before_hole(there[t]);
		ssize_t got;
		u64 had = 0;

		got = err(read(fd, buf, 40 * EV_SIZE));
		CHECK_EQ(got, whole ? (ssize_t)(whole * EV_SIZE) : -EFAULT);
		if (got > 0) {
			memcpy(ev, buf, (size_t)got);
			for (size_t i = 0; i < whole; i++)
				had |= 1ULL << ev[i].user_data;
		}
		expect_rest(fd, 40, had);
		close(fd);
	}
}

static void nowhere(void)
{
	struct twheel_event ev = { .user_data = 1 };
	int fd = with_ready(64, O_NONBLOCK);

	CHECK_EQ(err(syscall(SYS_read, fd, NULL, 4096)), -EFAULT);
	CHECK_EQ(err(read(fd, unmapped(), 4096)), -EFAULT);
	CHECK_EQ(err(read(fd, read_only(&ev, sizeof(ev)), sizeof(ev))), -EFAULT);
	CHECK_EQ(err(read(fd, (void *)~4095UL, 64)), -EFAULT);
	expect_counts(fd, 64, 0, 64);
	expect_rest(fd, 64, 0);
	close(fd);
}

/* Events that could not be stored come first in the next read. */
static void fault_keeps_order(void)
{
	int fd = dev_open(O_NONBLOCK);
	char *buf = before_hole(3 * EV_SIZE + 5);
	struct twheel_event ev[40];

	for (u32 i = 0; i < 40; i++)
		add(fd, i * 3 * MS, i);
	await_ready(fd, 40);
	expect_counts(fd, 40, 0, 40);
	CHECK_EQ(err(read(fd, unmapped(), sizeof(ev))), -EFAULT);
	CHECK_EQ(err(read(fd, buf, sizeof(ev))), 3 * EV_SIZE);
	memcpy(ev, buf, 3 * EV_SIZE);
	CHECK_EQ(read_events(fd, ev + 3, 40), 37);
	for (u32 i = 0; i < 40; i++)
		CHECK_EQ(ev[i].user_data, i);
	close(fd);
}

/* If a read fails, timers that continue after their event must not be re-armed. */
static void fault_keeps_state(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;

	add_with(fd, 0, 0, HOUR, 1);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(err(read(fd, unmapped(), 4096)), -EFAULT);
	expect_counts(fd, 1, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.count, 1);
	expect_counts(fd, 1, 1, 0);
	add_with(fd, TWHEEL_F_KEEP, 0, 0, 2);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(err(read(fd, unmapped(), 4096)), -EFAULT);
	expect_counts(fd, 2, 1, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.user_data, 2);
	expect_counts(fd, 2, 1, 0);
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Send this process a signal when its main thread sleeps in read(). */
static void *interrupt(void *main_thread)
{
	const pid_t tid = getpid();

	await_sleep(&tid);
	pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
	return NULL;
}

static void signal_ends_it(void)
{
	pthread_t self = pthread_self(), other;
	struct sigaction sa = { .sa_handler = on_signal };
	int fd = dev_open(0);
	struct twheel_event ev;

	sigaction(SIGUSR1, &sa, NULL);
	add(fd, HOUR, 1);
	pthread_create(&other, NULL, interrupt, &self);
	CHECK_EQ(read_events(fd, &ev, 1), -EINTR);
	pthread_join(other, NULL);
	expect_counts(fd, 1, 1, 0);
	sa.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &sa, NULL);
	add(fd, 300 * MS, 2);
	pthread_create(&other, NULL, interrupt, &self);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 2);
	pthread_join(other, NULL);
	close(fd);
}

/* ---- many readers ---------------------------------------------------------- */

#define EVENTS	20000

static int shared;			/* the file that all readers use */
static unsigned char seen[EVENTS];	/* how often each user_data was read */
static u32 nr_seen;

static void see(const struct twheel_event *ev)
{
	if (!CHECK(ev->user_data < EVENTS))
		return;
	CHECK_EQ(__atomic_fetch_add(&seen[ev->user_data], 1, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&nr_seen, 1, __ATOMIC_RELAXED);
}

/* A reader that reads once, and wants @room events. */
struct reader {
	pthread_t	thread;
	pid_t		tid;
	int		room;
};

static void *read_once(void *arg)
{
	struct reader *r = arg;
	struct twheel_event ev[2];

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	if (CHECK_EQ(read_events(shared, ev, r->room), r->room))
		for (int i = 0; i < r->room; i++)
			see(&ev[i]);
	return NULL;
}

/* Start two readers, which sleep when this returns. */
static void start_readers(struct reader readers[2], int room)
{
	for (int i = 0; i < 2; i++) {
		readers[i] = (struct reader){ .room = room };
		pthread_create(&readers[i].thread, NULL, read_once, &readers[i]);
		await_sleep(&readers[i].tid);
	}
}

/* Wait until they have seen @want events. One that nobody wakes is ended by a signal. */
static void join_readers(const struct reader readers[2], u32 want)
{
	struct sigaction sa = { .sa_handler = on_signal };

	for (u32 ms = 0; ms < WAIT_MS && __atomic_load_n(&nr_seen, __ATOMIC_RELAXED) < want; ms++)
		sleep_ms(1);
	CHECK_EQ(nr_seen, want);
	sigaction(SIGUSR1, &sa, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_kill(readers[i].thread, SIGUSR1);
		pthread_join(readers[i].thread, NULL);
	}
}

/*
 * Two readers sleep, and each gets @room events. @apart says whether these are in different ticks.
 * If they are not, one reader is woken, which takes its part and must wake the other one.
 */
static void one_each(bool apart, int room)
{
	u32 want = 2 * (u32)room;
	struct reader readers[2];

	shared = dev_open(0);
	memset(seen, 0, sizeof(seen));
	nr_seen = 0;
	start_readers(readers, room);
	add_many(shared, apart ? want / 2 : want, 10 * MS, 0);
	if (apart)
		add_many(shared, want / 2, 60 * MS, want / 2);
	join_readers(readers, want);
	expect_counts(shared, 0, 0, 0);
	close(shared);
}

static void readers_one_each(void)
{
	for (int room = 1; room <= 2; room++) {
		one_each(true, room);
		one_each(false, room);
	}
}

static void *read_on(void *count)
{
	struct twheel_event ev[16];
	int got;

	while (nr_seen < EVENTS) {
		got = read_events(shared, ev, ARRAY_SIZE(ev));
		for (int i = 0; i < got; i++)
			see(&ev[i]);
		if (got > 0)
			*(u32 *)count += (u32)got;
		else if (got != -EINTR)
			break;
	}
	return NULL;
}

static void readers_compete(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	u32 counts[3] = { 0 };
	pthread_t readers[3];
	u64 seed = 11;

	sigaction(SIGUSR1, &sa, NULL);
	shared = dev_open(0);
	memset(seen, 0, sizeof(seen));
	nr_seen = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&readers[i], NULL, read_on, &counts[i]);
	for (u32 n = 0; n < EVENTS; n += 100)
		add_many(shared, 100, rnd(&seed) % (200 * MS), n);
	for (u32 ms = 0; ms < 4 * WAIT_MS && nr_seen < EVENTS && !failed(); ms += 10)
		sleep_ms(10);
	CHECK_EQ(nr_seen, EVENTS);
	nr_seen = EVENTS;
	for (int i = 0; i < 3; i++) {	/* for the readers that wait for more */
		pthread_kill(readers[i], SIGUSR1);
		pthread_join(readers[i], NULL);
	}
	for (u32 i = 0; i < EVENTS; i++)
		CHECK_EQ(seen[i], 1);
	diag("3 readers got %u, %u, %u", counts[0], counts[1], counts[2]);
	expect_counts(shared, 0, 0, 0);
	close(shared);
}

/* ---- a reader that hangs ---------------------------------------------------- */

/**
 * struct hung - a reader in a thread that stays in the middle of storing an event
 * @fd:		the file
 * @s:		the memory in which it is stuck
 * @got:	what its read() returned
 * @ev:		the event, if there was one
 * @thread:	the thread
 */
struct hung {
	int			fd;
	struct stall		s;
	ssize_t			got;
	struct twheel_event	ev;
	pthread_t		thread;
};

static void *hang_on(void *arg)
{
	struct hung *h = arg;

	h->got = err(read(h->fd, h->s.page, EV_SIZE));
	return NULL;
}

/* An event must be ready. Returns when the reader has taken it and is stuck. */
static void hang(struct hung *h, int fd)
{
	h->fd = fd;
	h->s = stall_new();
	pthread_create(&h->thread, NULL, hang_on, h);
	stall_wait(&h->s);
}

static void hung_ends(struct hung *h, bool good)
{
	if (good)
		stall_give(&h->s);
	else
		stall_fail(&h->s);
	pthread_join(h->thread, NULL);
	CHECK_EQ(h->got, good ? (ssize_t)EV_SIZE : -EFAULT);
	if (h->got > 0)
		memcpy(&h->ev, h->s.page, EV_SIZE);
	stall_end(&h->s);
}

/*
 * Read @want events. As long as poll() reports an event, read() must return it. Returns how many
 * there were.
 */
static u32 read_all(int fd, u32 want, u64 *had)
{
	struct twheel_event ev[64];
	u32 nr = 0;

	while (readable(fd, nr < want ? WAIT_MS : 50)) {
		int got = read_events(fd, ev, ARRAY_SIZE(ev));

		if (!CHECK(got > 0))
			break;
		for (int i = 0; i < got; i++)
			had[ev[i].user_data / 64] |= 1ULL << ev[i].user_data % 64;
		nr += (u32)got;
	}
	return nr;
}

/*
 * While a reader is stuck, others read, with poll() and without, and wait. What the stuck reader
 * puts back comes first.
 */
static void hangs_alone(bool good)
{
	int fd = with_ready(1, O_NONBLOCK);
	u64 had[4] = { 0 };
	struct twheel_event ev[2];
	struct hung h;

	hang(&h, fd);
	CHECK(!readable(fd, 0));
	CHECK_EQ(read_events(fd, ev, 2), -EAGAIN);
	add_many(fd, 200, 0, 1);
	CHECK_EQ(read_all(fd, 200, had), 200);
	CHECK(had[0] == ~1ULL && had[1] == ~0ULL && had[2] == ~0ULL && had[3] == 0x1ff);
	expect_counts(fd, 1, 0, 0);
	add_many(fd, 1, 0, 201);
	CHECK(readable(fd, WAIT_MS));
	hung_ends(&h, good);
	CHECK_EQ(read_events(fd, ev, 2), good ? 1 : 2);
	CHECK_EQ(ev[0].user_data, good ? 201 : 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* How many events a page has: more than are read in one lock hold. */
#define PAGE_EVENTS	(4096 / EV_SIZE)

static void *hang_on_many(void *arg)
{
	struct hung *h = arg;

	h->got = err(read(h->fd, h->s.page, PAGE_EVENTS * EV_SIZE));
	return NULL;
}

/* A signal comes while the first events are being stored. These are read, and the others stay. */
static void signal_ends_read(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct hung h = { .fd = with_ready(PAGE_EVENTS, O_NONBLOCK), .s = stall_new() };
	u64 had[2] = { 0 };
	u32 nr;

	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&h.thread, NULL, hang_on_many, &h);
	stall_wait(&h.s);
	pthread_kill(h.thread, SIGUSR1);
	stall_give(&h.s);
	pthread_join(h.thread, NULL);
	stall_end(&h.s);
	CHECK(h.got > 0 && h.got % (ssize_t)EV_SIZE == 0);
	nr = (u32)h.got / EV_SIZE;
	diag("%u events of %zu", nr, PAGE_EVENTS);
	CHECK(nr < PAGE_EVENTS);
	CHECK_EQ(read_all(h.fd, PAGE_EVENTS - nr, had), PAGE_EVENTS - nr);
	expect_counts(h.fd, 0, 0, 0);
	close(h.fd);
}

static void reader_hangs(void)
{
	hangs_alone(true);
	hangs_alone(false);
}

/* Readers that wait get the events that come while another reader is stuck. */
static void reader_hangs_and_others_wait(void)
{
	struct reader readers[2];
	struct hung h;

	shared = with_ready(1, 0);
	hang(&h, shared);
	memset(seen, 0, sizeof(seen));
	nr_seen = 0;
	start_readers(readers, 1);
	add_many(shared, 2, 10 * MS, 7);
	join_readers(readers, 2);
	CHECK(nr_seen == 2 && seen[7] == 1 && seen[8] == 1);
	hung_ends(&h, true);
	CHECK_EQ(h.ev.user_data, 0);
	expect_counts(shared, 0, 0, 0);
	close(shared);
}

/*
 * Reader 1 is stuck with an event of a timer, which is then re-armed. Reader 2 is stuck with the
 * timer's next event. When reader 1 continues, with success or not, the timer is still reader 2's.
 */
static void handed_on(bool first, bool second)
{
	int fd = dev_open(O_NONBLOCK);
	u64 h = add_with(fd, TWHEEL_F_KEEP, 0, 0, 5);
	struct twheel_event ev;
	struct hung a, b;

	CHECK(readable(fd, WAIT_MS));
	hang(&a, fd);
	CHECK_EQ(mod(fd, h, 0, TWHEEL_F_KEEP), 0);
	CHECK(readable(fd, WAIT_MS));
	hang(&b, fd);
	hung_ends(&a, first);
	CHECK(!readable(fd, 0));
	CHECK_EQ(cancel(fd, h), -EALREADY);
	expect_counts(fd, 1, 0, 0);
	hung_ends(&b, second);
	if (second)
		CHECK(b.ev.handle == h && b.ev.flags == TWHEEL_EV_MORE);
	else
		CHECK(read_one(fd, &ev) == 1 && ev.handle == h);
	CHECK_EQ(read_events(fd, &ev, 1), -EAGAIN);
	expect_counts(fd, 1, 0, 0);
	CHECK_EQ(mod(fd, h, 0, 0), 0);
	CHECK(read_one(fd, &ev) == 1 && ev.flags == 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/*
 * When the event of a one-shot is read, the timer ends. If the event cannot be stored, the timer is
 * as before.
 */
static void last_is_being_read(bool good)
{
	int fd = with_ready(1, O_NONBLOCK);
	struct twheel_event ev;
	struct hung r;
	u64 h = 1ULL << 32;

	hang(&r, fd);
	CHECK_EQ(mod(fd, h, 0, 0), -EALREADY);
	CHECK_EQ(mod(fd, h, 0, TWHEEL_F_KEEP), -EALREADY);
	CHECK_EQ(mod(fd, h, 0, TWHEEL_F_PENDING), -ENOENT);
	CHECK(!readable(fd, 20));
	hung_ends(&r, good);
	if (good) {
		CHECK(r.ev.handle == h && r.ev.flags == 0);
		CHECK_EQ(mod(fd, h, 0, 0), -ENOENT);
	} else {
		CHECK_EQ(mod(fd, h, 0, 0), 0);
		CHECK(read_one(fd, &ev) == 1 && ev.handle == h && ev.flags == 0);
	}
	CHECK_EQ(read_events(fd, &ev, 1), -EAGAIN);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/*
 * While an event of a timer that continues is being read, the timer cannot be made to end, be
 * cancelled or be drained.
 */
static void more_is_being_read(u32 flags, u64 interval, bool good)
{
	int fd = dev_open(O_NONBLOCK);
	u64 h = add_with(fd, flags, 0, interval, 5);
	struct twheel_op op = { .handle = h, .flags = flags, .expires_ns = HOUR,
				.interval_ns = interval };
	struct twheel_event ev;
	struct hung r;

	CHECK(readable(fd, WAIT_MS));
	hang(&r, fd);
	CHECK_EQ(mod(fd, h, 0, 0), -EALREADY);
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_MOD, &op), 0);
	CHECK_EQ(mod(fd, h, 0, 0), -EALREADY);		/* it is armed */
	CHECK_EQ(cancel(fd, h), -EALREADY);
	CHECK_EQ(drain(fd, &op, 1, 0), 0);
	op = (struct twheel_op){ .handle = h, .flags = flags, .interval_ns = interval };
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_MOD, &op), 1);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(cancel(fd, h), -EALREADY);		/* it is ready */
	expect_counts(fd, 1, 0, 1);
	hung_ends(&r, good);
	CHECK(!good || (r.ev.handle == h && r.ev.flags == TWHEEL_EV_MORE));
	CHECK_EQ(mod(fd, h, 0, 0), 0);
	CHECK(read_one(fd, &ev) == 1 && ev.handle == h && ev.flags == 0);
	CHECK_EQ(cancel(fd, h), -ENOENT);
	CHECK_EQ(read_events(fd, &ev, 1), -EAGAIN);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void mod_while_read(void)
{
	for (int good = 0; good < 2; good++) {
		last_is_being_read(good);
		more_is_being_read(TWHEEL_F_KEEP, 0, good);
		more_is_being_read(0, HOUR, good);
	}
}

static void two_readers_hang(void)
{
	for (int i = 0; i < 4; i++)
		handed_on(i & 1, i & 2);
}

/* ---- dropped events -------------------------------------------------------- */

static void cancel_drops(void)
{
	int fd = dev_open(O_NONBLOCK);
	u64 once = add(fd, 0, 1), twice;
	struct twheel_event ev[4];

	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(cancel(fd, once), 0);
	CHECK(!readable(fd, 0));
	CHECK_EQ(read_events(fd, ev, 4), -EAGAIN);
	twice = add_with(fd, 0, 0, MS, 2);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(cancel(fd, twice), 0);
	CHECK(!readable(fd, 30));
	CHECK_EQ(read_events(fd, ev, 4), -EAGAIN);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void mod_drops(void)
{
	int fd = dev_open(O_NONBLOCK);
	u64 h = add(fd, 0, 1), again;
	struct twheel_event ev[4];

	CHECK(readable(fd, WAIT_MS));
	again = now_ns(CLOCK_MONOTONIC) + 50 * MS;
	CHECK_EQ(mod(fd, h, 50 * MS, 0), 0);
	CHECK_EQ(read_one(fd, ev), 1);
	CHECK_EQ(ev[0].handle, h);
	CHECK(ev[0].expires_ns >= again);
	CHECK_EQ(read_events(fd, ev, 4), -EAGAIN);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* ---- other calls ----------------------------------------------------------- */

static void no_position(void)
{
	int fd = with_ready(3, O_NONBLOCK);
	char buf[4 * EV_SIZE];

	CHECK_EQ(err(pread(fd, buf, sizeof(buf), 0)), -ESPIPE);
	CHECK_EQ(err(pread(fd, buf, sizeof(buf), 32)), -ESPIPE);
	CHECK_EQ(err(lseek(fd, 0, SEEK_SET)), -ESPIPE);
	CHECK_EQ(err(lseek(fd, 0, SEEK_CUR)), -ESPIPE);
	CHECK_EQ(err(lseek(fd, 32, SEEK_END)), -ESPIPE);
	expect_rest(fd, 3, 0);
	close(fd);
}

static void no_write(void)
{
	struct twheel_op op = { .op = TWHEEL_OP_ADD };
	int fd = dev_open(0);
	ssize_t rc = err(write(fd, &op, sizeof(op)));

	CHECK(rc == -EINVAL || rc == -EBADF);
	rc = err(pwrite(fd, &op, sizeof(op), 0));
	CHECK(rc == -EINVAL || rc == -EBADF || rc == -ESPIPE);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void vectors(void)
{
	unsigned char a[40], b[56];	/* three events, the second in both */
	struct iovec iov[] = { { a, sizeof(a) }, { NULL, 0 }, { b, sizeof(b) } };
	struct twheel_event ev[3];
	int fd = with_ready(5, O_NONBLOCK);
	u64 had = 0;

	CHECK_EQ(err(readv(fd, iov, 3)), 3 * EV_SIZE);
	memcpy(ev, a, sizeof(a));
	memcpy((char *)ev + sizeof(a), b, sizeof(b));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ev[i].count, 1);
		had |= 1ULL << (ev[i].user_data & 63);
	}
	expect_rest(fd, 5, had);
	close(fd);
}

/* On a blocking file, a single call can ask not to wait. */
static void nowait(void)
{
	int fd = dev_open(0);
	struct twheel_event ev;
	struct iovec iov = { &ev, sizeof(ev) };

	CHECK_EQ(err(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)), -EAGAIN);
	add(fd, 0, 1);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(err(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)), EV_SIZE);
	CHECK_EQ(ev.user_data, 1);
	CHECK_EQ(err(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)), -EAGAIN);
	close(fd);
}

/* Memory that was never touched needs a page fault, which waits. No event may be lost by that. */
#define FAULTS		300

/*
 * Read each event into a page that was never touched, while a signal comes. There is one for each
 * read(): signals at a fixed rate could come faster than a slow machine handles them.
 */
static void read_with_signals(int fd)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct itimerval once = { 0 };
	u32 got = 0;

	sigaction(SIGALRM, &act, NULL);
	while (got < FAULTS) {
		char *page = mmap(NULL, EV_SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ssize_t done;

		once.it_value.tv_usec = 1 + (once.it_value.tv_usec + 97) % 300;
		setitimer(ITIMER_REAL, &once, NULL);
		done = err(read(fd, page, EV_SIZE));
		if (!CHECK(done == EV_SIZE || done == -EINTR))
			break;
		got += done > 0;
		munmap(page, EV_SIZE);
	}
	_exit(failed());
}

static void signals_and_faults(void)
{
	int fd = dev_open(O_NONBLOCK), status = 0;
	pid_t pid, ended = 0;

	add_many(fd, FAULTS, 1, 0);
	await_ready(fd, FAULTS);
	pid = fork();
	if (!pid)
		read_with_signals(fd);
	for (u32 ms = 0; !ended && ms < 10 * WAIT_MS; ms += 10) {
		sleep_ms(10);
		ended = waitpid(pid, &status, WNOHANG);
	}
	CHECK(ended == pid && !status);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

#define MIXED		200

static u32 kind_of(u32 i)
{
	return i % 11 % 3 == 1 ? TWHEEL_F_KEEP : 0;
}

static u64 period_of(u32 i)
{
	return i % 70 == 69 ? HOUR : 0;
}

/*
 * Add a timer for each ms from *@at on. A timer that is armed after its time has no place in the
 * order. So if the host was away, begin again, in a new file and with more time. Returns the file.
 */
static int add_mixed(u64 *at)
{
	for (unsigned int ms = 200;; ms *= 2) {
		int fd = dev_open(O_NONBLOCK);

		*at = whole_ms(ms);
		for (u32 i = 0; i < MIXED; i++)
			add_with(fd, TWHEEL_F_ABS | kind_of(i), *at + i * MS, period_of(i), i);
		if (now_ns(CLOCK_MONOTONIC) < *at || !CHECK(ms < WAIT_MS))
			return fd;
		close(fd);
	}
}

/*
 * Plain events with others between them, of which up to @room are read at once: each once, in
 * order.
 */
static void mixed_in(u32 room)
{
	u64 at;
	int fd = add_mixed(&at);
	struct twheel_event ev[MIXED];
	u32 more = 0, got = 0;
	int nr;

	await_ready(fd, MIXED);
	while (got < MIXED && (nr = read_events(fd, ev, room)) > 0) {
		for (int k = 0; k < nr; k++, got++) {
			bool goes_on = kind_of(got) || period_of(got);

			CHECK_EQ(ev[k].user_data, got);
			CHECK_EQ(ev[k].expires_ns, at + got * MS);
			CHECK_EQ(ev[k].count, 1);
			CHECK_EQ(ev[k].flags, goes_on ? TWHEEL_EV_MORE : 0);
			more += goes_on;
		}
		if (!CHECK(nr == (int)room || got == MIXED))
			break;
	}
	CHECK_EQ(got, MIXED);
	CHECK_EQ(read_events(fd, ev, 1), -EAGAIN);
	expect_counts(fd, more, MIXED / 70, 0);
	close(fd);
}

static void mixed(void)
{
	mixed_in(MIXED);
	mixed_in(3);
	mixed_in(1);
}

static void untouched(void)
{
	static const struct {
		u32	flags;
		u64	interval;
	} kinds[] = { { 0, 0 }, { TWHEEL_F_KEEP, 0 }, { 0, HOUR }, { TWHEEL_F_DELAY, HOUR } };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool more = kinds[i].flags || kinds[i].interval;
		int fd = dev_open(O_NONBLOCK);
		struct twheel_event *ev;
		u64 h;

		ev = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (ev == MAP_FAILED)
			bail("mmap");
		h = add_with(fd, kinds[i].flags, 0, kinds[i].interval, i);
		CHECK(readable(fd, WAIT_MS));
		CHECK_EQ(err(read(fd, ev, EV_SIZE)), EV_SIZE);
		CHECK(ev->handle == h && ev->user_data == i && ev->count == 1);
		CHECK_EQ(ev->flags, more ? TWHEEL_EV_MORE : 0);
		CHECK_EQ(err(read(fd, ev, EV_SIZE)), -EAGAIN);
		expect_counts(fd, more, !!kinds[i].interval, 0);
		munmap(ev, page);
		close(fd);
	}
}

static const struct test tests[] = {
	{ waits, "a read waits for the first event and takes all that is ready" },
	{ non_blocking, "O_NONBLOCK: EAGAIN" },
	{ short_buffers, "whole events only, EINVAL under one" },
	{ bad_buffers, "memory that ends in the middle: a short count, the rest stays" },
	{ nowhere, "no memory at all: EFAULT, all events stay" },
	{ untouched, "memory that was never touched: one event, of each kind" },
	{ fault_keeps_order, "events that could not be stored come first, in order" },
	{ fault_keeps_state, "EFAULT leaves periodic and KEEP timers ready" },
	{ signal_ends_it, "signals: EINTR, or the read is restarted" },
	{ readers_one_each, "two sleeping readers get one event each, or two" },
	{ readers_compete, "three readers: none lost, none twice" },
	{ signal_ends_read, "a signal ends read(), and the rest stays ready" },
	{ reader_hangs, "a reader stuck in a fault delays no other; poll() and read() agree" },
	{ reader_hangs_and_others_wait, "a reader stuck in a fault delays no reader that waits" },
	{ two_readers_hang, "two readers stuck with events of one timer" },
	{ mod_while_read, "MOD while an event is being read: no event comes after the last" },
	{ cancel_drops, "CANCEL drops the unread event" },
	{ mod_drops, "MOD drops the unread event" },
	{ no_position, "pread and lseek: ESPIPE" },
	{ no_write, "write: EINVAL" },
	{ signals_and_faults, "signals while memory is read in: read() ends all the same" },
	{ mixed, "events of all kinds: each once, in order, however many are read at once" },
	{ vectors, "readv, an event in two pieces" },
	{ nowait, "RWF_NOWAIT: EAGAIN" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
