// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * A function throws, and nobody in it catches: in a pool, or with "caller" where the caller
 * has a handler around. That must not be reached: std::terminate() is.
 */
#include <libtwheel-sched.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <unistd.h>

static void thrower(void *, const struct twheel_task_info *)
{
	throw std::runtime_error("from a task");
}

int main(int argc, char **argv)
{
	struct twheel_sched_options options = twheel_sched_options();
	struct twheel_task task = twheel_task();
	struct twheel_sched *sched;

	std::set_terminate([] { std::puts("terminated"); std::fflush(stdout); std::_Exit(3); });
	options.threads = argc == 1;
	task.fn = thrower;
	if (twheel_sched_open(&sched, &options) || twheel_sched_add(sched, &task, NULL))
		return 1;
	try {
		if (argc > 1)
			twheel_sched_run(sched, 0, 10000);
		else
			sleep(10);
	} catch (const std::exception &e) {
		std::printf("%s got out in %s\n", e.what(), argv[0]);
	}
	return 2;
}
