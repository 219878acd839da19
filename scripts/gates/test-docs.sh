#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-docs.sh: the programs in the tutorial and in the manual pages compile, and print what the text
# says, except for numbers. They run over the embedded backend. And the HTML can be made.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"
cd "$top"

dir=$top/build/docs
export TWHEEL_BACKEND=embedded

# programs FILE SUBDIRECTORY: extract the programs of FILE
programs() {
	mkdir -p "$dir/$2"
	awk -v dir="$dir/$2" -f scripts/docs/programs.awk "$1"
}

# page NAME: extract the program in the page's examples, as man(1) shows it and a reader types it.
page() {
	mkdir -p "$dir/$1"
	LC_ALL=C MANWIDTH=200 man -l "build/man/$1" |
		awk '/^[A-Z]/ { on = 0 } /^EXAMPLES/ { on = 1 } /#include/ { on += on } on > 1' >"$dir/$1/example.c"
}

compiles() {
	gcc -std=gnu11 -O2 -Wall -Wextra -Werror -Ilib -Iinclude/uapi -pthread -o "${1%.c}" "$1" \
		build/lib/libtwheel.a
}

numbers() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g' "$1"; }

# prints PROGRAM: it must print something; if the text shows its output, PROGRAM.out, it must print that.
prints() {
	timeout 60 "$1" >"$1.says" && [ -z "$(tail -c 1 "$1.says")" ] || return
	[ ! -e "$1.out" ] || diff <(numbers "$1.out") <(numbers "$1.says")
}

# works FILE: compile and run FILE. In idle.c all connections are idle, and not one, if the host stands
# still for half a second; so that has some tries.
works() {
	local program=${1%.c} try tries=1

	[ "${1##*/}" != idle.c ] || tries=5
	compiles "$1" || return
	for ((try = 0; try < tries; try++)); do
		! prints "$program" || return 0
	done
	return 1
}

rm -rf "$dir"
quiet make -s lib man
programs doc/tutorial.md tutorial
for name in libtwheel.3 twheel_sched.3 twheel.4; do
	page "$name"
done
mapfile -t tutorial < <(find "$dir/tutorial" -name '*.c' | LC_ALL=C sort)

echo "1..$((${#tutorial[@]} + 5))"
point "the tutorial has seven programs with their output" \
	[ "${#tutorial[@]} $(find "$dir/tutorial" -name '*.out' | wc -l)" = "7 7" ]
for file in "${tutorial[@]}"; do
	point "the tutorial's ${file##*/} does what it says" works "$file"
done
point "the program in libtwheel(3) works" works "$dir/libtwheel.3/example.c"
point "the program in twheel_sched(3) works" works "$dir/twheel_sched.3/example.c"
point "the program in twheel(4) compiles" compiles "$dir/twheel.4/example.c"
point "HTML from the comments: no warning, all exported functions" scripts/docs/htmldocs.sh
exit $bad
