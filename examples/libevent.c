// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * libtwheel in a libevent loop: a persistent read event for the wheel, and no event of
 * libevent's for any timer. See alarms.h.
 */
#include <event2/event.h>

#include "alarms.h"

static struct event_base *base;
static struct event *input;

static void leave_if_over(const struct alarms *a)
{
	if (alarms_over(a))
		event_base_loopbreak(base);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	alarms_input(arg);
	if (((struct alarms *)arg)->at_end)
		event_del(input);
	leave_if_over(arg);
}

static void on_wheel(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	alarms_ring(arg);
	leave_if_over(arg);
}

int main(void)
{
	struct alarms a = { 0 };
	struct event *wheel;

	alarms_open(&a);
	base = event_base_new();
	input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &a);
	wheel = event_new(base, twheel_fd(a.wheel), EV_READ | EV_PERSIST, on_wheel, &a);
	event_add(input, NULL);
	event_add(wheel, NULL);
	event_base_dispatch(base);

	event_free(wheel);	/* before the descriptor is closed */
	event_free(input);
	event_base_free(base);
	twheel_close(a.wheel);
	return 0;
}
