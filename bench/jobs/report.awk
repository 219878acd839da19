# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-jobs` as Markdown.
BEGIN {
	nr_subjects = split("sqlite pg-1 pg-2 quartz-1 quartz-2 boss graphile cron", subjects, " ")
	name["sqlite"] = "twheeld, SQLite"
	name["pg-1"] = "twheeld, one node"
	name["pg-2"] = "twheeld, two nodes"
	name["quartz-1"] = "Quartz, one node"
	name["quartz-2"] = "Quartz, two nodes"
	name["boss"] = "pg-boss"
	name["graphile"] = "graphile-worker"
	name["cron"] = "pg_cron"
	nr_costs = split("CPU of nodes,CPU of the server,statements a firing,log of the server", costs, ",")
	nr_late = split("late p50,late p99,late worst", late, ",")
}

$2 == "steady" && !($3 in is_rate) { is_rate[$3] = 1; if ($3) rates[++nr_rates] = $3 }
{ size[$2] = $3 }

# measure.py writes a row for each repetition.
$6 != "text" {
	row = key($1, $2, $3, $4, $5)
	all[row] = all[row] " " $7
	take(row, $6, all[row])
}

function precise(v) {
	return v == "" ? "–" : v >= 100 ? sprintf("%.0f", v) : sprintf(v < 0.1 ? "%.4f" : v < 1 ? "%.3f" : "%.1f", v)
}

function of(part, n, subject, metric) { return get("native", part, n, subject, metric) }

# CPU s of nodes and server for 1000 firings.
function cpu(part, n, subject,	server) {
	server = of(part, n, subject, "CPU of the server")
	return precise(of(part, n, subject, "CPU of nodes") + server)
}

function line_of(part, n, subject, metrics, nr,	j, line) {
	for (j = 1; j <= nr; j++)
		line = line " " precise(of(part, n, subject, metrics[j])) " |"
	return line
}

function backlog_table(	i, s) {
	print "\n## Shots that are due at once\n"
	print "| | shots | firings/s | CPU s for 1000 firings | of the nodes | of the server | statements a firing | log of the server, bytes |"
	print "|---|--:|--:|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		s = subjects[i]
		if (of("backlog", 0, s, "firings/s") != "")
			print "| " name[s] " | " of("backlog", 0, s, "shots") + 0 " | " cell("native", "backlog", 0, s, "firings/s") \
				" | " cpu("backlog", 0, s) " |" line_of("backlog", 0, s, costs, nr_costs)
	}
	print "\nThe time is that from when the shots are due until the last run is over; in the peers, until the last has begun.\n" \
		"CPU is the user and system time of all processes of a subject in that time; Java's includes its compiler."
}

function steady_table(	i, k, s, r) {
	print "\n## Shots at a steady rate\n"
	print "| | a second | late p50 ms | p99 ms | worst ms | CPU s for 1000 firings | statements a firing |\n|---|--:|--:|--:|--:|--:|--:|"
	for (k = 1; k <= nr_rates; k++)
		for (i = 1; i <= nr_subjects; i++) {
			s = subjects[i]
			r = rates[k]
			if (of("steady", r, s, "late p50") != "")
				print "| " name[s] " | " r " |" line_of("steady", r, s, late, nr_late) " " cpu("steady", r, s) " | " \
					precise(of("steady", r, s, "statements a firing")) " |"
		}
}

function late_table(part, title, text,	i, s) {
	print "\n## " title "\n\n| | late p50 ms | p99 ms | worst ms |\n|---|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		s = subjects[i]
		if (of(part, size[part], s, "late p50") != "")
			print "| " name[s] " |" line_of(part, size[part], s, late, nr_late)
	}
	print "\n" text
}

function pending_table(	i, s) {
	print "\n## What a pending job takes\n\n| | jobs | bytes of disk a job |\n|---|--:|--:|"
	for (i = 1; i <= nr_subjects; i++) {
		s = subjects[i]
		if (of("pending", 0, s, "bytes a job") != "")
			print "| " name[s] " | " of("pending", 0, s, "shots") + 0 " | " precise(of("pending", 0, s, "bytes a job")) " |"
	}
}

function failover_table() {
	print "\n## One of two nodes is killed\n\n| | latest firing of other jobs, s | the run of the dead node runs again, s |\n|---|--:|--:|"
	print "| twheeld, lease of 3 s | " precise(of("failover", 2, "pg-2", "latest firing")) " | " precise(of("failover", 2, "pg-2", "runs again")) " |"
	print "| Quartz, by default | | " precise(of("failover", 2, "quartz-2", "runs again")) " |"
	print "| pg-boss, by default | at once | 900: a job that has begun expires after 15 minutes (its documentation) |"
	print "| graphile-worker, by default | at once | 14400: a job that has begun is free again after 4 hours (its documentation) |"
	print "\nNo worker of a queue owns jobs: any worker takes what is due next. Only what the dead worker had begun has to wait."
}

# verdict K, IS, MAY: is it reached if MAY, with the whole spread if IS? One value has no spread.
function verdict(k, is, may) {
	return runs[k] == 1 ? "one value" : is ? "reached" : may ? "inside the noise" : "**missed**"
}

function at_least(what, k, bound) {
	if (k in value)
		printf "| %s | at least %s | %s | %s |\n", what, bound, with_spread(value[k], low[k], high[k], bound, ""), verdict(k, low[k] >= bound, high[k] >= bound)
}

function at_most(what, k, bound) {
	if (k in value)
		printf "| %s | at most %s | %s | %s |\n", what, bound, with_spread(value[k], low[k], high[k], bound, ""), verdict(k, high[k] <= bound, low[k] <= bound)
}

END {
	print "# twheeld beside others that keep jobs in a database\n"
	print "Written by `bench/jobs/report.awk`, not by hand. What is measured, and how, is said in\n" \
		"`bench/jobs/measure.py`. Runs do nothing. For each firing, a subject records that it begins, removes it from\n" \
		"what is pending, records that it is over, and writes it into the history if it keeps one. If the host has other work,\n" \
		"only the CPU times can be compared.\n"
	print_environment()
	print "\n## The numbers to reach\n\nIf a figure was measured only once, it has no spread, and is not judged.\n"
	print "| | | measured | |\n|---|--:|--:|---|"
	at_least("firings/s, PostgreSQL, one node", key("native", "backlog", 0, "pg-1", "firings/s"), 40000)
	at_least("firings/s, PostgreSQL, two nodes", key("native", "backlog", 0, "pg-2", "firings/s"), 50000)
	at_most("late p99 ms at 10 k/s, PostgreSQL, one node", key("native", "steady", 10000, "pg-1", "late p99"), 25)
	at_most("late p99 ms at 10 k/s, PostgreSQL, two nodes", key("native", "steady", 10000, "pg-2", "late p99"), 25)
	at_most("late p99 ms at 10 k/s, SQLite", key("native", "steady", 10000, "sqlite", "late p99"), 30)
	at_most("statements a firing at 10 k/s, two nodes", key("native", "steady", 10000, "pg-2", "statements a firing"), 0.5)
	at_most("fail-over s, lease of 3 s", key("native", "failover", 2, "pg-2", "latest firing"), 5)
	at_most(of("pending", 0, "pg-1", "shots") + 0 " pending: GB of disk", key("native", "pending", 0, "pg-1", "disk"), 1.6)
	at_most("the same: MiB of a node", key("native", "pending", 0, "pg-1", "memory"), 64)
	at_most("the same: s until a node answers", key("native", "pending", 0, "pg-1", "start"), 1)
	at_least("processes/s, SQLite", key("native", "processes", size["processes"], "sqlite", "processes/s"), 1000)
	at_least("processes/s, PostgreSQL, one node", key("native", "processes", size["processes"], "pg-1", "processes/s"), 1000)
	backlog_table()
	steady_table()
	late_table("minute", size["minute"] " jobs at each full minute", "pg_cron did " of("minute", size["minute"], "cron", "done") + 0 \
		" of them in that minute: it runs 32 at a time, each by a new process of the server.")
	late_table("now", "Jobs for \"now\"", \
		"From each request until its run begins; the next request comes after that. twheeld gets the request by HTTP, commits\n" \
		"the shot, and when it fires, commits it to the table `running`. In a queue, a worker only marks the job's row as its own.")
	pending_table()
	failover_table()
	print "\n## What the others have and twheeld lacks\n"
	print "* pg-boss and graphile-worker add a job in the application's own transaction, so that it exists if that commits, and\n" \
		"  only then. twheeld gets a request by HTTP, and if the answer is lost, the application has to send it again."
	print "* A queue's job carries a document; here a shot carries one text."
	print "* Quartz and the queues run functions of the application, in its process. twheeld runs\n" \
		"  processes, " precise(of("processes", size["processes"], "pg-1", "processes/s")) " a second here, while " \
		"graphile-worker calls " precise(of("backlog", 0, "graphile", "firings/s")) " functions a second."
	print "* pg_cron needs no service beside the server."
}
