#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel-modules.sh RELEASE: print a directory with lib/modules/RELEASE, the modules of Debian's
# kernel of exactly that release, as depmod knows them. They are unpacked into the cache, never
# installed.
. "$(dirname "$0")/../lib.sh"

release=$1 dir=$cache/modules/$1
[ ! -e "$dir" ] || { echo "$dir"; exit; }
mkdir -p "$cache/modules"
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
deb=$(fetch "$tmp" "linux-image-$release") || deb=$(fetch "$tmp" "linux-image-$release-unsigned") ||
	die "no package has the modules of $release"
mkdir "$tmp/tree"
dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp/tree" ./lib/modules
depmod -b "$tmp/tree" "$release"
mv -T "$tmp/tree" "$dir" 2>/dev/null || [ -e "$dir" ]
echo "$dir"
