// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The probe of probe.h for a program. irqs_off.c writes 1 to the parameter "on", does what is to be
 * measured, and writes 0. Then "longest" says for how many instructions interrupts were off, and
 * "where" names the function in which they were turned on again, and its callers. "ours" is the
 * longest time of those that twheel's modules ended: how long the kernel's own code has interrupts
 * off depends on the state of its allocators and on what else it has to do.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "probe.h"

static bool on;
static u64 longest;
module_param(longest, ullong, 0444);
MODULE_PARM_DESC(longest, "instructions with interrupts off while the probe was on");

static u64 ours;
module_param(ours, ullong, 0444);
MODULE_PARM_DESC(ours, "the same, of what twheel's modules had turned on again");

/*
 * The kernel's tick is served in the interrupt of the probe, before it if it is due earlier. It
 * takes up to 50 000 instructions, and may come just when a lock is released.
 */
#define TICK_NS		100000

static s64 ours_late, seen_late;
static unsigned long seen_jiffies;

/*
 * Were interrupts turned on by code of twheel's modules? A lock is released by a function of the
 * kernel, so then its caller counts. Which module an address belongs to is not for modules to ask,
 * but the name of its function says so. This takes long, and is asked only for a new longest time.
 */
static bool is_ours(unsigned long at)
{
	static unsigned long trace[ARRAY_SIZE(probe_trace)];
	unsigned int depth, i = 0;
	char name[KSYM_SYMBOL_LEN];

	snprintf(name, sizeof(name), "%ps", (void *)at);
	if (!strncmp(name, "_raw_spin_unlock", strlen("_raw_spin_unlock"))) {
		depth = stack_trace_save(trace, ARRAY_SIZE(trace), 0);
		while (i < depth && trace[i] != at)
			i++;
		if (++i >= depth)
			return false;
		snprintf(name, sizeof(name), "%ps", (void *)trace[i]);
	}
	return strstr(name, "[twheel");
}

/*
 * With each interrupt of the probe. If it is the latest so far, probe_note() has saved a trace,
 * which takes its time, so take its word for how late that was.
 */
static void note_ours(bool counts)
{
	s64 late = ktime_get() - hrtimer_get_expires(&probe);

	if (most_late != seen_late) {
		seen_late = most_late;
		late = most_late;
	}
	if (time_after(jiffies, seen_jiffies)) {
		seen_jiffies = jiffies;
		if (late < TICK_NS)
			return;
	}
	if (counts && late > ours_late && is_ours(instruction_pointer(get_irq_regs())))
		ours_late = late;
}

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
	if (on) {
		ours_late = 0;
		seen_late = 0;
		seen_jiffies = jiffies;
		probe_start();
	} else {
		longest = probe_stop();
		ours = max_t(s64, ours_late - least_late, 0);
	}
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
	probe_init(note_ours);
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
