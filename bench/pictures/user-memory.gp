# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# The kernel's memory for each timer.
# Needs: icount dense
HEIGHT = 430
load "style.gp"

set logscale xy
set format x "%.0f"
set yrange [40:3000]
set ytics (64, 128, 256, 512, 1024, 2048)
set bmargin at screen 0.19
set lmargin 8
set xrange [800:*]
set xlabel "timers"
set title "memory of the kernel, bytes a timer, descriptors and rings included"
set rmargin 18
set key outside right center
plot for [s in "twheel timerfd posix io_uring"] DATA index series("icount", "dense", s, "memory") using 1:2 \
	with linespoints pointtype 7 pointsize 0.5 linewidth width(s) linecolor rgb colour(s) title s
