/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A ring of io_uring, made with its system calls: Debian has no liburing for 32-bit programs. One
 * task fills it. Requests go to the kernel in ring_enter(), unless the kernel takes them itself
 * (IORING_SETUP_SQPOLL).
 */
#ifndef RING_H
#define RING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uapi.h"

/**
 * struct ring - a ring
 * @fd:		the descriptor of the ring
 * @p:		its parameters, and where its parts are in memory
 * @rings:	the memory of both queues, shared with the kernel
 * @sqes:	the memory of the requests
 * @unsent:	requests that were filled in since the last ring_enter()
 */
struct ring {
	int			fd;
	struct io_uring_params	p;
	char			*rings;
	struct io_uring_sqe	*sqes;
	u32			unsent;
};

static inline size_t ring_rings_size(const struct ring *r)
{
	size_t sq = r->p.sq_off.array + r->p.sq_entries * sizeof(u32);
	size_t cq = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);

	return sq > cq ? sq : cq;
}

/* Since Linux 5.4 both queues are in one mapping. */
static inline void ring_open(struct ring *r, u32 entries, u32 flags)
{
	*r = (struct ring){ .p.flags = flags };
	r->fd = (int)syscall(__NR_io_uring_setup, entries, &r->p);
	if (r->fd < 0)
		bail("io_uring_setup");
	r->rings = mmap(NULL, ring_rings_size(r), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE,
		       MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (r->rings == MAP_FAILED || (void *)r->sqes == MAP_FAILED)
		bail("mmap of a ring");
}

static inline void ring_close(struct ring *r)
{
	munmap(r->sqes, r->p.sq_entries * sizeof(*r->sqes));
	munmap(r->rings, ring_rings_size(r));
	close(r->fd);
}

static inline u32 *ring_at(const struct ring *r, u32 offset)
{
	return (u32 *)(r->rings + offset);
}

/* The next request, all zero. The caller makes sure that there is room. */
static inline struct io_uring_sqe *ring_sqe(struct ring *r, __u8 opcode, int fd, u64 user_data)
{
	u32 at = (*ring_at(r, r->p.sq_off.tail) + r->unsent) & (r->p.sq_entries - 1);
	struct io_uring_sqe *sqe = &r->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->user_data = user_data;
	ring_at(r, r->p.sq_off.array)[at] = at;
	r->unsent++;
	return sqe;
}

/* Fill in a request for a command of /dev/twheel. */
static inline struct twheel_uring *ring_command(struct io_uring_sqe *sqe, u32 cmd_op,
						const struct twheel_op *ops, u32 nr)
{
	struct twheel_uring *cmd = (void *)sqe->cmd;

	sqe->cmd_op = cmd_op;
	*cmd = (struct twheel_uring){
		.ops = (uintptr_t)ops, .nr = nr, .op_size = sizeof(*ops) };
	return cmd;
}

/* Submit what was filled in, and wait for @wait completions. */
static inline int ring_enter(struct ring *r, u32 wait)
{
	u32 *tail = ring_at(r, r->p.sq_off.tail), *flags = ring_at(r, r->p.sq_off.flags);
	u32 nr = r->unsent, how = wait ? IORING_ENTER_GETEVENTS : 0;
	int rc;

	__atomic_store_n(tail, *tail + nr, __ATOMIC_SEQ_CST);
	r->unsent = 0;
	if ((r->p.flags & IORING_SETUP_SQPOLL) &&
	    (__atomic_load_n(flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP))
		how |= IORING_ENTER_SQ_WAKEUP;
	rc = (int)syscall(__NR_io_uring_enter, r->fd, nr, wait, how, NULL, 0);
	return rc < 0 ? -errno : rc;
}

/* The next completion, or NULL if there is none. */
static inline bool ring_peek(struct ring *r, struct io_uring_cqe *cqe)
{
	u32 *head = ring_at(r, r->p.cq_off.head), *tail = ring_at(r, r->p.cq_off.tail);
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);

	if (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		return false;
	*cqe = cqes[*head & (r->p.cq_entries - 1)];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

/* The next completion, if one comes within @ms; else NULL. */
static inline bool ring_wait(struct ring *r, struct io_uring_cqe *cqe, int ms)
{
	u64 end = now_ns(CLOCK_MONOTONIC) + (u64)ms * MS;
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	while (!ring_peek(r, cqe)) {
		if (now_ns(CLOCK_MONOTONIC) >= end)
			return false;
		poll(&p, 1, ms);
	}
	return true;
}

/* Cancel request 1. Returns its result, or -ETIME if none comes within @ms. */
static inline int ring_cancel(struct ring *r, int ms)
{
	int res = -ETIME;

	ring_sqe(r, IORING_OP_ASYNC_CANCEL, -1, 2)->addr = 1;
	CHECK_EQ(ring_enter(r, 0), 1);
	for (int i = 0; i < 2; i++) {
		struct io_uring_cqe cqe = { 0 };

		CHECK(ring_wait(r, &cqe, ms));
		if (cqe.user_data == 1)
			res = cqe.res;
	}
	return res;
}

#endif
