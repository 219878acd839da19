// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * libtwheel beside io_uring: the ring reads the input and polls the wheel. Both are one-shot
 * requests, which are repeated when they have completed. See alarms.h.
 *
 * A program that insists on /dev/twheel can let the ring read the events too, as from any file; the
 * events of the embedded backend must be read with twheel_read().
 */
#include <liburing.h>
#include <poll.h>

#include "alarms.h"

enum { INPUT = 1, WHEEL };

static struct io_uring ring;

static void read_input(struct alarms *a)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_read(sqe, STDIN_FILENO, a->line + a->len,
			   (unsigned int)(LINE_ROOM - a->len), (__u64)-1);
	io_uring_sqe_set_data(sqe, (void *)INPUT);
}

static void poll_wheel(const struct alarms *a)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_poll_add(sqe, twheel_fd(a->wheel), POLLIN);
	io_uring_sqe_set_data(sqe, (void *)WHEEL);
}

static void handle(struct alarms *a, const struct io_uring_cqe *cqe)
{
	if (io_uring_cqe_get_data(cqe) == (void *)WHEEL) {
		alarms_ring(a);
		poll_wheel(a);
		return;
	}
	alarms_got(a, cqe->res > 0 ? (size_t)cqe->res : 0);
	if (!a->at_end)
		read_input(a);
}

int main(void)
{
	struct alarms a = { 0 };
	int err = io_uring_queue_init(8, &ring, 0);

	if (err)
		die("io_uring_queue_init()", err);
	alarms_open(&a);
	read_input(&a);
	poll_wheel(&a);
	while (!alarms_over(&a)) {
		struct io_uring_cqe *cqe;

		io_uring_submit_and_wait(&ring, 1);
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			handle(&a, cqe);
			io_uring_cqe_seen(&ring, cqe);
		}
	}
	io_uring_queue_exit(&ring);	/* gives up the poll */
	twheel_close(a.wheel);
	return 0;
}
