#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""quotes.py: check that no sentence quotes figures that have been measured again since.

Benchmarks write tables, but people write the sentences that quote them. doc/quotes has a line for each text that
quotes a table: the text, the table, and a hash of the table with which the sentences were compared last. If the table
has changed, somebody has to compare them again, and then writes the new hash.
"""

import hashlib
import sys

QUOTES = "doc/quotes"


def digest(name):
    """The hash of a file, as in doc/quotes."""
    with open(name, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def main():
    """Compare each line. The exit status is 1 if a table has changed."""
    bad = False
    with open(QUOTES, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            text, table, compared = line.rstrip("\n").split("\t")
            open(text, encoding="utf-8").close()
            now = digest(table)
            if now != compared:
                bad = True
                print(f"{text} quotes {table}, which has changed: compare the sentences, then write {now} for "
                      f"{compared} in {QUOTES}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
