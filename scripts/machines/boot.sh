#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# boot.sh NAME SECONDS RUN FILE...: boot a machine in QEMU that has FILE... and does what RUN says,
# which selftest/qemu/init reads. Its kernel is the one whose headers the modules were built
# against, or KERNEL=. ARCHIVE= is more for the initramfs, see userland.sh. Logs are in
# build/qemu/NAME.
. "$(dirname "$0")/../lib.sh"

logs=$top/build/qemu/$1 limit=$2
shift 2
mkdir -p "$logs"
kernel=${KERNEL:-$("$top/scripts/kernels/kernel-image.sh" "$(kernel_release)")}
"$top/scripts/machines/initramfs.sh" "$logs/initramfs" "$@"
[ -z "${ARCHIVE:-}" ] || cat "$ARCHIVE" >>"$logs/initramfs"
for _ in 1 2 3; do
	status=0
	"$top/scripts/machines/qemu.sh" "$kernel" "$logs/initramfs" "$limit" "$logs" || status=$?
	[ "$status" = 75 ] || exit "$status"
	echo "# the kernel could not calibrate its timer, for which the host is too busy, or died of a fault of QEMU: once more"
done
die "no usable machine in three tries"
