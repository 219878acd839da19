# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""A headless Chromium, driven by the DevTools protocol over a pair of pipes: no port, no driver, no library.

	with Browser() as b:
		b.open("http://127.0.0.1:1234/")
		b.js("document.title")
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

KEYS = {"Enter": ("Enter", 13, "\r"), "Tab": ("Tab", 9, None), "Escape": ("Escape", 27, None), " ": ("Space", 32, " ")}
SHIFT = 8


class Browser:
    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="chromium.")
        # Chromium reads requests from descriptor 3 and writes answers to 4.
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        self.log = open(f"{self.home}/stderr", "wb+")

        def pipes():
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-proxy-server", "--force-color-profile=srgb", f"--user-data-dir={self.home}/profile", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            env={**os.environ, "HOME": self.home, "TZ": "UTC", "LANG": "C.UTF-8"})
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Only a page with the focus gets keys, and there is no window manager to give it the focus.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)       # it ends then
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    # ---- the protocol: JSON, and a NUL after each message ----

    def message(self):
        while b"\0" not in self.rest:
            data = os.read(self.back, 1 << 20)
            if not data:
                self.log.seek(0)
                raise OSError("chromium has ended: " + self.log.read().decode(errors="replace")[-2000:])
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    # ---- pages ----

    def open(self, url):
        """Load a page. If only the part of the URL behind the # changes, the browser loads nothing."""
        self.call("Page.navigate", url=url)

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=60):
        """Evaluate an expression until it is true, or the time is over. An element counts as true. Returns the last value."""
        end = time.monotonic() + seconds
        while not (value := self.js(f"(v => v instanceof Node || v)({expression})")) and time.monotonic() < end:
            time.sleep(0.05)
        return value

    def complaints(self):
        """Returns the complaints of the page and the browser since the last call: exceptions, errors, breaches of the policy."""
        self.js("0")
        got = [e["params"] for e in self.events
               if e.get("method") == "Runtime.exceptionThrown" or
               e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] in ("error", "warning") or
               e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "warning", "assert")]
        self.events.clear()
        return got

    # ---- what a person does ----

    def key(self, name, modifiers=0):
        code, number, text = KEYS.get(name, ("", ord(name[0].upper()), name))
        event = {"key": name, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        """Type a text into the element that has the focus. A page that has just been loaded may miss it: then type it again."""
        for _ in range(20):
            self.call("Input.insertText", text=text)
            if self.wait(f"document.activeElement.value?.endsWith({json.dumps(text)})", 2):
                break

    def focus(self):
        """Returns the name by which a screen reader would call the element that has the focus."""
        return self.js("(e => e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent.trim().slice(0, 60))"
                       "(document.activeElement)")

    def tab_to(self, name, most=60, backwards=False):
        """Press Tab until the element with this name has the focus. Returns whether it has."""
        for _ in range(most):
            self.key("Tab", SHIFT if backwards else 0)
            if self.focus() == name:
                return True
        return False

    def click(self, selector, times=1):
        """Wait until the element is there, has stopped moving, and nothing covers it; then click on it, @times times. Between
        two clicks, leave the page time to act on the first."""
        place = f"""(e => {{
            if (!e) return null;
            e.scrollIntoView({{block: 'center'}});
            const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
            return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
        }})(document.querySelector({json.dumps(selector)}))"""
        last, end = None, time.monotonic() + 60
        while not (last and last == self.js(place)) and time.monotonic() < end:
            time.sleep(0.05)
            last = self.js(place)
        if not last:
            raise RuntimeError(f"there is no {selector} to click on")
        for count in range(1, times + 1):
            time.sleep(0.15 * (count > 1))
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=last[0], y=last[1], button="left", clickCount=count)

    def window(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
