// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Each use of struct hrtimer that hrtimer.cocci translates. */
#include <linux/hrtimer.h>
#include <linux/slab.h>

#include "timers.h"

struct probe {
	struct hrtimer		timer;
	unsigned int		runs;
	bool			stopped;
};

static enum hrtimer_restart probe_fired(struct hrtimer *timer);

static enum hrtimer_restart probe_fired(struct hrtimer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);

	if (probe->stopped)
		return HRTIMER_NORESTART;
	probe->runs++;
	return HRTIMER_NORESTART;
}

static void probe_init(struct hrtimer *timer, struct probe *probe)
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->function = probe_fired;
	hrtimer_init(&probe->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	probe->runs = 0;
	probe->timer.function = probe_fired;
}

s64 probe_run(struct probe *probe, ktime_t when)
{
	struct hrtimer on_stack;
	s64 left;

	hrtimer_init_on_stack(&on_stack, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	on_stack.function = probe_fired;
	probe_init(&on_stack, probe);
	hrtimer_start(&on_stack, ms_to_ktime(5), HRTIMER_MODE_REL_SOFT);
	hrtimer_start(&probe->timer, when, HRTIMER_MODE_ABS_SOFT);
	left = hrtimer_get_remaining(&probe->timer);
	if (hrtimer_is_queued(&probe->timer) && hrtimer_try_to_cancel(&probe->timer) < 0)
		hrtimer_cancel(&probe->timer);
	hrtimer_cancel(&on_stack);
	destroy_hrtimer_on_stack(&on_stack);
	return left;
}
