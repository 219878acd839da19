#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: how often timers that may be late wake a process, beside exact ones; `make bench-within`.
# within.c says what is done. The time is simulated, so the figures are the same on each machine.
#
#	DOC=f	write the report there too
#
# The figures go to build/bench-within.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
cd "$top"

out=build/bench-within tsv=build/bench-within.tsv

environment() {
	row command "make bench-within"
	row kernel "no kernel takes part: a process, whose time is simulated"
	row commit "$(source_id), $(date -u +%Y-%m-%d)"
}

within() { $out/within | sed 's/^/native\t/'; }

scripts/deps.sh lib
quiet make -C lib O="$PWD/$out" "$PWD/$out/libtwheel.a"
quiet gcc -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I. -Ilib -Iinclude/uapi -Wl,--wrap=clock_gettime,--wrap=timerfd_settime \
	-o $out/within bench/within/within.c $out/libtwheel.a -lm
measure $out $tsv within
report bench/within/report.awk $tsv
