// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * bench: what a program pays on this machine, over each backend there is.
 *
 * The program arms the timers in batches of 256, for random moments within two seconds that begin
 * half a second later, when arming must be over. It cancels half of them, reads the others as they
 * fire, and compares each event with the clock. Costs are the CPU time of this process, which
 * includes waiting and being woken up. Lateness is in real time, so it shows if the machine is
 * busy.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

#define BATCH		256
#define TIMERS_DEFAULT	100000
#define TIMERS_MAX	1000000
#define AHEAD_NS	(NS_PER_S / 2)
#define SPREAD_NS	(2 * NS_PER_S)

/*
 * Classes of lateness: below 100 us, then each twice as wide as the one before; the last has no
 * end.
 */
#define STEP_NS		(100 * NS_PER_US)
#define NR_STEPS	10

/**
 * struct bench - a run over one backend
 * @w:		its wheel
 * @nr:		how many timers
 * @handles:	their handles
 * @late:	the lateness of each event, in the order in which they came
 * @nr_read:	how many events came
 * @early:	how many of them came before their deadline
 * @nr_reads:	in how many calls they were read
 * @arm_ns:	CPU time for arming all timers
 * @cancel_ns:	CPU time for cancelling half of them
 * @read_ns:	CPU time for waiting for the others and reading them
 */
struct bench {
	struct twheel	*w;
	uint32_t	nr;
	uint64_t	*handles;
	int64_t		*late;
	uint32_t	nr_read;
	uint32_t	early;
	uint32_t	nr_reads;
	int64_t		arm_ns;
	int64_t		cancel_ns;
	int64_t		read_ns;
};

static bool json;

/*
 * Add @nr timers, or cancel every other one of 2 * @nr, in batches. Returns the CPU time that this
 * took. Ends the program if an operation fails.
 */
static int64_t submit_all(struct bench *b, uint32_t nr, bool add)
{
	struct twheel_op ops[BATCH];
	int64_t start = time_now(CLOCK_PROCESS_CPUTIME_ID);

	for (uint32_t i = 0; i < nr; i += BATCH) {
		uint32_t n = nr - i < BATCH ? nr - i : BATCH;
		int bad;

		memset(ops, 0, sizeof(ops));
		for (uint32_t j = 0; j < n; j++) {
			ops[j].op = add ? TWHEEL_OP_ADD : TWHEEL_OP_CANCEL;
			if (add)
				ops[j].expires_ns = (uint64_t)(AHEAD_NS + random() % SPREAD_NS);
			else
				ops[j].handle = b->handles[2 * (i + j)];
		}
		bad = twheel_submit(b->w, ops, n);
		if (bad)
			error(1, bad < 0 ? -bad : -ops[n - 1].res, "cannot %s timers",
			      add ? "arm" : "cancel");
		for (uint32_t j = 0; add && j < n; j++)
			b->handles[i + j] = ops[j].handle;
	}
	return time_now(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* Show the progress. Returns the CPU time that this took, which is not the timers'. */
static int64_t progress(const struct bench *b, uint32_t all)
{
	static int64_t last;
	int64_t now = time_now(CLOCK_MONOTONIC), start;

	if (json || now - last < NS_PER_S / 10 || !line_there())
		return 0;
	last = now;
	start = time_now(CLOCK_PROCESS_CPUTIME_ID);
	line_show("%s: %u of %u", twheel_backend(b->w), b->nr_read, all);
	if (b->nr_read == all)
		line_clear();
	return time_now(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* Read the events of @all timers. The CPU time of printing progress does not count. */
static void read_all(struct bench *b, uint32_t all)
{
	int64_t start = time_now(CLOCK_PROCESS_CPUTIME_ID), telling = 0;
	struct twheel_event events[BATCH];

	while (b->nr_read < all) {
		int n = twheel_read(b->w, events, BATCH, 10000);
		int64_t now = time_now(CLOCK_MONOTONIC);

		if (n <= 0)
			error(1, -n, "cannot read events");
		b->nr_reads++;
		for (int i = 0; i < n && b->nr_read < all; i++) {
			int64_t late = now - (int64_t)events[i].expires_ns;

			b->early += late < 0;
			b->late[b->nr_read++] = late;
		}
		telling += progress(b, all);
	}
	b->read_ns = time_now(CLOCK_PROCESS_CPUTIME_ID) - start - telling;
}

/* The cost of a timer on average, half of them cancelled and half of them read. */
static int64_t cpu_ns(const struct bench *b)
{
	return (b->arm_ns + b->cancel_ns + b->read_ns) / b->nr;
}

/* For qsort(): by size. */
static int compare(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return a < b ? -1 : a > b;
}

/* The lateness that @percent of the timers do not exceed: with 0 the least, with 100 the worst. */
static int64_t late_of(const struct bench *b, uint32_t percent)
{
	return percentile(b->late, b->nr_read, percent);
}

/* Print the figures of a run as text. @late must be sorted. */
static void show(struct bench *b)
{
	static const char bar[] = "##################################################";
	uint32_t steps[NR_STEPS] = { 0 }, step;
	char buf[3][32];

	for (uint32_t i = 0; i < b->nr_read; i++) {
		for (step = 0; step < NR_STEPS - 1 && b->late[i] >= STEP_NS << step; step++)
			;
		steps[step]++;
	}
	printf("%s backend, %u timers\n", twheel_backend(b->w), b->nr);
	printf("  CPU time: arm %lld ns, cancel %lld ns, wait and read %lld ns each, in %u calls\n",
	       (long long)b->arm_ns / b->nr, (long long)b->cancel_ns / (b->nr / 2),
	       (long long)b->read_ns / b->nr_read, b->nr_reads);
	printf("  a timer, all in all: %lld ns\n", (long long)cpu_ns(b));
	printf("  late by %s (half), %s (99 of 100), %s (all); early: %u\n",
	       show_duration(late_of(b, 50), buf[0]), show_duration(late_of(b, 99), buf[1]),
	       show_duration(late_of(b, 100), buf[2]), b->early);
	for (step = 0; step < NR_STEPS; step++)
		printf("  %s %7s %5.1f%% %.*s\n", step < NR_STEPS - 1 ? "<" : " ",
		       step < NR_STEPS - 1 ? show_duration(STEP_NS << step, buf[0]) : "more",
		       100.0 * steps[step] / b->nr_read,
		       (int)(50ULL * steps[step] / b->nr_read), bar);
}

/* All percentiles, from the 0th, the least lateness, to the 100th, the worst. */
static struct json_object *json_percentiles(const struct bench *b)
{
	struct json_object *a = json_object_new_array();

	for (uint32_t i = 0; i <= 100; i++)
		json_object_array_add(a, json_object_new_int64(late_of(b, i)));
	return a;
}

/* Print the figures of a run as a line of JSON. @late must be sorted. */
static void show_json(struct bench *b)
{
	struct json_object *o = json_object_new_object();

	json_string(o, "backend", twheel_backend(b->w));
	json_int(o, "timers", b->nr);
	json_int(o, "arm_ns", b->arm_ns / b->nr);
	json_int(o, "cancel_ns", b->cancel_ns / (b->nr / 2));
	json_int(o, "read_ns", b->read_ns / b->nr_read);
	json_int(o, "reads", b->nr_reads);
	json_int(o, "cpu_ns", cpu_ns(b));
	json_int(o, "late_p50_ns", late_of(b, 50));
	json_int(o, "late_p99_ns", late_of(b, 99));
	json_int(o, "late_max_ns", late_of(b, 100));
	json_object_object_add(o, "late_percentiles_ns", json_percentiles(b));
	json_int(o, "early", b->early);
	json_line(o);
}

/*
 * Arm @nr timers, cancel every other one, read the rest, and print the figures. Ends the program if
 * a timer was early.
 */
static void bench(uint32_t nr, unsigned int backend)
{
	struct bench b = { .nr = nr };
	int err = twheel_open(&b.w, backend, NULL);

	if (err)
		error(1, -err, "cannot make a wheel");
	b.handles = calloc(nr, sizeof(*b.handles));
	b.late = calloc(nr, sizeof(*b.late));
	if (!b.handles || !b.late)
		error(1, ENOMEM, "%u timers", nr);
	b.arm_ns = submit_all(&b, nr, true);
	b.cancel_ns = submit_all(&b, nr / 2, false);
	read_all(&b, nr - nr / 2);
	qsort(b.late, b.nr_read, sizeof(*b.late), compare);
	(json ? show_json : show)(&b);
	check_stdout();
	twheel_close(b.w);
	free(b.handles);
	free(b.late);
	if (b.early)
		error(1, 0, "%u timers were early", b.early);
}

enum { OPT_TIMERS = 1, OPT_BACKEND, OPT_JSON };

static uint64_t nr_timers = TIMERS_DEFAULT;
static const char *backend;

/* Take option @c, as getopt_long() found it. Ends the program if it is wrong. */
static void bench_option(int c)
{
	switch (c) {
	case OPT_TIMERS:
		if (parse_count(optarg, 2, TIMERS_MAX, &nr_timers))
			return;
		error(0, 0, "invalid number '%s': 2 to %d", optarg, TIMERS_MAX);
		break;
	case OPT_BACKEND:
		backend = optarg;
		if (!strcmp(backend, "kernel") || !strcmp(backend, "embedded"))
			return;
		error(0, 0, "invalid argument '%s' for '--backend'", optarg);
		break;
	case OPT_JSON:
		json = true;
		return;
	case 'h':
		help("bench");
	}
	try_help(1);
}

/* By default, all backends that there are, the kernel's first. */
int cmd_bench(int argc, char **argv)
{
	static const struct option options[] = {
		{ "timers", required_argument, NULL, OPT_TIMERS },
		{ "backend", required_argument, NULL, OPT_BACKEND },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
		bench_option(c);
	if (optind < argc) {
		error(0, 0, "extra operand '%s'", argv[optind]);
		try_help(1);
	}
	if (backend ? *backend == 'k' : !access("/dev/twheel", R_OK | W_OK))
		bench((uint32_t)nr_timers, TWHEEL_KERNEL);
	if (!backend || *backend == 'e')
		bench((uint32_t)nr_timers, TWHEEL_EMBEDDED);
	return 0;
}
