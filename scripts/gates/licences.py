#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""licences.py FILE...: does debian/copyright name the same licence for each file as the file itself? If
a file names none, does .reuse/dep5 name the same? The program prints each file for which that is not so,
and then exits with 1. `reuse lint` checks that each file has a licence.
"""
import re
import sys

from debian.copyright import Copyright

# Debian's names of licences, which are older than SPDX, and the names of SPDX.
SPDX = {
    "GPL-2": "GPL-2.0-only",
    "GPL-2 with Linux-syscall-note exception": "GPL-2.0-only WITH Linux-syscall-note",
    "GPL-2 or Expat": "GPL-2.0-only OR MIT",
    "Expat": "MIT",
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return Copyright(file)


def stated(table, path):
    paragraph = table.find_files_paragraph(path)
    return paragraph.license.synopsis if paragraph else None


def own(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = re.search(r"-License-Identifier: (.*?)(?: \*/)?$", file.read(500), re.M)
    return found.group(1) if found else None


def main():
    debian, reuse, wrong = read("debian/copyright"), read(".reuse/dep5"), 0
    for path in sys.argv[1:]:
        licence, packaged = own(path) or stated(reuse, path), SPDX.get(stated(debian, path))
        if licence != packaged:
            print(f"{path}: {licence}, debian/copyright: {packaged}")
            wrong = 1
    return wrong


sys.exit(main())
