/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/* What a service tells systemd, as by sd_notify(3). Used by twheel(1) and twheeld(8). */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Send @text to the socket @name, which is the value of NOTIFY_SOCKET; NULL: nobody wants to know.
 * Returns 0 or a negative errno.
 */
static inline int notify_systemd(const char *name, const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err = 0;
	size_t size;

	if (!name)
		return 0;
	if (strlen(name) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, name);
	size = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	if (*name == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), 0, (struct sockaddr *)&address,
			     (socklen_t)size) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

#endif
