#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# recipe.sh: does doc/recipe-epoll-server.md show the difference of its two programs?
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

# The first hunk, the comments at the top of the files, is left out.
# shellcheck disable=SC2016 # backquotes as they are
shown() { sed -n '/^```diff$/,/^```$/p' doc/recipe-epoll-server.md | sed '1d;$d'; }
differ() {
	diff -U 2 examples/echo_timerfd.c examples/echo_twheel.c | awk '/^@@/ { n++ } n > 1'
}

same() { [ -n "$(shown)" ] && diff <(shown) <(differ); }

echo 1..1
point "the recipe shows the difference of its two programs" same
exit $bad
