#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check-jobs.sh: long tests of twheeld; `make check-jobs`. First the page is tested in a browser. Then come storms:
# on one machine, things happen to several daemons, their connections, their PostgreSQL server and clocks, see
# selftest/jobs/storm.py. No firing may be lost, early, or run twice under one attempt number. Then the power
# fails at each write of a daemon with SQLite, and at last that of a whole machine in QEMU, see selftest/jobs/cord.py.
# Ends with the line "N passed, N failed".
#
#	ONLY=s		some of the suites: jobs_page, storm, power, cord; or hour, which does not run otherwise:
#			see selftest/jobs/hour.py
#	STORM=n		how long the storms are, in percent; 100 by default, which is half an hour for all suites on two CPUs
#	CUTS=n		how often the machine loses its power; 20 by default, and less if STORM is less
#	MINUTES=n	how long the hour is
#	SEED=n		the seed of the random part
#	DOC=f		write a table of all but the page there; for suites that were not run, that of their last run
. "$(dirname "$0")/../lib.sh"
cd "$top"

log=build/check-jobs
. scripts/suite.sh
. scripts/long/measured.sh
: "${STORM:=100}" "${MINUTES:=60}"
: "${CUTS:=$((STORM < 5 ? 1 : STORM / 5))}"
export STORM MINUTES
parts=(storm power cord hour)

jobs_page() { make -s -C selftest/jobs check-page; }

storm() { make -s -C selftest/jobs storm; }

power() { STRIDE=1 make -s -C selftest/jobs power; }

hour() { make -s -C selftest/jobs hour; }

# The machine has the daemon of the packages' build, in its own directories, and no other file of this system.
cord() {
	local dir=$log/machine

	make -s -C selftest/jobs all plain && modules || return
	rm -rf "$dir"
	mkdir -p "$dir/tree/etc"
	echo root:x:0:0:root:/:/bin/sh >"$dir/tree/etc/passwd"
	echo mode=cord >"$dir/run"
	scripts/machines/userland.sh "$dir/userland" "$dir/tree" \
		build/jobstest/plain/twheel{d=/bin/twheeld,-job=/bin/twheel-job}
	scripts/machines/initramfs.sh "$dir/initramfs" "$dir/run" twheel{,_chardev}.ko \
		build/jobstest/mark selftest/jobs/cord_guest.sh
	cat "$dir/userland" >>"$dir/initramfs"
	selftest/jobs/cord.py "$(scripts/kernels/kernel-image.sh "$(kernel_release)")" "$dir/initramfs" "$dir/logs" "$CUTS"
}

# options PART: what the part depends on
options() {
	case $1 in
	storm) echo "STORM=$STORM " ;;
	cord) echo "CUTS=$CUTS " ;;
	hour) echo "MINUTES=$MINUTES " ;;
	esac
}

# part NAME: run the suite, and note what it ran on
part() {
	local facts=$log/$1.facts

	{
		measured_now
		printf 'stores\tSQLite %s, PostgreSQL %s\n' "$(package_version libsqlite3-0)" "$(package_version postgresql-15)"
	} >"$facts"
	suite "$1" "$1"
	printf 'command\tmake check-jobs ONLY=%s %s%s\n' "$1" "$(options "$1")" \
		"$(sed -n 's/^# \(SEED=[0-9]*\).*/\1/p' "$log/$1")" >>"$facts"
}

rows() {
	awk '
		/^# [a-z]+, [0-9]+ s: / {
			name = substr($2, 1, length($2) - 1)
			seconds = $3
			sub(/^[^:]*: /, "")
			what = $0
		}
		/^(not )?ok [0-9]+ - / {
			verdict = $1 == "ok" ? "" : "**failed:** "
			sub(/^(not )?ok [0-9]+ - /, "")
			judged = sub("^" name ":? ", "") ? $0 : ""
			if (judged == "") { name = "each step"; seconds = what = "–"; judged = $0 }
			print "| " name " | " seconds " | " what " | " verdict judged " |"
			seconds = what = "–"
		}' "$@"
}

table() {
	local measured=() name

	for name in "${parts[@]}"; do
		[ ! -e "$log/$name.facts" ] || measured+=("$log/$name.facts")
	done
	cat <<-END
		# Storms over twheeld: \`make check-jobs\`

		In a storm, daemons on one machine fire thousands of runs, while the test harms them, their connections, their
		server and their clocks. Then the judge (\`selftest/jobs/judge.py\`) compares what has run with what had to run.
		\`selftest/jobs/storm.py\` describes each storm. \`power\` simulates a loss of power at each write of SQLite: what was
		not synced is lost. In \`cord\` the power of a virtual machine fails (\`selftest/jobs/cord.py\`). In \`hour\` ten million
		runs are pending, while a thousand others a second fire (\`selftest/jobs/hour.py\`).

		$(facts "${measured[@]}")

		| storm | seconds | what happened | judged |
		|---|--:|---|---|
	END
	for name in "${parts[@]}"; do
		[ -e "$log/$name.facts" ] || continue
		case $name in
		power) sed -nE 's/^(not )?ok [0-9]+ - (power lost.*)/| power | – | – | \1\2 |/p' "$log/power" ;;
		*) rows "$log/$name" ;;
		esac
	done
	cat <<-END

		What the words and numbers mean:

		* accepted: a daemon had answered the request for this run, so the run must happen. The other runs are by schedules.
		* attempts made again: attempts that were lost or interrupted, and followed by another one.
		* kill, leave, pause: a daemon was killed, told to end, or stopped for a while. crash: the server was stopped at once,
		  and started again.
		* cut, half-close, delay, deaf: the connections between a daemon and the server were closed, closed in one direction, made slow,
		  or nothing passed in a direction. eat: answers of the server were swallowed with some probability.
		* in, out, in+out: the direction in which the network of a daemon was cut.
		* failover: the server was stopped, and its standby took its place. nothing: a pause after that.
		* step: the clock of the server was set.
		* nothing grows: the sizes of the tables \`due\` and \`running\` in MiB, from a sixth of the time on, and the most memory that a daemon took.
	END
}

scripts/deps.sh check-jobs jobs_page
for name in ${ONLY:-jobs_page storm power cord}; do
	case $name in
	jobs_page) suite jobs_page jobs_page ;;
	*) [[ " ${parts[*]} " == *" $name "* ]] || die "no such suite: $name"; part "$name" ;;
	esac
done
[ -z "${DOC:-}" ] || table | document "$DOC"
summary
