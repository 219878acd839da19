#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""twheeld by TCP: tokens and what they allow, clients of every bad kind, none of which keeps the daemon from firing; what the
daemon counts, which parts it owns, and clients that follow logs."""
import concurrent.futures
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time

from daemon import PROGRAMS, Tap, settled, until
from remote import TOKENS, Remote, write_tokens


def errors(answers):
    """Returns whether each answer has one clear message, in one line."""
    return all(isinstance(a, dict) and a["error"] and "\n" not in a["error"] for _, a in answers)


# ---- tokens ---------------------------------------------------------------------------------------

# The requests that each token allows. The token "all" allows all of them.
FOR = {"read": ("GET /v1/jobs", "GET /v1/jobs/x", "GET /v1/runs", "GET /v1/runs/1-1", "GET /v1/runs/1-1/log", "GET /v1/plan", "GET /metrics",
                "GET /v1/preview?cron=@daily", "GET /v1/days/x", "GET /v1/runners", "GET /v1/nodes"),
       "run": ("POST /v1/take", "POST /v1/runs/1-1/beat", "POST /v1/runs/1-1/done"),
       "all": ("POST /v1/jobs", "PUT /v1/jobs/x", "DELETE /v1/jobs/x", "POST /v1/jobs/x/run", "POST /v1/jobs/x/pause", "POST /v1/jobs/x/resume",
               "POST /v1/jobs/x/shots", "DELETE /v1/jobs/x/shots/k", "POST /v1/runs/1-1/kill", "PUT /v1/days/x")}


def tokens(tap, d):
    wrong = [None, "a" * 31, "a" * 33, "A" * 32, "r" * 31 + "x", "", "a" * 5000]
    answers = [d.ask(method, path, token=token) for token in wrong
               for method, path in (("GET", "/v1/jobs"), ("PUT", "/v1/jobs/x"), ("GET", "/metrics"), ("GET", "/nowhere"))]
    tap.ok({s for s, _ in answers} == {401} and errors(answers), "without the right token nothing is answered", *answers)
    said = {token: d.ask("GET", "/v1/jobs", token=token)[1]["error"] for token in (None, "a" * 31)}
    tap.ok("expected a token" in said[None] and "not known" in said["a" * 31], "it is said whether there was a token", said)
    definition = {"exec": ["true"]}
    requests = {"read": ("GET", "/v1/jobs"), "write": ("PUT", "/v1/jobs/x", definition), "kill": ("POST", "/v1/runs/1-1/kill")}
    got = {name: [d.ask(*r, token=token)[0] for r in requests.values()] for name, token in TOKENS.items()}
    tap.same(got, {"all": [200, 200, 404], "read": [200, 403, 403], "run": [403, 403, 403]}, "what each token is for")
    asked = [(name, who, request, d.ask(*request.split(), token=token)[0]) for name, token in TOKENS.items()
             for who, requests in FOR.items() for request in requests]
    wrong = [a for a in asked if (a[3] == 403) != (a[0] not in ("all", a[1]))]
    tap.ok(not wrong, "and of each other request, too", *wrong)
    for scheme in ("bearer", "Basic", "Bearer  "):
        status = d.ask("GET", "/v1/jobs", token=None, Authorization=f"{scheme} {TOKENS['all']}")[0]
        tap.same(status, 200 if scheme == "bearer" else 401, f"the scheme '{scheme}'")
    d.request("DELETE", "/v1/jobs/x")


def changed(tap, d):
    """Change the file of tokens while the daemon runs, and send SIGHUP."""
    def status(token):
        return d.ask("GET", "/v1/jobs", token=token)[0]

    def hup(text, says):
        before = d.stderr().count(says)
        write_tokens(d.tokens, text)
        d.process.send_signal(signal.SIGHUP)
        return until(lambda: d.stderr().count(says) > before)

    old, new = TOKENS["all"], "n" * 32
    told = hup(f"{new}\n", "the tokens were read again")
    tap.same([bool(told), status(old), status(new)], [True, 401, 200], "SIGHUP: another token", d.stderr())
    told = hup(f"{old}\nshort\n", ":2: a line is")
    tap.same([bool(told), status(old), status(new)], [True, 401, 200], "SIGHUP: a file that is wrong changes nothing", d.stderr())
    told = hup("".join(f"{k} {v}\n" for k, v in TOKENS.items()), "the tokens were read again")
    tap.same([bool(told), status(old), status(new)], [True, 200, 401], "SIGHUP: the old ones", d.stderr())


def fails(*args):
    done = subprocess.run([f"{PROGRAMS}/twheeld", *args], capture_output=True, text=True, timeout=20, check=False,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    return done.stderr if done.returncode == 1 and done.stderr.count("\n") == 1 else repr(done)


def options(tap, d):
    tap.ok(fails("--listen=127.0.0.1:1").endswith("--listen needs --token-file=FILE\n"), "--listen without a token")
    for text, why in (("", "there is no token in"), ("short\n", ":1: a line is"), ("write " + "x" * 20, ":1: a line is"),
                      ("all " + "x" * 20 + " y\n", ":1: a line is"), (("x" * 20 + "\n") * 17, ":17: a line is")):
        message = fails(f"--token-file={write_tokens(f'{d.dir}/bad', text)}")
        tap.ok(why in message, f"a token file with {text[:12]!r}", message)
    for name, text, why in (("a comment of any length is not a token", "# " + "x" * 525 + "t" * 24 + "\n", "there is no token in"),
                            ("a token that is too long", "a" * 32 + "\n" + "x" * 257 + "\n", ":2: a line is"),
                            ("a line that is too long", "# " + "x" * 5000 + "\n" + "x" * 5000 + "\n", ":2: a line is"),
                            ("a NUL in a line", "\0" + "x" * 20 + "\n", ":1: a line is")):
        message = fails(f"--token-file={write_tokens(f'{d.dir}/bad', text)}")
        tap.ok(why in message, f"a token file: {name}", message)
    os.chmod(f"{d.dir}/bad", 0o640)
    message = fails(f"--token-file={d.dir}/bad")
    tap.ok("can be read or written by others: its mode is 640" in message, "a token file that others can read", message)
    messages = [fails(f"--token-file={d.tokens}", f"--state={d.dir}/second", f"--socket={d.dir}/second.socket", f"--listen={where}")
                for where in ("1234", ":80", f"127.0.0.1:{d.port}", "127.0.0.1:http:x", "192.0.2.1:1")]
    tap.ok(all("not an address with a port" in m or "cannot listen at" in m for m in messages), "bad addresses", *messages)


# ---- what the daemon tells ------------------------------------------------------------------------

def metrics(d):
    status, text = d.ask("GET", "/metrics", token=TOKENS["read"])
    assert status == 200, text
    return {k: float(v) for k, v in re.findall(r"^(twheeld_\S+) (\S+)$", text.decode(), re.M)}


def figures(tap, d):
    before = metrics(d)
    d.put("good", exec=["true"])
    d.put("bad", exec=["false"], retry={"times": 1, "wait": "10ms"})
    d.put("slow", exec=["sleep", "100"], overlap="queue", queue=1)
    for name, n in (("good", 2), ("bad", 1), ("slow", 3)):
        for i in range(n):
            d.post(f"/v1/jobs/{name}/run")
            if name != "slow":
                d.over(name, i + 1)
    d.over("slow")
    after = metrics(d)
    grown = {k: after[k] - before[k] for k in after if k in before and not k.startswith(("twheeld_late", "twheeld_turns", "twheeld_op"))}
    tap.same({k: v for k, v in grown.items() if v},
             {"twheeld_fired_total": 5, 'twheeld_attempts_total{outcome="ok"}': 2, 'twheeld_attempts_total{outcome="failed"}': 2,
              'twheeld_attempts_total{outcome="skipped"}': 1, 'twheeld_runs{state="running"}': 1,
              'twheeld_runs{state="queued"}': 1, "twheeld_jobs": 3}, "what is counted")
    buckets = [v for k, v in after.items() if k.startswith("twheeld_late_seconds_bucket")]
    tap.ok(buckets == sorted(buckets) and buckets[-1] == after["twheeld_late_seconds_count"] == after["twheeld_fired_total"]
           and after["twheeld_late_seconds_sum"] > 0, "the histogram of lateness", buckets, after)
    tap.same(sum(k.startswith("twheeld_part_owned") for k in after), 64, "it owns all parts")
    for run in d.get("/v1/jobs/slow")["runs"]:
        d.post(f"/v1/runs/{run['run']}/kill")
    nodes = d.ask("GET", "/v1/nodes", token=TOKENS["read"])[1]
    tap.same([(n["name"], n["this"], n["parts"]) for n in nodes], [(socket.gethostname(), True, list(range(64)))], "one node")


def follow(tap, d):
    until_told = f"while ! [ -e {d.dir}/told ]; do sleep 0.02; done"
    d.put("talk", exec=["/bin/sh", "-c", f"echo one; sleep 0.5; echo two; sleep 0.5; {until_told}; exit 3"])
    key = d.post("/v1/jobs/talk/run")[1][0]["run"]
    parts, at, more, asked = [], 0, True, 0
    until(lambda: d.get(f"/v1/runs/{key}"))
    while more and asked < 20:
        if at == len("one\ntwo\n"):
            os.mknod(f"{d.dir}/told")
        answer = d.connection()
        answer.request("GET", f"/v1/runs/{key}/log?from={at}&wait=10s")
        answer = answer.getresponse()
        parts.append(answer.read().decode())
        at, more, asked = int(answer.headers["Log-Next"]), answer.headers["Log-More"] == "true", asked + 1
    tap.ok("".join(parts) == "one\ntwo\n" and asked <= 4, "a log is followed without polling", asked, parts)
    os.unlink(f"{d.dir}/told")
    key = d.post("/v1/jobs/talk/run")[1][0]["run"]
    until(lambda: d.get(f"/v1/runs/{key}"))
    for _ in range(5):      # a busy host may delay one answer, but hardly all of them
        began = time.monotonic()
        waited = [d.get(f"/v1/runs/{key}/log?from=1000&wait={wait}") for wait in ("0.2s", 0)]
        took = time.monotonic() - began
        if took < 3:
            break
    os.mknod(f"{d.dir}/told")
    tap.ok(waited == [b"", b""] and 0.2 <= took < 3, "and for as long as was asked for", waited, took)
    answers = [d.request("GET", f"/v1/runs/{key}/log?wait={wait}") for wait in ("x", "1h", "-1")]
    tap.ok({s for s, _ in answers} == {400} and errors(answers), "bad waits", *answers)


def nr_files(d):
    return len(os.listdir(f"/proc/{d.process.pid}/fd"))


def followers_leave(tap, d):
    """30 clients wait for a log, and close their connections. The daemon must close them, too."""
    d.put("silent", exec=["sleep", "1000"])
    key = d.post("/v1/jobs/silent/run")[1][0]["run"]
    until(lambda: d.get(f"/v1/runs/{key}")[0]["state"] == "running")
    before = settled(lambda: nr_files(d))
    clients = [d.connection() for _ in range(30)]
    for client in clients:
        client.request("GET", f"/v1/runs/{key}/log?wait=60s")
    most = until(lambda: nr_files(d) - before >= 30)
    for client in clients:
        client.close()
    left = until(lambda: nr_files(d) - before < 3, 40)
    tap.ok(most and left, "clients that leave while they wait keep no connection", most, left)
    d.post(f"/v1/runs/{key}/kill")


# ---- clients of every bad kind --------------------------------------------------------------------

def raw(d, data, end=True):
    """Send these bytes. Returns what comes back."""
    with socket.create_connection(("127.0.0.1", d.port), timeout=20) as s:
        try:
            s.sendall(data)
            if end:
                s.shutdown(socket.SHUT_WR)
            parts = []
            while part := s.recv(65536):
                parts.append(part)
        except OSError:
            pass
        return b"".join(parts)


def head(*lines, token=TOKENS["all"]):
    return "\r\n".join([*lines, "Host: x", f"Authorization: Bearer {token}", "Connection: close", "", ""]).encode()


def status_of(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else None


def strangers(tap, d):
    big = b'{"exec": ["' + b"x" * 10_000_000 + b'"]}'
    for name, token, status in (("without a token", "x" * 32, 401), ("with one", TOKENS["all"], 413)):
        answers = [raw(d, head("PUT /v1/jobs/big HTTP/1.1", f"Content-Length: {len(big)}", token=token) + big),
                   raw(d, head("PUT /v1/jobs/big HTTP/1.1", "Transfer-Encoding: chunked", token=token) +
                       b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (big[i:i + 50000] for i in range(0, len(big), 50000))) +
                       b"0\r\n\r\n")]
        tap.ok([status_of(a) for a in answers] == [status] * 2 and all(b'{"error":"' in a for a in answers), f"10 MB {name}",
               *(a[:300] for a in answers))
    size = int(subprocess.run(["ps", "-o", "rss=", "-p", str(d.process.pid)], capture_output=True, check=True).stdout)
    with_token = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(100)]
    for s in with_token:
        s.sendall(head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: 1000000", token="y" * 32) + b"x" * 500_000)
    grown = int(subprocess.run(["ps", "-o", "rss=", "-p", str(d.process.pid)], capture_output=True, check=True).stdout) - size
    for s in with_token:
        s.close()
    tap.ok(grown < 25000, "a client without a token takes no memory", grown)
    answers = {name: raw(d, data) for name, data in {
        "method": head("BREW /v1/jobs HTTP/1.1"), "route": head("DELETE /v1/runs HTTP/1.1"), "path": head("GET /v1/../etc/passwd HTTP/1.1"),
        "long path": head("GET /" + "a" * 100_000 + " HTTP/1.1"), "deep path": head("GET /" + "a/" * 5000 + " HTTP/1.1"),
        "long name": head("PUT /v1/jobs/" + "a" * 1000 + " HTTP/1.1", "Content-Length: 15") + b'{"exec":["true"]}'[:15],
        "NUL in the path": head("PUT /v1/jobs/a%00b HTTP/1.1", "Content-Length: 17") + b'{"exec":["true"]}',
        "many headers": head("GET /v1/jobs HTTP/1.1", *(f"X{i}: {'y' * 100}" for i in range(5000))),
        "long header": head("GET /v1/jobs HTTP/1.1", "X: " + "y" * 1_000_000),
        "no JSON": head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: 4") + b"\0\1\2\3",
        "deep JSON": head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: 100000") + b"[" * 100000,
        "length": head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: -1"), "lengths": head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: 99999999999999999999"),
        "version": head("GET /v1/jobs HTTP/7.0"), "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10,
        "half a request": b"PUT /v1/jobs/x HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
    }.items()}
    wrong = {k: v[:200] for k, v in answers.items() if v and not 400 <= (status_of(v) or 400) < 600}
    tap.ok(not wrong, "malformed requests are refused, or the connection is closed", wrong)
    own = [answers[k] for k in ("method", "route", "path", "deep path", "long name", "NUL in the path", "no JSON", "deep JSON")]
    tap.ok(all(a.count(b'{"error":"') == 1 for a in own), "with one clear message", *(a[:300] for a in own))


def texts(tap, d):
    """Text that is not UTF-8 (overlong, a surrogate, beyond the last character, cut off) must be refused, and so
    must a NUL in an address. UTF-8 must come back unchanged."""
    for text in (b"\xc0\x80", b"\xc0\xaf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\xe2\x82"):
        body, word = b'{"exec": ["true"], "input": "' + text + b'"}', "".join(f"%{c:02X}" for c in text)
        answers = [d.ask("PUT", "/v1/jobs/utf8", body), d.ask("PUT", "/v1/jobs/utf8", body[:-2]),
                   *(d.ask(m, p) for m, p in (("DELETE", f"/v1/jobs/x/shots/{word}"), ("GET", f"/v1/jobs?prefix={word}"),
                                              ("GET", f"/v1/jobs?{word}=1"), ("POST", f"/v1/runs/1-1/done?attempt=1&runner={word}")))]
        tap.ok({s for s, _ in answers} == {400} and errors(answers) and all("not UTF-8" in a["error"] for _, a in answers),
               f"not UTF-8: {text!r}", *answers)
    put = d.put("nul", exec=["true"])[0]
    d.post("/v1/jobs/nul/shots", [{"after": "1h", "key": "a\x01b"}])
    answers = [d.ask(m, p) for m, p in (("DELETE", "/v1/jobs/nul/shots/a%00b"), ("GET", "/v1/jobs/nul%00"), ("GET", "/v1/jobs?prefix=nul%00"))]
    tap.ok(put == 200 and {s for s, _ in answers} == {400} and errors(answers) and all("NUL" in a["error"] for _, a in answers),
           "a NUL in the address is not taken for another character", *answers)
    d.request("DELETE", "/v1/jobs/nul")
    for text in ("\u007f", "\u0080\u07ff\u0800\uffff", "\U00010000\U0010ffff"):
        put = d.put("utf8", exec=["true"], input=text)[0]
        tap.same([put, d.get("/v1/jobs/utf8")["definition"]["input"]], [200, text], f"UTF-8: {text!r}")
    d.request("DELETE", "/v1/jobs/utf8")


def ended(d, data):
    """Send these bytes. Returns the statuses of the answers, the body of the last one, and whether the daemon
    closed the connection."""
    parts = []
    with socket.create_connection(("127.0.0.1", d.port), timeout=10) as s:
        try:
            s.sendall(data)
            while part := s.recv(65536):
                parts.append(part)
            closed = True
        except OSError as error:
            closed = isinstance(error, ConnectionError)
    answer = b"".join(parts).decode()
    return re.findall(r"^HTTP/1.1 (\d+)", answer, re.M), answer.split("\r\n\r\n")[-1], closed


def long(tap, d):
    """Addresses that leave libmicrohttpd no memory, or nearly none. The daemon must answer them, not just close
    the connection after 3 s of silence."""
    def asked(path):
        return ended(d, head(f"GET {path} HTTP/1.1"))

    query = {"as long as it may be": "?prefix=" + "a" * 8100, "as many words as there may be": "?" + "&" * 31}
    tap.same({k: asked(f"/v1/jobs{v}")[0] for k, v in query.items()}, {k: ["200"] for k in query}, "long addresses")
    answers = [asked(path) for path in (
        "/v1/jobs?prefix=" + "a" * 8200, "/" + "a" * 8200, *(f"/v1/jobs?{word * n}" for word in ("&", "a&", "a=b&") for n in (33, 450, 600, 2000)),
        *("/v1/jobs?prefix=" + "a" * n for n in range(32620, 32760, 20)))]
    tap.ok(all(s in (["414"], ["431"]) and closed for s, _, closed in answers) and all(s == ["414"] for s, *_ in answers[:14]),
           "an address that is too long is answered at once", *((s, closed) for s, _, closed in answers))


def hidden(tap, d):
    """If a proxy reads the headers of these requests in another way, it sees another end, behind which there is
    a second request. The daemon must refuse them."""
    host = f"Host: x\r\nAuthorization: Bearer {TOKENS['all']}\r\n"
    body = '{"exec":["true"]}'
    second = f"PUT /v1/jobs/hidden HTTP/1.1\r\n{host}Content-Length: {len(body)}\r\n\r\n{body}"
    chunk = f"{len(second):x}\r\n{second}\r\n0\r\n\r\n"

    def tried(*lines, what=second, version="1.1", first=""):
        data = f"POST /v1/jobs/x/pause HTTP/{version}\r\n{first}{host}" + "".join(f"{line}\r\n" for line in lines) + f"\r\n{what}"
        return ended(d, data.encode())

    def refused(answers, name, says=r'{"error":".+"}'):
        tap.ok(all(set(a[0]) == {"400"} and re.fullmatch(says, a[1]) and a[2] for a in answers)
               and "hidden" not in [j["name"] for j in d.get("/v1/jobs")], name, *answers)
        d.request("DELETE", "/v1/jobs/hidden")

    length, coding = f"Content-Length: {len(second)}", "Transfer-Encoding: chunked"
    refused([tried("Content-Length: 0", length), tried(length, "Content-Length: 0"), tried(length, length)], "two lengths")
    refused([tried(length, coding, what=chunk), tried(coding, length, what=chunk)], "a length, and chunks")
    refused([tried(f"Content-Length: {text}") for text in ("+1", "0x1", f"{len(second)}, {len(second)}", "-1", "", "1 1")],
            "a length that is not a number", r"<html>.*")
    refused([tried(f"Transfer-Encoding{text}", what=chunk) for text in (
        " : chunked", "\t: chunked", ": xchunked", ": gzip, chunked", ": identity", ":", ": chunked\r\nTransfer-Encoding: identity")],
            "Transfer-Encoding is anything but chunked")
    refused([tried(coding, what=chunk, version="1.0")], "chunks in HTTP/1.0")
    refused([tried(f"Content-Length:\r\n {len(second)}"), tried("Transfer-Encoding:\r\n\tchunked", what=chunk),
             tried(f"X: y\r\n {coding}", what=chunk), tried("If-Match:\r\n 99", what=""), tried(f"X: y\r{coding}", what=chunk),
             tried(what=chunk, first=f" {coding}\r\n")], "a header that is continued, or has a line of its own inside")
    refused([tried(line, what=second) for line in ("Host: y", f"Authorization: Bearer {TOKENS['read']}", "If-Match: 1\r\nif-match: 99")],
            "two headers, one of which others may not see")
    put = f"PUT /v1/jobs/chunks HTTP/1.1\r\n{host}Transfer-Encoding: Chunked\r\nConnection: close\r\n\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    tap.same([ended(d, put.encode())[0], d.request("DELETE", "/v1/jobs/chunks")[0]], [["200"], 200], "chunks alone")


def plans(tap, d):
    """100 jobs are due each second, each with a "spread" of its own, so that it takes 3600 steps to count a
    job's next hour. A request must count only some."""
    names = [f"second{n}" for n in range(100)]
    d.post("/v1/jobs", [{"name": name, "cron": "* * * * * *", "zone": "Europe/Berlin", "spread": "1h", "exec": ["true"], "pool": "nobody"} for name in names])
    jobs = d.get("/v1/jobs?prefix=second&plan=1")
    counted = [len(job["minutes"]) for job in jobs if "minutes" in job]
    tap.ok(len(jobs) == 100 and 0 < len(counted) < 20 and set(counted) == {60}, "one request counts so much, and no more", len(jobs), counted)
    for name in names:
        d.request("DELETE", f"/v1/jobs/{name}")


def crowd(tap, d):
    """A job is due 20 times a second while more clients talk than may be connected. All leave at the same time: after that,
    nothing happens by which the daemon could notice that there is room again."""
    d.put("tick", rate="50ms", exec=["true"], overlap="allow")
    for _ in range(20):     # a busy host may delay some firings, but hardly each time
        good, *why = crowded(d)
        if good or not until(lambda: is_open(d)):
            break
    tap.ok(good, "slow clients and many do not keep it from firing, or from its socket", *why)
    d.request("DELETE", "/v1/jobs/tick")
    tap.ok(until(lambda: is_open(d)), "and when they have gone others are heard")


def crowded(d):
    """Let these clients talk for 3 s. Returns whether the job fired often enough and in time while the daemon's socket answered;
    and the numbers of firings, of those in time, and of answers."""
    before = metrics(d)
    slow = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(1200)]
    for s in slow[:600]:
        s.sendall(b"GET /v1/jobs HTTP/1.1\r\nX")
    end, n = time.monotonic() + 3, 0
    while time.monotonic() < end:
        for s in slow[:600:50]:
            try:
                s.sendall(b"y")
            except OSError:
                pass
        # Up to 300 clients are closed at once, with a part of a request.
        try:
            with socket.create_connection(("127.0.0.1", d.port), timeout=0.05) as s:
                s.sendall(b"\0" * 100)
        except OSError:
            pass
        time.sleep(0.01)
        n += d.request("GET", "/v1/jobs/tick")[0] == 200
    fired = d.get("/metrics").decode()
    d.process.send_signal(signal.SIGSTOP)
    for s in slow:
        s.close()
    d.process.send_signal(signal.SIGCONT)
    after = {k: float(v) for k, v in re.findall(r"^(twheeld_\S+) (\S+)$", fired, re.M)}
    count = after["twheeld_fired_total"] - before["twheeld_fired_total"]
    in_time = after["twheeld_late_seconds_bucket{le=\"1\"}"] - before["twheeld_late_seconds_bucket{le=\"1\"}"]
    return count >= 40 and in_time == count and n > 10, count, in_time, n


def reads(s):
    try:
        return s.recv(65536)
    except OSError as error:
        return repr(error).encode()


def stands_still(tap, d):
    """Stop the daemon for longer than a client may be silent. Clients that it has accepted send their first request meanwhile, or
    the rest of it. Then other clients are slow, leave in the middle of a request, or are silent after one."""
    request = head("GET /v1/runs?limit=0 HTTP/1.1").replace(b"Connection: close\r\n", b"")
    long = head("GET /v1/runs?limit=0 HTTP/1.1", *(f"X{n}: {'x' * 1000}" for n in range(25)))   # more than one read takes

    before = settled(lambda: nr_files(d))
    clients = [socket.create_connection(("127.0.0.1", d.port), timeout=60) for _ in range(5)]
    for s in clients[2:4]:
        s.sendall(request[:30])
    here = d.connection(60)
    here.connect()
    clients.append(here.sock)
    until(lambda: nr_files(d) >= before + 6)
    d.process.send_signal(signal.SIGSTOP)
    for s, rest in zip(clients, (request, request, request[30:], request[30:], long, long)):
        s.sendall(rest)
    time.sleep(3.5)
    d.process.send_signal(signal.SIGCONT)
    answers = [reads(s) for s in clients]
    tap.same([status_of(a) for a in answers], [200] * 6, "requests that come while the daemon stands still are read, not closed", *answers)
    began, slow = time.monotonic(), socket.create_connection(("127.0.0.1", d.port), timeout=0.2)
    slow.sendall(b"GET /v1/jobs HTTP/1.1\r\nX")
    while (answer := reads(slow)).startswith(b"TimeoutError") and time.monotonic() < began + 60:
        with contextlib.suppress(OSError):
            slow.sendall(b"y")
    took = time.monotonic() - began
    tap.ok(b"Timeout" not in answer and took > 2.9, "a client that sends a byte now and then has 3 s for its headers", answer, took)
    before = settled(lambda: nr_files(d))
    gone = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(20)]
    began = time.monotonic()
    for s in gone:
        s.sendall(head("PUT /v1/jobs/x HTTP/1.1", "Content-Length: 1000", token="x" * 32) + b"x")
        s.close()
    until(lambda: nr_files(d) <= before)
    took = time.monotonic() - began
    tap.ok(took < 20, "clients that go in the middle of a request do not keep their connections", took)
    clients[0].sendall(request)
    tap.same(status_of(reads(clients[0])), 200, "one that has sent a request may be silent for longer")


def readers(d, nr):
    """Let @nr clients that may only read ask for nearly a megabyte each, without reading it. Returns their sockets."""
    def reader():
        s = socket.socket()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)   # otherwise the kernel takes the whole answer
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", d.port))
        s.sendall(head("GET /v1/jobs/much HTTP/1.1", token=TOKENS["read"]))
        return s

    return [reader() for _ in range(nr)]


def have_answers(sockets):
    return [s for s in sockets if select.select([s], [], [], 0)[0]]


PAGE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def narrow(d, *requests):
    """Returns a connection that has sent @requests, and for which the kernel keeps little of what the client does not read."""
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", d.port))
    s.setblocking(False)
    s.send(b"".join(requests))
    return s


def slow_reader():
    """A client without a token reads slowly, for longer than it may read nothing. Returns how many of 40 pages it
    gets, the daemon's status, and what a sanitizer says."""
    with Remote() as d:
        d.start()
        s, data = narrow(d, PAGE * 40), b""
        s.settimeout(20)
        for _ in range(45):
            time.sleep(1)
            data += s.recv(500)
        with contextlib.suppress(OSError):
            while data.count(b"route();\n</script>") < 40 and (more := s.recv(1 << 20)):
                data += more
        s.close()
        return data.count(b"route();\n</script>"), d.stop(), d.unsound()


def burst_reader():
    """A client reads much, and then nothing for 23 s, four times. Returns whether it gets its whole answer, the
    daemon's status, and what a sanitizer says."""
    with Remote() as d, socket.socket(socket.AF_UNIX) as s:
        d.start()
        d.put("long", exec=["true"], input="/" * 1040000)
        s.connect(d.socket)
        s.sendall(b"GET /v1/jobs/long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = 0
        for _ in range(4):
            got += len(s.recv(212992, socket.MSG_WAITALL))
            time.sleep(23)
        s.settimeout(20)
        with contextlib.suppress(OSError):
            while more := s.recv(1 << 20):
                got += len(more)
        return got > 1040000, d.stop(), d.unsound()


def slow_clients():
    """This takes half a minute, beside other tests. Returns after how many s all clients are closed that have no token and
    read nothing; the statuses for clients that, after nearly as long a silence as is allowed, send a second request in
    pieces; the daemon's status, and what a sanitizer says."""
    with Remote() as d:
        d.start()
        base = settled(lambda: nr_files(d))
        began, strangers_ = time.monotonic(), [narrow(d, PAGE * 100)]
        # The answers to some of them fill all buffers, so that libmicrohttpd cannot send its own answer to their next request.
        bad = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n"
        strangers_ += [narrow(d, PAGE, PAGE.replace(b"/ ", b"/v1/jobs ", 1) * n, bad, b"z" * 60000) for n in range(150)]
        request = head("GET /v1/runs?limit=0 HTTP/1.1").replace(b"Connection: close\r\n", b"")
        late = [socket.create_connection(("127.0.0.1", d.port), timeout=60) for _ in range(6)]
        heard = {}
        for s in late:      # one after the other, so that the daemon looks at each at another time
            s.sendall(request)
            reads(s)
            heard[s] = time.monotonic()
            time.sleep(0.5)
        for at, part in ((28, request[:30]), (30, request[30:60]), (32, request[60:])):
            time.sleep(max(0, began + at - time.monotonic()))
            for s in late:
                if time.monotonic() - heard[s] > 29:    # a busy host has kept the test from being in time
                    continue
                with contextlib.suppress(OSError):
                    s.sendall(part)
                    heard[s] = time.monotonic()
        statuses = {status_of(reads(s)) for s in late if time.monotonic() - heard[s] < 20} or {200}
        for s in late:
            s.close()
        until(lambda: nr_files(d) <= base, 100)
        took = time.monotonic() - began
        for s in strangers_:
            s.close()
        return took, statuses, d.stop(), d.unsound()


def many_readers(tap, d):
    """Many readers take much of the daemon's time and memory. Other clients must not notice, unless they read much, too."""
    d.put("much", exec=["true"], env={f"V{n}": "x" * 1000 for n in range(900)})
    d.process.send_signal(signal.SIGSTOP)
    first = socket.create_connection(("127.0.0.1", d.port), timeout=60)
    first.sendall(head("GET /v1/runs?limit=0 HTTP/1.1"))
    read = readers(d, 60)
    last = socket.create_connection(("127.0.0.1", d.port), timeout=60)
    last.sendall(head("GET /v1/runs?limit=0 HTTP/1.1"))
    d.process.send_signal(signal.SIGCONT)
    statuses, before = [status_of(reads(s)) for s in (first, last)], len(have_answers(read))
    tap.ok(statuses == [200, 200] and before < 30, "who may do everything does not wait behind many readers", statuses, before)
    tap.ok(until(lambda: len(have_answers(read)) == 60), "all of these have answers in the end")
    read += readers(d, 40)
    until(lambda: len(have_answers(read)) == 100)
    refused = [answer for answer in map(reads, have_answers(read)) if status_of(answer) == 503]
    tap.ok(20 <= len(refused) <= 40 and b"other answers have not been read yet" in refused[0],
           "they keep 64 MiB of answers that they do not read", len(refused), *refused[:1])
    asked = [d.ask("GET", path, token=TOKENS[token])[0] for path, token in
             (("/v1/runs?limit=0", "read"), ("/v1/jobs/much", "read"), ("/v1/jobs/much", "all"))]
    tap.same(asked, [200, 503, 200], "others are answered, except a reader that asks for much, too")
    for s in read:
        s.close()
    tap.ok(until(lambda: d.ask("GET", "/v1/jobs/much", token=TOKENS["read"])[0] == 200), "and when they have gone that one, too")
    d.request("DELETE", "/v1/jobs/much")


def is_open(d):
    try:
        return d.ask("GET", "/v1/runs?limit=0")[0] == 200
    except OSError:
        return False


def revisions(d):
    """Returns the names of the daemon's jobs, and how often requests have changed each."""
    return [(j["name"], j["rev"]) for j in d.get("/v1/jobs")]


def main():
    tap = Tap(76)
    with Remote() as d, concurrent.futures.ThreadPoolExecutor() as pool:
        beside, slow, burst = (pool.submit(fn) for fn in (slow_clients, slow_reader, burst_reader))
        d.start()
        for fn in (tokens, changed, options, figures, follow, followers_leave):
            fn(tap, d)
        before = revisions(d)
        strangers(tap, d)
        texts(tap, d)
        hidden(tap, d)
        long(tap, d)
        tap.same(revisions(d), before, "nobody of them has changed anything")
        plans(tap, d)
        stands_still(tap, d)
        many_readers(tap, d)
        crowd(tap, d)
        took, statuses, *ended = beside.result()
        tap.ok(took < 50, "a client without a token that reads nothing is closed after 30 s", took)
        tap.same(slow.result(), (40, 0, ""), "one that reads slowly is not closed")
        tap.same(burst.result(), (True, 0, ""), "nor is one that reads much at a time, and rarely")
        tap.same(statuses, {200}, "a client whose headers come in pieces is not silent")
        tap.same(ended, [0, ""], "and that daemon was sound")
        tap.same(d.stop(), 0, "the daemon ends")
        tap.ok(not d.unsound(), "the daemon was sound", d.unsound())
    tap.done()


main()
