#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""The judge: were all promises kept? It compares the history of a store with the lines that the runs have written.

    judge.py STORE RAN...     STORE: a file of SQLite, or postgresql://...

When a run begins, it writes the line JOB KEY ATTEMPT NS to a file RAN; when it ends, the same line with "end" behind it. No
daemon may have the store open, and nothing may be due in it any more. The judge prints a line for each promise that is
broken, and then how many firings there were. The exit status is 1 if a promise is broken.

    once        each firing is over exactly once
    numbered    the attempts of a firing have the numbers 1, 2, 3, ...; no attempt began twice
    early       no attempt began before its time
    lost        if the history says that a firing has run, it did run; each firing that ran is over; no firing is left in
                running or due; each run that a daemon has accepted is over
    unasked     each attempt that ran is in the history, and not as one that did not run
    overlap     no two runs of a job ran at the same time, unless its definition allows that
    gap         if a job with a rate must not miss a time, no time of the rate is missing

If a run was asked for and is in no table at all, the judge cannot see that by itself: so the caller says which runs a daemon
has accepted. selftest/jobs/test_judge.py gives it histories with one fault each.
"""
import collections
import json
import sqlite3
import subprocess
import sys

OK, LOST, SKIPPED, MISSED = 0, 4, 5, 6
RAN = (OK, 1, 2)            # ok, failed, timeout: these did begin. A killed or lost run need not have begun
DURATIONS = {"us": 1, "ms": 1000, "s": 10**6, "m": 6 * 10**7}


def query(store, sql):
    """Returns the rows of a query, in either kind of store. Columns are numbers; only the last one may be a text."""
    if store.startswith("postgresql:"):
        done = subprocess.run(["psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", store,
                               "-c", "SET search_path = twheel", "-c", sql],
                              capture_output=True, text=True, check=True)
        return [tuple(int(c) if c.lstrip("-").isdigit() else c for c in line.split("\t"))
                for line in done.stdout.splitlines()]
    db = sqlite3.connect(store)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def check_history(rows, wrong):
    """Check that each firing is over once, and the numbers of its attempts. Returns {key: outcome} of those that are over."""
    attempts, over = collections.defaultdict(list), {}
    for id_, at, attempt, outcome, more in rows:
        key = f"{id_}-{at}"
        if not more and key in over:
            wrong.append(f"once: {key} is over twice")
        if not more:
            over[key] = outcome
        attempts[key].append(attempt)
    for key, numbers in attempts.items():
        if numbers != [0] and sorted(numbers) != list(range(1, len(numbers) + 1)):
            wrong.append(f"numbered: {key} has attempts {numbers}")
        if key not in over:
            wrong.append(f"lost: {key} is not over")
    return over


def check_lines(lines, wrong):
    """Check that no attempt began twice or early. Returns {(key, attempt): [job, begin, end or None]}, times in ns."""
    ran = {}
    for job, key, attempt, ns, *end in lines:
        run = (key, int(attempt))
        if end:
            ran.setdefault(run, [job, None, None])[2] = int(ns)
            continue
        if run in ran and ran[run][1] is not None:
            wrong.append(f"numbered: {key} was begun twice with attempt {attempt}")
        ran.setdefault(run, [job, None, None])[1] = int(ns)
        if int(ns) < int(key.split("-")[1]) * 1000:
            wrong.append(f"early: {key} was begun at {ns}")
    return ran


def check_attempts(rows, ran, wrong):
    """Check that each attempt that began is in the history, and that each one began that has run according to the history."""
    rows = {(f"{id_}-{at}", attempt): outcome for id_, at, attempt, outcome, _ in rows}
    for key, attempt in ran:
        if rows.get((key, attempt), MISSED) in (SKIPPED, MISSED):
            wrong.append(f"unasked: attempt {attempt} of {key} ran, and is not in the history as run")
    wrong += [f"lost: attempt {attempt} of {key} never ran" for (key, attempt), outcome in rows.items()
              if outcome in RAN and (key, attempt) not in ran]


def check_overlap(ran, definitions, wrong):
    """Check that no two runs of a job overlapped. A run without an end, because it was killed, counts at its beginning only."""
    by_job = collections.defaultdict(list)
    for (key, attempt), (job, begin, end) in ran.items():
        if begin and definitions.get(job, {}).get("overlap") != "allow":
            by_job[job].append((begin, end or begin, f"{key}.{attempt}"))
    for job, runs in by_job.items():
        last = (0, 0, "")
        for run in sorted(runs):
            if run[0] < last[1]:
                wrong.append(f"overlap: of {job} {last[2]} and {run[2]} ran at once")
            last = max(last, run, key=lambda r: r[1])


def duration(text):
    """Parse a duration, of those that the tests use, into us."""
    number = text.rstrip("mus")
    return round(float(number) * DURATIONS[text[len(number):]])


def check_gaps(store, definitions, wrong):
    rows = query(store, "SELECT h.id, h.at, h.missed, j.def FROM history h JOIN job j ON j.id = h.job WHERE more = 0"
                        " ORDER BY h.id, h.at")
    for (id_, at, missed, _), (next_id, next_at, _, text) in zip(rows, rows[1:]):
        definition = json.loads(text)
        if id_ != next_id or "rate" not in definition or definition.get("missed") != "all":
            continue
        # If more than a hundred times were missed, one row stands for the oldest of them, and says how many they are.
        if next_at - at not in (0, max(missed, 1) * duration(definition["rate"])):
            wrong.append(f"gap: {id_} has nothing from {at} to {next_at}")


def judge(store, lines, accepted=(), overlap=True):
    """Check everything. @accepted: the keys of the firings that a daemon has accepted; @overlap: whether to check overlap.
    Returns a list of what is wrong, and how many firings are over."""
    wrong = []
    definitions = {d.get("name"): d for d in (json.loads(d) for _, d in query(store, "SELECT id, def FROM job"))}
    rows = query(store, "SELECT id, at, attempt, outcome, more FROM history")
    over = check_history(rows, wrong)
    ran = check_lines(lines, wrong)
    check_attempts(rows, ran, wrong)
    for table in ("running", "due"):
        wrong += [f"lost: left in {table}: {row}" for row in query(store, f"SELECT id, at FROM {table}")]
    wrong += [f"lost: {key} was accepted, and is not over" for key in set(accepted) - set(over)]
    if overlap:
        check_overlap(ran, definitions, wrong)
    check_gaps(store, definitions, wrong)
    return wrong, len(over)


def read_lines(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield from (line.split() for line in file)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong, firings = judge(sys.argv[1], read_lines(sys.argv[2:]))
    print(*wrong, f"{firings} firings", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
