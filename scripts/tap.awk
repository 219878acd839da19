# SPDX-License-Identifier: GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The twheel authors
# Count the points of one or more TAP streams in a row.
#
#	awk -v status=N -v suite=NAME -v least=FILE -v skips=FILE -f tap.awk
#
# Print a "# ..." line for everything that is wrong beyond a plain "not ok", and
# at the end "PASSED FAILED SKIPPED". These count as failed: a point that is not ok; a skip whose
# reason is not at the beginning of any line of the file "skips"; points that were planned and did
# not come, or came and were not planned; fewer points than the file "least" says for the suite (a
# line there is the suite's name, with or without arguments, and the number or a range); an exit
# status that no failed point explains. That a suite was out of time is said in any case, for
# scripts/long/mutate.sh.

function wrong(what)
{
	print "# " what
	failed++
}

BEGIN {
	while (skips && (getline line < skips) > 0) {
		sub(/\t.*/, "", line)
		may_skip[line] = line !~ /^#/
	}
	while (least && (getline line < least) > 0) {
		split(line, word)
		floors[word[1]] = word[2] + 0	# of a range the first
	}
	name = suite
	sub(/,.*/, "", name)
	floor = floors[suite in floors ? suite : name]
}

/^1\.\.[0-9]+/ { planned += substr($1, 4) }

/^(not )?ok( |$)/ {
	points++
	name = $0
	sub(/^(not )?ok *[0-9]* *-? */, "", name)
	reason = ""
	if (match(toupper(name), /# *SKIP */)) {
		reason = substr(name, RSTART + RLENGTH)
		name = substr(name, 1, RSTART - 1)
		skip = 1
	} else {
		skip = 0
	}
	if (/^not/)
		failed++
	else if (skip && !may_skip[reason])
		wrong("skipped: " name "for a reason that is not expected: " reason)
	else if (skip)
		skipped++
	else
		passed++
}

/^Bail out!/ { wrong($0) }

END {
	if (!points)
		wrong("no test points")
	else if (planned != points)
		wrong("planned " planned + 0 " points, got " points)
	if (least && !floor)
		wrong("points.expected does not say how many points " suite " has")
	else if (points < floor)
		wrong(points + 0 " points, and " suite " has had " floor)
	if (status && !failed)
		wrong("exit status " status)
	if (status == 124 || status == 137)
		print "# status " status ": out of time"
	print passed + 0, failed + 0, skipped + 0
}
