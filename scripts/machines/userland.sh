#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# userland.sh OUT TREE FILE...: an archive to go after that of initramfs.sh: installed FILEs, at their
# paths, with the libraries they need, and what is in TREE. A FILE that is PATH=AS goes to AS.
. "$(dirname "$0")/../lib.sh"

out=$1 tree=$2
shift 2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# libraries FILE: print the libraries that ldd names, without the kernel's own. Scripts have none.
libraries() { ldd "$1" 2>/dev/null | grep -oE '/[^ ]+ \(' | sed 's/ ($//' || :; }

chmod 755 "$root"
cp -a "$tree/." "$root"
for file; do
	install -D "${file%%=*}" "$root${file#*=}"
	libraries "${file%%=*}"
done | sort -u | while read -r library; do
	install -D "$library" "$root$library"
done
# In Debian, /lib, /bin and /sbin are links into /usr. Here they are not.
(cd "$root" && find . | LC_ALL=C sort | cpio -o --quiet -H newc --reproducible -R 0:0) | gzip -1n >"$out"
