#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Storms over daemons that share PostgreSQL, and one over a daemon by itself. In each storm, jobs run at rates, and clients
ask for thousands of single runs, while daemons, connections, the server and clocks fail. At the end the judge looks whether
a firing was lost, was early, or ran twice under one attempt number, and whether two runs of a job ran at the same time.

    storm.py [NAME]...    run only these of the storms, whose names are at the end of this file
    SEED=n STORM=percent  for all random choices; how long the storms are
"""
import contextlib
import email.utils
import glob
import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time

import netns
from daemon import PROGRAMS, Tap, until
from judge import judge
from postgres import Node, Server
from proxy import Proxy
from test_crash import random_kills
from test_many import steps

LEASE = 2.0
RATES = 6
SHOTS = 25          # runs that one request asks for
SEED = int(os.environ.get("SEED", time.time()))
PERCENT = int(os.environ.get("STORM", 100))
MOST = 600          # s, for one storm
UNREACHABLE = (OSError, http.client.HTTPException)


class Load(threading.Thread):
    """A client that asks one daemon for runs until the storm is over. The runs that the daemon accepts must happen."""

    def __init__(self, storm, node, seed):
        super().__init__(daemon=True)
        self.storm, self.node, self.rng, self.accepted = storm, node, random.Random(seed), []
        self.unknown = 0    # requests without an answer

    def run(self):
        while not self.storm.over:
            began = time.monotonic()
            try:
                self.ask()
            except UNREACHABLE:
                self.unknown += 1
            time.sleep(max(0.05, began + self.storm.pause - time.monotonic()))

    def ask(self):
        rows = [{"after": f"{self.rng.randint(0, 2000)}ms"} for _ in range(SHOTS)]
        name = f"shot{self.rng.randrange(RATES)}"
        status, answer = self.node.request("POST", f"/v1/jobs/{name}/shots", rows, timeout=5)
        if status == 200:
            self.accepted += [row["run"] for row in answer]


class Storm:
    """A storm. @server: the server with the store, which a failover replaces; @nodes: the daemons, which begin() starts;
    @firings: how many single runs the daemons are to accept before the storm ends; @each: a function that does one bad
    thing, which it chooses by its argument, a random.Random, and returns the name of it; @missed: the policy "missed" of the
    jobs with rates"""

    def __init__(self, server, nodes, firings, each, missed="all", per_second=250):
        self.server, self.nodes, self.each, self.missed = server, nodes, each, missed
        self.firings, self.over, self.wrong = firings * PERCENT // 100, False, []
        self.pause = SHOTS * len(nodes) / per_second
        self.rng, self.happened = random.Random(SEED), []
        self.loads = [Load(self, node, SEED + n) for n, node in enumerate(nodes)]

    def any_node(self, method, path, body=None):
        """Send a request to one node after the other until one has done it. After a request without an answer, a 404 says that
        the request was done."""
        def done():
            for node in self.nodes:
                with contextlib.suppress(*UNREACHABLE):
                    if node.request(method, path, body)[0] in (200, 404):
                        return True
            return False
        if not until(done, 60):
            self.wrong.append(f"{method} {path} was not done")

    def names(self):
        return [f"{kind}{n}" for kind in ("rate", "shot", "skip") for n in range(RATES)]

    def begin(self):
        for node in self.nodes:
            node.start()
        runs = self.nodes[0].writes()
        for n in range(RATES):
            self.any_node("PUT", f"/v1/jobs/rate{n}", {"rate": "250ms", "exec": runs, "missed": self.missed,
                                                       "overlap": "queue", "queue": 10000})
            self.any_node("PUT", f"/v1/jobs/shot{n}", {"exec": runs, "overlap": "allow", "missed": "all"})
            # A run takes longer than the time to the next one, so of two times one is skipped.
            self.any_node("PUT", f"/v1/jobs/skip{n}", {"rate": "500ms", "exec": [*runs[:-1], "600"],
                                                       "missed": self.missed, "overlap": "skip"})
        for load in self.loads:
            load.start()

    def rage(self):
        end = time.monotonic() + MOST
        while sum(len(load.accepted) for load in self.loads) < self.firings:
            if time.monotonic() > end:
                self.wrong.append(f"so many firings took longer than {MOST} s")
                break
            time.sleep(self.rng.uniform(0.1, 1))
            self.happened.append(self.each(self.rng))
        self.over = True
        for load in self.loads:
            load.join()

    def query(self, sql):
        try:
            return self.server.query(sql)
        except subprocess.CalledProcessError:
            return None

    def is_empty(self, rows):
        """Wait until there are no such rows, for two minutes at most. Returns whether that is so."""
        return until(lambda: self.query(f"SELECT count(*) FROM {rows}") == [(0,)], 120)

    def revive(self):
        for node in self.nodes:
            if node.process.poll() is not None:
                node.start()

    def pause_all(self):
        for name in self.names():
            self.any_node("POST", f"/v1/jobs/{name}/pause")

    def end(self):
        for node in self.nodes:
            if status := node.stop():
                self.wrong.append(f"{node.dir} ended with status {status}")
            if node.unsound():
                self.wrong.append(node.unsound())

    def calm(self):
        """Wait until all runs are over, and end the daemons."""
        self.revive()
        self.is_empty("due WHERE main = 0")
        if not self.is_empty("due WHERE main = 1 AND at < now_us() - 20000000"):
            self.wrong.append("a schedule has ended")
        self.pause_all()
        self.is_empty("running")
        for name in self.names():
            self.any_node("DELETE", f"/v1/jobs/{name}")
        self.end()

    def verdict(self, lines=None, overlap=True):
        """Ask the judge. Returns a list of what is wrong, a text about what has happened, and how many firings are over."""
        accepted = [key for load in self.loads for key in load.accepted]
        more, firings = judge(self.server.url, lines or self.nodes[0].lines(), accepted, overlap)
        again = self.server.query("SELECT count(*) FROM history WHERE more = 1")[0][0]
        counts = ", ".join(f"{what} {self.happened.count(what)}" for what in sorted(set(self.happened)))
        self.wrong += more
        if self.wrong:
            self.wrong += [node.stderr() for node in self.nodes]
        return self.wrong, (f"{firings} firings, {len(accepted)} of them accepted, {again} attempts made again, "
                            f"{sum(load.unknown for load in self.loads)} requests without an answer; {counts}"), firings

    def play(self, **how):
        self.begin()
        self.rage()
        self.calm()
        return self.verdict(**how)


def cluster(stack, server, nr, url=None, **env):
    """Returns @nr nodes whose jobs write to one file. @url: a function that returns the URL for node @n"""
    nodes = []
    for n in range(nr):
        shared = nodes[0] if nodes else None
        nodes.append(stack.enter_context(Node(server, f"--name=n{n}", shared=shared, url=url(n) if url else None, **env)))
    return nodes


def plain(node, *before):
    """Let a node use the build without sanitizers, which do not bear the library that changes clocks."""
    node.command = [*before, f"{PROGRAMS}/plain/twheeld"]
    return node


# ---- deaths, joins and leaves ---------------------------------------------------------------------

def kill(rng, storm):
    node = rng.choice(storm.nodes)
    node.kill()
    time.sleep(rng.choice([0, 0, 0.5, 2]) * LEASE)
    node.start()


def leave(rng, storm):
    node = rng.choice(storm.nodes)
    node.stop()
    time.sleep(rng.choice([0, 1]) * LEASE)
    node.start()


def pause(rng, storm):
    rng.choice(storm.nodes).pause(rng.choice([0.5, 1, 2]) * LEASE)


def cut(rng, storm):
    for _ in range(rng.randint(1, 5)):
        storm.server.cut()
        time.sleep(rng.uniform(0, 0.1))


def crash(rng, storm):
    """Crash the server, and start it again."""
    storm.server.stop()
    time.sleep(rng.choice([0, 0, 2]) * LEASE)
    storm.server.start()


def deaths(nr, what):
    """A storm over @nr daemons that does the things in @what. If one of these is pause(), runs may overlap: while a daemon
    is stopped, its runs continue, and another daemon repeats them."""
    def each(rng):
        fn = rng.choice(what)
        fn(rng, storm)
        return fn.__name__

    with Server("max_connections = 200") as server, contextlib.ExitStack() as stack:
        storm = Storm(server, cluster(stack, server, nr), 20000, each)
        return storm.play(overlap=pause not in what)


def sqlite():
    """A storm over a daemon by itself, with SQLite."""
    wrong, firings = random_kills(3 * PERCENT, SEED, 20)
    return wrong, f"killed and stopped {3 * PERCENT} times", firings


def one():
    return deaths(1, [kill, leave, cut, crash])


def three():
    return deaths(3, [kill, kill, leave, cut, crash])


def five():
    return deaths(5, [kill, kill, leave, pause, cut, crash])


# ---- connections ----------------------------------------------------------------------------------

def proxied(each, firings, nr=3, overlap=True):
    """A storm in which each daemon reaches the server through a proxy of its own. @each does one bad thing to a proxy.
    Returns the result of the storm, and how many answers the proxies have swallowed."""
    with Server() as server, contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.port, SEED + n)) for n in range(nr)]
        storm = Storm(server, cluster(stack, server, nr, lambda n: proxies[n].url(server.url)), firings,
                      lambda rng: each(rng, rng.choice(proxies)))
        result = storm.play(overlap=overlap)
        return result, sum(proxy.eaten for proxy in proxies)


def bad_line(rng, proxy):
    what = rng.choice(["delay", "delay", "cut", "half-close", "deaf", "deaf"])
    if what == "delay":
        proxy.delay = rng.choice([0.01, 0.1, 0.5, 1.1 * LEASE])
    elif what == "cut":
        proxy.cut()
    elif what == "half-close":
        proxy.half_close(rng.choice(["up", "down"]))
    else:
        proxy.deaf = frozenset(rng.choice([["up"], ["down"], ["up", "down"]]))
    time.sleep(rng.choice([0.2, 0.5, 2]) * LEASE)
    proxy.heal()
    return what


def connections():
    return proxied(bad_line, 8000)[0]


def unknown():
    """Proxies swallow answers and cut the connections. The daemon cannot know whether the server has done what it sent."""
    def each(rng, proxy):
        proxy.eat = rng.choice([0.02, 0.1, 0.5])
        time.sleep(rng.uniform(0.3, 2))
        proxy.heal()
        return "eat"

    (wrong, text, firings), eaten = proxied(each, 8000)
    if eaten < 50 * PERCENT // 100:
        wrong.append(f"only {eaten} answers were swallowed")
    return wrong, f"{text}; {eaten} answers swallowed", firings


def partition():
    """The cable of a daemon is cut, in one direction or both, for a shorter or longer time than its lease."""
    if why := netns.missing():
        return [], f"# SKIP no network namespaces here: {why}", None

    def each(rng):
        ns = rng.choice(spaces)
        ways = rng.choice([["in"], ["out"], ["in", "out"]])
        ns.cut(*ways)
        time.sleep(rng.choice([0.3, 1, 2, 3]) * LEASE)
        ns.heal()
        return "+".join(ways)

    with contextlib.ExitStack() as stack:
        spaces = [stack.enter_context(netns.Namespace(n)) for n in range(3)]
        server = stack.enter_context(Server(f"listen_addresses = '127.0.0.1,{','.join(n.address for n in spaces)}'",
                                            "tcp_keepalives_idle = 5", network=netns.NETWORK))
        nodes = cluster(stack, server, 3, lambda n: server.url.replace("127.0.0.1", spaces[n].address))
        for node, ns in zip(nodes, spaces):
            node.command = ns.command + node.command
        return Storm(server, nodes, 8000, each).play()


# ---- servers --------------------------------------------------------------------------------------

def failover():
    """The server crashes, and its synchronous standby takes its place. The server that had crashed before becomes the new
    standby. A commit that was answered is on both, so nothing may be missing."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Server("wal_keep_size = '1GB'"))
        standby, third = (stack.enter_context(Server("hot_standby = on", standby_of=first)) for _ in range(2))
        everywhere = ",".join(f"127.0.0.1:{s.port}" for s in (first, standby, third))
        url = f"postgresql://{first.user}@{everywhere}/postgres?target_session_attrs=read-write"
        third.stop()
        others = [standby, third]   # the standby, and the server that is stopped

        def follow(primary):
            primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.query("SELECT pg_reload_conf()")
            until(lambda: primary.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

        def each(rng):
            time.sleep(5)
            if "failover" in storm.happened[-3:]:
                return "nothing"
            others.append(storm.server)
            storm.server.stop()
            time.sleep(rng.choice([0, LEASE]))
            storm.server = others.pop(0)
            storm.server.promote()
            others[0].again(storm.server)
            follow(storm.server)
            return "failover"

        follow(first)
        storm = Storm(first, cluster(stack, first, 3, lambda n: url), 8000, each)
        wrong, text, firings = storm.play()
        if storm.happened.count("failover") < min(2, firings // 3000):
            wrong.append("there were not two failovers")
        return wrong, text, firings


# ---- clocks ---------------------------------------------------------------------------------------

LIBRARY = "libfaketimeMT.so.1"


def faketime():
    """Returns the path of the library of Debian's package, or None."""
    found = glob.glob(f"/usr/lib/*/faketime/{LIBRARY}")
    return found[0] if found else None


def ahead_by(node):
    """Returns how many s the clock of a node is ahead, by the header Date of an answer."""
    connection = node.connection()
    connection.request("GET", "/v1/jobs?limit=1")
    date = connection.getresponse().headers["Date"]
    connection.close()
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()


def clocks():
    """Three daemons: the clock of the first is an hour ahead and 5 % fast, that of the second an hour behind and 5 % slow, that
    of the third is right. The daemons must not rely on their wall clocks."""
    def each(rng):
        kill(rng, storm)
        return "kill"

    with Server() as server, contextlib.ExitStack() as stack:
        nodes = [plain(node) for node in cluster(stack, server, 3)]
        for node, ahead, rate in zip(nodes, ("3600", "-3600"), ("1.05", "0.95")):
            node.env.update(LD_PRELOAD=f"{PROGRAMS}/clock.so", AHEAD=ahead, RATE=rate)
        storm = Storm(server, nodes, 6000, each)
        storm.begin()
        ahead = [ahead_by(node) for node in nodes]
        if not (3590 < ahead[0] < 3610 and -3610 < ahead[1] < -3590):
            storm.wrong.append(f"the clocks are not as they should be: {ahead}")
        storm.rage()
        storm.calm()
        return storm.verdict()


class SteppedServer(Server):
    """A server whose clock step() sets."""

    def __init__(self, *settings):
        self.steps = [(0, 0)]       # for each step: when, by the real clock, and how far ahead it was set; both in ns
        self.file = f"{PROGRAMS}/clock.{os.getpid()}"
        self.write(0)
        super().__init__(*settings, FAKETIME_TIMESTAMP_FILE=self.file, FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1",
                         LD_PRELOAD=faketime())

    def write(self, seconds):
        with open(self.file + ".new", "w", encoding="ascii") as file:
            print(f"{seconds:+d}", file=file)
        os.rename(self.file + ".new", self.file)

    def step(self, seconds):
        self.write(seconds)
        self.steps.append((time.time_ns(), seconds * 10**9))

    def watch(self):
        """Let the server note the time of each firing, by its own clock at that moment."""
        for sql in ("CREATE TABLE fired (id bigint, at bigint, clock bigint)",
                    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                    " INSERT INTO twheel.fired VALUES (NEW.id, NEW.at, twheel.now_us()); RETURN NEW; END $$",
                    "CREATE TRIGGER note AFTER INSERT ON running FOR EACH ROW EXECUTE FUNCTION note()"):
            self.query(sql)

    def early(self):
        rows = self.query("SELECT count(*), count(*) FILTER (WHERE at > clock) FROM fired")
        return rows[0]


def stepped():
    """The server's clock is set forward and back, while daemons die."""
    if not faketime():
        return [], "# SKIP there is no libfaketime", None

    def each(rng):
        if rng.random() < 0.5:
            kill(rng, storm)
            return "kill"
        server.step(rng.choice([-3600, -5, 0, 5, 600, 3600]))
        off = server.query("SELECT twheel.now_us()")[0][0] * 1000 - time.time_ns() - server.steps[-1][1]
        if abs(off) > 3 * 10**9:
            storm.wrong.append(f"the server's clock was not set: {off} ns off")
        time.sleep(2 * LEASE)
        return "step"

    with SteppedServer() as server, contextlib.ExitStack() as stack:
        storm = Storm(server, cluster(stack, server, 3), 6000, each, missed="once")
        storm.begin()
        server.watch()
        storm.rage()
        server.step(3600)       # runs that were asked for while the clock was an hour ahead are due now
        storm.calm()
        noted, early = server.early()
        if early or noted < storm.firings:
            storm.wrong.append(f"early: {early} of {noted} firings were before their time")
        # The lines of the runs have times of the real clock, which is behind the server's at times. Move them far ahead, so that
        # the judge finds none early: server.early() has looked for those.
        lines = [(job, key, attempt, int(ns) + 10**13, *end) for job, key, attempt, ns, *end in storm.nodes[0].lines()]
        return storm.verdict(lines=lines, overlap=False)


# ---- the programme --------------------------------------------------------------------------------

STORMS = [sqlite, one, three, five, connections, unknown, partition, failover, clocks, stepped]


def all_steps(tap):
    wrong, nr = steps(1)
    tap.ok(not wrong and nr >= 50, f"killed at each of {nr} steps: 0 lost, 0 early, 0 double", *wrong)


def main():
    chosen = [storm for storm in STORMS if not sys.argv[1:] or storm.__name__ in sys.argv[1:]]
    tap = Tap(len(chosen) + (not sys.argv[1:]))
    print(f"# SEED={SEED}")
    for storm in chosen:
        began = time.monotonic()
        wrong, text, firings = storm()
        print(f"# {storm.__name__}, {time.monotonic() - began:.0f} s: {text}", flush=True)
        if firings is None:
            tap.ok(True, f"{storm.__name__} {text}")
        else:
            tap.ok(not wrong, f"{storm.__name__}: 0 lost, 0 early, 0 double of {firings} firings", *wrong[:20], *wrong[20:][-9:])
    if not sys.argv[1:]:
        all_steps(tap)
    tap.done()


if __name__ == "__main__":
    sys.exit(main())
