// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The hash of keys: see keys.h. */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "backend.h"
#include "keys.h"

/* Rotate @x to the left by @bits, from 1 to 63. */
static u64 rotate(u64 x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

/* SipRound, as in the paper on SipHash. */
static void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* Take @word into the state @v, with one round: the 1 of SipHash-1-3. */
static void sip_word(u64 v[4], u64 word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

/* Up to eight bytes as a word, in the machine's byte order: hashes do not leave the process. */
static u64 word_of(const unsigned char *bytes, size_t len)
{
	u64 word = 0;

	memcpy(&word, bytes, len);
	return word;
}

/* SipHash-1-3 of @bytes. */
u64 twheel_keys_hash(const struct keys *keys, const void *bytes, size_t len)
{
	u64 v[4] = {
		keys->secret[0] ^ 0x736f6d6570736575, keys->secret[1] ^ 0x646f72616e646f6d,
		keys->secret[0] ^ 0x6c7967656e657261, keys->secret[1] ^ 0x7465646279746573,
	};
	const unsigned char *p = bytes;
	size_t left;

	for (left = len; left >= sizeof(u64); left -= sizeof(u64), p += sizeof(u64))
		sip_word(v, word_of(p, sizeof(u64)));
	sip_word(v, (u64)len << 56 | word_of(p, left));
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* If the machine has no random numbers yet, clocks and an address are the secret. */
void twheel_keys_init(struct keys *keys)
{
	if (getrandom(keys->secret, sizeof(keys->secret), GRND_NONBLOCK) ==
	    sizeof(keys->secret))
		return;
	keys->secret[0] = twheel_clock(CLOCK_REALTIME);
	keys->secret[1] = (uintptr_t)keys ^ twheel_clock(CLOCK_MONOTONIC) << 32;
}

/* Free the buckets. The keys are the caller's, and may be in them still. */
void twheel_keys_exit(struct keys *keys)
{
	pages_free(&keys->buckets);
}

/* Bucket @index, which is below nr_buckets. */
static struct hlist_head *bucket_at(const struct keys *keys, u32 index)
{
	return pages_at(&keys->buckets, index, sizeof(struct hlist_head));
}

/*
 * The bucket that has the keys with @hash. If the bucket that they belong to is beyond nr_buckets,
 * it does not exist yet, and they are still in the bucket from which it will be split off.
 */
static struct hlist_head *bucket_of(const struct keys *keys, u64 hash)
{
	u32 index = (u32)hash & keys->mask;

	return bucket_at(keys, index < keys->nr_buckets ? index : index & (keys->mask >> 1));
}

/* Move those keys of @old that belong to the new bucket. */
static void bucket_split(struct keys *keys, struct hlist_head *old)
{
	struct hlist_node *node = old->first, *next;

	for (; node; node = next) {
		struct hlist_head *bucket = bucket_of(keys, container_of(node, struct key,
									 node)->hash);

		next = node->next;
		if (bucket == old)
			continue;
		__hlist_del(node);
		hlist_add_head(node, bucket);
	}
}

/*
 * Add a bucket, by a split. If there is no memory for it, the others become fuller, which does no
 * harm.
 */
static void keys_grow(struct keys *keys)
{
	u32 index = keys->nr_buckets;

	if (index == INT32_MAX || (index / PAGE_ENTRIES == keys->buckets.nr &&
				   pages_grow(&keys->buckets, sizeof(struct hlist_head))))
		return;
	keys->nr_buckets++;
	if (index > keys->mask)
		keys->mask = 2 * keys->mask + 1;
	bucket_split(keys, bucket_at(keys, index & (keys->mask >> 1)));
}

int twheel_keys_add(struct keys *keys, struct key *key)
{
	if (!keys->nr_buckets) {
		if (pages_grow(&keys->buckets, sizeof(struct hlist_head)))
			return -ENOMEM;
		keys->nr_buckets = PAGE_ENTRIES;
		keys->mask = PAGE_ENTRIES - 1;
	}
	if (++keys->nr > keys->nr_buckets)
		keys_grow(keys);
	hlist_add_head(&key->node, bucket_of(keys, key->hash));
	return 0;
}

struct key *twheel_keys_find(const struct keys *keys, u64 hash, const void *bytes, size_t len)
{
	struct hlist_node *node;

	if (!keys->nr)
		return NULL;
	hlist_for_each(node, bucket_of(keys, hash)) {
		struct key *key = container_of(node, struct key, node);

		if (key->hash == hash && key->len == len && !memcmp(key->bytes, bytes, len))
			return key;
	}
	return NULL;
}

void twheel_keys_del(struct keys *keys, struct key *key)
{
	__hlist_del(&key->node);
	keys->nr--;
}
