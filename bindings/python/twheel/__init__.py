# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Timers by the million on one descriptor: libtwheel for Python.

Timers      timers of an asyncio loop: callbacks, sleep(), timeout(), ticks()
Scheduler   calls functions at their time: in a pool of threads, in run(), or in an asyncio loop
Wheel       what both are built on, for programs that have a loop of their own

They are over /dev/twheel where that can be opened, and else in the process, with the same
results; TWHEEL_BACKEND=kernel or TWHEEL_BACKEND=embedded in the environment chooses. Errors are
OSError, with the errno that libtwheel(3) gives.
"""
from ._lib import (EV_MORE, F_ABS, F_DELAY, F_KEEP, F_PENDING, OP_ADD, OP_CANCEL, OP_MOD, OP_QUERY,
                   Event, Info, Op)
from ._sched import Missed, Run, Scheduler, Task, TaskInfo, TaskState, current_run
from ._timers import Tick, Timeout, Timer, Timers
from ._wheel import Backend, Query, State, Wheel

__version__ = "1.0.0"

__all__ = [
    "EV_MORE", "F_ABS", "F_DELAY", "F_KEEP", "F_PENDING", "OP_ADD", "OP_CANCEL", "OP_MOD", "OP_QUERY",
    "Backend", "Event", "Info", "Missed", "Op", "Query", "Run", "Scheduler", "State", "Task", "TaskInfo",
    "TaskState", "Tick", "Timeout", "Timer", "Timers", "Wheel", "current_run",
]
