#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# debug.sh: run the tests of the device and of twheel.h in debugging kernels with SMP and preemption,
# but not those that count instructions, nor those of isolated CPUs; `make debug`. If such a kernel
# reports anything, that is a failure. Ends with the line "N passed, N failed".
#
# The kernels are those of debug.config (KASAN, lockdep and others) and kcsan.config, built
# once. KCSAN continues after a report; only reports about our code count, see verdict.sh. First,
# deliberate bugs (selftest/kmod/twheel_bug.c) prove that the detectors report bugs: one bug of each
# kind in these kernels, and in user-mode Linux each kind for which it has a detector.
#
#	ONLY=s	only these suites: bugs, uml-bugs, debug, kcsan. The rest of the table is that
#		of the last run
#	DOC=f	write a table there
#	OPERATIONS, FUZZ and TORTURE are as in check.sh
. "$(dirname "$0")/../lib.sh"
cd "$top"

: "${OPERATIONS:=500000}" "${FUZZ:=8}" "${TORTURE:=60}"
log=build/debug
. scripts/suite.sh
. scripts/long/measured.sh

# bug, kernel, and what the kernel reports
bugs='
use_after_free	debug	KASAN: .*use-after-free in .*twheel
deadlock	debug	possible circular locking dependency detected
atomic_sleep	debug	sleeping function called from invalid context
nesting		debug	Invalid wait context
free_armed	debug	ODEBUG: free active .* object type: twheel_timer hint: just_fired
init_armed	debug	ODEBUG: init active .* object type: twheel_timer hint: just_fired
arm_raw		debug	ODEBUG: activate not available .* object type: twheel_timer
leak		debug	unreferenced object 0x
destroy_armed	debug	1 timers still armed, one of just_fired
race		kcsan	KCSAN: data-race in counting_fired
'
uml_bugs='use_after_free deadlock free_armed init_armed arm_raw destroy_armed'

declare -A kernels

# build NAME: build the kernel and the modules for it
build() {
	if [ "$1" = uml ]; then
		kernels[uml]=$(scripts/kernels/own-kernel.sh uml)
		modules_for "${kernels[uml]}" "$top/$log/src/uml" CONFIG_TWHEEL_BUG=m \
			ARCH=um SUBARCH=x86_64
	else
		kernels[$1]=$(scripts/kernels/own-kernel.sh "$1")
		modules_for "${kernels[$1]}" "$top/$log/src/$1" CONFIG_TWHEEL_BUG=m KCFLAGS=-Werror
	fi
}

# logs_of KERNEL NAME: print where machine() has the logs
logs_of() { [ "$1" = uml ] && echo "build/uml/debug-$2" || echo "build/qemu/debug-$2"; }

# machine KERNEL NAME SECONDS RUN FILE...: boot the kernel with its modules and FILE...
machine() {
	local kernel=$1 name=debug-$2 seconds=$3 run=$4 modules=$log/src/$1
	local boot=(env "KERNEL=${kernels[$1]}/vmlinuz" scripts/machines/boot.sh) APPEND=''

	shift 4
	[ "$kernel" != uml ] || boot=(scripts/machines/uml.sh)
	[ "$kernel" != kcsan ] || APPEND=panic_on_warn=0
	export APPEND
	"${boot[@]}" "$name" "$seconds" "$run" "$modules"/{twheel,twheel_chardev}.ko \
		"$modules/samples/twheel_sessions.ko" "$modules"/selftest/kmod/*.ko "$@"
}

# speaks BUG KERNEL WORDS: does the machine with the bug fail, and does its kernel print WORDS?
speaks() {
	local name=$2-$1

	echo "mode=bench kmods=twheel_bug.ko,bug=$1" >"$log/$name.run"
	! machine "$2" "$name" 400 "$log/$name.run" >"$log/$name.log" 2>&1 &&
		cat "$(logs_of "$2" "$name")"/{console,report} | tr -d '\r' | grep -aE "$3" >"$log/$name.said"
}

# deliberate KERNEL...: run the bugs of these kernels, or those that UML can detect
deliberate() {
	local nr=0 bad=0 name kernel words

	while read -r name kernel words; do
		[ "$1" != uml ] || [[ " $uml_bugs " != *" $name "* ]] || kernel=uml
		[[ -n "$name" && " $* " == *" $kernel "* ]] || continue
		nr=$((nr + 1))
		if speaks "$name" "$kernel" "$words" </dev/null; then
			echo "ok $nr - $kernel reports $name"
			head -n 1 "$log/$kernel-$name.said" | sed 's/^/# /'
		else
			echo "not ok $nr - $kernel reports $name"
			bad=1
		fi
	done <<<"$bugs"
	echo "1..$nr"
	return $bad
}

# everything KERNEL SECONDS MORE: run all tests, in a machine that may take so many seconds. Lockdep
# makes timers bigger than test_close and test_limits allow for, so they do not run in that kernel.
everything() {
	local kernel=$1 limits='' names files suites='sessions hotplug'

	names=$(uapi build/uapi && uapi build/uapi32 && found build/uml/tests -name 'test_*' -executable) || return
	mapfile -t files <<<"$names"
	names=" ${files[*]##*/} "
	names=${names/ test_stress / test_stress,$OPERATIONS }
	names=${names/ test_stress32 / test_stress32,$OPERATIONS }
	names=${names/ test_fuzz / test_fuzz,$FUZZ }
	names=${names/ test_fuzz32 / test_fuzz32,$FUZZ }
	if [ "$kernel" = debug ]; then
		limits='tests_slab=16384 tests_all=32768'	# what the detectors write down
		names=${names/ test_close / } names=${names/ test_limits / } names=${names/ test_limits32 / }
		suites+=' starving'
	else
		names=${names/ test_fail / }	# nothing makes allocations fail
	fi
	cat >"$log/$kernel.run" <<-END
		mode=selftest cycles=5 suites='$suites' hotplug_seconds=40 seconds=900 $limits
		tests='$names'
		kmods='twheel_test.ko twheel_states.ko twheel_tasks.ko twheel_promises.ko
			twheel_traced.ko twheel_shut.ko twheel_cpus.ko twheel_storm.ko,storm_us=1000 twheel_torture.ko,seconds=$TORTURE $3'
	END
	MEM=2048 judged "$kernel" "$(logs_of "$kernel" "$kernel")" \
		machine "$kernel" "$kernel" "$2" "$log/$kernel.run" "${files[@]}"
}

table() {
	cat <<-END
		# Debugging kernels: \`make debug\`

		SMP and PREEMPT, in QEMU without acceleration with two CPUs: "debug" is built with
		scripts/kernels/debug.config (KASAN, lockdep, DEBUG_ATOMIC_SLEEP, DEBUG_OBJECTS, kmemleak and others),
		"kcsan" with scripts/kernels/kcsan.config.

		$(facts "$log"/*.facts)

		A deliberate bug of each kind, and what the kernel said:

		| | |
		|---|---|
	END
	cat "$log"/{uml-bugs,bugs} | awk '
		/^(not )?ok / {
			bug = $0
			sub(/^ok [0-9]+ - /, "", bug)
		}
		/^# / && bug {
			sub(/^# *(\[[^]]*\] *)?/, "")
			gsub(/\/[^ ]*\//, "")	# where it was built
			print "| " bug " | `" $0 "` |"
			bug = ""
		}'
	printf '\nThe tests, in which it said nothing: passed / failed, seconds:\n\n'
	printf '| kernel | tests | |\n|---|---|---|\n'
	for kernel in debug kcsan; do
		figures "$kernel" <"$log/$kernel" | sort |
			awk -F '\t' '{ printf "| %s | %s | %s / %s, %s s |\n", $1, $2, $3, $4, $5 }'
	done
}

wanted() { [[ " ${ONLY:-$1} " == *" $1 "* ]]; }

scripts/deps.sh build uapi rig uml kernel
quiet make -C selftest/uapi
quiet make -C selftest/uapi CFLAGS='-O2 -g -m32' O="$top/build/uapi32" SUFFIX=32
quiet make -C selftest/uml
declare -A needs=([uml-bugs]=uml [bugs]='debug kcsan' [debug]=debug [kcsan]=kcsan)
for name in uml-bugs bugs debug kcsan; do
	wanted $name || continue
	for kernel in ${needs[$name]}; do
		[ -n "${kernels[$kernel]:-}" ] || build "$kernel"
	done
done

# run NAME COMMAND...: run the suite, and note what it was run with
run() {
	wanted "$1" || return 0
	{
		printf 'command\tmake debug OPERATIONS=%s FUZZ=%s TORTURE=%s\n' "$OPERATIONS" "$FUZZ" "$TORTURE"
		printf 'kernel\tLinux %s\n' "$(dpkg-deb -f "$(scripts/kernels/kernel-source.sh 6.1)" Version)"
		measured_now
	} >"$log/$1.facts"
	suite "$@"
}

run uml-bugs deliberate uml
run bugs deliberate debug kcsan
run debug everything debug 5400 twheel_fail.ko
run kcsan everything kcsan 5400 ""
for name in debug kcsan; do
	! wanted $name || suite "complete_$name" complete $name
done
[ -z "${DOC:-}" ] || table | document "$DOC"
summary
