# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Daemons that listen at a port of loopback too, with tokens; requests that come there; runners."""
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
    """What makes a Daemon one that can be talked to by TCP."""

    def listen(self):
        self.port = free_port()
        self.tokens = write_tokens(f"{self.dir}/tokens", "# ours\n" + "".join(f"{k} {v}\n" for k, v in TOKENS.items()))
        self.args = (*self.args, f"--listen=127.0.0.1:{self.port}", f"--token-file={self.tokens}")

    def ask(self, method, path, body=None, token=TOKENS["all"], **headers):
        """By TCP."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.answer(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20), method, path, body, headers)


class Remote(Listens, Daemon):
    def __init__(self, *args, **env):
        super().__init__(*args, **env)
        self.listen()


def taken_at_once(d, key):
    """Did a runner take the run before it was offered to all? If not, the host has kept the preferred one for so long."""
    row = d.get(f"/v1/runs/{key}")[0]
    at, began = (datetime.datetime.strptime(row[k], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() for k in ("at", "began"))
    return began - at < 1.9


class Runner(Daemon):
    """One that takes runs of a pool from daemons, which are Remotes."""

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
        except OSError:     # the daemon was buried, and begins again
            return False

    def pause(self, seconds):
        """It, and not what it runs."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
