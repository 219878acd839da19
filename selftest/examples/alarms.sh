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

uptime_ms() { awk '{ print int($1 * 1000) }' /proc/uptime; }

# The last alarm is not early. The clock of uptime_ms counts in steps of 10 ms.
in_order() {
	local start

	start=$(uptime_ms)
	printf '900 last\n100 first\n500 middle\n' | rings && cat "$dir/out" && none_early &&
		[ "$(names | tr '\n' ' ')" = "first middle last " ] &&
		[ $(($(uptime_ms) - start)) -ge 890 ]
}

# The input is silent for a second. If the wheel wakes the loop, the alarm is less than 700 ms late.
unasked() {
	{ echo '200 a'; sleep 1; echo '0 b'; } | rings && cat "$dir/out" && none_early &&
		awk '$1 == "a" && $2 < 700000 { good = 1 } END { exit !good }' "$dir/out"
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
	point "$name: alarms ring in the order of their times" in_order
	point "$name: the wheel wakes the loop" unasked
	point "$name: 4000 alarms, each once, none early" many
done
exit $bad
