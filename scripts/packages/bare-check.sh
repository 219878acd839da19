#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# bare-check.sh: does deps.sh list everything that a bare Debian lacks? Make a Debian with
# debootstrap, with only the packages that every Debian has, and run `.ci/run` there, with the tests
# that need no virtual machine.
#
# Needs root, for debootstrap and chroot, 4 GiB in build/bare-check, and some 700 MB to download.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

work=$top/build/bare-check
. scripts/packages/root.sh

# Copy the tree, as git knows it, and checkpatch, for which lint would download 140 MB.
tree() {
	sources_to root/twheel && as_root git init -q "$root/root/twheel" &&
		as_root git -C "$root/root/twheel" add -A || return
	scripts/gates/checkpatch.sh --version >/dev/null
	as_root mkdir -p "$root/root/.cache/twheel"
	as_root cp -r "$cache"/checkpatch-* "$root/root/.cache/twheel"
}

tests() {
	inside /root/twheel/.ci/run fast >"$work/log" 2>&1
	tail -n 1 "$work/log" | grep -x '[0-9]* passed, 0 failed'
}

# The first command of the README, where there are no kernel headers.
modules() {
	as_root rm -f "$root/root/twheel/twheel.ko"
	inside apt-get -qq -y purge 'linux-headers-*' >"$work/modules" 2>&1 &&
		inside make -C /root/twheel >>"$work/modules" 2>&1 && [ -e "$root/root/twheel/twheel.ko" ]
}

scripts/deps.sh deb-check build lint
echo 1..4
step "a bare Debian 12 is made" bootstrap
step "with the tree in it" tree
point "deps.sh installs what the tests need" tests
point "make installs kernel headers, and builds the modules" modules
grep -E '^not ok|# suite .* s of CPU|passed,' "$work/log" | sed 's/^/    /'
[ $bad != 0 ] || as_root rm -rf "$root"
exit $bad
