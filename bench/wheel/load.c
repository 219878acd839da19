// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Loads, and the lines of the TSV. */
#include <string.h>

#include "bench.h"

/*
 * The loads begin at an odd time of day, except the hour, which fills one bucket. The third is what
 * timeouts of one to two minutes are in ticks of 1 ms: each timer is moved twice before it expires.
 */
const struct load loads[NR_LOADS] = {
	{ .name = "1..60000", .start = 45296, .first = 1, .range = 60000, .idle = true,
	  .eighth = true },
	{ .name = "1..1000000", .start = 45296, .first = 1, .range = 1000000, .idle = true },
	{ .name = "60000..120000", .start = 45296, .first = 60000, .range = 60000, .idle = true },
	[LOAD_HOUR] = { .name = "hour", .start = 43200, .first = 86400, .range = 3600 },
};

/* splitmix64. NettyWheel.java has the same generator, and so the same deadlines. */
static u64 rnd_state;

static u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static u32 *delays(const struct load *l, u64 *sum)
{
	u32 *delay = pages(l->n * sizeof(*delay)), i;

	*sum = 0;
	for (i = 0; i < l->n; i++) {
		delay[i] = l->first + rnd() % l->range;
		*sum += l->start + delay[i];
	}
	return delay;
}

static u32 *permutation(u32 n)
{
	u32 *order = pages(n * sizeof(*order)), i;

	for (i = 0; i < n; i++) {
		u32 j = rnd() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static u32 *picks(u32 n)
{
	u32 *pick = pages(n * sizeof(*pick)), i;

	for (i = 0; i < n; i++)
		pick[i] = rnd() % n;
	return pick;
}

void make_load(struct load *l, u32 n)
{
	rnd_state = n;
	l->n = n;
	l->delay = delays(l, &l->sum);
	l->order = permutation(n);
	l->again = delays(l, &l->sum_again);
	l->pick = picks(n);
}

void free_load(struct load *l)
{
	munmap(l->delay, l->n * sizeof(u32));
	munmap(l->again, l->n * sizeof(u32));
	munmap(l->order, l->n * sizeof(u32));
	munmap(l->pick, l->n * sizeof(u32));
}

void tsv(const struct load *l, const char *subject, const char *metric, const char *unit,
	 double value)
{
	printf("native\t%s\t%u\t%s\t%s\t%s\t%.*f\n", l->name, l->n, subject, metric, unit,
	       value == (double)(u64)value ? 0 : 2, value);
	fflush(stdout);
}

/* Print one metric of all repetitions, for each timer. */
static void tsv_metric(const struct load *l, const char *subject, const char *metric,
		       const u64 *first, u32 reps)
{
	const u32 stride = sizeof(struct times) / sizeof(u64);

	printf("native\t%s\t%u\t%s\t%s\tns\t", l->name, l->n, subject, metric);
	for (u32 i = 0; i < reps; i++)
		printf("%s%.2f", i ? " " : "", (double)first[i * stride] / l->n);
	printf("\n");
	fflush(stdout);
}

void tsv_times(const struct load *l, const char *subject, const struct times *t, u32 reps)
{
	tsv_metric(l, subject, "add", &t->add, reps);
	tsv_metric(l, subject, "rearm", &t->rearm, reps);
	tsv_metric(l, subject, "cancel", &t->cancel, reps);
	if (t->expire)
		tsv_metric(l, subject, "expire", &t->expire, reps);
	if (t->idle)
		tsv_metric(l, subject, "idle", &t->idle, reps);
	if (t->few)
		tsv_metric(l, subject, "few", &t->few, reps);
	if (t->stride)
		tsv_metric(l, subject, "stride", &t->stride, reps);
}
