// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * How often do timers wake a process whose timeouts are put off all the time?
 *
 *	within	prints lines of TSV: workload, n, subject, metric, unit, value
 *
 * A server has N connections, and for each of them an idle timeout of 30 s: a timer of libtwheel's
 * embedded backend, which is re-armed whenever the connection says something. The workload says
 * after what random time a connection says something again:
 *
 *	never	after 1 to 20 s each time, so that no timeout ever fires
 *	seldom	after 5 s on average, exponentially distributed: one of 400 times exceeds 30 s
 *	often	after 15 s on average: one of seven or eight times exceeds 30 s
 *
 * A connection that was idle is closed, and another one takes its place. The subjects are
 * tolerances from none to a tenth of the 30 s. Each is measured with one server that has all
 * connections, and with ten servers on one machine, among which the connections are divided. For
 * one server the wake-ups are also printed for the subject "all", as wake-ups-MS for a tolerance of
 * MS milliseconds: these are the points of a curve.
 *
 * The time is simulated. The linker directs clock_gettime() and timerfd_settime() to this file
 * (--wrap). The clock always shows the moment of the next event: a connection says something, or
 * the time of a timerfd comes. So figures of ten minutes take some seconds to measure, and are the
 * same on each machine. Counting begins after the first simulated minute.
 *
 *	wake-ups	how often a process read a timerfd because that was readable
 *	moments		ticks in which a process was woken; several processes may share a tick
 *	fired		timeouts
 *	settimes	calls of timerfd_settime()
 *	late		how long after its deadline a timeout was read, on average
 *	moves		from one level of a wheel to a finer one
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libtwheel.h"
#include "wheel_user.h"
#include "wrap.h"

#define MS		1000000ULL
#define SEC		1000000000ULL
#define N		10000
#define WHEELS_MAX	10
#define FDS_MAX		64
#define NEVER		UINT64_MAX
#define IDLE		(30 * SEC)
#define START		(86431 * SEC + 271828182)	/* some time after the machine has booted */
#define WARM		(60 * SEC)
#define TAKES		(600 * SEC)

static void must_be(bool right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

/* ---- the time ------------------------------------------------------------------------ */

static u64 now;
static u64 armed[FDS_MAX];	/* when each timerfd will be readable */
static u64 nr_settimes;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	must_be(clock == CLOCK_MONOTONIC, "the choice of a clock");
	ts->tv_sec = (time_t)(now / SEC);
	ts->tv_nsec = (long)(now % SEC);
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its,
			   struct itimerspec *old)
{
	u64 when = (u64)its->it_value.tv_sec * SEC + (u64)its->it_value.tv_nsec;

	must_be(fd < FDS_MAX && flags == TFD_TIMER_ABSTIME && !old, "timerfd_settime()");
	armed[fd] = when ?: NEVER;
	nr_settimes++;
	return 0;
}

/* ---- chance -------------------------------------------------------------------------- */

/* splitmix64 */
static u64 rnd_state;

static u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A random number greater than 0 and less than 1. */
static double chance(void)
{
	return ((double)(rnd() >> 12) + 0.5) / (double)(1ULL << 52);
}

static u64 after_1_to_20(void)
{
	return SEC + (u64)(19e9 * chance());
}

static u64 after_5(void)
{
	return (u64)(5e9 * -log(chance()));
}

static u64 after_15(void)
{
	return (u64)(15e9 * -log(chance()));
}

static const struct workload {
	const char	*name;
	u64		(*next)(void);
} workloads[] = {
	{ "never", after_1_to_20 }, { "seldom", after_5 }, { "often", after_15 },
};

/* ---- connections --------------------------------------------------------------------- */

/* When each connection next says something: a heap of connections, with the first at 1. */
static u64 says[N];
static u32 heap[N + 1], nr_heap, place[N];

static void heap_put(u32 at, u32 conn)
{
	heap[at] = conn;
	place[conn] = at;
}

static void heap_up(u32 at)
{
	u32 conn = heap[at];

	for (; at > 1 && says[heap[at / 2]] > says[conn]; at /= 2)
		heap_put(at, heap[at / 2]);
	heap_put(at, conn);
}

static void heap_down(u32 at)
{
	u32 conn = heap[at], child;

	for (; (child = 2 * at) <= nr_heap; at = child) {
		if (child < nr_heap && says[heap[child + 1]] < says[heap[child]])
			child++;
		if (says[heap[child]] >= says[conn])
			break;
		heap_put(at, heap[child]);
	}
	heap_put(at, conn);
}

static void set_next(u32 conn, u64 when)
{
	says[conn] = when;
	heap_up(place[conn]);
	heap_down(place[conn]);
}

/* ---- a run --------------------------------------------------------------------------- */

static const struct workload *load;
static struct twheel *wheels[WHEELS_MAX];
static u32 nr_wheels;
static u64 tolerance;
static u64 handles[N];

/* From this time on everything counts. */
static u64 nr_wakeups, nr_moments, nr_fired, late, last_moment;

static struct twheel *wheel_of(u32 conn)
{
	return wheels[conn % nr_wheels];
}

static void touch(u32 conn)
{
	must_be(twheel_mod_within(wheel_of(conn), handles[conn], IDLE, 0, tolerance,
				  TWHEEL_F_KEEP) >= 0, "twheel_mod_within()");
	set_next(conn, now + load->next());
}

static void open_all(void)
{
	for (u32 i = 0; i < nr_wheels; i++) {
		must_be(!twheel_open(&wheels[i], TWHEEL_EMBEDDED, NULL), "twheel_open()");
		must_be(twheel_fd(wheels[i]) < FDS_MAX, "twheel_fd()");
		armed[twheel_fd(wheels[i])] = NEVER;
	}
	nr_heap = 0;
	for (u32 i = 0; i < N; i++) {
		must_be(!twheel_add_within(wheel_of(i), &handles[i], i, IDLE, 0, tolerance,
					   TWHEEL_F_KEEP), "twheel_add_within()");
		says[i] = now + load->next();
		heap_put(++nr_heap, i);
		heap_up(nr_heap);
	}
}

/* The first wheel whose timerfd is readable. */
static u32 first_wheel(void)
{
	u32 first = 0;

	for (u32 i = 1; i < nr_wheels; i++)
		if (armed[twheel_fd(wheels[i])] < armed[twheel_fd(wheels[first])])
			first = i;
	return first;
}

/* A process wakes up. Each connection that was idle is closed, and another takes its place. */
static void wake(struct twheel *wheel)
{
	struct twheel_event events[64];
	int n;

	nr_wakeups++;
	nr_moments += now / MS != last_moment;
	last_moment = now / MS;
	while ((n = twheel_read(wheel, events, ARRAY_SIZE(events), 0)) > 0)
		for (int i = 0; i < n; i++) {
			must_be(now >= events[i].expires_ns, "a timer that is early");
			must_be(now <= events[i].expires_ns + tolerance + MS, "one that is late");
			late += now - events[i].expires_ns;
			nr_fired++;
			touch((u32)events[i].user_data);
		}
}

static void run_until(u64 end)
{
	for (;;) {
		u32 conn = heap[1], first = first_wheel();
		u64 ready = armed[twheel_fd(wheels[first])];

		now = says[conn] < ready ? says[conn] : ready;
		if (now >= end)
			return;
		if (now == ready)
			wake(wheels[first]);
		else
			touch(conn);
	}
}

static u64 moves(void)
{
	struct twheel_info info;
	u64 sum = 0;

	for (u32 i = 0; i < nr_wheels; i++) {
		must_be(!twheel_get_info(wheels[i], &info), "twheel_get_info()");
		sum += info.nr_moves;
	}
	return sum;
}

static void tsv(const char *metric, const char *unit, double value)
{
	char of[24] = "exact";

	if (tolerance)
		snprintf(of, sizeof(of), "1/%d", (int)(IDLE / tolerance));
	printf("%s-%u\t%d\t%s\t%s\t%s\t%.6g\n", load->name, nr_wheels, N, of, metric, unit, value);
}

/* What happened before does not count. */
static void forget(void)
{
	nr_wakeups = 0;
	nr_moments = 0;
	nr_fired = 0;
	nr_settimes = 0;
	late = 0;
	last_moment = 0;
}

static void run(const struct workload *workload, u32 wheels_nr, u64 within)
{
	const double seconds = (double)(TAKES / SEC);
	u64 moved;

	load = workload;
	nr_wheels = wheels_nr;
	tolerance = within;
	rnd_state = 0;
	now = START;
	open_all();
	run_until(START + WARM);
	forget();
	moved = moves();
	run_until(START + WARM + TAKES);
	now = START + WARM + TAKES;
	tsv("wake-ups", "1/s", (double)nr_wakeups / seconds);
	if (nr_wheels == 1)
		printf("%s-1\t%d\tall\twake-ups-%u\t1/s\t%.6g\n", load->name, N,
		       (u32)(tolerance / MS), (double)nr_wakeups / seconds);
	tsv("moments", "1/s", (double)nr_moments / seconds);
	tsv("fired", "1/s", (double)nr_fired / seconds);
	tsv("settimes", "1/s", (double)nr_settimes / seconds);
	tsv("moves", "1/s", (double)(moves() - moved) / seconds);
	tsv("late", "ms", nr_fired ? (double)late / (double)nr_fired / MS : 0);
	for (u32 i = 0; i < nr_wheels; i++)
		twheel_close(wheels[i]);
}

int main(void)
{
	static const u64 tolerances[] = { 0, IDLE / 1000, IDLE / 300, IDLE / 100, IDLE / 60,
					  IDLE / 30, IDLE / 10 };
	static const u32 servers[] = { 1, WHEELS_MAX };

	for (u32 s = 0; s < ARRAY_SIZE(servers); s++)
		for (u32 i = 0; i < ARRAY_SIZE(workloads); i++)
			for (u32 j = 0; j < ARRAY_SIZE(tolerances); j++)
				run(&workloads[i], servers[s], tolerances[j]);
	return 0;
}
