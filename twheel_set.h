/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Bases of CLOCK_REALTIME, and the clock being set. Included by twheel.c.
 *
 * wheel_back.h makes timers fire in their ticks, however the clock is set. The code here notices
 * that the clock was set. It must, because the time for which a base waits then comes sooner or
 * later than planned, and because some bases want to be told (was_set()).
 *
 *	the clock is set	by clock_settime(), adjtimex(), a leap second, or a resume
 *	clock_notify()		is called by the timekeeper, within its locks: it only queues
 *				clock_set_irq()
 *	clock_set_irq()		runs as soon as interrupts are on again: it queues the bases anew,
 *				SET_BASES in each interrupt, and then queues clock_set_tell()
 *	clock_set_tell()	runs on a workqueue: if the clock was stepped, it calls was_set() of
 *				the bases that have one. Stepped means that the difference between
 *				CLOCK_REALTIME and CLOCK_MONOTONIC has changed. timerfd has the
 *				same rule: a resume counts, slewing does not
 *
 * clock_notify() counts the steps. So bases are told even if the clock is stepped forward, and then
 * back by the same amount, before the worker runs. A step is counted before clock_settime()
 * returns.
 *
 * The notifier is that of pvclock, which hypervisors use: it is exported to modules, and the same
 * on all architectures from 6.1 to 7.2. The hook by which timerfd learns that the clock was set is
 * not exported. The timekeeper calls the notifier at each of its updates, some hundred times a
 * second. So the notifier is registered only while there are bases of CLOCK_REALTIME.
 *
 * was_set() may take long, as for a file with many slots. Only calls on that base wait for it;
 * making or destroying another base does not. The worker tells one base at a time.
 *
 * Locking
 *	settable_mutex		settable_told, and settable_telling
 *	  settable_lock		settable_bases, raw
 *	    base->lock
 *	settable->telling	of one base: held while was_set() is called, and while
 *				settable->steps is written. Outermost
 */
#ifndef TWHEEL_SET_H
#define TWHEEL_SET_H

/* How many bases are queued anew in one interrupt. */
#define SET_BASES	16

static DEFINE_MUTEX(settable_mutex);
static DEFINE_RAW_SPINLOCK(settable_lock);
static LIST_HEAD(settable_bases);

/* Bases with a was_set(), in the order in which the worker last took them up. */
static LIST_HEAD(settable_told);

/* The base that the worker is telling at this moment. It must not be freed. */
static struct settable *settable_telling;
static DECLARE_WAIT_QUEUE_HEAD(settable_wait);

/*
 * How often the clock was set. clock_notify() counts before it queues the irq work, which is a full
 * barrier: so clock_set_irq() sees the new count.
 */
static atomic_t clock_sets = ATOMIC_INIT(0);

/*
 * How often the clock was stepped, and by how much it has been ahead of CLOCK_MONOTONIC since the
 * last step. Only clock_notify(), which the timekeeper serialises, uses clock_ahead.
 */
static atomic_t clock_steps = ATOMIC_INIT(0);
static ktime_t clock_ahead;

static struct irq_work clock_set_work;
static struct work_struct clock_tell_work;

/* Make @base wait for its next event by the clock as it is now. Under settable_lock. */
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

/*
 * The next base that has not been queued anew since the clock was set for the @sets-th time, or
 * NULL. It goes to the end of the list.
 */
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

/* Queue SET_BASES bases anew; after the last base, start the worker. In hard interrupt context. */
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

/* Called within the timekeeper's locks: neither this nor what it calls may read the time. */
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

/* Call was_set() of a base, if the clock was stepped since the last call. */
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
 * The next base that the worker has to tell, or NULL. The base goes to the end of the list, and is
 * not freed before the next call. New bases go to the end too. So along the list @asked never
 * decreases, and if the first base need not be told, no base need be.
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
	/* Pairs with the acquire in settable_wait_told(): the previous base may be freed. */
	smp_store_release(&settable_telling, next);
	mutex_unlock(&settable_mutex);
	wake_up_all(&settable_wait);
	return next;
}

/* The worker: tell all bases that have a was_set(). */
static void clock_set_tell(struct work_struct *work)
{
	struct settable *settable;

	while ((settable = settable_to_tell())) {
		settable_tell(settable);
		cond_resched();
	}
}

/* Wait until the worker is done with @settable, which is in no list any more. */
static void settable_wait_told(struct settable *settable)
{
	/* Pairs with the release in settable_to_tell(): the worker has finished using it. */
	wait_event(settable_wait, smp_load_acquire(&settable_telling) != settable);
	mutex_destroy(&settable->telling);
}

/**
 * twheel_tell_set() - make sure that a base has been told that its clock was set
 * @base:	a private base
 *
 * If the clock was stepped before this call, then when this returns, was_set() of @base has been
 * called for that and has returned. Unless the clock was stepped a moment ago, it costs two loads.
 *
 * Context: May sleep. The caller holds no lock that was_set() takes.
 */
void twheel_tell_set(struct twheel_base *base)
{
	struct settable *settable = &base->settable;

	if (!base_is_settable(base) || !settable->was_set)
		return;
	/* Pairs with the release in settable_tell(): what was_set() did is visible. */
	if (smp_load_acquire(&settable->steps) == (u32)atomic_read(&clock_steps))
		return;
	settable_tell(settable);
}
EXPORT_SYMBOL_GPL(twheel_tell_set);

/* Prepare a new @base, which has no timers yet, for a clock that may be set. May sleep. */
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

/*
 * Undo base_set_begin(). When this returns was_set() of @base is not running and will not be
 * called.
 */
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

/* No base is left. When this has returned, nothing here uses the workqueue any more. */
static void clock_set_exit(void)
{
	irq_work_sync(&clock_set_work);
	cancel_work_sync(&clock_tell_work);
}

#endif
