// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Durations and times: see when.h. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "when.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define DAY	(86400 * NS_PER_S)

static const struct unit {
	const char	*names;		/* with a space after each */
	int64_t		ns;
} units[] = {
	{ "w week weeks ", 7 * DAY },
	{ "d day days ", DAY },
	{ "h hr hrs hour hours ", 3600 * NS_PER_S },
	{ "m min mins minute minutes ", 60 * NS_PER_S },
	{ "s sec secs second seconds ", NS_PER_S },
	{ "ms msec msecs millisecond milliseconds ", NS_PER_MS },
	{ "us usec usecs microsecond microseconds ", NS_PER_US },
	{ "ns nsec nsecs nanosecond nanoseconds ", 1 },
};

int64_t time_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* Parse a unit, and move *@s past it. Returns 0 if there is none. */
static int64_t parse_unit(const char **s)
{
	char name[16] = "";
	size_t n = 0;

	while (isalpha((unsigned char)(*s)[n]) && n < sizeof(name) - 2) {
		name[n] = (*s)[n];
		n++;
	}
	if (!n || isalpha((unsigned char)(*s)[n]))
		return 0;
	name[n] = ' ';
	*s += n;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const char *at = strstr(units[i].names, name);

		if (at && (at == units[i].names || at[-1] == ' '))
			return units[i].ns;
	}
	return 0;
}

/* Parse digits, and a fraction of up to nine digits, and move *@s past them. */
static bool parse_number(const char **s, int64_t *whole, int64_t *billionths)
{
	int64_t scale = NS_PER_S;
	bool any = false;

	*whole = 0;
	*billionths = 0;
	for (; isdigit((unsigned char)**s); ++*s, any = true)
		if (__builtin_mul_overflow(*whole, 10, whole) ||
		    __builtin_add_overflow(*whole, **s - '0', whole))
			return false;
	if (**s != '.')
		return any;
	for (++*s; isdigit((unsigned char)**s); ++*s, any = true) {
		scale /= 10;
		*billionths += (**s - '0') * scale;
	}
	return any;
}

/*
 * Add a number of units to *@ns: @whole and a fraction of so many @billionths. Returns false if the
 * sum is too large.
 */
static bool add_part(int64_t *ns, int64_t whole, int64_t billionths, int64_t unit)
{
	/* A unit is whole seconds, or less than one. */
	int64_t fraction = unit / NS_PER_S * billionths + unit % NS_PER_S * billionths / NS_PER_S;
	int64_t part;

	return !__builtin_mul_overflow(whole, unit, &part) &&
	       !__builtin_add_overflow(part, fraction, &part) &&
	       !__builtin_add_overflow(*ns, part, ns);
}

bool parse_duration(const char *s, int64_t *ns)
{
	int64_t whole, billionths, unit;
	const char *start = s = skip_space(s);

	*ns = 0;
	do {
		bool first = s == start;

		if (!parse_number(&s, &whole, &billionths))
			return false;
		s = skip_space(s);
		if (!*s && first)
			unit = NS_PER_S;
		else
			unit = parse_unit(&s);
		if (!unit || !add_part(ns, whole, billionths, unit))
			return false;
		s = skip_space(s);
	} while (*s);
	return true;
}

/**
 * struct clock - a time of day, as it was written
 * @tm:		hours, minutes and seconds; with a zone also tm_gmtoff
 * @zoned:	there is a zone; otherwise it is local time
 * @fraction:	of the second, in ns
 */
struct clock {
	struct tm	tm;
	bool		zoned;
	int64_t		fraction;
};

/* How far the local clock is ahead of UTC at @t. */
static int64_t offset_at(time_t t)
{
	struct tm tm;

	localtime_r(&t, &tm);
	return tm.tm_gmtoff;
}

/* The first moment after @from, and up to @to, at which the local clock has reached @local. */
static time_t reached(int64_t local, time_t from, time_t to)
{
	while (to - from > 1) {
		time_t middle = from + (to - from) / 2;

		if (middle + offset_at(middle) < local)
			from = middle;
		else
			to = middle;
	}
	return to;
}

/*
 * The moment at which the local clock shows @local, which counts as if it were UTC. Of two such
 * moments, take the first that is not before @earliest, or else the first of all. If there is none,
 * because the clock was set forward over it, return the moment of that change. mktime(3) does not
 * say which of these it takes.
 */
static time_t local_moment(int64_t local, int64_t earliest)
{
	/* No clock is a day from UTC, or changes twice in two days: it has one of these offsets. */
	int64_t a = offset_at(local - 90000), b = offset_at(local + 90000);
	time_t first = local - (a > b ? a : b), last = local - (a > b ? b : a);
	bool twice = last + offset_at(last) == local;

	if (first + offset_at(first) == local && (first >= earliest || !twice || last < earliest))
		return first;
	return twice ? last : reached(local, first, last);
}

/*
 * Set *@ns to the time of day @clock on @day. If the local clock shows that time twice, take the
 * first one after @now, if there is one. Returns false if the day does not exist, as 30 February.
 */
static bool to_ns(const struct tm *day, const struct clock *clock, int64_t now, int64_t *ns)
{
	/* The first second whose @fraction is after @now. */
	int64_t earliest = now / NS_PER_S + (clock->fraction <= now % NS_PER_S);
	struct tm tm = clock->tm;
	time_t t;

	tm.tm_year = day->tm_year;
	tm.tm_mon = day->tm_mon;
	tm.tm_mday = day->tm_mday;
	t = timegm(&tm);
	if (tm.tm_mday != day->tm_mday || tm.tm_mon != day->tm_mon)
		return false;
	t = clock->zoned ? t - clock->tm.tm_gmtoff : local_moment(t, earliest);
	return !__builtin_mul_overflow((int64_t)t, NS_PER_S, ns) &&
	       !__builtin_add_overflow(*ns, clock->fraction, ns);
}

/* Parse what may follow the minutes: seconds, a fraction, a zone. */
static bool parse_rest(const char *s, struct clock *clock)
{
	const char *end;
	int64_t whole;

	if (*s == ':') {
		s = strptime(s, ":%S", &clock->tm);
		if (!s)
			return false;
		if (*s == '.' && !parse_number(&s, &whole, &clock->fraction))
			return false;
	}
	end = strptime(s, "%z", &clock->tm);
	clock->zoned = *s && end;
	/* strptime() takes 99 hours. */
	if (clock->zoned && labs(clock->tm.tm_gmtoff) >= DAY / NS_PER_S)
		return false;
	return !*(end && *s ? end : s);
}

/* Parse HH:MM and what may follow. */
static bool parse_clock(const char *s, struct clock *clock)
{
	*clock = (struct clock) { 0 };
	s = strptime(s, "%H:%M", &clock->tm);
	return s && parse_rest(s, clock);
}

/* Parse a date, with or without a time of day, for which midnight is the default. */
static bool parse_date(const char *s, int64_t now, int64_t *ns)
{
	struct clock clock = { 0 };
	struct tm day = { 0 };

	s = strptime(s, "%Y-%m-%d", &day);
	if (!s)
		return false;
	if (!*s)
		return to_ns(&day, &clock, now, ns);
	if (*s != 'T' && !isspace((unsigned char)*s))
		return false;
	return parse_clock(skip_space(*s == 'T' ? s + 1 : s), &clock) &&
	       to_ns(&day, &clock, now, ns);
}

/* The day @days from today in the zone of @clock, where today may be another day than here. */
static struct tm day_from(int64_t now, int days, const struct clock *clock)
{
	time_t t = (time_t)(now / NS_PER_S);
	struct tm tm;

	t += clock->zoned ? clock->tm.tm_gmtoff : offset_at(t);
	t += days * (DAY / NS_PER_S);
	gmtime_r(&t, &tm);
	return tm;
}

/* Parse what follows the @: seconds since 1970, perhaps with a fraction. */
static bool parse_epoch(const char *s, int64_t *ns)
{
	int64_t whole, fraction;

	*ns = 0;
	return parse_number(&s, &whole, &fraction) && !*s &&
	       add_part(ns, whole, fraction, NS_PER_S);
}

/* Parse "today" or "tomorrow", with or without a time of day. */
static bool parse_day(const char *s, int64_t now, int64_t *ns)
{
	static const char *const words[] = { "today", "tomorrow" };

	for (int i = 0; i < 2; i++) {
		size_t len = strlen(words[i]);
		struct clock clock = { 0 };
		struct tm day;

		if (strncmp(s, words[i], len) || (s[len] && !isspace((unsigned char)s[len])))
			continue;
		s = skip_space(s + len);
		if (*s && !parse_clock(s, &clock))
			return false;
		day = day_from(now, i, &clock);
		return to_ns(&day, &clock, now, ns);
	}
	return false;
}

/* A time of day alone is the next moment at which the clock shows it. */
bool parse_time(const char *s, int64_t now, int64_t *ns)
{
	struct clock clock;

	s = skip_space(s);
	if (*s == '@')
		return parse_epoch(s + 1, ns);
	if (parse_date(s, now, ns) || parse_day(s, now, ns))
		return true;
	if (!parse_clock(s, &clock))
		return false;
	/* Yesterday too: the clock may be set back to that. */
	for (int days = -1; days < 2; days++) {
		struct tm day = day_from(now, days, &clock);

		if (!to_ns(&day, &clock, now, ns))
			return false;
		if (*ns > now)
			break;
	}
	return true;
}

const char *show_duration(int64_t ns, char buf[32])
{
	static const struct { const char *name; int64_t ns; } shown[] = {
		{ "d", DAY }, { "h", 3600 * NS_PER_S }, { "m", 60 * NS_PER_S }, { "s", NS_PER_S },
	};

	if (ns < NS_PER_MS)
		snprintf(buf, 32, "%.4gus", (double)ns / NS_PER_US);
	else if (ns < NS_PER_S)
		snprintf(buf, 32, "%.4gms", (double)ns / NS_PER_MS);
	else if (ns < 60 * NS_PER_S)
		snprintf(buf, 32, "%.4gs", (double)ns / NS_PER_S);
	for (int i = 0; i < 3 && ns >= 60 * NS_PER_S; i++) {
		if (ns < shown[i].ns)
			continue;
		snprintf(buf, 32, "%lld%s %lld%s", (long long)(ns / shown[i].ns), shown[i].name,
			 (long long)(ns % shown[i].ns / shown[i + 1].ns), shown[i + 1].name);
		break;
	}
	return buf;
}

const char *show_time(int64_t ns, char buf[48])
{
	time_t t = (time_t)(ns / NS_PER_S);
	char zone[8], *at = buf;
	struct tm tm;

	localtime_r(&t, &tm);
	at += strftime(at, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(at, 16, ".%03d%s", (int)(ns % NS_PER_S / NS_PER_MS), zone);
	return buf;
}
