#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Measure one part of `make bench-jobs`, and print the figures as bench/common.sh wants them.

    measure.py PART REPS

All subjects of a part share one machine. Those with PostgreSQL share one server, with a database each. Jobs do nothing:
twheeld is built with nothing.c, and the others call an empty function. A subject records each firing, takes it off what
is pending, and records it as over; if the subject keeps a history, it keeps the firing. The times of the shots are in the
store before a subject starts.

    backlog     All shots are due at once: the firings a second until the last is over, and what a firing costs.
    steady      So many shots a second are due for SECONDS_LONG s: how late a run begins, which it does after its firing was
                committed; and what a firing costs.
    minute      MINUTE jobs are due at each full minute: how late they begin.
    now         NOW runs for "now" are asked for, each when the one before has begun: the time from asking to beginning.
    processes   All shots are due at once. Each is a process of true(1), with 64 at a time.
    pending     Many shots are due in an hour or later: the bytes of disk. For twheeld, more shots are due soon: the memory of
                a node, and the time from its start until it answers.
    failover    One of two nodes is killed: how late the latest firing on the other node is, and after how long the runs of
                the dead node run again.
"""
import os
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../selftest/jobs")
import daemon  # noqa: E402  pylint: disable=wrong-import-position
from postgres import Node, Server  # noqa: E402  pylint: disable=wrong-import-position

BACKLOG = int(os.environ.get("BACKLOG", 300000))
SECONDS = int(os.environ.get("SECONDS_LONG", 10))
PENDING = int(os.environ.get("PENDING", 10000000))
PROCESSES = int(os.environ.get("PROCESSES", 5000))
MINUTE = int(os.environ.get("MINUTE", 1000))
NOW = int(os.environ.get("NOW", 300))
BUILD = os.environ["BUILD"]  # set by run.sh
JAVA = "/usr/share/java"
JOBS = 64
WAIT = 90  # s that a subject may take for what it is asked to do
SETTINGS = ("max_wal_size = 8GB", "min_wal_size = 1GB", "shared_buffers = 512MB", "max_connections = 200",
            "autovacuum_naptime = 10s", "shared_preload_libraries = 'pg_stat_statements,pg_cron'",
            "cron.use_background_workers = on", "max_worker_processes = 64", "cron.log_run = on")
TABLES = ["unzip", "-p", f"{JAVA}/quartz2.jar", "org/quartz/impl/jdbcjobstore/tables_postgres.sql"]


def figure(what, n, subject, metric, unit, values):
    print("native", what, n, subject, metric, unit, " ".join(f"{v:.3f}" for v in values), sep="\t", flush=True)


def wait_until(us):
    time.sleep(max(0, us / 1e6 - time.time()))


def now_us():
    return int(time.time() * 1e6)


def ticks(pid, ended):
    """Returns the CPU s of a process. @ended: with those of its children that have ended"""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def rss(pid):
    """Returns the most memory that a process has taken so far, in MiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def psql(url, sql):
    """Execute SQL. Returns the rows, as lists of texts. The comment marks statements that Database.counts() must not count."""
    done = subprocess.run(["psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", f"/* bench */ {sql}"],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PGOPTIONS": "-c search_path=twheel,public"})
    assert not done.returncode, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


class Database:
    """A database of the server, for one subject, whose statements are counted."""
    nr = 0

    def __init__(self, server):
        Database.nr += 1
        self.server, self.name = server, f"bench{Database.nr}"
        self.url = server.url.rpartition("/")[0] + f"/{self.name}"
        server.query(f"CREATE DATABASE {self.name}")
        self.query("CREATE EXTENSION pg_stat_statements")

    def query(self, sql):
        return psql(self.url, sql)

    def number(self, sql):
        return float(self.query(sql)[0][0])

    def counts(self):
        """Returns [statements of the subject, bytes of the server's log, CPU s of the server], each counted so far."""
        pid = self.server.process.pid
        cpu = None
        while cpu is None:
            try:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                    cpu = ticks(pid, True) + sum(ticks(int(child), False) for child in file.read().split())
            except (FileNotFoundError, ProcessLookupError):
                pass    # a process of the server has just ended, before its file was opened or read: count again
        rows = self.query("SELECT sum(calls), pg_current_wal_lsn() - '0/0'::pg_lsn FROM pg_stat_statements s"
                          " JOIN pg_database d ON d.oid = s.dbid WHERE datname = current_database() AND"
                          " query NOT LIKE '%/* bench */%'")
        return [float(rows[0][0] or 0), float(rows[0][1]), cpu]

    def size(self):
        return self.number("SELECT pg_database_size(current_database())")

    def __exit__(self):
        self.server.query(f"DROP DATABASE {self.name} WITH (FORCE)")


class Twheeld:
    """So many nodes, which are daemons that share the database. Without a database, one daemon with SQLite."""
    store = "FROM history WHERE at >= {first} AND more = 0"

    def __init__(self, database, nodes=1, programs=f"{BUILD}/nothing", options=("--runs=100000",)):
        daemon.PROGRAMS = programs
        self.db = database
        self.nodes = [Node(database, *options, lease="3s") for _ in range(nodes)] if database else [daemon.Daemon(*options)]
        self.file = f"{self.nodes[0].dir}/state/jobs.db"
        self.first = self.seen = 0

    def sql(self, text):
        if self.db:
            return [float(c) for c in self.db.query(text)[0]]
        db = sqlite3.connect(self.file)
        try:
            with db:
                return (db.execute(text).fetchall() or [None])[0]
        finally:
            db.close()

    def put(self, jobs):
        self.nodes[0].start()
        assert self.nodes[0].post("/v1/jobs", jobs)[0] == 200
        self.nodes[0].stop()

    def prepare(self):
        self.put([{"name": f"j{i}", "exec": ["true"], "overlap": "allow", "grace": "1h"} for i in range(JOBS)])

    def add(self, nr, first, step):
        """Add nr shots to the store. The first is due at @first, and each is due @step later than the one before; both in us."""
        self.first = first
        rows = f"(i % {JOBS}) + 1, {first} + i * {step}, 0 FROM"
        numbers = f"generate_series(CAST(0 AS bigint), {nr - 1}) i" if self.db else "n"
        head = "" if self.db else f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {nr - 1}) "
        insert = f"{head}INSERT INTO due (job, at, main) SELECT {rows} {numbers}"
        if self.db:
            self.db.query(insert)
            self.db.query("VACUUM ANALYZE due")
        else:
            self.sql(insert)

    def start(self):
        for node in self.nodes:
            node.start()

    def processes(self):
        return [node.process.pid for node in self.nodes]

    def over(self):
        if self.db:
            return self.db.number("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM history_seq_seq")
        return max([r.get("seq", 0) for r in self.nodes[0].get("/v1/runs?limit=1")], default=0)

    def stop(self):
        """Stop the nodes. Returns how many runs are over, when the last one was over, in us, and how late the runs began:
        [p50, p99, worst] in ms."""
        for node in self.nodes:
            node.stop()
        source = self.store.format(first=self.first)
        nr, last = self.sql(f"SELECT count(*), max(ended) {source}")
        late = [self.sql(f"SELECT began - at {source} ORDER BY 1 LIMIT 1 OFFSET {i}")[0] / 1000
                for i in (int(nr) // 2, int(nr) * 99 // 100, int(nr) - 1)]
        return int(nr), last, late

    def __exit__(self):
        for node in self.nodes:
            node.__exit__()


class Peer:
    """Another scheduler. Its nodes are programs from peers/. At its end, a node prints when its last run began, and how late
    each of its runs began, in ms."""
    tables = ()

    def __init__(self, database, nodes=1):
        self.db, self.nr_nodes, self.nodes, self.nr = database, nodes, [], 0

    def begin(self, *command, **env):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, **env})

    def start(self):
        self.nodes = [self.node() for _ in range(self.nr_nodes)]

    def processes(self):
        return [node.pid for node in self.nodes]

    def add(self, nr, first, step):
        self.nr = nr
        for sql in self.shots(f"generate_series(CAST(0 AS bigint), {nr - 1}) i", f"({first} + i * {step}) / 1000"):
            self.db.query(sql)
        for table in self.tables:
            self.db.query(f"VACUUM ANALYZE {table}")

    def stop(self):
        reports = []
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            reports.append([int(line) for line in node.communicate(timeout=30)[0].split() if line.lstrip("-").isdigit()])
        late = sorted(ms for report in reports for ms in report[1:])
        return len(late), max(r[0] for r in reports) * 1000, [late[i] for i in (len(late) // 2, len(late) * 99 // 100, -1)]

    def __exit__(self):
        for node in self.nodes:
            node.kill()
            node.communicate()


class Quartz(Peer):
    tables = ("qrtz_triggers", "qrtz_simple_triggers")

    def node(self):
        jars = ":".join(f"{JAVA}/{jar}.jar" for jar in ("quartz2", "postgresql", "HikariCP", "slf4j-api", "slf4j-nop"))
        return self.begin("java", "-cp", f"{BUILD}/peers:{jars}", "Quartz", str(self.db.server.port), self.db.name, "32")

    def prepare(self):
        self.db.query(subprocess.run(TABLES, check=True, capture_output=True, text=True).stdout)
        for name in ("Nothing", "Long_"):
            self.db.query(f"INSERT INTO qrtz_job_details VALUES ('bench', '{name}', 'g', NULL, 'Quartz${name}', true, false,"
                          f" false, true, '')")

    def shots(self, numbers, at, job="Nothing"):
        return [f"INSERT INTO qrtz_triggers SELECT 'bench', '{job}' || i, 'g', '{job}', 'g', NULL, {at}, -1, 5, 'WAITING', 'SIMPLE',"
                f" {at}, 0, NULL, 0, '' FROM {numbers}",
                "ANALYZE qrtz_triggers",  # otherwise the server may search all triggers for each trigger
                f"INSERT INTO qrtz_simple_triggers SELECT 'bench', '{job}' || i, 'g', 0, 0, 0 FROM {numbers}"]

    def over(self):
        return self.nr - self.db.number("SELECT count(*) FROM qrtz_triggers") - \
            self.db.number("SELECT count(*) FROM qrtz_fired_triggers WHERE state <> 'ACQUIRED'")


class Node_(Peer):
    """A peer in JavaScript. Its program makes its tables, works as a node, or asks for runs: see peers/"""

    def program(self, *args):
        return self.begin("node", f"{HERE}/peers/{self.file}", self.db.url, *args, NODE_PATH=f"{BUILD}/peers/node_modules")

    def node(self):
        return self.program("run")

    def prepare(self):
        assert self.program("make").wait(60) == 0

    def now(self, nr):
        """Let the program ask for nr runs now, one after the other. Returns how late they begin: [p50, p99, worst] in ms."""
        self.nodes = [self.program("now", str(nr))]
        late = [int(line) for line in self.nodes[0].communicate(timeout=WAIT + nr)[0].split()][1:]
        return [late[nr // 2], late[nr * 99 // 100], late[-1]]


class Boss(Node_):
    file = "boss.js"
    tables = ("pgboss.job",)

    def shots(self, numbers, at):
        return [f"INSERT INTO pgboss.job (name, data, start_after, retry_limit) SELECT 'nothing', jsonb_build_object('at', {at}),"
                f" to_timestamp({at} / 1000.0), 0 FROM {numbers}"]

    def over(self):
        return self.db.number("SELECT count(*) FROM pgboss.job WHERE state = 'completed'")


class Graphile(Node_):
    file = "graphile.js"
    tables = ("graphile_worker._private_jobs",)

    def shots(self, numbers, at):
        spec = f"('nothing', json_build_object('at', {at}), NULL, to_timestamp({at} / 1000.0), NULL, NULL, NULL, NULL)"
        return [f"SELECT count(*) FROM (SELECT array_agg({spec}::graphile_worker.job_spec) specs FROM {numbers}) x,"
                " LATERAL graphile_worker.add_jobs(specs)"]

    def over(self):
        return self.nr - self.db.number("SELECT count(*) FROM graphile_worker._private_jobs")


SUBJECTS = {
    "sqlite": lambda server: Twheeld(None),
    "pg-1": lambda server: Twheeld(Database(server)),
    "pg-2": lambda server: Twheeld(Database(server), 2),
    "quartz-1": lambda server: Quartz(Database(server)),
    "quartz-2": lambda server: Quartz(Database(server), 2),
    "boss": lambda server: Boss(Database(server)),
    "graphile": lambda server: Graphile(Database(server)),
}


class Playing:
    """Prepares a subject. When the with block ends, removes the subject and its database."""

    def __init__(self, subject):
        self.subject = subject

    def __enter__(self):
        self.subject.prepare()
        return self.subject

    def __exit__(self, *_):
        self.subject.__exit__()
        if self.subject.db:
            self.subject.db.__exit__()


def costs(subject):
    cpu = sum(ticks(pid, True) for pid in subject.processes())
    return [cpu, *(subject.db.counts() if subject.db else [])]


def play(what, name, server, nr, step, row):
    """Add nr shots, the first one due in head s, and let a subject run them. Print the firings a second, how late the
    runs began, and the cost of a firing."""
    head = (4 + nr / 30000) * max(1, os.getloadavg()[0] / 2)  # on a busy host, adding the shots takes longer
    with Playing(SUBJECTS[name](server)) as subject:
        first = now_us() + int(head * 1e6)
        subject.add(nr, first, step)
        server.query("CHECKPOINT")
        first_now = now_us()
        assert first_now < first - 2e6, f"{name}: {nr} shots were not there in {head} s"
        subject.start()
        wait_until(first - 300000)
        before = costs(subject)
        wait_until(first + nr * step)
        daemon.until(lambda: time.sleep(0.3) or subject.over() >= nr, WAIT)
        took = [(b - a) / nr for a, b in zip(before, costs(subject))]
        done, last, late = subject.stop()
        assert done == nr, f"{name}: {done} of {nr}"
    figure(what, row, name, "firings/s", "1/s", [nr / (last - first) * 1e6])
    for metric, value in zip(("late p50", "late p99", "late worst"), late):
        figure(what, row, name, metric, "ms", [value])
    figure(what, row, name, "CPU of nodes", "s/1000", [took[0] * 1000])
    if len(took) > 1:
        for metric, unit, value in zip(("statements a firing", "log of the server", "CPU of the server"), ("", "bytes", "s/1000"),
                                       (took[1], took[2], took[3] * 1000)):
            figure(what, row, name, metric, unit, [value])


# The share of BACKLOG for each subject: no more than it can do in some seconds.
BACKLOGS = {"sqlite": 1, "pg-1": 1, "pg-2": 1, "quartz-1": 0.004, "quartz-2": 0.004, "boss": 0.05, "graphile": 0.1}
RATES = ((10000, ("sqlite", "pg-1", "pg-2")), (1000, ("sqlite", "pg-1", "boss", "graphile")),
         (50, ("pg-1", "quartz-1", "quartz-2")))


def backlog(server):
    for name, share in BACKLOGS.items():
        nr = int(BACKLOG * share)
        play("backlog", name, server, nr, 0, 0)
        figure("backlog", 0, name, "shots", "", [nr])


def steady(server):
    for rate, names in RATES:
        for name in names:
            play("steady", name, server, rate * SECONDS, 1000000 // rate, rate)


def next_minute():
    return (now_us() // 60000000 + 1) * 60000000


def minute(server):
    """Compare twheeld with pg_cron, which runs in the server, and only for one database."""
    with Playing(Twheeld(Database(server))) as subject:
        subject.put([{"name": f"m{i}", "exec": ["true"], "cron": "* * * * *"} for i in range(MINUTE)])
        psql(server.url, "CREATE EXTENSION IF NOT EXISTS pg_cron")
        psql(server.url, f"SELECT count(cron.schedule('m' || i, '* * * * *', 'SELECT 1')) FROM generate_series(1, {MINUTE}) i")
        subject.start()
        first = subject.first = next_minute()
        wait_until(first + 1000000)
        daemon.until(lambda: subject.over() >= MINUTE, 50)
        time.sleep(10)
        psql(server.url, "SELECT count(cron.unschedule(jobid)) FROM cron.job")
        daemon.until(lambda: psql(server.url, "SELECT count(*) FROM cron.job_run_details WHERE end_time IS NULL") == [["0"]], 40)
        _, _, late = subject.stop()
    # The server also keeps the runs of earlier repetitions: leave them out. A run may have begun up to a second early.
    rows = psql(server.url, f"SELECT CAST(extract(epoch FROM start_time) * 1000000 AS bigint) - {first} FROM cron.job_run_details"
                        f" WHERE start_time >= to_timestamp({first} / 1000000 - 1)"
                        f" AND start_time < to_timestamp({first} / 1000000 + 60) ORDER BY 1")
    theirs = [int(row[0]) / 1000 for row in rows]
    for name, values, done in (("pg-1", late, MINUTE),
                               ("cron", [theirs[i] for i in (len(theirs) // 2, len(theirs) * 99 // 100, -1)], len(theirs))):
        for metric, value in zip(("late p50", "late p99", "late worst"), values):
            figure("minute", MINUTE, name, metric, "ms", [value])
        figure("minute", MINUTE, name, "done", "", [done])


def now(server):
    for name in ("pg-1", "boss", "graphile"):
        with Playing(SUBJECTS[name](server)) as subject:
            late = subject.now(NOW) if name != "pg-1" else ask_now(subject)
        for metric, value in zip(("late p50", "late p99", "late worst"), late):
            figure("now", NOW, name, metric, "ms", [value])


def ask_now(subject):
    """Ask a daemon for NOW runs, with a request for each. Returns how late they begin: [p50, p99, worst] in ms."""
    subject.start()
    node, asked = subject.nodes[0], []
    for i in range(NOW):
        asked.append(now_us())
        node.post(f"/v1/jobs/j{i % JOBS}/run")
        daemon.until(lambda i=i: subject.over() > i)
    node.stop()
    rows = subject.db.query("SELECT began FROM history ORDER BY seq")
    late = sorted((int(row[0]) - at) / 1000 for row, at in zip(rows, asked))
    return [late[NOW // 2], late[NOW * 99 // 100], late[-1]]


def processes(server):
    for name, database in (("sqlite", None), ("pg-1", Database(server))):
        with Playing(Twheeld(database, programs=f"{BUILD}/real", options=("--runs=64",))) as subject:
            first = now_us() + 5000000
            subject.add(PROCESSES, first, 0)
            subject.start()
            wait_until(first)
            before = costs(subject)
            daemon.until(lambda subject=subject: time.sleep(0.3) or subject.over() >= PROCESSES, WAIT)
            took = costs(subject)[0] - before[0]
            nr, last, _ = subject.stop()
        figure("processes", nr, name, "processes/s", "1/s", [nr / (last - first) * 1e6])
        figure("processes", nr, name, "CPU of nodes", "s/1000", [took / nr * 1000])


def pending(server):
    for name, nr in (("pg-1", PENDING), ("quartz-1", PENDING // 100), ("boss", PENDING // 100), ("graphile", PENDING // 100)):
        with Playing(SUBJECTS[name](server)) as subject:
            empty = subject.db.size()
            subject.add(nr, now_us() + 3600000000, 1000)
            figure("pending", 0, name, "bytes a job", "", [(subject.db.size() - empty) / nr])
            figure("pending", 0, name, "shots", "", [nr])
            if name != "pg-1":
                continue
            figure("pending", 0, name, "disk", "GB", [(subject.db.size() - empty) / 1e9])
            subject.add(100000, now_us() + 30000000, 300)  # more than a node reads ahead
            began = time.monotonic()
            subject.start()
            figure("pending", 0, name, "start", "s", [time.monotonic() - began])
            time.sleep(3)
            figure("pending", 0, name, "memory", "MiB", [rss(subject.nodes[0].process.pid)])


def failover(server):
    with Playing(Twheeld(Database(server), 2, f"{BUILD}/real", ())) as subject:
        a, b = subject.nodes
        subject.put([{"name": f"r{i}", "exec": ["true"], "rate": "1s", "missed": "all", "overlap": "queue"} for i in range(JOBS)] +
                    [{"name": f"l{i}", "exec": ["sleep", "600"]} for i in range(JOBS)])
        subject.start()
        owners = "SELECT count(*) FROM part GROUP BY node"
        daemon.until(lambda: [int(r[0]) for r in subject.db.query(owners)] == [32, 32])
        for i in range(JOBS):
            a.post(f"/v1/jobs/l{i}/run")
        time.sleep(3)
        killed = now_us()
        b.kill()
        daemon.until(lambda: subject.db.number("SELECT count(*) FROM running WHERE attempt = 2") >= JOBS / 2)
        again = now_us() - killed
        daemon.until(lambda: [int(r[0]) for r in subject.db.query(owners)] == [64], 20)
        time.sleep(3)
        late = subject.db.number(f"SELECT max(fired - at) FROM history WHERE at > {killed - 1000000}")
        for node in subject.nodes:
            if node.process.poll() is None:
                node.kill()
    figure("failover", 2, "pg-2", "latest firing", "s", [late / 1e6])
    figure("failover", 2, "pg-2", "runs again", "s", [again / 1e6])
    with Playing(Quartz(Database(server), 2)) as subject:
        for sql in subject.shots("generate_series(1, 1) i", f"{now_us() + 8000000} / 1000", "Long_"):
            subject.db.query(sql)
        subject.start()
        daemon.until(lambda: subject.db.number("SELECT count(*) FROM qrtz_fired_triggers WHERE state = 'EXECUTING'") == 1)
        owner = subject.db.query("SELECT instance_name FROM qrtz_fired_triggers")[0][0]
        time.sleep(1)
        # The name of an instance ends with the time when it began. Sorted, the names are in the order of the nodes.
        names = sorted(row[0] for row in subject.db.query("SELECT instance_name FROM qrtz_scheduler_state"))
        killed = now_us()
        subject.nodes[names.index(owner)].kill()
        gone = f"SELECT count(*) FROM qrtz_fired_triggers WHERE instance_name = '{owner}'"
        daemon.until(lambda: subject.db.number(gone) == 0, WAIT)
        again = now_us() - killed
    figure("failover", 2, "quartz-2", "runs again", "s", [again / 1e6])


def main():
    with Server(*SETTINGS) as server:
        for _ in range(int(sys.argv[2])):
            {f.__name__: f for f in (backlog, steady, minute, now, processes, pending, failover)}[sys.argv[1]](server)


main()
