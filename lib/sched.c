// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The scheduler. libtwheel-sched.h says what each function that a program calls guarantees; the
 * comments here say how that is kept.
 *
 * A task is pending as long as it will run, once more or for the first time. A pending task has one
 * timer of the wheel, and is in one of three states:
 *
 *	            due                    a thread takes it
 *	WAITING -----------> QUEUED ----------------------------> RUNNING
 *	   ^                   ^                                     |
 *	   |                   | it is due again already             |
 *	   +-------------------+-------------------------------------+ a period
 *
 * While the function of a task with TWHEEL_TASK_OVERLAP runs, the task already waits for its next
 * period, or is queued for it. A task without a period stops being pending when it begins to run.
 *
 * One idle worker, the leader, waits for the wheel and queues the tasks that have expired. Before a
 * worker runs a task it wakes another one, which leads if nobody does. So all n threads can run
 * functions: none is reserved for waiting. Without a pool the caller of twheel_sched_run() leads.
 *
 * Tasks on the wall clock have a wheel of their own, on CLOCK_REALTIME, which is made for the first
 * of them. That wheel handles a clock that is set. If the clock is set back while a task is queued,
 * the task goes back into the wheel: a task runs only if the clock shows its time or a later one,
 * even if its timer has expired.
 *
 * A task may be cancelled after its event was read and before the event is handled. So an event
 * carries the id of its task, which the leader looks up under the lock, and no id is ever used
 * again. If the task is cancelled while the wheel is being read, the wheel refuses to free the
 * handle; the leader frees it when it finds no task for the event.
 *
 * Locking: sched->lock guards everything here. A function whose name begins with task_, list_,
 * frame_ or events_ is called with it held, unless its comment says otherwise. The wheel's own lock
 * is taken inside it. The user's functions, fn() and release(), are called without it. Work on all
 * tasks is done in chunks, and the lock is dropped between them, except in twheel_sched_stop().
 * Meanwhile a cursor in the list marks the place: a struct task that stands for no task, and is
 * marked dead, so that other threads skip it.
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
/* In one lock hold, work on all tasks handles this many, or this many bytes of their keys. */
#define CHUNK_TASKS	128
#define CHUNK_KEYS	0x8000
#define PAGE_BYTES	4096

#define MISSED		(TWHEEL_MISSED_DELAY | TWHEEL_MISSED_SKIP)
#define PERIODIC	(TWHEEL_TASK_DELAY | TWHEEL_TASK_OVERLAP | MISSED)
#define VALID_FLAGS	(TWHEEL_TASK_AT | PERIODIC)

/**
 * struct task - a task
 * @all:	link in sched->all, from add to the end of its last run
 * @queued:	link in sched->queue, while QUEUED
 * @over:	link in a list of tasks to be freed, see tasks_free()
 * @by_key:	link in sched->keys, while it is pending and has a key
 * @info:	what the user may see. Its id is in sched->ids as long as the task is in @all
 * @nth:	how many tasks were added before this one
 * @handle:	its timer in the wheel; 0 if it has none
 * @running:	how many threads run its function
 * @dead:	no longer pending. The task is freed as soon as @running is 0
 * @moved:	got another time while it was running
 * @key:	the key, followed by a 0
 *
 * sched->lock guards all of it as long as the task is in @all. After that the task, with @over,
 * belongs to the thread that took it out.
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
 * @options:	as it was opened, with the defaults filled in
 * @wheel:	the wheel of the tasks with delays
 * @wall:	the wheel of tasks on the wall clock, NULL until there is one. Set under @lock
 * @late:	a run counts as late if it begins more than this many ns after it was due, not
 *		counting the task's tolerance
 * @epfd:	epoll that watches the wheels and @wakefd
 * @wakefd:	eventfd. It is readable when the leader must return from epoll_wait(), or, without a
 *		pool, when the program must call twheel_sched_run()
 * @awake:	@wakefd is readable. Under @lock
 * @nr_waiting:	threads that wait for @lock. Atomic; a hint for lock_again()
 * @lock:	guards all that follows, and every task
 * @work:	signalled if there is something to do for an idle worker
 * @done:	broadcast when a function or the leader has returned, and on stopping
 * @all:	all tasks, in the order they were added, and cursors
 * @ids:	the tasks by id
 * @keys:	the pending tasks that have a key
 * @key_bytes:	size of the keys in @keys, with a 0 behind each
 * @queue:	the tasks that are QUEUED
 * @nr_added:	how many tasks have ever been added
 * @nr_queued:	tasks in @queue
 * @nr_pending:	tasks that will run, once more or for the first time
 * @nr_running:	functions that are running
 * @nr_idle:	workers that wait for @work
 * @leader:	a worker of the pool is the leader now: it is in lead()
 * @finishing:	no task may be added, and none with a period is left
 * @stopping:	no function may be called any more
 * @nr_threads:	threads of the pool
 * @threads:	the pool
 *
 * Of the members before @lock, only @wall, @awake and @nr_waiting change once another thread can
 * know of the scheduler.
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

/* A function that this thread is in. A function may call others, by twheel_sched_run(). */
struct frame {
	struct task	*task;
	struct frame	*outer;
};

static int start_worker(struct twheel_sched *sched, u32 nth);

/* The functions that this thread is in, the innermost first. */
static __thread struct frame *frames;

/* Is the caller inside the function of @task? Waiting for that would never end. */
static bool inside_task(const struct task *task)
{
	const struct frame *f = frames;

	while (f && f->task != task)
		f = f->outer;
	return f;
}

/* Is the caller inside the function of any task of @sched? */
static bool inside_sched(const struct twheel_sched *sched)
{
	const struct frame *f = frames;

	while (f && f->task->info.sched != sched)
		f = f->outer;
	return f;
}

/* False in a process that inherited @sched by fork(), where the threads of @sched do not exist. */
static bool is_alive(const struct twheel_sched *sched)
{
	return is_ours(sched->wheel->family);
}

/* ---- the lock ----------------------------------------------------------------- */

/* Take the lock. While this waits for it, nr_waiting tells lock_again() that somebody does. */
static void lock(struct twheel_sched *sched)
{
	if (!pthread_mutex_trylock(&sched->lock))
		return;
	__atomic_add_fetch(&sched->nr_waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&sched->lock);
	__atomic_sub_fetch(&sched->nr_waiting, 1, __ATOMIC_RELAXED);
}

/*
 * Keep pthread_cancel() from ending this thread. Call it before each cancellation point that is
 * reached with the lock held, or with a cursor in a list: a thread that ended there would leave
 * these behind. Returns the state for pthread_setcancelstate() afterwards.
 */
static int not_cancelled(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/* Make wakefd readable, or not. With the lock held. */
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

/*
 * Make wakefd readable if @sched is stopping, or if there is no pool and tasks are queued: then the
 * program, which polls the descriptor, must run them. Otherwise make it not readable.
 */
static void wake_update(struct twheel_sched *sched)
{
	wake_set(sched, sched->stopping || (!sched->options.threads && sched->nr_queued));
}

/*
 * Release the lock. Update wakefd before that, so that no thread that takes the lock finds wakefd
 * outdated.
 */
static void unlock(struct twheel_sched *sched)
{
	wake_update(sched);
	pthread_mutex_unlock(&sched->lock);
}

/*
 * Take the lock again, between two chunks. A mutex is not a queue: a thread that takes it again at
 * once is most often faster than the threads that wait for it. So if a thread waits, sleep a
 * moment. nr_waiting is read without the lock, and pairs with nothing: if it is wrong, this thread
 * sleeps for nothing, or the others wait for one more chunk.
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

/* Wait until a function, or the leader, has returned. The lock is dropped meanwhile. */
static void wait_done(struct twheel_sched *sched)
{
	int state = not_cancelled();

	pthread_cond_wait(&sched->done, &sched->lock);
	pthread_setcancelstate(state, NULL);
}

/*
 * From now on no function is called. Workers end; callers that wait look again. With the lock held.
 */
static void set_stopping(struct twheel_sched *sched)
{
	sched->stopping = true;
	pthread_cond_broadcast(&sched->work);
	pthread_cond_broadcast(&sched->done);
}

/* ---- time ----------------------------------------------------------------------- */

/* The time of @clock in ns. Signed, so that times can be subtracted. */
static s64 clock_now(clockid_t clock)
{
	return (s64)twheel_clock(clock);
}

/* The time of @task's clock: the wall clock, or that of the scheduler. Needs no lock. */
static s64 task_now(const struct task *task)
{
	return clock_now(task->info.flags & TWHEEL_TASK_AT ? CLOCK_REALTIME :
			 task->info.sched->options.clockid);
}

/* The sum, or TIME_MAX if it is greater. @ns is not negative. */
static s64 time_add(s64 time, s64 ns)
{
	return ns < TIME_MAX - time ? time + ns : TIME_MAX;
}

/*
 * The time at which @task is due if the user asked for @when: a delay, or a time of the wall clock.
 * Needs no lock.
 */
static s64 task_due(const struct task *task, s64 when)
{
	if (when < 0)
		when = 0;
	return task->info.flags & TWHEEL_TASK_AT ? when : time_add(task_now(task), when);
}

/*
 * The time at which a periodic task is due after the run that begins at @now. The periods that have
 * passed are skipped and counted as missed if the task has TWHEEL_MISSED_SKIP; or if it has
 * TWHEEL_MISSED_DELAY, and that run is late as struct twheel_task defines it.
 */
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

/* The task with @id, which may be dead but is not freed yet, or NULL. With the lock held. */
static struct task *task_find(struct twheel_sched *sched, u64 id)
{
	return ids_find(&sched->ids, id);
}

/*
 * The pending task with this key, or NULL. @hash is twheel_keys_hash() of it. With the lock held.
 */
static struct task *task_find_key(struct twheel_sched *sched, u64 hash, const void *bytes,
				  size_t len)
{
	struct key *key = twheel_keys_find(&sched->keys, hash, bytes, len);

	return key ? container_of(key, struct task, by_key) : NULL;
}

/* The wheel that @task's timer is in. */
static struct twheel *task_wheel(const struct task *task)
{
	const struct twheel_sched *sched = task->info.sched;

	return task->info.flags & TWHEEL_TASK_AT ? sched->wall : sched->wheel;
}

/* How late the timer of a task that is due at @due may be. A task that is due at once is exact. */
static u64 task_tolerance(const struct task *task, s64 due)
{
	return due <= task_now(task) ? 0 : (u64)(time_add(due, task->info.tolerance_ns) - due);
}

/*
 * Arm the timer of a task anew. An older module, which knows no tolerances, may have accepted a
 * task that has one, because the task was due at once and so exact. Then its other runs are exact,
 * too.
 */
static int task_rearm(struct task *task, u64 due, u64 tolerance, u32 flags)
{
	int rc = twheel_mod_within(task_wheel(task), task->handle, due, 0, tolerance, flags);

	return rc == -E2BIG ? twheel_mod(task_wheel(task), task->handle, due, 0, flags) : rc;
}

/*
 * Arm the timer of a task for the time at which the task is due, and make the task WAITING. The
 * task must not be queued; its timer may be armed. If the task has no timer yet, returns 0 or an
 * error. If it has one, this cannot fail, and the result is to be ignored.
 */
static int task_arm(struct task *task)
{
	u32 flags = TWHEEL_F_ABS | TWHEEL_F_KEEP;
	s64 due = task->info.due_ns > 0 ? task->info.due_ns : 0;
	u64 tolerance = task_tolerance(task, due);

	task->info.state = TWHEEL_TASK_WAITING;
	/* A timer that exists can always be armed. */
	if (task->handle)
		return task_rearm(task, (u64)due, tolerance, flags);
	return twheel_add_within(task_wheel(task), &task->handle, task->info.id, (u64)due, 0,
				 tolerance, flags);
}

/* Make a task QUEUED, behind all others. Its timer must not be in the wheel. */
static void task_enqueue(struct task *task)
{
	task->info.state = TWHEEL_TASK_QUEUED;
	TAILQ_INSERT_TAIL(&task->info.sched->queue, task, queued);
	task->info.sched->nr_queued++;
}

/* Take a task off the queue, if it is there. The caller gives it another state. */
static void task_dequeue(struct task *task)
{
	if (task->info.state != TWHEEL_TASK_QUEUED)
		return;
	TAILQ_REMOVE(&task->info.sched->queue, task, queued);
	task->info.sched->nr_queued--;
}

/*
 * Let a task that is neither armed nor queued wait until it is due. If it is due already, queue it.
 */
static void task_schedule(struct task *task)
{
	if (task->info.due_ns > task_now(task))
		task_arm(task);
	else
		task_enqueue(task);
}

/*
 * Take a task out of the queue, the wheel and the keys: it will not run again. The task stays in
 * sched->all and keeps its id until task_bury(), or until the end of its last run.
 */
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

/* Take a dead task out of sched->all. From here on nobody finds it by its id. */
static void task_forget(struct task *task)
{
	struct twheel_sched *sched = task->info.sched;

	ids_del(&sched->ids, task->info.id);
	TAILQ_REMOVE(&sched->all, task, all);
}

/*
 * Put a dead task on the list @over, to be freed. If it is running, the last thread that runs it
 * frees it instead.
 */
static void task_bury(struct task *task, struct tasks *over)
{
	if (task->running)
		return;
	task_forget(task);
	SLIST_INSERT_HEAD(over, task, over);
}

/* Release and free the tasks of a list. Without the lock, since release() is the user's. */
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

/*
 * The length of @key: @len, or strlen() of it if @len is 0. If it is too long, more than KEY_MAX.
 */
static size_t key_length(const void *key, size_t len)
{
	return len ? len : strnlen(key, KEY_MAX + 1);
}

/*
 * Is @task, which the user gave, valid? This reads only members of @sched that do not change, so it
 * needs no lock.
 */
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

/*
 * Make a task of what the user gave, which is valid. The task is in no table yet, so the lock is
 * not needed.
 */
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

/* Enter the key of a new task, if it has one, and arm the task. On an error neither is done. */
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
 * Enter a new task into the tables and the wheel. If that fails, the task is in none of them. The
 * task that it replaces, with the same key, may still be there: the caller takes that one out
 * afterwards.
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

/*
 * Watch @fd. When it is readable, lead() reads @wheel; if that is NULL, @fd only wakes the leader.
 */
static int watch(int epfd, int fd, struct twheel *wheel)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = wheel };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e);
}

/* Make the wheel for tasks on the wall clock. With the lock held. Returns 0 or an error. */
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

/*
 * Add a new task. @old is the task with the same key, or NULL: if the new task could be added, @old
 * is cancelled. Tasks to be freed go to @over. On an error no task has changed.
 */
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

/*
 * The task is made before the lock is taken, and a task that it replaces is released after the lock
 * is dropped: neither the allocation nor the user's release() makes others wait.
 */
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

/*
 * Give a task another time; @task is NULL if there is none. If the task's function is running, the
 * time is that of the next run.
 */
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

/*
 * Cancel a task; with TWHEEL_SCHED_WAIT, wait until the task is released. Returns 1 if its function
 * may still be running, 0 if not, or -EDEADLK. With the lock held, which is dropped while waiting.
 */
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
	/*
	 * If the task runs, another thread frees it. So look for its id, and do not touch the task.
	 */
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

/*
 * If nobody leads, or tasks are queued, wake an idle worker, if there is one. Called before this
 * thread runs a function, which may take long. With the lock held.
 */
static void wake_worker(struct twheel_sched *sched)
{
	if (sched->nr_idle && (!sched->leader || sched->nr_queued))
		pthread_cond_signal(&sched->work);
}

/*
 * Make a queued task RUNNING, and fill in @info for its function. A task without a period is no
 * longer pending after this. A task that may overlap itself waits for its next time already.
 */
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

/*
 * The function of a periodic task has returned: schedule the next run, unless task_begin(), for a
 * task that may overlap itself, has done so already.
 */
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
 * The last function of a dead task has returned: release it and free it. It keeps its id until
 * release() has returned, so that a cancel that waits, waits for release() as well. With the lock
 * held, which is dropped while release() runs.
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

/*
 * The function of the innermost frame is over: schedule its task again, or free it. After this the
 * caller must not touch the task. With the lock held, which may be dropped in between.
 */
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
 * This thread ends inside a task's function, by pthread_exit(). If it belongs to the pool, start
 * another thread in its place. If that fails, the pool gets smaller. With the lock held.
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

/*
 * Called if the function does not return, but ends its thread by pthread_exit(). Without the lock.
 */
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
 * Run a queued task. With the lock held, which is dropped while the function runs. The structure
 * that the function gets is followed by zeros, for a program compiled with a longer one.
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

/* A task whose timer has expired, and when it was due. */
struct due {
	struct task	*task;
	u64		time;
};

/* Order by time, then as the tasks were added: inside a tick the wheel promises no order. */
static int due_order(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->task->nth < y->task->nth ? -1 : x->task->nth > y->task->nth;
}

/*
 * Queue the tasks whose events were read from @wheel. An event may be outdated, as the head of the
 * file says: its task may be gone, or have another time by now. With the lock held.
 */
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
	/* If a task was re-armed while the events were read, it may have two of them. */
	for (size_t i = 0; i < found; i++)
		if (due[i].task->info.state == TWHEEL_TASK_WAITING)
			task_schedule(due[i].task);
}

/* What lead() has read of one wheel without the lock: @nr events, or an error. */
struct harvest {
	struct twheel		*wheel;
	int			nr;
	struct twheel_event	events[CHUNK_EVENTS];
};

/*
 * Wait until a wheel has events or the leader is woken, and queue the tasks that are due. With the
 * lock held, which is dropped while waiting and reading. Returns 0, 1 if there may be more events,
 * -EAGAIN if nothing came in time, or -EINTR.
 */
static int lead(struct twheel_sched *sched, int timeout_ms)
{
	struct epoll_event ready[3];	/* two wheels, and wakefd */
	struct harvest of[2];
	int n, nr = 0, more = 0;

	unlock(sched);
	n = epoll_wait(sched->epfd, ready, ARRAY_SIZE(ready), timeout_ms);
	for (int i = 0; i < n; i++) {
		if (!ready[i].data.ptr)		/* wakefd, which only wakes */
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

/*
 * The task to run next, or NULL. If the wall clock was set back since a task was queued, the task
 * goes back to the wheel.
 */
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

/* A thread of the pool: it runs what is queued, leads if nobody does, and is idle otherwise. */
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

/* Without a pool: lead until something is queued, or @timeout_ms is over. Returns 0 or -EINTR. */
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

/* Queue the tasks that are due now. If @max is not 0, stop when that many are queued. */
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
 * @infos:	what the user gets: room for the tasks that were pending at first, and behind that
 *		room for their keys
 * @size:	distance from one of @infos to the next, in bytes
 * @nr:		how many tasks are in the list by now
 * @first:	where the keys begin
 * @keys:	where the next key goes
 * @end:	the end of the memory
 * @nth:	how many tasks had been added when the list was begun. Tasks that were added later
 *		are left out, so that there is enough room
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

/*
 * Append @task, which is pending, and its key. The room that list_init() has made is enough,
 * because tasks that were added after that are not listed.
 */
static void list_add(struct list *list, const struct task *task)
{
	struct twheel_task_info *info = sized_nth(list->infos, list->nr++, list->size);

	sized_give(info, list->size, &task->info, sizeof(task->info));
	if (!info->key)
		return;
	info->key = memcpy(list->keys, task->key, info->key_len + 1);
	list->keys += info->key_len + 1;
}

/* Write to each page of the next @bytes, up to @end. */
static void touch(char *from, const char *end, size_t bytes)
{
	for (; from < end && bytes; bytes -= bytes < PAGE_BYTES ? bytes : PAGE_BYTES) {
		*(volatile char *)from = 0;
		from += PAGE_BYTES;
	}
}

/* Cause the page faults of the next chunk now, while the lock is not held. */
static void list_touch(const struct list *list)
{
	touch(sized_nth(list->infos, list->nr, list->size), list->first,
	      CHUNK_TASKS * list->size);
	touch(list->keys, list->end, CHUNK_KEYS + KEY_MAX);
}

/*
 * List the next chunk of tasks behind @cursor, and move @cursor behind them. Returns whether there
 * are more.
 */
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

/* List all pending tasks. Returns how many. With the lock held, which is dropped between chunks. */
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

/* Can a program have been compiled with a struct twheel_task_info of @size bytes? */
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
 * Cancel all tasks, or with @periodic those with a period. Returns how many of the cancelled tasks
 * were WAITING or QUEUED. With @list, these are listed, and are not released: their args now belong
 * to the caller. (The function of such a task may be running if it has TWHEEL_TASK_OVERLAP.) Tasks
 * to be freed go to @over. All this is one lock hold, so that no task begins to run in between.
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

/* twheel_sched_stop(), with the lock held, which is dropped while waiting. */
static int sched_stop(struct twheel_sched *sched, uint32_t flags, struct list *list,
		      struct tasks *over)
{
	int n;

	sched->finishing = true;
	n = tasks_stop(sched, flags & TWHEEL_SCHED_FINISH, list, over);
	if (!sched->nr_pending)
		set_stopping(sched);
	/* unlock() would update wakefd, but wait_done() drops the lock by itself. */
	wake_update(sched);
	/* Wait for the leader too: it may have handles to free. */
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

/* Close what open_fds() has opened, if anything. */
static void close_fds(struct twheel_sched *sched)
{
	const int fds[] = { sched->epfd, sched->wakefd };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Make the epoll that the leader waits with, and wakefd. Returns 0 or an error. In either case
 * close_fds() undoes it.
 */
static int open_fds(struct twheel_sched *sched)
{
	sched->epfd = epoll_create1(EPOLL_CLOEXEC);
	sched->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sched->epfd >= 0 && sched->wakefd >= 0 && !watch(sched->epfd, sched->wakefd, NULL) &&
	    !watch(sched->epfd, twheel_fd(sched->wheel), sched->wheel))
		return 0;
	return -errno;
}

/* Close both wheels; sched->wall may be NULL. */
static void close_wheels(struct twheel_sched *sched)
{
	twheel_close(sched->wall);
	twheel_close(sched->wheel);
}

/* Open the wheel for delays, and fill in the options that were left open. Returns 0 or an error. */
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
 * Start thread @nth of the pool. The thread blocks all signals, which are for the program's own
 * threads. Returns 0 or -ENOMEM. With the lock held, so that the new thread does not look into
 * @threads before its own entry is there.
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

/* Start the pool. If that fails, sched_shut() ends the threads that have been started. */
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

/* Undo sched_init(): stop, wait for all threads, and close. The caller frees @sched itself. */
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

/*
 * In a child that inherited the scheduler by fork(), the scheduler's threads do not exist and its
 * lock may be held for ever. So there this only closes the descriptors, and frees no memory.
 */
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

/*
 * Open everything. Returns 0, or an error with everything closed again; the caller frees the
 * memory.
 */
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

/* TWHEEL_ONE_THREAD is refused: a scheduler's wheel is used by its threads and its callers. */
static bool options_are_valid(const struct twheel_sched_options *options)
{
	return !options->reserved[0] && !options->reserved[1] && !options->reserved[2] &&
	       options->threads <= UINT16_MAX && !(options->flags & TWHEEL_ONE_THREAD);
}

/* Make a scheduler. Returns 0 or an error; *@sched is set only on success. */
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
