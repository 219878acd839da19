#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Type doc/tutorial-jobs.md as a user does who has just read it: each command must print what the text says. Also paste the
two lines of README.md."""
import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from daemon import IN_TIME, PROGRAMS, Tap, free_port, processes_with
from postgres import ROOT, Server

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
TEXT = f"{TOP}/doc/tutorial-jobs.md"
# A command that only looks is repeated until it prints what it should: a reader takes some seconds to type.
LOOKS = r"twheel job (ls|log|history|runners|nodes)\b|cat |curl "
END = "\001"


def sections():
    """Returns [(title, [(command, what it prints)])] of the sections that have commands."""
    found = []
    with open(TEXT, encoding="utf-8") as file:
        for part in file.read().split("\n## ")[1:]:
            commands = []
            for block in re.findall(r"^```console\n(.*?)^```", part, re.M | re.S):
                for one in re.split(r"^\$ ", block, flags=re.M)[1:]:
                    command, _, output = one.partition("\n")
                    commands.append((command, output))
            if commands:
                found.append((part.partition("\n")[0], commands))
    return found


def plain(text):
    """Returns the lines of a text with words in place of what differs each time: times, runs, durations, and which of three
    daemons it is. Messages of the shell about killed daemons are left out."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+0000)", "TIME", text)
    text = re.sub(r"\b\d+-\d{16}\b", "RUN", text)
    text = re.sub(r"\b[\d.]+(us|ms|s)\b", "FOR", text)
    text = re.sub(r"^[abc] attempt", "NODE attempt", text, flags=re.M)
    return [" ".join(line.split()) for line in text.splitlines() if not re.search(r"(Killed|Terminated) +(twheeld|\S+=)", line)]


class Shell:
    """A shell in which a reader types. @store: the address of the reader's database"""

    def __init__(self, store=""):
        self.home = tempfile.mkdtemp(prefix="tutorial.")
        os.chmod(self.home, 0o755)
        # The reader is not root, and may have no access to the directory of the programs. So copy them.
        user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if ROOT else {}
        os.mkdir(f"{self.home}/bin")
        for name in ("twheeld", "twheeld-postgresql.so", "twheel-job"):
            shutil.copy(f"{PROGRAMS}/{name}", f"{self.home}/bin")
        with open(f"{self.home}/bin/twheel", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nshift\nexec twheel-job \"$@\"\n")
        os.chmod(f"{self.home}/bin/twheel", 0o755)
        if ROOT:
            shutil.chown(self.home, "nobody")
        self.store, self.port = store, str(free_port())
        env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TWHEEL"))}
        self.shell = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.home,
            start_new_session=True, **user,
            env={**env, "HOME": self.home, "TZ": "UTC", "TWHEEL_BACKEND": "embedded", "PATH": f"{self.home}/bin:/usr/bin:/bin",
                 "ASAN_OPTIONS": "exitcode=99:detect_leaks=0"})

    def type(self, command):
        command = command.replace("postgresql://twheel@db.example.org/twheel", self.store).replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")
        self.shell.stdin.write(f"{command}\necho '{END}'\n")
        self.shell.stdin.flush()
        lines = []
        while (line := self.shell.stdout.readline()) and END not in line:
            lines.append(line)
        last = line.split(END)[0] if line else ""       # the command's last line, if it has no end
        return "".join(lines) + last

    def follows(self, command, output):
        """Type a command. If it only looks, repeat it for a minute at most until it prints @output. Returns what it printed."""
        end = time.monotonic() + 60
        while True:
            got = self.type(command)
            if plain(got) == plain(output) or not re.match(LOOKS, command) or time.monotonic() > end:
                return got
            time.sleep(0.1)

    def started(self):
        """Wait until all daemons have logged that they are there: a reader types the next command after that."""
        self.type("for log in *.log; do timeout 60 sh -c \"until grep -qE ': (life|.*takes part)' $log; do sleep 0.1; done\"; done")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shell.stdin.close()
        for pid in processes_with(f"HOME={self.home}"):     # the daemons are left if the test stopped halfway
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.shell.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def types_all(found, to_the_end):
    """Type the commands of all sections. Returns [(title, what is wrong in the section)]. If something is wrong, stop there and
    return only that section, unless @to_the_end."""
    results = []
    with Server() as server, Shell(server.url) as shell:
        for title, commands in found:
            wrong = []
            for command, output in commands:
                got = shell.follows(command, output)
                if plain(got) != plain(output):
                    wrong += [f"$ {command}", f"wanted: {plain(output)}", f"got: {got}"]
                if wrong and not to_the_end:
                    return [(title, wrong)]
                if "twheeld " in command:
                    shell.started()
            results.append((title, wrong))
    return results


def pasted():
    """Paste the two lines of README.md at once: the second line does not wait until the daemon of the first is there. Returns
    what is wrong."""
    with open(f"{TOP}/README.md", encoding="utf-8") as file:
        lines = re.search(r"^ +make jobs && (.*twheeld.*\n.*twheel-job add hello .*)$", file.read(), re.M)[1].replace("build/jobs/", "")
    with Shell() as shell:
        said = shell.type(f"{lines}\necho status $?")
        listed = shell.type("twheel job ls hello")
    return [] if "status 0\n" in said and re.search("^hello ", listed, re.M) else [lines, said, listed]


def main():
    """Type the tutorial, and if something is wrong, start anew, twice at most. A reader sees something else if the machine
    stands still while the reader has 2 s to kill a daemon, or if the clock reaches the minute of a line of the crontab. A
    reader who starts anew then sees what the text says."""
    found = sections()
    tap = Tap(len(found) + 1)
    for _ in range(IN_TIME):
        if not (wrong := pasted()):
            break
    tap.ok(not wrong, "README.md", *wrong)
    for to_the_end in (False, False, True):
        results = types_all(found, to_the_end)
        if not any(wrong for _, wrong in results):
            break
    for title, wrong in results:
        tap.ok(not wrong, title, *wrong)
    tap.done()


sys.exit(main())
