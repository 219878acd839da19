// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and the host two.test has two addresses, 127.0.0.2 and 127.0.0.1. While the file
 * that SLOW_NAMES names exists, to look it up takes 6 s, as if the first name server were dead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOW_S	6

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	int (*real)(const char *name, const char *service, const struct addrinfo *hints,
		    struct addrinfo **found) = dlsym(RTLD_NEXT, "getaddrinfo");
	const char *slow = getenv("SLOW_NAMES");
	int err;

	if (!name || strcmp(name, "two.test"))
		return real(name, service, hints, found);
	/* A signal does not make it shorter. */
	if (slow && !access(slow, F_OK))
		for (time_t end = now() + SLOW_S; now() < end;)
			usleep(50000);
	err = real("127.0.0.2", service, hints, found);
	return err ? err : real("127.0.0.1", service, hints, &(*found)->ai_next);
}
