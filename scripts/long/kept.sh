#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# kept.sh NAME COMMAND...: run COMMAND, which measures a table of doc/ part by part into build/NAME. Each
# part has the files *.tsv and *.facts there. All parts of the matrix take half a day, so they may be
# measured on several days, or machines. With DOC= the parts are kept in doc/data/NAME. If a part was not
# measured here, the one in doc/data/NAME is used.
. "$(dirname "$0")/../lib.sh"
cd "$top"

from=doc/data/$1 to=build/$1
shift
mkdir -p "$to"
for facts in "$from"/*.facts; do
	part=${facts##*/}
	[ ! -e "$facts" ] || [ -e "$to/$part" ] || cp "${facts%.facts}.tsv" "$facts" "$to"
done
status=0
"$@" || status=$?
if [ -n "${DOC:-}" ]; then
	rm -rf "$from"
	mkdir -p "$from"
	for facts in "$to"/*.facts; do
		cp "${facts%.facts}.tsv" "$facts" "$from"
	done
fi
exit $status
