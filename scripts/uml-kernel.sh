#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# uml-kernel.sh [NAME]: print the directory of a user-mode Linux with the configuration
# NAME.config (uml.config) and the changes of uml.patch, and of what modules are built
# against. It is built once, into the cache.
. "$(dirname "$0")/lib.sh"

config=$top/scripts/${1:-uml}.config patch=$top/scripts/uml.patch
# A change of one of them makes a new kernel.
hash=$(cat "$config" "$patch" "$0" | sha256sum | cut -c 1-12)
for dir in "$cache"/uml-*-"$hash"; do
	[ ! -e "$dir" ] || { echo "$dir"; exit; }
done

um() { quiet nice -n 10 make -s -j"$(nproc)" -C "$tmp/src" ARCH=um SUBARCH=x86_64 "$@"; }

# allnoconfig drops a line that depends on what is not there, and says nothing.
configure() {
	local missing

	um KCONFIG_ALLCONFIG="$config" allnoconfig
	missing=$(grep '^CONFIG_' "$config" | grep -vxFf "$tmp/src/.config") || return 0
	die "the kernel does not take these lines:" "$missing"
}

# What it takes to build a module, as in a package of headers: some 5 % of the tree.
keep() {
	local parts=(linux Makefile .config Module.symvers include scripts arch/um arch/x86)

	[ -e "$tmp/src/Module.symvers" ] || cp "$tmp/src/vmlinux.symvers" "$tmp/src/Module.symvers"
	mkdir -p "$tmp/kernel/arch"
	for part in "${parts[@]}"; do
		mv "$tmp/src/$part" "$tmp/kernel/$part"
	done
	find "$tmp/kernel/arch" -name '*.[oaS]' -delete
}

version=6.1
deb=$("$top/scripts/kernel-source.sh" $version)
release=$(dpkg-deb -f "$deb" Version)
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
note "building a user-mode Linux $release with ${config##*/} (once, some minutes)"
mkdir "$tmp/src"
dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$version.tar.xz" |
	tar -xJ -C "$tmp/src" --strip-components=1
quiet patch -d "$tmp/src" -p 1 -i "$patch"
configure
um all
keep
dir=$cache/uml-$release-$hash
# Somebody else may have been faster.
mv -T "$tmp/kernel" "$dir" 2>/dev/null || [ -e "$dir/linux" ]
echo "$dir"
