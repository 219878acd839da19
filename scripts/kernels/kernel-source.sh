#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel-source.sh VERSION: print the path of the package linux-source-VERSION, which
# is 140 MB and kept in the cache. If the system's apt does not know the package, it comes from the
# larger archive (archive.sh).
. "$(dirname "$0")/../lib.sh"

for deb in "$cache/linux-source-$1"_*.deb; do
	[ ! -e "$deb" ] || { echo "$deb"; exit; }
done

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
if apt-cache show "linux-source-$1" >/dev/null 2>&1; then
	fetch "$tmp" "linux-source-$1" >/dev/null
else
	note "fetching the package linux-source-$1 (once)"
	(cd "$tmp" && quiet "$top/scripts/kernels/archive.sh" apt-get -qq download "linux-source-$1")
fi
deb=$(echo "$tmp"/*.deb)
mv "$deb" "$cache"
echo "$cache/${deb##*/}"
