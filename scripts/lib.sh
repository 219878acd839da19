# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash disable=SC2034
#
# What the scripts share. Each of them sources this file, from any directory.
#
#	top	the source tree
#	cache	downloads that outlive a checkout
set -euo pipefail

# What a user has set for other programs must not change what these do. With CDPATH "cd" prints where
# it goes. Languages differ in messages, in the order of a sort and in decimal points. If a service
# runs us, systemd expects to hear from that, not from our tests. A package that others cannot read is
# not one. make cannot name a file whose path has a space.
unset CDPATH LANGUAGE NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_FDS LISTEN_PID JOURNAL_STREAM
export LC_ALL=C.UTF-8
umask 022
case ${TMPDIR:-} in *[[:space:]]*) unset TMPDIR ;; esac

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${HOME:=$(cd ~ && pwd)}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/twheel

# If make has called us, its options must not reach the makes that we call. The variables of its
# command line are in the environment anyway.
unset MAKEFLAGS MFLAGS MAKELEVEL

note() { echo "${0##*/}: $*" >&2; }
die() { note "$*"; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root, and there is no sudo. Run as root: $*"
	fi
}

# quiet COMMAND...: show the output of a command only if it fails.
quiet() {
	local log status=0

	log=$(mktemp)
	"$@" >"$log" 2>&1 </dev/null || status=$?
	[ "$status" = 0 ] || cat "$log" >&2
	rm -f "$log"
	return "$status"
}

# guest_program OUT FILE: build a program of one file, which needs nothing else in a test machine.
guest_program() { quiet gcc -O2 -Wall -Wextra -Werror -I"$top/include/uapi" -static -o "$1" "$2"; }

apt() {
	quiet as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@"
}

# result_of KEY...: print the name of the file for a result that depends on nothing but its key. The
# file outlives the checkout, so that nothing is checked or proved twice. To do everything again,
# remove the directory.
result_of() {
	mkdir -p "$cache/results"
	echo "$cache/results/$(printf '%s\0' "$@" | sha256sum | cut -c 1-40)"
}

# fetch DIR PACKAGE: download a package without installing it; prints its path.
fetch() {
	local get=(apt-get -qq -o APT::Sandbox::User=root download "$2")

	note "fetching the package $2 (once)"
	if ! (cd "$1" && "${get[@]}") >/dev/null 2>&1; then
		apt update || note "apt-get update failed; trying without"
		(cd "$1" && quiet "${get[@]}") || return
	fi
	echo "$1/$2"_*.deb
}

# unpack DIR PACKAGE[:ARCH] [ARGUMENT...]: unpack a package of the larger archive (archive.sh) into
# DIR, without installing it. The arguments, for tar, choose what to unpack.
unpack() {
	local dir=$1 package=$2 deb status=0

	shift 2
	mkdir -p "$dir"
	deb=$(mktemp -d "$cache/tmp.XXXXXX")
	note "fetching the package $package (once)"
	if (cd "$deb" && quiet "$top/scripts/kernels/archive.sh" apt-get -qq download "$package"); then
		dpkg-deb --fsys-tarfile "$deb"/*.deb | tar -x -C "$dir" "$@" || status=$?
	else
		status=1
	fi
	rm -rf "$deb"
	return $status
}

# Print the files of the tree that are ours: committed, or new and not ignored.
sources() {
	git -c safe.directory='*' -C "$top" ls-files -co --exclude-standard --deduplicate -- "$@" |
		while read -r file; do [ ! -e "$top/$file" ] || echo "$file"; done
}

# modules [VARIABLE=VALUE...]
# shellcheck disable=SC2120
modules() { quiet make -j"$(nproc)" -C "$top" modules "$@"; }

# copy_sources DIRECTORY: have the files of the tree there, and nothing else
# shellcheck disable=SC2119 # all sources
copy_sources() {
	rm -rf "$1"
	mkdir -p "$1"
	(cd "$top" && sources | xargs cp --parents -t "$1")
}

# modules_for KERNEL COPY [VARIABLE=VALUE...]: build the modules, and those of the tests, against
# the kernel in directory KERNEL, in a copy of the tree.
modules_for() {
	local kernel=$1 copy=$2

	shift 2
	copy_sources "$copy"
	quiet make -s -j"$(nproc)" -C "$kernel" M="$copy" CONFIG_TWHEEL_SELFTEST=m "$@" modules
}

# Print the version, which libtwheel.h has for all of twheel.
version() { make -s -C "$top/lib" version; }

# Debian's `make kernelrelease` says 6.1.192 for 6.1.0-56-cloud-amd64.
kernel_release() {
	sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$("$top/scripts/kdir.sh")/include/generated/utsrelease.h"
}

# ---- which sources figures belong to ------------------------------------------------------

# package_version PACKAGE: print which version of a package of Debian is installed
package_version() { dpkg-query -W -f '${Version}' "$1"; }

processor() { sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1; }

# Print the commit of the sources. Files in doc/ do not count: a measurement may write several tables
# there, one after the other.
source_id() {
	local id changed

	id=$(git -c safe.directory='*' -C "$top" rev-parse --short=12 HEAD 2>/dev/null) || { echo unknown; return; }
	changed=$(git -c safe.directory='*' -C "$top" status --porcelain -- . ':!doc')
	echo "$id${changed:+-dirty}"
}

# document FILE: write stdin to FILE, but only if it was measured with committed sources
document() {
	local text

	text=$(cat)
	if grep -qE '^(\* )?commit.*(-dirty|unknown)' <<<"$text"; then
		die "$1 stays as it is: it would be of sources that are not committed"
	fi
	printf '%s\n' "$text" >"$1"
}
