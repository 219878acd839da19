#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""An hour of three daemons that share PostgreSQL. Ten million single runs are pending, far in the future. Clients ask for a
thousand runs a second, which fire; now and then the test kills a daemon or the server. As in storm.py, no run may be lost,
early or double. Besides, neither the memory of a daemon nor the tables due and running may grow.

Runs do nothing: the daemons are those of `make bench-jobs`, which begin no process. So two CPUs suffice.

    hour.py               SEED=n: for all random choices; MINUTES=n: how long, 60 by default; PENDING=n: how many runs
"""
import contextlib
import os
import sys
import time

from daemon import PROGRAMS, Tap
from postgres import Server
from storm import SEED, Storm, cluster, crash, kill, leave

MINUTES = int(os.environ.get("MINUTES", 60))
PENDING = int(os.environ.get("PENDING", 10**7))
PER_SECOND = 1000
FAR = 30 * 86400 * 10**6    # us
CRASH = 1200                # s between crashes of the server
MEMORY = 64                 # MiB that a daemon may take
GROWTH = 1.05               # by how much the table due may grow after the first sixth of the time, and by SMALL more
SMALL = 32                  # MiB that the table running may take, however many rows have been in it


class Hour(Storm):
    def __init__(self, server, nodes):
        super().__init__(server, nodes, 1, self.shake, per_second=PER_SECOND)
        self.crash, self.sizes, self.memory = time.monotonic() + CRASH / 2, [], 0

    def begin(self):
        self.nodes[0].start()
        self.any_node("PUT", "/v1/jobs/later", {"exec": ["true"], "overlap": "allow"})
        self.nodes[0].stop()
        self.query(f"INSERT INTO due (job, at, main) SELECT (SELECT id FROM job), now_us() + {FAR} + i * 1000, 0"
                   f" FROM generate_series(CAST(1 AS bigint), {PENDING}) i")
        self.query("VACUUM ANALYZE due")
        super().begin()

    def shake(self, rng):
        """Kill or stop a daemon; or, if CRASH is over, crash the server. That must be rare: after a crash the server has
        lost its statistics, and vacuums too little for some time. Returns the name of what was done."""
        fn = rng.choice([kill, kill, leave])
        if time.monotonic() > self.crash:
            fn, self.crash = crash, time.monotonic() + CRASH
        fn(rng, self)
        return fn.__name__

    def look(self):
        """Note how much memory the daemons have taken at most, and how large the tables are."""
        for node in self.nodes:
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
                self.memory = max([self.memory, *(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))])
        row = self.query("SELECT pg_total_relation_size('due'), pg_total_relation_size('running')")
        if row:
            self.sizes.append([size / 2**20 for size in row[0]])

    def rage(self):
        began, shaken = time.monotonic(), 0
        while (passed := time.monotonic() - began) < MINUTES * 60:
            self.look()
            if passed > shaken:
                self.happened.append(self.shake(self.rng))
                shaken = passed + self.rng.uniform(10, 30)
            time.sleep(2)
        self.over = True
        for load in self.loads:
            load.join()

    def calm(self):
        """Wait until all runs that were asked for are over, and end the daemons."""
        self.revive()
        self.is_empty(f"due WHERE main = 0 AND at < now_us() + {FAR // 2}")
        self.pause_all()
        if not self.is_empty("running"):
            self.wrong.append("some run has not ended")
        self.end()

    def count(self, sql):
        return self.query(f"SELECT count(*) FROM {sql}")[0][0]

    def verdict(self):
        accepted = {key for load in self.loads for key in load.accepted}
        over = [f"{id_}-{at}" for id_, at in self.query("SELECT id, at FROM history WHERE more = 0")]
        lost = accepted - set(over)
        early = self.count("history WHERE fired < at OR (began > 0 AND began < at)")     # 0: it has not begun
        pending = self.count(f"due WHERE at > now_us() + {FAR // 2}")
        twice = self.count("(SELECT 1 FROM history GROUP BY id, at, attempt HAVING count(*) > 1 AND min(attempt) > 0) x")
        for what, bad in (("lost", len(lost)), ("early", early), ("over twice", len(over) - len(set(over))),
                          ("attempts with one number", twice), ("of what is pending is missing", PENDING - pending)):
            if bad:
                self.wrong.append(f"{bad} {what}")
        return over, accepted

    def grown(self):
        """Returns whether anything has grown too much, and a text with the sizes."""
        sixth = self.sizes[len(self.sizes) // 6:]
        due, running = ([row[i] for row in sixth] for i in range(2))
        bad = max(due) > GROWTH * due[0] + SMALL or max(running) > SMALL or self.memory > MEMORY
        return bad, (f"due {due[0]:.0f} MiB after a sixth, {max(due):.0f} at most; running {max(running):.1f} at most;"
                     f" a daemon {self.memory:.1f} at most")


def main():
    tap = Tap(2)
    print(f"# SEED={SEED} MINUTES={MINUTES} PENDING={PENDING}", flush=True)
    began = time.monotonic()
    with Server("max_connections = 200") as server, contextlib.ExitStack() as stack:
        nodes = cluster(stack, server, 3)
        for node in nodes:
            node.command = [f"{PROGRAMS}/nothing/twheeld", "--runs=10000"]
        hour = Hour(server, nodes)
        hour.begin()
        print(f"# {PENDING} are pending after {time.monotonic() - began:.0f} s", flush=True)
        hour.rage()
        hour.calm()
        over, accepted = hour.verdict()
        again = hour.count("history WHERE more = 1")
        counts = ", ".join(f"{what} {hour.happened.count(what)}" for what in sorted(set(hour.happened)))
        print(f"# hour, {time.monotonic() - began:.0f} s: {PENDING} pending; {len(over)} firings, {len(accepted)} of them accepted,"
              f" {again} attempts made again; {counts}", flush=True)
        why = hour.wrong and [*hour.wrong[:20], *(node.stderr() for node in nodes)]
        tap.ok(not hour.wrong, f"hour: 0 lost, 0 early, 0 double of {len(over)} firings", *why)
        grown, sizes = hour.grown()
        tap.ok(not grown, f"hour: nothing grows: {sizes}")
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
