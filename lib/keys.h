/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * A hash of keys that never stops to grow: linear hashing, where each key that is added makes
 * one bucket more by splitting one, and nothing else moves. So the worst time of an add is
 * that of any, with ten keys and with millions.
 *
 * Keys may come from strangers. The hash is SipHash-1-3 with a secret of each table, so that
 * nobody can choose keys that all fall into one bucket.
 *
 * The caller serialises all calls on one table but twheel_keys_hash().
 */
#ifndef KEYS_H
#define KEYS_H

#include "pages.h"

/**
 * struct key - a key in a table, part of what it is the key of
 * @node:	in its bucket
 * @hash:	twheel_keys_hash()
 * @bytes:	the key
 * @len:	of it
 */
struct key {
	struct hlist_node	node;
	u64			hash;
	const void		*bytes;
	size_t			len;
};

/**
 * struct keys - a table
 * @secret:	of the hash
 * @buckets:	struct hlist_head
 * @nr_buckets:	how many are in use
 * @mask:	the least 2^n - 1 that is @nr_buckets - 1 or more
 * @nr:		keys
 */
struct keys {
	u64		secret[2];
	struct pages	buckets;
	u32		nr_buckets;
	u32		mask;
	u32		nr;
};

void twheel_keys_init(struct keys *keys);
void twheel_keys_exit(struct keys *keys);
u64 twheel_keys_hash(const struct keys *keys, const void *bytes, size_t len);
/* Returns 0, or -ENOMEM if there is no memory for the first one. */
int twheel_keys_add(struct keys *keys, struct key *key);
/* NULL: there is none. */
struct key *twheel_keys_find(const struct keys *keys, u64 hash, const void *bytes, size_t len);
void twheel_keys_del(struct keys *keys, struct key *key);

#endif
