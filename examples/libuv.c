// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * libtwheel in a libuv loop: a uv_poll_t for the wheel, and no uv_timer_t for any timer.
 * See alarms.h.
 */
#include <uv.h>

#include "alarms.h"

static uv_poll_t input, wheel;

static void leave_if_over(const struct alarms *a)
{
	if (a->at_end)
		uv_poll_stop(&input);
	if (alarms_over(a))
		uv_poll_stop(&wheel);	/* without active handles uv_run() returns */
}

static void on_input(uv_poll_t *handle, int status, int events)
{
	(void)status;		/* an error makes read() fail, which is the end too */
	(void)events;
	alarms_input(handle->data);
	leave_if_over(handle->data);
}

static void on_wheel(uv_poll_t *handle, int status, int events)
{
	(void)status;
	(void)events;
	alarms_ring(handle->data);
	leave_if_over(handle->data);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct alarms a = { 0 };

	alarms_open(&a);
	uv_poll_init(loop, &input, STDIN_FILENO);
	uv_poll_init(loop, &wheel, twheel_fd(a.wheel));
	input.data = &a;
	wheel.data = &a;
	uv_poll_start(&input, UV_READABLE | UV_DISCONNECT, on_input);
	uv_poll_start(&wheel, UV_READABLE, on_wheel);
	uv_run(loop, UV_RUN_DEFAULT);

	uv_close((uv_handle_t *)&input, NULL);
	uv_close((uv_handle_t *)&wheel, NULL);	/* before the descriptor is closed */
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	twheel_close(a.wheel);
	return 0;
}
