#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check.sh [fast]: every test; fast leaves out the virtual machines. Ends with the
# line "N passed, N failed". tap.awk says what counts.
#
#	ONLY=s		some of the suites, of those at the end of this file
#	JOBS=n		how many at a time: one more than there are CPUs, since most wait now and then
#	OPERATIONS, of test_stress, FUZZ, seconds of test_fuzz in each kernel, and TORTURE, seconds of
#			twheel_torture, can be set; make debug and make soak take longer ones
. "$(dirname "$0")/lib.sh"
cd "$top"

: "${OPERATIONS:=10000000}" "${FUZZ:=8}" "${TORTURE:=20}" "${JOBS:=$(($(nproc) + 1))}"
log=build/check
. scripts/suite.sh

# What the other suites use is built first, so that no two of them build the same.
build() {
	point "the library, the command and the manual pages build" quiet make -s -j2 lib command man || return
	point "and the modules" modules CONFIG_TWHEEL_SELFTEST=m || return
	point "and the tests of libtwheel" quiet make -j2 -C selftest/lib all checks || return
	[ -z "$machines" ] || build_guest
}

build_guest() {
	point "and the selftests" quiet make -j2 -C selftest/uapi || return
	point "and those of 32 bits" quiet make -j2 -C selftest/uapi CFLAGS='-O2 -g -m32' \
		O="$top/build/uapi32" SUFFIX=32 || return
	point "and the examples" quiet make -j2 -C examples guest || return
	point "and those of failing allocations" quiet make -C selftest/uml
}

build_uml() {
	local kernel

	kernel=$(scripts/uml-kernel.sh) || return
	point "the modules build for user-mode Linux" modules_for "$kernel" "$top/build/uml/src" \
		ARCH=um SUBARCH=x86_64 KCFLAGS=-Werror
}

# after NAME: wait for that suite, which is earlier in the list. If it did not build there is
# nothing to test. The time of the suite that waits begins then.
after() {
	local status

	while [ ! -e "$log/$1.status" ]; do
		sleep 0.2
	done
	read -r status _ <"$log/$1.status"
	began=$SECONDS
	[ "$status" = 0 ]
}

# The machines. Each is a suite that boots one, in QEMU or in user-mode Linux, and they run beside
# each other: what sleeps in one leaves the CPUs to the other ones. So a machine has no more to
# do than takes it a minute alone, or is one test that does. The modules are loaded and unloaded
# many times in one of each kind.

# The callers of 32 bits. They come in by compat_ptr_ioctl(), and behind that is the same code:
# those programs are here that try each call and each structure. The other ones, of what happens
# later and to whom, would see nothing that they do not see with 64 bits; `make matrix` and `make
# debug` run them all.
uapi32() { uapi build/uapi32 | grep -vE '/test_(bounds|fires|kill|life|poll|settime|trace)32$'; }

# nth N OF: each OF-th line, from the N-th on. None is an error.
nth() { awk -v n="$1" -v of="$2" 'NR % of == n % of' | grep .; }

# run_file TESTS KMODS SUITES CYCLES: what the machine does. Tests and modules are paths, with
# arguments if they need some: PATH[,ARGUMENT...]. RUN is more of what selftest/qemu/init reads.
run_file() {
	cat <<-END
		mode=selftest seconds=300 cycles=$4 suites='$3' ${RUN:-}
		tests='
		$(bare "$1")
		'
		kmods='
		$(bare "$2")
		'
		export TWHEEL_BACKEND=kernel
	END
}

# shellcheck disable=SC2086 # words
bare() { printf '%s\n' $1 | sed 's|^[^,]*/||'; }

# qemu SECONDS TESTS KMODS SUITES CYCLES [FILE...]: the machine of the suite that called, with
# FILEs that the tests need.
qemu() {
	local name=${FUNCNAME[1]#qemu_} seconds=$1

	after build || return
	mkdir -p build/qemu
	run_file "${@:2:4}" | sed -e "s/^test_stress\$/&,$OPERATIONS/; s/^test_fuzz\$/&,$FUZZ/
		s/^twheel_torture.ko\$/&,seconds=$TORTURE/" \
		-e 's/^test_neighbour$/&,counted/' \
		-e 's/^test_watchers$/&,50000/' \
		-e 's/^alarms.sh$/&,epoll,libevent,libuv,liburing,rust,asyncio/' >"build/qemu/$name.run"
	# shellcheck disable=SC2086 # words
	point "the machine's verdict" scripts/boot.sh "$name" "$seconds" "build/qemu/$name.run" \
		twheel.ko twheel_chardev.ko $2 $3 "${@:6}"
}

qemu_device_1() {
	local tests

	after build && tests=$(uapi build/uapi | nth 1 2) && qemu 600 "$tests" '' '' 1
}

qemu_device_2() {
	local tests

	after build && tests=$(uapi build/uapi | nth 2 2) && qemu 600 "$tests" '' '' 1
}

# test_lib_cost compares CPU times, for which clocks in the machine are too coarse.
qemu_lib() {
	local tests

	after build && tests=$(uapi32 && found build/libtest/plain -name 'test_*' -executable ! -name test_lib_cost) &&
		qemu 600 "$tests build/libtest/plain/step" '' '' 1
}

# A kernel that notes whose the objects of kmalloc() are, which takes time, and memory.
notes='slub_debug=U,kmalloc-*'

qemu_programs() {
	APPEND=$notes qemu 600 "selftest/lib/guest_command.sh build/examples/test_echo
		selftest/examples/alarms.sh selftest/uapi/debugfs.sh" '' closing 1 \
		build/uapi/lives build/tools/twheel selftest/lib/tap.sh samples/twheel_sessions.ko build/examples/python/* \
		build/examples/{epoll,libevent,libuv,liburing,rust,echo_timerfd,echo_twheel}
}

qemu_modules() {
	local kmods

	after build && kmods=$(found selftest/kmod -name '*.ko') &&
		APPEND=$notes qemu 600 '' "$kmods" 'sessions hotplug suspend resumed' 20 \
			build/uapi/{suspend,test_fires} samples/twheel_sessions.ko
}

# Shares of a CPU, and who is late, are the same each time where a ns is an instruction, whatever
# else the host does.
qemu_attack() {
	ICOUNT=1 MEM=2048 qemu 400 "build/uapi/test_attack build/uapi/test_busy build/uapi/test_cost
		build/uapi/test_watchers" '' '' 1
}

# Two thousand users have a share of each CPU there: the allocator of per-CPU memory keeps the areas
# that it has got for them. More users, one after the other, take no more.
qemu_neighbour() {
	RUN=tests_percpu=512 ICOUNT=1 qemu 480 build/uapi/test_neighbour bench/kernel/twheel_hold.ko '' 1
}

# uml SECONDS TESTS KMODS SUITES CYCLES: as qemu
uml() {
	local name=${FUNCNAME[1]#uml_}

	after build || return
	after build_uml || return
	mkdir -p build/uml
	run_file "${@:2:4}" >"build/uml/$name.run"
	point "the machine's verdict" scripts/uml.sh "$name" "$1" "build/uml/$name.run" \
		build/uml/src/twheel{,_chardev}.ko build/uml/src/{selftest/kmod,samples}/*.ko \
		build/{uapi,uml/tests}/test_* build/tools/twheel selftest/lib/tap.sh selftest/uapi/debugfs.sh
}

uml_device() {
	uml 600 "test_basic test_errors test_query test_drain test_read test_poll test_fires test_life
		test_uring test_stress test_fuzz,$FUZZ" '' '' 1
}

uml_modules() {
	uml 600 "test_fail debugfs.sh" "twheel_test.ko twheel_states.ko twheel_tasks.ko
		twheel_promises.ko twheel_fail.ko twheel_torture.ko,seconds=3,nr_timers=2000" starving 20
}

uml_century() { APPEND=time-travel=inf-cpu uml 120 '' twheel_century.ko '' 20; }

verdict() { scripts/test-verdict.sh; }
report() { scripts/test-report.sh; }
fuzz() { scripts/fuzz.sh 15; }
wheel() { make -s -C selftest/wheel check; }
calendar() { make -s -C selftest/calendar check; }
prove() { scripts/prove.sh; }
lint() { scripts/lint.sh; }
lib() { after build && make -s -C selftest/lib check; }
docs() { after build && scripts/test-docs.sh; }
install() { after build && scripts/test-install.sh; }
examples() { after build && make -s -C examples check; }

# In this order; what takes longest is not left for the end.
machines='qemu_modules qemu_device_1 qemu_device_2 qemu_lib qemu_programs qemu_attack qemu_neighbour
	uml_device uml_modules uml_century fuzz'
groups=(build native libtest calendar install examples htmldocs lint prove fuzz uapi rig uml)
if [ "${1:-}" = fast ]; then
	groups=(build native libtest calendar install examples htmldocs lint prove) machines=''
fi
scripts/deps.sh "${groups[@]}"
KDIR=$(scripts/kdir.sh)
export KDIR

# shellcheck disable=SC2086 # words
set -- build ${machines:+build_uml} verdict report lint lib $machines prove wheel calendar examples docs install
chosen=()
for name; do
	case " ${ONLY:-$name} build build_uml " in *" $name "*) chosen+=("$name") ;; esac
done
rm -f "$log"/*.status
suites "$JOBS" "${chosen[@]}"
# shellcheck disable=SC2086 # words
[ -n "${ONLY:-}" ] || [ -z "$machines" ] ||
	suite complete point "no suite of points.expected is missing" complete $machines
summary
