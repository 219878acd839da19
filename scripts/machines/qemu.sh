#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# qemu.sh KERNEL INITRD SECONDS LOGDIR: boot a test machine, see guest.sh. Its serial lines are
# the console on ttyS0, the result on ttyS1 and the report on ttyS2. KVM is never used: a
# /dev/kvm that exists may not work, and figures should not depend on it.
#
#	ARCH	x86_64, arm64 or s390x
#	MEM	in MiB
#	SMP	the number of CPUs
#	MODEL	of the processor
#	NODES	NUMA nodes, each of which has as much of the memory as the others: which CPUs each has, as
#		in "0-1 2-4"
#	APPEND	kernel parameters
#	DISK	a file, the image for /dev/vda. What the machine writes to it is forgotten
#	NVME	a file, the image for /dev/nvme0n1, which keeps what the machine writes
#	MONITOR	a character device of QEMU for its monitor. Its process id is in LOGDIR/pid
#	PLUGIN	FILE[,NAME=VALUE...], a plugin of QEMU, see bench/calls
#	ICOUNT	how many ns an instruction takes: 1, 2, 4, 8 ... There is one CPU then, and idle time
#		is skipped. Runs differ little, however busy the host is
. "$(dirname "$0")/../lib.sh"

kernel=$1 initrd=$2 limit=$3 logs=$4
append="console=ttyS0 cryptomgr.notests panic=-1 oops=panic panic_on_warn=1 softlockup_panic=1 hung_task_panic=1 watchdog_thresh=5
	sysctl.kernel.hung_task_timeout_secs=60 sysctl.kernel.panic_on_rcu_stall=1 ${APPEND:-}"

cpus=(-accel tcg -smp "${SMP:-2}")
if [ -n "${ICOUNT:-}" ]; then
	for ((shift = 0; 1 << shift < ICOUNT; shift++)); do :; done
	# Not -smp 2: it hangs.
	cpus=(-accel "tcg,thread=single" -smp 1 -icount "shift=$shift,sleep=off" -seed 1
		-rtc "base=2026-01-01T00:00:00,clock=vm")
	append+=" nokaslr norandmaps"
fi

console=(-serial "file:$logs/console")
lines=(-serial "file:$logs/result" -serial "file:$logs/report")
# shellcheck disable=SC2054 # the commas are QEMU's
case ${ARCH:-x86_64} in
x86_64)
	emulator=(qemu-system-x86_64 -machine q35 -cpu "${MODEL:-max}")
	# On a busy host interrupts come late. The kernel would take them for missing, and panic.
	append+=" no_timer_check" ;;
arm64)	# which has one serial line of its own; ttyS0 is idle
	emulator=(qemu-system-aarch64 -machine virt -cpu cortex-a57)
	append=${append/ttyS0/ttyAMA0}
	lines=(-device pci-serial
		-chardev "file,id=result,path=$logs/result" -device pci-serial,chardev=result
		-chardev "file,id=report,path=$logs/report" -device pci-serial,chardev=report) ;;
s390x)	# which has none, see selftest/qemu/init; its own console loses what it says last
	emulator=(qemu-system-s390x -machine s390-ccw-virtio)
	append=${append/ttyS0/hvc0}
	console=(-serial "file:$logs/early")
	lines=(-device virtio-serial-ccw
		-chardev "file,id=console,path=$logs/console" -device virtconsole,chardev=console
		-chardev "file,id=result,path=$logs/result" -device virtserialport,chardev=result,nr=1
		-chardev "file,id=report,path=$logs/report" -device virtserialport,chardev=report,nr=2) ;;
*)
	die "no such ARCH: $ARCH" ;;
esac

plugin=()
[ -z "${PLUGIN:-}" ] || plugin=(-plugin "$PLUGIN")
disk=()
[ -z "${DISK:-}" ] || disk=(-drive "file=$DISK,format=raw,if=virtio,snapshot=on")
# shellcheck disable=SC2054 # as above
[ -z "${NVME:-}" ] || disk+=(-drive "file=$NVME,format=raw,if=none,id=nvme" -device nvme,drive=nvme,serial=twheel)

# shellcheck disable=SC2206 # words
nodes=(${NODES:-}) numa=()
# CPUs of one socket are on one node.
[ -z "${NODES:-}" ] || numa=(-smp "$SMP,sockets=$SMP")
for node in "${!nodes[@]}"; do
	numa+=(-object "memory-backend-ram,id=node$node,size=$((${MEM:-1024} / ${#nodes[@]}))M"
		-numa "node,nodeid=$node,cpus=${nodes[node]},memdev=node$node")
done

exec "$top/scripts/machines/guest.sh" "$limit" "$logs" "${emulator[@]}" \
	-nodefaults -nographic -no-reboot "${cpus[@]}" -m "${MEM:-1024}" "${numa[@]}" "${disk[@]}" "${plugin[@]}" \
	-monitor "${MONITOR:-none}" -pidfile "$logs/pid" \
	"${console[@]}" "${lines[@]}" \
	-kernel "$kernel" -initrd "$initrd" -append "${append//[$'\n\t']/ }"
