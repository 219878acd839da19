/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The queue node of the wheel. It is not in wheel.h, so that code which embeds a timer need not
 * include the algorithm.
 */
#ifndef WHEEL_TYPES_H
#define WHEEL_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "wheel_user.h"
#endif

/**
 * struct wheel_timer - what the wheel knows of a timer, 32 bytes on 64-bit
 * @node:	link in a bucket; free for the owner while the timer is idle
 * @child:	instead of @node, in the tree of wheel_back.h: the subtrees of the earlier and of
 *		the later timers
 * @expires:	the tick in which it is due; valid while it is queued and after it has expired
 * @bucket:	the bucket that it is queued in; 0 (%WHEEL_NONE) while it is idle, so that
 *		zeroed memory is an idle timer
 * @flags:	the owner's; the wheel does not touch it
 * @data:	the owner's; the wheel does not touch it
 * @word:	@bucket, @flags and @data in one word
 */
struct wheel_timer {
	union {
		struct hlist_node	node;
		struct wheel_timer	*child[2];
	};
	u64			expires;
	union {
		struct {
			u16	bucket;
			u16	flags;
			u32	data;
		};
		u64		word;
	};
};

#endif
