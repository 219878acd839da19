# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash
# What the run.sh of the benchmarks share; sourced after scripts/lib.sh, in the tree's directory.
#
# A benchmark is made of parts, which are functions that print figures: tab-separated rig,
# workload, n, subject, metric, unit, and the value of each repetition. If a part is not measured
# again, its figures are those of the last run. The function "environment", which finds the name of
# the part in $part, prints in what environment the part was measured. If the tree has changes that
# are not committed, no document is written.

# A line of the environment.
row() { printf 'native\t%s\t0\tenvironment\t%s\ttext\t%s\n' "$part" "$1" "$2"; }

host() {
	row processor "$(processor), $1 of $(nproc)"
	row compiler "$(gcc --version | head -n 1), -O2"
	row commit "$(source_id), $(date -u +%Y-%m-%d)"
	row load "$(cut -d ' ' -f 1-3 /proc/loadavg) when it began"
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
			environment
			"$part"
		} >"$dir/$part.new"
		mv "$dir/$part.new" "$dir/$part.tsv"
	done
	for part; do
		[ ! -e "$dir/$part.tsv" ] || cat "$dir/$part.tsv"
	done >"$tsv"
}

# report AWK... TSV: to stdout, and to the file DOC if it is all of committed sources. With DOC the
# figures are kept in doc/data, and the pictures drawn from them.
report() {
	local tsv=${!#} file programs=(-f bench/common.awk)

	for file in "${@:1:$#-1}"; do
		programs+=(-f "$file")
	done
	awk "${programs[@]}" "$tsv" >"$tsv.md"
	cat "$tsv.md"
	[ -n "${DOC:-}" ] || return 0
	document "$DOC" <"$tsv.md"
	mkdir -p doc/data
	cp "$tsv" doc/data
	bench/pictures/draw.sh "doc/data/${tsv##*/}"
}

# medians: of figures on stdin, which have a line for each boot: a line with the median of each boot
medians() {
	awk -f bench/common.awk -f <(cat <<-'EOF'
		BEGIN { OFS = FS }
		{
			figure_of = $1 FS $2 FS $3 FS $4 FS $5 FS $6
			if (!(figure_of in medians))
				order[++nr_figures] = figure_of
			else
				medians[figure_of] = medians[figure_of] " "
			medians[figure_of] = medians[figure_of] value[$1, $2, $3, $4, $5]
		}
		END {
			for (i = 1; i <= nr_figures; i++)
				print order[i], medians[order[i]]
		}
	EOF
	)
}

# figures RIG: of what a machine printed; the rest is for people.
figures() {
	awk -v rig="$1" -F '\t' -v OFS='\t' '
		NF == 6 { print rig, $0; fflush(); next }
		{ print > "/dev/stderr" }'
}
