#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""What twheeld does with runs: overlap, retries, timeouts, jobs that follow others, missed and lost runs; the processes, logs
and limits of runs; and the answers to malformed requests."""
import calendar
import contextlib
import grp
import json
import os
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import urllib.parse

from daemon import PROGRAMS, Daemon, Tap, alive, cpu_of, settled, until
from remote import Remote

ROOT = os.geteuid() == 0
JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../jobs")


def outcomes(rows):
    return [row["outcome"] for row in rows]


def run(d, name, **shot):
    answer = d.post(f"/v1/jobs/{name}/shots", [shot]) if shot else d.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def history(d, name):
    """Returns the rows of all attempts of the job that are over, the first one first."""
    return [r for r in reversed(d.get(f"/v1/runs?job={name}&limit=1000")) if r["state"] == "over"]


def ns(text):
    whole, us = re.fullmatch(r"(.*)\.(\d{6})Z", text).groups()
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(us) * 1000


def marks(d, name, wait):
    """Returns a command that writes "b" to the file @name, does @wait, and writes "e"."""
    return ["/bin/sh", "-c", f"echo b >>{d.dir}/{name}; {wait}; echo e >>{d.dir}/{name}"]


def until_told(d, name):
    """Returns a command that waits until tell() is called."""
    return f"while ! [ -e {d.dir}/{name}.told ]; do sleep 0.02; done"


def tell(d, name):
    os.mknod(f"{d.dir}/{name}.told")


# ---- overlap --------------------------------------------------------------------------------------

def overlaps(tap, d):
    # However slow the host is, the first run lasts until others were skipped, and the job is due until others have run.
    d.put("skip", rate="50ms", exec=marks(d, "skip", f"{until_told(d, 'skip')}; sleep 0.17"))
    early = d.over("skip", 3)
    tell(d, "skip")
    rows = until(lambda: (r := d.over("skip", 8)) and outcomes(r).count("ok") >= 3 and r)
    d.request("DELETE", "/v1/jobs/skip")
    words = "".join(w for line in d.lines("skip") for w in line)
    tap.ok(rows and not re.search("bb|ee", words) and set(outcomes(early)) == {"skipped"} and
           {"ok", "skipped"} == set(outcomes(rows)), "skip", words, early, rows)

    d.put("queue", exec=marks(d, "queue", until_told(d, "queue")), overlap="queue", queue=2)
    ids = [run(d, "queue") for _ in range(4)]
    tell(d, "queue")
    rows = d.over("queue", 4)
    tap.same(sorted(outcomes(rows)), ["ok", "ok", "ok", "skipped"], "queue: two may wait")
    tap.same([r["run"] for r in rows if r["outcome"] == "ok"], ids[:3], "queue: in order")
    tap.same("".join(w for line in d.lines("queue") for w in line), "bebebe", "queue: one at a time")

    d.put("replace", overlap="replace", stop="60s",
          exec=["/bin/sh", "-c", f"trap '' TERM; echo b >>{d.dir}/replace; {until_told(d, 'replace')}"])
    ids = [run(d, "replace")]
    until(lambda: d.lines("replace"))
    ids += [run(d, "replace"), run(d, "replace")]
    until(lambda: d.get(f"/v1/runs/{ids[1]}")[0]["state"] == "over")
    tell(d, "replace")
    rows = {r["run"]: r["outcome"] for r in d.over("replace", 3)}
    tap.same([rows.get(i) for i in ids], ["killed", "skipped", "ok"], "replace")

    d.put("parked", delay="0.3s", overlap="replace", stop="60s",
          exec=["/bin/sh", "-c", f"trap '' TERM; {until_told(d, 'parked')}"])
    run(d, "parked")
    own = until(lambda: [r["run"] for r in d.get("/v1/runs?job=parked") if r["state"] == "queued"])
    run(d, "parked")
    until(lambda: d.over("parked")[0]["run"] == own[0])
    tap.ok(d.get("/v1/jobs/parked")["next"], "replace: a delay whose run was skipped while it waited is due again", own, d.get("/v1/jobs/parked"))
    tell(d, "parked")
    d.request("DELETE", "/v1/jobs/parked")

    for name in (f"instead{n}" for n in range(9)):
        in_time, got = instead(d, name)
        if in_time:
            break
    tap.ok(in_time and got == ["ok", "ok"], "replace: what has ended by itself is not replaced", in_time, got, d.stderr())

    d.put("allow", exec=marks(d, "allow", until_told(d, "allow")), overlap="allow")
    run(d, "allow")
    run(d, "allow")
    until(lambda: len(d.lines("allow")) == 2)
    tell(d, "allow")
    tap.same(outcomes(d.over("allow", 2)), ["ok", "ok"], "allow")
    tap.same("".join(w for line in d.lines("allow") for w in line), "bbee", "allow: two at once")

    sort = {"exec": marks(d, "sorted", until_told(d, "sorted"))}
    d.put("sorted", overlap="queue", queue=5, **sort)
    for _ in range(3):
        run(d, "sorted")
    d.put("sorted", overlap="allow", **sort)
    until(lambda: len(d.lines("sorted")) == 3)
    tell(d, "sorted")
    d.over("sorted", 3)
    tap.same("".join(w for line in d.lines("sorted") for w in line), "bbbeee", "allow: runs that are queued wait no longer")


def instead(d, name):
    """Let a new run, which is to replace another one, be due while the daemon is stopped, and let the old run
    end meanwhile: so the daemon learns of both before it writes anything. Returns whether it stopped before the
    new run was due, and both outcomes."""
    d.put(name, overlap="replace", exec=["/bin/sh", "-c", f"echo $$ >>{d.dir}/{name}; {until_told(d, name)}"])
    ids = [run(d, name)]
    pid = until(lambda: d.lines(name))[0][0]
    ids += [run(d, name, after="0.3s")]
    d.process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(d.process.pid))
    due = int(ids[1].split("-")[1]) / 1e6
    in_time = time.time() < due
    until(lambda: time.time() > due + 0.2)
    tell(d, name)
    until(lambda: not alive(pid))
    d.process.send_signal(signal.SIGCONT)
    rows = {r["run"]: r["outcome"] for r in d.over(name, 2)}
    return in_time, [rows.get(i) for i in ids]


def is_stopped(pid):
    """Returns whether all threads of the process are stopped."""
    states = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


# ---- ends -----------------------------------------------------------------------------------------

def stands_still(d, n):
    """Stop the daemon while eight runs end, and until their timeout has passed. Returns their outcomes, and
    whether they ended before the timeout."""
    names = [f"still{n}-{i}" for i in range(8)]
    for name in names:
        d.put(name, exec=["/bin/sh", "-c", f"echo >>{d.dir}/still{n}; sleep 0.5; date +%s.%N >>{d.dir}/{name}; exit 3"], timeout="2s")
        run(d, name)
    until(lambda: len(d.lines(f"still{n}")) == len(names))
    began = time.time()
    d.process.send_signal(signal.SIGSTOP)
    until(lambda: all(d.lines(name) for name in names))
    ended = max(float(d.lines(name)[0][0]) for name in names)
    until(lambda: time.time() > began + 2.5)
    d.process.send_signal(signal.SIGCONT)
    return [outcomes(d.over(name)) for name in names], ended < began + 1.9


def limited(tap, d):
    d.put("crowd", exec=["sleep", "1000"], overlap="allow", stop="0")
    keys = [run(d, "crowd") for _ in range(5)]
    until(lambda: len(d.get("/v1/runs?limit=1000&job=crowd")) == 5)
    tap.same([len(d.get(f"/v1/runs?limit={n}&job=crowd")) for n in (0, 3, 1000)], [0, 3, 5],
             "a limit counts for runs that are not over")
    for key in keys:
        d.post(f"/v1/runs/{key}/kill")
    d.over("crowd", 5)
    d.request("DELETE", "/v1/jobs/crowd")


def ends(tap, d):
    limited(tap, d)
    for n in range(5):          # once more, if the host stands still, too
        got, in_time = stands_still(d, n)
        if in_time:
            break
    tap.same(got, [["failed"]] * 8, "what has ended in time has no timeout, though the daemon stood still")
    d.put("stubborn", exec=["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], timeout="0.1s", stop="0.2s")
    for n in range(1, 6):       # a busy host may delay one run, but hardly all of them
        run(d, "stubborn")
        rows = d.over("stubborn", n)
        took = (ns(rows[-1]["ended"]) - ns(rows[-1]["at"])) / 1e9
        if took < 5:
            break
    tap.ok({(r["outcome"], r["status"]) for r in rows} == {("timeout", 128 + 9)} and 0.3 <= took < 5,
           "timeout: a run that ignores SIGTERM is killed", took, rows)

    for what, more in (("ending-kill", {}), ("ending-replace", {"overlap": "replace"})):
        d.put(what, timeout="0.1s", stop="60s", retry={"times": 3, "wait": "0.1s"}, **more, exec=["/bin/sh", "-c",
              f"[ $TWHEEL_ARG ] && exit; trap 'echo t >>{d.dir}/{what}' TERM; echo b >>{d.dir}/{what}; {until_told(d, what)}; exit 1"])
        keys = [run(d, what)]
        until(lambda what=what: ["t"] in d.lines(what))
        if more:
            keys.append(run(d, what, after=0, arg="new"))
            until(lambda keys=keys: d.get(f"/v1/runs/{keys[1]}")[0]["state"] == "queued")
            d.put("written", exec=["true"])     # when this is answered, the new run is written, and so replaces the other one
        else:
            d.post(f"/v1/runs/{keys[0]}/kill")
        tell(d, what)
        rows = {r["run"]: (r["attempt"], r["outcome"]) for r in d.over(what, len(keys))}
        tap.same([[rows.get(key) for key in keys], d.lines(what)], [[(1, "killed"), (1, "ok")][:len(keys)], [["b"], ["t"]]],
                 f"timeout: what is killed before it has ended is not made again: {what}", rows)

    d.put("again", exec=["/bin/sh", "-c", "[ $TWHEEL_ATTEMPT = 3 ]"], retry={"times": 5, "wait": "0.1s", "factor": 3})
    run(d, "again")
    d.over("again")
    rows = history(d, "again")
    tap.same([(r["attempt"], r["outcome"], r["more"]) for r in rows],
             [(1, "failed", True), (2, "failed", True), (3, "ok", False)], "retries")
    gaps = [ns(b["began"]) - ns(a["ended"]) for a, b in zip(rows, rows[1:])]
    tap.ok(gaps[0] >= 10**8 and gaps[1] >= 3 * 10**8, "retries: after their waits", gaps)
    d.put("often", exec=["false"], retry={"times": 2, "wait": "10ms"})
    run(d, "often")
    d.over("often")
    tap.same([(r["attempt"], r["more"]) for r in history(d, "often")], [(1, True), (2, True), (3, False)],
             "no more of them than are wanted")

    d.put("delay", delay="0.1s", exec=["sleep", "0.1"])
    rows = d.over("delay", 3)
    d.request("DELETE", "/v1/jobs/delay")
    tap.ok(all(ns(b["at"]) - ns(a["ended"]) >= 10**8 for a, b in zip(rows, rows[1:])) and len(rows) >= 3,
           "a delay counts from the end of a run", rows)

    d.put("good", exec=d.writes("good"))
    d.put("bad", exec=d.writes("bad"))
    d.put("parent", exec=["/bin/sh", "-c", "exit $TWHEEL_ARG"], then={"ok": ["good"], "fail": ["bad"]}, overlap="queue")
    run(d, "parent", after=0, arg="0")
    run(d, "parent", after="0.2s", arg="7")
    tap.ok(until(lambda: d.lines("good") and d.lines("bad")), "then: jobs that follow run")
    tap.same([len(d.lines("good")), len(d.lines("bad"))], [1, 1], "once each")
    status, answer = d.put("good", exec=["true"], then={"ok": ["parent"]})
    tap.ok(status == 400 and "would follow itself" in answer["error"], "then: no circles", answer)
    layers = [[f"l{i}a", f"l{i}b"] for i in range(40)]
    jobs = [{"name": n, "exec": ["true"], "then": {"ok": after, "fail": after}}
            for layer, after in zip(layers, layers[1:]) for n in layer]
    jobs += [{"name": n, "exec": ["true"]} for n in layers[-1]]
    status, answer = d.post("/v1/jobs", jobs)
    tap.ok(status == 200, "then: chains that branch often", status, answer)
    row = [{"name": f"row{i}", "exec": ["true"], "then": {"fail": [f"row{i + 1}"]}} for i in range(300)]
    row.append({"name": "row300", "exec": ["true"]})
    got = [d.post("/v1/jobs", row)[0], d.post("/v1/jobs", row[:1])[0]]
    d.put("row301", exec=["true"], then={"ok": ["row0"]})
    answers = [d.put("row300", exec=["true"], then={"ok": [f"row{n}"]}) for n in (300, 299, 0, 301)]
    tap.same([got, [s for s, _ in answers], all("would follow itself" in a.get("error", "") for _, a in answers)], [[200, 200], [400] * 4, True],
             "then: of any length, and no circle of any length", got, answers)
    for name in ("row301", *(j["name"] for j in row), *(n for layer in layers for n in layer)):
        d.request("DELETE", f"/v1/jobs/{name}")


def statuses(tap, d):
    got = []
    for name, definition in {
            "none": {"exec": ["/nowhere/at/all"]}, "dir": {"exec": ["/etc"]}, "chdir": {"exec": ["true"], "dir": "/nowhere"},
            "signal": {"exec": ["/bin/sh", "-c", "kill -9 $$"]}}.items():
        d.put(name, **definition)
        run(d, name)
        got += [(r["outcome"], r["status"]) for r in d.over(name)]
    tap.same(got, [("failed", 127), ("failed", 126), ("failed", 125), ("failed", 137)], "what cannot be run")
    tap.same(d.output(run_of(d, "none")), "twheeld: /nowhere/at/all: No such file or directory\n", "its log says why")


def run_of(d, name):
    return d.over(name)[-1]["run"]


# ---- processes --------------------------------------------------------------------------------------

SHOW = """echo "$TWHEEL_JOB $TWHEEL_KEY $TWHEEL_AT $TWHEEL_ATTEMPT $TWHEEL_MISSED $TWHEEL_ARG $A"
cat; pwd; umask; ulimit -n; echo $(ls /proc/self/fd); ps -o sid= -p $$ | tr -d ' '; echo $$"""


def processes(tap, d):
    d.put("show", exec=["/bin/sh", "-c", SHOW], env={"A": "a b"}, dir="/usr", input="line one\nline two\n",
          limits={"nofile": 77})
    key = run(d, "show", after=0, arg="the arg")
    row = d.over("show")[0]
    lines = d.output(key).splitlines()
    tap.same(lines[0], f"show {key} {row['at']} 1 0 the arg a b", "the environment")
    tap.same(lines[1:6], ["line one", "line two", "/usr", "0022", "77"], "input, directory, mask, limit", lines)
    tap.same(lines[6], "0 1 2 3", "no descriptor of the daemon", lines)
    tap.same(lines[7], lines[8], "a session of its own")

    d.put("leaves", exec=["/bin/sh", "-c", f"sleep 1000 & echo $! >{d.dir}/left"])
    run(d, "leaves")
    d.over("leaves")
    pid = d.lines("left")[0][0]
    tap.ok(until(lambda: not alive(pid)), "processes that a run leaves behind are killed")

    if ROOT:
        d.put("user", exec=["/bin/sh", "-c", "id -un; id -Gn; echo $HOME $USER; echo out >/dev/stdout; echo err >/dev/stderr"], user="daemon")
        run(d, "user")
        home = pwd.getpwnam("daemon").pw_dir
        tap.same(d.output(run_of(d, "user")), f"daemon\ndaemon\n{home} daemon\nout\nerr\n", "as another user, who may open the standard output")
    else:
        tap.ok(d.put("user", exec=["true"], user="daemon")[0] == 400, "as another user: only for root's daemon")


def logs(tap, d):
    d.put("loud", exec=["/bin/sh", "-c", "echo begin; yes | head -c 5000000; echo end"])
    key = run(d, "loud")
    d.over("loud")
    path = next(os.path.join(dir, f) for dir, _, files in os.walk(f"{d.dir}/state/logs") for f in files
                if f == f"{key}.1")
    used = os.stat(path).st_blocks * 512
    tap.ok(used <= 2**20, "a long log takes 1 MiB of disk", used)
    text, at = "", 0
    while True:
        part, at = log_part(d, key, at)
        if not part:
            break
        text += part
    tap.ok(text.startswith("begin\ny\ny\n") and text.endswith("y\nend\n") and 10**6 - 70000 < len(text) < 2**20 + 100,
           "a long log has its beginning and its end", len(text))
    left = re.search(r"\[(\d+) bytes are left out here\]", text)
    tap.ok(left and int(left[1]) + len(text) - len(left[0]) - 2 == 5000010, "a long log says how much was cut out", left)
    tap.same(log_part(d, key, 65530), ("y\ny\ny\n", 65536), "a part of it ends where that begins")


def full_logs(tap, d):
    """Runs print while the disk with the logs is full: each log file leads to /dev/full. The daemon must say so
    only once in 10 s."""
    def prints(nr, in_all):
        keys = [run(d, "full") for _ in range(nr)]
        for key in keys:
            day = f"{d.dir}/state/logs/{int(key.split('-')[1]) // (86400 * 10**6)}"
            os.makedirs(day, exist_ok=True)
            os.symlink("/dev/full", f"{day}/{key}.1")
        tell(d, "full")
        over = outcomes(d.over("full", in_all))
        os.unlink(f"{d.dir}/full.told")
        return over, [line for line in d.stderr().splitlines() if "cannot write the log" in line]

    d.put("full", exec=["/bin/sh", "-c", f"{until_told(d, 'full')}; for i in 1 2 3 4 5; do echo $i; sleep 0.1; done"], overlap="allow")
    began = time.monotonic()
    over, said = prints(3, 3)
    took = time.monotonic() - began
    tap.ok(over == ["ok"] * 3 and (len(said) == 1 or took > 10) and all("No space left on device" in line for line in said),
           "logs that cannot be written are said once, and the runs go on", over, said, took)
    time.sleep(10.5)
    again = prints(1, 4)[1]
    tap.ok(len(again) > len(said), "and once more after 10 s", again)


def log_part(d, key, at):
    connection = __import__("daemon").Connection(d.socket)
    connection.request("GET", f"/v1/runs/{key}/log?from={at}")
    answer = connection.getresponse()
    data = answer.read().decode()
    connection.close()
    return data, int(answer.headers["Log-Next"])


def retention(tap, d):
    def ended(name):
        """Returns the row of the job's run if that is over, or True if the job was already deleted with its history."""
        rows = [r for r in d.get(f"/v1/runs?job={name}") if r["state"] == "over"]
        return rows[0] if rows else d.request("GET", f"/v1/jobs/{name}")[0] == 404

    for name in (f"short{n}" for n in range(9)):
        d.put(name, after="50ms", exec=["echo", "x"], keep="1s")
        row = until(lambda name=name: ended(name))
        key, text = (row["run"], d.output(row["run"])) if row is not True else (None, None)
        if key and time.time() * 1e9 < ns(row["ended"]) + 10**9:        # the log was read while it had to be there
            break
        d.request("DELETE", f"/v1/jobs/{name}")
    tap.same(text, "x\n", "keep: the log is there")
    gone = until(lambda: d.request("GET", f"/v1/jobs/{name}")[0] == 404)
    left = [f for _, _, files in os.walk(f"{d.dir}/state/logs") for f in files if f.startswith(key)]
    tap.ok(gone and not left and not d.get(f"/v1/runs/{key}"), "keep: history, log and job are deleted in time", left)


def nameless(tap):
    """Put log files that the store does not know into the log directory: of a past day, of today, and of a runner's run that
    ended elsewhere. The daemon must remove them at its next start, but not the log of a run in history."""
    def logs():
        return sorted(f for _, _, files in os.walk(path) for f in files)

    with Daemon() as d:
        path = f"{d.dir}/state/logs"
        d.start()
        d.put("named", exec=["echo", "x"])
        run(d, "named")
        named = run_of(d, "named")
        tap.same(d.stop(), 0, "logs: the daemon stops")
        today = next(day for day in os.listdir(path) if os.listdir(f"{path}/{day}"))
        for name in [f"{today}/{named}.7", f"{today}/9999-5.1", "away/9999-6.1.each"] + [f"20000/{n}-1728000000000001.1" for n in range(60)]:
            os.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
            with open(f"{path}/{name}", "w") as f:
                f.write("x\n")
        d.start()
        until(lambda: logs() == [f"{named}.1"] and not os.path.exists(f"{path}/20000"))
        tap.same([logs(), os.path.exists(f"{path}/20000")], [[f"{named}.1"], False],
                 "logs: those that nothing names are removed, and no other")
        tap.same(d.output(named), "x\n", "logs: that of a run in history is there")


def followed(tap, d):
    """A job that is due once has run, and its history expires while another job runs, which it follows. It must
    run again, as accepted."""
    def put(n):
        """Put the father when the child has run, but before the child is deleted. Returns false if the host was
        too slow for that."""
        d.put("child", after="20ms", exec=d.writes(f"child{n}"), keep="1s")
        until(lambda: d.lines(f"child{n}"))
        return d.put("father", exec=["/bin/sh", "-c", until_told(d, "father")], then={"ok": ["child"]})[0] == 200

    nth = next((n for n in range(9) if put(n)), 0)
    key = run(d, "father")
    until(lambda: d.request("GET", "/v1/runs?job=child")[1] == [] or d.request("GET", "/v1/jobs/child")[0] == 404)
    tell(d, "father")
    tap.ok(until(lambda: len(d.lines(f"child{nth}")) == 2), "a job that is due once and follows another stays", d.get(f"/v1/runs/{key}"),
           d.stderr())
    # Otherwise the child would be deleted later, while another test reads the list of jobs.
    for name in ("father", "child"):
        d.request("DELETE", f"/v1/jobs/{name}")


# ---- lives -------------------------------------------------------------------------------------------

def descriptors(tap):
    """The daemon may have only 64 descriptors. It must begin fewer runs at once, and lose no output."""
    with Daemon() as d:
        d.command = ["prlimit", "--nofile=64:64", *d.command]
        d.start()
        d.put("j", exec=["/bin/sh", "-c", "sleep 0.2; echo hello; sleep 0.3"], overlap="allow")
        keys = [r["run"] for r in d.post("/v1/jobs/j/shots", [{"after": 0}] * 30)[1]]
        rows = d.over("j", 30)
        tap.same([set(outcomes(rows)), {d.output(key) for key in keys}, "at most 10 runs at once" in d.stderr()], [{"ok"}, {"hello\n"}, True],
                 "few descriptors: no output is lost", d.stderr())


def killed_early(tap):
    """Kill runs as soon as they are asked for, perhaps before their child has its process group. None must do its work."""
    with Daemon() as d:
        d.start()
        d.put("k", dir="/", exec=["sh", "-c", f"sleep 1; echo >>{d.dir}/work"], overlap="allow")
        connection = d.connection()

        def post(path):
            connection.request("POST", path)
            return json.loads(connection.getresponse().read())

        # A run that is killed before it was fired has no row in history.
        while len(d.get("/v1/runs?job=k")) < 20:
            post(f"/v1/runs/{post('/v1/jobs/k/run')[0]['run']}/kill")
        rows = d.over("k", 20)
        tap.same([set(outcomes(rows)), d.lines("work")], [{"killed"}, []], "what is killed while it begins does nothing")


def zones(tap):
    """Change the rules of a zone by an hour while no daemon runs. The next times must move by an hour, and a
    time that has passed only by the new rules must run."""
    def install(offset):
        with open(f"/usr/share/zoneinfo/Etc/GMT-{offset}", "rb") as file, open(f"{d.dir}/tz/Here", "wb") as to:
            to.write(file.read())

    with Daemon() as d:
        os.mkdir(f"{d.dir}/tz")
        install(2)
        d.start(TZDIR=f"{d.dir}/tz")
        hour = (time.gmtime().tm_hour + 5) % 24
        for name in ("one", "off"):
            d.put(name, cron=f"30 {hour} * * *", zone="Here", exec=["true"])
        d.post("/v1/jobs/off/pause")
        before = [d.get(f"/v1/jobs/{name}")["next"][:3] for name in ("one", "off")]
        d.stop()
        d.start(TZDIR=f"{d.dir}/tz")
        same = [d.get(f"/v1/jobs/{name}")["next"][:3] for name in ("one", "off")]
        d.stop()
        install(1)
        d.start(TZDIR=f"{d.dir}/tz")
        after = [d.get(f"/v1/jobs/{name}")["next"][:3] for name in ("one", "off")]
        gaps = {ns(b) - ns(a) for was, now in zip(before, after) for a, b in zip(was, now)}
        tap.same([before == same, gaps], [True, {3600 * 10**9}], "a zone whose rules have changed", before, same, after)
        hours = ",".join(str((time.gmtime().tm_hour + n) % 24) for n in range(3, 12))
        d.put("office", cron=f"30 {hours} * * *", zone="Here", exec=["true"])
        old = d.get("/v1/jobs/office")["next"]
        d.stop()
        install(2)
        d.start(TZDIR=f"{d.dir}/tz")
        new = d.get("/v1/jobs/office")["next"]
        passed = time.time() // 1 + 3600 - 5        # in nearly an hour; by the rules that come next, 5 s ago
        local = time.gmtime(passed + 2 * 3600)
        for name, hours in (("once", [0]), ("twice", [0, 2])):
            at = ",".join(str((local.tm_hour + hour) % 24) for hour in hours)
            d.put(name, cron=time.strftime(f"%S %M {at} * * *", local), zone="Here", exec=["true"])
        planned = [ns(d.get(f"/v1/jobs/{name}")["next"][0]) for name in ("once", "twice")]
        d.stop()
        install(3)
        d.start(TZDIR=f"{d.dir}/tz")
        ran = [[ns(r["at"]) for r in d.over(name)] for name in ("once", "twice")]
        tap.same([planned, ran], [[passed * 10**9] * 2, [[(passed - 3600) * 10**9]] * 2],
                 "a time that was still to come, and has passed by the new rules, is run")
        tap.same([ns(old[0]) - ns(new[0]), new[1:3]], [3600 * 10**9, old[:2]], "also if the time was one by the new rules, but not the next one", old, new)


def local_time(tap):
    """The local time of the daemon is not UTC."""
    with Daemon(TZ="Asia/Tokyo") as d:
        d.start()
        d.put("here", cron="0 12 * * *", exec=["true"])
        d.put("there", cron="0 12 * * *", zone="UTC", exec=["true"])
        hours = [d.get(f"/v1/jobs/{name}")["next"][0][10:] for name in ("here", "there")]
        tap.same(hours, ["T03:00:00.000000Z", "T12:00:00.000000Z"], "the zone of a job is the local one, unless it says which; times are told in UTC")


def put_in_between(tap):
    """Put a job with a delay again while it runs. The delay must still count from the end of the run."""
    with Daemon() as d:
        d.start()
        job = {"delay": "2s", "exec": ["sleep", "1.5"]}
        d.put("j", **job)
        until(lambda: d.get("/v1/runs?job=j"))
        d.put("j", **job)
        first, second = d.over("j", 2)
        tap.ok(ns(second["began"]) - ns(first["ended"]) >= 2 * 10**9, "a delay counts from the end of a run, also if the job is put again", first, second)


def put_after(tap):
    """Put a job with "after" again while it waits: its time must stay. Put it once more when it has run: it must run again."""
    with Daemon() as d:
        d.start()
        job = {"after": "2s", "exec": ["true"]}
        d.put("j", **job)
        first = d.get("/v1/jobs/j")["next"]
        time.sleep(0.5)
        d.put("j", **job, input="other")
        again = d.get("/v1/jobs/j")["next"]
        ran = d.over("j")[0]["at"]
        d.put("j", **job)
        tap.same([again, ran, len(d.over("j", 2))], [first, first[0], 2], "a time after it was put stays if the job is put again, until it has run")


def days_off(tap):
    """Change a calendar while a job with it is paused and misses times. The daemon must make up for all of them."""
    with Daemon() as d:
        d.start()
        d.request("PUT", "/v1/days/c", ["2001-01-01"])
        d.put("j", cron="* * * * * *", zone="UTC", grace="0.5s", missed="all", overlap="queue", queue=100, exec=["true"], **{"except": "c"})
        d.over("j")
        d.post("/v1/jobs/j/pause")
        time.sleep(4)
        d.request("PUT", "/v1/days/c", ["2001-01-02"])
        d.post("/v1/jobs/j/resume")
        rows = d.over("j", 7)
        gaps = {ns(b["at"]) - ns(a["at"]) for a, b in zip(rows, rows[1:])}
        tap.same(gaps, {10**9}, "a calendar that changes does not make a job forget what it has missed", rows)


def paced(tap):
    """1500 late firings are held back, and the daemon reads their rows again and again. Each must be held back only once."""
    with Daemon() as d:
        d.start()
        d.put("late", exec=["true"], overlap="allow", grace="0.1s")
        d.put("other", exec=["true"])
        d.post("/v1/jobs/late/pause")
        d.post("/v1/jobs/late/shots", [{"after": 0}] * 1500)
        time.sleep(0.2)
        d.post("/v1/jobs/late/resume")
        most = [until(lambda: metric(d, "paced"))]     # wait: a busy host may keep the test until none is held back
        for _ in range(10):
            d.post("/v1/jobs/other/pause")
            d.post("/v1/jobs/other/resume")
            time.sleep(0.05)
            most.append(metric(d, "paced"))
        tap.ok(0 < max(most) <= 1500, "late firings wait once each", most)


def metric(d, name):
    return float(re.search(rf"^twheeld_{name} (\S+)$", d.get("/metrics").decode(), re.M)[1])


@contextlib.contextmanager
def crowded(tap):
    """Let so many runs wait that there are more timers than rows of due are read ahead. A job that is due in 63 s, whose row is
    not read yet, must run nevertheless. The caller does other tests meanwhile."""
    with Daemon() as d:
        d.start()
        d.put("waits", exec=["true"], pool="nobody", overlap="allow", alarm={"fail": ["http://127.0.0.1:1/"], "late": "1h"})
        for _ in range(6):
            d.request("POST", "/v1/jobs/waits/shots", [{"after": 0}] * 8500, timeout=120)
        until(lambda: metric(d, "timers") > 51000, 200)
        d.put("far", exec=["true"])
        run(d, "far", after="63s")
        yield
        tap.ok(until(lambda: d.get("/v1/jobs/far")["last"], 120), "many runs that wait do not keep jobs from being due", d.get("/v1/jobs/far"))


def missed(tap):
    with Daemon() as d:
        d.start()
        for word in ("once", "skip", "all"):
            d.put(word, rate="0.2s", missed=word, grace="0.1s", overlap="queue", queue=100,
                  exec=["/bin/sh", "-c", f"echo $TWHEEL_MISSED >>{d.dir}/{word}"])
            d.over(word)
        d.stop()
        before = {word: len(d.lines(word)) for word in ("once", "skip", "all")}
        time.sleep(1.5)
        back = int(time.time() * 1e6)
        d.start()
        until(lambda: all(len(d.lines(w)) > before[w] + 1 for w in before))
        time.sleep(0.3)
        d.stop()
        # Rows for what was due while the daemon was away, without the grace: a busy host may miss more times later. A run that
        # ended when the daemon stopped is executed again, as attempt 2, and makes up for no missed times.
        rows = d.query("SELECT j.name, h.outcome, h.missed FROM history h JOIN job j ON j.id = h.job WHERE h.more = 0"
                       f" AND h.attempt < 2 AND h.ended > {back} AND h.at < {back} - 100000 ORDER BY h.seq")
        once = [(outcome, nr) for name, outcome, nr in rows if name == "once"]
        told = [int(line[0]) for line in d.lines("once")[before["once"]:]]
        tap.ok(len(once) == 1 and once[0][0] == 0 and once[0][1] >= 6 and once[0][1] in told, "missed: once", rows, told)
        skipped = [(outcome, nr >= 6) for name, outcome, nr in rows if name == "skip"]
        tap.same(skipped, [(6, True)], "missed: skip", rows)
        gaps = d.query("SELECT h.at - lag(h.at) OVER (ORDER BY h.at) FROM history h JOIN job j ON j.id = h.job"
                       " WHERE j.name = 'all' AND more = 0")
        tap.ok({g for g, in gaps[1:]} == {200000} and len(gaps) >= 8, "missed: all", gaps)


def put_late(tap):
    """Jobs are due while the daemon is away. When it starts, put their definitions again before it has fired them, unchanged or
    with another schedule; also that of a job whose time came while it was paused. No time must be lost."""
    with Daemon() as d:
        d.start()
        start = int(time.time()) + 3
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start))
        same = [{"name": f"same{n}", "rate": "1h", "start": at, "exec": ["true"], "grace": "1s"} for n in range(100)]
        other = [{**job, "name": f"other{n}"} for n, job in enumerate(same)]
        phase = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start + 1800))
        new = [{**job, "start": phase, "exec": ["/bin/sh", "-c", "exit 7"]} for job in other]
        d.post("/v1/jobs", same + other + [{**same[0], "name": "paused", "missed": "skip"}])
        d.post("/v1/jobs/paused/pause")
        often = {"rate": "0.1s", "missed": "all", "grace": "0.1s", "overlap": "queue", "queue": 1000, "exec": ["true"], "start": at}
        d.put("often", **often)
        d.kill()
        time.sleep(start + 2 - time.time())
        d.start()
        d.post("/v1/jobs", [{**same[0], "name": "paused", "missed": "skip"}] + same + new)
        d.put("often", **often)
        d.over("often", 15)
        d.post("/v1/jobs/often/pause")
        d.idle("often")
        times = sorted(ns(r["at"]) for r in d.get("/v1/runs?limit=1000&job=often"))
        tap.same([times[0] // 10**9 - start, {b - a for a, b in zip(times, times[1:])}], [0, {10**8}], "missed: its schedule goes on where it was", times)
        d.request("DELETE", "/v1/jobs/often")
        for puts in range(100):         # each time as many late runs as their rate allows can begin in between
            rows = [r for r in d.get("/v1/runs?limit=1000") if r["job"] != "often"]
            if len(rows) == 200 and all(r["state"] == "over" for r in rows):
                break
            d.post("/v1/jobs", same)
            time.sleep(0.3)
        tap.ok(puts < 99, "missed: definitions that are put again and again do not keep it from being run", puts)
        seen = [(r["job"], ns(r["at"]) // 10**9 - start, r["outcome"], r["missed"]) for r in rows]
        tap.same(sorted(x for x in seen if x[0][:4] == "same"), sorted((job["name"], 0, "ok", 0) for job in same), "missed: a definition that is put again changes nothing")
        tap.same({(*x[1:3], d.get(f"/v1/jobs/{x[0]}")["next"][0]) for x in seen if x[0][:5] == "other"},
                 {(0, "failed", time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(start + 1800)))},
                 "missed: another schedule begins, and what was due by the old one is run", seen)
        d.post("/v1/jobs/paused/resume")
        tap.same([(r["outcome"], r["missed"]) for r in d.over("paused")], [("missed", 1)], "missed: also what has passed in a pause is told")
        tap.same([d.stop(), d.unsound()], [0, ""], "missed: the daemon is sound")


def put_calendar(tap):
    """Jobs with a calendar have missed two days of seconds. Put the calendar again and again: each job must
    still make up for them."""
    with Daemon() as d:
        d.start()
        d.request("PUT", "/v1/days/old", ["2020-01-01"])
        d.post("/v1/jobs", [{"name": f"off{n}", "cron": "* * * * * *", "exec": ["true"], "except": "old"} for n in range(100)])
        d.stop()
        with contextlib.closing(sqlite3.connect(f"{d.dir}/state/jobs.db")) as db:
            db.execute(f"UPDATE due SET at = at - {10**6 * 86400 * 2}")
            db.commit()
        d.start()
        seen = set()
        for _ in range(100):
            d.request("PUT", "/v1/days/old", ["2020-01-01"])
            seen |= {r["job"] for r in d.get("/v1/runs?limit=1000") if r["missed"] > 100000}    # the newest rows only
            if len(seen) == 100:
                break
            time.sleep(0.3)
        tap.same([len(seen), d.stop(), d.unsound()], [100, 0, ""], "missed: nor does a calendar that is put again and again")


def lost(tap):
    with Daemon() as d:
        d.start()
        sleeps = d.writes("out", f"; [ $TWHEEL_ATTEMPT = 2 ] || {{ sleep 1000 & wait; }}")
        d.put("again", exec=sleeps)
        d.put("report", exec=sleeps, lost="report")
        keys = [run(d, "again"), run(d, "report")]
        until(lambda: len(d.lines()) == 2)
        # When the daemon dies, the first process of a run dies too, but the child of that process does not.
        ours = until(lambda: sleepers(d))
        d.kill()
        d.start()
        rows = [d.get(f"/v1/runs/{key}") for key in keys]
        until(lambda: d.over("again") and d.over("report"))
        rows = [[(r["attempt"], r.get("outcome"), r.get("more")) for r in reversed(d.get(f"/v1/runs/{key}"))] for key in keys]
        tap.same(rows, [[(1, "lost", True), (2, "ok", False)], [(1, "lost", False)]], "a run that was lost is repeated")
        tap.ok(len(ours) == 2 and not any(map(alive, ours)), "processes of a lost run are killed", ours)
        d.put("behind", exec=d.writes("behind", f"; {until_told(d, 'behind')}"), lost="report", overlap="queue")
        keys = [run(d, "behind") for _ in range(3)]
        until(lambda: d.lines("behind") and len(d.get("/v1/jobs/behind")["runs"]) == 3)
        d.kill()
        tell(d, "behind")
        d.start()
        rows = {r["run"]: r["outcome"] for r in d.over("behind", 3)}
        tap.same([[rows.get(key) for key in keys], len(d.lines("behind"))], [["lost", "ok", "ok"], 3], "what waited behind a run that was lost is not lost")
        d.put("retries", exec=["/bin/sh", "-c", f"echo >>{d.dir}/retries; [ $TWHEEL_ATTEMPT != 1 ] || exec sleep 1000; [ $TWHEEL_ATTEMPT = 3 ]"],
              retry={"times": 1, "wait": "10ms"})
        key = run(d, "retries")
        until(lambda: d.lines("retries"))
        d.kill()
        d.start()
        d.over("retries")
        rows = [(r["attempt"], r["outcome"]) for r in reversed(d.get(f"/v1/runs/{key}"))]
        tap.same(rows, [(1, "lost"), (2, "failed"), (3, "ok")], "a run that was lost has all its retries left")
        d.put("late", exec=["/bin/sh", "-c", f"trap 'exit 3' TERM; echo >>{d.dir}/on; sleep 1000 & wait"])
        d.put("kind", exec=["/bin/sh", "-c", f"trap 'exit 0' TERM; echo >>{d.dir}/on; sleep 1000 & wait"])
        keys = [run(d, "late"), run(d, "kind")]
        until(lambda: len(d.lines("on")) == 2)
        tap.same(d.stop(), 0, "a clean stop")
        tap.same(d.query("SELECT id FROM running"), [(int(keys[0].split("-")[0]),)], "what ended well is over")
        tap.ok(not d.unsound(), "the daemons were sound", d.unsound())


def memory(tap):
    """Put and remove 100 big jobs that never run. The daemon must not keep their memory."""
    def resident():
        with open(f"/proc/{d.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    sizes = []
    with Daemon() as d:
        # The sanitizer must let freed memory be used again soon.
        d.start(ASAN_OPTIONS=f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1")
        for n in range(100):
            d.put(f"big{n}", exec=["true"], input="x" * 900_000)
            d.request("DELETE", f"/v1/jobs/big{n}")
            sizes.append(resident())
        tap.ok(sizes[-1] - sizes[19] < 30e6, "a job that is removed takes no memory", sizes[19], sizes[-1])


def left_over(tap):
    """Stop the daemon while runs wait: they must not be lost. Stop or kill it after it was told to kill a run:
    that run must be killed, and not be executed again."""
    for what, more, args in (("behind another run", {"overlap": "queue"}, ()), ("because too many ran", {"overlap": "allow"}, ("--runs=1",))):
        with Daemon(*args) as d:
            d.start()
            d.put("j", lost="report", **more, exec=["/bin/sh", "-c", f"trap 'exit 0' TERM; echo >>{d.dir}/on; {until_told(d, 'j')}"])
            keys = [run(d, "j") for _ in range(3)]
            until(lambda: d.lines("on") and len(d.get("/v1/jobs/j")["runs"]) == 3)
            status = d.stop()
            tell(d, "j")
            d.start()
            rows = {r["run"]: (r["attempt"], r["outcome"]) for r in d.over("j", 3)}
            tap.same([status, [rows.get(key) for key in keys]], [0, [(1, "ok")] * 3], f"a clean stop: what waited {what} begins later", rows)
    with Daemon() as d:
        d.start()
        d.put("j", exec=["/bin/sh", "-c", f"trap '' TERM; echo >>{d.dir}/on; while :; do sleep 0.05; done"], stop="1s")
        key = run(d, "j")
        until(lambda: d.lines("on"))
        d.post(f"/v1/runs/{key}/kill")
        d.stop()
        d.start()
        tap.same([(r["attempt"], r.get("outcome")) for r in d.get(f"/v1/runs/{key}")], [(1, "killed")], "a clean stop: what was killed is over")
        d.put("k", exec=["/bin/sh", "-c", f"trap '' TERM; echo >>{d.dir}/on; while :; do sleep 0.05; done"], stop="60s")
        key = run(d, "k")
        until(lambda: len(d.lines("on")) == 2)
        status = d.post(f"/v1/runs/{key}/kill")[0]
        d.kill()
        d.start()
        rows = [(r["attempt"], r["outcome"]) for r in d.over("k")]
        tap.same([status, rows, len(d.lines("on"))], [200, [(1, "killed")], 2], "and so it is if the daemon is killed before that has ended", d.stderr())


def set_back(tap):
    """The clock was set back by a quarter of an hour: the test moves the times in the store instead. Then a definition and a
    calendar are put again, unchanged. No time must come again."""
    with Daemon() as d:
        d.start()
        d.request("PUT", "/v1/days/c", ["2020-01-01"])
        jobs = {"cron": {"cron": "* * * * * *"}, "days": {"cron": "* * * * * *", "except": "c"}, "rate": {"rate": "1s", "except": "c"}}
        for name, job in jobs.items():
            d.put(name, exec=["true"], **job)
        for name in jobs:
            d.over(name)
        d.stop()
        with contextlib.closing(sqlite3.connect(f"{d.dir}/state/jobs.db")) as db:
            db.execute("UPDATE due SET at = at + 900000000")
            db.execute("UPDATE history SET at = at + 900000000")
            db.commit()
        d.start()
        before = {name: d.get(f"/v1/jobs/{name}")["next"] for name in jobs}
        d.put("cron", exec=["true"], **jobs["cron"])
        d.request("PUT", "/v1/days/c", ["2020-01-01"])
        after = {name: d.get(f"/v1/jobs/{name}")["next"] for name in jobs}
        tap.same([after, d.stop(), d.unsound()], [before, 0, ""], "a clock that was set back makes no time come again, whatever is put")


def behind(tap):
    """The clock is a month behind when the daemon starts, as on a machine without a battery, and there is no
    history. No time must come again."""
    with Daemon() as d:
        d.start()
        d.request("PUT", "/v1/days/c", ["2020-01-01"])
        for name, more in (("cron", {}), ("days", {"except": "c"})):
            d.put(name, cron="0 0 1 * *", exec=["true"], **more)
        before = d.get("/v1/jobs/cron")["next"]
        d.stop()
        d.query(f"UPDATE due SET at = {ns(before[1]) // 1000}")
        later = ns(before[0]) // 10**9 + 86400
        os.utime(f"{d.dir}/state/jobs.db", (later, later))
        d.start()
        d.request("PUT", "/v1/days/c", ["2020-01-02"])
        tap.same([d.get(f"/v1/jobs/{name}")["next"][0] for name in ("cron", "days")], [before[1]] * 2,
                 "a clock that is behind makes no time come again", d.stderr())
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon was sound")


def ahead(tap):
    """The file of the store has a time in the future, by a copy or a wrong clock. New days of a calendar must
    count nevertheless."""
    with Daemon() as d:
        d.start()
        d.stop()
        later = time.time() + 366 * 86400
        os.utime(f"{d.dir}/state/jobs.db", (later, later))
        d.start()
        d.request("PUT", "/v1/days/c", ["2020-01-01"])
        d.put("cron", cron="0 0 * * *", exec=["true"], **{"except": "c"})
        d.put("rate", rate="20h", exec=["true"], **{"except": "c"})
        days = [time.strftime("%Y-%m-%d", time.gmtime(time.time() + n * 86400)) for n in range(4)]
        d.request("PUT", "/v1/days/c", days)
        off = [d.get(f"/v1/jobs/{name}")["next"][0][:10] for name in ("cron", "rate")]
        d.request("PUT", "/v1/days/c", [*days, *off])
        again = [d.get(f"/v1/jobs/{name}")["next"][0][:10] for name in ("cron", "rate")]
        d.request("PUT", "/v1/days/c", again)      # the earlier days, on which the jobs were due, are no longer days off
        moved = [d.get(f"/v1/jobs/{name}")["next"][0][:10] for name in ("cron", "rate")]
        tap.ok(min(off) > days[-1] and min(again) > max(off) and min(moved) > max(again),
               "a time to which the clock has not come yet keeps no job on a day off", off, again, moved)
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon was sound")


PRELOAD = {"LD_PRELOAD": f"{PROGRAMS}/fails.so", "ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}


def unwritten(tap):
    """The database file of the store cannot be written, but its write-ahead log can. The daemon must say so,
    and the log must not grow."""
    with Daemon(**PRELOAD) as d:
        d.env["UNWRITTEN"] = flag = f"{d.dir}/unwritten"
        d.start()
        d.put("j", exec=["true"], overlap="allow")
        d.put("rate", rate="100ms", exec=["true"])
        with open(flag, "w", encoding="ascii"):
            until(lambda: d.post("/v1/jobs/j/shots", [{"after": "1d", "arg": "x" * 1000}] * 500)[0] != 200)
        until(lambda: "cannot be written" in d.stderr())
        size = os.path.getsize(f"{d.dir}/state/jobs.db-wal")
        d.kill()
        again = []
        for _ in range(3):
            d.start(wait=False)
            again.append((d.process.wait(60), os.path.getsize(f"{d.dir}/state/jobs.db-wal")))
        tap.same(again, [(1, again[0][1])] * 3, "nor is it written by a daemon that is started again and again", d.stderr())
        os.unlink(flag)
        d.start()
        key = until(lambda: (a := d.post("/v1/jobs/j/run"))[0] == 200 and a[1][0]["run"])
        d.over("j")
        tap.same([size < 16 << 20, d.over("j")[0]["run"]], [True, key], "if only the log can be written, that is told, and the log does not grow", size, d.stderr())
        with open(flag, "w", encoding="ascii"):
            until(lambda: d.post("/v1/jobs/j/shots", [{"after": "1d", "arg": "x" * 1000}] * 500)[0] != 200)
        told = until(lambda: d.stderr().count("the store cannot be written") > 1)
        os.unlink(flag)
        tap.ok(told and until(lambda: "the store can be written again" in d.stderr()), "a daemon goes on once the file can be written", d.stderr())
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon was sound")


def unwatched(tap):
    """The kernel has no memory to watch for the end of a process. A run must end nevertheless, and be executed
    only once; so must sendmail."""
    with Daemon(**PRELOAD) as d:
        d.env["UNWATCHED"] = flag = f"{d.dir}/unwatched"
        d.start(d.sendmail(f"echo $3 >>{d.dir}/mail"))
        d.put("j", exec=d.writes())
        d.put("dir", exec=d.writes(), dir="/tmp")
        with open(flag, "w", encoding="ascii"):
            keys = [run(d, "j"), run(d, "dir")]
        rows = [d.over(name)[0]["outcome"] for name in ("j", "dir")]
        to = [f"m{n}@example.org" for n in range(20)]
        d.put("bad", exec=["false"], alarm={"fail": [f"mailto:{who}" for who in to]})
        run(d, "bad")
        until(lambda: len(d.lines("mail")) >= len(to))
        os.unlink(flag)
        run(d, "j")
        d.over("j", 2)
        tap.same([rows, [[line[1] for line in d.lines()].count(key) for key in keys]], [["ok"] * 2, [1, 1]],
                 "a process whose end cannot be watched is not run twice", d.stderr())
        tap.same(sorted(line[0] for line in d.lines("mail")), sorted(to), "nor is a mail sent twice", d.stderr())
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon was sound")


def many_late(tap):
    """30000 shots of a job are late when a job that was paused resumes and has missed some of its times. It
    must not wait for the shots."""
    with Daemon() as d:
        d.start()
        d.put("many", exec=["true"], overlap="skip")
        d.put("one", exec=["true"], rate="1s", grace="1s", missed="once")
        d.over("one")
        d.post("/v1/jobs/one/pause")
        time.sleep(3)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 600))
        for _ in range(3):
            d.post("/v1/jobs/many/shots", [{"at": at}] * 10000)
        before = len(d.get("/v1/runs?job=one"))
        began = time.monotonic()
        d.post("/v1/jobs/one/resume")
        until(lambda: len(d.get("/v1/runs?job=one")) > before)
        took = time.monotonic() - began
        tap.ok(took < 20, "late runs of a job do not wait behind many of another one", took)


def long_away(tap, what, days, at, least, **more):
    """The daemon has missed so many times that to count them takes long: 100 jobs are due in each second of
    @days (how many days ago), since the time @at. While a request waits, the daemon must use little of the CPU
    time that it takes to count for all jobs."""
    cron = f"* * * {','.join(str(time.gmtime(time.time() - n * 86400).tm_mday) for n in days)} * *"
    with Daemon() as d:
        d.start()
        d.post("/v1/jobs", [{"name": f"j{n}", "exec": ["true"], "cron": cron, "zone": "UTC", **more} for n in range(100)])
        d.stop()
        with contextlib.closing(sqlite3.connect(f"{d.dir}/state/jobs.db")) as db:
            db.execute(f"UPDATE due SET at = {at} * 1000000")
            db.commit()
        d.start()
        d.get("/v1/jobs?limit=1")
        longest = cpu_of(d.process.pid)

        def counted():
            nonlocal longest
            began = cpu_of(d.process.pid)
            rows = d.get("/v1/runs?limit=1000")
            longest = max(longest, cpu_of(d.process.pid) - began)
            return len({r["job"] for r in rows if r["missed"] > least}) == 100

        counted_all = until(counted, 300)
        took = cpu_of(d.process.pid)
        tap.ok(counted_all and longest < took / 5, f"many that have missed much hold up nothing: {what}", longest, took)
        tap.same([d.stop(), d.unsound()], [0, ""], "the daemon is sound")


def open_state(tap):
    """The state directory was made before, so that everybody may enter it. What is in it must be the daemon's alone. Then
    everybody or a group may write to it, or somebody else owns it: the daemon must say so."""
    with Daemon() as d:
        os.mkdir(f"{d.dir}/state", 0o755)
        os.chmod(f"{d.dir}/state", 0o755)
        d.start()
        d.put("j", exec=["true"])
        run(d, "j")
        d.over("j")
        modes = {os.path.join(path, name): oct(os.stat(os.path.join(path, name)).st_mode & 0o77)
                 for path, dirs, files in os.walk(f"{d.dir}/state") for name in dirs + files}
        tap.ok(len(modes) > 3 and set(modes.values()) == {"0o0"}, "what is in it is the daemon's alone", modes)
        d.stop()
        cases = {"everybody may write": (1, "by everybody: its mode is 757", os.chmod, 0o757),
                 "a group may write": (None, "and its mode is 775", os.chmod, 0o775),
                 "somebody else owns": (None, "it belongs to user 65534", os.chown, 65534, -1)}
        for who, (status, says, change, *to) in list(cases.items())[:2 + ROOT]:
            os.chmod(f"{d.dir}/state", 0o755)
            change(f"{d.dir}/state", *to)
            d.start(wait=False)
            until(lambda: d.process.poll() is not None or d.answers(), 20)
            tap.ok(d.process.poll() == status and says in d.stderr(), f"a state directory that {who}", d.stderr())
            d.kill()


def others(tap):
    """A process has the path of our state in its environment, but not our state, as in a container. The daemon
    must not kill it."""
    with Daemon() as d:
        os.mkdir(f"{d.dir}/state")
        env = {**os.environ, "TWHEEL_STATE": f"{d.dir}/state", "TWHEEL_STATE_ID": "1-1"}
        with subprocess.Popen(["sleep", "1000"], env=env) as process:
            d.start()
            tap.same(process.poll(), None, "a daemon that starts kills nothing of a daemon whose state has the same path elsewhere")
            process.kill()


def full_environment(tap):
    """The variables of a job take as much as a request can. The daemon dies, but not a process that the run has
    begun: the next daemon must find and kill it."""
    script = ("import os, time\nif os.fork(): os.wait()\nwhile True:\n"
              " print(os.environ['TWHEEL_ATTEMPT'], file=open(os.environ['OUT'], 'a')); time.sleep(0.05)")
    with Daemon(PAD="p" * 2000) as d:
        d.start()
        env = {f"V{n}": "x" * 130000 for n in range(8)}
        d.put("j", exec=["python3", "-c", script], env={**env, "OUT": f"{d.dir}/out"})
        run(d, "j")
        until(lambda: d.lines("out"))
        d.kill()
        d.start()
        until(lambda: ["2"] in d.lines("out"))
        time.sleep(1)
        lines = d.lines("out")
        tap.same(["1"] in lines[lines.index(["2"]):], False, "what a run with very many variables has left is found, and killed")


def replaced(tap):
    """The daemon dies before a run has ended that it has told to end, because another run replaces it. The next
    daemon must not execute the replaced run again."""
    with Daemon() as d:
        d.start()
        d.put("j", overlap="replace", stop="60s",
              exec=["/bin/sh", "-c", f"trap '' TERM; echo >>{d.dir}/on; [ $TWHEEL_ARG ] || {until_told(d, 'j')}"])
        keys = [run(d, "j")]
        until(lambda: d.lines("on"))
        keys.append(run(d, "j", after=0, arg="new"))
        until(lambda: [r["state"] for r in d.get(f"/v1/runs/{keys[1]}")] == ["queued"])
        d.kill()
        d.start()
        rows = {r["run"]: (r["attempt"], r["outcome"]) for r in d.over("j", 2)}
        tap.same([rows.get(key) for key in keys], [(1, "killed"), (1, "ok")], "replace: also if the daemon dies meanwhile", rows, d.stderr())


def phantoms(tap):
    """If a row of due was cancelled or replaced, its timer stays. When the timer fires, it must not change the
    outcomes of other runs."""
    with Daemon() as d:
        d.start()
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
        for n in range(20):
            d.put(f"skip{n}", exec=["true"])
            for arg in ("old", "new"):
                d.post(f"/v1/jobs/skip{n}/shots", [{"at": at, "key": "k", "arg": arg}])
        rows = until(lambda: (r := [history(d, f"skip{n}") for n in range(20)]) and all(r) and r, 20)
        tap.same([outcomes(r) for r in rows or []], [["ok"]] * 20, "what has replaced a shot of the same time is not skipped")
        d.put("phantom", overlap="replace", stop="60s",
              exec=["/bin/sh", "-c", f"trap '' TERM; echo b >>{d.dir}/phantom; {until_told(d, 'phantom')}"])
        run(d, "phantom")
        until(lambda: d.lines("phantom"))
        d.post(f"/v1/runs/{run(d, 'phantom', after='1s')}/kill")
        key = run(d, "phantom")
        until(lambda: d.get(f"/v1/runs/{key}")[0]["state"] == "queued")
        time.sleep(1.5)
        tell(d, "phantom")
        rows = until(lambda: len(r := history(d, "phantom")) > 1 and r)
        tap.same(outcomes(rows or []), ["killed", "ok"], "nor does one that was killed before it is due replace what waits",
                 d.get("/v1/runs?job=phantom"), d.stderr())


def limited_files(tap):
    """The daemon's files have a limit of size. If a job prints more, the daemon must not end."""
    with Daemon() as d:
        d.command = ["sh", "-c", 'ulimit -f 800; exec "$0" "$@"', *d.command]
        d.start()
        d.put("prints", exec=["/bin/sh", "-c", "head -c 600000 /dev/zero"])
        run(d, "prints")
        rows = until(lambda: history(d, "prints"))
        tap.same([outcomes(rows or []), "cannot write the log" in d.stderr()], [["ok"], True],
                 "a log that may not grow is given up, and the daemon goes on", d.stderr())


def two_broken(d, command):
    """Let one run of the job j be in progress and one be queued. Kill the daemon, damage the definition, and start the daemon,
    which cannot understand the job. Returns the keys of the runs."""
    d.put("j", exec=["/bin/sh", "-c", command], overlap="queue")
    keys = [run(d, "j"), run(d, "j")]
    until(lambda: [r["state"] for key in keys for r in d.get(f"/v1/runs/{key}")] == ["running", "queued"])
    d.kill()
    d.query("UPDATE job SET def = replace(def, '{', '{\"zone\": \"No/Where\", ')")
    d.start()
    return keys


def broken(tap):
    """The firings of a job with a damaged definition must wait until the job is put again. Then definitions, a name and a time
    are damaged in the store: the daemon must start nevertheless."""
    with Daemon() as d:
        d.start()
        keys = two_broken(d, "[ $TWHEEL_ATTEMPT = 2 ] || sleep 1000")
        waits = d.get("/v1/runs")
        d.put("j", exec=["true"], overlap="queue")
        keys.append(run(d, "j"))
        tap.same([waits, sorted(r["run"] for r in d.over("j", 3))], [[], sorted(keys)], "firings of a job that could not be understood "
                 "wait, and run when it can", d.stderr())
        d.kill()
        d.lose_definitions()
        d.start()
        tap.same([d.get("/v1/jobs/j").get(key) for key in ("broken", "definition")], ["it is not JSON", None],
                 "a job whose definition is lost is told, and the daemon goes on", d.stderr())
        d.kill()
        d.query("""UPDATE job SET name = CAST(x'6aff' AS TEXT), def = '{"exec": ["true"], "cron": "@daily"}'""")
        d.query("INSERT INTO due (at, main, off, job) SELECT -9300000000000000, 1, 0, id FROM job")
        d.start()
        tap.same([[job["name"] for job in d.get("/v1/jobs")], d.unsound()], [["j?"], ""], "a name that is no text, and a time long ago", d.stderr())


def lost_calendar(tap):
    """A calendar was lost, and is put again. Its jobs must be understood then, and follow the new days."""
    with Daemon() as d:
        d.start()
        d.request("PUT", "/v1/days/off", ["2001-01-01"])
        d.put("j", cron="* * * * * *", zone="UTC", exec=["true"], **{"except": "off"})
        d.put("k", cron="0 0 12 31 12 *", zone="UTC", exec=["true"], **{"except": "off"})
        d.kill()
        d.query("DELETE FROM day_off")
        d.query("DELETE FROM calendar")
        d.start()
        lost = [d.get(f"/v1/jobs/{name}").get("broken") for name in "jk"]
        year = int(d.get("/v1/jobs/k")["next"][0][:4])
        first = d.request("PUT", "/v1/days/off", [f"{year}-12-31"])[0]
        d.kill()
        at = d.query("SELECT at FROM due JOIN job ON job.id = due.job WHERE name = 'k'")[0][0]
        d.start()
        second = d.request("PUT", "/v1/days/off", [f"{year}-12-31", "2001-01-02"])[0]
        ran = until(lambda: d.get("/v1/runs?job=j"))
        tap.same([all(lost), first, time.gmtime(at / 1e6)[0], second, bool(ran), d.stop(), d.unsound()], [True, 200, year + 1, 200, True, 0, ""],
                 "a calendar that was lost and is put again brings its jobs back", lost, d.stderr())


def broken_removed(tap):
    """A job whose definition the daemon does not understand is removed. Its firings must be over then."""
    with Daemon() as d:
        d.start()
        keys = two_broken(d, "exec sleep 1000")
        removed = d.request("DELETE", "/v1/jobs/j")[0]
        ended = [until(lambda key=key: [r["outcome"] for r in d.get(f"/v1/runs/{key}") if r["state"] == "over"]) for key in keys]
        tap.same([removed, ended, d.stop(), d.query("SELECT * FROM running")], [200, [["lost"], ["killed"]], 0, []],
                 "firings of a job that was not understood, and is removed, are over", d.stderr())


def named_by_broken(tap):
    """The histories of jobs that were due once expire. A job whose definition is not understood names one of
    them, which must stay."""
    with Daemon() as d:
        d.start()
        for name in ("named", "other"):
            d.put(name, after=0, exec=["true"], keep="1h")
            d.over(name)
        d.put("names", exec=["true"], then={"fail": ["named"]})
        d.kill()
        d.query("UPDATE job SET def = replace(def, '{', '{\"zone\": \"No/Where\", ') WHERE name = 'names'")
        d.query("UPDATE history SET dropped = 1")
        d.start()
        until(lambda: d.request("GET", "/v1/jobs/other")[0] == 404)
        left = [j["name"] for j in d.get("/v1/jobs")]
        tap.same([left, d.get("/v1/runs")], [["named", "names"], []], "a job that was due once stays while one that is not understood names it", d.stderr())
        d.put("names", exec=["true"])
        d.put("named", after=0, exec=["true"], keep="1s")
        gone = until(lambda: d.request("GET", "/v1/jobs/named")[0] == 404)
        tap.same([gone, d.stop(), d.unsound()], [True, 0, ""], "and goes once that is put again and does not", d.stderr())


def kept(tap):
    """The history of a job that was due once expires while its next attempt runs. The job must stay."""
    with Daemon() as d:
        d.start()
        d.put("j", after="0s", keep="1s", retry={"times": 1, "wait": 0}, exec=["/bin/sh", "-c", "[ $TWHEEL_ATTEMPT = 1 ] || sleep 1000; exit 1"])
        until(lambda: d.get("/v1/runs?job=j&outcome=failed"))
        gone = until(lambda: not d.get("/v1/runs?job=j&outcome=failed"), 20)
        time.sleep(1)
        d.kill()
        tap.same([gone, d.query("SELECT name FROM job")], [True, [("j",)]], "a job stays as long as a run of it", d.stderr())


def made_up(tap):
    """A run made up for two hours of missed times. Then the daemon starts with a clock that is an hour earlier: the test makes
    the times in the store an hour later, which is the same to the daemon."""
    hour = 3600 * 1000000
    with Daemon() as d:
        d.start()
        d.put("j", cron="* * * * *", exec=["true"])
        d.stop()
        d.query(f"UPDATE due SET at = at - {2 * hour}")
        d.start()
        missed = d.over("j")[-1]["missed"]
        d.stop()
        d.query(f"UPDATE due SET at = at + {hour}")
        d.query(f"UPDATE history SET at = at + {hour}, fired = fired + {hour}, began = began + {hour}, ended = ended + {hour}")
        due = d.query("SELECT at FROM due")
        d.start()
        d.stop()
        tap.same([missed >= 118, d.query("SELECT at FROM due")], [True, due], "times for which a run made up do not come again", missed, d.stderr())


def pipes(tap):
    """The command of a job is a FIFO, to which nobody writes."""
    with Daemon() as d:
        d.start()
        path = f"{d.dir}/fifo"
        os.mkfifo(path)
        os.chmod(path, 0o755)
        d.put("f", exec=[path])
        run(d, "f")
        tap.same([(r["outcome"], r["status"]) for r in d.over("f")], [("failed", 126)], "a command that is a FIFO cannot be run", d.stderr())


def sleepers(d):
    """Returns the processes "sleep 1000" of both runs, or nothing until both are there."""
    done = subprocess.run(["pgrep", "-fx", "sleep 1000"], capture_output=True, text=True, check=False)
    ours = [pid for pid in done.stdout.split() if mark_of(pid) == f"{d.dir}/state"]
    return ours if len(ours) == 2 else []


def mark_of(pid):
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
            return next((v[13:] for v in file.read().split("\0") if v.startswith("TWHEEL_STATE=")), None)
    except OSError:
        return None


def full(tap):
    with Daemon() as d:
        flag = f"{d.dir}/full"
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=flag)
        d.request("PUT", "/v1/days/old", ["2027-01-01"])
        os.mknod(flag)      # no turn is pending, so the calendar is what cannot be written
        days = [d.request(*r)[:n] for name in ("old", "new") for n, r in ((1, ("PUT", f"/v1/days/{name}", ["2027-01-02"])), (2, ("GET", f"/v1/days/{name}")))]
        os.unlink(flag)
        d.put("tick", rate="0.1s", exec=d.writes(), missed="all")
        stubborn = ["/bin/sh", "-c", f"trap '' TERM; echo >>{d.dir}/on; while :; do sleep 0.05; done"]
        d.put("slow", exec=stubborn, timeout="1s", stop="0.2s")
        key = run(d, "slow")
        until(lambda: d.lines() and d.lines("on"))
        os.mknod(flag)
        status, answer = d.put("new", exec=["true"])
        try:
            waited = d.request("GET", f"/v1/runs/{key}/log?wait=0.2s")[0]
        except OSError as error:
            waited = error
        tap.same(waited, 200, "full disk: requests that wait are answered")
        tap.ok(until(lambda: not d.marked(), 20), "full disk: what had begun ends, and takes no longer than it may", d.marked())
        before = settled(lambda: len(d.lines()))
        time.sleep(0.5)
        tap.ok(status == 503 and "cannot be written" in answer["error"], "full disk: requests are refused", status, answer)
        tap.same(days, [(503,), (200, ["2027-01-01"]), (503,), (404, {"error": "there is no calendar 'new'"})],
                 "a calendar that is not written is as it was, or none")
        tap.same(len(d.lines()), before, "full disk: nothing begins that is not written")
        os.unlink(flag)
        tap.ok(until(lambda: len(d.lines()) >= before + 8), "full disk: all runs begin when there is room again", d.stderr())
        tap.same(outcomes(d.over("slow")), ["timeout"], "full disk: what has ended is recorded when there is room again")
        d.put("long", exec=stubborn, stop="0.2s")
        run(d, "long")
        until(lambda: len(d.lines("on")) == 2)
        os.mknod(flag)
        until(lambda: d.stderr().count("cannot be written") == 2)
        d.process.send_signal(signal.SIGTERM)
        try:
            status = d.process.wait(20)
        except subprocess.TimeoutExpired:
            status = "hangs"
        tap.same(status, 0, "full disk: the daemon ends when it is told to")
        os.unlink(flag)
        tap.same(d.query("SELECT count(*) FROM history GROUP BY id, at HAVING count(*) > 1"), [], "once each")


def removed_file(tap):
    """Move the file of the store away and back, and then its write-ahead log. The daemon must refuse requests meanwhile."""
    with Daemon() as d:
        d.start()
        d.put("tick", rate="0.1s", exec=d.writes(), missed="all")
        until(d.lines)
        os.rename(f"{d.dir}/state/jobs.db", f"{d.dir}/jobs.db")
        answer = d.put("new", exec=["true"])
        before = settled(lambda: len(d.lines()))
        os.rename(f"{d.dir}/jobs.db", f"{d.dir}/state/jobs.db")
        tap.same(answer, (503, {"error": "the store cannot be written: its file, or that with -wal, was removed or replaced"}), "a store whose file is gone accepts nothing")
        tap.ok(until(lambda: len(d.lines()) > before + 3) and d.put("new", exec=["true"])[0] == 200, "and does when it is back", d.stderr())
        os.rename(f"{d.dir}/state/jobs.db-wal", f"{d.dir}/wal")
        refused = [d.put("new", exec=["false"])[0], d.post("/v1/jobs/new/shots", [{"after": "1h", "key": "k"}])[0]]
        os.rename(f"{d.dir}/wal", f"{d.dir}/state/jobs.db-wal")
        tap.same([refused, until(lambda: d.put("new", exec=["false"])[0] == 200)], [[503, 503], True], "the same for its write-ahead log", d.stderr())


def full_of_logs(tap):
    """The disk is full of logs that have expired. The daemon must delete them, though it cannot delete their
    rows, or cannot start."""
    def logs(d):
        return [name for *_, names in os.walk(f"{d.dir}/state/logs") for name in names]

    with Daemon() as d:
        flag = f"{d.dir}/full"
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=flag)
        d.put("j", exec=["echo", "much"], keep="3s", overlap="allow")
        d.put("tick", rate="0.1s", exec=["true"], missed="skip")
        keys = [run(d, "j") for _ in range(3)]
        d.over("j", 3)
        before = len(logs(d))
        os.mknod(flag)
        until(lambda: not logs(d), 30)
        tap.same([before, logs(d), len(d.get("/v1/runs?job=j"))], [3, [], 3], "full disk: logs that have expired go, though their rows cannot", keys)
        os.unlink(flag)
        until(lambda: "can be written again" in d.stderr())
        tap.ok(until(lambda: not d.get("/v1/runs?job=j")), "the rows follow when there is room", d.stderr())
        run(d, "j")
        d.over("j")
        before = len(logs(d))
        d.stop()
        # Rows of a job that has no logs come first.
        d.query("INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status, fired, began, ended, dropped)"
                " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
                " SELECT 1000 + i, i, 1, 1, 1, 0, 0, 0, 0, i, i, i, min(i, 4000) FROM n")
        time.sleep(4)
        os.mknod(flag)
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=flag)
        tap.same([before, d.process.wait(60), logs(d)], [1, 1, []], "full disk: so do they if a daemon cannot begin", d.stderr())


# ---- malformed requests, bad options -------------------------------------------------------------------

def raw(d, data):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.5)
        s.connect(d.socket)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            return s.recv(65536)
        except OSError:
            return b""


def nuls():
    """Returns requests with a NUL in a string of JSON, in keys and in values. The daemon must not cut the string off there."""
    return [(method, path, text.encode().replace(b"~", nul)) for nul in (b"\\u0000", b"\0") for method, path, text in (
        ("PUT", "/v1/jobs/x", '{"exec~x": ["a"]}'), ("PUT", "/v1/jobs/x", '{"exec": ["a~b"]}'), ("PUT", "/v1/jobs/x", '{"exec": ["a"], "input": "~"}'),
        ("PUT", "/v1/jobs/x", '{"exec": ["a"], "env": {"A~B": "c"}}'), ("PUT", "/v1/jobs/x", '{"exec": ["a"], "limits": {"core~": 0}}'),
        ("POST", "/v1/jobs", '[{"name": "x~y", "exec": ["a"]}]'), ("POST", "/v1/jobs/show/shots", '[{"after~": "1h"}]'),
        ("POST", "/v1/take", '{"runner": "r", "pool~": "p", "name": "n"}'), ("PUT", "/v1/days/x", '["2027-01-01~"]'),
        ("PUT", "/v1/jobs/x", '{"exec": ["\\\\~"]}'))]


def strangers(tap, d):
    before = d.get("/v1/jobs")
    body = b'{"exec": ["' + b"x" * 10_000_000 + b'"]}'
    try:
        status = d.request("PUT", "/v1/jobs/big", body)[0]
    except OSError:
        status = None
    tap.same(status, 413, "10 MB are too much")
    answers = [d.request(*r) for r in (
        ("PUT", "/v1/jobs/x", b"{"), ("PUT", "/v1/jobs/x", b"\xff\xfe"), ("PUT", "/v1/jobs/x", b'{"exec": ["a"]} x'),
        ("PUT", "/v1/jobs/x", b""), ("PUT", "/v1/jobs/-a", b'{"exec": ["a"]}'), ("POST", "/v1/jobs", b"{}"),
        ("POST", "/v1/jobs", b'[{"exec": ["a"]}]'), ("PUT", "/v1/jobs/x", b"[" * 100000), ("GET", "/v1/runs/x"),
        ("GET", "/v1/runs?limit=-1"), ("GET", "/v1/runs?since=soon"), ("POST", "/v1/jobs/show/shots", b"[{}]"),
        ("POST", "/v1/jobs/show/shots", [{"after": 0}] * 10001), ("POST", "/v1/jobs/show/shots", b'[{"at": 5}]'), ("POST", "/v1/jobs/show/shots", b'[{"after": 0, "arg": "a\\u0000b"}]'),
        ("POST", "/v1/jobs/show/shots", b'[{"after": "1h", "key": "a\\u0000b"}]'), ("GET", "/v1/runs/0-0"), ("GET", "/v1/runs/0-1/log"),
        ("GET", "/v1/runs?before=%ff"), ("PUT", "/v1/jobs/x", {"exec": ["a"], "missed": "x" + "ä" * 40}), ("GET", "/v1/runs/%ed%a0%80%c0%80%c3%a4%e2%82%ac%f0%9d%84%9e"),
        ("GET", "/v1/preview"), ("PUT", "/v1/days/x", b'["2027-13-01"]'), *nuls(),
        *(("PUT", "/v1/jobs/x", text) for text in (
            b'{"exec": ["true"], "exec": ["false"]}', b'{"exec": ["true"], "exec": ["true"]}', b'{"exec": ["true"], "\\u0065xec": ["false"]}',
            b'{"exec": ["true"], "env": {"A:\\"": "b", "B": ":", "A:\\"": "b"}}')),
        ("POST", "/v1/jobs", b'[{"name": "x", "exec": ["a"]}, {"name": "y", "name": "z", "exec": ["a"]}]'),
        ("POST", "/v1/jobs", [{"name": name, "exec": ["true"], "cron": cron} for name, cron in (("x", "@daily"), ("y", "61 * * * *"), ("z", "@daily"))]),
        ("POST", "/v1/jobs/show/shots", b'[{"after": "1h", "after": "2h"}]'),
        *((method, f"/v1/{path}", body) for body in (b"{}", b"garbage") for method, path in (
            ("POST", "jobs/show/run"), ("POST", "jobs/show/pause"), ("POST", "jobs/show/resume"), ("DELETE", "jobs/show"),
            ("DELETE", "jobs/show/shots/x"), ("POST", "runs/1-1/kill"), ("GET", "jobs"), ("GET", "runs/1-1/log"))))]
    tap.ok(all(s == 400 and isinstance(a, dict) and "error" in a and "\n" not in a["error"] for s, a in answers),
           "bad requests get one clear message", *answers)
    words = [(*d.request(method, f"/v1/{path}"), word) for method, path, word in (
        ("GET", "runs?outcom=failed", "outcom"), ("GET", "runs?limit=1&outcome=ok&limit=2", "limit"), ("GET", "jobs?Limit=1", "Limit"),
        ("GET", "jobs?limit=1&=5", ""), ("GET", "jobs/show?plan", "plan"), ("GET", "runs/1-1/log?form=5", "form"),
        ("POST", "jobs/show/run?after=1h", "after"), ("PUT", "days/x?day=1", "day"), ("POST", "runs/1-1/done?attempt=1&state=1", "state"))]
    good = [d.request("GET", f"/v1/{path}")[0] for path in ("runs?", "runs?&limit=1&&outcome=ok&", "jobs?plan&limit=0")]
    tap.ok(all(s == 400 and f"'{word}'" in a["error"] for s, a, word in words) and good == [200] * 3,
           "a word of the query that is unknown, or there twice, is refused by its name", words, good)
    answers = [d.request(*r)[0] for r in (("GET", "/v2"), ("GET", "/v1/jobs/nobody"), ("PATCH", "/v1/jobs"),
                                          ("GET", "/v1/a/b/c/d/e/f/g"), ("POST", "/v1/jobs/show/fly"))]
    tap.same(answers, [404, 404, 405, 404, 404], "requests for things that do not exist")
    for data in (b"\0" * 1000, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"PUT /v1/jobs/x HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                 b"PUT /v1/jobs/x HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", b"A" * 100000):
        raw(d, data)
    tap.same(d.get("/v1/jobs"), before, "malformed HTTP changes nothing")
    d.put("slashes", exec=["true", "\\u0000", "\\\\u0000\\"])
    tap.same(d.get("/v1/jobs/slashes")["definition"]["exec"][1:], ["\\u0000", "\\\\u0000\\"], "what only looks like a NUL is none")
    colons = {"name": "colons", "exec": ["true", ":", '"exec": \\', "':"], "env": {"A": '\\":', "B": ":A"}, "input": '{"a":1,"a":2}'}
    tap.same([d.request("PUT", "/v1/jobs/colons", colons)[0], d.get("/v1/jobs/colons").get("definition")], [200, colons], "nor is what only looks like a key one")
    longest = "ä/?%\n" + "k" * 122
    answers = [d.post("/v1/jobs/show/shots", [{"after": "1h", "key": key}]) for key in (longest, longest + "k", "k" * 40000)]
    gone = [d.request("DELETE", f"/v1/jobs/show/shots/{urllib.parse.quote(key)}")[0] for key in (longest, longest)]
    tap.same([answers[0][0], answers[1:], gone], [200, [(400, {"error": "key: more than 128 bytes"})] * 2, [200, 404]],
             "each key that a shot may have can be cancelled")
    tap.same([d.request("PUT", "/v1/jobs/show", {"exec": ["true"]}, {"If-Match": "99"})[0],
              d.request("PUT", "/v1/jobs/show", {"exec": ["true"]}, {"If-Match": "1"})[0]], [412, 200], "If-Match")


def starts(tap, d):
    def fails(*args):
        done = subprocess.run([f"{PROGRAMS}/twheeld", *args], capture_output=True, text=True, timeout=20, check=False,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        return done.stderr if done.returncode == 1 and done.stderr.count("\n") == 1 else repr(done)

    tap.same(fails(f"--state={d.dir}/state"), f"twheeld: another twheeld uses '{d.dir}/state'\n",
             "one daemon for each state")
    tap.ok(fails(f"--state={d.dir}/b", f"--socket={d.socket}").endswith(f"another daemon listens at '{d.socket}'\n"),
           "one daemon for each socket")
    os.makedirs(f"{d.dir}/other")
    with open(f"{d.dir}/other/jobs.db", "wb") as file:
        file.write(b"no database" * 1000)
    tap.same(fails(f"--state={d.dir}/other", f"--socket={d.dir}/s"),
             f"twheeld: cannot open '{d.dir}/other/jobs.db': file is not a database\n", "a file that is none")
    for name, sql, why in (("newer", "PRAGMA user_version = 99", "its version is 99, and this twheeld knows 3"),
                           ("older", "PRAGMA user_version = -1", "its version is -1, and this twheeld knows 3"),
                           ("foreign", "PRAGMA user_version = 0", "it is a database of another program")):
        os.makedirs(f"{d.dir}/{name}")
        with contextlib.closing(sqlite3.connect(f"{d.dir}/{name}/jobs.db")) as db:
            db.executescript(f"PRAGMA journal_mode = WAL; CREATE TABLE theirs (id); {sql}")
        message = fails(f"--state={d.dir}/{name}", f"--socket={d.dir}/s")
        with contextlib.closing(sqlite3.connect(f"{d.dir}/{name}/jobs.db")) as db:
            tables = db.execute("SELECT name FROM sqlite_master").fetchall()
        tap.same([message, tables], [f"twheeld: cannot open '{d.dir}/{name}/jobs.db': {why}\n", [("theirs",)]], f"a file that is {name}")
    with open(f"{d.dir}/precious", "w", encoding="ascii") as file:
        file.write("mine\n")
    message = fails(f"--state={d.dir}/b", f"--socket={d.dir}/precious")
    tap.same([message, d.lines("precious")], [f"twheeld: '{d.dir}/precious' exists, and is not a socket\n", [["mine"]]], "a socket that is a file")
    names = ["state", "socket", "store", "name", "group", "listen", "token-file", "runner", "pool", "cgroup", "sendmail"]
    tap.same([fails(f"--{n}=") for n in names], [f"twheeld: --{n} is empty\n" for n in names], "options that are empty")
    tap.same([fails("--runs=0"), fails("--runner=/x", "--pool=p", "--runs=10001"), fails("--keep=x"), fails("--runner=x"), fails(*[f"--runner=/{n}" for n in range(17)])],
             ["twheeld: '0' is not a number from 1 to 100000\n", "twheeld: a runner makes at most 10000 runs at once\n", "twheeld: 'x' is not a duration of a second or more\n",
              "twheeld: 'x' is neither http://... nor the path of a socket\n",
              "twheeld: '/16' is one --runner too many: 16 are allowed\n"],
             "bad options")
    stores = ["/tmp/x.db", "jobs.db", "http://localhost", "me:secret@localhost/jobs"]
    tap.same({fails(f"--state={d.dir}/b", f"--store={store}") for store in stores},
             {"twheeld: --store needs the address of a server, postgresql://...; --state=DIR is for jobs in a file\n"}, "a store that is not a server")
    tap.same(oct(os.stat(d.socket).st_mode & 0o777), "0o600", "the socket is its user's alone")
    with open(f"{d.dir}/told", "w+", encoding="utf-8") as file:
        st = os.fstat(file.fileno())
        for stream in (f"{st.st_dev}:{st.st_ino}", f"{st.st_dev}:{st.st_ino + 1}", f"{st.st_dev + 1}:{st.st_ino}", "", None):
            subprocess.run([f"{PROGRAMS}/twheeld", "--runs=0"], stderr=file, timeout=20, check=False,
                           env={**os.environ, **({} if stream is None else {"JOURNAL_STREAM": stream})})
        file.seek(0)
        tap.same(file.read().replace("twheeld: '0' is not a number from 1 to 100000\n", "!"), "<3>!!!!!", "only the journal is told levels")


def group(tap):
    """--group: the group's members may use the socket. The users can reach the programs and the socket, but not the state."""
    names = ["group: the socket is the group's, too", "group: a member may use it", "group: a stranger may not"]
    if not ROOT:
        for name in names:
            tap.ok(True, f"{name} # SKIP only for root")
        return
    gid = grp.getgrnam("daemon").gr_gid

    def lists(d, *groups):
        done = subprocess.run([f"{d.dir}/twheel-job", "ls", "--json"], user="nobody", group=pwd.getpwnam("nobody").pw_gid, extra_groups=groups,
                              cwd="/", env={"TWHEELD_SOCKET": d.socket, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.count('"theirs"'), done.stderr

    with Daemon("--group=daemon") as d:
        os.chmod(d.dir, 0o711)
        shutil.copy(f"{PROGRAMS}/twheel-job", d.dir)
        d.start()
        d.put("theirs", exec=["true"])
        st = os.stat(d.socket)
        tap.same([oct(st.st_mode & 0o777), st.st_uid, st.st_gid], ["0o660", 0, gid], names[0])
        tap.same(lists(d, gid), (0, 1, ""), names[1])
        tap.same(lists(d), (1, 0, f"twheel job: cannot talk to twheeld at '{d.socket}': Permission denied\n"), names[2])


# ---- cgroups ---------------------------------------------------------------------------------------------

def cgroup_base():
    for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(f"{top}/cgroup.procs") and os.access(top, os.W_OK):
            return top
    return None


def cgroups(tap):
    top = cgroup_base()
    if not top:
        for name in ("cgroup: each run has one", "cgroup: a process that left its session is killed too", "limits",
                     "cgroup: what a run has made below its own stays until it is over", "cgroup: none is left behind",
                     "cgroup: another daemon may have the same one", "cgroup: who left one that cannot be removed is killed",
                     "cgroup: one of no use is refused, threads", "cgroup: one of no use is refused, none"):
            tap.ok(True, f"{name} # SKIP no cgroup of ours")
        return
    base = f"{top}/twheeld-test-{os.getpid()}"
    os.mkdir(base)
    try:
        in_cgroup(tap, base)
        of_no_use(tap, base)
        deep_cgroup(tap, base)
    finally:
        subprocess.run(["find", base, "-mindepth", "2", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], check=False)
        for sub in os.listdir(base):
            if os.path.isdir(f"{base}/{sub}"):
                until(lambda: not os.path.exists(f"{base}/{sub}") or removed(f"{base}/{sub}"), 5)
        os.rmdir(base)


def removed(path):
    try:
        os.rmdir(path)
        return True
    except OSError:
        return False


def own_cgroup(base):
    """Returns the path of a run's cgroup, below @base, for a shell script."""
    return f"{base}/$(basename $(sed -n s/^0:://p /proc/self/cgroup))"


def deep_cgroup(tap, base):
    """A run has made more nested cgroups than a daemon removes, and one of its processes has left them, when the
    daemon is killed. The next daemon must kill that process."""
    os.mkdir(f"{base}/out")
    with Daemon() as d:
        d.start(f"--cgroup={base}")
        d.put("deep", exec=["/bin/sh", "-c", f"cd {own_cgroup(base)}; for i in $(seq 40); do mkdir x && cd x; done; echo 0 >{base}/out/cgroup.procs; "
                                             f"[ $TWHEEL_ATTEMPT = 2 ] || {{ echo $$ >{d.dir}/deep; exec sleep 1000; }}"])
        run(d, "deep")
        pid = until(lambda: d.lines("deep"))[0][0]
        d.kill()
        d.start(f"--cgroup={base}")
        tap.ok(d.over("deep") and not alive(pid) and not d.unsound() and "cannot kill" not in d.stderr(), "cgroup: who left one that cannot be removed is killed", d.stderr())


def of_no_use(tap, base):
    """Cgroups below which no process can begin: one has a threaded cgroup below it, one must not have any. The
    daemon must not start."""
    os.makedirs(f"{base}/threads/one")
    os.mkdir(f"{base}/none")
    for name, text in (("threads/one/cgroup.type", "threaded"), ("none/cgroup.max.descendants", "0")):
        with open(f"{base}/{name}", "w", encoding="ascii") as file:
            file.write(text)
    for name, why in (("threads", f"'{base}/threads' is a cgroup of threads"),
                      ("none", f"cannot begin processes below the cgroup {base}/none: Resource temporarily unavailable")):
        with Daemon() as d:
            d.start(f"--cgroup={base}/{name}", wait=False)
            tap.same([d.process.wait(60), d.stderr()], [1, f"twheeld: {why}\n"], f"cgroup: one of no use is refused, {name}")


def in_cgroup(tap, base):
    with Daemon() as d:
        d.start(f"--cgroup={base}")
        d.put("where", exec=["/bin/sh", "-c", f"grep ^0: /proc/self/cgroup; setsid sleep 1000 & sleep 0.1; echo $! >{d.dir}/left"])
        key = run(d, "where")
        d.over("where")
        tap.ok(re.search(rf"/{re.escape(os.path.basename(base))}/{key}\.1\.[0-9a-f]+-[0-9a-f]+\.run\n$", d.output(key)), "cgroup: each run has one", d.output(key))
        pid = d.lines("left")[0][0]
        tap.ok(until(lambda: not alive(pid)), "cgroup: a process that left its session is killed too")
        with open(f"{base}/cgroup.controllers", encoding="ascii") as file:
            can = "pids" in file.read()
        status, answer = d.put("small", exec=["/bin/sh", "-c", "cat /sys/fs/cgroup/$(sed -n s/^0:://p /proc/self/cgroup)/pids.max"],
                               pids=50)
        if can:
            run(d, "small")
            tap.same(d.output(run_of(d, "small")), "50\n", "limits")
        else:
            tap.same((status, answer["error"]), (400, "pids: the daemon has no cgroup that can limit it"), "limits")
        d.put("keeps", exec=["/bin/sh", "-c", f"c={own_cgroup(base)}; mkdir $c/mine; sleep 3; [ -d $c/mine ]"])
        d.put("ends", exec=["/bin/sh", "-c", "sleep 1000 & true"])
        key = run(d, "keeps")
        until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running"])
        for _ in range(3):
            run(d, "ends")
            time.sleep(0.5)
        tap.same([r["outcome"] for r in d.over("keeps")], ["ok"], "cgroup: what a run has made below its own stays until it is over")
        d.put("below", exec=["/bin/sh", "-c", f"mkdir -p {own_cgroup(base)}/a/b"])
        run(d, "below")
        d.over("below")
        left = until(lambda: not [n for n in os.listdir(base) if n.endswith(".run")], 5)
        tap.ok(left and d.get("/v1/runs?job=below")[0]["outcome"] == "ok", "cgroup: none is left behind", os.listdir(base))
        d.put("long", exec=["sleep", "1000"])
        key = run(d, "long")
        until(lambda: [n for n in os.listdir(base) if n.endswith(".run")])
        with Daemon() as other:
            other.start(f"--cgroup={base}")
            tap.same(d.get(f"/v1/runs/{key}")[0]["state"], "running", "cgroup: another daemon may have the same one")


def notifies(tap):
    with Daemon() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.bind(f"{d.dir}/notify")
        d.start(NOTIFY_SOCKET=f"{d.dir}/notify", OPTIONS="--store=secret", PGPASSWORD="secret", LIBPQ="not theirs",
                STATE_DIRECTORY="systemd's", CREDENTIALS_DIRECTORY="systemd's", MEMORY_PRESSURE_WATCH="systemd's", MAINPIDFDID="systemd's",
                MANAGERPID="systemd's", LOG_NAMESPACE="systemd's", MONITOR_UNIT="systemd's", LISTEN_FDNAMES="systemd's",
                MONITOR_URL="not theirs", LISTEN_ADDRESS="not theirs")
        ready = s.recv(100)
        d.put("env", exec=["env"])
        run(d, "env")
        told = d.output(run_of(d, "env"))
        tap.same([[word for word in ("NOTIFY_SOCKET", "\nOPTIONS=", "PGPASSWORD", "secret", "systemd's") if word in told], told.count("=not theirs")],
                 [[], 3], "runs do not know what is meant for the daemon, and know the rest")
        d.stop()
        tap.same([ready, s.recv(100)], [b"READY=1", b"STOPPING=1"], "systemd is notified")


def fill(fd, size):
    """Write @size bytes, or as many as there is room for."""
    done = 0
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while done < size:
            done += os.write(fd, b"x" * min(64, size - done))
    os.set_blocking(fd, True)


def full_pipe():
    reader, writer = os.pipe()
    fill(writer, 1 << 30)
    return reader, writer


def full_terminal():
    """A terminal has room for less than 20 kB. The daemon's messages fill the rest; of the last message, only a part has room."""
    reader, writer = os.openpty()
    fill(writer, 10000)
    return reader, writer


def unread(tap, what, ends):
    """Nobody reads the daemon's standard error, and it is full. Runs and mail must not wait. When somebody reads,
    the daemon must tell how many messages were left out."""
    reader, writer = ends
    with Remote() as d:
        file, d.log = d.log, os.fdopen(writer, "wb")
        d.start(d.sendmail(f"echo a word >&2; cat >>{d.dir}/mails"))
        for _ in range(1200):       # two signals that come soon after each other may have one message
            d.process.send_signal(signal.SIGHUP)
            d.get("/v1/jobs")
        d.put("j", exec=["false"], alarm={"fail": ["mailto:root@localhost"]})
        run(d, "j")
        outcome = d.over("j")[0]["outcome"], until(lambda: os.path.exists(f"{d.dir}/mails"))
        told = []

        def says(pattern):
            with contextlib.suppress(BlockingIOError):
                while part := os.read(reader, 65536):
                    told.append(part)
            return re.search(pattern, b"".join(told))

        os.set_blocking(reader, False)
        says(b"")       # read what is there, so that there is room again
        d.process.send_signal(signal.SIGHUP)
        left = until(lambda: says(rb"messages left out, since nobody read them: [1-9]\d*\r?\n(.*\n)*twheeld: the tokens were read again\r?\n"))
        tap.ok(outcome == ("failed", True) and left, f"nothing waits for somebody who should read {what}", outcome, told)
        d.log.close()
        d.log = file
        os.close(reader)


def no_cgroup(tap):
    with Daemon() as d:
        d.start(f"--cgroup={d.dir}", wait=False)
        tap.same([d.process.wait(60), d.stderr()], [1, f"twheeld: '{d.dir}' is no cgroup of version 2\n"], "cgroup: a directory is none")


def units(tap):
    """If systemd-analyze is there, let it verify both units."""
    verify = shutil.which("systemd-analyze")
    with tempfile.TemporaryDirectory() as home:
        for name, manager in (("twheeld", "--system"), ("twheeld-user", "--user")):
            with open(f"{JOBS}/{name}.service.in", encoding="utf-8") as file:
                text = file.read().replace("@BINDIR@", PROGRAMS)
            path = f"{home}/{name}.service"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            said = verify and subprocess.run([verify, manager, "--man=no", "verify", path], capture_output=True, text=True, check=False,
                                             env={**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home})
            faults = [line for line in said.stderr.splitlines() if name in line] if said else []     # only those of this unit
            has_options = re.search(r"^EnvironmentFile=-.*\nExecStart=\S*/twheeld \$OPTIONS$", text, re.M)
            tap.ok(has_options and not faults, f"{name}.service has options, and no fault", text, said)


def main():
    tap = Tap(170 + ROOT)
    with crowded(tap):
        with Daemon() as d:
            d.start()
            for fn in (overlaps, ends, statuses, processes, logs, full_logs, retention, followed, strangers, starts):
                fn(tap, d)
            tap.same(d.stop(), 0, "the daemon ends")
            tap.ok(not d.unsound(), "the daemon was sound", d.unsound())
        missed(tap)
        put_late(tap)
        put_calendar(tap)
        descriptors(tap)
        killed_early(tap)
        zones(tap)
        local_time(tap)
        put_in_between(tap)
        put_after(tap)
        days_off(tap)
        paced(tap)
        lost(tap)
        left_over(tap)
        full_environment(tap)
        midnight = int(time.time()) // 86400 * 86400
        long_away(tap, "days", range(1, 13), midnight - 12 * 86400, 900000)
        # from the last second before two days off
        long_away(tap, "days off", (*range(1, 12), 14), midnight - 13 * 86400 - 1, 800000, missed="skip")
        set_back(tap)
        behind(tap)
        ahead(tap)
        unwatched(tap)
        unwritten(tap)
        many_late(tap)
        open_state(tap)
        others(tap)
        replaced(tap)
        phantoms(tap)
        limited_files(tap)
        nameless(tap)
        memory(tap)
        broken(tap)
        broken_removed(tap)
        named_by_broken(tap)
        lost_calendar(tap)
        kept(tap)
        pipes(tap)
        made_up(tap)
        full(tap)
        removed_file(tap)
        full_of_logs(tap)
        notifies(tap)
        unread(tap, "a pipe", full_pipe())
        unread(tap, "a terminal", full_terminal())
        no_cgroup(tap)
        units(tap)
        group(tap)
        cgroups(tap)
    tap.done()


main()
