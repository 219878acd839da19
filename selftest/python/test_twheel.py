# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""The package twheel for Python, over the backend that TWHEEL_BACKEND names.

A busy host makes everything late. So lateness is checked only where it is what is tested, and then with
a bound that only a wrong result exceeds.
"""
import asyncio
import contextlib
import ctypes
import datetime
import errno
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref

import twheel

BACKEND = os.environ["TWHEEL_BACKEND"]
LONG = 3600
# A loop in debug mode reports callbacks that take long, as some here do.
logging.getLogger("asyncio").setLevel(logging.ERROR)


def now_ns():
    return time.monotonic_ns()


def until(condition, seconds=60):
    """Wait until condition() is true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never")
        time.sleep(0.002)


def refused(number, function, *args, **kwargs):
    """Check that an OSError with this errno is raised."""
    with contextlib.suppress(OSError):
        function(*args, **kwargs)
        raise AssertionError(f"{function} was not refused")
    try:
        function(*args, **kwargs)
    except OSError as error:
        assert error.errno == number, (error.errno, number)


def met(now, due):
    """Did a timer that was due at `due`, with a tolerance of 4 s, wait for the next multiple of 600 ticks,
    where such timers meet?"""
    return due <= now // 600_000_000 * 600_000_000 and now < due + 60 * 10**9


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class WheelTest(unittest.TestCase):
    def setUp(self):
        self.wheel = twheel.Wheel()
        self.addCleanup(self.wheel.close)

    def test_backend(self):
        """Wheel: the backend is that of the environment, or the one asked for"""
        self.assertEqual(self.wheel.backend, BACKEND)
        with twheel.Wheel("embedded") as wheel:
            self.assertEqual(wheel.backend, "embedded")

    def test_fires(self):
        """Wheel: a timer fires once, in time, with its user data"""
        start = now_ns()
        handle = self.wheel.add(0.05, 2**64 - 1)
        [event] = self.wheel.read(timeout=10)
        self.assertGreaterEqual(now_ns(), start + 50_000_000)
        self.assertEqual((event.user_data, event.handle, event.count, event.flags), (2**64 - 1, handle, 1, 0))
        self.assertLessEqual(start + 50_000_000, event.expires_ns)
        self.assertEqual(self.wheel.read(), [])
        refused(errno.ENOENT, self.wheel.cancel, handle)

    def test_cancel(self):
        """Wheel: a cancelled timer does not fire"""
        in_time = False
        while not in_time:      # again if the host stood still until it was due
            start = now_ns()
            armed, ready = self.wheel.add(0.05), self.wheel.add(0)
            until(lambda: self.wheel.query(ready).state == "ready")  # pylint: disable=cell-var-from-loop
            cancelled = self.wheel.cancel(armed)
            in_time = now_ns() < start + 50_000_000
            self.assertIs(self.wheel.cancel(ready), False)
        self.assertIs(cancelled, True)
        self.assertEqual(self.wheel.read(timeout=0.15), [])

    def test_mod(self):
        """Wheel: a timer is re-armed, before and after its event"""
        handle = self.wheel.add(LONG, keep=True)
        self.assertIs(self.wheel.mod(handle, 0, keep=True), True)
        [event] = self.wheel.read(timeout=10)
        self.assertEqual(event.flags, twheel.EV_MORE)
        self.assertEqual(self.wheel.query(handle).state, "idle")
        self.assertRaises(FileNotFoundError, self.wheel.mod, handle, 1, pending=True)
        self.assertIs(self.wheel.mod(handle, 0), False)
        self.assertEqual(self.wheel.read(timeout=10)[0].handle, handle)

    def test_period(self):
        """Wheel: periods that pass unread are counted"""
        self.wheel.add(0.01, interval=0.01)
        time.sleep(0.1)
        [event] = self.wheel.read()
        self.assertGreaterEqual(event.count, 9)

    def test_submit(self):
        """Wheel: many operations in one call; drain into another wheel"""
        ops = [twheel.Op(op=twheel.OP_ADD, user_data=i, expires_ns=10**12 + i) for i in range(1000)]
        ops.append(twheel.Op(op=twheel.OP_CANCEL, handle=2**63))
        done = self.wheel.submit(ops)
        self.assertEqual([op.res for op in done], [0] * 1000 + [-errno.ENOENT])
        self.assertEqual(len({op.handle for op in done}), 1001)
        self.assertEqual(self.wheel.info().nr_armed, 1000)
        drained = self.wheel.drain()
        self.assertEqual({op.user_data for op in drained}, set(range(1000)))
        self.assertEqual(self.wheel.info().nr_armed, 0)
        for op in drained:
            op.handle = 0
        with twheel.Wheel() as other:
            self.assertFalse([op for op in other.submit(drained) if op.res])
            self.assertEqual(other.info().nr_armed, 1000)

    def test_errors(self):
        """Wheel: errors are OSError with the errno, bad arguments are ValueError"""
        refused(errno.EINVAL, twheel.Wheel, tick=10)
        refused(errno.EINVAL, twheel.Wheel, clock=99)
        refused(errno.EINVAL, self.wheel.add, 1, interval=1e-7)
        self.assertRaises(ValueError, self.wheel.add, float("nan"))
        self.assertRaises(ValueError, self.wheel.add, 1, interval=0)
        self.assertRaises(ValueError, twheel.Wheel, "else")
        self.assertRaises(ValueError, twheel.Wheel, max_timers=2**32)
        with twheel.Wheel(max_timers=1) as wheel:
            wheel.add(float("inf"))
            refused(errno.EDQUOT, wheel.add, 1)
        self.assertRaises(ValueError, wheel.add, 1)
        self.assertTrue(wheel.closed)
        wheel.close()

    def test_range(self):
        """Wheel: a number that is too large is ValueError"""
        handle = self.wheel.add(LONG)
        for call in (lambda n: self.wheel.add(0, n), self.wheel.cancel, self.wheel.query, lambda n: self.wheel.mod(n, 1),
                     lambda n: self.wheel.add_ns(n), lambda n: self.wheel.add_ns(1, interval_ns=n),
                     lambda n: self.wheel.mod_ns(handle, n), lambda n: self.wheel.mod_ns(handle, 1, tolerance_ns=n)):
            for number in (-1, 2**64 + 1, 2**64 + handle):
                self.assertRaises(ValueError, call, number)
        for number in (-1, 2**32 + 1):
            self.assertRaises(ValueError, self.wheel.add_ns, 1, flags=number)
        for number in (2**32 + 1, -2**32 + 1):
            self.assertRaises(ValueError, twheel.Wheel, clock=number)
            self.assertRaises(ValueError, twheel.Scheduler, clock=number)
        self.assertEqual(self.wheel.info().nr_timers, 1)
        self.wheel.add(0, 2**64 - 1)
        self.assertEqual(self.wheel.read(timeout=10)[0].user_data, 2**64 - 1)

    def test_times(self):
        """Wheel: no time is rounded down"""
        for seconds, ns in ((0.1, 100_000_001), (0.25, 250_000_000), (1e-9, 1), (1.5e-9, 2), (-1, 0),
                            (2**62, 2**63 - 1), (86400.000001, 86400_000_001_001)):
            got = twheel._lib.nanoseconds(seconds)
            self.assertTrue(ns - 1000 <= got <= ns, (seconds, got))
            self.assertTrue(got >= seconds * 1e9 - 1e-3 * (seconds > 1) or got == 2**63 - 1, (seconds, got))

    def test_within(self):
        """Wheel: timers with tolerances fire together, and report their tolerance"""
        handle = self.wheel.add(LONG, within=360)
        self.assertEqual(self.wheel.query(handle).tolerance_ns, 360 * 10**9)
        self.assertTrue(self.wheel.mod(handle, LONG, within=1.5))
        self.assertEqual(self.wheel.query(handle).tolerance_ns, 1_500_000_000)
        self.assertTrue(self.wheel.mod(handle, float("inf"), within=7))     # there is no later
        self.assertEqual(self.wheel.query(handle).tolerance_ns, 0)
        self.assertTrue(self.wheel.mod(handle, LONG))
        self.assertEqual(self.wheel.query(handle).tolerance_ns, 0)
        refused(errno.EINVAL, self.wheel.add_ns, 1, 0, 0, 0, 2**63 - 1)
        self.assertTrue(self.wheel.cancel(handle))
        for i in range(100):
            self.wheel.add(i / 100, i, within=4)
        seen = []
        while len(seen) < 100:
            for event in self.wheel.read(timeout=20):
                self.assertTrue(met(now_ns(), event.expires_ns))
                seen.append(event.user_data)
        self.assertEqual(sorted(seen), list(range(100)))

    def test_read_waits(self):
        """Wheel: read() waits for its timeout in spite of signals, and close() is refused meanwhile"""
        calls = []
        old = signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        try:
            before = 0
            while len(calls) <= before + 2:     # again if the host stood still, and so many signals became one
                before, start = len(calls), time.monotonic()
                self.assertEqual(self.wheel.read(timeout=0.2), [])
                self.assertGreaterEqual(time.monotonic() - start, 0.2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        got = []
        reader = threading.Thread(target=lambda: got.extend(self.wheel.read(timeout=None)))
        reader.start()
        until(lambda: self.wheel._readers)
        refused(errno.EBUSY, self.wheel.close)
        self.wheel.add(0, 7)
        reader.join(10)
        self.assertEqual([event.user_data for event in got], [7])

    def test_fork(self):
        """Wheel: calls in a child are ChildProcessError, and the parent's wheel works"""
        self.wheel.add(0.05, 9)
        child = os.fork()
        if not child:
            status = 1
            try:
                self.wheel.read()
            except ChildProcessError:
                self.wheel.close()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.wheel.read(timeout=10)[0].user_data, 9)

    def test_unclosed(self):
        """Wheel: a wheel without references is closed, with a ResourceWarning"""
        before = descriptors()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            twheel.Wheel().add(LONG)
            gc.collect()
        self.assertEqual([w.category for w in caught], [ResourceWarning])
        self.assertEqual(descriptors(), before)


class TimersTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.timers = twheel.Timers()
        self.addCleanup(self.timers.close)
        self.loop = asyncio.get_running_loop()

    async def soon(self, condition):
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.002)

    async def test_order(self):
        """Timers: calls come in order, none early by the loop's clock"""
        self.assertEqual(self.timers.backend, BACKEND)
        called, added, start = [], [], 0
        while not added or self.loop.time() - start >= 0.03:    # again if the host stood still before all were added
            for timer in added:
                timer.cancel()
            start = self.loop.time()
            added = [self.timers.call_later(delay, lambda d: called.append((d, self.loop.time() - start >= d)), delay)
                     for delay in (0.09, 0.03, 0.06)]
        self.timers.call_at(start + 0.12, lambda: called.append((0.12, self.loop.time() - start >= 0.12)))
        await self.soon(lambda: len(called) == 4)
        self.assertEqual(called, [(d, True) for d in (0.03, 0.06, 0.09, 0.12)])
        self.assertEqual(len(self.timers), 0)

    async def test_cancel(self):
        """Timers: a cancelled timer is not called, and says that it was cancelled"""
        called = []
        timer = self.timers.call_later(0.02, called.append, 1)
        self.assertTrue(timer.active)
        self.assertTrue(timer.cancel())
        self.assertFalse(timer.cancel())
        self.assertTrue(timer.cancelled())
        over = self.timers.call_later(0, called.append, 2)
        await asyncio.sleep(0.1)
        self.assertEqual(called, [2])
        self.assertFalse(over.cancel())
        self.assertEqual(over.runs, 1)
        self.assertIsNone(over.when())

    async def test_rearm(self):
        """Timers: a timer is re-armed before its call, after it, and after a cancel"""
        called = []
        timer = self.timers.call_later(LONG, called.append, 1)
        self.assertAlmostEqual(timer.when(), self.loop.time() + LONG, delta=60)
        self.assertIs(timer.rearm(0.01), True)
        await self.soon(lambda: called)
        self.assertIs(timer.rearm(0.01), False)
        await self.soon(lambda: len(called) == 2)
        timer.rearm(LONG)
        timer.cancel()
        self.assertIs(timer.rearm(0.01), False)
        self.assertFalse(timer.cancelled())
        await self.soon(lambda: len(called) == 3)
        self.assertEqual(timer.runs, 3)
        timer.rearm(0, interval=0.01)
        await self.soon(lambda: len(called) >= 6)
        self.assertTrue(timer.active)

    async def test_within(self):
        """Timers: timers with tolerances are called together, also after rearm()"""
        called, ends = [], []

        async def expires():
            with contextlib.suppress(TimeoutError):
                async with self.timers.timeout(0.3, within=4):
                    await asyncio.sleep(LONG)
            ends.append(met(now_ns(), start + 300_000_000))

        def call(nr):
            called.append(met(now_ns(), timers[nr].due_ns))
            if len(called) <= 8:
                timers[nr].rearm(0.01 * nr)

        start = now_ns()
        timers = [self.timers.call_later(nr / 8, call, nr, within=4) for nr in range(8)]
        timeout = asyncio.create_task(expires())
        await self.timers.sleep(0.2, within=4)
        ends.append(met(now_ns(), start + 200_000_000))
        await timeout
        async for tick in self.timers.ticks(0.5, within=4):
            ends.append(met(now_ns(), tick.due_ns))
            break
        await self.soon(lambda: len(called) == 16)
        self.assertEqual((called, ends), ([True] * 16, [True] * 3))
        await self.soon(lambda: len(self.timers) == 0)      # the loop has yet to end ticks()

    async def test_same_batch(self):
        """Timers: a call cancels and re-arms timers that expired together with its own"""
        called = []

        def first(name):
            called.append(name)
            if len(called) == 1:
                for other in timers[:2]:
                    self.assertTrue(other is mine[name] or other.cancel())
                for other in timers[2:]:
                    if other is not mine[name]:
                        other.rearm(0.1)

        timers = [self.timers.call_later(0, first, name) for name in "ab"]
        timers += [self.timers.call_later(0, first, "c"), self.timers.call_every(LONG, first, "d", delay=0)]
        mine = dict(zip("abcd", timers))
        time.sleep(0.05)        # so that all four have expired
        start = self.loop.time()
        await self.soon(lambda: len(called) >= (3 if called[:1] and called[0] in "ab" else 2))
        self.assertGreaterEqual(self.loop.time() - start, 0.1)
        self.assertEqual(len(set(called)), len(called))
        await asyncio.sleep(0.05)
        self.assertLessEqual(len(set(called) & set("ab")), 1)

    async def test_period(self):
        """Timers: periods that passed while the loop was busy are counted in one call"""
        timer = self.timers.call_every(0.01, lambda: None)
        await self.soon(lambda: timer.runs >= 3)
        runs, overruns = timer.runs, timer.overruns
        time.sleep(0.2)
        await self.soon(lambda: timer.runs > runs)
        self.assertGreaterEqual(timer.overruns - overruns, 15)
        timer.cancel()
        runs = timer.runs
        await asyncio.sleep(0.05)
        self.assertEqual(timer.runs, runs)

    async def test_fixed_delay(self):
        """Timers: with a fixed delay no period passes uncounted"""
        timer = self.timers.call_every(0.02, time.sleep, 0.05, fixed_delay=True)
        await self.soon(lambda: timer.runs >= 4)
        self.assertEqual(timer.overruns, 0)

    async def test_many(self):
        """Timers: 20000 of them on one descriptor, each called once"""
        before = descriptors()
        called = []
        for i in range(20000):
            self.timers.call_later(i % 400 / 1000, called.append, i)
        self.assertEqual(descriptors(), before)
        await self.soon(lambda: len(called) >= 20000)
        await asyncio.sleep(0.05)
        self.assertEqual(sorted(called), list(range(20000)))

    async def test_exception(self):
        """Timers: an exception goes to the loop's handler, and other timers are called"""
        told, called = [], []
        self.loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        self.timers.call_later(0, lambda: 1 / 0)
        self.timers.call_later(0, called.append, 1)
        time.sleep(0.02)
        await self.soon(lambda: told and called)
        self.assertIsInstance(told[0], ZeroDivisionError)

    async def test_sleep(self):
        """Timers: sleep() returns its result; if its task is cancelled, so is its timer"""
        start = self.loop.time()
        self.assertEqual(await self.timers.sleep(0.05, "awake"), "awake")
        self.assertGreaterEqual(self.loop.time() - start, 0.05)
        task = asyncio.create_task(self.timers.sleep(LONG))
        await self.soon(lambda: len(self.timers) == 1)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(len(self.timers), 0)

    async def test_timeout(self):
        """Timers: timeout() raises TimeoutError in time, and lets other cancellations pass"""
        with self.assertRaises(TimeoutError):
            async with self.timers.timeout(0.02) as timeout:
                await asyncio.sleep(LONG)
        self.assertTrue(timeout.expired())
        async with self.timers.timeout(LONG) as timeout:
            timeout.reschedule(None)
            await asyncio.sleep(0)
            timeout.reschedule(LONG)
        self.assertFalse(timeout.expired())
        self.assertEqual(asyncio.current_task().cancelling(), 0)
        self.assertEqual(len(self.timers), 0)

        async def patient():
            async with self.timers.timeout(LONG):
                await asyncio.sleep(LONG)

        task = asyncio.create_task(patient())
        await asyncio.sleep(0.01)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        with self.assertRaises(TimeoutError):
            async with self.timers.timeout(0.02):
                async with self.timers.timeout(LONG) as inner:
                    await asyncio.sleep(LONG)
        self.assertFalse(inner.expired())

    async def test_ticks(self):
        """Timers: ticks() counts missed ticks, and ends with its loop"""
        got = []
        async with contextlib.aclosing(self.timers.ticks(0.01)) as ticks:
            async for tick in ticks:
                got.append(tick)
                if len(got) == 2:
                    time.sleep(0.1)
                if len(got) == 5:
                    break
        self.assertTrue(all(tick.count >= 1 for tick in got))
        self.assertGreaterEqual(got[2].count, 9)
        for last, tick in zip(got, got[1:]):
            self.assertEqual(tick.due_ns - last.due_ns, last.count * 10_000_000)
        self.assertEqual(len(self.timers), 0)

    async def test_close(self):
        """Timers: close() ends sleep() and ticks(), calls nothing, and closes the descriptors"""
        called = []

        async def ticking():
            return [tick async for tick in timers.ticks(LONG)]

        before = descriptors()
        async with twheel.Timers() as timers:
            sleeper = asyncio.create_task(timers.sleep(LONG))
            ticker = asyncio.create_task(ticking())
            await self.soon(lambda: len(timers) == 2)
            timer = timers.call_later(0, called.append, 1)
            time.sleep(0.02)        # it has expired, and the loop has not looked
        self.assertTrue(sleeper.cancelled() or sleeper.done())
        self.assertEqual(await ticker, [])
        self.assertFalse(timer.active)
        self.assertFalse(timer.cancel())
        self.assertRaises(ValueError, timer.rearm, 1)
        self.assertRaises(ValueError, timers.call_later, 1, called.append, 1)
        await asyncio.sleep(0.05)
        self.assertEqual(called, [])
        self.assertEqual(descriptors(), before)

    async def test_close_in_call(self):
        """Timers: a callback may close them"""
        called = []
        timers = twheel.Timers()
        for _ in range(3):
            timers.call_later(0, lambda: (called.append(1), timers.close()))
        time.sleep(0.02)
        await self.soon(lambda: timers.closed)
        await asyncio.sleep(0.05)
        self.assertEqual(called, [1])

    async def test_garbage(self):
        """Timers: a timer that is over or cancelled keeps no object alive"""
        class Thing:
            def call(self):
                pass

        for end in (lambda timer: timer.cancel(), lambda timer: time.sleep(0.01)):
            thing = Thing()
            gone = weakref.ref(thing)
            end(self.timers.call_later(0, thing.call))
            del thing
            await asyncio.sleep(0.02)
            gc.collect()
            self.assertIsNone(gone())

    async def test_errors(self):
        """Timers: errors are OSError, and leave nothing behind"""
        timers = twheel.Timers(max_timers=1)
        self.addCleanup(timers.close)
        timers.call_later(LONG, print)
        refused(errno.EDQUOT, timers.call_later, 1, print)
        with self.assertRaises(OSError):
            await timers.sleep(1)
        self.assertEqual(len(timers), 1)
        refused(errno.EINVAL, self.timers.call_every, 1e-7, print)
        self.assertEqual(len(self.timers), 0)


class InterruptTest(unittest.TestCase):
    def test_interrupt(self):
        """Timers: KeyboardInterrupt ends the loop; other expired timers are called when it runs again"""
        def interrupt():
            called.append("interrupt")
            raise KeyboardInterrupt

        async def arm():
            nonlocal timers
            timers = twheel.Timers()
            timers.call_later(0, interrupt)
            timers.call_later(0.005, called.append, "after")
            time.sleep(0.05)
            await asyncio.sleep(0.1)

        called, timers = [], None
        loop = asyncio.new_event_loop()
        task = loop.create_task(arm())
        with self.assertRaises(KeyboardInterrupt):
            loop.run_until_complete(task)
        self.assertEqual(called, ["interrupt"])
        loop.run_until_complete(task)
        self.assertEqual(called, ["interrupt", "after"])
        timers.close()
        loop.close()


class PoolTest(unittest.TestCase):
    def setUp(self):
        self.errors = []
        self.sched = twheel.Scheduler(threads=2, on_error=lambda task, error: self.errors.append((task, error)))
        self.addCleanup(self.sched.close)

    def test_after(self):
        """Scheduler: a function is called once, in time, by another thread, with its run"""
        got = []
        start = now_ns()
        task = self.sched.after(0.05, lambda *args: got.append(
            (args, now_ns(), threading.get_ident(), twheel.current_run())), 1, "two", key="name")
        until(lambda: got)
        args, when, thread, run = got[0]
        self.assertEqual(args, (1, "two"))
        self.assertGreaterEqual(when, start + 50_000_000)
        self.assertNotEqual(thread, threading.get_ident())
        self.assertEqual((run.task, run.key, run.runs, run.missed), (task, b"name", 1, 0))
        self.assertIsNone(twheel.current_run())
        until(lambda: not task.cancel())    # it may be at its end
        self.assertRaises(FileNotFoundError, task.reschedule, 1)

    def test_every(self):
        """Scheduler: periods, and the three policies for missed ones"""
        runs = {"burst": [], "skip": [], "delay": []}

        def function(policy):
            runs[policy].append(twheel.current_run())
            if len(runs[policy]) == 2:
                time.sleep(0.2)

        # In a pool of one thread they would wait for each other.
        with twheel.Scheduler(threads=3) as sched:
            for policy in runs:
                sched.every(0.02, function, policy, missed=policy)
            until(lambda: all(len(got) >= 6 for got in runs.values()))
        self.assertEqual(runs["burst"][5].missed, 0)
        self.assertEqual([r.due_ns - runs["burst"][0].due_ns for r in runs["burst"][:6]],
                         [i * 20_000_000 for i in range(6)])
        self.assertGreaterEqual(runs["skip"][5].missed, 8)
        self.assertEqual((runs["skip"][5].due_ns - runs["skip"][0].due_ns) % 20_000_000, 0)
        self.assertGreaterEqual(runs["delay"][5].due_ns - runs["delay"][0].due_ns, 200_000_000)

    def test_fixed_delay(self):
        """Scheduler: a fixed delay counts from when the function returned"""
        ends, begins = [], []

        def function():
            begins.append(now_ns())
            time.sleep(0.03)
            ends.append(now_ns())

        self.sched.every(0.03, function, delay=0, fixed_delay=True)
        until(lambda: len(begins) >= 4)
        self.assertTrue(all(begin - end >= 30_000_000 for end, begin in zip(ends, begins[1:])))

    def test_within(self):
        """Scheduler: tasks with tolerances run together, and keep their phase"""
        seen, added, runs = [], {}, []

        def function():
            run = twheel.current_run()
            seen.append((run.task, run.due_ns, met(now_ns(), run.due_ns)))
            runs.append(run.due_ns)

        # A task that is due at once does not wait, nor does one that the host lets be added only when it is due.
        for i in range(1, 6):
            task = self.sched.after(i / 5, function, within=4)
            added[task] = now_ns()
        until(lambda: len(seen) == 5)
        self.assertTrue(all(there or due <= added[task] for task, due, there in seen), (seen, added))
        until(lambda: not self.sched.tasks())   # the last one may be at its end
        runs.clear()
        task = self.sched.every(0.05, function, within=0.03)
        self.assertEqual([info.tolerance_ns for info in self.sched.tasks()], [30_000_000])
        until(lambda: len(runs) >= 4)
        task.cancel()
        self.assertEqual({due - runs[0] for due in runs[:4]}, {0, 50_000_000, 100_000_000, 150_000_000})
        self.assertRaises(ValueError, self.sched.after, 1, function, within=float("nan"))

    def test_at(self):
        """Scheduler: at a time of the wall clock, as a datetime and as seconds"""
        got = []
        when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=0.05)
        self.sched.at(when, lambda: got.append((time.time(), twheel.current_run().due_ns)))
        self.sched.at(time.time() - 5, lambda: got.append(None))
        until(lambda: len(got) == 2)
        self.assertIn(None, got)
        began, due_ns = next(run for run in got if run)
        self.assertGreaterEqual(began, when.timestamp())
        self.assertAlmostEqual(due_ns / 1e9, when.timestamp(), delta=1e-5)
        later = self.sched.at(time.time() + LONG, got.append, 3)
        later.reschedule_at(time.time())
        until(lambda: len(got) == 3)

    def test_kinds(self):
        """Scheduler: a task with a time cannot get a delay, nor the other way round"""
        got = []
        at = self.sched.at(time.time() + LONG, got.append, 1, key="at")
        after = self.sched.after(LONG, got.append, 2, key="after")
        for task in (at, self.sched.find("at")):
            self.assertRaises(ValueError, task.reschedule, 0)
        for task in (after, self.sched.find("after")):
            self.assertRaises(ValueError, task.reschedule_at, 0)
        self.assertRaises(ValueError, self.sched.every, 1, print, missed="never")
        self.assertRaises(TypeError, self.sched.after, 1, None)
        at.reschedule_at(time.time())
        until(lambda: got == [1])
        after.reschedule(0)
        until(lambda: got == [1, 2])
        until(lambda: not after.cancel() and not self.sched._ids)

    def test_key(self):
        """Scheduler: a task with the same key replaces the first"""
        got = []
        first = self.sched.after(LONG, got.append, 1, key=b"a\0b")
        second = self.sched.after(LONG, got.append, 2, key=b"a\0b")
        self.assertNotEqual(first, second)
        self.assertEqual(self.sched.find(b"a\0b"), second)
        self.assertIsNone(self.sched.find(b"a"))
        self.assertEqual([info.task for info in self.sched.tasks()], [second])
        second.reschedule(0)
        until(lambda: got)
        self.assertEqual(got, [2])
        self.assertIs(first.cancel(), False)
        refused(errno.EINVAL, self.sched.after, 1, print, key="x" * 65536)

    def test_list(self):
        """Scheduler: tasks are listed in order, and rescheduled"""
        tasks = [self.sched.every(LONG + i, print, key=str(i)) for i in range(100)]
        listed = self.sched.tasks()
        self.assertEqual([info.task for info in listed], tasks)
        self.assertEqual([info.key for info in listed], [str(i).encode() for i in range(100)])
        self.assertTrue(all(info.state == "waiting" and info.runs == 0 for info in listed))
        tasks[0].reschedule(2 * LONG)
        self.assertGreater(self.sched.tasks()[0].due_ns, listed[0].due_ns + (LONG - 60) * 10**9)

    def test_cancel(self):
        """Scheduler: cancel() with wait returns after the function; in the function it is EDEADLK"""
        began, state, deadlock = threading.Event(), [], []

        def function():
            try:
                task.cancel(wait=True)
            except OSError as error:
                deadlock.append(error.errno)
            began.set()
            time.sleep(0.1)
            state.append("over")

        task = self.sched.every(LONG, function)
        task.reschedule(0)      # not before the function can name the task
        self.assertTrue(began.wait(10))
        self.assertIs(task.cancel(wait=True), True)
        self.assertEqual(state, ["over"])
        self.assertEqual(deadlock, [errno.EDEADLK])
        self.assertEqual(len(self.sched), 0)

    def test_exception(self):
        """Scheduler: an exception is reported, and the task and the pool continue"""
        count = []
        task = self.sched.every(0.01, lambda: (count.append(1), 1 / 0))
        until(lambda: len(count) >= 3 and self.errors)
        self.assertEqual(self.errors[0][0], task)
        self.assertIsInstance(self.errors[0][1], ZeroDivisionError)
        task.cancel(wait=True)
        self.sched.after(0, sys.exit, 3)
        until(lambda: isinstance(self.errors[-1][1], SystemExit))
        with self.assertLogs("twheel", "ERROR") as logs, twheel.Scheduler(1) as other:
            other.after(0, lambda: 1 / 0)
            until(lambda: logs.output)
        self.assertIn("ZeroDivisionError", logs.output[0])

    def test_release(self):
        """Scheduler: functions and arguments are released: over, cancelled, replaced, closed"""
        class Thing:
            def call(self):
                pass

        def begin(how):
            thing = Thing()
            self.sched.after(0 if how == "over" else LONG, thing.call, key="x")
            return weakref.ref(thing)

        gone = begin("over")
        until(lambda: gone() is None)
        gone = begin("cancelled")
        self.assertIsNotNone(gone())
        self.sched.find("x").cancel()
        self.assertIsNone(gone())
        gone = begin("replaced")
        self.sched.after(LONG, print, key="x")
        self.assertIsNone(gone())
        gone = begin("closed")
        self.sched.close()
        self.assertIsNone(gone())
        self.assertEqual(twheel._sched._calls, {})

    def test_close(self):
        """Scheduler: close() waits for functions, and is refused in one"""
        began, state = threading.Event(), []

        def function():
            began.set()
            try:
                self.sched.close()
            except OSError as error:
                state.append(error.errno)
            time.sleep(0.1)
            state.append("over")

        self.sched.after(0, function)
        self.assertTrue(began.wait(10))
        self.sched.close()
        self.assertEqual(state, [errno.EDEADLK, "over"])
        self.assertRaises(ValueError, self.sched.after, 1, print)
        self.sched.close()

    def test_stop(self):
        """Scheduler: stop() runs one-shot tasks, or nothing"""
        got = []
        self.sched.after(0.05, got.append, 1)
        self.sched.every(LONG, got.append, 2)
        self.assertEqual(self.sched.stop(finish=True, wait=True), 1)
        self.assertEqual(got, [1])
        refused(errno.ESHUTDOWN, self.sched.after, 1, print)

    def test_forgotten(self):
        """Scheduler: a scheduler without references is closed, also by a thread of its pool"""
        before = descriptors()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # Only the task refers to the scheduler, and it ends.
            twheel.Scheduler(threads=1).after(0.02, str)
            until(lambda: descriptors() == before)
        self.assertEqual([w.category for w in caught], [ResourceWarning])

    def test_wait_interrupted(self):
        """Scheduler: Ctrl-C ends each call that waits, and the program"""
        def begin(wait):
            code = ("import signal, threading, time, twheel\n"
                    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                    "s, begun = twheel.Scheduler(2), threading.Event()\n"
                    f"task = s.after(0, lambda: (begun.set(), time.sleep({LONG})), key='task')\n"
                    "begun.wait(20)\n"
                    f"s.after({LONG}, print)\n"
                    "print('begun', flush=True)\n"
                    f"{wait}\n")
            process = subprocess.Popen([*PYTHON, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            return process

        waits = ("s.stop(finish=True, wait=True)", "s.stop(wait=True)", "s.close()", "task.cancel(wait=True)", "s.__exit__(0, 0, 0)",
                 "s.find('task').cancel(wait=True)", "del task, s")      # which waits at the end of the program
        processes = {wait: begin(wait) for wait in waits}
        for process in processes.values():
            self.assertEqual(process.stdout.readline(), "begun\n")
        # One Ctrl-C ends the call and one the wait at the end of the program. On a slow host some come in between.
        for _ in range(100):
            running = [process for process in processes.values() if process.poll() is None]
            if not running:
                break
            time.sleep(0.3)
            for process in running:
                process.send_signal(signal.SIGINT)
        for wait, process in processes.items():
            with self.subTest(wait):
                self.assertIn("KeyboardInterrupt", process.communicate(timeout=60)[1])

    def test_forked(self):
        """Scheduler: calls in a child are ECHILD, and it can close while the parent's threads work"""
        began, over = threading.Event(), threading.Event()
        self.sched.after(0, lambda: (began.set(), over.wait(20)))
        waiter = threading.Thread(target=self.sched.stop, kwargs={"wait": True})
        self.assertTrue(began.wait(10))
        waiter.start()
        until(lambda: self.sched._users)
        child = os.fork()
        if not child:
            status = 1
            signal.alarm(20)
            try:
                self.sched.after(1, print)
            except ChildProcessError:
                self.sched.close()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        over.set()
        waiter.join(10)
        self.assertFalse(waiter.is_alive())

    def test_exit(self):
        """Scheduler: a program that did not close it ends, after its functions"""
        code = ("import threading, time, twheel\n"
                "s, begun = twheel.Scheduler(4), threading.Event()\n"
                "s.after(0, lambda: (print('begun', flush=True), begun.set(), time.sleep(0.2), print('over', flush=True)))\n"
                "for i in range(100): s.every(0.001, lambda: None)\n"
                "begun.wait(20)\n")
        done = subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "begun\nover\n"), done.stderr)


class NoPoolTest(unittest.TestCase):
    def setUp(self):
        self.sched = twheel.Scheduler()
        self.addCleanup(self.sched.close)

    def test_run(self):
        """Scheduler without a pool: run() calls due functions, in order, in its own thread"""
        late = True
        while late:     # if the host stood still until one was due before all were added, that one may be first
            got, start = [], time.monotonic()
            for delay in (0.06, 0.02, 0.04):
                self.sched.after(delay, lambda: got.append((twheel.current_run().due_ns, threading.get_ident())))
            late = time.monotonic() - start >= 0.02
            time.sleep(0.08)
            self.assertEqual(self.sched.run(), 3)
        # How long the calls took decides which task is due first.
        self.assertEqual(got, [(due, threading.get_ident()) for due, _ in sorted(got)])
        self.assertEqual(self.sched.run(timeout=0.05), 0)
        self.sched.after(0.02, got.append, 1)
        self.assertEqual(self.sched.run(timeout=None), 1)
        refused(errno.EINVAL, twheel.Scheduler.fileno, self.enterContext(twheel.Scheduler(1)))

    def test_interrupt(self):
        """Scheduler without a pool: run() raises KeyboardInterrupt"""
        def interrupt():
            raise KeyboardInterrupt

        got = []
        self.sched.after(0, interrupt)
        self.sched.after(0, got.append, 1)
        time.sleep(0.02)
        self.assertRaises(KeyboardInterrupt, self.sched.run)
        self.assertEqual(got, [1])

    def test_stopped(self):
        """Scheduler without a pool: close() ends a run() that waits"""
        seen = []

        def waiter():
            try:
                self.sched.run(timeout=None)
            except OSError as error:
                seen.append(error.errno)

        thread = threading.Thread(target=waiter)
        thread.start()
        until(lambda: self.sched._users)
        self.sched.close()
        thread.join(10)
        self.assertEqual(seen, [errno.ESHUTDOWN])

    def test_loop(self):
        """Scheduler in a loop of asyncio: functions and coroutines, and their exceptions"""
        async def slowly():
            running.append(1)
            await asyncio.sleep(0.1)
            running.pop()
            got.append(2)

        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
            self.sched.attach()
            with self.assertRaises(RuntimeError):
                self.sched.attach()
            self.sched.after(0.01, got.append, 1)
            self.sched.every(0.02, slowly)
            self.sched.after(0, lambda: 1 / 0)
            async with asyncio.timeout(20):
                while got.count(2) < 2 or 1 not in got or not told:
                    assert len(running) <= 1
                    await asyncio.sleep(0.005)
            self.sched.close()

        got, told, running = [], [], []
        asyncio.run(main())
        self.assertIsInstance(told[0], ZeroDivisionError)


class PackageTest(unittest.TestCase):
    def test_exports(self):
        """The package: all exported names exist, and have docstrings"""
        for name in twheel.__all__:
            thing = getattr(twheel, name)
            if isinstance(thing, type) or hasattr(thing, "__code__"):
                self.assertTrue(thing.__doc__, name)
        for kind in (twheel.Wheel, twheel.Timers, twheel.Timer, twheel.Scheduler, twheel.Task):
            for name, thing in vars(kind).items():
                if not name.startswith("_") and (callable(thing) or isinstance(thing, property)):
                    self.assertTrue(thing.__doc__, (kind, name))

    def test_layout(self):
        """The package: structures have the library's sizes"""
        with twheel.Wheel() as wheel:
            info = wheel.info()
        self.assertEqual((info.op_size, info.event_size), (ctypes.sizeof(twheel.Op), ctypes.sizeof(twheel.Event)))
        self.assertEqual(info.abi, 1)
        self.assertGreater(info.max_timers, 0)


# If the package is not installed, as in a guest, it cannot be run by its name alone.
PYTHON = os.environ.get("PYTHON", sys.executable).split()
