#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Test the page of twheeld in a headless Chromium: what it shows and does, by mouse and by keyboard alone, with names that
are meant to break it, with 10 000 jobs, and in a narrow and a dark window.

	test_page.py DIRECTORY	also leaves pictures of the page in DIRECTORY, for a person to look at
"""
import json
import re
import sqlite3
import sys
import time

from browser import SHIFT, Browser
from daemon import Tap, until
from remote import TOKENS, Remote

MANY = 10000
# Texts that a definition, or somebody who can write to the store, can put on the page.
MEAN = ["<img src=x onerror=\"hit=1\">", "\"><script>hit=1</script>", "</script><script>hit=1</script>", "'\"`${hit=1}&lt;b&gt;",
        "\u202egnp.exe\u202c", "שלום עולם", "😀👩‍👩‍👧", "javascript:hit=1", "%3Cscript%3E%00../..#/runs?x", "x" * 128]


class Page:
    def __init__(self, tap, d, b):
        self.tap, self.d, self.b = tap, d, b
        self.url = f"http://127.0.0.1:{d.port}/"
        self.pictures = sys.argv[1] if len(sys.argv) > 1 else None

    def picture(self, name):
        if self.pictures:
            self.b.picture(f"{self.pictures}/{name}.png")

    def go(self, where, selector="main table tbody tr"):
        self.b.js(f"location.hash = {json.dumps(where)}")
        return self.b.wait(f"location.hash === {json.dumps('#' + where)} && document.querySelector({json.dumps(selector)}) !== null")

    def row(self, name):
        """Returns the texts in the row of a job, one for each column; None if there is no row."""
        return self.b.js(f"(r => r && [...r.cells].map(c => c.innerText.trim()))([...document.querySelectorAll('tbody tr')]"
                         f".find(r => r.innerText.trim().startsWith({json.dumps(name)})))")

    def text(self, selector):
        return self.b.js(f"document.querySelector({json.dumps(selector)})?.textContent")

    def said(self, words):
        return self.b.wait(f"document.getElementById('said').textContent.includes({json.dumps(words)})")


def headers(tap, p):
    connection = p.d.connection()
    connection.request("GET", "/")
    answer = connection.getresponse()
    body, policy = answer.read().decode(), answer.headers["Content-Security-Policy"] or ""
    tap.ok(answer.status == 200 and answer.headers["Content-Type"].startswith("text/html") and body.endswith("</script>\n"),
           "GET / is the page, also without a token", answer.status)
    tap.ok(policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy and "http" not in policy,
           "its policy allows nothing but its own script and style", policy)
    tap.ok(not re.search(r"\b(src|href)=\"?(https?:|//)|@import|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|localStorage", body),
           "it names nothing outside, and makes no HTML of strings")
    for site, mode, status in (("cross-site", "cors", 403), ("same-site", "no-cors", 403), ("cross-site", "navigate", 403),
                               ("same-origin", "cors", 200), ("none", "navigate", 200)):
        got = p.d.request("PUT", "/v1/days/x", [], {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})[0]
        tap.same(got, status, f"a request for a page that is {site}, {mode}")
    tap.same(p.d.request("GET", "/", None, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0], 200, "a link to the page works")


def token(tap, p):
    b = p.b
    b.open(p.url)
    tap.ok(b.wait("document.querySelector('#token[open] input') === document.activeElement"), "the page asks for a token")
    p.picture("token")
    b.type("wrong" * 5)
    b.key("Enter")
    tap.ok(b.wait("document.querySelector('#token[open] [role=alert]')?.textContent.includes('refused')"), "a wrong one is refused",
           b.js("[document.querySelector('#token').outerHTML, document.querySelector('#token input').value, token.get()]"))
    b.key("Escape")
    tap.ok(b.js("document.querySelector('#token[open]') !== null"), "Escape does not go on without one")
    b.type(TOKENS["read"])
    b.key("Enter")
    tap.ok(b.wait("document.querySelector('main table:not([hidden])')"), "a right one is accepted")
    tap.same(b.js("[location.href.includes('rrrr'), localStorage.length, document.cookie, Object.values(sessionStorage).join()]"),
             [False, 0, "", TOKENS["read"]], "it is in sessionStorage and nowhere else")
    b.click("button[aria-label='Run talk now']")
    tap.ok(p.said("this token is not for that"), "a token for reading cannot run anything", p.text("#said"))
    b.click("#forget")
    b.wait("document.querySelector('#token[open]')")
    b.type(TOKENS["all"])
    b.key("Enter")
    tap.ok(b.wait("!document.querySelector('#token[open]') && !document.getElementById('forget').hidden"), "another token")
    # The browser itself complains about each answer with the status 401 or 403: that is no fault of the page.
    complaints = [c for c in b.complaints() if not re.search("status of 40[13]", str(c))]
    tap.ok(not complaints, "no exception, and the policy was not broken", *complaints)


def shows(tap, p):
    b, d = p.b, p.d
    p.go("/jobs")
    row = until(lambda: (r := p.row("night")) and r[1] and r) or []
    tap.ok(re.fullmatch(r"in (\d+ h( \d+ min)?|\d+ min.*|\d+ s)\s+(\d{4}-\d\d-\d\d )?02:30:00", row[1]), "a job's next time", row)
    tap.ok(b.wait("/^ok/.test([...document.querySelectorAll('tbody tr')].find(r => r.innerText.startsWith('tick')).cells[3].innerText)"),
           "a job's last outcome", p.row("tick"))
    label = b.wait("document.querySelector('svg.hour')?.getAttribute('aria-label')")
    plan = d.get("/v1/plan")
    tap.ok(f"The next hour: {plan['jobs']} jobs" in label and b.js("document.querySelectorAll('svg.hour title').length") == 60,
           "a picture of the next hour", label)
    strips = b.js("[...document.querySelectorAll('tbody tr')].map(r => [r.cells[0].innerText, r.querySelectorAll('svg.strip rect').length])")
    n = dict(strips)    # in the rest of the first minute a job may have no time
    tap.ok(n["five"] in (11, 12) and n["talk"] == 0 and n["tick"] in (59, 60), "and of each job", strips)
    p.picture("jobs")
    d.put("late", exec=["true"])
    tap.ok(b.wait("[...document.querySelectorAll('tbody a.name')].some(a => a.textContent === 'late')"), "a job that is put appears")
    d.request("DELETE", "/v1/jobs/late")
    tap.ok(b.wait("![...document.querySelectorAll('tbody a.name')].some(a => a.textContent === 'late')"), "and goes when it is removed")
    b.click("#prefix")
    b.type("ti")
    b.key("Enter")
    tap.ok(b.wait("[...document.querySelectorAll('tbody a.name')].map(a => a.textContent).join() === 'tick'"), "jobs by their beginning")
    p.go("/nodes")
    tap.ok(b.wait("document.querySelectorAll('.parts .owner:not(.none)').length") == 64 and "64 of 64" in p.text("main table"), "who owns what")
    d.ask("POST", "/v1/take", {"runner": "r-1", "name": "far", "pool": "web", "room": 1, "wait": "0s"}, TOKENS["run"])
    tap.ok(b.wait("/r-1\\s+far\\s+web/.test(document.querySelector('main').innerText)"), "runners")
    p.picture("nodes")


def acts(tap, p):
    b, d = p.b, p.d
    p.go("/jobs", "button[aria-label='Pause tick']")
    b.click("button[aria-label='Pause tick']")
    tap.ok(b.wait("document.querySelector(\"button[aria-label='Resume tick']\")?.textContent") and d.get("/v1/jobs/tick")["paused"], "pause")
    tap.ok("paused" in p.row("tick")[1] and p.said("tick is paused"), "the page says so", p.row("tick"))
    b.click("button[aria-label='Resume tick']")
    tap.ok(b.wait("document.querySelector(\"button[aria-label='Pause tick']\")") and not d.get("/v1/jobs/tick")["paused"], "resume")
    b.click("button[aria-label='Pause tick']", times=2)
    time.sleep(1)
    tap.ok(d.get("/v1/jobs/tick")["paused"], "a double click is one", p.row("tick"))
    d.post("/v1/jobs/tick/resume")
    b.click("button[aria-label='Run talk now']")
    run = until(lambda: d.get("/v1/jobs/talk")["runs"])[0]["run"]
    tap.ok(p.said(f"Run {run} of talk"), "run", p.text("#said"))
    p.go(f"/runs/{run}", "pre.log")
    tap.ok(b.wait("document.querySelector('pre.log').textContent.includes('line 3 <b>bold</b>\\n')"), "its log", p.text("pre.log"))
    seen = len(p.text("pre.log"))
    tap.ok(b.wait(f"document.querySelector('pre.log').textContent.length > {seen} + 60"), "the log follows")
    tap.same(p.text("pre.log")[:39], "line 1 <b>bold</b>\nline 2 <b>bold</b>\nl", "nothing of it is shown twice or left out")
    p.picture("run")
    tap.ok(b.wait("(e => e.scrollHeight > e.clientHeight + 100)(document.querySelector('pre.log'))"), "it grows out of its window")
    tap.ok(b.wait("(e => e.scrollTop + e.clientHeight > e.scrollHeight - 30)(document.querySelector('pre.log'))"), "its end is in sight")
    b.js("document.querySelector('pre.log').scrollTop = 0")
    b.wait("!document.querySelector('main input[type=checkbox]').checked")
    seen = len(p.text("pre.log"))
    b.wait(f"document.querySelector('pre.log').textContent.length > {seen} + 60")
    tap.same(b.js("document.querySelector('pre.log').scrollTop"), 0, "whoever scrolls back is left there")
    b.click("button.bad[aria-label^='Kill']")
    b.wait("document.querySelector('#sure[open]')")
    p.picture("kill")
    b.key("Escape")
    b.wait("!document.querySelector('#sure[open]')")
    tap.same([r["state"] for r in d.get(f"/v1/runs/{run}")], ["running"], "Escape kills nothing")
    b.click("button.bad[aria-label^='Kill']")
    b.wait("document.querySelector('#sure[open]')")
    b.click("#sure button[value=yes]")
    tap.ok(b.wait("document.querySelector('main .tag')?.textContent === 'killed'") and d.get(f"/v1/runs/{run}")[0]["outcome"] == "killed", "kill",
           b.js("[document.querySelector('#sure').outerHTML, document.querySelector('#said').textContent, document.activeElement.outerHTML]"))
    tap.ok(b.wait("document.querySelector('main').innerText.includes('That is all.')"), "the log ends with its run")
    p.go("/runs?job=talk&outcome=killed")
    tap.same(b.js("[...document.querySelectorAll('tbody tr')].map(r => r.cells[0].innerText)"), [run], "runs by job and outcome")
    p.picture("runs")


def retried(tap, p):
    b, d = p.b, p.d
    run = d.post("/v1/jobs/again/run")[1][0]["run"]
    until(lambda: len(d.get(f"/v1/runs/{run}")) == 2)
    p.go(f"/runs/{run}")
    tap.ok(b.wait("document.querySelector('pre.log').textContent === 'attempt 2\\n'"), "of several attempts the last one's log", p.text("pre.log"))
    b.click("a[aria-label='Output of attempt 1']")
    tap.ok(b.wait("document.querySelector('pre.log')?.textContent === 'attempt 1\\n'"), "and that of another", p.text("pre.log"))
    p.go(f"/runs/{run}?attempt=99")
    tap.ok(b.wait("document.querySelector('main').innerText.includes('There is no such run.')"), "of one without a log it is said why")


def signs(tap, p):
    """A log has characters that a screen would not show. The page shows signs for them."""
    p.d.put("signs", exec=["/bin/sh", "-c", r"printf 'a\r'; sleep 1; printf '\nb\r\n\302\233\342\200\256x\n'"])
    p.go(f"/runs/{p.d.post('/v1/jobs/signs/run')[1][0]['run']}", "pre.log")
    p.b.wait("document.querySelector('main').innerText.includes('That is all.')")
    tap.same(p.text("pre.log"), "a\nb\n\\u009b\\u202ex\n", "signs in a log are shown, and the end of a line is one, also where a part ends")
    p.d.request("DELETE", "/v1/jobs/signs")


def keyboard(tap, p):
    """Do everything by keys: find a job, pause and resume it, run it, read the log of the run, and kill the run."""
    b, d = p.b, p.d
    p.go("/jobs", "button[aria-label='Run talk now']")
    b.js("document.activeElement.blur()")
    b.key("/")
    tap.same(b.focus(), "Names that begin with", "/ is the search")
    b.type("talk")
    b.key("Enter")
    b.wait("document.querySelectorAll('tbody tr').length === 1 && document.activeElement === document.querySelector('main')")
    tap.ok(b.tab_to("talk") and b.tab_to("Run talk now") and b.tab_to("Pause talk"), "Tab goes from a job to its buttons", b.focus())
    b.key(" ")
    b.wait("document.querySelector(\"button[aria-label='Resume talk']\")")
    tap.ok(d.get("/v1/jobs/talk")["paused"] and b.focus() == "Resume talk", "pause; the focus stays", b.focus())
    b.key("Enter")
    tap.ok(b.wait("document.activeElement.getAttribute('aria-label') === 'Pause talk'") and not d.get("/v1/jobs/talk")["paused"], "resume", b.focus())
    b.key("Tab", SHIFT)
    b.key("Enter")
    run = until(lambda: d.get("/v1/jobs/talk")["runs"])[0]["run"]
    b.tab_to("talk", backwards=True)
    b.key("Enter")
    tap.ok(b.wait("location.hash === '#/jobs/talk' && document.querySelector('tbody tr')") and b.tab_to(run), "to the job, to its run", b.focus())
    b.key("Enter")
    tap.ok(b.wait("document.querySelector('pre.log')?.textContent.includes('line 2')") and b.tab_to("Output"), "its log has the focus", b.focus())
    tap.ok(b.tab_to(f"Kill run {run}", backwards=True), "Shift-Tab to kill", b.focus())
    b.key("Enter")
    b.wait("document.querySelector('#sure[open]')")
    tap.same(b.focus(), "Cancel", "the question is not answered by a second Enter")
    b.key("Tab", SHIFT)
    b.key("Enter")
    tap.ok(b.wait("document.querySelector('main .tag')?.textContent === 'killed'"), "kill", b.focus())
    outline = b.js("(b => { b.focus(); return getComputedStyle(b).outlineStyle; })(document.querySelector('nav a'))")
    tap.same(outline, "solid", "the focus is seen")


def mean(tap, p):
    """The store has names that no request can give, as if somebody else had written there. The page shows them as text."""
    b, d = p.b, p.d
    run = d.post("/v1/jobs/mean/run")[1][0]["run"]
    d.over("mean")
    d.stop()
    db = sqlite3.connect(f"{d.dir}/state/jobs.db")
    for i, name in enumerate(MEAN):
        definition = json.dumps({"name": name, "exec": ["true", name], "env": {"A": name}, **({"user": name} if i % 2 else {})})
        db.execute("UPDATE job SET name = ?, def = ? WHERE name = ?", (name, definition, f"mean{i}"))
    db.commit()
    db.close()
    d.start()
    b.js("globalThis.hit = 0")
    p.go("/jobs")
    got = b.wait(f"(names => {json.dumps(MEAN)}.every(n => names.includes(n)) && names)([...document.querySelectorAll('tbody a.name')].map(a => a.textContent))")
    tap.ok(got, "each name is shown as it is", b.js("[...document.querySelectorAll('tbody a.name')].map(a => a.textContent)"))
    p.picture("names")
    wrong = []
    for name in MEAN:
        b.js(f"[...document.querySelectorAll('tbody a.name')].find(a => a.textContent === {json.dumps(name)}).click()")
        if not b.wait(f"document.querySelector('h1')?.textContent === {json.dumps(name)}", 10):
            wrong.append((name, p.text("h1")))
        # Not every name can be in a path of /v1. So the page shows the definition, or an error message, as text.
        b.wait("document.querySelector('.error')?.textContent || document.querySelector('main .card pre')?.textContent", 10)
        b.js("history.back()")
        b.wait("location.hash === '#/jobs' && document.querySelector('tbody a.name')", 10)
    tap.ok(not wrong, "and so on a page of its own", *wrong)
    p.go(f"/runs/{run}", "pre.log")
    tap.ok(b.wait(f"document.querySelector('pre.log').textContent.startsWith({json.dumps(MEAN[0])})"), "markup in a log is text", p.text("pre.log"))
    tap.same(p.text("pre.log").splitlines()[-1], "␀␇␛[31mred", "controls in a log are signs")
    p.go("/jobs/mean", "main .card pre")
    b.wait("document.querySelectorAll('main .card pre')[0].textContent.includes('exec')")
    tap.ok(b.js("document.querySelector('main .card pre').textContent.includes('\\\\u202egnp.exe\\\\u202c')"), "what turns text around is shown as an escape")
    tap.same(b.js("[globalThis.hit, document.querySelectorAll('main img, main script').length]"), [0, 0], "nothing of it is run")
    complaints = [c for c in b.complaints() if not re.search("status of 4|ERR_|fetch", str(c))]
    tap.ok(not complaints, "and nothing has tried to", *complaints)


def narrow(tap, p):
    b = p.b
    for width, dark in ((320, False), (360, True), (700, False), (1200, True)):
        wide = []
        b.window(width, 700, dark)
        for where in ("/jobs", "/jobs/mean", "/runs", f"/runs/{p.d.get('/v1/runs')[0]['run']}", "/nodes"):
            p.go(where)
            if b.js("document.documentElement.scrollWidth > innerWidth"):
                wide.append(where)
            p.picture(f"{width}{'-dark' if dark else ''}{where.replace('/', '-')[:6]}")
        tap.ok(not wide, f"{width} pixels are enough{', dark' if dark else ''}", *wide)
    ratio = b.js("""(() => {
        const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        const light = c => (([r, g, b]) => .2126 * r + .7152 * g + .0722 * b)(rgb(c));
        const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)/.test(c)) return c; } };
        return Math.min(...[...document.querySelectorAll('main *, header *')].filter(e => e.innerText && !e.children.length && !e.closest('.owner'))
            .map(e => [light(getComputedStyle(e).color), light(ground(e))]).map(([a, b]) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05)));
    })()""")
    tap.ok(ratio >= 4.5, "each text stands out from its ground", ratio)
    b.window(1200, 800)


def many(tap, p):
    b, d = p.b, p.d
    for i in range(0, MANY, 1000):
        d.post("/v1/jobs", [{"name": f"z{n:05}", "exec": ["true"], "cron": "0 3 * * *", "spread": "1d"} for n in range(i, i + 1000)])
    p.go("/runs")
    p.go("/jobs?prefix=z")
    tap.same(b.wait("document.querySelectorAll('tbody tr').length"), 50, "of 10 000 jobs a page is shown")
    wanted = f"{MANY // 1000}\u202f000 jobs"
    tap.ok(b.wait(f"document.querySelector('figcaption').textContent.includes({json.dumps(wanted)})"), "all are in the picture", p.text("figcaption"))
    p.picture("many")
    seen = set()
    for _ in range(4):
        names = b.js("[...document.querySelectorAll('tbody a.name')].map(a => a.textContent)")
        seen.update(names)
        b.js("[...document.querySelectorAll('main a')].find(a => a.textContent === 'Next page').click()")
        b.wait(f"(a => a && a.textContent > {json.dumps(max(names))})(document.querySelector('tbody a.name'))")
    tap.same(sorted(seen), [f"z{n:05}" for n in range(200)], "page by page")
    b.js("history.back()")
    tap.ok(b.wait("document.querySelector('tbody a.name')?.textContent === 'z00150'"), "and back")
    tap.ok(b.js("document.querySelectorAll('*').length") < 3000, "the page stays small", b.js("document.querySelectorAll('*').length"))


def main():
    talk = ["/bin/sh", "-c", "i=0; while :; do i=$((i + 1)); echo \"line $i <b>bold</b>\"; sleep 0.05; done"]
    jobs = [{"name": "night", "cron": "30 2 * * *", "exec": ["true"]}, {"name": "five", "cron": "*/5 * * * *", "exec": ["true"]},
            {"name": "tick", "rate": "1s", "exec": ["true"]}, {"name": "talk", "exec": talk},
            {"name": "again", "exec": ["/bin/sh", "-c", "echo attempt $TWHEEL_ATTEMPT; exit $((2 - TWHEEL_ATTEMPT))"],
             "retry": {"times": 1, "wait": "10ms"}},
            {"name": "mean", "exec": ["/usr/bin/printf", "%s\n", *MEAN, "\\0\\a\\e[31mred"]}]
    jobs[-1]["exec"] = ["/bin/sh", "-c", "printf '%s\\n' \"$@\"; printf '\\0\\a\\033[31mred'", "sh", *MEAN]
    tap = Tap(74)
    with Remote() as d:
        d.start()
        d.post("/v1/jobs", jobs + [{"name": f"mean{i}", "exec": ["true"]} for i in range(len(MEAN))])
        with Browser() as b:
            p = Page(tap, d, b)
            b.window(1200, 800)
            for fn in (headers, token, shows, acts, retried, signs, keyboard, mean, narrow, many):
                fn(tap, p)
        tap.same(d.stop(), 0, "the daemon ends")
        tap.ok(not d.unsound(), "the daemon was sound", d.unsound())
    tap.done()


main()
