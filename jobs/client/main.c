// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* twheel-job: the command line of twheeld. twheeld(8) does the work. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../../tools/twheel/utf8.h"
#include "../strict.h"
#include "job.h"
#include "when.h"

#define POLL_US		100000
#define PAGE		1000

/**
 * struct words - the command line
 * @argc:	how many operands there are
 * @argv:	the operands
 * @json:	print JSON
 * @def:	the keys of a definition, or of a shot, that options have set
 * @replace:	a job of that name may exist
 * @wait:	wait for the end of the run
 * @follow:	print the log until the run ends
 * @has_user:	lines of the crontab have a user
 * @prefix:	what the names of imported jobs begin with
 * @query:	which runs to list, as the query part of an address
 * @attempt:	which attempt of the run
 * @number:	how many to list
 */
static struct words {
	int			argc;
	char			**argv;
	bool			json;
	struct json_object	*def;
	bool			replace;
	bool			wait;
	bool			follow;
	bool			has_user;
	const char		*prefix;
	char			*query;
	const char		*attempt;
	const char		*number;
} words;

noreturn static void try_help(void)
{
	fputs("Try 'twheel job --help' for more information.\n", stderr);
	exit(1);
}

/* ---- what is printed ---------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *key, const char *none)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) && value ? json_object_get_string(value)
								  : none;
}

static int64_t int_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_int64(value) : 0;
}

static bool bool_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) && json_object_get_boolean(value);
}

static struct json_object *list_of(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, key, &value);
	return value;
}

/* A time of twheeld, which is in UTC, as local time. */
static const char *time_of(const char *utc, char buf[48])
{
	int64_t ns;

	if (!utc || !parse_time(utc, 0, &ns))
		return "-";
	return show_time(ns, buf);
}

/*
 * Print JSON as @flags say. A terminal obeys some control characters that json-c leaves as they
 * are: DEL, and those from U+0080 to U+009F. They are escaped here.
 */
static void print_text(struct json_object *json, int flags)
{
	const char *s =
		json_object_to_json_string_ext(json, flags | JSON_C_TO_STRING_NOSLASHESCAPE);

	for (; *s; s++) {
		if (*s == 0x7f)
			fputs("\\u007f", stdout);
		else if (utf8_is_control(s))
			printf("\\u%04x", (unsigned char)*++s);
		else
			putchar(*s);
	}
	putchar('\n');
}

static void print_json(struct json_object *json)
{
	print_text(json, JSON_C_TO_STRING_PLAIN);
}

/* Print a line of JSON for each entry. */
static void print_list(struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		print_json(json_object_array_get_idx(list, i));
}

static void print_job(struct json_object *job)
{
	struct json_object *next = list_of(job, "next"), *last = list_of(job, "last");
	struct json_object *run = last ? json_object_array_get_idx(last, 0) : NULL;
	struct json_object *due = next ? json_object_array_get_idx(next, 0) : NULL;
	char buf[48];

	printf("%-24s %-29s %7lld  %s%s\n", text_of(job, "name", "-"),
	       time_of(due ? json_object_get_string(due) : NULL, buf),
	       (long long)int_of(job, "active"),
	       run ? text_of(run, "outcome", "-") : "-",
	       text_of(job, "broken", NULL) ? " broken"
	       : bool_of(job, "paused")	    ? " paused"
					    : "");
}

static void print_run(struct json_object *run)
{
	const char *outcome = text_of(run, "outcome", text_of(run, "state", "-"));
	char at[48], took[32] = "-", missed[32] = "";
	int64_t began, ended;

	if (parse_time(text_of(run, "began", ""), 0, &began) &&
	    parse_time(text_of(run, "ended", ""), 0, &ended))
		show_duration(ended > began ? ended - began : 0, took);
	if (int_of(run, "missed"))
		snprintf(missed, sizeof(missed), "  %lld missed", (long long)int_of(run, "missed"));
	printf("%-28s %-16s %s %2lld  %-8s %6s  %s%s%s\n", text_of(run, "run", "-"),
	       text_of(run, "job", "-"), time_of(text_of(run, "at", NULL), at),
	       (long long)int_of(run, "attempt"), outcome, text_of(run, "status", "-"), took,
	       missed, bool_of(run, "more") ? "  again" : "");
}

static void print_job_head(void)
{
	printf("%-24s %-29s %7s  %s\n", "NAME", "NEXT", "RUNNING", "LAST");
}

static void print_run_head(void)
{
	printf("%-28s %-16s %-28s %2s  %-8s %6s  %s\n", "RUN", "JOB", "AT", "TRY", "OUTCOME",
	       "STATUS", "TOOK");
}

static void print_runs(struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		print_run(json_object_array_get_idx(list, i));
}

/* ---- jobs --------------------------------------------------------------------------- */

static char *job_path(const char *name, const char *rest)
{
	char *word = http_name(name), *path = format("/v1/jobs/%s%s", word, rest);

	free(word);
	return path;
}

static void put_list(struct json_object *list)
{
	struct json_object *answer = http_get("POST", "/v1/jobs", list, !words.replace);

	if (words.json)
		print_list(answer);
	json_object_put(answer);
}

/* Add the job of the options. Its command is in the words after the first one. */
static void add_job(const char *name)
{
	struct json_object *list = json_object_new_array(), *exec = json_object_new_array();

	json_object_object_add(words.def, "name", string_new(name));
	for (int i = 1; i < words.argc; i++)
		json_object_array_add(exec, string_new(words.argv[i]));
	if (words.argc > 1)
		json_object_object_add(words.def, "exec", exec);
	json_object_array_add(list, json_object_get(words.def));
	put_list(list);
}

static int cmd_add(void)
{
	add_job(words.argv[0]);
	return 0;
}

/*
 * Add a job that is due as the first word says, where @key of a definition says it, and print the
 * job's name. The name is drawn from so many that none comes twice; if one did, the daemon would
 * refuse it.
 */
static int add_unnamed(const char *word, const char *key)
{
	struct json_object *other;
	uint64_t random;
	char *name;

	if (json_object_object_get_ex(words.def, key, &other)) {
		error(0, 0, "option '--%s' is not for '%s'", word, word);
		try_help();
	}
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		error(1, errno, "getrandom()");
	name = format("%s-%016llx", word, (unsigned long long)random);
	json_object_object_add(words.def, key, string_new(words.argv[0]));
	add_job(name);
	if (!words.json)
		puts(name);
	free(name);
	return 0;
}

static int cmd_at(void)
{
	return add_unnamed("at", "at");
}

static int cmd_after(void)
{
	return add_unnamed("after", "after");
}

static int cmd_every(void)
{
	return add_unnamed("every", "rate");
}

static FILE *open_file(const char *name)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "re") : stdin;

	if (!file)
		error(1, errno, "cannot open '%s'", name);
	return file;
}

/* Parse @text. Only blanks may follow the JSON: whatever else follows must not be lost silently. */
static struct json_object *parse_json(const char *name, const char *text, size_t size)
{
	struct json_tokener *parser = json_tokener_new();
	struct json_object *json;
	size_t end;

	if (!parser)
		error(1, 0, "no memory");
	json_tokener_set_flags(parser, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	json = json_tokener_parse_ex(parser, text, (int)size);
	end = json_tokener_get_parse_end(parser);
	if (!json || json_tokener_get_error(parser) != json_tokener_success)
		error(1, 0, "%s: this is not JSON, at byte %zu", name, end);
	end += strspn(text + end, " \t\r\n");
	if (text[end])
		error(1, 0, "%s: expected one definition or a list of them; byte %zu is too much",
		      name, end);
	if (json_has_twice(json, text, end))
		error(1, 0, "%s: an object in the JSON has a key twice", name);
	json_tokener_free(parser);
	return json;
}

static struct json_object *read_json(const char *name)
{
	FILE *file = open_file(name);
	size_t size = 0, room = 0;
	char *text = NULL;
	struct json_object *json;

	size = (size_t)getdelim(&text, &room, EOF, file) + 1;
	if (ferror(file))
		error(1, errno, "%s", name);
	if (json_has_nul(text, size - 1))
		error(1, 0, "%s: there is a NUL in the JSON", name);
	json = parse_json(name, size > 1 ? text : "", size);
	free(text);
	return json;
}

/* Put one definition or a list of them. Jobs that exist already are replaced. */
static int cmd_put(void)
{
	struct json_object *json = read_json(words.argv[0]), *list = json;

	if (!json_object_is_type(json, json_type_array)) {
		list = json_object_new_array();
		json_object_array_add(list, json);
	}
	words.replace = true;
	put_list(list);
	return 0;
}

/* How to print jobs: @head is printed before the first page, if it is not NULL. */
struct table {
	void	(*head)(void);
	void	(*job)(struct json_object *job);
};

/*
 * Print one page of jobs. Returns the name after which the next page begins, which the caller
 * frees, or NULL after the last page.
 */
static char *list_page(const char *prefix, const char *after, const struct table *table)
{
	char *path = format("/v1/jobs?limit=%d&prefix=%s%s%s", PAGE, prefix, after ? "&after=" : "",
			    after ? after : "");
	struct json_object *list = http_get("GET", path, NULL, false);
	size_t nr = json_object_array_length(list);
	char *last = NULL;

	if (table->head && !after)
		table->head();
	for (size_t i = 0; i < nr; i++)
		table->job(json_object_array_get_idx(list, i));
	if (nr == PAGE)
		last = http_word(text_of(json_object_array_get_idx(list, nr - 1), "name", ""));
	json_object_put(list);
	free(path);
	return last;
}

static void list_all(const char *prefix, const struct table *table)
{
	char *word = http_word(prefix ? prefix : ""), *after = NULL, *next;

	do {
		next = list_page(word, after, table);
		free(after);
		after = next;
	} while (after);
	free(word);
}

static int cmd_ls(void)
{
	static const struct table plain = { print_job_head, print_job };
	static const struct table json = { NULL, print_json };

	list_all(words.argc ? words.argv[0] : NULL, words.json ? &json : &plain);
	return 0;
}

static struct json_object *exported;

static void export_job(struct json_object *job)
{
	char *path = job_path(text_of(job, "name", ""), "");
	struct json_object *whole = http_get("GET", path, NULL, false);
	struct json_object *definition = list_of(whole, "definition");

	/* A time that has passed must not make "put" fail, or make the job run once more. */
	if (!json_object_array_length(list_of(whole, "next")) && !text_of(whole, "broken", NULL)) {
		json_object_object_del(definition, "at");
		json_object_object_del(definition, "after");
	}
	json_object_array_add(exported, json_object_get(definition));
	json_object_put(whole);
	free(path);
}

/* Print definitions as a list for "put"; with --json a line for each, as other commands do. */
static int cmd_export(void)
{
	static const struct table jobs = { .job = export_job };

	exported = json_object_new_array();
	list_all(words.argc ? words.argv[0] : NULL, &jobs);
	if (words.json)
		print_list(exported);
	else
		print_text(exported, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
	return 0;
}

static int cmd_show(void)
{
	struct json_object *job = http_get("GET", job_path(words.argv[0], ""), NULL, false);
	struct json_object *next = list_of(job, "next");
	char buf[48];

	if (words.json) {
		print_json(job);
		return 0;
	}
	printf("%s, revision %lld%s\n", text_of(job, "name", "-"), (long long)int_of(job, "rev"),
	       bool_of(job, "paused") ? ", paused" : "");
	if (text_of(job, "broken", NULL))
		printf("not run: %s\n", text_of(job, "broken", ""));
	print_text(list_of(job, "definition"), JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
	for (size_t i = 0; i < json_object_array_length(next); i++)
		printf("next %s\n",
		       time_of(json_object_get_string(json_object_array_get_idx(next, i)), buf));
	print_run_head();
	print_runs(list_of(job, "runs"));
	print_runs(list_of(job, "last"));
	return 0;
}

/* Send a request that changes something and whose answer need not be printed. Frees @body. */
static int change(const char *method, const char *path, struct json_object *body)
{
	struct json_object *answer = http_get(method, path, body, false);

	if (words.json)
		print_json(answer);
	json_object_put(answer);
	return 0;
}

static int cmd_rm(void)
{
	return change("DELETE", job_path(words.argv[0], ""), NULL);
}

static int cmd_pause(void)
{
	return change("POST", job_path(words.argv[0], "/pause"), NULL);
}

static int cmd_resume(void)
{
	return change("POST", job_path(words.argv[0], "/resume"), NULL);
}

static int cmd_cancel(void)
{
	char *key = http_word(words.argv[1]);

	return change("DELETE", job_path(words.argv[0], format("/shots/%s", key)), NULL);
}

/* ---- runs --------------------------------------------------------------------------- */

/* The latest attempt of a run, with a reference, or NULL if there is none yet. */
static struct json_object *latest(const char *run)
{
	char *path = format("/v1/runs/%s", run);
	struct json_object *list = http_get("GET", path, NULL, false);
	struct json_object *one =
		json_object_array_length(list) ? json_object_array_get_idx(list, 0) : NULL;

	json_object_get(one);
	json_object_put(list);
	free(path);
	return one;
}

static bool is_over(struct json_object *run)
{
	return run && !strcmp(text_of(run, "state", ""), "over") && !bool_of(run, "more");
}

/*
 * The exit status for @run, which is over: 0 if it was successful, else the status of its command;
 * or 1 if the run has no status, or that of an HTTP answer, which no process can exit with.
 */
static int status_of(struct json_object *run)
{
	int64_t status = int_of(run, "status");

	if (!strcmp(text_of(run, "outcome", ""), "ok"))
		return 0;
	return status > 0 && status <= UINT8_MAX ? (int)status : 1;
}

static int wait_for(const char *id)
{
	struct json_object *run = latest(id);
	int status;

	while (!is_over(run)) {
		if (!run)
			error(1, 0, "the run %s was cancelled", id);
		json_object_put(run);
		usleep(POLL_US);
		run = latest(id);
	}
	if (words.json)
		print_json(run);
	else if (strcmp(text_of(run, "outcome", ""), "ok"))
		fprintf(stderr, "%s: %s\n", id, text_of(run, "outcome", ""));
	status = status_of(run);
	json_object_put(run);
	return status;
}

/* Run a job now, or at the time that the options say. */
static int cmd_run(void)
{
	struct json_object *list = NULL, *answer, *one;
	bool later = json_object_object_length(words.def);

	if (later) {
		list = json_object_new_array();
		if (!list_of(words.def, "at") && !list_of(words.def, "after"))
			json_object_object_add(words.def, "after", string_new("0"));
		json_object_array_add(list, json_object_get(words.def));
	}
	answer = http_get("POST", job_path(words.argv[0], later ? "/shots" : "/run"), list, false);
	one = json_object_array_get_idx(answer, 0);
	if (words.wait)
		return wait_for(text_of(one, "run", ""));
	if (words.json)
		print_json(one);
	else
		puts(text_of(one, "run", ""));
	return 0;
}

static int cmd_history(void)
{
	char *job = words.argc ? http_word(words.argv[0]) : NULL;
	char *path = format("/v1/runs?%s%s%s", words.query ? words.query : "", job ? "&job=" : "",
			    job ? job : "");
	struct json_object *list = http_get("GET", path, NULL, false);

	if (words.json) {
		print_list(list);
		return 0;
	}
	print_run_head();
	print_runs(list);
	return 0;
}

static int cmd_kill(void)
{
	return change("POST", format("/v1/runs/%s/kill", http_name(words.argv[0])), NULL);
}

/* Is @name the id of a run, like 12-1798761600000000? A job may have a name of digits, too. */
static bool is_run(const char *name)
{
	size_t id = strspn(name, "0123456789"), at = 0;

	if (name[id] == '-')
		at = strspn(name + id + 1, "0123456789");
	return id && at && !name[id + 1 + at];
}

/*
 * Of two entries of a list of runs, return the one that ran later. @next comes after @run in the
 * list: first come the runs that are not over, in the order in which they began, and then the
 * others, the latest first.
 */
static struct json_object *later_of(struct json_object *run, struct json_object *next)
{
	static const char *const words[] = { "missed", "skipped", "queued", "waiting", "ready" };
	const char *was = text_of(run, "outcome", text_of(run, "state", ""));

	if (!run || !strcmp(text_of(next, "state", ""), "running"))
		return next;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(was, words[i]))
			return next;
	return run;
}

/* The id of a run. @name is that id, or the name of a job, which stands for its latest run. */
static char *run_of(const char *name)
{
	struct json_object *list, *run = NULL;
	char *word = http_name(name), *id;

	if (is_run(name))
		return word;
	list = http_get("GET", format("/v1/runs?limit=1000&job=%s", word), NULL, false);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		run = later_of(run, json_object_array_get_idx(list, i));
	if (!run)
		error(1, 0, "job '%s' has not run yet", name);
	id = format("%s", text_of(run, "run", ""));
	json_object_put(list);
	free(word);
	return id;
}

/*
 * Print a part of the log of an attempt, or of the latest one if @attempt is NULL, from @from on.
 * Returns where the next part begins. A reader behind a pipe sees each part at once.
 */
static int64_t print_log(const char *run, const char *attempt, int64_t from)
{
	char *path = format("/v1/runs/%s/log?from=%lld%s%s%s", run, (long long)from,
			    words.follow ? "&wait=10s" : "", attempt ? "&attempt=" : "",
			    attempt ? attempt : "");
	struct answer answer = http_ask("GET", path, NULL, false);
	int64_t next = answer.next;

	if (answer.status != 200)
		error(1, 0, "%s", text_of(answer.json, "error", "unexpected answer from twheeld"));
	fwrite(answer.text, 1, answer.size, stdout);
	fflush(stdout);
	answer_free(&answer);
	free(path);
	return next;
}

static int64_t print_rest(const char *run, const char *attempt, int64_t from)
{
	int64_t next;

	while ((next = print_log(run, attempt, from)) != from)
		from = next;
	return from;
}

/**
 * struct place - how much of the logs of a run is printed
 * @run:	its id
 * @attempt:	the attempt, or 0 if none has begun
 * @from:	how much of the log of this attempt
 */
struct place {
	const char	*run;
	int64_t		attempt;
	int64_t		from;
};

/*
 * Print what is new up to the attempt @last. Each attempt has a log of its own, in which the text
 * begins at 0 again.
 */
static void print_new(struct place *place, int64_t last)
{
	if (!place->attempt)
		place->attempt = last;
	for (; place->attempt; place->attempt++, place->from = 0) {
		char *attempt = format("%lld", (long long)place->attempt);

		place->from = print_rest(place->run, attempt, place->from);
		free(attempt);
		if (place->attempt >= last)
			break;
	}
}

/*
 * Print the attempts of a run, from the latest one on, until the run is over; or if @only is not 0,
 * that attempt until it is over.
 */
static void follow_run(const char *run, int64_t only)
{
	struct place place = { .run = run };
	bool over;

	do {
		struct json_object *one = latest(run);
		int64_t attempt = one ? int_of(one, "attempt") : 0;

		over = is_over(one) || (only && attempt > only) || ferror(stdout);
		json_object_put(one);
		print_new(&place, only ? only : attempt);
		if (!over)
			usleep(POLL_US);
	} while (!over);
}

static int cmd_log(void)
{
	char *attempt = words.attempt ? http_word(words.attempt) : NULL;
	char *run = run_of(words.argv[0]);

	/* If @attempt is not a number, the daemon will refuse it. */
	if (words.follow && (!attempt || !attempt[strspn(attempt, "0123456789")]))
		follow_run(run, attempt ? atoll(attempt) : 0);
	else
		print_rest(run, attempt, 0);
	return 0;
}

/* ---- machines ----------------------------------------------------------------------- */

/* How much of its lease the daemon has left; "-" if no other daemon could bury it. */
static const char *lease_of(struct json_object *o, char buf[32])
{
	int64_t us = int_of(o, "lease_us");

	if (!list_of(o, "lease_us"))
		return "-";
	show_duration(us > 0 ? us / 1000 * 1000000 : 0, buf);
	return buf;
}

static void print_node(struct json_object *node)
{
	char buf[32];

	printf("%-24s %8s %10s %6zu%s\n", text_of(node, "name", "-"), text_of(node, "life", "-"),
	       lease_of(node, buf), json_object_array_length(list_of(node, "parts")),
	       bool_of(node, "this") ? "  answers here" : "");
}

static void print_runner(struct json_object *runner)
{
	char buf[32];

	printf("%-24s %-16s %10s  %s\n", text_of(runner, "name", "-"),
	       text_of(runner, "pool", "-"), lease_of(runner, buf), text_of(runner, "runner", "-"));
}

static int list_machines(const char *path, const char *head,
			 void (*print)(struct json_object *machine))
{
	struct json_object *list = http_get("GET", path, NULL, false);

	if (!words.json)
		puts(head);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		(words.json ? print_json : print)(json_object_array_get_idx(list, i));
	json_object_put(list);
	return 0;
}

static int cmd_nodes(void)
{
	return list_machines("/v1/nodes", "NAME                         LIFE      LEASE  PARTS",
			     print_node);
}

static int cmd_runners(void)
{
	return list_machines("/v1/runners",
			     "NAME                     POOL                  LEASE  RUNNER",
			     print_runner);
}

/* ---- times, calendars, crontabs ----------------------------------------------------- */

static int cmd_next(void)
{
	char *cron = http_word(words.argv[0]);
	char *zone = list_of(words.def, "zone") ? http_word(text_of(words.def, "zone", "")) : NULL;
	char *most = http_word(words.number ? words.number : "5");
	char *path = format("/v1/preview?cron=%s%s%s&n=%s", cron, zone ? "&zone=" : "",
			    zone ? zone : "", most);
	struct json_object *list = http_get("GET", path, NULL, false);
	char buf[48];

	if (!json_object_array_length(list) && atoi(most))
		error(1, 0, "'%s' is never due", words.argv[0]);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *at = json_object_get_string(json_object_array_get_idx(list, i));

		puts(words.json ? json_object_to_json_string(json_object_array_get_idx(list, i)) :
				  time_of(at, buf));
	}
	return 0;
}

/* A list of the words in a file. A # begins a comment. */
static struct json_object *read_days(const char *name)
{
	struct json_object *list = json_object_new_array();
	FILE *file = open_file(name);
	char *line = NULL, *rest, *word;
	size_t room = 0;

	while (getline(&line, &room, file) >= 0) {
		line[strcspn(line, "#\n")] = 0;
		rest = line;
		while ((word = strsep(&rest, " \t\r")))
			if (*word)
				json_object_array_add(list, string_new(word));
	}
	if (ferror(file))
		error(1, errno, "%s", name);
	free(line);
	return list;
}

static int cmd_days(void)
{
	char *path = format("/v1/days/%s", http_name(words.argv[0]));
	struct json_object *list;

	if (words.argc == 2)
		return change("PUT", path, read_days(words.argv[1]));
	list = http_get("GET", path, NULL, false);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		puts(words.json ? json_object_to_json_string(json_object_array_get_idx(list, i)) :
				  json_object_get_string(json_object_array_get_idx(list, i)));
	return 0;
}

static int cmd_import(void)
{
	const char *name = words.argv[0];
	FILE *file = open_file(name);
	struct json_object *jobs =
		crontab_read(file, name, words.prefix ? words.prefix : "crontab-", words.has_user);
	size_t nr = json_object_array_length(jobs);

	if (!nr)
		error(1, 0, "%s: there is no line with a command", name);
	put_list(jobs);
	if (!words.json)
		printf("%zu jobs\n", nr);
	return 0;
}

/* ---- the words ---------------------------------------------------------------------- */

static const char usage[] =
	"Usage: twheel job add NAME [OPTION]... -- COMMAND [ARG]...\n"
	"  or:  twheel job add NAME --http=URL [OPTION]...\n"
	"  or:  twheel job at TIME|after DURATION|every DURATION [OPTION...] -- COMMAND [ARG...]\n"
	"                                           a job; a name is made up for it\n"
	"  or:  twheel job put FILE                 definitions in JSON, see twheel-job(5)\n"
	"  or:  twheel job ls|export [PREFIX]\n"
	"  or:  twheel job show|rm|pause|resume NAME\n"
	"  or:  twheel job run NAME [--wait] [--at=TIME|--after=DURATION] [--key=KEY]\n"
	"           [--arg=TEXT]\n"
	"  or:  twheel job cancel NAME KEY\n"
	"  or:  twheel job history|runs [NAME] [--outcome=WORD] [--since=TIME] [--limit=N]\n"
	"  or:  twheel job log RUN|NAME [-f|--follow] [--attempt=N]\n"
	"  or:  twheel job kill RUN\n"
	"  or:  twheel job nodes|runners\n"
	"  or:  twheel job next EXPRESSION [--zone=NAME] [--limit=N]\n"
	"  or:  twheel job days CALENDAR [FILE]\n"
	"  or:  twheel job import CRONTAB [--prefix=TEXT] [--user-field] [--replace]\n"
	"Jobs that survive: twheeld(8) keeps them, and runs each at its time.\n"
	"\n"
	"When to run, for add, at, after and every. Without these options the job runs only\n"
	"if somebody requests it, or after another job:\n"
	"      --cron=EXPRESSION --zone=NAME --except=CALENDAR\n"
	"      --every=DURATION --start=TIME   at a rate\n"
	"      --spread=DURATION               later by up to this much, by the same for a job\n"
	"      --delay=DURATION                this long after the end of the last run\n"
	"      --at=TIME --after=DURATION      once\n"
	"How to run, for the same commands:\n"
	"      --missed=once|skip|all --grace=DURATION\n"
	"      --overlap=skip|queue|replace|allow --queue=N\n"
	"      --retry=N --wait-retry=DURATION --timeout=DURATION --stop=DURATION\n"
	"      --lost=again|report --keep=DURATION\n"
	"      --user=NAME --dir=DIR --env=NAME=VALUE --memory=SIZE --cpu=PERCENT --pids=N\n"
	"      --then=NAME --then-fail=NAME    jobs that follow\n"
	"      --alarm=mailto:ADDRESS|URL --late=DURATION      whom to tell if it fails or is late\n"
	"      --replace                       for add and import: replace a job of that name\n"
	"Where to run, for the same commands; by default on the daemon's machine:\n"
	"      --pool=NAME --prio=N --prefer=TEXT              on a runner of a pool\n"
	"      --each                                          a part on each runner of it\n"
	"For all commands:\n"
	"      --socket=FILE    the socket of twheeld\n"
	"      --json           print JSON, a line for each job, run, time or machine\n"
	"  -h, --help           display this help and exit\n"
	"\n"
	"DURATION and TIME are as in twheel(1).\n";

static const struct command {
	const char	*name;
	int		(*fn)(void);
	int		least, most;	/* how many operands */
	const char	*options;	/* the classes of an_options[] that it accepts */
} commands[] = {
	{ "add", cmd_add, 1, 4096, "dR" },
	{ "at", cmd_at, 1, 4096, "d" },
	{ "after", cmd_after, 1, 4096, "d" },
	{ "every", cmd_every, 1, 4096, "d" },
	{ "put", cmd_put, 1, 1, "" },
	{ "ls", cmd_ls, 0, 1, "" },
	{ "export", cmd_export, 0, 1, "" },
	{ "show", cmd_show, 1, 1, "" },
	{ "rm", cmd_rm, 1, 1, "" },
	{ "pause", cmd_pause, 1, 1, "" },
	{ "resume", cmd_resume, 1, 1, "" },
	{ "run", cmd_run, 1, 1, "ws" },
	{ "cancel", cmd_cancel, 2, 2, "" },
	{ "history", cmd_history, 0, 1, "ql" },
	{ "runs", cmd_history, 0, 1, "ql" },
	{ "log", cmd_log, 1, 1, "fa" },
	{ "kill", cmd_kill, 1, 1, "" },
	{ "nodes", cmd_nodes, 0, 0, "" },
	{ "runners", cmd_runners, 0, 0, "" },
	{ "next", cmd_next, 1, 1, "zl" },
	{ "days", cmd_days, 1, 2, "" },
	{ "import", cmd_import, 1, 1, "pUR" },
};

/*
 * The options. A command accepts those of which one of @classes is in its @options. An option of
 * class d or s sets the @key of a definition or a shot, see set_key().
 */
static const struct an_option {
	const char	*name;
	int		has_arg;
	char		classes[4];
	const char	*key;
} an_options[] = {
	{ "cron", 1, "d", "cron" },
	{ "every", 1, "d", "rate" },
	{ "start", 1, "d", "start" },
	{ "delay", 1, "d", "delay" },
	{ "at", 1, "ds", "at" },
	{ "after", 1, "ds", "after" },
	{ "zone", 1, "dz", "zone" },
	{ "except", 1, "d", "except" },
	{ "spread", 1, "d", "spread" },
	{ "missed", 1, "d", "missed" },
	{ "grace", 1, "d", "grace" },
	{ "overlap", 1, "d", "overlap" },
	{ "queue", 1, "d", "#queue" },
	{ "retry", 1, "d", "retry#times" },
	{ "wait-retry", 1, "d", "retry.wait" },
	{ "timeout", 1, "d", "timeout" },
	{ "stop", 1, "d", "stop" },
	{ "lost", 1, "d", "lost" },
	{ "keep", 1, "d", "keep" },
	{ "user", 1, "d", "user" },
	{ "dir", 1, "d", "dir" },
	{ "env", 1, "d", "env=" },
	{ "memory", 1, "d", "memory" },
	{ "cpu", 1, "d", "#cpu" },
	{ "pids", 1, "d", "#pids" },
	{ "then", 1, "d", "then+ok" },
	{ "then-fail", 1, "d", "then+fail" },
	{ "alarm", 1, "d", "alarm+fail" },
	{ "late", 1, "d", "alarm.late" },
	{ "http", 1, "d", "http" },
	{ "pool", 1, "d", "pool" },
	{ "prio", 1, "d", "#prio" },
	{ "prefer", 1, "d", "prefer" },
	{ "each", 0, "d", "each!" },
	{ "key", 1, "s", "key" },
	{ "arg", 1, "s", "arg" },
	{ "replace", 0, "R", NULL },
	{ "wait", 0, "w", NULL },
	{ "follow", 0, "f", NULL },
	{ "outcome", 1, "q", NULL },
	{ "since", 1, "q", NULL },
	{ "limit", 1, "l", NULL },
	{ "attempt", 1, "a", NULL },
	{ "prefix", 1, "p", NULL },
	{ "user-field", 0, "U", NULL },
};

/* The object at @key of the definition. It is created if it does not exist. */
static struct json_object *inside(const char *key, size_t len)
{
	char *name = format("%.*s", (int)len, key);
	struct json_object *o = list_of(words.def, name);

	if (!o) {
		o = json_object_new_object();
		json_object_object_add(words.def, name, o);
	}
	free(name);
	return o;
}

static void add_to_list(struct json_object *o, const char *key, const char *value)
{
	struct json_object *list = list_of(o, key);

	if (!list) {
		list = json_object_new_array();
		json_object_object_add(o, key, list);
	}
	json_object_array_add(list, string_new(value));
}

/* @text as a number, if it is one. If not, as a text: then twheeld's error says what is wrong. */
static struct json_object *number_new(const char *text)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	return *text && !*end ? json_object_new_int64(n) : string_new(text);
}

/*
 * Set a key of the definition. @key is "name" for a string, "#name" for a number, "object.name" and
 * "object#name" for the same within an object, "object+name" for a list in an object, "object="
 * if @value is NAME=VALUE for an object, and "name!" for true.
 */
static void set_key(const char *key, const char *value)
{
	size_t len = strcspn(key, ".#+=!");
	const char *name = key + len + 1;
	char *eq;

	if (!key[len]) {
		json_object_object_add(words.def, key, string_new(value));
	} else if (key[len] == '!') {
		json_object_object_add(words.def, format("%.*s", (int)len, key),
				       json_object_new_boolean(true));
	} else if (key[len] == '.') {
		json_object_object_add(inside(key, len), name, string_new(value));
	} else if (key[len] == '#') {
		json_object_object_add(len ? inside(key, len) : words.def, name, number_new(value));
	} else if (key[len] == '+') {
		add_to_list(inside(key, len), name, value);
	} else {
		eq = strchrnul(value, '=');
		json_object_object_add(inside(key, len), format("%.*s", (int)(eq - value), value),
				       string_new(*eq ? eq + 1 : ""));
	}
}

static void set_option(const struct an_option *o, const char *value)
{
	if (o->key)
		set_key(o->key, value);
	else if (*o->classes == 'R')
		words.replace = true;
	else if (*o->classes == 'w')
		words.wait = true;
	else if (*o->classes == 'f')
		words.follow = true;
	else if (*o->classes == 'U')
		words.has_user = true;
	else if (*o->classes == 'a')
		words.attempt = value;
	else if (*o->classes == 'p')
		words.prefix = value;
	else
		words.query = format("%s&%s=%s", words.query ? words.query : "", o->name,
				     http_word(value));
	if (*o->classes == 'l')
		words.number = value;
}

static void take_option(const struct command *command, int c, const char *value)
{
	const struct an_option *o = c >= 256 ? &an_options[c - 256] : NULL;

	if (c == 'f' && !strchr(command->options, 'f')) {
		error(0, 0, "option '-f' is not for '%s'", command->name ? command->name : "job");
		try_help();
	}
	words.follow |= c == 'f';
	if (c == 'j')
		words.json = true;
	if (c == 'S')
		http_socket(value);
	if (c == '?')
		try_help();
	if (c == 'h') {
		fputs(usage, stdout);
		exit(fflush(stdout) ? 1 : 0);
	}
	if (o && !command->name) {
		error(0, 0, "option '--%s' belongs to a command, and must follow it", o->name);
		try_help();
	}
	if (o && !strpbrk(command->options, o->classes)) {
		error(0, 0, "option '--%s' is not for '%s'", o->name, command->name);
		try_help();
	}
	if (o)
		set_option(o, value);
}

/* Take the options of a command, or with @shorts "+..." those before the first word. */
static void take_options(const struct command *command, const char *shorts, int argc, char **argv)
{
	struct option longs[ARRAY_SIZE(an_options) + 4] = {
		{ "json", 0, NULL, 'j' }, { "socket", 1, NULL, 'S' }, { "help", 0, NULL, 'h' },
	};
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(an_options); i++)
		longs[i + 3] = (struct option){ an_options[i].name, an_options[i].has_arg, NULL,
						(int)i + 256 };
	optind = 0;	/* begin anew: glibc */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		take_option(command, c, optarg);
}

static void parse_options(const struct command *command, int argc, char **argv)
{
	take_options(command, "hf", argc, argv);
	words.argc = argc - optind;
	words.argv = argv + optind;
	if (words.argc >= command->least && words.argc <= command->most)
		return;
	error(0, 0,
	      words.argc < command->least ? "missing operand after '%s'"
					  : "too many operands for '%s'",
	      command->name);
	try_help();
}

/* At exit: write what is still in the buffer, and report it if that fails. */
static void close_stdout(void)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (!fclose(stdout) && !failed)
		return;
	error(0, errno, "write error");
	_exit(1);
}

int main(int argc, char **argv)
{
	static const struct command none = { .options = "" };
	char **word;

	program_invocation_name = (char *)"twheel job";
	atexit(close_stdout);
	words.def = json_object_new_object();
	http_socket(getenv("TWHEELD_SOCKET"));
	take_options(&none, "+hf", argc, argv);
	word = argv + optind;
	for (size_t i = 0; *word && i < ARRAY_SIZE(commands); i++) {
		if (strcmp(*word, commands[i].name))
			continue;
		parse_options(&commands[i], argc - (int)(word - argv), word);
		return commands[i].fn();
	}
	error(0, 0, *word ? "unknown command '%s'" : "missing command", *word);
	try_help();
}
