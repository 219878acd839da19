#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Does the judge see what is wrong? The test gives it a history without a fault, and histories with one fault each."""
import os
import sqlite3
import sys
import tempfile

from daemon import Tap
from judge import judge

TABLES = """CREATE TABLE job (id, def); CREATE TABLE due (id, at); CREATE TABLE running (id, at);
    CREATE TABLE history (id, at, job, attempt, outcome, more, missed);
    INSERT INTO job VALUES (1, '{"name": "rate", "rate": "1ms", "missed": "all"}'), (2, '{"name": "shot"}'),
        (3, '{"name": "both", "overlap": "allow"}')"""
OK, FAILED, KILLED, LOST, SKIPPED, MISSED = 0, 1, 3, 4, 5, 6
ACCEPTED = ["20-5000", "21-5000", "22-6000"]


def history():
    """Returns a history without a fault. Rows are (id, at, job, attempt, outcome, more) and, if times were missed, how many."""
    return [(10, 1000, 1, 1, OK, 0), (10, 2000, 1, 0, SKIPPED, 0), (10, 3000, 1, 1, OK, 0),
            (10, 4000, 1, 0, MISSED, 0, 3), (10, 7000, 1, 0, SKIPPED, 0),
            (20, 5000, 2, 1, LOST, 1), (20, 5000, 2, 2, FAILED, 1), (20, 5000, 2, 3, OK, 0),
            (21, 5000, 2, 1, KILLED, 0), (22, 6000, 2, 0, MISSED, 0),
            (30, 7000, 3, 1, OK, 0), (31, 7000, 3, 1, OK, 0)]


def lines():
    """Returns the lines of the runs of history(). Times are in us here. The first attempt of firing 20 has no end."""
    return [line.split() for line in (
        "rate 10-1000 1 1000", "rate 10-1000 1 1100 end", "rate 10-3000 1 3000", "rate 10-3000 1 3100 end",
        "shot 20-5000 1 5000", "shot 20-5000 2 5200", "shot 20-5000 2 5300 end", "shot 20-5000 3 5300",
        "shot 20-5000 3 5400 end", "both 30-7000 1 7000", "both 31-7000 1 7100", "both 30-7000 1 7200 end",
        "both 31-7000 1 7300 end")]


def without(rows, row):
    return [r for r in rows if r != row]


def later(rows, row, us):
    """Returns the lines, with the beginning of the run that wrote @row moved to @us."""
    return [[*r[:3], str(us)] if r == row.split() else r for r in rows]


# For each fault: the promise that is broken, the history, the lines of the runs, and a table that gets a row.
FAULTS = [
    ("once", history() + [(10, 1000, 1, 2, OK, 0)], lines() + [["rate", "10-1000", "2", "1200"]], None),
    ("numbered", without(history(), (20, 5000, 2, 2, FAILED, 1)), [r for r in lines() if r[:3] != ["shot", "20-5000", "2"]], None),
    ("numbered", history(), lines() + [["shot", "20-5000", "3", "5500"]], None),
    ("early", history(), later(lines(), "shot 20-5000 1 5000", 4999), None),
    ("lost", without(history(), (20, 5000, 2, 3, OK, 0)), [r for r in lines() if r[:3] != ["shot", "20-5000", "3"]], None),
    ("lost", without(history(), (22, 6000, 2, 0, MISSED, 0)), lines(), None),
    ("lost", history(), [r for r in lines() if r[1] != "10-3000"], None),
    ("lost", history(), [r for r in lines() if r[:3] != ["shot", "20-5000", "2"]], None),
    ("lost", history(), lines(), "running"),
    ("lost", history(), lines(), "due"),
    ("unasked", history(), lines() + [["shot", "99-5000", "1", "5500"]], None),
    ("unasked", history(), lines() + [["shot", "21-5000", "2", "5500"]], None),
    ("unasked", history(), lines() + [["rate", "10-2000", "1", "2500"]], None),
    ("unasked", history()[:-3] + [(22, 6000, 2, 1, SKIPPED, 0)] + history()[-2:], lines() + [["shot", "22-6000", "1", "6000"]], None),
    ("overlap", history(), later(lines(), "shot 20-5000 3 5300", 5299), None),
    ("overlap", history(), lines() + [["shot", "21-5000", "1", "5350"]], None),
    ("gap", without(history(), (10, 2000, 1, 0, SKIPPED, 0)), lines(), None),
    ("gap", without(history(), (10, 4000, 1, 0, MISSED, 0, 3)), lines(), None),
    ("gap", without(history(), (10, 4000, 1, 0, MISSED, 0, 3)) + [(10, 4000, 1, 0, MISSED, 0, 2)], lines(), None),
]


def verdict(rows, ran, table, dir_):
    path = os.path.join(dir_, "store")
    db = sqlite3.connect(path)
    db.executescript(TABLES)
    db.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", [(*row, 0)[:7] for row in rows])
    if table:
        db.execute(f"INSERT INTO {table} VALUES (1, 2)")
    db.commit()
    db.close()
    wrong, firings = judge(path, [[*r[:3], r[3] + "000", *r[4:]] for r in ran], ACCEPTED)
    os.unlink(path)
    return wrong, firings


def main():
    tap = Tap(len(FAULTS) + 1)
    with tempfile.TemporaryDirectory() as dir_:
        tap.same(verdict(history(), lines(), None, dir_), ([], 10), "a history in which nothing is wrong")
        for i, (word, rows, ran, table) in enumerate(FAULTS):
            wrong, _ = verdict(rows, ran, table, dir_)
            tap.ok(wrong and all(w.startswith(word) for w in wrong), f"fault {i + 1}: {word}", *wrong)
    tap.done()


sys.exit(main())
