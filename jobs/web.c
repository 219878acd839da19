// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Runs that are HTTP requests. Such a run is over when the answer is there, and has succeeded if
 * the status is 2xx. There is one exception: with the status 202 the receiver has only accepted the
 * run, and reports its end later, by POST /v1/runs/RUN/done. A request cannot be killed, only given
 * up: so the receiver should look at its Idempotency-Key and its Twheel-Attempt.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twheeld.h"

#define HEADERS		16
#define ANSWER_MAX	65536

/*
 * @text as a part of a header: spaces, %, control characters and bytes beyond ASCII become %XX. The
 * caller frees it.
 */
static char *escaped(const char *text)
{
	char *out = malloc(3 * strlen(text) + 1), *at = out;

	if (!out)
		abort();
	for (; *text; text++) {
		if ((unsigned char)*text > ' ' && *text != '%' && (unsigned char)*text < 0x7f)
			*at++ = *text;
		else
			at += sprintf(at, "%%%02X", (unsigned char)*text);
	}
	*at = 0;
	return out;
}

/* What the receiver is told of the run, if its job does not say what to send. */
static struct json_object *describe(const struct run *run)
{
	struct json_object *o = json_object_new_object();
	const struct firing *f = &run->firing;
	char *key = format("%lld-%lld", (long long)f->id, (long long)f->at), at[40];

	json_object_object_add(o, "job", json_object_new_string(job_name(run->job)));
	json_object_object_add(o, "run", json_object_new_string(key));
	json_object_object_add(o, "at", json_object_new_string(time_text(f->at, at)));
	json_object_object_add(o, "attempt", json_object_new_int64(f->attempt));
	json_object_object_add(o, "missed", json_object_new_int64(f->missed));
	if (f->arg)
		json_object_object_add(o, "arg", json_object_new_string(f->arg));
	free(key);
	return o;
}

static bool says_type(const struct def *def)
{
	for (size_t i = 0; def->headers && def->headers[i]; i++)
		if (!strncasecmp(def->headers[i], "Content-Type:", strlen("Content-Type:")))
			return true;
	return false;
}

/* The headers of the request that describe the run. Returns how many. */
static size_t own_headers(const struct run *run, char *made[HEADERS])
{
	const struct firing *f = &run->firing;
	char at[40], *arg;
	size_t n = 0;

	made[n++] = format("Idempotency-Key: %lld-%lld", (long long)f->id, (long long)f->at);
	made[n++] = format("Twheel-Job: %s", job_name(run->job));
	made[n++] = format("Twheel-Key: %lld-%lld", (long long)f->id, (long long)f->at);
	made[n++] = format("Twheel-At: %s", time_text(f->at, at));
	made[n++] = format("Twheel-Attempt: %lld", (long long)f->attempt);
	made[n++] = format("Twheel-Missed: %lld", (long long)f->missed);
	if (!run->job->def.input && !says_type(&run->job->def))
		made[n++] = format("Content-Type: application/json");
	if (!f->arg)
		return n;
	arg = escaped(f->arg);
	made[n++] = format("Twheel-Arg: %s", arg);
	free(arg);
	return n;
}

/* The answer is there, or it is known that there will be none. */
static void answered(void *arg, const struct reply *reply)
{
	struct run *run = arg;
	char *why = NULL;

	run->call = NULL;
	if (!reply->status)
		why = format("twheeld: %s: %s\n", run->job->def.url, reply->error);
	if (why)
		log_write(&run->firing, &run->process.log, why, strlen(why));
	else if (reply->size)
		log_write(&run->firing, &run->process.log, reply->body, reply->size);
	free(why);
	log_close(&run->process.log);
	api_wake(run);
	if (reply->status == 202)
		pool_accepted(run);
	else
		run_over(run, reply->status / 100 == 2, reply->status ? reply->status : -1);
}

int web_begin(struct run *run)
{
	const struct def *def = &run->job->def;
	struct json_object *body = describe(run);
	size_t n = 0, more = 0;
	char *made[HEADERS] = { 0 };
	const char **headers;
	struct post post = {
		.url = def->url, .body = def->input ? def->input : json_text(body),
		.most = ANSWER_MAX, .fn = answered, .arg = run,
	};

	n = own_headers(run, made);
	while (def->headers && def->headers[more])
		more++;
	headers = calloc(n + more + 1, sizeof(*headers));
	if (!headers)
		abort();
	memcpy(headers, made, n * sizeof(*made));
	if (more)
		memcpy(headers + n, def->headers, more * sizeof(*headers));
	post.headers = headers;
	post.size = strlen(post.body);
	run->process.log = (struct log) { .fd = -1 };
	run->call = call_begin(&post);
	while (n--)
		free(made[n]);
	free(headers);
	json_object_put(body);
	return run->call ? 0 : -ENOMEM;
}

void web_cancel(struct run *run)
{
	call_cancel(run->call);
	run->call = NULL;
}
