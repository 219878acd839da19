#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# own-kernel.sh NAME: print the directory of a kernel that is built here, once, into the cache. In
# it are the kernel and what modules are built against.
#
#	NAME		kernel			configuration, on top of allnoconfig
#	uml*		"linux": user-mode	NAME.config; NAME may be a path
#	any other	"vmlinuz": for QEMU	x86.config and NAME.config
#
# The sources are Debian's linux-source-6.1, or for "next" and "next-rt" linux-source-7.2, with the
# changes of uml.patch or NAME.patch if there is one.
. "$(dirname "$0")/../lib.sh"

name=${1##*/} version=6.1
case $name in
uml*)
	configs=("$1.config") patch=$top/scripts/kernels/uml.patch prefix=uml image=linux
	arch=(ARCH=um SUBARCH=x86_64) targets=(all) parts=(arch/um)
	[[ $1 == */* ]] || configs=("$top/scripts/kernels/$1.config")
	;;
*)
	configs=("$top/scripts/kernels/x86.config" "$top/scripts/kernels/$name.config") patch=$top/scripts/kernels/$name.patch
	prefix=$name image=vmlinuz arch=(ARCH=x86_64) targets=(bzImage modules_prepare) parts=()
	[[ $name != next* ]] || version=7.2
	;;
esac
[ -e "$patch" ] || patch=
# If an option or the patch changes, another kernel is built. A changed comment has no effect.
hash=$({ grep -hE '^(# )?CONFIG_' "${configs[@]}"; [ -z "$patch" ] || cat "$patch"; } | sha256sum | cut -c 1-12)
there() {
	local dir

	for dir in "$cache/$prefix"-*-"$hash"; do
		[ ! -e "$dir" ] || { echo "$dir"; exit; }
	done
}

there
# A second caller waits for the first, and then uses its kernel.
mkdir -p "$cache"
exec 9>"$cache/$prefix-$hash.lock"
flock 9
there

build() { quiet nice -n 10 make -s -j"$(nproc)" -C "$tmp/src" "${arch[@]}" "$@"; }

# allnoconfig silently drops a line whose dependencies are not met.
configure() {
	local missing

	cat "${configs[@]}" >"$tmp/config"
	build KCONFIG_ALLCONFIG="$tmp/config" allnoconfig
	missing=$(grep -E '^CONFIG_|^# CONFIG_.* is not set$' "$tmp/config" | grep -vxFf "$tmp/src/.config") || return 0
	die "the kernel does not take these lines:" "$missing"
}

# The files that it takes to build a module, as in a package of headers: some 5 % of the tree.
keep() {
	local part

	[ -e "$tmp/src/Module.symvers" ] || cp "$tmp/src/vmlinux.symvers" "$tmp/src/Module.symvers"
	[ ! -e "$tmp/src/tools/objtool/objtool" ] || parts+=(tools/objtool/objtool)
	[ "$image" = linux ] || cp "$tmp/src/arch/x86/boot/bzImage" "$tmp/src/$image"
	for part in "$image" Makefile .config Module.symvers include scripts arch/x86 "${parts[@]}"; do
		mkdir -p "$tmp/kernel/$(dirname "$part")"
		mv -T "$tmp/src/$part" "$tmp/kernel/$part"
	done
	find "$tmp/kernel/arch" -name '*.[oaS]' -delete
}

deb=$("$top/scripts/kernels/kernel-source.sh" $version)
release=$(dpkg-deb -f "$deb" Version)
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
note "building Linux $release with $name.config (once, some minutes)"
mkdir "$tmp/src"
dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/linux-source-$version.tar.xz" |
	tar -xJ -C "$tmp/src" --strip-components=1
[ -z "$patch" ] || quiet patch -d "$tmp/src" -p 1 -i "$patch"
configure
for target in "${targets[@]}"; do
	build "$target"
done
keep
dir=$cache/$prefix-$release-$hash
mv -T "$tmp/kernel" "$dir"
echo "$dir"
