/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* What the programs of the benchmark share. */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdlib.h>

static inline int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median of @nr values, which this sorts. */
static inline u64 median(u64 *values, u32 n)
{
	qsort(values, n, sizeof(*values), compare_u64);
	return values[n / 2];
}

#endif
