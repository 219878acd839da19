#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
promises.py: does selftest/kmod/promises name a test for each sentence of twheel.h?

The sentences are those of all comments of twheel.h, and those of the kernel-doc of each function that
is exported to modules. A comment is split into paragraphs: at an empty line, before a line of
kernel-doc that begins with "@name:", "Context:" or "Return:", and after the line that names the subject
of the kernel-doc. A paragraph is split into sentences at each full stop, question mark or exclamation
mark that a space follows. Line breaks do not count.

Each sentence must be in the list, and each sentence in the list must be in the comments, word for word.
So if you change a sentence, you must change the list, and look at the test of the sentence. Each function
that the list names must be defined in the file that the list names. The head of the list describes its
format.

The program prints what is wrong. The exit status is 1 if anything is.
"""
import glob
import os
import re
import sys

TOP = os.path.abspath(os.path.dirname(__file__) + "/../..")
LIST = "selftest/kmod/promises"
HEADER = "twheel.h"
ANYWHERE = "anywhere"

bad = []


def read(path):
    with open(TOP + "/" + path, encoding="utf-8") as file:
        return file.read()


def sentences(comment):
    """Yields the sentences of @comment, which is without its delimiters."""
    comment = re.sub(r"^[ \t]*\*[ \t]?", "", comment, flags=re.M)
    comment = re.sub(r"^(@[\w.]+:|Context:|Return:)", r"\n\1", comment, flags=re.M)
    comment = re.sub(r"\A(\s*[\w ]+(?:\(\))? - .*)$", r"\1\n", comment, count=1, flags=re.M)
    for paragraph in re.split(r"\n\s*\n", comment):
        for sentence in re.split(r"(?<=[.?!])\s+", " ".join(paragraph.split())):
            if sentence:
                yield sentence


def add(blocks, name, comment):
    """Add the sentences of @comment to the block @name, each once."""
    block = blocks.setdefault(name, [])
    block += [s for s in dict.fromkeys(sentences(comment)) if s not in block]


def exported(blocks):
    """Add the sentences of the kernel-doc of all functions that modules can call."""
    for path in ["twheel.c"] + sorted(glob.glob("twheel*.h", root_dir=TOP)):
        text = read(path)
        for name in re.findall(r"^EXPORT_SYMBOL_GPL\((\w+)\);", text, re.M):
            docs = re.findall(r"/\*\*\n( \* %s\(\) - .*?)\*/" % name, text, re.S)
            if not docs:
                bad.append(f"{path}: {name}() has no kernel-doc")
            for doc in docs:
                add(blocks, name + "()", doc)


def promised():
    """Returns {block: sentences} of the comments. A kernel-doc is a block; all plain comments of the header are one."""
    blocks = {}
    for kind, comment in re.findall(r"/\*(\*?)(.*?)\*/", read(HEADER), re.S):
        title = re.match(r"\s*\*\s*([\w ]+(?:\(\))?) - ", comment) if kind else None
        if "SPDX-" not in comment:
            add(blocks, title[1] if title else HEADER, comment)
    exported(blocks)
    return blocks


def listed():
    """Returns the list: {block: {sentence: verdicts}}."""
    blocks, name, words = {}, None, []
    for line in read(LIST).splitlines() + ["== end"]:
        if line.startswith("#"):
            continue
        if line.startswith("\t") and not words:
            bad.append(f"{LIST}: there is no sentence before: {line.strip()}")
        elif line.startswith("\t"):
            blocks[name].setdefault(" ".join(words), []).append(line.strip())
            continue
        if words and " ".join(words) in blocks.get(name, {}):
            words = []
        if words and (not line or line.startswith("== ")):
            bad.append(f"{name}: nothing is said of: {' '.join(words)}")
        if line.startswith("== "):
            name, words = line[3:], []
            blocks.setdefault(name, {})
        else:
            words += line.split()
    return blocks


def is_defined(path, function):
    """Is @function defined in @path? The line of a C function begins with the function's type."""
    try:
        text = read(path)
    except FileNotFoundError:
        return False
    return re.search(r"^(?:[a-z_][\w\s*]*[\s*])?%s\([^;{]*\)\s*\{" % function, text, re.M)


def judge(name, sentence, verdict):
    """Check the verdict on a sentence. A verdict is "- why", or "file: function...". A file without a path is beside
    the list."""
    if re.match(r"- \w", verdict):
        return
    words = re.match(r"([\w./]+): (\w+(?: \w+)*)$", verdict)
    if not words:
        bad.append(f"{name}: this is no verdict: {verdict}")
        return
    path = words[1] if "/" in words[1] else os.path.dirname(LIST) + "/" + words[1]
    for function in words[2].split():
        if not is_defined(path, function):
            bad.append(f"{name}: {words[1]} has no {function}(), a test of: {sentence}")


def main():
    comments, verdicts = promised(), listed()
    for name, block in comments.items():
        for sentence in block:
            if sentence not in verdicts.get(name, {}) and sentence not in verdicts.get(ANYWHERE, {}):
                bad.append(f"{name}: not in the list: {sentence}")
    everything = set().union(*comments.values())
    for name, block in verdicts.items():
        for sentence, its in block.items():
            if sentence not in (everything if name == ANYWHERE else comments.get(name, [])):
                bad.append(f"{name}: in the list, but not in the comments: {sentence}")
            for verdict in its:
                judge(name, sentence, verdict)
    for line in bad:
        print(line)
    return bool(bad) or not everything


if __name__ == "__main__":
    sys.exit(main())
