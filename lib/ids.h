/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Ids that name pointers. An id is made of index and generation, as a handle of the wheel: the
 * index finds the entry, and the generation says whether it is still the one that was meant.
 * The generation changes when an entry is freed. An entry that has used up its generations is
 * not used any more, so no id is ever given twice.
 */
#ifndef IDS_H
#define IDS_H

#include "pages.h"

/**
 * struct id_entry - what an id names
 * @what:	the pointer; NULL while the entry is free
 * @generation:	half of the id; 0 where the entry was never used
 * @next:	while it is free: the index of the next one that is, plus 1; 0: there is none
 */
struct id_entry {
	void	*what;
	u32	generation;
	u32	next;
};

/**
 * struct ids - all of them; all zero is none
 * @entries:	struct id_entry
 * @nr:		entries that were ever used
 * @free:	the index of the first that is free, plus 1; 0: there is none
 */
struct ids {
	struct pages	entries;
	u32		nr;
	u32		free;
};

static inline struct id_entry *ids_entry(const struct ids *ids, u32 index)
{
	return pages_at(&ids->entries, index, sizeof(struct id_entry));
}

static inline void ids_free(struct ids *ids)
{
	pages_free(&ids->entries);
}

/* Give @what an id. Returns that, or 0, which is none, where there is no memory. */
static inline u64 ids_add(struct ids *ids, void *what)
{
	u32 index = ids->free - 1;
	struct id_entry *entry;

	if (!ids->free) {
		index = ids->nr;
		if (index == UINT32_MAX || (index / PAGE_ENTRIES == ids->entries.nr &&
					    pages_grow(&ids->entries, sizeof(*entry))))
			return 0;
		ids->nr++;
		ids_entry(ids, index)->generation = 1;
	}
	entry = ids_entry(ids, index);
	ids->free = entry->next;
	entry->next = 0;
	entry->what = what;
	return (u64)entry->generation << 32 | index;
}

/* What @id names, or NULL if it names nothing, or nothing any more. */
static inline void *ids_find(const struct ids *ids, u64 id)
{
	u32 index = (u32)id;
	struct id_entry *entry;

	if (index >= ids->nr)
		return NULL;
	entry = ids_entry(ids, index);
	return entry->generation == id >> 32 ? entry->what : NULL;
}

/* From here on @id, which names something, names nothing. */
static inline void ids_del(struct ids *ids, u64 id)
{
	u32 index = (u32)id;
	struct id_entry *entry = ids_entry(ids, index);

	entry->what = NULL;
	if (!++entry->generation)
		return;
	entry->next = ids->free;
	ids->free = index + 1;
}

#endif
