#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# fuzz.sh [SECONDS]: run the wheel, cron, time zones and twheeld under libFuzzer; see selftest/fuzz. Each
# target goes through its corpus first, and then makes up inputs: the targets of the wheel for
# SECONDS, the others, also those of a wheel whose clock is set, for a third of that. Two targets
# run at once.
# shellcheck disable=SC2317 # point calls the functions
. "$(dirname "$0")/../lib.sh"

seconds=${1:-60} out=$top/build/fuzz corpus=$top/selftest/fuzz/corpus
wheel=(real small) set=(back back-small) calendar=(cron zone) jobs=(def http)
# Short inputs are tried more often. One input may take a second, which is long; a host that stands
# still for some counts, too.
limits=(-max_len=96 -timeout=60)
nr=0 bad=0

point() {
	local name=$1 log=$2

	shift 2
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr - $name"
		return
	fi
	echo "not ok $nr - $name"
	bad=1
	# Show which check failed, or what a sanitizer reported, and where the input is.
	grep -aE '^# |ERROR|SUMMARY|runtime error|Test unit written' "$log" | sed 's/^\(# \)*/# /'
	echo "# log: $log"
}

replay() {
	[ "$1" != http ] || local limits=(-detect_leaks=0)
	local inputs=("$corpus/$1"/*)

	[ -s "${inputs[0]}" ] && "$out/$1" "${limits[@]}" "${inputs[@]}" >"$out/$1.replay" 2>&1
}

# begin TARGET SECONDS: libFuzzer writes new inputs to the first directory.
begin() {
	mkdir -p "$out/corpus-$1"
	"$out/$1" "${limits[@]}" -max_total_time="$2" -artifact_prefix="$out/$1-" \
		"$out/corpus-$1" "$corpus/$1" >"$out/$1.log" 2>&1 &
}

runs() { sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$out/$1.log"; }

# fuzz SECONDS TARGET...: fuzz all targets at the same time
fuzz() {
	local seconds=$1 status g
	local -A pid=()

	shift
	for g; do
		begin "$g" "$seconds"
		pid[$g]=$! pids+=($!)
	done
	for g; do
		status=0
		wait "${pid[$g]}" || status=$?
		point "$g: $(runs "$g") inputs in $seconds s" "$out/$g.log" [ "$status" = 0 ]
	done
}

quiet make -s -C "$top/selftest/fuzz"
echo 1..16
for g in "${wheel[@]}" "${set[@]}" "${calendar[@]}" "${jobs[@]}"; do
	point "$g: the corpus, $(find "$corpus/$g" -type f | wc -l) inputs" "$out/$g.replay" replay "$g"
done
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || :' EXIT
fuzz "$seconds" "${wheel[@]}"
fuzz $(((seconds + 2) / 3)) "${set[@]}"
# The data of a zone has a few hundred bytes.
limits=(-max_len=700 -timeout=60)
fuzz $(((seconds + 2) / 3)) "${calendar[@]}"
# The daemon is another thread, so what it has allocated when an input is over is not a leak.
limits+=(-detect_leaks=0)
fuzz $(((seconds + 2) / 3)) "${jobs[@]}"
exit $bad
