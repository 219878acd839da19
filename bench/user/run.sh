#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: /dev/twheel beside the other timers that a process can have; `make bench-user`.
# main.c says what is measured.
#
#	NMAX=n	the most timers, a power of ten. Unless told otherwise 1000000 where instructions
#		are counted, and 100000 where time is measured: a million timers take minutes
#	REPS=n	repetitions, of times only; 5, and 3 of what takes long
#	DOC=f	write the report there too
#	JUST=w	one workload, as "dense", or one of one subject, as "dense twheel": see main.c
#	ONLY=p	some parts: icount, tcg, multishot. The rest is that of the last run
#
#	icount	Debian's kernel in QEMU -icount: instructions, nearly the same in every run
#	multishot	the same with Linux 6.12, whose io_uring has periodic timeouts: those alone
#	tcg	the same machine in real time: ns, on a host that has nothing else to do
#
# The processor is one without fast string operations. QEMU counts every byte that such a one
# copies as an instruction.
#
# The figures go to build/bench-user.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
cd "$top"

out=build/bench-user tsv=build/bench-user.tsv
reps=${REPS:-5}

environment() {
	local release

	release=$(kernel_release)
	[ "$part" != multishot ] || release=${newer##*/}
	row command "make bench-user${NMAX:+ NMAX=$NMAX}${REPS:+ REPS=$REPS}${JUST:+ JUST=\"$JUST\"}${ONLY:+ ONLY=\"$ONLY\"}"
	row kernel "$release, one CPU (qemu64), in $(qemu-system-x86_64 --version | head -n 1)"
	row libraries "liburing $(package_version liburing-dev), libevent $(package_version libevent-dev)"
	host "one CPU"
}

# machine MODULES UNIT NMAX REPS [WORKLOAD [SUBJECT]]: with the modules of a directory. A timerfd and what is
# left free are the most that is needed.
# To remove 10^5 timeouts, io_uring walks a list for each, without a reschedule: on a slow host the watchdog would end the
# machine.
machine() {
	local modules=$1

	shift
	echo "mode=bench tests=bench-user,$(tr ' ' , <<<"$*")" >"$out/$part.run"
	APPEND=nosoftlockup MODEL=qemu64 SMP=1 MEM=$((768 + $2 * 1200 / 1000000)) scripts/machines/boot.sh "bench-user-$part" 3600 \
		"$out/$part.run" "$modules"/twheel.ko "$modules"/twheel_chardev.ko $out/bench-user | figures "$part"
}

# shellcheck disable=SC2086 # words
icount() { ICOUNT=1 machine . instructions "${NMAX:-1000000}" 1 ${JUST:-}; }
# shellcheck disable=SC2086 # words
tcg() { machine . ns "${NMAX:-100000}" "$reps" ${JUST:-}; }

multishot() {
	modules_for "$newer/build" "$top/$out/newer"
	KERNEL=$newer/vmlinuz ICOUNT=1 machine $out/newer instructions "${NMAX:-10000}" 1 periodic
}

newer=
! wanted multishot || newer=$(scripts/kernels/kernel-debian.sh amd64 '6\.12\.[0-9]+\+deb12-cloud-amd64')
scripts/deps.sh build rig bench-user
KDIR=$(scripts/kdir.sh)
export KDIR
# shellcheck disable=SC2119 # all of them
modules
quiet make -C bench/user
measure $out $tsv icount tcg multishot
report bench/user/life.awk bench/user/report.awk $tsv
