#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Parity with Xinye's distributed job service, as its article describes it. Each job belongs to a node, so no firing needs a
lock. If a node comes or goes, as few jobs as possible move to another node."""
import time
from collections import Counter

from daemon import Tap, until
from postgres import Node, Server

PARTS = 64
JOBS = 30
STABLE = 4      # s
LEASE = "12s"   # no host stands still for so long, so no living node is buried


def owners(server):
    return dict(server.query("SELECT p.id, n.id FROM part p LEFT JOIN node n ON n.id = p.node"))


def shares(of):
    """Returns how many parts each node owns, sorted. Parts without an owner do not count."""
    return sorted(Counter(life for life in of.values() if life).values())


def settled(server, wanted):
    """Wait until each node has its share, for a minute at most. Returns the owner of each part."""
    until(lambda: shares(owners(server)) == wanted)
    return owners(server)


def moved(before, after):
    return [part for part in before if before[part] != after[part]]


def calls(server, pattern):
    rows = server.query(f"SELECT coalesce(sum(calls), 0)::bigint FROM public.pg_stat_statements WHERE query ILIKE '{pattern}'")
    return int(rows[0][0])


def locks(tap, server):
    """Check which statements the nodes send to the server while nothing changes, and which locks they hold."""
    before = server.over()
    server.query("SELECT public.pg_stat_statements_reset()")
    time.sleep(STABLE)
    until(lambda: server.over() - before > JOBS and calls(server, "SELECT * FROM twheel.beat(%"))
    fired = server.over() - before
    asked = {word: calls(server, f"%{word}%") for word in ("advisory", "FOR UPDATE", "LOCK TABLE", "balance(", "DELETE FROM twheel.node")}
    turns, beats = calls(server, "SELECT * FROM twheel.turn(%"), calls(server, "SELECT * FROM twheel.beat(%")
    tap.ok(fired > JOBS and turns > 0 and beats > 0, "jobs run meanwhile", fired, turns, beats)
    tap.same(asked, dict.fromkeys(asked, 0), "no lock is taken while nodes are stable")
    # A lock by which a session says whose it is does not count: sessions share it, and none waits for it.
    waits = server.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT (classid = 7484 AND mode = 'ShareLock')")
    tap.same(waits, [(0,)], "no lock is held either")


def belongs(tap, server, nodes, since):
    """Check that each firing behind line @since of the history was run by the owner of its job. All these firings have come
    since the nodes had their shares."""
    of_all = f"SELECT count(DISTINCT life) FROM history WHERE seq > {since}"
    until(lambda: server.query(of_all) == [(len(nodes),)])
    rows = server.query(f"SELECT job & 63, life FROM history WHERE seq > {since}")
    now = owners(server)
    wrong = [row for row in rows if now[row[0]] != row[1]]
    tap.ok(rows and not wrong, "a job is run by the node that it belongs to", wrong[:9])
    tap.same(len({life for _, life in rows}), len(nodes), "all nodes run some")


def main():
    tap = Tap(12)
    with Server("shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track = 'all'", "fsync = off") as server, \
            Node(server, lease=LEASE) as a, Node(server, lease=LEASE) as b, Node(server, lease=LEASE) as c:
        server.query("CREATE EXTENSION pg_stat_statements SCHEMA public")
        a.start()
        b.start()
        for n in range(JOBS):
            a.put(f"job{n}", rate="500ms", exec=["true"])
        two = settled(server, [PARTS // 2] * 2)
        tap.same(shares(two), [PARTS // 2] * 2, "two nodes have the same share")
        since = server.query("SELECT coalesce(max(seq), 0) FROM history")[0][0]
        locks(tap, server)
        belongs(tap, server, [a, b], since)
        c.start()
        three = settled(server, [20, 22, 22])
        third = c.life()
        gone = moved(two, three)
        tap.same([shares(three), set(gone)], [[20, 22, 22], {part for part, life in three.items() if life == third}],
                 "a node joins: only what it gets has moved")
        share = {part for part, life in three.items() if life == third}
        c.stop()
        until(lambda: None not in owners(server).values())
        tap.same(set(moved(three, owners(server))), share, "a node leaves: only what it had has moved")
        before = settled(server, [PARTS // 2] * 2)
        share = {part for part, life in before.items() if life == b.life()}
        b.kill()
        after = settled(server, [PARTS])
        tap.same(set(moved(before, after)), share, "a node dies: only what it had has moved")
        tap.ok(until(lambda: set(server.query("SELECT DISTINCT life FROM history WHERE seq > (SELECT max(seq) - 30 FROM history)"))
                     == {(a.life(),)}), "its jobs go on")
        tap.same(a.stop(), 0, "the last node ends")
        tap.ok(not any(node.unsound() for node in (a, b, c)), "all were sound")
    tap.done()


main()
