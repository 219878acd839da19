# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2034
#
# TAP for tests in shell, also in a guest: `echo 1..N`, then N times point NAME COMMAND..., then
# `exit $bad`. If a command fails, its output is printed. same NAME WANTED GOT is a point, too.
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
