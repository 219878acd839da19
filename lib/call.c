// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The user's functions are called from here, because they may end in other ways than by returning.
 *
 * A C++ function may throw an exception and not catch it. The Makefile compiles this file without
 * unwind tables, so the exception ends here: the C++ runtime calls std::terminate(), with the stack
 * of the throw still there for a debugger, as it does for a std::thread. Otherwise the exception
 * would pass through the scheduler, which could not be used after that.
 *
 * A function may end its thread, by pthread_exit() or because it is cancelled. The C library then
 * calls the cleanup handlers, which it finds without unwind tables.
 */
#include <pthread.h>

#include "call.h"

/*
 * Call the function of a task. If it ends the thread, @left(@arg) is called instead of returning.
 */
void twheel_call_fn(const struct twheel_task_info *task, void (*left)(void *arg), void *arg)
{
	pthread_cleanup_push(left, arg);
	task->fn(task->arg, task);
	pthread_cleanup_pop(0);
}

/*
 * Call release(). The asm keeps this function's frame: a tail call would replace the frame, and
 * then the missing unwind table would stop no exception.
 */
void twheel_call_release(void (*release)(void *arg), void *arg)
{
	release(arg);
	__asm__ volatile("");
}
