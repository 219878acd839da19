#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check-jobs.sh: the storm over twheeld, three daemons and a server of PostgreSQL on one machine; `make check-jobs`.
# Daemons are killed at each step, and at random killed, stopped for longer than their lease, ended, begun and cut
# off; the server is killed. No firing is lost, early, or run twice under one number. Ends with the line
# "N passed, N failed".
#
#	STORM=n	seconds of what is at random, 1200 unless told otherwise
#	SEED=n	of that
. "$(dirname "$0")/../lib.sh"
cd "$top"

log=build/check-jobs
. scripts/suite.sh

storm() { make -s -C selftest/jobs storm; }

scripts/deps.sh jobs_pg
suite storm storm
summary
