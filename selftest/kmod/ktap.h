/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * How a test module reports: each check() is a point of KTAP in the kernel log. If a point failed,
 * the module's init fails.
 */
#ifndef KTAP_H
#define KTAP_H

#include <linux/printk.h>

static unsigned int tests_run, tests_failed;

static void __printf(2, 3) check(bool good, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	tests_run++;
	tests_failed += !good;
	pr_info("%sok %u %pV\n", good ? "" : "not ", tests_run, &vaf);
	va_end(args);
}

/* A point that is not possible here. scripts/skips.expected must list the reason. */
static void __maybe_unused skip(const char *reason, const char *fmt, ...) __printf(2, 3);
static void skip(const char *reason, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	pr_info("ok %u %pV # SKIP %s\n", ++tests_run, &vaf, reason);
	va_end(args);
}

/* The plan, and what the module's init returns. */
static int ktap_end(void)
{
	pr_info("1..%u\n", tests_run);
	return tests_failed ? -ENOTRECOVERABLE : 0;
}

#endif
