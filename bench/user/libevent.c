// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * libevent's timers: a heap in user space, behind one timerfd.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "bench.h"

static struct event_base *base;
static struct event *timers;
static u32 *expired, nr_expired;

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
	for (u32 i = 0; i < n; i++)
		must(!evtimer_assign(&timers[i], base, callback, (void *)(uintptr_t)i));
	return NULL;
}

static u32 close_base(u32 n)
{
	event_base_free(base);
	return n;
}

/* It takes delays only. The clock is looked at by evtimer_add() too. */
static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u64 now = now_ns();

	for (u32 i = 0; i < nr; i++) {
		u64 us;
		struct timeval tv;

		if (i % 256 == 0)
			now = now_ns();
		us = (deadline[ids[i]] - now + 999) / 1000;
		tv = (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
		must(!evtimer_add(&timers[ids[i]], &tv));
	}
}

static void cancel(const u32 *ids, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		must(!evtimer_del(&timers[ids[i]]));
}

static u32 collect(u32 *ids, bool wait)
{
	expired = ids;
	nr_expired = 0;
	must(event_base_loop(base, wait ? EVLOOP_ONCE : EVLOOP_NONBLOCK) >= 0);
	return nr_expired;
}

const struct subject libevent_subject = {
	.name = "libevent",
	.prepare = prepare,
	.open = open_base,
	.arm = arm,
	.rearm = arm,
	.cancel = cancel,
	.collect = collect,
	.close = close_base,
	.release = release,
};
