#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# try.sh: the tour that README promises a newcomer, as the newcomer starts it.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$top"

dir=$top/build/libtest/try
mkdir -p "$dir"

# The tour needs a terminal no more than a module, and TWHEEL_BACKEND is not for it.
tour() { env -u TWHEEL_BACKEND make try >"$dir/out" 2>"$dir/err" </dev/null && [ ! -s "$dir/err" ]; }

says() { grep -qE "$1" "$dir/out" || ! cat "$dir/out"; }
count() { grep -cF "  $1" "$dir/out"; }

# Of 200000 timers half are cancelled. What was late is in the histogram, whose shares are all of it.
timers() {
	says '^  armed +200000 timers in' && says '^  cancelled +100000 timers in' &&
		says '^  fired +100000 timers in' && says '^  0 wrong: ' || return
	awk '/% ?#*$/ { sum += $(NF - ($NF ~ /#/)); n++ } END { exit n != 8 || sum < 99.5 || sum > 100.5 }' "$dir/out"
}

# On a busy host a task that is due once may still be to come after the second. If it is not, it has run.
# The fourth run of the periodic task is due when the tour stops: if it is in progress then, only that task is
# missing, and the two that are due once have run.
tasks() {
	local left once

	left=$(sed -n 's/^  stopped, with \([0-9]*\) tasks that were still to come$/\1/p' "$dir/out")
	once=$(($(count "once, after 400 ms") + $(count "took the place of the other task of key k")))
	[ "$once" != 2 ] || [ "$left" != 1 ] || left=$((left + $(count "every 250 ms, run 4")))
	is 4 "$((left + once))" && is 0 "$(count "never seen")" && is 0 "$(count "next year")"
}

echo 1..3
point "make try: it ends well, and complains of nothing" tour
point "make try: each timer that was not cancelled has fired once, and is in the histogram" timers
point "make try: each task has run once or is still to come, and one that was replaced has not run" tasks
exit $bad
