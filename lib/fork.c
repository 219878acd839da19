// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Has this process been forked off since? A wheel that a child inherits looks whole and
 * is not: its descriptor is shared with the parent, its lock may be held by a thread
 * that does not exist here. So a child must find out before it touches anything.
 *
 * The kernel tells: a page with MADV_WIPEONFORK is all zero in a child, whichever
 * way that was made. The page holds a number, the family; a child that opens wheels
 * of its own begins a new family. A check is one load, and no system call.
 *
 * The number is a word: of 64 bits, ports of 32 bits may have no atomic operations but by locks
 * of libatomic, for which every program would have to be linked with that, and which a
 * child may find taken. It counts generations, not wheels, so that 32 bits are enough.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"

/* The page; NULL before the first wheel. */
static unsigned long *page;

/* How many families there were up to this one. Inherited, unlike what is on the page. */
static unsigned long families;

/* Where both of two threads make one, one of them is taken. */
static unsigned long *page_get(void)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long *p = __atomic_load_n(&page, __ATOMIC_ACQUIRE), *old = NULL;

	if (p)
		return p;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (!madvise(p, size, MADV_WIPEONFORK) &&
	    __atomic_compare_exchange_n(&page, &old, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return p;
	munmap(p, size);
	return old;
}

/* The family of this process, which is begun if need be; 0 if there is no memory. */
unsigned long twheel_family_enter(void)
{
	unsigned long *p = page_get(), family, next;

	if (!p)
		return 0;
	family = __atomic_load_n(p, __ATOMIC_RELAXED);
	if (family)
		return family;
	next = __atomic_add_fetch(&families, 1, __ATOMIC_RELAXED);
	if (__atomic_compare_exchange_n(p, &family, next, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return next;
	return family;
}

/* The family of this process; 0 in a child that has opened nothing itself. */
unsigned long twheel_family(void)
{
	unsigned long *p = __atomic_load_n(&page, __ATOMIC_ACQUIRE);

	return __atomic_load_n(p, __ATOMIC_RELAXED);
}
