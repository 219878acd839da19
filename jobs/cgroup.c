// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The cgroups of runs. Each run has a cgroup ID-AT.ATTEMPT.STATE.run below the daemon's own, which
 * the daemon gets from systemd with Delegate=yes. STATE is the state_id() of the daemon, because
 * others may use the same cgroup. Without a cgroup, a run is only a session of processes.
 *
 * A cgroup that enables controllers for the cgroups below it must have no processes itself. So the
 * daemon moves into a cgroup "daemon" below its own.
 *
 * This file also kills what an earlier daemon with the same state directory has left: the processes
 * in its cgroups, and those that have the state_id() of this directory in their environment. That
 * is done before the daemon begins any run.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "twheeld.h"
#include "when.h"

#define NAME_SIZE	sizeof(((struct process *)NULL)->cgroup)
#define KILL_MS		10000
#define CPU_PERIOD	100000
#define DEPTH_MAX	32	/* how deep a run may have made cgroups below its own */
#define SWEEP_NS	NS_PER_S

/*
 * base: the cgroup below which runs have theirs, or -1. has_memory, has_cpu, has_pids: which
 * controllers it passes on. swept: no call of sweep() is to come.
 */
static int base = -1;
static char *run_end;	/* how the names of our runs' cgroups end */
static bool has_memory, has_cpu, has_pids, swept = true;

/* Write @text to file @name in directory @dir, in one piece. Returns false, with errno, if not. */
static bool write_at(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Read the small file @name in directory @dir. @text is empty if that fails. */
static void read_at(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
}

const char *state_id(const char *state)
{
	static char id[40];
	struct stat st;

	if (stat(state, &st)) {
		say(SAY_ERROR, "cannot find '%s': %s", state, strerror(errno));
		exit(1);
	}
	snprintf(id, sizeof(id), "%llx-%llx", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return id;
}

/* Is @name that of a run's cgroup, of this daemon or an earlier one with the same state? */
static bool is_run(const char *name)
{
	size_t len = strlen(name), end = strlen(run_end);

	return len > end && !strcmp(name + len - end, run_end);
}

/* Call @fn with the name of the cgroup of each run. Returns how often it returned false. */
static int each_run(bool (*fn)(const char *name))
{
	int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_run(entry->d_name))
			left += !fn(entry->d_name);
	if (dir)
		closedir(dir);
	return left;
}

/* ---- the cgroup of the daemon ------------------------------------------------------- */

/* Open the cgroup that the daemon is in. Returns -1 if it was not delegated to the daemon. */
static int find_own(void)
{
	char line[4096], path[8192], yes[2] = "";
	FILE *file = fopen("/proc/self/cgroup", "re");

	path[0] = 0;
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::", 3))
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s", line + 3);
	}
	if (file)
		fclose(file);
	if (getxattr(path, "user.delegate", yes, 1) != 1 &&
	    getxattr(path, "trusted.delegate", yes, 1) != 1)
		return -1;
	return yes[0] == '1' ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Let the cgroups of runs have @controller. Returns false if there is none to pass on. */
static bool enable(const char *controller)
{
	char text[32];

	snprintf(text, sizeof(text), "+%s", controller);
	return write_at(base, "cgroup.subtree_control", text);
}

/*
 * Is the cgroup of a type below which no cgroup can have processes as members: "threaded", "domain
 * threaded" or "domain invalid"? The root cgroup has no file that tells its type.
 */
static bool type_is_bad(int dir)
{
	char text[40];

	read_at(dir, "cgroup.type", text, sizeof(text));
	return *text && strcmp(text, "domain\n");
}

/* Open the cgroup that --cgroup names. Its members must be processes, not threads. */
static int open_base(const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs st;

	if (fd < 0)
		say(SAY_ERROR, "cannot open '%s': %s", dir, strerror(errno));
	else if (fstatfs(fd, &st) || st.f_type != CGROUP2_SUPER_MAGIC)
		say(SAY_ERROR, "'%s' is no cgroup of version 2", dir);
	else if (type_is_bad(fd))
		say(SAY_ERROR, "'%s' is a cgroup of threads", dir);
	else
		return fd;
	exit(1);
}

/*
 * The daemon cannot move into a cgroup below @base, so no run could begin in one either. If
 * --cgroup has named @base, end the program; if not, let runs have no cgroups.
 */
static void cannot_use(const char *dir)
{
	say(dir ? SAY_ERROR : SAY_WARNING, "cannot begin processes below the cgroup %s: %s",
	    dir ? dir : "that systemd has delegated", strerror(errno));
	if (dir)
		exit(1);
	close(base);
	base = -1;
}

void cgroup_setup(const char *dir, const char *state)
{
	run_end = format(".%s.run", state_id(state));
	if (dir && strcmp(dir, "none"))
		base = open_base(dir);
	else if (!dir)
		base = find_own();
	if (base < 0)
		return;
	if ((mkdirat(base, "daemon", 0755) && errno != EEXIST) ||
	    !write_at(base, "daemon/cgroup.procs", "0")) {
		cannot_use(dir);
		return;
	}
	has_memory = enable("memory");
	has_cpu = enable("cpu");
	has_pids = enable("pids");
}

bool cgroup_can(const struct def *def, char error[ERROR_MAX])
{
	const char *what = def->memory && !has_memory ? "memory" : def->cpu && !has_cpu ? "cpu" :
			   def->pids && !has_pids ? "pids" : NULL;

	if (what)
		snprintf(error, ERROR_MAX, "%s: the daemon has no cgroup that can limit it", what);
	return !what;
}

/* ---- the cgroup of a run ------------------------------------------------------------ */

/* Limit the cgroup @dir as the job asks. Returns false if that is not possible. */
static bool set_limits(int dir, const struct def *def)
{
	char text[64];

	if (def->memory) {
		snprintf(text, sizeof(text), "%lld", (long long)def->memory);
		if (!write_at(dir, "memory.max", text))
			return false;
		write_at(dir, "memory.oom.group", "1");
	}
	snprintf(text, sizeof(text), "%lld %d", (long long)def->cpu * (CPU_PERIOD / 100),
		 CPU_PERIOD);
	if (def->cpu && !write_at(dir, "cpu.max", text))
		return false;
	snprintf(text, sizeof(text), "%lld", (long long)def->pids);
	return !def->pids || write_at(dir, "pids.max", text);
}

int cgroup_make(struct run *run, const char **why)
{
	const struct def *def = &run->job->def;
	const struct firing *f = &run->firing;
	char *name = run->process.cgroup;
	int dir = -1;

	name[0] = 0;
	if (base >= 0) {
		snprintf(name, NAME_SIZE, "%lld-%lld.%lld%s", (long long)f->id,
			 (long long)f->at, (long long)f->attempt, run_end);
		if (f->shard)
			snprintf(name, NAME_SIZE, "%lld-%lld.%lld.%lld%s", (long long)f->id,
				 (long long)f->at, (long long)f->attempt, (long long)f->shard,
				 run_end);
		mkdirat(base, name, 0755);
		dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			*why = "cannot make its cgroup";
	}
	if ((def->memory || def->cpu || def->pids) && (dir < 0 || !set_limits(dir, def)))
		*why = "cannot limit its cgroup";
	return dir;
}

/* Kill all processes of the cgroup @name, at once. The kernel has that from 5.14 on. */
static bool kill_named(const char *name)
{
	char file[NAME_SIZE + sizeof("/cgroup.kill")];

	snprintf(file, sizeof(file), "%s/cgroup.kill", name);
	return write_at(base, file, "1");
}

void cgroup_kill(struct run *run)
{
	if (run->process.cgroup[0])
		kill_named(run->process.cgroup);
}

/* Remove the cgroup @name in @at, and those that the run has made below it. */
static bool remove_tree(int at, const char *name, int depth)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (!unlinkat(at, name, AT_REMOVEDIR))
		return true;
	if (depth == DEPTH_MAX)
		return false;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") &&
		    strcmp(entry->d_name, ".."))
			remove_tree(fd, entry->d_name, depth + 1);
	if (dir)
		closedir(dir);
	return !unlinkat(at, name, AT_REMOVEDIR);
}

/* Has the cgroup @name processes, or one below it? */
static bool has_processes(const char *name)
{
	char file[NAME_SIZE + sizeof("/cgroup.events")], text[256];

	snprintf(file, sizeof(file), "%s/cgroup.events", name);
	read_at(base, file, text, sizeof(text));
	return !strstr(text, "populated 0");
}

/* Remove the cgroup @name. Returns false if it has processes, or is gone already. */
static bool remove_named(const char *name)
{
	return !has_processes(name) && remove_tree(base, name, 0);
}

/* Remove the cgroups of runs that are over. Those of running runs are not empty, so they stay. */
static void sweep(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	swept = true;
	each_run(remove_named);
}

/*
 * Remove the cgroup of a run that is over. The kernel may refuse for a moment, until the processes
 * that were killed are gone: then sweep() removes it later.
 */
void cgroup_remove(struct run *run)
{
	struct twheel_task task = { .fn = sweep, .when_ns = SWEEP_NS };
	char *name = run->process.cgroup;

	if (name[0] && !remove_named(name) && swept)
		swept = twheel_sched_add(sched, &task, NULL);
	name[0] = 0;
}

/* ---- what an earlier daemon has left ------------------------------------------------ */

/*
 * Kill the processes of the cgroup @name. Returns false as long as they have not ended. If a cgroup
 * without processes cannot be removed, that does no harm.
 */
static bool kill_and_remove(const char *name)
{
	kill_named(name);
	return remove_named(name) || !has_processes(name);
}

/* Does the environment of process @pid contain @mark, which is NAME=VALUE? */
static bool has_mark(const char *pid, const char *mark)
{
	static char data[1 << 20];
	char path[300];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, data, sizeof(data) - 1);
		close(fd);
	}
	if (n <= 0)
		return false;
	data[n] = 0;
	for (char *s = data; s < data + n; s += strlen(s) + 1)
		if (!strcmp(s, mark))
			return true;
	return false;
}

/* Kill all processes with @mark in their environment. Returns how many there were. */
static int kill_marked(const char *mark)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid() ||
		    !has_mark(entry->d_name, mark))
			continue;
		kill((pid_t)atoi(entry->d_name), SIGKILL);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

/*
 * Kill what is in cgroups of runs, and what has @mark: a process may have left its cgroup. Returns
 * whether there was any.
 */
static bool kill_all(const char *mark)
{
	bool left = base >= 0 && each_run(kill_and_remove);

	return kill_marked(mark) || left;
}

/*
 * Look again until there is nothing to kill: a process may fork while we look. After KILL_MS the
 * daemon begins all the same, and says so.
 */
void leftovers_kill(const char *state)
{
	char *mark = format(STATE_MARK, state_id(state));
	int ms = 0;

	while (kill_all(mark) && ms < KILL_MS) {
		usleep(10 * 1000);
		ms += 10;
	}
	if (ms >= KILL_MS)
		say(SAY_ERROR, "cannot kill processes that an earlier daemon has left");
	free(mark);
}
