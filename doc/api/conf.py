# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
"""Sphinx, for `make htmldocs`: what the code says of itself.

.. head:: FILE			the comment that a file opens with, as it is
.. kernel-doc:: FILE [OPTION]...	its kernel-doc comments, by the kernel's own script
"""

import os
import re
import subprocess

import sphinx
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

project = "twheel"
copyright = "The twheel authors"
primary_domain = "c"
html_theme = "alabaster"
html_theme_options = {"page_width": "70em", "description": "Timers by the million"}
html_copy_source = False

TOP = os.environ["TWHEEL_TOP"]
KERNEL_DOC = os.environ["KERNEL_DOC"]


class Head(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = os.path.join(TOP, self.arguments[0])
        self.env.note_dependency(path)
        with open(path, encoding="utf-8") as file:
            text = re.search(r"^/\*\n(.*?)\n \*/$", file.read(), re.M | re.S).group(1)
        text = re.sub(r"^ \* ?", "", text, flags=re.M)
        return [nodes.literal_block(text, text, language="none")]


class KernelDoc(SphinxDirective):
    required_arguments = 1
    optional_arguments = 9

    def run(self):
        name, *options = self.arguments
        self.env.note_dependency(os.path.join(TOP, name))
        rst = subprocess.run(
            [KERNEL_DOC, "-rst", "-Werror", "-sphinx-version", sphinx.__version__, *options, name],
            cwd=TOP, check=True, capture_output=True, text=True).stdout
        # What the script makes of an #ifdef in a structure; a drawing after a colon; @q[0].
        rst = re.sub(r"^( *#.*);$", r"\1", rst, flags=re.M)
        rst = re.sub(r"(?<!:):\n\n(?=[ \t]+\S)", "::\n\n", rst)
        rst = re.sub(r"(\*\*\w+\*\*)(?=\[)", r"\1\\ ", rst)
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(rst.expandtabs(8).splitlines(), name), node)
        return node.children


def setup(app):
    app.add_directive("head", Head)
    app.add_directive("kernel-doc", KernelDoc)
