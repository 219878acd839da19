// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * DRAIN of /dev/twheel: every armed timer is returned once, and nothing else is touched.
 *
 * Timers are identified by user_data. A set of timers is an array with a byte for each timer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MONO	CLOCK_MONOTONIC
#define MANY	20000
#define SOME	5000	/* still some 80 chunks of slots */

static struct twheel_op ops[TWHEEL_BATCH_MAX];
static unsigned char seen[TWHEEL_BATCH_MAX * 4];

static void see(u64 user_data)
{
	if (CHECK(user_data < sizeof(seen)))
		__atomic_add_fetch(&seen[user_data], 1, __ATOMIC_RELAXED);
}

static void forget(void)
{
	memset(seen, 0, sizeof(seen));
}

/* Each of 0 to @nr - 1 must have been seen @times times. */
static void expect_seen(u32 nr, unsigned int times)
{
	u32 wrong = 0;

	for (u32 i = 0; i < nr; i++)
		wrong += seen[i] != times;
	CHECK_EQ(wrong, 0);
}

/* Drain all timers, at most @room in each call. Returns how many were returned. */
static u32 drain_all(int fd, u32 room)
{
	u32 sum = 0;
	int got;

	do {
		got = drain(fd, ops, room, 0);
		for (int i = 0; i < got; i++)
			see(ops[i].user_data);
		sum += got > 0 ? (u32)got : 0;
	} while (got > 0 || got == -EINTR);
	CHECK_EQ(got, 0);
	return sum;
}

static void nothing(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	u64 kept;

	CHECK_EQ(drain(fd, ops, 10, 0), 0);
	kept = add_with(fd, TWHEEL_F_KEEP, 0, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	add(fd, 0, 2);
	add_with(fd, 0, 0, HOUR, 3);
	await_ready(fd, 2);
	expect_counts(fd, 3, 0, 2);
	CHECK_EQ(drain(fd, ops, 10, 0), 0);
	expect_counts(fd, 3, 0, 2);
	add(fd, HOUR, 4);
	CHECK_EQ(drain(fd, ops, 10, 0), 1);
	CHECK_EQ(ops[0].user_data, 4);
	expect_counts(fd, 3, 0, 2);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	/* After its event was read, the periodic timer is armed again, and can be drained. */
	CHECK_EQ(drain(fd, ops, 10, 0), 1);
	CHECK_EQ(ops[0].user_data, 3);
	CHECK_EQ(mod(fd, kept, HOUR, 0), 0);
	CHECK_EQ(cancel(fd, kept), 1);
	close(fd);
}

/* For each kind of timer, DRAIN returns the operation that would add it again. */
static void kinds(void)
{
	static const struct { u32 flags; u64 interval; } rows[] = {
		{ 0, 0 }, { TWHEEL_F_KEEP, 0 }, { 0, 3 * SEC }, { TWHEEL_F_KEEP, SEC },
		{ TWHEEL_F_DELAY, SEC }, { TWHEEL_F_DELAY | TWHEEL_F_KEEP, SEC },
	};
	u64 handles[ARRAY_SIZE(rows)], from, to;

	for (u32 abs = 0; abs <= TWHEEL_F_ABS; abs += TWHEEL_F_ABS) {
		int fd = dev_open(0);

		from = now_ns(MONO);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			handles[i] = add_with(fd, rows[i].flags, (i + 1) * HOUR,
					      rows[i].interval, i);
		to = now_ns(MONO);
		CHECK_EQ(drain(fd, ops, 10, abs), ARRAY_SIZE(rows));
		forget();
		for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
			u64 i = ops[n].user_data;
			u64 at = ops[n].expires_ns;

			see(i);
			CHECK_EQ(ops[n].handle, handles[i]);
			CHECK_EQ(ops[n].flags, rows[i].flags | abs);
			CHECK_EQ(ops[n].interval_ns, rows[i].interval);
			if (!abs)
				CHECK(at <= (i + 1) * HOUR && at > i * HOUR);
			else
				CHECK(at >= from + (i + 1) * HOUR && at <= to + (i + 1) * HOUR);
			CHECK_EQ(cancel(fd, handles[i]), -ENOENT);
		}
		expect_seen(ARRAY_SIZE(rows), 1);
		expect_counts(fd, 0, 0, 0);
		close(fd);
	}
}

/*
 * The time left, to the ns, compared with the clock around the call; 0 if the deadline is over.
 * Ticks are a second long, so that a deadline is over before its tick. Returns false if the host
 * was away, and the tick has come.
 */
static bool drains_in_a_tick(void)
{
	const struct twheel_setup s = { .clockid = CLOCK_BOOTTIME, .tick_ns = SEC };
	int fd = dev_open(0), nr;
	u64 now, at, before, after;

	CHECK_EQ(setup(fd, &s), 0);
	while (now_ns(CLOCK_BOOTTIME) % SEC > 300 * MS)
		sleep_ms(10);
	now = now_ns(CLOCK_BOOTTIME);
	add_with(fd, TWHEEL_F_ABS, now + MS, 0, 0);
	add_with(fd, TWHEEL_F_ABS, now + HOUR, 0, 1);
	sleep_ms(20);
	before = now_ns(CLOCK_BOOTTIME);
	nr = drain(fd, ops, 10, 0);
	after = now_ns(CLOCK_BOOTTIME);
	if (after / SEC > now / SEC) {
		close(fd);
		return false;
	}
	CHECK_EQ(nr, 2);
	for (u32 i = 0; i < 2; i++) {
		at = ops[i].user_data ? now + HOUR : now + MS;
		if (ops[i].user_data)
			CHECK(ops[i].expires_ns <= at - before && ops[i].expires_ns >= at - after);
		else
			CHECK_EQ(ops[i].expires_ns, 0);
	}
	close(fd);
	return true;
}

static void time_left(void)
{
	u32 tries = 0;

	while (!drains_in_a_tick() && CHECK(++tries < 20))
		;
}

/* Add @nr timers, with user_data from 0. With @holes, cancel every second one. */
static u32 with_armed(int fd, u32 nr, bool holes)
{
	u32 bad;

	forget();
	for (u32 i = 0; i < nr; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .user_data = i,
					     .expires_ns = HOUR };
	CHECK_EQ(submit(fd, ops, nr, NULL, &bad), 0);
	CHECK_EQ(bad, 0);
	for (u32 i = 0; holes && i < nr; i += 2) {
		CHECK_EQ(cancel(fd, ops[i].handle), 1);
		see(i);
	}
	return holes ? nr / 2 : nr;
}

/* With calls of any size, and with holes among the slots, each timer is returned once. */
static void resumes(void)
{
	static const u32 rooms[] = { 1, 7, 63, 64, 65, 1000, SOME - 1, SOME, TWHEEL_BATCH_MAX };

	for (size_t r = 0; r < 2 * ARRAY_SIZE(rooms); r++) {
		int fd = dev_open(0);
		u32 nr = with_armed(fd, SOME, r & 1);

		CHECK_EQ(drain_all(fd, rooms[r / 2]), nr);
		expect_seen(SOME, 1);
		expect_counts(fd, 0, 0, 0);
		CHECK(!readable(fd, 0));
		close(fd);
	}
}

/* Slots are allocated 64 at a time. If all are in use, the last one is drained too. */
static void all_slots(void)
{
	static const u32 nrs[] = { 64, 128, 640 }, rooms[] = { 1, 63, 64, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(nrs) * ARRAY_SIZE(rooms) && !failed(); i++) {
		u32 nr = nrs[i / ARRAY_SIZE(rooms)];
		int fd = dev_open(0);

		with_armed(fd, nr, false);
		CHECK_EQ(drain_all(fd, rooms[i % ARRAY_SIZE(rooms)]), nr);
		expect_seen(nr, 1);
		close(fd);
	}
}

/* Timers that are added between two calls, in slots that were passed already, are returned too. */
static void adds_between(void)
{
	int fd = dev_open(0);
	u32 next = 1000, sum = 0;
	int got;

	add_many(fd, next, HOUR, 0);
	forget();
	do {
		got = drain(fd, ops, 100, 0);
		for (int i = 0; i < got; i++)
			see(ops[i].user_data);
		sum += got;
		if (next < 2000) {
			add_many(fd, 50, HOUR, next);
			next += 50;
		}
	} while (got > 0);
	CHECK_EQ(sum, 2000);
	expect_seen(2000, 1);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* How long it takes to drain @nr timers one by one. */
static u64 one_by_one(int fd, u32 nr)
{
	u64 start = now_ns(MONO);

	for (u32 i = 0; i < nr; i++)
		CHECK_EQ(drain(fd, ops, 1, 0), 1);
	return now_ns(MONO) - start;
}

/*
 * However small the calls, a call does not pass slots again that earlier calls have passed: the
 * last timers of a file cost as much as the first of another. The two files take turns, because a
 * busy host makes both slow. The shortest time of each counts, in which the host was there. CPU
 * time is counted in ticks of 4 ms in some machines, which is more than a round takes.
 */
static void goes_on(void)
{
	const u32 rounds = 36, part = 125;
	int old = dev_open(0), fresh = dev_open(0);
	u64 first = UINT64_MAX, last = UINT64_MAX;

	add_many(old, MANY, HOUR, 0);
	add_many(fresh, MANY, HOUR, 0);
	one_by_one(old, MANY - rounds * part);
	for (u32 i = 0; i < rounds; i++) {
		u64 f = one_by_one(fresh, part), l = one_by_one(old, part);

		first = f < first ? f : first;
		last = l < last ? l : last;
	}
	diag("%u calls took %llu us in the beginning, %llu us in the end", part, first / 1000,
	     last / 1000);
	CHECK(last < 4 * first);
	CHECK_EQ(drain(old, ops, 1, 0), 0);
	close(old);
	close(fresh);
}

static u64 at[1000];

/*
 * Arm timers whose deadlines are @lead from now or later, and drain them. Returns their file, or -1
 * if the host was away until the first was due.
 */
static int drained_before(u64 lead, u32 flags)
{
	u64 start = now_ns(MONO) + lead, seed = 23;
	int from = dev_open(0), nr;

	for (u32 i = 0; i < 1000; i++) {
		at[i] = start + rnd(&seed) % (200 * MS);
		add_with(from, TWHEEL_F_ABS, at[i], 0, i);
	}
	nr = drain(from, ops, 1000, flags);
	if (now_ns(MONO) < start) {
		CHECK_EQ(nr, 1000);
		return from;
	}
	close(from);
	return -1;
}

/* Move timers from one file to another. Each fires there, once, and not early. */
static void moves(u32 flags)
{
	static struct twheel_event ev[256];
	int from = -1, to = dev_open(0), got;
	u32 bad, sum = 0, early = 0;

	for (u64 lead = 500 * MS; from < 0 && CHECK(lead < 20 * SEC); lead *= 2)
		from = drained_before(lead, flags);
	if (from < 0)
		return;
	for (int i = 0; i < 1000; i++)
		ops[i].handle = 0;
	CHECK_EQ(submit(to, ops, 1000, NULL, &bad), 0);
	CHECK_EQ(bad, 0);
	forget();
	while (sum < 1000 && readable(to, WAIT_MS)) {
		got = read_events(to, ev, 256);
		for (int i = 0; i < got; i++) {
			see(ev[i].user_data);
			early += now_ns(MONO) < at[ev[i].user_data % 1000] ||
				 ev[i].expires_ns < at[ev[i].user_data % 1000];
			if (flags)
				CHECK_EQ(ev[i].expires_ns, at[ev[i].user_data % 1000]);
		}
		sum += got > 0 ? (u32)got : 0;
	}
	expect_seen(1000, 1);
	CHECK_EQ(early, 0);
	CHECK(!readable(from, 0));
	expect_counts(from, 0, 0, 0);
	expect_counts(to, 0, 0, 0);
	close(from);
	close(to);
}

static void moves_relative(void)	{ moves(0); }
static void moves_absolute(void)	{ moves(TWHEEL_F_ABS); }

/*
 * An array with gaps: the gaps are set to zero, and what is behind the last operation is not
 * touched.
 */
static void long_ops(void)
{
	static const u32 sizes[] = { TWHEEL_OP_SIZE_VER0, 56, 64, 192, 4096 };

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		unsigned char *mem = before_hole(100 * sizes[s]);
		struct twheel_batch b = { .ops = (uintptr_t)mem, .nr = 100,
					  .op_size = sizes[s] };
		int fd = dev_open(0);
		u32 wrong = 0;

		memset(mem, POISON, 100 * sizes[s]);
		add_many(fd, 70, HOUR, 0);
		CHECK_EQ(ioctl(fd, TWHEEL_IOC_DRAIN, &b), 0);
		CHECK_EQ(b.nr_done, 70);
		forget();
		for (u32 i = 0; i < 100; i++) {
			struct twheel_op *op = (void *)(mem + i * sizes[s]);

			for (u32 k = TWHEEL_OP_SIZE_VER0; k < sizes[s]; k++)
				wrong += mem[i * sizes[s] + k] != (i < 70 ? 0 : POISON);
			if (i < 70)
				see(op->user_data);
		}
		CHECK_EQ(wrong, 0);
		expect_seen(70, 1);
		close(fd);
	}
}

/*
 * The memory of the array ends early: timers that were stored are drained, the others are
 * unchanged.
 */
static void half_an_array(void)
{
	static const u32 there[] = { 0, 1, 63, 64, 65, 200, 299 };

	for (size_t t = 0; t < ARRAY_SIZE(there); t++) {
		struct twheel_op *mem = before_hole(there[t] * sizeof(*mem) + 24), op;
		struct twheel_batch b = { .ops = (uintptr_t)mem, .nr = 300,
					  .op_size = sizeof(*mem) };
		int fd = dev_open(0), rc;
		u64 at = now_ns(MONO) + HOUR, handles[300];

		for (u32 i = 0; i < 300; i++)
			handles[i] = add_with(fd, TWHEEL_F_ABS, at + i, 0, i);
		rc = ioctl(fd, TWHEEL_IOC_DRAIN, &b) ? -errno : 0;
		CHECK_EQ(rc, there[t] ? 0 : -EFAULT);
		CHECK_EQ(b.nr_done, there[t]);
		expect_counts(fd, 300 - there[t], 300 - there[t], 0);
		forget();
		for (u32 i = 0; i < there[t]; i++)
			see(mem[i].user_data);
		for (u32 i = 0; i < 300; i++) {
			rc = query(fd, handles[i], TWHEEL_F_ABS, &op);
			CHECK_EQ(rc, seen[i] ? -ENOENT : TWHEEL_STATE_ARMED);
			if (rc >= 0)
				CHECK_EQ(op.expires_ns, at + i);
		}
		CHECK_EQ(drain_all(fd, 40), 300 - there[t]);
		expect_seen(300, 1);
		close(fd);
	}
}

/*
 * A timer whose time came while it could not be stored fires, and not early. Its time is @lead from
 * now. Returns how many calls found it armed: none, if the host was away so long.
 */
static u32 faults_until(u64 lead)
{
	struct twheel_batch b = { .ops = (uintptr_t)unmapped(), .nr = 10,
				  .op_size = sizeof(struct twheel_op) };
	int fd = dev_open(0);
	u64 at = now_ns(MONO) + lead;
	struct twheel_event ev;
	u32 refused = 0;
	u64 h = add_with(fd, TWHEEL_F_ABS, at, 0, 5);

	while (now_ns(MONO) < at) {
		int rc = ioctl(fd, TWHEEL_IOC_DRAIN, &b) ? -errno : 0;

		refused += rc == -EFAULT;
		CHECK(rc == -EFAULT || now_ns(MONO) >= at);	/* or the timer has fired */
	}
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK(now_ns(MONO) >= at);
	CHECK_EQ(ev.handle, h);
	CHECK_EQ(ev.expires_ns, at);
	expect_counts(fd, 0, 0, 0);
	close(fd);
	return refused;
}

static void fault_fires(void)
{
	u64 lead = 30 * MS;

	while (!faults_until(lead) && CHECK(lead < 10 * SEC))
		lead *= 2;
}

static void on_signal(int sig)
{
	(void)sig;
}

/*
 * Calls end early or with EINTR when a signal comes, and in the end all is drained. There is a
 * signal for each call, within @us from before it: signals at a fixed rate could come faster than a
 * slow machine handles them. Returns how many calls ended early.
 */
static u32 drained_with_signals(u64 *seed, u64 us)
{
	const struct itimerval off = { 0 };
	struct itimerval once = off;
	const u32 nr = TWHEEL_BATCH_MAX / 2;
	u32 shorts = 0, sum = 0;
	int fd = dev_open(0), got;

	add_many(fd, nr, HOUR, 0);
	forget();
	do {
		once.it_value.tv_usec = us ? 1 + (long)(rnd(seed) % us) : 0;
		setitimer(ITIMER_REAL, &once, NULL);
		got = drain(fd, ops, nr, 0);
		for (int i = 0; i < got; i++)
			see(ops[i].user_data);
		sum += got > 0 ? (u32)got : 0;
		shorts += got != (int)nr;
	} while ((got > 0 || got == -EINTR) && !failed());
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK_EQ(got, 0);
	CHECK_EQ(sum, nr);
	expect_seen(nr, 1);
	expect_counts(fd, 0, 0, 0);
	close(fd);
	return shorts - 1;		/* the last call is short anyway */
}

/*
 * Until enough calls have ended early: a call may be over before its signal comes, which is late on
 * a busy host. The first round tells how long a round takes without signals.
 */
static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }, was;
	u32 shorts = 0, rounds = 0;
	u64 seed = 31, us = now_ns(MONO);

	CHECK_EQ(drained_with_signals(&seed, 0), 0);
	us = (now_ns(MONO) - us) / 1000;
	us = us < SEC / 1000 ? us : SEC / 1000 - 1;
	sigaction(SIGALRM, &sa, &was);
	while (shorts < 2 && rounds++ < 200 && !failed())
		shorts += drained_with_signals(&seed, us);
	sigaction(SIGALRM, &was, NULL);
	alarm(0);
	diag("%u calls ended early in %u rounds", shorts, rounds);
	CHECK(shorts >= 2);
}

/* ---- beside readers ----------------------------------------------------------- */

static int shared;
static volatile bool stop;

static void *read_on(void *count)
{
	struct twheel_event ev[32];
	int got;

	while (!stop) {
		if (!readable(shared, 5))
			continue;
		got = read_events(shared, ev, ARRAY_SIZE(ev));
		for (int i = 0; i < got; i++)
			see(ev[i].user_data);
		*(u32 *)count += got > 0 ? (u32)got : 0;
	}
	return NULL;
}

/*
 * While timers fire all the time, each is either drained or read, once. Returns whether there were
 * both: the host may be away until all have fired.
 */
static bool drained_and_read(void)
{
	u32 drained = 0, read = 0;
	pthread_t reader;
	u64 seed = 29;
	int got;

	shared = dev_open(O_NONBLOCK);
	forget();
	stop = false;
	for (u32 n = 0; n < MANY; n += 100)
		add_many(shared, 100, 50 * MS + rnd(&seed) % (300 * MS), n);
	pthread_create(&reader, NULL, read_on, &read);
	do {
		got = drain(shared, ops, 50, 0);
		for (int i = 0; i < got; i++)
			see(ops[i].user_data);
		drained += got > 0 ? (u32)got : 0;
		sleep_ms(1);
	} while (got > 0);
	for (u32 ms = 0; ms < WAIT_MS && drained + read < MANY; ms += 10)
		sleep_ms(10);
	stop = true;
	pthread_join(reader, NULL);
	diag("%u were drained, %u read", drained, read);
	CHECK_EQ(drained + read, MANY);
	expect_seen(MANY, 1);
	expect_counts(shared, 0, 0, 0);
	close(shared);
	return drained && read;
}

static void races_expiry(void)
{
	u32 rounds = 1;

	while (!drained_and_read() && CHECK(rounds < 20))
		rounds++;
}

/* A reader re-arms periodic timers all the time. In the end each is drained, once. */
static void races_reader(void)
{
	struct twheel_info i;
	pthread_t reader;
	u32 drained = 0, read = 0;
	int got;

	shared = dev_open(O_NONBLOCK);
	stop = false;
	for (u32 n = 0; n < 500; n++)
		add_with(shared, 0, n % 7 * MS, MS, n);
	pthread_create(&reader, NULL, read_on, &read);
	forget();
	/* On a busy host the reader has the CPU now and then only. */
	for (u32 ms = 0; ms < 6 * WAIT_MS && drained < 500; ms++) {
		got = drain(shared, ops, 20, 0);
		CHECK(got >= 0);
		drained += got > 0 ? (u32)got : 0;
		sleep_ms(1);
	}
	stop = true;
	pthread_join(reader, NULL);
	CHECK_EQ(drained, 500);
	info(shared, &i);
	CHECK_EQ(i.nr_timers, 0);
	CHECK(!readable(shared, 0));
	close(shared);
}

static int slow_fd;

static void *drains(void *arg)
{
	const struct stall *s = arg;
	struct twheel_batch b = { .ops = (uintptr_t)(s->page - sizeof(struct twheel_op)),
				  .nr = 2, .op_size = sizeof(struct twheel_op) };

	CHECK_EQ(ioctl(slow_fd, TWHEEL_IOC_DRAIN, &b), 0);
	CHECK_EQ(b.nr_done, 1);
	return NULL;
}

/* While a page of the array takes long to be read in, no timer is out of the wheel. */
static void slow_memory(void)
{
	struct twheel_event ev = { 0 };
	pthread_t thread;
	struct stall s;

	s = stall_new();
	slow_fd = dev_open(O_NONBLOCK);
	add_with(slow_fd, 0, 50 * MS, 0, 1);
	add_with(slow_fd, 0, HOUR, 0, 2);
	pthread_create(&thread, NULL, drains, &s);
	stall_wait(&s);
	CHECK_EQ(read_one(slow_fd, &ev), 1);	/* on time, although DRAIN is in progress */
	CHECK_EQ(ev.user_data, 1);
	stall_fail(&s);
	pthread_join(thread, NULL);
	stall_end(&s);
	expect_counts(slow_fd, 0, 0, 0);
	close(slow_fd);
}

static const struct test tests[] = {
	{ nothing, "ready and idle timers stay" },
	{ kinds, "every kind comes back as it was armed" },
	{ time_left, "time left, none if it is over" },
	{ resumes, "5000 timers, each once, with any room" },
	{ all_slots, "every slot in use: all come, the last too" },
	{ adds_between, "what is added meanwhile comes too" },
	{ goes_on, "a call goes on where the last one ended" },
	{ moves_relative, "into another file, by the time left" },
	{ moves_absolute, "into another file, by the deadline" },
	{ long_ops, "op_size beyond the operation" },
	{ half_an_array, "an array that ends in unmapped memory" },
	{ fault_fires, "timers that could not be stored fire on time" },
	{ slow_memory, "timers fire on time while memory is being read in" },
	{ signals, "signals end a call, and lose nothing" },
	{ races_expiry, "each timer is drained or read, never both" },
	{ races_reader, "periodic timers are drained while they are being read" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
