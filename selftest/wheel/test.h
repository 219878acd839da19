/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the native tests of the wheel share: TAP, memory, and numbers from the environment.
 */
#ifndef TEST_H
#define TEST_H

#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "wheel_user.h"

/* A number from the command line, or else from the environment, or else @value. */
static inline u64 setting(const char *arg, const char *name, u64 value)
{
	const char *s = arg ? arg : getenv(name);

	if (s && *s)
		value = strtoull(s, NULL, 0);
	diag("%s=%llu", name, (unsigned long long)value);
	return value;
}

static inline void *alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

#include "drive.h"

#endif
