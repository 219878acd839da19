# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""The scheduler of libtwheel-sched.h. Functions are called at their time, by the threads of a pool, by
the thread that calls run(), or by an asyncio loop.

The argument of a task in the library is a number, the key of a call in _calls. The call stays there
until the library calls release(): then nothing will use it any more.
"""
from __future__ import annotations

import asyncio
import atexit
import contextlib
import datetime
import errno
import itertools
import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from ctypes import byref, c_uint64, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from . import _lib
from ._lib import checked, nanoseconds, waiting
from ._wheel import Backend

Missed = Literal["burst", "skip", "delay"]
TaskState = Literal["waiting", "queued", "running"]
_STATES: tuple[TaskState, ...] = ("waiting", "queued", "running")
_MISSED = {"burst": 0, "skip": _lib.MISSED_SKIP, "delay": _lib.MISSED_DELAY}
_ASYNC_RUNS = 64
_log = logging.getLogger("twheel")
_here = threading.local()           # .run: the Run of this thread; .scheds: its schedulers


@dataclass(frozen=True)
class Run:
    """A run of a task: a call of its function, see current_run().

    due_ns: when the run was due, by the scheduler's clock; for Scheduler.at(), ns since 1970.
    runs: how many runs the task has had, with this one.
    missed: how many periods were skipped so far.
    """
    task: Task
    key: bytes | None
    due_ns: int
    runs: int
    missed: int


@dataclass(frozen=True)
class TaskInfo:
    """A pending task, as Scheduler.tasks() describes it; see Run. If period_ns is 0, the task runs once."""
    task: Task
    key: bytes | None
    due_ns: int
    period_ns: int
    runs: int
    missed: int
    state: TaskState
    tolerance_ns: int


@dataclass
class _Call:
    sched: Scheduler
    function: Callable[..., object]
    args: tuple[Any, ...]
    at: bool                        # of Scheduler.at()
    id: int = 0                     # of the task, as soon as it is known
    coroutine: asyncio.Future[Any] | None = None


class Task:
    """A function that a scheduler is to call. It has an id, which no other task ever gets."""

    __slots__ = ("_sched", "id")

    def __init__(self, sched: Scheduler, task_id: int) -> None:
        self._sched = sched
        self.id = task_id

    def cancel(self, *, wait: bool = False) -> bool:
        """Cancel the task: it will not run again. With wait, also wait until it is not running.

        Return whether the task was pending: False if it was over or cancelled. If the task's own
        function calls this with wait, it fails with EDEADLK.
        """
        owner = self._sched
        with owner._using() as sched:
            mine = owner._running.get(self.id) == threading.get_ident()
            result = waiting.twheel_sched_cancel(sched, self.id, _lib.SCHED_WAIT if wait and mine else 0)
            if wait and result == 1:
                owner._wait_until(lambda: self.id not in owner._running)
                waiting.twheel_sched_cancel(sched, self.id, _lib.SCHED_WAIT)
        return result != -errno.ENOENT and checked(result) >= 0

    def reschedule(self, delay: float) -> None:
        """Let the task run after delay seconds from now, instead of at its time.

        FileNotFoundError (ENOENT) if the task is over, EALREADY if it runs once and is running now,
        ValueError for a task of Scheduler.at(): see reschedule_at().
        """
        self._sched._check_kind(self.id, at=False)
        with self._sched._using() as sched:
            checked(waiting.twheel_sched_mod(sched, self.id, nanoseconds(delay)))

    def reschedule_at(self, when: float | datetime.datetime) -> None:
        """Let a task of Scheduler.at() run at another time; ValueError for any other task."""
        self._sched._check_kind(self.id, at=True)
        with self._sched._using() as sched:
            checked(waiting.twheel_sched_mod(sched, self.id, _wall_ns(when)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and (self._sched, self.id) == (other._sched, other.id)

    def __hash__(self) -> int:
        return hash((id(self._sched), self.id))

    def __repr__(self) -> str:
        return f"<Task {self.id}>"


class Scheduler:
    """Calls functions at their time.

        with Scheduler(threads=4) as scheduler:
            scheduler.every(10, refresh, key="refresh", missed="skip")
            task = scheduler.after(3, hello, "world")
            ...

    threads: the size of the pool, whose threads call the functions. If it is 0, there is no pool:
        wait until fileno() is readable and call run(), or let an asyncio loop do that by attach().
    on_error: if a function raises an exception, called with the Task and the exception. Without
        on_error, the exception handler of the loop is called, if attach() was called, and else the
        logger "twheel".
    backend, clock, tick: as for Wheel. The clock is for delays.
    max_pending: the most tasks that may be pending; 0 for as many as the wheel may hold.

    If a method has a parameter within, each call may be so many seconds late, so that it is made
    together with others that may be late. The times of the following calls do not depend on that.

    A function is never called early, and a task never runs twice at once. Any thread, and any
    function of a task, may call any method; if a function would wait for itself, the method fails
    with EDEADLK.
    """

    def __init__(self, threads: int = 0, *, backend: Backend | None = None,
                 clock: int = time.CLOCK_MONOTONIC, tick: float | None = None, max_pending: int = 0,
                 on_error: Callable[[Task, BaseException], object] | None = None) -> None:
        self._sched = c_void_p()
        self._on_error = on_error
        self._loop: asyncio.AbstractEventLoop | None = None
        self._raised: BaseException | None = None
        # The members up to _ids are read and written with _changed held, and each change notifies it.
        self._changed = threading.Condition()
        self._users = 0                         # calls of the library that are under way
        self._live = 0                          # tasks that the library has not released
        self._running: dict[int, int] = {}      # running tasks: id, and the thread
        self._ids: dict[int, _Call] = {}        # tasks by id
        self._pool = threads > 0
        if not 0 <= threads < 2**32 or not 0 <= max_pending < 2**32:
            raise ValueError("out of range")
        options = _lib.SchedOptions(threads=threads, flags=_lib.backend_flag(backend),
                                    max_pending=max_pending, clockid=_lib.clock_id(clock),
                                    tick_ns=0 if tick is None else _lib.period_ns(tick))
        checked(waiting.twheel_sched_open(byref(self._sched), byref(options)))
        _open_ones.add(self)

    @contextlib.contextmanager
    def _using(self) -> Iterator[c_void_p]:
        """Return the library's scheduler. It is not closed before the with block ends."""
        with self._changed:
            if not self._sched:
                raise ValueError("operation on a closed scheduler")
            self._users += 1
            sched = self._sched
        try:
            yield sched
        finally:
            with self._changed:
                self._users = max(0, self._users - 1)   # in a child after fork() it was 0
                self._changed.notify_all()

    def _wait_until(self, over: Callable[[], bool]) -> None:
        """Wait until over() is true. Ctrl-C interrupts this wait, but not one in the library."""
        with self._changed:
            while not over():
                self._changed.wait()

    def _is_idle(self) -> bool:
        """Whether no function is running, except those that this thread is in."""
        me = threading.get_ident()
        return all(thread == me for thread in self._running.values())

    def _check_kind(self, task_id: int, *, at: bool) -> None:
        call = self._ids.get(task_id)
        if call is not None and call.at != at:
            raise ValueError("a task of at() has a time, and any other a delay")

    # ---- tasks ------------------------------------------------------------------------

    def after(self, delay: float, function: Callable[..., object], *args: Any,
              key: str | bytes | None = None, within: float = 0) -> Task:
        """Call function(*args) once, after delay seconds.

        key: a name. No two pending tasks have the same key: a new task replaces the one that has it.
        """
        return self._add(nanoseconds(delay), 0, 0, within, key, function, args)

    def at(self, when: float | datetime.datetime, function: Callable[..., object], *args: Any,
           period: float | None = None, key: str | bytes | None = None,
           missed: Missed = "burst", within: float = 0) -> Task:
        """Call function(*args) at a time of the wall clock: a datetime, or seconds since 1970.

        With period, call it again after each period. If the wall clock is set, the task is due when
        that clock shows the time.
        """
        period_ns = 0 if period is None else _lib.period_ns(period)
        return self._add(_wall_ns(when), period_ns, _lib.TASK_AT | _missed_flag(missed), within, key, function, args)

    def every(self, period: float, function: Callable[..., object], *args: Any,
              delay: float | None = None, key: str | bytes | None = None,
              missed: Missed = "burst", fixed_delay: bool = False, within: float = 0) -> Task:
        """Call function(*args) periodically, for the first time after delay, or after one period.

        missed: what to do if periods pass before the function can be called. "burst" makes a call
            for each of them, one after the other; "skip" skips them and keeps the phase; "delay"
            lets the next period begin at the late call.
        fixed_delay: a period begins when the function returns.
        """
        if fixed_delay and missed != "burst":
            raise ValueError("with a fixed delay nothing is missed")
        flags = _missed_flag(missed) | (_lib.TASK_DELAY if fixed_delay else 0)
        period_ns = _lib.period_ns(period)
        when_ns = period_ns if delay is None else nanoseconds(delay)
        return self._add(when_ns, period_ns, flags, within, key, function, args)

    def _add(self, when_ns: int, period_ns: int, flags: int, within: float, key: str | bytes | None,
             function: Callable[..., object], args: tuple[Any, ...]) -> Task:
        if not callable(function):
            raise TypeError(f"not callable: {function!r}")
        name = key.encode() if isinstance(key, str) else key
        number, task_id = next(_numbers), c_uint64()
        task = _lib.Task(fn=_run, release=_release, arg=number, key=name, when_ns=when_ns,
                         key_len=len(name) if name else 0, period_ns=period_ns, flags=flags,
                         tolerance_ns=nanoseconds(within))
        call = _Call(self, function, args, bool(flags & _lib.TASK_AT))
        with self._changed:
            _calls[number] = call
            self._live += 1
        try:
            with self._using() as sched:
                checked(waiting.twheel_sched_add(sched, byref(task), byref(task_id)))
        except BaseException:
            _release_task(number)
            raise
        with self._changed:
            if number in _calls:                # it may be over by now
                call.id = task_id.value
                self._ids[call.id] = call
        return Task(self, task_id.value)

    def find(self, key: str | bytes) -> Task | None:
        """Return the pending task with this key, or None."""
        name = key.encode() if isinstance(key, str) else key
        with self._using() as sched:
            task_id = waiting.twheel_sched_find(sched, name, len(name))
        return Task(self, task_id) if task_id else None

    def tasks(self) -> list[TaskInfo]:
        """Return all pending tasks, in the order in which they were added."""
        with self._using() as sched:
            listed = _lib.sched_list(sched)
        return [TaskInfo(Task(self, info.id), key, info.due_ns, info.period_ns, info.runs,
                         info.missed, _STATES[info.state], info.tolerance_ns) for info, key in listed]

    def __len__(self) -> int:
        """How many tasks will still run. A task that runs once does not count while it is running."""
        with self._using() as sched:
            return int(waiting.twheel_sched_pending(sched))

    def __bool__(self) -> bool:
        return True

    # ---- without a pool -----------------------------------------------------------------

    def fileno(self) -> int:
        """The descriptor that is readable when run() has something to do; EINVAL with a pool."""
        with self._using() as sched:
            return checked(waiting.twheel_sched_fd(sched))

    def run(self, most: int = 0, timeout: float | None = 0) -> int:
        """Call the functions that are due, and return how many were called.

        most: at most so many calls; 0 for all that are due.
        timeout: how long to wait for the first one; None for ever.

        EINVAL if there is a pool, ESHUTDOWN if the scheduler was stopped. If a function raises
        KeyboardInterrupt or SystemExit, run() raises it.
        """
        end = None if timeout is None else time.monotonic_ns() + nanoseconds(timeout)
        while True:
            left = -1
            if end is not None:
                left = min(max(0, -((time.monotonic_ns() - end) // 10**6)), 2**31 - 1)
            with self._using() as sched, _inside(self):
                result = waiting.twheel_sched_run(sched, most, left)
            raised, self._raised = self._raised, None
            if raised is not None:
                raise raised
            if result != -errno.EINTR and (result or end is not None and time.monotonic_ns() >= end):
                return checked(result)

    def attach(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Let an asyncio loop, by default the running one, call the functions that are due.

        Then functions may be coroutines. If a coroutine is still running when its task is due again,
        that run is skipped. Only a scheduler without a pool can be attached.
        """
        loop = asyncio.get_running_loop() if loop is None else loop
        if self._loop is not None:
            raise RuntimeError("the scheduler is attached")
        loop.add_reader(self.fileno(), self._ready)
        self._loop = loop

    def detach(self) -> None:
        """Undo attach(). Coroutines that are running continue."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self.fileno())

    def _ready(self) -> None:
        try:
            self.run(_ASYNC_RUNS)
        except OSError as error:
            if error.errno != errno.ESHUTDOWN:
                raise
            self.detach()

    # ---- the end ------------------------------------------------------------------------

    def stop(self, *, finish: bool = False, wait: bool = False) -> int:
        """Call no function any more, and return how many waiting tasks were cancelled.

        finish: tasks that run once still run, at their times.
        wait: wait until nothing runs any more. A KeyboardInterrupt ends only this wait.
        """
        flags = _lib.SCHED_FINISH if finish else 0
        with self._using() as sched:
            if wait and (self in getattr(_here, "scheds", ()) or (finish and not self._pool)):
                return checked(waiting.twheel_sched_stop(sched, flags | _lib.SCHED_WAIT, None))     # EDEADLK
            result = checked(waiting.twheel_sched_stop(sched, flags, None))
            if wait:
                self._wait_until(lambda: not self._live if finish else self._is_idle())
                checked(waiting.twheel_sched_stop(sched, flags | _lib.SCHED_WAIT, None))
            return result

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return not self._sched

    def close(self) -> None:
        """Stop, wait for functions that are running, and free everything. A second call does nothing.

        If a function of the scheduler calls this, it fails with EDEADLK. If a KeyboardInterrupt ends
        the wait, the scheduler is not closed.
        """
        if self.closed:
            return
        if self in getattr(_here, "scheds", ()):
            raise OSError(errno.EDEADLK, "a scheduler cannot be closed by a function of its own")
        self.detach()
        with contextlib.suppress(ChildProcessError, ValueError):    # after fork(); closed meanwhile
            self.stop(wait=True)
        with self._changed:
            sched, self._sched = self._sched, c_void_p()
            while self._users:
                self._changed.wait()
        _open_ones.discard(self)
        if sched:
            checked(waiting.twheel_sched_close(sched))

    def __del__(self) -> None:
        if getattr(self, "_sched", None):
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            # This may be a thread of the pool, which cannot wait for itself.
            threading.Thread(target=waiting.twheel_sched_close, args=(self._sched,)).start()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    # ---- runs ---------------------------------------------------------------------------

    def _call(self, call: _Call, run: Run) -> None:
        if call.coroutine is not None and not call.coroutine.done():
            return
        try:
            result = call.function(*call.args)
            if asyncio.iscoroutine(result):
                call.coroutine = self._spawn(run, result)
        except (SystemExit, KeyboardInterrupt) as error:
            if getattr(_here, "waits", False):
                self._raised = error
            else:
                self._failed(run.task, error)
        except BaseException as error:
            self._failed(run.task, error)

    def _spawn(self, run: Run, coroutine: Any) -> asyncio.Future[Any]:
        if self._loop is None:
            coroutine.close()
            raise TypeError("coroutines need a loop, see Scheduler.attach()")
        task = self._loop.create_task(coroutine)
        task.add_done_callback(lambda done: self._done(run, done))
        return task

    def _done(self, run: Run, done: asyncio.Task[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._failed(run.task, error)

    def _failed(self, task: Task, error: BaseException) -> None:
        try:
            if self._on_error is not None:
                self._on_error(task, error)
            elif self._loop is not None:
                self._loop.call_exception_handler({"message": f"Exception in {task!r}", "exception": error})
            else:
                _log.error("Exception in %r", task, exc_info=error)
        except Exception:
            _log.exception("Exception in on_error of %r", task)


@contextlib.contextmanager
def _inside(sched: Scheduler) -> Iterator[None]:
    """Note, until the with block ends, that this thread calls functions of the scheduler in run()."""
    scheds, waits = getattr(_here, "scheds", ()), getattr(_here, "waits", False)
    _here.scheds, _here.waits = scheds + (sched,), True
    try:
        yield
    finally:
        _here.scheds, _here.waits = scheds, waits


def current_run() -> Run | None:
    """Return the present run, in a function that a scheduler has called; elsewhere None."""
    return getattr(_here, "run", None)


_numbers = itertools.count(1)
_calls: dict[int, _Call] = {}
_open_ones: weakref.WeakSet[Scheduler] = weakref.WeakSet()


def _run_task(number: int, info: Any) -> None:
    task, call = info.contents, _calls[number]
    run = Run(Task(call.sched, task.id), _lib.key_of(task), task.due_ns, task.runs, task.missed)
    outer, scheds = current_run(), getattr(_here, "scheds", ())
    _here.run, _here.scheds = run, scheds + (call.sched,)
    with call.sched._changed:
        call.sched._running[task.id] = threading.get_ident()
    try:
        call.sched._call(call, run)
    finally:
        _here.run, _here.scheds = outer, scheds
        with call.sched._changed:
            call.sched._running.pop(task.id, None)
            call.sched._changed.notify_all()


def _release_task(number: int) -> None:
    call = _calls.pop(number, None)
    if call is None:
        return
    with call.sched._changed:
        call.sched._live -= 1
        call.sched._ids.pop(call.id, None)
        call.sched._changed.notify_all()


# The library's threads call these as long as there is a scheduler.
_run = _lib.TaskFn(_run_task)
_release = _lib.ReleaseFn(_release_task)


def _missed_flag(missed: Missed) -> int:
    if missed not in _MISSED:
        raise ValueError(f"no such policy: {missed!r}")
    return _MISSED[missed]


def _wall_ns(when: float | datetime.datetime) -> int:
    """Return the time in ns since 1970. A datetime is exact to the microsecond, and a float nearly."""
    return nanoseconds(when.timestamp() if isinstance(when, datetime.datetime) else when)


def _forked() -> None:
    """In a child after fork(), forget the parent's threads: they do not exist here."""
    for sched in list(_open_ones):
        sched._changed = threading.Condition()
        sched._users = 0
        sched._running.clear()


os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    """At exit: threads of a pool must not call functions of an interpreter that is ending."""
    for sched in list(_open_ones):
        with contextlib.suppress(OSError):
            sched.close()
