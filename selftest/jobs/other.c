// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* A module of another version of twheeld, which must not be used. */
#include <stdlib.h>

#include "libtwheel.h"
#include "store.h"

static int use(struct store **store, const char *where, const char *name, int64_t lease,
	       char *error, size_t size)
{
	(void)store, (void)where, (void)name, (void)lease, (void)error, (void)size;
	abort();
}

const struct store_module twheeld_postgresql = {
	.version = TWHEEL_VERSION_OF(0, 12, 3), .open = use
};
