#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# check.sh [fast]: every test; fast leaves out the virtual machines. Ends with the
# line "N passed, N failed". tap.awk says what counts.
. "$(dirname "$0")/lib.sh"
cd "$top"

passed=0 failed=0 log=build/check
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

selftest() {
	local run=build/qemu/selftest.run tests kmods

	point "the modules build" modules CONFIG_TWHEEL_SELFTEST=m || return
	point "the selftests build" quiet make -C selftest/uapi || return
	mapfile -t tests < <(find build/uapi -name 'test_*' -executable | sort)
	mapfile -t kmods < <(find selftest/kmod -name '*.ko' 2>/dev/null | sort)
	mkdir -p build/qemu
	cat >$run <<-END
		mode=selftest
		suites='sessions hotplug suspend'
		tests='${tests[*]##*/}'
		kmods='${kmods[*]##*/}'
	END
	point "the machine's verdict" scripts/boot.sh selftest 420 $run \
		twheel.ko twheel_chardev.ko samples/twheel_sessions.ko \
		build/uapi/suspend "${tests[@]}" "${kmods[@]}"
}

# uml_boot NAME SECONDS TESTS KMODS, with kernel parameters in APPEND
uml_boot() {
	local run=build/uml/$1.run

	printf "mode=selftest tests='%s' kmods='%s'\n" "$3" "$4" >"$run"
	scripts/uml.sh "$1" "$2" "$run" build/uml/src/twheel{,_chardev}.ko \
		build/uml/src/selftest/kmod/*.ko build/{uapi,uml/tests}/test_*
}

uml() {
	local kernel

	kernel=$(scripts/uml-kernel.sh) || return
	point "the modules build" modules_for "$kernel" "$top/build/uml/src" \
		ARCH=um SUBARCH=x86_64 KCFLAGS=-Werror || return
	point "the selftests build" quiet make -C selftest/uapi || return
	point "and those of failing allocations" quiet make -C selftest/uml || return
	point "the debugging kernel's verdict" uml_boot debug 180 \
		"test_basic test_errors test_query test_drain test_read test_poll test_fires test_fail" \
		"twheel_test.ko twheel_fail.ko twheel_torture.ko,seconds=3,nr_timers=2000" || return
	APPEND=time-travel=inf-cpu point "the verdict on a century" \
		uml_boot century 120 "" twheel_century.ko
}

groups=(build native lint uapi rig uml)
[ "${1:-}" != fast ] || groups=(build native lint)
scripts/deps.sh "${groups[@]}"
KDIR=$(scripts/kdir.sh)
export KDIR

suite verdict scripts/test-verdict.sh
suite wheel make -s -C selftest/wheel check
suite lint scripts/lint.sh
if [ "${1:-}" != fast ]; then
	suite qemu selftest
	suite uml uml
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
