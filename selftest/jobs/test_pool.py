#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Runners: how they execute and report runs, which runner takes which run, and what happens if a runner or its daemon is
killed, is stopped for longer than a lease, or ends.

    test_pool.py          with SQLite
    test_pool.py many     with two daemons that share PostgreSQL
"""
import contextlib
import http.client
import http.server
import json
import os
import pwd
import random
import re
import select
import signal
import socket
import sys
import threading
import time

from daemon import IN_TIME, PROGRAMS, Tap, cpu_of, until
from judge import judge
from postgres import ROOT, Node, Server
from remote import TOKENS, Listens, Remote, Runner, taken_at_once

LEASE = 6.0         # a runner's lease in s, where it matters: three times its daemon's


def run(d, name, **shot):
    answer = d.post(f"/v1/jobs/{name}/shots", [{"after": 0, **shot}]) if shot else d.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def running(d, key, attempt=1):
    """Wait until attempt @attempt of the run has begun. Returns the rows that say so."""
    return until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running" and r["attempt"] == attempt])


def ready(d, key):
    """Wait until the run waits for a runner. Returns the rows that say so."""
    return until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "ready"])


def attempts(d, key):
    return [(r["attempt"], r["outcome"]) for r in reversed(d.get(f"/v1/runs/{key}")) if r["state"] == "over"]


def over(d, key):
    until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "over" and not r["more"]])
    return attempts(d, key)


def who(d, key):
    """Returns the directories of the runners or daemons that executed a run, if it prints $TWHEEL_STATE."""
    return re.findall(r"(twheeld\.\w+)/state", d.output(key))


def waits_for(d, name):
    return f"while ! [ -e {d.dir}/{name} ]; do sleep 0.02; done"


# ---- what a runner runs ---------------------------------------------------------------------------

def runs(tap, d):
    with Runner("p", d, name="one") as one:
        one.start()
        d.put("env", exec=["/bin/sh", "-c", "env | grep ^TWHEEL_ | sort; echo; cat; pwd"], input="in\n", dir="/", pool="p",
              env={"X": "y"})
        key = run(d, "env", arg="it's")
        state = os.stat(f"{one.dir}/state")
        at = over(d, key) and d.get(f"/v1/runs/{key}")[0]["at"]
        tap.same(d.output(key).split("\n"),
                 ["TWHEEL_ARG=it's", f"TWHEEL_AT={at}", "TWHEEL_ATTEMPT=1", "TWHEEL_JOB=env", f"TWHEEL_KEY={key}",
                  "TWHEEL_MISSED=0", f"TWHEEL_STATE={one.dir}/state", f"TWHEEL_STATE_ID={state.st_dev:x}-{state.st_ino:x}", "", "in", "/", ""],
                 "a runner runs as a daemon does")
        d.put("fail", exec=["/bin/sh", "-c", "echo $TWHEEL_ATTEMPT; exit 7"], pool="p", retry={"times": 1, "wait": "10ms"})
        key = run(d, "fail")
        tap.same([over(d, key), d.get(f"/v1/runs/{key}")[0]["status"], d.output(key, attempt=1), d.output(key, attempt=2)],
                 [[(1, "failed"), (2, "failed")], 7, "1\n", "2\n"], "retries, statuses and logs")
        d.put("none", exec=["/nowhere"], pool="p")
        d.put("user", exec=["true"], pool="p", user="nobody-is-called-that")
        keys = [run(d, "none"), run(d, "user")]
        tap.same([over(d, k) and (d.get(f"/v1/runs/{k}")[0]["status"], d.output(k)) for k in keys],
                 [(127, "twheeld: /nowhere: No such file or directory\n"),
                  (125, "twheeld: user: there is no user 'nobody-is-called-that'\n")], "what cannot be run says why")
        d.put("big", exec=["/bin/sh", "-c", "seq 1000000; echo end"], pool="p")
        key = run(d, "big")
        text = over(d, key) and read_all(d, key)
        tap.ok(text.startswith("1\n2\n3\n") and text.endswith("999999\n1000000\nend\n") and 500000 < len(text) < 1100000
               and "bytes are left out" in text, "of much output the log has the head and the tail", len(text), text[-100:])
        name = "nobody" if ROOT else pwd.getpwuid(os.getuid()).pw_name
        d.put("other", exec=["id", "-un"], pool="p", dir="/", user=name)
        key = run(d, "other")
        tap.same([over(d, key), d.output(key)], [[(1, "ok")], f"{name}\n"], "a runner runs a job as its user")
        d.put("inherits", exec=["/bin/sh", "-c", "for fd in $(seq 3 99); do [ ! -e /proc/$$/fd/$fd ] || readlink /proc/$$/fd/$fd; done"], pool="p")
        key = run(d, "inherits")
        tap.same([over(d, key), d.output(key)], [[(1, "ok")], ""], "a run does not get the connection to the daemon, nor another descriptor")
        d.put("talk", exec=["/bin/sh", "-c", f"echo one; {waits_for(d, 'talk.told')}; echo two"], pool="p")
        key = run(d, "talk")
        early = until(lambda: running(d, key) and d.output(key))
        os.mknod(f"{d.dir}/talk.told")
        tap.same([early, over(d, key), d.output(key)], ["one\n", [(1, "ok")], "one\ntwo\n"], "a log can be followed")
        d.put("long", exec=["/bin/sh", "-c", "trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.05; done"], pool="p")
        key = run(d, "long")
        until(lambda: running(d, key) and d.output(key))
        d.post(f"/v1/runs/{key}/kill")
        tap.same([over(d, key), "term\n" in d.output(key)], [[(1, "killed")], True], "kill")
        d.put("slow", exec=["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], pool="p", timeout="0.2s", stop="0.2s")
        key = run(d, "slow")
        tap.same([over(d, key), d.get(f"/v1/runs/{key}")[0]["status"]], [[(1, "timeout")], 137], "timeout")
        d.put("queue", exec=["/bin/sh", "-c", f"{waits_for(d, 'queue.told')}; echo $TWHEEL_ARG"], pool="p", overlap="queue")
        keys = [run(d, "queue", arg=str(n)) for n in range(3)]
        running(d, keys[0])
        states = [d.get(f"/v1/runs/{k}")[0]["state"] for k in keys]
        os.mknod(f"{d.dir}/queue.told")
        tap.same([states, [over(d, k) for k in keys]], [["running", "queued", "queued"], [[(1, "ok")]] * 3], "overlap: queue")
        tap.same([one.stop(), one.unsound(), d.get("/v1/runners")], [0, "", []], "a runner ends")
    with Runner("a+b:c@d", d, name="e+f") as one:
        one.start()
        d.put("plus", exec=["true"], pool="a+b:c@d", overlap="allow")
        keys = [run(d, "plus") for _ in range(8)]
        tap.same([[over(d, key) for key in keys], one.stop(), one.unsound()], [[[(1, "ok")]] * 8, 0, ""], "names with each sign that they may have")
    with Runner("p", d, name="a b") as one:
        status = one.start(wait=False).process.wait(60)
        tap.same([status, one.stderr()], [1, "twheeld: 'a b' is not a valid name for a runner: say --name=NAME\n"], "a name that is none")
    with Runner("p", d, name="lonely") as one:
        said = []
        for path in ("/nowhere", d.tokens):
            one.args = [f"--runner={path}", *one.args[1:]]
            one.start(wait=False)
            until(lambda: one.stderr().count("\n") > len(said))
            one.kill()
            said = one.stderr().splitlines()
        tap.same(said, ["twheeld: /nowhere: No such file or directory", f"twheeld: {d.tokens}: Connection refused"],
                 "a socket that is none")


def read_all(d, key):
    text, at = "", 0
    while True:
        connection = d.connection()
        connection.request("GET", f"/v1/runs/{key}/log?from={at}")
        answer = connection.getresponse()
        part = answer.read().decode()
        at = int(answer.headers["Log-Next"])
        if not part:
            return text
        text += part


# ---- who takes what -------------------------------------------------------------------------------

def choices(tap, d):
    with Runner("q", d, name="one", runs=1) as one, Runner("q", d, name="two") as two, Runner("other", d, name="three") as three:
        d.put("low", exec=["/bin/sh", "-c", f"{waits_for(d, 'prio.told')}"], pool="q", overlap="allow")
        for name, prio in (("mid", 0), ("last", -5), ("first", 9)):
            d.put(name, exec=["/bin/sh", "-c", f"echo {name} >>{d.dir}/order"], pool="q", prio=prio)
        three.start()
        key = run(d, "low")
        ready(d, key)
        time.sleep(0.5)
        tap.same([d.get(f"/v1/runs/{key}")[0]["state"], attempts(d, key)], ["ready", []], "a run waits for a runner of its pool")
        one.start()
        running(d, key)
        keys = [run(d, name) for name in ("mid", "last", "first")]
        for k in keys:
            ready(d, k)
        os.mknod(f"{d.dir}/prio.told")
        tap.ok(all(over(d, k) == [(1, "ok")] for k in keys), "one after the other if there is room for one")
        tap.same(d.lines("order"), [["first"], ["mid"], ["last"]], "prio")
        d.put("each", exec=["/bin/sh", "-c", "echo $TWHEEL_SHARD/$TWHEEL_SHARDS $TWHEEL_STATE"], pool="q", each=True)
        key = run(d, "each")
        tap.same([over(d, key), sorted(line.split("/")[:2] for line in d.output(key).splitlines())],
                 [[(1, "ok")], [["0", "1 "]]], "each: one runner, one shard")
        two.start()
        key = run(d, "each")
        tap.same([over(d, key), sorted(re.findall(r"^\d/\d", d.output(key), re.M)), sorted(who(d, key))],
                 [[(1, "ok")], ["0/2", "1/2"], sorted(os.path.basename(r.dir) for r in (one, two))], "each: two runners, a shard each")
        d.put("half", exec=["/bin/sh", "-c", "echo $TWHEEL_ATTEMPT $TWHEEL_SHARD; [ $TWHEEL_SHARD = 0 ] || [ $TWHEEL_ATTEMPT = 2 ]"],
              pool="q", each=True, retry={"times": 3, "wait": "10ms"})
        key = run(d, "half")
        tap.same([over(d, key), sorted(d.output(key, attempt=1).split("\n")), d.output(key, attempt=2)],
                 [[(1, "failed"), (2, "ok")], ["", "1 0", "1 1"], "2 1\n"], "each: only the shard that failed is repeated")
        d.put("prefer", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"], pool="q", prefer="a")
        places = set()
        for letter in "abcdefgh":
            d.put("prefer", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"], pool="q", prefer=letter)
            found = []
            while len(found) < 4:
                key = run(d, "prefer")
                over(d, key)
                if taken_at_once(d, key):
                    found += who(d, key)
            places.add(tuple(set(found)))
        tap.ok(len(places) == 2 and all(len(p) == 1 for p in places), "prefer: a key has its runner, and each has some", places)
        d.put("busy", exec=["/bin/sh", "-c", waits_for(d, "busy.told")], pool="q", prefer="a", overlap="allow")
        d.put("prefer", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"], pool="q", prefer="a")
        home = over(d, run(d, "prefer")) and who(d, d.over("prefer")[-1]["run"])
        keys = [run(d, "busy") for _ in range(4)]
        for k in keys:
            running(d, k)
        began = time.monotonic()
        away = over(d, run(d, "prefer")) and who(d, d.over("prefer")[-1]["run"])
        took = time.monotonic() - began
        os.mknod(f"{d.dir}/busy.told")
        tap.ok(home and away and (home == away or took >= 1.9) and took < 30, "prefer: for 2 s if it is busy", home, away, took)
        for k in keys:
            over(d, k)
        tap.same([r.stop() for r in (one, two, three)] + [r.unsound() for r in (one, two, three)], [0] * 3 + [""] * 3, "they end")


def changes(tap, d):
    """Replace a job's definition while its run waits for a runner, for its next attempt, or for room at the daemon. The run must
    begin where the new definition says: in its pool or at the daemon."""
    d.put("moves", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"], pool="none", each=True, overlap="allow")
    key = run(d, "moves")
    until(lambda: d.get(f"/v1/runs/{key}"))
    d.put("moves", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"])
    tap.same([over(d, key), who(d, key)], [[(1, "ok")], [os.path.basename(d.dir)]], "a job leaves its pool")
    d.put("moves", exec=["false"], pool="none")
    key = run(d, "moves")
    ready(d, key)
    time.sleep(0.5)
    d.put("moves", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"])
    tap.same([over(d, key), who(d, key)], [[(1, "ok")], [os.path.basename(d.dir)]], "also when its run waits for a runner already")
    retry = {"times": 1, "wait": "1s"}
    with Runner("first", d, name="first") as first, Runner("second", d, name="second") as second:
        second.start()
        d.put("moves", exec=["false"], pool="first")
        keys = [run(d, "moves")]
        ready(d, keys[0])
        time.sleep(0.5)
        d.put("moves", exec=["true"], pool="second")
        over(d, keys[0])
        first.start()
        d.put("moves", exec=["false"], pool="first", retry=retry)
        keys.append(run(d, "moves"))
        until(lambda: attempts(d, keys[1]))
        first.stop()
        d.put("moves", exec=["true"], pool="second", retry=retry)
        tap.same([over(d, k) for k in keys] + [second.stop()], [[(1, "ok")], [(1, "failed"), (2, "ok")], 0],
                 "a job goes into another pool while it waits for a runner, or for its next attempt")
    with Runner("third", d, name="third") as third, Runner("fourth", d, name="fourth") as fourth, Runner("third", d, name="also") as also:
        for one in (third, fourth, also):
            one.start()
        part = {"each": True, "retry": retry, "exec": ["/bin/sh", "-c", "test $TWHEEL_SHARD = 0 -o $TWHEEL_ATTEMPT = 2"]}
        d.put("parts", pool="third", **part)
        key = run(d, "parts")
        until(lambda: attempts(d, key))
        third.kill(), also.kill()
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["attempt"] == 2 and r["state"] == "ready"])
        time.sleep(1)       # until the run waits in the pool
        d.put("parts", pool="fourth", **part)
        tap.same(over(d, key), [(1, "failed"), (2, "ok")], "a part that is to be made again goes there, too", d.get(f"/v1/runs/{key}"))
    d.put("full", exec=["/bin/sh", "-c", waits_for(d, "full.told")], overlap="allow")
    keys = [run(d, "full") for _ in range(8)]
    for k in keys:
        running(d, k)
    key = run(d, "moves")
    until(lambda: d.get(f"/v1/runs/{key}"))
    d.put("moves", exec=["/bin/sh", "-c", "echo $TWHEEL_STATE"], pool="late")
    with Runner("late", d, name="late") as late:
        late.start()
        os.mknod(f"{d.dir}/full.told")
        tap.same([over(d, key), who(d, key), late.stop(), late.unsound()], [[(1, "ok")], [os.path.basename(late.dir)], 0, ""],
                 "a job goes into a pool")
    for k in keys:
        over(d, k)


# ---- deaths ---------------------------------------------------------------------------------------

def logs(runner):
    return [file for _, _, files in os.walk(f"{runner.dir}/state/unsent") for file in files]


def dies(d, two, name):
    """Kill a runner that has two runs, one with lost="report", and start it again. Returns whether runner @two begins the other
    run again, how long that takes, the outcomes, what a sanitizer says, whether logs are left, and which after the start."""
    with Runner("r", d, name="one") as one:
        one.start()
        told = f"{name}.told"
        d.put(name, exec=d.writes("deaths", f"; echo x; {waits_for(d, told)}"), pool="r")
        d.put(f"{name}-report", exec=d.writes("deaths", f"; {waits_for(d, told)}"), pool="r", lost="report")
        keys = [run(d, name), run(d, f"{name}-report")]
        for k in keys:
            running(d, k)
        until(lambda: logs(one))
        two.start()
        began = time.monotonic()
        one.kill()
        one.kill_marked()
        again = running(d, keys[0], 2)
        took = time.monotonic() - began
        os.mknod(f"{d.dir}/{told}")
        outcomes = [over(d, k) for k in keys]
        kept = logs(one)
        one.start()
        return again, took, outcomes, one.unsound(), (bool(kept), logs(one))


def goes_on(d, name):
    """Kill the daemon while a runner has a run, and start it at once. Returns the run's state, outcomes and number of begins, and
    for how long the daemon was away."""
    d.put(name, exec=d.writes(name, f"; {waits_for(d, f'{name}.told')}"), pool="r", timeout="1h")
    key = run(d, name)
    running(d, key)
    began = time.monotonic()
    d.kill()
    d.start()
    away = time.monotonic() - began
    state = until(lambda: [r["state"] for r in d.get(f"/v1/runs/{key}")])
    time.sleep(LEASE)
    os.mknod(f"{d.dir}/{name}.told")
    return [state, over(d, key), len(d.lines(name))], away


def killed_before(d, name):
    """Kill a run of a job with retries, kill the daemon when the run ends, and start the daemon. Returns the status of the
    request to kill, the outcomes, and how many lines the run wrote: one at its begin, one at its end."""
    d.put(name, exec=["/bin/sh", "-c", f"trap 'echo >>{d.dir}/{name}; exit 3' TERM; echo >>{d.dir}/{name}; while :; do sleep 0.05; done"],
          pool="r", retry={"times": 1, "wait": "1ms"})
    key = run(d, name)
    until(lambda: d.lines(name))
    status = d.post(f"/v1/runs/{key}/kill")[0]
    until(lambda: len(d.lines(name)) == 2)
    d.kill()
    d.start()
    return [status, over(d, key), len(d.lines(name))]


def orphaned(d, two, name):
    """Kill the daemon, and start it when runner @two has killed its run. Returns whether the runner did that, how long it took,
    the last attempt with its outcome, and the last two lines of what the attempts wrote."""
    d.put(name, exec=["/bin/sh", "-c", f"echo b >>{d.dir}/{name}; {waits_for(d, f'{name}.told')}; echo e >>{d.dir}/{name}"], pool="r")
    key = run(d, name)
    running(d, key)
    until(lambda: d.lines(name))
    d.kill()
    began = time.monotonic()
    gone = until(lambda: not two.marked())
    took = time.monotonic() - began
    d.start()
    os.mknod(f"{d.dir}/{name}.told")
    return gone, took, over(d, key)[-1], d.lines(name)[-2:]


def hands_over(d, runners, name):
    """Stop that of two runners which executes a run. Returns its exit status, how long it took until the next attempt began, the
    outcomes, whether the other runner executed that attempt, the other runner, and the stopped one."""
    d.put(name, exec=["/bin/sh", "-c", f"echo $TWHEEL_STATE >>{d.dir}/{name}; {waits_for(d, f'{name}.told')}"], pool="r")
    key = run(d, name)
    running(d, key)
    until(lambda: d.lines(name))
    first, other = sorted(runners, key=lambda r: r.dir not in d.lines(name)[0][0])
    began = time.monotonic()
    status = first.stop()
    running(d, key, 2)
    took = time.monotonic() - began
    os.mknod(f"{d.dir}/{name}.told")
    return status, took, over(d, key), other.dir in d.lines(name)[1][0], other, first


def deaths(tap, d):
    with Runner("r", d, name="two") as two:
        for n in range(IN_TIME):
            again, took, outcomes, unsound, kept = dies(d, two, f"again{n}")
            if took < LEASE + 3 or unsound:
                break
            two.stop()
        tap.ok(again and took < LEASE + 3 and not unsound, "a runner dies: another makes the run again", again, took, unsound)
        tap.same(outcomes, [[(1, "lost"), (2, "ok")], [(1, "lost")]], "or it is lost, if its job says so")
        tap.same(kept, (True, []), "a runner that begins again removes the logs that it has left")

        for n in range(IN_TIME):      # try again if a busy host keeps the daemon away for half of the lease
            got, away = goes_on(d, f"on{n}")
            if away < LEASE / 2:
                break
        tap.same(got, [["running"], [(1, "ok")], 1], "the daemon dies: the run goes on", away)

        tap.same(killed_before(d, "killed"), [200, [(1, "killed")], 2], "the daemon dies: a run that was killed before is not made again")

        for n in range(IN_TIME):
            gone, took, last, lines = orphaned(d, two, f"stop{n}")
            if took < LEASE + 2:
                break
        tap.ok(gone and took < LEASE + 2, "no daemon for longer than the lease: the runner kills what must not overlap", gone, took)
        tap.same([last, lines], [(2, "ok"), [["b"], ["e"]]], "and it is made again")

        with Runner("r", d, name="three") as three:
            d.put("stuck", exec=["/bin/sh", "-c", f"echo $TWHEEL_STATE >>{d.dir}/stuck; {waits_for(d, 'stuck.told')}"], pool="r")
            key = run(d, "stuck")
            running(d, key)
            three.start()
            until(lambda: d.lines("stuck"))
            two.pause(LEASE + 2)
            running(d, key, 2)
            killed = until(lambda: not two.marked())
            time.sleep(0.5)
            os.mknod(f"{d.dir}/stuck.told")
            tap.same([killed, over(d, key), len(d.lines("stuck"))], [True, [(1, "lost"), (2, "ok")], 2],
                     "a runner that was stopped for longer kills its run, and what it says is refused")
            for n in range(IN_TIME):
                status, took, outcomes, is_other, other, first = hands_over(d, (two, three), f"hand{n}")
                if took < LEASE - 0.5:
                    break
                first.start()
            tap.ok([status, outcomes, is_other] == [0, [(1, "lost"), (2, "ok")], True] and took < LEASE - 0.5,
                   "a runner that ends hands its run over at once", status, took, outcomes, is_other)
            tap.same([other.stop(), three.unsound(), two.unsound()], [0, "", ""], "they end")


def gets_pool(tap):
    """A daemon executes two runs itself. Their jobs get a pool, and the daemon is killed or stopped and starts again. Both
    attempts must be lost, and only the job with lost="again" must get another one, at a runner."""
    for how in ("kill", "stop"):
        with Remote("--lease=2s") as d:
            d.start()
            for name in ("again", "report"):
                d.put(name, exec=d.writes(name, "; exec sleep 1000"), lost=name)
            keys = [run(d, name) for name in ("again", "report")]
            until(lambda d=d: d.lines("again") and d.lines("report"))
            for name in ("again", "report"):
                d.put(name, exec=d.writes(name), lost=name, pool="new")
            getattr(d, how)()
            with Runner("new", d.start(), name="new") as new:
                new.start()
                got = [over(d, key) for key in keys]
                tap.same([got, [[line[2] for line in d.lines(name)] for name in ("again", "report")]],
                         [[[(1, "lost"), (2, "ok")], [(1, "lost")]], [["1", "2"], ["1"]]],
                         f"{how}: what a daemon itself has begun is lost, though its job has a pool by now")


def left(tap):
    """Runs wait for runners while their daemon starts again, once with another pool in the stored definition, or while it cannot
    write the kill of a run to its store."""
    with Remote("--lease=1s") as d:
        d.start()
        d.put("again", exec=d.writes("again", "; exec sleep 1000"), pool="old", timeout="8s")
        key = run(d, "again")
        with Runner("old", d, name="old") as old:
            old.start()
            running(d, key)
            old.kill()
            old.kill_marked()
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["attempt"] == 2 and r["state"] == "ready"])
        d.kill()
        d.start()
        time.sleep(8)
        tap.same([(r["attempt"], r["state"]) for r in d.get(f"/v1/runs/{key}")], [(2, "ready"), (1, "over")], "an attempt that nobody has begun has no timeout")
        d.kill()
        d.query("""UPDATE job SET def = replace(def, '"old"', '"new"')""")
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=f"{d.dir}/full")
        with Runner("new", d, name="new") as new:
            new.start()
            tap.ok(running(d, key, 2), "a run waits in the pool of its job, whoever changed that", d.get(f"/v1/runs/{key}"))
        d.put("waits", exec=["true"], pool="nobody")
        key = run(d, "waits")
        ready(d, key)
        os.mknod(f"{d.dir}/full")
        try:
            d.post(f"/v1/runs/{key}/kill")
        except OSError:
            pass
        until(lambda: "the store cannot be written" in d.stderr())
        os.unlink(f"{d.dir}/full")
        tap.same([d.post(f"/v1/runs/{key}/kill")[0], over(d, key)], [200, [(1, "killed")]],
                 "a kill that the store could not be told is told again")


# ---- a runner's requests, made by hand ------------------------------------------------------------

def protocol(tap, d):
    def take(room, who="a-1", runs=(), pool="hand", wait=0, **more):
        return d.ask("POST", "/v1/take", {"runner": who, "name": "a", "pool": pool, "room": room, "wait": wait, "runs": list(runs),
                                          **more}, token=TOKENS["run"])

    d.put("hand", exec=["true"], pool="hand", overlap="allow", retry={"times": 5, "wait": 0})
    key = run(d, "hand")
    status, answer = until(lambda: (a := take(1)) and a[1]["runs"] and a) or take(1)
    got = answer["runs"][0]
    tap.same([status, got["run"], got["attempt"], got["definition"]["exec"], answer["lease_us"]],
             [200, key, 1, ["true"], LEASE * 10**6], "a runner takes a run")
    path = f"/v1/runs/{key}"
    held = {"run": key, "attempt": 1, "shard": 0}
    tap.same([take(0, runs=[held])[1]["gone"], take(0, runs=[{**held, "attempt": 2}])[1]["gone"], take(0, "b-1", [held])[1]["gone"]],
             [[], [{**held, "attempt": 2}], [held]], "what it has and what it has not")
    beats = [d.ask("POST", f"{path}/beat?runner={who}&attempt={n}&from=0", "out\n", token=TOKENS["run"])[0]
             for who, n in (("a-1", 1), ("a-1", 1), ("a-1", 2), ("b-1", 1), ("", 1))]
    far = d.ask("POST", f"{path}/beat?runner=a-1&attempt=1&from={2**63 - 1}", "far", token=TOKENS["run"])[0]
    tap.same([beats, far, d.output(key)], [[200, 200, 409, 409, 409], 400, "out\n"],
             "output that is sent twice is there once, and none is farther away than any can be")
    status = d.ask("POST", f"{path}/done?runner=a-1&attempt=1&status=1&from=4", "more\n", token=TOKENS["run"])[0]
    again = until(lambda: take(1)[1]["runs"])
    tap.same([status, again[0]["attempt"], d.output(key, attempt=1)], [200, 2, "out\nmore\n"], "it has failed, and takes the next attempt")
    answers = [d.ask("POST", f"{path}/{what}?runner={who}&attempt={n}&from=9", "late\n", token=TOKENS["run"])
               for what in ("beat", "done") for who, n in (("a-1", 1), ("b-1", 2))]
    tap.ok([s for s, _ in answers] == [409] * 4 and all("error" in a for _, a in answers), "old attempts are refused, and those of others", answers)
    tap.same([d.output(key, attempt=n) for n in (1, 2)], ["out\nmore\n", ""], "and nothing of what they print is kept")
    asked = [d.ask("POST", f"{p}/{what}?runner={who}&attempt={n}&sent=1000", token=TOKENS["run"])[0] for what in ("beat", "done")
             for p, who, n in ((path, "a-1", 1), (path, "b-1", 2), (path, "", 1), ("/v1/runs/999-5", "a-1", 1))]
    mine = [d.ask("POST", f"{path}/{what}?runner=a-1&attempt=2&sent=1000", token=TOKENS["run"]) for what in ("beat", "done")]
    tap.same([asked, mine], [[409] * 8, [(200, {"log": 0})] * 2], "only who has the attempt is told how long its log is")
    done = [d.ask("POST", f"{path}/done?runner=a-1&attempt=2&status=0", token=TOKENS["run"])[0] for _ in range(2)]
    tap.same([done[0], over(d, key)], [200, [(1, "failed"), (2, "ok")]], "it is over")
    for _ in range(IN_TIME):
        began = time.monotonic()
        take(1, wait="0.3s")
        took = time.monotonic() - began
        if took < 5:
            break
    tap.ok(0.3 <= took < 5, "a request without work waits", took)
    bad = [d.ask(*r, token=TOKENS["run"]) for r in
           (("POST", "/v1/take", b"{}"), ("POST", "/v1/take", b"["), ("POST", f"{path}/done"), ("POST", f"{path}/done?attempt=x"),
            ("POST", f"{path}/done?attempt=1&status=-1"), ("POST", "/v1/runs/x/beat?attempt=1"),
            ("POST", "/v1/take", {"runner": "a/b", "name": "a", "pool": "x"}), ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "room": -1}),
            ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "runs": [{"run": "x"}]}),
            ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "wait": "1h"}),
            ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "wait": None}),
            ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "rooms": 1}),
            ("POST", "/v1/take", {"runner": "a", "name": "a", "pool": "x", "runs": [{"run": key, "attempt": 1, "x": [[]]}]}))]
    tap.ok({s for s, _ in bad} == {400} and all("error" in a for _, a in bad), "bad requests", *bad)
    tap.same([take(0, leave=True), d.get("/v1/runners")[0]["runner"]], [(200, {}), "b-1"], "it leaves")
    wrong = [d.put("x", **more)[1].get("error") for more in (
        {"exec": ["x"], "prio": 1}, {"exec": ["x"], "each": True}, {"exec": ["x"], "pool": "a b"}, {"exec": ["x"], "pool": "a", "prio": 1001},
        {"exec": ["x"], "pool": "a", "each": 1}, {"exec": ["x"], "pool": "a", "each": True, "prefer": "x"}, {"http": "http://x", "pool": "a"})]
    tap.same(wrong, ["prio: allowed only for jobs with pool", "each: allowed only for jobs with pool", "pool: 'a b' is not a valid name for a pool",
                     "prio: expected a number from -1000 to 1000", "each: expected true or false",
                     "prefer: not allowed if each runner runs the job", "pool: allowed only for jobs with exec"], "bad definitions")


def sent_again(tap):
    """A runner reports the end of a run. The daemon dies when that is stored, starts, and gets the report again."""
    with Remote("--lease=2s") as d:
        d.start(TWHEELD_CRASH="a task was over")
        d.put("last", exec=["true"], pool="last")
        key = run(d, "last")
        until(lambda: d.ask("POST", "/v1/take", {"runner": "l-1", "name": "l", "pool": "last", "room": 1}, token=TOKENS["run"])[1]["runs"])
        path = f"/v1/runs/{key}/done?runner=l-1&attempt=1&status=0&from=0"
        try:
            status = d.ask("POST", path, "last\n", token=TOKENS["run"])[0]
        except OSError:
            status = d.crash().process.returncode
        d.start()
        tap.same([status, over(d, key), d.output(key)], [-9, [(1, "ok")], "last\n"], "the daemon dies as a run is over: its output is kept", d.stderr())
        tap.same([d.ask("POST", path, "last\n", token=TOKENS["run"])[0], d.output(key)], [200, "last\n"], "and once, though it is sent again", d.stderr())
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon is sound")


class Asks(http.server.BaseHTTPRequestHandler):
    """A false daemon that claims to lack all output of a run. Each number in @asks says to how many reports in a row; it accepts
    the report after them. After the last number it claims that until a report does not say any more how much was sent."""
    asks, row, heard = [60, 60], 0, []

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"lease_us": 60 * 10**6, "runs": []}
        if "/beat" in self.path:
            self.heard.append("&sent=" in self.path)
            answer = {"log": 0} if self.lacks() else {}
        elif not self.server.given:
            self.server.given = True
            answer["runs"] = [self.server.run]
        elif "/done" not in self.path:
            time.sleep(0.2)     # the runner asks for more as soon as it has the answer
        try:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())
        except OSError:
            pass

    def lacks(self):
        if not self.asks:
            return self.heard[-1]
        Asks.row += 1
        if self.row <= self.asks[0]:
            return True
        Asks.row = 0
        self.asks.pop(0)
        return False

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


def asked_in_a_row(tap, d):
    """If a daemon claims to lack output, the runner sends the output again, but only a hundred times in a row. An accepted report
    ends the row."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asks)
    server.given = False
    server.run = {"run": "7-1767225600000000", "job": "j", "attempt": 1, "missed": 0, "shard": 0, "shards": 1,
                  "definition": {"exec": ["/bin/sh", "-c", f"while ! [ -e {d.dir}/heard ]; do echo x; sleep 0.05; done"]}}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Runner("x", d, name="asked") as one:
        one.args = [f"--runner=http://127.0.0.1:{server.server_port}", *one.args[1:]]
        one.start(wait=False)
        until(lambda: False in Asks.heard)
        os.mknod(f"{d.dir}/heard")
        first = Asks.heard.index(False) if False in Asks.heard else None
        tap.same([first, one.stop(), one.unsound()], [60 + 1 + 60 + 1 + 100, 0, ""],
                 "a runner that was asked a hundred times in a row does not ask what the daemon has", one.stderr())
    server.shutdown()


def large(tap, d):
    """A runner asks for 12 runs whose definitions are too long for one answer."""
    def take(room):
        return [r["run"] for r in d.ask("POST", "/v1/take", {"runner": "l-1", "name": "l", "pool": "large", "room": room},
                                        token=TOKENS["run"])[1]["runs"]]

    d.put("large", exec=["true"], input="x" * 900000, pool="large", overlap="allow")
    keys = [run(d, "large") for _ in range(12)]
    for k in keys:
        ready(d, k)
    parts = [take(12) for _ in range(3)]
    tap.ok(all(1 < len(p) < 8 for p in parts[:2]) and sorted(sum(parts, [])) == sorted(keys),
           "a runner is given some MiB at once, and the rest when it asks again", [len(p) for p in parts])
    d.request("DELETE", "/v1/jobs/large")
    for k in keys:
        d.post(f"/v1/runs/{k}/kill")


def waits(tap, d):
    """40 requests for work with bodies of 1 MB wait. Meanwhile the daemon must use little CPU: it reads a body once and does not
    keep it. One of the requests must get a run."""
    def all_wait():
        return sum(r["pool"] == "waits" for r in d.get("/v1/runners")) == 40

    sockets = []
    for n in range(40):
        body = json.dumps({"runner": f"w-{n}", "name": "w", "pool": "waits", "room": 1, "wait": "60s"}).encode() + b" " * 1_000_000
        sockets.append(socket.create_connection(("127.0.0.1", d.port)))
        sockets[-1].sendall(f"POST /v1/take HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['run']}\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    until(all_wait)
    time.sleep(1)
    before = cpu_of(d.process.pid)
    time.sleep(3)
    took = cpu_of(d.process.pid) - before
    d.put("waits", exec=["true"], pool="waits")
    key = run(d, "waits")
    taken = running(d, key)
    for s in sockets:
        s.close()
    d.post(f"/v1/runs/{key}/kill")
    tap.ok(took < 0.6 and taken, "40 requests of 1 MB that wait cost nothing, and one gets the run", took, taken)


class Verbose(http.server.BaseHTTPRequestHandler):
    """A false daemon, whose answer is longer than any daemon's."""
    answer = b'{"lease_us":60000000,"runs":[],"x":"' + b"x" * (65 << 20) + b'"}'

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        try:
            self.wfile.write(self.answer)
        except OSError:
            pass

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


def verbose(tap, d):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Verbose)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Runner("x", d, name="patient") as one:
        one.args = [f"--runner=http://127.0.0.1:{server.server_port}", *one.args[1:]]
        for n in range(20):     # a runner says only once why it has no daemon: on a busy host perhaps a timeout
            one.start(wait=False)
            until(lambda n=n: len(one.stderr().splitlines()) > n)
            said = one.stderr().splitlines()[-1]
            if "timed out" not in said:
                break
            one.kill()
        tap.ok("is longer than 67108864 bytes" in said, "an answer that is too long is none, and is not cut", one.stderr())
    server.shutdown()


SLEEPS = "echo begin $TWHEEL_ATTEMPT >>{0}; sleep 12; echo end $TWHEEL_ATTEMPT >>{0}"


def outlives(tap):
    """While a runner has runs, its daemon cannot write, or is away, for longer than a runner's lease. In the first case a run
    must continue; in the second, if it may overlap."""
    with Remote("--lease=2s") as d:
        disk = f"{d.dir}/disk"
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=disk)
        with Runner("p", d, name="one") as one:
            one.start()
            keys = []
            for name, more in (("away", {"overlap": "allow"}), ("full", {}), ("both", {"overlap": "allow", "lost": "report"})):
                d.put(name, pool="p", exec=["/bin/sh", "-c", SLEEPS.format(f"{d.dir}/{name}")], **more)
            keys.append(run(d, "full"))
            until(lambda: d.lines("full"))
            os.mknod(disk)
            time.sleep(LEASE + 2)
            os.unlink(disk)
            tap.same([over(d, keys[0]), d.lines("full")], [[(1, "ok")], [["begin", "1"], ["end", "1"]]],
                     "a runner's run continues while its daemon cannot write", one.stderr(), d.stderr())
            keys = [run(d, name) for name in ("away", "both")]
            until(lambda: d.lines("away") and d.lines("both"))
            d.kill()
            time.sleep(LEASE + 1)
            d.start()
            tap.same([over(d, key) for key in keys], [[(1, "ok")]] * 2, "and while there is none, if it may overlap", one.stderr(), d.stderr())


def clock_set(tap):
    """Set the daemon's clock forward by much more than a lease while a runner has a run. The run must not be lost."""
    with Remote("--lease=2s", LD_PRELOAD=f"{PROGRAMS}/clock.so", AHEAD="3600",
                ASAN_OPTIONS=os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0") as d:
        d.env["AHEAD_IF"] = f"{d.dir}/ahead"
        d.start()
        with Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
            one.start(), two.start()
            d.put("j", pool="p", exec=["/bin/sh", "-c", SLEEPS.format(f"{d.dir}/j")])
            key = run(d, "j")
            until(lambda: d.lines("j"))
            os.mknod(f"{d.dir}/ahead")
            tap.same([over(d, key), d.lines("j")], [[(1, "ok")], [["begin", "1"], ["end", "1"]]],
                     "nor is it lost because the clock was set", one.stderr(), two.stderr(), d.stderr())


def clock_set_back(tap):
    """Kill a runner that has a run, and set the daemon's clock back by an hour. A runner that another run prefers has no room.
    The lease and the preference must end as they do without that."""
    with Remote("--lease=1s", LD_PRELOAD=f"{PROGRAMS}/clock.so", AHEAD="-3600",
                ASAN_OPTIONS=os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0") as d:
        d.env["AHEAD_IF"] = f"{d.dir}/ahead"
        d.start()
        with Runner("p", d, name="one") as one, Runner("p", d, name="two") as two, Runner("q", d, runs=1, name="small") as small, \
                Runner("q", d, name="large") as large:
            one.start(), small.start()
            d.put("j", pool="p", exec=["/bin/sh", "-c", "[ $TWHEEL_ATTEMPT = 2 ] || sleep 1000"])
            d.put("parts", pool="p", exec=["true"], each=True)
            d.put("full", pool="q", exec=["sleep", "1000"])
            d.put("prefers", pool="q", exec=["true"], prefer="small")
            keys = [run(d, "j"), run(d, "full")]
            tap.ok(all(running(d, key) for key in keys), "the clock is set back: two runs", d.stderr())
            keys.append(run(d, "prefers"))
            ready(d, keys[-1])      # it must have fired: with the clock set back, it would be due in an hour
            one.kill()
            os.mknod(f"{d.dir}/ahead")
            two.start(), large.start()
            keys.append(run(d, "parts"))
            tap.same([over(d, key) for key in keys if key != keys[1]], [[(1, "lost"), (2, "ok")], [(1, "ok")], [(1, "ok")]],
                     "no lease and no preference lasts longer for that", d.get("/v1/runners"), d.stderr())


def shorter_lease(tap):
    """Stop a runner that has a run (SIGSTOP), and start its daemon again with a shorter lease. The runner's old lease must
    count."""
    with Remote() as d:
        d.start("--lease=10s")
        with Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
            one.start()
            d.put("j", pool="p", exec=["sleep", "1000"])
            key = run(d, "j")
            running(d, key)
            one.process.send_signal(signal.SIGSTOP)
            d.kill()
            d.start("--lease=1s")
            two.start()
            time.sleep(6)
            tap.same([(r["attempt"], r["state"]) for r in d.get(f"/v1/runs/{key}")], [(1, "running")], "a runner keeps the lease that it was told", d.stderr())
            one.process.send_signal(signal.SIGCONT)


def full_runner(tap):
    """Start the daemon again with a shorter lease, while a runner is well, has a run, and has no room. It must keep the run."""
    with Remote() as d:
        d.start("--lease=20s")
        with Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
            one.start("--runs=1")
            d.put("j", pool="p", exec=["/bin/sh", "-c", f"while sleep 0.2; do echo >>{d.dir}/on; done"])
            key = run(d, "j")
            running(d, key)
            d.stop()
            d.start("--lease=1s")
            two.start()
            time.sleep(12)
            lines = len(d.lines("on"))
            tap.ok(until(lambda: len(d.lines("on")) > lines), "and their processes", lines, one.stderr())
            tap.same([(r["attempt"], r["state"]) for r in d.get(f"/v1/runs/{key}")], [(1, "running")],
                     "a runner that knows of a longer lease keeps its runs", d.stderr(), one.stderr())
            tap.ok(len(d.get("/v1/runners")) == 2, "and stays a runner", d.get("/v1/runners"))


def taken_later(tap):
    """Start the daemon again with a shorter lease, let the runner take a run, and stop the runner (SIGSTOP). Its old lease must
    count."""
    with Remote() as d:
        d.start("--lease=30s")
        with Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
            one.start()
            d.stop()
            d.start("--lease=1s")
            until(lambda: d.get("/v1/runners"))
            d.put("j", pool="p", exec=["sleep", "1000"])
            key = run(d, "j")
            running(d, key)
            one.process.send_signal(signal.SIGSTOP)
            two.start()
            time.sleep(5)
            tap.same([(r["attempt"], r["state"]) for r in d.get(f"/v1/runs/{key}")], [(1, "running")], "what a runner takes, it has for as long as its lease", d.stderr())
            one.process.send_signal(signal.SIGCONT)


def no_definition(tap):
    """Definitions are lost, as in a damaged page, while runs wait for a runner. Then one job is removed, and another is put
    again."""
    with Remote() as d, Runner("p", d, name="one") as one:
        d.start()
        for name in ("j", "removed"):
            d.put(name, pool="p", exec=["true"])
        keys = [run(d, name) for name in ("j", "removed")]
        for key in keys:
            ready(d, key)
        d.kill()
        d.lose_definitions()
        d.start()
        d.request("DELETE", "/v1/jobs/removed")
        killed = over(d, keys[1])
        one.start()
        d.put("other", pool="p", exec=["true"])
        done = over(d, run(d, "other"))
        d.put("j", pool="p", exec=["true"])
        tap.same([killed, done, over(d, keys[0]), d.stop(), d.unsound()], [[(1, "killed")], [(1, "ok")], [(1, "ok")], 0, ""],
                 "runs whose definition is lost wait until there is one, or their job is removed", d.stderr())


def long_definition(tap, d):
    """500 runs of a job with a long definition wait in a pool. To give out one, the daemon must not read all those
    definitions."""
    d.put("long", pool="long", overlap="allow", exec=["true"], input="{}" * 450000)
    d.post("/v1/jobs/long/shots", [{"after": 0} for _ in range(500)])
    until(lambda: d.get("/v1/jobs/long")["active"] >= 500)
    before = cpu_of(d.process.pid)
    status, answer = d.ask("POST", "/v1/take", {"runner": "l-1", "name": "l", "pool": "long", "room": 1, "wait": 0, "runs": []}, token=TOKENS["run"])
    used = cpu_of(d.process.pid) - before
    tap.ok(status == 200 and len(answer["runs"]) == 1 and used < 2, "to take a run does not read the definitions of all that wait", status, used)


def made_whole(tap):
    """One job loses "each" between two attempts of its run: the second must be whole. Another job loses it while a runner has one
    part of its run and the others wait: they must stay parts."""
    with Remote("--lease=2s") as d, Runner("a", d, name="one") as one, Runner("a", d, name="two") as two, Runner("a", d, name="three") as three:
        d.start()
        for runner in (one, two, three):
            runner.start("--runs=1")
        until(lambda: len(d.get("/v1/runners")) == 3)
        command = f"echo $TWHEEL_JOB $TWHEEL_ATTEMPT ${{TWHEEL_SHARD:-whole}} >>{d.dir}/made; "
        parts = {"pool": "a", "exec": ["/bin/sh", "-c", command + "sleep 3"]}
        tried = {"pool": "a", "exec": ["/bin/sh", "-c", command + "[ $TWHEEL_ATTEMPT = 2 ]"], "retry": {"times": 1, "wait": "3s"}}
        d.put("tried", each=True, **tried)
        key = run(d, "tried")
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r.get("more")])
        d.put("tried", **tried)
        done = over(d, key)
        d.put("busy", pool="a", overlap="allow", exec=["sleep", "2"])
        for _ in range(2):
            running(d, run(d, "busy"))
        d.put("parts", each=True, **parts)
        key = run(d, "parts")
        until(lambda: [line for line in d.lines("made") if line[0] == "parts"])
        d.put("parts", **parts)
        tap.same([done, over(d, key), sorted(line for line in d.lines("made") if line[1] == "2" or line[0] == "parts")],
                 [[(1, "failed"), (2, "ok")], [(1, "ok")], [["parts", "1", str(part)] for part in range(3)] + [["tried", "2", "whole"]]],
                 "a part stays a part, and another attempt is no part, if the job loses its each", d.lines("made"), d.stderr())


def in_vain(tap):
    """Both parts of a run with "each" end well, but after their timeout. The next attempt must have no parts, though another
    runner has come."""
    with Remote("--lease=2s") as d, Runner("a", d, name="one") as one, Runner("a", d, name="two") as two, Runner("a", d, name="three") as three:
        d.start(), one.start(), two.start()
        until(lambda: len(d.get("/v1/runners")) == 2)
        d.put("j", pool="a", each=True, timeout="1s", stop="20s", retry={"times": 3, "wait": "2s"},
              exec=["/bin/sh", "-c", f"trap '' TERM; echo $TWHEEL_ATTEMPT $TWHEEL_SHARD >>{d.dir}/j; sleep 2"])
        key = run(d, "j")
        until(lambda: len(d.lines("j")) == 2)
        three.start()
        until(lambda: len(d.get("/v1/runners")) == 3)
        done = over(d, key)
        time.sleep(1)
        tap.same([done, sorted(d.lines("j"))], [[(1, "timeout"), (2, "ok")], [["1", "0"], ["1", "1"]]],
                 "no part is added to those that have succeeded", d.get(f"/v1/runs/{key}"))


def no_holes(tap):
    """The file system cannot cut out the middle of a file. Of 5 MB of a runner's output, the daemon must keep 1 to 2 MB."""
    with Remote(TWHEELD_HOLES="no") as d:
        d.start()
        d.put("loud", exec=["true"], pool="loud")
        key = run(d, "loud")
        taken = until(lambda: d.ask("POST", "/v1/take", {"runner": "l-1", "name": "l", "pool": "loud", "room": 1}, token=TOKENS["run"])[1]["runs"])
        sent = [d.ask("POST", f"/v1/runs/{key}/beat?attempt=1&runner=l-1&from={n * 500000}", "y" * 500000, token=TOKENS["run"])[0]
                for n in range(10)]
        sizes = [os.path.getsize(os.path.join(path, file)) for path, _, files in os.walk(f"{d.dir}/state/logs") for file in files]
        tap.ok(taken and sent == [200] * 10 and len(sizes) == 1 and 10**6 <= sizes[0] < 2 * 10**6,
               "without holes, a log ends after 1 MiB", taken, sent, sizes)
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon is sound")


def ends_alone(tap):
    """Kill the daemon, and stop a runner that has a run which may overlap. The runner must end, though no daemon takes its
    report."""
    with Remote("--lease=1s") as d:
        d.start()
        d.put("j", exec=["sleep", "1000"], pool="p", overlap="allow")
        with Runner("p", d, name="n") as r:
            r.start()
            run(d, "j")
            until(r.marked)
            d.kill()
            tap.same([r.stop(), r.unsound()], [0, ""], "a runner ends though no daemon takes the ends of its runs", r.stderr())


def tells_later(tap):
    """While no daemon is there, a run ends that must not overlap. Then its runner is told to end, but another run delays that.
    The daemon starts meanwhile, and must get the outcome."""
    with Remote("--lease=1s") as d:
        d.start()
        d.put("quick", exec=["/bin/sh", "-c", waits_for(d, "quick.told")], pool="p")
        d.put("slow", exec=["/bin/sh", "-c", f"trap '' TERM; {waits_for(d, 'slow.told')}"], pool="p", overlap="allow", stop="60s")
        with Runner("p", d, name="n") as r:
            r.start()
            keys = [run(d, "quick"), run(d, "slow")]
            until(lambda: len(r.marked()) > 1)
            d.kill()
            os.mknod(f"{d.dir}/quick.told")
            until(lambda: len(r.marked()) == 1)
            time.sleep(1.5)     # longer than the daemon's lease
            r.process.send_signal(signal.SIGTERM)
            time.sleep(5)       # until the runner would give up if it had no other run: after two of its leases, of 3 s each
            d.start()
            told = over(d, keys[0])
            os.mknod(f"{d.dir}/slow.told")
            tap.same([told, r.process.wait(60), r.unsound()], [[(1, "ok")], 0, ""], "but while another run takes its time, it tells them to one that comes", r.stderr())


def tells_at_last(tap):
    """A run ends while no daemon is there for many leases. When a daemon comes back, the runner is told to end at that moment.
    The daemon must get the outcome."""
    with Remote("--lease=1s") as d:
        d.start()
        d.put("quick", exec=["/bin/sh", "-c", waits_for(d, "quick.told")], pool="p")
        with Runner("p", d, name="n") as r:
            r.start()
            key = run(d, "quick")
            until(r.marked)
            d.kill()
            os.mknod(f"{d.dir}/quick.told")
            until(lambda: not r.marked())
            time.sleep(8)       # a runner's lease is three times a daemon's
            d.start()
            r.process.send_signal(signal.SIGTERM)
            tap.same([over(d, key), r.process.wait(60), r.unsound()], [[(1, "ok")], 0, ""], "nor if it is to end when one comes back at last", r.stderr())


def stands_still(tap):
    """Stop the daemon (SIGSTOP) for longer than a runner's lease, as if it waited for its server. The runner cannot renew the
    lease, but must keep its run."""
    with Remote("--lease=1s") as d:
        d.start()
        d.put("j", exec=["/bin/sh", "-c", waits_for(d, "told")], pool="p", overlap="allow")
        with Runner("p", d, name="n") as r:
            r.start()
            key = run(d, "j")
            until(r.marked)
            d.process.send_signal(signal.SIGSTOP)
            time.sleep(5)
            d.process.send_signal(signal.SIGCONT)
            time.sleep(5)
            os.mknod(f"{d.dir}/told")
            tap.same([over(d, key), r.stop(), r.unsound()], [[(1, "ok")], 0, ""], "a daemon that stood still does not take a runner's runs for lost", r.stderr())


SCHEMA = "SELECT name, sql FROM sqlite_master ORDER BY name"
# What each version of the store has added.
ADDED = {2: ["TABLE runner", "TABLE task"], 3: ["INDEX history_bad", "INDEX history_job_bad"]}


def older(d, version):
    """Make the daemon's store one of @version: remove what later versions have added."""
    for what in [what for v, added in ADDED.items() if v > version for what in added]:
        d.query(f"DROP {what}")
    d.query(f"PRAGMA user_version = {version}")


def upgrade(tap, d):
    """Start the daemon with older stores: one without indexes to find failed runs, one without tables for runners. It must add
    both."""
    schema, history = d.query(SCHEMA), d.query("SELECT * FROM history")
    older(d, 2)
    got = [d.start().stop(), d.query(SCHEMA) == schema, d.query("SELECT * FROM history") == history, d.query("PRAGMA user_version")]
    tap.same(got, [0, True, True, [(3,)]], "a store of version 2 gets the indexes")
    older(d, 1)
    d.start()
    with Runner("new", d, name="new") as new:
        new.start()
        d.put("new", exec=["true"], pool="new")
        tap.same([over(d, run(d, "new")), new.stop(), d.stop()], [[(1, "ok")], 0, 0], "a store of version 1 gets the tables")
    tap.same(d.query(SCHEMA), schema, "and is like a new one")


# ---- many -----------------------------------------------------------------------------------------

class Both(Listens, Node):
    def __init__(self, server, name):
        super().__init__(server, f"--name={name}", lease="6s")
        self.listen()


def follow(node, key):
    text, at, more = "", 0, True
    while more:
        connection = node.connection()
        connection.request("GET", f"/v1/runs/{key}/log?from={at}&wait=5s")
        answer = connection.getresponse()
        text += answer.read().decode()
        at, more = int(answer.headers["Log-Next"]), answer.headers["Log-More"] == "true"
    return text


def owners(server):
    return server.query("SELECT count(DISTINCT p.node) FROM part p, job j WHERE p.id = j.id & 63")[0][0]


def many(tap):
    with Server() as server, Both(server, "a") as a, Both(server, "b") as b:
        b.shared = a.dir
        nodes = [a.start(), b.start()]
        until(lambda: server.parts() == [32, 32])
        with Runner("p", a, b, name="one") as one, Runner("p", b, a, name="two") as two:
            one.start(), two.start()
            for letter in "abcdefgh":
                a.put(letter, exec=a.writes("many"), pool="p")
            keys = [run(nodes[i % 2], letter) for i, letter in enumerate("abcdefgh")]
            tap.ok(owners(server) == 2 and all(over(a, k) == [(1, "ok")] for k in keys), "a runner runs what any daemon fires")
            tap.same([[r["name"] for r in sorted(n.get("/v1/runners"), key=lambda r: r["name"])] for n in nodes], [["one", "two"]] * 2,
                     "any daemon knows the runners")
            a.put("log", exec=["/bin/sh", "-c", f"echo one; {waits_for(a, 'log.told')}; echo two"], pool="p")
            key = run(a, "log")
            until(lambda: running(b, key) and [n for n in nodes if n.request("GET", f"/v1/runs/{key}/log")[1] == b"one\n"])
            has = [n.request("GET", f"/v1/runs/{key}/log") for n in nodes]
            at = 0 if has[0][0] == 200 else 1
            os.mknod(f"{a.dir}/log.told")
            text = follow(nodes[at], key)
            tap.same([has[at][0], text, has[1 - at]],
                     [200, "one\ntwo\n", (404, {"error": f"the log is on the machine '{'ab'[at]}'"})], "a log is on the machine to which the runner talks")
            a.put("each", exec=["/bin/sh", "-c", f"echo $TWHEEL_SHARD >>{a.dir}/each"], pool="p", each=True)
            tap.same([over(b, run(b, "each")), sorted(a.lines("each"))], [[(1, "ok")], [["0"], ["1"]]], "each")
            for letter in "abcdefgh":
                a.put(letter, exec=["/bin/sh", "-c", f"echo $TWHEEL_JOB $TWHEEL_ATTEMPT >>{a.dir}/on; {waits_for(a, 'many.told')}"],
                      pool="p")
            keys = [run(b, letter) for letter in "abcdefgh"]
            for k in keys:
                running(b, k)
            a.kill()
            until(lambda: server.parts() == [64])
            killed = b.post(f"/v1/runs/{keys[0]}/kill")[0]
            tap.same([killed, over(b, keys[0])], [200, [(1, "killed")]], "a run that another daemon had begun is killed")
            os.mknod(f"{a.dir}/many.told")
            tap.same([[over(b, k) for k in keys[1:]], sorted(a.lines("on"))], [[[(1, "ok")]] * 7, [[c, "1"] for c in "abcdefgh"]],
                     "a daemon dies: what runners run goes on")
            tap.same([one.stop(), two.stop(), one.unsound(), two.unsound()], [0, 0, "", ""], "the runners end")
        a.start()
        wrong, firings = storm(server, nodes)
        tap.ok(not wrong and firings > 100, f"runners and daemons are killed: 0 lost, 0 early, 0 double of {firings} firings", *wrong)


def pieces(d):
    return [file for _, _, files in os.walk(f"{d.dir}/state/logs") for file in files]


def moves(tap):
    """The daemon that a runner talks to dies while a run prints. The other daemon must get the whole log. When the history has
    expired, both must delete the log, the first one at its next start."""
    with Server() as server, Both(server, "a") as a, Both(server, "b") as b:
        a.start(), b.start()
        until(lambda: server.parts() == [32, 32])
        with Runner("p", a, b, name="one") as one:
            one.start()
            a.put("log", exec=["/bin/sh", "-c", f"echo one; {waits_for(a, 'told')}; echo two"], pool="p", keep="10s")
            key = run(a, "log")
            until(lambda: pieces(a))
            a.kill()
            until(lambda: server.parts() == [64])
            os.mknod(f"{a.dir}/told")
            got = [over(b, key), b.output(key)]
            a.start()
            status, answer = a.request("GET", f"/v1/runs/{key}/log")
            tap.same([*got, status, answer], [[(1, "ok")], "one\ntwo\n", 404, {"error": "the log is on the machine 'b'"}],
                     "a runner turns to another daemon: that one has all of the log", a.stderr(), b.stderr())
            had = pieces(a)
            until(lambda: server.query("SELECT count(*) FROM history") == [(0,)])
            until(lambda: not pieces(b))
            a.stop()
            a.start()
            tap.same([len(had), until(lambda: not pieces(a)) and [], pieces(b), one.stop(), one.unsound(), a.unsound(), b.unsound()],
                     [1, [], [], 0, "", "", ""], "and nothing is left of it when its history has expired", pieces(a))


def waiting(node, nr, method, path, body=""):
    """Send @nr requests by TCP. Returns their sockets, without waiting for answers."""
    sockets = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(nr)]
    for n, s in enumerate(sockets):
        data = body.replace("%d", str(n)).encode()
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['all']}\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return sockets


def idle(tap):
    """100 requests wait for work, and 100 for what a run prints. The daemon's loop waits for each query, so they must cause
    few."""
    with Server() as server, Both(server, "a") as a:
        a.start()
        a.put("long", exec=["sleep", "1000"])
        key = run(a, "long")
        running(a, key)

        def commits():
            time.sleep(2)       # until the server's processes have reported their commits
            return server.query("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")[0][0]

        def in_five_seconds():
            before = commits()
            time.sleep(5)
            return commits() - before

        rest = in_five_seconds()
        take = '{"runner": "idle-%d", "name": "idle", "pool": "none", "room": 1, "wait": "60s"}'
        sockets = waiting(a, 100, "POST", "/v1/take", take) + waiting(a, 100, "GET", f"/v1/runs/{key}/log?wait=60s")
        until(lambda: len(a.get("/v1/runners")) == 100)
        busy = in_five_seconds()
        tap.ok(busy - rest < 200, "what waits does not ask the store again and again", rest, busy)
        a.put("none", exec=["true"], pool="none")
        began = time.monotonic()
        got = run(a, "none")
        told = until(lambda: select.select(sockets, [], [], 0)[0])
        took = time.monotonic() - began
        answer = told[0].recv(65536).decode()
        tap.ok(got in answer and took < 5, "one that waits for work is told at once when there is some", took, answer)
        for s in sockets:
            s.close()
        tap.same([a.stop(), a.unsound()], [0, ""], "the daemon of those that wait ends")


def any_says(nodes, method, path):
    """Ask one daemon after the other: a buried one may just be starting again. Returns whether one said 200 or 404."""
    for node in nodes:
        try:
            if node.request(method, path)[0] in (200, 404):
                return True
        except (OSError, http.client.HTTPException):
            pass
    return False


def storm(server, nodes, seconds=15):
    rng = random.Random(int(os.environ.get("SEED", 1)))
    a = nodes[0]
    for letter in "abcdefgh":
        a.request("DELETE", f"/v1/jobs/{letter}")
    a.request("DELETE", "/v1/jobs/each")
    server.query("TRUNCATE history")
    for n in range(8):
        a.put(f"rate{n}", rate="200ms", exec=a.writes("storm"), pool="s", overlap="queue", queue=10000, missed="all")
    with contextlib.ExitStack() as stack:
        runners = [stack.enter_context(Runner("s", a, nodes[1], name=f"r{n}")).start() for n in range(3)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            victim = rng.choice([*runners, *nodes])
            victim.kill()
            victim.kill_marked()
            time.sleep(rng.uniform(0, 1))
            victim.start(wait=False)
            time.sleep(rng.uniform(0, 1))
        for n in range(8):
            until(lambda n=n: any_says(nodes, "POST", f"/v1/jobs/rate{n}/pause"))
        until(lambda: server.query("SELECT count(*) FROM running") == [(0,)], 200)
        for n in range(8):
            until(lambda n=n: any_says(nodes, "DELETE", f"/v1/jobs/rate{n}"))
        left = until(lambda: server.query("SELECT count(*) FROM task") == [(0,)])
        ends = [p.stop() for p in (*runners, *nodes)]
        wrong, firings = judge(server.url, a.lines("storm"))
        unsound = [p.unsound() for p in (*runners, *nodes) if p.unsound()]
        return wrong + unsound + ([] if left else ["tasks are left"]) + ([] if not any(ends) else [str(ends)]), firings


def main():
    if sys.argv[1:] == ["many"]:
        tap = Tap(13)
        many(tap)
        moves(tap)
        idle(tap)
        tap.done()
    tap = Tap(89)
    for lease, parts in (("10s", (runs, choices, changes)), ("2s", (deaths, protocol))):
        with Remote(f"--lease={lease}", "--runs=8") as d:
            d.start()
            for fn in parts:
                fn(tap, d)
            tap.same([d.stop(), d.unsound()], [0, ""], "the daemon ends, and was sound")
            tap.same(d.query("SELECT count(*) FROM running"), [(0,)], "nothing is left running")
            if lease == "2s":
                upgrade(tap, d)
    with Remote("--lease=10s", "--runs=8") as d:
        d.start()
        for fn in (large, waits, verbose, asked_in_a_row, long_definition):      # these leave runs whose runners are gone
            fn(tap, d)
    outlives(tap)
    clock_set(tap)
    clock_set_back(tap)
    shorter_lease(tap)
    full_runner(tap)
    taken_later(tap)
    no_definition(tap)
    made_whole(tap)
    in_vain(tap)
    no_holes(tap)
    ends_alone(tap)
    tells_later(tap)
    tells_at_last(tap)
    stands_still(tap)
    sent_again(tap)
    gets_pool(tap)
    left(tap)
    tap.done()


main()
