// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz twheeld by what comes from its socket: an input is sent to a daemon that runs in another
 * thread, with a store of its own. The daemon must live on, and say what is wrong in one line of
 * JSON. This file stands for exec.c, out.c and alarm.c, so that no command is executed, no request
 * made and no mail sent, whatever comes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "twheeld.h"

#undef main

#define EXPECT(cond)	do { if (!(cond)) abort(); } while (0)
#define ANSWER_MAX	(4 << 20)

typedef int main_fn(int argc, char **argv);

main_fn daemon_main;

const char *sendmail;
uint64_t alarms_sent, alarms_failed;

void exec_setup(const char *state)
{
	(void)state;
}

void exec_undo(void)
{
}

void close_at_exec(void)
{
}

int exec_begin(struct run *run)
{
	(void)run;
	return -EAGAIN;
}

void exec_signal(struct run *run, int sig)
{
	(void)run;
	(void)sig;
}

void exec_look(struct run *run)
{
	(void)run;
}

void exec_end(struct run *run)
{
	(void)run;
}

struct call *call_begin(const struct post *post)
{
	(void)post;
	return NULL;
}

void call_cancel(struct call *call)
{
	(void)call;
}

void alarm_ended(const struct ended *line)
{
	(void)line;
}

void alarms_end(bool again)
{
	(void)again;
}

void alarm_late(struct job *job, const struct firing *firing)
{
	(void)job;
	(void)firing;
}

static char dir[32];
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static char answer[ANSWER_MAX + 1];

static void *run_daemon(void *arg)
{
	char state[64], name[128];
	char *argv[4] = { dir, state, name, NULL };

	(void)arg;
	snprintf(state, sizeof(state), "--state=%s", dir);
	snprintf(name, sizeof(name), "--socket=%s", address.sun_path);
	daemon_main(3, argv);
	abort();
}

static void clean(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		perror(command);
}

static int connection(void)
{
	struct timeval most = { .tv_usec = 200000 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	if (fd < 0 || !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

static void begin(void)
{
	pthread_t thread;
	int fd;

	strcpy(dir, "/tmp/twheeld-fuzz.XXXXXX");
	EXPECT(mkdtemp(dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	setenv("TWHEEL_BACKEND", "embedded", 1);
	EXPECT(freopen("/dev/null", "w", stdout));
	EXPECT(!pthread_create(&thread, NULL, run_daemon, NULL));
	atexit(clean);
	while ((fd = connection()) < 0)
		usleep(10000);
	close(fd);
}

/* Send a request and read the answer. Returns its length: 0 if there is none, or not soon. */
static size_t ask(const void *data, size_t size)
{
	size_t have = 0;
	ssize_t n = 1;
	int fd = connection();

	EXPECT(fd >= 0);
	if (send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size)
		shutdown(fd, SHUT_WR);
	while (n > 0 && have < ANSWER_MAX) {
		n = recv(fd, answer + have, ANSWER_MAX - have, 0);
		have += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	answer[have] = 0;
	return have;
}

/* The answer is one of HTTP. If it is an error of ours, it says so in one line of JSON. */
static void check(void)
{
	const char *body = strstr(answer, "\r\n\r\n"), *type = strstr(answer, "application/json"),
		   *length = strstr(answer, "Content-Length: ");
	int status;

	EXPECT(sscanf(answer, "HTTP/1.%*1[01] %d ", &status) == 1);
	EXPECT(status != 500 && body);
	if (status < 400 || !type || type > body || strncmp(body + 4, "{\"error\":", 9))
		return;
	/* What follows may be the answer to another request. */
	EXPECT(length && length < body);
	EXPECT(!memchr(body + 4, '\n', strtoul(length + 16, NULL, 10) - 1));
}

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const unsigned char *data, size_t size)
{
	static const char list[] = "GET /v1/jobs?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n";
	static unsigned int nr;

	if (!nr++)
		begin();
	if (ask(data, size))
		check();
	if (nr % 16)
		return 0;
	EXPECT(ask(list, sizeof(list) - 1));
	EXPECT(!strncmp(answer, "HTTP/1.1 200 ", 13));
	return 0;
}
