// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Where a timer goes and when it fires, at every boundary there is: the bucket
 * against a placement computed by plain division, the tick against its expiry.
 */
#include "test.h"

static const unsigned int first[] = {
	WHEEL_L0, WHEEL_L1, WHEEL_L2, WHEEL_L3, WHEEL_L4, WHEEL_FAR
};

static const unsigned int radix[] = {
	WHEEL_R0, WHEEL_R1, WHEEL_R2, WHEEL_R3, WHEEL_R4
};

/* The slot for expiry @e at @clk, by the book. */
static unsigned int expected_slot(u64 clk, u64 e)
{
	unsigned int l;

	for (l = 0; l < 4; l++)
		if (e / width[l + 1] - clk / width[l + 1] <= 1)
			return first[l] + e / width[l] % (2 * radix[l]);
	if (e / width[4] - clk / width[4] < radix[4])
		return first[4] + e / width[4] % radix[4];
	return first[5];
}

/* One timer alone, due at @e, in a wheel at @clk: right bucket, right tick? */
static bool one(struct wheel *w, u64 clk, u64 e)
{
	struct tally c = { 0 };
	struct wheel_timer t = { 0 };
	bool placed, early;

	memset(w, 0, sizeof(*w));
	wheel_init(w, clk);
	placed = wheel_add(w, &t, e) && t.bucket == expected_slot(clk, e) &&
		 w->next <= e && sound(w);
	advance(w, e - 1, &c);
	early = c.fired;
	advance(w, e, &c);
	if (placed && !early && c.fired == 1 && !c.wrong && !wheel_pending(&t) &&
	    wheel_clk(w) == e && w->next == WHEEL_NEVER && sound(w))
		return true;
	diag("clk %llu expires %llu: placed %d early %d fired %llu wrong %llu",
	     (ull)clk, (ull)e, placed, early, (ull)c.fired, (ull)c.wrong);
	return false;
}

/* The boundaries after @clk, and the ticks beside them, into @e. */
static unsigned int boundaries(u64 clk, u64 *e)
{
	unsigned int n = 0, l, k, d;

	for (l = 0; l < ARRAY_SIZE(width); l++)
		for (k = 1; k <= 3; k++)
			for (d = 0; d < 3; d++) {
				/* this far away, and at this multiple */
				e[n++] = clk + k * width[l] + d - 1;
				e[n++] = (clk / width[l] + k) * width[l] + d - 1;
			}
	for (k = 0; k < n; k++)
		if (e[k] <= clk)
			e[k] = clk + 1;
	return n;
}

#define MOST	(ARRAY_SIZE(width) * 3 * 3 * 2)

/* All of them in one wheel, in one jump. */
static bool together(struct wheel *w, u64 clk, const u64 *e, unsigned int n)
{
	struct wheel_timer t[MOST] = { 0 };
	struct tally c = { 0 };
	bool good = true;
	unsigned int i;

	memset(w, 0, sizeof(*w));
	wheel_init(w, clk);
	for (i = 0; i < n; i++) {
		wheel_add(w, &t[i], e[i]);
		good &= t[i].bucket == expected_slot(clk, e[i]);
	}
	good &= sound(w);
	advance(w, clk + 4 * SPAN, &c);
	return good && c.fired == n && !c.wrong && !wheel_nr(w) && sound(w);
}

static void from(struct wheel *w, u64 clk, const char *what)
{
	u64 e[MOST];
	unsigned int n = boundaries(clk, e), i;
	bool good = true;

	for (i = 0; i < n && good; i++)
		good = one(w, clk, e[i]);
	ok(good && together(w, clk, e, n), "clk %llu, %s: %u expiries around every boundary",
	   (ull)clk, what, n);
}

/* Every tick of the first two levels, from every tick of a bucket of level 1. */
static bool every_tick(struct wheel *w, u64 start)
{
	u64 clk, e;

	for (clk = start; clk < start + width[1]; clk++)
		for (e = clk + 1; e < clk + 3 * width[2]; e += 1 + below(width[1]))
			if (!one(w, clk, e))
				return false;
	return true;
}

#if WHEEL_R0 == 60 && WHEEL_R1 == 60 && WHEEL_R2 == 24 && WHEEL_R3 == 365 && WHEEL_R4 == 100
/* Written down by hand, so that no formula can be wrong twice. From clk 0. */
static const struct {
	u64 expires;
	unsigned int level, index;
	const char *what;
} face[] = {
	{ 1,		0, 1,	"the first tick" },
	{ 59,		0, 59,	"the last second of the minute" },
	{ 60,		0, 60,	"the minute" },
	{ 119,		0, 119,	"the last second of level 0" },
	{ 120,		1, 2,	"two minutes" },
	{ 3599,		1, 59,	"the last second of the hour" },
	{ 3600,		1, 60,	"the hour" },
	{ 7199,		1, 119,	"the last second of level 1" },
	{ 7200,		2, 2,	"two hours" },
	{ 86399,	2, 23,	"the last second of the day" },
	{ 86400,	2, 24,	"the day" },
	{ 172799,	2, 47,	"the last second of level 2" },
	{ 172800,	3, 2,	"two days" },
	{ 31535999,	3, 364,	"the last second of the year" },
	{ 31536000,	3, 365,	"the year" },
	{ 63071999,	3, 729,	"the last second of level 3" },
	{ 63072000,	4, 2,	"two years" },
	{ 3153599999,	4, 99,	"the last second of the century" },
	{ 3153600000,	5, 0,	"the century" },
	{ 31536000000,	5, 0,	"a millennium" },
};

static void by_hand(struct wheel *w)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(face); i++) {
		unsigned int slot = first[face[i].level] + face[i].index;

		ok(slot == expected_slot(0, face[i].expires) &&
		   one(w, 0, face[i].expires), "%llu, %s: level %u, bucket %u",
		   (ull)face[i].expires, face[i].what, face[i].level, face[i].index);
	}
}

#define BY_HAND	ARRAY_SIZE(face)
#else
static void by_hand(struct wheel *w)
{
	(void)w;
}

#define BY_HAND	0
#endif

int main(int argc, char **argv)
{
	const u64 middle = SPAN / 2 + width[3] / 2 + width[2] / 2 + 1;
	struct wheel *w = new_wheel(0);
	unsigned int l;

	plan(BY_HAND + 15);
	rnd_state = setting(argc > 1 ? argv[1] : NULL, "SEED", 1);
	by_hand(w);
	from(w, 0, "the beginning");
	from(w, 1, "a tick after it");
	from(w, middle, "in the middle of everything");
	for (l = 1; l < ARRAY_SIZE(width); l++) {
		from(w, width[l] - 1, "right before a boundary");
		if (l < 4)
			from(w, 2 * width[l], "at a boundary");
	}
	from(w, 12345 * SPAN - 1, "right before a late century");
	from(w, ((u64)1 << 53) - 1, "where a double ends");
	ok(every_tick(w, 0), "every tick of a bucket, far into level 2, from 0");
	ok(every_tick(w, 7 * SPAN - width[1]), "and from the end of a century");
	free(w);
	return done();
}
