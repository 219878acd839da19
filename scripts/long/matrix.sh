#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# matrix.sh: run the tests on other kernels; `make matrix`. If a kernel cannot be downloaded or
# built, that is a failure, with the reason. Then `make patches` tries twheel as patches for other kernels,
# and `make kernel-users` tries kernel code by others on twheel. At last come all scenes of test_neighbour.
#
#	ONLY=k	only these rows: kernels, by the first column below; patches-6.12, patches-7.2,
#		kernel-users, neighbours. The other rows of the table are those of the last run
#	DOC=f	write the table there too
#	OPERATIONS and FUZZ are as in check.sh
#
# Kernels are kept in the cache, by release or configuration. The logs of a machine are in
# build/qemu/matrix-KERNEL-CPUS-PREEMPTION, the data of the table in build/matrix.
. "$(dirname "$0")/../lib.sh"
cd "$top"

# name, architecture, where it is from, preemption (a word of the boot line; - for the kernel's own)
kernels='
6.1		x86_64	amd64	6\.1\.0-[0-9]+-cloud-amd64		none,full
6.1-rt		x86_64	amd64	6\.1\.0-[0-9]+-rt-amd64			-
6.12		x86_64	amd64	6\.12\.[0-9]+\+deb12-cloud-amd64	none,full
6.12-rt		x86_64	amd64	6\.12\.[0-9]+\+deb12-rt-amd64		-
7.2		x86_64	own	next					none,full
7.2-rt		x86_64	own	next-rt					-
6.1-arm64	arm64	arm64	6\.1\.0-[0-9]+-arm64			-
6.1-s390x	s390x	s390x	6\.1\.0-[0-9]+-s390x			-
'
# name, and a script that ends with "N passed, N failed"
others='
patches-6.12	KERNEL=6.12 scripts/long/patches.sh
patches-7.2	KERNEL=7.2 scripts/long/patches.sh
kernel-users	scripts/long/kernel-users.sh
neighbours	ONLY=qemu_neighbour SCENES= scripts/check.sh
'
: "${OPERATIONS:=500000}" "${FUZZ:=4}"
out=build/matrix log=$out
. scripts/suite.sh
. scripts/long/measured.sh
programs=()	# of the tests, for the architecture

# kernel FROM WHAT: get the kernel; print its directory, and the directory that modules are built against.
kernel() {
	local dir

	if [ "$1" = own ]; then
		dir=$(scripts/kernels/own-kernel.sh "$2") && echo "$dir $dir"
	else
		dir=$(scripts/kernels/kernel-debian.sh "$1" "$2") && echo "$dir $dir/build"
	fi
}

# of_archive PACKAGE FILE: unpack PACKAGE into the cache, and print where its FILE is.
of_archive() {
	local dir=$cache/packages/$1

	[ -e "$dir/$2" ] || unpack "$dir" "$1" || return
	echo "$dir/$2"
}

programs_of() { quiet make -C selftest/uapi "$@"; }

# What runs on ARCH: the tests; and the tests for callers of 32 bits, if the architecture has them.
userland() {
	local uring dir found

	case $1 in
	x86_64)
		programs_of O="$top/build/uapi" &&
			programs_of O="$top/build/uapi32" CFLAGS='-O2 -g -m32' SUFFIX=32 || return
		set -- build/uapi build/uapi32 ;;
	arm64)
		uring=$(of_archive liburing-dev:arm64 usr) &&
			programs_of O="$top/build/uapi-arm64" CC=aarch64-linux-gnu-gcc \
				CFLAGS="-O2 -g -I$uring/include -L$uring/lib/aarch64-linux-gnu" &&
			programs_of O="$top/build/uapi-arm" CC=arm-linux-gnueabihf-gcc SUFFIX=32 \
				WITHOUT=test_uring || return
		set -- build/uapi-arm64 build/uapi-arm ;;
	s390x)
		uring=$(of_archive liburing-dev:s390x usr) &&
			programs_of O="$top/build/uapi-s390x" CC=s390x-linux-gnu-gcc \
				CFLAGS="-O2 -g -I$uring/include -L$uring/lib/s390x-linux-gnu" || return
		set -- build/uapi-s390x ;;
	esac
	found=$(for dir; do uapi "$dir" || exit; done) || return
	mapfile -t programs <<<"$found"
}

# modules_of ARCH KERNEL: build the modules into $out/$name
modules_of() {
	case $1 in
	x86_64)	modules_for "$2" "$top/$out/$name" ;;
	arm64)	modules_for "$2" "$top/$out/$name" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- ;;
	s390x)	modules_for "$2" "$top/$out/$name" ARCH=s390 CROSS_COMPILE=s390x-linux-gnu- ;;
	esac
}

# job SMP CPUSETS: print what the machine is to do. CPUSETS is "cpusets" if the kernel has them.
job() {
	local names=" ${programs[*]##*/} "

	names=${names/ test_stress / test_stress,$OPERATIONS }
	names=${names/ test_stress32 / test_stress32,$OPERATIONS }
	names=${names/ test_fuzz / test_fuzz,$FUZZ }
	cat <<-END
		mode=selftest
		suites='sessions $([ "$1" = 1 ] || echo hotplug "$2")'
		seconds=600
		tests='${names/ test_fuzz32 / test_fuzz32,$FUZZ }'
		kmods='twheel_test.ko twheel_states.ko twheel_tasks.ko twheel_promises.ko
			twheel_torture.ko,seconds=10 twheel_traced.ko twheel_shut.ko twheel_storm.ko twheel_rt.ko
			$([ "$1" = 1 ] || echo twheel_cpus.ko twheel_off.ko)
			$([[ $name != *-rt ]] || echo twheel_waiters.ko)'
	END
}

# machine ID LABEL FILE...: boot one, as the environment says, with the modules and FILE..., to
# do what its file "run" says, and print its lines of the table
machine() {
	local id=matrix-$name-$1 label="$name	$2" modules=$out/$name verdict=ok logs

	note "booting $name $2"
	shift 2
	logs=build/qemu/$id
	scripts/machines/boot.sh "$id" 1800 "$logs/run" "$modules"/twheel{,_chardev}.ko "$@" >"$logs/stdout" 2>&1 ||
		verdict=$(head -n 1 "$logs/verdict" 2>/dev/null | grep . || tail -n 1 "$logs/stdout")
	figures "$label" <"$logs/report"
	verdict "$label" "$verdict"
}

# boot ARCH DIR SMP PREEMPTION: boot a machine for all tests, except those that have their own
boot() {
	local arch=$1 dir=$2 cpus=$3 preempt=$4 id files
	local busybox=/bin/busybox

	id=$cpus${preempt:+-$preempt}
	mkdir -p "build/qemu/matrix-$name-$id"
	job "$cpus" "$cpusets" >"build/qemu/matrix-$name-$id/run"
	files=("$out/$name/samples/twheel_sessions.ko" "$out/$name"/selftest/kmod/*.ko "${programs[@]}")
	[ ! -e "$dir/virtio_console.ko" ] || files+=("$dir/virtio_console.ko")
	[ "$arch" = x86_64 ] || busybox=$(of_archive "busybox-static:$arch" bin/busybox)
	ARCH=$arch KERNEL=$dir/vmlinuz SMP=$cpus BUSYBOX=$busybox APPEND="${preempt:+preempt=$preempt} $rt" \
		machine "$id" "-smp $cpus${preempt:+ $preempt}" "${files[@]}"
}

# busy DIR FROM: boot the machine of test_busy, in which an instruction takes a ns. There a kernel that is built here turns
# its APIC timer off, unless it calibrates the timer by the PIT. Then it has no clock to verify the TSC by.
busy() {
	local clocks=

	[ "$2" != own ] || clocks='hpet=disable tsc=reliable'
	mkdir -p "build/qemu/matrix-$name-icount"
	echo 'mode=selftest cycles=2 tests=test_busy' >"build/qemu/matrix-$name-icount/run"
	ICOUNT=1 KERNEL=$1/vmlinuz APPEND="$rt $clocks" machine icount -icount build/uapi/test_busy
}

# preempted DIR: boot the machine of twheel_preempted.ko, which wants three CPUs
preempted() {
	mkdir -p "build/qemu/matrix-$name-3"
	echo 'mode=selftest cycles=2 seconds=600 kmods=twheel_preempted.ko' >"build/qemu/matrix-$name-3/run"
	KERNEL=$1/vmlinuz SMP=3 APPEND=$rt machine 3 '-smp 3' "$out/$name/selftest/kmod/twheel_preempted.ko"
}

# verdict LABEL WORDS: print the line of a machine's verdict
verdict() {
	local passed=0

	[ "$2" != ok ] || passed=1
	printf '%s\tverdict\t%s\t%s\t%s\n' "$1" $passed $((1 - passed)) "$2"
}

# row ARCH FROM WHAT PREEMPTION: run all machines of a kernel
row() {
	local arch=$1 dirs dir smp preempt rt='' cpusets=''

	# SCHED_FIFO tasks of tests may keep a CPU for good: the kernel must not throttle them after 950 ms.
	[[ $name != *-rt ]] || rt=sysctl.kernel.sched_rt_runtime_us=-1
	dirs=$(kernel "$2" "$3") && modules_of "$arch" "${dirs#* }" && userland "$arch" || return
	dir=${dirs%% *}
	! grep -qs ^CONFIG_CPUSETS=y "${dirs#* }/.config" || cpusets=cpusets
	for smp in 1 2; do
		for preempt in ${4//,/ }; do
			boot "$arch" "$dir" "$smp" "${preempt/#-/}"
		done
	done
	[ -z "$rt" ] || { busy "$dir" "$2"; preempted "$dir"; }
	printf '%s\t-\trelease\t%s\n' "$name" "$(basename "$dir")"
}

# The table of all rows that were ever measured here.
table() {
	cat <<-END
		# The tests on other kernels: \`make matrix\`

		Passed / failed, and seconds, of the tests of the device, those of them with callers of
		32 bits, the modules that test twheel.h, and what is done with the machine: loading,
		the sample, CPUs off and on. In QEMU without acceleration, so that seconds say little.

		$(facts "$out"/*.facts)

		| kernel | boot | device | 32 bits | modules | machine | verdict |
		|---|---|---|---|---|---|---|
	END
	cat "$@" | awk -F '\t' '
		function cell(g) { return (key, g) in text ? text[key, g] : "-" }
		$3 == "release" { release[$1] = $4; next }
		{
			key = $1 FS $2
			if (!(key in seen))
				keys[++n] = key
			seen[key] = 1
			text[key, $3] = $3 == "verdict" ? $6 : $4 " / " $5 ", " $6 " s"
		}
		END {
			for (i = 1; i <= n; i++) {
				key = keys[i]
				split(key, w, FS)
				name = w[1] in release ? release[w[1]] : w[1]
				printf "| %s | %s | %s | %s | %s | %s | %s |\n", name, w[2],
					cell("device"), cell("32 bits"), cell("modules"),
					cell("machine"), cell("verdict")
			}
		}'
}

# other COMMAND...: run one of the other scripts with all that it does, and print its line of the table
other() {
	local passed failed

	env -u ONLY -u DOC "$@" | tee "$out/$name.out" >&2 || :
	read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$out/$name.out" | tail -n 1) || return
	printf '%s\t-\tverdict\t%s\t%s\t%s\n' "$name" "$passed" "$failed" "$passed passed, $failed failed"
}

# rows COMMAND...: have it print the rows of $name, or keep those of the last run
rows() {
	tables+=("$out/$name.tsv")
	case " ${ONLY:-$name} " in
	*" $name "*) ;;
	*)
		[ -e "$out/$name.tsv" ] || verdict "$name	-" "not run" >"$out/$name.tsv"
		return ;;
	esac
	{
		printf 'command\tmake matrix OPERATIONS=%s FUZZ=%s\n' "$OPERATIONS" "$FUZZ"
		measured_now
	} >"$out/$name.facts"
	"$@" >"$out/$name.new" 2> >(tee "$out/$name.log" >&2) </dev/null ||
		verdict "$name	-" "cannot be had: $(tail -n 1 "$out/$name.log")" >>"$out/$name.new"
	mv "$out/$name.new" "$out/$name.tsv"
}

scripts/deps.sh build uapi rig matrix
mkdir -p $out
tables=()
while read -r name arch from what preempt; do
	[ -z "$name" ] || rows row "$arch" "$from" "$what" "$preempt"
done <<<"$kernels"
while read -r name command; do
	# shellcheck disable=SC2086 # words
	[ -z "$name" ] || rows other $command
done <<<"$others"

table "${tables[@]}" | tee $out/table.md
[ -z "${DOC:-}" ] || document "$DOC" <$out/table.md
cat "${tables[@]}" | awk -F '\t' '
	$3 != "release" { passed += $4; failed += $5 }
	END { print passed + 0 " passed, " failed + 0 " failed"; exit failed != 0 }'
