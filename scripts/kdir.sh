#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Print the kernel build directory to use: KDIR, else the running kernel's, else
# the newest that is installed.
. "$(dirname "$0")/lib.sh"

running=$(uname -r)
if [ -n "${KDIR:-}" ]; then
	[ -e "$KDIR/Makefile" ] || die "KDIR=$KDIR is not a kernel build directory"
	echo "$KDIR"
	exit
fi
if [ -e "/lib/modules/$running/build/Makefile" ]; then
	echo "/lib/modules/$running/build"
	exit
fi

found=
for dir in /lib/modules/*/build; do
	[ ! -e "$dir/Makefile" ] || found+="$dir"$'\n'
done
newest=$(printf %s "$found" | sort -V | tail -n 1)
arch=$(dpkg --print-architecture 2>/dev/null || echo amd64)
[ -n "$newest" ] || die "no kernel headers are installed. As root: apt-get install linux-headers-$running" \
	"- or, to build for the kernel the tests boot: apt-get install linux-headers-cloud-$arch"
note "the running kernel $running has no headers here; using $newest"
echo "$newest"
