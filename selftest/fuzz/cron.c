// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz the expressions of ../../calendar, in valid zones. The input's first byte selects the zone,
 * the next four are the time to begin at, and the rest is the expression.
 */
#include <stdlib.h>
#include <string.h>

#include "cron.h"

#define EXPECT(cond)	do { if (!(cond)) abort(); } while (0)

/* The last zone changes its clock by a day. */
static const char *const rules[] = {
	"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
	"<-10>10<+14>-14,J200/0,J300/0",
};

/* Check that @cron is due at @t: the clock shows its time, or has just jumped over it. */
static void is_due(const struct cron *cron, const struct zone *zone, int64_t t)
{
	struct zone_span span;

	zone_span(zone, t, &span);
	EXPECT(cron_matches(cron, t + span.offset) || (cron->fixed && t == span.from));
}

/* Check ten times in a row. From between two of them, cron_next() must find the same next one. */
static void times(const struct cron *cron, const struct zone *zone, int64_t t, unsigned int seed)
{
	int64_t next, again;

	for (int i = 0; i < 10 && cron_next(cron, zone, t, &next); i++, t = next) {
		EXPECT(next > t);
		is_due(cron, zone, next);
		seed = seed * 1103515245 + 12345;
		EXPECT(cron_next(cron, zone, t + seed % (next - t), &again) && again == next);
	}
}

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const unsigned char *data, size_t size)
{
	char error[CRON_ERROR] = "", *text;
	struct cron cron;
	struct zone zone;
	unsigned int when = 0;

	if (size < 5)
		return 0;
	EXPECT(!zone_posix(&zone, rules[data[0] % 4]));
	memcpy(&when, data + 1, 4);
	text = strndup((const char *)data + 5, size - 5);
	if (!text)
		return 0;
	if (!cron_parse(&cron, text, error))
		EXPECT(*error && memchr(error, 0, sizeof(error)));
	else
		times(&cron, &zone, (int64_t)when, when);
	free(text);
	return 0;
}
