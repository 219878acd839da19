// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Many threads on one wheel: every timer fires once, unless a cancel returned that it came in time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

#define ADDERS		3
#define READERS		2
#define TIMERS		20000	/* of each thread that adds */
#define ALL		(ADDERS * TIMERS)

/* What is known of a timer. */
static atomic_uchar fired[ALL], cancelled[ALL];
static struct twheel *wheel;
static atomic_bool over;

/* Cancel or re-arm one of this thread's last timers. */
static void meddle(u32 index, uint64_t handle, u64 *seed)
{
	uint64_t data = 0;
	int rc;

	if (rnd(seed) % 3 == 0) {
		rc = twheel_mod(wheel, handle, rnd(seed) % (10 * MS), 0, TWHEEL_F_PENDING);
		CHECK(rc == 1 || rc == -ENOENT);
		return;
	}
	rc = twheel_cancel(wheel, handle, &data);
	CHECK(rc == 0 || rc == 1 || rc == -ENOENT || rc == -EALREADY);
	if (rc >= 0) {
		CHECK_EQ(data, index);
		cancelled[index]++;
	}
}

static void *adder(void *arg)
{
	static const u32 back = 64;
	u32 first = *(u32 *)arg * TIMERS;
	uint64_t handles[64];
	u64 seed = first + 1;

	for (u32 i = 0; i < TIMERS && !failed(); i++) {
		u32 past = (u32)(rnd(&seed) % back);

		handles[i % back] = wheel_add(wheel, first + i, rnd(&seed) % (20 * MS));
		if (past <= i)
			meddle(first + i - past, handles[(i - past) % back], &seed);
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct twheel_event ev[50];
	bool last;
	int n;

	(void)arg;
	while (!failed()) {
		/* A read that began before may have waited for nothing while adders stood still. */
		last = over;
		n = twheel_read(wheel, ev, ARRAY_SIZE(ev), 50);
		if (n == -EAGAIN && last)
			break;
		CHECK(n > 0 || n == -EAGAIN);
		for (int i = 0; i < n; i++)
			fired[ev[i].user_data]++;
	}
	return NULL;
}

static void accounts(void)
{
	pthread_t adders[ADDERS], readers[READERS];
	u32 nrs[ADDERS], wrong = 0, nr_fired = 0;

	over = false;
	wheel = wheel_new(NULL);
	for (u32 i = 0; i < READERS; i++)
		pthread_create(&readers[i], NULL, reader, NULL);
	for (u32 i = 0; i < ADDERS; i++) {
		nrs[i] = i;
		pthread_create(&adders[i], NULL, adder, &nrs[i]);
	}
	for (u32 i = 0; i < ADDERS; i++)
		pthread_join(adders[i], NULL);
	over = true;
	for (u32 i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	for (u32 i = 0; i < ALL; i++) {
		wrong += fired[i] + cancelled[i] != 1;
		nr_fired += fired[i];
	}
	CHECK_EQ(wrong, 0);
	diag("%u fired, %u were cancelled", nr_fired, ALL - nr_fired);
	wheel_counts(wheel, 0, 0, 0);
	twheel_close(wheel);
}

static void *wait_for_one(void *arg)
{
	struct twheel_event ev;

	CHECK_EQ(twheel_read(wheel, &ev, 1, WAIT_MS), 1);
	(*(atomic_int *)arg)++;
	return NULL;
}

/* As many readers as events: each gets one event, though all wait at the same descriptor. */
static void one_each(void)
{
	enum { N = 8 };
	pthread_t threads[N];
	atomic_int woken = 0;

	wheel = wheel_new(NULL);
	for (int i = 0; i < N; i++)
		pthread_create(&threads[i], NULL, wait_for_one, &woken);
	sleep_ms(20);
	for (u32 i = 0; i < N; i++)
		wheel_add(wheel, i, 5 * MS);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(woken, N);
	wheel_quiet(wheel, 0);
	twheel_close(wheel);
}

#define BATCH	5000
#define ROUNDS	20

static atomic_int submitting;

static void on_signal(int sig)
{
	(void)sig;
}

/* Add a batch of timers, and cancel them in another. Returns how many operations were not done. */
static u32 submit_two(struct twheel_op *ops)
{
	u32 wrong = 0;

	for (u32 i = 0; i < BATCH; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	CHECK_EQ(twheel_submit(wheel, ops, BATCH), 0);
	for (u32 i = 0; i < BATCH; i++) {
		wrong += !ops[i].handle;
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL, .handle = ops[i].handle };
	}
	CHECK_EQ(twheel_submit(wheel, ops, BATCH), 0);
	for (u32 i = 0; i < BATCH; i++)
		wrong += ops[i].res != 1;
	return wrong;
}

static void *submits(void *arg)
{
	struct twheel_op *ops = calloc(BATCH, sizeof(*ops));

	(void)arg;
	for (u32 i = 0; CHECK(ops) && i < ROUNDS && !failed(); i++)
		CHECK_EQ(submit_two(ops), 0);
	free(ops);
	submitting--;
	return NULL;
}

/* Signals interrupt calls that work, and calls that wait for the other thread's. */
static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t threads[2];

	sigaction(SIGUSR1, &sa, NULL);
	wheel = wheel_new(NULL);
	submitting = 2;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, submits, NULL);
	while (submitting) {
		for (int i = 0; i < 2; i++)
			pthread_kill(threads[i], SIGUSR1);
		usleep(200);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	wheel_counts(wheel, 0, 0, 0);
	twheel_close(wheel);
}

static atomic_bool stood_still;

/*
 * A timer that is cancelled at once may wake a reader for nothing. This continues for 8 s, or until
 * @over: so long that the reader's timeout does not end only because the host is busy for a moment.
 */
static void *wakes_for_nothing(void *ended)
{
	for (int i = 0; i < 200 && !over; i++) {
		u64 begun = now_ns(CLOCK_MONOTONIC);
		int was = twheel_cancel(wheel, wheel_add(wheel, 0, 100 * MS), NULL);

		if (now_ns(CLOCK_MONOTONIC) >= begun + 100 * MS)
			stood_still = true;	/* so it may have fired */
		else
			CHECK_EQ(was, 1);
		sleep_ms(40);
	}
	*(atomic_bool *)ended = true;
	return NULL;
}

static void timeout(void)
{
	atomic_bool ended = false;
	struct twheel_event ev;
	bool too_late;
	pthread_t thread;
	int rc;

	over = false;
	stood_still = false;
	wheel = wheel_new(NULL);
	pthread_create(&thread, NULL, wakes_for_nothing, &ended);
	rc = twheel_read(wheel, &ev, 1, 1500);
	too_late = ended;
	over = true;
	pthread_join(thread, NULL);
	twheel_close(wheel);
	if (stood_still) {	/* the host did: once more */
		timeout();
		return;
	}
	CHECK_EQ(rc, -EAGAIN);
	CHECK(!too_late);
}

int main(void)
{
	static const struct test tests[] = {
		{ accounts, "60000 timers of three threads, two readers: each accounted for" },
		{ one_each, "eight readers, eight events" },
		{ signals, "batches are done to their end, whatever signals come" },
		{ timeout, "a read ends on time, however often it is woken for nothing" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
