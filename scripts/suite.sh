# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
# What the scripts that run tests share; sourced after lib.sh, with the directory of the
# suites' logs as $log.
passed=0 failed=0
mkdir -p "$log"

# suite NAME COMMAND...: run a program that prints TAP, and count its points.
suite() {
	local name=$1 began=$SECONDS status=0

	shift
	echo "# suite $name: $*"
	"$@" </dev/null 2>&1 | tee "$log/$name" || status=${PIPESTATUS[0]}
	counted "$name" "$status" "$((SECONDS - began)) s"
}

# counted NAME STATUS TIME: judge what the suite printed.
counted() {
	local name=$1 count p f

	count=$(awk -v status="$2" -v skips=scripts/skips.expected -f scripts/tap.awk "$log/$name")
	sed '$d' <<<"$count"
	read -r p f <<<"$(tail -n 1 <<<"$count")"
	passed=$((passed + p)) failed=$((failed + f))
	echo "# suite $name: $p passed, $f failed, $3"
}

# suites N NAME...: the suites of these names, each a function, N at a time and in this order,
# which is how they may wait for what an earlier one makes. What one printed is shown as a whole,
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
		# With a process group of its own, which a signal ends with all that is in it.
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

# The seconds of CPU are of the suite and all its processes, emulators too.
background() {
	local began=$SECONDS status=0

	"$1" </dev/null >"$log/$1" 2>&1 || status=$?
	times >"$log/$1.times"
	awk -F '[ms ]+' -v status="$status" -v seconds=$((SECONDS - began)) '
		{ cpu += 60 * ($1 + $3) + $2 + $4 }
		END { printf "%d %d s, %.0f s of CPU\n", status, seconds, cpu }' "$log/$1.times" >"$log/$1.new"
	mv "$log/$1.new" "$log/$1.status"	# as a whole, for who waits for it
}

# The next of the running ones that ends.
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

# uapi DIR: the tests of the device that are in it. Attacks and busy readers have machines of their
# own, and costs, priorities and the long rest of test_close are the same for 32 bits.
uapi() {
	find "$1" -name 'test_*' -executable | sort |
		grep -vE '/test_((attack|busy|neighbour|watchers).*|chaos32|cost32|close32|rt32)$'
}

# figures LABEL: of a machine's report, in groups of suites: label, group, passed, failed,
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

# The last line of all.
summary() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}
