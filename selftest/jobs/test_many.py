#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Daemons that share PostgreSQL: who owns which parts, requests to any of them, and what happens to jobs if a
daemon is killed, stopped for longer than its lease, cut off, or dies at any step, or if the server dies.

    test_many.py          the fast part
    test_many.py storm    STORM seconds (1200) of all of it at random
"""
import concurrent.futures
import http.client
import itertools
import os
import random
import subprocess
import sys
import time

from daemon import PROGRAMS, Daemon, Tap, until
from judge import judge
from postgres import Node, Server

PARTS = 64
LEASE = 2.0
FIRINGS = 3
BACKLOG = 60000
AT_ONCE = 3
# Of the steps each STRIDE-th; 1 takes some minutes.
STRIDE = int(os.environ.get("STRIDE", 4))


def run(node, name, **shot):
    answer = node.post(f"/v1/jobs/{name}/shots", [shot]) if shot else node.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def put_rates(node, nr, shared, rate="200ms", **more):
    for n in range(nr):
        definition = {"rate": rate, "exec": shared.writes(), "missed": "all", "overlap": "queue", "queue": 10000, **more}
        until(lambda n=n, definition=definition: any_node([node], "PUT", f"/v1/jobs/rate{n}", definition), 20)


def settle(server, nodes, names):
    """Pause the jobs, wait until all that has fired is over, and end the daemons. Returns what is unsound."""
    for name in names:
        until(lambda name=name: any_node(nodes, "POST", f"/v1/jobs/{name}/pause"), 20)
    until(lambda: server.query("SELECT count(*) FROM running") == [(0,)], 60)
    for name in names:
        until(lambda name=name: any_node(nodes, "DELETE", f"/v1/jobs/{name}"), 20)
    wrong = []
    for node in nodes:
        if status := node.stop():
            wrong.append(f"{node.dir} ended with status {status}: {node.stderr()}")
        if node.unsound():
            wrong.append(node.unsound())
    return wrong


def any_node(nodes, method, path, body=None):
    """Does one of them say yes? 404: it was done, and nobody heard of it."""
    for node in nodes:
        try:
            if node.request(method, path, body)[0] in (200, 404):
                return True
        except (OSError, http.client.HTTPException):
            pass
    return False


# ---- as one ---------------------------------------------------------------------------------------

def owner(server, nodes, job):
    """The node that owns a job, and another one."""
    life = server.query(f"SELECT p.node FROM part p, job j WHERE j.name = '{job}' AND p.id = j.id & 63")[0][0]
    mine = next(n for n in nodes if n.life() == life)
    return mine, next(n for n in nodes if n is not mine)


def sharing(tap, server, nodes):
    tap.ok(until(lambda: server.parts() == [PARTS // 2] * 2), "two share the parts", server.parts())
    for name in "abcdefgh":
        nodes[0].put(name, exec=["/bin/sh", "-c", "echo $TWHEEL_JOB $TWHEEL_ARG"])
    owners = {owner(server, nodes, name)[0] for name in "abcdefgh"}
    tap.same(len(owners), 2, "and jobs")
    for what, who in (("its owner", 0), ("another", 1)):
        node = owner(server, nodes, "a")[who]
        began = time.monotonic()
        key = run(node, "a")
        rows = until(lambda key=key: [r for r in nodes[1].get(f"/v1/runs/{key}") if r["state"] == "over"])
        tap.ok(rows and rows[0]["outcome"] == "ok" and time.monotonic() - began < 2, f"a run that {what} was asked for", rows)
    mine, other = owner(server, nodes, "b")
    other.put("b", exec=["sleep", "100"])
    tap.same(mine.get("/v1/jobs/b")["definition"]["exec"], ["sleep", "100"], "a definition that another has put")
    key = run(other, "b")
    tap.same(until(lambda: [r["state"] for r in other.get(f"/v1/runs/{key}")]), ["running"], "any daemon lists what runs")
    tap.same([r["run"] for r in other.get("/v1/runs?job=b") if r["state"] != "over"], [key], "any daemon lists the runs of a job")
    tap.same([other.post(f"/v1/runs/{key}/kill")[0], other.post("/v1/runs/1-1/kill")[0]], [200, 404],
             "any daemon can be asked to kill a run")
    tap.same(until(lambda: [r["outcome"] for r in other.get(f"/v1/runs/{key}") if r["state"] == "over"]), ["killed"],
             "the run is killed")
    mine, other = owner(server, nodes, "c")
    other.post("/v1/jobs/c/shots", [{"after": "0.2s", "key": "x", "arg": "one"}])
    other.post("/v1/jobs/c/shots", [{"after": "0.4s", "key": "x", "arg": "two"}, {"after": "0.3s", "key": "y"}])
    status = mine.request("DELETE", "/v1/jobs/c/shots/y")[0]
    rows = mine.over("c")
    time.sleep(0.3)
    tap.same([status, [mine.output(r["run"]) for r in rows], len(mine.over("c"))], [200, ["c two\n"], 1],
             "any daemon replaces and cancels shots")
    other.post("/v1/jobs/c/pause")
    run(mine, "c", after="0.1s")
    time.sleep(0.5)
    paused = len(mine.over("c"))
    other.post("/v1/jobs/c/resume")
    tap.same([paused, len(mine.over("c", 2))], [1, 2], "any daemon pauses and resumes")
    other.request("PUT", "/v1/days/feast", ["2027-01-01"])
    tap.same(mine.get("/v1/days/feast"), ["2027-01-01"], "a calendar is known to all daemons")
    nodes[0].put("parent", exec=["true"], then={"ok": list("defgh")})
    run(nodes[1], "parent")
    tap.ok(all(len(nodes[0].over(name)) == 1 for name in "defgh"), "jobs that follow run on their owner")
    tap.same([other.put("a", exec=["true"])[0], mine.request("PUT", "/v1/jobs/a", {"exec": ["true"]}, {"If-Match": "1"})[0]],
             [200, 412], "a revision is known to all daemons")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [sorted(f.result()[0] for f in [pool.submit(n.request, "PUT", f"/v1/jobs/new{i}", {"exec": ["true"]},
                                                              {"If-None-Match": "*"}) for n in nodes])
                   for i in range(10)]
    tap.ok(all(a == [200, 409] for a in answers), "of two who put the same one has", answers)
    tap.same([other.request("DELETE", "/v1/jobs/a")[0], mine.request("GET", "/v1/jobs/a")[0]], [200, 404], "any daemon removes a job")


# ---- the fence ------------------------------------------------------------------------------------

def psql_error(server, sql):
    done = subprocess.run(["psql", "-Xq", "-v", "VERBOSITY=verbose", "-d", server.url, "-c", sql],
                          capture_output=True, text=True, check=False)
    return done.stderr


def turn_sql(life, nr, row=None):
    """A turn that fires a row of due, and one that does nothing."""
    id_, at = row or (0, 0)
    last = "{0,1,1,1,1,1}" if row else "{0,0,0,0,0,0}"
    columns = [id_, at] + [0] * 14
    arrays = ", ".join(f"'{{{c}}}'" for c in columns)
    return f"SELECT * FROM twheel.turn({life}, {nr}, '{last}', {arrays}, 0)"


def fence(tap):
    """The functions of the schema, by hand."""
    with Server() as server, Node(server) as node:
        node.start()
        node.put("j", exec=["true"])
        node.stop()
        me = server.query("SELECT twheel.join_as(0, 'hand', 3600000000)")[0][0]
        tap.same(server.query(f"SELECT twheel.balance({me})"), [(-1,)], "a single life owns all parts")
        row = server.query("INSERT INTO due (job, at, main) SELECT id, 1, 0 FROM job RETURNING id, at")[0]
        late = server.query(f"INSERT INTO due (job, at, main) SELECT id, {2**62}, 0 FROM job RETURNING id, at")[0]
        tap.same(server.query(turn_sql(me, 1, late)), [], "a firing that is not due by the server's clock is refused")
        tap.same([len(server.query(turn_sql(me, 2, row))), server.query("SELECT id, at FROM running")], [1, [row]],
                 "a firing that is due is done")
        tap.same(server.query(turn_sql(me, 2, row))[0][0], 0, "a turn that is sent again is recognised")
        tap.same(server.query("SELECT count(*) FROM running"), [(1,)], "a turn that is sent again changes nothing")
        old, me = me, server.query(f"SELECT twheel.go_on({me}, 'hand', 3600000000)")[0][0]
        tap.same(server.query(f"SELECT (SELECT life FROM running), twheel.mine({me}), (SELECT turn FROM node)"),
                 [(me, -1, 2)], "a life continues under another number, with all that it has")
        tap.ok("TW001" in psql_error(server, turn_sql(old, 3)), "the old number of a life is refused")
        server.query(f"UPDATE node SET lease_until = now() - interval '1 s' WHERE id = {me}")
        heir = server.query("SELECT twheel.join_as(0, 'heir', 3600000000)")[0][0]
        tap.same(server.query(f"SELECT twheel.balance({heir})"), [(-1,)], "a life whose lease is over is buried, and its parts are taken over")
        errors = [psql_error(server, sql) for sql in (turn_sql(me, 3), f"SELECT twheel.beat({me}, 1)",
                                                      f"SELECT twheel.balance({me})", f"SELECT twheel.go_on({me}, 'x', 1)")]
        tap.ok(all("TW001" in e for e in errors), "a buried life can write nothing", *errors)
        other = server.query("SELECT twheel.join_as(0, 'other', 3600000000)")[0][0]
        tap.same(server.query(turn_sql(other, 1, late)), [], "a life cannot fire what another owns")
        # What is under way holds up the burial, and is there when that is done.
        server.query(f"UPDATE node SET lease_until = now() - interval '1 s' WHERE id = {heir}")
        row = server.query("INSERT INTO due (job, at, main) SELECT id, 1, 0 FROM job RETURNING id, at")[0]
        with subprocess.Popen(["psql", "-Xq", "-d", server.url], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.DEVNULL) as slow:
            print(f"BEGIN; {turn_sql(heir, 1, row)};", file=slow.stdin, flush=True)
            until(lambda: server.query("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"))
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                burial = pool.submit(server.query, f"SELECT twheel.balance({other})")
                time.sleep(0.3)
                waits = not burial.done()
                print("COMMIT;", file=slow.stdin, flush=True)
                slow.stdin.close()
                tap.ok(waits and burial.result() == [(-1,)], "a burial waits for a turn in progress")
        tap.same(server.query(f"SELECT count(*) FROM running WHERE life = {heir}"), [(1,)], "a burial takes over the turn that it waited for")


# ---- deaths ---------------------------------------------------------------------------------------

def deaths(tap):
    with Server() as server, Node(server) as a, Node(server, shared=a) as b, Node(server, shared=a) as c:
        a.start()
        b.start()
        put_rates(a, 8, a)
        until(lambda: len(a.lines()) > 30)
        b.kill()
        began = time.monotonic()
        until(lambda: server.parts() == [PARTS])
        took = time.monotonic() - began
        tap.ok(took < LEASE + LEASE / 3 + 1, "kill -9: the other daemon has all jobs in time", took)
        print(f"# fail-over in {took:.2f} s with a lease of {LEASE} s")
        b.start()
        tap.ok(until(lambda: server.parts() == [PARTS // 2] * 2), "kill -9: the daemon comes back, and has its share", server.parts())
        c.start()
        tap.ok(until(lambda: max(server.parts()) == 22 and sum(server.parts()) == PARTS), "a third daemon has its share",
               server.parts())
        began = time.monotonic()
        tap.same(c.stop(), 0, "the third daemon leaves")
        tap.ok(until(lambda: server.parts() == [PARTS // 2] * 2) and time.monotonic() - began < LEASE,
               "the parts of a daemon that left are taken at once", server.parts())
        a.pause(3 * LEASE)
        tap.ok(until(lambda: "was buried" in a.stderr()) and until(lambda: server.parts() == [PARTS // 2] * 2),
               "SIGSTOP for longer than the lease: it was buried, and begins again", a.stderr())
        a.put("long", exec=a.writes(more=f"sleep {1.5 * LEASE}"), overlap="allow")
        a.put("sole", exec=a.writes("sole", f"sleep {1.5 * LEASE}"))
        keys = [run(a, "long"), run(a, "sole")]
        until(lambda: len(a.lines("sole")) == 1)
        server.cut()
        rows = [until(lambda key=key: [r for r in a.get(f"/v1/runs/{key}") if r["state"] == "over"]) for key in keys]
        tap.same([[(r["attempt"], r["outcome"]) for r in over] for over in rows], [[(1, "ok")]] * 2,
                 "a cut connection: runs continue", rows)
        keys = [run(a, "long"), run(a, "sole")]
        until(lambda: len(a.lines("sole")) == 3)
        server.stop()
        time.sleep(2 * LEASE)
        server.start()
        rows = [until(lambda key=key: over_of(a, key), 20) for key in keys]
        tap.same([[(r["attempt"], r["outcome"]) for r in reversed(over or [])] for over in rows],
                 [[(1, "ok")], [(1, "lost"), (2, "ok")]],
                 "no server for longer than the lease: what must not overlap was killed in time, and is run again", rows)
        names = [f"rate{n}" for n in range(8)] + ["long", "sole"]
        wrong = settle(server, [a, b], names)
        more, firings = judge(server.url, (line for name in ("out", "sole") for line in a.lines(name)))
        tap.ok(not wrong + more and firings > 300, f"0 lost, 0 early, 0 double of {firings} firings", *wrong, *more)


def backlog(tap):
    """More is due at once than can be written before the lease is over. Nothing of it runs: they are skipped."""
    with Server("fsync = off") as server, Node(server, lease="1s") as node:
        node.start()
        node.put("j", exec=["sleep", "300"], overlap="skip", grace="1h")
        run(node, "j")
        node.stop()
        at = int((time.time() + 3) * 1e6)
        server.query(f"INSERT INTO due (job, at, main) SELECT id, {at}, 0 FROM job, generate_series(1, {BACKLOG})")
        node.start()
        done = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 5") == [(BACKLOG,)], 60)
        lives = server.query("SELECT count(*) FROM life")[0][0]
        tap.ok(done and lives == 2 and "answer" not in node.stderr(), "a lease is renewed in spite of a backlog", lives,
               node.stderr())


def cancelled(tap):
    """Several firings of a job are decided in one turn, and all but one were cancelled meanwhile. The one may have to
    wait for the others, but not for ever. It is the first in one job and the last in another."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        for name in ("a", "b"):
            node.put(name, exec=["true"], overlap="queue", queue=9)
        node.stop()
        at = int((time.time() + 3) * 1e6)
        server.query(f"INSERT INTO due (job, at, main) SELECT id, {at}, 0 FROM job, generate_series(1, 8)")
        node.start()
        server.query("DELETE FROM due WHERE id NOT IN (SELECT min(id) FROM due UNION SELECT max(id) FROM due)")
        over = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 0") == [(2,)])
        for name in ("a", "b"):
            run(node, name)
        more = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 0") == [(4,)])
        tap.ok(over and more, "a firing does not wait for one that was cancelled before it was written",
               server.query("SELECT job, id, outcome FROM history"), node.stderr())


def over_of(node, key):
    """All attempts of a firing that is over."""
    try:
        rows = node.get(f"/v1/runs/{key}")
    except OSError:
        return None
    return rows if rows and not any(r.get("more", True) for r in rows[:1]) else None


# ---- steps ----------------------------------------------------------------------------------------

def definitions(d):
    once = f"[ -e {d.dir}/failed ] || {{ : >{d.dir}/failed; exit 1; }}"
    return [
        {"name": "second", "exec": d.writes()},
        {"name": "first", "after": "300ms", "exec": d.writes(), "then": {"ok": ["second"]}},
        {"name": "third", "after": "400ms", "exec": d.writes(more=once), "retry": {"times": 2, "wait": "20ms"}},
    ]


def step(server, at):
    """One of two dies at its at-th step. It comes first, so that it has jobs however slow the host is, and the
    jobs are put by it. What is wrong, and did it die?"""
    with Node(server) as b, Node(server, shared=b) as a:
        a.start(TWHEELD_CRASH=str(at))
        b.start()
        for node in (a, b):
            try:
                status, _ = node.request("POST", "/v1/jobs", definitions(b), {"If-None-Match": "*"})
                if status in (200, 409):
                    break
            except (OSError, http.client.HTTPException):
                pass
        until(lambda: server.over() == FIRINGS, 30)
        status = a.stop() if a.process.poll() is None else a.process.wait()
        wrong = [] if status in (0, -9) else [f"status {status}", a.stderr()]
        if status := b.stop():
            wrong.append(f"the other ended with status {status}")
        wrong += [n.unsound() for n in (a, b) if n.unsound()]
        more, firings = judge(server.url, b.lines())
        if firings != FIRINGS:
            wrong.append(f"{firings} firings are over, not {FIRINGS}")
        wrong += more
        return [f"step {at}: {w}" for w in wrong + ([b.stderr()] if wrong else [])], a.process.returncode == -9


def steps(stride):
    """Each stride-th step, until there are no more; a database each. Returns what is wrong, and how many.

    How many steps a daemon takes depends on what the other one did first. So one that is not reached does not say that
    later ones are not, either: there are no more when none of several is reached."""
    wrong, nr = [], 0
    with Server("fsync = off") as server, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in itertools.count(1, AT_ONCE * stride):
            results = list(pool.map(lambda at: step(database(server, at), at),
                                    range(first, first + AT_ONCE * stride, stride)))
            for w, died in results:
                wrong += w
                nr += died
            if wrong or not any(died for _, died in results):
                return wrong, nr


class Database:
    """One of a server's."""

    def __init__(self, server, name):
        self.url = server.url.rpartition("/")[0] + f"/{name}"
        self.over = lambda: Server.over(self)

    def query(self, sql):
        return Server.query(self, sql)


def database(server, at):
    server.query(f"CREATE DATABASE d{at}")
    return Database(server, f"d{at}")


# ---- daemons that cannot begin --------------------------------------------------------------------

def refusals(tap):
    def fails(*args):
        with Daemon() as d:
            done = subprocess.run([f"{PROGRAMS}/twheeld", f"--state={d.dir}/state", *args], capture_output=True, text=True,
                                  timeout=60, check=False, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        return done.stderr if done.returncode == 1 and done.stderr.count("\n") == 1 else repr(done)

    with Server() as server:
        bad = server.url.replace(str(server.port), "1")
        tap.ok("cannot open the store" in fails(f"--store={bad}"), "error: there is no server", fails(f"--store={bad}"))
        server.query("CREATE ROLE guest LOGIN")
        secret = server.url.replace("postgres@", "guest:secret@")
        text = fails(f"--store={secret}")
        tap.ok("permission denied" in text and "secret" not in text, "error: a user without permissions; no password is shown", text)
        tap.same([fails("--lease=0.5s"), fails("--store=nonsense")],
                 ["<3>twheeld: '0.5s' is no duration from a second to an hour\n",
                  "<3>twheeld: cannot open the store: missing \"=\" after \"nonsense\" in connection info string\n"],
                 "options that are wrong")
        with Node(server) as node:
            node.start()
            node.stop()
        server.query("UPDATE version SET id = 99")
        tap.ok("its version is 99, and this twheeld knows 1" in fails(f"--store={server.url}"), "error: tables of another version")


# ---- the storm ------------------------------------------------------------------------------------

def disturb(rng, server, nodes):
    """One of the things that happen to daemons and servers."""
    what = rng.choice(["kill", "kill", "pause", "leave", "cut", "cut", "server", "nothing"])
    node = rng.choice(nodes)
    if what == "kill":
        node.kill()
        time.sleep(rng.choice([0, 0, 3 * LEASE]))
        node.start()
    elif what == "pause":
        node.pause(rng.choice([0.5, 3]) * LEASE)
    elif what == "leave":
        node.stop()
        node.start()
    elif what == "cut":
        for _ in range(rng.randint(1, 5)):
            server.cut()
            time.sleep(rng.uniform(0, 0.1))
    elif what == "server":
        server.stop()
        time.sleep(rng.choice([0, 2 * LEASE]))
        server.start()
    return what


def shots(node, rng, asked):
    """Times on their own, by keys: a request that is repeated, because no answer came, is the same one."""
    keys = [f"k{asked + i}" for i in range(20)]
    rows = [{"after": f"{rng.randint(0, 2000)}ms", "key": key} for key in keys]
    return len(rows) if node.post("/v1/jobs/shot/shots", rows)[0] == 200 else 0


def storm(seconds, seed):
    """Three daemons and what may happen to them. Returns what is wrong, and how many firings there were."""
    rng = random.Random(seed)
    with Server("max_connections = 200") as server, Node(server) as a, Node(server, shared=a) as b, \
            Node(server, shared=a) as c:
        nodes, happened, asked = [a, b, c], [], 0
        for node in nodes:
            node.start()
        put_rates(a, 12, a, rate="250ms")
        until(lambda: any_node(nodes, "PUT", "/v1/jobs/shot", {"exec": a.writes(), "overlap": "allow", "missed": "all"}), 20)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(rng.uniform(0.2, 1.5))
            try:
                asked += shots(rng.choice(nodes), rng, asked)
            except (OSError, http.client.HTTPException):
                pass
            happened.append(disturb(rng, server, nodes))
        until(lambda: not server.query("SELECT 1 FROM due WHERE main = 0 LIMIT 1"), 60)
        # A daemon that was stopped runs on what another runs again: there nothing can promise no overlap.
        wrong = settle(server, nodes, [f"rate{n}" for n in range(12)] + ["shot"])
        more, firings = judge(server.url, a.lines(), overlap="pause" not in happened)
        shot = server.query("SELECT count(*) FROM history h JOIN job j ON j.id = h.job WHERE more = 0 AND"
                            " (j.name = 'shot' OR j.def LIKE '%\"shot\"%')")[0][0]
        if shot < asked:
            more.append(f"{asked} shots were asked for, and {shot} are over")
        again = server.query("SELECT count(*) FROM history WHERE more = 1")[0][0]
        print(f"# seed {seed}: {firings} firings, {again} attempts made again, {asked} shots;",
              ", ".join(f"{what} {happened.count(what)}" for what in sorted(set(happened))), flush=True)
        return wrong + more + ([n.stderr() for n in nodes] if wrong + more else []), firings


def main_storm():
    seconds, tap, seed = int(os.environ.get("STORM", 1200)), Tap(4), int(os.environ.get("SEED", time.time()))
    wrong, nr = steps(1)
    tap.ok(not wrong and nr >= 20, f"killed at each of {nr} steps: 0 lost, 0 early, 0 double", *wrong)
    for part in range(3):
        wrong, firings = storm(seconds / 3, seed + part)
        tap.ok(not wrong and firings > 5 * seconds, f"a storm: 0 lost, 0 early, 0 double of {firings} firings", *wrong)
    tap.done()


def main():
    tap = Tap(47)
    with Server() as server, Node(server) as a, Node(server) as b:
        nodes = [a.start(), b.start()]
        sharing(tap, server, nodes)
        tap.same([n.stop() for n in nodes], [0, 0], "both daemons end")
        tap.ok(not any(n.unsound() for n in nodes), "both daemons were sound", *(n.unsound() for n in nodes))
        tap.same(server.query("SELECT count(*) FROM node"), [(0,)], "no life is left in the store")
    fence(tap)
    deaths(tap)
    backlog(tap)
    cancelled(tap)
    wrong, nr = steps(STRIDE)
    tap.ok(not wrong and nr >= 20 // STRIDE, f"killed at {nr} steps: 0 lost, 0 early, 0 double", *wrong)
    refusals(tap)
    tap.done()


if __name__ == "__main__":
    sys.exit(main_storm() if sys.argv[1:] == ["storm"] else main())
