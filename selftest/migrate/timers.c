// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Each use of struct timer_list that timer_list.cocci translates, by the old names. */
#include <linux/jiffies.h>
#include <linux/module.h>
#include "timers.h"

static void sweep(struct timer_list *unused);
static DEFINE_TIMER(sweeper, sweep);
DEFINE_TIMER(other_sweeper, sweep);
static struct timer_list at_compile_time = TIMER_INITIALIZER(sweep, 0);

static void sweep(struct timer_list *unused)
{
	mod_timer(&sweeper, round_jiffies(jiffies + 10 * HZ));
}

void flow_idle(struct timer_list *timer)
{
	struct flow *flow = from_timer(flow, timer, idle);
	struct flow *same = container_of(timer, struct flow, idle);

	if (same->timeout)
		mod_timer(timer, jiffies + flow->timeout);
	else
		mod_timer(&flow->gc[1], jiffies);
}

/* A time that was stored, and those that are so and so far from now. */
static int flow_arm(struct flow *flow, struct timer_list *timer, unsigned long expires)
{
	int armed = mod_timer(timer, expires);

	mod_timer(&flow->idle, HZ / 2 + jiffies);
	mod_timer(&flow->idle, jiffies + flow->timeout + HZ);
	armed += mod_timer_pending(&flow->idle, jiffies);
	armed |= timer_reduce(&flow->retry, jiffies + 3 * HZ);
	flow->expires = jiffies + flow->timeout;
	flow->gc[0].expires = flow->expires;
	add_timer(&flow->gc[0]);
	timer->expires = jiffies + HZ;
	add_timer(timer);
	flow->retry.expires = expires;
	add_timer_on(&flow->retry, 0);
	timer->expires = jiffies + flow->timeout;
	add_timer_on(timer, raw_smp_processor_id());
	return armed;
}

static unsigned int flow_left(const struct flow *flow, const struct timer_list *timer)
{
	if (time_after(timer->expires, flow->expires))
		return 0;
	return jiffies_delta_to_msecs(flow->idle.expires - jiffies);
}

static int flow_end(struct flow *flow)
{
	if (!timer_pending(&flow->idle) || try_to_del_timer_sync(&flow->idle) < 0)
		return 0;
	return del_timer(&flow->retry) + del_timer_sync(&flow->gc[0]) +
	       timer_shutdown_sync(&flow->gc[1]);
}

static int __init timers_init(void)
{
	struct timer_list on_stack;
	struct flow flow = { };

	timer_setup_on_stack(&on_stack, sweep, 0);
	timer_setup(&flow.idle, flow_idle, 0);
	mod_timer(&at_compile_time, jiffies + HZ);
	flow_arm(&flow, &on_stack, jiffies + 1);
	pr_info("%u ms\n", flow_left(&flow, &on_stack));
	del_timer_sync(&on_stack);
	destroy_timer_on_stack(&on_stack);
	return flow_end(&flow);
}

module_init(timers_init);
MODULE_DESCRIPTION("What migrate.sh translates");
MODULE_LICENSE("GPL");
