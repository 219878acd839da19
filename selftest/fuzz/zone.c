// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz the zones of ../../calendar: the input is a zoneinfo file or a rule of TZ, valid or not. If
 * it is accepted, its spans must follow each other, and a daily time must be due once a day.
 */
#include <stdlib.h>
#include <string.h>

#include "cron.h"

#define EXPECT(cond)	do { if (!(cond)) abort(); } while (0)
#define DAY		86400

/* Check that spans follow each other without a gap, from the span of @t on. */
static void spans(const struct zone *zone, int64_t t)
{
	struct zone_span span, other;

	zone_span(zone, t, &span);
	EXPECT(span.from <= t && (t < span.to || span.to == INT64_MAX));
	for (int i = 0; i < 8 && span.to != INT64_MAX; i++) {
		EXPECT(span.offset >= -ZONE_BEHIND_MAX && span.offset <= ZONE_AHEAD_MAX);
		zone_span(zone, span.to - 1, &other);
		EXPECT(span.from == other.from && span.to == other.to &&
		       span.offset == other.offset);
		zone_span(zone, span.to, &other);
		EXPECT(other.from == span.to && other.to > other.from);
		span = other;
	}
}

/* The latest local time that the clock has shown by @t. Three days of its past are enough. */
static int64_t shown(const struct zone *zone, int64_t t)
{
	struct zone_span span;
	int64_t most, from = t - 3 * DAY;

	zone_span(zone, from, &span);
	for (most = INT64_MIN; span.to <= t; zone_span(zone, span.to, &span))
		if (span.to - 1 + span.offset > most)
			most = span.to - 1 + span.offset;
	return t + span.offset > most ? t + span.offset : most;
}

/* How many days the clock has begun by @t. A day begins at 02:30:17. The result is not negative. */
static int64_t begun(const struct zone *zone, int64_t t)
{
	return (shown(zone, t) - 9017 + DAY * (1LL << 34)) / DAY;
}

/*
 * Check the times of a daily expression. Each is the moment when the clock first reaches 02:30:17
 * of a new day: up to the second before it, no day has begun since the last time; at it, one has.
 */
static void days(const struct zone *zone, int64_t t)
{
	char error[CRON_ERROR];
	struct cron cron;
	int64_t next;

	EXPECT(cron_parse(&cron, "17 30 2 * * *", error));
	for (int i = 0; i < 8; i++, t = next) {
		if (!cron_next(&cron, zone, t, &next))
			return;
		EXPECT(next > t && next - t <= 4 * DAY);
		EXPECT(begun(zone, t) == begun(zone, next - 1));
		EXPECT(begun(zone, t) < begun(zone, next));
	}
}

static void all(const struct zone *zone)
{
	static const int64_t times[] = { -4000000000, 0, 1800000000, 4102444800, 1LL << 40 };
	struct zone_span span;

	for (int i = 0; i < 5; i++) {
		spans(zone, times[i]);
		zone_span(zone, times[i], &span);
		if (span.to < 1LL << 48)
			days(zone, span.to - 5 * DAY);
		days(zone, times[i]);
	}
	spans(zone, INT64_MIN);
	spans(zone, INT64_MAX);
}

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const unsigned char *data, size_t size)
{
	char *copy = malloc(size + 1);
	struct zone zone;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	copy[size] = 0;
	if (!zone_posix(&zone, copy))
		all(&zone);
	/* Without a byte behind it: then the sanitizer reports a read past the end. */
	free(copy);
	copy = malloc(size + !size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (!zone_read(&zone, copy, size))
		all(&zone);
	free(copy);
	return 0;
}
