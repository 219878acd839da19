#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""The judge: have all promises been kept, by a store's history and by what the runs themselves have written?

    judge.py STORE RAN...     STORE: a file of SQLite, or postgresql://...

A run writes a line to a file RAN when it begins, JOB KEY ATTEMPT NS, and the same with "end" behind it when it
ends. Nobody may have the store open, and nothing may be due in it any more. Prints a line for each promise
that is broken, and then how many firings there were. The exit status is 1 if a promise is broken.

    once        each firing is over exactly once
    numbered    its attempts have the numbers 1, 2, 3, ...; none of these began twice
    early       no attempt began before its time
    lost        a firing that is over as run did run, and one that ran is over; none is left in running or due;
                what a daemon has accepted is over
    unasked     no attempt ran that is not in the history, or is there as one that did not run
    overlap     no two runs of a job were at the same time, unless its definition allows it
    gap         no time is missing of a rate that must not miss any

The judge cannot see by itself that something that was asked for is in no table at all: the caller says which runs
a daemon has accepted. selftest/jobs/test_judge.py gives it histories with one fault each.
"""
import collections
import json
import sqlite3
import subprocess
import sys

OK, LOST, SKIPPED, MISSED = 0, 4, 5, 6
RAN = (OK, 1, 2)            # ok, failed, timeout; what was killed or lost may have been so before it began
DURATIONS = {"us": 1, "ms": 1000, "s": 10**6, "m": 6 * 10**7}


def query(store, sql):
    """Rows, whatever the store is; the columns are numbers but for a last one of text."""
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
    """Returns the firings that are over, and the outcome of each."""
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
    """Returns when what was begun and ended: {(key, attempt): [job, begin, end or None]}."""
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
    """The history has each attempt that began, and each that the history says has run began."""
    rows = {(f"{id_}-{at}", attempt): outcome for id_, at, attempt, outcome, _ in rows}
    for key, attempt in ran:
        if rows.get((key, attempt), MISSED) in (SKIPPED, MISSED):
            wrong.append(f"unasked: attempt {attempt} of {key} ran, and is not in the history as run")
    wrong += [f"lost: attempt {attempt} of {key} never ran" for (key, attempt), outcome in rows.items()
              if outcome in RAN and (key, attempt) not in ran]


def check_overlap(ran, definitions, wrong):
    """When one ended that was killed is not known: only that it had begun."""
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
    """In us, of the few that the tests use."""
    number = text.rstrip("mus")
    return round(float(number) * DURATIONS[text[len(number):]])


def check_gaps(store, definitions, wrong):
    rows = query(store, "SELECT h.id, h.at, h.missed, j.def FROM history h JOIN job j ON j.id = h.job WHERE more = 0"
                        " ORDER BY h.id, h.at")
    for (id_, at, missed, _), (next_id, next_at, _, text) in zip(rows, rows[1:]):
        definition = json.loads(text)
        if id_ != next_id or "rate" not in definition or definition.get("missed") != "all":
            continue
        # Of more than a hundred missed times, the oldest are one line, which says how many they are.
        if next_at - at not in (0, max(missed, 1) * duration(definition["rate"])):
            wrong.append(f"gap: {id_} has nothing from {at} to {next_at}")


def judge(store, lines, accepted=(), overlap=True):
    """Returns what is wrong, and how many firings there were. @accepted: keys of firings; @overlap: look at that too"""
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
