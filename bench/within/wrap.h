/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* Calls that go to the program: the linker's --wrap, see run.sh. */
#ifndef WRAP_H
#define WRAP_H

#include <sys/timerfd.h>
#include <time.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its,
			   struct itimerspec *old);

#endif
