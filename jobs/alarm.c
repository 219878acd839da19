// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Alarms: the daemon tells somebody that a firing has failed, or has not begun in time. It does so
 * by mail, through sendmail, or by a request to a web address.
 *
 * A job's first alarm is sent at once. A pause follows, in which alarms are only counted; at its
 * end, one alarm tells of all of them. An alarm that cannot be delivered is tried again. If the
 * last attempt fails too, the daemon prints a message, and counts the failure in /metrics.
 *
 * An attempt takes a descriptor, and up to a minute. So only a few attempts are made at once, and
 * at most a quarter of these are for one job. So if a job has many addresses, or some that do not
 * answer, it holds up neither requests nor the alarms of other jobs. If ALARMS_MAX alarms wait, a
 * job with fewer than its share of them gets the place of an alarm of another job: see gives_way().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twheeld.h"
#include "when.h"

#define TRIES		3
#define TRY_AGAIN_NS	(10 * NS_PER_S)
#define CALL_US		(30 * US_PER_S)
#define MAIL_US		(60 * US_PER_S)	/* sendmail only puts the mail into a queue */
#define LOOK_MS		100	/* how often, if there is no descriptor for the end of sendmail */
#define SAID_MAX	4096	/* if sendmail prints more, only the first bytes are kept */
#define AT_ONCE		64	/* mails at once, and as many requests, if there are descriptors */
#define FILES_EACH	32	/* of so many descriptors a mail may have one, and a request */
#define SHARE		4	/* of those at once a quarter may be of one job */
#define ALARMS_MAX	10000	/* mails that are not delivered yet, and as many requests */
#define SAY_US		US_PER_S	/* between two messages that there is no place */

const char *sendmail = "/usr/sbin/sendmail";
uint64_t alarms_sent, alarms_failed;

TAILQ_HEAD(alarms, alarm);
TAILQ_HEAD(turns, sender);

/**
 * struct sender_key - whose alarms
 * @job:	the id of the job
 * @mail:	1 for those by mail, 0 for those by request
 */
struct sender_key {
	int64_t	job;
	int64_t	mail;
};

/**
 * struct sender - the alarms of a job that go one way, by mail or by request
 * @in_turn:	link in the list of those that may begin an attempt as soon as there is room
 * @in_all:	its place among all senders
 * @key:	whose alarms these are
 * @waiting:	the alarms that wait for an attempt
 * @later:	those of which an attempt has failed, until the time of the next one
 * @nr:		how many alarms it has. If there is none, there is no sender
 * @busy:	how many attempts are being made
 * @waits:	it is in the list of those that may begin
 */
struct sender {
	TAILQ_ENTRY(sender)	in_turn;
	UT_hash_handle		in_all;
	struct sender_key	key;
	struct alarms		waiting;
	struct alarms		later;
	size_t			nr;
	int64_t			busy;
	bool			waits;
};

/**
 * struct alarm - what is to be told to one address
 * @in_all:	link in the list of all alarms
 * @entry:	link in one of the lists of @sender
 * @sender:	by whom
 * @to:		the address
 * @subject:	what has happened, in one line
 * @body:	JSON for a web address; for mail a text
 * @tries:	how often it was tried
 * @timer:	the scheduler's task that begins the next attempt, if it is in the list @later
 * @keeper:	the process that ends when sendmail has, and leads its group: see keep(); its id
 *		is 0 if there is none
 * @said:	if there is a keeper: a file with the beginning of what sendmail has printed
 */
struct alarm {
	TAILQ_ENTRY(alarm)	in_all;
	TAILQ_ENTRY(alarm)	entry;
	struct sender		*sender;
	char			*to;
	char			*subject;
	char			*body;
	int			tries;
	uint64_t		timer;
	struct child		keeper;
	int			said;
};

/**
 * struct way - the senders of alarms by mail, or those by request
 * @turns:	the senders that may begin an attempt, the one whose turn it is first
 * @nr:		how many alarms they have
 * @nr_senders:	how many senders there are
 * @busy:	how many attempts are being made
 * @trying:	try_waiting() is at work
 */
struct way {
	struct turns	turns;
	size_t		nr;
	size_t		nr_senders;
	int64_t		busy;
	bool		trying;
};

static struct way ways[2] = { { .turns = TAILQ_HEAD_INITIALIZER(ways[0].turns) },
			      { .turns = TAILQ_HEAD_INITIALIZER(ways[1].turns) } };
static struct sender *senders;
static struct alarms alarms = TAILQ_HEAD_INITIALIZER(alarms);

static void try(struct alarm *alarm);

/* How many attempts of one way may be made at once. */
static int64_t at_once(void)
{
	int64_t most = files_max() / FILES_EACH;

	most = most < AT_ONCE ? most : AT_ONCE;
	return most > SHARE ? most : SHARE;
}

/* If the sender may begin an attempt, it gets a turn, behind the others. */
static void wait_for_turn(struct sender *sender)
{
	if (sender->waits || TAILQ_EMPTY(&sender->waiting) || sender->busy >= at_once() / SHARE)
		return;
	sender->waits = true;
	TAILQ_INSERT_TAIL(&ways[sender->key.mail].turns, sender, in_turn);
}

/* Begin the attempts for which there is room. One may be over at once, which calls this again. */
static void try_waiting(struct way *way)
{
	struct sender *sender;
	struct alarm *alarm;

	if (way->trying)
		return;
	way->trying = true;
	while (way->busy < at_once() && (sender = TAILQ_FIRST(&way->turns))) {
		TAILQ_REMOVE(&way->turns, sender, in_turn);
		sender->waits = false;
		alarm = TAILQ_FIRST(&sender->waiting);
		TAILQ_REMOVE(&sender->waiting, alarm, entry);
		sender->busy++;
		way->busy++;
		wait_for_turn(sender);
		try(alarm);
	}
	way->trying = false;
}

static struct sender *find_sender(const struct sender_key *key)
{
	struct sender *sender;

	HASH_FIND(in_all, senders, key, sizeof(*key), sender);
	return sender;
}

static struct sender *sender_of(const struct sender_key *key)
{
	struct sender *sender = find_sender(key);

	if (sender)
		return sender;
	sender = calloc(1, sizeof(*sender));
	if (!sender)
		abort();
	sender->key = *key;
	TAILQ_INIT(&sender->waiting);
	TAILQ_INIT(&sender->later);
	HASH_ADD(in_all, senders, key, sizeof(*key), sender);
	ways[key->mail].nr_senders++;
	return sender;
}

/* Free an alarm that is neither in a list of its sender nor busy. */
static void alarm_free(struct alarm *alarm)
{
	struct sender *sender = alarm->sender;

	TAILQ_REMOVE(&alarms, alarm, in_all);
	ways[sender->key.mail].nr--;
	if (!--sender->nr) {
		ways[sender->key.mail].nr_senders--;
		HASH_DELETE(in_all, senders, sender);
		free(sender);
	}
	free(alarm->to);
	free(alarm->subject);
	free(alarm->body);
	free(alarm);
}

static void not_sent(const char *to, const char *subject, const char *why)
{
	alarms_failed++;
	say(SAY_ERROR, "cannot send an alarm to %s: %s: %s", to, subject, why);
}

/* The alarm is to be tried, as soon as there is room. */
static void add_waiting(struct alarm *alarm)
{
	struct sender *sender = alarm->sender;

	TAILQ_INSERT_TAIL(&sender->waiting, alarm, entry);
	wait_for_turn(sender);
	try_waiting(&ways[sender->key.mail]);
}

static void again(void *arg, const struct twheel_task_info *task)
{
	struct alarm *alarm = arg;

	(void)task;
	TAILQ_REMOVE(&alarm->sender->later, alarm, entry);
	add_waiting(alarm);
}

/* An attempt to deliver it is over. @why is NULL if it was delivered. */
static void tried(struct alarm *alarm, const char *why)
{
	struct twheel_task task = { .fn = again, .arg = alarm, .when_ns = TRY_AGAIN_NS };
	struct way *way = &ways[alarm->sender->key.mail];

	alarm->sender->busy--;
	way->busy--;
	wait_for_turn(alarm->sender);
	if (!why || ++alarm->tries == TRIES || twheel_sched_add(sched, &task, &alarm->timer)) {
		if (why)
			not_sent(alarm->to, alarm->subject, why);
		else
			alarms_sent++;
		alarm_free(alarm);
	} else {
		TAILQ_INSERT_TAIL(&alarm->sender->later, alarm, entry);
	}
	try_waiting(way);
}

/* ---- by a request ------------------------------------------------------------------- */

static void answered(void *arg, const struct reply *reply)
{
	char *why = NULL;

	if (reply->status / 100 != 2)
		why = reply->status ? format("status %d", reply->status) :
				      format("%s", reply->error);
	tried(arg, why);
	free(why);
}

static void try_web(struct alarm *alarm)
{
	static const char *const headers[] = { "Content-Type: application/json", NULL };
	struct post post = {
		.url = alarm->to, .headers = headers, .body = alarm->body,
		.size = strlen(alarm->body), .timeout = CALL_US, .fn = answered, .arg = alarm,
	};

	if (!call_begin(&post))
		tried(alarm, "no memory");
}

/* ---- by mail ------------------------------------------------------------------------ */

static void mail_sent(struct child *keeper)
{
	struct alarm *alarm = container_of(keeper, struct alarm, keeper);
	siginfo_t info = { 0 };
	char said[200], *why;
	ssize_t n;

	if (waitid(P_PID, (id_t)keeper->pid, &info, WEXITED | WNOHANG) || !info.si_pid)
		return;
	child_forget(keeper);
	n = pread(alarm->said, said, sizeof(said) - 1, 0);
	close(alarm->said);
	said[n > 0 ? n : 0] = 0;
	said[strcspn(said, "\n")] = 0;
	if (*said && !info.si_status)
		say(SAY_WARNING, "sendmail, to %s: %s", alarm->to, said);
	why = format("sendmail has failed%s%s", *said ? ": " : "", said);
	tried(alarm, info.si_status ? why : NULL);
	free(why);
}

void alarms_end(bool again)
{
	const struct alarm *alarm;

	TAILQ_FOREACH(alarm, &alarms, in_all) {
		if (alarm->keeper.pid && again)
			kill(-alarm->keeper.pid, SIGKILL);
		if (!alarm->keeper.pid || again)
			not_sent(alarm->to, alarm->subject, "the daemon ends");
	}
}

/* A file with the mail, to be read from its beginning; or -1. */
static int mail_file(const struct alarm *alarm)
{
	char *mail = format("To: %s\nSubject: twheeld: %s\nAuto-Submitted: auto-generated\n\n%s\n",
			    alarm->to + strlen("mailto:"), alarm->subject, alarm->body);
	size_t size = strlen(mail);
	int fd = memfd_create("mail", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, mail, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		fd = -1;
	}
	free(mail);
	return fd;
}

/* Start sendmail, which prints to @out, in the group of its keeper. Returns 0 or an errno. */
static int spawn(char *address, int out, pid_t *pid)
{
	char *const argv[] = { "sendmail", "-i", "--", address, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGPIPE);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
	err = posix_spawn(pid, sendmail, &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return err;
}

static pid_t mail_pid;	/* sendmail's, in its keeper */

/* In the keeper: end all that @pid has begun, if the kernel can list that. */
static void kill_below(pid_t pid)
{
	char path[64], list[4096], *at = list;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, list, sizeof(list) - 1);
	close(fd);
	list[n > 0 ? n : 0] = 0;
	while ((pid = (pid_t)strtol(at, &at, 10)) > 0 && *at == ' ') {
		kill(pid, SIGSTOP);	/* it begins nothing more */
		kill_below(pid);
		kill(pid, SIGKILL);
	}
}

/*
 * In the keeper: end sendmail and its processes, which may have left the group; then the group, and
 * with it the keeper itself.
 */
static void mail_is_late(void)
{
	kill_below(getpid());
	if (mail_pid > 0)
		kill(mail_pid, SIGKILL);
	kill(0, SIGKILL);
}

/*
 * In the keeper: read a part of what sendmail prints. The first SAID_MAX bytes go to @said, and the
 * rest nowhere. Returns false at the end, or if there is nothing yet and the pipe does not wait.
 */
static bool read_said(int from, int said)
{
	static size_t room = SAID_MAX;
	char part[65536];
	ssize_t n = read(from, part, sizeof(part));

	if (n <= 0)
		return false;
	n = write(said, part, (size_t)n < room ? (size_t)n : room);
	if (n > 0)
		room -= (size_t)n;
	return true;
}

static bool mail_is_over(void)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)mail_pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* In the keeper: read what sendmail prints, until it has ended or its time is over. */
static void mind_mail(int from, int said)
{
	int64_t end = boot_us() + MAIL_US, left;
	struct pollfd fds[] = {
		{ .fd = (int)syscall(SYS_pidfd_open, mail_pid, 0), .events = POLLIN },
		{ .fd = from, .events = POLLIN },
	};

	while (!mail_is_over()) {
		left = end - boot_us();
		if (left <= 0)
			mail_is_late();
		poll(fds, 2, fds[0].fd < 0 ? LOOK_MS : (int)(left / US_PER_MS) + 1);
		if (fds[1].revents && !read_said(from, said))
			fds[1].fd = -1;
	}
	/* What it has left may print for ever. What it has printed itself is in the pipe. */
	fcntl(from, F_SETFL, O_NONBLOCK);
	read_said(from, said);
}

/*
 * The keeper of a sendmail: a process between sendmail and the daemon, which ends sendmail if that
 * takes too long. The daemon may die before, so the daemon itself cannot do this. The keeper has no
 * descriptors but @mail, @said and a pipe, to which sendmail prints. So nothing of the daemon's
 * stays open if the daemon dies. The keeper reads the pipe all the time, so sendmail never waits
 * for a reader, and what it prints takes little memory. When sendmail has ended, nobody reads the
 * pipe any more, and what sendmail has left can print nothing. That may still deliver the mail, so
 * it ignores SIGPIPE, as the daemon does. If processes of sendmail lose their parent, they become
 * children of the keeper, so that it finds them. The keeper's status is 0 if sendmail's is.
 */
noreturn static void keep(char *address, int mail, int said)
{
	int pipe[2], status = 1;

	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	dup2(mail, STDIN_FILENO);
	dup2(said, STDOUT_FILENO);
	closefrom(STDERR_FILENO);
	if (pipe2(pipe, O_CLOEXEC) || spawn(address, pipe[1], &mail_pid))
		_exit(1);
	close(pipe[1]);
	mind_mail(pipe[0], STDOUT_FILENO);
	waitpid(mail_pid, &status, 0);
	_exit(!!status);
}

/* Start a keeper. Returns 0 or an errno. */
static int start_mail(struct alarm *alarm, int mail, int said)
{
	pid_t pid;

	if (mail < 0 || said < 0 || access(sendmail, X_OK))
		return errno;
	pid = fork();
	if (pid < 0)
		return errno;
	if (!pid)
		keep(alarm->to + strlen("mailto:"), mail, said);
	setpgid(pid, pid);	/* whoever is first */
	alarm->said = said;
	alarm->keeper = (struct child) { .pid = pid, .end.fd = -1, .ready = mail_sent };
	return 0;
}

static void try_mail(struct alarm *alarm)
{
	int mail = mail_file(alarm);
	int said = mail < 0 ? -1 : memfd_create("said", MFD_CLOEXEC);
	int err = start_mail(alarm, mail, said);

	if (mail >= 0)
		close(mail);
	if (err) {
		if (said >= 0)
			close(said);
		tried(alarm, strerror(err));
		return;
	}
	child_watch(&alarm->keeper);
}

static void try(struct alarm *alarm)
{
	if (alarm->sender->key.mail)
		try_mail(alarm);
	else
		try_web(alarm);
}

/* ---- what is told, and how often ---------------------------------------------------- */

/* There is no place for an alarm. A job may have thousands of them a second. */
static void no_place(const char *to, const char *subject)
{
	static int64_t nr, next;
	int64_t now = now_us();

	alarms_failed++;
	nr++;
	if (now >= next - SAY_US && now < next)
		return;
	say(SAY_ERROR, "cannot send %lld alarms: too many wait; the last is to %s: %s",
	    (long long)nr, to, subject);
	nr = 0;
	next = now + SAY_US;
}

/* The job with the most alarms of this kind. */
static struct sender *longest(int64_t mail)
{
	struct sender *sender, *next, *most = NULL;

	HASH_ITER(in_all, senders, sender, next)
		if (sender->key.mail == mail && (!most || sender->nr > most->nr))
			most = sender;
	return most;
}

/* Take the newest alarm that is not busy out of the lists; one that was tried is older. */
static struct alarm *take_last(struct sender *sender)
{
	struct alarm *alarm = TAILQ_LAST(&sender->waiting, alarms);

	if (alarm) {
		TAILQ_REMOVE(&sender->waiting, alarm, entry);
		return alarm;
	}
	alarm = TAILQ_LAST(&sender->later, alarms);
	if (alarm) {
		twheel_sched_cancel(sched, alarm->timer, 0);
		TAILQ_REMOVE(&sender->later, alarm, entry);
	}
	return alarm;
}

/* All places are taken. If a job has fewer than its share, the job with the most loses its last. */
static bool gives_way(const struct sender_key *key)
{
	const struct sender *own = find_sender(key);
	struct way *way = &ways[key->mail];
	struct sender *most;
	struct alarm *last;

	if ((own ? own->nr : 0) + 1 >= ALARMS_MAX / way->nr_senders)
		return false;
	most = longest(key->mail);
	last = take_last(most);
	if (!last)
		return false;
	if (most->waits && TAILQ_EMPTY(&most->waiting)) {
		TAILQ_REMOVE(&way->turns, most, in_turn);
		most->waits = false;
	}
	no_place(last->to, last->subject);
	alarm_free(last);
	return true;
}

/* Tell one address of the job. */
static void send_to(const struct job *job, const char *to, const char *what, const char *subject)
{
	bool mail = !strncmp(to, "mailto:", 7);
	const struct sender_key key = { .job = job->id, .mail = mail };
	struct alarm *alarm;

	if (ways[mail].nr >= ALARMS_MAX && !gives_way(&key)) {
		no_place(to, subject);
		return;
	}
	alarm = calloc(1, sizeof(*alarm));
	if (!alarm)
		abort();
	alarm->sender = sender_of(&key);
	alarm->sender->nr++;
	alarm->to = format("%s", to);
	alarm->subject = format("%s", subject);
	alarm->body = mail ? format("%s\n\n%s", subject, what) : format("%s", what);
	TAILQ_INSERT_TAIL(&alarms, alarm, in_all);
	ways[mail].nr++;
	add_waiting(alarm);
}

/* Tell all addresses of the job. */
static void send(const struct job *job, struct json_object *what, const char *subject)
{
	for (const char **to = job->def.alarm_to; to && *to; to++)
		send_to(job, *to, json_text(what), subject);
}

static void alarm_pause(struct job *job);

/* The pause of a job is over: tell how much has happened meanwhile. */
static void pause_over(void *arg, const struct twheel_task_info *task)
{
	struct job *job = arg;
	struct json_object *what;
	char *subject;

	(void)task;
	job->alarm_timer = 0;
	if (!job->alarm_held || !job->name)
		return;
	what = json_object_new_object();
	subject = format("job %s: %lld more alarms", job->name, (long long)job->alarm_held);
	json_object_object_add(what, "job", json_object_new_string(job->name));
	json_object_object_add(what, "more", json_object_new_int64(job->alarm_held));
	json_object_object_add(what, "text", json_object_new_string(subject));
	json_object_object_add(what, "node", json_object_new_string(machine_name()));
	job->alarm_held = 0;
	alarm_pause(job);
	send(job, what, subject);
	json_object_put(what);
	free(subject);
}

/* Tell nothing more of the job for a while. */
static void alarm_pause(struct job *job)
{
	struct twheel_task task = { .fn = pause_over, .arg = job,
				    .when_ns = job->def.alarm_every * NS_PER_US };

	if (twheel_sched_add(sched, &task, &job->alarm_timer))
		job->alarm_timer = 0;
}

/* Tell of a firing: @word is what has happened to it. */
static void tell_of(struct job *job, const struct firing *f, const char *word, int64_t status)
{
	struct json_object *what;
	char *key, *subject, at[40];

	if (job->alarm_timer) {
		job->alarm_held++;
		return;
	}
	key = format("%lld-%lld", (long long)f->id, (long long)f->at);
	subject = format("job %s: %s", job_name(job), word);
	what = json_object_new_object();
	json_object_object_add(what, "job", json_object_new_string(job_name(job)));
	json_object_object_add(what, "run", json_object_new_string(key));
	json_object_object_add(what, "at", json_object_new_string(time_text(f->at, at)));
	json_object_object_add(what, "attempt", json_object_new_int64(f->attempt));
	json_object_object_add(what, "what", json_object_new_string(word));
	if (status >= 0)
		json_object_object_add(what, "status", json_object_new_int64(status));
	json_object_object_add(what, "text", json_object_new_string(subject));
	json_object_object_add(what, "node", json_object_new_string(machine_name()));
	alarm_pause(job);
	send(job, what, subject);
	json_object_put(what);
	free(subject);
	free(key);
}

void alarm_ended(const struct ended *line)
{
	struct job *job = job_by_id(line->firing.job);

	if (!job || !job->def.alarm_to || line->more ||
	    (line->outcome != OUTCOME_FAILED && line->outcome != OUTCOME_TIMEOUT &&
	     line->outcome != OUTCOME_LOST))
		return;
	tell_of(job, &line->firing, outcome_name(line->outcome), line->status);
}

void alarm_late(struct job *job, const struct firing *firing)
{
	tell_of(job, firing, "late", -1);
}
