/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Structures whose size the caller tells: libtwheel.h says what is promised, under Growth. Here
 * "mine" is the size that the library knows, "theirs" the one that the program was compiled with.
 * Where they are the same, as they mostly are, copying costs what an assignment does.
 */
#ifndef SIZED_H
#define SIZED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* As the op_size of a struct twheel_batch. */
#define SIZED_MAX	4096

/*
 * Is @size one that a program may have compiled for @type? @last is the last member that @type had
 * in version 1.0.0, and stays that whatever comes behind it.
 */
#define SIZED_OK(size, type, last)						\
	sized_ok(size, offsetof(type, last) + sizeof(((type *)0)->last), __alignof__(type))

static inline bool sized_ok(size_t theirs, size_t first, size_t align)
{
	return theirs >= first && theirs <= SIZED_MAX && !(theirs % align);
}

/* Copy what the caller gives. Returns 0, or -E2BIG if there is something that is not known here. */
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

/* Copy what the caller gets, as far as that goes, and zeros behind it. */
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

static inline void *sized_nth(void *array, size_t n, size_t size)
{
	return (char *)array + n * size;
}

#endif
