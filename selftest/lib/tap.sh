# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2034
#
# TAP for tests in shell, a guest's too: `echo 1..N`, then point NAME COMMAND... N times, then
# `exit $bad`. What a command that failed printed is told. same NAME WANTED GOT is a point, too.
nr=0 bad=0

point() {
	local name=$1 log

	log=$(mktemp)
	shift
	nr=$((nr + 1))
	if "$@" >"$log" 2>&1; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		sed 's/^/# /' "$log"
		bad=1
	fi
	rm -f "$log"
}

is() {
	[ "$1" = "$2" ] || ! printf 'wanted: %s\ngot: %s\n' "$1" "$2"
}

same() { point "$1" is "$2" "$3"; }
