// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What a wheel and a scheduler cost at most, over the embedded backend. Memory is counted. Times
 * are compared with other times that are measured beside them.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib.h"

static struct twheel *open_embedded(unsigned int flags)
{
	struct twheel *w = NULL;

	if (twheel_open(&w, TWHEEL_EMBEDDED | flags, NULL))
		bail("twheel_open()");
	return w;
}

static long address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(statm && fscanf(statm, "%ld", &pages) == 1);
	fclose(statm);
	return pages * sysconf(_SC_PAGESIZE);
}

static void wheel_space(void)
{
	enum { N = 500 };
	static struct twheel *wheels[N];
	long before = address_space(), each;
	struct twheel_info info;

	for (u32 i = 0; i < N; i++)
		wheels[i] = open_embedded(0);
	each = (address_space() - before) / N;
	diag("%ld bytes of address space a wheel", each);
	CHECK(each > 60000);
	CHECK(each < 66000);
	twheel_get_info(wheels[0], &info);
	CHECK(info.mem_bytes < 66000);
	for (u32 i = 0; i < N; i++)
		twheel_close(wheels[i]);
}

/* The shortest time that @fn took. */
static u64 least(void (*fn)(void), u32 times)
{
	u64 best = ~0ULL;

	while (times--) {
		u64 start = now_ns(CLOCK_THREAD_CPUTIME_ID), took;

		fn();
		took = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
	}
	return best;
}

static void open_timerfd(void)
{
	close(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

static void open_wheel(void)
{
	twheel_close(open_embedded(0));
}

/* The cost of opening and closing a wheel, after some have been open. */
static void opening(void)
{
	u64 timerfd = ~0ULL, wheel = ~0ULL;

	for (int i = 0; i < 10; i++) {	/* in turn, as in one_thread() */
		u64 a = least(open_timerfd, 100), b = least(open_wheel, 100);

		timerfd = a < timerfd ? a : timerfd;
		wheel = b < wheel ? b : wheel;
	}
	diag("%llu ns, and a timerfd alone %llu", wheel, timerfd);
	CHECK(wheel < 4 * timerfd);
}

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/*
 * No add may allocate more than a page of each table and the list of pages. If a table were
 * doubled, that would be MiB.
 */
static void no_big_step(void)
{
	enum { TASKS = 300000, MOST = 0x10000 };
	struct twheel_sched_options o = { .flags = TWHEEL_EMBEDDED };
	size_t before, worst = 0, now;
	struct twheel_sched *s;

	CHECK_EQ(twheel_sched_open(&s, &o), 0);
	before = in_use();
	for (u32 i = 0; i < TASKS && !failed(); i++) {
		ADD(s, .key = &i, .key_len = sizeof(i), .when_ns = HOUR);
		now = in_use();
		if (now > before && now - before > worst)
			worst = now - before;
		before = now;
	}
	diag("%zu bytes by one add at most", worst);
	CHECK(worst <= MOST);
	sched_close(s);
}

/*
 * A second thread adds and cancels a task again and again. Each time it notes how much CPU time the
 * thread has had that makes the list.
 */
static atomic_bool over;
static clockid_t lister;
static u64 progress[100000];
static atomic_uint nr_done;

static void *meanwhile(void *sched)
{
	while (!over) {
		twheel_sched_cancel(sched, ADD(sched, .when_ns = HOUR), 0);
		progress[nr_done % ARRAY_SIZE(progress)] = now_ns(lister);
		nr_done++;
	}
	return NULL;
}

/*
 * How often the second thread got in while the list was made: between a tenth and nine tenths of
 * the time that it took.
 */
static u32 in_the_middle(u64 start, u64 end, u32 nr)
{
	u64 tenth = (end - start) / 10;
	u32 n = 0;

	for (u32 i = 0; i < nr && i < ARRAY_SIZE(progress); i++)
		n += progress[i] > start + tenth && progress[i] < end - tenth;
	return n;
}

static u32 list_once(struct twheel_sched *s)
{
	struct twheel_task_info *list;
	u64 start, end;
	pthread_t thread;

	over = false;
	nr_done = 0;
	pthread_create(&thread, NULL, meanwhile, s);
	while (!nr_done)
		sleep_ms(1);
	start = now_ns(lister);
	CHECK(twheel_sched_list(s, &list) > 0);
	end = now_ns(lister);
	over = true;
	pthread_join(thread, NULL);
	free(list);
	return in_the_middle(start, end, nr_done);
}

/*
 * If the lock were held for the whole list, nobody could get in, however the threads are scheduled.
 */
static void list_lets_in(void)
{
	enum { TASKS = 200000, CALLS = 10 };
	struct twheel_sched_options o = { .flags = TWHEEL_EMBEDDED };
	struct twheel_sched *s;
	u32 best = 0;
	u64 end;

	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &lister), 0);
	CHECK_EQ(twheel_sched_open(&s, &o), 0);
	for (u32 i = 0; i < TASKS; i++)
		ADD(s, .key = &i, .key_len = sizeof(i), .when_ns = HOUR);
	end = now_ns(CLOCK_MONOTONIC) + WAIT_MS * MS;
	while (best < CALLS && now_ns(CLOCK_MONOTONIC) < end) {
		u32 n = list_once(s);

		best = n > best ? n : best;
	}
	diag("%u calls in the middle of a list", best);
	CHECK(best >= CALLS);
	sched_close(s);
}

static struct twheel *timed;

static void many_ops(void)
{
	u64 at = now_ns(CLOCK_MONOTONIC) + HOUR;
	uint64_t handle = 0;

	for (u32 i = 0; i < 1000; i++) {
		twheel_add(timed, &handle, i, at + i * MS, 0, TWHEEL_F_ABS);
		twheel_cancel(timed, handle, NULL);
	}
}

/* Make *@best the shortest time of some rounds, if that is shorter. */
static void ops_time(unsigned int flags, u64 *best)
{
	u64 took;

	timed = open_embedded(flags);
	took = least(many_ops, 20);
	twheel_close(timed);
	*best = took < *best ? took : *best;
}

/*
 * TWHEEL_ONE_THREAD must save the lock and the exact clock. Both are measured in turn, since a CPU
 * may be slower at one time than at another.
 */
static void one_thread(void)
{
	u64 any = ~0ULL, one = ~0ULL;

	for (int i = 0; i < 15; i++) {
		ops_time(0, &any);
		ops_time(TWHEEL_ONE_THREAD, &one);
	}
	diag("an add and a cancel: %llu ns, of any thread %llu", one / 1000, any / 1000);
	CHECK(one * 10 < any * 8);
}

int main(void)
{
	static const struct test tests[] = {
		{ wheel_space, "a wheel takes little address space" },
		{ opening, "a wheel is opened quickly" },
		{ no_big_step, "no add allocates much memory at once" },
		{ list_lets_in, "other threads get in while a long list is made" },
		{ one_thread, "a wheel of one thread is faster" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
