// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Bad input to /dev/twheel: every command, every field, every size.
 *
 * Each row expects one errno, and that nothing has changed: INFO returns the same as before, bit
 * for bit, and the timer that was there is still armed.
 *
 * The calls are of three kinds: a good structure with one wrong field (pokes), a good structure
 * with another length or another ioctl number (shapes), and memory that is missing (pointers). Then
 * come batches, whose operations fail one by one. At last come the errors that need more than bad
 * input (cells), and all errors that these tests have seen are compared with the table of errors in
 * the UAPI header.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "ring.h"

/* The commands, and for each a structure that would be accepted. */
enum command { SETUP, INFO, SUBMIT, ADD, MOD, CANCEL, QUERY, DRAIN, COMMANDS };

static const struct {
	const char	*name;
	unsigned long	cmd;
} commands[COMMANDS] = {
	[SETUP]		= { "SETUP", TWHEEL_IOC_SETUP },
	[INFO]		= { "INFO", TWHEEL_IOC_INFO },
	[SUBMIT]	= { "SUBMIT", TWHEEL_IOC_SUBMIT },
	[ADD]		= { "ADD", TWHEEL_IOC_ADD },
	[MOD]		= { "MOD", TWHEEL_IOC_MOD },
	[CANCEL]	= { "CANCEL", TWHEEL_IOC_CANCEL },
	[QUERY]		= { "QUERY", TWHEEL_IOC_QUERY },
	[DRAIN]		= { "DRAIN", TWHEEL_IOC_DRAIN },
};

/* The rows and columns of the table: the commands, and these other calls. */
enum { OTHER = COMMANDS, OPEN, READ, URING, CALLS };

static const int errnos[] = { EINVAL, E2BIG, EFAULT, EPERM, EBADF, ENOTTY, ENOENT, EALREADY, EBUSY,
			      EDQUOT, ENOMEM, EAGAIN, EINTR, EOPNOTSUPP };

/* How often each error was seen. In shared memory, so that children can count too. */
static u32 (*seen)[CALLS][ARRAY_SIZE(errnos)];

static void see(int which, int err)
{
	size_t e = 0;

	while (e < ARRAY_SIZE(errnos) && errnos[e] != err)
		e++;
	if (CHECK(e < ARRAY_SIZE(errnos)))
		(*seen)[which][e]++;
}

/* A file, and a timer in it. For SETUP, a file without a timer. */
static int fd;
static u64 handle;
static struct twheel_info before;
static struct twheel_op one_op;

union arg {
	struct twheel_setup	setup;
	struct twheel_info	info;
	struct twheel_batch	batch;
	struct twheel_op	op;
	unsigned char		bytes[_IOC_SIZEMASK + 1];
};

static void begin(enum command c)
{
	fd = dev_open(0);
	handle = c == SETUP ? 0 : add(fd, HOUR, 4711);
	info(fd, &before);
}

/* Each row ends with this: nothing has changed. */
static void end(void)
{
	struct twheel_info after;

	info(fd, &after);
	CHECK(!memcmp(&before, &after, sizeof(after)));
	if (handle)
		CHECK_EQ(cancel(fd, handle), 1);
	else
		CHECK_EQ(setup(fd, &(struct twheel_setup){ .clockid = 1 }), 0);
	close(fd);
}

/* Fill in good input for command @c. */
static void fill(enum command c, union arg *arg)
{
	memset(arg, 0, sizeof(*arg));
	switch (c) {
	case SETUP:
		arg->setup.clockid = CLOCK_MONOTONIC;
		break;
	case SUBMIT:
		one_op = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
		arg->batch.ops = (uintptr_t)&one_op;
		arg->batch.nr = 1;
		arg->batch.op_size = sizeof(one_op);
		break;
	case ADD:
		arg->op.expires_ns = HOUR;
		break;
	case MOD:
		arg->op.expires_ns = 2 * HOUR;
		arg->op.handle = handle;
		break;
	case CANCEL:
	case QUERY:
		arg->op.handle = handle;
		break;
	case DRAIN:
		arg->batch.ops = (uintptr_t)&one_op;
		arg->batch.nr = 1;
		arg->batch.op_size = sizeof(one_op);
		break;
	default:
		break;
	}
}

static int call(unsigned long cmd, void *arg)
{
	const unsigned long size = (unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT;
	int rc = ioctl(fd, cmd, arg);
	int which = 0;

	if (rc >= 0)
		return rc;
	rc = -errno;
	while (which < OTHER && (commands[which].cmd & ~size) != (cmd & ~size))
		which++;
	see(which, -rc);
	return rc;
}

/* ---- pokes ----------------------------------------------------------------- */

/* Where a field is, and how long it is. */
#define SPOT(type, name) \
	{ offsetof(struct twheel_##type, name), sizeof(((struct twheel_##type *)0)->name) }
#define BIT63		0x8000000000000000

static const struct poke {
	enum command	c;
	const char	*what;
	int		want;
	struct {
		size_t	offset, size;
	} field;
	u64		value;
} pokes[] = {
	{ SETUP, "CLOCK_PROCESS_CPUTIME_ID", EINVAL, SPOT(setup, clockid), 2 },
	{ SETUP, "clock 10 (BOOTTIME_ALARM + 1)", EINVAL, SPOT(setup, clockid), 10 },
	{ SETUP, "clock -1", EINVAL, SPOT(setup, clockid), ~0ULL },
	{ SETUP, "clock 33 (1 + 32)", EINVAL, SPOT(setup, clockid), 33 },
	{ SETUP, "flags", EINVAL, SPOT(setup, flags), 1 },
	{ SETUP, "highest flag", EINVAL, SPOT(setup, flags), 1U << 31 },
	{ SETUP, "tick 1 ns", EINVAL, SPOT(setup, tick_ns), 1 },
	{ SETUP, "tick 99 999 ns", EINVAL, SPOT(setup, tick_ns), 99999 },
	{ SETUP, "tick of a second and 1 ns", EINVAL, SPOT(setup, tick_ns), SEC + 1 },
	{ SETUP, "tick 2^63", EINVAL, SPOT(setup, tick_ns), BIT63 },
	{ SETUP, "tick 2^32 ms", EINVAL, SPOT(setup, tick_ns), MS << 32 },
	{ SETUP, "slack of a second", EINVAL, SPOT(setup, slack_ns), SEC },
	{ SETUP, "slack 2^64 - 1", EINVAL, SPOT(setup, slack_ns), ~0ULL },
	{ SETUP, "max_timers 2^32 - 1", EINVAL, SPOT(setup, max_timers), ~0U },
	{ SETUP, "reserved", EINVAL, SPOT(setup, reserved), 1 },

	{ ADD, "op 5", EINVAL, SPOT(op, op), 5 },
	{ ADD, "op 2^32 - 1", EINVAL, SPOT(op, op), ~0U },
	{ ADD, "op MOD", EINVAL, SPOT(op, op), TWHEEL_OP_MOD },
	{ ADD, "op CANCEL", EINVAL, SPOT(op, op), TWHEEL_OP_CANCEL },
	{ ADD, "flag 5", EINVAL, SPOT(op, flags), 1U << 5 },
	{ ADD, "highest flag", EINVAL, SPOT(op, flags), 1U << 31 },
	{ ADD, "CANCEL_ON_SET of a clock that is not", EINVAL, SPOT(op, flags),
	  TWHEEL_F_CANCEL_ON_SET },
	{ ADD, "PENDING", EINVAL, SPOT(op, flags), TWHEEL_F_PENDING },
	{ ADD, "DELAY without interval", EINVAL, SPOT(op, flags), TWHEEL_F_DELAY },
	{ ADD, "a handle", EINVAL, SPOT(op, handle), 1 },
	{ ADD, "expiry 2^63", EINVAL, SPOT(op, expires_ns), BIT63 },
	{ ADD, "expiry 2^64 - 1", EINVAL, SPOT(op, expires_ns), ~0ULL },
	{ ADD, "interval 1 ns", EINVAL, SPOT(op, interval_ns), 1 },
	{ ADD, "interval a tick less 1 ns", EINVAL, SPOT(op, interval_ns), MS - 1 },
	{ ADD, "interval 2^63", EINVAL, SPOT(op, interval_ns), BIT63 },
#ifndef FIRST_HEADER
	{ ADD, "tolerance 2^63", EINVAL, SPOT(op, tolerance_ns), BIT63 },
	{ ADD, "tolerance 2^64 - 1", EINVAL, SPOT(op, tolerance_ns), ~0ULL },
	{ ADD, "tolerance that ends at 2^63", EINVAL, SPOT(op, tolerance_ns), BIT63 - HOUR },
	{ ADD, "expiry that ends at 2^64", EINVAL, SPOT(op, tolerance_ns), -HOUR },
#endif
	{ ADD, "res", EINVAL, SPOT(op, res), 1 },
	{ ADD, "reserved", EINVAL, SPOT(op, reserved), 1 },

	{ MOD, "op 5", EINVAL, SPOT(op, op), 5 },
	{ MOD, "op ADD", EINVAL, SPOT(op, op), TWHEEL_OP_ADD },
	{ MOD, "op CANCEL", EINVAL, SPOT(op, op), TWHEEL_OP_CANCEL },
	{ MOD, "flag 5", EINVAL, SPOT(op, flags), 1U << 5 },
	{ MOD, "highest flag", EINVAL, SPOT(op, flags), 1U << 31 },
	{ MOD, "DELAY without interval", EINVAL, SPOT(op, flags), TWHEEL_F_DELAY },
	{ MOD, "handle 0", ENOENT, SPOT(op, handle), 0 },
	{ MOD, "handle 2^64 - 1", ENOENT, SPOT(op, handle), ~0ULL },
	{ MOD, "unknown handle", ENOENT, SPOT(op, handle), 0x7700000000 },
	{ MOD, "user_data", EINVAL, SPOT(op, user_data), 1 },
	{ MOD, "expiry 2^63", EINVAL, SPOT(op, expires_ns), BIT63 },
	{ MOD, "interval a tick less 1 ns", EINVAL, SPOT(op, interval_ns), MS - 1 },
	{ MOD, "interval 2^63", EINVAL, SPOT(op, interval_ns), BIT63 },
#ifndef FIRST_HEADER
	{ MOD, "tolerance 2^63", EINVAL, SPOT(op, tolerance_ns), BIT63 },
	{ MOD, "tolerance 2^64 - 1", EINVAL, SPOT(op, tolerance_ns), ~0ULL },
	{ MOD, "tolerance that ends at 2^63", EINVAL, SPOT(op, tolerance_ns), BIT63 - 2 * HOUR },
	{ MOD, "expiry that ends at 2^64", EINVAL, SPOT(op, tolerance_ns), -2 * HOUR },
	{ CANCEL, "tolerance", EINVAL, SPOT(op, tolerance_ns), 1 },
	{ QUERY, "tolerance", EINVAL, SPOT(op, tolerance_ns), 1 },
#endif
	{ MOD, "res", EINVAL, SPOT(op, res), ~0U },
	{ MOD, "reserved", EINVAL, SPOT(op, reserved), ~0U },

	{ CANCEL, "op 5", EINVAL, SPOT(op, op), 5 },
	{ CANCEL, "op ADD", EINVAL, SPOT(op, op), TWHEEL_OP_ADD },
	{ CANCEL, "op MOD", EINVAL, SPOT(op, op), TWHEEL_OP_MOD },
	{ CANCEL, "ABS", EINVAL, SPOT(op, flags), TWHEEL_F_ABS },
	{ MOD, "CANCEL_ON_SET of a clock that is not", EINVAL, SPOT(op, flags),
	  TWHEEL_F_CANCEL_ON_SET },
	{ CANCEL, "PENDING", EINVAL, SPOT(op, flags), TWHEEL_F_PENDING },
	{ CANCEL, "highest flag", EINVAL, SPOT(op, flags), 1U << 31 },
	{ CANCEL, "handle 0", ENOENT, SPOT(op, handle), 0 },
	{ CANCEL, "handle 2^64 - 1", ENOENT, SPOT(op, handle), ~0ULL },
	{ CANCEL, "index out of range", ENOENT, SPOT(op, handle), 0x1ffffffff },
	{ CANCEL, "index, no generation", ENOENT, SPOT(op, handle), 63 },
	{ CANCEL, "user_data", EINVAL, SPOT(op, user_data), 1 },
	{ CANCEL, "expiry", EINVAL, SPOT(op, expires_ns), 1 },
	{ CANCEL, "interval", EINVAL, SPOT(op, interval_ns), MS },
	{ CANCEL, "res", EINVAL, SPOT(op, res), 1 },
	{ CANCEL, "reserved", EINVAL, SPOT(op, reserved), 1 },

	{ QUERY, "op 5", EINVAL, SPOT(op, op), 5 },
	{ QUERY, "op CANCEL", EINVAL, SPOT(op, op), TWHEEL_OP_CANCEL },
	{ QUERY, "KEEP", EINVAL, SPOT(op, flags), TWHEEL_F_KEEP },
	{ QUERY, "DELAY", EINVAL, SPOT(op, flags), TWHEEL_F_DELAY },
	{ QUERY, "PENDING", EINVAL, SPOT(op, flags), TWHEEL_F_PENDING },
	{ QUERY, "highest flag", EINVAL, SPOT(op, flags), 1U << 31 },
	{ QUERY, "handle 0", ENOENT, SPOT(op, handle), 0 },
	{ QUERY, "handle 2^64 - 1", ENOENT, SPOT(op, handle), ~0ULL },
	{ QUERY, "index, no generation", ENOENT, SPOT(op, handle), 63 },
	{ QUERY, "user_data", EINVAL, SPOT(op, user_data), 1 },
	{ QUERY, "expiry", EINVAL, SPOT(op, expires_ns), 1 },
	{ QUERY, "interval", EINVAL, SPOT(op, interval_ns), MS },
	{ QUERY, "res", EINVAL, SPOT(op, res), 1 },
	{ QUERY, "reserved", EINVAL, SPOT(op, reserved), 1 },

	{ SUBMIT, "2^32 operations", EINVAL, SPOT(batch, nr), 1ULL << 32 },
	{ SUBMIT, "2^32 + 1 operations", EINVAL, SPOT(batch, nr), (1ULL << 32) + 1 },
	{ SUBMIT, "2^64 - 1 operations", EINVAL, SPOT(batch, nr), ~0ULL },
	{ SUBMIT, "too many by 1", EINVAL, SPOT(batch, nr), TWHEEL_BATCH_MAX + 1 },
	{ SUBMIT, "op_size 0", EINVAL, SPOT(batch, op_size), 0 },
	{ SUBMIT, "op_size 40", EINVAL, SPOT(batch, op_size), 40 },
	{ SUBMIT, "op_size 47", EINVAL, SPOT(batch, op_size), 47 },
	{ SUBMIT, "op_size 52", EINVAL, SPOT(batch, op_size), 52 },
	{ SUBMIT, "op_size 4104", EINVAL, SPOT(batch, op_size), 4104 },
	{ SUBMIT, "op_size 2^32 - 8", EINVAL, SPOT(batch, op_size), ~0U - 7 },
	{ SUBMIT, "flags", EINVAL, SPOT(batch, flags), 1 },
	{ SUBMIT, "highest flag", EINVAL, SPOT(batch, flags), 1U << 31 },
	{ SUBMIT, "nr_done", EINVAL, SPOT(batch, nr_done), 1 },
	{ SUBMIT, "nr_failed", EINVAL, SPOT(batch, nr_failed), 1 },
	{ SUBMIT, "ops NULL", EFAULT, SPOT(batch, ops), 0 },
	{ SUBMIT, "ops in the kernel", EFAULT, SPOT(batch, ops), ~0ULL << 32 },
	{ SUBMIT, "ops at the end of all", EFAULT, SPOT(batch, ops), ~0ULL - 7 },
	{ SUBMIT, "nothing", 0, SPOT(batch, nr), 0 },

	{ DRAIN, "room for 2^32", EINVAL, SPOT(batch, nr), 1ULL << 32 },
	{ DRAIN, "room for 2^32 + 1", EINVAL, SPOT(batch, nr), (1ULL << 32) + 1 },
	{ DRAIN, "too much room by 1", EINVAL, SPOT(batch, nr), TWHEEL_BATCH_MAX + 1 },
	{ DRAIN, "no room", EINVAL, SPOT(batch, nr), 0 },
	{ DRAIN, "op_size 0", EINVAL, SPOT(batch, op_size), 0 },
	{ DRAIN, "op_size 40", EINVAL, SPOT(batch, op_size), 40 },
	{ DRAIN, "op_size 52", EINVAL, SPOT(batch, op_size), 52 },
	{ DRAIN, "op_size 4104", EINVAL, SPOT(batch, op_size), 4104 },
	{ DRAIN, "op_size 2^32 - 8", EINVAL, SPOT(batch, op_size), ~0U - 7 },
	{ DRAIN, "KEEP", EINVAL, SPOT(batch, flags), TWHEEL_F_KEEP },
	{ DRAIN, "highest flag", EINVAL, SPOT(batch, flags), 1U << 31 },
	{ DRAIN, "nr_done", EINVAL, SPOT(batch, nr_done), 1 },
	{ DRAIN, "nr_failed", EINVAL, SPOT(batch, nr_failed), 1 },
	{ DRAIN, "ops NULL", EFAULT, SPOT(batch, ops), 0 },
	{ DRAIN, "ops in the kernel", EFAULT, SPOT(batch, ops), ~0ULL << 32 },
	{ DRAIN, "ops at the end of all", EFAULT, SPOT(batch, ops), ~0ULL - 7 },
};

/* Write the value into the bytes of the field, on big-endian machines too. */
static void poke(union arg *arg, const struct poke *p)
{
	u32 half = (u32)p->value;

	if (p->field.size == sizeof(half))
		memcpy(arg->bytes + p->field.offset, &half, sizeof(half));
	else
		memcpy(arg->bytes + p->field.offset, &p->value, sizeof(p->value));
}

static void do_poke(const struct poke *p)
{
	static union arg arg, was;

	begin(p->c);
	fill(p->c, &arg);
	poke(&arg, p);
	was = arg;
	if (!CHECK_EQ(call(commands[p->c].cmd, &arg), -p->want))
		diag("	%s: %s", commands[p->c].name, p->what);
	CHECK(!memcmp(&arg, &was, sizeof(arg)));
	end();
}

static void do_pokes(enum command c)
{
	for (size_t i = 0; i < ARRAY_SIZE(pokes); i++)
		if (pokes[i].c == c)
			do_poke(&pokes[i]);
}

static void setup_fields(void)	{ do_pokes(SETUP); }
static void add_fields(void)	{ do_pokes(ADD); }
static void mod_fields(void)	{ do_pokes(MOD); }
static void cancel_fields(void)	{ do_pokes(CANCEL); }
static void query_fields(void)	{ do_pokes(QUERY); }
static void submit_fields(void)	{ do_pokes(SUBMIT); }
static void drain_fields(void)	{ do_pokes(DRAIN); }

#ifndef FIRST_HEADER
/* The timer may be late by @tolerance, of which at least three digits are kept. */
static void expect_tolerance(u64 of, u64 tolerance)
{
	struct twheel_op op = { .handle = of };

	CHECK_EQ(call(TWHEEL_IOC_QUERY, &op), TWHEEL_STATE_ARMED);
	CHECK(op.tolerance_ns <= tolerance && op.tolerance_ns >= tolerance - tolerance / 1000);
}

/*
 * A tolerance that is larger than the delay is no error, up to the end of time. One that ends later
 * is, and the timer keeps the last one that was taken.
 */
static void long_tolerances(void)
{
	static union arg arg;

	for (unsigned int i = 0; i < 6; i++) {
		enum command c = i % 2 ? MOD : ADD;
		u64 most;

		begin(c);
		fill(c, &arg);
		most = BIT63 - 1 - arg.op.expires_ns;
		arg.op.tolerance_ns = i < 2 ? arg.op.expires_ns + 1 : i < 4 ? most - 1 : most;
		CHECK_EQ(call(commands[c].cmd, &arg), c == MOD);
		expect_tolerance(arg.op.handle, arg.op.tolerance_ns);
		one_op = (struct twheel_op){ .handle = arg.op.handle, .expires_ns = 2 * HOUR,
					     .tolerance_ns = BIT63 - 2 * HOUR };
		CHECK_EQ(call(TWHEEL_IOC_MOD, &one_op), -EINVAL);
		expect_tolerance(arg.op.handle, arg.op.tolerance_ns);
		close(fd);
	}
}
#endif

/* ---- shapes ---------------------------------------------------------------- */

static unsigned long resized(enum command c, size_t size)
{
	unsigned long cmd = commands[c].cmd;

	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

/* The size of what @c takes, in its first version. */
static size_t first_size(enum command c)
{
	return c >= ADD && c <= QUERY ? TWHEEL_OP_SIZE_VER0 : _IOC_SIZE(commands[c].cmd);
}

/* The same in this version. */
static size_t known_size(enum command c)
{
	return c >= ADD && c <= QUERY ? before.op_size : _IOC_SIZE(commands[c].cmd);
}

static void expect_call(enum command c, unsigned long cmd, union arg *arg, int want)
{
	if (!CHECK_EQ(call(cmd, arg), -want))
		diag("	%s, as %#lx", commands[c].name, cmd);
}

static void short_sizes(void)
{
	static union arg arg;

	for (enum command c = 0; c < COMMANDS; c++) {
		size_t full = first_size(c);

		begin(c);
		fill(c, &arg);
		expect_call(c, resized(c, 0), &arg, EINVAL);
		expect_call(c, resized(c, 8), &arg, EINVAL);
		expect_call(c, resized(c, full - 8), &arg, EINVAL);
		expect_call(c, resized(c, full - 1), &arg, EINVAL);
		end();
	}
}

static void dirty_tails(void)
{
	static union arg arg;
	static const size_t longer[] = { 1, 8, 200, 4096, 9000 };

	for (enum command c = 0; c < COMMANDS; c++) {
		if (c == INFO)		/* INFO is only written to */
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(longer); i++) {
			size_t size;

			begin(c);
			size = known_size(c) + longer[i];
			fill(c, &arg);
			arg.bytes[size - 1] = 1;
			expect_call(c, resized(c, size), &arg, E2BIG);
			CHECK_EQ(arg.bytes[size - 1], 1);
			end();
		}
	}
}

/* A program that was compiled for a newer kernel, and does not use what this one does not know. */
static void clean_tails(void)
{
	static union arg arg;
	static const size_t longer[] = { 1, 8, 200, 4096, 9000 };

	for (size_t i = 0; i < COMMANDS * ARRAY_SIZE(longer); i++) {
		enum command c = i / ARRAY_SIZE(longer);
		size_t full = _IOC_SIZE(commands[c].cmd);
		size_t size = full + longer[i % ARRAY_SIZE(longer)];
		int rc;

		begin(c);
		fill(c, &arg);
		memset(arg.bytes + size, POISON, sizeof(arg) - size);
		if (c == INFO)		/* INFO is only written to: all of it */
			memset(&arg, POISON, sizeof(arg));
		rc = call(resized(c, size), &arg);
		if (!CHECK_EQ(rc, c == MOD || c == CANCEL || c == QUERY))
			diag("	%s, longer by %zu", commands[c].name, size - full);
		CHECK_EQ(arg.bytes[size], POISON);
		for (size_t k = full; k < size; k++)
			CHECK_EQ(arg.bytes[k], 0);
		if (c == INFO)
			CHECK(!memcmp(&arg.info, &before, sizeof(before)));
		if (c == ADD)
			CHECK_EQ(cancel(fd, arg.op.handle), 1);
		if (c == SUBMIT || c == DRAIN)
			CHECK_EQ(arg.batch.nr_done, 1);
		if (c == CANCEL || c == QUERY)
			CHECK_EQ(arg.op.user_data, 4711);
		close(fd);
	}
}

static void unknown_numbers(void)
{
	static union arg arg;

	begin(ADD);
	for (unsigned int nr = COMMANDS; nr < 256; nr++)
		CHECK_EQ(call(_IOWR(TWHEEL_IOC_MAGIC, nr, struct twheel_op), &arg),
			 -ENOTTY);
	for (unsigned int nr = 0; nr < 8; nr++) {
		CHECK_EQ(call(_IO(TWHEEL_IOC_MAGIC, nr), &arg), -ENOTTY);
		CHECK_EQ(call(_IO(TWHEEL_IOC_MAGIC, nr), NULL), -ENOTTY);
	}
	CHECK_EQ(call(0, NULL), -ENOTTY);
	CHECK_EQ(call(~0U, &arg), -ENOTTY);
	end();
}

static void wrong_directions(void)
{
	static union arg arg;

	for (enum command c = 0; c < COMMANDS; c++) {
		unsigned long cmd = commands[c].cmd;

		begin(c);
		fill(c, &arg);
		for (unsigned int dir = 0; dir < 4; dir++) {
			if (dir == _IOC_DIR(cmd))
				continue;
			expect_call(c, _IOC(dir, TWHEEL_IOC_MAGIC, _IOC_NR(cmd),
					    _IOC_SIZE(cmd)), &arg, ENOTTY);
		}
		for (unsigned int magic = 0; magic < 256; magic += 0x0f) {
			if (magic == TWHEEL_IOC_MAGIC || magic == 'T')
				continue;
			expect_call(c, _IOC(_IOC_DIR(cmd), magic, _IOC_NR(cmd),
					    _IOC_SIZE(cmd)), &arg, ENOTTY);
		}
		end();
	}
}

/* ---- pointers -------------------------------------------------------------- */

static void bad_pointers(void)
{
	static union arg arg;

	for (enum command c = 0; c < COMMANDS; c++) {
		size_t size = _IOC_SIZE(commands[c].cmd);
		unsigned char *p;

		begin(c);
		fill(c, &arg);
		expect_call(c, commands[c].cmd, NULL, EFAULT);
		expect_call(c, commands[c].cmd, unmapped(), EFAULT);
		expect_call(c, commands[c].cmd, (void *)~7UL, EFAULT);
		p = before_hole(size - 8);	/* the last field is missing */
		memcpy(p, &arg, size - 8);
		expect_call(c, commands[c].cmd, (void *)p, EFAULT);
		CHECK(c == INFO || !memcmp(p, &arg, size - 8));
		end();
	}
}

/* If the result cannot be stored, the operation must not be done. */
static void read_only_memory(void)
{
	static const enum command writers[] = {
		INFO, SUBMIT, ADD, MOD, CANCEL, QUERY, DRAIN };
	static union arg arg;

	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		enum command c = writers[i];

		begin(c);
		fill(c, &arg);
		if (c == ADD || c == MOD)	/* if it was done, that would show soon */
			arg.op.expires_ns = 0;
		expect_call(c, commands[c].cmd,
			    read_only(&arg, _IOC_SIZE(commands[c].cmd)), EFAULT);
		sleep_ms(20);
		end();
	}
	begin(SETUP);
	fill(SETUP, &arg);
	expect_call(SETUP, TWHEEL_IOC_SETUP, read_only(&arg, sizeof(arg.setup)), 0);
	end();
}

/* An operation lies on two pages, and one of them cannot be written to. */
static void half_read_only(void)
{
	static const enum command cs[] = { ADD, MOD, CANCEL, QUERY };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static union arg arg;

	for (u32 i = 0; i < ARRAY_SIZE(cs) * 2; i++) {
		enum command c = cs[i / 2];
		unsigned char *p = before_hole(page);

		mprotect(p, 2 * page, PROT_READ | PROT_WRITE);
		for (size_t split = 8; split < sizeof(arg.op); split += 8) {
			begin(c);
			fill(c, &arg);
			if (c == MOD)
				arg.op.expires_ns = 0;
			mprotect(p, 2 * page, PROT_READ | PROT_WRITE);
			memcpy(p + page - split, &arg.op, sizeof(arg.op));
			mprotect(p + (i & 1 ? page : 0), page, PROT_READ);
			expect_call(c, commands[c].cmd,
				    (void *)(p + page - split), EFAULT);
			sleep_ms(c == MOD ? 5 : 0);
			end();
		}
	}
}

/*
 * A race takes 2 s. If the host keeps one of the threads from running, and so not both of the
 * outcomes were @seen, it takes longer.
 */
static bool races_on(u64 began, bool seen)
{
	return now_ns(CLOCK_MONOTONIC) < began + (seen ? 2 : 60) * SEC;
}

/* Make the page at @arg read-only and writable by turns, until told to end. */
static bool flipping;

static void *flip(void *arg)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	while (__atomic_load_n(&flipping, __ATOMIC_RELAXED)) {
		mprotect(arg, page, PROT_READ);
		for (u32 i = 0; i < 100; i++)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		mprotect(arg, page, PROT_READ | PROT_WRITE);
		for (u32 i = 0; i < 300; i++)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Map @bytes of memory, and the same memory at a second address, @same. */
static unsigned char *map_twice(size_t bytes, unsigned char **same)
{
	unsigned char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0);

	*same = mremap(p, 0, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED || *same == MAP_FAILED)
		bail("mmap");
	return p;
}

/*
 * Make the operation @op. The test prepares it at @same, which is the same memory and can always be
 * written to. Returns whether it was done. If it was not, it must have been left alone.
 */
static bool done_or_clean(int fd, unsigned long cmd, u64 *handle, struct twheel_op *op,
			  struct twheel_op *same)
{
	const bool adds = cmd == TWHEEL_IOC_ADD;
	const struct twheel_op was = {
		.handle = adds ? 0 : *handle, .user_data = adds ? 5 : 0,
		.expires_ns = cmd == TWHEEL_IOC_CANCEL ? 0 : HOUR };

	*same = was;
	if (ioctl(fd, cmd, op) < 0) {
		CHECK(errno == EFAULT);
		CHECK(op->handle == was.handle && op->user_data == was.user_data);
		return false;
	}
	if (adds)
		CHECK_EQ(cancel(fd, op->handle), 1);
	if (cmd == TWHEEL_IOC_CANCEL)
		*handle = add(fd, HOUR, 7);
	return true;
}

/* An operation lies on two pages, and one of them is sometimes writable. */
static void half_flipping(void)
{
	static const unsigned long cmds[] = { TWHEEL_IOC_ADD, TWHEEL_IOC_MOD, TWHEEL_IOC_CANCEL };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *same, *p = map_twice(2 * page, &same);
	const size_t at = page - offsetof(struct twheel_op, res);
	int fd = dev_open(0);
	u64 handle = add(fd, HOUR, 7);
	pthread_t thread;
	u64 began;
	u32 nr[2] = { 0, 0 };	/* operations that failed, that were done */

	flipping = true;
	thread = start_thread(flip, p + page);
	began = now_ns(CLOCK_MONOTONIC);
	for (u32 i = 0; races_on(began, nr[0] && nr[1]) && !failed(); i++)
		nr[done_or_clean(fd, cmds[i % ARRAY_SIZE(cmds)], &handle, (void *)(p + at),
				 (void *)(same + at))]++;
	__atomic_store_n(&flipping, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	diag("%u failed, %u were done", nr[0], nr[1]);
	CHECK(nr[0] && nr[1]);
	expect_counts(fd, 1, 1, 0);
	munmap(p, 2 * page);
	munmap(same, 2 * page);
	close(fd);
}

static void read_only_ops(void)
{
	struct twheel_op ops[3];
	struct twheel_batch b = { .nr = 3, .op_size = sizeof(ops[0]) };

	for (u32 op = TWHEEL_OP_ADD; op <= TWHEEL_OP_QUERY; op++) {
		begin(SUBMIT);
		memset(ops, 0, sizeof(ops));
		for (int i = 0; i < 3; i++) {
			ops[i].op = op;
			ops[i].handle = op == TWHEEL_OP_ADD ? 0 : handle;
		}
		b.ops = (uintptr_t)read_only(ops, sizeof(ops));
		if (!CHECK_EQ(call(TWHEEL_IOC_SUBMIT, &b), -EFAULT))
			diag("	operation %u", op);
		CHECK_EQ(b.nr_done, 0);
		sleep_ms(20);
		end();
	}
}

/* ---- how it was opened ------------------------------------------------------ */

/*
 * On a descriptor that is open only for reading, a call that changes something fails, before it
 * looks at its argument.
 */
static void opened_for_reading(void)
{
	static union arg arg;

	fd = dev_open_as(O_RDONLY | O_NONBLOCK);
	handle = 1ULL << 32;
	info(fd, &before);
	for (enum command c = 0; c < COMMANDS; c++) {
		if (c == INFO || c == QUERY)
			continue;
		fill(c, &arg);
		expect_call(c, commands[c].cmd, &arg, EBADF);
		expect_call(c, commands[c].cmd, NULL, EBADF);
		expect_call(c, resized(c, 8), &arg, EBADF);
		CHECK_EQ(call(commands[c].cmd ^ 0x80, &arg), -ENOTTY);
	}
	fill(QUERY, &arg);
	expect_call(QUERY, TWHEEL_IOC_QUERY, &arg, ENOENT);
	CHECK_EQ(read(fd, &arg, sizeof(arg)), -1);
	CHECK_EQ(errno, EAGAIN);
	handle = 0;
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* The child, which may not wake the machine. */
static void without_alarms(void)
{
	static const clockid_t alarms[] = { CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM };
	struct twheel_info i;

	become(1000);
	for (u32 n = 0; n < ARRAY_SIZE(alarms); n++) {
		CHECK_EQ(setup(fd, &(struct twheel_setup){ .clockid = alarms[n] }), -EPERM);
		see(SETUP, EPERM);
	}
	info(fd, &i);
	CHECK_EQ(i.clockid, CLOCK_BOOTTIME);
	exit(failed());
}

static void alarms_forbidden(void)
{
	struct twheel_info i;
	int status;

	fd = dev_open(0);
	CHECK_EQ(setup(fd, &(struct twheel_setup){ .clockid = CLOCK_BOOTTIME }), 0);
	if (!fork())
		without_alarms();
	CHECK(wait(&status) > 0 && !status);
	CHECK_EQ(setup(fd, &(struct twheel_setup){ .clockid = CLOCK_BOOTTIME_ALARM }), 0);
	info(fd, &i);
	CHECK_EQ(i.clockid, CLOCK_BOOTTIME_ALARM);
	close(fd);
}

/* A descriptor that is open only for writing allows everything except read(). */
static void opened_for_writing(void)
{
	struct twheel_event ev;
	struct twheel_op op;
	u64 h;

	fd = dev_open_as(O_WRONLY | O_NONBLOCK);
	CHECK_EQ(setup(fd, &(struct twheel_setup){ .clockid = CLOCK_BOOTTIME }), 0);
	h = add(fd, HOUR, 1);
	CHECK_EQ(mod(fd, h, 2 * HOUR, 0), 1);
	CHECK_EQ(query(fd, h, 0, &op), TWHEEL_STATE_ARMED);
	CHECK_EQ(cancel(fd, h), 1);
	add(fd, 0, 2);
	CHECK(readable(fd, WAIT_MS));
	CHECK_EQ(read(fd, &ev, sizeof(ev)), -1);
	CHECK_EQ(errno, EBADF);
	see(READ, errno);
	expect_counts(fd, 1, 0, 1);
	close(fd);
}

/* ---- memory that goes away -------------------------------------------------- */

#define GOING	64	/* operations, each on a page of its own */
#define STRIDE	4096

/*
 * The same memory twice: as the calls get it, which is unmapped and mapped; and as this test sees
 * it.
 */
static unsigned char *going, *there;
static bool going_is_over;

static void *come_and_go(void *unused)
{
	u64 seed = 5;

	while (!going_is_over) {
		mprotect(going, GOING * STRIDE, PROT_READ);
		for (volatile u64 n = rnd(&seed) % 1000; n; n--)
			;
		mprotect(going, GOING * STRIDE, PROT_READ | PROT_WRITE);
		for (volatile u64 n = rnd(&seed) % 3000; n; n--)
			;
	}
	return unused;
}

/*
 * Call @fn again and again while its memory comes and goes. It returns whether its call was
 * complete.
 */
static void while_going(bool (*fn)(u32 n))
{
	const size_t bytes = GOING * STRIDE;
	u32 good = 0, bad = 0;
	pthread_t thread;
	u64 began;

	fd = dev_open(O_NONBLOCK);
	going = map_twice(bytes, &there);
	going_is_over = false;
	pthread_create(&thread, NULL, come_and_go, NULL);
	began = now_ns(CLOCK_MONOTONIC);
	while (races_on(began, good && bad) && !failed())
		*(fn(good + bad) ? &good : &bad) += 1;
	going_is_over = true;
	pthread_join(thread, NULL);
	diag("%u calls did all, %u did not", good, bad);
	CHECK(good && bad);
	munmap(going, bytes);
	munmap(there, bytes);
	close(fd);
}

/* A single operation is done, or fails with EFAULT. */
static bool single_goes(u32 n)
{
	static const unsigned long cmds[] = { TWHEEL_IOC_ADD, TWHEEL_IOC_MOD, TWHEEL_IOC_CANCEL };
	const unsigned long cmd = cmds[n % 3];
	struct twheel_op *op = (void *)(there + STRIDE - 24), is;
	u64 h = cmd == TWHEEL_IOC_ADD ? 0 : add_with(fd, TWHEEL_F_ABS, 1000 * HOUR, 0, 7);
	bool done;
	int rc;

	*op = (struct twheel_op){ .handle = h };
	if (cmd != TWHEEL_IOC_CANCEL) {
		op->flags = TWHEEL_F_ABS;
		op->expires_ns = 2000 * HOUR;
	}
	rc = ioctl(fd, cmd, going + STRIDE - 24);
	done = rc >= 0;
	CHECK(done ? rc == (cmd != TWHEEL_IOC_ADD) : errno == EFAULT);
	if (cmd == TWHEEL_IOC_ADD) {
		expect_counts(fd, done, done, 0);
		h = op->handle;
	} else if (cmd == TWHEEL_IOC_MOD) {
		CHECK_EQ(query(fd, h, TWHEEL_F_ABS, &is), TWHEEL_STATE_ARMED);
		CHECK_EQ(is.expires_ns, (done ? 2000 : 1000) * HOUR);
	} else {
		CHECK_EQ(query(fd, h, 0, &is), done ? -ENOENT : (int)TWHEEL_STATE_ARMED);
	}
	CHECK(!done || op->user_data == (cmd == TWHEEL_IOC_ADD ? 0 : 7));
	if (cmd == TWHEEL_IOC_ADD ? done : cmd == TWHEEL_IOC_MOD || !done)
		CHECK_EQ(cancel(fd, h), 1);
	return done;
}

/* Memory that was never touched reads as zeroes, and only a store allocates its page. */
static void untouched_memory(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct twheel_op *op = NULL;

	fd = dev_open(O_NONBLOCK);
	for (int i = 0; i < 3; i++) {
		op = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (op == MAP_FAILED)
			bail("mmap");
		CHECK_EQ(call(TWHEEL_IOC_ADD, op), 0);
		CHECK(op->handle);
		CHECK(cancel(fd, op->handle) >= 0);	/* it may have fired */
		munmap(op, page);
	}
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static u32 stood;	/* operations that were done but not counted */

/*
 * Operations that are counted were done. Of the 64 after them, no add was done, and others may have
 * been.
 */
static bool batch_goes(u32 n)
{
	struct twheel_batch b = { .ops = (uintptr_t)going, .nr = GOING, .op_size = STRIDE };
	struct twheel_op is;
	u64 handles[GOING];
	u32 gone = 0;

	for (u32 i = 0; i < GOING; i++) {
		struct twheel_op *op = (void *)(there + i * STRIDE);

		handles[i] = n % 2 ? add(fd, HOUR, i) : 0;
		*op = (struct twheel_op){ .op = n % 2 ? TWHEEL_OP_CANCEL : TWHEEL_OP_ADD,
			.handle = handles[i], .interval_ns = n % 2 ? 0 : HOUR };
	}
	if (ioctl(fd, TWHEEL_IOC_SUBMIT, &b))
		CHECK(errno == EFAULT && !b.nr_done);
	CHECK(!b.nr_failed);
	if (n % 2 == 0) {
		struct twheel_info i;

		info(fd, &i);
		CHECK_EQ(i.nr_timers, b.nr_done);
		for (u32 k = 0; k < b.nr_done; k++)
			CHECK(cancel(fd, ((struct twheel_op *)(there + k * STRIDE))->handle) >= 0);
	}
	for (u32 i = 0; n % 2 && i < GOING; i++) {
		int rc = query(fd, handles[i], 0, &is);

		CHECK(rc == -ENOENT || (rc == TWHEEL_STATE_ARMED && i >= b.nr_done));
		gone += rc == -ENOENT;
		if (rc > 0)
			CHECK_EQ(cancel(fd, handles[i]), 1);
	}
	stood += gone > b.nr_done ? gone - b.nr_done : 0;
	expect_counts(fd, 0, 0, 0);
	return b.nr_done == GOING;
}

static void memory_goes(void)
{
	while_going(single_goes);
}

static void memory_of_batch_goes(void)
{
	while_going(batch_goes);
	diag("%u cancels were done and not told", stood);
}

/* ---- limits ---------------------------------------------------------------- */

static void setup_after_add(void)
{
	const struct twheel_setup s = { .clockid = CLOCK_BOOTTIME };

	begin(ADD);
	CHECK_EQ(setup(fd, &s), -EBUSY);
	CHECK_EQ(call(TWHEEL_IOC_SETUP, (void *)&s), -EBUSY);
	end();
	/* A file that has had a timer refuses SETUP. */
	begin(SETUP);
	CHECK_EQ(cancel(fd, add(fd, HOUR, 1)), 1);
	CHECK_EQ(setup(fd, &s), -EBUSY);
	close(fd);
	/* A file in which an add failed accepts it. */
	begin(SETUP);
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &(struct twheel_op){ .flags = 1 << 9 }),
		 -EINVAL);
	CHECK_EQ(setup(fd, &s), 0);
	close(fd);
}

/* A file that has just grown moves its timers, a moment later: wait until nothing changes. */
static void at_rest(void)
{
	struct twheel_info after;

	info(fd, &after);
	do {
		before = after;
		sleep_ms(20);
		info(fd, &after);
	} while (!after.nr_moves || memcmp(&before, &after, sizeof(after)));
}

static void quota(void)
{
	const struct twheel_setup s = { .clockid = CLOCK_MONOTONIC, .max_timers = 70 };
	struct twheel_op op = { .expires_ns = HOUR };
	struct twheel_op ops[4];
	u64 handles[70];
	u32 bad;

	begin(SETUP);
	CHECK_EQ(setup(fd, &s), 0);
	for (int i = 0; i < 70; i++)
		handles[i] = add(fd, HOUR, 1);
	at_rest();
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), -EDQUOT);
	CHECK_EQ(call(TWHEEL_IOC_ADD, &op), -EDQUOT);
	handle = handles[69];
	for (int i = 0; i < 4; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	ops[1] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL, .handle = handles[3] };
	CHECK_EQ(submit(fd, ops, 4, NULL, &bad), 0);
	CHECK_EQ(bad, 2);
	CHECK_EQ(ops[0].res, -EDQUOT);
	CHECK_EQ(ops[1].res, 1);
	CHECK_EQ(ops[2].res, 0);
	CHECK_EQ(ops[3].res, -EDQUOT);
	expect_counts(fd, 70, 70, 0);
	CHECK_EQ(cancel(fd, ops[2].handle), 1);
	add(fd, HOUR, 1);
	CHECK_EQ(op_ioctl(fd, TWHEEL_IOC_ADD, &op), -EDQUOT);
	end();
}

/* Another file's handle names nothing here, even if it looks alike. */
static void foreign_handle(void)
{
	int other = dev_open(0);
	struct twheel_op op;
	u64 alien;

	for (int i = 0; i < 10; i++)
		alien = add(other, HOUR, 1);
	begin(ADD);
	CHECK_EQ(cancel(fd, alien), -ENOENT);
	CHECK_EQ(mod(fd, alien, HOUR, 0), -ENOENT);
	CHECK_EQ(query(fd, alien, 0, &op), -ENOENT);
	end();
	expect_counts(other, 10, 10, 0);
	close(other);
}

/* ---- batches --------------------------------------------------------------- */

static void failing_ops(void)
{
	struct twheel_event ev;
	u64 gone, kept;
	u32 done, bad;

	begin(SUBMIT);
	gone = add(fd, 0, 1);
	CHECK_EQ(read_one(fd, &ev), 1);
	kept = add(fd, HOUR, 2);
	struct { struct twheel_op op; int want; } rows[] = {
		{ { .op = 0, .expires_ns = HOUR }, -EINVAL },
		{ { .op = TWHEEL_OP_ADD, .expires_ns = HOUR }, 0 },
		{ { .op = 5 }, -EINVAL },
		{ { .op = TWHEEL_OP_CANCEL, .handle = gone }, -ENOENT },
		{ { .op = TWHEEL_OP_CANCEL, .handle = kept }, 1 },
		{ { .op = TWHEEL_OP_CANCEL, .handle = kept }, -ENOENT },
		{ { .op = TWHEEL_OP_MOD, .handle = kept }, -ENOENT },
		{ { .op = TWHEEL_OP_MOD, .handle = handle, .expires_ns = HOUR }, 1 },
		{ { .op = TWHEEL_OP_MOD, .handle = handle, .res = 1 }, -EINVAL },
		{ { .op = TWHEEL_OP_ADD, .flags = 1 << 20 }, -EINVAL },
		{ { .op = TWHEEL_OP_ADD, .expires_ns = BIT63 }, -EINVAL },
		{ { .op = TWHEEL_OP_CANCEL, .handle = handle, .reserved = 1 }, -EINVAL },
		{ { .op = TWHEEL_OP_ADD, .expires_ns = 2 * HOUR }, 0 },
	};
	struct twheel_op ops[ARRAY_SIZE(rows)];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ops[i] = rows[i].op;
	CHECK_EQ(submit(fd, ops, ARRAY_SIZE(ops), &done, &bad), 0);
	CHECK_EQ(done, ARRAY_SIZE(ops));
	CHECK_EQ(bad, 9);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!CHECK_EQ(ops[i].res, rows[i].want))
			diag("	row %zu", i);
	expect_counts(fd, 3, 3, 0);
	CHECK_EQ(cancel(fd, handle), 1);
	close(fd);
}

/*
 * A greater distance between operations than needed: the gap must be zero, or the result is E2BIG.
 */
static void long_ops(void)
{
	static const u32 sizes[] = { 64, 72, 192, 4096 };
	unsigned char *mem = malloc(100 * 4096);

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct twheel_batch b = { .ops = (uintptr_t)mem, .nr = 100,
					  .op_size = sizes[s] };
		u32 wrong = 0;

		begin(SUBMIT);
		memset(mem, 0, 100 * sizes[s]);
		for (u32 i = 0; i < 100; i++) {
			struct twheel_op *op = (void *)(mem + i * sizes[s]);

			op->op = TWHEEL_OP_ADD;
			op->expires_ns = HOUR;
			mem[(i + 1) * sizes[s] - 1] = i % 10 == 3;
		}
		CHECK_EQ(call(TWHEEL_IOC_SUBMIT, &b), 0);
		CHECK_EQ(b.nr_done, 100);
		CHECK_EQ(b.nr_failed, 10);
		for (u32 i = 0; i < 100; i++) {
			struct twheel_op *op = (void *)(mem + i * sizes[s]);

			wrong += op->res != (i % 10 == 3 ? -E2BIG : 0);
			wrong += !op->handle != (i % 10 == 3);
			wrong += mem[(i + 1) * sizes[s] - 1] != (i % 10 == 3);
		}
		CHECK_EQ(wrong, 0);
		expect_counts(fd, 91, 91, 0);
		close(fd);
	}
	free(mem);
}

/*
 * An operation that is too long, whose result cannot be stored, ends the batch as any other does:
 * what follows it is not done.
 */
static void long_and_read_only(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct twheel_batch b = { .ops = (uintptr_t)mem, .nr = 2, .op_size = (u32)page };

	if (mem == MAP_FAILED)
		bail("mmap");
	begin(SUBMIT);
	((struct twheel_op *)mem)->op = TWHEEL_OP_QUERY;
	mem[page - 1] = 1;
	*(struct twheel_op *)(mem + page) = (struct twheel_op){
		.op = TWHEEL_OP_CANCEL, .handle = handle };
	CHECK(!mprotect(mem, page, PROT_READ));
	CHECK_EQ(call(TWHEEL_IOC_SUBMIT, &b), -EFAULT);
	CHECK_EQ(b.nr_done, 0);
	CHECK_EQ(cancel(fd, handle), 1);
	munmap(mem, 2 * page);
	close(fd);
}

/* An array that is all right for so long: what was counted stands, no more was done. */
static void half_an_array(void)
{
	static const u32 there[] = { 1, 63, 64, 65, 200, 299 };

	for (size_t t = 0; t < ARRAY_SIZE(there); t++) {
		struct twheel_op *ops = before_hole(there[t] * sizeof(*ops));
		struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = 300,
					  .op_size = sizeof(*ops) };
		u32 wrong = 0;
		int rc;

		begin(SUBMIT);
		memset(ops, 0, there[t] * sizeof(*ops));
		for (u32 i = 0; i < there[t]; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
						     .expires_ns = HOUR };
		rc = call(TWHEEL_IOC_SUBMIT, &b);
		CHECK_EQ(rc, b.nr_done ? 0 : -EFAULT);
		CHECK(b.nr_done <= there[t]);
		/* 200 are enough to see that it is not all or nothing. */
		CHECK(there[t] < 200 || b.nr_done);
		CHECK_EQ(b.nr_failed, 0);
		for (u32 i = 0; i < there[t]; i++)
			wrong += !ops[i].handle != (i >= b.nr_done);
		CHECK_EQ(wrong, 0);
		for (u32 i = 0; i < b.nr_done; i++)
			CHECK_EQ(cancel(fd, ops[i].handle), 1);
		expect_counts(fd, 1, 1, 0);
		close(fd);
	}
}

static void biggest_batch(void)
{
	struct twheel_op *ops = calloc(TWHEEL_BATCH_MAX, sizeof(*ops));
	u32 done, bad;

	begin(SUBMIT);
	for (u32 i = 0; i < TWHEEL_BATCH_MAX; i++) {
		ops[i].op = i & 1 ? TWHEEL_OP_CANCEL : TWHEEL_OP_ADD;
		ops[i].expires_ns = i & 1 ? 0 : HOUR;
		ops[i].handle = i & 1 ? 12345 : 0;
	}
	CHECK_EQ(submit(fd, ops, TWHEEL_BATCH_MAX, &done, &bad), 0);
	CHECK_EQ(done, TWHEEL_BATCH_MAX);
	CHECK_EQ(bad, TWHEEL_BATCH_MAX / 2);
	expect_counts(fd, TWHEEL_BATCH_MAX / 2 + 1, TWHEEL_BATCH_MAX / 2 + 1, 0);
	close(fd);
	free(ops);
}

/* ---- cells ----------------------------------------------------------------- */

static void *do_read(void *buf)
{
	errno = 0;
	if (read(fd, buf, sizeof(struct twheel_event)) < 0)
		see(READ, errno);
	return NULL;
}

static void read_errors(void)
{
	struct twheel_event ev;

	fd = dev_open(O_NONBLOCK);
	do_read(&ev);
	CHECK_EQ(errno, EAGAIN);
	CHECK(read(fd, &ev, 8) < 0);
	see(READ, errno);
	add(fd, 0, 1);
	CHECK(readable(fd, WAIT_MS));
	do_read(unmapped());
	CHECK_EQ(errno, EFAULT);
	expect_counts(fd, 1, 0, 1);
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Call @fn(@arg) in a thread. If it waits, a signal must end it. */
static void interrupt(void *(*fn)(void *), void *arg)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct timespec soon;
	pthread_t thread;
	u32 tries = 0;

	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&thread, NULL, fn, arg);
	do {
		sleep_ms(20);
		pthread_kill(thread, SIGUSR1);
		clock_gettime(CLOCK_REALTIME, &soon);
	} while (tries++ < 100 && pthread_timedjoin_np(thread, NULL, &soon));
	CHECK(tries <= 100);
}

static void read_interrupted(void)
{
	struct twheel_event ev;

	fd = dev_open(0);
	interrupt(do_read, &ev);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

/* What can be done with a timer while its event is being copied to the reader. */
static void being_read(void)
{
	struct twheel_op op = { 0 };
	struct twheel_event *ev;
	pthread_t reader;
	struct stall s;
	u64 h;

	s = stall_new();
	ev = (void *)s.page;
	fd = dev_open(0);
	h = add(fd, 0, 4711);
	pthread_create(&reader, NULL, do_read, ev);
	stall_wait(&s);
	op.handle = h;
	CHECK_EQ(call(TWHEEL_IOC_CANCEL, &op), -EALREADY);
	CHECK_EQ(call(TWHEEL_IOC_MOD, &op), -EALREADY);
	expect_counts(fd, 1, 0, 0);
	CHECK_EQ(query(fd, h, 0, &op), TWHEEL_STATE_READY);
	CHECK_EQ(op.user_data, 4711);
	CHECK_EQ(drain(fd, &op, 1, 0), 0);
	stall_give(&s);
	pthread_join(reader, NULL);
	CHECK_EQ(ev->handle, h);
	CHECK_EQ(ev->user_data, 4711);
	CHECK_EQ(cancel(fd, h), -ENOENT);
	expect_counts(fd, 0, 0, 0);
	stall_end(&s);
	close(fd);
}

static void *do_submit(void *ops)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = 1,
				  .op_size = sizeof(struct twheel_op) };

	CHECK_EQ(ioctl(fd, TWHEEL_IOC_SUBMIT, &b), 0);
	CHECK_EQ(b.nr_failed, 1);	/* op 0 */
	return NULL;
}

static void *do_command(void *which)
{
	const enum command c = *(enum command *)which;
	static union arg arg;

	fill(c, &arg);
	expect_call(c, commands[c].cmd, &arg, EINTR);
	return NULL;
}

/* Commands that wait because another call uses the file. */
static void commands_interrupted(void)
{
	pthread_t submitter;
	struct stall s;

	s = stall_new();
	begin(ADD);
	pthread_create(&submitter, NULL, do_submit, s.page);
	stall_wait(&s);
	for (enum command c = 0; c < COMMANDS; c++)
		if (c != INFO)
			interrupt(do_command, &c);
	stall_give(&s);
	pthread_join(submitter, NULL);
	stall_end(&s);
	end();
}

/* ---- commands of io_uring ----------------------------------------------------- */

static struct ring ring;

static int command(u32 cmd_op, struct twheel_op *ops, u32 nr)
{
	struct io_uring_cqe cqe = { .res = -ETIME };

	ring_command(ring_sqe(&ring, IORING_OP_URING_CMD, fd, 1), cmd_op, ops, nr);
	CHECK_EQ(ring_enter(&ring, 0), 1);
	CHECK(ring_wait(&ring, &cqe, WAIT_MS));
	if (cqe.res < 0)
		see(URING, -cqe.res);
	return cqe.res;
}

/* None of these changes anything. test_uring_cmd has more of them. */
static void bad_commands(void)
{
	struct twheel_op good = { .op = TWHEEL_OP_ADD, .expires_ns = HOUR };

	ring_open(&ring, 8, 0);
	begin(ADD);
	CHECK_EQ(command(TWHEEL_IOC_SUBMIT, &good, 1), -EOPNOTSUPP);
	CHECK_EQ(command(TWHEEL_IOC_INFO, &good, 1), -EOPNOTSUPP);
	CHECK_EQ(command(TWHEEL_URING_SUBMIT, &good, TWHEEL_BATCH_MAX + 1), -EINVAL);
	CHECK_EQ(command(TWHEEL_URING_DRAIN, &good, 0), -EINVAL);
	CHECK_EQ(command(TWHEEL_URING_SUBMIT, unmapped(), 1), -EFAULT);
	CHECK_EQ(command(TWHEEL_URING_DRAIN, unmapped(), 1), -EFAULT);
	end();
	fd = dev_open_as(O_RDONLY | O_NONBLOCK);
	CHECK_EQ(command(TWHEEL_URING_SUBMIT, &good, 1), -EBADF);
	CHECK_EQ(command(TWHEEL_URING_DRAIN, &good, 1), -EBADF);
	expect_counts(fd, 0, 0, 0);
	close(fd);
	CHECK(!good.handle && !good.res);
	ring_close(&ring);
}

/*
 * A command that waits is cancelled. If a worker has begun to wait for the file, the command fails
 * with EINTR. If not, with ECANCELED: then try again.
 */
static void command_interrupted(void)
{
	struct twheel_op good = { .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	pthread_t submitter;
	struct stall s = stall_new();
	int res;

	begin(ADD);
	ring_open(&ring, 8, 0);
	pthread_create(&submitter, NULL, do_submit, s.page);
	stall_wait(&s);
	do {
		ring_command(ring_sqe(&ring, IORING_OP_URING_CMD, fd, 1), TWHEEL_URING_SUBMIT,
			     &good, 1);
		CHECK_EQ(ring_enter(&ring, 0), 1);
		sleep_ms(50);
		res = ring_cancel(&ring, WAIT_MS);
	} while (res == -ECANCELED);
	if (CHECK_EQ(res, -EINTR))
		see(URING, EINTR);
	CHECK(!good.handle);
	stall_give(&s);
	pthread_join(submitter, NULL);
	stall_end(&s);
	ring_close(&ring);
	end();
}

/* How many operations a page has: more than are done at once. */
#define PAGE_OPS	(4096 / sizeof(struct twheel_op))

struct long_submit {
	struct stall		s;
	struct twheel_batch	batch;
};

static void *submits_long(void *arg)
{
	struct long_submit *l = arg;

	l->batch = (struct twheel_batch){ .ops = (uintptr_t)l->s.page, .nr = PAGE_OPS,
					  .op_size = sizeof(struct twheel_op) };
	CHECK_EQ(ioctl(fd, TWHEEL_IOC_SUBMIT, &l->batch), 0);
	return NULL;
}

/*
 * A signal comes while the first operations are being read. These are done, and no others. The file
 * has one timer. On PREEMPT_RT no lock hold has more than FIRST_OPS operations, with whatever
 * number of timers, so 64 of them are read at once.
 */
static void signal_ends_batch(void)
{
	const u64 first = is_preempt_rt() ? 64 : FIRST_OPS;
	struct sigaction sa = { .sa_handler = on_signal };
	struct long_submit l = { .s = stall_new() };
	pthread_t thread;

	sigaction(SIGUSR1, &sa, NULL);
	begin(ADD);
	pthread_create(&thread, NULL, submits_long, &l);
	stall_wait(&l.s);
	pthread_kill(thread, SIGUSR1);
	stall_give(&l.s);
	pthread_join(thread, NULL);
	stall_end(&l.s);
	CHECK_EQ(l.batch.nr_done, first);
	CHECK_EQ(l.batch.nr_failed, first);	/* op 0 */
	end();
}

static int try_open(void)
{
	int rc = open("/dev/twheel", O_RDWR | O_CLOEXEC);

	if (rc < 0)
		see(OPEN, errno);
	else
		close(rc);
	return rc < 0 ? -errno : 0;
}

/* The limit on the files of a user. */
static void file_quota(void)
{
	u32 was;

	fd = dev_open(0);
	param_set("max_user_files", 1, &was);
	CHECK_EQ(try_open(), -EDQUOT);
	param_set("max_user_files", was, NULL);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static int try_add(void)
{
	return call(TWHEEL_IOC_ADD, &(struct twheel_op){ .expires_ns = HOUR });
}

/*
 * In a cgroup of 64 MiB, a part of which is stacks of threads: add timers until there is no memory.
 * One at a time that would be a million calls, and a minute on an emulated processor and a busy
 * host.
 */
static void use_up_memory(void)
{
	static struct twheel_op ops[1000];
	u32 bad = 0, done = 0;
	int rc = 0;

	fd = dev_open(0);
	cgroup_join("errors");
	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	for (u32 n = 0; !bad && n < 1000000 && !failed(); n += done) {
		for (u32 i = 0; i < ARRAY_SIZE(ops); i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
		CHECK_EQ(submit(fd, ops, ARRAY_SIZE(ops), &done, &bad), 0);
	}
	/* A refused allocation may have made the kernel reclaim a little memory. */
	for (u32 n = 0; !rc && n < 100000; n++)
		rc = try_add();
	CHECK_EQ(rc, -ENOMEM);
}

static void full_cgroup(void)
{
	int status = -1;
	pid_t pid;

	cgroup_set("errors", "memory.max", 64 << 20);
	pid = fork();
	if (!pid) {
		use_up_memory();
		fflush(stdout);
		_exit(failed());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(cgroup_get("errors", "memory.events", "oom_kill"), 0);
	cgroup_remove("errors");
}

/* Call @fn, and let the first allocation fail. Returns what @fn does. */
static int with_failure(int (*fn)(void))
{
	int nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), rc;

	if (pwrite(nth, "1", 1, 0) < 0)
		bail("fail-nth");
	rc = fn();
	if (pwrite(nth, "0", 1, 0) < 0)
		bail("fail-nth");
	close(nth);
	return rc;
}

/*
 * Call @fn with a new file, and let the first allocation fail. A debugging kernel allocates for
 * itself now and then, and that may have been the one. So a call that succeeded is made again, and
 * must fail once in three times. Returns what @fn does.
 */
static int without_memory(int (*fn)(void))
{
	int rc = 0;

	for (int i = 0; i < 3 && rc >= 0; i++) {
		fd = dev_open(0);
		rc = with_failure(fn);
		close(fd);
	}
	return rc;
}

static bool can_fail(void)
{
	return !access("/proc/thread-self/fail-nth", F_OK);
}

static int try_submit(void)
{
	union arg arg;

	fill(SUBMIT, &arg);
	return call(TWHEEL_IOC_SUBMIT, &arg);
}

static int try_command(void)
{
	one_op = (struct twheel_op){ .op = TWHEEL_OP_ADD, .expires_ns = HOUR };
	return command(TWHEEL_URING_SUBMIT, &one_op, 1);
}

static void no_memory(void)
{
	if (can_fail()) {
		CHECK_EQ(without_memory(try_add), -ENOMEM);
		CHECK_EQ(without_memory(try_submit), -ENOMEM);
		ring_open(&ring, 8, 0);
		fd = dev_open(0);
		CHECK_EQ(command(0, NULL, 0), -EOPNOTSUPP);	/* room for requests */
		close(fd);
		CHECK_EQ(without_memory(try_command), -ENOMEM);
		ring_close(&ring);
		CHECK_EQ(without_memory(try_open), -ENOMEM);
	} else if (CHECK(cgroup_make("errors"))) {
		full_cgroup();
	}
}

/*
 * The table of the UAPI header, which scripts/gates/lint.sh compares with this one. If a place has
 * an x, some test here must have seen the error. If it has a dot, none may have seen it.
 */
static const char *const table[] = {
	"EINVAL     .    x     x     x    x   x     x     x     x     .    x    x",
	"E2BIG      .    x     .     x    x   x     x     x     x     .    .    .",
	"EFAULT     .    x     x     x    x   x     x     x     x     .    x    x",
	"EPERM      .    x     .     .    .   .     .     .     .     .    .    .",
	"EBADF      .    x     .     x    x   x     x     .     x     .    x    x",
	"ENOTTY     .    .     .     .    .   .     .     .     .     x    .    .",
	"ENOENT     .    .     .     .    .   x     x     x     .     .    .    .",
	"EALREADY   .    .     .     .    .   x     x     .     .     .    .    .",
	"EBUSY      .    x     .     .    .   .     .     .     .     .    .    .",
	"EDQUOT     x    .     .     .    x   .     .     .     .     .    .    .",
	"ENOMEM     x    .     .     x    x   .     .     .     .     .    .    x",
	"EAGAIN     .    .     .     .    .   .     .     .     .     .    x    .",
	"EINTR      .    x     .     x    x   x     x     x     x     .    x    x",
	"EOPNOTSUPP .    .     .     .    .   .     .     .     .     .    .    x",
};

static const int columns[CALLS] = { OPEN, SETUP, INFO, SUBMIT, ADD, MOD, CANCEL, QUERY, DRAIN,
				    OTHER, READ, URING };

/* Why a call cannot fail with an error: each dot has a reason here, the first that fits. */
static const struct {
	int		err;	/* 0: any */
	int		call;	/* -1: any */
	const char	*why;
} reasons[] = {
	{ ENOTTY, OPEN, "is no ioctl" },
	{ ENOTTY, READ, "is no ioctl" },
	{ ENOTTY, URING, "is no ioctl" },
	{ EOPNOTSUPP, -1, "is no command of io_uring's" },
	{ ENOTTY, -1, "there is such an ioctl" },
	{ 0, OTHER, "is refused before anything is looked at" },
	{ EAGAIN, -1, "waits for no event" },
	{ EBUSY, -1, "may be called when there are timers" },
	{ ENOENT, -1, "names no timer" },
	{ EALREADY, QUERY, "calls the timer ready" },
	{ EALREADY, -1, "does not touch a timer whose event is read" },
	{ EDQUOT, -1, "takes no place for a timer; operations of SUBMIT tell their own" },
	{ ENOMEM, -1, "allocates nothing; operations of SUBMIT tell their own" },
	{ EPERM, -1, "chooses no clock" },
	{ EBADF, OPEN, "has no descriptor" },
	{ EBADF, -1, "changes nothing" },
	{ E2BIG, OPEN, "takes no structure" },
	{ E2BIG, READ, "takes no structure" },
	{ E2BIG, URING, "takes one that has no room to grow; operations tell their own" },
	{ E2BIG, INFO, "fills in what this kernel does not know with zeros" },
	{ EFAULT, OPEN, "the device does not see the caller's memory" },
	{ EINVAL, OPEN, "takes whatever flags open(2) takes" },
	{ EINTR, OPEN, "waits for nobody" },
	{ EINTR, INFO, "waits for nobody" },
};

static const char *reason(int err, int which)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if ((!reasons[i].err || reasons[i].err == err) &&
		    (reasons[i].call < 0 || reasons[i].call == which))
			return reasons[i].why;
	return NULL;
}

/* May the error be unseen on this kernel, because it cannot make a small allocation fail? */
static bool may_miss(int err, int which)
{
	return err == ENOMEM && !can_fail() && (which == OPEN || which == SUBMIT || which == URING);
}

static void each_cell(void)
{
	u32 hit = 0, missed = 0, dots = 0;

	for (size_t e = 0; e < ARRAY_SIZE(errnos); e++) {
		const char *p = table[e] + strcspn(table[e], " ");

		for (int c = 0; c < CALLS; c++) {
			const bool was_seen = (*seen)[columns[c]][e];

			p += strspn(p, " ");
			hit += *p == 'x' && was_seen;
			missed += *p == 'x' && !was_seen && may_miss(errnos[e], columns[c]);
			dots += *p == '.' && !was_seen && reason(errnos[e], columns[c]);
			if (*p == 'x' ? !was_seen && !may_miss(errnos[e], columns[c]) :
			    was_seen || !reason(errnos[e], columns[c]))
				diag("wrong: %.*s in column %d", (int)strcspn(table[e], " "),
				     table[e], c + 1);
			p++;
		}
	}
	diag("%u seen, %u cannot be, %u cannot in this kernel", hit, dots, missed);
	CHECK_EQ(hit + dots + missed, CALLS * ARRAY_SIZE(errnos));
	CHECK(hit > missed);
}

static const struct test tests[] = {
	{ setup_fields, "SETUP: bad fields" },
	{ add_fields, "ADD: bad fields" },
	{ mod_fields, "MOD: bad fields" },
#ifndef FIRST_HEADER
	{ long_tolerances, "a tolerance may be larger than the delay, and end with time" },
#endif
	{ cancel_fields, "CANCEL: bad fields" },
	{ query_fields, "QUERY: bad fields" },
	{ submit_fields, "SUBMIT: bad fields, 2^32 operations, none" },
	{ drain_fields, "DRAIN: bad fields, no room" },
	{ short_sizes, "structures too short: EINVAL" },
	{ dirty_tails, "longer structures whose rest is not 0: E2BIG" },
	{ clean_tails, "longer structures whose rest is 0 are accepted" },
	{ unknown_numbers, "unknown ioctl numbers: ENOTTY" },
	{ wrong_directions, "wrong directions and magics: ENOTTY" },
	{ bad_pointers, "NULL, unmapped, half mapped: EFAULT" },
	{ read_only_memory, "read-only structures: EFAULT, nothing done" },
	{ half_read_only, "half read-only operations: EFAULT, nothing done" },
	{ half_flipping, "operations that become half read-only: EFAULT, nothing stored" },
	{ read_only_ops, "read-only operations: EFAULT, nothing done" },
	{ untouched_memory, "memory that was never touched: done" },
	{ opened_for_reading, "O_RDONLY: EBADF for all but INFO, QUERY and read()" },
	{ alarms_forbidden, "alarm clocks without CAP_WAKE_ALARM: EPERM" },
	{ opened_for_writing, "O_WRONLY: EBADF for read() alone" },
	{ memory_goes, "memory that goes away: an operation is done and stored, or neither" },
	{ memory_of_batch_goes, "memory that goes away: a batch counts all its adds" },
	{ setup_after_add, "SETUP after a timer: EBUSY" },
	{ quota, "max_timers: EDQUOT" },
	{ foreign_handle, "handles of another file: ENOENT" },
	{ failing_ops, "a batch of good and bad operations" },
	{ long_ops, "op_size beyond the operation" },
	{ long_and_read_only, "an operation too long in read-only memory ends a batch" },
	{ half_an_array, "a batch that ends in unmapped memory" },
	{ biggest_batch, "a batch of the greatest size" },
	{ read_errors, "read(): EAGAIN, EINVAL, EFAULT" },
	{ read_interrupted, "read(): EINTR" },
	{ being_read, "CANCEL and MOD while the event is being read: EALREADY" },
	{ commands_interrupted, "calls that wait for another one: EINTR" },
	{ bad_commands, "commands of io_uring: EOPNOTSUPP, EINVAL, EFAULT, EBADF" },
	{ command_interrupted, "a command that waits and is cancelled: EINTR" },
	{ signal_ends_batch, "a signal ends a batch, which says how much of it was done" },
	{ file_quota, "max_user_files: EDQUOT" },
	{ no_memory, "open() and ADD without memory: ENOMEM" },
	{ each_cell, "the table of errors: each x was seen, each dot has a reason" },
};

int main(void)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		bail("mmap");
	return run_tests(tests, ARRAY_SIZE(tests));
}
