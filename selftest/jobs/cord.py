#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Pull the power cord of a machine in QEMU, at random moments, also while it boots. In the machine, twheeld has its state on a
disk with ext4, and its timers in /dev/twheel. Each time, everything is lost that the kernel has not written to the disk. After
the last boot the judge compares the history with the lines that runs have written to a serial line, which loses nothing.

    cord.py KERNEL INITRD LOGS [CUTS]
    SEED=n    for all random choices

This disk loses nothing that QEMU has got from the machine's kernel, even if the kernel has not flushed it. For a disk that
does, see test_crash.py.
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from daemon import Tap, until
from judge import judge, query

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SEED = int(os.environ.get("SEED", time.time()))
LINE = re.compile(r"\w+ \d+-\d+ \d+ \d+( end)?")
TROUBLE = re.compile(r"failed|twheeld: (?!life \d|job '\w+' was lost as it ran)")
MOST = 600      # s for a boot, on a busy host
AFTER = 10      # s after its start within which the power of a daemon fails


class Machine:
    def __init__(self, kernel, initrd, logs):
        self.kernel, self.initrd, self.logs, self.disk = kernel, initrd, logs, f"{logs}/disk"
        self.lines, self.accepted, self.wrong, self.process = [], [], [], None
        shutil.rmtree(logs, ignore_errors=True)
        os.makedirs(logs)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", self.disk, "256M"], check=True)

    def boot(self, how):
        self.process = subprocess.Popen(
            [f"{TOP}/scripts/machines/qemu.sh", self.kernel, self.initrd, str(MOST), self.logs],
            env={**os.environ, "NVME": self.disk, "APPEND": how, "MEM": "768"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def report(self):
        """Returns the lines that the machine has written. Leave out a line without an end: the power failed in it."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.logs}/report", encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if line.endswith("\n")]
        return []

    def wait_for(self, word):
        until(lambda: self.process.poll() is not None or word in self.report(), MOST)
        return word in self.report()

    def pull(self):
        with open(f"{self.logs}/pid", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def ended(self):
        """Wait for the end of the machine, and keep the lines of runs, the runs that were accepted, and error messages."""
        self.process.wait()
        for line in self.report():
            if LINE.fullmatch(line):
                self.lines.append(line.split())
            elif line.startswith("{"):
                self.accepted.append(json.loads(line)["run"])
            elif TROUBLE.search(line):
                self.wrong.append(line)

    def store(self):
        """Check the file system of the disk, and copy the store out of it. Returns the path of the copy."""
        done = subprocess.run(["e2fsck", "-fn", self.disk], capture_output=True, text=True, check=False)
        if done.returncode:
            self.wrong.append(done.stdout)
        for name in ("jobs.db", "jobs.db-wal"):
            subprocess.run(["debugfs", "-R", f"dump /state/{name} {self.logs}/{name}", self.disk], capture_output=True,
                           check=True)
        return f"{self.logs}/jobs.db"


def pull_each(machine, cuts, rng):
    """Boot the machine and pull its cord, @cuts times. Returns how often that was before the daemon answered."""
    early, took = 0, 10
    for _ in range(cuts):
        began = time.monotonic()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{machine.logs}/pid")
        machine.boot("")
        if rng.random() < 0.25:
            early += 1
            until(lambda: os.path.exists(f"{machine.logs}/pid"))
            time.sleep(rng.uniform(0, took))
        elif machine.wait_for("ready"):
            took = time.monotonic() - began
            time.sleep(rng.uniform(0, AFTER))
        else:
            machine.wrong.append("a boot without the daemon")
            break
        machine.pull()
        machine.ended()
    return early


def verdict(machine):
    """Returns a list of what is wrong, how many firings are over, and how many attempts were followed by another one."""
    store = machine.store()
    try:
        return *judge(store, machine.lines, machine.accepted), query(store, "SELECT count(*) FROM history WHERE more = 1")[0][0]
    except sqlite3.DatabaseError as error:
        return [str(error)], 0, 0


def main():
    kernel, initrd, logs = sys.argv[1:4]
    cuts = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    tap, began, machine = Tap(1), time.monotonic(), Machine(kernel, initrd, os.path.abspath(logs))
    print(f"# SEED={SEED}", flush=True)
    early = pull_each(machine, cuts, random.Random(SEED))
    machine.boot("calm")
    if not machine.wait_for("calm"):
        machine.wrong.append("no calm after the storm")
    machine.ended()
    wrong, firings, again = verdict(machine)
    print(f"# cord, {time.monotonic() - began:.0f} s: the power of a machine failed {cuts} times, {early} of them before the daemon"
          f" answered; {firings} firings, {len(machine.accepted)} of them accepted, {again} attempts made again", flush=True)
    wrong += machine.wrong
    tap.ok(not wrong and firings > 10 * cuts, f"cord: 0 lost, 0 early, 0 double of {firings} firings", *wrong[:30])
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
