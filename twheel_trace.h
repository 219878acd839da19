/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Tracepoints of twheel.ko, in tracefs under events/twheel:
 *
 *	twheel_add	a timer is armed; for one that is re-armed, after twheel_cancel
 *	twheel_cancel	an armed timer is disarmed
 *	twheel_expire	a timer is due; its callback or its file's reader has yet to run
 *	twheel_cascade	timers were moved out of a bucket to finer ones
 *	twheel_budget	a run resumes work that was deferred by "pause", because an earlier run had
 *			used up its time
 *
 * Times are ns of the base's clock; now - expires is how late a timer is. When a file is closed,
 * its armed timers are forgotten all at once, without an event for each. If nobody traces, a
 * tracepoint costs a nop.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(TWHEEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TWHEEL_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

#include "twheel.h"

/*
 * base		the base of a CPU, a module or an open file
 * timer	the timer
 * id		for a file's timer the lower half of its handle; else the id of the base
 * function	the callback; 0 for a file's timer
 * expires	the beginning of its tick. If CLOCK_REALTIME is past the time for which a timer is
 *		added, the timer is armed for the next tick; if a tick ends just then, twheel_add
 *		may name the one before
 * now		the time
 */
DECLARE_EVENT_CLASS(twheel_timer,
		    TP_PROTO(const void *base, const struct twheel_timer *timer,
			     const void *function, s64 expires, s64 now),
		    TP_ARGS(base, timer, function, expires, now),
		    TP_STRUCT__entry(__field(const void *, base)
				     __field(const void *, timer)
				     __field(const void *, function)
				     __field(s64, expires)
				     __field(s64, now)
				     __field(u32, id)
		    ),
		    TP_fast_assign(__entry->base = base;
				   __entry->timer = timer;
				   __entry->function = function;
				   __entry->expires = expires;
				   __entry->now = now;
				   __entry->id = timer->queue.data;
		    ),
		    TP_printk("base=%p timer=%p id=%u function=%ps expires=%lld now=%lld",
			      __entry->base, __entry->timer, __entry->id, __entry->function,
			      __entry->expires, __entry->now)
);

DEFINE_EVENT(twheel_timer, twheel_add,
	     TP_PROTO(const void *base, const struct twheel_timer *timer,
		      const void *function, s64 expires, s64 now),
	     TP_ARGS(base, timer, function, expires, now)
);

DEFINE_EVENT(twheel_timer, twheel_cancel,
	     TP_PROTO(const void *base, const struct twheel_timer *timer,
		      const void *function, s64 expires, s64 now),
	     TP_ARGS(base, timer, function, expires, now)
);

DEFINE_EVENT(twheel_timer, twheel_expire,
	     TP_PROTO(const void *base, const struct twheel_timer *timer,
		      const void *function, s64 expires, s64 now),
	     TP_ARGS(base, timer, function, expires, now)
);

/* level: the bucket's, 5 for timers beyond the wheel's span; left: timers still in it */
TRACE_EVENT(twheel_cascade,
	    TP_PROTO(const void *base, unsigned int level, u32 moved, u32 left),
	    TP_ARGS(base, level, moved, left),
	    TP_STRUCT__entry(__field(const void *, base)
			     __field(unsigned int, level)
			     __field(u32, moved)
			     __field(u32, left)
	    ),
	    TP_fast_assign(__entry->base = base;
			   __entry->level = level;
			   __entry->moved = moved;
			   __entry->left = left;
	    ),
	    TP_printk("base=%p level=%u moved=%u left=%u", __entry->base, __entry->level,
		      __entry->moved, __entry->left)
);

TRACE_EVENT(twheel_budget,
	    TP_PROTO(const void *base, u64 pause),
	    TP_ARGS(base, pause),
	    TP_STRUCT__entry(__field(const void *, base)
			     __field(u64, pause)
	    ),
	    TP_fast_assign(__entry->base = base;
			   __entry->pause = pause;
	    ),
	    TP_printk("base=%p pause=%llu", __entry->base, __entry->pause)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE twheel_trace
#include <trace/define_trace.h>
