// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An allocation fails while twheel.ko or twheel_chardev.ko is being loaded: the one whose number is
 * the parameter nth. Afterwards nth is what was left to count: 0 says that the allocation was
 * reached. The parameter refused counts how often a module could not be loaded. The suite starving
 * of the test machine's init(1) loads the modules, each twice, since busybox tries again after a
 * refusal.
 *
 * Notifiers are called when a module is loaded. The last one that is called for the coming module
 * makes the allocation fail, and the first message about the outcome ends that. In between the
 * kernel itself allocates too, for the module's files in sysfs, and then refuses the module.
 * Earlier allocations, for traced events, must not fail: the kernel warns about that.
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
static bool loading;

static bool is_starved(const struct module *mod)
{
	return !strcmp(mod->name, "twheel") || !strcmp(mod->name, "twheel_chardev");
}

static int starve_begin(struct notifier_block *nb, unsigned long state, void *mod)
{
	if (state != MODULE_STATE_COMING || !is_starved(mod))
		return NOTIFY_DONE;
	current->fail_nth = nth;
	loading = true;
	return NOTIFY_OK;
}

static int starve_end(struct notifier_block *nb, unsigned long state, void *mod)
{
	if (state == MODULE_STATE_COMING || !is_starved(mod) || !loading)
		return NOTIFY_DONE;
	loading = false;
	nth = current->fail_nth;
	current->fail_nth = 0;
	refused += state == MODULE_STATE_GOING;
	return NOTIFY_OK;
}

static struct notifier_block coming = {
	.notifier_call = starve_begin,
	.priority = INT_MIN,
};

static struct notifier_block outcome = {
	.notifier_call = starve_end,
	.priority = INT_MAX,
};

static int __init starve_init(void)
{
	int ret = register_module_notifier(&coming);

	if (ret)
		return ret;
	ret = register_module_notifier(&outcome);
	if (ret)
		unregister_module_notifier(&coming);
	return ret;
}

static void __exit starve_exit(void)
{
	unregister_module_notifier(&outcome);
	unregister_module_notifier(&coming);
}

module_init(starve_init);
module_exit(starve_exit);

MODULE_DESCRIPTION("Test of loading twheel under failing allocations");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
