# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What a timer's whole life costs a process: created, armed, fired, collected and closed.
# Needs: icount dense
HEIGHT = 430
load "style.gp"

set logscale xy
set format x "%.0f"
set format y "%.0f"
set xrange [800:*]
set yrange [300:*]
set bmargin at screen 0.19
set lmargin 9
set rmargin 26
set key outside right center
set xlabel "timers"
set title "instructions a life: created, armed, fired (100 in each ms), collected, closed"
plot for [s in "twheel timerfd timerfd-ms posix posix-ms io_uring io_uring-ms libevent libevent-common"] \
	DATA index series("icount", "dense", s, "life") using 1:2 with linespoints pointtype 7 pointsize 0.5 \
	linewidth width(s) dashtype dashes(s) linecolor rgb colour(s) title s
