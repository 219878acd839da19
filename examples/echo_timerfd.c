// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An echo server that closes idle connections, with a timerfd for each connection. It is the
 * "before" of doc/recipe-epoll-server.md.
 *
 *	echo_timerfd PORT IDLE_MS	PORT 0: any port; it prints which
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
#include <sys/timerfd.h>
#include <unistd.h>

struct conn;

/* What epoll reports: a descriptor, and the connection it belongs to, if any. */
struct source {
	int		fd;
	struct conn	*conn;
};

struct conn {
	struct source	socket;
	struct source	timer;
	struct conn	*next_closed;
};

static int epoll;
static uint64_t idle_ns;
static struct source listener;
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
	struct itimerspec its = { .it_value = { .tv_sec = (time_t)(idle_ns / 1000000000),
						.tv_nsec = (long)(idle_ns % 1000000000) } };

	timerfd_settime(conn->timer.fd, 0, &its, NULL);
}

static void conn_close(struct conn *conn)
{
	close(conn->socket.fd);
	close(conn->timer.fd);
	conn->socket.fd = -1;
	conn->next_closed = closed;
	closed = conn;
}

static void conn_open(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		die("calloc()");
	conn->socket = (struct source) { .fd = fd, .conn = conn };
	watch(&conn->socket);
	conn->timer = (struct source) { .conn = conn };
	conn->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (conn->timer.fd < 0)
		die("timerfd_create()");
	watch(&conn->timer);
	conn_touch(conn);
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

/* If an earlier event has re-armed the timer, there is nothing to read. */
static void conn_expire(struct conn *conn)
{
	uint64_t nr;

	if (read(conn->timer.fd, &nr, sizeof(nr)) == sizeof(nr))
		conn_close(conn);
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
	else if (conn->socket.fd >= 0 && source == &conn->timer)
		conn_expire(conn);
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
	listen_on((uint16_t)atoi(argv[1]));
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++)
			handle(events[i].data.ptr);
		free_closed();
	}
}
