/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * <linux/twheel.h> as it was first, without its comments. It is never changed: the tests that are
 * compiled against it are the programs that were compiled then, and go on working.
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TWHEEL_ABI	1

struct twheel_setup {
	__s32	clockid;
	__u32	flags;
	__aligned_u64	tick_ns;
	__aligned_u64	slack_ns;
	__u32	max_timers;
	__u32	reserved;
};

struct twheel_info {
	__u32	abi;
	__s32	clockid;
	__aligned_u64	features;
	__aligned_u64	clocks;
	__aligned_u64	tick_ns;
	__aligned_u64	slack_ns;
	__aligned_u64	min_tick_ns;
	__u32	max_timers;
	__u32	op_size;
	__u32	event_size;
	__u32	nr_timers;
	__u32	nr_armed;
	__u32	nr_ready;
	__aligned_u64	mem_bytes;
	__aligned_u64	nr_expired;
	__aligned_u64	nr_wakeups;
	__aligned_u64	nr_moves;
	__aligned_u64	nr_deferred;
};

enum twheel_opcode {
	TWHEEL_OP_ADD = 1,
	TWHEEL_OP_MOD = 2,
	TWHEEL_OP_CANCEL = 3,
	TWHEEL_OP_QUERY = 4
};

enum twheel_state {
	TWHEEL_STATE_ARMED = 1,
	TWHEEL_STATE_READY = 2,
	TWHEEL_STATE_IDLE = 3
};

#define TWHEEL_F_ABS	0x01U
#define TWHEEL_F_KEEP	0x02U
#define TWHEEL_F_DELAY	0x04U
#define TWHEEL_F_CANCEL_ON_SET	0x10U
#define TWHEEL_F_PENDING	0x08U

struct twheel_op {
	__u32	op;
	__u32	flags;
	__aligned_u64	handle;
	__aligned_u64	user_data;
	__aligned_u64	expires_ns;
	__aligned_u64	interval_ns;
	__s32	res;
	__u32	reserved;
};

#define TWHEEL_BATCH_MAX	65536

struct twheel_batch {
	__aligned_u64	ops;
	__aligned_u64	nr;
	__u32	op_size;
	__u32	flags;
	__u32	nr_done;
	__u32	nr_failed;
};

#define TWHEEL_EV_MORE	0x01U
#define TWHEEL_EV_CLOCK_SET	0x02U

struct twheel_event {
	__aligned_u64	user_data;
	__aligned_u64	handle;
	__aligned_u64	expires_ns;
	__u32	count;
	__u32	flags;
};

#define TWHEEL_IOC_MAGIC	0xF5

#define TWHEEL_IOC_SETUP	_IOW(TWHEEL_IOC_MAGIC, 0x00, struct twheel_setup)
#define TWHEEL_IOC_INFO	_IOR(TWHEEL_IOC_MAGIC, 0x01, struct twheel_info)
#define TWHEEL_IOC_SUBMIT	_IOWR(TWHEEL_IOC_MAGIC, 0x02, struct twheel_batch)
#define TWHEEL_IOC_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0x03, struct twheel_op)
#define TWHEEL_IOC_MOD	_IOWR(TWHEEL_IOC_MAGIC, 0x04, struct twheel_op)
#define TWHEEL_IOC_CANCEL	_IOWR(TWHEEL_IOC_MAGIC, 0x05, struct twheel_op)
#define TWHEEL_IOC_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0x06, struct twheel_op)
#define TWHEEL_IOC_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0x07, struct twheel_batch)

#endif
