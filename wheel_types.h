/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The queue node of the wheel, apart from wheel.h so that whoever embeds a
 * timer need not see the algorithm.
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
 * @child:	in a tree instead, see wheel_back.h: the earlier ones below it, and the later
 * @expires:	the tick it is due; valid while queued, and after it expired
 * @bucket:	the bucket it is queued in, 0 (%WHEEL_NONE) while idle, so that
 *		zeroed memory is an idle timer
 * @flags:	the owner's, not touched by the wheel
 * @data:	the owner's, not touched by the wheel
 * @word:	the three at once
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
