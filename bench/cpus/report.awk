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
	print "Waiting is left out, since it is a matter of how the host's two processors run the machine's. A base"
	print "does one operation at a time: what is held bounds what all CPUs together can do with one."
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
