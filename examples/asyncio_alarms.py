#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""libtwheel in asyncio, by ctypes: nothing to build, nothing to install.

    wheel = Wheel()                     # on the running loop
    timer = wheel.after(30.0, callback, argument)
    wheel.cancel(timer)

As a program it is the alarm clock that alarms.h describes.
"""
import asyncio
import ctypes
import os
import sys
import time
from ctypes import byref, c_int, c_uint32, c_uint64, c_void_p

lib = ctypes.CDLL(os.environ.get("LIBTWHEEL", "libtwheel.so.1"))
lib.twheel_open.argtypes = [ctypes.POINTER(c_void_p), c_uint32, c_void_p]
lib.twheel_close.argtypes = [c_void_p]
lib.twheel_fd.argtypes = [c_void_p]
lib.twheel_add.argtypes = [c_void_p, ctypes.POINTER(c_uint64), c_uint64, c_uint64, c_uint64,
                           c_uint32]
lib.twheel_cancel.argtypes = [c_void_p, c_uint64, c_void_p]
lib.twheel_read.argtypes = [c_void_p, c_void_p, c_uint32, c_int]


class Event(ctypes.Structure):
    """struct twheel_event of <linux/twheel.h>"""
    _fields_ = [("user_data", c_uint64), ("handle", c_uint64), ("expires_ns", c_uint64),
                ("count", c_uint32), ("flags", c_uint32)]


def checked(result):
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


class Wheel:
    """Timers of one wheel, whose descriptor the loop watches."""
    ROOM = 64

    def __init__(self):
        self.wheel = c_void_p()
        self.calls = {}         # by handle
        self.events = (Event * self.ROOM)()
        checked(lib.twheel_open(byref(self.wheel), 0, None))
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(lib.twheel_fd(self.wheel), self.ring)

    def close(self):
        self.loop.remove_reader(lib.twheel_fd(self.wheel))
        lib.twheel_close(self.wheel)

    def after(self, seconds, callback, *args):
        """Call callback(deadline_ns, *args) once; returns what cancel() takes."""
        handle = c_uint64()
        checked(lib.twheel_add(self.wheel, byref(handle), 0, int(seconds * 1e9), 0, 0))
        self.calls[handle.value] = callback, args
        return handle.value

    def cancel(self, handle):
        """True if the call will not be made now."""
        lib.twheel_cancel(self.wheel, handle, None)
        return self.calls.pop(handle, None) is not None

    def ring(self):
        # A callback may cancel the timer of an event that was read with its own.
        for event in self.events[:max(lib.twheel_read(self.wheel, self.events, self.ROOM, 0), 0)]:
            callback, args = self.calls.pop(event.handle, (None, ()))
            if callback:
                callback(event.expires_ns, *args)


async def alarm_clock():
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    wheel = Wheel()
    silent = asyncio.Event()

    def ring(deadline, name):
        print(name, (time.monotonic_ns() - deadline) // 1000, flush=True)
        if not wheel.calls:
            silent.set()

    async for line in lines:
        ms, name = line.decode().split()
        wheel.after(int(ms) / 1000, ring, name)
        silent.clear()
    if wheel.calls:
        await silent.wait()
    wheel.close()


if __name__ == "__main__":
    asyncio.run(alarm_clock())
