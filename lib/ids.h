/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Ids that name pointers. An id is made of index and generation, like a handle of the wheel. The
 * index finds the entry. The generation, which changes when an entry is freed, says whether the
 * entry still is the one that the id was given for. An entry that has used up its generations is
 * never used again, so no id is given twice.
 *
 * The caller serialises all calls on one table.
 */
#ifndef IDS_H
#define IDS_H

#include "pages.h"

/**
 * struct id_entry - what an id names
 * @what:	the pointer; NULL while the entry is free
 * @generation:	upper half of the id; 0 if the entry was never used, or must not be used again
 * @next:	while it is free: the index of the next free entry, plus 1; 0 if there is none
 */
struct id_entry {
	void	*what;
	u32	generation;
	u32	next;
};

/**
 * struct ids - a table of ids; if all is zero, it is empty
 * @entries:	an array of struct id_entry
 * @nr:		entries that have ever been used
 * @free:	the index of the first free entry, plus 1; 0 if there is none
 */
struct ids {
	struct pages	entries;
	u32		nr;
	u32		free;
};

/* Entry @index, which is below @nr. */
static inline struct id_entry *ids_entry(const struct ids *ids, u32 index)
{
	return pages_at(&ids->entries, index, sizeof(struct id_entry));
}

/* Free the table. What the ids named is not touched. */
static inline void ids_free(struct ids *ids)
{
	pages_free(&ids->entries);
}

/*
 * Give @what, which is not NULL, an id, and return it. If there is no memory, return 0, which is no
 * id.
 */
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

/* What @id names, or NULL if it was never given or has been deleted. */
static inline void *ids_find(const struct ids *ids, u64 id)
{
	u32 index = (u32)id;
	struct id_entry *entry;

	if (index >= ids->nr)
		return NULL;
	entry = ids_entry(ids, index);
	return entry->generation == id >> 32 ? entry->what : NULL;
}

/* Delete @id, which must name something. From now on it names nothing. */
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
