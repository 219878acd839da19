// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An allocation fails while twheel.ko or twheel_chardev.ko initialises itself: the one whose number
 * is the parameter nth. Afterwards nth is what was left to count: 0 says that the allocation was
 * reached. The parameter refused counts how often a module could not be loaded. The suite starving
 * of the test machine's init(1) loads the modules, each twice, since busybox tries again after a
 * refusal.
 *
 * The kernel calls the notifiers of a coming module before the module's init function. The last of
 * them replaces that function by starved_init(). So only the allocations that our modules make are
 * counted, and none of the hundred that the kernel makes for the files of any module.
 *
 * This is for kernels with fault injection, which init sets up.
 */
#define pr_fmt(fmt) fmt

#include <linux/module.h>
#include <linux/sched.h>

static unsigned int nth;
module_param(nth, uint, 0644);
static unsigned int refused;
module_param(refused, uint, 0644);
static int (*real_init)(void);

static int starved_init(void)
{
	int ret;

	current->fail_nth = nth;
	ret = real_init();
	nth = current->fail_nth;
	current->fail_nth = 0;
	refused += ret < 0;
	return ret;
}

static int starve(struct notifier_block *nb, unsigned long state, void *arg)
{
	struct module *mod = arg;

	if (state != MODULE_STATE_COMING ||
	    (strcmp(mod->name, "twheel") && strcmp(mod->name, "twheel_chardev")))
		return NOTIFY_DONE;
	real_init = mod->init;
	mod->init = starved_init;
	return NOTIFY_OK;
}

static struct notifier_block coming = {
	.notifier_call = starve,
	.priority = INT_MIN,
};

static int __init starve_init(void)
{
	return register_module_notifier(&coming);
}

static void __exit starve_exit(void)
{
	unregister_module_notifier(&coming);
}

module_init(starve_init);
module_exit(starve_exit);

MODULE_DESCRIPTION("Test of loading twheel under failing allocations");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
