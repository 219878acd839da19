# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""What the tests of twheeld share: a daemon in a directory of its own, requests to it, TAP.

The programs are in $JOBS. If a sanitizer ends a daemon, or a daemon leaves a store that cannot be read, its
test fails.
"""
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

PROGRAMS = os.environ.get("JOBS", os.path.join(os.path.dirname(__file__), "../../build/jobstest"))
# The environment may name proxies, and libpq's defaults. They must not change where the tests connect to: loopback.
for theirs in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("PG")]:
    del os.environ[theirs]
OUTCOMES = ["ok", "failed", "timeout", "killed", "lost", "skipped", "missed"]
# How often to try something that must happen in time: a host that stands still spoils one attempt, but not each.
IN_TIME = 5


def clipped(text):
    """Shorten a text to its beginning and its end: a daemon may have complained a thousand times."""
    return text if len(text) < 8000 else f"{text[:4000]}\n[...]\n{text[-4000:]}"


class Tap:
    """Prints TAP: the plan, a line for each point, and after a point that failed, why."""

    def __init__(self, planned):
        self.planned, self.run, self.failed = planned, 0, 0
        print(f"1..{planned}", flush=True)

    def ok(self, good, name, *why):
        self.run += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.run} - {name}", flush=True)
        if not good:
            for line in "\n".join(clipped(str(w)) for w in why).splitlines():
                print("#", line, flush=True)
        return good

    def same(self, got, wanted, name, *why):
        return self.ok(got == wanted, name, f"wanted: {wanted}", f"got: {got}", *why)

    def done(self):
        if self.run != self.planned:
            print(f"# planned {self.planned}, ran {self.run}")
        sys.exit(self.failed > 0 or self.run != self.planned)


def until(fn, seconds=60):
    """Call fn() until its value is true, or the time is over. Returns the last value. No busy host comes near the limit."""
    end = time.monotonic() + seconds
    while not (value := fn()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def settled(fn):
    """Call fn() until its value has stayed the same for half a second, or the time is over. Returns the last value."""
    values = [None, fn()]

    def is_same():
        time.sleep(0.5)
        values[:] = values[1], fn()
        return values[0] == values[1]

    until(is_same)
    return values[1]


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=20):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


CLAIMS = []


def processes_with(variable):
    """Returns the ids of the processes that have this variable, NAME=VALUE, in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if variable.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def stats(pid):
    """Returns the fields of /proc/PID/stat behind the name: state, parent, group and so on. [] if there is no process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid):
    """Is the process still running? A zombie is not: it has ended, but its parent has not collected its status yet. If its
    parent has ended before, init collects the status, which may take a while."""
    return stats(pid)[:1] not in ([], ["Z"], ["X"])


def cpu_of(pid):
    """The CPU time that the process has used, in seconds."""
    user, system = stats(pid)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def free_port():
    """Returns a port of loopback that is free, and that nobody else will get. The kernel gives clients ports of a certain
    range, and this port is outside of it: otherwise a client of a server that is down could get the server's port. Against
    other tests, the program claims the port by an abstract socket with the port's number in its name, until it ends."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        port, claim = random.randrange(min(10000, first // 2), first), socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0twheel-test-port-{port}")
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", port))
            CLAIMS.append(claim)
            return port
        except OSError:
            claim.close()


class Daemon:
    """A daemon with a directory of its own. @args: more options; @env: variables added to its environment"""

    def __init__(self, *args, **env):
        self.dir = tempfile.mkdtemp(prefix="twheeld.")
        self.socket = f"{self.dir}/socket"
        self.args, self.env, self.process = args, env, None
        self.command = [f"{PROGRAMS}/twheeld"]
        self.log = open(f"{self.dir}/stderr", "wb+")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.kill_marked()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def marked(self):
        """Returns the ids of the processes of its jobs."""
        return processes_with(f"TWHEEL_STATE={self.dir}/state")

    def kill_marked(self):
        """Kill the processes of its jobs, which are left if the daemon was killed."""
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def start(self, *args, wait=True, **env):
        # Standard error is a file, so that its messages are there even if the daemon was killed.
        self.process = subprocess.Popen(
            [*self.command, f"--state={self.dir}/state", f"--socket={self.socket}", "--cgroup=none",
             *self.args, *args],
            env={**os.environ, "TZ": "UTC", "TWHEEL_BACKEND": "embedded", **self.env, **env},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        if wait:
            until(lambda: self.process.poll() is not None or self.answers())
        return self

    def answers(self):
        try:
            return self.get("/v1/runs?limit=0") is not None
        except OSError:
            return False

    def stop(self):
        """Send SIGTERM, as systemd does, as soon as the daemon handles signals. Returns its exit status. If others bury the
        daemon at this moment, it starts again, and the signal kills it before it handles signals: that counts as 0."""
        until(lambda: self.process.poll() is not None or self.hears())
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        return 0 if status == -signal.SIGTERM and "starting again" in self.stderr() else status

    def hears(self):
        """Does the daemon handle SIGTERM? It blocks the signal as soon as it does; not while it starts, or starts again."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
                blocked = int(re.search(r"^SigBlk:\s*(\w+)", file.read(), re.M)[1], 16)
        except OSError:
            return False
        return bool(blocked >> (signal.SIGTERM - 1) & 1)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def crash(self):
        """Wait until the daemon has died by itself, at a step that the test has chosen."""
        self.process.wait(60)
        return self

    def stderr(self):
        with open(f"{self.dir}/stderr", encoding="utf-8", errors="replace") as file:
            return file.read()

    def unsound(self):
        """Returns the lines of the daemon's standard error that a sanitizer has printed."""
        return "\n".join(re.findall(r"^.*(?:ERROR: \w+Sanitizer|runtime error).*$", self.stderr(), re.M))

    def request(self, method, path, body=None, headers=None, timeout=20):
        return self.answer(self.connection(timeout), method, path, body, headers)

    def connection(self, timeout=20):
        return Connection(self.socket, timeout)

    def answer(self, connection, method, path, body, headers):
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        for again in (True, False):
            began, silent = time.monotonic(), 0
            try:
                connection.request(method, path, body, headers or {})
                silent = time.monotonic() - began
                answer = connection.getresponse()
                break
            except ConnectionError:
                # A client that is silent for 3 s loses its connection, even if it was silent because the host stood
                # still. The daemon has not seen the request then, so send it again.
                if silent < 2 or not again:
                    raise
                connection.close()
        data = answer.read()
        connection.close()
        if answer.headers.get("Content-Type") == "application/json":
            data = json.loads(data)
        return answer.status, data

    def get(self, path):
        return self.request("GET", path)[1]

    def put(self, name, **definition):
        return self.request("PUT", f"/v1/jobs/{name}", definition)

    def post(self, path, body=None):
        return self.request("POST", path, body)

    def idle(self, name):
        """Wait until all runs of a job are over. Returns whether they are."""
        return until(lambda: all(r["state"] == "over" for r in self.get(f"/v1/runs?job={name}&limit=1000")))

    def over(self, name, n=1):
        """Wait until at least n firings of a job are over. Returns their last attempts, the oldest first; [] if time is over."""
        def ended():
            rows = [r for r in self.get(f"/v1/runs?job={name}&limit=1000") if r["state"] == "over" and not r["more"]]
            return rows if len(rows) >= n else None
        return list(reversed(until(ended) or []))

    def output(self, run, **query):
        args = "&".join(f"{k}={v}" for k, v in query.items())
        data = self.get(f"/v1/runs/{run}/log?{args}")
        return data.decode() if isinstance(data, bytes) else ""     # there is no such run yet

    def lines(self, name="out"):
        """Returns the lines that jobs have written to a file, each as a list of its words."""
        try:
            with open(f"{self.dir}/{name}", encoding="utf-8") as file:
                return [line.split() for line in file]
        except FileNotFoundError:
            return []

    def writes(self, name="out", more=""):
        """Returns a command that writes the line of its run, as the judge wants it, to a file, and then does @more."""
        if not more:
            return [f"{PROGRAMS}/mark", f"{self.dir}/{name}"]
        return ["/bin/sh", "-c", f"echo $TWHEEL_JOB $TWHEEL_KEY $TWHEEL_ATTEMPT $(date +%s%N) >>{self.dir}/{name}{more}"]

    def sendmail(self, script):
        """Write a shell script that the daemon is to use as sendmail. Returns the option that names it."""
        with open(os.open(f"{self.dir}/sendmail", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        return f"--sendmail={self.dir}/sendmail"

    def query(self, sql):
        """Execute SQL in the store, which no daemon may have open. Changes are committed. Returns the rows."""
        db = sqlite3.connect(f"{self.dir}/state/jobs.db", isolation_level=None)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def lose_definitions(self):
        """Set the definitions of all jobs to NULL, as a damaged page might. No daemon may have the store open."""
        db = sqlite3.connect(f"{self.dir}/state/jobs.db")
        db.executescript("PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'def TEXT NOT NULL', 'def TEXT');")
        db.close()
        self.query("UPDATE job SET def = NULL")


class Command:
    """The command twheel-job, run as by a user of the daemon."""

    def __init__(self, daemon):
        # The command exits without freeing its memory, so do not look for leaks.
        self.env = {**os.environ, "TZ": "UTC", "TWHEELD_SOCKET": daemon.socket,
                    "ASAN_OPTIONS": "exitcode=99:detect_leaks=0"}

    def __call__(self, *args, stdin="", env=None):
        return subprocess.run([f"{PROGRAMS}/twheel-job", *args], env=env or self.env, input=stdin, text=True,
                              capture_output=True, timeout=60, check=False)

    def json(self, *args, **kwargs):
        done = self(*args, "--json", **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()] if not done.returncode else done.stderr
