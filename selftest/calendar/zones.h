/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* The zones of a directory of zoneinfo files, and what the C library makes of them. */
#ifndef ZONES_H
#define ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ZONEINFO	"/usr/share/zoneinfo"

/**
 * struct zone_file - a zoneinfo file
 * @name:	below the directory
 * @data:	the file
 * @size:	its size
 */
struct zone_file {
	char	*name;
	char	*data;
	size_t	size;
};

/*
 * All zones of a directory, but posix/ and right/. Of files with the same bytes there is
 * one, for they are the same zone. Ends the program if there are none.
 */
struct zone_file *zones_find(const char *dir, size_t *nr);

/*
 * A file of version 1, with two transitions and two types: 2 h ahead, from 01:00 UTC of 1970-01-01
 * on 1 h, and half an hour later 2 h again.
 */
extern const unsigned char zone_brief[67];

/* From here on the C library's zone is this one. */
void libc_zone(const char *dir, const char *name);

/* s that its clock is ahead at @t. */
long libc_offset(int64_t t);

/* The first second in (@from, @to] from which on the offset is not that at @from. */
int64_t libc_change(int64_t from, int64_t to);

/* Midnight of 1 January, UTC. */
int64_t new_year(int year);

/* A small generator of random numbers, the same on all machines. */
uint32_t draw(uint64_t *state, uint32_t below);

#endif
