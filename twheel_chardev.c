// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheel_chardev.ko: /dev/twheel, the interface of <linux/twheel.h>.
 *
 * Each open file has a base of its own (a wheel, its clock and its lock, see twheel.h). Files share
 * no timers. Of the locks below they share only openers_lock, which open() and close() take; bases
 * share some locks of twheel.ko, such as those of the dispatchers. The base, and everything else
 * that is large, is made when the first timer is added: until then a file is little more than its
 * setup.
 *
 * A timer is a slot of 64 bytes. Slots are allocated in pages of 64 and found by index, through two
 * levels of tables. A handle is made of the index and a generation, which changes when the slot is
 * freed.
 *
 * With the first page of slots come a small base of one KiB, which keeps its timers in a tree, and
 * a table with one entry, which is a member of the file. With the second page the base grows to a
 * whole wheel, and the table gets a page of its own. slots_grow() does all of this. It allocates
 * anyway, so adding and cancelling have no branch for small files. Memory of a file: 288 bytes, for
 * which the slab allocator takes 0.5 KiB; 11 KiB with one page of slots; 83 KiB with two.
 *
 * The states of a slot:
 *
 *	FREE	on the free list, or never used yet
 *	ARMED	in the wheel, except while a DRAIN copies it out, see drain_collect(). Its tick may
 *		be over already: it expires after the latency of the softirq, or later if its user
 *		has to wait for a share of the CPU
 *	READY	it has expired; its event waits on the ready list
 *	READING	its event is being copied to a reader, without a lock. The slot is on no list. It
 *		names the reader, and the reader names the slot. When the copy is done, the reader
 *		moves the slot to its next state only if the slot still names it. Most slots are
 *		never in this state: read() stores their events in the lock hold that takes them off
 *		the list
 *	IDLE	it waits to be armed again (TWHEEL_F_KEEP)
 *
 * Each line says from which state to which a slot is moved, by which function, and who calls that.
 * Every move is made under the base's lock. "submit" means that the caller also holds file->submit;
 * readers, the softirq and the worker do not:
 *
 *	FREE		ARMED		op_add()			submit
 *	ARMED		READY		file_expired()			softirq
 *	ARMED		READY		slot_was_set()			worker, submit
 *	ARMED		READY		drain_commit(), see slot_arm()	submit
 *	READY		READING		read_collect()			reader
 *	READING		READY		slot_unread(): the copy failed	reader
 *	READING		next		read_commit()			reader
 *	READY		next		read_first()			reader
 *	READY		FREE		read_plain(), read_plain_many()	reader
 *	any but FREE	ARMED		op_mod()			submit
 *	ARMED, READY,	FREE		op_cancel()			submit
 *	  IDLE
 *	ARMED		FREE		drain_commit()			submit
 *	any but FREE	FREE		op_undo_add()			submit
 *
 * "next", see slot_after_read(): ARMED if the timer is periodic, or READY if its event must say
 * that the clock was set meanwhile (slot_arm()); IDLE if it has TWHEEL_F_KEEP; else FREE. So while
 * a caller holds file->submit but not the base's lock, an ARMED slot may become READY, and a READY
 * or READING slot may get any state. While the caller holds both, nobody else changes the state of
 * a slot.
 *
 * A slot is its own queue entry. When its timer expires, the base hands it to file_expired(), which
 * puts it on the ready list in the lock hold that takes it out of the wheel. So no event can be
 * lost, no queue can overflow, and a cancel knows exactly what it has cancelled. In all states but
 * ARMED, timer.queue.bucket is 0, so the wheel sees a timer that is not armed. The links of the
 * ready list and of the free list do not disturb that: they overlay only timer.queue.node.
 *
 * How an operation is done: ADD, MOD and CANCEL end in op_add(), op_mod() and op_cancel(), by one
 * of three ways.
 *
 *	file_op_fast()	an ioctl of one operation that is valid and needs no memory. If anything
 *			is unusual, it changes nothing and drops file->submit; file_ioctl_any()
 *			takes file->submit anew, and calls file_op()
 *	file_op()	an ioctl of one operation: finds the error, or allocates and waits as
 *			needed. Every QUERY
 *	file_submit()	a batch: copy in CHUNK_OPS operations (batch_fetch()), do them
 *			(ops_do()), copy them out (batch_store())
 *
 * The caller must have been told the handle of every timer that exists. A single ADD, MOD or CANCEL
 * stores its result to user memory in the lock hold in which it is done (op_tell()), so both happen
 * or neither. For each chunk of a batch, can_write() checks the memory before an operation of the
 * chunk is done. If the memory goes away after the check, ops_undo_adds() undoes the adds whose
 * handles the caller was not told.
 *
 * Locking: a lock whose line is indented is taken inside the one above it
 *	file->submit	a mutex of the callers that add, re-arm, cancel, query, drain or set up
 *	  the base's lock	slots, lists and counts. Interrupts are off. Held for at most
 *				TWHEEL_HOLD_OPS operations, and never where something may sleep
 *	file->setup_lock	what SETUP sets; SETUP also holds file->submit. Innermost
 *	openers_lock	the table of openers. None of these locks is taken inside it
 *	waker->lock	when a file wakes the machine; may be taken inside file->submit
 *	  the base's lock
 *
 * The base calls file_was_set() under a mutex, which twheel_tell_set() takes inside file->submit.
 * So file_was_set() must not take file->submit.
 *
 * Readers and expiry never take file->submit, so neither waits for a caller that sleeps under it.
 * Of the locks above they take only the base's lock and, for a file on an alarm clock, waker->lock.
 * Readers and submitters meet at the free list: only the holder of file->submit takes slots off it,
 * while readers may put slots on it.
 *
 * file->base is set once, under file->submit, and then stays. The bounce and the tables are made
 * with the base, and from then on SETUP is refused. Code that does not hold file->submit calls
 * file_base() before it uses the base, with three exceptions: file_read() knows by nr_ready that
 * there is a base; the sink and file_was_set() are called by the base; and nobody else uses the
 * file in file_release().
 *
 * What is read without the lock that guards it, and what it pairs with:
 *
 *	base		file_base() pairs with the release in file_create()
 *	nr_ready	written with WRITE_ONCE() under the base's lock. file_read() acquires it,
 *			and takes that lock before it looks at a slot. file_poll() and reader_wait()
 *			rely on the wait queue: file_wake() comes after the write. The other
 *			reads decide whether to look at all (reader_run()) or whether to wake a
 *			reader (file_read_iter(), drain_commit()), or they only report (INFO)
 *	nr_free		written under the base's lock, with WRITE_ONCE() except in slots_add_page(),
 *			whose caller holds file->submit. Only the holder of file->submit reads it
 *			without the base's lock; meanwhile others can only make it larger
 *	nr_slots	after file_was_set() has dropped the lock, it reads nr_slots to see whether
 *			to take the lock again. Slots that are not counted yet are new: their timers
 *			were added after the clock was set
 *	waker		file_update_waker() uses it only if it also sees the base, whose release
 *			comes after the store of the waker. The sink need not check: it is called
 *			only for timers that were armed later, under the base's lock
 *	tables[]	the lookup of a slot pairs with the release in slots_alloc()
 *	asks		written before the base's lock is taken to arm the timer, read under it
 *	spare		a bit lock: test_and_set_bit_lock() pairs with clear_bit_unlock()
 *	parameters	may change at any time: each is read once for each decision, with
 *			READ_ONCE()
 *
 * Memory is charged to the memory cgroup of the task whose call caused the allocation. If that
 * cgroup is full, the call fails with ENOMEM, and the OOM killer is not run.
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

/*
 * Charged to the caller's memory cgroup. If that is full, fail, and do not run the OOM killer.
 */
#define GFP_CHARGED	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* How many operations of a batch are copied in, done and copied out at a time. */
#define CHUNK_OPS	64
/* Is a whole chunk done in one lock hold? */
#define CHUNK_IS_HOLD	(TWHEEL_HOLD_OPS >= CHUNK_OPS)
/*
 * How many events reader_run_any() reads in a lock hold: half as many as there may be operations,
 * because the read of an event may also re-arm its timer.
 */
#define CHUNK_EVENTS	(TWHEEL_HOLD_OPS / 2)
/* How many events a reader has room for on its stack, if another reader has file->spare. */
#define SMALL_EVENTS	8

#define PAGE_SLOTS	(PAGE_SIZE / sizeof(struct slot))
#define TABLE_PAGES	(PAGE_SIZE / sizeof(void *))
#define TABLE_SLOTS	(TABLE_PAGES * PAGE_SLOTS)

/*
 * The most that @max_timers may be: nr_slots can become @max_timers, rounded up to whole pages of
 * slots, and has 32 bits.
 */
#define LIMIT_MAX	(U32_MAX - PAGE_SLOTS)

/*
 * The flags that ADD and MOD may have in any file, and those that a slot keeps. The latter must be
 * below SLOT_EARLY, so only bit 5 is left for another one. A new flag that no slot keeps should
 * have bit 8, or a higher one.
 */
#define VALID_FLAGS	(TWHEEL_F_ABS | TWHEEL_F_KEEP | TWHEEL_F_DELAY)
#define SLOT_FLAGS	(TWHEEL_F_KEEP | TWHEEL_F_DELAY | TWHEEL_F_CANCEL_ON_SET)

/*
 * In slot->flags. SLOT_SET: the clock was set, and the slot's next event must say so. SLOT_EARLY:
 * the slot became ready for that reason, and its deadline may not have come.
 */
#define SLOT_SET	BIT(7)
#define SLOT_EARLY	BIT(6)
static_assert(SLOT_FLAGS < SLOT_EARLY);

/*
 * In file->no_slot: no slot is free, and nobody has tried yet to make some. Inside ops_do() this
 * value is also the result of an add, which is then repeated. So no operation may return -EAGAIN
 * for another reason.
 */
#define SLOTS_TO_COME	(-EAGAIN)

/* The most that op_size of a batch may be. Later versions may make operations longer. */
#define OP_STRIDE_MAX	4096

enum slot_state { FREE, ARMED, READY, READING, IDLE };

struct slot;

/**
 * struct reader - a read(), and the events that are on their way to the caller
 * @events:	the events
 * @taken:	for each event its slot. If the slot does not name this reader any more, the slot
 *		was re-armed or freed meanwhile
 * @room:	how many events fit
 *
 * Only the reader's task uses this structure. A slot that is READING keeps the structure's address,
 * which read_commit() compares.
 */
struct reader {
	struct twheel_event	*events;
	struct slot		**taken;
	u32			room;
};

/**
 * struct slot - a timer of a file
 * @timer:	the wheel's node, used while ARMED. In every state its queue.data is the slot's
 *		index. In every state but FREE its cookie is the deadline in ns on the file's clock,
 *		not shifted into a time namespace; if the timer is periodic, the end of the present
 *		period. In these states its queue.flags are the tolerance, see wheel_decimal.h
 * @link:	link in the ready list, while READY
 * @onward:	the same memory as link.next. It is there only to keep @reader from overlaying
 *		link.next: read_collect() follows link.next after it has set @reader
 * @reader:	while READING: the reader that has the event. The same memory as link.prev
 * @next:	link in the free list, while FREE
 * @user_data:	the caller's own value, which comes back with each event
 * @interval:	its period in ns, or 0
 * @generation:	upper half of the handle; changes when the slot is freed
 * @state:	enum slot_state
 * @flags:	SLOT_FLAGS, SLOT_SET and SLOT_EARLY
 * @nr_past:	how many events of this timer are still being copied, although MOD has re-armed it
 *		since. As long as this is not 0, the timer may neither end nor be freed: see
 *		slot_may_rearm()
 *
 * While the slot is ARMED, timer.queue.expires is the tick in which the timer fires. If the timer
 * has a tolerance, wheel_choose() has chosen that tick among those that are allowed; otherwise the
 * tick is that of the deadline.
 *
 * The base's lock guards all of it.
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
/* The links of lists must not overlay the fields of @timer that are kept in every state. */
static_assert(sizeof(struct list_head) <= offsetof(struct wheel_timer, expires));

/**
 * struct bounce - room for what a call copies from and to user memory
 * @ops:	operations. Belongs to the holder of file->submit
 * @too_long:	bit i is set if ops[i] had a field that is not known here, and that was not 0. Then
 *		ops[i] is all 0. Belongs to the holder of file->submit, too
 * @taken:	see struct reader. Belongs to the reader that has file->spare
 */
struct bounce {
	struct twheel_op	ops[CHUNK_OPS];
	u64			too_long;
	struct slot		*taken[CHUNK_EVENTS];
};

static_assert(CHUNK_OPS <= 64);

static_assert(sizeof(struct bounce) <= 4096);

/**
 * struct opener - a user who has files open
 * @node:	link in openers. Guarded by openers_lock
 * @uid:	the user. Does not change
 * @nr_files:	how many files the user has open. Guarded by openers_lock
 * @nr_pages:	pages of slots in all of these files. Atomic
 * @user:	the account of twheel.ko, by which users share each CPU. Does not change
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
 * @lock:	guards the time of @alarm. Each call that changes the wheel's next event updates
 *		that time before it returns
 * @alarm:	wakes the machine. Its callback does nothing: an hrtimer of a dispatcher serves the
 *		base
 */
struct waker {
	spinlock_t	lock;	/* the alarm's time */
	struct alarm	alarm;
};

/**
 * struct file_wheel - an open file
 * @base:	its base, NULL until the first timer is added; see the head of the file
 * @lock:	the lock of @base, set just before @base is
 * @plain:	@base, or NULL if there is a @waker or no @base yet. If it is NULL, op_try() leaves
 *		all operations to file_op(). Set just before @base is; read under @submit
 * @opener:	the user who opened it. Does not change
 * @ready:	slots that are READY, in the order of expiry. Under the base's lock
 * @free:	slots that are FREE. Under the base's lock
 * @nr_free:	how many are on @free. Changed under the base's lock. The holder of @submit reads
 *		it without that lock: as long as @submit is held, it can only grow
 * @nr_ready:	how many are on @ready. Changed under the base's lock; readers and pollers read it
 *		without that lock, and readers look again under it
 * @nr_slots:	slots that exist, on @nr_pages pages. Changed under @submit and the base's lock;
 *		either is enough to read it
 * @nr_pages:	pages of slots. Guarded like @nr_slots
 * @cursor:	the slot at which the next DRAIN continues. Under @submit
 * @no_slot:	why no other page of slots could be made, an errno; or SLOTS_TO_COME. Under @submit
 * @tables:	the tables of pages of slots, room for @limit slots. Made with @base, filled under
 *		@submit, kept until the file is closed
 * @first:	the only entry of the first table, as long as there is one page
 * @limit:	the most that @max_timers may be. Does not change
 * @max_timers:	how many slots may be in use. Guarded like @config
 * @flags:	flags that ADD and MOD may have besides VALID_FLAGS. Guarded like @config
 * @asks:	set before the first operation with TWHEEL_F_CANCEL_ON_SET is done, or refused, and
 *		never cleared.
 *		Written under @submit; file_was_set() reads it under the base's lock
 * @clock:	the clock that SETUP asked for; @config has the clock that this one shows, see
 *		clock_of(). Guarded like @config
 * @waker:	for an alarm clock, else NULL. Set just before @base is, and stays
 * @config:	clock, tick and slack. Written under @submit and @setup_lock; either is enough to
 *		read it. Does not change once there is a base
 * @setup_lock:	see @config
 * @submit:	see the head of the file
 * @wait:	readers and pollers that wait for an event
 * @bounce:	room for operations, made with @base. A SUBMIT has one even if there is no base
 * @by_worker:	the holder of @submit is a worker of io_uring. Under @submit
 * @spare:	bit 0 is a lock: it is held by the reader that uses @events and bounce->taken
 * @events:	room for events, made with @base. Belongs to the reader that holds @spare
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

/* The opener of user @uid, or NULL. */
static struct opener *opener_find(kuid_t uid)
{
	struct opener *opener;

	lockdep_assert_held(&openers_lock);
	hash_for_each_possible(openers, opener, node, __kuid_val(uid))
		if (uid_eq(opener->uid, uid))
			return opener;
	return NULL;
}

/*
 * Free @opener, or do nothing if it is NULL. It is in no table, and none of its files exists any
 * more.
 */
static void opener_free(struct opener *opener)
{
	if (opener)
		twheel_user_destroy(opener->user);
	kfree(opener);
}

/*
 * Make the opener of user @uid, with no files, in no table yet. Returns NULL if there is no memory.
 */
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

/* Count one more file for @opener. Returns false if the limit is reached. */
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
 * Count one more file for user @uid, and return the user's opener. If the user has no opener yet,
 * the opener in *@fresh becomes the user's, and *@fresh is set to NULL; if *@fresh is NULL already,
 * this returns NULL, and has counted nothing. Returns an ERR_PTR() if the limit is reached.
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

/* User @uid opens a file: return their opener, or an ERR_PTR(). opener_put() undoes it. */
static struct opener *opener_get(kuid_t uid)
{
	struct opener *fresh = NULL, *opener = opener_count(uid, &fresh);

	if (opener)
		return opener;
	/* Allocate without the lock, so that other users need not wait for memory. */
	fresh = opener_new(uid);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	opener = opener_count(uid, &fresh);
	opener_free(fresh);
	return opener;
}

/*
 * A file of @opener is closed, and has uncharged its pages. The opener is freed with the user's
 * last file.
 */
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
 * Count one more page of slots for @opener. Timers are counted by pages, so that most adds count
 * nothing. Until it is closed, a file counts for the most that it has held. Returns false if the
 * limit is reached.
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

/* Undo opener_charge_page() @nr times. */
static void opener_uncharge_pages(struct opener *opener, u32 nr)
{
	atomic_long_sub(nr, &opener->nr_pages);
}

/*
 * Lock the base, which must exist, without reading the clock. Interrupts must be on: this turns
 * them off. If a timer may have been armed, unlock the base with twheel_unlock_irq(), which makes
 * sure that the base is served; else with file_let_go(). The annotations hide the lock from sparse,
 * which cannot know that this is the lock that twheel_unlock_irq() releases.
 */
static __always_inline void file_hold(struct file_wheel *file)
{
	raw_spin_lock_irq(file->lock);
	__release(file->lock);
}

/* Undo file_hold(), where no timer was armed or re-armed meanwhile. Interrupts are on again. */
static __always_inline void file_let_go(struct file_wheel *file)
{
	__acquire(file->lock);
	raw_spin_unlock_irq(file->lock);
}

/* ---- slots ---------------------------------------------------------------- */

/* The handle that names @slot until it is freed. Under the base's lock. */
static u64 slot_handle(const struct slot *slot)
{
	return (u64)slot->generation << 32 | slot->timer.queue.data;
}

/* The slot of @timer, which must be a timer of a file's base: these are all members of slots. */
static struct slot *slot_of(struct twheel_timer *timer)
{
	return container_of(timer, struct slot, timer);
}

/*
 * The slot with this @index, which must be below a value of file->nr_slots that the caller has read
 * under the base's lock or with file->submit: then its page is in the tables, and stays. An @index
 * that comes from the user is bounded with array_index_nospec() first (`make lint` checks that).
 *
 * READ_ONCE() pairs with the release in slots_alloc(): file_was_set() calls this without
 * file->submit.
 */
static struct slot *slot_at(const struct file_wheel *file, u32 index)
{
	u32 page = index / PAGE_SLOTS;

	return READ_ONCE(file->tables[page / TABLE_PAGES])[page % TABLE_PAGES] +
	       index % PAGE_SLOTS;
}

/*
 * The slot that @handle names, or NULL if it never named one or the slot was freed. With
 * file->submit and the base's lock.
 */
static __always_inline struct slot *slot_find(const struct file_wheel *file, u64 handle)
{
	unsigned long index = (u32)handle, nr_slots = file->nr_slots;
	struct slot *slot;

	if (index >= nr_slots)
		return NULL;
	/* The index comes from the user: bound it for speculation too. */
	slot = slot_at(file, array_index_nospec(index, nr_slots));
	if (slot->state == FREE || slot->generation != handle >> 32)
		return NULL;
	return slot;
}

/* How many tables file->limit slots need, which is not 0. DIV_ROUND_UP() would overflow 32 bits. */
static u32 file_nr_tables(const struct file_wheel *file)
{
	return (file->limit - 1) / TABLE_SLOTS + 1;
}

/* How many slots are not FREE. Under the base's lock, since readers change nr_free. */
static u32 file_nr_used(const struct file_wheel *file)
{
	return file->nr_slots - file->nr_free;
}

/*
 * Take a slot off the free list, or return NULL if that is empty. The slot has its index and its
 * generation, so it has a handle; the caller sets the rest and its state, or puts it back. Under
 * the base's lock.
 */
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
 * Free @slot, which is in no list and not armed, and put it in front of @next, the free list. From
 * here on its old handle names nothing. Generation 0 is left out, so that no handle is 0. Under the
 * base's lock; the caller updates the list's head and count.
 */
static __always_inline void slot_free(struct slot *slot, struct slot *next)
{
	u32 generation = slot->generation + 1;

	slot->state = FREE;
	slot->generation = generation + !generation;
	slot->next = next;
}

/* slot_free() of one slot, which also updates the list's head and count. Under the base's lock. */
static void slot_put(struct file_wheel *file, struct slot *slot)
{
	slot_free(slot, file->free);
	file->free = slot;
	WRITE_ONCE(file->nr_free, file->nr_free + 1);
}

/* Does a timer with this @interval and these @flags exist beyond its next event? */
static bool goes_on(u64 interval, u32 flags)
{
	return interval || (flags & TWHEEL_F_KEEP);
}

/* Put @slot, which is on no list and not armed, on the ready list. Under the base's lock. */
static void slot_queue(struct file_wheel *file, struct slot *slot)
{
	slot->state = READY;
	list_add_tail(&slot->link, &file->ready);
	WRITE_ONCE(file->nr_ready, file->nr_ready + 1);
}

/*
 * The tolerance of @slot in ns. It is kept as a 16-bit decimal, and never more than was asked for.
 */
static noinline u64 slot_tolerance(const struct slot *slot)
{
	return wheel_decimal_time(slot->timer.queue.flags);
}

/* Put @slot into the wheel, in which it is not yet, for @deadline. Under the base's lock. */
static __always_inline void slot_add(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	if (likely(!slot->timer.queue.flags))
		twheel_add_locked(file->base, &slot->timer, deadline);
	else
		twheel_add_range_locked(file->base, &slot->timer, deadline, slot_tolerance(slot));
}

/*
 * Arm @slot, which is on no list and not in the wheel, again for @deadline: either its next period
 * begins, or DRAIN could not hand it out. Under the base's lock.
 */
static void slot_arm(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	slot->timer.cookie = deadline;
	/* The clock was set while @slot was out of the wheel: its event has to say so, at once. */
	if (unlikely(slot->flags & SLOT_SET)) {
		slot->flags |= SLOT_EARLY;
		slot_queue(file, slot);
		return;
	}
	slot->flags &= ~SLOT_EARLY;
	slot->state = ARMED;
	slot_add(file, slot, deadline);
}

/* Take @slot, which is READY, off the ready list: its event is dropped. Under the base's lock. */
static void slot_unqueue(struct file_wheel *file, struct slot *slot)
{
	list_del(&slot->link);
	WRITE_ONCE(file->nr_ready, file->nr_ready - 1);
}

/* The base, or NULL if there is none yet. For callers that do not hold file->submit. */
static struct twheel_base *file_base(const struct file_wheel *file)
{
	/* Pairs with the release in file_create(): everything made with the base is visible. */
	return smp_load_acquire(&file->base);
}

/*
 * Add @slots, a page that slots_alloc() made, to the free list. With file->submit. The page is not
 * zeroed: what is not set here is set when a slot is taken.
 */
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
	/* Before nr_slots counts the page: slot_at() follows an index that is below nr_slots. */
	file->tables[page / TABLE_PAGES][page % TABLE_PAGES] = slots;

	file_hold(file);
	slots[PAGE_SLOTS - 1].next = file->free;
	file->free = slots;
	file->nr_free += PAGE_SLOTS;
	file->nr_slots += PAGE_SLOTS;
	file->nr_pages++;
	file_let_go(file);
}

/*
 * Make a page of slots, and the table that it will be in. With file->submit. Returns the page, or
 * an ERR_PTR(); a table that was made stays for the next time.
 */
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
		/*
		 * Pairs with the dependent load in slot_at(). A lookup in the old table
		 * meanwhile finds the same page.
		 */
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

/* Undo slots_alloc(), except for the table. */
static void slots_unalloc(struct file_wheel *file, struct slot *slots)
{
	opener_uncharge_pages(file->opener, 1);
	free_page((unsigned long)slots);
}

/*
 * Make the room for events, the tables and a page of slots. Returns the page, or an ERR_PTR(). In
 * either case file_unalloc() undoes it.
 */
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

/* Is @clock, which the user chose, one that SETUP accepts? */
static bool clock_is_valid(clockid_t clock)
{
	return clock >= 0 && clock < BITS_PER_LONG && (BIT(clock) & CLOCKS);
}

/* Does @clock, which is valid, wake the machine? */
static bool clock_is_alarm(clockid_t clock)
{
	return BIT(clock) & ALARM_CLOCKS;
}

/*
 * The clock that the base of a file on @clock has: @clock, or what an alarm clock shows.
 */
static clockid_t clock_of(clockid_t clock)
{
	if (!clock_is_alarm(clock))
		return clock;
	return clock == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME : CLOCK_BOOTTIME;
}

/* There is nothing to do: the alarm only has to wake the machine. */
static ALARM_RETURNS waker_fired(struct alarm *alarm, ktime_t now)
{
	return ALARM_DONE;
}

/* Make a waker for alarm clock @clock, not set to any time. Returns NULL if there is no memory. */
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

/* Stop the alarm, wait until its callback has returned, and free @waker; NULL is ignored. */
static void waker_free(struct waker *waker)
{
	if (waker)
		alarm_cancel(&waker->alarm);
	kfree(waker);
}

/*
 * Make a bounce. It is not zeroed: each call that uses it writes a field before it reads that
 * field. Returns NULL if there is no memory.
 */
static struct bounce *bounce_alloc(void)
{
	return kmalloc(sizeof(struct bounce), GFP_CHARGED);
}

/* Make the base and, for an alarm clock, the waker. Returns the base, or an ERR_PTR(). */
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
 * Make the base and everything else that the first timer needs. With file->submit. If that fails,
 * the file is as before, and SETUP is still possible. Returns 0 or an error.
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

/*
 * Add a page of slots, and first whatever the file lacks for that: the base, or the wheel's
 * buckets. With file->submit. Returns 0 or an error, with no slot added.
 */
static int slots_grow(struct file_wheel *file)
{
	struct slot *slots;

	if (!file->base)
		return file_create(file);
	slots = slots_alloc(file);
	if (IS_ERR(slots))
		return PTR_ERR(slots);
	/* With the second page the base needs buckets. Later this does nothing. */
	if (twheel_grow(file->base)) {
		slots_unalloc(file, slots);
		return -ENOMEM;
	}
	slots_add_page(file, slots);
	return 0;
}

/*
 * Allocate until @nr slots are free, as far as the limits allow. With file->submit. If that fails,
 * file->no_slot says why, and op_add() returns it if it finds no free slot. nr_free is read without
 * the base's lock: readers may free slots meanwhile, but only the holder of file->submit takes any.
 */
static void slots_reserve(struct file_wheel *file, u32 nr)
{
	int err = 0;

	while (!err && READ_ONCE(file->nr_free) < nr && file->nr_slots < file->max_timers) {
		err = slots_grow(file);
		file->no_slot = err ?: SLOTS_TO_COME;
	}
}

/*
 * Free all slots and tables, and uncharge their opener. Only file_release() may call it, after
 * twheel_destroy(): nothing can reach a slot any more, whatever its state.
 */
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

/*
 * The memory of a file with @nr_pages pages of slots. If @nr_pages is 0, there is no base yet, or
 * file_create() is about to add the first page.
 */
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

/*
 * The sink's expired(): put @nr timers, which have expired, on the ready list in this order. The
 * dispatcher calls this under the base's lock. When it has released that lock, it calls
 * file_sink_wake().
 */
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
 * Wake a reader, and all pollers. Called for every batch of events, even if others are ready
 * already: a program that polls edge-triggered and leaves events unread waits for the next edge. If
 * nobody waits, the queue's lock is taken for nothing; but to look first would need a full memory
 * barrier, and so save nothing.
 */
static void file_wake(struct file_wheel *file)
{
	wake_up_interruptible_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
}

/* ---- alarm clocks ---------------------------------------------------------- */

/*
 * Set the alarm to when the wheel has work next. That may be too early: the work may be to move
 * timers, or the timer may have been cancelled. Under waker->lock.
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

/* Set the alarm again, in task context, after a call that may have changed the next event. */
static void file_update_waker(struct file_wheel *file)
{
	if (likely(!READ_ONCE(file->waker)) || !file_base(file))
		return;
	spin_lock_bh(&file->waker->lock);
	waker_set(file);
	spin_unlock_bh(&file->waker->lock);
}

/*
 * file_update_waker() for the sink. On PREEMPT_RT the sink must not wait for a lock: if somebody
 * holds waker->lock, this does nothing and returns false.
 */
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
 * The sink's wake(): if the file is on an alarm clock, set the alarm; then wake a reader and all
 * pollers. The dispatcher may also call this when nothing has expired. Returns false if the
 * dispatcher must call it again later.
 *
 * On PREEMPT_RT the wait queue's lock may be held by a task that has been preempted by the very
 * reader that it woke. The timers of this CPU must not wait until the reader has finished its work.
 * So the sink only tries to take the lock.
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

/*
 * For a file on an alarm clock: wake() is called even if nothing has expired, since it sets the
 * alarm to the wheel's next event.
 */
static const struct twheel_sink alarm_sink = {
	.expired	= file_expired,
	.wake		= file_sink_wake,
	.always		= true,
};

/*
 * The clock was set. If the timer of @slot was armed with TWHEEL_F_CANCEL_ON_SET, it gets an event.
 * An armed slot becomes ready at once. If the slot is ready already, its event will say so. If the
 * slot is being read or drained, and slot_arm() arms it again after that, it becomes ready then.
 * Under the base's lock. Returns whether this has made the slot ready.
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
 * The base's was_set(): search all slots for those that ask for an event, TWHEEL_HOLD_OPS in each
 * lock hold. This must not wait for a user, so it does not take file->submit. If a caller meanwhile
 * adds a timer in a slot that was already searched, the timer needs no event: it is armed after the
 * clock was set.
 */
static void file_was_set(struct twheel_base *base)
{
	struct file_wheel *file = twheel_owner(base);
	u32 at = 0, end;

	do {
		unsigned long flags;
		bool ready = false;

		twheel_lock(base, &flags);
		/*
		 * Pairs with ops_settle(). The caller that arms a timer sets @asks before it takes
		 * the lock to arm it. So if @asks, read under the lock, is not set, no timer has
		 * been armed with TWHEEL_F_CANCEL_ON_SET yet.
		 */
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

/* init's time namespace is the host's. Called before the device exists. */
static __init void host_time_ns_init(void)
{
	host_time_ns = init_task.nsproxy->time_ns;
}

/* Is the caller in another time namespace? A task that is exiting is in none. */
static __always_inline bool clock_is_shifted(void)
{
	const struct nsproxy *nsproxy = current->nsproxy;

	return nsproxy && nsproxy->time_ns != host_time_ns;
}

/*
 * By how much @clock, the clock of a file, is ahead in the caller's time namespace, which is not
 * the host's. As with timerfd the namespace of the caller counts, not that of the task which opened
 * the file. The kernel's own timens_ktime_to_host() is not exported before 7.2.
 */
static noinline s64 clock_shift(clockid_t clock)
{
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	/* The time of day is the same in all namespaces. */
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

/* By how much @clock, the clock of a file, is ahead for the caller; mostly 0. */
static __always_inline s64 clock_offset(clockid_t clock)
{
	return unlikely(clock_is_shifted()) ? clock_shift(clock) : 0;
}

/*
 * @time plus @offset, clamped to between 0 and KTIME_MAX. A @time of KTIME_MAX means never, and
 * stays as it is.
 */
static ktime_t time_shift(ktime_t time, s64 offset)
{
	if (!offset || time == KTIME_MAX)
		return time;
	return offset < 0 ? max_t(s64, time + offset, 0) : ktime_add_safe(time, offset);
}

/**
 * struct moment - the time that the operations of a lock hold count from
 * @now:	the time of the file's clock
 * @offset:	clock_offset(): by how much the caller's clock is ahead of the file's
 *
 * file_lock(), which a batch uses, sets both. For a single operation op_moment() sets only the one
 * that the operation needs, and leaves the other 0: it sets @offset if the operation has
 * TWHEEL_F_ABS, else @now; for a CANCEL, neither. Code that needs @now for another reason must be
 * added to op_moment(), too.
 */
struct moment {
	ktime_t	now;
	s64	offset;
};

/* Lock the base, which must exist, and read the clock. twheel_unlock() unlocks it. */
static struct moment file_lock(struct file_wheel *file, unsigned long *flags)
{
	struct moment m = { .offset = clock_offset(file->config.clock) };

	m.now = twheel_lock(file->base, flags);
	return m;
}

/*
 * To be called before operation @i of a chunk. After every TWHEEL_HOLD_OPS operations this drops
 * the base's lock, and takes it again: slots may change in between, and @m is set anew.
 */
static void file_relock(struct file_wheel *file, unsigned long *flags, struct moment *m, u32 i)
{
	if (CHUNK_IS_HOLD || !i || i % TWHEEL_HOLD_OPS)
		return;
	twheel_unlock(file->base, *flags);
	*m = file_lock(file, flags);
}

/*
 * ---- operations ------------------------------------------------------------
 *
 * op_add(), op_mod(), op_cancel() and op_query() do one operation that op_is_valid() has accepted.
 * The caller holds file->submit and the base's lock, with interrupts off, so they must not sleep.
 * They return what the caller is to store in op->res. They set in @op what the operation is to give
 * back, but only after the step "refuse" below. If they refuse, they leave @op as it was:
 * batch_store() may copy the whole @op to the caller even if the operation failed.
 *
 * Each goes through the same four steps, and their order matters:
 *
 *	find	slot_find(): the handle may be stale, or nonsense
 *	refuse	everything that can fail. A negative result means that nothing has changed, and any
 *		other result that the operation was done: MOD has re-armed the timer. So if an
 *		operation leaves the timer as it is, it must refuse. Do not refuse with -EAGAIN or
 *		-EFAULT, because the operation would be repeated: ops_do() takes -EAGAIN for
 *		SLOTS_TO_COME, and op_do_surely() takes -EFAULT for memory that went away. If the
 *		fast path refuses an operation, the operation is tried a second time, which decides
 *		anew, see op_try(). So a refusal that is common costs twice
 *	tell	op_tell() stores the result in user memory. This is the last step that can fail
 *	change	the slot, its list and the wheel
 *
 * If telling came before refusing, the caller would believe in an operation that was not done. If
 * the change came before telling, a fault in telling would leave a change that nobody knows of.
 * (op_add() takes its slot before it tells the handle, and puts the slot back if telling fails.)
 *
 * @user is the operation's place in user memory, where op_tell() stores the result. It is NULL in a
 * batch, whose results are stored later: batch_fetch() has checked that memory. If some
 * results still cannot be stored, batch_chunk() undoes the adds. A MOD or CANCEL stays done, though
 * its caller does not know.
 *
 * @m is the time that the operation counts from. Its fields may be unset, see struct moment.
 *
 * A new field of operations passes through these places: op_get() and ops_widen() set it to 0 if
 * the program is older than the field; op_is_valid() refuses what makes no sense; slot_set() keeps
 * it in the slot; op_set_expires() or drain_collect() gives it back, so that the output of DRAIN,
 * submitted again, makes the same timers. A new flag that a slot keeps goes to op_is_valid(),
 * VALID_FLAGS and SLOT_FLAGS: slot_set() and drain_collect() use the latter. CONTRIBUTING.md, "a
 * field or a flag of an operation", lists what else there is: the library, tests and documents.
 *
 * A flag that only decides whether MOD is done, as TWHEEL_F_PENDING does, goes to op_is_valid(),
 * and into neither VALID_FLAGS nor SLOT_FLAGS, where a comment says which bit to take. If it
 * refuses a slot that is not ARMED, slot_may_rearm() does that; if it refuses an ARMED slot, see
 * op_mod(). The new deadline can always be computed from @op and @m, so comparing it with the old
 * one needs no clock. If the decision needs the present time (has a deadline passed?), op_moment()
 * must read the clock, and op_is_exact() of lib/embedded.c must ask for the exact clock.
 *
 * Most functions from here to op_run() are inlined into each caller, with a constant @opcode, so
 * that ADD, MOD and CANCEL are each compiled without the branches of the others.
 */

/* time_is_valid() of an operation whose timer is periodic, or may be late. */
static noinline bool times_are_valid(const struct file_wheel *file, u64 expires, u64 interval,
				     u64 tolerance, u32 flags)
{
	/*
	 * Each of the three must be below 2^63, and so must @expires + @tolerance. If one of these
	 * four is not, it sets the sign bit of their OR. The sum cannot wrap unnoticed: two numbers
	 * below 2^63 add up to less than 2^64.
	 */
	if ((s64)(expires | interval | tolerance | (expires + tolerance)) < 0)
		return false;
	return interval ? interval >= file->config.tick_ns : !(flags & TWHEEL_F_DELAY);
}

/* Are the times of an operation that arms a timer valid? */
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

/* Are all inputs 0 but the handle and the flags? op_is_valid() has checked @res and @reserved. */
static bool op_is_bare(const struct twheel_op *op)
{
	return !(op->user_data | op->expires_ns | op->interval_ns | op->tolerance_ns);
}

/*
 * Is @op valid as an @opcode, as far as can be said without looking at a timer? @also are flags
 * that it may have besides VALID_FLAGS.
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

/* @tolerance as a slot keeps it. Not inlined, so that the code that arms exact timers is short. */
static noinline u16 tolerance_of(u64 tolerance)
{
	return wheel_decimal_of(tolerance);
}

/*
 * Give @slot the deadline, period, tolerance and flags of @op, and make it ARMED. Returns the
 * deadline, on the file's clock; in the same lock hold the caller puts the slot into the wheel for
 * that. SLOT_SET and SLOT_EARLY are dropped: they belong to an event that was read or dropped.
 */
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
 * Between tell_begin() and tell_end() user memory is written under the base's lock. If a page is
 * not present, the write must fail and not wait for it. On kernels that count preemption the
 * spinlock alone ensures that; on others, and for the debugging options, page faults are disabled.
 */
#define TELL_COUNTS	(!IS_ENABLED(CONFIG_PREEMPT_COUNT) || \
			 IS_ENABLED(CONFIG_PROVE_LOCKING) || IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP))

/* From here to tell_end() a write to user memory fails instead of sleeping. See above. */
static __always_inline void tell_begin(void)
{
	if (TELL_COUNTS)
		pagefault_disable();
}

/* Undo tell_begin(). */
static __always_inline void tell_end(void)
{
	if (TELL_COUNTS)
		pagefault_enable();
}

/*
 * Store to user memory what one operation is about to give: @res in @user->res, and @value in @out.
 * The operation is done in the same lock hold, so either it is done and the caller is told, or
 * neither. This does not wait for memory: if a page is not present or not writable, it returns
 * false, with user memory as it was. An operation may lie on two pages: so if the second store
 * fails, the first is undone. If @res is the constant 0, as for ADD, it is not stored: @user->res
 * is 0 already, or the operation would not be valid.
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

/*
 * ADD: take a free slot, give it what @op says, arm it. Sets op->handle. Returns 0, -EDQUOT,
 * -EFAULT, or file->no_slot if no slot is free: op_add() makes no slots, since that may sleep.
 * Its callers call slots_reserve() beforehand, or after a failure and then repeat the add.
 */
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
 * May MOD re-arm @slot with this @interval and these @flags? op_mod() asks only if @slot is not
 * ARMED or its @nr_past is not 0; otherwise this would return 0. Returns 0; -ENOENT if MOD is to
 * re-arm only an armed timer (TWHEEL_F_PENDING); or -EALREADY. If both errors apply, this returns
 * -ENOENT, which is true whatever the reader does. With file->submit and the base's lock.
 *
 * If a reader is copying the slot's event, MOD counts that event as read: the reader will find that
 * the slot does not name it any more, and leaves the slot alone. But a program may free its memory
 * for a timer when it reads an event without TWHEEL_EV_MORE, so no event of the timer may be read
 * after that one. Hence -EALREADY in three cases:
 *
 * 1. The event that is being copied is the timer's last: MOD is too late.
 * 2. The event after MOD would be the last, and could overtake those that are still being copied.
 * 3. @nr_past cannot count one more reader.
 *
 * Case 2:
 *
 *	CPU 0: read()				CPU 1: MOD, and a read() of its own
 *	slot is READING, event 1 in the reader's room
 *						without KEEP: would be armed, and expire;
 *						event 2, the last, is read, and the program
 *						frees what user_data points to
 *	copies event 1, whose user_data
 *	points there too
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

/*
 * Take @slot, which is not ARMED, from wherever it is, so that it can be armed. A READY slot loses
 * its event. A READING slot is taken from its reader; @nr_past counts that this reader is still
 * copying, until read_commit() calls slot_past_read(). For that, read_commit() compares @reader
 * with its own struct reader. NULL differs from it. So does what is stored there next: when the
 * slot is ARMED, the wheel keeps the slot's links to its bucket in the same memory, and these are
 * never the address of a reader. With file->submit and the base's lock.
 */
static void slot_take(struct file_wheel *file, struct slot *slot)
{
	if (slot->state == READY) {
		slot_unqueue(file, slot);
	} else if (slot->state == READING) {
		slot->reader = NULL;
		slot->nr_past++;
	}
}

/* Arm @slot for @deadline, in the wheel or not. Returns whether it was. With the base's lock. */
static __always_inline bool slot_mod(struct file_wheel *file, struct slot *slot, ktime_t deadline)
{
	if (likely(!slot->timer.queue.flags))
		return twheel_mod_locked(file->base, &slot->timer, deadline);
	return twheel_mod_range_locked(file->base, &slot->timer, deadline, slot_tolerance(slot));
}

/*
 * MOD: arm the timer again with what @op says, whatever its state; an event that was not read is
 * dropped. Sets op->user_data. Returns 1 if it was ARMED before, 0 if not, -ENOENT, -EALREADY (see
 * slot_may_rearm()) or -EFAULT.
 *
 * The common case, which a server has a million times a second, is an ARMED slot whose
 * @nr_past is 0. So its path must stay the shortest: slot_find(), op_tell(), slot_set(),
 * slot_mod(). Mostly the timer then stays in its bucket, and only its tick changes
 * (twheel_mod_locked()). No test guards that: `make bench-calls` counts the instructions of a MOD,
 * in a virtual machine, so run it before and after a change. slot_may_rearm() is not called on this
 * path. A reason to refuse an ARMED slot needs a branch of its own, before slot_may_rearm() is
 * called and before @op is written. If several errors apply, return one that is true whatever a
 * reader does, rather than -EALREADY.
 *
 * slot_take() comes before slot_set(): it needs the old state, which slot_set() overwrites. It only
 * unlinks the slot, so between the two the slot is on no list; the base's lock hides that.
 * slot_set() comes before slot_mod(), as its argument: slot_mod() needs the new queue.flags. For
 * TWHEEL_F_CANCEL_ON_SET the callers have called ops_settle() before they took the lock; all but
 * op_try(), which takes no operation with that flag.
 *
 * op_tell() stores slot->state == ARMED, and op_mod() returns what slot_mod() returns. The two
 * are equal, because a slot is ARMED exactly if its timer is in the wheel. (Only drain_collect()
 * breaks that, and DRAIN holds file->submit until drain_commit().) If you change how one is
 * computed, change the other.
 *
 * Tests, in selftest/uapi: test_basic (results, TWHEEL_F_PENDING), test_errors (invalid input),
 * test_read (a reader that is copying), test_tolerance, test_model and test_stress (random calls).
 * The model is selftest/proof/device.pml. The embedded backend has an op_mod() of its own, in
 * lib/embedded.c; its tests are in selftest/lib.
 */
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
 * CANCEL: free the timer, whatever its state; an event that was not read is dropped. Sets
 * op->user_data. Returns 1 if it was armed, 0 if not, -ENOENT, -EALREADY or -EFAULT.
 *
 * A result of 0 or 1 promises that no event of the timer will be read from now on. While a reader
 * is copying an event, op_cancel() cannot promise that; nor is it sure that the reader will get the
 * event, since the copy may still fail. So op_cancel() then returns -EALREADY:
 *
 *	CPU 0: read()				CPU 1: cancel
 *	slot is READING, event in the reader's room
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

/*
 * Store in @op the tolerance of @slot, and when it is due: if @op has TWHEEL_F_ABS, the deadline on
 * the caller's clock; else the time left until then.
 */
static void op_set_expires(struct twheel_op *op, const struct slot *slot,
			   const struct moment *m)
{
	ktime_t deadline = slot->timer.cookie;

	op->expires_ns = op->flags & TWHEEL_F_ABS ? time_shift(deadline, m->offset) :
			 max_t(ktime_t, deadline - m->now, 0);
	/* ADD accepts no sum above KTIME_MAX, and must accept what is stored here. */
	op->tolerance_ns = min_t(u64, slot_tolerance(slot), KTIME_MAX - op->expires_ns);
}

/*
 * QUERY: return an enum twheel_state, or -ENOENT, and describe the timer in @op. It changes
 * nothing, so it tells nothing here: the caller stores @op afterwards. READING counts as READY: the
 * reader may still fail to get the event.
 */
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

/* Do @op as an @opcode. See the head of this section. */
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

/* Do @op as an @opcode, if it is valid. */
static __always_inline int op_run_as(struct file_wheel *file, struct twheel_op *op, u32 opcode,
				     u32 also, const struct moment *m)
{
	if (unlikely(!op_is_valid(file, op, opcode, also)))
		return -EINVAL;
	return op_do(file, op, opcode, m, NULL);
}

/*
 * Do one operation of a batch, if it is valid. @also is as in op_is_valid(). The opcode is a
 * constant in each call, so that each kind is compiled by itself.
 */
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

/* Is @op a valid ADD? */
static bool op_is_add(const struct file_wheel *file, const struct twheel_op *op)
{
	return op->op == TWHEEL_OP_ADD && op_is_valid(file, op, TWHEEL_OP_ADD, file->flags);
}

/*
 * To be called before @nr operations: if the first is a valid add and no slot is free, make some.
 * Mostly either all operations are adds or none is. If a later add finds no free slot, ops_do()
 * calls ops_reserve_more(). If there is no base yet, look at all operations: the base is made for
 * any valid add, and for nothing else. With file->submit.
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

/* The results of operations on a file without a base: no timer exists, and none could be added. */
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
 * To be called before @nr operations. If one has TWHEEL_F_CANCEL_ON_SET, even one that will be
 * refused, wait until the file has handled every setting of the clock so far: its timer must have
 * no event for those. Other operations do not wait. There must be a base. With file->submit,
 * without the base's lock.
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

/* How many of the first @nr operations have a negative result. */
static u32 ops_count_failed(const struct twheel_op *ops, u32 nr)
{
	u32 i, failed = 0;

	for (i = 0; i < nr; i++)
		failed += ops[i].res < 0;
	return failed;
}

/* Between two operations of a chunk: drop the base's lock to make more slots, and take it again. */
static noinline void ops_reserve_more(struct file_wheel *file, unsigned long *flags,
				      struct moment *m)
{
	twheel_unlock(file->base, *flags);
	slots_reserve(file, 1);
	*m = file_lock(file, flags);
}

/* Do @nr operations, at most CHUNK_OPS. Returns whether any has failed. With file->submit. */
static noinline bool ops_do(struct file_wheel *file, struct twheel_op *ops, u32 nr)
{
	const struct twheel_op *end = ops + nr;
	const u32 also = file->flags;
	struct twheel_op *op = ops;
	unsigned long flags;
	struct moment m;
	int all = 0;		/* all results, ored: negative if any is */

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
			/* Repeat it: now there is a slot, or file->no_slot says why not. */
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

/*
 * Free the timer that @op has added, because the caller could not be told its handle. The timer may
 * have expired meanwhile, and its event may even have been read. If a reader is copying the event,
 * it will find that the slot does not name that reader any more. With file->submit and the base's
 * lock.
 */
static void op_undo_add(struct file_wheel *file, const struct twheel_op *op)
{
	struct slot *slot = slot_find(file, op->handle);

	if (!slot)
		return;
	if (slot->state == ARMED)
		twheel_cancel_locked(file->base, &slot->timer);
	else if (slot->state == READY)
		slot_unqueue(file, slot);
	slot->reader = NULL;		/* a reader that has the event leaves the slot alone */
	slot->nr_past = 0;
	slot_put(file, slot);
}

/* Undo the adds among @nr operations whose results could not be stored. With file->submit. */
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
 * How many of the @size bytes at @user can be written? Find out by writing to each page the byte
 * that is there already. So the caller waits here, and not under the base's lock, for pages that
 * must be read in or copied. Results are then stored to these pages, so hardly any page becomes
 * dirty for nothing: callers ask for CHUNK_OPS operations at most.
 */
static size_t can_write(u8 __user *user, size_t size)
{
	size_t at = 0;
	u8 byte;

	while (at < size && !get_user(byte, user + at) && !put_user(byte, user + at))
		at += PAGE_SIZE - offset_in_page(user + at);
	return min(at, size);
}

/*
 * How many bytes of an operation are fields of our struct twheel_op, if it has @size bytes of user
 * memory.
 */
static size_t op_known(size_t size)
{
	return min(size, sizeof(struct twheel_op));
}

/*
 * Read an operation from user memory, and check that its result can be stored there, before
 * anything is done. Returns 0, -EFAULT, or -E2BIG if a field that is not known here is not 0. In a
 * batch, -E2BIG becomes the result of that operation.
 */
static int op_fetch(struct twheel_op *op, void __user *user, size_t size)
{
	int err = copy_struct_from_user(op, sizeof(*op), user, size);

	return can_write(user, op_known(size)) < op_known(size) ? -EFAULT : err;
}

/*
 * Store an operation and its result. If the operation failed, store only the result: if it was too
 * long (-E2BIG), the fields of @op are zeroes and not those that the caller gave.
 */
static int op_store(const struct twheel_op *op, struct twheel_op __user *user, size_t size)
{
	if (op->res < 0)
		return put_user(op->res, &user->res);
	return copy_to_user(user, op, op_known(size)) ? -EFAULT : 0;
}

/* ---- one operation ------------------------------------------------------------ */

/*
 * The time, as far as @op needs it as an @opcode: reading the clock is expensive. A deadline needs
 * only the offset, a delay only the time, a cancel neither.
 *
 * The clock is read before the lock is taken, so that the lock is held for a shorter time. So the
 * time may be out of date by as long as the task was interrupted, or waited for the lock.
 */
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
 * Do @op, which is valid as an @opcode, and store its result at @user; that of QUERY is left to the
 * caller. There must be a base. With file->submit. Returns the result; -EFAULT if it could not be
 * stored without waiting, and then nothing was done.
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

/* op_do_one() if there may be no base yet, or no free slot for an add: make these first. */
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
 * op_do_first(), repeated as long as the memory at @user goes away (is swapped out, say) between
 * the check and the store: can_write() brings it back.
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
	/* QUERY stores the whole operation, in which @op must come back as the caller gave it. */
	op.op = given;
	if (opcode == TWHEEL_OP_QUERY && op.res >= 0 && op_store(&op, user, size))
		return -EFAULT;
	return op.res;
}

/* Where in user memory the next operation of @batch is. */
static void __user *batch_next(const struct twheel_batch *batch)
{
	return u64_to_user_ptr(batch->ops + (u64)batch->nr_done * batch->op_size);
}

/*
 * @ops holds @nr operations of the first version, without gaps. Move them apart, from the last to
 * the first, to operations as they are now.
 */
static void ops_widen(struct twheel_op *ops, u32 nr)
{
	const void *end = (void *)ops + nr * TWHEEL_OP_SIZE_VER0;

	while (nr--) {
		end -= TWHEEL_OP_SIZE_VER0;
		memmove(&ops[nr], end, TWHEEL_OP_SIZE_VER0);
		ops[nr].tolerance_ns = 0;
	}
}

/*
 * batch_fetch() of operations without gaps, in one copy. If not all of them can be read,
 * copy_from_user() may give up some bytes before the first byte that cannot be read, as it does on
 * arm64. So this then tries the operations that copy_from_user() left one by one.
 */
static u32 ops_fetch(struct twheel_op *ops, u32 nr, void __user *user, size_t op_size)
{
	const size_t size = nr * op_size;
	size_t got = size - copy_from_user(ops, user, size);

	got -= got % op_size;
	while (unlikely(got < size) && !copy_from_user((void *)ops + got, user + got, op_size))
		got += op_size;
	nr = can_write(user, got) / op_size;
	if (op_size < sizeof(*ops))
		ops_widen(ops, nr);
	return nr;
}

/*
 * Read the next @nr operations of @batch into the bounce. Returns how many could be read, and can
 * be written.
 */
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

/*
 * Operations that were too long are all 0 in the bounce, so they have failed as invalid. Give them
 * the right error.
 */
static void ops_tell_too_long(struct bounce *bounce)
{
	u32 i;

	for (i = 0; i < CHUNK_OPS; i++)
		if (bounce->too_long & BIT_ULL(i))
			bounce->ops[i].res = -E2BIG;
}

/*
 * Store @nr operations of the bounce to user memory. If @tails, also clear what follows each of
 * them up to the next. Returns how many could be stored.
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

/*
 * How many operations of a batch are done next? If the file's timers are in a tree, whose
 * operations take longer, no more than fit into one lock hold. A file that has no base yet begins
 * with a tree. With file->submit.
 */
static u32 batch_most(const struct file_wheel *file, const struct twheel_batch *batch)
{
	u32 most = CHUNK_OPS;

	if (!file->base || twheel_hold_ops(file->base) < TWHEEL_HOLD_OPS)
		most = TWHEEL_TREE_OPS;
	return min(batch->nr - batch->nr_done, most);
}

/*
 * Do the next batch_most() operations of a batch: copy in, do, copy out. Returns 0, or -EFAULT if
 * not all of them could be read and stored; those that count in batch->nr_done were.
 */
static int batch_chunk(struct file_wheel *file, struct twheel_batch *batch)
{
	u32 most = batch_most(file, batch);
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

/*
 * Is @batch valid, as far as can be said without reading its array? If @drains, it is a DRAIN: that
 * may have TWHEEL_F_ABS, and must have room for at least one timer. Otherwise it is a SUBMIT.
 */
static bool batch_is_valid(const struct twheel_batch *batch, bool drains)
{
	return batch->nr >= drains && batch->nr <= TWHEEL_BATCH_MAX &&
	       !(batch->flags & ~(drains ? TWHEEL_F_ABS : 0)) &&
	       !batch->nr_done && !batch->nr_failed &&
	       batch->op_size >= TWHEEL_OP_SIZE_VER0 &&
	       batch->op_size <= OP_STRIDE_MAX && !(batch->op_size % 8);
}

/*
 * Store how much of @batch has been done so far. Also called before the batch begins: then it
 * writes zeroes over zeroes, so that a call that cannot store them fails before anything is done.
 * Returns 0 or -EFAULT.
 */
static int batch_store_counts(const struct twheel_batch *batch,
			      struct twheel_batch __user *user)
{
	if (put_user(batch->nr_done, &user->nr_done) ||
	    put_user(batch->nr_failed, &user->nr_failed))
		return -EFAULT;
	return 0;
}

/*
 * Must the call end early? In a worker of io_uring anything pending means yes: the worker's request
 * was cancelled, or its ring is gone. Other tasks, among them a thread that polls a ring's
 * submissions, now and then have task work of io_uring pending. It can wait, so for these tasks
 * only a signal counts.
 */
static bool batch_is_stopped(const struct file_wheel *file)
{
	return file->by_worker ? signal_pending(current) : task_sigpending(current);
}

/* Do the operations of a batch until all are done, or a fault or a signal comes. */
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

/* SUBMIT: do @batch, which is valid. It fails only if no operation was done. With file->submit. */
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
 * Of the CHUNK_OPS slots from the cursor on, take up to @most armed timers out of the wheel, and
 * describe them as operations in the bounce. Returns how many. With file->submit.
 *
 * Such a slot stays ARMED, though its timer is not in the wheel, until drain_commit(). That is
 * safe: all code that looks at ARMED slots holds file->submit, except expiry, which starts from the
 * wheel, and slot_was_set(), which asks the wheel.
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
		/*
		 * If @nr_past is not 0, a reader is still copying an old event. After a timer was
		 * drained, no event of it may be read: leave this one armed.
		 */
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

/*
 * Free the first @stored of @nr timers that were collected, and put the others back into the wheel.
 */
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
 * Drain the next CHUNK_OPS slots: take out, copy out, free. *@left goes down by how many slots were
 * scanned. Returns 0 or -EFAULT. With file->submit.
 *
 * A timer that is out of the wheel does not fire. So can_write() waits for memory before any timer
 * is taken out.
 */
static int drain_chunk(struct file_wheel *file, struct twheel_batch *batch, u32 *left)
{
	u32 most = batch_most(file, batch);
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

/* Is any timer armed? */
static bool file_has_armed(struct file_wheel *file)
{
	struct twheel_stats stats;

	if (!file->base)
		return false;
	twheel_get_stats(file->base, &stats);
	return stats.pending;
}

/*
 * DRAIN: scan the slots once round, from where the last call ended, as long as there is room and
 * any timer is armed. So draining everything is O(slots), however small the calls, and finding that
 * nothing is left is O(1). One call does not go round twice: if a reader keeps reading periodic
 * timers, these are ready at one look and armed at the next, and the call might never end. It fails
 * only if no timer was drained. With file->submit.
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

/* Do @batch, a SUBMIT or a DRAIN, of an ioctl or of io_uring. It fails only if nothing was done. */
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

/* Is @setup valid, so that twheel_create() accepts it when the first timer is added? */
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

/* TWHEEL_IOC_SETUP. Refused once there is a base. With file->submit. */
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

/* Fill in what the file is, whether or not there is a base. */
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

/*
 * Fill in what the file is and holds. Returns when the wheel has work next, which may only be to
 * move timers, or KTIME_MAX. Does not take file->submit, so that INFO does not wait for a SUBMIT.
 */
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

/*
 * TWHEEL_IOC_INFO. @size is that of the caller's structure: if it is longer than ours, the rest of
 * it is zeroed. Does not take file->submit.
 */
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

/*
 * The number of @cmd, an ioctl of one operation, as the first version had it: with the size that an
 * operation had then.
 */
#define OP_VER0(cmd)	(((cmd) & ~IOCSIZE_MASK) | TWHEEL_OP_SIZE_VER0 << IOCSIZE_SHIFT)

/* For each _IOC_NR() the number of the ioctl in its first version: it has the smallest size. */
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

/* The ioctls that change nothing, and so do not need a descriptor that is open for writing. */
#define IOCTLS_TELL	(BIT(_IOC_NR(TWHEEL_IOC_INFO)) | BIT(_IOC_NR(TWHEEL_IOC_QUERY)))

#define ASSERT_ABI(type, size) \
	static_assert(sizeof(struct type) == (size) && __alignof__(struct type) == 8)

ASSERT_ABI(twheel_setup, 32);
ASSERT_ABI(twheel_info, 112);
ASSERT_ABI(twheel_batch, 32);
ASSERT_ABI(twheel_op, 56);
static_assert(offsetof(struct twheel_op, tolerance_ns) == TWHEEL_OP_SIZE_VER0);
ASSERT_ABI(twheel_event, 32);
ASSERT_ABI(twheel_uring, 16);	/* as much as the smaller kind of an SQE has room for */

/* Do ioctl @nr, which is known, with file->submit held. */
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

/* Any ioctl, with all checks. */
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
 * Read an operation whose @size is the present one, or that of the first version. Returns false if
 * it does not lie on one page, if it cannot be read, or if @res or @reserved is not 0.
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

/*
 * Do the operation at @user, if it is valid and needs no memory and no waker. A flag that only some
 * files allow does not count as valid here: ops_settle() may have to wait because of it. Returns
 * the result. If that is negative, nothing was done, and file_ioctl_any() tries again. In between
 * file->submit is dropped, so the second try may find another state and another time, and its
 * result is what the caller gets.
 */
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
 * The fast path of an ioctl of one operation that has a usual size and succeeds. If anything is
 * unusual, op_try() changes nothing, and file_ioctl_any() begins anew: it does the operation, or
 * finds the error.
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

/* One function for each operation, so that the compiler keeps in registers what each needs. */
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

/*
 * The three operations that servers do most have a fast path; OP_VER0() is for programs that were
 * compiled before struct twheel_op grew. file_ioctl_any() does everything else, and finds every
 * error.
 */
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

/*
 * The flags of a command that the caller sets; the top 8 are the kernel's own. None is accepted
 * yet.
 */
#define URING_FLAGS	GENMASK(23, 0)

/*
 * Copy what @cmd asks for. The caller can write to that memory at any time: read each field once.
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

/* Take file->submit. With @nowait, return -EAGAIN instead of waiting. */
static int uring_lock(struct file_wheel *file, bool nowait)
{
	if (nowait)
		return mutex_trylock(&file->submit) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&file->submit);
}

/* Do @batch of a command. With @nowait, return -EAGAIN instead of waiting for another call. */
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
	if (err == -ERESTARTSYS)	/* nobody would restart it */
		err = -EINTR;
	return err ?: batch->nr_done;
}

/*
 * TWHEEL_URING_SUBMIT and _DRAIN: the same as the ioctls, as commands of io_uring. A command runs
 * in the task that submits it: the caller, or a thread that polls a ring's submissions. If the
 * command would have to wait there for another call, this returns -EAGAIN, and io_uring repeats it
 * in a worker, which has the caller's memory and namespaces. (With IOSQE_ASYNC it runs in a worker
 * from the start.) In all other cases the command is complete when this returns. So a request to
 * cancel finds a command only in a worker. The request to cancel ends the worker's wait, or ends
 * the batch early, see batch_is_stopped().
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

/*
 * Three ways to read events, from the shortest to the most general. Each leaves to the next what it
 * cannot do.
 *
 *	read_one()	one event, in one lock hold, stored in user memory under the lock
 *	read_plain_many() as many plain events (slot_is_plain()) as one lock hold may do, stored
 *			likewise
 *	reader_run_any() any events: read_collect() takes them off the ready list under the lock,
 *			copy_to_iter() copies them without the lock, and read_commit() takes it
 *			again. In between their slots are READING
 *
 * The first two never leave a slot READING, so MOD and CANCEL find none. The third is for several
 * events that are not all plain, for an event that must say that the clock was set, for memory that
 * is not present, for several events in a time namespace, and for an iov_iter that is not a plain
 * user buffer (on some kernels that of every readv() and io_uring).
 */

/* How often @slot, whose event is being read, has expired by @now: the event's count. */
static u32 periods_passed(const struct slot *slot, ktime_t now)
{
	u64 periods = 0;

	/*
	 * There are three cases: the clock was set back after the timer expired; or the event only
	 * says that the clock was set; or @now is 0, because read_first() reads the clock only for
	 * periodic timers.
	 */
	if (unlikely(now < (ktime_t)slot->timer.cookie))
		return !(slot->flags & SLOT_EARLY);
	if (slot->interval && !(slot->flags & TWHEEL_F_DELAY))
		periods = div64_u64(now - slot->timer.cookie, slot->interval);
	return min_t(u64, periods, U32_MAX - 1) + 1;
}

/* Is the event of @slot a plain one, as most are: of a one-shot timer without flags? */
static __always_inline bool slot_is_plain(const struct slot *slot)
{
	return !slot->interval && !slot->flags;
}

/* Fill in the event of @slot, which is about to be read. Under the base's lock. */
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
 * The first half of a read: take up to @most slots off the ready list, make them READING, and fill
 * in their events. Returns how many. *@now becomes the time at which they were read.
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
	/* Cut the list in front of the first slot that stays, or of the head. */
	file->ready.next = &slot->link;
	slot->link.prev = &file->ready;
	WRITE_ONCE(file->nr_ready, file->nr_ready - nr);
	twheel_unlock(file->base, flags);
	return nr;
}

/* Arm @slot for its next period. @count periods had passed at @now. Under the base's lock. */
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

/*
 * The event of @slot, with this @count, was read at @now: arm the slot for its next period, keep it
 * IDLE, or free it. Under the base's lock.
 */
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
 * A reader is done with @event of @slot, but MOD or the undoing of an ADD has taken @slot from that
 * reader meanwhile. Rare, so it is out of line.
 */
static noinline void slot_past_read(struct slot *slot, const struct twheel_event *event)
{
	/* If the handle differs, the ADD was undone: the slot is free, or another timer's. */
	if (slot_handle(slot) == event->handle)
		slot->nr_past--;
}

/* @event could not be copied: put @slot back, in front of the ready list. Under the base's lock. */
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
 * The second half of a read. Of @nr events that were collected at @now, the first @copied have
 * reached the caller. Their slots continue, see slot_after_read(). The other slots become ready
 * again, in front of the list and in their old order, because the loop goes backwards. If a slot
 * was re-armed meanwhile, only its @nr_past changes, and its event, if it was not copied, is
 * dropped. Such a slot may be READING again, but then it names another reader.
 *
 * If a slot names this reader, it is READING: all other code that takes a slot from its reader
 * overwrites @reader. Only this function leaves the old value behind, and it looks at each slot
 * once.
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

/*
 * Store @event at @user, between user_write_access_begin() and _end(). Returns false if that fails.
 */
static __always_inline bool event_put(const struct twheel_event *event,
				      struct twheel_event __user *user)
{
	unsafe_put_user(event->user_data, &user->user_data, fault);
	unsafe_put_user(event->handle, &user->handle, fault);
	unsafe_put_user(event->expires_ns, &user->expires_ns, fault);
	unsafe_put_user(event->count, &user->count, fault);
	unsafe_put_user(event->flags, &user->flags, fault);
	return true;
fault:
	return false;
}

/* read_event() of @slot, which is plain. */
static __always_inline struct twheel_event plain_event(const struct slot *slot)
{
	return (struct twheel_event) {
		.user_data	= slot->user_data,
		.handle		= slot_handle(slot),
		.expires_ns	= slot->timer.cookie,
		.count		= 1,
	};
}

/*
 * The first @nr ready slots have been read and freed. Cut them off the ready list, whose rest
 * begins at @left. They are chained in front of the free list already: make @free, the first in
 * that chain, the head of the free list.
 */
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
 * Store at most @most ready events at @user, and stop before the first that is not plain or cannot
 * be stored without waiting for memory. All is done in one lock hold, so the slots are never
 * READING. Returns how many events were stored.
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
			const struct twheel_event event = plain_event(slot);

			if (!slot_is_plain(slot) || !event_put(&event, &user[nr]))
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

/* read_plain_many() to @to, which must be plain user memory. Returns bytes. */
static size_t reader_run_plain(struct file_wheel *file, struct iov_iter *to)
{
	u32 most = min_t(size_t, iov_iter_count(to) / sizeof(struct twheel_event), TWHEEL_HOLD_OPS);
	size_t done = read_plain_many(file, to->ubuf + to->iov_offset, most) *
		      sizeof(struct twheel_event);

	iov_iter_advance(to, done);
	return done;
}

/*
 * Copy @nr events to @to. Returns how many could be copied. If not all could, copy_to_iter() may
 * have given up some bytes before the first byte that cannot be written, see ops_fetch(). So this
 * then tries the events that copy_to_iter() left one by one.
 */
static u32 events_copy(const struct twheel_event *events, u32 nr, struct iov_iter *to)
{
	const size_t size = sizeof(*events);
	size_t got = copy_to_iter(events, nr * size, to);
	u32 copied = got / size;

	if (likely(copied == nr))
		return nr;
	iov_iter_revert(to, got % size);
	while (copied < nr && copy_to_iter(&events[copied], size, to) == size)
		copied++;
	return copied;
}

/*
 * Read the next events, of any kind, by way of the reader's room. Returns bytes. *@asked becomes
 * how many bytes there were to copy: more than the result if the caller's memory could not be
 * written.
 */
static size_t reader_run_any(struct file_wheel *file, const struct reader *reader,
			     struct iov_iter *to, size_t *asked)
{
	const size_t size = sizeof(struct twheel_event);
	u32 most = min_t(size_t, iov_iter_count(to) / size, reader->room), nr;
	ktime_t now;
	u32 copied;

	nr = read_collect(file, reader, most, &now);
	copied = events_copy(reader->events, nr, to);
	read_commit(file, reader, copied, nr, now);
	*asked = nr * size;
	return copied * size;
}

/*
 * Read the events that are ready, as many as fit into @to. Returns bytes; 0 if none was ready; or
 * -EFAULT. Mostly all events are plain. If reader_run_plain() gets none, this call does not try it
 * again.
 */
static ssize_t reader_run(struct file_wheel *file, const struct reader *reader,
			  struct iov_iter *to)
{
	bool plain = iter_is_ubuf(to) && !clock_is_shifted();
	size_t done = 0, got, asked;

	while (READ_ONCE(file->nr_ready) && iov_iter_count(to) >= sizeof(struct twheel_event)) {
		if (plain) {
			got = reader_run_plain(file, to);
			/*
			 * If nothing was read, do not look for a signal yet: the result would be 0,
			 * which our caller takes for "none was ready". It would call again at once,
			 * for ever.
			 */
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

/*
 * reader_run() with a little room on the stack. Out of line, because many kernels zero that room.
 */
static noinline ssize_t read_small(struct file_wheel *file, struct iov_iter *to)
{
	struct twheel_event events[SMALL_EVENTS];
	struct slot *taken[SMALL_EVENTS];
	const struct reader reader = {
		.events = events, .taken = taken, .room = SMALL_EVENTS };

	return reader_run(file, &reader, to);
}

/* reader_run() with the room that the file keeps. The caller holds bit 0 of file->spare. */
static ssize_t read_big(struct file_wheel *file, struct iov_iter *to)
{
	const struct reader reader = {
		.events = file->events, .taken = file->bounce->taken, .room = CHUNK_EVENTS };

	return reader_run(file, &reader, to);
}

/*
 * Read what is ready. Copying to user memory may take any time, so readers hold no lock meanwhile,
 * and each has room of its own: one reader has the room that the file keeps (file->spare says so),
 * and others have a little on their stacks.
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

/*
 * Wait until an event is ready. Returns 0, or -ERESTARTSYS if a signal comes first. If @nowait, it
 * does not wait: it returns -EAGAIN if no event is ready.
 */
static noinline int reader_wait(struct file_wheel *file, bool nowait)
{
	if (nowait)
		return READ_ONCE(file->nr_ready) ? 0 : -EAGAIN;
	return wait_event_interruptible_exclusive(file->wait, READ_ONCE(file->nr_ready));
}

/*
 * readv(), io_uring, and what file_read() cannot do in one lock hold. Returns bytes, never 0.
 * Another reader may take the event that ended the wait: then wait again.
 */
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
	/* Waiting is exclusive, so one reader was woken. If it left events, wake the next. */
	if (READ_ONCE(file->nr_ready))
		file_wake(file);
	return ret;
}

/*
 * Store @event at @user, under the base's lock. Returns false if that would have to wait for
 * memory.
 */
static __always_inline bool event_tell(struct twheel_event __user *user,
				       const struct twheel_event *event)
{
	bool told = false;

	tell_begin();
	if (user_write_access_begin(user, sizeof(*user))) {
		told = event_put(event, user);
		user_write_access_end();
	}
	tell_end();
	return told;
}

/* Take @slot, the first on the ready list, off it. As list_del(), without its checks. */
static __always_inline void ready_pop(struct file_wheel *file, struct slot *slot)
{
	struct list_head *next = slot->link.next;

	next->prev = &file->ready;
	file->ready.next = next;
	WRITE_ONCE(file->nr_ready, file->nr_ready - 1);
}

/*
 * Store the event of @slot, the first that is ready, at @user. All is done in one lock hold, so the
 * slot is never READING. If that cannot be done, returns false with nothing changed.
 */
static bool read_first(struct file_wheel *file, struct slot *slot,
		       struct twheel_event __user *user)
{
	struct moment m = { .offset = clock_offset(file->config.clock) };
	struct twheel_event event;

	lockdep_assert_held(file->lock);
	/* read_event() would clear SLOT_SET, and a store that failed would have to set it again. */
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

/* The slot whose event is the oldest. At least one must be ready. Under the base's lock. */
static struct slot *file_first(const struct file_wheel *file)
{
	return list_first_entry(&file->ready, struct slot, link);
}

/*
 * Is exactly one event ready, is that a plain one, and is the caller in the host's time namespace?
 * Under the base's lock.
 */
static __always_inline bool read_is_plain(const struct file_wheel *file)
{
	return file->nr_ready == 1 && slot_is_plain(file_first(file)) && !clock_is_shifted();
}

/* read_first(), if read_is_plain(). If this returns true, no event is ready any more. */
static __always_inline bool read_plain(struct file_wheel *file, struct twheel_event __user *user)
{
	struct slot *slot = file_first(file);
	const struct twheel_event event = plain_event(slot);

	lockdep_assert_held(file->lock);
	if (!event_tell(user, &event))
		return false;
	INIT_LIST_HEAD(&file->ready);
	WRITE_ONCE(file->nr_ready, 0);
	slot_put(file, slot);
	return true;
}

/*
 * The rest of read_one(): an event that is not plain, or one of several. The caller has locked the
 * base with file_hold(); this unlocks it.
 */
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
 * If only one event is ready, or there is @room for only one, read it in one lock hold. Otherwise,
 * or if that would have to wait for memory, return false with nothing read.
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

/* file_read_iter() of plain memory, as vfs_read() would call it if there were no file_read(). */
static noinline ssize_t file_read_many(struct file *filp, char __user *user, size_t room)
{
	struct iov_iter to;
	struct kiocb iocb;

	init_sync_kiocb(&iocb, filp);
	iov_iter_ubuf(&to, ITER_DEST, user, room);
	return file_read_iter(&iocb, &to);
}

/*
 * read(). Most programs read one event a call. read_one() does that in one lock hold, without a
 * struct iov_iter; file_read_iter() does everything else.
 */
static ssize_t file_read(struct file *filp, char __user *user, size_t room, loff_t *pos)
{
	const size_t size = sizeof(struct twheel_event);
	struct file_wheel *file = filp->private_data;

	if (room < size)
		return -EINVAL;
	/*
	 * Pairs with the base's lock. The task that made the base released that lock afterwards, in
	 * slots_add_page(), and the event was queued under it later. So if the event is visible,
	 * the base is, too, with everything that was made with it.
	 */
	while (unlikely(!smp_load_acquire(&file->nr_ready))) {
		int err = reader_wait(file, filp->f_flags & O_NONBLOCK);

		if (err)
			return err;
	}
	return read_one(file, (struct twheel_event __user *)user, room) ?
	       size : file_read_many(filp, user, room);
}

/*
 * Readable means that an event is ready. A descriptor is never writable: operations do not block
 * for room, they fail.
 */
static __poll_t file_poll(struct file *filp, poll_table *wait)
{
	struct file_wheel *file = filp->private_data;

	/*
	 * poll_wait() adds the poller under the wait queue's lock. file_wake() takes that lock
	 * after nr_ready was written. So either this sees nr_ready, or file_wake() sees the poller.
	 */
	poll_wait(filp, &file->wait, wait);
	return READ_ONCE(file->nr_ready) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* ---- open and close ------------------------------------------------------------ */

/*
 * Make a file with nothing but its setup, and count it for its opener. Everything that is large
 * comes with the first timer, in file_create(). What is not set here is 0.
 */
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

/*
 * The last reference is gone, so nobody else uses the file. Armed timers are not cancelled one by
 * one: the base is destroyed with its timers, and then their pages are freed.
 */
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

/*
 * /proc/PID/fdinfo/FD. The times are those of the reading task's time namespace. twheel(1) reads
 * these names: add lines, but do not rename any.
 */
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
 * A fixed minor number, so that the device node can exist before the module is loaded, and the
 * first open() loads it: misc_open() requests the module only for fixed minors. 243 to 254 are for
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
MODULE_ALIAS("devname:twheel");	/* tells depmod the name of the node */
