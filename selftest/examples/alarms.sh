#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2317 # point calls the functions
#
# alarms.sh PROGRAM...: is each program the alarm clock that examples/alarms.h describes? A name without a
# slash is a program beside this script. It also runs in a guest's shell.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# In a guest tap.sh is beside this script.
tap=${0%/*}/tap.sh
[ -e "$tap" ] || tap=${0%/*}/../lib/tap.sh
# shellcheck source=selftest/lib/tap.sh
. "$tap"

# rings: give the program standard input as its alarms; its output goes to $dir/out.
rings() {
	timeout 60 "$program" >"$dir/out"
}

names() { cut -d ' ' -f 1 "$dir/out"; }
none_early() { awk '$2 < 0 { print; bad = 1 } END { exit bad }' "$dir/out"; }

# in_time COMMAND...: a host that stands still can spoil it; then the status of COMMAND is 2, and it is
# done again. A loop that does not hear the wheel does not hear it each time.
in_time() {
	for _ in 1 2 3 4 5; do
		status=0
		"$@" || status=$?
		[ "$status" = 2 ] || return "$status"
	done
	return 1
}

uptime_ms() { awk '{ print int($1 * 1000) }' /proc/uptime; }

# The last alarm is not early. The clock of uptime_ms counts in steps of 10 ms. Each line is read before
# the next is due, if the host lets it.
in_order() {
	local start

	start=$(uptime_ms)
	printf '900 last\n100 first\n500 middle\n' | rings && cat "$dir/out" && none_early &&
		[ "$(names | sort | tr '\n' ' ')" = "first last middle " ] &&
		[ $(($(uptime_ms) - start)) -ge 890 ] || return 1
	[ "$(names | tr '\n' ' ')" = "first middle last " ] || return 2
}

# The input is silent for a second. If the wheel wakes the loop, the alarm is less than 700 ms late.
unasked() {
	{ echo '200 a'; sleep 1; echo '0 b'; } | rings && cat "$dir/out" && none_early || return 1
	awk '$1 == "a" && $2 < 700000 { good = 1 } END { exit 2 * !good }' "$dir/out"
}

# 2000 alarms, and 2000 more when the first ones ring.
many() {
	awk 'BEGIN { for (i = 0; i < 4000; i++) {
			print (i * 7919) % 600, "alarm" i
			if (i == 1999) { fflush(); system("sleep 0.3") } } }' | rings && none_early &&
		awk 'BEGIN { for (i = 0; i < 4000; i++) print "alarm" i }' | sort >"$dir/want" &&
		names | sort | cmp - "$dir/want"
}

[ $# != 0 ] || { echo "Usage: $0 PROGRAM..." >&2; exit 1; }
echo 1..$(($# * 3))
for program; do
	name=${program##*/}
	case $program in */*) ;; *) program=${0%/*}/$program ;; esac
	point "$name: alarms ring in the order of their times" in_time in_order
	point "$name: the wheel wakes the loop" in_time unasked
	point "$name: 4000 alarms, each once, none early" many
done
exit $bad
