// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Parity with the TimingWheel of go-zero: keys and values that can be set, moved, removed and
 * drained. go-zero keeps the memory of a removed timer until the wheel comes to its slot, and its
 * Drain() left keys behind. libtwheel does neither.
 *
 *	SetTimer(key, value, delay)	.key = key, .arg = value
 *	MoveTimer(key, delay)		twheel_sched_mod(s, twheel_sched_find(s, key, 0), delay)
 *	RemoveTimer(key)		twheel_sched_cancel(s, twheel_sched_find(s, key, 0), 0)
 *	Drain(fn)			twheel_sched_list(), and cancel each
 *	Stop()				twheel_sched_stop()
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

static uint64_t set_timer(struct twheel_sched *s, const char *key, const char *value, s64 delay)
{
	return ADD(s, .key = key, .arg = (void *)value, .when_ns = delay,
		   .release = run_release);
}

static int move_timer(struct twheel_sched *s, const char *key, s64 delay)
{
	return twheel_sched_mod(s, twheel_sched_find(s, key, 0), delay);
}

static int remove_timer(struct twheel_sched *s, const char *key)
{
	return twheel_sched_cancel(s, twheel_sched_find(s, key, 0), 0);
}

static void set(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	set_timer(s, "any", "3", 20 * MS);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(!strcmp(run_nth(0).arg, "3"));
	sched_close(s);
	CHECK_EQ(released(), 1);
}

static void set_twice(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	set_timer(s, "any", "3", HOUR);
	set_timer(s, "any", "5", 20 * MS);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(!strcmp(run_nth(0).arg, "5"));
	CHECK_EQ(twheel_sched_pending(s), 0);
	sched_close(s);
}

static void move(void)
{
	struct twheel_sched *s = sched_new(1);
	s64 start = (s64)now_ns(CLOCK_MONOTONIC);

	runs_forget();
	set_timer(s, "any", "3", HOUR);
	CHECK_EQ(move_timer(s, "any", 2 * HOUR), 0);
	CHECK_EQ(move_timer(s, "any", 50 * MS), 0);	/* earlier */
	CHECK_EQ(move_timer(s, "none", MS), -ENOENT);
	CHECK_EQ(runs_wait(1), 1);
	CHECK(run_nth(0).start >= start + 50 * (s64)MS);
	CHECK(!strcmp(run_nth(0).arg, "3"));
	CHECK_EQ(move_timer(s, "any", MS), -ENOENT);
	sched_close(s);
}

/* testMoveTimerSoon: move a timer to less than an interval from now. */
static void move_soon(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	set_timer(s, "any", "3", HOUR);
	CHECK_EQ(move_timer(s, "any", 1), 0);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void remove_one(void)
{
	struct twheel_sched *s = sched_new(1);

	runs_forget();
	set_timer(s, "any", "3", HOUR);
	CHECK_EQ(remove_timer(s, "any"), 0);
	CHECK_EQ(released(), 1);	/* now, not when the wheel comes to its slot */
	CHECK_EQ(remove_timer(s, "any"), -ENOENT);
	wheel_counts(twheel_sched_wheel(s), 0, 0, 0);
	CHECK_EQ(runs_count(), 0);
	sched_close(s);
}

static void drain_all(void)
{
	struct twheel_sched *s = sched_new(1);
	struct twheel_task_info *list;
	char key[2] = "a";
	int n;

	runs_forget();
	for (; key[0] < 'h'; key[0]++)
		set_timer(s, key, "v", HOUR);
	n = twheel_sched_list(s, &list);
	CHECK_EQ(n, 7);
	for (int i = 0; i < n; i++) {
		CHECK(!strcmp(list[i].arg, "v") && *(const char *)list[i].key == 'a' + i);
		CHECK_EQ(twheel_sched_cancel(s, list[i].id, 0), 0);
	}
	free(list);
	CHECK_EQ(twheel_sched_find(s, "a", 0), 0);	/* no key is left behind */
	CHECK_EQ(twheel_sched_pending(s), 0);
	set_timer(s, "a", "w", MS);
	CHECK_EQ(runs_wait(1), 1);
	sched_close(s);
}

static void stopped(void)
{
	struct twheel_task task = { .fn = run_note, .key = "any" };
	struct twheel_sched *s = sched_new(1);
	struct twheel_task_info *list;

	runs_forget();
	set_timer(s, "any", "3", HOUR);
	CHECK_EQ(twheel_sched_stop(s, 0, &list), 1);
	CHECK(!strcmp(list[0].key, "any") && !strcmp(list[0].arg, "3"));
	free(list);
	CHECK_EQ(twheel_sched_add(s, &task, NULL), -ESHUTDOWN);
	CHECK_EQ(move_timer(s, "any", MS), -ENOENT);
	CHECK_EQ(remove_timer(s, "any"), -ENOENT);
	sched_close(s);
	CHECK_EQ(released(), 0);
}

/*
 * More than one round of slots, and moves across them. Again if the host stood still until one was
 * due before all had been added.
 */
static void rounds(void)
{
	static const char *const keys[] = { "a", "b", "c", "d" };
	struct twheel_sched *s = sched_new(1);
	u64 first = now_ns(CLOCK_MONOTONIC) + 80 * MS;
	bool late;

	runs_forget();
	for (int i = 0; i < 4; i++)
		set_timer(s, keys[i], keys[i], i ? 40 * (i + 1) * (s64)MS : (s64)HOUR);
	CHECK_EQ(move_timer(s, "a", 250 * MS), 0);
	late = now_ns(CLOCK_MONOTONIC) >= first;
	CHECK_EQ(runs_wait(4), 4);
	sched_close(s);
	if (late) {
		rounds();
		return;
	}
	for (u32 i = 0; i < 4; i++)
		CHECK_EQ(run_nth(i).arg[0], "bcda"[i]);
}

int main(void)
{
	static const struct test tests[] = {
		{ set, "go-zero: SetTimer() gives the value after the delay" },
		{ set_twice, "go-zero: SetTimer() of the same key takes over" },
		{ move, "go-zero: MoveTimer() later and earlier" },
		{ move_soon, "go-zero: MoveTimer() to at once" },
		{ remove_one, "go-zero: RemoveTimer() frees at once" },
		{ drain_all, "go-zero: Drain() hands out all, and leaves no keys behind" },
		{ stopped, "go-zero: after Stop() all is refused" },
		{ rounds, "go-zero: delays of several rounds" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
