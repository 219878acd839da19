#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
# runner.sh: the processes that twheel(1) runs: signals, groups, the terminal, output that cannot be
# written
# shellcheck disable=SC2317 # point calls the functions
# shellcheck source=selftest/lib/cli.sh
. "$(dirname "$0")/cli.sh"

# What does not end is a failure, too.
limit=(timeout -k 1 60)

says() { diff - "$dir/$1"; }

# In one line, a command that is to be interrupted runs, and tells of itself in $dir/pids.
begin() {
	rm -f "$dir/pids"
	"$@" >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	until_true test -s "$dir/pids"
}

# all_gone: so are all that are named in $dir/pids.
all_gone() {
	local all one

	read -rd '' -a all <"$dir/pids" || :
	for one in "${all[@]}"; do
		is_gone "$one" || return
	done
}

# ---- output ---------------------------------------------------------------------------

# first_status STATUS PIPELINE: of its first command
first_status() {
	local status

	status=$(timeout -k 1 60 bash -c "$2; echo \${PIPESTATUS[0]}" | tail -n 1)
	[ "$status" = "$1" ] && return
	echo "'$2' gave '$status', not $1"
	return 1
}

closed_pipe() {
	first_status 141 "'$twheel' every 50ms --json -- true | head -n 1" &&
		first_status 141 "'$twheel' every 1h --now --json -- true | head -n 1" &&
		first_status 141 "'$twheel' every 50ms --json-fd=3 -- true 3>&1 >/dev/null | head -n 1" &&
		first_status 141 "'$twheel' every 50ms -- echo tick | head -n 1" &&
		first_status 125 "trap '' PIPE; '$twheel' every 1h --now --json -- true 2>'$dir/err' | head -n 1" &&
		says err <<-END
			$twheel: write error: Broken pipe
		END
}

# The command that runs when nobody reads any more is not left alone.
closed_pipe_command() {
	rm -f "$dir/pids"
	first_status 141 "'$twheel' every 10ms --json -- sh -c 'echo \$\$ >>$dir/pids; [ \$(wc -l <$dir/pids) = 1 ] || sleep 1000' |
		{ until [ -s '$dir/pids' ] && [ \$(wc -l <'$dir/pids') = 2 ]; do sleep 0.05; done; }" && until_true all_gone
}

# full STATUS WORD...: what it prints is not written, and that is said.
full() {
	local want=$1 err status=0

	shift
	err=$(timeout -k 1 60 "$twheel" "$@" 2>&1 >/dev/full </dev/null) || status=$?
	[ "$status" = "$want" ] && [ "$err" = "$twheel: write error: No space left on device" ] && return
	echo "'$*' gave $status, not $want: $err"
	return 1
}

# Beside each other, since bench takes 2.5 s.
write_errors() {
	local word pids=() bad=0

	# Two files, since only one can run a file at a time.
	echo "after 1ms -- true" | tee "$dir/jobs" >"$dir/jobs2"
	for word in --help --version -h -V help "help run" "cron -h" "every 50ms --json -- true" "after 1ms --json -- true" \
		"at @$(($(date +%s) + 10)) --json -- true" "cron @daily --explain" "every day at 9:00 --explain=2 --json" \
		"run --json $dir/jobs" "run --json-fd=1 $dir/jobs2"; do
		# shellcheck disable=SC2086 # words
		full 125 $word & pids+=($!)
	done
	for word in ls info "info --json" "bench --timers=100 --backend=embedded" "plot $dir/table" \
		"bench --timers=100 --backend=embedded --json" "top -b --embedded" "top --json --embedded"; do
		# shellcheck disable=SC2086 # words
		full 1 $word & pids+=($!)
	done
	for word in "${pids[@]}"; do
		wait "$word" || bad=1
	done
	return "$bad"
}

# Nobody reads, and nobody goes: what cannot be told holds up no signal.
full_pipe() {
	local fd command

	rm -f "$dir/fifo"
	mkfifo "$dir/fifo" && exec {fd}<>"$dir/fifo" && head -c 65536 /dev/zero >&"$fd" || return
	cat >"$dir/jobs" <<-END
		after 1ms -- echo \$\$ >'$dir/pids'
		after 1ms -- exec sleep 1000
	END
	for command in "every 50ms --json-fd=3 -- sh -c 'echo \$\$ >$dir/pids'" "run --json-fd=3 '$dir/jobs'"; do
		eval "begin '$twheel' $command" 3>"$dir/fifo" || return
		sleep 0.2
		kill "$pid"
		ends 143 || return
	done
	# So it is with an error of a command.
	"$twheel" after 1ms -- "$dir/nothing" 2>"$dir/fifo" >"$dir/out" & pid=$!
	sleep 0.2
	kill "$pid"
	ends 143 || return
	exec {fd}>&-
}

closed_descriptors() {
	local status=0

	"$twheel" --version >&- 2>"$dir/err" || status=$?
	[ "$status" = 125 ] && grep -q 'write error' "$dir/err" || return
	"$twheel" after 1ms --json -- true >&- 2>"$dir/err" || status=$?
	[ "$status" = 125 ] && grep -q 'write error' "$dir/err" || return
	# They are not somebody else's then, neither in twheel nor in the command.
	"$twheel" after 1ms -- sh -c "ls -l /proc/\$\$/fd >$dir/out" <&- >&- 2>&- || return
	! grep -E ' [02] -> .*(event|signal|timer|null)' "$dir/out"
}

json_fd() {
	gives 0 bash -c "'$twheel' every 10ms --count=2 --json-fd=3 -- echo '{' 3>'$dir/json'" && says out <<-END || return
		{
		{
	END
	[ "$(grep -c '^{"run":[12],.*}$' "$dir/json")" = 2 ] || return
	echo 'after 1ms -- echo "{"' >"$dir/jobs"
	gives 0 bash -c "'$twheel' run --json-fd=3 '$dir/jobs' 3>'$dir/json'" && grep -q '^{"line":1' "$dir/json" &&
		gives 125 "$twheel" after 1ms --json-fd=9 -- true && says err <<-END || return
			$twheel: file descriptor 9 is not open for writing
			Try 'twheel --help' for more information.
		END
	# The commands do not keep it open.
	[ -z "$( (timeout 60 "$twheel" after 1ms --json-fd=3 -- sh -c 'ls /proc/$$/fd' | grep -x 3) 3>"$dir/json")" ]
}

# ---- what is inherited --------------------------------------------------------------------

ignored() {
	local sig

	for sig in HUP INT TERM; do
		begin env --ignore-signal="$sig" "$twheel" every 300ms --now --count=2 -- sh -c "echo \$\$ >>'$dir/pids'; sleep 0.2" || return
		kill "-$sig" "$pid"
		kill "-$sig" "$(cat "$dir/pids")" # the command has inherited it
		ends 0 || return
	done
	gives 0 env --ignore-signal=HUP "$twheel" after 1ms -- sh -c 'kill -HUP $$'
}

ignored_child() {
	gives 7 env --ignore-signal=CHLD "$twheel" after 1ms -- sh -c 'exit 7' &&
		gives 1 env --ignore-signal=CHLD "$twheel" every 1ms --count=2 -- false &&
		gives 0 env --ignore-signal=CHLD "$twheel" plot "$dir/table"
}

blocked() {
	begin env --block-signal=TERM "$twheel" every 1h --now -- sh -c "echo \$\$ >'$dir/pids'" || return
	kill "$pid"
	ends 143 && gives 0 env --block-signal=TERM "$twheel" after 1ms -- sh -c 'kill $$'
}

# With as many descriptors as one likes: it says that they are too few, or works, and can be ended.
descriptors() {
	local n status

	for n in {4..16}; do
		(
			status=0
			bash -c "ulimit -n $n; exec timeout -k 60 5 '$twheel' after 1h" 2>"$dir/err.$n" || status=$?
			echo "$status" >"$dir/status.$n"
		) &
	done
	wait
	for n in {4..16}; do
		status=$(cat "$dir/status.$n")
		[ "$status" = 124 ] || { [ "$status" = 125 ] && [ -s "$dir/err.$n" ]; } || {
			echo "$n descriptors: $status"
			cat "$dir/err.$n"
			return 1
		}
	done
	[ "$(cat "$dir/status.4" "$dir/status.16" | xargs)" = "125 124" ]
}

# ---- stopping --------------------------------------------------------------------------------

# A shell that waits for a process of its own.
family="sh -c 'echo \$PPID \$\$ >$dir/pids; exec sleep 1000'; :"
# That one has become what it is: before, its shell might take a signal and lose it.
asleep() { grep -qsx sleep "/proc/$(cut -d ' ' -f 2 "$dir/pids")/comm"; }
# As before, but they hear nothing.
deaf="trap '' TERM INT HUP; sleep 1000 & echo \$\$ \$! >'$dir/pids'; while :; do wait; done"

whole_group() {
	local sig n=0

	for sig in HUP INT QUIT TERM; do
		n=$(kill -l "$sig")
		# What runs in the background of a shell like this one ignores some of them.
		begin env --default-signal="$sig" "$twheel" after 1ms -- sh -c "$family" && until_true asleep || return
		kill "-$sig" "$pid"
		ends $((128 + n)) && until_true all_gone || return
	done
	echo "after 1ms -- $family" >"$dir/jobs"
	begin "$twheel" run "$dir/jobs" && until_true asleep || return
	kill "$pid"
	ends 143 && until_true all_gone
}

heard_both() { ! knows "$pid" ShdPnd INT && ! knows "$pid" ShdPnd TERM; }
# If the host keeps twheel between the two for so long that they are not at once, it is done again.
second_kills() { in_time both_at_once; }

both_at_once() {
	begin env --default-signal=INT "$twheel" after 1ms -- sh -c "$deaf" || return 1
	# At once: that may be the same one, sent twice. It is stopped meanwhile, or a busy host might
	# let it see the second one later.
	kill -STOP "$pid"
	kill -INT "$pid"
	kill -TERM "$pid"
	kill -CONT "$pid"
	until_true heard_both || return 1
	sleep 0.7
	if is_gone "$pid" || all_gone; then
		ends 130 && until_true all_gone || return 1
		return 2
	fi
	kill -TERM "$pid"
	ends 130 && until_true all_gone || return 1
}

ms() { echo $(($(date +%s%N) / 1000000)); }

kill_after() {
	local command told

	# The shell itself, or one that it has left behind.
	for command in "$deaf" "(trap '' TERM; sleep 1000 & echo \$! >'$dir/pids'); sleep 1000"; do
		begin "$twheel" after 1ms --kill-after=300ms -- sh -c "$command" || return
		told=$(ms)
		kill "$pid"
		ends 143 && [ $(($(ms) - told)) -ge 300 ] && until_true all_gone || return
	done
	# None is a time, too.
	begin "$twheel" after 1ms --kill-after=0 -- sh -c "$deaf" || return
	kill "$pid"
	ends 143 && until_true all_gone || return
	echo "every 1h --now -- $deaf" >"$dir/jobs"
	begin "$twheel" run -k 100ms "$dir/jobs" || return
	kill "$pid"
	ends 143 && until_true all_gone && gives 125 "$twheel" after 1s --kill-after=x -- true
}

# Commands start all the time. Wherever that is when the signal comes, nothing is left running.
# Every other time many are to start at the moment when the signal comes.
any_moment() {
	local i mark=$((RANDOM + 100000)).$$

	for i in {1..64}; do
		echo "after $((i * 500))us -- exec sleep $mark"
	done >"$dir/jobs"
	for i in {1..30}; do
		"$twheel" run --jobs=64 "$dir/jobs" &
		pid=$!
		sleep "0.0$((i % 4))$i"
		[ $((i % 2)) = 0 ] || { kill -STOP "$pid"; sleep 0.03; }
		kill "$pid"
		kill -CONT "$pid"
		until_true is_gone "$pid" || kill -KILL "$pid"
		wait "$pid" 2>/dev/null || :
	done
	# What was told to end may take its time on a busy host.
	until_true none_marked "$mark"
}
none_marked() { ! grep -lzqsxF "$1" /proc/[0-9]*/cmdline; }

# A process that is stopped hears it all the same.
stopped_hears() {
	begin "$twheel" after 1ms -- sh -c "$family" && until_true asleep || return
	kill -STOP "$(cut -d " " -f 1 "$dir/pids")"
	kill "$pid"
	ends 143 && until_true all_gone
}

# ---- starting --------------------------------------------------------------------------------

no_interpreter() {
	cat >"$dir/script" <<-'END'
		echo "script $1"
		exit 3
	END
	chmod +x "$dir/script"
	gives 3 "$twheel" after 1ms -- "$dir/script" word && says out <<<"script word" &&
		gives 3 env "PATH=$dir:$PATH" "$twheel" after 1ms -- script word && says out <<<"script word"
}

# The status of a command is not taken for one of twheel's own.
own_status() {
	gives 1 "$twheel" every 10ms --count=2 --json -- sh -c 'exit 127' && [ "$(wc -l <"$dir/out")" = 2 ] &&
		gives 126 "$twheel" every 10ms --count=2 -- /dev/null && gives 125 "$twheel" after 1ms -- sh -c 'exit 125'
}

# What plot draws.
printf '%s\t' name arm_ns cancel_ns read_ns late_p50_ns late_p99_ns late_max_ns >"$dir/table"
printf '\nx\t1\t2\t3\t4\t5\t6\n' >>"$dir/table"

echo 1..19
[ -n "${TWHEEL:-}" ] || builds || exit
point "a pipe that nobody reads ends twheel" closed_pipe
point "a pipe that nobody reads ends the running command" closed_pipe_command
point "an error message if output cannot be written" write_errors
point "a pipe that nobody empties does not hold up signals" full_pipe
point "closed standard descriptors stay closed" closed_descriptors
point "--json-fd: apart from what the commands print" json_fd
point "signals that were ignored are ignored" ignored
point "the status is the command's with SIGCHLD ignored" ignored_child
point "signals that were blocked end twheel, and are blocked in the command" blocked
point "an error message if there are too few descriptors" descriptors
point "a signal reaches all processes of a command" whole_group
point "a second signal kills the commands" second_kills
point "--kill-after: a command that does not end is killed" kill_after
point "a signal at any moment leaves nothing behind" any_moment
point "a stopped command gets signals" stopped_hears
point "a script without an interpreter is run by the shell" no_interpreter
point "exit status 126 and 127 of a command are passed on" own_status
point "terminal: twheel as a job of a shell" python3 selftest/lib/terminal.py "$twheel" job
point "terminal: the status line" python3 selftest/lib/terminal.py "$twheel" line
exit $bad
