# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""What the package uses of libtwheel.so.1: its structures, constants and functions.

Everything that depends on the library's ABI is in this file. The structures are those of
<linux/twheel.h>, <libtwheel.h> and <libtwheel-sched.h>, which explain them.

The library is loaded twice, as two objects of ctypes. Functions of `lib` are called with the
interpreter's lock held, so that no two of them are under way at once; they are those that
neither wait nor call back. Functions of `waiting` are called without that lock.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

KERNEL, EMBEDDED, ONE_THREAD = 0x1, 0x2, 0x4

OP_ADD, OP_MOD, OP_CANCEL, OP_QUERY = 1, 2, 3, 4
F_ABS, F_KEEP, F_DELAY, F_PENDING = 0x1, 0x2, 0x4, 0x8
EV_MORE = 0x1

TASK_AT, TASK_DELAY, MISSED_DELAY, MISSED_SKIP, TASK_OVERLAP = 0x1, 0x2, 0x4, 0x8, 0x10
SCHED_WAIT, SCHED_FINISH = 0x1, 0x2

NS_MAX = 2**63 - 1


class Setup(Structure):
    """struct twheel_setup"""
    _fields_ = [("clockid", c_int32), ("flags", c_uint32), ("tick_ns", c_uint64),
                ("slack_ns", c_uint64), ("max_timers", c_uint32), ("reserved", c_uint32)]


class Info(Structure):
    """struct twheel_info"""
    _fields_ = [("abi", c_uint32), ("clockid", c_int32), ("features", c_uint64),
                ("clocks", c_uint64), ("tick_ns", c_uint64), ("slack_ns", c_uint64),
                ("min_tick_ns", c_uint64), ("max_timers", c_uint32), ("op_size", c_uint32),
                ("event_size", c_uint32), ("nr_timers", c_uint32), ("nr_armed", c_uint32),
                ("nr_ready", c_uint32), ("mem_bytes", c_uint64), ("nr_expired", c_uint64),
                ("nr_wakeups", c_uint64), ("nr_moves", c_uint64), ("nr_deferred", c_uint64)]


class Op(Structure):
    """struct twheel_op: an operation of Wheel.submit(), and its result"""
    _fields_ = [("op", c_uint32), ("flags", c_uint32), ("handle", c_uint64),
                ("user_data", c_uint64), ("expires_ns", c_uint64), ("interval_ns", c_uint64),
                ("res", c_int32), ("reserved", c_uint32), ("tolerance_ns", c_uint64)]


class Event(Structure):
    """struct twheel_event: what has expired"""
    _fields_ = [("user_data", c_uint64), ("handle", c_uint64), ("expires_ns", c_uint64),
                ("count", c_uint32), ("flags", c_uint32)]


class SchedOptions(Structure):
    """struct twheel_sched_options"""
    _fields_ = [("threads", c_uint32), ("flags", c_uint32), ("max_pending", c_uint32),
                ("clockid", c_int32), ("tick_ns", c_uint64), ("reserved", c_uint64 * 3)]


class TaskInfo(Structure):
    """struct twheel_task_info"""
    _fields_ = [("sched", c_void_p), ("id", c_uint64), ("fn", c_void_p), ("release", c_void_p),
                ("arg", c_void_p), ("key", c_void_p), ("key_len", c_size_t), ("due_ns", c_int64),
                ("period_ns", c_int64), ("runs", c_uint64), ("missed", c_uint64),
                ("flags", c_uint32), ("state", c_uint32), ("tolerance_ns", c_int64)]


TaskFn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TaskInfo))
ReleaseFn = ctypes.CFUNCTYPE(None, c_void_p)


class Task(Structure):
    """struct twheel_task"""
    _fields_ = [("fn", TaskFn), ("release", ReleaseFn), ("arg", c_void_p), ("key", c_char_p),
                ("key_len", c_size_t), ("when_ns", c_int64), ("period_ns", c_int64),
                ("flags", c_uint32), ("reserved", c_uint32), ("tolerance_ns", c_int64)]


_path = os.environ.get("LIBTWHEEL", "libtwheel.so.1")
try:
    lib: Any = ctypes.PyDLL(_path)
    waiting: Any = ctypes.CDLL(_path)
except OSError as error:
    raise ImportError(f"libtwheel is needed, of the package libtwheel1: {error}") from error

_free: Any = ctypes.CDLL(None).free
_free.argtypes = [c_void_p]
_free.restype = None


def _declare(where: Any, name: str, *argtypes: Any, restype: Any = c_int) -> None:
    try:
        function = getattr(where, name)
    except AttributeError as error:
        raise ImportError(f"libtwheel is older than this package: {error}") from error
    function.argtypes = argtypes
    function.restype = restype


def _declare_sized(where: Any, name: str, structure: type[Structure], *argtypes: Any) -> None:
    """Like the inline functions of the headers: each call passes the size of its structure."""
    _declare(where, f"{name}_sized", *argtypes, c_size_t)
    function, size = getattr(where, f"{name}_sized"), ctypes.sizeof(structure)
    setattr(where, name, lambda *args: function(*args, size))


_declare_sized(lib, "twheel_open", Setup, POINTER(c_void_p), c_uint32, POINTER(Setup))
_declare(lib, "twheel_close", c_void_p, restype=None)
_declare(lib, "twheel_fd", c_void_p)
_declare(lib, "twheel_backend", c_void_p, restype=c_char_p)
_declare(lib, "twheel_add_within", c_void_p, POINTER(c_uint64), c_uint64, c_uint64, c_uint64, c_uint64, c_uint32)
_declare(lib, "twheel_mod_within", c_void_p, c_uint64, c_uint64, c_uint64, c_uint64, c_uint32)
_declare(lib, "twheel_cancel", c_void_p, c_uint64, POINTER(c_uint64))
_declare_sized(lib, "twheel_submit", Op, c_void_p, POINTER(Op), c_uint32)
_declare_sized(lib, "twheel_query", Op, c_void_p, c_uint64, c_uint32, POINTER(Op))
_declare_sized(lib, "twheel_drain", Op, c_void_p, POINTER(Op), c_uint32, c_uint32)
_declare_sized(lib, "twheel_get_info", Info, c_void_p, POINTER(Info))
for _where in (lib, waiting):
    _declare_sized(_where, "twheel_read", Event, c_void_p, POINTER(Event), c_uint32, c_int)
_declare_sized(waiting, "twheel_sched_open", SchedOptions, POINTER(c_void_p), POINTER(SchedOptions))
_declare(waiting, "twheel_sched_close", c_void_p)
_declare(waiting, "twheel_sched_fd", c_void_p)
_declare(waiting, "twheel_sched_run", c_void_p, c_uint32, c_int)
_declare_sized(waiting, "twheel_sched_add", Task, c_void_p, POINTER(Task), POINTER(c_uint64))
_declare(waiting, "twheel_sched_mod", c_void_p, c_uint64, c_int64)
_declare(waiting, "twheel_sched_cancel", c_void_p, c_uint64, c_uint32)
_declare(waiting, "twheel_sched_find", c_void_p, c_char_p, c_size_t, restype=c_uint64)
_declare(waiting, "twheel_sched_pending", c_void_p, restype=c_uint32)
_declare_sized(waiting, "twheel_sched_list", TaskInfo, c_void_p, POINTER(POINTER(TaskInfo)))
_declare_sized(waiting, "twheel_sched_stop", TaskInfo, c_void_p, c_uint32, POINTER(POINTER(TaskInfo)))
_declare(waiting, "twheel_sched_wheel", c_void_p, restype=c_void_p)


def checked(result: int) -> int:
    """Return the result of a function of the library; if it is an error, raise OSError or a subclass."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def get_info(wheel: c_void_p | int | None) -> Info:
    """twheel_get_info()"""
    info = Info()
    checked(lib.twheel_get_info(wheel, ctypes.byref(info)))
    return info


def key_of(info: TaskInfo) -> bytes | None:
    """The key of a task, or None if it has none."""
    return ctypes.string_at(info.key, info.key_len) if info.key else None


def sched_list(sched: c_void_p) -> list[tuple[TaskInfo, bytes | None]]:
    """twheel_sched_list(): tasks, each with its key"""
    array = POINTER(TaskInfo)()
    nr = checked(waiting.twheel_sched_list(sched, ctypes.byref(array)))
    try:
        return [(TaskInfo.from_buffer_copy(array[i]), key_of(array[i])) for i in range(nr)]
    finally:
        _free(array)


def nanoseconds(seconds: float) -> int:
    """Seconds in ns, rounded up; a negative number becomes 0."""
    if seconds != seconds:
        raise ValueError("a time cannot be NaN")
    if seconds <= 0:
        return 0
    if seconds >= NS_MAX / 1e9:
        return NS_MAX
    whole = int(seconds)
    ns = (seconds - whole) * 1e9
    return min(whole * 10**9 + int(ns) + (ns > int(ns)), NS_MAX)


def period_ns(seconds: float) -> int:
    """A period in ns, which must be more than 0."""
    ns = nanoseconds(seconds)
    if not ns:
        raise ValueError("a period must be more than 0")
    return ns


def tolerance_ns(ns: int, expires_ns: int) -> int:
    """The tolerance of a timer that is due at expires_ns, cut off at the end of time."""
    return min(ns, NS_MAX - expires_ns)


def check_words(flags: int, words: int) -> None:
    """Check that flags fit 32 bits and or-ed words 64: ctypes would take 2**64 for 0."""
    if flags >> 32 or words >> 64:
        raise ValueError("a number is out of range")


def clock_id(clock: int) -> int:
    """Check that the number of a clock fits."""
    if not -2**31 <= clock < 2**31:
        raise ValueError(f"no such clock: {clock}")
    return clock


def backend_flag(backend: str | None) -> int:
    """The flag of twheel_open() for a backend's name."""
    flags = {None: 0, "kernel": KERNEL, "embedded": EMBEDDED}
    if backend not in flags:
        raise ValueError(f"no such backend: {backend!r}")
    return flags[backend]
