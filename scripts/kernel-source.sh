#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernel-source.sh VERSION: print the path of the package linux-source-VERSION, which
# is 140 MB and kept in the cache.
. "$(dirname "$0")/lib.sh"

for deb in "$cache/linux-source-$1"_*.deb; do
	[ ! -e "$deb" ] || { echo "$deb"; exit; }
done

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
deb=$(fetch "$tmp" "linux-source-$1")
mv "$deb" "$cache"
echo "$cache/${deb##*/}"
