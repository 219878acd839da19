// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The embedded backend: the wheel of the kernel module, in this process.
 *
 * wheel.h is the same file that the module is built from. Around it is a small version of twheel.c
 * and twheel_chardev.c: slots of 64 bytes, found by index; a handle made of index and generation; a
 * list of slots that are ready; one lock; one timerfd. There is no thread and no signal handler:
 * the wheel turns when the program calls. If a timer's tick has come and the wheel has not been
 * turned since, the timer counts as fired, though it is still in the wheel. So the result of a
 * cancel says whether the cancel came in time, as exactly as in the kernel, unless
 * TWHEEL_ONE_THREAD lets it be judged by the coarse clock.
 *
 * The program polls the timerfd. It is readable from the time to which it is set until it is set
 * again. So the timerfd is
 *
 *	set to the wheel's next event	by an operation that makes this event earlier
 *	left alone			by a cancel: one empty wake-up, at most, costs less than a
 *					system call for each cancel
 *	left alone			by operations while events are ready: it stays readable
 *	set again			by each read that returns events. If some are left, it is
 *					readable again at once: that is an edge for EPOLLET
 *	set again			by any operation, if it is readable and nothing is ready
 *
 * If the clock is CLOCK_REALTIME, the timerfd is also readable after the clock was set, and a
 * read() of it fails with ECANCELED. So the timerfd is read before the wheel is turned, and set
 * again after that. wheel_back.h says what the wheel does if its clock is set back.
 *
 * Bounds: 63 KiB a wheel, and pages of 512 slots, which are kept until the wheel is closed. In one
 * lock hold: 64 operations, 4096 steps of the wheel each time that it is turned, and all events
 * that are ready and that one read asks for (libtwheel.c lets a read ask for 65536).
 *
 * With TWHEEL_ONE_THREAD there is no lock. If the clock is CLOCK_MONOTONIC, a single operation that
 * does not need the exact time reads the coarse clock, which is only a read of memory. The coarse
 * clock is mostly some ms behind the exact one, but there is no bound: a virtual machine that is
 * not scheduled has no tick meanwhile. So
 *
 *	a delay		counts from the exact time, however long the tick is
 *	a deadline	needs no exact time: the wheel only has to know roughly which tick it is in
 *	a cancel	frees the timer whatever the time is
 *	other calls	(a query, a read, a batch) look at the exact clock
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend.h"
#include "divide.h"
#include "pages.h"
#include "wheel_back.h"
#include "wheel_decimal.h"

/*
 * Calls between functions would cost more than an operation itself. So everything that a function
 * marked fast calls is inlined into it, except functions marked rare.
 */
#define fast		__attribute__((__flatten__))
#define rare		__attribute__((__noinline__))

#define NEVER		(~(u64)0 - 1)
/* In embedded->armed: the timerfd is to be set again, whatever the next event is. */
#define AGAIN		(NEVER + 1)
#define TIME_MAX	((u64)INT64_MAX)

#define TICK_NS		NSEC_PER_MSEC
#define TICK_MIN_NS	(NSEC_PER_MSEC / 10)
#define LIMIT		0x1000000	/* timers of a wheel: a GiB of them */

/* How many operations are done in one lock hold, and how many steps when the wheel is turned. */
#define CHUNK_OPS	64
#define CHUNK_STEPS	4096
/* In embedded->looked: no search for slots that ask for an event is under way, see look(). */
#define NO_LOOK		UINT32_MAX

/* A bit for each clock that a wheel may have. */
#define CLOCKS		(0x1 << CLOCK_REALTIME | 0x1 << CLOCK_MONOTONIC | 0x1 << CLOCK_BOOTTIME)

#define VALID_FLAGS	(TWHEEL_F_ABS | TWHEEL_F_KEEP | TWHEEL_F_DELAY)
#define SLOT_FLAGS	(TWHEEL_F_KEEP | TWHEEL_F_DELAY | TWHEEL_F_CANCEL_ON_SET)

/*
 * In slot->flags of a slot that is READY. SLOT_SET: its event must say that the clock was set.
 * SLOT_EARLY: it became ready for that, and its deadline may not have come.
 */
#define SLOT_SET	0x80
#define SLOT_EARLY	0x40

enum slot_state { FREE, ARMED, READY, IDLE };

/**
 * struct slot - a timer
 * @timer:	the wheel's node, used while ARMED. In every state its data is the slot's index. In
 *		every state but FREE its flags are the tolerance, see wheel_decimal.h
 * @ready:	link in the ready list, while READY
 * @free:	link in the free list, while FREE
 * @soon:	while FREE: a slot that was freed before this one. The free list is a stack, so that
 *		slot is likely to be used soon after this one
 * @deadline:	in all other states: when it is due, ns
 * @user_data:	the caller's own value, which comes back with each event
 * @interval:	its period in ns, or 0
 * @generation:	upper half of the handle; changes when the slot is freed
 * @state:	enum slot_state. An ARMED slot may have fired already, see slot_armed()
 * @flags:	SLOT_FLAGS, SLOT_SET and SLOT_EARLY
 *
 * The wheel's lock guards all of it.
 */
struct slot {
	union {
		TAILQ_ENTRY(slot)	ready;
		SLIST_ENTRY(slot)	free;
		struct wheel_timer	timer;
	};
	union {
		u64		deadline;
		const void	*soon;
	};
	u64	user_data;
	u64	interval;
	u32	generation;
	u8	state;
	u8	flags;
};

TAILQ_HEAD(ready_slots, slot);
SLIST_HEAD(free_slots, slot);

static_assert(sizeof(void *) != 8 || sizeof(struct slot) == 64, "a cache line");
static_assert(2 * sizeof(void *) <= offsetof(struct wheel_timer, expires),
	      "links do not reach into what is kept beside them");

/**
 * struct embedded - a wheel
 * @base:	what all backends have; its descriptor is the timerfd
 * @lock:	guards all that follows and changes, and all slots
 * @alone:	@lock is not taken: TWHEEL_ONE_THREAD
 * @coarse:	the clock for operations that do not need the exact time: a coarse one if the clock
 *		is CLOCK_MONOTONIC, else the clock itself
 * @setup:	clock, tick and slack, and the limit on @nr_used
 * @tick:	the tick in ns, to divide by
 * @end:	the last tick that begins before the end of time
 * @armed:	the time to which the timerfd is set, ns; NEVER if it is not set; or AGAIN
 * @ready:	slots that are READY, in the order of expiry
 * @nr_ready:	how many slots are on @ready
 * @free:	slots that are FREE, the last freed first
 * @freed:	the slots that were freed last, a ring. slot->soon comes from it: memory that is far
 *		apart takes long to load, so an add prefetches the slot that a later add will use
 * @nr_freed:	how many slots have been freed so far
 * @nr_used:	slots that are not FREE
 * @nr_slots:	slots that have ever been used
 * @pages:	the memory of the slots
 * @nr_expired:	timers that have fired
 * @nr_wakeups:	reads that found the timerfd readable
 * @settable:	the clock may be set: it is CLOCK_REALTIME
 * @looked:	how many slots have been searched, since the clock was set, for those that ask for
 *		an event then; NO_LOOK if the search is over
 * @back:	if @settable: the tree beside the wheel
 * @wheel:	the wheel
 *
 * @alone, @coarse, @setup, @tick, @end and @settable do not change once it is open.
 */
struct embedded {
	struct twheel		base;
	pthread_mutex_t		lock;
	bool			alone;
	clockid_t		coarse;
	struct twheel_setup	setup;
	struct divisor		tick;
	u64			end;
	u64			armed;
	struct ready_slots	ready;
	u32			nr_ready;
	struct free_slots	free;
	const void		*freed[8];
	u32			nr_freed;
	u32			nr_used;
	u32			nr_slots;
	struct pages		pages;
	u64			nr_expired;
	u64			nr_wakeups;
	bool			settable;
	u32			looked;
	struct wheel_back	back;
	struct wheel		wheel;
};

/* The struct embedded around @twheel, which is the part that all backends have. */
static struct embedded *embedded(struct twheel *twheel)
{
	return container_of(twheel, struct embedded, base);
}

/*
 * ---- time -------------------------------------------------------------------
 *
 * In this section and in those that follow, a function is called with the lock held, unless it
 * takes the lock itself, opens a wheel, or has a name that begins with embedded_. op_is_exact() and
 * ops_ask() need no lock. @now is the time that lock_by() has returned.
 */

/* The tick that @now falls into, rounded down. @now is below 2^63. */
static u64 tick_of(const struct embedded *e, u64 now)
{
	return divide(now, &e->tick);
}

/*
 * When @tick begins, in ns; NEVER for WHEEL_NEVER. For ticks that begin after the end of time,
 * the end of time.
 */
static u64 tick_time(const struct embedded *e, u64 tick)
{
	if (tick == WHEEL_NEVER)
		return NEVER;
	return tick <= e->end ? tick * e->tick.by : TIME_MAX;
}

/*
 * The clock was set: begin to search the slots for those that ask for an event then, see look(),
 * and let the wheel follow the clock. A search that is under way begins again.
 */
static void clock_was_set(struct embedded *e)
{
	e->looked = 0;
	wheel_back_was_set(&e->wheel, &e->back, tick_of(e, twheel_clock(e->setup.clockid)));
}

/* Make the timerfd readable at @when, at once if that is 0, or never. With the lock held. */
static rare void timerfd_set(struct embedded *e, u64 when)
{
	struct itimerspec its = { 0 };

	e->armed = when;
	if (!when)
		when = 1;	/* 0 would mean never */
	if (when != NEVER) {
		its.it_value.tv_sec = (time_t)(when / NSEC_PER_SEC);
		its.it_value.tv_nsec = (long)(when % NSEC_PER_SEC);
	}
	if (timerfd_settime(e->base.fd, e->settable ? TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET :
						      TFD_TIMER_ABSTIME, &its, NULL) &&
	    errno == ECANCELED) {
		/* The clock was set just now. No read() of the timerfd will say so. */
		clock_was_set(e);
		timerfd_set(e, 0);
	}
}

/* Read the timerfd, whose clock may be set, and note if it was. After this it is not readable. */
static rare void timerfd_take(struct embedded *e)
{
	u64 ticks;
	bool expired = read(e->base.fd, &ticks, sizeof(ticks)) > 0;

	if (!expired && errno != ECANCELED)
		return;
	e->armed = NEVER;
	if (!expired)
		clock_was_set(e);
}

/*
 * The timerfd must be readable while there is something to read, and when the wheel's next event
 * comes. If it would not be, set it. If it is set to an earlier time than needed, and that time has
 * not come, leave it: see the head of the file.
 */
static void timerfd_update(struct embedded *e, u64 now)
{
	u64 next = e->nr_ready || e->looked != NO_LOOK ? 0 : tick_time(e, e->wheel.next);

	if (next <= now ? e->armed > now : e->armed <= now || next < e->armed)
		timerfd_set(e, next);
}

/* ---- slots ------------------------------------------------------------------ */

/* The handle that names @slot until slot_put(). */
static u64 slot_handle(const struct slot *slot)
{
	return (u64)slot->generation << 32 | slot->timer.data;
}

/* The slot with @index, which is below @nr_slots, or is being made by slot_new(). */
static struct slot *slot_at(const struct embedded *e, u32 index)
{
	return pages_at(&e->pages, index, sizeof(struct slot));
}

/* The slot that @handle names, or NULL if it never named one or the slot was freed. */
static struct slot *slot_find(const struct embedded *e, u64 handle)
{
	u32 index = (u32)handle;
	struct slot *slot;

	if (index >= e->nr_slots)
		return NULL;
	slot = slot_at(e, index);
	return slot->state != FREE && slot->generation == handle >> 32 ? slot : NULL;
}

/* A slot that was never used, or NULL if there is no memory for one. */
static rare struct slot *slot_new(struct embedded *e)
{
	u32 index = e->nr_slots;
	struct slot *slot;

	if (index / PAGE_ENTRIES == e->pages.nr && pages_grow(&e->pages, sizeof(*slot)))
		return NULL;
	slot = slot_at(e, index);
	slot->timer.data = index;
	slot->generation = 1;
	e->nr_slots++;
	return slot;
}

/* Take a free slot, which the caller arms. Returns 0, -EDQUOT or -ENOMEM. */
static int slot_get(struct embedded *e, struct slot **slot)
{
	if (e->nr_used >= e->setup.max_timers)
		return -EDQUOT;
	*slot = SLIST_FIRST(&e->free);
	if (*slot) {
		SLIST_REMOVE_HEAD(&e->free, free);
		prefetch((*slot)->soon);
	} else {
		*slot = slot_new(e);
		if (!*slot)
			return -ENOMEM;
	}
	e->nr_used++;
	return 0;
}

/*
 * Free a slot that is in no list and not armed. From here on its old handle names nothing.
 * Generation 0 is left out, so that no handle is 0.
 */
static void slot_put(struct embedded *e, struct slot *slot)
{
	const void **freed = &e->freed[e->nr_freed++ % ARRAY_SIZE(e->freed)];

	slot->state = FREE;
	if (!++slot->generation)
		slot->generation = 1;
	slot->soon = *freed;
	*freed = slot;
	SLIST_INSERT_HEAD(&e->free, slot, free);
	e->nr_used--;
}

/* The tolerance of @slot in ns, rounded down to what fits into 16 bits. */
static u64 slot_tolerance(const struct slot *slot)
{
	return wheel_decimal_time(slot->timer.flags);
}

/* The sum of two times, but at most the end of time. */
static u64 time_add(u64 time, u64 ns)
{
	return ns < TIME_MAX - time ? time + ns : TIME_MAX;
}

/* Arm @slot, which may be armed already, for @tick. */
static void slot_arm_at(struct embedded *e, struct slot *slot, u64 tick, u64 now)
{
	if (slot->state == ARMED) {
		if (likely(!e->settable))
			wheel_mod(&e->wheel, &slot->timer, tick);
		else
			wheel_back_mod(&e->wheel, &e->back, &slot->timer, tick, tick_of(e, now));
		return;
	}
	slot->state = ARMED;
	if (unlikely(e->settable && tick <= wheel_clk(&e->wheel)))
		wheel_back_add(&e->wheel, &e->back, &slot->timer, tick, tick_of(e, now));
	else
		wheel_add(&e->wheel, &slot->timer, tick);
}

/*
 * Arm @slot, which may be armed already, for one of the ticks from @first to the last that its
 * tolerance allows: the one that most others can share, see wheel_choose().
 */
static rare void slot_arm_within(struct embedded *e, struct slot *slot, u64 first, u64 now)
{
	u64 last = tick_of(e, time_add(slot->deadline, slot_tolerance(slot)));
	struct wheel_timer *t = &slot->timer;
	bool armed = slot->state == ARMED;

	slot->state = ARMED;
	if (unlikely(e->settable && armed))
		wheel_back_mod_range(&e->wheel, &e->back, t, first, last, tick_of(e, now));
	else if (unlikely(e->settable))
		wheel_back_add_range(&e->wheel, &e->back, t, first, last, tick_of(e, now));
	else if (armed)
		wheel_mod_range(&e->wheel, t, first, last);
	else
		wheel_add_range(&e->wheel, t, first, last);
}

/* Arm @slot, which may be armed already, for @deadline. */
static void slot_arm(struct embedded *e, struct slot *slot, u64 deadline, u64 now)
{
	u64 tick = tick_of(e, deadline);

	tick += tick * e->tick.by < deadline;
	slot->deadline = deadline;
	if (likely(!slot->timer.flags))
		slot_arm_at(e, slot, tick, now);
	else
		slot_arm_within(e, slot, tick, now);
}

/* Take a slot that is ARMED out of the wheel. */
static void slot_disarm(struct embedded *e, struct slot *slot)
{
	if (likely(!wheel_is_back(&slot->timer))) {
		wheel_del(&e->wheel, &slot->timer);
		return;
	}
	wheel_back_unlink(&e->wheel, &e->back, &slot->timer);
	slot->timer.bucket = WHEEL_NONE;
}

/* Put a slot that is out of the wheel, but was ARMED, on the ready list. */
static void slot_ready(struct embedded *e, struct slot *slot)
{
	slot->state = READY;
	TAILQ_INSERT_TAIL(&e->ready, slot, ready);
	e->nr_ready++;
}

/*
 * Is @slot still pending? A timer whose tick has come counts as fired even if the wheel has not
 * been turned yet.
 */
static bool slot_armed(const struct embedded *e, const struct slot *slot, u64 now)
{
	return slot->state == ARMED && slot->timer.expires > tick_of(e, now);
}

/* Take a slot out of the wheel or the ready list. Returns true if it was pending. */
static bool slot_detach(struct embedded *e, struct slot *slot, u64 now)
{
	bool armed = slot_armed(e, slot, now);

	switch (slot->state) {
	case ARMED:
		slot_disarm(e, slot);
		break;
	case READY:
		TAILQ_REMOVE(&e->ready, slot, ready);
		e->nr_ready--;
		break;
	}
	return armed;
}

/*
 * The clock was set. If @slot asks for an event then (TWHEEL_F_CANCEL_ON_SET) and is armed, it
 * becomes ready. If it is ready already, its event will say that the clock was set.
 */
static void slot_was_set(struct embedded *e, struct slot *slot)
{
	if (slot->state == FREE || slot->state == IDLE || !(slot->flags & TWHEEL_F_CANCEL_ON_SET))
		return;
	slot->flags |= SLOT_SET;
	if (slot->state != ARMED)
		return;
	slot->flags |= SLOT_EARLY;
	slot_disarm(e, slot);
	slot_ready(e, slot);
}

/* After the clock was set: search the next slots, see slot_was_set(). Each costs one of @budget. */
static rare void look(struct embedded *e, u32 *budget)
{
	for (; *budget && e->looked < e->nr_slots; --*budget)
		slot_was_set(e, slot_at(e, e->looked++));
	if (e->looked >= e->nr_slots)
		e->looked = NO_LOOK;
}

/* wheel_expire(), also if the clock may be set. */
static struct wheel_timer *expire(struct embedded *e, u64 tick, u32 *budget)
{
	struct wheel_timer *timer = NULL;

	if (likely(!e->settable))
		return wheel_expire(&e->wheel, tick, budget);
	wheel_back_expire_many(&e->wheel, &e->back, tick, budget, &timer, 1, NULL);
	return timer;
}

/*
 * Turn the wheel up to @now, until @most slots are ready or CHUNK_STEPS are done. Returns true if
 * something is left to do: then the caller may drop the lock, and call again.
 */
static rare bool turn(struct embedded *e, u64 now, u32 most)
{
	u32 budget = CHUNK_STEPS;
	u64 tick = tick_of(e, now);

	while (e->nr_ready < most) {
		struct wheel_timer *timer = expire(e, tick, &budget);

		if (!timer)
			break;
		slot_ready(e, container_of(timer, struct slot, timer));
		e->nr_expired++;
	}
	if (unlikely(e->looked != NO_LOOK))
		look(e, &budget);
	return wheel_due(&e->wheel, tick) || e->looked != NO_LOOK;
}

/* ---- the lock --------------------------------------------------------------- */

/* Take the lock, and let the wheel follow the time of @clock, which is returned. */
static u64 lock_by(struct embedded *e, clockid_t clock)
{
	u64 now;

	if (!e->alone)
		pthread_mutex_lock(&e->lock);
	now = twheel_clock(clock);
	wheel_forward(&e->wheel, tick_of(e, now));
	return now;
}

/* lock_by() the exact clock. */
static u64 lock(struct embedded *e)
{
	return lock_by(e, e->setup.clockid);
}

/*
 * Release the lock. @now is what lock() returned. If the tick of the wheel's next event has come
 * but no slot is ready, turn the wheel first: the timer of that event may just have been cancelled,
 * and then the timerfd need not be readable.
 */
static void unlock(struct embedded *e, u64 now)
{
	if (!e->nr_ready && (wheel_due(&e->wheel, tick_of(e, now)) || e->looked != NO_LOOK))
		turn(e, now, 1);
	timerfd_update(e, now);
	if (!e->alone)
		pthread_mutex_unlock(&e->lock);
}

/*
 * lock(), for timers that are about to be armed and may ask for an event when the clock is set. If
 * the clock was set, first finish the search for timers that had asked before, in lock holds of
 * CHUNK_STEPS. Otherwise that search would also find the new timers, which were not armed when the
 * clock was set.
 */
static rare u64 lock_searched(struct embedded *e)
{
	u64 now = lock(e);

	timerfd_take(e);
	while (e->looked != NO_LOOK) {
		turn(e, now, UINT32_MAX);
		unlock(e, now);
		now = lock(e);
	}
	return now;
}

/*
 * ---- operations ------------------------------------------------------------
 *
 * op_add(), op_mod(), op_cancel() and op_query() do one operation that op_is_valid() has accepted.
 * The caller holds the lock, and @now is the time that lock_by() returned. They return op->res, and
 * set in @op what the operation is to give back. Each finds out first whether it can be done: a
 * negative result means that nothing has changed.
 */

/* Are the times of an operation that arms a timer valid? */
static bool time_is_valid(const struct embedded *e, const struct twheel_op *op)
{
	if (op->expires_ns > TIME_MAX || op->interval_ns > TIME_MAX ||
	    op->tolerance_ns > TIME_MAX - op->expires_ns)
		return false;
	if (op->interval_ns)
		return op->interval_ns >= e->setup.tick_ns;
	return !(op->flags & TWHEEL_F_DELAY);
}

/* Are all fields 0 but the handle and the flags? */
static bool op_is_bare(const struct twheel_op *op)
{
	return !op->user_data && !op->expires_ns && !op->interval_ns && !op->tolerance_ns;
}

/* The flags that ADD may have. MOD may have TWHEEL_F_PENDING as well. */
static u32 valid_flags(const struct embedded *e)
{
	return e->settable ? VALID_FLAGS | TWHEEL_F_CANCEL_ON_SET : VALID_FLAGS;
}

/* Is @op valid, as far as can be said without looking at a timer? */
static bool op_is_valid(const struct embedded *e, const struct twheel_op *op)
{
	if (op->res || op->reserved)
		return false;
	switch (op->op) {
	case TWHEEL_OP_ADD:
		return !(op->flags & ~valid_flags(e)) && !op->handle && time_is_valid(e, op);
	case TWHEEL_OP_MOD:
		return !(op->flags & ~(valid_flags(e) | TWHEEL_F_PENDING)) &&
		       !op->user_data && time_is_valid(e, op);
	case TWHEEL_OP_CANCEL:
		return !op->flags && op_is_bare(op);
	case TWHEEL_OP_QUERY:
		return !(op->flags & ~TWHEEL_F_ABS) && op_is_bare(op);
	}
	return false;
}

/* Arm a slot as @op says. It is in no list; it may be armed. */
static void op_arm(struct embedded *e, struct slot *slot, const struct twheel_op *op, u64 now)
{
	slot->interval = op->interval_ns;
	slot->flags = op->flags & SLOT_FLAGS;
	slot->timer.flags = wheel_decimal_of(op->tolerance_ns);
	slot_arm(e, slot, op->flags & TWHEEL_F_ABS ? op->expires_ns :
						     time_add(now, op->expires_ns), now);
}

/* ADD: take a free slot and arm it. Returns 0, -EDQUOT or -ENOMEM. */
static int op_add(struct embedded *e, struct twheel_op *op, u64 now)
{
	struct slot *slot;
	int err = slot_get(e, &slot);

	if (err)
		return err;
	slot->user_data = op->user_data;
	op_arm(e, slot, op, now);
	op->handle = slot_handle(slot);
	return 0;
}

/*
 * MOD: arm the timer again, whatever its state; an event that was not read is dropped. Returns 1 if
 * the timer was pending, 0 if not, or -ENOENT. An ARMED slot stays in the wheel until op_arm()
 * moves it. If the slot's tick has come, the result is 0; or, with TWHEEL_F_PENDING, -ENOENT, and
 * the timer is not armed.
 */
static int op_mod(struct embedded *e, struct twheel_op *op, u64 now)
{
	struct slot *slot = slot_find(e, op->handle);
	bool armed;

	if (!slot)
		return -ENOENT;
	if ((op->flags & TWHEEL_F_PENDING) && !slot_armed(e, slot, now))
		return -ENOENT;
	armed = slot_armed(e, slot, now);
	if (slot->state != ARMED)
		slot_detach(e, slot, now);
	op_arm(e, slot, op, now);
	op->user_data = slot->user_data;
	return armed;
}

/* CANCEL: free the timer, whatever its state. Returns 1 if it was pending, 0 if not, or -ENOENT. */
static int op_cancel(struct embedded *e, struct twheel_op *op, u64 now)
{
	struct slot *slot = slot_find(e, op->handle);
	bool armed;

	if (!slot)
		return -ENOENT;
	armed = slot_detach(e, slot, now);
	op->user_data = slot->user_data;
	slot_put(e, slot);
	return armed;
}

/*
 * Store in @op the tolerance of @slot, and when it is due: if @op has TWHEEL_F_ABS, the deadline;
 * else the time left until then.
 */
static void op_set_expires(struct twheel_op *op, const struct slot *slot, u64 now)
{
	if (op->flags & TWHEEL_F_ABS)
		op->expires_ns = slot->deadline;
	else
		op->expires_ns = slot->deadline > now ? slot->deadline - now : 0;
	/* ADD accepts no sum above the end of time, and must accept what is stored here. */
	op->tolerance_ns = slot_tolerance(slot);
	if (op->tolerance_ns > TIME_MAX - op->expires_ns)
		op->tolerance_ns = TIME_MAX - op->expires_ns;
}

/* QUERY: describe the timer in @op. Returns an enum twheel_state, or -ENOENT. */
static int op_query(const struct embedded *e, struct twheel_op *op, u64 now)
{
	const struct slot *slot = slot_find(e, op->handle);

	if (!slot)
		return -ENOENT;
	op->user_data = slot->user_data;
	op->interval_ns = slot->interval;
	op_set_expires(op, slot, now);
	if (slot_armed(e, slot, now))
		return TWHEEL_STATE_ARMED;
	return slot->state == IDLE ? TWHEEL_STATE_IDLE : TWHEEL_STATE_READY;
}

/* Do one operation. Returns its result; if that is negative, nothing has changed. */
static int op_do(struct embedded *e, struct twheel_op *op, u64 now)
{
	if (!op_is_valid(e, op))
		return -EINVAL;
	switch (op->op) {
	case TWHEEL_OP_ADD:
		return op_add(e, op, now);
	case TWHEEL_OP_MOD:
		return op_mod(e, op, now);
	case TWHEEL_OP_QUERY:
		return op_query(e, op, now);
	default:
		return op_cancel(e, op, now);
	}
}

/* Does @op need the exact time? See the head of the file. */
static bool op_is_exact(const struct embedded *e, const struct twheel_op *op)
{
	if (!e->alone || op->op == TWHEEL_OP_QUERY)
		return true;
	return op->op != TWHEEL_OP_CANCEL && !(op->flags & TWHEEL_F_ABS);
}

/* May one of these operations arm a timer that asks to be told when the clock is set? */
static bool ops_ask(const struct embedded *e, const struct twheel_op *ops, u32 nr)
{
	u32 flags = 0;

	if (likely(!e->settable))
		return false;
	while (nr--)
		flags |= ops[nr].flags;
	return flags & TWHEEL_F_CANCEL_ON_SET;
}

/* One operation in one lock hold, with the cheapest clock that is exact enough for it. */
static fast int embedded_op(struct twheel *twheel, struct twheel_op *op)
{
	struct embedded *e = embedded(twheel);
	u64 now;
	int rc;

	if (unlikely(ops_ask(e, op, 1)))
		now = lock_searched(e);
	else
		now = lock_by(e, op_is_exact(e, op) ? e->setup.clockid : e->coarse);
	rc = op_do(e, op, now);
	unlock(e, now);
	return rc;
}

/* Do the operations in order, CHUNK_OPS in one lock hold. Returns how many failed. */
static int embedded_submit(struct twheel *twheel, struct twheel_op *ops, u32 nr)
{
	struct embedded *e = embedded(twheel);
	u32 done = 0;
	int bad = 0;

	while (done < nr) {
		u32 end = nr - done < CHUNK_OPS ? nr : done + CHUNK_OPS;
		u64 now = ops_ask(e, &ops[done], end - done) ? lock_searched(e) : lock(e);

		for (; done < end; done++) {
			ops[done].res = op_do(e, &ops[done], now);
			bad += ops[done].res < 0;
		}
		unlock(e, now);
	}
	return bad;
}

/*
 * Free one armed timer, no matter which, and describe it in @op as an ADD that would arm it again.
 * Returns false if none is armed.
 */
static bool drain_one(struct embedded *e, struct twheel_op *op, u32 flags, u64 now)
{
	unsigned long bucket = find_next_bit(e->wheel.map, WHEEL_SLOTS, WHEEL_NONE + 1);
	struct wheel_timer *timer = bucket < WHEEL_SLOTS ? wheel_first(&e->wheel, bucket) :
							   e->back.root;
	struct slot *slot;

	if (!timer)
		return false;
	slot = container_of(timer, struct slot, timer);
	slot_detach(e, slot, now);
	*op = (struct twheel_op) {
		.op		= TWHEEL_OP_ADD,
		.flags		= slot->flags | flags,
		.handle		= slot_handle(slot),
		.user_data	= slot->user_data,
		.interval_ns	= slot->interval,
	};
	op_set_expires(op, slot, now);
	slot_put(e, slot);
	return true;
}

/*
 * Take out up to @nr armed timers, CHUNK_OPS in one lock hold. Returns how many. Fewer than @nr
 * means that none was armed any more at the end of the last lock hold.
 */
static int embedded_drain(struct twheel *twheel, struct twheel_op *ops, u32 nr, u32 flags)
{
	struct embedded *e = embedded(twheel);
	bool again = true;
	u32 done = 0;

	while (again) {
		u64 now = lock(e);
		u32 end = nr - done < CHUNK_OPS ? nr : done + CHUNK_OPS;

		/* Timers that have expired are not armed: move them to the ready list first. */
		again = turn(e, now, UINT32_MAX);
		while (!again && done < end && drain_one(e, &ops[done], flags, now))
			done++;
		again |= done == end && done < nr;
		unlock(e, now);
	}
	return (int)done;
}

/* ---- reading ---------------------------------------------------------------- */

/* How often a ready slot has expired by @now: the count of its event. */
static u32 periods_passed(const struct slot *slot, u64 now)
{
	u64 periods = 0;

	/*
	 * Either the clock was set back after the timer expired, or the event only says that the
	 * clock was set.
	 */
	if (unlikely(now < slot->deadline))
		return !(slot->flags & SLOT_EARLY);
	if (slot->interval && !(slot->flags & TWHEEL_F_DELAY))
		periods = (now - slot->deadline) / slot->interval;
	return periods < UINT32_MAX ? (u32)periods + 1 : UINT32_MAX;
}

/*
 * The event of @slot has been read: arm it for its next period, keep it idle, or free it. The
 * caller has taken it off the ready list; @count is that of the event.
 */
static void slot_after_read(struct embedded *e, struct slot *slot, u32 count, u64 now)
{
	u64 deadline = slot->deadline + count * slot->interval;

	if (!slot->interval) {
		slot->state = IDLE;
		if (!(slot->flags & TWHEEL_F_KEEP))
			slot_put(e, slot);
		return;
	}
	if ((slot->flags & TWHEEL_F_DELAY) && count)
		deadline = now + slot->interval;
	slot->flags &= SLOT_FLAGS;
	slot_arm(e, slot, deadline < TIME_MAX ? deadline : TIME_MAX, now);
}

/* Take the first slot off the ready list, which is not empty, and fill in its event. */
static void read_event(struct embedded *e, struct twheel_event *event, u64 now)
{
	struct slot *slot = TAILQ_FIRST(&e->ready);
	bool more = slot->interval || (slot->flags & TWHEEL_F_KEEP);

	slot_detach(e, slot, now);
	*event = (struct twheel_event) {
		.user_data	= slot->user_data,
		.handle		= slot_handle(slot),
		.expires_ns	= slot->deadline,
		.count		= periods_passed(slot, now),
		.flags		= more ? TWHEEL_EV_MORE : 0,
	};
	if (unlikely(slot->flags & SLOT_SET))
		event->flags |= TWHEEL_EV_CLOCK_SET;
	slot_after_read(e, slot, event->count, now);
}

/*
 * Turn the wheel and read up to @nr events, without waiting. Returns how many, or -EAGAIN. If the
 * wheel is far behind, it is turned in several lock holds, until there is an event or the wheel has
 * caught up.
 */
static int embedded_read(struct twheel *twheel, struct twheel_event *events, u32 nr)
{
	struct embedded *e = embedded(twheel);
	bool again = true;
	u32 done = 0;

	while (again && !done) {
		u64 now = lock(e);

		e->nr_wakeups += e->armed <= now;
		if (e->settable)
			timerfd_take(e);
		again = turn(e, now, nr);
		for (; done < nr && e->nr_ready; done++)
			read_event(e, &events[done], now);
		/*
		 * If events are left, have unlock() set the timerfd again: that is an edge for a
		 * program that polls with EPOLLET.
		 */
		if (done && (again || e->nr_ready))
			e->armed = AGAIN;
		unlock(e, now);
	}
	return done ? (int)done : -EAGAIN;
}

/* ---- the rest --------------------------------------------------------------- */

/* All memory of the wheel, except that of the timerfd, which is the kernel's. */
static u64 mem_bytes(const struct embedded *e)
{
	return sizeof(*e) + pages_bytes(&e->pages, sizeof(struct slot));
}

/* All counts are taken in one lock hold, that in which the wheel has caught up with the clock. */
static int embedded_info(struct twheel *twheel, struct twheel_info *info)
{
	struct embedded *e = embedded(twheel);
	bool again = true;

	/* Turn the wheel, so that every timer that has expired is counted as ready. */
	while (again) {
		u64 now = lock(e);

		again = turn(e, now, UINT32_MAX);
		*info = (struct twheel_info) {
			.abi		= TWHEEL_ABI,
			.clockid	= e->setup.clockid,
			.clocks		= CLOCKS,
			.tick_ns	= e->setup.tick_ns,
			.slack_ns	= e->setup.slack_ns,
			.min_tick_ns	= TICK_MIN_NS,
			.max_timers	= e->setup.max_timers,
			.op_size	= sizeof(struct twheel_op),
			.event_size	= sizeof(struct twheel_event),
			.nr_timers	= e->nr_used,
			.nr_armed	= (u32)wheel_nr(&e->wheel),
			.nr_ready	= e->nr_ready,
			.mem_bytes	= mem_bytes(e),
			.nr_expired	= e->nr_expired,
			.nr_wakeups	= e->nr_wakeups,
			.nr_moves	= e->wheel.moves,
		};
		unlock(e, now);
	}
	return 0;
}

/* How many timers are in bucket @slot and at the stops within it. */
static u32 nr_timers(const struct wheel *w, u32 slot)
{
	u32 n = w->bucket[slot].n;

	if (slot >= WHEEL_L1 && slot < WHEEL_L2)
		n += w->bucket[WHEEL_S1 + slot - WHEEL_L1].n;
	for (u32 i = 0; slot >= WHEEL_L2 && slot < WHEEL_L3 && i < WHEEL_PARTS; i++)
		n += w->bucket[WHEEL_S2 + (slot - WHEEL_L2) * WHEEL_PARTS + i].n;
	return n;
}

/*
 * Add bucket @slot to its level. Classes of far timers count for the entry behind the last level.
 */
static void count_bucket(struct twheel_levels *levels, const struct embedded *e, u32 slot)
{
	u32 n = nr_timers(&e->wheel, slot), level = 0;

	while (level < WHEEL_LEVELS &&
	       slot >= (u32)wheel_levels[level].first + wheel_levels[level].slots)
		level++;
	levels->timers[level] += n;
	levels->buckets[level] += !!n;
}

static_assert(ARRAY_SIZE(((struct twheel_levels *)NULL)->timers) == WHEEL_LEVELS + 1,
	      "the last is for those beyond");

/*
 * Timers that are ready, and those in the tree of wheel_back.h, are in no bucket and do not count.
 */
static int embedded_levels(struct twheel *twheel, struct twheel_levels *levels)
{
	struct embedded *e = embedded(twheel);
	u64 now = lock(e);

	*levels = (struct twheel_levels) { 0 };
	for (u32 slot = WHEEL_L0; slot < WHEEL_SLOTS; slot++)
		count_bucket(levels, e, slot);
	unlock(e, now);
	return 0;
}

/* As SETUP of the device, with this backend's own limit on the number of timers. */
static bool setup_is_valid(const struct twheel_setup *setup)
{
	return setup->clockid >= 0 && setup->clockid < 32 && (CLOCKS >> setup->clockid & 1) &&
	       !setup->flags && !setup->reserved && setup->slack_ns < NSEC_PER_SEC &&
	       setup->max_timers <= LIMIT &&
	       (!setup->tick_ns ||
		(setup->tick_ns >= TICK_MIN_NS && setup->tick_ns <= NSEC_PER_SEC));
}

/* Make @e, which is zeroed, an empty wheel. Returns 0, or an error with nothing to undo. */
static int embedded_init(struct embedded *e, const struct twheel_setup *setup,
			 unsigned int flags)
{
	e->setup = *setup;
	if (!e->setup.tick_ns)
		e->setup.tick_ns = TICK_NS;
	if (!e->setup.max_timers)
		e->setup.max_timers = LIMIT;
	e->tick = divisor(e->setup.tick_ns);
	e->end = tick_of(e, TIME_MAX);
	e->alone = flags & TWHEEL_ONE_THREAD;
	/* Only CLOCK_MONOTONIC has a coarse clock here: CLOCK_BOOTTIME has none at all. */
	e->coarse = setup->clockid == CLOCK_MONOTONIC ? CLOCK_MONOTONIC_COARSE : setup->clockid;
	e->base.fd = timerfd_create(e->setup.clockid, TFD_CLOEXEC | TFD_NONBLOCK);
	if (e->base.fd < 0)
		return -errno;
	pthread_mutex_init(&e->lock, NULL);
	TAILQ_INIT(&e->ready);
	SLIST_INIT(&e->free);
	e->armed = NEVER;
	e->looked = NO_LOOK;
	e->settable = setup->clockid == CLOCK_REALTIME;
	e->back.seed = (uintptr_t)e ^ twheel_clock(CLOCK_MONOTONIC);
	wheel_init(&e->wheel, tick_of(e, twheel_clock(e->setup.clockid)));
	/*
	 * From now on the timerfd becomes readable when the clock is set, though it is set to no
	 * time.
	 */
	if (e->settable)
		timerfd_set(e, NEVER);
	return 0;
}

/* Make a wheel. Returns 0 or an error. */
static int embedded_open(struct twheel **twheel, unsigned int flags,
			 const struct twheel_setup *setup)
{
	struct embedded *e;
	int err;

	if (!setup_is_valid(setup))
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	err = embedded_init(e, setup, flags);
	if (err) {
		free(e);
		return err;
	}
	*twheel = &e->base;
	return 0;
}

/* Free the wheel with all its timers. No other thread uses it any more. */
static void embedded_close(struct twheel *twheel)
{
	struct embedded *e = embedded(twheel);

	close(e->base.fd);
	pages_free(&e->pages);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

const struct twheel_backend twheel_embedded_backend = {
	.name	= "embedded",
	.open	= embedded_open,
	.close	= embedded_close,
	.op	= embedded_op,
	.submit	= embedded_submit,
	.read	= embedded_read,
	.drain	= embedded_drain,
	.info	= embedded_info,
	.levels	= embedded_levels,
};
