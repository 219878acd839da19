// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A task that was woken by its event, and then works for a long time, must not make others wait.
 * Meanwhile a second task, on another CPU, adds a timer to the same file. That timer must fire as
 * early as one of another file, or as a timerfd. A task that has armed a timer, and works until
 * after the timer is due, must not make others wait, either.
 *
 * On PREEMPT_RT the working task is a SCHED_FIFO task. It has preempted the softirq thread that
 * woke it, in the middle of that thread's work. On other kernels it is an ordinary task: there a
 * SCHED_FIFO task starves all softirqs of its CPU, not only ours, as soon as they are left to
 * ksoftirqd. With one CPU the timer is late in any case.
 *
 * A virtual machine also loses time to its host: each of its CPUs, for tens of ms or more. So time
 * is counted in beats, as in test_hogs: a task on the adder's CPU wakes up each ms, and the worker
 * sees that it did. While either CPU does not run, there is no beat. If a timer is a little late,
 * it is tried again. If a timer fired only after the work, two good tries must make up for it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TRIES	3
#define PRIO	50

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* How late the timers were, in beats; and in us, at most. */
struct late {
	u32	sum, max, nr;
	u64	us;
};

static void was_late(struct late *l, u32 beats, u64 ns)
{
	l->sum += beats;
	l->max = beats > l->max ? beats : l->max;
	l->us = ns / 1000 > l->us ? ns / 1000 : l->us;
	l->nr++;
}

static void tell(const char *what, const struct late *l)
{
	diag("%s: %u beats late in %u rounds, %u at most, which were %llu us", what, l->sum, l->nr,
	     l->max, l->us);
}

#define WORK	300		/* beats, at most: it ends with the event of the added timer */
#define WORK_NS	(20 * SEC)	/* if there are no beats */
#define ROUNDS	4
/*
 * How many beats an event may come later than twice its peer: a timer of the worker's file may be
 * the CPU's on which it works, and the peers are of the other one. If an event waited for the work,
 * it would be 300 beats late.
 */
#define LATE	20

enum { WOKEN, ARMED, ADDED };		/* user_data */

struct scene {
	bool	early;			/* the work begins before the event, not after it */
	bool	armed;			/* there is another timer in the worker's file ... */
	int	ms;			/* ... and the added timer is due so much later */
};

/* What the added timer is. */
enum where { SAME_FILE, OTHER_FILE, TIMERFD };

struct round {
	const struct scene	*scene;
	enum where		where;
	int			fd;		/* the worker's */
	u64			due;		/* when the other timer is due */
	sem_t			working;
	bool			over;
	u32			beat;		/* how many beats there have been */
	u64			awaited;	/* when its event is to come, or 0 */
	u64			late;		/* how late that came */
	u32			beats;		/* the same in beats */
};

/* Run on the adder's CPU. */
static void *heart(void *arg)
{
	struct round *r = arg;

	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	be_fifo(PRIO + 10);
	while (!__atomic_load_n(&r->over, __ATOMIC_RELAXED)) {
		sleep_ms(1);
		__atomic_add_fetch(&r->beat, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Is the added timer's event awaited, and due? */
static bool is_due(struct round *r, u64 time)
{
	u64 awaited = __atomic_load_n(&r->awaited, __ATOMIC_RELAXED);

	return awaited && time >= awaited;
}

/* Work until the round is over. */
static void work(struct round *r)
{
	u32 seen = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);
	u64 began = now(), time = began;

	while (!__atomic_load_n(&r->over, __ATOMIC_RELAXED) && r->beats < WORK &&
	       time < began + WORK_NS) {
		u32 beat = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);

		time = now();
		r->beats += beat != seen && is_due(r, time);
		seen = beat;
	}
}

static void *worker(void *arg)
{
	struct round *r = arg;
	struct twheel_event ev;
	u64 due;

	pin(0);
	if (is_preempt_rt())
		be_fifo(PRIO);
	due = whole_ms(2);
	r->due = due + 10 * MS;
	add_with(r->fd, TWHEEL_F_ABS, due, 0, WOKEN);
	if (r->scene->armed)
		add_with(r->fd, TWHEEL_F_ABS, r->due, 0, ARMED);
	if (!r->scene->early) {
		CHECK_EQ(read(r->fd, &ev, sizeof(ev)), sizeof(ev));
		/* If the host stopped this task until both were due, both fire in one tick. */
		CHECK(ev.user_data == WOKEN || ev.user_data == ARMED);
	}
	sem_post(&r->working);
	work(r);
	return NULL;
}

/* Add a timer to @fd and wait for its event. Returns when the read was over. */
static u64 await_event(int fd, u64 due)
{
	struct twheel_event ev;
	u64 added;

	add_with(fd, TWHEEL_F_ABS, due, 0, ADDED);
	added = now();
	do {
		CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
	} while (ev.user_data != ADDED && !failed());
	return added;
}

static u64 await_timerfd(u64 due)
{
	const struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(due / SEC), .tv_nsec = (long)(due % SEC) },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	u64 added, count;

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL))
		bail("timerfd");
	added = now();
	CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	close(fd);
	return added;
}

static u64 await_other_file(u64 due)
{
	int fd = dev_open(0);
	u64 added = await_event(fd, due);

	close(fd);
	return added;
}

/* Run on the last CPU. If the worker is there too, have a higher priority. */
static void *adder(void *arg)
{
	struct round *r = arg;
	u64 due, added;

	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	be_fifo(PRIO + 10);
	sem_wait(&r->working);
	due = r->scene->armed ? r->due + (u64)r->scene->ms * MS : whole_ms(1);
	__atomic_store_n(&r->awaited, due, __ATOMIC_RELAXED);
	if (r->where == SAME_FILE)
		added = await_event(r->fd, due);
	else
		added = r->where == OTHER_FILE ? await_other_file(due) : await_timerfd(due);
	r->late = now() - (due > added ? due : added);
	__atomic_store_n(&r->over, true, __ATOMIC_RELAXED);
	return NULL;
}

static void play(const struct scene *scene, enum where where, struct late *late)
{
	struct round r = { .scene = scene, .where = where, .fd = dev_open(0) };
	pthread_t threads[3];

	sem_init(&r.working, 0, 0);
	threads[0] = start_thread(adder, &r);
	threads[1] = start_thread(worker, &r);
	threads[2] = start_thread(heart, &r);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	sem_destroy(&r.working);
	close(r.fd);
	was_late(late, r.beats, r.late);
}

/* Returns 1 if no event is late, -1 if one waited for the work, and 0 if it may be noise. */
static int try_once(const struct scene *scene, u32 rounds)
{
	struct late same = { 0 }, other = { 0 }, timerfd = { 0 };

	for (u32 i = 0; i < rounds && same.max < WORK; i++) {
		play(scene, TIMERFD, &timerfd);
		play(scene, OTHER_FILE, &other);
		play(scene, SAME_FILE, &same);
	}
	tell("same file", &same);
	tell("another file", &other);
	tell("timerfd", &timerfd);
	if (same.max <= 2 * other.max + LATE && other.max <= 2 * timerfd.max + LATE)
		return 1;
	return same.max < WORK ? 0 : -1;
}

static void judge(const struct scene *scene)
{
	u32 rounds = sysconf(_SC_NPROCESSORS_ONLN) == 1 ? 1 : ROUNDS;
	int score = 0;

	for (int i = 0; i < TRIES && score <= 0 && score > -2 && !failed(); i++)
		score += try_once(scene, rounds);
	CHECK(score > 0);
}

static void alone(void)
{
	judge(&(struct scene){ .armed = false });
}

static void later(void)
{
	judge(&(struct scene){ .armed = true, .ms = 2 });
}

static void equal(void)
{
	judge(&(struct scene){ .armed = true, .ms = 0 });
}

static void earlier(void)
{
	judge(&(struct scene){ .armed = true, .ms = -2 });
}

static void early(void)
{
	judge(&(struct scene){ .early = true, .armed = true, .ms = 2 });
}

static const struct test tests[] = {
	{ alone, "a timer in the file of a task that works, alone" },
	{ later, "a timer in the file of a task that works, later than another" },
	{ equal, "a timer in the file of a task that works, with another" },
	{ earlier, "a timer in the file of a task that works, earlier than another" },
	{ early, "a timer in the file of a task that works, later than two" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
