// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel_create() while allocations fail, each of them in turn and many at random: it returns
 * -ENOMEM, or works without that memory. If memory is lost, that shows when the modules are
 * unloaded: see orphans() and ours() in selftest/qemu/init.
 *
 * This is for kernels with fault injection, which init sets up.
 */
#define pr_fmt(fmt) fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "ktap.h"
#include "twheel.h"

#define ROUNDS	1000
#define MOST	1000	/* the most allocations in one call */

static const struct twheel_config config = {
	.clock = CLOCK_MONOTONIC,
	.tick_ns = TWHEEL_TICK_NS,
};

static void never_fired(struct twheel_timer *timer) { }

/* Make a base while allocation @nth fails. Sets *@nth to 0 if it was reached. */
static struct twheel_base *create(unsigned int *nth)
{
	struct twheel_base *base;

	current->fail_nth = *nth;
	base = twheel_create(&config);
	*nth = current->fail_nth;
	current->fail_nth = 0;
	return base;
}

/* Returns whether a base was made. Any error but -ENOMEM is wrong. */
static int result(struct twheel_base *base)
{
	if (IS_ERR(base))
		return PTR_ERR(base) == -ENOMEM ? 0 : PTR_ERR(base);
	twheel_destroy(base);
	return 1;
}

static void test_each(void)
{
	unsigned int nth, left = 0, refused = 0, wrong = 0;

	for (nth = 1; nth < MOST && !left; nth++) {
		int ret;

		left = nth;
		ret = result(create(&left));
		refused += ret == 0;
		wrong += ret < 0 || (ret == 0 && left);
	}
	check(left && refused, "an allocation fails: no base %u times out of %u", refused,
	      nth - 2);
	check(!wrong, "%u times for another reason", wrong);
}

/* An allocation that fails may be repeated in another way, which fails too. */
static void test_many(void)
{
	unsigned int i, refused = 0, wrong = 0;

	for (i = 0; i < ROUNDS; i++) {
		struct twheel_base *base;
		int ret;

		current->make_it_fail = 1;
		base = twheel_create(&config);
		current->make_it_fail = 0;
		ret = result(base);
		refused += ret == 0;
		wrong += ret < 0;
	}
	check(refused && refused < ROUNDS, "a third of them fails: no base %u times out of %u",
	      refused, ROUNDS);
	check(!wrong, "%u times for another reason", wrong);
}

/* The id of a base. */
static u32 id_of_next(void)
{
	struct twheel_base *base = twheel_create(&config);
	static struct twheel_timer timer;
	u32 id;

	if (IS_ERR(base))
		return 0;
	twheel_init_on(base, &timer, never_fired);
	id = timer.queue.data;
	twheel_destroy(base);
	return id;
}

/* If a base could not be made, its id is free again. */
static void test_ids(u32 before)
{
	u32 after = id_of_next();

	check(before && after == before, "the next base is %u, as before", after);
}

static int __init fail_init(void)
{
	u32 before;

	pr_info("TAP version 14\n");
	before = id_of_next();
	test_each();
	test_many();
	test_ids(before);
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
