// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The pure wheel, compared with whole-bucket cascading, a classic hierarchical wheel, a heap and a
 * red-black tree; and, with BASE, with the wheel as it was in another commit.
 *
 *	bench			all loads, n = 10^3 ... NMAX; TSV on stdout
 *	bench count N LOAD	each operation of the wheel once, to count instructions
 *
 * One thread, virtual ticks. Timers are in one array. Adds go through it from end to end, cancels
 * and re-arms in random order. Expiry advances tick by tick until no timer is left. The subjects
 * take turns, repetition by repetition, with fresh memory. Times per timer are CPU time, one for
 * each repetition. For the worst advance, each tick counts with the shortest time that it took in
 * any repetition, and the longest of these is reported. So it is an advance that cannot be done
 * faster, and not one in which something else ran.
 *
 * Every repetition checks that each timer fired once, in its tick or later, and checks the sum of
 * their deadlines.
 */
#include <string.h>

#include "bench.h"

static const struct subject *const subjects[] = {
	&wheel_subject, &whole_bucket_subject,
#ifdef BASE
	&base_subject,
#endif
	&classic_subject, &heap_subject, &rbtree_subject,
};

#define NR_SUBJECTS	ARRAY_SIZE(subjects)

/* The wheels, which are the first. */
#ifdef BASE
#define NR_WHEELS	3
#else
#define NR_WHEELS	2
#endif

static u32 setting(const char *name, u32 value)
{
	const char *s = getenv(name);

	return s && *s ? strtoul(s, NULL, 0) : value;
}

/*
 * How often subject @i runs. Small loads are over in microseconds. A tree of a million timers takes
 * more time than all wheels, though nobody looks for its last percent: such run once.
 */
static u32 repetitions(u32 n, u32 i)
{
	u32 reps = setting("REPS", 5);

	if (n < 100000)
		return 10 * reps;
	return n < MANY || i < NR_WHEELS ? reps : 1;
}

/* One repetition of subject @i. */
static void repeat(const struct load *l, u32 i, struct times *took, struct work *work,
		   u32 *tick_ns)
{
	struct work w = { 0 };

	subjects[i]->run(l, took, &w, tick_ns);
	if (w.late < work->late)
		w.late = work->late;
	*work = w;
}

static void report(const struct load *l, const struct subject *s, const struct work *w,
		   const u32 *tick_ns)
{
	u32 i, worst = 0;

	for (i = 1; i < l->first + l->range; i++)
		if (tick_ns[i] > worst)
			worst = tick_ns[i];
	tsv(l, s->name, "worst-advance", "us", worst / 1000.0);
	tsv(l, s->name, "late", "ticks", w->late);
	tsv(l, s->name, "memory", "bytes", (double)s->bytes(l->n) / l->n);
	tsv(l, s->name, "checksum", "ticks", w->sum);
	if (w->most_moves)
		tsv(l, s->name, "most-moves", "moves", w->most_moves);
}

static void compare_subjects(const struct load *l, u32 nr)
{
	u32 reps = repetitions(l->n, 0), rep, i;
	u32 *tick_ns[NR_SUBJECTS];
	struct times times[NR_SUBJECTS][reps];
	struct work work[NR_SUBJECTS] = { 0 };

	memset(times, 0, sizeof(times));
	for (i = 0; i < nr; i++) {
		if (l->n <= MANY)
			subjects[i]->check(l);
		tick_ns[i] = pages((l->first + l->range) * sizeof(u32));
		memset(tick_ns[i], 0xff, (l->first + l->range) * sizeof(u32));
	}
	for (rep = 0; rep < reps; rep++)
		for (i = 0; i < nr; i++)
			if (rep < repetitions(l->n, i))
				repeat(l, i, &times[i][rep], &work[i], tick_ns[i]);
	for (i = 0; i < nr; i++) {
		tsv_times(l, subjects[i]->name, times[i], repetitions(l->n, i));
		report(l, subjects[i], &work[i], tick_ns[i]);
		munmap(tick_ns[i], (l->first + l->range) * sizeof(u32));
	}
}

static int count(u32 n, const char *name)
{
	u32 i;

	for (i = 0; i < NR_LOADS; i++) {
		struct load l = loads[i];

		if (strcmp(name, l.name))
			continue;
		make_load(&l, n);
		wheel_subject.check(&l);
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	u32 nmax = setting("NMAX", 1000000), n, i;
	struct load hour = loads[LOAD_HOUR];

	if (argc == 4 && !strcmp(argv[1], "count"))
		return count(strtoul(argv[2], NULL, 0), argv[3]);
	if (argc != 1) {
		fprintf(stderr, "usage: %s [count N LOAD]\n", argv[0]);
		return 2;
	}
	for (i = 0; i < LOAD_HOUR; i++) {
		for (n = 1000; n <= nmax; n *= 10) {
			struct load l = loads[i];

			fprintf(stderr, "%s, n = %u\n", l.name, n);
			make_load(&l, n);
			l.idle &= n <= MANY;
			l.eighth &= n <= MANY;
			compare_subjects(&l, n > MANY && i ? NR_WHEELS : NR_SUBJECTS);
			free_load(&l);
		}
	}
	make_load(&hour, nmax < 1000000 ? nmax : 1000000);
	compare_subjects(&hour, NR_WHEELS);
	return 0;
}
