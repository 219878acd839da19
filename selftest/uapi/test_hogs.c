// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A hog is a task that keeps the last CPU busy. Files have timers that were armed on that CPU. The
 * reader of their events has a higher priority than the hog, and is on CPU 0. The reader must not
 * wait for the hog: files that are due on the hog's CPU move to another CPU. Timers of other files
 * must not be late because of the move, and the hog must not be interrupted for it.
 *
 * On PREEMPT_RT the hog is a SCHED_FIFO task, which softirqs wait for. On other kernels it is an
 * ordinary task, for the reason that test_rt gives. On PREEMPT_RT with one CPU all tasks wait for
 * the hog: there a round only checks that the events come.
 *
 * A virtual machine loses a CPU to its host for tens of ms now and then. So time is counted in
 * beats: a task on CPU 0 wakes up each ms, and the hog sees that it did. While either CPU does not
 * run, there is no beat. The hog works for WORK beats at most. The control is a reader that the hog
 * wakes itself. If an event came only when the hog's work was over, the reader has waited for the
 * hog; two good tries must make up for that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TRIES	10		/* at most, if nobody waits for the work, but all are late */
#define PRIO	50
#define WORK	250		/* beats, at most: it ends with the event */
#define WORK_NS	(10 * SEC)	/* if there are no beats */
#define ROUNDS	5
/* How many beats events may come later than twice the control's, on average. */
#define LATE	15
#define ALONE	(300 * MS)
#define MOMENTS	150
#define STEP	4000		/* ns from one moment to the next */
#define BRIEF	(3 * MS)	/* how long a hog on CPU 0 works */
#define BUSY	4

static int last_cpu;

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* How the reader learns of the event. */
enum how { BY_FILE, BY_LOOKING, BY_TIMERFD, BY_HOG };

struct round;

/**
 * struct scene - what a hog does
 * @hog:	what the hog does
 * @how:	how the reader learns of the event, except in the control
 * @own:	the clock of the hog's file
 * @clock:	the clock of the reader's file
 * @more:	another timer of the hog's file is due while the hog works
 * @events:	how many events the reader waits for, one after the other
 * @rounds:	rounds of a try
 * @may_wait:	how many of these rounds may wait for the work all the same
 * @per_control: how many rounds there are for each round of the control
 */
struct scene {
	void		(*hog)(struct round *r);
	enum how	how;
	clockid_t	own;
	clockid_t	clock;
	bool		more;
	int		events;
	unsigned int	rounds;
	unsigned int	may_wait;
	unsigned int	per_control;
};

/**
 * struct round - a hog and a reader
 * @scene:	the scene that is played
 * @how:	how the reader learns of the event
 * @number:	the number of the round
 * @own:	the hog's file
 * @file:	the reader's file
 * @due:	when each event is due
 * @late:	how much later the reader learnt of it, in ns
 * @beats:	the same in beats
 * @beat:	how many beats there have been
 * @told:	how many events the reader has learnt of
 * @ready:	all tasks of the round are ready, however busy their CPUs are
 * @working:	the hog has begun to work
 * @by_hog:	the hog itself wakes the reader
 * @over:	no more beats are needed
 * @waited:	the reader learnt of it only when the work was over
 */
struct round {
	const struct scene	*scene;
	enum how		how;
	unsigned int		number;
	int			own;
	int			file[2];
	u64			due[2];
	u64			late[2];
	unsigned int		beats[2];
	unsigned int		beat;
	bool			over;
	int			told;
	pthread_barrier_t	ready;
	sem_t			working;
	sem_t			by_hog;
	bool			waited;
};

static int file_of(clockid_t clock, int flags)
{
	const struct twheel_setup s = { .clockid = clock };
	int fd = dev_open(flags);

	if (clock != CLOCK_MONOTONIC)
		CHECK_EQ(setup(fd, &s), 0);
	return fd;
}

static void read_event(int fd)
{
	struct twheel_event ev;

	CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
}

static int timerfd_at(u64 due)
{
	const struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(due / SEC), .tv_nsec = (long)(due % SEC) },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL))
		bail("timerfd");
	return fd;
}

static void read_timerfd(int fd)
{
	u64 count;

	CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	close(fd);
}

/* ---- the reader ---------------------------------------------------------------------- */

/*
 * When the event is due, keep this CPU busy too, although a pass is due here. Then look for the
 * event now and then, so that nobody has to be woken.
 */
static void look_for_event(struct round *r, int event)
{
	struct twheel_event ev;
	u64 due;
	int fd = dev_open(0);

	sem_wait(&r->working);
	due = r->due[event];
	add_with(fd, TWHEEL_F_ABS, due, 0, 0);
	sleep_until(due - MS / 2);
	while (now() < due + BRIEF)
		;
	close(fd);
	while (read_events(r->file[event], &ev, 1) != 1 && !failed())
		sleep_ms(1);
}

static void await(struct round *r, int event)
{
	if (r->how == BY_HOG) {
		sem_wait(&r->by_hog);
	} else if (r->how == BY_LOOKING) {
		look_for_event(r, event);
	} else if (r->how == BY_TIMERFD) {
		sem_wait(&r->working);
		read_timerfd(timerfd_at(r->due[event]));
	} else {
		read_event(r->file[event]);
	}
}

static void *reader(void *arg)
{
	struct round *r = arg;

	pin(0);
	be_fifo(PRIO + 10);
	pthread_barrier_wait(&r->ready);
	for (int i = 0; i < r->scene->events; i++) {
		await(r, i);
		r->late[i] = now() - __atomic_load_n(&r->due[i], __ATOMIC_RELAXED);
		__atomic_store_n(&r->told, i + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *heart(void *arg)
{
	struct round *r = arg;

	pin(0);
	be_fifo(PRIO + 10);
	pthread_barrier_wait(&r->ready);
	while (!__atomic_load_n(&r->over, __ATOMIC_RELAXED)) {
		sleep_ms(1);
		__atomic_add_fetch(&r->beat, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- the hog --------------------------------------------------------------------------- */

/*
 * Has there been a beat at @time that this task has not seen? @seen is the last one that it has
 * seen.
 */
static bool beats(struct round *r, int event, u64 time, unsigned int *seen)
{
	unsigned int beat = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);
	bool new = time >= r->due[event] && beat != *seen;

	*seen = beat;
	return new;
}

/* Work until the reader has learnt of @event. */
static void work(struct round *r, int event)
{
	unsigned int seen = __atomic_load_n(&r->beat, __ATOMIC_RELAXED);
	u64 began = now(), time = began;
	bool tell = r->how == BY_HOG;

	while (__atomic_load_n(&r->told, __ATOMIC_RELAXED) <= event && !r->waited) {
		time = now();
		if (tell && time >= r->due[event]) {
			sem_post(&r->by_hog);
			tell = false;
		}
		r->beats[event] += beats(r, event, time, &seen);
		r->waited = r->beats[event] >= WORK || time >= began + WORK_NS;
	}
}

static void arm(struct round *r, int event)
{
	u64 due = whole_ms(3);

	__atomic_store_n(&r->due[event], due, __ATOMIC_RELAXED);
	if (r->how == BY_HOG)
		return;
	if (r->scene->clock == CLOCK_MONOTONIC)
		add_with(r->file[event], TWHEEL_F_ABS, due, 0, 0);
	else
		add(r->file[event], due - now(), 0);
}

/* The hog works, arms a timer, and goes on working, in turn. */
static void arms(struct round *r)
{
	for (int i = 0; i < r->scene->events; i++) {
		arm(r, i);
		work(r, i);
	}
}

/* The hog's event wakes it. So the pass that wakes it is preempted on its CPU. */
static void wakes_and_arms(struct round *r)
{
	add(r->own, 3 * MS, 0);
	read_event(r->own);
	arms(r);
}

/*
 * The hog waits for its file with epoll. So the pass that wakes it is preempted while it holds the
 * lock of the file's wait queue.
 */
static void await_with_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		bail("epoll");
	CHECK_EQ(epoll_wait(ep, &ev, 1, WAIT_MS), 1);
	close(ep);
}

static void polls(struct round *r)
{
	u64 due = whole_ms(3);

	add_with(r->own, TWHEEL_F_ABS, due, 0, 1);
	if (r->scene->more)
		add_with(r->own, TWHEEL_F_ABS, due + 10 * MS, 0, 2);
	await_with_epoll(r->own);
	read_event(r->own);
	r->due[0] = now() + 40 * MS;
	sem_post(&r->working);
	work(r, 0);
}

/* The hog begins to work as many STEPs after the tick as the number of the round. */
static void begins(struct round *r)
{
	arm(r, 0);
	sem_post(&r->working);
	sleep_until(r->due[0] + r->number * STEP);
	work(r, 0);
}

static void *hog(void *arg)
{
	struct round *r = arg;

	pin(last_cpu);
	if (is_preempt_rt())
		be_fifo(PRIO);
	pthread_barrier_wait(&r->ready);
	r->scene->hog(r);
	return NULL;
}

/* ---- rounds and tries -------------------------------------------------------------------- */

/* How late the reader learnt of the events: in beats, and the longest in us. */
struct late {
	unsigned int	beats, nr, waited;
	u64		us;
};

static void was_late(struct late *l, const struct round *r)
{
	for (int i = 0; i < r->scene->events; i++) {
		l->beats += r->beats[i];
		l->us = r->late[i] / 1000 > l->us ? r->late[i] / 1000 : l->us;
		l->nr++;
	}
	l->waited += r->waited;
}

static void tell(const char *what, const struct late *l)
{
	diag("%s: %u beats late in %u events, %llu us at most; %u waited for the work", what,
	     l->beats, l->nr, l->us, l->waited);
}

static void play(const struct scene *scene, enum how how, unsigned int number, struct late *late)
{
	struct round r = { .scene = scene, .how = how, .number = number };
	pthread_t threads[3];

	r.own = file_of(scene->own, 0);
	for (int i = 0; i < scene->events; i++)
		r.file[i] = file_of(scene->clock, scene->how == BY_LOOKING ? O_NONBLOCK : 0);
	pthread_barrier_init(&r.ready, NULL, ARRAY_SIZE(threads));
	sem_init(&r.working, 0, 0);
	sem_init(&r.by_hog, 0, 0);
	threads[0] = start_thread(reader, &r);
	threads[1] = start_thread(hog, &r);
	threads[2] = start_thread(heart, &r);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	__atomic_store_n(&r.over, true, __ATOMIC_RELAXED);
	pthread_join(threads[2], NULL);
	pthread_barrier_destroy(&r.ready);
	sem_destroy(&r.working);
	sem_destroy(&r.by_hog);
	for (int i = 0; i < scene->events; i++)
		close(r.file[i]);
	close(r.own);
	was_late(late, &r);
}

/* Returns 1 if nobody was late, -1 if somebody waited for the work, and 0 if it may be noise. */
static int try_once(const struct scene *scene)
{
	struct late told = { 0 }, control = { 0 };

	for (unsigned int i = 0; i < scene->rounds && told.waited < scene->may_wait + 2; i++) {
		if (i % scene->per_control == 0)
			play(scene, BY_HOG, i, &control);
		play(scene, scene->how, i, &told);
	}
	tell("the reader", &told);
	tell("told by the hog", &control);
	if (told.waited > scene->may_wait)
		return -1;
	return told.beats / told.nr <= 2 * (control.beats / control.nr) + LATE;
}

static void judge(const struct scene *scene)
{
	struct late late = { 0 };
	int score = 0;

	if (is_preempt_rt() && !last_cpu) {
		play(scene, scene->how, 0, &late);
		tell("on the hog's CPU", &late);
		return;
	}
	for (int i = 0; i < TRIES && score <= 0 && score > -2 && !failed(); i++)
		score += try_once(scene);
	CHECK(score > 0);
}

/* ---- scenes ---------------------------------------------------------------------------- */

static void two_files(void)
{
	static const struct scene scene = {
		.hog = arms, .own = CLOCK_MONOTONIC, .clock = CLOCK_MONOTONIC,
		.events = 2, .rounds = ROUNDS, .per_control = 1,
	};

	judge(&scene);
}

static void clocks(void)
{
	static const clockid_t clock[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct scene scene = {
		.hog = wakes_and_arms, .events = 1, .rounds = ROUNDS, .per_control = 1,
	};

	for (int i = 0; i < 4; i++) {
		scene.own = clock[i / 2];
		scene.clock = clock[i % 2];
		judge(&scene);
	}
}

static void neighbours(void)
{
	struct scene scene = {
		.hog = polls, .how = BY_TIMERFD, .own = CLOCK_MONOTONIC, .clock = CLOCK_MONOTONIC,
		.events = 1, .rounds = ROUNDS, .per_control = 1,
	};

	judge(&scene);
	scene.more = true;
	judge(&scene);
}

static void spin(int unused)
{
	(void)unused;
	for (;;)
		;
}

static void busy_others(void)
{
	static const struct scene scene = {
		.hog = arms, .own = CLOCK_MONOTONIC, .clock = CLOCK_MONOTONIC,
		.events = 1, .rounds = 2 * ROUNDS, .per_control = 1,
	};
	pid_t *pids = calloc((size_t)last_cpu + 1, BUSY * sizeof(*pids));
	int nr = 0;

	for (int i = 0; i < last_cpu * BUSY; i++)
		pids[nr++] = start_task(spin, i / BUSY, 0);
	sleep_ms(50);
	judge(&scene);
	while (nr) {
		kill(pids[--nr], SIGKILL);
		waitpid(pids[nr], NULL, 0);
	}
	free(pids);
}

/*
 * A pass may be preempted at the very moment in which it wakes the reader, while it holds the lock
 * of the reader's wait queue. Nothing can be done about that, and it takes only some instructions.
 */
static void moments(void)
{
	static const struct scene scene = {
		.hog = begins, .own = CLOCK_MONOTONIC, .clock = CLOCK_MONOTONIC,
		.events = 1, .rounds = MOMENTS, .may_wait = MOMENTS / 50, .per_control = 10,
	};

	judge(&scene);
}

static void moments_of_two(void)
{
	static const struct scene scene = {
		.hog = begins, .how = BY_LOOKING, .own = CLOCK_MONOTONIC, .clock = CLOCK_MONOTONIC,
		.events = 1, .rounds = MOMENTS, .per_control = 10,
	};

	judge(&scene);
}

/* ---- the hog is left alone ----------------------------------------------------------------- */

/* How many interrupts the machine has had. */
static u64 interrupts(void)
{
	FILE *f = fopen("/proc/stat", "r");
	char *line = NULL;
	size_t room = 0;
	u64 nr = 0;

	while (f && !nr && getline(&line, &room, f) > 0)
		if (!strncmp(line, "intr ", 5))
			nr = strtoull(line + 5, NULL, 10);
	free(line);
	if (!f || !nr)
		bail("/proc/stat");
	fclose(f);
	return nr;
}

static u64 interrupts_of_work(void)
{
	u64 before = interrupts(), end = now() + ALONE;

	while (now() < end)
		;
	return interrupts() - before;
}

/* A task that is woken, and then works. */
struct alone {
	enum how	how;
	u64		interrupts;
};

static void *works_alone(void *arg)
{
	struct alone *a = arg;
	int fd = a->how == BY_FILE ? file_of(CLOCK_MONOTONIC, 0) : timerfd_at(now() + 3 * MS);

	pin(last_cpu);
	if (is_preempt_rt())
		be_fifo(PRIO);
	if (a->how == BY_FILE) {
		add(fd, 3 * MS, 0);
		await_with_epoll(fd);
		read_event(fd);
		a->interrupts = interrupts_of_work();
		close(fd);
	} else {
		read_timerfd(fd);
		a->interrupts = interrupts_of_work();
	}
	return NULL;
}

/* The smallest number of interrupts: other work of the machine adds to it. */
static u64 fewest(enum how how)
{
	struct alone a = { .how = how };
	u64 min = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_join(start_thread(works_alone, &a), NULL);
		min = a.interrupts < min ? a.interrupts : min;
	}
	return min;
}

/*
 * Most interrupts are the tick's. While the host keeps the CPU there are none, so that a busy host
 * makes either number too small.
 */
static void alone(void)
{
	u64 file, timerfd;
	u32 tries = 0;

	do {
		file = fewest(BY_FILE);
		timerfd = fewest(BY_TIMERFD);
		diag("%llu interrupts in %llu ms after an event, %llu after a timerfd's", file,
		     ALONE / MS, timerfd);
	} while (file >= timerfd + timerfd / 2 + 20 && CHECK(++tries < 5));
}

static const struct test tests[] = {
	{ two_files, "a file, and later another, leave the CPU of a hog" },
	{ clocks, "files of both clocks leave a CPU whose pass was preempted" },
	{ neighbours, "a file that moves to a CPU makes no timer there late" },
	{ busy_others, "a file moves to CPUs that run ordinary tasks" },
	{ alone, "a hog is interrupted no more often than after a timerfd" },
	{ moments, "a hog may begin at any moment of a pass" },
	{ moments_of_two, "a hog with short hogs on the other CPUs" },
};

/* test_hogs [NUMBER...]: those of the table, all if none is given. */
int main(int argc, char **argv)
{
	struct test chosen[ARRAY_SIZE(tests)];
	int nr = 0;

	last_cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	for (int i = 1; i < argc && nr < (int)ARRAY_SIZE(tests); i++)
		chosen[nr++] = tests[(size_t)atoi(argv[i]) % ARRAY_SIZE(tests)];
	return nr ? run_tests(chosen, nr) : run_tests(tests, ARRAY_SIZE(tests));
}
