// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Callbacks with interrupts off: translated with -D hardirq, and otherwise listed. */
#include <linux/hrtimer.h>

void hard_begin(struct hrtimer *timer, struct hrtimer *other);

static enum hrtimer_restart hard_fired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

void hard_begin(struct hrtimer *timer, struct hrtimer *other)
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = hard_fired;
	hrtimer_start(timer, NSEC_PER_SEC, HRTIMER_MODE_REL);
	hrtimer_setup(other, hard_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	hrtimer_start(other, NSEC_PER_SEC, HRTIMER_MODE_ABS);
}
