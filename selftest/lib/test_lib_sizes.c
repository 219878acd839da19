// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Structures of other sizes than the library's: see Growth in libtwheel.h. These tests behave like
 * a program that was compiled with longer structures. grown.sh compiles real programs with shorter
 * ones, and newer libraries.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

#define TAIL	24	/* by so many bytes they are longer */
#define N	200	/* more than a reader of longer events gets at once */

/* struct longer_op is a longer struct twheel_op, and so on. */
#define LONGER(name) \
	struct longer_##name { struct twheel_##name mine; char tail[TAIL]; }

LONGER(setup);
LONGER(info);
LONGER(levels);
LONGER(op);
LONGER(event);
LONGER(sched_options);
LONGER(task);
LONGER(task_info);

static bool is_zero(const char *tail, size_t n)
{
	while (n && !*tail) {
		tail++;
		n--;
	}
	return !n;
}

static struct twheel *wheel;
static struct twheel_sched *sched;

/* Call each function with structures of @size bytes. */
static int open_size(size_t size)
{
	static const union {
		struct twheel_setup	setup;
		char			room[8192];
	} u = { .setup = { .clockid = CLOCK_MONOTONIC } };
	struct twheel *w = NULL;
	int rc = twheel_open_sized(&w, 0, &u.setup, size);

	CHECK(!rc == !!w);
	twheel_close(w);
	return rc;
}

static int submit_size(size_t size)
{
	static char op[8192];

	return twheel_submit_sized(wheel, (void *)op, 1, size);
}

static int query_size(size_t size)
{
	static char op[8192];

	return twheel_query_sized(wheel, wheel_add(wheel, 1, HOUR), 0, (void *)op, size);
}

static int drain_size(size_t size)
{
	static char op[8192];

	return twheel_drain_sized(wheel, (void *)op, 1, 0, size);
}

static int read_size(size_t size)
{
	static char event[8192];

	return twheel_read_sized(wheel, (void *)event, 1, 0, size);
}

static int info_size(size_t size)
{
	static char info[8192];

	return twheel_get_info_sized(wheel, (void *)info, size);
}

static int levels_size(size_t size)
{
	static char levels[8192];

	return twheel_get_levels_sized(wheel, (void *)levels, size);
}

static int sched_open_size(size_t size)
{
	static const char options[8192];
	struct twheel_sched *s = NULL;
	int rc = twheel_sched_open_sized(&s, (const void *)options, size);

	CHECK(!rc == !!s);
	twheel_sched_close(s);
	return rc;
}

static int add_size(size_t size)
{
	union {
		struct twheel_task	task;
		char			room[8192];
	} u = { .task = { .fn = run_note, .when_ns = HOUR } };
	uint64_t id;
	int rc = twheel_sched_add_sized(sched, &u.task, &id, size);

	CHECK_EQ(twheel_sched_pending(sched), !rc);
	return rc ?: twheel_sched_cancel(sched, id, 0);
}

static int list_size(size_t size)
{
	struct twheel_task_info *list = NULL;
	int rc = twheel_sched_list_sized(sched, &list, size);

	free(list);
	return rc;
}

static int stop_size(size_t size)
{
	struct twheel_task_info *list = NULL;
	int rc = twheel_sched_stop_sized(sched, 0, &list, size);

	free(list);
	return rc;
}

/* @last is the last member that the structure had in version 1.0. */
#define SIZED(fn, type, last, ...)						\
	{ fn, sizeof(struct type), __alignof__(struct type),			\
	  offsetof(struct type, last) + sizeof(((struct type *)NULL)->last), __VA_ARGS__ }

/* A structure: the library's size, that of version 1.0, and what a call must return with either. */
static const struct {
	int	(*fn)(size_t size);
	size_t	size, align, first;
	int	rc;
	size_t	max;
} calls[] = {
	SIZED(open_size, twheel_setup, reserved, 0, 4096),
	SIZED(submit_size, twheel_op, reserved, 1, 4096),
	SIZED(query_size, twheel_op, reserved, TWHEEL_STATE_ARMED, 4096),
	SIZED(drain_size, twheel_op, reserved, 1, 4096),
	SIZED(read_size, twheel_event, flags, -EAGAIN, 4096),
	SIZED(info_size, twheel_info, nr_deferred, 0, 4096),
	SIZED(levels_size, twheel_levels, buckets, 0, 4096),
	SIZED(sched_open_size, twheel_sched_options, reserved, 0, 4096),
	SIZED(add_size, twheel_task, reserved, 0, 4096),
	SIZED(list_size, twheel_task_info, state, 0, TWHEEL_TASK_INFO_MAX),
	SIZED(stop_size, twheel_task_info, state, 0, TWHEEL_TASK_INFO_MAX),
};

static void refused(u32 i)
{
	CHECK_EQ(calls[i].fn(0), -EINVAL);
	CHECK_EQ(calls[i].fn(8), -EINVAL);
	CHECK_EQ(calls[i].fn(calls[i].first - calls[i].align), -EINVAL);
	CHECK_EQ(calls[i].fn(calls[i].size + calls[i].align / 2), -EINVAL);
	CHECK_EQ(calls[i].fn(calls[i].max + calls[i].align), -EINVAL);
	CHECK_EQ(calls[i].fn(SIZE_MAX / 8 * 8), -EINVAL);
}

static void bounds(void)
{
	bool kernel;

	wheel = wheel_new(NULL);
	sched = sched_new(0);
	kernel = !strcmp(twheel_backend(wheel), "kernel");
	for (u32 i = 0; i < ARRAY_SIZE(calls); i++) {
		int rc = calls[i].fn == levels_size && kernel ? -EOPNOTSUPP : calls[i].rc;

		refused(i);
		CHECK_EQ(calls[i].fn(calls[i].first), rc);
		CHECK_EQ(calls[i].fn(calls[i].size), rc);
		CHECK_EQ(calls[i].fn(calls[i].size + calls[i].align), rc);
		CHECK_EQ(calls[i].fn(calls[i].max), rc);
	}
	sched_close(sched);
	twheel_close(wheel);
}

/*
 * Structures that the library reads: if the part that it does not know is zero, it is ignored; else
 * it is refused.
 */
static void longer_in(void)
{
	struct longer_setup setup = { .mine = { .clockid = CLOCK_MONOTONIC, .tick_ns = 2 * MS } };
	struct longer_sched_options options = { .mine = { .tick_ns = 2 * MS } };
	struct longer_task task = { .mine = { .fn = run_note, .when_ns = HOUR } };
	struct twheel_sched *s = NULL;
	struct twheel *w = NULL;
	struct twheel_info info;

	setup.tail[TAIL - 1] = 1;
	CHECK_EQ(twheel_open_sized(&w, 0, &setup.mine, sizeof(setup)), -E2BIG);
	options.tail[0] = 1;
	CHECK_EQ(twheel_sched_open_sized(&s, &options.mine, sizeof(options)), -E2BIG);
	CHECK(!w && !s);
	setup.tail[TAIL - 1] = 0;
	CHECK_EQ(twheel_open_sized(&w, 0, &setup.mine, sizeof(setup)), 0);
	options.tail[0] = 0;
	CHECK_EQ(twheel_sched_open_sized(&s, &options.mine, sizeof(options)), 0);

	CHECK_EQ(twheel_get_info(w, &info), 0);
	CHECK_EQ(info.tick_ns, 2 * MS);
	CHECK_EQ(twheel_get_info(twheel_sched_wheel(s), &info), 0);
	CHECK_EQ(info.tick_ns, 2 * MS);

	task.tail[1] = 1;
	CHECK_EQ(twheel_sched_add_sized(s, &task.mine, NULL, sizeof(task)), -E2BIG);
	CHECK_EQ(twheel_sched_pending(s), 0);
	task.tail[1] = 0;
	CHECK_EQ(twheel_sched_add_sized(s, &task.mine, NULL, sizeof(task)), 0);
	CHECK_EQ(twheel_sched_pending(s), 1);
	sched_close(s);
	twheel_close(w);
}

/* Structures that the library fills in. */
static void longer_out(void)
{
	struct twheel *w = wheel_new(NULL);
	uint64_t handle = wheel_add(w, 42, HOUR);
	struct longer_levels levels;
	struct longer_info info;
	struct longer_op op;
	int rc;

	memset(&levels, POISON, sizeof(levels));
	memset(&info, POISON, sizeof(info));
	memset(&op, POISON, sizeof(op));
	CHECK_EQ(twheel_query_sized(w, handle, 0, &op.mine, sizeof(op)), TWHEEL_STATE_ARMED);
	CHECK_EQ(op.mine.user_data, 42);
	CHECK(is_zero(op.tail, TAIL));
	CHECK_EQ(twheel_get_info_sized(w, &info.mine, sizeof(info)), 0);
	CHECK_EQ(info.mine.nr_armed, 1);
	CHECK(is_zero(info.tail, TAIL));
	rc = twheel_get_levels_sized(w, &levels.mine, sizeof(levels));
	if (CHECK(!rc || rc == -EOPNOTSUPP) && !rc) {
		CHECK_EQ(levels.mine.timers[0] + levels.mine.timers[1] + levels.mine.timers[2] +
			 levels.mine.timers[3], 1);
		CHECK(is_zero(levels.tail, TAIL));
	}

	/* A call that fails writes nothing. */
	memset(&op, POISON, sizeof(op));
	CHECK_EQ(twheel_query_sized(w, handle + 1, 0, &op.mine, sizeof(op)), -ENOENT);
	CHECK_EQ(op.mine.user_data & 0xff, POISON);
	twheel_close(w);
}

/* Each seventh operation has a member that the library does not know, and must not be done. */
static void longer_submit(void)
{
	struct longer_op ops[N] = { 0 };
	struct twheel *w = wheel_new(NULL);
	int bad = 0;

	for (u32 i = 0; i < N; i++) {
		ops[i].mine.op = TWHEEL_OP_ADD;
		ops[i].mine.user_data = i;
		ops[i].mine.expires_ns = HOUR;
		ops[i].tail[i % TAIL] = i % 7 == 3;
		bad += i % 7 == 3;
	}
	CHECK_EQ(twheel_submit_sized(w, &ops[0].mine, N, sizeof(ops[0])), bad);
	for (u32 i = 0; i < N; i++) {
		CHECK_EQ(ops[i].mine.res, i % 7 == 3 ? -E2BIG : 0);
		CHECK_EQ(!ops[i].mine.handle, i % 7 == 3);
		CHECK_EQ(ops[i].mine.user_data, i);
	}
	wheel_counts(w, N - (u32)bad, N - (u32)bad, 0);
	twheel_close(w);
}

static void longer_drain(void)
{
	struct twheel *w = wheel_new(NULL);
	struct longer_op ops[N + 1];
	bool seen[N] = { false };

	for (u32 i = 0; i < N; i++)
		wheel_add(w, i, HOUR);
	memset(ops, POISON, sizeof(ops));
	CHECK_EQ(twheel_drain_sized(w, &ops[0].mine, N, 0, sizeof(ops[0])), N);
	for (u32 i = 0; i < N; i++) {
		CHECK_EQ(ops[i].mine.op, TWHEEL_OP_ADD);
		CHECK(is_zero(ops[i].tail, TAIL));
		if (CHECK(ops[i].mine.user_data < N && !seen[ops[i].mine.user_data]))
			seen[ops[i].mine.user_data] = true;
	}
	CHECK_EQ(*(unsigned char *)&ops[N], POISON);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
}

static void longer_read(void)
{
	struct twheel *w = wheel_new(NULL);
	struct longer_event ev[N + 1];
	bool seen[N] = { false };
	u32 done = 0;

	for (u32 i = 0; i < N; i++)
		wheel_add(w, i, 0);
	while (done < N && !failed()) {
		int got;

		memset(ev, POISON, sizeof(ev));
		got = twheel_read_sized(w, &ev[0].mine, N, WAIT_MS, sizeof(ev[0]));
		for (int i = 0; i < got; i++) {
			CHECK(is_zero(ev[i].tail, TAIL));
			if (CHECK(ev[i].mine.user_data < N && !seen[ev[i].mine.user_data]))
				seen[ev[i].mine.user_data] = true;
		}
		if (CHECK(got > 0 && got <= N))
			CHECK_EQ(*(unsigned char *)&ev[got], POISON);
		done += (u32)got;
	}
	CHECK_EQ(done, N);
	wheel_counts(w, 0, 0, 0);
	twheel_close(w);
}

static void check_list(struct twheel_task_info *list, int n)
{
	struct longer_task_info *infos = (struct longer_task_info *)list;

	CHECK_EQ(n, N);
	for (int i = 0; i < n; i++) {
		CHECK_EQ((uintptr_t)infos[i].mine.arg, i);
		CHECK(!memcmp(infos[i].mine.key, &i, sizeof(i)));
		CHECK(is_zero(infos[i].tail, TAIL));
	}
	free(list);
}

static void longer_list(void)
{
	struct twheel_sched *s = sched_new(0);
	struct twheel_task_info *list;
	int n;

	for (u32 i = 0; i < N; i++)
		ADD(s, .when_ns = HOUR, .arg = (void *)(uintptr_t)i,
		    .key = &i, .key_len = sizeof(i));
	n = twheel_sched_list_sized(s, &list, sizeof(struct longer_task_info));
	check_list(list, n);
	n = twheel_sched_stop_sized(s, 0, &list, sizeof(struct longer_task_info));
	check_list(list, n);
	sched_close(s);
}

static void followed_by_zeros(void *arg, const struct twheel_task_info *task)
{
	const char *room = (const char *)task;

	CHECK(is_zero(room + sizeof(*task), TWHEEL_TASK_INFO_MAX - sizeof(*task)));
	run_note(arg, task);
}

static void longer_task(void)
{
	struct twheel_sched *s = sched_new(2);

	runs_forget();
	for (u32 i = 0; i < 20; i++)
		ADD(s, .fn = followed_by_zeros);
	CHECK_EQ(runs_wait(20), 20);
	sched_close(s);
}

static void version(void)
{
	CHECK_EQ(twheel_version(), TWHEEL_VERSION);
	CHECK_EQ(twheel_version() >> 16, TWHEEL_VERSION_MAJOR);
	CHECK(TWHEEL_VERSION_OF(1, 0, 0) <= twheel_version());
	CHECK(TWHEEL_VERSION_OF(1, 2, 3) < TWHEEL_VERSION_OF(1, 10, 0));
}

int main(void)
{
	static const struct test tests[] = {
		{ bounds, "sizes that no version can have are refused" },
		{ longer_in, "longer structures that are read: the rest must be zero" },
		{ longer_out, "longer structures that are filled in: the rest is zero" },
		{ longer_submit, "longer operations are done" },
		{ longer_drain, "longer operations are drained" },
		{ longer_read, "longer events are read" },
		{ longer_list, "longer tasks are listed" },
		{ longer_task, "zeroes follow the structure that a function gets" },
		{ version, "twheel_version() is the header's version" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
