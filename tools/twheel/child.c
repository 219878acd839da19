// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The processes of commands.
 *
 * Each command has a process group of its own, so that a signal reaches all its processes.
 * Signals that would end twheel are passed on to these groups, but not those that twheel was
 * started with as ignored: nohup(1) means the commands too, and they inherit that.
 *
 * The terminal stays with twheel's own group, so that the keys that send signals reach twheel
 * and the rest of a pipeline. A command that reads from the terminal is stopped by the kernel
 * for it (SIGTTIN, SIGTTOU). Only then, and if twheel is in the foreground, the terminal is
 * handed over to the command's group, until the command ends or is stopped by Ctrl-Z.
 *
 * The first thread reads signals from a signalfd. Other threads start commands and wait for
 * them. A process is taken off the list before its status is collected, while its number is
 * its own, so that a signal never reaches a stranger.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

/* Who sends a signal twice at once, as timeout(1) does, means it once. */
#define TWICE_NS	(NS_PER_S / 2)

#define GROUP_POLL_NS	(20 * NS_PER_MS)

/**
 * struct child - a command that runs
 * @entry:	in the list
 * @pid:	its process, whose number is its group's too
 * @terminal:	the terminal has been handed over to it
 */
struct child {
	LIST_ENTRY(child)	entry;
	pid_t			pid;
	bool			terminal;
};

static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* Held for reading while a process is started or taken off the list. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static struct child_options options;
static sigset_t signals, old_signals;
static int signal_fd, terminal = -1;
static atomic_int stopped_by;
static atomic_bool killed;
static atomic_llong stopped_at;

/* ---- signals ----------------------------------------------------------------------- */

static bool is_ignored(int sig)
{
	struct sigaction action;

	return !sigaction(sig, NULL, &action) && action.sa_handler == SIG_IGN;
}

/*
 * SIGTTOU is blocked as well, for tcsetpgrp(), but not read. SIGPIPE of a write of ours goes
 * to the thread that wrote, so it is not read here.
 */
static void block_signals(void)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1,
				    SIGUSR2, SIGTSTP };
	sigset_t blocked;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (!is_ignored(ends[i]))
			sigaddset(&signals, ends[i]);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGCONT);
	blocked = signals;
	sigaddset(&blocked, SIGPIPE);
	sigaddset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &old_signals);
}

void children_begin(const struct child_options *o)
{
	options = *o;
	block_signals();
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		error(EXIT_CANCELED, errno, "signalfd");
	if (!options.session)
		terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
}

int children_fd(void)
{
	return signal_fd;
}

int children_stopped(void)
{
	return stopped_by;
}

void children_hold(void)
{
	pthread_rwlock_wrlock(&gate);
}

void children_release(void)
{
	pthread_rwlock_unlock(&gate);
}

static void kill_all(int sig)
{
	struct child *child;

	if (sig == SIGKILL)
		killed = true;
	LIST_FOREACH(child, &children, entry) {
		kill(-child->pid, sig);
		/* One that is stopped takes it when it goes on. */
		if (sig != SIGKILL && sig != SIGSTOP)
			kill(-child->pid, SIGCONT);
	}
}

void children_stop(int sig)
{
	int64_t now = time_now(CLOCK_BOOTTIME);

	children_hold();
	if (!stopped_by) {
		stopped_by = sig;
		stopped_at = now;
		kill_all(sig);
	} else if (now - stopped_at >= TWICE_NS) {
		kill_all(SIGKILL);
	}
	children_release();
}

int children_kill_late(void)
{
	int64_t left;

	if (!stopped_by || !options.kill_after || killed)
		return -1;
	left = stopped_at + options.kill_after - time_now(CLOCK_BOOTTIME);
	if (left > 0)
		return left < NS_PER_S ? (int)(left / NS_PER_MS) + 1 : 1000;
	children_hold();
	kill_all(SIGKILL);
	children_release();
	return -1;
}

void end_by_signal(int sig)
{
	sigset_t set;

	prctl(PR_SET_DUMPABLE, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	exit(128 + sig);
}

/* ---- the terminal ------------------------------------------------------------------ */

static bool in_foreground(void)
{
	return terminal >= 0 && tcgetpgrp(terminal) == getpgrp();
}

static void terminal_give(struct child *child)
{
	line_clear();
	if (!tcsetpgrp(terminal, child->pid))
		child->terminal = true;
	kill(-child->pid, SIGCONT);
}

static void terminal_take(struct child *child)
{
	if (child->terminal)
		tcsetpgrp(terminal, getpgrp());
	child->terminal = false;
}

/*
 * Stop this process by @sig, or its whole group, until somebody continues it. Returns false if
 * that does nothing: no shell would continue a group without one.
 */
static bool stop_self(int sig, bool group)
{
	const struct timespec now = { 0 };
	sigset_t set, cont;
	bool stopped;

	line_clear();
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	sigtimedwait(&cont, NULL, &now);
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	kill(group ? 0 : getpid(), sig);
	stopped = sigtimedwait(&cont, NULL, &now) == SIGCONT;
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return stopped;
}

/* The job of a shell that is waiting for us has stopped: its processes, and so are we. */
static void suspend_with(struct child *child, int sig)
{
	terminal_take(child);
	if (!stop_self(sig, true) && sig != SIGTSTP)
		kill(-child->pid, SIGHUP);	/* as the kernel does where no shell is */
	if (in_foreground())
		terminal_give(child);
	else
		kill(-child->pid, SIGCONT);
}

static void child_stopped(struct child *child, int sig)
{
	if ((sig == SIGTTIN || sig == SIGTTOU) && in_foreground())
		terminal_give(child);
	else if (sig == SIGTTIN || sig == SIGTTOU || (sig == SIGTSTP && child->terminal))
		suspend_with(child, sig);
}

static void look_for_stopped(void)
{
	struct child *child;

	if (terminal < 0)	/* nothing that is stopped is waiting for it */
		return;
	children_hold();
	LIST_FOREACH(child, &children, entry) {
		siginfo_t info = { 0 };

		if (!waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) && info.si_pid)
			child_stopped(child, info.si_status);
	}
	children_release();
}

/* Ctrl-Z while the terminal is ours. */
static void suspend_all(void)
{
	children_hold();
	kill_all(SIGSTOP);
	stop_self(SIGTSTP, false);
	kill_all(SIGCONT);
	children_release();
}

void children_signals(void)
{
	struct signalfd_siginfo info;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD)
			look_for_stopped();
		else if (sig == SIGTSTP)
			suspend_all();
		else if (sig != SIGCONT)
			children_stop(sig);
	}
}

/* ---- running ----------------------------------------------------------------------- */

static int spawn(pid_t *pid, const char *path, char **argv, char **env)
{
	short flags = POSIX_SPAWN_SETSIGMASK;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int err = 0;

	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_init(&actions);
	if (options.session) {
		flags |= POSIX_SPAWN_SETSID;
		err = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
						       O_RDONLY, 0);
	} else {
		flags |= POSIX_SPAWN_SETPGROUP;
	}
	posix_spawnattr_setflags(&attr, flags);
	posix_spawnattr_setsigmask(&attr, &old_signals);
	if (!err)
		err = posix_spawnp(pid, path, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return err;
}

/* The file that a command's name means, to be freed; NULL: there is none. */
static char *find_file(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char *file = NULL;

	if (strchr(name, '/'))
		return strdup(name);
	for (path = path ? path : "/bin:/usr/bin"; ; path = end + 1) {
		end = strchrnul(path, ':');
		if (asprintf(&file, "%.*s%s%s", (int)(end - path), path,
			     end == path ? "" : "/", name) < 0)
			return NULL;
		if (!access(file, X_OK))
			return file;
		free(file);
		if (!*end)
			return NULL;
	}
}

/* A file that says of no interpreter is the shell's, as with execvp(). */
static int spawn_script(pid_t *pid, char **argv, char **env)
{
	char **words, *file = find_file(argv[0]);
	size_t n = 0;
	int err = ENOMEM;

	while (argv[n])
		n++;
	words = calloc(n + 2, sizeof(*words));
	if (words && file) {
		memcpy(words + 1, argv, n * sizeof(*words));
		words[0] = (char *)"/bin/sh";
		words[1] = file;
		err = spawn(pid, words[0], words, env);
	}
	free(words);
	free(file);
	return err;
}

/* Returns 0, an errno, or CHILD_STOPPED. */
static int child_start(struct child *child, char **argv, char **env)
{
	int err = CHILD_STOPPED;

	pthread_rwlock_rdlock(&gate);
	if (!stopped_by) {
		err = env ? spawn(&child->pid, argv[0], argv, env) : ENOMEM;
		if (err == ENOEXEC)
			err = spawn_script(&child->pid, argv, env);
	}
	if (!err) {
		pthread_mutex_lock(&list_lock);
		LIST_INSERT_HEAD(&children, child, entry);
		pthread_mutex_unlock(&list_lock);
	}
	pthread_rwlock_unlock(&gate);
	return err;
}

/* Take it off the list, and the terminal from it. Returns whether it had that. */
static bool child_remove(struct child *child)
{
	bool had;

	pthread_rwlock_rdlock(&gate);
	had = child->terminal;
	terminal_take(child);
	pthread_mutex_lock(&list_lock);
	LIST_REMOVE(child, entry);
	pthread_mutex_unlock(&list_lock);
	pthread_rwlock_unlock(&gate);
	return had;
}

static int collect(const struct child *child)
{
	int status = 0;

	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/*
 * The process has ended, others of its group may not have. If they are to be killed after a
 * time it stays on the list until then; a group's number is nobody else's while it has a member.
 */
static int collect_group(const struct child *child)
{
	const struct timespec pause = { 0, GROUP_POLL_NS };
	int status = collect(child);

	while (!killed && !kill(-child->pid, 0))
		nanosleep(&pause, NULL);
	return status;
}

/*
 * A command that had the terminal was ended by Ctrl-C, or because the terminal has gone: that was
 * meant for twheel as well.
 */
static void key_pressed(int sig)
{
	int none = 0;

	if (sig != SIGINT && sig != SIGQUIT && sig != SIGHUP)
		return;
	if (atomic_compare_exchange_strong(&stopped_by, &none, sig))
		stopped_at = time_now(CLOCK_BOOTTIME);
}

static int child_wait(struct child *child)
{
	bool had_terminal, group;
	siginfo_t info;
	int status;

	while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	group = stopped_by && options.kill_after;
	if (group)
		status = collect_group(child);
	had_terminal = child_remove(child);
	if (!group)
		status = collect(child);
	if (had_terminal && WIFSIGNALED(status))
		key_pressed(WTERMSIG(status));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_run(char **argv, char **env, bool *ran)
{
	struct child child = { 0 };
	int err = child_start(&child, argv, env);

	*ran = !err;
	if (!err)
		return child_wait(&child);
	if (err == CHILD_STOPPED)
		return err;
	error(0, err, "failed to run command '%s'", argv[0]);
	if (err == EAGAIN || err == ENOMEM)
		return EXIT_CANCELED;
	return err == ENOENT ? 127 : 126;
}
