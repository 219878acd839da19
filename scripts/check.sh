#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check.sh [fast]: run every test; "fast" leaves out the virtual machines. Ends with the
# line "N passed, N failed". tap.awk says what counts.
#
#	ONLY=s		only these suites, of those at the end of this file
#	JOBS=n		how many suites run at a time; by default two more than there are CPUs,
#			since most suites wait half of the time
#	OPERATIONS	how many test_stress does
#	FUZZ		for how many seconds test_fuzz runs in each kernel
#	TORTURE		for how many seconds twheel_torture runs. make debug and make soak use larger values
#	CHAOS		for how many seconds test_chaos runs
#	SCENES		those that test_neighbour plays; SCENES= plays all, as make matrix does
. "$(dirname "$0")/lib.sh"
cd "$top"

: "${OPERATIONS:=1000000}" "${FUZZ:=3}" "${TORTURE:=6}" "${CHAOS:=6}" "${JOBS:=$(($(nproc) + 2))}"
# Of the 28 scenes of test_neighbour, those that together found every mistake that was planted for
# this test. The others are like them, with other numbers of files, and take two minutes more.
: "${SCENES=3,4,6,7,9,16,19,24,26,28}"
log=build/check
. scripts/suite.sh

# Build what the other suites use, so that no two of them build the same.
build() {
	point "the library, the command and the manual pages build" quiet make -s -j2 lib command man || return
	point "the modules build" modules CONFIG_TWHEEL_SELFTEST=m || return
	point "the tests of libtwheel build" quiet make -j2 -C selftest/lib all checks || return
	[ -z "$machines" ] || build_guest
}

build_guest() {
	point "the tests of the device build" quiet make -j2 -C selftest/uapi || return
	point "the tests of the device build for 32 bits" quiet make -j2 -C selftest/uapi CFLAGS='-O2 -g -m32' \
		O="$top/build/uapi32" SUFFIX=32 || return
	point "the tests of the device build with the first header" quiet make -j2 -C selftest/uapi \
		HEADER="$top/selftest/uapi/first" O="$top/build/uapi1" SUFFIX=1 || return
	point "the program that measures interrupts builds" \
		guest_program build/irqs_off bench/kernel/irqs_off.c || return
	point "the examples build" quiet make -j2 -C examples guest || return
	point "the tests with failing allocations build" quiet make -C selftest/uml
}

build_uml() {
	local kernel

	kernel=$(scripts/kernels/own-kernel.sh uml) || return
	point "the modules build for user-mode Linux" modules_for "$kernel" "$top/build/uml/src" \
		ARCH=um SUBARCH=x86_64 KCFLAGS=-Werror
}

# after NAME: wait for that suite, which must be earlier in the list. If its build failed, there is
# nothing to test. The time of the waiting suite counts from then.
after() {
	local status

	while [ ! -e "$log/$1.status" ]; do
		sleep 0.2
	done
	read -r status _ <"$log/$1.status"
	began=$SECONDS
	[ "$status" = 0 ]
}

# The machines. Each is a suite that boots a machine, in QEMU or in user-mode Linux. They run at the
# same time: while a test sleeps in one, the others have the CPUs. So each machine gets as much to
# do as takes a minute when it runs alone, or one test that takes longer. One machine of each kind
# loads and unloads the modules many times.

# The tests for callers of 32 bits. Such a caller enters by compat_ptr_ioctl(), and the code behind
# that is the same. So only programs that try each call and each structure run here. The others,
# about what happens later and to whom, would see the same as with 64 bits; `make matrix` and `make
# debug` run all of them.
uapi32() { uapi build/uapi32 | grep -vE '/test_(bounds|clocks|fires|grow|kill|life|model|poll|settime|stress|trace)32$'; }

# nth N OF: print each OF-th line, from the N-th on. It is an error if there is none.
nth() { awk -v n="$1" -v of="$2" 'NR % of == n % of' | grep .; }

# run_file TESTS KMODS SUITES CYCLES: print the run file of a machine. Tests and modules are paths,
# perhaps with arguments: PATH[,ARGUMENT...]. RUN is further text for selftest/qemu/init.
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

# qemu SECONDS TESTS KMODS SUITES CYCLES [FILE...]: run the machine of the calling suite, with the
# FILEs that the tests need.
qemu() {
	local name=${FUNCNAME[1]#qemu_} seconds=$1

	after build || return
	mkdir -p build/qemu
	run_file "${@:2:4}" | sed -e "s/^test_stress\$/&,$OPERATIONS/; s/^test_fuzz\$/&,$FUZZ/; s/^test_chaos\$/&,$CHAOS/
		s/^twheel_torture.ko\$/&,seconds=$TORTURE/" \
		-e "s/^test_neighbour\$/&,counted${SCENES:+,$SCENES}/" \
		-e 's/^test_watchers$/&,50000/' -e 's/^irqs_off$/&,500000,5000/' \
		-e 's/^alarms.sh$/&,epoll,libevent,libuv,liburing,rust,asyncio/' \
		-e 's/^rust_test.sh$/&,rust_wheel,rust_sched,rust_aio/' >"build/qemu/$name.run"
	# shellcheck disable=SC2046,SC2086 # words
	judged "qemu_$name" "build/qemu/$name" scripts/machines/boot.sh "$name" "$seconds" "build/qemu/$name.run" \
		twheel.ko twheel_chardev.ko $(printf '%s\n' $2 $3 | sed 's/,.*//') "${@:6}"
}

qemu_device_1() {
	local tests

	after build && tests=$(uapi build/uapi | nth 1 2) && qemu 600 "$tests" '' '' 1
}

qemu_device_2() {
	local tests

	after build && tests=$(uapi build/uapi | nth 2 2) && qemu 600 "$tests" '' '' 1
}

# test_lib_cost compares CPU times, for which clocks in the machine are too coarse. test_when knows
# neither a timer nor a device. test_lib_model simulates clock and timerfd, and has the embedded backend in itself.
qemu_lib() {
	local tests

	after build && tests=$(uapi32 && uapi build/uapi1 && found build/libtest/plain -name 'test_*' -executable ! -name test_lib_cost ! -name test_lib_model ! -name test_when) &&
		qemu 600 "$tests build/libtest/plain/step" '' '' 1
}

# With this option the kernel notes who allocated each object of kmalloc(), for time and memory.
notes='slub_debug=U,kmalloc-*'

qemu_programs() {
	after build || return
	APPEND=$notes qemu 600 "selftest/lib/guest_command.sh build/examples/test_echo
		selftest/examples/alarms.sh selftest/uapi/debugfs.sh selftest/python/python_twheel.sh selftest/rust/rust_test.sh" '' closing 1 \
		build/uapi/lives build/tools/twheel selftest/lib/tap.sh samples/twheel_sessions.ko build/examples/python/* \
		build/rust/rust_{wheel,sched,aio} selftest/rust/tap.awk \
		build/examples/{epoll,libevent,libuv,liburing,rust,echo_timerfd,echo_twheel,echo_uring}
}

qemu_modules() {
	local kmods

	after build && kmods=$(found selftest/kmod -name '*.ko' ! -name twheel_alone.ko ! -name twheel_cpus.ko ! -name twheel_budget.ko) &&
		APPEND=$notes qemu 600 '' "$kmods" 'sessions hotplug suspend resumed' 20 \
			build/uapi/{suspend,test_fires} samples/twheel_sessions.ko
}

# There is one suspend in the life of a machine, so this is for the other alarm clock.
qemu_alarm() { RUN=suspend_clock=realtime qemu 120 '' '' suspend 1 build/uapi/suspend; }

# More CPUs than two, on two nodes: one CPU is to be left alone, and another one is isolated from
# the scheduler only. At last a third one is isolated by a cpuset.
qemu_cpus() {
	SMP=5 NODES='0-1 2-4' APPEND='nohz_full=4 isolcpus=3,4' \
		qemu 400 '' 'selftest/kmod/twheel_alone.ko selftest/kmod/twheel_cpus.ko' cpusets 1
}

# Where an instruction is a ns, shares of a CPU and lateness are nearly the same each time, however
# busy the host is.
qemu_attack() {
	ICOUNT=1 MEM=2048 qemu 400 "build/uapi/test_attack build/uapi/test_busy build/uapi/test_cost
		build/uapi/test_watchers" '' '' 1
}

# Two thousand users have a share of each CPU in this test. The allocator of per-CPU memory keeps
# the areas that it has got for them, so the machine must allow for them. Further users, one after
# the other, take no more. For the same reason test_limits looks here at what 500 users are charged.
# irqs_off arms fewer timers here than in the benchmark: enough for a close() that does not yield to
# be noticed.
qemu_neighbour() {
	RUN=tests_percpu=512 ICOUNT=1 qemu 480 'build/uapi/test_neighbour build/irqs_off build/uapi/test_limits,500' \
		'selftest/kmod/twheel_budget.ko bench/kernel/twheel_hold.ko' '' 1 bench/kernel/twheel_probe.ko
}

# uml SECONDS TESTS KMODS SUITES CYCLES: as qemu
uml() {
	local name=${FUNCNAME[1]#uml_}

	after build || return
	after build_uml || return
	mkdir -p build/uml
	run_file "${@:2:4}" >"build/uml/$name.run"
	judged "uml_$name" "build/uml/$name" scripts/machines/uml.sh "$name" "$1" "build/uml/$name.run" \
		build/uml/src/twheel{,_chardev}.ko build/uml/src/{selftest/kmod,samples}/*.ko \
		build/{uapi,uml/tests}/test_* build/tools/twheel selftest/lib/tap.sh selftest/uapi/debugfs.sh
}

uml_device() {
	uml 600 "test_basic test_errors test_query test_drain test_read test_poll test_fires test_grow test_life
		test_uring test_uring_cmd test_model,15 test_stress,100000 test_fuzz,$FUZZ" '' '' 1
}

uml_modules() {
	uml 600 "test_fail debugfs.sh" "twheel_test.ko twheel_states.ko twheel_tasks.ko
		twheel_promises.ko twheel_fail.ko twheel_torture.ko,seconds=3,nr_timers=2000" starving 20
}

uml_century() { APPEND=time-travel=inf-cpu uml 120 '' twheel_century.ko '' 20; }

verdict() { scripts/gates/test-verdict.sh; }
report() { scripts/gates/test-report.sh; }
release() { scripts/gates/test-release.sh; }
fuzz() { scripts/gates/fuzz.sh 4; }
wheel() { make -s -C selftest/wheel check; }
calendar() { make -s -C selftest/calendar check; }
# Three suites run the same programs: a later one must not link them while an earlier one runs them.
jobs_build() { mkdir -p build && flock build/jobs.lock make -s -C selftest/jobs all; }
jobs() { jobs_build && make -s -C selftest/jobs check; }
jobs_pg() { jobs_build && make -s -C selftest/jobs check-many; }
prove() { scripts/gates/prove.sh; }
lint() { scripts/gates/lint.sh; }
lib() { after build && make -s -C selftest/lib check; }
docs() { after build && scripts/gates/test-docs.sh; }
install() { after build && scripts/gates/test-install.sh; }
examples() { after build && make -s -C examples check; }
migrate() { after build && scripts/gates/test-migrate.sh; }
rust() { make -s -C selftest/rust check; }
python() { make -s -C selftest/python check; }

# The suites start in this order, in which the longest are not left for the end: those of twheeld take
# minutes, most of which they wait.
machines='qemu_modules qemu_alarm qemu_cpus qemu_device_1 qemu_device_2 qemu_lib qemu_programs qemu_attack qemu_neighbour
	uml_device uml_modules uml_century fuzz'
groups=(check build native libtest calendar jobstest jobs_pg installtest releasetest examples rust python htmldocs migrate lint prove fuzz uapi rig uml)
if [ "${1:-}" = fast ]; then
	groups=(check build native libtest calendar jobstest jobs_pg installtest releasetest examples rust python htmldocs migrate lint prove) machines=''
fi
scripts/deps.sh "${groups[@]}"
KDIR=$(scripts/kdir.sh)
export KDIR
# What was compiled once, with the same options, is not compiled again. Names of files below the
# tree do not count, so that this holds for every clone.
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=$cache/ccache CCACHE_MAXSIZE=1G CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1

# shellcheck disable=SC2086 # words
set -- build ${machines:+build_uml} jobs_pg verdict report lint jobs release lib $machines prove wheel calendar examples rust python docs migrate install
chosen=()
for name; do
	case " ${ONLY:-$name} build build_uml " in *" $name "*) chosen+=("$name") ;; esac
done
rm -f "$log"/*.status "$log/counts"
suites "$JOBS" "${chosen[@]}"
# shellcheck disable=SC2086 # words
[ -n "${ONLY:-}" ] || [ -z "$machines" ] ||
	suite complete complete $machines
# shellcheck disable=SC2086 # words
[ -n "${ONLY:-}" ] || suite outgrown outgrown $machines
summary
