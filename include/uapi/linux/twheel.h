/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * /dev/twheel: a file that holds millions of timers.
 *
 * Each open() makes a file with a timing wheel of its own. Timers are added, re-armed, cancelled
 * and asked after by ioctl(), one or thousands at a time; what has expired is read()
 * as an array of struct twheel_event, and poll() tells when there is some. A
 * timer costs 64 bytes of kernel memory and no descriptor. Many at a time are added through
 * io_uring too, see struct twheel_uring.
 *
 * Promises
 *   - A timer fires in the tick ceil(deadline / tick) of its clock: never before
 *     its deadline, and less than a tick plus the softirq latency after it. That is
 *     later if the timers of the user who opened the file want more of a CPU than their
 *     part, see Limits, and by as much as the timer's tolerance allows, see Tolerance.
 *   - Every armed timer gives exactly one event, or was cancelled or drained by a call
 *     that said so. Events cannot be dropped: the timer itself is the queue entry.
 *   - After a CANCEL that gave 0 or 1 no event of that timer is ever read.
 *   - Events are read in the order of their ticks. In one tick there is no order. Of several
 *     readers at a time each gets some of them, in that order.
 *   - If CLOCK_REALTIME is set, a timer fires when the clock shows its deadline all the same: at
 *     once if that is over now, and later if the clock was set back.
 *
 * The life of a handle
 *
 *            ADD                  tick reached             read()
 *   (free) -------> ARMED ----------------------> READY ----------> (free)
 *                   ^   ^                          |  |
 *                   |   |   MOD (drops the event), |  | read() of a KEEP timer
 *                   |   |   read() of a periodic   |  |
 *                   |   +--------------------------+  v
 *                   +------------------------------- IDLE
 *                           MOD
 *
 *   From any of the three MOD leads to ARMED, and CANCEL to (free). DRAIN takes all that
 *   are ARMED to (free), and close() all there are. QUERY tells the state and changes
 *   nothing. While read() stores the event of a timer this is READY to QUERY, EALREADY to
 *   CANCEL, and to MOD if no more may come after that event.
 *
 * Files
 *   After fork() or dup(), or sent to another process, a descriptor is of the same
 *   file: the same timers, of which each event is read once. The timers are gone when
 *   the last descriptor is closed.
 *
 * Time
 *   All times are in ns. A time of the clock is what clock_gettime() tells the process
 *   that makes the call: in a time namespace that is the namespace's, at each call, for
 *   times given and told alike, whoever opened the file. CLOCK_REALTIME is the same in all.
 *   A delay of a file on CLOCK_REALTIME is added to the time when it is given, and that is the
 *   deadline: if the clock is set it comes sooner or later. Delays that shall not do that belong
 *   to a file on another clock.
 *
 * Tolerance
 *   A timer is exact, unless whoever arms it says how late it may be: its tolerance. Then it may
 *   fire in any tick from ceil(deadline / tick) to floor((deadline + tolerance) / tick); if
 *   there is none between these, in the first. So it is never early, and at its worst later than an
 *   exact timer by its tolerance. Timers with tolerances meet in ticks of the clock that many
 *   share, whenever, in whatever file and by whomever they were armed. That saves interrupts and
 *   wake-ups of who reads the events, and each timer costs less to expire: with an eighth of
 *   the delay most of both, with a thirtieth half. Most timeouts can afford that.
 *   At least the first three decimal digits of a tolerance are kept, and what is behind them counts
 *   as 0: no timer is later for it. It may be larger than the delay or the period. It is that of
 *   each period by itself, so that a periodic timer keeps its phase, and it is not passed on by
 *   MOD, which gives the timer another.
 *
 * Limits
 *   A user may have as many files open as the administrator allows, and a file holds at
 *   most twheel_info.max_timers. All files that a user has opened hold at most as many
 *   timers as the administrator allows; these are counted in blocks of 64, and a file
 *   counts for the most that it ever held. A file takes
 *   less than 1 KiB until its first timer is added, some 11 KiB with up to 64 of them, and
 *   some 63 KiB and what its timers take once it has held more. Memory is charged to the
 *   memory cgroup of the task whose call needs it; if that cgroup is full, the call fails
 *   with ENOMEM.
 *   The timers of all users may take half of a CPU. When they have, a user who has taken
 *   more than an equal part of that waits, whatever the number of their files.
 *   Who may open the device is what the mode of its node says. SETUP, SUBMIT, ADD, MOD,
 *   CANCEL and DRAIN need a descriptor that is open for writing, read() one that is open
 *   for reading; INFO, QUERY and poll() work with any. A command of io_uring needs what its ioctl
 *   does.
 *
 * Growth
 *   The size of a structure is in its ioctl number and nowhere else. A longer one
 *   from a newer program is accepted if the part not known here is all zero, and
 *   is E2BIG if not; one that is shorter than the first version is EINVAL. What an
 *   older kernel cannot fill in, it sets to zero; INFO is not looked at, only filled
 *   in. Unknown flags and reserved fields that are not zero are EINVAL. So a program
 *   finds out what a kernel can do by trying; twheel_info.features is for what cannot
 *   be tried. What a structure has not that is shorter than the kernel's is 0 where it is given,
 *   and left out where it is told: a program that knows of no tolerance arms exact timers.
 *
 * Errors, with one meaning each
 *   EINVAL     a size, operation, flag, clock, time, tolerance or reserved field that is
 *              not allowed; room for not even one event or timer
 *   E2BIG      a structure longer than this kernel knows, with something in it
 *   EFAULT     memory that cannot be read or written
 *   EPERM      an alarm clock, without CAP_WAKE_ALARM
 *   EBADF      a descriptor that is not open for writing, or of read() for reading
 *   ENOTTY     no such ioctl
 *   ENOENT     no such timer: never was, cancelled, drained, or its event has been read
 *   EALREADY   an event of it is being read at this moment. There will be no other of a
 *              one-shot timer; of one that goes on, try again. MOD gives it where that
 *              event is the last, without TWHEEL_EV_MORE, or would have to come before
 *              one that is the last then: it arms a KEEP or periodic timer anew as one
 *   EBUSY      a timer has been added already
 *   EDQUOT     the limit on timers is reached: the file's, or that of the user who
 *              opened it. Of open() the limit on files of the user
 *   ENOMEM     no memory for that, the memory cgroup's limit included
 *   EAGAIN     nothing is ready, and the file or call is non-blocking
 *   EINTR      a signal came first, or a command of io_uring was cancelled
 *   EOPNOTSUPP no such command of io_uring
 * A call that fails has changed nothing. There is one exception: memory that another thread
 * unmaps or protects in the middle of a SUBMIT or DRAIN; see struct twheel_batch. Which can
 * give which:
 *
 *            open SETUP INFO SUBMIT ADD MOD CANCEL QUERY DRAIN other read io_uring
 *   EINVAL     .    x     x     x    x   x     x     x     x     .    x    x
 *   E2BIG      .    x     .     x    x   x     x     x     x     .    .    .
 *   EFAULT     .    x     x     x    x   x     x     x     x     .    x    x
 *   EPERM      .    x     .     .    .   .     .     .     .     .    .    .
 *   EBADF      .    x     .     x    x   x     x     .     x     .    x    x
 *   ENOTTY     .    .     .     .    .   .     .     .     .     x    .    .
 *   ENOENT     .    .     .     .    .   x     x     x     .     .    .    .
 *   EALREADY   .    .     .     .    .   x     x     .     .     .    .    .
 *   EBUSY      .    x     .     .    .   .     .     .     .     .    .    .
 *   EDQUOT     x    .     .     .    x   .     .     .     .     .    .    .
 *   ENOMEM     x    .     .     x    x   .     .     .     .     .    .    x
 *   EAGAIN     .    .     .     .    .   .     .     .     .     .    x    .
 *   EINTR      .    x     .     x    x   x     x     x     x     .    x    x
 *   EOPNOTSUPP .    .     .     .    .   .     .     .     .     .    .    x
 *
 * An operation in a SUBMIT has for its res what its own ioctl would give, but for EFAULT
 * and EINTR: these end the SUBMIT, see struct twheel_batch. "other" is any other ioctl, "io_uring"
 * what struct twheel_uring is for.
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The version of this interface; see twheel_info.abi. */
#define TWHEEL_ABI		1

/**
 * struct twheel_setup - TWHEEL_IOC_SETUP: choose the clock and the tick
 * @clockid:	CLOCK_MONOTONIC (the default), CLOCK_BOOTTIME, or CLOCK_REALTIME, which may be
 *		set. CLOCK_BOOTTIME_ALARM and CLOCK_REALTIME_ALARM are the same and wake the machine
 *		if it is suspended; they take CAP_WAKE_ALARM
 * @flags:	must be 0
 * @tick_ns:	the tick in ns, 100 000 (or what the administrator set) to
 *		1 000 000 000; 0 stands for 1 000 000, or the smallest if that is more
 * @slack_ns:	how much later than its tick an expiry may be, to share an
 *		interrupt with others; less than a second
 * @max_timers:	the most timers the file may hold, up to the administrator's
 *		limit, which 0 stands for
 * @reserved:	must be 0
 *
 * Only before the first timer is added: EBUSY after it. An ADD that was EINVAL, EDQUOT or
 * ENOMEM does not count.
 */
struct twheel_setup {
	__s32		clockid;
	__u32		flags;
	__aligned_u64	tick_ns;
	__aligned_u64	slack_ns;
	__u32		max_timers;
	__u32		reserved;
};

/**
 * struct twheel_info - TWHEEL_IOC_INFO: what the file is and holds
 * @abi:	TWHEEL_ABI of the kernel
 * @clockid:	the clock of the file
 * @features:	TWHEEL_FEATURE_* of the kernel
 * @clocks:	a bit 1 << clockid for each clock that SETUP takes
 * @tick_ns:	the tick of the file
 * @slack_ns:	the slack of the file
 * @min_tick_ns: the smallest tick that SETUP takes
 * @max_timers:	the most timers the file may hold
 * @op_size:	sizeof(struct twheel_op) of the kernel
 * @event_size:	sizeof(struct twheel_event) of the kernel: read() gives these
 * @nr_timers:	handles alive: armed, ready or idle
 * @nr_armed:	timers that will fire
 * @nr_ready:	events waiting to be read
 * @mem_bytes:	kernel memory of the file, its wheel included
 * @nr_expired:	timers that have fired so far
 * @nr_wakeups:	timer interrupts taken for the file so far
 * @nr_moves:	timers moved from one bucket to a finer one so far
 * @nr_deferred: times that work was put off to let other tasks run
 */
struct twheel_info {
	__u32		abi;
	__s32		clockid;
	__aligned_u64	features;
	__aligned_u64	clocks;
	__aligned_u64	tick_ns;
	__aligned_u64	slack_ns;
	__aligned_u64	min_tick_ns;
	__u32		max_timers;
	__u32		op_size;
	__u32		event_size;
	__u32		nr_timers;
	__u32		nr_armed;
	__u32		nr_ready;
	__aligned_u64	mem_bytes;
	__aligned_u64	nr_expired;
	__aligned_u64	nr_wakeups;
	__aligned_u64	nr_moves;
	__aligned_u64	nr_deferred;
};

/*
 * twheel_info.features: there are none in version 1, since all of it can be tried: an
 * unknown ioctl is ENOTTY, an unknown operation or flag EINVAL.
 */

/**
 * enum twheel_opcode - what a struct twheel_op asks for
 * @TWHEEL_OP_ADD:	arm a new timer. In: @flags, @user_data, @expires_ns,
 *			@interval_ns, @tolerance_ns; @handle must be 0. Out: @handle
 * @TWHEEL_OP_MOD:	arm an existing timer anew, whatever its state but for EALREADY; an
 *			event that was not read is dropped, one that is being read counts as
 *			read. In: @handle, @flags,
 *			@expires_ns, @interval_ns, @tolerance_ns; @user_data must be 0. Out:
 *			@user_data; res 1 if it was armed, 0 if not
 * @TWHEEL_OP_CANCEL:	free a timer, whatever its state but for EALREADY; an event
 *			that was not read is dropped. In: @handle; all else must be 0. Out:
 *			@user_data; res 1 if it was armed, 0 if not
 * @TWHEEL_OP_QUERY:	tell the state of a timer, and change nothing. In: @handle, @flags
 *			(TWHEEL_F_ABS or 0); all else must be 0. Out: @user_data,
 *			@expires_ns, the time left until its deadline, or 0 if that is
 *			over, or with TWHEEL_F_ABS the deadline; @interval_ns,
 *			@tolerance_ns, of which three digits or more are as they were given; res an
 *			enum twheel_state
 */
enum twheel_opcode {
	TWHEEL_OP_ADD		= 1,
	TWHEEL_OP_MOD		= 2,
	TWHEEL_OP_CANCEL	= 3,
	TWHEEL_OP_QUERY		= 4
};

/**
 * enum twheel_state - what QUERY gives; see the drawing above
 * @TWHEEL_STATE_ARMED:	it will fire. Its deadline may be over, by less than a tick or by its
 *			tolerance, whichever is more
 * @TWHEEL_STATE_READY:	its event waits to be read, or is being read at this moment.
 *			Its deadline is that event's
 * @TWHEEL_STATE_IDLE:	it waits to be armed again. Its deadline was that of the event
 *			that was read
 */
enum twheel_state {
	TWHEEL_STATE_ARMED	= 1,
	TWHEEL_STATE_READY	= 2,
	TWHEEL_STATE_IDLE	= 3
};

/* @expires_ns is a time of the file's clock, not a delay from now; also where it is told. */
#define TWHEEL_F_ABS		(1U << 0)
/* The handle outlives its event, to be armed again by MOD: one for life. */
#define TWHEEL_F_KEEP		(1U << 1)
/* The next period begins when the event is read, not when it was due. */
#define TWHEEL_F_DELAY		(1U << 2)
/*
 * CLOCK_REALTIME and CLOCK_REALTIME_ALARM only, else EINVAL: an event comes as soon as the clock
 * is set, or the machine resumes; see TWHEEL_EV_CLOCK_SET. If the clock was set a moment ago, a
 * call that asks for this waits until those who asked before have been told.
 */
#define TWHEEL_F_CANCEL_ON_SET	(1U << 4)
/* MOD only: ENOENT for a timer that is not armed, instead of arming it. */
#define TWHEEL_F_PENDING	(1U << 3)

/**
 * struct twheel_op - one operation, and its result
 * @op:		enum twheel_opcode; may be 0 where the ioctl says it already
 * @flags:	TWHEEL_F_*
 * @handle:	the timer. Given by the kernel, never 0, not used again for
 *		another timer before 2^32 uses of its place
 * @user_data:	the caller's own; comes back with every event
 * @expires_ns:	delay from now, or with TWHEEL_F_ABS time of the clock; at most
 *		2^63 - 1. A time that is over means the next tick
 * @interval_ns: 0, or the period after the first expiry; at least a tick, at
 *		most 2^63 - 1
 * @res:	must be 0. Out: what the operation says, or a negative errno
 * @reserved:	must be 0
 * @tolerance_ns: 0, or how much later than each deadline the timer may fire, see Tolerance;
 *		together with @expires_ns at most 2^63 - 1. Not in the first version of this
 *		structure, which has TWHEEL_OP_SIZE_VER0 bytes
 *
 * All of it has to be writable memory. It is written back as it was, but for what is said
 * to be out, so nobody else should change it meanwhile; of an operation that fails nothing is
 * but @res, which a call of one operation returns instead.
 *
 * A periodic timer has at most one event waiting. The periods that pass until it
 * is read are counted in that event, and it is armed again when it is read: by
 * default so that the phase is kept.
 */
struct twheel_op {
	__u32		op;
	__u32		flags;
	__aligned_u64	handle;
	__aligned_u64	user_data;
	__aligned_u64	expires_ns;
	__aligned_u64	interval_ns;
	__s32		res;
	__u32		reserved;
	__aligned_u64	tolerance_ns;
};

/* sizeof(struct twheel_op) of the first version: all but @tolerance_ns. */
#define TWHEEL_OP_SIZE_VER0	48

/* The most operations one SUBMIT takes, and one DRAIN gives. */
#define TWHEEL_BATCH_MAX	65536

/**
 * struct twheel_batch - TWHEEL_IOC_SUBMIT and _DRAIN: many operations in one call
 * @ops:	address of an array of struct twheel_op
 * @nr:		how many, at most TWHEEL_BATCH_MAX; for DRAIN at least 1
 * @op_size:	distance from one to the next: sizeof(struct twheel_op), which may
 *		be longer than the kernel's, as any structure; a multiple of 8, at most 4096
 * @flags:	SUBMIT: must be 0. DRAIN: TWHEEL_F_ABS or 0
 * @nr_done:	must be 0. Out: how many have a result in their @res, or were drained
 * @nr_failed:	must be 0. Out: how many of these are negative
 *
 * SUBMIT does the operations in order; one that fails does not stop the others. The
 * call fails only if nothing was done. It ends early, with @nr_done < @nr, on a signal
 * and on memory that cannot be read or written; what is counted in @nr_done stands, and
 * nothing after it was done.
 *
 * That the results can be stored is found out before anything is done, of 64 operations at
 * a time. If another thread unmaps or protects that memory between then and when they are
 * stored, of these 64 what is not counted in @nr_done stands so: an ADD is undone, though
 * an event of it may have been read; a MOD or CANCEL may have been done; a timer that was
 * being drained stays armed. If it is this structure that went away the call is EFAULT, and
 * what was done stands. A call of one operation does it and stores its result, or neither.
 *
 * DRAIN goes the other way: the array is filled in. It disarms the timers that are
 * ARMED, frees their handles, and gives each back as the operation that would add it
 * again: @op TWHEEL_OP_ADD; @flags as it was armed with, and TWHEEL_F_ABS if DRAIN was
 * asked for that; @handle the old handle, that names nothing any more; @user_data;
 * @expires_ns the time left, 0 if its deadline is over, or with TWHEEL_F_ABS the
 * deadline; @interval_ns; @tolerance_ns as QUERY tells it; all else 0, what lies between one and
 * the next included. To
 * add them to another file set @handle to 0 and SUBMIT the array. They come in no
 * order. Events that are ready stay to be read, and idle handles stay. So a periodic
 * timer whose event is ready goes on when that is read: CANCEL it, or DRAIN after it.
 *
 * A DRAIN goes on where the last one ended: call it until it returns 0 with @nr_done 0.
 * Then nothing is armed, but for what others have added, and what they have armed by
 * reading, meanwhile. A signal or memory that cannot be written ends it early, as
 * SUBMIT. A timer that could not be stored is not lost: it stays armed, with its handle
 * and its deadline. So does one of which an event is being read, though MOD has armed it
 * anew meanwhile. The array beyond @nr_done may have been written to.
 */
struct twheel_batch {
	__aligned_u64	ops;
	__aligned_u64	nr;
	__u32		op_size;
	__u32		flags;
	__u32		nr_done;
	__u32		nr_failed;
};

/*
 * There will be more events of this handle, or it can be armed again. After an event without
 * this there is none, whatever was done meanwhile: it is safe to forget the handle.
 */
#define TWHEEL_EV_MORE		(1U << 0)

/*
 * Since the timer was armed, with TWHEEL_F_CANCEL_ON_SET, the clock was set. If its time has not
 * come, count is 0. In any case it is as if the timer had fired: a one-shot timer is gone, or with
 * KEEP idle. One that is periodic goes on when this is read, with the deadline it had if count
 * is 0.
 */
#define TWHEEL_EV_CLOCK_SET	(1U << 1)

/**
 * struct twheel_event - what read() gives an array of
 * @user_data:	as in the operation that added the timer
 * @handle:	the timer
 * @expires_ns:	the deadline that was asked for: of a periodic timer, of the
 *		first period counted here
 * @count:	1, or how many periods have passed; stops at 2^32 - 1. 0 only with
 *		TWHEEL_EV_CLOCK_SET
 * @flags:	TWHEEL_EV_*
 *
 * read() gives whole events only, as many as are ready and fit, and waits for the
 * first one unless the file is non-blocking. What could not be stored in the
 * caller's memory is not lost: it is ready again, in front, but in no order where several
 * readers could not store. Readers do not wait for each other, however long storing takes:
 * EAGAIN means that poll() would not have said POLLIN.
 */
struct twheel_event {
	__aligned_u64	user_data;
	__aligned_u64	handle;
	__aligned_u64	expires_ns;
	__u32		count;
	__u32		flags;
};

#define TWHEEL_IOC_MAGIC	0xF5

#define TWHEEL_IOC_SETUP	_IOW(TWHEEL_IOC_MAGIC, 0x00, struct twheel_setup)
#define TWHEEL_IOC_INFO		_IOR(TWHEEL_IOC_MAGIC, 0x01, struct twheel_info)
#define TWHEEL_IOC_SUBMIT	_IOWR(TWHEEL_IOC_MAGIC, 0x02, struct twheel_batch)
/* One operation; the call returns what would be its res. */
#define TWHEEL_IOC_ADD		_IOWR(TWHEEL_IOC_MAGIC, 0x03, struct twheel_op)
#define TWHEEL_IOC_MOD		_IOWR(TWHEEL_IOC_MAGIC, 0x04, struct twheel_op)
#define TWHEEL_IOC_CANCEL	_IOWR(TWHEEL_IOC_MAGIC, 0x05, struct twheel_op)
#define TWHEEL_IOC_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0x06, struct twheel_op)
/* Disarm everything, and get it back. */
#define TWHEEL_IOC_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0x07, struct twheel_batch)

/**
 * struct twheel_uring - SUBMIT or DRAIN as a command of io_uring
 * @ops:	as in struct twheel_batch
 * @nr:		the same
 * @op_size:	the same
 * @flags:	the same
 *
 * The SQE: @opcode is IORING_OP_URING_CMD, @fd the file, @cmd_op TWHEEL_URING_SUBMIT or
 * TWHEEL_URING_DRAIN; at @cmd, byte 48, is this structure, and what a longer SQE has behind it is
 * not looked at. All else of io_uring's is as with any request. @uring_cmd_flags must be 0.
 *
 * The CQE: @res is what would be nr_done, or a negative errno if nothing was done. It is for the
 * operations themselves to say which of them failed, in their @res: to io_uring that is a success,
 * and does not break a chain of links.
 *
 * It is the ioctl in all else. The array has to stay until the CQE comes. If another call on the
 * file is in progress a worker of io_uring's waits for that one, and io_uring_enter() does not; of
 * requests that are not linked another may so be done before. To cancel a request that waits gives
 * EINTR or ECANCELED, and nothing was done; one in progress ends early, as by a signal. Events are
 * read with IORING_OP_READ, or IORING_OP_READ_MULTISHOT where Linux has it.
 */
struct twheel_uring {
	__aligned_u64	ops;
	__u32		nr;
	__u16		op_size;
	__u16		flags;
};

/* Values of cmd_op. */
#define TWHEEL_URING_SUBMIT	_IOWR(TWHEEL_IOC_MAGIC, 0x02, struct twheel_uring)
#define TWHEEL_URING_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0x07, struct twheel_uring)

#endif /* _UAPI_LINUX_TWHEEL_H */
