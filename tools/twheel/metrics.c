// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The text format of Prometheus, see metrics.h.
 *
 * A label's value is UTF-8: each byte that is not becomes U+FFFD. A long value, as a command may
 * be, is cut off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "metrics.h"
#include "utf8.h"

#define VALUE_MAX	200		/* a longer value is cut off, after a whole character */

void metric_family(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/*
 * Print the value of a label, escaped as Prometheus wants it. Bytes that are not UTF-8 are
 * replaced.
 */
static void put_value(FILE *to, const char *value)
{
	for (const char *s = value; *s; ) {
		size_t n = utf8_length(s);

		if (s - value >= VALUE_MAX) {
			fputs("\u2026", to);
			return;
		}
		if (*s == '\n')
			fputs("\\n", to);
		else if (*s == '\\' || *s == '"')
			fprintf(to, "\\%c", *s);
		else if (n)
			fwrite(s, 1, n, to);
		else
			fputs("\ufffd", to);
		s += n ? n : 1;
	}
}

/* Print a metric's name and its labels: pairs of name and value, ended by NULL. */
static void put_name(FILE *to, const char *name, const char *const labels[])
{
	fputs(name, to);
	for (int i = 0; labels[i]; i += 2) {
		fprintf(to, "%c%s=\"", i ? ',' : '{', labels[i]);
		put_value(to, labels[i + 1]);
		putc('"', to);
	}
	fputs(labels[0] ? "} " : " ", to);
}

void metric_count(FILE *to, const char *name, const char *const labels[], uint64_t value)
{
	put_name(to, name, labels);
	fprintf(to, "%llu\n", (unsigned long long)value);
}

void metric_seconds(FILE *to, const char *name, const char *const labels[], int64_t ns)
{
	uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	put_name(to, name, labels);
	fprintf(to, "%s%llu.%09llu\n", ns < 0 ? "-" : "", (unsigned long long)value / NS_PER_S,
		(unsigned long long)value % NS_PER_S);
}

/*
 * Give the file the mode that open() would have given it. The mask can only be read by setting it,
 * and commands inherit it. So only the first call reads it, before other threads start commands.
 */
static void set_mode(int fd)
{
	static mode_t mask;
	static bool known;

	if (!known) {
		mask = umask(0);
		umask(mask);
		known = true;
	}
	fchmod(fd, 0666 & ~mask);
}

/* Create a new file; its name replaces the XXXXXX at the end of @name. */
static int write_new(char *name, print_fn print, const void *arg)
{
	int fd = mkostemp(name, O_CLOEXEC), err = 0;
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");

	if (!to)
		return errno;
	set_mode(fd);
	errno = 0;
	if (print)
		print(to, arg);
	if (ferror(to))
		err = errno ? errno : EIO;
	if (fclose(to) && !err)
		err = errno;
	return err;
}

/*
 * Is there something at @path that must not be replaced? Renaming a file to the name of a device, a
 * pipe or a link would remove that: if root did it, /dev/stdout or /dev/null of the whole machine.
 * Returns 0, or an errno.
 */
static int is_in_the_way(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : errno;
	return S_ISREG(st.st_mode) ? 0 : EEXIST;
}

int metrics_write(const char *path, print_fn print, const void *arg)
{
	int err = is_in_the_way(path);
	char *name;

	if (!err && asprintf(&name, "%s.XXXXXX", path) < 0)
		err = ENOMEM;
	if (err)
		return err;
	err = write_new(name, print, arg);
	if (!err && print && rename(name, path))
		err = errno;
	if (err || !print)
		unlink(name);
	free(name);
	return err;
}

void metrics_error(int status, const char *path, int err)
{
	if (err == EEXIST)
		error(status, 0, "cannot write '%s': it is not a regular file", path);
	else
		error(status, err, "cannot write '%s'", path);
}
