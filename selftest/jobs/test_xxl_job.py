#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Parity with xxl-job: check what its documentation promises. Here an executor is a runner, and an app name is the runner's
pool. Runners take work, and are not given it. So there are no routes, and the test checks what the routes are for. Not here:
code that is edited on the page."""
import datetime
import os
import re
import time

from daemon import Tap, until
from remote import Remote, Runner, taken_at_once


def run(d, name, **shot):
    answer = d.post(f"/v1/jobs/{name}/shots", [{"after": 0, **shot}]) if shot else d.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def running(d, key):
    return until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running"])


def over(d, key):
    """Wait until a run is over. Returns all its attempts as (attempt, outcome), the first one first."""
    until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "over" and not r["more"]])
    return [(r["attempt"], r["outcome"]) for r in reversed(d.get(f"/v1/runs/{key}")) if r["state"] == "over"]


def gate(d, name):
    return f"while ! [ -e {d.dir}/{name} ]; do sleep 0.02; done"


def sh(text):
    return ["/bin/sh", "-c", text]


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def where(d, key):
    """Returns the directories of the runners that have executed a run. The job prints them."""
    return re.findall(r"twheeld\.\w+", d.output(key))


# ---- block strategies -----------------------------------------------------------------------------

def blocks(tap, d):
    for word, wanted in (("queue", ["ok", "ok", "ok", "running", "queued", "queued"]), ("skip", ["ok", "skipped", "skipped"]),
                         ("replace", ["killed", "skipped", "ok"])):
        # The job ignores SIGTERM: a run that is to be replaced must not end before the last run has been asked for.
        d.put(word, exec=sh(f"trap '' TERM; {gate(d, word)}; echo $TWHEEL_ARG"), overlap=word, pool="p", stop="60s")
        keys = [run(d, word, arg="0")]
        running(d, keys[0])
        keys += [run(d, word, arg=str(n)) for n in (1, 2)]
        states = [until(lambda key=key: (state := d.get(f"/v1/runs/{key}")[0]["state"]) != "due" and state) for key in keys]
        if word == "replace":
            until(lambda key=keys[1]: d.get(f"/v1/runs/{key}")[0]["state"] == "over")
        os.mknod(f"{d.dir}/{word}")
        tap.same([over(d, key)[-1][1] for key in keys] + [state for state in states if word == "queue"], wanted,
                 {"queue": "SERIAL_EXECUTION (queue)", "skip": "DISCARD_LATER (skip)", "replace": "COVER_EARLY (replace)"}[word])


# ---- routing's purpose ----------------------------------------------------------------------------

def routes(tap, d, one):
    d.put("busy", exec=sh(f"echo $TWHEEL_STATE; {gate(d, 'busy')}"), pool="p", overlap="allow")
    d.put("who", exec=sh("echo $TWHEEL_STATE"), pool="p", overlap="allow")
    with Runner("p", d, name="two", runs=1) as two:
        two.start()
        keys = [run(d, "busy") for _ in range(3)]       # the runner "one" has room for two runs, "two" for one
        for key in keys:
            until(lambda key=key: where(d, key))
        places = [place for key in keys for place in where(d, key)]
        tap.same(sorted(places.count(os.path.basename(r.dir)) for r in (one, two)), [1, 2],
                 "BUSYOVER: a runner that has no room gets nothing", places)
        waits = run(d, "who")
        until(lambda: [r for r in d.get(f"/v1/runs/{waits}") if r["state"] == "ready"])
        time.sleep(0.3)
        state = d.get(f"/v1/runs/{waits}")[0]["state"]
        os.mknod(f"{d.dir}/busy")
        tap.same([state, over(d, waits)], ["ready", [(1, "ok")]], "what nobody has room for waits")
        for key in keys:
            over(d, key)
        d.put("hashed", exec=sh("echo $TWHEEL_STATE"), pool="p", overlap="allow", prefer="key of the data")
        keys = []
        while len(keys) < 6:
            key = run(d, "hashed")
            over(d, key)
            if taken_at_once(d, key):
                keys.append(key)
        tap.same(len({where(d, key)[0] for key in keys}), 1, "CONSISTENT_HASH (prefer): always the same runner")
        d.put("shards", exec=sh("echo $TWHEEL_SHARD/$TWHEEL_SHARDS $TWHEEL_ARG"), pool="p", each=True)
        key = run(d, "shards", arg="param")
        tap.same([over(d, key), sorted(re.findall(r"\d/\d param", d.output(key)))], [[(1, "ok")], ["0/2 param", "1/2 param"]],
                 "SHARDING_BROADCAST (each): all runners, each knows its shard")
        two.kill()
        keys = [run(d, "who") for _ in range(4)]
        tap.same([(over(d, key), where(d, key)) for key in keys], [([(1, "ok")], [os.path.basename(one.dir)])] * 4,
                 "FAILOVER: a dead runner gets nothing")


def lost(tap, d):
    """If a runner dies, another runner repeats its run."""
    with Runner("q", d, name="dies") as dies, Runner("q", d, name="heir") as heir:
        dies.start()
        d.put("frail", exec=sh(f"[ $TWHEEL_ATTEMPT = 2 ] || {gate(d, 'never')}"), pool="q")
        key = run(d, "frail")
        running(d, key)
        heir.start()
        dies.kill()
        tap.same(over(d, key), [(1, "lost"), (2, "ok")], "the run of a runner that died is run by another one")


def misfires(tap):
    """What happens to times that were due while no scheduler ran. The grace stands for xxl-job's five seconds."""
    with Remote() as d, Runner("p", d.start(), name="one") as one:
        one.start()
        for word in ("once", "skip"):
            d.put(word, cron="* * * * * *", missed=word, grace="0.9s", exec=["true"], pool="p", overlap="queue", queue=100)
            d.over(word)
        d.stop()
        fired = dict(d.query("SELECT name, max(at) / 1000000 FROM (SELECT job, at FROM running UNION SELECT job, at FROM history)"
                             " JOIN job ON job.id = job GROUP BY job"))
        time.sleep(3.2)
        back, early = utc(time.time()), utc(time.time() - 0.9)      # times between these two are not missed yet
        d.start()
        rows = {}
        for word in ("once", "skip"):
            until(lambda word=word: any(r["at"] > back and r["outcome"] == "ok" for r in d.over(word)))
            rows[word] = [r for r in d.over(word) if utc(fired[word]) < r["at"] < early]
        for word, outcome, name in (("skip", "missed", "DO_NOTHING (skip): none is made up for"),
                                    ("once", "ok", "FIRE_ONCE_NOW (once): one run makes up for all")):
            tap.ok([r["outcome"] for r in rows[word]] == [outcome] and rows[word][0]["missed"] >= 2, name, rows[word])
        tap.ok(one.stop() == 0 and d.stop() == 0 and not one.unsound() + d.unsound(), "both were sound", one.unsound(), d.unsound())


# ---- jobs -----------------------------------------------------------------------------------------

def jobs(tap, d):
    for name in ("child-ok", "child-fail"):
        d.put(name, exec=["true"], pool="p")
    d.put("parent", exec=sh("exit $TWHEEL_ARG"), pool="p", then={"ok": ["child-ok"], "fail": ["child-fail"]}, overlap="queue")
    over(d, run(d, "parent", arg="0"))
    over(d, run(d, "parent", arg="1"))
    tap.same([len(d.over(name)) for name in ("child-ok", "child-fail")], [1, 1], "child jobs, also of one that failed")
    d.put("retry", exec=sh("[ $TWHEEL_ATTEMPT = 3 ]"), pool="p", retry={"times": 3, "wait": "10ms"})
    tap.same(over(d, run(d, "retry")), [(1, "failed"), (2, "failed"), (3, "ok")], "failed runs are repeated")
    d.put("timeout", exec=sh("sleep 100"), pool="p", timeout="0.2s")
    tap.same(over(d, run(d, "timeout")), [(1, "timeout")], "timeout")
    d.put("kill", exec=sh("sleep 100"), pool="p")
    key = run(d, "kill")
    running(d, key)
    tap.same([d.post(f"/v1/runs/{key}/kill")[0], over(d, key)], [200, [(1, "killed")]], "kill")
    d.put("log", exec=sh(f"echo one; {gate(d, 'log')}; echo two"), pool="p")
    key = run(d, "log")
    first = until(lambda: d.output(key))
    os.mknod(f"{d.dir}/log")
    over(d, key)
    tap.same([first, d.output(key, **{"from": 4})], ["one\n", "two\n"], "rolling log: from a place on, while it runs")
    d.put("param", exec=sh("echo $TWHEEL_ARG"), pool="p")
    key = run(d, "param", arg="a b")
    tap.same([over(d, key), d.output(key)], [[(1, "ok")], "a b\n"], "triggered by hand, with a parameter")
    d.put("delay", delay="0.2s", exec=sh("sleep 0.2"), pool="p")
    rows = d.over("delay", 3)
    d.request("DELETE", "/v1/jobs/delay")
    tap.ok(len(rows) >= 3 and all(row["outcome"] == "ok" for row in rows), "fixed delay", rows)
    d.put("cron", cron="* * * * * *", exec=["true"], pool="p")
    tap.ok(d.over("cron", 2), "cron")
    d.post("/v1/jobs/cron/pause")
    tap.ok(d.get("/v1/jobs/cron")["paused"], "stop and start (pause, resume)")


def main():
    tap = Tap(23)
    with Remote("--lease=3s") as d, Runner("p", d.start(), name="one", runs=2) as one:
        one.start()
        blocks(tap, d)
        routes(tap, d, one)
        lost(tap, d)
        jobs(tap, d)
        tap.same([one.stop(), d.stop()], [0, 0], "both end")
        tap.ok(not one.unsound() + d.unsound(), "both were sound", one.unsound(), d.unsound())
    misfires(tap)
    tap.done()


main()
