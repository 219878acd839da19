/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A model for spin: lives of twheeld that share a store. It is what jobs/store_pg.sql,
 * jobs/store_pg.c and jobs/run.c do with one part and its two firings. An inline stands for the
 * function of its name in store_pg.sql; prove.sh checks that there is one.
 *
 * There are two nodes. At any moment one may bury the other, whether that is dead, stopped or only
 * slow. A node may die. It may lose its connection; then the server may have executed what the node
 * had sent, or execute it later. It may give up the part.
 *
 * A life has one lane here. Turns of several lanes concern different jobs, and to bury a life, or to
 * continue it, waits for each of its lanes as it does here for one.
 *
 * A statement sees the rows as they are when it begins. Others see what it writes when it commits.
 * In between all others may continue, except that one waits if it needs a row that is locked.
 *
 *	-DBURIALS	nodes die, and are buried though they live
 *	-DCUTS		connections are lost, too
 *	-DGIFTS		nodes give up the part, too
 *
 * What must hold:
 *   - in the end each firing is over, and it ended once
 *   - until a life is buried, no other life runs a firing that it runs
 *   - no life ends a firing that another has taken over
 *   - no life waits for ever
 *
 * Each -DBREAK_... is a mistake that the proof must find:
 *	BREAK_FENCE	a turn takes no lock on the row of its lane
 *	BREAK_LOOK	after a lost connection a life continues without waiting for what it had sent
 *	BREAK_ORPHANS	a life that claims the part does not take over what ran there
 *	BREAK_ATTEMPT	the end of a firing does not compare the attempt
 */
#define NR_FIRINGS	2
#define NR_LIVES	7
#define NOBODY		0

#ifdef CUTS
#define MOST_CUTS	1
#define MOST_GIFTS	0
#define MOST_BURIALS	1
#elif defined(GIFTS)
#define MOST_CUTS	0
#define MOST_GIFTS	1
#define MOST_BURIALS	1
#else
#define MOST_CUTS	0
#define MOST_GIFTS	0
#define MOST_BURIALS	2
#endif

#define IDLE	(running[0] == NOBODY && running[1] == NOBODY)

#ifdef BREAK_ATTEMPT
#define MINE(f)	true
#else
#define MINE(f)	(there[me] && attempt[f] == mine)
#endif

#define CAN_BURY(l)	(l != me && there[l] && (gone[l] || burials < MOST_BURIALS))

mtype = { NOTHING, DONE, REFUSED };

byte owner = NOBODY;		/* of the part */
bool there[NR_LIVES];		/* the row of the life */
bool locked[NR_LIVES];		/* by a turn */
bool done_turn[NR_LIVES];	/* the number of the last turn is that of the one under way */
bool gone[NR_LIVES];		/* its node is dead */
byte lives = NOBODY;

bool due[NR_FIRINGS] = true;
byte running[NR_FIRINGS];	/* whose it is */
byte attempt[NR_FIRINGS];
byte over[NR_FIRINGS];
byte at_it[NR_FIRINGS];		/* the life that runs it, and was not buried */

byte burials, cuts, gifts;

inline join_as(me)
{
	atomic {
		lives++;
		me = lives;
		there[me] = true
	}
}

/* Send a turn: it is a statement of its own, for nobody may wait for it. */
proctype turn(byte me, f; chan reply)
{
	bool mine;

	atomic {
		if
		:: !there[me] ->
			reply!REFUSED,me;
			goto end
		:: else ->
			mine = owner == me;
#ifndef BREAK_FENCE
			!locked[me] -> locked[me] = true
#endif
		fi
	}
	atomic {
		if
		:: mine && due[f] ->
			due[f] = false;
			running[f] = me;
			attempt[f] = 1;
			reply!DONE,me
		:: else ->
			reply!REFUSED,me
		fi;
		done_turn[me] = true;
		locked[me] = false
	}
end:	skip
}

/* Its end is of the attempt that it was, and of a life that is there. */
inline finish(me, f, mine)
{
	atomic {
		if
		:: running[f] != NOBODY && MINE(f) ->
			assert(running[f] == me);
			running[f] = NOBODY;
			over[f]++
		:: else
		fi;
		at_it[f] = (at_it[f] == me -> NOBODY : at_it[f])
	}
}

inline run_it(me, f)
{
	atomic {
		if
		:: there[me] ->
			assert(at_it[f] == NOBODY || !there[at_it[f]]);
			at_it[f] = me;
			mine = attempt[f]
		:: else -> goto buried
		fi
	}
	finish(me, f, mine)
}

/* The row can be locked when nothing of it is under way. */
inline go_on(me)
{
	atomic {
#ifndef BREAK_LOOK
		!locked[me];
#endif
		if
		:: !there[me] -> goto buried
		:: else ->
			done = done_turn[me];
			lives++;
			there[me] = false;
			there[lives] = true;
			owner = (owner == me -> lives : owner);
			f2 = 0;
			do
			:: f2 < NR_FIRINGS ->
				running[f2] = (running[f2] == me -> lives : running[f2]);
				at_it[f2] = (at_it[f2] == me -> lives : at_it[f2]);
				f2++
			:: else -> break
			od;
			me = lives
		fi
	}
}

/* Bury: the row goes when nothing of it is under way. */
inline bury(l)
{
	atomic {
		!locked[l] -> there[l] = false
	}
}

inline balance(me)
{
	atomic {
		if
		:: !there[me] -> goto buried
		:: there[me] && owner != me && (owner == NOBODY || !there[owner]) ->
			owner = me;
			claimed = true
		:: else
		fi
	}
}

/* What a dead life was at is the claimer's, in an attempt of its own. */
inline take_over(me, f)
{
	claimed_f = false;
	atomic {
		if
		:: there[me] && owner == me && running[f] != NOBODY && running[f] != me ->
			running[f] = me;
			attempt[f]++;
			claimed_f = true
		:: else
		fi
	}
	if
	:: claimed_f -> run_it(me, f)
	:: else
	fi
}

inline give_up(me)
{
	atomic {
		if
		:: owner == me && gifts < MOST_GIFTS && IDLE ->
			owner = NOBODY;
			gifts++
		:: else
		fi
	}
}

/* One firing, whose turn may be lost on the way. */
inline fire(me, f)
{
	reply = NOTHING;
	done_turn[me] = false;
	run turn(me, f, back);
	if
	:: back??reply,eval(me)
	:: cuts < MOST_CUTS ->
		atomic { cuts++; lost = true }
	fi;
	if
	:: lost ->
		lost = false;
		go_on(me);
		/* The same turn again, which says whether it was done. */
		atomic {
			reply = (running[f] == me && done -> DONE : REFUSED);
			f2 = 0
		}
	:: else
	fi;
	if
	:: reply == DONE -> run_it(me, f)
	:: else
	fi
}

proctype node(bool may_die)
{
	chan back = [3] of { mtype, byte };
	byte me, mine, f, f2, l;
	bool claimed, claimed_f, lost, done;
	mtype reply;

begin:	join_as(me);
	do
	:: atomic { over[0] + over[1] >= NR_FIRINGS -> break }
	:: atomic { !there[me] -> goto buried }
	:: atomic { may_die && !gone[me] -> gone[me] = true; goto end }
	:: atomic { owner == NOBODY || !there[owner] -> skip };
		balance(me);
		if
		:: claimed ->
			claimed = false;
#ifndef BREAK_ORPHANS
			take_over(me, 0);
			take_over(me, 1)
#endif
		:: else
		fi
	:: atomic { owner == me && due[0] -> f = 0 };
		fire(me, f)
	:: atomic { owner == me && due[1] -> f = 1 };
		fire(me, f)
	:: atomic { owner == me && gifts < MOST_GIFTS -> skip };
		give_up(me)
	:: atomic { CAN_BURY(1) -> l = 1; burials = burials + !gone[l] };
		bury(l)
	:: atomic { CAN_BURY(2) -> l = 2; burials = burials + !gone[l] };
		bury(l)
	:: atomic { CAN_BURY(3) -> l = 3; burials = burials + !gone[l] };
		bury(l)
	:: atomic { CAN_BURY(4) -> l = 4; burials = burials + !gone[l] };
		bury(l)
	:: atomic { CAN_BURY(5) -> l = 5; burials = burials + !gone[l] };
		bury(l)
	od;
	goto end;
buried:	goto begin;
end:	skip
}

/* When nobody can go on. */
active proctype monitor()
{
	atomic {
		run node(true);
		run node(false)
	}
	timeout;
	assert(over[0] == 1 && over[1] == 1)
}
