// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Timers that tolerance.cocci gives a tolerance, and those that stay exact. */
#include <linux/jiffies.h>
#include <linux/random.h>
#include "timers.h"

void tolerances(struct twheel_timer *timer, long timeout)
{
	twheel_add(timer, twheel_jiffies(timeout));
	if (twheel_mod(timer, twheel_jiffies(timeout + HZ)))
		twheel_mod_pending(timer, twheel_jiffies(3 * HZ));
	twheel_reduce(timer, twheel_jiffies(msecs_to_jiffies(timeout)));
	twheel_mod(timer, 0);

	/* exact, and listed */
	twheel_mod(timer, twheel_until(timeout));
	twheel_mod(timer, twheel_jiffies(get_random_u32() % timeout));
	twheel_mod(timer, twheel_jiffies(timeout++));
	twheel_mod(timer, NSEC_PER_SEC * timeout);
}
