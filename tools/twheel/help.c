// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The text of --help, for one command and for all.
 *
 * The help of a command is its line of usage, its text here, and what it shares with others: the
 * options in @runners and the syntax in @times for commands that run other commands, and the
 * options in @common for all. `make lint` compares the options here with those of twheel(1).
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* In the order in which they are shown; the first NR_RUNNERS run other commands. */
static const struct help {
	const char	*name;		/* as main.c has it in commands[] */
	const char	*words;		/* after the name, in the line of usage */
	const char	*text;		/* what it does, and its own options */
} helps[] = {
	{ "after", "DURATION [OPTION]... [--] [COMMAND [ARG]...]",
	  "  after            run COMMAND once, after DURATION; without a COMMAND, only wait\n" },
	{ "at", "TIME [OPTION]... [--] [COMMAND [ARG]...]",
	  "  at               run COMMAND once, at TIME; without a COMMAND, only wait\n" },
	{ "every", "DURATION|DAY [OPTION]... [--] COMMAND [ARG]...",
	  "  every            run COMMAND repeatedly, first after one DURATION\n"
	  "      --count=N          end after N runs\n"
	  "      --now              run it for the first time at once\n"
	  "      --fixed-delay      DURATION counts from the end of COMMAND, not from the\n"
	  "                           time at which it was due\n"
	  "      --missed=POLICY    what to do about times that passed while COMMAND was still\n"
	  "                           running: 'skip' them (the default), 'burst' to make up\n"
	  "                           for them, 'delay' to postpone those that follow\n"
	  "      With a DAY instead of a DURATION, the same as cron.\n" },
	{ "cron", "EXPRESSION [OPTION]... [--] COMMAND [ARG]...",
	  "  cron             run COMMAND whenever EXPRESSION of crontab(5) is due\n"
	  "      --zone=NAME        use the clock of this time zone, like Europe/Berlin\n"
	  "      --jitter=DURATION  run later by a random time of up to DURATION\n"
	  "      --missed=POLICY    what to do about times that have passed: 'once' (the\n"
	  "                           default) runs COMMAND once for all of them; 'skip' does\n"
	  "                           so too, but not if that run would be over a minute late;\n"
	  "                           'burst' runs it once for each\n"
	  "      --explain[=N]      only print the next N times (5)\n"
	  "      --count, --now     as for every\n" },
	{ "run", "[OPTION]... FILE",
	  "  run              run the commands in FILE. A line has the words and options of a\n"
	  "                     command above, then '--' and the rest for the shell. '#' begins\n"
	  "                     a comment. FILE '-' is standard input\n"
	  "      --jobs=N           run at most N commands at once (32)\n"
	  "      --check            only report what is wrong with FILE\n"
	  "      --lock=LOCK        lock the file LOCK, so that no second twheel runs FILE at\n"
	  "                           the same time; by default, lock FILE itself if it is a\n"
	  "                           regular file\n"
	  "      --metrics=OUT      keep the file OUT up to date, for Prometheus\n"
	  "      On SIGHUP, FILE is read again.\n" },
	{ "job", "COMMAND [ARG]...",
	  "  job              manage jobs that twheeld keeps: see 'twheel job --help'\n" },
	{ "ls", "[--json]",
	  "  ls               list the open files of /dev/twheel, and what is pending in them\n" },
	{ "info", "[--json]",
	  "  info             show the kernel module, and which backend libtwheel chooses\n"
	  "                     for programs\n" },
	{ "top", "[OPTION]...",
	  "  top              show live what the kernel's wheels do: those of CPUs, of modules\n"
	  "                     and of open files. Up and down choose one, q quits\n"
	  "      -b, --batch        draw no screen; print a block of lines for each sample\n"
	  "      --delay=DURATION   the time from one sample to the next (1s)\n"
	  "      --count=N          end after N samples\n"
	  "      --embedded         show a wheel in this process, with a load\n"
	  "      --metrics=FILE     draw no screen; keep FILE up to date, for Prometheus. If\n"
	  "                           FILE is '-', print the metrics, by default once\n" },
	{ "bench", "[--timers=N] [--backend=NAME] [--json]",
	  "  bench            measure what arming, cancelling and firing cost here, and lateness\n"
	  "      --timers=N         the number of timers (100000)\n"
	  "      --backend=NAME     'kernel' or 'embedded', instead of all there are\n" },
	{ "plot", "[--output=FILE] [FILE]",
	  "  plot             draw the output of 'bench --json', or a table with the same\n"
	  "                     columns, from FILE or standard input; see twheel(1)\n"
	  "      --output=FILE      draw to FILE, whose name ends in .svg or .png; by default,\n"
	  "                           SVG to standard output\n" },
};

/* How many of helps[] run other commands. help_all() and @times call them "these five". */
#define NR_RUNNERS	5

static const char runners[] =
	"      --within=DURATION\n"
	"                   COMMAND may run up to DURATION late, together with other timers,\n"
	"                     so that the machine is woken less often; in a file of run, give\n"
	"                     it in each line\n"
	"      -k, --kill-after=DURATION\n"
	"                   if a signal ends twheel, kill after DURATION the commands that are\n"
	"                     still running\n"
	"      --json-fd=N  the same as --json, but to the file descriptor N\n";

static const char common[] =
	"      --json       print JSON: a line for each run of a command, each open file, each\n"
	"                     backend or each sample\n"
	"  -h, --help       display this help, or that of one command, and exit\n";

static const char times[] =
	"\n"
	"DURATION is like 90 (seconds), 1.5s, 250ms, 5m, 1h30m, '2 hours', 1d.\n"
	"TIME is like 06:30, '2027-01-01 06:30', 2027-01-01T06:30:00Z, 'tomorrow 9:00',\n"
	"@1798761600. DAY is like 'day at 9:00', 'weekday at 17:30', mon,thu, 'month on last',\n"
	"hour. EXPRESSION is like '30 2 * * 1-5'. If the clock is set, commands at a TIME, or by\n"
	"the calendar, run when it shows their time. A DURATION continues while the machine is\n"
	"suspended.\n"
	"\n"
	"Exit status of after and at: that of COMMAND, or 128+N if signal N ended it. Of every,\n"
	"cron and run: 0, or 1 if a command failed. Of all but run: 126 if COMMAND cannot be run,\n"
	"127 if it is not found. Of these five: 125 if twheel itself fails. Of the others: 0, or\n"
	"1 if there was an error.\n";

/* Print the help of all commands, and exit. */
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
			printf("Options of these five:\n%sThe others:\n", runners);
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
