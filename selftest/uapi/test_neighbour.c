// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * One user's timers must not make another user's timers late.
 *
 * The victim is a task of user VICTIM that has a timer in each tick and does nothing but read its
 * events. Its CPU is idle except for the attack. The lateness of an event is the time at which
 * read() returns it, minus its deadline; if several periods are in one event, the deadline of the
 * first. There are two victims, each in a scene of its own:
 *
 *	preloaded	its timers are one-shots, all of which are armed before the first is due
 *	periodic	it has a single timer, which is re-armed when its event is read
 *
 * The attackers are other users. Each opens files, arms a one-shot timer in each tick of each file,
 * and sleeps until all is over. All ticks are aligned, so the timers of all files are due at the
 * same time as the victim's.
 *
 * How late the victim's events may be is measured in the same run with timerfd(2). Then the victim
 * reads a periodic timerfd, and the attackers have timerfds instead of files: as many, with the
 * same period and phase. A periodic timerfd is not re-armed before it is read. So there are two
 * ways to compare:
 *
 *	unread	the attackers sleep, as those of twheel do. Each timerfd fires once, and
 *		never again. The lateness is printed but bounds nothing: this is no attack. If the
 *		run is "counted" (see below), it is left out
 *	read	a task of each attacker, on the victim's CPU and as nice as the victim, waits
 *		for its timerfds with an edge-triggered epoll and reads all that are ready.
 *		There is no cheaper way to have a timerfd fire in each period. This is the
 *		bound: the victim's events may not be later with twheel than with timerfd,
 *		neither on average nor at worst
 *
 * The longest lateness is only bounded beside one user. Several users together may want more than
 * half of the CPU, and then the victim waits for its part. However early timerfd's events were, an
 * event may be late by ONCE if the tick is FINE, or if the victim is preloaded: then its own wheel
 * moves up to 256 timers in a tick before one expires. In these scenes the longest of a thousand
 * latenesses is that of one event which met both the kernel's own tick and a turn of the attackers'
 * with 64 moves, and an event of a timerfd may have met neither.
 *
 * The attacker's task that reads timerfds competes with the victim for the CPU; the sleeping owner
 * of a file does not. Reading is part of the cost of a timerfd that fires in each period. It costs
 * the victim little, since the scheduler prefers a task that mostly sleeps. If the task cannot read
 * all timerfds in time, fewer fire: how many fired is printed, too.
 *
 * A second victim does nothing but count, and belongs to yet another user. It must get half of the
 * CPU. test_attack explains how that is measured.
 *
 * In some scenes the victim is on another clock than the attackers, or a crowd of users have a file
 * each and do nothing. The victim's lateness is then compared with that in the same scene without
 * the change: it may be at most TWICE as late on average, and no event may be later than a pass
 * takes.
 *
 * In other scenes each of an attacker's files belongs to another user. Any user with a range of
 * user ids in /etc/subuid can arrange that, and most users have one. Then the victim is one of the
 * crowd, and gets an equal part, as SECURITY.md says. There only the share of the task that counts
 * is judged.
 *
 *	test_neighbour [counted] [NUMBER...]
 *
 * "counted" says that an instruction takes a ns (ICOUNT=1 of scripts/machines/qemu.sh). Then the
 * victim's events may not be later than MEAN_MAX on average, and beside one user no event of the
 * periodic victim may be later than LATEST: a user who takes little does not wait because others
 * have used up a pass. NUMBERs select tests; without one, all are run.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define VICTIM		1001
#define COUNTER		1002
#define ATTACKER	1003		/* the first of them */
#define USERS_MAX	8
#define SCENES		100
#define IDLER		10000		/* the first of them */
#define OWNER		20000		/* the first of them */
#define FILES_MAX	2000
#define US		1000ULL
#define COARSE		MS
#define FINE		(100 * US)
#define REST		(100 * MS)	/* the counter is measured before an attack */
#define MEAN_MAX	(150 * US)
#define PASS		200.0		/* us */
#define ONCE		40.0		/* us */
#define LATEST		55.0		/* us */
#define TWICE		2.0
#define SHARE		0.50
#define SETTLE_MS	3000

static bool counted;	/* a ns is an instruction */
static int cpu;		/* the last one; this program is on CPU 0 */

/**
 * struct scene - an attack
 * @users:	how many attackers there are
 * @files:	how many files, or timerfds, each attacker has
 * @per_tick:	how many timers a file has in each tick
 * @tick:	the tick of all files, and the period of all timerfds, in ns
 * @ticks:	how many ticks the attack lasts
 * @cgroups:	whether each user has a cgroup
 * @idle:	so many other users have a file each, whose timer is due in an hour
 * @owners:	so many users open the files by turns; 0 if each attacker opens its own
 * @boottime:	the victim's clock is CLOCK_BOOTTIME, and the attackers' CLOCK_MONOTONIC
 */
struct scene {
	u32	users, files, per_tick;
	u64	tick;
	u32	ticks;
	bool	cgroups;
	u32	idle, owners;
	bool	boottime;
};

/* The present scene. */
static struct scene scene;

static u64 nr_timers(void)
{
	return (u64)scene.users * scene.files * scene.per_tick * scene.ticks;
}

/**
 * struct shared - what the tasks of a scene tell each other
 * @nr_ready:	how many tasks have opened what they need
 * @nr_armed:	how many attackers have armed their timers
 * @due:	the first tick; 0 until it is known
 * @end:	when the attack ends
 * @nr_fired:	how many of the attackers' timers have expired
 * @nr_events:	how many events the victim has read
 * @sum:	the sum of their latenesses
 * @longest:	the longest of their latenesses
 * @count:	how many units of work the counter has done
 */
struct shared {
	u32	nr_ready, nr_armed;
	u64	due, end;
	u64	nr_fired;
	u64	nr_events, sum, longest;
	u64	count;
};

static struct shared *s;

static u64 now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* ---- what all tasks of a scene do -------------------------------------------------- */

static const char *cgroup_of(int uid)
{
	static char name[32];

	snprintf(name, sizeof(name), "user%d", uid);
	return name;
}

static void enter(int uid)
{
	const struct rlimit many = { FILES_MAX + 100, FILES_MAX + 100 };

	if (scene.cgroups)
		cgroup_join(cgroup_of(uid));
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
	if (uid)
		become((uid_t)uid);
}

/* Everything is open. Wait for the others, and for the first tick. */
static void wait_due(void)
{
	__atomic_add_fetch(&s->nr_ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&s->due, __ATOMIC_SEQ_CST))
		sleep_ms(1);
}

static void is_armed(void)
{
	__atomic_add_fetch(&s->nr_armed, 1, __ATOMIC_SEQ_CST);
}

static void have_fired(u64 nr)
{
	__atomic_add_fetch(&s->nr_fired, nr, __ATOMIC_SEQ_CST);
}

static int open_file(int clock)
{
	const struct twheel_setup set = { .clockid = clock, .tick_ns = scene.tick };
	int fd = dev_open(0);

	CHECK_EQ(setup(fd, &set), 0);
	return fd;
}

/* Open a file as user @uid. The caller is root. */
static int open_file_as(u32 uid)
{
	int fd;

	CHECK_EQ(setresuid(uid, 0, 0), 0);
	fd = open_file(CLOCK_MONOTONIC);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	return fd;
}

static int open_timerfd(int flags)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | flags);

	if (fd < 0)
		bail("timerfd_create");
	return fd;
}

static struct timespec timespec(u64 ns)
{
	return (struct timespec){ (time_t)(ns / SEC), (long)(ns % SEC) };
}

/* Arm a timerfd for each tick from @due on. */
static void arm_timerfd(int fd)
{
	const struct itimerspec i = { timespec(scene.tick), timespec(s->due) };

	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &i, NULL), 0);
}

/* ---- attackers ------------------------------------------------------------------- */

static int files[FILES_MAX];

/* Arm one-shots: scene.per_tick in each tick from @due on. */
static void arm_file(int fd)
{
	static struct twheel_op ops[1000];
	struct twheel_batch b = { .ops = (uintptr_t)ops, .op_size = sizeof(ops[0]) };
	const u32 nr = scene.ticks * scene.per_tick;

	for (u32 n = 0; n < nr; n += (u32)b.nr) {
		b.nr = nr - n < ARRAY_SIZE(ops) ? nr - n : ARRAY_SIZE(ops);
		for (u32 i = 0; i < b.nr; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
				.expires_ns = s->due + (n + i) / scene.per_tick * scene.tick };
		b.nr_done = 0;
		CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &b) && b.nr_done == b.nr);
		CHECK_EQ(b.nr_failed, 0);
	}
}

static void attack_files(int uid)
{
	struct twheel_info i;

	enter(scene.owners ? 0 : uid);
	for (u32 f = 0; f < scene.files; f++)
		files[f] = scene.owners ? open_file_as(OWNER + f % scene.owners) :
					  open_file(CLOCK_MONOTONIC);
	wait_due();
	for (u32 f = 0; f < scene.files; f++)
		arm_file(files[f]);
	is_armed();
	sleep_until(s->end);
	for (u32 f = 0; f < scene.files; f++) {
		info(files[f], &i);
		have_fired(i.nr_expired);
	}
}

static void open_timerfds(int uid)
{
	enter(uid);
	for (u32 f = 0; f < scene.files; f++)
		files[f] = open_timerfd(TFD_NONBLOCK);
	wait_due();
	for (u32 f = 0; f < scene.files; f++)
		arm_timerfd(files[f]);
	is_armed();
}

static void attack_unread(int uid)
{
	open_timerfds(uid);
	sleep_until(s->end);
	have_fired(scene.files);
}

static void attack_read(int uid)
{
	static struct epoll_event ready[FILES_MAX];
	int ep = epoll_create1(EPOLL_CLOEXEC);
	u64 periods;

	open_timerfds(uid);
	for (u32 f = 0; f < scene.files; f++) {
		ready[0] = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.fd = files[f] };
		CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, files[f], &ready[0]), 0);
	}
	while (now() < s->end) {
		int n = epoll_wait(ep, ready, FILES_MAX, 10);

		for (int i = 0; i < n; i++)
			have_fired(read(ready[i].data.fd, &periods, sizeof(periods)) > 0);
	}
}

/* ---- those who are attacked ------------------------------------------------------ */

static void is_late(u64 late)
{
	s->nr_events++;
	s->sum += late;
	if (late > s->longest)
		s->longest = late;
}

static int clock_of_victim(void)
{
	return scene.boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

static u64 read_periods_of_file(int fd, u64 deadline)
{
	struct twheel_event ev = { 0 };

	CHECK_EQ(read(fd, &ev, sizeof(ev)), sizeof(ev));
	CHECK_EQ(ev.expires_ns, deadline);
	return ev.count;
}

static u64 read_periods_of_timerfd(int fd, u64 deadline)
{
	u64 periods = 0;

	(void)deadline;
	CHECK_EQ(read(fd, &periods, sizeof(periods)), sizeof(periods));
	return periods;
}

static void wait_for_events(int fd, u64 (*read_periods)(int fd, u64 deadline))
{
	u64 next = s->due;

	while (next < s->end && !failed()) {
		u64 periods = read_periods(fd, next);
		u64 time = now();

		CHECK(periods && time >= next);
		is_late(time - next);
		next += periods * scene.tick;
	}
}

static void victim_preloaded(int uid)
{
	int fd;

	enter(uid);
	fd = open_file(clock_of_victim());
	wait_due();
	for (u32 i = 0; i < scene.ticks; i++)
		add_with(fd, TWHEEL_F_ABS, s->due + i * scene.tick, 0, 0);
	wait_for_events(fd, read_periods_of_file);
}

static void victim_periodic(int uid)
{
	int fd;

	enter(uid);
	fd = open_file(clock_of_victim());
	wait_due();
	add_with(fd, TWHEEL_F_ABS, s->due, scene.tick, 0);
	wait_for_events(fd, read_periods_of_file);
}

static void victim_of_timerfd(int uid)
{
	int fd;

	enter(uid);
	fd = open_timerfd(0);
	wait_due();
	arm_timerfd(fd);
	wait_for_events(fd, read_periods_of_timerfd);
}

/*
 * The attackers need the CPU before the counter begins. With ICOUNT=1 this also saves the
 * emulator's time.
 */
static void counter(int uid)
{
	enter(uid);
	wait_due();
	sleep_until(s->due - REST - REST / 10);
	while (now() < s->end) {
		for (int i = 0; i < 4000; i++)
			__asm__ volatile("");
		__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELAXED);
	}
}

/* ---- those who do nothing --------------------------------------------------------- */

static void idlers(int nr)
{
	enter(0);
	while (nr--)
		add(open_file_as(IDLER + (u32)nr), HOUR, 0);
	is_armed();
	sleep_until(now() + HOUR);
}

/* ---- a scene ----------------------------------------------------------------------- */

struct cast {
	const char	*name;
	void		(*attacker)(int uid);
	void		(*victim)(int uid);
	int		uid;	/* the victim's */
};

static const struct cast preloaded = { "preloaded", attack_files, victim_preloaded, VICTIM };
static const struct cast periodic = { "periodic", attack_files, victim_periodic, VICTIM };
static const struct cast unread = { "timerfd, unread", attack_unread, victim_of_timerfd, VICTIM };
static const struct cast timerfd = { "timerfd, read", attack_read, victim_of_timerfd, VICTIM };
static const struct cast counts = { "counter", attack_files, counter, COUNTER };

/**
 * struct outcome - of a scene
 * @mean:	the mean lateness of the victim's events, in us
 * @longest:	the longest lateness of the victim's events, in us
 * @fired:	which part of the attackers' timers expired, of those that were due
 * @share:	the counter's share of the CPU
 */
struct outcome {
	double	mean, longest, fired, share;
};

static pid_t pids[1 + USERS_MAX];

static void make_cgroup(int uid)
{
	CHECK(cgroup_make(cgroup_of(uid)));
	cgroup_set(cgroup_of(uid), "cpu.weight", 100);
	cgroup_set(cgroup_of(uid), "memory.max", 512 << 20);
}

static void begin(const struct cast *cast)
{
	memset(s, 0, sizeof(*s));
	for (u32 i = 0; i <= scene.users; i++) {
		int uid = i ? ATTACKER + (int)i - 1 : cast->uid;

		if (scene.cgroups)
			make_cgroup(uid);
		pids[i] = start_task(i ? cast->attacker : cast->victim, cpu, uid);
	}
}

static void end(const struct cast *cast)
{
	for (u32 i = 0; i <= scene.users; i++) {
		int status = -1;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && !status);
		if (scene.cgroups)
			cgroup_remove(cgroup_of(i ? ATTACKER + (int)i - 1 : cast->uid));
	}
}

static void wait_number(u32 *n, u32 wanted)
{
	for (u32 ms = 0; ms < WAIT_MS && __atomic_load_n(n, __ATOMIC_SEQ_CST) < wanted; ms++)
		sleep_ms(1);
	CHECK_EQ(*n, wanted);
}

/* Choose the first tick, so late that the attackers have time to arm their timers. */
static void set_time(void)
{
	u64 due = (now() + SEC / 2 + REST + nr_timers() * 5 * US) / scene.tick * scene.tick;

	wait_number(&s->nr_ready, scene.users + 1);
	s->end = due + scene.ticks * scene.tick;
	__atomic_store_n(&s->due, due, __ATOMIC_SEQ_CST);
	wait_number(&s->nr_armed, scene.users);
	CHECK(now() < due - REST);
}

/* The counter's rate, in units of work per ns. */
static double rate(u64 begin, u64 end)
{
	u64 count;

	sleep_until(begin);
	begin = now();
	count = __atomic_load_n(&s->count, __ATOMIC_RELAXED);
	sleep_until(end);
	count = __atomic_load_n(&s->count, __ATOMIC_RELAXED) - count;
	return (double)count / (double)(now() - begin);
}

/*
 * The counter's share of the CPU. Only for the counter: a victim may be on the same CPU, and would
 * read its first event later if this program woke up at that moment.
 */
static double share_of_counter(void)
{
	double before = rate(s->due - REST, s->due);

	return before ? rate(s->due, s->end) / before : 0;
}

static pid_t idle_pid;

/* Begin scene @what. It is the present scene until scene_end(). */
static void scene_begin(const struct scene *what)
{
	scene = *what;
	if (!scene.idle)
		return;
	memset(s, 0, sizeof(*s));
	idle_pid = start_task(idlers, cpu, (int)scene.idle);
	wait_number(&s->nr_armed, 1);
	sleep_ms(SETTLE_MS);
}

static void scene_end(void)
{
	if (!scene.idle)
		return;
	kill(idle_pid, SIGKILL);
	waitpid(idle_pid, NULL, 0);
	sleep_ms(SETTLE_MS);
}

static struct outcome play(const struct cast *cast)
{
	struct outcome o = { 0 };

	begin(cast);
	set_time();
	if (cast == &counts)
		o.share = share_of_counter();
	end(cast);
	if (s->nr_events) {
		o.mean = (double)s->sum / (double)s->nr_events / US;
		o.longest = (double)s->longest / US;
	}
	o.fired = nr_timers() ? (double)s->nr_fired / (double)nr_timers() : 0;
	return o;
}

static bool same_scene(const struct scene *a, const struct scene *b)
{
	return a->users == b->users && a->files == b->files && a->per_tick == b->per_tick &&
	       a->tick == b->tick && a->ticks == b->ticks && a->cgroups == b->cgroups &&
	       a->idle == b->idle && a->owners == b->owners && a->boottime == b->boottime;
}

/* The outcomes so far, for measured(). */
static struct known {
	struct scene		scene;
	const struct cast	*cast;
	struct outcome		outcome;
} known[SCENES];

static u32 nr_known;

static struct outcome told(const struct cast *cast)
{
	struct outcome o = play(cast);

	CHECK(s->nr_events > 0);
	diag("%4llu us, %u x %4u, %-15s: late %7.1f us, at most %7.1f; %4llu events; fired %.0f %%",
	     scene.tick / US, scene.users, scene.files, cast->name, o.mean, o.longest,
	     s->nr_events, o.fired * 100);
	known[nr_known++ % SCENES] = (struct known){ scene, cast, o };
	return o;
}

/*
 * With what another scene is compared. Where the run is counted, a scene is much the same each
 * time. So if it was played before, its outcome is known.
 */
static struct outcome measured(const struct cast *cast)
{
	for (u32 i = 0; counted && i < nr_known && i < SCENES; i++)
		if (known[i].cast == cast && same_scene(&known[i].scene, &scene))
			return known[i].outcome;
	return told(cast);
}

static struct outcome on_time(const struct cast *cast)
{
	struct outcome o = told(cast);

	CHECK(!counted || o.mean * US <= MEAN_MAX);
	return o;
}

static double longest_allowed(const struct cast *cast, double measured)
{
	bool once = scene.tick == FINE || cast == &preloaded;

	return once && measured < ONCE ? ONCE : measured;
}

/*
 * The attackers may have to wait, but they must not be stopped. If only the longest lateness is too
 * long, the scene is played again: that of a single event may be due to some work of the kernel's
 * that comes each few seconds. What belongs to the scene comes again.
 */
static void judge(const struct cast *cast, struct outcome o, const struct outcome *measure)
{
	double allowed = longest_allowed(cast, measure->longest);
	bool good = CHECK(o.mean <= measure->mean);

	good &= CHECK(o.fired > 0.1);
	if (counted && cast == &periodic && allowed > LATEST)
		allowed = LATEST;
	if (scene.users == 1 && o.longest > allowed)
		o = on_time(cast);
	good &= CHECK(scene.users > 1 || o.longest <= allowed);
	if (!good)
		diag("	of the victim that is %s", cast->name);
}

/*
 * The victim must not be later than with timerfds. Returns which part of the attackers' timers
 * fired.
 */
static double late(const struct scene *what)
{
	struct outcome one, other, measure;

	scene_begin(what);
	one = on_time(&preloaded);
	other = on_time(&periodic);
	if (!counted)
		told(&unread);
	measure = measured(&timerfd);
	if (scene.users) {
		judge(&preloaded, one, &measure);
		judge(&periodic, other, &measure);
	}
	scene_end();
	return one.fired < other.fired ? one.fired : other.fired;
}

/* The same; and the attackers, who want less than their share, must get all of it. */
static void all_in_time(const struct scene *what)
{
	CHECK(late(what) > 0.95);
}

/* The victim must not be late, in a scene with which no timerfd can be compared. */
static void late_on_its_own(const struct scene *what)
{
	scene_begin(what);
	on_time(&preloaded);
	on_time(&periodic);
	scene_end();
}

static void compare(const struct cast *cast, const struct scene *what, const struct scene *plain)
{
	struct outcome one, other;

	scene_begin(what);
	one = on_time(cast);
	scene_end();
	scene_begin(plain);
	other = measured(cast);
	scene_end();
	CHECK(one.mean <= TWICE * other.mean);
	/* The longest lateness of the preloaded victim is only printed, as in other scenes. */
	CHECK(cast != &periodic || one.longest <= (other.longest > PASS ? other.longest : PASS));
}

/* The victim's clock, and users who do nothing, must make little difference. */
static void no_later(const struct scene *what)
{
	struct scene plain = *what;

	plain.boottime = false;
	plain.idle = 0;
	compare(&preloaded, what, &plain);
	compare(&periodic, what, &plain);
}

/* The counter of another user must get its share. */
static struct outcome shared_out(const struct scene *what)
{
	struct outcome o;

	scene_begin(what);
	o = play(&counts);
	diag("%4llu us, %u x %4u, %5u in a tick: the counter has %.3f of the CPU; fired %.1f %%",
	     scene.tick / US, scene.users, scene.files, scene.per_tick, o.share, o.fired * 100);
	CHECK(o.share >= SHARE);
	scene_end();
	return o;
}

/* ---- tests --------------------------------------------------------------------------- */

/* A scene. Other members may be added: OF(COARSE, 300, 1, 50, 1, .idle = 1000) */
#define OF(tick_ns, nr, u, f, per, ...) (&(struct scene){ .tick = (tick_ns), .ticks = (nr),	\
	.users = (u), .files = (f), .per_tick = (per), __VA_ARGS__ })
#define COARSE_TICKS(u, f, ...)	OF(COARSE, 300, u, f, 1, __VA_ARGS__)
#define FINE_TICKS(u, f, ...)	OF(FINE, 1000, u, f, 1, __VA_ARGS__)
#define ONE_FILE(...)		OF(COARSE, 60, 1, 1, 10000, __VA_ARGS__)

static void coarse_0(void)	{ late(COARSE_TICKS(0, 0)); }
static void coarse_50(void)	{ all_in_time(COARSE_TICKS(1, 50)); }
static void coarse_200(void)	{ late(COARSE_TICKS(1, 200)); }
static void coarse_1000(void)	{ late(COARSE_TICKS(1, 1000)); }
static void fine_0(void)	{ late(FINE_TICKS(0, 0)); }
static void fine_4(void)	{ all_in_time(FINE_TICKS(1, 4)); }
static void fine_16(void)	{ late(FINE_TICKS(1, 16)); }
static void fine_64(void)	{ late(FINE_TICKS(1, 64)); }
static void one_file(void)	{ late_on_its_own(ONE_FILE()); }

static void several_coarse(void) { late(COARSE_TICKS(8, 100)); }
static void several_fine(void)	{ late(FINE_TICKS(4, 4)); }

static void apart_1000(void)	{ late(COARSE_TICKS(1, 1000, .cgroups = true)); }
static void apart_fine(void)	{ late(FINE_TICKS(1, 64, .cgroups = true)); }
static void apart_several(void)	{ late(COARSE_TICKS(8, 100, .cgroups = true)); }

static void clock_200(void)	{ no_later(COARSE_TICKS(1, 200, .boottime = true)); }
static void clock_1000(void)	{ no_later(COARSE_TICKS(1, 1000, .boottime = true)); }
static void clock_fine(void)	{ no_later(FINE_TICKS(1, 64, .boottime = true)); }
static void clock_one_file(void) { no_later(ONE_FILE(.boottime = true)); }

static void idle_200(void)	{ no_later(COARSE_TICKS(1, 200, .idle = 1000)); }
static void idle_1000(void)	{ late(COARSE_TICKS(1, 1000, .idle = 1000)); }
/*
 * The attacker wants all of the CPU that timers may take. Then each user has an equal part,
 * including those who do nothing. A victim with a timer in each of these ticks needs more than that
 * part.
 */
static void idle_fine(void)	{ late(FINE_TICKS(1, 64, .idle = 1000)); }
static void idle_one_file(void)	{ late_on_its_own(ONE_FILE(.idle = 1000)); }

static void counter_beside_one(void)	{ shared_out(COARSE_TICKS(1, 1000)); }
static void counter_beside_several(void) { shared_out(COARSE_TICKS(8, 100)); }
static void counter_fine(void)	{ shared_out(FINE_TICKS(8, 8)); }

/* All users together want more than there is, and none wants more than a timer in each tick. */
static void counter_crowd(void)
{
	shared_out(OF(COARSE, 200, 1, 2000, 1, .owners = 2000));
}

/* One user wants more than a share of the CPU, in many files and in one. */
static void no_escape(void)
{
	struct outcome one = shared_out(ONE_FILE());
	struct outcome many = shared_out(OF(COARSE, 60, 1, 1000, 10));

	CHECK(one.fired < 0.95);
	CHECK(many.fired <= 1.1 * one.fired);
}

/*
 * The attacker wants more than an equal part of what timers may take of a CPU, and the victim much
 * less. While that leaves time to spare, nobody waits.
 */
static void more_than_a_part(void)
{
	struct outcome o;

	scene_begin(COARSE_TICKS(1, 500));
	o = on_time(&periodic);
	CHECK(!counted || o.fired > 0.95);
	scene_end();
}

static const struct test tests[] = {
	{ coarse_0, "ticks of 1 ms, and no attacker" },
	{ coarse_50, "50 files of another user with a timer in each tick of 1 ms" },
	{ coarse_200, "200 files of another user, ticks of 1 ms" },
	{ coarse_1000, "1000 files of another user, ticks of 1 ms" },
	{ fine_0, "ticks of 100 us, and no attacker" },
	{ fine_4, "4 files of another user with a timer in each tick of 100 us" },
	{ fine_16, "16 files of another user, ticks of 100 us" },
	{ fine_64, "64 files of another user, ticks of 100 us" },
	{ one_file, "one file with 10 000 timers in each tick of 1 ms" },
	{ several_coarse, "8 users, 100 files each, ticks of 1 ms" },
	{ several_fine, "4 users, 4 files each, ticks of 100 us" },
	{ apart_1000, "1000 files, ticks of 1 ms, each user in a cgroup" },
	{ apart_fine, "64 files, ticks of 100 us, each user in a cgroup" },
	{ apart_several, "8 users, 100 files each, each user in a cgroup" },
	{ clock_200, "200 files, ticks of 1 ms, victim on another clock" },
	{ clock_1000, "1000 files, ticks of 1 ms, victim on another clock" },
	{ clock_fine, "64 files, ticks of 100 us, victim on another clock" },
	{ clock_one_file, "one file with 10 000 timers in each tick, victim on another clock" },
	{ idle_200, "200 files, and 1000 users who do nothing" },
	{ idle_1000, "1000 files, and 1000 users who do nothing" },
	{ idle_fine, "64 files, ticks of 100 us, and 1000 users who do nothing" },
	{ idle_one_file, "one file with 10 000 timers in each tick, 1000 users who do nothing" },
	{ counter_beside_one, "a task that counts, beside 1000 files" },
	{ counter_beside_several, "a task that counts, beside 8 users" },
	{ counter_fine, "a task that counts, beside 8 users, ticks of 100 us" },
	{ counter_crowd, "a task that counts, beside 2000 users" },
	{ no_escape, "10 000 timers in a tick, in one file and in 1000" },
	{ more_than_a_part, "500 files, more than a part of a CPU that has time to spare" },
};

/* Run the tests whose numbers are arguments, or all. */
static int run(int argc, char **argv)
{
	static struct test chosen[ARRAY_SIZE(tests)];
	int n = 0;

	for (int i = 1; i < argc; i++) {
		u32 number = (u32)atoi(argv[i]);

		if (number >= 1 && number <= ARRAY_SIZE(tests) && n < (int)ARRAY_SIZE(tests))
			chosen[n++] = tests[number - 1];
	}
	return n ? run_tests(chosen, n) : run_tests(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	static const char limit[] = "/sys/module/twheel_chardev/parameters/max_user_files";
	u32 was = 0;
	int status;

	counted = argc > 1 && !strcmp(argv[1], "counted");
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		bail("mmap");
	if (!access(limit, F_OK))
		param_set("max_user_files", 2 * FILES_MAX, &was);
	cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pin(0);
	status = run(argc, argv);
	if (was)
		param_set("max_user_files", was, NULL);
	return status;
}
