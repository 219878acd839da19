// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The processes of runs.
 *
 * A run has a session of its own and, if cgroups can be used, a cgroup of its own. It is over when
 * its first process has ended; then the other processes of its cgroup or group are killed.
 * Its output comes through a pipe, so that no run can fill the disk.
 *
 * If something fails between fork and exec, the child prints what failed into the log of the run,
 * and exits with 126 if the command cannot be run, 127 if it is not found, and 125 otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twheeld.h"
#include "when.h"

#define READ_SIZE	65536
#define UNDO_MS		1000	/* for so long exec_undo() waits for children */
#define ENV_OWN		16
#define FILES_OWN	32	/* descriptors of the daemon itself */
#define READS_MAX	64	/* reads of a pipe after its run has ended; a pipe holds less */

static struct rlimit old_files;	/* the limit on descriptors that the daemon was started with */
static char *state_path;	/* TWHEEL_STATE=..., for the environment of each run */
static char *state_mark;	/* the variable that leftovers_kill() looks for, see state_id() */
static pid_t daemon_pid;	/* see child_bound() */

/* For how many runs are there descriptors? A run takes three, and connections have a quarter. */
static int64_t runs_max(void)
{
	int64_t files = files_max(), most = files / 4, left = (files - FILES_OWN) / 3;

	most = most < left ? most : left;
	return most > 1 ? most : 1;
}

/*
 * Many runs take many descriptors, so the daemon raises its own limit as far as it may. Its runs
 * get the limit that the daemon was started with. If the daemon could not get the three descriptors
 * of a run, the run would have no log: so there are no more runs than descriptors allow.
 */
void exec_setup(const char *state)
{
	struct rlimit files;

	daemon_pid = getpid();
	quick_setup(state);
	getrlimit(RLIMIT_NOFILE, &old_files);
	files = old_files;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (max_running > runs_max()) {
		max_running = runs_max();
		say(SAY_WARNING, "at most %lld runs at once: there are %llu descriptors",
		    (long long)max_running, (unsigned long long)files.rlim_max);
	}
	state_path = format("TWHEEL_STATE=%s", state);
	state_mark = format(STATE_MARK, state_id(state));
}

/* Collect the status of the children that have ended. Returns whether others are left. */
static bool reap_all(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
	return !pid;
}

void exec_undo(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A process that hangs in the kernel may not end at all, though it was killed. */
	for (int i = 0; i < UNDO_MS && reap_all(); i++)
		usleep(1000);
	setrlimit(RLIMIT_NOFILE, &old_files);
}

/* ---- the environment ---------------------------------------------------------------- */

/* Variables that the daemon sets for a run, or that were meant for the daemon alone. */
static bool is_own(const char *variable)
{
	static const char *const own[] = {
		"TWHEEL_", "OPTIONS=", "PG",
		/* of systemd */
		"NOTIFY_SOCKET=", "LISTEN_PID", "LISTEN_FD", "WATCHDOG_PID=", "WATCHDOG_USEC=",
		"INVOCATION_ID=", "JOURNAL_STREAM=", "LOG_NAMESPACE=", "DEBUG_INVOCATION=",
		"MAINPID", "MANAGERPID", "SYSTEMD_EXEC_PID=", "RUNTIME_DIRECTORY=",
		"STATE_DIRECTORY=", "CACHE_DIRECTORY=", "LOGS_DIRECTORY=",
		"CONFIGURATION_DIRECTORY=", "CREDENTIALS_DIRECTORY=", "MEMORY_PRESSURE_",
		"FDSTORE=", "TRIGGER_UNIT=", "TRIGGER_PATH=", "TRIGGER_TIMER_",
		"MONITOR_SERVICE_RESULT=", "MONITOR_EXIT_", "MONITOR_INVOCATION_ID=",
		"MONITOR_UNIT=",
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strncmp(variable, own[i], strlen(own[i])))
			return true;
	return false;
}

/*
 * Set NAME=VALUE in @env: replace the variable of that name among the first *@nr, or add one. The
 * text still belongs to the caller.
 */
static void set_more(char **env, size_t nr, size_t *n, const char *text)
{
	size_t len = strcspn(text, "=") + 1;

	for (size_t i = 0; i < nr; i++) {
		if (strncmp(env[i], text, len))
			continue;
		env[i] = (char *)text;
		return;
	}
	env[(*n)++] = (char *)text;
}

static void set(char **env, size_t *n, const char *text)
{
	set_more(env, *n, n, text);
}

/* set() for a text that was allocated, which is added to @made. The caller frees those. */
static void set_new(char **env, size_t *n, char **made, char *text)
{
	while (*made)
		made++;
	*made = text;
	set(env, n, text);
}

/* Set the variables that describe the run. twheeld(8) lists them. */
static void set_run(const struct run *run, char **env, size_t *n, char **made)
{
	const struct firing *f = &run->firing;
	char at[40];

	set(env, n, state_path);
	set_new(env, n, made, format("TWHEEL_JOB=%s", job_name(run->job)));
	set_new(env, n, made, format("TWHEEL_KEY=%lld-%lld", (long long)f->id, (long long)f->at));
	set_new(env, n, made, format("TWHEEL_AT=%s", time_text(f->at, at)));
	set_new(env, n, made, format("TWHEEL_ATTEMPT=%lld", (long long)f->attempt));
	set_new(env, n, made, format("TWHEEL_MISSED=%lld", (long long)f->missed));
	if (f->arg)
		set_new(env, n, made, format("TWHEEL_ARG=%s", f->arg));
	if (!f->shards)
		return;
	set_new(env, n, made, format("TWHEEL_SHARD=%lld", (long long)f->shard));
	set_new(env, n, made, format("TWHEEL_SHARDS=%lld", (long long)f->shards));
}

/* If the run has a user of its own, set the variables that name this user. */
static void set_user(const struct passwd *pw, char **env, size_t *n, char **made)
{
	set_new(env, n, made, format("HOME=%s", pw->pw_dir));
	set_new(env, n, made, format("USER=%s", pw->pw_name));
	set_new(env, n, made, format("LOGNAME=%s", pw->pw_name));
	set_new(env, n, made, format("SHELL=%s", *pw->pw_shell ? pw->pw_shell : "/bin/sh"));
}

/*
 * The environment of a run: the daemon's, the user's variables, those of the definition, and those
 * that describe the run; the later win. The caller frees it and the texts in @made.
 */
static char **make_env(const struct run *run, const struct passwd *pw, char *made[ENV_OWN])
{
	size_t nr = 0, n = 0, nr_def = 0;
	const struct def *def = &run->job->def;
	char **env;

	while (environ[nr])
		nr++;
	while (def->env && def->env[nr_def])
		nr_def++;
	env = calloc(nr + nr_def + ENV_OWN + 2, sizeof(*env));
	if (!env)
		abort();
	set(env, &n, state_mark);	/* first: the next daemon looks at the first MiB only */
	for (size_t i = 0; i < nr; i++)
		if (!is_own(environ[i]))
			env[n++] = environ[i];
	if (!getenv("PATH"))
		set(env, &n, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	if (pw)
		set_user(pw, env, &n, made);
	nr = n;
	for (size_t i = 0; i < nr_def; i++)
		set_more(env, nr, &n, def->env[i]);
	set_run(run, env, &n, made);
	return env;
}

/* ---- the child ---------------------------------------------------------------------- */

/*
 * In the child: print why the command cannot be run, which goes to the log of the run, and end. The
 * text must fit into the pipe: nobody reads it while this process waits for a child of vfork().
 */
noreturn static void fail(int status, const char *what)
{
	dprintf(STDERR_FILENO, errno ? "twheeld: %.256s: %s\n" : "twheeld: %.256s\n", what,
		strerror(errno));
	_exit(status);
}

/* In the child: handle no signal, and block none. */
static void child_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: set the limits that the job asks for. */
static void child_limits(const struct def *def)
{
	setrlimit(RLIMIT_NOFILE, &old_files);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit = { .rlim_cur = def->limits[i], .rlim_max = def->limits[i] };

		if (def->limited & (1U << i) && setrlimit((__rlimit_resource_t)i, &limit))
			fail(125, "cannot set its limits");
	}
}

/*
 * In the child: become the job's user, and go to its directory. Set the groups first, because that
 * needs root.
 */
static void child_user(const struct def *def, const struct passwd *pw)
{
	const char *dir = def->dir ? def->dir : pw ? pw->pw_dir : getenv("HOME");

	if (pw && !geteuid()) {
		/* To open /dev/stdout or /dev/stderr, one must own the pipe, which is root's. */
		if (fchown(STDOUT_FILENO, pw->pw_uid, (gid_t)-1))
			errno = 0;	/* without CAP_CHOWN they cannot be opened */
		if (initgroups(pw->pw_name, pw->pw_gid) || setgid(pw->pw_gid) ||
		    setuid(pw->pw_uid))
			fail(125, "cannot become its user");
	}
	if (dir && chdir(dir)) {
		if (def->dir)
			fail(125, dir);
		if (chdir("/"))
			fail(125, "/");
	}
}

/*
 * In the child: die with the daemon. Otherwise, if the daemon dies while it forks, this run could
 * begin after the next daemon has killed what was left over, and overlap with the next attempt.
 */
static void child_bound(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon_pid)
		_exit(125);
}

/* In the child: the standard input, empty or what the job says. */
static int open_input(const struct def *def)
{
	size_t size = def->input ? strlen(def->input) : 0;
	int fd;

	if (def->input)
		fd = memfd_create("input", MFD_CLOEXEC);
	else
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (size && (write(fd, def->input, size) != (ssize_t)size ||
				lseek(fd, 0, SEEK_SET))))
		fail(125, "cannot make its input");
	return fd;
}

/*
 * Let the program that is executed next get the standard descriptors only. Those that this program
 * opens are closed by exec, but the libraries open others.
 */
void close_at_exec(void)
{
	int most;

	if (!close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC))
		return;
	most = getdtablesize();		/* before Linux 5.11 */
	for (int fd = STDERR_FILENO + 1; fd < most; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/*
 * The child, from fork to exec. If @why is not NULL, it says why the command cannot be run: then
 * only that is printed.
 */
noreturn static void child(const struct run *run, const struct passwd *pw, char **env, int output,
			    const char *why)
{
	const struct def *def = &run->job->def;

	setsid();
	child_signals();
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	/* What follows may wait for long: so first close all of the daemon's, and die with it. */
	closefrom(STDERR_FILENO + 1);
	child_bound();
	errno = 0;
	if (why)
		fail(125, why);
	dup2(open_input(def), STDIN_FILENO);
	umask(022);
	child_limits(def);
	child_user(def, pw);
	child_bound();		/* again: becoming another user has undone it */
	if (run->process.asked)
		quick_answer(run->process.asked);
	execvpe(def->argv[0], (char **)def->argv, env);
	fail(errno == ENOENT ? 127 : 126, def->argv[0]);
}

/* ---- its output and its end --------------------------------------------------------- */

static void took_output(struct run *run, const char *data, size_t size)
{
	log_write(&run->firing, &run->process.log, data, size);
	api_wake(run);
}

/* Read once from the pipe of a run into its log. Returns whether there may be more. */
static bool read_some(struct run *run)
{
	static char data[READ_SIZE];
	ssize_t n = read(run->process.output.fd, data, sizeof(data));

	if (n > 0)
		took_output(run, data, (size_t)n);
	else if (!n || errno != EAGAIN)
		source_remove(&run->process.output);
	return n > 0;
}

/* The run has printed something, or has closed its output. */
static void output_ready(struct source *source)
{
	read_some(container_of(source, struct run, process.output));
}

/* If the process has ended, say so. Its status is not collected yet: see exec_end(). */
void exec_look(struct run *run)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)run->process.child.pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	    info.si_pid)
		run->process.ended(run, info.si_code, info.si_status);
}

/* The process may have ended. */
static void end_ready(struct child *child)
{
	exec_look(container_of(child, struct run, process.child));
}

/*
 * Send a signal to the group of a child. Until the child has called setsid(), the group does not
 * exist: then send it to the child, which has no other processes yet.
 */
static void signal_group(pid_t pid, int sig)
{
	if (kill(-pid, sig) && errno == ESRCH)
		kill(pid, sig);
}

/*
 * Send a signal to all processes of the run. A stopped process takes the signal only when it
 * continues.
 */
void exec_signal(struct run *run, int sig)
{
	if (sig == SIGKILL)
		cgroup_kill(run);
	signal_group(run->process.child.pid, sig);
	if (sig != SIGKILL)
		signal_group(run->process.child.pid, SIGCONT);
}

/*
 * End the rest of a run whose first process has ended. Collect that process's status only after the
 * group was killed: until then no other process, and no group, can get the same number.
 */
void exec_end(struct run *run)
{
	struct process *p = &run->process;

	exec_signal(run, SIGKILL);
	waitid(P_PID, (id_t)p->child.pid, NULL, WEXITED);
	if (p->asked)
		quick_learn(p->asked);
	for (int i = 0; i < READS_MAX && p->output.fd >= 0 && read_some(run); i++)
		;
	source_remove(&p->output);
	child_forget(&p->child);
	log_close(&p->log);
	cgroup_remove(run);
	api_wake(run);
}

/* ---- beginning ---------------------------------------------------------------------- */

/*
 * fork() into a cgroup, if @cgroup is not -1, with a descriptor that is readable when the child
 * ends.
 */
static int fork_into(int cgroup, int *pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)pidfd, .exit_signal = SIGCHLD,
	};

	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
	}
	return (int)syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * Begin the child by vfork() if possible, and else by fork_into(). A child of vfork() uses the
 * memory of this process, which waits for it. So it must not become another user: looking up names
 * would leave traces in the memory. Nor may it enter a directory, or begin a program, whose file
 * system may not answer, see quick.c. And vfork() cannot begin a process in another cgroup. For all
 * other runs it saves three quarters of the cost, since nothing of this process is copied.
 */
static pid_t begin_child(struct run *run, const struct passwd *pw, char **env, int cgroup,
			 int output, const char *why)
{
	const struct def *def = &run->job->def;
	bool may = cgroup < 0 && !pw && !def->dir, quick = may && quick_may(def->argv[0]);
	pid_t pid;

	run->process.asked = may && !quick ? quick_ask(def->argv[0]) : 0;
	pid = quick ? vfork() : fork_into(cgroup, &run->process.child.end.fd);
	if (!pid)
		child(run, pw, env, output, why);
	return pid;
}

/*
 * Start the child, and watch its output and its end. Returns 0, or a negative errno if there is no
 * process.
 */
static int start(struct run *run, const struct passwd *pw, char **env, int cgroup, const char *why)
{
	struct process *p = &run->process;
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	p->output = (struct source) { .fd = fds[0], .ready = output_ready };
	p->child = (struct child) { .end.fd = -1, .ready = end_ready };
	err = source_add(&p->output) ? -errno : 0;
	p->child.pid = err ? -1 : begin_child(run, pw, env, cgroup, fds[1], why);
	if (!err && p->child.pid < 0)
		err = -errno;
	close(fds[1]);		/* now a descriptor is free for the end of the process */
	if (!err) {
		child_watch(&p->child);
		return 0;
	}
	source_remove(&p->output);
	p->child.pid = 0;
	return err;
}

/*
 * If something is wrong with the job itself (@why), that is not an error here: the child is
 * started, prints @why into the log of the run, and fails with status 125, so that the history has
 * it. If looking up the user, or making the cgroup, has taken longer than the lease, the run does
 * not begin, and this returns -EAGAIN.
 */
int exec_begin(struct run *run)
{
	const struct def *def = &run->job->def;
	struct passwd *pw = NULL;
	const char *why = NULL;
	char **env, *made[ENV_OWN] = { 0 };
	int cgroup, err;

	run->process.log = (struct log) { .fd = -1 };
	if (def->user) {
		pw = def_user(def->user);
		run->process.no_user = !pw && errno;
		if (run->process.no_user)
			return -errno;
		/* Though only root may give jobs a user: root may have used this store before. */
		why = pw ? def_user_wrong(pw) : "there is no such user";
	}
	cgroup = cgroup_make(run, &why);
	env = make_env(run, pw, made);
	err = run->process.may_begin() ? start(run, pw, env, cgroup, why) : -EAGAIN;
	if (cgroup >= 0)
		close(cgroup);
	if (err)
		cgroup_remove(run);
	for (int i = 0; i < ENV_OWN; i++)
		free(made[i]);
	free(env);
	return err;
}
