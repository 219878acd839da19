// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and a call fails:
 *
 *	UNWATCHED=FILE	while FILE exists, the kernel has no memory to watch for the end of a
 *			process: epoll_ctl() fails for its descriptor
 *	UNWRITTEN=FILE	while FILE exists, the file jobs.db cannot be written, but its log can
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Does the file that the variable names exist, and is @text in the path of @fd, or its end? */
static int fails(const char *variable, int fd, const char *text, int at_end)
{
	char name[40], what[4096] = "";
	const char *file = getenv(variable), *found;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (!file || access(file, F_OK) || readlink(name, what, sizeof(what) - 1) < 0)
		return 0;
	found = strstr(what, text);
	return found && (!at_end || !strcmp(found, text));
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int (*real)(int epfd, int op, int fd, struct epoll_event *event);

	real = dlsym(RTLD_NEXT, "epoll_ctl");
	if (op == EPOLL_CTL_ADD && fails("UNWATCHED", fd, "pidfd", 0)) {
		errno = ENOMEM;
		return -1;
	}
	return real(epfd, op, fd, event);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off_t at)
{
	if (fails("UNWRITTEN", fd, "/jobs.db", 1)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, buf, n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	return pwrite64(fd, buf, n, at);
}
