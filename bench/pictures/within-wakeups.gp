# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# How often a process with 10 000 idle timeouts of 30 s is woken, by how late they may be. Those that are
# exact are at 10 ms, as an axis with a logarithm has no 0.
# Needs: native often-1
HEIGHT = 430
load "style.gp"

set logscale xy
set xrange [8:4000]
set yrange [0.05:200]
set xtics ("exact" 10, "30 ms" 30, "100 ms" 100, "300 ms" 300, "1 s" 1000, "3 s" 3000)
set bmargin at screen 0.19
set lmargin 9
set rmargin 30
set key outside right center
set xlabel "tolerance"
set title "wake-ups a second, 10 000 timeouts of 30 s that are put off all the time"
fires(l) = l eq "often" ? "one of seven fires" : l eq "seldom" ? "one of 400 fires" : "none fires"
hue(l) = l eq "often" ? 0xe8590c : l eq "seldom" ? 0x1c7ed6 : 0x2f9e44
plot for [l in "often seldom never"] DATA index series("native", l . "-1", "all", "wake-ups") \
	using ($1 < 10 ? 10 : $1):2 with linespoints pointtype 7 pointsize 0.5 linewidth 2.5 \
	linecolor rgb hue(l) title fires(l)
