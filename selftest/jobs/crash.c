// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * In the build of the daemon for tests: it dies at the step that it is told, and the power can fail
 * too.
 *
 *	TWHEELD_CRASH=N		send itself SIGKILL at step N, counted from the start
 *	TWHEELD_CRASH=NAME	at the first step of that name
 *	TWHEELD_SLOW=US		beginning a process takes so many us longer
 *	TWHEELD_LOSSY=SEED	files of SQLite then lose what was not synced: for each sector of
 *				512 bytes, chance decides whether it had reached the disk
 *	TWHEELD_FULL=FILE	with LOSSY: as long as FILE exists, the disk is full
 *	TWHEELD_HOLES=no	the file system has no holes
 *
 * With LOSSY, each write and each sync of SQLite is a step too. What is written stays in memory
 * until it is synced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sqlite3.h>

#include "crash.h"

/* Instead of that of the C library, which only log.c uses. */
int fallocate(int fd, int mode, off_t from, off_t size)
{
	if (!getenv("TWHEELD_HOLES"))
		return (int)syscall(SYS_fallocate, fd, mode, from, size);
	errno = EOPNOTSUPP;
	return -1;
}

#define SECTOR	512

/**
 * struct lossy - an open file
 * @base:	what SQLite sees
 * @next:	the next in the list of all files
 * @fd:		the file on disk
 * @data:	the contents as readers see them
 * @size:	the size of the contents
 * @room:	the size of the memory for them
 * @dirty:	a flag for each sector that is not synced
 */
struct lossy {
	sqlite3_file	base;
	struct lossy	*next;
	int		fd;
	char		*data;
	sqlite3_int64	size;
	sqlite3_int64	room;
	char		*dirty;
};

static sqlite3_vfs lossy_vfs;
static struct lossy *files;
static unsigned int seed;

static void lose_power(void)
{
	for (struct lossy *f = files; f; f = f->next) {
		for (sqlite3_int64 at = 0; at < f->size; at += SECTOR) {
			size_t n = f->size - at < SECTOR ? (size_t)(f->size - at) : SECTOR;

			if (f->dirty[at / SECTOR] && rand_r(&seed) % 2 &&
			    pwrite(f->fd, f->data + at, n, at) < 0)
				abort();
		}
	}
}

void crash_point(const char *name)
{
	static const char *at;
	static long left, slow;
	static int known;

	if (!known) {
		slow = getenv("TWHEELD_SLOW") ? atol(getenv("TWHEELD_SLOW")) : 0;
		at = getenv("TWHEELD_CRASH");
		left = at ? atol(at) : 0;
		known = 1;
	}
	if (slow && !strcmp(name, "a process began"))
		usleep((useconds_t)slow);
	if (!at || (left ? --left : strcmp(name, at)))
		return;
	dprintf(STDERR_FILENO, "crash: %s\n", name);
	lose_power();
	kill(getpid(), SIGKILL);
}

static void grow(struct lossy *f, sqlite3_int64 size)
{
	sqlite3_int64 room = f->room ? f->room : 1 << 20;

	while (room < size)
		room *= 2;
	if (room > f->room) {
		f->data = realloc(f->data, (size_t)room);
		f->dirty = realloc(f->dirty, (size_t)(room / SECTOR));
		memset(f->data + f->room, 0, (size_t)(room - f->room));
		memset(f->dirty + f->room / SECTOR, 0, (size_t)((room - f->room) / SECTOR));
		f->room = room;
	}
	if (size > f->size)
		f->size = size;
}

static int lossy_close(sqlite3_file *file)
{
	struct lossy *f = (struct lossy *)file, **p = &files;

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	close(f->fd);
	free(f->data);
	free(f->dirty);
	return SQLITE_OK;
}

static int lossy_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
	struct lossy *f = (struct lossy *)file;
	sqlite3_int64 have = at < f->size ? f->size - at : 0;

	have = have < n ? have : n;
	memcpy(to, f->data + at, (size_t)have);
	memset((char *)to + have, 0, (size_t)(n - have));
	return have < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int lossy_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
	struct lossy *f = (struct lossy *)file;

	crash_point("a write");
	if (getenv("TWHEELD_FULL") && !access(getenv("TWHEELD_FULL"), F_OK))
		return SQLITE_FULL;
	grow(f, at + n);
	memcpy(f->data + at, from, (size_t)n);
	memset(f->dirty + at / SECTOR, 1, (size_t)((at + n - 1) / SECTOR - at / SECTOR + 1));
	return SQLITE_OK;
}

static int lossy_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct lossy *f = (struct lossy *)file;

	f->size = size;
	memset(f->data + size, 0, (size_t)(f->room - size));
	return ftruncate(f->fd, size) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int lossy_sync(sqlite3_file *file, int flags)
{
	struct lossy *f = (struct lossy *)file;

	(void)flags;
	crash_point("a sync");
	for (sqlite3_int64 at = 0; at < f->size; at += SECTOR) {
		size_t n = f->size - at < SECTOR ? (size_t)(f->size - at) : SECTOR;

		if (f->dirty[at / SECTOR] && pwrite(f->fd, f->data + at, n, at) != (ssize_t)n)
			return SQLITE_IOERR_FSYNC;
		f->dirty[at / SECTOR] = 0;
	}
	return SQLITE_OK;
}

static int lossy_size(sqlite3_file *file, sqlite3_int64 *size)
{
	*size = ((struct lossy *)file)->size;
	return SQLITE_OK;
}

static int lossy_lock(sqlite3_file *file, int how)
{
	(void)file;
	(void)how;
	return SQLITE_OK;
}

static int lossy_reserved(sqlite3_file *file, int *is)
{
	(void)file;
	*is = 0;
	return SQLITE_OK;
}

static int lossy_control(sqlite3_file *file, int op, void *arg)
{
	(void)file;
	(void)op;
	(void)arg;
	return SQLITE_NOTFOUND;
}

static int lossy_sector(sqlite3_file *file)
{
	(void)file;
	return SECTOR;
}

static int lossy_device(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = lossy_close,
	.xRead = lossy_read,
	.xWrite = lossy_write,
	.xTruncate = lossy_truncate,
	.xSync = lossy_sync,
	.xFileSize = lossy_size,
	.xLock = lossy_lock,
	.xUnlock = lossy_lock,
	.xCheckReservedLock = lossy_reserved,
	.xFileControl = lossy_control,
	.xSectorSize = lossy_sector,
	.xDeviceCharacteristics = lossy_device,
};

static int lossy_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct lossy *f = (struct lossy *)file;
	sqlite3_int64 size;

	(void)vfs;
	memset(f, 0, sizeof(*f));
	f->fd = open(name, O_RDWR | O_CLOEXEC | (flags & SQLITE_OPEN_CREATE ? O_CREAT : 0), 0600);
	if (f->fd < 0)
		return SQLITE_CANTOPEN;
	size = lseek(f->fd, 0, SEEK_END);
	grow(f, size ? size : 1);
	f->size = size;
	if (pread(f->fd, f->data, (size_t)size, 0) != size)
		return SQLITE_IOERR_READ;
	f->base.pMethods = &methods;
	f->next = files;
	files = f;
	if (out)
		*out = flags;
	return SQLITE_OK;
}

__attribute__((constructor))
static void lossy_begin(void)
{
	sqlite3_vfs *unix_vfs;

	if (!getenv("TWHEELD_LOSSY"))
		return;
	seed = (unsigned int)atoi(getenv("TWHEELD_LOSSY"));
	unix_vfs = sqlite3_vfs_find(NULL);
	lossy_vfs = *unix_vfs;
	lossy_vfs.zName = "lossy";
	lossy_vfs.szOsFile = sizeof(struct lossy);
	lossy_vfs.xOpen = lossy_open;
	sqlite3_vfs_register(&lossy_vfs, 1);
}
