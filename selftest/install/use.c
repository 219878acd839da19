// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* A program that uses libtwheel, for projects that look for it in some way. C, and C++ too. */
#include <libtwheel.h>
#include <libtwheel-sched.h>
#include <stdio.h>
#include <string.h>

static void say(void *arg, const struct twheel_task_info *task)
{
	*(int *)arg += (int)task->runs;
}

static int run_tasks(int *runs)
{
	struct twheel_sched *sched;
	struct twheel_task task;

	memset(&task, 0, sizeof(task));
	if (twheel_sched_open(&sched, NULL))
		return 0;
	task.fn = say;
	task.arg = runs;
	task.key = "key";
	if (twheel_sched_add(sched, &task, NULL))
		return 0;
	while (!*runs)
		twheel_sched_run(sched, 0, -1);
	return !twheel_sched_close(sched);
}

int main(void)
{
	struct twheel_event event;
	struct twheel *twheel;
	uint64_t handle;
	int runs = 0;

	if (twheel_version() != TWHEEL_VERSION ||
	    twheel_open(&twheel, TWHEEL_EMBEDDED, NULL) ||
	    twheel_add(twheel, &handle, 42, 1000000, 0, 0) ||
	    twheel_read(twheel, &event, 1, 10000) != 1 || event.handle != handle ||
	    event.user_data != 42)
		return 1;
	twheel_close(twheel);
	if (!run_tasks(&runs) || runs != 1)
		return 1;
	puts("used");
	return 0;
}
