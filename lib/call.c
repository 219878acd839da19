// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The functions of the user are called from here, for they may leave in ways that are none.
 *
 * The Makefile has this file compiled without unwind tables. So an exception that a C++
 * function throws and does not catch finds its end here: the C++ runtime calls
 * std::terminate(), with the stack of the throw still there to look at, as it does for a
 * std::thread. Else it would go on through the scheduler, which could not be used after that.
 *
 * pthread_exit() ends the thread, and a cancellation does. The C library goes through the
 * cleanup handlers then, which it finds without tables.
 */
#include <pthread.h>

#include "call.h"

void twheel_call_fn(const struct twheel_task_info *task, void (*left)(void *arg), void *arg)
{
	pthread_cleanup_push(left, arg);
	task->fn(task->arg, task);
	pthread_cleanup_pop(0);
}

/* The asm keeps this frame: a call in the place of the return would leave none behind. */
void twheel_call_release(void (*release)(void *arg), void *arg)
{
	release(arg);
	__asm__ volatile("");
}
