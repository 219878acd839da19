# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-lib` as Markdown.
BEGIN {
	nr_calls = split("add find mod cancel list-chunk", calls, " ")
	nr_spread = split("median p99.9 worst", spread, " ")
	nr_phases = split("first arm rearm cancel", phases, " ")
	nr_subjects = split("twheel twheel-one twheel-at libevent libevent-loop libuv", subjects, " ")
	LIMIT = 200
}

$2 == "sched" && !(($3, $4) in seen) {
	seen[$3, $4] = 1
	sched_n[++nr_scheds] = $3
	sched_of[nr_scheds] = $4
}

$2 == "1..60000" && !(($1, $3) in seen) {
	seen[$1, $3] = 1
	size[$1, ++nr_sizes[$1]] = $3
}

function us(v) { return v == "" ? "–" : sprintf(v < 100 ? "%.2f" : "%.0f", v) }

function sched_row(n, s, call,	i, line) {
	line = "| " call " |"
	for (i = 1; i <= nr_spread; i++)
		line = line " " us(get("native", "sched", n, s, call " " spread[i])) " |"
	print line " " us(get("native", "sched", n, s, call " worst of one run")) " |"
}

function sched_table(n, s,	i) {
	printf "\n### %d tasks, %s\n\n", n, s == "now" ? "this tree" : "commit " s
	print "| | median µs | p99.9 µs | worst µs | worst of one run µs |"
	print "|---|--:|--:|--:|--:|"
	for (i = 1; i <= nr_calls; i++)
		sched_row(n, s, calls[i])
	if (get("native", "sched", n, s, "wait median") == 0)
		return
	printf "\nWhile they are listed, which takes %s ms, another thread waits for a pair of calls at worst, the " \
		"median, least and most of all repetitions: %s, %s, %s µs.\n",
		us(get("native", "sched", n, s, "list median") / 1000), us(get("native", "sched", n, s, "wait median")),
		us(get("native", "sched", n, s, "wait least")), us(get("native", "sched", n, s, "wait most"))
}

function single_table(rig, n, unit,	i, j, line) {
	printf "\n### n = %d, %s\n\n", n, unit
	print "| | first | arm | re-arm | cancel |"
	print "|---|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " subjects[i] " |"
		for (j = 1; j <= nr_phases; j++)
			line = line " " cell(rig, "1..60000", n, subjects[i], phases[j]) " |"
		print line
	}
}

function tables(rig, unit,	i) {
	for (i = 1; i <= nr_sizes[rig]; i++)
		single_table(rig, size[rig, i], unit)
}

# What a subject of twheel takes, the other's being 1.
function goal_beside(rig, unit, phase, s, other,	i) {
	each_begin(phase ", " s " over " other ", " unit, 1)
	for (i = 1; i <= nr_each; i++)
		each_ratio(each_size[i], key(rig, "1..60000", each_size[i], s, phase), key(rig, "1..60000", each_size[i], other, phase))
	each_end()
}

# A subject of twheel and the one of libevent that knows as much of the time. libuv knows it, too, and
# guards its timers by no lock: it stands beside each of ours.
function goals_beside(rig, unit,	i) {
	for (i = 1; i <= nr_phases; i++) {
		goal_beside(rig, unit, phases[i], "twheel", "libevent")
		goal_beside(rig, unit, phases[i], "twheel-one", "libevent")
		goal_beside(rig, unit, phases[i], "twheel-at", "libevent-loop")
		goal_beside(rig, unit, phases[i], "twheel", "libuv")
		goal_beside(rig, unit, phases[i], "twheel-one", "libuv")
		goal_beside(rig, unit, phases[i], "twheel-at", "libuv")
	}
}

# From the worst of the least times of all repetitions to the worst of one of them.
function goal_of_worst(n, call,	v) {
	v = get("native", "sched", n, "now", call " worst")
	goal(sprintf("worst %s of %d tasks", call, n), v, LIMIT, " µs", v,
		get("native", "sched", n, "now", call " worst of one run"))
}

function goals(	i, j, list) {
	goals_begin()
	print "Below 1 twheel is the cheaper one. Where a goal is missed the figure is bold.\n"
	for (i = 1; i <= nr_sizes["native"]; i++)
		list = list " " size["native", i]
	each_head(list)
	goals_beside("native", "ns")
	goals_beside("callgrind", "instructions")
	print "\nThe worst call: of the least times that were seen of each, and in parentheses to that of a single run.\n"
	goals_head()
	for (i = 1; i <= nr_scheds; i++)
		for (j = 1; j <= nr_calls && sched_of[i] == "now"; j++)
			goal_of_worst(sched_n[i], calls[j])
}

END {
	print "# libtwheel beside others, and its scheduler at worst\n"
	print "Written by `bench/lib/report.awk`, not by hand. What is measured, and how, is said in\n" \
		"`bench/lib/sched.c` and `bench/lib/single.c`.\n"
	print_environment()
	goals()
	print "\n## The scheduler: the worst of each call\n"
	print "CPU time of each call, and of each piece of a list from the moment the lock is taken until it is\n" \
		"released. A call that the kernel interrupts is charged for that, and not the same one in each\n" \
		"repetition: so the worst is that of the least times seen of each. What the worst of a single\n" \
		"run is stands beside it."
	for (i = 1; i <= nr_scheds; i++)
		sched_table(sched_n[i], sched_of[i])
	print "\n## One timer at a time, by one thread\n"
	print "Delays of 1 to 60 000 ms, in random order; first is the first time, with the memory. twheel is the\n" \
		"embedded backend, twheel-one with TWHEEL_ONE_THREAD, twheel-at with deadlines besides. libevent\n" \
		"reads the clock in each call, but from a callback (libevent-loop): there a program knows the time,\n" \
		"as twheel-at does. libuv never reads it, and its timers may be early."
	tables("native", "ns")
	print "\nThe same in instructions, without what the kernel does for them; valgrind's clock is a system call."
	tables("callgrind", "instructions")
}
