#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""twheel-job with a daemon: each command, and its error messages."""
import json
import os
import re
import subprocess
import sys
import time

from daemon import IN_TIME, PROGRAMS, Command, Daemon, Tap, until


def refused(tap, done, wanted, name):
    """Check that the command printed one line to standard error, and that its status is 1."""
    tap.ok(done.returncode == 1 and not done.stdout and re.fullmatch(f"twheel job: {wanted}\n", done.stderr),
           name, done)


def jobs(tap, job):
    done = job("add", "hello", "--every=100ms", "--", "echo", "hello")
    tap.ok(done.returncode == 0 and not done.stdout, "add", done)
    tap.ok(until(lambda: "hello\n" == job("log", "hello").stdout), "add: the job runs", job("log", "hello"))
    refused(tap, job("add", "hello", "--", "true"), "there is a job 'hello' already", "add: the job exists already")
    tap.same(job("add", "hello", "--replace", "--after=1h", "--then=hello2", "--", "true").stderr,
             "twheel job: then: there is no job 'hello2'\n", "add: a job that follows must exist")
    tap.same(job.json("show", "hello")[0]["definition"],
             {"rate": "100ms", "name": "hello", "exec": ["echo", "hello"]}, "a request that was refused changed nothing")
    job("add", "night", "--cron=30 2 * * *", "--zone=Europe/Berlin", "--missed=skip", "--retry=3", "--wait-retry=1m",
        "--env=A=b=c", "--then=hello", "--then-fail=hello", "--", "sh", "-c", "exit 3", "--json")
    tap.same(job.json("show", "night")[0]["definition"],
             {"cron": "30 2 * * *", "zone": "Europe/Berlin", "missed": "skip", "retry": {"times": 3, "wait": "1m"},
              "env": {"A": "b=c"}, "then": {"ok": ["hello"], "fail": ["hello"]}, "name": "night",
              "exec": ["sh", "-c", "exit 3", "--json"]}, "options become a definition")
    tap.ok("revision 1" in job("show", "night").stdout, "show")
    job("add", "never", "--retry=0", "--", "true")
    tap.same(job.json("show", "never")[0]["definition"]["retry"], {"times": 0}, "add: no other attempts")
    socket = job.env["TWHEELD_SOCKET"]
    nowhere = {**job.env, "TWHEELD_SOCKET": "/nowhere"}
    before = [job(f"--socket={socket}", "--json", "add", "never", "--replace", "--after=1h", "--", "true", "--json", env=nowhere),
              job("--json", "--socket", socket, "ls", "never", env=nowhere), job("--socket=/nowhere", "rm", "never")]
    tap.same([done.returncode for done in before], [0, 0, 1], "options of all commands may come before it", *before)
    tap.same([json.loads(done.stdout)["name"] for done in before[:2]], ["never"] * 2, "and are heeded", *before)
    misplaced = [job("--after=1s", "add", "x", "--", "true"), job("-f", "log", "x"), job("--json"), job()]
    tap.same([done.stderr.splitlines()[0] for done in misplaced],
             ["twheel job: option '--after' belongs to a command, and must follow it", "twheel job: option '-f' is not for 'job'",
              "twheel job: missing command", "twheel job: missing command"], "those of one command may not")
    job("rm", "never")
    tap.same([o["name"] for o in job.json("ls")], ["hello", "night"], "ls")
    tap.same([o["name"] for o in job.json("ls", "ni")], ["night"], "ls: jobs with a prefix")
    tap.ok(re.search("^night +2.*T0[01]:30:00.000.0000 +0  -$", job("ls").stdout, re.M), "ls: as a table", job("ls"))
    refused(tap, job("rm", "hello"), "job 'hello' follows job 'night'", "rm: the job is needed by another")
    tap.same([job("rm", n).returncode for n in ("night", "hello")], [0, 0], "rm")
    refused(tap, job("show", "hello"), "there is no job 'hello'", "rm: the job is gone")


def runs(tap, job):
    job("add", "slow", "--", "sh", "-c", "echo one; sleep 0.5; echo two; exit 3")
    run = job("run", "slow").stdout.strip()
    tap.ok(re.fullmatch(r"\d+-\d+", run), "run prints the id of the run", run)
    tap.same(job("log", run, "-f").stdout, "one\ntwo\n", "log -f ends with the run")
    done = job("run", "slow", "--wait")
    tap.ok(done.returncode == 3 and done.stderr.endswith(": failed\n"), "run --wait has the command's status", done)
    tap.same([(o["outcome"], o["status"], o["attempt"]) for o in job.json("history", "slow")],
             [("failed", 3, 1)] * 2, "history")
    tap.same(job("runs", "slow", "--limit=1").stdout, job("history", "slow", "--limit=1").stdout, "runs: the same as history", job("runs"))
    tap.same(len(job.json("history", "--outcome=failed", "--limit=1")), 1, "history: by outcome, with a limit")
    tap.same(job.json("history", "--outcome=ok", "slow"), [], "history: none with another outcome")
    refused(tap, job("history", "--outcome=good"), "outcome: 'good' is not an outcome", "history: a bad outcome")
    job("add", "long", "--", "sleep", "100")
    run = job("run", "long").stdout.strip()
    until(lambda: any(run["state"] == "running" for run in job.json("history", "long")))
    tap.same(job("kill", run).returncode, 0, "kill")
    tap.same(until(lambda: [o["outcome"] for o in job.json("history", "long") if "outcome" in o]), ["killed"],
             "kill: the run ends")
    refused(tap, job("kill", run), "there is no such run, or it is over", "kill: the run is over")
    job("add", "arg", "--", "sh", "-c", "echo $TWHEEL_ARG")
    run = job("run", "arg", "--after=50ms", "--key=k", "--arg=once more").stdout.strip()
    tap.same(until(lambda: job("log", run).stdout), "once more\n", "run later, with an argument", job("log", run))
    job("add", "several", "--overlap=allow", "--", "/bin/sh", "-c", "echo $TWHEEL_ARG; exec sleep 1000")
    for word in ("first", "second"):
        job("run", "several", f"--arg={word}")
        time.sleep(1)
    tap.same(until(lambda: job("log", "several").stdout), "second\n", "log of a job is that of its latest run", job("log", "several"))
    tap.ok("attempt" in job("log", "several", "--attempt=1 HTTP/1.1").stderr, "what log is told to print is one word", job("log", "several", "--attempt=1 HTTP/1.1"))
    job("rm", "several")
    job("run", "arg", "--after=1h", "--key=k")
    tap.same(job("cancel", "arg", "k").returncode, 0, "cancel")
    refused(tap, job("cancel", "arg", "k"), "job 'arg' is not due with key 'k'", "cancel: the key is gone")
    job("run", "arg", "--after=1h", "--key=kept")
    tap.same([job("rm", "arg/shots/kept").stderr, job("cancel", "arg", "kept").returncode],
             ["twheel job: 'arg/shots/kept' is not a valid name\n", 0], "rm: a job, and nothing else")
    odd = ["a/b/c", "/", "..", "%2F", "a+b c", "ä\n", ""]
    done = [(job("run", "arg", "--after=1h", f"--key={key}").returncode, job("cancel", "arg", key).returncode) for key in odd]
    tap.same(done, [(0, 0)] * len(odd), "a key may be any text")


def unnamed(tap, job):
    """at, after and every: a job without a name gets one, which is printed."""
    names = [job(word, when, "--retry=1", "--", "sh", "-c", "echo it ran").stdout.strip()
             for word, when in (("at", "2030-01-01T00:00:00.000000Z"), ("after", "50ms"), ("every", "1h"), ("every", "1h"))]
    tap.ok(len(set(names)) == 4 and all(re.fullmatch(word + "-[0-9a-f]{16}", name) for word, name in zip(("at", "after", "every", "every"), names)),
           "at, after, every: each job has a name of its own", names)
    tap.same([job.json("show", name)[0]["definition"] for name in names[:3]],
             [{key: when, "retry": {"times": 1}, "name": name, "exec": ["sh", "-c", "echo it ran"]}
              for name, (key, when) in zip(names, (("at", "2030-01-01T00:00:00.000000Z"), ("after", "50ms"), ("rate", "1h")))],
             "at, after, every: it is due as the first word says")
    tap.same(until(lambda: job("log", names[1]).stdout), "it ran\n", "after: the job runs")
    told = job("after", "1h", "--json", "--", "true")
    names.append(json.loads(told.stdout)["name"])
    tap.ok(names[-1].startswith("after-"), "after: with --json the job is printed", told)
    refused(tap, job("at", "soon", "--", "true"), "at: 'soon' is not a time", "at: a bad time")
    refused(tap, job("after", "1h"), "exec or http is missing", "after: no command")
    refused(tap, job("after", "1h", "--cron=0 0 * * *", "--", "true"), "[a-z]+: the job already has another time", "after: a time by an option, too")
    tap.same([job(word, "1h", f"--{word}=2h", "--", "true").stderr.splitlines()[0] for word in ("at", "after", "every")],
             [f"twheel job: option '--{word}' is not for '{word}'" for word in ("at", "after", "every")], "nor the same one again")
    tap.same(job("every", "1h", "--replace", "--", "true").returncode, 1, "every: there is nothing to replace")
    tap.same([job("rm", name).returncode for name in names], [0] * 5, "these jobs are removed as others")


def dues(tap, d, job):
    """A run has its id before it begins: log, kill and run --wait must know it from then on."""
    run = job("run", "slow", "--after=0.3s").stdout.strip()
    tap.same(job("log", run, "-f").stdout, "one\ntwo\n", "log -f waits for a run that is due")
    job("add", "thrice", "--retry=2", "--wait-retry=0.3s", "--", "sh", "-c", f"echo $TWHEEL_ATTEMPT; until [ -e {d.dir}/seen ]; do sleep 0.05; done; sleep 0.2; [ $TWHEEL_ATTEMPT = 3 ]")
    run = job("run", "thrice").stdout.strip()
    until(lambda: job("log", run).stdout)
    with subprocess.Popen([f"{PROGRAMS}/twheel-job", "log", run, "-f"], env=job.env, stdout=subprocess.PIPE, text=True) as follower:
        first = follower.stdout.readline()
        early = job.json("show", "thrice")[0]["active"]
        with open(f"{d.dir}/seen", "x", encoding="ascii"):
            pass
        tap.same([first + follower.stdout.read(), early], ["1\n2\n3\n", 1], "log -f shows each attempt, while it prints")
    tap.same(job("log", run, "-f", "--attempt=2").stdout, "2\n", "log -f of one attempt")
    run = job("run", "slow", "--after=1h").stdout.strip()
    tap.same([job("kill", run).returncode for _ in range(2)], [0, 1], "kill: a run that is due, once")
    refused(tap, job("log", run), "there is no such run", "and then there is none")
    with subprocess.Popen([f"{PROGRAMS}/twheel-job", "run", "slow", "--after=1h", "--key=w", "--wait"], env=job.env,
                          stderr=subprocess.PIPE, text=True) as waits:
        until(lambda: job("cancel", "slow", "w").returncode == 0)
        said = waits.communicate(timeout=60)[1]
    tap.ok(waits.returncode == 1 and re.fullmatch(r"twheel job: the run \d+-\d+ was cancelled\n", said),
           "run --wait: the run is cancelled", waits.returncode, said)


def machines(tap, job):
    tap.ok(re.fullmatch(r"NAME +LIFE +LEASE +PARTS\n\S+ +1 +- +64  answers here\n", job("nodes").stdout), "nodes", job("nodes"))
    tap.same([(o["this"], len(o["parts"])) for o in job.json("nodes")], [(True, 64)], "nodes --json")
    tap.same([job("runners").stdout, job.json("runners")], ["NAME                     POOL                  LEASE  RUNNER\n", []], "runners")
    job("add", "far", "--pool=web", "--prio=-3", "--prefer=x", "--late=1m", "--alarm=mailto:a@example.org", "--alarm=http://localhost:1/", "--", "true")
    job("add", "all", "--pool=web", "--each", "--", "true")
    job("add", "ask", "--http=http://localhost:1/", "--retry=1")
    tap.same([job.json("show", n)[0]["definition"] for n in ("far", "all", "ask")],
             [{"pool": "web", "prio": -3, "prefer": "x", "name": "far", "exec": ["true"],
               "alarm": {"late": "1m", "fail": ["mailto:a@example.org", "http://localhost:1/"]}},
              {"pool": "web", "each": True, "name": "all", "exec": ["true"]},
              {"http": "http://localhost:1/", "retry": {"times": 1}, "name": "ask"}], "add: jobs for runners, and requests")
    refused(tap, job("add", "none"), ".*exec.*", "add: neither a command nor an address")
    for name in ("far", "all", "ask"):
        job("rm", name)


def pauses(tap, job, d):
    job("add", "tick", "--every=50ms", "--", "sh", "-c", f"echo >>{d.dir}/ticks")
    until(lambda: d.lines("ticks"))
    job("pause", "tick")
    d.idle("tick")      # the runs that have begun end first
    before = len(d.lines("ticks"))
    time.sleep(0.3)
    tap.same(len(d.lines("ticks")), before, "pause")
    tap.ok(job.json("ls", "tick")[0]["paused"], "pause: ls says so")
    job("run", "tick", "--wait")
    tap.same(len(d.lines("ticks")), before + 1, "run: also while the job is paused")
    job("resume", "tick")
    tap.ok(until(lambda: len(d.lines("ticks")) > before + 2), "resume")
    job("rm", "tick")


def missed(tap, job, d):
    """Each line of the history must say how many times were missed, or are made up for by its run."""
    for word in ("skip", "once"):
        job("add", word, "--every=100ms", f"--missed={word}", "--grace=200ms", "--", "true")
        until(lambda word=word: job.json("history", word))
        job("pause", word)
        time.sleep(1)
        job("resume", word)
        until(lambda word=word: any(run["missed"] >= 3 for run in job.json("history", word)))
        job("pause", word)
        d.idle(word)
        rows, lines = job.json("history", word), job("history", word).stdout.splitlines()[1:]
        wanted = [f"{run['missed']} missed" if run["missed"] else None for run in rows]
        told = [found and found[0] for line in lines for found in [re.search(r"(?<=  )\d+ missed$", line)]]
        tap.ok(told == wanted and any(wanted), f"history: how many times were missed ({word})", rows, *lines)
        job("rm", word)


CRONTAB = r"""# a comment
SHELL=/bin/bash
MAILTO=root
"NAME" = "a value"
LOGNAME=nobody
*/5 * * * * echo $NAME \% %one%two
CRON_TZ=Europe/Berlin
@daily    true
"""

QUOTES = """A="it's"
B=x"y"
C="a" b
D='a
* * * * * true
"""


def crontabs(tap, job, d):
    path = f"{d.dir}/tab"
    with open(path, "w", encoding="utf-8") as file:
        file.write(CRONTAB)
    tap.same(job("import", path).stdout, "2 jobs\n", "import")
    tap.same(job.json("show", "crontab-6")[0]["definition"],
             {"name": "crontab-6", "cron": "*/5 * * * *", "exec": ["/bin/bash", "-c", "echo $NAME % "],
              "input": "one\ntwo\n", "env": {"SHELL": "/bin/bash", "NAME": "a value"}, "overlap": "allow", "missed": "skip"},
             "a line becomes a job")
    tap.same(job.json("show", "crontab-8")[0]["definition"]["zone"], "Europe/Berlin", "import: a time zone")
    job("add", "cat", "--", "cat")
    tap.ok(job("import", path).returncode == 1, "import: the jobs exist already")
    tap.same(job("import", path, "--replace").returncode, 0, "import --replace")
    done = job("import", "-", "--prefix=x-", stdin="* * * * * true\n* * *\n@reboot true\n")
    tap.ok(done.returncode == 1 and done.stderr.count("\n") == 2 and "-:2: there is no command" in done.stderr,
           "import: each bad line is reported", done)
    job("import", "-", "--prefix=h-", stdin=f"HOME={d.dir}\n@daily pwd\n")
    tap.same([job("run", "h-2", "--wait").returncode, job("log", "h-2").stdout], [0, f"{d.dir}\n"], "import: HOME is where a command begins")
    job("rm", "h-2")
    job("import", "-", "--prefix=b-", stdin="@daily printf 'a\\\\b' \\% \\x\\\\%in\\%\\\\\n")
    shown = job.json("show", "b-1")[0]["definition"]
    tap.same([shown["exec"][2], shown["input"]], ["printf 'a\\b' % \\x\\", "in%\\\\\n"], "import: backslashes, as cron has them")
    done = job("import", "-", "--prefix=x-", stdin="FOO-BAR=1\n* * * * * true\n")
    tap.same(done.stderr, "-:1: 'FOO-BAR' is not a valid name for a variable\n", "import: a bad variable")
    done = job("import", "-", "--prefix=x-", stdin=QUOTES)
    tap.same(done.stderr.splitlines(), [f"-:{n}: the quotes do not enclose the whole value" for n in (3, 4)], "import: quotes")
    done = job("import", "-", "--prefix=x-", stdin="* * * * * true\n61 * * * * true\n")
    tap.same(done.stderr, "twheel job: job 'x-2': cron: minute '61' is not in 0-59\n", "import: the daemon's error message")
    tap.same(job.json("ls", "x-"), [], "import: with an error no job is added")
    done = job("import", "-", "--user-field", "--prefix=u-", stdin="0 5 * * * nobody-is-called-that true\n")
    tap.ok("no user 'nobody-is-called-that'" in done.stderr, "import: a user field", done)


def times(tap, job):
    tap.same(job("next", "30 2 29 2 *", "--limit=1").stdout, "2028-02-29T02:30:00.000+0000\n", "next")
    refused(tap, job("next", "x"), "cron: .*", "next: a bad expression")
    refused(tap, job("next", "0 0 30 2 *"), "'0 0 30 2 \\*' is never due", "next: no day")
    tap.same([job("add", "7", "--", "echo", "seven").returncode, job("run", "7", "--wait").returncode, job("log", "7").stdout,
              job("rm", "7").returncode], [0, 0, "seven\n", 0], "a job with a number for a name has a log")
    done = [job("days", "holidays", "-", *more, stdin="2027-01-01 # new year\n2026-12-25\n") for more in ((), ("--json",))]
    tap.same([(d.returncode, d.stdout) for d in done], [(0, ""), (0, "{}\n")], "days", *done)
    tap.same(job("days", "holidays").stdout, "2026-12-25\n2027-01-01\n", "days: printed")
    refused(tap, job("days", "holidays", "-", stdin="2027-02-30"), "expected a list of dates like 2027-01-01",
            "days: a bad date")
    refused(tap, job("add", "x", "--cron=@daily", "--except=none", "--", "true"),
            "except: there is no calendar 'none'", "except: no calendar")
    for nul in ("\\u0000", "\0"):
        refused(tap, job("put", "-", stdin=f'{{"name": "nul", "exec": ["true"], "keep{nul}": "1h"}}'), "-: there is a NUL in the JSON", "put: a NUL")
    two = '{"name": "two-1", "exec": ["true"]}\n{"name": "two-2", "exec": ["true"]}\n'
    for text, at in ((two, 36), ('[{"name": "two-1", "exec": ["true"]}] ]', 38)):
        refused(tap, job("put", "-", stdin=text), f"-: expected one definition or a list .*; byte {at} is too much", "put: nothing may follow")
    refused(tap, job("put", "-", stdin='{"name": "twice", "exec": ["true"], "exec": ["false"]}'), "-: an object in the JSON has a key twice", "put: a key twice")
    refused(tap, job("put", "-", stdin="{'name': 'two-1', 'exec': ['true']}"), "-: this is not JSON, at byte 9", "put: strict JSON")
    tap.same(job.json("ls", "two-"), [], "put: and nothing is put")
    job("put", "-", stdin='{"name": "once-after", "exec": ["true"], "after": 0}\n \n')
    job("put", "-", stdin=json.dumps({"name": "once-at", "exec": ["true"], "at": f"@{time.time() + 1}"}))
    until(lambda: [j["name"] for j in job.json("ls", "once-") if j["last"]] == ["once-after", "once-at"])
    old = job("export", "once-").stdout
    tap.same(json.loads(old), [{"exec": ["true"], "name": f"once-{n}"} for n in ("after", "at")], "export: what was due once and is over has no time")
    none = job("export", "no-such-").stdout
    tap.same([none, job("put", "-", stdin=none).returncode], ["[\n]\n", 0], "export of no jobs is what put takes, too")
    first = json.loads(job("export").stdout)
    tap.same(len(first), len(job.json("ls")), "export")
    tap.same(job.json("export"), first, "export --json: a line for each job")
    tap.same(job("put", "-", stdin=json.dumps(first)).returncode, 0, "put: accepts what export printed")
    tap.same(json.loads(job("export").stdout), first, "put: the result is the same")


def controls(tap, job):
    """Control characters that a terminal would obey (ESC, DEL, and CSI beyond ASCII) must not be printed as they are."""
    odd = "a\x1b[31m\x7f\u009b31m\u0080\u009f\u00a0ä"
    job("put", "-", stdin=json.dumps({"name": "odd", "exec": ["echo", odd], "env": {"X": odd}}))
    said = [job("show", "odd"), job("show", "odd", "--json"), job("ls", "odd", "--json"), job("export", "odd")]
    tap.ok(not any(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout) for done in said), "control characters are not printed", *said)
    tap.same([json.loads(said[1].stdout)["definition"]["exec"][1], json.loads(said[3].stdout)[0]["env"]["X"]], [odd, odd], "but escaped")
    done = job("put", "-", stdin=json.dumps({"name": "odd", "exec": ["true"], "user": odd}))
    tap.same(done.stderr, "twheel job: user: there is no user 'a?[31m???31m????\u00a0ä'\n", "error: nor are those of a value")
    job("rm", "odd")


def starting(tap):
    """Start the daemon just after a command: the command must wait for it. Then kill the daemon: a command must give up."""
    for _ in range(IN_TIME):
        with Daemon() as d:
            job = Command(d)
            with subprocess.Popen([f"{PROGRAMS}/twheel-job", "add", "early", "--", "true"], env=job.env, stderr=subprocess.PIPE, text=True) as early:
                time.sleep(0.2)
                d.start()
                said = early.communicate(timeout=60)[1]
            names, began = [o["name"] for o in job.json("ls")], time.monotonic()
            d.kill()
            dead, took = job("ls"), time.monotonic() - began
        if names:
            break
    tap.same([early.returncode, said, names], [0, "", ["early"]], "a daemon that is starting is waited for")
    tap.ok(dead.stderr.endswith("Connection refused\n") and 1.5 < took, "but not for ever", dead, took)


def restarted(tap):
    """Restart the daemon during a run whose log is followed."""
    with Daemon() as d:
        job = Command(d.start())
        job("add", "twice", "--retry=1", "--", "sh", "-c", "echo $TWHEEL_ATTEMPT; [ $TWHEEL_ATTEMPT = 2 ] || sleep 1000")
        run = job("run", "twice").stdout.strip()
        until(lambda: job("log", run).stdout)
        with subprocess.Popen([f"{PROGRAMS}/twheel-job", "log", run, "-f"], env=job.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as follower:
            first = follower.stdout.readline()
            d.stop()
            d.start()
            tap.same([first, *follower.communicate(timeout=60), follower.returncode], ["1\n", "2\n", "", 0],
                     "log -f goes on if the daemon is restarted")


def words(tap, job, d):
    def wrong(*args):
        done = job(*args)
        return done.returncode == 1 and not done.stdout and "Try 'twheel job --help'" in done.stderr

    tap.ok(wrong() and wrong("fly") and wrong("ls", "--wait") and wrong("show") and wrong("rm", "a", "b") and
           wrong("--every=1s") and wrong("ls", "-f"), "bad commands and options")
    tap.ok(job("--help").stdout.startswith("Usage: twheel job add") and job("ls", "-h").returncode == 0, "--help")
    done = job("ls", "--socket=/nowhere")
    tap.same(done.stderr, "twheel job: cannot talk to twheeld at '/nowhere': No such file or directory\n", "--socket")
    tap.same(done.stdout, "", "ls: no daemon, no header")
    done = [job("show", "a" * n) for n in (33000, 65535, 130000)] + [job("put", "-", stdin=json.dumps({"name": "x", "exec": ["x"], "input": "x" * 1100000}))]
    tap.same([d.stderr for d in done], ["twheel job: the request is too long\n"] * 3 + ["twheel job: the body is longer than 1048576 bytes\n"], "what is too long")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([f"{PROGRAMS}/twheel-job", "ls"], env=job.env, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    tap.ok(done.returncode == 1 and "write error" in done.stderr, "output that cannot be written", done)
    tap.same(d.stop(), 0, "the daemon ends")
    tap.ok(not d.unsound(), "the daemon was sound", d.unsound())


def main():
    tap = Tap(110)
    with Daemon() as d:
        job = Command(d.start())
        jobs(tap, job)
        runs(tap, job)
        unnamed(tap, job)
        dues(tap, d, job)
        machines(tap, job)
        pauses(tap, job, d)
        missed(tap, job, d)
        crontabs(tap, job, d)
        times(tap, job)
        controls(tap, job)
        words(tap, job, d)
    starting(tap)
    restarted(tap)
    tap.done()


sys.exit(main())
