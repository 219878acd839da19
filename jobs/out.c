// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Requests to others, by libcurl, in the loop of the daemon: POST, by HTTP or HTTPS, without
 * following redirections. libcurl tells the loop which descriptors it waits for, and when it
 * wants to be called again.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <linux/sockios.h>

#include "twheeld.h"
#include "when.h"

#define CONNECT_MS	30000L
#define DROPPED_MAX	1048576		/* how many bytes of an answer to read and throw away */
#define READS_NS	(10 * NS_PER_S)	/* how long a receiver that has answered need not read */

/**
 * struct call - a request that was sent, or is being sent
 * @easy:	libcurl's part of it
 * @fd:		the socket that libcurl has opened last
 * @headers:	its headers
 * @what:	what the caller has asked for; the texts in it are not kept
 * @answer:	the body of the answer so far
 * @size:	its size
 * @room:	how much memory it has
 * @dropped:	how many bytes of the answer were more than the caller wants
 * @too_long:	there is more of the answer than the caller can use
 * @whole:	libcurl waits for no more of the answer, though the connection is open
 * @early:	the headers of the answer were there before the request was sent
 * @sent:	how much of the body was sent when look_at_early() looked last
 * @look:	the scheduler's task of look_at_early(), or 0
 * @error:	filled in by libcurl: why there is no answer
 */
struct call {
	CURL			*easy;
	int			fd;
	struct curl_slist	*headers;
	struct post		what;
	char			*answer;
	size_t			size;
	size_t			room;
	size_t			dropped;
	bool			too_long;
	bool			whole;
	bool			early;
	curl_off_t		sent;
	uint64_t		look;
	char			error[CURL_ERROR_SIZE];
};

static CURLM *multi;
static uint64_t timer;

/* ---- libcurl in the loop ------------------------------------------------------------ */

static curl_off_t size_of(const struct call *call, CURLINFO what)
{
	curl_off_t size = -1;

	curl_easy_getinfo(call->easy, what, &size);
	return size;
}

/* How much of the body of the answer is missing. Negative if nobody knows. */
static curl_off_t missing(const struct call *call)
{
	curl_off_t size = size_of(call, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);

	return size < 0 ? -1 : size - size_of(call, CURLINFO_SIZE_DOWNLOAD_T);
}

/*
 * Is there an answer? There is one, too, if the receiver has answered early, and then closed the
 * connection while the request was still being sent.
 */
static bool has_answer(const struct call *call, CURLcode result)
{
	if (call->early && (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR))
		return !missing(call) || call->whole;
	return !result || call->dropped > DROPPED_MAX;
}

/* A call is over: tell its owner, who may begin another one. */
static void call_over(CURL *easy, CURLcode result)
{
	struct reply reply = { 0 };
	struct call *call;
	long status = 0, err = 0;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
	if (has_answer(call, result))
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &err);
	reply.status = (int)status;
	if (call->too_long)
		snprintf(call->error, sizeof(call->error), "the answer is longer than %zu bytes",
			 call->what.most);
	else if (call->what.socket && result == CURLE_COULDNT_CONNECT && err)
		/* libcurl would name the host of the address, which is not asked. */
		snprintf(call->error, sizeof(call->error), "%s", strerror((int)err));
	reply.error = *call->error ? call->error : curl_easy_strerror(result);
	reply.body = call->answer;
	reply.size = call->size;
	call->what.fn(call->what.arg, &reply);
	call_cancel(call);
}

static void read_results(void)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi, &left)))
		if (message->msg == CURLMSG_DONE)
			call_over(message->easy_handle, message->data.result);
}

/* A descriptor is ready. libcurl finds out by itself for what. */
static void call_ready(struct source *source)
{
	int running;

	curl_multi_socket_action(multi, source->fd, 0, &running);
	read_results();
}

static void timed_out(void *arg, const struct twheel_task_info *task)
{
	int running;

	(void)arg;
	(void)task;
	timer = 0;
	curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
	read_results();
}

/* libcurl wants to be called in @ms; or, if that is -1, only when a descriptor is ready. */
static int set_timer(CURLM *curl, long ms, void *arg)
{
	struct twheel_task task = { .fn = timed_out, .when_ns = ms * NS_PER_MS };

	(void)curl;
	(void)arg;
	if (timer)
		twheel_sched_cancel(sched, timer, 0);
	timer = 0;
	return ms >= 0 && twheel_sched_add(sched, &task, &timer) ? -1 : 0;
}

/* Has the receiver closed the connection? */
static bool is_closed(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN);
}

/* libcurl waits for something else at a descriptor than before. */
static int watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *closure)
{
	struct source *source = closure;
	struct call *call;

	(void)arg;
	if (what == CURL_POLL_REMOVE) {
		if (source)
			source_want(source, 0);
		free(source);
		return 0;
	}
	if (!source) {
		source = calloc(1, sizeof(*source));
		if (!source)
			return -1;
		*source = (struct source) { .fd = fd, .ready = call_ready };
		curl_multi_assign(multi, fd, source);
	}
	/* libcurl itself has no call; it may have a connection, while it ends that. */
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
	if (call)
		call->whole = !(what & CURL_POLL_IN) && !is_closed(fd);
	source_want(source, (what & CURL_POLL_IN ? EPOLLIN : 0U) |
			    (what & CURL_POLL_OUT ? EPOLLOUT : 0U));
	return 0;
}

static bool set_up(void)
{
	if (multi)
		return true;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	multi = curl_multi_init();
	return multi && !curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch) &&
	       !curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
}

/* ---- a call ------------------------------------------------------------------------- */

/* Make room for @size more bytes and a 0. Returns false if there is no memory. */
static bool make_room(struct call *call, size_t size)
{
	size_t room = call->room ? call->room : 4096;
	char *answer;

	while (room <= call->size + size)
		room *= 2;
	answer = room > call->room ? realloc(call->answer, room) : call->answer;
	if (!answer)
		return false;
	call->answer = answer;
	call->room = room;
	return true;
}

/*
 * Take a part of the answer. What is more than the caller wants is dropped; or the call fails, if
 * the beginning of an answer is of no use to the caller. If an answer does not end, the call does:
 * its status is known.
 */
static size_t take_answer(char *data, size_t one, size_t size, void *closure)
{
	struct call *call = closure;
	size_t left = call->what.most - call->size, n = size < left ? size : left;

	(void)one;
	call->too_long = n < size && call->what.whole;
	if (call->too_long || !make_room(call, n))
		return 0;
	memcpy(call->answer + call->size, data, n);
	call->size += n;
	call->answer[call->size] = 0;
	call->dropped += size - n;
	return call->dropped > DROPPED_MAX ? 0 : size;
}

/* Add what curl takes for a header. Returns false if there is no memory. */
static bool add_option(struct call *call, const char *text)
{
	struct curl_slist *more = curl_slist_append(call->headers, text);

	if (more)
		call->headers = more;
	return more;
}

/* Add a header. If it has no value, curl would not send it, unless its name ends in a semicolon. */
static bool add_header(struct call *call, const char *text)
{
	const char *colon = strchr(text, ':');
	char *empty;
	bool good;

	if (!colon || colon[1 + strspn(colon + 1, " ")])
		return add_option(call, text);
	empty = format("%.*s;", (int)(colon - text), text);
	good = add_option(call, empty);
	free(empty);
	return good;
}

/* Open the socket of a connection, so that no process of a run inherits it. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct call *call = arg;

	(void)purpose;
	call->fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	return call->fd;
}

/*
 * Is call->fd, which open_socket() has opened last, the connection of @call? If a host has two
 * addresses, libcurl may have closed the descriptor again, and it may be anything else now.
 */
static bool is_connection(const struct call *call)
{
	struct sockaddr_in6 from;	/* the port of a sockaddr_in is at the same place */
	socklen_t size = sizeof(from);
	long port = 0;

	curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port);
	return !getsockname(call->fd, (struct sockaddr *)&from, &size) &&
	       (from.sin6_family == AF_INET || from.sin6_family == AF_INET6) &&
	       ntohs(from.sin6_port) == port;
}

static bool is_sent(const struct call *call)
{
	return size_of(call, CURLINFO_SIZE_UPLOAD_T) == (curl_off_t)call->what.size;
}

/* Has the receiver's kernel acknowledged all of the request? */
static bool is_received(const struct call *call)
{
	int left;

	return is_sent(call) && !ioctl(call->fd, SIOCOUTQ, &left) && !left;
}

static void look_at_early(void *arg, const struct twheel_task_info *task);

static void look_again(struct call *call)
{
	struct twheel_task task = {
		.fn = look_at_early, .arg = call, .when_ns = READS_NS,
	};

	call->sent = size_of(call, CURLINFO_SIZE_UPLOAD_T);
	if (twheel_sched_add(sched, &task, &call->look))
		call->look = 0;
}

/*
 * The answer came early. libcurl still sends the rest of the request, but only as long as the
 * receiver reads it. Otherwise a run might never be over though all of its answer is there.
 */
static void look_at_early(void *arg, const struct twheel_task_info *task)
{
	struct call *call = arg;

	(void)task;
	call->look = 0;
	if (is_sent(call))
		return;
	if (call->whole && call->sent == size_of(call, CURLINFO_SIZE_UPLOAD_T))
		call_over(call->easy, CURLE_SEND_ERROR);
	else
		look_again(call);
}

/* The headers of the answer are there. */
static void answer_begins(struct call *call)
{
	static const struct linger reset = { .l_onoff = 1 };
	long status = 0;

	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || call->look)
		return;
	if (is_connection(call) && is_received(call))
		setsockopt(call->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	call->early = !is_sent(call);
	if (call->early)
		look_again(call);
}

/*
 * Reset the connection of a single request when it is closed: otherwise the kernel would keep its
 * port for a minute, and an address has only 28 000 of them. But a reset throws away what is still
 * to be sent, and a receiver may answer before it has read the request. This looks once, at the
 * empty line that ends the headers.
 */
static size_t take_header(char *data, size_t one, size_t size, void *closure)
{
	(void)one;
	if (*data == '\n' || (*data == '\r' && size == strlen("\r\n")))
		answer_begins(closure);
	return size;
}

/* Set one of the options of a call. *@bad becomes true if that fails. */
#define set(call, bad, option, value) \
	(*(bad) |= curl_easy_setopt((call)->easy, option, value) != CURLE_OK)

static bool set_options(struct call *call, const struct post *what)
{
	bool bad = false;

	set(call, &bad, CURLOPT_PRIVATE, call);
	set(call, &bad, CURLOPT_ERRORBUFFER, call->error);
	set(call, &bad, CURLOPT_PROTOCOLS_STR, "http,https");
	set(call, &bad, CURLOPT_URL, what->url);
	if (what->socket)
		set(call, &bad, CURLOPT_UNIX_SOCKET_PATH, what->socket);
	set(call, &bad, CURLOPT_POST, 1L);
	set(call, &bad, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)what->size);
	set(call, &bad, CURLOPT_COPYPOSTFIELDS, what->body);
	set(call, &bad, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	set(call, &bad, CURLOPT_OPENSOCKETDATA, call);
	if (!what->keep) {
		set(call, &bad, CURLOPT_HEADERFUNCTION, take_header);
		set(call, &bad, CURLOPT_HEADERDATA, call);
		set(call, &bad, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	}
	/* A connection for one request needs no larger buffer. */
	set(call, &bad, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	set(call, &bad, CURLOPT_FRESH_CONNECT, what->keep ? 0L : 1L);
	set(call, &bad, CURLOPT_FORBID_REUSE, what->keep ? 0L : 1L);
	set(call, &bad, CURLOPT_NOSIGNAL, 1L);
	/* When the call is given up, do not wait for a thread that still looks up the name. */
	set(call, &bad, CURLOPT_QUICK_EXIT, 1L);
	set(call, &bad, CURLOPT_TCP_KEEPALIVE, 1L);
	set(call, &bad, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	set(call, &bad, CURLOPT_TIMEOUT_MS, (long)(what->timeout / US_PER_MS));
	set(call, &bad, CURLOPT_WRITEFUNCTION, take_answer);
	set(call, &bad, CURLOPT_WRITEDATA, call);
	set(call, &bad, CURLOPT_USERAGENT, "twheeld");
	for (const char *const *header = what->headers; header && *header; header++)
		bad |= !add_header(call, *header);
	bad |= !add_option(call, "Expect:");	/* do not wait for 100 Continue */
	set(call, &bad, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
	bad |= !what->keep && !add_option(call, "Connection: close");
	set(call, &bad, CURLOPT_HTTPHEADER, call->headers);
	return !bad;
}

struct call *call_begin(const struct post *what)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->what = *what;
	call->fd = -1;
	if (set_up())
		call->easy = curl_easy_init();
	if (call->easy && set_options(call, what) && !curl_multi_add_handle(multi, call->easy))
		return call;
	call_cancel(call);
	return NULL;
}

void call_cancel(struct call *call)
{
	if (call->look)
		twheel_sched_cancel(sched, call->look, 0);
	if (call->easy) {
		curl_multi_remove_handle(multi, call->easy);
		curl_easy_cleanup(call->easy);
	}
	curl_slist_free_all(call->headers);
	free(call->answer);
	free(call);
}
