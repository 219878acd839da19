// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
//
// Give timers of twheel that are armed with a number of jiffies a tolerance of an eighth of it: that is
// how late a struct timer_list may be. doc/migrate.md is the guide, and scripts/migrate.sh applies this.
//
//	-D patch	what is armed by twheel_jiffies() gets the tolerance
//	-D report	on the result: what stays exact
//
// x is evaluated twice, so it stays as it is if it changes something, or calls what may.

virtual patch
virtual report

@changes@
expression t, e;
position p;
identifier f != {msecs_to_jiffies, usecs_to_jiffies, nsecs_to_jiffies, secs_to_jiffies};
identifier g =~ "^twheel_(add|mod|mod_pending|reduce)$";
expression list args;
@@
(
  g@p(t, twheel_jiffies(<+... f(args) ...+>))
|
  g@p(t, twheel_jiffies(<+... e++ ...+>))
)

@depends on patch@
expression t, x;
position p != changes.p;
@@
(
- twheel_add@p(t, twheel_jiffies(x))
+ twheel_add_range(t, twheel_jiffies(x), twheel_jiffies(x) / 8)
|
- twheel_mod@p(t, twheel_jiffies(x))
+ twheel_mod_range(t, twheel_jiffies(x), twheel_jiffies(x) / 8)
|
- twheel_mod_pending@p(t, twheel_jiffies(x))
+ twheel_mod_pending_range(t, twheel_jiffies(x), twheel_jiffies(x) / 8)
|
- twheel_reduce@p(t, twheel_jiffies(x))
+ twheel_reduce_range(t, twheel_jiffies(x), twheel_jiffies(x) / 8)
)

@exact depends on report@
identifier f =~ "^twheel_(add|mod|mod_pending|reduce)(_abs)?$";
expression t, x != 0;
position p;
@@
f@p(t, x)

@script:python@
f << exact.f;
x << exact.x;
p << exact.p;
@@
coccilib.report.print_report(p[0], "%s(%s): stays exact; %s_range() takes a tolerance" % (f, x, f))
