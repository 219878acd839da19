// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The zones of a directory: see zones.h. */
#define _GNU_SOURCE
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "zones.h"

const unsigned char zone_brief[67] = {
	'T', 'Z', 'i', 'f',
	[35] = 2, [39] = 2, [43] = 1,	/* transitions, types, characters */
	[46] = 0x0e, 0x10,		/* 3600 */
	[50] = 0x15, 0x18,		/* 5400 */
	[52] = 1, 0,
	[56] = 0x1c, 0x20,		/* 7200 */
	[62] = 0x0e, 0x10,
};

static char *read_file(const char *path, size_t size)
{
	FILE *stream = fopen(path, "re");
	char *data = malloc(size + 1);

	if (!stream || !data || fread(data, 1, size, stream) != size) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	fclose(stream);
	return data;
}

/* Keep one more zone, unless the file is not a zone, or is known already. */
static void add(struct zone_file **zones, size_t *nr, const char *name, char *data, size_t size)
{
	bool known = size < 44 || memcmp(data, "TZif", 4);

	for (size_t i = 0; i < *nr && !known; i++)
		known = (*zones)[i].size == size && !memcmp((*zones)[i].data, data, size);
	if (known) {
		free(data);
		return;
	}
	*zones = realloc(*zones, (*nr + 1) * sizeof(**zones));
	if (!*zones)
		abort();
	(*zones)[(*nr)++] = (struct zone_file) { strdup(name), data, size };
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

struct zone_file *zones_find(const char *dir, size_t *nr)
{
	char *const dirs[] = { (char *)dir, NULL };
	FTS *fts = fts_open(dirs, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	struct zone_file *zones = NULL;
	FTSENT *e;

	*nr = 0;
	while (fts && (e = fts_read(fts))) {
		const char *name = e->fts_path + strlen(dir);

		if (e->fts_info == FTS_D &&
		    (!strcmp(name, "/right") || !strcmp(name, "/posix")))
			fts_set(fts, e, FTS_SKIP);
		else if (e->fts_info == FTS_F)
			add(&zones, nr, name + 1,
			    read_file(e->fts_path, (size_t)e->fts_statp->st_size),
			    (size_t)e->fts_statp->st_size);
	}
	if (fts)
		fts_close(fts);
	if (!*nr) {
		printf("Bail out! no zones in %s\n", dir);
		exit(1);
	}
	return zones;
}

void libc_zone(const char *dir, const char *name)
{
	char *tz;

	if (asprintf(&tz, ":%s/%s", dir, name) < 0)
		abort();
	setenv("TZ", tz, 1);
	free(tz);
	tzset();
}

long libc_offset(int64_t t)
{
	time_t time = (time_t)t;
	struct tm tm;

	localtime_r(&time, &tm);
	return tm.tm_gmtoff;
}

int64_t libc_change(int64_t from, int64_t to)
{
	long offset = libc_offset(from);

	while (to - from > 1) {
		int64_t middle = from + (to - from) / 2;

		if (libc_offset(middle) == offset)
			from = middle;
		else
			to = middle;
	}
	return to;
}

int64_t new_year(int year)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mday = 1 };

	return timegm(&tm);
}

uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((*state >> 33) % below);
}
