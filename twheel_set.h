/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Bases of CLOCK_REALTIME, and the clock being set. Included by twheel.c.
 *
 * wheel_back.h keeps timers right whatever the clock does. What is left is to learn of it: where
 * a base waits for a time that comes sooner or later now, and where somebody wants to be told.
 *
 *	the clock is set	by clock_settime(), adjtimex(), a leap second, or a resume
 *	clock_notify()		by the timekeeper, within its locks: only asks for
 *	clock_set_irq()		as soon as interrupts are on again: queues the bases anew,
 *				SET_BASES in each interrupt
 *	clock_set_tell()	on a workqueue: was_set() of those who asked, if it was stepped:
 *				what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC has changed. So
 *				timerfd judges too: a resume counts, slewing does not
 *
 * Steps are counted by clock_notify(). If the clock is stepped forward and back by the same before
 * the worker runs, that is told too, and clock_settime() does not return before it is counted.
 *
 * The notifier is the one of pvclock, which hypervisors use. It is exported to modules and the
 * same on all architectures from 6.1 to 7.2; timerfd's own is not. The timekeeper calls it at each
 * of its updates, some hundred times a second, so it is registered only while there are such
 * bases.
 *
 * Telling takes as long as a base's user makes it take, and nobody else waits for that: not who
 * makes a base, nor who ends another. One base is told at a time.
 *
 * Locking
 *	settable_mutex		settable_told, and settable_telling
 *	  settable_lock		settable_bases, raw
 *	    base->lock
 *	settable->telling	of a base: was_set(), and settable->steps. Nothing is held then
 */
#ifndef TWHEEL_SET_H
#define TWHEEL_SET_H

/* How many bases are queued anew in one interrupt. */
#define SET_BASES	16

static DEFINE_MUTEX(settable_mutex);
static DEFINE_RAW_SPINLOCK(settable_lock);
static LIST_HEAD(settable_bases);

/* Those to be told that were asked to tell longest ago are in front. */
static LIST_HEAD(settable_told);

/* Whom the worker tells at this moment: that one must not go. */
static struct settable *settable_telling;
static DECLARE_WAIT_QUEUE_HEAD(settable_wait);

/* How often the clock was set. */
static atomic_t clock_sets = ATOMIC_INIT(0);

/* How often it was stepped, and what it is ahead of CLOCK_MONOTONIC since. */
static atomic_t clock_steps = ATOMIC_INIT(0);
static ktime_t clock_ahead;	/* in clock_notify() only, which the timekeeper serialises */

static struct irq_work clock_set_work;
static struct work_struct clock_tell_work;

/* Have @base wait for what comes next by the clock as it is now. */
static void base_clock_set(struct twheel_base *base)
{
	u64 now;

	raw_spin_lock(&base->lock);
	now = base_tick(base, base_now(base));
	wheel_back_was_set(&base->wheel, &base->settable.back, now);
	if (!base->sink) {
		base->armed = WHEEL_NEVER;
		if (base->wheel.next != WHEEL_NEVER)
			base_arm(base);
	} else {
		struct dispatcher *d = READ_ONCE(base->dispatcher);

		if (base->wake_at != WHEEL_NEVER)
			WRITE_ONCE(base->wake_at, now);
		if (d)
			base_leave(base, d);
		base->armed = WHEEL_NEVER;
		base_enter(base, 0);
	}
	raw_spin_unlock(&base->lock);
}

/* The next base that has not been told, or NULL. It goes to the end of the list. */
static struct twheel_base *settable_next(u32 sets)
{
	struct twheel_base *base;

	lockdep_assert_held(&settable_lock);
	base = list_first_entry_or_null(&settable_bases, struct twheel_base, settable.node);
	if (!base || base->settable.seen == sets)
		return NULL;
	base->settable.seen = sets;
	list_move_tail(&base->settable.node, &settable_bases);
	return base;
}

static void clock_set_irq(struct irq_work *work)
{
	u32 sets = atomic_read(&clock_sets);
	struct twheel_base *base;
	unsigned int nr = 0;

	raw_spin_lock(&settable_lock);
	while (nr < SET_BASES && (base = settable_next(sets))) {
		base_clock_set(base);
		nr++;
	}
	raw_spin_unlock(&settable_lock);
	if (nr == SET_BASES)
		irq_work_queue(work);
	else
		queue_work(task_queue, &clock_tell_work);
}

/* The timekeeper must not be asked for the time here, nor may anything that asks it be called. */
static int clock_notify(struct notifier_block *nb, unsigned long was_set, void *timekeeper)
{
	const struct timekeeper *tk = timekeeper;

	if (!was_set)
		return NOTIFY_OK;
	if (tk->offs_real != clock_ahead) {
		clock_ahead = tk->offs_real;
		atomic_inc(&clock_steps);
	}
	atomic_inc(&clock_sets);
	irq_work_queue(&clock_set_work);
	return NOTIFY_OK;
}

static struct notifier_block clock_notifier = { .notifier_call = clock_notify };

/* Tell a base that asked, if it does not know yet. */
static void settable_tell(struct settable *settable)
{
	u32 steps;

	mutex_lock(&settable->telling);
	steps = atomic_read(&clock_steps);
	if (settable->steps != steps) {
		settable->was_set(container_of(settable, struct twheel_base, settable));
		/* Pairs with the acquire in twheel_tell_set(). */
		smp_store_release(&settable->steps, steps);
	}
	mutex_unlock(&settable->telling);
}

/*
 * The next base to be told, or NULL. It goes to the end of the list, and stays until the next call.
 * A base that begins goes there too, so that @asked of each is never more than of the one behind.
 */
static struct settable *settable_to_tell(void)
{
	struct settable *next;
	u32 steps;

	mutex_lock(&settable_mutex);
	steps = atomic_read(&clock_steps);
	next = list_first_entry_or_null(&settable_told, struct settable, told);
	if (next && next->asked == steps)
		next = NULL;
	if (next) {
		next->asked = steps;
		list_move_tail(&next->told, &settable_told);
	}
	/* Pairs with the acquire in settable_wait_told(): the last one may go. */
	smp_store_release(&settable_telling, next);
	mutex_unlock(&settable_mutex);
	wake_up_all(&settable_wait);
	return next;
}

/* Tell those who asked. */
static void clock_set_tell(struct work_struct *work)
{
	struct settable *settable;

	while ((settable = settable_to_tell())) {
		settable_tell(settable);
		cond_resched();
	}
}

/* @settable is in no list any more. If the worker has it, it lets go of it, for good. */
static void settable_wait_told(struct settable *settable)
{
	/* Pairs with the release in settable_to_tell(): what was done with it is done. */
	wait_event(settable_wait, smp_load_acquire(&settable_telling) != settable);
	mutex_destroy(&settable->telling);
}

/**
 * twheel_tell_set() - see to it that a base knows that its clock was set
 * @base:	a private base
 *
 * If the clock was set before this call, was_set() of @base has returned for that when this
 * returns. It costs two loads unless the clock was set a moment ago.
 *
 * Context: May sleep. The caller holds no lock that was_set() takes.
 */
void twheel_tell_set(struct twheel_base *base)
{
	struct settable *settable = &base->settable;

	if (!base_is_settable(base) || !settable->was_set)
		return;
	/* Pairs with the release in settable_tell(): what was_set() did is done. */
	if (smp_load_acquire(&settable->steps) == (u32)atomic_read(&clock_steps))
		return;
	settable_tell(settable);
}
EXPORT_SYMBOL_GPL(twheel_tell_set);

/* @base begins. It has no timers yet. */
static void base_set_begin(struct twheel_base *base, const struct twheel_config *config)
{
	struct settable *settable = &base->settable;

	settable->back.seed = (u64)get_random_u32() << 32 | get_random_u32();
	if (!base_is_settable(base))
		return;
	settable->was_set = config->was_set;
	mutex_init(&settable->telling);
	mutex_lock(&settable_mutex);
	if (list_empty(&settable_bases))
		pvclock_gtod_register_notifier(&clock_notifier);
	settable->steps = atomic_read(&clock_steps);
	settable->asked = settable->steps;
	if (settable->was_set)
		list_add_tail(&settable->told, &settable_told);
	raw_spin_lock_irq(&settable_lock);
	settable->seen = atomic_read(&clock_sets);
	list_add_tail(&settable->node, &settable_bases);
	raw_spin_unlock_irq(&settable_lock);
	mutex_unlock(&settable_mutex);
}

/* @base goes. When this returns it is told of nothing any more. */
static void base_set_end(struct twheel_base *base)
{
	struct settable *settable = &base->settable;

	if (!base_is_settable(base))
		return;
	mutex_lock(&settable_mutex);
	if (settable->was_set)
		list_del(&settable->told);
	raw_spin_lock_irq(&settable_lock);
	list_del(&settable->node);
	raw_spin_unlock_irq(&settable_lock);
	if (list_empty(&settable_bases))
		pvclock_gtod_unregister_notifier(&clock_notifier);
	mutex_unlock(&settable_mutex);
	settable_wait_told(settable);
}

static void clock_set_init(void)
{
	clock_set_work = IRQ_WORK_INIT_HARD(clock_set_irq);
	INIT_WORK(&clock_tell_work, clock_set_tell);
}

/* No base is left. Nor is the workqueue, when this has returned, needed here any more. */
static void clock_set_exit(void)
{
	irq_work_sync(&clock_set_work);
	cancel_work_sync(&clock_tell_work);
}

#endif
