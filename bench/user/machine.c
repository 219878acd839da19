// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * What the machine has: memory in use, by the kernel and by processes, and limits. It is the memory
 * of the whole machine, in which nothing else runs.
 *
 * The kernel's memory is all that is neither free, nor a cache of files, nor mapped by processes:
 * slab and whole pages, page tables and vmalloc. Pages on the CPUs' own lists are free.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define PAGE_KIB	4
#define SETTLED		65536	/* a smaller change, in bytes, does not count */
#define SETTLE_MOST	20

/* Zeroed memory whose page faults are over. */
void *get_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(p != MAP_FAILED);
	return p;
}

void put_pages(void *p, size_t size)
{
	munmap(p, size);
}

static void poke(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0);
	must(write(fd, what, strlen(what)) > 0);
	close(fd);
}

/* The sum of the numbers behind @key, where it begins a line of @path. */
static u64 sum_of(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[256];
	u64 sum = 0;

	must(file);
	while (fgets(line, sizeof(line), file)) {
		const char *p = line + strspn(line, " ");

		if (!strncmp(p, key, strlen(key)))
			sum += strtoull(p + strlen(key), NULL, 10);
	}
	fclose(file);
	return sum;
}

static u64 kib_of(const char *key)
{
	return sum_of("/proc/meminfo", key);
}

struct memory memory_now(void)
{
	u64 user, kernel;

	poke("/proc/sys/vm/stat_refresh", "1");	/* make the CPUs report their counts */
	user = kib_of("AnonPages:");
	kernel = kib_of("MemTotal:") - kib_of("MemFree:") - kib_of("Buffers:") -
		 kib_of("Cached:") - user - PAGE_KIB * sum_of("/proc/zoneinfo", "count:");
	return (struct memory){ .kernel = 1024.0 * kernel, .user = 1024.0 * user };
}

/* Free what the kernel keeps in store, and wait until nothing more is freed. */
void memory_settle(void)
{
	struct timespec pause = { .tv_nsec = 200 * MS };
	double before, now = 0;
	u32 tries = 0;

	do {
		poke("/proc/sys/vm/drop_caches", "4");	/* 4: without a message */
		poke("/proc/sys/vm/drop_caches", "3");
		nanosleep(&pause, NULL);
		before = now;
		now = memory_now().kernel;
	} while (fabs(now - before) > SETTLED && ++tries < SETTLE_MOST);
}

static void say_limit(const char *subject, const char *name, u64 value, u64 is)
{
	printf("limit\t%llu\t%s\t%s\ttimers\t%llu\n", (unsigned long long)value, subject, name,
	       (unsigned long long)is);
}

/* Raise a limit, which is a file with a number. */
void raise_limit(const char *subject, const char *path, u64 value)
{
	u64 is = sum_of(path, "");
	char text[32];

	if (is >= value)
		return;
	say_limit(subject, path, value, is);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	poke(path, text);
}

void raise_rlimit(const char *subject, const char *name, int resource, u64 value)
{
	struct rlimit limit;

	must(!getrlimit(resource, &limit));
	if (limit.rlim_max < value) {
		say_limit(subject, name, value, limit.rlim_max);
		limit.rlim_max = value;
	}
	limit.rlim_cur = limit.rlim_max;
	must(!setrlimit(resource, &limit));
}
