// SPDX-License-Identifier: GPL-2.0
/*
 * For how long are interrupts off? An hrtimer in hard mode on the CPU that loads the module
 * is due each PERIOD_NS. The most that its interrupt was late, in ns, is the parameter worst,
 * which may be set to 0.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>

#define PERIOD_NS	(25 * NSEC_PER_USEC)

static unsigned int worst;
module_param(worst, uint, 0644);

static struct hrtimer clock;

static enum hrtimer_restart is_due(struct hrtimer *timer)
{
	ktime_t now = ktime_get();

	worst = max_t(u64, worst, ktime_sub(now, hrtimer_get_expires(timer)));
	hrtimer_forward(timer, ktime_get(), PERIOD_NS);
	return HRTIMER_RESTART;
}

static int __init irqoff_init(void)
{
	hrtimer_init(&clock, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	clock.function = is_due;
	hrtimer_start(&clock, ktime_add_ns(ktime_get(), PERIOD_NS), HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void __exit irqoff_exit(void)
{
	hrtimer_cancel(&clock);
}

module_init(irqoff_init);
module_exit(irqoff_exit);

MODULE_DESCRIPTION("How long interrupts are off");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
