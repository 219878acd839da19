// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A test of wheel_check() itself: damage one field of a sound wheel at a time, and see that
 * wheel_check() reports that field. wheel_check() does not check the quotas, the moves, and the
 * pprev of a node.
 */
#include "test.h"

/* Timers of level 1, 2 and so on; and a bucket of level 1 that is big. */
enum { L0, L1, L2, L3, L4, FAR, BIG };

#define TIMERS	(BIG + WHEEL_BIG + 1)

static struct wheel_timer timer[TIMERS];
static struct wheel *good;
static const u64 start = 5 * (u64)WHEEL_W4 + 2 * WHEEL_W2 + 1;

/* A sound wheel in which every kind of bucket is occupied. */
static void build(void)
{
	u64 big = (start / width[1] + 2) * width[1];
	unsigned int i;

	good = new_wheel(start);
	wheel_add(good, &timer[L0], start + 1);
	wheel_add(good, &timer[L1], (start / width[1] + 4) * width[1] + 1);
	wheel_add(good, &timer[L2], (start / width[2] + 2) * width[2] + 1);
	wheel_add(good, &timer[L3], (start / width[3] + 2) * width[3] + 1);
	wheel_add(good, &timer[L4], (start / width[4] + 2) * width[4] + 1);
	wheel_add(good, &timer[FAR], start + SPAN + 1);
	for (i = BIG; i < TIMERS; i++)
		wheel_add(good, &timer[i], big + 1);
}

/* Does wheel_check() report @complaint about this wheel, or nothing if that is NULL? */
static void says(const struct wheel *w, const char *complaint, const char *what)
{
	const char *err = wheel_check(w);

	if (!ok(complaint ? err && !strcmp(err, complaint) : !err, "%s", what))
		diag("it said: %s", err ? err : "nothing");
}

static struct wheel_bucket *bucket_of(struct wheel *w, unsigned int i)
{
	return &w->bucket[timer[i].bucket];
}

#define COUNT		"a bucket's count is wrong"
#define MAP		"a map bit is wrong"
#define BIG_BIT		"a big bit is wrong"
#define NR		"the number of timers is wrong"
#define NR_BIG		"the number of big buckets is wrong"
#define MINIMUM		"a timer is earlier than its bucket's min"
#define OUTSIDE		"a bucket's min is not in it"
#define ODOMETER	"the odometer is wrong"
#define CURRENT		"a current slot is wrong"
#define REACH		"the reach of a level is wrong"
#define OVERDUE		"a queued timer is overdue"
#define NEXT		"a timer is earlier than the next event"
#define UPPER		"a timer is earlier than the next event of the upper levels"
#define UPPER_NEXT	"the next event is later than that of the upper levels"
#define SLOT		"a timer is in the wrong slot"
#define BUCKET		"a timer does not know its bucket"
#define FAR_BUCKET	"a far timer does not know its bucket"
#define FAR_CLASS	"a far timer is in the wrong class"
#define FAR_TURN	"the class of far timers is wrong"
#define FAR_LATE	"a class of far timers was not emptied in time"
#define LATE		"a big bucket was not emptied in time"

/* Damage a copy of the wheel, whose lists stay those of the sound one, and see what is reported. */
#define BROKEN(damage, complaint) do {			\
	struct wheel *w = alloc(1, sizeof(*w));		\
							\
	memcpy(w, good, sizeof(*w));			\
	damage;						\
	says(w, complaint, #damage);			\
	free(w);					\
} while (0)

/* Damage a timer, which the copy shares, see what is reported, and repair the timer. */
#define BROKEN_TIMER(i, damage, complaint) do {		\
	struct wheel_timer *t = &timer[i], saved = *t;	\
							\
	damage;						\
	says(good, complaint, "timer[" #i "]: " #damage);	\
	*t = saved;					\
} while (0)

static void counts(void)
{
	unsigned int i;

	for (i = L0; i <= BIG; i++) {
		BROKEN(bucket_of(w, i)->n++, COUNT);
		BROKEN(bucket_of(w, i)->n--, COUNT);
		BROKEN(__clear_bit(timer[i].bucket, w->map), MAP);
		BROKEN(__set_bit(timer[i].bucket + 1, w->map), MAP);
	}
	BROKEN(w->added++, NR);
	BROKEN(w->gone++, NR);
	BROKEN(__clear_bit(timer[BIG].bucket, w->big), BIG_BIT);
	BROKEN(__set_bit(timer[L2].bucket, w->big), BIG_BIT);
	BROKEN(__set_bit(timer[L3].bucket + 1, w->big), BIG_BIT);
	BROKEN(w->nr_big[3]++, NR_BIG);
	BROKEN(w->nr_big[3]--, NR_BIG);
}

static void bounds(void)
{
	unsigned int i;

	for (i = L1; i <= L4; i++)
		BROKEN(bucket_of(w, i)->min++, MINIMUM);
	for (i = L1; i <= L4; i++)
		BROKEN(bucket_of(w, i)->min -= 2, MINIMUM);
	for (i = L1; i <= L4; i++) {
		timer[i].expires += 2 * width[i];
		BROKEN(bucket_of(w, i)->min += width[i], OUTSIDE);
		timer[i].expires -= 2 * width[i];
	}
	BROKEN(bucket_of(w, BIG)->min++, MINIMUM);
	BROKEN(w->next = timer[L0].expires + 1, NEXT);
	BROKEN(w->next = WHEEL_NEVER, NEXT);
	BROKEN(w->upper = timer[L1].expires + WHEEL_W1, UPPER);
	BROKEN(w->far++, FAR_TURN);
}

/* If the odometer is wrong by a whole rotation, every slot is as before. */
static void clocks(void)
{
	unsigned int l;

	BROKEN(w->q[0]++, CURRENT);
	for (l = 1; l < WHEEL_LEVELS; l++)
		BROKEN(w->q[l]++, ODOMETER);
	for (l = 0; l < WHEEL_LEVELS; l++)
		BROKEN(w->slot[l]++, CURRENT);
	for (l = 0; l < ARRAY_SIZE(good->reach); l++) {
		BROKEN(w->reach[l]++, REACH);
		BROKEN(w->reach[l]--, REACH);
	}
	BROKEN(w->q[4] += WHEEL_R4, ODOMETER);
}

static void timers(void)
{
	unsigned int i;

	for (i = L0; i <= L4; i++) {
		BROKEN_TIMER(i, t->bucket++, BUCKET);
		BROKEN_TIMER(i, t->bucket = WHEEL_NONE, BUCKET);
		BROKEN_TIMER(i, t->expires = start, OVERDUE);
	}
	for (i = L1; i <= L4; i++) {
		BROKEN_TIMER(i, t->expires--, MINIMUM);
		BROKEN_TIMER(i, t->expires -= width[i] + 1, SLOT);
		/* That is allowed: the timer was put off. */
		BROKEN_TIMER(i, t->expires += width[i], NULL);
		BROKEN_TIMER(i, t->expires += 2 * SPAN, NULL);
	}
	BROKEN_TIMER(L0, t->expires++, SLOT);
	BROKEN_TIMER(FAR, t->bucket = WHEEL_NONE, FAR_BUCKET);
	BROKEN_TIMER(FAR, t->expires = start, FAR_CLASS);
	BROKEN_TIMER(FAR, t->expires -= 2 * width[4], FAR_CLASS);
}

/* Which lists of the big bucket have timers, a bit each. */
static unsigned int used(void)
{
	u32 n = bucket_of(good, BIG)->n;

	return n < WHEEL_LISTS ? n : WHEEL_LISTS;
}

static void lists(void)
{
	unsigned int big = timer[BIG].bucket, i;

	BROKEN(wheel_lists(w, timer[L3].bucket)->first = NULL, COUNT);
	BROKEN(wheel_lists(w, WHEEL_L3)->first = &timer[L3].node, BUCKET);
	for (i = 0; i < used(); i++) {
		BROKEN(wheel_lists(w, big)[i].first = NULL, COUNT);
		BROKEN(wheel_lists(w, big)[i].first = wheel_lists(good, big)[i].first->next,
		       COUNT);
		BROKEN(wheel_lists(w, WHEEL_L1 + 1)[i].first = &timer[L3].node, BUCKET);
	}
	BROKEN(wheel_lists(w, WHEEL_FAR + 1)->first = &timer[FAR].node, FAR_BUCKET);
}

/* A class of far timers that the horizon has passed must be empty. */
static void late(void)
{
	struct wheel_timer *t = &timer[FAR];

	wheel_del(good, t);
	wheel_put(good, t, t->expires, WHEEL_FAR + fls64(wheel_horizon(good)) - 1, 0, 0);
	good->added++;
	says(good, FAR_LATE, "a far timer in a class whose turn is over");
	wheel_del(good, t);
	wheel_add(good, t, start + SPAN + 1);
}

/* A timer that is due at clk is allowed while a step is in progress, and only then. */
static void phases(void)
{
	struct wheel_timer *t = &timer[L0];

	good->q[0]++;
	good->slot[0]++;
	says(good, OVERDUE, "due at clk, and no step under way");
	good->phase = WHEEL_EXPIRE;
	says(good, NULL, "due at clk in a step under way");
	good->q[0]--;
	good->slot[0]--;
	good->phase = WHEEL_IDLE;
	wheel_del(good, t);
	BROKEN((w->next = start + 2, w->upper = start + 1), UPPER_NEXT);
	wheel_set_clk(good, (start / width[1] + 2) * width[1]);
	says(good, LATE, "clk in a big bucket");
}

#define PLAN	(1 + (BIG + 1) * 4 + 7 + 17 + 17 + 5 * 3 + 4 * 4 + 4 + 3 + used() * 3 + 3 + 3)

int main(void)
{
	build();
	plan(PLAN);
	says(good, NULL, "a sound wheel");
	counts();
	bounds();
	clocks();
	timers();
	lists();
	late();
	says(good, NULL, "the wheel is sound again");
	phases();
	free(good);
	return done();
}
