// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Every timer is accounted for: 100 000 timers that are due within 3 s are added, re-armed and
 * cancelled at random by two threads, while a third one reads.
 *
 * Each deadline that a timer had is recorded, together with what became of it:
 *
 *	STANDS		no call took it back: its event is read, once
 *	REMOVED		a CANCEL returned 0 or 1, or a MOD returned 1: its event is never read
 *	REPLACED	a MOD returned 0, so its event was waiting. The event may be read once,
 *			by a read() that began before the MOD was over
 *
 * A call that failed has taken nothing back. Events are identified by their deadlines, which are
 * absolute. In the end all events are compared with the record.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TIMERS	100000U
#define WORKERS	2
#define SPAN	(3 * SEC)
#define LIVES	3		/* the most deadlines that a timer has */
#define LOG_MAX	(TIMERS * (LIVES + 1))

enum fate { STANDS, REMOVED, REPLACED };

struct timer {
	u64		handle;
	u64		deadline[LIVES];
	u64		ended[LIVES];		/* when the call returned that ended it */
	unsigned char	fate[LIVES];
	unsigned char	lives;
	bool		closed;			/* cancelled, or found to be gone */
};

struct seen {
	u64	timer, handle, deadline;
	u64	began, read;			/* the times before and after the read() */
	u32	count, flags;
};

static struct timer *timers;
static struct seen *seen;
static u32 nr_seen;
static int fd;
static u64 start;
static bool workers_done;

/* What the workers did, for the output. */
static u32 nr_cancels, nr_mods, nr_late;

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* A deadline anywhere in the span that begins at @from: it may be in the past. */
static u64 pick_deadline(u64 from, u64 *seed)
{
	return from + rnd(seed) % SPAN;
}

static void add_some(u32 first, u32 nr, u64 *seed)
{
	struct twheel_op ops[64];
	/* If the host is slow, choose later ones, or there would be none to cancel. */
	u64 past = now() - SPAN / 16, from = past > start ? past : start;

	for (u32 i = 0; i < nr; i++) {
		u64 deadline = pick_deadline(from, seed);

		timers[first + i].deadline[0] = deadline;
		timers[first + i].lives = 1;
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
			.flags = TWHEEL_F_ABS, .user_data = first + i,
			.expires_ns = deadline };
	}
	CHECK_EQ(submit(fd, ops, nr, NULL, NULL), 0);
	for (u32 i = 0; i < nr; i++) {
		CHECK_EQ(ops[i].res, 0);
		timers[first + i].handle = ops[i].handle;
	}
}

static void cancel_one(struct timer *t)
{
	int rc = cancel(fd, t->handle);

	t->closed = true;
	__atomic_add_fetch(rc < 0 ? &nr_late : &nr_cancels, 1, __ATOMIC_RELAXED);
	if (rc < 0) {
		CHECK(rc == -ENOENT || rc == -EALREADY);
		return;
	}
	t->fate[t->lives - 1] = REMOVED;
	t->ended[t->lives - 1] = now();
}

static void mod_one(struct timer *t, u64 *seed)
{
	struct twheel_op op = { .handle = t->handle, .flags = TWHEEL_F_ABS,
				.expires_ns = pick_deadline(start, seed) };
	int rc = op_ioctl(fd, TWHEEL_IOC_MOD, &op);

	__atomic_add_fetch(rc < 0 ? &nr_late : &nr_mods, 1, __ATOMIC_RELAXED);
	if (rc < 0) {
		CHECK(rc == -ENOENT || rc == -EALREADY);
		t->closed = true;
		return;
	}
	CHECK_EQ(op.user_data, t - timers);
	t->fate[t->lives - 1] = rc ? REMOVED : REPLACED;
	t->ended[t->lives - 1] = now();
	t->deadline[t->lives++] = op.expires_ns;
}

/* Worker w has the timers from w * TIMERS / WORKERS on to itself. */
static void *work(void *arg)
{
	const u32 mine = TIMERS / WORKERS, first = (u32)(uintptr_t)arg * mine;
	u64 seed = 1000 + first;
	u32 added = 0, n;

	while (!failed() && (added < mine || now() < start + SPAN)) {
		n = mine - added < 64 ? mine - added : 64;
		if (n)
			add_some(first + added, n, &seed);
		else
			sleep_ms(1);
		added += n;
		for (u32 i = 0; i < 20; i++) {
			struct timer *t = &timers[first + rnd(&seed) % added];

			if (t->closed)
				continue;
			if (rnd(&seed) % 3 == 0 || t->lives == LIVES)
				cancel_one(t);
			else
				mod_one(t, &seed);
		}
	}
	return NULL;
}

static void log_events(const struct twheel_event *ev, int n, u64 began)
{
	u64 after = now();

	for (int i = 0; i < n && CHECK(nr_seen < LOG_MAX); i++)
		seen[nr_seen++] = (struct seen){
			.timer = ev[i].user_data, .handle = ev[i].handle,
			.deadline = ev[i].expires_ns, .count = ev[i].count,
			.flags = ev[i].flags, .began = began, .read = after };
}

/* Read until the workers are done and nothing is left, or until nothing has come for WAIT_MS. */
static void *read_all(void *unused)
{
	struct twheel_event ev[128];
	struct twheel_info i;
	bool last;
	u64 began;
	int n;

	for (;;) {
		last = __atomic_load_n(&workers_done, __ATOMIC_ACQUIRE);
		if (last) {
			info(fd, &i);
			if (!i.nr_timers)
				break;
		}
		if (!readable(fd, last ? WAIT_MS : 100)) {
			if (last)
				break;
			continue;
		}
		began = now();
		n = read_events(fd, ev, ARRAY_SIZE(ev));
		if (n == -EAGAIN)	/* the timer was cancelled in between */
			continue;
		if (!CHECK(n > 0))
			break;
		log_events(ev, n, began);
	}
	return unused;
}

static void run(void)
{
	pthread_t workers[WORKERS], reader;
	struct twheel_info i;

	timers = calloc(TIMERS, sizeof(*timers));
	seen = calloc(LOG_MAX, sizeof(*seen));
	fd = dev_open(O_NONBLOCK);
	start = now();
	pthread_create(&reader, NULL, read_all, NULL);
	for (uintptr_t w = 0; w < WORKERS; w++)
		pthread_create(&workers[w], NULL, work, (void *)w);
	for (int w = 0; w < WORKERS; w++)
		pthread_join(workers[w], NULL);
	__atomic_store_n(&workers_done, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	diag("%u timers, %u events, %u cancelled, %u re-armed, %u calls too late",
	     TIMERS, nr_seen, nr_cancels, nr_mods, nr_late);
	CHECK(nr_cancels > TIMERS / 100);
	CHECK(nr_mods > TIMERS / 100);
	CHECK(nr_seen > TIMERS / 2);
	info(fd, &i);
	diag("%llu wake-ups", i.nr_wakeups);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* ---- the verdict ----------------------------------------------------------- */

static u32 nr_early, nr_unknown, nr_after;
static unsigned char (*events)[LIVES];	/* how many events each deadline had */

static void judge_event(const struct seen *s)
{
	struct timer *t = &timers[s->timer];
	u32 life = 0;

	while (s->timer < TIMERS && life < t->lives && t->deadline[life] != s->deadline)
		life++;
	if (s->timer >= TIMERS || life == t->lives || t->handle != s->handle ||
	    s->count != 1 || s->flags) {
		nr_unknown++;
		return;
	}
	events[s->timer][life]++;
	nr_early += s->read < s->deadline;
	nr_after += t->fate[life] == REMOVED ||
		    (t->fate[life] == REPLACED && s->began > t->ended[life]);
}

static void each_event(void)
{
	events = calloc(TIMERS, sizeof(*events));
	for (u32 i = 0; i < nr_seen; i++)
		judge_event(&seen[i]);
	CHECK(nr_seen > 0);
	CHECK_EQ(nr_unknown, 0);
	CHECK_EQ(nr_early, 0);
}

static void none_after_the_end(void)
{
	CHECK(nr_seen > 0);
	CHECK_EQ(nr_after, 0);
}

static void each_timer(void)
{
	u32 lost = 0, twice = 0;

	for (u32 i = 0; i < TIMERS; i++) {
		for (u32 life = 0; life < timers[i].lives; life++) {
			twice += events[i][life] > 1;
			lost += timers[i].fate[life] == STANDS && !events[i][life];
		}
		CHECK(timers[i].lives > 0);
	}
	CHECK_EQ(lost, 0);
	CHECK_EQ(twice, 0);
}

static const struct test tests[] = {
	{ run, "100 000 timers, two threads that change them, one that reads" },
	{ each_event, "every event is of a deadline that was asked for, none early" },
	{ none_after_the_end, "no event after a CANCEL or MOD that took the timer back" },
	{ each_timer, "no event is lost, none comes twice" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
