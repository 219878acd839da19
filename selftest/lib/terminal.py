#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""terminal.py TWHEEL job|line: run twheel(1) on a terminal, as a job of a shell. This program plays the shell.

Each test is a process with a new session and a terminal of its own. The test acts as a shell does: it
starts a job in a process group, in the foreground or not, and waits for the job. If a test fails, the
program prints what is wrong, and its exit status is 1.
"""
import os
import pty
import re
import select
import signal
import sys
import time

TWHEEL = sys.argv[1]


class Shell:
    """A shell with one job. master: the other end of the terminal, for keys and output; term: TERM of the job"""

    def __init__(self, master, term):
        self.master, self.term, self.said = master, term, b""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def start(self, words, foreground=True):
        self.pid = os.fork()
        if not self.pid:
            os.setpgid(0, 0)
            if foreground:
                os.tcsetpgrp(0, os.getpid())
            for sig in (signal.SIGTTOU, signal.SIGINT, signal.SIGPIPE, signal.SIGHUP):
                signal.signal(sig, signal.SIG_DFL)
            os.environ["TERM"] = self.term
            os.execv(TWHEEL, ["twheel"] + words)
        try:
            os.setpgid(self.pid, self.pid)
        except OSError:
            pass

    def foreground(self, pid=None):
        """Put the job into the foreground, and continue it, as `fg` does."""
        os.tcsetpgrp(0, self.pid)
        os.killpg(self.pid, signal.SIGCONT)

    def read(self, seconds=0.05):
        if select.select([self.master], [], [], seconds)[0]:
            self.said += os.read(self.master, 4096)

    def until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(text, self.said) and time.monotonic() < end:
            self.read()
        check(re.search(text, self.said), f"{text} is not in {self.said}")

    def press(self, keys):
        os.write(self.master, keys)

    def until_true(self, fn, seconds=60):
        end = time.monotonic() + seconds
        while not fn() and time.monotonic() < end:
            self.read()
        check(fn(), f"it never came to that: {self.said}")

    def runs(self, name):
        """Is a program of this name running in this session?"""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    before, _, after = file.read().rpartition(")")
            except OSError:
                continue
            if before.endswith(f"({name}") and int(after.split()[3]) == os.getsid(0):
                return True
        return False

    def wait(self, seconds=60):
        """Wait until the job ends or stops, and take the terminal back. If the time is over, kill the job: the test has
        failed. Returns ("exited", status), ("signaled", signal) or ("stopped", signal)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid:
                os.tcsetpgrp(0, os.getpgrp())
                if os.WIFSTOPPED(status):
                    return "stopped", os.WSTOPSIG(status)
                if os.WIFSIGNALED(status):
                    return "signaled", os.WTERMSIG(status)
                return "exited", os.WEXITSTATUS(status)
            self.read()
        os.killpg(self.pid, signal.SIGKILL)
        check(False, f"the job goes on and on: {self.said}")


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def expect(got, want):
    check(got == want, f"{got}, not {want}")


# The tests of twheel as a job. Their commands begin with SAY, so that the test sees when the command runs.
SAY = "echo runs; "


def reads(shell):
    """If a command reads from the terminal, it gets the terminal."""
    shell.start(["after", "10ms", "--", "sh", "-c", SAY + "read word && echo got $word"])
    shell.until(b"runs")
    shell.press(b"hello\n")
    shell.until(b"got hello")
    expect(shell.wait(), ("exited", 0))


def interrupts(shell):
    """Ctrl-C ends twheel every and its command."""
    shell.start(["every", "10ms", "--", "sh", "-c", SAY + "sleep 1000"])
    shell.until_true(lambda: shell.runs("sleep"))   # dash may lose an interrupt that comes before it starts a command
    shell.press(b"\x03")
    expect(shell.wait(), ("signaled", signal.SIGINT))


def interrupts_reader(shell):
    """If the command has the terminal, Ctrl-C ends twheel every and the command too."""
    shell.start(["every", "10ms", "--", "sh", "-c", SAY + "read word; read word; echo no"])
    shell.until(b"runs")
    shell.press(b"x\n")
    time.sleep(0.3)
    shell.press(b"\x03")
    expect(shell.wait(), ("signaled", signal.SIGINT))


def leaves(term, tell):
    """Lead a new session, and return while a command has the terminal. Write the pid of twheel to @tell."""
    shell = new_shell(term)
    shell.start(["every", "10ms", "--", "sh", "-c", SAY + "read word; read word"])
    shell.until(b"runs")
    shell.press(b"x\n")
    time.sleep(0.3)
    os.write(tell, str(shell.pid).encode())


def hangs_up(shell):
    """If the shell and its terminal go away, twheel ends."""
    told, tell = os.pipe()
    leader = os.fork()
    if not leader:
        try:
            leaves(shell.term, tell)
        finally:
            os._exit(0)
    os.close(tell)
    twheel = os.read(told, 16).decode()
    os.waitpid(leader, 0)
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{twheel}/fd/0") and time.monotonic() < end:
        time.sleep(0.05)
    check(twheel and not os.path.exists(f"/proc/{twheel}/fd/0"), "it goes on")


def gives_back(shell):
    """When the command has ended, twheel has the terminal again, and gets Ctrl-C."""
    shell.start(["every", "1h", "--now", "--", "sh", "-c", SAY + "read word; echo got $word"])
    shell.until(b"runs")
    shell.press(b"x\n")
    shell.until(b"got x")
    shell.until_true(lambda: os.tcgetpgrp(0) == shell.pid)
    shell.press(b"\x03")
    expect(shell.wait(), ("signaled", signal.SIGINT))


def stops(shell):
    """Ctrl-Z stops twheel and the command, and fg continues both."""
    told = f"/tmp/terminal.{os.getpid()}.told"
    shell.start(["after", "10ms", "--", "sh", "-c",
                 SAY + f"i=0; until [ -e {told} ]; do sleep 0.1; i=$((i + 1)); echo step $i; done; echo over"])
    try:
        shell.until(b"step 1")
        shell.press(b"\x1a")
        expect(shell.wait(), ("stopped", signal.SIGTSTP))
        time.sleep(0.3)
        shell.read()
        before = shell.said
        time.sleep(0.6)
        shell.read()
        expect(shell.said, before)      # the command stands still
        shell.foreground()
        steps = before.count(b"step ")
        shell.until(b"step %d\r" % (steps + 2))
        os.mknod(told)
        shell.until(b"over")
        expect(shell.wait(), ("exited", 0))
    finally:
        if os.path.exists(told):
            os.unlink(told)


def continues_at_once(shell):
    """If SIGCONT comes before twheel has stopped because of SIGTSTP, twheel and its commands go on."""
    with open(f"/tmp/terminal.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write("after 0 -- exec sleep 1000\n" * 8)
    try:
        for nth in range(20):
            shell.start(["run", file.name], foreground=False)
            time.sleep(nth % 10 / 500)
            os.kill(shell.pid, signal.SIGTSTP)
            time.sleep(nth % 4 / 2000)
            # If twheel has already stopped, wait() may return that first; SIGCONT ends the stop.
            os.kill(shell.pid, signal.SIGCONT)
            os.kill(shell.pid, signal.SIGTERM)
            end = shell.wait()
            expect(shell.wait() if end[0] == "stopped" else end, ("signaled", signal.SIGTERM))
    finally:
        os.unlink(file.name)


def stops_reader(shell):
    """If the command has the terminal, Ctrl-Z stops twheel too, and fg lets the command read on."""
    shell.start(["after", "10ms", "--", "sh", "-c", SAY + "read a; echo $a one; read b; echo $b two"])
    shell.until(b"runs")
    shell.press(b"x\n")
    shell.until(b"x one")
    shell.press(b"\x1a")
    expect(shell.wait(), ("stopped", signal.SIGTSTP))
    shell.foreground()
    time.sleep(0.2)
    shell.press(b"y\n")
    shell.until(b"y two")
    expect(shell.wait(), ("exited", 0))


def background(shell):
    """If a command in the background reads, it stops with twheel, as a shell expects; fg lets the command read."""
    shell.start(["after", "10ms", "--", "sh", "-c", SAY + "read word && echo got $word"], foreground=False)
    expect(shell.wait(), ("stopped", signal.SIGTTIN))
    shell.foreground()
    shell.press(b"hello\n")
    shell.until(b"got hello")
    expect(shell.wait(), ("exited", 0))


def run_file(shell):
    """The commands of a file have no terminal: a command that reads gets nothing, and does not stop."""
    with open(f"/tmp/terminal.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write("after 10ms -- read word </dev/tty; read word; echo read nothing\n")
    shell.start(["run", file.name])
    try:
        expect(shell.wait(), ("exited", 0))
    finally:
        os.unlink(file.name)
    shell.until(b"read nothing")


def line(shell):
    """twheel shows in a status line how long it will take, and clears the line at the end."""
    shell.start(["after", "6s"])
    expect(shell.wait(), ("exited", 0))
    shell.until(rb"\r\x1b\[Kin [1-6]s.*\r\x1b\[K$")


def line_dumb(shell):
    """On a terminal that cannot clear a line, twheel shows no status line."""
    shell.start(["after", "2500ms"])
    expect(shell.wait(), ("exited", 0))
    expect(shell.said, b"")


def line_background(shell):
    """In the background twheel shows no status line over the shell's prompt; in the foreground again it does."""
    shell.start(["after", "9s"], foreground=False)
    shell.read(2.2)
    expect(shell.said, b"")
    shell.foreground()
    expect(shell.wait(), ("exited", 0))
    shell.until(rb"in [1-6]s")


def line_bench(shell):
    """twheel bench shows how far it has got, in the foreground only."""
    shell.start(["bench", "--timers=2000", "--backend=embedded"], foreground=False)
    expect(shell.wait(), ("exited", 0))
    shell.until(b"embedded backend")    # the last output may arrive after bench has ended
    shell.read(0.5)
    check(b"\x1b" not in shell.said, f"{shell.said}")
    shell.start(["bench", "--timers=2000", "--backend=embedded"])
    expect(shell.wait(), ("exited", 0))
    shell.until(rb"\x1b\[K")


TESTS = {
    "job": [(test, "xterm") for test in (reads, interrupts, interrupts_reader, hangs_up, gives_back, stops,
                                         continues_at_once, stops_reader, background, run_file)],
    "line": [(line, "xterm"), (line_dumb, "dumb"), (line_dumb, "no-such-terminal"), (line_background, "xterm"),
             (line_bench, "xterm")],
}


def run(test, term):
    """Run a test in a child process. Returns the child's pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        test(new_shell(term))
        status = 0
    except Exception as wrong:  # any exception is a failure to report
        os.write(REPORT, f"{test.__name__} ({test.__doc__}): {wrong!r}\n".encode())
    os._exit(status)


def new_shell(term):
    """Make this process the leader of a new session on a new terminal. Returns its Shell."""
    master, slave = pty.openpty()
    os.setsid()
    take_terminal(slave)
    return Shell(master, term)


def take_terminal(slave):
    """Make a terminal the session's, and the standard files of this process. The first terminal that the leader of a
    session opens becomes the session's."""
    name = os.ttyname(slave)
    os.close(slave)
    fd = os.open(name, os.O_RDWR)
    for std in range(3):
        os.dup2(fd, std)


REPORT = os.dup(1)
pids = [run(*test) for test in TESTS[sys.argv[2]]]
sys.exit(any([os.waitpid(pid, 0)[1] for pid in pids]))
