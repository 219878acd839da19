// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Random calls on a file of /dev/twheel are compared with a model that is too simple to be wrong.
 *
 *	test_model [ROUNDS [SEED [wait]]]
 *
 * The file is on CLOCK_REALTIME, which the program sets forward and back in steps of STEP. No
 * deadline is near a multiple of STEP, so which timers are due depends on the steps alone, however
 * slow the machine is. With "wait" the program waits for each step, on the other clocks: that is
 * for user-mode Linux with time-travel=inf-cpu.
 *
 * After each call the model says what the call must have returned and stored, and what the file
 * holds. The memory of a call is good, was not touched yet, or ends or becomes read-only in the
 * middle of an operation or event. Two more threads now and then hang in a read(), which later
 * succeeds or fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tap.h"
#include "ring.h"

#define STEP		((waits ? 100 : 10000) * SEC)
#define HALF		(STEP / 2)
#define STEPS		40
#define SLACK		(STEP / 8)
#define MOST		400			/* timers of the model */
#define NR_OPS		150			/* of a batch */
#define PAGE		4096UL
#define STRIDE_MAX	256

enum state { NONE, ARMED, READY, READING, IDLE };
enum early { NO, YES, PERHAPS };

struct timer {
	enum state	state;
	enum early	early;
	u64		handle, user_data, deadline, interval, tolerance;
	u32		flags;
	bool		set, rough;	/* rough: the deadline is that of the model */
	bool		over;		/* it was, when the timer was armed */
	u32		group;		/* of those that became ready together */
	u32		past;
	u32		reader;
};

static struct timer timers[MOST];
static u64 gone[1024];			/* handles that name nothing any more */
static u32 nr_gone, generations[4096];
static u32 max_timers, group, front, steps_at;
static u64 seed, user_datas;
static int fd, ep;
static u64 base = 1900000000 * SEC;	/* in 2030 */
static bool waits;			/* the clock is not set, the test waits */
static struct ring ring;
static bool asked;

static u64 dice(u64 n)
{
	return n ? rnd(&seed) % n : 0;
}

static u64 now(void)
{
	return now_ns(waits ? CLOCK_MONOTONIC : CLOCK_REALTIME);
}

/* ---- memory ---------------------------------------------------------------------------- */

static char *area;
#define AREA_PAGES	16

enum place { GOOD, HOLE, READ_ONLY, UNTOUCHED, PLACES };
static const char *const place_names[] = { "good", "hole", "read-only", "untouched" };

/*
 * Room for @bytes, of which @fit are before a page of the other kind. What is there is @data, if
 * that is given; in untouched pages it becomes 0.
 */
static char *put(enum place place, char *data, size_t bytes, size_t fit)
{
	char *end = area + AREA_PAGES / 2 * PAGE, *at = end - fit;

	if (mmap(area, AREA_PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		bail("mmap");
	if (place != UNTOUCHED) {
		memset(area, POISON, AREA_PAGES * PAGE);
		if (data)
			memcpy(at, data, bytes);
	} else {
		if (data) {
			memcpy(at, data, fit);
			memset(data + fit, 0, bytes - fit);
		}
	}
	/* Not PROT_NONE, which the kernel of user-mode Linux can read. */
	if (place == HOLE)
		munmap(end, AREA_PAGES / 2 * PAGE);
	if (place == READ_ONLY)
		mprotect(end, AREA_PAGES / 2 * PAGE, PROT_READ);
	return at;
}

static void open_up(enum place place)
{
	char *end = area + AREA_PAGES / 2 * PAGE;

	if (place == READ_ONLY)
		mprotect(end, AREA_PAGES / 2 * PAGE, PROT_READ | PROT_WRITE);
	if (place == HOLE && mmap(end, AREA_PAGES / 2 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		bail("mmap");
}

/* A place for @bytes, and how many of them fit. */
static enum place choose(size_t bytes, size_t *fit)
{
	enum place place = dice(2) ? GOOD : (enum place)dice(PLACES);

	*fit = place == GOOD ? bytes : dice(bytes + 1);
	if (*fit > AREA_PAGES / 2 * PAGE)
		*fit = AREA_PAGES / 2 * PAGE;
	if (bytes - *fit > AREA_PAGES / 2 * PAGE)
		*fit = bytes - AREA_PAGES / 2 * PAGE;
	/* Half a time would be one that the model cannot tell. */
	if (place == UNTOUCHED)
		*fit &= ~7UL;
	return place;
}

/* ---- the model ------------------------------------------------------------------------- */

static u64 model_now(void)
{
	return base + steps_at * STEP;
}

static bool goes_on(u64 interval, u32 flags)
{
	return interval || (flags & TWHEEL_F_KEEP);
}

static u32 count(enum state state)
{
	u32 n = 0;

	for (u32 i = 0; i < MOST; i++)
		n += timers[i].state == state;
	return n;
}

static u32 used(void)
{
	return MOST - count(NONE);
}

static struct timer *find(u64 handle)
{
	for (u32 i = 0; i < MOST; i++)
		if (timers[i].state && timers[i].handle == handle)
			return &timers[i];
	return NULL;
}

static void end_timer(struct timer *t)
{
	gone[nr_gone++ % ARRAY_SIZE(gone)] = t->handle;
	*t = (struct timer){ 0 };
}

static bool due(const struct timer *t)
{
	return t->state == ARMED && t->deadline <= model_now() + SLACK;
}

/* For the log: which timers the file has otherwise. */
static void tell_differences(void)
{
	static const enum state states[] = { NONE, ARMED, READY, IDLE };

	for (u32 i = 0; i < MOST; i++) {
		const struct timer *t = &timers[i];
		struct twheel_op op = { .handle = t->handle, .flags = TWHEEL_F_ABS };
		int rc;

		if (!t->state)
			continue;
		rc = ioctl(fd, TWHEEL_IOC_QUERY, &op);
		if (rc > 0 && (states[rc] == t->state || (rc == 2 && t->state == READING)))
			continue;
		diag("timer %llx is %d, not %d; flags %x, past %u", t->handle, rc, t->state,
		     t->flags, t->past);
		diag("due in %lld ms, period %llu ms, tolerance %llu ms",
		     (long long)(op.expires_ns - now()) / 1000000, t->interval / MS,
		     t->tolerance / MS);
	}
}

static void expect_readable(void)
{
	struct epoll_event ev;

	CHECK_EQ(epoll_wait(ep, &ev, 1, 1000), 1);
}

/* The file is at rest: all that is due is ready. A new group, if any became ready. */
static void settle(const char *what)
{
	u64 end = now_ns(CLOCK_MONOTONIC) + WAIT_MS * MS;
	struct twheel_info i;
	bool fresh = false;

	for (u32 k = 0; k < MOST; k++) {
		if (due(&timers[k])) {
			timers[k].state = READY;
			timers[k].early = NO;
			timers[k].group = group;
			fresh = true;
		}
	}
	group++;
	for (;;) {
		info(fd, &i);
		if (i.nr_timers == used() && i.nr_armed == count(ARMED) &&
		    i.nr_ready == count(READY))
			break;
		if (now_ns(CLOCK_MONOTONIC) > end) {
			diag("after %s", what);
			CHECK_EQ(i.nr_timers, used());
			CHECK_EQ(i.nr_armed, count(ARMED));
			CHECK_EQ(i.nr_ready, count(READY));
			tell_differences();
			return;
		}
		sleep_ms(1);
	}
	if (fresh)
		expect_readable();
}

static bool times_are_good(const struct twheel_op *op)
{
	u64 top = 1ULL << 63;

	if (op->expires_ns >= top || op->interval_ns >= top || op->tolerance_ns >= top ||
	    op->expires_ns + op->tolerance_ns >= top)
		return false;
	if (op->interval_ns && op->interval_ns < MS)
		return false;
	return op->interval_ns || !(op->flags & TWHEEL_F_DELAY);
}

#define ARM_FLAGS	(TWHEEL_F_ABS | TWHEEL_F_KEEP | TWHEEL_F_DELAY | \
			 (waits ? 0 : TWHEEL_F_CANCEL_ON_SET))

static bool is_good(const struct twheel_op *op)
{
	if (op->res || op->reserved)
		return false;
	switch (op->op) {
	case TWHEEL_OP_ADD:
		return !(op->flags & ~ARM_FLAGS) && !op->handle && times_are_good(op);
	case TWHEEL_OP_MOD:
		return !(op->flags & ~(ARM_FLAGS | TWHEEL_F_PENDING)) && !op->user_data &&
		       times_are_good(op);
	case TWHEEL_OP_CANCEL:
		return !op->flags && !op->user_data && !op->expires_ns && !op->interval_ns &&
		       !op->tolerance_ns;
	case TWHEEL_OP_QUERY:
		return !(op->flags & ~TWHEEL_F_ABS) && !op->user_data && !op->expires_ns &&
		       !op->interval_ns && !op->tolerance_ns;
	}
	return false;
}

/* At least three digits, and never more. */
static bool tolerance_is(u64 is, u64 asked_for)
{
	return is <= asked_for && asked_for - is <= asked_for / 100;
}

static void arm(struct timer *t, const struct twheel_op *op)
{
	t->flags = op->flags & (TWHEEL_F_KEEP | TWHEEL_F_DELAY | TWHEEL_F_CANCEL_ON_SET);
	asked |= t->flags & TWHEEL_F_CANCEL_ON_SET;
	t->interval = op->interval_ns;
	t->tolerance = op->tolerance_ns;
	t->rough = !(op->flags & TWHEEL_F_ABS);
	t->deadline = op->expires_ns;
	if (t->rough)
		t->deadline += model_now();
	if (t->deadline >= 1ULL << 63)
		t->deadline = (1ULL << 63) - 1;
	t->state = ARMED;
	t->over = due(t);
	t->early = NO;
	t->set = false;
}

static void model_add(const struct twheel_op *was, const struct twheel_op *is)
{
	u32 index = (u32)is->handle, generation = is->handle >> 32;
	struct timer *t;

	if (used() >= max_timers) {
		CHECK_EQ(is->res, -EDQUOT);
		return;
	}
	if (!CHECK_EQ(is->res, 0))
		return;
	for (t = timers; t->state; t++)
		;
	if (CHECK(is->handle && !find(is->handle) && index < ARRAY_SIZE(generations))) {
		CHECK(generation > generations[index]);
		generations[index] = generation;
	}
	t->handle = is->handle;
	t->user_data = was->user_data;
	t->past = 0;
	arm(t, was);
}

static int model_may(const struct timer *t, const struct twheel_op *op)
{
	if (t->state == ARMED && !t->past)
		return 0;
	if (t->state != ARMED && (op->flags & TWHEEL_F_PENDING))
		return -ENOENT;
	if (t->state == READING && !goes_on(t->interval, t->flags))
		return -EALREADY;
	if ((t->state == READING || t->past) && !goes_on(op->interval_ns, op->flags))
		return -EALREADY;
	return 0;
}

/* A timer that is due may be ready already: @is shows whether it is. */
static void look(struct timer *t, const struct twheel_op *was, const struct twheel_op *is)
{
	bool ready = is->res == 0;

	if (!t || !due(t))
		return;
	if (was->op == TWHEEL_OP_QUERY)
		ready = is->res == TWHEEL_STATE_READY;
	else if (is->res == -ENOENT)
		ready = was->flags & TWHEEL_F_PENDING;
	if (!ready)
		return;
	t->state = READY;
	t->early = NO;
	t->group = group;
}

static void model_mod(struct timer *t, const struct twheel_op *was, const struct twheel_op *is)
{
	int err = t ? model_may(t, was) : -ENOENT;

	if (err) {
		CHECK_EQ(is->res, err);
		return;
	}
	CHECK_EQ(is->res, t->state == ARMED);
	CHECK_EQ(is->user_data, t->user_data);
	t->past += t->state == READING;
	t->reader = 0;
	arm(t, was);
}

static void model_cancel(struct timer *t, const struct twheel_op *is)
{
	if (!t || t->state == READING || t->past) {
		CHECK_EQ(is->res, t ? -EALREADY : -ENOENT);
		return;
	}
	CHECK_EQ(is->res, t->state == ARMED);
	CHECK_EQ(is->user_data, t->user_data);
	end_timer(t);
}

static void model_query(const struct timer *t, const struct twheel_op *was,
			const struct twheel_op *is)
{
	static const int states[] = { 0, TWHEEL_STATE_ARMED, TWHEEL_STATE_READY,
				      TWHEEL_STATE_READY, TWHEEL_STATE_IDLE };
	u64 now_is = now(), left;

	if (!t) {
		CHECK_EQ(is->res, -ENOENT);
		return;
	}
	CHECK_EQ(is->res, states[t->state]);
	CHECK_EQ(is->user_data, t->user_data);
	CHECK_EQ(is->interval_ns, t->interval);
	if (was->flags & TWHEEL_F_ABS) {
		if (t->rough)
			CHECK(is->expires_ns >= t->deadline &&
			      is->expires_ns <= t->deadline + SLACK);
		else
			CHECK_EQ(is->expires_ns, t->deadline);
	} else {
		left = t->deadline > now_is ? t->deadline - now_is : 0;
		CHECK(is->expires_ns <= left + SLACK && is->expires_ns + SLACK >= left);
		if (!t->rough && t->deadline <= now_is)
			CHECK(is->expires_ns <= SLACK);
	}
	if (is->expires_ns + t->tolerance < 1ULL << 63)
		CHECK(tolerance_is(is->tolerance_ns, t->tolerance));
	else
		CHECK(is->tolerance_ns <= t->tolerance &&
		      is->expires_ns + is->tolerance_ns < 1ULL << 63);
}

/* @was has become @is. */
static void model_op(const struct twheel_op *was, const struct twheel_op *is, bool too_long)
{
	struct twheel_op same = *was;
	struct timer *t = find(was->handle);

	if (!too_long && is_good(was) && was->op != TWHEEL_OP_ADD)
		look(t, was, is);
	if (too_long || !is_good(was))
		CHECK_EQ(is->res, too_long ? -E2BIG : -EINVAL);
	else if (was->op == TWHEEL_OP_ADD)
		model_add(was, is);
	else if (was->op == TWHEEL_OP_MOD)
		model_mod(t, was, is);
	else if (was->op == TWHEEL_OP_CANCEL)
		model_cancel(t, is);
	else
		model_query(t, was, is);
	same.res = is->res;
	if (is->res >= 0) {
		if (was->op == TWHEEL_OP_ADD)
			same.handle = is->handle;
		else
			same.user_data = is->user_data;
		if (was->op == TWHEEL_OP_QUERY) {
			same.expires_ns = is->expires_ns;
			same.interval_ns = is->interval_ns;
			same.tolerance_ns = is->tolerance_ns;
		}
	}
	CHECK(!memcmp(&same, is, sizeof(same)));
}

/* What was rough becomes exact. */
static void refine(void)
{
	for (u32 i = 0; i < MOST; i++) {
		struct timer *t = &timers[i];
		struct twheel_op op;

		if (!t->state || !t->rough)
			continue;
		CHECK(query(fd, t->handle, TWHEEL_F_ABS, &op) > 0);
		CHECK(op.expires_ns >= t->deadline);
		CHECK(op.expires_ns == (1ULL << 63) - 1 || op.expires_ns <= t->deadline + SLACK);
		t->deadline = op.expires_ns;
		t->rough = false;
	}
}

/* ---- operations ------------------------------------------------------------------------ */

static u64 some_handle(void)
{
	u32 at;

	switch (dice(12)) {
	case 0:
		at = nr_gone < ARRAY_SIZE(gone) ? nr_gone : ARRAY_SIZE(gone);
		return nr_gone ? gone[dice(at)] : 1;
	case 1:
		return dice(2) ? dice(300) : rnd(&seed) >> dice(64);
	}
	at = (u32)dice(MOST);
	for (u32 i = 0; i < MOST; i++, at = (at + 1) % MOST)
		if (timers[at].state)
			return timers[at].handle;
	return dice(1000);
}

static const u64 odd_times[] = {
	0, 1, MS - 1, MS, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, ~0ULL };

static u64 some_step(void)
{
	u64 step = steps_at + dice(12);

	return waits ? step - (step < 4 ? step : 4) : dice(STEPS);
}

/* Times for a timer that goes off in the middle of a step. */
static void some_times(struct twheel_op *op)
{
	u64 steps = dice(6), jitter = dice(1000) * MS + dice(MS);

	op->flags |= dice(2) ? TWHEEL_F_ABS : 0;
	op->flags |= dice(3) ? 0 : TWHEEL_F_KEEP;
	op->flags |= dice(5) ? 0 : ARM_FLAGS & TWHEEL_F_CANCEL_ON_SET;
	if (op->flags & TWHEEL_F_ABS)
		op->expires_ns = some_step() * STEP + base + HALF + jitter;
	else
		op->expires_ns = steps * STEP + HALF + jitter;
	if (!dice(4)) {
		op->interval_ns = (1 + dice(5)) * STEP;
		if (!dice(3)) {
			op->flags |= TWHEEL_F_DELAY;
			op->interval_ns += HALF;
		}
	}
	if (!dice(3))
		op->tolerance_ns = dice(2) ? dice(SLACK) : dice(100 * MS);
	if (!dice(20))
		op->expires_ns = (op->flags & TWHEEL_F_ABS) ? dice(2) : (1ULL << 63) - 1;
	if (!dice(30))
		op->tolerance_ns = rnd(&seed) >> dice(30);
	/* A period that would be at an end near the beginning of a step. */
	if (op->expires_ns < base && (op->flags & TWHEEL_F_ABS))
		op->interval_ns = 0, op->flags &= ~TWHEEL_F_DELAY;
	/* Or may be late into another. */
	if (op->tolerance_ns > SLACK && op->tolerance_ns < 1ULL << 63)
		op->tolerance_ns %= SLACK;
}

static struct twheel_op some_op(bool batch)
{
	struct twheel_op op = { 0 };

	switch (dice(10)) {
	case 0 ... 3:
		op.op = TWHEEL_OP_ADD;
		op.user_data = ++user_datas;
		some_times(&op);
		break;
	case 4 ... 6:
		op.op = TWHEEL_OP_MOD;
		op.handle = some_handle();
		some_times(&op);
		op.flags |= dice(4) ? 0 : TWHEEL_F_PENDING;
		break;
	case 7:
		op.op = TWHEEL_OP_CANCEL;
		op.handle = some_handle();
		break;
	default:
		op.op = TWHEEL_OP_QUERY;
		op.handle = some_handle();
		op.flags = dice(2) ? TWHEEL_F_ABS : 0;
	}
	if (dice(12))
		return op;
	switch (dice(8)) {
	case 0:
		op.flags ^= 1U << dice(32);
		/* Where it would be valid, it must still be a time that the model can tell. */
		if (is_good(&op) && op.op <= TWHEEL_OP_MOD)
			op.flags |= 1U << 31;
		break;
	case 1:
		op.res = (int)dice(3) - 1;
		break;
	case 2:
		op.reserved = (u32)dice(2);
		break;
	case 3:
		if (batch)
			op.op = (u32)dice(7);
		if (is_good(&op))
			op.reserved = 1;
		break;
	case 4:
		op.interval_ns = odd_times[dice(ARRAY_SIZE(odd_times))];
		if (is_good(&op))
			op.reserved = 1;
		break;
	case 5:
		op.tolerance_ns = odd_times[dice(ARRAY_SIZE(odd_times))];
		if (is_good(&op))
			op.reserved = 1;
		break;
	case 6:
		op.expires_ns = odd_times[6 + dice(2)];
		break;
	default:
		op.handle ^= 1ULL << dice(64);
	}
	return op;
}

/* What a query that became @is would say of the tolerance, if there was room for it. */
static void supply(const struct twheel_op *was, struct twheel_op *is)
{
	const struct timer *t = find(was->handle);

	if (was->op != TWHEEL_OP_QUERY || is->res <= 0 || !t)
		return;
	is->tolerance_ns = t->tolerance;
	if (is->expires_ns + is->tolerance_ns >= 1ULL << 63)
		is->tolerance_ns = (1ULL << 63) - 1 - is->expires_ns;
}

/* A call of one operation. */
static void single(void)
{
	struct twheel_op was = some_op(false), is;
	u32 opcode = was.op;
	size_t size = dice(3) ? sizeof(was) : TWHEEL_OP_SIZE_VER0, fit;
	enum place place = choose(size, &fit);
	struct twheel_op *user;
	char after[64];
	int rc;

	if (size < sizeof(was))
		was.tolerance_ns = 0;
	was.op = dice(2) ? opcode : 0;
	user = (void *)put(place, (char *)&was, size, fit);
	rc = ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, TWHEEL_IOC_MAGIC, opcode + 2, size), user);
	if (rc < 0)
		rc = -errno;
	open_up(place);
	memcpy(&is, user, sizeof(is));
	memcpy(after, (char *)user + size, sizeof(after));
	if (size < sizeof(is))
		is.tolerance_ns = 0;
	if (place != GOOD && place != UNTOUCHED && fit < size) {
		CHECK_EQ(rc, -EFAULT);
		CHECK(!memcmp(user, &was, place == HOLE ? fit : size));
	} else {
		struct twheel_op full = was;

		if (rc >= 0)
			CHECK_EQ(is.res, rc);
		else
			CHECK(!memcmp(&is, &was, size));
		is.res = rc;
		is.op = opcode;
		full.op = opcode;
		if (size < sizeof(is))
			supply(&full, &is);
		/* The opcode may have been 0 in memory that was untouched, and then stands. */
		if (was.op && was.op != opcode)
			CHECK_EQ(rc, -EINVAL);
		else
			model_op(&full, &is, false);
		for (u32 i = 0; i < sizeof(after); i++)
			CHECK_EQ(after[i],
				 place == UNTOUCHED || place == HOLE ? 0 : (char)POISON);
	}
	refine();
	if (failed())
		diag("one %u of %zu bytes, %s, %zu fit", opcode, size, place_names[place], fit);
}

enum { IOCTL, URING, ASYNC, WAYS };

/* SUBMIT or DRAIN. Returns as the command would: how many are done, or an errno. */
static int batch(u32 way, bool drains, void *ops, u32 nr, u32 stride, u32 flags, u32 *bad)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = nr, .op_size = stride,
				  .flags = flags };
	struct io_uring_cqe cqe = { 0 };
	struct io_uring_sqe *sqe;
	struct twheel_uring *cmd;
	int rc;

	*bad = ~0U;
	if (way == IOCTL) {
		rc = ioctl(fd, drains ? TWHEEL_IOC_DRAIN : TWHEEL_IOC_SUBMIT, &b);
		*bad = b.nr_failed;
		if (rc < 0)
			CHECK(!b.nr_done && !b.nr_failed);
		return rc < 0 ? -errno : (int)b.nr_done;
	}
	sqe = ring_sqe(&ring, IORING_OP_URING_CMD, fd, 1);
	cmd = ring_command(sqe, drains ? TWHEEL_URING_DRAIN : TWHEEL_URING_SUBMIT, ops, nr);
	cmd->op_size = (__u16)stride;
	cmd->flags = (__u16)flags;
	if (way == ASYNC)
		sqe->flags = IOSQE_ASYNC;
	CHECK_EQ(ring_enter(&ring, 1), 1);
	CHECK(ring_wait(&ring, &cqe, WAIT_MS));
	return cqe.res;
}

static struct twheel_op ops_was[NR_OPS];
static bool ops_long[NR_OPS];
static char ops_memory[NR_OPS * STRIDE_MAX];

static u32 some_stride(void)
{
	static const u32 strides[] = { 48, 56, 56, 56, 64, 88, STRIDE_MAX };

	return strides[dice(ARRAY_SIZE(strides))];
}

static u32 known(u32 stride)
{
	return stride < sizeof(struct twheel_op) ? stride : (u32)sizeof(struct twheel_op);
}

/* How many operations can be done if @fit bytes are good. */
static u32 ops_fit(enum place place, u32 nr, u32 stride, size_t fit)
{
	u32 n = (u32)(fit / stride);

	if (place == GOOD || place == UNTOUCHED)
		return nr;
	if (place == READ_ONLY && fit % stride >= known(stride))
		n++;
	return n < nr ? n : nr;
}

static void many(void)
{
	u32 nr = 1 + (u32)dice(dice(2) ? 8 : NR_OPS), stride = some_stride(), bad, wrong = 0;
	u32 way = (u32)dice(WAYS), failures = 0, can, i;
	size_t bytes, fit;
	enum place place;
	char *user;
	int done;

	while (nr * stride > AREA_PAGES / 2 * PAGE)
		nr /= 2;
	bytes = nr * stride;
	memset(ops_memory, 0, bytes);
	for (i = 0; i < nr; i++) {
		struct twheel_op op = some_op(true);

		if (stride < sizeof(op))
			op.tolerance_ns = 0;
		memcpy(ops_memory + i * stride, &op, known(stride));
		if (stride > sizeof(op) && !dice(20))
			ops_memory[i * stride + sizeof(op) + dice(stride - sizeof(op))] = 1;
	}
	place = choose(bytes, &fit);
	/* An operation too long of which a part cannot be read may have either error. */
	if (place == HOLE && fit < bytes)
		memset(ops_memory + fit / stride * stride + known(stride), 0,
		       stride - known(stride));
	user = put(place, ops_memory, bytes, fit);
	for (i = 0; i < nr; i++) {
		memset(&ops_was[i], 0, sizeof(ops_was[i]));
		memcpy(&ops_was[i], ops_memory + i * stride, known(stride));
		ops_long[i] = false;
		for (u32 k = known(stride); k < stride; k++)
			ops_long[i] |= ops_memory[i * stride + k];
	}
	can = ops_fit(place, nr, stride, fit);
	done = batch(way, false, user, nr, stride, 0, &bad);
	open_up(place);
	CHECK_EQ(done, can ? (int)can : -EFAULT);
	for (i = 0; i < nr; i++) {
		struct twheel_op is = { 0 };

		memcpy(&is, user + i * stride, known(stride));
		if (i < can) {
			failures += is.res < 0;
			/* Not known: the query's, if the structure has no room for it. */
			if (stride < sizeof(is))
				supply(&ops_was[i], &is);
			model_op(&ops_was[i], &is, ops_long[i]);
			wrong += !!memcmp(user + i * stride + known(stride),
					  ops_memory + i * stride + known(stride),
					  stride - known(stride));
		} else if (place != HOLE) {
			wrong += !!memcmp(user + i * stride, ops_memory + i * stride, stride);
		}
		if (failed()) {
			diag("operation %u, %u, res %d", i, ops_was[i].op, is.res);
			break;
		}
	}
	CHECK_EQ(wrong, 0);
	if (way == IOCTL && !failed())
		CHECK_EQ(bad, failures);
	refine();
	if (failed())
		diag("a batch of %u of %u bytes, way %u, %s, %zu fit", nr, stride, way,
		     place_names[place], fit);
}

static void drains(void)
{
	u32 nr = 1 + (u32)dice(dice(2) ? 8 : NR_OPS), stride = some_stride(), bad, can, i;
	u32 armed = 0, way = (u32)dice(WAYS), flags = dice(2) ? TWHEEL_F_ABS : 0;
	bool any = count(ARMED);
	size_t bytes, fit;
	enum place place;
	int done, want;
	char *user;

	while (nr * stride > AREA_PAGES / 2 * PAGE)
		nr /= 2;
	bytes = nr * stride;
	place = choose(bytes, &fit);
	user = put(place, NULL, bytes, fit);
	can = place == GOOD || place == UNTOUCHED ? nr : (u32)(fit / stride);
	for (i = 0; i < MOST; i++)
		armed += timers[i].state == ARMED && !timers[i].past;
	done = batch(way, true, user, nr, stride, flags, &bad);
	open_up(place);
	want = can < armed ? (int)can : (int)armed;
	if (!can && any)
		want = -EFAULT;
	CHECK_EQ(done, want);
	for (i = 0; (int)i < done; i++) {
		struct twheel_op is = { 0 };
		struct timer *t;
		u32 k;

		memcpy(&is, user + i * stride, known(stride));
		t = find(is.handle);
		if (!CHECK(t && t->state == ARMED && !t->past))
			break;
		CHECK_EQ(is.op, TWHEEL_OP_ADD);
		CHECK_EQ(is.flags, t->flags | flags);
		CHECK_EQ(is.user_data, t->user_data);
		CHECK_EQ(is.interval_ns, t->interval);
		CHECK(!is.res && !is.reserved);
		if (flags)
			CHECK_EQ(is.expires_ns, t->deadline);
		if (stride >= sizeof(is) && is.expires_ns + t->tolerance < 1ULL << 63)
			CHECK(tolerance_is(is.tolerance_ns, t->tolerance));
		for (k = known(stride); k < stride; k++)
			CHECK(!user[i * stride + k]);
		end_timer(t);
	}
	if (failed())
		diag("a drain of %u of %u bytes, way %u, %s, %zu fit", nr, stride, way,
		     place_names[place], fit);
}

/* ---- reading --------------------------------------------------------------------------- */

static u64 latest(const struct timer *t)
{
	return (t->deadline + t->tolerance) / MS > (t->deadline + MS - 1) / MS ?
	       (t->deadline + t->tolerance) / MS : (t->deadline + MS - 1) / MS;
}

static bool in_order(const struct timer *t)
{
	return t->early == NO && !t->over && !(t->flags & TWHEEL_F_CANCEL_ON_SET);
}

/* May the event of @t come now? Not if another must come first. */
static bool is_next(const struct timer *t)
{
	for (u32 i = 0; i < MOST; i++) {
		const struct timer *o = &timers[i];

		if (o->state != READY || o == t)
			continue;
		if (o->group < t->group)
			return false;
		if (o->group == t->group && in_order(o) && in_order(t) && o->deadline > base &&
		    latest(o) < (t->deadline + MS - 1) / MS)
			return false;
	}
	return true;
}

/* The event of @t was read, with @count, at the step @steps. */
static void after_read(struct timer *t, u32 periods, u32 steps)
{
	t->set = false;
	if (t->interval) {
		if ((t->flags & TWHEEL_F_DELAY) && periods) {
			t->deadline = base + steps * STEP + t->interval;
			t->rough = true;
		} else {
			t->deadline += periods * t->interval;
		}
		if (t->deadline >= 1ULL << 63)
			t->deadline = (1ULL << 63) - 1;
		t->state = ARMED;
		t->over = due(t);
		t->early = NO;
	} else if (t->flags & TWHEEL_F_KEEP) {
		t->state = IDLE;
	} else {
		end_timer(t);
	}
}

static void expect_event(struct timer *t, const struct twheel_event *ev, u64 at)
{
	u64 periods = 1;
	bool set = t->set;

	CHECK_EQ(ev->handle, t->handle);
	CHECK_EQ(ev->user_data, t->user_data);
	CHECK_EQ(ev->expires_ns, t->deadline);
	if (t->interval && !(t->flags & TWHEEL_F_DELAY) && at + SLACK >= t->deadline)
		periods = (at + SLACK - t->deadline) / t->interval + 1;
	if (periods > UINT32_MAX)
		periods = UINT32_MAX;
	if (at + SLACK >= t->deadline)
		CHECK_EQ(ev->count, periods);
	else if (t->early != PERHAPS)
		CHECK_EQ(ev->count, t->early == NO);
	else
		CHECK(ev->count <= 1);
	CHECK_EQ(ev->flags, (goes_on(t->interval, t->flags) ? TWHEEL_EV_MORE : 0) |
		 (set ? TWHEEL_EV_CLOCK_SET : 0));
}

static ssize_t do_read(u32 way, char *to, size_t bytes)
{
	size_t half = bytes ? dice(bytes) : 0;
	struct iovec iov[2] = { { to, half }, { to + half, bytes - half } };
	struct io_uring_cqe cqe = { 0 };
	struct io_uring_sqe *sqe;
	ssize_t n;

	switch (way) {
	case 0:
		n = readv(fd, iov, 2);
		break;
	case 1:
		iov[0].iov_len = bytes;
		n = preadv2(fd, iov, 1, -1, RWF_NOWAIT);
		break;
	case 2:
		sqe = ring_sqe(&ring, IORING_OP_READ, fd, 2);
		sqe->addr = (uintptr_t)to;
		sqe->len = (u32)bytes;
		sqe->off = ~0ULL;
		CHECK_EQ(ring_enter(&ring, 1), 1);
		CHECK(ring_wait(&ring, &cqe, WAIT_MS));
		return cqe.res;
	default:
		n = read(fd, to, bytes);
	}
	return n < 0 ? -errno : n;
}

static void reads(void)
{
	const size_t size = sizeof(struct twheel_event);
	u32 room = dice(4) ? 1 + (u32)dice(4) : (u32)dice(200), ready = count(READY), can, n;
	size_t bytes = room * size + (dice(4) ? 0 : dice(size)), fit;
	enum place place = choose(bytes, &fit);
	u32 way = (u32)dice(6);
	ssize_t got, want;
	char *user;

	if (way == 2 && !ready)
		way = 3;
	user = put(place, NULL, bytes, fit);
	can = place == GOOD || place == UNTOUCHED ? room : (u32)(fit / size);
	got = do_read(way, user, bytes);
	open_up(place);
	n = can < ready ? can : ready;
	want = (ssize_t)(n * size);
	if (!bytes && way < 2)
		want = 0;	/* the file is not asked */
	else if (!room)
		want = -EINVAL;
	else if (!ready)
		want = -EAGAIN;
	else if (!can)
		want = -EFAULT;
	CHECK_EQ(got, want);
	for (u32 i = 0; got > 0 && i < (u32)got / size; i++) {
		struct twheel_event ev;
		struct timer *t;

		memcpy(&ev, user + i * size, size);
		t = find(ev.handle);
		if (!CHECK(t && t->state == READY)) {
			diag("it is %llx, in state %d", ev.handle, t ? (int)t->state : -1);
			break;
		}
		CHECK(is_next(t));
		expect_event(t, &ev, model_now());
		after_read(t, ev.count, steps_at);
	}
	refine();
	if (failed())
		diag("a read of %zu bytes, way %u, %s, %zu fit; %u ready", bytes, way,
		     place_names[place], fit, ready);
}

/* ---- readers that hang ----------------------------------------------------------------- */

static struct hung {
	struct stall		stall;
	pthread_t		thread;
	bool			busy;
	char			*at;
	u32			nr, before;	/* how many, and how many before the page */
	u64			handle[8];
	u32			rank[8];	/* of the group */
	struct timer		was[8];
	u32			steps;
	ssize_t			got;
} hung[2];

static void *hang(void *arg)
{
	struct hung *h = arg;

	h->got = read(fd, h->at, h->nr * sizeof(struct twheel_event));
	if (h->got < 0)
		h->got = -errno;
	return NULL;
}

/* The events of the first groups, as many as eight: how many? */
static u32 first_groups(u32 which)
{
	u32 g, n = 0, rank = 0;
	struct hung *h = &hung[which];

	for (;;) {
		u32 here = 0;

		g = ~0U;
		for (u32 i = 0; i < MOST; i++)
			if (timers[i].state == READY && timers[i].group < g)
				g = timers[i].group;
		for (u32 i = 0; i < MOST; i++)
			here += timers[i].state == READY && timers[i].group == g;
		if (!here || n + here > 8)
			return n;
		for (u32 i = 0; i < MOST; i++) {
			struct timer *t = &timers[i];

			if (t->state != READY || t->group != g)
				continue;
			h->was[n] = *t;
			h->rank[n] = rank;
			h->handle[n++] = t->handle;
			t->state = READING;
			t->reader = which + 1;
		}
		rank++;
	}
}

static void hangs(void)
{
	u32 which = (u32)dice(2);
	struct hung *h = &hung[which];

	if (h->busy)
		return;
	h->nr = first_groups(which);
	if (!h->nr)
		return;
	h->busy = true;
	h->steps = steps_at;
	h->before = (u32)dice(h->nr);
	/* Events as most are would be read at once, up to the page. */
	for (u32 i = 0; i < h->nr; i++)
		if (!h->was[i].interval && !h->was[i].flags)
			h->before = 0;
	h->stall = stall_new();
	h->at = (char *)h->stall.page - h->before * sizeof(struct twheel_event) -
		dice(h->before ? 32 : 1);
	h->thread = start_thread(hang, h);
	stall_wait(&h->stall);
	for (u32 i = 0; i < h->nr; i++)		/* the event says so already */
		find(h->handle[i])->set = false;
}

static void goes_free(u32 which)
{
	const size_t size = sizeof(struct twheel_event);
	struct hung *h = &hung[which];
	bool good = dice(2);
	u32 done;

	if (!h->busy)
		return;
	if (good)
		stall_give(&h->stall);
	else
		stall_fail(&h->stall);
	pthread_join(h->thread, NULL);
	h->busy = false;
	done = good ? h->nr : h->before;
	CHECK_EQ(h->got, done ? (ssize_t)(done * size) : -EFAULT);
	for (u32 i = 0; i < h->nr; i++) {
		struct twheel_event ev;
		struct timer *t, was;
		u32 k;

		memset(&ev, 0, sizeof(ev));
		if (i < done) {
			memcpy(&ev, h->at + i * size, size);
			for (k = 0; k < h->nr && h->handle[k] != ev.handle; k++)
				;
			if (!CHECK(k < h->nr))
				break;
			was = h->was[k];
			expect_event(&was, &ev, base + h->steps * STEP);
			h->handle[k] = 0;
			t = find(ev.handle);
			if (t && t->state == READING && t->reader == which + 1) {
				bool set = t->set;

				after_read(t, ev.count, h->steps);
				/* The clock was set meanwhile: so it has another at once. */
				if (set && t->state == ARMED) {
					t->state = READY;
					t->set = true;
					t->early = YES;
					t->group = group;
				}
			} else if (CHECK(t && t->past)) {
				t->past--;
			}
		}
	}
	group++;
	front -= 8;
	/* The others are in front again, or were dropped. */
	for (u32 k = 0; k < h->nr; k++) {
		struct timer *t = h->handle[k] ? find(h->handle[k]) : NULL;

		if (!h->handle[k])
			continue;
		if (t && t->state == READING && t->reader == which + 1) {
			t->state = READY;
			t->set |= h->was[k].set;
			t->group = front + h->rank[k];
		} else if (CHECK(t && t->past)) {
			t->past--;
		}
	}
	stall_end(&h->stall);
	refine();
	if (failed())
		diag("a reader of %u events, %u before a page that %s", h->nr, h->before,
		     good ? "came" : "went");
}

/* ---- time ------------------------------------------------------------------------------ */

/*
 * Wait until every timer that asked for an event when the clock is set has been given one: an ADD
 * with that flag waits for this.
 */
static void told(void)
{
	struct twheel_op op = { .flags = TWHEEL_F_CANCEL_ON_SET, .expires_ns = 30 * STEP };

	if (!asked)
		return;
	/* A file that is full says so, but only after the telling. */
	if (op_ioctl(fd, TWHEEL_IOC_ADD, &op) >= 0) {
		generations[(u32)op.handle] = op.handle >> 32;
		CHECK_EQ(cancel(fd, op.handle), 1);
	}
}

static void set_clock(void)
{
	u32 to = dice(3) ? steps_at + (u32)dice(4) : (u32)dice(STEPS);
	struct timespec ts;

	if (to >= STEPS)
		to = (u32)dice(STEPS);
	if (waits)
		to = steps_at + 1 + (u32)dice(3);
	ts.tv_sec = (time_t)((base + to * STEP) / SEC);
	ts.tv_nsec = 0;
	if (waits)
		CHECK(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
	else
		CHECK(!clock_settime(CLOCK_REALTIME, &ts));
	steps_at = to;
	told();
	for (u32 i = 0; i < MOST; i++) {
		struct timer *t = &timers[i];

		if (!(t->flags & TWHEEL_F_CANCEL_ON_SET) || !t->state || t->state == IDLE)
			continue;
		t->set = true;
		if (t->state != ARMED)
			continue;
		t->early = due(t) ? PERHAPS : YES;
		t->state = READY;
		t->group = group;
	}
	/* What is due, and what was told, are of one group. */
	settle("the clock was set");
	group++;
}

static void sweep(void)
{
	for (u32 i = 0; i < MOST; i++) {
		struct twheel_op was = { .op = TWHEEL_OP_QUERY, .flags = TWHEEL_F_ABS }, is;

		if (!timers[i].state)
			continue;
		was.handle = timers[i].handle;
		is = was;
		CHECK(ioctl(fd, TWHEEL_IOC_QUERY, &is) == is.res);
		model_op(&was, &is, false);
	}
	for (u32 i = 0; i < 8 && i < nr_gone; i++) {
		struct twheel_op op;
		u64 h = gone[(nr_gone - 1 - i) % ARRAY_SIZE(gone)];

		if (!find(h))
			CHECK_EQ(query(fd, h, 0, &op), -ENOENT);
	}
}

static void begin_file(void)
{
	static const u32 rooms[] = { 1, 10, 63, 64, 65, 100, 200, 300 };
	static const clockid_t clocks[2][3] = {
		{ CLOCK_REALTIME, CLOCK_REALTIME, CLOCK_REALTIME_ALARM },
		{ CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM } };
	struct twheel_setup s = { .tick_ns = MS };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	s.clockid = clocks[waits][dice(3)];
	max_timers = rooms[dice(ARRAY_SIZE(rooms))];
	s.max_timers = max_timers;
	fd = dev_open(O_NONBLOCK);
	CHECK_EQ(setup(fd, &s), 0);
	ep = epoll_create1(EPOLL_CLOEXEC);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	memset(timers, 0, sizeof(timers));
	memset(generations, 0, sizeof(generations));
	nr_gone = 0;
	group = 1U << 30;
	front = group;
	asked = false;
}

static void end_file(void)
{
	goes_free(0);
	goes_free(1);
	close(ep);
	close(fd);
}

static u32 rounds = 40;

static void one_round(void)
{
	u32 calls = 20 + (u32)dice(150);

	begin_file();
	set_clock();
	for (u32 i = 0; i < calls && !failed(); i++) {
		const char *what = "?";

		switch (dice(16)) {
		case 0 ... 4:
			what = "a single operation";
			single();
			break;
		case 5 ... 7:
			what = "a batch";
			many();
			break;
		case 8:
			what = "a drain";
			if (!dice(3))
				drains();
			break;
		case 9 ... 11:
			what = "a read";
			reads();
			break;
		case 12:
			what = "a reader that hangs";
			hangs();
			break;
		case 13:
			what = "a reader that goes on";
			goes_free((u32)dice(2));
			break;
		default:
			what = "a step";
			set_clock();
		}
		settle(what);
		if (!dice(8))
			sweep();
		if (failed())
			diag("call %u of the round, %s, step %u, room for %u", i, what, steps_at,
			     max_timers);
	}
	end_file();
}

static void run(void)
{
	u64 ahead = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC), was;

	area = mmap(NULL, AREA_PAGES * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		bail("mmap");
	/*
	 * The kernel does some of a ring's work in this task. Without these flags that work counts
	 * as a signal, even if it comes some time after the CQE: it interrupts a wait, and a read()
	 * then gives fewer events than are ready.
	 */
	ring_open(&ring, 8, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	if (waits)
		base = (now() / STEP + 1) * STEP;
	for (u32 i = 0; i < rounds && !failed(); i++) {
		u64 this = seed;

		alarm(waits ? 0 : 60);
		one_round();
		if (failed())
			diag("round %u began with seed %llu", i, this);
	}
	ring_close(&ring);
	was = ahead + now_ns(CLOCK_MONOTONIC);
	if (!waits)
		CHECK(!clock_settime(CLOCK_REALTIME, &(struct timespec){
			(time_t)(was / SEC), (long)(was % SEC) }));
}

static const struct test tests[] = {
	{ run, "what random calls give is what a model gives" },
};

int main(int argc, char **argv)
{
	rounds = argc > 1 ? (u32)atoi(argv[1]) : rounds;
	waits = argc > 3;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 88172645463325252ULL;
	return run_tests(tests, ARRAY_SIZE(tests));
}
