# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What the kernel's timers cost, each by itself, however many of them are pending.
# Needs: icount pending-60000, icount idle-60000
HEIGHT = 640
load "style.gp"

peers = "twheel timer_list hrtimer"
set logscale x
set format x "%.0f"
set yrange [0:*]
set xrange [800:*]
# Room for the key, above the lines.
set offsets 0, 0, graph 0.5, 0
set key top left
set multiplot layout 2,2 margins 0.08,0.95,0.13,0.93 spacing 0.09,0.15
set title "arm: instructions a timer"
plot for [s in peers] DATA index series("icount", "pending-60000", s, "add") using 1:2 \
	with linespoints pointtype 7 pointsize 0.5 linewidth width(s) linecolor rgb colour(s) title s
unset label 1
set offsets
unset key
set title "re-arm"
plot for [s in peers] DATA index series("icount", "pending-60000", s, "rearm") using 1:2 \
	with linespoints pointtype 7 pointsize 0.5 linewidth width(s) linecolor rgb colour(s)
set title "cancel"
set xlabel "timers pending"
plot for [s in peers] DATA index series("icount", "pending-60000", s, "cancel") using 1:2 \
	with linespoints pointtype 7 pointsize 0.5 linewidth width(s) linecolor rgb colour(s)
set title "expire, within a minute on an idle CPU"
set key top right
plot for [s in peers . " hrtimer-ms"] DATA index series("icount", "idle-60000", s, "expire") using 1:2 \
	with linespoints pointtype 7 pointsize 0.5 linewidth width(s) dashtype dashes(s) \
	linecolor rgb colour(s) title s eq "hrtimer-ms" ? s : ""
unset multiplot
