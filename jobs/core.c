// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The loop: which firings are due, and what happens to them.
 *
 * Each row of the table due whose time is before the horizon has a timer in the wheel. With SQLite
 * the timer runs on the wall clock, and follows if that is set. With PostgreSQL it goes by the
 * clock of the server. Later rows are only in the store. A timer is a hint. The store decides: if
 * the row is no longer there, or is due at another time, nothing is run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "crash.h"
#include "twheeld.h"
#include "when.h"

#define WINDOW_US	(60 * US_PER_S)
#define WINDOW_ROWS	50000	/* a row takes half a KiB */
#define STEP_US		(50 * US_PER_MS) /* the shortest time from one load_more() to the next */
#define STEP_ROWS	1000		/* if load_more() reads more rows, the next comes sooner */
#define TURN_OPS	2000		/* with this many operations a turn is full */
#define TIMERS		1000		/* how many expired timers are handled in one go */
#define LATE_EACH_NS	(10 * NS_PER_MS) /* how often a run that makes up for missed times begins */
#define EXPIRE_NS	(NS_PER_S / 4)
#define EXPIRE_LOOKS	4	/* if a call has found nothing to delete, the fourth looks again */
#define PRUNE_NS	(3600 * NS_PER_S)
#define PRUNE_FILES	64		/* each file takes a statement */
#define EXPIRE_MOST_US	(50 * US_PER_MS) /* for about how long one call deletes history */
#define EXPIRE_ROWS	1000
#define ROOM_ROWS	4000	/* the same, if only the logs of the rows are deleted */
#define STUCK_MS	250
#define UNDECIDED_US	US_PER_MS	/* how soon a firing that was not decided is fired again */
#define COUNTED_SOON	10000		/* counting so many missed times takes next to no time */
#define RELOAD_NS	(NS_PER_S / 2)	/* after firings that were refused */
#define LOOK_US		(250 * US_PER_MS) /* how often to look for news without a notification */
#define EVENTS		64
#define LATEST_US	(INT64_MAX / NS_PER_US)	/* in 2262: a timer is for no later time */

struct store *store;
struct twheel_sched *sched;

/*
 * stopping: core_stop() was called. stuck: the store cannot be written, see set_stuck(). reload:
 * all rows of due are to be read again, by load_what_is_due(). reload_timer: the task that will set
 * reload, or 0. parts: store->parts as of the last claim(); their jobs and firings are in memory.
 * horizon: rows that are due before it have timers. next_beat, next_look: when to renew the lease,
 * and when to look for news. connections: an epoll that watches the store's connections; epoll
 * watches it.
 */
static int epoll, connections;
static bool stopping, stuck, reload;
static uint64_t reload_timer, parts;
static int64_t horizon, next_beat, next_look;	/* the latter by CLOCK_BOOTTIME */

/**
 * struct lane - operations on their way to the store
 * @ops:	the operations that are decided and not yet sent
 * @nr_ops:	how many
 * @room:	for how many @ops has room
 * @turn:	the operations of the turn that is being written
 * @nr_turn:	how many
 * @sent:	the store has that turn
 *
 * All operations of a job are in the same lane, in the order in which they were decided.
 */
struct lane {
	struct op	*ops;
	size_t		nr_ops;
	size_t		room;
	struct op	*turn;
	size_t		nr_turn;
	bool		sent;
};

static struct lane lanes[LANES];

static bool told_journal;	/* standard error is the journal, which understands levels */
static int messages = STDERR_FILENO;

/*
 * If systemd connects standard error to the journal, JOURNAL_STREAM has its device and inode. They
 * must be those of our standard error: a script of the service may have redirected it since.
 *
 * A terminal may have room for a part of a line only. So open it once more, with O_NONBLOCK: for
 * other users of the terminal, writing still blocks.
 */
void say_setup(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	int fd;

	told_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		       !fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
	if (!isatty(STDERR_FILENO))
		return;
	fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		messages = fd;
}

/* Print a message. Returns false if there is no room for it, because nobody reads. */
static bool print(int level, const char *text)
{
	int n = told_journal ? dprintf(messages, "<%d>twheeld: %s\n", level, text) :
			       dprintf(messages, "twheeld: %s\n", text);

	return n >= 0 || errno != EAGAIN;
}

/* If nobody reads the messages, do not wait: count those that are left out, and say so later. */
void say(int level, const char *fmt, ...)
{
	struct pollfd to = { .fd = messages, .events = POLLOUT };
	static long long unread;
	char text[1024];
	va_list args;

	if (!poll(&to, 1, 0)) {
		unread++;
		return;
	}
	if (unread) {
		snprintf(text, sizeof(text), "messages left out, since nobody read them: %lld",
			 unread);
		unread = print(SAY_WARNING, text) ? 0 : unread;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	unread += !print(level, text);
}

int64_t boot_us(void)
{
	return time_now(CLOCK_BOOTTIME) / NS_PER_US;
}

int64_t now_us(void)
{
	if (store && store->clock)
		return boot_us() + store->clock;
	return time_now(CLOCK_REALTIME) / NS_PER_US;
}

void when_due(struct twheel_task *task, int64_t at)
{
	at = at < 0 ? 0 : at < LATEST_US ? at : LATEST_US;
	task->when_ns = (store->clock ? at - now_us() : at) * NS_PER_US;
	task->flags = store->clock ? 0 : TWHEEL_TASK_AT;
}

/* ---- timers ------------------------------------------------------------------------- */

/**
 * struct armed - a row of due that has a timer
 * @job:	the id of its job
 * @id:		the id of the row
 * @at:		when it is due
 */
struct armed {
	int64_t	job;
	int64_t	id;
	int64_t	at;
};

TAILQ_HEAD(late_rows, late);
TAILQ_HEAD(late_turns, late_job);

/**
 * struct late_job - a job with rows that are late
 * @entry:	link in late_turns
 * @in_all:	its place among all of them, by the id of the job
 * @job:	the id of the job
 * @rows:	the rows, in the order in which they came
 */
struct late_job {
	TAILQ_ENTRY(late_job)	entry;
	UT_hash_handle		in_all;
	int64_t			job;
	struct late_rows	rows;
};

/**
 * struct late - a row that is late: see pace()
 * @entry:	link in the list of those of @of
 * @in_all:	its place among all of them, by the id of the row
 * @of:		its job
 * @row:	the row
 */
struct late {
	TAILQ_ENTRY(late)	entry;
	UT_hash_handle		in_all;
	struct late_job		*of;
	struct armed		row;
};

static struct late *late_ones;
static struct late_job *late_jobs;
/* The jobs that have late rows, in the order of their turns. */
static struct late_turns late_turns = TAILQ_HEAD_INITIALIZER(late_turns);
static uint64_t late_timer;
static size_t nr_armed;		/* how many rows have a timer */

static void fire(const struct armed *row, bool paced);

/* A copy of @from, never NULL. */
static struct armed *new_armed(const struct armed *from)
{
	struct armed *row = malloc(sizeof(*row));

	if (!row)
		abort();
	*row = *from;
	nr_armed++;
	return row;
}

static void free_armed(void *row)
{
	nr_armed--;
	free(row);
}

/* The function of a row's timer. */
static void due_fired(void *arg, const struct twheel_task_info *task)
{
	(void)task;
	crash_point("a timer was read");
	fire(arg, true);
}

/* Fire @row at @at. */
static void arm_row(const struct armed *row, int64_t at)
{
	struct armed *copy = new_armed(row);
	struct twheel_task task = {
		.fn = due_fired, .arg = copy, .release = free_armed,
		.key = &copy->id, .key_len = sizeof(copy->id),
	};
	int err;

	when_due(&task, at);
	err = twheel_sched_add(sched, &task, NULL);
	if (err) {
		say(SAY_ERROR, "cannot arm a timer: %s", strerror(-err));
		free_armed(copy);
		core_reload();
	}
}

void core_arm(int64_t id, int64_t job, int64_t at)
{
	if (at < horizon && store_owns(store, job))
		arm_row(&(struct armed){ .job = job, .id = id, .at = at }, at);
}

/* The struct late_job of a job. If there is none, make one, whose turn comes after all others. */
static struct late_job *late_job_of(int64_t job)
{
	struct late_job *of;

	HASH_FIND(in_all, late_jobs, &job, sizeof(job), of);
	if (of)
		return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		abort();
	of->job = job;
	TAILQ_INIT(&of->rows);
	TAILQ_INSERT_TAIL(&late_turns, of, entry);
	HASH_ADD(in_all, late_jobs, job, sizeof(job), of);
	return of;
}

static void late_add(const struct armed *row)
{
	struct late *late = calloc(1, sizeof(*late));

	if (!late)
		abort();
	late->of = late_job_of(row->job);
	late->row = *row;
	TAILQ_INSERT_TAIL(&late->of->rows, late, entry);
	HASH_ADD(in_all, late_ones, row.id, sizeof(row->id), late);
}

static void late_free(struct late *late)
{
	struct late_job *of = late->of;

	TAILQ_REMOVE(&of->rows, late, entry);
	HASH_DELETE(in_all, late_ones, late);
	free(late);
	if (!TAILQ_EMPTY(&of->rows))
		return;
	TAILQ_REMOVE(&late_turns, of, entry);
	HASH_DELETE(in_all, late_jobs, of);
	free(of);
}

void core_disarm(int64_t id)
{
	struct late *late;

	twheel_sched_cancel(sched, twheel_sched_find(sched, &id, sizeof(id)), 0);
	HASH_FIND(in_all, late_ones, &id, sizeof(id), late);
	if (late)
		late_free(late);
}

void core_reload(void)
{
	reload = true;
}

/* The function of reload_timer. */
static void reload_now(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	reload_timer = 0;
	core_reload();
}

void core_refused(void)
{
	struct twheel_task task = { .fn = reload_now, .when_ns = RELOAD_NS };

	if (!reload_timer)
		twheel_sched_add(sched, &task, &reload_timer);
}

/* ---- the window --------------------------------------------------------------------- */

/**
 * struct window - rows of due that are being read
 * @nr:		how many were read so far
 * @last:	the time of the last one
 */
struct window {
	int64_t	nr;
	int64_t	last;
};

/* A row of store_window(): arm a timer for it. */
static void window_row(void *arg, const struct due *due)
{
	struct window *window = arg;

	window->nr++;
	window->last = due->at;
	if (run_find(due->id, due->at))		/* it is being fired */
		return;
	job_is_due(due);
	core_arm(due->id, due->job, due->at);
}

/* Returns false if there are more of these rows, all due at the same time. */
static bool load_rows(int64_t from, int64_t to, int64_t limit, struct window *window)
{
	*window = (struct window) { 0 };
	horizon = to;
	if (store_window(store, from, to, limit, window_row, window)) {
		say(SAY_ERROR, "the store cannot be read: %s", store_error(store));
		horizon = from;
		core_reload();
		return true;
	}
	if (window->nr < limit)
		return true;
	horizon = window->last;
	return window->last > from;
}

/*
 * Arm timers for the rows of due from @from to @to, or to a minute from now if that is earlier. If
 * there are too many rows, the horizon ends at the last one that was read. Returns how many were
 * read.
 */
static int64_t load(int64_t from, int64_t to)
{
	int64_t end = now_us() + WINDOW_US, limit = WINDOW_ROWS;
	struct window window = { 0 };

	to = to < end ? to : end;
	while (from < to && !load_rows(from, to, limit, &window))
		limit *= 2;
	return window.nr;
}

/*
 * Read the next rows. Nothing is fired meanwhile: so the more rows there are, the fewer are read at
 * a time, and the more often.
 */
static void load_more(void *arg, const struct twheel_task_info *info)
{
	static int64_t step = STEP_US;
	struct twheel_task task = { .fn = load_more };
	bool full = stuck || nr_armed >= WINDOW_ROWS;
	int64_t nr = full ? STEP_ROWS : load(horizon, horizon + 2 * step);

	(void)arg;
	(void)info;
	if (nr > STEP_ROWS && step > STEP_US)
		step /= 2;
	else if (nr < STEP_ROWS / 2 && step < WINDOW_US / 4)
		step *= 2;
	task.when_ns = step * NS_PER_US;
	if (twheel_sched_add(sched, &task, NULL)) {
		say(SAY_ERROR, "cannot arm a timer");
		abort();
	}
}

/*
 * The wall clock was set. Rows behind the horizon may be due now, so read them. Also called once at
 * the start, to arm the timerfd.
 */
static void clock_set(struct source *source)
{
	struct itimerspec never = { .it_value.tv_sec = INT32_MAX };
	uint64_t n;

	if (read(source->fd, &n, sizeof(n)) < 0 && errno == ECANCELED)
		say(SAY_INFO, "the clock was set");
	timerfd_settime(source->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
	load(horizon, INT64_MAX);
}

/* See clock_set(). If that is not possible, the program ends. */
static void watch_clock(void)
{
	static struct source clock = { .ready = clock_set };

	clock.fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (clock.fd < 0 || source_add(&clock)) {
		say(SAY_ERROR, "timerfd: %s", strerror(errno));
		exit(1);
	}
	clock_set(&clock);
}

/* ---- firings ------------------------------------------------------------------------ */

/*
 * Begin the next run that makes up for missed times. These are paced, so that runs that are on time
 * do not wait behind them. The jobs take turns, so that no job's wait behind many of another one.
 */
static void late_fired(void *arg, const struct twheel_task_info *task)
{
	struct late_job *of = TAILQ_FIRST(&late_turns);
	struct armed row;

	(void)arg;
	if (!of) {
		twheel_sched_cancel(sched, task->id, 0);
		late_timer = 0;
		return;
	}
	TAILQ_REMOVE(&late_turns, of, entry);
	TAILQ_INSERT_TAIL(&late_turns, of, entry);
	row = TAILQ_FIRST(&of->rows)->row;
	late_free(TAILQ_FIRST(&of->rows));
	fire(&row, false);
}

/*
 * Put a late row into the queue for late_fired(). The row may be there already: when all rows are
 * read again, those that wait in this queue are read again as well.
 */
static void pace(const struct armed *row)
{
	struct twheel_task task = { .fn = late_fired, .period_ns = LATE_EACH_NS };
	struct late *late;

	HASH_FIND(in_all, late_ones, &row->id, sizeof(row->id), late);
	if (late) {
		late->row = *row;
		return;
	}
	if (!late_timer && twheel_sched_add(sched, &task, &late_timer)) {
		core_reload();
		return;
	}
	late_add(row);
}

size_t core_paced(void)
{
	return HASH_CNT(in_all, late_ones);
}

/*
 * Does it take long to count the times of the job that have passed since @at? If there are days on
 * which it is not due, or a cron expression, that is done one by one. The first time may be the
 * last one before a weekend, so the shorter of two gaps counts.
 */
static bool takes_long(const struct job *job, int64_t at, int64_t now)
{
	int64_t next, then, gap;

	if (job->def.kind != KIND_CRON && !job->def.except)
		return false;
	next = next_due(&job->def, job->name, at);
	then = next ? next_due(&job->def, job->name, next) : 0;
	gap = then && then - next < next - at ? then - next : next - at;
	return next > at && (now - at) / gap > COUNTED_SOON;
}

/*
 * The timer of a row has expired. Check against memory whether the time of the row has come, and
 * plan what to do. With @paced, a late run goes through pace() first.
 */
static void fire(const struct armed *row, bool paced)
{
	struct job *job = job_by_id(row->job);
	int64_t now = now_us();
	struct plan plan;
	bool late;

	if (stuck) {		/* it is read again when the store can be written */
		core_reload();
		return;
	}
	if (stopping || !job || !job->name || job->broken || !store_owns(store, row->job) ||
	    run_find(row->id, row->at))
		return;
	if (row->id == job->due_id && (job->paused || row->at != job->due_at))
		return;
	if (row->at > now) {		/* the clock was set back */
		core_arm(row->id, row->job, row->at);
		return;
	}
	late = is_late(&job->def, row->at, now);
	if (paced && late &&
	    (job->def.missed == MISSED_ONCE || takes_long(job, row->at, now))) {
		pace(row);	/* the times are counted when its turn comes */
		return;
	}
	if (late)
		store_keep(store);	/* to count the times that were missed may take long */
	plan = plan_firing(&job->def, job->name, row->at, now, row->id != job->due_id);
	if (paced && plan.run && late)
		pace(row);
	else if (!run_fire(job, row->id, row->at, &plan, now))
		arm_row(row, now + UNDECIDED_US);
}

/* ---- turns -------------------------------------------------------------------------- */

struct op *core_op(enum op_type type, const struct job *job)
{
	struct lane *lane = &lanes[store->many ? job->id % LANES : 0];

	if (lane->nr_ops == lane->room) {
		lane->room = lane->room ? 2 * lane->room : 64;
		lane->ops = reallocarray(lane->ops, lane->room, sizeof(*lane->ops));
		if (!lane->ops) {
			say(SAY_ERROR, "no memory");
			abort();
		}
	}
	lane->ops[lane->nr_ops] = (struct op) { .type = type };
	return &lane->ops[lane->nr_ops++];
}

/* While the store cannot be written nothing fires, see fire(). All other timers continue. */
static void set_stuck(bool is)
{
	if (is && !stuck)
		say(SAY_ERROR, "the store cannot be written: %s; no run starts until it can",
		    store_error(store));
	if (!is && stuck)
		say(SAY_INFO, "the store can be written again");
	stuck = is;
}

bool core_stuck(void)
{
	return stuck;
}

/*
 * Send the store a turn: what was decided since the last one. If the last turn may have been
 * written, but no answer has said so, send that turn again unchanged: the store recognises it by
 * its number.
 */
static bool send_turn(struct lane *lane)
{
	if (!lane->nr_turn && lane->nr_ops) {
		lane->turn = lane->ops;
		lane->nr_turn = lane->nr_ops;
		lane->ops = NULL;
		lane->nr_ops = 0;
		lane->room = 0;
	}
	lane->sent = lane->nr_turn &&
		     !store_turn(store, (int)(lane - lanes), lane->turn, lane->nr_turn, now_us());
	if (lane->nr_turn && !lane->sent)
		set_stuck(true);
	return lane->sent || !lane->nr_turn;
}

/*
 * Others own our jobs now. The runs that we have begun are no longer ours: kill them, and begin as
 * another life.
 */
static void buried(void)
{
	say(SAY_ERROR, "%s: other daemons own its jobs now; starting again", store_error(store));
	runs_kill(true);
	begin_again();
}

/*
 * If the turn that was sent is written, continue with what depended on it, while the store does the
 * next one. Returns false if the turn is not written, or not yet.
 */
static bool end_turn(struct lane *lane, bool wait)
{
	struct op *now = lane->turn;
	size_t nr = lane->nr_turn;
	int err = lane->sent ? store_turned(store, (int)(lane - lanes), wait) : -ENOENT;

	if (err == -ENOENT || err == -EAGAIN)
		return true;
	lane->sent = false;
	if (err == -ESTALE)
		buried();
	if (err) {
		set_stuck(true);
		return false;
	}
	if (stuck && !store->many)
		set_stuck(false);
	lane->turn = NULL;
	lane->nr_turn = 0;
	if (store->many)
		send_turn(lane);
	count_turn(now, nr);
	for (size_t i = 0; i < nr; i++) {
		run_settle(&now[i]);
		store_keep(store);
	}
	free(now);
	return true;
}

/* Does the lane have operations that are not written yet? */
static bool is_pending(const struct lane *lane)
{
	return lane->sent || lane->nr_turn || lane->nr_ops;
}

/* Does any lane have operations that are not written yet? */
static bool any_pending(void)
{
	bool any = false;

	for (struct lane *lane = lanes; lane < lanes + LANES; lane++)
		any |= is_pending(lane);
	return any;
}

/* Send a turn in each lane before waiting for any of them, so that the store does all at once. */
bool core_flush(void)
{
	bool good = true;

	while (good && any_pending()) {
		for (struct lane *lane = lanes; lane < lanes + LANES && good; lane++)
			good = lane->sent || send_turn(lane);
		for (struct lane *lane = lanes; lane < lanes + LANES && good; lane++)
			good = end_turn(lane, true);
	}
	if (good)
		runs_begin();
	return good;
}

/* Continue with what is written, and with the next turns. Do not wait. */
static void write_turns(void)
{
	bool good = true;

	if (!store->many) {
		core_flush();
		return;
	}
	for (struct lane *lane = lanes; lane < lanes + LANES && good; lane++)
		good = end_turn(lane, false) && (lane->sent || send_turn(lane));
	if (good)
		runs_begin();
}

bool core_may_begin(void)
{
	int64_t now = boot_us();

	return !store->many || (now < next_beat && now < store->lease_end);
}

/*
 * Is a turn full that waits until the turn before it is written? Then nothing is added to it. There
 * is one exception: while the store cannot be written, runs still end and requests still come, so
 * then no turn counts as full.
 */
static bool is_full(void)
{
	bool full = false;

	for (struct lane *lane = lanes; lane < lanes + LANES; lane++)
		full |= lane->nr_ops >= TURN_OPS;
	return full && !stuck;
}

/* ---- history that expires ----------------------------------------------------------- */

/**
 * struct expired - rows of history that are being deleted
 * @rows:	the rows
 * @nr:		how many
 * @gone:	how many jobs went with their last rows
 */
struct expired {
	struct ended	rows[EXPIRE_ROWS];
	size_t		nr;
	size_t		gone;
};

/* A row of store_expired(): remember it, and remove its log. */
static void expired_row(void *arg, const struct ended *row)
{
	struct expired *expired = arg;

	expired->rows[expired->nr++] = *row;
	log_remove(&row->firing);
}

/* A job was deleted together with its last history. */
static void job_gone(void *arg, int64_t job)
{
	struct expired *expired = arg;

	expired->gone++;
	job_forget(job);
}

/*
 * Delete up to @most rows of old history, the logs before the rows: a row without a log is
 * harmless. Returns whether there may be more.
 */
static bool expire_some(struct expired *expired, size_t most)
{
	expired->nr = 0;
	expired->gone = 0;
	if (!store_expired(store, INT64_MIN, now_us(), (int64_t)most, expired_row, expired) &&
	    (!expired->nr ||
	     !store_drop(store, expired->rows, expired->nr, job_is_needed, job_gone, expired)))
		return expired->nr == most;
	say(SAY_ERROR, "cannot delete old history: %s", store_error(store));
	return false;
}

/*
 * expire_some(), of as many rows as can be deleted in EXPIRE_MOST_US. Rows go with one statement,
 * but a job that goes with its last row takes several, which may be round trips to a server.
 */
static bool expire_most(void)
{
	static struct expired expired;
	static size_t most = EXPIRE_ROWS;
	int64_t began = time_now(CLOCK_MONOTONIC);
	bool more = expire_some(&expired, most);

	if (expired.gone && time_now(CLOCK_MONOTONIC) - began > EXPIRE_MOST_US * NS_PER_US)
		most = most / 4 + 1;
	else if (more)
		most = most * 2 < EXPIRE_ROWS ? most * 2 : EXPIRE_ROWS;
	return more;
}

/**
 * struct looked - rows of history that have expired, and have lost their logs
 * @nr:		how many
 * @last:	when the last of them expired
 */
struct looked {
	int64_t	nr;
	int64_t	last;
};

/* A row of store_expired(): remove its log only. */
static void expired_log(void *arg, const struct ended *row)
{
	struct looked *looked = arg;

	looked->nr++;
	looked->last = row->drop;
	log_remove(&row->firing);
}

/*
 * The store cannot be written: perhaps because its disk is full of logs. Those that have expired
 * can go before their rows do. Each call looks at the next rows; after the last ones, it begins
 * with the first ones again. Returns whether there are more.
 */
static bool make_room(void)
{
	static int64_t from = INT64_MIN;
	struct looked looked = { .last = from };
	bool more = !store_expired(store, from, now_us(), ROOM_ROWS, expired_log, &looked) &&
		    looked.nr == ROOM_ROWS;

	from = more ? looked.last + (looked.last == from) : INT64_MIN;
	return more;
}

/* A row of store_expired(): note that there is one. */
static void expired_any(void *arg, const struct ended *row)
{
	(void)row;
	*(bool *)arg = true;
}

/* May there be history that has expired? This question does not disturb turns. */
static bool may_expire(void)
{
	bool any = false;

	return store_expired(store, INT64_MIN, now_us(), 1, expired_any, &any) || any;
}

/*
 * Delete history that has expired, for about EXPIRE_MOST_US: once a second; or in each call, as
 * long as the last one has left some. Deleting needs to know which jobs follow others, so bring
 * memory up to date first.
 */
static void expire(void *arg, const struct twheel_task_info *task)
{
	static unsigned int calls;
	static bool more;
	int64_t end = time_now(CLOCK_MONOTONIC) + EXPIRE_MOST_US * NS_PER_US;

	(void)arg;
	(void)task;
	if (!more && ++calls % EXPIRE_LOOKS)
		return;
	more = false;
	if (stuck && !store->many)
		make_room();
	if (stuck)
		return;
	if (!may_expire())
		return;
	core_refresh();
	do
		more = core_flush() && expire_most();
	while (more && time_now(CLOCK_MONOTONIC) < end);
}

/* Has the store a row for this firing, so that its log stays? If the store cannot be read, yes. */
static bool is_known(const struct firing *firing)
{
	bool known;

	return store_known(store, firing, &known) || known;
}

/*
 * From the start on, and once an hour: remove logs that nothing names any more, PRUNE_FILES a
 * second. They are of attempts that were made again after their daemon had died, of runs that ended
 * elsewhere, and of history that another daemon has deleted.
 */
static void prune(void *arg, const struct twheel_task_info *task)
{
	static int64_t next;
	static bool more;
	int64_t now = time_now(CLOCK_MONOTONIC);

	(void)arg;
	(void)task;
	if (stuck || (!more && now < next))
		return;
	if (!more)
		next = now + PRUNE_NS;
	more = log_prune(is_known, PRUNE_FILES);
}

/* ---- the loop ----------------------------------------------------------------------- */

int source_add(struct source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event) ? -errno : 0;
}

void source_want(struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (!events)
		epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
	else if (epoll_ctl(epoll, EPOLL_CTL_MOD, source->fd, &event))
		epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event);
}

void source_remove(struct source *source)
{
	if (source->fd < 0)
		return;
	epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}

/* The process may have ended. */
static void end_ready(struct source *source)
{
	struct child *child = container_of(source, struct child, end);

	child->ready(child);
}

static void look_again(void *arg, const struct twheel_task_info *task)
{
	struct child *child = arg;

	(void)task;
	child->look = 0;
	child_watch(child);
	child->ready(child);
}

void child_watch(struct child *child)
{
	struct twheel_task task = { .fn = look_again, .arg = child, .when_ns = NS_PER_S };

	child->end.ready = end_ready;
	if (child->end.fd < 0)
		child->end.fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->end.fd >= 0 && !source_add(&child->end))
		return;
	if (twheel_sched_add(sched, &task, &child->look)) {
		say(SAY_ERROR, "cannot arm a timer");
		abort();
	}
}

void child_forget(struct child *child)
{
	source_remove(&child->end);
	if (child->look)
		twheel_sched_cancel(sched, child->look, 0);
	child->look = 0;
	child->pid = 0;
}

/* Call @fn again and again, @ns after it has returned. */
static void every(int64_t ns, void (*fn)(void *arg, const struct twheel_task_info *task))
{
	struct twheel_task task = {
		.fn = fn, .when_ns = ns, .period_ns = ns, .flags = TWHEEL_TASK_DELAY,
	};

	if (twheel_sched_add(sched, &task, NULL)) {
		say(SAY_ERROR, "cannot arm a timer");
		exit(1);
	}
}

/* A row of store_running(). */
static void found(void *arg, const struct firing *firing)
{
	(void)arg;
	run_found(firing);
}

/* ---- lives -------------------------------------------------------------------------- */

/* Report @err, of reading the store, unless it is 0. Returns whether there was one. */
static bool unreadable(int err)
{
	if (err)
		say(SAY_ERROR, "the store cannot be read: %s", store_error(store));
	return err;
}

/*
 * We own new parts: read their jobs, and take over the firings that a dead life has left there.
 * Returns false if the store cannot be read.
 */
static bool claim(void)
{
	uint64_t new = store->parts & ~parts;

	if (!new) {
		parts = store->parts;
		return true;
	}
	if (unreadable(registry_load(new)) || unreadable(jobs_plan_again()) ||
	    unreadable(store_running(store, new, found, NULL)) || unreadable(pool_found(new)))
		return false;
	parts = store->parts;
	runs_found();
	core_reload();
	return true;
}

void core_take_over(int64_t job)
{
	parts &= ~((uint64_t)1 << (job & (PARTS - 1)));
}

/* Bring memory up to date with one change by another life. Returns 0 or an error of the store. */
static int news_item(void *arg, const struct news *news)
{
	int err = 0;

	(void)arg;
	switch (news->type) {
	case NEWS_JOB:
		err = job_refresh(news->job);
		break;
	case NEWS_DUE:
		core_arm(news->id, news->job, news->at);
		break;
	case NEWS_KILL:
		if (run_find(news->id, news->at))
			run_kill(run_find(news->id, news->at), OUTCOME_KILLED);
		break;
	case NEWS_DAYS:
		err = days_load();
		break;
	case NEWS_TASK:
		pool_changed();
		break;
	}
	return err;
}

/*
 * Read what other lives have changed. If a connection was lost, notifications may be lost too: then
 * read everything again. If something cannot be read, the next call reads everything again, too:
 * until then memory is out of date. No turn may be pending, so that memory is as the store.
 */
static bool read_news(void)
{
	bool lost = store->lost, good;

	store->lost = false;
	store->mail = false;
	good = !unreadable(store_news(store, news_item, NULL));
	if (good && lost) {
		good = !unreadable(registry_load(PARTS_ALL));
		core_reload();
	}
	store->lost |= !good;
	return good;
}

void core_refresh(void)
{
	if (store->many && !stuck && core_flush() && !read_news())
		set_stuck(true);
}

/*
 * Renew the lease, and do what belongs to that: take over parts, and read news. If there are
 * neither new parts nor news, turns continue meanwhile.
 */
static void beat(void)
{
	bool was_stuck = stuck;
	int err;

	next_beat = boot_us() + store->lease / 3;
	err = store_beat(store);
	if (err == -ESTALE)
		buried();
	if (!err && stuck)
		set_stuck(false);
	if (!err && !was_stuck && !store->lost && !store->mail && parts == store->parts)
		return;
	if (err || !core_flush() || !claim() || !read_news())
		set_stuck(true);
}

/* Look for news without a notification. Turns must be over to read news, but not to look for it. */
static void look(void)
{
	next_look = boot_us() + LOOK_US;
	if (store_news(store, NULL, NULL) || store->lost)
		core_refresh();
}

/* Wait up to @ms for something from the store: the answer to a turn, or else news ("mail"). */
static void hear_store(int ms)
{
	struct epoll_event events[LANES + 1];
	int n = epoll_wait(connections, events, LANES + 1, ms);

	for (int i = 0; i < n; i++)
		store->mail |= events[i].data.u32 == LANES || !lanes[events[i].data.u32].sent;
}

/* The source of the store's connections is readable. */
static void news_ready(struct source *source)
{
	(void)source;
	hear_store(0);
}

/*
 * Watch the store's connections, if they are new. The old ones were closed, so nothing watches
 * them.
 */
static void watch_store(void)
{
	static unsigned int connection;

	if (store->fds[0] < 0 || connection == store->connection)
		return;
	connection = store->connection;
	for (uint32_t i = 0; i <= LANES; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		epoll_ctl(connections, EPOLL_CTL_ADD, store->fds[i], &event);
	}
}

/* If the lease has ended, the others may run our jobs by now: kill what must not run twice. */
static void mind_the_lease(void)
{
	if (boot_us() > store->lease_end)
		runs_kill(false);
}

/* Join the store. If there is no room on its disk, old logs may go first. */
static int join(void)
{
	int64_t next, old = old_life(&next);
	int err = store_join(store, old, next);

	for (bool more = true; err == -ENOSPC && more;) {
		more = make_room();
		err = store_join(store, old, next);
	}
	return err;
}

/* Join the store and read it. If that fails, the program ends. */
static void begin_life(void)
{
	int err = join();

	if (unreadable(err) || unreadable(registry_load(PARTS_ALL)) ||
	    unreadable(store_beat(store)) || !claim())
		give_up(err);
	keep_life();
	if (!core_flush())
		give_up(0);
	next_beat = boot_us() + store->lease / 3;
}

void core_open(void)
{
	struct twheel_sched_options options = { .clockid = CLOCK_BOOTTIME };
	static struct source news = { .ready = news_ready };
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	connections = epoll_create1(EPOLL_CLOEXEC);
	news.fd = connections;
	err = twheel_sched_open(&sched, &options);
	if (epoll < 0 || err || source_add(&news)) {
		say(SAY_ERROR, "cannot make a wheel: %s", strerror(err ? -err : errno));
		exit(1);
	}
	epoll_ctl(epoll, EPOLL_CTL_ADD, twheel_sched_fd(sched), &event);
}

void core_start(void)
{
	begin_life();
	load(0, INT64_MAX);
	watch_clock();
	load_more(NULL, NULL);
	every(EXPIRE_NS, expire);
	prune(NULL, NULL);
	every(NS_PER_S, prune);
	pool_start();
}

/* Tell all runs to end. If called a second time, end the program without waiting for them. */
void core_stop(void)
{
	if (stopping)
		_exit(1);
	stopping = true;
	runs_stop();
}

/*
 * Handle events, one for each epoll_wait(): so no event can belong to a source that the handler of
 * another event has removed. If a turn is full, wait only for the store.
 */
void core_wait(int ms)
{
	struct epoll_event event;
	int n;

	if (is_full()) {
		hear_store(ms);
		return;
	}
	n = epoll_wait(epoll, &event, 1, ms);
	for (int i = 0; n > 0 && i < EVENTS && !is_full(); i++) {
		struct source *source = event.data.ptr;

		if (source)
			source->ready(source);
		else
			twheel_sched_run(sched, TIMERS, 0);
		n = epoll_wait(epoll, &event, 1, 0);
	}
}

/*
 * Arm timers for rows that have none: because rows were added whose ids are not known, or because
 * the horizon has passed, as after a suspend.
 */
static void load_what_is_due(void)
{
	if (reload) {
		reload = false;
		load(0, INT64_MAX);
	} else if (horizon < now_us() && nr_armed < WINDOW_ROWS / 4) {
		load(horizon, INT64_MAX);
	}
}

/*
 * Do what must not wait until all expired timers have been handled, which may be many: watch the
 * lease, renew it in time or if that is urgent, and read news.
 */
static void look_at_store(void)
{
	int64_t now = boot_us();

	mind_the_lease();
	if (!store->many)
		return;
	if (stuck || store->hurry || store->lost || now >= next_beat)
		beat();
	else if (store->mail)
		core_refresh();
	else if (now >= next_look)
		look();
	watch_store();
}

/* How long to wait for events, in ms. */
static int patience(void)
{
	int64_t next = next_look < next_beat ? next_look : next_beat;

	if (stuck || !store->many)
		return stuck ? STUCK_MS : -1;
	next -= boot_us();
	return next > 0 ? (int)(next / US_PER_MS) + 1 : 0;
}

/* See store.seen. Whatever is planned is planned in the loop. */
static void note_time(void)
{
	int64_t now = now_us();

	if (now > store->seen)
		store->seen = now;
}

void core_loop(void)
{
	while (!stopping || !runs_stopped()) {
		note_time();
		look_at_store();
		if (!stuck && parts != store->parts && core_flush())
			claim();
		if (!stuck)
			load_what_is_due();
		write_turns();
		api_turn();
		core_wait(patience());
	}
	core_flush();
	store_leave(store);
}
