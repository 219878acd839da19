# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# How long the longest pass of a softirq was while n timers expired within a second: the time that
# nothing else could run on that CPU.
# Needs: icount busy-1000
HEIGHT = 430
load "style.gp"

set logscale xy
set format x "%.0f"
set format y "%.0f µs"
set key top left
set lmargin 11
set rmargin 5
set bmargin at screen 0.19
set xrange [800:*]
set xlabel "timers that expire within one second"
set title "the longest time that a CPU was in one softirq (an instruction taken as a ns)"
plot for [s in "twheel timer_list hrtimer hrtimer-ms"] DATA index series("icount", "busy-1000", s, "longest-pass") \
	using 1:($2 / 1000) with linespoints pointtype 7 pointsize 0.5 linewidth width(s) dashtype dashes(s) \
	linecolor rgb colour(s) title s
