#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# man.sh build [DIR]: the manual pages, from doc/man/*.scd. A page has its name, and a link
# for each other name in its NAME.
# man.sh install DIR: into DIR/manN.
. "$(dirname "$0")/lib.sh"
cd "$top"

# names PAGE: all in its NAME section
names() { sed -n '/^# NAME$/,/^# [^N]/ s/^\([a-z].*\) - .*/\1/p' "$1" | tr -d ' ' | tr , '\n'; }

build() {
	local dir=$1 page name section

	rm -rf "$dir"
	mkdir -p "$dir"
	for page in doc/man/*.scd; do
		name=$(basename "$page" .scd) section=${page%.scd}
		section=${section##*.}
		# Without a date of its own a page has the day it is built.
		SOURCE_DATE_EPOCH=$(stamp) scdoc <"$page" >"$dir/$name" || die "$page: see above"
		for alias in $(names "$page"); do
			[ "$alias.$section" = "$name" ] || ln -s "$name" "$dir/$alias.$section"
		done
	done
}

# When the pages were last changed; where that cannot be told, now.
stamp() {
	local committed

	committed=$(git -c safe.directory='*' log -1 --format=%ct -- doc/man 2>/dev/null || :)
	echo "${SOURCE_DATE_EPOCH:-${committed:-$(date +%s)}}"
}

install_to() {
	local page dir

	for page in build/man/*; do
		dir=$1/man${page##*.}
		mkdir -p "$dir"
		cp -Pf "$page" "$dir"
	done
}

case $1 in
build) build "${2:-build/man}" ;;
install) install_to "$2" ;;
*) die "no such command: $1" ;;
esac
