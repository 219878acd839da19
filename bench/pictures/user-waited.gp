# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# The same as user-cost, if the process sleeps until the timer fires.
# Needs: icount timeout
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
set title "instructions a life, if the process sleeps until the timer fires"
plot for [s in "twheel timerfd timerfd-ms posix posix-ms io_uring io_uring-ms libevent libevent-common"] \
	DATA index series("icount", "timeout", s, "life") using 1:2 with linespoints pointtype 7 pointsize 0.5 \
	linewidth width(s) dashtype dashes(s) linecolor rgb colour(s) title s
