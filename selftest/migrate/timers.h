/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* A structure with timers: that x->idle is one is known from here alone. */
#ifndef TIMERS_H
#define TIMERS_H

#include <linux/timer.h>

struct flow {
	struct timer_list	idle, retry;
	struct timer_list	gc[2];		/* ahead of time */
	unsigned long		timeout;
	unsigned long		expires;	/* no timer's */
};

struct pace;
struct probe;

void flow_idle(struct timer_list *timer);
int newer_end(struct timer_list *timer);
void newer_begin(struct pace *pace);
s64 probe_run(struct probe *probe, ktime_t when);
void tolerances(struct twheel_timer *timer, long timeout);

#endif
