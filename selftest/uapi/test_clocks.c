// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Timers of CLOCK_REALTIME while the clock is set forward and back, and the events that report
 * this. Each test leaves the clock as if it had never been set.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define DAY	(24 * HOUR)
/* By how much the clock is set. */
#define BY_S	((long long)SEC)
#define BY_H	((long long)HOUR)
#define ASK	(TWHEEL_F_ABS | TWHEEL_F_CANCEL_ON_SET)
#define NEVER	(3650 * DAY)

static int real_open(int flags)
{
	const struct twheel_setup s = { .clockid = CLOCK_REALTIME };
	int fd = dev_open(flags);

	CHECK_EQ(setup(fd, &s), 0);
	return fd;
}

static u64 now(void)
{
	return now_ns(CLOCK_REALTIME);
}

/* Set the clock forward by @ns, or back if that is negative. */
static void set_by(long long ns)
{
	u64 to = now() + (u64)ns;
	struct timespec ts = { .tv_sec = (time_t)(to / SEC), .tv_nsec = (long)(to % SEC) };

	CHECK(!clock_settime(CLOCK_REALTIME, &ts));
}

/* The next event must be that of timer @user_data, not early, with @count and @flags. */
static void expect_event(int fd, u64 user_data, u32 count, u32 flags)
{
	struct twheel_event ev;

	if (!CHECK_EQ(read_one(fd, &ev), 1))
		return;
	CHECK_EQ(ev.user_data, user_data);
	CHECK_EQ(ev.count, count);
	CHECK_EQ(ev.flags, flags);
	if (count)
		CHECK(now() >= ev.expires_ns);
}

static void in_time(void)
{
	int fd = real_open(0);
	u64 at = now() + HOUR, h = add_with(fd, TWHEEL_F_ABS, at, 0, 1);
	struct twheel_op op;

	CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, at);
	CHECK_EQ(mod(fd, h, now() + SEC / 2, TWHEEL_F_ABS), 1);
	add(fd, 600 * MS, 2);
	expect_event(fd, 1, 1, 0);
	expect_event(fd, 2, 1, 0);
	add_with(fd, TWHEEL_F_ABS, 0, 0, 3);
	expect_event(fd, 3, 1, 0);
	close(fd);
}

static void forward(void)
{
	int fd = real_open(0);
	u64 t = now(), h;

	add_with(fd, TWHEEL_F_ABS, t + 30 * 60 * SEC, 0, 1);
	add_with(fd, TWHEEL_F_ABS, t + HOUR - SEC, 0, 2);
	h = add_with(fd, TWHEEL_F_ABS, t + 2 * HOUR, 0, 3);
	CHECK(!readable(fd, 20));
	set_by(HOUR);
	expect_event(fd, 1, 1, 0);
	expect_event(fd, 2, 1, 0);
	CHECK(!readable(fd, 20));
	expect_counts(fd, 1, 1, 0);
	CHECK_EQ(cancel(fd, h), 1);
	set_by(-BY_H);
	close(fd);
}

/*
 * Arm timer 1 for *@at, which is soon, and set the clock back by @ns before it fires. If the host
 * was away until it was due, do that again. Returns its handle.
 */
static u64 armed_before(int fd, u64 ns, u64 *at)
{
	for (u32 tries = 0;; tries++) {
		u64 h;

		*at = now() + 200 * MS;
		h = add_with(fd, TWHEEL_F_ABS, *at, 0, 1);
		set_by(-(long long)ns);
		if (now() + ns < *at || !CHECK(tries < 20))
			return h;
		set_by((long long)ns);
		CHECK(cancel(fd, h) >= 0);
	}
}

/* Arm a timer, set the clock back by @ns, and arm another one for a time in between. */
static void back_by(u64 ns)
{
	int fd = real_open(0);
	u64 at, h = armed_before(fd, ns, &at);

	/* Timer 2 is the later one, however long the host is away in between. */
	add(fd, 50 * MS, 3);
	add_with(fd, TWHEEL_F_ABS, now() + 100 * MS, 0, 2);
	expect_event(fd, 3, 1, 0);
	expect_event(fd, 2, 1, 0);
	CHECK(!readable(fd, 300));
	expect_counts(fd, 1, 1, 0);
	/* A timer that was armed before may be re-armed for a time in between. */
	CHECK_EQ(mod(fd, h, now() + 20 * MS, TWHEEL_F_ABS), 1);
	expect_event(fd, 1, 1, 0);
	add_with(fd, TWHEEL_F_ABS, at, 0, 4);
	set_by((long long)ns);
	expect_event(fd, 4, 1, 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void back(void)
{
	back_by(10 * SEC);
	back_by(50 * SEC);
	back_by(HOUR);
	back_by(365 * DAY);
}

/* Set the clock back again, while timers wait that were armed after it was set back. */
static void back_and_back(void)
{
	int fd = real_open(0);
	long long steps[] = { 10 * SEC, HOUR, 3 * SEC, DAY, 20 * SEC };
	u64 t = now();

	for (u32 i = 0; i < ARRAY_SIZE(steps); i++) {
		add_with(fd, TWHEEL_F_ABS, now() + 2 * SEC, 0, 100 + i);
		set_by(-steps[i]);
		add_with(fd, TWHEEL_F_ABS, now() + 10 * MS, 0, i);
		expect_event(fd, i, 1, 0);
		CHECK(!readable(fd, 5));
	}
	CHECK(now() < t);
	/*
	 * They must fire in the order of their times, which is the reverse of the order of arming.
	 */
	for (u32 i = ARRAY_SIZE(steps); i--; )
		set_by(steps[i]);
	for (int i = ARRAY_SIZE(steps) - 1; i >= 0; i--)
		expect_event(fd, 100 + (u64)i, 1, 0);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

#define MANY	100000

/**
 * struct harvest - what has come of MANY timers, and of others that do not count
 * @fd:		the file
 * @latest:	the latest time that the clock has shown
 * @got:	how many timers have fired
 * @wrong:	how many of these came early or twice
 * @seen:	a byte for each timer
 */
struct harvest {
	int		fd;
	u64		latest;
	u32		got;
	u32		wrong;
	unsigned char	*seen;
};

/* Read all events that are ready. */
static void reap(struct harvest *h)
{
	struct twheel_event ev[READ_MAX / 16];
	int n;

	while ((n = read_events(h->fd, ev, ARRAY_SIZE(ev))) > 0) {
		h->latest = now() > h->latest ? now() : h->latest;
		for (int i = 0; i < n; i++) {
			h->wrong += ev[i].expires_ns > h->latest;
			if (ev[i].user_data >= MANY)
				continue;
			h->wrong += h->seen[ev[i].user_data]++;
			h->got++;
		}
	}
}

/*
 * Many timers are armed while the wheel follows a clock that goes back and forth. Each must fire,
 * at its time.
 */
static void many(void)
{
	struct harvest h = { .fd = real_open(O_NONBLOCK), .seen = calloc(1, MANY) };

	for (u32 i = 0; i < 10; i++) {
		add_many(h.fd, MANY / 10, HOUR + i * 7 * SEC, i * (MANY / 10));
		h.latest = now() > h.latest ? now() : h.latest;
		set_by(i % 2 ? 2 * BY_H - BY_S : -2 * BY_H);
		add_with(h.fd, TWHEEL_F_ABS, now() + 1, 0, MANY);
		CHECK(readable(h.fd, WAIT_MS));
		reap(&h);
	}
	set_by(2 * BY_H);
	while (h.got < MANY && readable(h.fd, WAIT_MS))
		reap(&h);
	set_by(-2 * BY_H + 5 * BY_S);
	CHECK_EQ(h.got, MANY);
	CHECK_EQ(h.wrong, 0);
	expect_counts(h.fd, 0, 0, 0);
	free(h.seen);
	close(h.fd);
}

/*
 * The clock is set back while many timers are armed. A timer that is armed after that must not be
 * late because of them. Returns by how much one was late.
 */
static u64 late_behind(void)
{
	int fd = real_open(0);
	u64 late = 0;

	add_many(fd, MANY, 2 * HOUR, 0);
	set_by(-BY_H);
	for (u32 i = 0; i < 50; i++) {
		u64 at = now() + 10 * MS, is;

		add_with(fd, TWHEEL_F_ABS, at, 0, MANY);
		expect_event(fd, MANY, 1, 0);
		is = now();
		late = is - at > late ? is - at : late;
	}
	diag("at most %u us late", (u32)(late / 1000));
	expect_counts(fd, MANY, MANY, 0);
	set_by(HOUR);
	close(fd);
	return late;
}

/* If the wheel makes a timer late, it does so each time. A host that was away is there again. */
static void promptly(void)
{
	u32 tries = 0;

	while (late_behind() >= SEC && CHECK(++tries < 5))
		;
}

#define WALKS		1200U
#define BY_MS		((long long)MS)

/**
 * struct walk - the state of tolerant(): timers with tolerances, on a clock that is stepped all the
 *		while
 * @fd:		the file
 * @seed:	the seed of what is done
 * @latest:	the latest time that the clock has shown
 * @ahead:	by how much the clock has been set in all
 * @left:	timers that must still fire
 * @handle:	the handle of each timer
 * @deadline:	the deadline of each timer
 */
struct walk {
	int		fd;
	u64		seed;
	u64		latest;
	long long	ahead;
	u32		left;
	u64		handle[WALKS];
	u64		deadline[WALKS];
};

static void walk_look(struct walk *w)
{
	w->latest = now() > w->latest ? now() : w->latest;
}

/*
 * Set the clock by @ns. What it has shown last before that is told by the other clock: the host may
 * be away after any look, and timers fire meanwhile.
 */
static void walk_step(struct walk *w, long long ns)
{
	u64 mono = now_ns(CLOCK_MONOTONIC), ahead = now() - mono, last;

	set_by(ns);
	last = now_ns(CLOCK_MONOTONIC) + ahead;
	w->latest = last > w->latest ? last : w->latest;
}

/* Arm timer @i, or re-arm it if it has a handle. */
static void walk_arm(struct walk *w, u32 i)
{
	bool again = w->handle[i];
	struct twheel_op op = {
		.flags = TWHEEL_F_ABS, .handle = w->handle[i], .user_data = again ? 0 : i,
		.expires_ns = now() + rnd(&w->seed) % (60 * MS),
	};
	u64 deadline = op.expires_ns;
	int res;

#ifndef FIRST_HEADER
	op.tolerance_ns = rnd(&w->seed) % 3 ? rnd(&w->seed) % (40 * MS) : 0;
#endif
	res = op_ioctl(w->fd, again ? TWHEEL_IOC_MOD : TWHEEL_IOC_ADD, &op);
	if (!CHECK(res >= 0 || (again && res == -ENOENT)) || res < 0)
		return;
	w->left += !again;
	w->handle[i] = op.handle;
	w->deadline[i] = deadline;
}

static void walk_reap(struct walk *w)
{
	struct twheel_event ev[64];
	int n;

	while ((n = read_events(w->fd, ev, ARRAY_SIZE(ev))) > 0) {
		walk_look(w);
		for (int i = 0; i < n; i++) {
			u64 is = ev[i].user_data;

			CHECK(ev[i].expires_ns <= w->latest);
			CHECK(is < WALKS && ev[i].expires_ns == w->deadline[is]);
		}
		w->left -= (u32)n;
	}
}

/* No timer is early, and each fires when the clock has come to its time. */
static void tolerant(void)
{
	static struct walk w;

	w = (struct walk){ .fd = real_open(O_NONBLOCK), .seed = 17 };
	for (u32 i = 0; i < WALKS && !failed(); i++) {
		walk_arm(&w, i);
		if (i % 3 == 0)
			walk_arm(&w, (u32)(rnd(&w.seed) % (i + 1)));
		if (i % 16 == 5) {
			long long by = (long long)(rnd(&w.seed) % 100) - 50;

			walk_step(&w, by * BY_MS);
			w.ahead += by * BY_MS;
		}
		if (i % 8 == 7)
			walk_reap(&w);
	}
	walk_step(&w, -w.ahead);
	while (w.left && CHECK(readable(w.fd, WAIT_MS)))
		walk_reap(&w);
	expect_counts(w.fd, 0, 0, 0);
	close(w.fd);
}

/*
 * A timer that may be late is no later than that, where the clock was set back by so little that
 * the others stay in the wheel, which is ahead of the clock then.
 */
static void tolerant_behind(void)
{
	struct twheel_op op = { .flags = TWHEEL_F_ABS, .user_data = 1 };
	int fd = real_open(0);
	u64 begin;

	add_many(fd, 100, HOUR, 2);
	sleep_ms(50);
	set_by(-30 * BY_S);
	for (u32 i = 0; i < 4; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		op.handle = 0;
		op.expires_ns = now() + 20 * MS;
#ifndef FIRST_HEADER
		op.tolerance_ns = 10 * MS;
#endif
		CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
		expect_event(fd, 1, 1, 0);
		CHECK(now_ns(CLOCK_MONOTONIC) - begin < 10 * SEC);
	}
	set_by(30 * BY_S);
	close(fd);
}

/* With a period that no host takes for anything in between. */
static void periodic(void)
{
	int fd = real_open(0);
	u64 t = now() + 10 * MS, h = add_with(fd, TWHEEL_F_ABS, t, HOUR, 1);
	struct twheel_event ev;
	struct twheel_op op;

	expect_event(fd, 1, 1, TWHEEL_EV_MORE);
	set_by(60 * BY_H);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.count, 60);
	CHECK_EQ(ev.expires_ns, t + HOUR);
	set_by(BY_H);
	CHECK(readable(fd, WAIT_MS));
	/* Its event is ready when the clock is set back, so it has fired once. */
	set_by(-61 * BY_H);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(ev.count, 1);
	CHECK_EQ(ev.expires_ns, t + 61 * HOUR);
	CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, t + 62 * HOUR);
	CHECK(!readable(fd, 100));
	close(fd);
}

/* ---- events that tell of it ---------------------------------------------------- */

static void told(long long by)
{
	int fd = real_open(0);
	u64 keep, period, t = now();
	struct twheel_op op;

	add_with(fd, ASK, t + NEVER, 0, 1);
	keep = add_with(fd, ASK | TWHEEL_F_KEEP, t + NEVER, 0, 2);
	period = add_with(fd, ASK, t + NEVER, SEC, 3);
	add_with(fd, TWHEEL_F_ABS, t + NEVER, 0, 4);
	add_with(fd, TWHEEL_F_CANCEL_ON_SET, NEVER, 0, 5);
	CHECK(!readable(fd, 20));
	set_by(by);
	for (u32 i = 0; i < 4; i++) {
		struct twheel_event ev;

		CHECK_EQ(read_one(fd, &ev), 1);
		CHECK(ev.user_data && ev.user_data != 4 && ev.user_data < 6);
		CHECK_EQ(ev.count, 0);
		CHECK(ev.expires_ns >= t + NEVER);
		CHECK_EQ(ev.flags, TWHEEL_EV_CLOCK_SET |
			 (ev.handle == keep || ev.handle == period ? TWHEEL_EV_MORE : 0));
	}
	CHECK(!readable(fd, 20));
	expect_counts(fd, 3, 2, 0);
	CHECK_EQ(query(fd, keep, TWHEEL_F_ABS, &op), TWHEEL_STATE_IDLE);
	CHECK_EQ(query(fd, period, TWHEEL_F_ABS, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, t + NEVER);
	/* The same again. */
	CHECK_EQ(mod(fd, keep, now() + NEVER, ASK | TWHEEL_F_KEEP), 0);
	set_by(-by);
	await_ready(fd, 2);
	expect_counts(fd, 3, 1, 2);
	close(fd);
}

static void told_of_both(void)
{
	told(HOUR);
	told(-BY_H);
	told(5 * (long long)MS);
}

#define WITNESS	99

/*
 * Set the clock forward by an hour. The file has two timers that ask for an event. One of them is a
 * witness, which becomes ready only because its file is told. The other one must have this event.
 */
static void told_beside_witness(int fd, u64 user_data)
{
	set_by(HOUR);
	await_ready(fd, 2);
	for (u32 i = 0; i < 2; i++) {
		struct twheel_event ev;

		CHECK_EQ(read_one(fd, &ev), 1);
		CHECK(ev.user_data == WITNESS || ev.user_data == user_data);
		CHECK_EQ(ev.count, ev.user_data == WITNESS ? 0 : 1);
		CHECK_EQ(ev.flags, TWHEEL_EV_CLOCK_SET);
	}
	expect_counts(fd, 0, 0, 0);
}

/* A timer whose event was ready already, and one whose time has come because the clock was set. */
static void told_late(void)
{
	int fd = real_open(0);

	add_with(fd, ASK, now() + 10 * MS, 0, 1);
	CHECK(readable(fd, WAIT_MS));
	add_with(fd, ASK, now() + NEVER, 0, WITNESS);
	told_beside_witness(fd, 1);
	/*
	 * This timer may fire before its file is told: until then its event does not say that the
	 * clock was set.
	 */
	add_with(fd, ASK, now() + 30 * 60 * SEC, 0, 2);
	add_with(fd, ASK, now() + NEVER, 0, WITNESS);
	told_beside_witness(fd, 2);
	set_by(-2 * BY_H);
	close(fd);
}

static void *set_later(void *arg)
{
	sleep_ms(50);
	set_by(*(long long *)arg);
	return NULL;
}

/* A reader that sleeps in read(), or in an edge-triggered epoll_wait(), is woken. */
static void wakes(void)
{
	int fd = real_open(0), ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	long long by = 10 * SEC;
	struct twheel_event ev;
	pthread_t thread;

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	add_with(fd, ASK, now() + NEVER, 0, 1);
	thread = start_thread(set_later, &by);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.flags, TWHEEL_EV_CLOCK_SET);
	pthread_join(thread, NULL);
	epoll_wait(ep, &e, 1, 0);
	add_with(fd, ASK, now() + NEVER, 0, 2);
	by = -by;
	thread = start_thread(set_later, &by);
	CHECK_EQ(epoll_wait(ep, &e, 1, WAIT_MS), 1);
	expect_event(fd, 2, 0, TWHEEL_EV_CLOCK_SET);
	pthread_join(thread, NULL);
	close(ep);
	close(fd);
}

/*
 * An event that could not be stored says it again when it is read; a drained timer keeps its flag.
 */
static void kept(void)
{
	int fd = real_open(0);
	struct twheel_op ops[2];

	add_with(fd, ASK, now() + NEVER, 0, 1);
	set_by(SEC);
	CHECK(readable(fd, WAIT_MS));
	CHECK(read(fd, unmapped(), sizeof(struct twheel_event)) == -1 && errno == EFAULT);
	expect_event(fd, 1, 0, TWHEEL_EV_CLOCK_SET);
	add_with(fd, ASK, now() + NEVER, 0, 2);
	CHECK_EQ(drain(fd, ops, 2, TWHEEL_F_ABS), 1);
	CHECK_EQ(ops[0].flags, ASK);
	set_by(-BY_S);
	CHECK(!readable(fd, 50));
	close(fd);
}

/* Set the clock by exactly @s seconds. */
static void step(long s)
{
	struct timex tx = { .modes = ADJ_SETOFFSET, .time = { .tv_sec = s } };

	CHECK(adjtimex(&tx) >= 0);
}

/* The clock is set forward and then back by the same. The timer must be told all the same. */
static void there_and_back(void)
{
	u32 told = 0;

	for (u32 i = 0; i < 50 && told == i; i++) {
		int fd = real_open(0);

		add_with(fd, ASK, now() + NEVER, 0, i);
		step(1);
		step(-1);
		told += readable(fd, WAIT_MS);
		close(fd);
	}
	CHECK_EQ(told, 50);
}

/* The kernel notes that as a set clock too, but CLOCK_REALTIME goes on. Nobody must be told. */
static void tai_set(void)
{
	struct timex tx = { .modes = 0 };
	int fd = real_open(0);

	CHECK(adjtimex(&tx) >= 0);
	add_with(fd, ASK, now() + NEVER, 0, 1);
	for (u32 i = 0; i < 4; i++) {
		tx = (struct timex) { .modes = ADJ_TAI, .constant = tx.tai + (i % 2 ? -1 : 1) };
		CHECK(adjtimex(&tx) >= 0);
	}
	CHECK(!readable(fd, 50));
	expect_counts(fd, 1, 1, 0);
	close(fd);
}

/* A timer that is armed after clock_settime() has returned must not be told of that. */
static void armed_after(void)
{
	u32 told = 0;

	for (u32 i = 0; i < 50; i++) {
		struct twheel_op op = { .op = TWHEEL_OP_ADD, .flags = ASK };
		int fd = real_open(0);
		u32 done, bad;
		u64 h;

		h = add_with(fd, TWHEEL_F_ABS | TWHEEL_F_KEEP, now() + NEVER, 0, 1);
		step(i % 2 ? -1 : 1);
		op.expires_ns = now() + NEVER;
		if (i % 3 == 0)
			add_with(fd, ASK, now() + NEVER, 0, 2);
		else if (i % 3 == 1)
			CHECK_EQ(mod(fd, h, now() + NEVER, ASK), 1);
		else
			CHECK_EQ(submit(fd, &op, 1, &done, &bad), 0);
		told += readable(fd, 10);
		close(fd);
	}
	CHECK_EQ(told, 0);
}

static int drained;

static void *drain_two(void *ops)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = 2, .op_size = 4096 };

	CHECK(ioctl(drained, TWHEEL_IOC_DRAIN, &b) == -1 && errno == EFAULT);
	return NULL;
}

static void *read_one_later(void *arg)
{
	struct twheel_event *ev = arg;

	CHECK_EQ(read_events(drained, ev, 1), 1);
	return NULL;
}

/*
 * The clock is set while a timer is being drained, and the timer cannot be stored. A reader must be
 * woken.
 */
static void told_by_drain(void)
{
	struct stall last = stall_new(), first = { .fd = last.fd, .page = last.page - 4096 };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING,
		.range = { .start = (uintptr_t)first.page, .len = 4096 } };
	struct twheel_event ev = { };
	pthread_t reader, drainer;

	drained = real_open(0);
	CHECK(!ioctl(first.fd, UFFDIO_REGISTER, &reg));
	add_with(drained, ASK, now() + NEVER, 0, 1);
	reader = start_thread(read_one_later, &ev);
	sleep_ms(50);
	drainer = start_thread(drain_two, first.page);
	/* DRAIN has checked the first page. When it stores there, the timer is out of the wheel. */
	stall_wait(&last);
	CHECK(!madvise(first.page, 4096, MADV_DONTNEED));
	stall_give(&last);
	stall_wait(&first);
	step(1);
	sleep_ms(100);
	stall_fail(&first);
	pthread_join(drainer, NULL);
	for (u32 ms = 0; ms < WAIT_MS && !__atomic_load_n(&ev.flags, __ATOMIC_RELAXED); ms++)
		sleep_ms(1);
	CHECK_EQ(__atomic_load_n(&ev.flags, __ATOMIC_RELAXED), TWHEEL_EV_CLOCK_SET);
	add(drained, 1, 2);
	pthread_join(reader, NULL);
	step(-1);
	stall_end(&last);
	close(drained);
}

#define ASKERS	256

/* Add as many timers that ask for an event. */
static void add_askers(int fd)
{
	struct twheel_op op[ASKERS];
	u32 done, bad;

	for (u32 i = 0; i < ASKERS; i++)
		op[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .flags = ASK,
					    .expires_ns = now() + NEVER, .user_data = i };
	CHECK_EQ(submit(fd, op, ASKERS, &done, &bad), 0);
}

/*
 * Many timers ask for an event. Each must get one, while others are added and the clock is set
 * again.
 */
static void told_many(void)
{
	struct twheel_event *ev = malloc(READ_MAX * sizeof(*ev));
	int fd = real_open(O_NONBLOCK), n;
	u32 got = 0, wrong = 0;
	const u32 all = 128 * ASKERS;

	for (u32 k = 0; k < all; k += ASKERS) {
		add_askers(fd);
		if (k % 4096 == 0)
			set_by(k % 8192 ? BY_S : -BY_S);
	}
	set_by(SEC);
	while (got < all && readable(fd, WAIT_MS) && (n = read_events(fd, ev, READ_MAX)) > 0)
		for (int i = 0; i < n; i++, got++)
			wrong += ev[i].flags != TWHEEL_EV_CLOCK_SET || ev[i].count;
	CHECK_EQ(got, all);
	CHECK_EQ(wrong, 0);
	set_by(-BY_S);
	expect_counts(fd, 0, 0, 0);
	free(ev);
	close(fd);
}

/*
 * How long does a call on another file take while @fd, in which @all timers ask, is being told?
 * Relative to the time that the telling takes.
 */
static double waited_for(int fd, u32 all)
{
	u64 begin = now_ns(CLOCK_MONOTONIC), other, took;
	int comer;

	while (!nr_ready(fd) && !failed())
		;
	other = now_ns(CLOCK_MONOTONIC);
	comer = real_open(0);
	add_with(comer, ASK, now() + NEVER, 0, 1);
	close(comer);
	took = now_ns(CLOCK_MONOTONIC) - other;
	while (nr_ready(fd) < all && !failed())
		sleep_ms(1);
	return (double)took / (double)(now_ns(CLOCK_MONOTONIC) - begin);
}

static int compare_shares(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Telling a file must not make others wait: neither a file that is being opened nor one that is
 * being closed. Another task may take its share of the CPU, and the telling may be over soon. So
 * the median of some rounds counts.
 */
static void others_go_on(void)
{
	const u32 all = 1024 * ASKERS;
	double share[5];

	for (u32 i = 0; i < ARRAY_SIZE(share); i++) {
		int fd = real_open(O_NONBLOCK);

		for (u32 k = 0; k < all; k += ASKERS)
			add_askers(fd);
		set_by(BY_S);
		share[i] = waited_for(fd, all);
		set_by(-BY_S);
		close(fd);
	}
	qsort(share, ARRAY_SIZE(share), sizeof(share[0]), compare_shares);
	diag("of the time that it takes to tell %u timers another file took %.3f", all,
	     share[ARRAY_SIZE(share) / 2]);
	CHECK(share[ARRAY_SIZE(share) / 2] < 0.25);
}

/* Files are opened and closed while the clock is set. */
static void comers(void)
{
	for (u32 i = 0; i < 200 && !failed(); i++) {
		int fd = real_open(0);

		add_with(fd, ASK, now() + NEVER, 0, i);
		set_by(i % 2 ? BY_S : -BY_S);
		if (i % 3)
			expect_event(fd, i, 0, TWHEEL_EV_CLOCK_SET);
		close(fd);
	}
}

static const struct test tests[] = {
	{ in_time, "absolute and relative timers of CLOCK_REALTIME" },
	{ forward, "the clock is set forward: what is due then fires, the rest waits" },
	{ back, "it is set back: what is armed waits, what comes between is exact" },
	{ back_and_back, "it is set back again and again" },
	{ many, "it goes back and forth under many timers: each comes once, none early" },
	{ promptly, "it is set back under many timers: a new one is not late for it" },
	{ tolerant, "timers that may be late: not early, none lost, whatever the clock does" },
	{ tolerant_behind, "nor later than they may be, if it is set back a little" },
	{ periodic, "a periodic timer counts the periods that were skipped" },
	{ told_of_both, "CANCEL_ON_SET: an event says that the clock was set, forward or back" },
	{ told_late, "CANCEL_ON_SET: also an event that was ready, or became due" },
	{ wakes, "CANCEL_ON_SET wakes readers and pollers" },
	{ kept, "CANCEL_ON_SET: an event that could not be stored says it again" },
	{ there_and_back, "CANCEL_ON_SET: a step forward and back by the same is reported" },
	{ tai_set, "CANCEL_ON_SET: a change of the offset to TAI is not" },
	{ armed_after, "CANCEL_ON_SET: not reported to timers that are armed afterwards" },
	{ told_by_drain, "CANCEL_ON_SET: a timer that DRAIN could not store wakes a reader" },
	{ told_many, "CANCEL_ON_SET: each of many timers has one event" },
	{ others_go_on, "CANCEL_ON_SET: other files do not wait meanwhile" },
	{ comers, "files are opened and closed while the clock is set" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
