// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * One timer at a time, by one thread: arm n timers, re-arm them in random order, cancel them in
 * another random order. Delays are 1 to 60 000 ms.
 *
 *	single NMAX REPS	ns of CPU time for each operation, in each of REPS repetitions
 *	single count N SUBJECT	each phase once, for counting instructions
 *
 * The subjects are
 *	twheel		the embedded backend
 *	twheel-one	the same with TWHEEL_ONE_THREAD
 *	twheel-at	the same with deadlines and not delays (TWHEEL_F_ABS)
 *	libevent	its heap, and the precise clock that never lets a timer be early
 *	libevent-loop	the same from a callback, where it reads no clock
 *	libuv		its heap; it never reads the clock
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <string.h>
#include <uv.h>

#include "bench.h"
#include "libtwheel.h"

#define MS		1000000ULL
#define REPS_MAX	101

/**
 * struct single - a way to have timers
 * @name:	its name in the TSV
 * @open:	makes room for @n timers
 * @arm:	arms timer @i, which is idle or armed, for @ms from now
 * @rearm:	the same for a timer that is armed; if NULL, @arm does it
 * @cancel:	cancels a timer that is armed
 * @close:	frees what @open made
 * @inside:	calls the phases from where they must be called; NULL for anywhere
 */
struct single {
	const char	*name;
	void		(*open)(u32 n);
	void		(*arm)(u32 i, u32 ms);
	void		(*rearm)(u32 i, u32 ms);
	void		(*cancel)(u32 i);
	void		(*close)(u32 n);
	void		(*inside)(void);
};

static void must_be(bool right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

/* ---- twheel ------------------------------------------------------------------ */

#ifndef TWHEEL_ONE_THREAD
#define TWHEEL_ONE_THREAD 0
#endif

static struct twheel *wheel;
static uint64_t *handles;
static u64 began;

static void wheel_open(u32 n, u32 flags)
{
	must_be(!twheel_open(&wheel, TWHEEL_EMBEDDED | flags, NULL), "twheel_open()");
	handles = pages(n * sizeof(*handles));
	began = nanoseconds(CLOCK_MONOTONIC);
}

static void twheel_open_any(u32 n)
{
	wheel_open(n, 0);
}

static void twheel_open_one(u32 n)
{
	wheel_open(n, TWHEEL_ONE_THREAD);
}

static void twheel_arm(u32 i, u32 ms)
{
	must_be(!twheel_add(wheel, &handles[i], i, ms * MS, 0, 0), "twheel_add()");
}

static void twheel_rearm(u32 i, u32 ms)
{
	must_be(twheel_mod(wheel, handles[i], ms * MS, 0, 0) >= 0, "twheel_mod()");
}

static void twheel_arm_at(u32 i, u32 ms)
{
	must_be(!twheel_add(wheel, &handles[i], i, began + ms * MS, 0, TWHEEL_F_ABS),
		"twheel_add()");
}

static void twheel_rearm_at(u32 i, u32 ms)
{
	must_be(twheel_mod(wheel, handles[i], began + ms * MS, 0, TWHEEL_F_ABS) >= 0,
		"twheel_mod()");
}

static void twheel_cancel_one(u32 i)
{
	must_be(twheel_cancel(wheel, handles[i], NULL) >= 0, "twheel_cancel()");
}

static void twheel_close_one(u32 n)
{
	twheel_close(wheel);
	munmap(handles, n * sizeof(*handles));
}

/* ---- libevent ---------------------------------------------------------------- */

static struct event_base *base;
static struct event *events;

static void libevent_fired(evutil_socket_t fd, short what, void *arg)
{
}

static void libevent_open(u32 n)
{
	struct event_config *config = event_config_new();

	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	must_be(base, "event_base_new_with_config()");
	event_config_free(config);
	events = pages(n * sizeof(*events));
	for (u32 i = 0; i < n; i++)
		must_be(!evtimer_assign(&events[i], base, libevent_fired, NULL),
			"evtimer_assign()");
}

static void libevent_arm(u32 i, u32 ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	must_be(!evtimer_add(&events[i], &tv), "evtimer_add()");
}

static void libevent_cancel(u32 i)
{
	must_be(!evtimer_del(&events[i]), "evtimer_del()");
}

static void libevent_close(u32 n)
{
	event_base_free(base);
	munmap(events, n * sizeof(*events));
}

static void run_phases(void);

static void libevent_phases(evutil_socket_t fd, short what, void *arg)
{
	run_phases();
}

static void libevent_inside(void)
{
	must_be(!event_base_once(base, -1, EV_TIMEOUT, libevent_phases, NULL, NULL),
		"event_base_once()");
	must_be(event_base_loop(base, EVLOOP_ONCE) >= 0, "event_base_loop()");
}

/* ---- libuv ------------------------------------------------------------------- */

static uv_loop_t loop;
static uv_timer_t *timers;

static void libuv_fired(uv_timer_t *timer)
{
}

static void libuv_open(u32 n)
{
	must_be(!uv_loop_init(&loop), "uv_loop_init()");
	timers = pages(n * sizeof(*timers));
	for (u32 i = 0; i < n; i++)
		must_be(!uv_timer_init(&loop, &timers[i]), "uv_timer_init()");
}

static void libuv_arm(u32 i, u32 ms)
{
	must_be(!uv_timer_start(&timers[i], libuv_fired, ms, 0), "uv_timer_start()");
}

static void libuv_cancel(u32 i)
{
	must_be(!uv_timer_stop(&timers[i]), "uv_timer_stop()");
}

static void libuv_close(u32 n)
{
	for (u32 i = 0; i < n; i++)
		uv_close((uv_handle_t *)&timers[i], NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	must_be(!uv_loop_close(&loop), "uv_loop_close()");
	munmap(timers, n * sizeof(*timers));
}

/* ---- phases ------------------------------------------------------------------ */

static const struct single subjects[] = {
	{ "twheel", twheel_open_any, twheel_arm, twheel_rearm, twheel_cancel_one,
	  twheel_close_one },
	{ "twheel-one", twheel_open_one, twheel_arm, twheel_rearm, twheel_cancel_one,
	  twheel_close_one },
	{ "twheel-at", twheel_open_one, twheel_arm_at, twheel_rearm_at, twheel_cancel_one,
	  twheel_close_one },
	{ "libevent", libevent_open, libevent_arm, NULL, libevent_cancel, libevent_close },
	{ "libevent-loop", libevent_open, libevent_arm, NULL, libevent_cancel, libevent_close,
	  libevent_inside },
	{ "libuv", libuv_open, libuv_arm, NULL, libuv_cancel, libuv_close },
};

static const struct single *subject;
static const struct load *load;

/* The first arming allocates memory, so it is measured apart. */
static measured void phase_first(void)
{
	for (u32 i = 0; i < load->n; i++)
		subject->arm(i, load->delay[i]);
}

static measured void phase_arm(void)
{
	for (u32 i = 0; i < load->n; i++)
		subject->arm(load->order[i], load->delay[i]);
}

static measured void phase_rearm(void)
{
	void (*rearm)(u32 i, u32 ms) = subject->rearm ?: subject->arm;

	for (u32 i = 0; i < load->n; i++)
		rearm(load->order[i], load->again[i]);
}

static measured void phase_cancel(void)
{
	for (u32 i = load->n; i--; )
		subject->cancel(load->order[i]);
}

/* In the order in which they run. The first cancel is not measured. */
static const struct {
	const char	*name;
	void		(*run)(void);
} phases[] = {
	{ "first", phase_first }, { NULL, phase_cancel }, { "arm", phase_arm },
	{ "rearm", phase_rearm }, { "cancel", phase_cancel },
};

static u64 times[ARRAY_SIZE(phases)];

static void run_phases(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(phases); i++) {
		u64 start = cpu_ns();

		phases[i].run();
		times[i] = cpu_ns() - start;
	}
}

static void run(const struct single *which)
{
	subject = which;
	subject->open(load->n);
	(subject->inside ?: run_phases)();
	subject->close(load->n);
}

/* What a phase took in each repetition, for each timer. */
static void print_phase(const char *name, const char *phase, const u64 *took, u32 reps)
{
	printf("native\t%s\t%u\t%s\t%s\tns\t", load->name, load->n, name, phase);
	for (u32 rep = 0; rep < reps; rep++)
		printf("%s%.2f", rep ? " " : "", (double)took[rep] / load->n);
	printf("\n");
	fflush(stdout);
}

/* In turn: every repetition runs all subjects. */
static void compare(u32 reps)
{
	static u64 took[ARRAY_SIZE(subjects)][ARRAY_SIZE(phases)][REPS_MAX];

	for (u32 rep = 0; rep < reps; rep++)
		for (u32 s = 0; s < ARRAY_SIZE(subjects); s++) {
			run(&subjects[s]);
			for (u32 i = 0; i < ARRAY_SIZE(phases); i++)
				took[s][i][rep] = times[i];
		}
	for (u32 s = 0; s < ARRAY_SIZE(subjects); s++)
		for (u32 i = 0; i < ARRAY_SIZE(phases); i++)
			if (phases[i].name)
				print_phase(subjects[s].name, phases[i].name, took[s][i], reps);
}

static int count(u32 n, const char *name)
{
	struct load l = loads[0];

	make_load(&l, n);
	load = &l;
	for (u32 s = 0; s < ARRAY_SIZE(subjects); s++)
		if (!strcmp(subjects[s].name, name)) {
			run(&subjects[s]);
			return 0;
		}
	fprintf(stderr, "no subject %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	u32 most, reps;

	if (argc == 4 && !strcmp(argv[1], "count"))
		return count((u32)atoi(argv[2]), argv[3]);
	if (argc != 3)
		return 2;
	most = (u32)atoi(argv[1]);
	reps = (u32)atoi(argv[2]);
	must_be(reps && reps <= REPS_MAX, "the number of repetitions");
	for (u32 n = 1000; n <= most; n *= 10) {
		struct load l = loads[0];

		make_load(&l, n);
		load = &l;
		compare(n < 100000 ? reps : (reps + 2) / 3);
		free_load(&l);
	}
	return 0;
}
