// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * ls and info: what the kernel shows of /dev/twheel in /proc and /sys. Wheels that programs have
 * embedded are in their own memory, and cannot be listed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

enum { OPT_JSON = 1 };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static bool json;

/* Parse the options of ls and info, which are the same. Ends the program if they are wrong. */
static void parse(int argc, char **argv)
{
	const char *name = argv[0];
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			help(name);
		if (c != OPT_JSON)
			try_help(1);
		json = true;
	}
	if (optind < argc) {
		error(0, 0, "extra operand '%s'", argv[optind]);
		try_help(1);
	}
}

/* Read the first line of a file; "" if that is not possible. */
static const char *read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = 0;
	if (f && fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = 0;
	if (f)
		fclose(f);
	return buf;
}

/* ---- ls ------------------------------------------------------------------------ */

/* The keys of fdinfo that are shown, in the order of the columns. */
static const char *const keys[] = { "clockid", "tick-ns", "timers", "armed", "ready", "next-ns" };

enum { CLOCKID, TICK, TIMERS, ARMED, READY, NEXT, NR_KEYS };

/* Read the numbers of /proc/PID/fdinfo/FD. Returns false if the file is not of twheel. */
static bool read_fdinfo(const char *path, int64_t values[NR_KEYS])
{
	FILE *f = fopen(path, "re");
	unsigned int found = 0;
	char line[128];

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		char *value = strstr(line, ":\t");

		if (strncmp(line, "twheel-", 7) || !value)
			continue;
		*value = 0;
		for (unsigned int i = 0; i < NR_KEYS; i++)
			if (!strcmp(line + 7, keys[i])) {
				values[i] = strtoll(value + 2, NULL, 10);
				found |= 1 << i;
			}
	}
	fclose(f);
	return found == (1 << NR_KEYS) - 1;
}

/* In the order in which they are shown. */
static const struct {
	int64_t		id;
	const char	*name;
} clocks[] = {
	{ CLOCK_MONOTONIC, "monotonic" },
	{ CLOCK_BOOTTIME, "boottime" },
	{ CLOCK_REALTIME, "realtime" },
	{ CLOCK_BOOTTIME_ALARM, "boottime-alarm" },
	{ CLOCK_REALTIME_ALARM, "realtime-alarm" },
	{ 0, NULL }
};

/* The name of a clock; "?" if a newer kernel has one that is not known here. */
static const char *clock_name(int64_t id)
{
	for (size_t i = 0; clocks[i].name; i++)
		if (clocks[i].id == id)
			return clocks[i].name;
	return "?";
}

/* Print the names of a set of clocks: a bit for each clockid_t. */
static void show_clocks(uint64_t set)
{
	printf("  %-16s", "clocks");
	for (size_t i = 0; clocks[i].name; i++)
		if (set >> clocks[i].id & 1)
			printf(" %s", clocks[i].name);
	printf("\n");
}

/* Print the line of a file. The process may have ended meanwhile; then its name is empty. */
static void show_wheel(const char *pid, const char *fd, const int64_t v[NR_KEYS])
{
	char path[64], comm[32], plain[PLAIN_MAX], tick[32], next[32] = "-";
	bool none = v[NEXT] == INT64_MAX;
	int64_t in = v[NEXT] - time_now((clockid_t)v[CLOCKID]);

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	plain_name(read_line(path, comm, sizeof(comm)), plain);
	if (json) {
		struct json_object *o = json_object_new_object();

		json_int(o, "pid", atoll(pid));
		json_int(o, "fd", atoll(fd));
		json_string(o, "command", plain);
		json_string(o, "clock", clock_name(v[CLOCKID]));
		json_int(o, "tick_ns", v[TICK]);
		json_int(o, "timers", v[TIMERS]);
		json_int(o, "armed", v[ARMED]);
		json_int(o, "ready", v[READY]);
		json_object_object_add(o, "next_in_ns", none ? NULL : json_object_new_int64(in));
		json_line(o);
		return;
	}
	if (!none)
		show_duration(in > 0 ? in : 0, next);
	printf("%7s %4s %-9s %6s %9lld %9lld %9lld %9s %s\n", pid, fd, clock_name(v[CLOCKID]),
	       show_duration(v[TICK], tick), (long long)v[TIMERS], (long long)v[ARMED],
	       (long long)v[READY], next, plain);
}

/* Print the files of a process, if we may see them. */
static void list_process(const char *pid)
{
	char path[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		int64_t values[NR_KEYS];

		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%.16s", pid, entry->d_name);
		if (entry->d_name[0] != '.' && read_fdinfo(path, values))
			show_wheel(pid, entry->d_name, values);
	}
	closedir(dir);
}

/* Files of other users' processes are shown to root alone: the others are left out. */
int cmd_ls(int argc, char **argv)
{
	struct dirent *entry;
	DIR *dir;

	parse(argc, argv);
	dir = opendir("/proc");
	if (!dir)
		error(1, errno, "cannot open '/proc'");
	if (!json)
		printf("%7s %4s %-9s %6s %9s %9s %9s %9s %s\n", "PID", "FD", "CLOCK", "TICK",
		       "TIMERS", "ARMED", "READY", "NEXT IN", "COMMAND");
	while ((entry = readdir(dir)))
		if (entry->d_name[strspn(entry->d_name, "0123456789")] == 0)
			list_process(entry->d_name);
	closedir(dir);
	return 0;
}

/* ---- info ------------------------------------------------------------------------- */

/* The parameters of the modules, below /sys/module. */
static const char *const params[] = {
	"twheel/parameters/tick_us", "twheel_chardev/parameters/max_timers",
	"twheel_chardev/parameters/max_user_timers", "twheel_chardev/parameters/max_user_files",
	"twheel_chardev/parameters/min_tick_us",
};

/*
 * Add the modules' parameters to @o, or print them if that is NULL. Without the modules there are
 * none.
 */
static void show_params(struct json_object *o)
{
	char path[96], value[64];

	for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
		const char *name = strrchr(params[i], '/') + 1;

		snprintf(path, sizeof(path), "/sys/module/%s", params[i]);
		if (!*read_line(path, value, sizeof(value)))
			continue;
		if (o)
			json_int(o, name, atoll(value));
		else
			printf("  %-16s %s\n", name, value);
	}
}

/* Print what programs get from twheel_open(), for people. */
static void show_info(const struct twheel *w, const struct twheel_info *info)
{
	char tick[32], least[32];

	printf("Programs get the %s backend:\n", twheel_backend(w));
	printf("  %-16s %u\n", "interface", info->abi);
	printf("  %-16s %s, at least %s\n", "tick", show_duration((int64_t)info->tick_ns, tick),
	       show_duration((int64_t)info->min_tick_ns, least));
	printf("  %-16s %u\n", "timers at most", info->max_timers);
	show_clocks(info->clocks);
	printf("  %-16s %llu bytes\n", "an empty wheel", (unsigned long long)info->mem_bytes);
}

/* The same and the modules' parameters, as a line of JSON. @device: 0, or why there is none. */
static void show_info_json(const struct twheel *w, const struct twheel_info *info, int device)
{
	struct json_object *o = json_object_new_object();

	json_string(o, "device", device ? strerror(device) : "/dev/twheel");
	json_string(o, "backend", twheel_backend(w));
	json_int(o, "abi", info->abi);
	json_int(o, "tick_ns", (int64_t)info->tick_ns);
	json_int(o, "min_tick_ns", (int64_t)info->min_tick_ns);
	json_int(o, "max_timers_of_wheel", info->max_timers);
	json_int(o, "mem_bytes", (int64_t)info->mem_bytes);
	show_params(o);
	json_line(o);
}

int cmd_info(int argc, char **argv)
{
	int device = access("/dev/twheel", R_OK | W_OK) ? errno : 0, err;
	struct twheel_info info;
	struct twheel *w;

	parse(argc, argv);
	err = twheel_open(&w, 0, NULL);
	if (err)
		error(1, -err, "cannot make a wheel");
	twheel_get_info(w, &info);
	if (json) {
		show_info_json(w, &info, device);
	} else {
		printf("/dev/twheel: %s\n", device ? strerror(device) : "accessible");
		show_params(NULL);
		show_info(w, &info);
	}
	twheel_close(w);
	return 0;
}
