#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: what operations of many CPUs at once cost beside timer_list and hrtimer, and how long they
# hold locks, in instructions; `make bench-cpus`. bench/kernel/twheel_crowd.c says which operations,
# locks.c how they are counted.
#
#	CPUS=...	how many CPUs the machines have (1 2 4 8)
#	DOC=f		write the report there too
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
cd "$top"

out=build/cpus
: "${CPUS:=1 2 4 8}"
flags=(-O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror)

# machine NAME SMP RUN FILE...: what it printed goes to $out/NAME
machine() {
	local name=$1 smp=$2 run=$3

	shift 3
	echo "mode=bench $run" >"$out/$name.run"
	SMP=$smp APPEND=nokaslr scripts/machines/boot.sh "bench-cpus-$name" 1800 "$out/$name.run" \
		twheel.ko twheel_chardev.ko "$@" >"$out/$name" || { tail "$out/$name"; exit 1; }
}

scripts/deps.sh build rig
KDIR=$(scripts/kdir.sh)
export KDIR
modules CONFIG_TWHEEL_SELFTEST=m
mkdir -p $out
gcc "${flags[@]}" -shared -fPIC -fvisibility=hidden -o $out/locks.so bench/cpus/locks.c
machine symbols 1 tests=symbols.sh bench/cpus/symbols.sh
places=$(grep -E '^(lock|unlock|spin)=' $out/symbols | paste -sd ,)
for n in $CPUS; do
	PLUGIN="$top/$out/locks.so,out=$top/$out/counts-$n,$places" \
		machine "crowd-$n" "$n" kmods=twheel_crowd.ko bench/kernel/twheel_crowd.ko
	awk -v cpus="$n" '
		NR == FNR { if ($1 == "part") part[n++] = $2 "\t" $3 "\t" $4 "\t" $5; next }
		$1 in part { print cpus "\t" part[$1] "\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 }' \
		FS='\t' "$out/crowd-$n" FS=' ' "$out/counts-$n"
done >$out/figures
{
	echo "# More than two CPUs"
	echo
	echo "Written by \`bench/cpus/report.awk\`, not by hand. \`bench/kernel/twheel_crowd.c\` says which operations."
	echo
	echo "* command: make bench-cpus"
	echo "* kernel: $(kernel_release), in $(qemu-system-x86_64 --version | head -n 1)"
	echo "* commit: $(source_id), $(date -u +%Y-%m-%d)"
	awk -F '\t' -f bench/cpus/report.awk $out/figures
} >$out/report
cat $out/report
[ -z "${DOC:-}" ] || document "$DOC" <$out/report
