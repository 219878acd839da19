// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What jobs run in tests: it writes a line for the judge when it begins.
 *
 *	mark FILE [MS [STATUS]]
 *
 * With MS it takes that long, writes another line when it ends, and ends with STATUS. It is linked
 * statically, so that libfaketime, under which a daemon may run, does not change its clock.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/*
 * Append the line by one call of write(), so that those of several runs do not mix. On a serial
 * line, wait until it has left the machine, whose power may fail.
 */
static void line(int fd, const char *end)
{
	struct timespec now;
	char text[512];
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	n = snprintf(text, sizeof(text), "%s %s %s %lld%09ld%s\n", getenv("TWHEEL_JOB"),
		     getenv("TWHEEL_KEY"), getenv("TWHEEL_ATTEMPT"), (long long)now.tv_sec,
		     now.tv_nsec, end);
	if (write(fd, text, (size_t)n) != n)
		exit(120);
	tcdrain(fd);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;

	if (fd < 0)
		return 120;
	line(fd, "");
	if (argc < 3)
		return 0;
	usleep((useconds_t)atoi(argv[2]) * 1000);
	line(fd, " end");
	return argc > 3 ? atoi(argv[3]) : 0;
}
