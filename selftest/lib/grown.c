// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * grown.c: a program that uses each structure of libtwheel, for a library that knows a longer or a
 * shorter one. grown.sh compiles the program with the present headers; and with -DGROWN, against
 * headers in which each structure has one more member, "grown". It runs both with both libraries.
 *
 *	grown [older]	older: the library is older than the headers
 *
 * The exit status is 0 if everything is as libtwheel.h says under Growth. The backend is the
 * embedded one.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libtwheel.h>
#include <libtwheel-sched.h>

#define N	10
#define HOUR	3600000000000ULL
#define POISON	0xcc

static int wrong;
static bool older;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("line %d: not so: %s\n", __LINE__, #cond);	\
		wrong = 1;						\
	}								\
} while (0)

/*
 * The new member. In a structure that the program gives, a library that knows the member accepts 0
 * and 1, and an older one refuses 1. In a structure that the program gets, a library that knows the
 * member sets it to 0 as well.
 */
#ifdef GROWN
#define SET(s, value)	((s).grown = (value))
#define IS_ZERO(s)	((s).grown == 0)
#define REFUSED		(older ? -E2BIG : 0)
#else
#define SET(s, value)	((void)(s))
#define IS_ZERO(s)	true
#define REFUSED		0
#endif

/* A structure lies between other memory, which must stay as it is. */
static bool untouched(const void *mem, size_t size)
{
	const unsigned char *byte = mem;

	while (size && *byte == POISON) {
		byte++;
		size--;
	}
	return !size;
}

static struct twheel *wheel_open(void)
{
	struct twheel_setup setup = { .clockid = CLOCK_MONOTONIC, .tick_ns = 2000000 };
	struct twheel *w = NULL;

	SET(setup, 1);
	CHECK(twheel_open(&w, TWHEEL_EMBEDDED, &setup) == REFUSED);
	twheel_close(w);
	SET(setup, 0);
	w = NULL;
	CHECK(!twheel_open(&w, TWHEEL_EMBEDDED, &setup));
	return w ? w : (exit(1), NULL);
}

static void infos(struct twheel *w)
{
	struct twheel_levels levels[2];
	struct twheel_info info[2];

	memset(levels, POISON, sizeof(levels));
	memset(info, POISON, sizeof(info));
	CHECK(!twheel_get_info(w, info) && info[0].tick_ns == 2000000 && IS_ZERO(info[0]));
	CHECK(!twheel_get_levels(w, levels) && !levels[0].timers[0] && IS_ZERO(levels[0]));
	CHECK(untouched(&info[1], sizeof(info[1])));
	CHECK(untouched(&levels[1], sizeof(levels[1])));
}

static void ops(struct twheel *w)
{
	struct twheel_op op[N + 1];
	struct twheel_op query[2];

	memset(op, 0, N * sizeof(op[0]));
	memset(&op[N], POISON, sizeof(op[N]));
	memset(query, POISON, sizeof(query));
	for (int i = 0; i < N; i++) {
		op[i].op = TWHEEL_OP_ADD;
		op[i].user_data = (uint64_t)i;
		op[i].expires_ns = HOUR;
		SET(op[i], i == 5);
	}
	CHECK(twheel_submit(w, op, N) == !!REFUSED);
	for (int i = 0; i < N; i++)
		CHECK(op[i].res == (i == 5 ? REFUSED : 0) && !op[i].handle == (op[i].res < 0));
	CHECK(twheel_query(w, op[7].handle, 0, query) == TWHEEL_STATE_ARMED);
	CHECK(query[0].user_data == 7 && IS_ZERO(query[0]));
	CHECK(untouched(&query[1], sizeof(query[1])));

	memset(op, POISON, sizeof(op));
	CHECK(twheel_drain(w, op, N, 0) == N - !!REFUSED);
	for (int i = 0; i < N - !!REFUSED; i++)
		CHECK(op[i].op == TWHEEL_OP_ADD && op[i].user_data < N && IS_ZERO(op[i]));
	CHECK(untouched(&op[N], sizeof(op[N])));
}

static void events(struct twheel *w)
{
	struct twheel_event ev[N + 1];
	uint64_t handle, sum = 0;
	int got = 0;

	for (uint64_t i = 1; i <= N; i++)
		CHECK(!twheel_add(w, &handle, i, i * 100, 0, 0));
	memset(ev, POISON, sizeof(ev));
	for (int n; got < N; got += n) {
		n = twheel_read(w, &ev[got], (uint32_t)(N - got), 10000);
		if (n <= 0)
			exit(1);
	}
	for (int i = 0; i < N; i++) {
		sum += ev[i].user_data;
		CHECK(ev[i].count == 1 && IS_ZERO(ev[i]));
	}
	CHECK(sum == N * (N + 1) / 2 && untouched(&ev[N], sizeof(ev[N])));
}

static void run(void *arg, const struct twheel_task_info *task)
{
	CHECK(task->runs == 1 && IS_ZERO(*task));
	++*(int *)arg;
}

static struct twheel_sched *sched_open(void)
{
	struct twheel_sched_options options = { .tick_ns = 2000000 };
	struct twheel_sched *s = NULL;

	SET(options, 1);
	CHECK(twheel_sched_open(&s, &options) == REFUSED);
	twheel_sched_close(s);
	SET(options, 0);
	s = NULL;
	CHECK(!twheel_sched_open(&s, &options));
	return s ? s : (exit(1), NULL);
}

static void check_list(struct twheel_task_info *list, int n, int first)
{
	CHECK(n == N);
	for (int i = 0; i < n; i++)
		CHECK(list[i].flags == 0 && IS_ZERO(list[i]) &&
		      *(const char *)list[i].key == 'a' + first + i);
	free(list);
}

static void tasks(struct twheel_sched *s)
{
	struct twheel_task task = { .fn = run, .when_ns = HOUR, .key_len = 1 };
	struct twheel_task_info *list = NULL;
	int ran = 0, n;

	task.arg = &ran;
	for (char key = 'a'; key < 'a' + N; key++) {
		task.key = &key;
		SET(task, 1);
		CHECK(twheel_sched_add(s, &task, NULL) == REFUSED);
		SET(task, 0);
		CHECK(!twheel_sched_add(s, &task, NULL));
	}
	n = twheel_sched_list(s, &list);
	check_list(list, n, 0);
	task.key = NULL;
	task.when_ns = 0;
	CHECK(!twheel_sched_add(s, &task, NULL));
	while (!ran && twheel_sched_run(s, 0, 10000) >= 0)
		;
	n = twheel_sched_stop(s, 0, &list);
	check_list(list, n, 0);
	CHECK(ran == 1);
}

int main(int argc, char **argv)
{
	struct twheel_sched *s;
	struct twheel *w;

	older = argc > 1 && !strcmp(argv[1], "older");
	w = wheel_open();
	infos(w);
	ops(w);
	events(w);
	twheel_close(w);
	s = sched_open();
	tasks(s);
	CHECK(!twheel_sched_close(s));
	return wrong;
}
