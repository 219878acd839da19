#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: twheeld with PostgreSQL, one daemon and two, and with SQLite; `make bench-jobs`. measure.py says what is
# measured. Server and daemons share one machine.
#
#	REPS=n	repetitions, 3
#	DOC=f	write the report there too
#	ONLY=p	one part, of: backlog steady failover. The rest is that of the last run
#	BACKLOG=n, RATE=n, SECONDS_LONG=n	see measure.py
#
# The figures go to build/bench-jobs.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
cd "$top"

reps=${REPS:-3} out=build/bench-jobs
export JOBS=$top/$out

environment() {
	row command "make bench-jobs REPS=$reps"
	row kernel "$(uname -sr)"
	row stores "PostgreSQL $(dpkg-query -W -f '${Version}' libpq5), SQLite $(dpkg-query -W -f '${Version}' libsqlite3-0)"
	host "server and daemons on $(nproc)"
}

# of SUBJECT...
each() {
	local subject

	for subject; do
		bench/jobs/measure.py "$part" "$subject" "$reps"
	done
}

# shellcheck disable=SC2317 # measure calls them
backlog() { each sqlite pg-1 pg-2; }
# shellcheck disable=SC2317
steady() { each sqlite pg-1 pg-2; }
# shellcheck disable=SC2317
failover() { each pg-2; }

scripts/deps.sh jobs_pg
quiet make -C jobs O="$JOBS" WITHOUT='exec.c cgroup.c' DAEMON="$top/bench/jobs/nothing.c" CFLAGS="-O2 -g -I$top/jobs"
measure $out/parts build/bench-jobs.tsv backlog steady failover
report bench/jobs/report.awk build/bench-jobs.tsv
