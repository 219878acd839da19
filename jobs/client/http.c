// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* Requests to twheeld: HTTP/1.0 over its socket, a connection for each. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "job.h"

#define START_MS	2000	/* how long to wait for a daemon that is starting */
#define TRY_MS		20	/* how often to look whether it has started */
#define TIMES		3	/* how often to send a GET until there is an answer */

static char *socket_path;	/* see http_socket() */

char *format(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		error(1, 0, "no memory");
	va_end(args);
	return text;
}

struct json_object *string_new(const char *text)
{
	return json_object_new_string(text);
}

/* ---- the socket --------------------------------------------------------------------- */

/* Connect to the socket at @path. Returns the connection, or -1 with errno. */
static int try_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		error(1, fd < 0 ? errno : ENAMETOOLONG, "%s", path);
	strcpy(address.sun_path, path);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* The paths of the sockets at which twheeld(8) listens by default, the user's own first. */
static char **usual_paths(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	static char *paths[5];
	int n = 0;

	if (geteuid() && run)
		paths[n++] = format("%s/twheeld/socket", run);
	if (geteuid() && state)
		paths[n++] = format("%s/twheeld/socket", state);
	if (geteuid() && home)
		paths[n++] = format("%s/.local/state/twheeld/socket", home);
	paths[n] = format("/run/twheeld/socket");
	return paths;
}

/*
 * Connect to the first daemon that listens at one of @paths. If this user may not use one of them,
 * that is an error, and the next is not tried. Returns the connection, or -1 with errno. *@path
 * becomes the path that was tried last.
 */
static int try_all(char **paths, const char **path)
{
	int fd = -1;

	for (; fd < 0 && *paths; paths++) {
		*path = *paths;
		fd = try_connect(*paths);
		if (fd < 0 && errno == EACCES)
			break;
	}
	return fd;
}

void http_socket(const char *path)
{
	socket_path = path ? format("%s", path) : NULL;
}

/*
 * Connect to the daemon. If there is none, it may be starting: after "twheeld &", and when systemd
 * restarts it. So try again for a while; also if root's daemon refuses this user, whose own daemon
 * may be starting. If no daemon can be reached, the program ends.
 */
static int connect_to(void)
{
	char *given[2] = { socket_path }, **paths = socket_path ? given : usual_paths();
	const char *path;
	int fd = try_all(paths, &path);

	for (int ms = 0; fd < 0 && ms < START_MS; ms += TRY_MS) {
		if (errno == EACCES && socket_path)
			break;
		usleep(TRY_MS * 1000);
		fd = try_all(paths, &path);
	}
	if (fd < 0 && errno != EACCES && !socket_path)
		error(1, 0, "there is no twheeld: start one with 'twheeld &' or with systemctl(1)");
	if (fd < 0)
		error(1, errno, "cannot talk to twheeld at '%s'", path);
	return fd;
}

/* ---- a request ---------------------------------------------------------------------- */

char *http_word(const char *word)
{
	char *out = malloc(3 * strlen(word) + 1), *at = out;

	if (!out)
		error(1, 0, "no memory");
	for (; *word; word++) {
		if (isalnum((unsigned char)*word) || strchr("-._~", *word))
			*at++ = *word;
		else
			at += sprintf(at, "%%%02X", (unsigned char)*word);
	}
	*at = 0;
	return out;
}

char *http_name(const char *name)
{
	if (strchr(name, '/'))
		error(1, 0, "'%s' is not a valid name", name);
	return http_word(name);
}

/*
 * Send @data. If the daemon closes its end, that is no error, because its answer says why it has.
 * If the daemon has not read all that was sent before, the kernel reports a reset connection.
 */
static void write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		if (n < 0)
			error(1, errno, "cannot talk to twheeld");
		data += n;
		size -= (size_t)n;
	}
}

/* Read the whole answer, and end it with a 0 that *@size does not count. The caller frees it. */
static char *read_all(int fd, size_t *size)
{
	size_t room = 65536;
	char *data = malloc(room);
	ssize_t n;

	for (*size = 0; data && (n = read(fd, data + *size, room - *size - 1)) > 0;) {
		*size += (size_t)n;
		if (room - *size > 4096)
			continue;
		room *= 2;
		data = realloc(data, room);
	}
	if (!data || (n < 0 && errno != ECONNRESET))
		error(1, errno, "cannot talk to twheeld");
	data[*size] = 0;
	return data;
}

/* Send a request. If @must_be_new, the daemon refuses it if the job exists already. */
static void ask(int fd, const char *method, const char *path, const char *body, bool must_be_new)
{
	char *head =
		format("%s %s HTTP/1.0\r\nHost: twheeld\r\n%sContent-Length: %zu\r\n\r\n", method,
		       path, must_be_new ? "If-None-Match: *\r\n" : "", body ? strlen(body) : 0);

	write_all(fd, head, strlen(head));
	if (body)
		write_all(fd, body, strlen(body));
	free(head);
}

/* Is the answer complete? If the daemon was killed meanwhile, it is not. */
static bool is_whole(const char *data, size_t size)
{
	static const char length[] = "\r\nContent-Length: ";
	const char *body = strstr(data, "\r\n\r\n"), *given = strcasestr(data, length);

	if (!body)
		return false;
	size -= (size_t)(body + 4 - data);
	return !given || given > body || size >= strtoull(given + sizeof(length) - 1, NULL, 10);
}

/* Take an answer apart. It is a part of a log if it has the header Log-Next, and else JSON. */
static struct answer understand(char *data, size_t size)
{
	char *body = strstr(data, "\r\n\r\n"), *next = strcasestr(data, "\r\nLog-Next: ");
	struct answer answer = { 0 };

	if (!is_whole(data, size) || sscanf(data, "HTTP/1.%*d %d", &answer.status) != 1)
		error(1, 0, "twheeld has ended before it answered");
	body += 4;
	if (next && next < body) {
		answer.next = atoll(next + strlen("\r\nLog-Next: "));
		answer.size = size - (size_t)(body - data);
		answer.text = malloc(answer.size + 1);
		if (answer.text)
			memcpy(answer.text, body, answer.size + 1);
	} else {
		answer.json = json_tokener_parse(body);
	}
	return answer;
}

/* Send a request and read the answer, which may be empty if the daemon ends. */
static char *exchange(const char *method, const char *path, const char *body, bool must_be_new,
		      size_t *size)
{
	int fd = connect_to();
	char *data;

	ask(fd, method, path, body, must_be_new);
	data = read_all(fd, size);
	close(fd);
	return data;
}

/*
 * If a daemon is restarted, it ends without answering requests that wait. A GET changes nothing, so
 * send it again, to the new daemon.
 */
struct answer http_ask(const char *method, const char *path, struct json_object *body,
		       bool must_be_new)
{
	const char *text = body ? json_object_to_json_string(body) : NULL;
	int times = strcmp(method, "GET") ? 1 : TIMES;
	struct answer answer;
	char *data = NULL;
	size_t size;

	do {
		free(data);
		data = exchange(method, path, text, must_be_new, &size);
	} while (--times && !is_whole(data, size));
	json_object_put(body);
	answer = understand(data, size);
	free(data);
	return answer;
}

void answer_free(struct answer *answer)
{
	json_object_put(answer->json);
	free(answer->text);
}

struct json_object *http_get(const char *method, const char *path, struct json_object *body,
			     bool must_be_new)
{
	struct answer answer = http_ask(method, path, body, must_be_new);
	struct json_object *why = NULL;

	if (answer.status == 200 && answer.json)
		return answer.json;
	if (json_object_is_type(answer.json, json_type_object))
		json_object_object_get_ex(answer.json, "error", &why);
	error(1, 0, "%s", why ? json_object_get_string(why)
			: answer.status == 414 || answer.status == 431 ? "the request is too long"
			: "unexpected answer from twheeld");
	return NULL;
}
