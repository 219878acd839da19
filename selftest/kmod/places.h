/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What timers may belong to: the CPUs' bases, private bases of each clock with callbacks, and
 * private bases with a sink. A promise holds for all of them, so tests go through all.
 */
#ifndef PLACES_H
#define PLACES_H

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "kwait.h"
#include "twheel.h"

enum { ON_CPU, ON_MONO, ON_BOOT, ON_REAL, SINK_MONO, SINK_BOOT, SINK_REAL, NR_PLACES };

/**
 * struct place - what timers belong to
 * @name:	its name
 * @config:	the configuration of the private base; for the CPUs' bases, what they are like
 * @base:	the private base; NULL for the CPUs' bases
 */
struct place {
	const char		*name;
	struct twheel_config	config;
	struct twheel_base	*base;
};

static struct place places[NR_PLACES] = {
	[ON_CPU] = { .name = "the CPUs' base", .config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_NS } },
	[ON_MONO] = { .name = "a base of MONOTONIC", .config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MIN_NS } },
	[ON_BOOT] = { .name = "a base of BOOTTIME", .config = {
		.clock = CLOCK_BOOTTIME, .tick_ns = 2 * TWHEEL_TICK_MIN_NS } },
	[ON_REAL] = { .name = "a base of REALTIME", .config = {
		.clock = CLOCK_REALTIME, .tick_ns = TWHEEL_TICK_MIN_NS } },
	[SINK_MONO] = { .name = "a sink of MONOTONIC", .config = {
		.clock = CLOCK_MONOTONIC, .tick_ns = TWHEEL_TICK_MIN_NS } },
	[SINK_BOOT] = { .name = "a sink of BOOTTIME", .config = {
		.clock = CLOCK_BOOTTIME, .tick_ns = 2 * TWHEEL_TICK_MIN_NS } },
	[SINK_REAL] = { .name = "a sink of REALTIME", .config = {
		.clock = CLOCK_REALTIME, .tick_ns = TWHEEL_TICK_MIN_NS } },
};

static inline ktime_t place_now(const struct place *place)
{
	if (place->config.clock == CLOCK_REALTIME)
		return ktime_get_real();
	return place->config.clock == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get();
}

static inline bool place_has_sink(const struct place *place)
{
	return place->config.sink;
}

/* Make @timer an idle timer of @place. A base with a sink has no callbacks. */
static inline void place_init(const struct place *place, struct twheel_timer *timer,
			      void (*function)(struct twheel_timer *timer))
{
	if (place_has_sink(place))
		memset(timer, 0, sizeof(*timer));
	else if (place->base)
		twheel_init_on(place->base, timer, function);
	else
		twheel_init(timer, function);
}

static inline void place_add(const struct place *place, struct twheel_timer *timer, ktime_t delay)
{
	unsigned long flags;
	ktime_t now;

	if (!place_has_sink(place)) {
		twheel_add(timer, delay);
		return;
	}
	now = twheel_lock(place->base, &flags);
	twheel_add_locked(place->base, timer, ktime_add_safe(now, delay));
	twheel_unlock(place->base, flags);
}

static inline int place_cancel(const struct place *place, struct twheel_timer *timer)
{
	unsigned long flags;
	int ret;

	if (!place_has_sink(place))
		return twheel_cancel_sync(timer);
	twheel_lock(place->base, &flags);
	ret = twheel_cancel_locked(place->base, timer);
	twheel_unlock(place->base, flags);
	return ret;
}

/* The time at which tick @tick begins. */
static inline ktime_t place_time(const struct place *place, u64 tick)
{
	return tick * place->config.tick_ns;
}

/* twheel_expires(), also for timers of a base with a sink, which twheel_expires() does not know. */
static inline ktime_t place_expires(const struct place *place, struct twheel_timer *timer)
{
	ktime_t expires = KTIME_MAX;
	unsigned long flags;

	if (!place_has_sink(place))
		return twheel_expires(timer);
	twheel_lock(place->base, &flags);
	if (twheel_pending(timer))
		expires = place_time(place, timer->queue.expires);
	twheel_unlock(place->base, flags);
	return expires;
}

/* Make the private bases, including those with a sink if @sink is not NULL. */
static inline bool places_begin(const struct twheel_sink *sink)
{
	unsigned int i;

	for (i = ON_MONO; i < (sink ? NR_PLACES : SINK_MONO); i++) {
		places[i].config.sink = i < SINK_MONO ? NULL : sink;
		places[i].base = twheel_create(&places[i].config);
		if (IS_ERR(places[i].base)) {
			check(false, "%s can be made", places[i].name);
			return false;
		}
	}
	return true;
}

static inline void places_end(void)
{
	unsigned int i;

	for (i = ON_MONO; i < NR_PLACES; i++)
		if (!IS_ERR_OR_NULL(places[i].base))
			twheel_destroy(places[i].base);
}

#endif
