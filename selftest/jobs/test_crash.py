#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Kill twheeld once at each step of the protocol. In a second round, the power fails at each step. In a third one, the daemon
is killed at random moments. No firing may be lost, early, or run twice under one attempt number.

There are three jobs: one that is due at a time, one that follows it, and one that fails once and is tried again. The test
starts the daemon so that it dies at step N. Then it starts the daemon again, and repeats the request if the first daemon
did not answer. In the end everything must be as if nothing had happened. N goes up until the daemon does not die.
"""
import concurrent.futures
import itertools
import os
import random
import signal
import sqlite3
import time

from daemon import Daemon, Tap, until
from judge import judge

FIRINGS = 3
AT_ONCE = 6
KILLS = 12
# If the power fails, each write and sync of SQLite is a step, too. Only each STRIDE-th is tried; 1 takes a minute and a half.
STRIDE = int(os.environ.get("STRIDE", 4))


def definitions(d):
    once = f"; [ -e {d.dir}/failed ] || {{ : >{d.dir}/failed; exit 1; }}"
    return [
        {"name": "second", "exec": d.writes()},
        {"name": "first", "after": "80ms", "exec": d.writes(), "then": {"ok": ["second"]}},
        {"name": "third", "after": "100ms", "exec": d.writes(more=once), "retry": {"times": 2, "wait": "20ms"}},
    ]


def ask(d):
    """Ask the daemon for all three jobs: it puts all or none. Returns False if there was no answer."""
    try:
        status, answer = d.request("POST", "/v1/jobs", definitions(d), {"If-None-Match": "*"})
        assert status in (200, 409), answer
        return True
    except (OSError, EOFError):
        return False
    except Exception as error:  # http.client raises many exceptions if the daemon is no longer there
        if isinstance(error, AssertionError):
            raise
        return False


def all_over(d):
    try:
        rows = d.get("/v1/runs?limit=1000")
    except Exception:
        return False
    return len([r for r in rows if r["state"] == "over" and not r["more"]]) == FIRINGS


def one(step, **env):
    """Let a daemon die at this step, and start it again. Returns a list of what is wrong, and whether the daemon did die."""
    with Daemon() as d:
        d.start(TWHEELD_CRASH=str(step), **env)
        asked = ask(d)
        until(lambda: d.process.poll() is not None or (asked and all_over(d)))
        died = d.process.poll() is not None
        if died:
            d.start(**env)
            if not asked:
                ask(d)
            until(lambda: d.process.poll() is not None or all_over(d))
        status = d.stop()
        if not died and status == -signal.SIGKILL:  # the daemon died at a step of stopping
            died = True
            status = d.start(**env).stop()
        try:
            wrong, firings = judge(f"{d.dir}/state/jobs.db", d.lines())
            if firings != FIRINGS:
                wrong.append(f"{firings} firings are over, not {FIRINGS}")
        except sqlite3.Error as error:
            wrong = [f"the store cannot be read: {error}"]
        if status:
            wrong.append(f"ended with status {status}")
        if d.unsound():
            wrong.append(d.unsound())
        if wrong:
            wrong.append(d.stderr())
        return [f"step {step}: {w}" for w in wrong], died


def storm(stride=1, **env):
    """Try all steps, or each stride-th, until something is wrong or a daemon does not die. Returns a list of what is wrong,
    and at how many steps a daemon died."""
    wrong, steps = [], 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in itertools.count(1, 2 * AT_ONCE * stride):
            steps_now = range(first, first + 2 * AT_ONCE * stride, stride)
            results = list(pool.map(lambda step: one(step, **env), steps_now))
            for w, died in results:
                wrong += w
                steps += died
            if wrong or not all(died for _, died in results):
                return wrong, steps


def random_kills(kills=KILLS, seed=1, pauses=0):
    """Kill a daemon so many times at random moments. It has jobs with a rate, none of whose times may be left out. @pauses: of
    100 times, how often the daemon is only stopped for a while. Returns a list of what is wrong, and how many firings are
    over."""
    rng = random.Random(seed)
    with Daemon() as d:
        d.start()
        for n in range(4):
            d.put(f"rate{n}", rate="50ms", exec=d.writes(), missed="all", overlap="queue", queue=1000)
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 0.6))
            if rng.randrange(100) < pauses:
                d.process.send_signal(signal.SIGSTOP)
                time.sleep(rng.uniform(0.1, 2))
                d.process.send_signal(signal.SIGCONT)
                continue
            d.kill()
            d.start()
        for n in range(4):
            d.post(f"/v1/jobs/rate{n}/pause")
        until(lambda: not [r for r in d.get("/v1/runs?limit=1000") if r["state"] != "over"])
        for n in range(4):
            d.request("DELETE", f"/v1/jobs/rate{n}")
        d.stop()
        wrong, firings = judge(f"{d.dir}/state/jobs.db", d.lines())
        return wrong + [d.unsound()] * bool(d.unsound()), firings


def main():
    tap = Tap(6)
    began = time.monotonic()
    wrong, steps = storm()
    print(f"# {steps} steps, {time.monotonic() - began:.0f} s")
    tap.ok(not wrong, "killed at each step: 0 lost, 0 early, attempts numbered", *wrong)
    tap.ok(steps >= 30, "these were many", steps)
    wrong, steps = storm(STRIDE, TWHEELD_LOSSY="1")
    print(f"# {steps} steps, {time.monotonic() - began:.0f} s")
    tap.ok(not wrong, "power lost at each step, write and sync: 0 lost, 0 early, attempts numbered", *wrong)
    tap.ok(steps >= 120 // STRIDE, "these were many", steps)
    wrong, firings = random_kills()
    print(f"# {firings} firings, {time.monotonic() - began:.0f} s")
    tap.ok(not wrong, "killed at random: each time of a rate ran, once in the history", *wrong)
    tap.ok(firings >= 100, "these were many", firings)
    tap.done()


if __name__ == "__main__":
    main()
