/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * Dispatchers drive the bases with a sink, and divide a CPU among users. Included by twheel.c.
 *
 * One user may have many bases, and one CPU many users. So a base with a sink has no hrtimer of its
 * own. While timers of a base are armed, it is queued on one CPU: on the CPU that has armed the
 * earliest of them (or the home of that CPU, see twheel_cpus.h), or on the one that has served the
 * base since.
 *
 *	dispatcher		one for each CPU
 *	  queue			one for each clock: an hrtimer, and entries by key
 *	    entry		a user who has something queued there: bases by key
 *
 * A base has two times, as an hrtimer with slack has: @soft, from which on it may be served, and
 * @key, at which it must be served. An hrtimer of a queue is armed for the first entry. Its
 * callback is called a pass, and serves the bases of both queues that are due. A turn is one lock
 * hold for one base of a user. After a turn comes another user's turn; when the first user has a
 * turn again, it is for that user's next base. So one user makes another wait for one lock hold at
 * a time, however many files the first has; and a tick that a thousand files share causes one
 * interrupt.
 *
 * Shares
 *	A pass ends after RUN_OPS operations or RUN_NS. Users who are due by then wait for
 *	DEFER_MIN_NS. A user who weighs less than half as much as the heaviest user that was served
 *	may have a little more of the pass (RUN_MORE). A user who comes due later does not wait,
 *	unless so many wait that the pass cannot look at all of them (LOOKS_MAX).
 *	All passes of a CPU may take half of it. When they have taken their half, users who have
 *	used up their own share wait. A share is that half divided by the number of users who were
 *	served of late: a user whose timers are hours away makes no share smaller. So a user who
 *	takes little never waits for one who takes much. A user alone may have the whole half, and
 *	gets no more with a thousand files than with one.
 *	If several users are due at the same time, the lightest is served first, by the weight of
 *	share_weight(): what a user has taken of late, and how many bases the user has queued.
 *	If a pass wakes a task that is to run on this CPU at once, a calm of CALM_NS begins, in
 *	which the task can run: users who weigh more than twice as much as the user for whom the
 *	task was woken wait, whether they are due already or come due meanwhile. At most one calm
 *	begins in CALM_PERIOD_NS, so that heavy users are not starved.
 *	CPU time that was used is a debt. Time repays it: the debt of the CPU at half the speed of
 *	the clock, the debt of each of n users at a 2n-th of that speed. A debt is at most
 *	DEBT_MAX_NS. For one lock hold at most HOLD_MAX_NS are charged: if a lock hold takes longer,
 *	a hypervisor or the firmware had the CPU.
 *	An example: a pass of 300 us serves the only user. At its end that user and the CPU have
 *	used 300 us, of which time has repaid 150, so their debts are 150 us. A CPU has taken its
 *	half when its debt is RUN_NS / 2 or more, so the user pauses for 2 * 150 us. Then both debts
 *	are 0, and the user has had 300 us of 600. If there are two users, time repays 75 us of the
 *	debt of the first one, and 225 us are left. It would take 4 * 225 us to repay these, but
 *	nobody pauses once the CPU's debt is repaid, so this pause is 2 * 150 us as well. After it
 *	the user still has a debt of 150 us, which counts when the CPU has taken its half again.
 *	On PREEMPT_RT a pass may be preempted. Only the runtime of the pass's own task is charged,
 *	not what a reader does that the pass has woken.
 *
 * Locking
 *	expiry->held->lock of the dispatcher (PREEMPT_RT only)
 *	  base->lock
 *	    dispatcher->lock	queues, entries, debts, and which base is queued where
 *	      the hrtimers' own lock
 * Two dispatchers are never locked at once. A pass takes a base off its queue under the
 * dispatcher's lock, drops that lock and takes the base's. Meanwhile dispatcher->serving keeps the
 * base from being freed, see base_leave_all().
 *
 * At the end of each lock hold, still under base->lock and before anybody is woken, the pass queues
 * the base for its next event. So a pass that is preempted then keeps no base to itself: code that
 * arms a timer of the base on another CPU moves the base there.
 *
 * Clocks
 *	A base of CLOCK_REALTIME is in the queue of CLOCK_MONOTONIC, with its times converted. So
 *	pauses, rests and turns never depend on a clock that may be set. When CLOCK_REALTIME is set,
 *	the converted times are wrong, and twheel_set.h has the base queued anew.
 *
 * A CPU that does not get to its pass
 *	On PREEMPT_RT a task of higher priority may keep a CPU from its pass for any time. So each
 *	queue has a second hrtimer, the watch, which expires in hard interrupt context WATCH_NS
 *	after the pass should have begun. If the pass has not begun by then, or stands still, the
 *	watch makes another CPU take over the bases that are due and those that the pass has in
 *	hand, up to RESCUE_MAX in one interrupt. If that CPU does not get to its pass either, the
 *	next CPU is tried a ms later; if no CPU is left, all are tried again RETRY_NS after that. As
 *	long as passes come in time and end in time, the watch never expires.
 *
 *	A pass that stands still while it wakes readers may hold the lock of their wait queue. If
 *	wake() of a sink waited for that lock on another CPU, all other timers there would wait too.
 *	So wake() returns false instead of waiting, and is called again a ms later.
 *
 * Limits
 *	If on PREEMPT_RT tasks of higher priority keep all CPUs busy, queued bases wait. Isolated
 *	CPUs (nohz_full) do not take over.
 */
#ifndef TWHEEL_DISPATCH_H
#define TWHEEL_DISPATCH_H

#define HOLD_MAX_NS	NSEC_PER_MSEC
/* By how many percent a pass may be longer for users who weigh less than half of the heaviest. */
#define RUN_MORE	15
/*
 * How many users in a row a pass may move to the back of a queue because they have to wait.
 * Interrupts are off meanwhile.
 */
#define LOOKS_MAX	16
#define CALM_NS		(40 * NSEC_PER_USEC)
#define CALM_PERIOD_NS	(2 * CALM_NS)
#define WATCH_NS	NSEC_PER_MSEC
#define RETRY_NS	(7 * NSEC_PER_MSEC)
/* How many bases change CPUs in one hard interrupt. */
#define RESCUE_MAX	16
/* What share_weight() counts for each queued base: the least time that serving a base takes. */
#define BASE_NS		NSEC_PER_USEC
/* What "of late" means: CPU time taken RECENT_NS ago counts for at most about a third. */
#define RECENT_NS	(100 * NSEC_PER_MSEC)

enum { QUEUE_MONOTONIC, QUEUE_BOOTTIME, NR_QUEUES };

struct dispatcher;

/**
 * struct dispatch_entry - a user in a queue
 * @node:	in the queue's entries, if @bases is not empty
 * @bases:	the user's bases in this queue, by their keys
 * @key:	when it must be served: the key of its first base, or @not_before if that is later.
 *		Entries are served in the order of their keys
 * @weight:	share_weight() when it was sorted. If keys are the same, the lightest is first
 * @soft:	when it may be served: @soft of its first base, or @not_before if that is later
 * @not_before:	the end of its last turn; or, if its user has to wait (because the pass is over, or
 *		for a pause or a calm), the end of that wait
 * @put_off:	the end of the last such wait
 *
 * The lock of the CPU's dispatcher guards it, and struct share and struct dispatch_queue as well.
 */
struct dispatch_entry {
	struct rb_node		node;
	struct rb_root_cached	bases;
	ktime_t			key;
	u64			weight;
	ktime_t			soft;
	ktime_t			not_before;
	ktime_t			put_off;
};

/**
 * struct share - a user on a CPU
 * @account:	what the user's bases have taken of the CPU
 * @recent:	what their lock holds have taken of late: what was taken RECENT_NS ago counts for at
 *		most about a third
 * @charged:	the time of @recent, when the user was last served, in ns of CLOCK_MONOTONIC
 * @nr_bases:	how many bases are in @entry
 * @entry:	the user's entry in each queue of the CPU's dispatcher
 */
struct share {
	struct account		account;
	u64			recent;
	u64			charged;
	unsigned int		nr_bases;
	struct dispatch_entry	entry[NR_QUEUES];
};

/**
 * struct twheel_user - a user: all bases of a user have one share of each CPU
 * @shares:	the share of each CPU
 */
struct twheel_user {
	struct share __percpu	*shares;
};

/**
 * struct dispatch_queue - the bases that are queued on a CPU for one clock
 * @dispatcher:	the CPU's dispatcher
 * @hrtimer:	its callback is a pass
 * @watch:	expires if the pass does not begin in time (PREEMPT_RT only)
 * @entries:	the users, by their keys
 * @armed:	the key for which the hrtimer is armed, KTIME_MAX if it is not. Read without the
 *		lock by dispatcher_is_away()
 * @rest_until:	the end of the last rest of all users in the queue
 */
struct dispatch_queue {
	struct dispatcher	*dispatcher;
	struct hrtimer		hrtimer;
	struct hrtimer		watch;
	struct rb_root_cached	entries;
	ktime_t			armed;
	ktime_t			rest_until;
};

/**
 * struct dispatcher - serves the bases that are queued on a CPU
 * @lock:	guards all members below that change, and which bases are queued here
 * @cpu:	the CPU
 * @nr_users:	users with bases in its queues
 * @nr_active:	users served in this period, whose length is RECENT_NS
 * @nr_were:	users served in the period before
 * @began:	when the period began, in ns of CLOCK_MONOTONIC
 * @running:	a pass is under way, and will arm the hrtimers when it ends. Read without the lock
 *		by dispatcher_may_hang() and dispatcher_is_away(), which only guess
 * @serving:	the base whose turn it is, from the moment it is taken off its queue until the turn
 *		has ended
 * @rescued:	the base that another CPU is taking over, while it is on neither CPU's queue
 * @rescue:	the call that makes another CPU take over bases
 * @rescuing:	@rescue is under way. If the call could not be sent, queue_watch() clears this
 *		without the lock: then nobody else writes it
 * @kick:	the call that makes @cpu arm the hrtimers, after another CPU, whose home is @cpu,
 *		has queued a base here
 * @kicks:	how many such calls are under way
 * @in_wake:	the base whose sink's wake() is being called. Written by the pass without the lock;
 *		read by base_is_held(), which only guesses
 * @waking:	a base whose timers have expired in a turn that is over, until its sink's wake() has
 *		returned
 * @last:	the user who will be charged for the interrupt of the pass: the one who was served
 *		last, or for whom a calm has begun since. See share_wait()
 * @account:	what all passes have taken of the CPU
 * @calm_began:	when the last calm began, in ns of CLOCK_MONOTONIC
 * @calm_light:	the weight of the user for whom the calm's task was woken
 * @expiry:	a pass holds it
 * @queue:	one for each clock
 */
struct dispatcher {
	raw_spinlock_t		lock;
	unsigned int		cpu;
	unsigned int		nr_users;
	unsigned int		nr_active;
	unsigned int		nr_were;
	u64			began;
	bool			running;
	struct twheel_base	*serving;
	struct twheel_base	*rescued;
	call_single_data_t	rescue;
	bool			rescuing;
	call_single_data_t	kick;
	u32			kicks;
	struct twheel_base	*in_wake;
	struct twheel_base	*waking;
	struct share		*last;
	struct account		account;
	u64			calm_began;
	u64			calm_light;
	struct expiry		expiry;
	struct dispatch_queue	queue[NR_QUEUES];
};

/* The user of all bases that were made without a user. */
static struct twheel_user *nobody;

/* The queue of @d to which @base belongs, by the base's clock. */
static struct dispatch_queue *queue_of(struct dispatcher *d, const struct twheel_base *base)
{
	return &d->queue[base->clock == CLOCK_BOOTTIME ? QUEUE_BOOTTIME : QUEUE_MONOTONIC];
}

/* The share that the user of @base has of the CPU of @d. */
static struct share *share_of(const struct dispatcher *d, const struct twheel_base *base)
{
	return per_cpu_ptr(base->user->shares, d->cpu);
}

/* The entry of the user of @base in the queue of @base. */
static struct dispatch_entry *entry_of(struct dispatcher *d, const struct twheel_base *base)
{
	return &share_of(d, base)->entry[queue_of(d, base) - d->queue];
}

/* A time of CLOCK_MONOTONIC as a time of the queue's clock. */
static ktime_t queue_time(const struct dispatch_queue *q, u64 time)
{
	return q == &q->dispatcher->queue[QUEUE_BOOTTIME] ?
	       ktime_mono_to_any(time, TK_OFFS_BOOT) : time;
}

/* The time of @tick, on the clock of the queue of @base. */
static ktime_t base_queue_time(const struct twheel_base *base, u64 tick)
{
	ktime_t time = base_time(base, tick);

	if (likely(!base_is_settable(base)) || time == KTIME_MAX)
		return time;
	return max_t(s64, ktime_sub(time, ktime_mono_to_any(0, TK_OFFS_REAL)), 0);
}

/* ---- the order of service: under the dispatcher's lock ------------------------------ */

static struct dispatch_entry *queue_first(const struct dispatch_queue *q)
{
	return rb_entry_safe(rb_first_cached(&q->entries), struct dispatch_entry, node);
}

static struct twheel_base *entry_first(const struct dispatch_entry *entry)
{
	return rb_entry_safe(rb_first_cached(&entry->bases), struct twheel_base, queued);
}

static bool base_is_earlier(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct twheel_base, queued)->key <
	       rb_entry(b, struct twheel_base, queued)->key;
}

static bool entry_is_earlier(struct rb_node *node, const struct rb_node *other)
{
	const struct dispatch_entry *a = rb_entry(node, struct dispatch_entry, node);
	const struct dispatch_entry *b = rb_entry(other, struct dispatch_entry, node);

	return a->key < b->key || (a->key == b->key && a->weight < b->weight);
}

static struct share *entry_share(const struct dispatch_queue *q, struct dispatch_entry *entry)
{
	return container_of(entry, struct share, entry[q - q->dispatcher->queue]);
}

/* The weight of a user on a CPU: what the user has taken of late and is about to take, in ns. */
static u64 share_weight(const struct share *share)
{
	return share->recent + share->nr_bases * BASE_NS;
}

/* Put @entry in its place again, after its first base or its @not_before has changed. */
static void entry_sort(struct dispatch_queue *q, struct dispatch_entry *entry)
{
	const struct twheel_base *first = entry_first(entry);

	lockdep_assert_held(&q->dispatcher->lock);
	if (!RB_EMPTY_NODE(&entry->node)) {
		rb_erase_cached(&entry->node, &q->entries);
		RB_CLEAR_NODE(&entry->node);
	}
	if (!first)
		return;
	entry->key = max(first->key, entry->not_before);
	entry->weight = share_weight(entry_share(q, entry));
	entry->soft = max(first->soft, entry->not_before);
	rb_add_cached(&entry->node, &q->entries, entry_is_earlier);
}

/*
 * The mode of the hrtimers: pinned, so that the work of idle CPUs does not pile up on a busy one.
 * If this CPU is isolated, the hrtimer is not pinned, and the kernel may choose another CPU; when
 * that CPU runs the pass, queue_serve() hands the bases over to that CPU's dispatcher.
 */
static enum hrtimer_mode queue_mode(void)
{
	return housekeeping_cpu(raw_smp_processor_id(), HK_TYPE_TIMER) ?
	       HRTIMER_MODE_ABS_PINNED_SOFT : HRTIMER_MODE_ABS_SOFT;
}

/* Set the watch: it expires if the pass that must begin at @key has not begun WATCH_NS later. */
static void watch_start(struct dispatch_queue *q, ktime_t key)
{
	lockdep_assert_held(&q->dispatcher->lock);
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		hrtimer_start(&q->watch, ktime_add_safe(key, WATCH_NS),
			      (queue_mode() & ~HRTIMER_MODE_SOFT) | HRTIMER_MODE_HARD);
}

/* A pass is under way, or will begin at @key at the latest. Make sure that the watch is set. */
static void watch_resume(struct dispatch_queue *q, ktime_t key)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    (!hrtimer_is_queued(&q->watch) ||
	     hrtimer_get_expires(&q->watch) > ktime_add_safe(key, WATCH_NS)))
		watch_start(q, key);
}

/* Nothing is queued: stop the watch. */
static void watch_stop(struct dispatch_queue *q)
{
	/* If the watch is expiring at this moment, it will find nothing to do. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		hrtimer_try_to_cancel(&q->watch);
}

/* When @first, the first entry of the queue, must be served. */
static ktime_t queue_key(const struct dispatch_queue *q, const struct dispatch_entry *first)
{
	return max(first->key, q->rest_until);
}

/*
 * If this is not the CPU of @d, ask the CPU of @d to arm the hrtimers. Returns false if this CPU
 * must arm them: it is the CPU of @d, or the CPU of @d is offline.
 */
static bool dispatcher_kick(struct dispatcher *d)
{
	lockdep_assert_held(&d->lock);
	return d->cpu != smp_processor_id() && cpu_kick(d->cpu, &d->kick, &d->kicks);
}

/*
 * Make sure that there will be a pass for what is queued. If a pass is under way, it arms the
 * hrtimers when it ends. If the hrtimer is armed for the same or an earlier time, it stays so. In
 * both cases there is nothing to do, except that on PREEMPT_RT the watch must be set.
 */
static void queue_arm(struct dispatch_queue *q)
{
	const struct dispatch_entry *first = queue_first(q);
	ktime_t soft, key;
	bool comes;

	lockdep_assert_held(&q->dispatcher->lock);
	if (!first)
		return;
	key = queue_key(q, first);
	comes = q->dispatcher->running || key >= q->armed;
	if (comes && !IS_ENABLED(CONFIG_PREEMPT_RT))
		return;
	if (dispatcher_kick(q->dispatcher))
		return;
	if (comes) {
		watch_resume(q, key);
		return;
	}
	soft = max(first->soft, q->rest_until);
	WRITE_ONCE(q->armed, key);
	hrtimer_start_range_ns(&q->hrtimer, soft, ktime_sub(key, soft), queue_mode());
	watch_start(q, key);
}

/*
 * Arm the hrtimers on the dispatcher's CPU, in hard interrupt context, because another CPU asked.
 */
static void dispatcher_kicked(void *arg)
{
	struct dispatcher *d = arg;
	unsigned int i;

	raw_spin_lock(&d->lock);
	d->kicks--;
	for (i = 0; i < NR_QUEUES; i++)
		queue_arm(&d->queue[i]);
	raw_spin_unlock(&d->lock);
}

/* ---- queueing a base --------------------------------------------------------------- */

/* Put @base, which is on no queue, on its queue of @d. */
static void dispatcher_add(struct dispatcher *d, struct twheel_base *base)
{
	lockdep_assert_held(&base->lock);
	lockdep_assert_held(&d->lock);
	rb_add_cached(&base->queued, &entry_of(d, base)->bases, base_is_earlier);
	d->nr_users += !share_of(d, base)->nr_bases++;
	WRITE_ONCE(base->dispatcher, d);
	entry_sort(queue_of(d, base), entry_of(d, base));
}

/*
 * Take @base off its entry, which is one of @d's. The caller makes sure that the entry is sorted
 * before the dispatcher chooses another base: see entry_sort().
 */
static void entry_del(struct dispatcher *d, struct twheel_base *base)
{
	lockdep_assert_held(&d->lock);
	rb_erase_cached(&base->queued, &entry_of(d, base)->bases);
	d->nr_users -= !--share_of(d, base)->nr_bases;
	WRITE_ONCE(base->dispatcher, NULL);
}

/* Take @base off its queue, that of @d. */
static void dispatcher_del(struct dispatcher *d, struct twheel_base *base)
{
	entry_del(d, base);
	entry_sort(queue_of(d, base), entry_of(d, base));
}

/* Take @base off its queue of @d, if it is still there: a pass may have taken it off before. */
static void base_leave(struct twheel_base *base, struct dispatcher *d)
{
	lockdep_assert_held(&base->lock);
	raw_spin_lock(&d->lock);
	if (base->dispatcher == d)
		dispatcher_del(d, base);
	raw_spin_unlock(&d->lock);
}

/*
 * May a pass of @d be standing still, on another CPU? On PREEMPT_RT a pass stands still while a
 * task of higher priority keeps the CPU. This is a guess, made without the lock. If it is wrong and
 * says yes, a base is queued anew for nothing; if it is wrong and says no, the watch helps.
 */
static bool dispatcher_may_hang(const struct dispatcher *d)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) && d != this_cpu_read(cpu_dispatcher) &&
	       READ_ONCE(d->running);
}

/* The next tick at which @base must be served: for a timer or, on PREEMPT_RT, to call wake(). */
static u64 base_next(const struct twheel_base *base)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) ? min(base->wheel.next, base->wake_at) :
					       base->wheel.next;
}

/*
 * Queue @base for its next event, but not before @after: a base that has just had a turn lets other
 * bases have theirs. If @base is on no queue, a pass may have taken it off and not yet locked it.
 * Then @base is served once more than needed.
 */
static noinline void base_requeue(struct twheel_base *base, ktime_t after)
{
	struct dispatcher *d = READ_ONCE(base->dispatcher);
	u64 next = base_next(base);
	ktime_t due, key;

	lockdep_assert_held(&base->lock);
	if (d)
		base_leave(base, d);
	base->armed = next;
	if (next == WHEEL_NEVER || base->dead)
		return;
	cpu_home();
	d = this_cpu_read(cpu_dispatcher);
	due = base_queue_time(base, next);
	/* A repeated call of wake() gets no slack: the timers that expired had it already. */
	key = next == base->wake_at ? due : ktime_add_safe(due, base->slack_ns);
	base->soft = max(due, after);
	base->key = max(key, after);
	raw_spin_lock(&d->lock);
	dispatcher_add(d, base);
	queue_arm(queue_of(d, base));
	raw_spin_unlock(&d->lock);
}

/*
 * Call base_requeue() if @base is on no queue, is queued for too late a time, or is queued on a CPU
 * whose pass may be standing still.
 */
static __always_inline void base_enter(struct twheel_base *base, ktime_t after)
{
	const struct dispatcher *d = READ_ONCE(base->dispatcher);

	lockdep_assert_held(&base->lock);
	if (!d || base_next(base) < base->armed || dispatcher_may_hang(d))
		base_requeue(base, after);
}

/*
 * Is @base in use by a pass of @d, or by a CPU that is taking bases over from @d? If so, *@lock is
 * for expiry_sleep(). A pass may stand still for any time, with another base in hand, while a CPU
 * takes @base over: so in the second case the lock of the pass is not slept on.
 */
static bool dispatcher_has(struct dispatcher *d, const struct twheel_base *base,
			   struct expiry_lock **lock)
{
	bool has;

	*lock = NULL;
	raw_spin_lock_irq(&d->lock);
	has = d->serving == base || d->waking == base;
	if (has)
		*lock = expiry_get(&d->expiry);
	else
		has = d->rescued == base;
	raw_spin_unlock_irq(&d->lock);
	return has;
}

/*
 * Take @base off its queue for good. When this returns no pass is using it, and none will:
 *
 *	CPU 0: pass				CPU 1: base_leave_all()
 *	lock dispatcher
 *	serving = base, off the queue
 *	unlock
 *						lock base: dead; it is on no queue; unlock
 *						finds it served: waits
 *	lock base, finds it dead, unlock
 *	lock dispatcher, serving = NULL
 */
static void base_leave_all(struct twheel_base *base)
{
	struct expiry_lock *lock;
	struct dispatcher *d;
	unsigned int cpu;

	raw_spin_lock_irq(&base->lock);
	WRITE_ONCE(base->dead, true);
	d = READ_ONCE(base->dispatcher);
	if (d)
		base_leave(base, d);
	raw_spin_unlock_irq(&base->lock);
	for_each_possible_cpu(cpu) {
		d = per_cpu(own_dispatcher, cpu);
		while (dispatcher_has(d, base, &lock))
			expiry_sleep(lock);
	}
}

/* ---- a CPU that does not come to its pass -------------------------------------------- */

/* Is the pass for the first entry of the queue late, by WATCH_NS or more? */
static bool queue_is_stuck(const struct dispatch_queue *q, ktime_t now)
{
	const struct dispatch_entry *first = queue_first(q);

	lockdep_assert_held(&q->dispatcher->lock);
	return first && ktime_add_safe(queue_key(q, first), WATCH_NS) <= now;
}

/*
 * Does it seem that the CPU of @d does not get to its passes, or is busy with one? A guess, made
 * without the lock.
 */
static bool dispatcher_is_away(const struct dispatcher *d)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++) {
		const struct dispatch_queue *q = &d->queue[i];

		if (ktime_add_safe(READ_ONCE(q->armed), WATCH_NS) <= queue_time(q, now))
			return true;
	}
	return READ_ONCE(d->running);
}

/*
 * A CPU that may take over the bases that are due on the CPU of @d, or nr_cpu_ids if there is none.
 */
static unsigned int rescue_cpu(const struct dispatcher *d)
{
	unsigned int cpu;

	for_each_cpu_wrap(cpu, housekeeping_cpumask(HK_TYPE_TIMER), d->cpu + 1)
		if (cpu != d->cpu && cpu_online(cpu) &&
		    !dispatcher_is_away(per_cpu(own_dispatcher, cpu)))
			return cpu;
	return nr_cpu_ids;
}

/*
 * The pass that is under way on @d has @base in hand. Does @base need another CPU? Not if @base is
 * being destroyed, or if the pass is calling its wake(). Otherwise yes, if @base is on no queue; or
 * if no other call of wake() is due, since timers that have expired may have woken nobody.
 *
 * This is a guess, made without base->lock. If it is wrong and says yes, @base is queued once more
 * than needed; if it is wrong and says no, the watch looks again later.
 */
static bool base_is_held(const struct dispatcher *d, const struct twheel_base *base)
{
	if (READ_ONCE(base->dead) || base == READ_ONCE(d->in_wake))
		return false;
	return !READ_ONCE(base->dispatcher) || READ_ONCE(base->wake_at) == WHEEL_NEVER;
}

/* A base that the pass on @d has in hand and that needs another CPU, or NULL. */
static struct twheel_base *dispatcher_in_hand(const struct dispatcher *d)
{
	struct twheel_base *const hand[] = { d->serving, d->waking };
	unsigned int i;

	lockdep_assert_held(&d->lock);
	for (i = 0; i < ARRAY_SIZE(hand); i++)
		if (hand[i] && base_is_held(d, hand[i]))
			return hand[i];
	return NULL;
}

/*
 * If a queue of @d is stuck, take the first base off that queue, and return it; else return NULL.
 */
static struct twheel_base *dispatcher_stuck(struct dispatcher *d)
{
	u64 now = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++) {
		struct dispatch_queue *q = &d->queue[i];

		if (queue_is_stuck(q, queue_time(q, now))) {
			struct twheel_base *base = entry_first(queue_first(q));

			dispatcher_del(d, base);
			return base;
		}
	}
	return NULL;
}

/*
 * Have @base served on this CPU @ns from now, and its sink's wake() called then, even if nothing
 * expires. Set wake_at to the present tick: then wake() is due as soon as @base is served, even if
 * a tick is longer than @ns.
 */
static void base_wake_after(struct twheel_base *base, u64 ns)
{
	ktime_t now = base_now(base);

	lockdep_assert_held(&base->lock);
	WRITE_ONCE(base->wake_at, base_tick(base, now));
	base_enter(base, ktime_add_ns(base_is_settable(base) ? ktime_get() : now, ns));
}

/* Take one base of @d, another CPU's, over to this CPU. Returns false if there is none. */
static bool dispatcher_rescue_one(struct dispatcher *d)
{
	struct twheel_base *hand, *base;

	raw_spin_lock(&d->lock);
	hand = dispatcher_in_hand(d);
	base = hand ?: dispatcher_stuck(d);
	d->rescued = base;
	raw_spin_unlock(&d->lock);
	if (!base)
		return false;
	raw_spin_lock(&base->lock);
	if (hand)
		base_wake_after(base, 0);
	else
		base_enter(base, 0);
	raw_spin_unlock(&base->lock);
	raw_spin_lock(&d->lock);
	d->rescued = NULL;
	raw_spin_unlock(&d->lock);
	return true;
}

/*
 * Take over bases from the dispatcher @arg to this CPU. Called in hard interrupt context, where it
 * cannot be preempted: a task in base_leave_all() may be waiting for it to end.
 */
static void dispatcher_rescue(void *arg)
{
	struct dispatcher *d = arg;
	unsigned int nr = 0;

	while (nr < RESCUE_MAX && dispatcher_rescue_one(d))
		nr++;
	raw_spin_lock(&d->lock);
	d->rescuing = false;
	raw_spin_unlock(&d->lock);
}

/* The callback of the watch of a queue. */
static enum hrtimer_restart queue_watch(struct hrtimer *hrtimer)
{
	struct dispatch_queue *q = container_of(hrtimer, struct dispatch_queue, watch);
	struct dispatcher *d = q->dispatcher;
	ktime_t now = queue_time(q, ktime_get_ns());
	const struct dispatch_entry *first;
	unsigned int cpu = nr_cpu_ids;
	unsigned long flags;
	bool again = false;

	raw_spin_lock_irqsave(&d->lock, flags);
	first = queue_first(q);
	if ((queue_is_stuck(q, now) || dispatcher_in_hand(d)) && !d->rescuing) {
		cpu = rescue_cpu(d);
		again = cpu >= nr_cpu_ids;
		d->rescuing = !again;
	}
	/* Try again even if the queue is empty: a base that a pass has in hand may be on none. */
	if (again)
		watch_start(q, ktime_add_ns(now, RETRY_NS));
	else if (first)
		watch_start(q, max(queue_key(q, first), now));
	raw_spin_unlock_irqrestore(&d->lock, flags);
	if (cpu < nr_cpu_ids && smp_call_function_single_async(cpu, &d->rescue))
		WRITE_ONCE(d->rescuing, false);		/* @cpu has just gone offline */
	return HRTIMER_NORESTART;
}

/* ---- a pass ------------------------------------------------------------------------ */

/**
 * struct pass - the state of a pass, which only the pass itself uses
 * @began:	when the pass began, in ns of CLOCK_MONOTONIC
 * @time:	the time of the last charge: all that the pass took before it has been charged
 * @since:	run_time() at @time
 * @held:	how much of what is still to be charged was spent in lock holds
 * @ops:	how many operations the pass has done
 * @light:	the weight of the lightest user for whom a task may have been woken
 * @heavy:	the weight of the heaviest user who was served
 * @woken:	a sink's wake() was called since the last charge
 * @expired:	timers of the base that was just served have expired, and its sink's wake() was not
 *		called yet
 * @finished:	no more timers of the base that was just served are due
 * @put_off:	if the base to be served next had to wait after it was due: when it was due, in the
 *		queue's time; else KTIME_MAX
 */
struct pass {
	u64		began;
	u64		time;
	u64		since;
	u64		held;
	u32		ops;
	u64		light;
	u64		heavy;
	bool		woken;
	bool		expired;
	bool		finished;
	ktime_t		put_off;
};

/* How many ns it takes to repay one ns of a user's debt: 2n, as n users share half of the CPU. */
static u32 dispatcher_parts(const struct dispatcher *d)
{
	return 2 * max3(d->nr_active, d->nr_were, 1U);
}

/* Count @share among the users served in this period. Called before share_remember(). */
static void share_is_active(struct dispatcher *d, struct share *share, u64 now)
{
	u64 gone = now - d->began;

	lockdep_assert_held(&d->lock);
	if (gone >= RECENT_NS) {
		d->nr_were = gone < 2 * RECENT_NS ? d->nr_active : 0;
		d->nr_active = 0;
		d->began = now;
	} else if (share->charged >= d->began) {
		return;
	}
	d->nr_active++;
}

/* Charge the CPU, and the user of @share, for @used ns that ended @now. */
static void share_charge(struct dispatcher *d, struct share *share, u64 now, u64 used)
{
	account_charge(&d->account, now, used, 2);
	account_charge(&share->account, now, used, dispatcher_parts(d));
}

/*
 * Add @held to what @share has taken of late, after forgetting part of the older time: what was
 * taken RECENT_NS ago counts for at most about a third. Time for waking does not count, so a user
 * whose tasks sleep and have to be woken is no heavier than one whose tasks are awake.
 */
static void share_remember(struct share *share, u64 now, u64 held)
{
	u64 gone = min_t(u64, now - share->charged, RECENT_NS);

	share->recent -= div_u64(share->recent * gone, RECENT_NS);
	share->recent += held;
	share->charged = now;
}

/* How much the pass has taken since the last call of this function. @now is the time. */
static u64 pass_took(struct pass *pass, u64 now)
{
	u64 used = run_took(now, pass->since);

	pass->time = now;
	pass->since += used;
	return used;
}

/* Charge what the pass has taken up to @now to the user of @base. */
static void pass_charge(struct dispatcher *d, struct pass *pass, const struct twheel_base *base,
			u64 now)
{
	lockdep_assert_held(&d->lock);
	d->last = share_of(d, base);
	share_is_active(d, d->last, now);
	share_charge(d, d->last, now, pass_took(pass, now));
	share_remember(d->last, now, pass->held);
	pass->held = 0;
	pass->heavy = max(pass->heavy, share_weight(d->last));
	if (pass->woken)
		pass->light = min(pass->light, share_weight(d->last));
	pass->woken = false;
}

/*
 * Settle the accounts of @share and of the CPU. Returns how long @share has to pause, or 0. The
 * debt that a user may have without a pause is divided by the number of users, too: all together
 * may have as much as one user alone.
 */
static u64 share_pause(struct dispatcher *d, struct share *share, u64 now)
{
	u32 parts = dispatcher_parts(d);

	account_settle(&d->account, now, 2);
	account_settle(&share->account, now, parts);
	if (!account_is_over(&d->account) || share->account.debt * parts < RUN_NS)
		return 0;
	return max_t(u64, DEFER_MIN_NS, min(d->account.debt * 2, share->account.debt * parts));
}

/*
 * Will a task that was woken run here as soon as the pass is over? If a thread of the kernel runs
 * the pass (ksoftirqd, or another on PREEMPT_RT), need_resched() may say no although the task will
 * run: the task does not preempt that thread, but runs when the thread sleeps. So then say yes.
 */
static bool task_is_next(void)
{
	return need_resched() || (current->flags & (PF_KTHREAD | PF_IDLE)) == PF_KTHREAD;
}

/*
 * Does a calm begin instead of @share's turn, because a task was woken that is to run here at once?
 */
static bool calm_begins(struct dispatcher *d, const struct pass *pass, const struct share *share)
{
	if (!task_is_next() || pass->time - d->calm_began < CALM_PERIOD_NS ||
	    pass->light >= share_weight(share) / 2)
		return false;
	d->calm_began = pass->time;
	d->calm_light = pass->light;
	return true;
}

/*
 * How long @share has to wait for the end of a calm that has begun already, or begins here; or 0.
 */
static u64 share_calm(struct dispatcher *d, const struct pass *pass, const struct share *share)
{
	u64 gone = pass->time - d->calm_began;

	lockdep_assert_held(&d->lock);
	if (gone < CALM_NS && d->calm_light < share_weight(share) / 2)
		return CALM_NS - gone;
	return calm_begins(d, pass, share) ? CALM_NS : 0;
}

/*
 * Has the pass done enough? If @share weighs less than half as much as the heaviest user who was
 * served, the pass may be RUN_MORE percent longer for @share.
 */
static bool pass_is_over(const struct pass *pass, const struct share *share)
{
	u32 more = share_weight(share) < pass->heavy / 2 ? RUN_MORE : 0;

	return pass->ops >= RUN_OPS + RUN_OPS / 100 * more ||
	       pass->time - pass->began >= RUN_NS + RUN_NS / 100 * more;
}

/* The time now. The time spent on looking for a user to serve is charged to the CPU alone. */
static ktime_t queue_now(const struct dispatch_queue *q, struct pass *pass)
{
	u64 now = ktime_get_ns();

	account_charge(&q->dispatcher->account, now, pass_took(pass, now), 2);
	return queue_time(q, now);
}

/* Have @entry wait until @until, a time of the queue's clock. */
static void entry_put_off(struct dispatch_queue *q, struct dispatch_entry *entry, ktime_t until)
{
	entry->put_off = until;
	entry->not_before = until;
	entry_sort(q, entry);
}

/*
 * How long does @share, which is due, have to wait? If @share must wait for a calm that begins
 * here, @share becomes d->last, and so is charged for the interrupt of this pass, although it had
 * no turn. If @share is served in the pass after the calm, it may be charged for the interrupt of
 * that pass, too.
 */
static u64 share_wait(struct dispatcher *d, const struct pass *pass, struct share *share)
{
	u64 wait = share_pause(d, share, pass->time);

	if (wait)
		return wait;
	if (pass_is_over(pass, share))
		return DEFER_MIN_NS;
	wait = share_calm(d, pass, share);
	if (wait == CALM_NS) {
		account_charge(&d->account, pass->time, RUN_COST_NS, 2);
		d->last = share;
	}
	return wait;
}

/*
 * The entry whose turn it is, or NULL. Users who have to wait are moved to the back. Interrupts are
 * off meanwhile: so if LOOKS_MAX users in a row have to wait, the whole queue rests.
 */
static struct dispatch_entry *queue_turn(struct dispatch_queue *q, struct pass *pass)
{
	ktime_t now = queue_time(q, pass->time);
	u64 wait = DEFER_MIN_NS;
	unsigned int i;

	for (i = 0; i < LOOKS_MAX; i++) {
		struct dispatch_entry *entry = queue_first(q);

		if (!entry || entry->soft > now)
			return NULL;
		wait = share_wait(q->dispatcher, pass, entry_share(q, entry));
		if (!wait)
			return entry;
		now = queue_now(q, pass);
		entry_put_off(q, entry, ktime_add_ns(now, wait));
	}
	q->rest_until = ktime_add_ns(queue_now(q, pass), wait);
	return NULL;
}

/* Take the base whose turn it is off its queue. NULL if no base is due, or if all have to wait. */
static struct twheel_base *queue_next(struct dispatch_queue *q, struct pass *pass)
{
	struct dispatch_entry *entry;
	struct twheel_base *base;

	if (queue_time(q, pass->time) < q->rest_until)
		return NULL;
	entry = queue_turn(q, pass);
	if (!entry)
		return NULL;
	base = entry_first(entry);
	/* A rescue may queue the base anew before it is served, and so change base->soft. */
	pass->put_off = base->soft < max(entry->put_off, q->rest_until) ? base->soft : KTIME_MAX;
	q->dispatcher->serving = base;
	/* turn_end() sorts the entry. But an entry without bases must leave the queue now. */
	entry_del(q->dispatcher, base);
	if (!entry_first(entry))
		entry_sort(q, entry);
	return base;
}

/*
 * queue_next() of both queues in turn, so that neither clock waits for the other. *@queue becomes
 * the queue of the base that is returned.
 */
static struct twheel_base *dispatcher_next(struct dispatcher *d, struct dispatch_queue **queue,
					   struct pass *pass)
{
	struct twheel_base *base;
	unsigned int i;

	for (i = 0; i < NR_QUEUES; i++) {
		*queue = &d->queue[(*queue - d->queue + 1) % NR_QUEUES];
		base = queue_first(*queue) ? queue_next(*queue, pass) : NULL;
		if (base)
			return base;
	}
	return NULL;
}

/* Must wake() be called at tick @now even if nothing expires? If so, note that it was called. */
static bool base_wants_wake(struct twheel_base *base, u64 now)
{
	lockdep_assert_held(&base->lock);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) || base->wake_at > now)
		return false;
	WRITE_ONCE(base->wake_at, WHEEL_NEVER);
	return true;
}

/* Expire timers of @base that are due at @time, as many as one lock hold may do. Count the work. */
static void base_turn(struct twheel_base *base, struct pass *pass, u64 time)
{
	u64 moves = base->wheel.moves, expired = base->expired;
	ktime_t now = base_from_mono(base, time);

	lockdep_assert_held(&base->lock);
	if (base->pass != pass->began) {
		base->pass = pass->began;
		base->pass_moves = 0;
		base->wakeups++;
	}
	if (pass->put_off != KTIME_MAX) {
		base->deferred++;
		trace_twheel_budget(base, ktime_sub(base_is_settable(base) ? time : now,
						    pass->put_off));
	}
	pass->ops += run_sink(base, base_tick(base, now));
	pass->expired = base->expired != expired || base->sink->always ||
			base_wants_wake(base, base_tick(base, now));
	pass->finished = !wheel_due(&base->wheel, base_tick(base, now));
	base->pass_moves += base->wheel.moves - moves;
	base->worst = max(base->worst, base->pass_moves);
}

/*
 * Serve @base: expire timers that were due at the time of the last charge, since reading the clock
 * again would be expensive; but on PREEMPT_RT those that are due now. If the queue's dispatcher is
 * not this CPU's (cpu_dispatcher), because the CPU of the queue went offline or was isolated, hand
 * the base over to this CPU's dispatcher. Time beyond HOLD_MAX_NS is charged to nobody. Returns the
 * time at the end.
 */
static u64 queue_serve(struct dispatch_queue *q, struct twheel_base *base, struct pass *pass)
{
	u64 begin = pass->time, now, held;

	pass->expired = false;
	pass->finished = true;
	raw_spin_lock_irq(&base->lock);
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		begin = ktime_get_ns();		/* others may have had the CPU since */
	if (likely(!base->dead)) {
		if (likely(q->dispatcher == this_cpu_read(cpu_dispatcher)))
			base_turn(base, pass, begin);
		else
			pass->ops++;
		base_enter(base, queue_time(q, begin));
	}
	now = ktime_get_ns();
	raw_spin_unlock_irq(&base->lock);
	held = min_t(u64, now - begin, HOLD_MAX_NS);
	pass->held += held;
	pass->since += now - begin - held;
	return now;
}

/*
 * Call the sink's wake() of @base. If it returns false, because on PREEMPT_RT it would have to wait
 * for a lock, it will be called again.
 */
static void base_wake(struct dispatcher *d, struct twheel_base *base)
{
	bool woken;

	WRITE_ONCE(d->in_wake, base);
	woken = base->sink->wake(base);
	WRITE_ONCE(d->in_wake, NULL);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) || woken)
		return;
	raw_spin_lock_irq(&base->lock);
	base_wake_after(base, WATCH_NS);
	raw_spin_unlock_irq(&base->lock);
}

/*
 * If timers of a base have expired and wake() was not called yet, call it. It may take long, as
 * many tasks may be waiting: so charge the time to the base's user.
 */
static void dispatcher_wake(struct dispatcher *d, struct pass *pass)
	__must_hold(&d->lock)
{
	struct twheel_base *base = d->waking;

	if (!base)
		return;
	raw_spin_unlock_irq(&d->lock);
	base_wake(d, base);
	raw_spin_lock_irq(&d->lock);
	pass->woken = true;
	pass_charge(d, pass, base, ktime_get_ns());
	d->waking = NULL;
}

/*
 * If a task waits in base_leave_all(), let it look again. It may be waiting for d->waking, so call
 * that base's wake() first. Drops the lock in between.
 */
static void dispatcher_yield(struct dispatcher *d, struct pass *pass)
	__must_hold(&d->lock)
{
	if (!expiry_has_waiters(&d->expiry))
		return;
	dispatcher_wake(d, pass);
	expiry_yield(&d->expiry, &d->lock);
}

/* Will @base have the next turn, too, because nothing else is queued on @d? */
static bool base_is_next(struct dispatcher *d, const struct twheel_base *base)
{
	const struct share *share = share_of(d, base);

	return d->nr_users == 1 && share->nr_bases == 1 && READ_ONCE(base->dispatcher) == d;
}

/*
 * Serve @base for a lock hold. When no more of its timers are due, call wake(): for the timers that
 * have expired in this turn, and in earlier turns of @base that had no call of wake() yet. Returns
 * the time.
 */
static u64 pass_serve_one(struct dispatch_queue *q, struct twheel_base *base, struct pass *pass)
{
	bool unwoken = q->dispatcher->waking == base;
	u64 time = queue_serve(q, base, pass);

	pass->expired |= unwoken;
	if (!pass->expired || !pass->finished)
		return time;
	base_wake(q->dispatcher, base);
	pass->expired = false;
	pass->woken = true;
	return ktime_get_ns();
}

/*
 * The turn of @base is over. Users who have come due during the turn are served before the next
 * base of this user.
 */
static void turn_end(struct dispatch_queue *q, const struct twheel_base *base,
		     const struct pass *pass)
{
	struct dispatch_entry *entry = entry_of(q->dispatcher, base);

	entry->not_before = queue_time(q, pass->time);
	entry_sort(q, entry);
}

/* Serve all bases whose turn it is, those of @queue first. */
static void pass_serve(struct dispatch_queue *queue, struct pass *pass)
	__must_hold(&queue->dispatcher->lock)
{
	struct dispatcher *d = queue->dispatcher;
	struct dispatch_queue *q = &d->queue[(queue - d->queue + 1) % NR_QUEUES];
	struct twheel_base *base;
	u64 served;

	while ((base = dispatcher_next(d, &q, pass))) {
		if (d->waking != base)
			dispatcher_wake(d, pass);
		raw_spin_unlock_irq(&d->lock);
		served = pass_serve_one(q, base, pass);
		raw_spin_lock_irq(&d->lock);
		pass_charge(d, pass, base, served);
		turn_end(q, base, pass);
		d->waking = pass->expired ? base : NULL;
		d->serving = NULL;
		/*
		 * Wake before another base is taken off a queue: the pass may stand still in
		 * wake().
		 */
		if (d->waking && !base_is_next(d, base))
			dispatcher_wake(d, pass);
		dispatcher_yield(d, pass);
	}
	dispatcher_wake(d, pass);
	/*
	 * Users who are due at the same time are served from the lightest to the heaviest. So the
	 * last one is the heaviest: charge the interrupt to that user.
	 */
	if (d->last)
		share_charge(d, d->last, pass->time, RUN_COST_NS);
	d->last = NULL;
}

/*
 * At the end of a pass: users who come due within a calm would interrupt the task that was woken.
 * Make them wait until the end of the calm. Stop at the first user who need not wait: for that user
 * there is a pass within the calm anyway.
 */
static void queue_calm(struct dispatch_queue *q, const struct pass *pass)
{
	ktime_t now = queue_time(q, pass->time);
	unsigned int i;

	for (i = 0; i < LOOKS_MAX; i++) {
		struct dispatch_entry *entry = queue_first(q);
		u64 wait;

		if (!entry || queue_key(q, entry) >= ktime_add_ns(now, CALM_NS))
			return;
		wait = share_calm(q->dispatcher, pass, entry_share(q, entry));
		if (!wait || queue_key(q, entry) >= ktime_add_ns(now, wait))
			return;
		entry_put_off(q, entry, ktime_add_ns(now, wait));
	}
}

/* Arm the hrtimers of both queues for their first entries, at the end of a pass. */
static void dispatcher_arm(struct dispatcher *d)
{
	unsigned int i;

	lockdep_assert_held(&d->lock);
	for (i = 0; i < NR_QUEUES; i++) {
		queue_arm(&d->queue[i]);
		if (!queue_first(&d->queue[i]))
			watch_stop(&d->queue[i]);
	}
}

/*
 * A pass, begun by the hrtimer of @q. It drops the dispatcher's lock in between. Code that queues a
 * base meanwhile does not arm the hrtimers: the pass does that when it ends.
 */
static void pass_run(struct dispatch_queue *q)
	__must_hold(&q->dispatcher->lock)
{
	struct dispatcher *d = q->dispatcher;
	struct pass pass = { .light = U64_MAX };

	WRITE_ONCE(d->running, true);
	expiry_begin(&d->expiry, &d->lock);
	pass.began = ktime_get_ns();
	pass.time = pass.began;
	pass.since = run_time(pass.began);
	pass_serve(q, &pass);
	queue_calm(&d->queue[QUEUE_MONOTONIC], &pass);
	queue_calm(&d->queue[QUEUE_BOOTTIME], &pass);
	/* The last wake() has dropped the lock. Leave no waiter on the lock of the next pass. */
	dispatcher_yield(d, &pass);
	expiry_end(&d->expiry, &d->lock);
	WRITE_ONCE(d->running, false);
	dispatcher_arm(d);
}

/*
 * The callback of a queue's hrtimer. A pass serves both queues, and arms both hrtimers when it
 * ends. If the CPU was offline in between, the two hrtimers may be on different CPUs and expire at
 * the same time. Then the second one has nothing to do: the pass of the first serves its queue.
 */
static enum hrtimer_restart queue_run(struct hrtimer *hrtimer)
{
	struct dispatch_queue *q = container_of(hrtimer, struct dispatch_queue, hrtimer);
	struct dispatcher *d = q->dispatcher;

	raw_spin_lock_irq(&d->lock);
	WRITE_ONCE(q->armed, KTIME_MAX);
	if (!d->running)
		pass_run(q);
	raw_spin_unlock_irq(&d->lock);
	return HRTIMER_NORESTART;
}

/* ---- users and dispatchers ------------------------------------------------------------ */

/**
 * twheel_user_create() - make a user, who may have private bases with a sink
 *
 * All bases whose twheel_config names the same user have one share of each CPU together. The user
 * takes some 200 bytes for each CPU, which are charged to the caller's memory cgroup.
 *
 * Context: May sleep.
 * Return: the user, or NULL if there is no memory.
 */
struct twheel_user *twheel_user_create(void)
{
	struct twheel_user *user = kzalloc(sizeof(*user), GFP_CHARGED);
	unsigned int cpu, i;

	if (!user)
		return NULL;
	user->shares = alloc_percpu_gfp(struct share, GFP_CHARGED | __GFP_ZERO);
	if (!user->shares) {
		kfree(user);
		return NULL;
	}
	for_each_possible_cpu(cpu)
		for (i = 0; i < NR_QUEUES; i++)
			RB_CLEAR_NODE(&per_cpu_ptr(user->shares, cpu)->entry[i].node);
	return user;
}
EXPORT_SYMBOL_GPL(twheel_user_create);

/* Keep a pass that is under way from charging its interrupt to @user, who is about to be freed. */
static void dispatcher_forget(struct dispatcher *d, const struct twheel_user *user)
{
	if (!d)
		return;
	raw_spin_lock_irq(&d->lock);
	if (d->last == per_cpu_ptr(user->shares, d->cpu))
		d->last = NULL;
	raw_spin_unlock_irq(&d->lock);
}

/**
 * twheel_user_destroy() - free a user
 * @user:	the user, or NULL. All bases of the user must have been destroyed
 *
 * Context: May sleep.
 */
void twheel_user_destroy(struct twheel_user *user)
{
	unsigned int cpu;

	if (!user)
		return;
	for_each_possible_cpu(cpu)
		dispatcher_forget(per_cpu(own_dispatcher, cpu), user);
	free_percpu(user->shares);
	kfree(user);
}
EXPORT_SYMBOL_GPL(twheel_user_destroy);

/* Make the queue for the bases of one clock: no base is queued, and its hrtimers are not armed. */
static void queue_init(struct dispatcher *d, unsigned int i, clockid_t clock)
{
	struct dispatch_queue *q = &d->queue[i];

	q->dispatcher = d;
	q->entries = RB_ROOT_CACHED;
	q->armed = KTIME_MAX;
	hrtimer_setup(&q->hrtimer, queue_run, clock, HRTIMER_MODE_ABS_SOFT);
	hrtimer_setup(&q->watch, queue_watch, clock, HRTIMER_MODE_ABS_HARD);
}

/* The dispatcher of a CPU, which need not be online. Returns NULL if there is no memory. Sleeps. */
static struct dispatcher *dispatcher_new(unsigned int cpu)
{
	struct dispatcher *d = kzalloc_node(sizeof(*d), GFP_KERNEL, cpu_to_node(cpu));

	if (!d)
		return NULL;
	raw_spin_lock_init(&d->lock);
	expiry_init(&d->expiry);
	INIT_CSD(&d->rescue, dispatcher_rescue, d);
	INIT_CSD(&d->kick, dispatcher_kicked, d);
	d->cpu = cpu;
	queue_init(d, QUEUE_MONOTONIC, CLOCK_MONOTONIC);
	queue_init(d, QUEUE_BOOTTIME, CLOCK_BOOTTIME);
	return d;
}

/* Is a call of @rescue or @kick of @d on its way? */
static bool dispatcher_is_called(struct dispatcher *d)
{
	bool called;

	raw_spin_lock_irq(&d->lock);
	called = d->rescuing || d->kicks;
	raw_spin_unlock_irq(&d->lock);
	return called;
}

/*
 * Free @d, on which no base is queued; or do nothing if it is NULL. Waits for its hrtimers, and for
 * calls of @rescue and @kick that are on their way.
 */
static void dispatcher_free(struct dispatcher *d)
{
	unsigned int i;

	if (!d)
		return;
	for (i = 0; i < NR_QUEUES; i++) {
		hrtimer_cancel(&d->queue[i].hrtimer);
		hrtimer_cancel(&d->queue[i].watch);
	}
	while (dispatcher_is_called(d))
		cpu_relax();
	expiry_destroy(&d->expiry);
	kfree(d);
}

/* Free all dispatchers. No base is left. */
static void dispatchers_free(void)
{
	unsigned int cpu;

	twheel_user_destroy(nobody);
	for_each_possible_cpu(cpu) {
		dispatcher_free(per_cpu(own_dispatcher, cpu));
		per_cpu(own_dispatcher, cpu) = NULL;
	}
}

/* A dispatcher for each possible CPU, and the user of kernel code. Returns 0 or -ENOMEM. */
static int dispatchers_create(void)
{
	unsigned int cpu;

	nobody = twheel_user_create();
	if (!nobody)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		per_cpu(own_dispatcher, cpu) = dispatcher_new(cpu);
		if (!per_cpu(own_dispatcher, cpu)) {
			dispatchers_free();
			return -ENOMEM;
		}
	}
	return 0;
}

#endif
