#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# qemu.sh KERNEL INITRD SECONDS LOGDIR: boot a test machine, show its report while
# it runs, and end with the verdict as exit status.
#
# Three serial lines, each a file in LOGDIR: console (ttyS0) is the kernel's alone,
# so that no message breaks into a line of a test; result (ttyS1) is the verdict;
# report (ttyS2) is what the tests print.
#
# MEM (MiB), SMP and APPEND (kernel parameters) can be set. Never with KVM: a
# /dev/kvm that exists need not work, and what is measured should not depend on it.
. "$(dirname "$0")/lib.sh"

kernel=$1 initrd=$2 limit=$3 logs=$4
append="console=ttyS0 panic=-1 oops=panic panic_on_warn=1 softlockup_panic=1 hung_task_panic=1 watchdog_thresh=5
	sysctl.kernel.hung_task_timeout_secs=60 sysctl.kernel.panic_on_rcu_stall=1 ${APPEND:-}"

mkdir -p "$logs"
for file in console result report; do
	: >"$logs/$file"
done
# timeout passes the signals on; the first of them comes if this shell dies.
setpriv --pdeathsig TERM timeout -k 5 "$limit" qemu-system-x86_64 \
	-nodefaults -nographic -no-reboot -machine q35 -cpu max -accel tcg \
	-smp "${SMP:-2}" -m "${MEM:-1024}" -monitor none \
	-serial "file:$logs/console" -serial "file:$logs/result" -serial "file:$logs/report" \
	-kernel "$kernel" -initrd "$initrd" -append "${append//[$'\n\t']/ }" </dev/null >"$logs/qemu" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM

# In the background, for a trap would wait for what is in the foreground.
tail -n +1 -s 0.2 --pid="$pid" -f "$logs/report" &
status=0
wait "$pid" || status=$?
trap - EXIT
wait

"$top/scripts/verdict.sh" "$logs/console" "$logs/result" "$status" >"$logs/verdict" || {
	sed 's/^/# /' "$logs/verdict" "$logs/qemu"
	echo "# the end of the console:"
	tail -n 20 "$logs/console" | tr -d '\r\0' | sed 's/^/#   /'
	echo "# logs: $logs"
	exit 1
}
