#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kernel-debian.sh ARCH PATTERN: print the directory of the newest kernel for Debian's ARCH
# whose release matches PATTERN, an extended regular expression. The kernel is unpacked into the
# cache, not installed. The directory has the kernel as "vmlinuz", the build directory for modules
# as "build", and for s390x, which has no serial lines, virtio_console.ko.
. "$(dirname "$0")/../lib.sh"

arch=$1 pattern=$2

newest() { { grep -xE "$pattern" || :; } | sort -V | tail -n 1; }

# Unpack the headers, which are two packages, and a third with the programs that build modules.
# These programs are for this machine's architecture, whatever that of the kernel is.
headers() {
	local package

	unpack "$tmp/tree" "linux-headers-$release:$arch"
	for package in $("$top/scripts/kernels/archive.sh" apt-cache show "linux-headers-$release:$arch" |
			sed -n '/^Depends:/ { p; q }' | grep -oE 'linux-(headers|kbuild)-[^ ,:]+'); do
		unpack "$tmp/tree" "$package"
	done
}

release=$("$top/scripts/kernels/archive.sh" apt-cache search --names-only "^linux-image-$pattern\$" |
	sed -E 's/^linux-image-([^ ]+) - .*/\1/' | newest)
: "${release:=$(find "$cache/debian/$arch" -maxdepth 1 -printf '%f\n' 2>/dev/null | newest)}"
[ -n "$release" ] || die "the archive has no kernel $pattern for $arch, and neither has $cache"
dir=$cache/debian/$arch/$release
[ ! -e "$dir" ] || { echo "$dir"; exit; }

mkdir -p "$cache/debian/$arch"
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tree"
parts=(./boot)
[ "$arch" != s390x ] || parts+=(--wildcards '*/virtio_console.ko')
unpack "$tmp/tree" "linux-image-$release:$arch" "${parts[@]}"
headers
mv "$tmp/tree/boot/vmlinuz-$release" "$tmp/tree/vmlinuz"
find "$tmp/tree" -name virtio_console.ko -exec mv -t "$tmp/tree" {} + || :
rm -rf "$tmp/tree/boot" "$tmp/tree/lib"
ln -s "usr/src/linux-headers-$release" "$tmp/tree/build"
# The Makefile names its place in an installed system.
sed -i "s|^include /usr/src/|include $dir/usr/src/|" "$tmp/tree/build/Makefile"
mv -T "$tmp/tree" "$dir" 2>/dev/null || [ -e "$dir" ]
echo "$dir"
