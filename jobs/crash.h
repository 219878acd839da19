/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The steps at which tests let the daemon die. Between one step and the next, something changes in
 * the store or outside the daemon. Only the build for the tests has these steps.
 */
#ifndef JOBS_CRASH_H
#define JOBS_CRASH_H

#ifdef TWHEELD_CRASH
void crash_point(const char *name);
#else
static inline void crash_point(const char *name)
{
	(void)name;
}
#endif

#endif
