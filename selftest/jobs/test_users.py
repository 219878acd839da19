#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Jobs with a user, if the directory of users takes longer than a lease to answer, or does not answer at all.

    test_users.py          with SQLite
    test_users.py many     with two daemons that share PostgreSQL
"""
import os
import pwd
import shutil
import sys
import tempfile
import threading
import time

from daemon import PROGRAMS, Daemon, Tap, until
from postgres import Node, Server
from remote import Remote, Runner

ME = pwd.getpwuid(os.geteuid()).pw_name
PRELOAD = {"LD_PRELOAD": f"{PROGRAMS}/users.so", "ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}
TICKS = "for i in $(seq 60); do echo $TWHEEL_ATTEMPT $(date +%s.%N) >>{}; sleep 0.2; done"
SLOW_S = 8          # must be as in users.c


def times(d, attempt):
    """Returns the times at which attempt @attempt wrote its lines."""
    return [float(line[1]) for line in d.lines("ticks") if line[0] == str(attempt)]


def gone(tap):
    """Kill the daemon, and start it while the directory does not answer. Jobs with a user must wait for the
    directory, others must not."""
    with Daemon(**PRELOAD) as d:
        d.env["GONE"] = f"{d.dir}/gone"
        d.start()
        d.put("second", exec=["true"], user=ME, cron="* * * * * *")
        d.put("once", exec=["true"], user=ME, after="3s")
        d.put("lost", exec=["sleep", "1000"], user=ME)
        d.post("/v1/jobs/lost/run")
        d.over("second")
        until(lambda: [r for r in d.get("/v1/runs?job=lost") if r["state"] == "running"])
        d.kill()
        os.mknod(d.env["GONE"])
        d.start()
        got = d.put("other", exec=["true"], user=ME)
        tap.same(got, (400, {"error": f"user: the user '{ME}' cannot be looked up now: Input/output error"}),
                 "a definition is refused while its user cannot be looked up")
        d.put("plain", exec=["true"], rate="0.1s")
        time.sleep(4)
        tap.ok(len([r for r in d.get("/v1/runs?job=plain") if r["state"] == "over" and r["outcome"] == "ok"]) > 10, "jobs without a user do not wait for one", d.get("/v1/runs?job=plain"), d.stderr())
        tap.same([r["state"] for r in d.get("/v1/runs?job=once")], ["ready"], "meanwhile, what is due waits", d.get("/v1/runs?job=once"))
        os.unlink(d.env["GONE"])
        before = len(d.over("second"))
        tap.same([r["outcome"] for r in d.over("once")], ["ok"], "and runs as soon as the directory answers", d.stderr())
        tap.ok(len(d.over("second", before + 2)) >= before + 2, "schedules go on", d.stderr())
        tap.ok(until(lambda: [r for r in d.get("/v1/runs?job=lost") if r["state"] == "running" and r["attempt"] == 2]),
               "and what was lost is run again", d.get("/v1/runs?job=lost"))
        tap.same([d.stop(), d.unsound()], [0, ""], "the daemon is sound")


def slow_runner(tap):
    """A runner that has a run that must not overlap looks a user up for longer than its lease. It must kill the run in time."""
    with Remote("--lease=1s") as d, Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
        one.env.update(PRELOAD, SLOW=f"{d.dir}/slow")
        d.start(), one.start()
        d.put("long", pool="p", exec=["/bin/sh", "-c", TICKS.format(f"{d.dir}/ticks")])
        d.put("user", pool="p", exec=["true"], user=ME)
        d.post("/v1/jobs/long/run")
        until(lambda: d.lines("ticks"))
        os.mknod(f"{d.dir}/slow")
        d.post("/v1/jobs/user/run")
        until(lambda: not os.path.exists(f"{d.dir}/slow"))
        two.start()
        until(lambda: times(d, 2))
        time.sleep(SLOW_S / 2)
        tap.ok(times(d, 2) and times(d, 1)[-1] < times(d, 2)[0], "a runner that looks a user up kills its runs before its lease is over",
               d.lines("ticks"), one.stderr(), two.stderr())
        tap.same([r["outcome"] for r in d.over("user")], ["ok"], "and the run for which it looked is another's", one.stderr(), two.stderr())
        tap.same([one.stop(), two.stop(), one.unsound(), two.unsound()], [0, 0, "", ""], "both are sound")


def moved(tap):
    """Put a job with "each" into another pool while a part waits for its next attempt. Both pools have runners:
    one of the new pool must get the attempt."""
    with Remote("--lease=1s") as d, Runner("a", d, name="ra") as ra, Runner("b", d, name="rb") as rb:
        d.start(), ra.start(), rb.start()
        what = {"exec": ["/bin/sh", "-c", f"[ -e {d.dir}/flag ]"], "retry": {"times": 3, "wait": "2s"}, "each": True}
        d.put("j", pool="a", **what)
        key = d.post("/v1/jobs/j/run")[1][0]["run"]
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r.get("more")])
        os.mknod(f"{d.dir}/flag")
        d.put("j", pool="b", **what)
        tap.same([r["outcome"] for r in d.over("j")], ["ok"], "a part's next attempt is for any runner of the new pool", d.get(f"/v1/runs/{key}"))
        tap.same([ra.stop(), rb.stop(), d.stop(), d.unsound()], [0, 0, 0, ""], "all are sound")


def slow_put(tap):
    """Put a job again with another schedule. The job is due while the daemon looks its user up: it must run once."""
    with Daemon(**PRELOAD) as d:
        d.env["SLOW"] = f"{d.dir}/slow"
        d.start()
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + SLOW_S / 2 + 1))
        job = {"rate": "1h", "start": at, "exec": ["true"], "user": ME}
        d.put("j", **job)
        os.mknod(f"{d.dir}/slow")
        status = d.request("PUT", "/v1/jobs/j", {**job, "zone": "UTC"}, timeout=60)[0]
        d.over("j")
        time.sleep(1)
        tap.same([status, [r["at"][:19] + "Z" for r in d.get("/v1/runs?job=j")]], [200, [at]], "that time is run once")
        tap.same([d.stop(), d.unsound()], [0, ""], "the daemon is sound")


def homes(tap):
    """The home directory is on a file system that does not answer. The run that enters it must wait, but the daemon must not."""
    other = os.stat("/").st_dev, os.stat(tempfile.gettempdir()).st_dev
    for base in ("/dev/shm", "/run", "/"):
        if os.access(base, os.W_OK) and os.stat(base).st_dev not in other:
            break
    with tempfile.TemporaryDirectory(dir=base if base != "/" else None) as home, Daemon(**PRELOAD, HOME=home, SLOW_DIR=home) as d:
        if base == "/":
            tap.ok(True, "a home directory that does not answer # SKIP there is only one file system")
            tap.ok(True, "the daemon is sound # SKIP there is only one file system")
            tap.ok(True, "a daemon starts # SKIP there is only one file system")
            tap.ok(True, "a program that does not answer # SKIP there is only one file system")
            tap.ok(True, "a home directory that answers no more # SKIP there is only one file system")
            return
        os.mknod(f"{home}/slow")
        began = time.monotonic()
        d.start()
        took = time.monotonic() - began
        tap.ok(took < SLOW_S / 2, "a daemon starts although its home directory does not answer", took)
        os.unlink(f"{home}/slow")
        d.put("home", exec=["pwd"])
        d.put("root", exec=["true"], dir="/")
        d.post("/v1/jobs/home/run")     # now the daemon knows the program: see quick.c
        d.over("home")
        os.mknod(f"{home}/slow")
        key = d.post("/v1/jobs/home/run")[1][0]["run"]
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running"])
        d.post("/v1/jobs/root/run")
        done = [r["outcome"] for r in d.over("root")]
        tap.same([done, [r["state"] for r in d.get(f"/v1/runs/{key}")]], [["ok"], ["running"]],
                 "a home directory that does not answer holds up nothing but its run", d.get("/v1/runs"))
        os.unlink(f"{home}/slow")
        d.over("home", 2)
        tap.same([d.output(key).strip(), d.stop(), d.unsound()], [home, 0, ""], "the run is there, and the daemon is sound")
        answers_no_more(tap, d, home)
        program(tap, d, home)


def answers_no_more(tap, d, home):
    """The same as homes(), but the home directory answered when the daemon started."""
    d.start()
    for n in (3, 4):
        d.post("/v1/jobs/home/run")
        d.over("home", n)
    os.mknod(f"{home}/slow")
    key = d.post("/v1/jobs/home/run")[1][0]["run"]
    until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running"])
    d.post("/v1/jobs/root/run")
    done = [r["outcome"] for r in d.over("root", 2)]
    tap.same([done, [r["state"] for r in d.get(f"/v1/runs/{key}")]], [["ok"] * 2, ["running"]],
             "a home directory that answers no more holds up nothing but its run", d.get("/v1/runs"))
    os.unlink(f"{home}/slow")
    d.over("home", 5)
    d.stop()


def program(tap, d, dead):
    """The same as homes() for a program in the directory @dead. The home directory is another one, which answers."""
    with open(os.open(f"{dead}/x", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    d.env["HOME"] = d.dir
    d.start()
    jobs = {"x": [f"{dead}/x"], "true": ["true"]}
    d.post("/v1/jobs", [{"name": name, "exec": argv} for name, argv in jobs.items()])
    before = [[(d.post(f"/v1/jobs/{name}/run"), d.over(name, n))[1][0]["outcome"] for name in jobs] for n in (1, 2)]
    os.mknod(f"{dead}/slow")
    began = time.monotonic()
    for name in jobs:
        d.post(f"/v1/jobs/{name}/run")
    d.over("true", 3)
    took = time.monotonic() - began
    os.unlink(f"{dead}/slow")
    tap.same([before, took < SLOW_S / 2, d.over("x", 3)[0]["outcome"], d.stop(), d.unsound()], [[["ok"] * 2] * 2, True, "ok", 0, ""],
             "a program that does not answer holds up nothing but its run", took)


def changed_program(tap):
    """A program's file does not answer when the program has run several times. Others than root may change it: see quick.c."""
    with Daemon(**PRELOAD) as d:
        os.mkdir(f"{d.dir}/there")
        shutil.copy(shutil.which("true"), f"{d.dir}/there/x")
        d.env["SLOW_DIR"] = f"{d.dir}/there"
        d.start()
        d.post("/v1/jobs", [{"name": name, "exec": [argv]} for name, argv in (("x", f"{d.dir}/there/x"), ("true", "true"))])
        for n in range(3):
            for name in ("x", "true"):
                d.post(f"/v1/jobs/{name}/run")
                d.over(name, n + 1)
        os.mknod(f"{d.dir}/there/slow")
        began = time.monotonic()
        for name in ("x", "true"):
            d.post(f"/v1/jobs/{name}/run")
        d.over("true", 4)
        took = time.monotonic() - began
        os.unlink(f"{d.dir}/there/slow")
        tap.same([took < SLOW_S / 2, [r["outcome"] for r in d.over("x", 4)], d.stop(), d.unsound()], [True, ["ok"] * 4, 0, ""],
                 "a program that others may change is looked for anew, and holds up nothing", took)


def hangs(tap):
    """Kill the daemon while a run hangs before its program begins. The next daemon must not find the socket in use."""
    with Daemon(**PRELOAD) as d:
        os.mkdir(f"{d.dir}/there")
        d.env["SLOW_DIR"] = f"{d.dir}/there"
        d.start()
        d.put("j", exec=["true"], dir=f"{d.dir}/there")
        os.mknod(f"{d.dir}/there/slow")
        key = d.post("/v1/jobs/j/run")[1][0]["run"]
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running"])
        d.kill()
        began = time.monotonic()
        d.start()
        took = time.monotonic() - began
        os.unlink(f"{d.dir}/there/slow")
        d.over("j")
        tap.same([took < SLOW_S / 2, [r["outcome"] for r in d.get("/v1/runs?job=j")], d.stop(), d.unsound()], [True, ["ok", "lost"], 0, ""],
                 "what hangs before its program begins ends with the daemon", took)


def long_names(tap):
    """What a child prints must fit into its pipe, because the daemon waits for the child. So names and their
    number are limited."""
    with Daemon() as d:
        d.start()
        status, answer = d.put("x", exec=["x" * 70000])
        tap.same([status, answer], [400, {"error": "exec: the name of the command is too long"}], "no command has a name of 70 000 bytes")
        for key, more in (("env", {"exec": ["true"]}), ("headers", {"http": "http://localhost:1/"})):
            status, answer = d.put("x", **more, **{key: {f"V{n}": "" for n in range(5000)}})
            tap.same([status, answer], [400, {"error": f"{key}: there are more than 4096"}], f"nor are there 5 000 {key}")
        d.put("y", exec=["/" + "y" * 4000])
        key = d.post("/v1/jobs/y/run")[1][0]["run"]
        tap.same([[r["status"] for r in d.over("y")], d.output(key)[:20], len(d.output(key)) < 400], [[126], "twheeld: /yyyyyyyyyyy"[:20], True],
                 "of a long name, a part is printed", d.output(key))
        tap.same([d.stop(), d.unsound()], [0, ""], "the daemon is sound")


def slow_daemon(tap, how):
    """A daemon looks a user up for longer than its lease: for a request (@how is "put"), or for a run that it begins ("run")."""
    with Server() as server, Node(server, lease="2s", **PRELOAD) as a, Node(server, lease="2s") as b:
        a.env["SLOW"] = f"{a.dir}/slow"
        a.start()
        for n in range(8):
            a.put(f"u{n}", exec=["/bin/sh", "-c", TICKS.format(f"{a.dir}/ticks")])
            a.put(f"v{n}", exec=["/bin/sh", "-c", f"echo $TWHEEL_ATTEMPT >>{a.dir}/begun"], user=ME)
        b.start()
        until(lambda: server.parts() == [32, 32])
        owner = dict(server.query("SELECT j.name, p.node FROM job j JOIN part p ON p.id = (j.id & 63)"))
        mine = sorted(name for name in owner if owner[name] == a.life())
        a.post(f"/v1/jobs/{[m for m in mine if m[0] == 'u'][0]}/run")
        until(lambda: a.lines("ticks"))
        os.mknod(f"{a.dir}/slow")
        if how == "put":
            task = threading.Thread(target=lambda: a.request("PUT", "/v1/jobs/other", {"exec": ["true"], "user": ME}, timeout=60))
            task.start()
        else:
            a.post(f"/v1/jobs/{[m for m in mine if m[0] == 'v'][0]}/run")
        until(lambda: times(a, 2))
        time.sleep(SLOW_S)
        tap.ok(times(a, 2) and times(a, 1)[-1] < times(a, 2)[0], f"a user is looked up ({how}): what runs meanwhile ends before the lease",
               a.lines("ticks"), a.stderr(), b.stderr())
        if how == "put":
            task.join()
        else:
            tap.same(until(lambda: a.lines("begun")), [["2"]], "and what was to run begins elsewhere only", a.stderr(), b.stderr())
        tap.same([a.unsound(), b.unsound()], ["", ""], "both are sound")


def main():
    if sys.argv[1:] == ["many"]:
        tap = Tap(5)
        slow_daemon(tap, "put")
        slow_daemon(tap, "run")
        tap.done()
    tap = Tap(26)
    gone(tap)
    slow_runner(tap)
    moved(tap)
    slow_put(tap)
    homes(tap)
    changed_program(tap)
    hangs(tap)
    long_names(tap)
    tap.done()


main()
