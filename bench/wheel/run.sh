#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: the wheel in user space beside others; `make bench-wheel`.
#
#	NMAX=n	the most timers, a power of ten; 1000000 unless told otherwise. DPDK, Netty and
#		callgrind get no more than a million, which tell as much
#	REPS=n	repetitions, at least 3, by default 5. Below 10^5 timers there are ten times as
#		many. From 10^6 timers on, all but our wheel, whole-bucket and BASE have one; and
#		with 10^7 timers those only have the first load
#	CPU=n	where to run; the last one
#	BASE=c	the wheel as it was in that commit, too
#	SMALL_PAGES=1	memory in pages of 4 KiB, and not in huge ones
#	DOC=f	write the report there too
#	ONLY=p	one part, of: wheel callgrind dpdk netty. The rest is that of the last run
#
# The figures go to build/bench-wheel.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
# shellcheck source=bench/phases.sh
. "$top/bench/phases.sh"
cd "$top"

export NMAX=${NMAX:-1000000} REPS=${REPS:-5} CPU=${CPU:-$(($(nproc) - 1))}
out=build/bench tsv=build/bench-wheel.tsv
base=${BASE:-}
peers_max=$((NMAX < 1000000 ? NMAX : 1000000))
parts=(wheel callgrind dpdk netty)
netty_jar=/usr/share/java/netty-common.jar

[ "$REPS" -ge 3 ] || die "REPS must be 3 at least"

# Does the memory of the timers lie in huge pages?
huge_pages() {
	if [ -n "${SMALL_PAGES:-}" ]; then
		echo "no"
	elif grep -qE '\[(always|madvise)\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then
		echo "yes, as in the kernel"
	else
		echo "no, the host has none"
	fi
}

environment() {
	row command "make bench-wheel NMAX=$NMAX REPS=$REPS${base:+ BASE=$base}${SMALL_PAGES:+ SMALL_PAGES=1}${ONLY:+ ONLY=\"$ONLY\"}"
	row kernel "$(uname -sr)"
	row "huge pages" "$(huge_pages)"
	[ -z "$base" ] || row base "$base"
	host "CPU $CPU"
}

missing() {
	note "$1 is left out: $2"
	row "no $1" "$2"
}

dpdk() {
	if [ ! -x $out/dpdk ]; then
		missing DPDK "libdpdk-dev is not installed, and could not be"
	else
		$out/dpdk "$CPU" "$peers_max" "$REPS" || missing DPDK "its program failed"
	fi
}

netty() {
	if [ ! -e $netty_jar ] || ! command -v java >/dev/null; then
		missing Netty "libnetty-java and default-jdk-headless are not installed, and could not be"
	else
		java -Xmx8g -cp $netty_jar bench/wheel/NettyWheel.java "$peers_max" "$REPS" ||
			missing Netty "its program failed"
	fi
}

# instructions LOAD N: of each operation of the wheel, by callgrind. add is done twice.
instructions() {
	phases $out $out/bench count "$2" "$1" | awk -v load="$1" -v n="$2" -v OFS='\t' '{
		print "callgrind", load, n, "wheel", $1, "instructions",
			sprintf("%.2f", $2 / n / ($1 == "add" ? 2 : 1)) }'
}

wheel() { taskset -c "$CPU" $out/bench; }

callgrind() {
	local load n

	for load in 1..60000 1..1000000 60000..120000; do
		for ((n = 1000; n <= peers_max; n *= 10)); do
			note "counting instructions, $load, n = $n"
			instructions "$load" "$n"
		done
	done
}

# All did the same work, or none of it counts.
same_work() {
	awk -F '\t' '
		$5 == "checksum" {
			key = $2 " n=" $3
			if (!(key in sum))
				sum[key] = $7
			else if (sum[key] != $7) {
				print "different work: " key ", " $4 > "/dev/stderr"
				bad = 1
			}
		}
		END { exit bad }' "$1"
}

# The wheel of commit BASE, if any; main.c knows of it.
fetch_base() {
	rm -rf $out/{base,base.o,main.o,bench}
	[ -n "$base" ] || return 0
	mkdir -p $out/base
	git -c safe.directory='*' archive "$base" 'wheel*.h' | tar x -C $out/base
}

scripts/deps.sh bench
scripts/deps.sh bench-peers || note "some peers could not be installed"
fetch_base
quiet make -C bench/wheel BASE="$base"
measure $out $tsv "${parts[@]}"
same_work $tsv
report bench/wheel/report.awk $tsv
