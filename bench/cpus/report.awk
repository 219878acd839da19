# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# report.awk FIGURES: tables of what run.sh has put together, each line CPUs, load, operation, subject,
# operations, and what locks.c counted.
BEGIN {
	nr_subjects = split("twheel timer_list hrtimer", subject, " ")
	title["own"] = "Each CPU's own base"
	title["elsewhere"] = "Timers of other CPUs"
	title["one"] = "One base for all CPUs"
}

!(($2, $3) in known) {
	known[$2, $3] = 1
	load[++nr] = $2
	op[nr] = $3
}

!($1 in is_cpus) {
	is_cpus[$1] = 1
	cpus[++nr_cpus] = $1
}

{
	k = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
	each[k] = $6 / $5
	held[k] = $7 / $5
	holds[k] = $8 / $5
	longest[k] = $9
}

END {
	print "\nInstructions an operation, without those that wait for a lock; of them those in which one or more"
	print "spinlocks are held; how often an operation takes one when it has none; and the longest hold of all."
	print "Waiting for a lock is left out, since it is a matter of how the host's two processors run the machine's."
	print "A base does one operation at a time: what is held bounds what all CPUs together can do with one."
	print ""
	print "Waiting for the clock is not left out. Whoever reads it while another CPU updates it goes round until"
	print "that CPU is done, and if the host has stopped that CPU, this takes as long as the host likes. twheel"
	print "reads the clock in its lock, and an hrtimer in its own; a timer_list and a cancel read none. The longest"
	print "holds of 10^5 instructions and more are only where the clock is read, and only in machines with more"
	print "CPUs than the host. There are never more than 2 048 timers, and no timer expires meanwhile. That these"
	print "holds are such waiting follows from this; it was not seen."
	for (i = 1; i <= nr; i++)
		table(load[i], op[i])
}

function table(l, o,  c, s) {
	printf "\n## %s: %s\n\n| CPUs", title[l], o
	for (s = 1; s <= nr_subjects; s++)
		if ((cpus[1], l, o, subject[s]) in each)
			printf " | %s | held | holds | longest", subject[s]
	printf " |\n|--:"
	for (s = 1; s <= nr_subjects; s++)
		if ((cpus[1], l, o, subject[s]) in each)
			printf "|--:|--:|--:|--:"
	print "|"
	for (c = 1; c <= nr_cpus; c++)
		line(cpus[c], l, o)
}

function line(n, l, o,  s, k) {
	printf "| %d", n
	for (s = 1; s <= nr_subjects; s++) {
		k = n SUBSEP l SUBSEP o SUBSEP subject[s]
		if (k in each)
			printf " | %.0f | %.0f | %.1f | %d", each[k], held[k], holds[k], longest[k]
	}
	print " |"
}
