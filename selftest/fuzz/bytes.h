/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* A fuzzer's bytes as numbers, and as one of the timers of ../wheel/judge.h. */
#ifndef BYTES_H
#define BYTES_H

static const u8 *in;
static size_t left;

static u64 take(unsigned int bytes)
{
	u64 value = 0;

	for (; bytes && left; bytes--, left--)
		value = value << 8 | *in++;
	return value;
}

static unsigned int some_timer(void)
{
	return take(1) * nr / 256;
}

#endif
