/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A length of time in 16 bits, for where eight bytes are too many.
 *
 * It is a number up to 2 047 and a power of ten. So at least the first three decimal digits of a
 * time are kept, and the digits behind them count as 0. Times that people and programs ask for,
 * such as 250 ms, 3 s or 90 minutes, are exact. Any other time loses less than half a percent, and
 * is never made longer.
 */
#ifndef WHEEL_DECIMAL_H
#define WHEEL_DECIMAL_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>
#else
#include "wheel_user.h"
#endif

#define WHEEL_DECIMAL_BITS	11	/* for the number; the rest is the power */
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
