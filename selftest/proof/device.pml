// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A model for spin: the timers of a file of /dev/twheel, which are cancelled, re-armed, fired and
 * read at the same time.
 *
 * An inline stands for the function of its name in twheel_chardev.c; prove.sh checks that there is
 * one. Whatever the code does without releasing the base's lock is one atomic step. There are two
 * slots, two readers, the interrupt, and one process that submits or drains: file->submit makes
 * more of those behave as one. All of them continue for ever.
 *
 * What the user has been told about an arming:
 *	OWED	an event must come
 *	GIVEN	its event has been read
 *	EITHER	re-armed while its event was being read: the event may be read or not
 *	NOTHING	never armed; or cancelled or re-armed, by a call that said so
 *
 * What must hold:
 *   - an event is read only for an arming that is OWED or EITHER: no event twice, and none after
 *     a cancel that returned 0 or 1
 *   - after an event without TWHEEL_EV_MORE, and after it was cancelled or drained, a timer has no
 *     further event
 *   - a slot that is OWED is ARMED, READY or READING: no event is lost, not by a fault either
 *   - events are read in the order in which they expired, except those that two readers failed to
 *     store at the same time
 *   - a stale handle gets ENOENT, and a timer whose handle gets ENOENT is owed nothing
 *   - no reader sleeps while an event is ready, unless another reader is on its way
 *
 * Each -DBREAK_... is a mistake that the proof must find.
 *
 * A call that is refused changes nothing, so a refusal that depends on the time or on what is not
 * modelled here (TWHEEL_F_PENDING, say) is left out.
 *
 * Generations are not counted: a handle is stale or it is not. So the proof does not cover a handle
 * that becomes valid again after 2^32 uses of its slot.
 */
#define SLOTS	2
#define READERS	2

mtype:state = { FREE, ARMED, READY, READING, IDLE }
mtype:kind = { ONCE, KEEP, PERIODIC }
mtype:word = { NOTHING, OWED, GIVEN, EITHER }
mtype:result = { ZERO, ONE, ENOENT, EALREADY }

typedef slot_t {
	mtype:state state = FREE;
	mtype:kind kind = ONCE;
	bool stale = true;		/* the handle that the user knows, */
	bool old = true;		/* and the one before it */
	bool out;			/* ARMED, but not in the wheel: it is being drained */
	byte reader = READERS;		/* who has it while it is READING */
	byte nr_past;			/* events of it that other readers have */
	mtype:word word = NOTHING	/* on what the slot is armed for */
}

/* What a reader carries. */
typedef event_t {
	byte who = SLOTS;
	bool more;			/* TWHEEL_EV_MORE */
	mtype:word past = NOTHING	/* on what it is of, if that is not the last arming */
}

typedef reader_t {
	event_t event[SLOTS]
}

slot_t slot[SLOTS];
byte earlier;				/* which slot expired before the other */
bool mixed;				/* events that two readers put back are ready, in no order */
chan ready = [SLOTS] of { byte };
reader_t reader[READERS];
bool asleep[READERS];
byte coming;				/* readers that are in the call and not asleep */
bool waking;				/* there are new events, and a wake-up will follow */

#define nr_ready	len(ready)
#define mine		reader[me].event

/* Used within one step only. */
hidden byte i, rest, other;
hidden byte found, present;
hidden mtype:result res;

inline slot_find(s, is_stale)
{
	found = slot[s].state != FREE && !is_stale
}

inline slot_put(s)
{
	assert(slot[s].word != OWED);
	slot[s].state = FREE;
	slot[s].kind = ONCE;
	slot[s].word = NOTHING;
#ifndef BREAK_GENERATION
	slot[s].stale = true;
#endif
}

inline slot_arm(s)
{
	assert(slot[s].word != OWED);
	slot[s].state = ARMED;
	slot[s].word = OWED
}

inline slot_unqueue(s)
{
	if
#ifndef BREAK_DETACH
	:: slot[s].state == READY -> ready??eval(s)
#endif
	:: else
	fi
}

#define goes_on(k)	(k != ONCE)

/* The event that is being read belongs to an earlier arming now, and its reader lets go of the slot. */
#define read_on(s)							\
	other = slot[s].reader;						\
	for (i : 0 .. SLOTS - 1) {					\
		if							\
		:: reader[other].event[i].who == s &&			\
		   reader[other].event[i].past == NOTHING ->		\
			reader[other].event[i].past =			\
				(slot[s].word == OWED -> EITHER : slot[s].word)	\
		:: else							\
		fi							\
	}								\
	slot[s].reader = READERS;					\
	slot[s].nr_past++

inline slot_set(s, k)
{
	slot[s].kind = k;
	slot_arm(s)
}

inline op_add(s, k)
{
	slot_set(s, k);
	slot[s].old = slot[s].stale;
	slot[s].stale = false
}

/* Must op_mod() wait for the event that is being read? @k is the kind the timer is to have. */
#ifdef BREAK_MOD_LAST
#define the_last(s)		false
#else
#define the_last(s)		(slot[s].state == READING && !goes_on(slot[s].kind))
#endif
#ifdef BREAK_MOD_OVERTAKES
#define overtakes(s, k)		false
#else
#define overtakes(s, k)		((slot[s].state == READING || slot[s].nr_past > 0) && \
				 !goes_on(k))
#endif

inline op_mod(s, is_stale, k)
{
	slot_find(s, is_stale);
	if
	:: !found -> res = ENOENT
	:: found && (the_last(s) || overtakes(s, k)) -> res = EALREADY
	:: else ->
		res = (slot[s].state == ARMED -> ONE : ZERO);
		slot_unqueue(s);
		if
		:: slot[s].state == READING -> read_on(s)
		:: else
		fi;
		slot[s].word = NOTHING;
		slot_set(s, k)
	fi
}

inline op_cancel(s, is_stale)
{
	slot_find(s, is_stale);
	if
	:: !found -> res = ENOENT
#ifndef BREAK_CANCEL_READING
	:: found && slot[s].state == READING -> res = EALREADY
#endif
#ifndef BREAK_CANCEL_PAST
	:: found && slot[s].nr_past > 0 -> res = EALREADY
#endif
	:: else ->
		res = (slot[s].state == ARMED -> ONE : ZERO);
		slot_unqueue(s);
		slot[s].word = NOTHING;
		slot_put(s)
	fi
}

/* Wakes one reader: they wait exclusively. */
inline file_wake()
{
	if
	:: asleep[0] -> asleep[0] = false; coming++
	:: asleep[1] -> asleep[1] = false; coming++
	:: !asleep[0] && !asleep[1]
	fi
}

inline file_expired(s)
{
	slot[s].state = READY;
	ready!s;
	earlier = 1 - s
}

inline file_sink_wake()
{
	waking = false;
	file_wake()
}

inline read_collect(most)
{
	nr = 0;
	do
	:: nr < most && nr_ready > 0 ->
		ready?other;
		assert(earlier == other || slot[1 - other].state != READY || mixed);
		slot[other].state = READING;
		slot[other].reader = me;
		mine[nr].who = other;
		mine[nr].more = goes_on(slot[other].kind);
		nr++
	:: else -> break
	od;
	mixed = mixed && (nr == SLOTS || nr_ready > 0 || reader[1 - me].event[0].who != SLOTS)
}

/* Event @n has reached the user. */
#define delivered(n)							\
	other = mine[n].who;						\
	if								\
	:: mine[n].past != NOTHING ->					\
		/* Its timer goes on still: no event after the last, none after a cancel. */ \
		assert(mine[n].past == EITHER);				\
		assert(mine[n].more && slot[other].state != FREE &&	\
		       goes_on(slot[other].kind));			\
		mine[n].past = GIVEN					\
	:: else ->							\
		assert(slot[other].word == OWED);			\
		slot[other].word = GIVEN				\
	fi

/* An event at a time, until all are copied or a fault comes. */
#define copy_to_iter()							\
	copied = 0;							\
	do								\
	:: copied < nr -> atomic { delivered(copied); copied++ }	\
	:: break							\
	od

inline slot_after_read(s)
{
	assert(slot[s].word == GIVEN);
	if
	:: slot[s].kind == ONCE -> slot_put(s)
	:: slot[s].kind == KEEP -> slot[s].state = IDLE
	:: slot[s].kind == PERIODIC -> slot_arm(s)
	fi
}

inline slot_unread(s)
{
	slot[s].state = READY;
	mixed = mixed || reader[1 - me].event[0].who != SLOTS;
	ready!s;
#ifndef BREAK_UNREAD_TAIL
	rest = nr_ready - 1;
	do
	:: rest > 0 -> ready?other; ready!other; rest--
	:: else -> break
	od
#endif
}

inline read_commit()
{
	do
	:: nr > 0 ->
		nr--;
		other = mine[nr].who;
		if
#ifdef BREAK_COMMIT_BLIND
		:: true ->
#else
#ifdef BREAK_COMMIT_NOT_OWN
		:: slot[other].state == READING ->
#else
		:: slot[other].reader == me ->
			slot[other].reader = READERS;
#endif
#endif
			if
			:: nr < copied -> slot_after_read(other)
#ifdef BREAK_FAULT_LOSES
			:: else -> slot_put(other)
#else
			:: else -> slot_unread(other)
#endif
			fi
		:: else -> slot[other].nr_past--
		fi;
		mine[nr].who = SLOTS; mine[nr].more = false; mine[nr].past = NOTHING
	:: else -> break
	od
}

/* All that is armed, or as much as there is room for. */
inline drain_collect()
{
	for (i : 0 .. SLOTS - 1) {
		if
#ifdef BREAK_DRAIN_PAST
		:: slot[i].state == ARMED -> slot[i].out = true
#else
		:: slot[i].state == ARMED && slot[i].nr_past == 0 -> slot[i].out = true
#endif
		:: true
		fi
	}
}

/* The caller has got some, and has been told of none. */
inline drain_commit(s)
{
	if
	:: slot[s].out ->
		slot[s].out = false;
		slot[s].word = NOTHING;
		if
		:: slot_put(s)
		:: slot_arm(s)
		fi
	:: else
	fi
}

/* Until nothing is ready, there is no more room, or a fault or a signal comes. */
inline reader_run()
{
	do
	:: nr_ready > 0 ->
		atomic {
			if
			:: read_collect(1)
			:: read_collect(SLOTS)
			fi
		};
		copy_to_iter();
		atomic {
			present = copied < nr;
			read_commit();
			copied = 0;
			if
			:: present -> break
			:: else
			fi
		}
	:: break
	od
}

/* Operations of a batch, or of several: what is between them makes no difference. */
active proctype submitter()
{
	mtype:kind k = ONCE;
	byte s;

	do
	:: atomic {
		if
		:: s = 0
		:: s = 1
		fi;
		if
		:: k = ONCE
		:: k = KEEP
		:: k = PERIODIC
		fi;
		present = true;
		res = ZERO;
		if
		:: slot[s].state == FREE -> op_add(s, k)
		:: op_mod(s, slot[s].stale, k)
		:: op_cancel(s, slot[s].stale)
		:: present = false; op_mod(s, slot[s].old, k)
		:: present = false; op_cancel(s, slot[s].old)
		fi;
		assert(present || res == ENOENT);
		assert(!present || res != ENOENT || slot[s].word != OWED);
		s = 0;
		k = ONCE
	}
	:: atomic { drain_collect() };
		atomic {
			drain_commit(0);
			drain_commit(1)
		}
	od
}

#ifdef BREAK_DRAIN_LEAVES_ARMED
#define due(s)		(slot[s].state == ARMED)
#else
#define due(s)		(slot[s].state == ARMED && !slot[s].out)
#endif

/* The interrupt: any that are armed may be due, in one batch or more. */
active proctype base_run()
{
	byte s;

	do
	:: atomic {
		due(0) || due(1) ->
		waking = true;
#ifdef BREAK_WAKE_FIRST
		file_sink_wake()
	};
	atomic {
#endif
		s = 0;
		do
		:: s < SLOTS && due(s) -> file_expired(s); s++
		:: s < SLOTS -> s++
		:: s == SLOTS -> break
		od;
		s = 0
	};
#ifndef BREAK_WAKE_FIRST
	atomic { file_sink_wake() }
#endif
	od
}

/* @me is a number; a reader that has returned need not come again. */
proctype file_read_iter(byte me)
{
	byte nr, copied;

end:
	do
	:: coming++;
		/* reader_wait() */
		do
		:: atomic { nr_ready > 0 -> break }
		:: atomic { nr_ready == 0 -> asleep[me] = true; coming-- };
			!asleep[me]
		od;
		/* unless a signal interrupts it */
		if
		:: reader_run()
		:: skip
		fi;
		atomic {
			coming--;
#ifndef BREAK_NO_PASS_ON
			if
			:: nr_ready > 0 -> file_wake()
			:: else
			fi
#endif
		}
	od
}

#define lost(s)		(slot[s].word == OWED && slot[s].state != ARMED &&	\
			 slot[s].state != READY && slot[s].state != READING)
#define mislisted(s)	(slot[s].state == READY && !ready??[s] ||	\
			 slot[s].state != READY && ready??[s])
#define overslept	(nr_ready > 0 && (asleep[0] || asleep[1]) && !waking && coming == 0)

active proctype monitor()
{
end:
	atomic {
		lost(0) || lost(1) || mislisted(0) || mislisted(1) || overslept ->
		assert(false)
	}
}

init
{
	atomic { run file_read_iter(0); run file_read_iter(1) }
}
