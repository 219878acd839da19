// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The names that the kernel has had since 6.15, and hrtimer_setup() since 6.13. */
#include <linux/hrtimer.h>
#include <linux/workqueue.h>

#include "timers.h"

struct pace {
	struct hrtimer		next;
	u64			gap_ns;
};

int newer_end(struct timer_list *timer)
{
	struct flow *flow = timer_container_of(flow, timer, retry);

	if (timer_delete_sync_try(&flow->gc[0]) < 0)
		return timer_delete(&flow->idle);
	timer_destroy_on_stack(&flow->gc[1]);
	return timer_delete_sync(timer);
}

static enum hrtimer_restart pace_next(struct hrtimer *timer)
{
	struct pace *pace = container_of(timer, struct pace, next);

	hrtimer_start(timer, ns_to_ktime(pace->gap_ns), HRTIMER_MODE_REL_SOFT);
	return HRTIMER_NORESTART;
}

void newer_begin(struct pace *pace)
{
	hrtimer_setup(&pace->next, pace_next, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}
