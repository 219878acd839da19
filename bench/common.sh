# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash
# What the run.sh of the benchmarks share; sourced after scripts/lib.sh.
#
# A benchmark is made of parts, which are functions that print figures: tab-separated rig,
# workload, n, subject, metric, unit, value. A part is measured again or is that of the last
# run.

# A line of the report's head.
row() { printf 'native\t-\t0\tenvironment\t%s\ttext\t%s\n' "$1" "$2"; }

source_id() { git -c safe.directory='*' describe --always --dirty 2>/dev/null || echo unknown; }

host() {
	row processor "$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1), $1 of $(nproc)"
	row compiler "$(gcc --version | head -n 1), -O2"
	row source "$(source_id)"
	row load "$(cut -d ' ' -f 1-3 /proc/loadavg) when it began"
	row date "$(date -u +%Y-%m-%d)"
}

# wanted PART: is it, or a part that ONLY names the beginning of?
wanted() {
	local word

	for word in ${ONLY:-$1}; do
		case $1 in
		"$word" | "$word"-*) return ;;
		esac
	done
	return 1
}

# measure DIR TSV PART...: each PART into a file in DIR, and all of them into TSV.
measure() {
	local dir=$1 tsv=$2 part

	shift 2
	mkdir -p "$dir"
	for part; do
		wanted "$part" || continue
		{
			[ -z "${ONLY:-}" ] || row "$part" "measured apart, $(source_id), $(date -u +%Y-%m-%d)"
			"$part"
		} >"$dir/$part.new"
		mv "$dir/$part.new" "$dir/$part.tsv"
	done
	for part; do
		[ ! -e "$dir/$part.tsv" ] || cat "$dir/$part.tsv"
	done >"$tsv"
}

# figures RIG: of what a machine printed; the rest is for people.
figures() {
	awk -v rig="$1" -F '\t' -v OFS='\t' '
		NF == 6 { print rig, $0; fflush(); next }
		{ print > "/dev/stderr" }'
}
