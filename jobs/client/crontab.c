// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Crontabs, as in crontab(5) of Debian: each line with a command becomes a job.
 *
 * A line NAME=VALUE is for the jobs after it: it goes into their environment, SHELL runs their
 * commands, and CRON_TZ is their time zone. The first % in a command begins its standard input, in
 * which every % is a new line; \% is a percent sign, and before the input \\ is a backslash. No
 * mail is sent: what a job prints is in its log.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define FIELDS	5

/**
 * struct crontab - a crontab that is being read
 * @name:	the name of the file
 * @line:	the number of the present line
 * @prefix:	what the names of the jobs begin with
 * @has_user:	lines have a user before the command
 * @env:	the variables so far
 * @shell:	the shell so far
 * @zone:	the time zone so far, or NULL
 * @jobs:	the definitions so far
 * @bad:	how many lines were wrong
 */
struct crontab {
	const char		*name;
	size_t			line;
	const char		*prefix;
	bool			has_user;
	struct json_object	*env;
	char			*shell;
	char			*zone;
	struct json_object	*jobs;
	size_t			bad;
};

static void wrong(struct crontab *tab, const char *what)
{
	fprintf(stderr, "%s:%zu: %s\n", tab->name, tab->line, what);
	tab->bad++;
}

static char *blanks(char *s)
{
	return s + strspn(s, " \t");
}

/* Cut off and return the first word. *@s becomes what follows it. */
static char *word(char **s)
{
	char *start = blanks(*s);

	*s = start + strcspn(start, " \t");
	if (**s)
		*(*s)++ = 0;
	return start;
}

/*
 * Remove the quotes around @s; if there are none, the blanks after it. Returns NULL if a quote that
 * begins it does not end it, too: cron takes no such line either.
 */
static char *unquote(char *s)
{
	char *end;

	s = blanks(s);
	if (*s == '"' || *s == '\'') {
		end = strchr(s + 1, *s);
		if (!end || *blanks(end + 1))
			return NULL;
		*end = 0;
		return s + 1;
	}
	for (end = s + strlen(s); end > s && isblank((unsigned char)end[-1]);)
		*--end = 0;
	return s;
}

/* Variables that cron does not give to its jobs, or not with the value in the crontab. */
static bool is_crons_own(const char *name)
{
	static const char *const own[] = { "MAILTO", "MAILFROM", "LOGNAME" };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(name, own[i]))
			return true;
	return !strncmp(name, "TWHEEL_", 7);
}

static void set_variable(struct crontab *tab, const char *name, const char *value)
{
	if (!strcmp(name, "SHELL"))
		tab->shell = format("%s", value);
	if (!strcmp(name, "CRON_TZ"))
		tab->zone = format("%s", value);
	else if (!is_crons_own(name))
		json_object_object_add(tab->env, name, string_new(value));
}

/* Take a line NAME=VALUE. Returns false if it is no such line. */
static bool read_variable(struct crontab *tab, char *s)
{
	char quote = *s == '"' || *s == '\'' ? *s++ : 0, *name = s, *end = s, *value;

	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	if (end == name || isdigit((unsigned char)*name) || (quote && *end != quote))
		return false;
	value = blanks(end + !!quote);
	if (*value != '=')
		return false;
	value = unquote(value + 1);
	*end = 0;
	if (value)
		set_variable(tab, name, value);
	else
		wrong(tab, "the quotes do not enclose the whole value");
	return true;
}

/* Cut the standard input off @command and return it, or NULL if there is none. */
static char *cut_input(char *command)
{
	char *input = NULL, *to = command;

	for (char *from = command; *from; from++) {
		if (*from == '\\' && (from[1] == '%' || (from[1] == '\\' && !input))) {
			*to++ = *++from;
		} else if (*from == '%' && !input) {
			*to++ = 0;
			input = to;
		} else {
			*to++ = *from == '%' ? '\n' : *from;
		}
	}
	if (input && to > input && to[-1] != '\n')
		*to++ = '\n';	/* add_job() has left room for it */
	*to = 0;
	return input;
}

/* Cut off and return the five fields of the time, or the one that begins with @. */
static char *read_time(char **s)
{
	char *cron, *fields[FIELDS];

	if (**s == '@')
		return format("%s", word(s));
	for (int i = 0; i < FIELDS; i++)
		fields[i] = word(s);
	cron = format("%s %s %s %s %s", fields[0], fields[1], fields[2], fields[3], fields[4]);
	return cron;
}

static struct json_object *copy(struct json_object *json)
{
	return json_tokener_parse(json_object_to_json_string(json));
}

static void add_job(struct crontab *tab, const char *cron, const char *user, char *command)
{
	struct json_object *job = json_object_new_object(), *words = json_object_new_array(),
			   *home;
	char *room = format("%s\n", command), *name = format("%s%zu", tab->prefix, tab->line),
	     *input;

	room[strlen(room) - 1] = 0;
	input = cut_input(room);
	json_object_object_add(job, "name", string_new(name));
	json_object_object_add(job, "cron", string_new(cron));
	if (tab->zone)
		json_object_object_add(job, "zone", string_new(tab->zone));
	json_object_array_add(words, string_new(tab->shell));
	json_object_array_add(words, string_new("-c"));
	json_object_array_add(words, string_new(room));
	json_object_object_add(job, "exec", words);
	if (user)
		json_object_object_add(job, "user", string_new(user));
	if (json_object_object_get_ex(tab->env, "HOME", &home))	/* where cron begins a command */
		json_object_object_add(job, "dir", json_object_get(home));
	if (input)
		json_object_object_add(job, "input", string_new(input));
	if (json_object_object_length(tab->env))
		json_object_object_add(job, "env", copy(tab->env));
	json_object_object_add(job, "overlap", string_new("allow"));
	json_object_object_add(job, "missed", string_new("skip"));
	json_object_array_add(tab->jobs, job);
	free(room);
	free(name);
}

static void read_line(struct crontab *tab, char *s)
{
	char *cron, *user = NULL, *why;
	size_t len;

	s = blanks(s);
	if (!*s || *s == '#' || read_variable(tab, s))
		return;
	len = strcspn(s, " \t=");
	if (*blanks(s + len) == '=') {
		why = format("'%.*s' is not a valid name for a variable", (int)len, s);
		wrong(tab, why);
		free(why);
		return;
	}
	cron = read_time(&s);
	if (tab->has_user)
		user = word(&s);
	s = blanks(s);
	if (!strcmp(cron, "@reboot"))
		wrong(tab, "@reboot is not a time: use a unit of systemd for that");
	else if (!*s)
		wrong(tab, "there is no command");
	else
		add_job(tab, cron, user, s);
	free(cron);
}

struct json_object *crontab_read(FILE *file, const char *name, const char *prefix, bool has_user)
{
	struct crontab tab = {
		.name = name,
		.prefix = prefix,
		.has_user = has_user,
		.env = json_object_new_object(),
		.shell = format("/bin/sh"),
		.jobs = json_object_new_array(),
	};
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, file)) >= 0) {
		tab.line++;
		if (len && line[len - 1] == '\n')
			line[--len] = 0;
		if (strlen(line) != (size_t)len)
			wrong(&tab, "this is not text: there is a NUL in it");
		else
			read_line(&tab, line);
	}
	if (ferror(file))
		error(1, errno, "%s", name);
	free(line);
	if (tab.bad)
		exit(1);
	return tab.jobs;
}
