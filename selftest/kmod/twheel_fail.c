// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation that a call makes fails once: the call says -ENOMEM or does without, and
 * nothing is lost.
 *
 * This is for kernels with fault injection, set up to fail allocations of every kind (see
 * selftest/qemu/init). Each allocation is made to fail ROUNDS times, so that what is lost
 * each time shows in the memory that is in use when the modules are gone; a lost base shows
 * at once, see init's orphans().
 */
#define pr_fmt(fmt) fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "ktap.h"
#include "twheel.h"

#define ROUNDS	100
#define MOST	1000	/* allocations in one call */

static const struct twheel_config config = {
	.clock = CLOCK_MONOTONIC,
	.tick_ns = TWHEEL_TICK_NS,
};

/* A base, made while the @nth allocation fails. Clears @nth if it was reached. */
static struct twheel_base *create(unsigned int *nth)
{
	struct twheel_base *base;

	current->fail_nth = *nth;
	base = twheel_create(&config);
	*nth = current->fail_nth;
	current->fail_nth = 0;
	return base;
}

static void test_create(void)
{
	unsigned int nth, left = 0, injected = 0, refused = 0, wrong = 0;

	for (nth = 1; nth < MOST && !left; nth++) {
		struct twheel_base *base;

		left = nth;
		base = create(&left);
		injected += !left;
		if (IS_ERR(base)) {
			refused++;
			wrong += PTR_ERR(base) != -ENOMEM || left;
		} else {
			twheel_destroy(base);
		}
	}
	if (injected && refused && !wrong && left)
		return;
	check(false, "%u failures, %u times no base, %u of them for another reason",
	      injected, refused, wrong);
}

static int __init fail_init(void)
{
	unsigned int i;

	pr_info("TAP version 14\n");
	for (i = 0; i < ROUNDS && !tests_failed; i++)
		test_create();
	check(i == ROUNDS, "twheel_create() says -ENOMEM when an allocation fails");
	return ktap_end();
}

static void __exit fail_exit(void)
{
}

module_init(fail_init);
module_exit(fail_exit);

MODULE_DESCRIPTION("Test of twheel under failing allocations");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
