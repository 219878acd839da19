# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Daemons that also listen at a TCP port of loopback, with tokens; requests to that port; runners."""
import datetime
import http.client
import os
import signal
import time

from daemon import Daemon, free_port, until

TOKENS = {"all": "a" * 32, "read": "r" * 32, "run": "u" * 32}


def write_tokens(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(text)
    return path


class Listens:
    """What a Daemon needs to take requests by TCP."""

    def listen(self):
        self.port = free_port()
        self.tokens = write_tokens(f"{self.dir}/tokens", "# ours\n" + "".join(f"{k} {v}\n" for k, v in TOKENS.items()))
        self.args = (*self.args, f"--listen=127.0.0.1:{self.port}", f"--token-file={self.tokens}")

    def ask(self, method, path, body=None, token=TOKENS["all"], **headers):
        """Send a request by TCP. Returns its status and its answer."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.answer(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20), method, path, body, headers)


class Remote(Listens, Daemon):
    def __init__(self, *args, **env):
        super().__init__(*args, **env)
        self.listen()


def taken_at_once(d, key):
    """Did a runner take the run before it was offered to all runners, after 2 s? If not, the host stood still, and the
    preferred runner had no chance."""
    row = d.get(f"/v1/runs/{key}")[0]
    at, began = (datetime.datetime.strptime(row[k], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() for k in ("at", "began"))
    return began - at < 1.9


class Runner(Daemon):
    """A runner that takes runs of a pool from @daemons, which are Remotes."""

    def __init__(self, pool, *daemons, name=None, runs=4):
        super().__init__(*(f"--runner=http://127.0.0.1:{d.port}" for d in daemons), f"--pool={pool}", f"--runs={runs}",
                         f"--token-file={daemons[0].tokens}", *([f"--name={name}"] if name else []))
        self.name, self.daemon = name, daemons[0]

    def start(self, *args, wait=True, **env):
        super().start(*args, wait=False, **env)
        if wait:
            until(self.is_known)
        return self

    def is_known(self):
        try:
            return any(r["name"] == self.name for r in self.daemon.get("/v1/runners"))
        except OSError:     # the daemon was buried, and starts again
            return False

    def pause(self, seconds):
        """Stop the runner for so long, but not the processes of its runs."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
