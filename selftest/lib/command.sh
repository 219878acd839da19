#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# command.sh: tests that call twheel(1)
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=selftest/lib/cli.sh
. "$(dirname "$0")/cli.sh"

says() { diff - "$dir/$1"; }
ms() { echo $(($(date +%s%N) / 1000000)); }

after() {
	local start

	start=$(ms)
	gives 0 "$twheel" after 200ms -- date +%s%N || return
	[ $(($(cat "$dir/out") / 1000000)) -ge $((start + 200)) ] && gives 0 "$twheel" after 1ms
}

status() {
	gives 7 "$twheel" after 1ms sh -c 'exit 7' && gives 143 "$twheel" after 0 -- sh -c 'kill $$' &&
		gives 127 "$twheel" after 0 -- "$dir/nothing" && gives 126 "$twheel" after 0 -- /dev/null &&
		gives 127 "$twheel" every 10ms -- "$dir/nothing" &&
		gives 1 "$twheel" every 10ms --count=2 -- false &&
		gives 0 "$twheel" every 10ms --count=2 -- true
}

# The time must not be over before twheel looks at it.
at_time() {
	local when

	when=$(($(date +%s) + 2))
	gives 0 "$twheel" at "@$when" -- date +%s || { grep -q "is over" "$dir/err" && return 2; } || return 1
	[ "$(cat "$dir/out")" -ge "$when" ]
}

at() {
	in_time at_time &&
		gives 125 "$twheel" at 2020-01-01 -- true && says err <<-END
			$twheel: '2020-01-01' has passed
			Try 'twheel --help' for more information.
		END
}

every() {
	gives 0 "$twheel" every 50ms --count=3 --now -- echo tick && [ "$(wc -l <"$dir/out")" = 3 ] &&
		gives 0 "$twheel" every 50ms --json --count=3 -- true &&
		[ "$(values run | xargs)" = "1 2 3" ] && [ "$(values status | xargs)" = "0 0 0" ]
}

# A command of 120 ms each 50 ms: never twice at once, and what becomes of the missed times.
missed() {
	local mode

	for mode in --missed=skip --missed=burst --missed=delay --fixed-delay; do
		rm -rf "$dir/lock"
		gives 0 "$twheel" every 50ms --count=4 "$mode" --json -- sh -c \
			"mkdir '$dir/lock' && sleep 0.12 && rmdir '$dir/lock'" || return
		case $mode in
		--missed=skip | --missed=delay) [ "$(values missed | tail -n 1)" -ge 2 ] || return ;;
		*) [ "$(values missed | tail -n 1)" = 0 ] || return ;;
		esac
	done
}

wrong_words() {
	gives 125 "$twheel" && gives 125 "$twheel" frobnicate && gives 125 "$twheel" after && says err <<-END &&
		$twheel: missing duration after 'after'
		Try 'twheel --help' for more information.
	END
	gives 125 "$twheel" after 5x -- true && says err <<-END &&
		$twheel: invalid duration '5x'
		Try 'twheel --help' for more information.
	END
	gives 125 "$twheel" after 1s --frob -- true && gives 125 "$twheel" after 1s --count=2 -- true &&
		gives 125 "$twheel" every 1s && gives 125 "$twheel" every 10us -- true &&
		gives 125 "$twheel" every 1s --count=0 -- true && gives 125 "$twheel" every 1s --count -- true &&
		gives 125 "$twheel" every 1s --missed=never -- true && gives 1 "$twheel" ls x &&
		gives 1 "$twheel" bench --timers=1 && gives 1 "$twheel" info --frob
}

# refused WORDS WORD...: what is wrong is said so, of the word that it is.
refused() {
	local words=$1

	shift
	gives 125 "$twheel" "$@" && [ "$(head -n 1 "$dir/err")" = "$twheel: $words" ] && return
	echo "'$*' is not answered '$words', but"
	cat "$dir/err"
	return 1
}

right_words() {
	refused "invalid duration '-1s'" after -1s -- true && refused "invalid time '-1'" at -1 &&
		refused "unrecognized option '-x'" after -x 1s && refused "unrecognized option '--frob'" after 1s --frob -- true &&
		refused "option '--count' is not allowed here" after 1s --count 2 -- true &&
		refused "option '--count' is not allowed here" after --count=2 1s -- true &&
		refused "option '--now' doesn't allow an argument" every 1s --now=5 -- true &&
		refused "option '--missed' requires an argument" every 1s --missed &&
		refused "invalid number '-1'" every 1s --count -1 -- true
}

# Numbers are digits.
counts() {
	local n

	for n in ' -18446744073709551614' ' 2' +2 -1 0 '' 2x 18446744073709551616; do
		refused "invalid number '$n'" every 1ms "--count=$n" -- true &&
			refused "invalid number '$n'" run "--jobs=$n" /dev/null &&
			gives 1 "$twheel" top -b --embedded --delay=100ms "--count=$n" &&
			gives 1 "$twheel" bench --backend=embedded "--timers=$n" || return
	done
	gives 0 "$twheel" every 1ms --count=3 -- echo x && [ "$(wc -l <"$dir/out")" = 3 ]
}

# Which of these excludes the other does not depend on their order.
excludes() {
	local options

	for options in "--fixed-delay --missed=skip" "--missed=skip --fixed-delay" "--fixed-delay --missed=burst"; do
		# shellcheck disable=SC2086 # words
		refused "options '--fixed-delay' and '--missed' exclude each other" every 1ms --count=1 $options -- true || return
		echo "every 1ms --count=1 $options -- true" >"$dir/jobs"
		gives 125 "$twheel" run --check "$dir/jobs" && gives 125 "$twheel" run "$dir/jobs" || return
	done
	gives 0 "$twheel" every 1ms --missed=skip --count=1 --missed=burst --now -- true
}

helps() {
	local word

	gives 0 "$twheel" --help && grep -q '^Usage: twheel' "$dir/out" && cp "$dir/out" "$dir/help" || return
	for word in -h help; do
		gives 0 "$twheel" "$word" && diff "$dir/help" "$dir/out" || return
	done
	for word in after at every run ls info top bench plot; do
		gives 0 "$twheel" "$word" --help && cp "$dir/out" "$dir/help" &&
			grep -q "^Usage: twheel $word " "$dir/help" && [ "$(grep -c '^  [a-z]' "$dir/help")" = 1 ] &&
			gives 0 "$twheel" "$word" -h && diff "$dir/help" "$dir/out" &&
			gives 0 "$twheel" help "$word" && diff "$dir/help" "$dir/out" || return
	done
	gives 125 "$twheel" help frobnicate && gives 0 "$twheel" --version && grep -qx "twheel $(version)" "$dir/out" &&
		cp "$dir/out" "$dir/help" && gives 0 "$twheel" -V && diff "$dir/help" "$dir/out"
}

# Every wrong line is reported, and nothing is run.
file_errors() {
	cat >"$dir/jobs" <<-END
		# a comment

		after 1ms -- touch '$dir/ran'
		after 5x -- true
		  later 5s -- true
		after 5s
		after -- true
		every 1s --missed=x -- true
		after 1s --json -- true
		after 1s true -- true
		at 'tomorrow 25:00' -- true
		after 1s --
		after 1s --  
		after 'x -- true
		-- true
	END
	rm -f "$dir/ran"
	gives 125 "$twheel" run "$dir/jobs" && says err <<-END && [ ! -e "$dir/ran" ] &&
		$twheel:$dir/jobs:4: invalid duration '5x'
		$twheel:$dir/jobs:5: unknown command 'later'
		$twheel:$dir/jobs:6: missing ' -- ' and a command
		$twheel:$dir/jobs:7: missing duration after 'after'
		$twheel:$dir/jobs:8: invalid argument 'x' for '--missed'
		$twheel:$dir/jobs:9: option '--json' is not allowed here
		$twheel:$dir/jobs:10: unexpected 'true'
		$twheel:$dir/jobs:11: invalid time 'tomorrow 25:00'
		$twheel:$dir/jobs:12: missing command
		$twheel:$dir/jobs:13: missing command
		$twheel:$dir/jobs:14: cannot understand 'after 'x '
		$twheel:$dir/jobs:15: missing ' -- ' and a command
	END
	gives 125 "$twheel" run "$dir/nothing" && gives 125 "$twheel" run && gives 125 "$twheel" run a b &&
		gives 125 "$twheel" run --jobs=0 "$dir/jobs"
}

# A slow command delays no other, unless there is one thread for all.
file() {
	rm -f "$dir/ran".*
	cat >"$dir/jobs" <<-END
		after 1ms -- until [ -e '$dir/ran.quick' ]; do sleep 0.02; done; echo slow
		after 100ms -- until [ -e '$dir/ran.2' ]; do sleep 0.02; done; echo   quick \$((1 + 1)); : >'$dir/ran.quick'
		every 40ms --count=2 --now -- echo every; : >'$dir/ran.'\$TWHEEL_RUN
	END
	gives 0 timeout 60 "$twheel" run "$dir/jobs" && says out <<-END &&
		every
		every
		quick 2
		slow
	END
	gives 0 "$twheel" run --check "$dir/jobs" && [ ! -s "$dir/out" ] || return
	cat >"$dir/jobs" <<-END
		after 1ms -- sleep 1; echo slow
		after 400ms --   echo quick
		every 40ms --count=2 --now -- echo every
	END
		gives 0 "$twheel" run --jobs=1 --json "$dir/jobs" && [ "$(values line | tail -n 1)" != 1 ] &&
		echo 'after 1ms -- false' >"$dir/jobs" && gives 1 "$twheel" run "$dir/jobs" &&
		gives 0 "$twheel" run /dev/null && echo 'after 1ms -- echo in' | "$twheel" run - | grep -qx in
}

# Text as other systems and editors write it.
file_text() {
	printf '\xef\xbb\xbfafter 1ms -- echo mark\r\nafter\t1ms\t--\techo tab\r\n\r\n' >"$dir/jobs"
	gives 0 "$twheel" run "$dir/jobs" && [ "$(sort "$dir/out" | xargs)" = "mark tab" ] || return
	printf 'after 1ms -- echo a\0b\n' >"$dir/jobs"
	gives 125 "$twheel" run "$dir/jobs" && says err <<-END
		$twheel:$dir/jobs:1: this is not text: there is a NUL in it
	END
}

# A line as long as can be; a command longer than the kernel takes is refused, not found out later.
file_long() {
	{ printf 'after 1ms'; yes ' x' | head -n 2000000 | tr -d '\n'; echo ' -- true'; } >"$dir/jobs"
	gives 125 "$twheel" run --check "$dir/jobs" && says err <<-END || return
		$twheel:$dir/jobs:1: more than 64 words before '--'
	END
	{ printf 'after 1ms -- : '; head -c 131069 /dev/zero | tr '\0' x; echo; } >"$dir/jobs"
	gives 0 "$twheel" run --check "$dir/jobs" && gives 0 "$twheel" run "$dir/jobs" || return
	{ printf 'after 1ms -- : '; head -c 131070 /dev/zero | tr '\0' x; echo; } >"$dir/jobs"
	gives 125 "$twheel" run --check "$dir/jobs" && says err <<-END
		$twheel:$dir/jobs:1: the command is too long
	END
}

# The shell gets the rest of a line, whatever that looks like.
file_dashes() {
	printf 'after 1ms -- --help; echo 1\nafter 1ms -- -- ; echo 2\nafter 1ms -- -h || echo -- 3\n' >"$dir/jobs"
	gives 0 "$twheel" run "$dir/jobs" && [ "$(sort "$dir/out" | xargs)" = "-- 3 1 2" ]
}

# What cannot be added is refused by --check, and nothing of the file is run.
file_refused() {
	local option

	cat >"$dir/jobs" <<-END
		every 1ms --now --count=1 -- touch '$dir/ran'
		after 1ms -- true
	END
	rm -f "$dir/ran"
	gives 125 env TWHEEL_BACKEND=none "$twheel" run --check "$dir/jobs" &&
		gives 125 env TWHEEL_BACKEND=none "$twheel" run "$dir/jobs" && [ ! -e "$dir/ran" ] &&
		gives 0 "$twheel" run --check "$dir/jobs" && [ ! -e "$dir/ran" ] || return
	# So it is with the files of options, of which it leaves none.
	for option in --lock --metrics; do
		gives 125 "$twheel" run "$option=$dir/nothing/x" "$dir/jobs" && cp "$dir/err" "$dir/err.run" &&
			gives 125 "$twheel" run --check "$option=$dir/nothing/x" "$dir/jobs" && diff "$dir/err.run" "$dir/err" &&
			rm -rf "$dir/new" && mkdir "$dir/new" && gives 0 "$twheel" run --check "$option=$dir/new/x" "$dir/jobs" &&
			rmdir "$dir/new" && [ ! -e "$dir/ran" ] || return
	done
}

# The commands do not take what is behind a file on standard input, nor wait for more of it.
file_stdin() {
	printf 'after 1ms -- cat; echo end\nafter 1ms -- cat; echo end\n' >"$dir/jobs"
	{ cat "$dir/jobs"; echo '# the last'; } | timeout 60 "$twheel" run - >"$dir/out" && says out <<-END || return
		end
		end
	END
	# A reader of this would wait for ever.
	rm -f "$dir/fifo" && mkfifo "$dir/fifo" || return
	timeout 60 "$twheel" run "$dir/jobs" >"$dir/out" <>"$dir/fifo" && [ "$(wc -l <"$dir/out")" = 2 ]
}

# One file is run once at a time, and after that again; a lock may be somewhere else.
file_lock() {
	local pid status=0

	echo "every 1h --now -- echo >'$dir/ran'; sleep 1000" >"$dir/jobs"
	for option in "" "--lock=$dir/lock"; do
		rm -f "$dir/ran"
		"$twheel" run ${option:+"$option"} "$dir/jobs" &
		pid=$!
		until [ -e "$dir/ran" ]; do sleep 0.05; done
		cp "$dir/jobs" "$dir/jobs2"
		gives 125 timeout 60 "$twheel" run ${option:+"$option"} "$dir/jobs${option:+2}" &&
			grep -q "' is locked: another twheel runs it" "$dir/err" &&
			gives 0 "$twheel" run --check "$dir/jobs" || status=1
		kill "$pid"
		wait "$pid"
		[ "$status" = 0 ] || return
	done
	echo 'after 1ms -- true' >"$dir/jobs"
	gives 0 "$twheel" run "$dir/jobs" && gives 0 "$twheel" run "--lock=$dir/lock" "$dir/jobs"
}

# SIGTERM ends it, and the commands that run; they are not born with signals blocked.
signals() {
	local pid status=0

	"$twheel" after 1ms -- sh -c 'trap "echo told; exit" TERM; echo runs; while :; do sleep 0.05; done' \
		>"$dir/out" &
	pid=$!
	until grep -q runs "$dir/out"; do sleep 0.05; done
	kill "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] && grep -q told "$dir/out" || return
	status=0
	"$twheel" after 1h &
	pid=$!
	sleep 0.3
	kill "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ]
}

looks() {
	gives 0 "$twheel" ls && grep -q '^ *PID  *FD' "$dir/out" && gives 0 "$twheel" ls --json &&
		gives 0 "$twheel" info && grep -q '^/dev/twheel: ' "$dir/out" && gives 0 "$twheel" info --json &&
		[ "$(values abi)" = 1 ] && gives 0 "$twheel" bench --timers=2000 &&
		grep -q '^embedded backend, 2000 timers' "$dir/out" &&
		gives 0 "$twheel" bench --timers=2000 --backend=embedded --json && [ "$(values early)" = 0 ] &&
		[ "$(values timers)" = 2000 ]
}

# What bench tells of its CPU time is most of what the process took. It does not know what it costs to
# start a process, which is half of what 2000 timers cost where the host is busy. Few timers have their
# moments far apart, and what they cost is to wait for them. The greatest lateness is that of the last of 100.
costs() {
	local TIMEFORMAT='%U %S' told

	{ time gives 0 "$twheel" bench --timers=20000 --backend=embedded --json; } 2>"$dir/time" || return
	told=$(($(values cpu_ns) * 20000))
	awk -v told="$told" '
		{ took = ($1 + $2) * 1e9 }
		END {
			printf "took %.0f ns, told %.0f ns\n", took, told
			exit told < took / 2 || told > 2 * took
		}' "$dir/time" || return
	gives 0 "$twheel" bench --timers=100 --backend=embedded --json &&
		[ "$(values late_p50_ns)" -le "$(values late_p99_ns)" ] && [ "$(values reads)" -gt 1 ]
}

# Of few timers too: half of them, 99 of 100 and all are no later. A run takes 2.5 s.
percentiles() {
	local n

	for n in 2 3 20 60 198; do
		"$twheel" bench "--timers=$n" --backend=embedded --json >"$dir/bench$n" &
	done
	wait
	cat "$dir"/bench{2,3,20,60,198} >"$dir/out"
	[ "$(wc -l <"$dir/out")" = 5 ] && python3 - "$dir/out" <<-'END'
		import json, sys
		for line in open(sys.argv[1]):
		    b = json.loads(line)
		    late = [b[f"late_{name}_ns"] for name in ("p50", "p99", "max")]
		    of = b["late_percentiles_ns"]
		    assert late == sorted(late) and of == sorted(of) and len(of) == 101, b
		    assert late == [of[50], of[99], of[100]], b
		    assert late[1] == late[2], b    # 99 of 100, of less than 100, are all
	END
}

# With tolerances they run at moments that they share, multiples of 3600 ticks: one or two of these,
# where exact ones have one each. Never early, and no later than that, if the host lets them. One that
# is due when it is added does not wait; that can be one of the first, if the host stands still meanwhile.
within_once() {
	local i status=0

	for i in {1..11}; do
		echo "after $((i * 300))ms --within=15s -- true"
	done >"$dir/jobs"
	echo 'every 1h --now --count=1 --within 20s -- true' >>"$dir/jobs"
	echo "at '$(date -d '+3 sec' +%FT%T)' --within=1ms -- true" >>"$dir/jobs"
	gives 0 "$twheel" run --json "$dir/jobs" || { grep -q "is over" "$dir/err" && return 2; } || return 1
	python3 - "$dir/out" <<-'END' || status=$?
		import datetime, json, sys, time
		busy = False
		ahead = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
		runs = [json.loads(line) for line in open(sys.argv[1])]
		assert len(runs) == 13, runs
		for run in runs:
		    due = datetime.datetime.strptime(run["due"], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
		    late = run["late_ns"] / 1e9
		    assert late >= 0, run
		    busy |= late >= 4.5
		    if run["line"] < 12:
		        met = (due + late - ahead + 0.002) // 3.6 * 3.6     # it is told in ms
		        shared = met >= due - ahead - 0.002
		        assert shared or run["line"] < 5, run
		        busy |= not shared or due + late - ahead - met >= 0.5
		sys.exit(2 * busy)
	END
	[ "$status" = 0 ] || cat "$dir/out"
	return "$status"
}

within() {
	in_time within_once || return
	refused "invalid duration 'x'" after 1s --within=x -- true && refused "invalid duration '-1s'" at 1 --within=-1s -- true &&
		refused "option '--within' requires an argument" every 1s --within &&
		gives 125 "$twheel" run --within=1s "$dir/jobs"
}

# Names are what twheeld says that there are, and behind "--" is somebody's command.
jobs_complete() {
	(
		twheel() { printf 'NAME NEXT\nmail -\nbackup -\n'; }
		export -f twheel
		completes "backup" twheel job pause b && completes "--replace" twheel job add x --repl &&
			completes "" twheel job add x -- ls --repl && completes "--outcome=" twheel job history backup --o
	)
}

completion() {
	completes "every" twheel ev && completes "--count=" twheel every 5s --co &&
		completes "skip" twheel every 5s --missed = s && completes "embedded" twheel bench --backend = e &&
		completes "--json" twheel ls --j && completes "--embedded" twheel top --e &&
		completes "Makefile" twheel plot Makef && completes "mkfifo" twheel after 5s -- mkfif &&
		completes "mkfifo" twheel every 5s --missed = skip mkfif && completes "Makefile" twheel run Makef &&
		completes "help" twheel he && completes "plot" twheel help pl && completes "--lock=" twheel run --l &&
		completes "--kill-after=" twheel after --k && completes "--json-fd=" twheel at --json- &&
		completes "--within=" twheel every 5s --w && completes "resume" twheel job res &&
		jobs_complete &&
		completes "--socket=" twheel job ls --s
}

echo 1..25
point "twheel builds" builds
point "after: the command runs after the duration" after
point "the exit status is the command's" status
point "at: the command runs at the time" at
point "every: it runs again and again" every
point "every: never twice at once, and missed times as asked" missed
point "bad arguments: exit status 125, and an error message" wrong_words
point "bad arguments: the message names the bad word" right_words
point "numbers consist of digits" counts
point "options that exclude each other, in any order" excludes
point "--help and --version, of all and of one" helps
point "run: errors by line number, and nothing is run" file_errors
point "run: a file of commands" file
point "run: CRLF, tabs, marks and NULs" file_text
point "run: lines that are too long" file_long
point "run: commands that look like options" file_dashes
point "run: --check refuses what run refuses" file_refused
point "run: commands have no standard input" file_stdin
point "run: a file is locked" file_lock
point "signals end commands" signals
point "ls, info and bench print what is there" looks
point "bench: costs are those of the process, waiting included" costs
point "bench: percentiles of few timers" percentiles
point "--within: later, together with others" within
point "completion" completion
exit $bad
