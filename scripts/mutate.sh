#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# mutate.sh [WORD]: would the tests notice? Applies each wrong edit of
# selftest/mutations, or those whose line has WORD in it, to a copy of its own, and runs
# tests until one fails. Where none does there is a test to write. So is it a failure
# where an edit does not apply any more, or does not compile.
#
# shellcheck disable=SC2119,SC2317 # all sources; noticed() calls the stages
#
# From the stage that the edit names, through those after it:
#	calendar	the tests of calendar/ (half a minute), of which no other stage knows
#	native	the wheel's tests (seconds), the fuzzer's corpus, the proofs' probe
#	uml	the modules in the debugging kernel (half a minute)
#	qemu	and in the virtual machine, with two CPUs (two minutes)
#	icount	and where instructions are time: who is late, and what tasks get (two minutes)
. "$(dirname "$0")/lib.sh"

out=$top/build/mutate
word=${1:-}
nr=0 bad=0

# The tests of the wheel, without the sanitizers; a wheel that runs in circles is noticed.
native() {
	local test dir=$copy/build/wheel

	make -s -C "$copy/selftest/wheel" CFLAGS="-O1 -I../.. -I.." all || return
	for test in "$dir"/{oracle,limits,damage,resume,table}{-small,} "$dir"/{jump,spike}; do
		SEED=1 OPS=1000000 timeout 60 "$test" || return
	done
}

# An error: is the compiler's; what a sanitizer says is not.
calendar() { make -s -C "$copy/selftest/calendar" check 2>&1 | sed 's/runtime error:/undefined:/'; }
fuzz() { "$copy/scripts/fuzz.sh" 10; }

build() { # KDIR TARGET NAME=VALUE...
	make -s -C "$1" M="$copy" CONFIG_TWHEEL_SELFTEST=m "${2:-modules}" "${@:3}"
}

guest() { # SCRIPT SECONDS SUITES TESTS KMODS
	local run=$copy/build/run

	mkdir -p "$copy/build"
	printf "mode=selftest cycles=1 suites='%s' tests='%s' kmods='%s' seconds=60\n" "$3" "$4" "$5" >"$run"
	"$copy/scripts/$1" mutant "$2" "$run" "$copy"/twheel{,_chardev}.ko \
		"$copy"/selftest/kmod/*.ko "$copy/samples/twheel_sessions.ko" \
		"$top"/build/{uapi,uml/tests}/test_* "$top/build/uapi/suspend"
}

uml() {
	build "$(scripts/uml-kernel.sh)" modules ARCH=um SUBARCH=x86_64 &&
		guest uml.sh 150 starving "test_basic test_errors test_query test_drain test_read test_poll
			test_fires test_life test_stress,100000 test_fail" \
			"twheel_test.ko twheel_fail.ko twheel_torture.ko,seconds=2,nr_timers=2000"
}

qemu() {
	build "$KDIR" clean && build "$KDIR" &&
		guest boot.sh 400 hotplug "test_basic test_errors test_query test_drain test_read test_poll
			test_fires test_life test_limits test_bounds test_stress,1000000 test_fuzz,8" \
			"twheel_test.ko twheel_torture.ko"
}

icount() {
	build "$KDIR" clean && build "$KDIR" &&
		ICOUNT=1 guest boot.sh 400 '' 'test_attack test_neighbour,counted,3,4,9,17' ''
}

# Replace @old, which must be there once, whole lines of it, by @new.
edit() {
	OLD=$old NEW=$new perl -0777 -i -pe '
		$n = () = /^\Q$ENV{OLD}\E/mg;
		die "the lines are there $n times\n" if $n != 1;
		s/^\Q$ENV{OLD}\E/$ENV{NEW}/m;' "$copy/$file"
}

# Which stage notices? Prints it, and what it said first.
noticed() {
	local stage status on=

	for stage in calendar native fuzz uml qemu icount; do
		[ "$stage" != "$first" ] || on=1
		[ "$on" ] || continue
		[ "$first/$stage" != calendar/native ] || return 1
		status=0
		"$stage" >"$copy/$stage.log" 2>&1 </dev/null || status=$?
		if [ "$status" != 0 ]; then
			echo "$stage: $(grep -aE -m 1 '^ *(not ok|# (verdict|failed)|.*error:)' "$copy/$stage.log" ||
				echo "status $status")"
			return
		fi
	done
	return 1
}

mutation() {
	local copy=$out/$((nr + 1)) what

	nr=$((nr + 1))
	mkdir -p "$copy"
	sources | xargs cp --parents -t "$copy"
	if ! edit 2>"$copy/edit.log"; then
		what="does not apply: $(tail -n 1 "$copy/edit.log")"
	elif what=$(noticed); then
		case $what in
		*error:*) ;;
		*)
			echo "ok $nr - $file: $name: $what"
			rm -rf "$copy"
			return
			;;
		esac
	fi
	bad=1
	echo "not ok $nr - $file: $name: ${what:-nobody noticed}"
}

begin() { file=$2 first=$3 name=${*:4} old='' new=''; }

rm -rf "$out"
cd "$top"
KDIR=$(scripts/kdir.sh)
export KDIR
quiet make -s -C selftest/uapi
quiet make -s -C selftest/uml
while IFS= read -r line || [ "$line" ]; do
	case $line in
	'== '*"$word"*) read -ra words <<<"$line"; begin "${words[@]}" ;;
	'== '*) first='' ;;
	-*) old+=${line#-}$'\n' ;;
	+*) new+=${line#+}$'\n' ;;
	'') [ -z "${first:-}" ] || mutation; first='' ;;
	esac
done < <(cat selftest/mutations; echo)
echo "1..$nr"
exit $bad
