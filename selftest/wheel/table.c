// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Where a timer goes and when it fires, at every boundary that there is. Its bucket is compared
 * with one that is computed by plain division, and the tick in which it fires with the tick that
 * was asked for.
 */
#include "test.h"

static const unsigned int first[] = {
	WHEEL_L0, WHEEL_L1, WHEEL_L2, WHEEL_L3, WHEEL_L4, WHEEL_FAR
};

static const unsigned int radix[] = {
	WHEEL_R0, WHEEL_R1, WHEEL_R2, WHEEL_R3, WHEEL_R4
};

/* The highest power of two by which bucket @q, beyond bucket @x, differs from it. */
static unsigned int class_of(u64 q, u64 x)
{
	unsigned int c = 0;

	for (; q / 2 != x / 2; q /= 2, x /= 2)
		c++;
	return c;
}

/* The slot for expiry @e at @clk, by the definition. */
static unsigned int expected_slot(u64 clk, u64 e)
{
	unsigned int l;

	for (l = 0; l < 4; l++)
		if (e / width[l + 1] - clk / width[l + 1] <= 1)
			return first[l] + e / width[l] % (2 * radix[l]);
	if (e / width[4] - clk / width[4] < radix[4])
		return first[4] + e / width[4] % radix[4];
	return first[5] + class_of(e / width[4], clk / width[4] + radix[4] - 1);
}

/*
 * Put one timer, due at @e, into a wheel at @clk. Is it in the right bucket, and does it fire in
 * the right tick?
 */
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

/* Fill in @e with the boundaries after @clk and the ticks beside them. Returns how many. */
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

/* Put all of them into one wheel, and advance in one jump. */
static bool together(struct wheel *w, u64 clk, const u64 *e, unsigned int n)
{
	static struct wheel_timer t[MOST];	/* too big for a kernel's stack */
	struct tally c = { 0 };
	bool good = true;
	unsigned int i;

	memset(t, 0, sizeof(t));
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

/* For every tick of a bucket of level 1 as clk: every expiry in the first two levels. */
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
/* Written down by hand, so that no formula can be wrong in the same way twice. clk is 0. */
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
	{ 3153600000,	5, 2,	"the century: 100 is 99 ^ 7" },
	{ 3184000000,	5, 2,	"later in that year" },
	{ 4036607999,	5, 4,	"the last second of year 127" },
	{ 4036608000,	5, 7,	"year 128: 99 ^ 227" },
	{ 31536000000,	5, 9,	"a millennium: 1000 is 99 ^ 907" },
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

/*
 * wheel_choose() by trying each tick: the first multiple of the coarsest step that has a multiple.
 */
static u64 looked_for(u64 first, u64 last)
{
	static const unsigned int steps[] = {
		WHEEL_W3, WHEEL_W2, WHEEL_W2 / WHEEL_PARTS, WHEEL_W1,
#if WHEEL_R0 == 60
		30, 10, 5, 2,
#endif
	};
	unsigned int i;
	u64 tick;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		if (i < 2 && last - first < 4 * (u64)steps[i])
			continue;
		for (tick = first; tick <= last; tick++)
			if (!(tick % steps[i]))
				return tick;
	}
	return first;
}

static bool chooses(void)
{
	static const u64 spans[] = { 3, 70, 700, 4 * WHEEL_W2 + 2, 4ULL * WHEEL_W3 + 2 };
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		u64 first = rnd() >> (2 + below(60));
		u64 last = first + below(spans[below(ARRAY_SIZE(spans))]);
		u64 tick = wheel_choose(first, last);

		if (tick == looked_for(first, last))
			continue;
		diag("of %llu to %llu: %llu", (ull)first, (ull)last, (ull)tick);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	const u64 middle = SPAN / 2 + width[3] / 2 + width[2] / 2 + 1;
	struct wheel *w = new_wheel(0);
	unsigned int l;

	plan(BY_HAND + 16);
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
	ok(chooses(), "of the ticks in which a timer may fire, the one that looking for it finds");
	free(w);
	return done();
}
