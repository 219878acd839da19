// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * twheeld: options, signals, systemd.
 *
 * All that the daemon keeps is in one directory, the state: the store, the logs, and a file that is
 * locked as long as the daemon runs. For root the state is /var/lib/twheeld, and the socket is in
 * /run/twheeld. For another user the state is in $XDG_STATE_HOME or ~/.local/state, and the socket
 * in $XDG_RUNTIME_DIR or in the state: see default_places().
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../tools/twheel/notify.h"
#include "twheeld.h"
#include "when.h"

#define OLD_SOCKET_MS	1000
#define AGAIN		"TWHEEL_AGAIN"
#define LEASE_US	(3 * US_PER_S)

/**
 * struct options - what the command line says
 * @state:	the directory of the state
 * @store:	the database server; NULL for a file in @state
 * @name:	the name of this machine in the database; NULL for its host name
 * @lease:	how long the others wait before they bury this daemon, in us
 * @socket:	the path of the socket
 * @group:	a group that may use the socket too, or NULL
 * @listen:	the address and port at which it listens too, or NULL
 * @tokens:	the file of the tokens, or NULL
 * @runner:	this is a runner, of @pool
 * @pool:	see @runner
 * @cgroup:	the cgroup below which runs have theirs; see cgroup_setup()
 */
static struct options {
	char		*state;
	const char	*store;
	const char	*name;
	int64_t		lease;
	char		*socket;
	const char	*group;
	const char	*cgroup;
	const char	*listen;
	const char	*tokens;
	bool		runner;
	const char	*pool;
} options;

static char **arguments;

__attribute__((format(printf, 1, 2)))
noreturn static void die(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	say(SAY_ERROR, "%s", text);
	exit(1);
}

char *format(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	return text;
}

/* ---- options ------------------------------------------------------------------------ */

static const char usage[] =
	"Usage: twheeld [OPTION]...\n"
	"Keep jobs, and run each at its time. If the daemon or the machine dies, no time of a job is\n"
	"lost. 'twheel job' talks to it.\n"
	"\n"
	"      --state=DIR       where the jobs are kept; for root /var/lib/twheeld, else\n"
	"                          ~/.local/state/twheeld\n"
	"      --store=URL       postgresql://..., the jobs of several machines, instead of a file\n"
	"      --name=NAME       what this machine is called there; its host name\n"
	"      --lease=DURATION  how long others wait for it before they take over; 3s\n"
	"      --socket=FILE     its socket; for root /run/twheeld/socket, else\n"
	"                          twheeld/socket in $XDG_RUNTIME_DIR, or socket in DIR\n"
	"      --group=NAME      this group may use the socket too: its members can do\n"
	"                          what the daemon's user can\n"
	"      --listen=ADDR:PORT  also answer requests that have a token there\n"
	"      --token-file=FILE the tokens: a line for each, [all|read|run] TOKEN\n"
	"      --runner=URL      do not keep jobs: run those of a pool for the daemon at\n"
	"                          http://ADDR:PORT, or at a socket; up to 16 times\n"
	"      --pool=NAME       the pool of --runner\n"
	"      --runs=N          at most N runs at once; 256\n"
	"      --keep=DURATION   how long history and logs are kept; 7d\n"
	"      --sendmail=FILE   the program that mails alarms; /usr/sbin/sendmail\n"
	"      --cgroup=DIR      the cgroup below which each run has its own; by default\n"
	"                          that of twheeld, if systemd delegated it. 'none': none\n"
	"  -h, --help            display this help and exit\n"
	"  -V, --version         output version information and exit\n";

noreturn static void try_help(void)
{
	fputs("Try 'twheeld --help' for more information.\n", stderr);
	exit(1);
}

static void set_keep(const char *text)
{
	if (!parse_duration(text, &default_keep) || default_keep < NS_PER_S)
		die("'%s' is not a duration of a second or more", text);
	default_keep /= NS_PER_US;
}

static void set_runs(const char *text)
{
	char *end;

	errno = 0;
	max_running = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || max_running < 1 ||
	    max_running > 100000)
		die("'%s' is not a number from 1 to 100000", text);
}

static void set_lease(const char *text)
{
	if (!parse_duration(text, &options.lease) || options.lease < NS_PER_S ||
	    options.lease > LEASE_MAX_US * NS_PER_US)
		die("'%s' is not a duration from a second to 5 minutes", text);
	options.lease /= NS_PER_US;
}

/*
 * libpq takes a URL, or settings such as host=.... If it got a path, it would complain that a = is
 * missing. The message does not show the text, which may contain a password.
 */
static void set_store(const char *text)
{
	if (strncmp(text, "postgresql://", 13) && strncmp(text, "postgres://", 11) &&
	    !strchr(text, '='))
		die("--store needs the address of a server, postgresql://...; "
		    "--state=DIR is for jobs in a file");
	options.store = text;
}

static void add_daemon(const char *url)
{
	const char *wrong = runner_add(url);

	if (wrong)
		die("'%s' is %s", url, wrong);
}

static void set_tokens(const char *path)
{
	char error[ERROR_MAX];

	if (!tokens_read(path, error))
		die("%s", error);
	options.tokens = path;
}

static void set_option(int c)
{
	switch (c) {
	case 'L':
		options.listen = optarg;
		break;
	case 't':
		set_tokens(optarg);
		break;
	case 'R':
		options.runner = true;
		add_daemon(optarg);
		break;
	case 'p':
		if (!name_good(optarg))
			die("'%s' is not a valid name for a pool", optarg);
		options.pool = optarg;
		break;
	case 'd':
		set_store(optarg);
		break;
	case 'n':
		options.name = optarg;
		break;
	case 'l':
		set_lease(optarg);
		break;
	case 's':
		options.state = format("%s", optarg);
		break;
	case 'S':
		options.socket = format("%s", optarg);
		break;
	case 'g':
		options.group = optarg;
		break;
	case 'r':
		set_runs(optarg);
		break;
	case 'k':
		set_keep(optarg);
		break;
	case 'm':
		sendmail = optarg;
		break;
	case 'c':
		options.cgroup = optarg;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(fflush(stdout) ? 1 : 0);
	case 'V':
		printf("twheeld %d.%d.%d\n", TWHEEL_VERSION_MAJOR, TWHEEL_VERSION_MINOR,
		       TWHEEL_VERSION_PATCH);
		exit(fflush(stdout) ? 1 : 0);
	default:
		try_help();
	}
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "state", required_argument, NULL, 's' },
		{ "store", required_argument, NULL, 'd' },
		{ "name", required_argument, NULL, 'n' },
		{ "lease", required_argument, NULL, 'l' },
		{ "socket", required_argument, NULL, 'S' },
		{ "group", required_argument, NULL, 'g' },
		{ "listen", required_argument, NULL, 'L' },
		{ "token-file", required_argument, NULL, 't' },
		{ "runner", required_argument, NULL, 'R' },
		{ "pool", required_argument, NULL, 'p' },
		{ "runs", required_argument, NULL, 'r' },
		{ "keep", required_argument, NULL, 'k' },
		{ "sendmail", required_argument, NULL, 'm' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c, i;

	while ((c = getopt_long(argc, argv, "hV", longs, &i)) != -1) {
		if (optarg && !*optarg)		/* probably a script's variable that is not set */
			die("--%s is empty", longs[i].name);
		set_option(c);
	}
	if (optind == argc)
		return;
	fprintf(stderr, "twheeld: unexpected '%s'\n", argv[optind]);
	try_help();
}

static void default_places(void)
{
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME"),
		   *run = getenv("XDG_RUNTIME_DIR"), *more = options.runner ? "-runner" : "";

	if (options.listen && !options.tokens)
		die("--listen needs --token-file=FILE");
	if (options.runner != !!options.pool)
		die("--runner and --pool must be given together");
	if (options.runner && (options.store || options.listen))
		die("a runner has neither a store nor a port");
	if (options.runner && max_running > RUNNER_RUNS)
		die("a runner makes at most %d runs at once", RUNNER_RUNS);
	if (options.runner && !name_good(machine_name()))
		die("'%s' is not a valid name for a runner: say --name=NAME", machine_name());
	if (!options.lease)
		options.lease = LEASE_US;
	if (!options.state && !geteuid())
		options.state = format("/var/lib/twheeld%s", more);
	else if (!options.state && state && *state == '/')
		options.state = format("%s/twheeld%s", state, more);
	else if (!options.state && home && *home == '/')
		options.state = format("%s/.local/state/twheeld%s", home, more);
	if (!options.state)
		die("there is no HOME: say --state=DIR");
	if (!options.socket && !geteuid())
		options.socket = format("/run/twheeld/socket");
	else if (!options.socket && run && *run == '/')
		options.socket = format("%s/twheeld/socket", run);
	else if (!options.socket)
		options.socket = format("%s/socket", options.state);
}

/* ---- places ------------------------------------------------------------------------- */

/* Make a directory, and those above it that do not exist. */
static void make_dir(const char *path, mode_t mode)
{
	char *copy = format("%s", path);
	mode_t old = umask(022);

	for (char *c = strchr(copy + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = 0;
		mkdir(copy, 0755);
		*c = '/';
	}
	if (mkdir(copy, mode) && errno != EEXIST)
		die("cannot make '%s': %s", path, strerror(errno));
	umask(old);
	free(copy);
}

/*
 * A user who can put a file into the state directory decides what is run. So refuse a directory
 * that everybody can write. If a group or another user can write it, that may be meant: only warn.
 */
static void check_state(const char *path, const struct stat *st)
{
	if (st->st_mode & 002)
		die("'%s' can be written by everybody: its mode is %03o", path,
		    st->st_mode & 0777U);
	if ((st->st_uid && st->st_uid != geteuid()) || st->st_mode & 020)
		say(SAY_ERROR,
		    "'%s' can be written by others: it belongs to user %u, and its mode is %03o",
		    path, st->st_uid, st->st_mode & 0777U);
}

/*
 * Lock the state. The lock belongs to this process: a child between fork and exec does not have it.
 * So if the daemon dies, the next one need not wait for its children.
 */
static void take_state(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *lock, *path;
	struct stat st;
	int fd;

	make_dir(options.state, 0700);
	umask(077);	/* the directory may have been there before, and others may read it */
	path = realpath(options.state, NULL);
	if (!path || stat(path, &st))
		die("cannot find '%s': %s", options.state, strerror(errno));
	check_state(path, &st);
	free(options.state);
	options.state = path;
	lock = format("%s/lock", path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die("cannot open '%s': %s", lock, strerror(errno));
	if (fcntl(fd, F_SETLK, &whole))
		die(errno == EAGAIN || errno == EACCES ? "another twheeld uses '%s'" :
		    "cannot lock '%s'", path);
	free(lock);
}

/* Make sure that the directory still has the store's file after a loss of power. */
static void sync_state(void)
{
	int fd = open(options.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd))
		die("cannot sync '%s': %s", options.state, strerror(errno));
	close(fd);
}

void begin_again(void)
{
	alarms_end(true);
	exec_undo();
	setenv(AGAIN, "1", true);
	close_at_exec();
	execv("/proc/self/exe", arguments);
	die("cannot start again: %s", strerror(errno));
}

/*
 * At its first start the daemon ends if the store cannot be opened, or if daemons of another
 * version share it (-EBUSY): the operator has probably made a mistake. But if the server was opened
 * and then did not answer in time, or if others had buried this daemon, the server does exist: try
 * for ever.
 */
void give_up(int err)
{
	if (!getenv(AGAIN) && (err == -EBUSY || !(store && store->many)))
		exit(1);
	sleep(1);
	begin_again();
}

const char *machine_name(void)
{
	static char host[256];

	gethostname(host, sizeof(host) - 1);
	return options.name ? options.name : host;
}

/*
 * Messages do not show the address, which may contain a password. If the module is missing, or of
 * another version, waiting does not help, so end the program.
 */
static void open_server(void)
{
	char error[ERROR_MAX] = "no memory";
	const struct store_module *module = store_module(error, sizeof(error));

	if (!module)
		die("cannot open the store: %s", error);
	if (!module->open(&store, options.store, machine_name(), options.lease, error,
			  sizeof(error))) {
		store->guard = runs_guard;
		def_guard = runs_guard;
		return;
	}
	say(SAY_ERROR, "cannot open the store: %s", error);
	give_up(0);
}

static void open_file(void)
{
	char *file = format("%s/jobs.db", options.state), error[ERROR_MAX] = "no memory";

	if (store_sqlite(&store, file, error, sizeof(error)))
		die("cannot open '%s': %s", file, error);
	store->lease = options.lease;
	sync_state();
	free(file);
}

/*
 * What the file "life" has: the number and the key of the last life in this directory; and, if a
 * daemon died while it began a life, the key of that one. By these keys the next daemon can end
 * those lives, and need not wait until their leases are over. If the file cannot be written, the
 * next daemon has to wait.
 */
static struct {
	long long	nr;
	long long	key;
	long long	next;
} life;

static void read_life(void)
{
	char *path = format("%s/life", options.state), text[96] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "%lld %lld %lld", &life.nr, &life.key, &life.next);
	if (fd >= 0)
		close(fd);
	free(path);
}

/* Replace the file as a whole: the daemon may be killed at any moment. */
static void write_life(void)
{
	char *path = format("%s/life", options.state), *new = format("%s.new", path);
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool bad = fd < 0 || dprintf(fd, "%lld %lld %lld\n", life.nr, life.key, life.next) < 0;

	if (fd >= 0)
		close(fd);
	if (!bad)
		rename(new, path);
	free(new);
	free(path);
}

int64_t old_life(int64_t *next)
{
	*next = 0;
	if (!store->many)
		return 0;
	read_life();
	if (!life.next && getrandom(&life.next, sizeof(life.next), 0) != sizeof(life.next))
		life.next = 0;
	write_life();
	*next = life.next;
	return life.key;
}

void keep_life(void)
{
	if (!store->many)
		return;
	life.nr = store->life;
	life.key = store->key;
	life.next = 0;
	write_life();
}

/* ---- the socket --------------------------------------------------------------------- */

static gid_t find_group(void)
{
	struct group *group = getgrnam(options.group);

	if (!group)
		die("there is no group '%s'", options.group);
	return group->gr_gid;
}

static bool is_listened_at(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && !connect(fd, (const struct sockaddr *)address, sizeof(*address));

	close(fd);
	return is;
}

/*
 * Remove the socket of a dead daemon: nobody listens at it. A child of that daemon may still listen
 * for a moment, until it has died too.
 */
static void remove_old(const struct sockaddr_un *address)
{
	struct stat st;

	if (!lstat(address->sun_path, &st) && !S_ISSOCK(st.st_mode))
		die("'%s' exists, and is not a socket", address->sun_path);
	for (int ms = 0; is_listened_at(address); ms += 20) {
		if (ms >= OLD_SOCKET_MS)
			die("another daemon listens at '%s'", address->sun_path);
		usleep(20 * 1000);
	}
	unlink(address->sun_path);
}

static int listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *dir = format("%s", options.socket), *slash = strrchr(dir, '/');
	mode_t old;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (slash && slash > dir) {
		*slash = 0;
		make_dir(dir, 0755);
	}
	free(dir);
	if (fd < 0 || strlen(options.socket) >= sizeof(address.sun_path))
		die("cannot make the socket '%s': %s", options.socket,
		    fd < 0 ? strerror(errno) : "the name is too long");
	strcpy(address.sun_path, options.socket);
	remove_old(&address);
	old = umask(0177);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    (options.group &&
	     (chown(options.socket, (uid_t)-1, find_group()) || chmod(options.socket, 0660))) ||
	    listen(fd, SOMAXCONN))
		die("cannot make the socket '%s': %s", options.socket, strerror(errno));
	umask(old);
	return fd;
}

/* Listen at ADDR:PORT, or at [ADDR]:PORT of IPv6. */
static int listen_remote(const char *text)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM }, *found;
	char *host = format("%s", text), *port = strrchr(host, ':'), *name = host;
	int one = 1, err, fd;

	if (!port || port == host)
		die("'%s' is not an address with a port", text);
	*port++ = 0;
	if (*name == '[' && port[-2] == ']') {
		name++;
		port[-2] = 0;
	}
	err = getaddrinfo(name, port, &hints, &found);
	if (err)
		die("cannot listen at '%s': %s", text, gai_strerror(err));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, SOMAXCONN))
		die("cannot listen at '%s': %s", text, strerror(errno));
	freeaddrinfo(found);
	free(host);
	return fd;
}

/* ---- descriptors -------------------------------------------------------------------- */

int64_t files_max(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur < INT32_MAX ? (int64_t)files.rlim_cur : INT32_MAX;
}

/* ---- systemd ------------------------------------------------------------------------ */

static void tell_systemd(const char *text)
{
	int err = notify_systemd(getenv("NOTIFY_SOCKET"), text);

	if (err)
		say(SAY_WARNING, "cannot notify systemd: %s", strerror(-err));
}

/* ---- signals ------------------------------------------------------------------------ */

/* Read the tokens again. If the file is wrong now, the old tokens stay. */
static void reload_tokens(void)
{
	char error[ERROR_MAX];

	if (!options.tokens)
		return;
	if (tokens_read(options.tokens, error))
		say(SAY_INFO, "the tokens were read again");
	else
		say(SAY_ERROR, "%s; the tokens stay as they were", error);
	runner_token(token_to_run());
}

static void signal_ready(struct source *source)
{
	struct signalfd_siginfo info;

	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		reload_tokens();
		return;
	}
	tell_systemd("STOPPING=1");
	if (options.runner)
		runner_stop();
	else
		core_stop();
}

static void watch_signals(void)
{
	static struct source signals = { .ready = signal_ready };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* so that write() fails with EFBIG instead */
	signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals.fd < 0 || source_add(&signals))
		die("signalfd: %s", strerror(errno));
}

/* If descriptors 0 to 2 are closed, open them, so that no file of ours gets such a number. */
static void hold_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

static void set_up(void)
{
	char *logs;

	take_state();
	cgroup_setup(options.cgroup, options.state);	/* before there is another process */
	exec_setup(options.state);
	leftovers_kill(options.state);
	if (options.store)
		open_server();
	else if (!options.runner)
		open_file();
	logs = format("%s/%s", options.state, options.runner ? "unsent" : "logs");
	log_setup(logs);
	free(logs);
}

/* Be a runner. */
static int run_for_others(void)
{
	watch_signals();
	runner_token(token_to_run());
	runner_start(options.pool);
	tell_systemd("READY=1");
	runner_loop();
	return 0;
}

int main(int argc, char **argv)
{
	arguments = argv;
	hold_standard();
	say_setup();
	parse_options(argc, argv);
	default_places();
	signal(SIGCHLD, SIG_DFL);
	set_up();
	core_open();
	if (options.runner)
		return run_for_others();
	core_start();
	watch_signals();
	api_start(listen_here(), false);
	if (options.listen)
		api_start(listen_remote(options.listen), true);
	tell_systemd("READY=1");
	say(SAY_INFO, "life %lld, %s timers, %s", (long long)store->life,
	    twheel_backend(twheel_sched_wheel(sched)), options.socket);
	core_loop();
	alarms_end(false);
	api_stop();
	unlink(options.socket);
	store_close(store);
	return 0;
}
