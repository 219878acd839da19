// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Tests the two echo servers of doc/recipe-epoll-server.md and the one of doc/recipe-io-uring.md,
 * which needs the device. The servers are in the directory of this program. To a client they are
 * the same; they differ in how many descriptors they need.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define IDLE_MS		400
#define WAIT_MS		10000
#define CROWD		200

/* The server under test, and its port on the loopback device. */
static uint16_t port;
static pid_t server;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void bail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* In a guest, nobody else brings up lo. */
static void loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (!ioctl(fd, SIOCGIFFLAGS, &req) && !(req.ifr_flags & IFF_UP)) {
		req.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &req))
			bail("cannot bring up lo");
	}
	close(fd);
}

static void start(const char *dir, const char *name, int idle_ms)
{
	char path[PATH_MAX], idle[16], line[32];
	FILE *out;
	int fds[2];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(idle, sizeof(idle), "%d", idle_ms);
	if (pipe2(fds, O_CLOEXEC))
		bail("pipe2()");
	server = fork();
	if (!server) {
		dup2(fds[1], STDOUT_FILENO);
		execl(path, name, "0", idle, NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	if (!fgets(line, sizeof(line), out) || sscanf(line, "port %hu", &port) != 1)
		bail(path);
	fclose(out);
}

static void stop(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static int dial(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		bail("connect()");
	return fd;
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Send @text; does it come back? */
static bool echo(int fd, const char *text)
{
	size_t len = strlen(text), got = 0;
	char buf[64];

	if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		return false;
	while (got < len && readable(fd, WAIT_MS)) {
		ssize_t n = recv(fd, buf + got, len - got, 0);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return got == len && !memcmp(buf, text, len);
}

/* Does the server close @fd, and no earlier than IDLE_MS after @since? */
static bool closed_after(int fd, int64_t since)
{
	char byte;

	return readable(fd, WAIT_MS) && !recv(fd, &byte, 1, 0) && now_ms() - since >= IDLE_MS;
}

static bool idle_is_closed(void)
{
	int64_t since = now_ms();
	int fd = dial();
	bool good = closed_after(fd, since);

	close(fd);
	return good;
}

/*
 * Send something every quarter of IDLE_MS, for two IDLE_MS together: the server must keep the
 * connection, and close it after that. If the host was so busy that a message came late, @late is
 * set; then a closed connection proves nothing.
 */
static bool active_once(bool *late)
{
	bool good = true;
	int fd = dial();
	int64_t since = now_ms();

	*late = false;
	for (int i = 0; good && i < 8; i++) {
		int64_t last = since;

		usleep(IDLE_MS * 1000 / 4);
		since = now_ms();
		good = echo(fd, "still here");
		*late |= now_ms() - last > IDLE_MS / 2;
	}
	good = good && closed_after(fd, since);
	close(fd);
	return good;
}

static bool active_stays(void)
{
	bool good, late;
	int tries = 0;

	do {
		good = active_once(&late);
	} while (!good && late && ++tries < 20);
	return good;
}

static int count_descriptors(void)
{
	char path[64];
	int n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", server);
	dir = opendir(path);
	for (n = -2; dir && readdir(dir); n++)	/* without . and .. */
		;
	if (dir)
		closedir(dir);
	return n;
}

/* How many descriptors a connection takes in a new server, in hundredths. */
static int descriptors_each(void)
{
	int fds[CROWD], before = count_descriptors(), n;

	for (int i = 0; i < CROWD; i++) {
		fds[i] = dial();
		if (!echo(fds[i], "hello"))
			return -1;
	}
	n = count_descriptors() - before;
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	return n * 100 / CROWD;
}

static void test(const char *dir, const char *name, int each)
{
	int n, fd;

	/* One that closes no connection because the host keeps this process for a while. */
	start(dir, name, 10 * WAIT_MS);
	n = descriptors_each();
	if (!ok(n == each * 100, "%s: needs %d descriptor%s a connection", name, each,
		each > 1 ? "s" : ""))
		diag("%d.%02d", n / 100, n % 100);
	fd = dial();
	ok(echo(fd, "one") && echo(fd, "two"), "%s: echoes", name);
	close(fd);
	stop();

	start(dir, name, IDLE_MS);
	ok(idle_is_closed(), "%s: closes an idle connection in time", name);
	ok(active_stays(), "%s: keeps an active one until it is idle", name);
	stop();
}

int main(int argc, char **argv)
{
	const bool device = !access("/dev/twheel", R_OK | W_OK);
	char *slash = strrchr(argv[0], '/');

	(void)argc;
	if (!slash)
		return 1;
	*slash = 0;
	plan(device ? 12 : 8);
	loopback_up();
	test(argv[0], "echo_timerfd", 2);
	test(argv[0], "echo_twheel", 1);
	if (device)
		test(argv[0], "echo_uring", 1);
	return done();
}
