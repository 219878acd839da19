/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the tables of twheel_states.c, for timers, and of twheel_tasks.c, for tasks, have in common.
 * A cell is a call that is made in one state of its subject and in one context. The test brings the
 * state about, and checks that it holds when the call is made. If it does not, the cell is tried
 * again.
 *
 * A file that includes this defines before:
 *
 *	enum state	one of them is DUE
 *	struct call	with @make, @sync and @ret
 *	struct subject	a timer or a task, and what the test sees of it
 *
 * and defines the functions that are declared here.
 */
#ifndef CELLS_H
#define CELLS_H

#include "contexts.h"
#include "kwait.h"
#include "places.h"

#define TRIES		30
#define SYNC_TRIES	5
#define HOLD_NS		(NSEC_PER_MSEC / 2)
/* After so many failed points the test ends: each of them has waited for what does not come. */
#define FAILED_MAX	6

/**
 * struct cell - a call, a state of its subject, and a context
 * @it:		the subject
 * @place:	the base of the subject
 * @call:	the call
 * @state:	the state of the subject when the call is made
 * @context:	the context of the call
 * @there:	the call is made on the other CPU; the subject is on this one
 * @own:	the call is made by the subject's callback
 * @hold:	for how long the callback still runs when a call that waits for it has begun, in ns
 * @calls:	how often the callback was called
 * @running:	the callback has been called, so the call may be made
 * @entered:	the call has begun
 * @made:	the call has returned
 * @left:	the callback is about to return
 * @elsewhere:	the callback runs on the CPU that is to make the call
 * @missed:	the subject was not in @state when the call was made
 * @hurried:	the call did not wait for the callback, or the callback was called wrongly
 * @ret:	what the call returned
 * @rest:	what the last cancel returned
 * @begin:	when the call began
 * @end:	when the call had returned
 * @before:	what the subject was armed for before the call
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

/* Does the callback run while the call is made? */
static bool is_run(enum state state);
/* Prepare an idle subject. */
static void cell_init(struct cell *cell);
/* Arm the subject, to be called after @delay. */
static void cell_start(struct cell *cell, ktime_t delay);
/* Bring about a state that needs no exact moment. */
static void cell_bring_about(struct cell *cell);
static bool cell_is_in_state(struct cell *cell);
static ktime_t cell_expires(struct cell *cell);
/* Make the call on this CPU while the callback runs, by interrupting it. */
static bool cell_interrupts(const struct cell *cell);
/* Make the call. Returns what it returned. */
static int cell_call(struct cell *cell);
/* Look at what the call has made of the subject. */
static void cell_look(struct cell *cell);
/* Let everything happen that follows from the call, and cancel what is left. */
static void cell_end(struct cell *cell);
static bool cell_is_right(const struct cell *cell);
static void cell_tell(const struct cell *cell);

/* Arm the subject, and let its time come while its callback cannot be called. */
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

/* The callback: make the call, or let others make it. */
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

/* Make the call while no softirq on this CPU can call the callback of the subject. */
static void cell_run_due(struct cell *cell)
{
	bool held = cell->there || cell->context == IN_TASK;

	fifo_begin();
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
	fifo_end();
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
 * May another CPU have expired the timer before the call was made? On PREEMPT_RT one does so for a
 * base with a sink if this CPU has not for a ms, as it may not while the timer is to stay due.
 */
static bool cell_was_rescued(const struct cell *cell)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) && cell->state == DUE && place_has_sink(cell->place) &&
	       cell->end - cell->before > NSEC_PER_MSEC;
}

/*
 * May the cell succeed if it is repeated? If the callback is to be waited for, it may have returned
 * before the call was made, because the CPU of the call stood still. So it stays longer the next
 * time.
 */
static bool cell_deserves_another(const struct cell *cell, unsigned int tries)
{
	if (cell->missed || cell_was_rescued(cell))
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
		/* If a base has used much of a CPU, it pauses. */
		usleep_range(10000, 11000);
	}
	return true;
}

/* Is this call possible in this context, on this CPU and in this state? */
static bool cell_can_be(const struct cell *cell)
{
	if (cell->there && !there.task)
		return false;
	if (cell->own)
		return is_run(cell->state) && !cell->call->sync && !cell->there && !cell->context;
	if (!is_run(cell->state) || cell->there || !cell_interrupts(cell))
		return true;
	/*
	 * In user-mode Linux, if a softirq follows a timer interrupt, no other one comes while it
	 * runs.
	 */
	return cell->context == IN_HARDIRQ && !IS_ENABLED(CONFIG_UML);
}

#endif
