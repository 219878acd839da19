/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Where the daemon may die: each step of the protocol, between which something is in the store
 * or in the world that was not there before. The build of the tests can die there.
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
