/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A length of time in 16 bits, for where eight bytes are too many.
 *
 * It is a number up to 2 047 and a power of ten: at least the first three decimal digits, and
 * what is behind them counts as 0. People and programs ask for 250 ms, 3 s or 90 minutes: all
 * that is exact. Of an eighth of some odd delay not half a percent is lost, and never is it more.
 */
#ifndef WHEEL_DECIMAL_H
#define WHEEL_DECIMAL_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>
#else
#include "wheel_user.h"
#endif

#define WHEEL_DECIMAL_BITS	11	/* of the number; the power has the others */
#define WHEEL_DECIMAL_MAX	((1U << WHEEL_DECIMAL_BITS) - 1)

/* @time, rounded down, in 16 bits. */
static inline u16 wheel_decimal_of(u64 time)
{
	unsigned int power = 0;

	while (time > WHEEL_DECIMAL_MAX) {
		time = div_u64(time, 10);
		power++;
	}
	return power << WHEEL_DECIMAL_BITS | (unsigned int)time;
}

/* The time that @decimal stands for. */
static inline u64 wheel_decimal_time(u16 decimal)
{
	u64 time = decimal & WHEEL_DECIMAL_MAX;
	unsigned int power;

	for (power = decimal >> WHEEL_DECIMAL_BITS; power; power--)
		time *= 10;
	return time;
}

#endif
