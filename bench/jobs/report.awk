# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-jobs` as Markdown.
BEGIN {
	nr_subjects = split("sqlite pg-1 pg-2", subjects, " ")
	name["sqlite"] = "SQLite"
	name["pg-1"] = "PostgreSQL, one daemon"
	name["pg-2"] = "PostgreSQL, two daemons"
	nr_costs = split("CPU of a daemon,CPU of the server,log of the server,transactions a firing", costs, ",")
	nr_late = split("late p50,late p99,late worst,transactions a firing", late, ",")
}

$2 == "backlog" || $2 == "steady" { size[$2] = $3 }

function backlog_table(	i, j, line) {
	printf "\n## %d shots that are due at once\n\n", size["backlog"]
	print "| | firings/s | CPU of the daemons, us a firing | CPU of the server, us | its log, bytes | transactions |"
	print "|---|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " name[subjects[i]] " | " cell("native", "backlog", size["backlog"], subjects[i], "firings/s") " |"
		for (j = 1; j <= nr_costs; j++)
			line = line " " precise(get("native", "backlog", size["backlog"], subjects[i], costs[j])) " |"
		print line
	}
}

function steady_table(	i, j, line) {
	printf "\n## %d shots a second\n\n", size["steady"]
	print "| | late p50 ms | late p99 ms | worst ms | transactions a firing |\n|---|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " name[subjects[i]] " |"
		for (j = 1; j <= nr_late; j++)
			line = line " " precise(get("native", "steady", size["steady"], subjects[i], late[j])) " |"
		print line
	}
}

function precise(v) { return v == "" ? "–" : sprintf(v < 0.1 ? "%.4f" : v < 1 ? "%.3f" : "%.1f", v) }

function at_least(what, v, bound) {
	if (v != "")
		printf "| %s | at least %s | %s | %s |\n", what, bound, figure(v), (v >= bound ? "reached" : "missed")
}

function at_most(what, v, bound) {
	if (v != "")
		printf "| %s | at most %s | %s | %s |\n", what, bound, precise(v), (v <= bound ? "reached" : "missed")
}

END {
	print "# twheeld with PostgreSQL and with SQLite\n"
	print "Written by `bench/jobs/report.awk`, not by hand. What is measured, and how, is said in\n" \
		"`bench/jobs/measure.py`. Runs do nothing: what is measured is the store and the daemon.\n"
	print_environment()
	print "\n## The numbers to reach\n\n| | | measured | |\n|---|--:|--:|---|"
	at_least("firings/s, PostgreSQL, one daemon", get("native", "backlog", size["backlog"], "pg-1", "firings/s"), 40000)
	at_least("firings/s, PostgreSQL, two daemons", get("native", "backlog", size["backlog"], "pg-2", "firings/s"), 50000)
	at_most("late p99 ms, PostgreSQL, one daemon", get("native", "steady", size["steady"], "pg-1", "late p99"), 25)
	at_most("late p99 ms, PostgreSQL, two daemons", get("native", "steady", size["steady"], "pg-2", "late p99"), 25)
	at_most("late p99 ms, SQLite", get("native", "steady", size["steady"], "sqlite", "late p99"), 30)
	at_most("transactions a firing, two daemons",
		get("native", "steady", size["steady"], "pg-2", "transactions a firing"), 0.5)
	at_most("fail-over s, lease of 3 s", get("native", "failover", 2, "pg-2", "latest firing"), 5)
	backlog_table()
	steady_table()
	print "\nA transaction is a statement of a daemon: a turn is one. Fail-over is from when a daemon is killed to when the\n" \
		"latest of the firings that it would have made has been made by the other."
}
