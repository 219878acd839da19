// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* What --help says, of a command and of all. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static const struct help {
	const char	*name;
	const char	*words;		/* behind the name, in the line of usage */
	const char	*text;
} helps[] = {
	{ "after", "DURATION [OPTION]... [--] [COMMAND [ARG]...]",
	  "  after            once, after DURATION; without a COMMAND, only wait\n" },
	{ "at", "TIME [OPTION]... [--] [COMMAND [ARG]...]",
	  "  at               once, at TIME; without a COMMAND, only wait\n" },
	{ "every", "DURATION|DAY [OPTION]... [--] COMMAND [ARG]...",
	  "  every            again and again, for the first time after one DURATION\n"
	  "      --count=N          N times, and then end\n"
	  "      --now              for the first time at once\n"
	  "      --fixed-delay      DURATION counts from the end of COMMAND, not from when\n"
	  "                           it was due\n"
	  "      --missed=POLICY    what to do about times that passed while COMMAND still\n"
	  "                           ran: 'skip' them (the default), 'burst' to make up\n"
	  "                           for them, 'delay' those that follow\n"
	  "      With a DAY instead of a DURATION, as cron.\n" },
	{ "cron", "EXPRESSION [OPTION]... [--] COMMAND [ARG]...",
	  "  cron             whenever EXPRESSION of crontab(5) is due, in local time\n"
	  "      --zone=NAME        by the clock of this time zone: Europe/Berlin\n"
	  "      --jitter=DURATION  each time some random time later, of up to DURATION\n"
	  "      --missed=POLICY    'once' (the default), one run for all times that passed;\n"
	  "                           'skip', the same, but none that is a minute late;\n"
	  "                           'burst', a run for each\n"
	  "      --explain[=N]      only tell the next N times; 5\n"
	  "      --count, --now     as for every\n" },
	{ "run", "[OPTION]... FILE",
	  "  run              all of FILE, a line each: the same words and options, and after\n"
	  "                     a '--' the rest of the line for the shell. '#' begins a\n"
	  "                     comment. FILE '-' is standard input\n"
	  "      --jobs=N           at most N commands at once; 32\n"
	  "      --check            only say what is wrong with FILE\n"
	  "      --lock=FILE        the file to lock, so that it is not run twice at a time;\n"
	  "                           else it is the FILE of commands itself\n" },
	{ "ls", "[--json]",
	  "  ls               files of /dev/twheel that are open, and what is pending in them\n" },
	{ "info", "[--json]",
	  "  info             the kernel module, and which backend programs get\n" },
	{ "top", "[OPTION]...",
	  "  top              what the kernel's wheels do, live: of the CPUs, of modules and of\n"
	  "                     files that are open. Up and down choose one, q ends\n"
	  "      -b, --batch        print it instead, a block each time\n"
	  "      --delay=DURATION   from one time to the next; 1s\n"
	  "      --count=N          N times, and then end\n"
	  "      --embedded         a wheel in this process, with a load\n" },
	{ "bench", "[--timers=N] [--backend=NAME] [--json]",
	  "  bench            what arming, cancelling and firing cost here, and how late\n"
	  "      --timers=N         how many; 100000\n"
	  "      --backend=NAME     'kernel' or 'embedded'; all there are\n" },
	{ "plot", "[--output=FILE] [FILE]",
	  "  plot             a picture of what 'bench --json' has printed to FILE or the\n"
	  "                     standard input, or of a table of the same; see twheel(1)\n"
	  "      --output=FILE      its name ends in .svg or .png; SVG to the standard output\n" },
};

/* The commands from 0 on that run other commands. */
#define NR_RUNNERS	5

static const char runners[] =
	"      -k, --kill-after=DURATION\n"
	"                   so long after a signal that was passed on, kill what still runs\n"
	"      --json-fd=N  as --json, to the file descriptor N\n";

static const char common[] =
	"      --json       print JSON, a line for each run of a command, file, backend, or\n"
	"                     look at the wheels\n"
	"  -h, --help       display this help, or that of one command, and exit\n";

static const char times[] =
	"\n"
	"DURATION is like 90 (seconds), 1.5s, 250ms, 5m, 1h30m, '2 hours', 1d.\n"
	"TIME is like 06:30, '2027-01-01 06:30', 2027-01-01T06:30:00Z, 'tomorrow 9:00',\n"
	"@1798761600. DAY is like 'day at 9:00', 'weekday at 17:30', mon,thu, 'month on last',\n"
	"hour. EXPRESSION is like '30 2 * * 1-5'. Commands at a TIME, or by the calendar, move\n"
	"with the clock when that is set; a DURATION goes on while the machine is suspended.\n"
	"\n"
	"Exit status: that of COMMAND; 125 if twheel fails itself, 126 if COMMAND cannot be\n"
	"run, 127 if it is not found. Of every, cron and run, 1 if a command failed. Without\n"
	"commands 0, or 1 if there was an error.\n";

noreturn static void help_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(helps); i++)
		printf("%s twheel %s %s\n", i ? "  or: " : "Usage:", helps[i].name,
		       helps[i].words);
	fputs("  or:  twheel help [NAME]\n"
	      "Run commands at their time, and look at the timing wheels of this machine.\n"
	      "\n", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(helps); i++) {
		fputs(helps[i].text, stdout);
		if (i == NR_RUNNERS - 1)
			printf("Of these five:\n%sThe others:\n", runners);
	}
	printf("\n%s  -V, --version    output version information and exit\n%s", common, times);
	check_stdout();
	exit(0);
}

void help(const char *name)
{
	if (!name)
		help_all();
	for (size_t i = 0; i < ARRAY_SIZE(helps); i++) {
		if (strcmp(helps[i].name, name))
			continue;
		printf("Usage: twheel %s %s\n%s%s%s%s", name, helps[i].words, helps[i].text,
		       i < NR_RUNNERS ? runners : "", common, i < NR_RUNNERS ? times : "");
		check_stdout();
		exit(0);
	}
	error(0, 0, "unknown command '%s'", name);
	try_help(EXIT_CANCELED);
}
