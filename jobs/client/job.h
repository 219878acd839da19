/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The command twheel-job, which twheel(1) calls as "twheel job": what its files share.
 *
 *	main.c		the words of the command line, and what is printed
 *	http.c		requests to twheeld
 *	crontab.c	import
 *
 * Exit status: 0, or 1 if there was an error; with run --wait that of the job's command.
 */
#ifndef JOB_H
#define JOB_H

#include <error.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct answer - an answer of twheeld
 * @status:	the HTTP status
 * @json:	the answer, or NULL
 * @text:	the answer, if it is not JSON: a part of a log
 * @size:	the size of @text
 * @next:	from where to read on in the log
 */
struct answer {
	int			status;
	struct json_object	*json;
	char			*text;
	size_t			size;
	int64_t			next;
};

/* Use the socket @path. If that is NULL, use that of the user's own daemon, or else root's. */
void http_socket(const char *path);

/* Send a request. Ends the program if nobody answers. Frees @body, which may be NULL. */
struct answer http_ask(const char *method, const char *path, struct json_object *body,
		       bool must_be_new);
void answer_free(struct answer *answer);

/* The same, but an error as the answer ends the program too. Returns the answer. */
struct json_object *http_get(const char *method, const char *path, struct json_object *body,
			     bool must_be_new);

/* @word, escaped for use in a path or a query. The caller frees it. */
char *http_word(const char *word);
/* The same for a name in a path, where the server takes %2F for a slash. No name has one. */
char *http_name(const char *name);

/* As asprintf(). Ends the program if there is no memory. The caller frees the result. */
__attribute__((format(printf, 1, 2)))
char *format(const char *fmt, ...);

struct json_object *string_new(const char *text);

/**
 * crontab_read() - read a crontab
 * @file:	the file
 * @name:	its name, for error messages
 * @prefix:	a job's name is this and the number of its line
 * @has_user:	lines have a user before the command, as in /etc/crontab
 *
 * Reports each line that is wrong. If there is one, ends the program.
 *
 * Return: a list of definitions.
 */
struct json_object *crontab_read(FILE *file, const char *name, const char *prefix, bool has_user);

#endif
