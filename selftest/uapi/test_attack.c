// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A process that has the device open cannot stall the machine: how much of a CPU does another task
 * still get?
 *
 * The victim is a task that does nothing but count, alone on the last CPU. Its rate is measured
 * before each attack, during it, and after it. Its share is the rate during the attack, divided by
 * the better of the other two. So everything counts that keeps the victim from its work: softirqs,
 * interrupts, cold caches and the attacker's system calls, no matter to whom the kernel accounts
 * that time.
 *
 * An attacker's task may have its share of the CPU, as any task may. So there are two kinds of
 * attack:
 *
 *	work of interrupts	the attacker arms its timers on the victim's CPU, where they
 *				expire, and sleeps. The victim must get half of the CPU.
 *				/proc/softirqs shows that the timers expire there
 *	work of a task		the attacker runs on the victim's CPU, as nice as the
 *				victim. The victim must get half of what it gets beside another
 *				task that does nothing but count
 *
 * The longest time that the victim stood still is printed. The test itself has no bound for it; the
 * guest's detectors of lockups and stalls have.
 *
 * A virtual machine also loses time to its host. So each attack is repeated up to TRIES times, and
 * the best try counts: an attack that starves a task does so in each try.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define MILLION		1000000U
#define TICK		100000ULL	/* the smallest there is */
#define TRIES		3
#define REST_MS		100		/* how long each rate is measured */
#define ATTACK_MS	250
#define SHARE		0.50

static int victim_cpu;	/* the last CPU; all other tasks are on CPU 0 */

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static void end_task(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- the victim ---------------------------------------------------------------- */

struct shared {
	u64	count;		/* units of work that the victim has done */
	u64	longest;	/* the longest time between two units, in ns */
};

static struct shared *s;

static void unit_of_work(void)
{
	for (int i = 0; i < 4000; i++)
		__asm__ volatile("");
}

static void victim(int unused)
{
	u64 last = now();

	(void)unused;
	for (;;) {
		u64 time;

		unit_of_work();
		time = now();
		if (time - last > s->longest)
			s->longest = time - last;
		last = time;
		__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELAXED);
	}
}

struct moment {
	u64	time, count;
};

static struct moment moment(void)
{
	return (struct moment){ now(), __atomic_load_n(&s->count, __ATOMIC_RELAXED) };
}

/* The victim's rate since @m, in units per ns. */
static double rate_since(struct moment m)
{
	struct moment n = moment();

	return (double)(n.count - m.count) / (double)(n.time - m.time);
}

static double rate_now(void)
{
	struct moment m = moment();

	sleep_ms(REST_MS);
	return rate_since(m);
}

static void spinner(int unused)
{
	(void)unused;
	for (;;)
		unit_of_work();
}

/* How many HRTIMER softirqs there have been on CPU @cpu. */
static u64 nr_softirqs(int cpu)
{
	char line[4096];
	FILE *f = fopen("/proc/softirqs", "r");
	u64 n = 0;

	if (!f)
		bail("/proc/softirqs");
	while (fgets(line, sizeof(line), f)) {
		char *p = strstr(line, "HRTIMER:");

		for (int i = 0; p && i <= cpu; i++)
			n = strtoull(i ? p : p + 8, &p, 10);
	}
	fclose(f);
	return n;
}

/* ---- attacks -------------------------------------------------------------------- */

/**
 * struct attack - what is done to the victim
 * @nr_files:	how many files the attacker has
 * @arm:	arms timers in these files, due from the time @due on. A task on the victim's CPU
 *		calls it, and ends before they expire
 * @task:	what a second task does on the victim's CPU, or NULL. The attack lasts as long as
 *		this task; without it, until no timer is armed
 * @watchers:	how many epolls watch the first file
 */
struct attack {
	int	nr_files;
	void	(*arm)(int fd);
	void	(*task)(int fd);
	int	watchers;
};

#define FILES_MAX	16
#define WATCHERS	900	/* a process may have 1024 descriptors */
#define BATCH		1000

static int files[FILES_MAX], epolls[WATCHERS];
static u64 due;

/* Arm @nr timers, @per_tick in each tick from @due on. */
static void arm_timers(int fd, u32 nr, u32 per_tick, u64 interval)
{
	static struct twheel_op ops[BATCH];
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = BATCH,
				  .op_size = sizeof(ops[0]) };

	for (u32 n = 0; n < nr; n += BATCH) {
		for (u32 i = 0; i < BATCH; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
				.flags = TWHEEL_F_ABS, .interval_ns = interval,
				.expires_ns = due + (n + i) / per_tick * TICK };
		b.nr_done = 0;
		CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &b) && b.nr_done == BATCH);
		CHECK_EQ(b.nr_failed, 0);
	}
}

static void arm_million(int fd)
{
	arm_timers(fd, MILLION, MILLION, 0);
}

static void arm_sixteenth(int fd)
{
	arm_timers(fd, MILLION / FILES_MAX, MILLION, 0);
}

/* In each tick as many timers as a pass serves before it turns to another file. */
static void arm_each_tick(int fd)
{
	arm_timers(fd, 25000, 32, 0);
}

/* One timer, with a wake-up each time. */
static void arm_next_ticks(int fd)
{
	arm_timers(fd, 2000, 1, 0);
}

static void arm_periods(int fd)
{
	arm_timers(fd, 200000, MILLION, TICK);
}

static void reads_on(int fd)
{
	static struct twheel_event ev[READ_MAX];

	while (read(fd, ev, sizeof(ev)) > 0)
		;
}

static struct twheel_op many[TWHEEL_BATCH_MAX];

static void do_many(int fd)
{
	struct twheel_batch b = { .ops = (uintptr_t)many, .nr = ARRAY_SIZE(many),
				  .op_size = sizeof(many[0]) };

	CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &b) && b.nr_done == ARRAY_SIZE(many));
}

/* Adds and cancels in the largest batches, for the next ticks. Some of the timers do expire. */
static void adds_and_cancels(int fd)
{
	for (;;) {
		for (u32 i = 0; i < ARRAY_SIZE(many); i++)
			many[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD,
						      .expires_ns = i % 64 * TICK };
		do_many(fd);
		for (u32 i = 0; i < ARRAY_SIZE(many); i++)
			many[i] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL,
						      .handle = many[i].handle };
		do_many(fd);
	}
}

static void adds_and_cancels_singly(int fd)
{
	for (;;) {
		struct twheel_op op = { 0 };

		CHECK_EQ(ioctl(fd, TWHEEL_IOC_ADD, &op), 0);
		op = (struct twheel_op){ .handle = op.handle };
		CHECK(ioctl(fd, TWHEEL_IOC_CANCEL, &op) >= 0);
	}
}

/* ---- what the victim gets -------------------------------------------------------- */

static void open_files(const struct attack *a)
{
	const struct twheel_setup fine = { .clockid = CLOCK_MONOTONIC, .tick_ns = TICK };

	for (int f = 0; f < a->nr_files; f++) {
		files[f] = dev_open(0);
		CHECK_EQ(setup(files[f], &fine), 0);
	}
	for (int w = 0; w < a->watchers; w++) {
		struct epoll_event e = { .events = EPOLLIN | EPOLLET };

		epolls[w] = epoll_create1(EPOLL_CLOEXEC);
		CHECK(epolls[w] >= 0 && !epoll_ctl(epolls[w], EPOLL_CTL_ADD, files[0], &e));
	}
}

static void close_files(const struct attack *a)
{
	for (int f = 0; f < a->nr_files; f++)
		close(files[f]);
	for (int w = 0; w < a->watchers; w++)
		close(epolls[w]);
}

static void arm_files(int nr_files, void (*arm)(int fd))
{
	for (int f = 0; f < nr_files; f++) {
		pid_t pid = start_task(arm, victim_cpu, files[f]);
		int status = -1;

		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
}

/* Open the files and arm their timers. All of them must be due after that. */
static void prepare(const struct attack *a)
{
	for (u64 lead = SEC / 2; lead < 16 * SEC; lead *= 2) {
		open_files(a);
		due = (now() + lead) / TICK * TICK;
		if (!a->arm)
			return;
		arm_files(a->nr_files, a->arm);
		if (now() + SEC / 20 < due)
			return;
		close_files(a);
	}
	CHECK(!"the timers were armed in time");
}

static u32 armed(const struct attack *a)
{
	struct twheel_info i;
	u32 n = 0;

	for (int f = 0; f < a->nr_files; f++) {
		info(files[f], &i);
		n += i.nr_armed;
	}
	return n;
}

/* The victim's rate during the attack. */
static double rate_attacked(const struct attack *a)
{
	pid_t task = a->task ? start_task(a->task, victim_cpu, files[0]) : 0;
	u64 irqs = nr_softirqs(victim_cpu);
	struct moment m;
	double rate;

	sleep_until(due);
	m = moment();
	s->longest = 0;
	if (a->task)
		sleep_ms(ATTACK_MS);
	else
		for (u32 ms = 0; ms < WAIT_MS && armed(a); ms += 2)
			sleep_ms(2);
	rate = rate_since(m);
	irqs = nr_softirqs(victim_cpu) - irqs;
	diag("%llu ms, %llu softirqs, the victim stood still for up to %.1f ms",
	     (now() - m.time) / MS, irqs, (double)s->longest / (double)MS);
	if (a->task)
		end_task(task);
	else
		CHECK(irqs > 20 && !armed(a));
	return rate;
}

/* The victim's rate without the attack: alone, or beside another task that counts. */
static double rate_in_peace(const struct attack *a)
{
	pid_t task = a->task ? start_task(spinner, victim_cpu, 0) : 0;
	double rate;

	sleep_ms(20);
	rate = rate_now();
	if (task)
		end_task(task);
	return rate;
}

static double share_once(const struct attack *a)
{
	pid_t pid = start_task(victim, victim_cpu, 0);
	double before, meanwhile, after;

	before = rate_in_peace(a);
	kill(pid, SIGSTOP);
	prepare(a);
	sleep_until(due - 5 * MS);
	kill(pid, SIGCONT);
	meanwhile = rate_attacked(a);
	close_files(a);
	after = rate_in_peace(a);
	end_task(pid);
	diag("share %.3f; in peace before and after: %.3f", meanwhile / before, after / before);
	return meanwhile / (before > after ? before : after);
}

static void attack(const struct attack *a)
{
	double best = 0;

	for (int i = 0; i < TRIES && best < SHARE && !failed(); i++) {
		double share = share_once(a);

		best = share > best ? share : best;
	}
	CHECK(best >= SHARE);
}

static void one_tick(void)
{
	attack(&(struct attack){ .nr_files = 1, .arm = arm_million });
}

static void many_files(void)
{
	attack(&(struct attack){ .nr_files = FILES_MAX, .arm = arm_sixteenth });
}

static void each_tick(void)
{
	attack(&(struct attack){ .nr_files = FILES_MAX, .arm = arm_each_tick });
}

static void watched(void)
{
	const struct attack a = { .nr_files = 1, .arm = arm_next_ticks,
				  .watchers = WATCHERS };

	attack(&a);
}

static void periods(void)
{
	attack(&(struct attack){ .nr_files = 1, .arm = arm_periods, .task = reads_on });
}

/* Each timer has one event, and is not armed again before that is read. */
static void never_read(void)
{
	struct attack a = { .nr_files = 1, .arm = arm_periods };
	struct twheel_info i, later;

	attack(&a);
	prepare(&a);
	/* After these events the CPU must be idle. */
	sleep_until(due);
	for (u32 ms = 0; ms < WAIT_MS && armed(&a); ms += 2)
		sleep_ms(2);
	info(files[0], &i);
	sleep_ms(ATTACK_MS);
	info(files[0], &later);
	CHECK_EQ(later.nr_ready, later.nr_timers);
	CHECK_EQ(later.nr_wakeups, i.nr_wakeups);
	CHECK_EQ(later.mem_bytes, i.mem_bytes);
	close_files(&a);
}

static void tight_loops(void)
{
	attack(&(struct attack){ .nr_files = 1, .task = adds_and_cancels });
	attack(&(struct attack){ .nr_files = 1, .task = adds_and_cancels_singly });
}

static const struct test tests[] = {
	{ one_tick, "a million timers in one tick" },
	{ many_files, "a million timers in one tick, of 16 files" },
	{ each_tick, "16 files with 32 timers in each tick of 100 us" },
	{ watched, "900 epolls that watch a file with a timer in each tick of 100 us" },
	{ periods, "a period of 100 us on each of 200 000 handles, and a reader" },
	{ never_read, "a reader that never reads" },
	{ tight_loops, "adds and cancels in a tight loop, in batches and singly" },
};

int main(void)
{
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		bail("mmap");
	victim_cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pin(0);
	return run_tests(tests, ARRAY_SIZE(tests));
}
