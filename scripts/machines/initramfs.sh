#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# initramfs.sh OUT RUN FILE...: make an initramfs of busybox, selftest/qemu/init, RUN as
# /etc/twheel-run (see init) and FILE... in /twheel. The same files give the same
# bytes. It is not compressed: an emulated machine takes longer to unpack a file than to copy it.
# BUSYBOX= is a busybox of another architecture, of the same version.
. "$(dirname "$0")/../lib.sh"

out=$1 run=$2
shift 2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

chmod 755 "$root" # for tests that are not root
mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp,twheel}
install -m 755 "${BUSYBOX:-/bin/busybox}" "$root/bin/busybox"
install -m 755 "$top/selftest/qemu/init" "$root/init"
install -m 644 "$run" "$root/etc/twheel-run"
install -m 644 "$top/scripts/tap.awk" "$root/etc/tap.awk"
install -m 644 "$top/scripts/skips.expected" "$root/etc/skips"
install -m 644 "$top/scripts/points.expected" "$root/etc/points"
for applet in $(/bin/busybox --list); do
	[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
[ $# = 0 ] || install -m 755 "$@" "$root/twheel"
# Strip the programs: the machine has no debugger. Scripts have nothing to strip, and programs for
# other processors stay as they are.
strip -g "$root"/twheel/* 2>/dev/null || :
find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . | LC_ALL=C sort | cpio -o --quiet -H newc --reproducible -R 0:0) >"$out"
