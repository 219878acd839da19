#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# draw.sh [TSV...]: draw the pictures of doc/pictures from the figures in doc/data; `make
# pictures`. The picture NAME is drawn by NAME.gp, beside this script. NAME begins with the name of
# the benchmark: kernel-* are drawn from doc/data/bench-kernel.tsv.
#
# A benchmark that writes its document (DOC=) writes its figures to doc/data, too, and calls this. If
# the figures lack a workload that a picture shows, the picture stays as it is: NAME.gp lists the
# workloads that it needs.
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
cd "$top"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# lacks GP: the workloads that it needs and $tmp/data does not have
lacks() {
	local workload

	sed -n 's/^# Needs: //p' "$1" | sed 's/, /\n/g' | while read -r workload; do
		grep -q "^# $workload " "$tmp/data" || echo "$workload"
	done
}

draw() {
	local name=${1##*/} lacking

	name=${name%.gp}
	lacking=$(lacks "$1")
	if [ -n "$lacking" ]; then
		note "$name.svg stays as it is: the figures have nothing of" "${lacking//$'\n'/, }"
		return
	fi
	(cd bench/pictures && gnuplot -e "DATA = '$tmp/data'; NOTE = '$(sed -n 's/^# note //p' "$tmp/data")'" \
		"$name.gp") >"$tmp/$name.svg"
	mv "$tmp/$name.svg" "doc/pictures/$name.svg"
}

scripts/deps.sh pictures
mkdir -p doc/pictures
[ $# != 0 ] || set -- doc/data/bench-*.tsv
for tsv; do
	benchmark=$(basename "$tsv" .tsv)
	awk -f bench/common.awk -f bench/user/life.awk -f bench/pictures/data.awk "$tsv" >"$tmp/data"
	for picture in bench/pictures/"${benchmark#bench-}"-*.gp; do
		[ ! -e "$picture" ] || draw "$picture"
	done
done
