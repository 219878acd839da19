# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# How late each of n timers was, whose delays are uniform up to a minute.
# Needs: icount late-60000
HEIGHT = 430
load "style.gp"

set logscale x 2
set xrange [0.7:6e6]
set xtics ("1 µs" 1, "8 µs" 8, "64 µs" 64, "½ ms" 512, "4 ms" 4096, "33 ms" 32768, "¼ s" 262144, "2 s" 2097152)
set yrange [0:100]
set format y "%.0f %%"
set bmargin at screen 0.19
set lmargin 9
set key top center
set xlabel "late by at most this, and by more than half of it"
set title "how late 100 000 timers of up to a minute are"
set style fill solid 0.9 noborder
plot for [s in "hrtimer twheel timer_list"] DATA index series("icount", "late-60000", s, "late") \
	using 1:($2 / 1000):($1 * 0.5) with boxes linecolor rgb colour(s) title s
