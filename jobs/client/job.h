/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * twheel-job, which twheel(1) calls as "twheel job": what its files share.
 *
 *	main.c		the words of the command line, and what is printed
 *	http.c		requests to twheeld
 *	crontab.c	import
 *
 * Exit status: 0, or 1 if there was an error; of run --wait that of the command.
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
 * struct answer - what twheeld says
 * @status:	of HTTP
 * @json:	the answer, or NULL
 * @text:	the answer instead: a log
 * @size:	of that
 * @next:	where the log goes on
 */
struct answer {
	int			status;
	struct json_object	*json;
	char			*text;
	size_t			size;
	int64_t			next;
};

/* @path: of the socket; NULL: the user's own daemon's, or root's */
void http_socket(const char *path);

/* Ask. Ends the program if nobody answers. @body, which may be NULL, is freed. */
struct answer http_ask(const char *method, const char *path, struct json_object *body,
		       bool must_be_new);
void answer_free(struct answer *answer);

/* The same; ends the program if it is refused. Returns what was answered. */
struct json_object *http_get(const char *method, const char *path, struct json_object *body,
			     bool must_be_new);

/* A word for a path or a query, to be freed. */
char *http_word(const char *word);

__attribute__((format(printf, 1, 2)))
char *format(const char *fmt, ...);

struct json_object *string_new(const char *text);

/**
 * crontab_read() - read a crontab
 * @file:	it
 * @name:	its name, for what is wrong
 * @prefix:	jobs are called PREFIX and the number of their line
 * @has_user:	its lines have a user, as those of /etc/crontab
 *
 * Ends the program if a line is wrong, after having said so of each.
 *
 * Return: definitions.
 */
struct json_object *crontab_read(FILE *file, const char *name, const char *prefix, bool has_user);

#endif
