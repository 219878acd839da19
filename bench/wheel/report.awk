# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-wheel` as Markdown.
BEGIN {
	nr_metrics = split("add rearm cancel expire idle worst-advance late memory", metrics, " ")
}

$1 == "native" && !(($2, $3) in seen) {
	seen[$2, $3] = 1
	load[++nr_loads] = $2
	size[nr_loads] = $3
}

$1 == "native" && $5 == "most-moves" { moves_timers[$4] = 1 }

$1 == "native" && !($4 in known) {
	known[$4] = 1
	subject[++nr_subjects] = $4
}

$1 == "callgrind" && $5 == "add" && !($2 in counted) {
	counted[$2] = 1
	count_load[++nr_counts] = $2
}

function row(l, n, s,	i, line, some) {
	line = "| " s " |"
	for (i = 1; i <= nr_metrics; i++) {
		some = some get("native", l, n, s, metrics[i])
		line = line " " cell("native", l, n, s, metrics[i]) " |"
	}
	if (some != "")
		print line
}

function table(l, n,	i) {
	printf "\n### n = %d, %s\n\n", n,
		l == "hour" ? "all within one hour of 3600 ticks, a day ahead" : "delays of " l " ticks"
	print "| | add ns | re-arm ns | cancel ns | expire ns | idle ns | worst advance µs | late, ticks | bytes a timer |"
	print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++)
		row(l, n, subject[i])
}

function counts(l,	n, what, v, least, most, i, ops) {
	split("add cancel rearm expire", ops, " ")
	for (i = 1; i <= 4; i++) {
		printf "| %s, %s |", ops[i], l
		least = most = ""
		for (n = 1000; n <= 1000000; n *= 10) {
			v = get("callgrind", l, n, "wheel", ops[i])
			printf " %s |", figure(v)
			if (v == "")
				continue
			if (least == "" || v + 0 < least + 0)
				least = v
			if (most == "" || v + 0 > most + 0)
				most = v
		}
		printf " %.3f |\n", most / least
	}
}

function moves(	i, k, nr, who, line) {
	for (k = 1; k <= nr_subjects; k++)
		if (subject[k] in moves_timers)
			who[++nr] = subject[k]
	print "\n## Most moves in one tick\n"
	print "What a tick takes at worst, counted: the same in each run.\n"
	line = "| load | n |"
	for (k = 1; k <= nr; k++)
		line = line " " who[k] " |"
	print line
	gsub(/[^|]+/, "--:", line)
	sub(/--:/, "---", line)
	print line
	for (i = 1; i <= nr_loads; i++) {
		line = ""
		for (k = 1; k <= nr; k++)
			line = line " " get("native", load[i], size[i], who[k], "most-moves") " |"
		if (line ~ /[0-9]/)
			print "| " load[i] " | " size[i] " |" line
	}
}

function goals_of_load(l,	n) {
	for (n = 1000; n <= 10000000; n *= 10)
		goal_ratio("expire, " l " ticks, n = " n ", whole-bucket\047s = 1", key("native", l, n, "wheel", "expire"),
			key("native", l, n, "whole-bucket", "expire"), 1.1)
}

# Beside the wheel of another commit, in one run.
function goals_of_base(l, base) {
	goal_ratio("idle timeouts, 95 of 100 re-armed, n = 10^6, those of " base " = 1",
		key("native", l, 1000000, "wheel", "idle"), key("native", l, 1000000, base, "idle"), 0.5)
	goal_ratio("worst single advance, n = 10^6, that of " base " = 1", key("native", l, 1000000, "wheel", "worst-advance"),
		key("native", l, 1000000, base, "worst-advance"), 0.36)
	goal_ratio("worst single advance, n = 10^7, that of " base " = 1", key("native", l, 10000000, "wheel", "worst-advance"),
		key("native", l, 10000000, base, "worst-advance"), 0.42)
	goal_ratio("add, n = 10^6, that of " base " = 1", key("native", l, 1000000, "wheel", "add"),
		key("native", l, 1000000, base, "add"), 1.03)
	goal_ratio("random cancel, n = 10^6, that of " base " = 1", key("native", l, 1000000, "wheel", "cancel"),
		key("native", l, 1000000, base, "cancel"), 1.03)
}

function goals(	l, i, late) {
	l = "1..60000"
	goals_begin()
	goals_head()
	if (("base", "wheel") in env)
		goals_of_base(l, env["base", "wheel"])
	else
		print "| idle timeouts, worst single advance, add and cancel, those of an earlier commit = 1 | | not measured: needs BASE= | |"
	goal_of("worst single advance, n = 10^6", key("native", l, 1000000, "wheel", "worst-advance"), 4, " µs")
	goal_of("worst single advance, n = 10^7", key("native", l, 10000000, "wheel", "worst-advance"), 15, " µs")
	goals_of_load("1..60000")
	goals_of_load("1..1000000")
	goals_of_load("60000..120000")
	goal_of("add, n = 10^6", key("native", l, 1000000, "wheel", "add"), 8, " ns")
	goal_of("random cancel, n = 10^6", key("native", l, 1000000, "wheel", "cancel"), 16, " ns")
	goal("moves in one tick, n = 10^6 in one hour", get("native", "hour", 1000000, "wheel", "most-moves"), 800, "")
	for (i = 1; i <= nr_loads; i++)
		if (get("native", load[i], size[i], "wheel", "late") > late)
			late = get("native", load[i], size[i], "wheel", "late")
	goal_ratio("expire, 7 of 8 cancelled by a stride, n = 10^6, without = 1", key("native", l, 1000000, "wheel", "stride"),
		key("native", l, 1000000, "wheel", "few"), 1.3)
	goal("late, any load", late + 0, 0, " ticks")
}

END {
	print "# The wheel in user space"
	print ""
	print "Written by `bench/wheel/report.awk`, not by hand; what is measured, and how, is said in"
	print "`bench/wheel/main.c`, and of the peers in `dpdk.c` and `NettyWheel.java` beside it."
	print ""
	print_environment()
	goals()
	print "\n## Times\n"
	print "Nanoseconds a timer, medians and spread of five repetitions at least; from 10^6 timers on those that"
	print "are no wheel run once."
	print "Expiry goes tick by tick, so with few timers it is made of empty ticks. Delays of 60000..120000"
	print "ticks are timeouts of one to two minutes: to expire they are moved twice. `idle` are timeouts as"
	print "long as the longest delay, of which 95 % are put off before they are due, ns for each that is put"
	print "off or expires, with what the wheel does meanwhile. The worst advance is the least that was seen of"
	print "the worst tick; of those that ran once, it may be what the host did meanwhile. `whole-bucket` is the same wheel without pacing, `classic` a model of the hierarchical"
	print "wheel that most others are; `dpdk` and `netty` have clocks of their own, and `netty-slots` has a slot"
	print "for each tick of the longest delay."
	for (i = 1; i <= nr_loads; i++)
		table(load[i], size[i])
	moves()
	if (nr_counts) {
		print "\n## Instructions a timer, the wheel\n"
		print "| n = | 10^3 | 10^4 | 10^5 | 10^6 | most / least |"
		print "|---|--:|--:|--:|--:|--:|"
		for (i = 1; i <= nr_counts; i++)
			counts(count_load[i])
	}
}
