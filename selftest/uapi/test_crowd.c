// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * One user's timers do not make another user's late, whatever crowd of users they hide in,
 * and on whatever clock they are. The scenes are those of test_neighbour, which tells how they
 * are judged, with three things more:
 *
 *	idle	so many users have a file each, with one timer that is due in an hour
 *	crowd	the attackers' files are opened by so many users, in turn. That is what somebody
 *		can do who has a range of user ids in /etc/subuid, as most have
 *	clock	of the victim, and of its timerfd. The attackers are on CLOCK_MONOTONIC
 *
 * A victim beside a crowd of users who want as much as it does is one of them, and gets an equal
 * part. What is judged there is what a task gets.
 *
 *	test_crowd [counted] [NUMBER...]
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
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "uapi.h"

#define VICTIM		1001
#define COUNTER		1002
#define ATTACKER	1003		/* and the users that follow */
#define USERS_MAX	8
#define FILES_MAX	5000
#define IDLER		20000
#define CROWD		30000
#define US		1000ULL
#define COARSE		MS
#define FINE		(100 * US)
#define REST		(100 * MS)	/* what the counter's rate in peace is measured over */
#define MEAN_MAX	(150 * US)
#define PASS		200.0		/* us */
#define SHARE		0.50

static bool counted;	/* a ns is an instruction */
static int cpu;		/* the last one; this program itself is on CPU 0 */

/**
 * struct scene - an attack
 * @users:	how many attackers there are
 * @files:	how many files, or timerfds, each of them has
 * @per_tick:	how many timers a file has in each tick
 * @tick:	of all files, and the period of all timerfds, in ns
 * @ticks:	how long the attack lasts
 * @idle:	so many users do nothing
 * @crowd:	so many users have opened the files
 * @clock:	of the victim
 * @odd:	by how many ns the tick of a file is longer than that of the one before
 * @cgroups:	does each user have a cgroup of its own?
 */
struct scene {
	u32	users, files, per_tick;
	u64	tick;
	u32	ticks;
	bool	cgroups;
	u32	idle, crowd;
	int	clock;
	u32	odd;
};

/* What is played at the moment. */
static struct scene scene;

static u64 nr_timers(void)
{
	return (u64)scene.users * scene.files * scene.per_tick * scene.ticks;
}

/**
 * struct shared - what the tasks of a scene tell each other
 * @nr_ready:	how many have opened what they need
 * @nr_armed:	how many attackers have armed their timers
 * @due:	the first tick, 0 until it is known
 * @end:	of the attack
 * @nr_fired:	timers of attackers that have expired
 * @nr_events:	events of the victim
 * @nr_late:	of these, by more than MEAN_MAX
 * @sum:	of their latenesses
 * @longest:	of these
 * @count:	units of work that the counter has done
 */
struct shared {
	u32	nr_ready, nr_armed;
	u64	due, end;
	u64	nr_fired;
	u64	nr_events, nr_late, sum, longest;
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

/* All is opened. Wait for the others. */
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

static u64 tick_of(u32 f)
{
	return scene.tick + (u64)scene.odd * f;
}

static int open_file_of(int clock, u64 tick)
{
	const struct twheel_setup set = { .clockid = clock, .tick_ns = tick };
	int fd = dev_open(0);

	CHECK_EQ(setup(fd, &set), 0);
	return fd;
}

static int open_file(int clock)
{
	return open_file_of(clock, scene.tick);
}

/* A file that @uid opens. The caller is root. */
static int open_file_as(uid_t uid, u64 tick)
{
	int fd;

	CHECK_EQ(setresuid(uid, 0, 0), 0);
	fd = open_file_of(CLOCK_MONOTONIC, tick);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	return fd;
}

static int open_timerfd(int clock, int flags)
{
	int fd = timerfd_create(clock, TFD_CLOEXEC | flags);

	if (fd < 0)
		bail("timerfd_create");
	return fd;
}

static struct timespec timespec(u64 ns)
{
	return (struct timespec){ (time_t)(ns / SEC), (long)(ns % SEC) };
}

/* In each tick from @due on. */
static void arm_timerfd(int fd, u32 f)
{
	const struct itimerspec i = { timespec(tick_of(f)), timespec(s->due) };

	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &i, NULL), 0);
}

/* ---- attackers ------------------------------------------------------------------- */

static int files[FILES_MAX];

/* One-shots, scene.per_tick in each tick from @due on. */
static void arm_file(int fd, u32 f)
{
	static struct twheel_op ops[1000];
	struct twheel_batch b = { .ops = (uintptr_t)ops, .op_size = sizeof(ops[0]) };
	const u32 nr = scene.ticks * scene.per_tick;

	for (u32 n = 0; n < nr; n += (u32)b.nr) {
		b.nr = nr - n < ARRAY_SIZE(ops) ? nr - n : ARRAY_SIZE(ops);
		for (u32 i = 0; i < b.nr; i++)
			ops[i] = (struct twheel_op){ .op = TWHEEL_OP_ADD, .flags = TWHEEL_F_ABS,
				.expires_ns = s->due + (n + i) / scene.per_tick * tick_of(f) };
		b.nr_done = 0;
		CHECK(!ioctl(fd, TWHEEL_IOC_SUBMIT, &b) && b.nr_done == b.nr);
		CHECK_EQ(b.nr_failed, 0);
	}
}

static void attack_files(int uid)
{
	struct twheel_info i;

	enter(scene.crowd ? 0 : uid);
	for (u32 f = 0; f < scene.files; f++)
		files[f] = scene.crowd ? open_file_as(CROWD + f % scene.crowd, tick_of(f)) :
				open_file_of(CLOCK_MONOTONIC, tick_of(f));
	wait_due();
	for (u32 f = 0; f < scene.files; f++)
		arm_file(files[f], f);
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
		files[f] = open_timerfd(CLOCK_MONOTONIC, TFD_NONBLOCK);
	wait_due();
	for (u32 f = 0; f < scene.files; f++)
		arm_timerfd(files[f], f);
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
	s->nr_late += late > MEAN_MAX;
	s->sum += late;
	if (late > s->longest)
		s->longest = late;
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
	fd = open_file(scene.clock);
	wait_due();
	for (u32 i = 0; i < scene.ticks; i++)
		add_with(fd, TWHEEL_F_ABS, s->due + i * scene.tick, 0, 0);
	wait_for_events(fd, read_periods_of_file);
}

static void victim_periodic(int uid)
{
	int fd;

	enter(uid);
	fd = open_file(scene.clock);
	wait_due();
	add_with(fd, TWHEEL_F_ABS, s->due, scene.tick, 0);
	wait_for_events(fd, read_periods_of_file);
}

static void victim_of_timerfd(int uid)
{
	int fd;

	enter(uid);
	fd = open_timerfd(scene.clock, 0);
	wait_due();
	arm_timerfd(fd, 0);
	wait_for_events(fd, read_periods_of_timerfd);
}

static void counter(int uid)
{
	enter(uid);
	wait_due();
	while (now() < s->end) {
		for (int i = 0; i < 4000; i++)
			__asm__ volatile("");
		__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELAXED);
	}
}

static void idlers(int nr)
{
	enter(0);
	for (int i = 0; i < nr; i++)
		add(open_file_as((uid_t)(IDLER + i), SEC), HOUR, 0);
	is_armed();
	sleep_ms(1000000);
}

/* ---- a scene ----------------------------------------------------------------------- */

struct cast {
	const char	*name;
	void		(*attacker)(int uid);
	void		(*victim)(int uid);
	int		uid;	/* of the victim */
};

static const struct cast preloaded = { "preloaded", attack_files, victim_preloaded, VICTIM };
static const struct cast periodic = { "periodic", attack_files, victim_periodic, VICTIM };
static const struct cast unread = { "timerfd, unread", attack_unread, victim_of_timerfd, VICTIM };
static const struct cast timerfd = { "timerfd, read", attack_read, victim_of_timerfd, VICTIM };
static const struct cast counts = { "counter", attack_files, counter, COUNTER };

/**
 * struct outcome - of a scene
 * @mean:	lateness of the victim's events, in us
 * @longest:	of these latenesses
 * @fired:	timers of the attackers that expired, as a part of those that were due
 * @share:	of the CPU for the counter
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

static pid_t idle_pid;

static void wait_number(u32 *n, u32 wanted)
{
	for (u32 ms = 0; ms < WAIT_MS && __atomic_load_n(n, __ATOMIC_SEQ_CST) < wanted; ms++)
		sleep_ms(1);
	CHECK_EQ(*n, wanted);
}

static void begin(const struct cast *cast)
{
	memset(s, 0, sizeof(*s));
	idle_pid = 0;
	if (scene.idle) {
		idle_pid = start_task(idlers, cpu, (int)scene.idle);
		wait_number(&s->nr_armed, 1);
		s->nr_armed = 0;
		sleep_ms(500);
	}
	for (u32 i = 0; i <= scene.users; i++) {
		int uid = i ? ATTACKER + (int)i - 1 : cast->uid;

		if (scene.cgroups)
			make_cgroup(uid);
		pids[i] = start_task(i ? cast->attacker : cast->victim, cpu, uid);
	}
}

static void end(const struct cast *cast)
{
	if (idle_pid) {
		kill(idle_pid, SIGKILL);
		waitpid(idle_pid, NULL, 0);
		sleep_ms(500);
	}
	for (u32 i = 0; i <= scene.users; i++) {
		int status = -1;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && !status);
		if (scene.cgroups)
			cgroup_remove(cgroup_of(i ? ATTACKER + (int)i - 1 : cast->uid));
	}
}

/* Have them arm their timers, and see to it that there is time for that. */
static void set_time(void)
{
	u64 due = (now() + SEC / 2 + REST + nr_timers() * 5 * US) / scene.tick * scene.tick;

	wait_number(&s->nr_ready, scene.users + 1);
	s->end = due + scene.ticks * scene.tick;
	__atomic_store_n(&s->due, due, __ATOMIC_SEQ_CST);
	wait_number(&s->nr_armed, scene.users);
	CHECK(now() < due - REST);
}

/* Units of work a ns, of the counter. */
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

/* What twheel_irqoff.ko says, if it is loaded: the longest time with interrupts off, in us. */
static const char irqoff[] = "/sys/module/twheel_irqoff/parameters/worst";

static void irqoff_load(void)
{
	int fd = open("/twheel/twheel_irqoff.ko", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && syscall(SYS_finit_module, fd, "", 0))
		diag("twheel_irqoff.ko is not loaded");
}

static void irqoff_begin(void)
{
	if (!access(irqoff, W_OK))
		file_set(irqoff, "0");
}

static void irqoff_end(void)
{
	char text[32];

	if (access(irqoff, R_OK))
		return;
	file_get(irqoff, text, sizeof(text));
	diag("	interrupts were off for %.1f us at most", atoi(text) / (double)US);
}

static struct outcome play(const struct scene *what, const struct cast *cast)
{
	struct outcome o = { 0 };

	scene = *what;
	begin(cast);
	set_time();
	o.share = rate(s->due - REST, s->due);
	irqoff_begin();
	o.share = o.share ? rate(s->due, s->end) / o.share : 0;
	irqoff_end();
	end(cast);
	if (s->nr_events) {
		o.mean = (double)s->sum / (double)s->nr_events / US;
		o.longest = (double)s->longest / US;
	}
	o.fired = nr_timers() ? (double)s->nr_fired / (double)nr_timers() : 0;
	return o;
}

static struct outcome told(const struct scene *what, const struct cast *cast)
{
	struct outcome o = play(what, cast);

	CHECK(s->nr_events > 0);
	diag("%4llu us, %u x %4u, idle %4u crowd %4u clock %d odd %u, %-15s:", what->tick / US,
	     what->users, what->files, what->idle, what->crowd, what->clock, what->odd, cast->name);
	diag("	late %7.1f us, at most %7.1f; %4llu events, %llu late; fired %.0f %%", o.mean,
	     o.longest, s->nr_events, s->nr_late, o.fired * 100);
	return o;
}

static struct outcome on_time(const struct scene *what, const struct cast *cast)
{
	struct outcome o = told(what, cast);

	CHECK(!counted || o.mean * US <= MEAN_MAX);
	return o;
}

static double longest_allowed(const struct scene *what, double measured)
{
	return what->tick == FINE && measured < PASS ? PASS : measured;
}

/* The attackers may have to wait, but they are not stopped. */
static void judge(const char *victim, const struct outcome *o, const struct outcome *measure)
{
	bool good = CHECK(o->mean <= measure->mean);

	good &= CHECK(o->fired > 0.1);
	if (!good)
		diag("	of the victim that is %s", victim);
}

/* The victim is not later than that of timerfds. Returns what part of the timers fired. */
static double late(const struct scene *what)
{
	struct outcome one = on_time(what, &preloaded), other = on_time(what, &periodic), measure;

	told(what, &unread);
	measure = told(what, &timerfd);
	if (what->users) {
		judge("preloaded", &one, &measure);
		judge("periodic", &other, &measure);
		CHECK(other.longest <= longest_allowed(what, measure.longest));
	}
	return one.fired < other.fired ? one.fired : other.fired;
}

/* The counter of another user gets its share. */
static struct outcome shared_out(const struct scene *what)
{
	struct outcome o = play(what, &counts);

	diag("%4llu us, %u x %4u, idle %4u crowd %4u, %5u in a tick:", what->tick / US,
	     what->users, what->files, what->idle, what->crowd, what->per_tick);
	diag("	the counter has %.3f of the CPU; fired %.1f %%", o.share, o.fired * 100);
	CHECK(o.share >= SHARE);
	return o;
}

/* ---- tests --------------------------------------------------------------------------- */

#define SCENE(f, tick_ns, nr, idlers, hosts, clockid) (&(struct scene){		\
	.users = 1, .files = f, .per_tick = 1, .tick = tick_ns, .ticks = nr,	\
	.idle = (idlers), .crowd = hosts, .clock = clockid })

static void alone(void)		{ late(SCENE(200, COARSE, 300, 0, 0, CLOCK_MONOTONIC)); }
static void idle_200(void)	{ late(SCENE(200, COARSE, 300, 1000, 0, CLOCK_MONOTONIC)); }
static void idle_1000(void)	{ late(SCENE(1000, COARSE, 300, 1000, 0, CLOCK_MONOTONIC)); }
static void idle_fine(void)	{ late(SCENE(64, FINE, 1000, 1000, 0, CLOCK_MONOTONIC)); }
static void boot_50(void)	{ late(SCENE(50, COARSE, 300, 0, 0, CLOCK_BOOTTIME)); }
static void boot_200(void)	{ late(SCENE(200, COARSE, 300, 0, 0, CLOCK_BOOTTIME)); }
static void boot_1000(void)	{ late(SCENE(1000, COARSE, 300, 0, 0, CLOCK_BOOTTIME)); }
static void boot_fine(void)	{ late(SCENE(64, FINE, 1000, 0, 0, CLOCK_BOOTTIME)); }
static void counter_crowd(void)	{ shared_out(SCENE(1000, COARSE, 300, 0, 1000, CLOCK_MONOTONIC)); }
static void counter_crowd_4000(void)
{
	shared_out(SCENE(4000, COARSE, 200, 0, 4000, CLOCK_MONOTONIC));
}

static void one_file_idle(void)
{
	struct scene what = { .users = 1, .files = 1, .per_tick = 10000, .tick = COARSE,
			.ticks = 60, .clock = CLOCK_MONOTONIC };

	on_time(&what, &periodic);
	what.idle = 1000;
	on_time(&what, &periodic);
	what.idle = 0;
	what.clock = CLOCK_BOOTTIME;
	on_time(&what, &periodic);
}

static const struct test tests[] = {
	{ alone, "200 files of another user" },
	{ idle_200, "200 files, and 1000 users who do nothing" },
	{ idle_1000, "1000 files, and 1000 users who do nothing" },
	{ idle_fine, "64 files, ticks of 100 us, and 1000 users who do nothing" },
	{ boot_50, "50 files, and a victim on the other clock" },
	{ boot_200, "200 files, and a victim on the other clock" },
	{ boot_1000, "1000 files, and a victim on the other clock" },
	{ boot_fine, "64 files, ticks of 100 us, and a victim on the other clock" },
	{ counter_crowd, "a task that counts, beside 1000 users" },
	{ counter_crowd_4000, "a task that counts, beside 4000 users" },
	{ one_file_idle, "one file of 10 000 timers, 1000 users who do nothing, the other clock" },
};

/* A scene of one's own: scene:FILES:TICK_US:TICKS:IDLE:CROWD:CLOCK:PER_TICK:ODD:KIND */
static struct scene own;
static char kind;

static void own_scene(void)
{
	if (kind == 'c')
		shared_out(&own);
	else
		late(&own);
}

static bool own_parse(const char *arg)
{
	u32 us;

	if (sscanf(arg, "scene:%u:%u:%u:%u:%u:%d:%u:%u:%c", &own.files, &us, &own.ticks, &own.idle,
		   &own.crowd, &own.clock, &own.per_tick, &own.odd, &kind) != 9)
		return false;
	own.users = 1;
	own.tick = us * US;
	run_tests(&(struct test){ own_scene, arg }, 1);
	return true;
}

/* Those whose numbers are arguments, or all. */
static int run(int argc, char **argv)
{
	static struct test chosen[ARRAY_SIZE(tests)];
	int n = 0;

	for (int i = 1; i < argc; i++) {
		u32 number = (u32)atoi(argv[i]);

		if (own_parse(argv[i]))
			exit(0);

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
	pin(cpu);
	irqoff_load();
	pin(0);
	status = run(argc, argv);
	if (was)
		param_set("max_user_files", was, NULL);
	return status;
}
