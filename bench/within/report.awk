# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-within` as Markdown.
BEGIN {
	nr_loads = split("never seldom often", loads, " ")
	nr_subjects = split("exact 1/1000 1/300 1/100 1/60 1/30 1/10", subjects, " ")
	nr_metrics = split("wake-ups moments settimes moves fired late", metrics, " ")
	N = 10000
	of["never"] = "no timeout ever fires"
	of["seldom"] = "one of 400 timeouts fires"
	of["often"] = "one of seven or eight timeouts fires"
}

function of_load(l, servers, s, metric) { return get("native", l "-" servers, N, s, metric) }

# Most are small numbers a second.
function rate(v) { return v == "" || v == int(v) || v >= 100 ? figure(v) : sprintf("%.2f", v) }

function table(l, servers,	i, j, line) {
	printf "\n### %s: %s\n\n", l, of[l]
	print "| tolerance | wake-ups | moments | settimes | moves | fired | late, ms |"
	print "|---|--:|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " (subjects[i] == "exact" ? "none" : subjects[i]) " |"
		for (j = 1; j <= nr_metrics; j++)
			line = line " " rate(of_load(l, servers, subjects[i], metrics[j])) " |"
		print line
	}
}

END {
	print "# How often a process is woken by timers that may be late\n"
	print "Written by `bench/within/report.awk`, not by hand. What is done is said in `bench/within/within.c`:\n" \
		"10 000 connections with an idle timeout of 30 s each, which is put off whenever they say something,\n" \
		"for ten minutes of a time that is made up. All figures but the last are of a second, and the same on each machine.\n"
	print_environment()
	print "\n## One server with all connections"
	for (i = 1; i <= nr_loads; i++)
		table(loads[i], 1)
	print "\n## Ten servers on one machine, with a thousand connections each\n"
	print "Wake-ups are those of all servers, and moments the ticks in which any was woken: that is how often\n" \
		"the machine is."
	for (i = 1; i <= nr_loads; i++)
		table(loads[i], 10)
}
