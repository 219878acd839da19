// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz a wheel whose clock is set forward and back. The input's bytes are operations, done to the
 * wheel and to the oracle of ../wheel/back.h. If a promise does not hold, the program aborts.
 */
#include "back.h"
#include "bytes.h"

/* A tick some buckets of some level away from now, the wheel's clock, or a timer. */
static u64 some_tick(void)
{
	u8 how = take(1);
	const u64 from[] = { now, wheel_clk(w), b.held, due[some_timer()] };
	u64 by = take(1) * width[how % 6], t = from[how >> 3 & 3];

	t = (how & 32 ? t - by : t + by) + (how >> 6) - 1;
	return t > 2 && t < 6000 * SPAN ? t : now;
}

/* Arm timer @i with a range: it may be late. */
static void arm_range(unsigned int i, unsigned int how)
{
	u64 first = some_tick(), last = first + take(1) * width[how % 5];

	if (due[i] == IDLE)
		add_within(i, first, last);
	else
		mod_within(i, first, last);
}

static void one_operation(void)
{
	unsigned int what = take(1), how = what >> 3, i;
	u32 budget = how == 31 ? NO_LIMIT : 1 + how * (1 + how / 8);

	switch (what % 8) {
	case 0:
	case 1:
		i = some_timer();
		if (due[i] == IDLE)
			add(i, some_tick());
		else
			del(i);
		break;
	case 2:
		i = some_timer();
		if (how & 16)
			arm_range(i, how);
		else if (due[i] == IDLE)
			add(i, some_tick());
		else
			mod(i, how & 1 ? due[i] + take(1) * width[how / 2 % 6] : some_tick());
		break;
	case 3:
		for (i = 0; i < nr; i++)
			if (due[i] == IDLE && i % 8 < how % 8)
				add(i, now + 1 + i * (how / 8));
		break;
	case 4:
		set(some_tick(), how & 1);
		break;
	case 5:
		if (b.small && how & 16)
			grow();
		else if (now < 5000 * SPAN)
			forward(take(1) * width[how % 5]);
		break;
	default:
		advance_by(budget);
	}
}

/* Counters for libFuzzer: to it each byte is one more branch, and the value is how often it ran. */
static u8 reached[NR_SEEN] __attribute((section("__libfuzzer_extra_counters")));

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const u8 *data, size_t size)
{
	static const unsigned int sizes[] = { 2, 16, 2 * WHEEL_BIG + 40, NR_MAX };
	unsigned int i, how;

	in = data;
	left = size;
	ops = 0;
	rnd_state = take(1);
	memset(count, 0, sizeof(count));
	how = take(1);
	begin(2500 * SPAN + rnd() % SPAN, sizes[how % 4], how & 128);
	while (left && !failed()) {
		one_operation();
		if (WHEEL_SLOTS < 200 || !(ops % 16))
			expect(SOUND, all_sound());
	}
	finish();
	if (failed()) {
		fflush(stdout);
		abort();
	}
	for (i = 0; i < NR_SEEN; i++)
		reached[i] = count[i] < 255 ? count[i] : 255;
	return 0;
}
