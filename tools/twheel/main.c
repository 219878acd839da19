// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* twheel(1): run commands at their time, and look at the wheels of this machine. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static const struct command {
	const char	*name;
	int		(*fn)(int argc, char **argv);
} commands[] = {
	{ "after", cmd_job },
	{ "at", cmd_job },
	{ "every", cmd_job },
	{ "cron", cmd_job },
	{ "run", cmd_run },
	{ "ls", cmd_ls },
	{ "info", cmd_info },
	{ "bench", cmd_bench },
	{ "top", cmd_top },
	{ "plot", cmd_plot },
};

void try_help(int status)
{
	fputs("Try 'twheel --help' for more information.\n", stderr);
	exit(status);
}

void usage(int status)
{
	fputs("Usage: twheel after DURATION [--] [COMMAND [ARG]...]\n"
	      "  or:  twheel at TIME [--] [COMMAND [ARG]...]\n"
	      "  or:  twheel every DURATION|DAY [OPTION]... [--] COMMAND [ARG]...\n"
	      "  or:  twheel cron EXPRESSION [OPTION]... [--] COMMAND [ARG]...\n"
	      "  or:  twheel run [--jobs=N] FILE\n"
	      "  or:  twheel ls\n"
	      "  or:  twheel info\n"
	      "  or:  twheel top [--batch] [--delay=DURATION] [--count=N] [--embedded]\n"
	      "  or:  twheel bench [--timers=N] [--backend=NAME]\n"
	      "  or:  twheel plot [--output=FILE] [FILE]\n"
	      "Run commands at their time, and look at the timing wheels of this machine.\n"
	      "\n"
	      "  after, at        once; without a COMMAND, only wait\n"
	      "  every            again and again, for the first time after one DURATION\n"
	      "      --count=N          N times, and then end\n"
	      "      --now              for the first time at once\n"
	      "      --fixed-delay      DURATION counts from the end of COMMAND, not from when\n"
	      "                           it was due\n"
	      "      --missed=POLICY    what to do about times that passed while COMMAND still\n"
	      "                           ran: 'skip' them (the default), 'burst' to make up\n"
	      "                           for them, 'delay' those that follow\n"
	      "  cron             whenever EXPRESSION of crontab(5) is due, in local time; and so does\n"
	      "                     every, with a DAY instead of a duration\n"
	      "      --zone=NAME        by the clock of this time zone: Europe/Berlin\n"
	      "      --jitter=DURATION  each time some random time later, of up to DURATION\n"
	      "      --missed=POLICY    'once' (the default), one run for all times that passed;\n"
	      "                           'skip', the same, but none that is a minute late;\n"
	      "                           'burst', a run for each\n"
	      "      --explain[=N]      only tell the next N times; 5\n"
	      "      --count, --now     as for every\n"
	      "  run              all of FILE, a line each: the same words and options, and after\n"
	      "                     a '--' the rest of the line for the shell. '#' begins a\n"
	      "                     comment. FILE '-' is standard input\n"
	      "      --jobs=N           at most N commands at once; 32\n"
	      "      --check            only say what is wrong with FILE\n"
	      "  ls               files of /dev/twheel that are open, and what is pending in them\n"
	      "  info             the kernel module, and which backend programs get\n"
	      "  top              what the kernel's wheels do, live: of the CPUs, of modules and of\n"
	      "                     files that are open. Up and down choose one, q ends\n"
	      "      -b, --batch        print it instead, a block each time\n"
	      "      --delay=DURATION   from one time to the next; 1s\n"
	      "      --count=N          N times, and then end\n"
	      "      --embedded         a wheel in this process, with a load\n"
	      "  bench            what arming, cancelling and firing cost here, and how late\n"
	      "      --timers=N         how many; 100000\n"
	      "      --backend=NAME     'kernel' or 'embedded'; all there are\n"
	      "  plot             a picture of what 'bench --json' has printed to FILE or the\n"
	      "                     standard input, or of a table of the same; see twheel(1)\n"
	      "      --output=FILE      its name ends in .svg or .png; SVG to the standard output\n"
	      "\n"
	      "      --json       print JSON, a line for each run of a command, file, backend, or\n"
	      "                     look at the wheels\n"
	      "      --help       display this help and exit\n"
	      "      --version    output version information and exit\n"
	      "\n"
	      "DURATION is like 90 (seconds), 1.5s, 250ms, 5m, 1h30m, '2 hours', 1d.\n"
	      "TIME is like 06:30, '2027-01-01 06:30', 2027-01-01T06:30:00Z, 'tomorrow 9:00',\n"
	      "@1798761600. DAY is like 'day at 9:00', 'weekday at 17:30', mon,thu, 'month on last',\n"
	      "hour. EXPRESSION is like '30 2 * * 1-5'. Commands at a TIME, or by the calendar, move\n"
	      "with the clock when that is set; a DURATION goes on while the machine is suspended.\n"
	      "\n"
	      "Exit status: that of COMMAND; 125 if twheel fails itself, 126 if COMMAND cannot be\n"
	      "run, 127 if it is not found. Of every, cron and run, 1 if a command failed. Without\n"
	      "commands 0, or 1 if there was an error.\n", status ? stderr : stdout);
	exit(status);
}

void json_line(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(object);
}

void json_int(struct json_object *object, const char *key, int64_t value)
{
	json_object_object_add(object, key, json_object_new_int64(value));
}

void json_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, value ? json_object_new_string(value) : NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		error(0, 0, "missing command");
		try_help(EXIT_CANCELED);
	}
	if (!strcmp(argv[1], "--help"))
		usage(0);
	if (!strcmp(argv[1], "--version")) {
		puts("twheel " VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].fn(argc - 1, argv + 1);
	error(0, 0, "unknown command '%s'", argv[1]);
	try_help(EXIT_CANCELED);
}
