#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# coverage.sh: report which lines and branches the tests reach: those of wheel.h in native tests, those
# of twheel.c and twheel_chardev.c in user-mode Linux, without the headers that these include. If no
# test reaches a line, that is a failure, unless scripts/long/coverage.expected says why. If a test
# reaches a line that is listed there, that is a failure, too.
. "$(dirname "$0")/../lib.sh"

out=$top/build/coverage
read -ra small < <(sed -n 's/^SMALL[[:space:]]*:= //p' "$top/selftest/wheel/Makefile")

# one TEST GEOMETRY FLAG...: run one test
one() {
	local test=$out/wheel/$2/$1

	mkdir -p "${test%/*}"
	gcc -O0 --coverage -I"$top" -I"$top/selftest" "${@:3}" -o "$test" "$top/selftest/wheel/$1.c" &&
		SEED=1 OPS=2000000 timeout 600 "$test" >"$test.tap"
}

wheel() {
	local test

	for test in table limits damage resume oracle jump spike; do
		one "$test" real || return
	done
	for test in table limits damage resume oracle; do
		one "$test" small "${small[@]}" || return
	done
}

# boot NAME TESTS KMODS [SUITES]: the machine prints the counter files as text, in its report.
boot() {
	local run=$out/$1.run dir=$out/modules/$1

	mkdir -p "$dir"
	printf "mode=selftest suites='sessions %s' tests='%s' kmods='%s'\n" "${4:-}" "$2" "$3" >"$run"
	UML=$uml scripts/machines/uml.sh "coverage-$1" 300 "$run" "$out"/src/twheel{,_chardev}.ko \
		"$out"/src/selftest/kmod/*.ko "$out/src/samples/twheel_sessions.ko" \
		build/{uapi,uml/tests}/test_* >"$dir/report" || return
	cp "$out"/src/twheel{,_chardev}.gcno "$dir"
	awk -v dir="$dir" '
		/^#gcda / { n = split($2, path, "/"); file = dir "/" path[n] ".base64"; next }
		/^#=/ { print substr($0, 3) >file }' "$dir/report"
	for file in twheel twheel_chardev; do
		base64 -d "$dir/$file.gcda.base64" >"$dir/$file.gcda" || return
	done
}

# Build the modules for the debugging kernel with counters, and run the tests.
modules() {
	{ cat scripts/kernels/uml.config; echo CONFIG_GCOV_KERNEL=y; } >"$out/uml-gcov.config"
	kernel=$(scripts/kernels/own-kernel.sh "$uml") || return
	copy_sources "$out/src"
	quiet make -s -j"$(nproc)" -C "$kernel" M="$out/src" ARCH=um SUBARCH=x86_64 \
		CONFIG_TWHEEL_SELFTEST=m GCOV_PROFILE=y modules &&
		quiet make -s -C selftest/uapi && quiet make -s -C selftest/uml || return
	# Only tests for which a debugging kernel has the memory and the time. UML has neither
	# cgroups nor namespaces.
	tests=$(basename -a build/{uapi,uml/tests}/test_* |
		grep -vxE 'test_(attack.*|busy|close|cost|limits|timens)')
	boot debug "$(xargs <<<"$tests")" \
		"twheel_test.ko twheel_states.ko twheel_tasks.ko twheel_promises.ko twheel_fail.ko
		twheel_torture.ko,seconds=3,nr_timers=2000" starving &&
		APPEND=time-travel=inf-cpu boot century "" twheel_century.ko
}

# report NAME ROOT FILE...: paths in the counters are relative to ROOT
report() {
	local filters=() file

	for file in "${@:3}"; do
		filters+=(--filter "(.*/)?$file\$")
	done
	gcovr -r "$2" --json "$out/$1.json" "${filters[@]}" "$out/$1"
}

cd "$top"
rm -rf "$out"/{wheel,modules}*
mkdir -p "$out"
wheel || die "a test of the wheel failed, see $out/wheel"
report wheel "$top" wheel.h
uml=$top/build/coverage/uml-gcov
modules || die "the tests of the modules failed, see $out/modules"
report modules "$kernel" twheel.c twheel_chardev.c
scripts/long/coverage.py scripts/long/coverage.expected "$out"/{wheel,modules}.json
