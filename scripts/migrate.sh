#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# migrate.sh timer_list|hrtimer [-D hardirq] [-I DIR]... FILE...: change FILEs, so that the users of
# these timers in them become users of twheel; see doc/migrate.md. Then list what is left for a
# person: FILE:LINE:COLUMN-COLUMN: what, and why.
# migrate.sh tolerance [-I DIR]... FILE...: let the timers of twheel in FILEs be late by an eighth of
# their delay, as those of timer_list are. Then list those that stay exact.
#
# All files that share a structure with a timer go into one call, headers too: whether x.expires is
# that of a timer depends on the type of x. -I says where headers are.
. "$(dirname "$0")/lib.sh"

rules=$top/scripts/coccinelle/${1:-}.cocci
[ -e "$rules" ] || die "timer_list, hrtimer or tolerance?"
shift
options=(--very-quiet --recursive-includes --include-headers-for-types --sp-file "$rules")
while getopts D:I: option; do
	case $option in
	D | I) options+=("-$option" "$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || die "which files?"

# Most files have nothing to do with timers, and spatch takes a second for each.
for file; do
	[ -r "$file" ] || die "$file cannot be read"
done
mapfile -t files < <(grep -lE 'timer|expires' -- "$@")
set -- "${files[@]}"

# The results are written at the end: no header may change before a file that includes it is done.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
results=()
for file; do
	results+=("$tmp/${#results[@]}")
	# A file that has no word of the rules is not even parsed, and then -o is an error.
	cp "$file" "${results[-1]}"
	spatch "${options[@]}" -D patch -o "${results[-1]}" "$file" >"$tmp/said" 2>&1 ||
		grep -q 'there are no modified files' "$tmp/said" ||
		die "spatch does not take $file: $(cat "$tmp/said")"
done
for file; do
	cp "${results[0]}" "$file"
	results=("${results[@]:1}")
done
for file; do
	spatch "${options[@]}" -D report "$file"
done
