// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The phases, the same for each subject; main.c says what they are.
 *
 * What expiry takes is seen from outside, by a loop that does nothing but look at the clock:
 * how long it stands still, beyond what it does anyway.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Far enough that none fires while it is measured, as near as a session's timeout. */
#define FAR_NS		(60 * SEC)
#define FAR_RANGE	(60 * SEC)

#define GAP_NS		10000ULL	/* between two deadlines, on the average */
#define SPREAD_MIN	(50 * MS)
#define SPREAD_MAX	(4 * SEC)
#define COLLECT_EACH	4096
#define LOST_NS		(30 * SEC)

#define WALK_MAX	100000000ULL

#define STOP_NS		500
#define CALIBRATE_NS	(250 * MS)
#define QUIET_NS	(50 * MS)
#define QUIET_MOST	100

#define WAKE_TICKS	10
#define WAKE_PERIOD	(20 * MS)

enum { CREATE, ARM, REARM, CANCEL, EXPIRE, COLLECT, CLOSE, MEMORY, USER_MEMORY, NR_METRICS };

static const char *const metrics[NR_METRICS] = {
	"create", "arm", "rearm", "cancel", "expire", "collect", "close", "memory", "user-memory"
};

/**
 * struct run - a subject with its timers
 * @s:		the subject
 * @n:		how many timers
 * @deadline:	of each
 * @ids:	a permutation of all: the order in which something is done to them
 * @collected:	room for all
 * @seen:	which have been collected
 * @value:	of each metric, for all timers together
 */
struct run {
	const struct subject	*s;
	u32			n;
	u64			*deadline;
	u32			*ids;
	u32			*collected;
	bool			*seen;
	double			value[NR_METRICS];
};

/* splitmix64. Each process begins anew, so that all subjects get the same. */
static u64 rnd(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Deadlines of @from ... @from + @range. */
static void draw(struct run *r, u64 from, u64 range)
{
	for (u32 i = 0; i < r->n; i++)
		r->deadline[i] = from + rnd() % range;
}

/* Another order of the first @nr. */
static void shuffle(u32 *ids, u32 nr)
{
	for (u32 i = 1; i < nr; i++) {
		u32 j = rnd() % (i + 1), id = ids[i];

		ids[i] = ids[j];
		ids[j] = id;
	}
}

/* All timers in order; or, of less than all, @nr at random in front. */
static void choose(struct run *r, u32 nr)
{
	for (u32 i = 0; i < r->n; i++)
		r->ids[i] = i;
	if (nr < r->n)
		shuffle(r->ids, r->n);
}

/*
 * How many of n timers to do something to where the kernel looks for each in @lists lists, on
 * the average through half of one. They are drawn at random, and the result is scaled. All, as
 * long as the lists are short: io_uring's 10^4, and POSIX's 10^5.
 */
u32 sample(u32 n, u32 lists)
{
	u64 most = lists ? WALK_MAX * lists / n : n;

	return most < n ? most : n;
}

static double scaled(const struct run *r, double took, u32 nr)
{
	return took * r->n / nr;
}

static u64 since(u64 begin)
{
	return now_ns() - begin;
}

static void run_init(struct run *r, const struct subject *s, u32 n)
{
	*r = (struct run){
		.s = s,
		.n = n,
		.deadline = get_pages(n * sizeof(*r->deadline)),
		.ids = get_pages(n * sizeof(*r->ids)),
		.collected = get_pages(n * sizeof(*r->collected)),
		.seen = get_pages(n * sizeof(*r->seen)),
	};
}

/* ---- the loop that does nothing -------------------------------------------------- */

static u64 usual = UINT64_MAX;	/* ns between two looks at the clock, without anything else */
static double anyway;		/* what is taken while nothing is armed, a share of all time */

/* Until @until, look at the clock. Returns the ns in which something else went on. */
static u64 stopped_until(u64 until)
{
	u64 last = now_ns(), taken = 0, now, gap;

	do {
		now = now_ns();
		gap = now - last;
		if (gap < usual)
			usual = gap;
		if (gap > usual + STOP_NS)
			taken += gap - usual;
		last = now;
	} while (now < until);
	return taken;
}

static void calibrate(void)
{
	u64 begin = now_ns(), taken = stopped_until(begin + CALIBRATE_NS);

	anyway = (double)taken / since(begin);
}

/* What timers, and what they left to do, take until @until. */
static double taken_until(u64 until)
{
	u64 begin = now_ns(), taken = stopped_until(until);

	return taken - anyway * since(begin);
}

/* What the kernel goes on with when the call that asked for it has returned. */
static double taken_later(void)
{
	double sum = 0, taken;
	u32 i = 0;

	do {
		taken = taken_until(now_ns() + QUIET_NS);
		sum += taken;
	} while (taken > QUIET_NS / 50 && ++i < QUIET_MOST);
	return sum;
}

/* ---- the life of timers ----------------------------------------------------------- */

static void open_timers(struct run *r)
{
	u64 begin = now_ns();
	const char *why_not = r->s->open(r->n);

	r->value[CREATE] = since(begin);
	if (!why_not)
		return;
	printf("life\t%u\t%s\tmissing\ttext\t%s\n", r->n, r->s->name, why_not);
	exit(0);
}

static void close_timers(struct run *r)
{
	u64 begin = now_ns();
	u32 nr = r->s->close(r->n);

	r->value[CLOSE] = scaled(r, since(begin), nr) + taken_later();
}

/* Make all, and arm @nr of them. */
static void create_and_arm(struct run *r, u32 nr)
{
	struct memory before, after;
	double user;
	u64 begin;

	choose(r, nr);
	user = memory_now().user;
	r->s->prepare(r->n);
	before = memory_now();
	open_timers(r);
	draw(r, now_ns() + FAR_NS, FAR_RANGE);
	begin = now_ns();
	r->s->arm(r->ids, nr, r->deadline);
	r->value[ARM] = scaled(r, since(begin), nr);
	after = memory_now();
	r->value[MEMORY] = after.kernel - before.kernel;
	r->value[USER_MEMORY] = after.user - user;
}

/* Do so to @few of the @nr that are armed. */
static void rearm_and_cancel(struct run *r, u32 nr, u32 few)
{
	u64 begin;

	draw(r, now_ns() + FAR_NS, FAR_RANGE);
	shuffle(r->ids, nr);
	begin = now_ns();
	r->s->rearm(r->ids, few, r->deadline);
	r->value[REARM] = scaled(r, since(begin), few);

	shuffle(r->ids, nr);	/* in the same order a list of them would be sorted now */
	begin = now_ns();
	r->s->cancel(r->ids, few);
	r->value[CANCEL] = scaled(r, since(begin), few);
	must(!r->s->collect(r->collected, false));
}

/* Each once, and none early. */
static void check(struct run *r, u32 got)
{
	u64 now = now_ns();

	for (u32 i = 0; i < got; i++) {
		u32 id = r->collected[i];

		must(id < r->n && !r->seen[id] && r->deadline[id] <= now);
		r->seen[id] = true;
	}
}

/* Do nothing until @until, then collect. Returns how many. */
static u32 collect_at(struct run *r, u64 until)
{
	u64 begin;
	u32 got;

	r->value[EXPIRE] += taken_until(until);
	begin = now_ns();
	got = r->s->collect(r->collected, false);
	r->value[COLLECT] += since(begin);
	check(r, got);
	return got;
}

static u64 spread(u32 nr)
{
	u64 ns = GAP_NS * nr;

	return ns < SPREAD_MIN ? SPREAD_MIN : ns > SPREAD_MAX ? SPREAD_MAX : ns;
}

static void sleep_until(u64 when)
{
	struct timespec ts = timespec_of(when);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* @nr timers fire from @from on. Those that are late are waited for. */
static void expire(struct run *r, u32 nr, u64 from)
{
	u32 slices = nr < COLLECT_EACH ? 1 : nr / COLLECT_EACH, got = 0;
	u64 begin;

	sleep_until(from - 2 * MS);
	for (u32 i = 1; i <= slices; i++)
		got += collect_at(r, from + spread(nr) * i / slices + 2 * MS);
	for (begin = now_ns(); got < nr; got += collect_at(r, now_ns() + MS))
		must(since(begin) < LOST_NS);
	must(got == nr);
	r->value[EXPIRE] = scaled(r, r->value[EXPIRE], nr);
	r->value[COLLECT] = scaled(r, r->value[COLLECT], nr);
}

/*
 * Arm @nr timers, all before the first is due: @lead ns ahead, or longer where that was not
 * enough. @draw_from sets their deadlines, from the given time on. Returns that time.
 */
static u64 arm_ahead(struct run *r, u32 nr, u64 lead,
		     void (*draw_from)(struct run *r, u64 from, u32 nr))
{
	u64 from;

	for (;; lead *= 2) {
		from = now_ns() + lead;
		choose(r, nr);
		draw_from(r, from, nr);
		r->s->arm(r->ids, nr, r->deadline);
		if (now_ns() < from)
			return from;
		close_timers(r);
		open_timers(r);
	}
}

static void draw_spread(struct run *r, u64 from, u32 nr)
{
	draw(r, from, spread(nr));
}

/* How long arming takes is known. */
static void fire(struct run *r, u32 nr)
{
	u64 lead = 100 * MS + 2 * r->value[ARM] * nr / r->n;

	calibrate();
	memset(r->seen, 0, r->n * sizeof(*r->seen));
	expire(r, nr, arm_ahead(r, nr, lead, draw_spread));
}

static void life(struct run *r)
{
	u32 nr = sample(r->n, r->s->arm_lists), few = sample(r->n, r->s->cancel_lists);

	memset(r->value, 0, sizeof(r->value));
	memory_settle();
	calibrate();
	create_and_arm(r, nr);
	rearm_and_cancel(r, nr, few);
	if (few < nr) {			/* the others are armed still */
		close_timers(r);
		open_timers(r);
	}
	fire(r, nr);
	close_timers(r);
	r->s->release(r->n);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void bench_life(const struct subject *s, u32 n, u32 reps, const char *unit)
{
	double values[NR_METRICS][reps];
	struct run r;

	run_init(&r, s, n);
	for (u32 rep = 0; rep < reps; rep++) {
		life(&r);
		for (u32 i = 0; i < NR_METRICS; i++)
			values[i][rep] = r.value[i] / n;
	}
	for (u32 i = 0; i < NR_METRICS; i++) {
		qsort(values[i], reps, sizeof(double), compare);
		printf("life\t%u\t%s\t%s\t%s\t%.2f\n", n, s->name, metrics[i],
		       i < MEMORY ? unit : "bytes", values[i][reps / 2]);
	}
}

/* ---- wake-ups ------------------------------------------------------------------------ */

/* As many within the ms before each of WAKE_TICKS times. */
static void draw_ticks(struct run *r, u64 from, u32 nr)
{
	u64 first = (from / MS + 2) * MS;
	u64 period = WAKE_PERIOD + 2 * GAP_NS * nr / WAKE_TICKS / MS * MS;

	for (u32 i = 0; i < nr; i++)
		r->deadline[i] = first + i % WAKE_TICKS * period - rnd() % MS;
}

void bench_wakes(const struct subject *s, u32 per_tick)
{
	u32 got = 0, wakes = 0;
	struct run r;

	run_init(&r, s, per_tick * WAKE_TICKS);
	s->prepare(r.n);
	open_timers(&r);
	arm_ahead(&r, r.n, 100 * MS + 2 * GAP_NS * r.n, draw_ticks);
	for (; got < r.n; wakes++) {
		u32 now = s->collect(r.collected, true);

		check(&r, now);
		got += now;
	}
	must(got == r.n);
	printf("wakes\t%u\t%s\twake-ups\ta tick\t%.2f\n", per_tick, s->name,
	       (double)wakes / WAKE_TICKS);
	s->close(r.n);
	s->release(r.n);
}
