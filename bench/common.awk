# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# What the report.awk of the benchmarks share: reading the figures, and lines of Markdown.
#
# A figure is the median of its repetitions. Its spread is given by two of the repetitions, between
# which the true median lies with a probability of some 95 %. If there are few repetitions, these
# two are the least and the most.
BEGIN {
	FS = "\t"
	ANY = 1e99	# as large as can be
}

# Of the part $2: what it was measured with.
$4 == "environment" {
	if (!($5 in env_known)) {
		env_known[$5] = 1
		env_key[++nr_env] = $5
	}
	if (!($2 in part_known)) {
		part_known[$2] = 1
		part[++nr_parts] = $2
	}
	env[$5, $2] = $7
	next
}

$6 != "text" { take($1 SUBSEP $2 SUBSEP $3 SUBSEP $4 SUBSEP $5, $6, $7) }

function take(key, of, list,	v, n, i, k, x, out) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (k = i - 1; k > 0 && v[k] + 0 > x + 0; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	out = int((n - 2 * sqrt(n)) / 2)
	out = out > 0 ? out : 0
	value[key] = v[int(n / 2) + 1]
	low[key] = v[1 + out]
	high[key] = v[n - out]
	runs[key] = n
	unit[key] = of
}

function key(rig, l, n, s, metric) { return rig SUBSEP l SUBSEP n SUBSEP s SUBSEP metric }

function get(rig, l, n, s, metric) {
	return (rig, l, n, s, metric) in value ? value[rig, l, n, s, metric] : ""
}

function abs(v) { return v < 0 ? -v : v }

# Three digits are what such figures are worth.
function figure(v) {
	return v == "" ? "–" : abs(v) >= 100 || v == int(v) ? sprintf("%.0f", v) : sprintf("%.1f", v)
}

# How far off the figure may be, to the farther side.
function spread_of(k,	below, above) {
	if (!(k in value) || runs[k] < 2)
		return ""
	below = value[k] - low[k]
	above = high[k] - value[k]
	return above > below ? above : below
}

# A figure as a cell, with its spread if there is one.
function cell(rig, l, n, s, metric,	k, spread) {
	k = key(rig, l, n, s, metric)
	spread = spread_of(k)
	return figure(get(rig, l, n, s, metric)) (spread > 0 ? " ±" figure(spread) : "")
}

# A line for each fact about the environment; if the parts differ, a line for each part.
function print_environment(	i, k, j, same, seen, text) {
	for (i = 1; i <= nr_env; i++) {
		same = 1
		text = ""
		for (k = 1; k <= nr_parts; k++) {
			if (!((env_key[i], part[k]) in env))
				continue
			if (text != "" && env[env_key[i], part[k]] != text)
				same = 0
			text = env[env_key[i], part[k]]
		}
		if (same) {
			print "* " env_key[i] ": " text
			continue
		}
		for (k = 1; k <= nr_parts; k++)
			if ((env_key[i], part[k]) in env)
				print "* " env_key[i] ", " part[k] ": " env[env_key[i], part[k]]
	}
}

# ---- goals -----------------------------------------------------------------------------

function goals_begin() {
	print "\n## The numbers to reach\n"
	print "A goal that lies within the spread of what was measured is neither reached nor missed: it is"
	print "inside the noise. A time of which there is but one value has no spread, and is not judged. What is"
	print "counted is taken as exact.\n"
}

function goals_head() {
	print "| | at most | measured | |"
	print "|---|--:|--:|---|"
}

function number(v) { return abs(v) < 10 && v != int(v) ? sprintf("%.2f", v) : figure(v) }

# A figure that is near its limit has as many digits as it takes to tell them apart.
function beside_limit(v, limit,	text, digits) {
	text = number(v)
	for (digits = 3; text + 0 == limit + 0 && v + 0 != limit + 0 && digits < 6; digits++)
		text = sprintf("%." digits "f", v)
	return text
}

function judged(from, to, limit, once) {
	return once ? "one value" : to + 0 <= limit + 0 ? "reached" : from + 0 > limit + 0 ? "**missed**" : "inside the noise"
}

function with_spread(v, from, to, limit, unit) {
	return beside_limit(v, limit) unit (from == to ? "" : " (" number(from) " … " (to == ANY ? "∞" : number(to)) ")")
}

# goal WHAT, FIGURE, LIMIT, UNIT[, FROM, TO, ONCE]: it is exact unless its spread is given, or ONCE
function goal(what, v, limit, unit, from, to, once) {
	if (v == "")
		return
	if (from == "")
		from = to = v
	printf "| %s | %s%s | %s | %s |\n", what, limit, unit, with_spread(v, from, to, limit, unit), judged(from, to, limit, once)
}

function is_once(k) { return runs[k] == 1 && unit[k] ~ /^[num]?s$/ }

function goal_of(what, k, limit, unit) {
	if (k in value)
		goal(what, value[k], limit, unit, low[k], high[k], is_once(k))
}

# The ratio of two figures: into ratio_is, and its spread into ratio_low and ratio_high. If the other
# may be nothing, the ratio may be anything. There is none if one of the two is below nothing, which
# is possible if a rest is subtracted: then the noise is larger than what was measured.
function ratio(a, b) {
	ratio_is = ratio_low = ratio_high = ratio_once = ""
	if (!(a in value) || !(b in value) || value[b] <= 0 || value[a] < 0)
		return 0
	ratio_is = value[a] / value[b]
	ratio_low = low[a] / high[b]
	ratio_high = low[b] > 0 ? high[a] / low[b] : ANY
	ratio_once = is_once(a) || is_once(b)
	return 1
}

function goal_ratio(what, a, b, limit) {
	if (ratio(a, b))
		goal(what, ratio_is, limit, "", ratio_low, ratio_high, ratio_once)
}

# ---- goals at each n -----------------------------------------------------------------------
#
# each_head() begins the table. A goal is a row: each_begin(), each() for every n of the table, and
# each_end(). The row says where the goal is missed; one that has no figure at all is not printed.

function each_head(list,	i, line, rule) {
	nr_each = split(list, each_size, " ")
	line = "| n = | goal |"
	rule = "|---|--:|"
	for (i = 1; i <= nr_each; i++) {
		line = line " " each_size[i] " |"
		rule = rule "--:|"
	}
	print line " |\n" rule "---|"
}

# With @least the figures must be at least @limit, and not at most.
function each_begin(what, limit, least) {
	each_limit = limit
	each_least = least
	each_line = "| " what " | " (least ? "≥ " : "≤ ") limit " |"
	split("", each_where)
}

# The goal at @n; like goal(), it is exact unless its spread is given, or @once.
function each(n, v, from, to, once,	verdict, text) {
	if (v == "") {
		each_line = each_line " – |"
		return
	}
	if (from == "")
		from = to = v
	verdict = each_least ? judged(-to, -from, -each_limit, once) : judged(from, to, each_limit, once)
	text = with_spread(v, from, to, each_limit, "")
	each_line = each_line " " (verdict ~ /missed/ ? "**" text "**" : text) " |"
	each_where[verdict] = each_where[verdict] (each_where[verdict] == "" ? "" : ", ") n
}

function each_ratio(n, a, b) {
	ratio(a, b)
	each(n, ratio_is, ratio_low, ratio_high, ratio_once)
}

function each_end(	i, nr, verdicts, text, some) {
	nr = split("**missed**;inside the noise;one value;reached", verdicts, ";")
	for (i = 1; i <= nr; i++)
		if (verdicts[i] in each_where) {
			some++
			text = text (text == "" ? "" : "; ") verdicts[i] " at " each_where[verdicts[i]]
		}
	if (!some)
		return
	if (some == 1)
		sub(/ at .*/, "", text)
	print each_line " " text " |"
}
