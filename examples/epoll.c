// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* libtwheel in an epoll loop: the wheel is one more descriptor. See alarms.h. */
#include <errno.h>
#include <sys/epoll.h>

#include "alarms.h"

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl()", errno);
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct alarms a = { 0 };

	alarms_open(&a);
	watch(epoll, STDIN_FILENO);
	watch(epoll, twheel_fd(a.wheel));
	while (!alarms_over(&a)) {
		struct epoll_event events[2];
		int n = epoll_wait(epoll, events, 2, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == twheel_fd(a.wheel)) {
				alarms_ring(&a);
				continue;
			}
			alarms_input(&a);
			if (a.at_end)
				epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		}
	}
	twheel_close(a.wheel);
	return 0;
}
