// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel-demo: a million timers on one descriptor, each of them accounted for.
 *
 * The program arms them in batches of 256, and from the first moment on reads events through
 * epoll, 256 at a time. Meanwhile it cancels some timers and re-arms some, in
 * batches too. It compares every event with what was asked for:
 *
 *	lost	a one-shot that did not fire, a period that was left out, or a timer
 *		that a cancel found armed more than LOST_NS after it was due
 *	early	an event read before its deadline, or a deadline before the one asked
 *	twice	a one-shot or a period that fired again
 *	late	how much later than its deadline an event is, by the clock after read(): that
 *		includes waking up this process, reading, and rounding up to ticks of 1 ms
 *
 * The run is over when all one-shots have fired, all cancels are done, and each
 * periodic timer without a cancel has given MIN_PERIODS; then these are cancelled.
 * Then one half of the tail is cancelled, and the other is left to close().
 *
 * Exit status: 0 if nothing was lost, early or twice and every timer is accounted
 * for, 1 if not, 2 for wrong usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "demo.h"

#define BATCH		256
#define MIN_PERIODS	3
#define LOST_NS		(30 * SEC)
#define ACT_NS		(20 * MSEC)	/* acts are gathered for that long */
#define READS_MAX	16		/* in a row, before the acts get their turn */

/**
 * struct run - the run
 * @fd:		/dev/twheel
 * @epfd:	the epoll that waits for it
 * @w:		the timers
 * @acts:	the timers to be cancelled or re-armed, in the order of their times
 * @nr_acts:	how many these are
 * @next_act:	the next of them
 * @next_add:	the next timer to be armed
 * @waiting:	how many one-shots are armed, without the tail
 * @hungry:	how many periodic timers must give more periods
 * @start:	when the run began
 * @last_due:	the latest time by which something must have happened
 * @seed:	for the delays of timers that are re-armed
 * @stats:	what happened
 */
struct run {
	int		fd, epfd;
	struct workload	w;
	u32		*acts;
	u32		nr_acts, next_act, next_add;
	u32		waiting, hungry;
	u64		start, last_due, seed;
	struct stats	stats;
};

static struct run run;

/* Report @what and errno, and end with status 1. */
static void die(const char *what)
{
	fprintf(stderr, "twheel-demo: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The time of the wheel's clock, which is CLOCK_MONOTONIC. */
static u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * SEC + (u64)ts.tv_nsec;
}

/* Zeroed memory, already touched, so that it does not count as the kernel's later. Never NULL. */
static void *alloc(size_t nr, size_t size)
{
	void *p = malloc(nr * size + 1);

	if (!p)
		die("memory");
	memset(p, 0, nr * size + 1);
	return p;
}

/* ---- operations ------------------------------------------------------------ */

/* Submit all of @ops. A signal may end a call early; then submit the rest. */
static void submit(struct twheel_op *ops, u32 nr, struct cost *cost)
{
	u32 done = 0;
	u64 start;

	while (done < nr) {
		struct twheel_batch b = { .ops = (uintptr_t)(ops + done),
					  .nr = nr - done, .op_size = sizeof(*ops) };

		start = now();
		if (ioctl(run.fd, TWHEEL_IOC_SUBMIT, &b))
			die("TWHEEL_IOC_SUBMIT");
		cost_add(cost, b.nr_done, now() - start);
		done += b.nr_done;
	}
}

/* Note that @t is to fire at @due or later, and how long to wait for it at most. */
static void expect(struct timer *t, u64 due)
{
	u64 last = due + MIN_PERIODS * t->interval;

	t->due = due;
	t->state = ARMED;
	if (!t->tail && last > run.last_due)
		run.last_due = last;
}

/* Note that @t was armed by @op. It must not fire before @before plus its delay. */
static void added(struct timer *t, const struct twheel_op *op, u64 before)
{
	if (op->res || !op->handle) {
		errno = -op->res;
		die("a timer could not be armed");
	}
	t->handle = op->handle;
	run.stats.armed++;
	run.waiting += !t->interval && !t->tail;
	run.hungry += t->interval && t->act == ACT_NONE;
	expect(t, before + t->delay);
}

/* Arm a batch of the timers that are not armed yet. */
static void add_some(void)
{
	struct twheel_op ops[BATCH];
	u32 nr = run.w.nr - run.next_add, i;
	struct timer *t = run.w.timers + run.next_add;
	u64 before;

	nr = nr < BATCH ? nr : BATCH;
	for (i = 0; i < nr; i++)
		ops[i] = (struct twheel_op) {
			.op		= TWHEEL_OP_ADD,
			.user_data	= run.next_add + i,
			.expires_ns	= t[i].delay,
			.interval_ns	= t[i].interval,
		};
	before = now();
	submit(ops, nr, &run.stats.add);
	for (i = 0; i < nr; i++)
		added(&t[i], &ops[i], before);
	run.next_add += nr;
}

/*
 * Note that no event of @t may come any more. @state says why: if one comes in spite of that, it is
 * counted as that kind of error.
 */
static void gone(struct timer *t, enum state state)
{
	t->state = state;
	run.waiting -= !t->interval && !t->tail;
	run.hungry -= t->interval && t->act == ACT_NONE && t->periods < MIN_PERIODS;
}

/*
 * Was the timer still there when @op cancelled or re-armed it, and the result right? If it was
 * armed long after its time, it is lost.
 */
static bool was_there(const struct timer *t, const struct twheel_op *op, u64 before)
{
	if (op->res < 0 || op->user_data != (u64)(t - run.w.timers)) {
		run.stats.wrong++;
		return false;
	}
	run.stats.lost += op->res == 1 && before > t->due + LOST_NS;
	return true;
}

/* Cancel a batch. Only this thread reads, so no event of these timers may be read after it. */
static void cancel_batch(struct twheel_op *ops, u32 nr, u64 *count)
{
	struct timer *timers[BATCH];
	u64 before = now();
	u32 i;

	for (i = 0; i < nr; i++) {
		timers[i] = &run.w.timers[ops[i].user_data];
		ops[i].user_data = 0;
	}
	submit(ops, nr, &run.stats.cancel);
	for (i = 0; i < nr; i++) {
		if (was_there(timers[i], &ops[i], before))
			++*count;
		gone(timers[i], CANCELLED);
	}
}

/* Re-arm a batch. From now on only the new deadline counts. */
static void rearm_batch(struct twheel_op *ops, u32 nr)
{
	struct timer *timers[BATCH];
	u64 before = now();
	u32 i;

	for (i = 0; i < nr; i++) {
		timers[i] = &run.w.timers[ops[i].user_data];
		ops[i].user_data = 0;
	}
	submit(ops, nr, &run.stats.mod);
	for (i = 0; i < nr; i++) {
		run.stats.rearmed += was_there(timers[i], &ops[i], before);
		expect(timers[i], before + ops[i].expires_ns);
	}
}

/* A new delay that still ends before the run does. */
static u64 new_delay(void)
{
	u64 end = run.start + RUN_NS, t = now();

	return MSEC + (end > t ? rnd(&run.seed) % (end - t) : 0);
}

/*
 * Cancel and re-arm the timers whose time has come, a batch of each at most. False if a batch was
 * full.
 */
static bool act_some(u64 until)
{
	struct twheel_op cancels[BATCH], mods[BATCH];
	u32 nr_cancels = 0, nr_mods = 0;

	while (run.next_act < run.nr_acts && nr_cancels < BATCH && nr_mods < BATCH) {
		struct timer *t = &run.w.timers[run.acts[run.next_act]];
		struct twheel_op op = { .handle = t->handle,
					.user_data = run.acts[run.next_act] };

		if (run.start + t->act_at > until)
			break;
		run.next_act++;
		if (t->state != ARMED) {
			run.stats.missed++;
		} else if (t->act == ACT_CANCEL) {
			op.op = TWHEEL_OP_CANCEL;
			cancels[nr_cancels++] = op;
		} else {
			op.op = TWHEEL_OP_MOD;
			op.expires_ns = new_delay();
			mods[nr_mods++] = op;
		}
	}
	if (nr_cancels)
		cancel_batch(cancels, nr_cancels, &run.stats.cancelled);
	if (nr_mods)
		rearm_batch(mods, nr_mods);
	return nr_cancels < BATCH && nr_mods < BATCH;
}

/* ---- events ---------------------------------------------------------------- */

/* Check that the periods of a periodic timer follow each other without a gap. */
static void period(struct timer *t, const struct twheel_event *ev)
{
	struct stats *s = &run.stats;

	if (t->periods && ev->expires_ns > t->due)
		s->lost += (ev->expires_ns - t->due + t->interval - 1) / t->interval;
	else if (t->periods && ev->expires_ns < t->due)
		s->twice++;
	s->wrong += !(ev->flags & TWHEEL_EV_MORE);
	t->due = ev->expires_ns + ev->count * t->interval;
	s->periods += ev->count;
	if (t->act == ACT_NONE && t->periods < MIN_PERIODS &&
	    t->periods + ev->count >= MIN_PERIODS)
		run.hungry--;
	t->periods += ev->count;
}

/* The timer of an event, or NULL if it is none of this run. */
static struct timer *event_timer(const struct twheel_event *ev)
{
	struct timer *t;

	if (ev->user_data >= run.w.nr)
		return NULL;
	t = &run.w.timers[ev->user_data];
	return t->state != NEW && t->handle == ev->handle ? t : NULL;
}

/* Check and count an event that was read at the time @after. */
static void event(const struct twheel_event *ev, u64 after)
{
	struct stats *s = &run.stats;
	struct timer *t = event_timer(ev);

	if (!t) {
		s->unknown++;
		return;
	}
	if (t->state != ARMED) {
		*(t->state == FIRED ? &s->twice : &s->late_cancel) += 1;
		return;
	}
	if (after < ev->expires_ns || (ev->expires_ns < t->due && !t->periods))
		s->early++;
	else
		late_add(s, after - ev->expires_ns);
	if (t->interval) {
		period(t, ev);
		return;
	}
	s->wrong += ev->count != 1 || ev->flags;
	s->fired++;
	gone(t, FIRED);
}

/* Read events that are ready. If there are very many, some may be left. */
static void read_some(void)
{
	struct twheel_event ev[BATCH];
	ssize_t got = sizeof(ev);
	u64 start, after;
	int turn, i;

	for (turn = 0; turn < READS_MAX && got == sizeof(ev); turn++) {
		start = now();
		got = read(run.fd, ev, sizeof(ev));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got <= 0)
			die("read");
		after = now();
		cost_add(&run.stats.read, (size_t)got / sizeof(*ev), after - start);
		for (i = 0; i < (int)((size_t)got / sizeof(*ev)); i++)
			event(&ev[i], after);
	}
}

/* Wait for events, for at most @ms, and read some. */
static void wait_and_read(int ms)
{
	struct epoll_event e;
	int n = epoll_wait(run.epfd, &e, 1, ms);

	if (n < 0 && errno != EINTR)
		die("epoll_wait");
	if (n <= 0)
		return;
	run.stats.epolls++;
	read_some();
}

/* ---- the run ------------------------------------------------------------------ */

/* What the device says of its file. */
static struct twheel_info info(void)
{
	struct twheel_info i;

	if (ioctl(run.fd, TWHEEL_IOC_INFO, &i))
		die("TWHEEL_IOC_INFO");
	return i;
}

/* The memory of the kernel, in bytes; 0 if it does not tell. */
static u64 mem_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	u64 kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* Print how far the run is: each second on a terminal, else every five. */
static void progress(u64 t)
{
	static u64 next;
	bool terminal = isatty(STDOUT_FILENO);

	if (t < next)
		return;
	if (next)
		report_progress(&run.stats, t - run.start, terminal);
	next = t + (terminal ? 1 : 5) * SEC;
}

/* Compare the kernel's count of timers with ours. */
static void check_count(u64 nr_timers)
{
	const struct stats *s = &run.stats;

	if (nr_timers == s->armed - s->fired - s->cancelled - s->cancelled_end)
		return;
	fprintf(stderr, "twheel-demo: the kernel counts %llu timers\n", nr_timers);
	run.stats.wrong++;
}

/* Arm everything, and read what fires meanwhile. */
static void arm_all(void)
{
	u64 before = mem_available(), after;
	struct twheel_info i;

	run.start = now();
	while (run.next_add < run.w.nr) {
		add_some();
		wait_and_read(0);
		progress(now());
	}
	i = info();
	after = mem_available();
	check_count(i.nr_timers);
	run.stats.mem_bytes = i.mem_bytes;
	run.stats.mem_timers = i.nr_timers;
	run.stats.mem_delta = before > after ? before - after : 0;
	printf("%s%u timers armed in %.1f s; %u are pending, and %u wait to be read\n",
	       isatty(STDOUT_FILENO) ? "\r\033[K" : "", run.w.nr,
	       (double)(now() - run.start) / (double)SEC, i.nr_armed, i.nr_ready);
}

/* Cancel, re-arm and read until every timer has done what it should, or is lost. */
static void run_to_the_end(void)
{
	u64 t = now(), next_acts = 0;

	while (run.waiting || run.hungry || run.next_act < run.nr_acts) {
		if (t >= next_acts && act_some(t))
			next_acts = t + ACT_NS;
		wait_and_read(t >= next_acts ? 0 : (int)(ACT_NS / MSEC));
		t = now();
		progress(t);
		if (t > run.last_due + LOST_NS && run.next_act == run.nr_acts)
			break;
	}
	run.stats.lost += run.waiting + run.hungry;
	run.stats.run_ns = t - run.start;
}

/* Cancel what is still armed, except every other timer of the tail. */
static void cancel_rest(void)
{
	struct twheel_op ops[BATCH];
	u32 nr = 0, odd = 0, i;

	for (i = 0; i < run.w.nr; i++) {
		struct timer *t = &run.w.timers[i];

		if (t->state != ARMED || (t->tail && odd++ & 1))
			continue;
		ops[nr++] = (struct twheel_op) { .op = TWHEEL_OP_CANCEL,
						 .handle = t->handle, .user_data = i };
		if (nr == BATCH) {
			cancel_batch(ops, nr, &run.stats.cancelled_end);
			nr = 0;
		}
	}
	if (nr)
		cancel_batch(ops, nr, &run.stats.cancelled_end);
}

/*
 * After the run: cancel, see that nothing else fires, compare the kernel's count, and measure
 * close().
 */
static void finish(void)
{
	struct stats *s = &run.stats;
	struct twheel_info i;
	u64 start;

	cancel_rest();
	wait_and_read(50);	/* there must not be anything */
	i = info();
	check_count(i.nr_timers);
	s->wakeups = i.nr_wakeups;
	s->moves = i.nr_moves;
	s->deferred = i.nr_deferred;
	s->closed = i.nr_armed;
	start = now();
	close(run.fd);
	s->close_ns = now() - start;
	close(run.epfd);
}

/* ---- the start ------------------------------------------------------------------ */

/* For qsort(): timers by the time of their cancel or re-arm. */
static int by_act_time(const void *a, const void *b)
{
	const struct timer *x = &run.w.timers[*(const u32 *)a];
	const struct timer *y = &run.w.timers[*(const u32 *)b];

	return x->act_at < y->act_at ? -1 : x->act_at > y->act_at;
}

/* List the timers that are to be cancelled or re-armed, in the order of these times. */
static void sort_acts(void)
{
	u32 i;

	run.acts = alloc(run.w.nr, sizeof(*run.acts));
	for (i = 0; i < run.w.nr; i++)
		if (run.w.timers[i].act != ACT_NONE)
			run.acts[run.nr_acts++] = i;
	qsort(run.acts, run.nr_acts, sizeof(*run.acts), by_act_time);
}

/* Open the device, and check that it is of our version and takes so many timers. */
static void open_device(const char *path)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct twheel_info i;

	run.fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (run.fd < 0)
		die(path);
	i = info();
	if (i.abi != TWHEEL_ABI || i.op_size < sizeof(struct twheel_op) ||
	    i.event_size != sizeof(struct twheel_event)) {
		fprintf(stderr, "twheel-demo: %s is of another version\n", path);
		exit(1);
	}
	if (run.w.nr > i.max_timers) {
		fprintf(stderr, "twheel-demo: %u timers, but %s takes %u\n",
			run.w.nr, path, i.max_timers);
		exit(1);
	}
	run.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (run.epfd < 0 || epoll_ctl(run.epfd, EPOLL_CTL_ADD, run.fd, &e))
		die("epoll");
}

/* Parse a number from 1 to @max; if it is wrong, print the usage and exit. */
static u64 parse_count(const char *text, u64 max)
{
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || *text == '-' || !value || value > max) {
		fprintf(stderr, "twheel-demo: not a number from 1 to %llu: %s\n", max, text);
		exit(2);
	}
	return value;
}

static void print_usage(FILE *to)
{
	fputs("twheel-demo [-n COUNT] [-s SEED] [-d DEVICE]\n"
	      "twheel-demo -w FILE [-d DEVICE]\n"
	      "  -n, --count COUNT    timers, with random delays of 1 ms to 60 s (1000000)\n"
	      "  -s, --seed SEED      of what is random; printed, to have it again\n"
	      "  -w, --workload FILE  timers from FILE, a line each:\n"
	      "                       delay_ms [interval_ms] [cancel_after_ms]\n"
	      "  -d, --device DEVICE  instead of /dev/twheel\n"
	      "  -h, --help           this\n", to);
}

/* Make the workload: from @file, or if that is NULL @count random timers. */
static void prepare(const char *file, u32 count)
{
	if (!file) {
		printf("%u timers: delays uniform from 1 ms to 60 s, 2 %% of hours; ", count);
		printf("10 %% cancelled, 20 %% re-armed; seed %llu\n", run.seed);
		workload_generate(&run.w, count, &run.seed);
	} else if (workload_read(&run.w, file)) {
		die(file);
	} else {
		printf("%u timers from %s, %u malformed lines left out\n", run.w.nr,
		       file, run.w.malformed);
	}
	if (!run.w.nr) {
		fprintf(stderr, "twheel-demo: %s: no timers\n", file);
		exit(1);
	}
	sort_acts();
	run.stats.late = alloc(LATE_MAX + 1, sizeof(*run.stats.late));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "workload", required_argument, NULL, 'w' },
		{ "device", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *device = "/dev/twheel", *file = NULL;
	u32 count = 0;
	int c;

	run.seed = now() | 1;
	while ((c = getopt_long(argc, argv, "n:s:w:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			count = (u32)parse_count(optarg, 100000000);
			break;
		case 's':
			run.seed = parse_count(optarg, ~0ULL);
			break;
		case 'w':
			file = optarg;
			break;
		case 'd':
			device = optarg;
			break;
		default:
			print_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind != argc || (file && count)) {
		print_usage(stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	prepare(file, count ?: 1000000);
	open_device(device);
	arm_all();
	run_to_the_end();
	finish();
	if (isatty(STDOUT_FILENO))
		putchar('\n');
	report_table(&run.stats);
	puts(report_good(&run.stats) ? "every timer is accounted for" : "FAILED");
	return !report_good(&run.stats);
}
