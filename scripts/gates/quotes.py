#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""quotes.py: check that no sentence quotes figures that have been measured again since.

Benchmarks write tables, but people write the sentences that quote them. doc/quotes has a line for each text that
quotes a table: the text, the table, and the hash of the table at the last comparison of the sentences with the table.
If the table has changed, somebody has to compare the sentences again, and then write the new hash.
"""

import hashlib
import sys

QUOTES = "doc/quotes"


def digest(name):
    """Returns the hash of a file, in the form of doc/quotes."""
    with open(name, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def main():
    """Compare the hash in each line with the table. The exit status is 1 if a table has changed."""
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
