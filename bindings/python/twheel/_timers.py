# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Timers for asyncio: any number of them on one descriptor that the loop watches."""
from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeVar

from . import _lib
from ._lib import nanoseconds
from ._wheel import Backend, Wheel

_T = TypeVar("_T")
_BATCH = 256


@dataclass(frozen=True)
class Tick:
    """An item of Timers.ticks(): count periods have passed, and the first of them ended at due_ns."""
    due_ns: int
    count: int


class Timer:
    """A call that Timers.call_later(), call_at() or call_every() will make."""

    __slots__ = ("_timers", "_handle", "_callback", "_args", "_context", "_interval_ns", "_tolerance_ns",
                 "_flags", "_runs", "_overruns", "_due_ns", "_cancelled")

    def __init__(self, timers: Timers, callback: Callable[..., object], args: tuple[Any, ...],
                 context: contextvars.Context | None, within: float) -> None:
        self._timers = timers
        self._handle = 0
        self._callback = callback
        self._args = args
        self._context = contextvars.copy_context() if context is None else context
        self._interval_ns = self._flags = 0
        self._tolerance_ns = nanoseconds(within)
        self._runs = self._overruns = self._due_ns = 0
        self._cancelled = False

    @property
    def active(self) -> bool:
        """Whether a call will still be made."""
        return self._handle != 0

    @property
    def runs(self) -> int:
        """How many calls were made."""
        return self._runs

    @property
    def overruns(self) -> int:
        """How many periods have passed without a call of their own, since the timer was first armed."""
        return self._overruns

    @property
    def due_ns(self) -> int:
        """When the last call was due, in ns of the monotonic clock; 0 if no call was made."""
        return self._due_ns

    def cancelled(self) -> bool:
        """Whether cancel() was called, and rearm() was not called after it."""
        return self._cancelled

    def cancel(self) -> bool:
        """Cancel the timer: no call will be made. Return whether one would have been made."""
        self._cancelled = True
        return self._timers._cancel(self)

    def rearm(self, delay: float, *, interval: float | None = None) -> bool:
        """Let the next call be made after delay, whether the timer is waiting, over or cancelled.

        With interval, the timer is periodic from then on; without it, a period stays as it is. The
        tolerance stays. Return whether the timer was active.
        """
        if interval is not None:
            self._interval_ns = _lib.period_ns(interval)
        return self._timers._arm(self, nanoseconds(delay), 0)

    def when(self) -> float | None:
        """Return when the next call is due, by the loop's clock; None if no call will be made."""
        if not self._handle:
            return None
        return self._timers._wheel.query(self._handle).expires_ns / 1e9

    def __repr__(self) -> str:
        state = "active" if self.active else "cancelled" if self._cancelled else "over"
        return f"<Timer {state} {self._callback!r}>"


class Timeout:
    """An asynchronous context manager, like asyncio.Timeout; see Timers.timeout()."""

    def __init__(self, timers: Timers, delay: float | None, within: float) -> None:
        self._timers = timers
        self._delay = delay
        self._within = within
        self._timer: Timer | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._expired = False

    def expired(self) -> bool:
        """Whether the time was over before the block ended."""
        return self._expired

    def reschedule(self, delay: float | None) -> None:
        """Let the time end after delay from now; with None, never."""
        if self._task is None or self._expired:
            raise RuntimeError("the timeout is not active")
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if delay is not None:
            self._timer = self._timers.call_later(delay, self._expire, within=self._within)

    def _expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> Timeout:
        if self._task is not None:
            raise RuntimeError("the timeout has been entered")
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a timeout is for a task")
        self._cancelling = self._task.cancelling()
        self.reschedule(self._delay)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
        # If others have cancelled the task as well, the cancellation continues.
        if self._expired and task is not None and task.uncancel() <= self._cancelling \
                and kind is asyncio.CancelledError:
            raise TimeoutError from value


class Timers:
    """Timers of one wheel, in an asyncio loop: one descriptor, however many timers there are.

    It is used as the loop itself is: from the thread of the loop. Times are those of the loop,
    in seconds; a call is never made early, and late by at most a tick and what the loop takes.

        async with Timers() as timers:
            timer = timers.call_later(30, drop, session)
            ...
            timer.rearm(30)
            async with timers.timeout(5):
                await something()

    If a callback raises, the loop's exception handler gets the exception, and the other callbacks are
    still called.

    If a method has a parameter within, the timer may be so many seconds late, each time, and the loop
    wakes up once for many such timers. For idle timeouts, retries and polling that mostly does not
    matter.

    backend, tick, max_timers: as for Wheel.
    loop: by default, the running one.
    """

    def __init__(self, backend: Backend | None = None, *, tick: float | None = None,
                 max_timers: int = 0, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._wheel = Wheel(backend, tick=tick, max_timers=max_timers, _flags=_lib.ONE_THREAD)
        self._timers: dict[int, Timer] = {}         # by handle
        self._batch: dict[int, _lib.Event] = {}     # events read whose calls are not made yet
        self._waiters: set[asyncio.Future[Any]] = set()
        try:
            self._loop.add_reader(self._wheel.fileno(), self._ready)
        except BaseException:
            self._wheel.close()
            raise

    # ---- calls ----------------------------------------------------------------------

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, within: float = 0,
                   context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) once, after delay seconds."""
        timer = Timer(self, callback, args, context, within)
        self._arm(timer, nanoseconds(delay), 0)
        return timer

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, within: float = 0,
                context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) once, at a time of the loop's clock."""
        timer = Timer(self, callback, args, context, within)
        self._arm(timer, nanoseconds(when), _lib.F_ABS)
        return timer

    def call_every(self, period: float, callback: Callable[..., object], *args: Any,
                   delay: float | None = None, fixed_delay: bool = False, within: float = 0,
                   context: contextvars.Context | None = None) -> Timer:
        """Call callback(*args) periodically, for the first time after delay, or after one period.

        If several periods pass while the loop is busy, one call is made for all of them, and the
        phase is kept; Timer.overruns counts the others. With fixed_delay, the next period begins
        when the call is made.
        """
        timer = Timer(self, callback, args, context, within)
        timer._interval_ns = _lib.period_ns(period)
        timer._flags = _lib.F_DELAY if fixed_delay else 0
        self._arm(timer, timer._interval_ns if delay is None else nanoseconds(delay), 0)
        return timer

    # ---- for coroutines -----------------------------------------------------------------

    async def sleep(self, delay: float, result: _T = None, *, within: float = 0) -> _T:  # type: ignore[assignment]
        """Like asyncio.sleep(). If these timers are closed meanwhile, the sleep is cancelled."""
        future: asyncio.Future[_T] = self._loop.create_future()
        timer = self.call_later(delay, _wake, future, result, within=within)
        self._waiters.add(future)
        try:
            return await future
        finally:
            self._waiters.discard(future)
            timer.cancel()

    def timeout(self, delay: float | None, *, within: float = 0) -> Timeout:
        """Like asyncio.timeout(): if the block takes longer than delay, it raises TimeoutError."""
        return Timeout(self, delay, within)

    async def ticks(self, period: float, *, delay: float | None = None,
                    fixed_delay: bool = False, within: float = 0) -> AsyncIterator[Tick]:
        """`async for tick in timers.ticks(0.1)`: yield a Tick each time that a period is over.

        If periods pass while the body of the loop runs, one Tick counts all of them. The loop ends
        when these timers are closed.
        """
        due: list[Tick] = []
        future: asyncio.Future[None] = self._loop.create_future()

        def tick() -> None:
            count = timer.runs + timer.overruns - seen
            due[:] = [Tick(due[0].due_ns if due else timer.due_ns, count)]
            _wake(future, None)

        seen = 0
        timer = self.call_every(period, tick, delay=delay, fixed_delay=fixed_delay, within=within)
        try:
            while True:
                if not due:
                    self._waiters.add(future)
                    try:
                        await future
                    except asyncio.CancelledError:
                        if not self.closed:
                            raise
                        return
                    finally:
                        self._waiters.discard(future)
                next_tick = due.pop()
                seen += next_tick.count
                future = self._loop.create_future()
                yield next_tick
                if self.closed:
                    return
        finally:
            timer.cancel()

    # ---- the end ------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._wheel.closed

    @property
    def backend(self) -> Literal["kernel", "embedded"]:
        """The backend that is used: "kernel" or "embedded"."""
        return self._wheel.backend

    def __len__(self) -> int:
        """How many timers are active."""
        return len(self._timers)

    def close(self) -> None:
        """Make no call any more. Tasks that wait in sleep() are cancelled, and ticks() end."""
        if self.closed:
            return
        self._loop.remove_reader(self._wheel.fileno())
        for timer in self._timers.values():
            timer._handle = 0
        self._timers.clear()
        self._batch.clear()
        self._wheel.close()
        for future in self._waiters:
            future.cancel()

    async def aclose(self) -> None:
        """close(), and then let the tasks run that have waited."""
        self.close()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Timers:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.aclose()

    def __enter__(self) -> Timers:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    # ---- what timers do -------------------------------------------------------------------

    def _arm(self, timer: Timer, expires_ns: int, flags: int) -> bool:
        """Arm the timer, and drop an event of it that was read but whose call was not made yet."""
        flags |= timer._flags
        was = timer.active
        event = self._batch.pop(timer._handle, None)
        if event is not None and not event.flags & _lib.EV_MORE:
            del self._timers[timer._handle]
            timer._handle = 0
        tolerance_ns = _lib.tolerance_ns(timer._tolerance_ns, expires_ns)
        if timer._handle:
            self._wheel.mod_ns(timer._handle, expires_ns, timer._interval_ns, flags, tolerance_ns)
        else:
            timer._handle = self._wheel.add_ns(expires_ns, 0, timer._interval_ns, flags, tolerance_ns)
            self._timers[timer._handle] = timer
        timer._cancelled = False
        return was

    def _cancel(self, timer: Timer) -> bool:
        handle, timer._handle = timer._handle, 0
        if not handle:
            return False
        del self._timers[handle]
        event = self._batch.pop(handle, None)
        if event is None or event.flags & _lib.EV_MORE:
            self._wheel.cancel(handle)
        return True

    def _ready(self) -> None:
        """Make the calls of a batch of events. A callback may cancel and re-arm timers of the batch."""
        if not self._batch:
            self._batch = {event.handle: event for event in self._wheel.read(_BATCH)}
        while self._batch:
            handle = next(iter(self._batch))
            event = self._batch.pop(handle)
            timer = self._timers[handle]
            if not event.flags & _lib.EV_MORE:
                del self._timers[handle]
                timer._handle = 0
            self._call(timer, event)

    def _call(self, timer: Timer, event: _lib.Event) -> None:
        timer._runs += 1
        timer._overruns += event.count - 1
        timer._due_ns = event.expires_ns
        try:
            timer._context.run(timer._callback, *timer._args)
        except (SystemExit, KeyboardInterrupt):
            # The exception ends the loop. If it is run again, it makes the other calls.
            if self._batch:
                self._loop.call_soon(self._ready)
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {"message": f"Exception in callback of {timer!r}", "exception": error})


def _wake(future: asyncio.Future[_T], result: _T) -> None:
    if not future.done():
        future.set_result(result)
