#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
coverage.py EXPECTED JSON...: print gcovr's results as a table, and the lines that were not reached.
EXPECTED lists the lines that need not be reached, and why. The exit status is 0 if exactly these lines
were not reached.

EXPECTED consists of paragraphs. The reason comes first, as comments. Then come lines "FILE: a line of
the source". If a source has the same line several times, it is listed as often as it is not reached.
"? " before a line means that the line may be reached.
"""
import collections
import json
import os
import sys


def unreached(entry):
    """Returns [(number, text)] of the lines of code that no test reached. @entry: a source file in gcovr's results"""
    with open(entry["file"], encoding="utf-8") as source:
        text = source.read().splitlines()
    return [(line["line_number"], text[line["line_number"] - 1].strip())
            for line in entry["lines"] if not line["count"] and not line["gcovr/noncode"]]


def row(name, entry):
    lines = [line for line in entry["lines"] if not line["gcovr/noncode"]]
    branches = [b for line in lines for b in line["branches"]]
    parts = []
    for what, counts in (("lines", [line["count"] for line in lines]),
                         ("branches", [b["count"] for b in branches])):
        hit = sum(map(bool, counts))
        parts.append(f"{hit:5} of {len(counts):5} {what} {100 * hit / len(counts):5.1f} %")
    print(f"{name:20} {'   '.join(parts)}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file
                 if line.strip() and not line.startswith("#")]
    maybe = {line.removeprefix("? ") for line in lines if line.startswith("? ")}
    expected = collections.Counter(line.removeprefix("? ") for line in lines)
    missing = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for entry in json.load(file)["files"]:
                name = os.path.basename(entry["file"])
                row(name, entry)
                missing += [(name, *line) for line in unreached(entry)]
    bad = False
    for name, number, text in missing:
        known = expected[f"{name}: {text}"] > 0
        expected[f"{name}: {text}"] -= 1
        bad |= not known
        print(f"{'explained' if known else 'NOT REACHED'}: {name}:{number}: {text}")
    for line, count in expected.items():
        if count > 0 and line not in maybe:
            print(f"REACHED, and not expected to be: {line}")
            bad = True
    return bad


sys.exit(main())
