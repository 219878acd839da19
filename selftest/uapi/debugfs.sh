#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=dash disable=SC2317 # point calls the functions
#
# /sys/kernel/debug/twheel/bases, which twheel_debugfs.c describes: in a guest, with
# twheel(1), the sample module and tap.sh beside this script.
here=${0%/*} twheel=${0%/*}/twheel
bases=/sys/kernel/debug/twheel/bases

# shellcheck source=selftest/lib/tap.sh
. "${0%/*}/tap.sh"

# What there was to read is told where a point fails.
told() { "$@" || { cat "$bases"; return 1; }; }

# columns CONDITION COLUMN...: these columns of the lines for which the condition is true,
# in which the columns have their names, as col["pid"].
columns() {
	local condition=$1

	shift
	awk -v names="$*" "NR == 1 { for (i = 1; i <= NF; i++) at[\$i] = i; next }
		{ for (name in at) col[name] = \$at[name] }
		$condition { n = split(names, name_of, \" \"); line = \"\"
			for (i = 1; i <= n; i++) line = line (i > 1 ? \" \" : \"\") col[name_of[i]]
			print line }" "$bases"
}

# is WANT CONDITION COLUMN...
is() {
	local want=$1 got

	shift
	got=$(columns "$@")
	[ "$got" = "$want" ] && return
	echo "$*: '$got', not '$want'"
	return 1
}

waiting() {
	local tries=0

	while ! "$@" && [ "$tries" -lt 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	"$@"
}

heads() {
	[ "$(head -n 1 "$bases")" = "kind id pid uid clock tick_ns pending added expired removed rearmed runs deferred moves worst next_ns l0 l1 l2 l3 l4 far tree comm" ]
}

cpus() {
	local cpus

	cpus=$(find /sys/devices/system/cpu -maxdepth 1 -name 'cpu[0-9]*' | wc -l)
	is "$(seq 0 $((cpus - 1)) | sed 's/$/ 0 0 -/')" 'col["kind"] == "cpu"' id pid uid comm &&
		is "$(seq 0 $((cpus - 1)) | sed 's/$/ 0 0 -/')" 'col["kind"] == "pinned"' id pid uid comm
}

# The first timers of a file are in no level.
one_file() {
	local pid good=0

	"$twheel" after 1h &
	pid=$!
	waiting is "file 0 boottime 1000000 1 1 0 0 0 0/0 0/0 0/0 0/0 0/0 0 1 twheel" "col[\"pid\"] == $pid" \
		kind uid clock tick_ns pending added expired removed rearmed l0 l1 l2 l3 l4 far tree comm || good=1
	[ "$(columns "col[\"pid\"] == $pid" next_ns)" -gt 3500000000000 ] || good=1
	kill "$pid"
	wait "$pid"
	is "" "col[\"pid\"] == $pid" pid && [ "$good" = 0 ]
}

# A module's own: three sessions, of which one is put off, one is deleted, and one ends.
one_module() {
	local good=0 file=/sys/kernel/debug/twheel_sessions own='col["kind"] == "base"'

	insmod "$here/twheel_sessions.ko" idle_ms=4000 || return
	for command in "create 1" "create 2" "create 3" "delete 2" "touch 3"; do
		echo "$command" >"$file"
	done
	is "0 boottime 10000000 2 4 0 2 1 insmod" "$own" uid clock tick_ns pending added expired removed rearmed comm || good=1
	waiting is "0 4 2 2 -" "$own" pending added expired removed next_ns || good=1
	[ "$(columns "$own" runs)" -ge 1 ] || good=1
	rmmod twheel_sessions
	is "" "$own" id && [ "$good" = 0 ]
}

escapes() {
	local pid status

	cp "$twheel" "/tmp/a \\b" && "/tmp/a \\b" after 1h &
	pid=$!
	waiting is 'a\040\134b' "col[\"comm\"] ~ /^a/" comm
	status=$?
	for pid in $(columns "col[\"comm\"] ~ /^a/" pid); do
		kill "$pid"
	done
	wait
	[ "$status" = 0 ] && awk 'NF != 24 { print; bad = 1 } END { exit bad }' "$bases"
}

# More lines than a page has room for, each there once.
many() {
	local pids='' good=0

	for _ in $(seq 45); do
		"$twheel" after 1h &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086 # words
	waiting is "$(printf '%s\n' $pids | sort -n)" 'col["comm"] == "twheel" && col["pending"] == 1 { print col["pid"] | "sort -n" } 0' || good=1
	# shellcheck disable=SC2086 # words
	kill $pids
	wait
	return "$good"
}

# Bases come and go while it is read.
races() {
	local pid

	for _ in $(seq 12); do
		"$twheel" after 1ms
	done &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		awk 'NF != 24 { bad = 1 } END { exit bad || NR < 2 }' "$bases" || return
	done
	wait "$pid"
}

# While thousands fire, the levels hold what is pending, to a tenth and to what has happened since
# that was counted: the counters of the next reading tell how much.
adds_up() {
	local pid seen=0

	set -- added expired removed rearmed moves
	"$twheel" bench --timers=50000 --backend=kernel &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		columns 'col["pending"] > 5000' pending l0 l1 l2 l3 l4 far "$@" >/tmp/levels
		columns "col[\"pid\"] == $pid" "$@" >/tmp/changes
		[ -s /tmp/levels ] || continue
		[ -s /tmp/changes ] || continue
		seen=$((seen + 1))
		paste -d ' ' /tmp/levels /tmp/changes | tr '/' ' ' | awk '{
			sum = $2 + $4 + $6 + $8 + $10 + $12
			changed = $18 + $19 + $20 + $21 + $22 - $13 - $14 - $15 - $16 - $17
			print; exit sum > $1 * 1.1 + changed || sum < $1 * 0.9 - changed }' || return
	done
	wait "$pid" && [ "$seen" -ge 1 ]
}

not_for_all() { [ "$(stat -c %a "$bases")" = 400 ]; }

echo 1..9
point "the first line names the columns" told heads
point "each CPU has a line" told cpus
point "an open file has a line, with its owner and its timers" told one_file
point "a module's base has a line, and its counters are right" told one_module
point "a name cannot add columns" told escapes
point "more lines than fit into a page" told many
point "the levels add up to the pending timers" told adds_up
point "reading while files are opened and closed" told races
point "only root can read it" told not_for_all
exit $bad
