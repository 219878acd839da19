// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz the wheel. The input's bytes are operations, done to the wheel and to the oracle of
 * ../wheel/oracle.h. If a promise does not hold, the program aborts.
 *
 * The first bytes set up the episode. After that each operation is one byte, three bits for what
 * to do and five for how, and then its arguments. Past the end of the input all bytes are zero.
 * Branches do not show the fuzzer which moments of a step an input has reached; counters do.
 */
#include "oracle.h"
#include "bytes.h"

/* A bit for each of eight expiries in a row: does the callback do an operation? */
static u8 inside;

/* A tick some buckets of some level away from @from, or from where its bucket begins. */
static u64 some_tick(u64 from)
{
	u8 how = take(1);
	u64 unit;

	if (how % 8 == 7)
		return take(8);
	if (how % 8 == 6)
		return due[some_timer()] + (how >> 4) - 1;
	unit = width[how % 8];
	if (how & 8)
		from -= from % unit;
	return from + take(1) * unit + (how >> 4) - 1;
}

/* Time does not go back. It stays far from its end, because some timers must never fire. */
static u64 some_time(void)
{
	u64 t = some_tick(now);

	return t > now && t - now < 4 * SPAN ? t : now;
}

static void add_or_del(unsigned int i)
{
	if (due[i] == IDLE)
		add(i, some_tick(now));
	else
		del(i);
}

/*
 * Arm or re-arm timer @i. Bit 0 of @how: if it is armed, count from its expiry and not from now.
 * Bit 2: arm it with a range, so that it may be late.
 */
static void add_or_mod(unsigned int i, unsigned int how)
{
	u64 tick = some_tick(how & 1 && due[i] != IDLE ? due[i] : now);

	if (how & 4) {
		u64 late = take(1) * width[how >> 3];

		if (tick <= WHEEL_NEVER - late && due[i] == IDLE)
			add_within(i, tick, tick + late);
		else if (tick <= WHEEL_NEVER - late)
			mod_within(i, tick, tick + late);
	} else if (due[i] == IDLE) {
		add(i, tick);
	} else {
		mod(i, tick);
	}
}

/* Do an operation inside the callback of timer @i: to it, or to another timer. */
static void at_expiry(unsigned int i)
{
	if (!(inside >> count[EXPIRED] % 8 & 1))
		return;
	if (take(1) & 1)
		i = some_timer();
	count[due[i] == IDLE ? ADD_INSIDE : DEL_INSIDE]++;
	add_or_del(i);
}

static void one_operation(void)
{
	unsigned int what = take(1), how = what >> 3;
	u32 budget = how == 31 ? NO_LIMIT : 1 + how * (1 + how / 8);
	u64 tick;

	switch (what % 8) {
	case 0:
		add_or_del(some_timer());
		break;
	case 1:
		add_or_mod(some_timer(), how);
		break;
	case 2:
		tick = some_tick(now);
		burst(tick, width[how % 6], 1 + take(1) * (1 + nr / 256), some_timer());
		break;
	case 3:
		add(nr, some_tick(wheel_clk(w)));
		del(nr);
		break;
	case 4:
		forward(some_time());
		break;
	case 5:
		advance_to(w->next < now + 4 * SPAN && w->next > now ? w->next : now, budget);
		break;
	case 6:
		advance_to(now, budget);
		break;
	default:
		advance_to(some_time(), budget);
	}
}

static void begin_episode(void)
{
	static const unsigned int sizes[] = { 2, 16, 2 * WHEEL_BIG + 40, NR_MAX - 1 };
	static const u64 starts[] = { 3, 1000, (u64)1 << 32, (u64)1 << 53, (u64)1 << 62 };
	u8 how = take(1);
	u64 start = starts[how % 8 % ARRAY_SIZE(starts)];

	start += width[take(1) % 6] - how / 8 % 4;
	inside = take(1);
	rnd_state = take(1);	/* burst() draws with it */
	ops = 0;
	memset(count, 0, sizeof(count));
	begin(how / 32 % 2 ? start : how, sizes[how / 64]);
	timer[nr] = (struct wheel_timer) { .data = nr, .flags = ~nr };
	due[nr] = IDLE;
}

/* Counters for libFuzzer: to it each byte is one more branch, and the value is how often it ran. */
static u8 reached[NR_SEEN] __attribute((section("__libfuzzer_extra_counters")));

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const u8 *data, size_t size)
{
	unsigned int i;

	in = data;
	left = size;
	begin_episode();
	while (left && !failed()) {
		one_operation();
		if (WHEEL_SLOTS < 200 || !(ops % 16))
			expect(SOUND, sound(w));
	}
	inside = 0;
	finish();
	if (failed()) {
		fflush(stdout);
		abort();
	}
	for (i = 0; i < NR_SEEN; i++)
		reached[i] = count[i] < 255 ? count[i] : 255;
	return 0;
}
