// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A runner takes runs of a pool from daemons, by HTTP, and executes them with the same code with
 * which daemons execute their own. It has no store, listens nowhere, and its wall clock does not
 * matter.
 *
 * A runner holds its runs for the length of a lease, which each request for more runs renews. When
 * the lease is over, another runner may get these runs. So before that, by its own clock, the
 * runner kills those that must not overlap. What runs print goes to a file here, and from there to
 * the daemon.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twheeld.h"
#include "when.h"

#define URLS		16	/* also in runner_add()'s text, in --help and in twheeld(8) */
#define CHUNK		(256 * 1024)
#define ANSWER_MAX	(64 << 20)
#define LEASE_FIRST	(9 * US_PER_S)	/* the lease, until a daemon has said how long it is */
#define AGAIN_NS	(500 * NS_PER_MS)
#define FLUSH_NS	(500 * NS_PER_MS)
#define REPORT_US	(10 * US_PER_S)
#define ASKED_MAX	100

/**
 * struct made - a run that the runner executes
 * @entry:	link in the list of all
 * @job:	its job: the name, and those parts of the definition that say what to run
 * @run:	the run
 * @call:	a request about it that is under way, or NULL
 * @sent:	how many bytes of its output were sent
 * @sending:	what @sent becomes when @call succeeds; negative if @call reports the end of the run
 * @asked:	how often in a row a daemon has asked for output that it lacks, see is_asked()
 * @over:	it has ended, with @status
 * @status:	see @over
 * @lost:	it was ended because the runner ends: another runner is to execute it
 * @gone:	another runner has it, or it does not count any more: do not report it
 * @killed:	it was told to end
 * @timer:	the scheduler's task that will kill it, or report it again; or 0
 */
struct made {
	TAILQ_ENTRY(made)	entry;
	struct job		job;
	struct run		run;
	struct call		*call;
	int64_t			sent;
	int64_t			sending;
	int			asked;
	bool			over;
	int			status;
	bool			lost;
	bool			gone;
	bool			killed;
	uint64_t		timer;
};

static TAILQ_HEAD(, made) all = TAILQ_HEAD_INITIALIZER(all);
static int64_t nr_made;
static const char *urls[URLS], *pool, *headers[3];
static char *id_word, *pool_word;	/* id and pool, as they are in an address */
static size_t nr_urls, url;
static char id[300];
static bool stopping, left;
/*
 * takes_part: the last request for runs had a good answer. silent: it had none, and that was
 * printed, so print nothing more until one has.
 */
static bool takes_part, silent;
static struct call *take;		/* the request for runs, which is always under way */
static int64_t offered;			/* how many runs @take asks for */
/*
 * By CLOCK_BOOTTIME. sent: when @take was sent. lease: how long the daemon says that a lease is.
 * lease_end: when our leases end. stopped: when runner_stop() was called.
 */
static int64_t sent, lease = LEASE_FIRST, lease_end, stopped;

static void ask(void);
static void ask_for_room(void);
static void report(struct made *made);

/* ---- requests ----------------------------------------------------------------------- */

/* Send a POST to the daemon whose turn it is. NULL if there is no memory. */
static struct call *post(const char *path, const char *body, size_t size, int64_t timeout,
			 void (*fn)(void *arg, const struct reply *reply), void *arg)
{
	bool is_socket = *urls[url] == '/';
	char *address = format("%s%s", is_socket ? "http://localhost" : urls[url], path);
	struct post what = {
		.url = address, .socket = is_socket ? urls[url] : NULL, .headers = headers,
		.body = body, .size = size, .timeout = timeout, .most = ANSWER_MAX,
		.whole = true, .keep = true, .fn = fn, .arg = arg,
	};
	struct call *call = call_begin(&what);

	free(address);
	return call;
}

/* The answer of the daemon, if it is a JSON object; else NULL. */
static struct json_object *understood(const struct reply *reply)
{
	struct json_object *o = reply->size ? json_tokener_parse(reply->body) : NULL;

	if (json_object_is_type(o, json_type_object))
		return o;
	json_object_put(o);
	return NULL;
}

/*
 * The daemon has not answered well. Print why, but only once until a daemon answers well again. The
 * next request goes to the next daemon.
 */
static void next_url(const struct reply *reply)
{
	struct json_object *o = understood(reply), *why = NULL;

	if (o)
		json_object_object_get_ex(o, "error", &why);
	if (!silent)
		say(SAY_WARNING, "%s: %s", urls[url],
		    why ? json_object_get_string(why) : reply->status ? "this is not twheeld" :
		    reply->error);
	takes_part = false;
	silent = true;
	url = (url + 1) % nr_urls;
	json_object_put(o);
}

/* ---- the end of a run --------------------------------------------------------------- */

static void made_free(struct made *made)
{
	if (made->timer)
		twheel_sched_cancel(sched, made->timer, 0);
	if (made->call)
		call_cancel(made->call);
	log_remove(&made->run.firing);
	def_free(&made->job.def);
	free(made->job.name);
	free((char *)made->run.firing.arg);
	TAILQ_REMOVE(&all, made, entry);
	nr_made--;
	free(made);
}

static void set_timer(struct made *made, void (*fn)(void *, const struct twheel_task_info *),
		      int64_t ns)
{
	struct twheel_task task = { .fn = fn, .arg = made, .when_ns = ns };

	if (made->timer)
		twheel_sched_cancel(sched, made->timer, 0);
	made->timer = 0;
	if (twheel_sched_add(sched, &task, &made->timer))
		abort();
}

static void kill_late(void *arg, const struct twheel_task_info *task)
{
	struct made *made = arg;

	(void)task;
	made->timer = 0;
	exec_signal(&made->run, SIGKILL);
}

/* Tell a run to end, as the daemon does: SIGTERM, and later SIGKILL. */
static void kill_made(struct made *made)
{
	if (made->killed || made->over)
		return;
	made->killed = true;
	exec_signal(&made->run, SIGTERM);
	set_timer(made, kill_late, made->job.def.stop * NS_PER_US);
}

/* The run belongs to another runner, or does not count any more: kill it, and do not report it. */
static void drop_made(struct made *made)
{
	made->gone = true;
	if (made->over)
		made_free(made);
	else
		exec_signal(&made->run, SIGKILL);
}

/* The process of a run has ended. */
static void ended(struct run *run, int code, int status)
{
	struct made *made = container_of(run, struct made, run);

	exec_end(run);
	if (made->timer)
		twheel_sched_cancel(sched, made->timer, 0);
	made->timer = 0;
	made->over = true;
	made->status = status + (code == CLD_EXITED ? 0 : 128);
	made->lost = stopping && made->status;
	if (made->gone)
		made_free(made);
	else
		report(made);
}

/* ---- taking ------------------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_string(value) : NULL;
}

static int64_t number_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_int64(value) : 0;
}

/* Those parts of a job's definition that say what to run. When to run it, the daemon decides. */
static struct json_object *what_of(struct json_object *definition)
{
	static const char *const keys[] = { "exec", "env", "user", "dir", "input", "memory", "cpu",
					    "pids", "limits", "stop", "overlap" };
	struct json_object *o = json_object_new_object(), *value;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (json_object_object_get_ex(definition, keys[i], &value))
			json_object_object_add(o, keys[i], json_object_get(value));
	return o;
}

/* The run cannot be executed: write why into its log, and let it fail. */
static void cannot(struct made *made, const char *why)
{
	char *text = format("twheeld: %s\n", why);

	log_write(&made->run.firing, &made->run.process.log, text, strlen(text));
	log_close(&made->run.process.log);
	free(text);
	made->over = true;
	made->status = 125;
	report(made);
}

/* The handler of the signal of guard(). mind_the_lease() does the rest. */
static void lease_is_over(int sig)
{
	struct made *made;

	(void)sig;
	TAILQ_FOREACH(made, &all, entry)
		if (made->run.process.child.pid && made->job.def.overlap != OVERLAP_ALLOW)
			exec_signal(&made->run, SIGKILL);
}

/* runs_guard() of a runner. */
static void guard(bool on)
{
	guard_until(on ? lease_end : 0, lease_is_over);
}

static bool lease_holds(void)
{
	return boot_us() < lease_end;
}

static void start(struct made *made, struct json_object *definition)
{
	struct json_object *what = what_of(definition);
	char error[ERROR_MAX];
	int err;

	made->run.process.ended = ended;
	made->run.process.may_begin = lease_holds;
	if (!def_parse(&made->job.def, what, 0, error)) {
		cannot(made, error);
	} else {
		err = exec_begin(&made->run);
		if (err && !lease_holds()) {	/* another runner may have it by now */
			made->over = true;
			drop_made(made);
		} else if (err) {
			cannot(made, strerror(-err));
		}
	}
	json_object_put(what);
}

/* Begin a run that a daemon has given to this runner. */
static void make(struct json_object *o)
{
	struct json_object *definition = NULL, *each;
	struct made *made = calloc(1, sizeof(*made));
	const char *arg = text_of(o, "arg"), *key = text_of(o, "run"), *name = text_of(o, "job");
	struct firing *f = &made->run.firing;

	if (!made)
		abort();
	json_object_object_get_ex(o, "definition", &definition);
	if (!key || !name || !run_parse(key, f)) {
		free(made);
		return;
	}
	f->attempt = number_of(o, "attempt");
	f->missed = number_of(o, "missed");
	f->shard = number_of(o, "shard");
	/* A single task is a part only if the job has "each"; several tasks always are parts. */
	f->shards = number_of(o, "shards");
	if (f->shards == 1 && !(json_object_object_get_ex(definition, "each", &each) &&
				json_object_get_boolean(each)))
		f->shards = 0;
	f->arg = arg ? format("%s", arg) : NULL;
	made->job.name = format("%s", name);
	made->run.job = &made->job;
	made->run.process.log.fd = -1;
	TAILQ_INSERT_TAIL(&all, made, entry);
	nr_made++;
	start(made, definition);
}

static void make_all(struct json_object *answer)
{
	struct json_object *list;

	if (!json_object_object_get_ex(answer, "runs", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++)
		make(json_object_array_get_idx(list, i));
}

/* ---- reporting ---------------------------------------------------------------------- */

static void report_again(void *arg, const struct twheel_task_info *task)
{
	struct made *made = arg;

	(void)task;
	made->timer = 0;
	report(made);
}

/*
 * Does the daemon ask for output that it lacks, because the runner had sent it to another daemon?
 * Then set made->sent back, so that the output is sent from there on. Heed at most ASKED_MAX
 * requests in a row: a daemon that cannot write the output would ask for ever.
 */
static bool is_asked(struct made *made, struct json_object *answer)
{
	if (made->asked == ASKED_MAX || !json_object_object_get_ex(answer, "log", NULL))
		return false;
	made->asked++;
	made->sent = number_of(answer, "log");
	return true;
}

/* The daemon has answered a report on the run, or there is no answer. */
static void reported(void *arg, const struct reply *reply)
{
	struct made *made = arg;
	struct json_object *answer = understood(reply);
	bool done = made->over && made->sending < 0;

	made->call = NULL;
	if (reply->status == 409) {
		drop_made(made);
	} else if (reply->status != 200) {
		if (!made->killed || made->over)
			set_timer(made, report_again, AGAIN_NS);
	} else if (is_asked(made, answer)) {
		report(made);
	} else if (done) {
		made_free(made);
		make_all(answer);
		ask_for_room();
	} else {
		made->sent = made->sending;
		if (made->asked < ASKED_MAX)	/* at ASKED_MAX it stays: send without @sent */
			made->asked = 0;
		if (made->over)
			report(made);
	}
	json_object_put(answer);
}

/*
 * Read the next part of a log that is to be sent. *@from becomes the offset at which it begins,
 * behind the middle if that was cut out there. Returns its size.
 */
static size_t read_part(const struct made *made, char *part, int64_t *from)
{
	int fd = log_open(&made->run.firing);
	off_t data = lseek(fd, made->sent, SEEK_DATA);
	ssize_t n;

	*from = data < made->sent ? made->sent : data;
	n = pread(fd, part, CHUNK, *from);
	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* Tell a daemon what the run has printed since the last time, and whether it is over. */
static void report(struct made *made)
{
	static char part[CHUNK];
	const struct firing *f = &made->run.firing;
	char *path, how[512] = "";
	int64_t from, room;
	bool done;
	size_t n, n_how;

	if (made->call || made->gone)
		return;
	n = read_part(made, part, &from);
	done = made->over && (!n || from + (int64_t)n >= made->run.process.log.size);
	if (!n && !done)
		return;
	made->sending = done ? -1 : from + (int64_t)n;
	room = stopping ? 0 : max_running - nr_made - offered + 1;
	if (done)
		snprintf(how, sizeof(how), "&pool=%s&room=%lld&%s=%d", pool_word,
			 room > 0 ? (long long)room : 0, made->lost ? "lost" : "status",
			 made->lost ? 1 : made->status);
	n_how = strlen(how);
	if (f->shards > 1)
		strcat(how, "&shards=1");
	else if (made->asked < ASKED_MAX)
		snprintf(how + n_how, sizeof(how) - n_how, "&sent=%lld", (long long)made->sent);
	path = format("/v1/runs/%lld-%lld/%s?attempt=%lld&shard=%lld&from=%lld&runner=%s%s",
		      (long long)f->id, (long long)f->at, done ? "done" : "beat",
		      (long long)f->attempt, (long long)f->shard, (long long)from, id_word, how);
	made->call = post(path, part, n, REPORT_US, reported, made);
	free(path);
	if (!made->call)
		set_timer(made, report_again, AGAIN_NS);
}

/* Each FLUSH_NS, report what runs have printed, so that users can follow their logs. */
static void flush(void *arg, const struct twheel_task_info *task)
{
	struct made *made;

	(void)arg;
	(void)task;
	TAILQ_FOREACH(made, &all, entry)
		if (!made->over && made->run.process.log.size > made->sent)
			report(made);
}

/* ---- asking for more ---------------------------------------------------------------- */

static struct json_object *held_json(const struct made *made)
{
	const struct firing *f = &made->run.firing;
	struct json_object *o = json_object_new_object();
	char *key = format("%lld-%lld", (long long)f->id, (long long)f->at);

	json_object_object_add(o, "run", json_object_new_string(key));
	json_object_object_add(o, "attempt", json_object_new_int64(f->attempt));
	json_object_object_add(o, "shard", json_object_new_int64(f->shard));
	json_object_object_add(o, "killed", json_object_new_boolean(made->killed));
	free(key);
	return o;
}

/* The run that an object names, or NULL. */
static struct made *find(struct json_object *o)
{
	struct made *made;
	struct firing f;

	if (!run_parse(text_of(o, "run"), &f))
		return NULL;
	TAILQ_FOREACH(made, &all, entry) {
		const struct firing *have = &made->run.firing;

		if (have->id == f.id && have->at == f.at && have->shard == number_of(o, "shard") &&
		    have->attempt == number_of(o, "attempt"))
			return made;
	}
	return NULL;
}

/* Call @fn for each of our runs that the answer has under @key. */
static void each_named(struct json_object *answer, const char *key, void (*fn)(struct made *made))
{
	struct json_object *list;

	if (!json_object_object_get_ex(answer, key, &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct made *made = find(json_object_array_get_idx(list, i));

		if (made)
			fn(made);
	}
}

static void ask_again(void *arg, const struct twheel_task_info *task)
{
	(void)arg;
	(void)task;
	ask();
}

/* The daemon has answered the request for runs, or there is no answer. */
static void taken(void *arg, const struct reply *reply)
{
	struct twheel_task task = { .fn = ask_again, .when_ns = AGAIN_NS };
	struct json_object *answer = understood(reply);

	(void)arg;
	take = NULL;
	offered = 0;
	if (reply->status != 200 || !answer) {
		next_url(reply);
		json_object_put(answer);
		if (twheel_sched_add(sched, &task, NULL))
			abort();
		return;
	}
	if (!takes_part)
		say(SAY_INFO, "%s: takes part", urls[url]);
	takes_part = true;
	silent = false;
	if (number_of(answer, "lease_us") > 0)
		lease = number_of(answer, "lease_us");
	/* If this daemon's lease is shorter, it does not shorten the one before: see LATER(). */
	if (lease_end < sent + lease * 9 / 10)
		lease_end = sent + lease * 9 / 10;
	each_named(answer, "gone", drop_made);
	each_named(answer, "kill", kill_made);
	make_all(answer);
	json_object_put(answer);
	left |= stopping && TAILQ_EMPTY(&all);
	ask();
}

/*
 * Ask for runs, or, if there is room for none, only renew the leases. The request is given up after
 * a third of the lease, so that there is time to ask another daemon.
 */
static void ask(void)
{
	struct json_object *o = json_object_new_object(), *runs = json_object_new_array();
	bool leaving = stopping && TAILQ_EMPTY(&all);
	int64_t room = stopping ? 0 : max_running - nr_made;
	bool at_once = stopping || !lease_end;	/* no daemon has said yet how long a lease is */
	char *wait = format("%lldms", (long long)(at_once ? 0 : lease / 6 / US_PER_MS));
	struct made *made;

	if (take || left)
		goto out;
	offered = room < 0 ? 0 : room > 1000 ? 1000 : room;
	json_object_object_add(o, "runner", json_object_new_string(id));
	json_object_object_add(o, "name", json_object_new_string(machine_name()));
	json_object_object_add(o, "pool", json_object_new_string(pool));
	json_object_object_add(o, "room", json_object_new_int64(offered));
	json_object_object_add(o, "wait", json_object_new_string(wait));
	json_object_object_add(o, "leave", json_object_new_boolean(leaving));
	TAILQ_FOREACH(made, &all, entry)
		if (!made->gone)
			json_object_array_add(runs, held_json(made));
	json_object_object_add(o, "runs", json_object_get(runs));
	sent = boot_us();
	take = post("/v1/take", json_text(o), strlen(json_text(o)), lease / 3, taken, NULL);
	if (!take)
		abort();
out:
	json_object_put(runs);
	json_object_put(o);
	free(wait);
}

/*
 * There is room again. If the present request asks for no run, give it up, by which nothing is
 * lost, and ask anew.
 */
static void ask_for_room(void)
{
	if (!take || offered || nr_made >= max_running)
		return;
	call_cancel(take);
	take = NULL;
	ask();
}

/* ---- the loop ----------------------------------------------------------------------- */

/*
 * Should the runner end without reporting? It should if it is stopping, all its runs are over, and
 * no daemon has answered for two leases, one of them since runner_stop().
 */
static bool is_left_alone(void)
{
	const struct made *made;

	TAILQ_FOREACH(made, &all, entry)
		if (!made->over)
			return false;
	return stopping && boot_us() >= (lease_end > stopped ? lease_end : stopped) + lease;
}

/*
 * If the lease is over, other runners may have our runs: kill those whose jobs must not overlap.
 * The ends of the rest are reported as soon as a daemon answers, which knows whether they still
 * count.
 */
static void mind_the_lease(void)
{
	struct made *made, *next;
	bool alone;

	if (boot_us() < lease_end)
		return;
	alone = is_left_alone();
	for (made = TAILQ_FIRST(&all); made; made = next) {
		next = TAILQ_NEXT(made, entry);
		if (alone || (!made->gone && !made->over &&
			      made->job.def.overlap != OVERLAP_ALLOW))
			drop_made(made);
	}
}

/* How long to wait for events, in ms: for ever, unless a lease may end. */
static int patience(void)
{
	int64_t left_us = lease_end - boot_us();

	if (TAILQ_EMPTY(&all))
		return stopping ? 100 : -1;
	return left_us > 0 ? (int)(left_us / US_PER_MS) + 1 : 100;
}

/*
 * End all runs, so that other runners execute them. If called a second time, end the program
 * without waiting for the ends of the runs.
 */
void runner_stop(void)
{
	struct made *made;

	if (stopping)
		_exit(1);
	stopping = true;
	stopped = boot_us();
	TAILQ_FOREACH(made, &all, entry)
		kill_made(made);
	if (take)
		call_cancel(take);
	take = NULL;
	ask();
}

const char *runner_add(const char *text)
{
	size_t n = strlen(text);

	if (strncmp(text, "http://", 7) && strncmp(text, "https://", 8) && *text != '/')
		return "neither http://... nor the path of a socket";
	if (nr_urls == URLS)
		return "one --runner too many: 16 are allowed";
	urls[nr_urls++] = format("%.*s", (int)(n && text[n - 1] == '/' ? n - 1 : n), text);
	return NULL;
}

void runner_token(const char *token)
{
	free((char *)headers[1]);
	headers[1] = token ? format("Authorization: Bearer %s", token) : NULL;
}

void runner_start(const char *of)
{
	struct twheel_task task = {
		.fn = flush, .when_ns = FLUSH_NS, .period_ns = FLUSH_NS,
		.flags = TWHEEL_TASK_DELAY,
	};
	uint32_t random;

	pool = of;
	log_clear();	/* logs of an earlier runner, whose runs are lost */
	if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
	    twheel_sched_add(sched, &task, NULL))
		abort();
	snprintf(id, sizeof(id), "%.100s-%08x", machine_name(), random);
	id_word = curl_easy_escape(NULL, id, 0);
	pool_word = curl_easy_escape(NULL, pool, 0);
	if (!id_word || !pool_word)
		abort();
	headers[0] = "Content-Type: application/octet-stream";
	ask();
}

/* Run until all runs are over, and daemons know of that or other runners have the runs. */
void runner_loop(void)
{
	def_guard = guard;
	while (!left && !(stopping && boot_us() > lease_end && TAILQ_EMPTY(&all))) {
		mind_the_lease();
		core_wait(patience());
	}
	if (take)
		call_cancel(take);
}
