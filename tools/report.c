// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What twheel-demo prints, while it runs and at the end. */
#include <stdio.h>

#include "demo.h"

void cost_add(struct cost *c, u64 ops, u64 ns)
{
	c->ops += ops;
	c->calls++;
	c->ns += ns;
	if (ns > c->worst)
		c->worst = ns;
}

void late_add(struct stats *s, u64 ns)
{
	u64 us = ns / 1000;

	s->late[us < LATE_MAX ? us : LATE_MAX]++;
	s->late_nr++;
	if (ns > s->late_max)
		s->late_max = ns;
}

/* The lateness, in us, that a share of @q of the events does not exceed. */
u64 late_quantile(const struct stats *s, double q)
{
	u64 rank = (u64)(q * (double)s->late_nr), seen = 0;
	u32 us;

	for (us = 0; us < LATE_MAX; us++) {
		seen += s->late[us];
		if (seen > rank)
			return us;
	}
	return s->late_max / 1000;
}

/* How many errors there were, of all kinds. */
static u64 bad(const struct stats *s)
{
	return s->lost + s->early + s->twice + s->late_cancel + s->unknown + s->wrong;
}

void report_progress(const struct stats *s, u64 ns, bool terminal)
{
	printf("%s%5.1f s  armed %7llu  fired %7llu  cancelled %6llu  re-armed %6llu%s%s",
	       terminal ? "\r" : "", (double)ns / (double)SEC,
	       s->armed - s->fired - s->cancelled, s->fired, s->cancelled, s->rearmed,
	       bad(s) ? " ERRORS" : "", terminal ? "\033[K" : "\n");
	fflush(stdout);
}

/* Print a line of the table. */
static void row(const char *name, u64 value, const char *note)
{
	printf("  %-20s %12llu  %s\n", name, value, note);
}

/* Print what calls of one kind cost on average, if there were any. */
static void row_cost(const char *name, const struct cost *c)
{
	if (!c->ops)
		return;
	printf("  %-20s %12llu  ns; %llu in %llu calls, the longest %llu us\n", name,
	       c->ns / c->ops, c->ops, c->calls, c->worst / 1000);
}

/* Print what became of the timers, and which errors there were. */
static void report_counts(const struct stats *s)
{
	row("armed", s->armed, "timers");
	row("re-armed", s->rearmed, "on the way");
	row("fired", s->fired, "one-shots");
	if (s->periods)
		row("periods", s->periods, "of periodic timers");
	row("cancelled", s->cancelled, "on the way");
	row("cancelled at the end", s->cancelled_end, "unfired, or periodic");
	row("left to close()", s->closed, "pending");
	if (s->missed)
		row("had fired", s->missed, "when they were to be cancelled or re-armed");
	row("lost", s->lost, "did not fire");
	row("early", s->early, "fired before the deadline");
	row("twice", s->twice, "fired again");
	row("late", s->late_cancel, "fired after their cancel");
	row("unknown", s->unknown, "events of no timer of this run");
	row("wrong", s->wrong, "results and counts");
}

/* Print what a timer takes of the kernel's memory: by INFO, and by what became unavailable. */
static void report_memory(const struct stats *s)
{
	if (!s->mem_timers)
		return;
	printf("  %-20s %12.2f  bytes of kernel memory, wheel included (%llu timers)\n",
	       "memory per timer", (double)s->mem_bytes / (double)s->mem_timers,
	       s->mem_timers);
	/* Roughly: free pages on the CPUs' own lists do not count as available. */
	if (s->mem_timers >= 100000)
		printf("  %-20s %12.2f  bytes, roughly, by MemAvailable\n", "",
		       (double)s->mem_delta / (double)s->mem_timers);
}

void report_table(const struct stats *s)
{
	report_counts(s);
	row("lateness p50", late_quantile(s, 0.5), "us, when read, after the deadline");
	row("lateness p99", late_quantile(s, 0.99), "us");
	row("lateness p99.9", late_quantile(s, 0.999), "us");
	row("lateness max", s->late_max / 1000, "us");
	report_memory(s);
	row_cost("add, each", &s->add);
	row_cost("re-arm, each", &s->mod);
	row_cost("cancel, each", &s->cancel);
	row_cost("read, each", &s->read);
	row("wake-ups", s->wakeups, "timer interrupts of the wheel");
	row("moves", s->moves, "from one bucket to another");
	row("deferred", s->deferred, "times, to let other tasks run");
	row("epoll_wait", s->epolls, "returns with events");
	row("run", s->run_ns / MSEC, "ms");
	row("close()", s->close_ns / 1000, "us");
}

bool report_good(const struct stats *s)
{
	return !bad(s) && s->armed == s->fired + s->cancelled + s->cancelled_end + s->closed;
}
