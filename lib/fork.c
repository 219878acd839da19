// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Was a wheel opened by this very process, or by an ancestor that forked? A wheel that a child
 * inherits looks usable but is not: its descriptor is shared with the parent, and its lock may be
 * held by a thread that does not exist in the child. So a child must find out before it touches the
 * wheel.
 *
 * The kernel helps: a page with MADV_WIPEONFORK is all zero in a child, however the child was made.
 * The page holds a number, the family. A child that opens wheels of its own begins a new family. A
 * check is one load, and no system call.
 *
 * The number is an unsigned long. On 32-bit machines atomic operations on 64 bits may need the
 * locks of libatomic: every program would have to link with it, and a child might find such a lock
 * taken. The number counts generations of processes, not wheels, so 32 bits are enough.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"

/* The page; NULL before the first wheel. It is set once, and never freed. */
static unsigned long *page;

/* How many families there have been up to this one. Inherited by children, unlike the page. */
static unsigned long families;

/*
 * The page, which is made if there is none; NULL if there is no memory. If two threads make a page
 * at once, both get the one that was stored first. The acquires pair with the release of the
 * compare-exchange: whoever sees the page sees it marked MADV_WIPEONFORK.
 */
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

/* The family of this process; if it has none yet, it begins one. 0 if there is no memory. */
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

/*
 * The family of this process; 0 in a child that has opened no wheel itself. The caller has a wheel,
 * so there is a page. The number in it needs no ordering: it was stored before that wheel was
 * opened, and does not change in this process after that.
 */
unsigned long twheel_family(void)
{
	unsigned long *p = __atomic_load_n(&page, __ATOMIC_ACQUIRE);

	return __atomic_load_n(p, __ATOMIC_RELAXED);
}
