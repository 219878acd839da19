// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * plot: draw runs with gnuplot. The left shows how late their timers were, from the least to the
 * most; the right shows what a timer cost.
 *
 * Runs are lines of "twheel bench --json", or of a table of the same: tabs between the columns,
 * whose names are in the first line,
 *
 *	name	arm_ns	cancel_ns	read_ns	late_p50_ns	late_p99_ns	late_max_ns
 *
 * in any order, perhaps with other columns. A run of a table has three points on the left.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"

#define RUNS_MAX	32
#define POINTS_MAX	101
#define COLUMNS_MAX	64

enum value { ARM, CANCEL, READ, P50, P99, LAST, NR_VALUES };

static const char *const names[NR_VALUES] = {
	"arm_ns", "cancel_ns", "read_ns", "late_p50_ns", "late_p99_ns", "late_max_ns",
};

/**
 * struct run - a line of the input
 * @label:	its name in the picture
 * @values:	see enum value, in ns
 * @nr_points:	how many members of @late are filled in: 101, the percentiles, or none
 * @late:	lateness in ns
 */
struct run {
	char	label[48];
	double	values[NR_VALUES];
	size_t	nr_points;
	double	late[POINTS_MAX];
};

static struct run runs[RUNS_MAX];
static size_t nr_runs;
static const char *input = "-", *output;

/* Report what is wrong with a line of the input, and end with status 1. */
noreturn __attribute__((format(printf, 2, 3)))
static void wrong(unsigned int line, const char *fmt, ...)
{
	char text[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	error_at_line(1, 0, input, line, "%s", text);
	abort();
}

/* Room for another run. Ends the program if there are too many. */
static struct run *new_run(unsigned int line)
{
	if (nr_runs == RUNS_MAX)
		wrong(line, "more than %d runs", RUNS_MAX);
	return &runs[nr_runs++];
}

/* Set the label, without characters that mean something to gnuplot. */
static void set_label(struct run *run, const char *name)
{
	snprintf(run->label, sizeof(run->label), "%s", name);
	for (char *c = run->label; *c; c++)
		if (*c == '"' || *c == '\\' || *c == '`' || (unsigned char)*c < ' ')
			*c = '_';
}

/* ---- reading ------------------------------------------------------------------------ */

/* Take the percentiles of lateness, if there is one for each percent. */
static void read_late(struct run *run, const struct json_object *a)
{
	size_t nr = a ? json_object_array_length(a) : 0;

	if (nr != POINTS_MAX)
		return;
	for (; run->nr_points < nr; run->nr_points++)
		run->late[run->nr_points] =
			json_object_get_double(json_object_array_get_idx(a, run->nr_points));
}

/* Read a run as `twheel bench --json` prints it. */
static void read_json(char *text, unsigned int line)
{
	struct json_object *o = json_tokener_parse(text), *v;
	struct run *run = new_run(line);
	char label[48];

	if (!json_object_is_type(o, json_type_object))
		wrong(line, "no JSON object");
	for (int i = 0; i < NR_VALUES; i++) {
		if (!json_object_object_get_ex(o, names[i], &v))
			wrong(line, "no \"%s\"", names[i]);
		run->values[i] = json_object_get_double(v);
	}
	json_object_object_get_ex(o, "backend", &v);
	snprintf(label, sizeof(label), "%s", v ? json_object_get_string(v) : "run");
	if (json_object_object_get_ex(o, "timers", &v))
		snprintf(label + strlen(label), sizeof(label) - strlen(label), ", %s timers",
			 json_object_get_string(v));
	set_label(run, label);
	if (json_object_object_get_ex(o, "late_percentiles_ns", &v) &&
	    json_object_is_type(v, json_type_array))
		read_late(run, v);
	json_object_put(o);
}

/* What each column of a table is: an enum value, -1 for the name, or -2 for a column to ignore. */
static int columns[COLUMNS_MAX];

/* Read the head of a table. Ends the program if a column that is needed is missing. */
static void read_head(char *text, unsigned int line)
{
	unsigned int found = 0;
	char *word;

	for (int i = 0; i < COLUMNS_MAX; i++) {
		word = strsep(&text, "\t\n");
		columns[i] = word && !strcmp(word, "name") ? -1 : -2;
		for (int v = 0; word && v < NR_VALUES; v++)
			if (!strcmp(word, names[v])) {
				columns[i] = v;
				found |= 1U << v;
			}
	}
	for (int v = 0; v < NR_VALUES; v++)
		if (!(found & 1U << v))
			wrong(line, "neither JSON nor a table with a column '%s'", names[v]);
}

/* Read a run from a row of a table. */
static void read_row(char *text, unsigned int line)
{
	struct run *run = new_run(line);
	unsigned int found = 0;
	char *word, *end;

	text[strcspn(text, "\n")] = 0;
	for (int i = 0; i < COLUMNS_MAX && (word = strsep(&text, "\t")); i++) {
		if (columns[i] == -1)
			set_label(run, word);
		if (columns[i] < 0)
			continue;
		run->values[columns[i]] = strtod(word, &end);
		if (end == word || *end)
			wrong(line, "'%s' is not a number", word);
		found++;
	}
	if (found < NR_VALUES)
		wrong(line, "not all columns");
}

/* Read all runs: lines of JSON, or a table, or both. */
static void read_runs(FILE *f)
{
	char *text = NULL;
	size_t size = 0;
	bool table = false;

	for (unsigned int line = 1; getline(&text, &size, f) > 0; line++) {
		if (text[strspn(text, " \t\n")] == 0 || *text == '#')
			continue;
		if (*text == '{')
			read_json(text, line);
		else
			(table ? read_row : read_head)(text, line);
		table |= *text != '{';
	}
	free(text);
	if (!nr_runs)
		error(1, 0, "%s: no runs", input);
}

/* ---- drawing ------------------------------------------------------------------------ */

/* Convert to us. Never 0, which has no place on a logarithmic axis. */
static double us(double ns)
{
	return ns > 1 ? ns / NS_PER_US : 1.0 / NS_PER_US;
}

/* Write the data for gnuplot: the lateness of each run, and the costs of all. */
static void write_data(FILE *plot)
{
	static const int percent[] = { 50, 99, 100 };

	for (size_t r = 0; r < nr_runs; r++) {
		const struct run *run = &runs[r];

		fprintf(plot, "$late%zu << EOD\n", r);
		for (size_t i = 0; i < run->nr_points; i++)
			fprintf(plot, "%zu %g\n", i, us(run->late[i]));
		for (size_t i = 0; i < 3 && !run->nr_points; i++)
			fprintf(plot, "%d %g\n", percent[i], us(run->values[P50 + i]));
		fputs("EOD\n", plot);
	}
	fputs("$cost << EOD\n\"\"", plot);
	for (size_t r = 0; r < nr_runs; r++)
		fprintf(plot, " \"%s\"", runs[r].label);
	for (int v = ARM; v <= READ; v++) {
		fprintf(plot, "\n%.*s", (int)strcspn(names[v], "_"), names[v]);
		for (size_t r = 0; r < nr_runs; r++)
			fprintf(plot, " %g", runs[r].values[v]);
	}
	fputs("\nEOD\n", plot);
}

/* Is the picture to be PNG? plot_option() has seen to it that the name has an ending. */
static bool is_png(void)
{
	return output && !strcmp(strrchr(output, '.'), ".png");
}

/* Write the commands for gnuplot: lateness on the left, costs on the right. */
static void write_plots(FILE *plot)
{
	fprintf(plot, "set terminal %s size 1100,480 noenhanced background rgb 'white'\n",
		is_png() ? "pngcairo" : "svg");
	fputs("set multiplot layout 1,2\n"
	      "set grid ytics\n"
	      "set key top left\n"
	      "set title 'late by'\n"
	      "set xlabel 'percent of the timers'\n"
	      "set ylabel 'us'\n"
	      "set logscale y\n"
	      "set xrange [0:100]\n"
	      "plot ", plot);
	for (size_t r = 0; r < nr_runs; r++)
		fprintf(plot, "%s$late%zu using 1:2 with %s linewidth 2 title \"%s\"",
			r ? ", " : "", r, runs[r].nr_points ? "lines" : "linespoints",
			runs[r].label);
	fputs("\nunset logscale y\n"
	      "unset xlabel\n"
	      "set title 'cost of a timer'\n"
	      "set ylabel 'ns'\n"
	      "set xrange [*:*]\n"
	      "set yrange [0:*]\n"
	      "set style data histograms\n"
	      "set style histogram clustered\n"
	      "set style fill solid 0.7 border -1\n"
	      "plot ", plot);
	for (size_t r = 0; r < nr_runs; r++)
		fprintf(plot, "%s$cost using %zu:xtic(1) title columnheader(%zu)", r ? ", " : "",
			r + 2, r + 2);
	fputs("\nunset multiplot\n", plot);
}

/* A file in memory. */
static FILE *memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!f)
		error(1, errno, "memfd_create");
	return f;
}

/* Run gnuplot on @script, which writes a picture to @image. */
static void run_gnuplot(FILE *script, FILE *image)
{
	static char *const argv[] = { (char *)"gnuplot", NULL };
	posix_spawn_file_actions_t actions;
	int err, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(image), STDOUT_FILENO);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err == ENOENT)
		error(1, 0, "'gnuplot' is not installed");
	if (err || waitpid(pid, &status, 0) < 0)
		error(1, err ? err : errno, "cannot run 'gnuplot'");
	if (status)
		error(1, 0, "'gnuplot' has failed");
}

/* gnuplot does not report that it cannot write a file, so we write it. */
static void write_image(FILE *image)
{
	FILE *to = output ? fopen(output, "we") : stdout;
	char buf[4096];
	size_t n;

	if (!to)
		error(1, errno, "cannot open '%s' for writing", output);
	rewind(image);
	while ((n = fread(buf, 1, sizeof(buf), image)) > 0)
		fwrite(buf, 1, n, to);
	if (ferror(image))
		error(1, errno, "cannot read what 'gnuplot' has drawn");
	if (output && (fflush(to) || ferror(to) || fclose(to)))
		error(1, errno, "cannot write '%s'", output);
	check_stdout();
}

/* Draw all runs. Commands and picture pass through memory, so there is no file to remove. */
static void draw(void)
{
	FILE *script = memory("script"), *image = memory("image");

	write_data(script);
	write_plots(script);
	if (fflush(script) || ferror(script))
		error(1, errno, "cannot write to memory");
	rewind(script);
	run_gnuplot(script, image);
	write_image(image);
}

enum { OPT_OUTPUT = 1 };

/* Take option @c, as getopt_long() found it. Ends the program if it is wrong. */
static void plot_option(int c)
{
	const char *end;

	if (c == 'h')
		help("plot");
	if (c != OPT_OUTPUT)
		try_help(1);
	output = optarg;
	end = strrchr(output, '.');
	if (end && (!strcmp(end, ".svg") || !strcmp(end, ".png")))
		return;
	error(0, 0, "invalid name '%s': it must end in .svg or .png", output);
	try_help(1);
}

int cmd_plot(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, OPT_OUTPUT },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	FILE *f = stdin;
	int c;

	argv[0] = program_invocation_short_name;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
		plot_option(c);
	if (optind + 1 < argc) {
		error(0, 0, "extra operand '%s'", argv[optind + 1]);
		try_help(1);
	}
	if (optind < argc && strcmp(argv[optind], "-")) {
		input = argv[optind];
		f = fopen(input, "re");
		if (!f)
			error(1, errno, "cannot open '%s'", input);
	}
	read_runs(f);
	draw();
	return 0;
}
