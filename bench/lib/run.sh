#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: libtwheel's embedded backend beside libevent and libuv, and the worst that a call of
# the scheduler takes; `make bench-lib`. sched.c and single.c say what is measured.
#
#	NMAX=n	the most timers, a power of ten; 1000000
#	REPS=n	repetitions of single operations, by default 15. From 10^5 timers on there are a
#		third as many, and for the scheduler, too
#	BASE=c	the scheduler as it was in that commit, too
#	DOC=f	write the report there too
#	ONLY=p	one part, of: sched single callgrind. The rest is that of the last run
#
# The figures go to build/bench-lib.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
# shellcheck source=bench/phases.sh
. "$top/bench/phases.sh"
cd "$top"

nmax=${NMAX:-1000000} reps=${REPS:-15} base=${BASE:-}
out=build/bench-lib tsv=build/bench-lib.tsv

environment() {
	row command "make bench-lib NMAX=$nmax REPS=$reps${base:+ BASE=$base}"
	row kernel "$(uname -sr)"
	row libraries "libevent $(package_version libevent-dev), libuv $(package_version libuv1-dev)"
	host "one CPU at a time"
}

# The library of commit BASE, and sched.c with it.
build_base() {
	rm -rf $out/base
	mkdir -p $out/base/src
	git -c safe.directory='*' archive "$base" lib include 'wheel*.h' | tar x -C $out/base/src
	quiet make -C $out/base/src/lib O="$PWD/$out/base" "$PWD/$out/base/libtwheel.a"
	quiet make -C bench/lib O="$PWD/$out/base" FROM="$PWD/$out/base/src" "$PWD/$out/base/sched"
}

sched() {
	local third=$(((reps + 2) / 3)) n

	for ((n = 1000; n <= nmax; n *= 1000)); do
		[ -z "$base" ] || $out/base/sched "$base" "$n" "$third"
		$out/sched now "$n" "$third"
	done
}

single() { $out/single "$nmax" "$reps"; }

# instructions N SUBJECT: of each operation, by callgrind. cancel is done twice.
instructions() {
	phases $out $out/single count "$1" "$2" | awk -v n="$1" -v subject="$2" -v OFS='\t' '{
		print "callgrind", "1..60000", n, subject, $1, "instructions",
			sprintf("%.1f", $2 / n / ($1 == "cancel" ? 2 : 1)) }'
}

callgrind() {
	local n subject

	for ((n = 1000; n <= nmax && n <= 100000; n *= 10)); do
		for subject in twheel twheel-one twheel-at libevent libevent-loop libuv; do
			note "counting instructions, $subject, n = $n"
			instructions "$n" "$subject"
		done
	done
}

scripts/deps.sh bench-lib
quiet make -C lib O="$PWD/$out" "$PWD/$out/libtwheel.a"
quiet make -C bench/lib O="$PWD/$out"
[ -z "$base" ] || build_base
measure $out $tsv sched single callgrind
report bench/lib/report.awk $tsv
