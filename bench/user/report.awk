# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk and life.awk, report.awk FILE.tsv: the figures of `make bench-user` as Markdown.
BEGIN {
	nr_ways = split("dense sparse single timeout", ways, " ")
	title["dense"] = "dense"
	title["sparse"] = "sparse"
	title["single"] = "one at a time"
	title["timeout"] = "waited for"
}

$2 == "dense" && !(($1, $3) in sized) {
	sized[$1, $3] = 1
	size[$1, ++nr_sizes[$1]] = $3
}

$2 == "wakes" && !(($1, $3) in wake_sized) {
	wake_sized[$1, $3] = 1
	wake_size[$1, ++nr_wake_sizes[$1]] = $3
}

($2 == "dense" || $2 == "wakes" || $2 == "periodic") && !($4 in known) {
	known[$4] = 1
	subject[++nr_subjects] = $4
}

$5 == "missing" && !(($1, $2, $3, $4) in lacking) {
	lacking[$1, $2, $3, $4] = $7
	lack[++nr_lacks] = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
}

$2 == "limit" && !(($4, $5) in limited) {
	limited[$4, $5] = 1
	limit[++nr_limits] = "| " $4 " | " $5 " | " $7 " |"
}

function whole_cell(rig, way, n, s, op,	w, k, spread) {
	w = measured_in(way, op)
	k = key(rig, w, n, s, op)
	if (w == "" || !(k in value))
		return "–"
	spread = spread_of(k)
	return whole(value[k]) (spread >= 0.5 ? " ±" whole(spread) : "")
}

function life_row(rig, way, n, s, last,	i, line) {
	if (life(rig, way, n, s) == "")
		return
	line = "| " s " |"
	for (i = 1; i <= last; i++)
		line = line " " whole_cell(rig, way, n, s, column[i]) " |"
	i = life_spread(rig, way, n, s)
	print line " " life(rig, way, n, s) (i >= 0.5 ? " ±" whole(i) : "") " |"
}

function life_table(rig, way, n,	i, nr) {
	if (life(rig, way, n, "twheel") == "")
		return
	nr = split(way == "timeout" ? "create arm wait close" : "create arm rearm cancel expire collect close", column, " ")
	printf "\n### n = %d, %s\n\n|", n, title[way]
	for (i = 1; i <= nr; i++)
		printf " | %s", column[i] == "rearm" ? "re-arm" : column[i]
	printf " | a life |\n|---"
	for (i = 1; i <= nr + 1; i++)
		printf "|--:"
	print "|"
	for (i = 1; i <= nr_subjects; i++)
		life_row(rig, way, n, subject[i], nr)
}

function life_tables(rig, heading,	i, k) {
	if (!nr_sizes[rig])
		return
	print "\n## " heading
	for (i = 1; i <= nr_sizes[rig]; i++)
		for (k = 1; k <= nr_ways; k++)
			life_table(rig, ways[k], size[rig, i])
}

# ---- beside each other --------------------------------------------------------------------

# The most of @way's sizes up to 10^5, of which all workloads are.
function main_size(rig,	i, n) {
	for (i = 1; i <= nr_sizes[rig]; i++)
		if (size[rig, i] <= 100000)
			n = size[rig, i]
	return n
}

function besides_row(rig, n, what, way, op,	i, v, line, some) {
	line = "| " what " |"
	for (i = 1; i <= nr_subjects; i++) {
		v = op == "life" ? life(rig, way, n, subject[i]) : get(rig, way, n, subject[i], op)
		some = some v
		line = line " " whole(v) " |"
	}
	if (some != "")
		print line
}

function besides(rig,	n, i, line, rule) {
	n = main_size(rig)
	if (!n)
		return
	printf "\n## Beside each other, instructions a timer, n = %d\n\n", n
	line = "| |"
	rule = "|---|"
	for (i = 1; i <= nr_subjects; i++) {
		line = line " " subject[i] " |"
		rule = rule "--:|"
	}
	print line "\n" rule
	besides_row(rig, n, "arm, in batches", "dense", "arm")
	besides_row(rig, n, "arm, one at a time", "single", "arm")
	besides_row(rig, n, "re-arm, in batches", "dense", "rearm")
	besides_row(rig, n, "re-arm, one at a time", "single", "rearm")
	besides_row(rig, n, "cancel, in batches", "dense", "cancel")
	besides_row(rig, n, "cancel, one at a time", "single", "cancel")
	for (i = 1; i < nr_ways; i++)
		besides_row(rig, n, "expire, " title[ways[i]], ways[i], "expire")
	for (i = 1; i < nr_ways; i++)
		besides_row(rig, n, "collect, " title[ways[i]], ways[i], "collect")
	besides_row(rig, n, "expire, wake up and collect, waited for", "timeout", "wait")
	for (i = 1; i <= nr_ways; i++)
		besides_row(rig, n, "**a life, " title[ways[i]] "**", ways[i], "life")
}

# From the least to the most, over all sizes up to 10^5, of what a life of @s costs for each of
# twheel's. Kept in range_from and range_to for the range of ranges.
function range_over(rig, way, s,	i, n, a, b, v, from, to) {
	for (i = 1; i <= nr_sizes[rig]; i++) {
		n = size[rig, i]
		a = life(rig, way, n, s)
		b = life(rig, way, n, "twheel")
		if (n > 100000 || a == "" || b == "" || b <= 0)
			continue
		v = a / b
		if (from == "" || v < from)
			from = v
		if (to == "" || v > to)
			to = v
	}
	if (from == "")
		return "–"
	if (range_from == "" || from < range_from)
		range_from = from
	if (range_to == "" || to > range_to)
		range_to = to
	return from == to ? number(from) : number(from) " … " number(to)
}

function ranges(rig,	i, k, line) {
	if (!nr_sizes[rig])
		return
	print "\n## In short\n"
	print "What a life of a timer costs for each of /dev/twheel\047s, in instructions, from the least to the most"
	print "over n = 10^3 to 10^5. Below 1 /dev/twheel is the dearer one.\n"
	line = "| |"
	for (k = 1; k <= nr_ways; k++)
		line = line " " title[ways[k]] " |"
	print line " all |\n|---|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		if (subject[i] == "twheel")
			continue
		range_from = range_to = ""
		line = "| " subject[i] " |"
		for (k = 1; k <= nr_ways; k++)
			line = line " " range_over(rig, ways[k], subject[i]) " |"
		if (range_from != "")
			print line " " number(range_from) " … " number(range_to) " |"
	}
}

# ---- periodic timers ------------------------------------------------------------------------

$2 == "periodic" && !(($1, $3) in periodic_sized) {
	periodic_sized[$1, $3] = 1
	periodic_size[$1, ++nr_periodic_sizes[$1]] = $3
}

function periodic_cell(rig, n, s,	expire, collect) {
	expire = get(rig, "periodic", n, s, "expire")
	collect = get(rig, "periodic", n, s, "collect")
	if (expire == "")
		return lacking[rig, "periodic", n, s] ~ /later kernel/ ? "needs Linux 6.4" : "–"
	return whole(expire) " + " whole(collect) " = " whole(expire) + whole(collect)
}

function periodic_table(rig, heading,	i, k, line) {
	if (!nr_periodic_sizes[rig])
		return
	print "\n### " heading "\n"
	head(rig, "n =", periodic_size, nr_periodic_sizes)
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " subject[i] " |"
		for (k = 1; k <= nr_periodic_sizes[rig]; k++)
			line = line " " periodic_cell(rig, periodic_size[rig, k], subject[i]) " |"
		if (subject[i] !~ /-ms$/)
			print line
	}
}

# ---- memory and wake-ups --------------------------------------------------------------------

function memory_row(rig, metric, s,	i, line, some) {
	line = "| " s " |"
	for (i = 1; i <= nr_sizes[rig]; i++) {
		some = some get(rig, "dense", size[rig, i], s, metric)
		line = line " " cell(rig, "dense", size[rig, i], s, metric) " |"
	}
	if (some != "")
		print line
}

# head PREFIX, SIZES: the head of a table with a column for each size
function head(rig, first, sizes, nr,	i, line, rule) {
	line = "| " first " |"
	rule = "|---|"
	for (i = 1; i <= nr[rig]; i++) {
		line = line " " sizes[rig, i] " |"
		rule = rule "--:|"
	}
	print line "\n" rule
}

function memory_table(rig, metric, heading,	i) {
	if (!nr_sizes[rig])
		return
	print "\n" heading "\n"
	head(rig, "n =", size, nr_sizes)
	for (i = 1; i <= nr_subjects; i++)
		memory_row(rig, metric, subject[i])
}

function wake_table(rig, heading,	i, k, line) {
	if (!nr_wake_sizes[rig])
		return
	print "\n" heading "\n"
	head(rig, "timers in the tick", wake_size, nr_wake_sizes)
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " subject[i] " |"
		for (k = 1; k <= nr_wake_sizes[rig]; k++)
			line = line " " cell(rig, "wakes", wake_size[rig, k], subject[i], "wake-ups") " |"
		print line
	}
}

# The key of twheel's figure that is the greatest, and in most_wakes_n the number of timers.
function most_wakes(rig,	i, k, most) {
	for (i = 1; i <= nr_wake_sizes[rig]; i++) {
		k = key(rig, "wakes", wake_size[rig, i], "twheel", "wake-ups")
		if (k in value && (most == "" || value[k] + 0 > value[most] + 0)) {
			most = k
			most_wakes_n = wake_size[rig, i]
		}
	}
	return most
}

# ---- goals ------------------------------------------------------------------------------------

function quotient(theirs, ours) { return theirs == "" || ours == "" || ours <= 0 ? "" : theirs / ours }

# How many times as much theirs takes, at each n.
function life_goal(way, other, times,	i, n) {
	each_begin("a life, " title[way] ": " other, times, 1)
	for (i = 1; i <= nr_each; i++) {
		n = each_size[i]
		each(n, quotient(life("icount", way, n, other), life("icount", way, n, "twheel")))
	}
	each_end()
}

# The same of an operation; @also is one more of theirs that belongs to it.
function metric_goal(what, way, op, other, times, also,	i, n, theirs) {
	each_begin(what ": " other, times, 1)
	for (i = 1; i <= nr_each; i++) {
		n = each_size[i]
		theirs = get("icount", way, n, other, op)
		if (theirs != "" && also != "")
			theirs += get("icount", way, n, other, also)
		each(n, quotient(theirs, get("icount", way, n, "twheel", op)))
	}
	each_end()
}

function set_goals() {
	at_least["timerfd", "dense"] = 25; at_least["posix", "dense"] = 10; at_least["io_uring", "dense"] = 5
	at_least["timerfd", "sparse"] = 8; at_least["posix", "sparse"] = 4; at_least["io_uring", "sparse"] = 2
	at_least["timerfd", "single"] = 4; at_least["posix", "single"] = 2; at_least["io_uring", "single"] = 1
	at_least["timerfd", "timeout"] = at_least["posix", "timeout"] = at_least["io_uring", "timeout"] = 1
}

function life_goals(way,	i, nr, peer) {
	nr = split("timerfd posix io_uring", peer, " ")
	for (i = 1; i <= nr; i++) {
		life_goal(way, peer[i], at_least[peer[i], way])
		life_goal(way, peer[i] "-ms", at_least[peer[i], way])
	}
}

# Beside a subject, and beside the same with deadlines of whole ms.
function metric_goals(what, way, op, other, times, also) {
	metric_goal(what, way, op, other, times, also)
	metric_goal(what, way, op, other "-ms", times, also)
}

function memory_goal(	i) {
	each_begin("kernel memory, bytes a timer", 65)
	for (i = 1; i <= nr_each; i++)
		each(each_size[i], get("icount", "dense", each_size[i], "twheel", "memory"))
	each_end()
}

function wakes_goal(what, rig,	k) {
	k = most_wakes(rig)
	goal_of("wake-ups a tick, " what ", the most of all: " most_wakes_n " timers in the tick", k, 1, "")
}

function goals(	i, list, nr, peer) {
	goals_begin()
	print "How many times as much each of the others takes, at each n, and at the end the memory of a timer."
	print "Where a goal is missed the figure is bold. From build to build the expiry of timers that come one at"
	print "a time differs by hundreds of instructions.\n"
	set_goals()
	for (i = 1; i <= nr_sizes["icount"]; i++)
		list = list " " size["icount", i]
	each_head(list)
	for (i = 1; i <= nr_ways; i++)
		life_goals(ways[i])
	for (i = 1; i < nr_ways; i++)
		metric_goals("expire, " title[ways[i]], ways[i], "expire", "timerfd", 1)
	nr = split("timerfd posix io_uring", peer, " ")
	for (i = 1; i <= nr; i++)
		metric_goals("the wait alone, " title["timeout"], "timeout", "wait", peer[i], 1)
	metric_goals("random cancel", "dense", "cancel", "io_uring", 500)
	metric_goals("random cancel, and theirs is closed too", "dense", "cancel", "timerfd", 10, "close")
	metric_goals("random cancel, and theirs is kept", "dense", "cancel", "timerfd", 10)
	metric_goals("re-arm in batches", "dense", "rearm", "timerfd", 5)
	metric_goals("re-arm one at a time", "single", "rearm", "timerfd", 1)
	memory_goal()
	print ""
	goals_head()
	wakes_goal("counting instructions", "icount")
	wakes_goal("in time", "tcg")
}

# What a subject could not do, unless there are figures of just that.
function lacks(	i, f, nr) {
	for (i = 1; i <= nr_lacks; i++) {
		split(lack[i], f, SUBSEP)
		if (get(f[1], f[2], f[3], f[4], "expire") != "" || lacking[lack[i]] ~ /later kernel/)
			continue
		if (!nr++)
			print "\n## What was not possible\n\n| | | n | | |\n|---|---|--:|---|---|"
		print "| " f[1] " | " f[2] " | " f[3] " | " f[4] " | " lacking[lack[i]] " |"
	}
}

function limits(	i) {
	if (!nr_limits)
		return
	print "\n## Limits\n"
	print "What had to be raised, as root, for these numbers of timers, and what it was in this guest."
	print "After that memory is the limit, of all of them.\n"
	print "| | limit | was |"
	print "|---|---|--:|"
	for (i = 1; i <= nr_limits; i++)
		print limit[i]
}

END {
	print "# /dev/twheel beside other timers for processes"
	print ""
	print "Written by `bench/user/report.awk`, not by hand. What is measured, and how, is said in"
	print "`bench/user/main.c`, and how each subject is used at the head of its file beside it. `-ms` are"
	print "deadlines of whole ms, as those of /dev/twheel are. `libevent` is a heap in user space behind one"
	print "timerfd, `libevent-common` its queues for delays that are rounded."
	print ""
	print "* dense: 100 timers fire in each ms, and are collected when 4096 are due"
	print "* sparse: of n that are armed some fire, 600 µs apart on the average, collected when 4096 are due; create,"
	print "  arm and close are those of dense"
	print "* one at a time: each in a ms of its own, every 2 ms; a call for each, and each collected by itself; create"
	print "  and close are those of dense"
	print "* waited for: armed 60 to 120 s ahead, to fire; the process sleeps, and its waking up is counted;"
	print "  create and close are those of dense"
	print ""
	print_environment()
	print "\n![What a timer\047s life costs](pictures/user-cost.svg)"
	ranges("icount")
	if (life("icount", "timeout", main_size("icount"), "twheel") != "")
		print "\n![The same, if the process sleeps until the timer fires](pictures/user-waited.svg)"
	besides("icount")
	print "\nA cancel of twheel frees the timer; timerfd\047s does with close() only."
	goals()
	life_tables("icount", "Instructions a timer")
	life_tables("tcg", "Times, ns a timer")
	print "\nMedians and their spread, in a virtual machine without hardware acceleration: ratios mean"
	print "something. The spread of a life is the sum of those of its parts. What is taken from a loop that does"
	print "nothing may be negative, if it is less than what comes by chance."
	if (nr_periodic_sizes["icount"] nr_periodic_sizes["multishot"] != "") {
		print "\n## Periodic timers, instructions each time one fires\n"
		print "Expiry and collecting. io_uring\047s are multishot timeouts, which drift: each period begins when the"
		print "last one was handled."
		periodic_table("icount", "As above")
		periodic_table("multishot", "Linux 6.12")
	}
	print "\n## Memory, bytes a timer\n"
	print "![Memory of the kernel, bytes a timer](pictures/user-memory.svg)"
	memory_table("icount", "memory", "The kernel\047s, all timers armed. With few of them it is that of the descriptor or ring:")
	memory_table("icount", "user-memory", "The process\047s:")
	print "\n## Wake-ups\n"
	print "How often a waiting process is woken up for the timers that are due at random times within one"
	print "tick of 1 ms."
	wake_table("icount", "Where an instruction is a ns:")
	wake_table("tcg", "In time:")
	limits()
	lacks()
}
