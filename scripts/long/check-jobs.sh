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
. "$(dirname "$0")/../lib.sh"
cd "$top"

log=build/check-jobs
. scripts/suite.sh

storm() { make -s -C selftest/jobs storm; }

power() { STRIDE=1 make -s -C selftest/jobs power; }

page() { make -s -C selftest/jobs check-page; }

scripts/deps.sh check-jobs jobs_page
suite jobs_page page
suite storm storm
suite power power
summary
