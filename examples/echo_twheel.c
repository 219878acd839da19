// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An echo server that closes idle connections, with one wheel for all connections. It may close a
 * connection later by a tenth of the idle time, so that timers share wake-ups. It is the "after" of
 * doc/recipe-epoll-server.md.
 *
 *	echo_twheel PORT IDLE_MS	PORT 0: any port; it prints which
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libtwheel.h"

struct conn;

/* What epoll reports: a descriptor, and the connection it belongs to, if any. */
struct source {
	int		fd;
	struct conn	*conn;
};

struct conn {
	struct source	socket;
	uint64_t	timer;
	struct conn	*next_closed;
};

static int epoll;
static uint64_t idle_ns;
static struct source listener, timers;
static struct twheel *wheel;
static struct conn *closed;	/* freed when no event can point to them any more */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void watch(struct source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event))
		die("epoll_ctl()");
}

static void conn_touch(struct conn *conn)
{
	twheel_mod_within(wheel, conn->timer, idle_ns, 0, idle_ns / 10, TWHEEL_F_KEEP);
}

static void conn_close(struct conn *conn)
{
	close(conn->socket.fd);
	twheel_cancel(wheel, conn->timer, NULL);
	conn->socket.fd = -1;
	conn->next_closed = closed;
	closed = conn;
}

static void conn_open(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int err;

	if (!conn)
		die("calloc()");
	conn->socket = (struct source) { .fd = fd, .conn = conn };
	watch(&conn->socket);
	err = twheel_add_within(wheel, &conn->timer, (uintptr_t)conn, idle_ns, 0, idle_ns / 10,
				TWHEEL_F_KEEP);
	if (err) {
		errno = -err;
		die("twheel_add_within()");
	}
}

static void conn_read(struct conn *conn)
{
	char buf[4096];
	ssize_t n = recv(conn->socket.fd, buf, sizeof(buf), 0);

	if (n <= 0 || send(conn->socket.fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
		conn_close(conn);
	else
		conn_touch(conn);
}

/* A connection that was closed or touched has no event: cancelling and re-arming drop it. */
static void close_idle(void)
{
	struct twheel_event events[64];
	int n;

	while ((n = twheel_read(wheel, events, 64, 0)) > 0)
		for (int i = 0; i < n; i++)
			conn_close((struct conn *)(uintptr_t)events[i].user_data);
}

static void accept_one(void)
{
	int fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		conn_open(fd);
}

/* If an earlier event has closed the connection, it is still in memory, and its socket is -1. */
static void handle(struct source *source)
{
	struct conn *conn = source->conn;

	if (source == &listener)
		accept_one();
	else if (source == &timers)
		close_idle();
	else if (conn->socket.fd >= 0)
		conn_read(conn);
}

static void free_closed(void)
{
	while (closed) {
		struct conn *conn = closed;

		closed = conn->next_closed;
		free(conn);
	}
}

static void listen_on(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener.fd < 0 || bind(listener.fd, (struct sockaddr *)&addr, len) ||
	    listen(listener.fd, 1024) ||
	    getsockname(listener.fd, (struct sockaddr *)&addr, &len))
		die("listen()");
	watch(&listener);
	printf("port %u\n", ntohs(addr.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "Usage: %s PORT IDLE_MS\n", argv[0]);
		return 1;
	}
	idle_ns = strtoull(argv[2], NULL, 10) * 1000000;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (twheel_open(&wheel, 0, NULL))
		die("twheel_open()");
	timers.fd = twheel_fd(wheel);
	watch(&timers);
	listen_on((uint16_t)atoi(argv[1]));
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++)
			handle(events[i].data.ptr);
		free_closed();
	}
}
