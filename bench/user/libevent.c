// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * libevent's timers: a heap in user space, behind one timerfd. And, as "libevent-common", with
 * common timeouts: a queue for each of up to 256 durations. So delays are rounded up, to 50 ms
 * below 6 s and to a second above that, and timers may fire as much too late.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <string.h>

#include "bench.h"

static struct event_base *base;
static struct event *timers;
static u32 *expired, nr_expired;

#define NEAR_US		6000000
#define NEAR_STEP_US	50000
#define NEAR_STEPS	(NEAR_US / NEAR_STEP_US)
#define FAR_STEP_US	1000000
#define STEPS		256

/* How many timers are armed by one look at the clock, also if each call arms but one. */
#define ARMED_BY_A_LOOK	128

static u64 now;
static u32 nr_armed;	/* since @now */
static bool is_common;
static const struct timeval *durations[STEPS];

static void prepare(u32 n)
{
	timers = get_pages(n * sizeof(*timers));
}

static void release(u32 n)
{
	put_pages(timers, n * sizeof(*timers));
}

static void callback(int fd, short what, void *arg)
{
	expired[nr_expired++] = (uintptr_t)arg;
}

static const char *open_base(u32 n)
{
	struct event_config *config = event_config_new();

	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	must(base);
	event_config_free(config);
	memset(durations, 0, sizeof(durations));
	nr_armed = 0;
	for (u32 i = 0; i < n; i++)
		must(!evtimer_assign(&timers[i], base, callback, (void *)(uintptr_t)i));
	return NULL;
}

static u32 close_base(u32 n)
{
	event_base_free(base);
	return n;
}

static struct timeval timeval_of(u64 us)
{
	return (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
}

/* The duration of a queue. The queue is made when it is first asked for. */
static const struct timeval *common_of(u64 us)
{
	u32 i = (us + NEAR_STEP_US - 1) / NEAR_STEP_US;
	struct timeval tv;

	if (us > NEAR_US)
		i = NEAR_STEPS + (us + FAR_STEP_US - 1) / FAR_STEP_US;
	must(i < STEPS);
	if (!durations[i]) {
		tv = timeval_of(i <= NEAR_STEPS ? (u64)i * NEAR_STEP_US :
				(u64)(i - NEAR_STEPS) * FAR_STEP_US);
		durations[i] = event_base_init_common_timeout(base, &tv);
		must(durations[i]);
	}
	return durations[i];
}

/*
 * libevent takes only delays, and evtimer_add() reads the clock. A program with a delay does not
 * read it as well, so this rarely does.
 */
static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	for (u32 i = 0; i < nr; i++) {
		struct timeval tv;
		u64 us;

		if (nr_armed++ % ARMED_BY_A_LOOK == 0)
			now = now_ns();
		us = (deadline[ids[i]] - now + 999) / 1000;
		tv = timeval_of(us);
		must(!evtimer_add(&timers[ids[i]], is_common ? common_of(us) : &tv));
	}
}

static void cancel(const u32 *ids, u32 nr)
{
	nr_armed = 0;
	for (u32 i = 0; i < nr; i++)
		must(!evtimer_del(&timers[ids[i]]));
}

static u32 collect(u32 *ids, bool wait)
{
	expired = ids;
	nr_expired = 0;
	nr_armed = 0;
	must(event_base_loop(base, wait ? EVLOOP_ONCE : EVLOOP_NONBLOCK) >= 0);
	return nr_expired;
}

static bool every(u32 id, u64 period)
{
	struct timeval tv = timeval_of(period / 1000);

	must(!event_assign(&timers[id], base, -1, EV_PERSIST, callback, (void *)(uintptr_t)id));
	must(!event_add(&timers[id], is_common ? common_of(period / 1000) : &tv));
	return true;
}

static const char *open_plain(u32 n)
{
	is_common = false;
	return open_base(n);
}

static const char *open_common(u32 n)
{
	is_common = true;
	return open_base(n);
}

const struct subject libevent_subject = {
	.name = "libevent",
	.prepare = prepare,
	.open = open_plain,
	.arm = arm,
	.rearm = arm,
	.cancel = cancel,
	.collect = collect,
	.every = every,
	.close = close_base,
	.release = release,
};

const struct subject libevent_common_subject = {
	.name = "libevent-common",
	.prepare = prepare,
	.open = open_common,
	.arm = arm,
	.rearm = arm,
	.cancel = cancel,
	.collect = collect,
	.every = every,
	.close = close_base,
	.release = release,
};
