// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* The library's tables: ids, keys, and division by a tick. */
#include <stdlib.h>
#include <string.h>

#include "divide.h"
#include "ids.h"
#include "keys.h"
#include "tap.h"

enum { N = 100000 };

/* What is wrong in the present test. */
static unsigned int nr_wrong;

#define CHECK(cond)	check(cond, #cond, __LINE__)
#define CHECK_EQ(is, want) CHECK((is) == (want))

static void check(bool good, const char *what, int line)
{
	if (good)
		return;
	if (!nr_wrong++)
		diag("line %d: not so: %s", line, what);
}

/* splitmix64 */
static u64 rnd(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static u64 given[N];
static char things[N];

static void ids(void)
{
	struct ids ids = { 0 };
	u64 seed = 1;

	CHECK(!ids_find(&ids, 0) && !ids_find(&ids, ~0ULL));
	for (u32 i = 0; i < N; i++) {
		given[i] = ids_add(&ids, &things[i]);
		CHECK(given[i] && ids_find(&ids, given[i]) == &things[i]);
	}
	/* A freed entry is used again with another id, and the old id names nothing. */
	for (u32 i = 0; i < N; i++) {
		u32 which = rnd(&seed) % N;
		u64 old = given[which];

		ids_del(&ids, old);
		CHECK(!ids_find(&ids, old));
		given[which] = ids_add(&ids, &things[which]);
		CHECK(given[which] != old && !ids_find(&ids, old));
	}
	for (u32 i = 0; i < N; i++)
		CHECK(ids_find(&ids, given[i]) == &things[i]);
	CHECK_EQ(ids.nr, N);		/* entries are used again */
	ids_free(&ids);
}

/* When an entry has used up its generations, it is never used again. */
static void ids_once(void)
{
	struct ids ids = { 0 };
	u64 id = ids_add(&ids, things), next;

	ids_entry(&ids, (u32)id)->generation = UINT32_MAX - 1;
	id = (u64)(UINT32_MAX - 1) << 32 | (u32)id;
	CHECK(ids_find(&ids, id) == things);
	ids_del(&ids, id);
	next = ids_add(&ids, things + 1);
	CHECK_EQ(next, id + (1ULL << 32));
	ids_del(&ids, next);
	CHECK(!ids_find(&ids, next) && !ids_find(&ids, (u32)next));
	next = ids_add(&ids, things + 2);
	CHECK((u32)next != (u32)id);
	CHECK(ids_find(&ids, next) == things + 2);
	ids_free(&ids);
}

static struct key made[N];
static u32 bytes[N];

static u32 longest_bucket(const struct keys *keys)
{
	u32 longest = 0;

	for (u32 i = 0; i < keys->nr_buckets; i++) {
		struct hlist_head *bucket = pages_at(&keys->buckets, i, sizeof(*bucket));
		struct hlist_node *node;
		u32 n = 0;

		hlist_for_each(node, bucket)
			n++;
		if (n > longest)
			longest = n;
	}
	return longest;
}

static struct key *find(const struct keys *keys, u32 i)
{
	return twheel_keys_find(keys, twheel_keys_hash(keys, &i, sizeof(i)), &i, sizeof(i));
}

static void key_make(const struct keys *keys, u32 i)
{
	bytes[i] = i;
	made[i] = (struct key) { .bytes = &bytes[i], .len = sizeof(bytes[i]),
				 .hash = twheel_keys_hash(keys, &i, sizeof(i)) };
}

/* Each key that is added adds at most one bucket, and no bucket gets long. */
static void keys_grow_in_steps(void)
{
	struct keys keys = { 0 };

	twheel_keys_init(&keys);
	CHECK(keys.secret[0] != keys.secret[1]);
	CHECK(!find(&keys, 0));
	for (u32 i = 0; i < N; i++) {
		u32 before = keys.nr_buckets;

		key_make(&keys, i);
		CHECK(!twheel_keys_add(&keys, &made[i]));
		CHECK(!before || keys.nr_buckets <= before + 1);
	}
	CHECK(keys.nr_buckets >= N);
	CHECK(longest_bucket(&keys) < 16);
	for (u32 i = 0; i < N; i++)
		CHECK(find(&keys, i) == &made[i] && !find(&keys, N + i));
	for (u32 i = 0; i < N; i += 2)
		twheel_keys_del(&keys, &made[i]);
	for (u32 i = 0; i < N; i++)
		CHECK(find(&keys, i) == (i % 2 ? &made[i] : NULL));
	CHECK_EQ(keys.nr, N / 2);
	twheel_keys_exit(&keys);
}

/*
 * The hash of the bytes 0, 1, 2 ... of each length, with the secret that SipHash's authors use for
 * their test vectors. These values are SipHash-1-3 on a little-endian machine, computed by another
 * program.
 */
static void key_hashes(void)
{
	struct keys keys = { .secret = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	struct keys other = { .secret = { 0x0706050403020100, 0x0f0e0d0c0b0a0909 } };
	unsigned char text[64];
	u64 seen[ARRAY_SIZE(text)];

	for (u32 i = 0; i < ARRAY_SIZE(text); i++) {
		text[i] = (unsigned char)i;
		seen[i] = twheel_keys_hash(&keys, text, i);
		CHECK(seen[i] != twheel_keys_hash(&other, text, i));
		for (u32 j = 0; j < i; j++)
			CHECK(seen[j] != seen[i]);
	}
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		return;
	CHECK_EQ(seen[0], 0xabac0158050fc4dcULL);
	CHECK_EQ(seen[7], 0xd3927d989bb11140ULL);
	CHECK_EQ(seen[8], 0x369095118d299a8eULL);
	CHECK_EQ(seen[15], 0xd320d86d2a519956ULL);
}

static void division(void)
{
	static const u64 by[] = { 2, 3, 7, 1000, 1024, 99999, 100000, 131071, 131072, 131073,
				  333333, 1000000, 1000001, 999999937, 1000000000, 1ULL << 62 };
	u64 seed = 3;

	for (u32 i = 0; i < ARRAY_SIZE(by); i++) {
		struct divisor d = divisor(by[i]);

		for (u32 j = 0; j < 200000; j++) {
			u64 n = rnd(&seed) >> (1 + rnd(&seed) % 63);
			u64 near = n / by[i] * by[i];

			CHECK(divide(n, &d) == n / by[i]);
			CHECK(divide(near, &d) == near / by[i]);
			CHECK(!near || divide(near - 1, &d) == (near - 1) / by[i]);
		}
		CHECK(divide(INT64_MAX, &d) == INT64_MAX / by[i]);
	}
}

int main(void)
{
	static const struct {
		void		(*fn)(void);
		const char	*name;
	} tests[] = {
		{ ids, "an id names its entry, and nothing after that is deleted" },
		{ ids_once, "no id is given twice" },
		{ keys_grow_in_steps, "keys are found, and each key adds a bucket at most" },
		{ key_hashes, "the hash is SipHash-1-3, and keyed" },
		{ division, "division by a tick is exact" },
	};

	plan(ARRAY_SIZE(tests));
	for (u32 i = 0; i < ARRAY_SIZE(tests); i++) {
		nr_wrong = 0;
		tests[i].fn();
		ok(!nr_wrong, "%s", tests[i].name);
	}
	return done();
}
