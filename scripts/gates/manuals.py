#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Do the manual pages say what the code does? Prints each difference, and exits with 1 if there is one.

Each function of lib/libtwheel.map, where NAME_sized() counts as NAME(), must be in the section NAME of one
page. That page must have the prototype in the header, and each parameter and error of the function. If a
page shows a structure, the structure must have the members that it has in the header. The page of the
device must have every name and the table of errors of the interface, and every parameter of the modules.
The page of the command must have every word and option. The pages of twheeld must have every option,
command, key and path. The completion in bash must have the commands of twheel(1) and of `twheel job`, and
the options of each command of `twheel job`.

The sources of the pages and of the code are parsed with regular expressions, which only understand the
style of this tree.
"""

import glob
import re
import subprocess
import sys

HEADERS = ("lib/libtwheel.h", "lib/libtwheel-sched.h")
UAPI = "include/uapi/linux/twheel.h"
SAME = {"twheel", "sched"}  # parameters that need no words: the object that a function works on

complaints = 0


def wrong(text):
    global complaints
    complaints += 1
    print(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def section(page, title):
    found = re.search(rf"^# {title}\n(.*?)(?=^# |\Z)", page, re.M | re.S)
    return found.group(1) if found else ""


def names(page):
    return [n.strip() for n in section(page, "NAME").split(" - ")[0].split(",")]


def functions(header):
    """Returns {name: (prototype, text of the kernel-doc)} of the functions of a header."""
    found = re.findall(r"/\*\*\n((?: \*[^\n]*\n)*?) \*/\n(?:static inline )?(\w[^;{]*?\b(twheel_\w+)\([^;{]*\))[;\n]",
                       header)
    return {name: (squeeze(proto) + ";", doc) for doc, proto, name in found}


def members(text):
    """Returns {structure: [names of members]} of a header or a page. Comments are ignored."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        one = r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?;"
        found[name] = [a or b for line in body.splitlines() for a, b in re.findall(one, line)[:1]]
    return found


def defines(text, pattern):
    return set(re.findall(rf"^#define ({pattern})\b[ \t]", text, re.M))


def check_function(name, proto, doc, path, page):
    if proto not in squeeze(section(page, "SYNOPSIS")):
        wrong(f"{path}: not the prototype of the header: {proto}")
    for param in set(re.findall(r"@(\w+):", doc)) - SAME:
        if not re.search(rf"_(\\\*)?{param}_(?!\w)", page):
            wrong(f"{path}: nothing on {param} of {name}()")
    for errno in set(re.findall(r"-(E[A-Z0-9]+)\b", doc.split("Return:")[-1])):
        if f"*{errno}*" not in page:
            wrong(f"{path}: nothing on {errno} of {name}()")


def check_library(pages):
    code = {}
    for header in HEADERS:
        code.update(functions(read(header)))
    exported = set(re.findall(r"^\t(twheel_\w+?)(?:_sized)?;", read("lib/libtwheel.map"), re.M))
    for name in exported:
        where = [path for path, page in pages.items() if name in names(page)]
        if len(where) != 1 or name not in code:
            wrong(f"{name}(): in the NAME of {where or 'no page'}, declared: {name in code}")
            continue
        check_function(name, *code[name], where[0], pages[where[0]])
    everything = "".join(pages.values())
    for name in set().union(*(defines(read(h), r"TWHEEL_\w+") for h in HEADERS)):
        if f"*{name}*" not in everything:
            wrong(f"no page has {name}")


def check_structures(pages):
    code = {}
    for header in HEADERS + (UAPI,):
        code.update(members(read(header)))
    for path, page in pages.items():
        for name, shown in members(page).items():
            if shown != code.get(name):
                wrong(f"{path}: struct {name} has {code.get(name)}, not {shown}")


def rows(text):
    return [" ".join(row.split()) for row in re.findall(r"^[ *]+(E[A-Z0-9]+(?: +[x.]){12})$", text, re.M)]


def check_device(page):
    header = read(UAPI)
    wanted = defines(header, r"TWHEEL_(?:F|EV|IOC|URING|BATCH)_\w+") - {"TWHEEL_IOC_MAGIC"}
    wanted |= set(re.findall(r"^\t(TWHEEL_(?:OP|STATE)_\w+)", header, re.M))
    for name in wanted:
        if f"*{name}*" not in page:
            wrong(f"twheel(4) has no {name}")
    if not rows(header) or rows(header) != rows(page):
        wrong("twheel(4) has not the table of errors of the header")
    for source in ("twheel.c", "twheel_chardev.c"):
        for param in re.findall(r"^module_param\((\w+)", read(source), re.M):
            if f"*{param}*" not in page:
                wrong(f"twheel(4) has no parameter {param}")
    minor = re.search(r"#define TWHEEL_MINOR\s+(\d+)", read("twheel_chardev.c")).group(1)
    if f"10:{minor}." not in page:
        wrong(f"twheel(4) has not the minor {minor}")


def check_command(page):
    said, shown = (set(re.findall(r"--[a-z][-a-z]+", text)) for text in (read("tools/twheel/help.c"), page))
    for option in said ^ shown:
        wrong(f"{option}: in {'the help' if option in said else 'twheel(1)'} alone")
    for word in re.findall(r'^\t\{ "(\w+)", cmd_', read("tools/twheel/main.c"), re.M):
        if f"*twheel {word}*" not in page or not re.search(rf"^\*{word}\*", page, re.M):
            wrong(f"twheel(1) has no {word}")


def check_options(source, page, path):
    said, shown = (set(re.findall(r"--[a-z][-a-z]+", text)) for text in (read(source), page))
    for option in said ^ shown:
        wrong(f"{option}: in {source if option in said else path} alone")


def check_jobs(pages):
    check_options("jobs/main.c", section(pages["doc/man/twheeld.8.scd"], "OPTIONS") + "--help --version", "twheeld(8)")
    command = pages["doc/man/twheel-job.1.scd"]
    check_options("jobs/client/main.c", command, "twheel-job(1)")
    for word in re.findall(r'^\t\{ "(\w+)", cmd_', read("jobs/client/main.c"), re.M):
        if not re.search(rf"^\*{word}\*", command, re.M):
            wrong(f"twheel-job(1) has no {word}")
    for key in re.findall(r'^\t\{ "(\w+)", set_', read("jobs/def.c"), re.M):
        if f"*{key}*" not in pages["doc/man/twheel-job.5.scd"]:
            wrong(f"twheel-job(5) has no {key}")
    for _, path in re.findall(r'^\t\{ "(\w+)", \{ "v1", ("[^}]*)\}', read("jobs/api.c"), re.M):
        words = [w for w in re.findall(r'"([^"]+)"', path) if w != "*"]
        if not re.search(r"/v1/" + words[0], pages["doc/man/twheeld.8.scd"]) or f"/{words[-1]}" not in pages["doc/man/twheeld.8.scd"]:
            wrong(f"twheeld(8) has no {path}")


def completed(*words):
    """Returns the words to which bash would complete the last of these words."""
    script = '. tools/twheel/completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _twheel; printf "%s\\n" "${COMPREPLY[@]}"'
    return set(subprocess.run(["bash", "-c", script, "-", *words], check=True, text=True, stdout=subprocess.PIPE).stdout.split())


def check_completion():
    words = set(re.findall(r'^\t\{ "(\w+)", cmd_', read("tools/twheel/main.c"), re.M)) | {"help"}
    said = {word for word in completed("twheel", "") if not word.startswith("-")}
    for word in said ^ words:
        wrong(f"twheel {word}: in completion.bash or in main.c, and not in both")
    source = read("jobs/client/main.c")
    commands = re.findall(r'^\t\{ "(\w+)", cmd_\w+, \d+, \d+, "(\w*)" \}', source, re.M)
    said = {word for word in completed("twheel", "job", "") if not word.startswith("-")}
    for word in said ^ {name for name, _ in commands}:
        wrong(f"twheel job {word}: in completion.bash or in the client, and not in both")
    options = re.findall(r'^\t\{ "([-\w]+)", ([01]), "(\w+)", ', source, re.M)
    for name, classes in commands:
        wanted = {f"--{option}" + "=" * int(arg) for option, arg, of in options if set(of) & set(classes)}
        for option in completed("twheel", "job", name, "--") ^ (wanted | {"--json", "--socket=", "--help"}):
            wrong(f"twheel job {name} {option}: in completion.bash or in the client, and not in both")


def check_references(pages):
    there = {f"{name}({path[-5]})" for path, page in pages.items() for name in names(page)}
    there.add("libtwheel(3)")
    for path, page in pages.items():
        for name, number in re.findall(r"\*((?:lib)?twheel[\w-]*)\*\((\d)\)", page):
            if f"{name}({number})" not in there:
                wrong(f"{path}: there is no {name}({number})")


pages = {path: read(path) for path in sorted(glob.glob("doc/man/*.scd"))}
check_library({path: page for path, page in pages.items() if path.endswith(".3.scd")})
check_structures(pages)
check_device(pages["doc/man/twheel.4.scd"])
check_command(pages["doc/man/twheel.1.scd"])
check_jobs(pages)
check_completion()
check_references(pages)
sys.exit(complaints != 0)
