// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * 8 threads do random operations on 4 files and read them. Every result and every event is compared
 * with a model.
 *
 *	test_stress [OPERATIONS]
 *
 * All threads use all files. A timer belongs to the thread that added it, and no other thread
 * touches it. But all threads read, so any thread may get its event, which counts for the owner.
 * Each arming, by ADD or MOD, has a number and a record, from which the model predicts what becomes
 * of it. The number is in the low bits of the deadline, which is absolute and comes back with the
 * event. If the period of a timer counts from the read, the timer is identified by its user_data
 * instead, and is armed only once.
 *
 * What the model knows before a call must be what the call returns:
 *
 *	due in an hour			armed: MOD and CANCEL return 1, QUERY says so
 *	one-shot, its event was seen	gone: every call returns ENOENT
 *	KEEP, its event was seen	idle: MOD and CANCEL return 0, PENDING ENOENT
 *	cancelled, or gone		never valid again: every call returns ENOENT
 *	nonsense			EINVAL, and nothing has changed
 *
 * If a timer is due about now, the result says what became of its event. In the end:
 *
 *	no call took it back		the event was seen once
 *	MOD or CANCEL returned 1	never
 *	CANCEL of a one-shot returned 0	never
 *	MOD returned 0, or CANCEL of KEEP	at most once: an unread event was dropped
 *	DRAIN returned it		never, and the timer was returned once
 *	fixed rate			the periods counted add up to the last deadline
 *
 * One thread now and then drains one of the files, and gets the timers of all threads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define THREADS		8
#define FILES		4
#define SLOTS		256		/* how many timers a thread has in a file */
#define BATCH		64
#define OPERATIONS	200000UL

/* Bits of the deadline for the number of the arming: 2^22 ns are 4.2 ms. */
#define NUMBER_BITS	22
#define NUMBER_MASK	((1ULL << NUMBER_BITS) - 1)
#define PERIOD		(NUMBER_MASK + 1)

enum kind { ONCE, KEEP, RATE, DELAY };
enum fate { STANDS, REMOVED, DROPPED, REPLACED, UNUSED };

/**
 * struct arming - one arming, and what became of it
 * @deadline:	the deadline that was asked for
 * @end:	fixed rate: the deadline of the period after the last one seen
 * @seen:	periods seen in events; 0 or 1 for all kinds but RATE and DELAY
 * @drained:	how often DRAIN returned it
 * @fate:	enum fate: what the owner's calls have done to it
 * @kind:	enum kind
 * @periods:	fixed rate: the interval, in PERIODs
 */
struct arming {
	u64		deadline;
	u64		end;
	u32		seen;
	unsigned char	drained, fate, kind, periods;
};

/**
 * struct model - a timer as its owner knows it
 * @handle:	the handle of the timer; 0 if there was none yet
 * @user_data:	as it was added
 * @arming:	the number of its last arming
 * @lives:	the timer may exist
 * @past:	it was re-armed when it was not armed: an earlier event may still be read
 */
struct model {
	u64	handle;
	u64	user_data;
	u32	arming;
	bool	lives, past;
};

struct thread {
	pthread_t	thread;
	u32		id;
	u64		seed, operations;
	struct arming	*armings;
	u32		nr_armings;
	struct model	models[FILES][SLOTS];
	struct twheel_op ops[BATCH];
};

/* The kinds of errors, which are counted. Each count must be 0. */
enum wrong { EARLY, UNKNOWN, RESULT, STALE, NONSENSE, LOST, TWICE, PHASE, CALL, WRONGS };

static const char *const wrongs[] = {
	[EARLY] = "early", [UNKNOWN] = "unknown events", [RESULT] = "wrong results",
	[STALE] = "stale handles that named something", [NONSENSE] = "nonsense accepted",
	[LOST] = "lost", [TWICE] = "twice, or after it was taken back",
	[PHASE] = "periods that do not add up", [CALL] = "failed calls",
};

static struct thread threads[THREADS];
static int files[FILES];
static u64 total, nr_wrong[WRONGS], nr_events, nr_drained, nr_zero;

static void add_to(u64 *count, u64 n)
{
	__atomic_add_fetch(count, n, __ATOMIC_RELAXED);
}

static void wrong(enum wrong what, const struct twheel_op *op, const struct arming *a)
{
	if (__atomic_add_fetch(&nr_wrong[what], 1, __ATOMIC_RELAXED) > 3)
		return;
	diag("%s:", wrongs[what]);
	if (op)
		diag("	op %u flags %u res %d", op->op, op->flags, op->res);
	if (a)
		diag("	kind %u fate %u seen %u drained %u", a->kind, a->fate, a->seen,
		     a->drained);
}

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static u32 seen(const struct arming *a)
{
	return __atomic_load_n(&a->seen, __ATOMIC_ACQUIRE);
}

/* ---- events ------------------------------------------------------------------- */

/* user_data has the owner, whether the period counts from the read, and the first arming. */
static u64 user_data_of(u32 owner, u32 number, bool delay)
{
	return (u64)owner << 56 | (u64)delay << 48 | number;
}

/* The arming that an event, or a drained timer, belongs to; NULL if there is none. */
static struct arming *arming_of(u64 user_data, u64 deadline)
{
	u32 owner = user_data >> 56, number = user_data & NUMBER_MASK;

	if (!(user_data >> 48 & 1))
		number = deadline & NUMBER_MASK;
	if (owner >= THREADS || !threads[owner].armings ||
	    number >= __atomic_load_n(&threads[owner].nr_armings, __ATOMIC_ACQUIRE))
		return NULL;
	return &threads[owner].armings[number];
}

static bool event_fits(const struct arming *a, const struct twheel_event *ev)
{
	switch (a->kind) {
	case RATE:
		return ev->expires_ns >= a->deadline && ev->flags == TWHEEL_EV_MORE &&
		       (ev->expires_ns - a->deadline) % (a->periods * PERIOD) == 0;
	case DELAY:
		return ev->expires_ns >= a->deadline && ev->count == 1 &&
		       ev->flags == TWHEEL_EV_MORE;
	default:
		return ev->expires_ns == a->deadline && ev->count == 1 &&
		       ev->flags == (a->kind == KEEP ? TWHEEL_EV_MORE : 0);
	}
}

static void raise_to(u64 *most, u64 value)
{
	u64 was = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (was < value &&
	       !__atomic_compare_exchange_n(most, &was, value, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static void take_event(const struct twheel_event *ev, u64 time)
{
	struct arming *a = arming_of(ev->user_data, ev->expires_ns);

	if (!a || !event_fits(a, ev)) {
		wrong(UNKNOWN, NULL, a);
		return;
	}
	/* Each period that is counted must have passed. */
	if (time < ev->expires_ns + (ev->count - 1) * (u64)a->periods * PERIOD)
		wrong(EARLY, NULL, a);
	if (a->kind == RATE)
		raise_to(&a->end, ev->expires_ns + ev->count * a->periods * PERIOD);
	__atomic_add_fetch(&a->seen, ev->count, __ATOMIC_RELEASE);
}

/* Read up to @most events. Returns how many. */
static int read_some(int fd, u32 most)
{
	struct twheel_event ev[BATCH];
	ssize_t n = read(fd, ev, most * sizeof(*ev));
	u64 time = now();

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || n % (ssize_t)sizeof(*ev)) {
		wrong(CALL, NULL, NULL);
		return 0;
	}
	n /= (ssize_t)sizeof(*ev);
	for (ssize_t i = 0; i < n; i++)
		take_event(&ev[i], time);
	add_to(&nr_events, (u64)n);
	return (int)n;
}

/* ---- operations --------------------------------------------------------------- */

/* What the model needs of an operation in a batch, besides the operation itself. */
struct asked {
	struct model	*model;
	bool		stale, nonsense;
};

static bool due_soon(const struct arming *a)
{
	return a->deadline < now() + HOUR / 2;
}

/* Make a record for an arming of @kind. Its deadline contains its number. */
static u32 arming_new(struct thread *t, enum kind kind)
{
	u64 delay = rnd(&t->seed) % 2 ? HOUR : rnd(&t->seed) % (25 * MS);
	u32 number = t->nr_armings;
	struct arming *a = &t->armings[number];

	*a = (struct arming){ .kind = kind,
		.periods = kind == RATE ? 1 + rnd(&t->seed) % 4 : 0,
		.deadline = ((now() + delay) & ~NUMBER_MASK) | number };
	__atomic_store_n(&t->nr_armings, number + 1, __ATOMIC_RELEASE);
	return number;
}

static void ask_to_arm(struct thread *t, struct twheel_op *op, u32 number)
{
	static const u32 flags[] = { 0, TWHEEL_F_KEEP, 0, TWHEEL_F_DELAY };
	const struct arming *a = &t->armings[number];

	op->flags |= TWHEEL_F_ABS | flags[a->kind];
	op->expires_ns = a->deadline;
	op->interval_ns = a->kind == RATE ? a->periods * PERIOD :
			  a->kind == DELAY ? 2 * MS : 0;
}

static void ask_add(struct thread *t, struct model *m, struct twheel_op *op)
{
	static const enum kind kinds[] = { ONCE, ONCE, ONCE, ONCE, KEEP, KEEP, RATE, DELAY };
	enum kind kind = kinds[rnd(&t->seed) % ARRAY_SIZE(kinds)];

	m->arming = arming_new(t, kind);
	m->user_data = user_data_of(t->id, m->arming, kind == DELAY);
	op->op = TWHEEL_OP_ADD;
	op->user_data = m->user_data;
	ask_to_arm(t, op, m->arming);
}

/* The new arming becomes the model's only if the result says that it was made. */
static void ask_mod(struct thread *t, struct model *m, struct twheel_op *op)
{
	enum kind kind = rnd(&t->seed) % 4 ? ONCE : rnd(&t->seed) % 2 ? KEEP : RATE;

	op->op = TWHEEL_OP_MOD;
	op->handle = m->handle;
	op->flags = rnd(&t->seed) % 4 ? 0 : TWHEEL_F_PENDING;
	ask_to_arm(t, op, arming_new(t, kind));
}

static void make_nonsense(struct thread *t, struct twheel_op *op)
{
	switch (rnd(&t->seed) % 4) {
	case 0:
		op->op = 77;
		break;
	case 1:
		op->flags |= 1U << 30;
		break;
	case 2:
		op->reserved = 1;
		break;
	default:
		op->expires_ns = ~0ULL;
	}
}

static void ask_live(struct thread *t, struct model *m, struct twheel_op *op)
{
	bool delay = t->armings[m->arming].kind == DELAY;
	u32 dice = rnd(&t->seed) % 8;

	if (dice < 4 && !delay) {
		ask_mod(t, m, op);
		return;
	}
	op->op = dice == 7 ? TWHEEL_OP_QUERY : TWHEEL_OP_CANCEL;
	op->handle = m->handle;
	if (dice == 7)
		op->flags = TWHEEL_F_ABS;
}

static void ask(struct thread *t, struct model *m, struct twheel_op *op, struct asked *asked)
{
	*op = (struct twheel_op){ 0 };
	*asked = (struct asked){ .model = m };
	if (rnd(&t->seed) % 32 == 0 && m->handle) {
		asked->nonsense = true;
		op->op = TWHEEL_OP_MOD;
		op->handle = m->handle;
		make_nonsense(t, op);
	} else if (m->lives) {
		ask_live(t, m, op);
	} else if (m->handle && rnd(&t->seed) % 4 == 0) {
		asked->stale = true;
		op->op = rnd(&t->seed) % 2 ? TWHEEL_OP_CANCEL : TWHEEL_OP_QUERY;
		op->handle = m->handle;
	} else {
		ask_add(t, m, op);
	}
}

/* ---- results ------------------------------------------------------------------ */

/* What the model knew of the timer before the call. */
struct known {
	bool	armed, gone, idle;
};

static struct known known(const struct thread *t, const struct model *m, u32 file)
{
	const struct arming *a = &t->armings[m->arming];
	struct known k = { 0 };

	if (seen(a)) {
		k.gone = a->kind == ONCE;
		k.idle = a->kind == KEEP;
	} else {
		k.armed = file != 0 && !due_soon(a);	/* file 0 is drained */
	}
	return k;
}

static void expect(bool good, const struct thread *t, const struct model *m,
		   const struct twheel_op *op)
{
	if (!good)
		wrong(RESULT, op, &t->armings[m->arming]);
}

/* Is the result of the operation one of those that are possible? */
static void judge(const struct thread *t, const struct model *m, const struct twheel_op *op,
		  struct known k, u32 file)
{
	const struct arming *a = &t->armings[m->arming];
	bool pending = op->op == TWHEEL_OP_MOD && (op->flags & TWHEEL_F_PENDING);
	bool query = op->op == TWHEEL_OP_QUERY;

	if (op->res == -EALREADY)
		expect(!query && !k.gone && (m->past || !(k.armed || k.idle)), t, m, op);
	else if (k.armed)
		expect(op->res == 1, t, m, op);
	else if (k.gone)
		expect(op->res == -ENOENT, t, m, op);
	else if (k.idle)
		expect(op->res == (query ? (int)TWHEEL_STATE_IDLE : pending ? -ENOENT : 0),
		       t, m, op);
	else if (op->res == -ENOENT)
		expect(a->kind == ONCE || pending || file == 0, t, m, op);
	else
		expect(op->res >= 0 && op->res <= (query ? 3 : 1), t, m, op);
	if (op->res >= 0 && op->user_data != m->user_data)
		expect(false, t, m, op);
	if (query && op->res >= 0 && a->kind <= KEEP)
		expect(op->expires_ns == a->deadline, t, m, op);
}

/* The arming that was last asked for was not made. */
static void arming_unused(struct thread *t, const struct twheel_op *op)
{
	t->armings[op->expires_ns & NUMBER_MASK].fate = UNUSED;
}

static void apply_mod(struct thread *t, struct model *m, const struct twheel_op *op)
{
	struct arming *a = &t->armings[m->arming];

	if (op->res < 0) {
		arming_unused(t, op);
		if (op->res == -ENOENT && !(op->flags & TWHEEL_F_PENDING))
			m->lives = false;
		return;
	}
	a->fate = op->res ? REMOVED : REPLACED;
	m->past |= !op->res;
	add_to(&nr_zero, op->res == 0);
	m->arming = op->expires_ns & NUMBER_MASK;
}

static void apply_cancel(struct thread *t, struct model *m, const struct twheel_op *op)
{
	struct arming *a = &t->armings[m->arming];

	if (op->res == -EALREADY)
		return;
	m->lives = false;
	if (op->res < 0)
		return;
	a->fate = op->res ? REMOVED : a->kind == ONCE ? DROPPED : REPLACED;
	add_to(&nr_zero, op->res == 0);
}

static void apply_add(struct thread *t, struct model *m, const struct twheel_op *op)
{
	if (op->res) {
		wrong(RESULT, op, NULL);
		arming_unused(t, op);
		return;
	}
	m->handle = op->handle;
	m->lives = true;
	m->past = false;
}

static void apply(struct thread *t, const struct asked *asked, const struct twheel_op *op,
		  struct known k, u32 file)
{
	struct model *m = asked->model;

	if (asked->nonsense) {
		if (op->res != -EINVAL)
			wrong(NONSENSE, op, NULL);
		return;
	}
	if (asked->stale) {
		if (op->res != -ENOENT)
			wrong(STALE, op, NULL);
		return;
	}
	if (op->op == TWHEEL_OP_ADD) {
		apply_add(t, m, op);
		return;
	}
	judge(t, m, op, k, file);
	if (op->op == TWHEEL_OP_MOD)
		apply_mod(t, m, op);
	else if (op->op == TWHEEL_OP_CANCEL)
		apply_cancel(t, m, op);
	else if (op->res == -ENOENT)
		m->lives = false;
}

static unsigned long command_of(u32 op)
{
	switch (op) {
	case TWHEEL_OP_ADD:
		return TWHEEL_IOC_ADD;
	case TWHEEL_OP_CANCEL:
		return TWHEEL_IOC_CANCEL;
	case TWHEEL_OP_QUERY:
		return TWHEEL_IOC_QUERY;
	default:
		return TWHEEL_IOC_MOD;
	}
}

/* Do @nr operations, in a batch or one by one. */
static void do_ops(struct thread *t, int fd, u32 nr, bool singly)
{
	struct twheel_batch b = { .ops = (uintptr_t)t->ops, .nr = nr,
				  .op_size = sizeof(t->ops[0]) };

	if (!singly) {
		if (ioctl(fd, TWHEEL_IOC_SUBMIT, &b) || b.nr_done != nr)
			wrong(CALL, NULL, NULL);
		return;
	}
	for (u32 i = 0; i < nr; i++) {
		int rc = ioctl(fd, command_of(t->ops[i].op), &t->ops[i]);

		t->ops[i].res = rc < 0 ? -errno : rc;
	}
}

static void some_operations(struct thread *t)
{
	u32 file = rnd(&t->seed) % FILES, nr = 1 + rnd(&t->seed) % BATCH;
	u32 first = rnd(&t->seed) % SLOTS;
	struct asked asked[BATCH];
	struct known k[BATCH];

	for (u32 i = 0; i < nr; i++) {
		struct model *m = &t->models[file][(first + 3 * i) % SLOTS];

		ask(t, m, &t->ops[i], &asked[i]);
	}
	for (u32 i = 0; i < nr; i++)	/* just before the call */
		k[i] = known(t, asked[i].model, file);
	do_ops(t, files[file], nr, nr < 4);
	for (u32 i = 0; i < nr; i++)
		apply(t, &asked[i], &t->ops[i], k[i], file);
	t->operations += nr;
}

/* ---- draining ----------------------------------------------------------------- */

static void drain_some(struct thread *t)
{
	struct twheel_op ops[BATCH] = { 0 };
	struct twheel_batch b = { .ops = (uintptr_t)ops, .nr = BATCH,
				  .op_size = sizeof(ops[0]), .flags = TWHEEL_F_ABS };

	if (ioctl(files[0], TWHEEL_IOC_DRAIN, &b)) {
		wrong(CALL, NULL, NULL);
		return;
	}
	for (u32 i = 0; i < b.nr_done; i++) {
		struct arming *a = arming_of(ops[i].user_data, ops[i].expires_ns);

		if (a)
			__atomic_add_fetch(&a->drained, 1, __ATOMIC_RELAXED);
		else
			wrong(UNKNOWN, &ops[i], NULL);
	}
	add_to(&nr_drained, b.nr_done);
	t->operations++;
}

static void *work(void *arg)
{
	struct thread *t = arg;

	while (t->operations < total / THREADS) {
		some_operations(t);
		if (rnd(&t->seed) % 2) {
			read_some(files[rnd(&t->seed) % FILES], 1 + rnd(&t->seed) % BATCH);
			t->operations++;
		}
		if (t->id == 0 && rnd(&t->seed) % 16 == 0)
			drain_some(t);
	}
	return NULL;
}

static void start(void)
{
	for (u32 i = 0; i < FILES; i++)
		files[i] = dev_open(O_NONBLOCK);
	for (u32 i = 0; i < THREADS; i++) {
		struct thread *t = &threads[i];

		t->id = i;
		t->seed = 100 + i;
		/* Each operation makes at most one arming, and the last batch may be longer. */
		t->armings = calloc(total / THREADS + 2 * BATCH, sizeof(*t->armings));
		if (!t->armings)
			bail("calloc");
	}
	for (u32 i = 0; i < THREADS; i++)
		pthread_create(&threads[i].thread, NULL, work, &threads[i]);
}

/* ---- the end ------------------------------------------------------------------ */

/* Read events, until none has come for longer than any delay. */
static void read_the_rest(void)
{
	u64 last = now();

	while (now() < last + 200 * MS)
		for (u32 i = 0; i < FILES; i++)
			if (read_some(files[i], BATCH))
				last = now();
}

/* Cancel all timers; or only the periodic ones, which would never end. */
static void cancel_all(bool periodic)
{
	for (u32 i = 0; i < THREADS * FILES * SLOTS; i++) {
		struct thread *t = &threads[i / (FILES * SLOTS)];
		u32 file = i / SLOTS % FILES;
		struct model *m = &t->models[file][i % SLOTS];
		struct asked asked = { .model = m };
		struct known k;

		if (!m->lives || (periodic && t->armings[m->arming].kind < RATE))
			continue;
		k = known(t, m, file);
		t->ops[0] = (struct twheel_op){ .op = TWHEEL_OP_CANCEL, .handle = m->handle };
		do_ops(t, files[file], 1, true);
		apply(t, &asked, &t->ops[0], k, file);
	}
}

static void stress(void)
{
	u64 began = now(), operations = 0, expired = 0;
	struct twheel_info i;

	alarm(60 + (unsigned int)(total / 10000));
	start();
	for (u32 k = 0; k < THREADS; k++) {
		pthread_join(threads[k].thread, NULL);
		operations += threads[k].operations;
	}
	diag("%llu operations, %llu events, %llu drained in %llu ms", operations, nr_events,
	     nr_drained, (now() - began) / MS);
	CHECK(operations >= total && nr_events && nr_drained);
	cancel_all(true);
	read_the_rest();
	cancel_all(false);
	for (u32 f = 0; f < FILES; f++) {
		expect_counts(files[f], 0, 0, 0);
		info(files[f], &i);
		expired += i.nr_expired;
		close(files[f]);
	}
	/* An event that expired was read, or was dropped by a call that returned 0. */
	CHECK(expired >= nr_events && expired <= nr_events + nr_zero);
}

static void judge_arming(const struct arming *a)
{
	u32 most = a->fate == STANDS || a->fate == REPLACED;

	if (a->kind == RATE) {
		if (a->seen && a->end != a->deadline + a->seen * a->periods * PERIOD)
			wrong(PHASE, NULL, a);
		return;
	}
	if (a->kind == DELAY)
		return;
	if (a->drained + a->seen > most)
		wrong(TWICE, NULL, a);
	if (a->fate == STANDS && !a->drained && !a->seen)
		wrong(LOST, NULL, a);
}

static void verdict(void)
{
	u64 armings = 0;

	for (u32 i = 0; i < THREADS; i++) {
		for (u32 k = 0; k < threads[i].nr_armings; k++)
			judge_arming(&threads[i].armings[k]);
		armings += threads[i].nr_armings;
	}
	diag("%llu armings, %llu taken back when not armed", armings, nr_zero);
	for (u32 w = 0; w < WRONGS; w++)
		if (!CHECK_EQ(nr_wrong[w], 0))
			diag("	%s", wrongs[w]);
}

static const struct test tests[] = {
	{ stress, "8 threads use 4 files" },
	{ verdict, "every result and event is what the model says" },
};

int main(int argc, char **argv)
{
	total = argc > 1 ? strtoul(argv[1], NULL, 0) : OPERATIONS;
	if (total / THREADS + 2 * BATCH > NUMBER_MASK) {
		diag("at most %llu operations", THREADS * (NUMBER_MASK - 2 * BATCH));
		return 2;
	}
	return run_tests(tests, ARRAY_SIZE(tests));
}
