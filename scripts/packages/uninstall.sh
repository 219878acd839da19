#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# uninstall.sh [TARGET]: remove from DESTDIR what `make install`, or that TARGET, installs
# with the same variables. Files in /etc that were edited stay, and so do directories, which others
# may use.
. "$(dirname "$0")/../lib.sh"
cd "$top"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
target=${1:-install}
quiet make "$target" DESTDIR="$stage"

find "$stage" ! -type d -printf '%P\n' | while read -r file; do
	target=${DESTDIR:-}/$file
	if [[ /$file = "${SYSCONFDIR:-/etc}"/* && -e $target ]] && ! cmp -s "$stage/$file" "$target"; then
		note "left, for it was edited: $target"
	else
		rm -f "$target"
	fi
done

[ -z "${DESTDIR:-}" ] && [ "$target" = install ] || exit 0
depmod "$(kernel_release)"
ldconfig
[ ! -d /run/systemd/system ] || udevadm control --reload
[ -e /sys/class/misc/twheel ] || rm -f /dev/twheel
