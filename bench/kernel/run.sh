#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: twheel, timer_list and hrtimer beside each other in two kernels; `make
# bench-kernel`. twheel_bench.c says what is measured.
#
#	NMAX=n	the most timers, a power of ten; 1000000 unless told otherwise
#	DOC=f	write the report there too
#	ONLY=p	some parts, or all of a rig: icount, uml. The rest is that of the last run
#
#	part		rig
#	icount-ops	Debian's kernel in QEMU -icount: instructions, nearly the same in every run
#	icount-expire	the same
#	icount-ahead	the same: timers that are armed a few seconds and a minute ahead, and thin
#			ones on a busy CPU
#	icount-hour	the same, with twheel.ko as it is, and with one that cascades whole
#			buckets: WHEEL_BIG is a size that no bucket reaches
#	icount-late	the same: how late each of 100 000 timers of up to a minute is
#	icount-hold	the same: twheel_hold.c, the longest lock holds
#	icount-irqs	the same: irqs_off.c, how long interrupts are off in each call of the device
#	uml-ops		user-mode Linux, native code: ns, on a machine that has nothing else to do, in
#			five boots
#	uml-expire	the same
#	uml-minute	the same, in three boots: the range of 60 000 ms, which is real time, from 10^6 on
#	uml-idle	the same on an idle CPU, from 10^5 on
#	uml-exact	user-mode Linux in virtual time: selftest/kmod/twheel_century.c
#
# The figures go to build/bench-kernel.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
cd "$top"

export NMAX=${NMAX:-1000000}
out=build/bench-kernel tsv=build/bench-kernel.tsv
parts=(icount-ops icount-expire icount-ahead icount-hour icount-late icount-hold icount-irqs
	uml-ops uml-expire uml-minute uml-idle uml-exact)
ranges="60000 1000000"
MEM=$((384 + NMAX * 88 / 1000000))
export MEM

hz() { sed -n 's/^CONFIG_HZ=//p' "$1/.config"; }

environment() {
	row command "make bench-kernel NMAX=$NMAX${ONLY:+ ONLY=\"$ONLY\"}"
	case $part in
	icount*) row kernel "$(kernel_release), HZ=$(hz "$KDIR"), in $(qemu-system-x86_64 --version | head -n 1)" ;;
	uml*)	row kernel "$(basename "$uml" | cut -d - -f 2,3), HZ=$(hz "$uml"), user-mode on $(uname -sr)" ;;
	esac
	host "one CPU"
}

sizes() { for ((n = 1000; n <= $1; n *= 10)); do echo "$n"; done; }

# How often a run of so many timers is worth repeating in a boot.
rounds() { echo $(($1 < 100000 ? 11 : $1 < 1000000 ? 3 : 1)); }

# built NAME: the modules of a machine, once in each run
declare -A is_built
built() {
	[ -z "${is_built[$1]:-}" ] || return 0
	case $1 in
	icount)	modules_for "$KDIR" "$top/$out/icount" ;;
	whole)	modules_for "$KDIR" "$top/$out/whole" KCFLAGS=-DWHEEL_BIG=0x40000000 ;;
	uml)	modules_for "$uml" "$top/$out/uml" ARCH=um SUBARCH=x86_64 ;;
	esac
	is_built[$1]=1
}

# machine RIG MODULES JOB...: boot it, with the modules in directory MODULES, and run PROGRAM if
# there is one.
machine() {
	local rig=$1 dir=$2 name=$part-${2##*/} boot=(scripts/machines/uml.sh)
	local files=("$dir"/{twheel,twheel_chardev,bench/kernel/twheel_{bench,hold,probe}}.ko ${PROGRAM:+"$PROGRAM"})

	shift 2
	printf "mode=bench tests='%s' kmods='%s'\n" "$(basename "${PROGRAM:-}")" "$*" >"$out/$name.run"
	[ "$rig" != icount ] || boot=(env ICOUNT=1 scripts/machines/boot.sh)
	[ "$part" != uml-exact ] || files+=("$dir/selftest/kmod/twheel_century.ko")
	"${boot[@]}" "bench-$name" 3600 "$out/$name.run" "${files[@]}"
}

# job WORD,...: a load of the module
job() { local IFS=,; echo "twheel_bench.ko,$*"; }

icount() {
	built icount
	machine icount $out/icount "$@" | figures icount
}
count() { job unit=instructions rounds=1 "$@"; }

icount-ops() {
	local jobs n range

	jobs=$(count run=hot)
	for range in $ranges; do
		for n in $(sizes "$NMAX"); do
			jobs+=" $(count run=pending range="$range" n="$n")"
		done
	done
	icount "$jobs"
}

icount-expire() {
	local jobs='' n most=$((NMAX < 1000000 ? NMAX : 1000000))

	for n in $(sizes "$most"); do
		jobs+=" $(count run=busy range=1000 n="$n")"
		jobs+=" $(count run=idle range=60000 n="$n" hard=0)"
		jobs+=" $(count run=idle range=60000 ahead=60000 n="$n" hard=0)"
		# Interrupts take their time here, and a million would be nothing new.
		[ "$n" -ge 1000000 ] || jobs+=" $(count run=idle range=1000000 n="$n" hard=0)"
	done
	icount "$jobs"
}

# Level 2 has what is due 7.2 s ahead, or later. A busy CPU runs all the time that timers are ahead.
icount-ahead() {
	local jobs='' n most=$((NMAX < 1000000 ? NMAX : 1000000))

	for n in $(sizes "$most"); do
		jobs+=" $(count run=idle range=1000 n="$n" hard=0)"
		jobs+=" $(count run=idle range=1000 ahead=60000 n="$n" hard=0)"
		jobs+=" $(count run=busy range=1000 ahead=8000 n="$n" hard=0)"
		jobs+=" $(count run=busy range=10000 n="$n" hard=$((n < 100000)))"
	done
	icount "$jobs"
}

icount-hour() {
	icount "$(count run=hour n=1000000)"
	built whole
	machine icount $out/whole "$(count run=hour n=1000000 name=whole-bucket)" | figures icount
}

icount-late() { icount "$(count run=late range=60000 n=100000)"; }

icount-hold() {
	built icount
	machine icount $out/icount twheel_hold.ko | figures icount
}

icount-irqs() {
	built icount
	quiet gcc -O2 -Wall -Wextra -Werror -Iinclude/uapi -static -o $out/irqs_off bench/kernel/irqs_off.c
	PROGRAM=$out/irqs_off machine icount $out/icount | figures icount
}

# uml BOOTS JOB...: Where memory lies differs from boot to boot, and with it what an operation takes: by more than
# from round to round. So each boot counts as one repetition.
uml() {
	local boots=$1 boot

	shift
	built uml
	for ((boot = 0; boot < boots; boot++)); do
		machine uml $out/uml "$@"
	done | figures uml | medians
}

uml-ops() {
	local jobs n range

	jobs=$(job run=hot rounds=11)
	for range in $ranges; do
		for n in $(sizes "$NMAX"); do
			jobs+=" $(job run=pending range="$range" n="$n" rounds="$(rounds "$n")")"
		done
	done
	uml 5 "$jobs"
}

uml-expire() {
	local jobs='' n

	for n in $(sizes $((NMAX < 1000000 ? NMAX : 1000000))); do
		jobs+=" $(job run=busy range=1000 n="$n" rounds=3 hard=0)"
	done
	uml 5 "$jobs"
}

# minutes RUN LEAST: a minute for each size from LEAST on
minutes() {
	local jobs='' n

	for n in $(sizes "$NMAX"); do
		[ "$n" -lt "$2" ] || jobs+=" $(job run="$1" range=60000 n="$n" rounds=1 hard=0)"
	done
	[ -z "$jobs" ] || uml 3 "$jobs"
}

uml-minute() { minutes busy 1000000; }

uml-idle() { minutes idle 100000; }

# What the test says in words.
uml-exact() {
	built uml
	APPEND=time-travel=inf-cpu machine uml $out/uml twheel_century.ko 2>&1 | tee "$out/exact.log" >&2
	awk -v OFS='\t' '
		function row(n, subject, metric, unit, value) {
			print "uml", "exact", n, subject, metric, unit, value
		}
		/expiries, / {
			split($0, w, /[^0-9]+/)
		}
		/of them are (early|late)/ {
			row(w[3], "twheel", $NF "-in-" w[2] "-days", "timers", $(NF - 4))
		}
		/timer_list, HZ/ {
			split($0, w, /[^0-9.]+/)
			row(w[3], "timer_list", "mean-late", "ms", w[5])
			row(w[3], "timer_list", "most-late", "ms", w[6])
			row(w[3], "timer_list", "most-late-share", "%", w[7])
		}' "$out/exact.log"
}

scripts/deps.sh build rig uml
KDIR=$(scripts/kdir.sh)
export KDIR UML=uml-bench
uml=
for part in "${parts[@]}"; do
	[[ $part != uml-* ]] || ! wanted "$part" || uml=$(scripts/kernels/own-kernel.sh $UML)
done
measure $out $tsv "${parts[@]}"
report bench/kernel/report.awk $tsv
