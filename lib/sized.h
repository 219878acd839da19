/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Structures whose size the caller passes. libtwheel.h says under Growth what is promised. Here
 * "mine" is the size that this library knows, and "theirs" the one that the program was compiled
 * with. If both are the same, which is usual, a copy costs what an assignment costs.
 */
#ifndef SIZED_H
#define SIZED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The same limit as for op_size of a struct twheel_batch. */
#define SIZED_MAX	4096

/*
 * Can a program have been compiled with a @type of @size bytes? @last is the last member that @type
 * had in version 1.0.0; it stays the same when members are added behind it.
 */
#define SIZED_OK(size, type, last)						\
	sized_ok(size, offsetof(type, last) + sizeof(((type *)0)->last), __alignof__(type))

/* See SIZED_OK(). @first is the size that the structure had in version 1.0.0. */
static inline bool sized_ok(size_t theirs, size_t first, size_t align)
{
	return theirs >= first && theirs <= SIZED_MAX && !(theirs % align);
}

/*
 * Copy the caller's structure. Members that the caller does not have become 0. Returns 0, or -E2BIG
 * if members that are not known here are not 0.
 */
static inline int sized_take(void *to, size_t mine, const void *from, size_t theirs)
{
	size_t both = mine < theirs ? mine : theirs;
	const char *rest = from;

	if (theirs == mine) {
		memcpy(to, from, mine);
		return 0;
	}
	memcpy(to, from, both);
	memset((char *)to + both, 0, mine - both);
	for (size_t i = both; i < theirs; i++)
		if (rest[i])
			return -E2BIG;
	return 0;
}

/*
 * Copy to the caller's structure, as much as that has room for. Set members that are not known here
 * to 0.
 */
static inline void sized_give(void *to, size_t theirs, const void *from, size_t mine)
{
	size_t both = mine < theirs ? mine : theirs;

	if (theirs == mine) {
		memcpy(to, from, mine);
		return;
	}
	memcpy(to, from, both);
	memset((char *)to + both, 0, theirs - both);
}

/* Element @n of an array whose elements have @size bytes. */
static inline void *sized_nth(void *array, size_t n, size_t size)
{
	return (char *)array + n * size;
}

#endif
