#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# abi.sh dump: print the present ABI of libtwheel, in the XML of libabigail: its functions, and the
# structures of its headers. What is private to the library is left out.
# abi.sh check [all]: is the ABI that of the last release, which is in lib/libtwheel.abi? Changes that
# lib/libtwheel.abignore lists are allowed; with "all" they are not. The exit status is that of
# abidiff(1): 4 for a change, 12 for one that breaks programs.
#
# The ABI is that of x86-64. release.sh renews lib/libtwheel.abi.
. "$(dirname "$0")/../lib.sh"
cd "$top"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

dump() {
	quiet make -s -C lib install O="$dir/build" DESTDIR="$dir" PREFIX=/usr LIBDIR=/usr/lib CFLAGS='-O0 -g' &&
		abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --drop-private-types \
			--exported-interfaces-only --type-id-style hash --headers-dir "$dir/usr/include" \
			"$dir/usr/lib/libtwheel.so"
}

check() {
	dump >"$dir/abi" || return
	abidiff "$@" lib/libtwheel.abi "$dir/abi"
}

case $* in
dump) dump ;;
check) check --suppressions lib/libtwheel.abignore ;;
"check all") check ;;
*) die "no such command: $*" ;;
esac
