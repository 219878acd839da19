#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""One part of `make bench-jobs`: figures as bench/common.sh has them.

    measure.py backlog|steady|failover SUBJECT REPS

SUBJECT is sqlite, pg-1 or pg-2: PostgreSQL with that many daemons. Runs do nothing (nothing.c), but those of
failover, which are processes. Times are in the store before a daemon begins.

    backlog     BACKLOG shots of 64 jobs that are all due at once: firings a second, until the last is over; and what
                one costs: CPU of the daemons and of the server, bytes of its log, transactions
    steady      RATE shots a second for SECONDS_LONG s: how late a run is begun, which is after its firing was
                committed; and how many transactions a firing takes
    failover    two daemons with the default lease, 64 jobs each 100 ms; one is killed: how late is the latest
                firing of those that the other then has
"""
import os
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../selftest/jobs"))
import daemon  # noqa: E402  pylint: disable=wrong-import-position
from judge import query  # noqa: E402  pylint: disable=wrong-import-position
from postgres import Node, Server  # noqa: E402  pylint: disable=wrong-import-position

BACKLOG = int(os.environ.get("BACKLOG", 200000))
RATE = int(os.environ.get("RATE", 10000))
SECONDS = int(os.environ.get("SECONDS_LONG", 20))
JOBS = 64
HEAD_START = 20  # s, from when shots are put to when they are due


def figure(what, n, subject, metric, unit, values):
    print("native", what, n, subject, metric, unit, " ".join(f"{v:.3f}" for v in values), sep="\t", flush=True)


def ticks(pid, ended):
    """CPU s of a process; with what its children that have ended took."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def server_cpu(server):
    """CPU s of all its processes."""
    pid = server.process.pid
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return ticks(pid, True) + sum(ticks(int(child), False) for child in file.read().split())


class Stores:
    """Daemons and what they share, with JOBS jobs in it."""

    def __init__(self, subject):
        self.cpu, self.took = 0, []
        self.server = None if subject == "sqlite" else Server("max_wal_size = 4GB", "shared_buffers = 512MB")
        options = {"lease": "3s"}
        self.nodes = [Node(self.server, "--runs=100000", **options) for _ in range(int(subject[3:]))] if self.server \
            else [daemon.Daemon("--runs=100000")]
        self.where = self.server.url if self.server else f"{self.nodes[0].dir}/state/jobs.db"
        self.nodes[0].start()
        self.nodes[0].post("/v1/jobs", [{"name": f"j{i}", "exec": ["true"], "overlap": "allow", "grace": "1h"}
                                        for i in range(JOBS)])
        self.nodes[0].stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.__exit__()
        if self.server:
            self.server.__exit__()

    def add(self, nr, first, step):
        """nr shots, the first one due at that time and each a step later, in us."""
        head = "INSERT INTO due (job, at, main) SELECT"
        if self.server:
            query(self.where, f"{head} (i * 7919 % {JOBS}) + 1, {first} + i * {step}, 0"
                              f" FROM generate_series(0, {nr - 1}) i")
            query(self.where, "VACUUM ANALYZE due")
            return
        with sqlite3.connect(self.where) as db:
            db.execute(f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {nr - 1})"
                       f" {head} (i * 7919 % {JOBS}) + 1, {first} + i * {step}, 0 FROM n")
        db.close()

    def counts(self):
        """Of the server: transactions, bytes of its log, CPU in us."""
        rows = query(self.where, "SELECT xact_commit, CAST(pg_current_wal_lsn() - '0/0'::pg_lsn AS bigint)"
                                 " FROM pg_stat_database WHERE datname = 'postgres'")
        return [*rows[0], server_cpu(self.server) * 1e6]

    def run(self, nr, first, seconds):
        """Start the daemons, until all is over. Fills in what that took: see counts()."""
        for node in self.nodes:
            node.start()
        assert time.time() < first / 1e6, f"the daemons were not there in {HEAD_START} s"
        wait_until(first)
        before = self.counts() if self.server else []
        time.sleep(seconds)
        if self.server:
            while query(self.where, "SELECT last_value FROM history_seq_seq")[0][0] < nr:
                time.sleep(0.5)
        else:
            while not any(r.get("seq", 0) >= nr for r in self.nodes[0].get("/v1/runs?limit=1")):
                time.sleep(0.2)
        time.sleep(1.5)  # of its statistics
        self.took = [(b - a) / nr for a, b in zip(before, self.counts())] if self.server else []
        self.cpu = -sum(os.times()[2:4])
        for node in self.nodes:
            node.stop()
        self.cpu += sum(os.times()[2:4])


def wait_until(us):
    time.sleep(max(0, us / 1e6 - time.time()))


def lateness(stores, first):
    rows = query(stores.where, f"SELECT began - at FROM history WHERE at >= {first} AND more = 0 ORDER BY 1")
    return [row[0] / 1000 for row in rows]


def costs(what, nr, subject, took):
    for metric, unit, values in zip(("transactions a firing", "log of the server", "CPU of the server"), ("", "bytes", "us"),
                                    zip(*took)):
        figure(what, nr, subject, metric, unit, values)


def backlog(subject, reps):
    rates, cpu, took = [], [], []
    for _ in range(reps):
        with Stores(subject) as stores:
            first = int((time.time() + HEAD_START) * 1e6)
            stores.add(BACKLOG, first, 0)
            stores.run(BACKLOG, first, 1)
            last, nr = query(stores.where, "SELECT max(ended), count(*) FROM history")[0]
            assert nr == BACKLOG, nr
            rates.append(nr / (last - first) * 1e6)
            cpu.append(stores.cpu / nr * 1e6)
            took.append(stores.took)
    figure("backlog", BACKLOG, subject, "firings/s", "1/s", rates)
    figure("backlog", BACKLOG, subject, "CPU of a daemon", "us", cpu)
    costs("backlog", BACKLOG, subject, took)


def steady(subject, reps):
    p50, p99, worst, took = [], [], [], []
    for _ in range(reps):
        with Stores(subject) as stores:
            first, nr = int((time.time() + HEAD_START) * 1e6), RATE * SECONDS
            stores.add(nr, first, 1000000 // RATE)
            stores.run(nr, first, SECONDS)
            late = lateness(stores, first)
            assert len(late) == nr, len(late)
            p50.append(late[nr // 2])
            p99.append(late[nr * 99 // 100])
            worst.append(late[-1])
            took.append(stores.took)
    figure("steady", RATE, subject, "late p50", "ms", p50)
    figure("steady", RATE, subject, "late p99", "ms", p99)
    figure("steady", RATE, subject, "late worst", "ms", worst)
    costs("steady", RATE, subject, took)


def failover(subject, reps):
    took = []
    with Server() as server, Node(server, lease="3s") as a, Node(server, lease="3s") as b:
        a.start()
        a.post("/v1/jobs", [{"name": f"j{i}", "exec": ["true"], "rate": "1s", "missed": "all", "overlap": "queue"}
                            for i in range(JOBS)])
        for _ in range(reps):
            b.start()
            daemon.until(lambda: server.parts() == [32, 32])
            time.sleep(3)
            killed = int(time.time() * 1e6)
            b.kill()
            daemon.until(lambda: server.parts() == [64], 20)
            time.sleep(3)
            late = query(server.url, f"SELECT max(fired - at) FROM history WHERE at > {killed - 1000000}")[0][0]
            took.append(late / 1e6)
    figure("failover", 2, subject, "latest firing", "s", took)


def main():
    {"backlog": backlog, "steady": steady, "failover": failover}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))


main()
