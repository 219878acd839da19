// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Times by the calendar: cron, and "every day at 9:00".
 *
 * ../../calendar knows what an expression means, and when it is due next in a zone. This file has
 * the words for it, and computes the next time of a job. The task of such a job has a period that
 * never comes; each run reschedules the task before the command begins.
 *
 * If the wall clock is set back by more than three hours, the next times are computed again, so
 * that no job waits for a time of the wrong clock: a thread learns of it from a timerfd. As with
 * cron, smaller steps are corrections, after which nothing is repeated.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cmd.h"

#define NEVER		INT64_MAX	/* a period that never comes */
#define TOO_LATE_NS	(60 * NS_PER_S)	/* with --missed=skip */
#define BURST_MAX	100		/* runs that make up for missed times, in a row */
#define COUNT_MAX	1000000		/* missed times that are counted at once */
#define SET_BACK_NS	(3 * 3600 * NS_PER_S)

/* Guards the next time of every calendar (struct calendar says which members), and struct watch. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- zones ------------------------------------------------------------------------------ */

/* Find the zone that was asked for, or the local one. */
static bool set_zone(struct calendar *cal, const char **error)
{
	const char *name = cal->zone_name;
	int err = zone_find(&cal->zone, name);

	if (err == -EOPNOTSUPP)
		*error = "leap seconds are in time zone";
	else if (err)
		*error = err == -ENOMEM ? "no memory" : "unknown time zone";
	return !*error;
}

/* ---- words ------------------------------------------------------------------------------ */

/**
 * struct words - a phrase that is being parsed
 * @word:	the words
 * @nr:		how many there are
 * @taken:	how many of them were understood so far
 */
struct words {
	char	*const *word;
	int	nr;
	int	taken;
};

/* The next word, or "" if there is none. */
static const char *peek(const struct words *words)
{
	return words->taken < words->nr ? words->word[words->taken] : "";
}

/* If the next word is @word, take it. */
static bool take(struct words *words, const char *word)
{
	if (strcasecmp(peek(words), word))
		return false;
	words->taken++;
	return true;
}

/* Turn the names of weekdays into cron's three letters. */
static bool weekdays(const char *s, char *out, size_t size)
{
	static const char *const names[] = { "sunday", "monday", "tuesday", "wednesday", "thursday",
					     "friday", "saturday" };
	size_t used = 0;

	for (out[0] = 0; *s; s++) {
		size_t len = strcspn(s, ",-"), i = 0;

		while (i < 7 && (strncasecmp(s, names[i], len) || (len != 3 && names[i][len])))
			i++;
		if (i == 7 || len < 3 || used + 5 > size)
			return false;
		memcpy(out + used, names[i], 3);
		used += 3;
		s += len;
		if (!*s)
			break;
		out[used++] = *s;
		out[used] = 0;
	}
	out[used] = 0;
	return used && out[used - 1] != ',' && out[used - 1] != '-';
}

/* Parse [at] H:MM[:SS], noon or midnight. The default is midnight. */
static bool clock_words(struct words *words, int hms[3])
{
	const char *s;
	int end = 0;

	memset(hms, 0, 3 * sizeof(*hms));
	if (!take(words, "at") || take(words, "midnight"))
		return true;
	if (take(words, "noon")) {
		hms[0] = 12;
		return true;
	}
	s = peek(words);
	if ((sscanf(s, "%2d:%2d%n:%2d%n", &hms[0], &hms[1], &end, &hms[2], &end) < 2) || s[end] ||
	    !strchr("0123456789", *s) || hms[0] > 23 || hms[1] > 59 || hms[2] > 59 ||
	    hms[0] < 0 || hms[1] < 0 || hms[2] < 0)
		return false;
	words->taken++;
	return true;
}

/* Parse [at :MM], the minute of each hour. The default is 0. */
static bool minute_words(struct words *words, int *minute)
{
	int end = 0;

	*minute = 0;
	if (!take(words, "at"))
		return true;
	if (sscanf(peek(words), ":%2d%n", minute, &end) < 1 || peek(words)[end] ||
	    *minute < 0 || *minute > 59)
		return false;
	words->taken++;
	return true;
}

/* Parse the days of a phrase into two fields of cron: the day of the month, and of the week. */
static bool day_words(struct words *words, char days[64], char week[64])
{
	strcpy(days, "*");
	strcpy(week, "*");
	if (take(words, "day"))
		return true;
	if (take(words, "weekday"))
		return strcpy(week, "1-5");
	if (take(words, "weekend"))
		return strcpy(week, "6,0");
	if (take(words, "month")) {
		strcpy(days, "1");
		if (!take(words, "on"))
			return true;
		if (!take(words, "last"))
			snprintf(days, 64, "%s", peek(words));
		else
			return strcpy(days, "L");
		words->taken++;
		return *days && *days != '*' && !strpbrk(days, " \t");
	}
	if (take(words, "week") && !take(words, "on"))
		return false;
	if (!weekdays(peek(words), week, 64))
		return false;
	words->taken++;
	return true;
}

/* Parse a phrase into an expression of cron. Words may be left. */
static bool phrase(struct words *words, char out[PHRASE_MAX])
{
	char days[64], week[64];
	int hms[3];

	if (take(words, "minute"))
		return strcpy(out, "* * * * *");
	if (take(words, "hour")) {
		if (!minute_words(words, &hms[1]))
			return false;
		return snprintf(out, PHRASE_MAX, "%d * * * *", hms[1]);
	}
	if (!day_words(words, days, week) || !clock_words(words, hms))
		return false;
	return snprintf(out, PHRASE_MAX, "%d %d %d %s * %s", hms[2], hms[1], hms[0], days, week);
}

/*
 * Parse a phrase, which "every" may have instead of a duration. It ends at an option; or it is a
 * single word with spaces in it. Fills in an expression of cron. Returns how many words the phrase
 * takes, or 0 if it is none.
 */
int calendar_phrase(char *const *word, int nr, char expression[PHRASE_MAX])
{
	struct words words = { .word = word, .nr = nr };
	char copy[PHRASE_MAX], *parts[16], *rest = copy;
	int n = 0;

	if (!nr || !strpbrk(word[0], " \t")) {
		for (words.nr = 0; words.nr < nr && word[words.nr][0] != '-'; words.nr++)
			;
		return phrase(&words, expression) ? words.taken : 0;
	}
	if (strlen(word[0]) >= sizeof(copy))
		return 0;
	strcpy(copy, word[0]);
	while (n < (int)ARRAY_SIZE(parts) && (parts[n] = strsep(&rest, " \t")))
		n += *parts[n] != 0;
	words = (struct words) { .word = parts, .nr = n };
	return phrase(&words, expression) && words.taken == n;
}

/* ---- times -------------------------------------------------------------------------------- */

/*
 * When a time that is due at @due is to be run: with --jitter some random time later, but for one
 * time always the same.
 */
static int64_t run_at(const struct calendar *cal, int64_t due)
{
	uint64_t x = (uint64_t)due ^ cal->seed;
	int64_t ns = due * NS_PER_S;

	if (!cal->jitter_ns)
		return ns;
	/* The finalizer of splitmix64: each bit depends on all. */
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return ns + (int64_t)((x ^ x >> 31) % (uint64_t)(cal->jitter_ns + 1));
}

/* Wait for the next time after @after. Returns false if there is none. */
static bool set_next(struct calendar *cal, int64_t after)
{
	int64_t due;

	if (!cron_next(&cal->cron, &cal->zone, after, &due) || due > INT64_MAX / NS_PER_S / 2)
		return false;
	cal->due_ns = due * NS_PER_S;
	cal->at_ns = run_at(cal, due);
	return true;
}

/*
 * Skip the times that have passed at @now. Returns how many; if there are very many, the rest is
 * not counted.
 */
static uint64_t leave_out(struct calendar *cal, int64_t now)
{
	uint64_t n = 0;

	while (!cal->over && cal->at_ns <= now) {
		cal->over = !set_next(cal, n < COUNT_MAX ? cal->due_ns / NS_PER_S : now / NS_PER_S);
		n++;
	}
	return n;
}

bool calendar_set(struct calendar *cal, const char *expression, bool at_once,
		  char error[CRON_ERROR])
{
	const char *why = NULL;
	int64_t now = time_now(CLOCK_REALTIME);

	if (!cron_parse(&cal->cron, expression, error))
		return false;
	if (!set_zone(cal, &why)) {
		snprintf(error, CRON_ERROR, "%s '%s'", why, cal->zone_name ?: "of TZ");
		return false;
	}
	if (getrandom(&cal->seed, sizeof(cal->seed), 0) < 0)
		cal->seed = (uint64_t)now;
	if (!set_next(cal, now / NS_PER_S)) {
		snprintf(error, CRON_ERROR, "'%s' is never due", expression);
		return false;
	}
	if (at_once) {
		cal->due_ns = now;
		cal->at_ns = now;
	}
	cal->on = true;
	return true;
}

/*
 * Begin the run that is due: compute the next time, and apply --missed to the times that have
 * passed. A run that is late by no more than @tolerance is not skipped for that. Returns false if
 * the command is not to run. Caller holds the lock.
 */
static bool begin_run(struct calendar *cal, int64_t now, int64_t tolerance, struct run_info *run)
{
	bool late = now - cal->at_ns - tolerance > TOO_LATE_NS;

	run->due_ns = cal->due_ns;
	cal->over = !set_next(cal, cal->due_ns / NS_PER_S);
	if (cal->missed != MISSED_BURST || ++cal->in_a_row >= BURST_MAX)
		cal->left_out += leave_out(cal, now);
	if (cal->over || cal->at_ns > now)
		cal->in_a_row = 0;
	if (cal->missed == MISSED_SKIP && late) {
		cal->left_out++;
		return false;
	}
	run->nr = ++cal->runs;
	run->missed = cal->left_out;
	cal->all_left_out += cal->left_out;
	run->all_missed = cal->all_left_out;
	cal->left_out = 0;
	return true;
}

/*
 * The scheduler has called the task of @cal. Fill in @run, and return whether the command is to
 * run. The task is rescheduled for its next time, or over. If the clock was set back since the task
 * expired, the time has not come: the task waits again.
 */
bool calendar_run(struct calendar *cal, const struct twheel_task_info *task, struct run_info *run)
{
	int64_t now = time_now(CLOCK_REALTIME);
	bool runs;

	pthread_mutex_lock(&lock);
	runs = now >= cal->at_ns && begin_run(cal, now, task->tolerance_ns, run);
	if (cal->over)
		twheel_sched_cancel(task->sched, task->id, 0);
	else
		twheel_sched_mod(task->sched, task->id, cal->at_ns);
	pthread_mutex_unlock(&lock);
	return runs;
}

struct twheel_task calendar_task(const struct calendar *cal)
{
	return (struct twheel_task) { .flags = TWHEEL_TASK_AT, .when_ns = cal->at_ns,
				      .period_ns = NEVER };
}

/* ---- when the clock is set ------------------------------------------------------------------ */

/**
 * struct watch - the thread that learns when the clock is set, and whom it concerns
 * @sched:	the scheduler that the tasks are in
 * @thread:	the thread
 * @fds:	what it waits for: the timerfd, and an eventfd to end it
 * @ahead:	by how many ns the wall clock is ahead of CLOCK_BOOTTIME
 * @cals:	the calendars
 * @ids:	their tasks
 * @nr:		how many there are
 * @running:	the thread exists
 *
 * @sched, @ahead, @cals, @ids and @nr are guarded by the lock. The first thread sets the others
 * before the thread begins, or when it has ended.
 */
static struct watch {
	struct twheel_sched	*sched;
	pthread_t		thread;
	struct pollfd		fds[2];
	int64_t			ahead;
	struct calendar		**cals;
	uint64_t		*ids;
	size_t			nr;
	bool			running;
} watch;

/*
 * By how many ns the wall clock is ahead of CLOCK_BOOTTIME: it changes when the wall clock is set.
 */
static int64_t wall_ahead(void)
{
	return time_now(CLOCK_REALTIME) - time_now(CLOCK_BOOTTIME);
}

void calendar_clock_set(void)
{
	int64_t ahead = wall_ahead(), now = time_now(CLOCK_REALTIME);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < watch.nr && ahead < watch.ahead - SET_BACK_NS; i++)
		if (!watch.cals[i]->over && set_next(watch.cals[i], now / NS_PER_S))
			twheel_sched_mod(watch.sched, watch.ids[i], watch.cals[i]->at_ns);
	watch.ahead = ahead;
	pthread_mutex_unlock(&lock);
}

/* The thread of @watch: wait for the clock to be set, until calendar_unwatch(). */
static void *watch_clock(void *unused)
{
	uint64_t ticks;

	while (poll(watch.fds, 2, -1) > 0 && !watch.fds[1].revents)
		if (read(watch.fds[0].fd, &ticks, sizeof(ticks)) < 0 && errno == ECANCELED)
			calendar_clock_set();
	return unused;
}

/*
 * Once the thread of @watch runs, only that thread sets @watch.ahead: otherwise a step of the clock
 * that the thread has not seen yet would be lost.
 */
void calendar_added(struct twheel_sched *sched, struct calendar *cal, uint64_t id)
{
	pthread_mutex_lock(&lock);
	watch.sched = sched;
	watch.cals = reallocarray(watch.cals, watch.nr + 1, sizeof(*watch.cals));
	watch.ids = reallocarray(watch.ids, watch.nr + 1, sizeof(*watch.ids));
	if (!watch.cals || !watch.ids)
		error(EXIT_CANCELED, ENOMEM, "cannot add a task");
	watch.cals[watch.nr] = cal;
	watch.ids[watch.nr++] = id;
	if (!watch.running)
		watch.ahead = wall_ahead();
	pthread_mutex_unlock(&lock);
}

void calendar_removed(const struct calendar *cal)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < watch.nr; i++) {
		if (watch.cals[i] != cal)
			continue;
		watch.cals[i] = watch.cals[--watch.nr];
		watch.ids[i] = watch.ids[watch.nr];
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* A timerfd that never expires: it only reports that the clock was set (ECANCELED). */
static int open_clock(void)
{
	static const struct itimerspec far = { .it_value.tv_sec = INT32_MAX };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
	return fd;
}

void calendar_watch(bool more)
{
	sigset_t all, old;
	int err;

	if (!watch.nr && !more)
		return;
	watch.ahead = wall_ahead();
	watch.fds[0] = (struct pollfd) { .fd = open_clock(), .events = POLLIN };
	watch.fds[1] = (struct pollfd) { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	if (watch.fds[0].fd < 0 || watch.fds[1].fd < 0)
		error(EXIT_CANCELED, errno, "cannot watch the clock");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&watch.thread, NULL, watch_clock, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		error(EXIT_CANCELED, err, "cannot watch the clock");
	watch.running = true;
}

void calendar_unwatch(void)
{
	if (!watch.running)
		return;
	eventfd_write(watch.fds[1].fd, 1);
	pthread_join(watch.thread, NULL);
	watch.running = false;
	watch.nr = 0;
}

/* ---- what is told -------------------------------------------------------------------------- */

/* What the clock shows there at @ns, and how far it is ahead. */
static struct tm local_time(const struct calendar *cal, int64_t ns, int *offset)
{
	struct zone_span span;
	struct tm tm;
	time_t t;

	zone_span(&cal->zone, ns / NS_PER_S, &span);
	*offset = span.offset;
	t = (time_t)(ns / NS_PER_S + span.offset);
	gmtime_r(&t, &tm);
	return tm;
}

/* As show_time() does it, in the zone of @cal. */
const char *calendar_show(const struct calendar *cal, int64_t ns, char buf[48])
{
	int offset, minutes;
	struct tm tm = local_time(cal, ns, &offset);
	char *at = buf + strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);

	minutes = abs(offset) / 60 % (26 * 60);
	snprintf(at, 16, ".%03d%c%02d%02d", (int)(ns % NS_PER_S / NS_PER_MS),
		 offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
	return buf;
}

/* One of the times that --explain tells; @reports as that of calendar_explain(). */
static void explain_one(const struct calendar *cal, int64_t now, FILE *reports)
{
	int offset;
	struct tm tm = local_time(cal, cal->due_ns, &offset);
	bool passed = !cron_matches(&cal->cron, cal->due_ns / NS_PER_S + offset);
	char due[48], day[8], in[32];

	calendar_show(cal, cal->due_ns, due);
	if (reports) {
		struct json_object *o = json_object_new_object();
		int err;

		json_string(o, "due", due);
		json_int(o, "in_ns", cal->due_ns - now);
		json_object_object_add(o, "passed", json_object_new_boolean(passed));
		err = json_write(reports, o);
		if (err)
			write_error(err);
		return;
	}
	strftime(day, sizeof(day), "%a", &tm);
	/* 2026-03-29T03:00:00.000+0200, without the T and the fraction */
	printf("%s %.10s %.8s %s  in %s%s\n", day, due, due + 11, due + 23,
	       show_duration(cal->due_ns - now, in),
	       passed ? ", for a time that the clock leaves out" : "");
}

int calendar_explain(struct calendar *cal, FILE *reports)
{
	int64_t now = time_now(CLOCK_REALTIME);

	set_next(cal, now / NS_PER_S);
	for (uint64_t i = 0; i < cal->explain; i++) {
		explain_one(cal, now, reports);
		if (!set_next(cal, cal->due_ns / NS_PER_S))
			break;
	}
	return 0;
}

/* When a run was due, in words. */
const char *run_due(const struct calendar *cal, const struct run_info *run, char buf[48])
{
	return cal->on ? calendar_show(cal, run->due_ns, buf) : show_time(run->due_ns, buf);
}

/* The environment of a child: ours, and what its run is. NULL: no memory. */
char **run_environ(const struct calendar *cal, const struct run_info *run)
{
	size_t n = 0, used = 3;
	char **env, *text, due[48];

	while (environ[n])
		n++;
	env = malloc((n + 4) * sizeof(*env) + 160);
	if (!env)
		return NULL;
	text = (char *)(env + n + 4);
	run_due(cal, run, due);
	env[0] = text;
	text += sprintf(text, "TWHEEL_DUE=%s", due) + 1;
	env[1] = text;
	text += sprintf(text, "TWHEEL_RUN=%llu", (unsigned long long)run->nr) + 1;
	env[2] = text;
	sprintf(text, "TWHEEL_MISSED=%llu", (unsigned long long)run->missed);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "TWHEEL_DUE=", 11) &&
		    strncmp(environ[i], "TWHEEL_RUN=", 11) &&
		    strncmp(environ[i], "TWHEEL_MISSED=", 14))
			env[used++] = environ[i];
	env[used] = NULL;
	return env;
}
