#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# mutate.sh [PATTERN]: would the tests notice wrong code? Apply each wrong edit of
# selftest/mutations, or those whose line PATTERN matches, to a copy of the tree, and run
# tests until a point fails. If none fails, a test is missing. The report names the
# stage, the suite and the point. `make lint` checks that each edit applies.
#
# Other outcomes are failures too: an edit no longer applies, it does not
# build, or a stage ends badly without a failed point. Each stage runs first on
# a copy without an edit, the control, and must pass.
#
# To be out of time says nothing: a busy host may be why. It counts only if the name of the edit says
# that something "hangs". A failed point may have that reason, too. So in the stages whose tests wait in
# real time, a test must fail twice.
#
# The stages. They run in this order, beginning with the one that the edit names:
#	native	the wheel's tests (seconds)
#	fuzz	the fuzzer's corpus, and ten seconds of its own
#	uml	the modules in the debugging kernel (half a minute)
#	qemu	the modules in the virtual machine, with two CPUs (two minutes)
#	cpus	the same with five CPUs on two nodes, two of which are isolated (a minute)
#	icount	the same with instructions as time: lateness, and what tasks get of a CPU (two minutes)
#	cpusets	on Linux 6.12, which tells modules what cpusets isolate: the same machine (a minute)
# For files that are not part of the kernel:
#	lib	libtwheel in a process, under sanitizers (seconds)
#	device	libtwheel over /dev/twheel, in the virtual machine (half a minute)
# For the calendar and twheel(1):
#	calendar	the tests of selftest/calendar (half a minute)
# For twheeld:
#	jobs:TEST	a test of selftest/jobs, such as jobs:test_quartz.py, with the sanitizers. They take from a
#			second to some minutes, and so each is a stage (scripts/long/edits.sh has their order)
#
# shellcheck disable=SC2317 # try() calls the stages
. "$(dirname "$0")/../lib.sh"
. "$top/scripts/long/edits.sh"

out=$top/build/mutate
pattern=${1:-}
nr=0 bad=0
declare -A controlled=()

# Each stage is a function that builds $copy, and one that runs its tests.

# ended STATUS: what a program's status says, if it is neither 0 nor 1.
ended() { [ "$1" = 124 ] && echo "# status 124: out of time" || echo "not ok - ended with status $1"; }

# The tests of the wheel, without the sanitizers but for limits-least, which takes no time: only they
# see an index that is beyond an array. A timeout ends a wheel that loops for ever.
native_builds() {
	make -s -C "$copy/selftest/wheel" "$copy/build/wheel/limits-least" O="$copy/build/wheel" &&
		make -s -C "$copy/selftest/wheel" O="$copy/build/wheel" CFLAGS="-O1 -I../.. -I.." all
}

native() {
	local test status

	for test in {oracle,limits,damage,resume,worst,table,back}{-small,} limits-least jump spike; do
		echo "# suite $test"
		status=0
		ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99 \
			SEED=1 OPS=1000000 timeout 60 "$copy/build/wheel/$test" || status=$?
		[ "$status" -le 1 ] || ended "$status"
		[ "$status" = 0 ] || return
	done
}

fuzz_builds() { make -s -C "$copy/selftest/fuzz"; }

fuzz() {
	echo "# suite fuzz"
	"$copy/scripts/gates/fuzz.sh" 10
}

calendar_builds() { make -s -j2 -C "$copy/selftest/calendar" all; }

calendar() {
	echo "# suite calendar"
	make -s -C "$copy/selftest/calendar" check
}

jobs_builds() { make -s -C "$copy/selftest/jobs" O="$copy/build/jobstest" all; }

# The first failed point is enough: the others may each wait for a minute. If a daemon dies, its test may end
# by an exception, and print no point: then the status tells of it.
jobs() { # TEST
	local test=$copy/build/jobstest/$1 status=0

	[[ $1 != *.py ]] || test=$copy/selftest/jobs/$1
	echo "# suite $1"
	JOBS=$copy/build/jobstest ASAN_OPTIONS=exitcode=99:detect_leaks=1 \
		UBSAN_OPTIONS=exitcode=99:print_stacktrace=1 timeout 1200 "$test" | sed '/^not ok /q' || status=$?
	[ "$status" != 124 ] || ended "$status"
	[ "$status" = 0 ] || echo "# exit status $status"
	return "$status"
}

kernel_builds() { # KDIR TARGET NAME=VALUE...
	make -s -C "$1" M="$copy" CONFIG_TWHEEL_SELFTEST=m "${@:2}"
}

guest() { # SCRIPT SECONDS SUITES TESTS KMODS FILE...
	local run=$copy/build/run

	mkdir -p "$copy/build"
	printf "mode=selftest hasty=1 cycles=1 suites='%s' tests='%s' kmods='%s' seconds=120 %s
		export TWHEEL_BACKEND=kernel\n" "$3" "$4" "$5" "${RUN:-}" >"$run"
	"$copy/scripts/machines/$1" mutant "$2" "$run" "${@:6}"
}

modules_guest() { # as guest, with the modules of $copy
	guest "$@" "$copy"/twheel{,_chardev}.ko "$copy"/{selftest/kmod/*,bench/kernel/twheel_{hold,probe}}.ko \
		"$copy/samples/twheel_sessions.ko" "$top/build/irqs_off" \
		"$top"/build/tools/twheel "$top"/selftest/{lib/tap.sh,uapi/debugfs.sh} \
		"$top"/build/{uapi,uml/tests}/test_* "$top"/build/uapi/{suspend,lives}
}

uml_builds() { kernel_builds "$(scripts/kernels/own-kernel.sh uml)" modules ARCH=um SUBARCH=x86_64; }

uml() {
	modules_guest uml.sh 400 starving "debugfs.sh test_basic test_errors test_query test_drain test_read
		test_poll test_fires test_life test_stress,100000 test_fail" \
		"twheel_test.ko twheel_states.ko twheel_tasks.ko twheel_promises.ko twheel_fail.ko
			twheel_torture.ko,seconds=2,nr_timers=2000"
}

qemu_builds() { kernel_builds "$KDIR" clean && kernel_builds "$KDIR" modules; }

qemu() {
	modules_guest boot.sh 400 'hotplug closing suspend resumed' "test_limits test_basic test_errors test_query
		test_drain test_read test_poll test_fires test_life test_bounds test_clocks test_uring_cmd
		test_stress,1000000 test_fuzz,8" \
		"twheel_test.ko twheel_states.ko twheel_tasks.ko twheel_promises.ko
			twheel_torture.ko,seconds=20 twheel_off.ko twheel_traced.ko"
}

cpus_builds() { qemu_builds; }

cpus() {
	SMP=5 NODES='0-1 2-4' APPEND='nohz_full=4 isolcpus=3,4' modules_guest boot.sh 400 cpusets '' \
		'twheel_alone.ko twheel_cpus.ko'
}

icount_builds() { qemu_builds; }

# What the areas of two thousand users take in the allocator of per-CPU memory is allowed for, as in scripts/check.sh.
icount() {
	RUN=tests_percpu=512 ICOUNT=1 modules_guest boot.sh 400 '' \
		'test_limits,500 test_attack test_cost irqs_off,500000,5000 test_neighbour,counted,3,4,6,7,9,16,19,24,26,28' \
		'twheel_budget.ko twheel_hold.ko'
}

cpusets_builds() {
	newer=$(scripts/kernels/kernel-debian.sh amd64 '6\.12\.[0-9]+\+deb12-cloud-amd64') || return
	kernel_builds "$newer/build" clean && kernel_builds "$newer/build" modules
}

cpusets() {
	KERNEL=$newer/vmlinuz SMP=5 NODES='0-1 2-4' APPEND='nohz_full=4 isolcpus=3,4' \
		modules_guest boot.sh 400 cpusets '' ''
}

lib_tests() { # VARIANT NAME...: their paths
	printf "$copy/build/libtest/$1/test_lib_%s\n" "${@:2}"
}

# Forks are tested without the sanitizers, see selftest/lib/Makefile.
lib_builds() {
	local tests

	mapfile -t tests < <(lib_tests asan model basic sizes poll within threads tables leave sched; lib_tests plain fork)
	make -s -j2 -C "$copy/selftest/lib" "${tests[@]}"
}

lib() {
	local test status=0

	for test in $(lib_tests asan model basic sizes poll within threads tables leave
		lib_tests plain fork; lib_tests asan sched); do
		echo "# suite ${test##*/}"
		TWHEEL_BACKEND=embedded ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99 \
			timeout 100 "$test" || status=$?
		[ "$status" -le 1 ] || ended "$status"
		[ "$status" = 0 ] || return
	done
}

device_builds() {
	local tests

	mapfile -t tests < <(lib_tests plain basic fork poll sched threads)
	make -s -j2 -C "$copy/selftest/lib" "${tests[@]}"
}

# The modules are those of this tree.
device() {
	local tests

	mapfile -t tests < <(lib_tests plain basic fork poll sched threads)
	guest boot.sh 300 '' "${tests[*]##*/}" '' "$top"/twheel{,_chardev}.ko "${tests[@]}"
}

# A stage is the name of its functions, and may have an argument for the second: STAGE[:ARGUMENT].

# run STAGE: return 0 if the stage's tests pass with $copy, 1 if one failed, and 2 if that is not
# known. $what says why.
run() {
	local log=$copy/$1.log

	! "${1%%:*}" "${1#*:}" >"$log" 2>&1 </dev/null || return 0
	if ! what=$(said "$log"); then
		what="ended badly, and no point failed: $(tail -n 1 "$log")"
	elif is_noticed "$what" "$name"; then
		what="$1: $what"
		return 1
	fi
	what="$1: $what"
	return 2
}

# try STAGE: build $copy, and run the stage. Returns as run does.
try() {
	local log=$copy/$1.log status=0 first_what

	if ! "${1%%:*}_builds" >"$log" 2>&1 </dev/null; then
		what="does not build: $(grep -m 1 -E 'error|Error' "$log" || tail -n 1 "$log")"
		return 2
	fi
	run "$1" || status=$?
	[ "$status" = 1 ] && in_real_time "$1" || return "$status"
	first_what=$what
	if run "$1"; then
		what="$first_what, but not when it was run again"
		return 2
	fi
	what=$first_what
	return 1
}

copy() {
	copy=$out/$1
	copy_sources "$copy"
}

# control STAGE: run the control, once for each stage
control() {
	local copy what name='' began=$SECONDS

	[ -z "${controlled[$1]:-}" ] || return 0
	copy control
	if ! try "$1"; then
		echo "Bail out! The control fails, without an edit: $what"
		exit 1
	fi
	controlled[$1]=1
	echo "# without an edit: $1 passes, $((SECONDS - began)) s"
}

edit() {
	what=$(printf '%s\0' "$file" "$old" "$new" | edits "$copy" 1)
	[ -z "$what" ]
}

# Try the stages from the first one on, until one notices the edit. Returns as try does.
noticed() {
	local stage status on=''

	for stage in $stages; do
		[ "$stage" != "$first" ] || on=1
		[ "$on" ] || continue
		control "$stage"
		status=0
		try "$stage" || status=$?
		[ "$status" = 0 ] || return "$status"
		what="nobody noticed"
	done
	return 2
}

mutation() {
	local copy what stages status=0

	nr=$((nr + 1))
	copy "$nr"
	if edit && has_stage; then
		noticed || status=$?
	fi
	if [ "$status" = 1 ]; then
		echo "ok $nr - $file: $name: $what"
		rm -rf "$copy"
	else
		bad=1
		echo "not ok $nr - $file: $name: $what"
	fi
}

cd "$top"
rm -rf "$out"
KDIR=$(scripts/kdir.sh)
export KDIR
quiet make -s -C selftest/uapi
quiet make -s -C selftest/uml
quiet make -s modules
quiet make -s command
guest_program build/irqs_off bench/kernel/irqs_off.c
each_edit mutation "$pattern"
echo "1..$nr"
[ $nr != 0 ] || { echo "# no edit matches: $pattern"; bad=1; }
exit $bad
