#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Parity with Quartz: check what its documentation promises, expressed in the words of twheel-job(5). Not here:

- job classes, and data that a job stores for its next run, because here a job is a command
- triggers with a number of repetitions, because here a job is due until it is removed. So twheeld has no
  RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT and no RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT. These also move the phase of a
  trigger, but the phase of a rate never changes
- SMART_POLICY of a trigger that is repeated for ever, which is RESCHEDULE_NEXT: here the default is once for each kind of job
- CronCalendar, and calendars based on another calendar: here the days off are one list
- a group that stays paused for jobs that are added to it later: here are no groups, only names with a common prefix
"""
import contextlib
import datetime
import os
import sqlite3
import time

from daemon import PROGRAMS, Daemon, Tap, until
from remote import Remote, Runner

AWAY = 3.2      # s during which no scheduler runs


def run(d, name, **shot):
    answer = d.post(f"/v1/jobs/{name}/shots", [shot]) if shot else d.post(f"/v1/jobs/{name}/run")
    return answer[1][0]["run"]


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def day(n):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=n)).strftime("%Y-%m-%d")


# ---- misfire instructions -------------------------------------------------------------------------

def rows_since(d, name, us):
    """Returns the rows of a job's history that ended after @us, as (at in us, outcome, missed). A firing that was lost when the
    daemon stopped, and ran again, is left out."""
    return d.query(f"SELECT h.at, h.outcome, h.missed FROM history h JOIN job j ON j.id = h.job WHERE j.name = '{name}'"
                   f" AND h.more = 0 AND h.attempt < 2 AND h.ended > {us} ORDER BY h.at")


def misfires(tap):
    """What happens to times that were due while no scheduler ran, for each misfire instruction. The grace stands for Quartz's
    misfireThreshold."""
    with Daemon() as d:
        d.start()
        command = {"exec": ["true"], "overlap": "queue", "queue": 100}
        for word in ("once", "skip", "all"):
            d.put(f"cron-{word}", cron="* * * * * *", missed=word, grace="0.9s", **command)
            d.put(f"rate-{word}", rate="500ms", missed=word, grace="0.9s", **command)
            d.put(f"shot-{word}", after="1h", missed=word, grace="0.9s", **command)
        d.put("cron-smart", cron="* * * * * *", grace="0.9s", **command)
        d.put("shot-smart", after="1h", grace="0.9s", **command)
        d.put("patient", cron="* * * * * *", missed="skip", grace="1h", **command)
        until(lambda: all(d.over(f"{kind}-{word}") for kind in ("cron", "rate") for word in ("once", "skip", "all")) and d.over("cron-smart"))
        d.stop()
        left = int(time.time() * 1e6)
        # Let the single times be due while no scheduler runs.
        with contextlib.closing(sqlite3.connect(f"{d.dir}/state/jobs.db")) as db:
            db.execute(f"UPDATE due SET at = {left} + 1000000 WHERE job IN (SELECT id FROM job WHERE name LIKE 'shot-%')")
            db.commit()
        time.sleep(AWAY)
        back = time.time()
        d.start()
        until(lambda: d.over("shot-once") and d.over("shot-skip") and d.over("shot-all") and d.over("shot-smart"))
        for name in [f"{kind}-{word}" for kind in ("cron", "rate") for word in ("once", "skip", "all")] + ["cron-smart", "patient"]:
            until(lambda name=name: any(row["at"] > utc(back) for row in d.over(name)))     # the job has reached the present
        d.stop()
        # If the host stands still for longer than the grace, later times are missed as well: leave them out.
        made_up = {name: [r for r in rows_since(d, name, left) if r[0] < (back - 0.9) * 1e6]
                   for name in [f"{kind}-{word}" for kind in ("cron", "rate") for word in ("once", "skip", "all")] + ["cron-smart"]}
        period = {"cron": 1000000, "rate": 500000}
        for kind in ("cron", "rate"):
            rows = made_up[f"{kind}-once"]
            tap.ok(len(rows) == 1 and rows[0][1] == 0 and rows[0][2] >= 2,
                   f"{kind}: FIRE_ONCE_NOW (once): one run makes up for all", rows)
            rows = made_up[f"{kind}-skip"]
            tap.ok(len(rows) == 1 and rows[0][1] == 6 and rows[0][2] >= 2,
                   f"{kind}: DO_NOTHING, RESCHEDULE_NEXT (skip): none is made up for", rows)
            rows = made_up[f"{kind}-all"]
            tap.ok(len(rows) >= 2 and all(r[1] == 0 for r in rows) and
                   {b[0] - a[0] for a, b in zip(rows, rows[1:])} == {period[kind]},
                   f"{kind}: IGNORE_MISFIRE_POLICY (all): each time is run", rows)
        phases = {word: {row[0] % 500000 for row in rows_since(d, f"rate-{word}", 0)} for word in ("once", "skip", "all")}
        tap.ok(all(len(of_job) == 1 for of_job in phases.values()), "SimpleTrigger: the phase stays", phases)
        shots = {word: [r[1] for r in rows_since(d, f"shot-{word}", 0)] for word in ("once", "skip", "all")}
        tap.same(shots, {"once": [0], "skip": [6], "all": [0]}, "a single time: FIRE_NOW (once, all), or not at all (skip)")
        rows, shot = made_up["cron-smart"], [r[1] for r in rows_since(d, "shot-smart", 0)]
        tap.ok(len(rows) == 1 and rows[0][1] == 0 and rows[0][2] >= 2 and shot == [0],
               "SMART_POLICY (the default): FIRE_ONCE_NOW for cron, FIRE_NOW for a single time", rows, shot)
        rows = rows_since(d, "patient", left)
        tap.ok({r[1] for r in rows} == {0} and {b[0] - a[0] for a, b in zip(rows, rows[1:])} == {10**6},
               "misfireThreshold (grace): what is less late is not a misfire", rows)
        tap.ok(not d.unsound(), "the daemons were sound", d.unsound())


# ---- the rest of a scheduler ----------------------------------------------------------------------

def calendars(tap, d):
    d.request("PUT", "/v1/days/holidays", [day(-1), day(0), day(1)])
    d.put("workday", cron="* * * * * *", exec=["true"], **{"except": "holidays"})
    upcoming = d.get("/v1/jobs/workday")["next"]
    tap.ok(min(upcoming) >= day(2), "HolidayCalendar: a day off is left out", upcoming)
    status = d.put("odd", cron="@daily", exec=["true"], **{"except": "feasts"})[0]
    tap.same(status, 400, "a calendar must exist")
    d.request("PUT", "/v1/days/holidays", [])
    tap.ok(d.over("workday"), "addCalendar(replace, updateTriggers): jobs follow the new days at once", d.get("/v1/jobs/workday"))
    d.request("DELETE", "/v1/jobs/workday")


def other_calendars(tap, d):
    """If the same days or hours are off each week, month or day, the cron expression itself leaves them out."""
    def times(cron, n=60):
        return [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in d.get(f"/v1/preview?cron={cron.replace(' ', '+')}&zone=UTC&n={n}")]
    tap.same({t.weekday() for t in times("0 0 12 * * MON-FRI")}, set(range(5)), "WeeklyCalendar: days of the week are left out")
    tap.same({t.day for t in times("0 0 12 1-24 * *")}, set(range(1, 25)), "MonthlyCalendar: so are days of the month")
    tap.same({t.hour for t in times("0 0 0-8,18-23 * * *")}, {*range(9), *range(18, 24)}, "DailyCalendar: so are hours")
    year = datetime.datetime.now(datetime.timezone.utc).year
    d.request("PUT", "/v1/days/christmas", [f"{year + n}-12-25" for n in range(2)])
    d.put("advent", cron="0 0 12 24,25 12 *", zone="UTC", exec=["true"], **{"except": "christmas"})
    upcoming = d.get("/v1/jobs/advent")["next"]
    christmas = [t for t in upcoming if t[5:10] == "12-25"]
    tap.ok(christmas and min(christmas) > str(year + 2) and min(upcoming) < str(year + 2), "AnnualCalendar: a day of each year that the list has", upcoming)
    d.request("DELETE", "/v1/jobs/advent")


def groups(tap, d):
    for name in ("group.a", "group.b", "groups"):
        d.put(name, rate="1h", exec=["true"])
    for job in d.get("/v1/jobs?prefix=group."):
        d.post(f"/v1/jobs/{job['name']}/pause")
    tap.same({job["name"]: job["paused"] for job in d.get("/v1/jobs?prefix=group")}, {"group.a": True, "group.b": True, "groups": False},
             "pauseJobs(GroupMatcher) (prefix): one by one")


def ends(tap, d):
    d.put("ends", rate="100ms", exec=["true"])
    d.put("end", exec=[f"{PROGRAMS}/twheel-job", f"--socket={d.socket}", "pause", "ends"], env={"ASAN_OPTIONS": "detect_leaks=0"})
    d.over("ends")
    run(d, "end", after="0.3s")
    told = [r["outcome"] for r in d.over("end")]
    d.idle("ends")
    before = len(d.over("ends"))
    time.sleep(0.5)
    tap.same([told, len(d.over("ends")), d.get("/v1/jobs/ends")["paused"]], [["ok"], before, True], "endAt: another job is due then, and pauses it")


def pauses(tap, d):
    for word in ("once", "skip"):
        d.put(f"pause-{word}", rate="200ms", exec=["true"], missed=word, grace="0.3s")
        d.over(f"pause-{word}")
        d.post(f"/v1/jobs/pause-{word}/pause")
        d.idle(f"pause-{word}")     # runs that had begun must end first
    before = {word: len(d.over(f"pause-{word}")) for word in ("once", "skip")}
    time.sleep(1.5)
    tap.same({word: len(d.over(f"pause-{word}")) for word in before}, before, "pauseJob: it is not due")
    key = run(d, "pause-skip")
    tap.ok(until(lambda: [r for r in d.get(f"/v1/runs/{key}") if r.get("outcome") == "ok"]), "triggerJob: also while it is paused")
    resumed = utc(time.time())
    for word in before:
        d.post(f"/v1/jobs/pause-{word}/resume")
    # On a busy host, later times may be missed as well, or may be skipped and recorded before the run that makes up has ended.
    made_up = {word: until(lambda word=word: [r["outcome"] for r in d.over(f"pause-{word}")[n:] if r.get("missed", 0) >= 4
                                              and r["at"] < resumed])
               for word, n in before.items()}
    tap.same(made_up, {"once": ["ok"], "skip": ["missed"]}, "resumeJob: the misfire instruction is applied",
             *(d.over(f"pause-{word}") for word in before))
    for word in before:
        d.request("DELETE", f"/v1/jobs/pause-{word}")


def jobs(tap, d):
    d.put("durable", exec=["/bin/sh", "-c", "echo $TWHEEL_ARG $A"], env={"A": "of the job"})
    tap.same(d.get("/v1/jobs/durable")["next"], [], "storeDurably: a job without a trigger")
    key = run(d, "durable", after="10ms", arg="of the trigger")
    until(lambda: d.output(key))
    tap.same(d.output(key), "of the trigger of the job\n", "JobDataMap of the trigger and of the job")
    d.put("sole", exec=["/bin/sh", "-c", f"echo b >>{d.dir}/sole; sleep 0.1; echo e >>{d.dir}/sole"], overlap="queue")
    for _ in range(3):
        run(d, "sole")
    d.over("sole", 3)
    tap.same("".join(word for line in d.lines("sole") for word in line), "bebebe", "DisallowConcurrentExecution (queue)")
    d.put("next", exec=["true"])
    d.put("chain", exec=["true"], then={"ok": ["next"]})
    run(d, "chain")
    tap.ok(d.over("next"), "JobChainingJobListener (then)")
    d.put("long", exec=["sleep", "100"])
    key = run(d, "long")
    until(lambda: any(run["state"] == "running" for run in d.get(f"/v1/runs/{key}")))
    d.post(f"/v1/runs/{key}/kill")
    tap.same([r["outcome"] for r in d.over("long")], ["killed"], "interrupt (kill)")
    answers = [d.request("PUT", "/v1/jobs/next", {"exec": ["true"]}, {"If-None-Match": "*"})[0], d.put("next", exec=["false"])[0]]
    tap.same(answers, [409, 200], "ObjectAlreadyExistsException, or replace")
    tap.same([d.request("DELETE", "/v1/jobs/chain")[0], d.request("GET", "/v1/jobs/chain")[0]], [200, 404], "deleteJob")
    d.put("later", rate="1h", start="2099-01-01T00:30:00Z", exec=["true"])
    tap.same(d.get("/v1/jobs/later")["next"][:2], ["2099-01-01T00:30:00.000000Z", "2099-01-01T01:30:00.000000Z"], "startAt")


def expressions(tap, d):
    def times(cron, zone):
        return d.get(f"/v1/preview?cron={cron.replace(' ', '+')}&zone={zone}&n=3")
    last = [t for t in str(times("0 0 0 L 2 *", "UTC")).split("'") if t.startswith("20")]
    tap.ok(last and all(t[5:10] in ("02-28", "02-29") for t in last), "CronExpression: L, the last day of the month", last)
    night = [t for t in str(times("0 30 2 * * *", "Europe/Berlin")).split("'") if t.startswith("20")]
    tap.ok(len(night) == 3 and all(t[11:16] in ("00:30", "01:30") for t in night), "CronExpression: a time zone", night)
    tap.same(d.request("GET", "/v1/preview?cron=61+*+*+*+*")[0], 400, "CronExpression: one that is wrong")


def recovery(tap):
    with Daemon() as d:
        d.start()
        body = f"echo $TWHEEL_JOB $TWHEEL_KEY $TWHEEL_ATTEMPT >>{d.dir}/out; [ $TWHEEL_ATTEMPT = 2 ] || exec sleep 1000"
        d.put("again", exec=["/bin/sh", "-c", body])
        d.put("not", exec=["/bin/sh", "-c", body], lost="report")
        d.put("kept", cron="0 0 1 1 *", exec=["true"])
        keys = {name: run(d, name) for name in ("again", "not")}
        until(lambda: len(d.lines()) == 2)
        d.kill()
        d.start()
        outcomes = {name: [r["outcome"] for r in d.over(name)] for name in keys}
        tap.same(outcomes, {"again": ["ok"], "not": ["lost"]}, "requestsRecovery: lost is again, or report")
        tap.same(sorted(d.lines()), sorted([["again", keys["again"], "1"], ["again", keys["again"], "2"], ["not", keys["not"], "1"]]),
                 "isRecovering: the same key, with a greater attempt")
        tap.ok(d.get("/v1/jobs/kept")["next"], "JDBCJobStore: jobs are kept")
        tap.ok(d.stop() == 0 and not d.unsound(), "the daemons were sound", d.unsound())


def priorities(tap):
    """A pool has room for fewer runs than are due: the runs with the greatest priority begin first."""
    with Remote() as d, Runner("pool", d.start(), name="r", runs=1) as runner:
        gate = f"while ! [ -e {d.dir}/gate ]; do sleep 0.02; done"
        d.put("first", exec=["/bin/sh", "-c", gate], pool="pool")
        for prio in (5, 1, 10):
            d.put(f"p{prio}", exec=["/bin/sh", "-c", f"echo {prio} >>{d.dir}/order"], pool="pool", prio=prio)
        runner.start()
        key = run(d, "first")
        until(lambda: any(run["state"] == "running" for run in d.get(f"/v1/runs/{key}")))
        for prio in (5, 1, 10):
            key = run(d, f"p{prio}")
            until(lambda key=key: [r for r in d.get(f"/v1/runs/{key}") if r["state"] == "ready"])
        os.mknod(f"{d.dir}/gate")
        until(lambda: len(d.lines("order")) == 3)
        tap.same(d.lines("order"), [["10"], ["5"], ["1"]], "Trigger.priority: of those that are due, the greater is first")


def main():
    tap = Tap(40)
    misfires(tap)
    with Daemon() as d:
        d.start()
        for fn in (calendars, other_calendars, pauses, groups, ends, jobs, expressions):
            fn(tap, d)
        tap.ok(d.stop() == 0 and not d.unsound(), "the daemon was sound", d.unsound())
    recovery(tap)
    priorities(tap)
    tap.done()


main()
