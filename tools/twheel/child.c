// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The processes of commands.
 *
 * Each command has a process group of its own, so that a signal reaches all its processes.
 * twheel passes on to these groups the signals that would end it. A signal that was ignored when
 * twheel was started is not passed on: nohup(1) means the commands too, and they inherit it.
 *
 * The terminal stays with twheel's own group, so that the keys that send signals reach twheel
 * and the rest of a pipeline. If a command reads from the terminal, the kernel stops it (SIGTTIN,
 * SIGTTOU). Only then, and if twheel is in the foreground, twheel hands the terminal over to the
 * command's group, until the command ends or Ctrl-Z stops it.
 *
 * Threads: the first one waits on a signalfd and takes the signals. The others start commands and
 * wait for them. A thread takes a process off the list before it collects the status: until then
 * nobody else can have the process's number, so no signal reaches a stranger.
 *
 * Locks: @gate keeps signals and starting apart. A thread that adds a process to the list or
 * removes one holds it for reading, and list_lock besides. The first thread holds it for writing
 * while it sends signals, reads the list or moves the terminal; so it needs no list_lock.
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

/*
 * A signal that comes twice within this time counts once: timeout(1) sends it to us and our group.
 */
#define TWICE_NS	(NS_PER_S / 2)

/* How often to look whether a process group has members left. */
#define GROUP_POLL_NS	(20 * NS_PER_MS)

/**
 * struct child - a command that is running; on the stack of the thread that waits for it
 * @entry:	in the list: list_lock, and gate for reading
 * @pid:	its process, and the number of its process group
 * @terminal:	it has the terminal: gate, for writing or reading
 */
struct child {
	LIST_ENTRY(child)	entry;
	pid_t			pid;
	bool			terminal;
};

static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* Before list_lock. Held for reading while a process is started or taken off the list. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

/* The first thread sets these before there are others; they do not change after that. */
static struct child_options options;
static sigset_t signals, old_signals;	/* those that are taken; the mask that commands get */
static bool hangup_blocked;		/* by children_block_hangup(), so old_signals is set */
static int signal_fd, terminal = -1;	/* a signalfd; /dev/tty, or -1 */

/* Any thread reads these without a lock. */
static atomic_int stopped_by;		/* the signal that ends us; times_lock to set it */
static atomic_bool killed;		/* SIGKILL was sent: nothing is waited for any more */
/* The last of the locks. Not every processor reads and writes 64 bits at once. */
static pthread_mutex_t times_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t stopped_at;	/* when stopped_by was set, by CLOCK_BOOTTIME: times_lock */
static int64_t removed_at;	/* when the last process was taken off the list: times_lock */

/* How long ago @time was, which is stopped_at or removed_at. */
static int64_t since(const int64_t *time)
{
	int64_t ns;

	pthread_mutex_lock(&times_lock);
	ns = time_now(CLOCK_BOOTTIME) - *time;
	pthread_mutex_unlock(&times_lock);
	return ns;
}

/* Note that @sig is to end this process, and since when. False if another one did before. */
static bool note_stop(int sig)
{
	bool first;

	pthread_mutex_lock(&times_lock);
	first = !stopped_by;
	if (first) {
		stopped_at = time_now(CLOCK_BOOTTIME);
		stopped_by = sig;
	}
	pthread_mutex_unlock(&times_lock);
	return first;
}

/* A process was taken off the list just now: see children_gone(). */
static void note_removal(void)
{
	pthread_mutex_lock(&times_lock);
	removed_at = time_now(CLOCK_BOOTTIME);
	pthread_mutex_unlock(&times_lock);
}

/* ---- signals ----------------------------------------------------------------------- */

/* Does this process ignore @sig, because it was started so? */
static bool is_ignored(int sig)
{
	struct sigaction action;

	return !sigaction(sig, NULL, &action) && action.sa_handler == SIG_IGN;
}

/*
 * SIGTTOU is blocked too, so that tcsetpgrp() does not stop us, but nobody reads it. If a write of
 * ours causes SIGPIPE, the kernel sends it to the writing thread; it is not read here either.
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
	sigprocmask(SIG_BLOCK, &blocked, hangup_blocked ? NULL : &old_signals);
}

void children_block_hangup(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old_signals);
	hangup_blocked = true;
}

void children_unblock_hangup(void)
{
	sigprocmask(SIG_SETMASK, &old_signals, NULL);
	hangup_blocked = false;
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

/* Send @sig to all commands. Caller holds gate for writing. */
static void kill_all(int sig)
{
	struct child *child;

	if (sig == SIGKILL)
		killed = true;
	LIST_FOREACH(child, &children, entry) {
		kill(-child->pid, sig);
		/* A stopped process takes the signal only when it continues. */
		if (sig != SIGKILL && sig != SIGSTOP)
			kill(-child->pid, SIGCONT);
	}
}

void children_stop(int sig)
{
	children_hold();
	if (note_stop(sig))
		kill_all(sig);
	else if (since(&stopped_at) >= TWICE_NS)
		kill_all(SIGKILL);
	children_release();
}

int children_kill_late(void)
{
	int64_t left;

	if (!stopped_by || !options.kill_after || killed)
		return -1;
	left = options.kill_after - since(&stopped_at);
	if (left > 0)
		return left < NS_PER_S ? (int)(left / NS_PER_MS) + 1 : 1000;
	children_hold();
	kill_all(SIGKILL);
	children_release();
	return -1;
}

bool children_gone(void)
{
	bool gone;

	if (!stopped_by || since(&stopped_at) < TWICE_NS || since(&removed_at) < TWICE_NS)
		return false;
	children_hold();
	gone = LIST_EMPTY(&children);
	children_release();
	return gone;
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
	/*
	 * Still here: the kernel sends no such signal to the first process of a container. Not
	 * exit(): another thread may hold the lock of a stream.
	 */
	_exit(128 + sig);
}

/* ---- the terminal ------------------------------------------------------------------ */

/* Is there a terminal, and are we in its foreground? */
static bool in_foreground(void)
{
	return terminal >= 0 && tcgetpgrp(terminal) == getpgrp();
}

/* Hand the terminal over to @child, and continue it. Caller holds gate for writing. */
static void terminal_give(struct child *child)
{
	line_clear();
	if (!tcsetpgrp(terminal, child->pid))
		child->terminal = true;
	kill(-child->pid, SIGCONT);
}

/* Take the terminal back, if @child has it. Caller holds gate. */
static void terminal_take(struct child *child)
{
	if (child->terminal)
		tcsetpgrp(terminal, getpgrp());
	child->terminal = false;
}

/*
 * Stop our process group by @sig, until somebody continues it. Returns false if the kernel did not
 * stop it: it does not stop an orphaned group, which no shell would continue.
 */
static bool stop_group(int sig)
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
	kill(0, sig);
	stopped = sigtimedwait(&cont, NULL, &now) == SIGCONT;
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return stopped;
}

/*
 * @child has stopped, by Ctrl-Z or because it wants the terminal while we are in the background.
 * Stop as well, so that the shell sees its whole job stopped; when it continues us, continue
 * @child.
 */
static void suspend_with(struct child *child, int sig)
{
	terminal_take(child);
	if (!stop_group(sig) && sig != SIGTSTP)
		kill(-child->pid, SIGHUP);	/* as the kernel does to an orphaned group */
	if (in_foreground())
		terminal_give(child);
	else
		kill(-child->pid, SIGCONT);
}

/*
 * @child was stopped by @sig. Give it the terminal if it wants that and we are in the foreground;
 * or stop with it. A command that was stopped in another way is left alone. Caller holds gate for
 * writing.
 */
static void child_stopped(struct child *child, int sig)
{
	if ((sig == SIGTTIN || sig == SIGTTOU) && in_foreground())
		terminal_give(child);
	else if (sig == SIGTTIN || sig == SIGTTOU || (sig == SIGTSTP && child->terminal))
		suspend_with(child, sig);
}

/* Handle all commands that have stopped since the last call. */
static void look_for_stopped(void)
{
	struct child *child;

	if (terminal < 0)	/* then no command stops because it wants the terminal */
		return;
	children_hold();
	LIST_FOREACH(child, &children, entry) {
		siginfo_t info = { 0 };

		if (!waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) && info.si_pid)
			child_stopped(child, info.si_status);
	}
	children_release();
}

/* Is @sig blocked and pending? */
static bool is_pending(int sig)
{
	sigset_t set;

	return !sigpending(&set) && sigismember(&set, sig);
}

/*
 * Ctrl-Z while the terminal is ours. SIGTSTP is pending, and stops this process as soon as it is
 * unblocked. If a SIGCONT came meanwhile, the kernel has removed the pending SIGTSTP: then this
 * process does not stop. So a SIGCONT is never lost by being early.
 */
static void suspend_all(void)
{
	sigset_t set;

	line_clear();
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	children_hold();
	kill_all(SIGSTOP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill_all(SIGCONT);
	children_release();
}

void children_signals(void)
{
	const struct timespec now = { 0 };
	sigset_t taken = signals;
	int sig;

	/* Do not read the signalfd: that would take SIGTSTP too, which must stay pending. */
	sigdelset(&taken, SIGTSTP);
	while ((sig = sigtimedwait(&taken, NULL, &now)) > 0) {
		if (sig == SIGCHLD)
			look_for_stopped();
		else if (sig != SIGCONT && !(sig == SIGHUP && options.hangup && options.hangup()))
			children_stop(sig);
	}
	if (is_pending(SIGTSTP))
		suspend_all();
}

/* ---- running ----------------------------------------------------------------------- */

/*
 * Start a process as @options say, with the signal mask that twheel was started with. Returns an
 * errno.
 */
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

/* Search PATH for a command. Returns a name for the caller to free, or NULL if there is none. */
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

/* Run a file without "#!" with the shell, as execvp() does. */
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

/*
 * Start a process and put it on the list, in one piece: children_stop() either sees it on the list
 * or keeps it from starting. Returns 0, an errno, or CHILD_STOPPED.
 */
static int child_start(struct child *child, char **argv, char **env, const atomic_bool *never)
{
	int err = CHILD_STOPPED;

	pthread_rwlock_rdlock(&gate);
	if (!stopped_by && !*never) {
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

/* Take @child off the list, and the terminal back from it. Returns whether it had the terminal. */
static bool child_remove(struct child *child)
{
	bool had;

	pthread_rwlock_rdlock(&gate);
	had = child->terminal;
	terminal_take(child);
	pthread_mutex_lock(&list_lock);
	LIST_REMOVE(child, entry);
	pthread_mutex_unlock(&list_lock);
	note_removal();
	pthread_rwlock_unlock(&gate);
	return had;
}

/* Collect the status of a process. From here on its number may be that of another process. */
static int collect(const struct child *child)
{
	int status = 0;

	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/*
 * The process has ended, but others of its group may still run. With --kill-after the group is to
 * be killed at some time, so it stays on the list until then. Nobody else can have the number of a
 * group that has a member.
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
 * Ctrl-C, or the end of the terminal, has ended a command that had the terminal. The user meant
 * twheel as well: start nothing more. Only the first such signal counts.
 */
static void key_pressed(int sig)
{
	if (sig == SIGINT || sig == SIGQUIT || sig == SIGHUP)
		note_stop(sig);
}

/* Wait for @child, take it off the list, and return its exit status as a shell does. */
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

/*
 * A thread of the scheduler is in here as long as the command runs. So a command that does not end
 * occupies one of the threads of --jobs.
 */
int child_run(char **argv, char **env, const atomic_bool *never, bool *ran)
{
	struct child child = { 0 };
	int err = child_start(&child, argv, env, never);

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
