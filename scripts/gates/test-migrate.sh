#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# test-migrate.sh [--update]: run scripts/migrate.sh on the files of selftest/migrate. The lines that it
# changes, and its list of what is left for a person, must be those in selftest/migrate/expected.
# The result must compile, except for exactly the lines that are left for a person. --update writes
# the present result there, for a change that was meant.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$top/selftest/lib/tap.sh"

dir=$top/build/migrate expected=$top/selftest/migrate/expected
timers=(timers.c timers.h newer.c left_timers.c)
hrtimers=(newer.c hrtimers.c left_hrtimers.c)

# migrated: translate all files in place, and print what is left to do by hand
migrated() {
	(cd "$dir/src" &&
		"$top/scripts/migrate.sh" timer_list "${timers[@]}" &&
		"$top/scripts/migrate.sh" hrtimer "${hrtimers[@]}" hard.c &&
		"$top/scripts/migrate.sh" hrtimer -D hardirq hard.c &&
		"$top/scripts/migrate.sh" tolerance tolerances.c)
}

changes() {
	local file

	for file in "${timers[@]}" hrtimers.c hard.c left_hrtimers.c tolerances.c; do
		echo "== $file"
		diff "$top/selftest/migrate/$file" "$dir/src/$file" | grep '^[<>]' || :
	done
}

made() { cat "$dir/left" && changes; }
as_expected() { diff "$expected" <(made); }

kbuild() {
	make -C "$("$top/scripts/kdir.sh")" M="$dir/src" KBUILD_EXTRA_SYMBOLS="$top/Module.symvers" \
		KCFLAGS="-Werror -I$top" "$@" modules
}

# lines FILE: print the lines that FILE complains about, as FILE.c:LINE
lines() { grep -oE '(^|/)left_h?r?timers\.c:[0-9]+' "$1" | sed 's|.*/||' | sort -u; }

# The compiler must complain about exactly the lines that were listed.
left_fails() {
	! kbuild -k LEFT=y >"$dir/errors" 2>&1 &&
		diff <(grep '^left_' "$dir/left" >"$dir/left.own" && lines "$dir/left.own") \
			<(grep -E ': error: ' "$dir/errors" >"$dir/errors.own" && lines "$dir/errors.own")
}

settled() {
	cp -r "$dir/src" "$dir/first"
	migrated >"$dir/again" && diff -x '*.o' -x '.*' -r "$dir/first" "$dir/src" &&
		diff <(grep -v '^hard' "$dir/left") "$dir/again"
}

refused() {
	! "$top/scripts/migrate.sh" "$@" >"$dir/refused" 2>&1 && grep -q 'migrate.sh: ' "$dir/refused"
}

rm -rf "$dir"
mkdir -p "$dir"
cp -r "$top/selftest/migrate" "$dir/src"
status=0
migrated >"$dir/left" || status=$?
if [ "${1:-}" = --update ]; then
	made >"$expected"
	exit
fi

echo 1..7
point "migrate.sh succeeds" [ "$status" = 0 ]
point "the changes, and the list of what is left, are as expected" as_expected
point "a second run changes nothing" settled
point "the result compiles, without a warning" quiet kbuild W=1
point "each line that is left is an error of the compiler" left_fails
point "it refuses timers that it does not know" refused posix a.c
point "it refuses files that do not exist" refused timer_list "$dir/none.c"
exit $bad
