// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The phases, which are the same for each subject. main.c says what they are.
 *
 * What expiry takes is seen from outside, by a loop that does nothing but read the clock: how long
 * it stands still, beyond what it does without timers. If that is less than the noise, the figure
 * may be negative.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench.h"

/* So far ahead that no timer fires while it is measured, and as near as a session's timeout. */
#define FAR_NS		(60 * SEC)
#define FAR_RANGE	(60 * SEC)

#define GAP_NS		10000ULL	/* between two deadlines, on average */
#define SPREAD_MIN	(50 * MS)
#define SPREAD_MAX	(4 * SEC)
#define COLLECT_EACH	4096
#define LOST_NS		(30 * SEC)

#define SPARSE_GAP_NS	600000ULL
#define SPARSE_MOST	4096
#define SINGLE_GAP_NS	(2 * MS)
#define SINGLE_MOST	1000
#define LEAD_EACH_NS	200000ULL	/* arming one of them takes less */

#define WALK_MAX	100000000ULL

#define STOP_NS		500
#define CALIBRATE_NS	(250 * MS)
#define CALIBRATE_LONG	SEC		/* if little happens, this is most of what is seen */
#define QUIET_NS	(50 * MS)
#define QUIET_MOST	100

#define WAKE_TICKS	10
#define WAKE_PERIOD	(20 * MS)

enum { CREATE, ARM, REARM, CANCEL, EXPIRE, COLLECT, CLOSE, WAIT, MEMORY, USER_MEMORY, NR_METRICS };

static const char *const metrics[NR_METRICS] = {
	"create", "arm", "rearm", "cancel", "expire", "collect", "close", "wait", "memory",
	"user-memory"
};

/**
 * struct run - a subject with its timers
 * @workload:	the name of what is done
 * @s:		the subject
 * @n:		how many timers it has
 * @deadline:	the deadline of each timer
 * @ids:	a permutation of the timers: the order in which something is done to them
 * @collected:	room for the numbers of all timers
 * @seen:	which timers have been collected
 * @value:	the value of each metric, for all timers together
 */
struct run {
	const char		*workload;
	const struct subject	*s;
	u32			n;
	u64			*deadline;
	u32			*ids;
	u32			*collected;
	bool			*seen;
	double			value[NR_METRICS];
};

/* splitmix64. Each process starts it anew, so that all subjects get the same numbers. */
static u64 rnd(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void set_deadline(struct run *r, u32 id, u64 when)
{
	r->deadline[id] = r->s->whole_ms ? (when + MS - 1) / MS * MS : when;
}

/* Draw deadlines from @from to @from + @range. */
static void draw(struct run *r, u64 from, u64 range)
{
	for (u32 i = 0; i < r->n; i++)
		set_deadline(r, i, from + rnd() % range);
}

/* Put the first @nr into another order. */
static void shuffle(u32 *ids, u32 nr)
{
	for (u32 i = 1; i < nr; i++) {
		u32 j = rnd() % (i + 1), id = ids[i];

		ids[i] = ids[j];
		ids[j] = id;
	}
}

/* Put all timers in order; or, if @nr is less than all, @nr random ones to the front. */
static void choose(struct run *r, u32 nr)
{
	for (u32 i = 0; i < r->n; i++)
		r->ids[i] = i;
	if (nr < r->n)
		shuffle(r->ids, r->n);
}

/*
 * To how many of n timers to do something, if the kernel searches for each in @lists lists, through
 * half of one on average. These timers are drawn at random, and the result is scaled. It is done to
 * all as long as the lists are short: io_uring's 10^4, and POSIX's 10^5.
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

/* Room for the events of periodic timers that fire again while others are being taken. */
#define COLLECT_MORE	4096

u32 collect_room;

static void run_init(struct run *r, const char *workload, const struct subject *s, u32 n)
{
	*r = (struct run){
		.workload = workload,
		.s = s,
		.n = n,
		.deadline = get_pages(n * sizeof(*r->deadline)),
		.ids = get_pages(n * sizeof(*r->ids)),
		.collected = get_pages((n + COLLECT_MORE) * sizeof(*r->collected)),
		.seen = get_pages(n * sizeof(*r->seen)),
	};
	collect_room = n + COLLECT_MORE;
}

/* ---- the loop that does nothing -------------------------------------------------- */

static u64 usual = UINT64_MAX;	/* the usual ns between two reads of the clock */
static double anyway;		/* the share of time that is taken while nothing is armed */

/* Read the clock until @until. Returns the ns in which something else ran. */
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

static void calibrate(u64 ns)
{
	u64 begin = now_ns(), taken = stopped_until(begin + ns);

	anyway = (double)taken / since(begin);
}

/* What timers, and the work that they have left behind, take until @until. */
static double taken_until(u64 until)
{
	u64 begin = now_ns(), taken = stopped_until(until);

	return taken - anyway * since(begin);
}

/* The kernel's work that continues after the call has returned. */
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

/* A subject for which there is nothing to measure. */
static noreturn void end_without(const struct run *r, const char *why)
{
	printf("%s\t%u\t%s\tmissing\ttext\t%s\n", r->workload, r->n, r->s->name, why);
	exit(WITHOUT);
}

static void open_timers(struct run *r)
{
	u64 begin = now_ns();
	const char *why_not = r->s->open(r->n);

	r->value[CREATE] = since(begin);
	if (why_not)
		end_without(r, why_not);
}

static void close_timers(struct run *r)
{
	u64 begin = now_ns();
	u32 nr = r->s->close(r->n);

	r->value[CLOSE] = scaled(r, since(begin), nr) + taken_later();
}

/* Make all timers, and arm @nr of them. */
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

/* Apply @call to @few of the @nr timers that are armed. */
static void rearm_and_cancel(struct run *r, u32 nr, u32 few)
{
	u64 begin;

	draw(r, now_ns() + FAR_NS, FAR_RANGE);
	shuffle(r->ids, nr);
	begin = now_ns();
	r->s->rearm(r->ids, few, r->deadline);
	r->value[REARM] = scaled(r, since(begin), few);

	shuffle(r->ids, nr);	/* this sorts them as a list of them would be sorted */
	begin = now_ns();
	r->s->cancel(r->ids, few);
	r->value[CANCEL] = scaled(r, since(begin), few);
	must(!r->s->collect(r->collected, false));
}

/* Each timer must be collected once, and not early. */
static void check(struct run *r, u32 got)
{
	u64 now = now_ns();

	for (u32 i = 0; i < got; i++) {
		u32 id = r->collected[i];

		must(id < r->n && !r->seen[id] && r->deadline[id] <= now);
		r->seen[id] = true;
	}
}

/* Do nothing until @until, then collect. Returns how many timers. */
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

/* Of @nr timers that were due, @got have been collected. Wait for those that are late. */
static void collect_rest(struct run *r, u32 got, u32 nr)
{
	u64 begin;

	for (begin = now_ns(); got < nr; got += collect_at(r, now_ns() + MS))
		must(since(begin) < LOST_NS);
	must(got == nr);
	r->value[EXPIRE] = scaled(r, r->value[EXPIRE], nr);
	r->value[COLLECT] = scaled(r, r->value[COLLECT], nr);
}

/* @nr timers fire from the time @from on. */
static void expire(struct run *r, u32 nr, u64 from)
{
	u32 slices = nr < COLLECT_EACH ? 1 : nr / COLLECT_EACH, got = 0;

	sleep_until(from - 2 * MS);
	for (u32 i = 1; i <= slices; i++)
		got += collect_at(r, from + spread(nr) * i / slices + 2 * MS);
	collect_rest(r, got, nr);
}

/*
 * Arm @nr timers, all before the first is due: @lead ns ahead, or longer if that was not enough.
 * @draw_from draws their deadlines from a given time on. Returns that time.
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

/* How long arming takes is known, so it is not measured here. */
static void fire(struct run *r, u32 nr)
{
	u64 lead = 100 * MS + 2 * r->value[ARM] * nr / r->n;

	calibrate(CALIBRATE_NS);
	memset(r->seen, 0, r->n * sizeof(*r->seen));
	expire(r, nr, arm_ahead(r, nr, lead, draw_spread));
}

static void dense(struct run *r)
{
	u32 nr = sample(r->n, r->s->arm_lists), few = sample(r->n, r->s->cancel_lists);

	calibrate(CALIBRATE_NS);
	create_and_arm(r, nr);
	rearm_and_cancel(r, nr, few);
	if (few < nr) {			/* the others are still armed */
		close_timers(r);
		open_timers(r);
	}
	fire(r, nr);
	close_timers(r);
	r->s->release(r->n);
}

/* ---- few that fire, of many that are armed ---------------------------------------- */

/* Make all timers, put @nr random ones to the front, and give each a deadline far ahead. */
static void make_all(struct run *r, u32 nr)
{
	memset(r->seen, 0, r->n * sizeof(*r->seen));
	r->s->prepare(r->n);
	open_timers(r);
	choose(r, nr);
	draw(r, now_ns() + FAR_NS, FAR_RANGE);
}

static void end_others(struct run *r)
{
	r->s->close(r->n);
	r->s->release(r->n);
}

static u64 whole_ms_after(u64 ns)
{
	return (now_ns() + ns) / MS * MS + MS;
}

static void sparse(struct run *r)
{
	u32 nr = r->n < SPARSE_MOST ? r->n : SPARSE_MOST;
	u64 from;

	calibrate(CALIBRATE_LONG);
	make_all(r, nr);
	r->s->arm(r->ids + nr, r->n - nr, r->deadline);
	from = whole_ms_after(100 * MS + LEAD_EACH_NS * nr);
	for (u32 i = 0; i < nr; i++)
		set_deadline(r, r->ids[i], from + rnd() % (SPARSE_GAP_NS * nr));
	r->s->arm(r->ids, nr, r->deadline);
	must(now_ns() < from);
	sleep_until(from - 2 * MS);
	collect_rest(r, collect_at(r, from + SPARSE_GAP_NS * nr + 2 * MS), nr);
	end_others(r);
}

/* Call @call once for each of @nr timers, in random order. */
static double one_by_one(struct run *r, u32 *ids, u32 nr,
			 void (*call)(const u32 *ids, u32 nr, const u64 *deadline))
{
	u64 begin;

	shuffle(ids, nr);
	begin = now_ns();
	for (u32 i = 0; i < nr; i++)
		call(&ids[i], 1, r->deadline);
	return scaled(r, since(begin), nr);
}

/*
 * Arm all timers, re-arm @nr of them and cancel @nr, if possible others. These are armed when half
 * of the rest is, because io_uring appends a timer to a list, and searches that for it.
 */
static void rearm_and_cancel_singly(struct run *r, u32 nr)
{
	u32 *moved = r->n < 2 * nr ? r->ids : r->ids + nr, nr_chosen = moved - r->ids + nr;
	u32 *rest = r->ids + nr_chosen, nr_rest = r->n - nr_chosen;
	u64 begin;

	r->s->arm(rest, nr_rest / 2, r->deadline);
	r->s->arm(r->ids, nr_chosen, r->deadline);
	r->s->arm(rest + nr_rest / 2, nr_rest - nr_rest / 2, r->deadline);
	draw(r, now_ns() + FAR_NS, FAR_RANGE);
	r->value[REARM] = one_by_one(r, moved, nr, r->s->rearm);
	shuffle(r->ids, nr);
	begin = now_ns();
	for (u32 i = 0; i < nr; i++)
		r->s->cancel(&r->ids[i], 1);
	r->value[CANCEL] = scaled(r, since(begin), nr);
}

/* Each timer is collected half a ms after its tick. */
static void single(struct run *r)
{
	u32 nr = r->n < SINGLE_MOST ? r->n : SINGLE_MOST, got = 0;
	u64 from;

	calibrate(CALIBRATE_LONG);
	make_all(r, nr);
	rearm_and_cancel_singly(r, nr);
	from = whole_ms_after(100 * MS + LEAD_EACH_NS * nr);
	for (u32 i = 0; i < nr; i++)
		set_deadline(r, r->ids[i], from + SINGLE_GAP_NS * i + 1 + rnd() % (MS - 1));
	r->value[ARM] = one_by_one(r, r->ids, nr, r->s->arm);
	must(now_ns() < from);
	sleep_until(from - 2 * MS);
	for (u32 i = 0; i < nr; i++)
		got += collect_at(r, from + SINGLE_GAP_NS * i + 3 * MS / 2);
	collect_rest(r, got, nr);
	end_others(r);
}

/* ---- timeouts that come to their end ------------------------------------------------ */

#define IDLE_UNIT	(10 * MS)	/* the unit of /proc/stat */
#define NAP_NS		20000

/*
 * /proc/stat splits idle time by what tasks sleep for: a task that waits for io_uring sleeps for
 * I/O.
 */
enum { IDLE, IOWAIT, NR_IDLE };

static u64 units_of(u32 kind)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long units[NR_IDLE];

	must(file && fscanf(file, "cpu %*u %*u %*u %lu %lu", &units[IDLE], &units[IOWAIT]) == 2);
	fclose(file);
	return units[kind];
}

static void nap(u32 kind)
{
	struct timespec ts = { .tv_nsec = NAP_NS };

	if (kind == IOWAIT)
		uring_nap(NAP_NS);
	else
		nanosleep(&ts, NULL);
}

/* Be idle, a little at a time, until another unit of idle time is full. Returns how often. */
static u32 naps_until_full(u32 kind, u64 *units)
{
	u64 before = units_of(kind);
	u32 naps = 0;

	do {
		nap(kind);
		naps++;
		*units = units_of(kind);
	} while (*units == before);
	return naps;
}

/**
 * struct idling - how long the CPU is idle, more exactly than the file says
 * @begin:	when it began: a time at which a unit had just become full
 * @units:	how many units there were then
 * @nap_ns:	for how long the CPU is idle in a nap
 */
struct idling {
	u64	begin;
	u64	units[NR_IDLE];
	double	nap_ns[NR_IDLE];
};

static void idling_begin(struct idling *idling)
{
	prctl(PR_SET_TIMERSLACK, 1);
	for (u32 kind = 0; kind < NR_IDLE; kind++) {
		naps_until_full(kind, &idling->units[kind]);
		idling->nap_ns[kind] = (double)IDLE_UNIT /
				       naps_until_full(kind, &idling->units[kind]);
	}
	idling->begin = now_ns();
}

/* For how many ns the CPU has not been idle since the beginning. */
static double idling_end(const struct idling *idling)
{
	double busy = since(idling->begin);

	for (u32 kind = 0; kind < NR_IDLE; kind++) {
		u64 units;
		u32 naps = naps_until_full(kind, &units);

		busy -= (double)(units - idling->units[kind]) * IDLE_UNIT -
			naps * idling->nap_ns[kind];
	}
	return busy;
}

/* The same for a time in which nothing is asked for, in ns. */
static double busy_anyway(u64 ns)
{
	struct idling idling;

	idling_begin(&idling);
	sleep_until(idling.begin + ns);
	return idling_end(&idling);
}

static void timeout(struct run *r)
{
	double idle_cost = busy_anyway(FAR_NS) / FAR_NS, busy;
	struct idling idling;
	u64 begin, armed;
	u32 got = 0;

	memset(r->seen, 0, r->n * sizeof(*r->seen));
	r->s->prepare(r->n);
	open_timers(r);
	choose(r, r->n);
	idling_begin(&idling);
	draw(r, now_ns() + FAR_NS, FAR_RANGE);
	begin = now_ns();
	r->s->arm(r->ids, r->n, r->deadline);
	armed = now_ns();
	r->value[ARM] = armed - begin;
	while (got < r->n) {
		u32 now = r->s->collect(r->collected, true);

		check(r, now);
		got += now;
	}
	busy = idling_end(&idling) - (armed - idling.begin);
	r->value[WAIT] = busy - idle_cost * since(armed);
	end_others(r);
}

/* ---- periodic timers ------------------------------------------------------------------ */

#define PERIODS		10
#define PERIOD_MIN	(100 * MS)
#define PERIODIC_EACH	(5 * MS)	/* between two collections: less than a period */
#define PERIODIC_TRIES	10

/* Arm the periodic timers one after the other, so that they fire one after the other. */
static bool start_all(struct run *r, u64 period)
{
	u64 begin = now_ns();

	for (u32 i = 0; i < r->n; i++) {
		stopped_until(begin + i * (period / r->n));
		if (!r->s->every(i, period))
			return false;
	}
	return true;
}

/*
 * Collect for PERIODS periods. Returns false if a timer has fired twice between two collections:
 * then the host stood still for a period, and the figures would be those of fewer events.
 */
static bool collect_periods(struct run *r, u64 period)
{
	u64 from = now_ns(), begin;
	u32 got = 0, more;

	r->value[EXPIRE] = 0;
	r->value[COLLECT] = 0;
	for (u64 at = from; at < from + PERIODS * period; at += PERIODIC_EACH) {
		r->value[EXPIRE] += taken_until(at);
		begin = now_ns();
		more = r->s->collect(r->collected, false);
		r->value[COLLECT] += since(begin);
		if (more > r->n)
			return false;
		got += more;
	}
	must(got > (PERIODS - 2) * r->n && got <= (PERIODS + 1) * r->n);
	r->value[EXPIRE] = scaled(r, r->value[EXPIRE], got);
	r->value[COLLECT] = scaled(r, r->value[COLLECT], got);
	return true;
}

static void periodic(struct run *r)
{
	u64 period = r->n * GAP_NS < PERIOD_MIN ? PERIOD_MIN : r->n * GAP_NS;
	int tries = 0;

	calibrate(CALIBRATE_NS);
	r->s->prepare(r->n);
	open_timers(r);
	if (!start_all(r, period))
		end_without(r, "needs a later kernel");
	while (!collect_periods(r, period))
		must(++tries < PERIODIC_TRIES);
	end_others(r);
}

/* ---- repetitions --------------------------------------------------------------------- */

#define OF(metric)	(1U << (metric))

static void print_metric(const struct run *r, const char *workload, u32 metric,
			 const double *values, u32 reps)
{
	printf("%s\t%u\t%s\t%s\t%s\t", workload, r->n, r->s->name, metrics[metric],
	       metric < MEMORY ? unit : "bytes");
	for (u32 rep = 0; rep < reps; rep++)
		printf("%s%.2f", rep ? " " : "", values[rep]);
	printf("\n");
}

/* Do @once so often, and print the metrics that it has measured. */
static void repeat(const struct subject *s, u32 n, u32 reps, const char *workload,
		   void (*once)(struct run *r), u32 measured)
{
	double values[NR_METRICS][reps];
	struct run r;

	run_init(&r, workload, s, n);
	for (u32 rep = 0; rep < reps; rep++) {
		memset(r.value, 0, sizeof(r.value));
		memory_settle();
		once(&r);
		for (u32 i = 0; i < NR_METRICS; i++)
			values[i][rep] = r.value[i] / n;
	}
	for (u32 i = 0; i < NR_METRICS; i++)
		if (measured & OF(i))
			print_metric(&r, workload, i, values[i], reps);
}

void bench_dense(const struct subject *s, u32 n, u32 reps)
{
	repeat(s, n, reps, "dense", dense, ~OF(WAIT));
}

void bench_sparse(const struct subject *s, u32 n, u32 reps)
{
	repeat(s, n, reps, "sparse", sparse, OF(EXPIRE) | OF(COLLECT));
}

void bench_single(const struct subject *s, u32 n, u32 reps)
{
	repeat(s, n, reps, "single", single,
	       OF(ARM) | OF(REARM) | OF(CANCEL) | OF(EXPIRE) | OF(COLLECT));
}

void bench_timeout(const struct subject *s, u32 n, u32 reps)
{
	repeat(s, n, reps, "timeout", timeout, OF(ARM) | OF(WAIT));
}

/* Figures for each time that a timer fires. */
void bench_periodic(const struct subject *s, u32 n, u32 reps)
{
	repeat(s, n, reps, "periodic", periodic, OF(EXPIRE) | OF(COLLECT));
}

/* ---- wake-ups ------------------------------------------------------------------------ */

/* So many timers within the ms before each of WAKE_TICKS times. */
static void draw_ticks(struct run *r, u64 from, u32 nr)
{
	u64 first = (from / MS + 2) * MS;
	u64 period = WAKE_PERIOD + 2 * GAP_NS * nr / WAKE_TICKS / MS * MS;

	for (u32 i = 0; i < nr; i++)
		set_deadline(r, i, first + i % WAKE_TICKS * period - rnd() % MS);
}

static double wakes_a_tick(struct run *r)
{
	u32 got = 0, wakes = 0;

	memset(r->seen, 0, r->n * sizeof(*r->seen));
	r->s->prepare(r->n);
	open_timers(r);
	arm_ahead(r, r->n, 100 * MS + 2 * GAP_NS * r->n, draw_ticks);
	for (; got < r->n; wakes++) {
		u32 now = r->s->collect(r->collected, true);

		check(r, now);
		got += now;
	}
	must(got == r->n);
	end_others(r);
	return (double)wakes / WAKE_TICKS;
}

void bench_wakes(const struct subject *s, u32 per_tick, u32 reps)
{
	double wakes[reps];
	struct run r;

	run_init(&r, "wakes", s, per_tick * WAKE_TICKS);
	for (u32 rep = 0; rep < reps; rep++)
		wakes[rep] = wakes_a_tick(&r);
	printf("wakes\t%u\t%s\twake-ups\ta tick\t", per_tick, s->name);
	for (u32 rep = 0; rep < reps; rep++)
		printf("%s%.2f", rep ? " " : "", wakes[rep]);
	printf("\n");
}
