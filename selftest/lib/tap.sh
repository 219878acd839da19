# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2034
#
# TAP for tests in shell, a guest's too: `echo 1..N`, then point NAME COMMAND... N times, then
# `exit $bad`. What a command that failed printed is told.
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
