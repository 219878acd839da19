#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# run.sh: twheeld, with SQLite, and with PostgreSQL as one node and as two, beside Quartz, pg-boss, graphile-worker and
# pg_cron on the same server; `make bench-jobs`. measure.py says what is measured. Some nine minutes on a host with
# nothing else to do.
#
#	REPS=n	repetitions, 1
#	DOC=f	write the report there too
#	ONLY=p	parts of: backlog steady minute now processes pending failover. The rest is that of the last run
#	BACKLOG=n, SECONDS_LONG=n, PENDING=n, PROCESSES=n, MINUTE=n, NOW=n	see measure.py
#
# The figures go to build/bench-jobs.tsv, the report to stdout.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source=bench/common.sh
. "$top/bench/common.sh"
cd "$top"

reps=${REPS:-1} out=build/bench-jobs
boss=10.4.2 graphile=0.17.3
export BUILD=$top/$out

environment() {
	row command "make bench-jobs REPS=$reps"
	row kernel "$(uname -sr)"
	row stores "PostgreSQL $(package_version postgresql-15), SQLite $(package_version libsqlite3-0)"
	row peers "Quartz $(package_version libquartz2-java) with $(java -version 2>&1 | head -n 1), pg-boss $boss and graphile-worker $graphile with node $(node --version), pg_cron $(package_version postgresql-15-cron)"
	host "server and nodes on $(nproc)"
}

# Those of JavaScript are not in Debian.
peers() {
	mkdir -p $out/peers
	javac -cp /usr/share/java/quartz2.jar -d $out/peers bench/jobs/peers/Quartz.java
	[ -e $out/peers/$boss-$graphile ] ||
		npm install --silent --no-audit --no-fund --no-save --prefix $out/peers pg-boss@$boss graphile-worker@$graphile
	touch $out/peers/$boss-$graphile
}

backlog() { bench/jobs/measure.py "$part" "$reps"; }
# shellcheck disable=SC2317 # measure calls them
{
	steady() { backlog; }
	minute() { backlog; }
	now() { backlog; }
	processes() { backlog; }
	pending() { backlog; }
	failover() { backlog; }
}

scripts/deps.sh bench-jobs
# Of Debian or of whoever made its node: they exclude each other.
command -v npm >/dev/null || die "npm is needed"
quiet make -C jobs O="$BUILD/real" CFLAGS="-O2 -g -I$top/jobs"
quiet make -C selftest/jobs O="$BUILD" OPT=-O2 nothing
quiet peers
measure $out/parts build/bench-jobs.tsv backlog steady minute now processes pending failover
report bench/jobs/report.awk build/bench-jobs.tsv
