/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* Calling what the user gave: see call.c. */
#ifndef CALL_H
#define CALL_H

#include "libtwheel-sched.h"

/* Call the function of @task. If it ends its thread, @left(@arg) is called on the way. */
void twheel_call_fn(const struct twheel_task_info *task, void (*left)(void *arg), void *arg);
void twheel_call_release(void (*release)(void *arg), void *arg);

#endif
