/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* Calls of the user's functions: call.c says why they are in a file of their own. */
#ifndef CALL_H
#define CALL_H

#include "libtwheel-sched.h"

/* Call the function of @task. If it ends its thread, @left(@arg) is called instead of returning. */
void twheel_call_fn(const struct twheel_task_info *task, void (*left)(void *arg), void *arg);
/* Call release(). If it throws an exception, the program ends. */
void twheel_call_release(void (*release)(void *arg), void *arg);

#endif
