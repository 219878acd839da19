#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# release.sh X.Y.Z: make the tree that version, ready to be committed. It writes the version to
#
#	lib/libtwheel.h		from which the library, pkg-config, CMake and `twheel --version` take it
#	dkms.conf
#	bindings/		the packages for Python and Rust
#	debian/changelog	a new entry, for you to write
#	debian/libtwheel1.symbols	as the first version with the node LIBTWHEEL_X.Y of
#				lib/libtwheel.map; until then the file says the last version
#
# and renews lib/libtwheel.abi, with which `make lint` compares the library from then on. If the ABI
# has changed since the last release, a new Z is not enough; if programs would break, neither is a new
# Y. A new X is also a new soname. Then change LIBTWHEEL_1 in lib/libtwheel.map by hand before this
# script, which dumps the ABI, and rename libtwheel1 after it, see CONTRIBUTING.md.
. "$(dirname "$0")/../lib.sh"
cd "$top"

# Is X.Y.Z, as three words, a large enough step for what has changed since the last release?
says_enough() {
	local major minor patch status=0

	IFS=. read -r major minor patch < <(version)
	[ "$(printf '%s\n' "$1.$2.$3" "$major.$minor.$patch" | sort -V | tail -n 1)" != "$major.$minor.$patch" ] ||
		die "$1.$2.$3 is not after $major.$minor.$patch"
	scripts/gates/abi.sh check all >/dev/null || status=$?
	case $status in
	0) ;;
	4) [ "$1.$2" != "$major.$minor" ] || die "the ABI has changed: this is $major.$((minor + 1)).0" ;;
	8 | 12) [ "$1" != "$major" ] || die "programs break, see scripts/gates/abi.sh check: this is $((major + 1)).0.0" ;;
	*) die "scripts/gates/abi.sh check gave $status" ;;
	esac
}

set_version() {
	sed -i -E "s/^(#define TWHEEL_VERSION_MAJOR\t).*/\1$1/; s/^(#define TWHEEL_VERSION_MINOR\t).*/\1$2/
		s/^(#define TWHEEL_VERSION_PATCH\t).*/\1$3/" lib/libtwheel.h
	sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$1.$2.$3\"/" dkms.conf
	sed -i -E "s/^(version|__version__) = .*/\1 = \"$1.$2.$3\"/" bindings/python/pyproject.toml \
		bindings/python/twheel/__init__.py bindings/rust/Cargo.toml
	sed -i -E "s/^( \(symver\)LIBTWHEEL_$1\.$2) .*/\1 $1.$2.$3/" debian/libtwheel1.symbols
	cat - debian/changelog >debian/changelog.new <<-END
		twheel ($1.$2.$3) unstable; urgency=medium

		  * Release $1.$2.$3.

		 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -R)

	END
	mv debian/changelog.new debian/changelog
}

# The first lines of libtwheel.abignore, which say what the file is for, stay.
renew_abi() {
	scripts/gates/abi.sh dump >lib/libtwheel.abi.new
	mv lib/libtwheel.abi.new lib/libtwheel.abi
	sed -i '/^#/!Q' lib/libtwheel.abignore
}

[[ ${1:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "no such version: ${1:-}"
IFS=. read -ra new <<<"$1"
scripts/gates/version.sh
says_enough "${new[@]}"
set_version "${new[@]}"
renew_abi
scripts/gates/version.sh
