// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and while the file UNWATCHED exists, the kernel has no memory to watch for the
 * end of a process: epoll_ctl() fails for its descriptor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int is_process(int fd)
{
	char name[40], what[80] = "";

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return readlink(name, what, sizeof(what) - 1) > 0 && strstr(what, "pidfd");
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int (*real)(int epfd, int op, int fd, struct epoll_event *event);
	const char *file = getenv("UNWATCHED");

	real = dlsym(RTLD_NEXT, "epoll_ctl");
	if (op == EPOLL_CTL_ADD && file && !access(file, F_OK) && is_process(fd)) {
		errno = ENOMEM;
		return -1;
	}
	return real(epfd, op, fd, event);
}
