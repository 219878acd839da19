# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
# What the scripts that run tests share; sourced after lib.sh, with the directory of the
# suites' logs as $log.
passed=0 failed=0
mkdir -p "$log"

# suite NAME COMMAND...: run a program that prints TAP, and count its points.
suite() {
	local name=$1 began=$SECONDS status=0 count

	shift
	echo "# suite $name: $*"
	"$@" </dev/null 2>&1 | tee "$log/$name" || status=${PIPESTATUS[0]}
	count=$(awk -v status="$status" -v skips=scripts/skips.expected -f scripts/tap.awk "$log/$name")
	sed '$d' <<<"$count"
	read -r p f <<<"$(tail -n 1 <<<"$count")"
	passed=$((passed + p)) failed=$((failed + f))
	echo "# suite $name: $p passed, $f failed, $((SECONDS - began)) s"
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

# uapi DIR: the tests of the device that are in it. test_attack and test_busy have a machine of
# their own, and costs, priorities and the long rest of test_close are the same for 32 bits.
uapi() {
	find "$1" -name 'test_*' -executable | sort | grep -vE '/test_((attack|busy).*|cost32|close32|rt32)$'
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
