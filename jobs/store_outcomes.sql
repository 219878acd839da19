-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The twheel authors
-- Indexes that all kinds of stores have, from version 3 of the tables in SQLite on and 4 in PostgreSQL. They find the
-- runs of one outcome without a walk of all history. 0 is OUTCOME_OK: a good run is in neither of them.
CREATE INDEX history_bad ON history (outcome, seq) WHERE outcome <> 0;
CREATE INDEX history_job_bad ON history (job, outcome, seq) WHERE outcome <> 0;
