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
# The environment may name proxies, and what libpq takes by default. They are not for what the tests have at loopback.
for theirs in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("PG")]:
    del os.environ[theirs]
OUTCOMES = ["ok", "failed", "timeout", "killed", "lost", "skipped", "missed"]
# What is to happen in time is tried so often: a host that stands still takes its time, but does not do so each time.
IN_TIME = 5


def clipped(text):
    """The beginning and the end of what may be the words of a daemon that complains a thousand times."""
    return text if len(text) < 8000 else f"{text[:4000]}\n[...]\n{text[-4000:]}"


class Tap:
    """1..N, a line for each point, and what went wrong."""

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
    """What fn() is when it is true, or was last. The limit is far beyond what anything takes on a busy host."""
    end = time.monotonic() + seconds
    while not (value := fn()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def settled(fn):
    """What fn() is when it has not changed for half a second, or was last."""
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
    """The processes that have NAME=VALUE in their environment."""
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
    """What the kernel says of a process: its state, its parent, its group and so on; or nothing, if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid):
    """Has the process not ended? If it has, but its parent has not asked yet how, it is a zombie. If its parent has ended before,
    that is for init to ask, which may take its time."""
    return stats(pid)[:1] not in ([], ["Z"], ["X"])


def cpu_of(pid):
    """The CPU time that the process has used, in seconds."""
    user, system = stats(pid)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def free_port():
    """A port that nobody has, and that nobody will get by chance: the kernel gives clients, such as those of a server that is
    away, the ports of a range that this one is not in. Other tests ask here, too: whoever claims a port has a socket
    of its name until its program ends."""
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
    """@env: of its own; @args: more options"""

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
        """The processes of its jobs."""
        return processes_with(f"TWHEEL_STATE={self.dir}/state")

    def kill_marked(self):
        """What its jobs have left, if it was killed."""
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def start(self, *args, wait=True, **env):
        # Its standard error is a file: a message is there though it was killed.
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
        """As systemd does it, once it hears signals. Returns the status. One that was buried as we asked is as good as one that
        has not begun: the signal ends it."""
        until(lambda: self.process.poll() is not None or self.hears())
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        return 0 if status == -signal.SIGTERM and "starting again" in self.stderr() else status

    def hears(self):
        """Does it wait for SIGTERM, which is blocked then? Not while it starts, or begins again."""
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
        """Wait for it to die by itself."""
        self.process.wait(60)
        return self

    def stderr(self):
        with open(f"{self.dir}/stderr", encoding="utf-8", errors="replace") as file:
            return file.read()

    def unsound(self):
        """What a sanitizer has said."""
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
                # A client that is silent for 3 s loses its connection, even if the host was why. It was not heard then.
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
        """Wait until no run of a job is under way, or is to begin now."""
        return until(lambda: all(r["state"] == "over" for r in self.get(f"/v1/runs?job={name}&limit=1000")))

    def over(self, name, n=1):
        """The last n of a job's firings that are over, the first one first."""
        def ended():
            rows = [r for r in self.get(f"/v1/runs?job={name}&limit=1000") if r["state"] == "over" and not r["more"]]
            return rows if len(rows) >= n else None
        return list(reversed(until(ended) or []))

    def output(self, run, **query):
        args = "&".join(f"{k}={v}" for k, v in query.items())
        data = self.get(f"/v1/runs/{run}/log?{args}")
        return data.decode() if isinstance(data, bytes) else ""     # there is no such run yet

    def lines(self, name="out"):
        """The lines that jobs have written to a file, as words."""
        try:
            with open(f"{self.dir}/{name}", encoding="utf-8") as file:
                return [line.split() for line in file]
        except FileNotFoundError:
            return []

    def writes(self, name="out", more=""):
        """A command that tells of itself there, as the judge has it, and then does more."""
        if not more:
            return [f"{PROGRAMS}/mark", f"{self.dir}/{name}"]
        return ["/bin/sh", "-c", f"echo $TWHEEL_JOB $TWHEEL_KEY $TWHEEL_ATTEMPT $(date +%s%N) >>{self.dir}/{name}{more}"]

    def sendmail(self, script):
        """Make a shell script that takes the place of sendmail. Returns the option that names it."""
        with open(os.open(f"{self.dir}/sendmail", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        return f"--sendmail={self.dir}/sendmail"

    def query(self, sql):
        """Of the store, when nobody has it. What it changes is committed."""
        db = sqlite3.connect(f"{self.dir}/state/jobs.db", isolation_level=None)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def lose_definitions(self):
        """Of all jobs, as a damaged page would. Nobody has the store."""
        db = sqlite3.connect(f"{self.dir}/state/jobs.db")
        db.executescript("PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'def TEXT NOT NULL', 'def TEXT');")
        db.close()
        self.query("UPDATE job SET def = NULL")


class Command:
    """twheel-job, as a user of the daemon runs it."""

    def __init__(self, daemon):
        # It is over before it frees anything.
        self.env = {**os.environ, "TZ": "UTC", "TWHEELD_SOCKET": daemon.socket,
                    "ASAN_OPTIONS": "exitcode=99:detect_leaks=0"}

    def __call__(self, *args, stdin="", env=None):
        return subprocess.run([f"{PROGRAMS}/twheel-job", *args], env=env or self.env, input=stdin, text=True,
                              capture_output=True, timeout=60, check=False)

    def json(self, *args, **kwargs):
        done = self(*args, "--json", **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()] if not done.returncode else done.stderr
