// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * /sys/kernel/debug/twheel/bases: what every base holds and has done, for people, scripts
 * and twheel top.
 *
 * The first line names the columns. Each further line is a base. Columns are separated by white
 * space. A program must find a column by its name: more columns may be added before the last, but
 * none will be removed or change its meaning.
 *
 *	kind	cpu: a CPU's base, for everybody; pinned: a CPU's base, for twheel_add_on();
 *		base: a module's own, with callbacks; file: a base with a sink, which an open
 *		/dev/twheel has
 *	id	the CPU; else a number that no other base has had
 *	pid	the process that made the base, as the initial namespace numbers it; 0 for a CPU's.
 *		A file's base is made by its first timer, perhaps in a process that inherited
 *		or received the file
 *	uid	of that process at that time
 *	clock	monotonic, boottime or realtime
 *	tick_ns	its tick
 *	pending	timers that are armed
 *	added	timers added so far; a timer that is re-armed counts again
 *	expired	timers that have fired so far
 *	removed	timers taken out before they fired: cancelled or re-armed
 *	rearmed	of the removed, those that were re-armed. If that moves a timer to another CPU,
 *		it counts as removed here and as rearmed there
 *	runs	interrupts taken so far
 *	deferred as in struct twheel_stats: of a file, how often it was due and its user had to
 *		wait; of other bases, how often a run left work to a later one
 *	moves	moves of timers so far: from one bucket to another, or between a bucket and the tree
 *	worst	most moves in one run
 *	next_ns	when the next run is wanted, as a time of the clock; - if never
 *	l0 - l4	for each level: timers in its buckets, a slash, buckets that have any. Level 0
 *		includes the timers at stops, see wheel.h
 *	far	timers beyond the last level
 *	tree	timers in no bucket: those of a file that has no more than 64, and where a clock was
 *		set back
 *	comm	the name of the process that made the base, - for a CPU's; spaces, backslashes and
 *		what cannot be printed are written as \ooo
 *
 * The counters of a line are of one moment. The levels are counted after that, some buckets in
 * each lock hold: a timer that moves meanwhile may be counted twice or not at all.
 *
 * Cost: nothing where timers are armed, cancelled or expire; 64 bytes a base. A line costs a reader
 * the same, however many lines there are: the position in the file is an index of @listings.
 *
 * twheel.c includes this file at its end, because kbuild makes twheel.ko of twheel.c alone. This
 * file needs of twheel.c
 *
 *	struct twheel_base	@clock, @tick_ns and @sink, which never change; @settable.back.nr;
 *				@wheel, under @lock; @listing, which only this file uses
 *	base_is_pinned()
 *	twheel_get_stats()
 *
 * and of wheel.h the buckets and wheel_levels[]. twheel.c calls the five functions that it declares
 * below struct twheel_base.
 *
 * Locking: listings_lock guards @listings, and with it every base that is listed: while a reader
 * holds it no base that it can find is freed. base->lock is taken inside it.
 */

#ifdef CONFIG_DEBUG_FS
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string_helpers.h>

/**
 * struct listing - a base that has a line
 * @index:	in @listings; lines are in its order
 * @base:	the base. It outlives the listing
 * @kind:	the column, as all that follow
 * @id:		the column
 * @pid:	the column
 * @uid:	the column
 * @comm:	the column
 *
 * Nothing changes once it is in @listings.
 */
struct listing {
	u32			index;
	struct twheel_base	*base;
	const char		*kind;
	u64			id;
	pid_t			pid;
	kuid_t			uid;
	char			comm[TASK_COMM_LEN];
};

static const char *clock_name(clockid_t clock)
{
	if (clock == CLOCK_REALTIME)
		return "realtime";
	return clock == CLOCK_BOOTTIME ? "boottime" : "monotonic";
}

/* Charged to the caller's memory cgroup: a user who opens many files makes it grow. */
static DEFINE_XARRAY_FLAGS(listings, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
static DEFINE_MUTEX(listings_lock);
static struct dentry *debugfs_dir;

static struct listing *listing_new(struct twheel_base *base, const char *kind, gfp_t gfp)
{
	struct listing *l = kzalloc(sizeof(*l), gfp);

	if (l) {
		l->base = base;
		l->kind = kind;
	}
	return l;
}

/* Give @l its line, after all others. If that fails, free it and return the error. */
static int listing_add(struct listing *l, gfp_t gfp)
{
	static u32 next;
	int err;

	mutex_lock(&listings_lock);
	err = xa_alloc_cyclic(&listings, &l->index, l, xa_limit_31b, &next, gfp);
	if (err >= 0)
		l->base->listing = l;
	mutex_unlock(&listings_lock);
	if (err >= 0)
		return 0;
	kfree(l);
	return err;
}

/* Give the base of @cpu a line. Returns 0 or -ENOMEM. */
static int list_cpu_base(struct twheel_base *base, unsigned int cpu)
{
	struct listing *l = listing_new(base, base_is_pinned(base) ? "pinned" : "cpu", GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->id = cpu;
	l->comm[0] = '-';
	return listing_add(l, GFP_KERNEL);
}

/* Give @base, which the current task makes, a line. Returns 0 or an error. */
static int list_private_base(struct twheel_base *base, gfp_t gfp)
{
	struct listing *l = listing_new(base, base->sink ? "file" : "base", gfp);
	static atomic64_t last_id;

	if (!l)
		return -ENOMEM;
	l->id = atomic64_inc_return(&last_id);
	l->pid = task_tgid_nr(current);
	l->uid = current_uid();
	get_task_comm(l->comm, current);
	return listing_add(l, gfp);
}

/* Take the line of @base away, if it has one. When this returns no reader uses @base. */
static void unlist_base(struct twheel_base *base)
{
	struct listing *l = base->listing;

	if (!l)
		return;
	mutex_lock(&listings_lock);
	xa_erase(&listings, l->index);
	mutex_unlock(&listings_lock);
	kfree(l);
}

/* For each level, and last for the far timers: timers, and buckets that have any. */
struct levels {
	u32	timers[WHEEL_LEVELS + 1];
	u32	buckets[WHEEL_LEVELS + 1];
};

/* The level of bucket @slot: 0 also for a stop, WHEEL_LEVELS for a class of far timers. */
static unsigned int level_of(unsigned int slot)
{
	unsigned int level = 0;

	while (level < WHEEL_LEVELS &&
	       slot >= (unsigned int)wheel_levels[level].first + wheel_levels[level].slots)
		level++;
	return level;
}

/* Add what bucket @slot has to @levels. A small base has no buckets. Under the base's lock. */
static void count_bucket(struct levels *levels, const struct wheel *w, unsigned int slot)
{
	unsigned int level = level_of(slot);

	if (!w->bucket)
		return;
	levels->timers[level] += w->bucket[slot].n;
	levels->buckets[level] += !!w->bucket[slot].n;
}

/* Count the timers of all levels: TWHEEL_HOLD_OPS buckets in each lock hold. */
static void count_levels(struct levels *levels, struct twheel_base *base)
{
	unsigned int slot = WHEEL_NONE + 1, end;
	unsigned long flags;

	memset(levels, 0, sizeof(*levels));
	while (slot < WHEEL_SLOTS) {
		end = min_t(unsigned int, slot + TWHEEL_HOLD_OPS, WHEEL_SLOTS);
		raw_spin_lock_irqsave(&base->lock, flags);
		for (; slot < end; slot++)
			count_bucket(levels, &base->wheel, slot);
		raw_spin_unlock_irqrestore(&base->lock, flags);
	}
}

/* The number of timers in the tree is read without the lock: it is only reported. */
static void show_levels(struct seq_file *m, struct twheel_base *base)
{
	struct levels levels;
	unsigned int i;

	count_levels(&levels, base);
	for (i = 0; i < WHEEL_LEVELS; i++)
		seq_printf(m, " %u/%u", levels.timers[i], levels.buckets[i]);
	seq_printf(m, " %u %llu ", levels.timers[WHEEL_LEVELS], READ_ONCE(base->settable.back.nr));
}

static void show_stats(struct seq_file *m, struct twheel_base *base)
{
	struct twheel_stats s;

	twheel_get_stats(base, &s);
	seq_printf(m, " %llu %llu %llu %llu %llu", s.pending, s.added, s.expired,
		   s.added - s.expired - s.pending, s.rearmed);
	seq_printf(m, " %llu %llu %llu %llu", s.wakeups, s.deferred, s.moves, s.worst);
	if (s.next == KTIME_MAX)
		seq_puts(m, " -");
	else
		seq_printf(m, " %lld", s.next);
}

static int bases_show(struct seq_file *m, void *v)
{
	struct listing *l = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "kind id pid uid clock tick_ns pending added expired removed rearmed runs deferred moves worst next_ns l0 l1 l2 l3 l4 far tree comm\n");
		return 0;
	}
	seq_printf(m, "%s %llu %d %u %s %u", l->kind, l->id, l->pid,
		   from_kuid_munged(&init_user_ns, l->uid),
		   clock_name(l->base->clock),
		   l->base->tick_ns);
	show_stats(m, l->base);
	show_levels(m, l->base);
	seq_escape_mem(m, l->comm, strlen(l->comm), ESCAPE_OCTAL | ESCAPE_NAP | ESCAPE_APPEND,
		       " \\");
	seq_putc(m, '\n');
	return 0;
}

/*
 * The line at *@pos, or the next that there is, whose position goes to *@pos. Position 0 is the
 * head, and position n + 1 the listing of index n.
 */
static void *bases_at(loff_t *pos)
{
	unsigned long index = *pos - 1;
	struct listing *l;

	if (!*pos)
		return SEQ_START_TOKEN;
	l = xa_find(&listings, &index, U32_MAX, XA_PRESENT);
	*pos = index + 1;
	return l;
}

static void *bases_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&listings_lock);
	return bases_at(pos);
}

static void *bases_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return bases_at(pos);
}

static void bases_stop(struct seq_file *m, void *v)
{
	mutex_unlock(&listings_lock);
}

static const struct seq_operations bases_sops = {
	.start	= bases_start,
	.next	= bases_next,
	.stop	= bases_stop,
	.show	= bases_show,
};

DEFINE_SEQ_ATTRIBUTE(bases);

static void debugfs_begin(void)
{
	debugfs_dir = debugfs_create_dir("twheel", NULL);
	debugfs_create_file("bases", 0400, debugfs_dir, NULL, &bases_fops);
}

static void debugfs_end(void)
{
	debugfs_remove_recursive(debugfs_dir);
}
#else
static int list_cpu_base(struct twheel_base *base, unsigned int cpu)
{
	return 0;
}

static int list_private_base(struct twheel_base *base, gfp_t gfp)
{
	return 0;
}

static void unlist_base(struct twheel_base *base) { }
static void debugfs_begin(void) { }
static void debugfs_end(void) { }
#endif
