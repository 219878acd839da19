/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* The zones in a directory of zoneinfo files, and what the C library makes of them. */
#ifndef ZONES_H
#define ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ZONEINFO	"/usr/share/zoneinfo"

/**
 * struct zone_file - a zoneinfo file
 * @name:	its name, below the directory
 * @data:	its contents
 * @size:	the size of its contents
 */
struct zone_file {
	char	*name;
	char	*data;
	size_t	size;
};

/*
 * All zones of a directory, except those in posix/ and right/. Of several files with the same
 * contents only one is kept, since they are the same zone. Ends the program if there are none.
 */
struct zone_file *zones_find(const char *dir, size_t *nr);

/*
 * A file of version 1 with two transitions and two types: 2 h ahead of UTC; 1 h ahead from 01:00
 * UTC of 1970-01-01 on; and half an hour later 2 h ahead again.
 */
extern const unsigned char zone_brief[67];

/* From here on this is the C library's local zone. */
void libc_zone(const char *dir, const char *name);

/* The C library's offset from UTC at @t, in s. */
long libc_offset(int64_t t);

/* The first second in (@from, @to] whose offset is not that of @from. */
int64_t libc_change(int64_t from, int64_t to);

/* Midnight of 1 January of a year, in UTC. */
int64_t new_year(int year);

/* A small random generator, the same on all machines. */
uint32_t draw(uint64_t *state, uint32_t below);

#endif
