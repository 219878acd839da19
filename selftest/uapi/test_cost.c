// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What it costs to arm a timer: in batches of 256, one by one, and as a timerfd that epoll watches.
 * One process measures all three in turn, with hardly any other timers pending. The median of
 * ROUNDS rounds counts.
 *
 * The bounds are for a machine on which an instruction takes a ns. There a timer in a batch was
 * 20.6 times as cheap as a timerfd, a timer by itself 6.7 times, and a cancel cost 0.84 of an add.
 * The bounds leave a sixth to a fifth for other compilers and kernels.
 *
 * Another test measures what it costs to read the line of a base in debugfs. It must be the same,
 * however many lines there are.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define BATCH	256
#define ROUNDS	41
#define FEW	100
#define MANY	900

static int fd;
static struct twheel_op ops[BATCH];

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static int do_batch(u32 nr)
{
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = nr,
				  .op_size = sizeof(ops[0]) };

	return ioctl(fd, TWHEEL_IOC_SUBMIT, &b) || b.nr_done != nr || b.nr_failed;
}

static void fill(void)
{
	static u64 seed = 5;

	memset(ops, 0, sizeof(ops));
	for (u32 i = 0; i < BATCH; i++) {
		ops[i].op = TWHEEL_OP_ADD;
		ops[i].user_data = i;
		ops[i].expires_ns = HOUR + rnd(&seed) % HOUR;
	}
}

/* Cancel the timers of the last round. Returns the time that it took, as the other functions do. */
static u64 cancel_batch(void)
{
	u64 start;

	for (u32 i = 0; i < BATCH; i++)
		ops[i] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
					     .handle = ops[i].handle };
	start = now();
	CHECK(!do_batch(BATCH));
	start = now() - start;
	for (u32 i = 0; i < BATCH; i++)
		CHECK_EQ(ops[i].res, 1);
	return start;
}

static u64 batch_add(u64 *cancelling)
{
	u64 start;

	fill();
	start = now();
	CHECK(!do_batch(BATCH));
	start = now() - start;
	*cancelling = cancel_batch();
	return start;
}

static u64 single_add(void)
{
	u64 start;
	int bad = 0;

	fill();
	start = now();
	for (u32 i = 0; i < BATCH; i++)
		bad |= ioctl(fd, TWHEEL_IOC_ADD, &ops[i]);
	start = now() - start;
	CHECK(!bad);
	cancel_batch();
	return start;
}

static u64 timerfd_add(void)
{
	struct itimerspec when = { .it_value.tv_sec = 5000 };
	int fds[BATCH], bad = 0, epfd = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };
	u64 start;

	start = now();
	for (u32 i = 0; i < BATCH; i++) {
		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		e.data.u32 = i;
		bad |= epoll_ctl(epfd, EPOLL_CTL_ADD, fds[i], &e);
		bad |= timerfd_settime(fds[i], 0, &when, NULL);
	}
	start = now() - start;
	CHECK(!bad);
	for (u32 i = 0; i < BATCH; i++)
		close(fds[i]);
	close(epfd);
	return start;
}

static int compare(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The median, in ns for each timer. */
static double median(u64 *rounds)
{
	qsort(rounds, ROUNDS, sizeof(*rounds), compare);
	return (double)rounds[ROUNDS / 2] / BATCH;
}

static double batch_ns, cancel_ns, single_ns, timerfd_ns;

static void measure(void)
{
	static u64 batch[ROUNDS], cancels[ROUNDS], single[ROUNDS], timerfd[ROUNDS];

	fd = dev_open(0);
	for (int i = -2; i < ROUNDS; i++) {	/* the first two warm up */
		int k = i < 0 ? 0 : i;

		batch[k] = batch_add(&cancels[k]);
		timerfd[k] = timerfd_add();
		single[k] = single_add();
	}
	batch_ns = median(batch);
	cancel_ns = median(cancels);
	single_ns = median(single);
	timerfd_ns = median(timerfd);
	diag("batch add: %.0f ns, timerfd: %.0f ns, 1/%.1f", batch_ns, timerfd_ns,
	     timerfd_ns / batch_ns);
	diag("single add: %.0f ns, 1/%.1f of a timerfd; batch cancel: %.0f ns", single_ns,
	     timerfd_ns / single_ns, cancel_ns);
	expect_counts(fd, 0, 0, 0);
	close(fd);
}

static void batch_costs(void)
{
	CHECK(18 * batch_ns <= timerfd_ns);
}

static void single_costs(void)
{
	CHECK(28 * single_ns <= 5 * timerfd_ns);
}

static void cancel_costs(void)
{
	CHECK(cancel_ns > 0 && cancel_ns <= batch_ns);
}

static const char bases[] = "/sys/kernel/debug/twheel/bases";

/* Read the lines of all bases, @least at least. Returns the time of a line. */
static double line_ns(u64 least)
{
	int in = open(bases, O_RDONLY);
	u64 lines = 0, start = now();
	char text[65536];
	ssize_t got;

	CHECK(in >= 0);
	while ((got = read(in, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	start = now() - start;
	CHECK_EQ(got, 0);
	CHECK(lines >= least);
	close(in);
	return (double)start / (double)lines;
}

static void lines_cost(void)
{
	const struct rlimit room = { 2 * MANY, 2 * MANY };
	static int fds[MANY];
	double few = 0, many;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &room), 0);
	for (u32 i = 0; i < MANY; i++) {
		fds[i] = dev_open(0);
		add_with(fds[i], 0, HOUR, 0, i);
		if (i == FEW)
			few = line_ns(FEW);
	}
	many = line_ns(MANY);
	diag("a line of debugfs: %.0f ns of %u, %.0f ns of %u", few, FEW, many, MANY);
	CHECK(many <= 1.5 * few);
	for (u32 i = 0; i < MANY; i++)
		close(fds[i]);
}

static const struct test tests[] = {
	{ measure, "batches, single adds and timerfds are measured" },
	{ batch_costs, "an add in a batch costs 1/18 of a timerfd at most" },
	{ single_costs, "a single add costs 1/5.6 of a timerfd at most" },
	{ cancel_costs, "a cancel in a batch costs no more than an add" },
	{ lines_cost, "a line of debugfs costs the same, however many bases there are" },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
