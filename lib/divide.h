/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Division by a number that stays the same, done by a multiplication. On some processors a division
 * of 64 bits costs more than the rest of an operation.
 *
 * With l bits, so that 2^(l - 1) < d <= 2^l, and m = floor(2^(63 + l) / d) + 1, the quotient of
 * n < 2^63 is floor(n * m / 2^(63 + l)) exactly: m * d is greater than 2^(63 + l) by no more than
 * 2^l, so n * m / 2^(63 + l) is greater than n / d by less than 1 / d.
 */
#ifndef DIVIDE_H
#define DIVIDE_H

#include "wheel_user.h"

/**
 * struct divisor - what to divide by
 * @by:		the number d, from 2 to 2^62
 * @factor:	m
 * @shift:	l - 1: divide() takes the upper half of the product, which is a shift by 64
 */
struct divisor {
	u64		by;
	u64		factor;
	unsigned int	shift;
};

#ifdef __SIZEOF_INT128__
/* Prepare to divide by @by, which is from 2 to 2^62. */
static inline struct divisor divisor(u64 by)
{
	unsigned int l = 64 - (unsigned int)__builtin_clzll(by - 1);

	return (struct divisor) {
		.by	= by,
		.factor	= (u64)(((__uint128_t)1 << (63 + l)) / by) + 1,
		.shift	= l - 1,
	};
}

/* @n / @d, where @n is below 2^63. */
static inline u64 divide(u64 n, const struct divisor *d)
{
	return (u64)((__uint128_t)n * d->factor >> 64) >> d->shift;
}
#else
/* A processor without a product of 128 bits divides. */
static inline struct divisor divisor(u64 by)
{
	return (struct divisor) { .by = by };
}

static inline u64 divide(u64 n, const struct divisor *d)
{
	return n / d->by;
}
#endif

#endif
