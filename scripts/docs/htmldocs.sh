#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# htmldocs.sh: the comments of the code as HTML, in build/htmldocs, by Sphinx and the kernel's
# kernel-doc. Warnings are errors, and so is an exported function that is missing there.
. "$(dirname "$0")/../lib.sh"
cd "$top"

out=$top/build/htmldocs
export TWHEEL_TOP=$top
KERNEL_DOC=$(scripts/kdir.sh)/scripts/kernel-doc
export KERNEL_DOC

# Does each have an anchor, with the name that Sphinx gives it?
anchors() {
	awk '/EXPORT/ { print "c." $1 }' scripts/gates/symvers.expected
	sed -nE 's/^\t(twheel_[a-z_]*);/c.library.\1/; s/_sized$//; /^c\./p' lib/libtwheel.map
}

rm -rf "$out"
quiet sphinx-build -W --keep-going -q -b html -d "$out/.doctrees" doc/api "$out"
missing=$(anchors | while read -r id; do
	grep -q "id=\"$id\"" "$out"/*.html || echo "$id"
done)
[ -z "$missing" ] || die "not in the pages:" "${missing//$'\n'/ }"
echo "$out/index.html"
