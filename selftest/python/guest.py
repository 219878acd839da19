#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""guest.py DIR LIBRARY: make DIR, with which a guest without Python can run the tests of the package
twheel, and examples/asyncio_alarms.py, with LIBRARY.

The program copies this interpreter into DIR; the modules that the tests and the example load here,
packed together with the package; and the libraries that all of these need. DIR has no subfolders. In
DIR, "python" runs the interpreter, and "asyncio" the example; python_twheel.sh runs the tests.
"""
import os
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FILES = [f"{HERE}/tap.py", f"{HERE}/test_twheel.py", f"{TOP}/examples/asyncio_alarms.py"]

PROGRAMS = {
    "python": """dir=$(cd "${0%/*}" && pwd)
export PYTHONHOME="$dir" PYTHONPATH="$dir/python.zip:$dir" LIBTWHEEL="$dir/libtwheel.so.1" PYTHON="$dir/python"
exec "$dir/LOADER" --library-path "$dir" "$dir/python3" -S -B "$@"
""",
    "asyncio": 'exec "${0%/*}/python" "${0%/*}/asyncio_alarms.py"\n',
}


def libraries(binary):
    """Returns the paths of the libraries that a binary needs, with the loader."""
    lines = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    return [word for line in lines.splitlines() for word in line.split() if word.startswith("/")]


def loaded(library):
    """Returns the files of the modules that the tests and the example load. The module ssl is hidden: asyncio can do
    without it, and then does not need much else."""
    code = (f"import sys; sys.modules['ssl'] = None; sys.path[:0] = {[HERE, TOP + '/bindings/python']}; "
            "import asyncio, difflib, test_twheel, traceback, unittest.async_case; "
            "print(*{getattr(m, '__file__', None) or '' for m in sys.modules.values()}, sep='\\n')")
    return subprocess.run([sys.executable, "-I", "-B", "-c", code], check=True, capture_output=True, text=True,
                          env={"LIBTWHEEL": library, "TWHEEL_BACKEND": "embedded"}).stdout.splitlines()


def pack(path, library):
    """Pack the loaded modules that are written in Python, with their whole packages, and the package twheel into a zip
    file. Returns the files of the other modules."""
    binaries, roots = set(), set()
    stdlib = os.path.dirname(os.__file__)
    for file in loaded(library):
        if file.endswith(".so"):
            binaries.add(file)
        elif file.startswith(stdlib):
            roots.add(os.path.relpath(file, stdlib).split(os.sep)[0])
    with zipfile.PyZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for root in roots - {"site-packages"}:
            packed.writepy(os.path.join(stdlib, root))
        packed.writepy(os.path.join(TOP, "bindings/python/twheel"))
    return binaries


def main(out, library):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    binaries = pack(os.path.join(out, "python.zip"), library) | {os.path.realpath(sys.executable)}
    files = binaries.union(*(libraries(binary) for binary in binaries))
    for file in [*files, *FILES]:
        shutil.copy(file, out)
    shutil.copy(library, os.path.join(out, "libtwheel.so.1"))
    os.rename(os.path.join(out, os.path.basename(os.path.realpath(sys.executable))),
              os.path.join(out, "python3"))
    loader = [os.path.basename(file) for file in files if "/ld-linux" in file][0]
    for name, text in PROGRAMS.items():
        with open(os.path.join(out, name), "w", encoding="ascii") as run:
            run.write("#!/bin/sh\n" + text.replace("LOADER", loader))
        os.chmod(os.path.join(out, name), 0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
