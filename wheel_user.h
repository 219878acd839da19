/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What wheel.h needs in user space: the few things of the kernel that it uses. So the file that
 * runs in the kernel is also the file that is tested, fuzzed and measured natively. Do not include
 * anything else of the kernel here.
 */
#ifndef WHEEL_USER_H
#define WHEEL_USER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BITS_PER_LONG		(CHAR_BIT * (unsigned int)sizeof(long))
#define BITS_TO_LONGS(n)	(((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)
#define WRITE_ONCE(x, val)	(*(volatile __typeof__(x) *)&(x) = (val))
#define OPTIMIZER_HIDE_VAR(v)	__asm__("" : "+r" (v))
#define prefetch(p)		__builtin_prefetch(p)
#ifndef __always_inline		/* glibc defines it */
#define __always_inline		inline
#endif
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)

#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#endif

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (n->next)
		n->next->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}

static inline void __hlist_del(struct hlist_node *n)
{
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
}

#define hlist_for_each(pos, head) \
	for (pos = (head)->first; pos; pos = pos->next)

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline void __set_bit(unsigned int nr, unsigned long *map)
{
	map[nr / BITS_PER_LONG] |= 1UL << nr % BITS_PER_LONG;
}

static inline void __clear_bit(unsigned int nr, unsigned long *map)
{
	map[nr / BITS_PER_LONG] &= ~(1UL << nr % BITS_PER_LONG);
}

static inline bool test_bit(unsigned int nr, const unsigned long *map)
{
	return map[nr / BITS_PER_LONG] >> nr % BITS_PER_LONG & 1;
}

/* The position of the highest bit that is set in @x, from 1; 0 if @x is 0. */
static inline unsigned int fls64(u64 x)
{
	return x ? 64 - (unsigned int)__builtin_clzll(x) : 0;
}

/* The position of the lowest bit that is set in @x, from 0. @x is not 0. */
static inline unsigned int __ffs64(u64 x)
{
	return (unsigned int)__builtin_ctzll(x);
}

/* The first bit from @from on that is set, or @size if there is none below it. */
static inline unsigned long find_next_bit(const unsigned long *map,
					  unsigned long size, unsigned long from)
{
	unsigned long word, i = from / BITS_PER_LONG;

	if (from >= size)
		return size;
	word = map[i] & (~0UL << from % BITS_PER_LONG);
	while (!word) {
		if (++i * BITS_PER_LONG >= size)
			return size;
		word = map[i];
	}
	i = i * BITS_PER_LONG + (unsigned long)__builtin_ctzl(word);
	return i < size ? i : size;
}

#endif
