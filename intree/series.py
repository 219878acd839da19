#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
series.py TREE OUT: write twheel as patches for the kernel in TREE to OUT, as git format-patch does.
series.py --without-compat TREE COPY: only replace twheel_compat.h in COPY, which has the sources of the
modules. TREE may be a kernel's headers. `make check` uses this to see whether the result builds.

The program takes the sources of this tree as they are on the day. intree/ has only what a kernel tree
needs besides: intree/tree has files of the series (Kconfig, Makefile, the frame of the KUnit and
kselftests), intree/parts has text for files of the kernel, and intree/messages has the message of each
patch. In a file there, a line "@N" begins text that is there from patch N on, and a line "@N-M" begins
text that is there from patch N up to patch M. In the cover letter "@table FILE|HEADING[|ROW...]@",
"@cell FILE|ROW|COLUMN@" and "@find FILE|ROW@" stand for figures of doc/.

The program moves a source, and adapts the names of the headers that the source includes. It resolves each
#ifdef of a name that is certain in a kernel. It also resolves twheel_compat.h, as Kbuild.compat decides
for TREE: it replaces macros by what they stand for, and calls of inline functions by their bodies. If it
does not understand a construction, it ends with an error: it guesses nothing, and leaves nothing out quietly.
"""
import glob
import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENGINE = "kernel/time/twheel/"
TESTS = ENGINE + "tests/"
SELFTESTS = "tools/testing/selftests/twheel/"

# Native tests of the wheel that become test cases of KUnit. intree/tree has another test.h for them.
KUNIT = ["table", "limits", "resume", "damage", "oracle"]
# Tests that are not for everybody's machine: attacks, measurements, tests that need other modules or the
# whole machine, and tests that take minutes.
NO_SELFTEST = re.compile(r"test_(attack|busy|chaos|cost|fuzz|hog.*|neighbour|rt|stress|uring|watchers)$")

# Our headers in a kernel tree. A header that is not named here is beside the file that includes it.
HEADERS = {
    "twheel.h": "<linux/twheel.h>",
    "wheel_types.h": "<linux/twheel_types.h>",
    "twheel_trace.h": "<trace/events/twheel.h>",
}
# Macros that a kernel tree defines for sure.
CERTAIN = {"__KERNEL__": True, "TWHEEL_MINOR": True}
# Text of comments that is not true in a kernel tree: the file, the text, and the text that replaces it.
WORDS = [
    ("twheel_chardev.c", " 243 to 254 are for\n * local use, in Documentation/admin-guide/devices.txt.", ""),
]

MESSAGES = ["wheel", "kunit", "engine", "device", "documentation", "selftests"]


def die(*words):
    sys.exit("series.py: " + " ".join(words))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(text, *path):
    os.makedirs(os.path.dirname(os.path.join(*path)), exist_ok=True)
    with open(os.path.join(*path), "w", encoding="utf-8") as file:
        file.write(text)


def once(pattern, new, text, where, flags=re.M):
    """Replace the match of a pattern, which must be there exactly once. Returns the new text."""
    text, n = re.subn(pattern, new, text, flags=flags)
    if n != 1:
        die(f"{where}: {n} times instead of once: {pattern}")
    return text


# ---- #if and twheel_compat.h ---------------------------------------------------------------

def decide(line, known):
    """Returns the value of an #if line, or None if the line does not test a known macro."""
    m = re.match(r"#\s*(ifdef|ifndef|if)\s+(!?)(\w+)$", line)
    if not m or m[3] not in known:
        return None
    return bool(known[m[3]]) != (m[1] == "ifndef" or m[2] == "!")


def resolve(text, known):
    """Returns @text without the #ifs that @known decides, and without the lines that they exclude."""
    out, stack = [], []
    for line in text.split("\n"):
        word = re.match(r"#\s*(if|else|elif|endif)", line)
        if word and word[1] == "if":
            stack.append(decide(line, known))
        known_here = stack and stack[-1] is not None
        if word and known_here:
            if word[1] == "elif":
                die("#elif:", line)
            if word[1] == "else":
                stack[-1] = not stack[-1]
        elif False not in stack:
            out.append(line)
        if word and word[1] == "endif":
            stack.pop()
    return "\n".join(out)


def probes(tree):
    """Returns for each macro of Kbuild.compat whether its probe finds the pattern in the headers of @tree."""
    have = {}
    form = r"-D(\w+)=\$\(call has,(.*),([\w/.]+)((?: \$\(srctree\)/include/[\w/.]+)*)\)$"
    for name, pattern, header, more in re.findall(form, read(TOP, "Kbuild.compat"), re.M):
        paths = [header] + re.findall(r"include/(\S+)", more)
        texts = [read(tree, "include", path) for path in paths if os.path.exists(os.path.join(tree, "include", path))]
        have[name] = any(re.search(pattern, text) for text in texts)
    if len(have) != read(TOP, "Kbuild.compat").count("-D"):
        die("Kbuild.compat has a probe that is not understood")
    return have


class Compat:
    """twheel_compat.h for one kernel. It may have macros with at most one parameter, and inline functions of simple
    statements."""

    def __init__(self, tree):
        text = resolve(read(TOP, "twheel_compat.h"), probes(tree))
        self.includes = re.findall(r"^#include .*\n", text, re.M)
        text = re.sub(r"^#(ifndef|define) TWHEEL_COMPAT_H$|^#endif$|^#include .*$", "", text, flags=re.M)
        # A function that returns anything but true is called in expressions. It stays, in each file that calls it.
        self.kept = {}
        form = r"^/\*(?:(?!\*/).)*\*/\n(static inline [^\n(]*?(\w+)\([^{]*\)\n\{\n.*?^\})\n"
        for m in re.finditer(form, text, re.M | re.S):
            if re.search(r"return (?!true;)", m[1]):
                self.kept[m[2]] = m[0]
        for function in self.kept.values():
            text = text.replace(function, "")
        text = re.sub(r"/\*.*?\*/\n?", "", text, flags=re.S)
        self.has_obj = "define kzalloc_obj(" in read(tree, "include/linux/slab.h")
        form = r"^#define (\w+)(?:\((\w+)\))?(?:[ \t]+(.*))?$"
        self.macros = re.findall(form, text, re.M)  # name, parameter, value
        text = re.sub(form, "", text, flags=re.M)
        self.inlines = {}
        form = r"^static inline \w+ (\w+)\(((?:[^{}])*)\)\n\{\n(.*?)^\}$"
        for name, params, body in re.findall(form, text, re.M | re.S):
            names = re.findall(r"(\w+)(?:\)\([^)]*\))?(?:,|$)", params)
            self.inlines[name] = names, [line.strip() for line in body.splitlines()]
        text = re.sub(form, "", text, flags=re.M | re.S)
        if text.strip():
            die("twheel_compat.h has what is not understood:", text.strip())

    def call(self, m):
        """Returns the statements of a function's body, which replace a statement that calls the function."""
        indent, name = m[1], m[2]
        names, body = self.inlines[name]
        args = [arg.strip() for arg in m[3].replace("\n", " ").split(",")]
        if len(args) != len(names) or "(" in m[3]:
            die(f"a call of {name} that is not understood: {m[0]}")
        lines = []
        for line in body:
            if line.startswith("return"):
                continue
            for param, arg in zip(names, args):
                line = re.sub(rf"\b{param}->", f"{arg[1:]}." if arg[0] == "&" else f"{arg}->", line)
                line = re.sub(rf"(?<![\w>.]){param}\b", lambda _, arg=arg: re.sub(r"\s+", " ", arg), line)
            lines.append(indent + line)
        return "\n".join(lines)

    def apply(self, text, where):
        for name in self.inlines:
            text = re.sub(rf"^([ \t]+)({name})\(([^;]*)\);", self.call, text, flags=re.M)
            if re.search(rf"\b{name}\(", text):
                die(f"{where}: {name} is called in an expression")
        for name, param, value in self.macros:
            if param:
                text = re.sub(rf"\b{name}\((\w+)\)",
                              lambda m, param=param, value=value: re.sub(rf"\({param}\)|\b{param}\b", m[1], value), text)
            elif value:
                text = re.sub(rf"\b{name}\b", value, text)
            else:	# a macro without a value may only be what a function returns
                text = re.sub(rf"^[ \t]+return {name};\n", "", text, flags=re.M)
            if re.search(rf"\b{name}\b", text):
                die(f"{where}: {name} is used in a way that is not understood")
        # 7.x prefers kzalloc_obj(), which means the same as kzalloc(). So Kbuild.compat needs no probe for it.
        if self.has_obj:
            text = re.sub(r"\bkzalloc\(sizeof\((\*\w+)\), ", r"kzalloc_obj(\1, ", text)
        text = re.sub(r'^#include "twheel_compat.h"\n', "", text, flags=re.M)
        kept = [function for name, function in self.kept.items() if re.search(rf"\b{name}\(", text)]
        if kept:
            includes = [line for line in self.includes if line not in text]
            text = re.sub(r"(?:^#include <linux/.*\n)+", lambda m: "".join(sorted(m[0].splitlines(True) + includes)),
                          text, count=1, flags=re.M)
            end = text.index("\n", text.rindex("\n#include ") + 1) + 1
            text = text[:end] + "\n" + "\n".join(kept) + text[end:]
        return text


# ---- sources -------------------------------------------------------------------------------

def header(m):
    return "#include " + HEADERS.get(m[1], f'"{m[1]}"')


def rst(block):
    """Returns a kernel-doc comment as Sphinx reads it: a drawing after a colon becomes a literal block, and a member
    with an index becomes a literal."""
    block = re.sub(r"(?<!:):\n \*\n(?= \*(?:\t| {2,})\S)", "::\n *\n", block)
    return re.sub(r"@(\w+\[\w+\])", r"``\1``", block)


def kernel_source(name, compat):
    text = re.sub(r"^/\*\*\n.*?^ \*/$", lambda m: rst(m[0]), resolve(read(TOP, name), CERTAIN), flags=re.M | re.S)
    for file, old, new in WORDS:
        if file == name:
            text = once(re.escape(old), new, text, name)
    text = re.sub(r'^#include "([\w.]+)"$',
                  lambda m: m[0] if m[1] == "twheel_compat.h" else header(m), text, flags=re.M)
    text = compat.apply(text, name)
    if "HAVE_" in text or "compat.h" in text:
        die(f"{name} has something of other kernels left")
    if name == "twheel_trace.h":
        text = once(r"#undef TRACE_INCLUDE_PATH\n(#.*\n)+?(?=#include <trace/define_trace.h>)",
                    "/* This part must be outside protection */\n", text, name)
    return text


def kunit_source(name):
    """Returns the source of a native test as a test case of KUnit, which has no main()."""
    text = read(TOP, "selftest/wheel", name + ".c")
    text = re.sub(r"^#include <time.h>\n\n?", "", text, flags=re.M)
    text = once(r"^int main\(.*\)$", f"void wheel_kunit_{name}(struct kunit *test)", text, name)
    text = once(r"^\treturn done\(\);$", "\tdone(test);", text, name)
    return re.sub(r"argc > \d \? argv\[\d\] : NULL", "NULL", text)


def included(folder, names):
    """Returns the headers in @folder that the files of these names include, directly or by other headers."""
    found = []
    for name in itertools.chain(names, found):
        for path in re.findall(r'^#include "([\w.]+)"', read(TOP, folder, name), re.M):
            if path not in found and os.path.exists(os.path.join(TOP, folder, path)):
                found.append(path)
    return found


def own():
    """Returns the paths of the sources at the top of this tree, without the files that Kbuild leaves there."""
    return [path for path in sorted(glob.glob(TOP + "/*.[ch]")) if not path.endswith(".mod.c")]


def is_of_device(name):
    """Is the file a part of the device? A header is one if only parts of the device include it."""
    if name.startswith("twheel_chardev"):
        return True
    line = f'#include "{name}"'
    users = [os.path.basename(path) for path in own() if line in read(path)]
    return users and all(is_of_device(user) for user in users)


def destination(name):
    """Returns the path in a kernel tree of a file of the top, and from which patch on the file is there. Returns None
    if it is in no patch."""
    if name in ("twheel_compat.h", "wheel_user.h"):
        return None
    if name not in HEADERS and is_of_device(name):
        return "drivers/char/" + name, 4
    if name in HEADERS:
        patch = 1 if name == "wheel_types.h" else 3
        return "include/" + HEADERS[name][1:-1], patch
    if name == "wheel_check.h":
        return ENGINE + name, 2
    return ENGINE + name, 1 if name.startswith("wheel") else 3


def sources(tree):
    """Returns [(path in the kernel tree, first patch with the file, text)] of all files made from this tree."""
    compat, out = Compat(tree), []
    for path in own():
        name = os.path.basename(path)
        where = destination(name)
        if where:
            out.append((*where, kernel_source(name, compat)))
    out.append(("include/uapi/linux/twheel.h", 4, read(TOP, "include/uapi/linux/twheel.h")))
    out += [(TESTS + name + ".c", 2, kunit_source(name)) for name in KUNIT]
    out += [(TESTS + name, 2, read(TOP, "selftest/wheel", name))
            for name in included("selftest/wheel", [name + ".c" for name in KUNIT]) if name != "test.h"]
    out += selftests()
    return out + documentation()


def selftests():
    names = [os.path.basename(path)[:-2] for path in sorted(glob.glob(TOP + "/selftest/uapi/test_*.c"))]
    names = [name for name in names if not NO_SELFTEST.match(name)]
    files = [name + ".c" for name in names] + ["uapi.c"]
    headers = included("selftest/uapi", files)
    out = [(SELFTESTS + name, 6, read(TOP, "selftest/uapi", name)) for name in files + headers]
    out.append((SELFTESTS + ".gitignore", 6, "# SPDX-License-Identifier: GPL-2.0-only\n" +
                "\n".join(names) + "\n"))
    programs = " \\\n".join(f"\t{name}" for name in names)
    text = read(TOP, "intree/parts/Makefile.selftests").replace("@PROGRAMS@", programs)
    text = text.replace("@HEADERS@", " ".join(headers))
    out.append((SELFTESTS + "Makefile", 6, text))
    return out


# ---- Documentation -------------------------------------------------------------------------

def head(name):
    """Returns the comment at the head of a file, for Sphinx: paragraphs are text, and indented lines are literal."""
    text = re.search(r"^/\*\n(.*?)\n \*/$", read(TOP, name), re.M | re.S)[1]
    out, literal = [], False
    for line in re.sub(r"^ \* ?", "", text, flags=re.M).expandtabs(8).split("\n"):
        if line.startswith(" ") and not literal:
            out += ["::", ""] if not out or not out[-1] else ["", "::", ""]
            literal = True
        elif line and not line.startswith(" "):
            if literal and out[-1]:
                out.append("")
            literal = False
            line = re.sub(r"([*`|\\]|_(?=\W|$))", r"\\\1", line)
        out.append("  " + line if literal and line else line)
    return "\n".join(out)


def documentation():
    """Returns the pages of doc/api, with the kernel's directives and paths, in the form of sources()."""
    where = {}
    for path in own():
        name = os.path.basename(path)
        if destination(name):
            where[name] = destination(name)[0]
    where["include/uapi/linux/twheel.h"] = "include/uapi/linux/twheel.h"
    pages = {
        "wheel": "Documentation/timers/twheel.rst",
        "kernel": "Documentation/core-api/twheel.rst",
        "device": "Documentation/userspace-api/twheel.rst",
    }

    def directive(m):
        name, options = m[1], m[2]
        options = re.sub(r" -nosymbol (\w+)", r"\n   :no-identifiers: \1", options)
        options = options.replace(" -export", "\n   :export:")
        if " -" in options:
            die("an option of kernel-doc that is not understood:", options)
        return f".. kernel-doc:: {where[name]}{options}"

    out = []
    for page, path in pages.items():
        text = read(TOP, "doc/api", page + ".rst")
        text = re.sub(r"^\.\. SPDX-FileCopyrightText.*\n|^\.\. c:namespace::.*\n\n", "", text, flags=re.M)
        text = re.sub(r"^\.\. head:: (\S+)$", lambda m: head(m[1]), text, flags=re.M)
        if page == "wheel":
            text = text.replace("The wheel itself: wheel.h\n=========================",
                                "Timers in a wheel\n=================\n\n" +
                                read(TOP, "intree/parts/wheel.rst"))
            more = [("The timers of other kernel code", "twheel.c"), ("Who runs when", "twheel_dispatch.h"),
                    ("/dev/twheel", "twheel_chardev.c")]
            for title, name in more:
                text += f"\n{title}\n{'-' * len(title)}\n\n{head(name)}\n"
        text = re.sub(r"^\.\. kernel-doc:: (\S+)(.*)$", directive, text, flags=re.M)
        out.append((path, 5, text))
    return out


# ---- files of a kernel tree that are changed -----------------------------------------------

def after(pattern, new):
    return lambda text, where: once(f"({pattern})", lambda m: m[1] + new, text, where)


def before(pattern, new):
    return lambda text, where: once(f"({pattern})", lambda m: new + m[1], text, where)


IOCTL = "0xF5  00-0F  linux/twheel.h".ljust(71)
EDITS = [
    (2, "kernel/time/Makefile", lambda text, where: text + "obj-y\t\t\t\t\t\t+= twheel/\n"),
    (2, "kernel/time/Kconfig", before(r"^config CONTEXT_TRACKING$", 'source "kernel/time/twheel/Kconfig"\n\n')),
    (4, "drivers/char/Kconfig", before(r"^config UV_MMTIMER$", read(TOP, "intree/parts/Kconfig.chardev"))),
    (4, "drivers/char/Makefile", after(r"^obj-\$\(CONFIG_HANGCHECK_TIMER\).*\n",
                                       "obj-$(CONFIG_TWHEEL_CHARDEV)\t+= twheel_chardev.o\n")),
    (4, "include/linux/miscdevice.h", after(r"^#define RFKILL_MINOR\t.*\n", "#define TWHEEL_MINOR\t\t243\n")),
    (4, "Documentation/admin-guide/devices.txt",
     lambda text, where: once(r"^(\t\t242 = /dev/rfkill.*\n)\n\t\t243-254(\t.*)$",
                              r"\1\t\t243 = /dev/twheel\tTimers in a wheel (twheel)\n\n\t\t244-254\2",
                              text, where)),
    (4, "Documentation/userspace-api/ioctl/ioctl-number.rst",
     before(r"^0xF6  all  .*\n", IOCTL + "/dev/twheel, timers in a wheel\n")),
    (5, "Documentation/timers/index.rst", after(r"^    timekeeping\n", "    twheel\n")),
    (5, "Documentation/core-api/index.rst", after(r"^   timekeeping\n", "   twheel\n")),
    (5, "Documentation/userspace-api/index.rst", after(r"^   perf_ring_buffer\n", "   twheel\n")),
    (6, "tools/testing/selftests/Makefile", after(r"^TARGETS \+= tty\n", "TARGETS += twheel\n")),
]


def of_patch(text, patch):
    """Returns the part of @text that is there in @patch, or None if there is none yet."""
    first, last, out = 1, len(MESSAGES), []
    for line in text.splitlines(keepends=True):
        m = re.match(r"@(\d)(?:-(\d))?\n$", line)
        if m:
            first, last = int(m[1]), int(m[2] or len(MESSAGES))
        elif first <= patch <= last:
            out.append(line)
    return "".join(out) or None


def templates():
    """Yields the files of intree/tree: (path in the kernel tree, text with its lines "@N")."""
    base = TOP + "/intree/tree"
    lists = {
        "@KUNIT@": [f"twheel_kunit-y\t\t\t\t+= tests/{name}.o" for name in KUNIT],
        "@PROTOTYPES@": [f"void wheel_kunit_{name}(struct kunit *test);" for name in KUNIT],
        "@CASES@": [f"\tKUNIT_CASE(wheel_kunit_{name})," for name in KUNIT],
    }
    for where, _, names in os.walk(base):
        for name in names:
            text = read(where, name)
            for mark, lines in lists.items():
                text = text.replace(mark, "\n".join(lines))
            yield os.path.relpath(os.path.join(where, name), base)[:-len(".in")], text


def entry_of(who):
    """Returns the entry for MAINTAINERS, in which @who is the maintainer."""
    return read(TOP, "intree/parts/MAINTAINERS").replace("@WHO@", who)


def maintainers(text, entry):
    """Returns @text, the text of MAINTAINERS, with @entry in its alphabetical place. An earlier version of the entry is
    removed."""
    name = entry.split("\n")[0]
    text = re.sub(rf"^{name}\n(?:.+\n)+\n", "", text, flags=re.M)
    titles = re.compile(r"(?<=\n\n)(?=([^\n:\t]+)\n[MSRLF]:\t)")
    start = text.index("\n3C59X")
    for m in titles.finditer(text, start):
        if m[1] > name:
            return text[:m.start()] + entry + "\n" + text[m.start():]
    return die("MAINTAINERS has no place for", name)


# ---- figures of the cover letter ------------------------------------------------------------

def rows(name, heading=None):
    """Returns the rows of the table below @heading, or of all tables of a file. A row is a list of cells."""
    text = read(TOP, name)
    if heading:
        m = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
        text = m[1] if m else die(name, "has no section", heading)
    lines = [line for line in text.splitlines() if line.startswith("|") and not re.match(r"\|[-:|]+$", line)]
    return [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]


# The names of rows in doc/ are too long for a line of a mail. Each pattern has a shorter form.
SHORTER = [(r"^armed 60..120 s ahead: (\w+).*", r"60..120 s ahead, \1"), (r" and cancel$", "+cancel"),
           (r"^expire within (.*) CPU$", r"expire in \1"), (r"-eighth$", "-1/8")]


def figures(text):
    """Returns @text with figures of doc/ instead of its marks. A mark stands for a cell or for a table. If a mark of a
    table names rows, only the rows that begin with these names are taken."""
    def table(m):
        name, heading, *begins = m[1].split("|")
        got = [row for row in rows(name, heading) if not begins or row[0].startswith(tuple(begins))]
        if len(got) < 2:
            die(name, "has no such table:", heading)
        got = [[cell.replace(" … ", "..").replace("…", "..").replace("–", "-") for cell in row] for row in got]
        for pattern, short in SHORTER:
            got = [[re.sub(pattern, short, cell) for cell in row] for row in got]
        widths = [max(len(row[i]) for row in got) for i in range(len(got[0]))]
        return "\n".join("  " + "  ".join([row[0].ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip() for row in got)

    def find(m):
        name, first = m[1].split("|")
        got = [row for row in rows(name) if row[0] == first]
        return got[0][1] if got else die(name, "has no row", first)

    def cell(m):
        name, first, column = m[1].split("|")
        head = None
        for row in rows(name):
            if column in row and not row[0]:
                head = row
            if head and row[0] == first and len(row) == len(head):
                return row[head.index(column)]
        return die(name, "has no cell", first, column)

    for word, what in (("find", find), ("cell", cell)):
        text = re.sub(rf"@{word} ([^@\n]*)@", what, text)
    text = "\n\n".join(wrapped(block) for block in text.split("\n\n"))
    return re.sub(r"@table ([^@\n]*)@", table, text)


def wrapped(block):
    """Returns a paragraph with lines short enough for a mail. Adjacent lines with the same indentation are joined."""
    out = []
    if block.startswith("@table"):
        return block
    for indent, lines in itertools.groupby(block.split("\n"), lambda line: re.match(" *", line)[0]):
        out += textwrap.wrap(" ".join(line.strip() for line in lines), 74, break_long_words=False,
                             break_on_hyphens=False, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(out)


# ---- the patches ---------------------------------------------------------------------------

class Series:
    def __init__(self, tree, out):
        self.tree, self.out, self.git = tree, out, out + "/git"
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(self.git)
        self.run("init", "-q")
        self.who = self.identity()
        for _, path, _ in EDITS:
            write(read(tree, path), self.git, path)
        write(read(tree, "MAINTAINERS"), self.git, "MAINTAINERS")
        self.commit("base")

    def run(self, *args):
        return subprocess.run(["git", "-C", self.git, *args], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def identity(self):
        """Set who signs the patches: the user that git knows, or else the author of the last commit of this tree.
        Returns "NAME <MAIL>"."""
        def get(*args):
            return subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, *args], text=True,
                                  stdout=subprocess.PIPE, check=False).stdout.strip()
        name = get("config", "user.name") or get("log", "-1", "--format=%an")
        mail = get("config", "user.email") or get("log", "-1", "--format=%ae")
        if not name or not mail:
            die("git knows neither who you are nor who made the last commit")
        self.run("config", "user.name", name)
        self.run("config", "user.email", mail)
        return f"{name} <{mail}>"

    def commit(self, message, *options):
        self.run("add", "-A", "-f")
        self.run("commit", "-q", "-m", message, *options)

    def patch(self, number, name, files):
        for path, first, text in files:
            if first == number:
                write(text, self.git, path)
        for path, text in templates():
            text = of_patch(text, number)
            if text:
                write(text, self.git, path)
        for first, path, edit in EDITS:
            if first == number:
                write(edit(read(self.git, path), path), self.git, path)
        beside = "".join(f"F:\t{path}\n" for path, _, _ in files
                         if path.startswith("drivers/char/") and "/twheel_chardev" not in path)
        entry = of_patch(entry_of(self.who).replace("@BESIDE@\n", beside), number)
        write(maintainers(read(self.git, "MAINTAINERS"), entry), self.git, "MAINTAINERS")
        self.commit(read(TOP, "intree/messages", name), "-s")

    def format(self):
        cover = figures(read(TOP, "intree/messages/cover"))
        subject, text = cover.split("\n\n", 1)
        self.run("format-patch", "-q", "--cover-letter", "--no-signature", "-o", "..", "HEAD~%d" % len(MESSAGES))
        path = self.out + "/0000-cover-letter.patch"
        letter = read(path).replace("*** SUBJECT HERE ***", subject.strip())
        write(letter.replace("*** BLURB HERE ***", text.strip()), path)
        with open(self.out + "/series", "w", encoding="utf-8") as file:
            for path in sorted(glob.glob(self.out + "/000[1-9]-*.patch")):
                file.write(os.path.basename(path) + "\n")


def without_compat(tree, copy):
    """Replace twheel_compat.h in @copy, a directory with sources of the modules: each use of one of its macros or
    functions is replaced by what twheel_compat.h has for @tree."""
    compat = Compat(tree)
    for name in map(os.path.basename, own()):
        if destination(name):
            write(compat.apply(read(copy, name), name), copy, name)


def main():
    if sys.argv[1] == "--without-compat":
        without_compat(*sys.argv[2:])
        return
    tree, out = sys.argv[1:]
    series, files = Series(tree, os.path.abspath(out)), sources(tree)
    for number, name in enumerate(MESSAGES, 1):
        series.patch(number, name, files)
    series.format()


main()
