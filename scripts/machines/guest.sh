#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# guest.sh SECONDS LOGDIR COMMAND...: run a test machine, show its report while it
# runs, and end with the verdict as exit status.
#
# COMMAND is the machine. It has three serial lines, each a file in LOGDIR. Only the kernel writes
# to "console", so that no message breaks into a line of a test. "result" is the
# verdict, "report" the output of the tests. What the emulator itself prints is in "host".
#
# SECONDS is what the machine may take on a host that does nothing else. A busy host gives it less
# of a CPU, which is not a fault of the machine. So guest.sh counts the emulator's CPU time: SECONDS
# for each of two CPUs. If a machine sleeps for ever, it ends after four times SECONDS.
#
# On a very busy host a kernel may fail to calibrate its timer. Then the timer has no high
# resolution, and the kernel may not even shut down. So guest.sh ends the machine at once, with
# status 75: the caller may try again. guest.sh does the same if the kernel dies of a fault of QEMU before
# init runs: a breakpoint where the memory has none, see README.md.
#
# When user-mode Linux has halted and has said so, a signal of its timer may still come. A kernel with lockdep
# takes the signal for an interrupt in an interrupt; a kernel without lockdep finds no task. Both abort; the
# second shows main(), to which the kernel has returned. By then the tests are over, so the exit status does
# not count, and everything else is judged.
#
# NEVER_RAN=WORDS: what to print, with the reason, if not even init has run in the machine. Nothing
# else is shown then: the host cannot run such a machine.
. "$(dirname "$0")/../lib.sh"

limit=$1 logs=$2
shift 2

mkdir -p "$logs"
for file in console result report verdict; do
	: >"$logs/$file"
done
# timeout passes the signals on; the first of them comes if this shell dies.
setpriv --pdeathsig TERM timeout -k 5 "$((4 * limit))" prlimit --cpu="$((2 * limit))" "$@" </dev/null >"$logs/host" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM

no_timer() { grep -aq 'APIC timer disabled due to verification failure' "$logs/console"; }

# The kernel marks the byte at which it would have gone on. Before that is the breakpoint, 0xcc.
no_breakpoint() {
	! grep -aq twheel-init "$logs/console" && grep -aq 'int3: 0000 \[#1\]' "$logs/console" &&
		! grep -aqE 'Code:.* cc <' "$logs/console"
}

halted_before() {
	[ "$status" = 134 ] && tail -n 1 "$logs/console" | grep -aq 'reboot: System halted' &&
		grep -aqE 'DEBUG_LOCKS_WARN_ON\(lockdep_hardirq_context\(\)\)|\[<[0-9a-f]+>\] \? main\+0x' "$logs/host"
}

while sleep 1 && kill -0 "$pid" 2>/dev/null; do
	! no_timer || kill "$pid"
done &

# It runs in the background, because a trap would wait for a process in the foreground.
tail -n +1 -s 0.2 --pid="$pid" -f "$logs/report" &
status=0
wait "$pid" 2>/dev/null || status=$?	# and not a word on what killed it
trap - EXIT
wait
! no_timer || exit 75
! no_breakpoint || exit 75
! halted_before || status=0

# Print what the kernel said when it gave up, or the emulator's last line.
reason() {
	{ grep -a -B 1 -m 1 'Kernel panic' "$logs/console" || grep . "$logs/host" | tail -n 1; } |
		sed -E 's/^\[[ .0-9]*\] *//' | tr -d '\r\0' | paste -sd ';'
}

if [ -n "${NEVER_RAN:-}" ] && ! grep -aq twheel-init "$logs/console"; then
	echo "verdict: $NEVER_RAN: $(reason)" >"$logs/verdict"
	echo "# $NEVER_RAN: $(reason); see $logs"
	exit 1
fi

"$top/scripts/machines/verdict.sh" "$logs/console" "$logs/result" "$status" >"$logs/verdict" || {
	sed 's/^/# /' "$logs/verdict" "$logs/host"
	echo "# the end of the console:"
	tail -n 20 "$logs/console" | tr -d '\r\0' | sed 's/^/#   /'
	echo "# logs: $logs"
	exit 1
}
