#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# man.sh build [DIR]: build the manual pages from doc/man/*.scd. Each further name in the section
# NAME of a page becomes a link to it.
# man.sh install DIR twheel|jobs: install into DIR/manN the pages of twheeld, or all others.
. "$(dirname "$0")/../lib.sh"
cd "$top"

# names PAGE: print all names in the page's section NAME
names() { sed -n '/^# NAME$/,/^# [^N]/ s/^\([a-z].*\) - .*/\1/p' "$1" | tr -d ' ' | tr , '\n'; }

build() {
	local dir=$1 page name section

	rm -rf "$dir"
	mkdir -p "$dir"
	for page in doc/man/*.scd; do
		name=$(basename "$page" .scd) section=${page%.scd}
		section=${section##*.}
		# Without SOURCE_DATE_EPOCH, scdoc would write the day of the build.
		SOURCE_DATE_EPOCH=$(stamp) scdoc <"$page" >"$dir/$name" || die "$page: see above"
		for alias in $(names "$page"); do
			[ "$alias.$section" = "$name" ] || ln -s "$name" "$dir/$alias.$section"
		done
	done
}

# Print when the pages were last changed. If git cannot tell, it is now.
stamp() {
	local committed

	committed=$(git -c safe.directory='*' log -1 --format=%ct -- doc/man 2>/dev/null || :)
	echo "${SOURCE_DATE_EPOCH:-${committed:-$(date +%s)}}"
}

install_to() {
	local page dir of

	for page in build/man/*; do
		case ${page##*/} in
		twheeld.* | twheel-job.*) of="jobs" ;;
		*) of="twheel" ;;
		esac
		[ $of = "$2" ] || continue
		dir=$1/man${page##*.}
		mkdir -p "$dir"
		cp -Pf "$page" "$dir"
	done
}

case $1 in
build) build "${2:-build/man}" ;;
install) install_to "$2" "$3" ;;
*) die "no such command: $1" ;;
esac
