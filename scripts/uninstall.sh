#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# uninstall.sh: remove from DESTDIR what `make install` with the same variables puts there.
# What was edited in /etc stays. Directories stay: they may be others'.
. "$(dirname "$0")/lib.sh"
cd "$top"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
quiet make install DESTDIR="$stage"

find "$stage" ! -type d -printf '%P\n' | while read -r file; do
	target=${DESTDIR:-}/$file
	if [[ /$file = "${SYSCONFDIR:-/etc}"/* && -e $target ]] && ! cmp -s "$stage/$file" "$target"; then
		note "left, for it was edited: $target"
	else
		rm -f "$target"
	fi
done

[ -z "${DESTDIR:-}" ] || exit 0
depmod "$(kernel_release)"
ldconfig
[ ! -d /run/systemd/system ] || udevadm control --reload
[ -e /sys/class/misc/twheel ] || rm -f /dev/twheel
