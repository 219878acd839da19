/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dispatchers: they drive the bases with a sink, and share a CPU out among users. Included by
 * twheel.c.
 *
 * Many bases may belong to one user, and many users to one CPU. So a base with a sink has no
 * hrtimer of its own. When it has work ahead it is queued on the CPU that armed it last:
 *
 *	dispatcher		one for each CPU
 *	  queue			one for each clock: an hrtimer, and entries by time
 *	    entry		a user who has something queued there: bases by time
 *
 * A pass, the callback of a queue's hrtimer, serves the bases that are due, each for one lock
 * hold. Then it is another user's turn, and for the same user another base's. So what one user
 * makes another wait for is one lock hold, however many files they have; and a tick that a
 * thousand files have in common is one interrupt.
 *
 * Shares
 *	After RUN_OPS operations or RUN_NS a pass ends: those who have had their turn in it
 *	wait for DEFER_MIN_NS. Who is due but has had none is served still, up to twice RUN_NS.
 *	All passes of a CPU may take half of it. When they have, those wait who have used up
 *	their own part, which is that half divided by the users with something queued. So a user
 *	who takes little never waits for one who takes much; a user alone may have all of the
 *	half, and no more with a thousand files than with one.
 *	Of those who are due at the same time, the lightest is served first: who has taken
 *	least of late, and has fewest bases queued. If that wakes a task which is to run on this
 *	CPU at once, and what is left is the work of those who weigh twice as much, the pass
 *	lets the task run, and resumes CUT_NS later; but no more often than each CUT_PERIOD_NS,
 *	so that the others are not starved.
 *	What was used is a debt. Time repays it: that of the CPU at half the speed of the clock,
 *	that of a user at a 2n-th. DEBT_MAX_NS bounds it, and HOLD_MAX_NS what is charged for a
 *	lock hold, for then the time was a hypervisor's or the firmware's.
 *	On PREEMPT_RT a pass may be preempted. It is charged for the lock holds only where it
 *	was: the scheduler sees to it that the others get their part, and what a woken
 *	reader does is not the wheel's debt.
 *
 * Locking
 *	expiry of the dispatcher (PREEMPT_RT only)
 *	  base->lock
 *	    dispatcher->lock	queues, entries, debts, and which base is queued where
 *	      the hrtimer's own
 * Two dispatchers are never locked at once. A pass takes a base off its queue under the
 * dispatcher's lock, drops that and takes the base's: dispatcher->serving keeps the base
 * until then, see base_leave_all().
 *
 * At the end of each lock hold, still under base->lock, the base is queued for what comes next,
 * before anybody is woken. So a pass that is preempted keeps no base to itself: whoever arms a
 * timer on another CPU takes the base there.
 */
#ifndef TWHEEL_DISPATCH_H
#define TWHEEL_DISPATCH_H

#define HOLD_MAX_NS	NSEC_PER_MSEC
#define CUT_NS		(25 * NSEC_PER_USEC)
#define CUT_PERIOD_NS	(2 * CUT_NS)
/* What a base takes at least that is due. */
#define BASE_NS		NSEC_PER_USEC
/* What has been taken "of late" is forgotten at this pace. */
#define RECENT_NS	(100 * NSEC_PER_MSEC)

enum { QUEUE_MONOTONIC, QUEUE_BOOTTIME, NR_QUEUES };

struct dispatcher;

/**
 * struct dispatch_entry - a user in a queue
 * @node:	in the queue's entries, if @bases is not empty
 * @bases:	the user's bases in this queue, by their key
 * @key:	the entry is served in the order of these: that of its first base, or
 *		@not_before if that is later
 * @weight:	share_weight() when it was put there: of those with one key, the lightest is first
 * @soft:	when it may be served: when that base is due, or @not_before
 * @not_before:	the end of its last turn, or of the pause that its user makes
 * @put_off:	the end of the last such pause
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
 * @account:	what the user's bases have taken of it
 * @recent:	the same, of late: what was taken RECENT_NS ago counts for a third
 * @charged:	when that was so, in ns of CLOCK_MONOTONIC
 * @nr_bases:	in @entry
 * @entry:	in each queue of the CPU's dispatcher
 */
struct share {
	struct account		account;
	u64			recent;
	u64			charged;
	unsigned int		nr_bases;
	struct dispatch_entry	entry[NR_QUEUES];
};

/**
 * struct twheel_user - whose bases share a part of each CPU
 * @shares:	for each CPU
 */
struct twheel_user {
	struct share __percpu	*shares;
};

/**
 * struct dispatch_queue - what is queued on a CPU for one clock
 * @dispatcher:	the CPU's
 * @hrtimer:	its callback is a pass
 * @entries:	users, by their key
 * @armed:	the key that the hrtimer is armed for, KTIME_MAX if it is not
 * @rest_until:	the end of the rest after the last pass that was cut short for a task
 * @running:	a pass is under way, and will arm the hrtimer when it ends
 */
struct dispatch_queue {
	struct dispatcher	*dispatcher;
	struct hrtimer		hrtimer;
	struct rb_root_cached	entries;
	ktime_t			armed;
	ktime_t			rest_until;
	bool			running;
};

/**
 * struct dispatcher - who serves the bases that are queued on a CPU
 * @lock:	see above
 * @cpu:	the CPU
 * @nr_entries:	in both queues
 * @running:	a pass is under way
 * @serving:	the base whose turn it is, from the queue to the end of the lock hold
 * @waking:	the base of which timers have expired, until its sink's wake() has returned
 * @account:	what all passes have taken of the CPU
 * @last_cut:	when a pass was cut short last for a task that it woke
 * @expiry:	held by a pass
 * @queue:	one for each clock
 */
struct dispatcher {
	raw_spinlock_t		lock;
	unsigned int		cpu;
	unsigned int		nr_entries;
	bool			running;
	struct twheel_base	*serving;
	struct twheel_base	*waking;
	struct account		account;
	u64			last_cut;
	struct expiry		expiry;
	struct dispatch_queue	queue[NR_QUEUES];
};

static DEFINE_PER_CPU(struct dispatcher *, cpu_dispatcher);

/* Of the bases that are nobody's in particular. */
static struct twheel_user *nobody;

static struct dispatch_queue *queue_of(struct dispatcher *d, const struct twheel_base *base)
{
	return &d->queue[base->clock == CLOCK_BOOTTIME ? QUEUE_BOOTTIME : QUEUE_MONOTONIC];
}

static struct share *share_of(const struct dispatcher *d, const struct twheel_base *base)
{
	return per_cpu_ptr(base->user->shares, d->cpu);
}

static struct dispatch_entry *entry_of(struct dispatcher *d, const struct twheel_base *base)
{
	return &share_of(d, base)->entry[queue_of(d, base) - d->queue];
}

/* What a time of CLOCK_MONOTONIC is on the queue's clock. */
static ktime_t queue_time(const struct dispatch_queue *q, u64 time)
{
	return q == &q->dispatcher->queue[QUEUE_BOOTTIME] ?
	       ktime_mono_to_any(time, TK_OFFS_BOOT) : time;
}

/* ---- the order of service --------------------------------------------------------- */

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

/* What a user on a CPU has taken of late and is about to take, ns. */
static u64 share_weight(const struct share *share)
{
	return share->recent + share->nr_bases * BASE_NS;
}

/* Put @entry where it belongs, now that its first base or its @not_before has changed. */
static void entry_sort(struct dispatch_queue *q, struct dispatch_entry *entry)
{
	const struct twheel_base *first = entry_first(entry);

	lockdep_assert_held(&q->dispatcher->lock);
	if (!RB_EMPTY_NODE(&entry->node)) {
		rb_erase_cached(&entry->node, &q->entries);
		RB_CLEAR_NODE(&entry->node);
		q->dispatcher->nr_entries--;
	}
	if (!first)
		return;
	entry->key = max(first->key, entry->not_before);
	entry->weight = share_weight(entry_share(q, entry));
	entry->soft = max(first->soft, entry->not_before);
	rb_add_cached(&entry->node, &q->entries, entry_is_earlier);
	q->dispatcher->nr_entries++;
}

/*
 * Pinned, so that no idle CPU's work piles up on a busy one, beside that CPU's own. Where the CPU
 * is to be left alone, the kernel finds another, and queue_serve() hands the bases over.
 */
static enum hrtimer_mode queue_mode(void)
{
	return housekeeping_cpu(raw_smp_processor_id(), HK_TYPE_TIMER) ?
	       HRTIMER_MODE_ABS_PINNED_SOFT : HRTIMER_MODE_ABS_SOFT;
}

/* Make sure that there will be a pass for what is queued. One that is under way sees to that. */
static void queue_arm(struct dispatch_queue *q)
{
	const struct dispatch_entry *first = queue_first(q);
	ktime_t soft, key;

	lockdep_assert_held(&q->dispatcher->lock);
	if (!first || q->running)
		return;
	soft = max(first->soft, q->rest_until);
	key = max(first->key, q->rest_until);
	if (key >= q->armed)
		return;
	q->armed = key;
	hrtimer_start_range_ns(&q->hrtimer, soft, ktime_sub(key, soft), queue_mode());
}

/* ---- queueing a base --------------------------------------------------------------- */

/* Put @base, which is on no queue, on that of @d. */
static void dispatcher_add(struct dispatcher *d, struct twheel_base *base)
{
	lockdep_assert_held(&base->lock);
	lockdep_assert_held(&d->lock);
	rb_add_cached(&base->queued, &entry_of(d, base)->bases, base_is_earlier);
	share_of(d, base)->nr_bases++;
	WRITE_ONCE(base->dispatcher, d);
	entry_sort(queue_of(d, base), entry_of(d, base));
}

/* Take @base off its queue, that of @d. */
static void dispatcher_del(struct dispatcher *d, struct twheel_base *base)
{
	lockdep_assert_held(&d->lock);
	rb_erase_cached(&base->queued, &entry_of(d, base)->bases);
	share_of(d, base)->nr_bases--;
	WRITE_ONCE(base->dispatcher, NULL);
	entry_sort(queue_of(d, base), entry_of(d, base));
}

/* Take @base off the queue of @d, if it is there still: a pass may have been faster. */
static void base_leave(struct twheel_base *base, struct dispatcher *d)
{
	lockdep_assert_held(&base->lock);
	raw_spin_lock(&d->lock);
	if (base->dispatcher == d)
		dispatcher_del(d, base);
	raw_spin_unlock(&d->lock);
}

/* On PREEMPT_RT a pass may stand still for as long as something keeps its CPU. */
static bool dispatcher_may_hang(const struct dispatcher *d)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) && d != this_cpu_read(cpu_dispatcher) &&
	       READ_ONCE(d->running);
}

/*
 * Make sure that @base is served at its next event, and if it has just had its turn not before
 * @after, so that others have theirs. If it is on no queue, a pass may have taken it off and
 * not locked it yet: then it is served once more often than needed.
 */
static void base_enter(struct twheel_base *base, ktime_t after)
{
	struct dispatcher *d = READ_ONCE(base->dispatcher);
	u64 next = base->wheel.next;
	ktime_t due;

	lockdep_assert_held(&base->lock);
	if (d && next >= base->armed && !dispatcher_may_hang(d))
		return;
	if (d)
		base_leave(base, d);
	base->armed = next;
	if (next == WHEEL_NEVER || base->dead)
		return;
	d = this_cpu_read(cpu_dispatcher);
	due = base_time(base, next);
	base->soft = max(due, after);
	base->key = max(ktime_add_safe(due, base->slack_ns), after);
	raw_spin_lock(&d->lock);
	dispatcher_add(d, base);
	queue_arm(queue_of(d, base));
	raw_spin_unlock(&d->lock);
}

static bool dispatcher_has(struct dispatcher *d, const struct twheel_base *base)
{
	bool has;

	raw_spin_lock_irq(&d->lock);
	has = d->serving == base || d->waking == base;
	raw_spin_unlock_irq(&d->lock);
	return has;
}

/*
 * No pass touches @base when this returns, nor will any.
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
	struct dispatcher *d;
	unsigned int cpu;

	raw_spin_lock_irq(&base->lock);
	base->dead = true;
	d = READ_ONCE(base->dispatcher);
	if (d)
		base_leave(base, d);
	raw_spin_unlock_irq(&base->lock);
	for_each_possible_cpu(cpu) {
		struct expiry *told = NULL;

		d = per_cpu(cpu_dispatcher, cpu);
		while (dispatcher_has(d, base))
			expiry_wait(&d->expiry, &told);
		expiry_wait_end(told);
	}
}

/* ---- a pass ------------------------------------------------------------------------ */

/**
 * struct pass - a run of a queue's hrtimer
 * @began:	when, in ns of CLOCK_MONOTONIC
 * @time:	up to when its time has been charged to somebody
 * @switches:	of this task, at @time
 * @ops:	operations done
 * @last:	who was served last, and pays for the interrupt
 * @light:	the lightest of those who may have had a task woken
 * @expired:	timers of the base that was just served have expired
 * @finished:	and nothing more of it is due
 * @put_off:	the base to be served was due before, and had to wait
 */
struct pass {
	u64		began;
	u64		time;
	unsigned long	switches;
	u32		ops;
	struct share	*last;
	struct share	*light;
	bool		expired;
	bool		finished;
	bool		put_off;
};

static void share_charge(struct dispatcher *d, struct share *share, u64 used)
{
	account_charge(&d->account, used);
	account_charge(&share->account, used);
}

static void share_remember(struct share *share, u64 now, u64 used)
{
	u64 gone = min_t(u64, now - share->charged, RECENT_NS);

	share->recent -= div_u64(share->recent * gone, RECENT_NS);
	share->recent += used;
	share->charged = now;
}

/*
 * Charge the time since the last charge to @base's user, @now. On PREEMPT_RT, if others had the
 * CPU meanwhile, charge @held, for which they could not.
 */
static void pass_charge(struct dispatcher *d, struct pass *pass, const struct twheel_base *base,
			u64 now, u64 held)
{
	unsigned long switches = nr_switches();
	u64 used = switches == pass->switches ? now - pass->time : held;

	lockdep_assert_held(&d->lock);
	pass->last = share_of(d, base);
	share_charge(d, pass->last, used);
	share_remember(pass->last, now, used);
	pass->time = now;
	pass->switches = switches;
}

/* Let @share and the CPU have repaid what they could. Returns how long @share has to pause. */
static u64 share_pause(struct dispatcher *d, struct share *share, u64 now)
{
	u32 parts = 2 * d->nr_entries;

	account_settle(&d->account, now, 2);
	account_settle(&share->account, now, parts);
	if (!account_is_over(&d->account) || !account_is_over(&share->account))
		return 0;
	return max_t(u64, DEFER_MIN_NS, min(d->account.debt * 2, share->account.debt * parts));
}

/*
 * Is it time to let a task run that was woken, rather than serve @share? Then the interrupt was
 * @share's all the same, and that after the rest comes on top.
 */
static bool pass_cut(struct dispatcher *d, struct pass *pass, struct share *share)
{
	if (!pass->light || !need_resched() || pass->time - d->last_cut < CUT_PERIOD_NS ||
	    share_weight(pass->light) * 2 >= share_weight(share))
		return false;
	account_charge(&d->account, RUN_COST_NS);
	d->last_cut = pass->time;
	pass->last = share;
	return true;
}

/* Is the pass over for @entry? */
static bool pass_is_over(const struct dispatch_queue *q, const struct pass *pass,
			 const struct dispatch_entry *entry)
{
	u64 gone = pass->time - pass->began;

	if (pass->ops < RUN_OPS && gone < RUN_NS)
		return false;
	return entry->not_before >= queue_time(q, pass->began) || gone >= 2 * RUN_NS;
}

/*
 * The entry whose turn it is at @now, or NULL. Those who have to pause, or for whom the pass is
 * over, go to the back.
 */
static struct dispatch_entry *queue_turn(struct dispatch_queue *q, struct pass *pass, ktime_t now)
{
	struct dispatcher *d = q->dispatcher;
	struct dispatch_entry *entry;

	while ((entry = queue_first(q)) && entry->soft <= now) {
		u64 pause = share_pause(d, entry_share(q, entry), pass->time);

		if (!pause && pass_is_over(q, pass, entry))
			pause = DEFER_MIN_NS;
		if (!pause)
			return entry;
		entry->put_off = ktime_add_ns(now, pause);
		entry->not_before = entry->put_off;
		entry_sort(q, entry);
	}
	return NULL;
}

/* Take the base whose turn it is off the queue. NULL if there is none, or the pass is over. */
static struct twheel_base *queue_next(struct dispatch_queue *q, struct pass *pass)
{
	ktime_t now = queue_time(q, pass->time);
	struct dispatch_entry *entry = queue_turn(q, pass, now);
	struct twheel_base *base;

	if (!entry)
		return NULL;
	if (pass_cut(q->dispatcher, pass, entry_share(q, entry))) {
		q->rest_until = ktime_add_ns(now, CUT_NS);
		return NULL;
	}
	base = entry_first(entry);
	pass->put_off = base->soft < max(entry->put_off, q->rest_until);
	entry->not_before = now;
	q->dispatcher->serving = base;
	dispatcher_del(q->dispatcher, base);
	return base;
}

/* Expire what is due of @base at @time, a lock hold's worth. */
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
	if (pass->put_off) {
		base->deferred++;
		trace_twheel_budget(base, ktime_sub(now, base->soft));
	}
	pass->ops += run_sink(base, base_tick(base, now));
	pass->expired = base->expired != expired;
	pass->finished = !wheel_due(&base->wheel, base_tick(base, now));
	base->pass_moves += base->wheel.moves - moves;
	base->worst = max(base->worst, base->pass_moves);
}

/*
 * Serve @base. If this is not the dispatcher's CPU, because that went off or is to be left alone,
 * hand the base over to this one's. Returns for how long base->lock was held; if that is more
 * than HOLD_MAX_NS, the rest is nobody's.
 */
static u64 queue_serve(struct dispatch_queue *q, struct twheel_base *base, struct pass *pass,
		       u64 *now)
{
	u64 begin, held;

	pass->expired = false;
	pass->finished = true;
	raw_spin_lock_irq(&base->lock);
	begin = ktime_get_ns();
	if (likely(!base->dead)) {
		if (likely(q->dispatcher == this_cpu_read(cpu_dispatcher)))
			base_turn(base, pass, begin);
		else
			pass->ops++;
		base_enter(base, queue_time(q, begin));
	}
	*now = ktime_get_ns();
	raw_spin_unlock_irq(&base->lock);
	held = min_t(u64, *now - begin, HOLD_MAX_NS);
	pass->time += *now - begin - held;
	return held;
}

/* Wake those who wait for what has expired. That takes time too, as many as they may be. */
static void dispatcher_wake(struct dispatcher *d, struct pass *pass)
	__must_hold(&d->lock)
{
	struct twheel_base *base = d->waking;

	if (!base)
		return;
	raw_spin_unlock_irq(&d->lock);
	base->sink->wake(base);
	raw_spin_lock_irq(&d->lock);
	pass_charge(d, pass, base, ktime_get_ns(), 0);
	if (!pass->light || share_weight(pass->last) < share_weight(pass->light))
		pass->light = pass->last;
	d->waking = NULL;
}

/* Let those in who wait until a base is not touched any more. */
static void dispatcher_yield(struct dispatcher *d, struct pass *pass)
	__must_hold(&d->lock)
{
	if (!expiry_has_waiters(&d->expiry))
		return;
	dispatcher_wake(d, pass);
	raw_spin_unlock_irq(&d->lock);
	expiry_yield(&d->expiry);
	raw_spin_lock_irq(&d->lock);
}

/* Serve all whose turn it is. */
static void pass_serve(struct dispatch_queue *q, struct pass *pass)
	__must_hold(&q->dispatcher->lock)
{
	struct dispatcher *d = q->dispatcher;
	struct twheel_base *base;

	while ((base = queue_next(q, pass))) {
		u64 held, now;

		if (d->waking != base)
			dispatcher_wake(d, pass);
		raw_spin_unlock_irq(&d->lock);
		held = queue_serve(q, base, pass, &now);
		raw_spin_lock_irq(&d->lock);
		pass_charge(d, pass, base, now, held);
		if (pass->expired)
			d->waking = base;
		d->serving = NULL;
		if (pass->finished)
			dispatcher_wake(d, pass);
		dispatcher_yield(d, pass);
	}
	dispatcher_wake(d, pass);
}

/* The callback of a queue's hrtimer. The kernel sees to it that one runs at a time. */
static enum hrtimer_restart queue_run(struct hrtimer *hrtimer)
{
	struct dispatch_queue *q = container_of(hrtimer, struct dispatch_queue, hrtimer);
	struct dispatcher *d = q->dispatcher;
	struct pass pass = { .switches = nr_switches() };

	expiry_lock(&d->expiry);
	raw_spin_lock_irq(&d->lock);
	pass.began = ktime_get_ns();
	pass.time = pass.began;
	q->armed = KTIME_MAX;
	q->running = true;
	WRITE_ONCE(d->running, true);
	pass_serve(q, &pass);
	/* The heaviest comes last, and is what the interrupt was for. */
	if (pass.last)
		share_charge(d, pass.last, ktime_get_ns() - pass.time + RUN_COST_NS);
	WRITE_ONCE(d->running, false);
	q->running = false;
	queue_arm(q);
	raw_spin_unlock_irq(&d->lock);
	expiry_unlock(&d->expiry);
	return HRTIMER_NORESTART;
}

/* ---- users and dispatchers ------------------------------------------------------------ */

/**
 * twheel_user_create() - somebody who will have private bases
 *
 * The bases whose twheel_config names the same user have one part of each CPU together. The
 * memory, some 200 bytes for each CPU, is charged to the caller's memory cgroup.
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

/**
 * twheel_user_destroy() - a user goes
 * @user:	the user, whose bases are all destroyed; or NULL
 *
 * Context: May sleep.
 */
void twheel_user_destroy(struct twheel_user *user)
{
	if (!user)
		return;
	free_percpu(user->shares);
	kfree(user);
}
EXPORT_SYMBOL_GPL(twheel_user_destroy);

static void queue_init(struct dispatcher *d, unsigned int i, clockid_t clock)
{
	struct dispatch_queue *q = &d->queue[i];

	q->dispatcher = d;
	q->entries = RB_ROOT_CACHED;
	q->armed = KTIME_MAX;
	hrtimer_setup(&q->hrtimer, queue_run, clock, HRTIMER_MODE_ABS_SOFT);
}

static struct dispatcher *dispatcher_new(unsigned int cpu)
{
	struct dispatcher *d = kzalloc_node(sizeof(*d), GFP_KERNEL, cpu_to_node(cpu));

	if (!d)
		return NULL;
	raw_spin_lock_init(&d->lock);
	expiry_init(&d->expiry);
	d->cpu = cpu;
	queue_init(d, QUEUE_MONOTONIC, CLOCK_MONOTONIC);
	queue_init(d, QUEUE_BOOTTIME, CLOCK_BOOTTIME);
	return d;
}

/* No base is left. */
static void dispatchers_free(void)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		struct dispatcher *d = per_cpu(cpu_dispatcher, cpu);

		for (i = 0; d && i < NR_QUEUES; i++)
			hrtimer_cancel(&d->queue[i].hrtimer);
		kfree(d);
	}
	twheel_user_destroy(nobody);
}

static int dispatchers_create(void)
{
	unsigned int cpu;

	nobody = twheel_user_create();
	if (!nobody)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		per_cpu(cpu_dispatcher, cpu) = dispatcher_new(cpu);
		if (!per_cpu(cpu_dispatcher, cpu)) {
			dispatchers_free();
			return -ENOMEM;
		}
	}
	return 0;
}

#endif
