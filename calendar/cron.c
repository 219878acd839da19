// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Times that recur by the calendar: see cron.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "civil.h"
#include "cron.h"

#define NR_FIELDS	6
#define HORIZON		((int64_t)DAYS_PER_ERA * SECS_PER_DAY)
#define AFTER_MAX	((int64_t)1 << 54)

/*
 * The offsets of a zone differ by less than this. So the clock never again shows a time from
 * before.
 */
#define BACK		(3 * SECS_PER_DAY)

/* ---- parsing ------------------------------------------------------------------------ */

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const struct field {
	const char	*name;
	int		min;
	int		max;
	const char	*names;		/* of three letters; the first is @min */
} fields[NR_FIELDS] = {
	[SECOND]  = { "second", 0, 59, "" },
	[MINUTE]  = { "minute", 0, 59, "" },
	[HOUR]	  = { "hour", 0, 23, "" },
	[DAY]	  = { "day", 1, 31, "" },
	[MONTH]	  = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
	[WEEKDAY] = { "weekday", 0, 7, "sunmontuewedthufrisat" },
};

/**
 * struct parser - an expression that is being parsed
 * @p:		the rest of the text
 * @field:	the field that it is in
 * @error:	for the reason if it is wrong
 */
struct parser {
	const char		*p;
	const struct field	*field;
	char			*error;
};

/* Say why the expression is wrong. Returns false. */
__attribute__((format(printf, 2, 3)))
static bool wrong(const struct parser *parser, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(parser->error, CRON_ERROR, fmt, args);
	va_end(args);
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* How long is the word that @p begins with? */
static int word_length(const char *p)
{
	int n = 0;

	while (p[n] && !is_space(p[n]) && !strchr(",-/", p[n]))
		n++;
	return n < 20 ? n : 20;		/* to be shown */
}

/* Parse digits. A number that is too large stays too large. */
static bool parse_digits(struct parser *parser, int *value)
{
	const char *start = parser->p;

	for (*value = 0; *parser->p >= '0' && *parser->p <= '9'; parser->p++)
		if (*value < 10000)
			*value = *value * 10 + *parser->p - '0';
	return parser->p > start;
}

/* Parse a name of the field. More letters behind it are left, and will be wrong. */
static bool parse_name(struct parser *parser, int *value)
{
	const char *p = parser->p, *names = parser->field->names;

	for (int i = 0; names[3 * i]; i++) {
		const char *name = names + 3 * i;

		if (lower(p[0]) != name[0] || lower(p[1]) != name[1] || lower(p[2]) != name[2])
			continue;
		*value = parser->field->min + i;
		parser->p += 3;
		return true;
	}
	return false;
}

/* Parse a number or a name that the field may have. */
static bool parse_value(struct parser *parser, int *value)
{
	const struct field *field = parser->field;
	const char *start = parser->p;

	if (!parse_digits(parser, value) && !parse_name(parser, value))
		return wrong(parser, "%s '%.*s' is not a number%s", field->name,
			     word_length(start), start, *field->names ? " or a name" : "");
	if (*value < field->min || *value > field->max)
		return wrong(parser, "%s '%.*s' is not in %d-%d", field->name,
			     word_length(start), start, field->min, field->max);
	return true;
}

/* Parse [-value] after a value. The end of a range may be Sunday. */
static bool parse_end(struct parser *parser, int first, int *last)
{
	bool named;

	if (*parser->p != '-')
		return true;
	named = *++parser->p < '0' || *parser->p > '9';
	if (!parse_value(parser, last))
		return false;
	if (parser->field == &fields[WEEKDAY] && named && !*last)
		*last = 7;
	return first <= *last || wrong(parser, "%s range %d-%d goes backward",
				       parser->field->name, first, *last);
}

/* Parse [/step] after a range. */
static bool parse_step(struct parser *parser, bool range, int *step)
{
	const char *start = parser->p;

	*step = 1;
	if (*parser->p != '/')
		return true;
	parser->p++;
	if (!range)
		return wrong(parser, "%s step needs a range or * before it", parser->field->name);
	if (!parse_digits(parser, step) || !*step)
		return wrong(parser, "%s step '%.*s' is not a positive number", parser->field->name,
			     word_length(start + 1), start + 1);
	return true;
}

/* Parse an element of a list: *, a value or a range, perhaps with a step; or L, which is bit 0. */
static bool parse_element(struct parser *parser, uint64_t *bits)
{
	int first = parser->field->min, last = parser->field->max, step;
	const char *start = parser->p;
	bool range = true;

	if (parser->field == &fields[DAY] && lower(*parser->p) == 'l') {
		parser->p++;
		*bits |= 1;
		return true;
	}
	if (*parser->p == '*') {
		parser->p++;
	} else {
		if (!parse_value(parser, &first))
			return false;
		last = first;
		range = parser->p[0] == '-';
		if (!parse_end(parser, first, &last))
			return false;
	}
	if (!parse_step(parser, range, &step))
		return false;
	for (int i = first; i <= last; i += step)
		*bits |= 1ULL << i;
	return parser->p > start;
}

/* Parse a list, up to a space or the end. */
static bool parse_field(struct parser *parser, uint64_t *bits)
{
	for (;;) {
		if (!parse_element(parser, bits))
			return false;
		if (!*parser->p || is_space(*parser->p))
			return true;
		if (*parser->p != ',')
			return wrong(parser, "%s has '%c' where ',' or a space was expected",
				     parser->field->name, *parser->p);
		parser->p++;
	}
}

static void skip_spaces(struct parser *parser)
{
	while (is_space(*parser->p))
		parser->p++;
}

/* How many words are there? */
static int count_fields(const char *p)
{
	int n = 0;

	for (; *p; p++)
		n += !is_space(*p) && (!p[1] || is_space(p[1]));
	return n;
}

/* Parse all fields: their bits, and whether each begins with a star. */
static bool parse_fields(struct parser *parser, uint64_t bits[NR_FIELDS], bool star[NR_FIELDS])
{
	int n = count_fields(parser->p);

	if (n != 5 && n != 6)
		return wrong(parser, "it has %d field%s, not 5 or 6", n, n == 1 ? "" : "s");
	bits[SECOND] = n == 5;		/* at second 0 */
	for (int i = NR_FIELDS - n; i < NR_FIELDS; i++) {
		parser->field = &fields[i];
		skip_spaces(parser);
		star[i] = *parser->p == '*';
		if (!parse_field(parser, &bits[i]))
			return false;
	}
	return true;
}

/* The expression for @yearly and the like. NULL: there is no such word. */
static const char *word_meaning(const char *p)
{
	static const char *const words[7][2] = {
		{ "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" },
		{ "@monthly", "0 0 1 * *" }, { "@weekly", "0 0 * * 0" },
		{ "@daily", "0 0 * * *" }, { "@midnight", "0 0 * * *" },
		{ "@hourly", "0 * * * *" },
	};

	for (int i = 0; i < 7; i++) {
		size_t n = strlen(words[i][0]);

		if (!strncmp(p, words[i][0], n) && !p[n + strspn(p + n, " \t")])
			return words[i][1];
	}
	return NULL;
}

bool cron_parse(struct cron *cron, const char *text, char error[CRON_ERROR])
{
	struct parser parser = { .p = text, .error = error };
	uint64_t bits[NR_FIELDS] = { 0 };
	bool star[NR_FIELDS] = { false };

	skip_spaces(&parser);
	if (*parser.p == '@') {
		const char *meaning = word_meaning(parser.p);

		if (!meaning)
			return wrong(&parser, "there is no '%.*s'", word_length(parser.p),
				     parser.p);
		parser.p = meaning;
	}
	if (!parse_fields(&parser, bits, star))
		return false;
	*cron = (struct cron) {
		.seconds = bits[SECOND], .minutes = bits[MINUTE], .hours = bits[HOUR],
		.days = bits[DAY], .months = bits[MONTH],
		.weekdays = (bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f,
		.either = !star[DAY] && !star[WEEKDAY],
		.fixed = !star[MINUTE] && !star[HOUR],
	};
	return true;
}

/* ---- what clocks show ----------------------------------------------------------------- */

/* The first bit of @bits from @from on; -1 if there is none. */
static int bit_from(uint64_t bits, int from)
{
	bits = from < 64 ? bits >> from << from : 0;
	return bits ? __builtin_ctzll(bits) : -1;
}

/* The first time of a day, in s, from @from on; -1 if there is none. */
static int time_from(const struct cron *cron, int from)
{
	int h = from / 3600, m = from / 60 % 60, s = from % 60;
	int second = bit_from(cron->seconds, s);

	if ((cron->hours >> h & 1) && (cron->minutes >> m & 1) && second >= 0)
		return h * 3600 + m * 60 + second;
	second = bit_from(cron->seconds, 0);
	m = bit_from(cron->minutes, m + 1);
	if ((cron->hours >> h & 1) && m >= 0)
		return h * 3600 + m * 60 + second;
	h = bit_from(cron->hours, h + 1);
	return h < 0 ? -1 : h * 3600 + bit_from(cron->minutes, 0) * 60 + second;
}

/* The days of a month that match, a bit each; the first is day @first. */
static uint64_t days_that_match(const struct cron *cron, int64_t first, int nr)
{
	uint64_t days = cron->days & ~1ULL, weekdays = cron->weekdays, all = (2ULL << nr) - 2;
	int weekday = weekday_of_day(first);

	if (cron->days & 1)
		days |= 1ULL << nr;
	/* Weekdays from the first on, six times over. */
	weekdays = (weekdays >> weekday | weekdays << (7 - weekday)) & 0x7f;
	weekdays *= 1ULL << 1 | 1ULL << 8 | 1ULL << 15 | 1ULL << 22 | 1ULL << 29;
	return (cron->either ? days | weekdays : days & weekdays) & all;
}

/* The first day that matches from @day on, up to @last; INT64_MAX if there is none. */
static int64_t day_from(const struct cron *cron, int64_t day, int64_t last)
{
	int month, of_month;
	int64_t year;

	date_of_day(day, &year, &month, &of_month);
	while (day <= last) {
		int nr = days_of_month(year, month), found = -1;
		int64_t first = day - of_month + 1;

		if (cron->months >> month & 1)
			found = bit_from(days_that_match(cron, first, nr), of_month);
		if (found >= 0)
			return first + found - 1;
		day = first + nr;
		of_month = 1;
		year += month == 12;
		month = month % 12 + 1;
	}
	return INT64_MAX;
}

/* The first time that matches from @from on, before @end; @end if there is none. */
static int64_t local_from(const struct cron *cron, int64_t from, int64_t end)
{
	int64_t today = floor_div(from, SECS_PER_DAY), last = floor_div(end, SECS_PER_DAY);
	int64_t day = day_from(cron, today, last);
	int time = -1;

	if (day == today) {
		time = time_from(cron, (int)(from - today * SECS_PER_DAY));
		if (time < 0)
			day = day_from(cron, today + 1, last);
	}
	if (day == INT64_MAX)
		return end;
	if (time < 0)
		time = time_from(cron, 0);
	from = day * SECS_PER_DAY + time;
	return from < end ? from : end;
}

bool cron_matches(const struct cron *cron, int64_t local)
{
	return local_from(cron, local, local + 1) == local;
}

/* ---- in a time zone ------------------------------------------------------------------- */

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * Look at one span of the zone after the other. A fixed expression is due at the times of a span
 * that the clock has neither shown nor left out before; and at the beginning of the span, if the
 * clock has just left out a time that it names. An interval is due at all times that the clock
 * shows. @shown is the latest local time that was shown or left out. It begins with a span so long
 * ago that no earlier one matters.
 */
bool cron_next(const struct cron *cron, const struct zone *zone, int64_t after, int64_t *next)
{
	int64_t horizon = after + HORIZON, shown;
	struct zone_span span;

	if (after < -AFTER_MAX || after > AFTER_MAX)
		return false;
	zone_span(zone, after - BACK, &span);
	shown = after - BACK + span.offset;
	for (;;) {
		int64_t to = span.to < horizon ? span.to : horizon + 1, end = to + span.offset;
		int64_t from = max(span.from, after + 1) + span.offset;

		/* If the span begins after @after, times that were left out before it are due. */
		if (cron->fixed)
			from = span.from > after ? shown : max(shown, from);
		if (from < end) {
			int64_t local = local_from(cron, from, end);

			*next = max(local - span.offset, span.from);
			if (local < end)
				return true;
		}
		if (to > horizon)
			return false;
		shown = max(shown, end);
		zone_span(zone, span.to, &span);
	}
}
