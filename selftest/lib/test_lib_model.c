// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Random operations on a wheel of the embedded backend, whose clock and timerfd are simulated (see
 * sim.h), are compared with a simple model. It has for each timer a deadline, a tolerance, and the
 * latest time that the clock has shown while the timer was armed. The model does not know the tick
 * of a timer. It only says whether the timer may have fired, and whether it must have fired.
 *
 * The run is a sequence of episodes. Each has a wheel of its own, with one of four characters:
 * CLOCK_MONOTONIC; the same with TWHEEL_ONE_THREAD and a coarse clock that is behind;
 * CLOCK_REALTIME; and the same, but the clock is set back and forward. Tick, number of timers and
 * the limit on them are drawn too.
 *
 * An episode depends only on its seed, which is SEED plus its number. If one fails, the output
 * names the seed that makes it the first episode. OPS is the number of operations.
 *
 * Limits: there is one thread. An episode has too few timers to reach the bounds of a lock hold, so
 * each call is one lock hold. Within a call, time does not pass and the clock is not set. After the
 * clock was set, the order of events is not checked. Until the wheel has read its descriptor,
 * CANCEL, QUERY, MOD and DRAIN need not know that the clock was set.
 */
#define _GNU_SOURCE
#include "sim.h"

#define NR_MAX		400
#define FEW		20
#define EPISODE		1500		/* operations of an episode */
#define ENOUGH		100000		/* operations: enough for every situation */
#define ROOM		64		/* events of a read */
#define TIME_SET	0x1000000000000000ULL	/* the clock is not set to times after this */
#define TIME_LAST	0x4000000000000000ULL	/* no time after this comes */

/* The promises that must hold, each a line of TAP. */
enum prop {
	EARLY, LATE, SHARED, ORDER, EVENT, RESULT, KEPT, REFUSED, DRAINED, COUNTS, DUE, QUIET, EDGE,
	TOLD, SOUND, NR_PROPS
};

static const char *const promise[NR_PROPS] = {
	[EARLY]		= "no timer fires before its deadline",
	[LATE]		= "none is still armed after its deadline and its tolerance",
	[SHARED]	= "one that may be late is armed for the tick that most can share",
	[ORDER]		= "none fires after one that must come later",
	[EVENT]		= "an event is of an armed timer, and its time, count and flags are right",
	[RESULT]	= "MOD, CANCEL and QUERY say whose the timer is, and in which state",
	[KEPT]		= "three digits of a tolerance are kept, and it is never made longer",
	[REFUSED]	= "what is invalid, or over the limit, is refused and changes nothing",
	[DRAINED]	= "DRAIN takes out all that is armed, nothing else, and says what it was",
	[COUNTS]	= "the counts of timers are right",
	[DUE]		= "the descriptor is readable while an event is due",
	[QUIET]		= "it is not after a call that leaves no event",
	[EDGE]		= "a read that leaves events makes an edge",
	[TOLD]		= "who asks is told that the clock was set after that, and nobody else",
	[SOUND]		= "wheel_check() finds nothing wrong",
};

/* The situations that must have occurred, or the run has tested too little. */
enum seen {
	FIRED, PERIODS, TOLD_EARLY, TOLD_LATE, LEFT, LAST, ARMED_ANEW, TOO_LATE, NOT_PENDING, GONE,
	FULL, INVALID, TAKEN_OUT, PUT_BACK, SET_BACK, SET_FORTH, NR_SEEN
};

static const char *const sight[NR_SEEN] = {
	"fired", "several periods", "told before deadline", "told and due", "left by a read",
	"read to the last", "armed anew in time", "armed anew too late", "not pending",
	"no such timer", "wheel full", "invalid", "drained", "put back", "clock set back",
	"clock set forward",
};

/**
 * struct timer - what the model knows of a timer
 * @state:	FREE, ARMED until its event is read, or IDLE
 * @handle:	its handle, or the last that it had
 * @deadline:	when it is due, ns
 * @tolerance:	by how much it may be late, as the wheel has kept it
 * @interval:	its period
 * @flags:	as it was armed
 * @armed_in:	the tick in which it was armed
 * @latest:	the latest tick that the clock has shown since
 * @told:	it asks to be told that the clock was set, and that was since
 */
struct timer {
	enum slot_state	state;
	u64		handle;
	u64		deadline;
	u64		tolerance;
	u64		interval;
	u32		flags;
	u64		armed_in;
	u64		latest;
	bool		told;
};

static u64 checks[NR_PROPS], broken[NR_PROPS], count[NR_SEEN];
static u64 seed, ops;

/* The episode. */
static struct timer timers[NR_MAX];
static struct twheel *twheel;
static u64 tick, limit;
static bool real, settable, one;
static bool was_set;		/* the clock was set at least once */
static u64 order;		/* all events that are read from now on may be of this tick */

static bool failed(void)
{
	for (int p = 0; p < NR_PROPS; p++)
		if (broken[p])
			return true;
	return false;
}

static void tell(enum prop p, const struct timer *t)
{
	diag("operation %llu, now %llu, tick %llu, %s%s: not so: %s", (ull)ops, (ull)sim.now,
	     (ull)tick, real ? "CLOCK_REALTIME" : "CLOCK_MONOTONIC", one ? ", one thread" : "",
	     promise[p]);
	if (t)
		diag("timer %td: state %d deadline %llu tolerance %llu interval %llu flags %#x%s",
		     t - timers, t->state, (ull)t->deadline, (ull)t->tolerance, (ull)t->interval,
		     t->flags, t->told ? ", clock set" : "");
	diag("SEED=%llu", (ull)seed);
}

/* A promise, by timer @t if that is not NULL. */
static void expect(enum prop p, const struct timer *t, bool holds)
{
	checks[p]++;
	if (holds)
		return;
	if (!failed())
		tell(p, t);
	broken[p]++;
}

/* ---- the model ---------------------------------------------------------------- */

static const struct timer *const timers_end = timers + NR_MAX;

static u64 now_tick(void)
{
	return sim.now / tick;
}

/* The ticks that a timer may fire in. */
static u64 first_tick(const struct timer *t)
{
	return t->deadline / tick + !!(t->deadline % tick);
}

static u64 last_tick(const struct timer *t)
{
	u64 last = time_add(t->deadline, t->tolerance) / tick;

	if (last < first_tick(t))
		last = first_tick(t);
	return last > t->armed_in ? last : t->armed_in + 1;
}

/* May the timer, which is ARMED, have fired? Must it have? */
static bool may_have(const struct timer *t)
{
	return t->latest >= first_tick(t);
}

static bool must_have(const struct timer *t)
{
	return now_tick() >= last_tick(t);
}

/* How many timers may, or must, have an event that was not read? */
static u32 nr_may(void)
{
	u32 n = 0;

	for (struct timer *t = timers; t < timers_end; t++)
		n += t->state == ARMED && (may_have(t) || t->told);
	return n;
}

static u32 nr_must(bool told)
{
	u32 n = 0;

	for (struct timer *t = timers; t < timers_end; t++)
		n += t->state == ARMED && (must_have(t) || (told && t->told));
	return n;
}

/* How many timers are there, or are ARMED? */
static u32 nr_used(void)
{
	u32 n = 0;

	for (struct timer *t = timers; t < timers_end; t++)
		n += t->state != FREE;
	return n;
}

static u32 nr_armed(void)
{
	u32 n = 0;

	for (struct timer *t = timers; t < timers_end; t++)
		n += t->state == ARMED;
	return n;
}

/* What an operation with @flags says about when the timer is due. */
static u64 time_of(const struct timer *t, u32 flags)
{
	if (flags & TWHEEL_F_ABS)
		return t->deadline;
	return t->deadline > sim.now ? t->deadline - sim.now : 0;
}

/* A tolerance is less than what is kept, if the sum would be after the end of time. */
static bool tolerance_is(const struct timer *t, const struct twheel_op *op)
{
	u64 most = TIME_MAX - op->expires_ns;

	return op->tolerance_ns == (t->tolerance < most ? t->tolerance : most);
}

static bool is_kept(u64 asked, u64 kept)
{
	u64 power = 1;

	while (asked / power >= 1000)
		power *= 10;
	return kept <= asked && kept >= asked / power * power;
}

/* The time has changed: note which tick it is in. */
static void note_time(void)
{
	for (struct timer *t = timers; t < timers_end; t++)
		if (now_tick() > t->latest)
			t->latest = now_tick();
}

/* Timer @t, whose deadline is known, has just been armed. */
static void note_armed(struct timer *t)
{
	t->state = ARMED;
	t->armed_in = now_tick();
	t->latest = now_tick();
	t->told = false;
}

/* The tolerance that the wheel has kept of @asked. */
static void note_tolerance(struct timer *t, u64 asked)
{
	const struct slot *slot = slot_find(embedded(twheel), t->handle);

	t->tolerance = slot ? slot_tolerance(slot) : 0;
	expect(KEPT, t, slot && is_kept(asked, t->tolerance));
}

/* Does the wheel not know yet that the clock was set, or is it about to tell the timers? */
static bool is_telling(void)
{
	return sim.was_set || embedded(twheel)->looked != NO_LOOK;
}

/* ---- what is drawn ------------------------------------------------------------ */

static bool percent(u64 n)
{
	return below(100) < n;
}

/* A number of ticks: at the bounds of the levels' buckets and stops, or anywhere. */
static u64 some_ticks(void)
{
	static const u64 unit[] = { 1, 60, 600, 3600, 14400, 86400, 31536000, 3153600000 };
	u64 by = unit[below(ARRAY_SIZE(unit))];

	switch (below(5)) {
	case 0:
		return (1 + below(4)) * by - below(3) + below(3) * (by > 1);
	case 1:
		return below(130);
	case 2:
		return below(100000);
	case 3:
		return below(1ULL << below(40));
	default:	/* to where a bucket begins, or beside it */
		return (now_tick() / by + 1 + below(3)) * by - now_tick() + below(2);
	}
}

/* A length of time. */
static u64 some_ns(void)
{
	u64 ticks = some_ticks(), most = (1ULL << 61) / tick;

	if (percent(1))
		return TIME_MAX - below(100 * tick);
	if ((s64)ticks < 0 || ticks > most)
		ticks = most;
	switch (below(4)) {
	case 0:
		return ticks * tick;
	case 1:
		return ticks * tick + below(tick);
	case 2:
		return ticks ? ticks * tick - 1 : 0;
	default:
		return ticks * tick + 1;
	}
}

/* The tolerance of what is due at, or after, @expires. */
static u64 some_tolerance(u64 expires)
{
	u64 most = TIME_MAX - expires, tolerance = 0;

	switch (below(8)) {
	case 0:
		break;
	case 1:
		tolerance = below(tick);
		break;
	case 2:
		tolerance = tick * (1 + below(64));
		break;
	case 3:
		tolerance = expires / (1 + below(32));
		break;
	case 4:
		tolerance = below(2) ? most : below(most + 1);
		break;
	case 5:
		tolerance = 1 + below(3000);
		break;
	default:
		tolerance = some_ns();
	}
	return tolerance < most ? tolerance : most;
}

/* A deadline: mostly in the future. */
static u64 some_deadline(void)
{
	u64 ns = some_ns();

	if (percent(88))
		return time_add(sim.now, ns);
	return below(2) ? below(sim.now + 1) : sim.now - (ns < sim.now ? ns : sim.now);
}

/* Times near those that @t has, so that it may stay where it is. */
static void draw_near(struct twheel_op *op, const struct timer *t)
{
	u64 by = below(2) ? tick * below(100) : below(tick), d = t->deadline;

	op->flags |= TWHEEL_F_ABS;
	if (below(2))
		op->expires_ns = d + by;
	else
		op->expires_ns = d > by ? d - by : 0;
	if (op->expires_ns > TIME_MAX)
		op->expires_ns = TIME_MAX;
	op->tolerance_ns = below(2) ? tick * below(200) : t->tolerance;
	if (op->tolerance_ns > TIME_MAX - op->expires_ns)
		op->tolerance_ns = TIME_MAX - op->expires_ns;
}

static void draw_period(struct twheel_op *op)
{
	op->interval_ns = time_add(some_ns(), tick);
	if (below(2))
		op->flags |= TWHEEL_F_DELAY;
}

/* An ADD or a MOD that is valid. */
static struct twheel_op draw(const struct timer *t, u16 what)
{
	struct twheel_op op = { .op = what };

	op.flags = (below(2) ? TWHEEL_F_ABS : 0) | (below(3) ? 0 : TWHEEL_F_KEEP);
	if (real && percent(30))
		op.flags |= TWHEEL_F_CANCEL_ON_SET;
	op.expires_ns = op.flags & TWHEEL_F_ABS ? some_deadline() : some_ns();
	op.tolerance_ns = some_tolerance(op.expires_ns);
	if (percent(25))
		draw_period(&op);
	if (what == TWHEEL_OP_ADD) {
		op.user_data = (u64)(t - timers) + 1;
		return op;
	}
	op.handle = t->handle;
	if (percent(33))
		op.flags |= TWHEEL_F_PENDING;
	if (t->state == ARMED && below(2))
		draw_near(&op, t);
	return op;
}

/* Make an ADD or a MOD invalid. */
static void spoil(struct twheel_op *op)
{
	switch (below(10)) {
	case 0:
		op->expires_ns = TIME_MAX + 1 + below(TIME_MAX);
		break;
	case 1:
		op->interval_ns = 1 + below(tick - 1);
		break;
	case 2:
		op->interval_ns = 0;
		op->flags |= TWHEEL_F_DELAY;
		break;
	case 3:
		op->flags |= 1U << (8 + below(24));
		break;
	case 4:
		op->reserved = 1;
		break;
	case 5:
		*(op->op == TWHEEL_OP_ADD ? &op->handle : &op->user_data) = 1;
		break;
	default:
		op->tolerance_ns = TIME_MAX - op->expires_ns + 1 + below(below(2) ? 5 : TIME_MAX);
	}
}

/* ---- operations --------------------------------------------------------------- */

/* Do @op by itself, or in a batch between two operations that fail: 0 is not a handle. */
static int call(struct twheel_op *op)
{
	struct twheel_op batch[3] = { { .op = TWHEEL_OP_QUERY }, *op, { .op = TWHEEL_OP_QUERY } };
	int rc, bad;

	if (percent(75))
		return embedded_op(twheel, op);
	bad = embedded_submit(twheel, batch, ARRAY_SIZE(batch));
	*op = batch[1];
	rc = op->res;
	expect(RESULT, NULL, bad == 2 + (rc < 0));
	expect(RESULT, NULL, batch[0].res == -ENOENT && batch[2].res == -ENOENT);
	op->res = 0;
	return rc;
}

static int query(const struct timer *t, struct twheel_op *op, u32 flags)
{
	*op = (struct twheel_op) { .op = TWHEEL_OP_QUERY, .flags = flags, .handle = t->handle };
	return call(op);
}

/* @op must be refused with @error, and change neither its timer nor any count. */
static void refused(const struct timer *t, struct twheel_op *op, int error)
{
	bool telling = is_telling();
	struct twheel_op q[2];
	struct twheel_info i[2];
	int state[2];

	embedded_info(twheel, &i[0]);
	state[0] = query(t, &q[0], TWHEEL_F_ABS);
	expect(REFUSED, t, call(op) == error);
	embedded_info(twheel, &i[1]);
	state[1] = query(t, &q[1], TWHEEL_F_ABS);
	if (telling)		/* then it may do so just now */
		return;
	expect(REFUSED, t, state[0] == state[1] && !memcmp(&q[0], &q[1], sizeof(q[0])));
	expect(REFUSED, t, !memcmp(&i[0], &i[1], sizeof(i[0])));
}

/* Timer @t is new and in a bucket: in which tick will it fire? */
static void check_tick(const struct timer *t)
{
	u64 first = first_tick(t), last = time_add(t->deadline, t->tolerance) / tick;
	const struct slot *slot = slot_find(embedded(twheel), t->handle);

	if (real || first <= now_tick())
		return;
	if (last > first)
		first = choice(first, last);
	expect(SHARED, t, slot && slot->timer.expires == first);
}

/* @op has armed @t. */
static void armed(struct timer *t, const struct twheel_op *op)
{
	u64 at = op->expires_ns;
	struct twheel_op q;

	t->handle = op->handle;
	t->deadline = op->flags & TWHEEL_F_ABS ? at : time_add(sim.now, at);
	t->interval = op->interval_ns;
	t->flags = op->flags & ~TWHEEL_F_PENDING;
	note_armed(t);
	note_tolerance(t, op->tolerance_ns);
	query(t, &q, 0);
	expect(KEPT, t, tolerance_is(t, &q));
}

/* Now and then, try @op with something invalid in it instead. Returns whether it was that time. */
static bool try_invalid(struct timer *t, struct twheel_op *op)
{
	if (!percent(5))
		return false;
	spoil(op);
	refused(t, op, -EINVAL);
	count[INVALID]++;
	return true;
}

static void add(struct timer *t)
{
	struct twheel_op op = draw(t, TWHEEL_OP_ADD);

	if (try_invalid(t, &op))
		return;
	if (nr_used() == limit) {
		refused(t, &op, -EDQUOT);
		count[FULL]++;
	} else {
		expect(RESULT, t, call(&op) == 0);
		armed(t, &op);
		check_tick(t);
	}
}

/* Is @rc right for a MOD or CANCEL of @t, which says whether it was pending? */
static bool is_result(const struct timer *t, int rc, bool exact)
{
	bool pending = t->state == ARMED;

	if (rc == 1)
		return pending && !(exact && must_have(t));
	return rc == 0 && !(pending && !may_have(t) && !t->told);
}

/* A valid MOD of a timer that is there. With a coarse clock it may come just in time. */
static void mod_valid(struct timer *t, struct twheel_op *op)
{
	bool exact = !one || !(op->flags & TWHEEL_F_ABS);
	int rc = call(op);

	if ((op->flags & TWHEEL_F_PENDING) && rc != 1) {
		expect(RESULT, t, rc == -ENOENT && is_result(t, 0, exact));
		count[NOT_PENDING]++;
		return;
	}
	expect(RESULT, t, is_result(t, rc, exact));
	expect(RESULT, t, op->user_data == (u64)(t - timers) + 1);
	count[rc == 1 ? ARMED_ANEW : TOO_LATE]++;
	armed(t, op);
}

static void mod(struct timer *t)
{
	struct twheel_op op = draw(t, TWHEEL_OP_MOD);

	if (try_invalid(t, &op))
		return;
	if (t->state == FREE) {
		refused(t, &op, -ENOENT);
		count[GONE]++;
	} else {
		mod_valid(t, &op);
	}
}

static void cancel(struct timer *t)
{
	struct twheel_op op = { .op = TWHEEL_OP_CANCEL, .handle = t->handle };
	int rc;

	if (t->state == FREE) {
		refused(t, &op, -ENOENT);
		return;
	}
	rc = call(&op);
	expect(RESULT, t, is_result(t, rc, !one));
	expect(RESULT, t, op.user_data == (u64)(t - timers) + 1);
	t->state = FREE;
}

/* Is @rc right for a QUERY of @t? */
static bool is_state(const struct timer *t, int rc)
{
	if (t->state == FREE)
		return rc == -ENOENT;
	if (t->state == IDLE)
		return rc == TWHEEL_STATE_IDLE;
	if (rc == TWHEEL_STATE_ARMED)
		return !must_have(t);
	return rc == TWHEEL_STATE_READY && (may_have(t) || t->told);
}

static void look_at(const struct timer *t)
{
	u32 flags = below(2) ? TWHEEL_F_ABS : 0;
	struct twheel_op op;
	int rc = query(t, &op, flags);

	expect(RESULT, t, is_state(t, rc));
	if (rc < 0)
		return;
	expect(RESULT, t, op.user_data == (u64)(t - timers) + 1 && op.interval_ns == t->interval);
	expect(RESULT, t, op.expires_ns == time_of(t, flags) && tolerance_is(t, &op));
}

/* Add a timer as DRAIN has described it. */
static void put_back(struct timer *t, struct twheel_op *op)
{
	op->handle = 0;
	expect(DRAINED, t, call(op) == 0);
	armed(t, op);
	count[PUT_BACK]++;
}

static void drained(struct twheel_op *op, u32 flags)
{
	struct timer *t = &timers[(op->user_data - 1) % NR_MAX];

	expect(DRAINED, t, t->state == ARMED && t->handle == op->handle && !must_have(t));
	expect(DRAINED, t, op->op == TWHEEL_OP_ADD && op->flags == (t->flags | flags));
	expect(DRAINED, t, op->expires_ns == time_of(t, flags) && tolerance_is(t, op));
	expect(DRAINED, t, op->interval_ns == t->interval);
	t->state = FREE;
	count[TAKEN_OUT]++;
}

static void drain(void)
{
	static struct twheel_op op[NR_MAX];
	u32 flags = below(2) ? TWHEEL_F_ABS : 0, nr = 1 + (u32)below(percent(90) ? 5 : NR_MAX);
	int n;

	/* What it gave to describe a deadline or a delay it does not give again. */
	for (struct timer *t = timers; t < timers_end; t++)
		t->flags &= ~TWHEEL_F_ABS;
	n = embedded_drain(twheel, op, nr, flags);
	for (int i = 0; i < n; i++)
		drained(&op[i], flags);
	for (struct timer *t = timers; t < timers_end; t++)
		if (n < (int)nr && t->state == ARMED)
			expect(DRAINED, t, may_have(t) || t->told);
	for (int i = 0; i < n; i++)
		if (below(3))
			put_back(&timers[(op[i].user_data - 1) % NR_MAX], &op[i]);
}

/* ---- reading ------------------------------------------------------------------ */

/* Is the count of @ev right? After the clock was set it is known only roughly. */
static bool is_count(const struct timer *t, const struct twheel_event *ev)
{
	u64 periods = 1;

	if (sim.now < t->deadline)
		return ev->count == 0 ? t->told : ev->count == 1 && may_have(t);
	if (t->interval && !(t->flags & TWHEEL_F_DELAY))
		periods += (sim.now - t->deadline) / t->interval;
	count[PERIODS] += periods > 1;
	return ev->count == (periods < UINT32_MAX ? periods : UINT32_MAX);
}

static void check_event(const struct timer *t, const struct twheel_event *ev)
{
	u32 told = ev->flags & TWHEEL_EV_CLOCK_SET, more = ev->flags & TWHEEL_EV_MORE;

	expect(EVENT, t, t->state == ARMED && t->handle == ev->handle);
	expect(EVENT, t, ev->expires_ns == t->deadline && is_count(t, ev));
	expect(EVENT, t, !!more == (t->interval || (t->flags & TWHEEL_F_KEEP)));
	expect(TOLD, t, !!told == t->told);
	expect(EARLY, t, may_have(t) || told);
	expect(EARLY, t, was_set || ev->expires_ns <= sim.now);
	count[FIRED]++;
	if (told)
		count[ev->count ? TOLD_LATE : TOLD_EARLY]++;
}

/*
 * Events come in the order of their ticks. If a timer cannot have had as late a tick as one before
 * it must have had, that is broken.
 */
static void check_order(const struct timer *t)
{
	if (was_set)
		return;
	if (first_tick(t) > order)
		order = first_tick(t);
	expect(ORDER, t, order <= last_tick(t));
}

/* The event has been read: what becomes of the timer? */
static void after_event(struct timer *t, const struct twheel_event *ev)
{
	u64 deadline = t->deadline + ev->count * t->interval;

	if (!t->interval) {
		t->state = t->flags & TWHEEL_F_KEEP ? IDLE : FREE;
		return;
	}
	if ((t->flags & TWHEEL_F_DELAY) && ev->count)
		deadline = sim.now + t->interval;
	t->deadline = deadline < TIME_MAX ? deadline : TIME_MAX;
	note_armed(t);
}

static void take(const struct twheel_event *ev)
{
	struct timer *t = &timers[(ev->user_data - 1) % NR_MAX];

	check_event(t, ev);
	check_order(t);
	after_event(t, ev);
}

/* A read has returned @n; before it there had been so many @edges. */
static void check_read(int n, u64 edges)
{
	if (n < 0) {
		expect(LATE, NULL, n == -EAGAIN && !nr_must(false));
		expect(TOLD, NULL, !nr_must(true));
		expect(QUIET, NULL, !sim.readable);
	} else if (nr_must(true)) {
		expect(EDGE, NULL, sim.edges != edges && sim.readable);
		count[LEFT]++;
	} else if (!nr_may()) {
		expect(QUIET, NULL, !sim.readable);
		count[LAST] += !nr_armed();
	}
}

static void read_some(void)
{
	u32 nr = below(3) ? ROOM : 1 + (u32)below(3);
	struct twheel_event ev[ROOM];
	int n;

	do {
		u64 edges = sim.edges;

		n = embedded_read(twheel, ev, nr);
		for (int i = 0; i < n; i++)
			take(&ev[i]);
		check_read(n, edges);
	} while (n > 0 && percent(90) && !failed());
}

/* ---- time --------------------------------------------------------------------- */

/*
 * The descriptor must be readable while an event is due. A call looks at the exact time, unless
 * the wheel has one thread. If no event can be left, the descriptor is not readable after it.
 */
static void check_readable(bool called)
{
	if (nr_must(true))
		expect(DUE, NULL, sim.readable);
	else if (called && !one && !was_set && !nr_may())
		expect(QUIET, NULL, !sim.readable);
}

static void pass(u64 ns)
{
	if (ns > TIME_LAST - sim.now)
		return;
	sim.now += ns;
	sim.behind = one ? below(5 * tick) : 0;
	if (sim.behind > sim.now / 2)
		sim.behind = 0;
	sim_look();
	note_time();
	check_readable(false);
}

/* To when the timerfd is set, or a ns before. */
static void pass_to_next(void)
{
	if (sim.when)
		pass(sim.when - sim.now - (percent(75) ? 0 : 1));
}

static void set_clock(void)
{
	u64 by = below(2) ? some_ns() : below(200 * tick), now = sim.now + by;

	if (below(2)) {
		now = by < sim.now - sim.now / 4 ? sim.now - by : sim.now / 2 + 1;
		count[SET_BACK]++;
	} else {
		count[SET_FORTH]++;
	}
	was_set = true;
	for (struct timer *t = timers; t < timers_end; t++)
		t->told |= t->state == ARMED && (t->flags & TWHEEL_F_CANCEL_ON_SET);
	sim_set(now < 4 * TIME_SET ? now : TIME_SET);
	note_time();
	check_readable(false);
}

/* ---- episodes ----------------------------------------------------------------- */

/* While the clock may be set some timers are in no bucket, and the wheel is behind at times. */
static void check_counts(void)
{
	struct twheel_levels levels;
	struct twheel_info i;
	u64 in_levels = 0;
	const char *err;

	embedded_info(twheel, &i);
	embedded_levels(twheel, &levels);
	expect(COUNTS, NULL, i.nr_timers == nr_used() && i.nr_armed + i.nr_ready == nr_armed());
	expect(COUNTS, NULL, i.nr_ready >= nr_must(false) && i.nr_ready <= nr_may());
	if (real)
		return;
	for (u32 level = 0; level < ARRAY_SIZE(levels.timers); level++)
		in_levels += levels.timers[level];
	expect(COUNTS, NULL, in_levels == i.nr_armed);
	err = wheel_check(&embedded(twheel)->wheel);
	if (err && !failed())
		diag("wheel_check: %s", err);
	expect(SOUND, NULL, !err);
}

/* A call that may change timer @t, or others. */
static void one_call(struct timer *t)
{
	switch (below(100)) {
	case 0 ... 39:
		if (t->state == FREE && percent(95))
			add(t);
		else
			mod(t);
		break;
	case 40 ... 59:
		look_at(t);
		break;
	case 60 ... 63:
		cancel(t);
		break;
	case 64:
		drain();
		break;
	case 65 ... 69:
		check_counts();
		break;
	default:
		read_some();
	}
	if (below(2) && !failed())
		check_readable(true);
}

static void one_operation(u64 crowd)
{
	switch (below(16)) {
	case 0:
		pass(below(3) ? below(3 * tick) : below(200 * tick));
		break;
	case 1:
	case 2:
		pass_to_next();
		break;
	case 3:
		if (percent(15))
			pass(some_ns());
		break;
	case 4:
		if (settable && percent(15))
			set_clock();
		break;
	default:
		one_call(&timers[below(crowd)]);
	}
	ops++;
}

/* The time when the episode begins: just anywhere, this year, or as a big bucket begins. */
static u64 some_start(void)
{
	u64 day = 86400 * tick, start = 1000000000 + below(1ULL << 50);

	if (below(3) == 0)
		start += 1764000000000000000ULL;
	if (below(3) == 0)
		start = (start / day + 1) * day + below(100) * tick;
	return start;
}

static void begin(u64 crowd)
{
	static const u64 some[] = { 100000, 1000000, 1234567, 10000000, 1000000000 };
	struct twheel_setup setup = { 0 };
	u64 character = below(4);

	tick = some[below(ARRAY_SIZE(some))];
	one = character == 1;
	real = character >= 2;
	settable = character == 3;
	limit = percent(30) ? crowd / 2 : NR_MAX;
	memset(timers, 0, sizeof(timers));
	sim = (struct sim) { .now = some_start() };
	was_set = false;
	order = 0;
	setup.clockid = real ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	setup.tick_ns = tick;
	setup.max_timers = (u32)limit;
	if (embedded_open(&twheel, one ? TWHEEL_ONE_THREAD : 0, &setup))
		abort();
	embedded(twheel)->back.seed = seed;	/* otherwise an address */
}

static void episode(void)
{
	u64 end = ops + EPISODE, crowd;

	rnd_state = seed * 7919;
	crowd = percent(75) ? FEW : NR_MAX;
	begin(crowd);
	while (ops < end && !failed())
		one_operation(crowd);
	embedded_close(twheel);
}

static void coverage(void)
{
	bool all = true;

	for (int i = 0; i < NR_SEEN; i++) {
		diag("%-20s %llu", sight[i], (ull)count[i]);
		all &= count[i] > 0;
	}
	ok(all || ops < ENOUGH, "every kind of operation and moment was reached");
}

int main(int argc, char **argv)
{
	u64 wanted;

	plan(NR_PROPS + 2);
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	wanted = setting(argc > 2 ? argv[2] : NULL, "OPS", 1000000);
	for (; ops < wanted && !failed(); seed++)
		episode();
	for (int p = 0; p < NR_PROPS; p++)
		ok(!broken[p] && (checks[p] || failed()), "%s (%llu checks)", promise[p],
		   (ull)checks[p]);
	ok(ops >= wanted || failed(), "%llu operations", (ull)ops);
	coverage();
	return done();
}
