#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# check-jobs.sh: a storm over three daemons of twheeld and a PostgreSQL server on one machine; `make check-jobs`.
# Daemons are killed at each step. Then, at random, they are killed, stopped for longer than their lease, ended,
# started and cut off, and the server is killed. No firing may be lost, early, or run twice under one attempt
# number. Ends with the line "N passed, N failed".
#
#	STORM=n	seconds of the random part, 1200 by default
#	SEED=n	the seed of the random part
. "$(dirname "$0")/../lib.sh"
cd "$top"

log=build/check-jobs
. scripts/suite.sh

storm() { make -s -C selftest/jobs storm; }

scripts/deps.sh jobs_pg
suite storm storm
summary
