# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk: what a timer's life costs, from the figures of `make bench-user`. The report and
# the pictures use it.
#
# A life is create, arm, expire, collect and close. If a workload has not measured one of these,
# since it would be the same as that of dense, the figure of dense is used.
BEGIN {
	of_way["sparse"] = "expire collect"
	of_way["single"] = "arm rearm cancel expire collect"
	of_way["timeout"] = "arm wait"
}

function whole(v) {
	v = v == "" ? "–" : sprintf("%.0f", v)
	return v == "-0" ? "0" : v
}

# The workload that an operation of a life is measured in.
function measured_in(way, op) {
	if (way == "dense" || index(" " of_way[way] " ", " " op " "))
		return way
	return op == "create" || op == "close" || (op == "arm" && way == "sparse") ? "dense" : ""
}

function part_of(rig, way, n, s, op,	w) {
	w = measured_in(way, op)
	return w == "" ? "" : get(rig, w, n, s, op)
}

# The whole of a timer's life: the sum of what the cells say.
function life(rig, way, n, s,	i, nr, op, sum) {
	nr = split(way == "timeout" ? "create arm wait close" : "create arm expire collect close", op, " ")
	for (i = 1; i <= nr; i++) {
		if (part_of(rig, way, n, s, op[i]) == "")
			return ""
		sum += whole(part_of(rig, way, n, s, op[i]))
	}
	return sum
}

# At most so far off is a whole life: the sum of the spreads of its parts.
function life_spread(rig, way, n, s,	i, nr, op, w, sum) {
	nr = split(way == "timeout" ? "create arm wait close" : "create arm expire collect close", op, " ")
	for (i = 1; i <= nr; i++) {
		w = measured_in(way, op[i])
		sum += spread_of(key(rig, w, n, s, op[i]))
	}
	return sum
}
