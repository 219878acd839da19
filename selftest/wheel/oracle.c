// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations against a deliberately stupid oracle: an array that says when
 * each timer is due, and loops over all of it.
 *
 * The run is a row of episodes. Each has a wheel of its own, starting anywhere in
 * time, and a character: how many timers, how far ahead, how time goes by, how
 * small the budgets are. Adds and cancels happen between the calls that advance,
 * within the loop that takes the expired timers, and, since budgets run out, in the
 * middle of every phase of a step.
 *
 * An episode depends on its seed alone, which is SEED plus its number: a failure
 * names the seed with which it is the first episode. OPS counts adds, cancels and
 * calls that advance or forward; expiries come on top.
 */
#include <time.h>

#include "test.h"

#define NR_MAX		(8 * WHEEL_BIG + 100)
#define EPISODE		20000		/* operations */
#define IDLE		0		/* no timer is due at tick 0 */
#define ENOUGH		1000000		/* operations that must reach everything */

/* What must hold, each a line of TAP. */
enum prop {
	TICK, ONCE, LOST, NEXT, BUDGET, CLOCK, COUNT, SOUND, NR_PROPS
};

static const char *const promise[NR_PROPS] = {
	[TICK]		= "a timer fires in its tick, never early, never late, in order",
	[ONCE]		= "no timer fires that is not queued: never twice, never cancelled",
	[LOST]		= "after an advance nothing that was due is left",
	[NEXT]		= "the next event is never later than the earliest timer",
	[BUDGET]	= "no call does more than its budget, or stops while it has some",
	[CLOCK]		= "clk follows the time, and never overtakes an event",
	[COUNT]		= "the wheel holds as many timers as were added",
	[SOUND]		= "wheel_check() is content",
};

/* What must have happened for the run to have meant something. */
enum seen {
	IN_L0, IN_L1, IN_L2, IN_L3, IN_L4, IN_FAR,
	CUT_IDLE, CUT_CASCADE, CUT_EXPIRE, CUT_PACE,
	ADD_MIDWAY, DEL_MIDWAY, ADD_INSIDE, DEL_INSIDE,
	BIG_BUCKET, OWED, LOOKING, DEL_LOOKED, EXPIRED, NR_SEEN
};

static const char *const sight[NR_SEEN] = {
	"level 0", "level 1", "level 2", "level 3", "level 4", "far",
	"cut before a step", "cut in cascade", "cut in expire", "cut in pace",
	"added midway", "cancelled midway", "added at expiry", "cancelled at expiry",
	"big upper bucket", "moves owed", "far looked through", "cancelled there",
	"expired",
};

static u64 checks[NR_PROPS], broken[NR_PROPS], count[NR_SEEN];

/* The episode: the wheel, the timers, the oracle, the time. */
static struct wheel *w;
static struct wheel_timer timer[NR_MAX];
static u64 due[NR_MAX];
static unsigned int nr;
static u64 now, ops, seed;

/* Its character. */
static unsigned int reach, stride;	/* levels of delays, and of jumps */
static u32 budget_max;
static unsigned int advances, cancels;	/* percent */
static unsigned int inside;		/* percent of expiries that re-add or cancel */

static bool failed(void)
{
	unsigned int p;

	for (p = 0; p < NR_PROPS; p++)
		if (broken[p])
			return true;
	return false;
}

static void expect(enum prop p, bool holds)
{
	checks[p]++;
	if (holds)
		return;
	if (!failed())
		diag("SEED=%llu operation %llu, clk %llu now %llu phase %d: not so: %s",
		     (ull)seed, (ull)ops, (ull)wheel_clk(w), (ull)now, w->phase, promise[p]);
	broken[p]++;
}

/* The oracle. */

static u64 earliest(void)
{
	u64 min = WHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (due[i] != IDLE && due[i] < min)
			min = due[i];
	return min;
}

static unsigned int queued(void)
{
	unsigned int n = 0, i;

	for (i = 0; i < nr; i++)
		n += due[i] != IDLE;
	return n;
}

/* Ticks and times */

/* A distance of the magnitude of some level up to @most. */
static u64 distance(unsigned int most)
{
	return below(2 * width[1 + below(most + 1)]);
}

static u64 near_boundary(unsigned int most)
{
	u64 unit = width[1 + below(most + 1)];

	return ((now + distance(most)) / unit + 1) * unit + below(3) - 1;
}

static u64 some_expiry(void)
{
	switch (below(16)) {
	case 0:
		return below(2) ? 0 : wheel_clk(w);	/* over already */
	case 1:
		return now - below(2) * (now > 0);
	case 2:
	case 3:
		return due[below(nr)];			/* in company */
	case 4:
	case 5:
	case 6:
		return near_boundary(reach);
	case 7:
		return wheel_clk(w) + distance(reach);
	case 8:
		return below(32) ? now + 1 : WHEEL_NEVER - below(3);
	default:
		return now + distance(reach);
	}
}

/* A later time, often one where something happens. */
static u64 some_time(void)
{
	u64 t;

	switch (below(8)) {
	case 0:
		return now;				/* go on with the step */
	case 1:
		t = w->next;
		break;
	case 2:
		t = earliest() - 1 + below(3);
		break;
	case 3:
		t = near_boundary(stride);
		break;
	case 4:
		t = now + distance(stride);
		break;
	default:
		t = now + below(4);
	}
	/* Not to the end of time: timers that never fire are among them. */
	return t > now && t < now + 4 * SPAN ? t : now;
}

/* Operations on one timer, in the wheel and in the oracle */

static bool midway(void)
{
	return w->phase != WHEEL_IDLE;
}

static void add(unsigned int i, u64 expires)
{
	u64 next = w->next;
	bool earlier;

	ops++;
	earlier = wheel_add(w, &timer[i], expires);
	due[i] = expires > wheel_clk(w) ? expires : wheel_clk(w) + 1;
	expect(NEXT, w->next <= due[i] && earlier == (w->next < next) && w->next <= next);
	expect(ONCE, wheel_pending(&timer[i]) && timer[i].expires == due[i]);
	count[ADD_MIDWAY] += midway();
	count[IN_L0 + (timer[i].bucket >= WHEEL_L1) + (timer[i].bucket >= WHEEL_L2) +
	      (timer[i].bucket >= WHEEL_L3) + (timer[i].bucket >= WHEEL_L4) +
	      (timer[i].bucket >= WHEEL_FAR)]++;
}

static void del(unsigned int i)
{
	ops++;
	count[DEL_MIDWAY] += midway();
	count[DEL_LOOKED] += timer[i].bucket == WHEEL_FAR + !w->far;
	wheel_del(w, &timer[i]);
	due[i] = IDLE;
	expect(ONCE, !wheel_pending(&timer[i]));
}

/* Many timers into the same tick, or into the same bucket of some level. */
static void burst(void)
{
	u64 expires = some_expiry(), spread = width[below(reach + 2)];
	unsigned int n = 1 + below(nr), i = below(nr), k;

	if (expires > WHEEL_NEVER - spread)
		return;
	for (k = 0; k < nr && n; k++, i = i + 1 < nr ? i + 1 : 0) {
		if (due[i] != IDLE)
			continue;
		add(i, expires + below(spread));
		n--;
	}
}

/* What a callback may do: add its timer again, cancel another. */
static void at_expiry(unsigned int i)
{
	unsigned int other = below(nr);

	if (below(2)) {
		add(i, some_expiry());
		count[ADD_INSIDE]++;
	} else if (due[other] != IDLE) {
		del(other);
		count[DEL_INSIDE]++;
	}
}

static void expired(struct wheel_timer *t)
{
	unsigned int i = t - timer;

	count[EXPIRED]++;
	expect(ONCE, due[i] != IDLE && !wheel_pending(t));
	expect(TICK, due[i] == wheel_clk(w) && t->expires == due[i] && due[i] <= now);
	expect(SOUND, t->data == i && t->flags == (u16)~i);
	due[i] = IDLE;
	if (below(100) < inside)
		at_expiry(i);
}

/* What the wheel is in the middle of. */
static void look(bool unfinished)
{
	u32 owed = 0;
	unsigned int l;

	if (unfinished)
		count[CUT_IDLE + w->phase]++;
	for (l = 1; l < WHEEL_LEVELS; l++)
		owed += w->quota[l];
	count[OWED] += unfinished && w->phase == WHEEL_PACE && owed;
	count[BIG_BUCKET] += find_next_bit(w->big, WHEEL_FAR, WHEEL_L1) < WHEEL_FAR;
	count[LOOKING] += w->bucket[WHEEL_FAR + !w->far].n > 0;
}

static void state(u64 clk)
{
	bool unfinished = wheel_due(w, now);
	u64 min = earliest();

	expect(CLOCK, wheel_clk(w) >= clk && wheel_clk(w) <= now);
	expect(NEXT, w->next <= min);
	expect(COUNT, w->nr == queued());
	if (unfinished) {
		expect(TICK, min >= wheel_clk(w));
	} else {
		expect(LOST, min > now);
		expect(CLOCK, wheel_clk(w) == now && !midway());
	}
	look(unfinished);
}

static void advance_to(u64 time, u32 budget)
{
	u64 moves = w->moves, clk = wheel_clk(w), fired = 0;
	u32 left = budget;
	struct wheel_timer *t;

	ops++;
	now = time;
	while ((t = wheel_expire(w, now, &left)) && !failed()) {
		expired(t);
		fired++;
		expect(BUDGET, left < budget);
	}
	expect(BUDGET, left <= budget && fired + (w->moves - moves) <= budget - left);
	expect(BUDGET, !left || !wheel_due(w, now));
	state(clk);
}

/* Time goes by, and nobody calls but to add: clk follows up to the next event. */
static void forward(void)
{
	u64 clk = wheel_clk(w), next = w->next;

	ops++;
	now = some_time();
	wheel_forward(w, now);
	expect(CLOCK, wheel_clk(w) == (now > clk && now < next ? now : clk) && w->next == next);
}

static void one_operation(void)
{
	unsigned int r = below(100), i = below(nr);

	if (r < advances)
		advance_to(some_time(), below(8) ? 1 + below(budget_max) : NO_LIMIT);
	else if (r < advances + 3)
		forward();
	else if (!below(50))
		burst();
	else if (due[i] == IDLE)
		add(i, some_expiry());
	else if (below(100) < cancels)
		del(i);
}

static void begin_episode(void)
{
	static const unsigned int sizes[] = { 2, 16, 2 * WHEEL_BIG + 40, NR_MAX };
	static const u32 budgets[] = { 1, 3, 100, NO_LIMIT };
	const u64 starts[] = {
		0, below(SPAN), width[4] * below(1000), SPAN * 1000 - below(3),
		((u64)1 << 32) - 1 - below(width[2]), ((u64)1 << 53) - below(width[3]),
	};
	unsigned int i;

	now = starts[below(ARRAY_SIZE(starts))];
	nr = sizes[below(ARRAY_SIZE(sizes))];
	budget_max = budgets[below(ARRAY_SIZE(budgets))];
	reach = below(5);
	stride = below(reach + 1);
	advances = 5 + below(60);
	cancels = below(100);
	inside = below(60);
	w = new_wheel(now);
	for (i = 0; i < nr; i++) {
		timer[i] = (struct wheel_timer) { .data = i, .flags = ~i };
		due[i] = IDLE;
	}
}

/* Let all fire that can, and cancel those at the end of time. */
static void end_episode(void)
{
	unsigned int i;

	inside = 0;
	for (i = 0; i < nr && !failed(); i++)
		if (due[i] != IDLE && due[i] > now + 1000 * SPAN)
			del(i);
	while (queued() && !failed())
		advance_to(now + 4 * SPAN, NO_LIMIT);
	if (!failed()) {
		expect(COUNT, !w->nr);
		expect(SOUND, sound(w));
	}
	free(w);
}

/* A walk over a wheel costs as much as a thousand operations, or as ten. */
#define CHECK_EVERY	(WHEEL_SLOTS > 100 ? 500 : 10)

static void episode(void)
{
	u64 end = ops + EPISODE;

	rnd_state = seed;
	begin_episode();
	while (ops < end && !failed()) {
		one_operation();
		if (!below(CHECK_EVERY))
			expect(SOUND, sound(w));
	}
	end_episode();
}

static void coverage(void)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < NR_SEEN; i++) {
		diag("%-20s %llu", sight[i], (ull)count[i]);
		all &= count[i] > 0;
	}
	ok(all || ops < ENOUGH, "every kind of place and moment was reached");
}

int main(int argc, char **argv)
{
	u64 wanted;
	unsigned int p;

	plan(NR_PROPS + 2);
	seed = setting(argc > 1 ? argv[1] : NULL, "SEED", (u64)time(NULL) << 12);
	wanted = setting(argc > 2 ? argv[2] : NULL, "OPS", 10000000);
	for (; ops < wanted && !failed(); seed++)
		episode();
	for (p = 0; p < NR_PROPS; p++)
		ok(!broken[p] && checks[p], "%s (%llu checks)", promise[p], (ull)checks[p]);
	ok(ops >= wanted || failed(), "%llu operations", (ull)ops);
	coverage();
	return done();
}
