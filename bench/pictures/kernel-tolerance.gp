# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What an expiry costs if timers may be late by a share of their delay. The benchmark names the share
# in thousandths in the metric: expire-0 is exact, expire-125 has a tolerance of an eighth.
# Needs: icount tolerance-60000
HEIGHT = 430
load "style.gp"

set bmargin at screen 0.19
set lmargin 9
set rmargin 18
set key outside right center
set format x "%g %%"
set yrange [0:*]
set xlabel "tolerance, percent of the delay"
set title "expire, within a minute on an idle CPU: instructions a timer"
plot for [s in "twheel timer_list hrtimer"] DATA index series("icount", "tolerance-60000", s, "expire") \
	using ($1 / 10):2 with linespoints pointtype 7 pointsize 0.5 linewidth width(s) linecolor rgb colour(s) title s
