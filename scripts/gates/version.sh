#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# version.sh: does every file that has the version say that of lib/libtwheel.h?
. "$(dirname "$0")/../lib.sh"
cd "$top"

is=$(version)
[[ $is =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "lib/libtwheel.h has no version: $is"
[ "$(sed -nE '1 s/^twheel \(([^)-]*).*/\1/p' debian/changelog)" = "$is" ] ||
	die "debian/changelog has not the version $is"
grep -qx "PACKAGE_VERSION=\"$is\"" dkms.conf || die "dkms.conf has not the version $is"
python=bindings/python
grep -qx "version = \"$is\"" $python/pyproject.toml || die "$python/pyproject.toml has not the version $is"
grep -qx "__version__ = \"$is\"" $python/twheel/__init__.py || die "$python/twheel has not the version $is"
grep -qx "version = \"$is\"" bindings/rust/Cargo.toml || die "bindings/rust/Cargo.toml has not the version $is"
