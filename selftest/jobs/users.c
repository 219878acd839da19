// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * LD_PRELOAD it, and the directory of users is one that may not answer, or a home directory:
 *
 *	GONE=FILE	while FILE exists, users cannot be looked up: that is an error
 *	SLOW=FILE	if FILE exists, it is removed, and looking up a user takes 8 s this time
 *	SLOW_DIR=DIR	while DIR/slow exists, to enter DIR takes 8 s, and so does to look at it or
 *			at a file there, or to execute that
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOW_S	8

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A signal must not make it shorter: a resolver, or a file system, goes on, too. */
static void be_slow(void)
{
	for (double end = now() + SLOW_S; now() < end;)
		usleep(50000);
}

/* @path is used: it may be the directory that does not answer, or a file there. */
static void use(const char *path)
{
	const char *slow = getenv("SLOW_DIR");
	size_t n = slow ? strlen(slow) : 0;
	char flag[4096];

	if (!slow || strncmp(path, slow, n) || (path[n] && path[n] != '/'))
		return;
	snprintf(flag, sizeof(flag), "%s/slow", slow);
	if (!access(flag, F_OK))
		be_slow();
}

int chdir(const char *path)
{
	int (*real)(const char *path) = dlsym(RTLD_NEXT, "chdir");

	use(path);
	return real(path);
}

int lstat(const char *path, struct stat *st)
{
	int (*real)(const char *path, struct stat *st) = dlsym(RTLD_NEXT, "lstat");

	use(path);
	return real(path, st);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	int (*real)(const char *file, char *const argv[], char *const envp[]) =
		dlsym(RTLD_NEXT, "execvpe");

	use(file);
	return real(file, argv, envp);
}

struct passwd *getpwnam(const char *name)
{
	struct passwd *(*real)(const char *user) = dlsym(RTLD_NEXT, "getpwnam");
	const char *gone = getenv("GONE"), *slow = getenv("SLOW");

	if (gone && !access(gone, F_OK)) {
		errno = EIO;
		return NULL;
	}
	if (slow && !unlink(slow))
		be_slow();
	return real(name);
}
