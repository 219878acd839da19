// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * The screen of twheel top: sums and lateness, then the five levels of one base, or of all
 * bases, then a line for each base. The keys up and down choose the base, and q quits.
 *
 * The bar of a level is the share of its buckets that hold timers. A full bar means that timers are
 * due all around the clock face, not that there is no room: there is always room.
 */
#include <locale.h>
#include <ncurses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top.h"

#define BAR		40	/* where there is room for it */
#define WIDE		104	/* the list needs so many columns for all of its figures */
#define LIST_ROW	12	/* the first row of the list of bases */

static bool is_open;
static size_t chosen;		/* the chosen line of the list, from 1; 0 for the sums */
static size_t nr_lines;

void screen_open(void)
{
	setlocale(LC_ALL, "");
	if (!terminal_can(STDOUT_FILENO, "cup") || !newterm(NULL, stdout, stdin))
		error(1, 0, "this terminal cannot be drawn on; try --batch");
	is_open = true;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
}

void screen_close(void)
{
	if (is_open)
		endwin();
	is_open = false;
}

bool screen_key(void)
{
	int c;

	while ((c = getch()) != ERR) {
		if (c == 'q')
			return false;
		if ((c == KEY_DOWN || c == 'j') && chosen < nr_lines)
			chosen++;
		if ((c == KEY_UP || c == 'k') && chosen)
			chosen--;
	}
	return true;
}

/* Print a line, cut off at the edge of the screen: curses would continue in the next line. */
__attribute__((format(printf, 2, 3)))
static void put_line(int row, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mvaddnstr(row, 0, text, getmaxx(stdscr));
}

/* Print a number in at most five columns: 99999, 1234k. */
static const char *short_number(uint64_t n, char buf[32])
{
	const char *unit = "kMGTPE";
	double rest = (double)n / 1000;

	if (n < 100000) {
		snprintf(buf, 32, "%llu", (unsigned long long)n);
		return buf;
	}
	for (; rest >= 9999.5; unit++)
		rest /= 1000;
	snprintf(buf, 32, "%.0f%c", rest, *unit);
	return buf;
}

/* Rows 0 to 3: the sums over all bases, and the lateness. */
static void draw_sums(const struct sample *s, bool embedded)
{
	const uint64_t *rate = s->all.rate;
	char buf[4][32];

	put_line(0, "twheel top: %zu base%s %s, %llu timers pending", s->nr,
		 s->nr == 1 ? "" : "s", embedded ? "in this process, with a load" : "in the kernel",
		 (unsigned long long)s->all.count[PENDING]);
	put_line(1, "armed/s %llu  fired/s %llu  cancelled/s %llu  re-armed/s %llu",
		 (unsigned long long)rate[ADDED], (unsigned long long)rate[EXPIRED],
		 (unsigned long long)rate[CANCELED], (unsigned long long)rate[REARMED]);
	put_line(2, "runs/s %s  cascade moves/s %s", short_number(rate[RUNS], buf[0]),
		 short_number(rate[MOVES], buf[1]));
	if (!embedded)
		printw("  at most %s in a run  deferred/s %s",
		       short_number(s->all.count[WORST], buf[2]),
		       short_number(rate[DEFERRED], buf[3]));
	if (s->nr_late)
		put_line(3, "late by %s (half), %s (99 of 100), %s (all of %u probes)",
			 show_duration(s->late_ns[0], buf[0]), show_duration(s->late_ns[1], buf[1]),
			 show_duration(s->late_ns[2], buf[2]), s->nr_late);
}

/* How many columns a bar gets beside its figures. */
static uint64_t bar_width(void)
{
	int room = getmaxx(stdscr) - 48;

	return room > BAR ? BAR : room < 1 ? 1 : (uint64_t)room;
}

/*
 * Draw one level: which part of its buckets has timers, and how many timers there are. @b may be
 * the sum of @nr_bases bases.
 */
static void draw_face(const struct base *b, int level, size_t nr_bases)
{
	uint64_t all = (uint64_t)level_buckets[level] * nr_bases, width = bar_width();
	uint64_t part = all ? b->buckets[level] * width / all : 0;
	char tick[32];

	if (!part && b->buckets[level])
		part = 1;
	move(5 + level, 0);
	if (b->tick_ns)
		printw("%9s ", show_duration((int64_t)(b->tick_ns * level_ticks[level]), tick));
	else
		printw("%8llu tick%s", (unsigned long long)level_ticks[level], level ? "s" : "");
	move(5 + level, 15);
	addch('[');
	attron(A_REVERSE);
	for (uint64_t i = 0; i < part; i++)
		addch('#');
	attroff(A_REVERSE);
	for (uint64_t i = part; i < width; i++)
		addch('.');
	printw("] %9llu in %llu of %llu", (unsigned long long)b->timers[level],
	       (unsigned long long)b->buckets[level], (unsigned long long)all);
}

/* Rows 4 to 10: the levels of the chosen base, or of all. */
static void draw_faces(const struct sample *s)
{
	const struct base *b = chosen ? &s->bases[chosen - 1] : &s->all;

	if (chosen)
		put_line(4, "timers of %s %llu (%s), in buckets of", b->kind,
			 (unsigned long long)b->id, b->comm);
	else
		put_line(4, "timers of all, in buckets of");
	for (int level = 0; level < LEVELS; level++)
		draw_face(b, level, chosen ? 1 : s->nr);
	mvprintw(5 + LEVELS, 0, "beyond: %llu", (unsigned long long)b->timers[LEVELS]);
}

/* Draw the line of a base, with all digits. */
static void draw_base_wide(int row, const struct base *b, char mark)
{
	put_line(row, "%c%-8s %5llu %7llu %9llu %8llu %8llu %8llu %8llu %7llu %7llu %5llu %s",
		 mark, b->kind, (unsigned long long)b->id, (unsigned long long)b->pid,
		 (unsigned long long)b->count[PENDING], (unsigned long long)b->rate[ADDED],
		 (unsigned long long)b->rate[EXPIRED], (unsigned long long)b->rate[CANCELED],
		 (unsigned long long)b->rate[REARMED], (unsigned long long)b->rate[RUNS],
		 (unsigned long long)b->rate[MOVES], (unsigned long long)b->rate[DEFERRED],
		 b->comm);
}

/* Draw the line of a base in 80 columns, with shortened numbers. */
static void draw_base_narrow(int row, const struct base *b, char mark)
{
	char n[8][32];

	put_line(row, "%c%-8s %4llu %7llu %5s %5s %5s %5s %5s %5s %5s %5s %s", mark, b->kind,
		 (unsigned long long)b->id, (unsigned long long)b->pid,
		 short_number(b->count[PENDING], n[0]), short_number(b->rate[ADDED], n[1]),
		 short_number(b->rate[EXPIRED], n[2]), short_number(b->rate[CANCELED], n[3]),
		 short_number(b->rate[REARMED], n[4]), short_number(b->rate[RUNS], n[5]),
		 short_number(b->rate[MOVES], n[6]), short_number(b->rate[DEFERRED], n[7]),
		 b->comm);
}

/* Draw the head of the list. */
static void draw_head(int row, bool wide)
{
	if (wide)
		put_line(row, " %-8s %5s %7s %9s %8s %8s %8s %8s %7s %7s %5s %-12s", "KIND", "ID",
			 "PID", "PENDING", "ARMED/s", "FIRED/s", "CANCEL/s", "REARM/s", "RUNS/s",
			 "MOVES/s", "DEF/s", "COMMAND");
	else
		put_line(row, " %-8s %4s %7s %5s %5s %5s %5s %5s %5s %5s %5s %-9s", "KIND", "ID",
			 "PID", "PEND", "ARM/s", "FIR/s", "CAN/s", "REA/s", "RUN/s", "MOV/s",
			 "DEF/s", "COMMAND");
}

/* Draw as many lines of bases as fit, the chosen one among them. */
static void draw_list(const struct sample *s)
{
	int height = getmaxy(stdscr);
	size_t rows = height > LIST_ROW ? (size_t)(height - LIST_ROW) : 0;
	size_t first = chosen > rows ? chosen - rows : 0;
	bool wide = getmaxx(stdscr) >= WIDE;

	attron(A_REVERSE);
	draw_head(LIST_ROW - 1, wide);
	attroff(A_REVERSE);
	for (size_t i = first; i < s->nr && i < first + rows; i++) {
		bool is_chosen = i + 1 == chosen;

		if (is_chosen)
			attron(A_BOLD);
		(wide ? draw_base_wide : draw_base_narrow)(LIST_ROW + (int)(i - first),
							   &s->bases[i], is_chosen ? '>' : ' ');
		attroff(A_BOLD);
	}
}

void screen_show(const struct sample *s, bool embedded)
{
	nr_lines = s->nr;
	if (chosen > s->nr)
		chosen = s->nr;
	erase();
	draw_sums(s, embedded);
	draw_faces(s);
	draw_list(s);
	refresh();
}
