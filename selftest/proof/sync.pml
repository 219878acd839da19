// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A model for spin: one timer that two CPUs arm and re-arm. It moves between their bases, fires on
 * either, and is cancelled for good by a user who frees it.
 *
 * An inline stands for the function of its name in twheel.c; prove.sh checks that there is one.
 * Memory is sequentially consistent. The model has no time: a timer that is in a wheel may expire
 * at any moment. Nor does it say which CPU runs a base's interrupt: after a CPU went offline,
 * another runs it.
 *
 * Two users arm and cancel it at any time, and its callback may re-arm it. It ends so:
 *	-DCANCEL	when the users are done it is cancelled, and freed
 *	-DSHUTDOWN	it is shut down while they go on
 *	-DSELF		when the users are done its callback frees it
 *
 * What must hold:
 *   - the timer is in one wheel at most, that of the base it names
 *   - each arming ends in one call of the callback, or in a call that returned that it was armed
 *   - the callback never runs twice at the same time
 *   - after cancel_sync() the timer is idle, its callback does not run, and nobody touches it; after
 *     shutdown_sync() too, except that others still try to arm it, in vain
 *   - nobody waits for a lock for ever
 *
 * Each -DBREAK_... is a mistake that the proof must find. ARMINGS bounds how often it is armed.
 */
#define MIGRATING	2	/* a bit, beside the ids 0 and 1 */
#define ELSEWHERE	255
#ifndef ARMINGS
#define ARMINGS		3
#endif

bool lock[2];			/* base->lock */
bool running[2];		/* base->running is the timer */
bool queued[2];			/* the timer is in the base's wheel */
byte id;			/* timer->queue.data */
bool function = true;		/* timer->function is not NULL */

byte armings;
byte calls;			/* of the callback that are under way */
bool owed;			/* armed, and neither called nor said to be cancelled */
byte users = 2;
bool stopped;			/* cancel_sync() or shutdown_sync() has returned */
bool freed;

#ifdef SELF
#define by_itself		true
#else
#define by_itself		false
#endif

#define raw_spin_lock(b)	atomic { !lock[b] -> lock[b] = true }
#define raw_spin_unlock(b)	lock[b] = false
#define touch			assert(!freed)

/* The timer's base. Waits while the timer moves from one base to another. */
inline base_of(b)
{
	do
	:: atomic { touch; b = id };
		if
		:: (b & MIGRATING) == 0 -> break
		:: else		/* cpu_relax() */
		fi
	od
}

/* Returns with base @b locked. It tries that of its own CPU first, which may be either. */
inline lock_base(b)
{
	do
	:: atomic {
			if
			:: b = 0
			:: b = 1
			fi;
			touch;
			if
			:: id == b
			:: else -> b = ELSEWHERE
			fi
		};
		if
		:: b == ELSEWHERE -> base_of(b)
		:: else
		fi;
		raw_spin_lock(b);
		touch;
		if
#ifdef BREAK_NO_RECHECK
		:: break
#else
		:: id == b -> break
		:: else -> raw_spin_unlock(b)
#endif
		fi
	od
}

inline base_del(b, pending)
{
	atomic {
		touch;
		pending = queued[0] || queued[1];
		assert(!pending || queued[b]);
		queued[b] = false
	}
}

/* The caller is told whether the timer was armed. */
#define said(pending)							\
	atomic {							\
		if							\
		:: pending -> assert(owed); owed = false		\
		:: else							\
		fi;							\
		pending = false						\
	}

inline base_add(b)
{
	atomic {
		touch;
		assert(!queued[0] && !queued[1]);
		assert(!owed && !stopped);
		queued[b] = true;
		owed = true;
		armings++
	}
}

inline move_here(b, here)
{
	if
#ifndef BREAK_MOVE_RUNNING
	:: running[b]
#endif
	:: else ->
		touch;
#ifndef BREAK_NO_MIGRATING
		id = id | MIGRATING;
#endif
		raw_spin_unlock(b);
		raw_spin_lock(here);
		touch;
		id = here;
		b = here
	fi
}

/* Leaves @b, locked, for the base of the CPU it runs on, be it which it may. */
inline move_base(b, here)
{
	atomic {
		if
		:: here = 0
		:: here = 1
		fi
	};
	if
	:: here == b
	:: else -> move_here(b, here)
	fi;
	here = 0
}

/* twheel_mod() and its like */
inline timer_arm(b, here, pending)
{
	lock_base(b);
	touch;
	if
	:: function && armings < ARMINGS ->
		base_del(b, pending);
		said(pending);
		move_base(b, here);
		base_add(b)
	:: else
	fi;
	raw_spin_unlock(b)
}

inline twheel_cancel(b, pending)
{
	lock_base(b);
	base_del(b, pending);
	said(pending);
	raw_spin_unlock(b)
}

/* @ret: it is idle, and its callback does not run. */
inline try_cancel(b, pending, ret)
{
	lock_base(b);
	if
#ifndef BREAK_NO_WAIT
	:: running[b] -> ret = false
#endif
	:: else ->
		base_del(b, pending);
		said(pending);
		ret = true
	fi;
	raw_spin_unlock(b)
}

inline cancel_and_wait(b, pending, ret)
{
	do
	:: try_cancel(b, pending, ret);
		if
		:: ret -> break
		:: else		/* expiry_wait() */
		fi
	od
}

inline twheel_cancel_sync(b, pending, ret)
{
	cancel_and_wait(b, pending, ret)
}

inline twheel_shutdown_sync(b, pending, ret)
{
	lock_base(b);
#ifndef BREAK_SHUTDOWN_FORBIDS_NOT
	function = false;
#endif
#ifndef BREAK_SHUTDOWN_LEAVES_ARMED
	base_del(b, pending);
	said(pending);
#endif
	raw_spin_unlock(b);
	cancel_and_wait(b, pending, ret)
}

/* The callback: it may re-arm its own timer, once or not at all. */
#define callback(b, here, pending)					\
	atomic { calls++; assert(calls == 1 && !stopped) };		\
	if								\
	:: timer_arm(b, here, pending)					\
	:: skip								\
	:: atomic { by_itself && users == 0 && !owed -> freed = true }	\
	fi;								\
	atomic { assert(!stopped); calls-- }

inline run_callback(base, b, here, pending)
{
	touch;
	assert(function);
#ifdef BREAK_RUNNING_LATE
	raw_spin_unlock(base);
	running[base] = true;
#else
	running[base] = true;
	raw_spin_unlock(base);
#endif
	callback(b, here, pending);
#ifdef BREAK_TOUCH
	touch;
#endif
	raw_spin_lock(base);
	running[base] = false
}

active [2] proctype run_callbacks()
{
	byte base = _pid, b, here;
	bool pending;

end:
	do
	:: atomic { queued[base] && !lock[base] -> lock[base] = true };
		atomic {
			touch;
			assert(queued[base] && owed && id == base);
			queued[base] = false;
			owed = false
		};
		run_callback(base, b, here, pending);
		raw_spin_unlock(base);
		b = 0
	od
}

active [2] proctype user()
{
	byte b, here;
	bool pending;

	do
	:: armings < ARMINGS -> timer_arm(b, here, pending); b = 0
	:: twheel_cancel(b, pending); b = 0
	:: break
	od;
	users--
}

#ifndef SELF
active proctype owner()
{
	byte b;
	bool pending, ret;

#ifdef CANCEL
	users == 0;
	twheel_cancel_sync(b, pending, ret);
	atomic {
		stopped = true;
		freed = true;
		assert(!owed && calls == 0)
	}
#endif
#ifdef SHUTDOWN
	twheel_shutdown_sync(b, pending, ret);
	atomic {
		stopped = true;
		assert(!owed && calls == 0)
	}
#endif
}
#endif

active proctype monitor()
{
end:
	atomic {
		queued[0] && queued[1] || queued[0] && running[1] || queued[1] && running[0] ||
		running[0] && running[1] -> assert(false)
	}
}
