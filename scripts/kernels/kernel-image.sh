#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel-image.sh RELEASE: print the path of the kernel of exactly that release.
# One that is not in /boot is unpacked into the cache, never installed.
. "$(dirname "$0")/../lib.sh"

release=$1
for image in {/boot,"$cache/boot"}/"vmlinuz-$release"; do
	[ ! -r "$image" ] || { echo "$image"; exit; }
done

mkdir -p "$cache/boot"
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
deb=$(fetch "$tmp" "linux-image-$release") || deb=$(fetch "$tmp" "linux-image-$release-unsigned") ||
	die "no package has the kernel $release. Another one can be chosen with KDIR= (its headers)" \
	    "and KERNEL= (its image)."
dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp" ./boot
mv "$tmp/boot/vmlinuz-$release" "$image"
echo "$image"
