// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Loading the module of PostgreSQL, which is a package of its own: twheeld itself needs no libpq.
 *
 * The module is where `make jobs_install` puts it, or beside the program, where `make jobs` puts
 * it. A module beside the program is loaded only if it belongs to the program's owner, because
 * others may be able to write to that directory, as to /tmp. The environment and the current
 * directory do not matter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtwheel.h"
#include "places.h"
#include "store.h"
#include "twheeld.h"

#define SELF		"/proc/self/exe"
#define PACKAGE		"twheeld-postgresql"

/* The path beside the program; NULL if it cannot be known. */
static char *beside_program(void)
{
	char program[4096];
	ssize_t n = readlink(SELF, program, sizeof(program));

	while (n > 0 && program[n - 1] != '/')
		n--;
	return n > 0 ? format("%.*s" PACKAGE ".so", (int)n, program) : NULL;
}

/*
 * Does the module at @path belong to the owner of this program? If the program runs with more
 * rights than its caller has (AT_SECURE), the answer is no: the caller could choose what is beside
 * it.
 */
static bool is_owners(const char *path)
{
	struct stat program, module;

	return !getauxval(AT_SECURE) && !lstat(path, &module) && S_ISREG(module.st_mode) &&
	       !stat(SELF, &program) && module.st_uid == program.st_uid;
}

/* Check what the module says of itself. */
static const struct store_module *checked(const char *path, void *handle, char *error, size_t size)
{
	const struct store_module *module = dlsym(handle, "twheeld_postgresql");

	if (!module) {
		snprintf(error, size, "'%s' is not a module of twheeld", path);
		return NULL;
	}
	if (module->version != TWHEEL_VERSION) {
		snprintf(error, size, "'%s' belongs to twheeld %d.%d.%d, and this is %d.%d.%d",
			 path, module->version >> 16, module->version >> 8 & 0xff,
			 module->version & 0xff,
			 TWHEEL_VERSION_MAJOR, TWHEEL_VERSION_MINOR, TWHEEL_VERSION_PATCH);
		return NULL;
	}
	return module;
}

const struct store_module *store_module(char *error, size_t size)
{
	const struct store_module *module = NULL;
	char *path = beside_program();
	void *handle;

	if (!path || !is_owners(path)) {
		free(path);
		path = format(MODULE_DIR "/" PACKAGE ".so");
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle)
		module = checked(path, handle, error, size);
	else if (access(path, F_OK) && errno == ENOENT)
		snprintf(error, size, "the package " PACKAGE " is not installed: there is no '%s'",
			 path);
	else
		snprintf(error, size, "%s", dlerror());
	free(path);
	return module;
}
