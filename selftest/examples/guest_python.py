#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""guest_python.py DIR: what a guest without Python needs to run examples/asyncio_alarms.py.

It fills DIR with this interpreter, the modules that the example has loaded here, packed, the
libraries all of these need, and "asyncio", which runs the example with them. All lie flat
beside each other, and beside the example and libtwheel.so.1.
"""
import os
import shutil
import subprocess
import sys
import zipfile

RUN = """#!/bin/sh
dir=${0%/*}
export PYTHONHOME="$dir" PYTHONPATH="$dir/python.zip:$dir" LIBTWHEEL="$dir/libtwheel.so.1"
exec "$dir/LOADER" --library-path "$dir" "$dir/python3" -S -B "$dir/asyncio_alarms.py"
"""


def libraries(binary):
    """[paths], the loader among them"""
    lines = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    return [word for line in lines.splitlines() for word in line.split() if word.startswith("/")]


def loaded():
    """Files of modules. asyncio does without ssl where there is none, and so without much."""
    code = ("import sys; sys.modules['ssl'] = None; import asyncio, ctypes; "
            "print(*{getattr(m, '__file__', None) or '' for m in sys.modules.values()}, sep='\\n')")
    return subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def pack(path):
    """The modules in Python that are loaded, and their whole packages; returns the others."""
    binaries, roots = set(), set()
    stdlib = os.path.dirname(os.__file__)
    for file in loaded():
        if file.endswith(".so"):
            binaries.add(file)
        elif file.startswith(stdlib):
            roots.add(os.path.relpath(file, stdlib).split(os.sep)[0])
    with zipfile.PyZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for root in roots - {"site-packages"}:
            packed.writepy(os.path.join(stdlib, root))
    return binaries


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    binaries = pack(os.path.join(out, "python.zip")) | {os.path.realpath(sys.executable)}
    files = binaries.union(*(libraries(binary) for binary in binaries))
    for file in files:
        shutil.copy(file, out)
    os.rename(os.path.join(out, os.path.basename(os.path.realpath(sys.executable))),
              os.path.join(out, "python3"))
    loader = [os.path.basename(file) for file in files if "/ld-linux" in file][0]
    with open(os.path.join(out, "asyncio"), "w", encoding="ascii") as run:
        run.write(RUN.replace("LOADER", loader))
    os.chmod(os.path.join(out, "asyncio"), 0o755)


if __name__ == "__main__":
    main(sys.argv[1])
