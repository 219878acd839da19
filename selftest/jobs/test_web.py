#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""What twheeld sends: jobs that are HTTP requests, and alarms by mail and by HTTP request."""
import contextlib
import ctypes
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from daemon import Command, Daemon, Tap, alive, free_port, stats, until
from remote import TOKENS, Remote, Runner

CLONE_NEWNET = 0x40000000
LEASE = 1


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps what it gets: (path, headers, body). Answers with the next status that @answers has for the path."""
    daemon_threads = True

    def __init__(self, handler=None):
        self.got, self.answers, self.waits = [], {}, threading.Event()
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def of(self, path):
        return [g for g in self.got if g[0] == path]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        size = int(self.headers["Content-Length"])
        self.server.got.append((self.path, self.headers, self.rfile.read(size).decode()))
        statuses = self.server.answers.get(self.path, [200])
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if status in ("wait", "wait202"):
            self.server.waits.wait(60)
            status = 202 if status == "wait202" else 200
        if status == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                return
        if status == "close":
            self.connection.close()
            return
        try:
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(f"answer {status}\n".encode() if status != "big" else b"")
        except OSError:
            pass

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


def run(d, name, **shot):
    answer = d.post(f"/v1/jobs/{name}/shots", [{"after": 0, **shot}]) if shot else d.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def over(d, key):
    until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "over" and not r["more"]])
    return [(r["attempt"], r["outcome"], r.get("status")) for r in reversed(d.get(f"/v1/runs/{key}")) if r["state"] == "over"]


# ---- requests -------------------------------------------------------------------------------------

def requests(tap, d, web):
    d.put("plain", http=f"{web.url}/plain", headers={"X-Mine": "yes"})
    key = run(d, "plain", arg="ä b\n%")
    done = over(d, key)
    (_, headers, body), = web.of("/plain")
    at = d.get(f"/v1/runs/{key}")[0]["at"]
    want = {"Idempotency-Key": key, "Twheel-Key": key, "Twheel-Job": "plain", "Twheel-At": at, "Twheel-Attempt": "1",
            "Twheel-Missed": "0", "Twheel-Arg": "%C3%A4%20b%0A%25", "Content-Type": "application/json", "X-Mine": "yes"}
    tap.same([done, {k: headers.get(k) for k in want}, json.loads(body)],
             [[(1, "ok", 200)], want, {"job": "plain", "run": key, "at": at, "attempt": 1, "missed": 0, "arg": "ä b\n%"}],
             "a request with what a run is told")
    tap.same(d.output(key), "answer 200\n", "the answer is in the log")
    web.answers["/gone"] = [404]
    d.put("gone", http=f"{web.url}/gone")
    job = Command(d)
    tap.same([job("run", name, "--wait").returncode for name in ("plain", "gone")], [0, 1],
             "run --wait: no process exits with the status of an answer")
    d.put("input", http=f"{web.url}/input", input="x=1", headers={"Content-Type": "text/x"})
    over(d, run(d, "input"))
    tap.same([(g[1]["Content-Type"], g[2]) for g in web.of("/input")], [("text/x", "x=1")], "input")
    d.put("typed", http=f"{web.url}/typed", headers={"content-type": "text/y", "X-Empty": "", "X-Blank": " "})
    over(d, run(d, "typed"))
    (_, headers, _), = web.of("/typed")
    tap.same([headers.get_all("Content-Type"), headers.get("X-Empty"), headers.get("X-Blank")], [["text/y"], "", ""],
             "a job without input may say of what type its body is, and headers may be empty")
    web.answers["/retry"] = [503, 404, 201]
    d.put("retry", http=f"{web.url}/retry", retry={"times": 3, "wait": "10ms"})
    key = run(d, "retry")
    tap.same([over(d, key), [g[1]["Idempotency-Key"] for g in web.of("/retry")], [g[1]["Twheel-Attempt"] for g in web.of("/retry")]],
             [[(1, "failed", 503), (2, "failed", 404), (3, "ok", 201)], [key] * 3, ["1", "2", "3"]], "retries have the same key")
    web.answers.update({"/moved": [302], "/close": ["close"]})
    d.put("moved", http=f"{web.url}/moved")
    d.put("close", http=f"{web.url}/close")
    d.put("nobody", http=f"http://127.0.0.1:{free_port()}/")
    d.put("noname", http="http://nowhere.invalid/")
    keys = [run(d, name) for name in ("moved", "close", "nobody", "noname")]
    tap.same([over(d, k)[0][1:] for k in keys], [("failed", 302)] + [("failed", None)] * 3, "what fails")
    texts = [d.output(k) for k in keys[1:]]
    tap.ok(all(t.startswith("twheeld: http://") and t.count("\n") == 1 for t in texts) and not web.of("/elsewhere"), "and why", texts)
    web.answers.update({"/slow": ["wait"]})
    d.put("slow", http=f"{web.url}/slow", timeout="0.2s")
    d.put("kill", http=f"{web.url}/slow")
    keys = [run(d, "slow"), run(d, "kill")]
    until(lambda: len(web.of("/slow")) == 2)
    d.post(f"/v1/runs/{keys[1]}/kill")
    tap.same([over(d, k) for k in keys], [[(1, "timeout", None)], [(1, "killed", None)]], "timeout and kill")
    web.waits.set()


def accepted(tap, d, web):
    web.answers["/later"] = [202]
    d.put("later", http=f"{web.url}/later", retry={"times": 2, "wait": "10ms"})
    key = run(d, "later")
    done = f"/v1/runs/{key}/done?attempt="

    def is_out(attempt):
        return until(lambda: len(web.of("/later")) == attempt and
                     [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "running" and r["attempt"] == attempt])

    is_out(1)
    status = until(lambda: (a := d.ask("POST", f"{done}1&status=3", "because\n", token=TOKENS["run"])[0]) != 503 and a)
    other = [d.ask("POST", f"{done}1&{end}", token=TOKENS["run"])[0] for end in ("status=0", "lost=1")]
    is_out(2)
    # Until a turn has ended the first attempt, the same end may be reported again: the answer is 200, and nothing changes.
    old = until(lambda: (a := d.ask("POST", f"{done}1&status=3", token=TOKENS["run"])[0]) != 200 and a)
    tap.same([status, old, d.output(key, attempt=1)], [200, 409, "answer 202\nbecause\n"], "202: the end is told later, and counts for its attempt")
    tap.same(other, [409, 409], "202: another end of it is refused")
    until(lambda: d.ask("POST", f"/v1/runs/{key}/beat?attempt=2", "so far\n", token=TOKENS["run"])[0] == 200)
    d.kill()
    d.start()
    time.sleep(3 * LEASE + 1.5)
    states = [(r["state"], r["attempt"]) for r in d.get(f"/v1/runs/{key}")]
    status = d.ask("POST", f"{done}2&status=0", token=TOKENS["run"])[0]
    tap.same([states, status, over(d, key), len(web.of("/later"))],
             [[("running", 2), ("over", 1)], 200, [(1, "failed", 3), (2, "ok", 0)], 2], "202: that survives the daemon, and silence")
    keys = [run(d, "later"), None]
    until(lambda: len(web.of("/later")) == 3 and [r for r in d.get(f"/v1/runs/{keys[0]}") if r["state"] == "running"])
    time.sleep(0.2)
    d.post(f"/v1/runs/{keys[0]}/kill")
    tap.same([over(d, keys[0])[0][1], d.ask("POST", f"/v1/runs/{keys[0]}/done?attempt=1&status=0", token=TOKENS["run"])[0]],
             ["killed", 409], "202: what was killed cannot be done")
    web.answers["/mixed"] = [202, 200]
    d.put("mixed", http=f"{web.url}/mixed", retry={"times": 1, "wait": "4s"})
    key = run(d, "mixed")
    until(lambda: d.ask("POST", f"/v1/runs/{key}/done?attempt=1&status=1", token=TOKENS["run"])[0] == 200)
    over(d, key)
    d.put("forever", http=f"{web.url}/later", timeout="0.5s")
    key = run(d, "forever")
    tap.same(over(d, key)[0][1], "timeout", "202: the timeout counts")


# ---- alarms ---------------------------------------------------------------------------------------

def metric(d, name):
    text = d.ask("GET", "/metrics")[1].decode()
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)[1])


def alarms(tap, d, web):
    to = [f"{web.url}/alarm", "mailto:ops@example.org"]
    d.put("bad", exec=["/bin/sh", "-c", "exit 4"], retry={"times": 1, "wait": "10ms"}, alarm={"fail": to})
    key = run(d, "bad")
    over(d, key)
    mails = until(lambda: d.lines("mail") and len(web.of("/alarm")) == 1 and mail_of(d))
    told = json.loads(web.of("/alarm")[0][2])
    tap.same([told.get(k) for k in ("job", "run", "attempt", "what", "status", "text")], ["bad", key, 2, "failed", 4, "job bad: failed"],
             "an alarm by a request, when the last attempt has failed")
    tap.ok(mails.startswith("-i -- ops@example.org\nTo: ops@example.org\nSubject: twheeld: job bad: failed\n") and key in mails,
           "and by mail", mails)
    for every in (3, 6, 12, 24):
        in_time, texts = often(d, web, f"often{every}", every)
        if in_time:
            break
    tap.same([in_time, texts], [True, [f"job often{every}: failed", f"job often{every}: 5 more alarms"]], "then one for all that follows")
    d.put("good", exec=["true"], alarm={"fail": to})
    d.put("waits", exec=["true"], pool="nobody", alarm={"fail": to[:1], "late": "0.3s"})
    over(d, run(d, "good"))
    key = run(d, "waits")
    told = until(lambda: [json.loads(g[2]) for g in web.of("/alarm") if "waits" in g[2]])
    tap.same([(t["run"], t["what"]) for t in told], [(key, "late")], "a run that does not begin in time")
    d.post(f"/v1/runs/{key}/kill")
    d.put("patient", exec=["true"], pool="nobody", alarm={"fail": to[:1], "late": "100000d"})
    run(d, "patient")
    d.put("slow", exec=["sleep", "100"], timeout="0.1s", stop="0.1s", alarm={"fail": to[:1]})
    over(d, run(d, "slow"))
    told = until(lambda: [json.loads(g[2]) for g in web.of("/alarm") if '"slow"' in g[2]])
    tap.same([t["what"] for t in told], ["timeout"], "a run that takes too long")
    tap.ok(not [g for g in web.of("/alarm") if '"good"' in g[2] or '"patient"' in g[2]], "none of what goes well, or has time")
    tap.ok(until(lambda: metric(d, 'twheeld_alarms_total{result="sent"}') >= 6), "they are counted")
    web.answers["/refuses"] = [500]
    d.put("deaf", exec=["false"], alarm={"fail": [f"{web.url}/refuses"]})
    over(d, run(d, "deaf"))
    failed = until(lambda: metric(d, 'twheeld_alarms_total{result="failed"}') == 1)
    tap.ok(failed and len(web.of("/refuses")) == 3 and "/refuses: job deaf: failed: status 500" in d.stderr(),
           "one that cannot be delivered is tried three times, counted, and said", failed, len(web.of("/refuses")), d.stderr())


def often(d, web, name, every):
    """Let a job fail six times in fewer seconds than are between its alarms. Returns whether the host was fast
    enough for that, and the texts of the alarms."""
    def told():
        return [t for t in (json.loads(g[2]) for g in web.of("/alarm")) if t["job"] == name]

    d.put(name, exec=["false"], alarm={"fail": [f"{web.url}/alarm"], "every": f"{every}s"})
    began = time.monotonic()
    for _ in range(6):
        over(d, run(d, name))
    in_time = time.monotonic() - began < every
    until(lambda: sum(t.get("more", 1) for t in told()) == 6)
    return in_time, [t["text"] for t in told()]


def many_mails(tap):
    """A job sends 300 mails, and sendmail takes long. The daemon has few descriptors. Another job's mail must not wait."""
    with Remote() as d:
        sendmail = d.sendmail(f"echo $3 >>{d.dir}/mail\ncase $3 in many*) while ! [ -e {d.dir}/go ]; do sleep 0.1; done; esac")
        d.command = ["prlimit", "--nofile=256:256", *d.command]
        d.start("--runs=4", sendmail)
        to = [f"mailto:many{n}@example.org" for n in range(300)]
        d.put("many", exec=["false"], alarm={"fail": to})
        d.put("few", exec=["false"], alarm={"fail": ["mailto:few@example.org"]})
        over(d, run(d, "many"))
        over(d, run(d, "few"))
        until(lambda: ["few@example.org"] in d.lines("mail"))
        begun, files = d.lines("mail"), len(os.listdir(f"/proc/{d.process.pid}/fd"))
        tap.ok(["few@example.org"] in begun and len(begun) < 9 and files < 64, "many mails hold up neither others nor descriptors", begun, files)
        os.mknod(f"{d.dir}/go")
        sent = until(lambda: metric(d, 'twheeld_alarms_total{result="sent"}') == 301, 120)
        tap.same([sent, len(d.lines("mail")), "cannot send" in d.stderr()], [True, 301, False], "each is sent", d.stderr())
        os.unlink(f"{d.dir}/go")
        d.put("many", exec=["false"], alarm={"fail": to})
        d.put("again", exec=["false"], alarm={"fail": to[:5]})
        over(d, run(d, "again"))
        tap.same([d.stop(), d.stderr().count("the daemon ends"), d.unsound()], [0, 3, ""], "what could not be sent when the daemon ends is said", d.stderr())
        os.mknod(f"{d.dir}/go")


def closed(tap, web):
    """One job has more alarms than may wait. Nobody listens at their addresses, so they soon wait for their
    next try. Another job's alarm must be sent nevertheless."""
    with Remote() as d:
        d.start()
        port = free_port()
        d.put("many", exec=["false"], alarm={"fail": [f"http://127.0.0.1:{port}/{n}" for n in range(4000)], "every": "1ms"})
        d.put("one", exec=["false"], alarm={"fail": [f"{web.url}/one"]})
        for _ in range(4):
            over(d, run(d, "many"))
            time.sleep(0.1)     # so that the pause between two alarms is over
        until(lambda: "too many wait" in d.stderr())
        time.sleep(2)
        run(d, "one")
        tap.ok(until(lambda: web.of("/one")), "an alarm has a place, though those of another job wait for their next try", d.stderr()[-500:])


def deaf(tap, web):
    """Three jobs have alarms for addresses that do not answer, more than may wait, and a fourth thousands of mails that cannot be
    sent. Neither requests nor another job's alarm must wait."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server, Remote() as d:
        d.start("--sendmail=/nonexistent")
        for n in range(3):
            d.put(f"web{n}", exec=["false"], alarm={"fail": [f"http://127.0.0.1:{server.getsockname()[1]}/{k}" for k in range(4000)]})
        d.put("mail", exec=["false"], alarm={"fail": [f"mailto:a{k}@example.org" for k in range(4000)]})
        for name in ("web0", "web1", "web2", "mail"):
            over(d, run(d, name))
        longest = 0
        for _ in range(100):
            began = time.monotonic()
            d.get("/v1/jobs?limit=1")
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.05)
        tap.ok(longest < 2, "very many alarms hold up no request", longest)
        d.put("few", exec=["false"], alarm={"fail": [f"{web.url}/few"]})
        over(d, run(d, "few"))
        lines = [line for line in d.stderr().split("\n") if "too many wait" in line]
        tap.ok(until(lambda: web.of("/few")) and 0 < len(lines) < 20, "nor do they take the place of another job's", lines[:3], len(lines))
        tap.same([d.stop(), d.unsound()], [0, ""], "and the daemon ends in time, and is sound")


def accepted_full(tap, web):
    """The disk is full when a receiver accepts a run (202). Until there is room, its reports are refused, and
    the run is not over."""
    with Remote() as d:
        flag = f"{d.dir}/full"
        d.start(TWHEELD_LOSSY="1", TWHEELD_FULL=flag)
        web.waits.clear()
        web.answers["/full"] = ["wait202"]
        d.put("full", http=f"{web.url}/full")
        key = run(d, "full")
        until(lambda: web.of("/full"))
        os.mknod(flag)
        web.waits.set()
        time.sleep(2)
        states = [r["state"] for r in d.get(f"/v1/runs/{key}")]
        early = [d.ask("POST", f"/v1/runs/{key}/{what}", token=TOKENS["run"])[0] for what in ("done?attempt=1&status=0", "beat?attempt=1")]
        os.unlink(flag)
        status = until(lambda: (a := d.ask("POST", f"/v1/runs/{key}/done?attempt=1&status=0", token=TOKENS["run"])[0]) != 503 and a)
        tap.same([states, early, status, over(d, key), d.stop(), d.unsound()], [["running"], [503, 503], 200, [(1, "ok", 0)], 0, ""],
                 "202: also while the disk is full")


RETRY = {"times": 1, "wait": "2s"}


@contextlib.contextmanager
def two_runners():
    with Remote("--lease=2s") as d, Runner("p", d, name="one") as one, Runner("p", d, name="two") as two:
        d.start(), one.start(), two.start()
        until(lambda: len(d.get("/v1/runners")) == 2)
        yield d, one, two


def whole(tap, web):
    """One of two runners fails in its part of a run. Then the job becomes an HTTP request. When the receiver accepts the
    next attempt and reports its end, the run must be over."""
    with two_runners() as (d, one, two):
        web.answers["/whole"] = [202]
        got = []
        for nr, status in enumerate(("$TWHEEL_SHARD", "$((1 - TWHEEL_SHARD))"), 1):     # the first part succeeds, or the second
            d.put("j", exec=["/bin/sh", "-c", f"exit {status}"], pool="p", each=True, retry=RETRY)
            key = run(d, "j")
            until(lambda key=key: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "over"])
            d.put("j", http=f"{web.url}/whole", retry=RETRY)
            until(lambda nr=nr: len(web.of("/whole")) == nr)
            time.sleep(1)       # so that the daemon looks at what has become of the parts
            got.append(d.ask("POST", f"/v1/runs/{key}/done?attempt=2&status=0", token=TOKENS["run"])[0])
            got.append(over(d, key))
        tap.same([got, one.stop(), two.stop(), d.stop(), d.unsound()], [[200, [(1, "failed", 1), (2, "ok", 0)]] * 2, 0, 0, 0, ""],
                 "202: a run that was in parts is over as a whole", d.query("SELECT * FROM task"))


def in_parts(tap, web):
    """A receiver accepts a run, and reports that it has failed. Then the job becomes a command with "each": the
    next attempt must have a part for each runner."""
    with two_runners() as (d, one, two):
        web.answers["/parts"] = [202]
        d.put("j", http=f"{web.url}/parts", retry=RETRY)
        key = run(d, "j")
        until(lambda: d.ask("POST", f"/v1/runs/{key}/done?attempt=1&status=1", token=TOKENS["run"])[0] == 200)
        d.put("j", exec=["/bin/sh", "-c", f"echo $TWHEEL_SHARD $TWHEEL_SHARDS >>{d.dir}/parts"], pool="p", each=True, retry=RETRY)
        tap.same([over(d, key), sorted(d.lines("parts")), one.stop(), two.stop(), d.stop(), d.unsound()],
                 [[(1, "failed", 1), (2, "ok", 0)], [["0", "2"], ["1", "2"]], 0, 0, 0, ""],
                 "202: the next attempt may be in parts", d.query("SELECT * FROM task"))


def endless(tap, web):
    """Receivers of requests and alarms say 200, but their answers do not end."""
    with Remote() as d:
        d.start()
        web.answers["/endless"] = ["endless"]
        for n in range(8):
            d.put(f"web{n}", http=f"{web.url}/endless")
            d.put(f"alarm{n}", exec=["false"], alarm={"fail": [f"{web.url}/endless"]})
        keys = [run(d, f"web{n}") for n in range(8)]
        for n in range(8):
            run(d, f"alarm{n}")
        done = [over(d, key) for key in keys]
        sent = until(lambda: metric(d, 'twheeld_alarms_total{result="sent"}') == 8)
        tap.same([done, sent, d.stop(), d.unsound()], [[[(1, "ok", 200)]] * 8, True, 0, ""], "of an answer that does not end, the status counts")


def silent_names(tap):
    """A name server does not answer. If a request gives up waiting for it, nobody else must be held up by that."""
    what = "a name server that does not answer holds up nobody else"
    if os.geteuid():
        tap.ok(True, f"{what} # SKIP only for root")
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, Remote() as d:
        server.bind(("127.9.9.53", 53))
        for name, text in (("resolv", "nameserver 127.9.9.53\noptions timeout:5 attempts:2\n"), ("nsswitch", "hosts: files dns\n")):
            with open(f"{d.dir}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        mounts = f"mount --bind {d.dir}/resolv /etc/resolv.conf; mount --bind {d.dir}/nsswitch /etc/nsswitch.conf"
        d.command = ["unshare", "-m", "/bin/sh", "-c", f"{mounts}; exec \"$@\"", "sh", *d.command]
        d.start()
        for n in range(3):      # a busy host may delay one run, but hardly all of them
            d.put(f"asks{n}", http="http://somewhere.example.org/", timeout="1s")
            key = run(d, f"asks{n}")
            began = time.monotonic()
            done = over(d, key)
            took = time.monotonic() - began
            if took < 4:
                break
        tap.ok(done == [(1, "timeout", None)] and took < 4 and not d.unsound(), what, done, took, d.unsound())


class Keeping(Handler):
    """Keeps a connection for further requests, but closes it without an answer at the second request with
    "good" in the path, and at each with "gone"."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.client_address, self.headers["Idempotency-Key"]))
        self.close_connection = "gone" in self.path or "good" in self.path and [a for a, _ in self.server.got].count(self.client_address) > 1
        if not self.close_connection:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()


class Stubborn(Receiver):
    """A receiver that does not close a connection when the client asks for that."""

    def __init__(self):
        super().__init__(Keeping)

    def handle_error(self, request, client_address):
        """Print nothing: the client resets each connection."""


def sent_once(tap):
    """Receivers keep connections, or close them without an answer. Whatever libcurl would do, the daemon must
    send each attempt once, on a connection of its own."""
    with Daemon() as d, Stubborn() as web:
        d.start()
        for name in ("good", "gone"):
            d.put(name, http=f"{web.url}/{name}")
        keys, ends = [], []
        for name in ("good", "good", "good", "gone", "gone"):
            over(d, run(d, "good"))
            keys.append(run(d, name))
            ends.append(over(d, keys[-1]))
        got = [sum(1 for _, key in web.got if key == wanted) for wanted in keys]
        tap.same([ends, got], [[[(1, "ok", 200)]] * 3 + [[(1, "failed", None)]] * 2, [1] * 5], "an attempt is sent once, if its receiver gives no answer", web.got)
        tap.same(len({address for address, _ in web.got}), len(web.got), "each attempt has a connection of its own")
        web.shutdown()


class Hasty(Handler):
    """Answers a request at once, and reads its body later."""
    protocol_version = "HTTP/1.1"       # by HTTP/1.0 it would announce the connection's end, and libcurl would stop sending

    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.waits.wait(60)
        with contextlib.suppress(ConnectionResetError):
            self.server.got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))


def read_later(tap):
    """A receiver answers before it reads a request. It must get all of it, whether or not its kernel has room for all."""
    with Daemon() as d, Receiver(Hasty) as web:
        d.start()
        sizes = {"/small": 1000, "/big": 1000000}
        for path, size in sizes.items():
            d.put(path[1:], http=web.url + path, input="x" * size)
            d.post(f"/v1/jobs{path}/run")
            d.over(path[1:])
        web.waits.set()
        until(lambda: len(web.got) == 2)
        tap.same([{path: len(body) for path, body in web.got}, d.stop(), d.unsound()], [sizes, 0, ""], "a receiver may answer before it reads")
        web.shutdown()


def in_its_own_network(tap, what, settings, test):
    """Call @test in a network namespace with these @settings of IPv4."""
    if os.geteuid():
        tap.ok(True, f"{what} # SKIP only for root")
        return

    def there():
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        for name, value in settings.items():
            with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:
                file.write(value)
        test()

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()


class Early(Handler):
    """Answers when it has read the headers. The path says what it does then, see answered_early()."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        what = self.path[1:]
        self.send_response(500 if what == "reads" else 200)
        self.send_header("Transfer-Encoding", "chunked")
        self.flush_headers()
        self.wfile.write(b"X-Folded: a\r\n \n:\n\r\n")
        self.wfile.write(b"4\r\nhere\r\n" + (b"0\r\n\r\n" if what != "breaks" else b""))
        if what == "stands":
            self.server.waits.wait(60)
        time.sleep(0.5)
        if what == "reads":
            self.server.got.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
        self.close_connection = True


def answered_early(tap):
    """The daemon's kernel has room for only a part of a request when the receiver answers. If the receiver
    "reads", it must get the rest. If it "closes" the connection or "stands" still, its answer must count; if it
    "breaks" the answer off, there must be no status."""
    what = "a request that is answered early is sent to its end, unless nobody reads it"
    names = "reads", "closes", "stands", "breaks"

    def early():
        with Daemon() as d, Receiver(Early) as web:
            d.start()
            for name in names:
                d.put(name, http=f"{web.url}/{name}", input="x" * 1000000)
                d.post(f"/v1/jobs/{name}/run")
            rows = [row for name in names for row in d.over(name)]
            until(lambda: web.got)
            tap.same([web.got, [(r.get("status"), d.output(r["run"]) == "here") for r in rows], d.stop(), d.unsound()],
                     [[1000000], [(500, True), (200, True), (200, True), (None, False)], 0, ""], what)
            web.waits.set()
            web.shutdown()

    in_its_own_network(tap, what, {"tcp_wmem": "4096 16384 16384", "tcp_rmem": "4096 16384 16384"}, early)


def few_ports(tap):
    """The daemon sends 400 requests to one address, but has only 100 ports. If it closed a connection first,
    the port would be in use for a minute."""
    what = "requests use up no ports"

    def many():
        with Daemon() as d, Stubborn() as web:
            d.start("--runs=8")
            d.put("j", http=f"{web.url}/ports", overlap="allow")
            d.post("/v1/jobs/j/shots", [{"after": 0}] * 400)
            rows = d.over("j", 400)
            failed = [d.output(r["run"]) for r in rows if r["outcome"] != "ok"]
            tap.same([len(rows), failed, d.stop(), d.unsound()], [400, [], 0, ""], what, d.stderr())
            web.shutdown()

    in_its_own_network(tap, what, {"ip_local_port_range": "40000 40099", "tcp_tw_reuse": "0"}, many)


class Late(Handler):
    """Accepts a run when the daemon is already ending."""

    def do_POST(self):
        self.server.got.append(self.path)
        self.server.waits.wait(60)
        self.send_response(202)
        self.end_headers()


def accepted_late(tap):
    """The daemon ends. A run is accepted before the daemon would end it, while another run keeps the daemon there
    for longer. The daemon must not end the accepted run."""
    with Daemon() as d, Receiver(Late) as web:
        d.command = ["setsid", *d.command]      # the daemon may end its process group, which must not be ours
        d.start()
        d.put("late", http=web.url)
        d.put("long", exec=["/bin/sh", "-c", f"trap '' TERM; echo >{d.dir}/began; sleep 1234 & wait; wait; sleep 1234"], stop="13s")
        for name in ("late", "long"):
            d.post(f"/v1/jobs/{name}/run")
        until(lambda: web.got and os.path.exists(f"{d.dir}/began"))
        d.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        web.waits.set()
        tap.same([d.process.wait(60), d.unsound()], [0, ""], "a run that is accepted while the daemon ends is not ended")
        web.shutdown()


def by_proxy(tap, web):
    """A daemon must use the proxy that its environment names. A runner's environment names one that is not there; since
    the runner talks to a socket, it must not use the proxy."""
    with Daemon(http_proxy=web.url, no_proxy="127.0.0.1") as d:
        d.start()
        for name, url in (("far", "http://twheel.invalid/by_proxy"), ("near", f"{web.url}/by_no_proxy")):
            d.put(name, http=url)
            over(d, run(d, name))
        tap.same([len(web.of(path)) for path in ("http://twheel.invalid/by_proxy", "/by_no_proxy")], [1, 1],
                 "requests go by the proxy that the environment names")
        with Daemon(f"--runner={d.socket}", "--pool=p", http_proxy=f"http://127.0.0.1:{free_port()}") as runner:
            runner.start(wait=False)
            d.put("pool", exec=["true"], pool="p")
            tap.same(over(d, run(d, "pool")), [(1, "ok", 0)], "but those of a runner by a socket do not", runner.stderr())


def away(tap, web):
    """The daemon is away, or stopped, when a run should begin. The run must begin when the daemon is back, with
    an alarm that it is late."""
    with Daemon() as d:
        d.start()
        alarm = {"fail": [f"{web.url}/away"], "late": "0.5s"}
        d.put("down", exec=["true"], after="0.5s", alarm=alarm)
        d.stop()
        time.sleep(1.5)
        d.start()
        d.put("stopped", exec=["true"], after="0.5s", alarm=alarm)
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        d.process.send_signal(signal.SIGCONT)
        for name in ("down", "stopped"):
            d.over(name)
        until(lambda: len(web.of("/away")) == 2)
        told = [json.loads(g[2]) for g in web.of("/away")]
        tap.same([(t["job"], t["what"]) for t in told], [("down", "late"), ("stopped", "late")], "a run that was late because the daemon was away")


def hung_mail(d, nr, who="hang"):
    """Let job @who send a mail with a sendmail that does not end. Returns the process of that sendmail, the @nr-th."""
    d.put(who, exec=["false"], alarm={"fail": [f"mailto:{who}@example.org"]})
    over(d, run(d, who))
    return int(until(lambda: len(lines := d.lines("hangs")) >= nr and lines[nr - 1][0]))


def parent_of(pid):
    return int(stats(pid)[1])


def descriptors(pid):
    """Returns the targets of the descriptors of the process and its parent."""
    return [os.readlink(f"/proc/{p}/fd/{fd}") for p in (pid, parent_of(pid)) for fd in os.listdir(f"/proc/{p}/fd")]


def wordy(tap):
    """sendmail prints much, and opens its standard error anew, as a shell does for a redirection. The daemon
    must print the beginning, and sendmail must not wait."""
    with Daemon() as d:
        d.start(d.sendmail(f"set -e; echo a word >/dev/stderr; seq 200000; seq 200000 >&2; cat >>{d.dir}/mail"))
        d.put("j", exec=["false"], alarm={"fail": ["mailto:root@localhost"]})
        d.post("/v1/jobs/j/run")
        told = until(lambda: "sendmail, to mailto:root@localhost: a word\n" in d.stderr())
        tap.same([told, len(d.lines("mail")) > 0, d.stop(), d.unsound()], [True, True, 0, ""], "what sendmail prints is told, and nothing waits for it", d.stderr())


def left_behind(tap):
    """sendmail leaves a process behind. When sendmail has ended, that process must not be able to print."""
    with Daemon() as d:
        d.start(d.sendmail(f"cat >/dev/null; (setsid sh -c 'sleep 2; head -c 100M /dev/zero; echo $? >{d.dir}/left' &)"))
        d.put("j", exec=["false"], alarm={"fail": ["mailto:root@localhost"]})
        d.post("/v1/jobs/j/run")
        tap.same([until(lambda: d.lines("left")), d.stop(), d.unsound()], [[["1"]], 0, ""], "what sendmail has left can print nothing more", d.stderr())


def is_over(pid, seconds=90):
    return until(lambda: not alive(pid), seconds)


def mail_of(d):
    with open(f"{d.dir}/mail", encoding="utf-8") as file:
        text = file.read()
    return text if text.endswith("END\n") else None


def main():
    tap = Tap(53)
    web = Receiver()
    with Remote(f"--lease={LEASE}s") as d:
        d.args = (*d.args, d.sendmail(f"case $3 in hang@*|stands@*) echo $$ >>{d.dir}/hangs; sleep 1234;; leaves@*) echo $$ >>{d.dir}/hangs; exec setsid sleep 1234;;\n"
                                      f"forks@*) (setsid sh -c 'echo $$ >>{d.dir}/hangs; sleep 1234' &); sleep 1234; esac\n"
                                      f"(echo \"$@\"; cat; echo END) >>{d.dir}/mail"))
        d.start()
        requests(tap, d, web)
        left = hung_mail(d, 1)
        tap.same([f for f in descriptors(left) if "socket:" in f or f"{d.dir}/state" in f], [], "sendmail has none of the daemon's descriptors")
        accepted(tap, d, web)
        late = hung_mail(d, 2)
        gone = hung_mail(d, 3, "leaves")
        orphan = hung_mail(d, 4, "forks")
        stood = hung_mail(d, 5, "stands")
        os.kill(parent_of(stood), signal.SIGSTOP)
        apart = until(lambda: os.getpgid(gone) == gone)
        alarms(tap, d, web)
        tap.ok(is_over(late), "a sendmail that does not end is ended", d.stderr())
        tap.ok(apart and is_over(gone), "and so is one that has left its group", apart)
        tap.ok(is_over(orphan), "and so is what one has begun in a session of its own")
        tap.ok(is_over(left), "and so is one whose daemon was killed")
        time.sleep(2)
        keeper = parent_of(stood)
        os.kill(keeper, signal.SIGCONT)
        tap.ok(is_over(stood, 30), "and so is one whose keeper stood still for the whole minute", [stats(keeper), stats(stood), d.stderr()])
        time.sleep(4)
        tap.same([d.stop(), d.unsound()], [0, ""], "the daemon ends, and was sound")
        tap.same(d.query("SELECT id, attempt, runner FROM task WHERE pool IS NULL"), [], "no row is left of requests that were accepted")
    many_mails(tap)
    wordy(tap)
    left_behind(tap)
    closed(tap, web)
    deaf(tap, web)
    whole(tap, web)
    in_parts(tap, web)
    endless(tap, web)
    accepted_full(tap, web)
    silent_names(tap)
    sent_once(tap)
    read_later(tap)
    answered_early(tap)
    few_ports(tap)
    accepted_late(tap)
    by_proxy(tap, web)
    away(tap, web)
    tap.done()


main()
