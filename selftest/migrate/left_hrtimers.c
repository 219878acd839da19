// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What of struct hrtimer is for a person. None of these functions compiles afterwards. */
#include <linux/hrtimer.h>

enum hrtimer_restart left_periodic(struct hrtimer *timer)
{
	hrtimer_forward_now(timer, NSEC_PER_MSEC);
	return HRTIMER_RESTART;
}

void left_clock(struct hrtimer *timer)
{
	hrtimer_init(timer, CLOCK_REALTIME, HRTIMER_MODE_ABS_SOFT);
}

void left_elsewhere(struct hrtimer *timer)
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

void left_pinned(struct hrtimer *timer)
{
	hrtimer_start(timer, NSEC_PER_SEC, HRTIMER_MODE_REL_PINNED_SOFT);
}

void left_slack(struct hrtimer *timer)
{
	hrtimer_start_range_ns(timer, NSEC_PER_SEC, NSEC_PER_MSEC, HRTIMER_MODE_REL_SOFT);
}

bool left_active(struct hrtimer *timer)
{
	return hrtimer_active(timer);
}

void left_again(struct hrtimer *timer)
{
	hrtimer_restart(timer);
}

ktime_t left_expires(struct hrtimer *timer)
{
	return hrtimer_get_expires(timer);
}
