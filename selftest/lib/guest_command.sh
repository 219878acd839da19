#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# shellcheck shell=dash disable=SC2317 # point calls the functions
#
# twheel(1) where there is /dev/twheel: in a guest, with the program beside this script.
twheel=${0%/*}/twheel

nr=0 bad=0
point() {
	local name=$1

	shift
	nr=$((nr + 1))
	if "$@" >/tmp/point 2>&1; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		sed 's/^/# /' /tmp/point
		bad=1
	fi
}

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
	"$twheel" info && "$twheel" info | grep '^/dev/twheel: there' &&
		"$twheel" info | grep 'get the kernel backend' &&
		"$twheel" info | grep 'max_timers *[0-9]' &&
		"$twheel" info --json | grep '"device":"/dev/twheel","backend":"kernel","abi":1,.*"tick_us":'
}

measures() {
	"$twheel" bench --json --timers=1000 --backend=kernel | grep '"backend":"kernel","timers":1000,.*"early":0}' &&
		[ "$("$twheel" bench --json --timers=1000 | wc -l)" = 2 ]
}

runs() { [ "$("$twheel" after 50ms -- echo fired)" = fired ]; }

echo 1..4
point "twheel after runs a command" runs
point "twheel ls lists what is pending" lists
point "twheel info tells of the module" tells
point "twheel bench measures both backends" measures
exit $bad
