// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The scheduler: see libtwheel-sched.h.
 *
 * A pending task has a timer in the wheel, for life, and is in one of three states:
 *
 *	            due                    a thread takes it
 *	WAITING -----------> QUEUED ----------------------------> RUNNING
 *	   ^                   ^                                     |
 *	   |                   | it is due again already             |
 *	   +-------------------+-------------------------------------+ a period
 *
 * with TWHEEL_TASK_OVERLAP it leaves RUNNING as soon as it gets there. A task without a
 * period is over, and not pending, when it begins to run.
 *
 * One thread waits for the wheel, the leader; there is no thread that does only that. A
 * worker that finds nothing queued becomes leader, if there is none, and puts what has
 * expired on the queue; before it runs a task of it, it wakes another one to lead. So
 * with n threads up to n functions run, and the one that is last to be woken is
 * the one that would have nothing to do. Without a pool the caller is the leader.
 *
 * Tasks on the wall clock have a wheel of their own, on CLOCK_REALTIME, made for the first of
 * them. That does what there is to do when the clock is set. One that is queued already when it is
 * set back goes into the wheel again: whatever the wheel has said, a task runs only when its
 * clock says so too.
 *
 * An event that was read and a cancel may cross: events carry ids, which are looked up
 * under the lock, and no id is ever used again. If the cancel comes while the event is being
 * read, the wheel refuses it and keeps the handle. Then the leader frees the handle, as soon
 * as it finds that the event is nobody's.
 *
 * Locking: sched->lock for all of it; the wheel's own lock is taken inside. What the user
 * gave, fn() and release(), is called without. Whoever has something to do for all tasks does it
 * in chunks and lets go of the lock in between, but for twheel_sched_stop(). Where it was is
 * kept by a cursor, a task that is none: it is dead, so everybody passes over it.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend.h"
#include "call.h"
#include "ids.h"
#include "keys.h"
#include "libtwheel-sched.h"

#define TIME_MAX	INT64_MAX
#define KEY_MAX		UINT16_MAX
#define LATE_NS		(5 * NSEC_PER_MSEC)
#define CHUNK_EVENTS	512
/* What is done for all tasks is done for so many in one lock hold, and so many bytes of keys. */
#define CHUNK_TASKS	128
#define CHUNK_KEYS	0x8000
#define PAGE_BYTES	4096

#define MISSED		(TWHEEL_MISSED_DELAY | TWHEEL_MISSED_SKIP)
#define PERIODIC	(TWHEEL_TASK_DELAY | TWHEEL_TASK_OVERLAP | MISSED)
#define VALID_FLAGS	(TWHEEL_TASK_AT | PERIODIC)

/**
 * struct task - a task
 * @all:	in sched->all, from add to the end of its last run
 * @queued:	in sched->queue, while QUEUED
 * @over:	in a list of tasks to be freed, see tasks_free()
 * @by_key:	in sched->keys, while it is pending and has a key
 * @info:	what the user may know. Its id is in sched->ids as long as it is in @all
 * @nth:	how many tasks were added before
 * @handle:	its timer
 * @running:	how many threads run it
 * @dead:	pending no more, and freed when the last of them is done
 * @moved:	has got another time while it was running
 * @key:	the key, and a 0
 */
struct task {
	TAILQ_ENTRY(task)	all;
	TAILQ_ENTRY(task)	queued;
	SLIST_ENTRY(task)	over;
	struct key		by_key;
	struct twheel_task_info	info;
	u64			nth;
	u64			handle;
	u32			running;
	bool			dead;
	bool			moved;
	char			key[];
};

SLIST_HEAD(tasks, task);
TAILQ_HEAD(task_queue, task);

/**
 * struct twheel_sched - a scheduler
 * @options:	what it is
 * @wheel:	the wheel
 * @late:	ns from which on a run is late
 * @wall:	the wheel of those on the wall clock, NULL until there is one
 * @epfd:	for the wheels and @wakefd
 * @wakefd:	readable when the leader is to look after something else
 * @awake:	it is
 * @nr_waiting:	threads that wait for @lock. Atomic
 * @lock:	for all that follows
 * @work:	something for an idle worker
 * @done:	a function has returned
 * @all:	all tasks, in the order they were added
 * @ids:	the same by their ids
 * @keys:	those with a key
 * @key_bytes:	what these take, with a 0 behind each
 * @queue:	those that are QUEUED
 * @nr_added:	tasks there ever were
 * @nr_queued:	tasks in @queue
 * @nr_pending:	tasks that will run
 * @nr_running:	functions that are running
 * @nr_idle:	workers waiting for @work
 * @leader:	there is one
 * @finishing:	nothing is to be added any more, and what is pending runs once
 * @stopping:	nothing is to run any more
 * @nr_threads:	threads of the pool
 * @threads:	the pool
 */
struct twheel_sched {
	struct twheel_sched_options	options;
	struct twheel			*wheel;
	struct twheel			*wall;
	s64				late;
	int				epfd;
	int				wakefd;
	bool				awake;
	u32				nr_waiting;
	pthread_mutex_t			lock;
	pthread_cond_t			work;
	pthread_cond_t			done;
	struct task_queue		all;
	struct ids			ids;
	struct keys			keys;
	size_t				key_bytes;
	struct task_queue		queue;
	u64				nr_added;
	u32				nr_queued;
	u32				nr_pending;
	u32				nr_running;
	u32				nr_idle;
	bool				leader;
	bool				finishing;
	bool				stopping;
	u32				nr_threads;
	pthread_t			threads[];
};

/* The functions that this thread is in, the innermost first. */
struct frame {
	struct task	*task;
	struct frame	*outer;
};

static int start_worker(struct twheel_sched *sched, u32 nth);

static __thread struct frame *frames;

static bool inside_task(const struct task *task)
{
	const struct frame *f = frames;

	while (f && f->task != task)
		f = f->outer;
	return f;
}

static bool inside_sched(const struct twheel_sched *sched)
{
	const struct frame *f = frames;

	while (f && f->task->info.sched != sched)
		f = f->outer;
	return f;
}

static bool is_alive(const struct twheel_sched *sched)
{
	return is_ours(sched->wheel->family);
}

/* ---- the lock ----------------------------------------------------------------- */

static void lock(struct twheel_sched *sched)
{
	if (!pthread_mutex_trylock(&sched->lock))
		return;
	__atomic_add_fetch(&sched->nr_waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&sched->lock);
	__atomic_sub_fetch(&sched->nr_waiting, 1, __ATOMIC_RELAXED);
}

/*
 * A thread that was cancelled with the lock held, or while its cursor is in a list, would leave
 * that behind. So it is not, wherever the C library would look for it meanwhile. Returns what to
 * give to pthread_setcancelstate() after that.
 */
static int not_cancelled(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/* Make wakefd readable, or not. */
static void wake_set(struct twheel_sched *sched, bool awake)
{
	eventfd_t value;
	int state;

	if (sched->awake == awake)
		return;
	sched->awake = awake;
	state = not_cancelled();
	if (awake)
		eventfd_write(sched->wakefd, 1);
	else
		eventfd_read(sched->wakefd, &value);
	pthread_setcancelstate(state, NULL);
}

/* Without a pool, what is queued is for who polls. */
static void wake_update(struct twheel_sched *sched)
{
	wake_set(sched, sched->stopping || (!sched->options.threads && sched->nr_queued));
}

static void unlock(struct twheel_sched *sched)
{
	wake_update(sched);
	pthread_mutex_unlock(&sched->lock);
}

/*
 * Take the lock that was let go of between two chunks. It is not a queue: who takes it again at
 * once is most often faster than those who wait for it, so they are given time.
 */
static void lock_again(struct twheel_sched *sched)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	int state = not_cancelled();

	if (__atomic_load_n(&sched->nr_waiting, __ATOMIC_RELAXED))
		nanosleep(&moment, NULL);
	pthread_setcancelstate(state, NULL);
	lock(sched);
}

/* Wait until something has ended. */
static void wait_done(struct twheel_sched *sched)
{
	int state = not_cancelled();

	pthread_cond_wait(&sched->done, &sched->lock);
	pthread_setcancelstate(state, NULL);
}

static void set_stopping(struct twheel_sched *sched)
{
	sched->stopping = true;
	pthread_cond_broadcast(&sched->work);
	pthread_cond_broadcast(&sched->done);
}

/* ---- time ----------------------------------------------------------------------- */

static s64 clock_now(clockid_t clock)
{
	return (s64)twheel_clock(clock);
}

/* The time of the clock of @task. */
static s64 task_now(const struct task *task)
{
	return clock_now(task->info.flags & TWHEEL_TASK_AT ? CLOCK_REALTIME :
			 task->info.sched->options.clockid);
}

/* @ns is not negative. */
static s64 time_add(s64 time, s64 ns)
{
	return ns < TIME_MAX - time ? time + ns : TIME_MAX;
}

/* When is a task due that was asked for at @when? */
static s64 task_due(const struct task *task, s64 when)
{
	if (when < 0)
		when = 0;
	return task->info.flags & TWHEEL_TASK_AT ? when : time_add(task_now(task), when);
}

/* When is a task due next whose run begins @now? */
static s64 next_due(struct task *task, s64 now)
{
	const struct twheel_task_info *info = &task->info;
	s64 late = now > info->due_ns ? now - info->due_ns : 0;
	s64 periods = late / info->period_ns;

	if (info->flags & TWHEEL_MISSED_SKIP) {
		task->info.missed += (u64)periods;
		return time_add(info->due_ns + periods * info->period_ns, info->period_ns);
	}
	if ((info->flags & TWHEEL_MISSED_DELAY) &&
	    late > time_add(info->sched->late, info->tolerance_ns)) {
		task->info.missed += (u64)periods;
		return time_add(now, info->period_ns);
	}
	return time_add(info->due_ns, info->period_ns);
}

/* ---- tasks ------------------------------------------------------------------------ */

static struct task *task_find(struct twheel_sched *sched, u64 id)
{
	return ids_find(&sched->ids, id);
}

static struct task *task_find_key(struct twheel_sched *sched, u64 hash, const void *bytes,
				  size_t len)
{
	struct key *key = twheel_keys_find(&sched->keys, hash, bytes, len);

	return key ? container_of(key, struct task, by_key) : NULL;
}

/* The wheel of @task. */
static struct twheel *task_wheel(const struct task *task)
{
	const struct twheel_sched *sched = task->info.sched;

	return task->info.flags & TWHEEL_TASK_AT ? sched->wall : sched->wheel;
}

/* How late may the timer of a task be? What is due at once is exact. */
static u64 task_tolerance(const struct task *task, s64 due)
{
	return due <= task_now(task) ? 0 : (u64)(time_add(due, task->info.tolerance_ns) - due);
}

/* Put a task that is nowhere, or in the wheel, there for when it is due. */
static int task_arm(struct task *task)
{
	struct twheel *wheel = task_wheel(task);
	u32 flags = TWHEEL_F_ABS | TWHEEL_F_KEEP;
	s64 due = task->info.due_ns > 0 ? task->info.due_ns : 0;
	u64 tolerance = task_tolerance(task, due);

	task->info.state = TWHEEL_TASK_WAITING;
	/* A timer that exists can always be armed. */
	if (task->handle)
		return twheel_mod_within(wheel, task->handle, (u64)due, 0, tolerance, flags);
	return twheel_add_within(wheel, &task->handle, task->info.id, (u64)due, 0, tolerance,
				 flags);
}

static void task_enqueue(struct task *task)
{
	task->info.state = TWHEEL_TASK_QUEUED;
	TAILQ_INSERT_TAIL(&task->info.sched->queue, task, queued);
	task->info.sched->nr_queued++;
}

static void task_dequeue(struct task *task)
{
	if (task->info.state != TWHEEL_TASK_QUEUED)
		return;
	TAILQ_REMOVE(&task->info.sched->queue, task, queued);
	task->info.sched->nr_queued--;
}

static void task_schedule(struct task *task)
{
	if (task->info.due_ns > task_now(task))
		task_arm(task);
	else
		task_enqueue(task);
}

/* It is pending no more. That leaves it in sched->all. */
static void task_unpend(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;

	task_dequeue(task);
	task->info.state = TWHEEL_TASK_RUNNING;
	if (task->info.key) {
		twheel_keys_del(&sched->keys, &task->by_key);
		sched->key_bytes -= task->info.key_len + 1;
	}
	if (task->handle)
		twheel_cancel(task_wheel(task), task->handle, NULL);
	task->handle = 0;
	task->dead = true;
	sched->nr_pending--;
	if (sched->finishing && !sched->nr_pending)
		set_stopping(sched);
}

/* It is over: its id is nobody's from here on. */
static void task_forget(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;

	ids_del(&sched->ids, task->info.id);
	TAILQ_REMOVE(&sched->all, task, all);
}

/* A task that is dead: free it, or let the last who runs it do that. */
static void task_bury(struct task *task, struct tasks *over)
{
	if (task->running)
		return;
	task_forget(task);
	SLIST_INSERT_HEAD(over, task, over);
}

/* Not under the lock, for what the user gave is called. */
static void tasks_free(struct tasks *over)
{
	while (!SLIST_EMPTY(over)) {
		struct task *task = SLIST_FIRST(over);

		SLIST_REMOVE_HEAD(over, over);
		if (task->info.release)
			twheel_call_release(task->info.release, task->info.arg);
		free(task);
	}
}

/* The length of a key that may be a string; of one that is too long, one that is too. */
static size_t key_length(const void *key, size_t len)
{
	return len ? len : strnlen(key, KEY_MAX + 1);
}

static bool task_is_valid(const struct twheel_sched *sched, const struct twheel_task *task)
{
	if (!task->fn || (task->flags & ~VALID_FLAGS) || task->reserved || task->period_ns < 0 ||
	    task->tolerance_ns < 0)
		return false;
	if (task->key && key_length(task->key, task->key_len) > KEY_MAX)
		return false;
	if (!task->period_ns)
		return !(task->flags & PERIODIC);
	if ((u64)task->period_ns < sched->options.tick_ns || (task->flags & MISSED) == MISSED)
		return false;
	return !(task->flags & TWHEEL_TASK_DELAY) ||
	       !(task->flags & (MISSED | TWHEEL_TASK_OVERLAP));
}

static struct task *task_new(struct twheel_sched *sched, const struct twheel_task *from)
{
	size_t len = from->key ? key_length(from->key, from->key_len) : 0;
	struct task *task = calloc(1, sizeof(*task) + len + 1);

	if (!task)
		return NULL;
	task->info = (struct twheel_task_info) {
		.sched		= sched,
		.fn		= from->fn,
		.release	= from->release,
		.arg		= from->arg,
		.period_ns	= from->period_ns,
		.flags		= from->flags,
		.tolerance_ns	= from->tolerance_ns,
	};
	if (from->key) {
		memcpy(task->key, from->key, len);
		task->info.key = task->key;
		task->info.key_len = len;
		task->by_key.bytes = task->key;
		task->by_key.len = len;
		task->by_key.hash = twheel_keys_hash(&sched->keys, task->key, len);
	}
	task->info.due_ns = task_due(task, from->when_ns);
	return task;
}

static int task_arm_named(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;
	int err;

	if (!task->info.key)
		return task_arm(task);
	err = twheel_keys_add(&sched->keys, &task->by_key);
	if (err)
		return err;
	err = task_arm(task);
	if (err)
		twheel_keys_del(&sched->keys, &task->by_key);
	else
		sched->key_bytes += task->info.key_len + 1;
	return err;
}

/*
 * Enter a task into the tables and the wheel. If that fails it is in none of them. One with
 * the same key, which it replaces, may be there still.
 */
static int task_enter(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;
	int err;

	task->info.id = ids_add(&sched->ids, task);
	if (!task->info.id)
		return -ENOMEM;
	task->nth = sched->nr_added++;
	TAILQ_INSERT_TAIL(&sched->all, task, all);
	err = task_arm_named(task);
	if (err)
		task_forget(task);
	return err;
}

/* What is readable there is @wheel, NULL: none. */
static int watch(int epfd, int fd, struct twheel *wheel)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = wheel };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e);
}

/* Make the wheel for tasks on the wall clock. */
static int wall_open(struct twheel_sched *sched)
{
	const struct twheel_setup setup = { .clockid = CLOCK_REALTIME,
					    .tick_ns = sched->options.tick_ns };
	struct twheel *wall;
	int err = twheel_open(&wall, sched->options.flags, &setup);

	if (err)
		return err;
	if (watch(sched->epfd, twheel_fd(wall), wall)) {
		err = -errno;
		twheel_close(wall);
		return err;
	}
	sched->wall = wall;
	return 0;
}

/* Add a task in place of @old, which may be NULL. */
static int task_add(struct task *task, struct task *old, struct tasks *over)
{
	struct twheel_sched *sched = task->info.sched;
	int err = 0;

	if (sched->finishing || sched->stopping)
		return -ESHUTDOWN;
	if (!old && sched->nr_pending >= sched->options.max_pending)
		return -EDQUOT;
	if ((task->info.flags & TWHEEL_TASK_AT) && !sched->wall)
		err = wall_open(sched);
	if (!err)
		err = task_enter(task);
	if (err)
		return err;
	sched->nr_pending++;
	if (old) {
		task_unpend(old);
		task_bury(old, over);
	}
	return 0;
}

int twheel_sched_add_sized(struct twheel_sched *sched, const struct twheel_task *theirs,
			   uint64_t *id, size_t size)
{
	struct tasks over = SLIST_HEAD_INITIALIZER(over);
	struct task *task, *old = NULL;
	struct twheel_task from;
	int err;

	if (!is_alive(sched))
		return -ECHILD;
	if (!SIZED_OK(size, struct twheel_task, reserved))
		return -EINVAL;
	err = sized_take(&from, sizeof(from), theirs, size);
	if (err)
		return err;
	if (!task_is_valid(sched, &from))
		return -EINVAL;
	task = task_new(sched, &from);
	if (!task)
		return -ENOMEM;
	lock(sched);
	if (task->info.key)
		old = task_find_key(sched, task->by_key.hash, task->key, task->info.key_len);
	err = task_add(task, old, &over);
	if (!err && id)
		*id = task->info.id;
	unlock(sched);
	tasks_free(&over);
	if (err)
		free(task);
	return err;
}

static int task_mod(struct task *task, s64 when)
{
	if (!task)
		return -ENOENT;
	if (task->dead)
		return task->info.period_ns ? -ENOENT : -EALREADY;
	task->info.due_ns = task_due(task, when);
	if (task->info.state == TWHEEL_TASK_RUNNING) {
		task->moved = true;
		return 0;
	}
	task_dequeue(task);
	task_arm(task);
	return 0;
}

int twheel_sched_mod(struct twheel_sched *sched, uint64_t id, int64_t when_ns)
{
	int rc;

	if (!is_alive(sched))
		return -ECHILD;
	lock(sched);
	rc = task_mod(task_find(sched, id), when_ns);
	unlock(sched);
	return rc;
}

static int task_cancel(struct task *task, u32 flags, struct tasks *over)
{
	struct twheel_sched *sched = task->info.sched;
	bool running = task->running || task->dead;
	u64 id = task->info.id;

	if ((flags & TWHEEL_SCHED_WAIT) && inside_task(task))
		return -EDEADLK;
	if (!task->dead) {
		task_unpend(task);
		task_bury(task, over);
	}
	if (!(flags & TWHEEL_SCHED_WAIT))
		return running;
	/* From here on another thread frees it, if it runs. */
	while (running && task_find(sched, id))
		wait_done(sched);
	return 0;
}

int twheel_sched_cancel(struct twheel_sched *sched, uint64_t id, uint32_t flags)
{
	struct tasks over = SLIST_HEAD_INITIALIZER(over);
	struct task *task;
	int rc = -ENOENT;

	if (!is_alive(sched))
		return -ECHILD;
	if (flags & ~TWHEEL_SCHED_WAIT)
		return -EINVAL;
	lock(sched);
	task = task_find(sched, id);
	if (task)
		rc = task_cancel(task, flags, &over);
	unlock(sched);
	tasks_free(&over);
	return rc;
}

uint64_t twheel_sched_find(struct twheel_sched *sched, const void *key, size_t key_len)
{
	struct task *task;
	u64 hash, id;
	size_t len;

	if (!is_alive(sched) || !key)
		return 0;
	len = key_length(key, key_len);
	if (len > KEY_MAX)
		return 0;
	hash = twheel_keys_hash(&sched->keys, key, len);
	lock(sched);
	task = task_find_key(sched, hash, key, len);
	id = task ? task->info.id : 0;
	unlock(sched);
	return id;
}

/* ---- running ------------------------------------------------------------------------ */

/* Something is left to do, and somebody has nothing to do. */
static void wake_worker(struct twheel_sched *sched)
{
	if (sched->nr_idle && (!sched->leader || sched->nr_queued))
		pthread_cond_signal(&sched->work);
}

/* A queued task begins to run; @info is filled in for its function. */
static void task_begin(struct task *task, struct twheel_task_info *info)
{
	s64 due = task->info.due_ns;

	task_dequeue(task);
	task->info.state = TWHEEL_TASK_RUNNING;
	task->info.runs++;
	task->running++;
	task->info.sched->nr_running++;
	if (!task->info.period_ns)
		task_unpend(task);
	else if (!(task->info.flags & TWHEEL_TASK_DELAY))
		task->info.due_ns = next_due(task, task_now(task));
	*info = task->info;
	info->due_ns = due;
	info->state = TWHEEL_TASK_RUNNING;
	if (task->info.flags & TWHEEL_TASK_OVERLAP)
		task_schedule(task);
}

/* A function has returned, and its task goes on. */
static void task_again(struct task *task)
{
	if (task->info.state != TWHEEL_TASK_RUNNING)
		return;
	if ((task->info.flags & TWHEEL_TASK_DELAY) && !task->moved)
		task->info.due_ns = time_add(task_now(task), task->info.period_ns);
	task->moved = false;
	task_schedule(task);
}

/*
 * The last function of a dead task has returned. It is found until it is released, for who
 * waits until it is over to wait for that too.
 */
static void task_finish(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;

	if (task->info.release) {
		unlock(sched);
		twheel_call_release(task->info.release, task->info.arg);
		lock(sched);
	}
	task_forget(task);
	free(task);
}

/* The function of the innermost frame is over. With the lock held. */
static void frame_over(struct frame *frame)
{
	struct task *task = frame->task;
	struct twheel_sched *sched = task->info.sched;

	task->running--;
	if (!task->dead)
		task_again(task);
	else if (!task->running)
		task_finish(task);
	frames = frame->outer;
	sched->nr_running--;
	pthread_cond_broadcast(&sched->done);
}

/*
 * This thread ends, in a function. If it is of the pool another takes its place, and where
 * there is none to be had the pool is smaller.
 */
static void replace_worker(struct twheel_sched *sched)
{
	u32 nth = 0;

	while (nth < sched->nr_threads && !pthread_equal(sched->threads[nth], pthread_self()))
		nth++;
	if (nth == sched->nr_threads)
		return;
	pthread_detach(pthread_self());
	if (start_worker(sched, nth))
		sched->threads[nth] = sched->threads[--sched->nr_threads];
}

/* The function has ended its thread. */
static void frame_left(void *arg)
{
	struct frame *frame = arg;
	struct twheel_sched *sched = frame->task->info.sched;

	lock(sched);
	replace_worker(sched);
	frame_over(frame);
	unlock(sched);
}

/*
 * Run a queued task. The lock is dropped meanwhile. What the function gets is followed by zeros,
 * for one that was compiled with a longer structure.
 */
static void task_run(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;
	struct frame frame = { .task = task, .outer = frames };
	union {
		char			room[TWHEEL_TASK_INFO_MAX];
		struct twheel_task_info	info;
	} u = { 0 };

	static_assert(sizeof(u) == TWHEEL_TASK_INFO_MAX, "a promise of libtwheel-sched.h");
	frames = &frame;
	task_begin(task, &u.info);
	wake_worker(sched);
	unlock(sched);
	twheel_call_fn(&u.info, frame_left, &frame);
	lock(sched);
	frame_over(&frame);
}

/* A task that the wheel says is due, and when that was. */
struct due {
	struct task	*task;
	u64		time;
};

/* By the time, and then in the order tasks were added: a tick has no order of its own. */
static int due_order(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->task->nth < y->task->nth ? -1 : x->task->nth > y->task->nth;
}

/* The wheel says that tasks are due, and may be mistaken: see the head of the file. */
static void events_take(struct twheel_sched *sched, struct twheel *wheel,
			const struct twheel_event *events, size_t nr)
{
	struct due due[CHUNK_EVENTS];
	size_t found = 0;

	for (size_t i = 0; i < nr; i++) {
		struct task *task = task_find(sched, events[i].user_data);

		if (!task || !task->handle)
			twheel_cancel(wheel, events[i].handle, NULL);
		else if (task->info.state == TWHEEL_TASK_WAITING)
			due[found++] = (struct due) { task, events[i].expires_ns };
	}
	qsort(due, found, sizeof(*due), due_order);
	/* One that was moved while the events were read may be there twice. */
	for (size_t i = 0; i < found; i++)
		if (due[i].task->info.state == TWHEEL_TASK_WAITING)
			task_schedule(due[i].task);
}

/* What was read of a wheel. */
struct harvest {
	struct twheel		*wheel;
	int			nr;
	struct twheel_event	events[CHUNK_EVENTS];
};

/*
 * Wait for something, and queue what is due. The lock is dropped while waiting. Returns 0,
 * 1 if there may be more, -EAGAIN if there was nothing, or -EINTR.
 */
static int lead(struct twheel_sched *sched, int timeout_ms)
{
	struct epoll_event ready[3];
	struct harvest of[2];
	int n, nr = 0, more = 0;

	unlock(sched);
	n = epoll_wait(sched->epfd, ready, ARRAY_SIZE(ready), timeout_ms);
	for (int i = 0; i < n; i++) {
		if (!ready[i].data.ptr)		/* it only wakes */
			continue;
		of[nr].wheel = ready[i].data.ptr;
		of[nr].nr = twheel_read(of[nr].wheel, of[nr].events, CHUNK_EVENTS, 0);
		nr++;
	}
	n = n < 0 ? -errno : n;
	lock(sched);
	for (int i = 0; i < nr; i++) {
		if (of[i].nr > 0)
			events_take(sched, of[i].wheel, of[i].events, (size_t)of[i].nr);
		more |= of[i].nr == CHUNK_EVENTS;
	}
	return n > 0 ? more : n ?: -EAGAIN;
}

/* The task to be run next, or NULL. The wall clock may have been set back since it was queued. */
static struct task *queue_first(struct twheel_sched *sched)
{
	struct task *task;

	while ((task = TAILQ_FIRST(&sched->queue))) {
		if (!(task->info.flags & TWHEEL_TASK_AT) || task->info.due_ns <= task_now(task))
			break;
		task_dequeue(task);
		task_arm(task);
	}
	return task;
}

static void *worker(void *arg)
{
	struct twheel_sched *sched = arg;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	lock(sched);
	while (!sched->stopping) {
		struct task *task = queue_first(sched);

		if (task) {
			task_run(task);
		} else if (!sched->leader) {
			sched->leader = true;
			lead(sched, -1);
			sched->leader = false;
			pthread_cond_broadcast(&sched->done);
		} else {
			sched->nr_idle++;
			pthread_cond_wait(&sched->work, &sched->lock);
			sched->nr_idle--;
		}
	}
	unlock(sched);
	return NULL;
}

/* Lead until something is queued, for so long. Returns 0 or -EINTR. */
static int lead_for(struct twheel_sched *sched, int timeout_ms)
{
	s64 start = clock_now(CLOCK_MONOTONIC), left = timeout_ms, gone;
	int rc;

	if (sched->nr_queued)
		left = 0;
	for (;;) {
		rc = lead(sched, (int)left);
		if (rc == -EINTR || !left || sched->nr_queued || sched->stopping)
			break;
		gone = (clock_now(CLOCK_MONOTONIC) - start) / (s64)NSEC_PER_MSEC;
		if (timeout_ms > 0)
			left = gone < timeout_ms ? timeout_ms - gone : 0;
	}
	return rc == -EINTR ? rc : 0;
}

/* Queue all that is due already, but no more than it takes for @max to be queued, if not 0. */
static void lead_all(struct twheel_sched *sched, u32 max)
{
	while (!max || sched->nr_queued < max)
		if (lead(sched, 0) != 1)
			break;
}

int twheel_sched_run(struct twheel_sched *sched, uint32_t max, int timeout_ms)
{
	struct task *task;
	u32 done = 0;
	int rc = 0;

	if (!is_alive(sched))
		return -ECHILD;
	if (sched->options.threads || timeout_ms < -1)
		return -EINVAL;
	lock(sched);
	if (!sched->stopping)
		rc = lead_for(sched, timeout_ms);
	if (!rc && !sched->stopping)
		lead_all(sched, max);
	if (!max || max > sched->nr_queued)
		max = sched->nr_queued;
	for (; done < max && (task = queue_first(sched)); done++)
		task_run(task);
	if (sched->stopping)
		rc = -ESHUTDOWN;
	unlock(sched);
	return done ? (int)done : rc;
}

int twheel_sched_fd(const struct twheel_sched *sched)
{
	return sched->options.threads ? -EINVAL : sched->epfd;
}

/* ---- listing and stopping ------------------------------------------------------------- */

uint32_t twheel_sched_pending(struct twheel_sched *sched)
{
	u32 n;

	if (!is_alive(sched))
		return 0;
	lock(sched);
	n = sched->nr_pending;
	unlock(sched);
	return n;
}

struct twheel *twheel_sched_wheel(const struct twheel_sched *sched)
{
	return sched->wheel;
}

/**
 * struct list - a list of tasks that is being made
 * @infos:	what the user gets: room for as many as there were, and behind that for the keys
 * @size:	from one of @infos to the next
 * @nr:		how many there are by now
 * @first:	where the keys begin
 * @keys:	where the next one goes
 * @end:	of the memory
 * @nth:	tasks that were added later are left out
 */
struct list {
	struct twheel_task_info	*infos;
	size_t			size;
	u32			nr;
	char			*first;
	char			*keys;
	char			*end;
	u64			nth;
};

/* Make room for all that is pending now. Returns 0 or -ENOMEM. With the lock held. */
static int list_init(struct list *list, const struct twheel_sched *sched, size_t size)
{
	size_t infos = sched->nr_pending * size;
	size_t bytes = infos + sched->key_bytes;

	*list = (struct list) { .infos = malloc(bytes ?: 1), .size = size,
				.nth = sched->nr_added };
	if (!list->infos)
		return -ENOMEM;
	list->first = (char *)list->infos + infos;
	list->keys = list->first;
	list->end = (char *)list->infos + bytes;
	return 0;
}

static void list_add(struct list *list, const struct task *task)
{
	struct twheel_task_info *info = sized_nth(list->infos, list->nr++, list->size);

	sized_give(info, list->size, &task->info, sizeof(task->info));
	if (!info->key)
		return;
	info->key = memcpy(list->keys, task->key, info->key_len + 1);
	list->keys += info->key_len + 1;
}

static void touch(char *from, const char *end, size_t bytes)
{
	for (; from < end && bytes; bytes -= bytes < PAGE_BYTES ? bytes : PAGE_BYTES) {
		*(volatile char *)from = 0;
		from += PAGE_BYTES;
	}
}

/* The page faults of the next chunk, taken before the lock is. */
static void list_touch(const struct list *list)
{
	touch(sized_nth(list->infos, list->nr, list->size), list->first,
	      CHUNK_TASKS * list->size);
	touch(list->keys, list->end, CHUNK_KEYS + KEY_MAX);
}

/* List the next tasks. Returns whether there are more. */
static bool list_chunk(struct list *list, struct twheel_sched *sched, struct task *cursor)
{
	struct task *task = TAILQ_NEXT(cursor, all), *last = cursor;
	const char *keys = list->keys;

	for (u32 i = 0; task && task->nth < list->nth && i < CHUNK_TASKS &&
	     list->keys - keys < CHUNK_KEYS; i++, task = TAILQ_NEXT(task, all)) {
		if (!task->dead)
			list_add(list, task);
		last = task;
	}
	if (last != cursor) {
		TAILQ_REMOVE(&sched->all, cursor, all);
		TAILQ_INSERT_AFTER(&sched->all, last, cursor, all);
	}
	return task && task->nth < list->nth;
}

/* Returns how many. With the lock held, which is dropped now and then. */
static int list_make(struct list *list, struct twheel_sched *sched)
{
	struct task cursor = { .dead = true };
	bool more;

	TAILQ_INSERT_HEAD(&sched->all, &cursor, all);
	do {
		unlock(sched);
		list_touch(list);
		lock_again(sched);
		more = list_chunk(list, sched, &cursor);
	} while (more);
	TAILQ_REMOVE(&sched->all, &cursor, all);
	return (int)list->nr;
}

static bool info_size_ok(size_t size)
{
	return SIZED_OK(size, struct twheel_task_info, state) && size <= TWHEEL_TASK_INFO_MAX;
}

int twheel_sched_list_sized(struct twheel_sched *sched, struct twheel_task_info **infos,
			    size_t size)
{
	struct list list;
	int n;

	if (!is_alive(sched))
		return -ECHILD;
	if (!info_size_ok(size))
		return -EINVAL;
	lock(sched);
	n = list_init(&list, sched, size);
	if (!n) {
		n = list_make(&list, sched);
		*infos = list.infos;
	}
	unlock(sched);
	return n;
}

/*
 * All tasks, or those with a period, are over. @list: those that did not run are to be listed,
 * and their args are the caller's. Returns how many these are.
 */
static int tasks_stop(struct twheel_sched *sched, bool periodic, struct list *list,
		      struct tasks *over)
{
	struct task *task, *next;
	int n = 0;

	for (task = TAILQ_FIRST(&sched->all); task; task = next) {
		next = TAILQ_NEXT(task, all);
		if (task->dead || (periodic && !task->info.period_ns))
			continue;
		if (task->info.state != TWHEEL_TASK_RUNNING) {
			n++;
			if (list) {
				list_add(list, task);
				task->info.release = NULL;
			}
		}
		task_unpend(task);
		task_bury(task, over);
	}
	return n;
}

/* With the lock held, which is dropped while waiting. */
static int sched_stop(struct twheel_sched *sched, uint32_t flags, struct list *list,
		      struct tasks *over)
{
	int n;

	sched->finishing = true;
	n = tasks_stop(sched, flags & TWHEEL_SCHED_FINISH, list, over);
	if (!sched->nr_pending)
		set_stopping(sched);
	wake_update(sched);	/* now: waiting is no unlock() */
	/* Until the leader is back, too: it may have handles to free. */
	while ((flags & TWHEEL_SCHED_WAIT) &&
	       (sched->nr_pending || sched->nr_running || sched->leader))
		wait_done(sched);
	return n;
}

int twheel_sched_stop_sized(struct twheel_sched *sched, uint32_t flags,
			    struct twheel_task_info **infos, size_t size)
{
	const u32 both = TWHEEL_SCHED_WAIT | TWHEEL_SCHED_FINISH;
	struct tasks over = SLIST_HEAD_INITIALIZER(over);
	struct list list;
	int n;

	if (!is_alive(sched))
		return -ECHILD;
	if ((flags & ~both) || !info_size_ok(size))
		return -EINVAL;
	if ((flags & TWHEEL_SCHED_WAIT) && inside_sched(sched))
		return -EDEADLK;
	if (flags == both && !sched->options.threads)
		return -EDEADLK;
	lock(sched);
	n = infos ? list_init(&list, sched, size) : 0;
	if (!n) {
		if (infos)
			*infos = list.infos;
		n = sched_stop(sched, flags, infos ? &list : NULL, &over);
	}
	unlock(sched);
	tasks_free(&over);
	return n;
}

/* ---- opening and closing ---------------------------------------------------------------- */

static void close_fds(struct twheel_sched *sched)
{
	const int fds[] = { sched->epfd, sched->wakefd };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int open_fds(struct twheel_sched *sched)
{
	sched->epfd = epoll_create1(EPOLL_CLOEXEC);
	sched->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sched->epfd >= 0 && sched->wakefd >= 0 && !watch(sched->epfd, sched->wakefd, NULL) &&
	    !watch(sched->epfd, twheel_fd(sched->wheel), sched->wheel))
		return 0;
	return -errno;
}

static void close_wheels(struct twheel_sched *sched)
{
	twheel_close(sched->wall);
	twheel_close(sched->wheel);
}

static int open_wheel(struct twheel_sched *sched)
{
	struct twheel_setup setup = { .clockid = sched->options.clockid,
				      .tick_ns = sched->options.tick_ns };
	struct twheel_info info;
	int err = twheel_open(&sched->wheel, sched->options.flags, &setup);

	if (err)
		return err;
	twheel_get_info(sched->wheel, &info);
	sched->options.tick_ns = info.tick_ns;
	if (!sched->options.max_pending || sched->options.max_pending > info.max_timers)
		sched->options.max_pending = info.max_timers;
	sched->late = info.tick_ns > LATE_NS ? (s64)info.tick_ns : (s64)LATE_NS;
	return 0;
}

/*
 * Start the thread @nth of the pool. Signals are for the threads that the program has made
 * itself. Returns 0 or -ENOMEM. With the lock held.
 */
static int start_worker(struct twheel_sched *sched, u32 nth)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&sched->threads[nth], NULL, worker, sched);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err ? -ENOMEM : 0;
}

static int open_threads(struct twheel_sched *sched)
{
	int err = 0;

	lock(sched);
	while (!err && sched->nr_threads < sched->options.threads) {
		err = start_worker(sched, sched->nr_threads);
		sched->nr_threads += !err;
	}
	unlock(sched);
	return err;
}

/* Undo what open did, but for the memory. */
static void sched_shut(struct twheel_sched *sched)
{
	twheel_sched_stop(sched, TWHEEL_SCHED_WAIT, NULL);
	while (sched->nr_threads)
		pthread_join(sched->threads[--sched->nr_threads], NULL);
	pthread_cond_destroy(&sched->done);
	pthread_cond_destroy(&sched->work);
	pthread_mutex_destroy(&sched->lock);
	twheel_keys_exit(&sched->keys);
	ids_free(&sched->ids);
	close_fds(sched);
	close_wheels(sched);
}

int twheel_sched_close(struct twheel_sched *sched)
{
	if (!sched)
		return 0;
	if (!is_alive(sched)) {
		close_fds(sched);
		close_wheels(sched);
		return 0;
	}
	if (inside_sched(sched))
		return -EDEADLK;
	sched_shut(sched);
	free(sched);
	return 0;
}

static int sched_init(struct twheel_sched *sched)
{
	int err = open_wheel(sched);

	if (err)
		return err;
	err = open_fds(sched);
	if (err) {
		close_fds(sched);
		close_wheels(sched);
		return err;
	}
	pthread_mutex_init(&sched->lock, NULL);
	pthread_cond_init(&sched->work, NULL);
	pthread_cond_init(&sched->done, NULL);
	TAILQ_INIT(&sched->all);
	TAILQ_INIT(&sched->queue);
	twheel_keys_init(&sched->keys);
	err = open_threads(sched);
	if (err)
		sched_shut(sched);
	return err;
}

static bool options_are_valid(const struct twheel_sched_options *options)
{
	return !options->reserved[0] && !options->reserved[1] && !options->reserved[2] &&
	       options->threads <= UINT16_MAX && !(options->flags & TWHEEL_ONE_THREAD);
}

static int open_with(struct twheel_sched **sched, const struct twheel_sched_options *options)
{
	struct twheel_sched *new;
	int err;

	if (!options_are_valid(options))
		return -EINVAL;
	new = calloc(1, sizeof(*new) + options->threads * sizeof(new->threads[0]));
	if (!new)
		return -ENOMEM;
	new->options = *options;
	if (!new->options.clockid)
		new->options.clockid = CLOCK_MONOTONIC;
	err = sched_init(new);
	if (!err)
		*sched = new;
	else
		free(new);
	return err;
}

int twheel_sched_open_sized(struct twheel_sched **sched,
			    const struct twheel_sched_options *theirs, size_t size)
{
	struct twheel_sched_options options = { 0 };
	int err = 0;

	if (!SIZED_OK(size, struct twheel_sched_options, reserved))
		return -EINVAL;
	if (theirs)
		err = sized_take(&options, sizeof(options), theirs, size);
	return err ?: open_with(sched, &options);
}
