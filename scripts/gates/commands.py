#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""
commands.py: does deps.sh list the packages of all commands that are called?

If a script or a target of the Makefile calls deps.sh for some groups, it may call only commands of the
packages of these groups, of their dependencies, of the packages that every Debian has, and of git, make
and gcc. The same holds for the scripts and makefiles that it calls. The program parses scripts and
recipes with shfmt, and follows them into the files that they call. It asks dpkg for the package of a
command. So it can check only callers whose packages are installed.

A word in the place of a command counts as a command. If something else calls the command (xargs, timeout,
or a function such as quiet), an argument counts as the command if there is a command of that name.

The program prints what is missing. The exit status is 1 if anything is missing, or no caller was checked.
"""
import json
import os
import re
import shutil
import subprocess
import sys

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
BUILTINS = set("""
    . : [ alias bg break builtin caller cd command compgen complete continue declare echo eval
    exec exit export false fg getopts hash help history jobs kill let local logout mapfile popd
    printf pushd pwd read readarray readonly return set shift shopt source test times trap true
    type typeset ulimit umask unalias unset wait""".split())
# Functions whose arguments are not called as commands on this machine.
ELSEWHERE = {"inside", "packages"}
# Commands that are called only if they are installed, or only by callers that list their packages; and words that
# are no commands.
OPTIONAL = {
    ("scripts/gates/fuzz.sh", "cron"): "the name of a target, and of a package on many machines",
    ("scripts/machines/qemu.sh", "qemu-system-aarch64"): "with ARCH=, as matrix.sh does",
    ("scripts/machines/qemu.sh", "qemu-system-s390x"): "with ARCH=, as matrix.sh does",
    ("scripts/lib.sh", "sudo"): "as_root says what to do without",
    ("scripts/packages/uninstall.sh", "udevadm"): "where systemd runs",
    ("selftest/users/ipvs_cost.sh", "/twheel/ipvs_load"): "in the guest",
    ("udev/activate", "systemd-sysusers"): "where systemd runs",
    ("udev/activate", "udevadm"): "where systemd runs",
}
X = "\0"        # stands for a part of a word that only the shell knows


def run(*command, **kwargs):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **kwargs).stdout


class Packages:
    """The packages that are installed, and what each of them needs and provides."""

    def __init__(self):
        fields = "${Package}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\t${db:Status-Status}\n"
        self.needs, self.provided, self.base = {}, {}, {"git", "make", "gcc", "apt"}
        for line in run("dpkg-query", "-W", "-f", fields).splitlines():
            name, essential, priority, needs, provides, status = line.split("\t")
            if status != "installed":
                continue
            self.needs[name] = needs
            if essential == "yes" or priority == "required":
                self.base.add(name)
            for word in self.names(provides):
                self.provided.setdefault(word, name)
        self.owners = {}

    @staticmethod
    def names(text):
        return [word for word in (re.split(r"[ :(]", part.strip())[0] for part in re.split("[,|]", text)) if word]

    def closure(self, names):
        """Returns these packages and those that they depend on. Of alternatives, those that are installed count."""
        todo, done = list(names), set()
        while todo:
            name = todo.pop()
            name = name if name in self.needs else self.provided.get(name)
            if name and name not in done:
                done.add(name)
                todo += self.names(self.needs[name])
        return done

    def own(self, paths):
        """Find the packages that own the commands at these paths. A link may have no owner, as one of alternatives:
        so the owners of its target count, too."""
        names = {path: {p for f in (path, os.path.realpath(path)) for p in (f, f.removeprefix("/usr"), "/usr" + f)}
                 for path in paths}
        out = subprocess.run(["dpkg", "-S", *set().union(*names.values())], text=True, check=False,
                             stderr=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
        owners = {}
        for line in out.splitlines():
            packages, _, file = line.rpartition(": ")
            owners[file] = {package.split(":")[0] for package in packages.split(", ")}
        self.owners = {path: set().union(*(owners.get(name, ()) for name in names[path])) for path in paths}


class Node:
    """A script, a makefile or a target of the Makefile: which commands it calls, for which groups it calls deps.sh, and
    which other nodes it calls."""

    def __init__(self, name):
        self.name, self.calls, self.groups, self.goes = name, [], set(), set()


class Tree:
    def __init__(self, files):
        self.files, self.nodes, self.functions, todo = set(files), {}, {"log", "gate", "step"}, []
        for name in files:
            with open(name, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if name.endswith("Makefile"):
                todo += [(node, 0, recipe) for node, recipe in self.makefile(name, text)]
            elif not name.startswith("selftest/deb/") and re.match(r"#!.*/(ba)?sh$|(# SPDX.*\n)+# shellcheck shell=", text, re.M) and "busybox sh" not in text[:30]:
                todo.append((self.node(name), 1, text))
        parsed = [(node, line, self.parse(node, text)) for node, line, text in todo]
        for _, _, tree in parsed:
            self.functions |= {n["Name"]["Value"] for n in self.walk(tree) if n.get("Type") == "FuncDecl"}
        for node, line, tree in parsed:
            self.visit(node, tree, line)

    @staticmethod
    def parse(node, text):
        try:
            return json.loads(run("shfmt", "--to-json", input=text, stderr=subprocess.PIPE))
        except subprocess.CalledProcessError as error:
            sys.exit(f"{node.name}: shfmt does not understand '{text[:200]}': {error.stderr}")

    def node(self, name):
        return self.nodes.setdefault(name, Node(name))

    @staticmethod
    def walk(tree):
        todo = [tree]
        while todo:
            item = todo.pop()
            if isinstance(item, dict):
                yield item
                todo += item.values()
            elif isinstance(item, list):
                todo += item

    def makefile(self, name, text):
        """Returns [(node, shell recipe)]. In the Makefile at the top each target is a node; another makefile is one."""
        text = re.sub(r"^define .*?^endef", lambda m: m[0].replace("$$", "$"), text, flags=re.M | re.S)
        variables = dict(re.findall(r"^(\w+)\s*[:?]?=\s*(.*)", text.replace("\\\n", " "), re.M))
        node, recipes = self.node(name), {}
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("\t"):
                recipes.setdefault(node, []).append(self.expand(line.strip(), variables).lstrip("@+-"))
            elif name == "Makefile" and (rule := re.match(r"([\w. -]+):([^=]*)$", line)):
                node = self.node("make " + rule[1].split()[0])
                node.goes |= {"make " + word for word in rule[2].split()}
        return [(node, "\n".join(lines)) for node, lines in recipes.items()]

    def expand(self, text, variables):
        """Returns a text with make's variables expanded, near enough as make does it. For all that is no plain
        variable, it has the word $make."""
        text = text.replace("$$", "\1").replace("$(MAKE)", "make")
        for _ in range(3):
            text = re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], "").replace("$$", "\1") or "$make", text)
        text = re.sub(r"\$[@<^*]", "$make", text)
        while (start := text.find("$(")) >= 0:
            end, depth = start + 2, 1
            while depth and end < len(text):
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            text = text[:start] + "$make" + text[end:]
        return text.replace("\1", "$")

    def word(self, word):
        text = ""
        for part in word.get("Parts", []):
            kind = part["Type"]
            if kind in ("Lit", "SglQuoted"):
                text += part.get("Value", "")
            elif kind == "DblQuoted":
                text += self.word(part)
            else:
                text += X
        return text

    def visit(self, node, tree, line):
        arrays = {}
        for item in self.walk(tree):
            if item.get("Array") and item.get("Name"):
                words = [self.word(e["Value"]) for e in item["Array"].get("Elems") or [] if e.get("Value")]
                arrays.setdefault(item["Name"]["Value"], []).extend(words)
                self.perhaps(node, item["Pos"]["Line"] * line, words[:1])
        for item in self.walk(tree):
            if item.get("Type") == "CallExpr" and item.get("Args"):
                words = [self.word(arg) for arg in item["Args"]]
                self.call(node, item["Pos"]["Line"] * line, words, item, arrays)
            elif "Parts" in item:
                self.go(node, self.word(item))

    def call(self, node, line, words, item, arrays):
        first, rest = words[0], words[1:]
        if first in ELSEWHERE:
            return
        if first.endswith("deps.sh"):
            node.groups |= {w for w in rest if re.fullmatch(r"[a-z][a-z-]*", w)}
            names = [n["Param"]["Value"] for n in self.walk(item["Args"][1:]) if n.get("Type") == "ParamExp"]
            node.groups |= {w for name in names for w in arrays.get(name, [])}
        while "make" in words:
            words = words[words.index("make") + 1:]
            self.make(node, words)
        script = next((rest[i + 1] for i, w in enumerate(rest[:-1]) if re.fullmatch(r"-[a-z]*c", w)), None)
        if first == "trap" and rest:
            script = rest[0].strip("-")
        if script and (first == "trap" or {first, *rest} & {"sh", "bash"}):
            try:
                self.visit(node, json.loads(run("shfmt", "--to-json", input=script.replace(X, "$x"),
                                                stderr=subprocess.DEVNULL)), 0)
            except subprocess.CalledProcessError:
                pass
        if first in self.functions:
            self.perhaps(node, line, rest[:4])
        elif X not in first and "/" not in first.lstrip("/") or first.startswith("/") and X not in first:
            if first not in BUILTINS:
                node.calls.append((line, first))
            self.perhaps(node, line, rest[:6] if first in HANDS_ON else [w for w in rest if w.startswith("/")])

    def perhaps(self, node, line, words):
        """Find the command among the words, which are arguments of something that calls a command. The words after the
        command are its arguments. If the command itself calls a command, find that, too."""
        for word in words:
            if re.fullmatch(r"(/usr)?/s?bin/[\w.+-]+|[a-z][\w.+-]+", word) and word not in self.functions | BUILTINS \
                    and shutil.which(word, path=PATH):
                node.calls.append((line, word))
                if word not in HANDS_ON:
                    break

    def make(self, node, words):
        where = next((words[i + 1] for i, w in enumerate(words[:-1]) if w == "-C"), None)
        if where is not None:
            self.go(node, where.split(X)[-1].strip("/") + "/Makefile")
            return
        for word in words:
            if re.fullmatch(r"[a-z][a-z_-]*", word):
                node.goes.add("make " + word)

    def go(self, node, text):
        """If a word names a file of ours, from the top or from the caller's folder, note that @node calls it."""
        path = text.split(X)[-1].lstrip("/")
        for name in (path, os.path.normpath(os.path.join(os.path.dirname(node.name), path))):
            if path and name in self.files and name != node.name:
                node.goes.add(name)

    def reached(self, start):
        todo, done = [start], set()
        while todo:
            name = todo.pop()
            if name in self.nodes and name not in done:
                done.add(name)
                todo += self.nodes[name].goes
        return [self.nodes[name] for name in done]


# Programs that run the command in their arguments.
HANDS_ON = {"exec", "command", "env", "nice", "time", "timeout", "setpriv", "xargs", "nohup", "unshare",
            "fakeroot", "find", "script", "valgrind"}


def check(tree, packages, start):
    """Check a caller of deps.sh. Returns {(file, line, command): package} of what is missing, and the groups. If
    packages of the groups are not installed, returns None and these packages."""
    nodes = tree.reached(start)
    groups = sorted(set().union(*(node.groups for node in nodes)))
    listed = set(run("scripts/deps.sh", "--list", *groups).split())
    if absent := sorted(name for name in listed if name not in packages.needs and name not in packages.provided):
        return None, absent
    there, missing = packages.closure(packages.base | listed), {}
    for node in nodes:
        for line, command in node.calls:
            path = shutil.which(command, path=PATH)
            owners = packages.owners.get(path, set())
            if not owners & there and (node.name, command) not in OPTIONAL:
                missing.setdefault((node.name, line, command), ", ".join(sorted(owners)) or "no package here")
    return missing, groups


def main():
    tree, packages = Tree(sys.argv[1:]), Packages()
    calls = {command for node in tree.nodes.values() for _, command in node.calls}
    packages.own(set(filter(None, (shutil.which(command, path=PATH) for command in calls))))
    found, looked = {}, 0
    for name, node in sorted(tree.nodes.items()):
        if not node.groups:
            continue
        missing, groups = check(tree, packages, name)
        if missing is None:
            print(f"# {name} is not looked at, without {' '.join(groups)}")
            continue
        looked += 1
        for key, owner in missing.items():
            found.setdefault((key, owner), []).append(f"{name} ({' '.join(groups)})")
    for ((name, line, command), owner), callers in sorted(found.items()):
        print(f"{name}:{line}: {command} is of {owner}, which deps.sh does not list for {'; '.join(callers)}")
    print(f"# {looked} callers of deps.sh, {len(tree.nodes)} scripts and targets")
    sys.exit(bool(found) or not looked)


main()
