/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A hash table of keys that grows without pauses. It uses linear hashing: each key that is added
 * splits one bucket into two, and nothing else moves. So the worst add takes no longer than any
 * other, with ten keys and with millions.
 *
 * Keys may come from strangers. The hash is SipHash-1-3 with a secret for each table, so that
 * nobody can choose keys that all fall into one bucket.
 *
 * The caller serialises all calls on one table, except twheel_keys_hash().
 */
#ifndef KEYS_H
#define KEYS_H

#include "pages.h"

/**
 * struct key - a key in a table, embedded in the object that has the key
 * @node:	link in its bucket
 * @hash:	twheel_keys_hash() of the key
 * @bytes:	the key, which the caller keeps while it is in the table
 * @len:	its length
 */
struct key {
	struct hlist_node	node;
	u64			hash;
	const void		*bytes;
	size_t			len;
};

/**
 * struct keys - a table
 * @secret:	the secret of the hash. Does not change
 * @buckets:	an array of struct hlist_head
 * @nr_buckets:	how many are in use
 * @mask:	the smallest 2^n - 1 that is at least @nr_buckets - 1
 * @nr:		how many keys there are
 */
struct keys {
	u64		secret[2];
	struct pages	buckets;
	u32		nr_buckets;
	u32		mask;
	u32		nr;
};

/* Make an empty table, with a secret of its own. It takes no memory before the first key. */
void twheel_keys_init(struct keys *keys);
void twheel_keys_exit(struct keys *keys);
/* The hash of a key in this table. Reads only the secret, so no lock is needed. */
u64 twheel_keys_hash(const struct keys *keys, const void *bytes, size_t len);
/*
 * Add a key whose hash is filled in. If the table has another key with the same bytes, the caller
 * must delete that one: until then twheel_keys_find() returns one of the two. Returns 0, or -ENOMEM
 * if there is no memory for the first page of buckets.
 */
int twheel_keys_add(struct keys *keys, struct key *key);
/* The key with these bytes, or NULL. @hash is twheel_keys_hash() of them. */
struct key *twheel_keys_find(const struct keys *keys, u64 hash, const void *bytes, size_t len);
/* Take out @key, which is in the table. The table does not become smaller. */
void twheel_keys_del(struct keys *keys, struct key *key);

#endif
