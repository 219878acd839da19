# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-kernel` as Markdown.
!(($1, $2, $3) in seen) {
	seen[$1, $2, $3] = 1
	sizes[$1, $2] = sizes[$1, $2] " " $3
}

!(($2, $4) in known) {
	known[$2, $4] = 1
	subjects[$2] = subjects[$2] (subjects[$2] == "" ? "" : "\t") $4
}

# The largest figure of twheel over all sizes, divided by the smallest.
function most_of_least(rig, workload, metric,	n, nr, i, v, least, most) {
	nr = split(sizes[rig, workload], n, " ")
	for (i = 1; i <= nr; i++) {
		v = get(rig, workload, n[i], "twheel", metric)
		if (v == "")
			return ""
		if (i == 1 || v + 0 < least)
			least = v + 0
		if (i == 1 || v + 0 > most)
			most = v + 0
	}
	return nr > 1 ? most / least : ""
}

# Print a table: a line for each of @metrics and each subject, a column for each size.
function table(rig, workload, metrics,	m, nr_m, s, nr_s, n, nr_n, i, j, k, line, some) {
	nr_n = split(sizes[rig, workload], n, " ")
	nr_s = split(subjects[workload], s, "\t")
	nr_m = split(metrics, m, " ")
	if (!nr_n)
		return
	line = "| n = |"
	for (k = 1; k <= nr_n; k++)
		line = line " " n[k] " |"
	print line
	gsub(/[^|]+/, "--:", line)
	sub(/^.--:/, "|---", line)
	print line
	for (i = 1; i <= nr_m; i++) {
		for (j = 1; j <= nr_s; j++) {
			line = "| " m[i] ", " s[j] " |"
			some = ""
			for (k = 1; k <= nr_n; k++) {
				some = some get(rig, workload, n[k], s[j], m[i])
				line = line " " cell(rig, workload, n[k], s[j], m[i]) " |"
			}
			if (some != "")
				print line
		}
	}
}

function section(title, rig, workload, metrics) {
	if ((rig, workload) in sizes) {
		print "\n### " title "\n"
		table(rig, workload, metrics)
	}
}

# The largest figure of all subjects.
function most(rig, workload, n, metric,	s, nr, i, v, of_all) {
	nr = split(subjects[workload], s, "\t")
	for (i = 1; i <= nr; i++) {
		v = get(rig, workload, n, s[i], metric)
		if (of_all == "" || v + 0 > of_all)
			of_all = v
	}
	return of_all
}

# A goal beside another subject, at each n.
function goal_beside(what, rig, workload, metric, other, limit) {
	goal_of_kind(what, rig, workload, metric, "twheel", other, limit)
}

function goal_of_kind(what, rig, workload, metric, ours, other, limit,	i) {
	each_begin(what ", " other "\047s = 1", limit)
	for (i = 1; i <= nr_each; i++)
		each_ratio(each_size[i], key(rig, workload, each_size[i], ours, metric),
			key(rig, workload, each_size[i], other, metric))
	each_end()
}

function goals_of_time(what, workload, metric) {
	goal_beside(what ", ns", "uml", workload, metric, "timer_list", 1)
	goal_beside(what ", ns", "uml", workload, metric, "hrtimer", 0.33)
}

# Goals for the cost of an expiry, in instructions. On an idle CPU an expiry costs most if timers are few,
# and wherever timers were moved twice.
function goals_of_expiry(workload, what) {
	what = "expire, " what ", instructions"
	goal_beside(what, "icount", workload, "expire", "hrtimer", 1)
	goal_beside(what, "icount", workload, "expire", "hrtimer-ms", 1)
	goal_beside(what, "icount", workload, "expire", "hrtimer-hard", 1)
}

# Most code arms with a delay, for which twheel reads the clock.
function goals_of_delays(what, range, metric) {
	what = what " with a delay, 1 … " range " ms"
	goal_of_kind(what ", instructions", "icount", "pending-" range, metric, "twheel-rel", "timer_list-rel", 1)
	goal_of_kind(what ", ns", "uml", "pending-" range, metric, "twheel-rel", "timer_list-rel", 1)
}

# The goal for timers with a tolerance of an eighth, which is that of a timer_list: their figure must be
# at most @limit times that of timer_list.
function goal_of_tolerance(what, rig, workload, metric, limit) {
	goal_of_kind("tolerance 1/8: " what, rig, workload, metric, "twheel-eighth", "timer_list", limit)
}

function goals_of_tolerance() {
	goal_of_tolerance("expire, 1 … 60 000 ms, instructions", "icount", "idle-60000", "expire", 1)
	goal_of_tolerance("expire, 60 … 120 s, instructions", "icount", "idle-60000-120000", "expire", 1)
	goal_of_tolerance("expire, 1 … 1 000 000 ms, instructions", "icount", "idle-1000000", "expire", 1)
	goal_of_tolerance("interrupts, 1 … 60 000 ms", "icount", "idle-60000", "interrupts", 3)
	goal_of_tolerance("mean lateness, 1 … 60 000 ms", "icount", "idle-60000", "mean-late", 1)
	goal_of_tolerance("expire, 1 … 60 000 ms, ns", "uml", "idle-60000", "expire", 0.8)
}

# Who gives a timer a tolerance pays for choosing its tick.
function goals_of_tolerant_ops(workload, what) {
	goal_of_tolerance("add, " what, "uml", workload, "add", 1)
	goal_of_tolerance("re-arm, " what, "uml", workload, "rearm", 1)
	goal_of_tolerance("put off, " what, "uml", workload, "put-off", 1)
	goal_of_tolerance("cancel, " what, "uml", workload, "cancel", 1)
}

function goals_at_each_n(	range, i, what) {
	print "A goal for each number of timers. Where it is missed, the figure is bold. There is no figure where"
	print "nothing was measured, or where one of the two took nothing that could be seen.\n"
	each_head("1000 10000 100000 1000000")
	goal_beside("put off, instructions", "icount", "pending-60000", "put-off", "timer_list", 0.6)
	split("60000 1000000", range, " ")
	for (i = 1; i <= 2; i++) {
		goals_of_time("add, 1 … " range[i] " ms", "pending-" range[i], "add")
		goals_of_time("cancel, 1 … " range[i] " ms", "pending-" range[i], "cancel")
	}
	split("1000 60000", range, " ")
	for (i = 1; i <= 2; i++) {
		what = "expire, 1 … " range[i] " ms, busy CPU"
		goals_of_time(what, "busy-" range[i], "expire")
		goal_beside(what ", ns", "uml", "busy-" range[i], "expire", "hrtimer-ms", 0.33)
	}
	split("60000 1000000", range, " ")
	for (i = 1; i <= 2; i++) {
		goals_of_delays("add", range[i], "add")
		goals_of_delays("re-arm", range[i], "rearm")
		goals_of_delays("put off", range[i], "put-off")
	}
	goals_of_expiry("busy-1000", "1 … 1000 ms, busy CPU")
	goals_of_expiry("busy-10000", "1 … 10 000 ms, busy CPU")
	goals_of_expiry("busy-8000-9000", "8 … 9 s, busy CPU")
	goals_of_expiry("idle-1000", "1 … 1000 ms, idle CPU")
	goals_of_expiry("idle-60000-61000", "60 … 61 s, idle CPU")
	goals_of_expiry("idle-60000", "1 … 60 000 ms, idle CPU")
	goals_of_expiry("idle-60000-120000", "60 … 120 s, idle CPU")
	goals_of_expiry("idle-1000000", "1 … 1 000 000 ms, idle CPU")
	goals_of_tolerance()
	for (i = 1; i <= 2; i++)
		goals_of_tolerant_ops("pending-" range[i], "1 … " range[i] " ms, ns")
}

function goal_hot(other, limit) {
	goal_ratio("hot add+cancel, instructions, " other "\047s = 1", key("icount", "hot", 1, "twheel", "add+cancel"),
		key("icount", "hot", 1, other, "add+cancel"), limit)
}

function goal_hot_delay(other) {
	goal_ratio("hot add+cancel with a delay, ns, " other "\047s = 1", key("uml", "hot", 1, "twheel-rel", "add+cancel"),
		key("uml", "hot", 1, other, "add+cancel"), 1)
}

function goals(	range, i) {
	goals_begin()
	goals_at_each_n()
	print ""
	goals_head()
	goal_hot("timer_list", 0.9)
	goal_hot("hrtimer", 0.45)
	goal_hot("hrtimer-hard", 0.45)
	goal_hot_delay("timer_list-rel")
	goal_hot_delay("hrtimer-rel")
	split("60000 1000000", range, " ")
	for (i = 1; i <= 2; i++) {
		goal("add, 1 … " range[i] " ms, instructions, most of all n / least", most_of_least("icount", "pending-" range[i], "add"), 1.05, "")
		goal("cancel, 1 … " range[i] " ms, instructions, most of all n / least", most_of_least("icount", "pending-" range[i], "cancel"), 1.05, "")
	}
	goal("moves in one run, n = 10^6 in one hour\047s bucket", get("icount", "hour", 1000000, "twheel", "most-moves"), 1100, "")
	goal("operations in one lock hold", most("icount", "hold", 1, "operations"), 64, "")
	goal("instructions with interrupts off, in one lock hold of ours", most("icount", "hold", 1, "instructions"), 12800, "")
	goal("the same in a call of the device, whatever turned them off", most_of_device(), 12800, "")
	goal("not in their tick, over virtual years", nr_exact ? inexact + 0 : "", 0, " timers")
}

# The longest time with interrupts off in calls of the device: of all rows but what the kernel takes for itself.
function most_of_device(	s, nr, i, v, of_all) {
	nr = split(subjects["irqs-off"], s, "\t")
	for (i = 1; i <= nr; i++) {
		v = get("icount", "irqs-off", 1, s[i], "instructions")
		if (s[i] !~ /^(getppid|timerfd|munmap)/ && v + 0 > of_all + 0)
			of_all = v
	}
	return of_all
}

# The range of a figure over all sizes, as "least … most".
function range_of(workload, s, metric,	n, nr, i, v, from, to) {
	nr = split(sizes["icount", workload], n, " ")
	for (i = 1; i <= nr; i++) {
		v = get("icount", workload, n[i], s, metric)
		if (v == "")
			continue
		if (from == "" || v + 0 < from + 0)
			from = v
		if (to == "" || v + 0 > to + 0)
			to = v
	}
	return from == "" ? "–" : figure(from) == figure(to) ? figure(from) : figure(from) " … " figure(to)
}

function short_row(what, workload, metric,	s, i, line) {
	if (!(("icount", workload) in sizes))
		return
	split("twheel twheel-eighth timer_list hrtimer hrtimer-ms", s, " ")
	line = "| " what " |"
	for (i = 1; i <= 5; i++)
		line = line " " range_of(workload, s[i], metric) " |"
	print line
}

function in_short() {
	print "\n## In short\n"
	print "Instructions a timer, from the least to the most over all n. What is due in its tick cannot be as"
	print "cheap as timer_list, which is up to 12.5 % late. An hrtimer is as exact, and where timers are few"
	print "it is the cheaper one to expire. hrtimer-ms are those with deadlines of whole ms,"
	print "twheel-eighth are timers that may be late by an eighth of their delay, as a timer_list is.\n"
	print "| | twheel | twheel-eighth | timer_list | hrtimer | hrtimer-ms |"
	print "|---|--:|--:|--:|--:|--:|"
	short_row("one hot timer, add and cancel", "hot", "add+cancel")
	short_row("add, 1 … 60 000 ms", "pending-60000", "add")
	short_row("re-arm", "pending-60000", "rearm")
	short_row("put off", "pending-60000", "put-off")
	short_row("cancel", "pending-60000", "cancel")
	short_row("expire within 1 s, busy CPU", "busy-1000", "expire")
	short_row("expire within 1 s, idle CPU", "idle-1000", "expire")
	short_row("expire within 8 … 9 s, busy CPU", "busy-8000-9000", "expire")
	short_row("expire within a minute, idle CPU", "idle-60000", "expire")
	short_row("expire within 1 000 s, idle CPU", "idle-1000000", "expire")
	short_row("armed 60 … 120 s ahead: add", "idle-60000-120000", "add")
	short_row("armed 60 … 120 s ahead: expire, moves included", "idle-60000-120000", "expire")
}

function hour(	i, m, nr, s) {
	if (!(("icount", "hour") in sizes))
		return
	print "\n## A million timers in one hour's bucket\n"
	print "All within one bucket of 3600 ticks, a day ahead. No run does more than 1024 operations,"
	print "so cascading a whole bucket does not show in the moves of a run but in how late the"
	print "timers are. In user space nothing bounds it: see most moves in one tick,"
	print "[bench-wheel.md](bench-wheel.md). In virtual time, an instruction being a ns.\n"
	print "| | most moves in a run | moves | runs | of these cut short | latest, ms |"
	print "|---|--:|--:|--:|--:|--:|"
	nr = split("most-moves moves interrupts deferred latest", m, " ")
	split("twheel whole-bucket", s, " ")
	for (i = 1; i <= 2; i++)
		print hour_row(s[i], m, nr)
}

function hour_row(s, m, nr,	i, line) {
	line = "| " s " |"
	for (i = 1; i <= nr; i++)
		line = line " " figure(get("icount", "hour", 1000000, s, m[i])) " |"
	return line
}

# How many percent of the timers were late by more than @above us, and at most @limit us.
function late_share(s, above, limit,	us, sum) {
	for (us = above ? 2 * above : 1; us <= limit; us *= 2)
		sum += get("icount", "late-60000", 100000, s, "late-" us)
	return sprintf("%.2f", sum / 1000)
}

function late(	i, s) {
	if (!(("icount", "late-60000") in sizes))
		return
	print "\n## Lateness\n"
	print "How late 100 000 timers of up to a minute are on an idle CPU, in percent of them. Nothing is armed"
	print "meanwhile, and an instruction is a ns.\n"
	print "![How late 100 000 timers of up to a minute are](pictures/kernel-late.svg)\n"
	print "| | early | up to 16 µs | up to 1.02 ms | up to 33 ms | up to 0.52 s | up to 4.2 s |"
	print "|---|--:|--:|--:|--:|--:|--:|"
	split("twheel timer_list hrtimer", s, " ")
	for (i = 1; i <= 3; i++)
		printf "| %s | %.2f | %s | %s | %s | %s | %s |\n", s[i],
			get("icount", "late-60000", 100000, s[i], "early") / 1000, late_share(s[i], 0, 16),
			late_share(s[i], 16, 1024), late_share(s[i], 1024, 32768), late_share(s[i], 32768, 524288),
			late_share(s[i], 524288, 4194304)
}

function exact(	i) {
	if (!nr_exact)
		return
	print "\n## Exactness\n"
	print "Timers of all distances in virtual time, where code takes none, see"
	print "`selftest/kmod/twheel_century.c`: how many do not fire in their tick. timer_list is given"
	print "the same delays, of up to 12 days, and is late by design.\n"
	print "| | timers | | |"
	print "|---|--:|---|--:|"
	for (i = 1; i <= nr_exact; i++)
		print exact_line[i]
}

$2 == "exact" {
	if ($4 == "twheel")
		inexact += $7
	exact_line[++nr_exact] = "| " $4 " | " $3 " | " $5 " | " figure($7) " " $6 " |"
}

END {
	print "# twheel beside timer_list and hrtimer"
	print ""
	print "Written by `bench/kernel/report.awk`, not by hand. What is measured, and how, is said in"
	print "`bench/kernel/twheel_bench.c`, and where, in `run.sh` beside it. Figures in ns are medians of five boots,"
	print "and those of a minute of three. The spread goes from the least boot to the most: five enclose the true"
	print "median with a probability of 94 %, three with 75 %."
	print ""
	print_environment()
	print "\n![What arming, re-arming, cancelling and expiring cost](pictures/kernel-cost.svg)"
	in_short()
	goals()
	print "\n## One hot timer, nothing else pending"
	section("instructions", "icount", "hot", "add+cancel")
	section("ns", "uml", "hot", "add+cancel")
	print "\n## Timers pending"
	section("1 … 60 000 ms, ns", "uml", "pending-60000", "add rearm put-off cancel")
	section("1 … 1 000 000 ms, ns", "uml", "pending-1000000", "add rearm put-off cancel")
	section("1 … 60 000 ms, instructions", "icount", "pending-60000", "add rearm put-off cancel")
	section("1 … 1 000 000 ms, instructions", "icount", "pending-1000000", "add rearm put-off cancel")
	print "\n## Expiry\n"
	print "expire is what each timer took. interrupts are those of hrtimers beyond the ones that come"
	print "anyway. longest-stop is how long anything else stood still, longest-pass that of one softirq."
	print "bare-tick has no timers: it is what an interrupt in every ms costs, as each timer\047s share. What the"
	print "kernel takes without any timers is subtracted: a negative figure is less than comes by chance. So is"
	print "what is off by as much: with 1 000 timers a figure may be wrong by hundreds of instructions a timer."
	section("1 … 1000 ms on a busy CPU, ns", "uml", "busy-1000", "expire interrupts longest-stop")
	section("1 … 60 000 ms on a busy CPU, ns", "uml", "busy-60000", "expire interrupts longest-stop")
	section("1 … 60 000 ms on an idle CPU, ns", "uml", "idle-60000", "expire interrupts mean-late")
	section("1 … 1000 ms on a busy CPU, instructions", "icount", "busy-1000", "expire interrupts longest-stop longest-pass")
	if (("icount", "busy-1000") in sizes)
		print "\n![The longest time that a CPU was in one softirq](pictures/kernel-worst.svg)"
	section("1 … 10 000 ms on a busy CPU, instructions", "icount", "busy-10000", "expire interrupts")
	section("8 … 9 s on a busy CPU, instructions", "icount", "busy-8000-9000", "expire interrupts")
	section("1 … 1000 ms on an idle CPU, instructions", "icount", "idle-1000", "expire interrupts")
	section("60 … 61 s on an idle CPU, instructions", "icount", "idle-60000-61000", "expire interrupts")
	section("1 … 60 000 ms on an idle CPU, instructions", "icount", "idle-60000", "expire interrupts")
	section("60 000 … 120 000 ms on an idle CPU, instructions: armed, moved twice, and expired", "icount", "idle-60000-120000", "add expire interrupts")
	section("1 … 1 000 000 ms on an idle CPU, instructions", "icount", "idle-1000000", "expire interrupts")
	late()
	hour()
	print "\n## Interrupts off\n"
	print "The longest lock hold of each kind of work, in operations and in instructions, see"
	print "`bench/kernel/twheel_hold.c`; `make check` runs it too. In the rows with holds of 16 (mod-rt and"
	print "small-...), the probe may see two holds as one, of 32."
	section("one lock hold", "icount", "hold", "operations instructions")
	print "\nHow long interrupts are off, whoever turns them off, while each call of the device is made"
	print "again and again, and while what was armed expires: `bench/kernel/irqs_off.c`. getppid and timerfd"
	print "are what the kernel takes for itself."
	section("each call of the device", "icount", "irqs-off", "instructions")
	exact()
}
