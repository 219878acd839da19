#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# deb.sh: build the Debian packages and the source package, and check them with lintian, which must
# find nothing. They are in build/deb. HOMEPAGE= and VCS_GIT= are those of published.sh.
. "$(dirname "$0")/../lib.sh"
cd "$top"

version=$(version)
scripts/gates/version.sh

rm -rf build/deb
mkdir -p "build/deb/twheel-$version"
# shellcheck disable=SC2119 # all sources
sources | grep -v '^selftest/fuzz/corpus/' | xargs cp --parents -t "build/deb/twheel-$version"
scripts/packages/published.sh "build/deb/twheel-$version/debian/control"
# If the directory is not a git checkout itself, a checkout around it must not be used.
export GIT_CEILING_DIRECTORIES=$top/build
(cd "build/deb/twheel-$version" && quiet env -u DESTDIR dpkg-buildpackage -us -uc)
rm -r "build/deb/twheel-$version"
lintian --allow-root --fail-on error,warning,info,pedantic --display-info --pedantic \
	--tag-display-limit 0 build/deb/*.changes
ls build/deb/*.deb
