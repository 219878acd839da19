#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# command.sh: twheel(1), from outside.
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=selftest/lib/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$top"

dir=$top/build/libtest/command twheel=$top/build/tools/twheel
mkdir -p "$dir"

# gives STATUS COMMAND...: what it prints is in $dir/out, and $dir/err.
gives() {
	local want=$1 status=0

	shift
	"$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
	[ "$status" = "$want" ] && return
	echo "'$*' gave $status, not $want"
	cat "$dir/out" "$dir/err"
	return 1
}

says() { diff - "$dir/$1"; }
ms() { echo $(($(date +%s%N) / 1000000)); }
# The values of a key in the lines of JSON.
values() { sed -n "s/.*\"$1\":\"*\([^,\"}]*\).*/\1/p" "$dir/out"; }

builds() { quiet make -C tools/twheel; }

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

at() {
	local when

	when=$(($(date +%s) + 2))
	gives 0 "$twheel" at "@$when" -- date +%s && [ "$(cat "$dir/out")" -ge "$when" ] &&
		gives 125 "$twheel" at 2020-01-01 -- true && says err <<-END
			$twheel: '2020-01-01' is over
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

helps() {
	gives 0 "$twheel" --help && grep -q '^Usage: twheel' "$dir/out" && gives 0 "$twheel" every --help &&
		gives 0 "$twheel" --version && grep -qx 'twheel [0-9.]*' "$dir/out"
}

# Every wrong line is told of, and nothing is run.
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
		$twheel:$dir/jobs:12: missing ' -- ' and a command
		$twheel:$dir/jobs:13: missing command
		$twheel:$dir/jobs:14: cannot understand 'after 'x'
		$twheel:$dir/jobs:15: missing ' -- ' and a command
	END
	gives 125 "$twheel" run "$dir/nothing" && gives 125 "$twheel" run && gives 125 "$twheel" run a b &&
		gives 125 "$twheel" run --jobs=0 "$dir/jobs"
}

# A slow command delays no other, unless there is one thread for all.
file() {
	cat >"$dir/jobs" <<-END
		after 1ms -- sleep 0.6; echo slow
		after 200ms --   echo quick \$((1 + 1))
		every 40ms --count=2 --now -- echo every
	END
	gives 0 "$twheel" run "$dir/jobs" && says out <<-END &&
		every
		every
		quick 2
		slow
	END
	gives 0 "$twheel" run --check "$dir/jobs" && [ ! -s "$dir/out" ] &&
		gives 0 "$twheel" run --jobs=1 --json "$dir/jobs" && [ "$(values line | tail -n 1)" != 1 ] &&
		echo 'after 1ms -- false' >"$dir/jobs" && gives 1 "$twheel" run "$dir/jobs" &&
		gives 0 "$twheel" run /dev/null && echo 'after 1ms -- echo in' | "$twheel" run - | grep -qx in
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

# What bench tells of its CPU time is most of what the process took. Few timers have their moments far
# apart, and what they cost is to wait for them. The greatest lateness is that of the last of 100.
costs() {
	local TIMEFORMAT='%U %S' told

	{ time gives 0 "$twheel" bench --timers=2000 --backend=embedded --json; } 2>"$dir/time" || return
	told=$(($(values cpu_ns) * 2000))
	awk -v told="$told" '
		{ took = ($1 + $2) * 1e9 }
		END {
			printf "took %.0f ns, told %.0f ns\n", took, told
			exit told < took / 2 || told > 2 * took
		}' "$dir/time" || return
	gives 0 "$twheel" bench --timers=100 --backend=embedded --json &&
		[ "$(values late_p50_ns)" -le "$(values late_p99_ns)" ] && [ "$(values reads)" -gt 1 ]
}

# completes WANT WORD...: the last of them
completes() {
	local want=$1

	shift
	# shellcheck disable=SC1091
	[ "$(. tools/twheel/completion.bash && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) &&
		_twheel && echo "${COMPREPLY[*]}")" = "$want" ] && return
	echo "'$*' is not completed to '$want'"
	return 1
}

completion() {
	completes "every" twheel ev && completes "--count=" twheel every 5s --co &&
		completes "skip" twheel every 5s --missed = s && completes "embedded" twheel bench --backend = e &&
		completes "--json" twheel ls --j && completes "--embedded" twheel top --e &&
		completes "Makefile" twheel plot Makef && completes "mkfifo" twheel after 5s -- mkfif &&
		completes "mkfifo" twheel every 5s --missed = skip mkfif && completes "Makefile" twheel run Makef
}

echo 1..14
point "twheel builds" builds
point "after: the command runs after the duration" after
point "the exit status is the command's" status
point "at: the command runs at the time" at
point "every: it runs again and again" every
point "every: never twice at once, and missed times as asked" missed
point "what is not understood is 125, and said" wrong_words
point "--help and --version" helps
point "run: errors by line number, and nothing is run" file_errors
point "run: a file of commands" file
point "signals" signals
point "ls, info, bench" looks
point "bench: costs are those of the process, and waiting is one" costs
point "completion" completion
exit $bad
