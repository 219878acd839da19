# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What the pictures share. draw.sh sets DATA, a file that data.awk has written, and NOTE, which says
# what was measured, and when. The picture sets HEIGHT before it loads this.
#
# No background is drawn, so a picture takes the colour of its page. Each colour can be read on
# white and on black: the contrast of the grey of text and axes is more than 4 to either.
set encoding utf8
set terminal svg size 900,HEIGHT dynamic noenhanced font "sans-serif,13"

GREY = 0x767676
colour(s) = s eq "twheel" ? 0xe8590c : \
	s eq "timer_list" || s[1:7] eq "timerfd" ? 0x1c7ed6 : \
	s[1:7] eq "hrtimer" || s[1:8] eq "io_uring" ? 0x2f9e44 : \
	s[1:5] eq "posix" ? 0xae3ec9 : 0x9c7a00
# The same colour, but broken: deadlines of whole ms, or delays that are rounded.
dashes(s) = strstrt(s, "-ms") || strstrt(s, "-common") ? 2 : 1
width(s) = s eq "twheel" ? 3.5 : 1.8

series(rig, workload, s, metric) = rig . " " . workload . " " . s . " " . metric

set border 3 linecolor rgb GREY
set tics nomirror textcolor rgb GREY
set title textcolor rgb GREY
set xlabel textcolor rgb GREY
set ylabel textcolor rgb GREY
set key textcolor rgb GREY
set grid ytics linecolor rgb GREY linewidth 0.3
set label 1 NOTE at screen 0.5, screen 0.03 center textcolor rgb GREY font "sans-serif,10"
