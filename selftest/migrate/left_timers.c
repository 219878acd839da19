// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What of struct timer_list is for a person. No function that says left_ compiles afterwards. */
#include <linux/jiffies.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

struct left {
	struct timer_list	timer;
	struct delayed_work	work;
};

static void fired(struct timer_list *timer)
{
}

void left_on(struct left *left)
{
	add_timer_on(&left->timer, 1);
}

void left_stored(struct left *left)
{
	add_timer(&left->timer);
}

void left_write(struct left *left)
{
	left->timer.expires = jiffies + HZ;
}

void left_drift(struct left *left)
{
	left->timer.expires += HZ;
}

void left_flags(struct left *left)
{
	left->timer.flags |= TIMER_PINNED;
}

void left_deferrable(struct left *left)
{
	timer_setup(&left->timer, fired, TIMER_DEFERRABLE);
}

void left_shutdown(struct left *left)
{
	timer_shutdown(&left->timer);
}

bool left_work(struct left *left)
{
	return timer_pending(&left->work.timer);
}
