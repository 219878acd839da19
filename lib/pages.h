/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * An array that grows by a page at a time. Its entries never move, so growing costs the same at
 * every size: one page of PAGE_ENTRIES, and now and then the table of pages, which doubles and is
 * 16 KiB for a million entries. The array does not shrink. The caller serialises all calls.
 */
#ifndef PAGES_H
#define PAGES_H

#include <errno.h>
#include <stdlib.h>

#include "wheel_user.h"

#define PAGE_ENTRIES	512

/**
 * struct pages - the array; if all is zero, it is empty
 * @page:	the table of pages
 * @nr:		how many pages there are
 * @room:	how many pages the table has room for
 */
struct pages {
	void	**page;
	u32	nr;
	u32	room;
};

/* Entry @index, of @size bytes. Its page must exist. */
static inline void *pages_at(const struct pages *p, u32 index, size_t size)
{
	return (char *)p->page[index / PAGE_ENTRIES] + index % PAGE_ENTRIES * size;
}

/* Add a page of zeroed entries of @size bytes. Returns 0, or -ENOMEM with no entry changed. */
static inline int pages_grow(struct pages *p, size_t size)
{
	if (p->nr == p->room) {
		u32 room = p->room ? 2 * p->room : 8;
		void **page = realloc(p->page, room * sizeof(*page));

		if (!page)
			return -ENOMEM;
		p->page = page;
		p->room = room;
	}
	p->page[p->nr] = calloc(PAGE_ENTRIES, size);
	if (!p->page[p->nr])
		return -ENOMEM;
	p->nr++;
	return 0;
}

/* Free all pages. The array must not be used after that. */
static inline void pages_free(struct pages *p)
{
	while (p->nr)
		free(p->page[--p->nr]);
	free(p->page);
}

/* How many bytes of memory the array takes. */
static inline u64 pages_bytes(const struct pages *p, size_t size)
{
	return (u64)p->nr * PAGE_ENTRIES * size + p->room * sizeof(*p->page);
}

#endif
