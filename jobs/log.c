// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The logs: what runs print. Each attempt has a file DAY/ID-AT.ATTEMPT, created when the attempt
 * first prints something.
 *
 * The output that a runner has sent to a daemon may be only a piece: the runner can turn to another
 * daemon, and then sends that one all of the output. So until the run is over, the piece is kept in
 * the file away/ID-AT.ATTEMPT. If the run ends elsewhere, the file stays there, and is removed when
 * the run has no history any more. If a job has "each", each of its runners sends its part of the
 * output to the daemon that it talks to: what a daemon gets of these parts is in
 * away/ID-AT.ATTEMPT.each.
 *
 * A log takes at most 1 MiB of disk: the first 64 KiB and the end. The middle is cut out as a hole
 * in the file, so that offsets stay valid for somebody who is reading it. If the file system has no
 * holes, the log keeps the first 1 MiB, and nothing after that.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "twheeld.h"

#define HEAD	(64 * 1024)
#define ALL	(1024 * 1024)
#define BLOCK	4096
#define SLACK	(16 * BLOCK)	/* cut so much at least, so that cuts are rare */
#define SAY_EACH_US	(10 * US_PER_S)

#define AWAY	"away"

static int dir = -1;

void log_setup(const char *path)
{
	mkdir(path, 0700);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		return;
	say(SAY_ERROR, "cannot open the directory '%s': %s", path, strerror(errno));
	exit(1);
}

static void day_of(const struct firing *firing, char name[24])
{
	snprintf(name, 24, "%lld", (long long)(firing->at / (86400 * US_PER_S)));
}

static void file_of(const struct firing *firing, char name[120])
{
	char day[24], shard[24] = "";

	day_of(firing, day);
	if (firing->shard)
		snprintf(shard, sizeof(shard), ".%lld", (long long)firing->shard);
	snprintf(name, 120, "%s/%lld-%lld.%lld%s", day, (long long)firing->id,
		 (long long)firing->at, (long long)firing->attempt, shard);
}

static void away_of(const struct firing *firing, bool each, char name[120])
{
	snprintf(name, 120, AWAY "/%lld-%lld.%lld%s", (long long)firing->id,
		 (long long)firing->at, (long long)firing->attempt, each ? ".each" : "");
}

/* Open the file of a log for writing, and make it with these @flags of open(2). */
static int make_file(const struct firing *firing, int flags)
{
	char name[120], day[24];
	int fd;

	file_of(firing, name);
	day_of(firing, day);
	mkdirat(dir, day, 0700);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		say(SAY_ERROR, "cannot write the log '%s': %s", name, strerror(errno));
	return fd;
}

/* If the log is too long, cut out the middle. Returns false if the file system cannot do that. */
static bool cut(struct log *log)
{
	int64_t from = log->cut ? log->cut : HEAD, to;

	if (HEAD + log->size - from <= ALL)
		return true;
	to = (log->size - (ALL - HEAD - SLACK)) / BLOCK * BLOCK;
	if (fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from))
		return false;
	log->cut = to;
	return true;
}

/* Some output is lost. That may happen to very many runs at once, so not every loss is reported. */
static void not_written(const struct firing *firing, int err)
{
	static int64_t said;
	int64_t now = now_us();
	char name[120];

	if (said && llabs(now - said) < SAY_EACH_US)
		return;
	said = now;
	file_of(firing, name);
	say(SAY_ERROR, "cannot write the log '%s': %s", name, strerror(err));
}

/* If that fails, the output is lost, and the run continues. */
void log_write(const struct firing *firing, struct log *log, const char *data, size_t size)
{
	ssize_t n;

	if (log->fd < 0 && !log->cut)
		log->fd = make_file(firing, O_TRUNC);
	log->cut = log->fd < 0 ? -1 : log->cut;
	if (log->cut < 0)
		return;
	n = pwrite(log->fd, data, size, log->size);
	if (n < (ssize_t)size)
		not_written(firing, n < 0 ? errno : ENOSPC);
	if (n > 0)
		log->size += n;
	if (!cut(log))
		log->cut = -1;
}

/* Open the file of a log that somebody else sends, and make it if there is none. */
static int open_sent(const struct firing *firing)
{
	char name[120];
	int fd;

	file_of(firing, name);
	fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	away_of(firing, firing->shards > 1, name);
	mkdirat(dir, AWAY, 0700);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		say(SAY_ERROR, "cannot write the log '%s': %s", name, strerror(errno));
	return fd;
}

int64_t log_size(const struct firing *firing)
{
	int fd = log_open(firing);
	off_t size;

	if (fd < 0)
		fd = log_open_piece(firing);
	size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	if (fd >= 0)
		close(fd);
	return size > 0 ? size : 0;
}

void log_whole(const struct firing *firing)
{
	char name[120], away[120], day[24];

	file_of(firing, name);
	day_of(firing, day);
	away_of(firing, false, away);
	mkdirat(dir, day, 0700);
	renameat(dir, away, dir, name);
}

/*
 * The file itself shows how much output there is, and where the hole ends. So nothing has to be
 * remembered between two calls, and a daemon can continue a file that another one has begun.
 */
int64_t log_append(const struct firing *firing, int64_t from, const char *data, size_t size)
{
	struct log log = { .fd = open_sent(firing) };
	int64_t known;

	if (log.fd < 0)
		return -EIO;
	log.size = lseek(log.fd, 0, SEEK_END);
	if (log.size > HEAD)
		log.cut = lseek(log.fd, HEAD, SEEK_DATA);
	known = from < 0 || from > log.size ? 0 : log.size - from;
	if (from > log.size)
		log.size = from;
	/* If no hole can be made, the log is too long already: see cut(). */
	if (known < (int64_t)size && cut(&log))
		log_write(firing, &log, data + known, size - (size_t)known);
	log_close(&log);
	return log.size;
}

void log_close(struct log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}

int log_open(const struct firing *firing)
{
	char name[120];
	int fd;

	file_of(firing, name);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		away_of(firing, true, name);
		fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

int log_open_piece(const struct firing *firing)
{
	char name[120];
	int fd;

	away_of(firing, false, name);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void log_remove(const struct firing *firing)
{
	char name[120], day[24];

	file_of(firing, name);
	day_of(firing, day);
	unlinkat(dir, name, 0);
	unlinkat(dir, day, AT_REMOVEDIR);
	for (int each = 0; each < 2; each++) {
		away_of(firing, each, name);
		unlinkat(dir, name, 0);
	}
}

/* Is @name that of a log? Then tell of which attempt. */
static bool names_attempt(const char *name, struct firing *firing)
{
	long long id, at, attempt;

	if (sscanf(name, "%lld-%lld.%lld", &id, &at, &attempt) != 3)
		return false;
	*firing = (struct firing) { .id = id, .at = at, .attempt = attempt };
	return true;
}

/**
 * struct walk - log_prune() in progress
 * @dirs:	the directory of all, or NULL if no walk is in progress
 * @files:	the one of its directories that the walk is in, or NULL
 * @name:	the name of that
 */
struct walk {
	DIR	*dirs;
	DIR	*files;
	char	name[NAME_MAX + 1];
};

static DIR *open_dir(const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? NULL : fdopendir(fd);
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
	*d = NULL;
}

/* Go on to the next directory of logs. Returns false if there is none. */
static bool next_dir(struct walk *w)
{
	struct dirent *entry;

	while (w->dirs && !w->files && (entry = readdir(w->dirs))) {
		if (strcmp(entry->d_name, AWAY) && !isdigit((unsigned char)entry->d_name[0]))
			continue;
		strcpy(w->name, entry->d_name);
		w->files = open_dir(w->name);
	}
	return w->files;
}

/* All files of a directory were looked at. A day without logs goes. */
static void leave_dir(struct walk *w)
{
	close_dir(&w->files);
	if (strcmp(w->name, AWAY))
		unlinkat(dir, w->name, AT_REMOVEDIR);
}

bool log_prune(bool (*keep)(const struct firing *firing), unsigned int nr)
{
	static struct walk walk;
	struct firing firing;

	if (!walk.dirs)
		walk.dirs = open_dir(".");
	while (nr && (walk.files || next_dir(&walk))) {
		struct dirent *entry = readdir(walk.files);

		if (!entry) {
			leave_dir(&walk);
		} else if (names_attempt(entry->d_name, &firing)) {
			nr--;
			if (!keep(&firing))
				unlinkat(dirfd(walk.files), entry->d_name, 0);
		}
	}
	if (!walk.files)
		close_dir(&walk.dirs);
	return walk.dirs;
}

/* Remove the files of a day, and then the day. */
static void clear_day(const char *day)
{
	DIR *files = open_dir(day);
	struct dirent *entry;

	while (files && (entry = readdir(files)))
		unlinkat(dirfd(files), entry->d_name, 0);
	close_dir(&files);
	unlinkat(dir, day, AT_REMOVEDIR);
}

void log_clear(void)
{
	DIR *days = open_dir(".");
	struct dirent *entry;

	while (days && (entry = readdir(days)))
		if (isdigit((unsigned char)entry->d_name[0]))
			clear_day(entry->d_name);
	close_dir(&days);
}
