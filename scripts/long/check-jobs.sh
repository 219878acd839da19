#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check-jobs.sh: long tests of twheeld; `make check-jobs`. First the page is tested in a browser. Then come storms:
# on one machine, things happen to several daemons, their connections, their PostgreSQL server and clocks, see
# selftest/jobs/storm.py. No firing may be lost, early, or run twice under one attempt number. At last the power
# fails at each write of a daemon with SQLite. Ends with the line "N passed, N failed".
#
#	STORM=n	how long the storms are, in percent; 100 by default, which is half an hour on two CPUs
#	SEED=n	the seed of the random part
#	DOC=f	write a table of the storms there
. "$(dirname "$0")/../lib.sh"
cd "$top"

log=build/check-jobs
. scripts/suite.sh

storm() { make -s -C selftest/jobs storm; }

power() { STRIDE=1 make -s -C selftest/jobs power; }

page() { make -s -C selftest/jobs check-page; }

table() {
	cat <<-END
		# Storms over twheeld: \`make check-jobs\`

		On one machine, things happen to daemons, their connections, their server and clocks, each storm with
		thousands of firings. What each does is said in \`selftest/jobs/storm.py\`; \`power\` loses what SQLite has not
		synced, at each write.

		* command: make check-jobs STORM=${STORM:-100} SEED=$(sed -n 's/^# SEED=//p' "$log/storm")
		* commit: $(source_id), $(date -u +%Y-%m-%d)
		* machine: $(processor), $(nproc) CPUs
		* stores: SQLite $(package_version libsqlite3-0), PostgreSQL $(package_version postgresql-15)

		| storm | seconds | what happened | judged |
		|---|--:|---|---|
	END
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
		}' "$log/storm"
	sed -nE 's/^(not )?ok [0-9]+ - (power lost.*)/| power | – | – | \1\2 |/p' "$log/power"
	echo
	echo "$passed passed, $failed failed"
}

scripts/deps.sh check-jobs jobs_page
suite jobs_page page
suite storm storm
suite power power
[ -z "${DOC:-}" ] || table | document "$DOC"
summary
