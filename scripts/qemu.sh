#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# qemu.sh KERNEL INITRD SECONDS LOGDIR: boot a test machine, see guest.sh. Its lines
# are serial ones: console is ttyS0, result ttyS1, report ttyS2.
#
# MEM (MiB), SMP, MODEL (of the processor) and APPEND (kernel parameters) can be set. Never with KVM: a
# /dev/kvm that exists need not work, and what is measured should not depend on it.
# ICOUNT=1: one CPU, on which a ns is an instruction, and time in which it is idle is
# skipped. Every run is the same, whatever else the host does.
. "$(dirname "$0")/lib.sh"

kernel=$1 initrd=$2 limit=$3 logs=$4
append="console=ttyS0 panic=-1 oops=panic panic_on_warn=1 softlockup_panic=1 hung_task_panic=1 watchdog_thresh=5
	sysctl.kernel.hung_task_timeout_secs=60 sysctl.kernel.panic_on_rcu_stall=1 ${APPEND:-}"

cpus=(-accel tcg -smp "${SMP:-2}")
if [ -n "${ICOUNT:-}" ]; then
	# Not -smp 2: it hangs.
	cpus=(-accel "tcg,thread=single" -smp 1 -icount "shift=0,sleep=off" -seed 1
		-rtc "base=2026-01-01T00:00:00,clock=vm")
	append+=" nokaslr norandmaps"
fi

exec "$top/scripts/guest.sh" "$limit" "$logs" qemu-system-x86_64 \
	-nodefaults -nographic -no-reboot -machine q35 -cpu "${MODEL:-max}" "${cpus[@]}" -m "${MEM:-1024}" -monitor none \
	-serial "file:$logs/console" -serial "file:$logs/result" -serial "file:$logs/report" \
	-kernel "$kernel" -initrd "$initrd" -append "${append//[$'\n\t']/ }"
