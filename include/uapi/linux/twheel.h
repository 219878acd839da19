/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * /dev/twheel: a file that holds millions of timers.
 *
 * Each open() makes a file with a timing wheel of its own. ioctl() adds, re-arms, cancels and
 * queries timers, one or thousands at a time. When a timer expires, it has an event: read() returns
 * events as an array of struct twheel_event, and poll() says when there are any. A timer costs 64
 * bytes of kernel memory and no descriptor. io_uring can do many operations at a time too, see
 * struct twheel_uring.
 *
 * Promises
 *   - A timer fires in the tick ceil(deadline / tick) of its clock: never before its deadline,
 *     unless it asked for that (TWHEEL_F_CANCEL_ON_SET), and less than a tick plus the softirq
 *     latency after it. It may be later for three reasons: the timers of the user who opened the
 *     file want more than their share of a CPU (see Limits); the timer has a tolerance (see
 *     Tolerance); or the file has a slack (@slack_ns of SETUP).
 *   - Each time that a timer is armed, it gives exactly one event, unless a CANCEL, MOD or DRAIN
 *     that succeeds comes first. No queue can overflow, because the timer itself is the queue
 *     entry.
 *   - After a CANCEL that returned 0 or 1, no event of that timer is ever read.
 *   - Events are read in the order of their ticks. Events of one tick come in any order. If several
 *     readers read at a time, each gets some of the events, in the order of ticks. There are two
 *     exceptions: what several readers at a time could not store, see struct twheel_event; and
 *     events of TWHEEL_F_CANCEL_ON_SET, which come when the clock is set.
 *   - If CLOCK_REALTIME is set, a timer still fires when the clock shows its deadline: at once if
 *     the clock was set forward past it, and later than planned if it was set back. Again,
 *     TWHEEL_F_CANCEL_ON_SET asks for something else.
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
 *   MOD leads from any of the three states to ARMED, and CANCEL to (free). DRAIN leads from ARMED
 *   to (free), and close() from any state to (free), for all timers. QUERY returns the state and
 *   changes nothing. While a read() is storing an event of a timer, QUERY returns READY, or the new
 *   state if a MOD has re-armed the timer since; CANCEL fails with EALREADY, and MOD fails with
 *   EALREADY in some cases: see Errors.
 *
 * Files
 *   A descriptor that is inherited by fork(), copied by dup() or sent to another process refers to
 *   the same file and so to the same timers: each event is read once. The timers are freed when the
 *   last descriptor is closed.
 *
 * Time
 *   All times are in ns. A time of the clock, whether a call passes or returns it, is what
 *   clock_gettime() returns to the process that makes the call. So in a time namespace it is the
 *   time of the caller's namespace, at each call, whoever opened the file. CLOCK_REALTIME is the
 *   same in all namespaces. If a call gives a delay for a timer of a file on CLOCK_REALTIME, the
 *   kernel adds the delay to the present time, and the sum is the deadline. If the clock is set
 *   after that, the timer fires after a shorter or longer time than the delay. If a delay must not
 *   depend on that, use a file on another clock.
 *
 * Tolerance
 *   A timer is exact, unless the call that arms it gives a tolerance: how late the timer may be. A
 *   timer with a tolerance may fire in any tick from ceil(deadline / tick) to
 *   floor((deadline + tolerance) / tick). If the second of these ticks is before the first, the
 *   timer fires in the first. So such a timer is never early, and it fires at most its tolerance
 *   later than an exact timer would. Timers with tolerances share certain ticks of the clock, no
 *   matter when, in which file and by which process they were armed. That saves interrupts and
 *   wake-ups of readers, and makes each timer cheaper to expire. A tolerance of a thirtieth of the
 *   delay saves most of what can be saved, and most timeouts can afford that.
 *   The kernel keeps at least the first three decimal digits of a tolerance, and rounds the others
 *   down to 0: no timer is later than its tolerance allows. A tolerance may be larger than the
 *   delay or the period. It applies to each period by itself, so a periodic timer keeps its phase.
 *   MOD sets the tolerance anew.
 *
 * Limits
 *   A user is the real uid of the process that opened the file, whoever uses the file later.
 *   A user may have as many files open as the administrator allows, and a file holds at most
 *   twheel_info.max_timers timers. All files that a user has opened hold at most as many timers as
 *   the administrator allows; these are counted in blocks of 64, and each file counts for the most
 *   that it has ever held. A file takes less than 1 KiB until its first timer is added, some 11 KiB
 *   with up to 64 timers, some 83 KiB with up to 128, and 4 KiB more for each further 64. It keeps
 *   this memory until it is closed. Memory is charged to the memory cgroup of the task whose call
 *   caused the allocation; if that cgroup is full, the call fails with ENOMEM.
 *   The timers of all users together may take half of each CPU. When that is used up, a user who
 *   has taken more than an equal share of it waits, however many files the user has.
 *   The mode of the device node says who may open it. SETUP, SUBMIT, ADD, MOD, CANCEL and DRAIN
 *   need a descriptor that is open for writing, and read() needs one that is open for reading;
 *   INFO, QUERY and poll() work with any. A command of io_uring needs what its ioctl needs.
 *
 * Growth
 *   The number of an ioctl contains the size of its structure. @op_size of a batch is the size of
 *   the batch's operations. The structure of a newer program may be longer than the kernel's. If
 *   the part that the kernel does not know is all zero, the kernel accepts the structure; otherwise
 *   the call, or that operation of the batch, fails with E2BIG. A structure that is shorter than in
 *   the first version fails with EINVAL. If a structure is shorter than the kernel's, but not
 *   shorter than in the first version, the missing fields count as 0 where the kernel reads the
 *   structure, and are left out where the kernel writes it: a program that knows of no tolerance
 *   arms exact timers. If the kernel is older than the program, it sets the fields that it does not
 *   know to zero. INFO is only filled in, never read. Unknown flags, and reserved fields that are
 *   not zero, fail with EINVAL. So a program finds out what a kernel can do by trying;
 *   twheel_info.features is for what cannot be tried.
 *
 * Errors. If both ENOENT and EALREADY apply, it is ENOENT
 *   EINVAL     a size, operation, flag, clock, time, tolerance or reserved field that is
 *              not allowed; or there is not room for even one event or timer
 *   E2BIG      a structure is longer than this kernel knows, and the rest is not 0
 *   EFAULT     memory that cannot be read or written
 *   EPERM      an alarm clock, without CAP_WAKE_ALARM
 *   EBADF      a descriptor that is not open for writing, or for read() not open for reading
 *   ENOTTY     no such ioctl
 *   ENOENT     no such timer: it never existed, was cancelled or drained, or its event has been
 *              read. From MOD with TWHEEL_F_PENDING also: the timer is not armed
 *   EALREADY   a read() is storing an event of the timer at this moment. If the timer has neither
 *              KEEP nor a period, it will have no other event; otherwise try again.
 *              CANCEL always fails then. MOD fails in three cases: the event is the timer's last,
 *              without TWHEEL_EV_MORE; or MOD would arm a KEEP or periodic timer as a plain one,
 *              whose next event would be its last and must not overtake the event that is being
 *              stored; or 65 535 other reads are storing earlier events of the timer
 *   EBUSY      SETUP comes too late: a timer has been added already
 *   EDQUOT     the limit on timers is reached: the file's, or that of the user who
 *              opened it. From open(): the limit on the user's files
 *   ENOMEM     no memory, or the memory cgroup's limit is reached
 *   EAGAIN     nothing is ready, and the file or call is non-blocking
 *   EINTR      a signal came first, or a command of io_uring was cancelled. If the handler of the
 *              signal has SA_RESTART, the call begins again instead
 *   EOPNOTSUPP no such command of io_uring
 * A call of MOD, CANCEL or QUERY that succeeds returns the result, see enum twheel_opcode; read()
 * returns a number of bytes, and any other call 0.
 *
 * A call that fails has changed nothing. There is one exception: another thread unmaps or protects
 * the memory in the middle of a SUBMIT or DRAIN; see struct twheel_batch. Which call can fail with
 * which error:
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
 * The res of an operation in a SUBMIT is what its own ioctl would return, except for EFAULT and
 * EINTR: these end the SUBMIT, see struct twheel_batch. "other" is any other ioctl, "io_uring" a
 * command with struct twheel_uring.
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The version of this interface; see twheel_info.abi. */
#define TWHEEL_ABI		1

/**
 * struct twheel_setup - TWHEEL_IOC_SETUP: choose the clock and the tick
 * @clockid:	CLOCK_MONOTONIC, CLOCK_BOOTTIME, or CLOCK_REALTIME, which may be set. 0 is
 *		CLOCK_REALTIME; a file without SETUP is on CLOCK_MONOTONIC. CLOCK_BOOTTIME_ALARM
 *		shows the time of CLOCK_BOOTTIME, and CLOCK_REALTIME_ALARM that of CLOCK_REALTIME.
 *		These two also wake the machine if it is suspended, and need CAP_WAKE_ALARM
 * @flags:	must be 0
 * @tick_ns:	the tick in ns, from twheel_info.min_tick_ns to 1 000 000 000. 0 stands for
 *		1 000 000, or for min_tick_ns if that is more
 * @slack_ns:	how much later than its tick an expiry may be, to share an
 *		interrupt with others; less than a second
 * @max_timers:	the most timers the file may hold, up to the administrator's
 *		limit, which 0 stands for
 * @reserved:	must be 0
 *
 * SETUP must come before the first timer is added; after that it fails with EBUSY. An ADD that
 * failed with EINVAL, EDQUOT or ENOMEM does not count. One that failed with EFAULT may count.
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
 * @event_size:	sizeof(struct twheel_event) of the kernel: read() returns these
 * @nr_timers:	handles in use: armed, ready or idle
 * @nr_armed:	timers that will fire
 * @nr_ready:	events waiting to be read
 * @mem_bytes:	kernel memory of the file, its wheel included
 * @nr_expired:	timers that have fired so far
 * @nr_wakeups:	how often a timer interrupt has served the file so far
 * @nr_moves:	moves of timers so far: from one bucket of the wheel to another, or between a bucket
 *		and the tree, which holds timers that are in no bucket
 * @nr_deferred: how often timers of the file were due, and had to wait because the file's user
 *		has to share the CPU
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
 * @TWHEEL_OP_MOD:	re-arm an existing timer, whatever its state, with two exceptions: see
 *			EALREADY and TWHEEL_F_PENDING. An event that was not read is dropped; one
 *			that is being read counts as read. The deadline, period, tolerance and flags
 *			that are given replace the old ones: without TWHEEL_F_KEEP a KEEP timer
 *			becomes a plain one. The timer's @user_data stays. In: @handle, @flags,
 *			@expires_ns, @interval_ns, @tolerance_ns; @user_data must be 0. Out:
 *			@user_data; res is 1 if the timer was ARMED before, 0 if it was not
 * @TWHEEL_OP_CANCEL:	free a timer, whatever its state, but not while a read() is storing its
 *			event, see EALREADY. An event that was not read is dropped. In: @handle; all
 *			else must be 0. Out: @user_data; res is 1 if the timer was ARMED before, 0
 *			if it was not
 * @TWHEEL_OP_QUERY:	return the state of a timer, and change nothing. In: @handle, @flags
 *			(TWHEEL_F_ABS or 0); all else must be 0. Out: @user_data;
 *			@expires_ns, the time left until the deadline, or 0 if that has passed; with
 *			TWHEEL_F_ABS the deadline itself; @interval_ns; @tolerance_ns, of which at
 *			least the first three digits are as they were given. If the sum of
 *			@expires_ns and @tolerance_ns would exceed 2^63 - 1, @tolerance_ns is
 *			reduced, so that ADD accepts both. res is an enum twheel_state
 */
enum twheel_opcode {
	TWHEEL_OP_ADD		= 1,
	TWHEEL_OP_MOD		= 2,
	TWHEEL_OP_CANCEL	= 3,
	TWHEEL_OP_QUERY		= 4
};

/**
 * enum twheel_state - what QUERY returns; see the drawing above
 * @TWHEEL_STATE_ARMED:	the timer will fire. Its deadline may have passed already; see Promises
 *			above for how late a timer may be
 * @TWHEEL_STATE_READY:	the timer's event waits to be read, or is being read at this moment. The
 *			deadline that QUERY returns is that of the event
 * @TWHEEL_STATE_IDLE:	the timer waits to be armed again. The deadline that QUERY returns is that
 *			of the event that was read
 */
enum twheel_state {
	TWHEEL_STATE_ARMED	= 1,
	TWHEEL_STATE_READY	= 2,
	TWHEEL_STATE_IDLE	= 3
};

/* @expires_ns, given or returned, is a time of the file's clock, not a delay from now. */
#define TWHEEL_F_ABS		(1U << 0)
/* The handle outlives its event, so that MOD can arm the timer again. */
#define TWHEEL_F_KEEP		(1U << 1)
/*
 * The next deadline is one period after the event was read, and not one period after the last
 * deadline. Only with a period, else EINVAL.
 */
#define TWHEEL_F_DELAY		(1U << 2)
/*
 * CLOCK_REALTIME and CLOCK_REALTIME_ALARM only, else EINVAL: if the clock is set, or the machine
 * resumes, before the timer fires, the timer fires at once; see TWHEEL_EV_CLOCK_SET. If the clock
 * was set a moment ago, and timers of the file had been armed with this flag before, a call with
 * this flag first waits until these timers have their events.
 */
#define TWHEEL_F_CANCEL_ON_SET	(1U << 4)
/* MOD only: if the timer is not armed, fail with ENOENT instead of arming it. */
#define TWHEEL_F_PENDING	(1U << 3)

/**
 * struct twheel_op - one operation, and its result
 * @op:		enum twheel_opcode; may be 0 if the ioctl names the operation already
 * @flags:	TWHEEL_F_*
 * @handle:	the timer. The kernel chooses it; it is never 0. It names a slot, the place where
 *		the kernel keeps the timer, and one use of the slot; it names no other timer until
 *		the slot has been used some 2^32 times
 * @user_data:	the caller's own value; comes back with every event
 * @expires_ns:	delay from now, or with TWHEEL_F_ABS a time of the clock; at most
 *		2^63 - 1. A time that has passed means the next tick
 * @interval_ns: 0, or the period after the first expiry; at least a tick, at
 *		most 2^63 - 1
 * @res:	must be 0. Out: the result, see enum twheel_opcode, or a negative errno
 * @reserved:	must be 0
 * @tolerance_ns: 0, or how much later than each deadline the timer may fire, see Tolerance;
 *		together with @expires_ns at most 2^63 - 1. The first version of this structure, of
 *		TWHEEL_OP_SIZE_VER0 bytes, does not have it
 *
 * The whole structure must be in writable memory. Only the fields marked Out change, but all may be
 * written back, so no other thread should change them meanwhile. If an operation of a batch fails,
 * only its @res is written. A call of a single operation returns the result. If it succeeds, it may
 * also write the result to @res, so set @res to 0 before the structure is used again. If it fails,
 * it writes nothing.
 *
 * A periodic timer has at most one event waiting. That event counts the periods that pass until it
 * is read. When it is read, the timer is armed again: by default so that the phase is kept.
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

/* The most operations that one SUBMIT does, or one DRAIN returns. */
#define TWHEEL_BATCH_MAX	65536

/**
 * struct twheel_batch - TWHEEL_IOC_SUBMIT and _DRAIN: many operations in one call
 * @ops:	address of an array of struct twheel_op
 * @nr:		how many, at most TWHEEL_BATCH_MAX; for DRAIN at least 1
 * @op_size:	distance from one operation to the next: sizeof(struct twheel_op), which may be
 *		longer than the kernel's, see Growth; a multiple of 8, at most 4096
 * @flags:	SUBMIT: must be 0. DRAIN: TWHEEL_F_ABS or 0
 * @nr_done:	must be 0. Out: how many operations have a result in their @res, or how many timers
 *		were drained
 * @nr_failed:	must be 0. Out: how many of these results are negative
 *
 * SUBMIT does the operations in order. If one fails, the others are still done. The call fails only
 * if nothing was done, with one exception: see the next paragraph. A signal, or memory that cannot
 * be read or written, ends the call early, with @nr_done < @nr: the operations counted in @nr_done
 * were done, and none after them.
 *
 * The call takes up to 64 operations at a time. Before it does any of these, it checks that all
 * their results can be stored. If another thread unmaps or protects that memory between the check
 * and the storing, the operations that are not counted in @nr_done end like this: an ADD is
 * undone, though an event of its timer may have been read; a MOD or CANCEL may have been done; a
 * timer that was being drained stays armed. If the memory of this structure itself went away, the
 * call fails with EFAULT, and what was done stands. A call of a single operation either does the
 * operation and stores its result, or does neither.
 *
 * DRAIN fills in the array. It disarms the timers that are ARMED, frees their handles, and returns
 * each as the operation that would add it again:
 *
 *	op		TWHEEL_OP_ADD
 *	flags		those that the timer was armed with, and TWHEEL_F_ABS if DRAIN had that flag
 *	handle		the old handle, which names nothing any more
 *	user_data	as ADD was given it
 *	expires_ns	the time left, 0 if the deadline has passed; with TWHEEL_F_ABS the deadline
 *	interval_ns	as given
 *	tolerance_ns	as QUERY returns it
 *
 * Everything else is 0, including the bytes between one operation and the next. To add the timers
 * to another file, set each handle to 0 and SUBMIT the array. The timers come in any order. Ready
 * events and idle handles stay. So a periodic timer whose event is ready is armed again when that
 * event is read. To be rid of it, CANCEL it, or DRAIN again after the read.
 *
 * A DRAIN continues where the last one ended: call it until it returns 0 with @nr_done 0. Then
 * nothing is armed, with two exceptions: timers that other threads have armed meanwhile, by ADD, by
 * MOD or by reading an event; and a timer that MOD has re-armed while a read() was storing an event
 * of that timer, which DRAIN leaves armed until that read() is over. A signal, or memory that
 * cannot be written, ends a DRAIN early, as it ends a SUBMIT. A timer that could not be stored is
 * not lost: it stays armed, with its handle and its deadline.
 *
 * DRAIN may also have written to elements of the array from @nr_done on: ignore what is there.
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
 * The timer will have more events, or can be armed again. After an event without this flag the
 * timer has no other event, whatever was done meanwhile: it is safe to forget the handle.
 */
#define TWHEEL_EV_MORE		(1U << 0)

/*
 * The timer was armed with TWHEEL_F_CANCEL_ON_SET, and the clock has been set since. If the timer's
 * deadline has not come, count is 0. In any case the timer counts as fired: a one-shot timer is
 * freed, or becomes idle if it has KEEP. A periodic timer is armed again when this event is read;
 * if count is 0, for the deadline that it had.
 */
#define TWHEEL_EV_CLOCK_SET	(1U << 1)

/**
 * struct twheel_event - read() returns an array of these
 * @user_data:	as in the operation that added the timer
 * @handle:	the timer
 * @expires_ns:	the deadline that was asked for; for a periodic timer, that of the
 *		first period counted here
 * @count:	1, or how many periods have passed; at most 2^32 - 1. 0 only with
 *		TWHEEL_EV_CLOCK_SET
 * @flags:	TWHEEL_EV_*
 *
 * read() returns only whole events, as many as are ready and fit. It waits for the first one,
 * unless the file is non-blocking. Events that could not be stored in the caller's memory are not
 * lost: they become ready again, in front of the others. If that happens to several readers at a
 * time, the events that they give back are in no order. While a reader stores events, these are not
 * ready for other readers, and no other reader waits until they are stored. So if read() fails with
 * EAGAIN, poll() would not have returned POLLIN either.
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
/* One operation. The call returns what SUBMIT would store in @res. */
#define TWHEEL_IOC_ADD		_IOWR(TWHEEL_IOC_MAGIC, 0x03, struct twheel_op)
#define TWHEEL_IOC_MOD		_IOWR(TWHEEL_IOC_MAGIC, 0x04, struct twheel_op)
#define TWHEEL_IOC_CANCEL	_IOWR(TWHEEL_IOC_MAGIC, 0x05, struct twheel_op)
#define TWHEEL_IOC_QUERY	_IOWR(TWHEEL_IOC_MAGIC, 0x06, struct twheel_op)
/* Disarm timers, and return them. */
#define TWHEEL_IOC_DRAIN	_IOWR(TWHEEL_IOC_MAGIC, 0x07, struct twheel_batch)

/**
 * struct twheel_uring - SUBMIT or DRAIN as a command of io_uring
 * @ops:	as in struct twheel_batch
 * @nr:		as in struct twheel_batch
 * @op_size:	as in struct twheel_batch
 * @flags:	as in struct twheel_batch
 *
 * The SQE: @opcode is IORING_OP_URING_CMD, @fd the file, @cmd_op TWHEEL_URING_SUBMIT or
 * TWHEEL_URING_DRAIN. This structure is at @cmd, byte 48; the rest of a longer SQE is ignored.
 * @uring_cmd_flags must be 0. All other fields of the SQE are as with any request.
 *
 * The CQE: @res is what @nr_done of struct twheel_batch would be, or a negative errno if nothing
 * was done. If operations failed, only their own @res says so: for io_uring the request has
 * succeeded, and a chain of links continues.
 *
 * In all else the command does what the ioctl does. The array must stay until the CQE comes. If
 * another call on the file is in progress, a worker of io_uring waits for that call, and
 * io_uring_enter() does not; meanwhile another request may be done first, unless the two are
 * linked. If a request is cancelled while it waits, twheel ends it with EINTR, or io_uring itself
 * with ECANCELED, and nothing was done. If it is cancelled while it is in progress, it ends early,
 * as by a signal. Events are read with IORING_OP_READ, or with IORING_OP_READ_MULTISHOT where Linux
 * has it.
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
