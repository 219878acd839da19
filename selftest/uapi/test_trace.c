// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The tracepoints of twheel, by their names in tracefs: what they report is compared with what was
 * done.
 *
 * The address in a line tells the bases apart. It is not a real address.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define TRACING	"/sys/kernel/tracing"

/* A line of the trace. */
struct line {
	char		event[32], base[32];
	unsigned int	id, level, moved, left;
	long long	expires, now;
	unsigned long long pause;
	char		function[64];
};

static struct line lines[20000];
static u32 nr_lines;

static const char *tracing(const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), TRACING "/%s", file);
	return path;
}

static void trace_on(const char *events)
{
	file_set(tracing("events/twheel/enable"), "0");
	close(open(tracing("trace"), O_WRONLY | O_TRUNC | O_CLOEXEC));	/* this empties the trace */
	file_set(tracing("buffer_size_kb"), "8192");
	for (const char *e = events; *e; e += strcspn(e, " "), e += strspn(e, " ")) {
		char file[64];

		snprintf(file, sizeof(file), "events/twheel/%.*s/enable",
			 (int)strcspn(e, " "), e);
		file_set(tracing(file), "1");
	}
}

/* The number behind " @key=" in @text; 0 if there is none. */
static long long number(const char *text, const char *key)
{
	char name[32];
	const char *p;

	snprintf(name, sizeof(name), " %s=", key);
	p = strstr(text, name);
	return p ? strtoll(p + strlen(name), NULL, 10) : 0;
}

static bool parse(const char *text, struct line *l)
{
	const char *p = strstr(text, ": twheel_"), *f;

	memset(l, 0, sizeof(*l));
	if (!p || sscanf(p, ": %31[a-z_]: base=%31s", l->event, l->base) != 2)
		return false;
	l->id = (unsigned int)number(p, "id");
	l->level = (unsigned int)number(p, "level");
	l->moved = (unsigned int)number(p, "moved");
	l->left = (unsigned int)number(p, "left");
	l->expires = number(p, "expires");
	l->now = number(p, "now");
	l->pause = (unsigned long long)number(p, "pause");
	f = strstr(p, " function=");
	if (f)
		sscanf(f, " function=%63s", l->function);
	return true;
}

/* Stop tracing, and read what was traced of @base; of all bases if that is NULL. */
static void trace_off(const char *base)
{
	static char text[1024];
	FILE *f;

	file_set(tracing("events/twheel/enable"), "0");
	nr_lines = 0;
	f = fopen(tracing("trace"), "r");
	if (!f)
		bail("trace");
	while (nr_lines < ARRAY_SIZE(lines) && fgets(text, sizeof(text), f)) {
		if (!parse(text, &lines[nr_lines]))
			continue;
		nr_lines += !base || !strcmp(lines[nr_lines].base, base);
	}
	fclose(f);
}

static u32 count(const char *event)
{
	u32 n = 0;

	for (u32 i = 0; i < nr_lines; i++)
		n += !strcmp(lines[i].event, event);
	return n;
}

/* Line @n of @event, from 0. */
static const struct line *nth(const char *event, u32 n)
{
	static const struct line none;

	for (u32 i = 0; i < nr_lines; i++)
		if (!strcmp(lines[i].event, event) && !n--)
			return &lines[i];
	CHECK(!event);
	return &none;
}

static void names(void)
{
	static const char *const events[] = { "add", "cancel", "expire", "cascade", "budget" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), TRACING "/events/twheel/twheel_%s/format",
			 events[i]);
		if (!CHECK(!access(path, R_OK)))
			diag("	%s", path);
	}
}

/* One operation of each kind, and the lines that it causes, in order. */
static void one_by_one(void)
{
	int fd = dev_open(O_NONBLOCK);
	struct twheel_event ev;
	u64 before, after, h[3];

	trace_on("twheel_add twheel_cancel twheel_expire");
	before = now_ns(CLOCK_MONOTONIC);
	h[0] = add(fd, HOUR, 1);
	h[1] = add(fd, 10 * MS, 2);
	h[2] = add(fd, 2 * HOUR, 3);
	CHECK_EQ(read_one(fd, &ev), 1);
	CHECK_EQ(cancel(fd, h[0]), 1);
	CHECK_EQ(mod(fd, h[2], 3 * HOUR, 0), 1);
	after = now_ns(CLOCK_MONOTONIC);
	trace_off(NULL);
	CHECK_EQ(nr_lines, 7);
	CHECK_EQ(count("twheel_add"), 4);
	CHECK_EQ(count("twheel_cancel"), 2);
	CHECK_EQ(count("twheel_expire"), 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(nth("twheel_add", i)->id, (u32)h[i]);
	CHECK_EQ(nth("twheel_expire", 0)->id, (u32)h[1]);
	CHECK_EQ(nth("twheel_cancel", 0)->id, (u32)h[0]);
	CHECK_EQ(nth("twheel_cancel", 1)->id, (u32)h[2]);
	CHECK_EQ(nth("twheel_add", 3)->id, (u32)h[2]);
	for (u32 i = 0; i < nr_lines; i++) {
		CHECK(!strcmp(lines[i].base, lines[0].base));
		CHECK((u64)lines[i].now >= before && (u64)lines[i].now <= after);
		CHECK_EQ(lines[i].expires % MS, 0);
	}
	CHECK(nth("twheel_expire", 0)->now >= nth("twheel_expire", 0)->expires);
	CHECK((u64)nth("twheel_expire", 0)->expires >= ev.expires_ns);
	CHECK((u64)nth("twheel_expire", 0)->expires < ev.expires_ns + MS);
	CHECK((u64)nth("twheel_add", 3)->expires >= before + 3 * HOUR);
	close(fd);
	/* While tracing is off, nothing is traced. */
	trace_on("");
	fd = dev_open(0);
	CHECK_EQ(cancel(fd, add(fd, HOUR, 1)), 1);
	close(fd);
	trace_off(NULL);
	CHECK_EQ(nr_lines, 0);
}

/* With many operations, there are as many lines of each event as INFO and the results say. */
static void many(void)
{
	static struct twheel_event ev[2000];
	static struct twheel_op ops[65];
	int fd = dev_open(O_NONBLOCK), got = 0, n;
	struct twheel_info i;
	u64 before;
	u32 moved = 0;

	/*
	 * With more than 64 timers the file grows, and its timers are moved. That is no step of the
	 * wheel.
	 */
	add_many(fd, 65, HOUR, 0);
	CHECK_EQ(drain(fd, ops, 65, 0), 65);
	info(fd, &i);
	before = i.nr_moves;
	trace_on("twheel_add twheel_expire twheel_cascade");
	add_many(fd, 2000, 300 * MS, 0);
	while (got < 2000 && readable(fd, WAIT_MS)) {
		n = read_events(fd, ev, 2000);
		got += n > 0 ? n : 0;
	}
	CHECK_EQ(got, 2000);
	info(fd, &i);
	trace_off(NULL);
	CHECK_EQ(count("twheel_add"), 2000);
	CHECK_EQ(count("twheel_expire"), 2000);
	for (u32 k = 0; k < nr_lines; k++) {
		moved += lines[k].moved;
		if (!strcmp(lines[k].event, "twheel_cascade"))
			CHECK(lines[k].level >= 1 && lines[k].level <= 4 && lines[k].moved);
	}
	diag("%u moves in %u steps", moved, count("twheel_cascade"));
	CHECK_EQ(moved, i.nr_moves - before);
	CHECK(moved >= 2000);
	close(fd);
}

/*
 * More timers expire than a run may handle: each run that is deferred is traced, with the time for
 * which its work has been due. All are due in one tick: if there was a second one, it could become
 * due just before the end of a pause.
 *
 * On PREEMPT_RT, a CPU that the host stops between taking the file off its queue and serving it is
 * helped by another, which serves the file first. What that leaves is due only since then.
 */
static void budget(void)
{
	int fd = dev_open(O_NONBLOCK);
	u32 brief = 0;
	struct twheel_info i;

	trace_on("twheel_budget");
	add_many_at(fd, 100000, now_ns(CLOCK_MONOTONIC) + 400 * MS);
	for (u32 ms = 0; ms < WAIT_MS; ms += 10) {
		info(fd, &i);
		if (i.nr_ready == 100000)
			break;
		sleep_ms(10);
	}
	info(fd, &i);
	trace_off(NULL);
	CHECK_EQ(i.nr_ready, 100000);
	diag("put off %llu times", i.nr_deferred);
	CHECK(i.nr_deferred > 0);
	CHECK_EQ(count("twheel_budget"), i.nr_deferred);
	for (u32 k = 0; k < nr_lines; k++)
		brief += lines[k].pause < 50000;
	CHECK(brief <= (is_preempt_rt() ? nr_lines / 20 : 0));
	close(fd);
}

static const struct test tests[] = {
	{ names, "the five tracepoints have their names" },
	{ one_by_one, "add, cancel, expire: which timer, when" },
	{ many, "as many lines as timers were armed, fired and moved" },
	{ budget, "a line for each time that due work was deferred" },
};

/*
 * The names of tasks are not recorded, because the kernel would turn the tracepoint of sched_switch
 * on and off for them: it patches an instruction that all CPUs execute all the time. In QEMU 7.2 a
 * virtual CPU may go on with its translation of the instruction that was there before. If that is
 * the breakpoint by which the kernel patches code, the machine stands still.
 */
int main(void)
{
	int status;

	file_set(tracing("options/record-cmd"), "0");
	status = run_tests(tests, ARRAY_SIZE(tests));
	/* Otherwise the 8 MiB of each CPU would look like a leak. */
	file_set(tracing("buffer_size_kb"), "4");
	return status;
}
