#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# demo.sh: a million timers on /dev/twheel in a virtual machine. WORKLOAD=FILE
# takes them from a text file instead; ARGS= are more options for twheel-demo.
. "$(dirname "$0")/../lib.sh"
cd "$top"

files=(twheel.ko twheel_chardev.ko build/tools/twheel-demo)
args=${ARGS:-}
if [ -n "${WORKLOAD:-}" ]; then
	[ -r "$WORKLOAD" ] || die "cannot read WORKLOAD=$WORKLOAD"
	mkdir -p build/qemu
	cp "$WORKLOAD" build/qemu/workload
	files+=(build/qemu/workload)
	args+=' -w /twheel/workload'
fi

scripts/deps.sh build rig
KDIR=$(scripts/kdir.sh)
export KDIR
modules
quiet make tools
mkdir -p build/qemu
printf "mode=demo\nargs='%s'\n" "$args" >build/qemu/demo.run
# A terminal shows the progress in one line; a log gets a line for each.
if [ -t 1 ]; then filter=(cat); else filter=(sed -u 's/\x1b\[K//g; s/\r/\n/g'); fi
scripts/machines/boot.sh demo 600 build/qemu/demo.run "${files[@]}" | "${filter[@]}"
