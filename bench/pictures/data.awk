# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk and life.awk, data.awk FILE.tsv: the figures of a benchmark as gnuplot reads them.
#
# Each series is a block of lines "x value" below a comment with its name, which is
#
#	RIG WORKLOAD SUBJECT METRIC:	x is the number of timers; the value is the median
#
# A metric NAME-NUMBER is a point of a curve: of these NAME is the metric, and x the NUMBER. "life"
# is the whole of a timer's life. The first line says what was measured, and when: "# note TEXT".

function point(rig, workload, subject, metric, x, v,	name) {
	name = rig " " workload " " subject " " metric
	if (!(name in points))
		order[++nr_order] = name
	points[name] = points[name] x "\t" v "\n"
}

# A subject's point of the metrics that are there.
function points_of(k,	f) {
	split(k, f, SUBSEP)
	if (match(f[5], /-[0-9]+$/))
		point(f[1], f[2], f[4], substr(f[5], 1, RSTART - 1), substr(f[5], RSTART + 1), value[k])
	else
		point(f[1], f[2], f[4], f[5], f[3], value[k])
	if (f[5] == "create" && life(f[1], "dense", f[3], f[4]) != "") {
		point(f[1], "dense", f[4], "life", f[3], life(f[1], "dense", f[3], f[4]))
		if (life(f[1], "timeout", f[3], f[4]) != "")
			point(f[1], "timeout", f[4], "life", f[3], life(f[1], "timeout", f[3], f[4]))
	}
}

{
	k = key($1, $2, $3, $4, $5)
	if (k in value && !(k in is_listed)) {
		is_listed[k] = 1
		listed[++nr_listed] = k
	}
}

# What the parts have in common, and if they do not, what the first one has.
function fact(name,	i) {
	for (i = 1; i <= nr_parts; i++)
		if ((name, part[i]) in env)
			return env[name, part[i]]
	return "unknown"
}

END {
	for (i = 1; i <= nr_listed; i++)
		points_of(listed[i])
	printf "# note commit %s; %s\n\n\n", fact("commit"), fact("kernel")
	for (i = 1; i <= nr_order; i++)
		printf "# %s\n%s\n\n", order[i], points[order[i]]
}
