/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The processes of commands. Any thread may run one with child_run(), and then waits until it
 * has ended; the other functions are those of the first thread.
 */
#ifndef CHILD_H
#define CHILD_H

#include "cmd.h"

/* What child_run() returns instead of a status if nothing may be started any more. */
#define CHILD_STOPPED	(-1)

/**
 * struct child_options - how commands run
 * @session:	each has a session of its own, without a terminal, and no standard input;
 *		otherwise it has a process group of its own, and gets the terminal if it needs it
 * @kill_after:	ns after a signal was passed on, those that still run are killed; 0: never
 */
struct child_options {
	bool	session;
	int64_t	kill_after;
};

/* Before any thread is made: block the signals that are passed on. */
void children_begin(const struct child_options *options);

/*
 * Run a command with that environment; if it is NULL there was no memory for it. Returns its
 * exit status as a shell does, or CHILD_STOPPED. @ran is false if it could not be started: the
 * reason has been told, and the status is 125 to 127.
 */
int child_run(char **argv, char **env, bool *ran);

/* Nothing is started until children_release(). */
void children_hold(void);
void children_release(void);

/* To poll: readable if a signal has come, for children_signals(). */
int children_fd(void);

/* Do what the signals ask for that have come. */
void children_signals(void);

/*
 * Start nothing more, and pass @sig on to what runs. If that has been done half a second ago,
 * or longer, kill it.
 */
void children_stop(int sig);

/* The signal of the first children_stop(); 0: there was none. */
int children_stopped(void);

/* Kill what has had its time, see @kill_after. Returns for how many ms to poll, or -1. */
int children_kill_late(void);

/* End by that signal, as if it had never been blocked. */
noreturn void end_by_signal(int sig);

#endif
