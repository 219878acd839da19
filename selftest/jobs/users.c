// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and the directory of users is one that may not answer:
 *
 *	GONE=FILE	while FILE exists, users cannot be looked up: that is an error
 *	SLOW=FILE	if FILE exists, it is removed, and looking up a user takes 8 s this time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOW_S	8

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct passwd *getpwnam(const char *name)
{
	struct passwd *(*real)(const char *user) = dlsym(RTLD_NEXT, "getpwnam");
	const char *gone = getenv("GONE"), *slow = getenv("SLOW");

	if (gone && !access(gone, F_OK)) {
		errno = EIO;
		return NULL;
	}
	/* A signal must not make it shorter: a resolver goes on, too. */
	if (slow && !unlink(slow))
		for (double end = now() + SLOW_S; now() < end;)
			usleep(50000);
	return real(name);
}
