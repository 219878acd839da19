#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Where twheeld looks for the module for PostgreSQL, and what twheeld says if it refuses a module. The test needs no server:
a module that is taken refuses the setting 'nonsense=1'."""
import os
import re
import shutil
import subprocess

from daemon import PROGRAMS, Daemon, Tap

MODULE = "twheeld-postgresql.so"
INSTALLED = os.path.abspath(f"{PROGRAMS}/lib/twheeld/{MODULE}")      # where this build expects the module
TAKEN = "invalid connection option \"nonsense\""
NONE = f"the package twheeld-postgresql is not installed: there is no '{INSTALLED}'"
ROOT = os.geteuid() == 0


def put(source, target, owner=None):
    """Replace the file @target by a copy of @source, as an installation does. The copy belongs to @owner, if that is given."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, f"{target}.new")
    if owner:
        shutil.chown(f"{target}.new", owner)
    os.rename(f"{target}.new", target)


class Program:
    """A copy of twheeld in a directory of its own, where there is no module at first."""

    def __init__(self, home):
        self.path, self.beside, self.home = f"{home}/bin/twheeld", f"{home}/bin/{MODULE}", home
        put(f"{PROGRAMS}/twheeld", self.path)

    def run(self, *args, **kwargs):
        return subprocess.run([self.path, *args], capture_output=True, text=True, timeout=60, check=False,
                              **{"env": {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, **kwargs})

    def says(self, **kwargs):
        """Start twheeld. Returns why it cannot open the store, or, if it does not say that in one line, all that it did."""
        done = self.run(f"--state={self.home}/state", "--store=nonsense=1", **kwargs)
        line = re.fullmatch("twheeld: cannot open the store: (.*)\n", done.stderr)
        return line[1] if done.returncode == 1 and line else repr(done)


def refuses(tap, program):
    tap.same(program.says(), NONE, "without its package, one is told the name of that")
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LD_LIBRARY_PATH": PROGRAMS}
    tap.same([program.says(cwd=PROGRAMS), program.says(env=env)], [NONE] * 2,
             "neither the current directory nor the environment says where it is")
    put(f"{PROGRAMS}/{MODULE}", INSTALLED)
    tap.same(program.says(), TAKEN, "it is found where it was installed")
    version = program.run("--version").stdout.split()[1]
    put(f"{PROGRAMS}/other.so", INSTALLED)
    tap.same(program.says(), f"'{INSTALLED}' belongs to twheeld 0.12.3, and this is {version}", "one of another version is refused")
    put(f"{PROGRAMS}/{MODULE}", program.beside)
    tap.same(program.says(), TAKEN, "one beside the program comes first")
    if ROOT:
        put(f"{PROGRAMS}/{MODULE}", INSTALLED)
        put(f"{PROGRAMS}/other.so", program.beside, "nobody")
        tap.same(program.says(), TAKEN, "but not if it is somebody else's")
    else:
        tap.ok(True, "but not if it is somebody else's # SKIP only root can make one")
    put(f"{PROGRAMS}/clock.so", program.beside)
    tap.same(program.says(), f"'{program.beside}' is not a module of twheeld", "a library that is not a module is refused")
    put(__file__, program.beside)
    tap.ok(program.says().startswith(f"{program.beside}: "), "so is a file that is not a library", program.says())


def main():
    tap = Tap(10)
    shutil.rmtree(f"{PROGRAMS}/lib", ignore_errors=True)
    with Daemon() as d:
        refuses(tap, Program(d.dir))
        with open(f"{PROGRAMS}/twheeld", "rb") as file:
            tap.ok(b"libpq" not in file.read(), "the program itself is not linked with libpq")
        d.command = [f"{d.dir}/bin/twheeld"]
        d.start()
        d.put("j", exec=["true"])
        d.post("/v1/jobs/j/run")
        tap.same([[r["outcome"] for r in d.over("j")], d.stop()], [["ok"], 0], "without --store it needs no module", d.stderr())
    tap.done()


main()
