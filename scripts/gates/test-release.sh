#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-release.sh: releases of a copy of the tree, and what of libtwheel's ABI may change between
# them.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

copy=$top/build/release
rm -rf "$copy"
mkdir -p "$copy"
# shellcheck disable=SC2119 # all sources
sources | xargs cp --parents -t "$copy"
cd "$copy"

# gives STATUS COMMAND...
gives() {
	local want=$1 status=0

	shift
	"$@" || status=$?
	[ "$status" = "$want" ] || { echo "'$*' gave $status, not $want"; return 1; }
}

abi() { gives "$1" scripts/gates/abi.sh check; }
release() { gives "$1" scripts/packages/release.sh "$2"; }

# The next version. The first ABI may be that of sources which have changed since.
first() { next "$((major + 1)).0.0" && abi 0; }

next() {
	release 0 "$1" && [ "$(make -s -C lib version)" = "$1" ] && grep -q "^twheel ($1) unstable" debian/changelog &&
		grep -qx "PACKAGE_VERSION=\"$1\"" dkms.conf
}

other_version() {
	local file

	for file in dkms.conf debian/changelog lib/libtwheel.h bindings/rust/Cargo.toml bindings/python/{pyproject.toml,twheel/__init__.py}; do
		cp "$file" "$copy/kept"
		sed -i -E '/^(PACK|twheel \(|#define TWHEEL_VERSION_M|version|__version)/ s/[0-9]+/99/' "$file"
		gives 1 scripts/gates/version.sh || return
		mv "$copy/kept" "$file"
	done
	gives 0 scripts/gates/version.sh
}

not_after() { release 1 "$major.9.9" && release 1 "$((major + 1)).0.0"; }

# A member more is told of, until the change is said to be meant. Then it needs a new minor number.
grown() {
	sed -i '/^struct twheel_task {$/,/^};$/ s/^};$/\tuint64_t grown;\n};/' lib/libtwheel-sched.h
	abi 4 && release 1 "$((major + 1)).0.1" || return
	printf '\n[suppress_type]\nname = twheel_task\nhas_data_member_inserted_at = end\n' >>lib/libtwheel.abignore
	echo " (symver)LIBTWHEEL_$((major + 1)).1 $((major + 1)).0.0" >>debian/libtwheel1.symbols
	abi 0 && next "$((major + 1)).1.0" &&
		grep -qx " (symver)LIBTWHEEL_$((major + 1)).1 $((major + 1)).1.0" debian/libtwheel1.symbols &&
		grep -qx ' (symver)LIBTWHEEL_1 1.0.0' debian/libtwheel1.symbols && gives 1 grep '^\[' lib/libtwheel.abignore && abi 0
}

# A function less, or a member of another size.
broken() {
	cp lib/libtwheel.map kept
	sed -i '/twheel_fd;/d' lib/libtwheel.map
	abi 12 && release 1 "$((major + 1)).2.0" || return
	mv kept lib/libtwheel.map
	sed -i '/^struct twheel_levels {$/,/^};$/ s/uint32_t/uint64_t/' lib/libtwheel.h
	abi 4
}

major=$(version)
major=${major%%.*}
echo 1..5
point "a version that is not the same everywhere is told of" other_version
point "a release makes it the same, and its ABI the one to compare with" first
point "a release is after the last" not_after
point "a structure that grows is told of, and a new minor number" grown
point "a function that is gone is told of, and a member that is another" broken
exit $bad
