// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * top: what the wheels of this machine do at the moment.
 *
 * Once an interval it reads /sys/kernel/debug/twheel/bases, which has all bases of the kernel:
 * those of the CPUs, of modules and of open files. It cannot see the embedded wheels of other
 * programs; --embedded makes one in this process, with a load, and shows that.
 *
 * The kernel does not report lateness. So top measures it with timers of its own: a hundred in a
 * file of their own, each of which it re-arms for a random moment of the next second when it has
 * fired; or with those of the load. The figure includes the time until this process runs.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics.h"
#include "top.h"

#define BASES		"/sys/kernel/debug/twheel/bases"
#define SPACE		" \t\n"
#define COLUMNS_MAX	64
#define PROBES		100
#define LOAD		20000		/* timers */
#define LOAD_OPS	20		/* each is cancelled or armed anew, each 10 ms */
#define LOAD_NS		(10 * NS_PER_MS)
#define LATE_MAX	65536		/* no more are kept of an interval */

const uint32_t level_buckets[LEVELS] = { 120, 120, 48, 730, 100 };
const uint64_t level_ticks[LEVELS] = { 1, 60, 3600, 86400, 31536000 };

/**
 * struct probe - this program's own timers
 * @w:		their wheel; NULL: there is none
 * @nr:		how many timers
 * @handles:	their handles
 * @cancelled:	how many were cancelled so far
 * @rearmed:	how many were re-armed so far, while they were armed
 * @added:	how many were added so far
 * @late:	the lateness of each that has fired since the last sample
 * @nr_late:	how many these are
 * @late_sum:	the sum of the lateness of all that have ever fired
 * @late_count:	how many these are
 */
struct probe {
	struct twheel	*w;
	uint32_t	nr;
	uint64_t	handles[LOAD];
	uint64_t	cancelled;
	uint64_t	rearmed;
	uint64_t	added;
	int64_t		late[LATE_MAX];
	uint32_t	nr_late;
	int64_t		late_sum;
	uint64_t	late_count;
};

static struct probe probe;
/* The options, which do not change after parse(). */
static bool embedded, batch, json;
static const char *metrics_name;	/* "-": the standard output */
static int64_t delay_ns = NS_PER_S;
static uint64_t nr_samples;		/* 0: for ever */
static volatile sig_atomic_t stopped;	/* set by a signal, or by the user: end */

/* ---- the kernel's bases ------------------------------------------------------------ */

enum type { TEXT, NUMBER, LEVEL };

/* The columns of the file that are known here, in any order: where each goes in a struct base. */
static const struct column {
	const char	*name;
	enum type	type;
	size_t		offset;
	size_t		size;	/* of a text */
} columns[] = {
#define COLUMN_TEXT(field)	{ #field, TEXT, offsetof(struct base, field), \
				  sizeof(((struct base *)NULL)->field) }
#define COLUMN_NUMBER(field)	{ #field, NUMBER, offsetof(struct base, field), 0 }
#define COLUMN_COUNT(name, i)	{ name, NUMBER, offsetof(struct base, count[i]), 0 }
#define COLUMN_LEVEL(name, i)	{ name, LEVEL, offsetof(struct base, timers[i]), 0 }
	COLUMN_TEXT(kind), COLUMN_TEXT(clock), COLUMN_TEXT(comm),
	COLUMN_NUMBER(id), COLUMN_NUMBER(pid), COLUMN_NUMBER(uid), COLUMN_NUMBER(tick_ns),
	COLUMN_COUNT("pending", PENDING), COLUMN_COUNT("worst", WORST),
	COLUMN_COUNT("added", ADDED), COLUMN_COUNT("expired", EXPIRED),
	COLUMN_COUNT("removed", CANCELED), COLUMN_COUNT("rearmed", REARMED),
	COLUMN_COUNT("runs", RUNS),
	COLUMN_COUNT("deferred", DEFERRED), COLUMN_COUNT("moves", MOVES),
	COLUMN_LEVEL("l0", 0), COLUMN_LEVEL("l1", 1), COLUMN_LEVEL("l2", 2),
	COLUMN_LEVEL("l3", 3), COLUMN_LEVEL("l4", 4), COLUMN_LEVEL("far", 5),
};

/*
 * The column of that name, or NULL if this program does not know it: a newer kernel may have more.
 */
static const struct column *column_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (!strcmp(columns[i].name, name))
			return &columns[i];
	return NULL;
}

/*
 * Store @word, from a line of the file, in the field of @base that @column is for. A level is
 * TIMERS/BUCKETS.
 */
static void store(struct base *base, const struct column *column, const char *word)
{
	char *field = (char *)base + column->offset, *end;
	uint64_t n = strtoull(word, &end, 10);

	if (column->type == TEXT) {
		snprintf(field, column->size, "%s", word);
		return;
	}
	*(uint64_t *)field = n;
	if (column->type == LEVEL && *end == '/')
		*(uint64_t *)(field + offsetof(struct base, buckets) -
			      offsetof(struct base, timers)) = strtoull(end + 1, NULL, 10);
}

/* Find the columns that are known here by their names in the first line. */
static void parse_head(char *line, const struct column *at[COLUMNS_MAX])
{
	char *word, *rest = line;

	for (int i = 0; i < COLUMNS_MAX; i++) {
		word = strtok_r(rest, SPACE, &rest);
		at[i] = word ? column_named(word) : NULL;
		if (!word)
			rest = line + strlen(line);
	}
}

/* Fill in @base from a line, with the columns that parse_head() found. */
static void parse_line(char *line, const struct column *const at[COLUMNS_MAX], struct base *base)
{
	char *word, *rest = line;

	for (int i = 0; i < COLUMNS_MAX && (word = strtok_r(rest, SPACE, &rest)); i++)
		if (at[i])
			store(base, at[i], word);
	/* The kernel counts a re-arm as removed, too. */
	base->count[CANCELED] -= base->count[REARMED];
}

/* Append a zeroed base to the sample. Pointers to the others become invalid. */
static struct base *new_base(struct sample *s)
{
	struct base *more = reallocarray(s->bases, s->nr + 1, sizeof(*more));

	if (!more)
		error(1, errno, "cannot list %zu bases", s->nr);
	s->bases = more;
	memset(&more[s->nr], 0, sizeof(*more));
	return &more[s->nr++];
}

/* Sample all bases of the kernel. Ends the program if the file cannot be read. */
static void read_bases(struct sample *s)
{
	const struct column *at[COLUMNS_MAX];
	FILE *f = fopen(BASES, "re");
	char *line = NULL;
	size_t size = 0;

	if (!f) {
		int err = errno;

		screen_close();
		error(1, err, "cannot open '%s'%s", BASES,
		      err == ENOENT ? ", of twheel.ko and debugfs" : "");
	}
	if (getline(&line, &size, f) > 0)
		parse_head(line, at);
	while (getline(&line, &size, f) > 0)
		parse_line(line, at, new_base(s));
	free(line);
	fclose(f);
}

/* ---- timers of this program's own ---------------------------------------------------- */

/* A random delay of the load: up to 49 days, so that each level has some timers. */
static uint64_t draw_delay(void)
{
	if (embedded)
		return ((uint64_t)NS_PER_MS << random() % 32) + (uint64_t)random() % NS_PER_MS;
	return (uint64_t)(random() % NS_PER_S);
}

/* Add timer @i. A probe measures lateness; with --embedded the probes are the load too. */
static void probe_arm(uint32_t i)
{
	int err = twheel_add(probe.w, &probe.handles[i], i, draw_delay(), 0, TWHEEL_F_KEEP);

	if (err)
		error(1, -err, "cannot arm timers");
	probe.added++;
}

/* Re-arm timer @i, in whatever state it is. */
static void probe_rearm(uint32_t i)
{
	int armed = twheel_mod(probe.w, probe.handles[i], draw_delay(), 0, TWHEEL_F_KEEP);

	probe.added++;
	probe.rearmed += armed == 1;
}

/* Open the wheel and add its timers. Without the device, top works without lateness. */
static void probe_begin(void)
{
	int err = twheel_open(&probe.w, embedded ? TWHEEL_EMBEDDED : TWHEEL_KERNEL, NULL);

	if (err && embedded)
		error(1, -err, "cannot make a wheel");
	if (err) {
		probe.w = NULL;		/* root may read the bases, but there may be no device */
		return;
	}
	probe.nr = embedded ? LOAD : PROBES;
	for (uint32_t i = 0; i < probe.nr; i++)
		probe_arm(i);
}

/* Read the events, note how late they are, and re-arm the timers. */
static void probe_read(void)
{
	struct twheel_event events[256];
	int n;

	while ((n = twheel_read(probe.w, events, 256, 0)) > 0) {
		int64_t now = time_now(CLOCK_MONOTONIC);

		for (int i = 0; i < n; i++) {
			if (probe.nr_late < LATE_MAX)
				probe.late[probe.nr_late++] = now - (int64_t)events[i].expires_ns;
			probe_rearm((uint32_t)events[i].user_data);
		}
	}
}

/* Half of the operations put a timer off; the others cancel a timer and add another one. */
static void load_step(void)
{
	static int64_t next;
	int64_t now = time_now(CLOCK_MONOTONIC);

	if (!embedded || now < next)
		return;
	next = now + LOAD_NS;
	for (int n = 0; n < LOAD_OPS; n++) {
		uint32_t i = (uint32_t)random() % probe.nr;

		if (n % 2) {
			probe_rearm(i);
			continue;
		}
		probe.cancelled += twheel_cancel(probe.w, probe.handles[i], NULL) == 1;
		probe_arm(i);
	}
}

/* For qsort(): by size. */
static int compare(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return a < b ? -1 : a > b;
}

/* Store in the sample the lateness of the timers that have fired since the last one. */
static void take_lateness(struct sample *s)
{
	uint32_t n = probe.nr_late;

	s->nr_late = n;
	probe.nr_late = 0;
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		probe.late_sum += probe.late[i];
	probe.late_count += n;
	qsort(probe.late, n, sizeof(*probe.late), compare);
	s->late_ns[0] = percentile(probe.late, n, 50);
	s->late_ns[1] = percentile(probe.late, n, 99);
	s->late_ns[2] = percentile(probe.late, n, 100);
}

/* Sample the one base of this process. */
static void read_embedded(struct sample *s)
{
	struct base *base = new_base(s);
	struct twheel_levels levels;
	struct twheel_info info;

	twheel_get_info(probe.w, &info);
	twheel_get_levels(probe.w, &levels);
	strcpy(base->kind, "embedded");
	strcpy(base->clock, "monotonic");
	plain_name(program_invocation_short_name, base->comm);
	base->pid = (uint64_t)getpid();
	base->uid = getuid();
	base->tick_ns = info.tick_ns;
	base->count[PENDING] = info.nr_armed;
	base->count[ADDED] = probe.added;
	base->count[EXPIRED] = info.nr_expired;
	base->count[CANCELED] = probe.cancelled;
	base->count[REARMED] = probe.rearmed;
	base->count[RUNS] = info.nr_wakeups;
	base->count[MOVES] = info.nr_moves;
	for (int i = 0; i <= LEVELS; i++) {
		base->timers[i] = levels.timers[i];
		base->buckets[i] = levels.buckets[i];
	}
}

/* ---- samples ------------------------------------------------------------------------- */

/*
 * Is @b the base that @a was in an earlier sample? An id is used again only after its base is gone.
 */
static bool is_same(const struct base *a, const struct base *b)
{
	return a->id == b->id && !strcmp(a->kind, b->kind);
}

/*
 * The rate of a counter. If timers move between CPUs, a counter may decrease: that counts as none.
 */
static uint64_t by_second(int64_t more, int64_t ns)
{
	return ns > 0 && more > 0 ? (uint64_t)((double)more * NS_PER_S / (double)ns + 0.5) : 0;
}

/*
 * Compute the rates since the last sample. Bases that are gone are left out. New ones come last,
 * and all that they count has happened since.
 */
static void set_rates(struct sample *s, const struct sample *last)
{
	const struct base *old = last->bases, *end = old + last->nr;

	for (struct base *b = s->bases; b < s->bases + s->nr; b++) {
		while (old < end && !is_same(old, b))
			old++;
		for (int i = ADDED; i < NR_COUNTS; i++)
			b->rate[i] = by_second((int64_t)(b->count[i] -
							 (old < end ? old->count[i] : 0)),
					       s->when - last->when);
	}
}

/* Add a base to the sums. */
static void add_base(struct base *all, const struct base *b)
{
	for (int i = 0; i < NR_COUNTS; i++) {
		all->rate[i] += b->rate[i];
		if (i != WORST)
			all->count[i] += b->count[i];
		else if (b->count[i] > all->count[i])
			all->count[i] = b->count[i];
	}
	for (int i = 0; i <= LEVELS; i++) {
		all->timers[i] += b->timers[i];
		all->buckets[i] += b->buckets[i];
	}
}

/* Take a sample. Without @last there are no rates. */
static void take_sample(struct sample *s, const struct sample *last)
{
	memset(s, 0, sizeof(*s));
	s->when = time_now(CLOCK_MONOTONIC);
	(embedded ? read_embedded : read_bases)(s);
	take_lateness(s);
	if (last)
		set_rates(s, last);
	for (size_t i = 0; i < s->nr; i++)
		add_base(&s->all, &s->bases[i]);
	if (s->nr == 1)
		s->all.tick_ns = s->bases[0].tick_ns;
}

/* ---- output for scripts -------------------------------------------------------------- */

/* The embedded backend has no budget: it works only while the program reads. */
static const char *budget(uint64_t n, char buf[48])
{
	if (embedded)
		return "-";
	snprintf(buf, 48, "%llu", (unsigned long long)n);
	return buf;
}

/* Print a sample as a block of lines, for --batch. */
static void print_text(const struct sample *s)
{
	char buf[4][48];

	printf("%s: %zu base%s, %llu pending; late by %s (half), %s (99 of 100), %s (all of %u)\n",
	       show_time(time_now(CLOCK_REALTIME), buf[3]), s->nr, s->nr == 1 ? "" : "s",
	       (unsigned long long)s->all.count[PENDING], show_duration(s->late_ns[0], buf[0]),
	       show_duration(s->late_ns[1], buf[1]), show_duration(s->late_ns[2], buf[2]),
	       s->nr_late);
	printf("KIND        ID     PID   PENDING   ARMED/s   FIRED/s  CANCEL/s   REARM/s  ");
	puts("RUNS/s  MOVES/s  DEF/s  WORST COMMAND");
	for (const struct base *b = s->bases; b < s->bases + s->nr; b++)
		printf("%-8s %5llu %7llu %9llu %9llu %9llu %9llu %9llu %7llu %8llu %6s %6s %s\n",
		       b->kind, (unsigned long long)b->id, (unsigned long long)b->pid,
		       (unsigned long long)b->count[PENDING], (unsigned long long)b->rate[ADDED],
		       (unsigned long long)b->rate[EXPIRED],
		       (unsigned long long)b->rate[CANCELED], (unsigned long long)b->rate[REARMED],
		       (unsigned long long)b->rate[RUNS], (unsigned long long)b->rate[MOVES],
		       budget(b->rate[DEFERRED], buf[0]), budget(b->count[WORST], buf[1]),
		       b->comm);
	putchar('\n');
	check_stdout();
}

/* A value for each level, and for what is beyond, as a list. */
static struct json_object *json_levels(const uint64_t values[LEVELS + 1])
{
	struct json_object *a = json_object_new_array();

	for (int i = 0; i <= LEVELS; i++)
		json_object_array_add(a, json_object_new_int64((int64_t)values[i]));
	return a;
}

static struct json_object *json_base(const struct base *b)
{
	static const char *const names[] = { "pending", "worst_moves", "armed_per_s",
		"fired_per_s", "cancelled_per_s", "rearmed_per_s", "runs_per_s", "deferred_per_s",
		"moves_per_s" };
	struct json_object *o = json_object_new_object();

	json_string(o, "kind", b->kind);
	json_int(o, "id", (int64_t)b->id);
	json_int(o, "pid", (int64_t)b->pid);
	json_int(o, "uid", (int64_t)b->uid);
	json_string(o, "command", b->comm);
	json_string(o, "clock", b->clock);
	json_int(o, "tick_ns", (int64_t)b->tick_ns);
	for (int i = 0; i < NR_COUNTS; i++)
		if (!embedded || (i != WORST && i != DEFERRED))
			json_int(o, names[i], (int64_t)(i < ADDED ? b->count[i] : b->rate[i]));
	json_object_object_add(o, "level_timers", json_levels(b->timers));
	json_object_object_add(o, "level_buckets", json_levels(b->buckets));
	return o;
}

static void print_json(const struct sample *s)
{
	struct json_object *o = json_object_new_object(), *bases = json_object_new_array();

	json_int(o, "time_ns", time_now(CLOCK_REALTIME));
	json_int(o, "probes", s->nr_late);
	json_int(o, "late_p50_ns", s->late_ns[0]);
	json_int(o, "late_p99_ns", s->late_ns[1]);
	json_int(o, "late_max_ns", s->late_ns[2]);
	for (size_t i = 0; i < s->nr; i++)
		json_object_array_add(bases, json_base(&s->bases[i]));
	json_object_object_add(o, "bases", bases);
	json_line(o);
}

/* ---- metrics ------------------------------------------------------------------------- */

static const struct family {
	const char	*name;
	const char	*type;
	const char	*help;
	enum count	count;
} families[] = {
	{ "twheel_timers_pending", "gauge", "Timers that will fire.", PENDING },
	{ "twheel_timers_armed_total", "counter", "Timers armed.", ADDED },
	{ "twheel_timers_fired_total", "counter", "Timers that have fired.", EXPIRED },
	{ "twheel_timers_cancelled_total", "counter", "Timers cancelled while armed.", CANCELED },
	{ "twheel_timers_rearmed_total", "counter", "Timers armed anew while armed.", REARMED },
	{ "twheel_runs_total", "counter", "Runs of the wheel.", RUNS },
	{ "twheel_moves_total", "counter", "Timers moved from one level to a finer one.", MOVES },
	{ "twheel_deferred_total", "counter", "Work put off to share the CPU with others.",
	  DEFERRED },
	{ "twheel_worst_moves", "gauge", "The most timers that one pass has moved.", WORST },
};

/* The labels that name a base. */
struct names {
	char		id[24];
	char		pid[24];
	const char	*labels[16];
};

/* Fill in the labels of @b, and one @more if that is not NULL. */
static void set_names(struct names *n, const struct base *b, const char *more, const char *value)
{
	const char *const labels[] = { "kind", b->kind, "id", n->id, "pid", n->pid,
				       "command", b->comm, "clock", b->clock, more, value, NULL };

	snprintf(n->id, sizeof(n->id), "%llu", (unsigned long long)b->id);
	snprintf(n->pid, sizeof(n->pid), "%llu", (unsigned long long)b->pid);
	memcpy(n->labels, labels, sizeof(labels));
}

/* One metric of all bases. */
static void print_family(FILE *to, const struct sample *s, const struct family *family)
{
	struct names n;

	metric_family(to, family->name, family->type, family->help);
	for (size_t i = 0; i < s->nr; i++) {
		set_names(&n, &s->bases[i], NULL, NULL);
		metric_count(to, family->name, n.labels, s->bases[i].count[family->count]);
	}
}

/* The tick of all bases, which is not a count. */
static void print_ticks(FILE *to, const struct sample *s)
{
	struct names n;

	metric_family(to, "twheel_tick_seconds", "gauge", "The tick of the wheel.");
	for (size_t i = 0; i < s->nr; i++) {
		set_names(&n, &s->bases[i], NULL, NULL);
		metric_seconds(to, "twheel_tick_seconds", n.labels, (int64_t)s->bases[i].tick_ns);
	}
}

/* A metric of each level of all bases. @offset says where its values are in struct base. */
static void print_levels(FILE *to, const struct sample *s, const char *name, const char *help,
			 size_t offset)
{
	static const char *const levels[] = { "0", "1", "2", "3", "4", "far" };
	struct names n;

	metric_family(to, name, "gauge", help);
	for (size_t i = 0; i < s->nr; i++) {
		const uint64_t *values = (void *)((char *)&s->bases[i] + offset);

		for (int level = 0; level <= LEVELS; level++) {
			set_names(&n, &s->bases[i], "level", levels[level]);
			metric_count(to, name, n.labels, values[level]);
		}
	}
}

/* Quantiles cover the timers that have fired since the last sample; sum and count cover all. */
static void print_lateness(FILE *to, const struct sample *s)
{
	static const char *const quantiles[] = { "0.5", "0.99", "1" };

	metric_family(to, "twheel_late_seconds", "summary",
		      "By how much events of timers of twheel top itself came late.");
	for (int i = 0; i < 3 && s->nr_late; i++) {
		const char *const labels[] = { "quantile", quantiles[i], NULL };

		metric_seconds(to, "twheel_late_seconds", labels, s->late_ns[i]);
	}
	metric_seconds(to, "twheel_late_seconds_sum", (const char *[]){ NULL }, probe.late_sum);
	metric_count(to, "twheel_late_seconds_count", (const char *[]){ NULL }, probe.late_count);
}

/* Print all families of the sample @arg. An embedded wheel has no budget: see budget(). */
static void print_metrics(FILE *to, const void *arg)
{
	const struct sample *s = arg;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (!embedded || (families[i].count != WORST && families[i].count != DEFERRED))
			print_family(to, s, &families[i]);
	print_ticks(to, s);
	print_levels(to, s, "twheel_level_timers", "Timers in each level.",
		     offsetof(struct base, timers));
	print_levels(to, s, "twheel_level_buckets", "Buckets of each level that have timers.",
		     offsetof(struct base, buckets));
	print_lateness(to, s);
}

/* Write the metrics where --metrics says. Ends the program if that fails. */
static void show_metrics(const struct sample *s)
{
	int err;

	if (strcmp(metrics_name, "-")) {
		err = metrics_write(metrics_name, print_metrics, s);
		if (err)
			metrics_error(1, metrics_name, err);
		return;
	}
	print_metrics(stdout, s);
	check_stdout();
}

/* ---- the loop ------------------------------------------------------------------------ */

/* The handler of signals that end the program: wait_until() looks. */
static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Handle a signal, unless it was ignored when the program was started: then it stays ignored. */
static void stop_at(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) || action.sa_handler == SIG_IGN)
		return;
	action = (struct sigaction) { .sa_handler = stop };
	sigaction(signal, &action, NULL);
}

/* Wait until @end, or until the user quits. */
static void wait_until(int64_t end, const struct sample *shown)
{
	int64_t left;

	while (!stopped && (left = end - time_now(CLOCK_MONOTONIC)) > 0) {
		struct pollfd fds[] = {
			{ .fd = probe.w ? twheel_fd(probe.w) : -1, .events = POLLIN },
			{ .fd = batch ? -1 : STDIN_FILENO, .events = POLLIN },
		};
		struct timespec ts;

		if (embedded && left > LOAD_NS)
			left = LOAD_NS;
		ts = (struct timespec) { left / NS_PER_S, left % NS_PER_S };
		if (ppoll(fds, 2, &ts, NULL) > 0 && fds[0].revents)
			probe_read();
		load_step();
		if (batch || !fds[1].revents)
			continue;
		if (screen_key())
			screen_show(shown, embedded);
		else
			stopped = 1;
	}
}

/* Show a sample in the form that the options ask for. */
static void show(const struct sample *s)
{
	if (metrics_name)
		show_metrics(s);
	else if (json)
		print_json(s);
	else if (batch)
		print_text(s);
	else
		screen_show(s, embedded);
}

/*
 * Take samples and show them, until the user quits or there were enough. The screen also shows the
 * first one, which has no rates.
 */
static void watch(void)
{
	struct sample samples[2];
	uint64_t n = 0;

	take_sample(&samples[0], NULL);
	if (!batch)
		show(&samples[0]);
	while (!nr_samples || n < nr_samples) {
		struct sample *last = &samples[n % 2], *s = &samples[++n % 2];

		wait_until(last->when + delay_ns, last);
		if (stopped)
			break;
		take_sample(s, last);
		free(last->bases);
		show(s);
	}
}

enum { OPT_DELAY = 1, OPT_COUNT, OPT_EMBEDDED, OPT_JSON, OPT_METRICS };

/* Take option @c, as getopt_long() found it. Ends the program if it is wrong. */
static void top_option(int c)
{
	switch (c) {
	case OPT_DELAY:
		if (parse_duration(optarg, &delay_ns) && delay_ns >= NS_PER_S / 10)
			return;
		error(0, 0, "invalid duration '%s': at least 100ms", optarg);
		break;
	case OPT_COUNT:
		if (parse_count(optarg, 1, UINT64_MAX, &nr_samples))
			return;
		error(0, 0, "invalid number '%s'", optarg);
		break;
	case OPT_EMBEDDED:
		embedded = true;
		return;
	case OPT_METRICS:
		metrics_name = optarg;
		batch = true;
		return;
	case OPT_JSON:
		json = true;
		batch = true;
		return;
	case 'b':
		batch = true;
		return;
	case 'h':
		help("top");
	}
	try_help(1);
}

/* Parse the options, and check that they fit together. Ends the program if not. */
static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "batch", no_argument, NULL, 'b' },
		{ "delay", required_argument, NULL, OPT_DELAY },
		{ "count", required_argument, NULL, OPT_COUNT },
		{ "embedded", no_argument, NULL, OPT_EMBEDDED },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "metrics", required_argument, NULL, OPT_METRICS },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "bh", options, NULL)) != -1)
		top_option(c);
	if (optind < argc) {
		error(0, 0, "extra operand '%s'", argv[optind]);
		try_help(1);
	}
	if (metrics_name && json) {
		error(0, 0, "options '--json' and '--metrics' exclude each other");
		try_help(1);
	}
	/* Several samples in one stream would not be valid for Prometheus. */
	if (metrics_name && !strcmp(metrics_name, "-") && !nr_samples)
		nr_samples = 1;
	if (!batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		error(1, 0, "no terminal to draw on; try --batch or --json");
}

int cmd_top(int argc, char **argv)
{
	parse(argc, argv);
	stop_at(SIGINT);
	stop_at(SIGTERM);
	probe_begin();
	if (!batch)
		screen_open();
	watch();
	if (!batch)
		screen_close();
	twheel_close(probe.w);
	return 0;
}
