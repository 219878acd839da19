// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * An echo server that closes idle connections, all in io_uring: the same io_uring_enter() arms its
 * timers and reads its sockets. See doc/recipe-io-uring.md.
 *
 *	echo_uring PORT IDLE_MS		PORT 0: any port; it prints which
 *
 * A round of a connection is a chain of linked requests: send back what came, re-arm the timer,
 * receive the next bytes. A READ_MULTISHOT reads the events; before Linux 6.7 each batch takes a
 * READ of its own. So once the server runs, io_uring_enter() is its only system call, except at the
 * end of a connection.
 *
 * It needs /dev/twheel: the descriptor of libtwheel's embedded backend takes no commands.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/twheel.h>

#define ENTRIES		256
#define READ_MULTISHOT	49	/* IORING_OP_READ_MULTISHOT, which liburing 2.3 does not know */
#define GROUP		1	/* of buffers for events */
#define BUFFERS		8
#define EVENTS		64	/* in a buffer */

/*
 * Which kind of request has completed: the low three bits of its user data. Above them is the
 * connection, if any: memory from calloc() is aligned to at least 8 bytes.
 */
enum { ACCEPTED, EXPIRED, GIVEN, SENT, ARMED, RECEIVED, ENDED, KINDS };

struct conn {
	char			buf[4096];
	struct twheel_op	op;	/* belongs to the kernel until it has completed */
	int			fd;
};

static struct io_uring ring;
static struct twheel_event events[BUFFERS][EVENTS];
static uint64_t idle_ns;
static int listener, wheel;
static bool multishot;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Make room for a chain of @nr requests: if a submit came in its middle, it would be two chains. */
static void make_room(unsigned int nr)
{
	if (io_uring_sq_space_left(&ring) < nr)
		io_uring_submit(&ring);
}

static struct io_uring_sqe *next_sqe(void)
{
	make_room(1);
	return io_uring_get_sqe(&ring);
}

static void label(struct io_uring_sqe *sqe, unsigned int kind, const struct conn *conn)
{
	io_uring_sqe_set_data64(sqe, (uintptr_t)conn | kind);
}

/* ---- the wheel ------------------------------------------------------------ */

/* Queue conn->op as a request. */
static struct io_uring_sqe *prep_op(struct conn *conn, unsigned int kind)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, wheel, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_URING_SUBMIT;
	*(struct twheel_uring *)sqe->cmd = (struct twheel_uring) {
		.ops = (uintptr_t)&conn->op, .nr = 1, .op_size = sizeof(conn->op) };
	label(sqe, kind, conn);
	return sqe;
}

/* Arm the timer of @conn; the first time, add it. */
static struct io_uring_sqe *prep_arm(struct conn *conn)
{
	uint64_t handle = conn->op.handle;

	conn->op = (struct twheel_op) { .op = handle ? TWHEEL_OP_MOD : TWHEEL_OP_ADD,
		.handle = handle, .user_data = handle ? 0 : (uintptr_t)conn,
		.flags = TWHEEL_F_KEEP, .expires_ns = idle_ns };
	return prep_op(conn, ARMED);
}

static void give_buffers(int first, int nr)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_provide_buffers(sqe, events[first], sizeof(events[0]), nr, GROUP, first);
	label(sqe, GIVEN, NULL);
}

static void read_events(void)
{
	struct io_uring_sqe *sqe = next_sqe();

	if (multishot) {
		io_uring_prep_rw(READ_MULTISHOT, sqe, wheel, NULL, 0, (__u64)-1);
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = GROUP;
	} else {
		io_uring_prep_read(sqe, wheel, events[0], sizeof(events[0]), (__u64)-1);
	}
	label(sqe, EXPIRED, NULL);
}

static void start_reading(void)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&ring);

	multishot = probe && probe->last_op >= READ_MULTISHOT &&
		    io_uring_opcode_supported(probe, READ_MULTISHOT);
	io_uring_free_probe(probe);
	if (multishot)
		give_buffers(0, BUFFERS);
	read_events();
}

/*
 * Shut down the connections whose timers have expired. None has been freed: a connection is freed
 * when the cancel of its timer completes, and all its events complete before that.
 */
static void expired(const struct io_uring_cqe *cqe)
{
	int buffer = multishot ? (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) : 0;
	int n = cqe->res / (int)sizeof(events[0][0]);

	if (cqe->res < 0 && cqe->res != -ENOBUFS) {
		errno = -cqe->res;
		die("reading events");
	}
	for (int i = 0; i < n; i++) {
		const struct conn *conn = (void *)(uintptr_t)events[buffer][i].user_data;

		shutdown(conn->fd, SHUT_RDWR);		/* then the receive ends with 0 bytes */
	}
	if (multishot && cqe->res > 0)
		give_buffers(buffer, 1);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		read_events();
}

/* ---- connections ------------------------------------------------------------ */

/* Re-arm the timer and receive the next bytes, linked: the receive begins after the re-arm. */
static void conn_wait(struct conn *conn)
{
	struct io_uring_sqe *sqe = prep_arm(conn);

	sqe->flags |= IOSQE_IO_LINK;
	sqe = next_sqe();
	io_uring_prep_recv(sqe, conn->fd, conn->buf, sizeof(conn->buf), 0);
	label(sqe, RECEIVED, conn);
}

static void conn_open(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		die("calloc()");
	conn->fd = fd;
	make_room(2);
	conn_wait(conn);
}

/* Cancel the timer. After this has completed, no event of it will come. */
static void conn_close(struct conn *conn)
{
	conn->op = (struct twheel_op) { .op = TWHEEL_OP_CANCEL, .handle = conn->op.handle };
	prep_op(conn, ENDED);
}

/* The end of a chain: no other request of this connection is under way. */
static void received(struct conn *conn, int n)
{
	struct io_uring_sqe *sqe;

	if (n <= 0) {
		conn_close(conn);
		return;
	}
	make_room(3);
	sqe = next_sqe();
	io_uring_prep_send(sqe, conn->fd, conn->buf, (size_t)n, MSG_NOSIGNAL | MSG_WAITALL);
	sqe->flags |= IOSQE_IO_LINK;
	label(sqe, SENT, conn);
	conn_wait(conn);
}

/* If the operation has failed, its res says so. Then end the connection as if it were idle. */
static void armed(struct conn *conn)
{
	if (conn->op.res < 0)
		shutdown(conn->fd, SHUT_RDWR);
}

static void ended(struct conn *conn)
{
	close(conn->fd);
	free(conn);
}

static void accept_one(void)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
	label(sqe, ACCEPTED, NULL);
}

static void handle(const struct io_uring_cqe *cqe)
{
	struct conn *conn = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)KINDS);

	switch (cqe->user_data & KINDS) {
	case ACCEPTED:
		if (cqe->res >= 0)
			conn_open(cqe->res);
		accept_one();
		break;
	case EXPIRED:
		expired(cqe);
		break;
	case ARMED:
		armed(conn);
		break;
	case RECEIVED:
		received(conn, cqe->res);
		break;
	case ENDED:
		ended(conn);
		break;
	}
}

static void listen_on(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) ||
	    listen(listener, 1024) || getsockname(listener, (struct sockaddr *)&addr, &len))
		die("listen()");
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
	wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (wheel < 0)
		die("/dev/twheel");
	errno = -io_uring_queue_init(ENTRIES, &ring, 0);
	if (errno)
		die("io_uring_queue_init()");
	listen_on((uint16_t)atoi(argv[1]));
	start_reading();
	accept_one();
	for (;;) {
		struct io_uring_cqe *cqe;

		io_uring_submit_and_wait(&ring, 1);
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			struct io_uring_cqe got = *cqe;

			io_uring_cqe_seen(&ring, cqe);
			handle(&got);
		}
	}
}
