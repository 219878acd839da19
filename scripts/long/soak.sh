#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# soak.sh: long runs of the modules in virtual machines; `make soak`. Timers are counted one by one:
# none may be lost, early or fire twice, and memory must be the same afterwards as before.
# Ends with the line "N passed, N failed".
#
#	SOAK_MINUTES=n	minutes of torture, 60 by default. The other suites are in proportion, and
#			take half as long again. The script ends by itself
#	ONLY=s		some of the suites: load, freeze, count, torture
#	DOC=f		write the figures there too; for suites that were not run, those of their
#			last run
#
# With 60 minutes: the modules are loaded and unloaded 200 times while the CPUs are busy, the machine
# is frozen 20 times, twheel.h is tortured for 60 minutes, 1 000 files are opened and closed with
# pending timers, 10^7 timers are pending at once, and 10^8 fire.
. "$(dirname "$0")/../lib.sh"
cd "$top"

: "${SOAK_MINUTES:=60}"
log=build/soak
. scripts/suite.sh
. scripts/long/measured.sh

# share N: N times SOAK_MINUTES / 60, but at least 1
share() { echo $(($1 * SOAK_MINUTES / 60 > 0 ? $1 * SOAK_MINUTES / 60 : 1)); }

# machine NAME SECONDS: boot it with the run file on stdin
machine() {
	cat >"$log/$1.run"
	scripts/machines/boot.sh "soak-$1" "$2" "$log/$1.run" twheel.ko twheel_chardev.ko \
		build/uapi/{soak,test_kill} selftest/kmod/twheel_torture.ko
}

load() {
	judged load build/qemu/soak-load machine load $((SOAK_MINUTES * 30 + 300)) <<-END
		mode=selftest hogs=2 cycles=$(share 200) cycle_job='/twheel/soak cycles 2'
	END
}

torture() {
	judged torture build/qemu/soak-torture machine torture $((SOAK_MINUTES * 60 + 900)) <<-END
		mode=selftest cycles=1 kmods='twheel_torture.ko,seconds=$((SOAK_MINUTES * 60))'
	END
}

count() {
	MEM=2048 judged count build/qemu/soak-count machine count $((SOAK_MINUTES * 60 + 900)) <<-END
		mode=selftest cycles=1 seconds=$((SOAK_MINUTES * 60))
		tests='soak,cycles,$(share 1000)
		       soak,count,$(share 10000000),$(share 10000000),16,$(share 120000),$((SOAK_MINUTES * 20))
		       soak,count,$(share 100000000),400000,8,1000,$((SOAK_MINUTES * 40))'
	END
}

# freeze_thaw: freeze a machine's emulator and continue it, in two ways by turns. With QEMU's commands stop
# and cont, the guest's clock stops. If the emulator's process is stopped by a signal, the guest's clock
# jumps forward when it continues.
freeze_thaw() {
	local logs=build/qemu/soak-freeze i

	until grep -qs 'suite soak' "$logs/report"; do
		sleep 1
	done
	for ((i = 0; i < $(share 10); i++)); do
		echo stop >"$log/monitor.in"
		sleep 3
		echo cont >"$log/monitor.in"
		sleep 1
		kill -STOP "$(cat "$logs/pid")" || return
		sleep 3
		kill -CONT "$(cat "$logs/pid")"
		sleep 1
	done
}

frozen() {
	local seconds=$((60 + $(share 10) * 8)) status=0 freezer

	rm -f "$log"/monitor.{in,out} build/qemu/soak-freeze/report
	mkfifo "$log"/monitor.{in,out}
	freeze_thaw &
	freezer=$!
	MONITOR=pipe:$log/monitor machine freeze $((seconds + 300)) <<-END || status=$?
		mode=selftest cycles=1 seconds=$((seconds + 100))
		tests='soak,count,$((20000 * seconds)),20000,4,500,$seconds test_kill'
	END
	wait $freezer && return $status
}

freeze() { point "the machine's verdict, with freezes" frozen; }

# measured NAME: print what the machine measured, as lines of the table
measured() {
	awk -v OFS='\t' -v name="$1" '
		/^# suite / { what = $3; sub(/:$/, "", what) }
		/^# (torture:|[0-9]|fired|slab|percpu|all)/ {
			sub(/^# /, "")
			print name, what, $0
		}
		/^ok / && !/# SKIP/ { passed++ }
		/^not ok / { failed++ }
		END { print name, "all points", passed + 0 " passed, " failed + 0 " failed" }' "$log/$1"
}

table() {
	cat <<-END
		# Long runs: \`make soak\`

		In QEMU without acceleration, with two CPUs.

		$(facts "$log"/*.facts)

		| machine | what | figures |
		|---|---|---|
	END
	for name in load freeze count torture; do
		[ ! -e "$log/$name.tsv" ] || awk -F '\t' '{ print "| " $1 " | " $2 " | " $3 " |" }' "$log/$name.tsv"
	done
}

wanted() { [[ " ${ONLY:-$1} " == *" $1 "* ]]; }

scripts/deps.sh build uapi rig
KDIR=$(scripts/kdir.sh)
export KDIR
modules CONFIG_TWHEEL_SELFTEST=m
quiet make -C selftest/uapi
for name in load freeze count torture; do
	wanted $name || continue
	{
		printf 'command\tmake soak SOAK_MINUTES=%s\n' "$SOAK_MINUTES"
		printf 'kernel\t%s\n' "$(kernel_release)"
		measured_now
	} >"$log/$name.facts"
	suite $name $name
	measured $name >"$log/$name.tsv"
done
[ -z "${DOC:-}" ] || table | document "$DOC"
summary
