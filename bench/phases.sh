# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# shellcheck shell=bash
# Instructions counted by callgrind, for the benchmarks in user space.

# phases OUT PROGRAM...: for each function phase_NAME of PROGRAM, NAME and the instructions in it.
# What PROGRAM prints is for people.
phases() {
	local file=$1/callgrind

	shift
	valgrind -q --tool=callgrind --callgrind-out-file="$file" --toggle-collect='phase_*' "$@" >&2
	callgrind_annotate --inclusive=yes --threshold=100 "$file" | awk -v OFS='\t' '
		match($0, /:phase_[a-z]+/) {
			what = substr($0, RSTART + 7, RLENGTH - 7)
			gsub(",", "", $1)
			print what, $1
		}'
}
