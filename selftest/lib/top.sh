#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# top.sh: "twheel top" over the embedded backend, with and without a terminal, and "twheel plot".
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=selftest/lib/cli.sh
. "$(dirname "$0")/cli.sh"

# judge CONDITION: of each line of JSON in $dir/out, as s, with its only base, as b.
judge() {
	python3 - "$dir/out" "$1" <<-'END'
		import json, sys
		for line in open(sys.argv[1]):
		    s = json.loads(line)
		    b = s["bases"][0]
		    if not eval(sys.argv[2]):
		        print(s)
		        sys.exit(1)
	END
}

# Time passes between the look at the counters and that at the levels. How many are pending, and how
# much is done in a second, is what the load makes of the time that the host gives it.
samples() {
	"$twheel" top --embedded --json --count=3 --delay=500ms >"$dir/out" &&
		[ "$(wc -l <"$dir/out")" = 3 ] &&
		judge 'len(s["bases"]) == 1 and b["kind"] == "embedded" and b["tick_ns"] == 10**6' &&
		judge '0 <= s["late_p50_ns"] <= s["late_p99_ns"] <= s["late_max_ns"]' &&
		judge 'b["pending"] <= 20000 and b["level_timers"][5] == 0' &&
		judge 'all(n <= most for n, most in zip(b["level_buckets"], [120, 120, 48, 730, 100]))' || return 1
	judge '19000 < b["pending"] and abs(sum(b["level_timers"]) - b["pending"]) < 100 and s["probes"] > 50' &&
		judge 'all(n > 0 for n in b["level_timers"][:5] + b["level_buckets"][:5])' &&
		judge '50 < b["cancelled_per_s"] < 1100 and 50 < b["rearmed_per_s"] < 1100' &&
		judge 'b["fired_per_s"] > 100 and b["moves_per_s"] > 100 and b["runs_per_s"] > 10' || return 2
}

# What is armed and is neither fired nor removed is pending.
balance() {
	"$twheel" top --embedded --json --count=4 --delay=1s | tail -n 3 >"$dir/out" || return 1
	judge 'abs(b["armed_per_s"] - b["fired_per_s"] - b["cancelled_per_s"] - b["rearmed_per_s"]) < 400 and b["armed_per_s"] > 1000' ||
		return 2
}

# Any user may call a process what he likes, and root looks at it.
names() {
	local name=$'a"\\\e[H\n\xff'

	ln -sf "$twheel" "$dir/$name"
	"$dir/$name" top --embedded --json --count=1 --delay=100ms >"$dir/out" &&
		judge 'b["command"] == "a\"\\134\\033[H\\012\\377"' || return
	"$dir/$name" top --embedded -b --count=1 --delay=100ms >"$dir/out" &&
		grep -qE '^embedded .* a"\\134\\033\[H\\012\\377$' "$dir/out"
}

# What the load has armed, and whether a probe has told how late it was, is a matter of the host.
text() {
	"$twheel" top --embedded -b --count=2 --delay=200ms >"$dir/out" &&
		[ "$(grep -c '^KIND *ID *PID *PENDING *ARMED/s *FIRED/s *CANCEL/s *REARM/s' "$dir/out")" = 2 ] &&
		[ "$(grep -cE '^embedded +0 +[0-9]+ +[0-9]+ .* twheel$' "$dir/out")" = 2 ] &&
		[ "$(grep -cE ' 1 base, [0-9]+ pending' "$dir/out")" = 2 ] || return 1
	[ "$(grep -cE '^embedded +0 +[0-9]+ +[0-9]{5} .* twheel$' "$dir/out")" = 2 ] &&
		[ "$(grep -cE ' 1 base, [0-9]{5} pending; late by .* \(half\)' "$dir/out")" = 2 ] || return 2
}

# on_screen KEY...: what is drawn on one of ${columns:-120} columns, without what moves the cursor. The
# keys are pressed once something has fired.
on_screen() {
	rm -f "$dir/typescript"
	{
		until_true grep -qs 'late by' "$dir/typescript" >&2
		for key; do sleep 1.2; printf '%s' "$key"; done
	} | TERM=xterm timeout 120 script -qfec \
		"stty cols ${columns:-120} rows 30; exec $twheel top --embedded --delay=500ms" "$dir/typescript" >"$dir/null" || return
	sed 's/\x1b\[[0-9;?]*[a-zA-Z]/ /g; s/\x1b[()].//g' "$dir/typescript" | tr -d '\r' >"$dir/out"
}

screen() {
	on_screen j q || return
	for words in "twheel top: 1 base in this process" "fired/s [1-9]" "cascade moves/s [1-9]" "late by" \
		"\[ *#.*\.\.\.] .* of 120" "of 48" "of 730" "of 100" "beyond: 0" "KIND" \
		"embedded 0 (twheel), in buckets of" ">"; do
		grep -q -- "$words" "$dir/out" && continue
		echo "no '$words' in"
		cat "$dir/out"
		return 1
	done
}

# Nothing is lost on one of 80 columns.
narrow() {
	local line

	columns=80 on_screen q && line=$(grep -o 'KIND .*' "$dir/out" | head -n 1) || return
	[[ $line =~ ^KIND\ *ID\ *PID\ *PEND\ *ARM/s\ *FIR/s\ *CAN/s\ *REA/s\ *RUN/s\ *MOV/s\ *DEF/s\ *COMMAND ]] &&
		grep -qE 'embedded +0 +[0-9]+( +[0-9]+k?){8} twheel' "$dir/out" && grep -q ' of 730' "$dir/out" && return
	cat "$dir/out"
	return 1
}

# One that can move no cursor is not drawn on.
dumb() {
	local status=0

	for term in dumb no-such-terminal; do
		status=0
		TERM=$term timeout 60 script -qec "$twheel top --embedded" "$dir/typescript" >"$dir/out" </dev/null || status=$?
		[ "$status" = 1 ] && grep -q 'try --batch' "$dir/out" && ! grep -q $'\x1b' "$dir/out" && continue
		echo "status $status"
		cat "$dir/out"
		return 1
	done
}

# It gives the terminal back: its last words leave the other screen.
leaves() { on_screen q && grep -q $'\x1b\\[?1049l' "$dir/typescript"; }

# fails STATUS WORDS COMMAND...
fails() {
	local want=$1 words=$2 status=0

	shift 2
	"$@" >"$dir/out" 2>&1 </dev/null || status=$?
	[ "$status" = "$want" ] && grep -qF -- "$words" "$dir/out" && return
	echo "$*: status $status"
	cat "$dir/out"
	return 1
}

refuses() {
	fails 1 "no terminal to draw on; try --batch" "$twheel" top --embedded &&
		fails 1 "invalid duration '1ms'" "$twheel" top -b --delay=1ms &&
		fails 1 "invalid number '0'" "$twheel" top -b --count=0 &&
		fails 1 "extra operand 'x'" "$twheel" top -b x &&
		{ [ -e /sys/kernel/debug/twheel/bases ] || fails 1 "/sys/kernel/debug/twheel/bases" "$twheel" top -b; }
}

ends() {
	local pid status=0

	"$twheel" top --embedded -b >"$dir/out" &
	pid=$!
	until_true hears "$pid" TERM
	kill "$pid"
	wait "$pid" || status=$?
	[ "$status" = 0 ] || return
	# Not if whoever started it has said so.
	env --ignore-signal=TERM "$twheel" top --embedded --json --count=3 --delay=300ms >"$dir/out" &
	pid=$!
	until_true test -s "$dir/out"
	kill "$pid"
	wait "$pid" && [ "$(wc -l <"$dir/out")" = 3 ]
}

# A picture: well-formed, and with these words in it.
is_svg() {
	python3 - "$@" <<-'END'
		import sys, xml.etree.ElementTree as tree
		root = tree.parse(sys.argv[1]).getroot()
		assert root.tag.endswith("svg"), root.tag
		text = " ".join("".join(e.itertext()) for e in root.iter() if e.tag.endswith("text"))
		missing = [word for word in sys.argv[2:] if word not in text]
		assert not missing, (missing, text)
	END
}

plots_bench() {
	"$twheel" bench --json --timers=2000 --backend=embedded >"$dir/bench" &&
		"$twheel" plot <"$dir/bench" >"$dir/bench.svg" &&
		is_svg "$dir/bench.svg" "embedded, 2000 timers" "late by" "cost of a timer" arm cancel read &&
		"$twheel" plot --output="$dir/it's.png" "$dir/bench" &&
		[ "$(head -c 8 "$dir/it's.png" | tail -c 7 | head -c 3)" = PNG ]
}

table() {
	printf 'name\tlate_p50_ns\tlate_p99_ns\tlate_max_ns\tarm_ns\tcancel_ns\tread_ns\tother\n'
	printf 'here "and"\t600000\t1200000\t2500000\t60\t25\t%s\tx\n' "$1"
	printf 'there <&>\t1\t1200\t0\t160\t125\t300\tx\n'
}

plots_table() {
	table 900 | "$twheel" plot --output="$dir/table.svg" && is_svg "$dir/table.svg" "here _and_" "there <&>" &&
		table 450 | "$twheel" plot --output="$dir/other.svg" && ! cmp -s "$dir/table.svg" "$dir/other.svg" &&
		table 900 | "$twheel" plot >"$dir/other.svg" && cmp "$dir/table.svg" "$dir/other.svg"
}

plot_errors() {
	ln -sf /dev/full "$dir/full.svg"
	table many >"$dir/bad" && fails 1 "bad:2: 'many' is not a number" "$twheel" plot "$dir/bad" &&
		echo '{"arm_ns":1}' >"$dir/bad" && fails 1 'bad:1: no "cancel_ns"' "$twheel" plot "$dir/bad" &&
		echo '{' >"$dir/bad" && fails 1 'bad:1: no JSON object' "$twheel" plot "$dir/bad" &&
		fails 1 "no runs" "$twheel" plot /dev/null &&
		fails 1 "it must end in .svg or .png" "$twheel" plot --output=x.pdf "$dir/bench" &&
		fails 1 "cannot open '$dir/nothing'" "$twheel" plot "$dir/nothing" &&
		fails 1 "cannot open '$dir/no/x.svg' for writing: No such file or directory" \
			"$twheel" plot "--output=$dir/no/x.svg" "$dir/bench" &&
		fails 1 "cannot write '$dir/full.svg': No space left on device" \
			"$twheel" plot "--output=$dir/full.svg" "$dir/bench" &&
		fails 1 "'gnuplot' is not installed" env PATH="$dir" "$twheel" plot "$dir/bench"
}

echo 1..15
point "twheel builds" builds
point "top: samples of a wheel with a load" in_time samples
point "top: its figures add up" in_time balance
point "top: as text" in_time text
point "top: names of processes with control characters" names
point "top: the screen is drawn, keys are heard" screen
point "top: the screen fits into 80 columns" narrow
point "top: refuses a terminal without cursor movement" dumb
point "top: the terminal is restored" leaves
point "top: error messages for bad arguments and missing files" refuses
point "top: SIGTERM ends it" ends
point "plot: what bench measured, as SVG and PNG" plots_bench
point "plot: a table" plots_table
point "plot: errors by line number" plot_errors
point "top and plot are in --help" grep -qE '^  or:  twheel (top|plot)' <("$twheel" --help)
exit $bad
