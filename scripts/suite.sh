# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash disable=SC2154
# What the scripts that run tests share. Source it after lib.sh, with $log set to the directory for
# the logs of the suites.
passed=0 failed=0 skipped=0 failures=()
: "${points:=scripts/points.expected}"
mkdir -p "$log"

# suite NAME COMMAND...: run a program that prints TAP, and count its points.
suite() {
	local name=$1 began=$SECONDS status=0

	shift
	echo "# suite $name: $*"
	"$@" </dev/null 2>&1 | tee "$log/$name" || status=${PIPESTATUS[0]}
	counted "$name" "$status" "$((SECONDS - began)) s"
}

# counted NAME STATUS TIME: judge the output of the suite.
counted() {
	local name=$1 count p f s

	count=$(awk -v status="$2" -v suite="$name" -v least="$points" \
		-v skips=scripts/skips.expected -f scripts/tap.awk "$log/$name")
	sed '$d' <<<"$count"
	mapfile -t -O ${#failures[@]} failures < <(failures_of "$name" "$count")
	read -r p f s <<<"$(tail -n 1 <<<"$count")"
	echo "$name $((p + f + s))" >>"$log/counts"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "# suite $name: $p passed, $f failed, $3$([ "$s" = 0 ] || echo ", $s skipped")"
}

# failures_of NAME COUNT: the points of the suite that failed, with what the test says beside them,
# and what tap.awk says of the suite. COUNT is all that tap.awk printed.
failures_of() {
	{
		grep -a -B3 -A6 '^not ok' "$log/$1" | grep -aE '^(#|not ok)' || :
		sed '$d' <<<"$2"
	} | tr -d '\r\0' | awk -v suite="$1" '{ sub(/^# /, ""); print "# " suite ": " $0 }'
}

# complete MACHINE...: a suite with a point for each machine: each suite that points.expected has for
# it is in its log. A number at the end of a log's name stands for a part. selftest/qemu/init writes
# the lines.
complete() {
	awk -v points="$points" '
		FILENAME == points {
			suite = $1
			sub(/,.*/, "", suite)
			for (i = 3; !/^#/ && i <= NF; i++)
				expected[$i, suite] = has[$i] = 1
			next
		}
		FNR == 1 {
			machine = FILENAME
			sub(/.*\//, "", machine)
			sub(/_[0-9]+$/, "", machine)
			if (has[machine] && !(machine in missing)) {
				order[++nr] = machine
				missing[machine] = ""
			}
		}
		/^# suite .*: [0-9]+ passed, / { delete expected[machine, substr($3, 1, length($3) - 1)] }
		END {
			for (i in expected) {
				split(i, key, SUBSEP)
				missing[key[1]] = missing[key[1]] " " key[2]
			}
			print "1.." nr
			for (i = 1; i <= nr; i++) {
				machine = order[i]
				ran = machine " ran all its suites"
				if (missing[machine] != "") {
					bad = 1
					print "not ok " i " - " ran ", but not" missing[machine]
				} else {
					print "ok " i " - " ran
				}
			}
			exit bad
		}' "$points" "${@/#/$log/}"
}

# outgrown MACHINE...: a suite of one point: no suite that has run, here or in these machines, has at
# least a tenth more points than points.expected says. There more points than one suite has could be
# lost, and nobody would notice.
outgrown() {
	awk -v points="$points" -v counts="$log/counts" '
		function look(suite, n) {
			if (suite in most && n > most[suite] && n >= 1.1 * most[suite])
				grown = grown " " suite " (" n ")"
		}
		FILENAME == points {
			suite = $1
			sub(/,.*/, "", suite)
			sub(/.*\.\./, "", $2)
			if (!/^#/ && NF && $2 + 0 > most[suite])
				most[suite] = $2 + 0
			next
		}
		FILENAME == counts { look($1, $2); next }
		/^# suite .*: [0-9]+ passed, / {
			look(substr($3, 1, length($3) - 1), $4 + $6 + ($NF == "skipped" ? $(NF - 1) : 0))
		}
		END {
			print "1..1"
			print (grown ? "not " : "") "ok 1 - no suite has outgrown " points (grown ? ", but" grown : "")
			exit grown != ""
		}' "$points" "$log/counts" "${@/#/$log/}"
}

# suites N NAME...: run the suites of these names, each a function, N at a time and in this order,
# so that a suite may wait for what an earlier one makes. The output of a suite is shown as a whole
# when it has ended.
suites() {
	local most=$1 name
	local -A running=()

	shift
	trap 'kill_all "${!running[@]}"' EXIT
	trap 'exit 130' INT TERM
	for name; do
		[ ${#running[@]} -lt "$most" ] || next_told
		echo "# suite $name begins"
		# Each suite has a process group of its own, so that a signal ends all its
		# processes.
		set -m
		background "$name" &
		set +m
		running[$!]=$name
	done
	while [ ${#running[@]} != 0 ]; do
		next_told
	done
	trap - EXIT INT TERM
}

kill_all() {
	local pid

	for pid; do
		kill -- "-$pid" 2>/dev/null || :
	done
}

# The seconds of CPU include all processes of the suite, also emulators.
background() {
	local began=$SECONDS status=0

	"$1" </dev/null >"$log/$1" 2>&1 || status=$?
	times >"$log/$1.times"
	awk -F '[ms ]+' -v status="$status" -v seconds=$((SECONDS - began)) '
		{ cpu += 60 * ($1 + $3) + $2 + $4 }
		END { printf "%d %d s, %.0f s of CPU\n", status, seconds, cpu }' "$log/$1.times" >"$log/$1.new"
	mv "$log/$1.new" "$log/$1.status"	# at once, since other suites wait for it
}

# Wait for the next suite that ends.
next_told() {
	local name pid status time

	wait -n -p pid "${!running[@]}" || :
	name=${running[$pid]}
	unset "running[$pid]"
	read -r status time <"$log/$name.status"
	echo "# suite $name"
	cat "$log/$name"
	counted "$name" "$status" "$time"
}

# point NAME COMMAND...: a suite of one point.
point() {
	local name=$1

	shift
	echo 1..1
	if "$@"; then
		echo "ok 1 - $name"
	else
		echo "not ok 1 - $name"
		return 1
	fi
}

# judged MACHINE LOGS COMMAND...: a suite of one point: whether this machine, whose logs are there,
# did its work. If not, the name of the point says why, and in which suite. A list of names may be
# all that somebody gets to see.
judged() {
	local name="the verdict of $1" logs=$2

	shift 2
	if "$@"; then
		point "$name" true
	else
		point "$name$(why "$logs")" false
	fi
}

why() {
	{
		sed -n 's/^verdict: //p' "$1/verdict"
		sed -n 's/^# suite \([^ ]*\)$/the last suite was \1/p' "$1/report" | tail -n 1
	} 2>/dev/null | tr -d '\r\0' | paste -sd ';' | sed '/./s/^/: /'
}

# found DIR CONDITION...: what find(1) finds there. It is an error if that is nothing.
found() { find "$@" | sort | grep .; }

# uapi DIR: the tests of the device in that directory, without those of attacks, busy readers and
# costs, which have machines of their own; for 32 bits also without those of priorities and
# test_close, which would be the same.
uapi() {
	found "$1" -name 'test_*' -executable |
		grep -vE '/test_((attack|busy|cost|neighbour|watchers).*|chaos32|close32|rt32)$'
}

# figures LABEL: print a machine's report by groups of suites: label, group, passed, failed,
# seconds
figures() {
	awk -v label="$1" -v OFS='\t' '
		/^# suite .*: [0-9]+ passed, / {
			group = "machine"
			if ($3 ~ /^test_/)
				group = $3 ~ /32:$/ ? "32 bits" : "device"
			else if ($3 ~ /\.ko:$/)
				group = "modules"
			passed[group] += $4
			failed[group] += $6
			seconds[group] += $8
		}
		END {
			for (group in passed)
				print label, group, passed[group], failed[group], seconds[group]
		}'
}

# Print what failed once more, since the end of the output may be all that somebody gets to see, and
# the last line of all.
summary() {
	[ ${#failures[@]} = 0 ] || printf '%s\n' "${failures[@]:0:100}"
	[ $skipped = 0 ] || echo "# $skipped points were skipped, for reasons in scripts/skips.expected"
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}
