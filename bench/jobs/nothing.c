// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Replaces jobs/exec.c and jobs/cgroup.c in the daemon of the benchmark: runs do nothing. Each is
 * over in the next round of the loop, with status 0, and everything is written as usual.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twheeld.h"

#define AT_ONCE	1000

static struct run *begun[100000];
static size_t nr;
static struct source ended;

static void end_some(struct source *source)
{
	uint64_t n;

	for (size_t i = 0; i < AT_ONCE && nr; i++) {
		struct run *run = begun[--nr];

		run->process.ended(run, CLD_EXITED, 0);
	}
	if (!nr && read(source->fd, &n, sizeof(n)) < 0)
		return;
}

int exec_begin(struct run *run)
{
	uint64_t one = 1;

	if (!ended.ready) {
		ended = (struct source) { .fd = eventfd(0, EFD_CLOEXEC), .ready = end_some };
		source_add(&ended);
	}
	if (nr == ARRAY_SIZE(begun))
		return -EAGAIN;
	run->process.child.pid = 1;
	begun[nr++] = run;
	return nr > 1 || write(ended.fd, &one, sizeof(one)) > 0 ? 0 : -errno;
}

void exec_look(struct run *run)
{
	(void)run;
}

void exec_end(struct run *run)
{
	run->process.child.pid = 0;
}

void exec_signal(struct run *run, int sig)
{
	(void)run;
	(void)sig;
}

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

void cgroup_setup(const char *dir, const char *state)
{
	(void)dir;
	(void)state;
}

bool cgroup_can(const struct def *def, char error[ERROR_MAX])
{
	(void)def;
	(void)error;
	return true;
}

void leftovers_kill(const char *state)
{
	(void)state;
}
