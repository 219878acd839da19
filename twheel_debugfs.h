/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * /sys/kernel/debug/twheel/bases: what every base holds and has done, for people, scripts
 * and twheel top. Included by twheel.c, which says what a base is.
 *
 * The first line names the columns, and each base is a line after it. Between columns
 * is white space. A program shall find a column by its name: more may come, before the last;
 * none will go or mean something else.
 *
 *	kind	cpu: a CPU's, for everybody; pinned: a CPU's, for twheel_add_on();
 *		base: a module's own, with callbacks; file: one with
 *		a sink, which an open /dev/twheel has
 *	id	the CPU; else a number that no other base has had
 *	pid	of the process that made it, as the initial namespace has it; 0: a CPU's. A file's
 *		is made by its first timer, which may be that of a process it was passed to
 *	uid	of that process then
 *	clock	monotonic, boottime or realtime
 *	tick_ns	its tick
 *	pending	timers armed
 *	added	timers added so far, one that was armed anew again
 *	expired	timers that have fired so far
 *	removed	timers taken out before they fired so far: cancelled, or armed anew
 *	rearmed	of the removed, those that were armed anew. One that moves to another CPU so is
 *		removed here and rearmed there
 *	runs	interrupts taken so far
 *	deferred how often a run used up its budget so far, and was gone on with later
 *	moves	timers moved from one bucket to a finer one so far
 *	worst	most moves in one run
 *	next_ns	when the next run is wanted, as a time of the clock; - if never
 *	l0 - l4	timers in the buckets of each level, a slash, how many buckets have any
 *	far	timers beyond the last level
 *	tree	timers in no bucket: of a file with no more than 64, and where a clock was set back
 *	comm	the name of the process that made it, - for a CPU's; what is not plain in it as \ooo
 *
 * The counters of a line are of one moment. The levels are counted after that, some buckets in
 * each lock hold: a timer that moves meanwhile may be counted twice or not at all.
 *
 * Cost: nothing where timers are armed, cancelled or expire; 64 bytes a base. Reading costs the
 * same a line, however many lines there are: a reader goes on by number.
 */
#ifndef TWHEEL_DEBUGFS_H
#define TWHEEL_DEBUGFS_H

#ifdef CONFIG_DEBUG_FS
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string_helpers.h>

/**
 * struct listing - a base that is listed
 * @index:	in listings, and so the order of lines
 * @base:	the base
 * @kind:	see above, as all that follows
 * @id:		a number
 * @pid:	of the process that made it
 * @uid:	of that
 * @comm:	of that
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

/* A user who opens many files can make it grow. */
static DEFINE_XARRAY_FLAGS(listings, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
static DEFINE_MUTEX(listings_lock);		/* for readers of bases that are in there */
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

/* List @l, or free it. */
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

static int list_cpu_base(struct twheel_base *base, unsigned int cpu)
{
	struct listing *l = listing_new(base, base_is_pinned(base) ? "pinned" : "cpu", GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->id = cpu;
	l->comm[0] = '-';
	return listing_add(l, GFP_KERNEL);
}

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

/* After this nobody reads of @base any more. One that is not listed is all right too. */
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

/* Timers, and buckets that have any, of each level and last of far. */
struct levels {
	u32	timers[WHEEL_LEVELS + 1];
	u32	buckets[WHEEL_LEVELS + 1];
};

static unsigned int level_of(unsigned int slot)
{
	unsigned int level = 0;

	while (level < WHEEL_LEVELS &&
	       slot >= (unsigned int)wheel_levels[level].first + wheel_levels[level].slots)
		level++;
	return level;
}

static void count_bucket(struct levels *levels, const struct wheel *w, unsigned int slot)
{
	unsigned int level = level_of(slot);

	if (!w->bucket)
		return;
	levels->timers[level] += w->bucket[slot].n;
	levels->buckets[level] += !!w->bucket[slot].n;
}

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

/* Position 0 is the head, and the others are an index and one. */
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

#endif
