// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU stands still, as when its hypervisor or firmware has it: for the parameter ms, in the
 * next lock hold of a file's base in which timers expire. After that ms is 0.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned int ms;
module_param(ms, uint, 0644);

static int stand_still(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int time = xchg(&ms, 0);

	if (time)
		mdelay(time);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "twheel_chardev:file_expired",
	.pre_handler = stand_still,
};

static int __init smi_init(void)
{
	return register_kprobe(&probe);
}

static void __exit smi_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(smi_init);
module_exit(smi_exit);

MODULE_DESCRIPTION("A CPU that stands still");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
