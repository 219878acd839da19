/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A wheel whose clock is set forward and back, beside a simple oracle as in oracle.h: an array that
 * says when each timer is due. The caller chooses the operations: back.c draws them at random, and
 * ../fuzz gets them from a fuzzer. An episode is begin(), operations, finish().
 */
#ifndef BACK_H
#define BACK_H

#define NR_MAX		(4 * WHEEL_BIG + 100)
#define ROOM		40

/* The properties that must hold, each a line of TAP. */
enum prop { TICK, RANGE, ORDER, ONCE, LOST, NEXT, BUDGET, COUNT, SOUND, PLACE, ENDS, NR_PROPS };

static const char *const promise[NR_PROPS] = {
	[TICK]		= "a timer is due in the tick that was asked for, wherever the clock was",
	[RANGE]		= "one with a tolerance is due in the tick that most can share, or stays",
	[ORDER]		= "none fires before its tick has come, nor before an earlier one",
	[ONCE]		= "no timer fires that is not queued: never twice, never cancelled",
	[LOST]		= "after an advance nothing that was due is left, and nothing is owed",
	[NEXT]		= "the next event is never later than the earliest timer",
	[BUDGET]	= "no call does more than its budget, or stops while it has some",
	[COUNT]		= "wheel and tree hold as many timers as were added",
	[SOUND]		= "wheel_check() finds nothing wrong, and the tree is a treap",
	[PLACE]		= "a timer put off stays in its bucket, none is in a past bucket",
	[ENDS]		= "a timer moves at most twice for each setting of the clock",
};

/* The situations that must have occurred, or the run has tested too little. */
enum seen {
	ADD_TREE, ADD_HELD, DEL_TREE, DEL_HELD, EXPIRE_TREE, EXPIRE_BOTH, CUT_EMPTY, CUT_FILL,
	CUT_STEP, BACK_EMPTY, BACK_FILL, BACK_WAIT, BACK_STEP, FORTH_HELD, WAITED,
	MOD_TREE, MOD_HELD, PUT_OFF, PUT_OFF_AHEAD, OFF_TO_TREE, OFF_EMPTIED, OFF_EXPIRED,
	EXPIRE_SMALL, SET_SMALL, GREW, CUT_GROWING,
	RANGE_TREE, RANGE_STOP, STAYED, STOP_AHEAD, STOP_TO_TREE, EXPIRE_STOP, NR_SEEN
};

static const char *const sight[NR_SEEN] = {
	"added to the tree", "added while held", "cancelled in the tree", "cancelled while held",
	"expired from the tree", "from both in a tick", "cut while emptying", "cut while filling",
	"cut in a step", "back while emptying", "back while filling", "back while waiting",
	"back in a step", "forth while held", "time came to clk again",
	"armed anew in the tree", "armed anew while held", "put off where it lies",
	"put off, wheel ahead", "from a bucket to the tree", "put off, then emptied",
	"put off, then expired", "expired while small", "set while small", "grew",
	"cut while growing",
	"late, in the tree", "late, at a stop", "late as it was", "at a stop, wheel ahead",
	"from a stop to the tree", "expired at a stop",
};

#include "judge.h"
#include "wheel_back.h"

static struct wheel_back b;
static bool is_off[NR_MAX];		/* put off, and still in that bucket */
static bool was_stop[NR_MAX];		/* at a stop, when it was armed */
static u64 sets, placed;
static bool growing;			/* and not all timers are in buckets yet */

static u64 true_clk(void)
{
	return wheel_is_held(w) ? b.held : wheel_clk(w);
}

static u64 last_over(void)
{
	return now;
}

/*
 * The tree below @t, whose timers must be between @before and @after: the number of its timers, or
 * a number that is too big if the tree is wrong.
 */
static u64 tree_size(const struct wheel_timer *t, const struct wheel_timer *before,
		     const struct wheel_timer *after)
{
	unsigned int i;

	if (!t)
		return 0;
	if (t->bucket != WHEEL_TREE || (before && !wheel_back_side(t, before)) ||
	    (after && wheel_back_side(t, after)))
		return NR_MAX + 1;
	for (i = 0; i < 2; i++)
		if (t->child[i] && wheel_back_rank(&b, t->child[i]) > wheel_back_rank(&b, t))
			return NR_MAX + 1;
	return 1 + tree_size(t->child[0], before, t) + tree_size(t->child[1], t, after);
}

/*
 * wheel_check() of the wheel, and a check of the tree. wheel_check() knows nothing of the tree, so
 * its timers are subtracted meanwhile; and while the wheel is held its clk is put back.
 */
static bool all_sound(void)
{
	bool held = wheel_is_held(w), good;

	if (tree_size(b.root, NULL, NULL) != b.nr)
		return false;
	if (b.small)
		return b.nr == wheel_nr(w) && held &&
		       find_next_bit(w->map, WHEEL_SLOTS, 0) == WHEEL_SLOTS;
	if (held)
		w->q[0] = b.held;
	w->gone += b.nr;
	good = sound(w);
	w->gone -= b.nr;
	if (held)
		w->q[0] = WHEEL_NEVER;
	return good;
}

/* Has the clock been set back so far that the wheel is being emptied into the tree? */
static bool is_held(void)
{
	return wheel_is_held(w) && !b.small;
}

/* Operations on one timer, in the wheel and in the oracle */

static bool is_at_stop(unsigned int i)
{
	return wheel_in_bucket(&timer[i]) && timer[i].bucket < WHEEL_L0;
}

static void add_any(unsigned int i, u64 first, u64 last, bool range)
{
	u64 next = w->next;
	bool held = is_held(), earlier;

	ops++;
	earlier = range ? wheel_back_add_range(w, &b, &timer[i], first, last, now) :
			  wheel_back_add(w, &b, &timer[i], first, now);
	due[i] = tick_within(first, last);
	placed++;
	expect(range ? RANGE : TICK, wheel_pending(&timer[i]) && timer[i].expires == due[i]);
	expect(NEXT, w->next <= due[i] && earlier == (w->next < next));
	count[ADD_TREE] += wheel_is_back(&timer[i]);
	count[ADD_HELD] += held;
	count[RANGE_TREE] += range && wheel_is_back(&timer[i]);
	count[RANGE_STOP] += is_at_stop(i);
	count[STOP_AHEAD] += is_at_stop(i) && wheel_clk(w) > now;
	is_off[i] = false;
	was_stop[i] = is_at_stop(i);
}

static void add(unsigned int i, u64 expires)
{
	add_any(i, expires, expires, false);
}

static void add_within(unsigned int i, u64 first, u64 last)
{
	if (last <= WHEEL_NEVER - width[4])
		add_any(i, first, last, true);
}

/*
 * MOD of a timer that is queued. If it is put off it must stay in its bucket, unless that is in
 * level 0.
 */
static void mod_any(unsigned int i, u64 first, u64 last, bool range)
{
	u64 next = w->next, clk = wheel_clk(w), before = due[i], moves = w->moves;
	u16 bucket = timer[i].bucket;
	bool held = is_held(), earlier, off, stays;

	ops++;
	due[i] = tick_within(first, last);
	stays = range && before >= tick_within(first, first) &&
		(before <= last || before == due[i]);
	if (stays)
		due[i] = before;
	earlier = range ? wheel_back_mod_range(w, &b, &timer[i], first, last, now) :
			  wheel_back_mod(w, &b, &timer[i], first, now);
	if (stays)
		expect(RANGE, timer[i].bucket == bucket && w->next == next);
	count[STAYED] += stays;
	off = wheel_in_bucket(&timer[i]) && timer[i].bucket == bucket && due[i] >= before;
	placed += !off;
	expect(range ? RANGE : TICK, wheel_pending(&timer[i]) && timer[i].expires == due[i]);
	expect(NEXT, w->next <= due[i] && earlier == (w->next < next) && w->moves == moves);
	expect(COUNT, wheel_nr(w) == queued());
	expect(PLACE, stays || wheel_is_back(&timer[i]) == (due[i] <= wheel_clk(w)));
	if (bucket != WHEEL_TREE && bucket >= WHEEL_L1 && due[i] >= before && due[i] > clk)
		expect(PLACE, off);
	is_off[i] = off && bucket >= WHEEL_L1;
	was_stop[i] = is_at_stop(i);
	count[MOD_TREE] += bucket == WHEEL_TREE;
	count[MOD_HELD] += held;
	count[PUT_OFF] += is_off[i];
	count[PUT_OFF_AHEAD] += is_off[i] && wheel_clk(w) > now;
	count[OFF_TO_TREE] += bucket != WHEEL_TREE && wheel_is_back(&timer[i]);
}

static void mod(unsigned int i, u64 expires)
{
	mod_any(i, expires, expires, false);
}

static void mod_within(unsigned int i, u64 first, u64 last)
{
	if (last <= WHEEL_NEVER - width[4])
		mod_any(i, first, last, true);
}

static void del(unsigned int i)
{
	ops++;
	count[DEL_HELD] += is_held() && !wheel_is_back(&timer[i]);
	count[DEL_TREE] += wheel_is_back(&timer[i]);
	is_off[i] = false;
	if (wheel_is_back(&timer[i]))
		wheel_back_unlink(w, &b, &timer[i]);
	else
		wheel_unlink(w, &timer[i]);
	timer[i].bucket = WHEEL_NONE;
	due[i] = IDLE;
}

static void expired(struct wheel_timer *t)
{
	unsigned int i = t - timer;

	expect(ONCE, due[i] != IDLE && !wheel_pending(t));
	expect(ORDER, due[i] == t->expires && due[i] <= now && due[i] == earliest());
	expect(SOUND, t->data == i && t->flags == (u16)~i);
	count[OFF_EXPIRED] += is_off[i];
	count[EXPIRE_STOP] += w->phase == WHEEL_EXPIRE && w->due < WHEEL_L0;
	is_off[i] = false;
	due[i] = IDLE;
}

/* Count where an advance ran out of its budget. */
static void look(void)
{
	count[CUT_EMPTY] += is_held();
	count[CUT_GROWING] += growing;
	count[CUT_FILL] += !wheel_is_held(w) && b.root && wheel_clk(w) <= now && !w->phase;
	count[CUT_STEP] += w->phase != WHEEL_IDLE;
}

/*
 * Count timers that were put off, or were at a stop, and are now in the tree: they came there when
 * the wheel was emptied.
 */
static void look_for_emptied(void)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (due[i] == IDLE || !wheel_is_back(&timer[i]))
			continue;
		count[OFF_EMPTIED] += is_off[i];
		count[STOP_TO_TREE] += was_stop[i];
		is_off[i] = false;
		was_stop[i] = false;
	}
}

/* Advance to the present time. */
static void advance_by(u32 budget)
{
	struct wheel_timer *timers[ROOM];
	u64 moves = w->moves, fired = 0, tree = b.nr, last = IDLE;
	u32 left = budget, got, i, room = 1 + budget % ROOM;

	ops++;
	while ((got = wheel_back_expire_many(w, &b, now, &left, timers, room, NULL)) && !failed()) {
		for (i = 0; i < got; i++)
			expired(timers[i]);
		fired += got;
		count[EXPIRE_TREE] += b.nr < tree;
		count[EXPIRE_SMALL] += b.small;
		count[EXPIRE_BOTH] += b.nr < tree && timers[0]->expires == last;
		last = timers[0]->expires;
		tree = b.nr;
	}
	expect(BUDGET, left <= budget && fired + (w->moves - moves) <= budget - left);
	expect(BUDGET, !left || !wheel_due(w, now));
	expect(NEXT, w->next <= earliest());
	look_for_emptied();
	if (wheel_due(w, now)) {
		look();
	} else {
		growing = false;
		expect(LOST, earliest() > now && !wheel_back_owes(w, &b, now));
	}
	expect(COUNT, wheel_nr(w) == queued());
}

/* Let time pass. No timer is taken. */
static void forward(u64 ticks)
{
	u64 was = now;

	ops++;
	now += ticks;
	count[WAITED] += was < wheel_clk(w) && wheel_clk(w) <= now && b.root;
	wheel_forward(w, now);
}

/* Set the clock to @time. With @tell, tell the wheel. */
static void set(u64 time, bool tell)
{
	ops++;
	sets++;
	count[SET_SMALL] += b.small && b.nr;
	if (time < now) {
		count[BACK_EMPTY] += is_held();
		count[BACK_FILL] += !wheel_is_held(w) && b.root && wheel_clk(w) <= now;
		count[BACK_WAIT] += !wheel_is_held(w) && b.root && wheel_clk(w) > now;
		count[BACK_STEP] += w->phase != WHEEL_IDLE && time < wheel_clk(w);
	} else {
		count[FORTH_HELD] += is_held() && time >= b.held;
	}
	now = time;
	if (tell)
		wheel_back_was_set(w, &b, now);
}

/* Give a wheel that began small its buckets. */
static void grow(void)
{
	ops++;
	count[GREW] += b.nr > 1;
	growing = b.nr;
	wheel_back_grow(w, &b, now);
	expect(NEXT, w->next <= earliest() && (!b.nr || wheel_due(w, now)));
}

static void begin(u64 clk, unsigned int n, bool small)
{
	unsigned int i;

	now = clk;
	nr = n;
	sets = 0;
	placed = 0;
	w = new_wheel(now);
	b = (struct wheel_back) { .seed = rnd() };
	growing = false;
	if (small)
		wheel_back_shrink(w, &b);
	for (i = 0; i < nr; i++) {
		timer[i] = (struct wheel_timer) { .data = i, .flags = ~i };
		due[i] = IDLE;
		is_off[i] = false;
		was_stop[i] = false;
	}
}

/* Let all timers fire that can, and cancel those at the end of time. */
static void finish(void)
{
	unsigned int i;

	for (i = 0; i < nr && !failed(); i++)
		if (due[i] != IDLE && due[i] > now + 1000 * SPAN)
			del(i);
	while (queued() && !failed()) {
		forward(4 * SPAN);
		advance_by(NO_LIMIT);
	}
	if (!failed()) {
		/* Five moves for the levels. The far list is scanned besides. */
		expect(ENDS, w->moves <= placed * 5 + 2 * nr * sets + 2000 * nr);
		expect(COUNT, !wheel_nr(w) && !b.nr && !b.root);
		expect(SOUND, all_sound());
	}
	free(w);
}

#endif
