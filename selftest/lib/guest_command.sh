#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2317 # point calls the functions
#
# twheel(1) with /dev/twheel: in a guest, with the program and tap.sh beside this script.
twheel=${0%/*}/twheel

# shellcheck source=selftest/lib/tap.sh
. "${0%/*}/tap.sh"

# A command that waits is a line, and one no more when it has ended.
lists() {
	local pid found=0

	"$twheel" after 1h -- true &
	pid=$!
	while [ "$found" -lt 100 ] && ! "$twheel" ls --json | grep "\"pid\":$pid,"; do
		sleep 0.1
		found=$((found + 1))
	done
	"$twheel" ls
	"$twheel" ls --json | grep "\"pid\":$pid,\"fd\":[0-9]*,\"command\":\"twheel\",\"clock\":\"boottime\",\"tick_ns\":1000000,\"timers\":1,\"armed\":1,\"ready\":0,\"next_in_ns\":35[0-9]*}" || return
	"$twheel" ls | grep "^ *$pid .*59m 5[0-9]s twheel$" || return
	kill "$pid"
	wait "$pid"
	! "$twheel" ls --json | grep "\"pid\":$pid,"
}

tells() {
	"$twheel" info && "$twheel" info | grep '^/dev/twheel: accessible' &&
		"$twheel" info | grep 'get the kernel backend' &&
		"$twheel" info | grep 'max_timers *[0-9]' &&
		"$twheel" info --json | grep '"device":"/dev/twheel","backend":"kernel","abi":1,.*"tick_us":'
}

measures() {
	"$twheel" bench --json --timers=1000 --backend=kernel | grep '"backend":"kernel","timers":1000,.*"early":0}' &&
		[ "$("$twheel" bench --json --timers=1000 | wc -l)" = 2 ]
}

# The wheels of the CPUs, of a command that waits, and of top's own probes.
watches() {
	local pid status=0

	"$twheel" after 1h -- true &
	pid=$!
	"$twheel" top --json --count=2 --delay=1s | tail -n 1 >/tmp/top
	"$twheel" top -b --count=1 --delay=500ms >/tmp/text
	kill "$pid"
	wait "$pid"
	cat /tmp/top /tmp/text
	grep "\"kind\":\"file\",\"id\":[0-9]*,\"pid\":$pid,\"uid\":0,\"command\":\"twheel\",\"clock\":\"boottime\",\"tick_ns\":1000000,\"pending\":1,\"worst_moves\":0,\"armed_per_s\":0,\"fired_per_s\":0," /tmp/top || status=1
	grep '"kind":"cpu","id":0,"pid":0,.*"kind":"cpu","id":1,' /tmp/top || status=1
	grep '"pending":[1-9][0-9]*,"worst_moves":[0-9]*,"armed_per_s":[1-9][0-9]*,"fired_per_s":[1-9][0-9]*,"cancelled_per_s":0,"rearmed_per_s":0,.*"level_timers":\[[0-9]*,[0-9]*,0,0,0,0]' /tmp/top || status=1
	grep '"probes":[1-9][0-9]*,"late_p50_ns":[1-9][0-9]*,"late_p99_ns":[1-9]' /tmp/top || status=1
	grep "^file *[0-9]* *$pid  *1  *0  *0 .* twheel$" /tmp/text || status=1
	return "$status"
}

runs() { [ "$("$twheel" after 50ms -- echo fired)" = fired ]; }

echo 1..5
point "twheel after runs a command" runs
point "twheel ls lists pending timers" lists
point "twheel info prints what the module says" tells
point "twheel top shows the kernel's wheels" watches
point "twheel bench measures both backends" measures
exit $bad
