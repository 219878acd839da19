// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel_chardev.ko: /dev/twheel, the interface of <linux/twheel.h>.
 *
 * Each open file has a base of its own (see twheel.h), and nothing of it is shared
 * with other files. The base and all else of size is made when the first timer is added:
 * until then a file is little more than what SETUP said.
 *
 * A timer is a slot of 64 bytes. Slots come in pages, 64 in each, found by index through
 * two levels of tables; a handle is index and generation.
 *
 * The first page of slots comes with a small base, of a KiB, which keeps its timers in a tree, and
 * with a table of one entry that is in the file. With the second page the base grows, and a page
 * of tables is made. That is in slots_grow(), where memory is made anyway: who adds or cancels has
 * not a branch more. Memory: 0.5 KiB; 11 KiB with a page; 63 KiB with two.
 *
 * A slot is its own queue entry. When its timer expires the base hands it over under
 * its lock, and it moves from the wheel to the ready list in the same lock hold. So
 * nothing can overflow or get lost, and a cancel knows exactly what it cancelled:
 *
 *	FREE	on the free list, or never used yet
 *	ARMED	in the wheel
 *	READY	its event waits on the ready list
 *	READING	its event is being copied to a reader. It is on no list; it and the reader
 *		remember each other, and the reader goes on with it only if it has it still.
 *		Most events never are: read() stores them in the lock hold that takes them
 *	IDLE	waits to be armed again (TWHEEL_F_KEEP)
 *
 * Locking
 *	file->submit	callers that add, re-arm, cancel, query, drain or set up
 *	  the base's lock	slots, lists and counts. Held for at most
 *				TWHEEL_HOLD_OPS operations, and for nothing that may sleep
 *	file->setup_lock	what SETUP says, which holds file->submit too. Nothing is
 *				taken inside it
 *	openers_lock	who has files open. Nothing is taken inside it
 *	waker->lock	when a file wakes the machine; may be taken inside file->submit
 *	  the base's lock
 *
 * file->base appears once, under file->submit, and stays. With it appear the bounce and the
 * tables, and from then on SETUP changes nothing. Who has not file->submit looks with
 * file_base().
 *
 * Memory is charged to the memory cgroup of who makes it be allocated. Where there is no
 * more that one gets ENOMEM, and nobody is killed for it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/alarmtimer.h>
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/wait.h>

#include <uapi/linux/twheel.h>

#include "twheel.h"
#include "twheel_compat.h"
#include "wheel_decimal.h"

/* As much as the caller's memory cgroup gives, without killing a task in it. */
#define GFP_CHARGED	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#define CHUNK_OPS	64
#define CHUNK_IS_HOLD	(TWHEEL_HOLD_OPS >= CHUNK_OPS)
#define CHUNK_EVENTS	(TWHEEL_HOLD_OPS / 2)	/* a periodic one is armed again */
#define SMALL_EVENTS	8

#define PAGE_SLOTS	(PAGE_SIZE / sizeof(struct slot))
#define TABLE_PAGES	(PAGE_SIZE / sizeof(void *))
#define TABLE_SLOTS	(TABLE_PAGES * PAGE_SLOTS)

/* What @max_timers may be. With a page more than that a count of slots fits in 32 bits still. */
#define LIMIT_MAX	(U32_MAX - PAGE_SLOTS)

#define VALID_FLAGS	(TWHEEL_F_ABS | TWHEEL_F_KEEP | TWHEEL_F_DELAY)
#define SLOT_FLAGS	(TWHEEL_F_KEEP | TWHEEL_F_DELAY | TWHEEL_F_CANCEL_ON_SET)

/*
 * In slot->flags: the clock was set, and an event that is not written yet shall say so; that event
 * may come before the deadline.
 */
#define SLOT_SET	BIT(7)
#define SLOT_EARLY	BIT(6)

/* In file->no_slot, and what an add in a batch gives then: some can be made. */
#define SLOTS_TO_COME	(-EAGAIN)
#define OP_STRIDE_MAX	4096

enum slot_state { FREE, ARMED, READY, READING, IDLE };

struct slot;

/**
 * struct reader - a read(), and the events that are on their way to the caller
 * @events:	the events
 * @taken:	whose they are. A slot that is not the reader's any more has been armed anew, or
 *		is gone
 * @room:	for so many
 */
struct reader {
	struct twheel_event	*events;
	struct slot		**taken;
	u32			room;
};

/**
 * struct slot - a timer of a file
 * @timer:	in the wheel while ARMED. Its cookie is the deadline in ns, its
 *		queue.data the slot's index, its queue.flags the tolerance, see wheel_decimal.h
 * @link:	in the ready list, instead
 * @onward:	is link.next, which read_collect() follows after it has set @reader
 * @reader:	who has it while it is READING, instead of link.prev
 * @next:	in the free list, instead
 * @user_data:	the user's
 * @interval:	ns, or 0
 * @generation:	half of the handle; changes when the slot is freed
 * @state:	enum slot_state
 * @flags:	SLOT_FLAGS, SLOT_SET and SLOT_EARLY
 * @nr_past:	events of it that are being read still, by readers that it was taken from to
 *		be armed anew. Where there are any it goes on after its next event
 */
struct slot {
	union {
		struct twheel_timer	timer;
		struct list_head	link;
		struct {
			struct list_head	*onward;
			const struct reader	*reader;
		};
		struct slot		*next;
	};
	u64	user_data;
	u64	interval;
	u32	generation;
	u8	state;
	u8	flags;
	u16	nr_past;
};

#if defined(CONFIG_64BIT) && !defined(CONFIG_LOCKDEP)
static_assert(sizeof(struct slot) == 64);
#endif
/* The list link must not reach into what is kept beside it. */
static_assert(sizeof(struct list_head) <= offsetof(struct wheel_timer, expires));

/**
 * struct bounce - what a call carries between user memory and the slots
 * @ops:	the operations of who has file->submit
 * @too_long:	bit i: ops[i] was longer than is known here, with something in it. It is all 0 then
 * @taken:	see struct reader
 */
struct bounce {
	struct twheel_op	ops[CHUNK_OPS];
	u64			too_long;
	struct slot		*taken[CHUNK_EVENTS];
};

static_assert(CHUNK_OPS <= 64);

static_assert(sizeof(struct bounce) <= 4096);

/**
 * struct opener - somebody who has files open
 * @node:	in openers
 * @uid:	who
 * @nr_files:	how many
 * @nr_pages:	pages of slots in all of these
 * @user:	whose part of each CPU their wheels have
 */
struct opener {
	struct hlist_node	node;
	kuid_t			uid;
	struct twheel_user	*user;
	unsigned int		nr_files;
	atomic_long_t		nr_pages;
};

/**
 * struct waker - what wakes the machine for a file on an alarm clock
 * @lock:	guards @alarm's time. It is that of the wheel's next event, as soon as a call that
 *		changed that has ended
 * @alarm:	does nothing when its time comes, for the base has an interrupt of its own then
 */
struct waker {
	spinlock_t	lock;	/* the alarm's time */
	struct alarm	alarm;
};

/**
 * struct file_wheel - an open file
 * @base:	its wheel, NULL until the first timer is added; see the head of the file
 * @lock:	the lock of @base, which appears a little before it
 * @plain:	@base, unless there is a @waker that each call has to look after
 * @opener:	whose it is
 * @ready:	slots that are READY, in the order of expiry
 * @free:	slots that are FREE
 * @nr_free:	how many are on @free
 * @nr_ready:	slots on @ready; read without the lock too
 * @nr_slots:	slots there are, on @nr_pages pages
 * @nr_pages:	pages of slots
 * @cursor:	the slot at which the next DRAIN goes on
 * @no_slot:	why there was no other page of slots, an errno, or SLOTS_TO_COME
 * @first:	the first table, as long as there is one page
 * @tables:	tables of pages of slots, enough for @limit, made with @base. Filled as
 *		needed and kept until the file is closed
 * @limit:	what @max_timers may be
 * @max_timers:	the limit on @nr_used
 * @flags:	what ADD and MOD may be asked for besides VALID_FLAGS
 * @asks:	a timer may have TWHEEL_F_CANCEL_ON_SET: one had, once
 * @clock:	what SETUP has said; @config has the clock that it goes by
 * @waker:	of a file on an alarm clock, made with @base
 * @config:	clock, tick and slack
 * @setup_lock:	guards @max_timers and @config; who has @submit may look without
 * @submit:	see the head of the file. It has @cursor and @no_slot too
 * @wait:	readers and pollers
 * @bounce:	made with @base. A SUBMIT has one even if there is no base.
 * @by_worker: is a worker of io_uring at it? Belongs to who has @submit
 * @spare:	bit 0: a reader has the big room for events
 * @events:	that; made with @base
 */
struct file_wheel {
	struct twheel_base	*base;
	raw_spinlock_t		*lock;		/* slots, lists and counts */
	struct twheel_base	*plain;
	struct opener		*opener;
	struct list_head	ready;
	struct slot		*free;
	u32			nr_free;
	u32			nr_ready;
	u32			nr_slots;
	u32			nr_pages;
	u32			cursor;
	int			no_slot;
	struct slot		***tables;
	struct slot		*first;
	u32			limit;
	u32			max_timers;
	u32			flags;
	bool			asks;
	clockid_t		clock;
	struct waker		*waker;
	struct twheel_config	config;
	spinlock_t		setup_lock;	/* what SETUP says */
	struct mutex		submit;		/* adds, re-arms, cancels, sets up */
	wait_queue_head_t	wait;
	struct bounce		*bounce;
	bool			by_worker;
	unsigned long		spare;
	struct twheel_event	*events;
};

static unsigned int max_timers = 1U << 20;
module_param(max_timers, uint, 0644);
MODULE_PARM_DESC(max_timers, "most timers a file may hold (default 1048576)");

static unsigned int max_user_timers = 1U << 22;
module_param(max_user_timers, uint, 0644);
MODULE_PARM_DESC(max_user_timers,
		 "most timers all files of a user may hold, 0 for no limit (default 4194304)");

static unsigned int max_user_files = 1024;
module_param(max_user_files, uint, 0644);
MODULE_PARM_DESC(max_user_files,
		 "most files a user may have open, 0 for no limit (default 1024)");

static unsigned int min_tick_us = TWHEEL_TICK_MIN_NS / NSEC_PER_USEC;
module_param(min_tick_us, uint, 0644);
MODULE_PARM_DESC(min_tick_us, "smallest tick a file may have, in us (default 100)");

/* Pages of slots in existence, to find a leak at unload. */
static atomic_long_t nr_slot_pages = ATOMIC_LONG_INIT(0);

/* The smallest tick a file may have. */
static u64 min_tick_ns(void)
{
	return clamp_t(u64, (u64)READ_ONCE(min_tick_us) * NSEC_PER_USEC,
		       TWHEEL_TICK_MIN_NS, TWHEEL_TICK_MAX_NS);
}

/* The tick of a file that does not ask for one. */
static u64 default_tick_ns(void)
{
	return max_t(u64, TWHEEL_TICK_NS, min_tick_ns());
}

/* ---- openers -------------------------------------------------------------- */

static DEFINE_MUTEX(openers_lock);
static DEFINE_HASHTABLE(openers, 6);

static struct opener *opener_find(kuid_t uid)
{
	struct opener *opener;

	lockdep_assert_held(&openers_lock);
	hash_for_each_possible(openers, opener, node, __kuid_val(uid))
		if (uid_eq(opener->uid, uid))
			return opener;
	return NULL;
}

static void opener_free(struct opener *opener)
{
	if (opener)
		twheel_user_destroy(opener->user);
	kfree(opener);
}

static struct opener *opener_new(kuid_t uid)
{
	struct opener *opener = kzalloc(sizeof(*opener), GFP_CHARGED);

	if (!opener)
		return NULL;
	opener->uid = uid;
	opener->user = twheel_user_create();
	if (opener->user)
		return opener;
	kfree(opener);
	return NULL;
}

/* Count a file of @opener's. Returns false if that was all. */
static bool opener_charge_file(struct opener *opener)
{
	unsigned int most = READ_ONCE(max_user_files);

	lockdep_assert_held(&openers_lock);
	if (most && opener->nr_files >= most)
		return false;
	opener->nr_files++;
	return true;
}

/*
 * Count a file of the one who has @uid. If they have none yet, @fresh is for them, and *@fresh
 * becomes NULL; without it the answer is NULL. An ERR_PTR() if there may be no more files.
 */
static struct opener *opener_count(kuid_t uid, struct opener **fresh)
{
	struct opener *opener;

	mutex_lock(&openers_lock);
	opener = opener_find(uid);
	if (!opener && *fresh) {
		opener = *fresh;
		*fresh = NULL;
		hash_add(openers, &opener->node, __kuid_val(uid));
	}
	if (opener && !opener_charge_file(opener))
		opener = ERR_PTR(-EDQUOT);
	mutex_unlock(&openers_lock);
	return opener;
}

/* The one who has @uid opens a file. An ERR_PTR() if there is no memory, or no more files. */
static struct opener *opener_get(kuid_t uid)
{
	struct opener *fresh = NULL, *opener = opener_count(uid, &fresh);

	if (opener)
		return opener;
	/* Not under the lock: where memory is scarce others need not wait for it. */
	fresh = opener_new(uid);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	opener = opener_count(uid, &fresh);
	opener_free(fresh);
	return opener;
}

static void opener_put(struct opener *opener)
{
	mutex_lock(&openers_lock);
	if (!--opener->nr_files) {
		WARN_ON(atomic_long_read(&opener->nr_pages));
		hash_del(&opener->node);
		opener_free(opener);
	}
	mutex_unlock(&openers_lock);
}

/*
 * Timers are counted by pages of slots, so that adding one mostly counts nothing, and a
 * file counts for what it once held until it is closed. Returns false if that was all.
 */
static bool opener_charge_page(struct opener *opener)
{
	long most = DIV_ROUND_UP_ULL(READ_ONCE(max_user_timers), PAGE_SLOTS);
	long pages = atomic_long_read(&opener->nr_pages);

	do {
		if (most && pages >= most)
			return false;
	} while (!atomic_long_try_cmpxchg(&opener->nr_pages, &pages, pages + 1));
	return true;
}

static void opener_uncharge_pages(struct opener *opener, u32 nr)
{
	atomic_long_sub(nr, &opener->nr_pages);
}

/*
 * Lock the base, without a look at the clock. If a timer may be armed it is to be unlocked by
 * twheel_unlock_irq(), so that the base is served, else by file_let_go(). sparse knows of neither.
 */
static __always_inline void file_hold(struct file_wheel *file)
{
	raw_spin_lock_irq(file->lock);
	__release(file->lock);
}

static __always_inline void file_let_go(struct file_wheel *file)
{
	__acquire(file->lock);
	raw_spin_unlock_irq(file->lock);
}

/* ---- slots ---------------------------------------------------------------- */

static u64 slot_handle(const struct slot *slot)
{
	return (u64)slot->generation << 32 | slot->timer.queue.data;
}

static struct slot *slot_of(struct twheel_timer *timer)
{
	return container_of(timer, struct slot, timer);
}

static struct slot *slot_at(const struct file_wheel *file, u32 index)
{
	u32 page = index / PAGE_SLOTS;

	return READ_ONCE(file->tables[page / TABLE_PAGES])[page % TABLE_PAGES] +
	       index % PAGE_SLOTS;
}

/* The slot that @handle names, or NULL if it names none, or none any more. */
static __always_inline struct slot *slot_find(const struct file_wheel *file, u64 handle)
{
	unsigned long index = (u32)handle, nr_slots = file->nr_slots;
	struct slot *slot;

	if (index >= nr_slots)
		return NULL;
	/* Nor may a CPU that guesses go on with an index that is too big. */
	slot = slot_at(file, array_index_nospec(index, nr_slots));
	if (slot->state == FREE || slot->generation != handle >> 32)
		return NULL;
	return slot;
}

/* Tables for @file->limit slots, which is not 0. DIV_ROUND_UP() overflows in 32 bits. */
static u32 file_nr_tables(const struct file_wheel *file)
{
	return (file->limit - 1) / TABLE_SLOTS + 1;
}

/* Slots that are not FREE. */
static u32 file_nr_used(const struct file_wheel *file)
{
	return file->nr_slots - file->nr_free;
}

/* Take a free slot. It has its index and its generation already. */
static struct slot *slot_get(struct file_wheel *file)
{
	struct slot *slot;

	slot = file->free;
	if (!slot)
		return NULL;
	file->free = slot->next;
	WRITE_ONCE(file->nr_free, file->nr_free - 1);
	return slot;
}

/*
 * Free @slot, which is in no list and not armed, and put it in front of @next, the free list.
 * Generation 0 is left out: no handle is 0.
 */
static __always_inline void slot_free(struct slot *slot, struct slot *next)
{
	u32 generation = slot->generation + 1;

	slot->state = FREE;
	slot->generation = generation + !generation;
	slot->next = next;
}

static void slot_put(struct file_wheel *file, struct slot *slot)
{
	slot_free(slot, file->free);
	file->free = slot;
	WRITE_ONCE(file->nr_free, file->nr_free + 1);
}

/* Is there more to come after an event of a timer with this @interval and these @flags? */
static bool goes_on(u64 interval, u32 flags)
{
	return interval || (flags & TWHEEL_F_KEEP);
}

/* The event of @slot, which is on no list and not armed, is ready. */
static void slot_queue(struct file_wheel *file, struct slot *slot)
{
	slot->state = READY;
	list_add_tail(&slot->link, &file->ready);
	WRITE_ONCE(file->nr_ready, file->nr_ready + 1);
}

static noinline u64 slot_tolerance(const struct slot *slot)
{
	return wheel_decimal_time(slot->timer.queue.flags);
}

/* Put @slot into the wheel. */
static __always_inline void slot_add(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	if (likely(!slot->timer.queue.flags))
		twheel_add_locked(file->base, &slot->timer, deadline);
	else
		twheel_add_range_locked(file->base, &slot->timer, deadline, slot_tolerance(slot));
}

static void slot_arm(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	slot->timer.cookie = deadline;
	/* While it was out of the wheel the clock was set. */
	if (unlikely(slot->flags & SLOT_SET)) {
		slot->flags |= SLOT_EARLY;
		slot_queue(file, slot);
		return;
	}
	slot->flags &= ~SLOT_EARLY;
	slot->state = ARMED;
	slot_add(file, slot, deadline);
}

/* The event of @slot, which is READY, will not be read. */
static void slot_unqueue(struct file_wheel *file, struct slot *slot)
{
	list_del(&slot->link);
	WRITE_ONCE(file->nr_ready, file->nr_ready - 1);
}

/* The base, for who has not @file->submit; NULL if there is none yet. */
static struct twheel_base *file_base(const struct file_wheel *file)
{
	/* Pairs with the release in file_create(): what is made with it is there too. */
	return smp_load_acquire(&file->base);
}

/* Put @slots, a new page, to use. What is not set here is set when a slot is taken. */
static void slots_add_page(struct file_wheel *file, struct slot *slots)
{
	const u32 first = file->nr_slots;
	u32 page = file->nr_pages, i;

	atomic_long_inc(&nr_slot_pages);
	for (i = 0; i < PAGE_SLOTS; i++) {
		struct slot *slot = &slots[i];

		slot->next = slot + 1;
		slot->timer.queue.word = 0;
		slot->timer.queue.data = first + i;
		memset_startat(slot, 0, generation);	/* FREE */
		slot->generation = 1;
	}
	file->tables[page / TABLE_PAGES][page % TABLE_PAGES] = slots;

	file_hold(file);
	slots[PAGE_SLOTS - 1].next = file->free;
	file->free = slots;
	file->nr_free += PAGE_SLOTS;
	file->nr_slots += PAGE_SLOTS;
	file->nr_pages++;
	file_let_go(file);
}

/* A page of slots, and the table that it will be in. Returns it, or an ERR_PTR(). */
static struct slot *slots_alloc(struct file_wheel *file)
{
	struct slot **old = file->tables[file->nr_pages / TABLE_PAGES], **table, *slots;

	if (!file->nr_pages) {
		file->tables[0] = &file->first;
	} else if (!old || old == &file->first) {
		table = (void *)get_zeroed_page(GFP_CHARGED);
		if (!table)
			return ERR_PTR(-ENOMEM);
		if (old)
			table[0] = file->first;
		/* Pairs with the look into it. A lookup in the old one finds the same meanwhile. */
		smp_store_release(&file->tables[file->nr_pages / TABLE_PAGES], table);
	}
	if (!opener_charge_page(file->opener))
		return ERR_PTR(-EDQUOT);
	slots = (void *)__get_free_page(GFP_CHARGED);
	if (!slots) {
		opener_uncharge_pages(file->opener, 1);
		return ERR_PTR(-ENOMEM);
	}
	return slots;
}

static void slots_unalloc(struct file_wheel *file, struct slot *slots)
{
	opener_uncharge_pages(file->opener, 1);
	free_page((unsigned long)slots);
}

/* Room for events, tables, and a page of slots. Returns the slots, or an ERR_PTR(). */
static struct slot *file_alloc(struct file_wheel *file)
{
	file->events = kmalloc_array(CHUNK_EVENTS, sizeof(*file->events), GFP_CHARGED);
	file->tables = kvcalloc(file_nr_tables(file), sizeof(*file->tables), GFP_CHARGED);
	return file->events && file->tables ? slots_alloc(file) : ERR_PTR(-ENOMEM);
}

/* Undo file_alloc(). */
static void file_unalloc(struct file_wheel *file, struct slot *slots)
{
	if (!IS_ERR(slots))
		slots_unalloc(file, slots);
	kvfree(file->tables);
	file->tables = NULL;
	kfree(file->events);
	file->events = NULL;
}

#define ALARM_CLOCKS	(BIT(CLOCK_REALTIME_ALARM) | BIT(CLOCK_BOOTTIME_ALARM))
#define CLOCKS		(BIT(CLOCK_REALTIME) | BIT(CLOCK_MONOTONIC) | BIT(CLOCK_BOOTTIME) | \
			 ALARM_CLOCKS)

static bool clock_is_valid(clockid_t clock)
{
	return clock >= 0 && clock < BITS_PER_LONG && (BIT(clock) & CLOCKS);
}

/* One that is valid. */
static bool clock_is_alarm(clockid_t clock)
{
	return BIT(clock) & ALARM_CLOCKS;
}

/* By which clock a file on @clock goes. */
static clockid_t clock_of(clockid_t clock)
{
	if (!clock_is_alarm(clock))
		return clock;
	return clock == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME : CLOCK_BOOTTIME;
}

static ALARM_RETURNS waker_fired(struct alarm *alarm, ktime_t now)
{
	return ALARM_DONE;
}

static struct waker *waker_new(clockid_t clock)
{
	struct waker *waker = kzalloc(sizeof(*waker), GFP_CHARGED);

	if (!waker)
		return NULL;
	spin_lock_init(&waker->lock);
	alarm_init(&waker->alarm,
		   clock == CLOCK_REALTIME_ALARM ? ALARM_REALTIME : ALARM_BOOTTIME, waker_fired);
	return waker;
}

static void waker_free(struct waker *waker)
{
	if (waker)
		alarm_cancel(&waker->alarm);
	kfree(waker);
}

static struct bounce *bounce_alloc(void)
{
	return kmalloc(sizeof(struct bounce), GFP_CHARGED);
}

/* The base, and what wakes the machine for it. */
static struct twheel_base *file_create_base(struct file_wheel *file)
{
	struct waker *waker = NULL;
	struct twheel_base *base;

	if (clock_is_alarm(file->clock)) {
		waker = waker_new(file->clock);
		if (!waker)
			return ERR_PTR(-ENOMEM);
	}
	base = twheel_create(&file->config);
	if (IS_ERR(base)) {
		waker_free(waker);
		return base;
	}
	WRITE_ONCE(file->waker, waker);
	return base;
}

/*
 * Make the base, and all else that the first timer needs. Where that cannot be there is nothing
 * more than before, and SETUP goes on.
 */
static int file_create(struct file_wheel *file)
{
	struct bounce *bounce = file->bounce ?: bounce_alloc();
	struct slot *slots = bounce ? file_alloc(file) : ERR_PTR(-ENOMEM);
	struct twheel_base *base;

	lockdep_assert_held(&file->submit);
	base = IS_ERR(slots) ? ERR_CAST(slots) : file_create_base(file);
	if (IS_ERR(base)) {
		file_unalloc(file, slots);
		if (bounce != file->bounce)
			kfree(bounce);
		return PTR_ERR(base);
	}
	file->bounce = bounce;
	file->lock = twheel_raw_lock(base);
	file->plain = file->waker ? NULL : base;
	/* Pairs with the acquire in file_base(). */
	smp_store_release(&file->base, base);
	slots_add_page(file, slots);
	return 0;
}

/* Add a page of slots. The caller has @file->submit, so that nobody else does. */
static int slots_grow(struct file_wheel *file)
{
	struct slot *slots;

	if (!file->base)
		return file_create(file);
	slots = slots_alloc(file);
	if (IS_ERR(slots))
		return PTR_ERR(slots);
	/* More than a page of timers are what a wheel is for. */
	if (twheel_grow(file->base)) {
		slots_unalloc(file, slots);
		return -ENOMEM;
	}
	slots_add_page(file, slots);
	return 0;
}

/*
 * See to it that @nr slots are free, within the limits. Where that cannot be, those who
 * find none free will say why. Readers may free some meanwhile, and only submitters, of
 * which the caller is the only one, take any.
 */
static void slots_reserve(struct file_wheel *file, u32 nr)
{
	int err = 0;

	while (!err && READ_ONCE(file->nr_free) < nr && file->nr_slots < file->max_timers) {
		err = slots_grow(file);
		file->no_slot = err ?: SLOTS_TO_COME;
	}
}

static void slots_free_all(struct file_wheel *file)
{
	u32 page;

	if (!file->tables)
		return;
	for (page = 0; page < file->nr_pages; page++) {
		free_page((unsigned long)
			  file->tables[page / TABLE_PAGES][page % TABLE_PAGES]);
		cond_resched();
	}
	atomic_long_sub(file->nr_pages, &nr_slot_pages);
	opener_uncharge_pages(file->opener, file->nr_pages);
	for (page = 0; page < file_nr_tables(file); page++)
		if (file->tables[page] != &file->first)
			free_page((unsigned long)file->tables[page]);
	kvfree(file->tables);
}

/* Memory of a file with @nr_pages pages of slots. There is one at least if there is a base. */
static u64 file_mem_bytes(const struct file_wheel *file, u32 nr_pages)
{
	u64 tables = nr_pages > 1 ? DIV_ROUND_UP(nr_pages, TABLE_PAGES) : 0;

	if (!nr_pages)
		return sizeof(*file);
	return sizeof(*file) + roundup_pow_of_two(sizeof(*file->bounce)) +
	       CHUNK_EVENTS * sizeof(*file->events) +
	       twheel_size(file->base) +
	       file_nr_tables(file) * sizeof(*file->tables) +
	       (nr_pages + tables) * PAGE_SIZE;
}

/* ---- expiry ---------------------------------------------------------------- */

static void file_expired(struct twheel_base *base, struct twheel_timer **timers,
			 unsigned int nr)
{
	struct file_wheel *file = twheel_owner(base);
	struct list_head *last = file->ready.prev;
	unsigned int i;

	/* As list_add_tail() of each, without its checks. */
	for (i = 0; i < nr; i++) {
		struct slot *slot = slot_of(timers[i]);

		slot->state = READY;
		slot->link.prev = last;
		last->next = &slot->link;
		last = &slot->link;
	}
	last->next = &file->ready;
	file->ready.prev = last;
	WRITE_ONCE(file->nr_ready, file->nr_ready + nr);
}

/*
 * On every batch, not only when the ready list was empty: who polls edge-triggered
 * and leaves events unread waits for just that.
 */
static void file_wake(struct file_wheel *file)
{
	wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
}

/* ---- alarm clocks ---------------------------------------------------------- */

/*
 * The wheel's next event is what the machine has to wake up for. That may be a little early: an
 * event may be that timers are moved, or be of one that was cancelled.
 */
static void waker_set(struct file_wheel *file)
{
	struct twheel_stats stats;

	lockdep_assert_held(&file->waker->lock);
	twheel_get_stats(file->base, &stats);
	if (stats.pending)
		alarm_start_timer(&file->waker->alarm, stats.next, false);
	else
		alarm_try_to_cancel(&file->waker->alarm);
}

/* Called after whatever may have changed that, in task context. */
static void file_update_waker(struct file_wheel *file)
{
	if (likely(!READ_ONCE(file->waker)) || !file_base(file))
		return;
	spin_lock_bh(&file->waker->lock);
	waker_set(file);
	spin_unlock_bh(&file->waker->lock);
}

/* The same in the sink, which waits for nobody on PREEMPT_RT. */
static bool file_try_update_waker(struct file_wheel *file)
{
	if (likely(!READ_ONCE(file->waker)))
		return true;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		spin_lock(&file->waker->lock);
	else if (!spin_trylock(&file->waker->lock))
		return false;
	waker_set(file);
	spin_unlock(&file->waker->lock);
	return true;
}

/*
 * On PREEMPT_RT a task that was woken by another CPU may have preempted that at once, with the wait
 * queue's lock held. Nobody's timers on this CPU may wait for what the task does then.
 */
static bool file_sink_wake(struct twheel_base *base)
{
	struct file_wheel *file = twheel_owner(base);

	if (!file_try_update_waker(file))
		return false;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT)) {
		file_wake(file);
		return true;
	}
	if (!spin_trylock(&file->wait.lock))
		return false;
	wake_up_locked_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	spin_unlock(&file->wait.lock);
	return true;
}

static const struct twheel_sink file_sink = {
	.expired	= file_expired,
	.wake		= file_sink_wake,
};

/* Of a file on an alarm clock. */
static const struct twheel_sink alarm_sink = {
	.expired	= file_expired,
	.wake		= file_sink_wake,
	.always		= true,
};

/*
 * The clock was set. Those who asked for an event then get one: at once, or in the one that is
 * ready. Whatever is out of the wheel or being read has it when it is armed again. Returns whether
 * there is one more that is ready.
 */
static bool slot_was_set(struct file_wheel *file, struct slot *slot)
{
	if (slot->state == FREE || slot->state == IDLE || !(slot->flags & TWHEEL_F_CANCEL_ON_SET))
		return false;
	slot->flags |= SLOT_SET;
	if (slot->state != ARMED || !twheel_cancel_locked(file->base, &slot->timer))
		return false;
	slot->flags |= SLOT_EARLY;
	slot_queue(file, slot);
	return true;
}

/*
 * Look at all slots, if any asks, a handful in each lock hold. Nothing that may wait for a user is
 * waited for:
 * @file->submit is not taken. A timer that is added meanwhile where this has been was added after
 * the clock was set.
 */
static void file_was_set(struct twheel_base *base)
{
	struct file_wheel *file = twheel_owner(base);
	u32 at = 0, end;

	do {
		unsigned long flags;
		bool ready = false;

		twheel_lock(base, &flags);
		/* Not before the lock is held: a timer that is armed asks from then on. */
		if (!READ_ONCE(file->asks))
			at = file->nr_slots;
		for (end = min(at + TWHEEL_HOLD_OPS, file->nr_slots); at < end; at++)
			ready |= slot_was_set(file, slot_at(file, at));
		twheel_unlock(base, flags);
		if (ready)
			file_wake(file);
		cond_resched();
	} while (at < READ_ONCE(file->nr_slots));
}

/* ---- clocks ---------------------------------------------------------------- */

#ifdef CONFIG_TIME_NS
/* The time namespace whose clocks are the host's: that of most callers. */
static const struct time_namespace *host_time_ns __ro_after_init;

static __init void host_time_ns_init(void)
{
	host_time_ns = init_task.nsproxy->time_ns;
}

/* Is the caller in another? A task that exits is in none. */
static __always_inline bool clock_is_shifted(void)
{
	const struct nsproxy *nsproxy = current->nsproxy;

	return nsproxy && nsproxy->time_ns != host_time_ns;
}

/*
 * What @clock, of a file, is ahead by in the caller's time namespace. As with timerfd it is
 * the namespace of who calls that counts, not of who opened the file. The kernel's own
 * timens_ktime_to_host() is not exported before 7.2.
 */
static noinline s64 clock_shift(clockid_t clock)
{
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	/* The time of day is everybody's. */
	if (clock == CLOCK_REALTIME)
		return 0;
	return timespec64_to_ktime(clock == CLOCK_BOOTTIME ? offsets->boottime :
				   offsets->monotonic);
}
#else
static __init void host_time_ns_init(void) { }
static bool clock_is_shifted(void) { return false; }
static s64 clock_shift(clockid_t clock) { return 0; }
#endif

/* The same of a caller who may be in none other. */
static __always_inline s64 clock_offset(clockid_t clock)
{
	return unlikely(clock_is_shifted()) ? clock_shift(clock) : 0;
}

/* @time and @offset. The clock's zero and its end, which is never, are the same for all. */
static ktime_t time_shift(ktime_t time, s64 offset)
{
	if (!offset || time == KTIME_MAX)
		return time;
	return offset < 0 ? max_t(s64, time + offset, 0) : ktime_add_safe(time, offset);
}

/**
 * struct moment - what times are reckoned from in a lock hold
 * @now:	of the file's clock
 * @offset:	clock_offset(): what the caller's clock is ahead of it
 */
struct moment {
	ktime_t	now;
	s64	offset;
};

/* Lock the base, which there must be. To be unlocked by twheel_unlock(). */
static struct moment file_lock(struct file_wheel *file, unsigned long *flags)
{
	struct moment m = { .offset = clock_offset(file->config.clock) };

	m.now = twheel_lock(file->base, flags);
	return m;
}

/*
 * Called for operation @i of a chunk. If the lock has been held for long enough, let interrupts
 * have their turn.
 */
static void file_relock(struct file_wheel *file, unsigned long *flags, struct moment *m, u32 i)
{
	if (CHUNK_IS_HOLD || !i || i % TWHEEL_HOLD_OPS)
		return;
	twheel_unlock(file->base, *flags);
	*m = file_lock(file, flags);
}

/* ---- operations ------------------------------------------------------------ */

/* time_is_valid() of what is periodic, or may be late. */
static noinline bool times_are_valid(const struct file_wheel *file, u64 expires, u64 interval,
				     u64 tolerance, u32 flags)
{
	/* Either is below 2^63, or one of them is seen: their sum does not get past 2^64. */
	if ((s64)(expires | interval | tolerance | (expires + tolerance)) < 0)
		return false;
	return interval ? interval >= file->config.tick_ns : !(flags & TWHEEL_F_DELAY);
}

/* Is what all operations that arm have in common all right? */
static __always_inline bool time_is_valid(const struct file_wheel *file,
					  const struct twheel_op *op)
{
	if (unlikely(op->interval_ns | op->tolerance_ns))
		return times_are_valid(file, op->expires_ns, op->interval_ns, op->tolerance_ns,
				       op->flags);
	if (unlikely((s64)op->expires_ns < 0 || (op->flags & TWHEEL_F_DELAY)))
		return false;
	return true;
}

/* Has it nothing but a handle, and flags? */
static bool op_is_bare(const struct twheel_op *op)
{
	return !(op->user_data | op->expires_ns | op->interval_ns | op->tolerance_ns);
}

/*
 * All that can be said against @op, an @opcode, without looking at any timer. @also are the flags
 * that may be asked for besides VALID_FLAGS.
 */
static __always_inline bool op_is_valid(const struct file_wheel *file,
					const struct twheel_op *op, u32 opcode, u32 also)
{
	if (op->res || op->reserved)
		return false;
	switch (opcode) {
	case TWHEEL_OP_ADD:
		return !(op->flags & ~(VALID_FLAGS | also)) && !op->handle &&
		       time_is_valid(file, op);
	case TWHEEL_OP_MOD:
		return !(op->flags & ~(VALID_FLAGS | also | TWHEEL_F_PENDING)) &&
		       !op->user_data && time_is_valid(file, op);
	case TWHEEL_OP_CANCEL:
		return !op->flags && op_is_bare(op);
	case TWHEEL_OP_QUERY:
		return !(op->flags & ~TWHEEL_F_ABS) && op_is_bare(op);
	}
	return false;
}

/* Out of the way of timers that are exact. */
static noinline u16 tolerance_of(u64 tolerance)
{
	return wheel_decimal_of(tolerance);
}

/* @slot is what @op says. Returns the deadline that it has to be armed for. */
static __always_inline ktime_t slot_set(struct slot *slot, const struct twheel_op *op,
					const struct moment *m)
{
	ktime_t deadline;

	if (op->flags & TWHEEL_F_ABS)
		deadline = time_shift(op->expires_ns, -m->offset);
	else
		deadline = min_t(u64, m->now + op->expires_ns, KTIME_MAX);
	slot->timer.cookie = deadline;
	slot->interval = op->interval_ns;
	slot->timer.queue.flags = likely(!op->tolerance_ns) ? 0 : tolerance_of(op->tolerance_ns);
	slot->flags = op->flags & SLOT_FLAGS;
	slot->state = ARMED;
	return deadline;
}

/*
 * Between these, under the base's lock, user memory is stored to, and what is not there is not
 * waited for. Where preemption is counted the lock alone sees to that.
 */
#define TELL_COUNTS	(!IS_ENABLED(CONFIG_PREEMPT_COUNT) || \
			 IS_ENABLED(CONFIG_PROVE_LOCKING) || IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP))

static __always_inline void tell_begin(void)
{
	if (TELL_COUNTS)
		pagefault_disable();
}

static __always_inline void tell_end(void)
{
	if (TELL_COUNTS)
		pagefault_enable();
}

/*
 * Tell the caller of one operation, whose memory @user is, what will come out of it: @res, and
 * @value in @out. That is in the lock hold in which it is done then, so that both are done or
 * neither. What is not there is not waited for. @user->res is 0 before, so that an add does not
 * store it. If an operation lies on two pages, and only one of them can be written to any more, it
 * is left as it was.
 */
static __always_inline bool op_tell(struct twheel_op __user *user, __u64 __user *out, u64 value,
				    int res)
{
	const bool both = !__builtin_constant_p(res) || res;
	bool told = false;

	tell_begin();
	if (user_write_access_begin(user, TWHEEL_OP_SIZE_VER0)) {
		if (both)
			unsafe_put_user(res, &user->res, end);
		unsafe_put_user(value, out, undo);
		told = true;
		goto end;
undo:
		if (both)
			unsafe_put_user(0, &user->res, end);
end:
		user_write_access_end();
	}
	tell_end();
	return told;
}

/* @user is NULL in a batch, whose results are stored later, here and below. */
static __always_inline int op_add(struct file_wheel *file, struct twheel_op *op,
				  const struct moment *m, struct twheel_op __user *user)
{
	struct slot *slot;

	if (file_nr_used(file) >= file->max_timers)
		return -EDQUOT;
	slot = slot_get(file);
	if (unlikely(!slot))
		return file->no_slot;
	op->handle = slot_handle(slot);
	if (user && !op_tell(user, &user->handle, op->handle, 0)) {
		slot_put(file, slot);
		return -EFAULT;
	}
	slot->user_data = op->user_data;
	slot_add(file, slot, slot_set(slot, op, m));
	return 0;
}

/*
 * May @slot, which is not ARMED or has events of the past, be armed with such @interval and @flags?
 *
 * An event that is being read counts as read: the reader will find that the slot is not its
 * own any more, and leave it alone. But what the caller reads last must be what has no
 * TWHEEL_EV_MORE. So the last event is waited for, and so is any that the next, if it is
 * to be the last, could overtake:
 *
 *	CPU 0: read()				CPU 1: MOD, and a read() of its own
 *	slot is READING, event 1 in the bounce
 *						without KEEP: would be armed, and expire;
 *						event 2, the last, is read. Its memory is freed
 *	copies event 1, which speaks of that
 */
static int slot_may_rearm(const struct slot *slot, u64 interval, u32 flags)
{
	const bool reading = slot->state == READING;

	if (slot->state != ARMED && (flags & TWHEEL_F_PENDING))
		return -ENOENT;
	if (reading && (!goes_on(slot->interval, slot->flags) || slot->nr_past == U16_MAX))
		return -EALREADY;
	if ((reading || slot->nr_past) && !goes_on(interval, flags))
		return -EALREADY;
	return 0;
}

/* Take @slot, which is not ARMED, from wherever it is, to arm it. */
static void slot_take(struct file_wheel *file, struct slot *slot)
{
	if (slot->state == READY) {
		slot_unqueue(file, slot);
	} else if (slot->state == READING) {
		slot->reader = NULL;
		slot->nr_past++;
	}
}

/* Put @slot, which may be in the wheel, there anew. Returns whether it was. */
static __always_inline bool slot_mod(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	if (likely(!slot->timer.queue.flags))
		return twheel_mod_locked(file->base, &slot->timer, deadline);
	return twheel_mod_range_locked(file->base, &slot->timer, deadline, slot_tolerance(slot));
}

static __always_inline int op_mod(struct file_wheel *file, struct twheel_op *op,
				  const struct moment *m, struct twheel_op __user *user)
{
	struct slot *slot = slot_find(file, op->handle);

	if (!slot)
		return -ENOENT;
	if (slot->state != ARMED || slot->nr_past) {
		int err = slot_may_rearm(slot, op->interval_ns, op->flags);

		if (err)
			return err;
	}
	op->user_data = slot->user_data;
	if (user && !op_tell(user, &user->user_data, op->user_data, slot->state == ARMED))
		return -EFAULT;
	if (slot->state != ARMED)
		slot_take(file, slot);
	return slot_mod(file, slot, slot_set(slot, op, m));
}

/*
 * Where an event is being read, be it of the past, it is too late to say that none will be,
 * and too early to say that one was:
 *
 *	CPU 0: read()				CPU 1: cancel
 *	slot is READING, event in the bounce
 *	unlock
 *						lock, finds READING: -EALREADY
 *	copies the event to the reader, or fails to
 *	lock, frees the slot, or makes it READY
 */
static __always_inline int op_cancel(struct file_wheel *file, struct twheel_op *op,
				     struct twheel_op __user *user)
{
	struct slot *slot = slot_find(file, op->handle);
	bool armed = false;

	if (!slot)
		return -ENOENT;
	if (slot->state == READING || slot->nr_past)
		return -EALREADY;
	op->user_data = slot->user_data;
	if (user && !op_tell(user, &user->user_data, op->user_data, slot->state == ARMED))
		return -EFAULT;
	if (slot->state == ARMED)
		armed = twheel_cancel_locked(file->base, &slot->timer);
	else if (slot->state == READY)
		slot_unqueue(file, slot);
	slot_put(file, slot);
	return armed;
}

/* Write down the deadline of @slot, or with TWHEEL_F_ABS not set how long it takes. */
static void op_set_expires(struct twheel_op *op, const struct slot *slot,
			   const struct moment *m)
{
	ktime_t deadline = slot->timer.cookie;

	op->expires_ns = op->flags & TWHEEL_F_ABS ? time_shift(deadline, m->offset) :
			 max_t(ktime_t, deadline - m->now, 0);
	/* As much as there is time for: what is told can be armed again. */
	op->tolerance_ns = min_t(u64, slot_tolerance(slot), KTIME_MAX - op->expires_ns);
}

static int op_query(const struct file_wheel *file, struct twheel_op *op,
		    const struct moment *m)
{
	const struct slot *slot = slot_find(file, op->handle);

	if (!slot)
		return -ENOENT;
	op->user_data = slot->user_data;
	op->interval_ns = slot->interval;
	op_set_expires(op, slot, m);
	switch (slot->state) {
	case ARMED:
		return TWHEEL_STATE_ARMED;
	case IDLE:
		return TWHEEL_STATE_IDLE;
	default:
		return TWHEEL_STATE_READY;
	}
}

/* Do @op, an @opcode. */
static __always_inline int op_do(struct file_wheel *file, struct twheel_op *op, u32 opcode,
				 const struct moment *m, struct twheel_op __user *user)
{
	switch (opcode) {
	case TWHEEL_OP_ADD:
		return op_add(file, op, m, user);
	case TWHEEL_OP_MOD:
		return op_mod(file, op, m, user);
	case TWHEEL_OP_QUERY:
		return op_query(file, op, m);
	default:
		return op_cancel(file, op, user);
	}
}

/* Do @op, an @opcode, if it is right. */
static __always_inline int op_run_as(struct file_wheel *file, struct twheel_op *op, u32 opcode,
				     u32 also, const struct moment *m)
{
	if (unlikely(!op_is_valid(file, op, opcode, also)))
		return -EINVAL;
	return op_do(file, op, opcode, m, NULL);
}

/* One operation of a batch. @also is as in op_is_valid(). Each kind is compiled by itself. */
static __always_inline int op_run(struct file_wheel *file, struct twheel_op *op, u32 also,
				  const struct moment *m)
{
	const u32 opcode = op->op;

	if (likely(opcode == TWHEEL_OP_ADD))
		return op_run_as(file, op, TWHEEL_OP_ADD, also, m);
	if (likely(opcode == TWHEEL_OP_MOD))
		return op_run_as(file, op, TWHEEL_OP_MOD, also, m);
	if (likely(opcode == TWHEEL_OP_CANCEL))
		return op_run_as(file, op, TWHEEL_OP_CANCEL, also, m);
	return op_run_as(file, op, opcode, also, m);
}

static bool op_is_add(const struct file_wheel *file, const struct twheel_op *op)
{
	return op->op == TWHEEL_OP_ADD && op_is_valid(file, op, TWHEEL_OP_ADD, file->flags);
}

/*
 * Have some slots for the @nr operations, if these begin with an add and none is free. Mostly all
 * are adds or none is. The base is made if there is any add that is right, and not for another.
 */
static void ops_reserve(struct file_wheel *file, const struct twheel_op *ops, u32 nr)
{
	u32 most = file->base ? min(nr, 1U) : nr, i;

	file->no_slot = SLOTS_TO_COME;
	if (READ_ONCE(file->nr_free))
		return;
	for (i = 0; i < most; i++) {
		if (op_is_add(file, &ops[i])) {
			slots_reserve(file, 1);
			return;
		}
	}
}

/* Without a base there are no timers, and if there was to be one it could not be made. */
static void ops_refuse(struct file_wheel *file, struct twheel_op *ops, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct twheel_op *op = &ops[i];

		if (!op_is_valid(file, op, op->op, file->flags))
			op->res = -EINVAL;
		else
			op->res = op->op == TWHEEL_OP_ADD ? file->no_slot : -ENOENT;
	}
}

/*
 * See to it that timers which the @nr operations arm are told of no time that the clock was set
 * before. Only those who ask to be told wait for that.
 */
static void ops_settle(struct file_wheel *file, const struct twheel_op *ops, u32 nr)
{
	u32 i;

	if (likely(!file->flags))
		return;
	for (i = 0; i < nr; i++) {
		if (ops[i].flags & TWHEEL_F_CANCEL_ON_SET) {
			WRITE_ONCE(file->asks, true);
			twheel_tell_set(file->base);
			return;
		}
	}
}

static u32 ops_count_failed(const struct twheel_op *ops, u32 nr)
{
	u32 i, failed = 0;

	for (i = 0; i < nr; i++)
		failed += ops[i].res < 0;
	return failed;
}

/* Between two operations of a chunk get some more slots, for which no lock may be held. */
static noinline void ops_reserve_more(struct file_wheel *file, unsigned long *flags,
				      struct moment *m)
{
	twheel_unlock(file->base, *flags);
	slots_reserve(file, 1);
	*m = file_lock(file, flags);
}

/* Do the @nr operations, at most CHUNK_OPS. Returns whether any has failed. */
static noinline bool ops_do(struct file_wheel *file, struct twheel_op *ops, u32 nr)
{
	const struct twheel_op *end = ops + nr;
	const u32 also = file->flags;
	struct twheel_op *op = ops;
	unsigned long flags;
	struct moment m;
	int all = 0;		/* results, of which the sign is looked at */

	lockdep_assert_held(&file->submit);
	ops_reserve(file, ops, nr);
	if (!file->base) {
		ops_refuse(file, ops, nr);
		return true;
	}
	ops_settle(file, ops, nr);
	m = file_lock(file, &flags);
	while (op < end) {
		int res;

		file_relock(file, &flags, &m, op - ops);
		res = op_run(file, op, also, &m);
		if (unlikely(res == SLOTS_TO_COME)) {
			/* Once more: there is one then, or it is known why not. */
			ops_reserve_more(file, &flags, &m);
			continue;
		}
		op->res = res;
		all |= res;
		op++;
	}
	twheel_unlock(file->base, flags);
	return all < 0;
}

/* Nobody has been told of the timer that @op has added. Its event may be out already. */
static void op_undo_add(struct file_wheel *file, const struct twheel_op *op)
{
	struct slot *slot = slot_find(file, op->handle);

	if (!slot)
		return;
	if (slot->state == ARMED)
		twheel_cancel_locked(file->base, &slot->timer);
	else if (slot->state == READY)
		slot_unqueue(file, slot);
	slot->reader = NULL;		/* whoever that is will leave it alone */
	slot->nr_past = 0;
	slot_put(file, slot);
}

/* Undo the adds among @ops, whose handles the caller could not be told. */
static void ops_undo_adds(struct file_wheel *file, struct twheel_op *ops, u32 nr)
{
	unsigned long flags;
	struct moment m;
	u32 i;

	lockdep_assert_held(&file->submit);
	if (!file->base)
		return;
	m = file_lock(file, &flags);
	for (i = 0; i < nr; i++) {
		file_relock(file, &flags, &m, i);
		if (ops[i].op == TWHEEL_OP_ADD && !ops[i].res)
			op_undo_add(file, &ops[i]);
	}
	twheel_unlock(file->base, flags);
}

/* ---- ioctl ------------------------------------------------------------------ */

/*
 * How many bytes at @user can be written? That is found out by writing, on each page, what is
 * there already: a page that comes slowly, or must be copied, is waited for here.
 */
static size_t can_write(u8 __user *user, size_t size)
{
	size_t at = 0;
	u8 byte;

	while (at < size && !get_user(byte, user + at) && !put_user(byte, user + at))
		at += PAGE_SIZE - offset_in_page(user + at);
	return min(at, size);
}

/* How much is there of an operation that takes @size bytes of user memory. */
static size_t op_known(size_t size)
{
	return min(size, sizeof(struct twheel_op));
}

/*
 * Read an operation from user memory. Its result will be stored there: that this can be done
 * is found out before anything is.
 */
static int op_fetch(struct twheel_op *op, void __user *user, size_t size)
{
	int err = copy_struct_from_user(op, sizeof(*op), user, size);

	if (!err && can_write(user, op_known(size)) < op_known(size))
		err = -EFAULT;
	return err;
}

/* Give an operation back, with what came out of it. One that failed may never have come. */
static int op_store(const struct twheel_op *op, struct twheel_op __user *user, size_t size)
{
	if (op->res < 0)
		return put_user(op->res, &user->res);
	return copy_to_user(user, op, op_known(size)) ? -EFAULT : 0;
}

/* ---- one operation ------------------------------------------------------------ */

/* What @op, an @opcode, needs to know of the time. Reading the clock is dear. */
static __always_inline struct moment op_moment(const struct file_wheel *file,
					       const struct twheel_op *op, u32 opcode)
{
	struct moment m = { };

	if (opcode == TWHEEL_OP_CANCEL)
		return m;
	if (op->flags & TWHEEL_F_ABS)
		m.offset = clock_offset(file->config.clock);
	else
		m.now = twheel_now(file->base);
	return m;
}

/*
 * Do @op, an @opcode, which is valid, and store at @user what came out of it; QUERY's is not. If
 * that cannot be done at once it is -EFAULT, and nothing was done.
 */
static __always_inline int op_do_one(struct file_wheel *file, struct twheel_op *op, u32 opcode,
				     struct twheel_op __user *user)
{
	struct moment m;
	int res;

	lockdep_assert_held(&file->submit);
	m = op_moment(file, op, opcode);
	file_hold(file);
	res = op_do(file, op, opcode, &m, user);
	if (opcode == TWHEEL_OP_CANCEL)
		file_let_go(file);
	else
		twheel_unlock_irq(file->base);
	return res;
}

/* The same where there may be no base, nor a slot for an add. */
static int op_do_first(struct file_wheel *file, struct twheel_op *op,
		       struct twheel_op __user *user)
{
	bool adds = op->op == TWHEEL_OP_ADD;

	slots_reserve(file, adds);
	if (!file->base)
		return adds ? file->no_slot : -ENOENT;
	ops_settle(file, op, 1);
	return op_do_one(file, op, op->op, user);
}

/*
 * Again and again, while what is stored to goes away after it has been looked at: each time it is
 * asked for again.
 */
static int op_do_surely(struct file_wheel *file, struct twheel_op *op,
			struct twheel_op __user *user)
{
	int res;

	while ((res = op_do_first(file, op, user)) == -EFAULT) {
		if (can_write((u8 __user *)user, TWHEEL_OP_SIZE_VER0) < TWHEEL_OP_SIZE_VER0)
			break;
		if (signal_pending(current))
			return -ERESTARTSYS;
		cond_resched();
	}
	return res;
}

/* TWHEEL_IOC_ADD, _MOD, _CANCEL and _QUERY: one operation; the call returns its result. */
static long file_op(struct file_wheel *file, void __user *user, size_t size, u32 opcode)
{
	struct twheel_op op;
	u32 given;
	int err;

	lockdep_assert_held(&file->submit);
	err = op_fetch(&op, user, size);
	if (err)
		return err;
	given = op.op;
	op.op = given ?: opcode;
	if (op.op != opcode || !op_is_valid(file, &op, opcode, file->flags))
		return -EINVAL;
	op.res = op_do_surely(file, &op, user);
	op.op = given;
	if (opcode == TWHEEL_OP_QUERY && op.res >= 0 && op_store(&op, user, size))
		return -EFAULT;
	return op.res;
}

/* Where the next operation of @batch is. */
static void __user *batch_next(const struct twheel_batch *batch)
{
	return u64_to_user_ptr(batch->ops + (u64)batch->nr_done * batch->op_size);
}

/* Of @nr operations of the first version, that lie close together, make such as they are now. */
static void ops_widen(struct twheel_op *ops, u32 nr)
{
	const void *end = (void *)ops + nr * TWHEEL_OP_SIZE_VER0;

	while (nr--) {
		end -= TWHEEL_OP_SIZE_VER0;
		memmove(&ops[nr], end, TWHEEL_OP_SIZE_VER0);
		ops[nr].tolerance_ns = 0;
	}
}

/* batch_fetch() where the operations lie close together. */
static u32 ops_fetch(struct twheel_op *ops, u32 nr, void __user *user, size_t op_size)
{
	size_t size = nr * op_size;

	size -= copy_from_user(ops, user, size);
	nr = can_write(user, size) / op_size;
	if (op_size < sizeof(*ops))
		ops_widen(ops, nr);
	return nr;
}

/* Read the next @nr operations. Returns for how many that could be done. */
static u32 batch_fetch(struct file_wheel *file, const struct twheel_batch *batch, u32 nr)
{
	struct bounce *bounce = file->bounce;
	void __user *user = batch_next(batch);
	u32 i;

	bounce->too_long = 0;
	if (batch->op_size <= sizeof(bounce->ops[0]))
		return ops_fetch(bounce->ops, nr, user, batch->op_size);
	for (i = 0; i < nr; i++, user += batch->op_size) {
		int err = op_fetch(&bounce->ops[i], user, batch->op_size);

		if (err == -EFAULT)
			break;
		if (!err)
			continue;
		bounce->too_long |= BIT_ULL(i);
		memset(&bounce->ops[i], 0, sizeof(bounce->ops[i]));
	}
	return i;
}

/* Operations that are too long have failed, since they are no operation that there is. Say why. */
static void ops_tell_too_long(struct bounce *bounce)
{
	u32 i;

	for (i = 0; i < CHUNK_OPS; i++)
		if (bounce->too_long & BIT_ULL(i))
			bounce->ops[i].res = -E2BIG;
}

/*
 * Give the caller @nr operations, and zero what lies between them if @tails says so. Returns how
 * many could be stored.
 */
static u32 batch_store(struct file_wheel *file, const struct twheel_batch *batch, u32 nr,
		       bool tails)
{
	const struct twheel_op *ops = file->bounce->ops;
	void __user *user = batch_next(batch);
	const size_t size = op_known(batch->op_size);
	const size_t tail = tails ? batch->op_size - size : 0;
	u32 i;

	if (batch->op_size == sizeof(*ops))
		return nr - DIV_ROUND_UP(copy_to_user(user, ops, nr * size), size);
	for (i = 0; i < nr; i++, user += batch->op_size)
		if (op_store(&ops[i], user, size) || clear_user(user + size, tail))
			break;
	return i;
}

/* The next operations of a batch, a lock hold's worth. Returns 0 to go on. */
static int batch_chunk(struct file_wheel *file, struct twheel_batch *batch)
{
	u32 most = min_t(u64, batch->nr - batch->nr_done, CHUNK_OPS);
	struct twheel_op *ops = file->bounce->ops;
	u32 nr, stored;
	bool failed;

	nr = batch_fetch(file, batch, most);
	failed = ops_do(file, ops, nr);
	if (unlikely(file->bounce->too_long))
		ops_tell_too_long(file->bounce);
	stored = batch_store(file, batch, nr, false);
	if (stored < nr)
		ops_undo_adds(file, ops + stored, nr - stored);
	if (failed)
		batch->nr_failed += ops_count_failed(ops, stored);
	batch->nr_done += stored;
	return stored < most ? -EFAULT : 0;
}

static bool batch_is_valid(const struct twheel_batch *batch, bool drains)
{
	return batch->nr >= drains && batch->nr <= TWHEEL_BATCH_MAX &&
	       !(batch->flags & ~(drains ? TWHEEL_F_ABS : 0)) &&
	       !batch->nr_done && !batch->nr_failed &&
	       batch->op_size >= TWHEEL_OP_SIZE_VER0 &&
	       batch->op_size <= OP_STRIDE_MAX && !(batch->op_size % 8);
}

static int batch_store_counts(const struct twheel_batch *batch,
			      struct twheel_batch __user *user)
{
	if (put_user(batch->nr_done, &user->nr_done) ||
	    put_user(batch->nr_failed, &user->nr_failed))
		return -EFAULT;
	return 0;
}

/*
 * Is a call to end early? To a worker of io_uring's anything that is pending says so: that its
 * request is cancelled, or its ring is gone. Any other task, a thread that polls a ring's
 * submissions too, has work of io_uring's pending now and then, which can wait.
 */
static bool batch_is_stopped(const struct file_wheel *file)
{
	return file->by_worker ? signal_pending(current) : task_sigpending(current);
}

/* The operations of a batch, until all are done, or a fault or a signal comes. */
static int batch_do(struct file_wheel *file, struct twheel_batch *batch)
{
	int err = 0;

	while (batch->nr_done < batch->nr && !err) {
		err = batch_chunk(file, batch);
		if (batch_is_stopped(file))
			break;
		cond_resched();
	}
	return err;
}

/* Do @batch, which is not looked at yet. It fails only if nothing was done. */
static int file_submit(struct file_wheel *file, struct twheel_batch *batch)
{
	int err;

	lockdep_assert_held(&file->submit);
	if (!file->bounce)
		file->bounce = bounce_alloc();
	if (!file->bounce)
		return -ENOMEM;
	err = batch_do(file, batch);
	if (!file->base) {
		/* Nothing was added: the file goes back to being small. */
		kfree(file->bounce);
		file->bounce = NULL;
	}
	return batch->nr_done ? 0 : err;
}

/*
 * Draining goes round the slots, 64 in a lock hold. What it takes out of the wheel
 * stays ARMED until the caller has it: who has @submit is the only one who looks at a
 * slot in that state, so nobody sees that its timer is not in the wheel.
 *
 * Returns how many were taken, at most @most. Their operations are in the bounce.
 */
static u32 drain_collect(struct file_wheel *file, u32 most, u32 op_flags)
{
	u32 end = file->cursor + min(file->nr_slots - file->cursor, CHUNK_OPS), nr = 0, i;
	unsigned long flags;
	struct moment m;

	lockdep_assert_held(&file->submit);
	m = file_lock(file, &flags);
	for (i = 0; file->cursor < end && nr < most; file->cursor++, i++) {
		struct slot *slot = slot_at(file, file->cursor);
		struct twheel_op *op = &file->bounce->ops[nr];

		file_relock(file, &flags, &m, i);
		/* What is being read of it would come after it was drained. */
		if (slot->state != ARMED || slot->nr_past)
			continue;
		twheel_cancel_locked(file->base, &slot->timer);
		*op = (struct twheel_op) {
			.op		= TWHEEL_OP_ADD,
			.flags		= (slot->flags & SLOT_FLAGS) | op_flags,
			.handle		= slot_handle(slot),
			.user_data	= slot->user_data,
			.interval_ns	= slot->interval,
		};
		op_set_expires(op, slot, &m);
		nr++;
	}
	twheel_unlock(file->base, flags);
	return nr;
}

/* Of @nr timers collected the caller has got @stored. The others go back, unharmed. */
static void drain_commit(struct file_wheel *file, u32 stored, u32 nr)
{
	const struct twheel_op *ops = file->bounce->ops;
	unsigned long flags;
	struct moment m;
	u32 i;

	lockdep_assert_held(&file->submit);
	m = file_lock(file, &flags);
	for (i = 0; i < nr; i++) {
		struct slot *slot = slot_at(file, (u32)ops[i].handle);

		file_relock(file, &flags, &m, i);
		if (i < stored)
			slot_put(file, slot);
		else
			slot_arm(file, slot, slot->timer.cookie);
	}
	twheel_unlock(file->base, flags);
	/* If the clock was set meanwhile, slot_arm() has made events ready. */
	if (stored < nr && READ_ONCE(file->nr_ready))
		file_wake(file);
}

/*
 * The next slots, a lock hold's worth. Returns 0 to go on; takes off @left how many.
 *
 * Timers that are out of the wheel do not fire. So memory that takes long to come is waited for
 * before they are taken.
 */
static int drain_chunk(struct file_wheel *file, struct twheel_batch *batch, u32 *left)
{
	u32 most = min_t(u64, batch->nr - batch->nr_done, CHUNK_OPS);
	u32 begin, nr, stored;

	most = can_write(batch_next(batch), (size_t)most * batch->op_size) / batch->op_size;
	if (!most)
		return -EFAULT;
	if (file->cursor >= file->nr_slots)
		file->cursor = 0;
	begin = file->cursor;
	nr = drain_collect(file, most, batch->flags);
	*left -= min(*left, file->cursor - begin);
	stored = batch_store(file, batch, nr, true);
	drain_commit(file, stored, nr);
	batch->nr_done += stored;
	return stored < nr ? -EFAULT : 0;
}

static bool file_has_armed(struct file_wheel *file)
{
	struct twheel_stats stats;

	if (!file->base)
		return false;
	twheel_get_stats(file->base, &stats);
	return stats.pending;
}

/*
 * Once round the slots from where the last call ended, however small the room, and only
 * while anything is armed: so draining all is O(slots), and finding that nothing is left
 * is O(1). More than once round would be a race with a reader who reads periodic timers,
 * for these are ready now and armed then.
 */
static int file_drain(struct file_wheel *file, struct twheel_batch *batch)
{
	u32 left = file->nr_slots;
	int err = 0;

	lockdep_assert_held(&file->submit);
	while (batch->nr_done < batch->nr && left && !err && file_has_armed(file)) {
		err = drain_chunk(file, batch, &left);
		if (batch_is_stopped(file))
			err = err ?: -ERESTARTSYS;
		cond_resched();
	}
	return batch->nr_done ? 0 : err;
}

/* @batch, a SUBMIT or a DRAIN, whoever it came from. It fails only if nothing was done. */
static int file_batch(struct file_wheel *file, struct twheel_batch *batch, bool drains)
{
	return drains ? file_drain(file, batch) : file_submit(file, batch);
}

/* TWHEEL_IOC_SUBMIT and _DRAIN. */
static long file_ioctl_batch(struct file_wheel *file, struct twheel_batch __user *user,
			     size_t size, bool drains)
{
	struct twheel_batch batch;
	int err = copy_struct_from_user(&batch, sizeof(batch), user, size);

	if (err)
		return err;
	if (!batch_is_valid(&batch, drains))
		return -EINVAL;
	/* Find out now whether the counts can be stored. */
	err = batch_store_counts(&batch, user);
	if (!err)
		err = file_batch(file, &batch, drains);
	return err ?: batch_store_counts(&batch, user);
}

/* Would twheel_create() take it, later? */
static bool setup_is_valid(const struct file_wheel *file, const struct twheel_setup *setup)
{
	if (!clock_is_valid(setup->clockid))
		return false;
	if (setup->tick_ns && (setup->tick_ns < min_tick_ns() ||
			       setup->tick_ns > TWHEEL_TICK_MAX_NS))
		return false;
	return setup->slack_ns < NSEC_PER_SEC && setup->max_timers <= file->limit &&
	       !setup->flags && !setup->reserved;
}

static long file_setup(struct file_wheel *file, void __user *user, size_t size)
{
	struct twheel_setup setup;
	int err;

	lockdep_assert_held(&file->submit);
	err = copy_struct_from_user(&setup, sizeof(setup), user, size);
	if (err)
		return err;
	if (!setup_is_valid(file, &setup))
		return -EINVAL;
	if (file->base)
		return -EBUSY;
	if (clock_is_alarm(setup.clockid) && !capable(CAP_WAKE_ALARM))
		return -EPERM;
	spin_lock(&file->setup_lock);
	file->clock = setup.clockid;
	file->config.clock = clock_of(setup.clockid);
	file->config.sink = clock_is_alarm(setup.clockid) ? &alarm_sink : &file_sink;
	file->config.tick_ns = setup.tick_ns ?: default_tick_ns();
	file->config.slack_ns = setup.slack_ns;
	file->max_timers = setup.max_timers ?: file->limit;
	file->flags = file->config.clock == CLOCK_REALTIME ? TWHEEL_F_CANCEL_ON_SET : 0;
	spin_unlock(&file->setup_lock);
	return 0;
}

/* What the file is, whether or not there is a base. */
static void info_fill_setup(struct file_wheel *file, struct twheel_info *info)
{
	*info = (struct twheel_info) {
		.abi		= TWHEEL_ABI,
		.clocks		= CLOCKS,
		.min_tick_ns	= min_tick_ns(),
		.op_size	= sizeof(struct twheel_op),
		.event_size	= sizeof(struct twheel_event),
	};
	spin_lock(&file->setup_lock);
	info->clockid = file->clock;
	info->tick_ns = file->config.tick_ns;
	info->slack_ns = file->config.slack_ns;
	info->max_timers = file->max_timers;
	spin_unlock(&file->setup_lock);
}

/* And what it holds. Returns when the next timer is due, as far as the base knows. */
static ktime_t file_fill_info(struct file_wheel *file, struct twheel_info *info)
{
	struct twheel_base *base = file_base(file);
	struct twheel_stats stats = { .next = KTIME_MAX };
	unsigned long flags;
	u32 nr_pages = 0;

	info_fill_setup(file, info);
	if (base) {
		twheel_get_stats(base, &stats);
		twheel_lock(base, &flags);
		info->nr_timers = file_nr_used(file);
		nr_pages = file->nr_pages;
		twheel_unlock(base, flags);
	}
	info->nr_armed = stats.pending;
	info->nr_ready = READ_ONCE(file->nr_ready);
	info->mem_bytes = file_mem_bytes(file, nr_pages);
	info->nr_expired = stats.expired;
	info->nr_wakeups = stats.wakeups;
	info->nr_moves = stats.moves;
	info->nr_deferred = stats.deferred;
	return stats.next;
}

static long file_info(struct file_wheel *file, void __user *user, size_t size)
{
	struct twheel_info info;
	size_t known = min(size, sizeof(info));

	file_fill_info(file, &info);
	if (copy_to_user(user, &info, known) ||
	    clear_user(user + known, size - known))
		return -EFAULT;
	return 0;
}

/* The number of an ioctl of one operation, in the first version. */
#define OP_VER0(cmd)	(((cmd) & ~IOCSIZE_MASK) | TWHEEL_OP_SIZE_VER0 << IOCSIZE_SHIFT)

/* The size of the first version of what ioctl @nr takes, and the rest of its number. */
static const unsigned int ioctls[] = {
	[_IOC_NR(TWHEEL_IOC_SETUP)]	= TWHEEL_IOC_SETUP,
	[_IOC_NR(TWHEEL_IOC_INFO)]	= TWHEEL_IOC_INFO,
	[_IOC_NR(TWHEEL_IOC_SUBMIT)]	= TWHEEL_IOC_SUBMIT,
	[_IOC_NR(TWHEEL_IOC_ADD)]	= OP_VER0(TWHEEL_IOC_ADD),
	[_IOC_NR(TWHEEL_IOC_MOD)]	= OP_VER0(TWHEEL_IOC_MOD),
	[_IOC_NR(TWHEEL_IOC_CANCEL)]	= OP_VER0(TWHEEL_IOC_CANCEL),
	[_IOC_NR(TWHEEL_IOC_QUERY)]	= OP_VER0(TWHEEL_IOC_QUERY),
	[_IOC_NR(TWHEEL_IOC_DRAIN)]	= TWHEEL_IOC_DRAIN,
};

/* Those that change nothing, and so need no descriptor that is open for writing. */
#define IOCTLS_TELL	(BIT(_IOC_NR(TWHEEL_IOC_INFO)) | BIT(_IOC_NR(TWHEEL_IOC_QUERY)))

#define ASSERT_ABI(type, size) \
	static_assert(sizeof(struct type) == (size) && __alignof__(struct type) == 8)

ASSERT_ABI(twheel_setup, 32);
ASSERT_ABI(twheel_info, 112);
ASSERT_ABI(twheel_batch, 32);
ASSERT_ABI(twheel_op, 56);
static_assert(offsetof(struct twheel_op, tolerance_ns) == TWHEEL_OP_SIZE_VER0);
ASSERT_ABI(twheel_event, 32);
ASSERT_ABI(twheel_uring, 16);	/* as much as there is in the smaller kind of an SQE */

static long file_ioctl_locked(struct file_wheel *file, unsigned int nr, void __user *user,
			      size_t size)
{
	switch (nr) {
	case _IOC_NR(TWHEEL_IOC_SETUP):
		return file_setup(file, user, size);
	case _IOC_NR(TWHEEL_IOC_SUBMIT):
		return file_ioctl_batch(file, user, size, false);
	case _IOC_NR(TWHEEL_IOC_ADD):
		return file_op(file, user, size, TWHEEL_OP_ADD);
	case _IOC_NR(TWHEEL_IOC_MOD):
		return file_op(file, user, size, TWHEEL_OP_MOD);
	case _IOC_NR(TWHEEL_IOC_QUERY):
		return file_op(file, user, size, TWHEEL_OP_QUERY);
	case _IOC_NR(TWHEEL_IOC_DRAIN):
		return file_ioctl_batch(file, user, size, true);
	default:
		return file_op(file, user, size, TWHEEL_OP_CANCEL);
	}
}

static noinline long file_ioctl_any(struct file *filp, unsigned int cmd, void __user *user)
{
	struct file_wheel *file = filp->private_data;
	unsigned int nr = _IOC_NR(cmd);
	size_t size = _IOC_SIZE(cmd);
	long ret;

	if (nr >= ARRAY_SIZE(ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(ioctls));
	if ((cmd & ~IOCSIZE_MASK) != (ioctls[nr] & ~IOCSIZE_MASK))
		return -ENOTTY;
	if (!(filp->f_mode & FMODE_WRITE) && !(BIT(nr) & IOCTLS_TELL))
		return -EBADF;
	if (size < _IOC_SIZE(ioctls[nr]))
		return -EINVAL;
	if (nr == _IOC_NR(TWHEEL_IOC_INFO))
		return file_info(file, user, size);
	if (mutex_lock_interruptible(&file->submit))
		return -ERESTARTSYS;
	ret = file_ioctl_locked(file, nr, user, size);
	file_update_waker(file);
	mutex_unlock(&file->submit);
	return ret;
}

/*
 * Read an operation of the usual @size, or that of the first version, on one page. What has to be 0
 * in any is.
 */
static __always_inline bool op_get(struct twheel_op *op, const struct twheel_op __user *user,
				   size_t size)
{
	u64 zero;

	static_assert(offsetof(struct twheel_op, reserved) == offsetof(struct twheel_op, res) + 4);
	if (offset_in_page(user) > PAGE_SIZE - size || !user_read_access_begin(user, size))
		return false;
	op->tolerance_ns = 0;
	if (likely(size == sizeof(*user)))
		unsafe_get_user(op->tolerance_ns, &user->tolerance_ns, fault);
	unsafe_get_user(op->op, &user->op, fault);
	unsafe_get_user(op->flags, &user->flags, fault);
	unsafe_get_user(op->handle, &user->handle, fault);
	unsafe_get_user(op->user_data, &user->user_data, fault);
	unsafe_get_user(op->expires_ns, &user->expires_ns, fault);
	unsafe_get_user(op->interval_ns, &user->interval_ns, fault);
	unsafe_get_user(zero, (u64 __user *)&user->res, fault);
	user_read_access_end();
	op->res = 0;
	op->reserved = 0;
	return !zero;
fault:
	user_read_access_end();
	return false;
}

/* Do the operation at @user, if nothing at all stands against it. If not, it is negative. */
static __always_inline int op_try(struct file_wheel *file, struct twheel_op __user *user,
				  size_t size, u32 opcode)
{
	struct twheel_op op;

	lockdep_assert_held(&file->submit);
	if (unlikely(!op_get(&op, user, size) || (op.op && op.op != opcode) ||
		     !op_is_valid(file, &op, opcode, 0)))
		return -EINVAL;
	if (unlikely(!file->plain))
		return -EAGAIN;
	return op_do_one(file, &op, opcode, user);
}

/*
 * file_op() as it mostly goes, an ioctl of its own: the operation is of a usual size, and can be
 * done. It is read and told of without detours. If anything is different nothing has changed, and
 * all is begun anew, by file_ioctl_any(): that finds out what it is.
 */
static __always_inline long file_op_fast(struct file *filp, unsigned int cmd,
					 struct twheel_op __user *user, u32 opcode)
{
	struct file_wheel *file = filp->private_data;
	int res = -EBADF;

	if (likely(filp->f_mode & FMODE_WRITE)) {
		if (mutex_lock_interruptible(&file->submit))
			return -ERESTARTSYS;
		res = op_try(file, user, _IOC_SIZE(cmd), opcode);
		mutex_unlock(&file->submit);
	}
	return likely(res >= 0) ? res : file_ioctl_any(filp, cmd, user);
}

/* Apart, so that each keeps what it needs in registers. */
static noinline long file_add(struct file *filp, unsigned int cmd, struct twheel_op __user *user)
{
	return file_op_fast(filp, cmd, user, TWHEEL_OP_ADD);
}

static noinline long file_mod(struct file *filp, unsigned int cmd, struct twheel_op __user *user)
{
	return file_op_fast(filp, cmd, user, TWHEEL_OP_MOD);
}

static noinline long file_cancel(struct file *filp, unsigned int cmd, struct twheel_op __user *user)
{
	return file_op_fast(filp, cmd, user, TWHEEL_OP_CANCEL);
}

static long file_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case TWHEEL_IOC_ADD:
	case OP_VER0(TWHEEL_IOC_ADD):
		return file_add(filp, cmd, user);
	case TWHEEL_IOC_MOD:
	case OP_VER0(TWHEEL_IOC_MOD):
		return file_mod(filp, cmd, user);
	case TWHEEL_IOC_CANCEL:
	case OP_VER0(TWHEEL_IOC_CANCEL):
		return file_cancel(filp, cmd, user);
	default:
		return file_ioctl_any(filp, cmd, user);
	}
}

/* ---- io_uring ------------------------------------------------------------------ */

/* Of the flags of a command the top 8 are the kernel's own. None is known here. */
#define URING_FLAGS	GENMASK(23, 0)

/*
 * What @cmd asks for. It lies where the caller can write to it at any time, so it is looked at
 * once.
 */
static void batch_of_uring(struct twheel_batch *batch, const struct twheel_uring *cmd)
{
	*batch = (struct twheel_batch) {
		.ops		= READ_ONCE(cmd->ops),
		.nr		= READ_ONCE(cmd->nr),
		.op_size	= READ_ONCE(cmd->op_size),
		.flags		= READ_ONCE(cmd->flags),
	};
}

/* Begin it, if that takes no waiting for others where @nowait. */
static int uring_lock(struct file_wheel *file, bool nowait)
{
	if (nowait)
		return mutex_trylock(&file->submit) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&file->submit);
}

static int file_uring_batch(struct file_wheel *file, struct twheel_batch *batch, bool drains,
			    bool nowait)
{
	int err;

	if (!batch_is_valid(batch, drains))
		return -EINVAL;
	err = uring_lock(file, nowait);
	if (err)
		return err;
	file->by_worker = !nowait;
	err = file_batch(file, batch, drains);
	file->by_worker = false;
	file_update_waker(file);
	mutex_unlock(&file->submit);
	if (err == -ERESTARTSYS)	/* nobody begins it anew */
		err = -EINTR;
	return err ?: batch->nr_done;
}

/*
 * TWHEEL_URING_SUBMIT and _DRAIN: the ioctls, within io_uring_enter(). A command is done when this
 * returns, in the caller's task or, where it would have to wait for another, in a worker of
 * io_uring's that has the caller's memory and namespaces. So there is nothing to cancel but a wait.
 */
static int file_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const bool drains = cmd->cmd_op == TWHEEL_URING_DRAIN;
	struct twheel_batch batch;
	int res;

	if (!drains && cmd->cmd_op != TWHEEL_URING_SUBMIT)
		return -EOPNOTSUPP;
	if (!(cmd->file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (cmd->flags & URING_FLAGS)
		return -EINVAL;
	batch_of_uring(&batch, uring_cmd_payload(cmd));
	res = file_uring_batch(cmd->file->private_data, &batch, drains,
			       issue_flags & IO_URING_F_NONBLOCK);
	return res < 0 ? res : uring_cmd_end(cmd, res, issue_flags);
}

/* ---- read and poll ------------------------------------------------------------ */

static u32 periods_passed(const struct slot *slot, ktime_t now)
{
	u64 periods = 0;

	/* Only if the clock was set, since then or to tell of it. */
	if (unlikely(now < (ktime_t)slot->timer.cookie))
		return !(slot->flags & SLOT_EARLY);
	if (slot->interval && !(slot->flags & TWHEEL_F_DELAY))
		periods = div64_u64(now - slot->timer.cookie, slot->interval);
	return min_t(u64, periods, U32_MAX - 1) + 1;
}

/* Is the event of @slot as most are: of a one-shot timer that is asked nothing else of? */
static __always_inline bool slot_is_plain(const struct slot *slot)
{
	return !slot->interval && !slot->flags;
}

/* Write down the event of @slot. */
static __always_inline void read_event(struct twheel_event *event, struct slot *slot,
				       const struct moment *m)
{
	event->user_data = slot->user_data;
	event->handle = slot_handle(slot);
	event->expires_ns = time_shift(slot->timer.cookie, m->offset);
	event->count = 1;
	event->flags = 0;
	if (likely(slot_is_plain(slot)))
		return;
	event->count = periods_passed(slot, m->now);
	event->flags = goes_on(slot->interval, slot->flags) ? TWHEEL_EV_MORE : 0;
	if (unlikely(slot->flags & SLOT_SET)) {
		event->flags |= TWHEEL_EV_CLOCK_SET;
		slot->flags &= ~SLOT_SET;
	}
}

/*
 * Take up to @most ready slots, and write down their events. Returns how many. @now becomes the
 * time at which they were read.
 */
static u32 read_collect(struct file_wheel *file, const struct reader *reader, u32 most,
			ktime_t *now)
{
	struct twheel_event *events = reader->events;
	struct slot **taken = reader->taken, *slot;
	unsigned long flags;
	struct moment m;
	u32 nr = 0;

	m = file_lock(file, &flags);
	*now = m.now;
	list_for_each_entry(slot, &file->ready, link) {
		if (nr == most)
			break;
		slot->state = READING;
		slot->reader = reader;
		taken[nr] = slot;
		read_event(&events[nr], slot, &m);
		nr++;
	}
	/* Cut off in front of the first that stays, or of the head. */
	file->ready.next = &slot->link;
	slot->link.prev = &file->ready;
	WRITE_ONCE(file->nr_ready, file->nr_ready - nr);
	twheel_unlock(file->base, flags);
	return nr;
}

/* Arm @slot, which is periodic, for the next of its periods: @count have passed at @now. */
static noinline void slot_next_period(struct file_wheel *file, struct slot *slot, u32 count,
				      ktime_t now)
{
	u64 deadline;

	if ((slot->flags & TWHEEL_F_DELAY) && count)
		deadline = (u64)now + slot->interval;
	else
		deadline = slot->timer.cookie + count * slot->interval;
	slot_arm(file, slot, min_t(u64, deadline, KTIME_MAX));
}

/* The event of @slot has been read at @now, and says @count: what becomes of it? */
static __always_inline void slot_after_read(struct file_wheel *file, struct slot *slot, u32 count,
					    ktime_t now)
{
	if (unlikely(slot->interval))
		slot_next_period(file, slot, count, now);
	else if (slot->flags & TWHEEL_F_KEEP)
		slot->state = IDLE;
	else
		slot_put(file, slot);
}

/*
 * @event, of @slot, is not being read any more. It has been taken for one that was read. This is
 * rare, and out of the way of what is not.
 */
static noinline void slot_past_read(struct slot *slot, const struct twheel_event *event)
{
	/* Not if the slot is another timer's now: the add of the old one was undone. */
	if (slot_handle(slot) == event->handle)
		slot->nr_past--;
}

static void slot_unread(struct file_wheel *file, struct slot *slot,
			const struct twheel_event *event)
{
	if (event->flags & TWHEEL_EV_CLOCK_SET)
		slot->flags |= SLOT_SET;
	slot->state = READY;
	list_add(&slot->link, &file->ready);
	WRITE_ONCE(file->nr_ready, file->nr_ready + 1);
}

/*
 * Of @nr events collected at @now the first @copied have reached the caller. The others become
 * ready again, in front. Those of slots that were re-armed meanwhile are dropped: such a slot
 * may be READING again, but then another reader has it.
 *
 * Nobody's but a reader's own commit leaves slot->reader behind, and that looks at each of
 * its slots once: so where it names the reader the slot is READING.
 */
static void read_commit(struct file_wheel *file, const struct reader *reader, u32 copied,
			u32 nr, ktime_t now)
{
	const struct twheel_event *events = reader->events;
	struct slot **taken = reader->taken;
	unsigned long flags;

	twheel_relock(file->base, &flags);
	while (nr--) {
		struct slot *slot = taken[nr];

		if (unlikely(slot->reader != reader)) {
			slot_past_read(slot, &events[nr]);
			continue;
		}
		if (nr < copied)
			slot_after_read(file, slot, events[nr].count, now);
		else
			slot_unread(file, slot, &events[nr]);
	}
	twheel_unlock(file->base, flags);
}

/* Store the event of @slot, which is plain, in user memory that is open for that. */
static __always_inline bool plain_put(const struct slot *slot, struct twheel_event __user *user)
{
	unsafe_put_user(slot->user_data, &user->user_data, fault);
	unsafe_put_user(slot_handle(slot), &user->handle, fault);
	unsafe_put_user(slot->timer.cookie, &user->expires_ns, fault);
	unsafe_put_user(1, &user->count, fault);
	unsafe_put_user(0, &user->flags, fault);
	return true;
fault:
	return false;
}

/* The first @nr that are ready have been read, and are a list that begins with @free. */
static void ready_pop_many(struct file_wheel *file, u32 nr, struct list_head *left,
			   struct slot *free)
{
	lockdep_assert_held(file->lock);
	file->ready.next = left;
	left->prev = &file->ready;
	file->free = free;
	WRITE_ONCE(file->nr_ready, file->nr_ready - nr);
	WRITE_ONCE(file->nr_free, file->nr_free + nr);
}

/*
 * Read up to @most events into @user, as long as they are plain and can be stored without waiting
 * for memory. The reader has them when this lock hold ends, so that they are never on their way.
 * Returns how many.
 */
static u32 read_plain_many(struct file_wheel *file, struct twheel_event __user *user, u32 most)
{
	struct list_head *at;
	struct slot *free;
	u32 nr = 0;

	file_hold(file);
	at = file->ready.next;
	free = file->free;
	tell_begin();
	if (user_write_access_begin(user, most * sizeof(*user))) {
		while (nr < most && at != &file->ready) {
			struct slot *slot = list_entry(at, struct slot, link);

			if (!slot_is_plain(slot) || !plain_put(slot, &user[nr]))
				break;
			at = at->next;
			slot_free(slot, free);
			free = slot;
			nr++;
		}
		user_write_access_end();
	}
	tell_end();
	ready_pop_many(file, nr, at, free);
	file_let_go(file);
	return nr;
}

/* The same for @to, which is the caller's memory. Returns bytes. */
static size_t reader_run_plain(struct file_wheel *file, struct iov_iter *to)
{
	u32 most = min_t(size_t, iov_iter_count(to) / sizeof(struct twheel_event), TWHEEL_HOLD_OPS);
	size_t done = read_plain_many(file, to->ubuf + to->iov_offset, most) *
		      sizeof(struct twheel_event);

	iov_iter_advance(to, done);
	return done;
}

/* Read the next events, whatever they are. Returns bytes, fewer than *@asked if memory is bad. */
static size_t reader_run_any(struct file_wheel *file, const struct reader *reader,
			     struct iov_iter *to, size_t *asked)
{
	const size_t size = sizeof(struct twheel_event);
	u32 most = min_t(size_t, iov_iter_count(to) / size, reader->room), nr;
	size_t copied;
	ktime_t now;

	nr = read_collect(file, reader, most, &now);
	copied = copy_to_iter(reader->events, nr * size, to) / size;
	read_commit(file, reader, copied, nr, now);
	*asked = nr * size;
	return copied * size;
}

/*
 * Read what is ready, as much as fits. Returns bytes, 0 if nothing was ready. Mostly all of it is
 * plain. When that has come short it is not tried again.
 */
static ssize_t reader_run(struct file_wheel *file, const struct reader *reader,
			  struct iov_iter *to)
{
	bool plain = iter_is_ubuf(to) && !clock_is_shifted();
	size_t done = 0, got, asked;

	while (READ_ONCE(file->nr_ready) && iov_iter_count(to) >= sizeof(struct twheel_event)) {
		if (plain) {
			got = reader_run_plain(file, to);
			/* A signal must find something done, or the caller tries for ever. */
			plain = got;
			if (!plain)
				continue;
		} else {
			got = reader_run_any(file, reader, to, &asked);
			if (got < asked)
				return done + got ?: -EFAULT;
		}
		done += got;
		if (signal_pending(current))
			break;
		cond_resched();
	}
	return done;
}

/* Apart, for many kernels zero what is on the stack. */
static noinline ssize_t read_small(struct file_wheel *file, struct iov_iter *to)
{
	struct twheel_event events[SMALL_EVENTS];
	struct slot *taken[SMALL_EVENTS];
	const struct reader reader = {
		.events = events, .taken = taken, .room = SMALL_EVENTS };

	return reader_run(file, &reader, to);
}

static ssize_t read_big(struct file_wheel *file, struct iov_iter *to)
{
	const struct reader reader = {
		.events = file->events, .taken = file->bounce->taken, .room = CHUNK_EVENTS };

	return reader_run(file, &reader, to);
}

/*
 * Storing events may take as long as the caller's memory likes. So readers have no lock, and room
 * of their own: one has what the file keeps for it, others a little on their stacks.
 */
static ssize_t read_ready(struct file_wheel *file, struct iov_iter *to)
{
	ssize_t done;

	if (!file_base(file))
		return 0;
	if (test_and_set_bit_lock(0, &file->spare))
		return read_small(file, to);
	done = read_big(file, to);
	clear_bit_unlock(0, &file->spare);
	return done;
}

static noinline int reader_wait(struct file_wheel *file, bool nowait)
{
	if (nowait)
		return READ_ONCE(file->nr_ready) ? 0 : -EAGAIN;
	return wait_event_interruptible_exclusive(file->wait, READ_ONCE(file->nr_ready));
}

static ssize_t file_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file_wheel *file = iocb->ki_filp->private_data;
	bool nowait = (iocb->ki_filp->f_flags & O_NONBLOCK) ||
		      (iocb->ki_flags & IOCB_NOWAIT);
	ssize_t ret = 0;

	if (iov_iter_count(to) < sizeof(struct twheel_event))
		return -EINVAL;
	while (!ret) {
		ret = reader_wait(file, nowait);
		if (!ret)
			ret = read_ready(file, to);
	}
	file_update_waker(file);
	/* One reader is woken at a time: what this one leaves is for the next. */
	if (READ_ONCE(file->nr_ready))
		file_wake(file);
	return ret;
}

/* Store @event at @user, without waiting for memory that is not there. */
static __always_inline bool event_tell(struct twheel_event __user *user,
				       const struct twheel_event *event)
{
	bool told = false;

	tell_begin();
	if (user_write_access_begin(user, sizeof(*user))) {
		unsafe_put_user(event->user_data, &user->user_data, end);
		unsafe_put_user(event->handle, &user->handle, end);
		unsafe_put_user(event->expires_ns, &user->expires_ns, end);
		unsafe_put_user(event->count, &user->count, end);
		unsafe_put_user(event->flags, &user->flags, end);
		told = true;
end:
		user_write_access_end();
	}
	tell_end();
	return told;
}

/* Take @slot, the first that is ready, off the ready list. As list_del(), without its checks. */
static __always_inline void ready_pop(struct file_wheel *file, struct slot *slot)
{
	struct list_head *next = slot->link.next;

	next->prev = &file->ready;
	file->ready.next = next;
	WRITE_ONCE(file->nr_ready, file->nr_ready - 1);
}

/*
 * Read the event of @slot, the first that is ready, into @user. The reader has it when this lock
 * hold ends, so that it is never on its way. Returns false if that cannot be: nothing has changed.
 */
static bool read_first(struct file_wheel *file, struct slot *slot,
		       struct twheel_event __user *user)
{
	struct moment m = { .offset = clock_offset(file->config.clock) };
	struct twheel_event event;

	lockdep_assert_held(file->lock);
	/* What says so is to be put back if the event cannot be stored. */
	if (slot->flags & SLOT_SET)
		return false;
	if (slot->interval)
		m.now = twheel_now(file->base);
	read_event(&event, slot, &m);
	if (!event_tell(user, &event))
		return false;
	ready_pop(file, slot);
	slot_after_read(file, slot, event.count, m.now);
	return true;
}

static struct slot *file_first(const struct file_wheel *file)
{
	return list_first_entry(&file->ready, struct slot, link);
}

/* Is the only event that is ready one as most are, on the host's clock? */
static __always_inline bool read_is_plain(const struct file_wheel *file)
{
	return file->nr_ready == 1 && slot_is_plain(file_first(file)) && !clock_is_shifted();
}

/* read_first() of that. Then none is ready. */
static __always_inline bool read_plain(struct file_wheel *file, struct twheel_event __user *user)
{
	struct slot *slot = file_first(file);
	const struct twheel_event event = {
		.user_data	= slot->user_data,
		.handle		= slot_handle(slot),
		.expires_ns	= slot->timer.cookie,
		.count		= 1,
	};

	lockdep_assert_held(file->lock);
	if (!event_tell(user, &event))
		return false;
	INIT_LIST_HEAD(&file->ready);
	WRITE_ONCE(file->nr_ready, 0);
	slot_put(file, slot);
	return true;
}

/* read_one() of another, or of one of more. The base is locked, and this unlocks it. */
static noinline bool read_one_slowly(struct file_wheel *file, struct twheel_event __user *user,
				     size_t room)
{
	u32 nr = file->nr_ready;
	bool done = nr && (nr == 1 || room < 2 * sizeof(*user)) &&
		    read_first(file, file_first(file), user);

	twheel_unlock_irq(file->base);
	if (done)
		file_update_waker(file);
	if (done && nr > 1)
		file_wake(file);	/* for the next reader, as file_read_iter() does */
	return done;
}

/*
 * Read one event, if that is all there is or all there is @room for. Returns false if not, or if
 * that takes more than a lock hold.
 */
static __always_inline bool read_one(struct file_wheel *file, struct twheel_event __user *user,
				     size_t room)
{
	bool done;

	file_hold(file);
	if (unlikely(!read_is_plain(file)))
		return read_one_slowly(file, user, room);
	done = read_plain(file, user);
	file_let_go(file);
	return done;
}

static noinline ssize_t file_read_many(struct file *filp, char __user *user, size_t room)
{
	struct iov_iter to;
	struct kiocb iocb;

	init_sync_kiocb(&iocb, filp);
	iov_iter_ubuf(&to, ITER_DEST, user, room);
	return file_read_iter(&iocb, &to);
}

/*
 * read(). Most programs read one event a call. For that a lock hold does, without a struct
 * iov_iter; all else is file_read_iter()'s.
 */
static ssize_t file_read(struct file *filp, char __user *user, size_t room, loff_t *pos)
{
	const size_t size = sizeof(struct twheel_event);
	struct file_wheel *file = filp->private_data;

	if (room < size)
		return -EINVAL;
	/* Pairs with the lock of who made the event: what is made with the base is there too. */
	while (unlikely(!smp_load_acquire(&file->nr_ready))) {
		int err = reader_wait(file, filp->f_flags & O_NONBLOCK);

		if (err)
			return err;
	}
	return read_one(file, (struct twheel_event __user *)user, room) ?
	       size : file_read_many(filp, user, room);
}

static __poll_t file_poll(struct file *filp, poll_table *wait)
{
	struct file_wheel *file = filp->private_data;

	/*
	 * The barrier in poll_wait() pairs with that in wake_up(): either this sees
	 * nr_ready, or file_wake() sees the poller.
	 */
	poll_wait(filp, &file->wait, wait);
	return READ_ONCE(file->nr_ready) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* ---- open and close ------------------------------------------------------------ */

static int file_open(struct inode *inode, struct file *filp)
{
	struct file_wheel *file;
	struct opener *opener;

	file = kzalloc(sizeof(*file), GFP_CHARGED);
	if (!file)
		return -ENOMEM;
	opener = opener_get(current_uid());
	if (IS_ERR(opener)) {
		kfree(file);
		return PTR_ERR(opener);
	}
	file->opener = opener;
	INIT_LIST_HEAD(&file->ready);
	spin_lock_init(&file->setup_lock);
	mutex_init(&file->submit);
	init_waitqueue_head(&file->wait);
	file->limit = clamp_t(u32, READ_ONCE(max_timers), 1, LIMIT_MAX);
	file->max_timers = file->limit;
	file->no_slot = SLOTS_TO_COME;
	file->clock = CLOCK_MONOTONIC;
	file->config = (struct twheel_config) {
		.clock		= CLOCK_MONOTONIC,
		.tick_ns	= default_tick_ns(),
		.sink		= &file_sink,
		.owner		= file,
		.small		= true,
		.user		= opener->user,
		.was_set	= file_was_set,
	};
	filp->private_data = file;
	filp->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, filp);
}

/* However many timers are armed: the base forgets them, and their pages go. */
static int file_release(struct inode *inode, struct file *filp)
{
	struct file_wheel *file = filp->private_data;

	if (file->base)
		twheel_destroy(file->base);
	waker_free(file->waker);
	slots_free_all(file);
	opener_put(file->opener);
	kfree(file->bounce);
	kfree(file->events);
	kfree(file);
	return 0;
}

static void file_show_fdinfo(struct seq_file *m, struct file *filp)
{
	struct file_wheel *file = filp->private_data;
	struct twheel_info info;
	ktime_t next = file_fill_info(file, &info);
	s64 offset = clock_offset(clock_of(info.clockid));

	seq_printf(m, "twheel-clockid:\t%d\n", info.clockid);
	seq_printf(m, "twheel-tick-ns:\t%llu\n", info.tick_ns);
	seq_printf(m, "twheel-slack-ns:\t%llu\n", info.slack_ns);
	seq_printf(m, "twheel-max:\t%u\n", info.max_timers);
	seq_printf(m, "twheel-timers:\t%u\n", info.nr_timers);
	seq_printf(m, "twheel-armed:\t%u\n", info.nr_armed);
	seq_printf(m, "twheel-ready:\t%u\n", info.nr_ready);
	seq_printf(m, "twheel-mem-bytes:\t%llu\n", info.mem_bytes);
	seq_printf(m, "twheel-expired:\t%llu\n", info.nr_expired);
	seq_printf(m, "twheel-wakeups:\t%llu\n", info.nr_wakeups);
	seq_printf(m, "twheel-next-ns:\t%lld\n", time_shift(next, offset));
}

static const struct file_operations twheel_fops = {
	.owner		= THIS_MODULE,
	.open		= file_open,
	.release	= file_release,
	.read		= file_read,
	.read_iter	= file_read_iter,
	.poll		= file_poll,
	.unlocked_ioctl	= file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= file_uring_cmd,
	.show_fdinfo	= file_show_fdinfo,
	.llseek		= noop_llseek,
};

/*
 * A number of its own, so that the node can be there before the module is, and the first
 * open() loads it: misc_open() asks for the alias of a fixed minor only. 243 to 254 are for
 * local use, in Documentation/admin-guide/devices.txt.
 */
#ifndef TWHEEL_MINOR
#define TWHEEL_MINOR	250
#endif

static struct miscdevice twheel_device = {
	.minor	= TWHEEL_MINOR,
	.name	= "twheel",
	.fops	= &twheel_fops,
	.mode	= 0666,
};

static int __init twheel_chardev_init(void)
{
	host_time_ns_init();
	return misc_register(&twheel_device);
}

static void __exit twheel_chardev_exit(void)
{
	misc_deregister(&twheel_device);
	WARN_ON(atomic_long_read(&nr_slot_pages));
}

module_init(twheel_chardev_init);
module_exit(twheel_chardev_exit);

MODULE_DESCRIPTION("/dev/twheel: a file that holds millions of timers");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
MODULE_ALIAS_MISCDEV(TWHEEL_MINOR);
MODULE_ALIAS("devname:twheel");	/* depmod makes the node of it */
