#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# deb.sh: build the Debian packages, and have lintian look at them. They are in build/deb.
. "$(dirname "$0")/lib.sh"
cd "$top"

version=$(sed -n 's/^VERSION	:= //p' lib/Makefile)
[ "$(dpkg-parsechangelog -S Version)" = "$version" ] || die "debian/changelog has not the version $version"
grep -qx "PACKAGE_VERSION=\"$version\"" dkms.conf || die "dkms.conf has not the version $version"

rm -rf build/deb
mkdir -p "build/deb/twheel-$version"
# shellcheck disable=SC2119 # all sources
sources | grep -v '^selftest/fuzz/corpus/' | xargs cp --parents -t "build/deb/twheel-$version"
# A directory that has no git tells nothing of the one it is in.
export GIT_CEILING_DIRECTORIES=$top/build
(cd "build/deb/twheel-$version" && quiet env -u DESTDIR dpkg-buildpackage -b -us -uc)
rm -r "build/deb/twheel-$version"
lintian --fail-on error,warning --tag-display-limit 0 build/deb/*.changes
ls build/deb/*.deb
