// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
//
// Turn users of struct timer_list into users of struct twheel_timer; doc/migrate.md is the guide,
// and scripts/migrate.sh applies this.
//
//	-D patch	what means the same with twheel is translated. All else stays as it is, and does
//			not compile: a type has changed, or a function's argument.
//	-D report	on the result: what was left, each with its reason.
//
// Both know the names of before Linux 6.15 and those since.

virtual patch
virtual report

// ---- what looks at a deadline -------------------------------------------------------------------

@depends on patch@
expression T, P, E, cpu;
@@
(
- T.expires = E;
- add_timer(&T);
+ twheel_add(&T, twheel_until(E));
|
- P->expires = E;
- add_timer(P);
+ twheel_add(P, twheel_until(E));
|
- T.expires = E;
- add_timer_on(&T, cpu);
+ twheel_add_on(&T, twheel_until(E), cpu);
|
- P->expires = E;
- add_timer_on(P, cpu);
+ twheel_add_on(P, twheel_until(E), cpu);
)

// Code that writes to it, or takes its address, has a reason that a person must look for.
@depends on patch@
struct timer_list T;
struct timer_list *P;
expression E;
assignment operator op;
@@
(
  T.expires op E
|
  P->expires op E
|
  &T.expires
|
  &P->expires
|
- T.expires
+ twheel_expires_jiffies(&T)
|
- P->expires
+ twheel_expires_jiffies(P)
)

// ---- functions ----------------------------------------------------------------------------------

@depends on patch@
expression t, x;
@@
(
- mod_timer(t, x)
+ twheel_mod(t, twheel_until(x))
|
- mod_timer_pending(t, x)
+ twheel_mod_pending(t, twheel_until(x))
|
- timer_reduce(t, x)
+ twheel_reduce(t, twheel_until(x))
|
- timer_pending(t)
+ twheel_pending(t)
|
- del_timer(t)
+ twheel_cancel(t)
|
- timer_delete(t)
+ twheel_cancel(t)
|
- del_timer_sync(t)
+ twheel_cancel_sync(t)
|
- timer_delete_sync(t)
+ twheel_cancel_sync(t)
|
- try_to_del_timer_sync(t)
+ twheel_try_cancel(t)
|
- timer_delete_sync_try(t)
+ twheel_try_cancel(t)
|
- timer_shutdown_sync(t)
+ twheel_shutdown_sync(t)
|
- destroy_timer_on_stack(t)
+ twheel_destroy_on_stack(t)
|
- timer_destroy_on_stack(t)
+ twheel_destroy_on_stack(t)
)

// Most deadlines are so and so far from now.
@depends on patch@
symbol jiffies;
expression x, y;
@@
(
- twheel_until(jiffies)
+ 0
|
- twheel_until(jiffies + (x))
+ twheel_jiffies(x)
|
- twheel_until(jiffies + x + y)
+ twheel_jiffies(x + y)
)

// With flags a timer is one of a kind that twheel does not have.
@depends on patch@
expression t, f;
@@
(
- timer_setup(t, f, 0)
+ twheel_init(t, f)
|
- timer_setup_on_stack(t, f, 0)
+ twheel_init_on_stack(t, f)
|
- TIMER_INITIALIZER(f, 0)
+ TWHEEL_TIMER_INIT(f)
|
- __TIMER_INITIALIZER(f, 0)
+ TWHEEL_TIMER_INIT(f)
)

@depends on patch@
declarer name DEFINE_TIMER, DEFINE_TWHEEL_TIMER;
identifier n;
expression f;
@@
(
- DEFINE_TIMER(n, f);
+ DEFINE_TWHEEL_TIMER(n, f);
|
- static DEFINE_TIMER(n, f);
+ static DEFINE_TWHEEL_TIMER(n, f);
)

@depends on patch@
expression v, t, f;
@@
(
- from_timer(v, t, f)
+ container_of(t, typeof(*v), f)
|
- timer_container_of(v, t, f)
+ container_of(t, typeof(*v), f)
)

// ---- the type, and where it comes from ----------------------------------------------------------

@depends on patch@
@@
- struct timer_list
+ struct twheel_timer

@already depends on patch@
@@
#include "twheel.h"

@included depends on patch && !already@
@@
- #include <linux/timer.h>
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
identifier f =~ "^(((try_to_)?(mod|add|del|from)|destroy|init)_timer|timer_(setup|reduce|pending|delete|shutdown|container_of|init_key|update_keys|destroy)|__?TIMER_INITIALIZER|TIMER_INITIALIZER)";
expression list args;
position p;
@@
f@p(args)

@script:python@
f << call.f;
args << call.args;
p << call.p;
@@
reasons = {
	"add_timer": "its deadline was stored elsewhere: twheel_add(timer, twheel_until(deadline))",
	"add_timer_on": "its deadline was stored elsewhere: twheel_add_on(timer, twheel_until(deadline), cpu)",
	"add_timer_local": "its CPU has to be said: twheel_add_on()",
	"add_timer_global": "its deadline was stored elsewhere: twheel_add(timer, twheel_until(deadline))",
	"timer_setup": "twheel has no timers of this kind",
	"timer_setup_on_stack": "twheel has no timers of this kind",
	"timer_shutdown": "without waiting, twheel cannot forbid that a timer is armed again",
}
coccilib.report.print_report(p[0], "%s(%s): %s" % (f, args, reasons.get(f, "has no counterpart")))

@member depends on report@
struct twheel_timer T;
struct twheel_timer *P;
identifier f != {function};
position p;
@@
(
T.f@p
|
P->f@p
)

@script:python@
f << member.f;
p << member.p;
@@
coccilib.report.print_report(p[0], "%s of a timer: twheel keeps no such thing; give the delay where the timer is armed" % f)

@work depends on report@
struct delayed_work W;
struct delayed_work *P;
position p;
@@
(
W@p.timer
|
P@p->timer
)

@script:python@
p << work.p;
@@
coccilib.report.print_report(p[0], "the timer of a delayed work stays a struct timer_list")
