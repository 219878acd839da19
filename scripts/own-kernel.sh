#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# own-kernel.sh NAME: print the directory of a kernel that is built here, once, into the
# cache: x86.config and NAME.config on top of allnoconfig, with the changes of NAME.patch if
# there is one. In it are the kernel as "vmlinuz" and what modules are built against.
. "$(dirname "$0")/lib.sh"

name=$1
case $name in
next | next-rt) version=7.2 ;;
*) version=6.1 ;;
esac
configs=("$top/scripts/x86.config" "$top/scripts/$name.config")
patch=$top/scripts/$name.patch
[ -e "$patch" ] || patch=
# A change of one of them makes a new kernel.
hash=$(cat "${configs[@]}" ${patch:+"$patch"} | sha256sum | cut -c 1-12)
for dir in "$cache/$name"-*-"$hash"; do
	[ ! -e "$dir" ] || { echo "$dir"; exit; }
done

build() { quiet nice -n 10 make -s -j"$(nproc)" -C "$tmp/src" ARCH=x86_64 "$@"; }

# allnoconfig drops a line that depends on what is not there, and says nothing.
configure() {
	local missing

	cat "${configs[@]}" >"$tmp/config"
	build KCONFIG_ALLCONFIG="$tmp/config" allnoconfig
	missing=$(grep -E '^CONFIG_|^# CONFIG_.* is not set$' "$tmp/config" | grep -vxFf "$tmp/src/.config") || return 0
	die "the kernel does not take these lines:" "$missing"
}

# What it takes to build a module, as in a package of headers.
keep() {
	local parts=(Makefile .config Module.symvers include scripts arch/x86) part

	[ -e "$tmp/src/Module.symvers" ] || cp "$tmp/src/vmlinux.symvers" "$tmp/src/Module.symvers"
	[ ! -e "$tmp/src/tools/objtool/objtool" ] || parts+=(tools/objtool/objtool)
	mkdir -p "$tmp/kernel/arch" "$tmp/kernel/tools/objtool"
	mv "$tmp/src/arch/x86/boot/bzImage" "$tmp/kernel/vmlinuz"
	for part in "${parts[@]}"; do
		mv "$tmp/src/$part" "$tmp/kernel/$part"
	done
	find "$tmp/kernel/arch" -name '*.[oaS]' -delete
}

deb=$("$top/scripts/kernel-source.sh" $version)
release=$(dpkg-deb -f "$deb" Version)
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
note "building Linux $release with $name.config (once, some ten minutes)"
mkdir "$tmp/src"
dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$version.tar.xz" |
	tar -xJ -C "$tmp/src" --strip-components=1
[ -z "$patch" ] || quiet patch -d "$tmp/src" -p 1 -i "$patch"
configure
build bzImage
build modules_prepare
keep
dir=$cache/$name-$release-$hash
# Somebody else may have been faster.
mv -T "$tmp/kernel" "$dir" 2>/dev/null || [ -e "$dir/vmlinuz" ]
echo "$dir"
