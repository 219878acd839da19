// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Timers and tasks with tolerances, over either backend. What they have in common with exact ones
 * is in the other tests.
 *
 * If a tolerance is 600 ticks or more, it contains a multiple of 600 ticks, wherever it begins. The
 * timer fires at such a multiple, or at a multiple of 3600, and that is what these tests look for.
 * With 14400 ticks or more it is a multiple of 3600.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

#define TIME_MAX	INT64_MAX
#define MEET		(600 * MS)	/* where timers meet, with ticks of a ms */
#define WITHIN		(4 * SEC)
#define N		200

/* Functions of the library refuse tolerances, like a module of version 1.0.0: see lib.h. */
static bool old_module;

int __wrap_twheel_add_within(struct twheel *twheel, uint64_t *handle, uint64_t user_data,
			     uint64_t expires_ns, uint64_t interval_ns, uint64_t tolerance_ns,
			     uint32_t flags)
{
	if (old_module && tolerance_ns)
		return -E2BIG;
	return __real_twheel_add_within(twheel, handle, user_data, expires_ns, interval_ns,
					tolerance_ns, flags);
}

int __wrap_twheel_mod_within(struct twheel *twheel, uint64_t handle, uint64_t expires_ns,
			     uint64_t interval_ns, uint64_t tolerance_ns, uint32_t flags)
{
	if (old_module && tolerance_ns)
		return -E2BIG;
	return __real_twheel_mod_within(twheel, handle, expires_ns, interval_ns, tolerance_ns,
					flags);
}

static uint64_t add_within(struct twheel *w, u64 user_data, u64 delay, u64 tolerance, u32 flags)
{
	uint64_t handle = 0;

	CHECK_EQ(twheel_add_within(w, &handle, user_data, delay, 0, tolerance, flags), 0);
	CHECK(handle);
	return handle;
}

static u64 tolerance_of(struct twheel *w, uint64_t handle)
{
	struct twheel_op op;

	memset(&op, POISON, sizeof(op));
	CHECK(twheel_query(w, handle, 0, &op) >= 0);
	return op.tolerance_ns;
}

/* A deadline plus its tolerance may reach to the end of time and not beyond. */
static void refused(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t handle = 4711, one = wheel_add(w, 1, HOUR);
	struct twheel_op ops[] = {
		{ .op = TWHEEL_OP_CANCEL, .handle = one, .tolerance_ns = 1 },
		{ .op = TWHEEL_OP_QUERY, .handle = one, .tolerance_ns = 1 },
		{ .op = TWHEEL_OP_MOD, .handle = one, .expires_ns = 1, .tolerance_ns = TIME_MAX },
		{ .op = TWHEEL_OP_ADD, .expires_ns = HOUR, .tolerance_ns = TIME_MAX - HOUR },
	};

	CHECK_EQ(twheel_add_within(w, &handle, 1, 1, 0, TIME_MAX, 0), -EINVAL);
	CHECK_EQ(twheel_add_within(w, &handle, 1, 0, 0, 1 + (u64)TIME_MAX, 0), -EINVAL);
	CHECK_EQ(twheel_add_within(w, &handle, 1, HOUR, 0, ~0ULL, TWHEEL_F_ABS), -EINVAL);
	CHECK_EQ(twheel_add_within(w, &handle, 1, TIME_MAX, 0, 1, TWHEEL_F_ABS), -EINVAL);
	CHECK_EQ(handle, 4711);
	CHECK_EQ(twheel_mod_within(w, one, HOUR, 0, TIME_MAX, 0), -EINVAL);
	CHECK_EQ(tolerance_of(w, one), 0);
	CHECK_EQ(twheel_submit(w, ops, ARRAY_SIZE(ops)), 3);
	for (u32 i = 0; i < ARRAY_SIZE(ops); i++)
		CHECK_EQ(ops[i].res, i == 3 ? 0 : -EINVAL);
	CHECK_EQ(twheel_add_within(w, &handle, 1, TIME_MAX, 0, 0, TWHEEL_F_ABS), 0);
	CHECK_EQ(twheel_add_within(w, &handle, 1, 0, 0, TIME_MAX, 0), 0);
	wheel_counts(w, 4, 4, 0);
	twheel_close(w);
}

/* At least three digits of a tolerance are kept and returned. MOD sets a new tolerance. */
static void told(void)
{
	static const struct { u64 asked, kept; } tolerances[] = {
		{ 1, 1 }, { 2047, 2047 }, { 2048, 2040 }, { 250 * MS, 250 * MS },
		{ 1234567890, 1234000000 }, { 9999999999, 9990000000 }, { 5400 * SEC, 5400 * SEC },
		{ TIME_MAX - HOUR, 9220000000000000000 },
	};
	struct twheel *w = wheel_new(NULL);
	uint64_t handle = wheel_add(w, 7, HOUR);

	for (u32 i = 0; i < ARRAY_SIZE(tolerances); i++) {
		CHECK_EQ(twheel_mod_within(w, handle, HOUR, 0, tolerances[i].asked, 0), 1);
		CHECK_EQ(tolerance_of(w, handle), tolerances[i].kept);
	}
	CHECK_EQ(twheel_mod(w, handle, HOUR, 0, 0), 1);
	CHECK_EQ(tolerance_of(w, handle), 0);
	CHECK_EQ(tolerance_of(w, add_within(w, 8, HOUR, 3 * SEC, 0)), 3 * SEC);
	twheel_close(w);
}

/* The tolerance stays with an idle timer, and with one that is drained. */
static void kept(void)
{
	struct twheel *w = wheel_new(NULL), *other = wheel_new(NULL);
	uint64_t handle = add_within(w, 1, 0, 5 * MS, TWHEEL_F_KEEP);
	struct twheel_event ev;
	struct twheel_op op;

	CHECK_EQ(wheel_read(w, &ev, 1), 1);
	CHECK_EQ(tolerance_of(w, handle), 5 * MS);
	CHECK_EQ(twheel_mod_within(w, handle, HOUR, SEC, 2 * HOUR, TWHEEL_F_KEEP), 0);
	memset(&op, POISON, sizeof(op));
	CHECK_EQ(twheel_drain(w, &op, 1, TWHEEL_F_ABS), 1);
	CHECK_EQ(op.tolerance_ns, 2 * HOUR);
	CHECK_EQ(op.interval_ns, SEC);
	op.handle = 0;
	CHECK_EQ(twheel_submit(other, &op, 1), 0);
	CHECK_EQ(tolerance_of(other, op.handle), 2 * HOUR);
	twheel_close(other);
	twheel_close(w);
}

/* If a slot had a tolerance, the next timer in it is exact. */
static void exact_again(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t handle = add_within(w, 1, HOUR, HOUR, 0);

	CHECK_EQ(twheel_cancel(w, handle, NULL), 1);
	CHECK_EQ(tolerance_of(w, wheel_add(w, 2, HOUR)), 0);
	twheel_close(w);
}

/* Where timers last met, at that time. */
static u64 meeting(u64 time)
{
	return time / MEET * MEET;
}

/* A timer that was due at @due fired at @at: it must have waited for a meeting in between. */
static void check_meeting(u64 due, u64 at)
{
	CHECK(meeting(at) >= due);
	CHECK(at <= due + WITHIN + WAIT_MS * MS);
}

/*
 * The timers are due one after the other, and have so little in common that few wake-ups are
 * enough.
 */
static void meet_on(const struct twheel_setup *setup, unsigned int flags, u32 op_flags)
{
	u64 now = now_ns(setup->clockid), deadline[N];
	struct twheel_event ev[N];
	u32 fired = 0, waits = 0;
	struct twheel *w = NULL;

	CHECK_EQ(twheel_open(&w, flags, setup), 0);
	for (u32 i = 0; i < N; i++) {
		u64 delay = 10 * MS + i * 10 * MS;

		deadline[i] = now + delay;
		add_within(w, i, op_flags & TWHEEL_F_ABS ? deadline[i] : delay, WITHIN, op_flags);
	}
	while (fired < N && !failed()) {
		int got = twheel_read(w, ev, N, 0);
		u64 at;

		if (got == -EAGAIN) {
			got = twheel_read(w, ev, N, WAIT_MS);
			waits++;
		}
		at = now_ns(setup->clockid);
		CHECK(got > 0);
		for (int i = 0; i < got; i++, fired++) {
			CHECK(ev[i].expires_ns >= deadline[ev[i].user_data]);
			check_meeting(ev[i].expires_ns, at);
		}
	}
	CHECK(waits <= N / 10);
	twheel_close(w);
}

static void meet(void)
{
	meet_on(&(struct twheel_setup){ .clockid = CLOCK_MONOTONIC }, 0, 0);
}

/* The same with the coarse clock, and on a clock that may be set. */
static void meet_others(void)
{
	meet_on(&(struct twheel_setup){ .clockid = CLOCK_MONOTONIC }, TWHEEL_ONE_THREAD,
		TWHEEL_F_ABS);
	meet_on(&(struct twheel_setup){ .clockid = CLOCK_REALTIME }, 0, TWHEEL_F_ABS);
}

/* A tolerance shorter than a tick changes nothing. With one of a few ticks, no timer is early. */
static void small(void)
{
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;

	for (u64 tolerance = 0; tolerance <= 64 * MS; tolerance += tolerance / 3 + MS / 4) {
		u64 before = now_ns(CLOCK_MONOTONIC);

		add_within(w, tolerance, 3 * MS, tolerance, 0);
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
		CHECK_EQ(ev.user_data, tolerance);
		CHECK(ev.expires_ns >= before + 3 * MS);
		CHECK_EQ(ev.count, 1);
	}
	twheel_close(w);
}

/* Each period may be late by itself: the deadlines that are reported are one period apart. */
static void phase(void)
{
	const u64 period = 7 * MS;
	struct twheel *w = wheel_new(NULL);
	struct twheel_event ev;
	u64 first = 0, periods = 0;
	uint64_t handle;

	CHECK_EQ(twheel_add_within(w, &handle, 1, period, period, 40 * MS, 0), 0);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(wheel_read(w, &ev, 1), 1);
		first = first ?: ev.expires_ns;
		CHECK_EQ(ev.expires_ns, first + periods * period);
		CHECK_EQ(ev.flags, TWHEEL_EV_MORE);
		periods += ev.count;
	}
	CHECK(periods > 6);	/* at multiples of 10 ms, and some at multiples of 30 or 60 */
	CHECK_EQ(tolerance_of(w, handle), 40 * MS);
	twheel_close(w);
}

/*
 * A timer is armed until it fires, even if its deadline is over: CANCEL says so, and DRAIN returns
 * it.
 */
static void late_is_armed(void)
{
	const u64 within = 15 * SEC, meet = 3600 * MS;
	u64 begun = now_ns(CLOCK_MONOTONIC), wait = begun % meet;
	struct twheel *w = wheel_new(NULL);
	int queried, cancelled, moved, drained;
	struct twheel_op op, last = { 0 };
	uint64_t one, other;

	/* Not shortly before a meeting. */
	if (wait > meet - SEC) {
		sleep_ms((unsigned int)((meet - wait) / MS) + 1);
		begun = now_ns(CLOCK_MONOTONIC);
	}
	one = add_within(w, 1, MS, within, 0);
	other = add_within(w, 2, MS, within, 0);
	sleep_ms(30);
	queried = twheel_query(w, one, 0, &op);
	cancelled = twheel_cancel(w, one, NULL);
	moved = twheel_mod_within(w, other, MS, 0, within, TWHEEL_F_PENDING);
	sleep_ms(30);
	drained = twheel_drain(w, &last, 1, 0);
	if (now_ns(CLOCK_MONOTONIC) / meet != begun / meet) {
		twheel_close(w);	/* the host stood still until the meeting */
		late_is_armed();
		return;
	}
	CHECK_EQ(queried, TWHEEL_STATE_ARMED);
	CHECK_EQ(op.expires_ns, 0);
	CHECK_EQ(cancelled, 1);
	CHECK_EQ(moved, 1);
	CHECK_EQ(drained, 1);
	CHECK_EQ(last.expires_ns, 0);
	CHECK_EQ(last.tolerance_ns, within);
	wheel_quiet(w, QUIET_MS);
	twheel_close(w);
}

/* How many timers are armed; all others are ready. */
static u32 armed_of(struct twheel *w, u32 timers)
{
	struct twheel_info info;

	CHECK_EQ(twheel_get_info(w, &info), 0);
	wheel_counts_are(&info, timers, info.nr_armed, timers - info.nr_armed);
	return info.nr_armed;
}

/*
 * The levels show where the timers are: there are at most as many buckets as meetings. A timer may
 * fire before it is counted, if the host stands still for a second.
 */
static void looked_into(void)
{
	static const u32 buckets[TWHEEL_LEVELS] = { 120, 120, 48, 730, 100, 2 };
	struct twheel *w = wheel_new(NULL);
	struct twheel_levels levels;
	u32 armed, timers = 0;

	for (u32 i = 0; i < 20 * N; i++)
		add_within(w, i, SEC + i * 20 * MS, i % 2 * SEC, 0);
	armed = armed_of(w, 20 * N);
	if (!twheel_get_levels(w, &levels)) {
		for (u32 i = 0; i < TWHEEL_LEVELS; i++) {
			CHECK(levels.buckets[i] <= buckets[i]);
			CHECK(levels.buckets[i] <= levels.timers[i]);
			timers += levels.timers[i];
		}
		CHECK(timers <= armed);
		CHECK(timers >= armed_of(w, 20 * N));
	}
	twheel_close(w);
}

/* A program that was compiled with version 1.0 has no tolerances. */
static void of_first(void)
{
	union {
		struct twheel_op	op;
		unsigned char		bytes[sizeof(struct twheel_op)];
	} u = { .op = { .op = TWHEEL_OP_ADD, .expires_ns = HOUR } };
	const size_t size = TWHEEL_OP_SIZE_VER0;
	struct twheel *w = wheel_new(NULL);

	memset(&u.bytes[size], POISON, sizeof(u) - size);
	CHECK_EQ(twheel_submit_sized(w, &u.op, 1, size), 0);
	CHECK_EQ(tolerance_of(w, u.op.handle), 0);
	CHECK_EQ(twheel_mod_within(w, u.op.handle, HOUR, 0, HOUR, 0), 1);
	CHECK_EQ(twheel_query_sized(w, u.op.handle, 0, &u.op, size), TWHEEL_STATE_ARMED);
	CHECK_EQ(twheel_drain_sized(w, &u.op, 1, 0, size), 1);
	for (size_t i = size; i < sizeof(u); i++)
		CHECK_EQ(u.bytes[i], POISON);
	twheel_close(w);
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void bad_tasks(void)
{
	struct twheel_sched *s = sched_new(0);
	struct twheel_task task = { .fn = run_note, .tolerance_ns = -1 };
	struct twheel_task_info *list;
	uint64_t id;

	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EINVAL);
	task.tolerance_ns = INT64_MIN;
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -EINVAL);
	CHECK_EQ(twheel_sched_pending(s), 0);
	/* Times never overflow. */
	task.tolerance_ns = TIME_MAX;
	task.when_ns = TIME_MAX;
	CHECK_EQ(twheel_sched_add(s, &task, &id), 0);
	CHECK_EQ(twheel_sched_mod(s, id, HOUR), 0);
	CHECK_EQ(twheel_sched_list(s, &list), 1);
	CHECK_EQ(list[0].tolerance_ns, TIME_MAX);
	free(list);
	/* A program of version 1.0. */
	CHECK_EQ(twheel_sched_add_sized(s, &task, NULL,
					offsetof(struct twheel_task, tolerance_ns)), 0);
	CHECK_EQ(twheel_sched_list(s, &list), 2);
	CHECK_EQ(list[1].tolerance_ns, 0);
	free(list);
	sched_close(s);
}

/*
 * Tasks meet as timers do. run_note() reports a task that is early. A task that was due before it
 * was added, because the host stood still, is exact.
 */
static void tasks_meet(void)
{
	struct twheel_sched *s = sched_new(0);
	s64 added;

	runs_forget();
	for (s64 i = 0; i < 10; i++)
		ADD(s, .when_ns = (s64)(10 + 200 * i) * (s64)MS, .tolerance_ns = WITHIN);
	added = (s64)now_ns(CLOCK_MONOTONIC);
	CHECK_EQ(runs_drive(s, 10), 10);
	for (u32 i = 0; i < 10; i++) {
		struct run run = run_nth(i);

		if (run.due > added)
			check_meeting((u64)run.due, (u64)run.start);
	}
	sched_close(s);
}

/* A task that is due at once does not wait for others. */
static void tasks_at_once(void)
{
	struct twheel_sched *s = sched_new(0);

	runs_forget();
	ADD(s, .when_ns = 0, .tolerance_ns = HOUR);
	ADD(s, .when_ns = -1, .period_ns = HOUR, .tolerance_ns = HOUR);
	CHECK_EQ(runs_drive(s, 2), 2);
	sched_close(s);
}

/* With a module that has no tolerances, a task is refused, or runs in each of its periods. */
static void tasks_old_module(void)
{
	const struct twheel_task later = { .fn = run_note, .when_ns = HOUR, .tolerance_ns = MS };
	struct twheel_sched *s = sched_new(0);

	old_module = true;
	CHECK_EQ(twheel_sched_add(s, &later, NULL), -E2BIG);
	CHECK_EQ(twheel_sched_pending(s), 0);
	runs_forget();
	ADD(s, .when_ns = 0, .period_ns = 5 * MS, .tolerance_ns = 2 * MS);
	CHECK(runs_drive(s, 4) >= 4);
	old_module = false;
	sched_close(s);
}

static void note_tolerance(void *arg, const struct twheel_task_info *task)
{
	CHECK_EQ(task->tolerance_ns, 40 * MS);
	run_note(arg, task);
}

/*
 * Periods keep their phase, whatever happens to missed ones. A run within its tolerance is not
 * late.
 */
static void tasks_phase(void)
{
	static const u32 flags[] = { 0, TWHEEL_MISSED_SKIP, TWHEEL_MISSED_DELAY };
	const s64 period = 50 * (s64)MS;

	for (u32 i = 0; i < ARRAY_SIZE(flags); i++) {
		struct twheel_sched *s = sched_new(0);

		runs_forget();
		ADD(s, .fn = note_tolerance, .when_ns = period, .period_ns = period,
		    .tolerance_ns = 40 * MS, .flags = flags[i]);
		CHECK(runs_drive(s, 4) >= 4);
		/* If a busy machine delays a run by a whole period, that run is late. */
		for (u32 n = 1; n < 4; n++) {
			struct run run = run_nth(n), before = run_nth(n - 1);
			bool held_up = before.start - before.due > 45 * (s64)MS;

			CHECK(held_up || run.due == before.due + period);
		}
		sched_close(s);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{ refused, "good tolerances are accepted, bad ones refused" },
		{ told, "QUERY returns three digits of a tolerance" },
		{ kept, "a timer keeps its tolerance in each state and wheel" },
		{ exact_again, "a freed slot does not keep its tolerance" },
		{ meet, "timers with tolerances fire together" },
		{ meet_others, "timers with tolerances fire together, on other clocks" },
		{ small, "a small tolerance" },
		{ phase, "periods keep their phase" },
		{ late_is_armed, "a timer is armed until it fires" },
		{ looked_into, "twheel_get_levels() counts timers at stops" },
		{ of_first, "a program without tolerances" },
		{ bad_tasks, "tasks: good tolerances are accepted, bad ones refused" },
		{ tasks_meet, "tasks with tolerances run together" },
		{ tasks_at_once, "tasks: no tolerance if due at once" },
		{ tasks_old_module, "tasks with tolerances, and a module without" },
		{ tasks_phase, "tasks with tolerances keep their phase" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
