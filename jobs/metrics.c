// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What the daemon counts, as text for Prometheus: GET /metrics. Counters begin at 0 when the daemon
 * starts. Each daemon counts only what it has done itself, so for daemons that share a store the
 * reader adds their counters up.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

/* The upper bounds of the buckets of lateness, in us. One more bucket is for all above the last. */
static const int64_t bounds[] = {
	1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 5000000, 60000000,
};

/**
 * struct counted - what has happened since the daemon began
 * @fired:	firings that were entered into running
 * @outcomes:	lines of history
 * @missed:	times that were missed, whether a run stands for them or only a row of history
 * @late:	firings by how late they were entered; the last entry counts those above all bounds
 * @late_us:	the sum of how late they were entered
 * @turns:	turns that were written
 * @ops:	their operations
 */
static struct counted {
	uint64_t	fired;
	uint64_t	outcomes[NR_OUTCOMES];
	uint64_t	missed;
	uint64_t	late[ARRAY_SIZE(bounds) + 1];
	uint64_t	late_us;
	uint64_t	turns;
	uint64_t	ops;
} counted;

static void count_firing(const struct firing *f, int64_t now)
{
	int64_t late = now > f->at ? now - f->at : 0;
	size_t i = 0;

	while (i < ARRAY_SIZE(bounds) && late > bounds[i])
		i++;
	counted.late[i]++;
	counted.late_us += (uint64_t)late;
	counted.fired++;
	counted.missed += (uint64_t)f->missed;
}

static void count_op(const struct op *op, int64_t now)
{
	if (!op->done)
		return;
	if (op->type == OP_FIRE)
		count_firing(&op->line.firing, now);
	if (op->type == OP_LEAVE)
		counted.missed += (uint64_t)op->line.firing.missed;
	if (op->type == OP_LEAVE || op->type == OP_END || op->type == OP_AGAIN)
		counted.outcomes[op->line.outcome]++;
}

void count_turn(const struct op *ops, size_t nr)
{
	int64_t now = now_us();

	counted.turns++;
	counted.ops += nr;
	for (size_t i = 0; i < nr; i++)
		count_op(&ops[i], now);
}

/* ---- the text ----------------------------------------------------------------------- */

/* Begin a metric: its type and what it is. */
static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP twheeld_%s %s\n# TYPE twheeld_%s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "twheeld_%s %llu\n", name, (unsigned long long)value);
}

static void print_late(FILE *out)
{
	uint64_t sum = 0;

	head(out, "late_seconds", "histogram", "From when a firing was due until it was written.");
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		sum += counted.late[i];
		fprintf(out, "twheeld_late_seconds_bucket{le=\"%g\"} %llu\n",
			(double)bounds[i] / US_PER_S, (unsigned long long)sum);
	}
	fprintf(out, "twheeld_late_seconds_bucket{le=\"+Inf\"} %llu\n"
		"twheeld_late_seconds_sum %.6f\ntwheeld_late_seconds_count %llu\n",
		(unsigned long long)counted.fired, (double)counted.late_us / US_PER_S,
		(unsigned long long)counted.fired);
}

static void print_outcomes(FILE *out)
{
	head(out, "attempts_total", "counter", "Lines of history, by outcome.");
	for (int i = 0; i < NR_OUTCOMES; i++)
		fprintf(out, "twheeld_attempts_total{outcome=\"%s\"} %llu\n", outcome_name(i),
			(unsigned long long)counted.outcomes[i]);
}

/* ---- what there is now -------------------------------------------------------------- */

enum { NOW_QUEUED, NOW_WAITING, NOW_READY, NOW_RUNNING, NR_NOW };

static void see_run(void *arg, struct run *run)
{
	static const int states[] = { NOW_QUEUED, NOW_WAITING, NOW_READY, NOW_READY, NOW_READY };
	uint64_t *now = arg;

	now[run_is_out(run) ? NOW_RUNNING : states[run->firing.state]]++;
}

static void see_job(void *arg, struct job *job)
{
	uint64_t *jobs = arg;

	jobs[0]++;
	jobs[1] += job->paused;
	jobs[2] += !!job->broken;
}

static void print_runs(FILE *out)
{
	static const char *const states[NR_NOW] = { "queued", "waiting", "ready", "running" };
	uint64_t now[NR_NOW] = { 0 };

	runs_each(see_run, now);
	head(out, "runs", "gauge", "Firings of this daemon that are not over, by state.");
	for (int i = 0; i < NR_NOW; i++)
		fprintf(out, "twheeld_runs{state=\"%s\"} %llu\n", states[i],
			(unsigned long long)now[i]);
}

static void print_jobs(FILE *out)
{
	uint64_t jobs[3] = { 0 };

	jobs_each(see_job, jobs);
	one(out, "jobs", "gauge", "Jobs in the store.", jobs[0]);
	one(out, "jobs_paused", "gauge", "Jobs that are paused.", jobs[1]);
	one(out, "jobs_broken", "gauge", "Jobs that this daemon does not understand.", jobs[2]);
}

static void print_parts(FILE *out)
{
	head(out, "part_owned", "gauge", "1 for each part that this daemon owns.");
	for (int i = 0; i < PARTS; i++)
		if (store->parts >> i & 1)
			fprintf(out, "twheeld_part_owned{part=\"%d\"} 1\n", i);
}

static void print_all(FILE *out)
{
	one(out, "fired_total", "counter", "Firings that were written, to be run.", counted.fired);
	one(out, "missed_total", "counter", "Times that were missed.", counted.missed);
	print_outcomes(out);
	print_late(out);
	print_runs(out);
	print_jobs(out);
	one(out, "timers", "gauge", "Timers in the wheel.", twheel_sched_pending(sched));
	one(out, "paced", "gauge", "Late firings that are held back.", core_paced());
	one(out, "turns_total", "counter", "Transactions that were written.", counted.turns);
	one(out, "operations_total", "counter", "Operations in these.", counted.ops);
	head(out, "alarms_total", "counter", "Alarms, by whether they were delivered.");
	fprintf(out, "twheeld_alarms_total{result=\"sent\"} %llu\n"
		"twheeld_alarms_total{result=\"failed\"} %llu\n",
		(unsigned long long)alarms_sent, (unsigned long long)alarms_failed);
	one(out, "stuck", "gauge", "1 if the store cannot be written.", core_stuck());
	one(out, "life", "gauge", "The number of this life.", (uint64_t)store->life);
	print_parts(out);
}

void get_metrics(struct request *r)
{
	FILE *out = open_memstream(&r->text, &r->text_size);

	if (!out)
		return;
	print_all(out);
	fclose(out);
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	r->status = MHD_HTTP_OK;
}
