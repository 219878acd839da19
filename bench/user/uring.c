// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * io_uring's timeouts, by liburing, submitted 4096 at a time. The ring leaves the work for expired
 * timeouts to the call that collects them (IORING_SETUP_DEFER_TASKRUN): that costs a quarter less
 * than to interrupt the program for each.
 *
 * To update or remove a timeout, the kernel searches the list of all of them.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "bench.h"

#define BATCH		4096
#define CQ_ENTRIES	(4 * BATCH)
#define NO_TIMER	(~0ULL)		/* the user_data of anything but a timeout */

static struct io_uring ring;
static struct __kernel_timespec times[BATCH];

/* Sleep as long as a task that waits for io_uring does, with another ring. */
void uring_nap(u64 ns)
{
	static struct io_uring own;
	struct __kernel_timespec ts = { .tv_nsec = ns };
	struct io_uring_cqe *cqe;

	if (!own.ring_fd)
		must(!io_uring_queue_init(1, &own, 0));
	io_uring_prep_timeout(io_uring_get_sqe(&own), &ts, 0, 0);
	must(io_uring_submit_and_wait(&own, 1) == 1 && !io_uring_peek_cqe(&own, &cqe));
	io_uring_cqe_seen(&own, cqe);
}

static void prepare(u32 n)
{
}

static void release(u32 n)
{
}

static const char *open_ring(u32 n)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = CQ_ENTRIES,
	};

	must(!io_uring_queue_init_params(BATCH, &ring, &params));
	return NULL;
}

static u32 close_ring(u32 n)
{
	io_uring_queue_exit(&ring);
	return n;
}

static void submit(u32 nr)
{
	must(io_uring_submit(&ring) == (int)nr);
}

static struct io_uring_sqe *next_sqe(u32 i, u64 deadline)
{
	times[i] = (struct __kernel_timespec){ .tv_sec = deadline / SEC,
					       .tv_nsec = deadline % SEC };
	return io_uring_get_sqe(&ring);
}

static u32 batch_of(u32 left)
{
	return left < BATCH ? left : BATCH;
}

static void arm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++) {
			struct io_uring_sqe *sqe = next_sqe(k, deadline[ids[i + k]]);

			io_uring_prep_timeout(sqe, &times[k], 0, IORING_TIMEOUT_ABS);
			io_uring_sqe_set_data64(sqe, ids[i + k]);
		}
		submit(k);
	}
}

/* Take the results of @nr requests about timeouts, and of @more timeouts themselves. */
static void results(u32 nr, u32 more)
{
	u32 head, done, left;
	struct io_uring_cqe *cqe;

	for (left = nr + more; left; left -= done) {
		must(!io_uring_wait_cqe(&ring, &cqe));
		done = 0;
		io_uring_for_each_cqe(&ring, head, cqe) {
			must(cqe->res == (cqe->user_data == NO_TIMER ? 0 : -ECANCELED));
			done++;
		}
		io_uring_cq_advance(&ring, done);
	}
}

static void rearm(const u32 *ids, u32 nr, const u64 *deadline)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++) {
			struct io_uring_sqe *sqe = next_sqe(k, deadline[ids[i + k]]);

			io_uring_prep_timeout_update(sqe, &times[k], ids[i + k],
						     IORING_TIMEOUT_ABS);
			io_uring_sqe_set_data64(sqe, NO_TIMER);
		}
		submit(k);
		results(k, 0);
	}
}

static void cancel(const u32 *ids, u32 nr)
{
	u32 i, k;

	for (i = 0; i < nr; i += k) {
		for (k = 0; k < batch_of(nr - i); k++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

			io_uring_prep_timeout_remove(sqe, ids[i + k], 0);
			io_uring_sqe_set_data64(sqe, NO_TIMER);
		}
		submit(k);
		results(k, k);
	}
}

static u32 collect(u32 *ids, bool wait)
{
	struct io_uring_cqe *cqe;
	u32 head, nr = 0, seen;

	if (wait)
		must(!io_uring_wait_cqe(&ring, &cqe));
	else
		io_uring_get_events(&ring);
	do {
		seen = 0;
		io_uring_for_each_cqe(&ring, head, cqe) {
			must(cqe->res == -ETIME);
			ids[nr++] = cqe->user_data;
			seen++;
		}
		io_uring_cq_advance(&ring, seen);
		if (seen)
			io_uring_get_events(&ring);
	} while (seen);
	return nr;
}

/* Multishot timeouts exist since Linux 6.4; liburing 2.3 is older. */
#ifndef IORING_TIMEOUT_MULTISHOT
#define IORING_TIMEOUT_MULTISHOT	0x40
#endif

static bool every(u32 id, u64 period)
{
	struct io_uring_sqe *sqe = next_sqe(0, period);
	struct io_uring_cqe *cqe;

	io_uring_prep_timeout(sqe, &times[0], 0, IORING_TIMEOUT_MULTISHOT);
	io_uring_sqe_set_data64(sqe, id);
	submit(1);
	return io_uring_peek_cqe(&ring, &cqe) || cqe->res != -EINVAL;
}

const struct subject uring_subject = {
	.name = "io_uring",
	.cancel_lists = 1,
	.prepare = prepare,
	.open = open_ring,
	.arm = arm,
	.rearm = rearm,
	.cancel = cancel,
	.collect = collect,
	.every = every,
	.close = close_ring,
	.release = release,
};
