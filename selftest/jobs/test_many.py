#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Tests of daemons that share PostgreSQL: which daemon owns which parts, requests to any daemon, and what happens to
jobs if a daemon is killed, stopped for longer than its lease, cut off, or dies at any step, or if the server dies.
storm.py does all of that at random, and more."""
import concurrent.futures
import contextlib
import http.client
import http.server
import itertools
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from daemon import IN_TIME, OUTCOMES, PROGRAMS, Connection, Daemon, Tap, free_port, until
from judge import judge
from postgres import ROOT, Node, Server
from proxy import Proxy

PARTS = 64
LEASE = 2.0
# A lease that is longer than any host stands still, so that no living daemon is buried.
LONG = "12s"
FIRINGS = 4
BACKLOG = 60000
MANY = 200
AT_ONCE = 3
# A daemon is killed at each STRIDE-th step: see steps(). With STRIDE=1 this takes some minutes.
STRIDE = int(os.environ.get("STRIDE", 8))
# It is also killed at the first step of each of these names, since these steps are rare.
NAMED = ["connections were made again", "a life goes on", "tasks were entered", "tasks were taken", "a task was seen", "a task was over",
         "before a life leaves", "a life has left"]
TRIES = 20


def run(node, name, **shot):
    """Ask for a run of a job, or for @shot, until the answer is not 503: see Node.put(). Returns the run's key."""
    path, body = (f"/v1/jobs/{name}/shots", [shot]) if shot else (f"/v1/jobs/{name}/run", None)
    return until(lambda: (a := node.post(path, body))[0] != 503 and a)[1][0]["run"]


def put_rates(node, nr, shared, rate="200ms", **more):
    for n in range(nr):
        definition = {"rate": rate, "exec": shared.writes(), "missed": "all", "overlap": "queue", "queue": 10000, **more}
        until(lambda n=n, definition=definition: any_node([node], "PUT", f"/v1/jobs/rate{n}", definition))


def settle(server, nodes, names):
    """Pause the jobs, wait until all firings are over, remove the jobs, and stop the daemons. Returns what is wrong."""
    for name in names:
        until(lambda name=name: any_node(nodes, "POST", f"/v1/jobs/{name}/pause"))
    until(lambda: server.query("SELECT count(*) FROM running") == [(0,)], 60)
    for name in names:
        until(lambda name=name: any_node(nodes, "DELETE", f"/v1/jobs/{name}"))
    wrong = []
    for node in nodes:
        if status := node.stop():
            wrong.append(f"{node.dir} ended with status {status}: {node.stderr()}")
        if node.unsound():
            wrong.append(node.unsound())
    return wrong


def any_node(nodes, method, path, body=None):
    """Send a request to each node until one answers 200 or 404. Returns whether one did. 404: an earlier request was done,
    and its answer was lost."""
    for node in nodes:
        try:
            if node.request(method, path, body)[0] in (200, 404):
                return True
        except (OSError, http.client.HTTPException):
            pass
    return False


def heard(fn):
    """Call fn(), which makes a request, until its daemon is there: a buried one begins again. Returns what fn() returns."""
    def once():
        try:
            return fn()
        except OSError:
            return None

    return until(once)


# ---- as one ---------------------------------------------------------------------------------------

def owner(server, nodes, job):
    """Returns the node that owns a job, and another node. If the owner was buried, this waits until it has begun again."""
    def find():
        rows = server.query(f"SELECT p.node FROM part p, job j WHERE j.name = '{job}' AND p.id = j.id & 63")
        return next((n for n in nodes if rows and n.life() == rows[0][0]), None)

    mine = until(find)
    return mine, next(n for n in nodes if n is not mine)


def sharing(tap, server, nodes):
    tap.ok(until(lambda: server.parts() == [PARTS // 2] * 2), "two share the parts", server.parts())
    for name in "abcdefgh":
        nodes[0].put(name, exec=["/bin/sh", "-c", "echo $TWHEEL_JOB $TWHEEL_ARG"])
    owners = {owner(server, nodes, name)[0] for name in "abcdefgh"}
    tap.same(len(owners), 2, "and jobs")
    for what, who in (("its owner", 0), ("another", 1)):
        node = owner(server, nodes, "a")[who]
        for _ in range(IN_TIME):
            began = time.monotonic()
            key = run(node, "a")
            rows = until(lambda key=key: [r for r in nodes[1].get(f"/v1/runs/{key}") if r["state"] == "over"])
            took = time.monotonic() - began
            if took < 2:
                break
        tap.ok(rows and rows[0]["outcome"] == "ok" and took < 2, f"a run that {what} was asked for", took, rows)
    mine, other = owner(server, nodes, "b")
    other.put("b", exec=["sleep", "100"])
    tap.same(mine.get("/v1/jobs/b")["definition"]["exec"], ["sleep", "100"], "a definition that another has put")
    key = run(other, "b")
    tap.same([r["run"] for r in other.get(f"/v1/runs/{key}")], [key], "a run is there as soon as it has its id")
    tap.same(until(lambda: (s := [r["state"] for r in other.get(f"/v1/runs/{key}")]) == ["running"] and s), ["running"], "any daemon lists what runs")
    tap.same([r["run"] for r in other.get("/v1/runs?job=b") if r["state"] != "over"], [key], "any daemon lists the runs of a job")
    tap.same([other.post(f"/v1/runs/{key}/kill")[0], other.post("/v1/runs/1-1/kill")[0]], [200, 404],
             "any daemon can be asked to kill a run")
    tap.same(until(lambda: [r["outcome"] for r in other.get(f"/v1/runs/{key}") if r["state"] == "over"]), ["killed"],
             "the run is killed")
    mine, other = owner(server, nodes, "c")
    other.post("/v1/jobs/c/shots", [{"after": "1h", "key": "x", "arg": "one"}])
    other.post("/v1/jobs/c/shots", [{"after": "0.4s", "key": "x", "arg": "two"}, {"after": "1h", "key": "y"}])
    status = mine.request("DELETE", "/v1/jobs/c/shots/y")[0]
    rows = mine.over("c")
    due = server.query("SELECT d.id FROM due d JOIN job j ON j.id = d.job WHERE j.name = 'c'")
    tap.same([status, [mine.output(r["run"]) for r in rows], len(mine.over("c")), due], [200, ["c two\n"], 1, []],
             "any daemon replaces and cancels shots")
    other.post("/v1/jobs/c/pause")
    run(mine, "c", after="0.1s")
    time.sleep(0.5)
    paused = len(mine.over("c"))
    other.post("/v1/jobs/c/resume")
    tap.same([paused, len(mine.over("c", 2))], [1, 2], "any daemon pauses and resumes")
    other.request("PUT", "/v1/days/feast", ["2027-01-01"])
    tap.same(mine.get("/v1/days/feast"), ["2027-01-01"], "a calendar is known to all daemons")
    days_elsewhere(tap, server, nodes)
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


def days_elsewhere(tap, server, nodes):
    """Change a calendar at each daemon while jobs that use it run at a rate. A daemon that does not own a job does not know
    when the job is due, and must not let its schedule begin anew."""
    for n in range(4):
        nodes[0].put(f"day{n}", rate="0.5s", exec=["true"], missed="all", grace="30s", overlap="queue", queue=1000, **{"except": "feast"})
    until(lambda: server.query("SELECT count(*) FROM history WHERE job IN (SELECT id FROM job WHERE name LIKE 'day%')")[0][0] >= 30)
    status = [node.request("PUT", "/v1/days/feast", ["2027-01-01", f"2027-01-0{n}"])[0] for n, node in enumerate(nodes, 2)]
    time.sleep(2)
    twice = server.query("SELECT job, at, count(*) FROM history WHERE more = 0 GROUP BY job, at HAVING count(*) > 1")
    tap.same([status, twice], [[200, 200], []], "a calendar that any daemon changes makes no job due twice at one time")
    for n in range(4):
        nodes[0].request("DELETE", f"/v1/jobs/day{n}")
    nodes[0].request("PUT", "/v1/days/feast", ["2027-01-01"])


# ---- the fence ------------------------------------------------------------------------------------

def lists(tap, server, nodes):
    """List 60 jobs 20 times, and count the server's commits. The loop waits for each query of a request, so a list must not
    need queries for each job. It must say when each job is due."""
    a, b = nodes
    a.request("POST", "/v1/jobs", [{"name": f"list{n:02}", "delay": "1h", "exec": ["true"]} for n in range(60)])
    until(lambda: len(b.get("/v1/jobs?prefix=list&limit=100")) == 60)

    def commits():
        time.sleep(2)       # until the server's processes have written their statistics
        return server.query("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")[0][0]

    before = commits()
    time.sleep(2)
    idle = commits() - before
    got = [a.get("/v1/jobs?prefix=list&limit=100") for _ in range(20)][-1]
    busy = commits() - before - idle
    tap.ok(busy < 20 * 30, "a list of 60 jobs costs few queries", busy, idle)
    wanted = [b.get(f"/v1/jobs/{job['name']}")["next"][:1] for job in got]
    tap.same([job["next"] for job in got], wanted, "and says of others' jobs what their owner does")


def psql_error(server, sql):
    done = subprocess.run(["psql", "-Xq", "-v", "VERBOSITY=verbose", "-d", server.url, "-c", sql],
                          capture_output=True, text=True, check=False)
    return done.stderr


def turn_sql(life, nr, row=None, lane=0, kind=2, attempt=0, state=0):
    """Returns the SQL for turn @nr. It fires @row of due, or does operation @kind of twheel.turn() to @row of due or running.
    Without @row it does nothing."""
    id_, at = row or (0, 0)
    last = "{" + ",".join(str(int(bool(row) and n >= kind)) for n in range(1, 9)) + "}"
    columns = [id_, at, 0, attempt, 0, state] + [0] * 9
    arrays = ", ".join(f"'{{{c}}}'" for c in columns)
    return f"SELECT * FROM twheel.turn({life}, {lane}, {nr}, '{last}', {arrays}, 0)"


def has_begun(server):
    """Returns whether a test's psql has executed a statement after BEGIN and waits for more. A transaction of a daemon does
    not count."""
    return server.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'psql' AND state = 'idle in transaction'"
                        " AND query NOT LIKE 'BEGIN%'")


@contextlib.contextmanager
def in_transaction(server, sql):
    """A context: a psql executes @sql in a transaction, which stays open until the context ends, and is then committed."""
    with subprocess.Popen(["psql", "-Xq", "-d", server.url], stdin=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL) as psql:
        print(f"BEGIN; {sql};", file=psql.stdin, flush=True)
        until(lambda: has_begun(server))
        try:
            yield
        finally:
            print("COMMIT;", file=psql.stdin, flush=True)
            psql.stdin.close()


def waits_for(server, first, sql):
    """Execute @sql while a transaction that has executed @first, such as a turn, is open. Returns whether @sql waits for it,
    and the rows of @sql."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with in_transaction(server, first):
            asked = pool.submit(server.query, sql)
            until(lambda: asked.done() or server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
            waits = not asked.done()
        return waits, asked.result()


def join_sql(name, lease=3600000000, old=0, key=0):
    return f"SELECT twheel.join_as({old}, '{name}', {lease}, {key}, (SELECT code FROM version))"


def fence(tap):
    """Call the schema's functions by hand: how lives begin, continue, leave and are buried, and which turns the server
    refuses."""
    with Server() as server, Node(server, lease=LONG) as node:
        node.start()
        node.put("j", exec=["true"])
        node.stop()
        me = server.query(join_sql("hand"))[0][0]
        tap.same(server.query(f"SELECT twheel.balance({me})"), [(-1,)], "a single life owns all parts")
        row = server.query("INSERT INTO due (job, at, main) SELECT id, 1, 0 FROM job RETURNING id, at")[0]
        late = server.query(f"INSERT INTO due (job, at, main) SELECT id, {2**62}, 0 FROM job RETURNING id, at")[0]
        tap.same(server.query(turn_sql(me, 1, late)), [], "a firing that is not due by the server's clock is refused")
        tap.same([len(server.query(turn_sql(me, 2, row))), server.query("SELECT id, at FROM running")], [1, [row]],
                 "a firing that is due is done")
        tap.same(server.query(turn_sql(me, 2, row))[0][0], 0, "a turn that is sent again is recognised")
        tap.same(server.query("SELECT count(*) FROM running"), [(1,)], "a turn that is sent again changes nothing")
        old = me
        waits, rows = waits_for(server, turn_sql(me, 1, late, lane=1), f"SELECT twheel.go_on({me}, 'hand', 3600000000)")
        me = rows[0][0]
        tap.ok(waits, "a life continues only after its turns in progress")
        tap.same(server.query(f"SELECT (SELECT life FROM running), twheel.mine({me}), nr, turn FROM lane ORDER BY nr"),
                 [(me, -1, 0, 2), (me, -1, 1, 1)], "a life continues under another number, with all that it has")
        tap.ok("TW001" in psql_error(server, turn_sql(old, 3)), "the old number of a life is refused")
        server.query(f"UPDATE node SET lease_until = now() - interval '1 s' WHERE id = {me}")
        hasty = server.query(join_sql("hasty"))[0][0]
        since = f"SELECT n.since = (SELECT min(s.since) FROM {{}} s) FROM node n WHERE n.id = {{}}"
        tap.same(server.query(since.format("seen", hasty)), [("t",)], "a life that begins soon after another has left waits for nobody")
        server.query(f"SELECT twheel.leave({hasty})")
        was = server.query("SELECT last < now() FROM seen; UPDATE seen SET last = now() + interval '2 h', since = '-infinity'")
        ahead = server.query(join_sql("ahead"))[0][0]
        tap.same([was, server.query(f"SELECT isfinite(since) FROM node WHERE id = {ahead}")], [[("t",)]] * 2,
                 "who has left was there then, however long its lease was, unless the clock says that it will be")
        server.query(f"SELECT twheel.leave({ahead}); UPDATE seen SET last = now() - interval '2 h', since = '-infinity'")
        heir = server.query(join_sql("heir", key=7))[0][0]
        again = server.query(f"SELECT since, now() - since < interval '9 s', nextval('node_id_seq') FROM node WHERE id = {heir}")[0]
        heir = server.query(join_sql("heir", old=7))[0][0]
        tap.same(server.query(f"SELECT since, now() > since, {again[2]} FROM node WHERE id = {heir}"), [again],
                 "a life that begins long after all others is in touch from then on, also if it begins again")
        tap.same(server.query(f"SELECT twheel.balance({heir})"), [(0,)], "a life that begins buries nobody at once")
        same = server.query(f"UPDATE node SET since = now() - interval '1 h' WHERE id = {heir}; SELECT since FROM node WHERE id = {heir}")
        next_ = server.query(join_sql("next"))[0][0]
        heir = server.query(f"SELECT twheel.go_on({heir}, 'heir', 3600000000)")[0][0]
        tap.same(server.query(f"SELECT since FROM node WHERE id IN ({next_}, {heir}) AND lease_until > now()"), same * 2,
                 "how long one was in touch counts for one that begins soon after that, and for itself if it lost its connection")
        server.query(f"SELECT twheel.leave({next_})")
        other = server.query(join_sql("brief", lease=1000000))[0][0]
        server.query(f"SELECT twheel.beat({other}, 0, 1000000)")
        tap.same(server.query(f"SELECT since FROM node WHERE id = {other}"), same, "its own short lease does not matter")
        server.query(f"UPDATE node SET lease_until = lease_until - interval '10 s' WHERE id = {heir}")
        heir = server.query(f"SELECT twheel.go_on({heir}, 'heir', 3600000000)")[0][0]
        tap.same(server.query(f"SELECT since > now() - interval '9 s' FROM node WHERE id = {heir}"), [("t",)],
                 "but not if somebody's whole lease had passed meanwhile")
        server.query(f"SELECT twheel.leave({other})")
        server.query(f"UPDATE node SET since = '-infinity' WHERE id = {heir}")
        tap.same(server.query(f"SELECT twheel.balance({heir})"), [(-1,)], "a life whose lease is over is buried, and its parts are taken over")
        errors = [psql_error(server, sql) for sql in (turn_sql(me, 3), f"SELECT twheel.beat({me}, 0, 1)",
                                                      f"SELECT twheel.balance({me})", f"SELECT twheel.go_on({me}, 'x', 1)")]
        tap.ok(all("TW001" in e for e in errors), "a buried life can write nothing", *errors)
        other = server.query(join_sql("other"))[0][0]
        theirs = server.query("INSERT INTO due (job, at, main) SELECT id, 1, 0 FROM job RETURNING id, at")[0]
        tap.same([server.query(turn_sql(other, nr, theirs, kind=kind)) for nr, kind in ((1, 2), (2, 3), (3, 4))], [[]] * 3,
                 "a life can neither fire nor leave out what another owns")
        server.query(f"DELETE FROM due WHERE id = {theirs[0]}")
        # As if the server's clock were set forward, which ends all leases, and back.
        ahead = "UPDATE node SET lease_until = lease_until {} interval '10 h', since = now() {} interval '10 h'"
        server.query(ahead.format("-", "-"))
        server.query(f"SELECT twheel.beat({heir}, 0, 3600000000)")
        tap.same(server.query(f"SELECT count(*) FROM twheel.late({heir})"), [(0,)],
                 "a life whose own lease is over too buries nobody")
        for _ in range(2):
            server.query(ahead.format("+", "+"))
        server.query(f"SELECT twheel.beat({heir}, 0, 3600000000)")
        tap.same(server.query("SELECT count(*) FROM node WHERE lease_until > now() + interval '61 min' OR"
                              " since > now()"), [(0,)], "no lease is longer than it may be, nor was anybody in touch in the future")
        server.query(f"UPDATE node SET since = '-infinity' WHERE id = {other}")
        server.query(f"UPDATE node SET lease_until = now() - interval '1 s' WHERE id = {heir}")
        waits, rows = waits_for(server, f"SELECT twheel.beat({heir}, 0, 3600000000)", f"SELECT twheel.bury_late({heir})")
        tap.ok(waits and rows and not psql_error(server, f"SELECT twheel.beat({heir}, 0, 3600000000)"),
               "a life that renews its lease meanwhile is not buried")
        # A turn in progress holds up the burial of its life. When the life is buried, what the turn wrote must be there.
        server.query(f"UPDATE node SET lease_until = now() - interval '1 s' WHERE id = {heir}")
        row = server.query("INSERT INTO due (job, at, main) SELECT id, 1, 0 FROM job RETURNING id, at")[0]
        with in_transaction(server, turn_sql(heir, 1, row, lane=1)):
            tap.ok(server.query(f"SELECT twheel.balance({other})") != [(-1,)], "a burial does not wait for a turn in progress")
        tap.same(server.query(f"SELECT twheel.balance({other}), (SELECT count(*) FROM running WHERE life = {heir})"), [(-1, 1)],
                 "but takes place, and finds the turn, when that is over")
        nr = itertools.count(4)

        def after(kind, was, state):
            """Give heir's run the state @was, and let a turn of other do operation @kind to it. Returns its attempt and
            state, and 1 if it is other's now."""
            where = f"WHERE id = {row[0]} AND at = {row[1]}"
            server.query(f"UPDATE running SET state = {was}, life = {heir}, attempt = 1 {where}")
            server.query(turn_sql(other, next(nr), row, kind=kind, attempt=1, state=state))
            return server.query(f"SELECT attempt, state, CAST(life = {other} AS int) FROM running {where}")[0]

        tap.same([after(5, 2, 1), after(5, 3, 1)], [(2, 1, 1), (2, 3, 1)], "the next attempt of a run that somebody has killed is killed")
        tap.same([after(6, 2, 4), after(6, 3, 4)], [(1, 4, 1), (1, 3, 0)], "a run that somebody has killed does not become ready")
        tap.same([after(6, 2, 3), after(6, 3, 3)], [(1, 3, 0)] * 2, "and a kill leaves the log where it is")


# ---- deaths ---------------------------------------------------------------------------------------

def deaths(tap):
    with Server() as server, Node(server) as a, Node(server, shared=a) as b, Node(server, shared=a) as c:
        a.start()
        b.start()
        put_rates(a, 8, a)
        until(lambda: len(a.lines()) > 30)
        for _ in range(IN_TIME):
            b.kill()
            began = time.monotonic()
            until(lambda: server.parts() == [PARTS])
            took = time.monotonic() - began
            if took < LEASE + LEASE / 3 + 1:
                break
            b.start()
            until(lambda: server.parts() == [PARTS // 2] * 2)
        tap.ok(took < LEASE + LEASE / 3 + 1, "kill -9: the other daemon has all jobs in time", took)
        print(f"# fail-over in {took:.2f} s with a lease of {LEASE} s")
        b.start()
        tap.ok(until(lambda: server.parts() == [PARTS // 2] * 2), "kill -9: the daemon comes back, and has its share", server.parts())
        for _ in range(IN_TIME):
            c.start()
            shared = until(lambda: max(server.parts()) == 22 and sum(server.parts()) == PARTS)
            began = time.monotonic()
            status = c.stop()
            taken = until(lambda: server.parts() == [PARTS // 2] * 2)
            took = time.monotonic() - began
            if took < LEASE:
                break
        tap.ok(shared, "a third daemon has its share", server.parts())
        tap.same(status, 0, "the third daemon leaves")
        tap.ok(taken and took < LEASE, "the parts of a daemon that left are taken at once", took, server.parts())
        a.pause(3 * LEASE)
        tap.ok(until(lambda: "was buried" in a.stderr()) and until(lambda: server.parts() == [PARTS // 2] * 2),
               "SIGSTOP for longer than the lease: it was buried, and begins again", a.stderr())
        for name, out, more in (("long", "out", {"overlap": "allow"}), ("sole", "sole", {})):
            command = a.writes(out, f"sleep {1.5 * LEASE}")
            until(lambda name=name, command=command, more=more: heard(lambda: a.put(name, exec=command, **more))[0] == 200)
        def away():
            server.stop()
            time.sleep(2 * LEASE)
            server.start()

        wanted = [[(1, "ok")]] * 2
        tap.same(runs_through(a, server.cut, wanted), wanted, "a cut connection: runs continue", a.stderr())
        wanted = [[(1, "ok")], [(1, "lost"), (2, "ok")]]
        tap.same(runs_through(a, away, wanted), wanted,
                 "no server for longer than the lease: what must not overlap was killed in time, and is run again", a.stderr())
        names = [f"rate{n}" for n in range(8)] + ["long", "sole"]
        wrong = settle(server, [a, b], names)
        more, firings = judge(server.url, (line for name in ("out", "sole") for line in a.lines(name)))
        tap.ok(not wrong + more and firings > 300, f"0 lost, 0 early, 0 double of {firings} firings", *wrong, *more)


def runs_through(node, happens, wanted):
    """Begin a run of "long", whose runs may overlap, and one of "sole", whose runs must not, and call happens(). Returns the
    attempts of both, with their outcomes. If the host stops the daemon or the server for longer than a lease, runs are lost
    as well: so try until the result is @wanted, IN_TIME times at most."""
    for _ in range(IN_TIME):
        begun = len(node.lines("sole"))
        keys = [until(lambda name=name: try_run(node, name)) for name in ("long", "sole")]
        until(lambda: len(node.lines("sole")) > begun)
        happens()
        rows = [until(lambda key=key: over_of(node, key)) for key in keys]
        rows = [[(r["attempt"], r["outcome"]) for r in reversed(over or [])] for over in rows]
        if rows == wanted:
            break
    return rows


def try_run(node, name):
    """Ask for a run of a job. Returns the run's key, or None if the daemon is just beginning again."""
    try:
        status, answer = node.post(f"/v1/jobs/{name}/run")
        return answer[0]["run"] if status == 200 else None
    except OSError:
        return None


def catches_up():
    """Let more firings be due at once than the daemon can write within its lease. A run of their job is active, so the daemon
    skips them all. Returns whether the daemon has renewed its lease meanwhile, and what explains it if not."""
    with Server("fsync = off") as server, Node(server, lease="1s") as node:
        node.start()
        node.put("j", exec=["sleep", "300"], overlap="skip", grace="1h")
        run(node, "j")
        node.stop()
        at = int((time.time() + 3) * 1e6)
        server.query(f"INSERT INTO due (job, at, main) SELECT id, {at}, 0 FROM job, generate_series(1, {BACKLOG})")
        node.start()
        done = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 5") == [(BACKLOG,)], 60)
        lives = server.query("SELECT max(id) FROM life")[0][0]
        return done and lives == 2 and "answer" not in node.stderr(), f"{lives} lives", node.stderr()


def backlog(tap):
    """Call catches_up() until the lease is renewed, 2 * IN_TIME times at most: a busy host can also keep the server from
    answering for the whole lease of 1 s, but not each time."""
    for _ in range(2 * IN_TIME):
        renewed, *why = catches_up()
        if renewed:
            break
    tap.ok(renewed, "a lease is renewed in spite of a backlog", *why)


def looks_up(tap):
    """Let three jobs fire MANY times each while the server's statistics say that the tables are empty. They say so after a
    vacuum at a quiet moment, until the next one. What a turn reads must not depend on the size of the tables, or so many
    firings would take longer than the lease."""
    jobs = {"a": {"exec": ["true"], "overlap": "allow"}, "b": {"exec": ["true"], "overlap": "queue", "queue": MANY},
            "c": {"exec": ["false"], "overlap": "allow", "retry": {"times": 1, "wait": "1s"}}}
    with Server("fsync = off", "autovacuum = off") as server, Node(server, lease=LONG) as node:
        node.start()
        for name, definition in jobs.items():
            node.put(name, **definition)
        server.query("UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE relname IN ('due', 'running', 'job')")
        shots = [{"after": "3s"}] * MANY
        added = [until(lambda name=name: node.post(f"/v1/jobs/{name}/shots", shots)[0] == 200) for name in "abc"]
        over = until(lambda: server.over() == 3 * MANY, 120)
        tap.same([added, over, node.stop()], [[True] * 3, True, 0], "many firings are over", node.stderr())
        read = dict(server.query("SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes"))
        tap.ok(read["running_pkey"] < 20 * MANY and read["due_pkey"] + read["due_at"] < 20 * MANY,
               "each turn looks up its own rows, even if the server takes the tables for empty", read)


# 20000 rows of another machine, which is away, and one row of ours. For a day only their own machine deletes expired rows,
# after that any machine.
HISTORY = """
    INSERT INTO life VALUES (0, 'away');
    INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status, fired, began, ended, dropped)
        SELECT i, 1, 1, 0, 1, CAST(i % 1000 = 0 AS int), 0, 0, 0, 1, 1, 1, {dropped} FROM generate_series(1, 20000) i;
    INSERT INTO history (seq, id, at, job, life, attempt, outcome, more, missed, status, fired, began, ended, dropped)
        VALUES (100000, 1, 2, 1, {life}, 1, 0, 0, 0, 0, 1, 1, 1, 1);
    ANALYZE history"""


def walks(tap):
    """Fill the history with HISTORY, list the runs that failed, and let the daemon delete the row that has expired. How much
    is read must not depend on how much history there is."""
    with Server("fsync = off", "autovacuum = off") as server, Node(server, "--name=here", lease=LONG) as node:
        node.start()
        node.put("j", exec=["true"])
        server.query(HISTORY.format(life=node.life(), dropped=int((time.time() - 3600) * 1e6)))
        # List so often that the server may switch to a plan that does not depend on the values.
        found = [len(node.get(f"/v1/runs?outcome=failed{job}")) for job in ("", "&job=j") for _ in range(7)]
        deleted = until(lambda: not server.query("SELECT 1 FROM history WHERE seq = 100000"))
        tap.same([found, deleted, node.stop()], [[20] * 14, True, 0], "what failed is listed, and what expired here is deleted", node.stderr())
        read = dict(server.query("SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE relname = 'history'"))
        rows = server.query("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'history'")[0][0]
        tap.ok(rows + sum(read.values()) < 2000, "without a walk of all history", rows, read)


def cancelled(tap):
    """Give two jobs 8 rows of due each for the same time. Before that time, delete all but the first row of one job and the
    last of the other. The daemon decides about the 8 firings of a job in one turn. The firing that is left may have to wait
    for those that were cancelled, but not for ever."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        for name in ("a", "b"):
            node.put(name, exec=["true"], overlap="queue", queue=9)
        node.stop()
        for seconds in (3, 6, 12, 24):
            at = int((time.time() + seconds) * 1e6)
            server.query(f"INSERT INTO due (job, at, main) SELECT id, {at}, 0 FROM job, generate_series(1, 8)")
            node.start()
            server.query("DELETE FROM due WHERE id NOT IN (SELECT min(id) FROM due UNION SELECT max(id) FROM due)")
            if time.time() * 1e6 < at:
                break
            node.stop()         # the host was slow: the rows were due before the DELETE
            server.query("DELETE FROM due")
            server.query("DELETE FROM running")
            server.query("DELETE FROM history")
        over = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 0") == [(2,)])
        for name in ("a", "b"):
            run(node, name)
        more = until(lambda: server.query("SELECT count(*) FROM history WHERE outcome = 0") == [(4,)])
        tap.ok(over and more, "a firing does not wait for one that was cancelled before it was written",
               server.query("SELECT job, id, outcome FROM history"), node.stderr())


def slow(tap):
    """Call begins_many(): to begin all runs takes a daemon longer than its lease. If the daemon began them in one go, it
    would be buried, and the next owner would begin all runs anew, and so on."""
    wanted = [MANY, [(1,)], [(2,)]]
    for _ in range(IN_TIME):
        got, said = begins_many()
        if got == wanted:
            break
    tap.same(got, wanted, "a lease is renewed while many runs begin", said)


def begins_many():
    """Start two daemons that take 20 ms longer to begin a process, and ask a job's owner for MANY runs at once. Returns how
    many runs are over, the greatest number of an attempt, and the number of lives; and messages."""
    with Server("fsync = off") as server, Node(server) as a, Node(server) as b:
        for node in (a, b):
            node.start(TWHEELD_SLOW="20000")
        until(lambda: server.parts() == [PARTS // 2] * 2)
        a.put("j", exec=["true"], overlap="allow")
        owner(server, [a, b], "j")[0].post("/v1/jobs/j/shots", [{"after": "0"}] * MANY)
        until(lambda: server.over() == MANY)
        return [server.over(), server.query("SELECT max(attempt) FROM history"), server.query("SELECT max(id) FROM life")], a.stderr()[:1000]


def long_work(tap):
    """Call far_away(): to put many jobs, and to hear of many that another daemon has put, takes a daemon longer than its
    lease."""
    wanted = [200, 200, MANY, [(2,)], [(0,)]]
    for _ in range(IN_TIME):
        got, took, said = far_away()
        if got == wanted and min(took) > LEASE:
            break
    tap.ok(got == wanted and min(took) > LEASE, "a lease is renewed while much is put, and while much is heard of", wanted, got, took, said)


def far_away():
    """Delay what passes between the server and daemon a, and put MANY jobs: first some at a, then the rest at daemon b. Eight
    runs are active. Returns the statuses, how many of the jobs a knows then, the number of lives, and the number of runs that
    are over; how long each part took; and a's messages."""
    with Server("fsync = off") as server, Proxy(server.port) as proxy, Node(server, url=proxy.url(server.url)) as a, Node(server) as b:
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        for n in range(8):
            b.put(f"j{n}", exec=["sleep", "1000"])
            run(b, f"j{n}")
        until(lambda: server.query("SELECT count(*) FROM running") == [(8,)])
        proxy.delay = 0.02
        answers, took = [], []
        for node, n in ((a, MANY // 4), (b, MANY - MANY // 4)):
            jobs, began = [{"name": f"{node is a}-{i}", "exec": ["true"]} for i in range(n)], time.monotonic()
            answers.append(heard(lambda node=node, jobs=jobs: node.request("POST", "/v1/jobs", jobs, timeout=100)[0]))
            heard(lambda: a.get("/v1/jobs?limit=1"))
            took.append(time.monotonic() - began)
        proxy.delay = 0
        known = len(heard(lambda: a.get("/v1/jobs?limit=1000"))) - 8
        over = server.query("SELECT count(*) FROM history")
        return [*answers, known, server.query("SELECT max(id) FROM life"), over], took, a.stderr()


def long_turn(tap):
    """Let the server take longer than the lease for a turn, and do everything else at once. Meanwhile send requests: the
    daemon must answer, and stay in its first life."""
    for _ in range(IN_TIME):
        with Server("fsync = off") as server, Node(server) as node:
            node.start()
            node.put("long", exec=["/bin/sh", "-c", f"echo >>{node.dir}/long; sleep 1000"])
            node.put("quick", exec=["true"])
            key = run(node, "long")
            until(lambda: node.lines("long"))
            server.query("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(6); RETURN NEW; END $$;"
                         "CREATE TRIGGER slow BEFORE INSERT ON twheel.history FOR EACH STATEMENT EXECUTE FUNCTION slow()")
            run(node, "quick")
            until(lambda: server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
            status = heard(lambda: node.request("GET", "/v1/jobs?limit=1")[0])
            rows = until(lambda: heard(lambda: node.request("GET", f"/v1/runs/{key}")[0]) == 200 and node.get(f"/v1/runs/{key}"))
            got, said = [status, [r["state"] for r in rows], server.query("SELECT max(id) FROM life")], node.stderr()
            if got == [200, ["running"], [(1,)]]:
                break
    tap.same(got, [200, ["running"], [(1,)]], "a lease is renewed while the server does a turn that takes longer", said)


def held_up(tap):
    """Hold the lock of lives that make long changes, until a daemon has answered a runner that reports a run."""
    body = {"runner": "r-1", "name": "r", "pool": "p", "room": 0, "wait": 0, "runs": [{"run": "1-1", "attempt": 1, "shard": 0}]}
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        with in_transaction(server, "SELECT pg_advisory_xact_lock(7482)"):
            status, answer = heard(lambda: node.post("/v1/take", body))
        tap.same([status, answer.get("gone")], [200, body["runs"]], "a runner renews its lease though others make a long change", answer)


def cannot_read(server, node, table, change):
    """Stop the daemon, call change(), lock @table, and let the daemon continue. The daemon hears of the change, but cannot
    read the table: keep the lock until a statement of the daemon has given up. Returns what change() returns."""
    node.process.send_signal(signal.SIGSTOP)
    status = change()
    waits = "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with in_transaction(server, f"LOCK TABLE twheel.{table}"):
        node.process.send_signal(signal.SIGCONT)
        first = until(lambda: server.query(waits))
        until(lambda: server.query(waits) != first)
    return status


def refused(tap):
    """While a job at a rate skips firings, move its row of due ahead, and soon back. The store refuses to skip if the row has
    changed, or if it is too early by the store's clock. The schedule must continue."""
    with Server() as server, Node(server, lease=LONG) as node:
        node.start()
        node.put("refused", rate="200ms", exec=["/bin/sh", "-c", f"until [ -e {node.dir}/told ]; do sleep 0.05; done"])
        rows = "SELECT count(*) FROM history WHERE outcome = "
        until(lambda: server.query(f"{rows}5") > [(0,)])
        # Move the row back before the daemon, which was refused, reads its rows again.
        server.query("DO $$ BEGIN UPDATE due SET at = at + 3600000000; COMMIT; PERFORM pg_sleep(0.3);"
                     " UPDATE due SET at = at - 3600000000; END $$")
        os.mknod(f"{node.dir}/told")
        tap.ok(until(lambda: server.query(f"{rows}0") > [(1,)], 20), "a time that the store does not let skip does not end a schedule", node.stderr())


def replaced(tap):
    """Give 20 jobs a shot with a key at daemon a, and replace the shots at both daemons. If a daemon that does not own the
    job replaces a shot, the owner still has a timer for the old one. The new shot must run."""
    with Server() as server, Node(server, lease=LONG) as a, Node(server, lease=LONG) as b:
        nodes = [a.start(), b.start()]
        until(lambda: server.parts() == [32, 32])
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 6))
        for n in range(20):
            a.put(f"shot{n}", exec=["true"])
        for arg in ("old", "new"):
            for n in range(20):
                for node in nodes if arg == "new" else nodes[:1]:
                    node.post(f"/v1/jobs/shot{n}/shots", [{"at": at, "key": "k", "arg": arg}])
        until(lambda: server.query("SELECT count(*) FROM history") == [(20,)])
        tap.same(server.query("SELECT outcome, count(*) FROM history GROUP BY outcome"), [(0, 20)],
                 "a shot that was replaced by way of another daemon is not skipped")


def no_names(tap):
    """Cut all connections of a daemon while the name server does not answer. The daemon asks the name server for the address
    of the database, and waits for longer than its lease. It must kill its runs before the lease is over."""
    what = "a daemon that waits for a name server kills its runs before its lease is over"
    if not ROOT:
        tap.ok(True, f"{what} # SKIP not root")
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf, Server() as server, \
            Node(server, "--name=a", url=server.url.replace("127.0.0.1", "db.example")) as a, Node(server, "--name=b", shared=a) as b:
        address = f"127.{os.getpid() >> 16 & 63 | 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 127 | 1}"
        deaf.bind((address, 53))
        for name, text in (("hosts", "127.0.0.1 db.example"), ("resolv.conf", f"nameserver {address}")):
            with open(f"{a.dir}/{name}", "w", encoding="ascii") as file:
                print(text, file=file)
        a.command = ["unshare", "-m", "sh", "-c", f'mount --bind {a.dir}/hosts /etc/hosts && mount --bind {a.dir}/resolv.conf /etc/resolv.conf && exec "$0" "$@"',
                     *a.command]
        a.start()
        line = f"while sleep 0.05; do [ -e {a.dir}/told ] && exit; echo $TWHEEL_JOB $TWHEEL_ATTEMPT $(date +%s%N) >>{a.dir}/alive; done"
        for n in range(8):
            a.put(f"j{n}", exec=["/bin/sh", "-c", line])
            run(a, f"j{n}")
        until(lambda: len({job for job, *_ in a.lines("alive")}) == 8)
        b.start()
        until(lambda: server.parts() == [32, 32])
        with open(f"{a.dir}/hosts", "w", encoding="ascii"):
            pass
        server.cut()
        until(lambda: any(attempt != "1" for _, attempt, *_ in a.lines("alive")), 30)
        time.sleep(2)
        os.mknod(f"{a.dir}/told")
        alive = [line for line in a.lines("alive") if len(line) == 3]       # lines may mix: all runs write at once
        again = {job: min(int(at) for name, attempt, at in alive if (name, attempt) == (job, "2")) for job, attempt, _ in alive if attempt == "2"}
        wrong = [line for line in alive if line[1] == "1" and int(line[2]) > again.get(line[0], int(line[2]))]
        tap.ok(again and not wrong, what, sorted(again), wrong[:5], a.stderr())


def keeps_commits(tap):
    """Turn the server's synchronous_commit off while a daemon is connected, ask for runs, and let the server crash. What the
    daemon has accepted must still be there."""
    with Server("wal_writer_delay = 10000", "wal_writer_flush_after = 0") as server, Node(server, lease=LONG) as node:
        node.start()
        node.put("j", exec=["true"])
        server.query("ALTER SYSTEM SET synchronous_commit = off")
        server.query("SELECT pg_reload_conf()")
        time.sleep(1)
        runs = {node.post("/v1/jobs/j/shots", [{"after": "1h"}])[1][0]["run"] for _ in range(10)}
        server.stop()
        server.start()
        tap.same(runs - {f"{i}-{at}" for i, at in server.query("SELECT id, at FROM due")}, set(), "what was accepted is there after a crash")


def reads_later(days):
    """Put jobs and a calendar at daemon b while daemon a cannot read their tables. Returns the statuses, whether a knows the
    jobs later, the days of two calendars that a knows, and the number of lives; and a's messages."""
    jobs = [{"name": f"new{n}", "exec": ["true"], "rate": "1h"} for n in range(8)]
    with Server("fsync = off") as server, Node(server, lease="4s") as a, Node(server, lease="4s") as b:
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        b.request("PUT", "/v1/days/feast", days)
        until(lambda: a.get("/v1/days/feast") == days)
        statuses = [cannot_read(server, a, "job", lambda: b.request("POST", "/v1/jobs", jobs)[0]),
                    cannot_read(server, a, "day_off", lambda: b.request("PUT", "/v1/days/other", days[:1])[0])]
        heard(lambda: a.get("/v1/jobs"))
        known = until(lambda: len(heard(lambda: a.get("/v1/jobs"))) == 8, 5), a.get("/v1/days/feast"), a.get("/v1/days/other")
        return [statuses, *known, server.query("SELECT max(id) FROM life")], a.stderr()


def reads_news(tap):
    days = ["2027-01-01", "2027-12-25"]
    wanted = [[200, 200], True, days, days[:1], [(2,)]]
    for _ in range(IN_TIME):
        got, said = reads_later(days)
        if got[-1] == wanted[-1]:
            break
    tap.ok(got == wanted and "cannot be read" in said, "news that could not be read is read later", wanted, got, said)


def killed(tap):
    """Stop the daemon that owns a run, ask the other daemon to kill the run, and kill the owner, which never hears of that.
    The other daemon must not begin the run again."""
    with Server("fsync = off") as server, Node(server) as a, Node(server) as b:
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        a.put("j", exec=["/bin/sh", "-c", f"echo >>{a.dir}/on; exec sleep 1000"])
        mine, other = owner(server, [a, b], "j")
        key = run(mine, "j")
        until(lambda: a.lines("on"))
        mine.process.send_signal(signal.SIGSTOP)
        status = heard(lambda: other.post(f"/v1/runs/{key}/kill")[0])
        mine.kill()
        rows = [(r["attempt"], r["outcome"]) for r in until(lambda: over_of(other, key)) or []]
        tap.same([status, rows, len(a.lines("on"))], [200, [(1, "killed")], 1], "the owner dies: a run that was killed is not made again",
                 other.stderr())


def put_late(tap):
    """Stop daemon a, which owns half of the jobs, until all jobs are due. Then put all definitions again at daemon b, half of
    them with another rate, and let a continue. Each job must run once."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as a, Node(server, lease=LONG) as b:
        a.start(), b.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        start = int(time.time()) + 4
        job = {"rate": "1h", "start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start)), "exec": ["true"]}
        names = [f"{word}{n}" for word in ("same", "other") for n in range(8)]
        status = [b.post("/v1/jobs", [{"name": name, **job} for name in names])[0]]
        a.process.send_signal(signal.SIGSTOP)
        time.sleep(start + 1 - time.time())
        status.append(b.post("/v1/jobs", [{"name": name, **job, **({} if name[0] == "s" else {"rate": "2h"})} for name in names])[0])
        a.process.send_signal(signal.SIGCONT)
        rows = until(lambda: (r := [r for r in b.get("/v1/runs?limit=1000") if r["state"] == "over"]) and len(r) >= 16 and r) or []
        time.sleep(1)
        tap.same([status, sorted((r["job"], r["at"][:19] + "Z", r["outcome"]) for r in rows), server.query("SELECT count(*) FROM history")],
                 [[200, 200], sorted((name, job["start"], "ok") for name in names), [(16,)]],
                 "what was due is run once, though its job was put again by another", a.stderr(), b.stderr())
        tap.same([a.unsound(), b.unsound()], ["", ""], "both are sound")


def new_calendar(tap):
    """Stop daemon b for less than its lease. Meanwhile put a calendar, and jobs that use it, at daemon a, and end a. When b
    continues, it must run the jobs."""
    with Server("fsync = off") as server, Node(server, lease="6s") as a, Node(server, lease="6s") as b:
        a.start(), b.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        time.sleep(1)
        b.process.send_signal(signal.SIGSTOP)
        a.request("PUT", "/v1/days/off", ["2030-01-01"])
        names = [f"j{n}" for n in range(8)]
        for name in names:
            a.put(name, cron="* * * * * *", exec=["true"], **{"except": "off"})
        status = a.stop()
        time.sleep(2.5)
        b.process.send_signal(signal.SIGCONT)
        seen = until(lambda: all(b.get(f"/v1/runs?job={name}") for name in names))
        tap.ok(seen and not status, "jobs and their calendar are new to the daemon that takes them over", b.get("/v1/jobs?limit=100"), b.stderr())
        tap.same([a.unsound(), b.unsound()], ["", ""], "both are sound")


class Accepts(http.server.BaseHTTPRequestHandler):
    """The handler of a web server: when the test tells it to, it answers that it has accepted a request."""

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.set()
        self.server.told.wait(60)
        self.send_response(202)
        self.end_headers()
        self.wfile.write(b"yes")

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


def accepts(server, node, state, outcome=0, runner=""):
    """Begin a run that is a request. Before the receiver accepts it, enter a task of that attempt into the store, with this
    state, outcome and runner. Returns the run's key, and the task as it is then."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Accepts) as web:
        web.asked, web.told = threading.Event(), threading.Event()
        threading.Thread(target=web.serve_forever, daemon=True).start()
        node.put("asks", http=f"http://127.0.0.1:{web.server_port}/", overlap="allow")
        key = run(node, "asks")
        web.asked.wait(60)
        server.query("INSERT INTO task (id, at, shard, shards, job, prio, attempt, state, outcome, status, killed, runner, life, until,"
                     f" began, wants_until) SELECT id, at, 0, 1, job, 0, 1, {state}, {outcome}, -1, 0, '{runner}', 0, {2**62}, 1, 0"
                     f" FROM running WHERE id = {key.split('-')[0]}")
        web.told.set()
        until(lambda: node.output(key) == "yes")    # by then the daemon has tried to enter its task
        web.shutdown()
        return key, server.query(f"SELECT state, outcome, runner FROM task WHERE id = {key.split('-')[0]}")


def accepted(tap):
    """Let a receiver accept requests whose runs have a task already: one that was killed, one that a runner has, and one that
    nobody has."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as node:
        node.start(http_proxy="", no_proxy="*")
        key, _ = accepts(server, node, 2, OUTCOMES.index("killed"))
        rows = until(lambda: over_of(node, key), 20) or []
        tap.same([r["outcome"] for r in rows], ["killed"], "202: a run that was killed meanwhile is over", node.stderr())
        key, task = accepts(server, node, 1, runner="r-1")
        done = [node.post(f"/v1/runs/{key}/done?runner={who}&attempt=1&status=0")[0] for who in ("", "r-1")]
        tap.same([task, done], [[(1, 0, "r-1")], [409, 200]], "202: a run that somebody has got meanwhile is his", node.stderr())
        key, task = accepts(server, node, 0)
        done = node.post(f"/v1/runs/{key}/done?attempt=1&status=0")[0]
        tap.same([task, done], [[(1, 0, "")], 200], "202: one that nobody has got is not", node.stderr())
        tap.same([node.stop(), node.unsound()], [0, ""], "the daemon was sound")


def answers_of_the_buried(server, node, name):
    """Let a daemon answer on ten connections, and stop it until it is buried. Ask it for a run on each of them, and let it
    continue. Returns the answers that it gave before it saw that it was buried."""
    until(lambda: server.parts() == [PARTS // 2] * 2)
    connections = [Connection(node.socket) for _ in range(10)]
    try:
        for connection in connections:
            connection.request("GET", "/v1/jobs?limit=1")
            connection.getresponse().read()
    except (OSError, http.client.HTTPException):    # the daemon is just beginning again
        return []
    node.process.send_signal(signal.SIGSTOP)
    until(lambda: server.parts() == [PARTS])
    for connection in connections:
        connection.request("POST", f"/v1/jobs/{name}/shots", '[{"after": "1s"}]')
    node.process.send_signal(signal.SIGCONT)
    answers = []
    for connection in connections:
        try:
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
        except OSError:
            pass
    return answers


def requests_of_the_buried(tap):
    """Stop a daemon until it is buried. When it continues, it answers waiting requests before it knows of its burial. It must
    refuse them: the owner of the job would never hear of them. Then let a request wait too long for the lock for changes: it
    must change nothing."""
    with Server("fsync = off") as server, Node(server) as a, Node(server) as b:
        a.start()
        b.start()
        # Sessions of the buried stay, as if the daemons had roles that may not end each other's sessions.
        server.query("CREATE OR REPLACE FUNCTION twheel.cut(old bigint) RETURNS void LANGUAGE sql AS 'SELECT'")
        until(lambda: server.parts() == [PARTS // 2] * 2)
        for n in range(8):
            until(lambda n=n: heard(lambda: a.put(f"j{n}", exec=["true"]))[0] == 200)
        name = next(f"j{n}" for n in range(8) if owner(server, [a, b], f"j{n}")[0] is a)
        answers = until(lambda: answers_of_the_buried(server, a, name))
        tap.ok(answers and all(status == 503 and b"was buried" in text for status, text in answers) and
               not server.query("SELECT id FROM due"), "a daemon that was buried accepts no request", answers)
        with in_transaction(server, "SELECT pg_advisory_xact_lock(7482)"):
            status, answer = heard(lambda: b.request("PUT", "/v1/jobs/new", {"exec": ["true"]}))
        # Try more than once: if the host stops the daemon for too long, it is buried.
        next_one = until(lambda: (s := heard(lambda: b.put("new", exec=["true"]))[0]) == 200 and s)
        tap.same([status, next_one], [503, 200], "a request that waited too long for others changes nothing, "
                 "and the next one can", answer, b.stderr())


def at_once(server, pool, requests):
    """Send two requests, each to its daemon, while the test holds the lock for changes. So both are checked before one of
    them is written. Returns the statuses, sorted."""
    with in_transaction(server, "SELECT pg_advisory_xact_lock(7482)"):
        asked = [pool.submit(node.request, *request) for node, *request in requests]
        until(lambda: server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == [(2,)], 3)
    return sorted(a.result()[0] for a in asked)


def circles(tap):
    """Send two daemons requests at the same time that are valid alone, but not together: that two jobs follow each other, and
    that a job is removed while another lets it follow. One must be refused."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as a, Node(server, lease=LONG, shared=a) as b, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        a.start()
        b.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        for name in "xyz":
            a.put(name, exec=["true"])
        until(lambda: len(b.get("/v1/jobs")) == 3)
        after = {name: {"exec": ["true"], "then": {"ok": [name]}} for name in "xyz"}
        tap.same(at_once(server, pool, [(a, "PUT", "/v1/jobs/x", after["y"]), (b, "PUT", "/v1/jobs/y", after["x"])]), [200, 400],
                 "two daemons do not let two jobs follow each other", a.stderr(), b.stderr())
        tap.same(at_once(server, pool, [(a, "PUT", "/v1/jobs/x", after["z"]), (b, "DELETE", "/v1/jobs/z")]) in ([200, 400], [200, 409]), True,
                 "one daemon does not remove a job that another lets follow", a.get("/v1/jobs"))


def not_understood(tap):
    """Put jobs with a zone at daemon b. Daemon a has no time zones, and cannot understand them. A new definition that is put
    at a must count, and a must refuse to change what such jobs depend on."""
    with Server("fsync = off") as server, Node(server, "--name=a", lease=LONG, TZDIR="/nonexistent") as a, \
            Node(server, "--name=b", lease=LONG, shared=a) as b:
        a.start(), b.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        names = [f"j{n}" for n in range(4)]
        for name in names:
            a.put(name, rate="1s", exec=["true"])
            b.put(name, cron="0 0 1 1 *", zone="Europe/Berlin", exec=["true"])
        until(lambda: all(a.get(f"/v1/jobs/{name}").get("broken") for name in names))
        for name in names:
            a.put(name, rate="1s", exec=["true"])
        rows = {name: len(a.get(f"/v1/runs?job={name}")) for name in names}
        tap.ok(until(lambda: all(len(a.get(f"/v1/runs?job={name}")) > rows[name] + 2 for name in names)),
               "a definition that is put at a daemon that did not understand the one before counts", a.get("/v1/jobs"))
        b.request("PUT", "/v1/days/off", ["2030-01-01"])
        b.put("x", cron="0 12 * * *", zone="Europe/Berlin", exec=["true"], **{"except": "off"})
        b.put("y", exec=["true"], then={"ok": ["x"]})
        until(lambda: all(name in {j["name"] for j in a.get("/v1/jobs")} for name in "xy"))
        b.put("last", exec=["true"])
        b.put("x", cron="0 12 * * *", zone="Europe/Berlin", exec=["true"], then={"fail": ["last"]}, **{"except": "off"})
        until(lambda: "then" in (a.get("/v1/jobs/x").get("definition") or {}))
        answers = [a.request("PUT", "/v1/days/off", ["2030-01-02"]), a.put("z", exec=["true"], then={"ok": ["y"]}),
                   a.request("DELETE", "/v1/jobs/last"), b.request("PUT", "/v1/days/off", ["2030-01-02"])]
        tap.ok([status for status, _ in answers] == [409, 409, 409, 200] and all("not understood here" in a["error"] for _, a in answers[:2]),
               "and it refuses to change what such a job depends on", answers)


def cut_in_two(tap):
    """While a request with several shots waits for a lock in its middle, cut the idle connections: those of the lanes."""
    with Server("fsync = off") as server, Node(server, lease="10s") as node, concurrent.futures.ThreadPoolExecutor(1) as pool:
        node.start()
        node.put("j", exec=["true"])
        run(node, "j", after="1h", key="x")
        with in_transaction(server, "DELETE FROM twheel.due"):
            shots = [{"after": "1h"}, {"after": "1h", "key": "x"}, *[{"after": "1h"}] * 8]
            asked = pool.submit(node.post, "/v1/jobs/j/shots", shots)
            waited = until(lambda: server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
            server.cut("state = 'idle'")
            until(lambda: server.query("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle'") == [(0,)])
        status, answer = asked.result()
        rows = server.query("SELECT count(*) FROM due")[0][0]
        tap.ok(waited and (status, rows) in ((200, 10), (503, 0)), "a request is done or refused as a whole, whatever connection is lost",
               status, rows, answer)


def dropped(tap):
    """While the last history of a job expires, add a row of due for the job, as a turn does for a job that follows another.
    The daemon waits for that transaction, and must then keep the job."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        node.put("child", after="20ms", exec=["true"], keep="8s")
        until(lambda: server.over() == 1)
        with subprocess.Popen(["psql", "-Xq", "-d", server.url], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.DEVNULL) as turn:
            print("BEGIN; SELECT FROM twheel.job FOR SHARE; INSERT INTO twheel.due (job, at, main) SELECT id, 1, 0 FROM twheel.job;"
                  "INSERT INTO twheel.inbox (life, type, job, id, at) SELECT 0, 1, job, id, at FROM twheel.due;",
                  file=turn.stdin, flush=True)
            waited = until(lambda: server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
            print("COMMIT;", file=turn.stdin, flush=True)
            turn.stdin.close()
        ran = until(lambda: server.query("SELECT 1 FROM history WHERE at = 1"))
        tap.ok(waited and ran, "a job to which a turn adds a row of due is not deleted", server.query("SELECT id, job, at FROM due"),
               server.query("SELECT id FROM job"), node.stderr())


# Triggers that note when each statement that deletes history begins and ends, by the server's clock.
TELLS = """
    CREATE TABLE told (nr bigserial, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE FUNCTION told_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO twheel.told DEFAULT VALUES; RETURN NULL; END $$;
    CREATE TRIGGER begins BEFORE DELETE ON history FOR EACH STATEMENT EXECUTE FUNCTION told_now();
    CREATE TRIGGER ends AFTER DELETE ON history FOR EACH STATEMENT EXECUTE FUNCTION told_now();
"""
# How many such statements there were, and the shortest break between two, in us. Some follow each other without a break.
BREAKS = """
    SELECT count(*) / 2, coalesce(CAST(min(us) FILTER (WHERE n % 2 = 1 AND us > 100000) AS bigint), 0)
    FROM (SELECT row_number() OVER w AS n, extract(epoch FROM at - lag(at) OVER w) * 1000000 AS us FROM told WINDOW w AS (ORDER BY nr)) x"""


def forgets(tap):
    """Let 20000 rows of history expire at once, faster than a thousand a second. How fast the daemon deletes them depends on
    the host. How it deletes them does not: a thousand rows by each statement, one look at their job for each statement, and
    four times a second."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as node:
        node.start()
        node.put("j", exec=["true"])
        server.query(TELLS)
        server.query("INSERT INTO history (id, at, job, life, attempt, outcome, more, missed, status, fired, began, ended, dropped)"
                     f" SELECT i, 1, 1, {node.life()}, 1, 0, 0, 0, 0, 1, 1, 1, i FROM generate_series(1, 20000) i")
        began = time.monotonic()
        gone = until(lambda: server.query("SELECT count(*) FROM history") == [(0,)], 120)
        took = time.monotonic() - began
        time.sleep(2)       # until the server's processes have written their statistics
        looked = server.query("SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 'job'")[0][0]
        nr, pause = server.query(BREAKS)[0]
        tap.ok(gone and nr <= 30 and looked < 500 and pause < 800000, "20000 lines of history that expire at once go in a few steps, with short breaks",
               gone, nr, looked, pause, took)
        tap.same([node.stop(), node.unsound()], [0, ""], "and the daemon is sound")
    print(f"# {20000 / took:.0f} lines a second")


def over_of(node, key):
    """Returns all attempts of a firing that is over, the latest first; None if it is not over, or the daemon cannot be
    reached."""
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
        {"name": "fourth", "after": "350ms", "exec": d.writes(), "pool": "p"},     # the first daemon owns this job and the last
        {"name": "third", "after": "400ms", "exec": d.writes(more=once), "retry": {"times": 2, "wait": "20ms"}},
        {"name": "first", "after": "300ms", "exec": d.writes(), "then": {"ok": ["second"]}},
    ]


class LocalRunner(Daemon):
    """A runner of pool p, which talks to daemons of its machine by their sockets."""

    def __init__(self, *nodes):
        super().__init__("--pool=p", *(f"--runner={node.socket}" for node in nodes))


def step(server, at):
    """Let daemon a die at its @at-th step, or at the step of that name. It starts first, so that it has jobs however slow the
    host is, and the jobs are put at it, if it lives. All connections are cut once, and it leaves in the end. Returns what is
    wrong, and whether it died."""
    with Node(server) as b, Node(server, shared=b) as a, LocalRunner(a, b) as runner:
        a.start(TWHEELD_CRASH=str(at))
        b.start()
        runner.start(wait=False)
        for node in (a, b):
            try:
                status, _ = node.request("POST", "/v1/jobs", definitions(b), {"If-None-Match": "*"})
                if status in (200, 409):
                    break
            except (OSError, http.client.HTTPException):
                pass
        server.cut(f"datname = '{server.name}'")
        until(lambda: server.over() == FIRINGS)
        ran = runner.stop()
        status = a.stop()
        wrong = [] if status in (0, -9) else [f"status {status}", a.stderr()]
        if status := b.stop():
            wrong.append(f"the other ended with status {status}")
        if ran:
            wrong.append(f"the runner ended with status {ran}")
        wrong += [n.unsound() for n in (a, b, runner) if n.unsound()]
        more, firings = judge(server.url, b.lines())
        if firings != FIRINGS:
            wrong.append(f"{firings} firings are over, not {FIRINGS}")
        wrong += more
        return [f"step {at}: {w}" for w in wrong + ([b.stderr()] if wrong else [])], a.process.returncode == -9


def steps(stride):
    """Call step() for each stride-th step, until there are no more, and for those in NAMED, with a database each. Returns
    what is wrong, and at how many of the numbered steps a daemon died.

    How many steps a daemon takes depends on what the other one did first. So if a step is not reached, later ones may be.
    There are no more steps if none of AT_ONCE is reached, twice in a row."""
    wrong, nr, none = [], 0, 0
    with Server("fsync = off") as server, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in itertools.count(1, AT_ONCE * stride):
            results = list(pool.map(lambda at: step(database(server, at), at),
                                    range(first, first + AT_ONCE * stride, stride)))
            for w, died in results:
                wrong += w
                nr += died
            none = 0 if any(died for _, died in results) else none + 1
            if wrong or none == 2:
                break
        for name, (w, died) in zip(NAMED, pool.map(lambda name: named(server, name), NAMED)):
            wrong += w or ([] if died else [f"it did not come to the step '{name}'"])
        return wrong, nr


def named(server, name):
    """Call step() for this step until the daemon dies there, TRIES times at most: the runner may ask the other daemon, or
    that one may own the job. Returns what step() returns."""
    for again in range(TRIES):
        wrong, died = step(database(server, f"_{NAMED.index(name)}_{again}"), name)
        if wrong or died:
            break
    return wrong, died


class Database:
    """A database of a server, with the functions of Server that step() uses."""

    def __init__(self, server, name):
        self.name, self.url = name, server.database(name)
        self.over = lambda: Server.over(self)
        self.cut = lambda which: Server.cut(self, which)

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
        tap.same([fails("--lease=0.5s"), fails("--store=nonsense=1")],
                 ["twheeld: '0.5s' is not a duration from a second to 5 minutes\n",
                  "twheeld: cannot open the store: invalid connection option \"nonsense\"\n"],
                 "options that are wrong")
        with Node(server) as node:
            node.start()
            node.stop()
        server.query("UPDATE version SET id = 99")
        tap.ok("its version is 99, and this twheeld knows 4" in fails(f"--store={server.url}"), "error: tables of another version")


def configured(tap):
    """Configure the server with short timeouts and serializable transactions. If daemons used these settings, they would
    connect again and again, each time as another life, and the server would refuse what two of them do at the same time."""
    with Server("fsync = off", "idle_session_timeout = '0.5s'", "statement_timeout = '0.5s'", "default_transaction_isolation = 'serializable'") as server, \
            Node(server, lease=LONG) as a, Node(server, lease=LONG, shared=a) as b:
        a.start()
        b.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        time.sleep(3)
        for n in range(8):
            a.put(f"j{n}", rate="50ms", exec=["true"])
        answers = [node.request("PUT", f"/v1/jobs/k{n % 3}", {"exec": ["true"]})[0] for n in range(40) for node in (a, b)]
        slow = subprocess.Popen(["psql", "-Xq", "-d", server.url], stdin=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
        print("SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT pg_advisory_xact_lock(7482); SELECT pg_sleep(0.1);", file=slow.stdin, flush=True)
        until(lambda: has_begun(server))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(a.request, "PUT", "/v1/jobs/k0", {"exec": ["true"]})
            time.sleep(1)
            print("COMMIT;", file=slow.stdin, flush=True)
            slow.communicate()
            answers.append(asked.result()[0])
        lives = server.query("SELECT max(id) FROM life")[0][0]
        tap.same([lives, set(answers), "cannot be" in a.stderr() + b.stderr()], [2, {200}, False], "what the server is configured for does not matter",
                 answers, a.stderr(), b.stderr())


def waits_for_tables(tap):
    """Begin a daemon while the test holds the lock of a daemon that makes the tables, for longer than a statement of a living
    daemon waits for a lock."""
    with Server("fsync = off") as server, Node(server) as node:
        with in_transaction(server, "SELECT pg_advisory_xact_lock(7481)"):
            node.start(wait=False)
            asked = "SELECT 1 FROM pg_stat_activity WHERE application_name <> 'psql' AND query LIKE '%pg_try_advisory_xact_lock%'"
            waited = until(lambda: server.query(asked))
            time.sleep(LEASE)
        tap.ok(waited and until(lambda: node.process.poll() is not None or node.answers()) and node.answers(),
               "a daemon that begins waits for one that makes the tables", node.stderr())


def column(server, sql):
    return sorted(row[0] for row in server.query(sql))


def cut_again(server):
    """Cut all connections, and wait until the table node shows that each daemon continues as another life."""
    before = column(server, "SELECT id FROM node")
    server.cut()
    until(lambda: len(after := column(server, "SELECT id FROM node")) == len(before) and not set(after) & set(before))


def forgotten(tap):
    """Cut the connections of two daemons again and again: each time, both continue as other lives. A life must be forgotten
    when nothing names it any more, and not before."""
    with Server("fsync = off") as server, Node(server, "--name=here", lease=LONG) as a, Node(server, "--name=there", lease=LONG) as b:
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        a.put("j", exec=["/bin/sh", "-c", f"echo >>{a.dir}/begun; while ! [ -e {a.dir}/end ]; do sleep 0.1; done; echo; exit 1"],
              retry={"times": 1, "wait": "10ms"})
        mine, other = owner(server, [a, b], "j")
        key = run(mine, "j")
        until(lambda: a.lines("begun"))
        for _ in range(3):
            cut_again(server)
        os.mknod(f"{a.dir}/end")
        rows = until(lambda: over_of(other, key))
        tap.same([[r["attempt"] for r in rows or []], server.query("SELECT count(*) FROM history WHERE life NOT IN (SELECT id FROM life)")],
                 [[2, 1], [(0,)]], "what began in an earlier life is in the history under one that is known", a.stderr(), b.stderr())
        for _ in range(3):
            cut_again(server)
        names = {a: "here", b: "there"}
        tap.same([other.request("GET", f"/v1/runs/{key}/log?attempt={n}") for n in (1, 2)],
                 [(404, {"error": f"the log is on the machine '{names[mine]}'"})] * 2, "and the machine of its log is found")
        b.stop()
        cut_again(server)
        server.query("DELETE FROM history WHERE attempt = 1")
        server.query("UPDATE history SET life = (SELECT id FROM node)")
        cut_again(server)
        tap.same(column(server, "SELECT id FROM life"), column(server, "SELECT id FROM node UNION SELECT life FROM history"),
                 "a life is forgotten with the last line that names it")
        tap.same(server.query("SELECT count(*) FROM life"), [(2,)], "and not before")
        tap.same([a.stop(), a.unsound(), b.unsound()], [0, "", ""], "the daemons were sound")


def hangs(tap):
    """Let the alarm of a run be a mail, by a sendmail that hangs, and stop the daemon until it is buried. It must begin
    again."""
    with Server("fsync = off") as server, Node(server) as a, Node(server) as b:
        sendmail = a.sendmail(f"echo $$ >>{a.dir}/hangs; sleep 1234")
        for node in (a, b):
            node.start(sendmail)
        until(lambda: server.parts() == [PARTS // 2] * 2)
        a.put("bad", exec=["false"], alarm={"fail": ["mailto:x@example.org"]})
        mine, _ = owner(server, [a, b], "bad")
        run(mine, "bad")
        until(lambda: a.lines("hangs"))
        life = mine.life()
        mine.pause(3 * LEASE)
        tap.ok(until(lambda: mine.life() > life and server.parts() == [PARTS // 2] * 2, 30), "a mail that hangs keeps nobody from beginning again", mine.stderr())
        for pid, in a.lines("hangs"):
            if os.path.exists(f"/proc/{pid}"):
                os.killpg(os.getpgid(int(pid)), signal.SIGKILL)


def moved(tap):
    """Start daemon b as if its last life had been in another store, with the number of a life of daemon a here: a must not be
    buried. Then cut a's connections, so that it continues as another life, and kill it. The next a must not wait for the end
    of a lease."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as a, Node(server, lease=LONG) as b:
        a.start()
        a.put("j", rate="200ms", exec=["true"])
        os.mkdir(f"{b.dir}/state")
        for n, key in enumerate(("", f"{2**62}")):
            with open(f"{b.dir}/state/life", "w", encoding="ascii") as file:
                file.write(f"{a.life()} {key}\n")
            b.start()
            until(lambda: len(server.parts()) == 2)
            tap.same([b.stop(), "was buried" in a.stderr()], [0, False], f"a number from another store is nobody's here, {n}", a.stderr())
        life = server.query("SELECT max(id) FROM life")
        server.cut()
        until(lambda: server.query("SELECT max(id) FROM life") != life)
        a.kill()
        over, began = server.over(), time.monotonic()
        a.start()
        until(lambda: server.over() > over)
        tap.ok(time.monotonic() - began < float(LONG[:-1]), "a daemon whose connections were lost once finds its last life", a.stderr())


def runs_again(server, seconds=60):
    over = server.over()
    return until(lambda: server.over() > over + 2, seconds)


def silent_host(tap):
    """Give a daemon two addresses of the server. The first one does not answer: from the beginning, and then only when the
    daemon is connected there. The daemon must use the second."""
    with Server("fsync = off") as server, Proxy(server.port) as proxy, Node(server, url="") as node:
        both = server.url.replace(f":{server.port}/", f":{proxy.listens},127.0.0.1:{server.port}/") + "?connect_timeout=2"
        node.args = (f"--store={both}", *node.args[1:])
        for deaf in (True, False):
            proxy.deaf = frozenset(["up", "down"]) if deaf else frozenset()
            node.start()
            node.put("j", rate="200ms", exec=["true"])
            here = runs_again(server)
            proxy.deaf = frozenset(["up", "down"])
            tap.ok(here and runs_again(server), f"an address that does not answer is left, {deaf}", node.stderr())
            node.kill()
            proxy.cut()


def message(kind, text):
    """Returns a message of PostgreSQL's protocol."""
    return kind + struct.pack("!i", len(text) + 4) + text


class HalfDead:
    """A server that lets every client in and says nothing more, as a pooler does if its server is dead. Without @lets_in it
    says nothing at all."""

    def __init__(self, address="127.0.0.1", port=0, lets_in=True):
        self.socket = socket.create_server((address, port))
        self.port, self.lets_in = self.socket.getsockname()[1], lets_in
        self.here = []      # or Python would close them
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            self.here.append(client)
            if self.lets_in:
                threading.Thread(target=self.let_in, args=(client,), daemon=True).start()

    @staticmethod
    def let_in(client):
        def read(n):
            return client.recv(n, socket.MSG_WAITALL)

        try:
            while (start := read(int.from_bytes(read(4), "big") - 4))[:4] != b"\0\3\0\0" and start:     # asks for TLS or GSS
                client.sendall(b"N")
            client.sendall(message(b"R", bytes(4)) + b"".join(message(b"S", text) for text in (
                b"server_version\0" b"15.0\0", b"default_transaction_read_only\0off\0", b"in_hot_standby\0off\0")) + message(b"Z", b"I"))
        except (OSError, ValueError):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        for client in self.here:
            client.close()


def half_dead(tap):
    with Server("fsync = off") as server, HalfDead() as dead, Node(server, url="") as node:
        both = server.url.replace(f":{server.port}/", f":{dead.port},127.0.0.1:{server.port}/") + "?connect_timeout=2"
        node.args = (f"--store={both}", *node.args[1:])
        node.start(wait=False)
        tap.ok(until(node.answers, 30), "a server that lets in and says nothing more is left", node.stderr())


def names(tap):
    """Connect a daemon to a host name with two addresses. The first one does not answer, so the daemon must try the good one
    first when it connects again. Then let the name server take long, and then the server."""
    with Server("fsync = off") as server, HalfDead("127.0.0.2", server.port, lets_in=False) as silent, Node(server, url="") as node:
        node.args = (f"--store={server.url.replace('127.0.0.1', 'two.test')}?connect_timeout=5", *node.args[1:])
        node.start(LD_PRELOAD=f"{PROGRAMS}/names.so", SLOW_NAMES=f"{node.dir}/slow", ASAN_OPTIONS=os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0")
        node.put("j", rate="200ms", exec=["true"])
        here, tried = runs_again(server), len(silent.here)
        server.cut()
        tap.ok(here and runs_again(server) and tried == len(silent.here), "of the addresses of a host, the one that was good is tried first",
               node.stderr(), tried, len(silent.here))
        with open(f"{node.dir}/slow", "x", encoding="ascii"):
            server.cut()
        tap.ok(runs_again(server, 40), "to look a name up may take longer than to wait for an address", node.stderr())
        os.remove(f"{node.dir}/slow")
        server.query("ALTER SYSTEM SET pre_auth_delay = 6")
        server.query("SELECT pg_reload_conf()")
        node.kill()
        node.args = (f"--store={server.url}?connect_timeout=30", *node.args[1:])
        node.start(wait=False)
        until(node.answers, 60)
        server.cut()
        tap.ok(runs_again(server, 60), "a server may take long to let in, if connect_timeout says so", node.stderr())


def ended(node, seconds=20):
    """Wait until the daemon has ended, for @seconds at most. Returns its exit status, or None if it lives."""
    until(lambda: node.process.poll() is not None, seconds)
    return node.process.poll()


def empty_entries(tap):
    """Give a daemon lists of hosts and ports. An empty entry must mean libpq's own value, not the environment's. If the lists
    differ in length, the daemon must end."""
    with Server("fsync = off") as server, Node(server, url="") as node:
        node.args = (f"--store=postgresql://{server.user}@127.0.0.1:{free_port()},127.0.0.1/postgres", *node.args[1:])
        node.start(wait=False, PGPORT=str(server.port))
        tap.same(ended(node), 1, "no port in a list of several is port 5432, not PGPORT")
        tap.ok("port 5432 failed" in node.stderr(), "which it says", node.stderr())
        node.args = (f"--store=host=127.0.0.1,127.0.0.2 user={server.user} port={server.port},{server.port},1", *node.args[1:])
        node.start(wait=False)
        tap.ok(ended(node) == 1 and "could not match 3 port numbers to 2 hosts" in node.stderr(), "lists that do not fit together", node.stderr())


def versions(tap):
    """Let a daemon of another version begin after this daemon has looked for one. This daemon must end, and not begin a
    life."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        node.stop()
        error = psql_error(server, "SELECT twheel.join_as(0, 'hand', 3600000000, 0, 'its functions')")
        tap.ok("a daemon of another version has begun" in error, "a daemon does not begin a life with functions that are not its own", error)
        server.query("""CREATE OR REPLACE FUNCTION twheel.join_as(old bigint, name text, lease bigint, key bigint, code text)
                        RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'another has begun' USING ERRCODE = 'TW002'; END $$""")
        node.start(wait=False)
        tap.ok(ended(node) == 1 and "another has begun" in node.stderr(), "it ends then", node.stderr())


def open_elsewhere(tap):
    """Read news while a transaction is open in another database of the server. What was heard must not be heard again."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        server.query("CREATE DATABASE other")
        with subprocess.Popen(["psql", "-XqAt", server.database("other")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
            psql.stdin.write("BEGIN; SELECT pg_current_xact_id();\n")
            psql.stdin.flush()
            tap.ok(int(psql.stdout.readline() or 0), "a transaction is open in another database")
            since = server.query("SELECT CAST(pg_current_snapshot() AS text)")[0][0]
            node.put("j", exec=["true"])

            def news():
                rows = server.query(f"SELECT type, job, next FROM twheel.news(0, '{since}') WHERE type IS NOT NULL")
                return rows, server.query(f"SELECT next FROM twheel.news(0, '{since}') LIMIT 1")[0][0]

            first, since = news()
            again = news()[0]
            node.put("k", exec=["true"])
            tap.same([len(first), len(again), len(news()[0])], [1, 0, 1], "news is heard once, whatever transaction is open")
            psql.stdin.write("COMMIT;\n")


def restored(tap):
    """Change the tables as if they had been restored. First they have the numbers of another server's transactions. Then
    turns, or the key of a life, change while a daemon uses them: the daemon must begin again."""
    with Server("fsync = off") as server, Node(server, lease=LONG) as node:
        node.start()
        node.put("j", rate="200ms", exec=["true"])
        node.stop()
        server.query("INSERT INTO inbox (xid, life, type, job, id, at) SELECT 1000000000, 0, 0, id, 0, 0 FROM job")
        node.start()
        tap.same(server.query("SELECT count(*) FROM inbox WHERE xid = 1000000000"), [(0,)], "transactions of another server are forgotten")
        for what, sql in (("turns", "UPDATE lane SET turn = turn - 3 WHERE turn > 5"), ("another daemon", "UPDATE node SET key = 4711")):
            until(lambda: server.query("SELECT turn FROM lane WHERE turn > 9"))
            said, over = node.stderr().count("was buried"), server.over()
            server.query(sql)
            good = until(lambda: node.stderr().count("was buried") > said and server.over() > over + 2)
            tap.ok(good, f"a daemon begins again when its tables were restored: {what}", node.stderr())


def encodings(tap):
    with Server("fsync = off") as server:
        for name, good in (("LATIN1", False), ("SQL_ASCII", True)):
            server.query(f"CREATE DATABASE {name} ENCODING '{name}' LOCALE 'C' TEMPLATE template0")
            with Node(server, url=server.database(name.lower())) as node:
                node.start()
                said = "the encoding of the database is LATIN1, not UTF8" in node.stderr()
                tap.same([node.process.poll(), said], [None, False] if good else [1, True], f"a database in {name}", node.stderr())
        with Node(server) as node:
            node.start()
            node.stop()
        subprocess.run(f"pg_dump -n twheel {server.url} | psql -Xq -d {server.database('latin1')}", shell=True, check=True, stdout=subprocess.DEVNULL)
        with Node(server, url=server.database("latin1")) as node:
            node.start(wait=False)
            tap.ok(ended(node) == 1 and "LATIN1, not UTF8" in node.stderr(), "nor does a store that was restored there", node.stderr())


def as_jobs(server, url, *args, **env):
    """Returns a node that logs in as the role jobs, and not as the server's administrator."""
    return Node(server, *args, url=url.replace(f"{server.user}@", "jobs@"), **env)


class Jam(Proxy):
    """A proxy that passes nothing on any more as soon as the server has sent something long."""

    def is_eaten(self, way):
        if way.name == "down" and way.waiting and len(way.waiting[-1][1]) > 20000:
            self.deaf = frozenset(["up", "down"])
        return False


def half_sent(tap):
    """Let a daemon's machine vanish while the server sends it the answer to a turn, which is longer than all buffers: see
    still_sends(). Repeat that with a role that takes on another role."""
    for which, setting in (("", ""), (", whichever role the daemons take on", "; ALTER ROLE jobs SET role = app")):
        for _ in range(IN_TIME):    # again if the first turn had too few of the long arguments
            sends, buried, runs, said = still_sends(setting)
            if sends:
                break
        tap.ok(sends and buried, f"a life is buried while the server still sends it something{which}", sends, buried, said)
        tap.ok("cannot be written" not in said and runs, "the others run their jobs meanwhile", said)


def still_sends(setting):
    """Let shots with long arguments be due at daemon a, whose connections jam at the answer, and stop a. Returns whether the
    server still sends, whether a is buried, whether b runs its jobs, and b's messages."""
    with Server("fsync = off") as server, Jam(server.port) as proxy, as_jobs(server, proxy.url(server.url), "--name=a") as a, \
            as_jobs(server, server.url, "--name=b") as b:
        server.query("CREATE ROLE app; CREATE ROLE jobs LOGIN IN ROLE app; CREATE SCHEMA twheel AUTHORIZATION app;"
                     f" GRANT ALL ON SCHEMA twheel TO jobs{setting}")
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        put_rates(b, 8, b, "500ms")
        for n in itertools.count():
            b.put(f"big{n}", exec=["true"], overlap="allow")
            if owner(server, [a, b], f"big{n}")[0] is a:
                break
        b.post(f"/v1/jobs/big{n}/pause")
        for _ in range(40):
            b.post(f"/v1/jobs/big{n}/shots", [{"after": 0, "arg": "x" * 800000}])
        over = server.over()
        b.post(f"/v1/jobs/big{n}/resume")       # now all shots are due at once
        sends = until(lambda: server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'ClientWrite'") and proxy.deaf, 10)
        a.process.send_signal(signal.SIGSTOP)
        buried = until(lambda: server.parts() == [PARTS], 15)
        buried = buried and server.over() > over
        runs = runs_again(server)
        a.kill()
        return sends, buried, runs, b.stderr()


def set_up_for_long(tap):
    """Kill a daemon while somebody has the lock for setting the store up, or has locked a table, and stands still."""
    for lock in ("SELECT pg_advisory_xact_lock(7481)", "LOCK TABLE twheel.part IN SHARE MODE"):
        locked(tap, lock)


def locked(tap, lock):
    with Server("fsync = off") as server, Node(server, "--name=a") as a, Node(server, "--name=b") as b:
        for node in (a, b):
            node.start()
        until(lambda: server.parts() == [PARTS // 2] * 2)
        put_rates(b, 8, b, "100ms")
        with in_transaction(server, lock):
            b.kill()
            time.sleep(2 * LEASE)
            runs = [runs_again(server, 10) for _ in range(5)]
            tap.same([all(runs), "cannot be written" in a.stderr(), server.parts()], [True, False, [PARTS // 2] * 2],
                     f"the others run what is theirs meanwhile: {lock}", a.stderr())
        tap.ok(until(lambda: server.parts() == [PARTS]), "and have all later", server.parts())


def long_lease(tap):
    """Let the server be silent to a daemon with a long lease. Meanwhile the daemon must end a run at its timeout."""
    with Server("fsync = off") as server, Proxy(server.port) as proxy, Node(server, lease="4m", url=proxy.url(server.url)) as node:
        node.start()
        node.put("j", overlap="allow", timeout="3s", exec=["sleep", "300"])
        run(node, "j")
        until(node.marked)
        proxy.deaf = frozenset(["up", "down"])
        tap.ok(until(lambda: not node.marked(), 60), "a long lease does not keep a run from its timeout", node.stderr())
        node.kill()


def own_schema(tap):
    """Begin a daemon whose role may make no schema. An administrator has made the schema for it."""
    with Server("fsync = off") as server, as_jobs(server, server.url) as node:
        server.query("CREATE ROLE jobs LOGIN; CREATE SCHEMA twheel AUTHORIZATION jobs")
        node.start(wait=False)
        tap.ok(until(lambda: node.process.poll() is not None or node.answers()) and node.answers(), "a role that may not make a schema", node.stderr())


def published(tap):
    """Publish all tables of the database while daemons use them. The server then refuses to change rows of a table without an
    identity."""
    with Server("fsync = off") as server, Node(server, "--name=a") as a, Node(server, "--name=b") as b:
        a.start()
        put_rates(a, 2, a)
        server.query("CREATE PUBLICATION all_of_it FOR ALL TABLES")
        runs = runs_again(server)
        b.start()
        tap.ok(runs and until(lambda: server.parts() == [PARTS // 2] * 2), "daemons share tables that are published", a.stderr(), b.stderr())
        tap.same([a.stop(), b.stop(), server.query("SELECT count(*) FROM node")], [0, 0, [(0,)]], "and leave")


def behind(tap):
    """Begin a daemon when the server's clock is behind, so that it shows times again that an earlier life has seen. A job
    must not be due at such a time again."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        node.put("j", cron="0 0 1 * *", exec=["true"])
        before = node.get("/v1/jobs/j")["next"]
        node.stop()
        first, second = (f"CAST('{at}' AS timestamptz)" for at in before[:2])
        server.query(f"UPDATE due SET at = extract(epoch FROM {second}) * 1000000; UPDATE seen SET last = {first} + interval '1 day'")
        node.start()
        tap.same(node.get("/v1/jobs/j")["next"][0], before[1], "a clock that is behind makes no time come again", node.stderr())


BESIDE = ["CREATE FUNCTION twheel.report() RETURNS int LANGUAGE sql AS 'SELECT 1'",
          "CREATE PROCEDURE twheel.clean() LANGUAGE sql AS 'SELECT 1'",
          "CREATE FUNCTION twheel.audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
          "CREATE TRIGGER audit BEFORE UPDATE ON twheel.job FOR EACH ROW EXECUTE FUNCTION twheel.audit()"]


def beside(tap):
    """Change the version of a store while somebody has functions, and then a view, of their own beside the tables. The daemon
    must keep the functions, and refuse to start because of the view."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        node.stop()
        for sql in BESIDE:
            server.query(sql)
        server.query("UPDATE version SET code = 'older'")
        node.start()
        theirs = server.query("SELECT count(*) FROM pg_proc WHERE proname IN ('report', 'clean', 'audit')")
        tap.same([theirs, node.answers()], [[(3,)], True], "a new version keeps the functions of others", node.stderr())
        node.stop()
        server.query("CREATE VIEW public.who AS SELECT name FROM twheel.node")
        server.query("UPDATE version SET code = 'older'")
        node.start(wait=False)
        tap.ok(ended(node) == 1 and "public.who depends on table node" in node.stderr(), "it says what depends on its tables", node.stderr())


class Nat(Proxy):
    """A router that forgets connections: those whose port at the server's side is in @lost."""
    lost = frozenset()

    def move(self, pair, way, readable):
        if not way.ended and pair.sockets[1].getsockname()[1] in self.lost:
            if way.source in readable:
                way.source.recv(65536)
            return True
        return super().move(pair, way, readable)


def lost_lane(tap):
    """Let a router forget the connections of the lanes, as it does if they are idle for long. Then let a turn be sent
    there."""
    with Server("fsync = off") as server, Nat(server.port) as proxy, Node(server, lease="4m", url=proxy.url(server.url)) as node:
        node.start()
        node.put("j", exec=["true"])
        key = run(node, "j")
        until(lambda: over_of(node, key))
        proxy.lost = frozenset(port for port, in server.query("SELECT client_port FROM pg_stat_activity WHERE query LIKE '%twheel.turn%'"
                                                              " AND pid <> pg_backend_pid()"))
        began = time.monotonic()
        key = run(node, "j")
        tap.ok(proxy.lost and until(lambda: over_of(node, key)), "a lost connection of a lane is noticed")
        tap.ok(time.monotonic() - began < 60, "long before the lease is over", time.monotonic() - began)
        node.kill()


def by_slow_link(server, rate, arg):
    """Do a thousand firings with the argument @arg by a link of @rate bytes a second, while requests wait for the ends of
    turns. Returns whether the firings were done, and the messages."""
    with Proxy(server.port) as link, Node(server, lease="1s", url=link.url(server.url)) as node:
        node.start()
        node.put("j", exec=["true"], overlap="allow")
        node.post("/v1/jobs/j/shots", [{"after": "5s", "arg": arg}] * 1000)
        link.rate = rate
        until(lambda: not server.query("SELECT 1 FROM due WHERE at > now_us()"))
        end = time.monotonic() + 120

        def is_done():
            return server.query("SELECT count(*) FROM history")[0][0] >= 1000

        while not is_done() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                node.request("PUT", "/v1/jobs/other", {"exec": ["true"]}, timeout=60)
            time.sleep(0.5)
        node.kill()
        return is_done(), node.stderr()


def begins_again(tap):
    """Kill a daemon and start it again at once, while another daemon has fewer parts than its share, and a long lease. All
    parts must soon have an owner."""
    with Server("fsync = off") as server, Node(server, lease="5m") as a, Node(server, lease="5m", shared=a) as b:
        a.start()
        b.start()
        a.kill()
        a.start()
        owned = until(lambda: server.query("SELECT count(*) FROM part p JOIN node n ON n.id = p.node") == [(64,)], 10)
        tap.ok(owned, "if a daemon is killed and started again, others take at once what it does not", server.query("SELECT node, count(*) FROM part GROUP BY 1"))
        for n in range(2):
            a.kill()
            a.start(wait=False, TWHEELD_CRASH="a life was begun").crash()
        a.start()
        owned = until(lambda: server.query("SELECT count(*) FROM part p JOIN node n ON n.id = p.node") == [(64,)], 10)
        tap.ok(owned, "and if it is killed while it begins", server.query("SELECT node, count(*) FROM part GROUP BY 1"))


def slow_link(tap):
    """Send a long turn, or a turn with a long answer, by a slow link. That takes longer than ten leases, and longer than the
    daemon waits if no byte arrives."""
    with Server("fsync = off") as one, Server("fsync = off") as other, concurrent.futures.ThreadPoolExecutor(2) as pool:
        answer = pool.submit(by_slow_link, one, 60000, "x" * 800)
        turn = pool.submit(by_slow_link, other, 15000, "")
        for what, (done, messages) in (("a long answer", answer.result()), ("a long turn", turn.result())):
            tap.ok(done, f"{what} on a slow link is waited for", messages)


def slow_start(tap):
    """Begin a daemon by a link so slow that the definitions of all jobs take three leases to arrive."""
    with Server("fsync = off") as server, Proxy(server.port) as link, Node(server, lease="3s", url=link.url(server.url)) as node:
        node.start()
        for n in range(6):
            node.request("POST", "/v1/jobs", [{"name": f"j{n}-{i}", "delay": "1h", "exec": ["true"], "input": "x" * 10000} for i in range(50)])
        node.stop()
        link.rate = 333000
        node.start(wait=False)
        began = until(lambda: "life 2" in node.stderr())
        tap.ok(began, "a daemon begins by a slow link with many jobs", node.stderr())
        node.kill()


# Undo what has changed since the first commit of twheeld, as far as the old state is in the way of the present version.
OLD = """
    ALTER TABLE version DROP code; UPDATE version SET id = 1;
    DROP TABLE runner, task, lane;
    DROP INDEX history_bad, history_job_bad, history_life; CREATE INDEX history_dropped ON history (dropped);
    ALTER TABLE node DROP lease, ADD turn bigint NOT NULL DEFAULT 0;
    DROP INDEX due_at; CREATE INDEX due_at ON due (part, at) WHERE off = 0;
    DROP FUNCTION mine(bigint), join_as(bigint, text, bigint, bigint, text), twheel.beat(bigint, bigint, bigint);
    CREATE FUNCTION mine(me bigint, more bigint) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
    CREATE FUNCTION beat(me bigint, lease bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT CAST(1 AS bigint) $$;
"""
SCHEMA = """SELECT md5(string_agg(t, '' ORDER BY t)) FROM (
    SELECT CAST(id AS text) FROM version UNION ALL
    SELECT prosrc FROM pg_proc WHERE pronamespace = CAST('twheel' AS regnamespace) UNION ALL
    SELECT table_name || column_name FROM information_schema.columns WHERE table_schema = 'twheel' UNION ALL
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'twheel') x(t)"""


def older(tap):
    """Turn a store into one of an older version, with an active run and a shot for later. A daemon must refuse the store
    while an older daemon lives. After that it must convert the store, and continue the run and the shot. It must also refuse
    to share a store with daemons of other functions."""
    with Server("fsync = off") as server, Node(server) as node:
        node.start()
        node.put("j", exec=["/bin/sh", "-c", "[ $TWHEEL_ATTEMPT = 2 ] || sleep 1000"])
        node.put("k", exec=["true"])
        keys = [run(node, "j"), run(node, "k", after="10s")]
        until(lambda: server.query("SELECT 1 FROM running WHERE state = 2"))
        node.kill()
        life, new = node.life(), server.query(SCHEMA)
        server.query(OLD)
        server.query("UPDATE node SET lease_until = now() + interval '1 h'")
        old = server.query(SCHEMA)
        node.start().process.wait()
        tap.ok("twheeld: cannot open the store: daemons of another version share it, and have to end first: 1 of them\n"
               in node.stderr() and server.query(SCHEMA) == old, "error: daemons of an older version share the store", node.stderr())
        server.query("UPDATE node SET lease_until = now()")
        node.start()
        rows = [until(lambda key=key: over_of(node, key)) for key in keys]
        tap.ok(server.query(SCHEMA) == new and node.life() > life, "a store of an older version becomes one of ours", node.stderr(),
               server.query(SCHEMA), new)
        tap.same([[(r["attempt"], r["outcome"]) for r in over or []] for over in rows], [[(2, "ok"), (1, "lost")], [(1, "ok")]],
                 "what was in it goes on", node.stderr())
        with Node(server) as other:
            server.query("UPDATE version SET code = 'other'")
            other.start().process.wait()
            tap.ok("daemons of another version share it" in other.stderr(), "error: daemons with other functions share the store",
                   other.stderr())
        tap.same(node.stop(), 0, "the older store's new daemon ends", node.stderr())


def two(tap):
    with Server() as server, Node(server, lease=LONG) as a, Node(server, lease=LONG) as b:
        nodes = [a.start(), b.start()]
        sharing(tap, server, nodes)
        lists(tap, server, nodes)
        tap.same([n.stop() for n in nodes], [0, 0], "both daemons end")
        tap.ok(not any(n.unsound() for n in nodes), "both daemons were sound", *(n.unsound() for n in nodes))
        tap.same(server.query("SELECT count(*) FROM node"), [(0,)], "no life is left in the store")


def removed(tap):
    """Remove a job while some of its runs are at a runner, and more wait for another attempt. Each run at the runner must be
    told to end once."""
    out, wait = 20, 60
    with Server() as server, Node(server, lease="10s") as a:
        a.start()
        job = {"exec": ["false"], "overlap": "allow", "retry": {"times": 1, "wait": "1h"}}
        a.put("j", pool="p", **job)
        a.post("/v1/jobs/j/shots", [{"after": "1ms"}] * (out + wait))
        until(lambda: server.query("SELECT count(*) FROM task") == [(out + wait,)])
        taken = a.post("/v1/take", {"runner": "hand", "name": "hand", "pool": "p", "room": out, "wait": "0s", "runs": []})[1]["runs"]
        a.put("j", **job)
        until(lambda: server.query("SELECT count(*) FROM history WHERE more = 1") == [(wait,)])
        before = server.query("SELECT max(xid) FROM inbox")[0][0]
        a.request("DELETE", "/v1/jobs/j")
        until(lambda: server.query("SELECT count(*) FROM running") == [(out,)])
        told = server.query(f"SELECT count(*) FROM inbox WHERE xid > {before}")[0][0]
        tap.ok(len(taken) == out and out <= told < 3 * out, "a job is removed: each run at a runner is told to end once", len(taken), told)
        tap.same([a.stop(), a.unsound()], [0, ""], "the daemon is sound")


def not_read(tap):
    """Daemon a has no time zones. While each of its jobs has two runs, put definitions with a zone at daemon b. The runs must
    continue by the definitions that they had."""
    names = [f"j{i}" for i in range(8)]
    job = {"exec": ["sh", "-c", "sleep 1; [ $TWHEEL_ATTEMPT = 2 ]"], "overlap": "queue", "retry": {"times": 1, "wait": "0.1s"}}
    with Server() as server, Node(server, "--name=a", lease=LONG, TZDIR="/nonexistent") as a, Node(server, "--name=b", lease=LONG) as b:
        nodes = [a.start(), b.start()]
        until(lambda: len(server.parts()) == 2 and min(server.parts()) > 20)
        for name in names:
            a.put(name, **job)
        keys = [run(b, name) for name in names for _ in range(2)]
        until(lambda: server.query("SELECT count(DISTINCT job) FROM running WHERE state = 2") == [(len(names),)])
        for name in names:
            b.put(name, cron="0 0 1 1 *", zone="Europe/Berlin", **job)
        until(lambda: "is not run: zone" in a.stderr())
        told = [n for n in names if a.get(f"/v1/jobs/{n}").get("broken")]
        tap.same([a.get(f"/v1/jobs/{n}")["definition"].get("zone") for n in told], ["Europe/Berlin"] * len(told),
                 "a definition that a daemon cannot understand is shown as it is")
        rows = [until(lambda key=key: over_of(b, key)) for key in keys]
        tap.same([[(r["attempt"], r["outcome"]) for r in over or []] for over in rows], [[(2, "ok"), (1, "failed")]] * len(keys),
                 "runs that are not over go by the definition that they had", *(n.stderr() for n in nodes))
        tap.ok(told and [n.stop() for n in nodes] == [0, 0] and not any(n.unsound() for n in nodes), "and the daemons were sound",
               told, *(n.unsound() for n in nodes))


def killed_at_steps(tap):
    wrong, nr = steps(STRIDE)
    tap.ok(not wrong and nr >= 50 // STRIDE, f"killed at {nr} steps: 0 lost, 0 early, 0 double", *wrong)


# The subjects: how many test points each has, and its tests.
ABOUT = {
    "lives": (64, [two, fence, deaths, no_names, cut_in_two, circles, not_understood]),
    "firings": (22, [half_sent, refused, replaced, backlog, looks_up, walks, cancelled, slow, long_work, reads_news, long_turn, held_up, killed, put_late, new_calendar]),
    "requests": (15, [accepted, requests_of_the_buried, dropped, forgets, removed, not_read, killed_at_steps]),
    "tables": (41, [set_up_for_long, own_schema, published, behind, beside, keeps_commits, refusals, configured, waits_for_tables, forgotten, hangs, older, moved, versions, open_elsewhere, restored,
                    encodings]),
    "where": (17, [silent_host, long_lease, begins_again, lost_lane, slow_link, slow_start, half_dead, names, empty_entries]),
}


def main():
    """Run the tests of the subjects that the command line names, or of all subjects."""
    subjects = [ABOUT[name] for name in sys.argv[1:] or ABOUT]
    tap = Tap(sum(nr for nr, _ in subjects))
    for _, tests in subjects:
        for test in tests:
            test(tap)
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
