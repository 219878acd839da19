/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The processes of commands. Any thread may call child_run(), which runs a command and waits for
 * its end. Only the first thread may call the other functions.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdatomic.h>

#include "cmd.h"

/* Returned by child_run() instead of a status if nothing may be started any more. */
#define CHILD_STOPPED	(-1)

/**
 * struct child_options - how commands run
 * @session:	each command has a session of its own, without a terminal, and no standard input;
 *		otherwise it has a process group of its own, and gets the terminal if it needs it
 * @kill_after:	so many ns after a signal was passed on, kill what is still running; 0: never
 * @hangup:	called for SIGHUP. If it returns true the signal is dealt with; otherwise SIGHUP is
 *		passed on, as other signals are
 */
struct child_options {
	bool	session;
	int64_t	kill_after;
	bool	(*hangup)(void);
};

/*
 * Block SIGHUP until children_begin() has set up what takes it; or unblock it, if nothing will. The
 * commands are born with the mask from before.
 */
void children_block_hangup(void);
void children_unblock_hangup(void);

/* Block the signals that are passed on. Call this before any thread is made: threads inherit it. */
void children_begin(const struct child_options *options);

/*
 * Run a command with the environment @env. If @env is NULL, the caller had no memory for one, and
 * the command fails like any that cannot be started. Returns the exit status as a shell does.
 * Returns CHILD_STOPPED if nothing may be started any more, or if @never is true once starting is
 * allowed. If the command could not be started, @ran is false, the reason was printed, and the
 * status is 125 to 127.
 */
int child_run(char **argv, char **env, const atomic_bool *never, bool *ran);

/* Keep commands from being started until children_release(). */
void children_hold(void);
void children_release(void);

/* A descriptor to poll: it is readable if children_signals() has a signal to take. */
int children_fd(void);

/* Take the signals that have come, and do what they ask for. */
void children_signals(void);

/*
 * Start nothing more, and pass @sig on to what is running. If a signal was passed on half a second
 * ago or longer, kill what is running.
 */
void children_stop(int sig);

/* The signal of the first children_stop(); 0 if there was none. */
int children_stopped(void);

/* Kill what is running if @kill_after has passed. Returns how many ms to poll at most, or -1. */
int children_kill_late(void);

/* Has children_stop() been called, and has nothing been running for half a second? */
bool children_gone(void);

/* End this process by @sig, as if @sig had never been blocked. */
noreturn void end_by_signal(int sig);

#endif
