#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""libtwheel in asyncio, by the package twheel of bindings/python.

It is the alarm clock that alarms.h describes.
"""
import asyncio
import sys
import time

import twheel


async def alarm_clock() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    silent = asyncio.Event()

    async with twheel.Timers() as timers:
        def ring(name: str) -> None:
            timer = alarms.pop(name)
            print(name, (time.monotonic_ns() - timer.due_ns) // 1000, flush=True)
            if not alarms:
                silent.set()

        alarms: dict[str, twheel.Timer] = {}
        async for line in lines:
            ms, name = line.decode().split()
            alarms[name] = timers.call_later(int(ms) / 1000, ring, name)
            silent.clear()
        if alarms:
            await silent.wait()


if __name__ == "__main__":
    asyncio.run(alarm_clock())
