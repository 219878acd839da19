#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
syzkaller.py: do the descriptions for syzkaller (selftest/fuzz/twheel.txt) agree with <linux/twheel.h>?

The descriptions must have all of the header: each ioctl with its direction and structure, each structure
with members, each flag and operation. The header must have all that is described: members with their
names, order, offsets and sizes, and constants with their names. The compiler takes the values from the
header. The program prints what differs. The exit status is 1 if anything does.
"""
import os
import re
import subprocess
import sys

TOP = os.path.abspath(os.path.dirname(__file__) + "/../..")
HEADER = TOP + "/include/uapi/linux/twheel.h"
TEXT = TOP + "/selftest/fuzz/twheel.txt"
DIRECTION = {"_IOW": "in", "_IOR": "out", "_IOWR": "inout"}
# Names that need no description. A program reads states and never passes them. The others are a version, a limit, and
# ioctl's magic.
UNDESCRIBED = re.compile(r"TWHEEL_(STATE_\w+|ABI|BATCH_MAX|IOC_MAGIC)$")

bad = []


def wrong(*words):
    bad.append(" ".join(str(word) for word in words))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Header:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.structs = {}
        for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.M | re.S):
            self.structs[name] = re.findall(r"^\s+\S+\s+(\w+);$", body, re.M)
            if len(self.structs[name]) != body.count(";"):
                wrong(f"struct {name} has a member that is not understood")
        self.ioctls = {}
        form = r"^#define (TWHEEL_IOC_\w+)\s+(_IO\w+)\(\w+, \w+, struct (\w+)\)"
        for name, direction, struct in re.findall(form, text, re.M):
            self.ioctls[name] = (DIRECTION[direction], struct)
        self.names = set(re.findall(r"^#define (TWHEEL_\w+)\s", text, re.M))
        self.names |= set(re.findall(r"^\t(TWHEEL_\w+)\s*=", text, re.M))


class Text:
    def __init__(self, text):
        text = re.sub(r"#.*", "", text)
        self.resources = dict(re.findall(r"^resource (\w+)\[(\w+)\]", text, re.M))
        self.calls = re.findall(r"^ioctl\$(\w+)\(fd fd_twheel, cmd const\[(\w+)\], arg ptr\[(\w+), (\w+)\]\)$", text, re.M)
        if len(self.calls) != text.count("\nioctl$"):
            wrong("an ioctl is not understood")
        block = r"^(\w+) ([{\[])\n(.*?)^[}\]]$"
        self.structs, self.unions = {}, {}
        for name, kind, body in re.findall(block, text, re.M | re.S):
            members = re.findall(r"^\t(\w+)\s+(.*?)(?:\s+\(\w+\))?$", body, re.M)
            (self.structs if kind == "{" else self.unions)[name] = members
        self.flags = {name: values.split(", ") for name, values in re.findall(r"^(\w+) = (.*)$", text, re.M)}
        words = re.sub(r"\"[^\"]*\"", "", re.sub(r"^include .*$", "", text, flags=re.M))
        self.constants = set(re.findall(r"(?<![\w$])([A-Z][A-Z0-9_]+)\b", words))
        self.includes = re.findall(r"^include <uapi/(.*)>$", text, re.M)

    def size(self, kind):
        """Returns how many bytes a member of this type has."""
        if kind in self.resources:
            kind = self.resources[kind]
        if kind.startswith("ptr64["):
            return 8
        m = re.match(r"(?:(?:const|flags|len|bytesize)\[[^,]+, )?int(8|16|32|64)\b", kind)
        return int(m[1]) // 8 if m else wrong("a type that is not understood:", kind) or 0


def struct_of(header, name):
    """Returns the structure of the header that @name describes. Several descriptions may fill in one structure: each
    has a name that begins with that of the structure."""
    found = [s for s in header.structs if name == s or name.startswith(s + "_")]
    return max(found, key=len) if found else wrong(name, "is not a structure of the header")


def compiles(lines, what):
    """Compile @lines of C, with their assertions, and note each error of the compiler."""
    program = ["#define _GNU_SOURCE", "#include <stddef.h>"] + lines
    done = subprocess.run(
        ["gcc", "-fsyntax-only", f"-I{TOP}/include/uapi", "-x", "c", "-"], input="\n".join(program) + "\n",
        text=True, stderr=subprocess.PIPE, check=False)
    for line in done.stderr.splitlines():
        m = re.search(r"error: (.*)", line)
        if m:
            wrong(what + ":", m[1])


def layouts(header, text):
    lines = ["#include <linux/twheel.h>"]
    described = set()
    for name, members in text.structs.items():
        struct = struct_of(header, name)
        if not struct:
            continue
        described.add(struct)
        if [member for member, _ in members] != header.structs[struct]:
            wrong(f"{name} has other members than struct {struct}")
            continue
        offset = 0
        for member, kind in members:
            lines.append(f'_Static_assert(offsetof(struct {struct}, {member}) == {offset} && '
                         f'sizeof(((struct {struct} *)0)->{member}) == {text.size(kind)}, "{name}.{member}");')
            offset += text.size(kind)
            if member == "op_size" and struct == "twheel_batch":
                sizes = text.flags.get(re.match(r"(?:flags\[(\w+),)?", kind)[1], [])
                is_one = " || ".join(f"sizeof(struct twheel_op) == {size}" for size in sizes)
                lines.append(f'_Static_assert({is_one or 0}, "{name}.{member}");')
        lines.append(f'_Static_assert(sizeof(struct {struct}) == {offset}, "the size of {name}");')
    for struct in sorted(set(header.structs) - described):
        wrong(f"struct {struct} is not described")
    compiles(lines, "layout")


def ioctls(header, text):
    for name, command, direction, struct in text.calls:
        if name != command or header.ioctls.get(command) != (direction, struct_of(header, struct)):
            wrong(f"{name} is not as the header has it: {command}, {direction}, {struct}")
    for name in sorted(set(header.ioctls) - {call[1] for call in text.calls}):
        wrong(name, "is not described")


def constants(header, text):
    for name in sorted(header.names - text.constants):
        if not UNDESCRIBED.match(name):
            wrong(name, "is not described")
    lines = [f"#include <{name}>" for name in text.includes]
    lines += [f"long long a_{name} = {name};" for name in sorted(text.constants)]
    compiles(lines, "a constant")


def unions(text):
    for name, members in text.unions.items():
        for member, kind in members:
            if kind not in text.structs:
                wrong(f"{name}.{member} is of no structure: {kind}")


def main():
    header, text = Header(read(HEADER)), Text(read(TEXT))
    if not header.structs or not header.ioctls or not text.structs:
        wrong("nothing was found")
    layouts(header, text)
    ioctls(header, text)
    constants(header, text)
    unions(text)
    for line in bad:
        print(line)
    return bool(bad)


sys.exit(main())
