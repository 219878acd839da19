// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
//
// Turn users of struct hrtimer into users of struct twheel_timer, in the forms that most have: a
// timer of CLOCK_MONOTONIC whose callback does not ask to be restarted. doc/migrate.md is the
// guide, and scripts/migrate.sh applies this.
//
//	-D patch	what means the same with twheel is translated. All else stays as it is, and does
//			not compile: a type has changed, or what a function returns.
//	-D hardirq	also timers whose callbacks were called with interrupts off. With twheel
//			interrupts are on: somebody must have looked at the locks of the callbacks.
//	-D report	on the result: what was left, each with its reason.
//
// Both know the names of before Linux 6.15 and those since.

virtual patch
virtual hardirq
virtual report

// ---- initialisation -----------------------------------------------------------------------------

// They become soft, as if they had always been, before anything else is looked at.
@depends on patch && hardirq@
symbol HRTIMER_MODE_REL, HRTIMER_MODE_ABS;
identifier init = { hrtimer_init, hrtimer_init_on_stack };
identifier setup = { hrtimer_setup, hrtimer_setup_on_stack };
expression t, f, clock;
@@
(
  init(t, clock,
- HRTIMER_MODE_REL
+ HRTIMER_MODE_REL_SOFT
  )
|
  init(t, clock,
- HRTIMER_MODE_ABS
+ HRTIMER_MODE_ABS_SOFT
  )
|
  setup(t, f, clock,
- HRTIMER_MODE_REL
+ HRTIMER_MODE_REL_SOFT
  )
|
  setup(t, f, clock,
- HRTIMER_MODE_ABS
+ HRTIMER_MODE_ABS_SOFT
  )
)

@depends on patch@
symbol CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT, HRTIMER_MODE_ABS_SOFT;
expression T, f;
@@
- hrtimer_init(&T, CLOCK_MONOTONIC, \(HRTIMER_MODE_REL_SOFT\|HRTIMER_MODE_ABS_SOFT\));
  ... when != &T
- T.function = f;
+ twheel_init(&T, f);

@depends on patch@
expression T, f;
@@
- hrtimer_init(T, CLOCK_MONOTONIC, \(HRTIMER_MODE_REL_SOFT\|HRTIMER_MODE_ABS_SOFT\));
  ... when != T
- T->function = f;
+ twheel_init(T, f);

@depends on patch@
expression T, f;
@@
- hrtimer_init_on_stack(&T, CLOCK_MONOTONIC, \(HRTIMER_MODE_REL_SOFT\|HRTIMER_MODE_ABS_SOFT\));
  ... when != &T
- T.function = f;
+ twheel_init_on_stack(&T, f);

@depends on patch@
expression t, f;
@@
(
- hrtimer_setup(t, f, CLOCK_MONOTONIC, \(HRTIMER_MODE_REL_SOFT\|HRTIMER_MODE_ABS_SOFT\))
+ twheel_init(t, f)
|
- hrtimer_setup_on_stack(t, f, CLOCK_MONOTONIC, \(HRTIMER_MODE_REL_SOFT\|HRTIMER_MODE_ABS_SOFT\))
+ twheel_init_on_stack(t, f)
)

// ---- functions ----------------------------------------------------------------------------------

// Which of these a timer is was settled where it was initialised.
@depends on patch@
expression t, x;
@@
(
- hrtimer_start(t, x, \(HRTIMER_MODE_REL\|HRTIMER_MODE_REL_SOFT\))
+ twheel_mod(t, x)
|
- hrtimer_start(t, x, \(HRTIMER_MODE_ABS\|HRTIMER_MODE_ABS_SOFT\))
+ twheel_mod_abs(t, x)
|
- hrtimer_cancel(t)
+ twheel_cancel_sync(t)
|
- hrtimer_try_to_cancel(t)
+ twheel_try_cancel(t)
|
- hrtimer_is_queued(t)
+ twheel_pending(t)
|
- hrtimer_get_remaining(t)
+ twheel_remaining(t)
|
- destroy_hrtimer_on_stack(t)
+ twheel_destroy_on_stack(t)
)

// ---- callbacks ----------------------------------------------------------------------------------

@depends on patch@
symbol HRTIMER_NORESTART;
@@
- return HRTIMER_NORESTART;
+ return;

@depends on patch@
identifier f, t;
@@
- enum hrtimer_restart
+ void
  f(struct hrtimer *t);

@depends on patch@
identifier f, t;
@@
- enum hrtimer_restart
+ void
  f(struct hrtimer *t)
  { ... }

// ---- the type, and where it comes from ----------------------------------------------------------

@depends on patch@
@@
- struct hrtimer
+ struct twheel_timer

@already depends on patch@
@@
#include "twheel.h"

@included depends on patch && !already@
@@
- #include <linux/hrtimer.h>
+ #include "twheel.h"

@calls depends on patch && !included && !already@
identifier f =~ "^twheel_";
@@
f(...)

@has depends on patch && !included && !already@
@@
struct twheel_timer

@depends on calls || has@
@@
#include <...>
+ #include "twheel.h"

// ---- what is left -------------------------------------------------------------------------------

@call depends on report@
identifier f =~ "^(destroy_)?hrtimer_";
expression list args;
position p;
@@
f@p(args)

@script:python@
f << call.f;
args << call.args;
p << call.p;
@@
periodic = "twheel counts no periods for a timer: use a struct twheel_task with one"
stored = "its deadline was stored elsewhere: give it to twheel_mod_abs()"
reasons = {
	"hrtimer_active": "twheel_pending() is false while the callback runs",
	"hrtimer_callback_running": "twheel_try_cancel() tells it, but cancels",
	"hrtimer_forward": periodic,
	"hrtimer_forward_now": periodic,
	"hrtimer_restart": stored,
	"hrtimer_set_expires": stored,
	"hrtimer_start_expires": stored,
	"hrtimer_get_expires": "twheel_expires() is KTIME_MAX of a timer that is not armed",
	"hrtimer_start": "its CPU has to be said, twheel_add_on(), and there is no interrupt context",
	"hrtimer_start_range_ns": "say how late it may be where the timer is armed, or twheel_mod() it exactly",
}
if f in ("hrtimer_init", "hrtimer_setup", "hrtimer_init_on_stack", "hrtimer_setup_on_stack"):
	if "CLOCK_MONOTONIC" not in str(args):
		reason = "a clock of its own needs a base: twheel_create(), twheel_init_on()"
	elif "PINNED" in str(args) or "HARD" in str(args):
		reason = "its CPU has to be said, twheel_add_on(), and there is no interrupt context"
	elif "SOFT" in str(args):
		reason = "its function was set elsewhere: twheel_init()"
	else:
		reason = "its callback had interrupts off, and would have them on: look at its locks, then -D hardirq"
else:
	reason = reasons.get(f, "has no counterpart")
coccilib.report.print_report(p[0], "%s(%s): %s" % (f, args, reason))

@restart depends on report@
position p;
@@
HRTIMER_RESTART@p

@script:python@
p << restart.p;
@@
coccilib.report.print_report(p[0], "HRTIMER_RESTART: use a struct twheel_task with a period, or arm the timer in its callback")
