#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# checkpatch.sh ARGUMENT...: the kernel's checkpatch.pl. It is in no package but
# the kernel's source, 140 MB, out of which three files go to the cache.
. "$(dirname "$0")/../lib.sh"

version=$(kernel_release | sed -E 's/^([0-9]+\.[0-9]+).*/\1/')
dir=$cache/checkpatch-$version
if [ ! -e "$dir/checkpatch.pl" ]; then
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/tmp.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	source=linux-source-$version
	deb=$("$top/scripts/kernels/kernel-source.sh" "$version")
	mkdir "$tmp/scripts"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$source.tar.xz" |
		tar -xJ -C "$tmp/scripts" --strip-components=2 \
		    "$source"/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch}
	rm -rf "$dir"
	mv "$tmp/scripts" "$dir"
	rm -rf "$tmp"
fi
cd "$top" # for .checkpatch.conf
exec perl "$dir/checkpatch.pl" "$@"
