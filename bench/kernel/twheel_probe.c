// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The probe of probe.h for a program. irqs_off.c writes 1 to the parameter "on", does what is to be
 * measured, and writes 0. Then "longest" says for how many instructions interrupts were off, and
 * "where" names the function in which they were turned on again, and its callers.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "probe.h"

static bool on;
static u64 longest;
module_param(longest, ullong, 0444);
MODULE_PARM_DESC(longest, "instructions with interrupts off while the probe was on");

/*
 * The trace begins in the probe's interrupt. Print the function it interrupted, and five callers.
 */
static int get_where(char *buffer, const struct kernel_param *kp)
{
	int len = sysfs_emit(buffer, "%ps", (void *)probe_where);
	unsigned int i = 0, end;

	while (i < probe_depth && probe_trace[i] != probe_where)
		i++;
	end = min(i + 6, probe_depth);
	while (++i < end)
		len += sysfs_emit_at(buffer, len, " < %ps", (void *)probe_trace[i]);
	return len + sysfs_emit_at(buffer, len, "\n");
}

static const struct kernel_param_ops where_ops = {
	.get	= get_where,
};

module_param_cb(where, &where_ops, NULL, 0444);
MODULE_PARM_DESC(where, "function in which interrupts were on again after that, and its callers");

/* The kernel serialises the writers of a parameter. */
static int set_on(const char *val, const struct kernel_param *kp)
{
	bool was = on;
	int err = param_set_bool(val, kp);

	if (err || on == was)
		return err;
	if (on)
		probe_start();
	else
		longest = probe_stop();
	return 0;
}

static const struct kernel_param_ops on_ops = {
	.set	= set_on,
	.get	= param_get_bool,
};

module_param_cb(on, &on_ops, &on, 0644);
MODULE_PARM_DESC(on, "the probe is on");

static int __init probe_module_init(void)
{
	if (num_online_cpus() != 1 || IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EINVAL;
	probe_init(NULL);
	return 0;
}

static void __exit probe_module_exit(void)
{
	if (on)
		probe_stop();
}

module_init(probe_module_init);
module_exit(probe_module_exit);

MODULE_DESCRIPTION("How long interrupts are off, for programs");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
