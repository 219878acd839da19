// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * HTTP, by libmicrohttpd, in the loop of the daemon. A client that may open the socket may do
 * everything. A client that comes by TCP needs a token, which says what it may do; without one it
 * can only read the page at /, which contains nothing about jobs.
 *
 * When the headers of a request have been read, the server decides whether the request is allowed.
 * If it is not, the server reads its body and drops it, so that the client can send all of it, and
 * then reads the answer. If it is not clear where the body ends, the server answers at once, and
 * closes the connection.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tools/twheel/utf8.h"
#include "api.h"
#include "when.h"

#define IDLE_US		(30 * US_PER_S)	/* a connection that is silent for so long is closed */
#define SILENT_US	(3 * US_PER_S)	/* how soon the headers of a first request must be there */
/*
 * Every SILENT_US the server looks at each connection. If a client has read nothing at so many
 * looks in a row, its connection is closed. STRANGER_LOOKS is for a client without a token.
 */
#define UNREAD_LOOKS	20
#define STRANGER_LOOKS	10
#define CONNECTIONS	1000U
#define APART_US	(20 * US_PER_MS)	/* between requests that look again */
#define TURN_US		(5 * US_PER_MS)	/* for requests that may only read, in a turn of the loop */
#define UNREAD_MAX	(64 << 20)	/* bytes of answers that clients have not read yet */
#define UNREAD_SMALL	65536		/* an answer of so many bytes is sent in any case */
#define PART_SIZE	32768		/* how much of an answer is sent at once */
#define ADDRESS_MAX	8192
#define WORDS_MAX	32	/* how many words a query may have: no route has as many */
#define TOKENS		16
#define TOKEN_MIN	16
#define TOKEN_MAX	256

/**
 * struct client - what is kept for a connection
 * @all:	link in the list of all, by @look
 * @conn:	the connection
 * @look:	when to look at it next
 * @active:	when headers or a part of a body came last, or an answer was sent. Both are times of
 *		CLOCK_BOOTTIME in us
 * @known:	the headers of its first request have come
 * @answered:	a request has come completely, and its answer is not sent completely
 * @friend:	the last request had a token, or came by the socket
 * @queued:	how many of the bytes that were sent to the client it had not taken at the last look
 * @stalled:	at how many looks in a row @queued was the same, and the client had sent nothing
 */
struct client {
	TAILQ_ENTRY(client)	all;
	struct MHD_Connection	*conn;
	int64_t			look;
	int64_t			active;
	bool			known;
	bool			answered;
	bool			friend;
	int			queued;
	int			stalled;
};

TAILQ_HEAD(clients, client);

/**
 * struct server - a socket at which requests come in
 * @httpd:	its libmicrohttpd; NULL if the socket is not used
 * @source:	readable if libmicrohttpd has something to do
 * @timer:	the scheduler's task that calls serve() next, or 0
 * @clients:	all connections, in the order in which to look at them
 * @remote:	each request needs a token
 */
struct server {
	struct MHD_Daemon	*httpd;
	struct source		source;
	uint64_t		timer;
	struct clients		clients;
	bool			remote;
};

/**
 * struct token - a secret by which a client is recognised
 * @role:	what it may do
 * @text:	the secret
 */
struct token {
	enum role	role;
	char		text[TOKEN_MAX + 1];
};

/**
 * struct tokens - the tokens of a file
 * @token:	the tokens
 * @nr:		how many
 */
struct tokens {
	struct token	token[TOKENS];
	size_t		nr;
};

static struct server servers[2];
static struct tokens tokens;
/* Requests that wait for something to happen. */
static TAILQ_HEAD(, request) waiting = TAILQ_HEAD_INITIALIZER(waiting);
/* Readable if requests that have waited are to be answered. */
static struct source woken = { .fd = -1 };
static size_t answers_unread;	/* how many bytes of answers clients have not read yet */

/* ---- tokens ------------------------------------------------------------------------- */

/* Take a line of the file: a token, or a role and a token. Returns false if it is neither. */
static bool add_token(struct tokens *to, const char *line)
{
	static const char *const roles[] = { "none", "read", "run", "all" };
	struct token *token = &to->token[to->nr];
	char first[TOKEN_MAX + 1], second[TOKEN_MAX + 1], more;
	int n = sscanf(line, "%256s %256s %c", first, second, &more);

	token->role = n == 1 ? ROLE_ALL : ROLE_NONE;
	for (enum role role = ROLE_READ; n == 2 && role <= ROLE_ALL; role++)
		if (!strcmp(roles[role], first))
			token->role = role;
	strcpy(token->text, n == 1 ? first : second);
	if (n < 1 || n > 2 || !token->role || strlen(token->text) < TOKEN_MIN)
		return false;
	to->nr++;
	return true;
}

bool tokens_read(const char *path, char error[ERROR_MAX])
{
	static const char not_token[] =
		"%s:%d: a line is [all|read|run] and a token of %d to %d characters; %d at most";
	FILE *file = fopen(path, "re");
	struct tokens read = { 0 };
	char *line = NULL;
	size_t room = 0;
	struct stat st;
	ssize_t n;
	int nr = 0;

	if (!file || fstat(fileno(file), &st)) {
		snprintf(error, ERROR_MAX, "cannot open '%s': %s", path, strerror(errno));
	} else if (st.st_mode & 077) {
		snprintf(error, ERROR_MAX,
			 "'%s' can be read or written by others: its mode is %03o",
			 path, st.st_mode & 0777U);
	} else {
		*error = 0;
		while (!*error && (n = getline(&line, &room, file)) >= 0 && ++nr)
			if (strlen(line) < (size_t)n ||
			    (line[strspn(line, " \t\n")] && *line != '#' &&
			     (read.nr == TOKENS || !add_token(&read, line))))
				snprintf(error, ERROR_MAX, not_token, path, nr, TOKEN_MIN,
					 TOKEN_MAX, TOKENS);
		if (!*error && !read.nr)
			snprintf(error, ERROR_MAX, "there is no token in '%s'", path);
	}
	free(line);
	if (file)
		fclose(file);
	if (!*error)
		tokens = read;
	return !*error;
}

const char *token_to_run(void)
{
	for (size_t i = 0; i < tokens.nr; i++)
		if (tokens.token[i].role >= ROLE_RUN)
			return tokens.token[i].text;
	return NULL;
}

/* Is @given the token? How long this takes depends on the length of @given alone. */
static bool token_is(const struct token *token, const char *given)
{
	size_t have = strlen(token->text), len = strlen(given);
	unsigned int differ = have != len;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned int)(token->text[i % have] ^ given[i]);
	return !differ;
}

const char *token_of(const struct request *r)
{
	const char *given = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Authorization");

	return given && !strncasecmp(given, "Bearer ", 7) ? given + 7 : NULL;
}

/* What the client of the request may do. */
static enum role role_of(const struct request *r)
{
	const char *given = token_of(r);
	enum role role = ROLE_NONE;

	if (!r->server->remote)
		return ROLE_ALL;
	for (size_t i = 0; given && i < tokens.nr; i++)
		if (token_is(&tokens.token[i], given))
			role = tokens.token[i].role;
	return role;
}

/* ---- requests ----------------------------------------------------------------------- */

void refuse(struct request *r, unsigned int status, const char *fmt, ...)
{
	va_list args;

	r->status = status;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
}

const char *argument(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name);
}

size_t text_length(const char *text)
{
	size_t n, size = 0;

	while (text[size] && (n = utf8_length(text + size)))
		size += n;
	return size;
}

/* MHD_KeyValueIterator: is an argument of the address UTF-8? */
static enum MHD_Result is_text(void *arg, enum MHD_ValueKind kind, const char *key,
			       const char *value)
{
	(void)kind;
	*(bool *)arg &= !key[text_length(key)] && (!value || !value[text_length(value)]);
	return MHD_YES;
}

/*
 * Is the address UTF-8? Otherwise neither the store nor JSON could take its words. If not, returns
 * false, with the error set.
 */
static bool address_is_text(struct request *r, const char *path)
{
	bool good = !path[text_length(path)];

	MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, is_text, &good);
	if (!good)
		refuse(r, MHD_HTTP_BAD_REQUEST, "the address is not UTF-8, or contains a NUL");
	return good;
}

/* Cut the path at each slash. The last segment is all of the rest: a shot's key may be any text. */
static void split_path(struct request *r, const char *path)
{
	char *rest;

	r->path = strdup(path);
	rest = r->path;
	if (rest && *rest == '/')
		rest++;
	while (rest && r->nr_segments < SEGMENTS - 1)
		r->segment[r->nr_segments++] = strsep(&rest, "/");
	if (rest)
		r->segment[r->nr_segments++] = rest;
}

/*
 * Does a browser send this request for a page that is not ours? A browser could also send it to the
 * socket, if that can be reached at an address of the browser's machine: no token is needed there.
 * A link to our page is no such request.
 */
static bool is_from_elsewhere(const struct request *r)
{
	const char *site = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Sec-Fetch-Site"),
		   *mode = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Sec-Fetch-Mode");

	return site && strcmp(site, "same-origin") && strcmp(site, "none") &&
	       !(mode && !strcmp(mode, "navigate") && !strcmp(r->method, "GET"));
}

/* May a header have this name? */
static bool is_header_name(const char *name)
{
	static const char others[] = "!#$%&'*+-.^_`|~";
	const char *c = name;

	while (isalnum((unsigned char)*c) || (*c && strchr(others, *c)))
		c++;
	return c > name && !*c;
}

/*
 * Does @name begin with the name of a header that must not be overlooked, and go on? If the value
 * of a header continues on the next line, libmicrohttpd 0.9.75 appends that line to the name.
 */
static bool is_continued(const char *name)
{
	static const char *const names[] = {
		"Content-Length", "Transfer-Encoding", "If-Match", "If-None-Match",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		if (!strncasecmp(name, names[i], len) && name[len])
			return true;
	}
	return false;
}

/* May only one header have this name? Of two headers, another reader might take the other one. */
static bool is_single(const char *name)
{
	static const char *const single[] = {
		"Authorization", "Content-Length", "Host", "If-Match", "Transfer-Encoding",
	};

	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (!strcasecmp(name, single[i]))
			return true;
	return false;
}

/* MHD_KeyValueIterator, which ends with the first header that is refused. */
static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct request *r = arg;

	if (!is_header_name(name) || is_continued(name) || strchr(value, '\r'))
		refuse(r, MHD_HTTP_BAD_REQUEST, "the header '%.64s' is malformed", name);
	else if (is_single(name) && MHD_lookup_connection_value(r->conn, kind, name) != value)
		refuse(r, MHD_HTTP_BAD_REQUEST, "there are two headers %s", name);
	return r->error[0] ? MHD_NO : MHD_YES;
}

/*
 * A proxy that has passed the request on may see its end at another place than libmicrohttpd does:
 * what the proxy took for the body would be the next request here, which the proxy has not checked.
 * So if two readers could differ, refuse the request. libmicrohttpd itself has refused a
 * Content-Length that is not a number.
 */
static void check_headers(struct request *r, const char *version)
{
	const char *coding =
		MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Transfer-Encoding");

	MHD_get_connection_values(r->conn, MHD_HEADER_KIND, check_header, r);
	if (r->error[0] || !coding)
		return;
	if (strcasecmp(coding, "chunked"))
		refuse(r, MHD_HTTP_BAD_REQUEST, "Transfer-Encoding: '%.64s' is not chunked",
		       coding);
	else if (MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Content-Length"))
		refuse(r, MHD_HTTP_BAD_REQUEST,
		       "Transfer-Encoding and Content-Length exclude each other");
	else if (!strcmp(version, "HTTP/1.0"))
		refuse(r, MHD_HTTP_BAD_REQUEST, "there is no Transfer-Encoding in HTTP/1.0");
}

static void too_long(struct request *r)
{
	refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is longer than %d bytes", BODY_MAX);
}

/* Is the request allowed? If not, the error is set. */
static void judge(struct request *r, const char *url)
{
	const char *size = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Content-Length");

	r->role = role_of(r);
	if (is_from_elsewhere(r))
		refuse(r, MHD_HTTP_FORBIDDEN, "requests from pages of other sites are refused");
	else if (request_allowed(r, r->role) && address_is_text(r, url) && query_is_known(r) &&
		 size && strtoull(size, NULL, 10) > BODY_MAX)
		too_long(r);
}

/*
 * The first line of a request is there, and libmicrohttpd takes the query apart next. If the memory
 * of the connection is too small for that, version 0.9.75 forgets that it has refused the request,
 * and says nothing until the connection's time is over. So libmicrohttpd gets no query if the
 * address is too long: @address is its own text, which it is about to cut to pieces itself.
 */
static void *request_new(void *arg, const char *address, struct MHD_Connection *conn)
{
	struct request *r = calloc(1, sizeof(*r));
	char *query = strchr(address, '?');
	size_t words = 0;

	(void)arg;
	(void)conn;
	for (const char *c = query; c; c = strchr(c + 1, '&'))
		words++;
	if (r)
		r->status = MHD_HTTP_BAD_REQUEST;
	if (words <= WORDS_MAX && strlen(address) <= ADDRESS_MAX)
		return r;
	if (query)
		query[1] = 0;
	if (r)
		refuse(r, MHD_HTTP_URI_TOO_LONG,
		       "the address has more than %d bytes, or its query more than %d words",
		       ADDRESS_MAX, WORDS_MAX);
	return r;
}

static void take_body(struct request *r, const char *data, size_t size)
{
	char *body = NULL;

	if (r->error[0])
		return;
	if (r->size + size <= BODY_MAX)
		body = realloc(r->body, r->size + size + 1);
	if (!body) {
		too_long(r);
		return;
	}
	memcpy(body + r->size, data, size);
	r->body = body;
	r->size += size;
	body[r->size] = 0;
}

/* ---- answers ------------------------------------------------------------------------ */

/**
 * struct copy - the text of a long answer
 * @client:	the client that it is for, or NULL
 * @size:	how many bytes @text has
 * @text:	the text
 */
struct copy {
	struct client	*client;
	size_t		size;
	char		text[];
};

/* The struct client of the connection. NULL if there was no memory for it. */
static struct client *client_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/*
 * The next part of the text. libmicrohttpd asks for it when it has sent the last one, so the client
 * has read something.
 */
static ssize_t next_part(void *arg, uint64_t pos, char *to, size_t max)
{
	struct copy *copy = arg;
	size_t left = copy->size - pos;

	if (copy->client)
		copy->client->stalled = 0;
	memcpy(to, copy->text + pos, left < max ? left : max);
	return (ssize_t)(left < max ? left : max);
}

static struct MHD_Response *long_response(const struct request *r, const char *text, size_t size)
{
	struct copy *copy = malloc(sizeof(*copy) + size);
	struct MHD_Response *response;

	if (!copy)
		return NULL;
	copy->client = client_of(r->conn);
	copy->size = size;
	memcpy(copy->text, text, size);
	response = MHD_create_response_from_callback(size, PART_SIZE, next_part, copy, free);
	if (!response)
		free(copy);
	return response;
}

/* A response whose text is copied. A short one is sent together with its headers. */
static struct MHD_Response *response_of(const struct request *r, const char *text, size_t size,
					const char *type)
{
	struct MHD_Response *response;

	if (size > PART_SIZE)
		response = long_response(r, text, size);
	else
		response = MHD_create_response_from_buffer(size, (void *)text,
							   MHD_RESPMEM_MUST_COPY);
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	return response;
}

static struct MHD_Response *text_response(struct request *r)
{
	struct MHD_Response *response;
	char next[32];

	r->unread = r->text_size;
	response = response_of(r, r->text, r->text_size,
			       r->type ? r->type : "text/plain; charset=utf-8");
	snprintf(next, sizeof(next), "%lld", (long long)r->next);
	if (r->policy)
		MHD_add_response_header(response, "Content-Security-Policy", r->policy);
	if (r->type)
		return response;
	MHD_add_response_header(response, "Log-Next", next);
	MHD_add_response_header(response, "Log-More", r->more ? "true" : "false");
	return response;
}

/* Make the text of an error UTF-8: it may quote a part of a character that the client has sent. */
static void make_text(char *text)
{
	while (*text) {
		size_t n = utf8_length(text);

		if (!n)
			*text = '?';
		text += n ? n : 1;
	}
}

/* Make the answer from the error. */
static void set_error(struct request *r)
{
	make_text(r->error);
	json_object_put(r->json);
	r->json = json_object_new_object();
	json_object_object_add(r->json, "error",
			       json_object_new_string(*r->error ? r->error : "no memory"));
	r->status = r->status == MHD_HTTP_OK ? MHD_HTTP_SERVICE_UNAVAILABLE : r->status;
}

/*
 * Until the client has read an answer, it takes memory, and there may be many that read none. Is
 * there room for one of @size bytes?
 */
static bool has_room(const struct request *r, size_t size)
{
	return r->role != ROLE_READ || size <= UNREAD_SMALL || answers_unread + size <= UNREAD_MAX;
}

/* A response of JSON. If it has bytes that are not UTF-8, from a damaged store, replace them. */
static struct MHD_Response *response_of_json(const struct request *r, const char *json, size_t size)
{
	char *text = size > text_length(json) ? format("%s", json) : NULL;
	struct MHD_Response *response;

	if (text)
		make_text(text);
	response = response_of(r, text ? text : json, size, "application/json");
	free(text);
	return response;
}

/* The answer as JSON. Making the text of a long answer takes long, so call this once. */
static struct MHD_Response *json_response(struct request *r)
{
	const char *text = json_text(r->json);

	if (!has_room(r, strlen(text))) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "other answers have not been read yet");
		set_error(r);
		text = json_text(r->json);
	}
	r->unread = strlen(text);
	return response_of_json(r, text, r->unread);
}

/* The response has a copy of the answer: free the answer itself. */
static void forget_answer(struct request *r)
{
	json_object_put(r->json);
	free(r->text);
	r->json = NULL;
	r->text = NULL;
}

static enum MHD_Result answer(struct request *r)
{
	struct client *c = client_of(r->conn);
	struct MHD_Response *response;
	enum MHD_Result result;

	if (r->error[0] || !(r->json || r->text))
		set_error(r);
	response = r->json ? json_response(r) : text_response(r);
	answers_unread += r->unread;
	forget_answer(r);
	if (c)
		c->friend = r->role != ROLE_NONE;
	if (r->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	result = MHD_queue_response(r->conn, r->status, response);
	MHD_destroy_response(response);
	return result;
}

/* ---- waiting ------------------------------------------------------------------------ */

/*
 * Let libmicrohttpd ask for the answer again. It may be running now, so let the loop call it: see
 * woken_ready().
 */
static void resume(struct request *r)
{
	uint64_t one = 1;

	if (r->timer)
		twheel_sched_cancel(sched, r->timer, 0);
	r->timer = 0;
	if (r->left.ready)
		source_want(&r->left, 0);
	r->left.ready = NULL;
	r->suspended = false;
	TAILQ_REMOVE(&waiting, r, waiting);
	MHD_resume_connection(r->conn);
	if (write(woken.fd, &one, sizeof(one)) < 0)
		say(SAY_ERROR, "eventfd: %s", strerror(errno));
}

/* A request has waited for as long as it may. */
static void waited(void *arg, const struct twheel_task_info *task)
{
	struct request *r = arg;

	(void)task;
	r->timer = 0;
	resume(r);
}

/* The client has closed its connection, or its half of it: answer at once. */
static void client_left(struct source *source)
{
	struct request *r = container_of(source, struct request, left);

	r->deadline = boot_us();
	resume(r);
}

static int descriptor_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

enum peek peek(struct MHD_Connection *conn)
{
	char c;
	ssize_t n = recv(descriptor_of(conn), &c, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		return PEEK_UNREAD;
	return n < 0 && errno == EAGAIN ? PEEK_SILENT : PEEK_GONE;
}

/*
 * libmicrohttpd does not look at a connection that it has suspended. So watch whether the client
 * goes away: otherwise its connection would be kept from others until @r->deadline.
 */
static void watch_client(struct request *r)
{
	r->left = (struct source) { .fd = descriptor_of(r->conn), .ready = client_left };
	source_want(&r->left, EPOLLRDHUP);
}

/*
 * The time of the next look of a request that wants to look again in @slice us. Each look may ask
 * the store, and the loop waits for the answer. So looks are at least APART_US apart, however many
 * requests there are.
 */
static int64_t next_look(int64_t now, int64_t slice)
{
	static int64_t last;
	int64_t at = last + APART_US;

	last = at > now + slice ? at : now + slice;
	return last;
}

bool request_wait(struct request *r, int64_t us, int64_t slice, const void *what)
{
	int64_t now = boot_us(), at;
	struct twheel_task task = { .fn = waited, .arg = r };

	if (!r->deadline)
		r->deadline = now + us;
	at = r->deadline - now > slice ? next_look(now, slice) : r->deadline;
	task.when_ns = ((at < r->deadline ? at : r->deadline) - now) * NS_PER_US;
	if (now >= r->deadline || twheel_sched_add(sched, &task, &r->timer))
		return false;
	r->what = what;
	r->suspended = true;
	TAILQ_INSERT_TAIL(&waiting, r, waiting);
	watch_client(r);
	return true;
}

void requests_each(const void *what, void (*fn)(void *arg, struct request *r), void *arg)
{
	struct request *r;

	TAILQ_FOREACH(r, &waiting, waiting)
		if (r->what == what)
			fn(arg, r);
}

void request_wake(struct request *r)
{
	resume(r);
}

void api_wake(const void *what)
{
	struct request *r, *next;

	for (r = TAILQ_FIRST(&waiting); r; r = next) {
		next = TAILQ_NEXT(r, waiting);
		if (r->what == what)
			resume(r);
	}
}

/* ---- turns -------------------------------------------------------------------------- */

/*
 * libmicrohttpd handles all requests that have come in before the loop continues, and there may be
 * as many as there are connections. So in a turn of the loop, requests of clients that may only
 * read get TURN_US. The rest of these requests wait for a later turn, in the order in which they
 * came. Runners, and clients that may do everything, do not wait behind them.
 */
static const char crowd;	/* what such requests wait for: see struct request, @what */
static size_t nr_crowd;		/* how many wait */
static int64_t spent;		/* how long such requests have taken in this turn, in us */

static bool must_queue(const struct request *r)
{
	return r->role == ROLE_READ && !r->admitted && (nr_crowd || spent >= TURN_US);
}

static void join_crowd(struct request *r)
{
	r->what = &crowd;
	r->suspended = true;
	nr_crowd++;
	TAILQ_INSERT_TAIL(&waiting, r, waiting);
}

/* Let the request of the crowd continue that has waited the longest. */
static void admit(void)
{
	struct request *r = TAILQ_FIRST(&waiting);

	while (r->what != &crowd)
		r = TAILQ_NEXT(r, waiting);
	r->what = NULL;
	r->admitted = true;
	nr_crowd--;
	resume(r);
}

void api_turn(void)
{
	spent = 0;
	if (nr_crowd)
		admit();
}

/* Answer the request, or let it wait. */
static enum MHD_Result handle_whole(struct request *r)
{
	int64_t began = boot_us();
	enum MHD_Result result = MHD_YES;

	if (!r->error[0])
		dispatch(r);
	r->admitted = false;
	if (!r->suspended)
		result = answer(r);
	if (r->role == ROLE_READ)
		spent += boot_us() - began;
	return result;
}

/* ---- clients that are silent -------------------------------------------------------- */

static void look_later(struct server *server, struct client *c)
{
	c->look = boot_us() + SILENT_US;
	TAILQ_INSERT_TAIL(&server->clients, c, all);
}

/*
 * A connection has begun or ended. If there is no memory for its struct client, the connection has
 * no time limit.
 */
static void connection_changed(void *arg, struct MHD_Connection *conn, void **context,
			       enum MHD_ConnectionNotificationCode what)
{
	struct server *server = arg;
	struct client *c = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*context = c;
		if (!c)
			return;
		c->conn = conn;
		look_later(server, c);
	} else if (c) {
		TAILQ_REMOVE(&server->clients, c, all);
		free(c);
	}
}

/* The client has sent something, a whole request if @answered; or an answer was sent to it. */
static void client_speaks(struct MHD_Connection *conn, bool answered)
{
	struct client *c = client_of(conn);

	if (!c)
		return;
	c->active = boot_us();
	c->known = true;
	c->answered = answered;
	c->stalled = 0;
}

/*
 * How long nothing has come from a client, in us. If the client has sent a part of the headers,
 * libmicrohttpd does not tell, but the kernel does; for TCP only.
 */
static int64_t silent_for(const struct client *c, int64_t now)
{
	int64_t us = now - c->active, heard;
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(descriptor_of(c->conn), IPPROTO_TCP, TCP_INFO, &info, &size))
		return us;
	heard = (int64_t)info.tcpi_last_data_recv * US_PER_MS;
	return heard < us ? heard : us;
}

/*
 * Has the client taken nothing of what was sent to it for too long? A slow client must not count:
 * the kernel lets libmicrohttpd send more only when much of its buffer is free, so look at the
 * bytes (@queued) that wait in that buffer. Nor must a client count that reads much at a time: when
 * libmicrohttpd has sent more, as many bytes may wait as before, so next_part() resets c->stalled.
 * Count looks, and not time, because this process may have stood still.
 */
static bool has_stalled(struct client *c, int queued)
{
	c->stalled = queued == c->queued ? c->stalled + 1 : 0;
	c->queued = queued;
	return c->stalled >= (c->friend ? UNREAD_LOOKS : STRANGER_LOOKS);
}

/*
 * Is the connection to be closed? If bytes have come that were not read yet, libmicrohttpd reads
 * them soon; unless it has something to send, for then it reads nothing.
 */
static bool is_over(struct client *c, int64_t now)
{
	int queued = 0;

	ioctl(descriptor_of(c->conn), SIOCOUTQ, &queued);
	if (c->answered)
		return queued && has_stalled(c, queued);
	switch (peek(c->conn)) {
	case PEEK_GONE:
		return true;
	case PEEK_SILENT:
		return !c->known || silent_for(c, now) >= IDLE_US;
	default:
		return has_stalled(c, queued);
	}
}

/*
 * Look at the connections whose time has come, and close those whose clients have gone, or were
 * silent for too long. If this process did something else for long, libmicrohttpd has read first
 * what a client has sent meanwhile: serve() calls it before this. libmicrohttpd's own time limit
 * would close such a connection before reading, and does not see that a client reads slowly.
 *
 * Nor does libmicrohttpd always notice that a client has gone. If a client sends a part of a
 * request and closes its connection before libmicrohttpd has read that part, libmicrohttpd reads
 * less than there is room for, and waits for an event that has come already. Such connections must
 * not keep others out for long. When one is shut down, libmicrohttpd gets another event.
 */
static void close_silent(struct server *server)
{
	int64_t now = boot_us();
	struct client *c;

	while ((c = TAILQ_FIRST(&server->clients)) && c->look <= now) {
		TAILQ_REMOVE(&server->clients, c, all);
		if (is_over(c, now))
			shutdown(descriptor_of(c->conn), SHUT_RDWR);
		look_later(server, c);
	}
}

/* ---- libmicrohttpd ------------------------------------------------------------------ */

/*
 * The headers of the request are there. If the server answers now, libmicrohttpd reads no more from
 * the connection, and closes it.
 */
static enum MHD_Result begin(struct request *r, const char *url, const char *version)
{
	if (!r->error[0])
		check_headers(r, version);
	if (r->error[0])
		return answer(r);
	split_path(r, url);
	judge(r, url);
	return MHD_YES;
}

/*
 * Called first with the headers, then for each part of the body, then to find the answer. The
 * request is there from its first line on.
 */
static enum MHD_Result handle(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **closure)
{
	enum MHD_Result result = MHD_YES;
	struct request *r = *closure;

	if (!r)
		return MHD_NO;
	client_speaks(conn, r->conn && !*size);
	if (!r->conn) {
		r->server = arg;
		r->conn = conn;
		r->method = method;
		return begin(r, url, version);
	}
	if (*size) {
		take_body(r, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (!r->error[0] && must_queue(r))
		join_crowd(r);
	else
		result = handle_whole(r);
	if (r->suspended)
		MHD_suspend_connection(conn);
	return result;
}

static void completed(void *arg, struct MHD_Connection *conn, void **closure,
		      enum MHD_RequestTerminationCode code)
{
	struct request *r = *closure;

	(void)arg;
	(void)code;
	client_speaks(conn, false);
	if (!r)
		return;
	answers_unread -= r->unread;
	forget_answer(r);
	take_free(r->take);
	free(r->body);
	free(r->path);
	free(r);
	*closure = NULL;
}

/*
 * Decode %XX, in a path or an argument. A NUL becomes a byte that is in no UTF-8, so that it does
 * not cut anything off, and the request is refused.
 */
static size_t unescape(void *arg, struct MHD_Connection *conn, char *text)
{
	size_t size = MHD_http_unescape(text);

	(void)arg;
	(void)conn;
	for (size_t i = 0; i < size; i++)
		if (!text[i])
			text[i] = '\xff';
	return size;
}

static void serve(struct server *server);

static void time_to_serve(void *arg, const struct twheel_task_info *task)
{
	struct server *server = arg;

	(void)task;
	server->timer = 0;
	serve(server);
}

static unsigned int nr_connections(const struct server *server)
{
	return MHD_get_daemon_info(server->httpd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}

/*
 * If libmicrohttpd has as many connections as it may have, it stops listening. Only at the
 * beginning of MHD_run() it looks whether it may listen again, and only at the end it frees
 * connections that have ended. So if connections have ended, run it once more: perhaps no other
 * event will come.
 */
static void run_httpd(const struct server *server)
{
	unsigned int before;

	do {
		before = nr_connections(server);
		MHD_run(server->httpd);
	} while (nr_connections(server) < before);
}

/* How long until serve() must be called, in us; INT64_MAX if there is nothing to wait for. */
static int64_t looks_in(const struct server *server)
{
	const struct client *c = TAILQ_FIRST(&server->clients);
	int64_t us = c ? c->look - boot_us() : INT64_MAX;
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(server->httpd, &ms) == MHD_YES && (int64_t)ms * US_PER_MS < us)
		us = (int64_t)ms * US_PER_MS;
	return us < 0 ? 0 : us;
}

/* Let libmicrohttpd do what it can, look at connections, and set a timer for the next call. */
static void serve(struct server *server)
{
	struct twheel_task task = { .fn = time_to_serve, .arg = server };
	int64_t us;

	run_httpd(server);
	close_silent(server);
	if (server->timer)
		twheel_sched_cancel(sched, server->timer, 0);
	server->timer = 0;
	us = looks_in(server);
	if (us == INT64_MAX)
		return;
	task.when_ns = us * NS_PER_US;
	twheel_sched_add(sched, &task, &server->timer);
}

static void http_ready(struct source *source)
{
	serve(container_of(source, struct server, source));
}

/* Requests are to be answered that have waited. */
static void woken_ready(struct source *source)
{
	uint64_t n;

	if (read(source->fd, &n, sizeof(n)) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
		if (servers[i].httpd)
			serve(&servers[i]);
	if (nr_crowd && spent < TURN_US)
		admit();
}

/* Add @source to the loop. If that fails, the program ends. */
static void watch(struct source *source)
{
	if (source->fd >= 0 && !source_add(source))
		return;
	say(SAY_ERROR, "epoll: %s", strerror(errno));
	exit(1);
}

void api_start(int listener, bool remote)
{
	struct server *server = &servers[remote];
	/*
	 * Runs have three quarters of the descriptors. The socket and TCP have separate limits, so
	 * that strangers cannot take the connections of local users.
	 */
	int64_t most = files_max() / (remote ? 8 : 16) + 1;
	unsigned int nr = most < CONNECTIONS ? (unsigned int)most : CONNECTIONS;
	const union MHD_DaemonInfo *info;

	server->remote = remote;
	TAILQ_INIT(&server->clients);
	server->httpd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
					 handle, server, MHD_OPTION_LISTEN_SOCKET, listener,
					 MHD_OPTION_URI_LOG_CALLBACK, request_new, NULL,
					 MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
					 MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
					 MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
					 MHD_OPTION_CONNECTION_LIMIT, nr, MHD_OPTION_END);
	info = server->httpd ? MHD_get_daemon_info(server->httpd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		say(SAY_ERROR, "cannot serve the socket");
		exit(1);
	}
	server->source = (struct source) { .fd = info->epoll_fd, .ready = http_ready };
	watch(&server->source);
	if (woken.fd >= 0)
		return;
	woken = (struct source) { eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), woken_ready };
	watch(&woken);
}

void api_stop(void)
{
	while (!TAILQ_EMPTY(&waiting))
		resume(TAILQ_FIRST(&waiting));
	for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
		if (servers[i].httpd)
			MHD_stop_daemon(servers[i].httpd);
}
