# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What the report.awk of the benchmarks share: reading the figures, and lines of Markdown.
BEGIN { FS = "\t" }

$4 == "environment" {
	environment[++nr_environment] = $5 ": " $7
	next
}

{ value[$1, $2, $3, $4, $5] = $7 }

function get(rig, l, n, s, metric) {
	return (rig, l, n, s, metric) in value ? value[rig, l, n, s, metric] : ""
}

# Three digits are what such figures are worth.
function figure(v) {
	return v == "" ? "–" : v >= 100 || v == int(v) ? sprintf("%.0f", v) : sprintf("%.1f", v)
}

function print_environment(	i) {
	for (i = 1; i <= nr_environment; i++)
		print "* " environment[i]
}

function goals_begin() {
	print "\n## The numbers to reach\n"
	print "| | at most | measured | |"
	print "|---|--:|--:|---|"
}

function goal(what, v, limit, unit) {
	if (v != "")
		printf "| %s | %s%s | %s%s | %s |\n", what, limit, unit,
			v < 10 && v != int(v) ? sprintf("%.2f", v) : figure(v), unit, v + 0 <= limit + 0 ? "reached" : "**missed**"
}
