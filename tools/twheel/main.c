// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* twheel(1): run commands at their time, and look at the wheels of this machine. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

int exit_failure = EXIT_CANCELED;

/* twheeld, a package of its own, keeps jobs that survive: see twheel-job(1). */
static int cmd_twheeld(int argc, char **argv)
{
	(void)argc;
	argv[0] = (char *)"twheel-job";
	execvp(argv[0], argv);
	if (errno == ENOENT)
		error(1, 0, "twheel-job is not installed: it comes with twheeld");
	error(1, errno, "cannot run twheel-job");
	return 1;
}

/* One entry for each word that may follow "twheel"; help.c has the text for each. */
static const struct command {
	const char	*name;
	int		(*fn)(int argc, char **argv);
	int		failure;	/* see exit_failure */
} commands[] = {
	{ "after", cmd_job, EXIT_CANCELED },
	{ "at", cmd_job, EXIT_CANCELED },
	{ "every", cmd_job, EXIT_CANCELED },
	{ "cron", cmd_job, EXIT_CANCELED },
	{ "run", cmd_run, EXIT_CANCELED },
	{ "job", cmd_twheeld, 1 },
	{ "ls", cmd_ls, 1 },
	{ "info", cmd_info, 1 },
	{ "bench", cmd_bench, 1 },
	{ "top", cmd_top, 1 },
	{ "plot", cmd_plot, 1 },
};

void try_help(int status)
{
	fputs("Try 'twheel --help' for more information.\n", stderr);
	exit(status);
}

bool parse_count(const char *s, uint64_t least, uint64_t most, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)*s))	/* strtoull() takes blanks and a sign */
		return false;
	errno = 0;
	*n = strtoull(s, &end, 10);
	return !errno && !*end && *n >= least && *n <= most;
}

int64_t percentile(const int64_t *sorted, size_t nr, unsigned int percent)
{
	size_t rank = (nr * percent + 99) / 100;

	return sorted[rank ? rank - 1 : 0];
}

/* ---- output ------------------------------------------------------------------------ */

void write_error(int err)
{
	error(0, err, "write error");
	_exit(exit_failure);
}

void check_stdout(void)
{
	if (fflush(stdout) || ferror(stdout))
		write_error(errno);
}

/* At exit: output may still be in a buffer, and writing it may fail. */
static void close_stdout(void)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fclose(stdout) || failed)
		write_error(errno);
	if (fclose(stderr))
		_exit(exit_failure);
}

/*
 * No file that is opened later may become a standard stream. If one of the three is closed, open
 * something in its place that fails if it is used, and that commands do not inherit.
 */
static void hold_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
			_exit(exit_failure);
}

const char *plain_name(const char *name, char buf[PLAIN_MAX])
{
	char *to = buf;

	for (; *name && to - buf < PLAIN_MAX - 4; name++)
		if (*name >= ' ' && *name <= '~' && *name != '\\')
			*to++ = *name;
		else
			to += sprintf(to, "\\%03o", (unsigned char)*name);
	*to = 0;
	return buf;
}

int json_write(FILE *to, struct json_object *object)
{
	int err = 0;

	flockfile(to);
	errno = 0;
	fputs(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
						     JSON_C_TO_STRING_NOSLASHESCAPE), to);
	putc('\n', to);
	if (fflush(to) || ferror(to))
		err = errno ? errno : EIO;
	funlockfile(to);
	json_object_put(object);
	return err;
}

void json_line(struct json_object *object)
{
	int err = json_write(stdout, object);

	if (err)
		write_error(err);
}

void json_int(struct json_object *object, const char *key, int64_t value)
{
	json_object_object_add(object, key, json_object_new_int64(value));
}

void json_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, value ? json_object_new_string(value) : NULL);
}

/* ---- the words --------------------------------------------------------------------- */

/* Is @word one of two spellings? */
static bool is(const char *word, const char *a, const char *b)
{
	return !strcmp(word, a) || !strcmp(word, b);
}

int main(int argc, char **argv)
{
	hold_standard();
	/* If SIGCHLD was inherited as ignored, children would leave no status to wait for. */
	signal(SIGCHLD, SIG_DFL);
	atexit(close_stdout);
	if (argc < 2) {
		error(0, 0, "missing command");
		try_help(EXIT_CANCELED);
	}
	if (is(argv[1], "--help", "-h") || !strcmp(argv[1], "help"))
		help(argv[2]);
	if (is(argv[1], "--version", "-V")) {
		printf("twheel %d.%d.%d\n", TWHEEL_VERSION_MAJOR, TWHEEL_VERSION_MINOR,
		       TWHEEL_VERSION_PATCH);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			exit_failure = commands[i].failure;
			return commands[i].fn(argc - 1, argv + 1);
		}
	error(0, 0, "unknown command '%s'", argv[1]);
	try_help(EXIT_CANCELED);
}
