/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tables of twheel_states.c, of timers, and of twheel_tasks.c have in common. A cell is a
 * call, made in one state of its subject and in one context: it is brought about, seen to be so
 * when the call comes, and tried again if it was not.
 *
 * A file that includes this defines before:
 *
 *	enum state	one of them is DUE
 *	struct call	with @make, @sync and @ret
 *	struct subject	a timer or a task, and what is seen of it besides
 *
 * and defines the functions that are declared here.
 */
#ifndef CELLS_H
#define CELLS_H

#include "contexts.h"
#include "kwait.h"
#include "places.h"

#define TRIES		10
#define SYNC_TRIES	3
#define HOLD_NS		(NSEC_PER_MSEC / 2)
/* So many points that failed are enough: each waits for what does not come. */
#define FAILED_MAX	6

/**
 * struct cell - a call, a state, and where
 * @it:		what the call is made for
 * @place:	its base
 * @call:	the call
 * @state:	the subject's when it comes
 * @context:	of the call
 * @there:	on the other CPU. The subject is on this one
 * @own:	from the subject's callback
 * @hold:	for how long the callback stays when a call that waits for it has come, in ns
 * @calls:	of the callback
 * @running:	the callback has been called, for the call to be made
 * @entered:	the call is being made
 * @made:	and has been made
 * @left:	the callback returns
 * @elsewhere:	the callback runs on the CPU that is to make the call
 * @missed:	the subject was not in @state when the call came
 * @hurried:	the call did not wait for the callback, or the callback was not as it should be
 * @ret:	what the call returned
 * @rest:	what was left to cancel in the end
 * @begin:	when the call began
 * @end:	and when it had ended
 * @before:	what the subject was armed for before it
 */
struct cell {
	struct subject		it;
	const struct place	*place;
	const struct call	*call;
	enum state		state;
	enum context		context;
	bool			there;
	bool			own;
	u64			hold;
	atomic_t		calls;
	bool			running;
	bool			entered;
	bool			made;
	bool			left;
	bool			elsewhere;
	bool			missed;
	bool			hurried;
	int			ret;
	int			rest;
	ktime_t			begin;
	ktime_t			end;
	ktime_t			before;
};

/* Does the callback run when the call comes? */
static bool is_run(enum state state);
/* An idle subject. */
static void cell_init(struct cell *cell);
/* Arm it, to be called @delay from now. */
static void cell_start(struct cell *cell, ktime_t delay);
/* The states that do not need the call at a certain moment. */
static void cell_bring_about(struct cell *cell);
static bool cell_is_in_state(struct cell *cell);
static ktime_t cell_expires(struct cell *cell);
/* A call that is made on this CPU while the callback runs interrupts that. */
static bool cell_interrupts(const struct cell *cell);
/* Make the call. Returns what that returned. */
static int cell_call(struct cell *cell);
/* What it has made of the subject. */
static void cell_look(struct cell *cell);
/* Let come what comes of it, and take back the rest. */
static void cell_end(struct cell *cell);
static bool cell_is_right(const struct cell *cell);
static void cell_tell(const struct cell *cell);

/* Arm the subject and let its time come, where its callback cannot be called. */
static void cell_make_due(struct cell *cell)
{
	cell_start(cell, 0);
	spin_for(place_now(cell->place) >= cell_expires(cell));
}

/* Make the call, in whatever context this is. */
static void cell_make(void *arg)
{
	struct cell *cell = arg;

	if (cell->state == DUE && !cell->there)
		cell_make_due(cell);
	cell->before = cell_expires(cell);
	cell->missed = cell->elsewhere || !cell_is_in_state(cell);
	cell->begin = place_now(cell->place);
	tell(&cell->entered);
	cell->ret = cell_call(cell);
	if (is_run(cell->state) && cell->call->sync != told(&cell->left))
		cell->hurried = true;
	cell_look(cell);
	cell->end = place_now(cell->place);
	tell(&cell->made);
}

static void cell_make_there(void *arg)
{
	struct cell *cell = arg;

	if (!is_run(cell->state) || spin_for(told(&cell->running)))
		in_context(cell->context, cell_make, cell);
}

/* The callback makes the call, or gives others the time to. */
static void cell_let_make(struct cell *cell)
{
	if (cell->own)
		cell_make(cell);
	else if (!cell->there && cell_interrupts(cell))
		in_context(cell->context, cell_make, cell);
	else if (cell->elsewhere)
		return;
	else if (!cell->call->sync)
		spin_for(told(&cell->made));
	else if (spin_for(told(&cell->entered)))
		keep_busy_ns(cell->hold);
}

static void cell_run_due(struct cell *cell)
{
	bool held = cell->there || cell->context == IN_TASK;

	if (held)
		local_bh_disable();
	if (cell->there) {
		cell_make_due(cell);
		there_start(cell_make_there, cell);
		spin_for(told(&cell->made));
	} else {
		in_context(cell->context, cell_make, cell);
	}
	if (held)
		local_bh_enable();
}

static void cell_run_running(struct cell *cell)
{
	if (cell->there)
		there_start(cell_make_there, cell);
	cell_start(cell, 0);
	if (!cell->there && !cell->own && !cell_interrupts(cell))
		cell_make_there(cell);
	spin_for(told(&cell->left));
}

/* Bring about the state, and make the call. */
static void cell_run(struct cell *cell)
{
	cell_bring_about(cell);
	if (cell->state == DUE)
		cell_run_due(cell);
	else if (is_run(cell->state))
		cell_run_running(cell);
	else if (cell->there)
		there_start(cell_make_there, cell);
	else
		in_context(cell->context, cell_make, cell);
	if (cell->there)
		there_wait();
}

/*
 * May it be right the next time? A callback that is to be waited for may have left by the time that
 * the call came, if the CPU of the call stood still meanwhile. So it stays longer the next time.
 */
static bool cell_deserves_another(const struct cell *cell, unsigned int tries)
{
	if (cell->missed)
		return tries < TRIES;
	return cell->call->sync && is_run(cell->state) && tries < SYNC_TRIES;
}

static bool cell_goes_right(struct cell *cell, const struct cell *what, u64 hold)
{
	*cell = *what;
	cell->hold = hold;
	cell_init(cell);
	cell_run(cell);
	cell_end(cell);
	return cell_is_right(cell);
}

static bool try_cell(struct cell *cell, const struct cell *what)
{
	unsigned int tries = 0;

	while (!cell_goes_right(cell, what, HOLD_NS << (3 * tries))) {
		if (!cell_deserves_another(cell, ++tries)) {
			cell_tell(cell);
			return false;
		}
		/* A base that has taken much of a CPU pauses. */
		usleep_range(10000, 11000);
	}
	return true;
}

/* Can the call come in this context, and on this CPU, in this state? */
static bool cell_can_be(const struct cell *cell)
{
	if (cell->there && !there.task)
		return false;
	if (cell->own)
		return is_run(cell->state) && !cell->call->sync && !cell->there && !cell->context;
	if (!is_run(cell->state) || cell->there || !cell_interrupts(cell))
		return true;
	/* In user-mode Linux no timer interrupt comes while a softirq runs that follows on one. */
	return cell->context == IN_HARDIRQ && !IS_ENABLED(CONFIG_UML);
}

#endif
