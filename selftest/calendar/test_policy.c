// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What twheel(1) does about missed times, jitter and a clock that is set: its calendar.c, with
 * clocks and a scheduler that this test provides.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/twheel/cmd.h"
#include "tap.h"
#include "uapi.h"

/* Sunday 2026-11-22 00:00 UTC. */
#define START	(1795305600LL * NS_PER_S)
#define MINUTE	(60 * NS_PER_S)
#define HOURS	(60 * MINUTE)

static int64_t wall, boot, moved;
static int nr_moved, nr_canceled;

int64_t time_now(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? wall : boot;
}

int twheel_sched_mod(struct twheel_sched *sched, uint64_t id, int64_t when_ns)
{
	CHECK(!sched && id == 7);
	moved = when_ns;
	nr_moved++;
	return 0;
}

int twheel_sched_cancel(struct twheel_sched *sched, uint64_t id, uint32_t flags)
{
	CHECK(!sched && id == 7 && !flags);
	nr_canceled++;
	return 0;
}

const char *show_duration(int64_t ns, char buf[32])
{
	(void)ns;
	return buf;
}

const char *show_time(int64_t ns, char buf[48])
{
	(void)ns;
	return strcpy(buf, "then");
}

int json_write(FILE *to, struct json_object *object)
{
	(void)to;
	json_object_put(object);
	return 0;
}

noreturn void write_error(int err)
{
	exit(err);
}

void json_int(struct json_object *object, const char *key, int64_t value)
{
	json_object_object_add(object, key, json_object_new_int64(value));
}

void json_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

static void pass(int64_t ns)
{
	wall += ns;
	boot += ns;
}

static struct calendar new_calendar(const char *expression, enum missed missed, int64_t jitter)
{
	struct calendar cal = { .missed = missed, .jitter_ns = jitter, .zone_name = "UTC" };
	char error[CRON_ERROR];

	wall = START;
	boot = 1000 * NS_PER_S;
	nr_moved = 0;
	nr_canceled = 0;
	if (!CHECK(calendar_set(&cal, expression, false, error)))
		diag("	%s", error);
	return cal;
}

/* Call the task now. Returns whether it runs. */
static bool call(struct calendar *cal, struct run_info *run)
{
	const struct twheel_task_info task = { .id = 7 };

	return calendar_run(cal, &task, run);
}

static void on_time(void)
{
	struct calendar cal = new_calendar("0 * * * *", MISSED_ONCE, 0);
	struct twheel_task task = calendar_task(&cal);
	struct run_info run;

	CHECK_EQ(task.when_ns, START + HOURS);
	CHECK(task.flags == TWHEEL_TASK_AT && task.period_ns == INT64_MAX);
	for (u32 i = 1; i < 30; i++) {
		pass(HOURS);
		CHECK(call(&cal, &run));
		CHECK_EQ(run.due_ns, START + i * HOURS);
		CHECK_EQ(run.nr, i);
		CHECK_EQ(run.missed, 0);
		CHECK_EQ(run.all_missed, 0);
		CHECK_EQ(moved, START + (i + 1) * HOURS);
	}
	CHECK(!nr_canceled);
	zone_free(&cal.zone);
}

/* One run makes up for all missed times, and is told how many there were. */
static void once(void)
{
	struct calendar cal = new_calendar("0 * * * *", MISSED_ONCE, 0);
	struct run_info run;

	for (int i = 1; i < 3; i++) {
		int64_t due = cal.due_ns;

		wall = due + 5 * HOURS + MINUTE;
		CHECK(call(&cal, &run));
		CHECK_EQ(run.due_ns, due);
		CHECK_EQ(run.missed, 5);
		CHECK_EQ(run.all_missed, 5 * i);
		CHECK_EQ(moved, due + 6 * HOURS);
	}
	/* To the very second at which the next one is due. */
	wall = cal.due_ns + 2 * HOURS;
	CHECK(call(&cal, &run));
	CHECK_EQ(run.missed, 2);
	CHECK_EQ(moved, wall + HOURS);
	zone_free(&cal.zone);
}

/*
 * A run that is up to a minute late is in time. A later one is skipped, and the next run counts it.
 */
static void skip(void)
{
	struct calendar cal = new_calendar("*/10 * * * * *", MISSED_SKIP, 0);
	struct run_info run;

	wall = cal.due_ns + MINUTE;
	CHECK(call(&cal, &run));
	CHECK_EQ(run.missed, 6);
	wall = cal.due_ns + MINUTE + 1;
	CHECK(!call(&cal, &run));
	CHECK_EQ(moved, cal.due_ns);
	CHECK(moved > wall);
	wall = moved;
	CHECK(call(&cal, &run));
	CHECK_EQ(run.missed, 7);
	CHECK_EQ(run.all_missed, 13);
	CHECK_EQ(run.nr, 2);
	zone_free(&cal.zone);
}

/* All missed times are run, the earliest first; if there are very many, a hundred. */
static void burst(void)
{
	struct calendar cal = new_calendar("* * * * *", MISSED_BURST, 0);
	struct run_info run;
	int runs = 0;

	wall += 10 * MINUTE;
	for (; cal.at_ns <= wall; runs++) {
		int64_t due = cal.due_ns;

		CHECK(call(&cal, &run));
		CHECK_EQ(run.due_ns, due);
		CHECK_EQ(run.missed, 0);
		CHECK_EQ(cal.due_ns, due + MINUTE);
	}
	CHECK_EQ(runs, 10);
	wall += 250 * MINUTE;
	for (runs = 0; cal.at_ns <= wall; runs++)
		CHECK(call(&cal, &run));
	CHECK_EQ(runs, 100);
	CHECK_EQ(run.missed, 150);
	CHECK_EQ(cal.due_ns, wall + MINUTE);
	wall += 2 * MINUTE;
	for (runs = 0; cal.at_ns <= wall; runs++)
		CHECK(call(&cal, &run));
	CHECK_EQ(runs, 2);
	zone_free(&cal.zone);
}

/* A clock that came from 1970 must not make any run wait. */
static void very_many(void)
{
	struct calendar cal = new_calendar("* * * * * *", MISSED_ONCE, 0);
	struct run_info run;

	wall = cal.due_ns + 20LL * 365 * 24 * HOURS;
	CHECK(call(&cal, &run));
	CHECK(run.missed >= 1000000 && run.missed < 1000010);
	CHECK_EQ(moved, wall + NS_PER_S);
	zone_free(&cal.zone);
}

static void jitter(void)
{
	struct calendar cal = new_calendar("* * * * *", MISSED_ONCE, 30 * NS_PER_S), other;
	int64_t sum = 0, least = INT64_MAX, most = 0;
	struct run_info run;

	other = cal;
	for (int i = 0; i < 2000 && !failed(); i++) {
		int64_t due = cal.due_ns, late = cal.at_ns - due;

		CHECK(late >= 0 && late <= 30 * NS_PER_S);
		sum += late;
		least = late < least ? late : least;
		most = late > most ? late : most;
		CHECK_EQ(other.at_ns, cal.at_ns);
		wall = cal.at_ns;
		CHECK(call(&other, &run));
		CHECK(call(&cal, &run));
		CHECK_EQ(run.due_ns, due);
		CHECK_EQ(run.missed, 0);
		CHECK_EQ(cal.due_ns, due + MINUTE);
	}
	CHECK(sum / 2000 > 14 * NS_PER_S && sum / 2000 < 16 * NS_PER_S);
	CHECK(least < NS_PER_S / 2 && most > 30 * NS_PER_S - NS_PER_S / 2);
	zone_free(&cal.zone);
}

/* As the scheduler does: it may call the task although the clock was set back before its time. */
static void set_back_meanwhile(void)
{
	struct calendar cal = new_calendar("0 * * * *", MISSED_ONCE, 0);
	struct run_info run;

	wall = cal.at_ns - 1;
	CHECK(!call(&cal, &run));
	CHECK_EQ(moved, cal.at_ns);
	wall++;
	CHECK(call(&cal, &run));
	CHECK_EQ(run.nr, 1);
	zone_free(&cal.zone);
}

/*
 * If the clock is set back by more than three hours, the next time is computed anew. If by less, or
 * forward, it stays.
 */
static void clock_set(void)
{
	struct calendar cal = new_calendar("0 * * * *", MISSED_ONCE, 0);

	calendar_added(NULL, &cal, 7);
	wall -= 3 * HOURS;
	calendar_clock_set();
	CHECK_EQ(nr_moved, 0);
	wall -= 3 * HOURS - 1;
	calendar_clock_set();
	CHECK_EQ(nr_moved, 0);
	CHECK_EQ(cal.due_ns, START + HOURS);
	wall -= 3 * HOURS + 1;
	calendar_clock_set();
	CHECK_EQ(nr_moved, 1);
	CHECK_EQ(moved, START - 8 * HOURS);
	wall += 100000 * HOURS;
	calendar_clock_set();
	pass(10 * HOURS);
	calendar_clock_set();
	CHECK_EQ(nr_moved, 1);
	zone_free(&cal.zone);
}

static void told(void)
{
	struct calendar none = { .on = false };
	struct run_info run = { .nr = UINT64_MAX, .missed = UINT64_MAX };
	char **env;
	int n = 0;

	setenv("TWHEEL_RUN", "old", 1);
	setenv("TWHEEL_RUNNER", "other", 1);
	env = run_environ(&none, &run);
	CHECK(!strcmp(env[0], "TWHEEL_DUE=then"));
	CHECK(!strcmp(env[1], "TWHEEL_RUN=18446744073709551615"));
	CHECK(!strcmp(env[2], "TWHEEL_MISSED=18446744073709551615"));
	for (char **e = env + 3; *e; e++) {
		CHECK(strncmp(*e, "TWHEEL_RUN=", 11));
		n += !strcmp(*e, "TWHEEL_RUNNER=other");
	}
	CHECK_EQ(n, 1);
	free(env);
}

int main(void)
{
	static const struct test tests[] = {
		{ on_time, "runs that are on time" },
		{ once, "once: one run for all missed times" },
		{ skip, "skip: no late run" },
		{ burst, "burst: a run for each missed time" },
		{ very_many, "very many missed times" },
		{ jitter, "jitter" },
		{ set_back_meanwhile, "a clock that is set back while a run begins" },
		{ clock_set, "a clock that is set" },
		{ told, "what a command learns of its times" },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
