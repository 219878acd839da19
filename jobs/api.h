/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * What the files of the HTTP service share: http.c reads requests and sends answers, api.c and
 * metrics.c find the answers.
 */
#ifndef JOBS_API_H
#define JOBS_API_H

#include <microhttpd.h>

#include "twheeld.h"

#define BODY_MAX	1048576
#define SEGMENTS	5

/**
 * enum role - what a request may do
 * @ROLE_NONE:	nothing
 * @ROLE_READ:	read: whatever is asked for with GET
 * @ROLE_RUN:	what a runner does
 * @ROLE_ALL:	everything
 */
enum role { ROLE_NONE, ROLE_READ, ROLE_RUN, ROLE_ALL };

struct server;
struct route;
struct take;

/**
 * struct request - a request that is being answered
 * @waiting:	link in the list of requests that wait, if @suspended
 * @server:	where it has come in
 * @route:	what answers it; NULL if nothing does
 * @role:	what its token allows
 * @conn:	its connection
 * @method:	its method, such as GET
 * @path:	a copy of its path, cut at each slash
 * @segment:	the parts of @path; there may be slashes in the last one of SEGMENTS
 * @nr_segments: how many parts there are
 * @body:	its body, which ends with a 0 that @size does not count; NULL if empty
 * @size:	the size of @body
 * @status:	the status of the answer
 * @json:	the answer
 * @text:	the answer, if it is not JSON; freed with the request
 * @text_size:	the size of @text
 * @type:	the type of @text; NULL for plain text
 * @policy:	the Content-Security-Policy of @text, or NULL
 * @next:	with a log: from where to read on
 * @more:	with a log: the attempt is not over
 * @take:	with a runner's request for work: what it says, see take.c
 * @what:	what it waits for: see request_wait()
 * @deadline:	until when it may wait, by CLOCK_BOOTTIME in us; 0 if it has not waited yet
 * @timer:	the scheduler's task for @deadline, or 0
 * @left:	its connection, while it waits until @deadline: the client may close it
 * @suspended:	libmicrohttpd does nothing with the connection: the request waits
 * @admitted:	it has waited for its turn, see must_queue()
 * @unread:	how much of the answer is counted in answers_unread
 * @error:	what is wrong, or empty
 */
struct request {
	TAILQ_ENTRY(request)	waiting;
	struct server		*server;
	const struct route	*route;
	enum role		role;
	struct MHD_Connection	*conn;
	const char		*method;
	char			*path;
	const char		*segment[SEGMENTS];
	int			nr_segments;
	char			*body;
	size_t			size;
	unsigned int		status;
	struct json_object	*json;
	char			*text;
	size_t			text_size;
	const char		*type;
	const char		*policy;
	int64_t			next;
	bool			more;
	struct take		*take;
	const void		*what;
	int64_t			deadline;
	uint64_t		timer;
	struct source		left;
	bool			suspended;
	bool			admitted;
	size_t			unread;
	char			error[ERROR_MAX];
};

/* Answer with an error. The caller returns, with nothing changed. */
__attribute__((format(printf, 3, 4)))
void refuse(struct request *r, unsigned int status, const char *fmt, ...);

/* The value of parameter @name in the query part of the address, or NULL. */
const char *argument(const struct request *r, const char *name);

/* Is there something on the connection that was not read yet? Has the client closed its end? */
enum peek { PEEK_UNREAD, PEEK_SILENT, PEEK_GONE };
enum peek peek(struct MHD_Connection *conn);

/* The token that comes with the request, or NULL. */
const char *token_of(const struct request *r);

/* How much of @text is UTF-8. */
size_t text_length(const char *text);

/*
 * Do not answer now: dispatch() the request again when api_wake(@what) is called, and every @slice
 * us, or less often if many requests wait so. Returns false if @us have passed since the first such
 * call for the request, or if the request cannot wait: then the caller must answer.
 */
bool request_wait(struct request *r, int64_t us, int64_t slice, const void *what);
#define NO_SLICE	INT64_MAX
/* Call @fn for each request that waits for @what. It must not wake any. */
void requests_each(const void *what, void (*fn)(void *arg, struct request *r), void *arg);
/* dispatch() a request that waits again. */
void request_wake(struct request *r);

/* Is the request allowed, and is there a route for it? If not, the error is set. */
bool request_allowed(struct request *r, enum role role);

/* Does the route of the request know all words of the query? If not, the error is set. */
bool query_is_known(struct request *r);

/* Find the answer. */
void dispatch(struct request *r);

/*
 * Read a number up to @most from the query part of the address. If there is none, *@n stays.
 * Returns false, with the error set, if it is no such number.
 */
bool query_number(struct request *r, const char *name, int64_t most, int64_t *n);
/* The body as JSON, or NULL with the error set. */
struct json_object *parse_body(struct request *r);
/* Which run the address names. Returns false, with the error set, if it names none. */
bool parse_run(struct request *r, struct firing *f);

/* The routes that are not in api.c. */
void post_take(struct request *r);
void take_free(struct take *take);
void post_beat(struct request *r);
void post_done(struct request *r);
void get_runners(struct request *r);
void get_metrics(struct request *r);

#endif
