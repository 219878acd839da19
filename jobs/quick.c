// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Which programs may a child of vfork() begin?
 *
 * Until it calls exec, such a child shares the memory of the daemon, and the daemon waits for it.
 * If the file system of the program does not answer, for example because it is on a server that is
 * away, the daemon would wait as long. So a program is begun in this way only if its start is
 * known to need no file systems but those without which nothing works anyway: those of the root, of
 * /bin, and of the state. To find that out, one must ask the file systems, which may not answer. So
 * a child of fork() does that, the first time that the program is begun.
 *
 * The daemon remembers the answer until it ends. So only programs count that nobody but root can
 * change: the program, and each directory and link that leads to it, belong to root, and only root
 * may write to them. This also keeps others from taking a lease (fcntl) of the file, for which exec
 * would wait. A script is not begun in this way, since its interpreter may be anything. At most
 * PROGRAMS_MAX programs are remembered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twheeld.h"

#define HOME_MS		1000
#define PROGRAMS_MAX	1000
#define NR_ANSWERS	1024
#define LINKS_MAX	10	/* how many symbolic links in a path are followed */

/**
 * struct program - a program that is known
 * @in_all:	its place among all such programs
 * @name:	its name, as the definition of a job has it
 */
struct program {
	UT_hash_handle	in_all;
	char		name[];
};

static dev_t needed[3];		/* the file systems without which nothing works */
static bool home_is_needed;
static struct program *programs;
/*
 * Shared with the children. If the answer to a question is yes, the child writes the number of the
 * question to place number % NR_ANSWERS. If another child has the same place, the first answer is
 * lost, and the question comes again.
 */
static uint64_t *answers;
static char *asked[NR_ANSWERS];	/* what the newest question of each place is about */
static uint64_t nr_asked;

/* Is the file on one of the needed file systems? And, if @roots, can only root change it? */
static bool is_good(const struct stat *it, bool roots)
{
	if (roots && (it->st_uid || (!S_ISLNK(it->st_mode) && it->st_mode & 0022)))
		return false;
	return it->st_dev == needed[0] || it->st_dev == needed[1] || it->st_dev == needed[2];
}

/*
 * @path is a symbolic link, and @rest is what follows it in the path of a program. Returns the path
 * with the link replaced by its target, which the caller frees; NULL if the link cannot be read.
 */
static char *without_link(const char *path, const char *rest)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	if (n <= 0)
		return NULL;
	to[n] = 0;
	return format("%.*s%s%s", *to == '/' ? 0 : (int)(strrchr(path, '/') + 1 - path), path, to,
		      rest);
}

/*
 * Does is_good() hold for the file @path, and for each directory and link on the way to it? If the
 * way ends before the file, it must hold as far as the way goes: then, with @roots, only root can
 * make the rest.
 */
static bool way_is_good(const char *path, bool roots, int links)
{
	char part[PATH_MAX], *real;
	size_t n = 0, all = strlen(path);
	struct stat it;
	bool good;

	if (path[0] != '/' || all >= sizeof(part))
		return false;
	do {
		n += 1 + strcspn(path + n + 1, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (lstat(part, &it))
			return errno == ENOENT || errno == ENOTDIR;
		if (!is_good(&it, roots))
			return false;
	} while (n < all && !S_ISLNK(it.st_mode));
	if (!S_ISLNK(it.st_mode))
		return true;
	real = links ? without_link(part, path + n) : NULL;
	good = real && way_is_good(real, roots, links - 1);
	free(real);
	return good;
}

static bool is_roots(const char *path)
{
	return way_is_good(path, true, LINKS_MAX);
}

/*
 * Find out whether the home directory is on a needed file system. If its file system does not
 * answer, this process must not wait for it, nor for a child that waits. So a process asks whose
 * parent has ended, and it has a second.
 */
static bool ask_home(void)
{
	struct pollfd answer = { .events = POLLIN };
	const char *home = getenv("HOME");
	int fds[2];
	char yes = 0;
	pid_t pid;

	if (!home)
		return true;
	if (pipe2(fds, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		if (!fork()) {
			alarm(HOME_MS / 1000 + 1);
			yes = way_is_good(home, false, LINKS_MAX);
			if (write(fds[1], &yes, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(fds[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	answer.fd = fds[0];
	if (poll(&answer, 1, HOME_MS) != 1 || read(fds[0], &yes, 1) != 1)
		yes = 0;
	close(fds[0]);
	return yes;
}

void quick_setup(const char *state)
{
	const char *const paths[] = { "/", "/bin", state };
	struct stat it;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		needed[i] = stat(paths[i], &it) ? needed[0] : it.st_dev;
	home_is_needed = ask_home();
	answers = mmap(NULL, NR_ANSWERS * sizeof(*answers), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED)
		abort();
}

bool quick_may(const char *name)
{
	const struct program *program;

	HASH_FIND(in_all, programs, name, strlen(name), program);
	return program;
}

uint64_t quick_ask(const char *name)
{
	char **place;

	if (!home_is_needed)
		return 0;
	place = &asked[++nr_asked % NR_ANSWERS];
	free(*place);
	*place = format("%s", name);
	return nr_asked;
}

/* ---- in the child ------------------------------------------------------------------- */

/*
 * Is the file no script? A script needs its interpreter, which may be a script again. O_NONBLOCK
 * keeps open() from waiting for the writer of a FIFO, or for the task that has a lease of the file.
 */
static bool is_program(const char *path)
{
	char first[2];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = read(fd, first, sizeof(first));

	close(fd);
	return n == sizeof(first) && memcmp(first, "#!", sizeof(first));
}

/* exec looks for the program in one directory after the other: only root may change any of them. */
static bool found_at_roots(const char *name)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	if (!dirs)
		dirs = "/bin:/usr/bin";		/* the default of execvp() */
	for (size_t n; *dirs; dirs += n + (dirs[n] == ':')) {
		n = strcspn(dirs, ":");
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs, name) >=
		    (int)sizeof(path) || !n || !is_roots(path))
			return false;
		if (!access(path, X_OK))
			return is_program(path);
	}
	return false;
}

void quick_answer(uint64_t nr)
{
	const char *name = asked[nr % NR_ANSWERS];
	bool yes = strchr(name, '/') ? is_roots(name) && is_program(name) :
				       found_at_roots(name);

	if (yes)
		__atomic_store_n(&answers[nr % NR_ANSWERS], nr, __ATOMIC_RELAXED);
}

/* ---- its answer --------------------------------------------------------------------- */

/* Is question @nr still the newest of its place, and is its answer yes? */
static bool is_answered(uint64_t nr)
{
	return nr_asked - nr < NR_ANSWERS &&
	       __atomic_load_n(&answers[nr % NR_ANSWERS], __ATOMIC_RELAXED) == nr;
}

void quick_learn(uint64_t nr)
{
	struct program *program;
	const char *name = asked[nr % NR_ANSWERS];

	if (!is_answered(nr) || quick_may(name) || HASH_CNT(in_all, programs) >= PROGRAMS_MAX)
		return;
	program = malloc(sizeof(*program) + strlen(name) + 1);
	if (!program)
		abort();
	strcpy(program->name, name);
	HASH_ADD_KEYPTR(in_all, programs, program->name, strlen(name), program);
}
