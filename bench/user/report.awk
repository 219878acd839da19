# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# With common.awk, report.awk FILE.tsv: the figures of `make bench-user` as Markdown.
BEGIN {
	nr_ops = split("create arm rearm cancel expire collect close", ops, " ")
	nr_life = split("create arm expire collect close", lives, " ")
}

$2 == "life" && !(($1, $3) in sized) {
	sized[$1, $3] = 1
	size[$1, ++nr_sizes[$1]] = $3
}

$2 == "wakes" && !(($1, $3) in wake_sized) {
	wake_sized[$1, $3] = 1
	wake_size[$1, ++nr_wake_sizes[$1]] = $3
}

($2 == "life" || $2 == "wakes") && !($4 in known) {
	known[$4] = 1
	subject[++nr_subjects] = $4
}

$2 == "limit" && !(($4, $5) in limited) {
	limited[$4, $5] = 1
	limit[++nr_limits] = "| " $4 " | " $5 " | " $7 " |"
}

# The whole of a timer's life.
function life(rig, n, s,	i, sum) {
	for (i = 1; i <= nr_life; i++) {
		if (get(rig, "life", n, s, lives[i]) == "")
			return ""
		sum += get(rig, "life", n, s, lives[i])
	}
	return sum
}

function life_row(rig, n, s,	i, line) {
	if (life(rig, n, s) == "")
		return
	line = "| " s " |"
	for (i = 1; i <= nr_ops; i++)
		line = line " " whole(get(rig, "life", n, s, ops[i])) " |"
	print line " " whole(life(rig, n, s)) " |"
}

# What is less than one is noise.
function whole(v) {
	return v == "" ? "–" : sprintf("%.0f", v < 0 ? 0 : v)
}

function missing(rig, n, s,	v) {
	v = get(rig, "life", n, s, "missing")
	if (v != "")
		print "\n" s " cannot have " n ": " v "."
}

function life_table(rig, n,	i) {
	printf "\n### n = %d\n\n", n
	print "| | create | arm | re-arm | cancel | expire | collect | close | a life |"
	print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
	for (i = 1; i <= nr_subjects; i++)
		life_row(rig, n, subject[i])
	for (i = 1; i <= nr_subjects; i++)
		missing(rig, n, subject[i])
}

function life_tables(rig, title,	i) {
	if (!nr_sizes[rig])
		return
	print "\n## " title
	for (i = 1; i <= nr_sizes[rig]; i++)
		life_table(rig, size[rig, i])
}

function memory_row(rig, metric, s,	i, line, some) {
	line = "| " s " |"
	for (i = 1; i <= nr_sizes[rig]; i++) {
		some = some get(rig, "life", size[rig, i], s, metric)
		line = line " " figure(get(rig, "life", size[rig, i], s, metric)) " |"
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

function memory_table(rig, metric, title,	i) {
	if (!nr_sizes[rig])
		return
	print "\n" title "\n"
	head(rig, "n =", size, nr_sizes)
	for (i = 1; i <= nr_subjects; i++)
		memory_row(rig, metric, subject[i])
}

function wake_table(rig, title,	i, k, line) {
	if (!nr_wake_sizes[rig])
		return
	print "\n" title "\n"
	head(rig, "timers in the tick", wake_size, nr_wake_sizes)
	for (i = 1; i <= nr_subjects; i++) {
		line = "| " subject[i] " |"
		for (k = 1; k <= nr_wake_sizes[rig]; k++)
			line = line " " figure(get(rig, "wakes", wake_size[rig, k], subject[i], "wake-ups")) " |"
		print line
	}
}

function most_wakes(rig, s,	k, v, most) {
	for (k = 1; k <= nr_wake_sizes[rig]; k++) {
		v = get(rig, "wakes", wake_size[rig, k], s, "wake-ups")
		if (v + 0 > most)
			most = v
	}
	return most
}

# The goal is to take @times less than @theirs.
function fewer(what, ours, theirs, times) {
	if (ours != "" && theirs != "")
		goal(what " " times, ours, sprintf("%.0f", theirs / times), "")
}

function metric(s, what) { return get("icount", "life", 100000, s, what) }

function goals(	ours, closing) {
	ours = life("icount", 100000, "twheel")
	goals_begin()
	fewer("a life, timerfd's /", ours, life("icount", 100000, "timerfd"), 25)
	fewer("a life, POSIX timer's /", ours, life("icount", 100000, "posix"), 10)
	fewer("a life, io_uring's /", ours, life("icount", 100000, "io_uring"), 5)
	fewer("random cancel, io_uring's /", metric("twheel", "cancel"), metric("io_uring", "cancel"), 500)
	fewer("random cancel, timerfd's cancel and close /", metric("twheel", "cancel"),
		metric("timerfd", "cancel") + metric("timerfd", "close"), 10)
	fewer("random cancel, timerfd's cancel, which keeps it, /", metric("twheel", "cancel"),
		metric("timerfd", "cancel"), 10)
	fewer("re-arm, timerfd's /", metric("twheel", "rearm"), metric("timerfd", "rearm"), 5)
	goal("kernel memory, n = 10^5", metric("twheel", "memory"), 65, " bytes")
	goal("kernel memory, n = 10^6", get("icount", "life", 1000000, "twheel", "memory"), 65, " bytes")
	goal("wake-ups a tick, counting instructions", most_wakes("icount", "twheel"), 1, "")
	goal("wake-ups a tick, in time", most_wakes("tcg", "twheel"), 1, "")
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
	print "`bench/user/main.c`, and how each subject is used at the head of its file beside it."
	print "`twheel-single` is /dev/twheel with a system call for each timer. `libevent` is a heap in"
	print "user space behind one timerfd."
	print ""
	print_environment()
	goals()
	print "\nInstructions a timer, n = 10^5. A life is create, arm, expire, collect and close. A cancel of"
	print "twheel frees the timer; timerfd's does with close() only."
	life_tables("icount", "Instructions a timer")
	life_tables("tcg", "Times, ns a timer")
	print "\nMedians, in a virtual machine without hardware acceleration: ratios mean something."
	print "\n## Memory, bytes a timer"
	memory_table("icount", "memory", "The kernel's, all timers armed. With few of them it is that of the descriptor or ring:")
	memory_table("icount", "user-memory", "The process's:")
	print "\n## Wake-ups\n"
	print "How often a waiting process is woken up for the timers that are due at random times within one"
	print "tick of 1 ms."
	wake_table("icount", "Where an instruction is a ns:")
	wake_table("tcg", "In time:")
	limits()
}
