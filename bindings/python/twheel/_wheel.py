# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""The wheel of libtwheel.h, with Python's errors."""
from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
import warnings
from collections.abc import Sequence
from ctypes import byref, c_uint64, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from . import _lib
from ._lib import Event, Info, Op, checked, lib, nanoseconds, waiting

Backend = Literal["kernel", "embedded"]
State = Literal["armed", "ready", "idle"]
_STATES: dict[int, State] = {1: "armed", 2: "ready", 3: "idle"}
_MS_MAX = 2**31 - 1


@dataclass(frozen=True)
class Query:
    """A timer, as Wheel.query() describes it.

    expires_ns is a time of the wheel's clock: the deadline of an armed timer, or else the deadline
    whose event waits to be read or was read last.
    """
    state: State
    user_data: int
    expires_ns: int
    interval_ns: int
    tolerance_ns: int


class Wheel:
    """Timers on one descriptor, named by numbers.

    It is for programs that have a loop of their own; Timers is for asyncio, Scheduler for
    threads. Wait for fileno() to be readable, and read(). Any thread may call any method, but
    close() fails with EBUSY while another one waits in read().

    Delays and periods that a caller gives are in seconds; times that the wheel returns are in ns.
    If the library refuses a call, the method raises OSError with the library's errno: ENOENT
    (FileNotFoundError) for a handle that names no timer any more, EDQUOT if there are too many
    timers, ECHILD (ChildProcessError) in a child after fork().

    backend: "kernel", "embedded", or None for the kernel's if it can be used, and else the other.
    clock: time.CLOCK_MONOTONIC, or time.CLOCK_BOOTTIME, which continues during suspend.
    tick: the resolution in seconds; None for a millisecond.
    max_timers: the most timers that the wheel may hold; 0 for as many as are allowed.
    """

    def __init__(self, backend: Backend | None = None, *, clock: int = time.CLOCK_MONOTONIC,
                 tick: float | None = None, max_timers: int = 0, _flags: int = 0) -> None:
        self._wheel = c_void_p()
        self._readers = 0
        self._lock = threading.Lock()
        if not 0 <= max_timers < 2**32:
            raise ValueError("max_timers out of range")
        setup = _lib.Setup(clockid=_lib.clock_id(clock), max_timers=max_timers,
                           tick_ns=0 if tick is None else _lib.period_ns(tick))
        flags = _lib.backend_flag(backend) | _flags
        checked(lib.twheel_open(byref(self._wheel), flags, byref(setup)))

    def _open(self) -> c_void_p:
        if not self._wheel:
            raise ValueError("operation on a closed wheel")
        return self._wheel

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return not self._wheel

    @property
    def backend(self) -> Backend:
        """The backend that is used: "kernel" or "embedded"."""
        return "kernel" if lib.twheel_backend(self._open()) == b"kernel" else "embedded"

    def fileno(self) -> int:
        """The descriptor, which is readable while there are events. Poll it, but do not read from it."""
        return int(lib.twheel_fd(self._open()))

    def close(self) -> None:
        """Free all timers and the descriptor. A second call does nothing."""
        with self._lock:
            if self._readers:
                raise OSError(errno.EBUSY, "a thread waits in read()")
            wheel, self._wheel = self._wheel, c_void_p()
            if wheel:
                lib.twheel_close(wheel)

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_wheel", None):
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self.close()

    def add(self, delay: float, user_data: int = 0, *, interval: float | None = None,
            within: float = 0, keep: bool = False, fixed_delay: bool = False) -> int:
        """Arm a new timer, and return its handle.

        user_data: a number that comes back with each event of the timer.
        interval: the period of a timer that fires again and again.
        fixed_delay: the next period begins when the event is read.
        keep: the handle stays valid after the event, so that mod() can arm the timer again.
        within: how much later than its time the timer may fire, each time, so that it shares a
            wake-up with other timers that may be late.
        """
        flags = (_lib.F_KEEP if keep else 0) | (_lib.F_DELAY if fixed_delay else 0)
        expires_ns = nanoseconds(delay)
        return self.add_ns(expires_ns, user_data, _interval_ns(interval), flags,
                           _lib.tolerance_ns(nanoseconds(within), expires_ns))

    def add_ns(self, expires_ns: int, user_data: int = 0, interval_ns: int = 0, flags: int = 0,
               tolerance_ns: int = 0) -> int:
        """add(), with times in ns and the library's flags: F_ABS, F_KEEP, F_DELAY."""
        _lib.check_words(flags, expires_ns | user_data | interval_ns | tolerance_ns)
        handle = c_uint64()
        checked(lib.twheel_add_within(self._open(), byref(handle), user_data, expires_ns, interval_ns,
                                      tolerance_ns, flags))
        return handle.value

    def mod(self, handle: int, delay: float, *, interval: float | None = None, within: float = 0,
            keep: bool = False, fixed_delay: bool = False, pending: bool = False) -> bool:
        """Re-arm a timer, and return whether it was armed. With pending, re-arm it only if it is armed.

        No argument of add() stays in force, except user_data: without interval the timer fires once,
        and without within it has no tolerance.
        """
        flags = (_lib.F_KEEP if keep else 0) | (_lib.F_DELAY if fixed_delay else 0) | \
            (_lib.F_PENDING if pending else 0)
        expires_ns = nanoseconds(delay)
        return self.mod_ns(handle, expires_ns, _interval_ns(interval), flags,
                           _lib.tolerance_ns(nanoseconds(within), expires_ns))

    def mod_ns(self, handle: int, expires_ns: int, interval_ns: int = 0, flags: int = 0,
               tolerance_ns: int = 0) -> bool:
        """mod(), with times in ns and the library's flags."""
        _lib.check_words(flags, handle | expires_ns | interval_ns | tolerance_ns)
        return bool(checked(lib.twheel_mod_within(self._open(), handle, expires_ns, interval_ns,
                                                  tolerance_ns, flags)))

    def cancel(self, handle: int) -> bool:
        """Free a timer, and return whether it was armed. No event of it is read after that."""
        _lib.check_words(0, handle)
        return bool(checked(lib.twheel_cancel(self._open(), handle, None)))

    def query(self, handle: int) -> Query:
        """Return the state of a timer."""
        _lib.check_words(0, handle)
        op = Op()
        state = checked(lib.twheel_query(self._open(), handle, _lib.F_ABS, byref(op)))
        return Query(_STATES[state], op.user_data, op.expires_ns, op.interval_ns, op.tolerance_ns)

    def submit(self, ops: Sequence[Op]) -> list[Op]:
        """Do many operations in one call, and return them with their results.

        If an operation fails, its res is a negative errno, and the call still succeeds.
        """
        array = (Op * len(ops))(*ops)
        checked(lib.twheel_submit(self._open(), array, len(ops)))
        return list(array)

    def drain(self, most: int = 65536) -> list[Op]:
        """Free armed timers, and return operations that add them again for the time that was left.

        To move the timers to another wheel, set the handles of the operations to 0, since these are
        not valid any more, and submit() them there. The list is empty if no timer is armed.
        """
        array = (Op * min(most, 65536))()
        return array[:checked(lib.twheel_drain(self._open(), array, len(array), 0))]

    def info(self) -> Info:
        """Return what the wheel is and what it holds: struct twheel_info."""
        return _lib.get_info(self._open())

    def read(self, most: int = 256, timeout: float | None = 0) -> list[Event]:
        """Return the events of expired timers, at most `most` of them.

        timeout: how long to wait for the first event; None for ever. If none comes, the list is
        empty.
        """
        events = (Event * most)()
        if timeout == 0:
            return events[:_nothing(lib.twheel_read(self._open(), events, most, 0))]
        with self._lock:
            wheel = self._open()
            self._readers += 1
        try:
            return events[:_wait(wheel, events, timeout)]
        finally:
            with self._lock:
                self._readers -= 1


def _interval_ns(seconds: float | None) -> int:
    return 0 if seconds is None else _lib.period_ns(seconds)


def _nothing(result: int) -> int:
    return 0 if result == -errno.EAGAIN else checked(result)


def _wait(wheel: c_void_p, events: ctypes.Array[Event], timeout: float | None) -> int:
    """Repeat a call that a signal interrupted, unless the handler has raised an exception."""
    end = None if timeout is None else time.monotonic_ns() + nanoseconds(timeout)
    while True:
        left = -1
        if end is not None:
            left = min(max(0, -((time.monotonic_ns() - end) // 10**6)), _MS_MAX)
        result = int(waiting.twheel_read(wheel, events, len(events), left))
        over = end is not None and time.monotonic_ns() >= end
        if result > 0 or (result == -errno.EAGAIN and over):
            return max(result, 0)
        if result not in (-errno.EINTR, -errno.EAGAIN):
            raise OSError(-result, os.strerror(-result))
