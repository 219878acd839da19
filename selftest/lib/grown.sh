#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# grown.sh: programs with a newer library, and with an older one. The newer library is compiled with
# headers in which each structure has one more member, as in a later version.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$top"

dir=$top/build/libtest/grown
export TWHEEL_BACKEND=embedded

# What crosses the boundary of the library and may grow: each structure that is not opaque.
structures() { sed -n 's/^struct \(twheel_[a-z_]*\) {$/\1/p' lib/libtwheel.h lib/libtwheel-sched.h; }
shared='twheel_setup twheel_info twheel_op twheel_event'

# A member more, at the end. struct twheel_batch is for the kernel alone.
grow() {
	local header=$1 name

	shift
	for name; do
		sed -i "/^struct $name {\$/,/^};\$/ s/^};\$/\tuint64_t grown;\n};/" "$header"
	done
	sed -i '0,/^#include/s//#include <stdint.h>\n&/' "$header"
	[ "$(grep -c '^	uint64_t grown;$' "$header")" = $# ]
}

grows() {
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r --parents lib include wheel*.h "$dir"
	# shellcheck disable=SC2046,SC2086 # words
	grow "$dir/include/uapi/linux/twheel.h" $shared &&
		grow "$dir/lib/libtwheel.h" $(structures | grep -x twheel_levels) &&
		grow "$dir/lib/libtwheel-sched.h" $(structures | grep -vx twheel_levels) || return
	quiet make -s -C lib O="$dir/today" CFLAGS=-O1 &&
		quiet make -s -C "$dir/lib" O="$dir/later" CFLAGS=-O1
}

# program NAME HEADERS [FLAG...]
program() {
	local name=$1 top=$2

	shift 2
	gcc -O1 -Wall -Wextra -Werror "$@" -I"$top/lib" -I"$top/include/uapi" -o "$dir/$name" \
		selftest/lib/grown.c -L"$dir/today" -ltwheel
}

builds() { program of_today "$top" && program of_later "$dir" -DGROWN; }

# with LIBRARY PROGRAM [older]
with() { LD_LIBRARY_PATH=$dir/$1 timeout 60 "$dir/$2" "${@:3}"; }

echo 1..6
point "a later library builds, whose structures have one more member" grows
point "a present and a later program build" builds
point "the present program with the present library" with today of_today
point "the later program with the later library" with later of_later
point "the present program with the later library" with later of_today
point "the later program with the present library" with today of_later older
exit $bad
