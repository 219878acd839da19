#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# check.sh [fast]: every test; fast leaves out the virtual machines. Ends with the
# line "N passed, N failed". tap.awk says what counts.
#
# OPERATIONS, of test_stress, and FUZZ, seconds of test_fuzz in each kernel, can be set.
. "$(dirname "$0")/lib.sh"
cd "$top"

: "${OPERATIONS:=10000000}" "${FUZZ:=8}"
log=build/check
. scripts/suite.sh

selftest() {
	local run=build/qemu/selftest.run tests kmods names
	local examples=(build/examples/{epoll,libevent,libuv,liburing,rust,echo_timerfd,echo_twheel})

	point "the modules build" modules CONFIG_TWHEEL_SELFTEST=m || return
	point "the selftests build" quiet make -C selftest/uapi || return
	point "and those of 32 bits" quiet make -C selftest/uapi CFLAGS='-O2 -g -m32' \
		O="$top/build/uapi32" SUFFIX=32 || return
	point "and those of libtwheel" quiet make -C selftest/lib || return
	point "and twheel(1)" quiet make -C tools/twheel || return
	point "and the examples" quiet make -C examples guest || return
	mapfile -t tests < <(uapi build/uapi; uapi build/uapi32
		find build/libtest/plain -name 'test_*' -executable | sort
		echo build/libtest/plain/step; echo selftest/lib/guest_command.sh
		echo build/examples/test_echo; echo selftest/examples/alarms.sh
		echo selftest/uapi/debugfs.sh)
	names=" ${tests[*]##*/} "
	names=${names/ alarms.sh / alarms.sh,epoll,libevent,libuv,liburing,rust,asyncio }
	names=${names/ test_stress / test_stress,$OPERATIONS }
	names=${names/ test_fuzz / test_fuzz,$FUZZ }
	mapfile -t kmods < <(find selftest/kmod -name '*.ko' 2>/dev/null | sort)
	mkdir -p build/qemu
	cat >$run <<-END
		mode=selftest
		suites='sessions hotplug suspend'
		seconds=300
		tests='$names'
		kmods='${kmods[*]##*/}'
		export TWHEEL_BACKEND=kernel
	END
	point "the machine's verdict" scripts/boot.sh selftest 600 $run \
		twheel.ko twheel_chardev.ko samples/twheel_sessions.ko \
		build/uapi/suspend build/tools/twheel selftest/lib/tap.sh "${examples[@]}" build/examples/python/* "${tests[@]}" "${kmods[@]}"
}

# Shares of a CPU and lateness are the same each time where a ns is an instruction, whatever else
# the host does.
attack() {
	local run=build/qemu/attack.run

	mkdir -p build/qemu
	echo "mode=selftest cycles=1 tests='test_attack test_busy'" >"$run"
	ICOUNT=1 point "the machine's verdict" scripts/boot.sh attack 240 "$run" \
		twheel.ko twheel_chardev.ko build/uapi/test_{attack,busy}
}

# uml_boot NAME SECONDS TESTS KMODS [SUITES], with kernel parameters in APPEND
uml_boot() {
	local run=build/uml/$1.run

	printf "mode=selftest tests='%s' kmods='%s' suites='%s'\n" "$3" "$4" "${5:-}" >"$run"
	scripts/uml.sh "$1" "$2" "$run" build/uml/src/twheel{,_chardev}.ko \
		build/uml/src/{selftest/kmod,samples}/*.ko build/{uapi,uml/tests}/test_* \
		build/tools/twheel selftest/lib/tap.sh selftest/uapi/debugfs.sh
}

uml() {
	local kernel

	kernel=$(scripts/uml-kernel.sh) || return
	point "the modules build" modules_for "$kernel" "$top/build/uml/src" \
		ARCH=um SUBARCH=x86_64 KCFLAGS=-Werror || return
	point "the selftests build" quiet make -C selftest/uapi || return
	point "and those of failing allocations" quiet make -C selftest/uml || return
	point "and twheel(1)" quiet make -C tools/twheel || return
	point "the debugging kernel's verdict" uml_boot debug 240 \
		"test_basic test_errors test_query test_drain test_read test_poll test_fires test_life
		 test_uring test_stress test_fuzz,$FUZZ test_fail debugfs.sh" \
		"twheel_test.ko twheel_fail.ko twheel_torture.ko,seconds=3,nr_timers=2000" \
		starving || return
	APPEND=time-travel=inf-cpu point "the verdict on a century" \
		uml_boot century 120 "" twheel_century.ko
}

groups=(build native libtest examples htmldocs lint prove fuzz uapi rig uml)
[ "${1:-}" != fast ] || groups=(build native libtest examples htmldocs lint prove)
scripts/deps.sh "${groups[@]}"
KDIR=$(scripts/kdir.sh)
export KDIR

fuzz() { scripts/fuzz.sh 30; }
wheel() { make -s -C selftest/wheel check; }
prove() { scripts/prove.sh; }
lint() { scripts/lint.sh; }
docs() { scripts/test-docs.sh; }
install() { scripts/test-install.sh; }
examples() { make -s -C examples check; }

# beside NAME...: suites that need nothing but CPU time, one after the other. told NAME is what
# one of them printed, with its status.
beside() {
	local name status

	for name; do
		status=0
		"$name" </dev/null >"$log/$name.told" 2>&1 || status=$?
		echo "$status" >"$log/$name.status"
	done
}
told() { cat "$log/$1.told" && return "$(cat "$log/$1.status")"; }

# The last three build what others do, later than those.
patient=(wheel prove lint docs install examples)
if [ "${1:-}" != fast ]; then
	modules CONFIG_TWHEEL_SELFTEST=m && quiet make -C selftest/uapi
	patient=(attack fuzz "${patient[@]}")
fi
beside "${patient[@]}" &
suite verdict scripts/test-verdict.sh
suite lib make -s -C selftest/lib check
[ "${1:-}" = fast ] || suite uml uml
wait $!
for name in "${patient[@]}"; do
	suite "$name" told "$name"
done
[ "${1:-}" = fast ] || suite qemu selftest

summary
