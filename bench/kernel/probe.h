/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * How long are interrupts off? A probe asks for an interrupt every PROBE_NS. If the interrupt is
 * late, interrupts were off for as long, minus what it is late anyway.
 *
 * For QEMU's -icount with one CPU, where a ns is an instruction. Elsewhere the figures are those of
 * the host's scheduler. Not for PREEMPT_RT: there a lock hold is shorter than the probe itself.
 */
#ifndef PROBE_H
#define PROBE_H

#include <linux/hrtimer.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/stacktrace.h>

#include <asm/irq_regs.h>

#include "twheel_compat.h"

#define PROBE_NS	2501

static struct hrtimer probe;
static s64 least_late, most_late;
static unsigned long probe_where;	/* here they were on again after the longest time */
static unsigned long probe_trace[24];	/* and how the CPU came there, inner functions first */
static unsigned int probe_depth;
static unsigned short probe_hangs;	/* of the CPU, as the kernel counts them */
static void (*probe_also)(bool counts);	/* called each time; does that one count? */

/*
 * If hrtimers are due again and again before their interrupt ends, the kernel lets none fire for as
 * long as that interrupt took, and counts a hang. The next probe is late, though interrupts are on.
 */
static bool probe_was_held_back(const struct hrtimer *timer)
{
	unsigned short hangs = timer->base->cpu_base->nr_hangs;
	bool is_new = hangs != probe_hangs;

	probe_hangs = hangs;
	return is_new;
}

static void probe_note(const struct hrtimer *timer)
{
	s64 late = ktime_get() - hrtimer_get_expires(timer);

	least_late = min(least_late, late);
	if (late > most_late) {
		most_late = late;
		probe_where = instruction_pointer(get_irq_regs());
		probe_depth = stack_trace_save(probe_trace, ARRAY_SIZE(probe_trace), 0);
	}
}

static enum hrtimer_restart probe_fired(struct hrtimer *timer)
{
	bool counts = !probe_was_held_back(timer);

	if (counts)
		probe_note(timer);
	probe_also(counts);
	hrtimer_forward_now(timer, PROBE_NS);
	return HRTIMER_RESTART;
}

static inline void probe_init(void (*also)(bool counts))
{
	probe_also = also;
	hrtimer_setup(&probe, probe_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
}

static inline void probe_start(void)
{
	least_late = S64_MAX;
	most_late = 0;
	probe_depth = 0;
	hrtimer_start(&probe, ktime_add_ns(ktime_get(), PROBE_NS), HRTIMER_MODE_ABS_PINNED_HARD);
}

/* The longest time for which interrupts were off, in ns. */
static inline u64 probe_stop(void)
{
	hrtimer_cancel(&probe);
	return most_late ? most_late - least_late : 0;
}

#endif
